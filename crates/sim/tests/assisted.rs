//! Flash, actuators, and disks that are plain drives.

use crate::common::*;
use headstack_catalogue::load_drive;
use headstack_sim::disk::Disk;
use headstack_sim::drive::description::{AfterReadWrite, DriveDescription, FlashCache, Policy};
use headstack_sim::drive::{Completion, Drive, check};
use headstack_sim::{Demand, RunSpec};
use headstack_workload::{Kind, Request, RunLength, Span};

const BLOCK: u64 = 4096;

/// The test drive with 1 MiB of flash.
fn flash_drive() -> DriveDescription {
    let mut drive = queueing_drive(Policy::Sptf, 32);
    drive.overheads.read_hit_ns = AfterReadWrite { after_read: 100 * US, after_write: 130 * US };
    (drive.interface.read_ns_per_byte, drive.interface.write_ns_per_byte) = (1.0, 1.0);
    drive.flash_cache = Some(FlashCache {
        size_bytes: 1 << 20,
        block_bytes: BLOCK as u32,
        latency_ns: 80 * US,
        ns_per_byte: 5.0,
        fill_bytes_per_s: 1e6,
        history_blocks: 4096,
        on_first_read: false,
        keeps_written: false,
        sequential_bytes: 64 << 10,
    });
    drive
}

fn serve_disk(disk: &mut Disk, at_ns: u64, request: &Request) -> Completion {
    disk.advance(at_ns, |_| panic!("nothing else is under way"));
    disk.submit(at_ns, 0, request);
    loop {
        let mut done = None;
        disk.advance(disk.next_event_ns(), |completion| done = Some(completion));
        if let Some(done) = done {
            return done;
        }
    }
}

/// Reads a block until it is in flash; returns the time.
fn read_into_flash(disk: &mut Disk, block: u64) -> u64 {
    let read = request(Kind::Read, block * BLOCK, BLOCK);
    serve_disk(disk, 0, &read);
    let hits = disk.counters().flash_hits;
    serve_disk(disk, 100 * MS, &read);
    assert_eq!(disk.counters().flash_hits, hits, "the second read takes it in, the third finds it");
    200 * MS
}

#[test]
fn a_flash_hit_costs_firmware_latency_and_transfers() {
    let mut disk = Disk::new(&flash_drive(), 0).unwrap();
    let now_ns = read_into_flash(&mut disk, 777);
    let done = serve_disk(&mut disk, now_ns, &request(Kind::Read, 777 * BLOCK, BLOCK));
    assert_ns(done.at_ns - now_ns, (100.0 + 80.0) * 1e3 + 4096.0 * (5.0 + 1.0), "firmware, latency, flash, port");
    // Part of the block is there too, and a read that extends past it is not.
    serve_disk(&mut disk, now_ns + MS, &request(Kind::Read, 777 * BLOCK + 512, 1024));
    assert_eq!(disk.counters().flash_hits, 2);
    serve_disk(&mut disk, now_ns + 2 * MS, &request(Kind::Read, 777 * BLOCK, 2 * BLOCK));
    assert_eq!(disk.counters().flash_hits, 2);
}

#[test]
fn writes_and_trims_end_a_copy() {
    for kind in [Kind::Write, Kind::Trim] {
        let mut disk = Disk::new(&flash_drive(), 0).unwrap();
        let now_ns = read_into_flash(&mut disk, 5);
        serve_disk(&mut disk, now_ns, &request(kind, 5 * BLOCK + 512, 512));
        serve_disk(&mut disk, now_ns + 100 * MS, &request(Kind::Read, 5 * BLOCK, BLOCK));
        assert_eq!(disk.counters().flash_hits, 0, "{kind:?}");
        serve_disk(&mut disk, now_ns + 200 * MS, &request(Kind::Read, 5 * BLOCK, BLOCK));
        assert_eq!(disk.counters().flash_hits, 1, "the read after it has brought it again");
    }
}

#[test]
fn write_back_flash_keeps_writes_until_trimmed() {
    let mut drive = flash_drive();
    drive.flash_cache.as_mut().unwrap().keeps_written = true;
    let mut disk = Disk::new(&drive, 0).unwrap();
    let now_ns = read_into_flash(&mut disk, 5);
    let read = request(Kind::Read, 5 * BLOCK, BLOCK);
    serve_disk(&mut disk, now_ns, &read);
    serve_disk(&mut disk, now_ns + 100 * MS, &request(Kind::Write, 5 * BLOCK + 512, 512));
    serve_disk(&mut disk, now_ns + 200 * MS, &read);
    assert_eq!(disk.counters().flash_hits, 2, "the write has brought the copy up to date");
    serve_disk(&mut disk, now_ns + 300 * MS, &request(Kind::Trim, 5 * BLOCK, BLOCK));
    serve_disk(&mut disk, now_ns + 400 * MS, &read);
    assert_eq!(disk.counters().flash_hits, 2, "what is trimmed has no copy");
}

#[test]
fn flash_that_is_not_choosy_has_a_block_after_its_first_read() {
    let mut drive = flash_drive();
    drive.flash_cache.as_mut().unwrap().on_first_read = true;
    let mut disk = Disk::new(&drive, 0).unwrap();
    let read = request(Kind::Read, 7 * BLOCK, BLOCK);
    serve_disk(&mut disk, 0, &read);
    serve_disk(&mut disk, 100 * MS, &read);
    assert_eq!(disk.counters().flash_hits, 1);
}

#[test]
fn a_read_that_a_write_overtakes_is_not_taken_in() {
    let mut disk = Disk::new(&flash_drive(), 0).unwrap();
    let read = request(Kind::Read, 9 * BLOCK, BLOCK);
    serve_disk(&mut disk, 0, &read);
    disk.advance(100 * MS, |_| ());
    disk.submit(100 * MS, 1, &read);
    disk.submit(100 * MS + 1, 2, &request(Kind::Write, 9 * BLOCK, 512));
    disk.advance(200 * MS, |_| ());
    serve_disk(&mut disk, 300 * MS, &read);
    assert_eq!(disk.counters().flash_hits, 0);
}

#[test]
fn hits_are_the_share_of_the_working_set_that_fits() {
    let drive = flash_drive();
    for (working_set, seed) in [(512u64, 1), (1024, 2), (2560, 3)] {
        let mut disk = Disk::new(&drive, 0).unwrap();
        let mut dice = Dice(seed);
        let mut next = || request(Kind::Read, dice.below(working_set) * BLOCK, BLOCK);
        (0..40_000).for_each(|_| disk.warm_with(&next()));
        let mut now_ns = 0;
        for _ in 0..20_000 {
            now_ns = serve_disk(&mut disk, now_ns, &next()).at_ns;
        }
        let ratio = disk.counters().flash_hits as f64 / 20_000.0;
        assert_close(ratio, 256.0 / working_set as f64, 6.0, "hit ratio");
    }
}

#[test]
fn flash_fills_no_faster_than_its_rate() {
    let mut drive = flash_drive();
    drive.flash_cache.as_mut().unwrap().fill_bytes_per_s = 20_000.0;
    let mut spec = spec(&drive, workload(line(4096, 100.0, 100.0), closed(4), 1));
    spec.span = Some(Span { start_bytes: 0, length_bytes: 1 << 20 });
    let Demand::Workload(workload) = &mut spec.demand else { unreachable!() };
    workload.run_length = RunLength::TimeNs(30_000 * MS);
    let result = run_spec(&spec);
    let allowed = 30.0 * 20_000.0 / 4096.0;
    let fills = counter(&result, "flash_fills") as f64;
    assert!(fills <= allowed && fills > 0.95 * allowed, "{fills} fills, {allowed} allowed");
}

#[test]
fn warming_takes_the_minutes_that_were_seen() {
    // 5.56 GB at 5.8 MB/s are 16 minutes (TweakTown 5863): those, and the few in which nothing repeats yet.
    let mut drive = load_drive("st900mp0146").unwrap().description;
    drive.flash_cache = load_drive("exos-10e2400").unwrap().description.flash_cache;
    let mut spec = spec(&drive, workload(line(4096, 100.0, 100.0), closed(4), 1));
    spec.span = Some(Span { start_bytes: 0, length_bytes: 5_560_000_000 });
    let Demand::Workload(workload) = &mut spec.demand else { unreachable!() };
    workload.run_length = RunLength::TimeNs(1_560_000 * MS);
    spec.interval_ns = Some(60_000 * MS);
    let result = run_spec(&spec);
    let rates: Vec<f64> = result.intervals.iter().map(|minute| minute.count as f64 / 60.0).collect();
    println!("{rates:.0?}");
    let warm = rates.iter().position(|&rate| rate > 5_000.0).expect("it becomes warm");
    assert!((16..24).contains(&warm), "warm after {warm} minutes");
    assert!(rates[2] < 2.0 * rates[0], "three minutes bring little yet");
    assert!(rates[rates.len() - 1] > 8_000.0, "8,800 IOPS were seen: {}", rates[rates.len() - 1]);
}

#[test]
fn sequential_reads_are_not_taken_in() {
    let mut disk = Disk::new(&flash_drive(), 0).unwrap();
    let mut now_ns = 0;
    for _ in 0..3 {
        for chunk in 0..64 {
            now_ns = serve_disk(&mut disk, now_ns, &request(Kind::Read, chunk * (16 << 10), 16 << 10)).at_ns;
        }
        // Another read, so that no pass continues the previous one.
        now_ns = serve_disk(&mut disk, now_ns, &request(Kind::Read, 100 << 20, 4096)).at_ns;
    }
    let counters = disk.counters();
    // The first 48 KiB of each pass are not yet known to be sequential.
    assert!(counters.flash_fills <= 13 && counters.flash_hits <= 6, "{counters:?}");
}

/// Returns the test drive as one of two actuators: twice its heads and blocks.
fn two_actuators(one: &DriveDescription) -> DriveDescription {
    let mut both = one.clone();
    both.actuators = 2;
    both.geometry.heads *= 2;
    both.geometry.logical_blocks *= 2;
    both
}

#[test]
fn two_actuators_do_the_work_of_two_drives() {
    let one = queueing_drive(Policy::Sptf, 64);
    let both = two_actuators(&one);
    let random = line(4096, 100.0, 100.0);
    let rate = |drive: &DriveDescription, depth| run_closed(drive, random.clone(), depth, 20_000).throughput_per_s();
    assert_close(rate(&both, 64), 2.0 * rate(&one, 32), 4.0, "twice the rate at half the depth each");
    assert_close(rate(&both, 32), 2.0 * rate(&one, 16), 5.0, "the same at 32");
    assert_close(rate(&both, 1), rate(&one, 1), 2.0, "one command keeps one arm busy");
}

#[test]
fn a_stream_has_one_arm_and_two_have_both_up_to_the_port() {
    let mut one = bare_drive();
    one.queue.depth = 8;
    one.interface.host_tags = 8;
    let streamed = |drive: &DriveDescription, streams| {
        let mut workload = workload(line(1 << 16, 100.0, 0.0), closed(2 * streams), 2_000);
        workload.streams = streams;
        run_spec(&spec(drive, workload)).throughput_bytes_per_s()
    };
    let single = streamed(&one, 1);
    let both = two_actuators(&one);
    assert_close(streamed(&both, 1), single, 1.0, "within one half");
    // Streams start evenly spread: one in each half.
    assert_close(streamed(&both, 2), 2.0 * single, 3.0, "one in each half");
    let mut narrow = both.clone();
    narrow.interface.read_ns_per_byte = 1e9 / (1.3 * single);
    assert_close(streamed(&narrow, 2), 1.3 * single, 3.0, "no more than the port carries");
}

#[test]
fn a_request_over_the_middle_is_cut() {
    let one = bare_drive();
    let both = two_actuators(&one);
    let middle = one.geometry.logical_blocks;
    let mut disk = Disk::new(&both, 0).unwrap();
    let done = serve_disk(&mut disk, 0, &read(middle - 30, 50));
    let lower = serve(&mut Drive::new(&one, 0).unwrap(), 0, &read(middle - 30, 30));
    let upper = serve(&mut Drive::new(&one, 0).unwrap(), 0, &read(0, 20));
    assert_eq!(done.at_ns, lower.max(upper));
    assert_eq!(disk.counters().read_misses, 2);
}

#[test]
fn a_plain_disk_is_its_drive() {
    let description = load_drive("cheetah-9lp").unwrap().description;
    let (mut drive, mut disk) = (Drive::new(&description, 1).unwrap(), Disk::new(&description, 1).unwrap());
    let (mut dice, mut now_ns) = (Dice(4), 0);
    let (mut from_drive, mut from_disk) = (Vec::new(), Vec::new());
    for id in 0..2_000 {
        now_ns += dice.below(12 * MS);
        let kind = if dice.below(2) == 0 { Kind::Read } else { Kind::Write };
        let request = request(kind, dice.below(1_000_000) * 4096, 4096);
        drive.advance(now_ns, |completion| from_drive.push(completion));
        disk.advance(now_ns, |completion| from_disk.push(completion));
        assert_eq!(drive.next_event_ns(), disk.next_event_ns());
        drive.submit(now_ns, id, &request);
        disk.submit(now_ns, id, &request);
    }
    assert_eq!(from_drive, from_disk);
    assert_eq!(drive.counters(), disk.counters());
}

#[test]
fn nonsense_is_refused_by_name() {
    let refused = |change: fn(&mut DriveDescription), key: &str| {
        let mut drive = flash_drive();
        change(&mut drive);
        let fault = check(&drive).expect_err(key);
        assert_eq!(fault.key, key);
        assert!(!fault.to_string().contains('\n'));
    };
    refused(|drive| drive.flash_cache.as_mut().unwrap().block_bytes = 1000, "flash_cache.block");
    refused(|drive| drive.flash_cache.as_mut().unwrap().size_bytes = 100, "flash_cache.size");
    refused(|drive| drive.flash_cache.as_mut().unwrap().fill_bytes_per_s = 0.0, "flash_cache.fill_rate");
    refused(|drive| drive.flash_cache.as_mut().unwrap().ns_per_byte = f64::NAN, "flash_cache.rate");
    refused(|drive| drive.flash_cache.as_mut().unwrap().history_blocks = 0, "flash_cache.history_blocks");
    refused(|drive| drive.actuators = 0, "actuators");
    refused(|drive| drive.actuators = 3, "actuators");
    refused(|drive| drive.actuators = 2, "actuators");
}

#[test]
fn equal_inputs_give_equal_results() {
    for id in ["st900mp0146", "st900mp0006-awc", "archive-8tb", "exos-2x18-sata"] {
        let drive = load_drive(id).unwrap().description;
        let spec = RunSpec {
            span: Some(Span { start_bytes: 1 << 30, length_bytes: 1 << 24 }),
            ..spec(&drive, workload(line(8192, 60.0, 80.0), closed(8), 5_000))
        };
        assert_eq!(run_spec(&spec).to_json().unwrap(), run_spec(&spec).to_json().unwrap(), "{id}");
    }
}
