//! [`Members`]: the data of a RAID group's members that differs from the data implied by the contents.
//!
//! The contents are the data that a client reads. A member's sector holds data, or a copy or parity that should follow
//! from the data; if a copy or parity does not, the *difference* (actual XOR expected) is stored. Codes are linear, so
//! differences obey simple rules for any contents:
//!
//! - a write that computes redundancy from the data clears differences; a read-modify-write keeps them, so that damage
//!   to data becomes damage of the parity, which outlives the data (Krioukov et al., "Parity Lost and Parity Regained",
//!   FAST'08);
//! - damage to data changes the contents; redundant units are unchanged, so they differ from then on;
//! - while a data unit is missing, its contents are restored from the first redundant units. So when a data unit fails,
//!   the differences of these redundant units become changes of the contents, possibly of blocks that no client wrote,
//!   and the differences vanish. A rebuild writes the data implied by the contents and neither adds nor removes
//!   differences;
//! - a repair trusts the data, as Linux md does, and clears the differences.
//!
//! Therefore, reads from parity levels return the contents. Reads from differing copies rotate between the copies, or
//! use only the first copy if the group reads its primaries.

mod array;
mod code;
mod stripes;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::Range;

use headstack_sim::array::description::{Group, MirrorReads};
use headstack_sim::array::levels::{Extent, Layout, RowPart};
use headstack_workload::Span;

pub use array::{ArrayMembers, GroupMismatches};
use code::add;
use stripes::{Places, Role, SECTOR_BYTES, Stripes};

const SECTOR: usize = SECTOR_BYTES as usize;
/// Memory overhead in bytes of a column with differences.
const COLUMN_BYTES: u64 = 96;
/// Page size of md, which checks and counts by page: a page with any difference counts as a whole.
const PAGE_BYTES: u64 = 4096;

/// The contents of a group, by addresses within the group.
pub trait Flat {
    /// Reads the contents into `into`.
    ///
    /// # Errors
    /// Returns the operating system's error.
    fn read(&self, offset_bytes: u64, into: &mut [u8]) -> io::Result<()>;

    /// Overwrites the contents permanently; a power loss does not restore the previous data.
    ///
    /// # Errors
    /// Returns the operating system's error.
    fn change(&mut self, offset_bytes: u64, data: &[u8]) -> io::Result<()>;
}

/// A change of contents that was only partly completed because of a power loss or at one member.
#[derive(Clone, Debug)]
pub struct Unfinished {
    /// First byte of the change within the group.
    pub offset_bytes: u64,
    /// Previous contents.
    pub old: Vec<u8>,
    /// Intended contents.
    pub new: Vec<u8>,
    /// Random number that determines the outcome of the change at each member.
    pub draw: u64,
}

/// Part of a change within one sector.
struct Part {
    column: u64,
    unit: usize,
    /// First byte of the part within the sector.
    within: usize,
    /// Byte range of the part within the change.
    bytes: Range<usize>,
}

/// State of a slot and its member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// Current member of the slot, or the last member if there is none now.
    pub member: u32,
    /// Number of times that the member's data was lost.
    pub losses: u32,
    /// The member is valid below this offset in bytes: 0 if it is missing, its capacity if it is complete.
    pub filled_bytes: u64,
}

/// Members of a RAID group, with their differences.
#[derive(Debug)]
pub struct Members {
    stripes: Stripes,
    mirror_reads: MirrorReads,
    slots: Vec<Served>,
    /// Differences by column: actual XOR expected for each redundant unit in turn. All-zero columns and redundant units
    /// that cannot be read are not stored.
    differences: BTreeMap<u64, Vec<u8>>,
    /// Number of reads of differing copies, which selects the copy of the next read.
    reads: u64,
}

impl Members {
    /// Creates the members of a healthy group; `None` if the members' contents do not follow from addresses alone.
    pub fn of(group: &Group) -> Option<Members> {
        let whole = |&member: &u32| Served { member, losses: 0, filled_bytes: u64::MAX };
        let slots = group.members.iter().map(whole).collect();
        let stripes = Stripes::of(group)?;
        Some(Members { stripes, mirror_reads: group.mirror_reads, slots, differences: BTreeMap::new(), reads: 0 })
    }

    /// Whether the group has redundancy that could differ.
    pub fn are_redundant(&self) -> bool {
        self.stripes.code.redundant() > 0
    }

    /// Whether any copy or parity differs from the expected one.
    pub fn differ(&self) -> bool {
        !self.differences.is_empty()
    }

    /// Returns the number of bytes of copies and parities that differ from the expected ones.
    pub fn differing_bytes(&self) -> u64 {
        self.differences.values().flatten().filter(|byte| **byte != 0).count() as u64
    }

    /// Returns the memory used by the differences, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        self.differences.len() as u64 * self.bytes_each()
    }

    fn bytes_each(&self) -> u64 {
        self.stripes.code.redundant() as u64 * SECTOR_BYTES + COLUMN_BYTES
    }

    /// Returns an upper bound of the memory in bytes that damage to `bytes` bytes needs.
    pub fn memory_for(&self, bytes: u64) -> u64 {
        (bytes / SECTOR_BYTES + 2) * self.bytes_each()
    }

    /// Updates the differences after a client's write has changed the contents of a run.
    pub fn written(&mut self, offset_bytes: u64, length_bytes: u64) {
        if length_bytes == 0 {
            return;
        }
        let stripe_of = |at_bytes: u64| at_bytes / self.stripes.stripe_bytes();
        let height = self.stripes.height();
        let (first, last) = (stripe_of(offset_bytes), stripe_of(offset_bytes + length_bytes - 1));
        let touched = self.differences.range(first * height..(last + 1) * height);
        let stripes: BTreeSet<u64> = touched.map(|(column, _)| column / height).collect();
        for stripe in stripes {
            let base_bytes = stripe * self.stripes.stripe_bytes();
            let from_bytes = offset_bytes.saturating_sub(base_bytes);
            let to_bytes = (offset_bytes + length_bytes - base_bytes).min(self.stripes.stripe_bytes());
            for place in self.renewed(&RowPart { row: stripe, from_bytes, to_bytes, chunks: None }) {
                self.forget(stripe, &place);
            }
        }
    }

    /// Returns where a write of part of a stripe stores copies of its data, or parities computed only from data.
    fn renewed(&self, part: &RowPart) -> Vec<Extent> {
        match &self.stripes.layout {
            Layout::Parity(parity) => {
                let is_there = |extent: &Extent| self.is_there(extent);
                let begins = |extent: &Extent| extent.at_bytes < self.slots[extent.slot as usize].filled_bytes;
                let plan = parity.plan(part, &is_there, &begins);
                if plan.modifies { Vec::new() } else { plan.parity }
            }
            Layout::Copies(_) => {
                let column = part.row * self.stripes.height();
                let copy = |place: &Extent| Extent {
                    at_bytes: place.at_bytes + part.from_bytes,
                    length_bytes: part.length_bytes(),
                    ..*place
                };
                self.stripes.places(column).redundant.iter().map(copy).collect()
            }
        }
    }

    /// Clears the difference of a stripe's redundant unit within the extent `place`.
    fn forget(&mut self, stripe: u64, place: &Extent) {
        let height = self.stripes.height();
        let columns: Vec<u64> =
            self.differences.range(stripe * height..(stripe + 1) * height).map(|(&column, _)| column).collect();
        for column in columns {
            let redundant = self.stripes.places(column).redundant;
            let number = redundant.iter().position(|own| {
                own.slot == place.slot && place.at_bytes <= own.at_bytes && own.at_bytes < place.end_bytes()
            });
            if let Some(number) = number {
                self.change(column, |differences| difference(differences, number).fill(0));
            }
        }
    }

    /// Reads a run as a client does; `into` already has the contents of the run.
    pub fn read(&mut self, offset_bytes: u64, into: &mut [u8]) {
        let is_copied = matches!(self.stripes.layout, Layout::Copies(_));
        if !is_copied || self.mirror_reads == MirrorReads::Primary || into.is_empty() {
            return;
        }
        let (first, _) = self.stripes.column(offset_bytes);
        let (last, _) = self.stripes.column(offset_bytes + into.len() as u64 - 1);
        let mut differs = false;
        for (&column, differences) in self.differences.range(first..=last) {
            differs = true;
            let places = self.stripes.places(column);
            // The contents are the data of the first available copy.
            let first = self.is_there(&places.data[0]).then_some(None);
            let copies = (0..places.redundant.len()).filter(|&number| self.is_there(&places.redundant[number]));
            let copies: Vec<Option<usize>> = first.into_iter().chain(copies.map(Some)).collect();
            let turn = (self.reads % copies.len().max(1) as u64) as usize;
            let Some(&Some(number)) = copies.get(turn) else { continue };
            let differences = &differences[number * SECTOR..][..SECTOR];
            // A request may begin or end within a sector.
            let at_bytes = self.stripes.address(column, 0);
            let from = offset_bytes.max(at_bytes);
            let to = (offset_bytes + into.len() as u64).min(at_bytes + SECTOR_BYTES);
            let read = &mut into[(from - offset_bytes) as usize..(to - offset_bytes) as usize];
            add(read, 1, &differences[(from - at_bytes) as usize..]);
        }
        self.reads += u64::from(differs);
    }

    /// Returns the data of a slot's sector; `None` if the slot has no member, or the sector is unused.
    ///
    /// # Errors
    /// Returns an I/O error if the contents cannot be read or written.
    pub fn sector(&self, slot: u32, at_bytes: u64, flat: &impl Flat) -> io::Result<Option<Vec<u8>>> {
        let at_bytes = at_bytes / SECTOR_BYTES * SECTOR_BYTES;
        let is_there = self.is_there(&Extent { slot, at_bytes, length_bytes: SECTOR_BYTES });
        let Some((column, role)) = self.stripes.role(slot, at_bytes).filter(|_| is_there) else { return Ok(None) };
        let mut held = vec![0; SECTOR];
        match role {
            Role::Data(unit) => flat.read(self.stripes.address(column, unit), &mut held)?,
            Role::Redundant(number) => {
                let mut data = vec![0; SECTOR];
                for unit in 0..self.stripes.data as usize {
                    flat.read(self.stripes.address(column, unit), &mut data)?;
                    add(&mut held, self.stripes.code.factor(number, unit), &data);
                }
                if let Some(differences) = self.differences.get(&column) {
                    add(&mut held, 1, &differences[number * SECTOR..][..SECTOR]);
                }
            }
        }
        Ok(Some(held))
    }

    /// Changes a slot's data at `at_bytes` without the array noticing.
    ///
    /// # Errors
    /// Returns an I/O error if the contents cannot be read or written.
    pub fn corrupt(&mut self, slot: u32, at_bytes: u64, bytes: &[u8], flat: &mut impl Flat) -> io::Result<()> {
        let mut done = 0;
        while done < bytes.len() {
            let at_bytes = at_bytes + done as u64;
            let within = (at_bytes % SECTOR_BYTES) as usize;
            let part = (SECTOR - within).min(bytes.len() - done);
            if let Some(mut by) = self.sector(slot, at_bytes, flat)? {
                let new = &bytes[done..done + part];
                by[..within].fill(0);
                by[within + part..].fill(0);
                add(&mut by[within..within + part], 1, new);
                self.damage(slot, at_bytes, &by, flat)?;
            }
            done += part;
        }
        Ok(())
    }

    /// Returns the data of a slot in a run of bytes; zeros if the slot has no member.
    ///
    /// # Errors
    /// Returns an I/O error if the contents cannot be read or written.
    pub fn read_slot(&self, slot: u32, run: Span, flat: &impl Flat) -> io::Result<Vec<u8>> {
        let (first, end) = (run.start_bytes / SECTOR_BYTES * SECTOR_BYTES, run.start_bytes + run.length_bytes);
        let mut held = Vec::new();
        for at_bytes in (first..end).step_by(SECTOR) {
            held.extend(self.sector(slot, at_bytes, flat)?.unwrap_or_else(|| vec![0; SECTOR]));
        }
        held.drain(..(run.start_bytes - first) as usize);
        held.truncate(run.length_bytes as usize);
        Ok(held)
    }

    /// Makes a slot miss its part of a change that is already made, whether data, copy or parity. Data of newer changes
    /// in the same place remains.
    ///
    /// # Errors
    /// Returns an I/O error if the contents cannot be read or written.
    pub fn not_stored(&mut self, slot: u32, change: &Unfinished, flat: &mut impl Flat) -> io::Result<()> {
        let mut now = vec![0; change.new.len()];
        flat.read(change.offset_bytes, &mut now)?;
        let mut columns = BTreeSet::new();
        for Part { column, unit, within, bytes } in self.parts(change) {
            let (old, new) = (&change.old[bytes.clone()], &change.new[bytes.clone()]);
            let mut by = vec![0; SECTOR];
            by[within..within + old.len()].copy_from_slice(old);
            add(&mut by[within..], 1, new);
            let Places { data, redundant } = self.stripes.places(column);
            if data[unit].slot == slot && self.is_there(&data[unit]) && now[bytes] == *new {
                self.change_data(column, unit, &by, flat)?;
            }
            for (number, place) in redundant.iter().enumerate() {
                if place.slot == slot && self.is_there(place) {
                    let factor = self.stripes.code.factor(number, unit);
                    self.change(column, |own| add(difference(own, number), factor, &by));
                }
            }
            columns.insert(column);
        }
        columns.into_iter().try_for_each(|column| self.bring_back(column, flat))
    }

    /// Splits a change into parts that each lie within a sector.
    fn parts(&self, change: &Unfinished) -> Vec<Part> {
        let (mut at, mut parts) = (0, Vec::new());
        while at < change.new.len() {
            let offset_bytes = change.offset_bytes + at as u64;
            let within = (offset_bytes % SECTOR_BYTES) as usize;
            let bytes = at..at + (SECTOR - within).min(change.new.len() - at);
            let (column, unit) = self.stripes.column(offset_bytes);
            at = bytes.end;
            parts.push(Part { column, unit, within, bytes });
        }
        parts
    }

    /// XORs `by` into a slot's sector.
    fn damage(&mut self, slot: u32, at_bytes: u64, by: &[u8], flat: &mut impl Flat) -> io::Result<()> {
        let (column, role) = self.stripes.role(slot, at_bytes).expect("the sector is in use");
        match role {
            Role::Data(unit) => {
                self.change_data(column, unit, by, flat)?;
            }
            Role::Redundant(number) => self.change(column, |own| add(difference(own, number), 1, by)),
        }
        self.bring_back(column, flat)
    }

    /// Changes the contents of a data unit without updating its redundancy.
    fn change_data(&mut self, column: u64, unit: usize, by: &[u8], flat: &mut impl Flat) -> io::Result<()> {
        let mut data = vec![0; SECTOR];
        let address = self.stripes.address(column, unit);
        flat.read(address, &mut data)?;
        add(&mut data, 1, by);
        flat.change(address, &data)?;
        self.displace(column, unit, by);
        Ok(())
    }

    /// Adds the change of a data unit to the differences of its redundant units.
    fn displace(&mut self, column: u64, unit: usize, by: &[u8]) {
        let Places { redundant, .. } = self.stripes.places(column);
        for (number, place) in redundant.iter().enumerate() {
            if self.is_there(place) {
                let factor = self.stripes.code.factor(number, unit);
                self.change(column, |own| add(difference(own, number), factor, by));
            }
        }
    }

    /// Sets the contents of missing data units to the data that the first redundant units restore.
    fn bring_back(&mut self, column: u64, flat: &mut impl Flat) -> io::Result<()> {
        let Some(differences) = self.differences.get(&column) else { return Ok(()) };
        let Places { data, redundant } = self.stripes.places(column);
        let missing: Vec<usize> = (0..data.len()).filter(|&unit| !self.is_there(&data[unit])).collect();
        let there = (0..redundant.len()).filter(|&number| self.is_there(&redundant[number]));
        let used: Vec<usize> = there.take(missing.len()).collect();
        let part = |number: usize| &differences[number * SECTOR..][..SECTOR];
        let is_true = used.iter().all(|&number| part(number).iter().all(|byte| *byte == 0));
        if is_true || used.len() < missing.len() {
            return Ok(());
        }
        let solution = self.stripes.code.solution(&used, &missing);
        let by = |factors: &Vec<u8>| {
            let mut by = vec![0; SECTOR];
            factors.iter().zip(&used).for_each(|(&factor, &number)| add(&mut by, factor, part(number)));
            by
        };
        let changes: Vec<Vec<u8>> = solution.iter().map(by).collect();
        for (&unit, by) in missing.iter().zip(&changes) {
            self.change_data(column, unit, by, flat)?;
        }
        Ok(())
    }

    /// Assigns members to slots according to `served`. Data lost with a member is restored from the present state of
    /// the other members.
    ///
    /// # Errors
    /// Returns an I/O error if the contents cannot be read or written.
    pub fn serve(&mut self, served: &[Served], flat: &mut impl Flat) -> io::Result<()> {
        // Data lost since then is missing, even if part of it has been rebuilt.
        let kept = |old: &Served, new: &Served| {
            let is_kept = (old.member, old.losses) == (new.member, new.losses);
            Served { filled_bytes: if is_kept { old.filled_bytes.min(new.filled_bytes) } else { 0 }, ..*new }
        };
        let left: Vec<Served> = self.slots.iter().zip(served).map(|(old, new)| kept(old, new)).collect();
        let loses = self.slots.iter().zip(&left).any(|(old, new)| new.filled_bytes < old.filled_bytes);
        self.slots = left;
        if loses {
            for column in self.differences.keys().copied().collect::<Vec<_>>() {
                let Places { redundant, .. } = self.stripes.places(column);
                for number in
                    (0..redundant.len()).filter(|&number| !self.is_there(&redundant[number])).collect::<Vec<_>>()
                {
                    self.change(column, |own| difference(own, number).fill(0));
                }
                self.bring_back(column, flat)?;
            }
        }
        // Rebuilt parts hold the data implied by the contents.
        self.slots = served.to_vec();
        Ok(())
    }

    /// Applies a power loss during a change; the contents already have the state after the loss. Each copy or parity of
    /// the change is completely written, unwritten, or as far as the data.
    ///
    /// # Errors
    /// Returns an I/O error if the contents cannot be read or written.
    pub fn cut(&mut self, change: &Unfinished, flat: &mut impl Flat) -> io::Result<()> {
        let Unfinished { offset_bytes, old, new, draw } = change;
        let mut now = vec![0; new.len()];
        flat.read(*offset_bytes, &mut now)?;
        let mut columns = BTreeSet::new();
        for Part { column, unit, within, bytes } in self.parts(change) {
            let (stripe, _) = self.stripes.stripe(column);
            let Places { redundant, .. } = self.stripes.places(column);
            for (number, place) in redundant.iter().enumerate() {
                if !self.is_there(place) {
                    continue;
                }
                let held = match fate(*draw, stripe, place.slot) {
                    0 => continue,
                    1 => &old[bytes.clone()],
                    _ => &new[bytes.clone()],
                };
                let mut by = held.to_vec();
                add(&mut by, 1, &now[bytes.clone()]);
                let factor = self.stripes.code.factor(number, unit);
                self.change(column, |own| add(&mut difference(own, number)[within..], factor, &by));
            }
            columns.insert(column);
        }
        columns.into_iter().try_for_each(|column| self.bring_back(column, flat))
    }

    /// Counts the sectors of the pages with differences in the redundant units within a byte range of each slot, as md
    /// does.
    pub fn mismatched_sectors(&self, run: &Range<u64>) -> u64 {
        let mut pages = BTreeSet::new();
        for (&column, differences) in &self.differences {
            let Places { redundant, .. } = self.stripes.places(column);
            let differing = redundant.iter().zip(differences.chunks(SECTOR));
            let first = differing.filter(|(_, own)| own.iter().any(|byte| *byte != 0)).map(|(place, _)| place).next();
            if let Some(place) = first.filter(|place| run.contains(&place.at_bytes)) {
                let (stripe, _) = self.stripes.stripe(column);
                pages.insert((stripe, place.at_bytes / PAGE_BYTES));
            }
        }
        pages.len() as u64 * (PAGE_BYTES / SECTOR_BYTES)
    }

    /// Recomputes the redundant units within a byte range of each slot from the data.
    pub fn repair(&mut self, run: &Range<u64>) {
        for column in self.differences.keys().copied().collect::<Vec<_>>() {
            let Places { redundant, .. } = self.stripes.places(column);
            for (number, _) in redundant.iter().enumerate().filter(|(_, place)| run.contains(&place.at_bytes)) {
                self.change(column, |own| difference(own, number).fill(0));
            }
        }
    }

    /// Returns the slot that a member serves; `None` if it serves no slot.
    pub fn slot_of(&self, member: u32) -> Option<u32> {
        let serves = |slot: &Served| slot.member == member && slot.filled_bytes > 0;
        self.slots.iter().position(serves).map(|slot| slot as u32)
    }

    fn is_there(&self, place: &Extent) -> bool {
        place.end_bytes() <= self.slots[place.slot as usize].filled_bytes
    }

    /// Updates the differences of a column.
    fn change(&mut self, column: u64, how: impl FnOnce(&mut [u8])) {
        let bytes = self.stripes.code.redundant() * SECTOR;
        let own = self.differences.entry(column).or_insert_with(|| vec![0; bytes]);
        how(own);
        if own.iter().all(|byte| *byte == 0) {
            self.differences.remove(&column);
        }
    }
}

/// Returns the part of `differences` that belongs to redundant unit `number`.
fn difference(differences: &mut [u8], number: usize) -> &mut [u8] {
    &mut differences[number * SECTOR..][..SECTOR]
}

/// Draws one of three outcomes, which applies to a member's whole stripe (finaliser of SplitMix64).
fn fate(draw: u64, stripe: u64, slot: u32) -> u64 {
    let mut bits = draw ^ stripe.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (u64::from(slot) << 48);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (bits ^ (bits >> 31)) % 3
}
