//! [`ScenarioRun`]: the clients of a running scenario and their next steps.

use serde::{Deserialize, Serialize};

use super::access::{Access, AccessRun};
use super::boot::BootRun;
use super::database::DatabaseRun;
use super::machine::Machine;
use super::prefill::PrefillRun;
use super::range::{check_luns, resolve};
use super::sequential::SequentialRun;
use super::step::{Facts, Step, StreamSetup, Turn};
use super::transactions::TransactionsRun;
use super::video::VideoRun;
use super::web::WebRun;
use super::{Load, Scenario, StreamKind};
use crate::access::Complaint;
use crate::arrivals::Arrivals;
use crate::error::WorkloadError;
use crate::random::seed_of;
use crate::span::Span;

/// Clients of a scenario on a system.
///
/// Every client is a single-threaded program. The caller gets the [`next`](ScenarioRun::next) step of each client at
/// the start, and again whenever the step is over. It reports completed requests with
/// [`complete`](ScenarioRun::complete). The clients' draws depend only on the scenario, the LUNs, the sector size and
/// the seed. Each draw belongs to one client, or to a stream with identical clients, so the order in which clients take
/// their steps does not matter.
pub struct ScenarioRun {
    names: Vec<String>,
    /// Index of the machine of each stream. Streams in the pool share the last machine.
    machine_of: Vec<usize>,
    machines: Vec<Machine>,
    clients: Vec<Client>,
    /// Number of clients of finite streams, and number of those that are not done.
    finite: u32,
    unfinished: u32,
    measured_from_ns: u64,
    /// Machine that took the last step.
    active: u32,
    /// First client of each machine.
    first_clients: Vec<u32>,
}

/// Position of a client among the machines.
struct Client {
    machine: u32,
    /// Number of the client in its machine.
    number: u32,
    in_flight: u32,
    awaits: bool,
    /// Whether the client belongs to an open loop and never waits.
    is_open: bool,
}

/// Results of a stream for the measured part of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StreamReport {
    /// Name of the stream.
    pub name: String,
    /// Facts of the stream, in addition to the latencies of its requests.
    pub facts: Facts,
}

impl ScenarioRun {
    /// Creates the clients of `scenario` on a system with these LUNs, which are consecutive in the system's address
    /// space.
    ///
    /// # Errors
    /// Returns an error if the scenario is invalid, names a LUN that the system lacks, or has requests that do not fit.
    pub fn new(
        scenario: &Scenario,
        luns: &[(String, Span)],
        sector_bytes: u32,
        seed: u64,
    ) -> Result<ScenarioRun, WorkloadError> {
        scenario.validate()?;
        check_luns(luns, sector_bytes)?;
        let mut machines = Vec::new();
        let mut machine_of = Vec::new();
        let mut pooled: Vec<(&Access, f64, StreamSetup)> = Vec::new();
        let (mut clients, mut finite) = (Vec::new(), 0);
        for (index, stream) in scenario.streams.iter().enumerate() {
            let complain =
                |(key, message): Complaint| WorkloadError { key: format!("streams[{index}].{key}"), message };
            let whole = stream.lun.is_none() && stream.range.is_none();
            let span = resolve(stream.lun.as_deref(), stream.range, luns, sector_bytes).map_err(complain)?;
            let setup = StreamSetup {
                stream: index as u32,
                span,
                names: if whole { luns.to_vec() } else { Vec::new() },
                sync_at_bytes: if stream.lun.is_some() { span.start_bytes } else { 0 },
                luns: if whole { luns.iter().map(|(_, span)| *span).collect() } else { vec![span] },
                sector_bytes,
                seed: seed_of(seed, &stream.name, 0),
            };
            if let StreamKind::Access(access) = &stream.kind
                && let Load::SharePercent(percent) = access.load
            {
                pooled.push((access, percent, setup));
                machine_of.push(usize::MAX);
                continue;
            }
            let kind = stream.kind.name();
            let machine =
                machine(&stream.kind, &setup).map_err(|(key, message)| complain((format!("{kind}.{key}"), message)))?;
            if stream.kind.is_finite() {
                finite += machine.clients();
            }
            machine_of.push(machines.len());
            add(&mut machines, &mut clients, machine);
        }
        if let Some(arrivals) = scenario.pool {
            let pool = AccessRun::new(&pooled, arrivals, seed_of(seed, "", 0)).map_err(|(stream, error)| {
                let key = format!("streams[{stream}].access.{}", error.key);
                WorkloadError { key, message: error.message }
            })?;
            machine_of
                .iter_mut()
                .filter(|machine| **machine == usize::MAX)
                .for_each(|machine| *machine = machines.len());
            add(&mut machines, &mut clients, Machine::Access(pool));
        }
        Ok(ScenarioRun {
            names: scenario.streams.iter().map(|stream| stream.name.clone()).collect(),
            machine_of,
            active: 0,
            first_clients: first_clients(&machines),
            machines,
            clients,
            finite,
            unfinished: finite,
            measured_from_ns: 0,
        })
    }

    /// Returns the number of clients. Clients are numbered from 0.
    pub fn clients(&self) -> u32 {
        self.clients.len() as u32
    }

    /// Returns the names of the streams, in the order of [`Step::Io`]'s indices.
    pub fn stream_names(&self) -> &[String] {
        &self.names
    }

    /// Returns the next step of `client`. Call this at the start and whenever the client's last step is over:
    /// immediately after [`Step::Io`], and after [`Step::Await`] when [`complete`](ScenarioRun::complete) returns true.
    #[inline]
    pub fn next(&mut self, client: u32, now_ns: u64) -> Step {
        let place = &mut self.clients[client as usize];
        let turn = Turn { client: place.number, in_flight: place.in_flight, now_ns };
        let step = self.machines[place.machine as usize].next(turn);
        match step {
            Step::Io { .. } => place.in_flight += 1,
            Step::Await => {
                debug_assert!(place.in_flight > 0, "client {client} would wait forever");
                place.awaits = true;
            }
            // Only clients of finite streams are ever done.
            Step::Done => self.unfinished -= 1,
            Step::AwaitClient | Step::Think { .. } | Step::Cpu { .. } | Step::Transfer { .. } => {}
        }
        self.active = place.machine;
        step
    }

    /// Returns the next client whose wait for another client ended with the last step. Call this after every step until
    /// it returns `None`, and then get the next step of each of these clients.
    #[inline]
    pub fn take_woken(&mut self) -> Option<u32> {
        let number = self.machines[self.active as usize].take_woken()?;
        Some(self.first_clients[self.active as usize] + number)
    }

    /// Records that a request of `client` has completed. Returns true if the client was waiting for it; the caller must
    /// then get the client's next step.
    #[inline]
    #[must_use]
    pub fn complete(&mut self, client: u32) -> bool {
        let place = &mut self.clients[client as usize];
        place.in_flight -= 1;
        std::mem::take(&mut place.awaits)
    }

    /// Whether the requests of `client` arrive at set times, however many are waiting.
    #[inline]
    pub fn is_open(&self, client: u32) -> bool {
        self.clients[client as usize].is_open
    }

    /// Whether there are finite streams and all of them are done.
    #[inline]
    pub fn all_done(&self) -> bool {
        self.finite > 0 && self.unfinished == 0
    }

    /// Starts the measured part and resets the streams' counts, except those of boots and prefills.
    pub fn start_measuring(&mut self, now_ns: u64) {
        self.measured_from_ns = now_ns;
        self.machines.iter_mut().for_each(Machine::start_measuring);
    }

    /// Returns the reports of the streams for the measured part, which ends at `now_ns`.
    pub fn report(&self, now_ns: u64) -> Vec<StreamReport> {
        let seconds = now_ns.saturating_sub(self.measured_from_ns) as f64 / 1e9;
        let report = |(name, machine): (&String, &usize)| StreamReport {
            name: name.clone(),
            facts: self.machines[*machine].facts(seconds, now_ns),
        };
        self.names.iter().zip(&self.machine_of).map(report).collect()
    }
}

fn add(machines: &mut Vec<Machine>, clients: &mut Vec<Client>, machine: Machine) {
    let place = machines.len() as u32;
    let is_open = machine.is_open();
    let client = |number| Client { machine: place, number, in_flight: 0, awaits: false, is_open };
    clients.extend((0..machine.clients()).map(client));
    machines.push(machine);
}

fn first_clients(machines: &[Machine]) -> Vec<u32> {
    let mut next = 0;
    let first = |machine: &Machine| {
        let first = next;
        next += machine.clients();
        first
    };
    machines.iter().map(first).collect()
}

fn machine(kind: &StreamKind, setup: &StreamSetup) -> Result<Machine, Complaint> {
    Ok(match kind {
        StreamKind::Access(access) => {
            let arrivals = match access.load {
                Load::Own(arrivals) => arrivals,
                Load::SharePercent(_) => Arrivals::default(),
            };
            let run = AccessRun::new(&[(access, 100.0, setup.clone())], arrivals, setup.seed);
            Machine::Access(run.map_err(|(_, error)| (error.key, error.message))?)
        }
        StreamKind::Web(web) => Machine::Web(WebRun::new(web, setup)?),
        StreamKind::Boot(boot) => Machine::Boot(BootRun::new(boot, setup)?),
        StreamKind::Video(video) => Machine::Video(VideoRun::new(video, setup)?),
        StreamKind::Transactions(transactions) => Machine::Transactions(TransactionsRun::new(transactions, setup)?),
        StreamKind::Sequential(sequential) => Machine::Sequential(SequentialRun::new(sequential, setup)?),
        StreamKind::Database(database) => Machine::Database(DatabaseRun::new(database, setup)?),
        StreamKind::Prefill(prefill) => Machine::Prefill(PrefillRun::new(prefill, setup)?),
    })
}
