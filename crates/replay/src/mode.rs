//! [`Replay`]: when recorded requests are issued, and how requests outside the system are treated.

use serde::{Deserialize, Serialize};

/// Largest time of a replay: 73 years. The sum of two such times fits 63 bits, with room for all that a system may be
/// late.
pub(crate) const LATEST_NS: u64 = 1 << 61;

/// An error in the settings of a replay or in its trace.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// A request of the trace cannot be replayed, or is outside the system.
    #[error("request {number}: {message}")]
    Request {
        /// Number from 1.
        number: u64,
        /// The error and the allowed values.
        message: String,
    },
    /// The trace cannot be replayed with these settings.
    #[error("replay: {0}")]
    Settings(String),
}

/// When a recorded request is issued.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ReplayMode {
    /// At its recorded time, counted from the first request, whether or not the system keeps up.
    Timed {
        /// Factor on all times: 2 takes twice as long. Finite and above 0.
        time_scale: f64,
    },
    /// Issued as soon as there is room: at a constant queue depth, in recorded order.
    Asap {
        /// Queue depth, from 1.
        depth: u32,
    },
    /// By virtual clients with their recorded think times. A request is issued by the client whose last request was, in
    /// the trace, complete last before it arrived (of several, the one that had arrived first), and as long after that
    /// one's completion; if there is no such client, a new one begins at its recorded time. A client whose request has
    /// no recorded completion ends with it.
    Closed,
    /// After all requests that it waited for in the trace, and as long after the last of them as was recorded. These
    /// are inferred. A request that waited for none is issued at its recorded time: without a recorded dependency it is
    /// an arrival from outside, which a slower system would not have delayed.
    ///
    /// Without `max_ns`: it waits for the last completions before it without another arrival in between, if they are no
    /// more than [`ReplayMode::REACTION_MAX_NS`] old. A program that keeps `n` requests in flight follows each
    /// completion with a request, which then waits for that one; a program that waits for all of a group reacts to the
    /// last of them, and its next request waits for all.
    ///
    /// With `max_ns`: it waits for all that were complete between `min_ns` and `max_ns` before it arrived, without
    /// those that others of them waited for, at most one more than were ever in flight at a time. This keeps every
    /// order within that time, even if it was chance: on a system that completes in another order it delays requests.
    Dependent {
        /// The issuer cannot have reacted to later completions.
        min_ns: u64,
        /// The issuer did not wait for earlier ones.
        #[serde(default)]
        max_ns: Option<u64>,
    },
}

impl ReplayMode {
    /// [`ReplayMode::Dependent`] if nothing is known about the issuer of the requests: any request after a completion
    /// may be an immediate reaction to it.
    pub const DEPENDENT: ReplayMode = ReplayMode::Dependent { min_ns: 0, max_ns: None };
    /// Longest assumed reaction of a program to a completion: 100 ms, the time within which people perceive a response
    /// as immediate (Miller, 1968). Longer pauses are those of users and timers, which do not count from a disk's
    /// completion.
    pub const REACTION_MAX_NS: u64 = 100_000_000;

    /// Returns its name.
    pub fn name(&self) -> &'static str {
        match self {
            ReplayMode::Timed { .. } => "timed",
            ReplayMode::Asap { .. } => "asap",
            ReplayMode::Closed => "closed",
            ReplayMode::Dependent { .. } => "dependent",
        }
    }

    /// Returns the factor on all recorded times.
    pub(crate) fn time_scale(&self) -> f64 {
        if let ReplayMode::Timed { time_scale } = self { *time_scale } else { 1.0 }
    }

    fn check(&self) -> Result<(), ReplayError> {
        let error = |message: String| Err(ReplayError::Settings(message));
        match *self {
            ReplayMode::Timed { time_scale } if !(time_scale.is_finite() && time_scale > 0.0) => {
                error(format!("time_scale must be above 0 and finite, not {time_scale}"))
            }
            ReplayMode::Asap { depth: 0 } => error("depth must be at least 1, not 0".to_owned()),
            ReplayMode::Dependent { min_ns, max_ns } if min_ns > max_ns.unwrap_or(Self::REACTION_MAX_NS) => {
                let max_ns = max_ns.unwrap_or(Self::REACTION_MAX_NS);
                error(format!("min_ns must be at most max_ns, not {min_ns} of {max_ns}"))
            }
            ReplayMode::Timed { .. } | ReplayMode::Asap { .. } | ReplayMode::Closed | ReplayMode::Dependent { .. } => {
                Ok(())
            }
        }
    }
}

/// How a replay treats recorded requests outside the system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outside {
    /// Reports an error.
    #[default]
    Refuse,
    /// Uses its offset modulo the capacity, moved down where it would cross the end.
    Fold,
    /// Leaves it out.
    Drop,
}

impl Outside {
    /// All variants.
    pub const ALL: [Outside; 3] = [Outside::Refuse, Outside::Fold, Outside::Drop];

    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Outside::Refuse => "refuse",
            Outside::Fold => "fold",
            Outside::Drop => "drop",
        }
    }
}

/// Parameters of a replay of a trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replay {
    /// The trace's name, for display.
    pub name: String,
    /// When requests are issued.
    pub mode: ReplayMode,
    /// How requests outside the system are treated.
    #[serde(default)]
    pub outside: Outside,
    /// When the first request arrives, on the player's clock. In virtual time, a trace whose clock began with its
    /// system, such as that of a simulated run, is reproduced to the nanosecond only if this is its first arrival:
    /// until then the spindle has turned. Otherwise it does not matter.
    #[serde(default)]
    pub start_ns: u64,
    /// Limit on the number of requests, counted from the first.
    #[serde(default)]
    pub requests_max: Option<u64>,
    /// Limit on arrivals after the first, on the trace's clock.
    #[serde(default)]
    pub time_max_ns: Option<u64>,
}

impl Replay {
    /// Returns a replay of a complete trace, whose requests are all within the system.
    pub fn new(name: impl Into<String>, mode: ReplayMode) -> Replay {
        Replay { name: name.into(), mode, outside: Outside::Refuse, start_ns: 0, requests_max: None, time_max_ns: None }
    }

    /// Checks that it can be played at all; [`Player::new`](crate::Player::new) does so too.
    ///
    /// # Errors
    /// [`ReplayError::Settings`].
    pub fn check(&self) -> Result<(), ReplayError> {
        if self.start_ns >= LATEST_NS {
            return Err(ReplayError::Settings(format!("start_ns must be below 2^61, not {}", self.start_ns)));
        }
        self.mode.check()
    }
}
