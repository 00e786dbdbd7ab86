//! A file of the catalogue or of a user's with some of its values changed, over and over: the points of a sweep.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;

use headstack_sim::{Demand, SystemDescription};
use headstack_workload::{Document, InputError, Scenario, Workload};
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::array::{self, Changes};
use crate::demand::is_scenario;
use crate::{
    ARRAYS, DRIVES, ResolvedDevice, SCENARIOS, VOLUMES, WORKLOADS, find, key_error, read_document, resolve_device,
    unknown, whole,
};

/// Everything that a description follows from, as text: what is to be varied, and the files that it names. It needs
/// neither the catalogue of another version nor a file of another machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Blueprint {
    kind: BlueprintKind,
    /// TOML; of an array over those that it is based on.
    text: String,
    /// Files of drives that an array names by path.
    drives: BTreeMap<String, String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum BlueprintKind {
    Drive,
    Array,
    Workload,
    Scenario,
}

impl Blueprint {
    /// The drive or array of a name, as [`crate::load_system`] takes it; `drives` are paths of drives that may be put
    /// into an array.
    ///
    /// # Errors
    /// When there is none of that name, or a file cannot be read.
    pub fn of_system(name: &str, drives: &[&str]) -> Result<Blueprint, InputError> {
        let Some(document) = find(name, &[("drives", DRIVES), ("arrays", ARRAYS), ("volumes", VOLUMES)])? else {
            return Err(unknown("drive or array", name, &[DRIVES, ARRAYS, VOLUMES]));
        };
        Blueprint::of_system_document(&document, drives)
    }

    fn of_system_document(document: &Document, drives: &[&str]) -> Result<Blueprint, InputError> {
        if !array::is_array(document) {
            let text = document.text().to_owned();
            return Ok(Blueprint { kind: BlueprintKind::Drive, text, drives: BTreeMap::new() });
        }
        let file = array::flattened(document)?;
        let stated = file.drives.iter().flatten().map(|table| table.drive.as_str());
        let named = stated.chain(drives.iter().copied()).filter(|name| name.ends_with(".toml"));
        let read = |path: &str| Ok((path.to_owned(), read_document(path)?.text().to_owned()));
        let drives = named.map(read).collect::<Result<_, InputError>>()?;
        let text = toml::to_string(&file).map_err(|error| whole(document.file(), &error.to_string()))?;
        Ok(Blueprint { kind: BlueprintKind::Array, text, drives })
    }

    /// The workload or scenario of a name, as [`crate::load_demand`] takes it.
    ///
    /// # Errors
    /// When there is none of that name, or its file cannot be read.
    pub fn of_demand(name: &str) -> Result<Blueprint, InputError> {
        let Some(document) = find(name, &[("workloads", WORKLOADS), ("scenarios", SCENARIOS)])? else {
            return Err(unknown("workload or scenario", name, &[WORKLOADS, SCENARIOS]));
        };
        Ok(Blueprint::of_demand_document(&document))
    }

    fn of_demand_document(document: &Document) -> Blueprint {
        let kind = if is_scenario(document) { BlueprintKind::Scenario } else { BlueprintKind::Workload };
        Blueprint { kind, text: document.text().to_owned(), drives: BTreeMap::new() }
    }

    /// Whatever the text of a file describes, which is read again with every description made of it.
    ///
    /// # Errors
    /// When it is not TOML, or an array that names files of drives which cannot be read.
    pub fn of_text(file: &str, text: &str) -> Result<Blueprint, InputError> {
        let document = Document::parse(file, text)?;
        if document.states("lines[0]") || is_scenario(&document) {
            return Ok(Blueprint::of_demand_document(&document));
        }
        Blueprint::of_system_document(&document, &[])
    }

    /// What the text states, key by key as in the file.
    ///
    /// # Errors
    /// When it is not TOML.
    pub fn stated(&self) -> Result<serde_json::Value, InputError> {
        toml::from_str(&self.text).map_err(|error| whole("", error.message()))
    }
}

/// What a blueprint describes.
#[allow(clippy::large_enum_variant)] // One a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Described {
    /// A drive or an array.
    System(SystemDescription),
    /// A workload or a scenario.
    Demand(Demand),
}

/// A blueprint that has been read, from which descriptions are made on any number of threads.
pub struct Drafter {
    blueprint: Blueprint,
    table: Table,
    /// Drives of arrays, which are completed once.
    complete: Mutex<HashMap<String, ResolvedDevice>>,
}

impl Drafter {
    /// Reads a blueprint.
    ///
    /// # Errors
    /// When its text is not TOML.
    pub fn new(blueprint: Blueprint) -> Result<Drafter, InputError> {
        // For the error, which names the line.
        Document::parse("", &blueprint.text)?;
        let table = blueprint.text.parse().map_err(|error: toml::de::Error| whole("", error.message()))?;
        Ok(Drafter { blueprint, table, complete: Mutex::default() })
    }

    /// The file that describes the same as [`Drafter::with`], as text.
    ///
    /// # Errors
    /// As there; and for a capacity, which a file does not state.
    pub fn text_with(&self, values: &[(String, String)]) -> Result<String, InputError> {
        let (table, changes) = self.drafted(values)?;
        let text = toml::to_string(&table).map_err(|error| whole("", &error.to_string()))?;
        self.describe(&text, &changes).map_err(|error| InputError { line: None, ..error })?;
        if changes.usable.is_some() {
            return Err(key_error("usable", "a file states a number of drives; give drives".to_owned()));
        }
        match self.blueprint.kind {
            BlueprintKind::Array => {
                let file = array::changed(&Document::parse("", &text)?, &changes, &|name| self.drive(name))?;
                toml::to_string(&file).map_err(|error| whole("", &error.to_string()))
            }
            BlueprintKind::Drive | BlueprintKind::Workload | BlueprintKind::Scenario => Ok(text),
        }
    }

    /// What the blueprint describes when each of these keys, such as `seek.read_average` or `lines[0].size`, or of an array
    /// what [`Changes`] names, has another value, as it would stand in the file but without quotation marks.
    ///
    /// # Errors
    /// A key that does not exist, a value that it cannot have, or a description that is impossible; lines are not told,
    /// since there is no file that has these values.
    pub fn with(&self, values: &[(String, String)]) -> Result<Described, InputError> {
        let (table, changes) = self.drafted(values)?;
        let text = toml::to_string(&table).map_err(|error| whole("", &error.to_string()))?;
        self.describe(&text, &changes).map_err(|error| InputError { line: None, ..error })
    }

    fn drafted(&self, values: &[(String, String)]) -> Result<(Table, Changes), InputError> {
        let mut table = self.table.clone();
        let mut changes = Changes::default();
        for (key, text) in values {
            match (Changes::NAMES.contains(&key.as_str()), self.blueprint.kind) {
                (true, BlueprintKind::Array) => changes.set(key, text)?,
                (true, BlueprintKind::Drive) => {
                    return Err(key_error(key, "this is a single drive; only arrays can be changed so".to_owned()));
                }
                _ => set(&mut table, key, text)?,
            }
        }
        Ok((table, changes))
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
            BlueprintKind::Workload => Described::Demand(Workload::from_toml("", text)?.into()),
            BlueprintKind::Scenario => Described::Demand(Scenario::from_toml("", text)?.into()),
        })
    }

    /// A drive that an array names.
    fn drive(&self, name: &str) -> Result<ResolvedDevice, InputError> {
        if let Some(drive) = self.complete.lock().expect("no panics with it").get(name) {
            return Ok(drive.clone());
        }
        let drive = match self.blueprint.drives.get(name) {
            Some(text) => resolve_device(&Document::parse(name, text)?)?,
            None => crate::load_device(name)?,
        };
        self.complete.lock().expect("no panics with it").insert(name.to_owned(), drive.clone());
        Ok(drive)
    }
}

/// A step of a key's path.
enum Step<'k> {
    Key(&'k str),
    Index(usize),
}

/// `lines[0].size` as its steps.
fn steps(path: &str) -> Result<Vec<Step<'_>>, InputError> {
    let wrong = || key_error(path, "this is not a key; write it as in seek.read_average or lines[0].size".to_owned());
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

/// Gives a key a value; tables on the way that are not there are made.
fn set(table: &mut Table, path: &str, text: &str) -> Result<(), InputError> {
    let steps = steps(path)?;
    let mut steps = steps.iter();
    let Some(Step::Key(first)) = steps.next() else { unreachable!("a path begins with a key") };
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
                let missing = || key_error(path, format!("no entry {index}; there are {count}, from 0"));
                values.get_mut(*index).ok_or_else(missing)?
            }
            (Step::Index(_), _) => return Err(key_error(path, "this is not a list".to_owned())),
            // What stands there is one of several forms, of which the new value is another.
            (Step::Key(key), other) => {
                *other = Value::Table(Table::new());
                is_new = true;
                let Value::Table(table) = other else { unreachable!("it has just become one") };
                table.entry(*key).or_insert_with(|| Value::Table(Table::new()))
            }
        };
    }
    let stated = (!is_new).then_some(&*at);
    let value = value(path, text, stated)?;
    *at = value;
    Ok(())
}

/// The value of a text: what TOML would read without quotation marks, and text otherwise, or where text stood before.
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
        Drafter::new(Blueprint::of_system(name, &[]).unwrap()).unwrap()
    }

    #[test]
    fn nothing_changed_is_what_the_catalogue_describes() {
        for entry in crate::drives().iter().chain(crate::arrays()).chain(crate::volumes()) {
            let loaded = crate::load_system(entry.id, &Changes::default()).unwrap().description();
            assert_eq!(varied(&drafter(entry.id), &[]).unwrap(), Described::System(loaded), "{}", entry.id);
        }
        for entry in crate::workloads().iter().chain(crate::scenarios()) {
            let drafter = Drafter::new(Blueprint::of_demand(entry.id).unwrap()).unwrap();
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
        let found = varied(&drafter("cheetah-x15-36lp"), &values).unwrap();
        assert_eq!(found, Described::System(SystemDescription::Drive(expected)));
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
    fn what_cannot_be_is_told_by_its_key() {
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
        let workload = Drafter::new(Blueprint::of_demand("file-server").unwrap()).unwrap();
        let error = varied(&workload, &[("lines[8].size", "4KiB")]).unwrap_err().to_string();
        assert_eq!(error, "lines[8].size: no entry 8; there are 8, from 0");
    }
}
