//! Embeds the files of `formats/`: a table that traces come in is a new file there and needs no code.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let folder = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("formats");
    println!("cargo::rerun-if-changed={}", folder.display());
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| fail(&format!("{}: {error}", folder.display())));
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap_or_else(|error| fail(&format!("{}: {error}", folder.display()))).path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    files.sort();
    let mut code = format!("/// Names and texts.\npub(crate) const FILES: [(&str, &str); {}] = [\n", files.len());
    for path in files {
        let name = path.file_stem().expect("it has a name").display();
        writeln!(code, "    (\"{name}\", include_str!({path:?})),").expect("a string grows");
    }
    code += "];\n";
    let out = Path::new(&env::var("OUT_DIR").expect("cargo sets it")).join("tables.rs");
    fs::write(&out, code).unwrap_or_else(|error| panic!("{}: {error}", out.display()));
}

/// One line for whoever builds.
fn fail(message: &str) -> ! {
    println!("cargo::error={message}");
    std::process::exit(1)
}
