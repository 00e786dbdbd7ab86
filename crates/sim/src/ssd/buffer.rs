//! The write buffer: mapping units waiting to be programmed, oldest first.

/// End of a list.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Slot {
    unit: u32,
    /// Next slot of its list: free, waiting or of a row.
    next: u32,
    /// The slot belongs to a row, so that its content is fixed.
    in_row: bool,
}

/// Units that are programmed together.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Number in the order of formation.
    pub serial: u64,
    head: u32,
    /// Units in the row; fewer than fit if a flush did not wait for more.
    pub units: u32,
    /// Extra time for which the program occupies the die.
    pub delay_ns: u64,
    /// The row is programmed with one bit per cell.
    pub slc: bool,
}

/// Slots of one mapping unit each.
#[derive(Clone, Debug)]
pub struct Buffer {
    /// As many slots as were ever in use at once.
    slots: Vec<Slot>,
    /// Slots that there can be.
    units: u32,
    free: u32,
    /// Number of slots that are not reserved.
    unreserved: u32,
    oldest: u32,
    youngest: u32,
    /// Units that wait for a row.
    pub waiting: u32,
    next_serial: u64,
    /// Rows formed and not yet programmed.
    pub rows_under_way: u32,
}

impl Buffer {
    /// An empty buffer of `units`.
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

    /// Reserves `units` slots for data in transfer, if there are as many.
    #[inline]
    pub fn reserve(&mut self, units: u32) -> bool {
        if units > self.unreserved {
            return false;
        }
        self.unreserved -= units;
        true
    }

    /// Gives back a reserved slot that turned out not to be needed.
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

    /// New data for the slot's unit may replace the old.
    #[inline]
    pub fn is_replaceable(&self, slot: u32) -> bool {
        !self.slots[slot as usize].in_row
    }

    /// Makes a row of the oldest units, at most `units_max`.
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

    /// The units of a row.
    pub fn units_of(&self, row: &Row) -> impl Iterator<Item = u32> + '_ {
        let mut slot = row.head;
        (0..row.units).map(move |_| {
            let Slot { unit, next, .. } = self.slots[slot as usize];
            slot = next;
            unit
        })
    }

    /// Every slot that ever held a unit, with the last one that it held.
    pub fn slots(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.slots.iter().enumerate().map(|(slot, held)| (slot as u32, held.unit))
    }

    /// Units that wait or are being programmed.
    pub fn used(&self) -> u32 {
        self.units - self.unreserved
    }

    /// The number of the next row.
    pub fn next_serial(&self) -> u64 {
        self.next_serial
    }

    /// A row was programmed: hands each (slot, unit) to `programmed` and frees the slots.
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
