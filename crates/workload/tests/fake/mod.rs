//! A system with constant latencies, which runs a scenario as the simulator does.

pub mod files;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use headstack_workload::scenario::{Facts, Scenario, ScenarioLength, ScenarioRun, Step, StreamReport};
use headstack_workload::{Request, Span};

/// A completed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    pub stream: u32,
    pub client: u32,
    pub issued_ns: u64,
    pub completed_ns: u64,
    pub request: Request,
}

/// The system, and its limits for a run.
pub struct Fake {
    pub latency_ns: fn(&Request) -> u64,
    pub limit_ns: u64,
    pub limit_requests: usize,
    pub seed: u64,
    /// Whether events at the same time are processed in reverse order.
    pub reversed: bool,
}

pub struct Outcome {
    pub done: Vec<Done>,
    pub issued: usize,
    pub in_flight: usize,
    /// Maximum number of requests in flight for each client and for each stream.
    pub client_peaks: Vec<u32>,
    pub stream_peaks: Vec<u32>,
    pub transferred_bytes: u64,
    pub end_ns: u64,
    pub all_done: bool,
    pub names: Vec<String>,
    pub reports: Vec<StreamReport>,
}

impl Outcome {
    pub fn facts(&self, name: &str) -> &Facts {
        &self.reports.iter().find(|report| report.name == name).unwrap().facts
    }

    pub fn of(&self, name: &str) -> Vec<Done> {
        let stream = self.names.iter().position(|other| other == name).unwrap() as u32;
        self.done.iter().copied().filter(|done| done.stream == stream).collect()
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Completed { index: usize },
    Ask { client: u32 },
}

pub fn luns(sizes_bytes: &[(&str, u64)]) -> Vec<(String, Span)> {
    let mut start_bytes = 0;
    let lun = |&(name, length_bytes): &(&str, u64)| {
        let span = Span { start_bytes, length_bytes };
        start_bytes += length_bytes;
        (name.to_owned(), span)
    };
    sizes_bytes.iter().map(lun).collect()
}

impl Default for Fake {
    fn default() -> Fake {
        Fake { latency_ns: |_| 1_000_000, limit_ns: u64::MAX, limit_requests: 200_000, seed: 1, reversed: false }
    }
}

impl Fake {
    pub fn run(&self, scenario: &Scenario, luns: &[(String, Span)]) -> Outcome {
        let run = ScenarioRun::new(scenario, luns, 512, self.seed).unwrap_or_else(|error| panic!("{error}"));
        let clients = run.clients() as usize;
        let mut at_work = AtWork {
            fake: self,
            ends_when_done: scenario.run_length == ScenarioLength::AllDone,
            run,
            heap: BinaryHeap::new(),
            sequence: 0,
            cpus_free_ns: vec![0; scenario.cpus as usize],
            network_bytes_per_s: scenario.network.map(|rate| rate.0),
            network_free_ns: 0,
            flights: Vec::new(),
            client_flights: vec![0; clients],
            stream_flights: vec![0; scenario.streams.len()],
            ended: vec![false; clients],
            outcome: Outcome {
                done: Vec::new(),
                issued: 0,
                in_flight: 0,
                client_peaks: vec![0; clients],
                stream_peaks: vec![0; scenario.streams.len()],
                transferred_bytes: 0,
                end_ns: 0,
                all_done: false,
                names: Vec::new(),
                reports: Vec::new(),
            },
        };
        at_work.go();
        at_work.outcome
    }
}

struct AtWork<'a> {
    fake: &'a Fake,
    ends_when_done: bool,
    run: ScenarioRun,
    heap: BinaryHeap<Reverse<(u64, i64, Event)>>,
    sequence: i64,
    cpus_free_ns: Vec<u64>,
    network_bytes_per_s: Option<f64>,
    network_free_ns: u64,
    flights: Vec<Done>,
    client_flights: Vec<u32>,
    stream_flights: Vec<u32>,
    ended: Vec<bool>,
    outcome: Outcome,
}

impl AtWork<'_> {
    fn go(&mut self) {
        for client in 0..self.run.clients() {
            self.ask(client, 0);
        }
        let mut now_ns = 0;
        while let Some(Reverse((at_ns, _, event))) = self.heap.pop() {
            if at_ns > self.fake.limit_ns {
                now_ns = self.fake.limit_ns;
                break;
            }
            now_ns = at_ns;
            match event {
                Event::Ask { client } => self.ask(client, at_ns),
                Event::Completed { index } => self.completed(index, at_ns),
            }
            if self.ends_when_done && self.run.all_done() || self.outcome.done.len() >= self.fake.limit_requests {
                break;
            }
        }
        let outcome = &mut self.outcome;
        outcome.issued = self.flights.len();
        outcome.in_flight = self.client_flights.iter().map(|&flights| flights as usize).sum();
        outcome.end_ns = now_ns;
        outcome.all_done = self.run.all_done();
        outcome.names = self.run.stream_names().to_vec();
        outcome.reports = self.run.report(now_ns);
    }

    fn push(&mut self, at_ns: u64, event: Event) {
        self.sequence += if self.fake.reversed { -1 } else { 1 };
        self.heap.push(Reverse((at_ns, self.sequence, event)));
    }

    fn ask(&mut self, client: u32, now_ns: u64) {
        assert!(!self.ended[client as usize], "client {client} took a step after it was done");
        loop {
            let step = self.run.next(client, now_ns);
            while let Some(client) = self.run.take_woken() {
                self.push(now_ns, Event::Ask { client });
            }
            match step {
                Step::Io { stream, request } => self.issue(client, stream, request, now_ns),
                Step::Await => return assert!(self.client_flights[client as usize] > 0),
                Step::AwaitClient => return,
                Step::Done => {
                    assert_eq!(self.client_flights[client as usize], 0);
                    self.ended[client as usize] = true;
                    return;
                }
                Step::Think { until_ns } => {
                    assert!(until_ns >= now_ns);
                    return self.push(until_ns, Event::Ask { client });
                }
                Step::Cpu { busy_ns } => {
                    let cpu = self.cpus_free_ns.iter_mut().min().unwrap();
                    *cpu = (*cpu).max(now_ns) + busy_ns;
                    let until_ns = *cpu;
                    return self.push(until_ns, Event::Ask { client });
                }
                Step::Transfer { bytes } => {
                    self.outcome.transferred_bytes += bytes;
                    let time_ns = self.network_bytes_per_s.map_or(0, |rate| (bytes as f64 / rate * 1e9) as u64);
                    self.network_free_ns = self.network_free_ns.max(now_ns) + time_ns;
                    return self.push(self.network_free_ns, Event::Ask { client });
                }
            }
        }
    }

    fn issue(&mut self, client: u32, stream: u32, request: Request, now_ns: u64) {
        let completed_ns = now_ns + (self.fake.latency_ns)(&request);
        let index = self.flights.len();
        self.flights.push(Done { stream, client, issued_ns: now_ns, completed_ns, request });
        for (flights, peaks, place) in [
            (&mut self.client_flights, &mut self.outcome.client_peaks, client),
            (&mut self.stream_flights, &mut self.outcome.stream_peaks, stream),
        ] {
            let place = place as usize;
            flights[place] += 1;
            peaks[place] = peaks[place].max(flights[place]);
        }
        self.push(completed_ns, Event::Completed { index });
    }

    fn completed(&mut self, index: usize, now_ns: u64) {
        let done = self.flights[index];
        self.client_flights[done.client as usize] -= 1;
        self.stream_flights[done.stream as usize] -= 1;
        self.outcome.done.push(done);
        if self.run.complete(done.client) {
            self.ask(done.client, now_ns);
        }
    }
}
