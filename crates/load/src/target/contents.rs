//! Samples the contents of a device before it is written ([`Sample`]). A device without a known signature may still
//! hold an encrypted volume, a database or a backup.

use std::io;

use super::superblocks::Part;
use crate::integrity;

/// Size of the blocks that are classified, in bytes: the block size of most file systems.
pub(super) const BLOCK_BYTES: u64 = 4096;
/// Number of bytes at the start and at the end that are read completely: file systems and databases keep their metadata
/// near the start, RAIDs near the end.
const START_BYTES: u64 = 8 << 20;
const END_BYTES: u64 = 1 << 20;
/// Number of blocks sampled in between, one in each of as many equal stretches. The probability of missing data on 2 %
/// of a device is 0.98^256 = 0.6 %; on an HDD, 256 reads in ascending order take about two seconds.
const SPREAD: u64 = 256;
/// Number of bytes at each end of a device that a partition table takes: 34 blocks of 512 bytes, or 6 of 4,096.
const TABLE_BYTES: u64 = 24 << 10;
/// Chi-square of the 256 byte values in a block above which the block does not count as random. Random bytes have a
/// mean of 255, and one block in 10^12 exceeds 450; text, tables and metadata reach 10^4 and more.
const RANDOM_MAX: f64 = 450.0;
/// Prefix of a confirmation that states the share of nonempty blocks.
const CONFIRMED: &str = "data:";
/// Tolerance of a confirmation, in percentage points: the sample is the same each time, but people round.
const TOLERANCE_PERCENT: f64 = 0.5;

/// Counts of sampled blocks by their contents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sample {
    /// Number of sampled blocks.
    pub blocks: u64,
    /// Number of blocks with random data, or stamped by an earlier run of headstack.
    pub random: u64,
    /// Number of blocks with structure, such as text or metadata.
    pub structured: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Block {
    /// The block has a single byte value: it was erased, or filled with a pattern.
    Empty,
    Random,
    Structured,
}

impl Sample {
    /// Samples a part of a device. With `has_table`, the ends that a partition table takes are ignored.
    ///
    /// # Errors
    /// Returns an error if the device cannot be read.
    pub(super) fn take(part: &Part, length_bytes: u64, has_table: bool) -> io::Result<Sample> {
        let mut sample = Sample::default();
        let mut block = vec![0; BLOCK_BYTES as usize];
        let ends = if has_table { TABLE_BYTES } else { 0 };
        for at_bytes in places(length_bytes) {
            let is_of_table = at_bytes < ends || at_bytes + BLOCK_BYTES > length_bytes.saturating_sub(ends);
            if is_of_table || !part.read(at_bytes, &mut block)? {
                continue;
            }
            sample.blocks += 1;
            match judged(&block, at_bytes, length_bytes) {
                Block::Empty => {}
                Block::Random => sample.random += 1,
                Block::Structured => sample.structured += 1,
            }
        }
        Ok(sample)
    }

    /// Returns the share of nonempty blocks, in percent.
    fn filled_percent(&self) -> f64 {
        100.0 * (self.random + self.structured) as f64 / self.blocks.max(1) as f64
    }

    /// Returns whether one of the confirmations, such as `data:12.5%`, states the share of nonempty blocks.
    fn is_confirmed(&self, confirmations: &[String]) -> bool {
        let named = |confirmation: &String| {
            let percent = confirmation.trim().strip_prefix(CONFIRMED)?.strip_suffix('%')?;
            percent.parse::<f64>().ok()
        };
        confirmations.iter().filter_map(named).any(|named| (named - self.filled_percent()).abs() <= TOLERANCE_PERCENT)
    }

    /// Returns the reason not to write the device, if it holds structured data whose loss is not confirmed.
    pub(super) fn refusal(&self, confirmations: &[String]) -> Option<String> {
        if self.structured == 0 || self.is_confirmed(confirmations) {
            return None;
        }
        let (Sample { blocks, structured, .. }, percent) = (*self, self.filled_percent());
        Some(format!(
            "holds data of an unknown format: {structured} of {blocks} sampled blocks are structured, {percent:.2} % are not \
             empty; to overwrite them, add --signature {CONFIRMED}{percent:.2}%"
        ))
    }

    /// Returns the note on a device that is written although some blocks have random data.
    pub(super) fn note(&self) -> Option<String> {
        let Sample { blocks, random, .. } = *self;
        (random > 0).then(|| {
            format!("{random} of {blocks} sampled blocks held random bytes, for example of earlier measurements or encrypted data")
        })
    }
}

/// Returns the offsets of the sampled blocks, in ascending order.
pub(super) fn places(length_bytes: u64) -> impl Iterator<Item = u64> {
    let blocks = length_bytes / BLOCK_BYTES;
    let start = blocks.min(START_BYTES / BLOCK_BYTES);
    let end = blocks.saturating_sub(END_BYTES / BLOCK_BYTES).max(start);
    let between = end - start;
    let count = SPREAD.min(between);
    // The offset differs within each stretch, so that no periodic pattern is missed.
    let place = move |index: u64| {
        let stretch = |index: u64| (u128::from(between) * u128::from(index) / u128::from(count)) as u64;
        let (from, until) = (stretch(index), stretch(index + 1));
        start + from + index.wrapping_mul(0x9e37_79b9_7f4a_7c15) % (until - from)
    };
    (0..start).chain((0..count).map(place)).chain(end..blocks).map(|block| block * BLOCK_BYTES)
}

fn judged(block: &[u8], at_bytes: u64, length_bytes: u64) -> Block {
    if block.iter().all(|&byte| byte == block[0]) {
        return Block::Empty;
    }
    let mut counts = [0u32; 256];
    for &byte in block {
        counts[usize::from(byte)] += 1;
    }
    let expected = block.len() as f64 / 256.0;
    let chi_square: f64 = counts.iter().map(|&count| (f64::from(count) - expected).powi(2) / expected).sum();
    if chi_square <= RANDOM_MAX || integrity::recognise(length_bytes, at_bytes, block).is_some() {
        Block::Random
    } else {
        Block::Structured
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use headstack_workload::{Purpose, Random};

    use super::super::signatures::image;
    use super::*;

    const MIB: u64 = 1 << 20;

    fn sampled(file: &std::fs::File, length_bytes: u64) -> Sample {
        Sample::take(&Part::new(file, 0, length_bytes), length_bytes, false).unwrap()
    }

    #[test]
    fn zeros_and_patterns_are_empty_and_noise_is_random() {
        let length_bytes = 16 * MIB;
        let file = image(length_bytes);
        let mut random = Random::new(7, Purpose::Contents);
        let noise: Vec<u8> = (0..4 * MIB / 8).flat_map(|_| random.bits().to_le_bytes()).collect();
        file.write_all_at(&noise, 0).unwrap();
        file.write_all_at(&vec![0xff; MIB as usize], 6 * MIB).unwrap();
        let sample = sampled(&file, length_bytes);
        assert_eq!((sample.random, sample.structured), (1024, 0));
        assert_eq!(sample.refusal(&[]), None);
        assert!(sample.note().unwrap().contains("1024 of "));
    }

    #[test]
    fn one_block_of_text_is_refused_until_its_share_is_named() {
        let length_bytes = 16 * MIB;
        let file = image(length_bytes);
        file.write_all_at(&b"create table accounts;".repeat(100), 5 * MIB).unwrap();
        let sample = sampled(&file, length_bytes);
        assert_eq!(sample.structured, 1);
        let percent = format!("{:.2}", 100.0 / sample.blocks as f64);
        let refusal = sample.refusal(&[]).unwrap();
        assert!(refusal.contains(&format!("--signature data:{percent}%")), "{refusal}");
        for wrong in ["data", "data:", "data:100%", "data:x%", "ext4"] {
            assert!(sample.refusal(&[wrong.to_owned()]).is_some(), "{wrong}");
        }
        assert_eq!(sample.refusal(&[format!("data:{percent}%")]), None);
    }

    #[test]
    fn data_on_5_percent_of_a_device_are_found_at_any_offset() {
        let length_bytes = 1 << 40;
        for from in (0..20).map(|share| length_bytes / 20 * share) {
            let until = from + length_bytes / 20;
            let found = places(length_bytes).filter(|at| (from..until).contains(at)).count();
            assert!(found >= 10, "{from}: {found}");
        }
        let all: Vec<u64> = places(length_bytes).collect();
        assert!(all.is_sorted() && all.iter().all(|at| at % BLOCK_BYTES == 0 && at + BLOCK_BYTES <= length_bytes));
    }

    #[test]
    fn short_devices_are_read_whole() {
        for blocks in [0, 1, 7, 300, 2048, 2400, 2500] {
            let all: Vec<u64> = places(blocks * BLOCK_BYTES + 511).collect();
            assert!(all.windows(2).all(|pair| pair[0] < pair[1]));
            assert!(all.len() as u64 <= blocks);
            assert!(blocks > 2304 || all.len() as u64 == blocks, "{blocks}: {}", all.len());
        }
    }

    #[test]
    fn a_partition_table_is_ignored_but_not_data_next_to_it() {
        let length_bytes = 4 * MIB;
        let file = image(length_bytes);
        file.write_all_at(b"EFI PART", 512).unwrap();
        file.write_all_at(b"EFI PART", length_bytes - 512).unwrap();
        let part = Part::new(&file, 0, length_bytes);
        assert_eq!(Sample::take(&part, length_bytes, true).unwrap().structured, 0);
        assert_eq!(Sample::take(&part, length_bytes, false).unwrap().structured, 2);
        file.write_all_at(b"data", TABLE_BYTES).unwrap();
        assert_eq!(Sample::take(&part, length_bytes, true).unwrap().structured, 1);
    }
}
