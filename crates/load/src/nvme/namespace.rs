//! [`Namespace`]: an open NVMe namespace, and individual commands to it.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};

use headstack_workload::{Kind, Request};

use super::{Command, Geometry, TrimRange, result_of, words_of};

/// `linux/nvme_ioctl.h`: _IO('N', 0x40), _IOWR('N', 0x41, struct nvme_passthru_cmd), _IOWR('N', 0x43, the same).
const NVME_IOCTL_ID: libc::Ioctl = 0x4e40;
const NVME_IOCTL_ADMIN_CMD: libc::Ioctl = 0xc048_4e41_u32 as libc::Ioctl;
const NVME_IOCTL_IO_CMD: libc::Ioctl = 0xc048_4e43_u32 as libc::Ioctl;

/// CNS of the structures that Identify returns: of a namespace, and of its controller.
const OF_NAMESPACE: u32 = 0;
const OF_CONTROLLER: u32 = 1;

/// An open namespace.
#[derive(Debug)]
pub struct Namespace {
    file: File,
    geometry: Geometry,
    is_durable: bool,
}

impl Namespace {
    /// Opens the namespace behind a character device. With `is_durable`, a write completes only when it is on the
    /// medium.
    ///
    /// # Errors
    /// Returns an error if the kernel or the drive does not describe the namespace. The text continues a sentence that
    /// begins with the namespace's name.
    pub fn new(file: File, is_durable: bool) -> Result<Namespace, String> {
        // SAFETY: the call takes no argument.
        let id = unsafe { libc::ioctl(file.as_raw_fd(), NVME_IOCTL_ID) };
        let id = u32::try_from(id)
            .map_err(|_| format!("is a character device but not an NVMe namespace ({})", io::Error::last_os_error()))?;
        let identified = |structure| {
            let mut page = Box::new([0u8; 4096]);
            let namespace = if structure == OF_NAMESPACE { id } else { 0 };
            let mut command = Command::identify(namespace, structure, &mut page);
            match call(&file, NVME_IOCTL_ADMIN_CMD, &mut command) {
                0 => Ok(page),
                failed => Err(format!("cannot be identified: {}", words_of(-result_of(failed, 0)))),
            }
        };
        let controller = identified(OF_CONTROLLER)?;
        let geometry = Geometry::new(id, &*identified(OF_NAMESPACE)?, controller[77])?;
        Ok(Namespace { file, geometry, is_durable })
    }

    /// Limits commands to `bytes`.
    pub fn with_longest(mut self, bytes: u32) -> Namespace {
        self.geometry.longest_bytes = self.geometry.longest_bytes.min(bytes);
        self
    }

    /// Returns the descriptor of the open file.
    pub fn fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// Returns block size, capacity and limits of the namespace.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Returns whether a write completes only when it is on the medium.
    pub fn is_durable(&self) -> bool {
        self.is_durable
    }

    /// Executes a request at `offset_bytes` with its data at `memory`, and waits for its completion. Returns the bytes
    /// transferred, or a negative number as defined by [`result_of`]. A request longer than a command is split into
    /// several consecutive ones.
    ///
    /// # Safety
    /// `memory` must be valid for the length of the request until this returns, and no one else may use its contents.
    pub unsafe fn carry_out(&self, request: &Request, offset_bytes: u64, memory: *mut u8) -> i32 {
        match request.kind {
            Kind::Read | Kind::Write => {
                let mut done_bytes = 0;
                while done_bytes < request.length_bytes {
                    let length_bytes = self.geometry.longest_bytes.min(request.length_bytes - done_bytes);
                    let part = Request { length_bytes, ..*request };
                    let at_bytes = offset_bytes + u64::from(done_bytes);
                    // SAFETY: the address is within the caller's memory.
                    let to = unsafe { memory.add(done_bytes as usize) };
                    let mut command = Command::transfer(&part, at_bytes, &self.geometry, to as u64, self.is_durable);
                    match call(&self.file, NVME_IOCTL_IO_CMD, &mut command) {
                        0 => done_bytes += length_bytes,
                        failed => return result_of(failed, 0),
                    }
                }
                result_of(0, request.length_bytes)
            }
            Kind::Trim => self.trim(offset_bytes, request.length_bytes.into()),
            Kind::Flush => self.flush(),
        }
    }

    /// Trims a range. Returns 0, or a negative number as defined by [`result_of`].
    pub fn trim(&self, offset_bytes: u64, length_bytes: u64) -> i32 {
        let range = TrimRange::new(offset_bytes, length_bytes, &self.geometry);
        let mut command = Command::trim(&raw const range, &self.geometry);
        result_of(call(&self.file, NVME_IOCTL_IO_CMD, &mut command), 0)
    }

    /// Flushes the drive's write cache. Returns 0, or a negative number as defined by [`result_of`].
    pub fn flush(&self) -> i32 {
        result_of(call(&self.file, NVME_IOCTL_IO_CMD, &mut Command::flush(&self.geometry)), 0)
    }
}

/// Submits a command and waits. Returns 0, a positive drive status, or a negative kernel error number.
fn call(file: &File, how: libc::Ioctl, command: &mut Command) -> i32 {
    // SAFETY: the kernel reads and writes a command, and memory that the command's creator keeps until this returns.
    match unsafe { libc::ioctl(file.as_raw_fd(), how, &raw mut *command) } {
        -1 => -io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO),
        status => status,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_character_device_is_refused() {
        let error = Namespace::new(File::open("/dev/null").unwrap(), false).unwrap_err();
        assert!(error.starts_with("is a character device but not an NVMe namespace"), "{error}");
    }
}
