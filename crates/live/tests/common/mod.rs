//! Systems into which tests inject faults, and sessions in virtual time.
#![allow(dead_code)] // Each test file uses a part.

use std::path::Path;

use headstack_sim::faults::Schedule;
use headstack_sim::timeline::Timeline;
use headstack_sim::{Constant, Model, Outcome};
use headstack_workload::{Kind, Request};

pub const US: u64 = 1_000;
pub const MS: u64 = 1_000_000;
pub const S: u64 = 1_000_000_000;
pub const KIB: u64 = 1 << 10;
pub const GIB: u64 = 1 << 30;

/// Returns a model from the catalogue.
pub fn model(name: &str) -> Model {
    let system = headstack_catalogue::load_system(name, &Default::default()).expect("the catalogue has this system");
    Model::System(system.description())
}

/// Returns a model from the text of a file.
pub fn model_of(name: &str, text: &str) -> Model {
    let path = std::env::temp_dir().join(format!("headstack-{name}-{}.toml", std::process::id()));
    std::fs::write(&path, text).unwrap();
    let model = model(path.to_str().unwrap());
    std::fs::remove_file(path).unwrap();
    model
}

/// Returns a model in which every request takes 1 ms.
pub fn constant() -> Model {
    Model::Constant(Constant { latency_ns: MS, capacity_bytes: GIB })
}

/// Returns the fault schedule in `text`.
pub fn schedule(model: &Model, text: &str) -> Schedule {
    headstack_catalogue::parse_faults("schedule.toml", text, Path::new(""), model)
        .unwrap_or_else(|error| panic!("{error}"))
}

pub fn read(offset_bytes: u64) -> Request {
    Request { kind: Kind::Read, offset_bytes, length_bytes: 4096, force_unit_access: false, ordered: false }
}

pub fn write(offset_bytes: u64) -> Request {
    Request { kind: Kind::Write, ..read(offset_bytes) }
}

/// Returns a write that is on the media when it is acknowledged.
pub fn forced(offset_bytes: u64) -> Request {
    Request { force_unit_access: true, ..write(offset_bytes) }
}

pub fn flush() -> Request {
    Request { kind: Kind::Flush, length_bytes: 0, ..read(0) }
}

/// An answer: number of the arrival, time of arrival, time of the answer, and outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answered {
    pub number: usize,
    pub arrival_ns: u64,
    pub at_ns: u64,
    pub outcome: Outcome,
}

impl Answered {
    pub fn took_ns(&self) -> u64 {
        self.at_ns - self.arrival_ns
    }
}

/// A session in virtual time.
pub struct Virtual {
    pub timeline: Timeline<usize>,
    /// Answers in the order in which they were sent.
    pub answers: Vec<Answered>,
    arrivals: usize,
}

impl Virtual {
    pub fn new(model: &Model, text: &str) -> Virtual {
        let mut timeline = Timeline::new(model, 1, None).unwrap();
        timeline.follow(&schedule(model, text)).unwrap();
        Virtual { timeline, answers: Vec::new(), arrivals: 0 }
    }

    pub fn arrive(&mut self, at_ns: u64, request: Request) {
        self.timeline.arrive(at_ns, request, None, self.arrivals);
        self.arrivals += 1;
        // A client that waits must see each answer as soon as it is sent.
        self.advance(at_ns);
    }

    pub fn advance(&mut self, to_ns: u64) {
        let mut finished = Vec::new();
        self.timeline.advance(to_ns, &mut finished);
        self.answers.extend(finished.into_iter().map(|finished| Answered {
            number: finished.ticket,
            arrival_ns: finished.arrival_ns,
            at_ns: finished.at_ns,
            outcome: finished.outcome,
        }));
    }

    /// Returns the answer to an arrival.
    pub fn answer(&self, number: usize) -> Option<Answered> {
        self.answers.iter().find(|answer| answer.number == number).copied()
    }

    /// Returns the response time of an arrival, which must have been answered successfully.
    pub fn took_ns(&self, number: usize) -> u64 {
        let answer = self.answer(number).expect("the request was answered");
        assert_eq!(answer.outcome, Outcome::Done);
        answer.took_ns()
    }
}

/// Returns the outcomes of arrivals up to `to_ns`, by number.
pub fn answers(model: &Model, text: &str, arrivals: &[(u64, Request)], to_ns: u64) -> Vec<Option<Answered>> {
    let mut session = Virtual::new(model, text);
    for &(at_ns, request) in arrivals {
        session.arrive(at_ns, request);
    }
    session.advance(to_ns);
    (0..arrivals.len()).map(|number| session.answer(number)).collect()
}
