//! Block traces that are written, held against the programs that read them: blkparse and btt.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

use crate::reading::{self, Folder};
use headstack_needs::{Need, lacks};
use headstack_trace::export::{ExportFormat, Losses, export};
use headstack_trace::{
    Clock, DeviceMeta, Flags, Meta, NOT_RECORDED, Operation, Process, ReadOptions, Record, ResponseSpan, StoreWriter,
    TraceReader,
};

/// Reads, writes, a trim, a flush and an error to two devices, some of them overlapping in time, never in place.
fn requests() -> (Vec<Record>, Meta) {
    let kinds = [Operation::Read, Operation::Write, Operation::Read, Operation::Trim, Operation::Flush];
    let record = |number: u64| {
        let operation = kinds[number as usize % 5];
        let (offset, length) = if operation == Operation::Flush { (0, 0) } else { (number * 1_048_576, 4_096) };
        let mut record = Record::new(1_000_000 + number * 70_000, operation, offset, length);
        (record.wait_ns, record.response_ns) = (1_000 + number * 10, 90_000 + number * 100);
        (record.device, record.process) = ((number / 5 % 2) as u32, 1 + (number % 2) as u32);
        record.flags = if number == 7 { Flags::ERROR } else { Flags::default() };
        record
    };
    let device = |name: &str| DeviceMeta { name: name.to_owned(), ..DeviceMeta::default() };
    let process = |pid, name: &str| Process { pid, name: name.to_owned() };
    let meta = Meta {
        clock: Clock::Recording,
        zero_unix_ns: Some(1_700_000_000_250_000_000),
        resolution_ns: 1,
        response: Some(ResponseSpan::QueueToCompletion),
        devices: vec![device("8,0"), device("8,16")],
        processes: vec![process(12, "fio"), process(34, "a name of more than 15 bytes")],
        ..Meta::default()
    };
    ((0..200).map(record).collect(), meta)
}

fn exported(folder: &Folder, records: &[Record], meta: &Meta) -> (std::path::PathBuf, Losses) {
    let (stored, path) = (folder.file("t.parquet"), folder.file("t.blktrace.0"));
    let mut writer = StoreWriter::create(&stored).unwrap();
    writer.write(records, meta).unwrap();
    writer.finish(meta).unwrap();
    let mut reader = TraceReader::open(&[&stored], &ReadOptions::default()).unwrap();
    let losses = export(&mut reader, &path, ExportFormat::Blktrace, &mut |_| true).unwrap();
    (path, losses)
}

#[test]
fn blktrace_export_round_trips() {
    let (records, meta) = requests();
    let folder = Folder::new("blktrace-out");
    let (path, losses) = exported(&folder, &records, &meta);
    assert_eq!(losses, Losses::from([("process names", 1)]));
    let mut reader = TraceReader::open(&[&path], &ReadOptions::default()).unwrap();
    let again = reader.read_all().unwrap();
    let (written, read) = (named(&records, &meta), named(&again, reader.meta()));
    assert_eq!(read, written);
    assert_eq!((reader.meta().zero_unix_ns, reader.meta().response), (meta.zero_unix_ns, meta.response));
}

/// Records with the names of their devices and processes, as far as a block trace holds these.
fn named(records: &[Record], meta: &Meta) -> Vec<(Record, String, String)> {
    let named = |record: &Record| {
        let process = &meta.processes[record.process as usize - 1];
        let name = format!("{} {:.15}", process.pid, process.name);
        (Record { device: 0, process: 0, ..*record }, meta.devices[record.device as usize].name.clone(), name)
    };
    records.iter().map(named).collect()
}

/// What a program prints; nothing where there is none.
fn printed(program: &str, arguments: &[&str], folder: &Path) -> Option<String> {
    let Ok(output) = Command::new(program).args(arguments).current_dir(folder).output() else {
        lacks(Need::Programs, format_args!("there is no {program}"));
        return None;
    };
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn blkparse_counts_every_event() {
    let (records, meta) = requests();
    let folder = Folder::new("blktrace-blkparse");
    let (path, _) = exported(&folder, &records, &meta);
    let Some(text) = printed("blkparse", &["-i", "t"], path.parent().unwrap()) else { return };
    let mut counts: HashMap<(String, String), usize> = HashMap::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.len() > 6 && words[0].starts_with("8,") && matches!(words[5], "Q" | "D" | "C") {
            *counts.entry((words[0].to_owned(), words[5].to_owned())).or_default() += 1;
        }
    }
    for device in ["8,0", "8,16"] {
        for action in ["Q", "D", "C"] {
            assert_eq!(counts[&(device.to_owned(), action.to_owned())], 100, "{device} {action}\n{text}");
        }
    }
    assert!(text.contains("[fio]") && text.contains("[a name of more ]"), "{text}");
    assert_eq!(text.lines().filter(|line| line.ends_with("[-5]") || line.ends_with("[65531]")).count(), 1, "{text}");
    assert!(!text.contains("Skips") || text.contains("Skips: 0 forward"), "{text}");
    // Our reader understands its text as well.
    let text = text.into_bytes();
    let (again, _) = reading::read(&text, None, false).unwrap();
    let told = |records: &[Record]| {
        let told = |record: &Record| (record.operation, record.offset_bytes, record.length_bytes, record.response_ns);
        records.iter().map(told).collect::<Vec<_>>()
    };
    assert_eq!(told(&again), told(&records));
}

/// The mean in s of a row such as `Q2C  0.0001 0.0002 0.0003 12`, and its count.
fn row(text: &str, name: &str) -> (f64, usize) {
    let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("no {name} in\n{text}"));
    let words: Vec<&str> = line.split_whitespace().collect();
    (words[2].parse().unwrap(), words[4].parse().unwrap())
}

#[test]
fn btt_finds_the_same_phases() {
    let (mut records, meta) = requests();
    // btt pairs by address, and does not count what has none.
    records.retain(|record| record.operation != Operation::Flush && !record.flags.contains(Flags::ERROR));
    let folder = Folder::new("blktrace-btt");
    let (path, _) = exported(&folder, &records, &meta);
    let home = path.parent().unwrap();
    if printed("blkparse", &["-i", "t", "-O", "-d", "merged"], home).is_none() {
        return;
    }
    let Some(text) = printed("btt", &["-i", "merged"], home) else { return };
    let mean_s = |time_ns: fn(&Record) -> u64| {
        records.iter().map(|record| time_ns(record) as f64).sum::<f64>() / records.len() as f64 / 1e9
    };
    let expected = [("Q2C", mean_s(|r| r.response_ns)), ("D2C", mean_s(|r| r.response_ns - r.wait_ns))];
    for (name, expected_s) in expected {
        let (found_s, count) = row(&text, name);
        assert_eq!(count, records.len(), "{name}\n{text}");
        assert!((found_s - expected_s).abs() < 1e-8, "{name}: {found_s} s, not {expected_s} s\n{text}");
    }
}

#[test]
fn what_is_not_known_is_no_event() {
    let (mut records, meta) = requests();
    for record in &mut records {
        (record.wait_ns, record.response_ns) = (NOT_RECORDED, NOT_RECORDED);
    }
    let folder = Folder::new("blktrace-unknown");
    let (path, _) = exported(&folder, &records, &meta);
    // One record a request, two names, the time of day: nothing else.
    let bytes = std::fs::metadata(&path).unwrap().len();
    assert_eq!(bytes, 200 * 48 + 2 * (48 + 16) + 48 + 8);
}
