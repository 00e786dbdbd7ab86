//! [`Place`]: the destination of a path.

use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata};
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, OFlags, fcntl_getfl, fstat};

use crate::FileError;

/// Maximum number of symbolic links followed, as in the kernel.
const LINKS_MAX: usize = 40;
/// The path that means standard output.
const STDOUT: &str = "-";

/// The destination of a path after all links are followed.
#[derive(Debug)]
pub enum Place {
    /// A regular file that exists or can be created.
    File {
        /// Its folder, with links resolved.
        folder: PathBuf,
        /// Its name in the folder.
        name: OsString,
        /// Metadata of the existing file; `None` if there is none.
        before: Option<Metadata>,
    },
    /// A named pipe or a character device, which is opened and written directly.
    Special(PathBuf),
    /// An open descriptor of this process, for example a pipe, a socket, a terminal or a file opened by the shell.
    Descriptor(RawFd),
}

/// Identity of a file, independent of its names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Identity {
    /// An existing file or pipe: device number of its file system and inode.
    There { device: u64, inode: u64 },
    /// A file that does not exist yet: identity of its folder, and its name.
    ToBe { device: u64, inode: u64, name: OsString },
    /// A character device. Several outputs may use the same one.
    Device,
}

impl Place {
    /// Resolves `path`; `-` is standard output.
    ///
    /// # Errors
    /// If `path` leads to a folder, a block device, a socket or a nonexistent folder, or if its links form a loop.
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
                    None => Err(FileError::refused(path, "is not a file descriptor of this process")),
                };
            }
            at = folder.join(&name);
            match fs::symlink_metadata(&at) {
                // Links in /proc are not paths; only the kernel can resolve them.
                Ok(metadata) if metadata.is_symlink() && folder.starts_with("/proc") => {
                    let metadata = fs::metadata(&at).map_err(|error| FileError::of(path, &error))?;
                    return match resolve_existing(path, folder, name, &at, metadata)? {
                        Place::File { .. } => {
                            Err(FileError::refused(path, "is a file of another process; use its path"))
                        }
                        place => Ok(place),
                    };
                }
                Ok(metadata) if metadata.is_symlink() => {
                    let leads_to = fs::read_link(&at).map_err(|error| FileError::of(path, &error))?;
                    at = folder.join(leads_to);
                }
                Ok(metadata) => return resolve_existing(path, folder, name, &at, metadata),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    // The name of an unplugged device must not become a regular file.
                    if folder.starts_with("/dev") && !folder.starts_with("/dev/shm") {
                        let message = "no such device; write output files outside /dev";
                        return Err(FileError::refused(path, message));
                    }
                    return Ok(Place::File { folder, name, before: None });
                }
                Err(error) => return Err(FileError::of(path, &error)),
            }
        }
        Err(FileError::refused(path, "has symbolic links that form a loop"))
    }

    /// Whether the destination is standard output, under any name.
    pub fn is_stdout(&self) -> bool {
        match self {
            Place::File { .. } => false,
            Place::Descriptor(1) => true,
            // /dev/null has no reader, so several descriptors may lead to it.
            _ => self.identity().is_some_and(|one| one != Identity::Device && Some(one) == stdout()),
        }
    }

    /// Returns the identity of the destination; `None` if unknown.
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

/// Returns the identity of standard output; `None` if it is closed.
pub(crate) fn stdout() -> Option<Identity> {
    Place::Descriptor(1).identity()
}

/// Returns the existing folder of `at` and the file name in it.
fn parts(path: &Path, at: &Path) -> Result<(PathBuf, OsString), FileError> {
    let is_folder = || FileError::refused(path, "is a directory; name a file in it");
    let (Some(name), false) = (at.file_name(), ends_as_folder(at)) else { return Err(is_folder()) };
    let folder = at.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match fs::canonicalize(folder) {
        Ok(folder) => Ok((folder, name.to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(FileError::refused(path, format!("the directory {} does not exist", folder.display())))
        }
        Err(error) => Err(FileError::of(path, &error)),
    }
}

/// Whether a path ends in a slash, `.` or `..`.
fn ends_as_folder(path: &Path) -> bool {
    let bytes = path.as_os_str().as_bytes();
    let last = bytes.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    matches!(OsStr::from_bytes(last).to_str(), Some("" | "." | ".."))
}

fn resolve_existing(
    path: &Path,
    folder: PathBuf,
    name: OsString,
    at: &Path,
    before: Metadata,
) -> Result<Place, FileError> {
    let kind = before.file_type();
    if kind.is_file() {
        Ok(Place::File { folder, name, before: Some(before) })
    } else if kind.is_fifo() || kind.is_char_device() {
        Ok(Place::Special(at.to_owned()))
    } else if kind.is_dir() {
        Err(FileError::refused(path, "is a directory; name a file in it"))
    } else if kind.is_block_device() {
        Err(FileError::refused(path, "is a block device; name a regular file instead"))
    } else {
        Err(FileError::refused(path, "is a socket; name a file or a pipe"))
    }
}

fn descriptor(path: &Path, number: RawFd) -> Result<Place, FileError> {
    // The kernel reports an error if the descriptor is not open.
    let flags = fcntl_getfl(borrowed(number)).map_err(|error| FileError::of(path, &error.into()))?;
    if !flags.intersects(OFlags::WRONLY | OFlags::RDWR) {
        return Err(FileError::refused(path, "is not open for writing"));
    }
    let status = fstat(borrowed(number)).map_err(|error| FileError::of(path, &error.into()))?;
    if FileType::from_raw_mode(status.st_mode) == FileType::BlockDevice {
        let message = "is a block device; name a regular file instead";
        return Err(FileError::refused(path, message));
    }
    Ok(Place::Descriptor(number))
}

fn is_character_device(mode: u32) -> bool {
    FileType::from_raw_mode(mode) == FileType::CharacterDevice
}

/// Duplicates a descriptor; both share the file position.
pub(crate) fn duplicate(number: RawFd) -> io::Result<OwnedFd> {
    Ok(rustix::io::fcntl_dupfd_cloexec(borrowed(number), 3)?)
}

#[allow(unsafe_code)]
fn borrowed<'a>(number: RawFd) -> BorrowedFd<'a> {
    assert!(number >= 0, "descriptors are not negative");
    // SAFETY: the descriptor is used for a single system call, which fails if it is not open.
    unsafe { BorrowedFd::borrow_raw(number) }
}

/// Whether a folder, with all links resolved, holds devices: it is below `/dev`, or on the same file system mounted
/// elsewhere. `/dev/shm` is memory and does not count.
pub fn is_among_devices(folder: &Path) -> bool {
    let device = |path: &Path| path.metadata().ok().map(|metadata| metadata.dev());
    let [devices, root, here] = [Path::new("/dev"), Path::new("/"), folder].map(device);
    let is_bound = devices.is_some() && devices != root && here == devices;
    !folder.starts_with("/dev/shm") && (folder.starts_with("/dev") || is_bound)
}
