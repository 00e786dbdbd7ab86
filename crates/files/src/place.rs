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

/// The kernel's limit of links.
const LINKS_MAX: usize = 40;
/// The path that means standard output.
const STDOUT: &str = "-";

/// The destination of a path, through all links.
#[derive(Debug)]
pub enum Place {
    /// A regular file, existing or not.
    File {
        /// Its folder, without links.
        folder: PathBuf,
        /// Its name there.
        name: OsString,
        /// The existing file.
        before: Option<Metadata>,
    },
    /// A named pipe or a character device, which is opened and written directly.
    Special(PathBuf),
    /// An open descriptor of this process: a pipe, a socket, a terminal, a file opened by a shell.
    Descriptor(RawFd),
}

/// Identity of a file, independent of its names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Identity {
    /// An existing file or pipe, by the device of its file system and its inode.
    There { device: u64, inode: u64 },
    /// A future file, by its folder and name.
    ToBe { device: u64, inode: u64, name: OsString },
    /// A character device: any number of outputs may go to one.
    Device,
}

impl Place {
    /// Follows `path`; `-` is standard output.
    ///
    /// # Errors
    /// When it leads to a folder, a block device or a socket, to a folder that does not exist, or in a circle.
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
                // Links in /proc are not paths: only the kernel can resolve them.
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
                    // A device that is not plugged in must not become a regular file.
                    if folder.starts_with("/dev") && !folder.starts_with("/dev/shm") {
                        let message = "no such device; an output file in /dev is not created";
                        return Err(FileError::refused(path, message));
                    }
                    return Ok(Place::File { folder, name, before: None });
                }
                Err(error) => return Err(FileError::of(path, &error)),
            }
        }
        Err(FileError::refused(path, "its links form a loop"))
    }

    /// Whether it is standard output, by any name.
    pub fn is_stdout(&self) -> bool {
        match self {
            Place::File { .. } => false,
            Place::Descriptor(1) => true,
            // Many descriptors lead to /dev/null, which has no reader.
            _ => self.identity().is_some_and(|one| one != Identity::Device && Some(one) == stdout()),
        }
    }

    /// Its identity; `None` if unknown.
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

/// Identity of standard output, if it is open.
pub(crate) fn stdout() -> Option<Identity> {
    Place::Descriptor(1).identity()
}

/// The existing folder of `at`, and the name in it.
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

/// Whether a path ends in a slash or in dots.
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
        Err(FileError::refused(path, "is a block device; outputs do not overwrite devices, name a file"))
    } else {
        Err(FileError::refused(path, "is a socket; name a file or a pipe"))
    }
}

fn descriptor(path: &Path, number: RawFd) -> Result<Place, FileError> {
    // The kernel reports a number that is not open.
    let flags = fcntl_getfl(borrowed(number)).map_err(|error| FileError::of(path, &error.into()))?;
    if !flags.intersects(OFlags::WRONLY | OFlags::RDWR) {
        return Err(FileError::refused(path, "is not open for writing"));
    }
    let status = fstat(borrowed(number)).map_err(|error| FileError::of(path, &error.into()))?;
    if FileType::from_raw_mode(status.st_mode) == FileType::BlockDevice {
        let message = "is a block device; outputs do not overwrite devices, name a file";
        return Err(FileError::refused(path, message));
    }
    Ok(Place::Descriptor(number))
}

fn is_character_device(mode: u32) -> bool {
    FileType::from_raw_mode(mode) == FileType::CharacterDevice
}

/// Duplicates a descriptor, with the same file position.
pub(crate) fn duplicate(number: RawFd) -> io::Result<OwnedFd> {
    Ok(rustix::io::fcntl_dupfd_cloexec(borrowed(number), 3)?)
}

#[allow(unsafe_code)]
fn borrowed<'a>(number: RawFd) -> BorrowedFd<'a> {
    assert!(number >= 0, "no descriptor is negative");
    // SAFETY: used for a single system call, which fails if the number is not open.
    unsafe { BorrowedFd::borrow_raw(number) }
}

/// Whether a folder, with all links resolved, is where devices are: below `/dev`, or the same file system mounted
/// elsewhere. `/dev/shm` is memory.
pub fn is_among_devices(folder: &Path) -> bool {
    let device = |path: &Path| path.metadata().ok().map(|metadata| metadata.dev());
    let [devices, root, here] = [Path::new("/dev"), Path::new("/"), folder].map(device);
    let is_bound = devices.is_some() && devices != root && here == devices;
    !folder.starts_with("/dev/shm") && (folder.starts_with("/dev") || is_bound)
}
