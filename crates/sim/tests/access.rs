//! One command at a time: overheads, seek, rotation and transfer add up to an independent computation.

use crate::common::*;
use headstack_sim::drive::Drive;
use headstack_sim::drive::description::{AfterReadWrite, Disconnect, DriveDescription, ExtraDisconnect};
use headstack_workload::{Kind, Request};

/// Serves requests with pauses between them; calls `judge` with (issue, latency, request).
fn with_pauses(description: &DriveDescription, requests: &[Request], mut judge: impl FnMut(u64, u64, &Request)) {
    let mut drive = Drive::new(description, 0).unwrap();
    let (mut now_ns, mut dice) = (0, Dice(5));
    for request in requests {
        let response_ns = serve(&mut drive, now_ns, request);
        judge(now_ns, response_ns, request);
        now_ns += response_ns + 1 + dice.below(30 * MS);
    }
}

/// Returns reads and writes of 1 to `longest` sectors all over the test drive.
fn random_requests(count: usize, longest: u64) -> Vec<Request> {
    let mut dice = Dice(1);
    (0..count)
        .map(|_| {
            let sectors = 1 + dice.below(longest);
            let sector = dice.below(CYLINDERS * CYLINDER - sectors);
            if dice.below(2) == 0 { read(sector, sectors) } else { write(sector, sectors) }
        })
        .collect()
}

#[test]
fn responses_are_overhead_seek_rotation_and_transfer() {
    let mut description = bare_drive();
    description.mechanics.write_settle_ns = 300_000;
    description.mechanics.read_settle_ns = 50_000;
    description.geometry.zones = vec![zone(0, 499, TRACK as u32), zone(500, 999, 70)];
    description.geometry.zones[1].offset_turns = 0.4;
    description.geometry.logical_blocks = 2000 * (TRACK + 70);
    description.overheads.read_miss_ns = AfterReadWrite { after_read: 300_000, after_write: 400_000 };
    description.overheads.write_miss_ns = AfterReadWrite { after_read: 500_000, after_write: 600_000 };
    (description.overheads.read_completion_ns, description.overheads.write_completion_ns) = (10_000, 20_000);
    let end = 2000 * (TRACK + 70);
    let requests: Vec<Request> =
        random_requests(3000, 250).into_iter().filter(|r| r.offset_bytes / 512 + 250 < end).collect();
    let mut mechanism = Mechanism::at_rest(&description);
    let mut last_was_read = false;
    with_pauses(&description, &requests, |now_ns, response_ns, request| {
        let is_write = request.kind == Kind::Write;
        let (overhead, completion) = match (is_write, last_was_read) {
            (false, true) => (300_000, 10_000),
            (false, false) => (400_000, 10_000),
            (true, true) => (500_000, 20_000),
            (true, false) => (600_000, 20_000),
        };
        let start_ns = (now_ns + overhead) as f64;
        let (sector, sectors) = (request.offset_bytes / 512, u64::from(request.length_bytes) / 512);
        let (_, end_ns) = mechanism.access(start_ns, sector, sectors, is_write);
        assert_ns(response_ns, end_ns + completion as f64 - now_ns as f64, &format!("{request:?}"));
        last_was_read = !is_write;
    });
}

#[test]
fn mean_latency_is_half_a_turn_and_mean_seek_that_of_the_table() {
    let description = bare_drive();
    let result = run_closed(&description, line(512, 100.0, 100.0), 1, 100_000);
    let requests = result.count() as f64;
    assert_close(counter(&result, "rotation_ns") as f64 / requests, TURN_NS as f64 / 2.0, 1.0, "mean latency");
    let n = CYLINDERS as f64;
    let points = [(0.0, 0.0), (1.0, 1.5e6), (200.0, 4e6), (999.0, 10e6)];
    let seek = |d: f64| {
        let at = points.iter().rposition(|&(from, _)| from <= d).unwrap().min(2);
        let ((x0, y0), (x1, y1)) = (points[at], points[at + 1]);
        y0 + (y1 - y0) * (d - x0) / (x1 - x0)
    };
    let mut mean: f64 = (1..CYLINDERS).map(|d| 2.0 * (n - d as f64) / (n * n) * seek(d as f64)).sum();
    // Another surface of the same cylinder: a head switch.
    mean += 1.0 / n * 0.75 * MS as f64;
    assert_close(counter(&result, "seek_ns") as f64 / requests, mean, 1.0, "mean seek");
    assert_close(counter(&result, "transfer_ns") as f64 / requests, SECTOR_NS as f64, 0.1, "transfer");
    let expected = mean + TURN_NS as f64 / 2.0 + SECTOR_NS as f64;
    assert_close(result.mean_latency_ns(), expected, 1.0, "mean response");
}

#[test]
fn a_full_track_takes_one_turn_after_its_first_sector_comes() {
    let description = bare_drive();
    for i in 0..50 {
        let mut drive = Drive::new(&description, 0).unwrap();
        let now_ns = i * 1_234_567;
        let wait_ns = Mechanism::at_rest(&description).wait_ns(now_ns as f64, 0.0);
        assert_ns(serve(&mut drive, now_ns, &read(0, TRACK)), wait_ns + TURN_NS as f64, "a track");
    }
}

/// Sustained rate by the drive makers' formula: the sectors of a cylinder over its turns and its skews.
#[test]
fn sequential_reads_go_on_over_tracks_and_cylinders() {
    let description = bare_drive();
    let cylinders = 50;
    let cylinder_ns = HEADS * TURN_NS + (HEADS - 1) * TURN_NS * 17 / 100 + TURN_NS * 25 / 100;
    // One request: the last skew no longer belongs to it.
    let mut drive = Drive::new(&description, 0).unwrap();
    let whole_ns = serve(&mut drive, 0, &read(0, cylinders * CYLINDER));
    assert_ns(whole_ns, (cylinders * cylinder_ns - TURN_NS * 25 / 100) as f64, "one long read");
    // The same in 8 KiB requests, one after the other: nothing is lost between them.
    for sectors in [1, 16, 25] {
        let requests = cylinders * CYLINDER / sectors;
        let result = run_closed(&description, line(sectors as u32 * 512, 100.0, 0.0), 1, requests);
        let expected = (cylinders * cylinder_ns - TURN_NS * 25 / 100) as f64;
        assert_close(result.duration_ns as f64, expected, 0.001, &format!("reads of {sectors}"));
    }
}

#[test]
fn a_skew_too_small_for_the_switch_loses_a_turn() {
    let mut description = bare_drive();
    description.geometry.zones[0].track_skew_turns = 0.16; // 0.96 ms for a switch of 1 ms
    let mut drive = Drive::new(&description, 0).unwrap();
    let found_ns = serve(&mut drive, 0, &read(0, CYLINDER));
    let skews_ns = (HEADS - 1) * (TURN_NS * 16 / 100 + TURN_NS);
    assert_ns(found_ns, (HEADS * TURN_NS + skews_ns) as f64, "a cylinder");
}

/// Zero-latency access ends when every wanted sector has passed completely.
#[test]
fn access_on_arrival_ends_when_every_sector_has_passed() {
    for is_write in [false, true] {
        let mut description = bare_drive();
        (description.mechanics.read_on_arrival, description.mechanics.write_on_arrival) = (!is_write, is_write);
        for sectors in [1, 2, 30, 99, TRACK] {
            for i in 0..199 {
                let (now_ns, first) = (i * 1_000_003 + 17, if sectors > 50 { 0 } else { 13 });
                let mechanism = Mechanism::at_rest(&description);
                let passed_ns = (first..first + sectors)
                    .map(|sector| mechanism.wait_ns(now_ns as f64, sector as f64 / TRACK as f64) + SECTOR_NS as f64)
                    .fold(0.0, f64::max);
                let mut drive = Drive::new(&description, 0).unwrap();
                let command = if is_write { write(first, sectors) } else { read(first, sectors) };
                let found_ns = serve(&mut drive, now_ns, &command);
                assert_ns(found_ns, passed_ns, &format!("{sectors} sectors, arrival {i}"));
                assert!(found_ns <= TURN_NS + SECTOR_NS + 10);
            }
        }
    }
}

#[test]
fn writes_settle_only_after_arm_movement() {
    let mut description = bare_drive();
    description.mechanics.write_settle_ns = 700_000;
    let response = |command: &Request, settle_ns: u64, moved_ns: u64| {
        let mut drive = Drive::new(&description, 0).unwrap();
        let mechanism = Mechanism::at_rest(&description);
        let on_track = (moved_ns + settle_ns) as f64;
        let place = mechanism.place(command.offset_bytes / 512);
        let expected = on_track + mechanism.wait_ns(on_track, place.turns) + SECTOR_NS as f64;
        assert_ns(serve(&mut drive, 0, command), expected, &format!("{command:?}"));
    };
    response(&write(7, 1), 0, 0);
    response(&write(TRACK + 19, 1), 700_000, MS);
    response(&write(CYLINDER + 28, 1), 700_000, 1_500_000);
    response(&read(CYLINDER + 28, 1), 0, 1_500_000);
}

#[test]
fn minimum_seek_delay_holds_writes_and_settled_minimum_reads() {
    let mut description = bare_drive();
    description.overheads.minimum_seek_delay_ns = 1_700_000;
    description.overheads.write_miss_ns = AfterReadWrite { after_read: 200_000, after_write: 200_000 };
    description.overheads.read_settled_min_ns = AfterReadWrite { after_read: 1_900_000, after_write: 1_900_000 };
    description.overheads.read_miss_ns = AfterReadWrite { after_read: 100_000, after_write: 100_000 };
    // (sector, when the track is reached by a write and by a read): delays and overheads against seeks of 0, 1.5 and
    // 4 ms. The first two would pass before the delay is over, at 0.6 and 1.8 ms.
    let cases =
        [(10, 1_900_000, 1_900_000), (CYLINDER + 54, 1_900_000, 1_900_000), (200 * CYLINDER, 4_200_000, 4_100_000)];
    for (sector, write_ns, read_ns) in cases {
        for (command, on_track) in [(write(sector, 1), write_ns as f64), (read(sector, 1), read_ns as f64)] {
            let mut drive = Drive::new(&description, 0).unwrap();
            let mechanism = Mechanism::at_rest(&description);
            let wait = mechanism.wait_ns(on_track, mechanism.place(sector).turns);
            let expected = on_track + wait + SECTOR_NS as f64;
            assert_ns(serve(&mut drive, 0, &command), expected, &format!("{command:?}"));
        }
    }
}

fn emulating_drive(logical: u32) -> DriveDescription {
    let mut description = bare_drive();
    (description.geometry.logical_block_bytes, description.geometry.physical_sector_bytes) = (logical, 4096);
    description.geometry.logical_blocks = CYLINDERS * CYLINDER * u64::from(4096 / logical);
    description
}

/// 512e: a partially written physical sector is read, merged, and written one turn later.
#[test]
fn writing_part_of_a_sector_costs_one_more_turn() {
    let respond = |drive: &DriveDescription, command: &Request| {
        let mut drive = Drive::new(drive, 0).unwrap();
        (serve(&mut drive, 1_234_567, command), drive.counters().read_modify_writes)
    };
    let description = emulating_drive(512);
    let place = 77 * 4096;
    let (whole_ns, merged) = respond(&description, &request(Kind::Write, place, 4096));
    assert_eq!(merged, 0);
    let (part_ns, merged) = respond(&description, &request(Kind::Write, place + 512, 512));
    assert_eq!(merged, 1);
    assert_ns(part_ns, (whole_ns + TURN_NS) as f64, "512 bytes");
    // Three sectors, the first and the last of them partial.
    let (three_ns, _) = respond(&description, &request(Kind::Write, place, 3 * 4096));
    let (ragged_ns, merged) = respond(&description, &request(Kind::Write, place + 512, 2 * 4096));
    assert_eq!(merged, 1);
    assert_ns(ragged_ns, (three_ns + TURN_NS) as f64, "8 KiB from 512");
    // Reads need no merging.
    assert_eq!(respond(&description, &request(Kind::Read, place + 512, 512)), (whole_ns, 0));
    // A 4Kn drive is the same mechanism without this penalty.
    assert_eq!(respond(&emulating_drive(4096), &request(Kind::Write, place, 4096)), (whole_ns, 0));
}

/// A read goes to the host while it comes off the media: at the interface's rate from its first sector on, and never
/// complete before its last sector has been read.
#[test]
fn transfer_to_the_host_overlaps_the_media() {
    // Per byte: 5 times faster than the media (0.117 us a byte) and 2 times slower.
    for ns_per_byte in [23.4375, 234.375] {
        for watermark in [0.0, 0.5, 1.0] {
            let mut description = bare_drive();
            description.interface.read_ns_per_byte = ns_per_byte;
            description.buffer.read_watermark = watermark;
            let host_ns = 512.0 * ns_per_byte;
            let requests: Vec<Request> = (0..300).map(|i| read(i * 977 % 390_000 / TRACK * TRACK, 40)).collect();
            let mut mechanism = Mechanism::at_rest(&description);
            with_pauses(&description, &requests, |now_ns, response_ns, request| {
                let (first_ns, end_ns) = mechanism.access(now_ns as f64, request.offset_bytes / 512, 40, false);
                let sectors_first = (40.0 * watermark).floor().max(1.0);
                let ready_ns = first_ns + (sectors_first - 1.0) * SECTOR_NS as f64;
                let expected = f64::max(ready_ns + 40.0 * host_ns, end_ns + host_ns);
                assert_ns(response_ns, expected - now_ns as f64, &format!("{ns_per_byte} ns a byte, {watermark}"));
            });
        }
    }
}

/// A write-through write begins on the media once the buffer holds the watermark's share of it, and never so early that
/// the media would wait for the host: its last sector is there in time.
#[test]
fn transfer_from_the_host_overlaps_the_seek() {
    // Per byte: 1.7 times slower than the media, and 5 times faster.
    for (ns_per_byte, watermark) in [(200.0, 1.0), (200.0, 0.5), (200.0, 0.0), (23.4375, 0.5), (23.4375, 0.0)] {
        writes_begin_once_their_data_are_there(ns_per_byte, watermark);
    }
}

fn writes_begin_once_their_data_are_there(ns_per_byte: f64, watermark: f64) {
    let mut description = bare_drive();
    description.interface.write_ns_per_byte = ns_per_byte;
    description.overheads.data_preparation_ns = 50_000;
    description.buffer.write_watermark = watermark;
    let host_ns = 512.0 * ns_per_byte;
    let mark = (16.0 * watermark).floor().max(1.0);
    let not_overtaking_ns = 16.0 * host_ns - 15.0 * SECTOR_NS as f64;
    let in_buffer_ns = if mark == 16.0 { 16.0 * host_ns } else { f64::max(mark * host_ns, not_overtaking_ns) };
    let data_ns = 50_000.0 + in_buffer_ns;
    let requests: Vec<Request> = (0..300).map(|i| write(i * 7_919 % 3990 * TRACK, 16)).collect();
    let mut mechanism = Mechanism::at_rest(&description);
    with_pauses(&description, &requests, |now_ns, response_ns, request| {
        let place = mechanism.place(request.offset_bytes / 512);
        let ready = f64::max(now_ns as f64 + mechanism.position_ns(place, true), now_ns as f64 + data_ns);
        let expected = ready + mechanism.wait_ns(ready, place.turns) + 16.0 * SECTOR_NS as f64;
        (mechanism.cylinder, mechanism.head) = (place.cylinder, place.head);
        assert_ns(response_ns, expected - now_ns as f64, &format!("{request:?}"));
    });
}

#[test]
fn disconnections_add_their_times() {
    let mut description = bare_drive();
    description.overheads.read_miss_ns = AfterReadWrite { after_read: 100_000, after_write: 100_000 };
    description.overheads.write_miss_ns = AfterReadWrite { after_read: 100_000, after_write: 100_000 };
    let disconnect = Disconnect {
        read_ns: AfterReadWrite { after_read: 30_000, after_write: 9 * MS },
        write_ns: 8 * MS,
        first_reselect_ns: 70_000,
        other_reselect_ns: 110_000,
        extra: None,
    };
    description.interface.disconnect = Some(disconnect);
    // On cylinder 0, surface 0, at time 0: sector 50 ends 3.06 ms after the start of the turn.
    let (media_ns, command_ns) = (51.0 * SECTOR_NS as f64, 100_000.0);
    let respond = |description: &DriveDescription, commands: &[Request]| {
        let mut drive = Drive::new(description, 0).unwrap();
        let mut issue_ns = 0;
        commands.iter().fold(0, |_, command| {
            let response_ns = serve(&mut drive, issue_ns, command);
            // The next command finds the same angle.
            issue_ns = (issue_ns + response_ns).div_ceil(TURN_NS) * TURN_NS;
            response_ns
        })
    };
    // A read after a write (as at power-on) releases the bus for longer than its media access takes.
    assert_ns(respond(&description, &[read(50, 1)]), command_ns + 9e6 + 70_000.0, "a read off the bus for long");
    let after_read = [read(20, 1), read(50, 1)];
    assert_ns(respond(&description, &after_read), media_ns + 70_000.0, "a read off the bus for short");
    let after_read = [read(20, 1), write(50, 1)];
    assert_ns(respond(&description, &after_read), command_ns + 8e6 + 70_000.0, "a write off the bus for long");
    description.interface.disconnect = Some(Disconnect { write_ns: 10_000, ..disconnect });
    assert_ns(respond(&description, &after_read), media_ns + 70_000.0, "a write off the bus for short");
    // A write that disconnects twice; only one that does not continue the previous write, or follow a read.
    let extra = ExtraDisconnect {
        command_ns: 500_000,
        disconnect_ns: 40_000,
        between_ns: 200_000,
        second_disconnect_ns: 5 * MS,
        seek_delta_ns: 0,
    };
    description.interface.disconnect = Some(Disconnect { extra: Some(extra), ..disconnect });
    let twice = 500_000.0 + 40_000.0 + 200_000.0 + 70_000.0 + 5e6 + 110_000.0;
    assert_ns(respond(&description, &[write(50, 1)]), twice, "a write that disconnects twice");
    assert_ns(respond(&description, &after_read), command_ns + 8e6 + 70_000.0, "a write after a read");
}
