//! [`Access`]: access specifications in a scenario, issued by processes, at a rate, or as a share of the pool.

use serde::{Deserialize, Serialize};

use super::step::{Step, StreamSetup, Turn, io};
use crate::access::{AccessLine, AccessSpecification, Complaint, check_share};
use crate::addresses::Addresses;
use crate::arrivals::{ArrivalClock, Arrivals, RunLength, WarmUp};
use crate::error::WorkloadError;
use crate::generator::Generator;
use crate::random::{AliasTable, Purpose, Random};
use crate::span::Span;
use crate::workload::{Sequence, Workload, is_none, is_plain};

/// A stream of requests with an access specification, as in a workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "AccessForm", into = "AccessForm")]
pub struct Access {
    /// Source of the requests.
    pub load: Load,
    /// Sizes, kinds and randomness of the requests.
    pub lines: Vec<AccessLine>,
    /// Distribution of random addresses.
    pub addresses: Addresses,
    /// Number of sequential pointers, which requests use in turn.
    pub pointers: u32,
    /// Number of writes between two flushes; 0 for no flushes.
    pub flush_every: u64,
    /// Number of writes between two flushes of data and metadata; 0 for none.
    pub sync_every: u64,
    /// Number of writes from one with O_DSYNC to the next one; 0 for none.
    pub dsync_every: u64,
    /// Order of the requests.
    pub sequence: Sequence,
}

/// Source of the requests of an access stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Load {
    /// The stream's own processes or rate.
    Own(Arrivals),
    /// The scenario's pool: each request of its threads goes to this stream with this probability in percent (vdbench's
    /// skew).
    SharePercent(f64),
}

/// An access stream as written in a file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AccessForm {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    arrivals: Option<Arrivals>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    share_percent: Option<f64>,
    #[serde(default)]
    addresses: Addresses,
    #[serde(default = "default_one")]
    pointers: u32,
    #[serde(default)]
    flush_every: u64,
    #[serde(default, skip_serializing_if = "is_none")]
    sync_every: u64,
    #[serde(default, skip_serializing_if = "is_none")]
    dsync_every: u64,
    #[serde(default, skip_serializing_if = "is_plain")]
    sequence: Sequence,
    lines: Vec<AccessLine>,
}

fn default_one() -> u32 {
    1
}

impl TryFrom<AccessForm> for Access {
    type Error = &'static str;

    fn try_from(form: AccessForm) -> Result<Access, &'static str> {
        let load = match (form.arrivals, form.share_percent) {
            (Some(_), Some(_)) => return Err("arrivals and share_percent exclude each other; use one of them"),
            (None, Some(percent)) => Load::SharePercent(percent),
            (arrivals, None) => Load::Own(arrivals.unwrap_or_default()),
        };
        Ok(Access {
            load,
            lines: form.lines,
            addresses: form.addresses,
            pointers: form.pointers,
            flush_every: form.flush_every,
            sync_every: form.sync_every,
            dsync_every: form.dsync_every,
            sequence: form.sequence,
        })
    }
}

impl From<Access> for AccessForm {
    fn from(access: Access) -> AccessForm {
        let (arrivals, share_percent) = match access.load {
            Load::Own(arrivals) => (Some(arrivals), None),
            Load::SharePercent(percent) => (None, Some(percent)),
        };
        AccessForm {
            arrivals,
            share_percent,
            addresses: access.addresses,
            pointers: access.pointers,
            flush_every: access.flush_every,
            sync_every: access.sync_every,
            dsync_every: access.dsync_every,
            sequence: access.sequence,
            lines: access.lines,
        }
    }
}

/// Returns a workload with these lines, for its generator and its checks.
pub(crate) fn workload(lines: &[AccessLine], addresses: &Addresses, arrivals: Arrivals) -> Workload {
    Workload {
        name: String::new(),
        source: String::new(),
        specification: AccessSpecification { name: String::new(), lines: lines.to_vec() },
        addresses: addresses.clone(),
        streams: 1,
        stream_turn: 1,
        flush_every: 0,
        sync_every: 0,
        dsync_every: 0,
        sequence: crate::Sequence::default(),
        arrivals,
        warm_up: WarmUp::default(),
        run_length: RunLength::default(),
    }
}

impl Access {
    fn workload(&self, arrivals: Arrivals) -> Workload {
        let lines = workload(&self.lines, &self.addresses, arrivals);
        Workload {
            streams: self.pointers,
            flush_every: self.flush_every,
            sync_every: self.sync_every,
            dsync_every: self.dsync_every,
            sequence: self.sequence,
            ..lines
        }
    }

    pub(crate) fn validate(&self) -> Result<(), Complaint> {
        let arrivals = match self.load {
            Load::Own(arrivals) => arrivals,
            Load::SharePercent(percent) => {
                check_share("share_percent", percent)?;
                Arrivals::default()
            }
        };
        self.workload(arrivals).validate().map_err(|error| match error.key.as_str() {
            "streams" => ("pointers".to_owned(), error.message),
            _ => (error.key, error.message),
        })
    }
}

/// Threads or a clock that issue the requests of one access stream, or of all streams that share the pool.
pub(crate) struct AccessRun {
    pace: Pace,
    members: Vec<Member>,
    choice: AliasTable,
    choices: Random,
}

struct Member {
    stream: u32,
    generator: Generator,
}

enum Pace {
    /// One client for each request in flight or in think time, with the stream of its next request.
    Closed(Vec<Option<u32>>),
    /// A single client, which never waits for completions.
    Open { clock: ArrivalClock, next_ns: u64 },
}

impl AccessRun {
    /// Creates the clients. `seed` is used for arrivals and for choosing streams; the requests of each stream depend
    /// only on its own setup.
    pub(crate) fn new(
        members: &[(&Access, f64, StreamSetup)],
        arrivals: Arrivals,
        seed: u64,
    ) -> Result<AccessRun, (u32, WorkloadError)> {
        let weights: Vec<f64> = members.iter().map(|&(_, weight, _)| weight).collect();
        let first = members[0].2.stream;
        let pace = match arrivals {
            Arrivals::Closed { queue_depth, .. } => Pace::Closed(vec![None; queue_depth as usize]),
            Arrivals::Open { rate_per_s, process } => {
                let mut clock = ArrivalClock::new(rate_per_s, process, seed).map_err(|error| (first, error))?;
                let next_ns = clock.next_ns();
                Pace::Open { clock, next_ns }
            }
        };
        let members = members.iter().map(|(access, _, setup)| {
            Generator::new(&access.workload(arrivals), setup.span, setup.sector_bytes, setup.seed)
                .map(|generator| Member {
                    stream: setup.stream,
                    generator: generator.with_syncs_at(setup.sync_at_bytes),
                })
                .map_err(|error| (setup.stream, error))
        });
        Ok(AccessRun {
            pace,
            members: members.collect::<Result<_, _>>()?,
            choice: AliasTable::new(&weights),
            choices: Random::new(seed, Purpose::Choices),
        })
    }

    pub(crate) fn clients(&self) -> u32 {
        match &self.pace {
            Pace::Closed(threads) => threads.len() as u32,
            Pace::Open { .. } => 1,
        }
    }

    /// Whether requests arrive at set times, however many are waiting.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.pace, Pace::Open { .. })
    }

    pub(crate) fn next(&mut self, turn: Turn) -> Step {
        match &mut self.pace {
            Pace::Open { clock, next_ns } => {
                if turn.now_ns < *next_ns {
                    return Step::Think { until_ns: *next_ns };
                }
                *next_ns = clock.next_ns();
            }
            Pace::Closed(_) if turn.in_flight > 0 => return Step::Await,
            Pace::Closed(_) => {}
        }
        let picked = match &mut self.pace {
            Pace::Closed(threads) => threads[turn.client as usize].take(),
            Pace::Open { .. } => None,
        };
        let member = picked.unwrap_or_else(|| match self.members.len() {
            1 => 0,
            _ => self.choice.pick(&mut self.choices) as u32,
        });
        let Member { stream, generator } = &mut self.members[member as usize];
        if let Pace::Closed(threads) = &mut self.pace
            && picked.is_none()
        {
            let think_ns = generator.think_ns();
            if think_ns > 0 {
                threads[turn.client as usize] = Some(member);
                return Step::Think { until_ns: turn.now_ns + think_ns };
            }
        }
        io(*stream, generator.next())
    }
}

/// Creates a generator on `span` for a kind of stream with its own access lines.
pub(crate) fn generator(
    lines: &[AccessLine],
    addresses: &Addresses,
    arrivals: Arrivals,
    span: Span,
    sector_bytes: u32,
    seed: u64,
) -> Result<Generator, Complaint> {
    Generator::new(&workload(lines, addresses, arrivals), span, sector_bytes, seed)
        .map_err(|error| (error.key, error.message))
}
