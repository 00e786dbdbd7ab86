//! The path between host and drive in a `.parv`: driver, buses, controllers, topology.

use std::collections::BTreeMap;
use std::rc::Rc;

use headstack_sim::drive::description::{DriveDescription, Policy};
use headstack_workload::InputError;

use super::disk::scheduler;
use super::fields::{Fields, Ledger, Unmapped};
use super::layout::SECTOR_BYTES;
use super::parser::{Block, Component, Program};

/// The path between host and drives as described by a `.parv`; empty for other files.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Host {
    /// Instantiated buses.
    pub buses: Vec<Bus>,
    /// Instantiated controllers.
    pub controllers: Vec<Controller>,
    /// The device driver; the first one if there are several.
    pub driver: Option<Driver>,
    /// Source `A FILE:LINE` of each value above, by key path such as `buses[0].read_ns_per_block`.
    pub sources: BTreeMap<String, String>,
    /// Parameters of buses, controllers, the driver and the experiment's other blocks that have no counterpart here.
    pub unmapped: Vec<Unmapped>,
}

/// Timing of a bus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bus {
    /// Names of its instances.
    pub instances: Vec<String>,
    /// Time to win arbitration for the bus, in ns.
    pub arbitration_ns: u64,
    /// Time to transfer 512 bytes to the host, in ns.
    pub read_ns_per_block: u64,
    /// Time to transfer 512 bytes to the drive, in ns.
    pub write_ns_per_block: u64,
}

/// Timing of a controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Controller {
    /// Names of its instances.
    pub instances: Vec<String>,
    /// Time to transfer 512 bytes, in ns.
    pub ns_per_block: u64,
}

/// Settings of the device driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Driver {
    /// Whether the driver sends a drive more than one command at a time.
    pub queueing: bool,
    /// Scheduling policy for commands waiting in the driver.
    pub elevator: Policy,
}

/// Prefixes of drive modules, which other code reads.
const DRIVE_MODULES: [&str; 2] = ["disksim_disk", "dm_"];

/// Reads the host of a program and adds warnings to `warnings`.
pub(super) fn host(program: &Program, warnings: &mut Vec<String>) -> Result<Host, InputError> {
    let mut host = Host::default();
    let ledger = &mut Ledger::default();
    for block in &program.blocks {
        if DRIVE_MODULES.iter().any(|module| block.module.starts_with(module)) {
            continue;
        }
        let instances = instances(program, block);
        let mut fields = Fields::new(block, block.label());
        match &*block.module {
            "disksim_bus" if !instances.is_empty() => host.bus(&mut fields, instances, ledger)?,
            "disksim_ctlr" if !instances.is_empty() => host.controller(&mut fields, instances, ledger)?,
            "disksim_iodriver" if !instances.is_empty() && host.driver.is_none() => {
                host.driver = Some(Driver {
                    queueing: fields.flag(ledger, "Use queueing in subsystem", "driver.queueing")?,
                    elevator: scheduler(&mut fields, "driver.elevator", ledger)?,
                });
                fields.finish_all(ledger, "has no counterpart in a drive description");
            }
            _ => fields.finish_all(ledger, "describes the experiment, not a drive or its bus"),
        }
    }
    warnings.append(&mut ledger.warnings);
    host.sources = std::mem::take(&mut ledger.sources);
    host.unmapped = std::mem::take(&mut ledger.unmapped);
    Ok(host)
}

pub(super) fn instances(program: &Program, block: &Rc<Block>) -> Vec<String> {
    let of_block = program.instances.iter().filter(|instance| Rc::ptr_eq(&instance.block, block));
    of_block.map(|instance| instance.name.to_string()).collect()
}

impl Host {
    fn bus(&mut self, fields: &mut Fields, instances: Vec<String>, ledger: &mut Ledger) -> Result<(), InputError> {
        let key = |name: &str| format!("buses[{}].{name}", self.buses.len());
        let bus = Bus {
            instances,
            arbitration_ns: fields.ns(ledger, "Arbitration time", &key("arbitration_ns"))?,
            read_ns_per_block: fields.block_ns(ledger, "Read block transfer time", &key("read_ns_per_block"))?,
            write_ns_per_block: fields.block_ns(ledger, "Write block transfer time", &key("write_ns_per_block"))?,
        };
        fields.finish_all(ledger, "a drive does not share its bus");
        self.buses.push(bus);
        Ok(())
    }

    fn controller(
        &mut self,
        fields: &mut Fields,
        instances: Vec<String>,
        ledger: &mut Ledger,
    ) -> Result<(), InputError> {
        let to = format!("controllers[{}].ns_per_block", self.controllers.len());
        let ns_per_block = fields.block_ns(ledger, "Bulk sector transfer time", &to)?;
        fields.finish_all(ledger, "only the controller's transfer time affects a drive");
        self.controllers.push(Controller { instances, ns_per_block });
        Ok(())
    }

    /// Returns, for each component on the `way` to a drive, the time per block towards the host and towards the drive,
    /// with its key in `sources`.
    fn block_times<'h>(&'h self, way: Option<&'h [&str]>) -> impl Iterator<Item = [(u64, String); 2]> + 'h {
        let on_way = move |instances: &[String]| {
            way.is_none_or(|names| instances.iter().any(|name| names.contains(&name.as_str())))
        };
        let buses = self.buses.iter().enumerate().filter(move |(_, bus)| on_way(&bus.instances));
        let controllers = self.controllers.iter().enumerate().filter(move |(_, one)| on_way(&one.instances));
        let bus_times = buses.map(|(index, bus)| {
            [
                (bus.read_ns_per_block, format!("buses[{index}].read_ns_per_block")),
                (bus.write_ns_per_block, format!("buses[{index}].write_ns_per_block")),
            ]
        });
        let controller_times = controllers
            .map(|(index, one)| [(); 2].map(|()| (one.ns_per_block, format!("controllers[{index}].ns_per_block"))));
        bus_times.chain(controller_times)
    }

    /// Applies the host to the drive of `block`: transfers run at the speed of the slowest component on the path. If
    /// drives of this description are attached to different buses, the slowest path counts.
    pub(super) fn apply(
        &self,
        program: &Program,
        block: &Rc<Block>,
        drive: &mut DriveDescription,
        ledger: &mut Ledger,
    ) {
        if let Some(driver) = self.driver {
            drive.interface.host_elevator = driver.elevator;
            drive.interface.host_tags = if driver.queueing { drive.queue.depth } else { 1 };
            for (to, from) in [("host_elevator", "driver.elevator"), ("host_tags", "driver.queueing")] {
                ledger.sources.insert(format!("interface.{to}"), self.sources[from].clone());
            }
        }
        for instance in instances(program, block) {
            let way = program.topologies.iter().find_map(|root| way_to(root, &instance));
            for [read, write] in self.block_times(way.as_deref()) {
                let interface = &mut drive.interface;
                for ((ns_per_block, key), own, name) in [
                    (read, &mut interface.read_ns_per_byte, "interface.read_ns_per_byte"),
                    (write, &mut interface.write_ns_per_byte, "interface.write_ns_per_byte"),
                ] {
                    let ns_per_byte = ns_per_block as f64 / f64::from(SECTOR_BYTES);
                    if ns_per_byte > *own {
                        *own = ns_per_byte;
                        ledger.add_source(name, &self.sources[&key]);
                    }
                }
            }
        }
    }
}

/// Returns the names of the components above the component called `name`.
fn way_to<'p>(root: &'p Component, name: &str) -> Option<Vec<&'p str>> {
    if &*root.name == name {
        return Some(Vec::new());
    }
    let mut way = root.children.iter().find_map(|child| way_to(child, name))?;
    way.push(&root.name);
    Some(way)
}
