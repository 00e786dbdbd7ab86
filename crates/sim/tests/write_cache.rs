//! Write cache: early completion, coalescing, destaging, FLUSH and FUA.

use crate::common::*;
use headstack_sim::drive::Drive;
use headstack_sim::drive::description::{AfterReadWrite, DriveDescription, Policy, WriteCache};
use headstack_workload::Request;

const HIT_NS: u64 = 100_000;

fn caching_drive(extents: u32) -> DriveDescription {
    let mut drive = queueing_drive(Policy::Fcfs, 64);
    (drive.buffer.write_cache, drive.buffer.dirty_extents_max) = (WriteCache::On, extents);
    drive.overheads.write_hit_ns = AfterReadWrite { after_read: HIT_NS, after_write: HIT_NS };
    drive.interface.write_ns_per_byte = 25.0;
    drive
}

/// Writes of 4 KiB far apart.
fn scattered(count: u64) -> Vec<Request> {
    (0..count).map(|i| write((i * 379 + 13) % CYLINDERS * CYLINDER, 8)).collect()
}

#[test]
fn a_cached_write_is_overhead_and_transfer_while_there_is_room() {
    let mut description = caching_drive(8);
    (description.overheads.data_preparation_ns, description.overheads.write_completion_ns) = (30_000, 7_000);
    let mut drive = Drive::new(&description, 0).unwrap();
    let cached_ns = HIT_NS + 30_000 + 8 * 12_800 + 7_000;
    let mut now_ns = 0;
    for (number, request) in scattered(9).iter().enumerate() {
        let response_ns = serve(&mut drive, now_ns, request);
        if number < 8 {
            assert_eq!(response_ns, cached_ns, "write {number}");
        } else {
            assert!(response_ns > cached_ns + MS, "no room is left for write {number}: {response_ns}");
        }
        now_ns += response_ns;
    }
}

#[test]
fn dirty_sectors_are_limited_too() {
    let mut description = caching_drive(100);
    description.buffer.dirty_sectors_max = 20;
    let mut drive = Drive::new(&description, 0).unwrap();
    let mut responses = Vec::new();
    let mut now_ns = 0;
    for request in scattered(3) {
        responses.push(serve(&mut drive, now_ns, &request));
        now_ns += responses.last().unwrap();
    }
    assert!(responses[1] < MS && responses[2] > MS, "{responses:?}");
    // A write larger than the cache is accepted all the same.
    serve(&mut drive, 1_000 * MS, &write(0, 200));
}

#[test]
fn an_idle_drive_empties_its_cache() {
    let mut drive = Drive::new(&caching_drive(64), 0).unwrap();
    let requests: Vec<(u64, Request)> = scattered(20).into_iter().map(|request| (0, request)).collect();
    let done = serve_all(&mut drive, &requests);
    assert_eq!(done.len(), 20);
    assert_eq!((drive.counters().cached_writes, drive.counters().destages), (20, 20));
}

#[test]
fn sequential_small_writes_are_written_at_once() {
    let mut drive = Drive::new(&caching_drive(64), 0).unwrap();
    // The first keeps the arm busy elsewhere while 32 small ones arrive.
    let mut requests = vec![(0, write(500 * CYLINDER, 8))];
    requests.extend((0..32).map(|i| (1, write(1000 + i, 1))));
    serve_all(&mut drive, &requests);
    let counters = drive.counters();
    assert_eq!((counters.destages, counters.coalesced_writes, counters.cached_writes), (2, 31, 33));
    assert!(counters.transfer_ns.abs_diff(40 * SECTOR_NS) < 20, "{}", counters.transfer_ns);
}

#[test]
fn writing_the_same_place_again_costs_the_media_once() {
    let mut drive = Drive::new(&caching_drive(64), 0).unwrap();
    let mut requests = vec![(0, write(500 * CYLINDER, 8))];
    requests.extend((0..32).map(|_| (1, write(1000, 8))));
    serve_all(&mut drive, &requests);
    assert_eq!((drive.counters().destages, drive.counters().coalesced_writes), (2, 31));
}

/// The cache is a queue of its own: a stream of random writes runs at the rate of the mechanism with everything that is
/// dirty or queued.
#[test]
fn sustained_random_writes_run_at_the_mechanical_rate() {
    let line = line(4096, 0.0, 100.0);
    let queued = |depth| {
        let mut description = queueing_drive(Policy::Sptf, depth);
        description.interface.write_ns_per_byte = 25.0;
        run_closed(&description, line.clone(), depth, 20_000).throughput_per_s()
    };
    let mut description = caching_drive(32);
    description.queue.policy = Policy::Sptf;
    let mut workload = workload(line.clone(), closed(1), 20_000);
    workload.warm_up.requests = 200;
    let cached = run_spec(&spec(&description, workload)).throughput_per_s();
    let (less, more) = (queued(29), queued(35));
    assert!(less < cached && cached < more, "{cached} writes a second; {less} at depth 29, {more} at depth 35");
}

#[test]
fn a_full_cache_or_a_flush_per_write_has_no_speedup() {
    let line = line(4096, 0.0, 100.0);
    let mut through = caching_drive(1);
    through.buffer.write_cache = WriteCache::Off;
    let (mut small, mut large) = (caching_drive(1), caching_drive(64));
    large.queue.policy = Policy::Sptf;
    for description in [&mut through, &mut small] {
        description.overheads.write_hit_ns = AfterReadWrite::default();
        description.interface.write_ns_per_byte = 0.0;
    }
    let rate = |description, flush_every| {
        let mut workload = workload(line.clone(), closed(1), 5_000);
        workload.flush_every = flush_every;
        let result = run_spec(&spec(description, workload));
        result.kinds.write.count as f64 / result.duration_ns as f64 * 1e9
    };
    assert_close(rate(&small, 0), rate(&through, 0), 1.0, "one dirty extent");
    assert!(rate(&large, 0) > 1.02 * rate(&through, 0));
    assert!(rate(&large, 1) < rate(&through, 0), "a flush after each write takes all of it back");
}

#[test]
fn a_flush_waits_for_earlier_writes() {
    let mut drive = Drive::new(&caching_drive(64), 0).unwrap();
    let writes = scattered(10);
    let mut now_ns = 0;
    for request in &writes[..5] {
        now_ns += serve(&mut drive, now_ns, request);
    }
    drive.submit(now_ns, 77, &flush());
    for (id, request) in writes[5..].iter().enumerate() {
        drive.submit(now_ns, id as u32, request);
    }
    let mut flushed_ns = None;
    while flushed_ns.is_none() {
        drive.advance(drive.next_event_ns(), |completion| {
            if completion.id == 77 {
                flushed_ns = Some(completion.at_ns);
            }
        });
    }
    // In order of arrival: when the fifth is on the media the sixth begins.
    assert_eq!(drive.counters().destages, 6);
    // With nothing dirty there is no wait.
    let mut idle = Drive::new(&caching_drive(64), 0).unwrap();
    assert_eq!(serve(&mut idle, 0, &flush()), 0);
}

#[test]
fn each_flush_waits_for_its_own_writes() {
    let mut drive = Drive::new(&caching_drive(64), 0).unwrap();
    let writes = scattered(3);
    let requests = [(0, writes[0]), (1, flush()), (2, writes[1]), (3, flush()), (4, writes[2]), (5, flush())];
    let done = serve_all(&mut drive, &requests);
    let at_ns = |id| done.iter().find(|completion| completion.id == id).unwrap().at_ns;
    assert!(at_ns(1) + MS < at_ns(3) && at_ns(3) + MS < at_ns(5));
}

#[test]
fn forced_writes_go_to_the_media() {
    let mut drive = Drive::new(&caching_drive(64), 0).unwrap();
    let forced = Request { force_unit_access: true, ..write(200 * CYLINDER, 8) };
    let mechanism = Mechanism::at_rest(drive.description()).access(0.0, 200 * CYLINDER, 8, true).1;
    let mut through = caching_drive(64);
    through.buffer.write_cache = WriteCache::Off;
    let response_ns = serve(&mut drive, 0, &forced);
    assert_ns(response_ns, mechanism, "seek, rotation and transfer");
    assert_eq!(response_ns, serve(&mut Drive::new(&through, 0).unwrap(), 0, &forced));
    assert_eq!((drive.counters().cached_writes, drive.counters().destages), (0, 0));
}

#[test]
fn appending_caches_isolated_and_continuing_writes_only() {
    let mut description = caching_drive(64);
    description.buffer.write_cache = WriteCache::Appending;
    let mut drive = Drive::new(&description, 0).unwrap();
    // The first finds the drive idle; the second continues it; the third is elsewhere while the arm is busy.
    let requests = [(0, write(500 * CYLINDER, 8)), (10, write(500 * CYLINDER + 8, 8)), (20, write(4_000, 8))];
    let done = serve_all(&mut drive, &requests);
    let order: Vec<u32> = done.iter().map(|completion| completion.id).collect();
    assert_eq!((order, drive.counters().cached_writes), (vec![0, 1, 2], 2));
    assert!(done[1].at_ns < MS && done[2].at_ns > 5 * MS, "{done:?}");
}

#[test]
fn write_hits_and_misses_have_their_overheads() {
    let mut description = bare_drive();
    description.overheads.write_hit_ns = AfterReadWrite { after_read: MS, after_write: 2 * MS };
    description.overheads.write_miss_ns = AfterReadWrite { after_read: 3 * MS, after_write: 4 * MS };
    let mut drive = Drive::new(&description, 0).unwrap();
    let mut spent = 0;
    let mut now_ns = 0;
    let mut overhead_of = |request: &Request| {
        now_ns += serve(&mut drive, now_ns, request) + 100 * MS;
        let before = std::mem::replace(&mut spent, drive.counters().overhead_ns);
        spent - before
    };
    assert_eq!(overhead_of(&write(100, 8)), 4 * MS, "nothing before it counts as a write");
    assert_eq!(overhead_of(&write(108, 8)), 2 * MS, "it continues the one before");
    assert_eq!(overhead_of(&read(0, 8)), 0);
    assert_eq!(overhead_of(&write(5000, 8)), 3 * MS);
    assert_eq!(overhead_of(&read(0, 8)), 0);
    assert_eq!(overhead_of(&write(5008, 8)), MS, "the last write counts, whatever was read since");
}

/// A write that the firmware still decodes when the arm looks at the queue is young, not old.
#[test]
fn writes_under_way_to_the_cache_have_not_aged() {
    let mut description = caching_drive(8);
    (description.queue.policy, description.queue.ageing_ns) = (Policy::Sstf, Some(10 * MS));
    description.overheads.write_hit_ns = AfterReadWrite { after_read: 2 * MS, after_write: 2 * MS };
    let mut drive = Drive::new(&description, 0).unwrap();
    let far = write(500 * CYLINDER, 8);
    serve_all(&mut drive, &[(0, read(0, 10)), (500 * US, far), (501 * US, write(CYLINDER, 8))]);
    // One cylinder, then 499; not 500 and back.
    assert!(drive.counters().seek_ns < 8 * MS, "{}", drive.counters().seek_ns);
}
