//! [`Stripes`]: which units belong together. A stripe is a data unit and its copies, or a row's data units and their
//! parities, as the simulator's layouts place them. A *column* is one sector of each unit of a stripe, at an equal
//! offset in each; its redundant sectors follow only from its data sectors.

use headstack_sim::array::description::{Group, Level};
use headstack_sim::array::levels::{Extent, Layout, Placing};

use super::code::Code;

/// Size in bytes of a sector. Differences are stored per sector.
pub const SECTOR_BYTES: u64 = 512;
/// Assumed unit of a mirror, which has no chunks, for counting columns.
const MIRROR_UNIT_BYTES: u64 = 64 << 10;

/// The stripes of a group.
#[derive(Clone, Debug)]
pub struct Stripes {
    level: Level,
    pub layout: Layout,
    pub code: Code,
    /// Number of data units per stripe.
    pub data: u64,
    pub unit_bytes: u64,
    slots: u64,
    spans: u64,
    member_bytes: u64,
    capacity_bytes: u64,
}

/// Role of a slot in a stripe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Data unit with this number.
    Data(usize),
    /// Redundant unit with this number: a copy or a parity.
    Redundant(usize),
}

/// Locations of the sectors of a column on the members.
#[derive(Clone, Debug)]
pub struct Places {
    pub data: Vec<Extent>,
    pub redundant: Vec<Extent>,
}

impl Stripes {
    /// Returns the stripes of a group; `None` for pools, RAIDZ and dRAID, where locations do not follow from the
    /// address or reads are protected by a checksum.
    pub fn of(group: &Group) -> Option<Stripes> {
        if group.pool.is_some() {
            return None;
        }
        let layout = Layout::new(group.level, &group.shape());
        let slots = group.members.len() as u64;
        let spans = u64::from(group.spans);
        let (data, unit_bytes, code) = match group.level {
            Level::Concat => (1, SECTOR_BYTES, Code::for_copies(1)),
            Level::Raid1 => (1, MIRROR_UNIT_BYTES, Code::for_copies(layout.copies())),
            Level::Raid0 | Level::Raid10 => (1, group.chunk_bytes, Code::for_copies(layout.copies())),
            Level::Raid5 | Level::Raid6 | Level::Erasure { .. } => {
                let Layout::Parity(parity) = &layout else { return None };
                let data = parity.row_bytes() / group.chunk_bytes;
                (data, group.chunk_bytes, Code::for_rows(group.level, data as usize)?)
            }
            Level::Raidz { .. } | Level::Draid { .. } => return None,
        };
        let (member_bytes, capacity_bytes) = (group.member_bytes, group.capacity_bytes());
        // Units that are not a whole number of sectors have no columns.
        let has_columns = unit_bytes.is_multiple_of(SECTOR_BYTES) && member_bytes.is_multiple_of(SECTOR_BYTES);
        let level = group.level;
        has_columns.then_some(Stripes {
            level,
            layout,
            code,
            data,
            unit_bytes,
            slots,
            spans,
            member_bytes,
            capacity_bytes,
        })
    }

    /// Returns the number of bytes of the group per stripe.
    pub fn stripe_bytes(&self) -> u64 {
        self.data * self.unit_bytes
    }

    /// Returns the number of columns per stripe.
    pub fn height(&self) -> u64 {
        self.unit_bytes / SECTOR_BYTES
    }

    /// Returns the stripe of a column, and the column's offset within each unit.
    pub fn stripe(&self, column: u64) -> (u64, u64) {
        (column / self.height(), column % self.height() * SECTOR_BYTES)
    }

    /// Returns the column of a byte of the group, and the data unit that holds the byte.
    pub fn column(&self, offset_bytes: u64) -> (u64, usize) {
        let (unit, within) = (offset_bytes / self.unit_bytes, offset_bytes % self.unit_bytes);
        (unit / self.data * self.height() + within / SECTOR_BYTES, (unit % self.data) as usize)
    }

    /// Returns the address in the group of the first byte of data unit `unit` in a column.
    pub fn address(&self, column: u64, unit: usize) -> u64 {
        let (stripe, within) = self.stripe(column);
        (stripe * self.data + unit as u64) * self.unit_bytes + within
    }

    /// Returns the locations of a column's sectors.
    pub fn places(&self, column: u64) -> Places {
        let (stripe, within) = self.stripe(column);
        let mut units = Vec::new();
        for unit in 0..self.data {
            let at_bytes = (stripe * self.data + unit) * self.unit_bytes + within;
            self.layout.places(at_bytes, SECTOR_BYTES, &mut units);
        }
        match &self.layout {
            Layout::Copies(_) => Places { redundant: units.split_off(1), data: units },
            Layout::Parity(parity) => {
                let mut redundant = Vec::new();
                parity.parities_of(&units[0], |extent| redundant.push(extent));
                Places { data: units, redundant }
            }
        }
    }

    /// Returns the role of a slot's sector; `None` if the sector is unused.
    pub fn role(&self, slot: u32, at_bytes: u64) -> Option<(u64, Role)> {
        let (row, within) = (at_bytes / self.unit_bytes, at_bytes % self.unit_bytes);
        let slot_at = u64::from(slot);
        let stripe = match self.level {
            Level::Concat => (slot_at * self.member_bytes + at_bytes) / SECTOR_BYTES,
            Level::Raid1 => row,
            Level::Raid0 => row * self.slots + slot_at,
            Level::Raid10 => (row * self.slots + slot_at) / 2,
            Level::Raid5 | Level::Raid6 | Level::Erasure { .. } => {
                row * self.spans + slot_at / (self.slots / self.spans)
            }
            Level::Raidz { .. } | Level::Draid { .. } => unreachable!("these have no columns"),
        };
        let column = stripe * self.height() + within / SECTOR_BYTES;
        if self.address(column, 0) >= self.capacity_bytes {
            return None;
        }
        let places = self.places(column);
        let is_here =
            |extent: &Extent| extent.slot == slot && extent.at_bytes == at_bytes / SECTOR_BYTES * SECTOR_BYTES;
        let data = places.data.iter().position(is_here).map(Role::Data);
        let role = data.or_else(|| places.redundant.iter().position(is_here).map(Role::Redundant));
        role.map(|role| (column, role))
    }
}
