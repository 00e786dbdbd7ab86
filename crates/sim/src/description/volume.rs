//! [`VolumeDescription`]: a cloud volume, fully resolved: how its requests are counted, its limits, and its latency.

use serde::{Deserialize, Serialize};

use crate::error::{InvalidDescription, require};

/// A block volume behind a network, as described by its provider.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VolumeDescription {
    /// Product name, for people.
    pub name: String,
    /// Bytes that it exports.
    pub capacity_bytes: u64,
    /// Bytes of a logical block: 512 or 4096.
    pub block_bytes: u32,
    /// How requests are counted.
    pub accounting: Accounting,
    /// Limits; all of them apply.
    pub limits: Vec<Limit>,
    /// How long a read takes that no limit holds back.
    pub read: Latency,
    /// Latency of a write.
    pub write: Latency,
    /// Requests that its driver keeps in it.
    pub queue_depth: u32,
}

/// How requests are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Accounting {
    /// A longer request counts as so many of this length, rounded up; absent if the length does not count.
    pub unit_bytes: Option<u32>,
    /// Requests that continue the last one of their kind count together, up to a unit.
    pub merges: bool,
    /// A request that continues nothing pays a whole unit of bytes, as a disk's arm would.
    pub whole_units: bool,
}

/// A limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// Counted quantity.
    pub counts: Counts,
    /// The requests that this limit counts.
    pub of: Of,
    /// Sustained rate per second.
    pub per_s: u64,
    /// More for a time.
    pub burst: Option<Burst>,
}

/// Quantity that a limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Counts {
    /// Requests, as the volume accounts them.
    Requests,
    /// Bytes.
    Bytes,
}

/// Which requests a limit counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Of {
    /// Only reads.
    Reads,
    /// Only writes.
    Writes,
    /// Both together.
    #[default]
    Both,
}

/// Burst credits: unused rate is saved up to a limit, and use above the rate consumes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Burst {
    /// Rate per second while there are credits.
    pub per_s: u64,
    /// Credits that the bucket holds, and has at the start.
    pub credits: u64,
}

/// How long an answer takes: at least the floor, and above it log-normal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Latency {
    /// The shortest.
    pub floor_ns: u64,
    /// Half are shorter.
    pub median_ns: u64,
    /// 99 % quantile.
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
