//! Tests of the conditions that end a run.

use headstack_driver::End;
use headstack_result::{Finished, Measuring};
use headstack_workload::RunLength;

/// Returns the measurements of `count` consecutive reads of 1 ms each, from time 0 on.
fn reads(count: u64) -> Measuring {
    let mut measuring = Measuring::new(0, 0, u64::MAX);
    for at_ns in (0..count).map(|n| (n + 1) * 1_000_000) {
        measuring.count_depth(at_ns, 1);
        let intended_ns = at_ns - 1_000_000;
        measuring.record(&Finished { kind: 0, length_bytes: 512, intended_ns, started_ns: intended_ns, at_ns });
    }
    measuring
}

#[test]
fn a_run_of_requests_ends_with_the_last_whether_they_failed_or_not() {
    let end = End::from(RunLength::Requests(10));
    assert!(!end.is_reached(&reads(9), 9) && end.is_reached(&reads(9), 10) && end.is_reached(&reads(10), 10));
    assert_eq!(end.share_done(&reads(5), 5_000_000), 0.5);
}

#[test]
fn a_run_of_fixed_time_ends_by_its_clock() {
    let end = End::from(RunLength::TimeNs(20_000_000));
    assert!(!end.is_reached(&reads(100), 100));
    assert_eq!(end.share_done(&reads(5), 5_000_000), 0.25);
}

#[test]
fn a_run_for_confidence_ends_when_the_mean_is_known_or_at_its_limit() {
    let end = End::from(RunLength::Confidence { percent: 1.0, max_requests: 5_000 });
    // All reads are alike, so the precision is reached at the second check, 25 % of the run after the first.
    assert!(!end.is_reached(&reads(1_000), 1_000), "precision has not been checked yet");
    assert!(end.is_reached(&reads(1_000), 5_000));
    let measuring = reads(3_000);
    assert!(!end.is_reached(&measuring, 3_000), "one check may pass by chance");
    let mut known = measuring;
    let ended = (3_001..5_000).find(|&count| {
        let at_ns = count * 1_000_000;
        known.count_depth(at_ns, 1);
        let intended_ns = at_ns - 1_000_000;
        known.record(&Finished { kind: 0, length_bytes: 512, intended_ns, started_ns: intended_ns, at_ns });
        end.is_reached(&known, count)
    });
    assert_eq!(ended, Some(3_750));
    assert!(!End::NEVER.is_reached(&known, u64::MAX - 1));
}
