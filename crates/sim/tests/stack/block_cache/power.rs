//! Power cuts: acknowledged synchronous data survive at every event.

use std::collections::BTreeMap;

use headstack_sim::stack::description::{CacheMode, CacheSoftware, WhenFull};
use headstack_workload::{Kind, Span};

use super::*;
use crate::common::bench::Bench;
use crate::common::{Dice, flush, read, request};

const PAGE: u64 = 4096;

/// Submits random requests, and compares what a cut would lose with what was synced, at every event. Returns the number
/// of events, and how often a page was at risk.
fn survives_cuts(cache: &BlockCacheDescription, seed: u64) -> [u64; 2] {
    let mut bench = Bench::new(&cached(cache, &forgetful()));
    let mut dice = Dice(seed);
    // Number of the newest write of each page, once it ended; the newest write that must survive.
    let (mut newest, mut ended): (BTreeMap<u64, u64>, BTreeMap<u64, u64>) = Default::default();
    let mut safe: BTreeMap<u64, u64> = BTreeMap::new();
    let mut writes: BTreeMap<u32, (u64, std::ops::Range<u64>, bool)> = BTreeMap::new();
    let mut syncs: BTreeMap<u32, BTreeMap<u64, u64>> = BTreeMap::new();
    let [mut events, mut at_risk] = [0, 0];
    for number in 1..600 {
        let until_ns = bench.now_ns + if dice.below(60) == 0 { 7 * SECOND } else { dice.below(2 * MS) };
        while bench.system.next_event_ns() <= until_ns {
            let next_ns = bench.system.next_event_ns();
            events += 1;
            for done in bench.run_to(next_ns) {
                safe.extend(syncs.remove(&done.id).unwrap_or_default());
                let Some((write, pages, forced)) = writes.remove(&done.id) else { continue };
                for page in pages {
                    ended.insert(page, write);
                    if forced {
                        safe.insert(page, write);
                    }
                }
            }
            let mut volatile = Vec::new();
            bench.system.volatile(next_ns, &[Span { start_bytes: 0, length_bytes: 600 * PAGE }], &mut volatile);
            for span in volatile {
                for page in span.start_bytes / PAGE..(span.start_bytes + span.length_bytes).div_ceil(PAGE) {
                    at_risk += 1;
                    let newest = newest.get(&page).copied().unwrap_or(0);
                    let safe = safe.get(&page).copied().unwrap_or(0);
                    assert!(
                        safe < newest,
                        "{cache:?}: page {page}: write {safe} was synced and is at risk at {next_ns} ns"
                    );
                }
            }
        }
        bench.run_to(until_ns);
        let request = match dice.below(10) {
            0 => flush(),
            1..=3 => request(Kind::Read, dice.below(1_000) * PAGE, (1 + dice.below(16)) * PAGE),
            _ => request(Kind::Write, dice.below(500) * PAGE, (1 + dice.below(20)) * PAGE),
        };
        let pages = request.offset_bytes / PAGE..(request.offset_bytes + u64::from(request.length_bytes)) / PAGE;
        // The order of writes of a page that overlap in time is undefined.
        let overlaps = |other: &std::ops::Range<u64>| other.start < pages.end && pages.start < other.end;
        if request.kind == Kind::Write && writes.values().any(|(_, other, _)| overlaps(other)) {
            continue;
        }
        let forced = request.kind == Kind::Write && dice.below(4) == 0;
        let id = bench.submit(&headstack_workload::Request { force_unit_access: forced, ..request });
        if request.kind == Kind::Flush {
            syncs.insert(id, ended.clone());
        }
        if request.kind == Kind::Write {
            pages.clone().for_each(|page| _ = newest.insert(page, number));
            writes.insert(id, (number, pages, forced));
        }
    }
    [events, at_risk]
}

#[test]
fn synced_data_survive_a_cut_at_any_event() {
    let mut quick = bcache(CacheMode::Writeback);
    let CacheSoftware::Bcache(rules) = &mut quick.software else { unreachable!() };
    (rules.writeback_delay_ns, rules.minimum_sectors_per_s) = (SECOND, 20_000);
    let small = BlockCacheDescription { metadata_bytes: 766 * MIB, ..writecache(WhenFull::Origin) };
    for cache in [
        quick,
        bcache(CacheMode::Writethrough),
        bcache(CacheMode::Writearound),
        dm_cache(CacheMode::Writeback),
        dm_cache(CacheMode::Writethrough),
        writecache(WhenFull::Wait),
        small,
    ] {
        for seed in 1..=2 {
            let [events, at_risk] = survives_cuts(&cache, seed);
            assert!(events > 1_500 && at_risk > 1_000, "{:?}: {events} events, {at_risk} pages", cache.mode);
        }
    }
}

/// What is dirty survives a power cycle; entries without a commit do not.
#[test]
fn a_power_cycle_keeps_committed_data() {
    for cache in [bcache(CacheMode::Writeback), dm_cache(CacheMode::Writeback), writecache(WhenFull::Wait)] {
        let mut bench = Bench::new(&cached(&cache, &forgetful()));
        let whole = |block: u64| request(Kind::Write, block * 64 * KIB, 64 * KIB);
        bench.takes_ns(&whole(0));
        bench.takes_ns(&flush());
        bench.takes_ns(&whole(1));
        assert_eq!(bench.volatile(), [(64 * KIB, 128 * KIB)]);
        bench.submit(&whole(2));
        bench.system.power_fails(bench.now_ns);
        bench.system.power_cycle(bench.now_ns);
        assert_eq!(bench.volatile(), []);
        assert_eq!(dirty(&bench), 64 * KIB, "the first block is dirty still");
        let hits = |bench: &Bench| crate::stack::counted(&bench.system, "block_cache_hit_bytes");
        bench.takes_ns(&read(0, 8));
        assert_eq!(hits(&bench), 4096);
        bench.takes_ns(&read(128, 8));
        assert_eq!(hits(&bench), 4096);
        bench.settle();
        bench.takes_ns(&whole(1));
        bench.takes_ns(&flush());
        bench.settle();
        assert_eq!(bench.volatile(), []);
    }
}

/// After a crash dm-cache does not know which blocks are dirty, and writes all of them back.
#[test]
fn after_a_crash_all_blocks_of_dm_cache_are_dirty() {
    let mut bench = Bench::new(&cached(&dm_cache(CacheMode::Writethrough), &forgetful()));
    for _ in 0..2 {
        bench.takes_ns(&read(0, 8));
        bench.settle();
    }
    assert_eq!([dirty(&bench), clean(&bench)], [0, 64 * KIB]);
    bench.system.power_fails(bench.now_ns);
    bench.system.power_cycle(bench.now_ns);
    assert_eq!([dirty(&bench), clean(&bench)], [64 * KIB, 0]);
    bench.settle();
    assert_eq!([dirty(&bench), clean(&bench)], [0, 64 * KIB]);
}
