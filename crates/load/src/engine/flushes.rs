//! [`Flushes`]: flushes of several files, where each file completes separately.

use super::Completion;

/// Flushes in flight: slot, number of files still to be flushed, and the first error so far.
#[derive(Default)]
pub struct Flushes(Vec<(u32, u32, i32)>);

impl Flushes {
    /// Starts the flush of `files` files for a slot.
    pub fn begin(&mut self, slot: u32, files: u32) {
        self.0.push((slot, files, 0));
    }

    /// Counts one flushed file of a slot. Returns the completion if this was the last file.
    pub fn ended(&mut self, slot: u32, result: i32) -> Option<Completion> {
        let at = self.0.iter().position(|flush| flush.0 == slot).expect("the slot has a flush in flight");
        let (_, files, first) = &mut self.0[at];
        *files -= 1;
        *first = if *first < 0 { *first } else { result };
        (*files == 0).then(|| Completion { slot, result: self.0.swap_remove(at).2 })
    }
}
