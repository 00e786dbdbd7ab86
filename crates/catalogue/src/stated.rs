//! [`StatedRate`]: rates that data sheets promise, as stated under `[stated]` in files of disks and SSDs.

use headstack_workload::quantity::Bytes;
use serde::{Deserialize, Serialize};

/// A promised rate of requests, such as `{ iops = 90_000, depth = 32, size = "4KiB" }`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatedRate {
    /// Rate, in IOPS.
    pub iops: f64,
    /// Queue depth; by default the depth at which this kind of drive is usually measured.
    pub depth: Option<u32>,
    /// Size of a request; default 4 KiB.
    pub size: Option<Bytes>,
}

impl StatedRate {
    /// Returns the size of a request in bytes.
    pub fn bytes(&self) -> u64 {
        self.size.map_or(4096, |size| size.0)
    }
}
