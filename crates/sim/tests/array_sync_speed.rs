//! Rebuilds and checks at the pace of Linux md: the minimum rate next to a busy host, more above it or when it is idle.

use headstack_sim::array::Array;
use headstack_sim::array::description::{
    AboveMinimum, ArrayDescription, Incident, IncidentKind, Level, Rebuild, RebuildMinimum,
};
use headstack_workload::Kind;

use crate::common::arrays::{ROWS, UNIT, array, capacity, group, request};
use crate::common::{MS, assert_close};

/// Bytes per second of each member.
const MINIMUM: u64 = 40_000;

fn minimum(bytes_per_s: u64, above: AboveMinimum) -> Option<RebuildMinimum> {
    Some(RebuildMinimum { bytes_per_s, above, window_bytes: UNIT })
}

fn described(change: impl Fn(&mut Rebuild), what: IncidentKind) -> ArrayDescription {
    let mut with_spare = group(Level::Raid5, 0..5, 1);
    with_spare.spares = vec![5];
    change(&mut with_spare.rebuild);
    let mut description = array(with_spare, capacity(Level::Raid5, 5, 1));
    description.incidents = vec![Incident { at_ns: MS, what }];
    description
}

/// Returns the seconds of a rebuild, or of a scrub. A busy host sends a trim each millisecond, which takes no time of the
/// members.
fn seconds(description: &ArrayDescription, busy: bool) -> f64 {
    let mut array = Array::new(description, 1).unwrap();
    let mut next_ns = if busy { 0 } else { u64::MAX };
    let took_ns = |array: &Array| array.rebuilds_ns().first().copied().or(ended_scrub_ns(array));
    loop {
        if let Some(took_ns) = took_ns(&array) {
            return took_ns as f64 / 1e9;
        }
        let now_ns = next_ns.min(array.next_event_ns());
        array.advance(now_ns, &mut vec![]);
        if now_ns == next_ns {
            array.submit(now_ns, (now_ns / MS) as u32, &request(Kind::Trim, 0, UNIT));
            next_ns += MS;
        }
    }
}

fn ended_scrub_ns(array: &Array) -> Option<u64> {
    let counters = array.counters();
    (counters.scrubs > 0).then_some(counters.scrub_ns)
}

fn rebuild_s(change: impl Fn(&mut Rebuild), busy: bool) -> f64 {
    seconds(&described(change, IncidentKind::MemberFails { member: 1 }), busy)
}

fn scrub_s(change: impl Fn(&mut Rebuild), busy: bool) -> f64 {
    seconds(&described(change, IncidentKind::Scrub { group: 0, repair: false }), busy)
}

/// The time of a member at a rate.
fn at(bytes_per_s: u64) -> f64 {
    (ROWS * UNIT) as f64 / bytes_per_s as f64
}

/// With pauses, as before Linux 4.2, a busy host leaves the minimum. The mean of whole seconds and the start are above.
#[test]
fn a_busy_host_leaves_a_pausing_rebuild_the_minimum() {
    let paused = |rebuild: &mut Rebuild| {
        (rebuild.step_bytes, rebuild.steps) = (UNIT, 1);
        rebuild.minimum = minimum(MINIMUM, AboveMinimum::Pause);
    };
    assert_close(rebuild_s(paused, true), at(MINIMUM), 5.0, "rebuild");
    assert_close(scrub_s(paused, true), at(MINIMUM), 5.0, "scrub");
}

/// While the host is idle, the minimum changes nothing: the maximum or the members decide.
#[test]
fn an_idle_host_leaves_the_maximum_or_the_members() {
    for above in [AboveMinimum::Drain, AboveMinimum::Pause] {
        let with_minimum = |rebuild: &mut Rebuild| rebuild.minimum = minimum(MINIMUM, above);
        assert_eq!(rebuild_s(with_minimum, false), rebuild_s(|_| {}, false), "the members' speed");
        assert_eq!(scrub_s(with_minimum, false), scrub_s(|_| {}, false), "the members' speed");
        let limited = |rebuild: &mut Rebuild| {
            rebuild.minimum = minimum(MINIMUM, above);
            rebuild.rate_limit_bytes_per_s = Some(100_000.0);
        };
        assert_close(rebuild_s(limited, false), at(100_000), 10.0, "the maximum");
    }
}

/// Below the minimum, a busy host changes nothing: no step waits.
#[test]
fn a_rebuild_below_its_minimum_ignores_the_host() {
    for above in [AboveMinimum::Drain, AboveMinimum::Pause] {
        let below = |rebuild: &mut Rebuild| rebuild.minimum = minimum(1 << 40, above);
        assert_eq!(rebuild_s(below, true), rebuild_s(|_| {}, false));
        assert_eq!(scrub_s(below, true), scrub_s(|_| {}, false));
    }
}

/// Above the minimum, a busy host leaves a draining rebuild one window at a time.
#[test]
fn a_busy_host_leaves_a_draining_rebuild_one_window_at_a_time() {
    let drained = |rebuild: &mut Rebuild| rebuild.minimum = minimum(1, AboveMinimum::Drain);
    let window = |rebuild: &mut Rebuild| (rebuild.step_bytes, rebuild.steps) = (UNIT, 1);
    let (took_s, expected_s) = (rebuild_s(drained, true), rebuild_s(window, false));
    // The first two steps begin before the first look.
    assert_close(took_s, expected_s, 10.0, "rebuild");
    assert!(took_s > 1.5 * rebuild_s(|_| {}, false), "{took_s}");
    assert_close(scrub_s(drained, true), scrub_s(window, false), 10.0, "scrub");
}

/// A host that becomes idle gives the rebuild all its steps again.
#[test]
fn a_drained_rebuild_refills_when_the_host_is_idle() {
    let drained =
        described(|rebuild| rebuild.minimum = minimum(1, AboveMinimum::Drain), IncidentKind::MemberFails { member: 1 });
    let mut array = Array::new(&drained, 1).unwrap();
    for number in 0..100 {
        array.advance(number * MS, &mut vec![]);
        array.submit(number * MS, number as u32, &request(Kind::Trim, 0, UNIT));
    }
    let (at_ns, done) = (99 * MS, array.counters().rebuilt_bytes);
    while array.next_event_ns() != u64::MAX {
        array.advance(array.next_event_ns(), &mut vec![]);
    }
    let rest_s = array.rebuilds_ns()[0] as f64 / 1e9 - (at_ns - MS) as f64 / 1e9;
    let expected_s = rebuild_s(|_| {}, false) * (ROWS * UNIT - done) as f64 / (ROWS * UNIT) as f64;
    assert_close(rest_s, expected_s, 10.0, "the rest at full speed");
}
