//! [`Blueprint`]: a file of the catalogue or of a user from which descriptions with changed values are derived
//! repeatedly, for example for the points of a sweep.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Mutex;

use headstack_sim::device::DeviceDescription;
use headstack_sim::{Demand, SystemDescription};
use headstack_workload::{Document, InputError, Scenario, Workload, current_key};
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::array::{self, Changes};
use crate::demand::is_scenario;
use crate::frozen::{Frozen, get};
use crate::stack::Below;
use crate::stack::file::StackFile;
use crate::{
    ResolvedDevice, SCENARIOS, WORKLOADS, beside, find, key_error, read_document, resolve_device, stack,
    system_folders, unknown, whole,
};

/// The complete input of a description as text: the file that is varied, and the files that it names. It depends
/// neither on the version of the catalogue nor on files of the machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Blueprint {
    kind: BlueprintKind,
    /// The file as TOML; an array is already merged with its base files.
    text: String,
    /// Texts of the drive files that an array names by path.
    drives: BTreeMap<String, String>,
    /// Systems below a stack, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    systems: BTreeMap<String, Blueprint>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum BlueprintKind {
    Drive,
    Array,
    Stack,
    Workload,
    Scenario,
}

impl Blueprint {
    /// Returns the blueprint of a drive or array, named as in [`crate::load_system`]. `drives` holds paths of drives
    /// that may replace those of an array.
    ///
    /// # Errors
    /// If the name is unknown or a file cannot be read.
    pub fn for_system(name: &str, drives: &[&str]) -> Result<Blueprint, InputError> {
        let Some(document) = find(name, &system_folders())? else {
            return Err(unknown("drive, array or stack", name, &system_folders().map(|(_, entries)| entries)));
        };
        Blueprint::for_system_document(&document, drives)
    }

    fn for_system_document(document: &Document, drives: &[&str]) -> Result<Blueprint, InputError> {
        let text = document.text().to_owned();
        if stack::is_stack(document) {
            return Blueprint::for_stack(document, text);
        }
        if !array::is_array(document) {
            return Ok(Blueprint::with_text(BlueprintKind::Drive, text));
        }
        let file = array::flattened(document)?;
        let stated = file.drives.iter().flatten().map(|table| table.drive.as_str());
        let named = stated.chain(drives.iter().copied()).filter(|name| name.ends_with(".toml"));
        let read = |path: &str| Ok((path.to_owned(), read_document(path)?.text().to_owned()));
        let drives = named.map(read).collect::<Result<_, InputError>>()?;
        let text = toml::to_string(&file).map_err(|error| whole(document.file(), &error.to_string()))?;
        Ok(Blueprint { drives, ..Blueprint::with_text(BlueprintKind::Array, text) })
    }

    fn with_text(kind: BlueprintKind, text: String) -> Blueprint {
        Blueprint { kind, text, drives: BTreeMap::new(), systems: BTreeMap::new() }
    }

    fn for_stack(document: &Document, text: String) -> Result<Blueprint, InputError> {
        let StackFile { stack, zfs, ceph, .. } = document.read()?;
        let below = |name: String| {
            let path = if name.ends_with(".toml") { beside(document, &name) } else { name.clone() };
            Ok((name, Blueprint::for_system(&path, &[])?))
        };
        let names = [Some(stack.over), stack.journal].into_iter().flatten();
        let systems = names.chain(zfs.devices().chain(ceph.devices()).map(str::to_owned)).map(below);
        let systems = systems.collect::<Result<_, InputError>>()?;
        Ok(Blueprint { systems, ..Blueprint::with_text(BlueprintKind::Stack, text) })
    }

    /// Returns the blueprint of a workload or scenario, named as in [`crate::load_demand`].
    ///
    /// # Errors
    /// If the name is unknown or its file cannot be read.
    pub fn for_demand(name: &str) -> Result<Blueprint, InputError> {
        let Some(document) = find(name, &[("workloads", WORKLOADS), ("scenarios", SCENARIOS)])? else {
            return Err(unknown("workload or scenario", name, &[WORKLOADS, SCENARIOS]));
        };
        Ok(Blueprint::for_demand_document(&document))
    }

    fn for_demand_document(document: &Document) -> Blueprint {
        let kind = if is_scenario(document) { BlueprintKind::Scenario } else { BlueprintKind::Workload };
        Blueprint::with_text(kind, document.text().to_owned())
    }

    /// Returns the blueprint of a text, which is read again for every description derived from it.
    ///
    /// # Errors
    /// If the text is not TOML, or is an array whose drive files cannot be read.
    pub fn of_text(file: &str, text: &str) -> Result<Blueprint, InputError> {
        let document = Document::parse(file, text)?;
        if document.states("lines[0]") || is_scenario(&document) {
            return Ok(Blueprint::for_demand_document(&document));
        }
        Blueprint::for_system_document(&document, &[])
    }

    /// Returns the keys and values of the text as stated in the file.
    ///
    /// # Errors
    /// If the text is not TOML.
    pub fn stated(&self) -> Result<serde_json::Value, InputError> {
        toml::from_str(&self.text).map_err(|error| whole("", error.message()))
    }
}

/// A description derived from a blueprint.
#[allow(clippy::large_enum_variant)] // One a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Described {
    /// A drive or an array.
    System(SystemDescription),
    /// A workload or a scenario.
    Demand(Demand),
}

/// A parsed blueprint. Several threads may derive descriptions from it.
pub struct Drafter {
    blueprint: Blueprint,
    table: Table,
    /// Completed drives of arrays, by name.
    complete: Mutex<HashMap<String, ResolvedDevice>>,
    /// The drive file whose derived values were fixed last, and the result.
    frozen: Mutex<Option<(Table, Option<Frozen>)>>,
    /// Keys of a drive file that are known to change its description.
    effective: Mutex<HashSet<String>>,
}

impl Drafter {
    /// Parses a blueprint.
    ///
    /// # Errors
    /// If the blueprint's text is not TOML.
    pub fn new(blueprint: Blueprint) -> Result<Drafter, InputError> {
        // Parsed only for its error, which names the line.
        Document::parse("", &blueprint.text)?;
        let table = blueprint.text.parse().map_err(|error: toml::de::Error| whole("", error.message()))?;
        Ok(Drafter {
            blueprint,
            table,
            complete: Mutex::default(),
            frozen: Mutex::default(),
            effective: Mutex::default(),
        })
    }

    /// Returns the text of a file that yields the same description as [`Drafter::with`].
    ///
    /// # Errors
    /// Returns the same errors as [`Drafter::with`], and an error for a capacity, which a file cannot state.
    pub fn text_with(&self, values: &[(String, String)]) -> Result<String, InputError> {
        let (table, changes) = self.drafted(values)?;
        let text = toml::to_string(&table).map_err(|error| whole("", &error.to_string()))?;
        self.describe(&text, &changes).map_err(|error| InputError { line: None, ..error })?;
        if changes.usable.is_some() {
            return Err(key_error("usable", "a file has a fixed number of drives; use drives instead".to_owned()));
        }
        match self.blueprint.kind {
            BlueprintKind::Array => {
                let file = array::changed(&Document::parse("", &text)?, &changes, &|name| self.drive(name))?;
                toml::to_string(&file).map_err(|error| whole("", &error.to_string()))
            }
            BlueprintKind::Drive | BlueprintKind::Stack | BlueprintKind::Workload | BlueprintKind::Scenario => Ok(text),
        }
    }

    /// Returns the description with other values of keys such as `seek.read_average` or `lines[0].size`, or, for an
    /// array, with [`Changes`]. Values are written as in the file, but without quotation marks.
    ///
    /// # Errors
    /// If a key does not exist, cannot have the value, or the description is impossible. Errors name no line, because
    /// no file contains these values.
    pub fn with(&self, values: &[(String, String)]) -> Result<Described, InputError> {
        let (table, changes) = self.drafted(values)?;
        let text = toml::to_string(&table).map_err(|error| whole("", &error.to_string()))?;
        self.describe(&text, &changes).map_err(|error| InputError { line: None, ..error })
    }

    /// Returns the keys of a drive's `[stated]` table, such as `stated.random_read`, that no longer hold with other
    /// values of these keys. The varied drive keeps the values derived from those figures and is not fitted to them
    /// again.
    ///
    /// # Errors
    /// Returns the same errors as [`Drafter::with`].
    pub fn dropped_figures(&self, values: &[(String, String)]) -> Result<Vec<String>, InputError> {
        let is_base = |key: &str| is_stated(key) || NOT_SIMULATED.contains(&top(key));
        let (base, varied): (Vec<_>, Vec<_>) = values.iter().cloned().partition(|(key, _)| is_base(key));
        if self.blueprint.kind != BlueprintKind::Drive || varied.is_empty() {
            return Ok(Vec::new());
        }
        let mut table = self.table.clone();
        base.iter().try_for_each(|(key, text)| set(&mut table, key, text))?;
        match self.frozen(&table)? {
            Some(frozen) if without_power(self.with(values)?) != without_power(self.with(&base)?) => Ok(frozen.figures),
            Some(_) | None => Ok(Vec::new()),
        }
    }

    /// Returns a note on the `[stated]` figures of the system that these values invalidate; `None` if there are none.
    ///
    /// # Errors
    /// Returns the same errors as [`Drafter::with`].
    pub fn dropped_note(&self, system: &str, values: &[(String, String)]) -> Result<Option<String>, InputError> {
        let figures = self.dropped_figures(values)?;
        if figures.is_empty() {
            return Ok(None);
        }
        let drops =
            |value: &&(String, String)| self.dropped_figures(&[(*value).clone()]).is_ok_and(|one| !one.is_empty());
        let mut varied: Vec<&str> = values.iter().filter(drops).map(|(key, _)| key.as_str()).collect();
        if varied.is_empty() {
            // No value drops a figure alone, but their combination does.
            varied = values.iter().map(|(key, _)| key.as_str()).collect();
        }
        Ok(Some(note_of_dropped(system, &varied, &figures)))
    }

    fn drafted(&self, values: &[(String, String)]) -> Result<(Table, Changes), InputError> {
        let mut changes = Changes::default();
        let (mut stated, mut others) = (Vec::new(), Vec::new());
        let values: Vec<(String, &String)> = values.iter().map(|(key, text)| (current_key(key), text)).collect();
        for (key, text) in &values {
            match (Changes::NAMES.contains(&key.as_str()), self.blueprint.kind) {
                (true, BlueprintKind::Array) => changes.set(key, text)?,
                (true, BlueprintKind::Drive) => {
                    return Err(key_error(
                        key,
                        "the system is a single drive; only arrays have this option".to_owned(),
                    ));
                }
                (_, BlueprintKind::Drive) if !is_stated(key) => others.push((key.as_str(), text.as_str())),
                _ => stated.push((key.as_str(), text.as_str())),
            }
        }
        let mut table = self.table.clone();
        stated.iter().try_for_each(|(key, text)| set(&mut table, key, text))?;
        let table = self.vary(table, &others)?;
        Ok((table, changes))
    }

    /// Returns a drive file with other values of some keys; all other keys keep the values derived before.
    fn vary(&self, table: Table, values: &[(&str, &str)]) -> Result<Table, InputError> {
        let mut varied = table.clone();
        values.iter().try_for_each(|(key, text)| set(&mut varied, key, text))?;
        // A value equal to the stated one changes nothing.
        let is_other = |key: &str| get(&varied, key) != get(&table, key) || get(&table, key).is_none();
        let others: Vec<_> = values.iter().filter(|(key, _)| is_other(key)).copied().collect();
        if others.is_empty() {
            return Ok(varied);
        }
        for &(key, _) in &others {
            let together: Vec<_> = others.iter().filter(|(other, _)| top(other) == top(key)).copied().collect();
            self.check_effect(&table, &together, key)?;
        }
        let keys: Vec<&str> = others.iter().map(|&(key, _)| key).collect();
        self.set_frozen(&table, &keys, values)
    }

    /// Returns a drive file with its derived values fixed and some keys set.
    fn set_frozen(&self, table: &Table, keys: &[&str], values: &[(&str, &str)]) -> Result<Table, InputError> {
        let mut table = match self.frozen(table)? {
            Some(frozen) => frozen.for_varying(keys)?,
            None => table.clone(),
        };
        values.iter().try_for_each(|(key, text)| set(&mut table, key, text))?;
        Ok(table)
    }

    /// Returns an error if a key changes nothing because other keys of the file take precedence. If several keys of a
    /// table are varied together, such as all seek times, one with an effect is enough. A number without an effect, for
    /// example because of rounding, is also tried at other values. A name cannot be tried at other values, so it is
    /// never rejected.
    fn check_effect(&self, table: &Table, together: &[(&str, &str)], key: &str) -> Result<(), InputError> {
        let keys: Vec<&str> = together.iter().map(|&(key, _)| key).collect();
        let effective = || self.effective.lock().expect("no thread panics while it holds the lock");
        if NOT_SIMULATED.contains(&top(key)) || effective().contains(&keys.join(" ")) {
            return Ok(());
        }
        let described = |table: &Table| {
            let text = toml::to_string(table).map_err(|error| whole("", &error.to_string()))?;
            self.describe(&text, &Changes::default()).map(without_power)
        };
        let base = described(table)?;
        let varied = |values: &[(&str, &str)]| described(&self.set_frozen(table, &keys, values)?);
        // An error is reported for all varied keys together.
        let Ok(described) = varied(together) else { return Ok(()) };
        if described == base {
            let text = together.iter().find(|(other, _)| *other == key).map_or("", |(_, text)| text);
            let around = SCALES.iter().filter_map(|factor| scaled(text, *factor));
            let mut others = around.filter_map(|text| varied(&[(key, &text)]).ok()).peekable();
            if others.peek().is_some() && others.all(|other| other == base) {
                let message = "has no effect, because other keys of this file override it; vary those keys";
                return Err(key_error(key, message.to_owned()));
            }
        }
        effective().insert(keys.join(" "));
        Ok(())
    }

    fn frozen(&self, table: &Table) -> Result<Option<Frozen>, InputError> {
        let last = || self.frozen.lock().expect("no thread panics while it holds the lock");
        if let Some((_, frozen)) = last().as_ref().filter(|(other, _)| other == table) {
            return Ok(frozen.clone());
        }
        let frozen = Frozen::of(table)?;
        *last() = Some((table.clone(), frozen.clone()));
        Ok(frozen)
    }

    fn describe(&self, text: &str, changes: &Changes) -> Result<Described, InputError> {
        Ok(match self.blueprint.kind {
            BlueprintKind::Drive => {
                let drive = resolve_device(&Document::parse("", text)?)?;
                Described::System(SystemDescription::Drive(drive.description()))
            }
            BlueprintKind::Array => {
                let document = Document::parse("", text)?;
                let array = array::resolve_with(&document, changes, &|name| self.drive(name))?;
                Described::System(SystemDescription::Array(array.description))
            }
            BlueprintKind::Stack => {
                let stack = stack::resolve(&Document::parse("", text)?, &|name| self.below(name))?;
                Described::System(stack.description)
            }
            BlueprintKind::Workload => Described::Demand(Workload::from_toml("", text)?.into()),
            BlueprintKind::Scenario => Described::Demand(Scenario::from_toml("", text)?.into()),
        })
    }

    /// Returns a system by the name that a stack uses.
    fn below(&self, name: &str) -> Result<Below, InputError> {
        let Some(blueprint) = self.blueprint.systems.get(name) else {
            return crate::load_system(name, &Changes::default()).map(Below::from);
        };
        if let BlueprintKind::Drive = blueprint.kind {
            let drive = resolve_device(&Document::parse("", &blueprint.text)?)?;
            return Ok(Below::from(crate::ResolvedSystem::Drive(drive)));
        }
        match Drafter::new(blueprint.clone())?.describe(&blueprint.text, &Changes::default())? {
            Described::System(description) => Ok(Below { description, volume: None }),
            Described::Demand(_) => Err(whole(name, "this is a workload; a drive, array or stack is required")),
        }
    }

    /// Returns a drive by the name that an array uses.
    fn drive(&self, name: &str) -> Result<ResolvedDevice, InputError> {
        if let Some(drive) = self.complete.lock().expect("no thread panics while it holds the lock").get(name) {
            return Ok(drive.clone());
        }
        let drive = match self.blueprint.drives.get(name) {
            Some(text) => resolve_device(&Document::parse(name, text)?)?,
            None => crate::load_device(name)?,
        };
        self.complete.lock().expect("no thread panics while it holds the lock").insert(name.to_owned(), drive.clone());
        Ok(drive)
    }
}

/// Returns a note that values of the varied keys invalidate stated figures of a system.
pub fn note_of_dropped(system: &str, varied: &[impl AsRef<str>], figures: &[String]) -> String {
    let varied: Vec<&str> = varied.iter().map(AsRef::as_ref).collect();
    format!(
        "{system}: changing {} invalidates the stated figures {}; values derived from these figures are kept",
        varied.join(", "),
        figures.join(", ")
    )
}

/// Tables and keys of a drive file that do not affect the simulation.
const NOT_SIMULATED: [&str; 10] =
    ["name", "vendor", "model", "notes", "endurance", "power", "price", "reliability", "sources", "twin"];

/// Factors by which a number is scaled to find out whether its key has an effect.
const SCALES: [f64; 4] = [0.5, 2.0, 0.1, 10.0];

/// Scales a quantity in text form; `None` if the text does not begin with a number.
fn scaled(text: &str, factor: f64) -> Option<String> {
    let digits = text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '_' | '-'))).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let value = number.replace('_', "").parse::<f64>().ok()? * factor;
    Some(if unit.is_empty() && !number.contains('.') { format!("{}", value.round()) } else { format!("{value}{unit}") })
}

/// Removes the parts of a description that affect no rate.
fn without_power(mut described: Described) -> Described {
    if let Described::System(SystemDescription::Drive(device)) = &mut described {
        match device {
            DeviceDescription::Disk(disk) => disk.power = None,
            DeviceDescription::Ssd(ssd) => ssd.power = None,
            DeviceDescription::Volume(_) => {}
        }
    }
    described
}

/// Whether a key is a stated figure of the data sheet.
fn is_stated(key: &str) -> bool {
    ["stated", "sheet"].contains(&top(key))
}

/// Returns the first step of a key.
fn top(key: &str) -> &str {
    key.split(['.', '[']).next().unwrap_or(key)
}

/// A step of a key path.
enum Step<'k> {
    Key(&'k str),
    Index(usize),
}

/// Splits a path such as `lines[0].size` into its steps.
fn steps(path: &str) -> Result<Vec<Step<'_>>, InputError> {
    let wrong =
        || key_error(path, "this is not a key; use a form such as seek.read_average or lines[0].size".to_owned());
    let mut steps = Vec::new();
    for part in path.split('.') {
        let (name, indices) = part.split_at(part.find('[').unwrap_or(part.len()));
        if name.is_empty() {
            return Err(wrong());
        }
        steps.push(Step::Key(name));
        for index in indices.split('[').skip(1) {
            let index = index.strip_suffix(']').and_then(|index| index.parse().ok()).ok_or_else(wrong)?;
            steps.push(Step::Index(index));
        }
    }
    Ok(steps)
}

/// Sets the value of a key and creates missing tables on its path.
fn set(table: &mut Table, path: &str, text: &str) -> Result<(), InputError> {
    let steps = steps(path)?;
    let mut steps = steps.iter();
    let Some(Step::Key(first)) = steps.next() else { unreachable!("a path starts with a key") };
    let mut at = table.entry(*first).or_insert_with(|| Value::Table(Table::new()));
    let mut is_new = false;
    for step in steps {
        at = match (step, at) {
            (Step::Key(key), Value::Table(table)) => {
                is_new = !table.contains_key(*key);
                table.entry(*key).or_insert_with(|| Value::Table(Table::new()))
            }
            (Step::Index(index), Value::Array(values)) => {
                is_new = false;
                let count = values.len();
                let missing =
                    || key_error(path, format!("there is no entry {index}; the list has {count}, counted from 0"));
                values.get_mut(*index).ok_or_else(missing)?
            }
            (Step::Index(_), _) => return Err(key_error(path, "this is not a list".to_owned())),
            // The value may have several forms; the new value has another form than the present one.
            (Step::Key(key), other) => {
                *other = Value::Table(Table::new());
                is_new = true;
                let Value::Table(table) = other else { unreachable!("the value was just made a table") };
                table.entry(*key).or_insert_with(|| Value::Table(Table::new()))
            }
        };
    }
    let stated = (!is_new).then_some(&*at);
    let value = value(path, text, stated)?;
    *at = value;
    Ok(())
}

/// Parses a value. Unless the present value is text, tries TOML first; anything else is text.
fn value(path: &str, text: &str, stated: Option<&Value>) -> Result<Value, InputError> {
    if text.starts_with(['[', '{']) {
        let line: Table = format!("value = {text}").parse().map_err(|error: toml::de::Error| {
            key_error(path, format!("{text} is not a value: {}", error.message().replace('\n', " ")))
        })?;
        return Ok(line["value"].clone());
    }
    if matches!(stated, Some(Value::String(_))) {
        return Ok(Value::String(text.to_owned()));
    }
    let number = || text.parse().ok().filter(|number: &f64| number.is_finite()).map(Value::Float);
    Ok(match text {
        "true" => Value::Boolean(true),
        "false" => Value::Boolean(false),
        _ => text.parse().ok().map(Value::Integer).or_else(number).unwrap_or_else(|| Value::String(text.to_owned())),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn varied(drafter: &Drafter, values: &[(&str, &str)]) -> Result<Described, InputError> {
        let values: Vec<_> = values.iter().map(|&(key, text)| (key.to_owned(), text.to_owned())).collect();
        drafter.with(&values)
    }

    fn drafter(name: &str) -> Drafter {
        Drafter::new(Blueprint::for_system(name, &[]).unwrap()).unwrap()
    }

    #[test]
    fn an_unchanged_blueprint_equals_the_catalogue() {
        for entry in crate::drives().iter().chain(crate::arrays()).chain(crate::volumes()) {
            let loaded = crate::load_system(entry.id, &Changes::default()).unwrap().description();
            assert_eq!(varied(&drafter(entry.id), &[]).unwrap(), Described::System(loaded), "{}", entry.id);
        }
        for entry in crate::workloads().iter().chain(crate::scenarios()) {
            let drafter = Drafter::new(Blueprint::for_demand(entry.id).unwrap()).unwrap();
            let loaded = crate::load_demand(entry.id).unwrap();
            assert_eq!(varied(&drafter, &[]).unwrap(), Described::Demand(loaded), "{}", entry.id);
        }
    }

    #[test]
    fn values_are_those_of_a_file_that_states_them() {
        let text = crate::drives().iter().find(|entry| entry.id == "cheetah-x15-36lp").unwrap().text;
        let changed = text.replace("\"15000rpm\"", "\"7200rpm\"").replace("depth = 64", "depth = 8\npolicy = \"fcfs\"");
        let expected = resolve_device(&Document::parse("", &changed).unwrap()).unwrap().description();
        let values = [("spindle.speed", "7200rpm"), ("queue.depth", "8"), ("queue.policy", "fcfs")];
        let changed = varied(&drafter("cheetah-x15-36lp"), &values).unwrap();
        assert_eq!(changed, Described::System(SystemDescription::Drive(expected)));
    }

    #[test]
    fn fixing_derived_values_does_not_change_a_drive() {
        for entry in crate::drives() {
            let drafter = drafter(entry.id);
            let Some(frozen) = drafter.frozen(&drafter.table).unwrap() else { continue };
            let text = toml::to_string(&frozen.for_varying(&[]).unwrap()).unwrap();
            assert!(!text.contains("[stated"), "{}: {text}", entry.id);
            let again = drafter.describe(&text, &Changes::default()).unwrap();
            assert_eq!(again, varied(&drafter, &[]).unwrap(), "{}: {text}", entry.id);
        }
    }

    #[test]
    fn a_varied_key_drops_stated_figures_but_keeps_derived_values() {
        let pro = drafter("990-pro-2tb");
        let dies = |channels: &str| {
            let Described::System(SystemDescription::Drive(DeviceDescription::Ssd(ssd))) =
                varied(&pro, &[("flash.channels", channels)]).unwrap()
            else {
                panic!()
            };
            (ssd.timing.read_ns, ssd.timing.program_ns, ssd.timing.channel_ns_per_byte, ssd.interface.read_ns_per_byte)
        };
        assert_eq!(dies("2"), dies("8"), "the flash is that of the file with 8 channels");
        let dropped = |drafter: &Drafter, key: &str, value: &str| {
            drafter.dropped_figures(&[(key.to_owned(), value.to_owned())]).unwrap().join(" ")
        };
        assert!(dropped(&pro, "flash.channels", "2").contains("stated.random_read stated.random_write"), "2 channels");
        assert_eq!(dropped(&pro, "flash.channels", "8"), "", "8 is what the file states");
        assert_eq!(dropped(&pro, "power.active_w", "3"), "", "power decides no rate");
        assert_eq!(dropped(&drafter("cheetah-x15-36lp"), "queue.depth", "8"), "", "no figure is stated");
        let exos = drafter("exos-x16-16tb");
        assert_eq!(dropped(&exos, "seek.read_average", "4ms"), "stated.random_read stated.random_write");
        assert_eq!(dropped(&exos, "stated.random_read.iops", "180"), "", "a figure that is varied is solved for");
        let note = |drafter: &Drafter, values: &[(&str, &str)]| {
            let values: Vec<_> = values.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
            drafter.dropped_note("a drive", &values).unwrap()
        };
        assert_eq!(
            note(&exos, &[("seek.read_average", "4ms")]).unwrap(),
            "a drive: changing seek.read_average invalidates the stated figures stated.random_read, stated.random_write; \
             values derived from these figures are kept"
        );
        let note_text = note(&exos, &[("stated.random_read.iops", "180"), ("seek.read_average", "4ms")]).unwrap();
        assert!(note_text.starts_with("a drive: changing seek.read_average invalidates "), "{note_text}");
        assert_eq!(note(&pro, &[("power.active_w", "3")]), None);
        assert_eq!(note(&pro, &[]), None);
        let again = varied(&exos, &[("stated.random_read.iops", "150")]).unwrap();
        assert_ne!(again, varied(&exos, &[]).unwrap());
    }

    #[test]
    fn keys_that_other_keys_decide_are_refused() {
        for (id, key, value, words) in [
            // The drive's file states the curve.
            ("cheetah-9lp", "seek.read_average", "5ms", "has no effect"),
            ("990-pro-2tb", "flash.generation", "qlc-144", "follow from stated.after_slc, stated.random_read"),
            ("990-pro-2tb", "flash.raw", "1TB", "above the capacity"),
        ] {
            let error = varied(&drafter(id), &[(key, value)]).unwrap_err().to_string();
            assert!(error.starts_with(key) && error.contains(words), "{error}");
        }
    }

    #[test]
    fn a_key_of_the_base_of_an_array_can_be_varied() {
        let drafter = drafter("demartek-512n-awc-raid5-24");
        let Described::System(SystemDescription::Array(array)) = varied(&drafter, &[]).unwrap() else { panic!() };
        let Described::System(SystemDescription::Array(other)) =
            varied(&drafter, &[("drives[0].drive", "cheetah-x15-36lp")]).unwrap()
        else {
            panic!()
        };
        assert_eq!(array.members.len(), other.members.len());
        assert_ne!(array.devices[0], other.devices[0]);
    }

    #[test]
    fn impossible_values_are_reported_by_key() {
        let drafter = drafter("cheetah-x15-36lp");
        for (key, value, expected) in [
            ("spindel.speed", "7200rpm", "spindel: unknown key; did you mean `spindle`?"),
            ("spindle.sped", "7200rpm", "spindle.sped: unknown key; did you mean `speed`?"),
            ("spindle.speed", "fast", "spindle.speed: \"fast\" is not a spindle speed"),
            ("name[0]", "x", "name[0]: this is not a list"),
            ("spindle..speed", "1rpm", "spindle..speed: this is not a key"),
            ("seek.read_average", "30ms", "seek.read_average"),
        ] {
            let error = varied(&drafter, &[(key, value)]).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
        let workload = Drafter::new(Blueprint::for_demand("file-server").unwrap()).unwrap();
        let error = varied(&workload, &[("lines[8].size", "4KiB")]).unwrap_err().to_string();
        assert_eq!(error, "lines[8].size: there is no entry 8; the list has 8, counted from 0");
    }
}
