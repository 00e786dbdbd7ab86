//! System calls that glibc 2.17 does not wrap: wheels are linked against it and run with that version or any later one.
//! Each function is like its namesake in `libc`; on a kernel without the call it fails with `ENOSYS`.

use libc::{c_char, c_int, c_long, c_uint, iovec, off_t, size_t, ssize_t};

/// # Safety
/// The requirements of `libc::statx` apply.
pub unsafe fn statx(at: c_int, path: *const c_char, flags: c_int, wanted: c_uint, status: *mut libc::statx) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe { libc::syscall(libc::SYS_statx, at, path, flags, wanted, status) as c_int }
}

/// # Safety
/// The requirements of `libc::renameat2` apply.
pub unsafe fn renameat2(from_at: c_int, from: *const c_char, to_at: c_int, to: *const c_char, flags: c_uint) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe { libc::syscall(libc::SYS_renameat2, from_at, from, to_at, to, flags) as c_int }
}

/// # Safety
/// The requirements of `libc::pwritev2` apply.
pub unsafe fn pwritev2(fd: c_int, data: *const iovec, count: c_int, offset: off_t, flags: c_int) -> ssize_t {
    // If one register holds the whole offset, the kernel ignores the upper half.
    let (low, high) = (offset as c_long, (offset as u64 >> 32) as c_long);
    // SAFETY: guaranteed by the caller.
    unsafe { libc::syscall(libc::SYS_pwritev2, fd, data, c_long::from(count), low, high, flags) as ssize_t }
}

/// # Safety
/// The requirements of `libc::getrandom` apply.
pub unsafe fn getrandom(bytes: *mut libc::c_void, length: size_t, flags: c_uint) -> ssize_t {
    // SAFETY: guaranteed by the caller.
    unsafe { libc::syscall(libc::SYS_getrandom, bytes, length, flags) as ssize_t }
}

/// # Safety
/// The requirements of `libc::memfd_create` apply.
pub unsafe fn memfd_create(name: *const c_char, flags: c_uint) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe { libc::syscall(libc::SYS_memfd_create, name, flags) as c_int }
}
