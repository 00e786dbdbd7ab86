//! The status of failed NVMe commands.
//!
//! A status consists of a type and a code: see figures 95 to 98 of the NVM Express Base Specification 2.0, figures 15
//! to 17 of the NVM Command Set Specification, and figure 12 of the Zoned Namespace Command Set Specification. The
//! result of a failed request is a negative number: a kernel error number, or the status plus an offset above the
//! largest error number.

use std::io;

/// Offset of drive statuses: `MAX_ERRNO` of Linux is 4095.
const FIRST: i32 = 4096;
/// Mask of type and code; higher bits state whether and when to retry.
const TYPE_AND_CODE: i32 = 0x7ff;

/// Whether a failure affects other commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusScope {
    /// Only this command fails, because of its place or time.
    ThisCommand,
    /// All similar commands fail.
    AllAlike,
}

/// Converts the kernel's result of a command into the result of a request of `bytes`.
#[inline]
pub fn result_of(kernel_result: i32, bytes: u32) -> i32 {
    match kernel_result {
        0 => bytes as i32,
        kernel_result if kernel_result > 0 => -(FIRST + (kernel_result & TYPE_AND_CODE)),
        errno => errno,
    }
}

/// Returns the drive's message for a failure, and its scope; `None` if `errno` is a kernel error.
///
/// ```ignore
/// assert_eq!(status_of(4096 + 0x80).unwrap().0, "LBA out of range (status 0/80h)");
/// ```
pub fn status_of(errno: i32) -> Option<(String, StatusScope)> {
    let status = errno.checked_sub(FIRST).filter(|status| (0..=TYPE_AND_CODE).contains(status))?;
    let (kind, code) = (status >> 8, status & 0xff);
    let words = match kind {
        0 => generic(code),
        1 => specific(code),
        2 => medium(code),
        3 => path(code),
        _ => None,
    };
    let words = words.unwrap_or(if kind == 7 { "vendor-specific status" } else { "unknown status" });
    let scope = match (kind, code) {
        // Transfer errors, aborts, a busy drive, or ranges reserved by others.
        (0, 0x04 | 0x06..=0x0a | 0x1d | 0x20..=0x22 | 0x82..=0x84) => StatusScope::ThisCommand,
        (1, 0xb8..=0xbf) => StatusScope::ThisCommand,
        (2 | 3 | 7, _) => StatusScope::ThisCommand,
        _ => StatusScope::AllAlike,
    };
    Some((format!("{words} (status {kind}/{code:02x}h)"), scope))
}

/// Returns the message for the error number of a failed request, from the drive or from the kernel.
pub fn words_of(errno: i32) -> String {
    status_of(errno).map_or_else(|| io::Error::from_raw_os_error(errno).to_string(), |(words, _)| words)
}

fn generic(code: i32) -> Option<&'static str> {
    Some(match code {
        0x01 => "unsupported command",
        0x02 => "invalid field in the command",
        0x03 => "the command's identifier is in use",
        0x04 => "the data could not be transferred",
        0x05 => "aborted due to power loss notification",
        0x06 => "internal error of the drive",
        0x07 => "aborted on request",
        0x08 => "aborted due to deletion of its queue",
        0x09 | 0x0a => "aborted due to a failed fused command",
        0x0b => "invalid namespace or format",
        0x0c => "command sequence error",
        0x0d..=0x11 => "invalid SGL segment descriptor",
        0x12 => "invalid use of the controller's memory",
        0x13 => "invalid page of memory",
        0x14 => "atomic write unit exceeded",
        0x15 => "denied",
        0x1c => "a sanitize operation failed; other commands are not allowed",
        0x1d => "a sanitize operation is in progress",
        0x20 => "the namespace is write-protected",
        0x21 => "interrupted; retry the command",
        0x22 => "transient transport error",
        0x80 => "LBA out of range",
        0x81 => "capacity exceeded",
        0x82 => "the namespace is not ready",
        0x83 => "reservation conflict with another host",
        0x84 => "the namespace is being formatted",
        _ => return None,
    })
}

fn specific(code: i32) -> Option<&'static str> {
    Some(match code {
        0x80 => "conflicting attributes",
        0x81 => "invalid protection information",
        0x82 => "the range is read-only",
        0x83 => "the command exceeds the drive's size limit",
        0xb8 => "the range crosses the end of its zone",
        0xb9 => "the zone is full",
        0xba => "the zone is read-only",
        0xbb => "the zone is offline",
        0xbc => "the write is not at the write pointer of its zone",
        0xbd => "too many zones are active",
        0xbe => "too many zones are open",
        0xbf => "invalid zone state transition",
        _ => return None,
    })
}

fn medium(code: i32) -> Option<&'static str> {
    Some(match code {
        0x80 => "write fault of the medium",
        0x81 => "unrecovered read error of the medium",
        0x82..=0x84 | 0x88 => "the data do not match their protection information",
        0x85 => "compare failure",
        0x86 => "access is denied",
        0x87 => "the block was deallocated, or never written",
        _ => return None,
    })
}

fn path(code: i32) -> Option<&'static str> {
    Some(match code {
        0x00 => "internal path error",
        0x01..=0x03 => "the namespace is not accessible on this path",
        0x60 => "the controller cannot access the namespace",
        0x70 => "the host cannot reach the controller",
        0x71 => "aborted by the host",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_results_decode_to_length_errno_or_nvme_status() {
        assert_eq!(result_of(0, 4096), 4096);
        assert_eq!(result_of(-libc::EINVAL, 4096), -libc::EINVAL);
        assert_eq!(status_of(libc::EINVAL), None);
        assert_eq!(status_of(4095), None);
        // Includes the bit "do not retry", as drives report it.
        let out_of_range = result_of(0x4080, 4096);
        let decoded = status_of(-out_of_range).unwrap();
        assert_eq!(decoded, ("LBA out of range (status 0/80h)".to_owned(), StatusScope::AllAlike));
        let unreadable = status_of(-result_of(0x281, 4096)).unwrap();
        assert_eq!(
            unreadable,
            ("unrecovered read error of the medium (status 2/81h)".to_owned(), StatusScope::ThisCommand)
        );
        let (unknown, _) = status_of(-result_of(0x7c0, 4096)).unwrap();
        assert_eq!(unknown, "vendor-specific status (status 7/c0h)");
        assert_eq!(status_of(4096 + 0x800), None);
    }
}
