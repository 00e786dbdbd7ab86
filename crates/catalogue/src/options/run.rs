//! Converts a [`Draft`] to the specification of a run.

use headstack_result::tables::RunSettings;
use headstack_sim::{Model, RunSpec};
use headstack_workload::InputError;

use super::{Draft, state};

impl Draft {
    /// Checks that the run is complete and possible.
    ///
    /// # Errors
    /// If a key is missing or impossible. Returns the first such key with the allowed values.
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

    /// Splits the draft into the settings that the result does not contain and the run. The draft must have no
    /// [`fault`](Self::fault).
    pub fn split(self, labels: Vec<(String, String)>) -> (RunSettings, RunSpec) {
        let span = self.used();
        let Draft { system_name, system, workload, scenario, clients, seed, interval_ns, preload, faults, .. } = self;
        let mut system = system.expect("the draft was checked");
        if let Some(workload) = &workload {
            state::use_blocks_of(&mut system, workload, span, seed);
        }
        let capacity_bytes = Some(span.map_or_else(|| system.capacity_bytes(), |span| span.length_bytes));
        let settings = RunSettings { labels, clients, capacity_bytes };
        let demand = match (workload, scenario) {
            (Some(workload), _) => workload.into(),
            (None, scenario) => scenario.expect("the draft was checked").into(),
        };
        (settings, RunSpec { system_name, system, demand, span, seed, interval_ns, preload, faults })
    }
}
