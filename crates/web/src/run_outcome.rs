//! Results of runs and replays.

use headstack_result::RunResult;
use headstack_result::tables::{RUN_COLUMNS, Row, RunSettings};
use serde::Serialize;
use serde_json::{Map, Value, json};

/// The result of a run.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunOutcome {
    /// The cells of its row, and how busy each component was.
    Done { row: Map<String, Value>, components: Vec<(String, f64)> },
    /// The run is impossible, for this reason.
    Impossible(String),
    /// The simulator failed, or found its own result to be wrong.
    Failed(String),
}

/// The result of a run that was carried out.
pub fn from_result(settings: RunSettings, result: RunResult) -> RunOutcome {
    if let Some(check) = result.checks.iter().find(|check| !check.passed) {
        return RunOutcome::Failed(format!("a self-check failed: {}: {}", check.name, check.detail));
    }
    let share = |busy_ns: u64, servers: u32| busy_ns as f64 / (result.duration_ns as f64 * f64::from(servers.max(1)));
    let components = result.components.iter().map(|one| (one.name.clone(), share(one.busy_ns, one.servers))).collect();
    let row = Row::new(settings, result);
    let row = RUN_COLUMNS.iter().map(|column| (column.name.to_owned(), json!(column.of(&row)))).collect();
    RunOutcome::Done { row, components }
}
