//! A drive of 3D XPoint: data are overwritten in place.

use headstack_sim::ssd::description::{Flash, FlashState, Medium, SlcCache, SsdDescription, Timing};
use headstack_sim::ssd::{Ssd, check};
use headstack_workload::{Kind, Request};

use crate::common::flash::{COMMAND_NS, UNIT, small_ssd};
use crate::common::{Dice, US, request};

const ACCESS_NS: u64 = 4 * US;

/// Returns the test drive with a memory that reads and writes a unit in 4 us.
fn xpoint(state: FlashState) -> SsdDescription {
    let drive = small_ssd();
    SsdDescription {
        medium: Medium::XPoint,
        flash: Flash { planes_per_die: 1, page_bytes: UNIT as u32, blocks_per_plane: 512, ..drive.flash },
        timing: Timing { read_ns: ACCESS_NS, program_ns: ACCESS_NS, erase_ns: 0, ..drive.timing },
        state,
        ..drive
    }
}

/// Runs `count` requests at a queue depth; returns the time that they took.
fn time_ns(drive: &mut Ssd, from_ns: u64, count: u32, depth: u32, mut next: impl FnMut(u32) -> Request) -> u64 {
    let (mut now_ns, mut issued, mut done) = (from_ns, 0, 0);
    while done < count {
        while issued < count && issued - done < depth {
            drive.submit(now_ns, issued, &next(issued));
            issued += 1;
        }
        now_ns = drive.next_event_ns();
        drive.advance(now_ns, |_| done += 1);
    }
    now_ns - from_ns
}

/// Overwrites random units twice the capacity; returns the time of the first and of the second half.
fn halves_ns(description: &SsdDescription) -> (u64, u64, Ssd) {
    let mut drive = Ssd::new(description, 5).unwrap();
    let units = drive.capacity_bytes() / UNIT;
    let mut dice = Dice(9);
    let mut next = |_| request(Kind::Write, dice.below(units) * UNIT, UNIT);
    let first_ns = time_ns(&mut drive, 0, units as u32, 64, &mut next);
    let second_ns = time_ns(&mut drive, first_ns, units as u32, 64, &mut next);
    (first_ns, second_ns, drive)
}

#[test]
fn xpoint_has_neither_collection_nor_a_steady_state_of_its_own() {
    let states = [FlashState::Fresh, FlashState::Filled, FlashState::Steady];
    let times: Vec<u64> = states
        .map(|state| halves_ns(&xpoint(state)))
        .map(|(first_ns, second_ns, drive)| {
            let counters = drive.counters();
            assert_eq!((counters.moved_units, counters.erases, counters.erases_max), (0, 0, 0));
            assert_eq!(drive.description().medium, Medium::XPoint);
            let ratio = second_ns as f64 / first_ns as f64;
            assert!((0.99..1.01).contains(&ratio), "the second overwrite takes {ratio} times the first");
            first_ns
        })
        .to_vec();
    assert!(times.iter().all(|&time_ns| time_ns == times[0]), "{times:?}");
    // Flash of the same size slows down.
    let (first_ns, second_ns, flash) = halves_ns(&small_ssd());
    assert!(second_ns > first_ns * 11 / 10 && flash.counters().moved_units > 0, "{first_ns} {second_ns}");
}

#[test]
fn xpoint_writes_as_fast_as_it_reads() {
    let mut drive = Ssd::new(&xpoint(FlashState::Filled), 1).unwrap();
    let units = drive.capacity_bytes() / UNIT;
    let mut dice = Dice(3);
    let reads_ns = time_ns(&mut drive, 0, 40_000, 64, |_| request(Kind::Read, dice.below(units) * UNIT, UNIT));
    let writes_ns = time_ns(&mut drive, reads_ns, 40_000, 64, |_| request(Kind::Write, dice.below(units) * UNIT, UNIT));
    let ratio = writes_ns as f64 / reads_ns as f64;
    assert!((0.9..1.1).contains(&ratio), "writes take {ratio} times as long");
}

#[test]
fn xpoint_keeps_a_unit_on_its_die() {
    let mut drive = Ssd::new(&xpoint(FlashState::Filled), 1).unwrap();
    // The 8 dies hold consecutive units in turn: overwrites of every eighth unit use one die.
    let spread_ns = time_ns(&mut drive, 0, 4_000, 32, |index| request(Kind::Write, u64::from(index) * UNIT, UNIT));
    let one_ns =
        time_ns(&mut drive, spread_ns, 4_000, 32, |index| request(Kind::Write, u64::from(index) * 8 * UNIT, UNIT));
    assert!(one_ns > 4 * spread_ns, "{one_ns} on one die, {spread_ns} on all");
}

#[test]
fn xpoint_overwrites_a_part_of_a_unit_without_a_read() {
    let mut drive = Ssd::new(&xpoint(FlashState::Filled), 1).unwrap();
    time_ns(&mut drive, 0, 100, 1, |index| request(Kind::Write, u64::from(index) * UNIT, 512));
    assert_eq!((drive.counters().partial_writes, drive.counters().page_reads), (0, 0));
    // Trimmed data need no read of the medium.
    time_ns(&mut drive, 1 << 40, 1, 1, |_| request(Kind::Trim, 0, UNIT));
    let gone_ns = time_ns(&mut drive, 1 << 41, 1, 1, |_| request(Kind::Read, 0, UNIT));
    assert_eq!(gone_ns, COMMAND_NS + UNIT / 4);
}

#[test]
fn xpoint_has_no_slc_cache_and_no_rows_of_several_units() {
    let refused = |change: fn(&mut SsdDescription)| {
        let mut description = xpoint(FlashState::Fresh);
        check(&description).unwrap();
        change(&mut description);
        check(&description).unwrap_err().to_string()
    };
    let slc = |description: &mut SsdDescription| {
        let cache = SlcCache {
            static_bytes: 1 << 20,
            dynamic_bytes: 0,
            bits_per_cell: 3,
            read_ns: 1,
            program_ns: 1,
            idle_ns: None,
        };
        description.slc_cache = Some(cache);
    };
    assert!(refused(slc).contains("3D XPoint has no SLC cache"));
    assert!(refused(|drive| drive.flash.planes_per_die = 2).contains("a die of 3D XPoint accesses 8192 bytes"));
    assert!(refused(|drive| drive.flash.pages_per_program = 3).contains("1 is allowed for 3D XPoint"));
    assert!(refused(|drive| drive.capacity.logical_bytes = 2 << 30).contains("at most the memory, 1073741824 bytes"));
}
