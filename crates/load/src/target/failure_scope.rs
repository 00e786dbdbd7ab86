//! [`FailureScope`]: how a failed request affects the rest of a run.

use std::io;

use headstack_workload::quantity::format_bytes;
use headstack_workload::{Kind, Request};

use super::{Target, TargetKind, kernel};
use crate::buffers::ALIGN_BYTES;
use crate::nvme::{StatusScope, status_of};

/// Whether a run continues after a failed request, with a one-line description of the failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FailureScope {
    /// Only this request failed, for example because of a bad sector or a time-out. It is counted, and the run
    /// continues.
    CountOn(String),
    /// All later requests would fail too. The run ends, and its results so far are kept.
    End(String),
}

impl Target {
    /// Classifies a `request` of which only `bytes` were transferred, because the target has shrunk or vanished.
    pub fn classify_short(&self, request: &Request, bytes: u32) -> FailureScope {
        let (kind, length, offset) = (request.kind.name(), request.length_bytes, request.offset_bytes);
        let what =
            format!("{kind} of {} at byte {offset}: only {bytes} bytes were transferred", format_bytes(length.into()));
        if self.has_vanished() {
            return FailureScope::End(format!("{}: {what}: the device has vanished", self.name));
        }
        FailureScope::CountOn(what)
    }

    /// Classifies a `request` that failed with the error number `errno`.
    pub fn classify(&self, request: &Request, errno: i32) -> FailureScope {
        let what = match request.kind {
            Kind::Flush => "flush".to_owned(),
            kind => format!(
                "{} of {} at byte {}",
                kind.name(),
                format_bytes(request.length_bytes.into()),
                request.offset_bytes
            ),
        };
        match status_of(errno) {
            Some((words, StatusScope::ThisCommand)) => return FailureScope::CountOn(format!("{what}: {words}")),
            Some((words, StatusScope::AllAlike)) => {
                return FailureScope::End(format!("{}: {what}: {words}", self.name));
            }
            None => {}
        }
        let error = io::Error::from_raw_os_error(errno);
        let meaning = match errno {
            libc::ENOSPC => self.full(),
            libc::EDQUOT => "this user's quota is exceeded".to_owned(),
            libc::EROFS => "it has become read-only, as file systems do after an error".to_owned(),
            libc::ENODEV | libc::ENXIO | libc::ENOMEDIUM => "the device has vanished".to_owned(),
            libc::ENOTCONN | libc::ECONNABORTED | libc::ECONNRESET | libc::ESHUTDOWN | libc::EPIPE | libc::ESTALE => {
                "its server has ended or is disconnected".to_owned()
            }
            libc::EACCES | libc::EPERM | libc::EBADF => "such requests are not allowed".to_owned(),
            libc::EFBIG => "it is above the largest size allowed".to_owned(),
            libc::EOPNOTSUPP if request.kind == Kind::Write => "the target does not support writes with FUA".to_owned(),
            libc::EOPNOTSUPP => format!("the target does not support {}", request.kind.name()),
            libc::EMSGSIZE | libc::EINVAL if self.longest_bytes().is_some_and(|most| request.length_bytes > most) => {
                let most = self.longest_bytes().unwrap_or_default();
                format!("it accepts requests of up to {}", format_bytes(most.into()))
            }
            libc::EINVAL => self.invalid(request),
            libc::EPROTO if self.export().is_some() => "its server sent an invalid NBD reply".to_owned(),
            // The block layer reports most drive errors as EIO, including that of a vanished drive.
            _ if self.has_vanished() => "the device has vanished".to_owned(),
            libc::ENODATA | libc::EILSEQ => {
                return FailureScope::CountOn(format!("{what}: medium error ({error})"));
            }
            _ => return FailureScope::CountOn(format!("{what}: {error}")),
        };
        FailureScope::End(format!("{}: {what}: {meaning} ({error})", self.name))
    }

    fn full(&self) -> String {
        match self.kind {
            TargetKind::File => "the file system is full, and the file has unallocated blocks".to_owned(),
            // Thin volumes, and drives with less than their stated capacity, run out of space too.
            TargetKind::BlockDevice | TargetKind::Namespace | TargetKind::Export | TargetKind::Null => {
                "the device has run out of backing space".to_owned()
            }
        }
    }

    /// Returns the reason why the kernel rejected a request as invalid. Memory is page-aligned here, so a target that
    /// needs more alignment is a separate case. If the request is aligned, only the driver or server knows the reason.
    fn invalid(&self, request: &Request) -> String {
        let block_bytes = u64::from(self.block_bytes());
        let aligned = |bytes: u64| bytes.is_multiple_of(block_bytes);
        if !aligned(request.offset_bytes) || !aligned(request.length_bytes.into()) {
            return format!("offsets and lengths must be multiples of {block_bytes} bytes");
        }
        if self.memory_align_bytes() as usize > ALIGN_BYTES {
            return format!(
                "it requires buffers aligned to {} bytes; the supported maximum is {ALIGN_BYTES}",
                self.memory_align_bytes()
            );
        }
        if self.has_vanished() {
            return "the device has vanished".to_owned();
        }
        let device = self.opened().and_then(|opened| opened.block.as_ref());
        match device.and_then(|block| block.disk().attribute_u64("queue/logical_block_size")) {
            Some(now_bytes) if self.kind == TargetKind::BlockDevice && now_bytes > block_bytes => {
                format!("its block size changed from {block_bytes} to {now_bytes} bytes")
            }
            _ => format!(
                "its driver or server rejects the request, although offset and length are multiples of \
                 {block_bytes} bytes; it may be shutting down or changing"
            ),
        }
    }

    fn has_vanished(&self) -> bool {
        let Some(opened) = self.opened() else { return false };
        match self.kind {
            TargetKind::BlockDevice | TargetKind::Namespace => {
                // A vanished device has size 0, and its number in sysfs is gone or belongs to another device.
                kernel::capacity_bytes(&opened.file).map_or(true, |bytes| bytes == 0)
                    || opened.block.as_ref().is_some_and(|block| !block.is_present())
            }
            TargetKind::File => opened.block.as_ref().is_some_and(|block| !block.is_present()),
            TargetKind::Export | TargetKind::Null => false,
        }
    }
}
