//! The controller's cache: hits, write-back and its saturation, prefetching, the battery.

use crate::common::arrays::{UNIT, of, request, run_array, serve};
use crate::common::{MS, US};
use headstack_result::RunResult;
use headstack_sim::array::Array;
use headstack_sim::array::description::{
    ArrayDescription, Cache, CachePolicy, CacheWrites, Destage, Incident, IncidentKind, Level, Prefetch,
};
use headstack_sim::link::{LinkDescription, LinkKind};
use headstack_workload::Kind;

fn cache(data_bytes: u64) -> Cache {
    Cache {
        memory_bytes: data_bytes,
        data_bytes,
        dirty_bytes_max: data_bytes / 2,
        page_bytes: 64 << 10,
        writes: CacheWrites::Back,
        mirror_link: None,
        battery: true,
        keeps_reads: true,
        fill_bytes: 1,
        prefetch: None,
        policy: CachePolicy::Lru,
        destage: Destage::Sorted,
        high_water: 0.8,
        low_water: 0.2,
        destages_max: 16,
        flash_members: vec![],
    }
}

fn with_cache(level: Level, members: u32, cache: Cache) -> ArrayDescription {
    let mut description = of(level, members);
    description.controller.request_ns = 100 * US;
    description.controller.cache = Some(cache);
    description
}

fn run_on(description: &ArrayDescription, line: &str, queue_depth: u32, requests: u64) -> RunResult {
    run_array(description, serde_json::from_str(line).unwrap(), queue_depth, requests, 2_000)
}

const RANDOM_READS: &str = r#"{"size": "64KiB", "align": "64KiB", "read_percent": 100, "random_percent": 100}"#;
const RANDOM_WRITES: &str = r#"{"size": "4KiB", "read_percent": 0, "random_percent": 100}"#;

fn counter(result: &RunResult, name: &str) -> f64 {
    result.counters.iter().find(|counter| counter.name == name).unwrap_or_else(|| panic!("{name}")).value as f64
}

#[test]
fn a_cache_of_size_c_under_uniform_reads_of_w_hits_c_over_w() {
    // The LUN has 4 x 64 pages.
    for pages in [32u64, 64, 128, 192] {
        let description = with_cache(Level::Raid0, 4, cache(pages * 65536));
        let result = run_on(&description, RANDOM_READS, 1, 20_000);
        let hits = counter(&result, "cache_read_hits") / 20_000.0;
        let expected = pages as f64 / 256.0;
        // Four standard deviations of a binomial share.
        let tolerance = 4.0 * (expected * (1.0 - expected) / 20_000.0).sqrt();
        assert!((hits - expected).abs() < tolerance, "{pages} pages: {hits}, {expected} expected");
        assert_eq!(counter(&result, "cache_read_misses"), counter(&result, "data_reads"));
    }
}

#[test]
fn a_hit_costs_the_controller_and_the_host_link() {
    let mut description = with_cache(Level::Raid5, 5, cache(64 * UNIT));
    description.links = vec![link(LinkKind::FcLoop, 10.0)];
    description.host_links = vec![0];
    let twice = [request(Kind::Read, 0, 4096), request(Kind::Read, 0, 4096)];
    let (_, done) = serve(&description, 0, &twice);
    assert_eq!(done[1].at_ns - done[0].at_ns, 100 * US + 40_960);
    // A write: data first, then the same; written data are read back from the cache.
    let write_read = [request(Kind::Write, 8192, 4096), request(Kind::Read, 8192, 4096)];
    let (array, done) = serve(&description, 0, &write_read);
    assert_eq!(done[0].at_ns, 100 * US + 40_960);
    assert_eq!(done[1].at_ns - done[0].at_ns, 100 * US + 40_960);
    assert_eq!(array.counters().data_reads, 0);
}

fn link(kind: LinkKind, ns_per_byte: f64) -> LinkDescription {
    LinkDescription {
        name: "link".to_owned(),
        kind,
        ns_per_byte,
        command_ns: 0,
        read_ns: 0,
        write_ns: 0,
        latency_ns: 0,
        full_duplex: false,
        held_by_command: false,
    }
}

#[test]
fn the_partner_has_a_copy_before_the_host_has_its_answer() {
    let mut description = with_cache(Level::Raid1, 2, Cache { mirror_link: Some(0), ..cache(64 * UNIT) });
    description.links = vec![link(LinkKind::Mirror, 20.0)];
    let (_, done) = serve(&description, 0, &[request(Kind::Write, 0, 4096)]);
    assert_eq!(done[0].at_ns, 100 * US + 81_920);
}

#[test]
fn without_battery_writes_wait_for_the_members() {
    let description = with_cache(Level::Raid1, 2, Cache { battery: false, ..cache(64 * UNIT) });
    let (array, done) = serve(&description, 0, &[request(Kind::Write, 0, 4096)]);
    assert!(done[0].at_ns > MS, "{}", done[0].at_ns);
    assert_eq!(array.counters().data_writes, 2);
    // It fails in mid-run, and comes back.
    let mut failing = with_cache(Level::Raid1, 2, cache(64 * UNIT));
    failing.incidents = vec![
        Incident { at_ns: 0, what: IncidentKind::BatteryFails },
        Incident { at_ns: 500 * MS, what: IncidentKind::BatteryReturns },
    ];
    let (_, done) = serve(&failing, 0, &[request(Kind::Write, 0, 4096)]);
    assert!(done[0].at_ns > MS);
    let (_, done) = serve(&failing, 501 * MS, &[request(Kind::Write, 0, 4096)]);
    assert_eq!(done[0].at_ns, 501 * MS + 100 * US);
}

/// Past requests leave a cache as a host does that never rests: full, and dirty up to the low mark. They are not
/// counted, and the next write starts a destage.
#[test]
fn the_past_leaves_a_cache_dirty_up_to_its_low_mark() {
    for destage in Destage::ALL {
        let description = with_cache(Level::Raid5, 5, Cache { destage, ..cache(64 * UNIT) });
        let mut array = Array::new(&description, 1).unwrap();
        for number in 0..4000u64 {
            let offset = number * 7_654_321 / 4096 * 4096 % (200 * UNIT);
            let kind = if number % 3 == 0 { Kind::Write } else { Kind::Read };
            array.warm_with(&request(kind, offset, 4096));
            assert!(array.dirty_pages() <= 6, "a fifth of 32 pages");
        }
        assert_eq!(array.dirty_pages(), 6, "{destage:?}");
        let counted = array.counters();
        assert_eq!((counted.data_writes, counted.data_reads), (0, 0), "{destage:?}: it took no time");
        assert_eq!(array.next_event_ns(), u64::MAX, "{destage:?}: nothing is under way");
        let mut done = vec![];
        // Two at once: while one is served, the host does not rest.
        array.submit(0, 0, &request(Kind::Read, 150 * UNIT, 4096));
        array.submit(0, 1, &request(Kind::Write, 199 * UNIT, 4096));
        while done.len() < 2 {
            array.advance(array.next_event_ns(), &mut done);
        }
        assert!(array.counters().data_writes > 0, "{destage:?}: one page too many leaves");
    }
    // One that writes through stays clean, and one without its battery does.
    for writes_through in
        [Cache { writes: CacheWrites::Through, ..cache(64 * UNIT) }, Cache { battery: false, ..cache(64 * UNIT) }]
    {
        let mut array = Array::new(&with_cache(Level::Raid5, 5, writes_through), 1).unwrap();
        (0..100).for_each(|page| array.warm_with(&request(Kind::Write, page * UNIT, 4096)));
        assert_eq!(array.dirty_pages(), 0);
    }
}

/// All written data reach the members: the cache has no dirty pages when all is quiet.
#[test]
fn what_is_written_reaches_the_members() {
    for destage in Destage::ALL {
        for level in [Level::Raid0, Level::Raid10, Level::Raid5] {
            let description = with_cache(level, 6, Cache { destage, ..cache(32 * UNIT) });
            let mut array = Array::new(&description, 1).unwrap();
            let (mut done, mut pages) = (vec![], std::collections::HashSet::new());
            for id in 0..200u64 {
                let offset = id * 7_654_321 / 4096 * 4096 % (100 * UNIT);
                pages.insert(offset / 4096);
                array.advance(id * MS, &mut done);
                array.submit(id * MS, id as u32, &request(Kind::Write, offset, 4096));
                assert!(array.dirty_pages() <= 16, "no more than may be");
            }
            while array.next_event_ns() != u64::MAX {
                array.advance(array.next_event_ns(), &mut done);
            }
            assert_eq!(done.len(), 200, "{destage:?} {level:?}");
            let destaged = array.destaged_bytes();
            assert!(destaged >= 4096 * pages.len() as u64, "{destage:?} {level:?}: {destaged}");
            assert_eq!(array.dirty_pages(), 0);
        }
    }
}

#[test]
fn a_saturated_cache_writes_at_the_pace_of_its_members() {
    let description = with_cache(Level::Raid0, 4, cache(16 * UNIT));
    let cached = run_on(&description, RANDOM_WRITES, 64, 20_000);
    // Eight pages may be dirty, so eight writes are in flight at the members.
    let bare = run_on(&of(Level::Raid0, 4), RANDOM_WRITES, 8, 20_000);
    let ratio = cached.throughput_per_s() / bare.throughput_per_s();
    // Pages that are written again before they leave save some of the writes.
    assert!((0.9..1.3).contains(&ratio), "{ratio}");
    assert!(counter(&cached, "cache_write_waits") > 15_000.0);
}

#[test]
fn sorted_destages_seek_less_than_those_by_age() {
    // All dirty pages leave in idle moments, one after the other.
    let seek_ms = |destage| {
        let mut settings = Cache { destage, destages_max: 1, low_water: 0.99, high_water: 1.0, ..cache(400 * UNIT) };
        settings.dirty_bytes_max = 256 * UNIT;
        let mut description = with_cache(Level::Concat, 1, settings);
        description.groups[0].member_bytes = 3000 * UNIT;
        description.luns[0].length_bytes = 3000 * UNIT;
        let mut array = Array::new(&description, 1).unwrap();
        for id in 0..200u64 {
            array.submit(0, id as u32, &request(Kind::Write, id * 7_919 % 3000 * UNIT, 4096));
        }
        let mut now_ns = 0;
        while array.next_event_ns() != u64::MAX {
            now_ns = array.next_event_ns();
            array.advance(now_ns, &mut vec![]);
        }
        now_ns / MS
    };
    let (sorted, by_age) = (seek_ms(Destage::Sorted), seek_ms(Destage::Fifo));
    assert!(sorted * 3 < by_age * 2, "{sorted} ms against {by_age} ms");
}

#[test]
fn full_rows_leave_a_stripe_aware_cache_without_a_read() {
    let mut settings = Cache { destage: Destage::StripeAware, ..cache(256 * UNIT) };
    settings.low_water = 0.5;
    let description = with_cache(Level::Raid5, 5, settings);
    let mut array = Array::new(&description, 1).unwrap();
    let mut done = vec![];
    // One stream in small pieces, faster than idle moments come.
    for id in 0..(8 * 16 * 4) {
        array.submit(0, id, &request(Kind::Write, u64::from(id) * 8192, 8192));
    }
    while array.next_event_ns() != u64::MAX {
        array.advance(array.next_event_ns(), &mut done);
    }
    let counters = array.counters();
    assert_eq!((counters.parity_reads, counters.full_rows), (0, 16), "{counters:?}");
}

/// Read-ahead finds pages that are cached already: they may be evicted before the pages around them have been read.
#[test]
fn a_page_that_is_there_may_go_while_its_neighbours_are_read() {
    let prefetch = Prefetch { after_requests: 1, ahead_bytes: 8 * 65536, streams_max: 4 };
    let description = with_cache(Level::Raid0, 4, Cache { prefetch: Some(prefetch), ..cache(24 * 65536) });
    let line = r#"{"size": "64KiB", "align": "64KiB", "read_percent": 100, "random_percent": 50}"#;
    let result = run_on(&description, line, 8, 20_000);
    assert!(result.passed(), "{:?}", result.checks);
    assert!(counter(&result, "cache_prefetched_bytes") > 0.0);
}

#[test]
fn streams_are_read_ahead() {
    let line = r#"{"size": "64KiB", "read_percent": 100, "random_percent": 0}"#;
    let prefetch = Prefetch { after_requests: 2, ahead_bytes: 16 * UNIT, streams_max: 8 };
    let ahead = with_cache(Level::Raid0, 4, Cache { prefetch: Some(prefetch), ..cache(64 * UNIT) });
    let plain = with_cache(Level::Raid0, 4, cache(64 * UNIT));
    let (ahead, plain) = (run_on(&ahead, line, 1, 5_000), run_on(&plain, line, 1, 5_000));
    let gain = ahead.throughput_per_s() / plain.throughput_per_s();
    assert!(gain > 2.0, "one stream keeps four members busy: {gain}");
    assert!(counter(&ahead, "cache_read_misses") < 100.0);
    // What was read ahead was used: nothing is read twice.
    assert!(counter(&ahead, "cache_prefetched_bytes") < 1.05 * 5_000.0 * 65536.0);
}

#[test]
fn a_cache_smaller_than_the_queue_serves_every_request() {
    // Overlapping requests: fills of pages that are being read, pages rewritten while they are destaged, no room for a
    // run.
    let mixed = r#"{"size": "100KiB", "read_percent": 60, "random_percent": 100}"#;
    for level in [Level::Raid0, Level::Raid5] {
        for pages in [4, 8, 32] {
            let mut small = cache(pages * 65536);
            small.page_bytes = 8 << 10;
            let result = run_on(&with_cache(level, 4, small), mixed, 64, 5_000);
            assert!(result.checks.iter().all(|check| check.passed), "{level:?}, {pages} pages");
        }
    }
}

/// A write around the cache leaves no old data in it: the next read goes to the members.
#[test]
fn what_is_written_past_the_cache_is_read_from_the_members() {
    for (writes, battery, keeps_reads, reads) in [
        (CacheWrites::Around, true, true, 2),
        (CacheWrites::Through, true, true, 1),
        (CacheWrites::Back, false, true, 1),
    ] {
        let settings = Cache { writes, battery, keeps_reads, ..cache(64 * UNIT) };
        let description = with_cache(Level::Raid0, 4, settings);
        let requests = [Kind::Read, Kind::Read, Kind::Write, Kind::Read].map(|kind| request(kind, 8192, 4096));
        let (array, _) = serve(&description, 0, &requests);
        assert_eq!(array.counters().data_reads, reads, "{writes:?}: once, and again if the write left nothing");
        // Part of the read data is written: the rest is still cached.
        let neighbour = [request(Kind::Read, 0, 8192), request(Kind::Write, 0, 4096), request(Kind::Read, 4096, 4096)];
        assert_eq!(serve(&description, 0, &neighbour).0.counters().data_reads, 1, "{writes:?}");
    }
}

/// Every policy keeps what fits. A scan evicts everything under policies that know only the last use, or none.
#[test]
fn a_scan_pollutes_lru_but_not_other_policies() {
    let misses = |policy| {
        let description = with_cache(Level::Raid0, 4, Cache { policy, ..cache(50 * UNIT) });
        let pages = |range: std::ops::Range<u64>| range.map(|page| request(Kind::Read, page * UNIT, 4096));
        let warm = (0..4).flat_map(|_| pages(0..20));
        let requests: Vec<_> = warm.chain(pages(40..240)).chain(pages(0..20)).collect();
        serve(&description, 0, &requests).0.counters().data_reads
    };
    // SLRU keeps the twelve of a segment. W-TinyLFU's filter, for so small a cache, confuses some pages.
    assert_eq!(CachePolicy::ALL.map(misses), [240, 240, 240, 220, 220, 220, 220, 240, 228, 220, 226]);
}
