//! [`Scenario`]: several kinds of concurrent clients, each with its own LUN and range.
//!
//! A [`Scenario`] is a file of [`Stream`]s. A [`ScenarioRun`] creates the clients of these streams and returns their
//! next [`Step`].

mod access;
mod boot;
mod database;
mod form;
mod latencies;
mod length;
mod machine;
mod prefill;
mod range;
mod run;
mod sequential;
mod step;
mod stream;
mod transactions;
mod video;
mod web;

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

pub use access::{Access, Load};
pub use boot::{Boot, GoldenImage, Phase};
pub use database::{Database, LogSync};
pub use length::ScenarioLength;
pub use prefill::{Order, Prefill};
pub use range::{Mark, Range};
pub use run::{ScenarioRun, StreamReport};
pub use sequential::{Direction, Sequential};
pub use step::{Facts, GuestBoot, Step};
pub use stream::{Stream, StreamKind};
pub use transactions::Transactions;
pub use video::Video;
pub use web::{Layout, Web};

use form::{ScenarioForm, StreamForm};

use crate::access::{Complaint, check_sum};
use crate::arrivals::{Arrivals, WarmUp};
use crate::document::{Document, InputError};
use crate::error::WorkloadError;
use crate::quantity::Rate;

/// Maximum number of processors of a host.
const CPUS_MAX: u32 = 4_096;

/// A load from several kinds of clients at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "ScenarioForm", into = "ScenarioForm")]
pub struct Scenario {
    /// Name of the scenario in the catalogue.
    pub name: String,
    /// Source of the scenario's figures.
    pub source: String,
    /// Number of host processors, which [`Step::Cpu`] occupies.
    pub cpus: u32,
    /// Rate of the network in front of the server, for [`Step::Transfer`]; with `None`, transfers take no time.
    pub network: Option<Rate>,
    /// Threads or rate of the pool, which issues the requests of all streams with a share.
    pub pool: Option<Arrivals>,
    /// Warm-up, which results exclude; none by default.
    pub warm_up: WarmUp,
    /// Length of a run.
    pub run_length: ScenarioLength,
    /// Streams of clients.
    pub streams: Vec<Stream>,
}

impl TryFrom<ScenarioForm> for Scenario {
    type Error = WorkloadError;

    fn try_from(form: ScenarioForm) -> Result<Scenario, WorkloadError> {
        let streams = form.streams.into_iter().enumerate().map(|(index, stream)| {
            stream.resolve().ok_or_else(|| WorkloadError {
                key: format!("streams[{index}]"),
                message:
                    "must have exactly one of access, web, boot, video, transactions, sequential, prefill, database"
                        .to_owned(),
            })
        });
        Ok(Scenario {
            streams: streams.collect::<Result<_, _>>()?,
            name: form.name,
            source: form.source,
            cpus: form.cpus,
            network: form.network,
            pool: form.pool,
            warm_up: form.warm_up,
            run_length: form.run_length,
        })
    }
}

impl From<Scenario> for ScenarioForm {
    fn from(scenario: Scenario) -> ScenarioForm {
        ScenarioForm {
            name: scenario.name,
            source: scenario.source,
            cpus: scenario.cpus,
            network: scenario.network,
            pool: scenario.pool,
            warm_up: scenario.warm_up,
            run_length: scenario.run_length,
            streams: scenario.streams.into_iter().map(StreamForm::from).collect(),
        }
    }
}

impl Scenario {
    /// Reads and checks a scenario. Errors name the file as `file`.
    ///
    /// # Errors
    /// Returns an error if the text is not TOML, or a key is misspelled, missing or has an invalid value.
    pub fn from_toml(file: &str, text: &str) -> Result<Scenario, InputError> {
        let document = Document::parse(file, text)?;
        let form: ScenarioForm = document.read()?;
        let in_file = |error: WorkloadError| document.error(&error.key, error.message);
        let scenario = Scenario::try_from(form).map_err(in_file)?;
        scenario.validate().map_err(in_file)?;
        Ok(scenario)
    }

    /// Checks everything that does not depend on the system.
    ///
    /// # Errors
    /// Returns an error for the first key with an invalid value.
    pub fn validate(&self) -> Result<(), WorkloadError> {
        Ok(self.check()?)
    }

    fn check(&self) -> Result<(), Complaint> {
        let error = |key: &str, message: String| Err((key.to_owned(), message));
        if !(1..=CPUS_MAX).contains(&self.cpus) {
            return error("cpus", format!("{} is out of range; must be 1 to {CPUS_MAX}", self.cpus));
        }
        if self.network.is_some_and(|rate| rate.0 <= 0.0) {
            return error("network", "a rate of 0 is not allowed; omit the key for no limit".to_owned());
        }
        if self.streams.is_empty() {
            return error("streams", "no streams; at least one is required".to_owned());
        }
        let mut names = HashSet::new();
        for (index, stream) in self.streams.iter().enumerate() {
            stream.validate().map_err(|(key, message)| (format!("streams[{index}].{key}"), message))?;
            if !names.insert(&stream.name) {
                let message = format!("{:?} is already the name of a stream; names must differ", stream.name);
                return error(&format!("streams[{index}].name"), message);
            }
        }
        self.check_pool()?;
        match self.run_length {
            ScenarioLength::Requests(0) => {
                error("run_length.requests", "0 is out of range; must be 1 or more".to_owned())
            }
            ScenarioLength::TimeNs(0) => error("run_length.time", "0ns is out of range; must be above 0".to_owned()),
            ScenarioLength::AllDone if !self.streams.iter().any(|stream| stream.kind.is_finite()) => error(
                "run_length",
                "no stream ends; add requests or time, or a boot, a prefill, or video with frames".to_owned(),
            ),
            ScenarioLength::Requests(_) | ScenarioLength::TimeNs(_) | ScenarioLength::AllDone => Ok(()),
        }
    }

    fn check_pool(&self) -> Result<(), Complaint> {
        let shares: Vec<f64> = self.streams.iter().filter_map(|stream| stream.kind.share_percent()).collect();
        match self.pool {
            None if shares.is_empty() => Ok(()),
            None => Err(("pool".to_owned(), "streams have a share, but there is no pool; add its arrivals".to_owned())),
            Some(_) if shares.is_empty() => {
                Err(("pool".to_owned(), "no stream has a share of the pool; add share_percent to a stream".to_owned()))
            }
            Some(pool) => {
                let in_pool = |(key, message): Complaint| (key.replacen("arrivals", "pool", 1), message);
                pool.validate().map_err(in_pool)?;
                check_sum("streams", shares.into_iter())
            }
        }
    }

    /// Returns the scenario with `clients` clients in each stream that has a number of clients, and as many threads in
    /// the pool. Each number of clients gives one point of a saturation curve.
    #[must_use]
    pub fn with_clients(&self, clients: u32) -> Scenario {
        let mut scenario = self.clone();
        let set = |arrivals: &mut Arrivals| {
            if let Arrivals::Closed { queue_depth, .. } = arrivals {
                *queue_depth = clients;
            }
        };
        scenario.pool.iter_mut().for_each(set);
        for stream in &mut scenario.streams {
            match &mut stream.kind {
                StreamKind::Access(Access { load: Load::Own(arrivals), .. }) => set(arrivals),
                StreamKind::Web(web) => web.users = clients,
                StreamKind::Boot(boot) => boot.guests = clients,
                StreamKind::Transactions(transactions) => transactions.clients = clients,
                StreamKind::Sequential(sequential) => sequential.streams = clients,
                StreamKind::Database(database) => database.clients = clients,
                StreamKind::Access(_) | StreamKind::Video(_) | StreamKind::Prefill(_) => {}
            }
        }
        scenario
    }
}
