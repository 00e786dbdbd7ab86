//! [`Effect`]: the effect of a fault on the system into which it is injected, and errors for faults that cannot be
//! injected.

use headstack_workload::{Bytes, Kind, Span};

use super::contents::{Corruptor, Stage};
use super::damaging::{self, Damaging};
use super::filter::{Complaint, Filter, positive, share};
use super::{Distribution, Fault, Recovery, RequestKind, Stretch};
use crate::description::array::{IncidentKind, Member};
use crate::description::device::DeviceDescription;
use crate::description::drive::InterfaceKind;
use crate::description::model::Model;
use crate::description::system::SystemDescription;
use crate::gauges::DeviceHealth;
use crate::media_defects::{Delay, MediaDefect};
use crate::power_cut::PowerCut;

/// Default time-out: Linux gives a SCSI or ATA command 30 s (`SD_TIMEOUT` in drivers/scsi/sd.h) and retries five times
/// (`SD_MAX_RETRIES`).
const TIME_OUT_NS: u64 = 30_000_000_000;

/// The target of faults.
#[derive(Debug)]
pub(crate) enum Subject {
    /// A model without mechanics and media.
    Constant {
        /// Exported capacity, in bytes.
        capacity_bytes: u64,
    },
    /// A device that is a complete system.
    Device {
        /// Exported capacity, in bytes.
        capacity_bytes: u64,
        /// Logical block size, in bytes.
        block_bytes: u32,
        /// How long the device tries to read an unreadable sector.
        recovery: Recovery,
    },
    /// An array.
    Array {
        /// Exported capacity, in bytes.
        capacity_bytes: u64,
        /// Logical block size, in bytes.
        block_bytes: u32,
        /// Names of the groups.
        groups: Vec<String>,
        /// Whether contents of its members are modelled: no layer above moves data.
        holds_contents: bool,
    },
}

impl Subject {
    /// Returns a model as the target of faults.
    pub fn of(model: &Model) -> Subject {
        let system = match model {
            Model::Constant(constant) => return Subject::Constant { capacity_bytes: constant.capacity_bytes },
            Model::System(system) => system,
        };
        let (capacity_bytes, block_bytes) = (system.capacity_bytes(), system.block_bytes());
        match system {
            SystemDescription::Drive(device) => {
                let is_ata = matches!(device, DeviceDescription::Disk(disk)
                    if matches!(disk.interface.kind, InterfaceKind::Ata | InterfaceKind::Sata));
                let recovery = if is_ata { Recovery::Desktop } else { Recovery::Limited };
                Subject::Device { capacity_bytes, block_bytes, recovery }
            }
            SystemDescription::Array(array) => {
                let groups = array.groups.iter().map(|group| group.name.clone()).collect();
                Subject::Array { capacity_bytes, block_bytes, groups, holds_contents: true }
            }
            SystemDescription::Stack(_) => {
                let array = system.base_array();
                let groups = array.iter().flat_map(|array| &array.groups).map(|group| group.name.clone()).collect();
                let holds_contents = system.array_in_place().is_some();
                Subject::Array { capacity_bytes, block_bytes, groups, holds_contents }
            }
        }
    }

    /// Returns the properties that triggers need: capacity and block size in bytes, and whether the target is an array.
    pub fn extent(&self) -> (u64, u32, bool) {
        (self.capacity_bytes(), self.block_bytes(), matches!(self, Subject::Array { .. }))
    }

    pub(super) fn capacity_bytes(&self) -> u64 {
        let (Subject::Constant { capacity_bytes }
        | Subject::Device { capacity_bytes, .. }
        | Subject::Array { capacity_bytes, .. }) = self;
        *capacity_bytes
    }

    fn block_bytes(&self) -> u32 {
        match self {
            Subject::Constant { .. } => 512,
            Subject::Device { block_bytes, .. } | Subject::Array { block_bytes, .. } => *block_bytes,
        }
    }
}

/// Effect of a fault.
#[derive(Clone, Debug)]
pub(crate) enum Effect {
    /// Media defects of a device.
    Media {
        /// Member of an array; `None` for a device that is a complete system.
        member: Option<u32>,
        /// The defects.
        media_defects: Vec<MediaDefect>,
        /// Filter of the host requests that may meet the defects; only known for a device that is a complete system.
        filter: Option<Filter>,
    },
    /// Late answers.
    Spike {
        /// Requests that the fault concerns.
        filter: Filter,
        /// Share of requests that are delayed.
        share: f64,
        /// Additional time.
        time_ns: u64,
        /// Distribution of the additional time.
        distribution: Distribution,
    },
    /// Answers are held until the fault ends.
    Hang(Filter),
    /// The device is absent.
    DropOut,
    /// An incident of an array.
    Incident(IncidentKind),
    /// Commands are sent again after an error.
    LinkErrors {
        /// Share of the transmissions that fail.
        share: f64,
        /// Time-out after which a command is sent again, in ns.
        time_out_ns: u64,
    },
    /// Link resets, during which nothing passes the link.
    LinkResets {
        /// Duration of a reset, in ns.
        time_ns: u64,
        /// Interval between resets, in ns.
        every_ns: u64,
    },
    /// Flushes are acknowledged at once.
    LyingCache,
    /// Power is cut.
    PowerCut(PowerCut),
    /// Power returns.
    PowerOn,
    /// Requests fail, or their data are damaged.
    Damaging(Box<Damaging>),
    /// Stored data are corrupted.
    Rot {
        /// Member of an array whose addresses the spans use; `None` for addresses of the system.
        member: Option<u32>,
        /// Affected spans; all addresses if empty.
        spans: Vec<Span>,
        /// Parameters of the corruption.
        corruptor: Corruptor,
    },
    /// The schedule enters another state.
    SetState(u32),
}

impl Effect {
    /// Whether the effect is an event: it happens once and does not concern single requests.
    pub fn is_event(&self) -> bool {
        match self {
            Effect::Spike { .. }
            | Effect::Hang(_)
            | Effect::LinkErrors { .. }
            | Effect::LyingCache
            | Effect::Damaging(_) => false,
            Effect::Media { .. }
            | Effect::DropOut
            | Effect::Incident(_)
            | Effect::LinkResets { .. }
            | Effect::PowerCut(_)
            | Effect::PowerOn
            | Effect::Rot { .. }
            | Effect::SetState(_) => true,
        }
    }
}

/// A device and the name that faults use for it.
#[derive(Clone, Debug)]
pub(crate) struct NamedDevice {
    /// Name; empty for a device that is a complete system.
    pub name: String,
    /// Exported capacity, in bytes.
    pub capacity_bytes: u64,
}

impl NamedDevice {
    /// Returns the devices of a model, in the order of their numbers.
    pub fn devices_of(model: &Model) -> Vec<NamedDevice> {
        match model {
            Model::Constant(_) => Vec::new(),
            Model::System(system) => NamedDevice::devices_of_system(system),
        }
    }

    fn devices_of_system(system: &SystemDescription) -> Vec<NamedDevice> {
        match system {
            SystemDescription::Drive(device) => {
                vec![NamedDevice { name: String::new(), capacity_bytes: device.capacity_bytes() }]
            }
            SystemDescription::Array(array) => {
                let named = |member: &Member| {
                    let capacity_bytes = array.devices[member.device as usize].capacity_bytes();
                    NamedDevice { name: member.name.clone(), capacity_bytes }
                };
                array.members.iter().map(named).collect()
            }
            SystemDescription::Stack(stack) => {
                let named = |(port, system): (usize, &SystemDescription)| {
                    let mut devices = NamedDevice::devices_of_system(system);
                    devices.iter_mut().for_each(|device| device.name = stack.device_name(port, &device.name));
                    devices
                };
                stack.ports().into_iter().enumerate().flat_map(named).collect()
            }
        }
    }
}

/// Returns the devices of a running system.
pub(crate) fn named_devices(devices: &[DeviceHealth]) -> Vec<NamedDevice> {
    let named =
        |device: &DeviceHealth| NamedDevice { name: device.name.clone(), capacity_bytes: device.capacity_bytes };
    devices.iter().map(named).collect()
}

/// Translates a fault into its effect. `devices` are the devices of the system, in the order of their numbers.
///
/// # Errors
/// Returns an error for the first impossible key, with its allowed values.
pub(crate) fn effect_of(fault: &Fault, subject: &Subject, devices: &[NamedDevice]) -> Result<Effect, Complaint> {
    let world = FaultContext { subject, devices };
    match fault {
        Fault::MediaError { member, ranges, map, percent, kinds, recovery, time, permanent } => {
            world.no_map(map.as_ref())?;
            if ranges.is_empty() {
                return Err(("ranges", "no sectors; add ranges or a ddrescue map".to_owned()));
            }
            if recovery.is_some() && time.is_some() {
                return Err(("time", "recovery also sets the time; use only one of the two".to_owned()));
            }
            let by_itself = match subject {
                Subject::Device { recovery, .. } => *recovery,
                Subject::Constant { .. } | Subject::Array { .. } => Recovery::Limited,
            };
            let time_ns = match time {
                Some(time) => positive("time", *time)?,
                None => recovery.unwrap_or(by_itself).time_ns(),
            };
            let kinds = media_kinds(kinds, &[RequestKind::Read])?;
            let fails = (Delay::Ns(time_ns), true, !permanent);
            world.media(member.as_deref(), ranges, kinds, *percent, fails)
        }
        Fault::WeakSectors { member, ranges, map, turns, percent, kinds } => {
            world.no_map(map.as_ref())?;
            if *turns == 0 {
                return Err(("turns", "0 is not a delay; must be 1 or more".to_owned()));
            }
            let kinds = media_kinds(kinds, &[RequestKind::Read])?;
            world.media(member.as_deref(), ranges, kinds, *percent, (Delay::Turns(*turns), false, false))
        }
        Fault::FailSlow { member, ranges, time, percent, kinds } => {
            let kinds = media_kinds(kinds, &[RequestKind::Read, RequestKind::Write])?;
            let delay = (Delay::Ns(positive("time", *time)?), false, false);
            world.media(member.as_deref(), ranges, kinds, *percent, delay)
        }
        Fault::LatencySpike { ranges, time, distribution, percent, kinds } => Ok(Effect::Spike {
            filter: world.filter(ranges, kinds)?,
            share: share(*percent)?,
            time_ns: positive("time", *time)?,
            distribution: *distribution,
        }),
        Fault::Hang { ranges, kinds } => Ok(Effect::Hang(world.filter(ranges, kinds)?)),
        Fault::DropOut => Ok(Effect::DropOut),
        Fault::MemberFails { member } => world.incident(IncidentKind::MemberFails { member: world.member(member)? }),
        Fault::MemberReturns { member } => {
            world.incident(IncidentKind::MemberReturns { member: world.member(member)? })
        }
        Fault::SpareAdded { group } => world.incident(IncidentKind::SpareAdded { group: world.group(group)? }),
        Fault::Scrub { group, repair } => {
            let group = group.as_deref().map_or_else(|| world.only_group(), |name| world.group(name))?;
            world.incident(IncidentKind::Scrub { group, repair: *repair })
        }
        Fault::BatteryFails => world.incident(IncidentKind::BatteryFails),
        Fault::BatteryReturns => world.incident(IncidentKind::BatteryReturns),
        Fault::LinkErrors { percent, time_out } => {
            let time_out_ns = time_out.map_or(Ok(TIME_OUT_NS), |time| positive("time-out", time))?;
            Ok(Effect::LinkErrors { share: share(Some(*percent))?, time_out_ns })
        }
        Fault::LinkResets { time, every } => {
            let time_ns = positive("time", *time)?;
            let every_ns = every.map_or(Ok(u64::MAX), |every| positive("every", every))?;
            if every_ns <= time_ns {
                return Err(("every", format!("the link would never be up; must be more than {time}")));
            }
            Ok(Effect::LinkResets { time_ns, every_ns })
        }
        Fault::LyingCache => Ok(Effect::LyingCache),
        Fault::PowerCut { tear, atom } => match atom {
            Some(Bytes(bytes)) if !bytes.is_power_of_two() || !(512..=65536).contains(bytes) => Err((
                "atom",
                format!("{bytes} B is not the size of a sector; must be a power of two from 512 B to 64 KiB"),
            )),
            _ => Ok(Effect::PowerCut(PowerCut { tear: *tear, atom_bytes: atom.map(|Bytes(bytes)| bytes) })),
        },
        Fault::PowerOn => Ok(Effect::PowerOn),
        Fault::SetState { to } => Ok(Effect::SetState(*to)),
        Fault::Corrupt { member, ranges, on: Stage::Rest, how, bits, sectors, pattern, percent } => {
            if percent.is_some() {
                return Err(("percent", "stored data are damaged only once; omit this key".to_owned()));
            }
            let member = world.member_or_none(member.as_deref())?;
            let corruptor = damaging::corruptor(*how, *bits, *sectors, pattern.as_ref())?;
            let spans = match member {
                Some(member) => world.places_on(member, ranges)?,
                None => world.filter(ranges, &[])?.spans,
            };
            Ok(Effect::Rot { member, spans, corruptor })
        }
        Fault::Corrupt { member, .. } => {
            let why = "only stored data of a member can be corrupted; use on = \"rest\"";
            world.no_member(member.as_deref(), why)?;
            world.damaging(fault, None)
        }
        Fault::Misdirect { member, .. } => {
            let why = "members do not swap data; omit this key to swap within the array";
            world.no_member(member.as_deref(), why)?;
            world.damaging(fault, None)
        }
        Fault::LoseWrite { member, .. } => world.damaging(fault, world.member_or_none(member.as_deref())?),
        Fault::StaleRead { .. } | Fault::ShornWrite { .. } | Fault::Errno { .. } => world.damaging(fault, None),
    }
}

struct FaultContext<'a> {
    subject: &'a Subject,
    devices: &'a [NamedDevice],
}

impl FaultContext<'_> {
    fn media(
        &self,
        member: Option<&str>,
        ranges: &[Stretch],
        [reads, writes]: [bool; 2],
        percent: Option<f64>,
        (delay, fails, healed_by_write): (Delay, bool, bool),
    ) -> Result<Effect, Complaint> {
        let number = match (self.subject, member) {
            (Subject::Constant { .. }, _) => {
                return Err(("what", "a constant device has no media; use a simulated system".to_owned()));
            }
            (Subject::Device { .. }, None) => None,
            (_, Some(name)) => Some(self.member(name)?),
            (Subject::Array { .. }, None) => {
                return Err(("member", format!("this key is missing; allowed: {}", self.names())));
            }
        };
        let device = &self.devices[number.unwrap_or(0) as usize];
        let spans = spans(ranges, device.capacity_bytes, self.subject.block_bytes())?;
        let whole = Span { start_bytes: 0, length_bytes: device.capacity_bytes };
        let places = if spans.is_empty() { &[whole][..] } else { &spans };
        let share = share(percent)?;
        let media_defect = |&span: &Span| MediaDefect { span, reads, writes, share, delay, fails, healed_by_write };
        let media_defects = places.iter().map(media_defect).collect();
        let filter = number.is_none().then(|| {
            let mut kinds = [false; 4];
            (kinds[Kind::Read as usize], kinds[Kind::Write as usize]) = (reads, writes);
            Filter::new(kinds, spans)
        });
        Ok(Effect::Media { member: number, media_defects, filter })
    }

    /// Returns the spans of ranges in a member's own addresses.
    fn places_on(&self, member: u32, ranges: &[Stretch]) -> Result<Vec<Span>, Complaint> {
        spans(ranges, self.devices[member as usize].capacity_bytes, self.subject.block_bytes())
    }

    fn no_map(&self, map: Option<&std::path::PathBuf>) -> Result<(), Complaint> {
        match map {
            Some(_) => Err(("map", "a map cannot be used here; use ranges".to_owned())),
            None => Ok(()),
        }
    }

    fn damaging(&self, fault: &Fault, member: Option<u32>) -> Result<Effect, Complaint> {
        let filter = |ranges: &[Stretch], kinds: &[RequestKind]| self.filter(ranges, kinds);
        let extent = (self.subject.capacity_bytes(), self.subject.block_bytes());
        Ok(Effect::Damaging(Box::new(Damaging::of(fault, member, extent, &filter)?)))
    }

    fn no_member(&self, member: Option<&str>, why: &str) -> Result<(), Complaint> {
        let Some(name) = member else { return Ok(()) };
        self.member(name)?;
        Err(("member", why.to_owned()))
    }

    /// Returns the member whose contents a fault damages; `None` if the fault names none.
    fn member_or_none(&self, member: Option<&str>) -> Result<Option<u32>, Complaint> {
        let Some(name) = member else { return Ok(None) };
        let number = self.member(name)?;
        match self.subject {
            Subject::Array { holds_contents: false, .. } => {
                let why = "the contents of devices below a layer that moves data are not modelled; omit this key";
                Err(("member", why.to_owned()))
            }
            Subject::Array { .. } | Subject::Constant { .. } | Subject::Device { .. } => Ok(Some(number)),
        }
    }

    fn filter(&self, ranges: &[Stretch], kinds: &[RequestKind]) -> Result<Filter, Complaint> {
        let mut wanted = [kinds.is_empty(); 4];
        for kind in Kind::ALL {
            wanted[kind as usize] |= kinds.contains(&kind.into());
        }
        let spans = spans(ranges, self.subject.capacity_bytes(), self.subject.block_bytes())?;
        Ok(Filter::new(wanted, spans))
    }

    fn names(&self) -> String {
        self.devices.iter().map(|device| device.name.as_str()).collect::<Vec<_>>().join(", ")
    }

    fn member(&self, name: &str) -> Result<u32, Complaint> {
        if !matches!(self.subject, Subject::Array { .. }) {
            return Err(("member", "the system is not an array; omit this key".to_owned()));
        }
        let position = self.devices.iter().position(|device| device.name == name);
        position
            .map(|at| at as u32)
            .ok_or_else(|| ("member", format!("no member is called {name:?}; allowed: {}", self.names())))
    }

    fn only_group(&self) -> Result<u32, Complaint> {
        match self.subject {
            Subject::Array { groups, .. } if groups.len() > 1 => {
                Err(("group", format!("this key is missing; allowed: {}", groups.join(", "))))
            }
            Subject::Array { .. } | Subject::Constant { .. } | Subject::Device { .. } => Ok(0),
        }
    }

    fn group(&self, name: &str) -> Result<u32, Complaint> {
        let Subject::Array { groups, .. } = self.subject else {
            return Err(("group", "the system is not an array; omit this key".to_owned()));
        };
        let position = groups.iter().position(|group| group == name);
        position
            .map(|at| at as u32)
            .ok_or_else(|| ("group", format!("no group is called {name:?}; allowed: {}", groups.join(", "))))
    }

    fn incident(&self, kind: IncidentKind) -> Result<Effect, Complaint> {
        match self.subject {
            Subject::Array { .. } => Ok(Effect::Incident(kind)),
            Subject::Constant { .. } | Subject::Device { .. } => {
                Err(("what", "this fault needs an array, but the system is not an array".to_owned()))
            }
        }
    }
}

fn media_kinds(kinds: &[RequestKind], usual: &[RequestKind]) -> Result<[bool; 2], Complaint> {
    if kinds.iter().any(|kind| matches!(kind, RequestKind::Trim | RequestKind::Flush)) {
        return Err(("kinds", "only reads and writes access the media; allowed: read, write".to_owned()));
    }
    let kinds = if kinds.is_empty() { usual } else { kinds };
    Ok([kinds.contains(&RequestKind::Read), kinds.contains(&RequestKind::Write)])
}

fn spans(ranges: &[Stretch], capacity_bytes: u64, block_bytes: u32) -> Result<Vec<Span>, Complaint> {
    let block = u64::from(block_bytes);
    let span_of = |stretch: &Stretch| match *stretch {
        Stretch { offset: Some(offset), length: Some(length), lba: None, blocks: None } => Some((offset.0, length.0)),
        Stretch { offset: None, length: None, lba: Some(lba), blocks } => {
            Some((lba.checked_mul(block)?, blocks.unwrap_or(1).checked_mul(block)?))
        }
        _ => None,
    };
    let checked = |stretch: &Stretch| {
        let (start_bytes, length_bytes) = span_of(stretch)
            .ok_or_else(|| ("ranges", "each range must have either offset and length, or lba and blocks".to_owned()))?;
        let end = start_bytes.saturating_add(length_bytes);
        if length_bytes == 0 || end > capacity_bytes {
            let text = format!("{start_bytes}+{length_bytes} is outside the device; the maximum is {capacity_bytes} B");
            return Err(("ranges", text));
        }
        Ok(Span { start_bytes, length_bytes })
    };
    ranges.iter().map(checked).collect()
}
