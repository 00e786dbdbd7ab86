//! Completes an SSD file ([`resolve`]). The constants of cells and interfaces are in [`crate::constants`].

use headstack_sim::InvalidDescription;
use headstack_sim::ssd::description::{
    Capacity, Collection, Flash, FlashState, Interface, Medium, SlcCache, SsdDescription, SsdPower, Timing, WriteBuffer,
};
use headstack_workload::quantity::{Bytes, DurationNs, LineCoding, Rate};
use headstack_workload::{Document, InputError};
use serde::Serialize;

use super::ResolvedSsd;
use super::expected::{ESTIMATE_RULES, EstimateRules};
use super::file::{Generation, SsdFile, SsdInterfaceKind, SsdPowerTable, StatedTable};
use super::generation::{GenerationFigures, usual_raw};
use super::steady::Steady;
use crate::array::standards::LinkStandard;
use crate::constants::{
    AIRFLOW_K_PER_W, AMBIENT_CELSIUS, NCQ_TAGS, SSD_BUFFER_PROGRAMS_PER_DIE, SSD_FLUSHES_PER_MAP_UPDATE,
    SSD_FREE_BLOCKS, SSD_MAP_UPDATE, SSD_MAPPING_UNIT, SSD_NVME_DEPTH, SSD_PROTECTED_FLUSH, SSD_READS_AHEAD,
    SSD_SAS_TAGS,
};
use crate::hosts::HostProfile;
use crate::resolve::{Derived, also_missing, check_source};

/// Ratio of the PCI Express payload rate with long packets to the usual rate. With packets of 512 bytes instead of 256,
/// half of the 24 bytes of overhead per 256 bytes is saved, up to 5 %.
const LONG_PACKETS: f64 = 1.05;

/// Completes an SSD file. Missing values are chosen so that the drive meets the figures that the file states; otherwise
/// they have the usual values for the drive's generation, interface and year.
///
/// # Errors
/// Returns the same errors as [`crate::resolve()`], and an error if two figures of `[stated]` cannot both hold.
pub fn resolve(document: &Document) -> Result<ResolvedSsd, InputError> {
    resolve_by(document, &ESTIMATE_RULES)
}

/// Completes an SSD file like [`resolve`], with other constants for figures that the data sheet omits.
///
/// # Errors
/// Returns the same errors as [`resolve`].
pub fn resolve_by(document: &Document, rules: &EstimateRules) -> Result<ResolvedSsd, InputError> {
    let mut file: SsdFile = document.read()?;
    if let Some(sheet) = file.sheet.take() {
        if file.stated != StatedTable::default() {
            return Err(document.error("sheet", "the old form of [stated] is not allowed together with [stated]"));
        }
        file.stated = sheet.into();
    }
    file.sources.iter().try_for_each(|(key, source)| check_source(document, key, source))?;
    file.price.as_ref().map_or(Ok(()), |price| price.check(document))?;
    file.endurance.check(document)?;
    let mut resolver = Resolver { document, file: &file, rules, derived: Vec::new() };
    resolver.check_stated()?;
    let interface = resolver.interface()?;
    let capacity = resolver.capacity()?;
    let figures = resolver.generation()?;
    let collection = Collection {
        free_blocks_min: resolver.or(
            file.flash.free_blocks_min,
            "flash.free_blocks_min",
            "D enough to continue during an erase",
            SSD_FREE_BLOCKS,
        ),
    };
    let flash = resolver.flash(&capacity, &figures)?;
    let mut flash = resolver.planes(&capacity, flash, &figures);
    let channel_ns_per_byte = resolver.channel_ns_per_byte(&figures, &flash)?;
    let slc_cache = resolver.slc_cache(&figures, &flash, channel_ns_per_byte)?;
    let mut timing = resolver.timing(&figures, &flash, slc_cache.as_ref(), channel_ns_per_byte)?;
    let steady = resolver.solve_steady_writes(figures.medium, &capacity, &flash, &mut timing, collection)?;
    flash.blocks_per_plane = resolver.blocks(&capacity, &flash, &steady)?;
    let controller = resolver.controller(&interface, &flash, &mut timing, slc_cache.as_ref(), &steady)?;
    resolver.solve_suspend_spread(&mut timing, &controller, &interface)?;
    let description = SsdDescription {
        name: file.name.clone(),
        medium: figures.medium,
        capacity,
        flash,
        timing,
        slc_cache,
        buffer: resolver.buffer(figures.medium, &flash)?,
        collection,
        controller,
        interface,
        state: resolver.or(
            file.stated_state(),
            "state",
            "D drives in use are full, and a run sets another state",
            FlashState::Filled,
        ),
        power: resolver.power()?,
    };
    headstack_sim::ssd::check(&description).map_err(|fault| resolver.in_file(fault))?;
    let derived = resolver.derived;
    Ok(ResolvedSsd { description, file, derived })
}

pub(super) struct Resolver<'a> {
    pub(super) document: &'a Document,
    pub(super) file: &'a SsdFile,
    pub(super) rules: &'a EstimateRules,
    pub(super) derived: Vec<Derived>,
}

impl Resolver<'_> {
    pub(super) fn fail<T>(&self, key: &str, message: impl Into<String>) -> Result<T, InputError> {
        Err(self.document.error(key, message))
    }

    fn needed<T>(&self, stated_value: Option<T>, key: &str, why: &str) -> Result<T, InputError> {
        stated_value.map_or_else(|| self.fail(key, format!("this key is missing; {why}{}", self.also_missing(key))), Ok)
    }

    /// Returns the required keys, other than `key`, that the file does not state.
    fn also_missing(&self, key: &str) -> String {
        let SsdFile { capacity, flash, interface, .. } = self.file;
        also_missing(
            key,
            &[
                ("capacity.size", capacity.size.is_some()),
                ("flash.cells", flash.cells.or(flash.generation.map(Generation::cells)).is_some()),
                ("interface.kind", interface.kind.is_some()),
            ],
        )
    }

    /// Returns the stated value. If there is none, returns `value` and records it with its rule.
    pub(super) fn or<T: Serialize>(&mut self, stated_value: Option<T>, key: &str, rule: &str, value: T) -> T {
        stated_value.unwrap_or_else(|| {
            self.derived.push(Derived::new(key, &value, rule));
            value
        })
    }

    pub(super) fn time(
        &mut self,
        stated_value: Option<DurationNs>,
        key: &str,
        rule: &str,
        value: DurationNs,
    ) -> Result<u64, InputError> {
        let time = self.or(stated_value, key, rule, value);
        u64::try_from(time.0).or_else(|_| self.fail(key, format!("{time} is negative; must be 0ms or more")))
    }

    pub(super) fn ns_per_byte(&self, rate: Rate, key: &str) -> Result<f64, InputError> {
        if rate.0 > 0.0 {
            Ok(1e9 / rate.0)
        } else {
            self.fail(key, format!("{rate} is not allowed; the rate must be above 0"))
        }
    }

    fn size(&self, size: Bytes, key: &str) -> Result<u32, InputError> {
        u32::try_from(size.0).or_else(|_| self.fail(key, format!("{size} is too large; must be below 4GiB")))
    }

    fn capacity(&mut self) -> Result<Capacity, InputError> {
        let table = &self.file.capacity;
        let size = self.needed(table.size, "capacity.size", "set the exported capacity, such as \"960GB\"")?;
        let block = table.logical_block.unwrap_or(Bytes(512));
        let mut usual = SSD_MAPPING_UNIT;
        // The simulated map has 32-bit entries, which must cover flash of 1.5 times the capacity.
        while size.0 / 2 * 3 / usual.0 > u64::from(u32::MAX) {
            usual.0 *= 2;
        }
        let unit = self.or(table.mapping_unit, "capacity.mapping_unit", "B usual, up to the range of 32 bits", usual);
        let whole = Bytes(size.0 - size.0 % unit.0.max(1));
        if whole != size {
            let rule = format!("{size} in the file, rounded down to whole mapping units");
            self.derived.push(Derived::new("capacity.size", &whole, &rule));
        }
        Ok(Capacity {
            logical_bytes: whole.0,
            logical_block_bytes: self.size(block, "capacity.logical_block")?,
            mapping_unit_bytes: self.size(unit, "capacity.mapping_unit")?,
        })
    }

    /// Returns the figures of the generation. They are not used if the file states every value.
    fn generation(&mut self) -> Result<GenerationFigures, InputError> {
        let flash = &self.file.flash;
        let times = [flash.read, flash.program, flash.erase];
        let states_all = flash.planes_per_die.is_some()
            && flash.pages_per_block.is_some()
            && flash.page.is_some()
            && times.iter().all(Option::is_some)
            && (flash.channel_rate.is_some() || flash.channel_ns_per_byte.is_some())
            && flash.suspends.is_some()
            && flash.channels.is_some()
            && flash.dies_per_channel.is_some();
        let generation = match (flash.generation, flash.cells) {
            (Some(generation), Some(cells)) if generation.cells() != cells => {
                return self.fail("flash.generation", "the generation has other cells than flash.cells");
            }
            (Some(generation), _) => generation,
            (None, Some(cells)) => {
                let rule = "B usual for drives of the year";
                self.or(None, "flash.generation", rule, Generation::of(cells, self.file.year))
            }
            (None, None) if states_all => Generation::Tlc32,
            (None, None) => {
                return self.fail("flash.cells", "this key is missing; allowed: slc, mlc, tlc, qlc, xpoint");
            }
        };
        Ok(generation.figures())
    }

    /// Returns the flash without the number of blocks per plane, which [`Self::blocks`] determines.
    fn flash(&mut self, capacity: &Capacity, figures: &GenerationFigures) -> Result<Flash, InputError> {
        let table = &self.file.flash;
        let usual = figures.source;
        let planes_per_die = self.or(table.planes_per_die, "flash.planes_per_die", usual, figures.planes_per_die);
        let pages_per_block = self.or(table.pages_per_block, "flash.pages_per_block", usual, figures.pages_per_block);
        let page = self.or(table.page, "flash.page", usual, figures.page);
        let dies = u32::try_from(usual_raw(capacity.logical_bytes) / figures.die.0).unwrap_or(u32::MAX).max(1);
        let chips = table.dies_per_channel.map_or(dies, |each| dies.div_ceil(each.max(1)));
        let channels = self.or(
            table.channels,
            "flash.channels",
            "C usual for its interface",
            self.channels(figures.medium).min(chips),
        );
        let rule = "C number of dies needed for the capacity";
        let each = dies.div_ceil(channels.max(1));
        let mut flash = Flash {
            channels,
            dies_per_channel: self.or(table.dies_per_channel, "flash.dies_per_channel", rule, each),
            planes_per_die,
            blocks_per_plane: 1,
            pages_per_block,
            page_bytes: self.size(page, "flash.page")?,
            pages_per_program: 1,
        };
        flash.pages_per_program = self.pages_per_program(&flash, figures);
        Ok(flash)
    }

    /// Returns the number of pages that are programmed at once: with three and four bits in a cell those of all bits. A
    /// buffer that the file states to be too small for that holds the pages of single programs.
    fn pages_per_program(&mut self, flash: &Flash, figures: &GenerationFigures) -> u32 {
        let fits = |pages: u32| self.file.buffer.size.is_none_or(|size| size.0 >= buffer_bytes(flash, pages));
        let (rule, usual) = match figures.bits {
            bits @ 3.. if fits(bits) => ("B all bits of a cell at once", bits),
            3.. => ("I the buffer holds no more of each die", 1),
            _ => ("B page by page", 1),
        };
        self.or(self.file.flash.pages_per_program, "flash.pages_per_program", rule, usual)
    }

    /// Returns the number of channels: twelve or sixteen for NVMe drives with capacitors (P4500: 12; CD6, CM7: 16),
    /// four for drives without memory for the map (SM2263, E21), seven for 3D XPoint (P4800X, 900P), otherwise eight.
    fn channels(&self, medium: Medium) -> u32 {
        let protected = self.file.buffer.power_loss_protected == Some(true);
        match (self.file.interface.kind, self.file.interface.generation.unwrap_or(3)) {
            _ if !medium.is_flash() => 7,
            _ if self.file.controller.map_cache.is_some() => 4,
            (Some(SsdInterfaceKind::Nvme), ..=3) if protected => 12,
            (Some(SsdInterfaceKind::Nvme), _) if protected => 16,
            _ => 8,
        }
    }

    /// Returns the number of blocks per plane.
    fn blocks(&mut self, capacity: &Capacity, flash: &Flash, steady: &Steady) -> Result<u32, InputError> {
        let table = &self.file.flash;
        if let Some(blocks) = table.blocks_per_plane {
            return Ok(blocks);
        }
        let raw = match table.raw {
            Some(raw) if raw.0 <= capacity.logical_bytes => {
                let message =
                    format!("{raw} is too small; must be above the capacity of {} bytes", capacity.logical_bytes);
                return self.fail("flash.raw", message);
            }
            Some(raw) => raw.0,
            None => (capacity.logical_bytes as f64 * (1.0 + steady.over_provisioning)) as u64,
        };
        let one_each = [flash.channels, flash.dies_per_channel, flash.planes_per_die, flash.pages_per_block]
            .iter()
            .fold(u64::from(flash.page_bytes), |product, &count| product.saturating_mul(u64::from(count)));
        // `check` rejects a number of 0.
        let blocks = u32::try_from(raw.div_ceil(one_each.max(1))).unwrap_or(u32::MAX);
        Ok(self.or(None, "flash.blocks_per_plane", "capacity of the dies", blocks))
    }

    /// Converts independently reading planes to dies, because they behave like dies.
    fn planes(&mut self, capacity: &Capacity, flash: Flash, figures: &GenerationFigures) -> Flash {
        let fits = flash.page_bytes.is_multiple_of(capacity.mapping_unit_bytes);
        let usual = figures.independent_planes && fits;
        let independent =
            self.or(self.file.flash.independent_planes, "flash.independent_planes", figures.source, usual);
        if !independent {
            return flash;
        }
        let dies_per_channel = flash.dies_per_channel.saturating_mul(flash.planes_per_die);
        Flash { dies_per_channel, planes_per_die: 1, ..flash }
    }

    fn channel_ns_per_byte(&mut self, figures: &GenerationFigures, flash: &Flash) -> Result<f64, InputError> {
        let table = &self.file.flash;
        match (table.channel_rate, table.channel_ns_per_byte) {
            (Some(_), Some(_)) => self.fail("flash.channel_ns_per_byte", "not allowed with flash.channel_rate"),
            (None, Some(ns_per_byte)) => Ok(ns_per_byte),
            (rate, None) => {
                let (usual, rule) = self.usual_channel_rate(figures, flash);
                let rate = self.or(rate, "flash.channel_rate", rule, usual);
                self.ns_per_byte(rate, "flash.channel_rate")
            }
        }
    }

    fn timing(
        &mut self,
        figures: &GenerationFigures,
        flash: &Flash,
        slc: Option<&SlcCache>,
        channel_ns_per_byte: f64,
    ) -> Result<Timing, InputError> {
        let table = &self.file.flash;
        let (read, rule) = match slc {
            Some(_) => (figures.read, figures.source),
            None => self.usual_sense(flash, channel_ns_per_byte, (figures.read, figures.source)),
        };
        let read_ns = self.time(table.read, "flash.read", rule, read)?;
        let (program, rule) = self.usual_program(figures, flash, slc, channel_ns_per_byte);
        let program_ns = self.time(table.program, "flash.program", &rule, program)?;
        let erase_ns = self.time(table.erase, "flash.erase", figures.source, figures.erase)?;
        let suspends = table.suspends.or(table.suspend.map(|_| true));
        let suspend_ns = if self.or(suspends, "flash.suspends", figures.source, figures.suspend.is_some()) {
            let usual = figures.suspend.unwrap_or(DurationNs(20_000));
            Some(self.time(table.suspend, "flash.suspend", figures.source, usual)?)
        } else {
            None
        };
        let writes_urgent_when_full = self.or(
            table.writes_urgent_when_full,
            "flash.writes_urgent_when_full",
            "B so on drives of two of three makers",
            suspend_ns.is_some(),
        );
        let resume_ns = self.time(table.resume, "flash.resume", "D none known", DurationNs(0))?;
        let rule = "D for each arriving read";
        let suspensions_max = self.or(table.suspensions_max, "flash.suspensions_max", rule, u32::MAX);
        let rule = "D limits the starvation of writes";
        let reads_ahead_max = self.or(table.reads_ahead_max, "flash.reads_ahead_max", rule, SSD_READS_AHEAD);
        Ok(Timing {
            read_ns,
            program_ns,
            erase_ns,
            channel_ns_per_byte,
            suspend_ns,
            // Set with the controller, whose time counts.
            suspend_spread_ns: 0,
            writes_urgent_when_full,
            resume_ns,
            suspensions_max,
            reads_ahead_max,
        })
    }

    fn buffer(&mut self, medium: Medium, flash: &Flash) -> Result<WriteBuffer, InputError> {
        let table = &self.file.buffer;
        let bytes = buffer_bytes(flash, flash.pages_per_program);
        let size = self.or(table.size, "buffer.size", "D two programs per die", Bytes(bytes));
        let protected = self.or(table.power_loss_protected, "buffer.power_loss_protected", "C not stated", false);
        let (flush_ns, map_update_ns) = self.flush_times(medium, protected)?;
        let flushes_per_map_update = self.or(
            table.flushes_per_map_update,
            "buffer.flushes_per_map_update",
            "C as seen in the flush latencies of three SATA drives",
            SSD_FLUSHES_PER_MAP_UPDATE,
        );
        let mut buffer = WriteBuffer {
            bytes: size.0,
            power_loss_protected: protected,
            flush_ns,
            map_update_ns,
            flushes_per_map_update,
            write_through: false,
        };
        match table.write_cache.map_or(Ok(()), |kind| buffer.set_write_cache(kind)) {
            Ok(()) => Ok(buffer),
            Err(message) => self.fail("buffer.write_cache", message),
        }
    }

    /// Returns the time of a flush of a protected buffer, and that of a program of the map after flushes.
    fn flush_times(&mut self, medium: Medium, protected: bool) -> Result<(u64, u64), InputError> {
        let table = &self.file.buffer;
        let (flush, map_update) = (table.flush, table.map_update);
        let executes = protected && table.reports_volatile_cache.unwrap_or(false);
        let (usual, rule) = if executes {
            (SSD_PROTECTED_FLUSH, "C as measured on protected drives that report a volatile cache")
        } else {
            (DurationNs(0), "no volatile cache is reported, or the flush only waits for its programs")
        };
        let flush_ns = self.time(flush, "buffer.flush", rule, usual)?;
        let (usual, rule) = if !medium.is_flash() {
            (DurationNs(0), "data stay where they are, so no map changes")
        } else if protected {
            (DurationNs(0), "capacitors protect the map too")
        } else {
            (SSD_MAP_UPDATE, "C as seen in the flush latencies of three SATA drives")
        };
        Ok((flush_ns, self.time(map_update, "buffer.map_update", rule, usual)?))
    }

    fn interface(&mut self) -> Result<Interface, InputError> {
        let table = &self.file.interface;
        let kind = self.needed(table.kind, "interface.kind", "allowed: nvme, sata, sas")?;
        let pcie = [("interface.generation", table.generation), ("interface.lanes", table.lanes)];
        if let Some((key, _)) =
            pcie.iter().find(|(_, stated_value)| stated_value.is_some() && kind != SsdInterfaceKind::Nvme)
        {
            return self.fail(key, "only nvme has this key");
        }
        let (read_ns_per_byte, write_ns_per_byte) = match (table.read_ns_per_byte, table.write_ns_per_byte) {
            (Some(read), Some(write)) if table.rate.is_none() && table.generation.is_none() => (read, write),
            (None, None) => {
                let ns_per_byte = self.interface_ns_per_byte(kind)?;
                (ns_per_byte, ns_per_byte)
            }
            _ => {
                let message = "set read_ns_per_byte and write_ns_per_byte together, without rate and generation";
                return self.fail("interface", message);
            }
        };
        let (rule, depth) = match kind {
            SsdInterfaceKind::Nvme => ("D usual number of concurrent commands", SSD_NVME_DEPTH),
            SsdInterfaceKind::Sata => ("B tags of native command queueing", NCQ_TAGS),
            SsdInterfaceKind::Sas => ("C usual for SAS", SSD_SAS_TAGS),
        };
        Ok(Interface {
            read_ns_per_byte,
            write_ns_per_byte,
            full_duplex: kind != SsdInterfaceKind::Sata,
            queue_depth: self.or(table.queue_depth, "interface.queue_depth", rule, depth),
            host: table.host.and_then(HostProfile::adapter),
        })
    }

    /// Returns the time per byte from the stated rate or from the standard, in ns.
    fn interface_ns_per_byte(&mut self, kind: SsdInterfaceKind) -> Result<f64, InputError> {
        let table = &self.file.interface;
        let standard = match kind {
            _ if table.rate.is_some() && table.generation.is_none() => None,
            SsdInterfaceKind::Sata => LinkStandard::Sata6.figures().bytes_per_s,
            SsdInterfaceKind::Sas => LinkStandard::Sas12.figures().bytes_per_s,
            SsdInterfaceKind::Nvme => {
                let why = "give the generation of PCI Express, such as 3, or the rate";
                let generation = self.needed(table.generation, "interface.generation", why)?;
                let lanes = self.or(table.lanes, "interface.lanes", "B usual for drives", 4);
                if !(1..=16).contains(&lanes) {
                    return self.fail("interface.lanes", format!("{lanes} is not allowed; must be 1 to 16"));
                }
                match LinkStandard::pcie_bytes_per_s(generation) {
                    Some(rate) => Some(rate * f64::from(lanes)),
                    None => {
                        return self
                            .fail("interface.generation", format!("{generation} is not allowed; must be 1 to 5"));
                    }
                }
            }
        };
        let mut usual = Rate(standard.unwrap_or_default().round());
        let mut rule = "payload rate of the standard";
        let stated = &self.file.stated;
        let most = [stated.sequential_read, stated.sequential_write].into_iter().flatten().map(|rate| rate.0);
        let most = most.fold(0.0, f64::max);
        if most > usual.0 && most <= LONG_PACKETS * usual.0 {
            (usual, rule) = (Rate(most), "I rate needed by [stated]");
        }
        let coding = match kind {
            SsdInterfaceKind::Nvme => LineCoding::EightBits,
            SsdInterfaceKind::Sata | SsdInterfaceKind::Sas => LineCoding::TenBits,
        };
        let stated = self.file.interface.rate.map(|rate| rate.data(coding));
        let (least, most) = (usual, Rate(LONG_PACKETS * usual.0));
        if let (Some(stated), Some(_)) = (stated, standard)
            && !(least.0..=most.0).contains(&stated.0)
        {
            let message =
                format!("{stated} is not allowed with interface.generation and lanes; must be {least} to {most}");
            return self.fail("interface.rate", message);
        }
        let rate = self.or(stated, "interface.rate", rule, usual);
        self.ns_per_byte(rate, "interface.rate")
    }

    /// Returns the power; `None` if the file does not state it.
    fn power(&mut self) -> Result<Option<SsdPower>, InputError> {
        let table = &self.file.power;
        if *table == SsdPowerTable::default() {
            return Ok(None);
        }
        let why = "idle_w and active_w of [power] must be set together";
        Ok(Some(SsdPower {
            idle_w: self.needed(table.idle_w, "power.idle_w", why)?,
            active_w: self.needed(table.active_w, "power.active_w", why)?,
            ambient_celsius: self.or(table.ambient_celsius, "power.ambient_celsius", "a cool room", AMBIENT_CELSIUS),
            airflow_k_per_w: self.or(
                table.airflow_k_per_w,
                "power.airflow_k_per_w",
                "same as for disks",
                AIRFLOW_K_PER_W,
            ),
        }))
    }

    /// Returns an error of the description with the key of the file.
    fn in_file(&self, fault: InvalidDescription) -> InputError {
        let key = fault.key.replace("timing.", "flash.").replace("collection.", "flash.");
        let key = match key.as_str() {
            "capacity.logical_bytes" => "capacity.size",
            "flash.channel_ns_per_byte" if self.file.flash.channel_rate.is_some() => "flash.channel_rate",
            "buffer.bytes" => "buffer.size",
            "slc_cache.static_bytes" if self.file.slc_cache.static_size.is_none() => "stated.slc_cache",
            "controller.map_cache_bytes" => "controller.map_cache",
            "controller.read_ns_per_byte" if self.file.controller.read_rate.is_some() => "controller.read_rate",
            "controller.write_ns_per_byte" if self.file.controller.write_rate.is_some() => "controller.write_rate",
            "flash.blocks_per_plane" if self.file.flash.raw.is_some() => "flash.raw",
            "flash.blocks_per_plane" if self.file.flash.blocks_per_plane.is_none() => "flash.over_provisioning",
            other => other.trim_end_matches("_bytes").trim_end_matches("_ns"),
        };
        self.document.error(key, fault.message)
    }
}

/// Returns the usual size of a write buffer for programs of so many pages, in bytes.
fn buffer_bytes(flash: &Flash, pages_per_program: u32) -> u64 {
    let dies = u64::from(flash.channels) * u64::from(flash.dies_per_channel);
    let row = u64::from(flash.planes_per_die) * u64::from(flash.page_bytes);
    let rows = SSD_BUFFER_PROGRAMS_PER_DIE * u64::from(pages_per_program);
    dies.saturating_mul(row).saturating_mul(rows)
}
