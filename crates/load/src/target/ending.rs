//! What a request that failed means to the rest of a run.

use std::io;

use headstack_workload::Request;
use headstack_workload::quantity::format_bytes;

use super::{Target, TargetKind, kernel};

/// Whether a run goes on after a request that failed, with what happened in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// This request failed and others need not: a bad sector, a command that timed out. It is counted.
    CountOn(String),
    /// All others would fail like this one: the run ends, and what was measured is kept.
    End(String),
}

impl Target {
    /// What it means that only `bytes` of `request` were transferred: the target ends there by now, or is no more.
    pub fn classify_short(&self, request: &Request, bytes: u32) -> Ending {
        let (kind, length, offset) = (request.kind.name(), request.length_bytes, request.offset_bytes);
        let what =
            format!("{kind} of {} at byte {offset}: only {bytes} bytes were transferred", format_bytes(length.into()));
        if self.has_vanished() {
            return Ending::End(format!("{}: {what}: the device has vanished", self.name));
        }
        Ending::CountOn(what)
    }

    /// What it means that `request` failed with the error number `errno`.
    pub fn classify(&self, request: &Request, errno: i32) -> Ending {
        let error = io::Error::from_raw_os_error(errno);
        let what = match request.kind {
            headstack_workload::Kind::Flush => "flush".to_owned(),
            kind => format!(
                "{} of {} at byte {}",
                kind.name(),
                format_bytes(request.length_bytes.into()),
                request.offset_bytes
            ),
        };
        let meaning = match errno {
            libc::ENOSPC => self.full(),
            libc::EDQUOT => "this user's quota is used up".to_owned(),
            libc::EROFS => "it has become read-only, as file systems do after an error".to_owned(),
            libc::ENODEV | libc::ENXIO | libc::ENOMEDIUM | libc::ESHUTDOWN => "the device has vanished".to_owned(),
            libc::EACCES | libc::EPERM | libc::EBADF => "such requests are not allowed".to_owned(),
            libc::EFBIG => "it lies beyond the largest size that is allowed".to_owned(),
            libc::EOPNOTSUPP => format!("the target has no {}", request.kind.name()),
            libc::EINVAL => self.misaligned(request),
            // The block layer's word for most of what a drive can say, and for a drive that is no more.
            _ if self.has_vanished() => "the device has vanished".to_owned(),
            libc::ENODATA | libc::EILSEQ => {
                return Ending::CountOn(format!("{what}: the medium is bad there ({error})"));
            }
            _ => return Ending::CountOn(format!("{what}: {error}")),
        };
        Ending::End(format!("{}: {what}: {meaning} ({error})", self.name))
    }

    fn full(&self) -> String {
        match self.kind {
            TargetKind::File => "the file system is full: the file has places that were never written".to_owned(),
            // Thin volumes and drives that do not have what they promise.
            TargetKind::BlockDevice | TargetKind::Null => "the device has no room left behind it".to_owned(),
        }
    }

    fn misaligned(&self, request: &Request) -> String {
        let block_bytes = u64::from(self.block_bytes());
        let aligned = |bytes: u64| bytes.is_multiple_of(block_bytes);
        if aligned(request.offset_bytes) && aligned(request.length_bytes.into()) {
            let memory_bytes = self.memory_align_bytes();
            return format!(
                "the kernel refuses it, though its offset and length are multiples of {block_bytes} bytes; its memory must be of {memory_bytes}"
            );
        }
        format!("offsets and lengths must be multiples of {block_bytes} bytes")
    }

    fn has_vanished(&self) -> bool {
        let Some(opened) = &self.opened else { return false };
        match self.kind {
            TargetKind::BlockDevice => {
                // What is gone has no size; a number that sysfs lost, or gave away, is not this device's.
                kernel::capacity_bytes(&opened.file).map_or(true, |bytes| bytes == 0)
                    || opened.block.as_ref().is_some_and(|block| !block.is_present())
            }
            TargetKind::File => opened.block.as_ref().is_some_and(|block| !block.is_present()),
            TargetKind::Null => false,
        }
    }
}
