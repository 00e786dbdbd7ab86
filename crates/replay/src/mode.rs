//! [`Replay`]: when recorded requests are issued, and how the replay treats requests outside the system.

use serde::{Deserialize, Serialize};

/// Maximum time in a replay: 73 years. The sum of two such times fits 63 bits and leaves room for any delay of the
/// system.
pub(crate) const LATEST_NS: u64 = 1 << 61;

/// An error in the replay settings or in the trace.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The trace contains a request that cannot be replayed or that is outside the system.
    #[error("request {number}: {message}")]
    Request {
        /// Request number, from 1.
        number: u64,
        /// Description of the error and the allowed values.
        message: String,
    },
    /// The trace cannot be replayed with these settings.
    #[error("replay: {0}")]
    Settings(String),
}

/// When recorded requests are issued.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ReplayMode {
    /// Issues each request at its recorded time, relative to the first request, whether or not the system keeps up.
    Timed {
        /// Factor applied to all times: 2 makes the replay take twice as long. Finite and above 0.
        time_scale: f64,
    },
    /// Issues requests as fast as possible, in recorded order, at a constant queue depth.
    Asap {
        /// Queue depth, at least 1.
        depth: u32,
    },
    /// Issues requests from virtual clients with their recorded think times. A request belongs to the client whose
    /// previous request completed last before the request arrived in the trace (on a tie, the client whose request
    /// arrived first). The request is issued after that completion plus the recorded think time. If no client is idle,
    /// a new client starts at the recorded time. A client ends with its first request that has no recorded completion.
    Closed,
    /// Issues each request after the completions it depended on in the trace, plus the recorded delay after the last of
    /// these completions. Dependencies are inferred. A request without dependencies is issued at its recorded time: it
    /// is an external arrival, which a slower system would not have delayed.
    ///
    /// Without `max_ns`, a request depends on the last run of completions before it with no arrival in between, if they
    /// are at most [`ReplayMode::REACTION_MAX_NS`] old. For example, a program that keeps `n` requests in flight issues
    /// a request after each completion, so each request depends on one completion. A program that waits for a whole
    /// batch reacts to the last completion of the batch, so its next request depends on the whole batch.
    ///
    /// With `max_ns`, a request depends on all requests that completed between `min_ns` and `max_ns` before its
    /// arrival, excluding those implied by other dependencies, and on at most one more than the maximum number of
    /// requests in flight. This preserves every ordering within that window, even a coincidental one, so it delays
    /// requests on a system that completes them in a different order.
    Dependent {
        /// Minimum age of a completion, in ns: the issuer cannot have reacted to a more recent one.
        min_ns: u64,
        /// Maximum age of a completion, in ns: the issuer did not wait for an older one.
        #[serde(default)]
        max_ns: Option<u64>,
    },
}

impl ReplayMode {
    /// [`ReplayMode::Dependent`] for an unknown issuer: any request after a completion may be an immediate reaction to
    /// it.
    pub const DEPENDENT: ReplayMode = ReplayMode::Dependent { min_ns: 0, max_ns: None };
    /// Longest assumed reaction time of a program to a completion: 100 ms, within which people perceive a response as
    /// immediate (Miller, 1968). Longer pauses come from users and timers and are not relative to a disk completion.
    pub const REACTION_MAX_NS: u64 = 100_000_000;

    /// Returns the name of the mode.
    pub fn name(&self) -> &'static str {
        match self {
            ReplayMode::Timed { .. } => "timed",
            ReplayMode::Asap { .. } => "asap",
            ReplayMode::Closed => "closed",
            ReplayMode::Dependent { .. } => "dependent",
        }
    }

    /// Returns the factor applied to all recorded times.
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
                error(format!("min_ns must be at most max_ns, not {min_ns} with max_ns {max_ns}"))
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
    /// Takes the offset modulo the capacity, moved down if the request would cross the end.
    Fold,
    /// Drops the request.
    Drop,
}

impl Outside {
    /// All variants.
    pub const ALL: [Outside; 3] = [Outside::Refuse, Outside::Fold, Outside::Drop];

    /// Returns the name of the variant.
    pub fn name(self) -> &'static str {
        match self {
            Outside::Refuse => "refuse",
            Outside::Fold => "fold",
            Outside::Drop => "drop",
        }
    }
}

/// Settings for replaying a trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replay {
    /// Display name of the trace.
    pub name: String,
    /// When requests are issued.
    pub mode: ReplayMode,
    /// How the replay treats requests outside the system.
    #[serde(default)]
    pub outside: Outside,
    /// Arrival time of the first request on the player's clock. Matters only in virtual time, for a trace whose clock
    /// started with its system, such as the trace of a simulated run: set it to the trace's first arrival to reproduce
    /// the run to the nanosecond, because the platters rotate until then.
    #[serde(default)]
    pub start_ns: u64,
    /// Maximum number of requests to read.
    #[serde(default)]
    pub requests_max: Option<u64>,
    /// Maximum arrival time of a request relative to the first, in ns on the trace's clock.
    #[serde(default)]
    pub time_max_ns: Option<u64>,
}

impl Replay {
    /// Creates settings to replay a complete trace whose requests are all within the system.
    pub fn new(name: impl Into<String>, mode: ReplayMode) -> Replay {
        Replay { name: name.into(), mode, outside: Outside::Refuse, start_ns: 0, requests_max: None, time_max_ns: None }
    }

    /// Checks the settings; [`Player::new`](crate::Player::new) also does this.
    ///
    /// # Errors
    /// Returns [`ReplayError::Settings`] if a value is out of range.
    pub fn check(&self) -> Result<(), ReplayError> {
        if self.start_ns >= LATEST_NS {
            return Err(ReplayError::Settings(format!("start_ns must be below 2^61, not {}", self.start_ns)));
        }
        self.mode.check()
    }
}
