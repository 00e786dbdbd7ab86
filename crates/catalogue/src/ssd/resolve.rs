//! From a solid-state drive's file to a complete description. The constants of cells and interfaces are in
//! [`crate::constants`].

use headstack_sim::drive::InvalidDescription;
use headstack_sim::ssd::description::{
    Capacity, Collection, Controller, Flash, Interface, SsdDescription, SsdPower, Timing, WriteBuffer,
};
use headstack_workload::quantity::{Bytes, DurationNs, LineCoding, Rate};
use headstack_workload::{Document, InputError};
use serde::Serialize;

use super::ResolvedSsd;
use super::file::{Cells, SsdFile, SsdInterfaceKind, SsdPowerTable};
use crate::array::standards::LinkStandard;
use crate::constants::{
    AIRFLOW_K_PER_W, AMBIENT_CELSIUS, CELLS_MLC, CELLS_SLC, CELLS_TLC, CellFigures, NCQ_TAGS, SSD_BUFFER_ROWS_PER_DIE,
    SSD_COMMAND_NVME, SSD_COMMAND_SERIAL, SSD_FREE_BLOCKS, SSD_MAPPING_UNIT, SSD_NVME_DEPTH, SSD_OVER_PROVISIONING,
    SSD_READS_AHEAD, SSD_SAS_TAGS,
};
use crate::resolve::{Derived, also_missing, check_source};

/// Completes a solid-state drive's file.
///
/// # Errors
/// As of [`crate::resolve()`].
pub fn resolve(document: &Document) -> Result<ResolvedSsd, InputError> {
    let file: SsdFile = document.read()?;
    file.sources.iter().try_for_each(|(key, source)| check_source(document, key, source))?;
    file.price.as_ref().map_or(Ok(()), |price| price.check(document))?;
    let mut resolver = Resolver { document, file: &file, derived: Vec::new() };
    let interface = resolver.interface()?;
    let capacity = resolver.capacity()?;
    let cells = resolver.cells()?;
    let flash = resolver.flash(&capacity, cells)?;
    let timing = resolver.timing(cells)?;
    let description = SsdDescription {
        name: file.name.clone(),
        capacity,
        flash,
        timing,
        buffer: resolver.buffer(&flash),
        collection: Collection {
            free_blocks_min: resolver.or(
                file.flash.free_blocks_min,
                "flash.free_blocks_min",
                "D enough to go on while one is erased",
                SSD_FREE_BLOCKS,
            ),
        },
        controller: resolver.controller()?,
        interface,
        filled: resolver.or(file.filled, "filled", "D drives in use are not empty", true),
        preconditioned: resolver.or(file.preconditioned, "preconditioned", "fresh, unless a run asks for it", false),
        power: resolver.power()?,
    };
    headstack_sim::ssd::check(&description).map_err(|fault| resolver.in_file(fault))?;
    let derived = resolver.derived;
    Ok(ResolvedSsd { description, file, derived })
}

struct Resolver<'a> {
    document: &'a Document,
    file: &'a SsdFile,
    derived: Vec<Derived>,
}

impl Resolver<'_> {
    fn fail<T>(&self, key: &str, message: impl Into<String>) -> Result<T, InputError> {
        Err(self.document.error(key, message))
    }

    fn needed<T>(&self, given: Option<T>, key: &str, why: &str) -> Result<T, InputError> {
        given.map_or_else(|| self.fail(key, format!("this key is missing; {why}{}", self.also_missing(key))), Ok)
    }

    /// What every file has to state and this one does not, beside `key`.
    fn also_missing(&self, key: &str) -> String {
        let SsdFile { capacity, flash, interface, .. } = self.file;
        also_missing(
            key,
            &[
                ("capacity.size", capacity.size.is_some()),
                ("flash.channels", flash.channels.is_some()),
                ("flash.dies_per_channel", flash.dies_per_channel.is_some()),
                ("interface.kind", interface.kind.is_some()),
            ],
        )
    }

    /// The value the file gives, else `value`, which is recorded with its rule.
    fn or<T: Serialize>(&mut self, given: Option<T>, key: &str, rule: &str, value: T) -> T {
        given.unwrap_or_else(|| {
            self.derived.push(Derived::new(key, &value, rule));
            value
        })
    }

    fn time(&mut self, given: Option<DurationNs>, key: &str, rule: &str, value: DurationNs) -> Result<u64, InputError> {
        let time = self.or(given, key, rule, value);
        u64::try_from(time.0).or_else(|_| self.fail(key, format!("{time} is negative; 0ms or more is allowed")))
    }

    fn ns_per_byte(&self, rate: Rate, key: &str) -> Result<f64, InputError> {
        if rate.0 > 0.0 { Ok(1e9 / rate.0) } else { self.fail(key, format!("{rate}; a positive rate is allowed")) }
    }

    fn size(&self, size: Bytes, key: &str) -> Result<u32, InputError> {
        u32::try_from(size.0).or_else(|_| self.fail(key, format!("{size}; less than 4GiB is allowed")))
    }

    fn capacity(&mut self) -> Result<Capacity, InputError> {
        let table = &self.file.capacity;
        let size = self.needed(table.size, "capacity.size", "give what the drive exports, such as \"960GB\"")?;
        let block = table.logical_block.unwrap_or(Bytes(512));
        let unit = self.or(table.mapping_unit, "capacity.mapping_unit", "B usual", SSD_MAPPING_UNIT);
        let whole = Bytes(size.0 - size.0 % unit.0.max(1));
        if whole != size {
            let rule = format!("{size} of the file, rounded down to whole mapping units");
            self.derived.push(Derived::new("capacity.size", &whole, &rule));
        }
        Ok(Capacity {
            logical_bytes: whole.0,
            logical_block_bytes: self.size(block, "capacity.logical_block")?,
            mapping_unit_bytes: self.size(unit, "capacity.mapping_unit")?,
        })
    }

    /// What the kind of cells gives; nothing for a file that states it all.
    fn cells(&self) -> Result<&'static CellFigures, InputError> {
        let flash = &self.file.flash;
        let times = [flash.read, flash.program, flash.erase];
        let states_all = flash.planes_per_die.is_some()
            && flash.pages_per_block.is_some()
            && flash.page.is_some()
            && times.iter().all(Option::is_some)
            && (flash.channel_rate.is_some() || flash.channel_ns_per_byte.is_some())
            && flash.suspends.is_some();
        match flash.cells {
            Some(Cells::Slc) => Ok(&CELLS_SLC),
            Some(Cells::Mlc) => Ok(&CELLS_MLC),
            Some(Cells::Tlc) => Ok(&CELLS_TLC),
            None if states_all => Ok(&CELLS_TLC),
            None => self.fail("flash.cells", "this key is missing; slc, mlc and tlc are allowed"),
        }
    }

    fn flash(&mut self, capacity: &Capacity, cells: &CellFigures) -> Result<Flash, InputError> {
        let table = &self.file.flash;
        let channels = self.needed(table.channels, "flash.channels", "give the buses to the flash, such as 8")?;
        let dies = self.needed(table.dies_per_channel, "flash.dies_per_channel", "give the dies on each, such as 4")?;
        let usual = cells.source;
        let planes_per_die = self.or(table.planes_per_die, "flash.planes_per_die", usual, cells.planes_per_die);
        let pages_per_block = self.or(table.pages_per_block, "flash.pages_per_block", usual, cells.pages_per_block);
        let page = self.or(table.page, "flash.page", usual, cells.page);
        let mut flash = Flash {
            channels,
            dies_per_channel: dies,
            planes_per_die,
            blocks_per_plane: 1,
            pages_per_block,
            page_bytes: self.size(page, "flash.page")?,
        };
        let one_each = [channels, dies, planes_per_die, pages_per_block, flash.page_bytes]
            .iter()
            .fold(1u64, |product, &count| product.saturating_mul(u64::from(count)));
        let raw = self.raw(capacity)?;
        flash.blocks_per_plane = match raw {
            None => table.blocks_per_plane.unwrap_or(0),
            // A count of 0 is for the check to refuse.
            Some(raw) => {
                let blocks = u32::try_from(raw.div_ceil(one_each.max(1))).unwrap_or(u32::MAX);
                self.or(None, "flash.blocks_per_plane", "what the dies hold", blocks)
            }
        };
        Ok(flash)
    }

    /// Bytes of all dies, where the blocks are not counted.
    fn raw(&mut self, capacity: &Capacity) -> Result<Option<u64>, InputError> {
        let table = &self.file.flash;
        let given = [
            ("flash.raw", table.raw.is_some()),
            ("flash.over_provisioning", table.over_provisioning.is_some()),
            ("flash.blocks_per_plane", table.blocks_per_plane.is_some()),
        ];
        let given: Vec<&str> = given.iter().filter(|(_, given)| *given).map(|(key, _)| *key).collect();
        if let [first, second, ..] = given[..] {
            return self.fail(second, format!("not allowed beside {first}"));
        }
        let logical = capacity.logical_bytes;
        match (table.raw, table.blocks_per_plane) {
            (Some(raw), _) if raw.0 <= logical => {
                self.fail("flash.raw", format!("{raw}; more than the capacity of {logical} bytes is allowed"))
            }
            (Some(raw), _) => Ok(Some(raw.0)),
            (None, Some(_)) => Ok(None),
            (None, None) => {
                let rule = "B a GiB of flash for each GB";
                let share = self.or(table.over_provisioning, "flash.over_provisioning", rule, SSD_OVER_PROVISIONING);
                if !(share > 0.0 && share <= 100.0) {
                    let message = format!("{share}; a share of the capacity above 0, up to 100, is allowed");
                    return self.fail("flash.over_provisioning", message);
                }
                Ok(Some((logical as f64 * (1.0 + share)) as u64))
            }
        }
    }

    fn timing(&mut self, cells: &CellFigures) -> Result<Timing, InputError> {
        let table = &self.file.flash;
        let channel_ns_per_byte = match (table.channel_rate, table.channel_ns_per_byte) {
            (Some(_), Some(_)) => {
                return self.fail("flash.channel_ns_per_byte", "not allowed beside flash.channel_rate");
            }
            (None, Some(ns_per_byte)) => ns_per_byte,
            (rate, None) => {
                let rate = self.or(rate, "flash.channel_rate", cells.source, cells.channel_rate);
                self.ns_per_byte(rate, "flash.channel_rate")?
            }
        };
        let read_ns = self.time(table.read, "flash.read", cells.source, cells.read)?;
        let program_ns = self.time(table.program, "flash.program", cells.source, cells.program)?;
        let erase_ns = self.time(table.erase, "flash.erase", cells.source, cells.erase)?;
        let suspends = table.suspends.or(table.suspend.map(|_| true));
        let suspend_ns = if self.or(suspends, "flash.suspends", cells.source, cells.suspend.is_some()) {
            let usual = CELLS_TLC.suspend.unwrap_or(DurationNs(0));
            Some(self.time(table.suspend, "flash.suspend", cells.source, usual)?)
        } else {
            None
        };
        let rule = "D a bound on how long writes starve";
        let reads_ahead_max = self.or(table.reads_ahead_max, "flash.reads_ahead_max", rule, SSD_READS_AHEAD);
        Ok(Timing { read_ns, program_ns, erase_ns, channel_ns_per_byte, suspend_ns, reads_ahead_max })
    }

    fn buffer(&mut self, flash: &Flash) -> WriteBuffer {
        let table = &self.file.buffer;
        let dies = u64::from(flash.channels) * u64::from(flash.dies_per_channel);
        let row = u64::from(flash.planes_per_die) * u64::from(flash.page_bytes);
        let bytes = dies.saturating_mul(row).saturating_mul(SSD_BUFFER_ROWS_PER_DIE);
        let size = self.or(table.size, "buffer.size", "D two rows for each die", Bytes(bytes));
        let protected = self.or(table.power_loss_protected, "buffer.power_loss_protected", "C not stated", false);
        WriteBuffer { bytes: size.0, power_loss_protected: protected }
    }

    fn controller(&mut self) -> Result<Controller, InputError> {
        let table = &self.file.controller;
        let (rule, usual) = match self.file.interface.kind {
            Some(SsdInterfaceKind::Nvme) => ("D usual of NVMe", SSD_COMMAND_NVME),
            _ => ("I what sheets leave beside the flash", SSD_COMMAND_SERIAL),
        };
        let unlimited = "the flash is the limit";
        Ok(Controller {
            command_ns: self.time(table.command, "controller.command", rule, usual)?,
            command_interval_ns: self.time(
                table.command_interval,
                "controller.command_interval",
                unlimited,
                DurationNs(0),
            )?,
        })
    }

    fn interface(&mut self) -> Result<Interface, InputError> {
        let table = &self.file.interface;
        let kind = self.needed(table.kind, "interface.kind", "nvme, sata and sas are allowed")?;
        let pcie = [("interface.generation", table.generation), ("interface.lanes", table.lanes)];
        if let Some((key, _)) = pcie.iter().find(|(_, given)| given.is_some() && kind != SsdInterfaceKind::Nvme) {
            return self.fail(key, "only nvme has this");
        }
        let (read_ns_per_byte, write_ns_per_byte) = match (table.read_ns_per_byte, table.write_ns_per_byte) {
            (Some(read), Some(write)) if table.rate.is_none() && table.generation.is_none() => (read, write),
            (None, None) => {
                let ns_per_byte = self.interface_ns_per_byte(kind)?;
                (ns_per_byte, ns_per_byte)
            }
            _ => {
                let message = "read_ns_per_byte and write_ns_per_byte belong together, without rate and generation";
                return self.fail("interface", message);
            }
        };
        let (rule, depth) = match kind {
            SsdInterfaceKind::Nvme => ("D what drives work on at once", SSD_NVME_DEPTH),
            SsdInterfaceKind::Sata => ("B tags of native command queueing", NCQ_TAGS),
            SsdInterfaceKind::Sas => ("C usual of SAS", SSD_SAS_TAGS),
        };
        Ok(Interface {
            read_ns_per_byte,
            write_ns_per_byte,
            full_duplex: kind != SsdInterfaceKind::Sata,
            queue_depth: self.or(table.queue_depth, "interface.queue_depth", rule, depth),
        })
    }

    /// From the rate, or from what a standard gives.
    fn interface_ns_per_byte(&mut self, kind: SsdInterfaceKind) -> Result<f64, InputError> {
        let table = &self.file.interface;
        let standard = match kind {
            _ if table.rate.is_some() && table.generation.is_some() => {
                return self.fail("interface.rate", "not allowed beside interface.generation");
            }
            _ if table.rate.is_some() => None,
            SsdInterfaceKind::Sata => LinkStandard::Sata6.figures().bytes_per_s,
            SsdInterfaceKind::Sas => LinkStandard::Sas12.figures().bytes_per_s,
            SsdInterfaceKind::Nvme => {
                let why = "give the generation of PCI Express, such as 3, or the rate";
                let generation = self.needed(table.generation, "interface.generation", why)?;
                let lanes = self.or(table.lanes, "interface.lanes", "B usual of drives", 4);
                if !(1..=16).contains(&lanes) {
                    return self.fail("interface.lanes", format!("{lanes}; 1 to 16 are allowed"));
                }
                match LinkStandard::pcie_bytes_per_s(generation) {
                    Some(rate) => Some(rate * f64::from(lanes)),
                    None => return self.fail("interface.generation", format!("{generation}; 1 to 5 are allowed")),
                }
            }
        };
        let usual = Rate(standard.unwrap_or_default().round());
        let coding = match kind {
            SsdInterfaceKind::Nvme => LineCoding::EightBits,
            SsdInterfaceKind::Sata | SsdInterfaceKind::Sas => LineCoding::TenBits,
        };
        let stated = table.rate.map(|rate| rate.data(coding));
        let rate = self.or(stated, "interface.rate", "what the standard's payload leaves", usual);
        self.ns_per_byte(rate, "interface.rate")
    }

    /// Nothing for a file that does not state it.
    fn power(&mut self) -> Result<Option<SsdPower>, InputError> {
        let table = &self.file.power;
        if *table == SsdPowerTable::default() {
            return Ok(None);
        }
        let why = "it belongs to the others of [power]";
        Ok(Some(SsdPower {
            idle_w: self.needed(table.idle_w, "power.idle_w", why)?,
            active_w: self.needed(table.active_w, "power.active_w", why)?,
            ambient_celsius: self.or(table.ambient_celsius, "power.ambient_celsius", "a cool room", AMBIENT_CELSIUS),
            airflow_k_per_w: self.or(table.airflow_k_per_w, "power.airflow_k_per_w", "as disks", AIRFLOW_K_PER_W),
        }))
    }

    /// A fault of the description, by the key of the file.
    fn in_file(&self, fault: InvalidDescription) -> InputError {
        let key = fault.key.replace("timing.", "flash.").replace("collection.", "flash.");
        let key = match key.as_str() {
            "capacity.logical_bytes" => "capacity.size",
            "flash.channel_ns_per_byte" if self.file.flash.channel_rate.is_some() => "flash.channel_rate",
            "buffer.bytes" => "buffer.size",
            "flash.blocks_per_plane" if self.file.flash.raw.is_some() => "flash.raw",
            "flash.blocks_per_plane" if self.file.flash.blocks_per_plane.is_none() => "flash.over_provisioning",
            other => other.trim_end_matches("_bytes").trim_end_matches("_ns"),
        };
        self.document.error(key, fault.message)
    }
}
