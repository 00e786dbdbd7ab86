//! Individual requests as system calls.

use std::io;

use headstack_workload::{Kind, Request};

use crate::buffers::Memory;
use crate::newer_calls;
use crate::target_map::{TargetMap, TargetPlace};

/// `BLKDISCARD` of `linux/fs.h`: _IO(0x12, 119).
const BLKDISCARD: libc::Ioctl = 0x1277;
/// Flags of `fallocate(2)` with which a trim punches a hole into a file.
pub const PUNCH_HOLE: i32 = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;

/// Executes a request with its data in `memory`. Returns the bytes transferred, or the negative error number.
///
/// # Safety
/// `memory` must be valid for the length of the request until this returns, and no one else may use its contents.
pub unsafe fn carry_out(map: &TargetMap, request: &Request, memory: &Memory) -> i32 {
    if request.kind == Kind::Flush {
        return flush(map, request.force_unit_access);
    }
    let TargetPlace { piece, offset_bytes } = map.place(request);
    let piece = &map.pieces()[piece];
    if let (Some(export), Memory::One(buffer)) = (piece.export(), memory) {
        // SAFETY: the caller guarantees that `memory` is valid.
        let into = unsafe { std::slice::from_raw_parts_mut(*buffer, request.length_bytes as usize) };
        return export.carry_out(&Request { offset_bytes, ..*request }, into);
    }
    if let Some(namespace) = piece.namespace() {
        // A request longer than a buffer does not use its contents, so temporary memory is enough.
        let mut own = Vec::new();
        let buffer = match memory {
            Memory::One(buffer) => *buffer,
            Memory::Many(_) => {
                own.resize(request.length_bytes as usize, 0u8);
                own.as_mut_ptr()
            }
        };
        // SAFETY: the caller guarantees that `memory` is valid, or the memory is local and kept until the call returns.
        return unsafe { namespace.carry_out(request, offset_bytes, buffer) };
    }
    let fd = piece.fd();
    let offset = offset_bytes as libc::off_t;
    let one;
    let data: &[libc::iovec] = match memory {
        Memory::One(buffer) => {
            one = [libc::iovec { iov_base: buffer.cast(), iov_len: request.length_bytes as usize }];
            &one
        }
        Memory::Many(pieces) => pieces,
    };
    let count = data.len() as libc::c_int;
    // SAFETY: the caller guarantees that `memory` is valid; the file stays open for as long as the map is used.
    let result = unsafe {
        match request.kind {
            Kind::Read => libc::preadv(fd, data.as_ptr(), count, offset),
            Kind::Write => {
                let flags = if request.force_unit_access { libc::RWF_DSYNC } else { 0 };
                newer_calls::pwritev2(fd, data.as_ptr(), count, offset, flags)
            }
            _ => return trim(fd, piece.is_device(), offset_bytes, request.length_bytes),
        }
    };
    if result < 0 { last_error() } else { result as i32 }
}

/// Trims a range. Returns 0 or the negative error number.
pub fn trim(fd: i32, is_device: bool, offset_bytes: u64, length_bytes: u32) -> i32 {
    let range = [offset_bytes, u64::from(length_bytes)];
    // SAFETY: the kernel reads two numbers, or takes its arguments by value.
    let result = unsafe {
        if is_device {
            libc::ioctl(fd, BLKDISCARD, range.as_ptr())
        } else {
            libc::fallocate(fd, PUNCH_HOLE, offset_bytes as libc::off_t, libc::off_t::from(length_bytes))
        }
    };
    if result < 0 { last_error() } else { 0 }
}

/// Flushes the data of every file, and with `with_metadata` also metadata that is not needed to read the data. Returns
/// 0 or the first negative error number.
pub fn flush(map: &TargetMap, with_metadata: bool) -> i32 {
    for piece in map.pieces() {
        if let Some(namespace) = piece.namespace() {
            match namespace.flush() {
                0 => continue,
                failed => return failed,
            }
        }
        // SAFETY: takes only a number.
        let result = unsafe { if with_metadata { libc::fsync(piece.fd()) } else { libc::fdatasync(piece.fd()) } };
        if result < 0 {
            return last_error();
        }
    }
    0
}

fn last_error() -> i32 {
    -io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}
