//! Cloud volumes: the TOML form and the limits of the volume types. See docs/design/volumes.md.

pub mod file;
pub mod instances;
pub mod pricing;
pub mod types;

use std::collections::BTreeMap;

use headstack_sim::volume::description::{Accounting, Burst, Counts, Latency, Limit, LimitScope, VolumeDescription};
use headstack_workload::quantity::{Bytes, DurationNs, Rate};
use headstack_workload::{Document, InputError};

use crate::resolve::{Derived, check_source, source_of};
use file::{LatencyTable, LimitTable, VolumeCapacityTable, VolumeFile, VolumeTable};
use types::{Order, Terms};

/// Default queue depth of a volume's driver, as in EBS's NVMe and virtio drivers; medium confidence.
pub const QUEUE_DEPTH: u32 = 1024;

/// How long the limiter of a provider keeps an unused allowance, in ns; low confidence. Measured latencies of gp3
/// volumes are flat up to 97 % of the limit, which requires 45 requests (15 ms of 3,000 per second), and those of a GCP
/// local SSD up to all of it, which requires 28 ms for a minute of random arrivals. Rates are published per second, so
/// 1 s is the upper bound. The value is the smallest that fits, which is safe for those who size by it.
pub const SLACK_NS: u64 = 30_000_000;

/// Rule for [`SLACK_NS`].
const SLACK_RULE: &str = "latency is flat up to the limit (measured on gp3 and GCP local SSD); 30 ms to 1 s fit";

/// A complete volume with its file.
#[derive(Clone, Debug, PartialEq)]
pub struct ResolvedVolume {
    /// Description with every value that the model needs.
    pub description: VolumeDescription,
    /// The file as it was read.
    pub file: VolumeFile,
    /// Values that the file does not state, in order of derivation.
    pub derived: Vec<Derived>,
}

impl ResolvedVolume {
    /// Returns the source of a key, like [`crate::Resolved::source`].
    pub fn source(&self, key: &str) -> Option<&str> {
        source_of(&self.file.sources, key)
    }
}

/// Whether a drive file describes a volume.
pub fn is_volume(document: &Document) -> bool {
    document.states("volume")
}

/// Completes a volume file.
///
/// # Errors
/// Returns the same errors as [`crate::resolve()`], and an error for a volume that the provider does not sell.
pub fn resolve(document: &Document) -> Result<ResolvedVolume, InputError> {
    let file: VolumeFile = document.read()?;
    file.sources.iter().try_for_each(|(key, source)| check_source(document, key, source))?;
    let Some(size) = file.capacity.size else {
        return Err(document.error("capacity.size", "this key is missing; set the volume's size, for example 500GiB"));
    };
    let table = &file.volume;
    let terms = table.kind.map(|kind| {
        let bytes_per_s = table.throughput.map(|rate| rate.0.round() as u64);
        kind.terms(Order { gib: size.0 >> 30, iops: table.iops, bytes_per_s })
    });
    let terms = terms.transpose().map_err(|(key, message)| document.error(key, message))?;
    let needed = |key: &str| document.error(key, "this key is missing; set it or volume.type");
    let mut derived = Vec::new();
    let mut note = |key: &str, value: String| derived.push(Derived::new(key, &value, RULE));
    let apart = limits_apart(table);
    if let Some((key, _)) = apart.first()
        && (terms.is_some() || table.limits.is_some())
    {
        return Err(document.error(key, "remove this key, or volume.type and volume.limits"));
    }
    let limits = match (&table.limits, &terms) {
        (Some(limits), _) => limits.iter().map(|limit| stated(document, limit)).collect::<Result<_, _>>()?,
        (None, Some(terms)) => {
            note("volume.limits", format_limits(&terms.limits));
            terms.limits.clone()
        }
        (None, None) if apart.is_empty() => return Err(needed("volume.limits")),
        (None, None) => apart.into_iter().map(|(_, limit)| limit).collect(),
    };
    let mut latency =
        |stated_latency: Option<LatencyTable>, of: fn(&Terms) -> Latency, key: &str| match (stated_latency, &terms) {
            (Some(table), _) => ns(document, key, table),
            (None, Some(terms)) => {
                note(key, format_latency(&of(terms)));
                Ok(of(terms))
            }
            (None, None) => Err(needed(key)),
        };
    let read = latency(table.read, |terms| terms.read, "volume.read")?;
    let write = latency(table.write, |terms| terms.write, "volume.write")?;
    let slack_ns = match (table.slack, &terms) {
        (Some(slack), _) => duration_ns(document, "volume.slack", slack)?,
        (None, Some(_)) => {
            derived.push(Derived::new("volume.slack", &format!("{} ms", SLACK_NS / 1_000_000), SLACK_RULE));
            SLACK_NS
        }
        (None, None) => 0,
    };
    let mut accounting = match &terms {
        Some(terms) => terms.accounting,
        None => Accounting { unit_bytes: None, merges: false, whole_units: false },
    };
    if let Some(unit) = table.unit {
        let unit = u32::try_from(unit.0).map_err(|_| document.error("volume.unit", "must be below 4GiB"))?;
        accounting.unit_bytes = Some(unit);
    }
    accounting.merges = table.merges.unwrap_or(accounting.merges);
    accounting.whole_units = table.whole_units.unwrap_or(accounting.whole_units);
    let block = file.capacity.logical_block.map_or(512, |block| block.0);
    let description = VolumeDescription {
        name: file.name.clone(),
        capacity_bytes: size.0 / block.max(1) * block,
        block_bytes: u32::try_from(block).unwrap_or_default(),
        accounting,
        limits,
        read,
        write,
        queue_depth: table.queue_depth.unwrap_or(QUEUE_DEPTH),
        slack_ns,
        read_crowding_ppm: (table.read_crowding.unwrap_or(0.0) * 1e6).round() as u32,
    };
    headstack_sim::volume::check(&description).map_err(|fault| document.error(&fault.key, fault.message))?;
    Ok(ResolvedVolume { description, file, derived })
}

/// Rule for values that follow from a type.
const RULE: &str = "volume.type with its size and provisioned performance";

fn format_latency(latency: &Latency) -> String {
    let us = |ns: u64| ns / 1_000;
    let Latency { floor_ns, median_ns, p99_ns } = *latency;
    format!("{} us or more, median {} us, p99 {} us", us(floor_ns), us(median_ns), us(p99_ns))
}

fn format_limits(limits: &[Limit]) -> String {
    let describe = |limit: &Limit| {
        let of = match limit.of {
            LimitScope::Both => "",
            LimitScope::Reads => " of reads",
            LimitScope::Writes => " of writes",
        };
        let what = match limit.counts {
            Counts::Requests => "requests",
            Counts::Bytes => "bytes",
        };
        let burst = |burst: Burst| format!(" (burst {}/s, bucket of {})", burst.per_s, burst.credits);
        format!("{}/s {what}{of}{}", limit.per_s, limit.burst.map_or(String::new(), burst))
    };
    limits.iter().map(describe).collect::<Vec<_>>().join("; ")
}

/// Returns the limits that are stated for reads and for writes, with their keys.
fn limits_apart(table: &VolumeTable) -> Vec<(&'static str, Limit)> {
    let bytes = |rate: Option<Rate>| rate.map(|rate| rate.0.round() as u64);
    let stated = [
        ("volume.read_iops", Counts::Requests, LimitScope::Reads, table.read_iops),
        ("volume.write_iops", Counts::Requests, LimitScope::Writes, table.write_iops),
        ("volume.read_throughput", Counts::Bytes, LimitScope::Reads, bytes(table.read_throughput)),
        ("volume.write_throughput", Counts::Bytes, LimitScope::Writes, bytes(table.write_throughput)),
    ];
    let limit = |(key, counts, of, rate): (_, _, _, Option<u64>)| {
        rate.map(|per_s| (key, Limit { counts, of, per_s, burst: None }))
    };
    stated.into_iter().filter_map(limit).collect()
}

fn stated(document: &Document, table: &LimitTable) -> Result<Limit, InputError> {
    let burst = match (table.burst_per_s, table.credits) {
        (Some(per_s), Some(credits)) => Some(Burst { per_s, credits }),
        (None, None) => None,
        _ => return Err(document.error("volume.limits", "set burst_per_s and credits together")),
    };
    Ok(Limit { counts: table.counts, of: table.of, per_s: table.per_s, burst })
}

fn duration_ns(document: &Document, key: &str, duration: DurationNs) -> Result<u64, InputError> {
    u64::try_from(duration.0).map_err(|_| document.error(key, format!("{duration} is negative; must be 0ns or more")))
}

fn ns(document: &Document, key: &str, table: LatencyTable) -> Result<Latency, InputError> {
    let ns = |duration| duration_ns(document, key, duration);
    Ok(Latency { floor_ns: ns(table.floor)?, median_ns: ns(table.median)?, p99_ns: ns(table.p99)? })
}

/// Returns the complete TOML form of a description, like [`crate::description_to_toml`].
pub fn description_to_toml(description: &VolumeDescription, sources: &BTreeMap<String, String>) -> String {
    let VolumeDescription {
        name,
        capacity_bytes,
        block_bytes,
        accounting,
        limits,
        read,
        write,
        queue_depth,
        slack_ns,
        read_crowding_ppm,
    } = description;
    let duration = |ns: u64| DurationNs(i64::try_from(ns).expect("latencies are shorter than 292 years"));
    let latency = |latency: &Latency| LatencyTable {
        floor: duration(latency.floor_ns),
        median: duration(latency.median_ns),
        p99: duration(latency.p99_ns),
    };
    let limit = |limit: &Limit| LimitTable {
        counts: limit.counts,
        of: limit.of,
        per_s: limit.per_s,
        burst_per_s: limit.burst.map(|burst| burst.per_s),
        credits: limit.burst.map(|burst| burst.credits),
    };
    let file = VolumeFile {
        name: name.clone(),
        capacity: VolumeCapacityTable {
            size: Some(Bytes(*capacity_bytes)),
            logical_block: Some(Bytes(u64::from(*block_bytes))),
        },
        volume: VolumeTable {
            unit: accounting.unit_bytes.map(|unit| Bytes(u64::from(unit))),
            merges: Some(accounting.merges),
            whole_units: Some(accounting.whole_units),
            queue_depth: Some(*queue_depth),
            slack: Some(duration(*slack_ns)),
            read_crowding: (*read_crowding_ppm > 0).then(|| f64::from(*read_crowding_ppm) / 1e6),
            limits: Some(limits.iter().map(limit).collect()),
            read: Some(latency(read)),
            write: Some(latency(write)),
            ..VolumeTable::default()
        },
        sources: sources.clone(),
        ..VolumeFile::default()
    };
    toml::to_string(&file).expect("a volume file is valid TOML")
}
