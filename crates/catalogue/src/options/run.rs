//! From what is specified to what is run.

use headstack_result::tables::Asked;
use headstack_sim::{Model, RunSpec};

use super::Draft;

impl Draft {
    /// Whether it is all that a run needs, and possible.
    ///
    /// # Errors
    /// Why it is not, as one line.
    pub fn fault(&self) -> Result<(), String> {
        let Some(system) = &self.system else {
            return Err("a run needs a system".to_owned());
        };
        system.check().map_err(|fault| fault.to_string())?;
        if let Some(schedule) = &self.faults {
            let found = schedule.check(&Model::System(system.clone())).and_then(|()| schedule.check_without_contents());
            found.map_err(|(index, (key, message))| format!("faults: fault[{index}].{key}: {message}"))?;
        }
        match (&self.workload, &self.scenario) {
            (Some(workload), None) => workload.validate().map_err(|error| error.to_string()),
            (None, Some(scenario)) => scenario.validate().map_err(|error| error.to_string()),
            _ => Err("a run needs a workload or a scenario".to_owned()),
        }
    }

    /// What was asked for that the result does not say, and what is run. Only of what has no [`fault`](Self::fault).
    pub fn split(self, labels: Vec<(String, String)>) -> (Asked, RunSpec) {
        let span = self.used();
        let Draft { system_name, system, workload, scenario, clients, seed, interval_ns, preload, faults, .. } = self;
        let system = system.expect("it has no fault");
        let capacity_bytes = Some(span.map_or_else(|| system.capacity_bytes(), |span| span.length_bytes));
        let asked = Asked { labels, clients, capacity_bytes };
        let demand = match (workload, scenario) {
            (Some(workload), _) => workload.into(),
            (None, scenario) => scenario.expect("it has no fault").into(),
        };
        (asked, RunSpec { system_name, system, demand, span, seed, interval_ns, preload, faults })
    }
}
