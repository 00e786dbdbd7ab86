//! A system under probes: the same as under a load, with state and clock kept between probes.

use headstack_catalogue::load_drive;
use headstack_driver::{Pace, Probe};
use headstack_sim::{Bench, SystemDescription};
use headstack_workload::{Kind, Request};

fn read(offset_bytes: u64) -> Request {
    Request { kind: Kind::Read, offset_bytes, length_bytes: 4096, force_unit_access: false, ordered: false }
}

fn at_depth(depth: u32, requests: Vec<Request>) -> Probe {
    Probe { requests, pace: Pace::Depth { depth, think_ns: Vec::new() } }
}

fn bench() -> Bench {
    Bench::new(&SystemDescription::from(load_drive("cheetah-9lp").unwrap().description), 1)
        .expect("the drive is possible")
}

#[test]
fn a_probe_keeps_its_queue_depth() {
    let mut bench = bench();
    let blocks = bench.capacity_bytes() / 4096;
    let requests: Vec<Request> = (0..500).map(|k| read(k * 7919 % blocks * 4096)).collect();
    let answers = bench.carry_out(&at_depth(4, requests), &|_| true).expect("it fits");
    for answer in &answers[4..] {
        let under_way =
            answers.iter().filter(|other| other.issued_ns <= answer.issued_ns && other.completed_ns > answer.issued_ns);
        assert_eq!(under_way.count(), 4);
    }
    assert_eq!(bench.now_ns(), answers.iter().map(|answer| answer.completed_ns).max().unwrap());
}

#[test]
fn state_and_clock_go_on_from_one_probe_to_the_next() {
    let mut bench = bench();
    let first = bench.carry_out(&at_depth(1, vec![read(0)]), &|_| true).expect("it fits")[0];
    bench.rest(1_000_000);
    let again = bench.carry_out(&at_depth(1, vec![read(0)]), &|_| true).expect("it fits")[0];
    assert_eq!(again.issued_ns, first.completed_ns + 1_000_000);
    // The buffer has it.
    assert!(again.completed_ns - again.issued_ns < (first.completed_ns - first.issued_ns) / 4);
}

#[test]
fn think_times_come_before_requests() {
    let mut bench = bench();
    let pace = Pace::Depth { depth: 1, think_ns: vec![0, 5_000_000] };
    let answers = bench.carry_out(&Probe { requests: vec![read(0), read(1 << 20)], pace }, &|_| true).expect("it fits");
    assert_eq!(answers[1].issued_ns, answers[0].completed_ns + 5_000_000);
}

#[test]
fn a_probe_that_does_not_fit_is_refused_before_it_begins() {
    let mut bench = bench();
    let end = bench.capacity_bytes();
    assert!(bench.carry_out(&at_depth(1, vec![read(0), read(end)]), &|_| true).is_err());
    assert_eq!(bench.now_ns(), 0);
}
