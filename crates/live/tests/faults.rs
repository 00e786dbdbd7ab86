//! Faults between a system and who asks it, on the timeline: what they do, to the nanosecond.

use crate::common::*;
use headstack_sim::Outcome;
use headstack_sim::faults::{Fault, FaultEffect, FaultHit, FaultsToEnd, RequestKind};
use headstack_workload::Request;

/// When each of the reads that come each millisecond and a half is answered.
fn reads_each(ns: u64, count: u64) -> Vec<(u64, Request)> {
    (0..count).map(|number| (number * ns + 500_000, read(number * 4096))).collect()
}

#[test]
fn a_spike_makes_answers_late_while_it_lasts() {
    let text = "[[fault]]\nat = \"10ms\"\nfor = \"10ms\"\nwhat = \"latency-spike\"\ntime = \"5ms\"\n\
                kinds = [\"read\"]\nranges = [{ offset = 0, length = \"64KiB\" }]\n";
    let arrivals = [
        (9 * MS, read(0)),
        (11 * MS, read(0)),
        (12 * MS, read(64 * KIB)),
        (13 * MS, write(0)),
        (19 * MS, read(60 * KIB)),
        (21 * MS, read(0)),
    ];
    let took: Vec<u64> =
        answers(&constant(), text, &arrivals, S).iter().map(|answer| answer.unwrap().took_ns()).collect();
    assert_eq!(took, [MS, 6 * MS, MS, MS, 6 * MS, MS]);
}

#[test]
fn a_share_of_the_requests_meets_a_spike_that_is_drawn() {
    let spike = |seed: u64, distribution: &str| {
        let text = format!(
            "seed = {seed}\n[[fault]]\nat = \"0s\"\nwhat = \"latency-spike\"\ntime = \"20ms\"\npercent = 30\n\
             distribution = \"{distribution}\"\n"
        );
        let answers = answers(&constant(), &text, &reads_each(2 * MS, 4000), 100 * S);
        answers.iter().map(|answer| answer.unwrap().took_ns() - MS).collect::<Vec<u64>>()
    };
    let fixed = spike(7, "fixed");
    assert!(fixed.iter().all(|late| [0, 20 * MS].contains(late)));
    let late = fixed.iter().filter(|late| **late > 0).count();
    assert!((1100..1300).contains(&late), "{late} of 4000");
    let drawn: Vec<u64> = spike(7, "exponential").into_iter().filter(|late| *late > 0).collect();
    let mean_ns = drawn.iter().sum::<u64>() / drawn.len() as u64;
    assert!((18 * MS..22 * MS).contains(&mean_ns), "{mean_ns}");
    assert!(drawn.iter().any(|late| *late > 60 * MS) && drawn.iter().any(|late| *late < 2 * MS));
    assert!(spike(7, "exponential") == spike(7, "exponential"));
    assert!(spike(7, "exponential") != spike(8, "exponential"));
}

#[test]
fn an_added_fault_does_not_change_the_draws_of_others() {
    let spike = "[[fault]]\nat = \"0s\"\nwhat = \"latency-spike\"\ntime = \"3ms\"\npercent = 50\nkinds = [\"read\"]\n";
    let other = "[[fault]]\nat = \"1s\"\nwhat = \"latency-spike\"\ntime = \"1ms\"\npercent = 50\nkinds = [\"write\"]\n";
    let arrivals: Vec<(u64, Request)> = (0..2000)
        .map(|number| (number * 2 * MS + number * 7, if number % 2 == 0 { read(0) } else { write(0) }))
        .collect();
    let reads = |text: &str| {
        let answers = answers(&constant(), text, &arrivals, 100 * S);
        answers.into_iter().step_by(2).map(|answer| answer.unwrap().at_ns).collect::<Vec<u64>>()
    };
    assert!(reads(spike) == reads(&format!("{spike}{other}")));
}

#[test]
fn a_hang_holds_matching_requests_until_its_end() {
    let text = "[[fault]]\nat = \"10ms\"\nuntil = \"1s\"\nwhat = \"hang\"\nkinds = [\"write\", \"flush\"]\n";
    let mut session = Virtual::new(&constant(), text);
    session.arrive(9_500_000, write(0)); // Under way when it begins.
    session.arrive(20 * MS, read(0));
    session.arrive(21 * MS, write(0));
    session.arrive(22 * MS, flush());
    session.arrive(999_500_000, write(4096)); // Not ready when it ends.
    session.advance(S - 1);
    assert_eq!(session.answers.iter().map(|answer| answer.number).collect::<Vec<_>>(), [1]);
    assert_eq!(session.took_ns(1), MS);
    session.advance(2 * S);
    let times: Vec<(usize, u64)> = session.answers[1..].iter().map(|answer| (answer.number, answer.at_ns)).collect();
    assert_eq!(times, [(0, S), (2, S), (3, S), (4, S + 500_000)]);
    let log = session.timeline.injections();
    assert_eq!((log.injections[0].met, log.injections[0].until_ns), (3, Some(S)));
    let first = FaultHit {
        kind: RequestKind::Write,
        offset_bytes: 0,
        length_bytes: 4096,
        arrival_ns: 9_500_000,
        completion_ns: Some(S),
        deed: FaultEffect::Held,
    };
    assert_eq!(log.injections[0].first, Some(first));
    let last = FaultHit { kind: RequestKind::Flush, length_bytes: 0, arrival_ns: 22 * MS, ..first };
    assert_eq!(log.injections[0].last, Some(last));
}

#[test]
fn a_hang_is_released_by_order_and_another_one_holds_on() {
    let mut session = Virtual::new(&constant(), "");
    let hang = |kinds: &[RequestKind]| Fault::Hang { ranges: vec![], kinds: kinds.to_vec() };
    assert_eq!(session.timeline.inject(5 * MS, hang(&[RequestKind::Read]), None).unwrap(), (0, 5 * MS));
    assert_eq!(session.timeline.inject(5 * MS, hang(&[]), None).unwrap(), (1, 5 * MS + 1), "one at a time");
    session.arrive(6 * MS, read(0));
    session.arrive(7 * MS, write(0));
    session.advance(S);
    assert_eq!(session.answers, []);
    assert_eq!(session.timeline.end_faults(S, FaultsToEnd::One(1)), 1);
    session.advance(2 * S);
    assert_eq!((session.answer(0), session.answer(1).unwrap().at_ns), (None, S));
    assert_eq!(session.timeline.end_faults(3 * S, FaultsToEnd::Hangs), 1);
    assert_eq!(session.timeline.end_faults(4 * S, FaultsToEnd::All), 0);
    session.advance(4 * S);
    assert_eq!(session.answer(0).unwrap().at_ns, 3 * S);
    assert_eq!(session.timeline.injections().injections[0].until_ns, Some(3 * S));
}

#[test]
fn a_dropped_device_fails_pending_and_new_requests_and_returns() {
    let text = "[[fault]]\nat = \"10ms\"\nfor = \"90ms\"\nwhat = \"drop-out\"\n\
                [[fault]]\nat = \"1ms\"\nuntil = \"20ms\"\nwhat = \"hang\"\nkinds = [\"write\"]\n";
    let arrivals = [
        (2 * MS, write(0)), // Held.
        (9_500_000, read(0)),
        (9_600_000, flush()),
        (50 * MS, read(0)),
        (99_900_000, write(0)),
        (100_000_001, read(0)),
    ];
    let found = answers(&constant(), text, &arrivals, S);
    let found: Vec<(u64, Outcome)> = found.iter().map(|answer| answer.map(|a| (a.at_ns, a.outcome)).unwrap()).collect();
    let lost = |at_ns: u64| (at_ns, Outcome::Vanished);
    let expected =
        [lost(10 * MS), lost(10 * MS), lost(10 * MS), lost(50 * MS), lost(99_900_000), (101_000_001, Outcome::Done)];
    assert_eq!(found, expected);
}

#[test]
fn numbers_of_lost_requests_are_free_again() {
    // A disk goes on with what nobody waits for: its completions must not be taken for those of others.
    let mut session = Virtual::new(&model("wd1200bb"), "[[fault]]\nat = \"1ms\"\nfor = \"1ms\"\nwhat = \"drop-out\"\n");
    for number in 0..8 {
        session.arrive(number * US, read(number * GIB));
    }
    for number in 0..200 {
        session.arrive(3 * MS + number * 20 * MS, read(number * 17 * GIB % (100 * GIB)));
    }
    session.advance(100 * S);
    assert_eq!(session.answers.len(), 208);
    assert!(session.answers.iter().all(|a| (a.outcome == Outcome::Vanished) == (a.number < 8)));
    assert_eq!(session.timeline.outstanding(), 0);
}

#[test]
fn commands_with_bad_checksums_are_sent_again_after_the_time_out() {
    let errors = |percent: u32| {
        format!("[[fault]]\nat = \"0s\"\nwhat = \"link-errors\"\npercent = {percent}\ntime-out = \"2s\"\n")
    };
    let mut session = Virtual::new(&constant(), &errors(100));
    session.arrive(MS, read(0));
    session.advance(100 * S);
    let failed = session.answer(0).unwrap();
    assert_eq!((failed.took_ns(), failed.outcome), (12 * S, Outcome::Failed(None)), "sent six times");
    assert_eq!(session.timeline.injections().injections[0].failed, 1);
    let found = answers(&constant(), &errors(20), &reads_each(3 * MS, 2000), 100 * S);
    let took: Vec<u64> = found.iter().map(|answer| answer.unwrap().took_ns()).collect();
    let sent_again = |times: u64| took.iter().filter(|took| **took == MS + times * 2 * S).count();
    assert!((1500..1700).contains(&sent_again(0)) && (260..380).contains(&sent_again(1)), "{}", sent_again(1));
    assert!((40..90).contains(&sent_again(2)), "{}", sent_again(2));
    // Thirty seconds are what Linux waits.
    let usual = "[[fault]]\nat = \"0s\"\nwhat = \"link-errors\"\npercent = 100\n";
    assert_eq!(answers(&constant(), usual, &[(MS, read(0))], 1000 * S)[0].unwrap().took_ns(), 180 * S);
}

#[test]
fn nothing_passes_a_link_that_is_reset() {
    let text =
        "[[fault]]\nat = \"100ms\"\nuntil = \"420ms\"\nwhat = \"link-resets\"\ntime = \"30ms\"\nevery = \"100ms\"\n";
    let arrivals = [
        (99_500_000, read(0)), // Done, but its answer cannot leave.
        (110 * MS, read(0)),
        (131_000_001, read(0)),
        (229_000_001, read(0)),
        (400_000_001, read(0)), // The last reset is cut short by the end of it all.
        (431 * MS, read(0)),
    ];
    let found: Vec<u64> = answers(&constant(), text, &arrivals, S).iter().map(|answer| answer.unwrap().at_ns).collect();
    assert_eq!(found, [130 * MS, 131 * MS, 132_000_001, 231 * MS, 421 * MS, 432 * MS]);
}

#[test]
fn a_lying_cache_answers_flushes_at_once() {
    let disk = model("wd1200bb");
    let lies = "[[fault]]\nat = \"1s\"\nwhat = \"lying-cache\"\n";
    let arrivals: Vec<(u64, Request)> =
        (0..16).map(|n| (2 * S + n * US, write(n * GIB))).chain([(2 * S + MS, flush())]).collect();
    let honest = answers(&disk, "", &arrivals, 10 * S)[16].unwrap();
    assert!(honest.took_ns() > MS, "there is something to write: {honest:?}");
    let lied = answers(&disk, lies, &arrivals, 10 * S)[16].unwrap();
    assert_eq!((lied.took_ns(), lied.outcome), (0, Outcome::Done));
}

#[test]
fn what_cannot_strike_is_refused_by_its_key() {
    let mut session = Virtual::new(&constant(), "");
    let error = session.timeline.inject(0, Fault::BatteryFails, None).unwrap_err().to_string();
    assert_eq!(error, "fault.what: this fault needs an array, and the system is not one");
    let text = "[[fault]]\nat = \"1s\"\nwhat = \"member-fails\"\nmember = \"d1\"\n";
    let schedule = schedule(&model("md-raid5-8x2tb"), text);
    let refused = session.timeline.follow(&schedule).unwrap_err();
    assert!(refused.to_string().starts_with("fault[0].member: "), "{refused}");
}

#[test]
fn long_requests_meet_faults_in_parts_and_end_with_the_worst() {
    let text =
        "[[fault]]\nat = \"0s\"\nfor = \"1s\"\nwhat = \"hang\"\nranges = [{ offset = \"2MiB\", length = \"4KiB\" }]\n";
    let long = Request { length_bytes: 4 << 20, ..read(0) };
    let mut session = Virtual::new(&constant(), text);
    session.arrive(MS, long);
    session.advance(2 * S);
    assert_eq!(session.answer(0).unwrap().at_ns, S);
    assert_eq!(session.timeline.injections().injections[0].met, 1, "one part of four");
}

#[test]
fn what_an_array_goes_through_is_proved_by_the_requests_that_met_it() {
    let raid5 = model("md-raid5-8x2tb");
    let mut session = Virtual::new(&raid5, "");
    let unit = 512 * KIB;
    let met = |session: &Virtual, number: usize| {
        let injection = &session.timeline.injections().injections[number];
        (injection.met, injection.last.map(|meeting| meeting.deed))
    };
    session.arrive(S, read(0));
    session.timeline.inject(2 * S, Fault::MemberFails { member: "d1".to_owned() }, None).unwrap();
    // A row of eight members has seven units of data; each is read once.
    for number in 0..7 {
        session.arrive(3 * S + number * MS, read(number * unit));
    }
    assert_eq!(met(&session, 0), (1, Some(FaultEffect::Degraded)), "one of the seven is where the member was");
    // In eight rows, each member holds the parity once: a write meets the fault for its data or for that.
    for row in 0..8 {
        session.arrive(4 * S + row * MS, write(row * 7 * unit));
    }
    session.arrive(5 * S, flush());
    assert_eq!(met(&session, 0).0, 3, "the data of one row, and the parity of another");
    session.advance(6 * S);

    let mut session = Virtual::new(&model("nearline-12-raid6"), "");
    session.arrive(S, write(0));
    session.timeline.inject(2 * S, Fault::BatteryFails, None).unwrap();
    for number in 0..5 {
        session.arrive(3 * S + number * MS, write(number * GIB));
        session.arrive(3 * S + number * MS + US, read(number * GIB));
    }
    session.advance(4 * S);
    session.timeline.inject(5 * S, Fault::BatteryReturns, None).unwrap();
    session.arrive(6 * S, write(0));
    session.advance(7 * S);
    assert_eq!(met(&session, 0), (5, Some(FaultEffect::WrittenThrough)));
    let last = session.timeline.injections().injections[0].last.unwrap();
    assert!(last.completion_ns.is_some_and(|at_ns| at_ns > last.arrival_ns), "{last:?}");
}
