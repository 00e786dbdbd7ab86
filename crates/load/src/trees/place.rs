//! [`Place`]: the directory of a tree, which a marker file identifies as owned by headstack.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use headstack_files::is_among_devices;
use headstack_jobfiles::trees::Tree;
use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_64;

use super::calls;
use super::shape::Shape;
use crate::LoadError;
use crate::integrity::random_run;

/// Name of the marker in the anchor of each tree; the marker states who created the tree, and its shape.
pub const MARKER: &str = ".headstack-tree";
/// Directory in the root of a new file system.
const LOST_AND_FOUND: &str = "lost+found";
/// Number of generations per run: the limit of writing visits to a file that can be distinguished.
const GENERATIONS: u32 = 1 << 14;

/// Contents of the marker.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Marked {
    headstack_tree: u32,
    /// Random number in every stamp of the tree.
    id: u64,
    /// Number of runs that used the tree.
    runs: u32,
    seed: u64,
    stamped: bool,
    tree: Tree,
}

/// An open anchor, which is locked against other processes until it is dropped.
#[derive(Debug)]
pub struct Place {
    name: String,
    folder: File,
    marker: File,
    marked: Marked,
    is_new: bool,
    /// Whether this process created the directory together with the marker.
    is_made: bool,
}

/// Numbers of files and directories removed from a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// Number of files.
    pub files: u64,
    /// Number of directories.
    pub folders: u64,
}

impl Place {
    /// Opens the anchor of a tree, or creates it if its parent exists.
    ///
    /// # Errors
    /// Returns an error if the directory contains anything that headstack did not create, if the path is not a
    /// directory or is in `/dev`, or if another process uses the tree.
    pub fn open(tree: &Tree, seed: u64, stamped: bool) -> Result<Place, LoadError> {
        let path = Path::new(&tree.anchor);
        let refused = |message: String| LoadError::Target { target: tree.anchor.clone(), message };
        let failed = |action| move |source| LoadError::Io { target: tree.anchor.clone(), action, source };
        let among_devices = || refused("is in /dev, where no tree of files is created".to_owned());
        let mut is_made = false;
        match fs::symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
                // Checked before the directory is created, so that a refused anchor leaves nothing behind.
                if is_among_devices(&fs::canonicalize(parent).map_err(failed("create"))?) {
                    return Err(among_devices());
                }
                fs::create_dir(path).map_err(failed("create"))?;
                is_made = true;
            }
            Err(error) => return Err(failed("open")(error)),
            Ok(found) if found.is_dir() => {}
            Ok(_) => {
                return Err(refused("is not a directory; a tree of files needs one".to_owned()));
            }
        }
        let whole = fs::canonicalize(path).map_err(failed("open"))?;
        if is_among_devices(&whole) {
            return Err(among_devices());
        }
        let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW;
        let folder = OpenOptions::new().read(true).custom_flags(flags).open(&whole).map_err(failed("open"))?;
        let others = fs::read_dir(&whole)
            .and_then(|members| {
                members.map(|member| member.map(|member| member.file_name())).collect::<io::Result<Vec<_>>>()
            })
            .map_err(failed("read"))?;
        let is_ours = others.iter().any(|name| name == MARKER);
        if let Some(other) = others.iter().find(|name| !is_ours && *name != LOST_AND_FOUND) {
            return Err(refused(format!(
                "has {other:?}, which headstack did not create; a tree needs an empty or new directory"
            )));
        }
        let flags = libc::O_RDWR | if is_ours { 0 } else { libc::O_CREAT | libc::O_EXCL };
        let marker = File::from(calls::open(folder.as_fd(), MARKER, flags).map_err(failed("open its marker"))?);
        if let Err(error) = marker.try_lock() {
            return Err(match error {
                fs::TryLockError::WouldBlock => refused("is in use by another headstack process".to_owned()),
                fs::TryLockError::Error(source) => failed("lock")(source),
            });
        }
        let new = || -> Result<Marked, LoadError> {
            let id = random_run().map_err(failed("getrandom"))?;
            Ok(Marked { headstack_tree: 1, id, runs: 0, seed, stamped, tree: tree.clone() })
        };
        let marked = if is_ours { read_marker(&marker, &tree.anchor)? } else { new()? };
        let mut place = Place { name: tree.anchor.clone(), folder, marker, marked, is_new: !is_ours, is_made };
        place.marked.runs += 1;
        place.write_marker()?;
        Ok(place)
    }

    /// Opens the anchor of a tree of an earlier run for inspection.
    ///
    /// # Errors
    /// Returns an error if the directory has no tree, or if another process uses it.
    pub fn of(anchor: &str) -> Result<Place, LoadError> {
        let refused = |message: String| LoadError::Target { target: anchor.to_owned(), message };
        let failed = |action| move |source| LoadError::Io { target: anchor.to_owned(), action, source };
        let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW;
        let folder = OpenOptions::new().read(true).custom_flags(flags).open(anchor).map_err(failed("open"))?;
        let marker = match calls::open(folder.as_fd(), MARKER, libc::O_RDONLY) {
            Ok(marker) => File::from(marker),
            Err(_) => return Err(refused(format!("has no tree of headstack: {MARKER} is missing"))),
        };
        if marker.try_lock().is_err() {
            return Err(refused("is in use by another headstack process".to_owned()));
        }
        let marked = read_marker(&marker, anchor)?;
        Ok(Place { name: anchor.to_owned(), folder, marker, marked, is_new: false, is_made: false })
    }

    /// Removes the marker and the directory if this process created both, because another tree of the same job was
    /// refused.
    pub fn abandon(self) {
        if !self.is_new {
            return;
        }
        // The original error is reported; an empty directory that cannot be removed does no harm.
        let _ = calls::remove(self.folder.as_fd(), MARKER, false);
        if self.is_made {
            let _ = fs::remove_dir(&self.name);
        }
    }

    fn write_marker(&self) -> Result<(), LoadError> {
        let text = serde_json::to_string(&self.marked).expect("a marker can be written as JSON") + "\n";
        let written = self.marker.write_all_at(text.as_bytes(), 0);
        written.and_then(|()| self.marker.set_len(text.len() as u64)).map_err(|source| self.failed("write", source))
    }

    /// Stores the shape of `tree` in the marker, once the previous tree has been removed.
    ///
    /// # Errors
    /// Returns an error if the marker cannot be written.
    pub fn become_of(&mut self, tree: &Tree, seed: u64, stamped: bool) -> Result<(), LoadError> {
        self.marked = Marked { seed, stamped, tree: tree.clone(), ..self.marked.clone() };
        self.write_marker()
    }

    /// Returns the shape of the current tree; `None` if its size overflows.
    pub fn shape(&self) -> Option<Shape> {
        Shape::new(&self.marked.tree, self.marked.seed, self.marked.stamped)
    }

    /// Returns whether the place contains this tree, or no tree yet.
    pub fn is_of(&self, tree: &Tree, seed: u64, stamped: bool) -> bool {
        let Marked { seed: known_seed, stamped: known_stamped, tree: expected_marked, .. } = &self.marked;
        let as_known =
            |tree: &Tree| Tree { anchor: String::new(), name: String::new(), used_bytes: None, ..tree.clone() };
        *known_seed == seed && *known_stamped == stamped && as_known(expected_marked) == as_known(tree)
    }

    /// Returns whether this process created the tree.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// Returns the random number in the tree's stamps.
    pub fn id(&self) -> u64 {
        self.marked.id
    }

    /// Returns a hash that identifies the place with its current tree.
    pub fn hash(&self) -> u64 {
        let expected_marked = Marked { runs: 0, ..self.marked.clone() };
        XxHash3_64::oneshot(
            serde_json::to_string(&expected_marked).expect("a marker can be written as JSON").as_bytes(),
        )
    }

    /// Returns the last generation before those of this run.
    pub fn generation(&self) -> u32 {
        self.marked.runs.wrapping_mul(GENERATIONS)
    }

    /// Returns the anchor's descriptor.
    pub fn folder(&self) -> BorrowedFd<'_> {
        self.folder.as_fd()
    }

    /// Returns the anchor's path.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether the tree's files carry stamps.
    pub fn is_stamped(&self) -> bool {
        self.marked.stamped
    }

    /// Returns an error about the anchor.
    pub fn refused(&self, message: &str) -> LoadError {
        LoadError::Target { target: self.name.clone(), message: message.to_owned() }
    }

    /// Returns the error of a system call on the anchor.
    pub fn failed(&self, action: &'static str, source: io::Error) -> LoadError {
        LoadError::Io { target: self.name.clone(), action, source }
    }
}

fn read_marker(mut marker: &File, anchor: &str) -> Result<Marked, LoadError> {
    let mut text = String::new();
    marker.read_to_string(&mut text).map_err(|source| LoadError::Io {
        target: anchor.to_owned(),
        action: "read its marker",
        source,
    })?;
    serde_json::from_str(&text).map_err(|error| LoadError::Target {
        target: anchor.to_owned(),
        message: format!("its {MARKER} is damaged ({error}); remove the directory if you do not need it"),
    })
}
