//! Import of DiskSim 4.0 parameters: `.parv` (an experiment), `.diskspecs` (a drive) and `.model` (only a drive's
//! mechanics and layout), with the files that they name.
//!
//! Every parameter of a drive is either in the description, with its file and line in [`ImportedDrive::sources`], or in
//! [`ImportedDrive::unmapped`] with the reason. The importer supports layout g1 and the full mechanical model with all
//! six seek types. It implements the seek types that the 4.0 code leaves unfinished (`linear`, `curve`, `hpl`) from
//! their definitions.
//!
//! A `.model` alone becomes a drive that serves one command at a time, first come first served, without buffer,
//! overheads or interface limits.

mod disk;
mod fields;
mod host;
mod layout;
mod lexer;
mod mechanics;
mod parser;
#[cfg(test)]
mod tests;

pub use fields::Unmapped;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::rc::Rc;

use headstack_sim::drive::description::DriveDescription;
use headstack_workload::InputError;

pub use host::{Bus, Controller, Driver, Host};

use fields::Ledger;
use parser::{Block, Program, ReadFile};

/// Maximum file size. The largest files in use, extracted g4 layouts, have 2 MB.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// The result of an import.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// The drives, one per description: the instantiated ones, or all if the file instantiates none.
    pub drives: Vec<ImportedDrive>,
    /// Drives that cannot be imported, with the names of their blocks. The other drives of the file are still imported.
    pub refused: Vec<(String, InputError)>,
    /// The path between host and drives.
    pub host: Host,
    /// Warnings about the imported values, each on one line as `FILE:LINE: ...`.
    pub warnings: Vec<String>,
}

/// An imported drive.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportedDrive {
    /// Name of the drive's block.
    pub name: String,
    /// Names of the block's instances.
    pub instances: Vec<String>,
    /// Description of the drive.
    pub description: DriveDescription,
    /// Source of the value at each key path of the description: `A FILE:LINE` for each contributing parameter, or `I`
    /// with the reason for an inferred value.
    pub sources: BTreeMap<String, String>,
    /// Parameters that have no counterpart in the description.
    pub unmapped: Vec<Unmapped>,
}

/// Imports the drives of a `.parv`, `.diskspecs` or `.model`.
///
/// # Errors
/// If a file cannot be read, is truncated or malformed. If no drive can be imported, returns the first drive's error: a
/// missing parameter, a value that is not allowed, or an unsupported feature (layouts g2 and g4, the simple access time
/// models).
pub fn import(path: &Path) -> Result<Imported, InputError> {
    import_with(path, &mut read_file)
}

/// Like [`import`], but calls `read` to read files.
///
/// # Errors
/// Returns the same errors as [`import`].
pub fn import_with(path: &Path, read: &mut dyn FnMut(&Path) -> io::Result<String>) -> Result<Imported, InputError> {
    let text = read(path).map_err(|error| InputError {
        file: path.display().to_string(),
        line: None,
        key: String::new(),
        message: format!("cannot be read: {error}"),
    })?;
    import_text(path, &text, read)
}

/// Imports from `text`, the content of `file`, which must not refer to other files.
///
/// # Errors
/// Returns the same errors as [`import`].
pub fn parse_str(file: &str, text: &str) -> Result<Imported, InputError> {
    let refuse = &mut |_: &Path| Err(io::Error::other("text input cannot refer to other files"));
    import_text(Path::new(file), text, refuse)
}

fn read_file(path: &Path) -> io::Result<String> {
    headstack_files::note_input(path).map_err(|error| io::Error::other(error.message))?;
    let mut bytes = Vec::new();
    File::open(path)?.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(io::Error::other(format!("larger than {} MiB", FILE_BYTES_MAX >> 20)));
    }
    // Comments may have any encoding; everything else is ASCII.
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn import_text(path: &Path, text: &str, read: &mut ReadFile) -> Result<Imported, InputError> {
    let mut program = parser::parse(path, text, read)?;
    let mut warnings = std::mem::take(&mut program.warnings);
    let host = host::host(&program, &mut warnings)?;
    let (mut drives, mut refused) = (Vec::new(), Vec::new());
    for block in drive_blocks(&program, &mut warnings) {
        let mut ledger = Ledger::default();
        let description = match &*block.module {
            "dm_disk" => disk::bare_drive(&block, "", &mut ledger, read),
            _ => disk::drive(&block, &mut ledger, read),
        };
        let mut description = match description {
            Ok(description) => description,
            Err(error) => {
                refused.push((block.label().to_owned(), error));
                continue;
            }
        };
        host.apply(&program, &block, &mut description, &mut ledger);
        warnings.append(&mut ledger.warnings);
        drives.push(ImportedDrive {
            name: block.label().to_owned(),
            instances: host::instances(&program, &block),
            description,
            sources: ledger.sources,
            unmapped: ledger.unmapped,
        });
    }
    if drives.is_empty() {
        let first = refused.into_iter().next().map(|(_, error)| error);
        return Err(first.unwrap_or_else(|| InputError {
            file: path.display().to_string(),
            line: None,
            key: String::new(),
            message: "no drive description; add a block disksim_disk or dm_disk".to_owned(),
        }));
    }
    Ok(Imported { drives, refused, host, warnings })
}

/// Returns the blocks to import: instantiated drives; if there are none, all drives; if there are none, all models.
fn drive_blocks(program: &Program, warnings: &mut Vec<String>) -> Vec<Rc<Block>> {
    let of_module = |module: &str| -> Vec<Rc<Block>> {
        program.blocks.iter().filter(|block| &*block.module == module).cloned().collect()
    };
    let disks = of_module("disksim_disk");
    if disks.is_empty() {
        return of_module("dm_disk");
    }
    if program.instances.is_empty() {
        return disks;
    }
    let (used, unused): (Vec<_>, Vec<_>) =
        disks.into_iter().partition(|block| !host::instances(program, block).is_empty());
    for block in unused {
        warnings.push(format!("{}: drive `{}` is not instantiated; left out", block.place, block.label()));
    }
    used
}
