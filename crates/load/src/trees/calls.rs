//! System calls on names relative to an open directory.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// `RESOLVE_NO_SYMLINKS` and `RESOLVE_BENEATH` of `openat2(2)`.
const RESOLVE: u64 = 0x04 | 0x08;

/// `struct open_how` of `openat2(2)`.
#[repr(C)]
struct OpenHow {
    flags: u64,
    mode: u64,
    resolve: u64,
}

fn name(path: &str) -> io::Result<CString> {
    CString::new(path).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))
}

fn check(returned: libc::c_int) -> io::Result<()> {
    if returned < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Opens `path` below `folder`, without following symbolic links.
///
/// # Errors
/// Returns the kernel's error, which is `ENOSYS` before Linux 5.6.
pub fn open(folder: BorrowedFd, path: &str, flags: libc::c_int) -> io::Result<OwnedFd> {
    let path = name(path)?;
    let mode = if flags & libc::O_CREAT != 0 { 0o644 } else { 0 };
    let how = OpenHow { flags: (flags | libc::O_CLOEXEC) as u64, mode, resolve: RESOLVE };
    // SAFETY: passes a NUL-terminated string and a structure of the stated size, both valid during the call.
    let fd = unsafe {
        libc::syscall(libc::SYS_openat2, folder.as_raw_fd(), path.as_ptr(), &raw const how, size_of::<OpenHow>())
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new, and this value takes ownership of it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

/// Creates a directory.
pub fn mkdir(folder: BorrowedFd, path: &str) -> io::Result<()> {
    let path = name(path)?;
    // SAFETY: passes a NUL-terminated string that is valid during the call, as do all calls below.
    check(unsafe { libc::mkdirat(folder.as_raw_fd(), path.as_ptr(), 0o755) })
}

/// Removes a file or an empty directory.
pub fn remove(folder: BorrowedFd, path: &str, is_folder: bool) -> io::Result<()> {
    let path = name(path)?;
    let flags = if is_folder { libc::AT_REMOVEDIR } else { 0 };
    // SAFETY: as above.
    check(unsafe { libc::unlinkat(folder.as_raw_fd(), path.as_ptr(), flags) })
}

/// Returns whether the path is a regular file, and its length in bytes.
pub fn status(folder: BorrowedFd, path: &str) -> io::Result<(bool, u64)> {
    let path = name(path)?;
    let mut status = std::mem::MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: as above; the kernel fills the structure, which is valid if all zeros.
    let status = unsafe {
        check(libc::fstatat(folder.as_raw_fd(), path.as_ptr(), status.as_mut_ptr(), libc::AT_SYMLINK_NOFOLLOW))?;
        status.assume_init()
    };
    Ok((status.st_mode & libc::S_IFMT == libc::S_IFREG, status.st_size as u64))
}

/// Checks that the file may be read.
pub fn access(folder: BorrowedFd, path: &str) -> io::Result<()> {
    let path = name(path)?;
    // SAFETY: as above.
    check(unsafe { libc::faccessat(folder.as_raw_fd(), path.as_ptr(), libc::R_OK, 0) })
}

/// Sets access and modification time of a file to now.
pub fn touch(folder: BorrowedFd, path: &str) -> io::Result<()> {
    let path = name(path)?;
    // SAFETY: as above; a null pointer for the times means now.
    check(unsafe { libc::utimensat(folder.as_raw_fd(), path.as_ptr(), std::ptr::null(), libc::AT_SYMLINK_NOFOLLOW) })
}

/// Moves a file to a name that does not exist yet.
pub fn rename(from: BorrowedFd, path: &str, to: BorrowedFd, new: &str) -> io::Result<()> {
    const RENAME_NOREPLACE: libc::c_uint = 1;
    let (path, new) = (name(path)?, name(new)?);
    // SAFETY: as above.
    check(unsafe {
        crate::newer_calls::renameat2(from.as_raw_fd(), path.as_ptr(), to.as_raw_fd(), new.as_ptr(), RENAME_NOREPLACE)
    })
}

/// Closes a file. Returns the error of its file system, if any.
pub fn close(file: OwnedFd) -> io::Result<()> {
    // SAFETY: this value owns the descriptor and gives it up.
    check(unsafe { libc::close(std::os::fd::IntoRawFd::into_raw_fd(file)) })
}
