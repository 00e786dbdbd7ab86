//! Transaction groups: their times and costs, the throttle, what they write.

use headstack_sim::stack::description::{LayerDescription, ZfsDescription};
use headstack_sim::{RunSpec, SystemDescription};
use headstack_workload::{Kind, RunLength};

use super::*;
use crate::common::{MS, assert_close, bare_drive, closed, line, outcome, request, run_spec, spec, workload};

/// Writes a record every `pause_ns` until `end_ns`, in order of addresses.
fn write_steadily(bench: &mut Bench, records: u64, pause_ns: u64, end_ns: u64) {
    let mut at = 0;
    while bench.now_ns + pause_ns <= end_ns {
        bench.run_to(bench.now_ns + pause_ns);
        bench.submit(&request(Kind::Write, at % records * RECORD, RECORD));
        at += 1;
    }
}

/// Input below the sink: a sync every 5 s, or as soon as the open group holds 20 % of the maximum. Each costs two rounds
/// of flushes.
#[test]
fn groups_sync_every_5_s_or_at_20_percent() {
    for (pause_ns, expected) in [(100 * MS, 6), (10 * MS, 15)] {
        let description = small(1 << 30);
        let mut bench = Bench::new(&zfs(&description, &[fast()]));
        write_steadily(&mut bench, 4096, pause_ns, 31 * SECOND);
        let groups = count(&bench, "txg_syncs");
        assert_eq!(count(&bench, "txg_flush_rounds"), 2 * groups);
        // At 12.8 MB/s, 25.6 MiB are reached after 2.05 s.
        assert_eq!(groups, expected, "a record every {pause_ns} ns");
    }
}

/// Dirty data settle where the delay of a transaction equals the time that the sink takes for it.
#[test]
fn dirty_data_settle_where_the_throttle_equals_the_sink() {
    for bytes_per_s in [400_000_000_u64, 100_000_000] {
        let description = small(1 << 30);
        let mut bench = Bench::new(&zfs(&description, &[sink(16 << 30, bytes_per_s, 100 * US)]));
        let max = description.dirty_data_max_bytes as f64;
        let (mut at, mut dirty, mut samples) = (0, 0.0, 0.0);
        let begin = |bench: &mut Bench, at: &mut u64| {
            bench.submit(&request(Kind::Write, *at % 8192 * RECORD, RECORD));
            *at += 1;
        };
        (0..4).for_each(|_| begin(&mut bench, &mut at));
        let before = |bench: &Bench| count(bench, "txg_data_bytes");
        let mut from = None;
        while bench.now_ns < 14 * SECOND {
            let done = bench.run_to(bench.system.next_event_ns());
            done.iter().for_each(|_| begin(&mut bench, &mut at));
            if bench.now_ns > 6 * SECOND {
                from.get_or_insert((at, bench.now_ns));
                dirty += bench.system.levels()[0] as f64;
                samples += 1.0;
            }
        }
        // 500 us x (D - m) / (M - D) = record / rate.
        let ratio = RECORD as f64 / bytes_per_s as f64 / 500e-6;
        let expected = (0.6 + ratio) / (1.0 + ratio);
        assert_close(dirty / samples / max, expected, 4.0, &format!("dirty share at {bytes_per_s} B/s"));
        let (first, from_ns) = from.unwrap();
        let admitted = (at - first) as f64 * RECORD as f64 / (bench.now_ns - from_ns) as f64 * 1e9;
        assert_close(admitted, bytes_per_s as f64, 6.0, "admitted bytes");
        assert!(before(&bench) > 0);
    }
}

/// The devices could take 76,000 records a second; one thread prepares them for a sync, 22.5 us each.
#[test]
fn one_thread_prepares_the_records_of_a_sync() {
    let records_per_s = |sync_record_ns: u64| {
        let description = ZfsDescription { record_bytes: 16 << 10, sync_record_ns, ..small(2 << 30) };
        let mut work = workload(line(16 << 10, 0.0, 0.0), closed(16), 1);
        work.run_length = RunLength::TimeNs(4 * SECOND);
        work.warm_up.time_ns = SECOND;
        let result = run_spec(&RunSpec { system: zfs(&description, &[fast()]), ..spec(&bare_drive(), work) });
        result.throughput_per_s()
    };
    assert_close(records_per_s(22_500), 1e9 / 22_500.0, 6.0, "records/s at 22.5 us");
    assert_close(records_per_s(45_000), 1e9 / 45_000.0, 6.0, "records/s at 45 us");
    assert!(records_per_s(0) > 60_000.0);
}

/// Bytes in are bytes out, dirty bytes, and bytes that were overwritten before they left.
#[test]
fn every_changed_record_is_written_once_a_group() {
    let description = small(256 * MIB);
    let mut bench = Bench::new(&zfs(&description, &[fast()]));
    let mut dice = crate::common::Dice(5);
    for _ in 0..3_000 {
        bench.run_to(bench.now_ns + dice.below(8 * MS));
        bench.submit(&request(Kind::Write, dice.below(600) * RECORD, RECORD));
        let dirty = bench.system.levels()[0];
        // Records whose data are in flight are dirty, and counted as written when their sync begins.
        let taken = count(&bench, "txg_data_bytes") + count(&bench, "zfs_overwritten_records") * RECORD + dirty;
        assert!(taken >= count(&bench, "zfs_changed_records") * RECORD);
    }
    bench.settle();
    let [changed, overwritten] = ["zfs_changed_records", "zfs_overwritten_records"].map(|name| count(&bench, name));
    assert_eq!(bench.system.levels()[0], 0);
    assert_eq!(changed, 3_000);
    assert!(overwritten > 500, "{overwritten}");
    assert_eq!(count(&bench, "txg_data_bytes"), (changed - overwritten) * RECORD);
}

/// A write to a part of a record reads it first, unless it is cached; several writes to it cost one write.
#[test]
fn a_partial_write_reads_its_record_once() {
    let description = small(256 * MIB);
    let mut bench = Bench::new(&zfs(&description, &[ssd()]));
    let whole_ns = Bench::new(&ssd()).takes_ns(&request(Kind::Read, 0, RECORD));
    assert_eq!(bench.takes_ns(&request(Kind::Write, 4096, 4096)), description.write_ns + whole_ns);
    for part in 2..10 {
        assert_eq!(bench.takes_ns(&request(Kind::Write, part * 4096, 4096)), description.write_ns);
    }
    assert_eq!(count(&bench, "zfs_reads_for_writes"), 1);
    bench.settle();
    assert_eq!(count(&bench, "txg_data_bytes"), RECORD);
}

/// A compressed record takes less of the device; one that would shrink by less than 12.5 % is stored as it is.
#[test]
fn records_are_stored_compressed() {
    let stored = |ratio: f64| {
        let description = ZfsDescription { compression_ratio: ratio, ..small(256 * MIB) };
        let mut bench = Bench::new(&zfs(&description, &[fast()]));
        bench.takes_ns(&request(Kind::Write, 0, RECORD));
        bench.settle();
        count(&bench, "txg_data_bytes")
    };
    assert_eq!([1.0, 1.1, 1.5, 2.0, 100.0].map(stored), [RECORD, RECORD, 88 * KIB, 64 * KIB, 4 * KIB]);
}

/// Freed records are holes: reading them costs no I/O.
#[test]
fn a_trim_frees_whole_records() {
    let description = small(256 * MIB);
    let mut bench = Bench::new(&zfs(&description, &[ssd()]));
    bench.takes_ns(&request(Kind::Trim, 4096, 3 * RECORD));
    bench.settle();
    let read_ns = |bench: &mut Bench, record: u64| bench.takes_ns(&request(Kind::Read, record * RECORD, 4096));
    assert!(read_ns(&mut bench, 0) > description.read_ns);
    assert_eq!([1, 2].map(|record| read_ns(&mut bench, record)), [description.read_ns; 2]);
    assert!(read_ns(&mut bench, 3) > description.read_ns);
}

/// Metadata go to the special device, and small records with `special_small_blocks`.
#[test]
fn a_special_device_takes_metadata_and_small_blocks() {
    for small_blocks in [0, RECORD as u32] {
        let description =
            ZfsDescription { special: Some(1), special_small_blocks_bytes: small_blocks, ..small(128 * MIB) };
        let mut bench = Bench::new(&zfs(&description, &[fast(), ssd()]));
        bench.takes_ns(&request(Kind::Write, 0, RECORD));
        bench.settle();
        // Labels are on the pool: four uberblocks.
        let data = u64::from(small_blocks == 0);
        assert_eq!(count(&bench, "accounted_requests"), 4 + data, "blocks of up to {small_blocks} bytes");
        assert!(count(&bench, "flash_page_programs") > 0);
    }
}

#[test]
fn the_same_seed_gives_the_same_result() {
    let run = || {
        let mut work = workload(line(16_384, 50.0, 100.0), closed(16), 20_000);
        work.flush_every = 100;
        let system = zfs(&small(256 * MIB), &[ssd()]);
        outcome(&run_spec(&RunSpec { system, ..spec(&bare_drive(), work) }))
    };
    assert_eq!(run(), run());
}

/// A pool over 80 % full gets a note, since fragmentation is not modelled.
#[test]
fn a_full_pool_gets_a_note() {
    let notes = |capacity_bytes: u64| {
        let description = ZfsDescription { dirty_data_max_bytes: 16 * MIB, ..small(capacity_bytes) };
        let spec = spec(&bare_drive(), workload(line(4096, 100.0, 100.0), closed(1), 10));
        run_spec(&RunSpec { system: zfs(&description, &[ssd()]), ..spec }).notes
    };
    let is_noted =
        |notes: Vec<String>| notes.iter().any(|note| note.starts_with("not modelled: fragmentation of the pool"));
    assert!(is_noted(notes(640 * MIB)));
    assert!(!is_noted(notes(600 * MIB)));
}

#[test]
fn impossible_descriptions_are_rejected() {
    let check = |change: fn(&mut ZfsDescription), below: &[SystemDescription]| {
        let mut description = small(256 * MIB);
        change(&mut description);
        let layer = LayerDescription::Zfs(Box::new(description));
        crate::stack::over(layer, below).check().unwrap_err().to_string()
    };
    let text = check(|zfs| zfs.capacity_bytes = 1 << 40, &[ssd()]);
    assert!(text.contains("zfs.capacity") && text.contains("must be 1 to"), "{text}");
    let text = check(|zfs| zfs.log = Some(2), &[ssd(), ssd()]);
    assert!(text.contains("zfs.ports"), "{text}");
    let text = check(|zfs| zfs.record_bytes = 100_000, &[ssd()]);
    assert!(text.contains("power of two"), "{text}");
    let text = check(|zfs| zfs.compression_ratio = 0.5, &[ssd()]);
    assert!(text.contains("compression_ratio"), "{text}");
}
