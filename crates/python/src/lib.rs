//! `headstack._native`: the interface of the Rust crates to the Python package. It only converts and calls.
//!
//! Descriptions are passed as plain values (`plain.rs`), and results as Arrow tables. Errors of the crates become
//! `headstack.InputError` or `headstack.RunError` with a one-line message.

mod blueprint;
mod caching;
mod capture;
mod catalogue;
mod crash;
mod error;
mod field;
mod files;
mod hosts;
mod interruptible;
mod jobs;
mod level;
mod live;
mod measure;
mod options;
mod outcomes;
mod plain;
mod play;
mod probe;
mod quantity;
mod recording;
mod replay;
mod request_log;
mod results;
mod run;
mod stream;
mod synthesis;
mod table;
mod targets;
mod trace;
mod trees;
mod validate;
mod volume_type;

use pyo3::prelude::*;

/// The compiled part of the package.
#[pymodule]
mod _native {
    use headstack_catalogue::HostProfile;
    use headstack_catalogue::array::file::LevelName;
    use headstack_catalogue::volume::pricing::BILLED_UNITS;
    use headstack_sim::drive::description::{Policy, ReadAhead, WriteCache};
    use headstack_sim::notes::SyncWrites;
    use headstack_sim::ssd::description::FlashState;
    use pyo3::prelude::*;
    use serde::Serialize;

    #[pymodule_export]
    use super::blueprint::{
        demand_blueprint, describe_points, drafted_toml, dropped_figures, note_of_dropped, system_blueprint,
    };
    #[pymodule_export]
    use super::caching::{trace_cache, trace_cache_behind};
    #[pymodule_export]
    use super::capture::trace_capture;
    #[pymodule_export]
    use super::catalogue::{
        SystemSize, array_ids, array_toml, catalogue_hash, complete_workload, current_column, drive_ids, drive_to_toml,
        drive_toml, import_disksim, instance_ids, load_array, load_demand, load_drive, load_faults, load_scenario,
        load_system, load_workload, parse_range, read_fit, read_study, scenario_ids, scenario_toml,
        scenario_with_clients, scenario_writes, stack_ids, stack_toml, system_size, take_notes_of_renamed_keys,
        volume_ids, workload_ids, workload_toml,
    };
    #[pymodule_export]
    use super::crash::{CrashImage, CrashRecording, CrashSearch, CrashedDevice, crash_folder, ext4_files, ext4_folder};
    #[pymodule_export]
    use super::field::Field;
    #[pymodule_export]
    use super::files::{AtomicFile, Outputs, is_stdout, note_input, written_through};
    #[pymodule_export]
    use super::hosts::{begin_together, clock_ns, join_hosts};
    #[pymodule_export]
    use super::interruptible::ask_to_end;
    #[pymodule_export]
    use super::jobs::{
        phase_at_observed, phase_demand, phase_stream_names, read_fio, read_fio_arguments, read_icf, read_vdbench,
    };
    #[pymodule_export]
    use super::level::{Level, Redundancy, levels};
    #[pymodule_export]
    use super::live::LiveService;
    #[pymodule_export]
    use super::measure::Targets;
    #[pymodule_export]
    use super::options::{interval_ns, uniform_workload, with_options};
    #[pymodule_export]
    use super::outcomes::{Outcomes, results_of_kept, run_chunks, specifications};
    #[pymodule_export]
    use super::probe::{SimulatedBench, probe};
    #[pymodule_export]
    use super::quantity::{format_bytes, format_duration_ns, parse_bytes, parse_duration_ns, parse_rate};
    #[pymodule_export]
    use super::replay::replay;
    #[pymodule_export]
    use super::request_log::RequestLog;
    #[pymodule_export]
    use super::results::{Results, result_fields};
    #[pymodule_export]
    use super::run::run;
    #[pymodule_export]
    use super::synthesis::trace_synthesize;
    #[pymodule_export]
    use super::table::Table;
    #[pymodule_export]
    use super::trace::{
        trace_analyze, trace_analyze_part, trace_course, trace_export, trace_export_formats, trace_format_lines,
        trace_formats, trace_import, trace_info, trace_merge_parts, trace_parts, trace_split, trace_volumes,
    };
    #[pymodule_export]
    use super::trees::{measure_trees, verify_tree};
    #[pymodule_export]
    use super::validate::validate;
    #[pymodule_export]
    use super::volume_type::{VolumeType, volume_types};

    /// Returns the version of headstack.
    #[pyfunction]
    fn version() -> &'static str {
        env!("CARGO_PKG_VERSION")
    }

    #[pymodule_init]
    fn constants(module: &Bound<'_, PyModule>) -> PyResult<()> {
        super::error::define(module)?;
        module.add("CLASS_LIMITS_NS", headstack_load::CLASS_LIMITS_NS)?;
        for (name, SyncWrites { low_per_s, high_per_s, drives }) in [
            ("SYNC_WRITES_PROTECTED", headstack_sim::notes::SYNC_WRITES_PROTECTED),
            ("SYNC_WRITES_UNPROTECTED", headstack_sim::notes::SYNC_WRITES_UNPROTECTED),
        ] {
            module.add(name, (low_per_s, high_per_s, drives))?;
        }
        module.add("NOTE_OF_OPENZFS", headstack_sim::notes::NOTE_OF_OPENZFS)?;
        module.add("NOTES_OF_TAIL", pyo3::types::PyTuple::new(module.py(), headstack_sim::notes::NOTES_OF_TAIL)?)?;
        module.add("LEVELS", tuple(module, &LevelName::forms())?)?;
        module.add("OPTIONS", pyo3::types::PyTuple::new(module.py(), headstack_catalogue::options::OPTIONS)?)?;
        module.add("POLICIES", tuple(module, &Policy::ALL)?)?;
        module.add("RESULT_SCHEMA", headstack_result::SCHEMA_VERSION)?;
        module.add("HOSTS", tuple(module, &HostProfile::ALL)?)?;
        module.add("READ_AHEADS", tuple(module, &ReadAhead::ALL)?)?;
        module.add("VOLUME_UNITS", pyo3::types::PyTuple::new(module.py(), BILLED_UNITS)?)?;
        module.add("FLASH_STATES", tuple(module, &FlashState::ALL)?)?;
        module.add("WRITE_CACHES", tuple(module, &WriteCache::ALL)?)?;
        module.add("WRITING_STOPPED", headstack_load::WRITING_STOPPED)
    }

    /// Returns the names of an enum's values as a tuple.
    fn tuple<'py, T: Serialize>(
        module: &Bound<'py, PyModule>,
        values: &[T],
    ) -> PyResult<Bound<'py, pyo3::types::PyTuple>> {
        let name = |value| match serde_json::to_value(value) {
            Ok(serde_json::Value::String(name)) => name,
            other => unreachable!("the enum has names only: {other:?}"),
        };
        pyo3::types::PyTuple::new(module.py(), values.iter().map(name))
    }
}
