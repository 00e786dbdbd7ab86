//! Triggers: which request makes a fault strike, or meets it, counted in virtual time.

use crate::common::*;
use headstack_sim::Outcome;
use headstack_sim::faults::contents::{ByteDamage, DamageProof};
use headstack_sim::faults::{Count, Errno, Fault, Log, Nth, RequestKind, StrikeTime, Timed, Trigger};
use headstack_sim::timeline::{ContentEffect, Timeline};
use headstack_workload::Request;
use proptest::prelude::*;

/// What becomes of requests that come one after the other, 2 ms apart, as words.
fn outcomes(faults: &str, requests: &[Request]) -> Vec<&'static str> {
    let arrivals: Vec<_> = (1..).zip(requests).map(|(number, request)| (number * 2 * MS, *request)).collect();
    let word = |answer: Option<Answered>| match answer.map(|answer| answer.outcome) {
        Some(Outcome::Done) => "done",
        Some(Outcome::Refused(Errno::Io)) => "EIO",
        Some(Outcome::Refused(Errno::NoSpace)) => "ENOSPC",
        Some(Outcome::Refused(Errno::ReadOnly)) => "EROFS",
        Some(Outcome::Refused(Errno::TimedOut)) => "ETIMEDOUT",
        Some(Outcome::Failed(_)) => "failed",
        Some(Outcome::Vanished) => "gone",
        None => "hangs",
    };
    answers(&constant(), faults, &arrivals, 100 * S).into_iter().map(word).collect()
}

fn fault(keys: &str) -> String {
    format!("[[fault]]\n{keys}\n")
}

fn log_of(faults: &str, requests: &[Request]) -> Log {
    let mut session = Virtual::new(&constant(), faults);
    (1..).zip(requests).for_each(|(number, request)| session.arrive(number * 2 * MS, *request));
    session.advance(100 * S);
    session.timeline.injections()
}

#[test]
fn errors_return_their_errno_to_their_usual_requests() {
    let all = [read(0), write(0), Request { kind: headstack_workload::Kind::Trim, ..read(0) }, flush()];
    let with = |errno: &str| outcomes(&fault(&format!("at = \"0s\"\nwhat = \"errno\"\n{errno}")), &all);
    assert_eq!(with(""), ["EIO"; 4]);
    assert_eq!(with("errno = \"ETIMEDOUT\""), ["ETIMEDOUT"; 4]);
    assert_eq!(with("errno = \"ENOSPC\""), ["done", "ENOSPC", "done", "done"]);
    assert_eq!(with("errno = \"EROFS\""), ["done", "EROFS", "EROFS", "done"]);
    assert_eq!(with("kinds = [\"flush\"]"), ["done", "done", "done", "EIO"]);
}

#[test]
fn at_starts_at_the_nth_request_and_once_limits_it_to_one() {
    let requests = [write(0), flush(), write(0), flush(), write(0), flush()];
    let errno = "what = \"errno\"\nkinds = [\"flush\"]\n";
    let with = |keys: &str| outcomes(&fault(&format!("{errno}{keys}")), &requests);
    assert_eq!(with("at = { flush = 2 }"), ["done", "done", "done", "EIO", "done", "EIO"]);
    assert_eq!(with("at = { flush = 2 }\nonce = true"), ["done", "done", "done", "EIO", "done", "done"]);
    assert_eq!(with("at = { request = 5 }"), ["done", "done", "done", "done", "done", "EIO"]);
    assert_eq!(with("at = { write = 1 }\nfor = \"3ms\""), ["done", "EIO", "done", "done", "done", "done"]);
    assert_eq!(
        with("at = { write = 1 }\nfrom = \"5ms\"\nfor = \"3ms\""),
        ["done", "done", "done", "EIO", "done", "done"]
    );
}

#[test]
fn after_counts_answered_requests() {
    // Each is answered 1 ms after its arrival.
    let cut = |keys: &str| outcomes(&fault(&format!("what = \"power-cut\"\n{keys}")), &[write(0); 5]);
    assert_eq!(cut("after = { writes = 3 }"), ["done", "done", "done", "gone", "gone"]);
    assert_eq!(cut("at = { write = 3 }"), ["done", "done", "gone", "gone", "gone"]);
    assert_eq!(cut("after = { reads = 1 }"), ["done"; 5]);
    let log = log_of(&fault("what = \"power-cut\"\nafter = { writes = 3 }"), &[write(0); 5]);
    assert_eq!(log.injections[0].loss.as_ref().map(|loss| loss.at_ns), Some(7 * MS), "when the third was answered");
}

#[test]
fn every_takes_each_nth_and_strikes_again() {
    let requests = [write(0), read(0), write(0), read(0), write(0), write(0)];
    let with = |keys: &str| outcomes(&fault(keys), &requests);
    let errno = "what = \"errno\"\n";
    assert_eq!(with(&format!("{errno}every = 2")), ["done", "EIO", "done", "EIO", "done", "EIO"]);
    assert_eq!(
        with(&format!("{errno}kinds = [\"write\"]\nevery = 2")),
        ["done", "done", "EIO", "done", "done", "EIO"],
        "of those that could meet it"
    );
    // Power comes back before the next.
    assert_eq!(
        with("what = \"power-cut\"\nevery = { write = 2 }\nfor = \"1ms\""),
        ["done", "done", "gone", "done", "done", "gone"]
    );
    assert_eq!(
        with("what = \"power-cut\"\nevery = { write = 2 }\nfor = \"1ms\"\nonce = true"),
        ["done", "done", "gone", "done", "done", "done"]
    );
}

#[test]
fn touching_selects_the_counted_requests() {
    let far = write(512 * 1024 * KIB);
    let with = |keys: &str| outcomes(&fault(keys), &[far, write(0), read(4096), write(4096), flush()]);
    assert_eq!(
        with("what = \"errno\"\ntouching = \"4KiB..1MiB\""),
        ["done", "done", "EIO", "EIO", "done"],
        "a flush touches nothing"
    );
    // The third that touches it; what meets the fault then is its own matter.
    assert_eq!(
        with("what = \"errno\"\ntouching = \"0..1MiB\"\nat = { request = 3 }"),
        ["done", "done", "done", "EIO", "EIO"]
    );
    assert_eq!(with("what = \"power-cut\"\ntouching = \"4KiB..8KiB\""), ["done", "done", "gone", "gone", "gone"]);
}

#[test]
fn a_hang_holds_only_matching_requests() {
    let text = fault("what = \"hang\"\nevery = 2\nonce = true\nuntil = \"1s\"");
    let mut session = Virtual::new(&constant(), &text);
    (1..=6).for_each(|number| session.arrive(number * 2 * MS, read(0)));
    session.advance(900 * MS);
    assert_eq!(session.answers.iter().map(|answer| answer.number).collect::<Vec<_>>(), [0, 2, 3, 4, 5]);
    session.advance(2 * S);
    assert_eq!(session.answer(1).unwrap().at_ns, S);
}

#[test]
fn a_fault_waits_for_the_state_of_an_array() {
    let array = model("md-raid5-8x2tb");
    let text = "[[fault]]\nat = \"10s\"\nwhat = \"member-fails\"\nmember = \"d1\"\n\
                [[fault]]\nwhat = \"errno\"\nkinds = [\"read\"]\nwhile = \"degraded\"\n";
    let arrivals: Vec<_> = (1..5).map(|number| (number * 4 * S, read(number * GIB))).collect();
    let found = answers(&array, text, &arrivals, 1000 * S);
    let failed: Vec<bool> = found.iter().map(|answer| answer.unwrap().outcome == Outcome::Refused(Errno::Io)).collect();
    assert_eq!(failed, [false, false, true, true]);
}

#[test]
fn states_lead_from_one_fault_to_the_next() {
    let text = "[[fault]]\nwhat = \"set-state\"\nto = 2\nstate = 1\nevery = { flush = 1 }\n\
                [[fault]]\nwhat = \"set-state\"\nto = 1\nstate = 2\nevery = { flush = 1 }\n\
                [[fault]]\nwhat = \"errno\"\nkinds = [\"write\"]\nstate = 2\n";
    let requests = [write(0), flush(), write(0), flush(), write(0), flush(), write(0)];
    assert_eq!(outcomes(text, &requests), ["done", "done", "EIO", "done", "done", "done", "EIO"]);
}

#[test]
fn a_pattern_chooses_the_writes_that_bring_it() {
    let text =
        fault("what = \"lose-write\"\ncontaining = \"0x6865\"") + &fault("what = \"errno\"\ncontaining = \"journal\"");
    let mut session: Timeline<u32> = Timeline::new(&constant(), 1, None).unwrap();
    session.follow(&schedule(&constant(), &text)).unwrap();
    assert_eq!(session.patterns().iter().map(|pattern| &pattern[..]).collect::<Vec<_>>(), [&b"he"[..], b"journal"]);
    for (number, holds) in [0u64, 1, 2, 0].into_iter().enumerate() {
        session.arrive((number as u64 + 1) * 2 * MS, write(0), ContentEffect { changed: None, holds }, number as u32);
    }
    let mut finished = Vec::new();
    session.advance(S, &mut finished);
    let outcomes: Vec<Outcome> = finished.iter().map(|finished| finished.outcome).collect();
    assert_eq!(outcomes, [Outcome::Done, Outcome::Done, Outcome::Refused(Errno::Io), Outcome::Done]);
    let log = session.injections();
    assert_eq!((log.injections[0].met, log.injections[1].met), (1, 1));
    let harm = log.injections[0].harms[0];
    assert_eq!((harm.at_ns, harm.what), (4 * MS, ByteDamage::NotStored { at_bytes: 0, length_bytes: 4096 }));
}

#[test]
fn what_was_injected_is_a_schedule_under_which_equal_requests_meet_the_same() {
    let text = "seed = 3\n\
                [[fault]]\nwhat = \"power-cut\"\nafter = { writes = 9 }\nfor = \"2ms\"\n\
                [[fault]]\nwhat = \"corrupt\"\non = \"write\"\nhow = \"bit-flip\"\nbits = 3\nevery = 3\n\
                [[fault]]\nat = \"0s\"\nwhat = \"stale-read\"\nlasting = \"until-rewritten\"\npercent = 40.0\n\
                [[fault]]\nwhat = \"errno\"\nerrno = \"ENOSPC\"\nat = { write = 5 }\nonce = true\n\
                [[fault]]\nat = \"3ms\"\nwhat = \"misdirect\"\ndistance = \"-4KiB\"\npercent = 30.0\n";
    let request = |number: u64| {
        let place = number * number % 7 * 4096;
        if number % 3 == 2 { read(place) } else { write(place) }
    };
    let requests: Vec<Request> = (0..60).map(request).collect();
    let first = log_of(text, &requests);
    assert!(first.injections.iter().all(|injection| injection.strikes == 1), "{first:#?}");
    let told = headstack_catalogue::faults_to_toml(&first);
    assert!(told.contains("writes = 9"), "{told}");
    let again = log_of(&told, &requests);
    let proof = |log: &Log| {
        let of =
            |injection: &headstack_sim::faults::Injection| (injection.met, injection.failed, injection.harms.clone());
        let mut proofs: Vec<_> = log.injections.iter().map(of).collect();
        proofs.sort_by_key(|(met, failed, harms)| (*met, *failed, harms.len()));
        proofs
    };
    let harms: Vec<DamageProof> = first.injections.iter().flat_map(|injection| injection.harms.clone()).collect();
    assert!(harms.len() > 20, "{}", harms.len());
    assert!(proof(&first) == proof(&again), "{told}\n{first:#?}\n{again:#?}");
}

#[test]
fn an_order_waits_for_its_request_from_then_on() {
    let mut session = Virtual::new(&constant(), "");
    (1..=3).for_each(|number| session.arrive(number * 2 * MS, write(0)));
    let errno = Fault::Errno {
        ranges: vec![],
        errno: Errno::Io,
        kinds: vec![RequestKind::Write],
        time: None,
        unflushed: None,
        percent: None,
    };
    let trigger = Trigger { at: Some(StrikeTime::Request(Nth::Write(2))), once: true, ..Trigger::default() };
    let timed = Timed { from: None, until: None, lasts: None, trigger, fault: errno.clone() };
    session.timeline.inject_at(7 * MS, timed).unwrap();
    (4..=7).for_each(|number| session.arrive(number * 2 * MS, write(0)));
    session.advance(S);
    let failed: Vec<usize> =
        session.answers.iter().filter(|one| one.outcome == Outcome::Refused(Errno::Io)).map(|one| one.number).collect();
    assert_eq!(failed, [4]);
    let told = headstack_catalogue::faults_to_toml(&session.timeline.injections());
    assert!(told.contains("from = \"7.0000") && told.contains("once = true"), "{told}");
    let wrong = Trigger { after: Some(Count::Writes(0)), ..Trigger::default() };
    let timed = Timed { from: None, until: None, lasts: None, trigger: wrong, fault: errno };
    let refused = session.timeline.inject_at(S, timed).unwrap_err().to_string();
    assert!(refused.contains("fault.after: 0 is not a number of requests"), "{refused}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever they ask for, triggers choose by the requests and not by their times.
    #[test]
    fn triggers_do_not_hear_the_clock(
        kinds in prop::collection::vec(0u8..3, 1..60),
        every in 1u64..5,
        nth in 1u64..6,
        gaps in prop::collection::vec(2_000_000u64..9_000_000, 60),
    ) {
        let text = format!(
            "seed = 1\n[[fault]]\nwhat = \"errno\"\nat = {{ write = {nth} }}\nevery = {every}\npercent = 60.0\n\
             [[fault]]\nwhat = \"lose-write\"\ntouching = \"4KiB..64KiB\"\npercent = 50.0\n"
        );
        let request = |(number, kind): (usize, &u8)| match kind {
            0 => write(number as u64 % 20 * 4096),
            1 => read(number as u64 % 20 * 4096),
            _ => flush(),
        };
        let requests: Vec<Request> = kinds.iter().enumerate().map(request).collect();
        let met = |step: &dyn Fn(usize) -> u64| {
            let mut session = Virtual::new(&constant(), &text);
            let mut at_ns = MS;
            for (number, request) in requests.iter().enumerate() {
                session.arrive(at_ns, *request);
                at_ns += step(number);
            }
            session.advance(100 * S);
            let outcomes: Vec<_> =
                (0..requests.len()).map(|number| session.answer(number).unwrap().outcome).collect();
            let log = session.timeline.injections();
            let harms: Vec<_> = log.injections[1].harms.iter().map(|harm| (harm.request, harm.what)).collect();
            (outcomes, log.injections[0].met, harms)
        };
        prop_assert_eq!(met(&|_| 2 * MS), met(&|number| gaps[number]));
    }
}
