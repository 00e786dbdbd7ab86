//! A device: what stands alone as a system, and what arrays have as members.

use headstack_workload::Request;
use serde::{Deserialize, Serialize};

use crate::disk::Disk;
use crate::drive::description::DriveDescription;
use crate::drive::{Completion, Fault};
use crate::link::Upstream;
use crate::power::Meter;
use crate::snapshot::Snapshot;
use crate::ssd::Ssd;
use crate::ssd::description::SsdDescription;

/// What a device is, fully resolved.
#[allow(clippy::large_enum_variant)] // A few a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum DeviceDescription {
    /// A disk drive.
    Disk(DriveDescription),
    /// A solid-state drive.
    Ssd(SsdDescription),
}

impl DeviceDescription {
    /// Product name, for people.
    pub fn name(&self) -> &str {
        match self {
            DeviceDescription::Disk(drive) => &drive.name,
            DeviceDescription::Ssd(ssd) => &ssd.name,
        }
    }

    /// Bytes that it exports.
    pub fn capacity_bytes(&self) -> u64 {
        match self {
            DeviceDescription::Disk(drive) => {
                drive.geometry.logical_blocks * u64::from(drive.geometry.logical_block_bytes)
            }
            DeviceDescription::Ssd(ssd) => ssd.capacity.logical_bytes,
        }
    }

    /// Bytes of a logical block, of which every request is a multiple.
    pub fn block_bytes(&self) -> u32 {
        match self {
            DeviceDescription::Disk(drive) => drive.geometry.logical_block_bytes,
            DeviceDescription::Ssd(ssd) => ssd.capacity.logical_block_bytes,
        }
    }

    /// Commands that the host keeps in it at most.
    pub fn tags(&self) -> u32 {
        match self {
            DeviceDescription::Disk(drive) => drive.interface.host_tags.min(drive.queue.depth),
            DeviceDescription::Ssd(ssd) => ssd.interface.queue_depth,
        }
    }

    /// What is impossible in it.
    ///
    /// # Errors
    /// The first such thing.
    pub fn check(&self) -> Result<(), Fault> {
        match self {
            DeviceDescription::Disk(drive) => crate::drive::check(drive),
            DeviceDescription::Ssd(ssd) => crate::ssd::check(ssd),
        }
    }
}

/// A device in virtual time.
#[derive(Clone, Debug)]
pub enum Device {
    /// A disk drive.
    Disk(Box<Disk>),
    /// A solid-state drive.
    Ssd(Box<Ssd>),
}

impl Device {
    /// A device at rest. `seed` drives its optional random processes only.
    ///
    /// # Errors
    /// What is impossible in the description.
    pub fn new(description: &DeviceDescription, seed: u64) -> Result<Device, Fault> {
        Ok(match description {
            DeviceDescription::Disk(drive) => Device::Disk(Box::new(Disk::new(drive, seed)?)),
            DeviceDescription::Ssd(ssd) => Device::Ssd(Box::new(Ssd::new(ssd, seed)?)),
        })
    }

    /// When something happens next; `u64::MAX` if nothing will.
    #[inline]
    pub fn next_event_ns(&self) -> u64 {
        match self {
            Device::Disk(disk) => disk.next_event_ns(),
            Device::Ssd(ssd) => ssd.next_event_ns(),
        }
    }

    /// Shows its read cache a request of the past, in no time.
    pub fn warm_with(&mut self, request: &Request) {
        match self {
            Device::Disk(disk) => disk.warm_with(request),
            Device::Ssd(_) => {}
        }
    }

    /// Takes a command; see [`Disk::submit`].
    #[inline]
    pub fn submit(&mut self, upstream: &mut Upstream, now_ns: u64, id: u32, request: &Request) {
        match self {
            Device::Disk(disk) => disk.submit_behind(upstream, now_ns, id, request),
            Device::Ssd(ssd) => ssd.submit(now_ns, id, request),
        }
    }

    /// Processes every event up to `now_ns`; see [`Disk::advance`].
    #[inline]
    pub fn advance(&mut self, upstream: &mut Upstream, now_ns: u64, completed: impl FnMut(Completion)) {
        match self {
            Device::Disk(disk) => disk.advance_behind(upstream, now_ns, completed),
            Device::Ssd(ssd) => ssd.advance_behind(upstream, now_ns, completed),
        }
    }

    /// Adds what it has counted; its components under `name`.
    pub fn snapshot(&self, name: &str, into: &mut Snapshot) {
        match self {
            Device::Disk(disk) => {
                let counters = disk.counters();
                into.add_disk(name, disk.description(), &counters);
                into.add_meter(disk.description().power.map(|power| Meter::disk(&power, &counters, disk.stops_ns())));
            }
            Device::Ssd(ssd) => {
                let (description, counters) = (ssd.description(), ssd.counters());
                into.add_ssd(name, description, &counters);
                let die_busy_ns = counters.dies_busy_ns / u64::from(description.dies());
                into.add_meter(description.power.map(|power| Meter::ssd(&power, die_busy_ns)));
            }
        }
    }
}
