//! fio's job files and command lines: what they become, what is remarked, what is refused.

use std::io;

use headstack_workload::jobs::fio;
use headstack_workload::jobs::{Extent, Job, JobEngine, JobFile, Limits, Sync, Verify};
use headstack_workload::{Addresses, ArrivalProcess, Arrivals, InputError, Think};
use proptest::prelude::*;

/// Variables as the tests set them.
fn environment(name: &str) -> Option<String> {
    match name {
        "SIZE" => Some("64m".to_owned()),
        "$pagesize" => Some("4096".to_owned()),
        "$mb_memory" => Some("1000".to_owned()),
        "$ncpus" => Some("8".to_owned()),
        _ => None,
    }
}

fn include(name: &str) -> io::Result<String> {
    match name {
        "depth.fio" => Ok("ioengine=libaio\niodepth=16\nthinktime_spin=5\n".to_owned()),
        "bad.fio" => Ok("bs=4k\niodepht=16\n".to_owned()),
        "section.fio" => Ok("[more]\n".to_owned()),
        "self.fio" => Ok("include self.fio\n".to_owned()),
        _ => Err(io::Error::new(io::ErrorKind::NotFound, "no such file")),
    }
}

fn try_read(text: &str) -> Result<JobFile, InputError> {
    fio::read("test.fio", text, &environment, &include)
}

fn read(text: &str) -> JobFile {
    try_read(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The only job of `[j]` with these lines.
fn job(lines: &str) -> Job {
    let file = read(&format!("[j]\n{lines}"));
    assert_eq!((file.phases.len(), file.phases[0].jobs.len()), (1, 1), "{lines}");
    file.phases[0].jobs[0].clone()
}

fn error(text: &str) -> String {
    match try_read(text) {
        Ok(file) => panic!("{text:?} is accepted as {file:?}"),
        Err(error) => error.to_string(),
    }
}

/// Where fio's own examples are: `$HEADSTACK_FIO_EXAMPLES`, or where distributions put them.
fn examples() -> Option<Vec<std::path::PathBuf>> {
    let stated = std::env::var("HEADSTACK_FIO_EXAMPLES").ok();
    let folder = stated.unwrap_or_else(|| "/usr/share/doc/fio/examples".to_owned());
    let mut paths: Vec<_> = std::fs::read_dir(&folder).ok()?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "fio"));
    paths.sort();
    (!paths.is_empty()).then_some(paths)
}

/// Engines of the examples that are for neither files nor block devices.
fn is_for_another_engine(error: &InputError) -> bool {
    error.key == "ioengine" && error.message.contains("is not for files and block devices")
}

/// Prints a table of what becomes of each example.
#[test]
fn the_examples_of_fio_run_or_are_refused_for_their_engine() {
    let Some(paths) = examples() else {
        return println!("skipped: no fio examples in $HEADSTACK_FIO_EXAMPLES or /usr/share/doc/fio/examples");
    };
    let environment = |name: &str| match name {
        "FIO_RW" => Some("randread".to_owned()),
        _ => environment(name).or_else(|| Some("1".to_owned())),
    };
    let (mut generic, mut refused) = (0, Vec::new());
    println!("| example | outcome | options with a remark, or the reason |\n| --- | --- | --- |");
    for path in paths {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        let (outcome, detail) = match fio::read(&name, &text, &environment, &include) {
            Ok(file) => {
                generic += 1;
                let mut options: Vec<String> =
                    file.remarks.iter().map(|remark| format!("`{}`", remark.option)).collect();
                options.sort();
                options.dedup();
                (if options.is_empty() { "runs" } else { "runs, with remarks" }, options.join(", "))
            }
            Err(error) => {
                if !is_for_another_engine(&error) {
                    refused.push(error.to_string());
                }
                ("refused", error.to_string())
            }
        };
        println!("| {name} | {outcome} | {detail} |");
    }
    assert!(refused.is_empty(), "{refused:#?}");
    assert!(generic > 0);
}
