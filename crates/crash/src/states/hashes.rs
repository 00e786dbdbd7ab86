//! [`Hashes`]: compares contents at a cost proportional to their differences. The hash of the contents is the sum of
//! the hashes of each block with its offset. All-zero blocks count 0, so that unwritten and trimmed blocks are equal.
//! Among 2^32 states, a collision is possible.

use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;
use twox_hash::XxHash3_64;

use super::extents::{Range, Version};
use crate::CrashError;
use crate::base::Base;
use crate::recording::{Recording, Stored};

/// Number of bytes of the base that are read at a time.
const PART_BYTES: u64 = 1 << 20;

/// Cached hashes of the data of changes and of the initial contents.
#[derive(Debug, Default)]
pub(crate) struct Hashes {
    /// For each change, the sums of the hashes of its first n blocks, for n from 0.
    sums: FxHashMap<u32, Vec<u64>>,
    base: Base,
}

impl Hashes {
    pub(crate) fn new(base: Base) -> Hashes {
        Hashes { sums: FxHashMap::default(), base }
    }

    /// Returns the hash of a range with the version `held`.
    pub(crate) fn of(&mut self, recording: &Recording, range: Range, held: Version) -> Result<u64, CrashError> {
        let block_bytes = u64::from(recording.device.block_bytes);
        let Some(number) = held else { return self.of_base(range, block_bytes) };
        let change = &recording.changes[number as usize];
        if !matches!(change.stored, Stored::Data { .. }) {
            return Ok(0);
        }
        let sums = match self.sums.entry(number) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                let mut data = vec![0; change.length_bytes as usize];
                recording.read(number, 0, &mut data)?;
                place.insert(sums(&data, change.offset_bytes, block_bytes))
            }
        };
        let place = |at: u64| ((at - change.offset_bytes) / block_bytes) as usize;
        Ok(sums[place(range.1)].wrapping_sub(sums[place(range.0)]))
    }

    fn of_base(&self, (start, end): Range, block_bytes: u64) -> Result<u64, CrashError> {
        if self.base.size_bytes() <= start {
            return Ok(0);
        }
        let (mut sum, mut at) = (0_u64, start);
        while at < end {
            let mut data = vec![0; (end - at).min(PART_BYTES) as usize];
            self.base.read(at, &mut data)?;
            sum = sum.wrapping_add(sums(&data, at, block_bytes).pop().unwrap_or(0));
            at += data.len() as u64;
        }
        Ok(sum)
    }
}

/// Returns the sums of the hashes of the first n blocks, for n from 0.
fn sums(data: &[u8], offset_bytes: u64, block_bytes: u64) -> Vec<u64> {
    let mut sum = 0_u64;
    let blocks = data.chunks(block_bytes as usize).enumerate().map(|(place, block)| {
        let is_zeros = block.iter().all(|&byte| byte == 0);
        let place = offset_bytes / block_bytes + place as u64;
        sum = sum.wrapping_add(if is_zeros { 0 } else { XxHash3_64::oneshot_with_seed(place, block) });
        sum
    });
    std::iter::once(0).chain(blocks).collect()
}
