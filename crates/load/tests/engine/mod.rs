//! End-to-end tests of measurements: the loops on a target with a fixed service time, requests on files and devices,
//! and failures.

mod failures;
mod files;
mod hung;
mod loops;
pub mod support;
