//! Pins the simulator's results: a hash of every request's completion, for each system of the catalogue under some
//! workloads, and for each scenario. `answers.txt` contains the hashes, so that its diff shows a change of results and
//! an unintended change fails here.
//!
//! Run `HEADSTACK_WRITE_ANSWERS=1 cargo test -p headstack-catalogue answers` to update the file.

use std::fmt::Write;
use std::path::Path;

use headstack_catalogue::{Changes, arrays, drives, load_demand, load_system, scenarios, workloads};
use headstack_result::content_hash;
use headstack_sim::{Demand, Observed, RunSpec, record};
use headstack_workload::scenario::ScenarioLength;
use headstack_workload::{Arrivals, Recorded, RunLength, Think};
use rayon::prelude::*;

const REQUESTS: u64 = 400;

/// Systems that run every scenario: a disk behind a bus, and an array with caches.
const HOSTS: [&str; 2] = ["cheetah-x15-36lp", "compaq-raid5-7"];

fn demand(name: &str, queue_depth: u32) -> Demand {
    match load_demand(name).expect("the catalogue is valid") {
        Demand::Workload(mut workload) => {
            workload.arrivals = Arrivals::Closed { queue_depth, think: Think::None };
            workload.run_length = RunLength::Requests(REQUESTS);
            workload.warm_up = Default::default();
            workload.into()
        }
        Demand::Scenario(mut scenario) => {
            scenario.run_length = ScenarioLength::Requests(REQUESTS);
            scenario.warm_up = Default::default();
            scenario.into()
        }
    }
}

/// Returns one line of the file: the run, and the hash of its completions or the error message.
fn answer(system: &str, load: &str, queue_depth: u32) -> String {
    let description = load_system(system, &Changes::default()).expect("the catalogue is valid").description();
    let spec = RunSpec {
        system_name: system.to_owned(),
        system: description,
        demand: demand(load, queue_depth),
        span: None,
        seed: 1998,
        interval_ns: None,
        preload: 0,
        faults: None,
    };
    let mut seen = String::new();
    let mut sink = |observed: &Observed| {
        // Omits the field of the pre-flush, which no run has.
        let Recorded { arrival_ns, completion_ns, request, .. } = observed.recorded;
        write!(seen, "Recorded {{ arrival_ns: {arrival_ns}, completion_ns: {completion_ns:?}, ")
            .expect("a string takes it");
        writeln!(seen, "request: {request:?} }} {:?} {}", observed.wait_ns, observed.client)
            .expect("a string takes it");
    };
    let outcome = record(&spec, &|_| true, &mut sink);
    let said = match outcome {
        Ok(result) => {
            assert!(result.passed(), "{system} under {load}: {:?}", result.checks);
            content_hash(seen.as_bytes())
        }
        Err(error) => format!("refused: {error}"),
    };
    format!("{system} {load} {queue_depth} {said}\n")
}

#[test]
fn answers_are_those_that_are_pinned() {
    let depths = [1, 4, 16, 64];
    let mut runs: Vec<(&str, &str, u32)> = Vec::new();
    for system in drives().iter().chain(arrays()) {
        // Three workloads at three depths each. The system's name selects them, so that a new system does not change
        // the rows of other systems.
        let at = system.id.bytes().fold(0_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(byte)));
        for turn in 0..3 {
            let workload = &workloads()[(at % workloads().len() + 5 * turn) % workloads().len()];
            runs.push((system.id, workload.id, depths[(at % depths.len() + turn) % depths.len()]));
        }
    }
    for scenario in scenarios() {
        runs.extend(HOSTS.map(|system| (system, scenario.id, 0)));
    }
    let current: String =
        runs.par_iter().map(|&(system, load, queue_depth)| answer(system, load, queue_depth)).collect();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/answers.txt");
    if std::env::var_os("HEADSTACK_WRITE_ANSWERS").is_some() {
        std::fs::write(&path, &current).expect("the folder of tests can be written");
    }
    let pinned = std::fs::read_to_string(&path).unwrap_or_default();
    let changed: Vec<_> = current.lines().filter(|line| !pinned.lines().any(|other| other == *line)).collect();
    assert!(pinned == current, "{} of {} answers are others now: {changed:#?}", changed.len(), runs.len());
}
