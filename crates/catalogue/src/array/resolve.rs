//! From an array file to a complete description: what the file leaves out follows from rules and from the constants here.

use headstack_sim::array::description::{ArrayDescription, Incident, IncidentKind, Member};
use headstack_sim::device::DeviceDescription;
use headstack_workload::quantity::{Bytes, DurationNs};
use headstack_workload::{Document, InputError};
use serde::Serialize;

use super::file::{ArrayFile, BatteryEvent, DrivesTable, IncidentTable};
use super::links::Links;
use super::{Layers, read_layers};
use crate::ResolvedDevice;
use crate::resolve::{Derived, source_of};

/// An array, complete, with the file it came from.
#[derive(Clone, Debug, PartialEq)]
pub struct ResolvedArray {
    /// Every number of the model.
    pub description: ArrayDescription,
    /// The file as it was read, over those that it is based on.
    pub file: ArrayFile,
    /// What the file left out, in the order of derivation.
    pub derived: Vec<Derived>,
}

impl ResolvedArray {
    /// Source of a key of the file as `CODE text`: its own, else that of the table that holds it, else the default.
    pub fn source(&self, key: &str) -> Option<&str> {
        source_of(&self.file.sources, key)
    }
}

/// What is asked for instead of what the file says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// The drive of the first `[[drives]]` table, as `load_drive` takes it.
    pub drive: Option<String>,
    /// The count of the first `[[drives]]` table.
    pub drives: Option<u32>,
}

impl Changes {
    /// The first that is asked for, by its name among a run's options.
    pub(crate) fn first(&self) -> Option<&'static str> {
        match (&self.drives, &self.drive) {
            (Some(_), _) => Some("drives"),
            (None, Some(_)) => Some("drive"),
            (None, None) => None,
        }
    }
}

/// Completes an array file.
///
/// # Errors
/// When it is no array file, names what is not there, or describes what is impossible; the error names file, line and
/// key.
pub fn resolve(document: &Document, changes: &Changes) -> Result<ResolvedArray, InputError> {
    resolve_with(document, changes, &crate::load_device)
}

/// The drive of a name or a path.
type FindDrive<'a> = dyn Fn(&str) -> Result<ResolvedDevice, InputError> + 'a;

/// The same with drives from elsewhere than the catalogue and the file system.
pub(crate) fn resolve_with(
    document: &Document,
    changes: &Changes,
    find: &FindDrive,
) -> Result<ResolvedArray, InputError> {
    let (layers, mut file) = read_layers(document)?;
    let mut resolver = Resolver { layers: &layers, derived: Vec::new() };
    let Some(name) = file.name.clone() else {
        return Err(resolver.error("name", "this key is missing"));
    };
    let mut tables = file.drives.take().unwrap_or_default();
    let Some(first) = tables.first_mut() else {
        return Err(resolver.error("drives", "this key is missing; an array has one [[drives]] table or more"));
    };
    first.count = changes.drives.or(first.count);
    let devices = resolver.devices(&tables, changes, find)?;
    let links = resolver.links(file.links.as_deref().unwrap_or_default())?;
    let members = resolver.members(&tables, &links)?;
    let parts = Parts { devices: &devices, members: &members };
    let groups = resolver.groups(&file, &parts)?;
    let luns = resolver.luns(&file, &groups, &parts)?;
    let controller = resolver.controller(file.controller.as_ref(), &links, &parts)?;
    let host_links = resolver.host_links(&file, &links)?;
    let incidents = resolver.incidents(file.incidents.as_deref().unwrap_or_default(), &parts)?;
    let description = ArrayDescription {
        name,
        links: links.descriptions,
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

pub(super) struct Resolver<'a> {
    layers: &'a Layers,
    derived: Vec<Derived>,
}

/// The drives of an array.
pub(super) struct Parts<'a> {
    pub(super) devices: &'a [DeviceDescription],
    pub(super) members: &'a [Member],
}

impl Parts<'_> {
    pub(super) fn device(&self, member: u32) -> &DeviceDescription {
        &self.devices[self.members[member as usize].device as usize]
    }

    /// The drives of a list of names and ranges.
    pub(super) fn find(&self, resolver: &Resolver, key: &str, names: &[String]) -> Result<Vec<u32>, InputError> {
        let own: Vec<&str> = self.members.iter().map(|member| member.name.as_str()).collect();
        let found: Result<Vec<_>, _> = names.iter().map(|name| resolver.find(key, "drive", &own, name)).collect();
        Ok(found?.concat())
    }
}

/// Nanoseconds of a duration that must not be negative.
pub(super) fn ns(resolver: &Resolver, key: &str, duration: DurationNs) -> Result<u64, InputError> {
    u64::try_from(duration.0)
        .map_err(|_| resolver.error(key, format!("{duration} is negative; 0ns or more is allowed")))
}

impl Resolver<'_> {
    pub(super) fn error(&self, key: &str, message: impl Into<String>) -> InputError {
        self.layers.error(key, message)
    }

    /// The value the file gives, else `value`, which is recorded with its rule.
    pub(super) fn or<T: Serialize>(&mut self, given: Option<T>, key: &str, rule: &str, value: T) -> T {
        match given {
            Some(given) => given,
            None => {
                self.derived.push(Derived::new(key, &value, rule));
                value
            }
        }
    }

    /// The size the file gives, rounded down to whole units, which is recorded where it is not what the file says.
    pub(super) fn in_units(&mut self, given: Option<Bytes>, key: &str, unit: u64, what: &str) -> Option<Bytes> {
        let (stated, unit) = (given?, unit.max(1));
        let whole = Bytes(stated.0 / unit * unit);
        // What holds not even one is for the check to refuse.
        if whole == stated || whole.0 == 0 {
            return given;
        }
        self.derived.push(Derived::new(key, &whole, &format!("{stated} of the file, rounded down to whole {what}")));
        Some(whole)
    }

    /// What `name` means among `names`: itself, or the range between two of them.
    pub(super) fn find(&self, key: &str, what: &str, names: &[&str], name: &str) -> Result<Vec<u32>, InputError> {
        let place = |name: &str| match names.iter().position(|&own| own == name) {
            Some(place) => Ok(place as u32),
            None if names.is_empty() => Err(self.error(key, format!("no {what} {name:?}; the array has none"))),
            None => {
                let closest = crate::closest(name, names).join(", ");
                Err(self.error(key, format!("no {what} {name:?}; closest: {closest}")))
            }
        };
        match name.split_once("..") {
            None => Ok(vec![place(name)?]),
            Some((first, last)) => {
                let (from, to) = (place(first)?, place(last)?);
                if from > to {
                    return Err(self.error(key, format!("{name:?} runs backwards; the lower number comes first")));
                }
                Ok((from..=to).collect())
            }
        }
    }

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
            // An error within a drive's file says where it is by itself.
            let resolved = resolved
                .map_err(|error| if error.line.is_some() { error } else { self.error(&key, error.to_string()) })?;
            let mut device = resolved.description();
            self.change(&format!("drives[{index}]"), table, &mut device)?;
            device.check().map_err(|fault| self.error(&key, format!("{}: {}", fault.key, fault.message)))?;
            devices.push(device);
        }
        Ok(devices)
    }

    /// Gives a device what the array's file states of it.
    fn change(&self, key: &str, table: &DrivesTable, device: &mut DeviceDescription) -> Result<(), InputError> {
        let only = |stated: &[(&str, bool)], what: &str| match stated.iter().find(|(_, stated)| *stated) {
            Some((field, _)) => Err(self.error(&format!("{key}.{field}"), what)),
            None => Ok(()),
        };
        match device {
            DeviceDescription::Disk(disk) => {
                only(
                    &[("preconditioned", table.preconditioned.is_some())],
                    "only solid-state drives have this, and it is a disk",
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
                    ("write_cache", table.write_cache.is_some()),
                    ("read_ahead", table.read_ahead.is_some()),
                    ("policy", table.policy.is_some()),
                    ("reordering", table.reordering.is_some()),
                ];
                only(&of_disks, "only disks have this, and it is a solid-state drive")?;
                if let Some(rate) = table.write_rate {
                    ssd.interface.write_ns_per_byte = ssd.interface.write_ns_per_byte.max(1e9 / rate.0);
                }
                ssd.interface.queue_depth = table.queue_depth.unwrap_or(ssd.interface.queue_depth);
                ssd.preconditioned = table.preconditioned.unwrap_or(ssd.preconditioned);
            }
        }
        Ok(())
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
                _ => return Err(self.error(&key("fails"), "exactly one of fails and battery is allowed")),
            };
            incidents.push(Incident { at_ns: ns(self, &key("at"), table.at)?, what });
        }
        Ok(incidents)
    }
}
