//! Bytes of an object that a request reads and writes on each copy or shard.

use crate::description::stack::{ErasureAccess, ErasureCode, Redundancy};

/// Range of a shard in bytes: first and end.
pub(super) type Range = (u64, u64);

/// A part of a request within one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// First byte in the object.
    pub from: u64,
    /// End in the object.
    pub to: u64,
}

/// Returns the range that a read reads of a shard.
pub(super) fn read_range(redundancy: &Redundancy, part: Part, shard: u32) -> Option<Range> {
    match redundancy {
        Redundancy::Copies(_) => (shard == 0).then_some((part.from, part.to)),
        Redundancy::Erasure(code) if shard >= code.data => None,
        Redundancy::Erasure(code) => match code.access {
            ErasureAccess::WholeStripes => Some(stripes(code, part)),
            ErasureAccess::ChangedShards => own_range(code, part, shard),
        },
    }
}

/// Returns the range that a write writes of a shard.
pub(super) fn write_range(redundancy: &Redundancy, part: Part, shard: u32) -> Option<Range> {
    match redundancy {
        Redundancy::Copies(_) => Some((part.from, part.to)),
        Redundancy::Erasure(code) => match code.access {
            ErasureAccess::WholeStripes => Some(stripes(code, part)),
            ErasureAccess::ChangedShards if shard < code.data => own_range(code, part, shard),
            ErasureAccess::ChangedShards => Some(parity_range(code, part)),
        },
    }
}

/// Returns the range that a write reads of a shard before it writes.
pub(super) fn range_before_write(redundancy: &Redundancy, part: Part, shard: u32) -> Option<Range> {
    match redundancy {
        Redundancy::Copies(_) => None,
        Redundancy::Erasure(code) => match code.access {
            ErasureAccess::WholeStripes => {
                let changed = partial_stripes(code, part)?;
                (shard < code.data).then_some(changed)
            }
            ErasureAccess::ChangedShards => parity_source(code, part, shard),
        },
    }
}

/// Returns the bytes of one shard in the stripes that a part touches.
fn stripes(code: &ErasureCode, part: Part) -> Range {
    let unit = u64::from(code.stripe_unit_bytes);
    let stripe = unit * u64::from(code.data);
    (part.from / stripe * unit, part.to.div_ceil(stripe) * unit)
}

/// Returns the bytes of one shard in the stripes of which a part changes only some bytes: those between the first and
/// the last such stripe.
fn partial_stripes(code: &ErasureCode, part: Part) -> Option<Range> {
    let unit = u64::from(code.stripe_unit_bytes);
    let stripe = unit * u64::from(code.data);
    let (first, last) = (part.from / stripe, (part.to - 1) / stripe);
    let from = if part.from.is_multiple_of(stripe) { last } else { first };
    let to = if part.to.is_multiple_of(stripe) { first } else { last };
    match (part.from.is_multiple_of(stripe), part.to.is_multiple_of(stripe)) {
        (true, true) => None,
        (true, false) | (false, true) | (false, false) => Some((from * unit, (to + 1) * unit)),
    }
}

/// Returns the number of bytes of a data shard among the first `bytes` of an object.
fn bytes_of_shard(code: &ErasureCode, bytes: u64, shard: u32) -> u64 {
    let unit = u64::from(code.stripe_unit_bytes);
    let stripe = unit * u64::from(code.data);
    bytes / stripe * unit + (bytes % stripe).saturating_sub(u64::from(shard) * unit).min(unit)
}

/// Returns the requested bytes of a data shard, which are consecutive there.
fn own_range(code: &ErasureCode, part: Part, shard: u32) -> Option<Range> {
    let range = (bytes_of_shard(code, part.from, shard), bytes_of_shard(code, part.to, shard));
    (range.0 < range.1).then_some(range)
}

/// Returns the changed bytes of a parity shard: from the first to the last changed byte of any data shard.
fn parity_range(code: &ErasureCode, part: Part) -> Range {
    let changed = (0..code.data).filter_map(|shard| own_range(code, part, shard));
    changed.fold((u64::MAX, 0), |all, range| (all.0.min(range.0), all.1.max(range.1)))
}

/// Returns what is read of a shard to compute the new parity: the data shards that are not written completely, or the
/// old bytes of what is written if these are on fewer shards.
fn parity_source(code: &ErasureCode, part: Part, shard: u32) -> Option<Range> {
    let parity = parity_range(code, part);
    let changed = (0..code.data).filter(|&shard| own_range(code, part, shard).is_some()).count() as u32;
    let other = (0..code.data).filter(|&shard| own_range(code, part, shard) != Some(parity)).count() as u32;
    match other <= changed + code.parity {
        true => (shard < code.data && own_range(code, part, shard) != Some(parity)).then_some(parity),
        false if shard < code.data => own_range(code, part, shard),
        false => Some(parity),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1 << 10;

    fn code(data: u32, parity: u32, unit_kib: u64, access: ErasureAccess) -> Redundancy {
        Redundancy::Erasure(ErasureCode { data, parity, stripe_unit_bytes: (unit_kib * KIB) as u32, access })
    }

    /// Shards that a write of `kib` at the start of an object reads and writes.
    fn counts(redundancy: &Redundancy, kib: u64) -> (usize, usize) {
        let part = Part { from: 0, to: kib * KIB };
        let shards = 0..redundancy.width();
        let reads = shards.clone().filter(|&shard| range_before_write(redundancy, part, shard).is_some()).count();
        (reads, shards.filter(|&shard| write_range(redundancy, part, shard).is_some()).count())
    }

    /// The table of the blog of Ceph on fast erasure coding (2025-11-20), for stripe units of 16 KiB.
    #[test]
    fn small_writes_read_and_write_the_published_shards() {
        for (data, expected) in [(2, (1, 3)), (4, (3, 3)), (6, (3, 3)), (8, (3, 3))] {
            for kib in [4, 16] {
                assert_eq!(counts(&code(data, 2, 16, ErasureAccess::ChangedShards), kib), expected, "{data}+2");
            }
        }
        assert_eq!(counts(&code(6, 2, 16, ErasureAccess::ChangedShards), 32), (4, 4));
        assert_eq!(counts(&code(6, 2, 16, ErasureAccess::ChangedShards), 96), (0, 8));
        assert_eq!(counts(&code(6, 2, 4, ErasureAccess::WholeStripes), 4), (6, 8));
        assert_eq!(counts(&code(6, 2, 4, ErasureAccess::WholeStripes), 24), (0, 8));
        assert_eq!(counts(&Redundancy::Copies(3), 4), (0, 3));
    }

    /// The ranges of the data shards are the bytes of the part, each once.
    #[test]
    fn the_ranges_of_the_shards_cover_a_part() {
        let unit = 16 * KIB;
        let redundancy = code(4, 2, 16, ErasureAccess::ChangedShards);
        for (from, to) in [(0, 4 * KIB), (12 * KIB, 20 * KIB), (60 * KIB, 200 * KIB), (64 * KIB, 128 * KIB)] {
            let part = Part { from, to };
            let mut bytes = Vec::new();
            for shard in 0..4 {
                let Some((first, end)) = read_range(&redundancy, part, shard) else { continue };
                bytes.extend((first..end).map(|at| at / unit * 4 * unit + u64::from(shard) * unit + at % unit));
            }
            bytes.sort_unstable();
            assert!(bytes.iter().copied().eq(from..to), "{part:?}");
        }
    }

    /// Only the first and the last stripe are read if only these are changed in part.
    #[test]
    fn whole_stripes_are_not_read_before_a_write() {
        let redundancy = code(2, 1, 4, ErasureAccess::WholeStripes);
        let range = |from, to| range_before_write(&redundancy, Part { from: from * KIB, to: to * KIB }, 1);
        assert_eq!(range(0, 8), None);
        assert_eq!(range(0, 12), Some((4 * KIB, 8 * KIB)));
        assert_eq!(range(4, 16), Some((0, 4 * KIB)));
        assert_eq!(range(4, 20), Some((0, 12 * KIB)));
    }
}
