//! Converts the tables of the controller and its cache to the model's [`Controller`].

use headstack_sim::array::description::{Cache, CacheWrites, Controller, Destage, Prefetch};
use headstack_workload::InputError;
use headstack_workload::quantity::{Bytes, DurationNs, Rate};

use super::file::{CacheTable, ControllerTable, PrefetchTable};
use super::links::Links;
use super::resolver::{Parts, Resolver, ns};
use crate::hosts::HostProfile;

/// Default parity rate of a processor: the rate of vector instructions since 2005; medium confidence. Files of
/// controllers from the 1990s state their own rate.
pub const PARITY_RATE: Rate = Rate(5e9);
/// Default number of commands queued in a drive: more than any drive accepts, so that the drive's own limit applies.
pub const DRIVE_TAGS: u32 = 256;
/// Default page size of a cache; general knowledge of arrays, medium confidence.
pub const PAGE: Bytes = Bytes(64 << 10);
/// Default fraction of the cached data that may be dirty; general knowledge, medium confidence.
pub const DIRTY_SHARE: f64 = 0.75;
/// Default dirty fraction above which destaging no longer waits for an idle moment; an estimate.
pub const HIGH_WATER: f64 = 0.8;
/// Default dirty fraction at which destaging ends; an estimate.
pub const LOW_WATER: f64 = 0.5;
/// Default number of concurrent destages per drive: enough for the drive to choose from; an estimate.
pub const DESTAGES_PER_DRIVE: u32 = 4;
/// Default number of sequential requests after which a stream is detected; an estimate.
pub const PREFETCH_AFTER: u32 = 2;
/// Default amount of data read ahead of a stream; an estimate.
pub const PREFETCH_AHEAD: Bytes = Bytes(1 << 20);
/// Default number of streams tracked at once; an estimate.
pub const PREFETCH_STREAMS: u32 = 64;

const USUAL: &str = "C usual for arrays";
const ESTIMATE: &str = "D estimate";

impl Resolver<'_> {
    pub(super) fn controller(
        &mut self,
        table: Option<&ControllerTable>,
        host: Option<HostProfile>,
        links: &Links,
        parts: &Parts,
    ) -> Result<Controller, InputError> {
        let own = table.cloned().unwrap_or_default();
        let mut time = |stated: Option<DurationNs>, key: &str, rule: &str, usual: DurationNs| {
            let time = self.or(stated, key, rule, usual);
            ns(self, key, time)
        };
        let no_time = ("a controller that takes no time", DurationNs(0));
        let of_host =
            |ns: u64| ("set by host.adapter", DurationNs(i64::try_from(ns).expect("host times fit in 63 bits")));
        let shared = host.and_then(HostProfile::shared);
        let request_ns = time(own.request, "controller.request", no_time.0, no_time.1)?;
        let (rule, usual) = shared.map_or(no_time, |shared| of_host(shared.command_ns));
        let command_ns = time(own.command, "controller.command", rule, usual)?;
        let parity_rate = self.or(own.parity_rate, "controller.parity_rate", "C vector instructions", PARITY_RATE);
        if parity_rate.0 <= 0.0 {
            return Err(
                self.error("controller.parity_rate", format!("{parity_rate} is not allowed; the rate must be above 0"))
            );
        }
        let (rule, tags) = match shared {
            None => ("the drives' own limits apply", DRIVE_TAGS),
            Some(shared) => ("set by host.adapter", shared.adapter.tags),
        };
        let drive_tags = self.or(own.drive_tags, "controller.drive_tags", rule, tags);
        Ok(Controller {
            request_ns,
            command_ns,
            parity_ns_per_byte: 1e9 / parity_rate.0,
            processors: own.processors.unwrap_or(1),
            member_tags: drive_tags,
            adapter: shared.map(|shared| shared.adapter),
            cache: own.cache.as_ref().map(|cache| self.cache(cache, links, parts)).transpose()?,
        })
    }

    fn cache(&mut self, table: &CacheTable, links: &Links, parts: &Parts) -> Result<Cache, InputError> {
        let key = |field: &str| format!("controller.cache.{field}");
        let names = table.flash_drives.as_deref().unwrap_or_default();
        let flash_members = parts.find(self, &key("flash_drives"), names)?;
        let page = self.or(table.page, &key("page"), USUAL, PAGE);
        let page_bytes = u32::try_from(page.0)
            .map_err(|_| self.error(&key("page"), format!("{page} is too large; must be below 4GiB")))?;
        let unit = page.0.max(1);
        // An array of flash drives keeps two copies of all data, so only half of each drive holds unique data.
        let smallest = flash_members.iter().map(|&member| parts.device(member).capacity_bytes()).min();
        let (room, rule) = match (flash_members.len() as u64, smallest) {
            (_, None) => (table.memory.0 / unit * unit, "all of it"),
            (1, Some(smallest)) => (smallest / unit * unit, "all of the flash drive"),
            (drives, Some(smallest)) => {
                (smallest / 2 / unit * unit * drives, "half of the flash drives; the rest is copies")
            }
        };
        let stated = self.in_units(table.data, &key("data"), unit, "pages");
        let data = self.or(stated, &key("data"), rule, Bytes(room));
        let share = (data.0 as f64 * DIRTY_SHARE) as u64 / unit * unit;
        let stated = self.in_units(table.dirty, &key("dirty"), unit, "pages");
        let dirty = self.or(stated, &key("dirty"), USUAL, Bytes(share.max(unit.min(data.0))));
        let mirror = table.mirror.as_ref().map(|name| links.find(self, &key("mirror"), std::slice::from_ref(name)));
        let mirror_link = match mirror.transpose()?.as_deref() {
            None => None,
            Some(&[link]) => Some(link),
            Some(several) => {
                return Err(self.error(&key("mirror"), format!("{} links are named; must be one", several.len())));
            }
        };
        let battery = table.battery.unwrap_or(true);
        let writes = if battery { CacheWrites::Back } else { CacheWrites::Through };
        let fill = table.fill.map_or(1, |fill| fill.0);
        if !fill.is_power_of_two() || fill > page.0 {
            let message = format!("{fill} bytes is not allowed; must be a power of two up to the page size of {page}");
            return Err(self.error(&key("fill"), message));
        }
        let destages = DESTAGES_PER_DRIVE * parts.members.len() as u32;
        Ok(Cache {
            memory_bytes: table.memory.0,
            data_bytes: data.0,
            dirty_bytes_max: dirty.0,
            page_bytes,
            writes: self.or(table.writes, &key("writes"), "write-back with a battery, else write-through", writes),
            mirror_link,
            battery,
            keeps_reads: table.keeps_reads.unwrap_or(true),
            fill_bytes: fill as u32,
            prefetch: table.prefetch.as_ref().map(|prefetch| self.prefetch(prefetch, data)),
            policy: table.policy.unwrap_or_default(),
            destage: self.or(table.destage, &key("destage"), USUAL, Destage::StripeAware),
            high_water: self.or(table.high_water, &key("high_water"), ESTIMATE, HIGH_WATER),
            low_water: self.or(table.low_water, &key("low_water"), ESTIMATE, LOW_WATER),
            destages_max: self.or(table.destages, &key("destages"), "D four per drive", destages),
            flash_members,
        })
    }

    fn prefetch(&mut self, table: &PrefetchTable, data: Bytes) -> Prefetch {
        let key = |field: &str| format!("controller.cache.prefetch.{field}");
        let ahead = Bytes(PREFETCH_AHEAD.0.min(data.0));
        Prefetch {
            after_requests: self.or(table.after, &key("after"), ESTIMATE, PREFETCH_AFTER),
            ahead_bytes: self.or(table.ahead, &key("ahead"), ESTIMATE, ahead).0,
            streams_max: self.or(table.streams, &key("streams"), ESTIMATE, PREFETCH_STREAMS),
        }
    }
}
