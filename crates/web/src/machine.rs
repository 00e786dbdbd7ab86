//! A system with its parts and events, for the machine view of the page.

use headstack_catalogue::{Points, Refused};
use headstack_sim::array::description::{Incident, IncidentKind, Level};
use headstack_sim::chronicle::{Chronicle, chronicle};
use headstack_sim::device::DeviceDescription;
use headstack_sim::drive::description::{DriveDescription, Policy};
use headstack_sim::{Demand, SystemDescription, run_contained};
use headstack_workload::WarmUp;
use serde::Serialize;

/// Events in a system, and the parts in which they occur.
#[derive(Serialize)]
pub struct Watched {
    machine: Machine,
    #[serde(flatten)]
    chronicle: Chronicle,
}

/// The parts of a system.
#[derive(Serialize)]
struct Machine {
    devices: Vec<Device>,
    /// Members of an array; for a single drive, only that drive.
    members: Vec<Member>,
    groups: Vec<Group>,
    /// Maximum number of dirty pages in the cache of an array; 0 if the array has no cache.
    dirty_pages_max: u64,
}

#[derive(Serialize)]
struct Member {
    name: String,
    /// Index of the device.
    device: u32,
}

#[derive(Serialize)]
struct Group {
    level: Level,
    chunk_bytes: u64,
    members: Vec<u32>,
    spares: Vec<u32>,
}

#[derive(Serialize)]
#[serde(tag = "is", rename_all = "kebab-case")]
enum Device {
    Disk {
        name: String,
        cylinders: u32,
        /// First cylinder of each zone, with its number of sectors per track.
        zones: Vec<(u32, u32)>,
        turn_ns: f64,
        actuators: u32,
        policy: Policy,
        sector_bytes: u32,
        segments: u32,
        segment_sectors: u32,
        /// Maximum number of sectors in the write cache.
        dirty_sectors_max: u32,
    },
    Ssd {
        name: String,
        channels: u32,
        dies: u32,
        read_ns: u64,
        program_ns: u64,
        erase_ns: u64,
    },
    Volume {
        name: String,
    },
}

/// Runs the only point from an idle start and without a warm-up, so that every request is seen from its arrival on.
pub fn chronicled(points: &Points, events_max: usize, spare: bool) -> Result<Watched, String> {
    let described = points.describe().map_err(|error| error.to_string())?;
    if points.len() != 1 {
        return Err(format!("{} points; must be one", points.len()));
    }
    let point = described.point(0);
    let draft = point.draft.map_err(|refused| match refused {
        Refused::Impossible(why) | Refused::Failed(why) => why,
    })?;
    draft.fault().map_err(|error| error.to_string())?;
    let (_, mut spec) = draft.split(point.labels);
    if let Demand::Workload(workload) = &mut spec.demand {
        workload.warm_up = WarmUp { requests: 0, time_ns: 0 };
    }
    if spare && let SystemDescription::Array(array) = &mut spec.system {
        let at_ns = array.incidents.iter().map(|incident| incident.at_ns).max().unwrap_or(0);
        array.incidents.push(Incident { at_ns, what: IncidentKind::SpareAdded { group: 0 } });
    }
    let (result, chronicle) = chronicle(events_max, || run_contained(&spec, &|_| true));
    result.map_err(|error| error.to_string())?;
    Ok(Watched { machine: machine(&spec.system), chronicle })
}

fn machine(system: &SystemDescription) -> Machine {
    match system {
        SystemDescription::Drive(alone) => Machine {
            devices: vec![device(alone)],
            members: vec![Member { name: "drive".to_owned(), device: 0 }],
            groups: Vec::new(),
            dirty_pages_max: 0,
        },
        SystemDescription::Stack(stack) => machine(&stack.below[0]),
        SystemDescription::Array(array) => Machine {
            devices: array.devices.iter().map(device).collect(),
            members: (array.members.iter())
                .map(|member| Member { name: member.name.clone(), device: member.device })
                .collect(),
            groups: (array.groups.iter())
                .map(|group| Group {
                    level: group.level,
                    chunk_bytes: group.chunk_bytes,
                    members: group.members.clone(),
                    spares: group.spares.clone(),
                })
                .collect(),
            dirty_pages_max: (array.controller.cache.as_ref())
                .map_or(0, |cache| cache.dirty_bytes_max / u64::from(cache.page_bytes)),
        },
    }
}

fn device(device: &DeviceDescription) -> Device {
    match device {
        DeviceDescription::Disk(drive) => disk(drive),
        DeviceDescription::Ssd(ssd) => Device::Ssd {
            name: ssd.name.clone(),
            channels: ssd.flash.channels,
            dies: ssd.dies(),
            read_ns: ssd.timing.read_ns,
            program_ns: ssd.timing.program_ns,
            erase_ns: ssd.timing.erase_ns,
        },
        DeviceDescription::Volume(volume) => Device::Volume { name: volume.name.clone() },
    }
}

fn disk(drive: &DriveDescription) -> Device {
    let (geometry, buffer) = (&drive.geometry, &drive.buffer);
    Device::Disk {
        name: drive.name.clone(),
        cylinders: geometry.cylinders,
        zones: geometry.zones.iter().map(|zone| (zone.first_cylinder, zone.sectors_per_track)).collect(),
        turn_ns: 60e9 / drive.mechanics.rpm,
        actuators: drive.actuators,
        policy: drive.queue.policy,
        sector_bytes: geometry.physical_sector_bytes,
        segments: buffer.segments,
        segment_sectors: buffer.segment_sectors,
        dirty_sectors_max: buffer.dirty_sectors_max,
    }
}
