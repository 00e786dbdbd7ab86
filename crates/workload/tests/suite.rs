//! Workloads and scenarios, one matter a file.

mod catalogue;
mod document;
mod fake;
mod quantity;
mod scenario;
mod scenario_files;
