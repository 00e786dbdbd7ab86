//! Partial parity logs: what they write and when, and what a power loss leaves.

use headstack_sim::SystemDescription;
use headstack_sim::array::PassKind;
use headstack_sim::array::description::{ArrayDescription, Bitmap, Level, Lun, PartialParityLog};
use headstack_sim::device::DeviceDescription;
use headstack_sim::drive::description::{DriveDescription, Policy, WriteCache};
use headstack_workload::{Kind, Request};

use crate::common::arrays::{UNIT, array, capacity, group, request};
use crate::common::bench::Bench;
use crate::common::flash::small_ssd;
use crate::common::{MS, bare_drive, queueing_drive};

const KIB: u64 = 1 << 10;
/// Rows of chunks in the place of the log.
const LOG_ROWS: u64 = 3;

/// Four drives in RAID 5 with a log of the least size.
fn logged(drive: DriveDescription) -> ArrayDescription {
    let mut logged = group(Level::Raid5, 0..4, 1);
    logged.ppl = Some(PartialParityLog { area_bytes: 132 * KIB });
    assert_eq!(logged.log_bytes(), LOG_ROWS * 3 * UNIT);
    with_luns(logged, drive)
}

/// The same LUN without a log.
fn plain(drive: DriveDescription) -> ArrayDescription {
    with_luns(group(Level::Raid5, 0..4, 1), drive)
}

fn with_luns(group: headstack_sim::array::description::Group, drive: DriveDescription) -> ArrayDescription {
    let start_bytes = LOG_ROWS * 3 * UNIT;
    let length_bytes = capacity(Level::Raid5, 4, 1) - start_bytes;
    let mut array = array(group, length_bytes);
    array.luns[0] = Lun { start_bytes, ..array.luns[0].clone() };
    array.devices[0] = DeviceDescription::Disk(drive);
    array
}

/// A drive with a volatile write cache.
fn caching_drive() -> DriveDescription {
    let mut drive = queueing_drive(Policy::Fcfs, 64);
    (drive.buffer.write_cache, drive.buffer.dirty_extents_max) = (WriteCache::On, 8);
    drive
}

fn write(offset_bytes: u64, length_bytes: u64) -> Request {
    request(Kind::Write, offset_bytes, length_bytes)
}

/// Returns the bytes that members read and write, in order: (member, bytes read, bytes written).
fn steps(bench: &mut Bench, request: &Request) -> Vec<(usize, u64, u64)> {
    let seen = |bench: &Bench| bench.health().iter().map(|one| (one.read_bytes, one.written_bytes)).collect::<Vec<_>>();
    let mut before = seen(bench);
    let mut steps = vec![];
    bench.submit(request);
    loop {
        let now = seen(bench);
        for (member, (old, new)) in before.iter().zip(&now).enumerate() {
            if old != new {
                steps.push((member, new.0 - old.0, new.1 - old.1));
            }
        }
        before = now;
        let next_ns = bench.system.next_event_ns();
        if next_ns == u64::MAX {
            return steps;
        }
        bench.run_to(next_ns);
    }
}

fn counted(bench: &Bench, name: &str) -> u64 {
    bench.system.snapshot().counters().find(|counter| counter.0 == name).expect("a counter of that name").1
}

/// Row 3 has its parity on member 0. The rest of the row is read, a header and a page of partial parity are logged on
/// the parity member, and only then data and parity are written.
#[test]
fn partial_parity_is_logged_before_data_and_parity() {
    let mut bench = Bench::from(&logged(bare_drive()));
    let small = steps(&mut bench, &write(0, 4096));
    assert_eq!(small, [(2, 4096, 0), (3, 4096, 0), (0, 0, 8192), (0, 0, 4096), (1, 0, 4096)]);
    // A whole stripe has no partial parity: a header alone.
    let whole = steps(&mut bench, &write(0, 3 * UNIT));
    assert_eq!(whole, [(0, 0, 4096), (0, 0, UNIT), (1, 0, UNIT), (2, 0, UNIT), (3, 0, UNIT)]);
    assert_eq!([counted(&bench, "ppl_writes"), counted(&bench, "ppl_bytes")], [2, 8192 + 4096]);
    // Without a log, the same writes but for these.
    let mut bench = Bench::from(&plain(bare_drive()));
    assert_eq!(steps(&mut bench, &write(0, 4096)), [small[0], small[1], small[3], small[4]]);
}

/// The reads, the log, and the slower of data and parity: each as a drive alone takes.
#[test]
fn the_latency_of_a_write_is_the_sum_of_its_parts() {
    let at = LOG_ROWS * UNIT;
    let mut alone = Bench::from(&bare_drive());
    let read_ns = alone.takes_ns(&request(Kind::Read, at, 4096));
    let mut parity = Bench::from(&bare_drive());
    parity.now_ns = read_ns;
    let log_ns = parity.takes_ns(&write(0, 8192));
    let parity_ns = parity.takes_ns(&write(at, 4096));
    let mut data = Bench::from(&bare_drive());
    data.now_ns = read_ns + log_ns;
    let data_ns = data.takes_ns(&write(at, 4096));
    let took_ns = Bench::from(&logged(bare_drive())).takes_ns(&write(0, 4096));
    assert_eq!(took_ns, read_ns + log_ns + parity_ns.max(data_ns));
    assert!(log_ns > 0);
}

/// One unit of a member is in progress; stripes that arrive meanwhile share the next one.
#[test]
fn stripes_that_arrive_during_a_unit_share_the_next() {
    let mut bench = Bench::from(&logged(bare_drive()));
    bench.submit(&write(0, 4096));
    while counted(&bench, "ppl_writes") == 0 {
        let next_ns = bench.system.next_event_ns();
        bench.run_to(next_ns);
    }
    // Rows 7, 11 and 15 have their parity on the same member. Whole stripes need no reads, and log a header alone.
    for row in [4, 8, 12] {
        bench.submit(&write(row * 3 * UNIT, 3 * UNIT));
    }
    bench.settle();
    assert_eq!([counted(&bench, "ppl_writes"), counted(&bench, "ppl_bytes")], [2, 8192 + 4096]);
    assert_eq!(counted(&bench, "parity_writes"), 4);
}

/// SSDs whose cache loses data at a power loss are flushed after the stripes of a unit; the write does not wait for it.
#[test]
fn members_are_flushed_before_the_next_unit() {
    let mut ssd = small_ssd();
    ssd.buffer.power_loss_protected = false;
    let volatile = |array: ArrayDescription| {
        let mut array = array;
        array.devices[0] = DeviceDescription::Ssd(ssd.clone());
        let mut bench = Bench::from(&array);
        bench.takes_ns(&write(0, 4096));
        let at_once = bench.volatile();
        bench.settle();
        (at_once, bench.volatile())
    };
    let at_risk = vec![(0, 4096)];
    assert_eq!(volatile(plain(bare_drive())), (at_risk.clone(), at_risk.clone()));
    assert_eq!(volatile(logged(bare_drive())), (at_risk, vec![]));
}

fn cut_during_a_write(array: &ArrayDescription) -> (Option<PassKind>, bool) {
    let mut bench = Bench::from(array);
    bench.submit(&write(0, 4096));
    bench.run_to(MS);
    let halves = bench.system.leaves_halves();
    bench.system.power_fails(bench.now_ns);
    bench.now_ns += 1000 * MS;
    bench.system.power_cycle(bench.now_ns);
    let pass = bench.system.gauges(bench.now_ns).groups[0].pass.map(|pass| pass.kind);
    // It serves requests again, and its log works.
    bench.takes_ns(&write(0, 4096));
    bench.settle();
    (pass, halves)
}

#[test]
fn a_log_closes_the_write_hole_without_a_resync() {
    assert_eq!(cut_during_a_write(&plain(bare_drive())), (Some(PassKind::Resync), true));
    assert_eq!(cut_during_a_write(&logged(bare_drive())), (None, false));
}

/// A member fails at every event of a write: the write ends, and so do those after it.
#[test]
fn writes_end_when_a_member_fails_at_any_event() {
    use headstack_sim::array::description::IncidentKind;
    for member in 0..4 {
        let mut bench = Bench::from(&logged(caching_drive()));
        let mut events = 0;
        loop {
            let mut attempt = bench.clone();
            attempt.system.strike(attempt.now_ns, IncidentKind::MemberFails { member }).unwrap();
            (0..4).for_each(|row| _ = attempt.submit(&write(row * 12 * UNIT, 4096)));
            let done = attempt.settle().len();
            assert!(done >= 4 && attempt.failed().is_empty(), "member {member}, event {events}: {done}");
            if events == 0 {
                (0..6).for_each(|row| _ = bench.submit(&write(row * 6 * UNIT, 8192)));
            }
            let next_ns = bench.system.next_event_ns();
            if next_ns == u64::MAX {
                break;
            }
            bench.run_to(next_ns);
            events += 1;
        }
        assert!(events > 10, "{events}");
    }
}

#[test]
fn impossible_logs_are_refused_in_one_line() {
    let error = |change: &dyn Fn(&mut ArrayDescription)| {
        let mut array = logged(bare_drive());
        change(&mut array);
        SystemDescription::Array(array).check().unwrap_err().to_string()
    };
    for (change, expected) in [
        (
            &(|array: &mut ArrayDescription| array.groups[0].level = Level::Raid6) as &dyn Fn(&mut ArrayDescription),
            "needs level raid5 with one span, not raid6",
        ),
        (
            &|array: &mut ArrayDescription| {
                array.groups[0].bitmap = Some(Bitmap { chunk_bytes: UNIT, daemon_ns: 1, safe_mode_ns: 1 });
            },
            "a group with a partial parity log has no bitmap",
        ),
        (
            &|array: &mut ArrayDescription| array.groups[0].ppl = Some(PartialParityLog { area_bytes: 4096 }),
            "4096 bytes are not allowed; must be 135168 to",
        ),
        (&|array: &mut ArrayDescription| array.luns[0].start_bytes = 0, "begins in the partial parity log"),
        (
            &|array: &mut ArrayDescription| {
                array.members = (0..65)
                    .map(|at| headstack_sim::array::description::Member {
                        name: format!("d{at}"),
                        ..array.members[0].clone()
                    })
                    .collect();
                array.groups[0].members = (0..65).collect();
            },
            "on 65 drives is not allowed; must be up to 64",
        ),
    ] {
        let message = error(change);
        assert!(message.contains(expected) && !message.contains('\n'), "{message}");
    }
}
