//! [`Object`]: anything that can be in use, identified by numbers because names are ambiguous.

use std::fmt;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};

/// Major and minor number of a device, which identify it even where names do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Number {
    pub major: u32,
    pub minor: u32,
}

impl Number {
    pub(super) fn from_raw(device: u64) -> Number {
        Number { major: libc::major(device), minor: libc::minor(device) }
    }

    /// Parses a number such as `8:16`.
    pub(super) fn parse(text: &str) -> Option<Number> {
        let (major, minor) = text.trim().split_once(':')?;
        Some(Number { major: major.parse().ok()?, minor: minor.parse().ok()? })
    }
}

impl fmt::Display for Number {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.major, self.minor)
    }
}

/// An object that another process may use: a block device, the character device of the same namespace, or a file,
/// identified by its inode and the number of its file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Object {
    Device(Number),
    CharacterDevice(Number),
    File { device: u64, inode: u64 },
}

impl Object {
    pub(super) fn of(metadata: &fs::Metadata) -> Object {
        let kind = metadata.file_type();
        if kind.is_block_device() {
            Object::Device(Number::from_raw(metadata.rdev()))
        } else if kind.is_char_device() {
            Object::CharacterDevice(Number::from_raw(metadata.rdev()))
        } else {
            Object::File { device: metadata.dev(), inode: metadata.ino() }
        }
    }
}
