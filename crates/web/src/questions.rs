//! Questions of the page, and how they are answered.

use std::path::Path;

use headstack_catalogue::options::scenario_with_clients;
use headstack_catalogue::{Blueprint, Described, Drafter, Entry, Point, Points, Refused, faults_of_text};
use headstack_result::RunResult;
use headstack_result::tables::RunSettings;
use headstack_sim::{Demand, SystemDescription, run_contained};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::machine;
use crate::replays::{Replays, Text};
use crate::run_outcome::{RunOutcome, from_result};

/// A question of the page.
#[derive(Deserialize)]
#[serde(tag = "ask", rename_all = "kebab-case", deny_unknown_fields)]
enum Question {
    /// Returns the catalogue by folder: the id and the name of each entry.
    Catalogue,
    /// Returns the blueprint of a catalogue entry, and the figures that the entry states.
    Blueprint { name: String },
    /// Returns the blueprint of a file's text, and the figures that the file states.
    Text { file: String, text: String },
    /// Describes a blueprint with some values changed: the size of a system, or whether the load of a scenario is
    /// fixed, and why.
    Describe { blueprint: Blueprint, values: Vec<(String, String)> },
    /// Returns a sentence that names the stated figures of the system that these values invalidate.
    Dropped { name: String, blueprint: Blueprint, values: Vec<(String, String)> },
    /// Returns a blueprint with some values changed, as TOML.
    Toml { blueprint: Blueprint, values: Vec<(String, String)> },
    /// Returns the runs of points of a sweep, in the form of its chunks.
    Run { points: Box<Points> },
    /// Returns the events inside a point, from an idle start; with `spare`, a spare replaces the member that fails.
    Chronicle { points: Box<Points>, events_max: usize, spare: bool },
    /// Returns the faults to inject, as described in a file's text.
    Faults { file: String, text: String },
    /// Returns a summary of a trace.
    Trace(Text),
    /// Returns the outcomes of replays of a trace on a system.
    Replay(Box<Replays>),
    /// Parses results that were written as JSON: one result, or a list.
    Results { text: String },
}

/// Returns the answer to a question in JSON: `{"answer": ...}`, or `{"refused": reason}` if it cannot be answered.
pub fn answered(question: &[u8]) -> String {
    let question = serde_json::from_slice(question).map_err(|error| error.to_string());
    match question.and_then(answer) {
        Ok(answer) => json!({ "answer": answer }).to_string(),
        Err(why) => json!({ "refused": why }).to_string(),
    }
}

fn answer(question: Question) -> Result<Value, String> {
    Ok(match question {
        Question::Catalogue => catalogue(),
        Question::Blueprint { name } => {
            let is_demand = [headstack_catalogue::workloads(), headstack_catalogue::scenarios()]
                .iter()
                .any(|entries| entries.iter().any(|entry| entry.id == name));
            let found = if is_demand { Blueprint::for_demand(&name) } else { Blueprint::for_system(&name, &[]) };
            stated(&found.map_err(|error| error.to_string())?)?
        }
        Question::Text { file, text } => {
            let blueprint = Blueprint::of_text(&file, &text).map_err(|error| error.to_string())?;
            described(&blueprint, &[])?;
            stated(&blueprint)?
        }
        Question::Describe { blueprint, values } => match described(&blueprint, &values)? {
            Described::System(system) => size(&system),
            Described::Demand(demand) => json!({ "fixed": fixed(&demand) }),
        },
        Question::Dropped { name, blueprint, values } => {
            let note = Drafter::new(blueprint).and_then(|drafter| drafter.dropped_note(&name, &values));
            json!(note.map_err(|error| error.to_string())?)
        }
        Question::Toml { blueprint, values } => {
            let text = Drafter::new(blueprint).and_then(|drafter| drafter.text_with(&values));
            json!(text.map_err(|error| error.to_string())?)
        }
        Question::Run { points } => json!(run(&points)?),
        Question::Chronicle { points, events_max, spare } => json!(machine::chronicled(&points, events_max, spare)?),
        Question::Faults { file, text } => {
            json!(faults_of_text(&file, &text, Path::new("")).map_err(|error| error.to_string())?)
        }
        Question::Trace(text) => text.summary().map_err(|error| error.to_string())?,
        Question::Replay(replays) => json!(replays.carry_out()?),
        Question::Results { text } => json!(results(&text)?),
    })
}

fn catalogue() -> Value {
    let named = |entries: &[Entry]| entries.iter().map(|entry| [entry.id.to_owned(), entry.name()]).collect::<Vec<_>>();
    let (solid, disks): (Vec<_>, Vec<_>) = headstack_catalogue::drives().iter().copied().partition(Entry::is_ssd);
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "disks": named(&disks),
        "ssds": named(&solid),
        "arrays": named(headstack_catalogue::arrays()),
        "volumes": named(headstack_catalogue::volumes()),
        "workloads": named(headstack_catalogue::workloads()),
        "scenarios": named(headstack_catalogue::scenarios()),
    })
}

fn stated(blueprint: &Blueprint) -> Result<Value, String> {
    let stated = blueprint.stated().map_err(|error| error.to_string())?;
    Ok(json!({ "blueprint": blueprint, "stated": stated }))
}

fn described(blueprint: &Blueprint, values: &[(String, String)]) -> Result<Described, String> {
    let drafter = Drafter::new(blueprint.clone()).map_err(|error| error.to_string())?;
    drafter.with(values).map_err(|error| error.to_string())
}

fn size(system: &SystemDescription) -> Value {
    json!({ "capacity_bytes": system.capacity_bytes(), "drives": system.drives() })
}

/// Returns the reason why the queue depth is fixed; `None` if it is not.
fn fixed(demand: &Demand) -> Option<String> {
    match demand {
        Demand::Workload(_) => None,
        Demand::Scenario(scenario) => scenario_with_clients(scenario, 1).err(),
    }
}

fn run(points: &Points) -> Result<Vec<RunOutcome>, String> {
    let described = points.describe().map_err(|error| error.to_string())?;
    Ok((0..points.len()).map(|number| run_outcome(described.point(number))).collect())
}

fn run_outcome(point: Point) -> RunOutcome {
    let draft = match point.draft {
        Ok(draft) => draft,
        Err(Refused::Impossible(why)) => return RunOutcome::Impossible(why),
        Err(Refused::Failed(why)) => return RunOutcome::Failed(why),
    };
    if let Err(why) = draft.fault() {
        return RunOutcome::Impossible(why.to_string());
    }
    let (asked, spec) = draft.split(point.labels);
    match run_contained(&spec, &|_| true) {
        Ok(result) => from_result(asked, result),
        Err(error) => RunOutcome::Impossible(error.to_string()),
    }
}

fn results(text: &str) -> Result<Vec<RunOutcome>, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let texts = match value {
        Value::Array(results) => results.iter().map(Value::to_string).collect(),
        _ => vec![text.to_owned()],
    };
    let read = |text: &String| RunResult::from_json(text).map_err(|error| error.to_string());
    texts.iter().map(|text| Ok(from_result(RunSettings::default(), read(text)?))).collect()
}
