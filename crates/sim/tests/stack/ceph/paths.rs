//! Closed forms: the parts of a read and of a write, batches of transactions, erasure coding, deferred writes.

use super::*;
use crate::common::bench::unreadable;
use crate::common::{
    MS, US, assert_close, bare_drive, closed, flush, line, read, request, run_spec, spec, workload, write,
};
use headstack_sim::RunSpec;
use headstack_workload::{AccessLine, Kind, Request};

/// An SSD whose flush takes 300 us.
fn slow_flush() -> SsdDescription {
    let mut ssd = small_ssd();
    ssd.buffer.flush_ns = 300 * US;
    ssd.buffer.power_loss_protected = false;
    ssd
}

/// Two copies with the parts of a real cluster.
fn two_copies() -> CephDescription {
    let description = free(4, 2, Redundancy::Copies(2));
    CephDescription {
        network: ClusterNetwork { round_trip_ns: 40 * US, bytes_per_s: 1_000_000_000, clients: 1 },
        cpu: OsdCpu { read_ns: 133 * US, shard_read_ns: 60 * US, write_ns: 95 * US, ..description.cpu },
        read_delay_ns: 200 * US,
        write_delay_ns: 500 * US,
        ..description
    }
}

/// Times of data write, flush, append to the log and flush on an idle device.
fn commit_ns(device: &SystemDescription, bytes: u64, log_bytes: u64) -> u64 {
    let mut bench = Bench::new(device);
    let steps = [
        request(Kind::Write, 0, bytes),
        flush(),
        request(Kind::Write, device.capacity_bytes() / 2 / 4096 * 4096, log_bytes),
        flush(),
    ];
    steps.iter().map(|step| bench.takes_ns(step)).sum()
}

/// A read alone: a round trip, the payload on two interfaces at once, software, processor, and the device.
#[test]
fn a_read_takes_a_round_trip_software_and_the_device() {
    let (description, device) = (two_copies(), ssd());
    let device_ns = Bench::new(&device).takes_ns(&read(0, 8));
    let took_ns = Bench::new(&ceph(&description, &[device])).takes_ns(&read(0, 8));
    assert_eq!(took_ns, (40 + 200 + 133) * US + 4096 + device_ns);
}

/// A write alone: two round trips with the payload, software, two processors, data write, flush, append to the log,
/// flush.
#[test]
fn a_write_takes_two_round_trips_and_a_commit() {
    let (description, device) = (two_copies(), drive(slow_flush()));
    let took_ns = Bench::new(&ceph(&description, std::slice::from_ref(&device))).takes_ns(&write(0, 8));
    let parts_ns = (2 * 40 + 500 + 2 * 95) * US + 2 * 4096;
    assert_eq!(took_ns, parts_ns + commit_ns(&device, 4096, 4096));
    // With the log on another device, the steps are the same.
    let with_db = CephDescription { osds_per_db: Some(2), ..description };
    let took_ns = Bench::new(&ceph(&with_db, &[device.clone(), device.clone()])).takes_ns(&write(0, 8));
    let alone = |requests: &[Request]| {
        let mut bench = Bench::new(&device);
        requests.iter().map(|request| bench.takes_ns(request)).sum::<u64>()
    };
    assert_eq!(took_ns, parts_ns + alone(&[write(0, 8), flush()]) + alone(&[write(0, 8), flush()]));
}

/// Reads of one OSD without costs are those of its device, to the nanosecond.
#[test]
fn reads_of_one_osd_without_costs_are_those_of_its_device() {
    let device = ssd();
    let below_log = CephDescription { capacity_bytes: 256 * MIB, ..free(1, 1, Redundancy::Copies(1)) };
    let reads = AccessLine { align_bytes: Some(4096), ..line(8192, 100.0, 80.0) };
    let of = |system: &SystemDescription| {
        let mut spec =
            RunSpec { system: system.clone(), ..spec(&bare_drive(), workload(reads.clone(), closed(8), 3_000)) };
        spec.span = Some(headstack_workload::Span { start_bytes: 0, length_bytes: 256 * MIB });
        run_spec(&spec)
    };
    let (result, alone) = (of(&ceph(&below_log, std::slice::from_ref(&device))), of(&device));
    assert_eq!(result.kinds.read, alone.kinds.read);
    assert_eq!(result.duration_ns, alone.duration_ns);
}

/// With many clients, a commit takes the transactions that arrived during the one before it.
#[test]
fn a_commit_takes_what_arrived_during_the_one_before() {
    let device = drive(slow_flush());
    for clients in [1_u64, 4, 16, 64] {
        let description = free(1, 1, Redundancy::Copies(1));
        let mut bench = Bench::new(&ceph(&description, std::slice::from_ref(&device)));
        for write in 0..clients {
            bench.submit(&request(Kind::Write, write * 4096, 4096));
        }
        let mut issued = clients;
        while issued < 40 * clients {
            let next_ns = bench.system.next_event_ns();
            for _ in bench.run_to(next_ns) {
                bench.submit(&request(Kind::Write, issued % 4096 * 4096, 4096));
                issued += 1;
            }
        }
        let (commits, transactions) = (count(&bench, "osd_commits"), count(&bench, "osd_transactions"));
        // Writes that arrive during a commit wait for the next one: each client is in every second commit, except
        // that a client alone is in each.
        let expected = if clients == 1 { 1.0 } else { clients as f64 / 2.0 };
        let batch = transactions as f64 / commits as f64;
        assert!((0.9 * expected..=2.05 * expected).contains(&batch), "{clients} clients: {batch} a commit");
        assert!(clients == 1 || batch > 1.5, "{clients} clients: {batch} a commit");
    }
}

/// Arrivals at a fixed rate: the average batch is the rate times the time of a commit.
#[test]
fn batches_average_the_arrivals_of_a_commit() {
    let device = drive(slow_flush());
    let mut bench = Bench::new(&ceph(&free(1, 1, Redundancy::Copies(1)), &[device]));
    for write in 0..4_000 {
        bench.run_to(write * 50 * US);
        bench.submit(&request(Kind::Write, write % 4096 * 4096, 4096));
    }
    let (commits, transactions) = (count(&bench, "osd_commits") as f64, count(&bench, "osd_transactions") as f64);
    let commit_ns = bench.now_ns as f64 / commits;
    assert!(commit_ns > 600.0 * US as f64, "commits are back to back");
    assert_close(transactions / commits, commit_ns / (50.0 * US as f64), 2.0, "transactions a commit");
}

/// A write of part of a checksum block reads the block first; a flush costs nothing.
#[test]
fn a_write_of_part_of_a_block_reads_it() {
    let (description, device) = (free(1, 1, Redundancy::Copies(1)), ssd());
    let mut bench = Bench::new(&ceph(&description, std::slice::from_ref(&device)));
    assert_eq!(bench.takes_ns(&flush()), 0);
    let whole_ns = bench.takes_ns(&write(8, 8));
    let read_ns = Bench::new(&device).takes_ns(&read(16, 8));
    bench.settle();
    assert_close(bench.takes_ns(&write(17, 2)) as f64, (whole_ns + read_ns) as f64, 1.0, "read and write");
    bench.settle();
    bench.takes_ns(&write(31, 10));
    assert_eq!(count(&bench, "osd_checksum_reads"), 1 + 2);
    assert_eq!(count(&bench, "osd_data_writes"), 3);
}

/// Short writes on disks are acknowledged from the log, and written in place in batches; long ones are not deferred.
#[test]
fn short_writes_are_deferred() {
    let description =
        CephDescription { osds_per_db: Some(1), prefer_deferred_bytes: 64 << 10, ..free(1, 1, Redundancy::Copies(1)) };
    let system = ceph(&description, &[ssd(), ssd()]);
    let mut bench = Bench::new(&system);
    let alone_ns = {
        let mut log = Bench::new(&ssd());
        log.takes_ns(&request(Kind::Write, 0, 8192)) + log.takes_ns(&flush())
    };
    assert_eq!(bench.takes_ns(&write(0, 8)), alone_ns);
    assert_eq!(count(&bench, "osd_deferred_commands"), 0, "fewer than a batch");
    for at in 1..16 {
        bench.takes_ns(&write(8 * at, 8));
    }
    assert_eq!(count(&bench, "osd_deferred_commands"), 1, "sixteen adjacent writes are one command");
    bench.takes_ns(&write(0, 128));
    assert_eq!(count(&bench, "osd_data_writes"), 1, "64 KiB is not deferred");
    bench.takes_ns(&write(4096, 8));
    let from_ns = bench.now_ns;
    bench.settle();
    assert!(bench.now_ns - from_ns >= 2_900 * MS, "the rest waits for the interval");
    assert_eq!(count(&bench, "osd_deferred_commands"), 2);
    assert_eq!(count(&bench, "osd_deferred_writes"), 17);
}

/// Deferred writes that the disk does not take in time hold up new ones.
#[test]
fn deferred_writes_are_limited() {
    let description = CephDescription {
        capacity_bytes: 64 * MIB,
        osds_per_db: Some(1),
        prefer_deferred_bytes: 64 << 10,
        deferred_batch: 64,
        deferred_max: 100,
        ..free(1, 1, Redundancy::Copies(1))
    };
    let disk: SystemDescription = bare_drive().into();
    let writes = AccessLine { align_bytes: Some(4096), ..line(4096, 0.0, 100.0) };
    let of = |system: SystemDescription| {
        let spec = RunSpec { system, ..spec(&bare_drive(), workload(writes.clone(), closed(128), 4_000)) };
        run_spec(&spec).throughput_per_s()
    };
    let stack = of(ceph(&description, &[disk, ssd()]));
    let ssd_only = of(ceph(&description, &[ssd(), ssd()]));
    assert!(stack < 1_000.0 && ssd_only > 20_000.0, "{stack} and {ssd_only}");
}

/// A read of erasure-coded data takes another round trip: to all data shards, or to the one with the data. A small
/// write also reads before it writes.
#[test]
fn erasure_coding_adds_a_round_trip() {
    let of = |access| CephDescription { redundancy: erasure(4, 2, 16, access), osds: 6, hosts: 6, ..two_copies() };
    let device = ssd();
    let device_ns = |bytes: u64| Bench::new(&device).takes_ns(&request(Kind::Read, 0, bytes));
    let bench = |access| Bench::new(&ceph(&of(access), &[ssd()]));
    let local_ns = (40 + 200 + 133) * US + 4096;
    let mut changed = bench(ErasureAccess::ChangedShards);
    assert_eq!(changed.takes_ns(&read(0, 8)), local_ns + device_ns(4096), "the primary has the data");
    let remote = changed.takes_ns(&request(Kind::Read, 16 * KIB, 4096));
    assert_eq!(remote, local_ns + (40 + 60) * US + 4096 + device_ns(4096));
    assert_eq!(count(&changed, "osd_reads"), 2);
    let mut whole = bench(ErasureAccess::WholeStripes);
    // Three shards of 16 KiB arrive at the interface of the primary one after the other.
    assert_eq!(whole.takes_ns(&read(0, 8)), local_ns + (40 + 60) * US + 3 * 16_384 + device_ns(16_384));
    assert_eq!(count(&whole, "osd_reads"), 4);
    let mut writes = bench(ErasureAccess::ChangedShards);
    writes.takes_ns(&write(0, 8));
    assert_eq!([count(&writes, "osd_reads"), count(&writes, "osd_data_writes")], [3, 3]);
    writes.takes_ns(&request(Kind::Write, 0, 64 * KIB));
    assert_eq!([count(&writes, "osd_reads"), count(&writes, "osd_data_writes")], [3, 9]);
}

/// A request over the end of an object is two operations, and is answered when both are.
#[test]
fn a_request_may_span_objects() {
    let mut bench = Bench::new(&ceph(&free(4, 4, Redundancy::Copies(3)), &[ssd()]));
    bench.takes_ns(&request(Kind::Write, 4 * MIB - 4096, 8192));
    assert_eq!([count(&bench, "osd_data_writes"), count(&bench, "osd_transactions")], [6, 6]);
    bench.takes_ns(&request(Kind::Trim, 0, 4096));
    assert_eq!([count(&bench, "osd_data_writes"), count(&bench, "osd_transactions")], [6, 9]);
}

/// A copy that cannot be read is read from another OSD; a single copy fails the request.
#[test]
fn a_failed_read_is_repeated_on_another_copy() {
    for (copies, expected, retries) in [(2, vec![], 1), (1, vec![(5120, false)], 0)] {
        let description = CephDescription { capacity_bytes: 16 * MIB, ..free(2, 2, Redundancy::Copies(copies)) };
        let system = ceph(&description, &[bare_drive().into()]);
        let of_osd = |osd| {
            let mut bench = Bench::new(&system).with(Some(osd), &[unreadable(10, 20)]);
            let (_, failed) = bench.serve(&read(5, 10));
            let failed: Vec<_> = failed.iter().map(|failed| (failed.at_bytes, failed.write)).collect();
            (count(&bench, "osd_retried_reads"), failed)
        };
        // One of the two is the primary of the first object.
        let (primary, other) = (of_osd(0), of_osd(1));
        let (primary, other) = if primary == (0, vec![]) { (other, primary) } else { (primary, other) };
        assert_eq!((primary, other), ((retries, expected), (0, vec![])), "{copies} copies");
    }
}

/// Impossible clusters are refused with the key and what is allowed.
#[test]
fn impossible_clusters_are_refused() {
    let good = free(6, 3, Redundancy::Copies(3));
    let refused = |description: CephDescription, below: &[SystemDescription]| {
        ceph(&description, below).check().unwrap_err().to_string()
    };
    for (description, expected) in [
        (CephDescription { hosts: 4, ..good.clone() }, "ceph.hosts: 4 hosts for 6 OSDs; each host"),
        (CephDescription { hosts: 2, ..good.clone() }, "ceph.hosts: 2 hosts for 3 copies or shards; must be 3 or more"),
        (CephDescription { osds: 0, ..good.clone() }, "ceph.osds: 0 is out of range; must be 1 to 1024"),
        (CephDescription { capacity_bytes: 1 << 50, ..good.clone() }, "ceph.size"),
        (CephDescription { redundancy: erasure(1, 1, 4, ErasureAccess::WholeStripes), ..good.clone() }, "ceph.erasure"),
        (CephDescription { osds_per_db: Some(3), ..good.clone() }, "stack.below: 1 systems below `ceph`; must be 2"),
    ] {
        let error = refused(description, &[ssd()]);
        assert!(error.contains(expected), "{error}");
    }
}
