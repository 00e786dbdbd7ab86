//! Measured cases of the development half of ../shared/validation/measured/stack.csv, with the tolerances stated before
//! the first run.

use headstack_result::RunResult;
use headstack_sim::RunSpec;
use headstack_sim::stack::description::{Sync, ZfsDescription, ZfsParameters};
use headstack_workload::{AccessLine, Kind, RunLength};

use super::*;
use crate::common::{assert_close, bare_drive, closed, counter, flush, line, request, run_spec, spec, workload};

/// Optane M10, 16 GB: 4 KiB and a flush in 47.6 us, of which 28.2 us are its 145 MB/s.
fn optane() -> SystemDescription {
    let mut ssd = small_ssd();
    ssd.interface.write_ns_per_byte = 1e3 / 145.0;
    ssd.controller.write_command_ns = 0;
    let raw_ns = raw_sync_ns(&drive(ssd.clone()));
    ssd.controller.write_command_ns = 47_600 - raw_ns;
    drive(ssd)
}

fn raw_sync_ns(device: &SystemDescription) -> u64 {
    let mut bench = Bench::new(device);
    bench.takes_ns(&request(Kind::Write, 0, 4096)) + bench.takes_ns(&flush())
}

/// Mean latency of fdatasync(2) after each sequential write of 4 KiB, in us, over 12 s; the file is cached.
fn mean_sync_us(description: &ZfsDescription, below: &[SystemDescription]) -> f64 {
    let mut bench = Bench::new(&zfs(description, below));
    for record in 0..128 {
        bench.takes_ns(&request(Kind::Read, record * RECORD, RECORD));
    }
    let (mut syncs, mut sum_ns) = (0, 0);
    let end_ns = bench.now_ns + 12 * SECOND;
    while bench.now_ns < end_ns {
        bench.takes_ns(&request(Kind::Write, syncs % 4096 * 4096, 4096));
        sum_ns += bench.takes_ns(&flush());
        syncs += 1;
    }
    sum_ns as f64 / syncs as f64 / 1e3
}

/// d-uzlov/k8s-homelab: a single Optane M10, the same as separate log device of 6 disks in RAIDZ2, and those without it.
/// Tolerance 25 %; without a log device a factor of 1.5. The disks' model is unknown: 7,200 rpm are assumed.
#[test]
fn fsync_of_a_raidz2_with_and_without_a_log_device() {
    let of = |log: Option<u32>| ZfsDescription {
        parameters: ZfsParameters::v2_1(),
        log,
        ..ZfsDescription::new(ZfsParameters::v2_1(), 8 << 30, 256 * MIB)
    };
    let single = ZfsDescription { dirty_data_max_bytes: 100 * MIB, ..of(None) };
    let raidz2 = array_of("exos-7e8-8tb", Level::Raidz { parity: 2 }, 6, 4096, RECORD);
    assert_eq!(raw_sync_ns(&optane()), 47_600);
    let single_us = mean_sync_us(&single, &[optane()]);
    let slog_us = mean_sync_us(&of(Some(1)), &[raidz2.clone(), optane()]);
    let none_us = mean_sync_us(&of(None), &[raidz2]);
    println!("single {single_us:.1} us (154.9), log device {slog_us:.1} us (192.5), none {none_us:.1} us (10,450)");
    assert_close(single_us, 154.9, 25.0, "single Optane, us");
    assert_close(slog_us, 192.5, 25.0, "RAIDZ2 with a log device, us");
    assert!((10_450.0 / 1.5..10_450.0 * 1.5).contains(&none_us), "RAIDZ2 without one: {none_us} us");
}

fn run(system: SystemDescription, access: AccessLine, depth: u32, ms: u64) -> RunResult {
    let mut work = workload(access, closed(depth), 1);
    work.run_length = RunLength::TimeNs(ms * 1_000_000);
    work.warm_up.time_ns = ms * 1_000_000 / 4;
    run_spec(&RunSpec { system, ..spec(&bare_drive(), work) })
}

/// OpenZFS pull request 14378: synchronous writes of 1 MiB by 16 threads. `zil_slog_bulk` of 768 KiB makes a log device
/// slower than none (438 and 1,292 IOPS); throughput rises with the limit to 64 MiB (1,278). Only the order is tested:
/// the devices are unknown. Both have 1.4 GB/s here, and the log device takes 0.5 ms for a write.
#[test]
fn a_small_bulk_limit_makes_a_log_device_slower_than_none() {
    let per_s = |bulk: Option<u64>| {
        let mut parameters = ZfsParameters::v2_1();
        parameters.slog_bulk_bytes = bulk.unwrap_or(0);
        let description = ZfsDescription {
            sync: Sync::Always,
            log: bulk.map(|_| 1),
            dirty_data_max_bytes: 4 << 30,
            ..ZfsDescription::new(parameters, 32 << 30, 8 << 30)
        };
        let pool = sink(64 << 30, 2_800_000_000, 200 * US);
        let below = [pool, sink(16 << 30, 1_400_000_000, 500 * US)];
        let system = zfs(&description, &below[..1 + usize::from(bulk.is_some())]);
        run(system, line(1 << 20, 0.0, 0.0), 16, 2_000).throughput_per_s()
    };
    let none = per_s(None);
    let limits = [768 * KIB, MIB, 8 * MIB, 16 * MIB, 64 * MIB].map(|bulk| per_s(Some(bulk)));
    println!("none {none:.0} (1292), by limit {limits:.0?} (438, 412, 608, 1014, 1278)");
    assert!(limits[0] < none, "768 KiB: {} without log device {none}", limits[0]);
    assert!(limits.is_sorted(), "{limits:?}");
    assert!(limits[4] > 1.5 * limits[0], "{limits:?}");
}

/// alc-kit: random writes of 16 KiB to records of 128 and of 16 KiB by 8 jobs, whose calls ZFS serves one after the
/// other. Three mirrors of PM9A3 under LUKS made 17,900 and 44,400 IOPS. The time of a record in a sync is fitted to the
/// second figure; tolerance 10 % over some seconds. The first is predicted: each write reads its record first, and the
/// reads of the model are twice as fast beside the writes. So the ratio of 2.48 is missed, and only its sign is tested.
#[test]
fn small_records_speed_up_random_writes() {
    let per_s = |record_bytes: u32, ms: u64| {
        let description = ZfsDescription {
            record_bytes,
            arc_max_bytes: 512 * MIB,
            ..ZfsDescription::new(ZfsParameters::v2_4(), 768 << 30, 100 << 30)
        };
        let pool = array_of("pm9a3-1920gb", Level::Raid10, 6, 128 * KIB, 0);
        let writes = AccessLine { align_bytes: Some(16 << 10), ..line(16 << 10, 0.0, 100.0) };
        let result = run(zfs(&description, &[pool]), writes, 8, ms);
        (result.throughput_per_s(), counter(&result, "zfs_reads_for_writes"))
    };
    let (large, reads) = per_s(128 << 10, 1_000);
    let (small, none) = per_s(16 << 10, 10_000);
    println!("{large:.0} (17,900) and {small:.0} (44,400) IOPS, ratio {:.2} (2.48)", small / large);
    assert!(reads > 1_000 && none == 0, "{reads} and {none} reads");
    assert_close(small, 44_400.0, 10.0, "IOPS with records of 16 KiB");
    assert!(large < small, "{large} and {small}");
}

/// The simulation of a stack takes at most three times that of its array.
#[test]
#[ignore = "measures time"]
fn a_stack_costs_at_most_three_times_its_array() {
    let pool = array_of("pm9a3-1920gb", Level::Raid10, 6, 128 * KIB, 0);
    for (name, record_bytes, depth) in [("16 KiB records", 16 << 10, 32), ("128 KiB records", 128 << 10, 32)] {
        let description = ZfsDescription {
            record_bytes,
            arc_max_bytes: 256 * MIB,
            ..ZfsDescription::new(ZfsParameters::v2_4(), 32 << 30, 100 << 30)
        };
        let takes = |system: &SystemDescription| {
            let access = AccessLine { align_bytes: Some(record_bytes), ..line(record_bytes, 50.0, 100.0) };
            let mut work = workload(access, closed(depth), 60_000);
            work.flush_every = 1_000;
            let spec = RunSpec { system: system.clone(), ..spec(&bare_drive(), work) };
            let from = std::time::Instant::now();
            let result = run_spec(&spec);
            (from.elapsed().as_secs_f64(), result.throughput_per_s())
        };
        let (stack, array) = (takes(&zfs(&description, std::slice::from_ref(&pool))), takes(&pool));
        println!("{name}: {:.2} s and {:.2} s, {:.2} times; {stack:?} {array:?}", stack.0, array.0, stack.0 / array.0);
        assert!(stack.0 < 3.0 * array.0);
    }
}
