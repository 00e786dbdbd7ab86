//! Where reads and writes go, and what they take.

use headstack_sim::stack::description::{CacheMode, CacheSoftware, WhenFull};
use headstack_workload::{Kind, Request};

use super::*;
use crate::common::bench::{Bench, unreadable};
use crate::common::{US, closed, flush, line, read, request, write};
use crate::stack::{counted, of};

fn forced(request: Request) -> Request {
    Request { force_unit_access: true, ..request }
}

fn on(cache: &BlockCacheDescription) -> Bench {
    Bench::new(&cached(cache, &devices()))
}

/// Returns the time of requests one after the other on a device of its own.
fn alone(device: usize, requests: &[Request]) -> u64 {
    let mut bench = Bench::new(&devices()[device]);
    requests.iter().map(|request| bench.takes_ns(request)).sum()
}

/// Without cost and with nothing cached, the origin alone.
#[test]
fn a_cache_that_everything_bypasses_is_the_identity() {
    let mut around = bcache(CacheMode::Writearound);
    let CacheSoftware::Bcache(rules) = &mut around.software else { unreachable!() };
    rules.sequential_bytes = 512;
    for cache in [bcache(CacheMode::Passthrough), dm_cache(CacheMode::Passthrough), around] {
        let mixed = line(8192, 70.0, 80.0);
        let systems = [cached(&cache, &devices()), devices()[0].clone()];
        let [result, origin] = systems.map(|system| of(&system, mixed.clone(), closed(8), 3_000));
        assert_eq!(result.kinds.read, origin.kinds.read);
        assert_eq!(result.kinds.write, origin.kinds.write);
        assert_eq!(result.duration_ns, origin.duration_ns);
    }
}

/// A miss costs a read of the origin and is inserted; a hit costs a read of the cache device.
#[test]
fn a_hit_reads_the_cache_device_and_a_miss_the_origin() {
    let cache = BlockCacheDescription { request_ns: 3 * US, ..bcache(CacheMode::Writethrough) };
    let mut bench = on(&cache);
    assert_eq!(bench.takes_ns(&read(800, 8)), 3 * US + alone(0, &[read(800, 8)]));
    bench.settle();
    assert_eq!(counted(&bench.system, "block_cache_inserted_bytes"), 4096);
    // The journal was written meanwhile; the read begins with an idle device.
    let place = cache.metadata_bytes / 512;
    let mut device = Bench::new(&devices()[1]);
    device.takes_ns(&write(place, 8));
    device.settle();
    assert_eq!(bench.takes_ns(&read(802, 4)), 3 * US + device.takes_ns(&read(place + 2, 4)));
    assert_eq!(counted(&bench.system, "block_cache_hit_bytes"), 2048);
    // Half of it is not cached: both devices are read at once, and the origin takes longer.
    bench.settle();
    assert_eq!(bench.takes_ns(&read(804, 8)), 3 * US + alone(0, &[read(808, 4)]));
}

/// Write-back ends with the write to the cache device; a forced write ends with the journal, after a flush.
#[test]
fn a_forced_write_ends_with_its_journal_entry() {
    let cache = bcache(CacheMode::Writeback);
    let place = cache.metadata_bytes / 512;
    let data = write(place, 8);
    let mut bench = on(&cache);
    assert_eq!(bench.takes_ns(&write(800, 8)), alone(1, &[data]));
    let mut bench = on(&cache);
    let journal = forced(request(Kind::Write, 0, 4096));
    assert_eq!(bench.takes_ns(&forced(write(800, 8))), alone(1, &[data, flush(), journal]));
    let mut bench = on(&bcache(CacheMode::Writethrough));
    assert_eq!(bench.takes_ns(&write(800, 8)), alone(0, &[write(800, 8)]));
    assert_eq!(counted(&bench.system, "block_cache_dirtied_bytes"), 0);
    bench.settle();
    assert!(bench.takes_ns(&read(800, 8)) < alone(0, &[read(800, 8)]) / 2);
    let mut bench = on(&bcache(CacheMode::Writearound));
    bench.takes_ns(&read(800, 8));
    bench.settle();
    bench.takes_ns(&write(800, 8));
    bench.settle();
    assert_eq!(clean(&bench), 0, "the cached data are dropped");
}

/// dm-writecache commits metadata blocks, a flush, and the superblock.
#[test]
fn a_flush_of_dm_writecache_commits_its_metadata() {
    let cache = writecache(WhenFull::Wait);
    let place = cache.metadata_bytes / 512;
    let mut bench = on(&cache);
    // Neighbouring blocks are one write (Linux commit dcd195071f).
    assert_eq!(bench.takes_ns(&write(800, 1024)), alone(1, &[write(place, 1024)]));
    let mut device = Bench::new(&devices()[1]);
    device.takes_ns(&write(place, 1024));
    let steps = [write(0, 8), flush(), forced(write(8, 8))];
    let commit_ns: u64 = steps.iter().map(|step| device.takes_ns(step)).sum();
    assert_eq!(bench.takes_ns(&flush()), commit_ns + alone(0, &[flush()]));
    // Nothing changed since.
    assert_eq!(bench.takes_ns(&flush()), alone(0, &[flush()]));
    // An overwrite in place needs a flush of the device only.
    bench.takes_ns(&write(808, 8));
    let commits = counted(&bench.system, "block_cache_commits");
    bench.takes_ns(&flush());
    assert_eq!(counted(&bench.system, "block_cache_commits"), commits);
    assert_eq!(cached(&cache, &devices()).block_bytes(), 4096);
}

/// The second use of a block copies it: 64 KiB from the origin to the cache for a read of 4 KiB.
#[test]
fn dm_cache_copies_a_block_that_is_used_again() {
    let mut bench = on(&dm_cache(CacheMode::Writethrough));
    let slow_ns = alone(0, &[read(800, 8)]);
    for uses in 1..=2 {
        assert_eq!(bench.takes_ns(&read(800, 8)), slow_ns);
        bench.settle();
        assert_eq!(counted(&bench.system, "block_cache_promotions"), uses - 1);
    }
    assert_eq!(counted(&bench.system, "block_cache_inserted_bytes"), 64 * KIB);
    // The rest of the block is cached, the next one is not.
    for (sector, hit_bytes) in [(896, 0), (888, 4096)] {
        bench.takes_ns(&read(sector, 8));
        assert_eq!(counted(&bench.system, "block_cache_hit_bytes"), hit_bytes);
    }
}

/// At most 1 MiB is copied at a time; uses beyond that copy nothing.
#[test]
fn the_migration_limit_bounds_promotions() {
    let mut bench = on(&dm_cache(CacheMode::Writethrough));
    for _ in 0..2 {
        (0..40).for_each(|block| _ = bench.submit(&read(128 * block, 8)));
        bench.settle();
    }
    assert_eq!(counted(&bench.system, "block_cache_promotions"), 16);
}

/// A write of a whole block to a write-back cache needs no copy; a smaller one goes to the origin.
#[test]
fn a_write_of_a_whole_block_needs_no_copy() {
    let mut bench = on(&dm_cache(CacheMode::Writeback));
    bench.takes_ns(&write(1280, 128));
    assert_eq!(counted(&bench.system, "block_cache_dirtied_bytes"), 64 * KIB);
    bench.takes_ns(&write(1408, 64));
    assert_eq!(counted(&bench.system, "block_cache_dirtied_bytes"), 64 * KIB);
    assert_eq!(counted(&bench.system, "block_cache_promotions"), 0);
}

/// Streams of more than 4 MiB bypass bcache; random reads fill it, and memory stays bounded by its size.
#[test]
fn long_streams_bypass_bcache() {
    let system = cached(&bcache(CacheMode::Writethrough), &devices());
    let mut bench = Bench::new(&system);
    for chunk in 0..64 {
        bench.takes_ns(&read(512 * chunk, 512));
    }
    bench.settle();
    assert_eq!(counted(&bench.system, "block_cache_inserted_bytes"), 4 * MIB - 256 * KIB);
    assert_eq!(counted(&bench.system, "block_cache_bypassed_bytes"), 12 * MIB + 256 * KIB);
    let mut cache = bcache(CacheMode::Writethrough);
    let CacheSoftware::Bcache(rules) = &mut cache.software else { unreachable!() };
    (rules.congested_read_ns, rules.congested_write_ns) = (0, 0);
    let mut bench = on(&cache);
    let mut dice = crate::common::Dice(3);
    let mut most = 0;
    for _ in 0..1_500 {
        bench.takes_ns(&read(128 * dice.below(12_000), 128));
        bench.run_to(bench.now_ns + 5 * MS);
        most = most.max(clean(&bench));
    }
    assert!((60 * MIB..=64 * MIB).contains(&most), "{most} bytes are cached");
}

/// The least recently used bucket is evicted; data in other buckets stay.
#[test]
fn the_least_recently_used_bucket_is_evicted() {
    let small = BlockCacheDescription { metadata_bytes: 760 * MIB, ..bcache(CacheMode::Writethrough) };
    let mut bench = Bench::new(&cached(&small, &devices()));
    let fill = |bench: &mut Bench, chunk: u64| {
        bench.takes_ns(&read(4096 * chunk, 1024));
        bench.settle();
    };
    (0..16).for_each(|chunk| fill(&mut bench, chunk));
    fill(&mut bench, 0);
    (16..24).for_each(|chunk| fill(&mut bench, chunk));
    let hits = |bench: &mut Bench, chunk: u64| {
        let before = counted(&bench.system, "block_cache_hit_bytes");
        bench.takes_ns(&read(4096 * chunk, 8));
        counted(&bench.system, "block_cache_hit_bytes") > before
    };
    assert!(hits(&mut bench, 0) && !hits(&mut bench, 1) && hits(&mut bench, 23));
}

/// Clean data that the cache device cannot read come from the origin; dirty data are lost, which is reported.
#[test]
fn an_unreadable_clean_block_is_read_from_the_origin() {
    for (mode, fails) in [(CacheMode::Writethrough, false), (CacheMode::Writeback, true)] {
        let cache = bcache(mode);
        let place = cache.metadata_bytes / 512;
        let mut bench = Bench::new(&cached(&cache, &forgetful()));
        bench.takes_ns(&write(800, 16));
        bench.takes_ns(&flush());
        bench.run_to(bench.now_ns + SECOND);
        let mut bench = bench.with(Some(1), &[unreadable(place + 8, place + 9)]);
        let (_, failed) = bench.serve(&read(800, 16));
        let expected: Vec<u64> = if fails { vec![808 * 512] } else { vec![] };
        assert_eq!(failed.iter().map(|failed| failed.at_bytes).collect::<Vec<_>>(), expected, "{mode:?}");
        assert_eq!(counted(&bench.system, "block_cache_hit_bytes"), 8192);
        if !fails {
            let mut device = Bench::new(&forgetful()[0]);
            assert!(bench.takes_ns(&read(800, 16)) > device.takes_ns(&read(800, 16)), "both devices were read");
        }
    }
}

/// A read that began before a write must not put its old data into the cache after it.
#[test]
fn data_that_changed_while_they_were_read_are_not_inserted() {
    let mut bench = on(&bcache(CacheMode::Writearound));
    bench.submit(&read(800, 8));
    bench.submit(&write(800, 8));
    bench.settle();
    assert_eq!(clean(&bench), 0);
}
