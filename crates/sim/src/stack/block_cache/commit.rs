//! [`Commit`]: the running commit of a block cache, and who waits for the next one.

/// Who waits for a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waiter {
    /// A request from above.
    Request(u32),
    /// A promotion, whose place another block had.
    Promotion(u32),
}

/// Step of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Metadata blocks are written.
    Metadata,
    /// The cache device is flushed.
    Flush,
    /// The journal entry or the superblock is written.
    Seal,
}

/// Commits: the running one and who waits.
#[derive(Clone, Debug, Default)]
pub(super) struct Commit {
    pub step: Option<Step>,
    /// Bytes of the last write of the running commit.
    pub seal_bytes: u64,
    pub waiting: Vec<Waiter>,
    pub served: Vec<Waiter>,
    /// Place of the next write of metadata.
    pub head_bytes: u64,
    /// Writes in place that the flush of the running commit covers.
    pub overwrites: u64,
}
