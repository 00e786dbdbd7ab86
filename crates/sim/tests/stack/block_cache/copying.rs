//! Write-back: when dirty data are copied to the origin, and that none are lost from the account.

use headstack_sim::stack::description::{CacheMode, CacheSoftware, WhenFull};
use headstack_workload::Kind;

use super::*;
use crate::common::bench::Bench;
use crate::common::{Dice, assert_close, closed, flush, line, request, write};
use crate::stack::{counted, of};

fn rules(cache: &mut BlockCacheDescription) -> &mut BcacheRules {
    let CacheSoftware::Bcache(rules) = &mut cache.software else { unreachable!("it is bcache") };
    rules
}

fn written_back(bench: &Bench) -> u64 {
    counted(&bench.system, "block_cache_written_back_bytes")
}

/// Below its target, bcache waits 30 s and then copies 8 sectors a second.
#[test]
fn bcache_begins_after_its_delay_and_at_its_least_rate() {
    let mut bench = Bench::new(&cached(&bcache(CacheMode::Writeback), &devices()));
    for block in 0..16 {
        bench.takes_ns(&write(800 * block, 8));
    }
    bench.run_to(30 * SECOND);
    assert_eq!((dirty(&bench), written_back(&bench)), (64 * KIB, 0));
    bench.run_to(46 * SECOND);
    // One block a second, and clean with the flush that comes at most 5 s later.
    let cleaned = written_back(&bench) / (4 * KIB);
    assert!((10..=16).contains(&cleaned), "{cleaned} blocks in 16 s");
    bench.settle();
    assert_eq!((dirty(&bench), written_back(&bench)), (0, 64 * KIB));
}

/// Above the target the controller raises the rate until dirty data settle there.
#[test]
fn dirty_data_of_bcache_return_to_the_target() {
    let mut cache = bcache(CacheMode::Writeback);
    rules(&mut cache).writeback_delay_ns = 0;
    let mut bench = Bench::new(&cached(&cache, &devices()));
    let mut dice = Dice(5);
    let mut held = Vec::new();
    // 256 KiB each second for twenty minutes, at random places. The integral takes ten to come down again.
    for second in 0..1_200 {
        (0..4).for_each(|_| _ = bench.submit(&write(128 * dice.below(12_000), 128)));
        bench.run_to(second * SECOND);
        if second >= 800 {
            held.push(dirty(&bench) as f64);
        }
    }
    let mean = held.iter().sum::<f64>() / held.len() as f64;
    assert_close(mean, 6.4 * MIB as f64, 15.0, "10 % of 64 MiB");
}

/// Over 70 % of the buckets with dirty data, writes go to both devices; without O_DIRECT over 40 %.
#[test]
fn the_cutoffs_bound_dirty_data() {
    for (synchronous_writes, percent) in [(true, 70), (false, 40)] {
        let mut cache = bcache(CacheMode::Writeback);
        (rules(&mut cache).synchronous_writes, rules(&mut cache).sequential_bytes) = (synchronous_writes, 0);
        let mut bench = Bench::new(&cached(&cache, &devices()));
        for chunk in 0..128 {
            bench.takes_ns(&write(4096 * (chunk % 300), 1024));
        }
        let expected = (128 * percent / 100 + 1) * 512 * KIB;
        assert_close(dirty(&bench) as f64, expected as f64, 2.0, "dirty bytes");
        assert!(bench.now_ns < 30 * SECOND, "before the first copy");
    }
}

/// dm-cache writes back once no request has come for a second, in pieces of at most 1 MiB.
#[test]
fn dm_cache_writes_back_when_it_is_idle() {
    let mut bench = Bench::new(&cached(&dm_cache(CacheMode::Writeback), &devices()));
    for block in 0..40 {
        bench.takes_ns(&write(128 * block, 128));
    }
    let idle_ns = bench.now_ns + SECOND;
    bench.run_to(idle_ns - 1);
    assert_eq!((dirty(&bench), written_back(&bench)), (40 * 64 * KIB, 0));
    bench.settle();
    assert_eq!((dirty(&bench), written_back(&bench)), (0, 40 * 64 * KIB));
    assert_eq!(clean(&bench), 40 * 64 * KIB, "the blocks stay cached");
}

/// dm-writecache copies from half full down to 45 %, the oldest blocks first, and frees them.
#[test]
fn dm_writecache_keeps_between_its_watermarks() {
    let mut bench = Bench::new(&cached(&writecache(WhenFull::Wait), &devices()));
    for block in 0..511 {
        bench.takes_ns(&write(8000 - 8 * block, 8));
    }
    bench.settle();
    assert_eq!((dirty(&bench), written_back(&bench)), (511 * 4 * KIB, 0));
    bench.takes_ns(&write(80_000, 8));
    bench.settle();
    let left = dirty(&bench) / (4 * KIB);
    assert_eq!((left, written_back(&bench)), (460, (512 - 460) * 4 * KIB));
    let hits = |bench: &mut Bench, block: u64| {
        let before = counted(&bench.system, "block_cache_hit_bytes");
        bench.takes_ns(&crate::common::read(8000 - 8 * block, 8));
        counted(&bench.system, "block_cache_hit_bytes") > before
    };
    assert!(!hits(&mut bench, 51) && hits(&mut bench, 52));
}

/// When no block is free, writes wait for the origin, or go there since Linux 5.12.
#[test]
fn a_full_dm_writecache_is_as_slow_as_its_origin() {
    for when_full in [WhenFull::Wait, WhenFull::Origin] {
        let system = cached(&writecache(when_full), &devices());
        let result = of(&system, line(65_536, 0.0, 100.0), closed(64), 1_000);
        let waited = crate::common::counter(&result, "block_cache_waiting_writes");
        let bypassed = crate::common::counter(&result, "block_cache_bypassed_bytes");
        match when_full {
            WhenFull::Wait => assert!(waited > 0 && bypassed == 0),
            WhenFull::Origin => assert!(bypassed > 0),
        }
    }
    // The first writes are as fast as the cache device.
    let mut bench = Bench::new(&cached(&writecache(WhenFull::Wait), &devices()));
    let first_ns = bench.takes_ns(&write(0, 128));
    let cache_ns = Bench::new(&devices()[1]).takes_ns(&write(0, 128));
    assert_eq!(first_ns, cache_ns);
}

/// Bytes that were written to the cache are dirty, overwritten, or on the origin, at any time; in the end all are
/// there.
#[test]
fn written_bytes_are_dirty_overwritten_or_copied() {
    let mut quick = bcache(CacheMode::Writeback);
    (rules(&mut quick).writeback_delay_ns, rules(&mut quick).minimum_sectors_per_s) = (SECOND, 100_000);
    rules(&mut quick).sequential_bytes = 0;
    for (cache, all_bytes_count) in
        [(quick, true), (writecache(WhenFull::Wait), true), (dm_cache(CacheMode::Writeback), false)]
    {
        let mut bench = Bench::new(&cached(&cache, &devices()));
        let (mut dice, mut written) = (Dice(11), 0);
        for _ in 0..3_000 {
            let length = (1 + dice.below(20)) * 4 * KIB;
            let kind = match dice.below(12) {
                0 => Kind::Flush,
                1 => Kind::Trim,
                2..=4 => Kind::Read,
                _ => Kind::Write,
            };
            let request = match kind {
                Kind::Flush => flush(),
                Kind::Read | Kind::Write | Kind::Trim => request(kind, dice.below(600) * 4 * KIB, length),
            };
            written += if kind == Kind::Write { length } else { 0 };
            bench.submit(&request);
            bench.run_to(bench.now_ns + dice.below(3 * MS));
            let count = |name| counted(&bench.system, name);
            let dirtied = count("block_cache_dirtied_bytes");
            let counted = count("block_cache_overwritten_bytes") + written_back(&bench) + dirty(&bench);
            assert_eq!(dirtied, counted);
        }
        bench.settle();
        let dirtied = counted(&bench.system, "block_cache_dirtied_bytes");
        assert!(written_back(&bench) > 0 && counted(&bench.system, "block_cache_overwritten_bytes") > 0);
        if all_bytes_count {
            assert_eq!(dirtied, written);
        } else {
            assert!(dirtied > 0);
        }
    }
}
