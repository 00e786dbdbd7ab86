//! Derives missing values of a file so that the SSD meets the figures in `[stated]`.
//!
//! | stated | solved for, if missing |
//! | --- | --- |
//! | `read_latency` | `controller.command`; `flash.read` if nothing is left for it |
//! | `random_read` | `controller.command_interval`; `flash.read` or `slc_cache.read` if the dies are too slow |
//! | `sequential_read` | `controller.read_rate`; `flash.channel_rate` if the channels are too slow |
//! | `write_latency` | `controller.write_command` |
//! | `sequential_write` | `controller.write_rate`; `flash.program`, or `slc_cache.program` if there is a cache |
//! | `random_write`, steady | `flash.over_provisioning`, then `flash.program`, then `controller.write_interval` |
//! | `random_write`, burst | `controller.write_interval` |
//! | `slc_cache`, `after_slc` | `slc_cache.dynamic`, `flash.program` |

use headstack_sim::ssd::description::{Capacity, Collection, Controller, Flash, Interface, Medium, SlcCache, Timing};
use headstack_workload::InputError;
use headstack_workload::quantity::{Bytes, DurationNs, Rate};

use super::expected::{Estimate, has_estimated_writes, is_product, random_reads, sequential_write};
use super::file::{SsdInterfaceKind, StatedWrites, WriteState};
use super::generation::{GenerationFigures, SLC_MODE_PROGRAM, SLC_MODE_READ, usual_raw};
use super::resolve::Resolver;
use super::steady::{RandomWrites, Steady, solve_rising};
use crate::constants::{
    SSD_COMMAND_LEAST, SSD_COMMAND_NVME, SSD_COMMAND_SERIAL, SSD_CONTROLLER_SHARE, SSD_MOVE_COST, SSD_NVME_DEPTH,
    SSD_OVER_PROVISIONING_MIN, SSD_SAS_IOPS, SSD_SERIAL_ATA_IOPS, SSD_SERIAL_FLASH_BYTES_PER_S, SSD_SLC_IDLE,
    SSD_WRITE_COMMAND_NVME, SSD_WRITE_COMMAND_SERIAL,
};
use crate::resolve::Derived;

/// Efficiency of channels and dies, which wait for each other.
const PIPELINE: f64 = 0.92;
/// Minimum program time that may be fitted, as a fraction of the generation's.
const PROGRAM_FASTEST: f64 = 0.3;
const PROGRAM_SLOWEST: f64 = 8.0;
/// Minimum read time and one-bit program time that may be fitted to a stated rate; estimates.
const SENSE_LEAST: DurationNs = DurationNs(10_000);
const SLC_PROGRAM_LEAST: DurationNs = DurationNs(20_000);
/// Relative difference from a stated figure above which the stated figures contradict each other.
const CONTRADICTION: f64 = 0.1;

fn dies(flash: &Flash) -> f64 {
    f64::from(flash.channels) * f64::from(flash.dies_per_channel)
}

fn row_bytes(flash: &Flash) -> f64 {
    f64::from(flash.planes_per_die) * f64::from(flash.page_bytes)
}

impl Resolver<'_> {
    /// Returns an error for impossible stated figures.
    pub(super) fn check_stated(&self) -> Result<(), InputError> {
        let stated = &self.file.stated;
        let rates = [
            ("stated.sequential_read", stated.sequential_read),
            ("stated.sequential_write", stated.sequential_write),
            ("stated.after_slc", stated.after_slc),
        ];
        for (key, rate) in rates.iter().filter_map(|(key, rate)| rate.map(|rate| (key, rate))) {
            if rate.0 <= 0.0 {
                return self.fail(key, format!("{rate} is not allowed; the rate must be above 0"));
            }
        }
        let reads = stated.random_read.map(|read| ("stated.random_read", read.iops, read.bytes()));
        let writes = stated.random_write.map(|write| ("stated.random_write", write.iops, write.bytes()));
        for (key, iops, bytes) in [reads, writes].into_iter().flatten() {
            if !(iops > 0.0 && iops <= 1e9 && (512..=1 << 30).contains(&bytes)) {
                return self.fail(key, "must have iops above 0 and a size of 512 B to 1 GiB");
            }
        }
        if let (Some(read), Some(rate)) = (stated.random_read, stated.sequential_read)
            && read.iops * read.bytes() as f64 > (1.0 + CONTRADICTION) * rate.0
        {
            return self.fail(
                "stated.random_read",
                format!("must not exceed the throughput of stated.sequential_read, {rate}"),
            );
        }
        if let (Some(after), Some(write)) = (stated.after_slc, stated.sequential_write)
            && after.0 > write.0
        {
            return self.fail("stated.after_slc", format!("{after} must not exceed stated.sequential_write"));
        }
        Ok(())
    }

    /// Records that the drive cannot meet a stated figure.
    fn contradicts(&mut self, key: &str, reached: &impl serde::Serialize, why: &str) {
        self.derived.push(Derived::new(key, reached, &format!("contradicts the other stated figures: {why}")));
    }

    fn has_slc_cache(&self) -> bool {
        let table = &self.file.slc_cache;
        table.static_size.is_some() || table.dynamic_size.is_some() || self.file.stated.slc_cache.is_some()
    }

    /// Returns the random writes that the file states for this drive state.
    fn stated_writes(&self, state: WriteState) -> Option<StatedWrites> {
        let usual = if self.has_slc_cache() { WriteState::Burst } else { WriteState::Steady };
        self.file.stated.random_write.filter(|writes| writes.state.unwrap_or(usual) == state)
    }

    pub(super) fn slc_cache(
        &mut self,
        figures: &GenerationFigures,
        flash: &Flash,
        channel_ns_per_byte: f64,
    ) -> Result<Option<SlcCache>, InputError> {
        if !self.has_slc_cache() {
            return Ok(None);
        }
        if !figures.medium.is_flash() {
            let key = if self.file.stated.slc_cache.is_some() { "stated.slc_cache" } else { "slc_cache" };
            return self.fail(key, "3D XPoint has no SLC cache; remove this key");
        }
        let (table, stated) = (&self.file.slc_cache, &self.file.stated);
        let static_size = self.or(table.static_size, "slc_cache.static", "not stated", Bytes(0));
        let rest = Bytes(stated.slc_cache.map_or(0, |all| all.0.saturating_sub(static_size.0)));
        let rule = "I stated.slc_cache minus the static part";
        let dynamic_size = self.or(table.dynamic_size, "slc_cache.dynamic", rule, rest);
        let bits = self.or(table.bits_per_cell, "slc_cache.bits_per_cell", "same as in its cells", figures.bits);
        let usual = "C usual for flash in one-bit (SLC) mode";
        let (read, rule) = self.usual_sense(flash, channel_ns_per_byte, (SLC_MODE_READ, usual));
        let read_ns = self.time(table.read, "slc_cache.read", rule, read)?;
        let mut program = (SLC_MODE_PROGRAM, usual.to_owned());
        let estimated = || has_estimated_writes(self.file).then(|| sequential_write(self.file, self.rules));
        let stated = stated
            .sequential_write
            .map(|rate| Estimate { rate: rate.0, rule: "I needed to reach stated.sequential_write".to_owned() });
        if let Some(Estimate { rate, rule }) = stated.or_else(estimated) {
            let load_ns = row_bytes(flash) * channel_ns_per_byte;
            let needed = 0.97 * dies(flash) * row_bytes(flash) / rate * 1e9 - load_ns;
            if needed < program.0.0 as f64 {
                program = (DurationNs((needed as i64).max(SLC_PROGRAM_LEAST.0)), rule);
            }
        }
        let program_ns = self.time(table.program, "slc_cache.program", &program.1, program.0)?;
        let folds = table.folds_when_idle.or(table.idle.map(|_| true));
        let idle_ns = if self.or(folds, "slc_cache.folds_when_idle", "C usual", true) {
            Some(self.time(table.idle, "slc_cache.idle", "D usual", SSD_SLC_IDLE)?)
        } else {
            None
        };
        Ok(Some(SlcCache {
            static_bytes: static_size.0,
            dynamic_bytes: dynamic_size.0,
            bits_per_cell: bits,
            read_ns,
            program_ns,
            idle_ns,
        }))
    }

    /// Returns the usual read time (tR), or the one that the stated random reads require of every die.
    pub(super) fn usual_sense(
        &self,
        flash: &Flash,
        channel_ns_per_byte: f64,
        usual: (DurationNs, &'static str),
    ) -> (DurationNs, &'static str) {
        let Some(read) = self.file.stated.random_read else { return self.expected_sense(flash, usual) };
        let send_ns = read.bytes() as f64 * channel_ns_per_byte;
        // Requests collide on dies: with a queue depth equal to the number of dies, half of the dies are idle.
        let outstanding = f64::from(read.depth.unwrap_or(SSD_NVME_DEPTH));
        let busy = outstanding / (outstanding + dies(flash) - 1.0);
        let needed = 0.95 * busy * dies(flash) / read.iops * 1e9 - send_ns;
        if needed >= usual.0.0 as f64 {
            return usual;
        }
        (DurationNs((needed as i64).max(SENSE_LEAST.0)), "I needed to reach stated.random_read")
    }

    /// Returns the read time if random reads are not stated. The sheets of consumer drives state reads of data that was
    /// just written, in cells in one-bit mode.
    fn expected_sense(&self, flash: &Flash, usual: (DurationNs, &'static str)) -> (DurationNs, &'static str) {
        let nvme = self.file.interface.kind == Some(SsdInterfaceKind::Nvme);
        if !nvme || !is_product(self.file) || self.file.buffer.power_loss_protected == Some(true) {
            return usual;
        }
        let needed = DurationNs((dies(flash) / random_reads(self.file, self.rules).rate * 1e9) as i64);
        if needed >= usual.0 {
            return usual;
        }
        (needed.max(SLC_MODE_READ), "C reads of data in one-bit mode, as sheets of consumer drives state them")
    }

    /// Returns the generation's channel rate, or the rate that the stated sequential reads and writes require.
    pub(super) fn usual_channel_rate(&self, figures: &GenerationFigures, flash: &Flash) -> (Rate, &'static str) {
        let stated = &self.file.stated;
        let most = [stated.sequential_read, stated.sequential_write].into_iter().flatten();
        let needed = most.map(|rate| rate.0).fold(0.0, f64::max) / (PIPELINE * f64::from(flash.channels.max(1)));
        if needed > figures.channel_rate.0 {
            (Rate(needed.round()), "I needed to reach the stated sequential rates")
        } else {
            (figures.channel_rate, figures.source)
        }
    }

    /// Returns the generation's program time, or the one that the stated sequential writes require.
    pub(super) fn usual_program(
        &self,
        figures: &GenerationFigures,
        flash: &Flash,
        slc: Option<&SlcCache>,
        channel_ns_per_byte: f64,
    ) -> (DurationNs, String) {
        let mut usual = (figures.program, figures.source.to_owned());
        if !figures.medium.is_flash() {
            return usual;
        }
        let serial = self.file.interface.kind == Some(SsdInterfaceKind::Sata);
        let row_ns = |rate: f64| dies(flash) * row_bytes(flash) / rate * 1e9;
        let load_ns = row_bytes(flash) * channel_ns_per_byte;
        let most = if serial { SSD_SERIAL_FLASH_BYTES_PER_S } else { f64::INFINITY };
        let slowest_ns = (row_ns(most) - load_ns) as i64;
        if slowest_ns > usual.0.0 {
            usual = (DurationNs(slowest_ns), "C limit of controller and power on busy dies".to_owned());
        }
        let (rate, key, copies) = match (slc, self.file.stated.after_slc, self.file.stated.sequential_write) {
            (Some(slc), Some(rate), _) => {
                let blocks_as_slc = (slc.dynamic_bytes + slc.static_bytes) as f64 * f64::from(slc.bits_per_cell);
                let raw = usual_raw(self.file.capacity.size.map_or(0, |size| size.0)) as f64;
                // A cache that uses nearly all cells is folded while the host writes: the data in its blocks is copied.
                let folds = blocks_as_slc > 0.8 * raw;
                let copies = if folds { 1.0 / f64::from(slc.bits_per_cell - 1) } else { 0.0 };
                (rate, "stated.after_slc", copies)
            }
            (None, _, Some(rate)) => (rate, "stated.sequential_write", 0.0),
            (None, _, None) if has_estimated_writes(self.file) => {
                let Estimate { rate, rule } = sequential_write(self.file, self.rules);
                let load_ns = load_ns.min(0.5 * row_ns(rate));
                return (DurationNs((0.97 * row_ns(rate) - load_ns) as i64), rule);
            }
            (Some(_), None, _) | (None, _, None) => return usual,
        };
        let erase_ns = figures.erase.0 as f64 / f64::from(flash.pages_per_block.max(1));
        let program_ns = (row_ns(rate.0) / (1.0 + copies)) * 0.97 - load_ns * (1.0 + copies) - erase_ns;
        let usual_ns = figures.program.0 as f64;
        // SATA is slower than the flash behind it, so its rate shows only that the flash is fast enough.
        if slc.is_none() && serial && rate.0 > 400e6 && program_ns > usual.0.0 as f64 {
            return usual;
        }
        let bounded = program_ns.clamp(PROGRAM_FASTEST * usual_ns, PROGRAM_SLOWEST * usual_ns);
        (DurationNs(bounded as i64), format!("I remainder of {key}"))
    }

    /// Fits the over-provisioning, then the program time, to the stated steady random writes.
    pub(super) fn solve_steady_writes(
        &mut self,
        medium: Medium,
        capacity: &Capacity,
        flash: &Flash,
        timing: &mut Timing,
        collection: Collection,
    ) -> Result<Steady, InputError> {
        let table = &self.file.flash;
        let stated_keys = [
            ("flash.raw", table.raw.is_some()),
            ("flash.over_provisioning", table.over_provisioning.is_some()),
            ("flash.blocks_per_plane", table.blocks_per_plane.is_some()),
        ];
        let stated_keys: Vec<&str> =
            stated_keys.iter().filter(|(_, stated_keys)| *stated_keys).map(|(key, _)| *key).collect();
        if let [first, second, ..] = stated_keys[..] {
            return self.fail(second, format!("not allowed with {first}"));
        }
        if let Some(share) = table.over_provisioning
            && !(share > 0.0 && share <= 100.0)
        {
            let message = format!("{share} is not allowed; must be above 0 and up to 100");
            return self.fail("flash.over_provisioning", message);
        }
        let logical = capacity.logical_bytes as f64;
        let block = row_bytes(flash) * f64::from(flash.pages_per_block) * dies(flash);
        let stated_share = table
            .over_provisioning
            .or(table.raw.map(|raw| raw.0 as f64 / logical - 1.0))
            .or(table.blocks_per_plane.map(|blocks| f64::from(blocks) * block / logical - 1.0));
        // The simulated map has 32-bit entries, some of them for the write buffer.
        let addressable = 0.999 * f64::from(u32::MAX) * f64::from(capacity.mapping_unit_bytes);
        let most = (usual_raw(capacity.logical_bytes) as f64).min(addressable) / logical - 1.0;
        let least = SSD_OVER_PROVISIONING_MIN.min(most);
        let (usual, rule) = (most.max(least), "B dies hold a power of two of GiB");
        let writes = self.stated_writes(WriteState::Steady);
        // Sheets rate drives with large mapping units with writes of whole units.
        let usual_bytes = f64::from(capacity.mapping_unit_bytes.max(4096));
        let size_bytes = writes.map_or(usual_bytes, |writes| writes.bytes() as f64);
        let model = RandomWrites { capacity: *capacity, flash: *flash, timing: *timing, collection, size_bytes };
        if !medium.is_flash() {
            let over_provisioning =
                self.or(stated_share, "flash.over_provisioning", "B dies hold a power of two of GiB", usual);
            let per_second = model.per_second(1.0, timing.program_ns as f64);
            return Ok(Steady { over_provisioning, per_second, expected_per_second: None });
        }
        let mut share = (stated_share.unwrap_or(usual), rule);
        let expected_per_second = self.expected_steady_writes(&model, share.0);
        let solve = |iops| solve_rising(least, most, iops, |share| model.at(share));
        match (writes, expected_per_second) {
            (Some(writes), _) if stated_share.is_none() => {
                share = (solve(writes.iops), "I remainder of stated.random_write");
            }
            (None, Some(iops)) if stated_share.is_none() => {
                share = (solve(iops), "B dies hold a power of two of GiB; C less what moves of collection cost");
            }
            _ => {}
        }
        if stated_share.is_none() {
            self.or(None, "flash.over_provisioning", share.1, (share.0 * 1e4).round() / 1e4);
        }
        let over_provisioning = share.0;
        if let Some(writes) = writes.filter(|_| table.program.is_none()) {
            self.solve_program(writes, &model, over_provisioning, timing);
        }
        let per_second = RandomWrites { timing: *timing, ..model }.at(over_provisioning);
        Ok(Steady { over_provisioning, per_second, expected_per_second })
    }

    /// Estimates the steady random writes of a drive with capacitors from its program rate and its spare flash; `None`
    /// if the file states them or the program time.
    fn expected_steady_writes(&self, model: &RandomWrites, share: f64) -> Option<f64> {
        let protected = self.file.buffer.power_loss_protected == Some(true);
        let stated = self.file.stated.random_write.is_some() || self.file.flash.program.is_some();
        if stated || !protected || !is_product(self.file) {
            return None;
        }
        let amplification = model.amplification(share);
        let cost = amplification + SSD_MOVE_COST * (amplification - 1.0);
        Some(model.per_second(1.0, model.timing.program_ns as f64) / cost)
    }

    /// Fits the program time as far as possible if over-provisioning does not explain the stated steady writes.
    fn solve_program(&mut self, writes: StatedWrites, model: &RandomWrites, share: f64, timing: &mut Timing) {
        let found = model.at(share);
        if (found / writes.iops - 1.0).abs() <= 0.03 {
            return;
        }
        let amplification = model.amplification(share);
        let now_ns = timing.program_ns as f64;
        let (low, high) = (PROGRAM_FASTEST * now_ns, PROGRAM_SLOWEST * now_ns);
        // Programs may be slower, but not slower than sequential writes allow.
        let sequential = self.file.stated.sequential_write.filter(|_| !self.has_slc_cache());
        let row_ns = |rate: Rate| model.dies() * model.row_bytes() / rate.0 * 1e9;
        let high = sequential.map_or(high, |rate| high.min(0.95 * row_ns(rate)).max(now_ns));
        let program_ns = -solve_rising(-high, -low, writes.iops, |ns| model.per_second(amplification, -ns));
        timing.program_ns = program_ns as u64;
        self.derived.retain(|derived| derived.key != "flash.program");
        let rule = "I remainder of stated.random_write";
        self.or(None, "flash.program", rule, DurationNs(program_ns as i64));
    }

    pub(super) fn controller(
        &mut self,
        interface: &Interface,
        flash: &Flash,
        timing: &mut Timing,
        slc: Option<&SlcCache>,
        steady: &Steady,
    ) -> Result<Controller, InputError> {
        let table = &self.file.controller;
        let nvme = self.file.interface.kind == Some(SsdInterfaceKind::Nvme);
        let (read_ns_per_byte, read_rule) = self.controller_pace(true, interface.read_ns_per_byte)?;
        let (write_ns_per_byte, write_rule) = self.controller_pace(false, interface.write_ns_per_byte)?;
        let read_ns_per_byte = self.or(
            table.read_ns_per_byte.or(read_rule.0),
            "controller.read_ns_per_byte",
            read_rule.1,
            read_ns_per_byte,
        );
        let write_ns_per_byte = self.or(
            table.write_ns_per_byte.or(write_rule.0),
            "controller.write_ns_per_byte",
            write_rule.1,
            write_ns_per_byte,
        );
        let command_ns = self.solve_command(interface, timing, slc, read_ns_per_byte, nvme)?;
        let (usual, rule) = if nvme {
            (SSD_WRITE_COMMAND_NVME, "C typical remainder of data sheets besides the link")
        } else {
            (SSD_WRITE_COMMAND_SERIAL, "C typical remainder of data sheets besides the link")
        };
        let link_ns = 4096.0 * interface.write_ns_per_byte.max(write_ns_per_byte);
        let (usual, rule) = match self.file.stated.write_latency {
            Some(stated) => {
                let left_ns = (stated.0 as f64 - link_ns).max(1000.0);
                (DurationNs(left_ns as i64), "I remainder of stated.write_latency")
            }
            None => (usual, rule),
        };
        let write_command_ns = self.time(table.write_command, "controller.write_command", rule, usual)?;
        let (interval, rule) = self.usual_interval(nvme);
        let command_interval_ns = self.time(table.command_interval, "controller.command_interval", &rule, interval)?;
        self.check_reads(flash, timing, slc, command_interval_ns);
        let (interval, rule) = match (self.stated_writes(WriteState::Burst), self.stated_writes(WriteState::Steady)) {
            (Some(writes), _) => (1e9 / writes.iops, "I inverse of stated.random_write"),
            (None, Some(writes)) if steady.per_second > 1.05 * writes.iops => {
                (1e9 / writes.iops, "I inverse of stated.random_write, since flash is not the limit")
            }
            (None, None) if steady.expected_per_second.is_some_and(|iops| steady.per_second > 1.05 * iops) => (
                1e9 / steady.expected_per_second.unwrap_or(1e9),
                "C limit of steady random writes by moves of collection",
            ),
            (None, _) => (command_interval_ns as f64, "same as command_interval"),
        };
        if let Some(writes) = self.stated_writes(WriteState::Steady)
            && steady.per_second < (1.0 - CONTRADICTION) * writes.iops
        {
            let why = "the flash derived from the other figures cannot write that fast";
            self.contradicts("stated.random_write", &steady.per_second.round(), why);
        }
        let usual = DurationNs(interval.round() as i64);
        let write_interval_ns = self.time(table.write_interval, "controller.write_interval", rule, usual)?;
        Ok(Controller {
            command_ns,
            command_interval_ns,
            write_command_ns,
            write_interval_ns,
            read_ns_per_byte,
            write_ns_per_byte,
            map_cache_bytes: table.map_cache.map(|size| size.0),
        })
    }

    /// Returns the time per byte through the controller and its source, or only the time if the file states the rate.
    fn controller_pace(
        &self,
        reads: bool,
        link_ns_per_byte: f64,
    ) -> Result<(f64, (Option<f64>, &'static str)), InputError> {
        let (table, stated) = (&self.file.controller, &self.file.stated);
        let (rate, time, key, sequential) = if reads {
            (table.read_rate, table.read_ns_per_byte, "controller.read_rate", stated.sequential_read)
        } else {
            (table.write_rate, table.write_ns_per_byte, "controller.write_rate", stated.sequential_write)
        };
        match (rate, time, sequential) {
            (Some(_), Some(_), _) => self.fail(key, "not allowed with the time of a byte"),
            (Some(rate), None, _) => Ok((0.0, (Some(self.ns_per_byte(rate, key)?), ""))),
            (None, _, Some(rate)) if 1e9 / rate.0 < link_ns_per_byte / 1.06 => {
                let key = if reads { "stated.sequential_read" } else { "stated.sequential_write" };
                self.fail(key, format!("{rate} exceeds the rate of the interface, {:.0} MB/s", 1e3 / link_ns_per_byte))
            }
            (None, _, Some(rate)) => Ok((1e9 / rate.0, (None, "I inverse of the stated sequential rate"))),
            (None, _, None) if !reads && has_estimated_writes(self.file) => {
                let rate = sequential_write(self.file, self.rules).rate;
                Ok((1e9 / rate, (None, "C inverse of the estimated sequential writes")))
            }
            (None, _, None) => Ok((link_ns_per_byte / SSD_CONTROLLER_SHARE, (None, "C fraction of the link rate"))),
        }
    }

    /// Fits the controller's part of a read at queue depth 1. If the stated latency leaves no time for it, the flash is
    /// made faster.
    fn solve_command(
        &mut self,
        interface: &Interface,
        timing: &mut Timing,
        slc: Option<&SlcCache>,
        controller_ns_per_byte: f64,
        nvme: bool,
    ) -> Result<u64, InputError> {
        let table = &self.file.controller;
        let (mut usual, mut rule) = if nvme {
            (SSD_COMMAND_NVME, "C usual for NVMe")
        } else {
            (SSD_COMMAND_SERIAL, "I typical remainder of data sheets besides the flash")
        };
        let way_ns = 4096.0 * (timing.channel_ns_per_byte + interface.read_ns_per_byte.max(controller_ns_per_byte));
        if let Some(stated) = self.file.stated.read_latency {
            let sense_ns = slc.map_or(timing.read_ns, |slc| slc.read_ns) as f64;
            let left_ns = stated.0 as f64 - way_ns - sense_ns;
            rule = "I remainder of stated.read_latency";
            usual = DurationNs(left_ns.max(SSD_COMMAND_LEAST.0 as f64) as i64);
            if left_ns < SSD_COMMAND_LEAST.0 as f64 && slc.is_none() && self.file.flash.read.is_none() {
                let command_ns = table.command.unwrap_or(SSD_COMMAND_LEAST).0 as f64;
                timing.read_ns = (stated.0 as f64 - way_ns - command_ns).max(1000.0) as u64;
                self.derived.retain(|derived| derived.key != "flash.read");
                self.or(None, "flash.read", rule, DurationNs(timing.read_ns as i64));
            }
        }
        self.time(table.command, "controller.command", rule, usual)
    }

    /// Sets the random part of a suspension to the time of a read of an idle drive. On four data-center drives below
    /// saturation, reads beside random writes are later by 12 to 18 us and an exponential time with a mean of 64 to 75
    /// us, where a read of the idle drive takes 62 to 70 us (fitted to the distributions of Haas et al., SSD-iq, PVLDB
    /// 18(11), 2025).
    pub(super) fn solve_suspend_spread(
        &mut self,
        timing: &mut Timing,
        controller: &Controller,
        interface: &Interface,
    ) -> Result<(), InputError> {
        let (usual, rule) = if timing.suspend_ns.is_some() {
            let transfer_ns = 4096.0 * (timing.channel_ns_per_byte + interface.read_ns_per_byte);
            let idle_ns = controller.command_ns + timing.read_ns + transfer_ns as u64;
            (DurationNs(idle_ns as i64), "B latency of a read of the idle drive, as measured on drives of three makers")
        } else {
            (DurationNs(0), "programs are not suspended")
        };
        timing.suspend_spread_ns = self.time(self.file.flash.suspend_spread, "flash.suspend_spread", rule, usual)?;
        Ok(())
    }

    /// Returns the usual interval between two reads and its source.
    fn usual_interval(&self, nvme: bool) -> (DurationNs, String) {
        let stated = &self.file.stated;
        if let Some(read) = stated.random_read {
            return (DurationNs((1e9 / read.iops).round() as i64), "I inverse of stated.random_read".to_owned());
        }
        if nvme {
            let Estimate { rate, rule } = random_reads(self.file, self.rules);
            return (DurationNs((1e9 / rate).round() as i64), rule);
        }
        let sas = self.file.interface.kind == Some(SsdInterfaceKind::Sas);
        let usual = if sas { SSD_SAS_IOPS } else { SSD_SERIAL_ATA_IOPS };
        let bytes = stated.sequential_read.map_or(f64::INFINITY, |rate| rate.0 / 4096.0);
        (DurationNs((1e9 / usual.min(bytes)).round() as i64), "C usual for its interface".to_owned())
    }

    /// Checks whether dies, planes and channels can serve the stated random reads.
    fn check_reads(&mut self, flash: &Flash, timing: &Timing, slc: Option<&SlcCache>, interval_ns: u64) {
        let Some(read) = self.file.stated.random_read else { return };
        let sense_ns = slc.map_or(timing.read_ns, |slc| slc.read_ns) as f64;
        let send_ns = read.bytes() as f64 * timing.channel_ns_per_byte;
        let most = (dies(flash) / (sense_ns + send_ns)).min(f64::from(flash.channels) / send_ns.max(1e-3)) * 1e9;
        let most = most.min(1e9 / interval_ns.max(1) as f64);
        if most < (1.0 - CONTRADICTION) * read.iops {
            self.contradicts("stated.random_read", &most.round(), "its dies and channels cannot serve that many");
        }
    }
}
