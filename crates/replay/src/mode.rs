//! Settings of a replay: when recorded requests are issued, and how those that do not fit are treated.

use serde::{Deserialize, Serialize};

/// End of all times of a replay: 73 years. The sum of two such times fits 63 bits, with room for the delays of a
/// system.
pub(crate) const LATEST_NS: u64 = 1 << 61;

/// An error in the settings of a replay or in its recording.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// A request of the recording cannot be replayed, or does not lie on the system.
    #[error("request {number}: {message}")]
    Request {
        /// Number from 1.
        number: u64,
        /// The error and the allowed values.
        message: String,
    },
    /// The recording cannot be replayed with these settings.
    #[error("replay: {0}")]
    Settings(String),
}

/// When a recorded request is issued again.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ReplayMode {
    /// At its recorded time, counted from the first request, whether or not the system keeps up.
    Timed {
        /// Factor on all times: 2 takes twice as long. Finite and above 0.
        time_scale: f64,
    },
    /// As soon as there is room: always this many outstanding, in recorded order.
    Asap {
        /// Requests outstanding, from 1.
        depth: u32,
    },
    /// By virtual clients with their recorded think times. A request is issued by the client whose last request was, in
    /// the recording, complete last before it arrived (of several, the one that had arrived first), and as long after
    /// that completion as recorded; if there is no such client, a new one starts at the request's recorded time. A
    /// client whose request has no recorded completion ends with it.
    Closed,
    /// After all requests that it waited for in the recording, and as long after the last of them as recorded. These
    /// dependencies are inferred. A request that waited for none is issued at its recorded time: it is an arrival from
    /// outside, which a slower system would not have delayed.
    ///
    /// Without `max_ns`: the last completions before it with no other arrival in between, if they are no more than
    /// [`ReplayMode::REACTION_MAX_NS`] old. A program that keeps `n` requests in flight answers each completion with a
    /// request, which then waits for that one; a program that waits for all requests of a group answers the last of
    /// them, and its next requests wait for all.
    ///
    /// With `max_ns`: all requests that were complete between `min_ns` and `max_ns` before it arrived, without those
    /// that others of them waited for, at most one more than were ever in flight at a time. This keeps every order
    /// within that time, even a chance one: on a system that completes requests in another order it delays requests.
    Dependent {
        /// Later completions cannot have been known to the issuer of the request.
        min_ns: u64,
        /// Earlier completions were not waited for.
        #[serde(default)]
        max_ns: Option<u64>,
    },
}

impl ReplayMode {
    /// [`ReplayMode::Dependent`] if nothing is known about the issuer of the requests: a request that follows a
    /// completion in the recording may be an immediate answer to it.
    pub const DEPENDENT: ReplayMode = ReplayMode::Dependent { min_ns: 0, max_ns: None };
    /// The longest time within which a program is taken to answer a completion: 100 ms, the time within which people
    /// perceive an answer as immediate (Miller, 1968). Longer pauses are those of users and timers, which do not depend
    /// on a disk's completion.
    pub const REACTION_MAX_NS: u64 = 100_000_000;

    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            ReplayMode::Timed { .. } => "timed",
            ReplayMode::Asap { .. } => "asap",
            ReplayMode::Closed => "closed",
            ReplayMode::Dependent { .. } => "dependent",
        }
    }

    /// Factor on all recorded times.
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
    /// The request is an error.
    #[default]
    Refuse,
    /// The request goes to its offset modulo the capacity, moved down if it would cross the end.
    Fold,
    /// The request is left out.
    Drop,
}

impl Outside {
    /// All of them.
    pub const ALL: [Outside; 3] = [Outside::Refuse, Outside::Fold, Outside::Drop];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Outside::Refuse => "refuse",
            Outside::Fold => "fold",
            Outside::Drop => "drop",
        }
    }
}

/// How a recording is replayed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replay {
    /// The recording's name, for people.
    pub name: String,
    /// When requests are issued.
    pub mode: ReplayMode,
    /// How requests outside the system are treated.
    #[serde(default)]
    pub outside: Outside,
    /// When the first request comes, on the player's clock. In virtual time, a recording whose clock began with its
    /// system, as that of a simulated run does, comes out the same to the nanosecond only if this is its first arrival:
    /// until then the spindle has turned. Otherwise it does not matter.
    #[serde(default)]
    pub start_ns: u64,
    /// Replays only this many requests from the first on.
    #[serde(default)]
    pub requests_max: Option<u64>,
    /// Only the requests that arrived no later than this after the first, on the recording's clock.
    #[serde(default)]
    pub time_max_ns: Option<u64>,
}

impl Replay {
    /// All of a recording, whose requests all lie on the system.
    pub fn new(name: impl Into<String>, mode: ReplayMode) -> Replay {
        Replay { name: name.into(), mode, outside: Outside::Refuse, start_ns: 0, requests_max: None, time_max_ns: None }
    }

    /// Checks whether the replay can be carried out; [`Player::new`](crate::Player::new) checks too.
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
