//! Measurements from end to end: their loops on a target that answers after a fixed time, their requests on files and
//! devices, and what goes wrong with these.

mod failures;
mod files;
mod hung;
mod loops;
pub mod support;
