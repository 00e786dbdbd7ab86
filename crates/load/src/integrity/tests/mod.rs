//! Tests of stamps, the rule, the ledger's file, and the classes of a scan.

mod model;
mod verdicts;

use std::path::PathBuf;

use super::stamp::{Generation, SectorContents, Stamp, examine};
use super::*;

fn stamp(offset: u64, generation: u32) -> Stamp {
    Stamp {
        run: 7,
        offset,
        request: 3,
        request_offset: offset,
        request_bytes: 512,
        generation: Generation(generation),
        unit_bytes: 512,
        sector_bytes: 512,
    }
}

fn sector(offset: u64, generation: u32) -> [u8; 512] {
    let mut sector = [0; 512];
    stamp(offset, generation).write(&mut sector);
    sector
}

/// A path for a file that is removed when the test ends.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("headstack-{}-{name}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        Scratch(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn any_flipped_bit_is_located() {
    let whole = sector(4096, 5);
    assert_eq!(examine(&whole, 4096, Some(7)), SectorContents::Own(stamp(4096, 5)));
    for bit in 0..512 * 8 {
        let mut flipped = whole;
        flipped[bit / 8] ^= 1 << (bit % 8);
        match examine(&flipped, 4096, Some(7)) {
            SectorContents::Corrupt { generation, first_byte, bits } if bit >= 64 * 8 => {
                assert_eq!((generation, first_byte, bits), (Some(Generation(5)), Some((bit / 8) as u32), Some(1)));
            }
            SectorContents::Corrupt { generation: None, first_byte: None, bits: None } => {}
            found => panic!("bit {bit}: {found:?}"),
        }
    }
}

#[test]
fn a_sector_that_is_not_ours_is_not_called_corrupt() {
    assert_eq!(examine(&[0; 512], 4096, Some(7)), SectorContents::Zeros);
    assert_eq!(examine(&[0x5a; 512], 4096, Some(7)), SectorContents::Foreign);
    assert_eq!(examine(&sector(512, 5), 4096, Some(7)), SectorContents::Misplaced(stamp(512, 5)));
    assert_eq!(examine(&sector(4096, 5), 4096, Some(8)), SectorContents::OtherRun(stamp(4096, 5)));
    assert_eq!(examine(&[1; 20], 4096, Some(7)), SectorContents::Foreign);
}

#[test]
fn data_differ_between_places_and_generations() {
    let mut words = std::collections::HashSet::new();
    let mut bytes = [0_u32; 256];
    for index in 0..2000 {
        for word in sector(index % 50 * 512, (index / 50) as u32 + 1)[64..].chunks_exact(8) {
            assert!(words.insert(word.to_vec()), "no word occurs twice among 112000");
            word.iter().for_each(|&byte| bytes[usize::from(byte)] += 1);
        }
    }
    // Chi-square with 255 degrees of freedom exceeds 330.5 with probability 0.001.
    let expected = 2000.0 * 448.0 / 256.0;
    let chi: f64 = bytes.iter().map(|&count| (f64::from(count) - expected).powi(2) / expected).sum();
    assert!(chi < 330.5, "chi-square {chi}: the data can be compressed");
}

#[test]
fn generations_pass_their_end() {
    assert_eq!(Generation(u32::MAX).next(), Generation(1));
    assert!(Generation(u32::MAX).is_before(Generation(1)) && !Generation(1).is_before(Generation(u32::MAX)));
    assert!(Generation::NONE.is_before(Generation(u32::MAX)) && !Generation(1).is_before(Generation::NONE));
    assert!(!Generation(9).is_before(Generation(9)) && !Generation::NONE.is_before(Generation::NONE));
}

#[test]
fn invalid_layouts_and_offsets_are_refused() {
    let error = |span, unit, sector| Layout::new(span, unit, sector).unwrap_err().to_string();
    assert_eq!(error(8192, 4096, 520), "integrity: sectors of 520 bytes; must be a power of two from 512 to 65536");
    assert_eq!(error(8192, 1000, 512), "integrity: units of 1000 bytes; must be a multiple of 512");
    assert_eq!(error(8192, 0, 512), "integrity: units of 0 bytes; must be a multiple of 512");
    let most = 1_u64 << 52;
    assert_eq!(error(100, 4096, 512), format!("integrity: a span of 100 bytes; must be 4096 to {most}"));
    assert_eq!(error(u64::MAX, 4096, 512), format!("integrity: a span of {} bytes; must be 4096 to {most}", u64::MAX));
    let stamper = Stamper::new(Layout::new(9000, 4096, 512).unwrap(), None).unwrap();
    for (offset, length) in [(100, 4096), (0, 100), (8192, 4096), (0, 0), (u64::MAX - 4095, 4096)] {
        let error = stamper.trim(offset, length).unwrap_err().to_string();
        let expected =
            format!("integrity: a request of {length} bytes at {offset}; must be multiples of 4096 below 8192");
        assert_eq!(error, expected);
        assert!(stamper.fill(offset, &mut vec![0; length as usize]).is_err());
        assert!(stamper.expect(offset, length, &mut Expectation::default()).is_err());
        assert!(Scanner::new(stamper.ledger()).unreadable(offset, length).is_err());
    }
}

#[test]
fn a_ledger_is_opened_as_it_was_left_and_by_one_process() {
    let path = Scratch::new("left");
    let layout = Layout::new(1 << 40, 4096, 512).unwrap();
    let stamper = Stamper::new(layout, Some(&path.0)).unwrap();
    let mut buffer = vec![0; 8192];
    let ticket = stamper.fill(1 << 39, &mut buffer).unwrap();
    stamper.ended(ticket, Outcome::Acknowledged);
    let error = Ledger::open(&path.0).unwrap_err().to_string();
    assert!(error.ends_with("is in use by another process"), "{error}");
    let run = stamper.ledger().run();
    drop(stamper.finish().unwrap());
    let ledger = Ledger::open(&path.0).unwrap();
    assert_eq!((ledger.run(), ledger.layout(), ledger.is_lagging()), (run, layout, false));
    let mut scanner = Scanner::new(&ledger);
    scanner.read(1 << 39, &buffer).unwrap();
    assert_eq!(scanner.finish().intact, Tally { count: 2, bytes: 8192 });
    let metadata = std::fs::metadata(&path.0).unwrap();
    use std::os::unix::fs::MetadataExt;
    assert_eq!(metadata.len(), 4096 + (1 << 28) * 16);
    let taken = metadata.blocks() * 512;
    assert!((128 << 10..=256 << 10).contains(&taken), "{taken} bytes for one write; expected two pieces of 64 KiB");
}

#[test]
fn a_ledger_that_is_none_is_refused_in_one_line() {
    let path = Scratch::new("none");
    let refused = |bytes: &[u8]| {
        std::fs::write(&path.0, bytes).unwrap();
        Ledger::open(&path.0).unwrap_err().to_string()
    };
    assert!(refused(b"short").contains("shorter than a ledger's header"));
    assert!(refused(&[b'x'; 5000]).contains("does not begin with `hsledgr1`"));
    std::fs::remove_file(&path.0).unwrap();
    drop(Stamper::new(Layout::new(1 << 20, 4096, 512).unwrap(), Some(&path.0)).unwrap());
    let whole = std::fs::read(&path.0).unwrap();
    assert!(refused(&whole[..4096]).contains("of 4096 bytes, but its header states 8192"));
    for bit in 64..320 {
        let mut damaged = whole.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(refused(&damaged).contains("header is damaged"), "bit {bit}");
    }
    assert!(Ledger::create(Layout::new(1 << 20, 4096, 512).unwrap(), Some(&path.0)).is_err(), "overwrites");
}

#[test]
fn a_ledger_whose_host_went_down_is_milder() {
    let path = Scratch::new("lagging");
    let stamper = Stamper::new(Layout::new(1 << 20, 4096, 512).unwrap(), Some(&path.0)).unwrap();
    let mut old = vec![0; 4096];
    stamper.ended(stamper.fill(0, &mut old).unwrap(), Outcome::Acknowledged);
    let synced = std::fs::read(&path.0).unwrap();
    let mut new = vec![0; 4096];
    stamper.ended(stamper.fill(0, &mut new).unwrap(), Outcome::Acknowledged);
    drop(stamper);
    // The host comes up with the ledger as of the last sync, in another boot.
    let mut lost = synced;
    lost[128..144].fill(0xee);
    std::fs::write(&path.0, &lost).unwrap();
    let ledger = Ledger::open(&path.0).unwrap();
    let judge = |content: &[u8]| {
        let mut scanner = Scanner::new(&ledger);
        scanner.read(0, content).unwrap();
        scanner.finish()
    };
    assert!(ledger.is_lagging());
    assert_eq!((judge(&new).ahead.count, judge(&new).faults(), judge(&new).cannot_tell.len()), (1, 0, 1));
    assert_eq!(judge(&old).intact.count, 1);
    assert_eq!(judge(&[0; 4096]).faults(), 0);
    assert_eq!(judge(&[9; 4096]).foreign.count, 1);
    // The ledger stays lagging after a run has continued with it.
    drop(Stamper::resume(ledger).unwrap().finish().unwrap());
    assert!(Ledger::open(&path.0).unwrap().is_lagging());
}

#[test]
fn a_unit_that_a_killed_process_left_busy_is_judged_again() {
    let path = Scratch::new("busy");
    let stamper = Stamper::new(Layout::new(1 << 20, 4096, 512).unwrap(), Some(&path.0)).unwrap();
    let mut buffer = vec![0; 4096];
    stamper.ended(stamper.fill(0, &mut buffer).unwrap(), Outcome::Acknowledged);
    let _killed = stamper.fill(0, &mut buffer).unwrap();
    drop(stamper);
    let stamper = Stamper::resume(Ledger::open(&path.0).unwrap()).unwrap();
    buffer[600] ^= 1;
    let (mut expectation, mut report) = (Expectation::default(), IntegrityReport::default());
    stamper.expect(0, 4096, &mut expectation).unwrap();
    stamper.check(&expectation, &buffer, &mut report);
    assert_eq!((report.corrupt.count, report.unsettled.count), (1, 0));
}
