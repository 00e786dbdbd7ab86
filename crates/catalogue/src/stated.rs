//! What data sheets promise, as the files of drives state it under `[stated]`: disks and solid-state drives alike.

use headstack_workload::quantity::Bytes;
use serde::{Deserialize, Serialize};

/// Requests of a kind that a sheet promises, such as `{ iops = 90_000, depth = 32, size = "4KiB" }`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatedRate {
    /// Requests a second.
    pub iops: f64,
    /// Requests outstanding; where left out, what the kind of drive is measured at.
    pub depth: Option<u32>,
    /// Bytes of a request; 4 KiB where left out.
    pub size: Option<Bytes>,
}

impl StatedRate {
    /// Bytes of a request.
    pub fn bytes(&self) -> u64 {
        self.size.map_or(4096, |size| size.0)
    }
}
