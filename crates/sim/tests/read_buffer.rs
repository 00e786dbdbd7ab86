//! Segments, read-ahead and hits.

use crate::common::*;
use headstack_sim::drive::description::{AfterReadWrite, DriveDescription, ReadAhead};
use headstack_sim::drive::{Counters, Drive};
use headstack_workload::Request;

const HIT_NS: u64 = 200_000;
const NS_PER_BYTE: f64 = 25.0;
const LONG_NS: u64 = 1_000 * MS;

/// Four segments of 256 sectors, read-ahead of `kind`; hits cost 0.2 ms and 25 ns a byte.
fn buffered_drive(kind: ReadAhead) -> DriveDescription {
    let mut drive = bare_drive();
    (drive.buffer.segments, drive.buffer.read_ahead) = (4, kind);
    (drive.buffer.read_ahead_on_hit, drive.buffer.read_hits_on_writes) = (true, true);
    drive.overheads.read_hit_ns = AfterReadWrite { after_read: HIT_NS, after_write: HIT_NS };
    drive.interface.read_ns_per_byte = NS_PER_BYTE;
    drive
}

fn is_buffered(drive: &Drive, at_ns: u64, sector: u64) -> bool {
    let mut drive = drive.clone();
    let hits = drive.counters().read_hits;
    drive.advance(at_ns, |_| ());
    drive.submit(at_ns, 99, &read(sector, 1));
    drive.counters().read_hits > hits
}

/// Returns the first sector at or after `from` that the buffer does not hold.
fn first_missing(drive: &Drive, at_ns: u64, from: u64) -> u64 {
    (from..).find(|&sector| !is_buffered(drive, at_ns, sector)).unwrap()
}

/// Serves requests one after the other, with long pauses.
fn serve_in_turn(drive: &mut Drive, requests: &[Request]) -> Vec<u64> {
    let start_ns = drive.next_event_ns().min(LONG_NS);
    let after = |index: usize| start_ns + (index as u64 + 1) * LONG_NS;
    requests.iter().enumerate().map(|(index, request)| serve(drive, after(index), request)).collect()
}

#[test]
fn a_hit_is_overhead_and_transfer() {
    let mut description = buffered_drive(ReadAhead::Segment);
    description.buffer.read_ahead_max_sectors = 100;
    (description.overheads.data_preparation_ns, description.overheads.read_completion_ns) = (30_000, 7_000);
    let mut drive = Drive::new(&description, 0).unwrap();
    let responses = serve_in_turn(&mut drive, &[read(1000, 8), read(1008, 16), read(1004, 4)]);
    let hit = |sectors: u64| (HIT_NS + 30_000 + sectors * 12_800 + 7_000) as f64;
    assert_ns(responses[1], hit(16), "what read-ahead has read");
    assert_ns(responses[2], hit(4), "what was read before");
    assert!(responses[0] > 1_500_000);
    assert_eq!((drive.counters().read_misses, drive.counters().read_hits), (1, 2));
}

#[test]
fn each_read_ahead_policy_stops_at_its_limit() {
    // 250 to 257 are on the third track of cylinder 0: its track ends at 300, its cylinder at 400.
    let cases = [
        (ReadAhead::None, 258),
        (ReadAhead::Track, 300),
        (ReadAhead::Cylinder, 400),
        (ReadAhead::Segment, 258 + 256),
        (ReadAhead::TrackAfterSequential, 300),
    ];
    for (kind, end) in cases {
        let mut drive = Drive::new(&buffered_drive(kind), 0).unwrap();
        serve(&mut drive, 0, &read(250, 8));
        assert_eq!(first_missing(&drive, LONG_NS, 258), end, "{kind:?}");
        let mut limited = buffered_drive(kind);
        limited.buffer.read_ahead_max_sectors = 20;
        let mut drive = Drive::new(&limited, 0).unwrap();
        serve(&mut drive, 0, &read(250, 8));
        if kind != ReadAhead::TrackAfterSequential {
            assert_eq!(first_missing(&drive, LONG_NS, 258), end.min(278), "{kind:?} of 20 sectors");
        }
    }
}

#[test]
fn read_ahead_crosses_a_track_once_a_stream_has() {
    let mut drive = Drive::new(&buffered_drive(ReadAhead::TrackAfterSequential), 0).unwrap();
    // Up to sector 315 in steps that read-ahead of the track covers, then across its end.
    serve_in_turn(&mut drive, &[read(250, 30), read(280, 20), read(300, 16)]);
    assert_eq!(first_missing(&drive, 10 * LONG_NS, 300), 500, "to the end of the next track");
}

#[test]
fn read_ahead_reads_at_the_rate_of_the_media() {
    let description = buffered_drive(ReadAhead::Segment);
    let mut drive = Drive::new(&description, 0).unwrap();
    let response_ns = serve(&mut drive, 0, &read(10, 2));
    let end_ns = 12 * SECTOR_NS;
    assert_eq!(response_ns, end_ns + 12_800, "the last sector goes out after it was read");
    for passed in [1, 5, 40, 87] {
        let at_ns = end_ns + passed * SECTOR_NS;
        assert_eq!(first_missing(&drive, at_ns + 100, 12), 12 + passed, "{passed} sectors later");
        assert_eq!(first_missing(&drive, at_ns - 100, 12), 11 + passed, "just before");
    }
    // The next track begins after its skew.
    let next_track_ns = TURN_NS + 17 * SECTOR_NS;
    assert_eq!(first_missing(&drive, next_track_ns - 100, 12), TRACK);
    assert_eq!(first_missing(&drive, next_track_ns + 3 * SECTOR_NS + 100, 12), TRACK + 3);
}

/// If read-ahead had stopped because the buffer was full, a hit makes room again: the additional sectors must first
/// pass under the head.
#[test]
fn read_ahead_that_had_stopped_starts_now() {
    let mut description = buffered_drive(ReadAhead::Segment);
    description.buffer.read_ahead_max_sectors = 20;
    let mut drive = Drive::new(&description, 0).unwrap();
    serve(&mut drive, 0, &read(10, 10));
    assert_eq!(first_missing(&drive, LONG_NS, 20), 40);
    serve(&mut drive, LONG_NS, &read(20, 10));
    // The angle of sector 40 comes around again.
    let wait_ns = Mechanism::at_rest(&description).wait_ns(LONG_NS as f64, 0.4) as u64;
    assert_eq!(first_missing(&drive, LONG_NS + wait_ns - 100, 30), 40);
    assert_eq!(first_missing(&drive, LONG_NS + wait_ns + 4 * SECTOR_NS + 100, 30), 44);
    assert_eq!(first_missing(&drive, LONG_NS + wait_ns + 100 * SECTOR_NS, 30), 50);
}

#[test]
fn the_least_recently_used_segment_gives_way() {
    let mut description = buffered_drive(ReadAhead::None);
    description.buffer.segments = 2;
    let mut drive = Drive::new(&description, 0).unwrap();
    let (a, b, c) = (1000, 2000, 3000);
    serve_in_turn(&mut drive, &[read(a, 8), read(b, 8), read(a + 2, 2), read(c, 8)]);
    let held = [a, b, c].map(|sector| is_buffered(&drive, 10 * LONG_NS, sector));
    assert_eq!(held, [true, false, true]);
}

#[test]
fn without_segments_reads_are_not_cached() {
    let mut description = buffered_drive(ReadAhead::Segment);
    description.buffer.segments = 0;
    let mut drive = Drive::new(&description, 0).unwrap();
    serve_in_turn(&mut drive, &[read(8, 8), read(8, 8), read(16, 8)]);
    assert_eq!((drive.counters().read_misses, drive.counters().read_hits), (3, 0));
}

#[test]
fn written_data_are_read_hits_if_the_drive_caches_them() {
    for (keeps, expected) in [(true, 1), (false, 0)] {
        let mut description = buffered_drive(ReadAhead::None);
        description.buffer.read_hits_on_writes = keeps;
        let mut drive = Drive::new(&description, 0).unwrap();
        serve_in_turn(&mut drive, &[write(500, 8), read(502, 4)]);
        assert_eq!(drive.counters().read_hits, expected);
    }
}

#[test]
fn a_write_makes_older_copies_stale() {
    let mut description = buffered_drive(ReadAhead::None);
    description.buffer.read_hits_on_writes = false;
    let mut drive = Drive::new(&description, 0).unwrap();
    serve_in_turn(&mut drive, &[read(500, 8), write(502, 1), read(502, 1)]);
    assert_eq!((drive.counters().read_misses, drive.counters().read_hits), (2, 0));
}

#[test]
fn a_read_takes_the_rest_from_the_media() {
    let mut drive = Drive::new(&buffered_drive(ReadAhead::None), 0).unwrap();
    serve_in_turn(&mut drive, &[read(500, 8), read(504, 8)]);
    let counters = drive.counters();
    assert_eq!((counters.read_misses, counters.read_partial_hits, counters.read_hits), (1, 1, 0));
    // 8 sectors of the first, 4 of the second.
    assert!(counters.transfer_ns.abs_diff(12 * SECTOR_NS) < 20, "{}", counters.transfer_ns);
}

#[test]
fn sectors_that_pass_are_kept_with_read_on_arrival() {
    let mut description = buffered_drive(ReadAhead::None);
    (description.mechanics.read_on_arrival, description.buffer.keep_passing_sectors) = (true, true);
    let mut drive = Drive::new(&description, 0).unwrap();
    // At rest on the track from angle 0: 30 sectors pass before the first wanted one.
    serve(&mut drive, 0, &read(30, 4));
    assert!(is_buffered(&drive, LONG_NS, 1) && is_buffered(&drive, LONG_NS, 29) && !is_buffered(&drive, LONG_NS, 34));
}

/// The slower of media and interface sets the rate of a sequential stream; read-ahead hides the overheads.
#[test]
fn sequential_reads_run_at_the_slower_of_media_and_interface() {
    let cylinder_ns = (HEADS * TURN_NS + (HEADS - 1) * TURN_NS * 17 / 100 + TURN_NS * 25 / 100) as f64;
    let media_rate = (CYLINDER * 512) as f64 / cylinder_ns * 1e9;
    for (ns_per_byte, expected) in [(25.0, media_rate), (250.0, 4e6)] {
        for overhead_ns in [0, 300_000] {
            let mut description = buffered_drive(ReadAhead::Segment);
            description.interface.read_ns_per_byte = ns_per_byte;
            let cost = AfterReadWrite { after_read: overhead_ns, after_write: overhead_ns };
            (description.overheads.read_hit_ns, description.overheads.read_miss_ns) = (cost, cost);
            // The interface is idle during an overhead, the media are not.
            let request_ns =
                16.0 * 512.0 / expected * 1e9 + if expected < media_rate { overhead_ns as f64 } else { 0.0 };
            let result = run_closed(&description, line(16 * 512, 100.0, 0.0), 1, 20_000);
            let rate = result.throughput_bytes_per_s();
            let what = format!("{ns_per_byte} ns a byte, overhead {overhead_ns}");
            assert_close(rate, 16.0 * 512.0 / request_ns * 1e9, 1.0, &what);
        }
    }
    // Without read-ahead each request waits for the turn that its overhead has missed.
    let mut description = buffered_drive(ReadAhead::None);
    description.overheads.read_miss_ns = AfterReadWrite { after_read: 300_000, after_write: 300_000 };
    let result = run_closed(&description, line(16 * 512, 100.0, 0.0), 1, 5_000);
    assert!(result.throughput_bytes_per_s() < 0.3 * media_rate);
}

#[test]
fn another_command_stops_read_ahead_after_its_least_part() {
    let mut description = buffered_drive(ReadAhead::Segment);
    let kept = |description: &DriveDescription| {
        let mut drive = Drive::new(description, 0).unwrap();
        serve_all(&mut drive, &[(0, read(10, 2)), (1, read(500 * CYLINDER, 2))]);
        first_missing(&drive, LONG_NS, 12)
    };
    description.queue.depth = 2;
    assert_eq!(kept(&description), 12, "the arm leaves at once");
    description.buffer.read_ahead_min_sectors = 30;
    assert_eq!(kept(&description), 42, "the arm leaves after 30 sectors");
    // Across the end of the track, where the read-ahead may not leave it.
    description.buffer.read_ahead_min_sectors = 95;
    assert_eq!(kept(&description), 107);
    description.buffer.read_ahead = ReadAhead::Track;
    assert_eq!(kept(&description), 100);
}

#[test]
fn nothing_is_hit_before_the_heads_have_read_it() {
    let mut drive = Drive::new(&buffered_drive(ReadAhead::None), 0).unwrap();
    let far = 50_000;
    let done = serve_all(&mut drive, &[(0, read(far, 8)), (1_000, read(far, 8))]);
    let first = done.iter().find(|completion| completion.id == 0).unwrap();
    let second = done.iter().find(|completion| completion.id == 1).unwrap();
    assert!(second.at_ns > first.at_ns - 8 * 12_800, "{} ns, the media were read by {} ns", second.at_ns, first.at_ns);
}

#[test]
fn a_queued_read_hits_data_of_another_read() {
    let mut description = buffered_drive(ReadAhead::None);
    description.queue.depth = 8;
    let mut drive = Drive::new(&description, 0).unwrap();
    // The arm is away while two reads of the same sectors come: one of them goes to the media.
    let done = serve_all(&mut drive, &[(0, read(50_000, 8)), (1_000, read(70_000, 8)), (2_000, read(70_000, 8))]);
    assert_eq!(done.len(), 3);
    let at = |id| done.iter().find(|completion| completion.id == id).unwrap().at_ns;
    assert!(at(2).abs_diff(at(1)) < 1_000_000, "{} and {} ns", at(1), at(2));
    assert_eq!(drive.counters().read_hits, 1);
}

#[test]
fn a_counter_never_goes_back() {
    // A waiting read may become a hit: a run whose measured part begins meanwhile takes the difference of two moments,
    // which must not be negative.
    let mut description = buffered_drive(ReadAhead::None);
    description.queue.depth = 8;
    let mut drive = Drive::new(&description, 0).unwrap();
    let requests = [(0, read(50_000, 8)), (1_000, read(70_000, 8)), (2_000, read(70_000, 8))];
    for (index, (at_ns, request)) in requests.iter().enumerate() {
        drive.advance(*at_ns, |_| {});
        drive.submit(*at_ns, index as u32, request);
    }
    let mut seen = vec![drive.counters()];
    while !drive.is_idle() {
        drive.advance(drive.next_event_ns(), |_| {});
        seen.push(drive.counters());
    }
    let reads = |counters: &Counters| [counters.read_hits, counters.read_partial_hits, counters.read_misses];
    for pair in seen.windows(2) {
        let went_back = reads(&pair[0]).iter().zip(reads(&pair[1])).any(|(&before, after)| after < before);
        assert!(!went_back, "{:?} then {:?}", reads(&pair[0]), reads(&pair[1]));
    }
    assert_eq!(seen.last().map(reads), Some([1, 0, 2]));
}

#[test]
fn an_ordered_command_delays_buffer_hits() {
    let mut description = buffered_drive(ReadAhead::None);
    description.queue.depth = 8;
    let finish = |ordered: bool| {
        let mut drive = Drive::new(&description, 0).unwrap();
        serve(&mut drive, 0, &read(1_000, 8));
        let far = Request { ordered, ..read(60_000, 8) };
        let done = serve_all(&mut drive, &[(LONG_NS, far), (LONG_NS + 1_000, read(1_000, 8))]);
        let at = |id| done.iter().find(|completion| completion.id == id).unwrap().at_ns;
        (at(0), at(1))
    };
    let (far_ns, hit_ns) = finish(false);
    assert!(hit_ns < far_ns, "a hit overtakes a simple command");
    let (ordered_ns, held_ns) = finish(true);
    assert!(held_ns >= ordered_ns.min(far_ns) - 8 * 12_800, "{held_ns} ns, before the ordered one at {ordered_ns} ns");
}
