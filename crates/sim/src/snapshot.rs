//! [`Snapshot`]: the counters of a system at one moment. The counters of a run are the difference of two snapshots.

use headstack_result::{Component, Counter, Energy};

use crate::description::drive::DriveDescription;
use crate::description::ssd::SsdDescription;
use crate::description::volume::VolumeDescription;
use crate::drive::Counters;
use crate::link::Link;
use crate::power::{Meter, energy};
use crate::ssd::SsdCounters;
use crate::volume::VolumeCounters;

/// Busy times and counts, in a fixed order.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    components: Vec<Component>,
    counters: Vec<(&'static str, u64)>,
    /// Power meter of each device; `None` if its power is unknown.
    meters: Vec<Option<Meter>>,
}

impl Snapshot {
    /// Adds a component with its busy and waiting times.
    pub fn component(&mut self, name: String, servers: u32, busy_ns: u64, waited_ns: u64) {
        self.components.push(Component { name, servers, busy_ns, waited_ns });
    }

    /// Adds `value` to the counter `name`.
    pub fn count(&mut self, name: &'static str, value: u64) {
        match self.counters.iter_mut().find(|counter| counter.0 == name) {
            Some(counter) => counter.1 += value,
            None => self.counters.push((name, value)),
        }
    }

    /// Returns the counters by name.
    pub fn counters(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.counters.iter().copied()
    }

    /// Adds the counters of a part of the system, whose components get `name` as a prefix.
    pub fn absorb(&mut self, name: &str, part: Snapshot) {
        self.components.extend(part.components.into_iter().map(|component| match name {
            "" => component,
            _ => Component { name: format!("{name} {}", component.name), ..component },
        }));
        part.counters.into_iter().for_each(|(name, value)| self.count(name, value));
        self.meters.extend(part.meters);
    }

    /// Adds the counters of one of several equal parts of the system. Their components share a name, and are summed.
    pub fn absorb_equal(&mut self, name: &str, part: Snapshot) {
        for component in part.components {
            let name = [name, &component.name].join(" ");
            match self.components.iter_mut().find(|known| known.name == name) {
                Some(sum) => {
                    sum.servers += component.servers;
                    sum.busy_ns += component.busy_ns;
                    sum.waited_ns += component.waited_ns;
                }
                None => self.components.push(Component { name, ..component }),
            }
        }
        part.counters.into_iter().for_each(|(name, value)| self.count(name, value));
        self.meters.extend(part.meters);
    }

    /// Adds the counters of a link.
    pub fn add_link(&mut self, link: &Link) {
        let description = link.description();
        let servers = if description.full_duplex { 2 } else { 1 };
        self.component(description.name.clone(), servers, link.busy_ns, link.waited_ns);
    }

    /// Adds the counters of a disk; `name` is empty for a single device.
    pub fn add_disk(&mut self, name: &str, disk: &DriveDescription, counters: &Counters) {
        let own = |part: &str| if name.is_empty() { part.to_owned() } else { format!("{name} {part}") };
        self.component(own("mechanism"), disk.actuators, counters.mechanism_ns, 0);
        self.component(own("interface"), 1, counters.interface_ns, 0);
        self.component(own("controller"), 1, counters.overhead_ns, 0);
        for (name, value) in [
            ("read_hits", counters.read_hits),
            ("read_partial_hits", counters.read_partial_hits),
            ("read_misses", counters.read_misses),
            ("cached_writes", counters.cached_writes),
            ("coalesced_writes", counters.coalesced_writes),
            ("destages", counters.destages),
            ("read_modify_writes", counters.read_modify_writes),
            ("retries", counters.retries),
            ("seek_ns", counters.seek_ns),
            ("rotation_ns", counters.rotation_ns),
            ("transfer_ns", counters.transfer_ns),
        ] {
            self.count(name, value);
        }
        if disk.flash_cache.is_some() {
            self.component(own("flash"), 1, counters.flash_ns, 0);
            self.count("flash_hits", counters.flash_hits);
            self.count("flash_fills", counters.flash_fills);
        }
        if disk.media_cache.is_some() {
            for (name, value) in [
                ("media_cache_writes", counters.media_cache_writes),
                ("media_cache_appends", counters.media_cache_appends),
                ("media_cache_hits", counters.media_cache_hits),
                ("media_cache_destages", counters.media_cache_destages),
                ("media_cache_cleanings", counters.media_cache_cleanings),
                ("direct_writes", counters.direct_writes),
            ] {
                self.count(name, value);
            }
        }
    }

    /// Adds the counters of an SSD; `name` is empty for a single device.
    pub fn add_ssd(&mut self, name: &str, ssd: &SsdDescription, counters: &SsdCounters) {
        let own = |part: &str| if name.is_empty() { part.to_owned() } else { format!("{name} {part}") };
        self.component(own("dies"), ssd.dies(), counters.dies_busy_ns, 0);
        self.component(own("channels"), ssd.flash.channels, counters.channels_busy_ns, 0);
        let directions = if ssd.interface.full_duplex { 2 } else { 1 };
        self.component(own("interface"), directions, counters.interface_ns, 0);
        for (name, value) in [
            ("flash_page_reads", counters.page_reads),
            ("flash_page_programs", counters.page_programs),
            ("flash_moved_units", counters.moved_units),
            ("flash_erases", counters.erases),
            ("flash_read_waits", counters.read_waits),
            ("flash_suspensions", counters.suspensions),
        ] {
            self.count(name, value);
        }
    }

    /// Adds the counters of a volume; `name` is empty for a single device.
    pub fn add_volume(&mut self, name: &str, volume: &VolumeDescription, counters: &VolumeCounters) {
        let own = if name.is_empty() { "volume".to_owned() } else { format!("{name} volume") };
        self.component(own, volume.queue_depth, counters.served_ns, counters.limited_ns);
        self.count("accounted_requests", counters.accounted_requests);
        self.count("merged_requests", counters.merged_requests);
    }

    /// Adds the power meter of a device.
    pub(crate) fn add_meter(&mut self, meter: Option<Meter>) {
        self.meters.push(meter);
    }

    /// Returns the energy used by all devices from `start_ns`, the time of `before`, to `end_ns`, the time of this
    /// snapshot. Returns `None` if it is unknown for any device.
    pub fn energy_since(&self, before: &Snapshot, start_ns: u64, end_ns: u64) -> Option<Energy> {
        energy(&before.meters, &self.meters, start_ns, end_ns)
    }

    /// Returns the differences between this snapshot and the earlier snapshot `before`.
    pub fn since(self, before: &Snapshot) -> (Vec<Component>, Vec<Counter>) {
        let earlier =
            |name: &str| before.counters.iter().find(|counter| counter.0 == name).map_or(0, |counter| counter.1);
        let counters = self.counters.iter();
        let counters =
            counters.map(|&(name, value)| Counter { name: name.to_owned(), value: value - earlier(name) }).collect();
        let mut components = self.components;
        for (component, before) in components.iter_mut().zip(&before.components) {
            // A transfer is counted when it is reserved, so the end of a run may cut it short. The difference must not
            // become negative.
            component.busy_ns = component.busy_ns.saturating_sub(before.busy_ns);
            component.waited_ns -= before.waited_ns;
        }
        (components, counters)
    }
}
