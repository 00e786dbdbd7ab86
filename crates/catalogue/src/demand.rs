//! Loads workloads and scenarios by name or file.

use headstack_sim::Demand;
use headstack_workload::{Document, InputError, Scenario, Workload};

use crate::{SCENARIOS, WORKLOADS, find, unknown, whole};

/// Loads a workload: an id of the catalogue, the name of an access specification, or a path that ends in `.toml`.
///
/// # Errors
/// If the workload or file does not exist or is invalid.
pub fn load_workload(name_or_path: &str) -> Result<Workload, InputError> {
    let Some(document) = find(name_or_path, &[("workloads", WORKLOADS)])? else {
        return Err(unknown("workload", name_or_path, &[WORKLOADS]));
    };
    if is_scenario(&document) {
        return Err(whole(document.file(), "this is a scenario; a workload is required"));
    }
    Workload::from_toml(document.file(), document.text())
}

/// Loads a scenario by a name as in [`load_workload`].
///
/// # Errors
/// If the scenario or file does not exist or is invalid.
pub fn load_scenario(name_or_path: &str) -> Result<Scenario, InputError> {
    let Some(document) = find(name_or_path, &[("scenarios", SCENARIOS)])? else {
        return Err(unknown("scenario", name_or_path, &[SCENARIOS]));
    };
    if !is_scenario(&document) {
        return Err(whole(document.file(), "this is not a scenario: it has no [[streams]]"));
    }
    Scenario::from_toml(document.file(), document.text())
}

/// Loads a workload or a scenario by a name as in [`load_workload`].
///
/// # Errors
/// Returns the same errors as [`load_workload`] and [`load_scenario`].
pub fn load_demand(name_or_path: &str) -> Result<Demand, InputError> {
    let Some(document) = find(name_or_path, &[("workloads", WORKLOADS), ("scenarios", SCENARIOS)])? else {
        return Err(unknown("workload or scenario", name_or_path, &[WORKLOADS, SCENARIOS]));
    };
    if is_scenario(&document) {
        Scenario::from_toml(document.file(), document.text()).map(Demand::from)
    } else {
        Workload::from_toml(document.file(), document.text()).map(Demand::from)
    }
}

/// Whether a file describes a scenario. Only scenarios have tables of streams; a workload has only their number.
pub(crate) fn is_scenario(document: &Document) -> bool {
    ["streams[0]", "pool", "network", "cpus"].iter().any(|key| document.states(key))
}
