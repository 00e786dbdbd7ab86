//! [`upgrade`]: converts results of older schemas to the current one, one step per version.

use serde_json::{Map, Value, json};

use crate::{ResultError, Sampling, TooShort, content_hash};

/// Version of the schema. Increase it whenever a field is added or removed or changes its meaning; then add a step from
/// the previous version, and a result of that version to `tests/fixtures`.
pub const SCHEMA_VERSION: u32 = 7;

type Fields = Map<String, Value>;

/// Steps from each version to the next, starting with version 1.
const STEPS: [fn(&mut Fields); SCHEMA_VERSION as usize - 1] =
    [from_1_to_2, from_2_to_3, from_3_to_4, from_4_to_5, from_5_to_6, from_6_to_7];

/// Converts a result of schema `found` to the current schema.
///
/// # Errors
/// Returns [`ResultError::Schema`] if `found` is not an older version.
pub fn upgrade(result: &mut Fields, found: u64) -> Result<(), ResultError> {
    let older = usize::try_from(found).ok().and_then(|found| found.checked_sub(1));
    let steps = older.and_then(|first| STEPS.get(first..)).filter(|steps| !steps.is_empty());
    steps.ok_or(ResultError::Schema { found })?.iter().for_each(|step| step(result));
    result.insert("schema".to_owned(), SCHEMA_VERSION.into());
    Ok(())
}

/// Before schema 2, each component had one server, waits were not counted, and there were no scenarios and no energy.
fn from_1_to_2(result: &mut Fields) {
    for component in result.get_mut("components").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(component) = component.as_object_mut() {
            component.insert("servers".to_owned(), json!(1));
            component.insert("waited_ns".to_owned(), json!(0));
        }
    }
    result.insert("streams".to_owned(), json!([]));
    result.insert("energy".to_owned(), Value::Null);
    result.insert("data_loss".to_owned(), Value::Null);
}

/// Before schema 3, there were no replays.
fn from_2_to_3(result: &mut Fields) {
    result.insert("fidelity".to_owned(), Value::Null);
}

/// Before schema 4, there were no measurements, so no run ended early and nothing was verified.
fn from_3_to_4(result: &mut Fields) {
    result.insert("ended_early".to_owned(), Value::Null);
    result.insert("integrity".to_owned(), Value::Null);
}

/// Before schema 5, the half-width of the mean was too narrow, so these results have no confidence interval.
fn from_4_to_5(result: &mut Fields) {
    result.remove("mean_response_half_width_ns");
    let nothing = Sampling::nothing(TooShort::NotKept);
    result.insert("sampling".to_owned(), serde_json::to_value(nothing).expect("a sampling can be written as JSON"));
}

/// Before schema 6, there were no workloads on files and directories; results without them omit the field.
fn from_5_to_6(_: &mut Fields) {}

/// Before schema 7, some keys had other names, and one list had all notes. The hash of the system follows from its
/// description.
fn from_6_to_7(result: &mut Fields) {
    for key in ["kinds", "operations", "intervals", "streams", "stalls"] {
        result.get_mut(key).into_iter().for_each(|part| rename(part, &[("response", "latency")]));
    }
    if let Some(stalls) = result.get_mut("stalls") {
        rename(stalls, &[("outstanding", "queue_depth")]);
    }
    let figures = [
        ("mean_response_ns", "mean_latency_ns"),
        ("p50_response_ns", "p50_latency_ns"),
        ("p99_response_ns", "p99_latency_ns"),
    ];
    split_notes(result);
    result.get_mut("workload").into_iter().for_each(name_queue_depths);
    result.get_mut("model_error").into_iter().for_each(|part| rename(part, &figures));
    let Some(system) = result.get_mut("system").and_then(Value::as_object_mut) else { return };
    let Some(description) = system.get_mut("description") else { return };
    let before = description.clone();
    rename(description, &[("stripe_unit_bytes", "chunk_bytes")]);
    name_flash_states(description);
    if *description != before {
        let hash = content_hash(description.to_string().as_bytes());
        system.insert("hash".to_owned(), hash.into());
    }
}

/// Moves the notes on how a run was made to a list of their own. Only headstack 0.2 and earlier wrote these sentences
/// into one list with all others.
fn split_notes(result: &mut Fields) {
    let describes_method = |note: &Value| {
        note.as_str().is_some_and(|note| {
            note.starts_with("warm-up, excluded: ")
                || note.starts_with("requests were ")
                || note.contains(" threads: the queue depth is the sum over threads")
                || note.contains(" were prepared in ")
                || note.contains(": removed ") && note.ends_with(" directories")
                || note.contains(": verified ") && note.contains(" MB of written data in ")
        })
    };
    let Some(notes) = result.get_mut("notes").and_then(Value::as_array_mut) else { return };
    let (method, others): (Vec<Value>, Vec<Value>) = std::mem::take(notes).into_iter().partition(describes_method);
    *notes = others;
    if !method.is_empty() {
        result.insert("method_notes".to_owned(), method.into());
    }
}

/// Tables of workloads and scenarios whose queue depth had the name `outstanding` before schema 7.
const TABLES_WITH_QUEUE_DEPTH: [&str; 5] = ["closed", "phases", "prefill", "sequential", "video"];

/// Renames the queue depth in these tables of a workload or scenario.
fn name_queue_depths(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                if TABLES_WITH_QUEUE_DEPTH.contains(&key.as_str()) {
                    rename(value, &[("outstanding", "queue_depth")]);
                } else {
                    name_queue_depths(value);
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(name_queue_depths),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Replaces the two switches `filled` and `preconditioned` of each SSD by its state. Before schema 7, writes to a filled
/// drive found all of its flash erased.
fn name_flash_states(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if fields.contains_key("flash")
                && let (Some(filled), Some(steady)) = (fields.remove("filled"), fields.remove("preconditioned"))
            {
                let state = match (filled, steady) {
                    (_, Value::Bool(true)) => "steady",
                    (Value::Bool(true), _) => "filled",
                    _ => "fresh",
                };
                fields.insert("state".to_owned(), state.into());
            }
            fields.values_mut().for_each(name_flash_states);
        }
        Value::Array(values) => values.iter_mut().for_each(name_flash_states),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Renames keys in a value and in all values inside it.
fn rename(value: &mut Value, names: &[(&str, &str)]) {
    match value {
        Value::Object(fields) => {
            for (old, new) in names {
                if let Some(value) = fields.remove(*old) {
                    fields.insert((*new).to_owned(), value);
                }
            }
            fields.values_mut().for_each(|value| rename(value, names));
        }
        Value::Array(values) => values.iter_mut().for_each(|value| rename(value, names)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Mode, RunResult, SystemRecord};

    #[test]
    fn switches_of_ssds_become_their_state() {
        let states = [(true, true, "steady"), (true, false, "filled"), (false, false, "fresh")];
        for (filled, preconditioned, state) in states {
            let ssd = json!({"flash": {}, "filled": filled, "preconditioned": preconditioned});
            let mut description = json!({"array": {"devices": [{"ssd": ssd}]}});
            name_flash_states(&mut description);
            assert_eq!(description["array"]["devices"][0]["ssd"], json!({"flash": {}, "state": state}));
        }
    }

    #[test]
    fn an_upgraded_result_has_every_field_of_a_present_one() {
        let system = SystemRecord::new("", "", Value::Null);
        let present = RunResult::new(Mode::Simulated, system, Value::Null, 0, "").to_json().expect("it is finite");
        let present: Fields = serde_json::from_str(&present).expect("it is JSON");
        let first = include_str!("../tests/fixtures/schema-1.json");
        let mut upgraded: Fields = serde_json::from_str(first).expect("a fixture is JSON");
        upgrade(&mut upgraded, 1).expect("version 1 is known");
        assert_eq!(upgraded.keys().collect::<Vec<_>>(), present.keys().collect::<Vec<_>>());
        assert_eq!(upgraded["schema"], SCHEMA_VERSION);
    }
}
