//! Table `[md_journal]` of a stack file.

use headstack_sim::stack::description::MdJournalMode;
use headstack_workload::quantity::Bytes;
use serde::{Deserialize, Serialize};

/// Table `[md_journal]`; missing values are the defaults of Linux md.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MdJournalTable {
    /// Journal device, named as `stack.over`.
    pub device: Option<String>,
    /// `journal_mode`: `write-through` or `write-back`.
    pub mode: Option<MdJournalMode>,
    /// `stripe_cache_size`, in stripes.
    pub stripe_cache: Option<u32>,
    /// Finished space of the log above which its tail moves.
    pub reclaim: Option<Bytes>,
    /// Whether md flushes the journal device, because it has a volatile cache.
    pub flush: Option<bool>,
}
