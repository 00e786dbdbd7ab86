//! Scenarios: several kinds of clients at once, each on its own LUN and range.
//!
//! A [`Scenario`] is a file of [`Stream`]s. A [`ScenarioRun`] makes clients of them, which the simulator
//! asks for their next [`Step`].

mod access;
mod boot;
mod form;
mod machine;
mod prefill;
mod range;
mod run;
mod sequential;
mod step;
mod transactions;
mod video;
mod web;

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

pub use access::{Access, Load};
pub use boot::{Boot, GoldenImage, Phase};
pub use prefill::{Order, Prefill};
pub use range::{Mark, Range};
pub use run::{ScenarioRun, StreamReport};
pub use sequential::{Direction, Sequential};
pub use step::{Facts, GuestBoot, Step};
pub use transactions::Transactions;
pub use video::Video;
pub use web::{Layout, Web};

use form::ScenarioForm;

use crate::access::{AccessLine, Complaint, check_sum};
use crate::arrivals::{Arrivals, WarmUp};
use crate::document::{Document, InputError};
use crate::error::WorkloadError;
use crate::quantity::{Rate, duration_u64};

/// The most processors of a host.
const CPUS_MAX: u32 = 4_096;

/// What a system is put under by several kinds of clients at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "ScenarioForm", into = "ScenarioForm")]
pub struct Scenario {
    /// The scenario's name in the catalogue.
    pub name: String,
    /// Where its figures come from.
    pub source: String,
    /// Processors of the host, which [`Step::Cpu`] occupies.
    pub cpus: u32,
    /// Rate of the network in front of the server, which [`Step::Transfer`] goes over; absent, transfers
    /// take no time.
    pub network: Option<Rate>,
    /// The pool that issues the requests of all streams with a share: its threads, or its rate.
    pub pool: Option<Arrivals>,
    /// What is left out at the start of a run; nothing where a file does not say.
    pub warm_up: WarmUp,
    /// How long a run lasts.
    pub run_length: ScenarioLength,
    /// The kinds of clients.
    pub streams: Vec<Stream>,
}

/// How long a scenario runs after its warm-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScenarioLength {
    /// This many completed requests of all streams.
    Requests(u64),
    /// This many nanoseconds.
    #[serde(rename = "time")]
    TimeNs(#[serde(with = "duration_u64")] u64),
    /// Until its finite streams are done: boots, prefills, and video of so many frames.
    AllDone,
}

/// Clients of one kind, whose results are kept apart.
#[derive(Clone, Debug, PartialEq)]
pub struct Stream {
    /// Its name in results, unlike all others.
    pub name: String,
    /// The LUN it goes to; the whole system where absent.
    pub lun: Option<String>,
    /// The part of the LUN; all of it where absent.
    pub range: Option<Range>,
    /// What its clients do.
    pub kind: StreamKind,
}

/// What the clients of a stream do.
#[derive(Clone, Debug, PartialEq)]
pub enum StreamKind {
    /// Requests by an access specification.
    Access(Access),
    /// Users of a web server.
    Web(Web),
    /// Guests that boot.
    Boot(Boot),
    /// Video at a frame rate.
    Video(Video),
    /// Clients of a transaction server.
    Transactions(Transactions),
    /// Sequential streams.
    Sequential(Sequential),
    /// LUNs that are written once.
    Prefill(Prefill),
}

impl StreamKind {
    /// The kind's name: that of its table in the file.
    pub fn name(&self) -> &'static str {
        match self {
            StreamKind::Access(_) => "access",
            StreamKind::Web(_) => "web",
            StreamKind::Boot(_) => "boot",
            StreamKind::Video(_) => "video",
            StreamKind::Transactions(_) => "transactions",
            StreamKind::Sequential(_) => "sequential",
            StreamKind::Prefill(_) => "prefill",
        }
    }

    /// Whether its clients are done one day.
    pub fn is_finite(&self) -> bool {
        match self {
            StreamKind::Boot(_) | StreamKind::Prefill(_) => true,
            StreamKind::Video(video) => video.frames.is_some(),
            StreamKind::Access(_) | StreamKind::Web(_) | StreamKind::Transactions(_) | StreamKind::Sequential(_) => {
                false
            }
        }
    }

    /// Whether its clients change what is stored: write, or trim.
    pub fn writes(&self) -> bool {
        let changes = |lines: &[AccessLine]| lines.iter().any(|line| line.read_percent < 100.0);
        match self {
            StreamKind::Access(access) => changes(&access.lines),
            StreamKind::Boot(boot) => boot.phases.iter().any(|phase| changes(&phase.lines)),
            StreamKind::Video(video) => video.writes > 0,
            StreamKind::Transactions(transactions) => changes(&transactions.lines),
            StreamKind::Sequential(sequential) => sequential.direction == Direction::Write,
            StreamKind::Prefill(_) => true,
            StreamKind::Web(_) => false,
        }
    }

    fn validate(&self) -> Result<(), Complaint> {
        match self {
            StreamKind::Access(access) => access.validate(),
            StreamKind::Web(web) => web.validate(),
            StreamKind::Boot(boot) => boot.validate(),
            StreamKind::Video(video) => video.validate(),
            StreamKind::Transactions(transactions) => transactions.validate(),
            StreamKind::Sequential(sequential) => sequential.validate(),
            StreamKind::Prefill(prefill) => prefill.validate(),
        }
    }

    /// The stream's part of the pool, if it has one.
    fn share_percent(&self) -> Option<f64> {
        match self {
            StreamKind::Access(Access { load: Load::SharePercent(percent), .. }) => Some(*percent),
            _ => None,
        }
    }
}

impl Stream {
    fn validate(&self) -> Result<(), Complaint> {
        self.range.map_or(Ok(()), |range| range.validate())?;
        self.kind.validate().map_err(|(key, message)| (format!("{}.{key}", self.kind.name()), message))
    }
}

impl Scenario {
    /// Reads and checks a scenario; `file` is the name used in errors.
    ///
    /// # Errors
    /// When the text is not TOML, or a key is misspelt, missing or has a value that is not allowed.
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
    /// The first key whose value is not allowed.
    pub fn validate(&self) -> Result<(), WorkloadError> {
        Ok(self.check()?)
    }

    fn check(&self) -> Result<(), Complaint> {
        let error = |key: &str, message: String| Err((key.to_owned(), message));
        if !(1..=CPUS_MAX).contains(&self.cpus) {
            return error("cpus", format!("{} is out of range; 1 to {CPUS_MAX} is allowed", self.cpus));
        }
        if self.network.is_some_and(|rate| rate.0 <= 0.0) {
            return error("network", "a rate of 0 is not allowed; leave the key out for no limit".to_owned());
        }
        if self.streams.is_empty() {
            return error("streams", "there are no streams; at least one is needed".to_owned());
        }
        let mut names = HashSet::new();
        for (index, stream) in self.streams.iter().enumerate() {
            stream.validate().map_err(|(key, message)| (format!("streams[{index}].{key}"), message))?;
            if !names.insert(&stream.name) {
                let message = format!("{:?} is the name of another stream; each has its own", stream.name);
                return error(&format!("streams[{index}].name"), message);
            }
        }
        self.check_pool()?;
        match self.run_length {
            ScenarioLength::Requests(0) => {
                error("run_length.requests", "0 is not allowed; a run measures something".to_owned())
            }
            ScenarioLength::TimeNs(0) => {
                error("run_length.time", "0ns is not allowed; a run measures something".to_owned())
            }
            ScenarioLength::AllDone if !self.streams.iter().any(|stream| stream.kind.is_finite()) => error(
                "run_length",
                "no stream is ever done; requests or time is allowed, or a boot, a prefill, or video with frames"
                    .to_owned(),
            ),
            _ => Ok(()),
        }
    }

    fn check_pool(&self) -> Result<(), Complaint> {
        let shares: Vec<f64> = self.streams.iter().filter_map(|stream| stream.kind.share_percent()).collect();
        match self.pool {
            None if shares.is_empty() => Ok(()),
            None => {
                Err(("pool".to_owned(), "streams have a share, but there is no pool; give its arrivals".to_owned()))
            }
            Some(_) if shares.is_empty() => {
                Err(("pool".to_owned(), "no stream has a share of it; one with share_percent is needed".to_owned()))
            }
            Some(pool) => {
                let in_pool = |(key, message): Complaint| (key.replacen("arrivals", "pool", 1), message);
                pool.validate().map_err(in_pool)?;
                check_sum("streams", shares.into_iter())
            }
        }
    }

    /// The scenario with `clients` clients in place of those of each stream that has a number of them, and
    /// of the pool's threads: the points of a saturation curve.
    #[must_use]
    pub fn with_clients(&self, clients: u32) -> Scenario {
        let mut scenario = self.clone();
        let set = |arrivals: &mut Arrivals| {
            if let Arrivals::Closed { outstanding, .. } = arrivals {
                *outstanding = clients;
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
                StreamKind::Access(_) | StreamKind::Video(_) | StreamKind::Prefill(_) => {}
            }
        }
        scenario
    }
}
