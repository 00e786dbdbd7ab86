//! Closed and open loops, on a clock that the tests advance.

use std::collections::VecDeque;

use headstack_driver::{ClosedLoop, Loop, LoopIssue, OpenLoop};
use headstack_workload::{ArrivalClock, ArrivalProcess, Generator, Kind, Span, Workload};

const MS: u64 = 1_000_000;
const S: u64 = 1_000 * MS;
const SEED: u64 = 7;

fn workload(arrivals: &str) -> Workload {
    let text = format!(
        "name = \"test\"\nflush_every = 2\n{arrivals}\n\
         lines = [{{ size = \"4KiB\", read_percent = 50, random_percent = 100 }}]\n"
    );
    Workload::from_toml("test.toml", &text).unwrap()
}

fn generator(workload: &Workload) -> Generator {
    Generator::new(workload, Span { start_bytes: 0, length_bytes: 1 << 30 }, 512, SEED).unwrap()
}

fn closed(arrivals: &str) -> (ClosedLoop, Generator) {
    let workload = workload(&format!("arrivals = {{ closed = {arrivals} }}"));
    let Loop::Closed(closed) = Loop::new(&workload, generator(&workload), None, SEED).unwrap() else { panic!() };
    (closed, generator(&workload))
}

/// Returns an open loop at 2,000 requests per second, or with a rate per kind.
fn open(process: &str, rates_per_s: Option<[f64; 3]>) -> (OpenLoop, Generator) {
    let workload = workload(&format!("arrivals = {{ open = {{ rate_per_s = 2000, process = {process} }} }}"));
    let Loop::Open(open) = Loop::new(&workload, generator(&workload), rates_per_s, SEED).unwrap() else { panic!() };
    (open, generator(&workload))
}

fn arrivals_ns(rate_per_s: f64, process: ArrivalProcess, seed: u64, until_ns: u64) -> Vec<u64> {
    let mut clock = ArrivalClock::new(rate_per_s, process, seed).unwrap();
    std::iter::from_fn(|| Some(clock.next_ns()).filter(|&at_ns| at_ns < until_ns)).collect()
}

#[test]
fn a_closed_loop_answers_each_completion_at_once() {
    let (mut closed, mut requests) = closed("{ queue_depth = 3 }");
    let take = |closed: &mut ClosedLoop, now_ns| closed.take(now_ns).map(|next| (next.due_ns, next.request));
    for _ in 0..3 {
        assert!(closed.has_answer() && closed.next_due_ns() == 0);
        assert_eq!(take(&mut closed, 0), Some((0, requests.next())));
    }
    assert_eq!((closed.has_answer(), closed.next_due_ns(), closed.take(9 * MS)), (false, u64::MAX, None));
    for at_ns in [5 * MS, 5 * MS, 7 * MS] {
        closed.completed(at_ns);
        assert!(closed.has_answer());
        assert_eq!(take(&mut closed, at_ns), Some((at_ns, requests.next())));
        assert_eq!(closed.take(at_ns), None, "each completion allows one request");
    }
}

#[test]
fn clients_issue_in_order_of_think_time_end() {
    let (mut closed, _) = closed("{ queue_depth = 3, think = { fixed = \"5ms\" } }");
    assert!(closed.thinks() && !closed.has_answer());
    assert_eq!((closed.next_due_ns(), closed.take(5 * MS - 1)), (5 * MS, None));
    // A late caller still learns when the requests were due.
    let due: Vec<u64> = std::iter::from_fn(|| closed.take(8 * MS)).map(|next| next.due_ns).collect();
    assert_eq!((due, closed.next_due_ns()), (vec![5 * MS; 3], u64::MAX));
    for at_ns in [9 * MS, 7 * MS, 8 * MS] {
        closed.completed(at_ns);
        assert!(!closed.has_answer(), "the client is thinking");
    }
    for due_ns in [12 * MS, 13 * MS, 14 * MS] {
        assert_eq!(closed.next_due_ns(), due_ns);
        assert_eq!(closed.take(due_ns).unwrap().due_ns, due_ns);
    }
}

#[test]
fn think_times_and_requests_are_the_generators() {
    let (mut closed, mut requests) = closed("{ queue_depth = 1, think = { exponential = \"5ms\" } }");
    let mut now_ns = 0;
    for _ in 0..1_000 {
        now_ns += requests.think_ns();
        assert_eq!(closed.next_due_ns(), now_ns);
        assert_eq!(closed.take(now_ns), Some(LoopIssue { due_ns: now_ns, request: requests.next(), is_extra: false }));
        now_ns += MS;
        closed.completed(now_ns);
    }
}

#[test]
fn an_open_loop_issues_by_its_clock() {
    let (mut open, mut requests) = open("\"poisson\"", None);
    for due_ns in arrivals_ns(2_000.0, ArrivalProcess::Poisson, SEED, S) {
        assert_eq!(open.next_due_ns(), due_ns);
        assert_eq!(open.take(due_ns - 1), None);
        assert_eq!(open.take(due_ns), Some(LoopIssue { due_ns, request: requests.next(), is_extra: false }));
    }
}

/// Repeatedly lets `arriving` requests arrive and takes `taken` of them. With any waits, each request is taken once, in
/// order.
#[test]
fn queued_and_immediate_arrivals_yield_the_same_order() {
    for (process, kinds) in [("\"fixed\"", None), ("\"poisson\"", None), ("\"poisson\"", Some([900.0, 700.0, 0.0]))] {
        let (mut late, _) = open(process, kinds);
        let (mut at_once, _) = open(process, kinds);
        let mut expected = VecDeque::new();
        // The backlog is empty, has one request, has several, is emptied again, and grows to a thousand.
        for (arriving, taken) in [(1, 1), (1, 0), (2, 1), (5, 7), (1, 1), (1_000, 300), (10, 709), (3, 0), (0, 2)] {
            for _ in 0..arriving {
                while let Some(next) = at_once.take(late.next_arrival_ns()) {
                    expected.push_back(next);
                }
                late.arrive();
            }
            assert!(late.waiting() >= taken);
            for _ in 0..taken {
                loop {
                    assert_eq!(Some(late.next_due_ns()), expected.front().map(|next| next.due_ns));
                    let next = late.take(u64::MAX - 1).unwrap();
                    assert_eq!(Some(next), expected.pop_front(), "{process} {kinds:?}");
                    if !next.is_extra {
                        break;
                    }
                }
            }
        }
        let left: Vec<u64> = expected.iter().filter(|next| !next.is_extra).map(|next| next.due_ns).collect();
        assert_eq!(late.waiting(), left.len() as u64);
        assert_eq!(late.into_waiting().collect::<Vec<_>>(), left);
    }
}

#[test]
fn kinds_arrive_each_by_a_clock_of_its_own() {
    let (mut open, _) = open("\"poisson\"", Some([300.0, 200.0, 0.0]));
    let (mut came, mut flushes) = ([vec![], vec![]], 0);
    while open.next_due_ns() < 10 * S {
        let LoopIssue { due_ns, request, is_extra } = open.take(10 * S).unwrap();
        match request.kind {
            Kind::Read => came[0].push(due_ns),
            Kind::Write => came[1].push(due_ns),
            Kind::Flush => flushes += 1,
            Kind::Trim => panic!("the workload has no trims"),
        }
        assert_eq!(is_extra, request.kind == Kind::Flush, "a flush accompanies a write");
    }
    for (kind, rate_per_s) in [(Kind::Read, 300.0), (Kind::Write, 200.0)] {
        let seed = SEED + kind as u64 + 1;
        assert_eq!(came[kind as usize], arrivals_ns(rate_per_s, ArrivalProcess::Poisson, seed, 10 * S), "{kind:?}");
    }
    let writes = came[1].len();
    assert!(flushes == writes / 2 || flushes + 1 == writes / 2, "{flushes} after {writes} writes");
}
