//! Host caching of an Azure disk: what the instance states, and assumed values.

use headstack_sim::stack::description::{HostCacheDescription, HostCacheMode};
use headstack_workload::InputError;

use super::Completer;
use super::file::{HostCaching, LayerName};
use super::instances::{Instance, StatedCache};
use crate::volume::types::VolumeType;

const STATED: &str = "stated for the instance type (azure-compute-docs, dsv3-series, 2024-09)";
const LATENCY: &str = "assumed: the measured median of a local SSD of Google Cloud is 149 us; Azure states \"much lower\" \
    than single-digit ms; 0.1 to 1 ms";
const FLUSH: &str = "assumed, as the look of Linux at dirty pages; Azure states \"periodically\"; 1 to 30 s";
const WRITES: &str = "assumed; enough for the IOPS of a P30 at 6 ms";
const WRITE_SIZE: &str = "assumed; the largest request that Azure counts as one";

/// Keys that need a host cache.
const KEYS: [&str; 5] = [
    "instance.host_cache_size",
    "instance.host_cache_latency",
    "instance.host_cache_flush",
    "instance.host_cache_writes",
    "instance.host_cache_write_size",
];

/// Disks from this size on have no host cache (azure-compute-docs, premium-storage-performance).
const TOO_LARGE_BYTES: u64 = 4 << 40;

/// Why a type of volume cannot have a host cache; `None` if it can.
fn obstacle(volume: Option<VolumeType>) -> Option<&'static str> {
    match volume {
        Some(VolumeType::PremiumSsd | VolumeType::StandardSsd | VolumeType::StandardHdd) => None,
        Some(VolumeType::UltraDisk) => Some("Azure Ultra Disk has no host cache"),
        Some(VolumeType::PremiumSsdV2) => Some("Azure Premium SSD v2 has no host cache"),
        Some(
            VolumeType::Gp2
            | VolumeType::Gp3
            | VolumeType::Io1
            | VolumeType::Io2
            | VolumeType::St1
            | VolumeType::Sc1
            | VolumeType::PdStandard
            | VolumeType::PdBalanced
            | VolumeType::PdSsd
            | VolumeType::PdExtreme
            | VolumeType::HyperdiskBalanced
            | VolumeType::HyperdiskExtreme,
        ) => Some("only Azure has host caching"),
        None => Some("needs an Azure volume with a volume.type right below the instance"),
    }
}

impl Completer<'_> {
    /// Completes the host cache of a volume of `volume_bytes`; `None` without host caching.
    pub(super) fn host_cache(
        &mut self,
        volume: Option<VolumeType>,
        volume_bytes: u64,
    ) -> Result<Option<HostCacheDescription>, InputError> {
        let table = &self.file.instance;
        let (Some(instance), Some(mode)) = (table.kind, self.host_cache_mode()?) else { return Ok(None) };
        let stated = self.stated_cache(instance, volume, volume_bytes)?;
        Ok(Some(HostCacheDescription {
            mode,
            capacity_bytes: self.bytes("instance.host_cache_size", table.host_cache_size, stated.bytes, STATED),
            cached: stated.limits,
            hit_ns: self.duration("instance.host_cache_latency", table.host_cache_latency, 150_000, LATENCY)?,
            flush_interval_ns: self.duration(
                "instance.host_cache_flush",
                table.host_cache_flush,
                5_000_000_000,
                FLUSH,
            )?,
            writes_max: self.or_default("instance.host_cache_writes", table.host_cache_writes, 32, WRITES),
            write_bytes_max: self.bytes_u32(
                "instance.host_cache_write_size",
                table.host_cache_write_size,
                256 << 10,
                WRITE_SIZE,
            )?,
        }))
    }

    /// Returns the mode of the host cache; `None` without one.
    fn host_cache_mode(&self) -> Result<Option<HostCacheMode>, InputError> {
        match self.file.instance.host_cache {
            Some(HostCaching::ReadOnly) => return Ok(Some(HostCacheMode::ReadOnly)),
            Some(HostCaching::ReadWrite) => return Ok(Some(HostCacheMode::ReadWrite)),
            Some(HostCaching::None) | None => {}
        }
        match KEYS.into_iter().find(|key| self.document.states(key)) {
            None => Ok(None),
            Some(key) => {
                let message = "no host cache; remove this key, or set instance.host_cache to read-only or read-write";
                Err(self.document.error(key, message))
            }
        }
    }

    /// Returns the stated host cache of an instance, if the volume can use it.
    fn stated_cache(
        &self,
        instance: Instance,
        volume: Option<VolumeType>,
        volume_bytes: u64,
    ) -> Result<StatedCache, InputError> {
        let refused = |message: &str| self.document.error("instance.host_cache", format!("{message}; use none"));
        if self.file.stack.layers.last() != Some(&LayerName::Instance) {
            return Err(refused("there is a layer between the instance and the volume"));
        }
        if let Some(obstacle) = obstacle(volume) {
            return Err(refused(obstacle));
        }
        if volume_bytes >= TOO_LARGE_BYTES {
            let gib = volume_bytes >> 30;
            return Err(refused(&format!("disks of 4096 GiB and more have no host cache; this one has {gib} GiB")));
        }
        instance.host_cache().ok_or_else(|| {
            let types: Vec<&str> = Instance::with_host_cache().collect();
            let (name, types) = (instance.name(), types.join(", "));
            refused(&format!("no source states cached limits of {name}, only of {types}"))
        })
    }
}
