//! Writes of an array with a write-intent bitmap ([`Intent`](super::intent::Intent)): when the bitmap is written, and
//! which writes wait for it.

use headstack_workload::{Kind, Request};

use super::intent::{Bit, Waiting};
use super::levels::Placing;
use super::state::{Array, Event};
use super::under_way::Owner;

/// Size of the bitmap and of a superblock, in bytes.
const PAGE_BYTES: u32 = 4096;

impl Array {
    /// Lets a write of a group begin if its bits are set; otherwise the write waits. Returns whether it may begin.
    pub(super) fn declare_write(
        &mut self,
        now_ns: u64,
        operation: u32,
        group: u32,
        offset_bytes: u64,
        length_bytes: u64,
    ) -> bool {
        let Some(intent) = &mut self.intents[group as usize] else { return true };
        let mut places = std::mem::take(&mut self.places);
        places.clear();
        self.groups[group as usize].layout.places(offset_bytes, length_bytes, &mut places);
        let first = places.iter().map(|place| place.at_bytes).min().unwrap_or(0);
        let last = places.iter().map(|place| place.end_bytes() - 1).max().unwrap_or(0);
        self.places = places;
        let chunks = (first / intent.table.chunk_bytes, last / intent.table.chunk_bytes);
        let may_begin = intent.declare(now_ns, chunks);
        let state = self.operations.get_mut(operation);
        state.chunks = Some(chunks);
        if may_begin {
            return true;
        }
        state.pending += 1;
        intent.next.push(Waiting { operation, offset_bytes, length_bytes });
        if intent.pending == 0 {
            self.write_bitmap(now_ns, group);
        }
        false
    }

    /// Writes the bitmap to every member that serves; each flushes its cache first.
    fn write_bitmap(&mut self, now_ns: u64, group: u32) {
        let Some(intent) = &mut self.intents[group as usize] else { return };
        debug_assert!(intent.waiting.is_empty() && intent.pending == 0, "one write of the bitmap at a time");
        std::mem::swap(&mut intent.waiting, &mut intent.next);
        intent.change(Bit::Asked, Bit::Written);
        intent.written += 1;
        // One more than there are, so that the count reaches zero only after all have begun.
        intent.pending = 1;
        for slot in 0..self.groups[group as usize].layout.slots() {
            let Some(member) = self.groups[group as usize].live_member(slot) else { continue };
            if let Some(intent) = &mut self.intents[group as usize] {
                intent.pending += 1;
            }
            self.issue(now_ns, member, Owner::Bitmap(group), metadata(Kind::Flush));
        }
        self.bitmap_part_done(now_ns, group);
    }

    /// Handles a member that has flushed its cache or has written the bitmap.
    pub(super) fn bitmap_command_done(&mut self, now_ns: u64, group: u32, member: u32, kind: Kind) {
        if kind == Kind::Flush && !self.missing[member as usize] {
            return self.issue(now_ns, member, Owner::Bitmap(group), metadata(Kind::Write));
        }
        self.bitmap_part_done(now_ns, group);
    }

    fn bitmap_part_done(&mut self, now_ns: u64, group: u32) {
        let Some(intent) = &mut self.intents[group as usize] else { return };
        intent.pending -= 1;
        if intent.pending > 0 {
            return;
        }
        intent.change(Bit::Written, Bit::Set);
        let waiting = std::mem::take(&mut intent.waiting);
        if !std::mem::replace(&mut intent.daemon_is_set, true) {
            let pass_ns = now_ns + intent.table.daemon_ns;
            self.at(pass_ns, Event::Bitmap(group));
        }
        for Waiting { operation, offset_bytes, length_bytes } in waiting {
            self.write_data(now_ns, operation, group, offset_bytes, length_bytes);
            self.operation_part_done(now_ns, operation);
        }
        self.write_bitmap_again(now_ns, group);
    }

    /// Writes the bitmap again for writes that were requested meanwhile.
    fn write_bitmap_again(&mut self, now_ns: u64, group: u32) {
        let is_requested =
            self.intents[group as usize].as_ref().is_some_and(|own| own.pending == 0 && !own.next.is_empty());
        if is_requested {
            self.write_bitmap(now_ns, group);
        }
    }

    /// Handles the completion of a write of data.
    pub(super) fn write_declared_done(&mut self, now_ns: u64, group: u32, chunks: (u64, u64)) {
        let Some(intent) = &mut self.intents[group as usize] else { return };
        intent.writes -= 1;
        intent.idle_since_ns = now_ns;
        for at in chunks.0..=chunks.1 {
            let chunk = intent.chunks.get_mut(&at).expect("a chunk that is written is known");
            chunk.writes -= 1;
        }
    }

    /// Runs a pass of the bitmap daemon, which runs again while bits are set.
    pub(super) fn bitmap_daemon(&mut self, now_ns: u64, group: u32) {
        let Some(intent) = &mut self.intents[group as usize] else { return };
        let is_cleared = intent.pass();
        intent.daemon_is_set = !intent.chunks.is_empty();
        let (pass_ns, is_free) = (now_ns + intent.table.daemon_ns, intent.pending == 0);
        if intent.daemon_is_set {
            self.at(pass_ns, Event::Bitmap(group));
        }
        if is_cleared && is_free {
            self.write_bitmap(now_ns, group);
        }
    }
}

/// Returns the write of the bitmap, which is at the beginning of the members (metadata 1.2), or the flush before it.
fn metadata(kind: Kind) -> Request {
    let length_bytes = if kind == Kind::Flush { 0 } else { PAGE_BYTES };
    Request { kind, offset_bytes: 0, length_bytes, force_unit_access: kind == Kind::Write, ordered: false }
}
