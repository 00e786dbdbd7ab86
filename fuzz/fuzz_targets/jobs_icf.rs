//! Iometer's configuration files, and the simulation of what they ask for.

#![no_main]

use headstack_jobfiles::icf;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let jobs = match icf::read("fuzz.icf", text) {
        Ok(jobs) => jobs,
        Err(error) => return assert_eq!(error.to_string().lines().count(), 1, "an error is one line"),
    };
    for phase in jobs.phases.iter().take(16) {
        // A part may lie outside the system: that is an error, not a panic.
        if let Err(error) = phase.demand(1 << 40) {
            assert_eq!(error.to_string().lines().count(), 1, "an error is one line");
        }
    }
});
