//! Contents of files: incompressible noise, or a stamp in every sector that identifies the sector's place.
//!
//! The stamp is that of `integrity`, with the offset in the file as place, the number of the file as request, and the
//! generation of the visit.

use headstack_result::Integrity;
use headstack_workload::{Purpose, Random};

use super::shape::SECTOR_BYTES;
use super::states::Expected;
use crate::integrity::{Generation, SectorContents, Stamp, examine};

/// Alignment of transfers, in bytes: one page, which every device accepts.
const ALIGN_BYTES: usize = 4096;
/// Maximum number of findings that are reported individually.
const TOLD: usize = 32;
const SECTOR: usize = SECTOR_BYTES as usize;

/// Memory for one transfer.
pub struct Buffer {
    bytes: Vec<u8>,
    start: usize,
}

impl Buffer {
    /// Allocates a buffer of `length` bytes of noise.
    pub fn new(length: usize, seed: u64) -> Buffer {
        let mut bytes = vec![0; length + ALIGN_BYTES];
        let mut noise = Random::new(seed, Purpose::Choices);
        bytes.chunks_exact_mut(8).for_each(|word| word.copy_from_slice(&noise.bits().to_le_bytes()));
        let start = bytes.as_ptr().align_offset(ALIGN_BYTES);
        Buffer { bytes, start }
    }

    /// Returns the first `length` bytes.
    pub fn of(&mut self, length: usize) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + length]
    }

    /// Changes the first words of the buffer, so that storage never receives the same data twice.
    pub fn renew(&mut self, length: usize, random: &mut Random) {
        for sector in self.of(length).chunks_mut(SECTOR) {
            let word = random.bits().to_le_bytes();
            let length = sector.len().min(word.len());
            sector[..length].copy_from_slice(&word[..length]);
        }
    }
}

/// Identity of a file: its tree and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileIdentity {
    /// Random number of the tree.
    pub tree: u64,
    /// Number of the file.
    pub file: u64,
}

impl FileIdentity {
    /// Stamps each sector of data to be written at `offset`.
    pub fn stamp(self, bytes: &mut [u8], offset: u64, generation: u32) {
        let request_bytes = bytes.len() as u32;
        for (sector, place) in bytes.chunks_exact_mut(SECTOR).zip((offset..).step_by(SECTOR)) {
            let stamp = Stamp {
                run: self.tree,
                offset: place,
                request: self.file,
                request_offset: offset,
                request_bytes,
                generation: Generation(generation),
                unit_bytes: SECTOR as u32,
                sector_bytes: SECTOR as u32,
            };
            stamp.write(sector);
        }
    }

    /// Judges each sector of data read at `offset` of a file.
    pub fn check(self, bytes: &[u8], offset: u64, expected: Expected, path: &str, judged: &mut Judged) {
        let Expected { state, is_sure, .. } = expected;
        for (sector, place) in bytes.chunks_exact(SECTOR).zip((offset..).step_by(SECTOR)) {
            judged.report.checked += 1;
            let expected = || format!("expected generation {} to {}", state.whole, state.latest);
            match examine(sector, place, Some(self.tree)) {
                SectorContents::Own(stamp) if stamp.request != self.file => {
                    judged.report.misplaced += 1;
                    judged.damaged(path, place, &format!("has data of file {}", stamp.request));
                }
                SectorContents::Own(stamp) if stamp.generation.0 < state.whole => {
                    judged.report.stale += 1;
                    judged.lost(path, place, &format!("holds generation {}, {}", stamp.generation.0, expected()));
                }
                SectorContents::Own(stamp) if stamp.generation.0 > state.latest => judged.report.ahead += 1,
                SectorContents::Own(_) => judged.report.intact += 1,
                SectorContents::Misplaced(stamp) => {
                    judged.report.misplaced += 1;
                    judged.damaged(path, place, &format!("has data of byte {}", stamp.offset));
                }
                SectorContents::Corrupt { bits, .. } => {
                    judged.report.corrupt += 1;
                    let bits = bits.map_or("its stamp is damaged".to_owned(), |bits| format!("{bits} bits differ"));
                    judged.damaged(path, place, &bits);
                }
                SectorContents::Zeros if !is_sure => judged.report.unwritten += 1,
                SectorContents::Zeros => {
                    judged.report.zeros += 1;
                    judged.lost(path, place, &format!("holds zeros, {}", expected()));
                }
                SectorContents::OtherRun(_) | SectorContents::Foreign => {
                    judged.report.foreign += 1;
                    judged.damaged(path, place, "has data that headstack did not write");
                }
            }
        }
    }
}

/// Verdicts so far, with the places of the findings.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The verdicts in the form of results.
    pub report: Integrity,
}

impl Default for Judged {
    fn default() -> Judged {
        Judged { report: Integrity { block_bytes: SECTOR as u32, ..Integrity::default() } }
    }
}

impl Judged {
    fn find(&mut self, path: &str, place: u64, what: &str) {
        if self.report.findings.len() < TOLD {
            self.report.findings.push(format!("{path}, byte {place}: {what}"));
        }
    }

    fn damaged(&mut self, path: &str, place: u64, what: &str) {
        self.report.damaged += 1;
        self.find(path, place, what);
    }

    fn lost(&mut self, path: &str, place: u64, what: &str) {
        self.report.lost += 1;
        self.find(path, place, what);
    }

    /// Adds a file that is missing or too short. The missing bytes count as lost.
    pub fn lost_file(&mut self, path: &str, missing_bytes: u64, what: &str) {
        let sectors = (missing_bytes / SECTOR_BYTES).max(1);
        self.report.checked += sectors;
        self.report.zeros += sectors;
        self.report.lost += sectors;
        if self.report.findings.len() < TOLD {
            self.report.findings.push(format!("{path}: {what}"));
        }
    }

    /// Adds a file that should not exist: it was removed and is there again, or was never created.
    pub fn returned_file(&mut self, path: &str) {
        self.report.checked += 1;
        self.report.stale += 1;
        self.report.lost += 1;
        if self.report.findings.len() < TOLD {
            self.report.findings.push(format!("{path}: exists, though it was removed or never created"));
        }
    }

    /// Adds a range that could not be read.
    pub fn unreadable(&mut self, path: &str, place: u64, bytes: u64, error: &std::io::Error) {
        let sectors = (bytes / SECTOR_BYTES).max(1);
        self.report.checked += sectors;
        self.report.unreadable += sectors;
        self.report.damaged += sectors - 1;
        self.damaged(path, place, &format!("cannot be read: {error}"));
    }

    /// Adds the verdicts of another thread.
    pub fn merge(&mut self, other: Judged) {
        let (own, other) = (&mut self.report, other.report);
        own.checked += other.checked;
        own.intact += other.intact;
        own.ahead += other.ahead;
        own.stale += other.stale;
        own.misplaced += other.misplaced;
        own.corrupt += other.corrupt;
        own.zeros += other.zeros;
        own.unwritten += other.unwritten;
        own.foreign += other.foreign;
        own.unreadable += other.unreadable;
        own.damaged += other.damaged;
        own.lost += other.lost;
        own.findings.extend(other.findings);
        own.findings.truncate(TOLD);
        own.cannot_tell.extend(other.cannot_tell);
        own.cannot_tell.dedup();
    }
}

#[cfg(test)]
mod tests {
    use super::super::states::FileState;
    use super::*;

    const OWN: FileIdentity = FileIdentity { tree: 77, file: 5 };
    const STATE: FileState = FileState { exists: true, is_full: true, is_unknown: false, whole: 3, latest: 4 };
    const SURE: Expected = Expected { state: STATE, is_sure: true, is_unknown: false };

    fn judged(change: impl FnOnce(&mut Vec<u8>)) -> Integrity {
        let mut bytes = vec![0; 4 * SECTOR];
        OWN.stamp(&mut bytes, 8_192, 3);
        OWN.stamp(&mut bytes[SECTOR..2 * SECTOR], 8_192 + SECTOR_BYTES, 4);
        change(&mut bytes);
        let mut judged = Judged::default();
        OWN.check(&bytes, 8_192, SURE, "f", &mut judged);
        judged.report
    }

    #[test]
    fn each_kind_of_damage_is_distinguished() {
        let good = judged(|_| {});
        assert_eq!((good.checked, good.intact, good.faults()), (4, 4, 0));
        let flipped = judged(|bytes| bytes[100] ^= 4);
        assert_eq!((flipped.corrupt, flipped.damaged), (1, 1));
        assert_eq!(flipped.findings, ["f, byte 8192: 1 bits differ"]);
        let zeroed = judged(|bytes| bytes[SECTOR..2 * SECTOR].fill(0));
        assert_eq!((zeroed.zeros, zeroed.lost), (1, 1));
        let old = judged(|bytes| OWN.stamp(&mut bytes[..SECTOR], 8_192, 2));
        assert_eq!((old.stale, old.lost), (1, 1));
        let elsewhere = judged(|bytes| OWN.stamp(&mut bytes[..SECTOR], 0, 3));
        assert_eq!((elsewhere.misplaced, elsewhere.damaged), (1, 1));
        let other = judged(|bytes| FileIdentity { file: 6, ..OWN }.stamp(&mut bytes[..SECTOR], 8_192, 3));
        assert_eq!((other.misplaced, other.damaged), (1, 1));
        let foreign = judged(|bytes| FileIdentity { tree: 78, ..OWN }.stamp(&mut bytes[..SECTOR], 8_192, 3));
        assert_eq!((foreign.foreign, foreign.damaged), (1, 1));
    }
}
