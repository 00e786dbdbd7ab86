//! What goes wrong in mid-run.

use std::io;

use headstack_workload::Request;

/// The first failures are told one by one.
const TOLD: usize = 4;

/// Failures of a job.
#[derive(Clone, Debug, Default)]
pub struct Trouble {
    /// The first of them, in words.
    pub first: Vec<String>,
    /// All of them.
    pub count: u64,
    /// The one after which nothing goes on.
    pub fatal: Option<String>,
}

/// Whether what failed with this error will fail again and again.
pub fn is_fatal(error: i32) -> bool {
    matches!(
        error,
        libc::ENOSPC
            | libc::EDQUOT
            | libc::EROFS
            | libc::ENODEV
            | libc::ENXIO
            | libc::EINVAL
            | libc::EBADF
            | libc::EPERM
            | libc::EACCES
            | libc::EFBIG
            | libc::EOPNOTSUPP
            | libc::ENOMEDIUM
            | libc::EFAULT
    )
}

impl Trouble {
    /// Books a failed request; `result` is the negative error number, or the bytes of a short transfer.
    pub fn add(&mut self, request: &Request, result: i32) {
        self.count += 1;
        let what = format!("{} of {} bytes at {}", request.kind.name(), request.length_bytes, request.offset_bytes);
        let message = if result < 0 {
            format!("{what}: {}", explained(-result))
        } else {
            format!("{what}: only {result} bytes were transferred")
        };
        if result < 0 && is_fatal(-result) && self.fatal.is_none() {
            self.fatal = Some(message.clone());
        }
        if self.first.len() < TOLD {
            self.first.push(message);
        }
    }

    /// Adds what went wrong in another job.
    pub fn merge(&mut self, other: Trouble) {
        self.count += other.count;
        self.first.extend(other.first);
        self.first.truncate(TOLD);
        self.fatal = self.fatal.take().or(other.fatal);
    }
}

/// An error number in words, with what it means to a measurement.
fn explained(error: i32) -> String {
    let text = io::Error::from_raw_os_error(error).to_string();
    let meaning = match error {
        libc::ENOSPC | libc::EDQUOT => "the disk is full",
        libc::EROFS | libc::EPERM | libc::EACCES => "it cannot be written",
        libc::ENODEV | libc::ENXIO | libc::ENOMEDIUM => "the device is gone",
        libc::EINVAL => "the kernel does not take such a request: is it aligned to the device's blocks?",
        libc::EOPNOTSUPP => "the target does not know such requests",
        libc::EIO => "the device failed",
        _ => return text,
    };
    format!("{meaning} ({text})")
}
