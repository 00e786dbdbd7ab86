//! Where requests spend their time: by hand, as btt has it, and through the stored form.

use std::collections::BTreeMap;
use std::process::Command;

use headstack_trace::analyze::{Analysis, Options, PhasesReport, Report};
use headstack_trace::{Input, Meta, NOT_RECORDED, ReadOptions, Record, StoreWriter, TraceReader};

use super::encoder::{Event, Layout};
use super::{read, read_bytes, story};

/// `at_us action rwbs sector sectors`: a read by itself; two writes of which the second is merged into the first while
/// both are plugged; a read that has no scheduler's queue to go through.
const WAYS: &[(u64, &str, &str, u64, u32)] = &[
    (100, "Q", "R", 5_000, 8),
    (103, "G", "R", 5_000, 8),
    (110, "I", "R", 5_000, 8),
    (130, "D", "R", 5_000, 8),
    (200, "C", "R", 5_000, 8),
    (300, "Q", "W", 9_000, 8),
    (301, "G", "W", 9_000, 8),
    (302, "Q", "W", 9_008, 16),
    (303, "M", "W", 9_008, 16),
    (305, "I", "W", 9_000, 24),
    (310, "D", "W", 9_000, 24),
    (390, "C", "W", 9_000, 24),
    (500, "Q", "R", 7_000, 8),
    (502, "G", "R", 7_000, 8),
    (509, "D", "R", 7_000, 8),
    (600, "C", "R", 7_000, 8),
];

fn events(ways: &[(u64, &'static str, &'static str, u64, u32)]) -> Vec<Event> {
    let event = |(&(at_us, action, rwbs, sector, sectors), sequence)| Event {
        at_us,
        cpu: 0,
        sequence,
        device: story::DISK,
        pid: 100,
        action,
        rwbs,
        sector,
        bytes: sectors * 512,
        extra: 0,
        error: 0,
    };
    ways.iter().zip(1..).map(event).collect()
}

fn binary(events: &[Event]) -> Vec<u8> {
    events.iter().flat_map(|event| event.binary(Layout::V7, None)).collect()
}

fn analyzed((records, meta): &(Vec<Record>, Meta)) -> Report {
    let mut analysis = Analysis::new(Options { reuse: None, ..Options::default() }).unwrap();
    analysis.add(records);
    analysis.finish(meta)
}

fn mean_us(phases: &PhasesReport, operation: &str, phase: &str) -> Option<f64> {
    phases.by_operation[operation].get(phase).map(|times| times.mean_ns / 1e3)
}

#[test]
fn each_phase_of_a_request_is_reported() {
    let events = events(WAYS);
    let text: String = events.iter().enumerate().map(|(n, event)| event.text(n + 1, 0, "fio")).collect();
    for bytes in [binary(&events), text.into_bytes()] {
        let found = read_bytes(bytes, &ReadOptions::default()).unwrap();
        let us = |ns: u64| if ns == NOT_RECORDED { None } else { Some(ns / 1_000) };
        let ways: Vec<_> =
            found.0.iter().map(|r| (us(r.got_ns), us(r.inserted_ns), us(r.wait_ns), us(r.response_ns))).collect();
        let expected = [
            (Some(3), Some(10), Some(30), Some(100)),
            (Some(1), Some(5), Some(10), Some(90)),
            // Merged: it never was a request of its own.
            (None, None, Some(8), Some(88)),
            (Some(2), None, Some(9), Some(100)),
        ];
        assert_eq!(ways, expected);
        let phases = analyzed(&found).phases.unwrap();
        let means = ["q2g", "g2i", "i2d", "q2d", "d2c", "q2c"].map(|phase| mean_us(&phases, "read", phase));
        assert_eq!(means, [Some(2.5), Some(7.0), Some(20.0), Some(19.5), Some(80.5), Some(100.0)]);
        assert_eq!(phases.all["d2c"].count, 4);
    }
}

#[test]
fn a_stored_trace_keeps_its_phases() {
    let found = read_bytes(binary(&events(WAYS)), &ReadOptions::default()).unwrap();
    let path = std::env::temp_dir().join(format!("headstack-phases-{}.parquet", std::process::id()));
    let mut writer = StoreWriter::create(&path).unwrap();
    writer.write(&found.0, &found.1).unwrap();
    writer.finish(&found.1).unwrap();
    let mut reader = TraceReader::open(&[&path], &ReadOptions::default()).unwrap();
    let again = (reader.read_all().unwrap(), reader.meta().clone());
    std::fs::remove_file(&path).unwrap();
    assert_eq!(again.0, found.0);
    assert_eq!(analyzed(&again).phases, analyzed(&found).phases);
}

#[test]
fn what_was_stored_before_phases_were_is_read() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/stored-without-phases.parquet");
    let records =
        TraceReader::open(&[std::path::Path::new(path)], &ReadOptions::default()).unwrap().read_all().unwrap();
    assert_eq!(records.len(), 19);
    assert!(records.iter().all(|record| (record.got_ns, record.inserted_ns) == (NOT_RECORDED, NOT_RECORDED)));
}

#[test]
fn without_issue_events_there_are_no_phases() {
    let found = (vec![Record::new(5, headstack_trace::Operation::Read, 0, 512)], Meta::default());
    assert_eq!(analyzed(&found).phases, None);
}

/// Mean in us and count of each phase, as btt prints them; nothing where it is not installed.
fn btt(bytes: &[u8], name: &str) -> Option<BTreeMap<String, (f64, u64)>> {
    let folder = std::env::temp_dir().join(format!("headstack-btt-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("t.bin"), bytes).unwrap();
    let output = Command::new("btt").args(["-i", "t.bin"]).current_dir(&folder).output();
    std::fs::remove_dir_all(&folder).unwrap();
    let Ok(output) = output else {
        headstack_needs::lacks(headstack_needs::Need::Programs, "there is no btt");
        return None;
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let row = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [phase, _, mean, _, count] = words[..] else { return None };
        Some((phase.to_lowercase(), (mean.parse::<f64>().ok()? * 1e6, count.parse().ok()?)))
    };
    let table = text.split("All Devices").nth(1)?.split("Device Overhead").next()?;
    Some(table.lines().filter_map(row).collect())
}

fn assert_as_btt(bytes: &[u8], name: &str, expected: &[&str]) {
    let Some(theirs) = btt(bytes, name) else { return };
    let ours = analyzed(&read(vec![Input::from_bytes("t", bytes.to_vec()).unwrap()], &ReadOptions::default()).unwrap());
    let ours = ours.phases.unwrap().all;
    for phase in expected {
        let (mean_us, count) = theirs[*phase];
        let found = ours[*phase];
        assert_eq!(found.count, count, "{name} {phase}");
        // btt prints whole nanoseconds.
        assert!((found.mean_ns / 1e3 - mean_us).abs() < 0.0011, "{name} {phase}: {} and {mean_us}", found.mean_ns);
    }
}

#[test]
fn phases_are_those_of_btt() {
    // Requests one after the other, with times of their own in each part of the way.
    let mut ways = Vec::new();
    for n in 0..500u64 {
        let (at, rwbs, sector) = (1_000 * n, if n % 3 == 0 { "W" } else { "R" }, 1_000 * (n * 7_919 % 4_001));
        let mut now = at;
        for (action, took) in [("Q", 0), ("G", 1 + n % 5), ("I", 2 + n % 7), ("D", 3 + n % 41), ("C", 50 + n % 389)] {
            now += took;
            ways.push((now, action, rwbs, sector, 8));
        }
    }
    assert_as_btt(&binary(&events(&ways)), "generated", &["q2g", "g2i", "i2d", "d2c", "q2c"]);
}

#[test]
fn phases_of_a_real_trace_are_those_of_btt() {
    let shared = std::env::var_os("HEADSTACK_SHARED")
        .map_or_else(|| concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared").into(), std::path::PathBuf::from);
    let path = shared.join("traces/blktrace/loop0_poisson1500_8s.blktrace.bin");
    let Ok(bytes) = std::fs::read(&path) else {
        headstack_needs::lacks(headstack_needs::Need::Data, format_args!("{} is missing", path.display()));
        return;
    };
    assert_as_btt(&bytes, "poisson", &["q2g", "d2c", "q2c"]);
}
