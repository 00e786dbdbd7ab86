//! The intent log: latency, number and size of log blocks, batching, records by address.

use headstack_sim::array::description::Level;
use headstack_sim::stack::description::{LogBias, Sync, ZfsDescription, ZfsParameters};
use headstack_sim::{RunSpec, SystemDescription};
use headstack_workload::Request;

use super::*;
use crate::common::arrays;
use crate::common::{bare_drive, closed, counter, flush, line, request, run_spec, spec, workload};
use headstack_workload::Kind;

fn write(offset_bytes: u64, length_bytes: u64) -> Request {
    request(Kind::Write, offset_bytes, length_bytes)
}

fn synchronous(offset_bytes: u64, length_bytes: u64) -> Request {
    Request { force_unit_access: true, ..write(offset_bytes, length_bytes) }
}

/// One thread: a commit takes its software time, a write of a log block, and a flush. It is one block of the data and a
/// header of 192 bytes, in units of 4 KiB.
#[test]
fn a_commit_of_one_thread_costs_one_log_block() {
    for (data, log) in [(512, 4096), (3904, 4096), (4096, 8192), (16 * KIB, 20 * KIB)] {
        let alone = |request: &Request| Bench::new(&ssd()).takes_ns(request);
        let (log_ns, flush_ns) = (alone(&write(0, log)), alone(&flush()));
        let description = small(256 * MIB);
        let mut bench = Bench::new(&zfs(&description, &[ssd()]));
        bench.takes_ns(&request(Kind::Read, 0, RECORD));
        for commit in 1..=20 {
            assert_eq!(bench.takes_ns(&write(0, data)), description.write_ns, "a write is acknowledged in memory");
            let expected_ns = description.commit_ns + log_ns + flush_ns;
            assert_eq!(bench.takes_ns(&flush()), expected_ns, "commit {commit} of {data} bytes");
            assert_eq!(count(&bench, "zil_blocks"), commit);
            assert_eq!(count(&bench, "zil_bytes"), commit * log);
        }
        let synchronous_ns = bench.takes_ns(&synchronous(0, data));
        assert_eq!(synchronous_ns, description.write_ns + description.commit_ns + log_ns + flush_ns);
    }
}

/// A flush without writes before it costs software time only, and none of it with `sync=disabled`. `sync=always` commits
/// each write.
#[test]
fn sync_decides_which_writes_are_committed() {
    let takes = |sync: Sync, request: &Request| {
        let description = ZfsDescription { sync, ..small(256 * MIB) };
        let mut bench = Bench::new(&zfs(&description, &[ssd()]));
        let took_ns = bench.takes_ns(request);
        (took_ns, count(&bench, "zil_blocks"))
    };
    let description = small(256 * MIB);
    assert_eq!(takes(Sync::Standard, &flush()), (description.commit_ns, 0));
    assert_eq!(takes(Sync::Disabled, &flush()), (0, 0));
    assert_eq!(takes(Sync::Disabled, &synchronous(0, RECORD)), (description.write_ns, 0));
    assert_eq!(takes(Sync::Standard, &write(0, RECORD)), (description.write_ns, 0));
    let (always_ns, blocks) = takes(Sync::Always, &write(0, RECORD));
    assert!(always_ns > description.write_ns + description.commit_ns && blocks == 1, "{always_ns} ns, {blocks}");
}

/// Data from 32 KiB on go to their final place, with a log block for the address, unless there is a separate log
/// device. The transaction group does not write them again.
#[test]
fn long_writes_go_to_their_final_place() {
    let of = |description: &ZfsDescription, below: &[SystemDescription], bytes: u64| {
        let mut bench = Bench::new(&zfs(description, below));
        bench.takes_ns(&request(Kind::Read, 0, RECORD));
        bench.takes_ns(&synchronous(0, bytes));
        let found = (count(&bench, "zil_indirect_records"), count(&bench, "zil_bytes"));
        bench.settle();
        (found.0, found.1, count(&bench, "txg_data_bytes"))
    };
    let old = ZfsDescription { parameters: ZfsParameters::v2_2(), ..small(256 * MIB) };
    assert_eq!(of(&old, &[ssd()], 32 * KIB), (1, 4096, 0));
    assert_eq!(of(&old, &[ssd()], 31 * KIB), (0, 32 * KIB, RECORD));
    let new = small(256 * MIB);
    assert_eq!(of(&new, &[ssd()], 32 * KIB), (0, 36 * KIB, RECORD), "less than half a block");
    assert_eq!(of(&new, &[ssd()], 64 * KIB), (1, 4096, 0));
    let slog = ZfsDescription { log: Some(1), ..new.clone() };
    assert_eq!(of(&slog, &[ssd(), ssd()], 64 * KIB), (0, 68 * KIB, RECORD));
    let throughput = ZfsDescription { log_bias: LogBias::Throughput, ..slog };
    assert_eq!(of(&throughput, &[ssd(), ssd()], 4 * KIB), (1, 4096, 0));
}

/// With a separate log device, the pool sees no write until the transaction group syncs.
#[test]
fn a_separate_log_device_takes_the_log() {
    let description = ZfsDescription { log: Some(1), ..small(256 * MIB) };
    let mut bench = Bench::new(&zfs(&description, &[fast(), ssd()]));
    for record in 0..8 {
        bench.takes_ns(&synchronous(record * RECORD, RECORD));
    }
    let accounted = count(&bench, "accounted_requests");
    assert_eq!(accounted, 0, "requests to the volume of the pool");
    bench.settle();
    assert!(count(&bench, "accounted_requests") > 8);
}

/// Several threads share log blocks: fewer blocks than commits. One thread never does.
#[test]
fn threads_share_log_blocks() {
    let of = |threads: u32| {
        let mut work = workload(line(4096, 0.0, 100.0), closed(threads), 4_000);
        work.flush_every = 0;
        let description = ZfsDescription { sync: Sync::Always, record_bytes: 4096, ..small(64 * MIB) };
        let system = zfs(&description, &[sink(4 << 30, 2_000_000_000, 200 * US)]);
        let result = run_spec(&RunSpec { system, ..spec(&bare_drive(), work) });
        (counter(&result, "zil_commits"), counter(&result, "zil_blocks"), result.throughput_per_s())
    };
    let (commits, blocks, one_per_s) = of(1);
    assert_eq!(commits, blocks);
    let (commits, blocks, per_s) = of(16);
    assert!(blocks * 2 < commits, "{blocks} blocks for {commits} commits");
    assert!(per_s > 8.0 * one_per_s, "{per_s} and {one_per_s} a second");
}

/// A log block on RAIDZ2 of six takes its sectors and two parities, and reads nothing.
#[test]
fn a_log_block_on_raidz_reads_nothing() {
    let mut group = arrays::group(Level::Raidz { parity: 2 }, 0..6, 1);
    (group.chunk_bytes, group.record_bytes, group.member_bytes) = (4096, RECORD, 100 * MIB);
    let capacity = group.capacity_bytes();
    let array = SystemDescription::Array({
        let mut array = arrays::array(group, capacity);
        array.devices = vec![DeviceDescription::Ssd(small_ssd())];
        array
    });
    let description = ZfsDescription { dirty_data_max_bytes: 16 * MIB, ..small(64 * MIB) };
    let mut bench = Bench::new(&zfs(&description, &[array]));
    bench.takes_ns(&write(0, RECORD));
    bench.takes_ns(&write(0, 4096));
    let before = bench.system.snapshot();
    bench.takes_ns(&flush());
    let (_, counters) = bench.system.snapshot().since(&before);
    let of = |name: &str| counters.iter().find(|counter| counter.name == name).map(|counter| counter.value);
    // A record of 128 KiB by its address takes 4 data columns and 2 parities, its log block of 4 KiB 1 and 2, and the
    // log block of the second write, 8 KiB, 2 and 2.
    assert_eq!([of("zil_blocks"), of("data_writes"), of("parity_writes")], [Some(2), Some(7), Some(6)]);
    assert_eq!([of("data_reads"), of("parity_reads"), of("flash_page_reads")], [Some(0); 3]);
}
