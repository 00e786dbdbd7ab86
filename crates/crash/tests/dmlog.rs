//! Logs of dm-log-writes, byte by byte.

use headstack_crash::{Ending, Event, Fate, Recording, Stored};

use proptest::prelude::*;

use crate::support::Folder;

const DONE: Fate = Fate::Acknowledged;
pub const FLUSH: u64 = 1;
pub const FUA: u64 = 2;
pub const DISCARD: u64 = 4;
pub const MARK: u64 = 8;
pub const METADATA: u64 = 16;

/// What a log begins with.
fn first(entries: u64, sector_bytes: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    for number in [0x006a_7366_7773_6872_u64, 1, entries] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    bytes.extend_from_slice(&sector_bytes.to_le_bytes());
    bytes.resize(sector_bytes as usize, 0);
    bytes
}

/// An entry with what it carries: data of a write, the text of a mark.
fn entry(sector_bytes: usize, sector: u64, sectors: u64, flags: u64, carried: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let text = if flags & MARK != 0 { carried } else { &[] };
    for number in [sector, sectors, flags, text.len() as u64] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    bytes.extend_from_slice(text);
    bytes.resize(sector_bytes, 0);
    if flags & MARK == 0 {
        bytes.extend_from_slice(carried);
    }
    bytes
}

fn log(entries: u64) -> Vec<u8> {
    let parts = [
        first(entries, 512),
        entry(512, 8, 2, 0, &[3; 1024]),
        entry(512, 16, 1, METADATA, &[4; 512]),
        entry(512, 0, 0, FLUSH, &[]),
        entry(512, 0, 0, MARK, b"one"),
        entry(512, 64, 1024, DISCARD, &[]),
        entry(512, 24, 1, FLUSH | FUA, &[5; 512]),
        entry(512, 0, 0, MARK, b"dm-log-writes-end"),
    ];
    parts.concat()
}

#[test]
fn log_bytes_match_the_kernels_format() {
    let folder = Folder::new();
    let recording = Recording::open(&folder.with("log", &log(7))).unwrap();
    use Event::{Change, Changed, Flush, Flushed, Mark};
    assert_eq!(
        recording.events,
        [
            Change(0),
            Changed(0, DONE),
            Change(1),
            Changed(1, DONE),
            Flush(0),
            Flushed(0, DONE),
            Mark(0),
            Change(2),
            Changed(2, DONE),
            Flush(1),
            Flushed(1, DONE),
            Change(3),
            Changed(3, DONE)
        ]
    );
    let changes: Vec<_> = recording.changes.iter().map(|c| (c.offset_bytes, c.length_bytes)).collect();
    assert_eq!(changes, [(4096, 1024), (8192, 512), (32768, 524_288), (12288, 512)]);
    assert_eq!(recording.changes[2].stored, Stored::Trim);
    assert!(recording.changes[1].is_metadata && recording.changes[3].is_forced);
    assert_eq!(recording.marks, ["one"], "the kernel's own mark is none of the application's");
    assert_eq!((recording.ending, recording.device.capacity_bytes), (Ending::Whole, 557_056));
    let mut data = [0; 1024];
    recording.read(0, 0, &mut data).unwrap();
    assert_eq!(data, [3; 1024]);
}

#[test]
fn the_count_of_entries_may_lag_behind() {
    let folder = Folder::new();
    for entries in 0..7 {
        assert_eq!(Recording::open(&folder.with("log", &log(entries))).unwrap().events.len(), 13);
    }
    // A device goes on behind its log: zeros, or what was there before.
    for rest in [vec![0; 5120], vec![0xff; 5120]] {
        let recording = Recording::open(&folder.with("log", &[log(0), rest].concat())).unwrap();
        assert_eq!((recording.events.len(), recording.ending), (13, Ending::Whole));
    }
}

proptest! {
    #[test]
    fn no_log_is_too_strange_to_be_read(places in proptest::collection::vec((512..4096_usize, any::<u8>()), 1..12)) {
        let folder = Folder::new();
        let mut bytes = log(7);
        for (place, byte) in places {
            if let Some(there) = bytes.get_mut(place) {
                *there = byte;
            }
        }
        // It is read or refused, and what is read lies within the file.
        if let Ok(recording) = Recording::open(&folder.with("log", &bytes)) {
            for number in 0..recording.changes.len() as u32 {
                let change = &recording.changes[number as usize];
                if let Stored::Data { at_bytes } = change.stored {
                    prop_assert!(at_bytes + change.length_bytes <= bytes.len() as u64);
                }
            }
        }
    }
}

#[test]
fn a_truncated_log_is_reported() {
    let folder = Folder::new();
    let whole = log(7);
    let recording = Recording::open(&folder.with("log", &whole[..whole.len() - 600])).unwrap();
    assert!(matches!(recording.ending, Ending::CutOff { .. }), "{:?}", recording.ending);
    let recording = Recording::open(&folder.with("log", &whole[..whole.len() - 512])).unwrap();
    assert_eq!((recording.ending, recording.events.len()), (Ending::Unfinished, 13));
}

#[test]
fn the_log_header_sets_the_sector_size() {
    let folder = Folder::new();
    let parts = [first(1, 4096), entry(4096, 3, 2, 0, &[9; 8192])];
    let recording = Recording::open(&folder.with("log", &parts.concat())).unwrap();
    assert_eq!((recording.changes[0].offset_bytes, recording.device.block_bytes), (12288, 4096));
    let error = Recording::open(&folder.with("log", &first(0, 513))).unwrap_err().to_string();
    assert!(error.contains("sectors of 513 bytes"), "{error}");
}
