//! [`Stack`]: the LRU stack as a bitmap over time, with a bit for the last use of each block and counts of later bits.
//!
//! The stack distance of a block is the number of bits after its own. The axis is twice to four times as long as the
//! number of blocks, so for a working set of 50,000 it has 16 KiB and stays in the first-level cache; when it is full,
//! it is compacted. A Fenwick tree over the same axis needs 32 times the memory.

const WORD_BITS: usize = 64;
/// Words that are counted directly.
const LINE_WORDS: usize = 4;
const LINE_BITS: usize = LINE_WORDS * WORD_BITS;
/// Number of counts that a count of the next level sums.
const FAN_OUT: usize = 16;
const BITS_MIN: usize = 4_096;

/// Last uses in order of time.
pub(crate) struct Stack {
    words: Vec<u64>,
    /// Number of bits in each line, then in each group of lines, and so on.
    levels: Vec<Vec<u32>>,
    next: usize,
}

/// New positions of bits when the axis is compacted.
pub(crate) struct Moves {
    words: Vec<u64>,
    before: Vec<u32>,
}

impl Moves {
    /// New position of the bit at `position`.
    #[inline]
    pub(crate) fn to(&self, position: u32) -> u32 {
        let (word, bit) = (position as usize / WORD_BITS, position as usize % WORD_BITS);
        self.before[word] + (self.words[word] & ((1 << bit) - 1)).count_ones()
    }
}

impl Stack {
    pub(crate) fn new() -> Stack {
        Stack::of(0, BITS_MIN)
    }

    /// An axis of `bits`, of which the first `live` are set.
    fn of(live: usize, bits: usize) -> Stack {
        let mut words = vec![0; bits.div_ceil(LINE_BITS) * LINE_WORDS];
        let mut levels = Vec::new();
        let mut counts = words.len() / LINE_WORDS;
        while counts > FAN_OUT {
            levels.push(vec![0; counts]);
            counts = counts.div_ceil(FAN_OUT);
        }
        levels.push(vec![0; counts]);
        words[..live / WORD_BITS].fill(u64::MAX);
        if !live.is_multiple_of(WORD_BITS) {
            words[live / WORD_BITS] = (1 << (live % WORD_BITS)) - 1;
        }
        let mut covered = LINE_BITS;
        for level in &mut levels {
            for (index, count) in level.iter_mut().enumerate() {
                *count = live.saturating_sub(index * covered).min(covered) as u32;
            }
            covered *= FAN_OUT;
        }
        Stack { words, levels, next: live }
    }

    /// Whether there is room for `uses` more.
    #[inline]
    pub(crate) fn has_room(&self, uses: usize) -> bool {
        self.next + uses <= self.words.len() * WORD_BITS
    }

    /// Compacts the axis and makes room for `uses`; all positions must then be updated.
    pub(crate) fn compact(&mut self, uses: usize) -> Moves {
        let mut live = 0;
        let before: Vec<u32> = self
            .words
            .iter()
            .map(|word| {
                let before = live;
                live += word.count_ones();
                before
            })
            .collect();
        let bits = ((live as usize + uses) * 2).next_power_of_two().max(BITS_MIN);
        let old = std::mem::replace(self, Stack::of(live as usize, bits));
        Moves { words: old.words, before }
    }

    /// Position of the next use.
    #[inline]
    pub(crate) fn next(&self) -> u32 {
        self.next as u32
    }

    /// Sets the next `uses` bits.
    #[inline]
    pub(crate) fn push(&mut self, uses: usize) {
        let from = self.next;
        self.next += uses;
        self.each_word(from, uses, |word, mask| *word |= mask, u32::wrapping_add);
    }

    /// Clears `uses` set bits from `position` on.
    #[inline]
    pub(crate) fn clear(&mut self, position: u32, uses: usize) {
        self.each_word(position as usize, uses, |word, mask| *word &= !mask, u32::wrapping_sub);
    }

    #[inline]
    fn each_word(&mut self, from: usize, uses: usize, change: fn(&mut u64, u64), count: fn(u32, u32) -> u32) {
        let (mut at, end) = (from, from + uses);
        while at < end {
            let bit = at % WORD_BITS;
            let bits = (WORD_BITS - bit).min(end - at);
            change(&mut self.words[at / WORD_BITS], u64::MAX >> (WORD_BITS - bits) << bit);
            let mut index = at / LINE_BITS;
            for level in &mut self.levels {
                level[index] = count(level[index], bits as u32);
                index /= FAN_OUT;
            }
            at += bits;
        }
    }

    /// Number of bits after `position`: other blocks used since.
    #[inline]
    pub(crate) fn behind(&self, position: u32) -> u64 {
        let word = position as usize / WORD_BITS;
        let line = word / LINE_WORDS;
        let mut bits = (self.words[word] >> (position as usize % WORD_BITS) >> 1).count_ones();
        for word in &self.words[word + 1..(line + 1) * LINE_WORDS] {
            bits += word.count_ones();
        }
        let mut index = line;
        for level in &self.levels {
            let end = ((index / FAN_OUT + 1) * FAN_OUT).min(level.len());
            bits += level[index + 1..end].iter().sum::<u32>();
            index /= FAN_OUT;
        }
        u64::from(bits)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn stack_distance_counts_newer_entries(
            clears in prop::collection::vec((0u32..20_000, 1usize..200), 0..60),
            asked in prop::collection::vec(0u32..20_000, 20),
        ) {
            let mut stack = Stack::new();
            stack.compact(20_000);
            let mut bits = vec![true; 20_000];
            for chunk in bits.chunks(77) {
                stack.push(chunk.len());
            }
            for (from, uses) in clears {
                let end = (from as usize..(from as usize + uses).min(20_000)).find(|&at| !bits[at]);
                let end = end.unwrap_or((from as usize + uses).min(20_000));
                stack.clear(from, end - from as usize);
                bits[from as usize..end].fill(false);
            }
            let behind = |bits: &[bool], at: usize| bits[at + 1..].iter().filter(|bit| **bit).count() as u64;
            for &at in &asked {
                prop_assert_eq!(stack.behind(at), behind(&bits, at as usize));
            }
            let moves = stack.compact(10);
            for &at in asked.iter().filter(|&&at| bits[at as usize]) {
                prop_assert_eq!(stack.behind(moves.to(at)), behind(&bits, at as usize));
            }
        }
    }
}
