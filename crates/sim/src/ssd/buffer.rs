//! [`Buffer`]: the write buffer: mapping units that wait to be programmed, oldest first.

/// End of a list.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Slot {
    unit: u32,
    /// Next slot of its list: free, waiting or of a row.
    next: u32,
    /// Whether it belongs to a row, so that its contents are fixed.
    in_row: bool,
}

/// Units that are programmed together.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Number of the row in order of formation.
    pub serial: u64,
    head: u32,
    /// Number of units; fewer than fit if a flush did not wait for more.
    pub units: u32,
    /// Additional time of its program.
    pub delay_ns: u64,
    /// Whether it is programmed with one bit a cell.
    pub slc: bool,
}

impl Row {
    /// Whether it programs a part of the map and no data.
    pub fn is_map_update(&self) -> bool {
        self.units == 0
    }
}

/// The write buffer, in slots of one mapping unit each.
#[derive(Clone, Debug)]
pub struct Buffer {
    /// Slots that were ever in use at once.
    slots: Vec<Slot>,
    /// Maximum number of slots.
    units: u32,
    free: u32,
    /// Number of unreserved slots.
    unreserved: u32,
    oldest: u32,
    youngest: u32,
    /// Number of units that wait for a row.
    pub waiting: u32,
    next_serial: u64,
    /// Rows that were formed and are not yet programmed.
    pub rows_under_way: u32,
}

impl Buffer {
    /// Creates an empty buffer of `units`.
    pub fn new(units: u32) -> Self {
        Buffer {
            slots: Vec::new(),
            units,
            free: NONE,
            unreserved: units,
            oldest: NONE,
            youngest: NONE,
            waiting: 0,
            next_serial: 0,
            rows_under_way: 0,
        }
    }

    /// Reserves `units` slots for data in transit; returns false if there are fewer.
    #[inline]
    pub fn reserve(&mut self, units: u32) -> bool {
        if units > self.unreserved {
            return false;
        }
        self.unreserved -= units;
        true
    }

    /// Releases a reserved slot that is not needed.
    #[inline]
    pub fn give_back(&mut self) {
        self.unreserved += 1;
        debug_assert!(self.unreserved <= self.units, "only what was reserved is given back");
    }

    /// Fills a reserved slot; it waits for its row from now on.
    #[inline]
    pub fn take(&mut self, unit: u32) -> u32 {
        let filled = Slot { unit, next: NONE, in_row: false };
        let slot = if self.free == NONE {
            self.slots.push(filled);
            self.slots.len() as u32 - 1
        } else {
            let slot = self.free;
            self.free = self.slots[slot as usize].next;
            self.slots[slot as usize] = filled;
            slot
        };
        if self.waiting == 0 {
            self.oldest = slot;
        } else {
            self.slots[self.youngest as usize].next = slot;
        }
        self.youngest = slot;
        self.waiting += 1;
        slot
    }

    /// Whether new data for the slot's unit may replace the old.
    #[inline]
    pub fn is_replaceable(&self, slot: u32) -> bool {
        !self.slots[slot as usize].in_row
    }

    /// Forms a row of the oldest units, at most `units_max`.
    pub fn form_row(&mut self, units_max: u32) -> Row {
        let units = units_max.min(self.waiting);
        let row = Row { serial: self.next_serial, head: self.oldest, units, delay_ns: 0, slc: false };
        for _ in 0..units {
            let slot = &mut self.slots[self.oldest as usize];
            slot.in_row = true;
            self.oldest = slot.next;
        }
        self.waiting -= units;
        self.next_serial += 1;
        self.rows_under_way += 1;
        row
    }

    /// Forms a row of a part of the map, which takes `program_ns`.
    pub fn form_map_update(&mut self, program_ns: u64) -> Row {
        let row = Row { serial: self.next_serial, head: NONE, units: 0, delay_ns: program_ns, slc: false };
        self.next_serial += 1;
        self.rows_under_way += 1;
        row
    }

    /// Returns the units of a row.
    pub fn units_of(&self, row: &Row) -> impl Iterator<Item = u32> + '_ {
        let mut slot = row.head;
        (0..row.units).map(move |_| {
            let Slot { unit, next, .. } = self.slots[slot as usize];
            slot = next;
            unit
        })
    }

    /// Returns every slot that ever held a unit, with the last one that it held.
    pub fn slots(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.slots.iter().enumerate().map(|(slot, held)| (slot as u32, held.unit))
    }

    /// Returns the number of units that wait or are being programmed.
    pub fn used(&self) -> u32 {
        self.units - self.unreserved
    }

    /// Returns the number of the next row.
    pub fn next_serial(&self) -> u64 {
        self.next_serial
    }

    /// Frees the slots of a programmed row; calls `programmed` with each (slot, unit).
    #[inline]
    pub fn finish_row(&mut self, row: Row, mut programmed: impl FnMut(u32, u32)) {
        let mut slot = row.head;
        for _ in 0..row.units {
            let Slot { unit, next, .. } = self.slots[slot as usize];
            programmed(slot, unit);
            self.slots[slot as usize].next = self.free;
            self.free = slot;
            slot = next;
        }
        self.unreserved += row.units;
        debug_assert!(self.unreserved <= self.units, "only what was reserved is given back");
        self.rows_under_way -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_leave_in_the_order_they_came() {
        let mut buffer = Buffer::new(5);
        let mut left = Vec::new();
        for round in 0..4 {
            assert!(buffer.reserve(5) && !buffer.reserve(1));
            for unit in 0..5 {
                let slot = buffer.take(10 * round + unit);
                assert!(buffer.is_replaceable(slot));
            }
            for units in [2, 2, 1] {
                let row = buffer.form_row(2);
                assert_eq!(row.units, units);
                buffer.finish_row(row, |_, unit| left.push(unit));
            }
        }
        let expected: Vec<u32> = (0..4).flat_map(|round| (0..5).map(move |unit| 10 * round + unit)).collect();
        assert_eq!(left, expected);
        assert_eq!((buffer.waiting, buffer.rows_under_way, buffer.slots.len()), (0, 0, 5));
    }
}
