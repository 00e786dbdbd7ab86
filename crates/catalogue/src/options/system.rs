//! Options of systems and of their drives.

use std::path::Path;

use headstack_sim::array::description::{ArrayDescription, Incident, IncidentKind};
use headstack_sim::device::DeviceDescription;
use headstack_sim::drive::description::{DriveDescription, Policy, ReadAhead, WriteCache};
use headstack_sim::ssd::description::FlashState;
use headstack_sim::{Model, SystemDescription};
use headstack_workload::{InputError, Span};

use super::{Draft, positive_ns};
use crate::{HostProfile, key_error, load_faults_of_run, whole as without_key};

pub(super) const POLICIES: [Policy; 5] = Policy::ALL;
pub(super) const HOSTS: [HostProfile; 9] = HostProfile::ALL;
pub(super) const WRITE_CACHES: [WriteCache; 4] = WriteCache::ALL;
pub(super) const READ_AHEADS: [ReadAhead; 5] = ReadAhead::ALL;

impl Draft {
    fn system(&mut self, option: &str) -> Result<&mut SystemDescription, InputError> {
        let missing = || key_error(option, "only simulated systems have this option".to_owned());
        self.system.as_mut().ok_or_else(missing)
    }

    /// Returns the devices to which device options apply, one of each kind in the system.
    fn devices(&mut self, option: &str) -> Result<Vec<&mut DeviceDescription>, InputError> {
        Ok(self.system(option)?.device_kinds_mut())
    }

    pub(super) fn each_disk(&mut self, option: &str, set: impl Fn(&mut DriveDescription)) -> Result<(), InputError> {
        let mut disks = 0;
        for device in self.devices(option)? {
            match device {
                DeviceDescription::Disk(disk) => {
                    set(disk);
                    disks += 1;
                }
                DeviceDescription::Ssd(_) | DeviceDescription::Volume(_) => {}
            }
        }
        if disks == 0 {
            return Err(key_error(option, format!("{} has no disk drive", self.system_name)));
        }
        Ok(())
    }

    /// Sets the write caches of all drives.
    pub(super) fn set_write_cache(&mut self, kind: WriteCache) -> Result<(), InputError> {
        let (option, mut drives) = ("write_cache", 0);
        for device in self.devices(option)? {
            match device {
                DeviceDescription::Disk(disk) => disk.buffer.write_cache = kind,
                DeviceDescription::Ssd(ssd) => {
                    ssd.buffer.set_write_cache(kind).map_err(|message| key_error(option, message.to_owned()))?;
                }
                DeviceDescription::Volume(_) => continue,
            }
            drives += 1;
        }
        if drives == 0 {
            return Err(key_error(option, format!("{} has no drive", self.system_name)));
        }
        Ok(())
    }

    /// Sets the host of a drive. An array states its host in its file, together with links and the controller's times.
    pub(super) fn set_host(&mut self, host: HostProfile) -> Result<(), InputError> {
        let name = self.system_name.clone();
        match self.system("host")? {
            SystemDescription::Drive(DeviceDescription::Volume(_)) => {
                Err(key_error("host", format!("{name} is a volume; its latency already includes the path to the host")))
            }
            SystemDescription::Drive(device) => {
                host.carry(device);
                Ok(())
            }
            SystemDescription::Array(_) => {
                Err(key_error("host", format!("{name} is an array; set host.adapter in its file")))
            }
            SystemDescription::Stack(_) => {
                Err(key_error("host", format!("{name} is a stack; set the host of its drive or array in their files")))
            }
        }
    }

    pub(super) fn set_state(&mut self, state: &FlashState) -> Result<(), InputError> {
        let option = "state";
        let mut ssds = 0;
        for device in self.devices(option)? {
            if let DeviceDescription::Ssd(ssd) = device {
                ssd.state = state.clone();
                ssds += 1;
            }
        }
        match ssds {
            0 => Err(key_error(option, format!("{} has no solid-state drive", self.system_name))),
            _ => Ok(()),
        }
    }

    /// Returns an error if the run already uses a part of the system.
    fn is_whole(&self, option: &str) -> Result<(), InputError> {
        match self.span {
            None => Ok(()),
            Some(_) => Err(key_error(option, format!("{} already has a range", self.system_name))),
        }
    }

    pub(super) fn set_range(&mut self, text: &str) -> Result<(), InputError> {
        self.is_whole("range")?;
        let (capacity_bytes, sector_bytes) = match (&self.system, &self.target) {
            (Some(system), _) => (system.capacity_bytes(), system.sector_bytes()),
            (None, Some(target)) => (target.capacity_bytes, target.block_bytes),
            (None, None) => return Err(key_error("range", "a range needs a target".to_owned())),
        };
        let span = Span::parse(text, capacity_bytes, sector_bytes).map_err(|error| without_key("", &error))?;
        self.use_part(span, text);
        Ok(())
    }

    fn use_part(&mut self, span: Span, name: &str) {
        self.span = Some((span.start_bytes, span.length_bytes));
        self.system_name = format!("{}@{name}", self.system_name);
    }

    fn array(&mut self, option: &str) -> Result<&mut ArrayDescription, InputError> {
        let name = self.system_name.clone();
        match self.system(option)? {
            SystemDescription::Array(array) => Ok(array),
            SystemDescription::Drive(_) => {
                Err(key_error(option, format!("{name} is a single drive; only arrays have this option")))
            }
            SystemDescription::Stack(_) => {
                Err(key_error(option, format!("{name} is a stack; only arrays have this option")))
            }
        }
    }

    /// Returns the array, or the one below the layers of a stack.
    fn base_array(&mut self, option: &str) -> Result<&mut ArrayDescription, InputError> {
        let name = self.system_name.clone();
        let system = self.system(option)?;
        let verb = if matches!(system, SystemDescription::Stack(_)) { "is over" } else { "is" };
        let message = format!("{name} {verb} a single drive; only arrays have this option");
        system.base_array_mut().ok_or_else(|| key_error(option, message))
    }

    pub(super) fn set_lun(&mut self, text: &str) -> Result<(), InputError> {
        let spans = self.array("lun")?.spans();
        self.is_whole("lun")?;
        let Some(&(_, span)) = spans.iter().find(|(lun, _)| lun == text) else {
            let names: Vec<_> = spans.iter().map(|(lun, _)| lun.as_str()).collect();
            return Err(key_error("lun", format!("'{text}' is unknown; allowed: {}", names.join(", "))));
        };
        self.use_part(span, text);
        Ok(())
    }

    pub(super) fn set_failures(&mut self, text: &str) -> Result<(), InputError> {
        let system_name = self.system_name.clone();
        let ArrayDescription { members, incidents, .. } = self.base_array("fail")?;
        let refused = |message: String| Err(key_error("fail", message));
        for failure in text.split('+') {
            let first = members.first().map_or("d0", |member| &member.name);
            let Some((name, at)) = failure.split_once('@') else {
                return refused(format!("'{failure}' is not a failure; use DRIVE@TIME, for example {first}@10s"));
            };
            let Some(member) = members.iter().position(|member| member.name == name) else {
                let names: Vec<&str> = members.iter().map(|member| member.name.as_str()).collect();
                return refused(format!("there is no drive '{name}' in {system_name}; allowed: {}", shortened(&names)));
            };
            let at_ns = positive_ns("fail", at, "0s or more")?;
            let what = IncidentKind::MemberFails { member: member as u32 };
            if incidents.iter().any(|incident| incident.what == what) {
                return refused(format!("{name} fails more than once; each drive may fail once"));
            }
            incidents.push(Incident { at_ns, what });
        }
        incidents.sort_by_key(|incident| incident.at_ns);
        Ok(())
    }

    pub(super) fn set_faults(&mut self, text: &str) -> Result<(), InputError> {
        if text != "none" {
            let model = Model::System(self.system("faults")?.clone());
            self.faults = Some(load_faults_of_run(Path::new(text), &model)?);
        }
        Ok(())
    }
}

/// Shortens a list of names for display: `d0, d1` or `d0..d23`.
fn shortened(names: &[&str]) -> String {
    match names {
        [first, _, _, .., last] => format!("{first}..{last}"),
        few => few.join(", "),
    }
}
