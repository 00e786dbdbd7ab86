//! [`StateWords`]: the state words of a tree's members, in memory or in a file that outlives the process.
//!
//! A ledger file has a header of one page, followed by 64-bit words: one per file, one per directory, and one per file
//! for its state on stable storage. A word is stored before an operation begins, marking the member as in use, and
//! after the operation ended. At any instruction, the words are therefore correct or mark the state as unknown.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::AtomicU64;

use twox_hash::XxHash3_64;

use super::place::Place;
use super::shape::Shape;
use crate::LoadError;
use crate::integrity::Mapping;

const MAGIC: u64 = u64::from_le_bytes(*b"hstrees1");
const HEADER_BYTES: u64 = 4096;
const WORD_BYTES: u64 = 8;

/// State words of files, of directories, and of the stable state of files.
#[derive(Debug)]
pub struct StateWords {
    mapping: Mapping,
    at: usize,
    files: usize,
    folders: usize,
    /// The file, kept open so that no other process can use it.
    _file: Option<File>,
}

fn failed(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> LoadError {
    move |source| LoadError::Io { target: path.display().to_string(), action, source }
}

fn refused(path: &Path, message: &str) -> LoadError {
    LoadError::Target { target: path.display().to_string(), message: message.to_owned() }
}

/// Returns the header of a ledger, which identifies its place and shape.
fn header(place: &Place, shape: &Shape) -> Vec<u8> {
    let mut words = vec![MAGIC, place.id(), shape.files(), shape.folders(), place.hash()];
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    words.push(XxHash3_64::oneshot(&bytes));
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

impl StateWords {
    /// Creates words in memory, all 0.
    ///
    /// # Errors
    /// Returns an error if there is not enough memory.
    pub fn in_memory(shape: &Shape) -> io::Result<StateWords> {
        let (files, folders) = (shape.files() as usize, shape.folders() as usize);
        let bytes = (2 * shape.files() + shape.folders()).max(1) * WORD_BYTES;
        Ok(StateWords { mapping: Mapping::new(None, bytes)?, at: 0, files, folders, _file: None })
    }

    /// Opens words in a file: a new file with all words 0, or the file that an earlier run of the same tree left. Also
    /// returns whether the file existed.
    ///
    /// # Errors
    /// Returns an error if the file is not a ledger, belongs to another tree, or is in use by another process, or if
    /// the file system is full.
    pub fn in_file(path: &Path, place: &Place, shape: &Shape) -> Result<(StateWords, bool), LoadError> {
        let mut options = OpenOptions::new();
        let (file, is_old) = match options.read(true).write(true).create_new(true).open(path) {
            Ok(file) => (file, false),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                (OpenOptions::new().read(true).write(true).open(path).map_err(failed(path, "open"))?, true)
            }
            Err(error) => return Err(failed(path, "create")(error)),
        };
        if file.try_lock().is_err() {
            return Err(refused(path, "is in use by another headstack process"));
        }
        let (files, folders) = (shape.files() as usize, shape.folders() as usize);
        let bytes = HEADER_BYTES + (2 * shape.files() + shape.folders()) * WORD_BYTES;
        let expected = header(place, shape);
        if is_old {
            let mut found = vec![0; expected.len()];
            let is_read = file.read_exact_at(&mut found, 0).is_ok();
            if !is_read || found[..8] != expected[..8] {
                return Err(refused(path, "is not a ledger of a tree of files"));
            }
            if found != expected || file.metadata().map_err(failed(path, "stat"))?.len() != bytes {
                return Err(refused(path, "is the ledger of another tree; remove it, or name another ledger"));
            }
        } else {
            // Allocates the whole file, so that a full file system causes an error now and no SIGBUS later. SAFETY: the
            // descriptor is open.
            let code = unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, bytes as libc::off_t) };
            if code != 0 {
                return Err(failed(path, "reserve space")(io::Error::from_raw_os_error(code)));
            }
            file.write_all_at(&expected, 0).map_err(failed(path, "write"))?;
        }
        let mapping = Mapping::new(Some(&file), bytes).map_err(failed(path, "map"))?;
        Ok((StateWords { mapping, at: HEADER_BYTES as usize, files, folders, _file: Some(file) }, is_old))
    }

    /// Returns the word of a file.
    pub fn file(&self, file: u64) -> &AtomicU64 {
        assert!((file as usize) < self.files);
        self.mapping.word(self.at, file as usize)
    }

    /// Returns the word of a directory.
    pub fn folder(&self, folder: u64) -> &AtomicU64 {
        assert!((folder as usize) < self.folders);
        self.mapping.word(self.at, self.files + folder as usize)
    }

    /// Returns the word of a file's state on stable storage.
    pub fn durable(&self, file: u64) -> &AtomicU64 {
        assert!((file as usize) < self.files);
        self.mapping.word(self.at, self.files + self.folders + file as usize)
    }
}
