//! Which requests wait for which, and when requests are issued.

use crate::common::*;
use headstack_replay::{Due, Player, ReplayError, ReplayMode, in_memory};
use headstack_workload::Recorded;
use proptest::prelude::*;

/// Returns issue and completion of each request, by its index in the trace.
fn times(mode: ReplayMode, records: &[Recorded]) -> Vec<(u64, u64)> {
    let outcome = Stage::PUNCTUAL.play_all(&replay(mode), records).unwrap();
    outcome.seen.values().map(|seen| (seen.issued_ns, seen.completed_ns)).collect()
}

#[test]
fn requests_before_their_causes_are_counted() {
    // One at a time as recorded; two at a time, each but the first is issued before its predecessor is complete.
    let records: Vec<_> = (0..50).map(|i| numbered(i, i * 20 * MS, Some(i * 20 * MS + 10 * MS))).collect();
    let count = |mode| {
        let fidelity = Stage::PUNCTUAL.play_all(&replay(mode), &records).unwrap().played.fidelity;
        (fidelity.causality_violations, fidelity.reordered)
    };
    assert_eq!(count(ReplayMode::Asap { depth: 1 }), (0, 0));
    assert_eq!(count(ReplayMode::Asap { depth: 2 }), (49, 0));
    assert_eq!(count(ReplayMode::Closed), (0, 0));
}

#[test]
fn a_request_without_completion_may_come_before_its_cause_too() {
    // The first was complete before the others came, of which no completion is known; all are issued at once.
    let records = [numbered(0, 0, Some(MS)), numbered(1, 2 * MS, None), numbered(2, 3 * MS, None)];
    let played = Stage::PUNCTUAL.play_all(&replay(ReplayMode::Asap { depth: 3 }), &records).unwrap().played;
    assert_eq!(played.fidelity.causality_violations, 2);
}

#[test]
fn two_clients_keep_their_own_pace() {
    // Client a: 0-10, 30-40, 60-70 ms; client b: 5-45, 50-55: the request at 50 follows b's, which was complete last.
    let ms = |number, from: u64, to: u64| numbered(number, from * MS, Some(to * MS));
    let records = [ms(0, 0, 10), ms(1, 5, 45), ms(2, 30, 40), ms(3, 50, 55), ms(4, 60, 70)];
    let times = times(ReplayMode::Closed, &records);
    let after = |before: usize, think_ms: u64| times[before].1 + think_ms * MS;
    let issues: Vec<u64> = times.iter().map(|time| time.0).collect();
    assert_eq!(issues, [0, 5 * MS, after(0, 20), after(1, 5), after(3, 5)]);
}

#[test]
fn a_request_waits_for_all_that_it_waited_for() {
    // 3 waits for 1 and 2, which waited for 0; 4 arrives 200 ms after all others and waits for nothing.
    let ms = |number, from: u64, to: u64| numbered(number, from * MS, Some(to * MS));
    let records = [ms(0, 0, 10), ms(1, 12, 20), ms(2, 12, 30), ms(3, 33, 40), ms(4, 240, 250)];
    let times = times(ReplayMode::DEPENDENT, &records);
    let second = times[0].1 + 2 * MS;
    let third = times[1].1.max(times[2].1) + 3 * MS;
    let issues: Vec<u64> = times.iter().map(|time| time.0).collect();
    assert_eq!(issues, [0, second, second, third, 240 * MS]);
}

#[test]
fn a_client_ends_with_a_request_whose_end_is_not_known() {
    // Two clients; the second request of the first has no completion, so all later ones are the second's.
    let ms = |number, from: u64, to: Option<u64>| numbered(number, from * MS, to.map(|to| to * MS));
    let records = [ms(0, 0, Some(10)), ms(1, 5, Some(15)), ms(2, 16, None), ms(3, 18, Some(30)), ms(4, 40, Some(50))];
    let Outcome { played, seen, .. } = Stage::PUNCTUAL.play_all(&replay(ReplayMode::Closed), &records).unwrap();
    let times: Vec<(u64, u64)> = seen.values().map(|seen| (seen.issued_ns, seen.completed_ns)).collect();
    assert_eq!(times[2].0, times[1].1 + MS, "the client whose request was complete last");
    assert_eq!(times[3].0, times[0].1 + 8 * MS, "the other");
    assert_eq!(times[4].0, times[3].1 + 10 * MS, "who is alone now");
    assert_eq!(played.fidelity.without_completion, 1);
    assert!(played.notes == ["1 of 5 requests without a recorded completion"]);
}

/// Returns the requests that each one waits for, implementing the documentation of [`ReplayMode::Closed`] and
/// [`ReplayMode::Dependent`] literally.
fn parents(records: &[Recorded], mode: ReplayMode) -> Vec<Vec<usize>> {
    let completion = |index: usize| records[index].completion_ns.unwrap_or(u64::MAX);
    let mut taken = vec![false; records.len()];
    let in_flight =
        |upto: usize, at_ns: u64| (0..=upto).filter(|&i| completion(i) != u64::MAX && completion(i) > at_ns).count();
    let mut most = 0;
    let mut all: Vec<Vec<usize>> = Vec::new();
    for (index, record) in records.iter().enumerate() {
        let age_ns = |earlier: usize| record.arrival_ns.checked_sub(completion(earlier));
        let chosen = match mode {
            ReplayMode::Closed => {
                let free = (0..index).filter(|&i| age_ns(i).is_some() && !taken[i]);
                let last = free.max_by_key(|&i| (completion(i), std::cmp::Reverse(i)));
                last.iter().for_each(|&i| taken[i] = true);
                last.into_iter().collect()
            }
            ReplayMode::Dependent { min_ns, max_ns: None } => {
                // Each completion is seen by the first request that is late enough for it.
                let seen_by =
                    |i: usize| (0..records.len()).find(|&j| j > i && completion(i) + min_ns <= records[j].arrival_ns);
                let seen =
                    (0..index).filter(|&i| completion(i) != u64::MAX && completion(i) + min_ns <= record.arrival_ns);
                let last = seen.clone().filter_map(seen_by).max();
                let run = seen.filter(|&i| seen_by(i) == last);
                run.filter(|&i| age_ns(i).unwrap() <= ReplayMode::REACTION_MAX_NS).collect()
            }
            ReplayMode::Dependent { min_ns, max_ns: Some(max_ns) } => {
                let within = |age: Option<u64>| age.is_some_and(|age| (min_ns..=max_ns).contains(&age));
                let near: Vec<usize> = (0..index).filter(|&i| within(age_ns(i))).collect();
                let waited = |later: usize, earlier: usize| {
                    earlier < later && completion(earlier) + min_ns <= records[later].arrival_ns
                };
                let mut kept: Vec<usize> =
                    near.iter().copied().filter(|&i| !near.iter().any(|&later| waited(later, i))).collect();
                kept.sort_by_key(|&i| (completion(i), i));
                assert!(min_ns > 0 || kept.len() <= most + 1, "without a least time no more are ever in flight");
                kept
            }
            ReplayMode::Timed { .. } | ReplayMode::Asap { .. } => Vec::new(),
        };
        most = most.max(in_flight(index, record.arrival_ns));
        all.push(chosen);
    }
    all
}

prop_compose! {
    /// Generates a trace of up to 60 requests, some without completion, many at the same moments.
    fn any_recording()(
        requests in prop::collection::vec((0u64..12, prop::option::weighted(0.9, 0u64..40)), 1..60)
    ) -> Vec<Recorded> {
        let mut now_ns = 1_000_000;
        requests.iter().enumerate().map(|(number, &(gap, response))| {
            now_ns += gap.saturating_sub(4) * MS;
            numbered(number as u64, now_ns, response.map(|ms| now_ns + ms * MS))
        }).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn waiting_is_as_it_is_defined(
        mut records in any_recording(),
        mode in prop_oneof![
            Just(TIMED),
            (1u32..5).prop_map(|depth| ReplayMode::Asap { depth }),
            Just(ReplayMode::Closed),
            Just(ReplayMode::DEPENDENT),
            (1u64..9).prop_map(|min| ReplayMode::Dependent { min_ns: min * MS, max_ns: None }),
            (0u64..30).prop_map(|max| ReplayMode::Dependent { min_ns: 0, max_ns: Some(max * MS) }),
            (1u64..9, 0u64..30).prop_map(|(min, more)| {
                ReplayMode::Dependent { min_ns: min * MS, max_ns: Some((min + more) * MS) }
            }),
        ],
        stage in prop_oneof![
            Just(Stage::PUNCTUAL),
            Just(Stage { service_ns: |number| number % 7 * MS / 10, ..Stage::PUNCTUAL }),
            Just(Stage { oversleeps_ns: |look| look % 3 * MS / 4, ..Stage::PUNCTUAL }),
        ],
        batch in 1usize..5,
    ) {
        let first_ns = records[0].arrival_ns;
        records[0].completion_ns = records[0].completion_ns.or(Some(first_ns));
        let Outcome { played, seen, order, .. } = stage.play_all(&replay(mode), &records).unwrap();
        prop_assert_eq!(seen.len(), records.len());
        let times: Vec<(u64, u64)> = seen.values().map(|seen| (seen.issued_ns, seen.completed_ns)).collect();
        for (index, (parents, seen)) in parents(&records, mode).into_iter().zip(seen.values()).enumerate() {
            let arrival_ns = records[index].arrival_ns;
            let replayed = parents.iter().map(|&i| times[i].1).max();
            let recorded = parents.iter().filter_map(|&i| records[i].completion_ns).max();
            let expected_ns = match (mode, replayed, recorded) {
                (ReplayMode::Asap { .. }, ..) => seen.issued_ns,
                (_, Some(replayed_ns), Some(recorded_ns)) => replayed_ns + arrival_ns - recorded_ns,
                _ => arrival_ns - first_ns,
            };
            prop_assert_eq!(seen.due_ns, expected_ns, "request {} waits for {:?}", index, parents);
            prop_assert!(seen.issued_ns >= seen.due_ns);
            prop_assert!((stage.oversleeps_ns)(1) > 0 || seen.issued_ns == seen.due_ns);
        }
        // Counts of the replay, by definition.
        let fidelity = &played.fidelity;
        let before = |early: usize, late: usize| {
            records[early].completion_ns.is_some_and(|at_ns| (at_ns, early) < (records[late].arrival_ns, late))
        };
        let early = |&late: &usize| (0..late).any(|early| before(early, late) && times[early].1 > times[late].0);
        prop_assert_eq!(fidelity.causality_violations, (0..records.len()).filter(early).count() as u64);
        let overtaken = |&at: &usize| order[..at].iter().any(|&before| before > order[at]);
        prop_assert_eq!(fidelity.reordered, (0..order.len()).filter(overtaken).count() as u64);
        let lateness_ns = |at: usize| times[at].0.saturating_sub(records[at].arrival_ns - first_ns);
        prop_assert_eq!(fidelity.lateness_max_ns, (0..records.len()).map(lateness_ns).max().unwrap());
        let is_early = |&at: &usize| times[at].0 < records[at].arrival_ns - first_ns;
        prop_assert_eq!(fidelity.early, (0..records.len()).filter(is_early).count() as u64);
        // The result does not depend on how the trace is split into batches.
        let mut rest = &records[..];
        let mut pieces = |into: &mut Vec<Recorded>| {
            let (piece, others) = rest.split_at(batch.min(rest.len()));
            (*into, rest) = (piece.to_vec(), others);
            Ok::<bool, ReplayError>(!piece.is_empty())
        };
        let again = stage.play(&replay(mode), &mut pieces).unwrap();
        prop_assert_eq!(&again.order, &order);
        prop_assert_eq!(&again.played.fidelity, fidelity);
    }
}

#[test]
fn the_player_waits_for_dependencies_without_reading_ahead() {
    // Three clients' worth of requests, all responses to the first; then one long after.
    let mut records = vec![numbered(0, 0, Some(MS))];
    records.extend((1..=1_000).map(|number| numbered(number, (1 + number) * MS, Some((1 + number) * MS + 1))));
    let read = std::cell::Cell::new(0);
    let mut rest = records.into_iter();
    let mut source = |into: &mut Vec<Recorded>| {
        into.extend(rest.next());
        read.set(read.get() + into.len());
        Ok::<bool, ReplayError>(!into.is_empty())
    };
    let mut player = Player::new(&replay(ReplayMode::Closed), CAPACITY_BYTES, BLOCK_BYTES, &mut source).unwrap();
    assert_eq!(player.next_due().unwrap(), Due::At(0));
    let first = player.take(0).unwrap().unwrap();
    // The completion time is unknown: the clock advances, and waiting requests pile up no faster than they arrived.
    for at_ms in 2..=100 {
        assert_eq!(player.next_due().unwrap(), Due::At(at_ms * MS));
        assert!(player.take(at_ms * MS).unwrap().is_none());
        assert!(read.get() <= at_ms as usize + 2, "{} requests were read at {at_ms} ms", read.get());
    }
    // It completes 100 times as late as recorded; its response follows after the recorded time.
    player.completed(first.slot, 100 * MS);
    assert_eq!(player.next_due().unwrap(), Due::At(101 * MS));
    let second = player.take(101 * MS).unwrap().unwrap();
    assert_eq!((second.number, second.due_ns), (2, 101 * MS));
}

#[test]
fn as_fast_as_possible_there_is_room_or_there_is_not() {
    let records: Vec<_> = (0..3).map(|number| numbered(number, number, None)).collect();
    let mut source = in_memory::<ReplayError>(records);
    let mode = ReplayMode::Asap { depth: 2 };
    let mut player = Player::new(&replay(mode), CAPACITY_BYTES, BLOCK_BYTES, &mut source).unwrap();
    let [first, second] = [5, 6].map(|now_ns| player.take(now_ns).unwrap().unwrap());
    assert_eq!(player.next_due().unwrap(), Due::AfterCompletion);
    assert!(player.take(7).unwrap().is_none());
    player.completed(second.slot, 8);
    assert_eq!(player.next_due().unwrap(), Due::At(8));
    let third = player.take(9).unwrap().unwrap();
    assert_eq!((third.number, third.due_ns), (3, 9));
    player.completed(third.slot, 10);
    assert_eq!(player.next_due().unwrap(), Due::AfterCompletion);
    player.completed(first.slot, 11);
    assert_eq!(player.next_due().unwrap(), Due::Never);
    assert!(player.take(12).unwrap().is_none());
}
