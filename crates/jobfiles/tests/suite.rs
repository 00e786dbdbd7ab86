//! Tests of other programs' job files, one topic per file.

mod demand;
#[allow(dead_code)] // Not all of it is needed here.
#[path = "../../workload/tests/fake/mod.rs"]
mod fake;
mod fio;
mod fio_language;
mod icf;
mod job_files;
mod trees;
mod vdbench;
