//! Replays traces that were dropped on a page, on the systems of the page.

use headstack_catalogue::options::Draft;
use headstack_catalogue::{Blueprint, Described, Drafter};
use headstack_replay::{Outside, Replay, ReplayError, ReplayMode};
use headstack_result::tables::RunSettings;
use headstack_sim::faults::Schedule;
use headstack_sim::replay::{ReplaySpec, replay};
use headstack_sim::{SimError, contained};
use headstack_trace::{Input, ReadOptions, Requests, Step, Summary, TraceError, TraceReader};
use headstack_workload::Recorded;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::run_outcome::{RunOutcome, from_result};

/// A trace as text; its format is detected from its content.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Text {
    file: String,
    text: String,
    /// The device whose requests are read, if the trace has several.
    device: Option<String>,
}

/// Replays of a trace on a system, one per mode.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replays {
    trace: Text,
    /// Name of the system in results.
    name: String,
    blueprint: Blueprint,
    /// Changed values of the system's file.
    values: Vec<(String, String)>,
    /// Options as in `headstack trace replay`.
    options: Vec<(String, String)>,
    #[serde(default)]
    faults: Option<Schedule>,
    modes: Vec<ReplayMode>,
    outside: Outside,
    /// Number of requests to replay, from the start of the trace.
    requests: u64,
}

/// Reason why a replay ended early.
enum Failure {
    Sim(SimError),
    Trace(TraceError),
}

impl From<SimError> for Failure {
    fn from(error: SimError) -> Failure {
        Failure::Sim(error)
    }
}

impl From<ReplayError> for Failure {
    fn from(error: ReplayError) -> Failure {
        Failure::Sim(error.into())
    }
}

impl From<TraceError> for Failure {
    fn from(error: TraceError) -> Failure {
        Failure::Trace(error)
    }
}

impl Text {
    fn open(&self) -> Result<TraceReader, TraceError> {
        let input = Input::from_bytes(&self.file, self.text.clone().into_bytes())?;
        let steps = self.device.iter().map(|device| Step::Device(vec![device.clone()])).collect();
        TraceReader::from_inputs(vec![input], &ReadOptions { steps, ..ReadOptions::default() })
    }

    /// Returns the summary of the trace.
    ///
    /// # Errors
    /// Returns an error if the trace is invalid.
    pub fn summary(&self) -> Result<Value, TraceError> {
        let mut reader = self.open()?;
        let (mut summary, mut batch) = (Summary::default(), Vec::new());
        while reader.next_batch(&mut batch)? {
            summary.add(&batch);
        }
        let (first_ns, last_ns) = summary.total.arrivals_ns.unwrap_or_default();
        Ok(json!({
            "format": reader.meta().origin[0].format,
            "devices": reader.meta().devices.iter().map(|device| &device.name).collect::<Vec<_>>(),
            "requests": summary.requests(),
            "seconds": (last_ns - first_ns) as f64 / 1e9,
        }))
    }
}

impl Replays {
    /// Returns the outcomes of all replays.
    ///
    /// # Errors
    /// Returns an error if the blueprint is invalid.
    pub fn carry_out(&self) -> Result<Vec<RunOutcome>, String> {
        let drafter = Drafter::new(self.blueprint.clone()).map_err(|error| error.to_string())?;
        let draft = match contained(|| self.draft(&drafter)) {
            Ok(draft) => draft,
            Err(panic) => return Ok(self.modes.iter().map(|_| RunOutcome::Failed(panic.clone())).collect()),
        };
        Ok(self
            .modes
            .iter()
            .map(|mode| draft.clone().map_or_else(RunOutcome::Impossible, |draft| self.run_outcome(draft, *mode)))
            .collect())
    }

    fn draft(&self, drafter: &Drafter) -> Result<Draft, String> {
        let system = match drafter.with(&self.values).map_err(|error| error.to_string())? {
            Described::System(system) => system,
            Described::Demand(_) => return Err("a replay needs a system".to_owned()),
        };
        let mut draft = Draft::for_system(self.name.clone(), system);
        draft.apply(&self.options).map_err(|error| error.to_string())?;
        Ok(draft)
    }

    fn run_outcome(&self, draft: Draft, mode: ReplayMode) -> RunOutcome {
        let system = draft.system.expect("the draft has a system");
        if let Err(fault) = system.check() {
            return RunOutcome::Impossible(fault.to_string());
        }
        let mut settings = ReplaySpec {
            system_name: draft.system_name,
            system,
            replay: Replay {
                outside: self.outside,
                requests_max: Some(self.requests),
                ..Replay::new(self.trace.file.clone(), mode)
            },
            seed: draft.seed,
            interval_ns: draft.interval_ns,
            faults: self.faults.clone(),
        };
        let played = || -> Result<_, Failure> {
            let mut requests = Requests::of(self.trace.open()?)?;
            settings.replay.start_ns = requests.start_of_recording_ns().unwrap_or(0);
            let mut source = |batch: &mut Vec<Recorded>| Ok(requests.next(batch)?);
            replay::<Failure>(&settings, &mut source, &|_| true, None)
        };
        match contained(played) {
            Ok(Ok(result)) => from_result(RunSettings::default(), result),
            Ok(Err(Failure::Sim(error @ SimError::Replay(ReplayError::Request { .. })))) => {
                RunOutcome::Impossible(format!("{}: {error}", self.trace.file))
            }
            Ok(Err(Failure::Sim(error))) => RunOutcome::Impossible(error.to_string()),
            Ok(Err(Failure::Trace(error))) => RunOutcome::Impossible(error.to_string()),
            Err(panic) => RunOutcome::Failed(panic),
        }
    }
}
