//! Tests of layers: closed forms, the identity of layers that cost nothing, and data that survive power cuts.

mod block_cache;
mod ceph;
mod delays;
mod files;
mod host_cache;
mod md_journal;
mod named_files;
mod zfs;

use headstack_result::RunResult;
use headstack_sim::StackDescription;
use headstack_sim::stack::description::LayerDescription;
use headstack_sim::system::System;
use headstack_sim::{RunSpec, SystemDescription};
use headstack_workload::{AccessLine, Arrivals};

use crate::common::{bare_drive, run_spec, spec, workload};

/// Puts a layer over systems.
pub fn over(layer: LayerDescription, below: &[SystemDescription]) -> SystemDescription {
    let name = format!("test {}", layer.kind());
    SystemDescription::Stack(Box::new(StackDescription { name, layer, below: below.to_vec(), files: Vec::new() }))
}

/// Runs requests of one line on a system.
pub fn of(system: &SystemDescription, line: AccessLine, arrivals: Arrivals, requests: u64) -> RunResult {
    run_spec(&RunSpec { system: system.clone(), ..spec(&bare_drive(), workload(line, arrivals, requests)) })
}

/// Returns a counter of a system.
pub fn counted(system: &System, name: &str) -> u64 {
    system.snapshot().counters().find(|counter| counter.0 == name).expect("a counter of that name").1
}
