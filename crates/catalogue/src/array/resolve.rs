//! Completes an array file ([`resolve`]). Missing values follow from rules and from the constants in this module.

use std::cell::RefCell;
use std::collections::HashMap;

use headstack_sim::array::description::{ArrayDescription, Incident, IncidentKind, Spindles};
use headstack_sim::device::DeviceDescription;
use headstack_workload::quantity::{self, Bytes};
use headstack_workload::{Document, InputError};

use super::file::{ArrayFile, BatteryEvent, DrivesTable, IncidentTable, LevelName, SpindlesTable};
use super::links::{COUNT_MAX, Links};
use super::read_layers;
use super::resolver::{Parts, Resolver, ns};
use crate::constants::SPINDLE_SPEED_TOLERANCE;
use crate::resolve::{Derived, source_of};
use crate::{ResolvedDevice, key_error};

/// A complete array with its file.
#[derive(Clone, Debug, PartialEq)]
pub struct ResolvedArray {
    /// Description with every value that the model needs.
    pub description: ArrayDescription,
    /// The file as it was read, merged with its base files.
    pub file: ArrayFile,
    /// Values that the file does not state, in order of derivation.
    pub derived: Vec<Derived>,
}

impl ResolvedArray {
    /// Returns the source of a key of the file as `CODE text`: the source of the key itself, else of the table that
    /// contains the key, else the default.
    pub fn source(&self, key: &str) -> Option<&str> {
        source_of(&self.file.sources, key)
    }
}

/// Requested changes to a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Drive of the first `[[drives]]` table, as in `load_drive`.
    pub drive: Option<String>,
    /// Number of drives in the first `[[drives]]` table.
    pub drives: Option<u32>,
    /// Level of all groups.
    pub level: Option<LevelName>,
    /// Usable bytes, instead of a number of drives. The first `[[drives]]` table gets the fewest drives that export
    /// them.
    pub usable: Option<Bytes>,
}

impl Changes {
    /// Names of the changes in a run's options.
    pub const NAMES: [&str; 4] = ["drives", "drive", "level", "usable"];

    /// Sets a change from a text.
    ///
    /// # Errors
    /// If `name` is not one of [`Changes::NAMES`] or the value is invalid.
    pub fn set(&mut self, name: &str, text: &str) -> Result<(), InputError> {
        let wrong = |message: String| key_error(name, message);
        match name {
            "drive" => self.drive = Some(text.to_owned()),
            "drives" => {
                let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
                let count = text.parse().ok().filter(|&count| is_number && count <= COUNT_MAX);
                let message = || format!("{text:?} is not a number of drives; must be 1 to {COUNT_MAX}");
                self.drives = Some(count.ok_or_else(|| wrong(message()))?);
            }
            "level" => {
                let level = LevelName::parse(text);
                let allowed = || LevelName::forms().join(", ");
                let message = || format!("{text:?} is unknown; allowed: {}", allowed());
                self.level = Some(level.ok_or_else(|| wrong(message()))?);
            }
            "usable" => {
                let usable = quantity::parse_bytes(text).map_err(|error| wrong(error.to_string()))?;
                // A number without a unit is probably a mistake.
                if usable == 0 || text.ends_with(|last: char| last.is_ascii_digit()) {
                    return Err(wrong(format!("{text:?} is not a capacity; add the unit, for example 9TB")));
                }
                self.usable = Some(Bytes(usable));
            }
            _ => return Err(wrong(format!("this cannot be changed; allowed: {}", Changes::NAMES.join(", ")))),
        }
        if self.drives.is_some() && self.usable.is_some() {
            return Err(wrong("set drives or usable, not both".to_owned()));
        }
        Ok(())
    }

    /// Returns the option name of the first change that is set.
    pub(crate) fn first(&self) -> Option<&'static str> {
        let set_options = [
            ("drives", self.drives.is_some()),
            ("drive", self.drive.is_some()),
            ("level", self.level.is_some()),
            ("usable", self.usable.is_some()),
        ];
        set_options.into_iter().find_map(|(name, is_set)| is_set.then_some(name))
    }
}

/// Completes an array file.
///
/// # Errors
/// If the file is not an array file, names something that does not exist, or describes something impossible. The error
/// names file, line and key.
pub fn resolve(document: &Document, changes: &Changes) -> Result<ResolvedArray, InputError> {
    resolve_with(document, changes, &crate::load_device)
}

/// Returns a drive by its name or path.
type FindDrive<'a> = dyn Fn(&str) -> Result<ResolvedDevice, InputError> + 'a;

/// Like [`resolve`], but finds drives with `find` instead of in the catalogue and the file system.
pub(crate) fn resolve_with(
    document: &Document,
    changes: &Changes,
    find: &FindDrive,
) -> Result<ResolvedArray, InputError> {
    match changes.usable {
        Some(usable) => resolve_usable(document, changes, usable, find),
        None => resolve_counted(document, changes, find),
    }
}

/// Completes an array with the fewest drives that export the requested bytes.
fn resolve_usable(
    document: &Document,
    changes: &Changes,
    usable: Bytes,
    find: &FindDrive,
) -> Result<ResolvedArray, InputError> {
    // Each drive is completed only once for all numbers of drives that are tried.
    let device_cache: RefCell<HashMap<String, ResolvedDevice>> = RefCell::default();
    let find = |name: &str| {
        if let Some(drive) = device_cache.borrow().get(name) {
            return Ok(drive.clone());
        }
        let drive = find(name)?;
        device_cache.borrow_mut().insert(name.to_owned(), drive.clone());
        Ok(drive)
    };
    let (mut count, mut largest, mut refused) = (1, 0, None);
    while count <= COUNT_MAX {
        let tried = Changes { drives: Some(count), usable: None, ..changes.clone() };
        match resolve_counted(document, &tried, &find) {
            Ok(array) => {
                let held = array.description.capacity_bytes();
                if held >= usable.0 {
                    return Ok(array);
                }
                (largest, refused) = (largest.max(held), None);
                // No drive adds more than its capacity, so fewer drives than this cannot suffice.
                let each = array.description.devices[0].capacity_bytes().max(1);
                count += u32::try_from((usable.0 - held).div_ceil(each)).unwrap_or(COUNT_MAX);
            }
            Err(error) => {
                refused.get_or_insert((count, error));
                count += 1;
            }
        }
    }
    Err(match refused {
        Some((_, error)) if largest == 0 => error,
        Some((count, error)) => {
            key_error("usable", format!("{usable} needs {count} drives, which is not possible: {error}"))
        }
        None => {
            let most = Bytes(largest);
            key_error("usable", format!("{usable} is too large for any number of drives; the maximum is {most}"))
        }
    })
}

fn resolve_counted(document: &Document, changes: &Changes, find: &FindDrive) -> Result<ResolvedArray, InputError> {
    let (layers, mut file) = read_layers(document)?;
    if let Some(level) = changes.level {
        file.change_level(level)?;
    }
    let mut resolver = Resolver { layers: &layers, derived: Vec::new() };
    let Some(name) = file.name.clone() else {
        return Err(resolver.error("name", "this key is missing"));
    };
    let mut tables = file.drives.take().unwrap_or_default();
    let Some(first) = tables.first_mut() else {
        return Err(resolver.error("drives", "this key is missing; add at least one [[drives]] table"));
    };
    first.count = changes.drives.or(first.count);
    if let Some(drive) = &changes.drive {
        // Errors of drives are reported when the drives are completed.
        if let Ok(found) = find(drive) {
            first.keep_known_to(&found.description());
        }
    }
    let devices = resolver.devices(&tables, changes, find)?;
    let links = resolver.links(file.links.as_deref().unwrap_or_default())?;
    let members = resolver.members(&tables, &links)?;
    let parts = Parts { devices: &devices, members: &members };
    let groups = resolver.groups(&file, &parts)?;
    let luns = resolver.luns(&file, &groups, &parts)?;
    let spindles = resolver.spindles(file.spindles.unwrap_or_default(), &devices);
    let host = file.host.as_ref().and_then(|host| host.adapter);
    let controller = resolver.controller(file.controller.as_ref(), host, &links, &parts)?;
    let host_links = resolver.host_links(&file, &links)?;
    let incidents = resolver.incidents(file.incidents.as_deref().unwrap_or_default(), &parts)?;
    let description = ArrayDescription {
        name,
        links: links.descriptions,
        spindles,
        groups,
        luns,
        controller,
        host_links,
        incidents,
        devices,
        members,
    };
    headstack_sim::array::check(&description).map_err(|fault| layers.error(&fault.key, fault.message))?;
    let derived = resolver.derived;
    file.drives = Some(tables);
    Ok(ResolvedArray { description, file, derived })
}

/// Returns an array's file with changes as a self-contained file.
pub(crate) fn changed(document: &Document, changes: &Changes, find: &FindDrive) -> Result<ArrayFile, InputError> {
    let mut file = super::flattened(document)?;
    if let Some(level) = changes.level {
        file.change_level(level)?;
    }
    if let Some(first) = file.drives.iter_mut().flatten().next() {
        first.count = changes.drives.or(first.count);
        if let Some(drive) = &changes.drive {
            first.keep_known_to(&find(drive)?.description());
            first.drive.clone_from(drive);
            // Keys that are no longer stated need no source.
            let stated = toml::Table::try_from(&*first).map_err(|error| crate::whole("", &error.to_string()))?;
            let is_stated = |key: &str| key.strip_prefix("drives[0].").is_none_or(|field| stated.contains_key(field));
            file.sources.retain(|key, _| is_stated(key));
        }
    }
    Ok(file)
}

impl Resolver<'_> {
    fn devices(
        &self,
        tables: &[DrivesTable],
        changes: &Changes,
        find: &FindDrive,
    ) -> Result<Vec<DeviceDescription>, InputError> {
        let mut devices = Vec::new();
        for (index, table) in tables.iter().enumerate() {
            let key = format!("drives[{index}].drive");
            let resolved = match (&changes.drive, index) {
                (Some(drive), 0) => find(drive),
                _ if table.drive.ends_with(".toml") => {
                    find(&crate::beside(self.layers.stating("drives"), &table.drive))
                }
                _ => find(&table.drive),
            };
            // An error in a drive's file names its own place.
            let resolved = resolved
                .map_err(|error| if error.line.is_some() { error } else { self.error(&key, error.to_string()) })?;
            let mut device = resolved.description();
            // The drive's own host applies only if the drive is a system by itself.
            device.set_host(None);
            self.change(&format!("drives[{index}]"), table, &mut device)?;
            device.check().map_err(|fault| self.error(&key, format!("{}: {}", fault.key, fault.message)))?;
            devices.push(device);
        }
        Ok(devices)
    }

    /// Applies the drive settings of the array's file to a device.
    fn change(&self, key: &str, table: &DrivesTable, device: &mut DeviceDescription) -> Result<(), InputError> {
        let only = |stated: &[(&str, bool)], what: &str| match stated.iter().find(|(_, stated)| *stated) {
            Some((field, _)) => Err(self.error(&format!("{key}.{field}"), what)),
            None => Ok(()),
        };
        match device {
            DeviceDescription::Disk(disk) => {
                only(
                    &[("state", table.state.is_some()), ("preconditioned", table.preconditioned.is_some())],
                    "only solid-state drives have this key, and this drive is a disk",
                )?;
                disk.buffer.write_cache = table.write_cache.unwrap_or(disk.buffer.write_cache);
                disk.buffer.read_ahead = table.read_ahead.unwrap_or(disk.buffer.read_ahead);
                if let Some(rate) = table.write_rate {
                    disk.interface.write_ns_per_byte = disk.interface.write_ns_per_byte.max(1e9 / rate.0);
                }
                disk.queue.depth = table.queue_depth.unwrap_or(disk.queue.depth);
                disk.queue.policy = table.policy.unwrap_or(disk.queue.policy);
                disk.queue.reordering_strength = table.reordering.unwrap_or(disk.queue.reordering_strength);
            }
            DeviceDescription::Ssd(ssd) => {
                let of_disks = [
                    ("read_ahead", table.read_ahead.is_some()),
                    ("policy", table.policy.is_some()),
                    ("reordering", table.reordering.is_some()),
                ];
                only(&of_disks, "only disks have this key, and this drive is a solid-state drive")?;
                if let Some(kind) = table.write_cache {
                    let wrong = |message: &str| self.error(&format!("{key}.write_cache"), message);
                    ssd.buffer.set_write_cache(kind).map_err(wrong)?;
                }
                if let Some(rate) = table.write_rate {
                    ssd.interface.write_ns_per_byte = ssd.interface.write_ns_per_byte.max(1e9 / rate.0);
                }
                ssd.interface.queue_depth = table.queue_depth.unwrap_or(ssd.interface.queue_depth);
                ssd.state = table.state().unwrap_or_else(|| ssd.state.clone());
            }
            DeviceDescription::Volume(volume) => {
                let of_drives = [
                    ("write_cache", table.write_cache.is_some()),
                    ("read_ahead", table.read_ahead.is_some()),
                    ("write_rate", table.write_rate.is_some()),
                    ("policy", table.policy.is_some()),
                    ("reordering", table.reordering.is_some()),
                    ("state", table.state.is_some()),
                    ("preconditioned", table.preconditioned.is_some()),
                ];
                only(&of_drives, "only drives have this key, and this device is a volume")?;
                volume.queue_depth = table.queue_depth.unwrap_or(volume.queue_depth);
            }
        }
        Ok(())
    }

    /// Returns the spindles. Nothing is derived for an array without disks.
    fn spindles(&mut self, table: SpindlesTable, devices: &[DeviceDescription]) -> Spindles {
        let synchronized = table.synchronized.unwrap_or(false);
        let has_disks = devices.iter().any(|device| matches!(device, DeviceDescription::Disk(_)));
        let speed_tolerance = if synchronized || !has_disks {
            table.speed_tolerance.unwrap_or(0.0)
        } else {
            self.or(table.speed_tolerance, "spindles.speed_tolerance", "any disk", SPINDLE_SPEED_TOLERANCE)
        };
        Spindles { synchronized, speed_tolerance }
    }

    fn host_links(&self, file: &ArrayFile, links: &Links) -> Result<Vec<u32>, InputError> {
        let names = file.host.as_ref().map_or(&[][..], |host| &host.links);
        links.find(self, "host.links", names)
    }

    fn incidents(&self, tables: &[IncidentTable], parts: &Parts) -> Result<Vec<Incident>, InputError> {
        let mut incidents = Vec::new();
        for (index, table) in tables.iter().enumerate() {
            let key = |field: &str| format!("incidents[{index}].{field}");
            let what = match (&table.fails, table.battery) {
                (Some(drive), None) => {
                    let member = parts.find(self, &key("fails"), std::slice::from_ref(drive))?[0];
                    IncidentKind::MemberFails { member }
                }
                (None, Some(BatteryEvent::Fails)) => IncidentKind::BatteryFails,
                (None, Some(BatteryEvent::Returns)) => IncidentKind::BatteryReturns,
                _ => return Err(self.error(&key("fails"), "set exactly one of fails and battery")),
            };
            incidents.push(Incident { at_ns: ns(self, &key("at"), table.at)?, what });
        }
        Ok(incidents)
    }
}
