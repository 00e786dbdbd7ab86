//! Zones of a target that are written at their write pointers, managed as with fio's `zonemode=zbd`.
//!
//! [`Zones`] belong to a target and are shared by its jobs. They are a device's own zones, or the zones into which a
//! file, a plain device or the null target is divided, all of them empty at first. [`Tending`] belongs to one thread:
//! it directs requests, resets and finishes zones as needed, and tracks completions. The rules are in [`zone_table`],
//! which does no I/O.

mod course;
mod device;
mod tending;
#[cfg(test)]
mod tests;
mod zone_table;

use std::fs::File;
use std::io;
use std::sync::{Mutex, MutexGuard};

use headstack_jobfiles::Zoning;
use headstack_workload::quantity::format_bytes;

pub use tending::{Advance, Tending};
use zone_table::{Zone, ZoneKind, ZoneTable};

/// Maximum number of zones; more indicate a wrong zone size.
const ZONES_MAX: u64 = 1 << 22;

/// The zones of a target.
pub struct Zones {
    zone_table: Mutex<ZoneTable>,
    /// The zoned device; for other targets, only write pointers are tracked.
    device: Option<File>,
    /// Maximum number of open zones of the device; 0 for no limit.
    open_max: usize,
}

/// Limits of a zoned device, from sysfs.
pub struct DeviceLimits {
    /// Maximum number of open zones; 0 for no limit.
    pub open: u64,
    /// Maximum number of zones that are open, or closed and not full; 0 for no limit.
    pub active: u64,
}

impl Zones {
    /// Reads the zones of a device.
    ///
    /// # Errors
    /// Returns the reason as text if the kernel refuses, or if the zones do not match the request.
    pub fn of_device(device: File, limits: &DeviceLimits, zoning: &Zoning) -> Result<Zones, String> {
        let zones = device::report(&device).map_err(|error| format!("its zones cannot be read ({error})"))?;
        let [first, second, ..] = &zones[..] else { return Err("has fewer than two zones".to_owned()) };
        let zone_bytes = second.start_bytes - first.start_bytes;
        // Checked here too, so that a division gives the zone of an offset.
        if zones.windows(2).any(|pair| pair[1].start_bytes - pair[0].start_bytes != zone_bytes) {
            return Err("has zones of unequal sizes".to_owned());
        }
        if let Some(stated) = zoning.size_bytes.filter(|stated| *stated != zone_bytes) {
            let [stated, own] = [stated, zone_bytes].map(format_bytes);
            return Err(format!("has zones of {own}; {stated} are requested"));
        }
        let open_max = [limits.open, limits.active].into_iter().filter(|limit| *limit > 0).min().unwrap_or(0) as usize;
        Ok(Zones { zone_table: Mutex::new(ZoneTable::new(zones, zone_bytes)), device: Some(device), open_max })
    }

    /// Divides a target without zones into empty zones.
    ///
    /// # Errors
    /// Returns the reason as text if no zone size is given, or if it does not fit.
    pub fn divided(capacity_bytes: u64, block_bytes: u64, zoning: &Zoning) -> Result<Zones, String> {
        let Some(zone_bytes) = zoning.size_bytes.filter(|bytes| *bytes > 0) else {
            return Err("has no zones; set a zone size (zonesize) to divide it".to_owned());
        };
        let zone_capacity_bytes = zoning.capacity_bytes.unwrap_or(zone_bytes);
        let is_whole = zone_bytes.is_multiple_of(block_bytes) && zone_capacity_bytes.is_multiple_of(block_bytes);
        if !is_whole || zone_capacity_bytes == 0 || zone_capacity_bytes > zone_bytes {
            let [size, capacity] = [zone_bytes, zone_capacity_bytes].map(format_bytes);
            return Err(format!(
                "zones of {size} with a capacity of {capacity}; both must be multiples of {block_bytes} bytes, and \
                 the capacity at most the size"
            ));
        }
        let count = capacity_bytes / zone_bytes;
        if count == 0 || count > ZONES_MAX {
            let size = format_bytes(zone_bytes);
            return Err(format!("has room for {count} zones of {size}; must be 1 to {ZONES_MAX}"));
        }
        let zone = |index| {
            let start_bytes = index * zone_bytes;
            Zone {
                kind: ZoneKind::Sequential,
                start_bytes,
                pointer_bytes: start_bytes,
                capacity_end_bytes: start_bytes + zone_capacity_bytes,
                is_open: false,
                is_busy: false,
                job: 0,
            }
        };
        let zones = (0..count).map(zone).collect();
        Ok(Zones { zone_table: Mutex::new(ZoneTable::new(zones, zone_bytes)), device: None, open_max: 0 })
    }

    /// Returns an error if `zoning` requests another division of the target than the present one.
    pub fn check(&self, zoning: &Zoning) -> Result<(), String> {
        let zone_table = self.zone_table();
        let zone = zone_table.zones()[0];
        let own = (zone_table.zone_bytes(), zone.capacity_end_bytes - zone.start_bytes);
        let wanted_bytes = zoning.size_bytes.unwrap_or(own.0);
        let is_same =
            wanted_bytes == own.0 && (self.device.is_some() || zoning.capacity_bytes.unwrap_or(wanted_bytes) == own.1);
        match is_same {
            true => Ok(()),
            false => Err(format!("is divided into zones of {} by another job", format_bytes(own.0))),
        }
    }

    /// Returns the maximum number of open zones.
    ///
    /// # Errors
    /// Returns the reason as text if more are requested than the device allows.
    pub fn open_max(&self, zoning: &Zoning) -> Result<usize, String> {
        let or_any = |limit: usize| if limit == 0 { usize::MAX } else { limit };
        let stated = zoning.open_max as usize;
        let own = if zoning.ignores_limits { 0 } else { self.open_max };
        if own > 0 && stated > own {
            return Err(format!(
                "allows {own} open zones; {stated} are requested (max_open_zones); set ignore_zone_limits to allow more"
            ));
        }
        Ok(or_any(if stated > 0 { stated } else { own }))
    }

    /// Returns whether the zones are a device's own.
    pub fn are_of_device(&self) -> bool {
        self.device.is_some()
    }

    fn zone_table(&self) -> MutexGuard<'_, ZoneTable> {
        self.zone_table.lock().expect("the lock is not poisoned")
    }

    /// Resets a zone that is marked as busy for this.
    fn reset(&self, index: usize) -> io::Result<()> {
        let (start_bytes, length_bytes) = self.extent(index);
        let done = self.device.as_ref().map_or(Ok(()), |device| device::reset(device, start_bytes, length_bytes));
        match &done {
            Ok(()) => self.zone_table().was_reset(index),
            Err(_) => self.look_again(index),
        }
        done
    }

    /// Finishes a zone that is marked as busy for this.
    fn finish(&self, index: usize) -> io::Result<()> {
        let (start_bytes, length_bytes) = self.extent(index);
        let done = self.device.as_ref().map_or(Ok(()), |device| device::finish(device, start_bytes, length_bytes));
        match &done {
            Ok(()) => self.zone_table().was_finished(index),
            Err(_) => self.look_again(index),
        }
        done
    }

    /// Reads the write pointer from the device after an error. Other targets keep their pointer, since it is unknown
    /// what was written.
    fn look_again(&self, index: usize) {
        let known = self.zone_table().zones()[index];
        let found = self.device.as_ref().and_then(|device| device::report_one(device, known.start_bytes).ok());
        self.zone_table().set_pointer(index, found.map_or(known.pointer_bytes, |zone| zone.pointer_bytes));
    }

    fn extent(&self, index: usize) -> (u64, u64) {
        let zone_table = self.zone_table();
        (zone_table.zones()[index].start_bytes, zone_table.zone_bytes())
    }
}
