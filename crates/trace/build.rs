//! Embeds the files of `formats/`. To add a table format, add a file there; no code is needed.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let folder = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR")).join("formats");
    println!("cargo::rerun-if-changed={}", folder.display());
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| fail(&format!("{}: {error}", folder.display())));
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap_or_else(|error| fail(&format!("{}: {error}", folder.display()))).path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    files.sort();
    let mut code = format!("/// Names and texts.\npub(crate) const FILES: [(&str, &str); {}] = [\n", files.len());
    for path in files {
        let name = path.file_stem().expect("every file has a name").display();
        writeln!(code, "    (\"{name}\", include_str!({path:?})),").expect("writing to a string cannot fail");
    }
    code += "];\n";
    let out = Path::new(&env::var("OUT_DIR").expect("cargo sets OUT_DIR")).join("tables.rs");
    fs::write(&out, code).unwrap_or_else(|error| panic!("{}: {error}", out.display()));
}

/// Prints an error on one line for the person who builds.
fn fail(message: &str) -> ! {
    println!("cargo::error={message}");
    std::process::exit(1)
}
