//! A digest that identifies recordings with equal contents, independent of times.

use twox_hash::XxHash3_128;

use crate::CrashError;
use crate::recording::{Change, Ending, Event, Fate, Recording, Start, Stored};

/// Bytes of a change that are read at a time.
const PART_BYTES: u64 = 1 << 20;

impl Recording {
    /// Returns a hash (XXH3, 128 bits) of the device, the events in order with their data, the marks and the ending.
    /// Times are excluded, and so is the name of the initial image: an identical run may have it elsewhere.
    ///
    /// # Errors
    /// The file system's error.
    pub fn digest(&self) -> Result<u128, CrashError> {
        let mut words = NumberHasher(XxHash3_128::new());
        let device = &self.device;
        let starts = match device.start {
            Start::Zeros => 0,
            Start::Image(_) => 1,
        };
        let cache = u64::from(device.has_volatile_cache);
        let sizes = [device.capacity_bytes, u64::from(device.block_bytes), u64::from(device.atomic_bytes)];
        sizes.into_iter().chain([cache, starts]).for_each(|word| words.add(word));
        for event in &self.events {
            match *event {
                Event::Change(number) => self.add_change(number, &mut words)?,
                Event::Changed(number, fate) => words.add_all([2, u64::from(number), number_of(fate)]),
                Event::Flush(number) => words.add_all([3, u64::from(number)]),
                Event::Flushed(number, fate) => words.add_all([4, u64::from(number), number_of(fate)]),
                Event::Mark(number) => {
                    let text = &self.marks[number as usize];
                    words.add_all([5, text.len() as u64]);
                    words.0.write(text.as_bytes());
                }
                Event::PowerOff => words.add(6),
                Event::PowerOn => words.add(7),
            }
        }
        words.add_all(match self.ending {
            Ending::Whole => [8, 0],
            Ending::Unfinished => [9, 0],
            Ending::CutOff { left_bytes, .. } => [10, left_bytes],
        });
        Ok(words.0.finish_128())
    }

    fn add_change(&self, number: u32, words: &mut NumberHasher) -> Result<(), CrashError> {
        let Change { stored, offset_bytes, length_bytes, is_forced, is_metadata, submitted_ns: _ } =
            self.changes[number as usize];
        let kind = match stored {
            Stored::Data { .. } => 0,
            Stored::Zeros => 1,
            Stored::Trim => 2,
        };
        words.add_all([1, kind, offset_bytes, length_bytes, u64::from(is_forced), u64::from(is_metadata)]);
        if let Stored::Data { .. } = stored {
            let mut data = vec![0; length_bytes.min(PART_BYTES) as usize];
            for from_bytes in (0..length_bytes).step_by(PART_BYTES as usize) {
                let part = &mut data[..(length_bytes - from_bytes).min(PART_BYTES) as usize];
                self.read(number, from_bytes, part)?;
                words.0.write(part);
            }
        }
        Ok(())
    }
}

/// Hashes numbers as eight bytes each, on every machine.
struct NumberHasher(XxHash3_128);

impl NumberHasher {
    fn add(&mut self, word: u64) {
        self.0.write(&word.to_le_bytes());
    }

    fn add_all(&mut self, words: impl IntoIterator<Item = u64>) {
        words.into_iter().for_each(|word| self.add(word));
    }
}

fn number_of(fate: Fate) -> u64 {
    match fate {
        Fate::Acknowledged => 0,
        Fate::Failed(number) => 1 + u64::from(number),
    }
}
