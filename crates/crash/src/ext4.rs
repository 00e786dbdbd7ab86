//! Reads files of an ext4 file system from its image without mounting it. Reads take the file system's journal into
//! account without replaying it.

use std::cell::Cell;
use std::error::Error;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::rc::Rc;

use ext4_view::{Ext4, Ext4Error, Ext4Read};

use crate::CrashError;

/// Outcome of reading from a file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadOutcome<T> {
    /// The data was read.
    Read(T),
    /// The file system is damaged, or the image has no ext4 file system; the text is the reason.
    Damaged(String),
    /// The file system has a feature that this module does not support, such as an escaped block in its journal.
    Unknown(String),
}

/// Reason why data cannot be read.
enum Failure {
    /// An error of the file with this name, or of the whole file system if the name is empty.
    OfSystem(String, Ext4Error),
    OfCopy(io::Error),
}

/// Reads files of the file system in an image, in the order of `paths`; a missing file yields `None`.
///
/// # Errors
/// Returns an error if the image cannot be read.
pub fn read_files(image: &Path, paths: &[String]) -> Result<ReadOutcome<Vec<Option<Vec<u8>>>>, CrashError> {
    let read = |system: &Ext4, path: &String| match system.read(path.as_str()) {
        Ok(data) => Ok(Some(data)),
        Err(Ext4Error::NotFound) => Ok(None),
        Err(error) => Err(Failure::OfSystem(path.clone(), error)),
    };
    classify(image, image, |system| paths.iter().map(|path| read(system, path)).collect())
}

/// Copies the files and folders of `folder` in the file system of an image to `to`, which is created. Links and special
/// files are omitted. Returns whether the folder exists.
///
/// # Errors
/// Returns an error if the image cannot be read, or the copy cannot be written.
pub fn copy_folder(image: &Path, folder: &str, to: &Path) -> Result<ReadOutcome<bool>, CrashError> {
    classify(image, to, |system| match system.metadata(folder) {
        Ok(metadata) if metadata.is_dir() => copied(system, folder, to).map(|()| true),
        Ok(_) | Err(Ext4Error::NotFound) => Ok(false),
        Err(error) => Err(Failure::OfSystem(folder.to_owned(), error)),
    })
}

fn copied(system: &Ext4, folder: &str, to: &Path) -> Result<(), Failure> {
    std::fs::create_dir(to).map_err(Failure::OfCopy)?;
    let failed = |error| Failure::OfSystem(folder.to_owned(), error);
    for entry in system.read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        // Skip names that are not UTF-8, since they cannot be requested.
        let Ok(name) = name.as_str() else { continue };
        if matches!(name, "." | "..") {
            continue;
        }
        let (from, to) = (format!("{folder}/{name}"), to.join(name));
        let kind = entry.file_type().map_err(failed)?;
        if kind.is_dir() {
            copied(system, &from, &to)?;
        } else if kind.is_regular_file() {
            copied_file(system, &from, &to)?;
        }
    }
    Ok(())
}

fn copied_file(system: &Ext4, from: &str, to: &Path) -> Result<(), Failure> {
    let failed = |error| Failure::OfSystem(from.to_owned(), error);
    let mut file = system.open(from).map_err(failed)?;
    let mut copy = File::create(to).map_err(Failure::OfCopy)?;
    let mut part = vec![0; PART_BYTES];
    loop {
        match file.read_bytes(&mut part).map_err(failed)? {
            0 => return Ok(()),
            length => copy.write_all(&part[..length]).map_err(Failure::OfCopy)?,
        }
    }
}

/// Number of bytes copied at a time.
const PART_BYTES: usize = 256 << 10;

/// Classifies the result of accessing the file system in an image.
fn classify<T>(
    image: &Path,
    to: &Path,
    look: impl FnOnce(&Ext4) -> Result<T, Failure>,
) -> Result<ReadOutcome<T>, CrashError> {
    let file = File::open(image).map_err(CrashError::io(image))?;
    let saw_unwritten = Rc::new(Cell::new(false));
    let reader = Watching { file, saw_unwritten: Rc::clone(&saw_unwritten) };
    let loaded = Ext4::load(Box::new(reader)).map_err(|error| Failure::OfSystem(String::new(), error));
    let looked = loaded.and_then(|system| look(&system));
    if saw_unwritten.get() {
        return Ok(ReadOutcome::Unknown("an extent that was allocated but never written".to_owned()));
    }
    match looked {
        Ok(found) => Ok(ReadOutcome::Read(found)),
        Err(Failure::OfSystem(_, Ext4Error::Incompatible(why))) => Ok(ReadOutcome::Unknown(why.to_string())),
        Err(Failure::OfSystem(_, Ext4Error::Io(error))) => Err(CrashError::of(image, error.to_string())),
        Err(Failure::OfSystem(path, error)) if path.is_empty() => Ok(ReadOutcome::Damaged(error.to_string())),
        Err(Failure::OfSystem(path, error)) => Ok(ReadOutcome::Damaged(format!("{path}: {error}"))),
        Err(Failure::OfCopy(error)) => Err(CrashError::io(to)(error)),
    }
}

/// Reads an image and watches for extents that were allocated but never written. They read as zeros, but the crate
/// ext4-view (1.0) ignores this and returns the previous contents of their blocks.
struct Watching {
    file: File,
    saw_unwritten: Rc<Cell<bool>>,
}

impl Ext4Read for Watching {
    fn read(&mut self, start_byte: u64, bytes: &mut [u8]) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.file.read_exact_at(bytes, start_byte)?;
        if has_unwritten(bytes) {
            self.saw_unwritten.set(true);
        }
        Ok(())
    }
}

/// Magic number of an extent tree node (`EXT4_EXT_MAGIC`), which has a header and entries of 12 bytes each.
const NODE_MAGIC: u16 = 0xf30a;
const ENTRY_BYTES: usize = 12;
/// Maximum length of a written extent; larger values mark extents that were never written (`EXT_INIT_MAX_LEN`).
const WRITTEN_BLOCKS_MAX: u16 = 32_768;

/// Whether a leaf of an extent tree in these blocks has an unwritten extent. Data that only looks like a leaf counts
/// too: the file system is then read by the programs of e2fsprogs, which is slower but correct.
fn has_unwritten(bytes: &[u8]) -> bool {
    let number = |at: usize| bytes.get(at..at + 2).map_or(0, |two| u16::from_le_bytes([two[0], two[1]]));
    let leaf = |at: &usize| number(*at) == NODE_MAGIC && number(at + 6) == 0 && number(at + 2) <= number(at + 4);
    let mut leaves = (0..bytes.len()).step_by(4).filter(leaf);
    leaves.any(|at| {
        (1..=usize::from(number(at + 2))).any(|entry| number(at + entry * ENTRY_BYTES + 4) > WRITTEN_BLOCKS_MAX)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a node of an extent tree: its depth, and the lengths of its entries, of which `most` fit.
    fn node(depth: u16, most: u16, lengths: &[u16]) -> Vec<u8> {
        let header = [NODE_MAGIC, lengths.len() as u16, most, depth, 0, 0];
        let entries = lengths.iter().flat_map(|&length| [7, 0, length, 0, 9, 0]);
        header.into_iter().chain(entries).flat_map(u16::to_le_bytes).collect()
    }

    #[test]
    fn extents_that_were_never_written_are_found_in_leaves() {
        let blocks = |node: &[u8]| [&[0; 1024][..], node, &[0; 512][..]].concat();
        let is_unwritten = |depth, most, lengths: &[u16]| has_unwritten(&blocks(&node(depth, most, lengths)));
        assert!(!is_unwritten(0, 4, &[1, 32_768]), "the longest extent that was written");
        assert!(is_unwritten(0, 4, &[1, 32_769]) && is_unwritten(0, 4, &[32_769, 1]));
        assert!(!is_unwritten(1, 4, &[32_769]), "an index has no lengths");
        assert!(!is_unwritten(0, 1, &[1, 32_769]), "no node has more entries than there is room for");
        assert!(is_unwritten(0, 2, &[1, 32_769]));
        assert!(!is_unwritten(0, 4, &[]) && !has_unwritten(&[]));
        // Entries beyond the end of the bytes are none.
        let cut = node(0, 4, &[1, 40_000]);
        assert!(!has_unwritten(&cut[..cut.len() - 8]));
        // Nodes begin at multiples of four bytes.
        assert!(has_unwritten(&[&[0; 4][..], &cut].concat()) && !has_unwritten(&[&[0; 2][..], &cut].concat()));
    }
}
