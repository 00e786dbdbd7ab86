//! What caches of the lab did.

use serde::Serialize;

use super::options::{LabOptions, LabPolicy, Unit};

/// What goes to the system behind a cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Traffic {
    pub read_operations: u64,
    pub read_bytes: u64,
    pub write_operations: u64,
    pub write_bytes: u64,
}

/// What one cache counts; reads first, then writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub references: [u64; 2],
    pub hits: [u64; 2],
    pub traffic: Traffic,
    /// What the back end lacks in the end.
    pub dirty_bytes: u64,
}

/// A share, with its band where it is estimated.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Share {
    /// From 0 to 1.
    pub value: f64,
    /// Lower end of the 95 % band; null where the count is exact.
    pub low: Option<f64>,
    /// Upper end of the 95 % band; null where the count is exact.
    pub high: Option<f64>,
}

/// One policy at one size.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CacheReport {
    /// The policy's name.
    pub policy: String,
    /// The size in blocks, objects or bytes of objects, as was asked.
    pub cache: u64,
    /// The size in bytes; null where objects are counted.
    pub cache_bytes: Option<u64>,
    /// References that miss, over all.
    pub miss_ratio: Share,
    /// Miss ratio of reads; null without reads.
    pub read_miss_ratio: Option<Share>,
    /// Miss ratio of writes; null without writes.
    pub write_miss_ratio: Option<Share>,
    /// Reads of the system behind, of which neighbours that miss together are one; null where a sample breaks neighbours up.
    pub back_reads: Option<u64>,
    /// Bytes read from it.
    pub back_read_bytes: f64,
    /// Writes to it: what goes through, and what is destaged; null as of reads.
    pub back_writes: Option<u64>,
    /// Bytes written to it.
    pub back_write_bytes: f64,
    /// Bytes that it lacks in the end.
    pub dirty_bytes: f64,
}

/// All of them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LabReport {
    /// What is counted: `blocks`, `objects` or `bytes` of objects.
    pub unit: String,
    /// Bytes of a block; null where requests are objects.
    pub block_bytes: Option<u32>,
    /// References of reads, and of writes.
    pub references: [u64; 2],
    /// Requests that transfer data and are counted.
    pub requests: u64,
    /// Different blocks or objects; an estimate where `sampled_rate` is below 1.
    pub distinct: f64,
    /// Share of the blocks or objects in each sample; 1 where the count is exact.
    pub sampled_rate: f64,
    /// Independent samples; 1 where the count is exact.
    pub samples: u32,
    /// Policies in the order asked for, each at sizes in that order.
    pub caches: Vec<CacheReport>,
}

/// Bands are so much wider than those of a normal law: a hot block that samples hold or lack makes figures skewed, and small
/// caches of a sample miss a little more than theirs should. Without, 85 % of the figures of a trace with popular blocks lay in
/// their bands of 95 %.
const WIDER: f64 = 2.0;
/// And by this more to each side: the bias of small caches does not become less where samples agree. Without, 92 % of the
/// figures of a real trace lay in their bands, which were 0.005 wide.
const BIAS: f64 = 0.002;
/// Student's t for a band of 95 % from so many samples, by degrees of freedom from 1 on; beyond, the normal law's is less than
/// 5 % smaller.
const T: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

/// What the samples, or the only count, say of one cache.
pub(super) fn summarise(
    policy: LabPolicy,
    size: u64,
    options: &LabOptions,
    referred: [u64; 2],
    rate: f64,
    lanes: &[Counts],
) -> CacheReport {
    let is_exact = lanes.len() == 1;
    // Misses over the references that a sample of this rate should hold, not over those that it happens to hold: a hot block
    // that it has or lacks is nearly all hits.
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
            other => unreachable!("policies have names: {other:?}"),
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
