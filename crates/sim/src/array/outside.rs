//! What the world outside does to an array, and sees of it.

use headstack_workload::Span;

use super::Array;
use super::description::IncidentKind;
use crate::SimError;
use crate::device::Device;
use crate::faults::{DeviceHealth, Failed, Gauges};

impl Array {
    pub(crate) fn members(&self) -> usize {
        self.members.len()
    }
    pub(crate) fn member_mut(&mut self, member: u32) -> &mut Device {
        &mut self.members[member as usize]
    }
    pub(crate) fn set_write_cache(&mut self, member: u32, on: bool) -> Result<(), SimError> {
        let kind = self.description.members[member as usize].device;
        self.members[member as usize].set_write_cache(on, &self.description.devices[kind as usize])
    }
    pub(crate) fn take_failed(&mut self, _into: &mut Vec<Failed>) {}
    pub(crate) fn strike(&mut self, _now_ns: u64, _what: IncidentKind) -> Result<(), SimError> {
        Ok(())
    }
    pub(crate) fn volatile(&self, _span: Span, _into: &mut Vec<Span>) {}
    pub(crate) fn may_lose_data(&self) -> bool {
        true
    }
    pub(crate) fn tear_bound(&self, at_bytes: u64) -> u64 {
        at_bytes + 1
    }
    pub(crate) fn power_cycle(&mut self, _now_ns: u64) {}
    pub(crate) fn gauges(&self, _now_ns: u64) -> Gauges {
        Gauges { outstanding: 0, devices: vec![], cache: None, groups: vec![] }
    }
    pub(crate) fn device_health(&self, _into: &mut Vec<DeviceHealth>) {}
}
