//! [`FaultEffect`]: effects of faults on requests.

use serde::Serialize;

/// Effect of a fault on a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultEffect {
    /// Accessed a bad place: retries are part of its latency.
    Accessed,
    /// Failed at a bad place.
    Failed,
    /// Answered late.
    Delayed,
    /// Answer held back.
    Held,
    /// Lost with the device.
    Lost,
    /// Sent again.
    SentAgain,
    /// Waited for the link.
    Waited,
    /// Answered without having been done.
    Answered,
    /// Needed data that belong on a failed member: others made up for it, or none could.
    Degraded,
    /// Written through a cache that would have kept it.
    WrittenThrough,
    /// Refused with an error; none of it was done.
    Refused,
    /// Acknowledged and not stored.
    NotStored,
    /// First part stored, the rest not.
    Shorn,
    /// Data went to another place, or came from one.
    Misdirected,
    /// Data were altered.
    Corrupted,
    /// Returned older data.
    Stale,
}
