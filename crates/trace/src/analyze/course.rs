//! [`Course`]: a compact list of requests as a queue receives them: arrival, length, operation, whether sequential.
//!
//! Of a long trace, evenly spaced pieces of consecutive requests are kept.

use super::mix::{DEVICES_MAX, transfers};
use super::sequence::{Placement, Sequence};
use crate::record::{Operation, Record};

const READ: u32 = 1;
/// The request continues no recent stream of its device.
const RANDOM: u32 = 1 << 1;
/// The request is the first of a piece.
const BEGINS: u32 = 1 << 2;

/// Requests that transfer data, of pieces of the trace.
pub struct Course {
    stride: u64,
    length: u64,
    seen: u64,
    sequences: Vec<Sequence>,
    bytes: Vec<u8>,
}

impl Course {
    /// Keeps the first `length` of every `stride` requests.
    pub fn new(stride: u64, length: u64) -> Course {
        Course { stride: stride.max(1), length, seen: 0, sequences: Vec::new(), bytes: Vec::new() }
    }

    /// Adds the next requests, in order of arrival.
    pub fn add(&mut self, records: &[Record]) {
        for record in records.iter().filter(|record| transfers(record.operation)) {
            let device = (record.device as usize).min(DEVICES_MAX);
            while device >= self.sequences.len() {
                self.sequences.push(Sequence::new(false));
            }
            let continues = self.sequences[device].add(record) == Placement::Sequential;
            let place = self.seen % self.stride;
            self.seen += 1;
            if place < self.length {
                let bit = |bit: u32, is_set: bool| if is_set { bit } else { 0 };
                let delta =
                    bit(READ, record.operation == Operation::Read) | bit(RANDOM, !continues) | bit(BEGINS, place == 0);
                self.bytes.extend(record.arrival_ns.to_le_bytes());
                self.bytes.extend(record.length_bytes.to_le_bytes());
                self.bytes.extend(delta.to_le_bytes());
            }
        }
    }

    /// Returns sixteen bytes per request, little-endian: arrival in ns (8), length (4), and bits for read, random, and
    /// first of a piece (4).
    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_spread_evenly_and_detect_continuation() {
        let request = |n: u64, operation, block: u64| Record::new(n, operation, block * 4_096, 4_096);
        let records = [
            request(0, Operation::Read, 10),
            request(1, Operation::Write, 50),
            request(2, Operation::Flush, 0),
            request(3, Operation::Read, 11),
            request(4, Operation::Read, 12),
            request(5, Operation::Write, 51),
        ];
        let mut course = Course::new(3, 2);
        records.chunks(2).for_each(|batch| course.add(batch));
        let found: Vec<(u64, u32, u32)> = course
            .finish()
            .chunks(16)
            .map(|entry| {
                let word = |at: usize| u32::from_le_bytes(entry[at..at + 4].try_into().unwrap());
                (u64::from_le_bytes(entry[..8].try_into().unwrap()), word(8), word(12))
            })
            .collect();
        let expected =
            [(0, 4_096, READ | RANDOM | BEGINS), (1, 4_096, RANDOM), (4, 4_096, READ | BEGINS), (5, 4_096, 0)];
        assert_eq!(found, expected);
    }
}
