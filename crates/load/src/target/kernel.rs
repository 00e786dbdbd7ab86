//! System calls that the standard library does not wrap.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

use super::object::{Number, Object};
use crate::newer_calls;

/// Numbers from `linux/fs.h`; libc defines none of these four.
const BLKFLSBUF: libc::c_ulong = 0x1261;
const BLKGETSIZE64: libc::c_ulong = 0x8008_1272;
const BLKROGET: libc::c_ulong = 0x125e;
const FS_IOC_FIEMAP: libc::c_ulong = 0xc020_660b;
/// `asm-generic/fcntl.h`.
const F_SETSIG: libc::c_int = 10;
/// `linux/loop.h`.
const LOOP_GET_STATUS64: libc::c_ulong = 0x4c05;

/// `struct loop_info64`, of which only the identity of the backing file is used.
#[repr(C)]
struct LoopInfo {
    device: u64,
    inode: u64,
    raw_device: u64,
    rest: [u64; 26],
}

/// `struct fiemap`, with room for `EXTENTS` of `struct fiemap_extent`.
#[repr(C)]
struct ExtentMap {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    room: u32,
    reserved: u32,
    extents: [MappedExtent; EXTENTS],
}

const EXTENTS: usize = 256;

#[repr(C)]
#[derive(Clone, Copy)]
struct MappedExtent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved: [u64; 2],
    flags: u32,
    reserved_too: [u32; 3],
}

const SYNC: u32 = 1;
const LAST: u32 = 0x1;
/// Flags of extents without data on the device: not allocated yet, or allocated and never written.
const NOWHERE: u32 = 0x2 | 0x4 | 0x800;

/// Alignment of requests with `O_DIRECT`.
#[derive(Clone, Copy, Debug)]
pub(super) struct DirectAlignment {
    pub memory_bytes: u32,
    pub offset_bytes: u32,
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Drops the clean pages of a file from the page cache.
pub(super) fn forget_file(file: &File) -> io::Result<()> {
    // SAFETY: no memory is passed.
    match unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// Writes the cached data of a block device, then drops its pages.
pub(super) fn forget_device(device: &File) -> io::Result<()> {
    // SAFETY: the request takes no argument.
    check(unsafe { libc::ioctl(device.as_raw_fd(), BLKFLSBUF as _, 0) })
}

/// Takes a lease on a file and returns it at once; returns whether the kernel granted it. `F_RDLCK`, on a file open for
/// reading, is granted if no one has the file open for writing; `F_WRLCK`, on a file open for writing, if no one else
/// has it open at all. Returns `None` if there are no leases: on network file systems, and for users other than the
/// owner and root.
pub(super) fn lease(file: &File, kind: libc::c_int) -> Option<bool> {
    let fd = file.as_raw_fd();
    // SAFETY: takes only numbers. A process that opens the file at this moment waits until the lease is returned, and
    // the kernel sends this process a signal, which must be one that does not end it.
    unsafe {
        if libc::fcntl(fd, F_SETSIG, libc::SIGURG) == -1 {
            return None;
        }
        match check(libc::fcntl(fd, libc::F_SETLEASE, kind)) {
            Ok(()) => {
                let returned = check(libc::fcntl(fd, libc::F_SETLEASE, libc::F_UNLCK));
                debug_assert!(returned.is_ok(), "{returned:?}");
                Some(true)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Some(false),
            Err(_) => None,
        }
    }
}

/// Returns the object that a path leads to, using only what the kernel has cached: an unreachable network server is not
/// queried.
pub(super) fn object(path: &Path) -> io::Result<Object> {
    let path = c_path(path)?;
    // SAFETY: an all-zero `struct statx` is valid.
    let mut status: libc::statx = unsafe { std::mem::zeroed() };
    let wanted = libc::STATX_TYPE | libc::STATX_INO;
    // SAFETY: passes a C string, and the kernel writes a `struct statx`.
    check(unsafe {
        newer_calls::statx(libc::AT_FDCWD, path.as_ptr(), libc::AT_STATX_DONT_SYNC, wanted, &raw mut status)
    })?;
    let number = Number { major: status.stx_rdev_major, minor: status.stx_rdev_minor };
    Ok(match u32::from(status.stx_mode) & libc::S_IFMT {
        libc::S_IFBLK => Object::Device(number),
        libc::S_IFCHR => Object::CharacterDevice(number),
        _ => Object::File { device: libc::makedev(status.stx_dev_major, status.stx_dev_minor), inode: status.stx_ino },
    })
}

/// Returns the capacity of a block device, in bytes.
pub(super) fn capacity_bytes(device: &File) -> io::Result<u64> {
    let mut bytes = 0u64;
    // SAFETY: the kernel writes a u64.
    check(unsafe { libc::ioctl(device.as_raw_fd(), BLKGETSIZE64 as _, &raw mut bytes) })?;
    Ok(bytes)
}

/// Returns the logical and the physical block size of a block device, in bytes.
pub(super) fn block_bytes(device: &File) -> io::Result<(u32, u32)> {
    let (mut logical, mut physical) = (0, 0u32);
    // SAFETY: the kernel writes an int and an unsigned int.
    unsafe {
        check(libc::ioctl(device.as_raw_fd(), libc::BLKSSZGET as _, &raw mut logical))?;
        check(libc::ioctl(device.as_raw_fd(), libc::BLKPBSZGET as _, &raw mut physical))?;
    }
    let logical: libc::c_int = logical;
    let logical = u32::try_from(logical).map_err(|_| io::Error::other("the logical block size is negative"))?;
    Ok((logical, physical.max(logical)))
}

/// Returns whether a block device is read-only.
pub(super) fn is_read_only(device: &File) -> io::Result<bool> {
    let mut flag: libc::c_int = 0;
    // SAFETY: the kernel writes an int.
    check(unsafe { libc::ioctl(device.as_raw_fd(), BLKROGET as _, &raw mut flag) })?;
    Ok(flag != 0)
}

/// Returns device and inode of the file behind a loop device, and the device number if a device is behind it (otherwise
/// 0).
pub(super) fn loop_backing(device: &File) -> io::Result<(u64, u64, u64)> {
    let mut info = LoopInfo { device: 0, inode: 0, raw_device: 0, rest: [0; 26] };
    // SAFETY: the kernel writes a `struct loop_info64`, whose size is that of `LoopInfo`.
    check(unsafe { libc::ioctl(device.as_raw_fd(), LOOP_GET_STATUS64 as _, &raw mut info) })?;
    Ok((info.device, info.inode, info.raw_device))
}

/// Returns the alignment of direct requests: `None` if the kernel does not report it, zeros if it does not allow direct
/// I/O.
pub(super) fn direct_alignment(file: &File) -> Option<DirectAlignment> {
    // SAFETY: an all-zero `struct statx` is valid.
    let mut status: libc::statx = unsafe { std::mem::zeroed() };
    // SAFETY: the path is an empty C string, which stands for the descriptor, and the kernel writes a `struct statx`.
    let result = unsafe {
        newer_calls::statx(file.as_raw_fd(), c"".as_ptr(), libc::AT_EMPTY_PATH, libc::STATX_DIOALIGN, &raw mut status)
    };
    (result == 0 && status.stx_mask & libc::STATX_DIOALIGN != 0).then_some(DirectAlignment {
        memory_bytes: status.stx_dio_mem_align,
        offset_bytes: status.stx_dio_offset_align,
    })
}

/// Returns the number of the first `length_bytes` of a file that are on the device according to its extents. Cached
/// data are flushed first.
///
/// # Errors
/// Returns an error if the file system has no extent map (`EOPNOTSUPP`, `ENOTTY`).
pub(super) fn stored_bytes(file: &File, length_bytes: u64) -> io::Result<u64> {
    let none = MappedExtent { logical: 0, physical: 0, length: 0, reserved: [0; 2], flags: 0, reserved_too: [0; 3] };
    let mut map = Box::new(ExtentMap {
        start: 0,
        length: 0,
        flags: SYNC,
        mapped: 0,
        room: EXTENTS as u32,
        reserved: 0,
        extents: [none; EXTENTS],
    });
    let mut stored = 0u64;
    while map.start < length_bytes {
        map.length = length_bytes - map.start;
        // SAFETY: the kernel writes at most `room` extents after the header.
        check(unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP as _, &raw mut *map) })?;
        let extents = &map.extents[..(map.mapped as usize).min(EXTENTS)];
        let Some(last) = extents.last().copied() else { break };
        for extent in extents.iter().filter(|extent| extent.flags & NOWHERE == 0) {
            let end = extent.logical.saturating_add(extent.length).min(length_bytes);
            stored += end.saturating_sub(extent.logical.max(map.start));
        }
        let next = last.logical.saturating_add(last.length);
        if last.flags & LAST != 0 || next <= map.start {
            break;
        }
        map.start = next;
    }
    Ok(stored)
}

/// Does the same as [`stored_bytes`] with `SEEK_DATA` and `SEEK_HOLE`, which every file system supports.
pub(super) fn data_bytes(file: &File, length_bytes: u64) -> io::Result<u64> {
    // SAFETY: moves the file offset of a descriptor that is only used with explicit offsets.
    let seek = |from: u64, whence| match unsafe { libc::lseek(file.as_raw_fd(), from as i64, whence) } {
        -1 => Err(io::Error::last_os_error()),
        offset => Ok(offset as u64),
    };
    let (mut data, mut at) = (0, 0);
    while at < length_bytes {
        let start = match seek(at, libc::SEEK_DATA) {
            Err(error) if error.raw_os_error() == Some(libc::ENXIO) => break,
            found => found?,
        };
        let end = seek(start, libc::SEEK_HOLE)?;
        data += end.min(length_bytes).saturating_sub(start);
        at = end.max(at + 1);
    }
    Ok(data)
}

/// Reserves `length_bytes` of a file from `offset_bytes` on, and grows the file to include them.
pub(super) fn allocate(file: &File, offset_bytes: u64, length_bytes: u64) -> io::Result<()> {
    // SAFETY: takes only numbers.
    check(unsafe { libc::fallocate(file.as_raw_fd(), 0, offset_bytes as i64, length_bytes as i64) })
}

/// Returns the type of a file system, and the number of bytes free for this user.
pub(super) fn file_system(path: &Path) -> io::Result<(i64, u64)> {
    let path = c_path(path)?;
    // SAFETY: both structures are valid if all zeros.
    let (mut kind, mut space): (libc::statfs, libc::statvfs) = unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
    // SAFETY: passes a C string and structures of the right types.
    unsafe {
        check(libc::statfs(path.as_ptr(), &raw mut kind))?;
        check(libc::statvfs(path.as_ptr(), &raw mut space))?;
    }
    Ok((kind.f_type, (space.f_bavail).saturating_mul(space.f_frsize)))
}

/// Renames a file, unless the new name already exists.
pub(super) fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    let (from, to) = (c_path(from)?, c_path(to)?);
    let here = libc::AT_FDCWD;
    // SAFETY: passes two C strings.
    let result = unsafe { newer_calls::renameat2(here, from.as_ptr(), here, to.as_ptr(), libc::RENAME_NOREPLACE) };
    check(result)
}

/// Returns the kernel release, such as `5.10.0-28-amd64`, as `uname -r` prints it.
pub(super) fn release() -> String {
    std::fs::read_to_string("/proc/sys/kernel/osrelease").map_or_else(|_| "unknown".into(), |text| text.trim().into())
}

fn c_path(path: &Path) -> io::Result<std::ffi::CString> {
    use std::os::unix::ffi::OsStrExt;
    Ok(std::ffi::CString::new(path.as_os_str().as_bytes())?)
}
