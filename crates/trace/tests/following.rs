//! A trace that several replays read at the same time.

use std::path::Path;
use std::thread;

use crate::reading::Folder;
use headstack_trace::{DeviceMeta, Meta, Operation, ReadOptions, Record, Requests, StoreWriter, TraceReader};
use headstack_workload::Recorded;

/// More than are read ahead of the slowest.
const REQUESTS: u64 = 400_000;
/// More text than is parsed at a time.
const LINES: u64 = 400_000;

fn opened(path: &Path) -> TraceReader {
    TraceReader::open(&[path], &ReadOptions::default()).unwrap()
}

fn store(path: &Path) {
    let meta = Meta { devices: vec![DeviceMeta::default()], ..Meta::default() };
    let mut writer = StoreWriter::create(path).unwrap();
    let operation = |number| if number % 3 == 0 { Operation::Write } else { Operation::Read };
    let record = |number| Record::new(number * 10, operation(number), number % 977 * 4_096, 4_096);
    let records: Vec<Record> = (0..REQUESTS).map(record).collect();
    writer.write(&records, &meta).unwrap();
    writer.finish(&meta).unwrap();
}

fn all(mut requests: Requests) -> Vec<Recorded> {
    let (mut all, mut batch) = (Vec::new(), Vec::new());
    while requests.next(&mut batch).unwrap() {
        all.append(&mut batch);
    }
    all
}

#[test]
fn every_follower_receives_the_whole_trace() {
    let folder = Folder::new("following");
    let path = folder.file("t.parquet");
    store(&path);
    let expected = all(Requests::of(opened(&path)).unwrap());
    assert_eq!(expected.len() as u64, REQUESTS);
    let mut followers = Requests::shared(opened(&path), 4).unwrap();
    // One goes at once, one after a while: neither holds the others up, who go on by themselves.
    drop(followers.remove(1));
    let mut leaves = followers.remove(1);
    assert!(leaves.next(&mut Vec::new()).unwrap());
    let read: Vec<_> = followers.into_iter().map(|follower| thread::spawn(move || all(follower))).collect();
    drop(leaves);
    for follower in read {
        assert!(follower.join().unwrap() == expected, "a follower was given something else");
    }
}

#[test]
fn an_error_at_the_end_is_reported_to_all_followers() {
    let folder = Folder::new("following-damaged");
    let path = folder.file("t.trace");
    // DiskSim's, whose order is that of arrival: others are held back to be sorted.
    let line = |number| format!("{number}.5 0 1000 8 1\n");
    let lines: String = (0..LINES).map(line).collect();
    std::fs::write(&path, lines + "what is this\n").unwrap();
    let failure = |mut follower: Requests| {
        let mut batch = Vec::new();
        loop {
            match follower.next(&mut batch) {
                Ok(more) => assert!(more, "the end was reported as complete"),
                Err(error) => break error.to_string(),
            }
        }
    };
    let followers = Requests::shared(opened(&path), 2).unwrap();
    let told: Vec<_> = followers.into_iter().map(|follower| thread::spawn(move || failure(follower))).collect();
    for error in told.into_iter().map(|told| told.join().unwrap()) {
        assert!(error.contains("400001"), "{error}");
    }
}
