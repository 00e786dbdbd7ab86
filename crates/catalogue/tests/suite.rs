//! Tests of drives, arrays and SSDs from files: parsing, derivation and results.

mod answers;
mod arrays;
mod chronicle;
mod common;
mod complete;
mod drives;
mod errors;
mod flash_arrays;
mod instances;
mod known_arrays;
mod power;
mod published;
mod rankings;
mod real_arrays;
mod real_disks;
mod real_hosts;
mod real_ssds;
mod sampling;
mod scenarios;
mod ssd_probes;
mod ssds;
mod stacks;
mod stated;
mod variations;
mod volumes;
