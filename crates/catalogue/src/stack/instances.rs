//! [`Instance`]: cloud instances and their limits on all network volumes together.

use headstack_sim::stack::description::InstanceLimitDescription;
use headstack_sim::volume::description::{Accounting, Burst, Counts, Limit, LimitScope};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Provider of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Provider {
    /// awsdocs/amazon-ec2-user-guide, ebs-optimized (2023-06). MB/s of 10^6 bytes.
    Aws,
    /// azure-compute-docs, uncached limits of premium disks (2024-07 and 2026-02). MB/s of 10^6 bytes.
    Azure,
    /// gcpdiag, disk_performance_benchmark (2024-08), for SSD persistent disks. MiB/s, written and read.
    Gcp,
}

/// Limits of a type of instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Row {
    provider: Provider,
    name: &'static str,
    /// Requests per second, sustained and at most.
    requests: (u64, u64),
    /// Millions of bytes per second, sustained and at most; for GCP MiB per second, written and read.
    megabytes: (u64, u64),
}

const fn row(provider: Provider, name: &'static str, requests: (u64, u64), megabytes: (u64, u64)) -> Row {
    Row { provider, name, requests, megabytes }
}

/// Types of instances with published limits. Names of GCP end with the least number of vCPUs of their class.
const ROWS: [Row; 59] = [
    row(Provider::Aws, "t3.micro", (500, 11800), (11, 261)),
    row(Provider::Aws, "t3.large", (4000, 15700), (87, 348)),
    row(Provider::Aws, "m5.large", (3600, 18750), (81, 594)),
    row(Provider::Aws, "m5.2xlarge", (12000, 18750), (288, 594)),
    row(Provider::Aws, "m5.4xlarge", (18750, 18750), (594, 594)),
    row(Provider::Aws, "m5.24xlarge", (80000, 80000), (2375, 2375)),
    row(Provider::Aws, "c5.9xlarge", (40000, 40000), (1188, 1188)),
    row(Provider::Aws, "m6g.large", (3600, 20000), (79, 594)),
    row(Provider::Aws, "m6i.large", (3600, 40000), (81, 1250)),
    row(Provider::Aws, "m6i.4xlarge", (20000, 40000), (625, 1250)),
    row(Provider::Aws, "m6i.8xlarge", (40000, 40000), (1250, 1250)),
    row(Provider::Aws, "m6i.32xlarge", (160000, 160000), (5000, 5000)),
    row(Provider::Aws, "r6i.32xlarge", (160000, 160000), (5000, 5000)),
    row(Provider::Aws, "m7g.large", (3600, 40000), (79, 1250)),
    row(Provider::Aws, "m7g.16xlarge", (80000, 80000), (2500, 2500)),
    row(Provider::Aws, "c6in.large", (5468, 87500), (156, 2500)),
    row(Provider::Aws, "c6in.32xlarge", (350000, 350000), (10000, 10000)),
    row(Provider::Aws, "m6in.32xlarge", (350000, 350000), (10000, 10000)),
    row(Provider::Aws, "r6in.32xlarge", (350000, 350000), (10000, 10000)),
    row(Provider::Aws, "r5b.large", (5417, 43333), (156, 1250)),
    row(Provider::Aws, "r5b.4xlarge", (43333, 43333), (1250, 1250)),
    row(Provider::Aws, "r5b.24xlarge", (260000, 260000), (7500, 7500)),
    row(Provider::Aws, "x2idn.32xlarge", (260000, 260000), (10000, 10000)),
    row(Provider::Aws, "i3.16xlarge", (65000, 65000), (1750, 1750)),
    row(Provider::Aws, "i3en.24xlarge", (80000, 80000), (2375, 2375)),
    row(Provider::Aws, "i4i.large", (2500, 40000), (78, 1250)),
    row(Provider::Aws, "i4i.16xlarge", (80000, 80000), (2500, 2500)),
    row(Provider::Aws, "i4i.32xlarge", (160000, 160000), (5000, 5000)),
    row(Provider::Aws, "p4d.24xlarge", (80000, 80000), (2375, 2375)),
    row(Provider::Azure, "D2s_v3", (3200, 4000), (48, 200)),
    row(Provider::Azure, "D4s_v3", (6400, 8000), (96, 200)),
    row(Provider::Azure, "D8s_v3", (12800, 16000), (192, 400)),
    row(Provider::Azure, "D16s_v3", (25600, 32000), (384, 800)),
    row(Provider::Azure, "D32s_v3", (51200, 64000), (768, 1600)),
    row(Provider::Azure, "D48s_v3", (76800, 80000), (1152, 2000)),
    row(Provider::Azure, "D64s_v3", (80000, 80000), (1200, 2000)),
    row(Provider::Azure, "D2s_v5", (3750, 10000), (85, 1200)),
    row(Provider::Azure, "D8s_v5", (12800, 20000), (290, 1200)),
    row(Provider::Azure, "D32s_v5", (51200, 80000), (865, 2000)),
    row(Provider::Azure, "D64s_v5", (80000, 80000), (1735, 3000)),
    row(Provider::Azure, "D96s_v5", (80000, 80000), (2600, 4000)),
    row(Provider::Azure, "D2s_v6", (3750, 40000), (106, 1250)),
    row(Provider::Azure, "D16s_v6", (25600, 40000), (848, 1250)),
    row(Provider::Azure, "D96s_v6", (153600, 153600), (5088, 5088)),
    row(Provider::Azure, "D192s_v6", (260000, 260000), (12000, 12000)),
    row(Provider::Azure, "E8bds_v5", (33000, 40000), (930, 1200)),
    row(Provider::Azure, "E64bds_v5", (220000, 230000), (6000, 6500)),
    row(Provider::Azure, "E112ibds_v5", (260000, 260000), (8000, 8000)),
    row(Provider::Gcp, "n1-2", (15000, 15000), (240, 240)),
    row(Provider::Gcp, "n1-16", (20000, 20000), (1200, 1200)),
    row(Provider::Gcp, "n1-64", (100000, 100000), (1200, 1200)),
    row(Provider::Gcp, "n2-8", (15000, 15000), (800, 800)),
    row(Provider::Gcp, "n2-16", (25000, 25000), (1200, 1200)),
    row(Provider::Gcp, "n2-64", (100000, 100000), (1200, 1200)),
    row(Provider::Gcp, "e2-32", (60000, 60000), (1000, 1200)),
    row(Provider::Gcp, "c3-22", (25000, 25000), (800, 800)),
    row(Provider::Gcp, "c3-88", (80000, 80000), (1200, 1200)),
    row(Provider::Gcp, "c3d-180", (80000, 80000), (2200, 2200)),
    row(Provider::Gcp, "z3", (100000, 100000), (1200, 1200)),
];

/// Host cache of a type of instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CacheRow {
    name: &'static str,
    gib: u64,
    /// Cached requests per second, sustained and at most.
    requests: (u64, u64),
    /// Millions of cached bytes per second, sustained and at most.
    megabytes: (u64, u64),
}

const fn cache_row(name: &'static str, gib: u64, requests: (u64, u64), megabytes: (u64, u64)) -> CacheRow {
    CacheRow { name, gib, requests, megabytes }
}

/// Types whose cache size and cached limits Azure states: Dsv3 (azure-compute-docs, dsv3-series 1827cf35, 2024-09;
/// highest rates from azure-docs, 2022-06). Pages of v5 and v6 series state the limits of the temporary disk only.
const CACHE_ROWS: [CacheRow; 7] = [
    cache_row("D2s_v3", 50, (4000, 4000), (32, 200)),
    cache_row("D4s_v3", 100, (8000, 8000), (64, 200)),
    cache_row("D8s_v3", 200, (16000, 16000), (128, 400)),
    cache_row("D16s_v3", 400, (32000, 32000), (256, 800)),
    cache_row("D32s_v3", 800, (64000, 64000), (512, 1600)),
    cache_row("D48s_v3", 1200, (96000, 96000), (768, 2000)),
    cache_row("D64s_v3", 1600, (128_000, 128_000), (1024, 2000)),
];

/// Host cache of a type of instance, as its provider states it.
#[derive(Clone, Debug, PartialEq)]
pub struct StatedCache {
    /// Size, shared by all disks of the instance.
    pub bytes: u64,
    /// Limits on requests to disks with a host cache.
    pub limits: InstanceLimitDescription,
}

/// A type of instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instance(&'static Row);

/// Time for which the highest rate lasts with a full bucket. AWS: at least 30 minutes once a day; Azure: up to 30
/// minutes.
const BURST_S: u64 = 1_800;

impl Instance {
    /// Returns the type of this name.
    pub fn named(name: &str) -> Option<Instance> {
        ROWS.iter().find(|row| row.name == name).map(Instance)
    }

    /// Returns the names of all types.
    pub fn names() -> impl Iterator<Item = &'static str> {
        ROWS.iter().map(|row| row.name)
    }

    /// Returns its name.
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// Returns its limits. A bucket of credits is refilled at the sustained rate; AWS does not publish how it refills.
    pub fn limits(self) -> InstanceLimitDescription {
        let Row { provider, requests, megabytes, .. } = *self.0;
        let bytes =
            |scope: LimitScope, mib: u64| Limit { counts: Counts::Bytes, of: scope, per_s: mib << 20, burst: None };
        let limits = match provider {
            Provider::Aws | Provider::Azure => {
                vec![limit(Counts::Requests, requests, 1), limit(Counts::Bytes, megabytes, 1_000_000)]
            }
            Provider::Gcp => vec![
                limit(Counts::Requests, requests, 1),
                bytes(LimitScope::Writes, megabytes.0),
                bytes(LimitScope::Reads, megabytes.1),
            ],
        };
        described(limits)
    }

    /// Returns its host cache; `None` if no source states one.
    pub fn host_cache(self) -> Option<StatedCache> {
        let row = CACHE_ROWS.iter().find(|row| row.name == self.name())?;
        let limits = vec![limit(Counts::Requests, row.requests, 1), limit(Counts::Bytes, row.megabytes, 1_000_000)];
        Some(StatedCache { bytes: row.gib << 30, limits: described(limits) })
    }

    /// Returns the names of the types with a stated host cache.
    pub fn with_host_cache() -> impl Iterator<Item = &'static str> {
        CACHE_ROWS.iter().map(|row| row.name)
    }
}

/// Returns a limit of a sustained rate and a highest one, in units.
fn limit(counts: Counts, (sustained, most): (u64, u64), unit: u64) -> Limit {
    let burst = (most > sustained).then(|| Burst { per_s: most * unit, credits: (most - sustained) * unit * BURST_S });
    Limit { counts, of: LimitScope::Both, per_s: sustained * unit, burst }
}

fn described(limits: Vec<Limit>) -> InstanceLimitDescription {
    let accounting = Accounting { unit_bytes: None, merges: false, whole_units: false };
    InstanceLimitDescription { accounting, limits }
}

impl Serialize for Instance {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.name)
    }
}

impl<'de> Deserialize<'de> for Instance {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Instance, D::Error> {
        let name = String::deserialize(deserializer)?;
        Instance::named(&name).ok_or_else(|| {
            let names: Vec<&str> = Instance::names().collect();
            let closest = crate::closest(&name, &names).join(", ");
            serde::de::Error::custom(format!("no instance type {name:?}; closest: {closest}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_lasts_half_an_hour() {
        let limits = Instance::named("m6i.large").unwrap().limits().limits;
        assert_eq!((limits[0].per_s, limits[0].burst.unwrap().per_s), (3_600, 40_000));
        let credits = limits[1].burst.unwrap().credits;
        assert_eq!(credits / (1_250_000_000 - 81_000_000), 1_800);
        assert!(Instance::named("m6i.8xlarge").unwrap().limits().limits.iter().all(|limit| limit.burst.is_none()));
    }

    /// Standard_D8s_v3 as in Azure's examples: 12,800 uncached and 16,000 cached IOPS, 200 GiB of cache.
    #[test]
    fn a_host_cache_has_limits_of_its_own() {
        let instance = Instance::named("D8s_v3").unwrap();
        let cache = instance.host_cache().unwrap();
        assert_eq!(
            (cache.bytes, cache.limits.limits[0].per_s, cache.limits.limits[0].burst),
            (200 << 30, 16_000, None)
        );
        let bytes = cache.limits.limits[1];
        assert_eq!((bytes.per_s, bytes.burst.unwrap().per_s), (128_000_000, 400_000_000));
        assert_eq!(instance.limits().limits[0].per_s, 12_800);
        assert!(Instance::named("D8s_v5").unwrap().host_cache().is_none());
        assert!(Instance::with_host_cache().all(|name| Instance::named(name).is_some()));
    }

    #[test]
    fn names_are_unique() {
        let names: std::collections::BTreeSet<&str> = Instance::names().collect();
        assert_eq!(names.len(), ROWS.len());
    }
}
