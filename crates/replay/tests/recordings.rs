//! Which requests of a trace are played, and in which form.

use crate::common::*;
use headstack_replay::{Outside, Player, Replay, ReplayError, ReplayMode, in_memory};
use headstack_workload::{Kind, Recorded, Request};

fn refused(replay: &Replay, records: &[Recorded]) -> String {
    let error = Stage::PUNCTUAL.play_all(replay, records).map(drop).unwrap_err().to_string();
    assert_eq!(error.lines().count(), 1);
    error
}

#[test]
fn a_part_of_a_recording_is_replayed() {
    let records: Vec<_> = (0..100).map(|number| numbered(number, 50 + number * MS, None)).collect();
    let count = |requests_max, time_max_ns| {
        let outcome =
            Stage::PUNCTUAL.play_all(&Replay { requests_max, time_max_ns, ..replay(TIMED) }, &records).unwrap();
        assert_eq!(outcome.played.fidelity.recorded_requests, outcome.seen.len() as u64);
        outcome.seen.len()
    };
    assert_eq!(count(None, None), 100);
    assert_eq!(count(Some(30), None), 30);
    assert_eq!(count(None, Some(20 * MS)), 21);
    assert_eq!(count(Some(30), Some(20 * MS)), 21);
    assert_eq!(count(Some(1_000), Some(u64::MAX)), 100);
}

#[test]
fn requests_are_made_to_fit() {
    let capacity = CAPACITY_BYTES;
    let at = |kind, offset_bytes, length_bytes| Recorded {
        arrival_ns: 7,
        completion_ns: Some(7),
        request: Request { kind, offset_bytes, length_bytes, force_unit_access: true, ordered: false },
        pre_flush: false,
    };
    let fitted = |outside, record| {
        let outcome = Stage::PUNCTUAL.play_all(&Replay { outside, ..replay(TIMED) }, &[record]).unwrap();
        let fidelity = outcome.played.fidelity;
        let changes = [fidelity.folded, fidelity.dropped, fidelity.rounded];
        assert_eq!(outcome.played.notes.len(), changes.iter().filter(|n| **n > 0).count());
        let place = outcome.seen.values().next().map(|seen| {
            assert!(seen.request.force_unit_access);
            (seen.request.offset_bytes, seen.request.length_bytes)
        });
        (place, fidelity.folded, fidelity.dropped, fidelity.rounded)
    };
    let (refuse, fold, drop) = (Outside::Refuse, Outside::Fold, Outside::Drop);
    assert_eq!(fitted(refuse, at(Kind::Read, 512, 1024)), (Some((512, 1024)), 0, 0, 0));
    assert_eq!(fitted(refuse, at(Kind::Write, 700, 1)), (Some((512, 512)), 0, 0, 1));
    assert_eq!(fitted(refuse, at(Kind::Write, 1023, 2)), (Some((512, 1024)), 0, 0, 1));
    assert_eq!(fitted(refuse, at(Kind::Trim, 1024, 0)), (Some((1024, 512)), 0, 0, 1));
    assert_eq!(fitted(refuse, at(Kind::Flush, 77, 0)), (Some((0, 0)), 0, 0, 0));
    assert_eq!(fitted(refuse, at(Kind::Read, capacity - 512, 512)), (Some((capacity - 512, 512)), 0, 0, 0));
    assert_eq!(fitted(fold, at(Kind::Read, capacity + 5120, 512)), (Some((5120, 512)), 1, 0, 0));
    assert_eq!(fitted(fold, at(Kind::Read, 3 * capacity - 512, 1024)), (Some((capacity - 1024, 1024)), 1, 0, 0));
    assert_eq!(fitted(fold, at(Kind::Read, capacity + 1, 512)), (Some((0, 1024)), 1, 0, 1));
    assert_eq!(fitted(drop, at(Kind::Read, capacity, 512)), (None, 0, 1, 0));
}

#[test]
fn what_cannot_be_replayed_is_refused_with_its_number() {
    let good = numbered(0, 10, Some(20));
    let with = |record| refused(&replay(TIMED), &[good, record]);
    let place = |offset_bytes, length_bytes| Recorded {
        request: Request { offset_bytes, length_bytes, ..good.request },
        ..good
    };
    assert_eq!(
        with(place(204_799_488, 1024)),
        "request 2: 1024 bytes at 204799488; the system ends at 204800000; outside: use fold to move such requests into it, \
         drop to omit them"
    );
    assert_eq!(with(place(u64::MAX, 1)), "request 2: 1 bytes at 18446744073709551615: its end must fit 64 bits");
    assert_eq!(with(place(0, u32::MAX)), "request 2: 4294967295 bytes at 0: must be shorter than 4 GiB");
    assert_eq!(with(numbered(1, 9, None)), "request 2: arrives before the previous request");
    assert_eq!(with(numbered(1, 15, Some(14))), "request 2: completes before it arrives");
    assert_eq!(with(numbered(1, u64::MAX, None)), "request 2: arrives more than 73 years after the first request");
    assert_eq!(with(numbered(1, 15, Some(u64::MAX))), "request 2: arrives more than 73 years after the first request");
    let folding = Replay { outside: Outside::Fold, ..replay(TIMED) };
    let longer = refused(&folding, &[place(0, 204_800_512)]);
    assert_eq!(longer, "request 1: 204800512 bytes at 0; the system ends at 204800000");
    assert_eq!(refused(&replay(TIMED), &[]), "replay: the trace has no requests");
    assert_eq!(
        refused(&replay(ReplayMode::Timed { time_scale: f64::NAN }), &[good]),
        "replay: time_scale must be above 0 and finite, not NaN"
    );
    let stretched = refused(&replay(ReplayMode::Timed { time_scale: 1e300 }), &[good, numbered(1, 15, None)]);
    assert_eq!(stretched, "request 2: arrives more than 73 years after the first request");
    assert_eq!(refused(&replay(ReplayMode::Asap { depth: 0 }), &[good]), "replay: depth must be at least 1, not 0");
    let backwards = ReplayMode::Dependent { min_ns: 2, max_ns: Some(1) };
    assert_eq!(refused(&replay(backwards), &[good]), "replay: min_ns must be at most max_ns, not 2 of 1");
    for mode in [ReplayMode::Closed, ReplayMode::DEPENDENT] {
        assert_eq!(
            refused(&replay(mode), &[numbered(0, 10, None)]),
            "replay: none of 1 requests has a recorded completion to infer dependencies from; use the mode timed or asap"
        );
    }
}

#[test]
fn a_system_is_whole_blocks() {
    let one = |capacity_bytes, block_bytes, offset_bytes| {
        let record = numbered(0, 0, None);
        let mut source = in_memory([Recorded { request: Request { offset_bytes, ..record.request }, ..record }]);
        let folding = Replay { outside: Outside::Fold, ..replay(TIMED) };
        let mut player = Player::<ReplayError>::new(&folding, capacity_bytes, block_bytes, &mut source)?;
        let request = player.take(0)?.expect("the first comes at once").request;
        Ok::<_, ReplayError>((request.offset_bytes, request.length_bytes))
    };
    // A file may end within a block, where no request fits.
    assert_eq!(one(10_000, 4_096, 8_192).unwrap(), (0, 4_096));
    assert_eq!(one(10_000, 4_096, 8_000).unwrap(), (0, 8_192));
    let refused = |capacity_bytes, block_bytes| one(capacity_bytes, block_bytes, 0).unwrap_err().to_string();
    assert_eq!(refused(10_000, 0), "replay: block_bytes must be at least 1, not 0");
    assert_eq!(refused(4_095, 4_096), "request 1: 512 bytes at 0; the system ends at 0");
}

#[test]
fn a_pre_flush_is_issued_first_and_its_write_when_the_flush_is_complete() {
    let stage = Stage { service_ns: |_| 5 * MS, oversleeps_ns: |_| 0 };
    let mut commit = numbered(2, 20 * MS, Some(30 * MS));
    (commit.request.kind, commit.request.force_unit_access, commit.pre_flush) = (Kind::Write, true, true);
    let records =
        [numbered(1, 0, Some(5 * MS)), commit, numbered(3, 31 * MS, Some(36 * MS)), numbered(4, 60 * MS, None)];
    let within = ReplayMode::Dependent { min_ns: 0, max_ns: Some(20 * MS) };
    for mode in [TIMED, ReplayMode::Asap { depth: 1 }, ReplayMode::Closed, ReplayMode::DEPENDENT, within] {
        let outcome = stage.play_all(&replay(mode), &records).unwrap();
        let (flush, write) = (outcome.pre_flushes[&2], outcome.seen[&2]);
        assert_eq!(
            (flush.request.kind, flush.request.length_bytes, flush.request.force_unit_access),
            (Kind::Flush, 0, false)
        );
        assert_eq!(
            (write.request, write.issued_ns, write.due_ns),
            (commit.request, flush.completed_ns, flush.completed_ns)
        );
        assert_eq!(outcome.order, [1, 2, 2, 3, 4], "{mode:?}: they take one place");
        // As recorded, 1 ms after the commit, which is the write's completion; at the recorded time without waiting.
        let after_commit = outcome.seen[&3].due_ns - write.completed_ns;
        assert_eq!(after_commit, if let ReplayMode::Asap { .. } = mode { 0 } else { MS }, "{mode:?}");
        let played = outcome.played;
        assert_eq!((played.fidelity.recorded_requests, played.fidelity.replayed_requests), (4, 4));
        assert_eq!((played.fidelity.causality_violations, played.fidelity.reordered), (0, 0));
        let note = "1 of 4 requests issued after their own flush (PREFLUSH), which counts as a request";
        assert!(played.notes.contains(&note.to_owned()), "{:?}", played.notes);
    }
}
