//! The media cache in front of a conventional drive (Advanced Write Cache) and of shingled bands.

use crate::common::*;
use headstack_result::RunResult;
use headstack_sim::disk::Disk;
use headstack_sim::drive::description::{
    AfterReadWrite, DriveDescription, FlashCache, MediaCache, Policy, Shingles, WriteCache,
};
use headstack_sim::drive::{Completion, check};
use headstack_workload::{Kind, Request, Span};
use proptest::prelude::*;

/// Sectors of the test drive's media cache: 4 MB of its 205 MB.
const CACHE: u64 = 8000;
/// Sectors of a band.
const BAND: u64 = 2000;

/// The test drive with its outermost 20 cylinders as a media cache, and no buffer for complete writes.
fn caching_drive() -> DriveDescription {
    let mut drive = queueing_drive(Policy::Sptf, 32);
    drive.geometry.logical_blocks -= CACHE;
    drive.overheads.write_miss_ns = AfterReadWrite { after_read: 100 * US, after_write: 100 * US };
    drive.media_cache = Some(MediaCache {
        size_bytes: CACHE * 512,
        extents_max: 100_000,
        dram_bytes: 0,
        dram_is_protected: true,
        sequential_bytes: 256 << 10,
        idle_ns: 200 * MS,
        busy_share: 0.9,
        sweep_bytes: 1 << 20,
        sweep_window: 2,
    });
    drive
}

fn shingled_drive() -> DriveDescription {
    let mut drive = caching_drive();
    drive.shingles = Some(Shingles { band_bytes: BAND * 512 });
    drive
}

/// The same mechanism without a cache.
fn without_cache(drive: &DriveDescription) -> DriveDescription {
    DriveDescription { media_cache: None, shingles: None, ..drive.clone() }
}

fn with_dram(mut drive: DriveDescription, dram_bytes: u64, is_protected: bool) -> DriveDescription {
    let cache = drive.media_cache.as_mut().unwrap();
    (cache.dram_bytes, cache.dram_is_protected) = (dram_bytes, is_protected);
    drive
}

/// Completes everything that is in flight; returns the completions.
fn settle(disk: &mut Disk) -> Vec<Completion> {
    let mut done = Vec::new();
    while !disk.is_idle() {
        disk.advance(disk.next_event_ns(), |completion| done.push(completion));
    }
    done
}

/// Leaves the disk idle until everything is at home; returns the time.
fn clean(disk: &mut Disk, mut now_ns: u64) -> u64 {
    while !disk.is_clean() {
        now_ns = disk.next_event_ns();
        assert_ne!(now_ns, u64::MAX, "it never becomes clean");
        disk.advance(now_ns, |_| ());
    }
    now_ns
}

/// Writes random sectors, one after the other; returns the mean latency and the time after the last.
fn write_randomly(disk: &mut Disk, mut now_ns: u64, writes: u64, dice: &mut Dice) -> (f64, u64) {
    let (start_ns, limit) = (now_ns, disk.capacity_bytes() / 4096);
    for _ in 0..writes {
        disk.submit(now_ns, 0, &request(Kind::Write, dice.below(limit) * 4096, 4096));
        let mut done = false;
        while !done {
            now_ns = disk.next_event_ns();
            disk.advance(now_ns, |_| done = true);
        }
    }
    ((now_ns - start_ns) as f64 / writes as f64, now_ns)
}

fn rates(result: &RunResult) -> Vec<f64> {
    result.intervals.iter().map(|interval| interval.count as f64 * 1e9 / interval.duration_ns as f64).collect()
}

fn random_writes(drive: &DriveDescription, depth: u32, writes: u64) -> RunResult {
    run_closed(drive, line(4096, 0.0, 100.0), depth, writes)
}

#[test]
fn a_single_write_waits_for_the_rotation_to_its_log_position() {
    let mut disk = Disk::new(&caching_drive(), 0).unwrap();
    let mut dice = Dice(1);
    write_randomly(&mut disk, 0, 1, &mut dice);
    // Each follows the previous one on the track, and just misses it: a turn, and 8 sectors more every time (plus a
    // cylinder's skews from time to time).
    let (mean_ns, _) = write_randomly(&mut disk, 50 * MS, 400, &mut dice);
    assert_close(mean_ns, (TURN_NS + 8 * SECTOR_NS) as f64, 3.0, "a turn and its own sectors");
    assert_eq!(disk.counters().media_cache_appends, 401);
}

#[test]
fn half_of_the_queue_is_logged_per_revolution() {
    for depth in [2u32, 4, 8] {
        let result = random_writes(&caching_drive(), depth, 500);
        let round_ns = (TURN_NS + u64::from(depth) / 2 * 8 * SECTOR_NS) as f64;
        assert_close(result.throughput_per_s(), f64::from(depth) / 2.0 * 1e9 / round_ns, 6.0, "writes a turn");
    }
}

#[test]
fn a_protected_buffer_completes_writes_at_once_and_flushes_with_them() {
    let (protected, volatile) = (with_dram(caching_drive(), 1 << 20, true), with_dram(caching_drive(), 1 << 20, false));
    let mut on = volatile.clone();
    on.buffer.write_cache = WriteCache::On;
    let forced = Request { force_unit_access: true, ..write(50_000, 8) };
    for (drive, early, forced_early, flush_waits) in
        [(&protected, true, true, false), (&volatile, false, false, false), (&on, true, false, true)]
    {
        for (request, is_early) in [(&write(90_000, 8), early), (&forced, forced_early)] {
            let mut disk = Disk::new(drive, 0).unwrap();
            disk.submit(0, 1, request);
            let done = settle(&mut disk);
            assert_eq!(done[0].at_ns == 0, is_early, "{request:?} {:?}", drive.media_cache);
        }
        let mut disk = Disk::new(drive, 0).unwrap();
        disk.submit(0, 1, &write(90_000, 8));
        disk.submit(0, 2, &flush());
        let flushed_ns = settle(&mut disk).iter().find(|done| done.id == 2).unwrap().at_ns;
        assert_eq!(flushed_ns > MS, flush_waits, "a flush at {flushed_ns}");
    }
}

#[test]
fn a_burst_is_fast_and_an_overload_no_faster_than_the_mechanism() {
    for dram_bytes in [0, 512 << 10] {
        let drive = with_dram(caching_drive(), dram_bytes, true);
        let bare = random_writes(&without_cache(&drive), 8, 4_000).throughput_per_s();
        let mut spec = spec(&drive, workload(line(4096, 0.0, 100.0), closed(8), 12_000));
        spec.interval_ns = Some(10_000 * MS);
        let result = run_spec(&spec);
        let burst = random_writes(&drive, 8, 500).throughput_per_s();
        assert!(burst > 2.0 * bare, "{burst} writes/s at first, {bare} without a cache");
        let rates = rates(&result);
        let late = &rates[rates.len() / 2..rates.len() - 1];
        let late = late.iter().sum::<f64>() / late.len() as f64;
        println!("bare {bare:.0}, burst {burst:.0}, over time {rates:.0?}");
        assert!(late < 1.05 * bare, "{late} writes/s in the long run, {bare} without a cache");
        assert!(late > 0.5 * bare, "{late} writes/s in the long run, {bare} without a cache");
    }
}

#[test]
fn idle_time_brings_everything_home() {
    for drive in [caching_drive(), shingled_drive(), with_dram(caching_drive(), 1 << 20, true)] {
        let mut disk = Disk::new(&drive, 0).unwrap();
        let mut dice = Dice(7);
        let (fresh_ns, mut now_ns) = write_randomly(&mut disk, 0, 300, &mut dice);
        now_ns = settle(&mut disk).last().map_or(now_ns, |done| done.at_ns.max(now_ns));
        assert!(!disk.is_clean());
        let counters = disk.counters();
        assert_eq!((counters.media_cache_writes, counters.media_cache_destages), (300, 0), "the host was there");
        now_ns = clean(&mut disk, now_ns) + 1;
        let counters = disk.counters();
        assert!(counters.media_cache_destages > 290, "{counters:?}");
        // What is at home is read there, and the cache takes a burst again.
        disk.submit(now_ns, 0, &read(0, 2_000));
        settle(&mut disk);
        assert_eq!(disk.counters().media_cache_hits, 0);
        let (again_ns, _) = write_randomly(&mut disk, now_ns + 1_000 * MS, 300, &mut dice);
        assert_close(again_ns, fresh_ns, 5.0, "a burst after idle time");
    }
}

#[test]
fn reads_hit_data_being_destaged() {
    let mut disk = Disk::new(&caching_drive(), 0).unwrap();
    disk.submit(0, 1, &write(200_000, 8));
    // Still in the buffer: no mechanics.
    disk.submit(MS, 2, &read(200_000, 8));
    let done = settle(&mut disk);
    assert_eq!((done[0].id, done[0].at_ns), (2, MS));
    // On the media of the cache: one access on its outermost track; with both sides of it, three.
    disk.submit(100 * MS, 3, &read(200_000, 8));
    settle(&mut disk);
    assert_eq!((disk.counters().media_cache_hits, disk.counters().read_misses), (2, 1));
    disk.submit(150 * MS, 4, &read(199_990, 28));
    settle(&mut disk);
    assert_eq!((disk.counters().media_cache_hits, disk.counters().read_misses), (3, 4));
    // Trimmed: none of it is found.
    disk.submit(180 * MS, 5, &request(Kind::Trim, 200_000 * 512, 4096));
    disk.submit(181 * MS, 6, &read(200_000, 8));
    settle(&mut disk);
    assert_eq!(disk.counters().media_cache_hits, 3);
    assert!(disk.is_clean());
}

#[test]
fn a_sweep_in_order_seeks_less_than_single_writes() {
    let drive = caching_drive();
    let mut disk = Disk::new(&drive, 0).unwrap();
    let (_, now_ns) = write_randomly(&mut disk, 0, 250, &mut Dice(3));
    let before = disk.counters();
    clean(&mut disk, now_ns);
    let after = disk.counters();
    let sweep_ns = (after.seek_ns - before.seek_ns) as f64 / 250.0;
    let bare = random_writes(&without_cache(&drive), 1, 2_000);
    let single_ns = counter(&bare, "seek_ns") as f64 / 2_000.0;
    // 0.4 % of the stroke per write instead of 33 %.
    assert!(sweep_ns < 0.45 * single_ns, "{sweep_ns} ns of seeking a write, {single_ns} one at a time");
    assert_eq!(after.media_cache_cleanings, 1);
}

#[test]
fn sequential_writes_pass_the_cache_by() {
    for drive in [caching_drive(), shingled_drive()] {
        let sequential = line(1 << 16, 0.0, 0.0);
        let bare = run_closed(&without_cache(&drive), sequential.clone(), 4, 1_500).throughput_per_s();
        let result = run_closed(&drive, sequential, 4, 1_500);
        // Until the run is known, and in a shingled drive until the next band.
        let cached = counter(&result, "media_cache_writes");
        assert!(cached <= 16, "{cached} of 1,500 writes went to the cache");
        assert_close(result.throughput_per_s(), bare, 3.0, "as fast as without a cache");
    }
}

#[test]
fn a_band_that_is_left_open_is_finished() {
    let mut disk = Disk::new(&shingled_drive(), 0).unwrap();
    let mut now_ns = 0;
    for chunk in 0..25 {
        // 25 x 128 sectors: the second band is entered and left after 1,200 of its 2,000.
        disk.submit(now_ns, 0, &write(chunk * 128, 128));
        now_ns = settle(&mut disk)[0].at_ns;
    }
    // The first band goes to the cache, since the run is detected too late for it; the part in the second goes home.
    let before = disk.counters();
    assert_eq!((before.media_cache_writes, before.direct_writes), (16, 10));
    disk.submit(now_ns, 0, &write(2_500, 8));
    settle(&mut disk);
    let after = disk.counters();
    let transfer_ns = after.transfer_ns - before.transfer_ns;
    assert_ns(transfer_ns, ((2 * 800 + 8) * SECTOR_NS) as f64, "the other 800 read and written, and the write");
    clean(&mut disk, now_ns);
}

#[test]
fn a_shingled_drive_falls_off_a_cliff_when_its_cache_is_full() {
    let mut drive = shingled_drive();
    drive.media_cache.as_mut().unwrap().extents_max = 400;
    let mut disk = Disk::new(&drive, 0).unwrap();
    let mut dice = Dice(11);
    let (first_ns, now_ns) = write_randomly(&mut disk, 0, 300, &mut dice);
    let (_, now_ns) = write_randomly(&mut disk, now_ns, 200, &mut dice);
    let (full_ns, now_ns) = write_randomly(&mut disk, now_ns, 300, &mut dice);
    assert!(full_ns > 10.0 * first_ns, "{full_ns} ns a write when full, {first_ns} at first");
    let rested_ns = clean(&mut disk, now_ns);
    let (again_ns, _) = write_randomly(&mut disk, rested_ns, 300, &mut dice);
    assert_close(again_ns, first_ns, 5.0, "after idle time");
    // Every band is read and written once: 2 x 20 tracks of 6 ms and their switches.
    let counters = disk.counters();
    let band_ns = counters.transfer_ns as f64 / counters.media_cache_cleanings as f64;
    assert!(band_ns > 40.0 * TURN_NS as f64, "{band_ns} ns of transfers a band");
}

#[test]
fn a_band_rewrite_takes_two_passes() {
    let mut disk = Disk::new(&shingled_drive(), 0).unwrap();
    disk.submit(0, 0, &write(101 * BAND + 77, 8));
    settle(&mut disk);
    let before = disk.counters();
    clean(&mut disk, 0);
    let after = disk.counters();
    let transfer_ns = after.transfer_ns - before.transfer_ns;
    assert_ns(transfer_ns, ((2 * BAND + 8) * SECTOR_NS) as f64, "the band twice, the extent once");
    assert_eq!(after.media_cache_cleanings - before.media_cache_cleanings, 1);
}

#[test]
fn nonsense_is_refused_by_name() {
    let refused = |change: fn(&mut DriveDescription), key: &str| {
        let mut drive = shingled_drive();
        change(&mut drive);
        let fault = check(&drive).expect_err(key);
        assert_eq!(fault.key, key);
        assert!(!fault.to_string().contains('\n'));
    };
    refused(|drive| drive.media_cache.as_mut().unwrap().size_bytes += 512, "media_cache.size");
    refused(|drive| drive.media_cache.as_mut().unwrap().size_bytes = 1, "media_cache.size");
    refused(|drive| drive.media_cache.as_mut().unwrap().extents_max = 0, "media_cache.extents_max");
    refused(|drive| drive.media_cache.as_mut().unwrap().busy_share = 1.5, "media_cache.busy_share");
    refused(|drive| drive.media_cache.as_mut().unwrap().sweep_bytes = 0, "media_cache.sweep");
    refused(|drive| drive.media_cache.as_mut().unwrap().sweep_window = 0, "media_cache.sweep_window");
    refused(|drive| drive.media_cache = None, "shingles");
    refused(|drive| drive.shingles = Some(Shingles { band_bytes: 700 }), "shingles.band");
    refused(|drive| drive.actuators = 2, "actuators");
}

prop_compose! {
    fn any_disk()(
        (dram_kib, protected, on) in (prop::sample::select(vec![0u64, 16, 200]), any::<bool>(), any::<bool>()),
        (shingled, flash, emulated) in any::<(bool, bool, bool)>(),
        (extents_max, busy_share, window) in (16u32..500, 0.05f64..1.0, 1u32..40),
        (sequential_kib, sweep_kib, idle_ms) in (0u64..100, 4u64..400, 0u64..50),
    ) -> DriveDescription {
        let mut drive = caching_drive();
        if emulated {
            drive.geometry.physical_sector_bytes = 4096;
            drive.geometry.logical_blocks = (CYLINDERS * CYLINDER - 400) * 8;
        }
        let sector = u64::from(drive.geometry.physical_sector_bytes);
        drive.buffer.write_cache = if on { WriteCache::On } else { WriteCache::Off };
        let cache = drive.media_cache.as_mut().unwrap();
        cache.size_bytes = 100 * sector;
        (cache.dram_bytes, cache.dram_is_protected) = (dram_kib << 10, protected);
        (cache.extents_max, cache.busy_share, cache.sweep_window) = (extents_max, busy_share, window);
        (cache.sequential_bytes, cache.idle_ns) = (sequential_kib << 10, idle_ms * MS);
        cache.sweep_bytes = (sweep_kib << 10).clamp(sector, cache.size_bytes);
        drive.shingles = shingled.then_some(Shingles { band_bytes: 60 * sector });
        drive.flash_cache = flash.then_some(FlashCache {
            size_bytes: 64 << 10,
            block_bytes: 4096,
            latency_ns: 50 * US,
            ns_per_byte: 2.0,
            fill_bytes_per_s: 1e6,
            history_blocks: 64,
            on_first_read: false,
            keeps_written: false,
            sequential_bytes: 1 << 20,
        });
        drive
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Every command completes once, in order of time; then everything comes home.
    #[test]
    fn every_command_completes_once_and_all_data_come_home(
        drive in any_disk(),
        commands in prop::collection::vec(
            (0u64..15 * MS, 0u8..14, any::<u64>(), 1u64..60, prop::bool::weighted(0.1), prop::bool::weighted(0.1)),
            1..120,
        ),
    ) {
        check(&drive).map_err(|fault| TestCaseError::fail(fault.to_string()))?;
        let mut disk = Disk::new(&drive, 3).unwrap();
        let blocks = drive.geometry.logical_blocks;
        let (mut now_ns, mut stream, mut done, mut times) = (0, 0, Vec::new(), Vec::new());
        for (id, &(gap_ns, kind, place, sectors, forced, ordered)) in commands.iter().enumerate() {
            now_ns += gap_ns;
            let first = match place % 3 { 0 => place / 3 % (blocks - 60), 1 => place / 3 % 400, _ => stream };
            stream = (first + sectors) % (blocks - 60);
            let kind = match kind { 0 => Kind::Flush, 1 => Kind::Trim, 2..9 => Kind::Write, _ => Kind::Read };
            let range = if kind == Kind::Flush { (0, 0) } else { (first * 512, sectors * 512) };
            let forced = forced && kind == Kind::Write;
            let request = Request { force_unit_access: forced, ordered, ..request(kind, range.0, range.1) };
            disk.advance(now_ns, |completion| done.push(completion));
            disk.submit(now_ns, id as u32, &request);
            times.push(now_ns);
        }
        for round in 0.. {
            prop_assert!(round < 1_000_000, "it never becomes clean");
            if disk.is_clean() {
                break;
            }
            let next_ns = disk.next_event_ns();
            prop_assert_ne!(next_ns, u64::MAX, "no event is scheduled, but the cache is dirty");
            disk.advance(next_ns, |completion| done.push(completion));
        }
        prop_assert!(done.windows(2).all(|pair| pair[0].at_ns <= pair[1].at_ns), "completions out of order");
        let mut ids: Vec<u32> = done.iter().map(|completion| completion.id).collect();
        ids.sort_unstable();
        prop_assert_eq!(ids, (0..commands.len() as u32).collect::<Vec<_>>());
        for completion in &done {
            let arrived_ns = times[completion.id as usize];
            prop_assert!(arrived_ns <= completion.started_ns && completion.started_ns <= completion.at_ns);
        }
        // Everything is found at home.
        let hits = disk.counters().media_cache_hits;
        disk.submit(disk.next_event_ns().min(1 << 50), 0, &read(0, 500));
        prop_assert_eq!(disk.counters().media_cache_hits, hits);
    }

    #[test]
    fn runs_keep_their_books(drive in any_disk(), read in 0.0f64..100.0, random in 0.0f64..100.0, depth in 1u32..20) {
        let mut spec = spec(&drive, workload(line(8192, read, random), closed(depth), 400));
        spec.span = Some(Span { start_bytes: 1 << 20, length_bytes: 8 << 20 });
        run_spec(&spec);
    }
}
