//! Host caches: which limits a request counts in, flushes, and what a failure of the host loses.

use headstack_result::RunResult;
use headstack_sim::device::DeviceDescription;
use headstack_sim::stack::description::{
    HostCacheDescription, HostCacheMode, InstanceLimitDescription, LayerDescription,
};
use headstack_sim::volume::description::{Accounting, Counts, Latency, Limit, LimitScope, VolumeDescription};
use headstack_sim::{RunSpec, SystemDescription};
use headstack_workload::{AccessLine, Request};

use super::files::{assert_synced_data_survive, forced, fsync};
use super::over;
use crate::common::bench::Bench;
use crate::common::{
    MS, US, assert_close, bare_drive, closed, counter, flush, line, read, request, run_spec, spec, workload, write,
};

const SECOND: u64 = 1_000_000_000;
const MIB: u64 = 1 << 20;
const PAGE: u64 = 4096;
const HIT_NS: u64 = 100 * US;
const VOLUME_NS: u64 = 2 * MS;

/// A volume without limits, and a constant latency.
fn volume(capacity_bytes: u64) -> SystemDescription {
    let latency = Latency { floor_ns: VOLUME_NS, median_ns: VOLUME_NS + 1, p99_ns: VOLUME_NS + 2 };
    SystemDescription::Drive(DeviceDescription::Volume(VolumeDescription {
        name: "volume".to_owned(),
        capacity_bytes,
        block_bytes: 512,
        accounting: Accounting { unit_bytes: None, merges: false, whole_units: false },
        limits: Vec::new(),
        read: latency,
        write: latency,
        queue_depth: 1024,
        slack_ns: 0,
        read_crowding_ppm: 0,
    }))
}

fn requests_per_s(per_s: u64) -> InstanceLimitDescription {
    InstanceLimitDescription {
        accounting: Accounting { unit_bytes: None, merges: false, whole_units: false },
        limits: vec![Limit { counts: Counts::Requests, of: LimitScope::Both, per_s, burst: None }],
    }
}

/// A cache of `cache_bytes` in front of a volume, with cached and uncached limits on requests per second.
fn instance(
    mode: HostCacheMode,
    cache_bytes: u64,
    (cached, uncached): (u64, u64),
    volume_bytes: u64,
) -> SystemDescription {
    let cache = HostCacheDescription {
        mode,
        capacity_bytes: cache_bytes,
        cached: requests_per_s(cached),
        hit_ns: HIT_NS,
        flush_interval_ns: 5 * SECOND,
        writes_max: 32,
        write_bytes_max: 256 << 10,
    };
    let limit = LayerDescription::InstanceLimit(requests_per_s(uncached));
    over(LayerDescription::HostCache(cache), &[over(limit, &[volume(volume_bytes)])])
}

/// A cache whose limits delay nothing.
fn unlimited(mode: HostCacheMode) -> SystemDescription {
    instance(mode, 16 * MIB, (1 << 40, 1 << 40), 64 * MIB)
}

/// Random requests for whole pages.
fn pages(read_percent: f64) -> AccessLine {
    AccessLine { align_bytes: Some(4096), ..line(4096, read_percent, 100.0) }
}

/// Runs random requests of 4 KiB on a cache that was warmed with many of them.
fn warm(system: &SystemDescription, read_percent: f64, requests: u64) -> RunResult {
    let demand = workload(pages(read_percent), closed(32), requests);
    run_spec(&RunSpec { system: system.clone(), preload: 100_000, ..spec(&bare_drive(), demand) })
}

/// Hits count in the cached limit only, and take the time of a hit.
#[test]
fn cached_reads_run_at_the_cached_limit() {
    let result = warm(&instance(HostCacheMode::ReadOnly, 16 * MIB, (2_000, 300), 8 * MIB), 100.0, 20_000);
    assert_close(result.throughput_per_s(), 2_000.0, 0.5, "hits");
    assert_eq!((counter(&result, "host_cache_misses"), counter(&result, "instance_limited_requests")), (0, 0));
    let mut bench = Bench::new(&unlimited(HostCacheMode::ReadOnly));
    let took_ns = [bench.takes_ns(&read(0, 8)), bench.takes_ns(&read(0, 8)), bench.takes_ns(&read(4, 16))];
    assert!(took_ns[0] >= VOLUME_NS && took_ns[1] == HIT_NS && took_ns[2] >= VOLUME_NS, "{took_ns:?}");
}

/// Misses count in both limits: the smaller one decides.
#[test]
fn missed_reads_run_at_the_smaller_limit() {
    for limits in [(2_000, 300), (300, 2_000)] {
        let result = warm(&instance(HostCacheMode::ReadOnly, MIB, limits, 1 << 40), 100.0, 5_000);
        assert_close(result.throughput_per_s(), 300.0, 0.5, "misses");
    }
}

/// A share of hits h runs at the smaller of cached and uncached / (1 - h). Least recently used pages of uniform reads
/// hit with the share of the volume that is cached.
#[test]
fn a_mix_runs_at_the_uncached_limit_of_its_misses() {
    let three_quarters = |limits| instance(HostCacheMode::ReadOnly, 6 * MIB, limits, 8 * MIB);
    let result = warm(&three_quarters((10_000, 300)), 100.0, 40_000);
    assert_close(result.throughput_per_s(), 1_200.0, 3.0, "three quarters of hits");
    let result = warm(&three_quarters((1_000, 300)), 100.0, 40_000);
    assert_close(result.throughput_per_s(), 1_000.0, 0.5, "the cached limit");
}

/// With read-only caching, writes take the time of the volume and count in both limits; their pages are cached.
#[test]
fn writes_go_through_a_read_only_cache() {
    let result = warm(&instance(HostCacheMode::ReadOnly, 16 * MIB, (10_000, 300), 8 * MIB), 50.0, 20_000);
    assert_close(result.throughput_per_s(), 600.0, 2.0, "half of it writes, all reads hit");
    let mut bench = Bench::new(&unlimited(HostCacheMode::ReadOnly));
    assert!(bench.takes_ns(&write(0, 8)) >= VOLUME_NS && bench.volatile().is_empty());
    assert_eq!(bench.takes_ns(&read(0, 8)), HIT_NS);
}

/// With read-write caching, a write ends in the cache and counts in the cached limit; a flush every 5 s writes
/// neighbors together, which count in the uncached limit.
#[test]
fn writes_end_in_a_read_write_cache_and_are_flushed_later() {
    let result = warm(&instance(HostCacheMode::ReadWrite, 16 * MIB, (2_000, 300), 8 * MIB), 0.0, 9_000);
    assert_close(result.throughput_per_s(), 2_000.0, 0.5, "writes");
    let mut bench = Bench::new(&unlimited(HostCacheMode::ReadWrite));
    bench.now_ns = SECOND;
    for page in 0..80 {
        assert_eq!(bench.takes_ns(&write(8 * page, 8)), HIT_NS);
    }
    assert_eq!(bench.volatile(), [(0, 80 * PAGE)]);
    bench.run_to(5 * SECOND + VOLUME_NS - 1);
    assert_eq!(bench.volatile(), [(0, 80 * PAGE)], "on the way");
    bench.run_to(5 * SECOND + VOLUME_NS + 10);
    assert_eq!(bench.volatile(), []);
    let snapshot = bench.system.snapshot();
    let counted = |name| snapshot.counters().find(|found| found.0 == name).expect("a counter").1;
    assert_eq!((counted("accounted_requests"), counted("host_cache_flushed_pages")), (2, 80), "256 KiB and the rest");
}

/// A sync writes all dirty pages, 32 at once, and waits for them; a forced write only its own.
#[test]
fn a_sync_or_forced_write_waits_for_the_volume() {
    let near = |took_ns: u64, volume_times: u64| {
        assert!((0..100).contains(&(took_ns - volume_times * VOLUME_NS)), "{took_ns}");
    };
    let mut bench = Bench::new(&unlimited(HostCacheMode::ReadWrite));
    bench.now_ns = MS;
    assert_eq!(bench.takes_ns(&fsync()), HIT_NS, "nothing is dirty");
    bench.takes_ns(&write(0, 8));
    near(bench.takes_ns(&fsync()), 1);
    // Every second page: no two of them in one write.
    (0..64).for_each(|page| assert_eq!(bench.takes_ns(&write(16 * page, 8)), HIT_NS));
    near(bench.takes_ns(&forced(write(4096, 8))), 1);
    assert_eq!(bench.volatile().len(), 64, "a forced write leaves other pages");
    near(bench.takes_ns(&flush()), 2);
    assert_eq!(bench.volatile(), []);
}

/// The uncached limit spaces the writes of a sync.
#[test]
fn the_uncached_limit_spaces_the_writes_of_a_sync() {
    let mut bench = Bench::new(&instance(HostCacheMode::ReadWrite, 16 * MIB, (1 << 40, 1_000), 64 * MIB));
    bench.now_ns = MS;
    (0..20).for_each(|page| assert_eq!(bench.takes_ns(&write(16 * page, 8)), HIT_NS));
    let took_ns = bench.takes_ns(&fsync());
    assert!((0..100).contains(&(took_ns - 19 * MS - VOLUME_NS)), "{took_ns}");
}

/// A cache full of dirty pages takes writes at the rate of the volume.
#[test]
fn writes_to_a_full_cache_run_at_the_uncached_limit() {
    let system = instance(HostCacheMode::ReadWrite, MIB, (20_000, 500), 1 << 40);
    let demand = workload(pages(0.0), closed(32), 10_000);
    let result = run_spec(&RunSpec { system, ..spec(&bare_drive(), demand) });
    // 256 of the writes fill the cache.
    let expected = 500.0 * 10_000.0 / (10_000.0 - 256.0);
    assert_close(result.throughput_per_s(), expected, 1.0, "full");
    assert!(counter(&result, "host_cache_throttled_writes") > 9_000);
}

/// A failure of the host empties the cache: with read-write caching it loses what was not flushed, byte by byte.
#[test]
fn a_failure_of_the_host_loses_writes_that_were_not_flushed() {
    let mut bench = Bench::new(&unlimited(HostCacheMode::ReadWrite));
    bench.now_ns = MS;
    bench.takes_ns(&write(0, 1));
    bench.takes_ns(&fsync());
    bench.takes_ns(&write(3, 2));
    assert_eq!(bench.volatile(), [(3 * 512, 5 * 512)], "the synced sector of the page is safe");
    bench.takes_ns(&read(0, 8));
    bench.system.power_cycle(bench.now_ns);
    assert_eq!(bench.volatile(), []);
    assert!(bench.takes_ns(&read(0, 8)) >= VOLUME_NS, "the cache is empty");
    assert_synced_data_survive(&unlimited(HostCacheMode::ReadWrite), 3);
}

/// Without limits and hits, a read-only cache gives the results of the volume alone.
#[test]
fn a_cache_without_hits_is_the_identity() {
    for (read_percent, limited) in [(0.0, LimitScope::Reads), (100.0, LimitScope::Writes)] {
        let mut limits = requests_per_s(1);
        limits.limits[0].of = limited;
        let cache = HostCacheDescription {
            mode: HostCacheMode::ReadOnly,
            capacity_bytes: MIB,
            cached: limits,
            hit_ns: HIT_NS,
            flush_interval_ns: 5 * SECOND,
            writes_max: 32,
            write_bytes_max: 256 << 10,
        };
        let cached = over(LayerDescription::HostCache(cache), &[volume(1 << 40)]);
        let run = |system: &SystemDescription| {
            let demand = workload(line(8192, read_percent, 100.0), closed(8), 3_000);
            run_spec(&RunSpec { system: system.clone(), ..spec(&bare_drive(), demand) })
        };
        let (through, alone) = (run(&cached), run(&volume(1 << 40)));
        assert_eq!((through.kinds.read, through.kinds.write), (alone.kinds.read, alone.kinds.write));
        assert_eq!(through.duration_ns, alone.duration_ns);
    }
}

/// A trim drops pages from the cache.
#[test]
fn a_trim_drops_pages() {
    let mut bench = Bench::new(&unlimited(HostCacheMode::ReadWrite));
    bench.now_ns = MS;
    let trim = Request { kind: headstack_workload::Kind::Trim, ..request(headstack_workload::Kind::Trim, 0, 2 * PAGE) };
    bench.takes_ns(&write(0, 24));
    bench.takes_ns(&trim);
    assert_eq!(bench.volatile(), [(2 * PAGE, 3 * PAGE)]);
    assert!(bench.takes_ns(&read(0, 8)) >= VOLUME_NS);
    assert_eq!(bench.takes_ns(&read(16, 8)), HIT_NS);
}
