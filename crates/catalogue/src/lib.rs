//! The catalogue: drives, scenarios and workloads that ship with headstack, one TOML file each, and what makes a complete drive
//! description of the few figures of a data sheet.

pub mod complete;
pub mod constants;
pub mod disksim;
pub mod file;
pub mod resolve;

use headstack_workload::{Document, InputError};

pub use complete::description_to_toml;
pub use resolve::{Derived, Resolved, resolve};

include!(concat!(env!("OUT_DIR"), "/entries.rs"));

/// A file of the catalogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The file's name without its ending, such as `cheetah-x15-36lp`.
    pub id: &'static str,
    /// The file's name.
    pub file_name: &'static str,
    /// Its text.
    pub text: &'static str,
}

/// The drives, by id.
pub fn drives() -> &'static [Entry] {
    DRIVES
}

/// The scenarios, by id.
pub fn scenarios() -> &'static [Entry] {
    SCENARIOS
}

/// The workloads, by id.
pub fn workloads() -> &'static [Entry] {
    WORKLOADS
}

/// Completes a drive of the catalogue, named by id or by its exact name, or one from a file of the user's, named by a
/// path that ends in `.toml`.
///
/// # Errors
/// When there is no such drive or file, or it cannot be completed.
pub fn load_drive(name_or_path: &str) -> Result<Resolved, InputError> {
    if name_or_path.ends_with(".toml") {
        let text = std::fs::read_to_string(name_or_path).map_err(|error| InputError {
            file: name_or_path.to_owned(),
            line: None,
            key: String::new(),
            message: format!("cannot be read: {error}"),
        })?;
        return resolve(&Document::parse(name_or_path, &text)?);
    }
    if let Some(entry) = DRIVES.iter().find(|entry| entry.id == name_or_path) {
        return resolve_entry(entry);
    }
    let name_line = format!("\"{name_or_path}\"");
    for entry in DRIVES.iter().filter(|entry| entry.text.contains(&name_line)) {
        let resolved = resolve_entry(entry)?;
        if resolved.description.name == name_or_path {
            return Ok(resolved);
        }
    }
    Err(InputError {
        file: String::new(),
        line: None,
        key: String::new(),
        message: format!(
            "no drive {name_or_path:?} in the catalogue; closest: {}; a file is named by a path that ends in .toml",
            closest(name_or_path).join(", ")
        ),
    })
}

fn resolve_entry(entry: &Entry) -> Result<Resolved, InputError> {
    resolve(&Document::parse(&format!("catalogue/drives/{}", entry.file_name), entry.text)?)
}

/// The three ids that share most pairs of letters with `name` (Dice's coefficient): names of drives are made of parts
/// in any order, which an edit distance does not see.
fn closest(name: &str) -> Vec<&'static str> {
    let pairs = |text: &str| -> Vec<[char; 2]> {
        let letters: Vec<char> = text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
        letters.windows(2).map(|pair| [pair[0], pair[1]]).collect()
    };
    let wanted = pairs(name);
    let mut ids: Vec<(f64, &str)> = DRIVES
        .iter()
        .map(|entry| {
            let found = pairs(entry.id);
            let shared = found.iter().filter(|pair| wanted.contains(pair)).count();
            (2.0 * shared as f64 / (wanted.len() + found.len()).max(1) as f64, entry.id)
        })
        .collect();
    ids.sort_by(|a, b| b.0.total_cmp(&a.0));
    ids.into_iter().take(3).map(|(_, id)| id).collect()
}
