//! [`StatedRate`]: rates that data sheets promise, as the files of disks and SSDs state them under `[stated]`.

use headstack_workload::quantity::Bytes;
use serde::{Deserialize, Serialize};

/// A promised rate of requests, such as `{ iops = 90_000, depth = 32, size = "4KiB" }`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatedRate {
    /// Rate, in IOPS.
    pub iops: f64,
    /// Queue depth; by default that at which the kind of drive is usually measured.
    pub depth: Option<u32>,
    /// Bytes of a request; default 4 KiB.
    pub size: Option<Bytes>,
}

impl StatedRate {
    /// Returns the bytes of a request.
    pub fn bytes(&self) -> u64 {
        self.size.map_or(4096, |size| size.0)
    }
}
