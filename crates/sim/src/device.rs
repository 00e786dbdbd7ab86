//! A device: what stands alone as a system, and what arrays have as members.

use headstack_result::{LEVEL_NAMES, Levels};
use headstack_workload::{Kind, Request, Span};
use serde::{Deserialize, Serialize};

use crate::SimError;
use crate::adapter::description::AdapterDescription;
use crate::disk::Disk;
use crate::drive::description::DriveDescription;
use crate::drive::{Completion, InvalidDescription};
use crate::gauges::{DeviceGauge, DeviceHealth};
use crate::link::Upstream;
use crate::media_defects::Failure;
use crate::media_defects::MediaDefect;
use crate::power::Meter;
use crate::snapshot::Snapshot;
use crate::spans::put_in_order;
use crate::ssd::Ssd;
use crate::ssd::description::SsdDescription;
use crate::volume::Volume;
use crate::volume::description::VolumeDescription;

/// What a device is, fully resolved.
#[allow(clippy::large_enum_variant)] // A few a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum DeviceDescription {
    /// A disk drive.
    Disk(DriveDescription),
    /// A solid-state drive.
    Ssd(SsdDescription),
    /// A volume of a cloud.
    Volume(VolumeDescription),
}

impl DeviceDescription {
    /// What solid-state drives are used in units of, having no sectors.
    pub const PAGE_BYTES: u32 = 4096;

    /// Product name, for people.
    pub fn name(&self) -> &str {
        match self {
            DeviceDescription::Disk(drive) => &drive.name,
            DeviceDescription::Ssd(ssd) => &ssd.name,
            DeviceDescription::Volume(volume) => &volume.name,
        }
    }

    /// Bytes that it exports.
    pub fn capacity_bytes(&self) -> u64 {
        match self {
            DeviceDescription::Disk(drive) => {
                drive.geometry.logical_blocks * u64::from(drive.geometry.logical_block_bytes)
            }
            DeviceDescription::Ssd(ssd) => ssd.capacity.logical_bytes,
            DeviceDescription::Volume(volume) => volume.capacity_bytes,
        }
    }

    /// Bytes of a logical block, of which every request is a multiple.
    pub fn block_bytes(&self) -> u32 {
        match self {
            DeviceDescription::Disk(drive) => drive.geometry.logical_block_bytes,
            DeviceDescription::Ssd(ssd) => ssd.capacity.logical_block_bytes,
            DeviceDescription::Volume(volume) => volume.block_bytes,
        }
    }

    /// Its physical sector; 4 KiB of a device that has none.
    pub fn sector_bytes(&self) -> u32 {
        match self {
            DeviceDescription::Disk(drive) => drive.geometry.physical_sector_bytes,
            DeviceDescription::Ssd(_) | DeviceDescription::Volume(_) => Self::PAGE_BYTES,
        }
    }

    /// Commands that it holds at most, of any host.
    pub fn tags(&self) -> u32 {
        match self {
            DeviceDescription::Disk(drive) => drive.interface.host_tags.min(drive.queue.depth),
            DeviceDescription::Ssd(ssd) => ssd.interface.queue_depth,
            DeviceDescription::Volume(volume) => volume.queue_depth,
        }
    }

    /// What driver and host adapter take where it stands alone; in an array its controller stands there.
    pub fn host(&self) -> Option<&AdapterDescription> {
        match self {
            DeviceDescription::Disk(drive) => drive.interface.host.as_ref(),
            DeviceDescription::Ssd(ssd) => ssd.interface.host.as_ref(),
            // Its latency is that which its host sees.
            DeviceDescription::Volume(_) => None,
        }
    }

    /// Puts it behind a host adapter, or behind none.
    pub fn set_host(&mut self, host: Option<AdapterDescription>) {
        match self {
            DeviceDescription::Disk(drive) => drive.interface.host = host,
            DeviceDescription::Ssd(ssd) => ssd.interface.host = host,
            DeviceDescription::Volume(_) => {}
        }
    }

    /// What is impossible in it.
    ///
    /// # Errors
    /// The first such thing.
    pub fn check(&self) -> Result<(), InvalidDescription> {
        match self {
            DeviceDescription::Disk(drive) => crate::drive::check(drive)?,
            DeviceDescription::Ssd(ssd) => crate::ssd::check(ssd)?,
            DeviceDescription::Volume(volume) => crate::volume::check(volume)?,
        }
        self.host().map_or(Ok(()), crate::adapter::check)
    }
}

/// What a host has had from a device.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Traffic {
    read_bytes: u64,
    written_bytes: u64,
}

impl Traffic {
    /// Counts a command.
    #[inline]
    pub fn count(&mut self, request: &Request) {
        match request.kind {
            Kind::Read => self.read_bytes += u64::from(request.length_bytes),
            Kind::Write => self.written_bytes += u64::from(request.length_bytes),
            Kind::Flush | Kind::Trim => {}
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
    /// A volume of a cloud.
    Volume(Box<Volume>),
}

impl Device {
    /// A device at rest. `seed` drives its optional random processes only.
    ///
    /// # Errors
    /// What is impossible in the description.
    pub fn new(description: &DeviceDescription, seed: u64) -> Result<Device, InvalidDescription> {
        Ok(match description {
            DeviceDescription::Disk(drive) => Device::Disk(Box::new(Disk::new(drive, seed)?)),
            DeviceDescription::Ssd(ssd) => Device::Ssd(Box::new(Ssd::new(ssd, seed)?)),
            DeviceDescription::Volume(volume) => Device::Volume(Box::new(Volume::new(volume, seed)?)),
        })
    }

    /// Another device of the same description, at rest: disks share what was compiled from it.
    pub fn another(&self, seed: u64) -> Device {
        match self {
            Device::Disk(disk) => Device::Disk(Box::new(disk.another(seed))),
            Device::Ssd(ssd) => {
                Device::Ssd(Box::new(Ssd::new(ssd.description(), seed).expect("one of its kind was possible")))
            }
            Device::Volume(volume) => {
                let another = Volume::new(volume.description(), seed).expect("one of its kind was possible");
                Device::Volume(Box::new(another))
            }
        }
    }

    /// Bytes that it exports.
    pub fn capacity_bytes(&self) -> u64 {
        match self {
            Device::Disk(disk) => disk.capacity_bytes(),
            Device::Ssd(ssd) => ssd.capacity_bytes(),
            Device::Volume(volume) => volume.description().capacity_bytes,
        }
    }

    /// When something happens next; `u64::MAX` if nothing will.
    #[inline]
    pub fn next_event_ns(&self) -> u64 {
        match self {
            Device::Disk(disk) => disk.next_event_ns(),
            Device::Ssd(ssd) => ssd.next_event_ns(),
            Device::Volume(volume) => volume.next_event_ns(),
        }
    }

    /// Shows its read cache a request of the past, in no time.
    pub fn warm_with(&mut self, request: &Request) {
        match self {
            Device::Disk(disk) => disk.warm_with(request),
            Device::Ssd(_) | Device::Volume(_) => {}
        }
    }

    /// Takes a command; see [`Disk::submit`].
    #[inline]
    pub fn submit(&mut self, upstream: &mut Upstream, now_ns: u64, id: u32, request: &Request) {
        match self {
            Device::Disk(disk) => disk.submit_behind(upstream, now_ns, id, request),
            Device::Ssd(ssd) => ssd.submit(now_ns, id, request),
            Device::Volume(volume) => volume.submit(now_ns, id, request),
        }
    }

    /// Processes every event up to `now_ns`; see [`Disk::advance`].
    #[inline]
    pub fn advance(&mut self, upstream: &mut Upstream, now_ns: u64, completed: impl FnMut(Completion)) {
        match self {
            Device::Disk(disk) => disk.advance_behind(upstream, now_ns, completed),
            Device::Ssd(ssd) => ssd.advance_behind(upstream, now_ns, completed),
            Device::Volume(volume) => volume.advance(now_ns, completed),
        }
    }

    /// Replaces what is wrong with its media.
    pub(crate) fn set_media_defects(&mut self, media_defects: &[MediaDefect], seed: u64) {
        match self {
            Device::Disk(disk) => disk.set_media_defects(media_defects, seed),
            Device::Ssd(ssd) => ssd.set_media_defects(media_defects, seed),
            Device::Volume(_) => debug_assert!(media_defects.is_empty(), "a volume has no media"),
        }
    }

    /// Whether it has media, which can be defective.
    pub(crate) fn has_media(&self) -> bool {
        match self {
            Device::Disk(_) | Device::Ssd(_) => true,
            Device::Volume(_) => false,
        }
    }

    /// Some command has failed that nobody has asked for.
    #[inline]
    pub(crate) fn has_failures(&self) -> bool {
        match self {
            Device::Disk(disk) => disk.has_failures(),
            Device::Ssd(ssd) => ssd.has_failures(),
            Device::Volume(_) => false,
        }
    }

    /// What is wrong with a command that is complete.
    #[cold]
    pub(crate) fn take_failure(&mut self, id: u32) -> Option<Failure> {
        match self {
            Device::Disk(disk) => disk.take_failure(id),
            Device::Ssd(ssd) => ssd.take_failure(id),
            Device::Volume(_) => None,
        }
    }

    /// Switches the write cache.
    ///
    /// # Errors
    /// A solid-state drive, whose buffer cannot be switched off.
    pub(crate) fn set_write_cache(&mut self, on: bool) -> Result<(), SimError> {
        match self {
            Device::Disk(disk) => {
                disk.set_write_cache(on);
                Ok(())
            }
            Device::Ssd(_) => {
                Err(SimError::Fault("write cache: that of a solid-state drive cannot be switched; a disk's can".into()))
            }
            Device::Volume(_) => Err(SimError::Fault("write cache: a volume has none; a disk has".into())),
        }
    }

    /// Acknowledged data can be in a volatile cache.
    pub(crate) fn caches_writes(&self) -> bool {
        match self {
            Device::Disk(disk) => disk.caches_writes(),
            Device::Ssd(ssd) => ssd.caches_writes(),
            Device::Volume(_) => false,
        }
    }

    /// Appends what of a span is in a volatile cache alone, in order.
    pub(crate) fn volatile(&self, span: Span, into: &mut Vec<Span>) {
        let first = into.len();
        match self {
            Device::Disk(disk) => disk.volatile(span, into),
            Device::Ssd(ssd) => ssd.volatile(span, into),
            Device::Volume(_) => {}
        }
        put_in_order(into, first);
    }

    /// End of the track or page that holds a byte.
    pub(crate) fn tear_bound(&self, at_bytes: u64) -> u64 {
        match self {
            Device::Disk(disk) => disk.track_end_bytes(at_bytes),
            Device::Ssd(ssd) => ssd.page_end_bytes(at_bytes),
            Device::Volume(volume) => {
                let block = u64::from(volume.description().block_bytes);
                (at_bytes / block + 1) * block
            }
        }
    }

    /// Power was cut and is back.
    pub(crate) fn power_cycle(&mut self, now_ns: u64) {
        match self {
            Device::Disk(disk) => disk.power_cycle(now_ns),
            Device::Ssd(ssd) => ssd.power_cycle(now_ns),
            Device::Volume(volume) => volume.power_cycle(),
        }
    }

    /// What it does; its name is the caller's.
    pub(crate) fn levels(&self) -> Levels {
        match self {
            Device::Disk(disk) => disk.levels(),
            Device::Ssd(ssd) => [ssd.buffered_bytes(), 0, 0, 0],
            Device::Volume(_) => [0; LEVEL_NAMES.len()],
        }
    }

    /// What it does; its name is the caller's.
    pub(crate) fn gauge(&self, now_ns: u64) -> DeviceGauge {
        match self {
            Device::Disk(disk) => disk.gauge(now_ns),
            Device::Ssd(ssd) => ssd.gauge(),
            Device::Volume(volume) => volume.gauge(),
        }
    }

    /// What is wrong with it, under `name`, after `traffic` and so many times that it was switched on.
    pub(crate) fn health(&self, name: &str, traffic: &Traffic, power_cycles: u32, missing: bool) -> DeviceHealth {
        let (model, capacity_bytes, rpm) = match self {
            Device::Disk(disk) => {
                let rpm = disk.description().mechanics.rpm.round() as u32;
                (&disk.description().name, disk.capacity_bytes(), Some(rpm))
            }
            Device::Ssd(ssd) => (&ssd.description().name, ssd.capacity_bytes(), None),
            Device::Volume(volume) => (&volume.description().name, volume.description().capacity_bytes, None),
        };
        let mut health = DeviceHealth {
            name: name.to_owned(),
            model: model.clone(),
            capacity_bytes,
            rpm,
            pending_sectors: 0,
            reallocated_sectors: 0,
            uncorrectable_errors: 0,
            retried_passes: 0,
            read_bytes: traffic.read_bytes,
            written_bytes: traffic.written_bytes,
            power_cycles,
            missing,
        };
        match self {
            Device::Disk(disk) => disk.add_health(&mut health),
            Device::Ssd(ssd) => ssd.add_health(&mut health),
            Device::Volume(_) => {}
        }
        health
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
            Device::Volume(volume) => {
                into.add_volume(name, volume.description(), &volume.counters());
                into.add_meter(None);
            }
        }
    }
}
