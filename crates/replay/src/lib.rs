//! Replay of a trace on a simulated or real system ([`Player`]): which recorded request is next, which completions it
//! waits for, and how faithful the replay was. Knows no system and no clock: its caller reports the time. See
//! docs/design/replay.md.

#![deny(clippy::wildcard_enum_match_arm)] // A new variant does not compile until every match handles it.

mod dependencies;
mod earliest_queue;
mod fidelity;
mod issue;
mod mode;
mod player;
mod recording;
mod volumes;

use headstack_workload::Recorded;

pub use issue::{Issue, Slot};
pub use mode::{Outside, Replay, ReplayError, ReplayMode};
pub use player::{Due, Played, Player};
pub use recording::Source;
pub use volumes::{Extent, VolumeResult, Volumes};

/// Returns a source of requests in memory.
pub fn in_memory<E>(records: impl IntoIterator<Item = Recorded>) -> impl FnMut(&mut Vec<Recorded>) -> Result<bool, E> {
    const BATCH: usize = 1 << 12;
    let mut records = records.into_iter();
    move |batch| {
        batch.clear();
        batch.extend(records.by_ref().take(BATCH));
        Ok(!batch.is_empty())
    }
}
