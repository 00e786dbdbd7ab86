//! [`LeafSets`]: the leaf devices that blocks of a pool use. On dRAID, neighbouring blocks use few of them; on other
//! levels, a run of blocks uses all leaves of its top-level device.

use crate::array::levels::{Layout, Parity, RowPart};
use crate::description::level::Level;
use crate::description::system::SystemDescription;

/// Places for leaves in a set. Those of a larger system share places, so that fewer scans run at once.
const PLACES: u32 = 256;

/// A set of leaf devices of a system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LeafSet([u64; (PLACES / 64) as usize]);

impl LeafSet {
    fn add(&mut self, leaf: u32) {
        let place = leaf % PLACES;
        self.0[(place / 64) as usize] |= 1 << (place % 64);
    }

    /// Returns the leaves that are not in another set.
    pub fn without(&self, other: &LeafSet) -> LeafSet {
        let mut left = *self;
        left.0.iter_mut().zip(&other.0).for_each(|(left, other)| *left &= !other);
        left
    }

    /// Calls `each` with the place of each leaf, below [`LeafSet::places`].
    pub fn each(&self, mut each: impl FnMut(usize)) {
        for (word, &bits) in self.0.iter().enumerate() {
            let mut left = bits;
            while left != 0 {
                each(word * 64 + left.trailing_zeros() as usize);
                left &= left - 1;
            }
        }
    }

    /// Returns the number of places.
    pub const fn places() -> usize {
        PLACES as usize
    }
}

/// A top-level device: its address on the system, and its leaves.
#[derive(Clone, Debug)]
struct Vdev {
    start_bytes: u64,
    /// First byte in its RAID group.
    group_start_bytes: u64,
    first: u32,
    count: u32,
    /// Layout of dRAID.
    layout: Option<Layout>,
}

/// Top-level devices of a system.
#[derive(Clone, Debug)]
pub(super) struct LeafSets {
    vdevs: Vec<Vdev>,
}

impl LeafSets {
    /// Creates those of a system.
    pub fn new(system: &SystemDescription) -> LeafSets {
        let SystemDescription::Array(array) = system else {
            return LeafSets {
                vdevs: vec![Vdev { start_bytes: 0, group_start_bytes: 0, first: 0, count: 1, layout: None }],
            };
        };
        let mut start_bytes = 0;
        let vdev_of = |lun: &crate::description::array::Lun| {
            let group = &array.groups[lun.group as usize];
            let before = &array.groups[..lun.group as usize];
            let vdev = Vdev {
                start_bytes,
                group_start_bytes: lun.start_bytes,
                first: before.iter().map(|group| group.members.len() as u32).sum(),
                count: group.members.len() as u32,
                layout: matches!(group.level, Level::Draid { .. }).then(|| Layout::new(group.level, &group.shape())),
            };
            start_bytes += lun.length_bytes;
            vdev
        };
        LeafSets { vdevs: array.luns.iter().map(vdev_of).collect() }
    }

    /// Returns the leaves that the blocks between two addresses use, by the records at both ends.
    pub fn used(&self, vdev: usize, first_bytes: u64, last_bytes: u64) -> LeafSet {
        let Vdev { start_bytes, group_start_bytes, first, count, ref layout } = self.vdevs[vdev];
        let mut set = LeafSet::default();
        let Some(Layout::Parity(parity @ Parity::Draid(_))) = layout else {
            (first..first + count).for_each(|leaf| set.add(leaf));
            return set;
        };
        let record_bytes = parity.row_bytes();
        for address in [first_bytes, last_bytes] {
            let row = (address - start_bytes + group_start_bytes) / record_bytes;
            let plan =
                parity
                    .plan(&RowPart { row, from_bytes: 0, to_bytes: record_bytes, chunks: None }, &|_| true, &|_| true);
            plan.data.iter().chain(&plan.parity).for_each(|column| set.add(first + column.slot));
        }
        set
    }

    /// Returns the set of one slot of the group of a top-level device.
    pub fn of_slot(&self, vdev: usize, slot: u32) -> LeafSet {
        let mut set = LeafSet::default();
        set.add(self.vdevs[vdev].first + slot);
        set
    }
}
