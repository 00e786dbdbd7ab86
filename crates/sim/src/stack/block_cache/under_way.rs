//! What is under way in a block cache: requests from above, and requests to the systems below.

use headstack_workload::Request;

use crate::stack::extents::Extent;

/// The origin, among the systems below.
pub(super) const ORIGIN: u32 = 0;
/// The cache device.
pub(super) const CACHE: u32 = 1;

/// A request from above.
#[derive(Clone, Debug)]
pub(super) struct HostRequest {
    pub id: u32,
    pub request: Request,
    pub started_ns: u64,
    /// Parts without an answer.
    pub parts: u32,
    pub stage: Stage,
    /// Places that a write writes; they are mapped once all its parts are done.
    pub placed: Vec<Placed>,
    /// Whether its range is unmapped once its parts are done.
    pub unmaps: bool,
    pub failed: Option<(u64, bool)>,
}

impl HostRequest {
    /// Returns the first byte and the end.
    pub fn range(&self) -> (u64, u64) {
        (self.request.offset_bytes, self.request.offset_bytes + u64::from(self.request.length_bytes))
    }
}

/// Purpose of the parts of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// They move data.
    Data,
    /// A commit, after which the devices are flushed.
    Commit,
    /// The request ends with them.
    Last,
}

/// A place on the cache device that a request writes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed {
    pub extent: Extent,
    pub dirty: bool,
    /// Whether the place is new; otherwise it has these bytes already.
    pub is_new: bool,
}

/// A part of a write that waits: for a free block, or for a copy of its block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub request: u32,
    pub start: u64,
    pub end: u64,
}

/// Purpose of a request to a system below.
#[derive(Clone, Copy, Debug)]
pub(super) enum Sent {
    /// Part of a request from above at the origin, or a flush of it.
    Origin {
        request: u32,
    },
    /// Part of a read, from the cache device.
    Hit {
        request: u32,
        extent: Extent,
        is_clean: bool,
        sent_ns: u64,
    },
    /// Part of a write, to the cache device.
    Write {
        request: u32,
        extent: Extent,
        sent_ns: u64,
    },
    /// Part of a read that was not cached, whose data are then inserted.
    Miss {
        request: u32,
        insert: u32,
    },
    /// Insertion of data that were read.
    Insert {
        insert: u32,
        extent: Extent,
        sent_ns: u64,
    },
    /// Flush of the cache device for a request from above; covers so many overwrites.
    Flush {
        request: u32,
        overwrites: u64,
    },
    /// Step of a commit.
    Commit,
    /// Read of a copy to the origin, its write, and the flush after such copies.
    JobRead {
        job: u32,
    },
    JobWrite {
        job: u32,
    },
    JobFlush,
    /// Read and write of a promotion.
    PromotionRead {
        promotion: u32,
    },
    PromotionWrite {
        promotion: u32,
    },
}

/// Insertion of data that were read from the origin.
#[derive(Clone, Copy, Debug)]
pub(super) struct Insert {
    pub start: u64,
    pub end: u64,
    /// Whether a write changed its range meanwhile.
    pub is_stale: bool,
    /// Writes to the cache device without an answer.
    pub writes: u32,
}

/// Copy of a block of the origin to the cache.
#[derive(Clone, Copy, Debug)]
pub(super) struct Promotion {
    pub extent: Extent,
}

/// Times of the layer's own events; `u64::MAX` if there is none.
#[derive(Clone, Copy, Debug)]
pub(super) struct Due {
    /// Commit without a flush from above.
    pub commit_ns: u64,
    /// Flush of the origin after copies to it.
    pub settle_ns: u64,
    /// Update of the write-back rate.
    pub update_ns: u64,
    /// Next copy to the origin.
    pub writeback_ns: u64,
}

impl Due {
    /// Nothing is due.
    pub const NEVER: Due =
        Due { commit_ns: u64::MAX, settle_ns: u64::MAX, update_ns: u64::MAX, writeback_ns: u64::MAX };

    /// Returns the earliest time.
    pub fn next_ns(&self) -> u64 {
        self.commit_ns.min(self.settle_ns).min(self.update_ns).min(self.writeback_ns)
    }
}

/// Counters of a block cache.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    pub hit_bytes: u64,
    pub missed_bytes: u64,
    pub inserted_bytes: u64,
    pub bypassed_bytes: u64,
    pub commits: u64,
    pub metadata_bytes: u64,
    pub promotions: u64,
    pub demotions: u64,
    pub waits: u64,
    pub failed_copies: u64,
}
