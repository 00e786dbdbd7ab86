//! [`FaultEffect`]: the effect of a fault on a request.

use serde::Serialize;

/// Effect of a fault on a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultEffect {
    /// Accessed a bad place; retries are part of the latency.
    Accessed,
    /// Failed at a bad place.
    Failed,
    /// Answered late.
    Delayed,
    /// Held without an answer.
    Held,
    /// Lost with the device.
    Lost,
    /// Sent again after a link error.
    SentAgain,
    /// Waited for the link.
    Waited,
    /// Acknowledged without having been executed.
    Answered,
    /// Needed data of a failed member, which other members provided if possible.
    Degraded,
    /// Written through because the cache could not keep the data.
    WrittenThrough,
    /// Refused with an error and not executed.
    Refused,
    /// Acknowledged but not stored.
    NotStored,
    /// Stored only in its first part.
    Shorn,
    /// Written to or read from the wrong place.
    Misdirected,
    /// Data were altered.
    Corrupted,
    /// Returned older data.
    Stale,
}
