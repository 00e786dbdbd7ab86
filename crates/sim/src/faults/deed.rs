//! [`Deed`]: effects of faults on requests.

use serde::Serialize;

/// Effect of a fault on a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Deed {
    /// It accessed the bad place: the time of the mechanism includes the effect.
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
    /// Data belonged on the missing member: others compensated for it, or it failed.
    Degraded,
    /// It was written through a cache that would have kept it.
    WrittenThrough,
    /// It was answered with an error, without any effect.
    Refused,
    /// It was acknowledged and not stored.
    NotStored,
    /// Its first part was stored, and the rest was not.
    Shorn,
    /// Its data went to another place, or came from one.
    Misdirected,
    /// Its data were altered.
    Corrupted,
    /// It returned the previous data.
    Stale,
}
