//! Tests of workloads and scenarios, one topic per file.

mod catalogue;
mod database;
mod document;
mod fake;
mod quantity;
mod scenario;
mod scenario_files;
