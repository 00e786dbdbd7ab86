//! [`Files`] of the running commands: checks that no two outputs collide and no output replaces an input.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::FileError;
use crate::place::{Identity, Place, stdout};

#[derive(Debug, Default)]
pub(crate) struct Files {
    pub(crate) written: Vec<Output>,
    pub(crate) read: Vec<Input>,
    /// Folders whose files are all inputs: each as given and with links resolved.
    pub(crate) searched: Vec<(PathBuf, PathBuf)>,
    pub(crate) is_closed: bool,
    /// Whether the files belong to a reader instead of a command. Inputs noted by other readers are not added to them.
    pub(crate) is_of_reader: bool,
}

/// A file that is read or measured.
#[derive(Debug)]
pub(crate) struct Input {
    /// Path as given.
    pub(crate) path: PathBuf,
    pub(crate) identity: Identity,
    /// Whether the path leads to this file itself, not to a device that the file backs.
    pub(crate) is_direct: bool,
}

impl Input {
    /// Whether the file has this identity and still exists. A new file may reuse the inode of a removed one.
    fn is(&self, identity: &Identity) -> bool {
        let is_there = || {
            let found = fs::metadata(&self.path).map(|metadata| Identity::there(metadata.dev(), metadata.ino()));
            found.is_ok_and(|found| found == self.identity)
        };
        let is_to_be = matches!(self.identity, Identity::ToBe { .. });
        self.identity == *identity && (is_to_be || !self.is_direct || is_there())
    }
}

#[derive(Debug)]
pub(crate) struct Output {
    /// Path as given.
    pub(crate) path: PathBuf,
    pub(crate) identity: Identity,
    pub(crate) written: Written,
    /// Path of the existing file, with links resolved.
    pub(crate) replaces: Option<PathBuf>,
}

/// How an output is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// A new file replaces the old one.
    Whole,
    /// The file is read and updated in place; its writer makes its own checks.
    Kept,
    /// A folder that receives files.
    Folder,
}

/// Files of the commands that run in this process, usually one command.
pub(crate) static OPEN: Mutex<Vec<Weak<Mutex<Files>>>> = Mutex::new(Vec::new());

impl Files {
    /// Returns the input with this identity.
    pub(crate) fn input(&self, identity: &Identity) -> Option<&Input> {
        self.read.iter().find(|input| input.is(identity))
    }

    pub(crate) fn add(&mut self, path: &Path, place: &Place, written: Written) -> Result<(), FileError> {
        let Some(identity) = place.identity().filter(|identity| *identity != Identity::Device) else { return Ok(()) };
        if let Some(input) = self.input(&identity) {
            return Err(measured(path, &input.path));
        }
        if matches!(place, Place::File { .. }) && stdout().as_ref() == Some(&identity) {
            return Err(FileError::refused(
                path,
                "is already the destination of stdout; each output needs its own file",
            ));
        }
        if let Some(other) = self.written.iter().find(|other| other.identity == identity) {
            let message = match other.path == path {
                true => "is named twice; each output needs its own file".to_owned(),
                false => format!("is the same file as {}; each output needs its own file", other.path.display()),
            };
            return Err(FileError::refused(path, message));
        }
        let replaces = match (place, written) {
            (Place::File { folder, name, before: Some(_) }, Written::Whole) => Some(folder.join(name)),
            _ => None,
        };
        let is_above = |(_, folder): &&(PathBuf, PathBuf)| replaces.as_ref().is_some_and(|at| at.starts_with(folder));
        if let Some((folder, _)) = self.searched.iter().find(is_above) {
            return Err(below(path, folder));
        }
        self.written.push(Output { path: path.to_owned(), identity, written, replaces });
        Ok(())
    }

    /// Adds `path` as an input. A file updated in place is skipped, because its own writer reads it.
    pub(crate) fn note(&mut self, path: &Path, identity: &Identity) -> Result<(), FileError> {
        match self.written.iter().find(|output| output.identity == *identity) {
            Some(Output { written: Written::Kept | Written::Folder, .. }) => Ok(()),
            Some(Output { written: Written::Whole, path: output, .. }) => Err(measured(output, path)),
            None => {
                if self.input(identity).is_none() {
                    self.read.push(Input { path: path.to_owned(), identity: identity.clone(), is_direct: true });
                }
                Ok(())
            }
        }
    }
}

/// Registers `path` as an input of the running commands, so that no output replaces it; for example a file in a folder
/// or one that another file names. Does nothing if no command runs. A dangling link is left to the reader.
///
/// # Errors
/// If the path is an output.
pub fn note_input(path: &Path) -> Result<(), FileError> {
    let Ok(metadata) = fs::metadata(path) else { return Ok(()) };
    if !metadata.is_file() {
        return Ok(());
    }
    let identity = Identity::there(metadata.dev(), metadata.ino());
    open_files().iter().try_for_each(|files| {
        let mut files = files.lock().unwrap_or_else(PoisonError::into_inner);
        if files.is_closed || files.is_of_reader { Ok(()) } else { files.note(path, &identity) }
    })
}

/// Returns an error if a running command reads or measures the file.
pub(crate) fn check_no_input(path: &Path, before: &Metadata) -> Result<(), FileError> {
    let identity = Identity::there(before.dev(), before.ino());
    open_files().iter().try_for_each(|files| {
        let files = files.lock().unwrap_or_else(PoisonError::into_inner);
        match files.input(&identity) {
            Some(input) if !files.is_closed => Err(measured(path, &input.path)),
            Some(_) | None => Ok(()),
        }
    })
}

fn open_files() -> Vec<Arc<Mutex<Files>>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner).iter().filter_map(Weak::upgrade).collect()
}

pub(crate) fn measured(output: &Path, target: &Path) -> FileError {
    let message = match output == target {
        true => "is an input or target of this command; an output would destroy it".to_owned(),
        false => format!("leads to {}, an input or target of this command", target.display()),
    };
    FileError::refused(output, message)
}

pub(crate) fn below(output: &Path, folder: &Path) -> FileError {
    let message = format!("is in {}, whose files this command reads; write it elsewhere", folder.display());
    FileError::refused(output, message)
}
