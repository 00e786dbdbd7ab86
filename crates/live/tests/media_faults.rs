//! Faults of the media and of arrays on the timeline: the mechanism is held, requests fail, redundancy helps.

use crate::common::*;
use headstack_sim::SystemDescription;
use headstack_sim::device::DeviceDescription;
use headstack_sim::faults::{Fault, FaultEffect, Stretch};
use headstack_sim::{Model, Outcome};
use headstack_workload::{DurationNs, Request};

/// A turn of a drive's spindle, rounded up.
fn turn_ns(model: &Model) -> u64 {
    let Model::System(SystemDescription::Drive(DeviceDescription::Disk(disk))) = model else { panic!("not a disk") };
    (60e9 / disk.mechanics.rpm).ceil() as u64
}

fn media(what: &str, more: &str) -> String {
    format!(
        "[[fault]]\nat = \"1s\"\nwhat = \"{what}\"\nranges = [{{ offset = \"10GiB\", length = \"64KiB\" }}]\n{more}"
    )
}

/// Reads far apart, each at rest: the second lies where it is bad.
fn apart(request: Request) -> [(u64, Request); 3] {
    [(2 * S, read(50 * GIB)), (4 * S, request), (100 * S, read(50 * GIB + 8 * KIB))]
}

#[test]
fn a_weak_sector_costs_its_turns() {
    let disk = model("wd1200bb");
    let arrivals = apart(read(10 * GIB + 4 * KIB));
    let well = answers(&disk, "", &arrivals, 200 * S);
    for turns in [1, 7] {
        let weak = answers(&disk, &media("weak-sectors", &format!("turns = {turns}\n")), &arrivals, 200 * S);
        let late_ns = weak[1].unwrap().took_ns() - well[1].unwrap().took_ns();
        let expected = turns * turn_ns(&disk);
        assert!(late_ns.abs_diff(expected) <= turns, "{late_ns} ns for {turns} turns of {}", turn_ns(&disk));
        assert_eq!((weak[0], weak[1].unwrap().outcome), (well[0], Outcome::Done));
    }
}

#[test]
fn a_media_error_takes_the_drives_own_time_and_then_fails() {
    let bad = 10 * GIB + 4 * KIB;
    // Who stands alone tries for long; a SCSI drive is limited; both can be told otherwise.
    for (name, more, time_ns) in [
        ("wd1200bb", "", 30 * S),
        ("atlas-10k-9", "", 7 * S),
        ("wd1200bb", "recovery = \"limited\"\n", 7 * S),
        ("wd1200bb", "time = \"1.5s\"\n", 1500 * MS),
    ] {
        let disk = model(name);
        let text = media("media-error", more).replace("10GiB", "1GiB");
        let text = text.as_str();
        let bad = bad - 9 * GIB;
        let arrivals = [(4 * S, read(bad)), (100 * S, read(2 * GIB))];
        let well = answers(&disk, "", &arrivals, 200 * S)[0].unwrap();
        let failed = answers(&disk, text, &arrivals, 200 * S)[0].unwrap();
        assert_eq!(failed.outcome, Outcome::Failed(Some(bad)), "{name}");
        // Up to the sector it is the same; no data pass the link.
        let late_ns = failed.took_ns() as i64 - well.took_ns() as i64;
        assert!((late_ns - time_ns as i64).abs() < 2 * MS as i64, "{name}: {late_ns} ns");
    }
}

#[test]
fn who_is_behind_a_drive_that_tries_waits_and_a_write_heals() {
    let disk = model("wd1200bb");
    let bad = 10 * GIB;
    let mut session = Virtual::new(&disk, &media("media-error", "time = \"7s\"\n"));
    session.arrive(2 * S, read(bad));
    session.arrive(2 * S + MS, read(60 * GIB));
    session.advance(60 * S);
    assert_eq!(session.answer(0).unwrap().outcome, Outcome::Failed(Some(bad)));
    let behind_ns = session.took_ns(1);
    assert!(behind_ns > 7 * S, "it waits for the arm: {behind_ns}");
    session.arrive(61 * S, forced(bad));
    session.advance(62 * S);
    assert!(session.took_ns(2) < S);
    session.arrive(63 * S, read(bad));
    session.advance(80 * S);
    assert!(session.took_ns(3) < S, "healed");
    let log = session.timeline.injections();
    let [ref injection] = log.injections[..] else { panic!("one fault") };
    assert_eq!((injection.met, injection.failed), (2, 1), "reads of the range, the healed one too");
    let first = injection.first.unwrap();
    assert_eq!((first.offset_bytes, first.deed, first.arrival_ns), (bad, FaultEffect::Failed, 2 * S));
    assert_eq!(first.completion_ns, session.answer(0).map(|answer| answer.at_ns));
    assert_eq!(injection.last.unwrap().deed, FaultEffect::Accessed);
    assert_eq!(injection.counters.unwrap().uncorrectable_errors, 1);
}

#[test]
fn a_drive_that_fails_slowly_holds_its_arm() {
    let disk = model("wd1200bb");
    let text = "[[fault]]\nat = \"1s\"\nfor = \"9s\"\nwhat = \"fail-slow\"\ntime = \"200ms\"\n";
    let arrivals = [(S / 2, read(0)), (4 * S, read(50 * GIB)), (4 * S + US, read(20 * GIB)), (30 * S, read(0))];
    let (well, slow) = (answers(&disk, "", &arrivals, 60 * S), answers(&disk, text, &arrivals, 60 * S));
    assert_eq!((slow[0], slow[3].unwrap().outcome), (well[0], Outcome::Done));
    assert_eq!(slow[1].unwrap().took_ns() - well[1].unwrap().took_ns(), 200 * MS);
    assert!(slow[2].unwrap().took_ns() > 400 * MS, "it waits for the one before");
    assert!(slow[3].unwrap().took_ns() < 100 * MS, "it is over");
}

#[test]
fn faults_of_one_device_add_up_and_end_one_by_one() {
    let disk = model("wd1200bb");
    let slow = |from: &str, to: &str, ms: u64| {
        format!("[[fault]]\nat = \"{from}\"\nuntil = \"{to}\"\nwhat = \"fail-slow\"\ntime = \"{ms}ms\"\n")
    };
    let text = slow("1s", "20s", 100) + &slow("5s", "10s", 1000);
    let arrivals: Vec<(u64, Request)> = [2, 6, 11, 21].iter().map(|&s| (s * S, read(s * 4 * GIB))).collect();
    let (well, bad) = (answers(&disk, "", &arrivals, 60 * S), answers(&disk, &text, &arrivals, 60 * S));
    let late = |number: usize| bad[number].unwrap().took_ns().abs_diff(well[number].unwrap().took_ns());
    // The spindle turns on meanwhile: the next request finds it at another angle.
    let about = |number: usize, ms: u64| late(number).abs_diff(ms * MS) <= turn_ns(&disk);
    assert!(late(0) == 100 * MS && about(1, 1100) && about(2, 100) && about(3, 0), "{bad:?}");
}

#[test]
fn an_array_reads_elsewhere_heals_its_member_and_rebuilds_one_that_returns() {
    let array = model("md-raid5-8x2tb");
    let text = "[[fault]]\nat = \"1s\"\nwhat = \"media-error\"\nmember = \"d2\"\n\
                ranges = [{ offset = 0, length = \"1GiB\" }]\n\
                [[fault]]\nat = \"100s\"\nwhat = \"member-fails\"\nmember = \"d5\"\n\
                [[fault]]\nat = \"200s\"\nwhat = \"member-returns\"\nmember = \"d5\"\n";
    let mut session = Virtual::new(&array, text);
    let health = |session: &Virtual| session.timeline.gauges(0).unwrap().groups[0].clone();
    for number in 0..64 {
        session.arrive(2 * S + number * 512 * KIB, read(number * 512 * KIB));
    }
    session.advance(99 * S);
    assert!((0..64).all(|number| session.answer(number).unwrap().outcome == Outcome::Done));
    let limited = session.answers.iter().filter(|answer| answer.took_ns() > 7 * S).count();
    assert!(limited >= 1, "the member's limited retry time comes first");
    let log = session.timeline.injections();
    assert!(log.injections[0].counters.unwrap().uncorrectable_errors >= 1);
    session.advance(150 * S);
    assert_eq!(health(&session).state, headstack_sim::gauges::GroupHealth::Degraded);
    session.advance(260 * S);
    assert_eq!(health(&session).state, headstack_sim::gauges::GroupHealth::Rebuilding);
    assert!(health(&session).rebuilt_bytes > 0);
}

#[test]
fn what_no_redundancy_brings_back_fails() {
    let array = model("mark5c-module");
    let text = "[[fault]]\nat = \"1s\"\nwhat = \"member-fails\"\nmember = \"d1\"\n";
    let mut session = Virtual::new(&array, text);
    for number in 0..32 {
        session.arrive(2 * S + number * US, read(number * 64 * KIB));
    }
    session.advance(100 * S);
    let failed = session.answers.iter().filter(|answer| matches!(answer.outcome, Outcome::Failed(Some(_)))).count();
    assert_eq!(session.answers.len(), 32);
    assert!((1..32).contains(&failed), "{failed} of 32 fail: those on the member that is gone");
}

#[test]
fn a_fault_can_be_given_without_text() {
    let mut session = Virtual::new(&model("wd1200bb"), "");
    let fault = Fault::MediaError {
        member: None,
        ranges: vec![Stretch { lba: Some(8), ..Stretch::default() }],
        map: None,
        percent: None,
        kinds: vec![],
        recovery: None,
        time: Some(DurationNs(1_000_000_000)),
        permanent: false,
    };
    session.timeline.inject(S, fault, None).unwrap();
    session.arrive(2 * S, read(4 * KIB));
    session.arrive(4 * S, read(0));
    session.advance(10 * S);
    assert_eq!(session.answer(0).unwrap().outcome, Outcome::Failed(Some(4 * KIB)));
    assert_eq!(session.answer(1).unwrap().outcome, Outcome::Done);
}
