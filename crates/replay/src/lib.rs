//! Replay: a recording played on a system, simulated or real, by the same code: which recorded request comes next,
//! which requests it waits for, how faithful the replay was. It knows no system and no clock: the caller tells the
//! [`Player`] what time it is.

#![deny(clippy::wildcard_enum_match_arm)] // A new variant does not compile until every match handles it.

mod dependencies;
mod fidelity;
mod issue;
mod mode;
mod player;
mod recording;
mod soonest;
mod volumes;

use headstack_workload::Recorded;

pub use issue::{Issue, Slot};
pub use mode::{Outside, Replay, ReplayError, ReplayMode};
pub use player::{Due, Played, Player};
pub use recording::Source;
pub use volumes::{Extent, VolumeResult, Volumes};

/// A source of requests that are at hand.
pub fn in_memory<E>(records: impl IntoIterator<Item = Recorded>) -> impl FnMut(&mut Vec<Recorded>) -> Result<bool, E> {
    const BATCH: usize = 1 << 12;
    let mut records = records.into_iter();
    move |batch| {
        batch.clear();
        batch.extend(records.by_ref().take(BATCH));
        Ok(!batch.is_empty())
    }
}
