//! Embeds the files of `catalogue/`. A new drive, array, scenario or workload is a new file and needs no code.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let root =
        Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR")).join("../../catalogue");
    let mut code = String::new();
    let folders = [
        ("ARRAYS", "arrays"),
        ("DRIVES", "drives"),
        ("SCENARIOS", "scenarios"),
        ("STACKS", "stacks"),
        ("VOLUMES", "volumes"),
        ("WORKLOADS", "workloads"),
    ];
    for (name, folder) in folders {
        let folder = root.join(folder);
        println!("cargo::rerun-if-changed={}", folder.display());
        writeln!(code, "static {name}: &[Entry] = &[").expect("writing to a string never fails");
        for path in toml_files(&folder) {
            let id = path.file_stem().expect("a TOML file has a name").display();
            writeln!(code, "    Entry {{ id: \"{id}\", file_name: \"{id}.toml\", text: include_str!({path:?}) }},")
                .expect("writing to a string never fails");
        }
        writeln!(code, "];").expect("writing to a string never fails");
    }
    let out = Path::new(&env::var("OUT_DIR").expect("cargo sets OUT_DIR")).join("entries.rs");
    fs::write(&out, code).unwrap_or_else(|error| panic!("{}: {error}", out.display()));
}

/// Returns the TOML files of the folder, sorted by name. Fails the build if there are none, because nothing could be
/// simulated.
fn toml_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| fail(&format!("{}: {error}", folder.display())));
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap_or_else(|error| fail(&format!("{}: {error}", folder.display()))).path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    if files.is_empty() {
        fail(&format!("{}: no TOML file in this folder of the catalogue", folder.display()));
    }
    files.sort_by(|a, b| a.file_stem().cmp(&b.file_stem()));
    files
}

/// Prints a one-line error for the user and stops the build.
fn fail(message: &str) -> ! {
    println!("cargo::error={message}");
    std::process::exit(1)
}
