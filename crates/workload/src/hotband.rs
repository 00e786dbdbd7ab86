//! [`Hotband`]: vdbench's hot band, reproduced exactly.

use crate::places::Places;
use crate::random::Random;
use crate::request::Kind;
use crate::span::Span;

/// Points of the curve: a cache size in megabytes, as vdbench calls it, and the share of the accesses that a cache of
/// this size would hit. From vdbench 5.04.06, `Vdb/HotBand.java`.
const CURVE: [(f64, f64); 29] = [
    (0.0, 0.0),
    (16.0, 0.087217),
    (32.0, 0.10101),
    (64.0, 0.132206),
    (128.0, 0.159946),
    (256.0, 0.201713),
    (512.0, 0.262602),
    (1_024.0, 0.32645),
    (2_048.0, 0.366902),
    (4_096.0, 0.386175),
    (8_192.0, 0.436941),
    (16_384.0, 0.482631),
    (32_768.0, 0.523752),
    (65_536.0, 0.56076),
    (131_072.0, 0.594068),
    (262_144.0, 0.624045),
    (524_288.0, 0.651024),
    (1_048_576.0, 0.675305),
    (2_097_152.0, 0.697159),
    (4_194_304.0, 0.716827),
    (8_388_608.0, 0.734528),
    (16_777_216.0, 0.750459),
    (33_554_432.0, 0.764797),
    (67_108_864.0, 0.777701),
    (134_217_728.0, 0.789314),
    (268_435_456.0, 0.799767),
    (536_870_912.0, 0.809174),
    (1_073_741_824.0, 0.81764),
    (10_737_418_240.0, 1.0),
];

/// vdbench's slope of the last segment. The curve's own would be 52,992,303,224: the code's table is not consistent
/// there, and its results are those of this number.
const LAST_SLOPE: f64 = 1_313_220_630.0;

/// The unit of the curve as the code uses it: it calls 1000 of them kilobytes and then divides by the transfer size in
/// bytes, so a "megabyte" of the curve is 1000 bytes.
const UNIT_BYTES: u64 = 1_000;

const MEGABYTE_BYTES: u64 = 1_000_000;

/// A band of the span.
pub(crate) struct Hotband {
    start_bytes: u64,
    end_bytes: u64,
}

impl Hotband {
    pub(crate) fn new(span: Span, from_percent: f64, to_percent: f64) -> Hotband {
        let at = |percent: f64| span.start_bytes + (span.length_bytes as f64 * (percent / 100.0)) as u64;
        Hotband { start_bytes: at(from_percent), end_bytes: at(to_percent).min(span.start_bytes + span.length_bytes) }
    }

    /// Whether a request of `length_bytes` at one of `places` fits into the band.
    pub(crate) fn holds(&self, places: &Places, length_bytes: u32) -> bool {
        self.first_bytes(places) + u64::from(length_bytes) <= self.end_bytes
    }

    /// Returns the band's first place.
    #[inline]
    fn first_bytes(&self, places: &Places) -> u64 {
        let before_bytes = self.start_bytes.saturating_sub(places.first_bytes);
        places.first_bytes + before_bytes.next_multiple_of(places.step_bytes)
    }

    /// Returns the offset of an access, as `WG_entry.hotBandSeek`. The band must hold a request of `length_bytes`.
    #[inline]
    pub(crate) fn offset_bytes(&self, places: &Places, length_bytes: u32, kind: Kind, random: &mut Random) -> u64 {
        let length_bytes = u64::from(length_bytes);
        let first_bytes = self.first_bytes(places);
        let band_bytes = self.end_bytes - first_bytes;
        // In whole megabytes, at least one per band; ours never leaves the band.
        let counted_bytes = (band_bytes / MEGABYTE_BYTES).max(1) * MEGABYTE_BYTES;
        let blocks = (counted_bytes.min(band_bytes) / length_bytes).max(1);
        let mut block = UNIT_BYTES * curve_value(random.fraction()) / length_bytes;
        if kind != Kind::Read {
            block += blocks / 100;
        }
        let offset_bytes = block % blocks * length_bytes;
        // Only an alignment that does not divide the size moves a block.
        first_bytes + offset_bytes / places.step_bytes * places.step_bytes
    }
}

/// Returns the curve's whole value at a share `u` of 0 to 1, 1 excluded.
#[inline]
fn curve_value(u: f64) -> u64 {
    let next = CURVE.partition_point(|&(_, share)| share <= u);
    let (low, low_share) = CURVE[next - 1];
    let (high, high_share) = CURVE[next];
    let slope = if next + 1 == CURVE.len() { LAST_SLOPE } else { (high - low) / (high_share - low_share) };
    (low + (u - low_share) * slope) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Purpose;

    const PLACES: Places = Places { first_bytes: 0, step_bytes: 512, count: 1 };

    fn offsets(band_bytes: u64, length_bytes: u32, kind: Kind, count: usize) -> Vec<u64> {
        let span = Span { start_bytes: 0, length_bytes: band_bytes };
        let band = Hotband::new(span, 0.0, 100.0);
        let mut random = Random::new(5, Purpose::Addresses);
        (0..count).map(|_| band.offset_bytes(&PLACES, length_bytes, kind, &mut random)).collect()
    }

    #[test]
    fn shares_below_an_offset_are_those_of_vdbench() {
        // Computed independently from the steps of vdbench's source: reads of 8 KiB.
        let table = [
            (1_000u64, [0.049, 0.088, 0.324, 0.486, 0.614, 0.450, 0.614, 0.813]),
            (24_000, [0.049, 0.088, 0.325, 0.480, 0.578, 0.620, 0.725, 0.866]),
            (80_000, [0.049, 0.088, 0.325, 0.482, 0.580, 0.668, 0.757, 0.880]),
        ];
        for (megabytes, shares) in table {
            let band_bytes = megabytes * MEGABYTE_BYTES;
            let offsets = offsets(band_bytes, 8_192, Kind::Read, 400_000);
            let mb = MEGABYTE_BYTES;
            let limits = [8_192, 16_000, mb, 16 * mb, 100 * mb, band_bytes / 100, band_bytes / 10, band_bytes / 2];
            for (limit_bytes, share) in limits.into_iter().zip(shares) {
                let below = offsets.iter().filter(|&&offset| offset < limit_bytes).count() as f64 / 400_000.0;
                assert!((below - share).abs() <= 0.004, "{megabytes} MB below {limit_bytes}: {below}, not {share}");
            }
        }
    }

    #[test]
    fn writes_follow_reads_at_1_percent_of_the_blocks() {
        let (reads, writes) =
            (offsets(1_000_000_000, 8_192, Kind::Read, 1_000), offsets(1_000_000_000, 8_192, Kind::Write, 1_000));
        let blocks = 1_000_000_000 / 8_192;
        for (read, write) in reads.into_iter().zip(writes) {
            assert_eq!(write, (read / 8_192 + blocks / 100) % blocks * 8_192);
        }
    }

    #[test]
    fn requests_stay_inside_a_band_of_any_size() {
        for (band_bytes, length_bytes) in [(8_192, 8_192), (100_000, 61_440), (1_500_000, 262_144), (3_000_001, 512)] {
            let last = offsets(band_bytes, length_bytes, Kind::Write, 10_000).into_iter().max().unwrap();
            assert!(last + u64::from(length_bytes) <= band_bytes, "{band_bytes} {length_bytes}: {last}");
        }
    }
}
