//! Converts a draft to a run.

use headstack_result::tables::Asked;
use headstack_sim::{Model, RunSpec};
use headstack_workload::InputError;

use super::Draft;

impl Draft {
    /// Checks that the run is complete and possible.
    ///
    /// # Errors
    /// The impossible key, and permitted values.
    pub fn fault(&self) -> Result<(), InputError> {
        let of_key = |key: String, message: String| InputError { file: String::new(), line: None, key, message };
        let needed = |message: &str| of_key(String::new(), message.to_owned());
        let Some(system) = &self.system else {
            return Err(needed("a run needs a system"));
        };
        system.check().map_err(|fault| of_key(fault.key, fault.message))?;
        if let Some(schedule) = &self.faults {
            let found = schedule.check(&Model::System(system.clone())).and_then(|()| schedule.check_without_contents());
            found.map_err(|(index, (key, message))| {
                of_key("faults".to_owned(), format!("fault[{index}].{key}: {message}"))
            })?;
        }
        match (&self.workload, &self.scenario) {
            (Some(workload), None) => workload.validate().map_err(|error| of_key(error.key, error.message)),
            (None, Some(scenario)) => scenario.validate().map_err(|error| of_key(error.key, error.message)),
            _ => Err(needed("a run needs a workload or a scenario")),
        }
    }

    /// Splits it into the request data that the result lacks, and the run. Only for a run without a
    /// [`fault`](Self::fault).
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
