//! Job files for the tests.

use std::io;

use headstack_jobfiles::{JobFile, fio};
use headstack_workload::InputError;

/// Returns the values of variables for the tests.
pub fn environment(name: &str) -> Option<String> {
    match name {
        "SIZE" => Some("64m".to_owned()),
        "$pagesize" => Some("4096".to_owned()),
        "$mb_memory" => Some("1000".to_owned()),
        "$ncpus" => Some("8".to_owned()),
        _ => None,
    }
}

pub fn include(name: &str) -> io::Result<String> {
    match name {
        "depth.fio" => Ok("ioengine=io_uring\niodepth=16\nthinktime_spin=5\n".to_owned()),
        "bad.fio" => Ok("bs=4k\niodepht=16\n".to_owned()),
        "section.fio" => Ok("[more]\n".to_owned()),
        "self.fio" => Ok("include self.fio\n".to_owned()),
        _ => Err(io::Error::new(io::ErrorKind::NotFound, "no such file")),
    }
}

pub fn try_read(text: &str) -> Result<JobFile, InputError> {
    fio::read("test.fio", text, &[], &environment, &include)
}

pub fn read(text: &str) -> JobFile {
    try_read(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Returns the names of the jobs in each phase.
pub fn phases(file: &JobFile) -> Vec<Vec<&str>> {
    file.phases.iter().map(|phase| phase.jobs.iter().map(|job| job.name.as_str()).collect()).collect()
}
