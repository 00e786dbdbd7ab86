//! [`VolumeDescription`]: the full description of a cloud volume: how requests are counted, limits, and latency. See
//! docs/design/volumes.md.

use serde::{Deserialize, Serialize};

use crate::error::{InvalidDescription, require};

/// A block volume behind a network, modelled on its provider's published figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VolumeDescription {
    /// Product name, for display.
    pub name: String,
    /// Exported capacity, in bytes.
    pub capacity_bytes: u64,
    /// Logical block size in bytes: 512 or 4096.
    pub block_bytes: u32,
    /// How requests are counted.
    pub accounting: Accounting,
    /// Limits of the volume; all of them apply.
    pub limits: Vec<Limit>,
    /// Latency of a read that no limit delays.
    pub read: Latency,
    /// Latency of a write that no limit delays.
    pub write: Latency,
    /// Queue depth of the volume's driver.
    pub queue_depth: u32,
    /// How long each limit keeps an unused allowance, in ns: after a pause, this much of a second's worth passes at
    /// once. 0 spaces requests evenly, so that random arrivals queue before the limit is reached.
    #[serde(default)]
    pub slack_ns: u64,
    /// How much each read in flight lengthens another, in millionths of the time between reads at their limit. The
    /// median is then about `median / (1 - crowding * share of the limit)`, as in flash whose reads share dies.
    #[serde(default)]
    pub read_crowding_ppm: u32,
}

impl VolumeDescription {
    /// Returns the lowest limit of reads per second; `None` without one.
    pub fn reads_per_s(&self) -> Option<u64> {
        let limits = self.limits.iter().filter(|limit| limit.counts == Counts::Requests);
        limits.filter(|limit| limit.of != LimitScope::Writes).map(|limit| limit.per_s).min()
    }
}

/// How requests are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Accounting {
    /// Length in bytes above which a request counts as several, rounded up; `None` if the length does not matter.
    pub unit_bytes: Option<u32>,
    /// Whether consecutive sequential requests of the same kind count as one request, up to a unit.
    pub merges: bool,
    /// Whether a request that is not sequential consumes a whole unit of bytes, as on a disk that must seek.
    pub whole_units: bool,
}

/// A limit of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// Quantity that the limit counts.
    pub counts: Counts,
    /// Kinds of requests that the limit counts.
    pub of: LimitScope,
    /// Sustained rate, per second.
    pub per_s: u64,
    /// Higher rate for a limited time; `None` if there is no burst.
    pub burst: Option<Burst>,
}

/// Quantity that a limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Counts {
    /// Requests, counted as stated in [`Accounting`].
    Requests,
    /// Bytes.
    Bytes,
}

/// Kinds of requests that a limit counts.
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

/// A bucket of credits: unused parts of the limit fill the bucket, and use above the limit empties it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Burst {
    /// Rate while there are credits, per second.
    pub per_s: u64,
    /// Capacity of the bucket in credits; the bucket starts full.
    pub credits: u64,
}

/// Latency distribution: log-normal, above a minimum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Latency {
    /// Minimum latency.
    pub floor_ns: u64,
    /// Median latency.
    pub median_ns: u64,
    /// 99th percentile of the latency.
    pub p99_ns: u64,
}

/// Longest slack of a limit, in ns. A longer one would exceed the stated rate over a second.
const MAX_SLACK_NS: u64 = 1_000_000_000;

/// Checks the description of a volume.
///
/// # Errors
/// Returns an error for the first impossible field.
pub fn check(volume: &VolumeDescription) -> Result<(), InvalidDescription> {
    let block = volume.block_bytes;
    require(matches!(block, 512 | 4096), "capacity.logical_block", || {
        format!("{block} is not allowed; use 512 or 4096")
    })?;
    require(volume.capacity_bytes >= u64::from(block), "capacity.size", || {
        "the size must be at least one block".to_owned()
    })?;
    require(volume.accounting.unit_bytes != Some(0), "volume.unit", || {
        "0 bytes is not allowed; must be more than 0".to_owned()
    })?;
    require(volume.queue_depth >= 1, "volume.queue_depth", || "0 is out of range; must be 1 or more".to_owned())?;
    let slack_ns = volume.slack_ns;
    require(slack_ns <= MAX_SLACK_NS, "volume.slack", || {
        format!("{slack_ns} ns is out of range; must be 0 to {MAX_SLACK_NS} ns, since limits are stated per second")
    })?;
    let crowding_ppm = volume.read_crowding_ppm;
    require(crowding_ppm < 1_000_000, "volume.read_crowding", || {
        format!("{crowding_ppm} millionths are out of range; must be below 1, so that reads reach their limit")
    })?;
    require(crowding_ppm == 0 || volume.reads_per_s().is_some(), "volume.read_crowding", || {
        "needs a limit of reads per second".to_owned()
    })?;
    check_limits(&volume.limits, "volume.limits")?;
    for (latency, key) in [(volume.read, "volume.read"), (volume.write, "volume.write")] {
        let Latency { floor_ns, median_ns, p99_ns } = latency;
        require(floor_ns < median_ns && median_ns < p99_ns, key, || {
            format!("{floor_ns}, {median_ns} and {p99_ns} ns are not ascending; must be floor < median < p99")
        })?;
    }
    Ok(())
}

/// Checks limits, which `path` names in errors.
///
/// # Errors
/// Returns an error for the first impossible limit.
pub(crate) fn check_limits(limits: &[Limit], path: &str) -> Result<(), InvalidDescription> {
    for (index, limit) in limits.iter().enumerate() {
        let key = format!("{path}[{index}]");
        require(limit.per_s >= 1, &key, || "0 per second is out of range; must be 1 or more".to_owned())?;
        let Some(burst) = limit.burst else { continue };
        require(burst.per_s >= limit.per_s, &key, || {
            format!("a burst of {} per second is out of range; must be {} or more", burst.per_s, limit.per_s)
        })?;
        let credits = burst.credits;
        require((1..1 << 60).contains(&credits), &key, || {
            format!("{credits} credits are out of range; must be 1 to 2^60")
        })?;
    }
    Ok(())
}
