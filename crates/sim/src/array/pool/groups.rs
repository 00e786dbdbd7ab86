//! The physical side of the map: the segment in each slot, and the empty slots and groups.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::layout::{Class, DiskLayout, Slot};

/// Owner of an empty slot.
pub(super) const EMPTY: u32 = u32::MAX;
/// Owner of a slot that is reserved for a migration in progress.
pub(super) const RESERVED: u32 = u32::MAX - 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Group {
    /// Class of the group; `None` for a free group.
    class: Option<Class>,
    /// Number of slots that are not empty.
    taken: u16,
}

/// Totals over all groups of a class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Total {
    pub groups: u32,
    /// Number of slots that are not empty.
    pub taken: u32,
    /// The group of the last allocation, which is filled before other groups.
    hand: u32,
}

#[derive(Clone, Debug)]
pub(super) struct Groups {
    pub layout: DiskLayout,
    /// Owner of the segment in each data cell; entries for second copies and parities are unused. Grows with the number
    /// of groups ever used.
    cells: Vec<u32>,
    groups: Vec<Group>,
    /// Groups that were used and are free again. The lowest is used first, so that sequential writes stay sequential.
    recycled: BinaryHeap<Reverse<u32>>,
    mirrored: Total,
    parity: Total,
}

impl Groups {
    pub fn new(layout: DiskLayout) -> Groups {
        Groups {
            layout,
            cells: Vec::new(),
            groups: Vec::new(),
            recycled: BinaryHeap::new(),
            mirrored: Total::default(),
            parity: Total::default(),
        }
    }

    pub fn total(&self, class: Class) -> Total {
        match class {
            Class::Mirrored => self.mirrored,
            Class::Parity => self.parity,
        }
    }

    fn total_mut(&mut self, class: Class) -> &mut Total {
        match class {
            Class::Mirrored => &mut self.mirrored,
            Class::Parity => &mut self.parity,
        }
    }

    /// Returns the number of free groups.
    pub fn free(&self) -> u32 {
        self.layout.groups - self.groups.len() as u32 + self.recycled.len() as u32
    }

    /// Returns the number of empty slots in the groups of a class. In the parity class, these hold dead data, which
    /// still count in the parities.
    pub fn holes(&self, class: Class) -> u32 {
        let total = self.total(class);
        total.groups * self.layout.slots(class) - total.taken
    }

    /// Returns the groups of a class, with the number of taken slots in each.
    pub fn of_class(&self, class: Class) -> impl Iterator<Item = (u32, u32)> {
        let groups = (0..).zip(&self.groups).filter(move |(_, group)| group.class == Some(class));
        groups.map(|(number, group)| (number, u32::from(group.taken)))
    }

    pub fn owner(&self, slot: Slot) -> u32 {
        self.cells[slot.cell() as usize]
    }

    /// Whether a slot holds a segment and its group still has the class of the slot.
    pub fn is_live(&self, slot: Slot) -> bool {
        let class = self.groups[self.layout.group_of(slot) as usize].class;
        class == Some(slot.class()) && !matches!(self.owner(slot), EMPTY | RESERVED)
    }

    /// Puts a segment into its reserved slot.
    pub fn set_owner(&mut self, slot: Slot, owner: u32) {
        self.cells[slot.cell() as usize] = owner;
    }

    /// Opens a free group for `class`; the group is filled next.
    pub fn open(&mut self, class: Class) -> Option<u32> {
        let group = match self.recycled.pop() {
            Some(Reverse(group)) => group,
            None => self.first_use()?,
        };
        for slot in self.layout.slots_of(class, group) {
            self.cells[slot.cell() as usize] = EMPTY;
        }
        self.groups[group as usize] = Group { class: Some(class), taken: 0 };
        let total = self.total_mut(class);
        total.groups += 1;
        total.hand = group;
        Some(group)
    }

    fn first_use(&mut self) -> Option<u32> {
        let group = self.groups.len();
        if group == self.layout.groups as usize {
            return None;
        }
        let group_cells = self.layout.group_cells as usize;
        if self.groups.len() == self.groups.capacity() {
            // Grow by 12.5 % each time: doubling would waste up to half of the largest allocation here.
            let more = (group / 8 + 64).min(self.layout.groups as usize - group);
            self.groups.reserve_exact(more);
            self.cells.reserve_exact(more * group_cells);
        }
        self.groups.push(Group { class: None, taken: 0 });
        self.cells.resize(self.cells.len() + group_cells, EMPTY);
        Some(group as u32)
    }

    /// Whether the group being filled has an empty slot.
    pub fn filling(&self, class: Class) -> bool {
        self.has_hole(class, self.total(class).hand)
    }

    /// Takes the first empty slot of the current group, or else of the next group that has one, except for group
    /// `except`.
    pub fn take_hole(&mut self, class: Class, owner: u32, except: Option<u32>) -> Option<Slot> {
        let hand = self.total(class).hand;
        let groups = self.groups.len() as u32;
        let mut order = (hand..groups).chain(0..hand);
        let group = order.find(|&group| self.has_hole(class, group) && Some(group) != except)?;
        self.total_mut(class).hand = group;
        Some(self.take(class, group, owner))
    }

    fn has_hole(&self, class: Class, group: u32) -> bool {
        let found = self.groups.get(group as usize);
        found.is_some_and(|found| found.class == Some(class) && u32::from(found.taken) < self.layout.slots(class))
    }

    /// Takes the first empty slot of a group, which must have one.
    pub fn take(&mut self, class: Class, group: u32, owner: u32) -> Slot {
        let mut slots = self.layout.slots_of(class, group);
        let slot = slots.find(|&slot| self.owner(slot) == EMPTY).expect("the group has an empty slot");
        self.set_owner(slot, owner);
        self.groups[group as usize].taken += 1;
        self.total_mut(class).taken += 1;
        slot
    }

    /// Empties a slot. A group without taken slots becomes free.
    pub fn release(&mut self, slot: Slot) {
        let (class, group) = (slot.class(), self.layout.group_of(slot));
        self.set_owner(slot, EMPTY);
        self.total_mut(class).taken -= 1;
        let found = &mut self.groups[group as usize];
        found.taken -= 1;
        if found.taken == 0 {
            found.class = None;
            self.total_mut(class).groups -= 1;
            self.recycled.push(Reverse(group));
        }
    }

    /// Recounts the contents of all groups; returns the number of reserved slots.
    pub fn verify(&self) -> Result<u32, String> {
        let mut reserved = 0;
        for class in [Class::Mirrored, Class::Parity] {
            let mut total = Total { hand: self.total(class).hand, ..Total::default() };
            for (group, taken) in self.of_class(class) {
                let owners = || self.layout.slots_of(class, group).map(|slot| self.owner(slot));
                let counted = owners().filter(|&owner| owner != EMPTY).count() as u32;
                if counted != taken || taken == 0 {
                    return Err(format!("group {group} has {counted} taken slots, but its count is {taken}"));
                }
                reserved += owners().filter(|&owner| owner == RESERVED).count() as u32;
                total.groups += 1;
                total.taken += taken;
            }
            if total != self.total(class) {
                return Err(format!("{class:?}: the total is {total:?}, but the count is {:?}", self.total(class)));
            }
        }
        if self.free() + self.mirrored.groups + self.parity.groups != self.layout.groups {
            return Err(format!("the count of free groups is wrong: {} of {} groups", self.free(), self.layout.groups));
        }
        Ok(reserved)
    }
}
