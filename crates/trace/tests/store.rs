//! The stored form: what goes in comes out, in order, from any number of files, and nothing half-done keeps a name.

use std::fs;
use std::path::Path;

use crate::reading::Folder;
use headstack_trace::{
    Clock, DeviceMeta, Flags, Meta, NOT_RECORDED, Operation, Origin, Process, ReadOptions, Record, ResponseSpan, Step,
    StoreWriter, TraceReader, import,
};
use proptest::prelude::*;

fn meta(devices: &[&str]) -> Meta {
    Meta {
        origin: vec![Origin { file: "t.csv".to_owned(), format: "msr".to_owned() }],
        clock: Clock::Unix,
        resolution_ns: 1,
        response: Some(ResponseSpan::IssueToCompletion),
        devices: devices
            .iter()
            .map(|name| DeviceMeta { name: (*name).to_owned(), capacity_bytes: Some(1 << 40), ..DeviceMeta::default() })
            .collect(),
        processes: vec![
            Process { pid: 1, name: "fio".to_owned() },
            Process { pid: u32::MAX, name: String::new() },
            Process { pid: 2, name: "fio".to_owned() },
        ],
        ..Meta::default()
    }
}

fn store(path: &Path, records: &[Record], meta: &Meta) {
    let mut writer = StoreWriter::create(path).unwrap();
    records.chunks(1_000).for_each(|batch| writer.write(batch, meta).unwrap());
    writer.finish(meta).unwrap();
}

fn read(paths: &[&Path], steps: &[&str]) -> (Vec<Record>, Meta) {
    let steps = steps.iter().map(|step| Step::parse(step).unwrap()).collect();
    let mut reader = TraceReader::open(paths, &ReadOptions { steps, ..ReadOptions::default() }).unwrap();
    let records = reader.read_all().unwrap();
    (records, reader.meta().clone())
}

fn any_record() -> impl Strategy<Value = Record> {
    let time = prop_oneof![Just(NOT_RECORDED), 0u64..1 << 40];
    let phases = (time.clone(), time.clone());
    (0u64..1 << 20, time.clone(), time, phases, 0u64..(1 << 62), any::<u32>(), 0u32..2, 0u32..4, 0u16..128, 0usize..6)
        .prop_map(
            |(
                arrival_ns,
                response_ns,
                wait_ns,
                (got_ns, inserted_ns),
                offset_bytes,
                length_bytes,
                device,
                process,
                flags,
                operation,
            )| Record {
                arrival_ns,
                response_ns,
                wait_ns,
                got_ns,
                inserted_ns,
                offset_bytes,
                length_bytes,
                device,
                process,
                flags: Flags(flags),
                operation: Operation::ALL[operation],
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn stored_records_are_read_back(mut records in prop::collection::vec(any_record(), 0..300)) {
        records.sort_by_key(|record| record.arrival_ns);
        let folder = Folder::new("round-trip");
        let path = folder.file("t.parquet");
        store(&path, &records, &meta(&["a", "b"]));
        let (found, described) = read(&[&path], &[]);
        prop_assert_eq!(found, records);
        prop_assert_eq!(described, meta(&["a", "b"]));
    }
}

fn spread(count: u64, of_ns: impl Fn(u64) -> u64) -> Vec<Record> {
    (0..count).map(|i| Record { response_ns: i, ..Record::new(of_ns(i), Operation::Read, i * 4096, 4096) }).collect()
}

#[test]
fn several_row_groups_and_their_size() {
    let folder = Folder::new("groups");
    let path = folder.file("t.parquet");
    let records = spread(600_000, |i| i * 1_000);
    store(&path, &records, &meta(&["a"]));
    assert_eq!(read(&[&path], &[]).0, records);
    let bytes_a_request = fs::metadata(&path).unwrap().len() as f64 / records.len() as f64;
    assert!(bytes_a_request < 24.0, "{bytes_a_request}");
}

#[test]
fn files_are_merged_by_time_and_name() {
    let folder = Folder::new("merge");
    let (one, two) = (folder.file("1.parquet"), folder.file("2.parquet"));
    let first = spread(100_000, |i| i * 20);
    let second: Vec<Record> = spread(70_000, |i| i * 30 + 7)
        .into_iter()
        .map(|record| Record { device: u32::from(record.offset_bytes % 8192 == 0), process: 2, ..record })
        .collect();
    store(&one, &first, &meta(&["a"]));
    let processes = vec![Process { pid: 9, name: "x".to_owned() }, Process { pid: 2, name: "fio".to_owned() }];
    store(&two, &second, &Meta { processes, ..meta(&["b", "a"]) });
    let (merged, described) = read(&[&one, &two], &[]);
    assert_eq!(merged.len(), 170_000);
    assert!(merged.is_sorted_by_key(|record| record.arrival_ns));
    let names: Vec<&str> = described.devices.iter().map(|device| &*device.name).collect();
    assert_eq!(names, ["a", "b"]);
    let of_second = |record: &&Record| record.process != 0;
    assert_eq!(merged.iter().filter(of_second).count(), 70_000);
    for record in merged.iter().filter(of_second) {
        assert_eq!(described.processes[record.process as usize - 1], Process { pid: 2, name: "fio".to_owned() });
        let is_a = record.offset_bytes % 8192 == 0;
        assert_eq!(described.devices[record.device as usize].name, if is_a { "a" } else { "b" });
    }
}

#[test]
fn clocks_that_differ_are_not_merged() {
    let folder = Folder::new("clocks");
    let (one, two) = (folder.file("1.parquet"), folder.file("2.parquet"));
    store(&one, &spread(3, |i| i), &meta(&["a"]));
    store(&two, &spread(3, |i| i), &Meta { clock: Clock::Boot, ..meta(&["a"]) });
    let error = TraceReader::open(&[&one, &two], &ReadOptions::default()).err().unwrap().to_string();
    assert!(error.contains("2.parquet") && error.contains("boot"), "{error}");
}

/// MSR's lines, from the latest to the earliest hour: no window reaches back so far.
fn backwards(path: &Path, hours: u64, a_hour: u64) {
    let mut text = String::new();
    for hour in (0..hours).rev() {
        for i in 0..a_hour {
            let ticks = 128_166_372_000_000_000 + hour * 36_000_000_000 + i * 10_000;
            text += &format!("{ticks},hm,0,Read,{},4096,100\n", (hour * a_hour + i) * 4096);
        }
    }
    fs::write(path, text).unwrap();
}

#[test]
fn a_trace_far_from_its_order_is_sorted_by_import_alone() {
    let folder = Folder::new("unsorted");
    let (csv, path) = (folder.file("t.csv"), folder.file("t.parquet"));
    backwards(&csv, 20, 30_000);
    let mut reader = TraceReader::open(&[&csv], &ReadOptions::default()).unwrap();
    let mut batch = Vec::new();
    let refused = loop {
        match reader.next_batch(&mut batch) {
            Ok(true) => {}
            Ok(false) => panic!("600,000 requests do not fit the window"),
            Err(error) => break error.to_string(),
        }
    };
    assert!(refused.contains("t.csv") && refused.contains("import"), "{refused}");
    let mut reader = TraceReader::open(&[&csv], &ReadOptions::default()).unwrap();
    let described = import(&mut reader, &path, &mut |_| true).unwrap();
    assert_eq!(described.counts["out of order"], 19);
    let (records, stored) = read(&[&path], &[]);
    assert_eq!(stored, described);
    assert!(records.iter().enumerate().all(|(index, record)| record.offset_bytes == index as u64 * 4096));
    assert_eq!(records.len(), 600_000);
    assert_eq!(folder.names(), ["t.csv", "t.parquet"], "no runs are left");
}

#[test]
fn an_aborted_import_leaves_no_file() {
    let folder = Folder::new("stopped");
    let (csv, path) = (folder.file("t.csv"), folder.file("t.parquet"));
    backwards(&csv, 20, 30_000);
    let open = || TraceReader::open(&[&csv], &ReadOptions::default()).unwrap();
    let error = import(&mut open(), &path, &mut |read| read < 400_000).unwrap_err().to_string();
    assert!(error.contains("stopped"), "{error}");
    assert_eq!(folder.names(), ["t.csv"]);
    let mut text = fs::read_to_string(&csv).unwrap();
    text += "128166372000000000,hm,0,Reed,0,4096,100\n";
    fs::write(&csv, text).unwrap();
    let error = import(&mut open(), &path, &mut |_| true).unwrap_err().to_string();
    assert!(error.contains("t.csv:600001: type: "), "{error}");
    assert_eq!(folder.names(), ["t.csv"]);
}

#[test]
fn steps_are_stored_in_the_metadata() {
    let folder = Folder::new("steps");
    let path = folder.file("t.parquet");
    store(&path, &spread(10, |i| i * 10), &meta(&["a"]));
    let (records, described) = read(&[&path], &["first=5", "time-scale=2"]);
    assert_eq!(records.iter().map(|record| record.arrival_ns).collect::<Vec<_>>(), [0, 20, 40, 60, 80]);
    assert_eq!(described.steps, ["first=5", "time-scale=2"]);
}

#[test]
fn damaged_and_foreign_files_are_refused() {
    let folder = Folder::new("damaged");
    let path = folder.file("t.parquet");
    store(&path, &spread(5_000, |i| i), &meta(&["a"]));
    let whole = fs::read(&path).unwrap();
    for length in [4, 100, whole.len() / 2, whole.len() - 1] {
        fs::write(&path, &whole[..length]).unwrap();
        let error = TraceReader::open(&[&path], &ReadOptions::default()).err().unwrap().to_string();
        assert!(error.contains("t.parquet: ") && error.contains("damaged") && error.lines().count() == 1, "{error}");
    }
}

#[test]
fn merged_metadata_keeps_only_common_values() {
    let folder = Folder::new("disagree");
    let (one, two) = (folder.file("1.parquet"), folder.file("2.parquet"));
    let first = Meta { zero_unix_ns: Some(7), ..meta(&["a"]) };
    let second = Meta { zero_unix_ns: Some(8), response: Some(ResponseSpan::AtTheHost), ..meta(&["a"]) };
    store(&one, &spread(3, |i| i), &first);
    store(&two, &spread(3, |i| i), &second);
    let described = read(&[&one, &two], &[]).1;
    assert_eq!((described.response, described.zero_unix_ns), (None, None));
    let described = read(&[&one, &one], &[]).1;
    assert_eq!((described.response, described.zero_unix_ns), (first.response, Some(7)));
}

#[test]
fn figures_past_their_ends_are_refused_with_the_record() {
    let folder = Folder::new("ends");
    let path = folder.file("t.parquet");
    let good = Record::new(5, Operation::Read, 0, 512);
    for bad in [
        Record { arrival_ns: 1 << 63, ..good },
        Record { response_ns: 1 << 63, ..good },
        Record { wait_ns: 1 << 63, ..good },
        Record { got_ns: 1 << 63, ..good },
        Record { inserted_ns: 1 << 63, ..good },
        Record { offset_bytes: (1 << 63) - 512, ..good },
        Record { offset_bytes: 1 << 63, ..good },
    ] {
        store(&path, &[good, bad], &meta(&["a"]));
        let error = TraceReader::open(&[&path], &ReadOptions::default()).unwrap().read_all().unwrap_err().to_string();
        assert!(error.contains("t.parquet: record 2: ") && error.lines().count() == 1, "{error}");
    }
}

/// The library that decodes Parquet panics at some of these.
#[test]
fn a_file_with_a_changed_byte_is_read_or_refused_on_one_line() {
    let folder = Folder::new("changed");
    let path = folder.file("t.parquet");
    store(&path, &spread(50, |i| i), &meta(&["a"]));
    let whole = fs::read(&path).unwrap();
    for at in (0..whole.len()).step_by(3) {
        let mut changed = whole.clone();
        changed[at] = 1;
        fs::write(&path, changed).unwrap();
        let read = TraceReader::open(&[&path], &ReadOptions::default()).and_then(|mut reader| reader.read_all());
        if let Err(error) = read {
            assert_eq!(error.to_string().lines().count(), 1, "byte {at}: {error}");
        }
    }
}
