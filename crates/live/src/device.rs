//! What exports share: the address space, the bytes in it, and the way to the clock.

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
    /// What clients ask for.
    pub name: String,
    /// What it is, for people.
    pub description: String,
    /// Its place in the system's address space.
    pub span: Span,
    /// Bytes of which every request is a multiple.
    pub block_bytes: u32,
    /// It has spindles.
    pub is_rotational: bool,
}

/// A system that is exported by one path, as [`of`](Self::of) makes it: a clone with another [`Submitter`] exports
/// the same bytes by another path.
#[derive(Clone, Debug)]
pub struct Device {
    /// Its LUNs; the first is what a client gets that names none.
    pub exports: Vec<Export>,
    /// Its bytes.
    pub contents: Contents,
    /// The way to the clock.
    pub submitter: Submitter,
}

impl Device {
    /// These LUNs, with these bytes, of which a power cut takes what the session's model says. One a session.
    ///
    /// # Panics
    /// There is one already.
    pub fn of(session: &Session, exports: Vec<Export>, contents: Contents) -> Arc<Device> {
        session.keeps(contents.clone());
        Arc::new(Device { exports, contents, submitter: session.submitter() })
    }

    /// The export of that name; the first for an empty one.
    pub fn export(&self, name: &str) -> Option<&Export> {
        if name.is_empty() { self.exports.first() } else { self.exports.iter().find(|export| export.name == name) }
    }

    /// Changes the bytes as `request` does and hands it to the clock, as one step: a power cut finds both or neither.
    /// `forced` is a change that must be durable when it is acknowledged (FUA); `answer` is made when all is well, with what
    /// is left of the memory in `share`.
    ///
    /// # Errors
    /// What the file system says: nothing is changed then.
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

    /// Memory that keeping what is there takes, when a request of `length_bytes` changes it.
    pub fn undo_bytes(&self, length_bytes: u64) -> u64 {
        let is_kept = self.submitter.gate().keeps_log() && length_bytes <= CHANGE_BYTES_MAX;
        if is_kept { length_bytes } else { 0 }
    }

    /// Has `share` be of so many bytes, once there is room for them; false where `is_wanted` says before that nobody waits
    /// for it any more.
    pub fn make_room(&self, share: &mut Share, bytes: u64, is_wanted: &dyn Fn() -> bool) -> bool {
        share.grow(bytes, &mut || {
            // What cannot be given back to the disk is none of this request's business.
            let _ = self.submitter.gate().tidy(&self.contents);
            is_wanted()
        })
    }

    /// What a client reads from an address on.
    ///
    /// # Errors
    /// What the file system says.
    pub fn read(&self, start_bytes: u64, into: &mut [u8]) -> io::Result<()> {
        self.submitter.gate().read(&self.contents, start_bytes, into)
    }

    /// There is power.
    pub fn has_power(&self) -> bool {
        self.submitter.gate().is_on()
    }

    /// How often power failed: connections that were made before the last time are void.
    pub fn power_cuts(&self) -> u32 {
        self.submitter.gate().cuts()
    }
}
