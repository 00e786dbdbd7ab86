//! [`LabReport`]: results of the lab's caches.

use serde::Serialize;

use super::options::{LabOptions, LabPolicy, Unit};

/// Traffic to the system behind a cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Traffic {
    pub read_operations: u64,
    pub read_bytes: u64,
    pub write_operations: u64,
    pub write_bytes: u64,
}

/// Counters of one cache: index 0 for reads, 1 for writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub references: [u64; 2],
    pub hits: [u64; 2],
    pub traffic: Traffic,
    /// Dirty bytes at the end.
    pub dirty_bytes: u64,
}

/// A share, with a confidence band if it is estimated.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Share {
    /// Value from 0 to 1.
    pub value: f64,
    /// Lower bound of the 95 % confidence band; null if the count is exact.
    pub low: Option<f64>,
    /// Upper bound of the 95 % confidence band; null if the count is exact.
    pub high: Option<f64>,
}

/// Result of one policy at one size.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CacheReport {
    /// Name of the policy.
    pub policy: String,
    /// Cache size in blocks, objects or bytes of objects, as requested.
    pub cache: u64,
    /// Cache size in bytes; null if objects are counted.
    pub cache_bytes: Option<u64>,
    /// Miss ratio of all references.
    pub miss_ratio: Share,
    /// Miss ratio of reads; null if there are no reads.
    pub read_miss_ratio: Option<Share>,
    /// Miss ratio of writes; null if there are no writes.
    pub write_miss_ratio: Option<Share>,
    /// Number of reads from the system behind the cache, where neighboring blocks that miss together count as one read;
    /// null if a sample separates neighbors.
    pub back_reads: Option<u64>,
    /// Bytes read from the system behind the cache.
    pub back_read_bytes: f64,
    /// Number of writes to the system behind the cache, from write-through and destages; null if a sample separates
    /// neighbors.
    pub back_writes: Option<u64>,
    /// Bytes written to the system behind the cache.
    pub back_write_bytes: f64,
    /// Dirty bytes at the end.
    pub dirty_bytes: f64,
}

/// Results of all caches.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LabReport {
    /// Unit of cache sizes: `blocks`, `objects` or `bytes` of objects.
    pub unit: String,
    /// Block size in bytes; null if requests are objects.
    pub block_bytes: Option<u32>,
    /// Number of references of reads, and of writes.
    pub references: [u64; 2],
    /// Number of counted requests (those that transfer data).
    pub requests: u64,
    /// Number of distinct blocks or objects; an estimate if `sampled_rate` is below 1.
    pub distinct: f64,
    /// Share of blocks or objects in each sample; 1 if the count is exact.
    pub sampled_rate: f64,
    /// Number of independent samples; 1 if the count is exact.
    pub samples: u32,
    /// Results by policy and then by size, in the requested order.
    pub caches: Vec<CacheReport>,
}

/// Factor by which bands are wider than those of a normal distribution. A hot block that is or is not in a sample skews
/// the figures, and small caches of a sample miss slightly too often. Without this factor, 85 % of the figures of a
/// trace with popular blocks were within their 95 % bands.
const WIDER: f64 = 2.0;
/// Additional width on each side of a band. The bias of small caches does not decrease when samples agree. Without this
/// width, 92 % of the figures of a real trace were within their bands, which were 0.005 wide.
const BIAS: f64 = 0.002;
/// Student's t for a 95 % confidence band, by degrees of freedom starting at 1; past the end, the normal value is less
/// than 5 % smaller.
const T: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

/// Returns the result of one cache from its samples, or from its only count.
pub(super) fn summarise(
    policy: LabPolicy,
    size: u64,
    options: &LabOptions,
    referred: [u64; 2],
    rate: f64,
    lanes: &[Counts],
) -> CacheReport {
    let is_exact = lanes.len() == 1;
    // Misses are divided by the expected number of references in a sample of this rate, not the actual number: nearly
    // all references to a hot block, which may or may not be in the sample, are hits.
    let misses = |counts: &Counts, kind: usize| (counts.references[kind] - counts.hits[kind]) as f64;
    let share = |kinds: &[usize]| {
        let all = kinds.iter().map(|&kind| referred[kind]).sum::<u64>() as f64;
        let of_lane = |counts: &Counts| kinds.iter().map(|&kind| misses(counts, kind)).sum::<f64>() / (all * rate);
        (all > 0.0).then(|| Share::of(&lanes.iter().map(of_lane).collect::<Vec<f64>>()))
    };
    let mean =
        |of: fn(&Counts) -> u64| lanes.iter().map(|counts| of(counts) as f64).sum::<f64>() / lanes.len() as f64 / rate;
    let first = &lanes[0];
    CacheReport {
        policy: match serde_json::to_value(policy) {
            Ok(serde_json::Value::String(name)) => name,
            other => unreachable!("every policy serializes to a name: {other:?}"),
        },
        cache: size,
        cache_bytes: match options.unit {
            Unit::Blocks { bytes } => Some(size.saturating_mul(u64::from(bytes))),
            Unit::Objects => None,
            Unit::ObjectBytes => Some(size),
        },
        miss_ratio: share(&[0, 1]).unwrap_or(Share { value: 0.0, low: None, high: None }),
        read_miss_ratio: share(&[0]),
        write_miss_ratio: share(&[1]),
        back_reads: is_exact.then_some(first.traffic.read_operations),
        back_read_bytes: mean(|counts| counts.traffic.read_bytes),
        back_writes: is_exact.then_some(first.traffic.write_operations),
        back_write_bytes: mean(|counts| counts.traffic.write_bytes),
        dirty_bytes: mean(|counts| counts.dirty_bytes),
    }
}

impl Share {
    fn of(values: &[f64]) -> Share {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        if values.len() == 1 {
            return Share { value: mean, low: None, high: None };
        }
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
        let t = T.get(values.len() - 2).copied().unwrap_or(2.042);
        let half = WIDER * t * (variance / count).sqrt() + BIAS;
        Share {
            value: mean.min(1.0),
            low: Some((mean - half).clamp(0.0, 1.0)),
            high: Some((mean + half).clamp(0.0, 1.0)),
        }
    }
}
