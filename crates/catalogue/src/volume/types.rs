//! [`VolumeType`]: the published rules of each type of cloud volume, which determine the limits from size and
//! provisioned performance.
//!
//! AWS and GCP count in MiB, Azure in megabytes. Latencies are D estimates within published statements ("single-digit
//! milliseconds", "sub-millisecond", a mean below 0.5 ms for io2), because no provider publishes a distribution.

use headstack_sim::volume::description::{Accounting, Burst, Counts, Latency, Limit, LimitScope};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A type of volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VolumeType {
    /// Amazon EBS, general purpose, with burst credits.
    Gp2,
    /// Amazon EBS, general purpose, with performance that can be provisioned above a base.
    Gp3,
    /// Amazon EBS, provisioned IOPS.
    Io1,
    /// Amazon EBS, provisioned IOPS (Block Express).
    Io2,
    /// Amazon EBS, throughput-optimized disk.
    St1,
    /// Amazon EBS, cold disk.
    Sc1,
    /// Google persistent disk, standard (disk).
    PdStandard,
    /// Google persistent disk, balanced.
    PdBalanced,
    /// Google persistent disk, SSD.
    PdSsd,
    /// Google persistent disk, provisioned IOPS.
    PdExtreme,
    /// Google Hyperdisk, balanced.
    HyperdiskBalanced,
    /// Google Hyperdisk, extreme.
    HyperdiskExtreme,
    /// Azure Premium SSD: P1 to P80 by size; P1 to P20 have burst credits.
    PremiumSsd,
    /// Azure Premium SSD v2.
    PremiumSsdV2,
    /// Azure Ultra Disk.
    UltraDisk,
    /// Azure Standard SSD: E1 to E80 by size.
    StandardSsd,
    /// Azure Standard HDD: S4 to S80 by size.
    StandardHdd,
}

impl VolumeType {
    /// All types.
    pub const ALL: [VolumeType; 17] = [
        VolumeType::Gp2,
        VolumeType::Gp3,
        VolumeType::Io1,
        VolumeType::Io2,
        VolumeType::St1,
        VolumeType::Sc1,
        VolumeType::PdStandard,
        VolumeType::PdBalanced,
        VolumeType::PdSsd,
        VolumeType::PdExtreme,
        VolumeType::HyperdiskBalanced,
        VolumeType::HyperdiskExtreme,
        VolumeType::PremiumSsd,
        VolumeType::PremiumSsdV2,
        VolumeType::UltraDisk,
        VolumeType::StandardSsd,
        VolumeType::StandardHdd,
    ];

    const NAMES: [&str; VolumeType::ALL.len()] = {
        let mut names = [""; VolumeType::ALL.len()];
        let mut number = 0;
        while number < names.len() {
            names[number] = VolumeType::ALL[number].name();
            number += 1;
        }
        names
    };

    /// Returns the name of the type in files.
    pub const fn name(self) -> &'static str {
        match self {
            VolumeType::Gp2 => "gp2",
            VolumeType::Gp3 => "gp3",
            VolumeType::Io1 => "io1",
            VolumeType::Io2 => "io2",
            VolumeType::St1 => "st1",
            VolumeType::Sc1 => "sc1",
            VolumeType::PdStandard => "pd-standard",
            VolumeType::PdBalanced => "pd-balanced",
            VolumeType::PdSsd => "pd-ssd",
            VolumeType::PdExtreme => "pd-extreme",
            VolumeType::HyperdiskBalanced => "hyperdisk-balanced",
            VolumeType::HyperdiskExtreme => "hyperdisk-extreme",
            VolumeType::PremiumSsd => "premium-ssd",
            VolumeType::PremiumSsdV2 => "premium-ssd-v2",
            VolumeType::UltraDisk => "ultra-disk",
            VolumeType::StandardSsd => "standard-ssd",
            VolumeType::StandardHdd => "standard-hdd",
        }
    }

    /// Returns the type with this name.
    pub fn parse(name: &str) -> Option<VolumeType> {
        VolumeType::ALL.into_iter().find(|known| known.name() == name)
    }
}

impl Serialize for VolumeType {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for VolumeType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<VolumeType, D::Error> {
        let name = String::deserialize(deserializer)?;
        VolumeType::parse(&name).ok_or_else(|| D::Error::unknown_variant(&name, &VolumeType::NAMES))
    }
}

/// A volume as ordered from a provider.
#[derive(Clone, Copy, Debug)]
pub struct Order {
    /// Size in GiB, rounded down.
    pub gib: u64,
    /// Provisioned IOPS, if any.
    pub iops: Option<u64>,
    /// Provisioned bytes per second, if any.
    pub bytes_per_s: Option<u64>,
}

/// Limits and latencies that an order results in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// How requests are counted.
    pub accounting: Accounting,
    /// Limits of the volume.
    pub limits: Vec<Limit>,
    /// Latency of a read.
    pub read: Latency,
    /// Latency of a write.
    pub write: Latency,
}

/// Reason why a volume cannot be ordered: the key, and a message with the allowed values.
pub type Refused = (&'static str, String);

const MIB: u64 = 1 << 20;
const TIB: u64 = 1 << 40;
const MB: u64 = 1_000_000;

/// Sizes in GiB, base IOPS and base MB/s of Azure's Premium SSD (P1 to P80; disk-storage-premium-ssd-sizes.md,
/// 2023-03).
pub(super) const PREMIUM: [(u64, u64, u64); 14] = [
    (4, 120, 25),
    (8, 120, 25),
    (16, 120, 25),
    (32, 120, 25),
    (64, 240, 50),
    (128, 500, 100),
    (256, 1_100, 125),
    (512, 2_300, 150),
    (1_024, 5_000, 200),
    (2_048, 7_500, 250),
    (4_096, 7_500, 250),
    (8_192, 16_000, 500),
    (16_384, 18_000, 750),
    (32_767, 20_000, 900),
];
/// Sizes in GiB, base IOPS and base MB/s of Standard SSD (E1 to E80; disk-storage-standard-ssd-sizes.md, 2019-03).
pub(super) const STANDARD_SSD: [(u64, u64, u64); 14] = [
    (4, 120, 25),
    (8, 120, 25),
    (16, 120, 25),
    (32, 120, 25),
    (64, 240, 50),
    (128, 500, 60),
    (256, 500, 60),
    (512, 500, 60),
    (1_024, 500, 60),
    (2_048, 500, 60),
    (4_096, 500, 60),
    (8_192, 2_000, 400),
    (16_384, 4_000, 600),
    (32_767, 6_000, 750),
];
/// Sizes in GiB, base IOPS and base MB/s of Standard HDD (S4 to S80; disk-storage-standard-hdd-sizes.md, 2019-03).
pub(super) const STANDARD_HDD: [(u64, u64, u64); 11] = [
    (32, 500, 60),
    (64, 500, 60),
    (128, 500, 60),
    (256, 500, 60),
    (512, 500, 60),
    (1_024, 500, 60),
    (2_048, 500, 60),
    (4_096, 500, 60),
    (8_192, 1_300, 300),
    (16_384, 2_000, 500),
    (32_767, 2_000, 500),
];
/// Largest Premium SSD size with burst credits (P20) in GiB, and its burst: IOPS, MB/s and duration of 30 minutes in
/// seconds.
const PREMIUM_BURST: (u64, u64, u64, u64) = (512, 3_500, 170, 1_800);

const fn latency_us(floor: u64, median: u64, p99: u64) -> Latency {
    Latency { floor_ns: floor * 1_000, median_ns: median * 1_000, p99_ns: p99 * 1_000 }
}

fn requests(per_s: u64) -> Limit {
    Limit { counts: Counts::Requests, of: LimitScope::Both, per_s, burst: None }
}

fn bytes(per_s: u64) -> Limit {
    Limit { counts: Counts::Bytes, of: LimitScope::Both, per_s, burst: None }
}

/// Adds a burst to a limit unless the base already reaches the burst rate, where credits would be useless.
fn with_burst(limit: Limit, per_s: u64, credits: u64) -> Limit {
    if per_s > limit.per_s { Limit { burst: Some(Burst { per_s, credits }), ..limit } } else { limit }
}

impl VolumeType {
    /// Returns limits, accounting and latencies of a volume of this type.
    ///
    /// # Errors
    /// If the provider does not sell the size, IOPS or throughput.
    pub fn terms(self, order: Order) -> Result<Terms, Refused> {
        let Order { gib, iops, bytes_per_s } = order;
        self.check(order)?;
        let in_units = |kib: u32, whole_units| Accounting { unit_bytes: Some(kib << 10), merges: true, whole_units };
        // EBS counts in units of 256 KiB for SSDs and 1 MiB for disks (ebs-io-characteristics).
        let (ssd, hdd) = (in_units(256, false), in_units(1024, true));
        let each = Accounting { unit_bytes: None, merges: false, whole_units: false };
        // Azure counts in units of 256 KiB and does not state that it merges requests.
        let azure = Accounting { unit_bytes: Some(256 << 10), merges: false, whole_units: false };
        let provisioned = iops.unwrap_or_default();
        let (accounting, limits) = match self {
            VolumeType::Gp2 => {
                let base = (3 * gib).clamp(100, 16_000);
                // From 170 to 334 GiB, the throughput depends on credits: it is what the remaining requests can carry.
                let rate = if gib <= 170 { 128 } else { 250 };
                (ssd, vec![with_burst(requests(base), 3_000, 5_400_000), bytes(rate * MIB)])
            }
            VolumeType::Gp3 => (ssd, vec![requests(iops.unwrap_or(3_000)), bytes(bytes_per_s.unwrap_or(125 * MIB))]),
            VolumeType::Io1 => {
                let rate = if provisioned <= 32_000 {
                    (provisioned * MIB / 4).min(500 * MIB)
                } else {
                    provisioned * (16 << 10)
                };
                (ssd, vec![requests(provisioned), bytes(rate)])
            }
            VolumeType::Io2 => {
                (ssd, vec![requests(provisioned), bytes((provisioned * 256 * MIB / 1_000).min(4_000 * MIB))])
            }
            VolumeType::St1 | VolumeType::Sc1 => {
                // Per TiB: base, burst, and the resulting number of 1 MiB requests.
                let (base, base_max, burst, burst_max) =
                    if self == VolumeType::St1 { (40, 500, 250, 500) } else { (12, 192, 80, 250) };
                let of_size = |per_tib: u64, most: u64| (gib * per_tib * MIB / 1024).min(most * MIB);
                let limit = bytes(of_size(base, base_max));
                let limit = with_burst(limit, of_size(burst, burst_max), (gib << 30).min(16 * TIB));
                (hdd, vec![requests(burst_max), limit])
            }
            VolumeType::PdStandard => {
                let of = |limit: Limit, of: LimitScope| Limit { of, ..limit };
                let limits = vec![
                    of(requests((gib * 3 / 4).clamp(1, 7_500)), LimitScope::Reads),
                    of(requests((gib * 3 / 2).clamp(1, 15_000)), LimitScope::Writes),
                    of(bytes((gib * 12 * MIB / 100).min(1_200 * MIB)), LimitScope::Reads),
                    of(bytes((gib * 12 * MIB / 100).min(400 * MIB)), LimitScope::Writes),
                ];
                (each, limits)
            }
            VolumeType::PdBalanced => {
                let rate = (140 * MIB + gib * 28 * MIB / 100).min(1_200 * MIB);
                (each, vec![requests((3_000 + 6 * gib).min(80_000)), bytes(rate)])
            }
            VolumeType::PdSsd => {
                let rate = (240 * MIB + gib * 48 * MIB / 100).min(1_200 * MIB);
                (each, vec![requests((6_000 + 30 * gib).min(100_000)), bytes(rate)])
            }
            VolumeType::PdExtreme => {
                let of = |per_s: u64, of: LimitScope| Limit { of, ..bytes(per_s) };
                (
                    each,
                    vec![
                        requests(provisioned),
                        of(4_000 * MIB, LimitScope::Reads),
                        of(3_000 * MIB, LimitScope::Writes),
                    ],
                )
            }
            VolumeType::HyperdiskBalanced => {
                (each, vec![requests(iops.unwrap_or(3_000)), bytes(bytes_per_s.unwrap_or(140 * MIB))])
            }
            // C: 256 KiB per request, up to 5,000 MiB/s (general knowledge).
            VolumeType::HyperdiskExtreme => {
                (each, vec![requests(provisioned), bytes((provisioned * MIB / 4).min(5_000 * MIB))])
            }
            VolumeType::PremiumSsd => {
                let (size, base, rate) = sized(&PREMIUM, gib);
                let (largest, burst, burst_mb, burst_s) = PREMIUM_BURST;
                let (mut requests, mut bytes) = (requests(base), bytes(rate * MB));
                if size <= largest {
                    requests = with_burst(requests, burst, (burst - base) * burst_s);
                    bytes = with_burst(bytes, burst_mb * MB, (burst_mb - rate) * MB * burst_s);
                }
                (azure, vec![requests, bytes])
            }
            VolumeType::PremiumSsdV2 => {
                (azure, vec![requests(iops.unwrap_or(3_000)), bytes(bytes_per_s.unwrap_or(125 * MB))])
            }
            VolumeType::UltraDisk => {
                (azure, vec![requests(provisioned), bytes(bytes_per_s.unwrap_or(provisioned * MB / 4))])
            }
            VolumeType::StandardSsd | VolumeType::StandardHdd => {
                let sizes = if self == VolumeType::StandardSsd { &STANDARD_SSD[..] } else { &STANDARD_HDD[..] };
                let (_, base, rate) = sized(sizes, gib);
                (azure, vec![requests(base), bytes(rate * MB)])
            }
        };
        let (read, write) = self.latencies();
        Ok(Terms { accounting, limits, read, write })
    }

    /// Checks that the provider sells the volume.
    fn check(self, order: Order) -> Result<(), Refused> {
        let (Order { gib, iops, bytes_per_s }, pricing) = (order, self.pricing());
        let (least, most) = pricing.gib;
        if !(least..=most).contains(&gib) {
            return Err(("capacity.size", format!("{gib} GiB is not available; must be {least} to {most} GiB")));
        }
        match (iops, pricing.iops_range(gib)) {
            (Some(_), None) => {
                return Err(("volume.iops", "follows from the size; it cannot be provisioned".to_owned()));
            }
            (None, Some((least, most))) if pricing.iops.is_some_and(|iops| iops.free == 0) => {
                return Err(("volume.iops", format!("this key is missing; must be {least} to {most} at this size")));
            }
            (Some(iops), Some((least, most))) if !(least..=most).contains(&iops) => {
                return Err((
                    "volume.iops",
                    format!("{iops} is not available; must be {least} to {most} at this size"),
                ));
            }
            (Some(_) | None, Some(_)) | (None, None) => {}
        }
        // Without a stated number, the volume has the amount that the price of the size includes.
        let provisioned = iops.or(pricing.iops.map(|iops| iops.free)).unwrap_or_default();
        match (bytes_per_s, pricing.throughput_range(provisioned)) {
            (Some(_), None) => {
                Err(("volume.throughput", "follows from the other values; it cannot be provisioned".to_owned()))
            }
            (Some(rate), Some((least, most))) if !(least..=most).contains(&rate) => Err((
                "volume.throughput",
                format!("{rate} bytes/s is not available; must be {least} to {most} with these IOPS"),
            )),
            (Some(_) | None, Some(_)) | (None, None) => Ok(()),
        }
    }

    /// Returns the latencies of reads and writes.
    fn latencies(self) -> (Latency, Latency) {
        let same = |latency| (latency, latency);
        match self {
            // Measured on an r5b.2xlarge below the limit: median 0.44 ms, 95th percentile 0.71 ms, the same at all rates
            // (ScyllaDB diskplorer, 2024). The floor is assumed; the 99th percentile follows from a log-normal excess.
            VolumeType::Gp3 => same(latency_us(300, 440, 940)),
            VolumeType::Gp2 | VolumeType::HyperdiskBalanced => same(latency_us(350, 650, 2_000)),
            VolumeType::Io1 => same(latency_us(300, 500, 1_200)),
            VolumeType::Io2 => same(latency_us(200, 350, 800)),
            // A disk that seeks, behind a network. A write is acknowledged from protected memory.
            VolumeType::St1 | VolumeType::PdStandard => {
                (latency_us(2_000, 8_000, 40_000), latency_us(1_000, 3_000, 20_000))
            }
            VolumeType::Sc1 => (latency_us(3_000, 12_000, 60_000), latency_us(1_500, 5_000, 30_000)),
            VolumeType::PdBalanced => same(latency_us(500, 900, 3_000)),
            VolumeType::PdSsd => same(latency_us(400, 700, 2_000)),
            VolumeType::PdExtreme => same(latency_us(300, 550, 1_500)),
            VolumeType::HyperdiskExtreme => same(latency_us(250, 400, 1_000)),
            VolumeType::PremiumSsd => same(latency_us(1_000, 2_000, 6_000)),
            VolumeType::PremiumSsdV2 => same(latency_us(400, 800, 2_000)),
            VolumeType::UltraDisk => same(latency_us(300, 500, 1_500)),
            VolumeType::StandardSsd => same(latency_us(2_000, 5_000, 20_000)),
            // Published: "Writes below 10 ms and reads below 20 ms for most."
            VolumeType::StandardHdd => (latency_us(4_000, 10_000, 50_000), latency_us(2_000, 5_000, 30_000)),
        }
    }
}

/// Returns the row of the smallest size that holds `gib`.
fn sized(sizes: &[(u64, u64, u64)], gib: u64) -> (u64, u64, u64) {
    *sizes.iter().find(|(size, ..)| *size >= gib).unwrap_or(&sizes[sizes.len() - 1])
}
