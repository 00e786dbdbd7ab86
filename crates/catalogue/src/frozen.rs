//! [`Frozen`]: drive files with fixed derived values, so that other values can be varied.
//!
//! A figure of `[stated]` is fitted once, with the file unchanged. A varied file keeps the fitted values and no longer
//! states the figure; otherwise the solver would undo every variation. Values determined by the class of an SSD are
//! also fixed, so that, for example, adding capacitors does not add channels.

use headstack_sim::ssd::description::SsdDescription;
use headstack_workload::quantity::{Bytes, DurationNs, Rate};
use headstack_workload::{Document, InputError};
use toml::Table;

use crate::file::{DriveFile, StatedTable};
use crate::ssd::file::{Generation, SsdFile, StatedTable as StatedFigures};
use crate::ssd::has_estimated_writes;
use crate::{ResolvedDevice, key_error, resolve_device, whole};

/// Groups of alternative keys; a file states one key of a group. A varied key replaces a fixed one.
const ALTERNATIVES: [&[&str]; 5] = [
    &["flash.channel_rate", "flash.channel_ns_per_byte"],
    &["flash.raw", "flash.over_provisioning", "flash.blocks_per_plane"],
    &["controller.read_rate", "controller.read_ns_per_byte"],
    &["controller.write_rate", "controller.write_ns_per_byte"],
    &[
        "interface.generation",
        "interface.lanes",
        "interface.rate",
        "interface.read_ns_per_byte",
        "interface.write_ns_per_byte",
    ],
];

/// Keys that determine many values of the flash.
const KINDS_OF_FLASH: [&str; 2] = ["flash.generation", "flash.cells"];

/// Values of the flash that may have been derived from stated figures.
const SOLVED_OF_FLASH: [&str; 5] =
    ["flash.read", "flash.program", "flash.channel_ns_per_byte", "slc_cache.read", "slc_cache.program"];

/// A drive file without `[stated]` that describes the same drive.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Frozen {
    /// The file with the fixed values.
    table: Table,
    /// Keys of the fixed values.
    solved: Vec<String>,
    /// Figures that the file stated, such as `stated.random_read`.
    pub figures: Vec<String>,
}

impl Frozen {
    /// Fixes the values that a drive file does not state; `None` if nothing has to be fixed.
    pub fn of(table: &Table) -> Result<Option<Frozen>, InputError> {
        let figures: Vec<String> = ["stated", "sheet"]
            .iter()
            .filter_map(|name| Some((name, table.get(*name)?.as_table()?)))
            .flat_map(|(name, figures)| figures.keys().map(move |key| format!("{name}.{key}")))
            .collect();
        let is_ssd = table.contains_key("flash");
        if figures.is_empty() && !is_ssd {
            return Ok(None);
        }
        let text = toml::to_string(table).map_err(|error| whole("", &error.to_string()))?;
        let frozen = match resolve_device(&Document::parse("", &text)?)? {
            ResolvedDevice::Disk(disk) => Table::try_from(freeze_disk(&disk.file, &disk.solved)),
            ResolvedDevice::Ssd(ssd) => Table::try_from(freeze_ssd(&ssd.file, &ssd.description)),
            ResolvedDevice::Volume(_) => return Ok(None),
        };
        let mut frozen = frozen.map_err(|error| whole("", &error.to_string()))?;
        let mut solved = Vec::new();
        collect_keys(&frozen, "", &mut solved);
        solved.retain(|key| get(table, key).is_none() && !key.starts_with("sources."));
        add_sources(&mut frozen, &solved, &figures);
        Ok(Some(Frozen { table: frozen, solved, figures }))
    }

    /// Returns the file prepared for setting the `varied` keys.
    ///
    /// # Errors
    /// If a key determines values that were derived from stated figures.
    pub fn for_varying(&self, varied: &[&str]) -> Result<Table, InputError> {
        let mut table = self.table.clone();
        for key in varied {
            if KINDS_OF_FLASH.contains(key) {
                self.refuse_other_flash(key)?;
            }
            let groups = ALTERNATIVES.iter().filter(|group| group.contains(key));
            for other in groups.flat_map(|group| group.iter()).filter(|other| self.is_solved(other)) {
                remove(&mut table, other);
            }
        }
        Ok(table)
    }

    fn is_solved(&self, key: &str) -> bool {
        self.solved.iter().any(|solved| solved == key)
    }

    fn refuse_other_flash(&self, key: &str) -> Result<(), InputError> {
        let decided: Vec<&str> = SOLVED_OF_FLASH.into_iter().filter(|key| self.is_solved(key)).collect();
        if decided.is_empty() {
            return Ok(());
        }
        let message = format!(
            "cannot be varied: {} follow from {}; vary those keys, or use a file without [stated]",
            decided.join(", "),
            self.figures.join(", ")
        );
        Err(key_error(key, message))
    }
}

/// Returns the file with the fitted values and without `[stated]`.
fn freeze_disk(file: &DriveFile, solved: &DriveFile) -> DriveFile {
    let mut frozen = file.clone();
    frozen.seek.read_average = solved.seek.read_average;
    frozen.queue.committed = solved.queue.committed;
    frozen.buffer.write_cache = solved.buffer.write_cache;
    frozen.buffer.dirty_extents_max = solved.buffer.dirty_extents_max;
    frozen.stated = StatedTable::default();
    frozen
}

/// Returns the file with the values that follow from its stated figures or its class. Dies per channel, blocks and the
/// buffer still follow from the varied keys.
fn freeze_ssd(file: &SsdFile, description: &SsdDescription) -> SsdFile {
    let stated = &file.stated;
    let SsdDescription { flash, timing, slc_cache: slc, controller, interface, .. } = description;
    let mut frozen = SsdFile { stated: StatedFigures::default(), ..file.clone() };
    let sequential = stated.sequential_read.is_some() || stated.sequential_write.is_some();
    let writes = stated.random_write.is_some() || stated.sequential_write.is_some() || stated.after_slc.is_some();
    // Estimates of figures that the file omits depend on those that it states.
    let estimates_writes = (sequential || writes) && has_estimated_writes(file);
    let estimates_reads = sequential && stated.random_read.is_none() && slc.is_none();

    let table = &mut frozen.flash;
    let states_rate = table.channel_rate.is_some();
    let states_room = table.raw.is_some() || table.blocks_per_plane.is_some();
    let sense_is_solved =
        slc.is_none() && (stated.random_read.is_some() || stated.read_latency.is_some()) || estimates_reads;
    table.generation = table.generation.or(table.cells.map(|cells| Generation::of(cells, file.year)));
    hold(&mut table.channels, true, || flash.channels);
    hold(&mut table.read, sense_is_solved, || duration(timing.read_ns));
    hold(&mut table.program, writes || estimates_writes, || duration(timing.program_ns));
    hold(&mut table.channel_ns_per_byte, sequential && !states_rate, || timing.channel_ns_per_byte);
    hold(&mut table.over_provisioning, !states_room, || over_provisioning(description));
    if let Some(slc) = slc {
        let table = &mut frozen.slc_cache;
        hold(&mut table.read, stated.random_read.is_some() || sequential, || duration(slc.read_ns));
        hold(&mut table.program, stated.sequential_write.is_some() || estimates_writes, || duration(slc.program_ns));
        hold(&mut table.dynamic_size, true, || Bytes(slc.dynamic_bytes));
    }

    let table = &mut frozen.controller;
    let states_pace = (table.read_rate.is_some(), table.write_rate.is_some());
    let (reads, writes) = (stated.sequential_read.is_some(), stated.sequential_write.is_some());
    hold(&mut table.command, true, || duration(controller.command_ns));
    hold(&mut table.write_command, true, || duration(controller.write_command_ns));
    hold(&mut table.command_interval, true, || duration(controller.command_interval_ns));
    hold(&mut table.write_interval, stated.random_write.is_some() || sequential, || {
        duration(controller.write_interval_ns)
    });
    hold(&mut table.read_ns_per_byte, reads && !states_pace.0, || controller.read_ns_per_byte);
    hold(&mut table.write_ns_per_byte, (writes || estimates_writes) && !states_pace.1, || controller.write_ns_per_byte);

    let table = &mut frozen.interface;
    let states_times = table.read_ns_per_byte.is_some() || table.rate.is_some();
    hold(&mut table.rate, sequential && !states_times, || Rate((1e9 / interface.read_ns_per_byte).round()).into());
    frozen
}

/// Returns the over-provisioning that yields the same number of blocks. Half a block per plane is subtracted because
/// the number of blocks is rounded up.
fn over_provisioning(description: &SsdDescription) -> f64 {
    let flash = &description.flash;
    let block = f64::from(flash.page_bytes) * f64::from(flash.pages_per_block) * f64::from(flash.planes_per_die);
    let row = block * f64::from(flash.channels) * f64::from(flash.dies_per_channel);
    (f64::from(flash.blocks_per_plane) - 0.5) * row / description.capacity.logical_bytes as f64 - 1.0
}

fn hold<T>(key: &mut Option<T>, is_decided: bool, value: impl FnOnce() -> T) {
    if key.is_none() && is_decided {
        *key = Some(value());
    }
}

fn duration(ns: u64) -> DurationNs {
    DurationNs(i64::try_from(ns).expect("drive times are at most an hour"))
}

/// Collects the paths of all keys that hold a value.
fn collect_keys(table: &Table, parent: &str, collected: &mut Vec<String>) {
    for (key, value) in table {
        let path = if parent.is_empty() { key.clone() } else { format!("{parent}.{key}") };
        match value {
            toml::Value::Table(inner) => collect_keys(inner, &path, collected),
            toml::Value::String(_)
            | toml::Value::Integer(_)
            | toml::Value::Float(_)
            | toml::Value::Boolean(_)
            | toml::Value::Datetime(_)
            | toml::Value::Array(_) => collected.push(path),
        }
    }
}

fn add_sources(table: &mut Table, solved: &[String], figures: &[String]) {
    let Some(toml::Value::Table(sources)) = table.get_mut("sources") else { return };
    sources.retain(|key, _| !figures.iter().any(|figure| key == figure || figure.starts_with(&format!("{key}."))));
    for key in solved {
        let source = match figures {
            [] => "I as derived before another key was varied".to_owned(),
            figures => format!("I as derived with {} before another key was varied", figures.join(", ")),
        };
        sources.insert(key.clone(), toml::Value::String(source));
    }
}

/// Returns the value of a key path such as `flash.read`.
pub(crate) fn get<'t>(table: &'t Table, path: &str) -> Option<&'t toml::Value> {
    let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
    match (table.get(first)?, rest) {
        (value, None) => Some(value),
        (toml::Value::Table(inner), Some(rest)) => get(inner, rest),
        (_, Some(_)) => None,
    }
}

fn remove(table: &mut Table, path: &str) {
    let Some((first, rest)) = path.split_once('.') else {
        table.remove(path);
        return;
    };
    if let Some(toml::Value::Table(inner)) = table.get_mut(first) {
        remove(inner, rest);
    }
}
