//! vdbench's parameter files, and the simulation of what they ask for. What follows a NUL is the content of every file
//! that the first part includes.

#![no_main]

use std::io;

use headstack_jobfiles::vdbench;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let (main, included) = text.split_once('\0').unwrap_or((text, ""));
    let include = |_: &str| match included {
        "" => Err(io::Error::from(io::ErrorKind::NotFound)),
        _ => Ok(included.to_owned()),
    };
    let substitutes = [("lun".to_owned(), "/dev/sdb".to_owned())];
    let jobs = match vdbench::read("fuzz.txt", main, &substitutes, &include) {
        Ok(jobs) => jobs,
        Err(error) => return assert_eq!(error.to_string().lines().count(), 1, "an error is one line"),
    };
    for phase in jobs.phases.iter().take(16) {
        let observed: Vec<f64> = (1..=phase.jobs.len()).map(|job| job as f64 * 100.0).collect();
        if let Err(error) = phase.at_observed(&observed).demand(1 << 40) {
            assert_eq!(error.to_string().lines().count(), 1, "an error is one line");
        }
    }
});
