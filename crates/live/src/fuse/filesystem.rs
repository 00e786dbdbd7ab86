//! [`Disks`]: the FUSE file system, a directory of disks: which requests are allowed, and their effect on the data.

use std::ffi::OsStr;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use fuser::{
    AccessFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyLseek,
    ReplyOpen, ReplyStatfs, ReplyWrite, Request as FuseRequest, TimeOrNow, WriteFlags,
};
use headstack_workload::{Kind, Request};

use super::reply::{Replies, Reply, errno_of};
use crate::budget::Share;
use crate::device::{Device, Export};
use crate::kernel;
use crate::power::Change;

/// Largest number of the kernel's background requests: with 12 more of its own, a drive's queue never fills.
const BACKGROUND_MAX: u16 = 256;
/// Attributes never change by themselves.
const FOREVER: Duration = Duration::from_secs(3600);
/// Inode number of the first disk; the directory is 1.
const FIRST_DISK: u64 = 2;

/// Modes of fallocate(2).
mod mode {
    pub const KEEP_SIZE: i32 = 1;
    pub const PUNCH_HOLE: i32 = 2;
    pub const ZERO_RANGE: i32 = 16;
}

/// Values of `whence` of lseek(2).
mod whence {
    pub const DATA: i32 = 3;
    pub const HOLE: i32 = 4;
}

/// The directory.
#[derive(Debug)]
pub struct Disks {
    /// The exported device.
    pub device: Arc<Device>,
    /// File names, in order.
    pub names: Vec<String>,
    /// How to answer.
    pub replies: Replies,
    /// Creation time of the files.
    pub since: SystemTime,
}

impl Disks {
    fn export(&self, ino: INodeNo) -> Result<&Export, Errno> {
        let index = ino.0.checked_sub(FIRST_DISK).ok_or(Errno::EISDIR)?;
        self.device.exports.get(index as usize).ok_or(Errno::ENOENT)
    }

    fn attributes(&self, ino: INodeNo) -> Result<FileAttr, Errno> {
        let export = if ino == INodeNo::ROOT { None } else { Some(self.export(ino)?) };
        let size = export.map_or(0, |export| export.span.length_bytes);
        Ok(FileAttr {
            ino,
            size,
            blocks: size / 512,
            atime: self.since,
            mtime: self.since,
            ctime: self.since,
            crtime: self.since,
            kind: if export.is_some() { FileType::RegularFile } else { FileType::Directory },
            perm: if export.is_some() { 0o600 } else { 0o500 },
            nlink: if export.is_some() { 1 } else { 2 },
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            rdev: 0,
            blksize: export.map_or(4096, |export| export.block_bytes.max(4096)),
            flags: 0,
        })
    }

    /// Reads the current data: `None` at and after the end, as for a file, and whole blocks before it.
    fn take(&self, ino: INodeNo, offset: u64, size: u32) -> Result<Option<(Request, Vec<u8>, Share)>, Errno> {
        let export = self.export(ino)?;
        let length = u64::from(size).min(export.span.length_bytes.saturating_sub(offset));
        if length == 0 {
            return Ok(None);
        }
        let start = place(export, offset, length, Errno::EINVAL)?;
        let share = self.room(length);
        let mut data = vec![0; length as usize];
        self.device.read(start, &mut data).map_err(|error| errno_of(&error))?;
        Ok(Some((request(Kind::Read, start, length as u32), data, share)))
    }

    /// Waits for memory for a request. The kernel, which sends at most 268 at a time, reads every answer.
    fn room(&self, bytes: u64) -> Share {
        let mut share = self.device.submitter.budget().share();
        self.device.make_room(&mut share, bytes, &|| true);
        share
    }

    fn change(&self, at: Instant, request: Request, change: Change<'_>, reply: Reply) {
        let share = self.room(self.device.undo_bytes(u64::from(request.length_bytes)));
        kernel::change(&self.device, at, request, (change, false), share, reply);
    }

    fn written(&self, ino: INodeNo, offset: u64, data: &[u8]) -> Result<Request, Errno> {
        let start = place(self.export(ino)?, offset, data.len() as u64, Errno::ENOSPC)?;
        Ok(request(Kind::Write, start, data.len() as u32))
    }

    /// Zeroes a range: as a trim for a punched hole, else as a write of zeros. Both free the space, since unwritten
    /// data also read as zeros.
    fn cleared(&self, ino: INodeNo, offset: u64, length: u64, mode: i32) -> Result<Request, Errno> {
        let (kind, beyond) = match mode & !mode::KEEP_SIZE {
            mode::PUNCH_HOLE => (Kind::Trim, Errno::EINVAL),
            mode::ZERO_RANGE => (Kind::Write, Errno::ENOSPC),
            _ => return Err(Errno::EOPNOTSUPP),
        };
        let start = place(self.export(ino)?, offset, length, beyond)?;
        // No device accepts more in one command.
        let length_bytes = u32::try_from(length).map_err(|_| Errno::EFBIG)?;
        Ok(request(kind, start, length_bytes))
    }

    /// Offset of the next written or unwritten byte; a hole follows the last written one.
    fn find(&self, ino: INodeNo, offset: i64, whence: i32) -> Result<i64, Errno> {
        let wants_hole = match whence {
            whence::DATA => false,
            whence::HOLE => true,
            _ => return Err(Errno::EINVAL),
        };
        let span = self.export(ino)?.span;
        let offset = u64::try_from(offset).ok().filter(|offset| *offset < span.length_bytes).ok_or(Errno::ENXIO)?;
        let extents = self.device.contents.extents(span.start_bytes + offset, span.length_bytes - offset, 1);
        // Holes and data alternate, so the next one begins where this ends.
        let here = *extents.map_err(|error| errno_of(&error))?.first().ok_or(Errno::EIO)?;
        let found = if here.is_hole == wants_hole { offset } else { offset + here.length_bytes };
        if found == span.length_bytes && !wants_hole { Err(Errno::ENXIO) } else { Ok(found as i64) }
    }
}

/// Address in the system of a range of whole blocks.
fn place(export: &Export, offset: u64, length: u64, beyond: Errno) -> Result<u64, Errno> {
    if offset.checked_add(length).is_none_or(|end| end > export.span.length_bytes) {
        return Err(beyond);
    }
    let block = u64::from(export.block_bytes);
    let is_whole = offset.is_multiple_of(block) && length.is_multiple_of(block);
    if is_whole { Ok(export.span.start_bytes + offset) } else { Err(Errno::EINVAL) }
}

fn request(kind: Kind, offset_bytes: u64, length_bytes: u32) -> Request {
    Request { kind, offset_bytes, length_bytes, force_unit_access: false, ordered: false }
}

impl Filesystem for Disks {
    fn init(&mut self, _: &FuseRequest, config: &mut KernelConfig) -> io::Result<()> {
        // Without it, writes to one file are serialised (available since Linux 3.15).
        let missing = |flags| io::Error::other(format!("the kernel's FUSE does not support {flags:?}"));
        config.add_capabilities(InitFlags::FUSE_ASYNC_DIO).map_err(missing)?;
        let limit = |nearest| io::Error::other(format!("FUSE allows {nearest} requests"));
        config.set_max_background(BACKGROUND_MAX).map_err(limit)?;
        config.set_congestion_threshold(BACKGROUND_MAX / 4 * 3).map_err(limit)?;
        // The longest write is limited by the library's buffer; the kernel's own limit is lower, 1 MiB.
        Ok(())
    }

    fn lookup(&self, _: &FuseRequest, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let index = self.names.iter().position(|known| parent == INodeNo::ROOT && name == known.as_str());
        let attributes =
            index.ok_or(Errno::ENOENT).and_then(|index| self.attributes(INodeNo(FIRST_DISK + index as u64)));
        match attributes {
            Ok(attributes) => reply.entry(&FOREVER, &attributes, Generation(0)),
            Err(errno) => reply.error(errno),
        }
    }

    fn getattr(&self, _: &FuseRequest, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes(ino) {
            Ok(attributes) => reply.attr(&FOREVER, &attributes),
            Err(errno) => reply.error(errno),
        }
    }

    /// Size, owner and mode are fixed; times may be set, and have no effect.
    fn setattr(
        &self,
        _: &FuseRequest,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        _: Option<TimeOrNow>,
        _: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<fuser::BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        match self.attributes(ino) {
            Ok(attributes) => {
                let keeps_size = size.is_none_or(|size| size == attributes.size);
                if keeps_size && mode.is_none() && uid.is_none() && gid.is_none() {
                    reply.attr(&FOREVER, &attributes);
                } else {
                    reply.error(Errno::EPERM);
                }
            }
            Err(errno) => reply.error(errno),
        }
    }

    fn open(&self, _: &FuseRequest, ino: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        match self.export(ino) {
            // Bypasses the page cache and allows concurrent writers: a device excludes no one.
            Ok(_) => {
                reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES)
            }
            Err(errno) => reply.error(errno),
        }
    }

    fn read(
        &self,
        _: &FuseRequest,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let at = Instant::now();
        match self.take(ino, offset, size) {
            Ok(Some((request, data, share))) => {
                let reply = self.replies.data(reply, request.offset_bytes, data, share);
                kernel::submit(&self.device, at, request, reply);
            }
            Ok(None) => reply.data(&[]),
            Err(errno) => reply.error(errno),
        }
    }

    fn write(
        &self,
        _: &FuseRequest,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let at = Instant::now();
        match self.written(ino, offset, data) {
            Ok(request) => {
                let reply = self.replies.written(reply, request.length_bytes);
                self.change(at, request, Change::Data(data), reply);
            }
            Err(errno) => reply.error(errno),
        }
    }

    /// Called when the file is closed: the device's cache is left as it is.
    fn flush(&self, _: &FuseRequest, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fsync(&self, _: &FuseRequest, ino: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        let at = Instant::now();
        match self.export(ino) {
            Ok(_) => kernel::submit(&self.device, at, request(Kind::Flush, 0, 0), self.replies.without_data(reply)),
            Err(errno) => reply.error(errno),
        }
    }

    fn fallocate(
        &self,
        _: &FuseRequest,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let at = Instant::now();
        match self.cleared(ino, offset, length, mode) {
            Ok(request) => self.change(at, request, Change::Zero, self.replies.without_data(reply)),
            Err(errno) => reply.error(errno),
        }
    }

    /// Answered by the server itself, without the simulated system.
    fn lseek(&self, _: &FuseRequest, ino: INodeNo, _: FileHandle, offset: i64, whence: i32, reply: ReplyLseek) {
        match self.find(ino, offset, whence) {
            Ok(found) => reply.offset(found),
            Err(errno) => reply.error(errno),
        }
    }

    /// All space is used; a loop device trims in units of the block size.
    fn statfs(&self, _: &FuseRequest, ino: INodeNo, reply: ReplyStatfs) {
        let exports = &self.device.exports;
        let of_one = self.export(ino).map(std::slice::from_ref);
        let exports = of_one.unwrap_or(exports);
        let block_bytes = exports.iter().map(|export| export.block_bytes).max().unwrap_or(512);
        let bytes: u64 = exports.iter().map(|export| export.span.length_bytes).sum();
        let files = self.names.len() as u64;
        reply.statfs(bytes / u64::from(block_bytes), 0, 0, files, 0, block_bytes, 255, block_bytes);
    }

    fn readdir(&self, _: &FuseRequest, ino: INodeNo, _: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        if ino != INodeNo::ROOT {
            return reply.error(Errno::ENOTDIR);
        }
        let dots = [".", ".."].map(|name| (INodeNo::ROOT, FileType::Directory, name));
        let disks = (FIRST_DISK..).zip(&self.names);
        let disks = disks.map(|(number, name)| (INodeNo(number), FileType::RegularFile, name.as_str()));
        for (next, (number, kind, name)) in (1..).zip(dots.into_iter().chain(disks)).skip(offset as usize) {
            if reply.add(number, next, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    /// The kernel itself checks the mode.
    fn access(&self, _: &FuseRequest, _: INodeNo, _: AccessFlags, reply: ReplyEmpty) {
        reply.ok();
    }
}
