//! Arrays: the TOML form, the link standards, and the derivation of a complete description from both.

pub mod controller;
pub mod file;
pub mod groups;
pub mod level;
mod links;
mod resolve;
mod resolver;
pub mod standards;

use headstack_workload::{Document, InputError};

use crate::resolve::check_source;
use file::ArrayFile;

pub use resolve::{Changes, ResolvedArray, resolve};
pub(crate) use resolve::{changed, resolve_with};

/// Maximum length of a chain of base files; a longer chain is assumed to be a cycle.
const BASES_MAX: usize = 8;

/// An array file and its base files.
#[derive(Debug)]
pub(crate) struct Layers {
    /// Documents of the file, its base, the base's base, and so on.
    documents: Vec<Document>,
}

impl Layers {
    /// Returns an error about the key at `key_path`, in the file that states the key's table.
    pub(crate) fn error(&self, key_path: &str, message: impl Into<String>) -> InputError {
        self.stating(key_path).error(key_path, message)
    }

    /// Returns the file that states the top-level key of a path, or the first file if none does.
    fn stating(&self, key_path: &str) -> &Document {
        let top = key_path.split(['.', '[']).next().unwrap_or_default();
        self.documents.iter().find(|document| document.states(top)).unwrap_or(&self.documents[0])
    }
}

/// Whether a file describes an array; otherwise it is treated as a drive.
pub fn is_array(document: &Document) -> bool {
    ["drives", "links", "groups", "luns", "base"].iter().any(|key| document.states(key))
}

/// Reads an array file and its base files.
fn read_layers(document: &Document) -> Result<(Layers, ArrayFile), InputError> {
    let mut file: ArrayFile = read(document)?;
    let mut layers = Layers { documents: vec![document.clone()] };
    while let Some(base) = file.base.take() {
        let last = layers.documents.last().expect("the list contains the file itself");
        if layers.documents.len() == BASES_MAX {
            return Err(last.error("base", format!("too many levels of base files; the maximum is {BASES_MAX}")));
        }
        let below = base_document(last, &base)?;
        let below_file = read(&below)?;
        layers.documents.push(below);
        file = ArrayFile { base: below_file.base.clone(), ..file.over(below_file) };
    }
    Ok((layers, file))
}

/// Returns an array file merged with its base files into a self-contained file. Its paths are relative to the working
/// directory.
pub(crate) fn flattened(document: &Document) -> Result<ArrayFile, InputError> {
    let (layers, mut file) = read_layers(document)?;
    for table in file.drives.iter_mut().flatten().filter(|table| table.drive.ends_with(".toml")) {
        table.drive = crate::beside(layers.stating("drives"), &table.drive);
    }
    Ok(file)
}

fn read(document: &Document) -> Result<ArrayFile, InputError> {
    let file: ArrayFile = document.read()?;
    for (key, source) in &file.sources {
        check_source(document, key, source)?;
    }
    Ok(file)
}

fn base_document(document: &Document, base: &str) -> Result<Document, InputError> {
    if base.ends_with(".toml") {
        return crate::read_document(&crate::beside(document, base))
            .map_err(|error| document.error("base", error.to_string()));
    }
    match crate::arrays().iter().find(|entry| entry.id == base) {
        Some(entry) => entry.document("arrays"),
        None => {
            let ids: Vec<&str> = crate::arrays().iter().map(|entry| entry.id).collect();
            let closest = crate::closest(base, &ids).join(", ");
            Err(document.error("base", format!("no array {base:?} in the catalogue; closest: {closest}")))
        }
    }
}
