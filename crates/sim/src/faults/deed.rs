//! What faults make of requests.

use serde::Serialize;

/// What a fault made of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Deed {
    /// It went to the place that is bad: what the mechanism did is in its time.
    Accessed,
    /// It failed there.
    Failed,
    /// Its answer was late.
    Delayed,
    /// Its answer was held back.
    Held,
    /// Its asker lost it with the device.
    Lost,
    /// It was sent again.
    SentAgain,
    /// It waited for the link.
    Waited,
    /// It was answered without having been done.
    Answered,
    /// Something that it wanted belongs where the member was: others made up for it, or nobody could.
    Degraded,
    /// It was written through a cache that would have kept it.
    WrittenThrough,
    /// It was answered with an error, and nothing of it was done.
    Refused,
    /// It was acknowledged and not stored.
    NotStored,
    /// Its first part was stored, and the rest was not.
    Shorn,
    /// Its data went to another place, or came from one.
    Misdirected,
    /// Its data were altered.
    Corrupted,
    /// It brought what had been there before.
    Stale,
}
