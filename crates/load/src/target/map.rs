//! Builds the [`TargetMap`] of open targets, concatenated or striped.

use std::sync::Arc;

use super::{Target, TargetKind};
use crate::target_map::TargetMap;

impl TargetMap {
    /// Concatenates the whole blocks (of `block_bytes`) of targets. The map is empty if a target stores nothing.
    pub fn of(targets: &[Arc<Target>], block_bytes: u32) -> TargetMap {
        TargetMap::of_each(targets, |target| target.whole_bytes(block_bytes))
    }

    /// Concatenates targets, each with the length that `bytes_of` returns. The map is empty if a target stores nothing.
    pub fn of_each(targets: &[Arc<Target>], bytes_of: impl Fn(&Target) -> u64) -> TargetMap {
        match targets.iter().any(|target| target.kind() == TargetKind::Null) {
            false => TargetMap::new(targets.iter().map(|target| (target.at(), bytes_of(target)))),
            true => TargetMap::nowhere(targets.iter().fold(0, |sum, target| sum.saturating_add(bytes_of(target)))),
        }
    }

    /// Stripes over targets in chunks of `stripe_bytes`, up to the size of the smallest target and at most
    /// `length_bytes` of each. Targets that store nothing have a place in the map, but no file.
    pub fn striped(targets: &[Arc<Target>], stripe_bytes: u32, length_bytes: u64) -> TargetMap {
        let smallest_bytes = targets.iter().map(|target| target.capacity_bytes()).min().unwrap_or(0);
        let stripe = u64::from(stripe_bytes.max(1));
        let length_bytes = smallest_bytes.min(length_bytes) / stripe * stripe;
        let file = |target: &Arc<Target>| (target.at(), length_bytes);
        TargetMap::new(targets.iter().map(file)).dealt(stripe)
    }
}

#[cfg(test)]
mod tests {
    use headstack_workload::{Kind, Request};

    use super::*;
    use crate::target_map::TargetPlace;

    fn read(offset_bytes: u64, length_bytes: u32) -> Request {
        Request { kind: Kind::Read, offset_bytes, length_bytes, force_unit_access: false, ordered: false }
    }

    #[test]
    fn stripes_go_round_and_end_with_the_smallest() {
        let targets = [20_000, 9000, 10_000].map(|bytes| Arc::new(Target::null(bytes)));
        let map = TargetMap::striped(&targets, 4096, u64::MAX);
        assert_eq!(map.capacity_bytes(), 3 * 8192);
        let place = |stripe: u64| map.place(&read(stripe * 4096 + 5, 1));
        for (stripe, piece, offset_bytes) in [(0, 0, 5), (1, 1, 5), (2, 2, 5), (3, 0, 4101), (5, 2, 4101)] {
            assert_eq!(place(stripe), TargetPlace { piece, offset_bytes });
        }
        assert_eq!(TargetMap::striped(&targets, 4096, 4096).capacity_bytes(), 3 * 4096);
    }
}
