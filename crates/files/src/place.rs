//! What a path leads to.

use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata};
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, OFlags, fcntl_getfl, fstat};

use crate::FileError;

/// As many as the kernel follows.
const LINKS_MAX: usize = 40;
/// The path that means standard output.
const STDOUT: &str = "-";

/// The target of a path, through all links.
#[derive(Debug)]
pub enum Place {
    /// A regular file, there or to be.
    File {
        /// Its folder, without links.
        folder: PathBuf,
        /// Its name there.
        name: OsString,
        /// The file that exists already.
        before: Option<Metadata>,
    },
    /// A named pipe or a character device, which is opened and written through.
    Special(PathBuf),
    /// A descriptor that this process has: a pipe, a socket, a terminal, a file that a shell has opened.
    Descriptor(RawFd),
}

/// The identity of a file, independent of its names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Identity {
    /// A file or pipe that is there, by the device of its file system and its inode.
    There { device: u64, inode: u64 },
    /// One that is to be, by its folder and its name there.
    ToBe { device: u64, inode: u64, name: OsString },
    /// A character device: as many outputs as there are may go to one.
    Device,
}

impl Place {
    /// Follows `path`; `-` is standard output.
    ///
    /// # Errors
    /// It leads to a folder, a block device or a socket, to a folder that does not exist, or round in a circle.
    pub fn of(path: &Path) -> Result<Place, FileError> {
        if path == Path::new(STDOUT) {
            return descriptor(path, 1);
        }
        let mut at = path.to_owned();
        for _ in 0..LINKS_MAX {
            let (folder, name) = parts(path, &at)?;
            if Some(&folder) == fs::canonicalize("/proc/self/fd").ok().as_ref() {
                return match name.to_str().and_then(|name| name.parse().ok()) {
                    Some(number) => descriptor(path, number),
                    None => Err(FileError::refused(path, "is not a descriptor of this process")),
                };
            }
            at = folder.join(&name);
            match fs::symlink_metadata(&at) {
                // The links of /proc are no paths: what they lead to is asked of the kernel.
                Ok(metadata) if metadata.is_symlink() && folder.starts_with("/proc") => {
                    let metadata = fs::metadata(&at).map_err(|error| FileError::of(path, &error))?;
                    return match found(path, folder, name, &at, metadata)? {
                        Place::File { .. } => Err(FileError::refused(path, "is a file of another process; name it")),
                        place => Ok(place),
                    };
                }
                Ok(metadata) if metadata.is_symlink() => {
                    let leads_to = fs::read_link(&at).map_err(|error| FileError::of(path, &error))?;
                    at = folder.join(leads_to);
                }
                Ok(metadata) => return found(path, folder, name, &at, metadata),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    // A device that is not plugged in must not become a file of its name.
                    if folder.starts_with("/dev") && !folder.starts_with("/dev/shm") {
                        let message = "there is no such device, and no file is made among devices";
                        return Err(FileError::refused(path, message));
                    }
                    return Ok(Place::File { folder, name, before: None });
                }
                Err(error) => return Err(FileError::of(path, &error)),
            }
        }
        Err(FileError::refused(path, "its links lead round in a circle"))
    }

    /// Whether it is standard output, by whatever name.
    pub fn is_stdout(&self) -> bool {
        match self {
            Place::File { .. } => false,
            Place::Descriptor(1) => true,
            // Many things lead to /dev/null, and nobody waits behind it.
            _ => self.identity().is_some_and(|one| one != Identity::Device && Some(one) == stdout()),
        }
    }

    /// Its identity; `None` if it cannot be found out.
    pub(crate) fn identity(&self) -> Option<Identity> {
        match self {
            Place::File { before: Some(metadata), .. } => Some(Identity::there(metadata.dev(), metadata.ino())),
            Place::File { folder, name, before: None } => {
                let metadata = fs::metadata(folder).ok()?;
                Some(Identity::ToBe { device: metadata.dev(), inode: metadata.ino(), name: name.clone() })
            }
            Place::Special(path) => {
                let metadata = fs::metadata(path).ok()?;
                if metadata.file_type().is_char_device() {
                    return Some(Identity::Device);
                }
                Some(Identity::there(metadata.dev(), metadata.ino()))
            }
            Place::Descriptor(number) => {
                let status = fstat(borrowed(*number)).ok()?;
                if is_character_device(status.st_mode) {
                    return Some(Identity::Device);
                }
                Some(Identity::there(status.st_dev, status.st_ino))
            }
        }
    }
}

impl Identity {
    pub(crate) fn there(device: u64, inode: u64) -> Identity {
        Identity::There { device, inode }
    }
}

/// The identity of standard output, if it is open.
pub(crate) fn stdout() -> Option<Identity> {
    Place::Descriptor(1).identity()
}

/// The folder of `at`, which exists, and the name in it.
fn parts(path: &Path, at: &Path) -> Result<(PathBuf, OsString), FileError> {
    let is_folder = || FileError::refused(path, "this is a folder; name a file in it");
    let (Some(name), false) = (at.file_name(), ends_as_folder(at)) else { return Err(is_folder()) };
    let folder = at.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match fs::canonicalize(folder) {
        Ok(folder) => Ok((folder, name.to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(FileError::refused(path, format!("the folder {} does not exist", folder.display())))
        }
        Err(error) => Err(FileError::of(path, &error)),
    }
}

/// A path that ends in a slash or in dots.
fn ends_as_folder(path: &Path) -> bool {
    let bytes = path.as_os_str().as_bytes();
    let last = bytes.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    matches!(OsStr::from_bytes(last).to_str(), Some("" | "." | ".."))
}

fn found(path: &Path, folder: PathBuf, name: OsString, at: &Path, before: Metadata) -> Result<Place, FileError> {
    let kind = before.file_type();
    if kind.is_file() {
        Ok(Place::File { folder, name, before: Some(before) })
    } else if kind.is_fifo() || kind.is_char_device() {
        Ok(Place::Special(at.to_owned()))
    } else if kind.is_dir() {
        Err(FileError::refused(path, "this is a folder; name a file in it"))
    } else if kind.is_block_device() {
        Err(FileError::refused(path, "is a block device: what it holds is not overwritten by an output; name a file"))
    } else {
        Err(FileError::refused(path, "is a socket: name a file or a pipe"))
    }
}

fn descriptor(path: &Path, number: RawFd) -> Result<Place, FileError> {
    // Of a number that is not open the kernel says so.
    let flags = fcntl_getfl(borrowed(number)).map_err(|error| FileError::of(path, &error.into()))?;
    if !flags.intersects(OFlags::WRONLY | OFlags::RDWR) {
        return Err(FileError::refused(path, "is not open for writing"));
    }
    let status = fstat(borrowed(number)).map_err(|error| FileError::of(path, &error.into()))?;
    if FileType::from_raw_mode(status.st_mode) == FileType::BlockDevice {
        let message = "is a block device: what it holds is not overwritten by an output; name a file";
        return Err(FileError::refused(path, message));
    }
    Ok(Place::Descriptor(number))
}

fn is_character_device(mode: u32) -> bool {
    FileType::from_raw_mode(mode) == FileType::CharacterDevice
}

/// Another descriptor for the same, at the same position.
pub(crate) fn duplicate(number: RawFd) -> io::Result<OwnedFd> {
    Ok(rustix::io::fcntl_dupfd_cloexec(borrowed(number), 3)?)
}

#[allow(unsafe_code)]
fn borrowed<'a>(number: RawFd) -> BorrowedFd<'a> {
    assert!(number >= 0, "no descriptor is negative");
    // SAFETY: used for one system call each, which says so where the number is not open.
    unsafe { BorrowedFd::borrow_raw(number) }
}

/// Whether a folder, all of whose links are followed, is where devices are: below `/dev`, or the same file system bound
/// elsewhere. `/dev/shm` is memory.
pub fn is_among_devices(folder: &Path) -> bool {
    let device = |path: &Path| path.metadata().ok().map(|metadata| metadata.dev());
    let [devices, root, here] = [Path::new("/dev"), Path::new("/"), folder].map(device);
    let is_bound = devices.is_some() && devices != root && here == devices;
    !folder.starts_with("/dev/shm") && (folder.starts_with("/dev") || is_bound)
}
