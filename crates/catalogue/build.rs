//! Embeds the files of `catalogue/`: a new drive, array, scenario or workload is a new file and needs no code.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../../catalogue");
    let mut code = String::new();
    let folders = [
        ("ARRAYS", "arrays"),
        ("DRIVES", "drives"),
        ("SCENARIOS", "scenarios"),
        ("VOLUMES", "volumes"),
        ("WORKLOADS", "workloads"),
    ];
    for (name, folder) in folders {
        let folder = root.join(folder);
        println!("cargo::rerun-if-changed={}", folder.display());
        writeln!(code, "static {name}: &[Entry] = &[").expect("a string grows");
        for path in toml_files(&folder) {
            let id = path.file_stem().expect("it has a name").display();
            writeln!(code, "    Entry {{ id: \"{id}\", file_name: \"{id}.toml\", text: include_str!({path:?}) }},")
                .expect("a string grows");
        }
        writeln!(code, "];").expect("a string grows");
    }
    let out = Path::new(&env::var("OUT_DIR").expect("cargo sets it")).join("entries.rs");
    fs::write(&out, code).unwrap_or_else(|error| panic!("{}: {error}", out.display()));
}

/// The folder's TOML files by name. Without a catalogue there is nothing to simulate: it had better not be built.
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

/// Writes one line for the user who builds.
fn fail(message: &str) -> ! {
    println!("cargo::error={message}");
    std::process::exit(1)
}
