//! The catalogue: drives, arrays, scenarios and workloads that ship with headstack, one TOML file each, and the
//! derivation of complete descriptions from the few figures of a data sheet. See docs/design/catalogue.md.

#![deny(clippy::wildcard_enum_match_arm)] // A new variant does not compile until every match handles it.

pub mod array;
mod blueprint;
pub mod complete;
pub mod constants;
mod demand;
pub mod family;
pub mod faults;
pub mod file;
mod frozen;
pub mod hosts;
pub mod options;
mod points;
pub mod resolve;
pub mod ssd;
pub mod stack;
pub mod stated;
mod study;
pub mod twin;
pub mod volume;

use std::path::Path;

use headstack_result::content_hash;
use headstack_sim::SystemDescription;
use headstack_sim::device::DeviceDescription;
use headstack_workload::{Document, InputError};
use serde::Deserialize;

pub use array::{Changes, ResolvedArray};
pub use blueprint::{Blueprint, Described, Drafter, note_of_dropped};
pub use complete::description_to_toml;
pub use demand::{load_demand, load_scenario, load_workload};
pub use faults::{faults_of_text, faults_to_toml, load_faults, load_faults_of_run, parse_faults, read_faults};
pub use hosts::HostProfile;
pub use points::{DescribedPoints, Point, Points, Refused};
pub use resolve::{Derived, Resolved, resolve};
pub use ssd::ResolvedSsd;
pub use stack::ResolvedStack;
pub use study::{Fit, Study};
pub use volume::ResolvedVolume;

include!(concat!(env!("OUT_DIR"), "/entries.rs"));

/// A file of the catalogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// File name without its extension, such as `cheetah-x15-36lp`.
    pub id: &'static str,
    /// File name with its extension.
    pub file_name: &'static str,
    /// Contents of the file.
    pub text: &'static str,
}

/// Returns all drives, sorted by id.
pub fn drives() -> &'static [Entry] {
    DRIVES
}

/// Returns the disk drives, sorted by id.
pub fn disks() -> impl Iterator<Item = &'static Entry> {
    DRIVES.iter().filter(|entry| !entry.is_ssd())
}

/// Returns the arrays, sorted by id.
pub fn arrays() -> &'static [Entry] {
    ARRAYS
}

/// Returns the cloud volumes, sorted by id.
pub fn volumes() -> &'static [Entry] {
    VOLUMES
}

/// Returns the stacks, sorted by id.
pub fn stacks() -> &'static [Entry] {
    STACKS
}

/// Returns the local disks of cloud instances, family by family.
pub fn instances() -> &'static [Entry] {
    volume::instances::entries()
}

/// Returns the scenarios, sorted by id.
pub fn scenarios() -> &'static [Entry] {
    SCENARIOS
}

/// Returns the workloads, sorted by id.
pub fn workloads() -> &'static [Entry] {
    WORKLOADS
}

/// Returns a hash of all files of the catalogue and their names, which identifies the catalogue.
pub fn hash() -> String {
    let folders = [
        ("arrays", ARRAYS),
        ("drives", DRIVES),
        ("scenarios", SCENARIOS),
        ("stacks", STACKS),
        ("volumes", VOLUMES),
        ("workloads", WORKLOADS),
    ];
    let files = folders.into_iter().flat_map(|(folder, entries)| entries.iter().map(move |entry| (folder, entry)));
    let text: String =
        files.map(|(folder, Entry { file_name, text, .. })| format!("{folder}/{file_name}\0{text}\0")).collect();
    content_hash(format!("{text}instances/rates.toml\0{}\0", volume::instances::TEXT).as_bytes())
}

impl Entry {
    /// Whether the file describes an SSD.
    pub fn is_ssd(&self) -> bool {
        self.document("drives").is_ok_and(|document| ssd::is_ssd(&document))
    }

    /// Returns the name in the file: for a workload, the name of its access specification. Without a name, returns the
    /// id.
    pub fn name(&self) -> String {
        let named = Document::parse(self.file_name, self.text).and_then(|document| document.read());
        let Named { name, specification } = named.unwrap_or(Named { name: None, specification: None });
        specification.or(name).unwrap_or_else(|| self.id.to_owned())
    }

    /// Parses the file, which is in `folder` of the catalogue.
    fn document(&self, folder: &str) -> Result<Document, InputError> {
        Document::parse(&format!("catalogue/{folder}/{}", self.file_name), self.text)
    }
}

/// A complete drive of any kind.
#[derive(Clone, Debug, PartialEq)]
pub enum ResolvedDevice {
    /// A disk drive.
    Disk(Box<Resolved>),
    /// A solid-state drive.
    Ssd(Box<ResolvedSsd>),
    /// A cloud volume.
    Volume(Box<ResolvedVolume>),
}

impl ResolvedDevice {
    /// Returns the description of the drive.
    pub fn description(self) -> DeviceDescription {
        match self {
            ResolvedDevice::Disk(drive) => DeviceDescription::Disk(drive.description),
            ResolvedDevice::Ssd(ssd) => DeviceDescription::Ssd(ssd.description),
            ResolvedDevice::Volume(volume) => DeviceDescription::Volume(volume.description),
        }
    }
}

/// A complete drive or array.
#[derive(Clone, Debug, PartialEq)]
pub enum ResolvedSystem {
    /// A drive.
    Drive(ResolvedDevice),
    /// An array.
    Array(Box<ResolvedArray>),
    /// A stack.
    Stack(Box<ResolvedStack>),
}

impl ResolvedSystem {
    /// Returns the description of the system.
    pub fn description(self) -> SystemDescription {
        match self {
            ResolvedSystem::Drive(drive) => SystemDescription::Drive(drive.description()),
            ResolvedSystem::Array(array) => SystemDescription::Array(array.description),
            ResolvedSystem::Stack(stack) => stack.description,
        }
    }
}

/// Loads and completes a drive: an id or exact name in the catalogue, or a path that ends in `.toml`.
///
/// # Errors
/// If the drive or file does not exist or cannot be completed.
pub fn load_device(name_or_path: &str) -> Result<ResolvedDevice, InputError> {
    let document = match find(name_or_path, &device_folders())? {
        Some(document) => document,
        None => return Err(unknown("drive", name_or_path, &device_folders().map(|(_, entries)| entries))),
    };
    if array::is_array(&document) {
        return Err(whole(document.file(), "this is an array; a drive is required"));
    }
    resolve_device(&document)
}

/// Loads and completes a disk drive by a name as in [`load_device`].
///
/// # Errors
/// Returns the same errors as [`load_device`], and an error if the drive is not a disk.
pub fn load_drive(name_or_path: &str) -> Result<Resolved, InputError> {
    match load_device(name_or_path)? {
        ResolvedDevice::Disk(drive) => Ok(*drive),
        ResolvedDevice::Ssd(_) => Err(whole(name_or_path, "this is a solid-state drive; a disk is required")),
        ResolvedDevice::Volume(_) => Err(whole(name_or_path, "this is a volume; a disk is required")),
    }
}

fn resolve_device(document: &Document) -> Result<ResolvedDevice, InputError> {
    Ok(if ssd::is_ssd(document) {
        ResolvedDevice::Ssd(Box::new(ssd::resolve(document)?))
    } else if volume::is_volume(document) {
        ResolvedDevice::Volume(Box::new(volume::resolve(document)?))
    } else {
        ResolvedDevice::Disk(Box::new(resolve(document)?))
    })
}

/// Loads and completes an array by a name as in [`load_device`].
///
/// # Errors
/// If the array or file does not exist, cannot be completed, or does not support the changes.
pub fn load_array(name_or_path: &str, changes: &Changes) -> Result<ResolvedArray, InputError> {
    let document = match find(name_or_path, &[("arrays", ARRAYS)])? {
        Some(document) => document,
        None => return Err(unknown("array", name_or_path, &[ARRAYS])),
    };
    if !array::is_array(&document) {
        return Err(whole(document.file(), "this is not an array: it has no [[drives]] and no base"));
    }
    array::resolve(&document, changes)
}

/// Loads and completes a drive, array or stack: an id or exact name in the catalogue, or a path that ends in `.toml`.
///
/// # Errors
/// Returns the same errors as [`load_drive`] and [`load_array`], and an error for changes to a drive.
pub fn load_system(name_or_path: &str, changes: &Changes) -> Result<ResolvedSystem, InputError> {
    let document = match find(name_or_path, &system_folders())? {
        Some(document) => document,
        None => {
            return Err(unknown("drive, array or stack", name_or_path, &system_folders().map(|(_, entries)| entries)));
        }
    };
    if stack::is_stack(&document) {
        if let Some(key) = changes.first() {
            return Err(key_error(key, format!("{name_or_path} is a stack; only arrays have this option")));
        }
        let load = |name: &str| {
            let name = if name.ends_with(".toml") { beside(&document, name) } else { name.to_owned() };
            load_system(&name, &Changes::default()).map(stack::Below::from)
        };
        return Ok(ResolvedSystem::Stack(Box::new(stack::resolve(&document, &load)?)));
    }
    if array::is_array(&document) {
        return Ok(ResolvedSystem::Array(Box::new(array::resolve(&document, changes)?)));
    }
    match changes.first() {
        None => Ok(ResolvedSystem::Drive(resolve_device(&document)?)),
        Some(key) => Err(key_error(key, format!("{name_or_path} is a single drive; only arrays have this option"))),
    }
}

/// Returns the entries of drives, each with its folder.
fn device_folders() -> [(&'static str, &'static [Entry]); 3] {
    [("drives", DRIVES), ("volumes", VOLUMES), ("instances", instances())]
}

/// Returns the entries of all systems, each with its folder.
fn system_folders() -> [(&'static str, &'static [Entry]); 5] {
    [("drives", DRIVES), ("arrays", ARRAYS), ("volumes", VOLUMES), ("instances", instances()), ("stacks", STACKS)]
}

/// Returns the file at a path, or the catalogue's entry with this id or exact name; `None` if there is none.
fn find(name_or_path: &str, folders: &[(&str, &'static [Entry])]) -> Result<Option<Document>, InputError> {
    if name_or_path.ends_with(".toml") {
        return read_document(name_or_path).map(Some);
    }
    let entries = || folders.iter().flat_map(|&(folder, entries)| entries.iter().map(move |entry| (folder, entry)));
    if let Some((folder, entry)) = entries().find(|(_, entry)| entry.id == name_or_path) {
        return entry.document(folder).map(Some);
    }
    let name_line = format!("\"{name_or_path}\"");
    for (folder, entry) in entries().filter(|(_, entry)| entry.text.contains(&name_line)) {
        let document = entry.document(folder)?;
        let named: Named = document.read()?;
        if [named.name, named.specification].iter().any(|name| name.as_deref() == Some(name_or_path)) {
            return Ok(Some(document));
        }
    }
    Ok(None)
}

/// The names in a file.
#[derive(Deserialize)]
struct Named {
    name: Option<String>,
    /// Name of the workload's access specification, if it differs.
    specification: Option<String>,
}

fn read_document(path: &str) -> Result<Document, InputError> {
    note_input(path)?;
    let text = std::fs::read_to_string(path).map_err(|error| whole(path, &format!("cannot be read: {error}")))?;
    Document::parse(path, &text)
}

/// Protects a description that a command reads from being overwritten by the command's outputs.
#[cfg(not(target_family = "wasm"))]
pub(crate) fn note_input(path: &str) -> Result<(), InputError> {
    headstack_files::note_input(Path::new(path)).map_err(|error| whole(path, &error.message))
}

/// Does nothing, because there are no output files in a browser.
#[cfg(target_family = "wasm")]
#[allow(clippy::unnecessary_wraps)] // As elsewhere.
pub(crate) fn note_input(_path: &str) -> Result<(), InputError> {
    Ok(())
}

/// Resolves `path` relative to the folder of a file.
fn beside(document: &Document, path: &str) -> String {
    let folder = Path::new(document.file()).parent().unwrap_or(Path::new(""));
    folder.join(path).to_string_lossy().into_owned()
}

/// Returns an error about a key that is in no file.
fn key_error(key: &str, message: String) -> InputError {
    InputError { file: String::new(), line: None, key: key.to_owned(), message }
}

/// Returns an error about a whole file.
fn whole(file: &str, message: &str) -> InputError {
    InputError { file: file.to_owned(), line: None, key: String::new(), message: message.to_owned() }
}

fn unknown(what: &str, name: &str, catalogues: &[&'static [Entry]]) -> InputError {
    let ids: Vec<&str> = catalogues.iter().flat_map(|entries| entries.iter().map(|entry| entry.id)).collect();
    let closest = closest(name, &ids).join(", ");
    let message =
        format!("no {what} {name:?} in the catalogue; closest: {closest}; the path of a file must end in .toml");
    whole("", &message)
}

/// Returns the three of `names` that share most pairs of letters with `name` (Dice's coefficient). Drive names consist
/// of parts in any order, which an edit distance does not detect. Ties are resolved by the number of letters in the
/// same place, because short names have few pairs.
fn closest<'n>(name: &str, names: &[&'n str]) -> Vec<&'n str> {
    let pairs = |text: &str| -> Vec<[char; 2]> {
        let letters: Vec<char> = text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
        letters.windows(2).map(|pair| [pair[0], pair[1]]).collect()
    };
    let wanted = pairs(name);
    let mut ranked: Vec<(f64, usize, &str)> = names
        .iter()
        .map(|&candidate| {
            let found = pairs(candidate);
            let shared = found.iter().filter(|pair| wanted.contains(pair)).count();
            let in_place = name.chars().zip(candidate.chars()).filter(|(a, b)| a == b).count();
            (2.0 * shared as f64 / (wanted.len() + found.len()).max(1) as f64, in_place, candidate)
        })
        .collect();
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)));
    ranked.into_iter().take(3).map(|(_, _, candidate)| candidate).collect()
}
