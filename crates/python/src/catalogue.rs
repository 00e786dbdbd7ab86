//! Loads drives, arrays, workloads and scenarios by name or file.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex};

use headstack_catalogue::{
    Changes, Entry as CatalogueEntry, Fit, ResolvedArray, ResolvedDevice, ResolvedSystem, Study,
};
use headstack_sim::device::DeviceDescription;
use headstack_sim::faults::Schedule;
use headstack_sim::{Demand, Model, SystemDescription};
use headstack_workload::{Scenario, Span, Workload};
use pyo3::prelude::*;
use serde::Serialize;
use serde_json::{Value, json};

use crate::error::{input_error, json_error};
use crate::plain::{Plain, plain};

/// Parses the text of a `study.toml`; returns the study, and the line of each key by the key's path. Raises
/// `InputError`.
#[pyfunction]
pub fn read_study(file: &str, text: &str) -> PyResult<(Plain<Study>, BTreeMap<String, usize>)> {
    let (study, lines) = Study::from_toml(file, text).map_err(input_error)?;
    Ok((Plain(study), lines))
}

/// Parses the text of an inverse study; returns the study, and the line of each key by the key's path. Raises
/// `InputError`.
#[pyfunction]
pub fn read_fit(file: &str, text: &str) -> PyResult<(Plain<Fit>, BTreeMap<String, usize>)> {
    let (fit, lines) = Fit::from_toml(file, text).map_err(input_error)?;
    Ok((Plain(fit), lines))
}

/// Size of a system.
#[pyclass(frozen, get_all, module = "headstack._native")]
pub struct SystemSize {
    /// Exported bytes.
    capacity_bytes: u64,
    /// Largest physical sector size in bytes.
    sector_bytes: u32,
    /// Number of drives; for an array, the number of drives of its first kind.
    drives: usize,
    /// Name, first byte and length in bytes of each LUN.
    luns: Vec<(String, u64, u64)>,
}

/// Returns the size of the system with this description. Raises `InputError`.
#[pyfunction]
pub fn system_size(system: Plain<SystemDescription>) -> SystemSize {
    let Plain(system) = system;
    let place = |(name, span): (String, Span)| (name, span.start_bytes, span.length_bytes);
    SystemSize {
        capacity_bytes: system.capacity_bytes(),
        sector_bytes: system.sector_bytes(),
        drives: system.drives(),
        luns: system.luns().into_iter().map(place).collect(),
    }
}

/// Parses a range of a system: "36.7GB" (from the start), "10GB..20GB" or "0%..50%". Returns its first byte and its
/// length in bytes; the ends are rounded down to whole sectors. Raises `InputError`.
#[pyfunction]
pub fn parse_range(text: &str, capacity_bytes: u64, sector_bytes: u32) -> PyResult<(u64, u64)> {
    let span = Span::parse(text, capacity_bytes, sector_bytes).map_err(input_error)?;
    Ok((span.start_bytes, span.length_bytes))
}

/// Returns a hash of all files of the catalogue.
#[pyfunction]
pub fn catalogue_hash() -> String {
    headstack_catalogue::hash()
}

/// Returns the ids of the drives in the catalogue.
#[pyfunction]
pub fn drive_ids() -> Vec<&'static str> {
    headstack_catalogue::drives().iter().map(|entry| entry.id).collect()
}

/// Returns the text of the catalogue file of a drive, a volume or an instance's local disks. Raises `InputError`.
#[pyfunction]
pub fn drive_toml(id: &str) -> PyResult<&'static str> {
    let mut clouds = headstack_catalogue::volumes().iter().chain(headstack_catalogue::instances());
    let entry_found = clouds.find(|entry| entry.id == id);
    entry_found.map_or_else(|| text_of(headstack_catalogue::drives(), "drive", id), |entry| Ok(entry.text))
}

/// Returns the ids of the cloud volumes in the catalogue.
#[pyfunction]
pub fn volume_ids() -> Vec<&'static str> {
    headstack_catalogue::volumes().iter().map(|entry| entry.id).collect()
}

/// Returns the cloud instances whose local disks are in the catalogue.
#[pyfunction]
pub fn instance_ids() -> Vec<&'static str> {
    headstack_catalogue::instances().iter().map(|entry| entry.id).collect()
}

/// Returns the ids of the arrays in the catalogue.
#[pyfunction]
pub fn array_ids() -> Vec<&'static str> {
    headstack_catalogue::arrays().iter().map(|entry| entry.id).collect()
}

/// Returns the text of the catalogue file of an array. Raises `InputError`.
#[pyfunction]
pub fn array_toml(id: &str) -> PyResult<&'static str> {
    text_of(headstack_catalogue::arrays(), "array", id)
}

/// Returns the ids of the stacks in the catalogue.
#[pyfunction]
pub fn stack_ids() -> Vec<&'static str> {
    headstack_catalogue::stacks().iter().map(|entry| entry.id).collect()
}

/// Returns the text of the catalogue file of a stack. Raises `InputError`.
#[pyfunction]
pub fn stack_toml(id: &str) -> PyResult<&'static str> {
    text_of(headstack_catalogue::stacks(), "stack", id)
}

/// Returns the text of the catalogue file of a workload. Raises `InputError`.
#[pyfunction]
pub fn workload_toml(id: &str) -> PyResult<&'static str> {
    text_of(headstack_catalogue::workloads(), "workload", id)
}

/// Returns the ids of the scenarios in the catalogue.
#[pyfunction]
pub fn scenario_ids() -> Vec<&'static str> {
    headstack_catalogue::scenarios().iter().map(|entry| entry.id).collect()
}

/// Returns the text of the catalogue file of a scenario. Raises `InputError`.
#[pyfunction]
pub fn scenario_toml(id: &str) -> PyResult<&'static str> {
    text_of(headstack_catalogue::scenarios(), "scenario", id)
}

fn text_of(entries: &'static [CatalogueEntry], kind: &str, id: &str) -> PyResult<&'static str> {
    entries.iter().find(|entry| entry.id == id).map(|entry| entry.text).ok_or_else(|| {
        input_error(format!("no {kind} with the id \"{id}\" in the catalogue; `headstack {kind}s list` names them"))
    })
}

/// Returns the ids of the workloads in the catalogue.
#[pyfunction]
pub fn workload_ids() -> Vec<&'static str> {
    headstack_catalogue::workloads().iter().map(|entry| entry.id).collect()
}

/// Loads a drive from the catalogue or a TOML file; returns its kind (`disk` or `ssd`), its description, the derived
/// values with their rules, and the stated values with their sources. Raises `InputError`.
#[pyfunction]
pub fn load_drive<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    let load = || drive_document(&headstack_catalogue::load_device(name).map_err(input_error)?);
    // Drives of the catalogue do not change, but files may.
    if name.ends_with(".toml") {
        return plain(py, &load()?);
    }
    let mut shipped = SHIPPED_DRIVES.lock().expect("the lock is not poisoned");
    match shipped.entry(name.to_owned()) {
        Entry::Occupied(document) => plain(py, document.get()),
        Entry::Vacant(place) => plain(py, place.insert(load()?)),
    }
}

/// Cached documents of the catalogue's drives, since completing a document takes longer than a short run.
static SHIPPED_DRIVES: LazyLock<Mutex<HashMap<String, Value>>> = LazyLock::new(Mutex::default);

/// Loads an array from the catalogue or a TOML file; returns the same keys as `load_drive`. `changes` may set `drive`
/// and `drives` of its first table of drives, `level` of its groups, and `usable` bytes instead of a number of drives.
/// Raises `InputError`.
#[pyfunction]
#[pyo3(signature = (name, changes=BTreeMap::new()))]
pub fn load_array(name: &str, changes: BTreeMap<String, String>) -> PyResult<Plain<Value>> {
    let resolved = headstack_catalogue::load_array(name, &read_changes(&changes)?).map_err(input_error)?;
    array_document(&resolved).map(Plain)
}

fn read_changes(texts: &BTreeMap<String, String>) -> PyResult<Changes> {
    let mut changes = Changes::default();
    for (name, text) in texts {
        changes.set(name, text).map_err(input_error)?;
    }
    Ok(changes)
}

/// Loads a drive, array or stack, under its kind, for example `{"drive": ...}`. `changes` are as for `load_array`.
/// Raises `InputError`.
#[pyfunction]
#[pyo3(signature = (name, changes=BTreeMap::new()))]
pub fn load_system(name: &str, changes: BTreeMap<String, String>) -> PyResult<Plain<Value>> {
    Ok(Plain(match headstack_catalogue::load_system(name, &read_changes(&changes)?).map_err(input_error)? {
        ResolvedSystem::Drive(drive) => json!({ "drive": drive_document(&drive)? }),
        ResolvedSystem::Array(array) => json!({ "array": array_document(&array)? }),
        ResolvedSystem::Stack(stack) => json!({ "stack": {
            "description": stack.description,
            "derived": stack.derived,
            "stated": stated(&stack.file, Lists::Entered, |key| stack.source(key))?,
        }}),
    }))
}

fn drive_document(resolved: &ResolvedDevice) -> PyResult<Value> {
    Ok(match resolved {
        ResolvedDevice::Disk(disk) => json!({
            "kind": "disk",
            "description": disk.description,
            "derived": disk.derived,
            "stated": stated(&disk.file, Lists::Counted, |key| disk.source(key))?,
        }),
        ResolvedDevice::Ssd(ssd) => json!({
            "kind": "ssd",
            "description": ssd.description,
            "derived": ssd.derived,
            "stated": stated(&ssd.file, Lists::Counted, |key| ssd.source(key))?,
        }),
        ResolvedDevice::Volume(volume) => json!({
            "kind": "volume",
            "description": volume.description,
            "derived": volume.derived,
            "stated": stated(&volume.file, Lists::Counted, |key| volume.source(key))?,
        }),
    })
}

fn array_document(resolved: &ResolvedArray) -> PyResult<Value> {
    Ok(json!({
        "description": resolved.description,
        "derived": resolved.derived,
        "stated": stated(&resolved.file, Lists::Entered, |key| resolved.source(key))?,
    }))
}

/// How lists of tables are displayed.
#[derive(Clone, Copy, PartialEq)]
enum Lists {
    /// As one value, the number of tables.
    Counted,
    /// Each value of each table separately.
    Entered,
}

/// Returns the values stated in a file: key, value as text, and source of each.
fn stated<'s>(file: &impl Serialize, lists: Lists, source: impl Fn(&str) -> Option<&'s str>) -> PyResult<Vec<Value>> {
    let mut file = serde_json::to_value(file).map_err(json_error)?;
    if let Some(table) = file.as_object_mut() {
        table.remove("sources");
    }
    let mut values = Vec::new();
    flatten("", &file, lists, &mut |key, value| {
        values.push(json!({ "key": key, "value": value, "source": source(key) }));
    });
    Ok(values)
}

/// Calls `each` with the path of every value in nested tables; a list of values counts as one value.
fn flatten(path: &str, value: &Value, lists: Lists, each: &mut impl FnMut(&str, String)) {
    match value {
        Value::Null => {}
        Value::Object(table) => {
            for (key, value) in table {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                flatten(&path, value, lists, each);
            }
        }
        Value::Array(entries) if lists == Lists::Entered && entries.iter().all(Value::is_object) => {
            for (index, entry) in entries.iter().enumerate() {
                flatten(&format!("{path}[{index}]"), entry, lists, each);
            }
        }
        Value::Array(entries) if entries.iter().any(|entry| entry.is_object() || entry.is_array()) => {
            each(path, format!("{} entries", entries.len()));
        }
        Value::Array(entries) => {
            let texts: Vec<String> = entries.iter().map(text).collect();
            each(path, format!("[{}]", texts.join(", ")));
        }
        other => each(path, text(other)),
    }
}

/// Returns a value as text without quotation marks.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Loads the fault schedule at `path`, with the map files that it names. With `system`, only faults that can affect
/// this system are accepted. Raises `InputError`.
#[pyfunction]
#[pyo3(signature = (path, system=None))]
pub fn load_faults(path: PathBuf, system: Option<Plain<SystemDescription>>) -> PyResult<Plain<Schedule>> {
    let schedule = match system {
        None => headstack_catalogue::read_faults(&path),
        Some(Plain(system)) => headstack_catalogue::load_faults(&path, &Model::System(system)),
    };
    schedule.map(Plain).map_err(input_error)
}

/// Returns the description of a device as a TOML file in the form of the catalogue, with the sources of its values by
/// key. Raises `InputError`.
#[pyfunction]
pub fn drive_to_toml(description: Plain<DeviceDescription>, sources: BTreeMap<String, String>) -> String {
    match description.0 {
        DeviceDescription::Disk(disk) => headstack_catalogue::description_to_toml(&disk, &sources),
        DeviceDescription::Ssd(ssd) => headstack_catalogue::ssd::description_to_toml(&ssd, &sources),
        DeviceDescription::Volume(volume) => headstack_catalogue::volume::description_to_toml(&volume, &sources),
    }
}

/// Loads a workload by its catalogue id, by the name of its access specification, or from a TOML file. Raises
/// `InputError`.
#[pyfunction]
pub fn load_workload(name: &str) -> PyResult<Plain<Workload>> {
    headstack_catalogue::load_workload(name).map(Plain).map_err(input_error)
}

/// Loads a scenario by its catalogue id, or from a TOML file. Raises `InputError`.
#[pyfunction]
pub fn load_scenario(name: &str) -> PyResult<Plain<Scenario>> {
    headstack_catalogue::load_scenario(name).map(Plain).map_err(input_error)
}

/// Loads a workload or a scenario, under its kind: `{"workload": ...}` or `{"scenario": ...}`. Raises `InputError`.
#[pyfunction]
pub fn load_demand(name: &str) -> PyResult<Plain<Value>> {
    Ok(Plain(match headstack_catalogue::load_demand(name).map_err(input_error)? {
        Demand::Workload(workload) => json!({ "workload": workload }),
        Demand::Scenario(scenario) => json!({ "scenario": scenario }),
    }))
}

/// Returns a scenario with `clients` clients in every stream that has a number of clients. Raises `InputError` if no
/// stream has one.
#[pyfunction]
pub fn scenario_with_clients(scenario: Plain<Scenario>, clients: u64) -> PyResult<Plain<Scenario>> {
    headstack_catalogue::options::scenario_with_clients(&scenario.0, clients).map(Plain).map_err(input_error)
}

/// Returns for each stream of a scenario whether its clients change stored data. Raises `InputError`.
#[pyfunction]
pub fn scenario_writes(scenario: Plain<Scenario>) -> Vec<bool> {
    scenario.0.streams.iter().map(|stream| stream.kind.writes()).collect()
}

/// Returns a workload with all defaults filled in. Raises `InputError`.
#[pyfunction]
pub fn complete_workload(workload: Plain<Workload>) -> PyResult<Plain<Workload>> {
    workload.0.validate().map_err(input_error)?;
    Ok(workload)
}

/// Returns the drives of DiskSim parameter files. Raises `InputError`.
#[pyfunction]
pub fn import_disksim(path: &str) -> PyResult<Plain<Value>> {
    let imported = headstack_disksim::import(Path::new(path)).map_err(input_error)?;
    let drives: Vec<Value> = imported
        .drives
        .iter()
        .map(|drive| {
            json!({
                "name": drive.name,
                "description": drive.description,
                "sources": drive.sources,
                "unmapped": drive.unmapped.iter().map(unmapped_line).collect::<Vec<_>>(),
            })
        })
        .collect();
    let refused: Vec<Value> =
        imported.refused.iter().map(|(name, error)| json!({ "name": name, "error": error.to_string() })).collect();
    Ok(Plain(json!({ "drives": drives, "refused": refused, "warnings": imported.warnings })))
}

/// Formats an omitted parameter as `FILE:LINE: BLOCK: PARAMETER = VALUE: reason for omission`.
pub fn unmapped_line(unmapped: &headstack_disksim::Unmapped) -> String {
    let headstack_disksim::Unmapped { file, line, block, parameter, value, why } = unmapped;
    format!("{file}:{line}: {block}: {parameter} = {value}: {why}")
}

/// Returns the current name of a column of a table, and notes an old name for [`take_notes_of_renamed_keys`].
#[pyfunction]
pub fn current_column(name: &str) -> &str {
    headstack_workload::current_column(name)
}

/// Returns the notes on old names of keys and columns that were read since the last call.
#[pyfunction]
pub fn take_notes_of_renamed_keys() -> Vec<String> {
    headstack_workload::take_notes_of_renamed_keys()
}
