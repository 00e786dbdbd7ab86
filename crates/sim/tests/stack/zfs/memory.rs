//! ARC, prefetch, L2ARC and the reads of records.

use headstack_sim::RunSpec;
use headstack_sim::stack::description::{PrimaryCache, ZfsDescription};
use headstack_workload::{AccessLine, Kind, Span};

use super::*;
use crate::common::{MS, assert_close, bare_drive, closed, counter, line, request, run_spec, spec, workload};

fn run(
    system: headstack_sim::SystemDescription,
    line: AccessLine,
    depth: u32,
    requests: u64,
    span: Option<u64>,
) -> headstack_result::RunResult {
    let span = span.map(|length_bytes| Span { start_bytes: 0, length_bytes });
    run_spec(&RunSpec { system, span, ..spec(&bare_drive(), workload(line, closed(depth), requests)) })
}

/// A small random read reads its record: the device's bandwidth divided by the record size. alc-kit measured that within
/// 8 %: 232,045 reads of 4 KiB a second from records of 128 KiB, and 27,745 sequential reads of 1 MiB.
#[test]
fn random_reads_cost_a_record_each() {
    for record in [16 * KIB, 128 * KIB, MIB] {
        let description = ZfsDescription { record_bytes: record as u32, arc_max_bytes: 8 * MIB, ..small(4 << 30) };
        let device = sink(16 << 30, 1_000_000_000, 20 * US);
        // Aligned, so that none touches two records.
        let small_reads = AccessLine { align_bytes: Some(4096), ..line(4096, 100.0, 100.0) };
        let result = run(zfs(&description, &[device]), small_reads, 64, 4_000, None);
        assert_close(result.throughput_per_s(), 1e9 / record as f64, 2.0, &format!("records of {record} bytes"));
    }
}

/// A read of a cached record costs software time only, with and without the cache.
#[test]
fn the_arc_keeps_what_was_read_and_written() {
    for (primary_cache, hits) in [(PrimaryCache::All, true), (PrimaryCache::Metadata, false)] {
        let description = ZfsDescription { primary_cache, ..small(256 * MIB) };
        let mut bench = Bench::new(&zfs(&description, &[ssd()]));
        bench.takes_ns(&request(Kind::Read, 0, 4096));
        bench.takes_ns(&request(Kind::Write, RECORD, RECORD));
        assert_eq!(bench.takes_ns(&request(Kind::Read, RECORD, 4096)), description.read_ns, "dirty data are in memory");
        bench.settle();
        for record in [0, 1] {
            let took_ns = bench.takes_ns(&request(Kind::Read, record * RECORD + 8192, 4096));
            assert_eq!(took_ns == description.read_ns, hits, "record {record}: {took_ns}");
        }
    }
}

/// Cached reads cost 6 us on one of 8 cores: 1.3 million/s, which nobody has measured.
#[test]
fn rates_above_the_measured_ones_get_a_note() {
    for (depth, is_noted) in [(1, false), (8, true)] {
        let system = zfs(&small(256 * MIB), &[fast()]);
        let cached = AccessLine { align_bytes: Some(4096), ..line(4096, 100.0, 100.0) };
        let result = run(system, cached, depth, 20_000, Some(MIB));
        let noted =
            result.notes.iter().any(|note| note.contains("OpenZFS was measured to 350,000 requests/s, not above"));
        assert_eq!(noted, is_noted, "depth {depth}: {} requests/s", result.throughput_per_s());
    }
}

/// The cache holds at most its maximum, and hits as often as a part of the data fits.
#[test]
fn hits_follow_the_size_of_the_cache() {
    let description = ZfsDescription { record_bytes: 16 << 10, arc_max_bytes: 32 * MIB, ..small(128 * MIB) };
    let result = run(zfs(&description, &[fast()]), line(16 << 10, 100.0, 100.0), 1, 40_000, Some(128 * MIB));
    let (hits, misses) = (counter(&result, "arc_hits") as f64, counter(&result, "arc_misses") as f64);
    assert_close(hits / (hits + misses), 0.25, 8.0, "share of hits");
}

/// Prefetch keeps a sequential reader from waiting for a slow device.
#[test]
fn prefetch_hides_the_latency_of_the_device() {
    let per_s = |primary_cache: PrimaryCache| {
        let description = ZfsDescription { primary_cache, ..small(4 << 30) };
        let system = zfs(&description, &[sink(16 << 30, 1_000_000_000, 5 * MS)]);
        run(system, line(128 << 10, 100.0, 0.0), 1, 4_000, None).throughput_per_s()
    };
    let (with, without) = (per_s(PrimaryCache::All), per_s(PrimaryCache::Metadata));
    assert_close(without, 195.0, 3.0, "5.13 ms each");
    assert!(with > 2.5 * without, "{with} and {without} a second");
}

/// Records that leave the ARC are read from the cache device, once it was fed with them.
#[test]
fn the_cache_device_serves_what_left_memory() {
    let description =
        ZfsDescription { record_bytes: 16 << 10, cache: Some(1), arc_max_bytes: 16 * MIB, ..small(64 * MIB) };
    let slow = sink(16 << 30, 20_000_000, 5 * MS);
    let system = zfs(&description, &[slow, ssd()]);
    let result = run(system, line(16 << 10, 100.0, 100.0), 4, 30_000, Some(48 * MIB));
    let [hits, misses] = ["l2arc_hits", "arc_misses"].map(|name| counter(&result, name));
    assert!(hits * 2 > misses && hits < misses, "{hits} of {misses} misses");
    // Written once each, since a record on the device is not written again.
    let written = counter(&result, "l2arc_written_bytes");
    assert!((40 * MIB..=48 * MIB).contains(&written), "{written}");
}
