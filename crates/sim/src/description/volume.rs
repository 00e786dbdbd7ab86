//! [`VolumeDescription`]: a cloud volume, fully resolved: how its requests are counted, its limits, and its latency.
//! See docs/design/volumes.md.

use serde::{Deserialize, Serialize};

use crate::error::{InvalidDescription, require};

/// A block volume behind a network, modelled from what its provider publishes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VolumeDescription {
    /// Product name, for display.
    pub name: String,
    /// Bytes that it exports.
    pub capacity_bytes: u64,
    /// Bytes of a logical block: 512 or 4096.
    pub block_bytes: u32,
    /// How requests are counted.
    pub accounting: Accounting,
    /// Limits that it promises; all of them apply.
    pub limits: Vec<Limit>,
    /// Latency of a read that no limit delays.
    pub read: Latency,
    /// Latency of a write that no limit delays.
    pub write: Latency,
    /// Queue depth of its driver.
    pub queue_depth: u32,
}

/// How requests are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Accounting {
    /// A longer request counts as several of this length, rounded up; `None` where length does not count.
    pub unit_bytes: Option<u32>,
    /// Whether requests that continue the last one of their kind count together, up to a unit.
    pub merges: bool,
    /// Whether a request that continues no other pays for a whole unit of bytes, as a disk's arm would.
    pub whole_units: bool,
}

/// A limit of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// Quantity that it counts.
    pub counts: Counts,
    /// Which requests it counts.
    pub of: LimitScope,
    /// Sustained rate, per second.
    pub per_s: u64,
    /// Higher rate for a limited time, if any.
    pub burst: Option<Burst>,
}

/// Quantity that a limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Counts {
    /// Requests, as the volume counts them.
    Requests,
    /// Bytes.
    Bytes,
}

/// Which requests a limit counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum LimitScope {
    /// Only reads.
    Reads,
    /// Only writes.
    Writes,
    /// Both reads and writes.
    #[default]
    Both,
}

/// A bucket of credits: the unused part of the limit fills it, and use above the limit empties it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Burst {
    /// Rate while there are credits, per second.
    pub per_s: u64,
    /// Capacity of the bucket in credits; it starts full.
    pub credits: u64,
}

/// Latency distribution: log-normal above a floor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Latency {
    /// Minimum.
    pub floor_ns: u64,
    /// Median.
    pub median_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
}

/// Checks a description.
///
/// # Errors
/// The first impossible field.
pub fn check(volume: &VolumeDescription) -> Result<(), InvalidDescription> {
    let block = volume.block_bytes;
    require(matches!(block, 512 | 4096), "capacity.logical_block", || format!("{block}; 512 and 4096 are allowed"))?;
    require(volume.capacity_bytes >= u64::from(block), "capacity.size", || "less than a block".to_owned())?;
    require(volume.accounting.unit_bytes != Some(0), "volume.unit", || "0 bytes; more are allowed".to_owned())?;
    require(volume.queue_depth >= 1, "volume.queue_depth", || "0; 1 or more are allowed".to_owned())?;
    for (index, limit) in volume.limits.iter().enumerate() {
        let key = format!("volume.limits[{index}]");
        require(limit.per_s >= 1, &key, || "0 a second; 1 or more are allowed".to_owned())?;
        let Some(burst) = limit.burst else { continue };
        require(burst.per_s >= limit.per_s, &key, || {
            format!("a burst of {} a second; {} or more are allowed", burst.per_s, limit.per_s)
        })?;
        let credits = burst.credits;
        require((1..1 << 60).contains(&credits), &key, || format!("{credits} credits; 1 to 2^60 are allowed"))?;
    }
    for (latency, key) in [(volume.read, "volume.read"), (volume.write, "volume.write")] {
        let Latency { floor_ns, median_ns, p99_ns } = latency;
        require(floor_ns < median_ns && median_ns < p99_ns, key, || {
            format!("{floor_ns}, {median_ns} and {p99_ns} ns; the floor is below the median, and that below the p99")
        })?;
    }
    Ok(())
}
