//! [`Device`]: the common part of all exports: the address space, the contents and the connection to the clock.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use headstack_sim::power_cut::CHANGE_BYTES_MAX;
use headstack_workload::{Request, Span};

use crate::budget::Share;
use crate::contents::Contents;
use crate::pacer::{Answer, Session, Submitter};
use crate::power::Change;

/// A LUN as clients see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// Name by which clients select the export.
    pub name: String,
    /// Description for the user.
    pub description: String,
    /// Range of the export in the system's address space.
    pub span: Span,
    /// Alignment of requests in bytes.
    pub block_bytes: u32,
    /// Whether the LUN is on HDDs.
    pub is_rotational: bool,
}

/// A system as exported over one path, created by [`of`](Self::of). A clone with another [`Submitter`] exports the data
/// over another path.
#[derive(Clone, Debug)]
pub struct Device {
    /// Exported LUNs; the first is the default.
    pub exports: Vec<Export>,
    /// Data of the system.
    pub contents: Contents,
    /// Connection to the clock.
    pub submitter: Submitter,
}

impl Device {
    /// Creates the device of a session with these LUNs and contents. A power loss affects the contents according to the
    /// session's model.
    ///
    /// # Panics
    /// Panics if the session already has a device.
    pub fn of(session: &Session, exports: Vec<Export>, contents: Contents) -> Arc<Device> {
        session.keeps(contents.clone());
        Arc::new(Device { exports, contents, submitter: session.submitter() })
    }

    /// Returns the export with the given name; the first export for an empty name.
    pub fn export(&self, name: &str) -> Option<&Export> {
        if name.is_empty() { self.exports.first() } else { self.exports.iter().find(|export| export.name == name) }
    }

    /// Changes the contents as `request` requires and submits it to the clock, in one step: a power loss affects both
    /// or neither. With `forced`, the change must be durable when it is acknowledged (FUA). `answer` is called on
    /// success, with the remaining memory in `share`.
    ///
    /// # Errors
    /// Returns the file system's error; the contents are then unchanged.
    pub fn change(
        &self,
        at: Instant,
        request: Request,
        change: Change<'_>,
        forced: bool,
        share: &mut Share,
        answer: impl FnOnce(&mut Share) -> Box<dyn Answer>,
    ) -> io::Result<()> {
        self.submitter.submit_change(at, request, (&self.contents, change, forced), share, answer)
    }

    /// Returns the memory in bytes for the previous contents if a request of `length_bytes` changes them.
    pub fn undo_bytes(&self, length_bytes: u64) -> u64 {
        let is_kept = self.submitter.gate().keeps_log() && length_bytes <= CHANGE_BYTES_MAX;
        if is_kept { length_bytes } else { 0 }
    }

    /// Grows `share` to `bytes`, waiting if necessary; returns false if `is_wanted` becomes false first.
    pub fn make_room(&self, share: &mut Share, bytes: u64, is_wanted: &dyn Fn() -> bool) -> bool {
        share.grow(bytes, &mut || {
            // A failure to free space does not concern this request.
            let _ = self.submitter.gate().tidy(&self.contents);
            is_wanted()
        })
    }

    /// Reads the data at an address as clients see it.
    ///
    /// # Errors
    /// Returns the file system's error.
    pub fn read(&self, start_bytes: u64, into: &mut [u8]) -> io::Result<()> {
        self.submitter.gate().read(&self.contents, start_bytes, into)
    }

    /// Whether power is on.
    pub fn has_power(&self) -> bool {
        self.submitter.gate().is_on()
    }

    /// Returns the number of power losses; connections from before the last loss are void.
    pub fn power_cuts(&self) -> u32 {
        self.submitter.gate().cuts()
    }
}
