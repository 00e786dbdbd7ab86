//! Rows that are measured through Python, as users run it: sweeps, their memory, the cost of a cluster, predictions.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

use crate::report::{Bar, Figure, Missing, Report, repository};
use crate::size::Size;

/// Exit code of a script on a machine that lacks something it needs, such as fio.
const LACKING: i32 = 77;

/// Requests to each drive of a sweep.
const REQUESTS: u64 = 10_000;

/// Sweeps of 1,000 and of 10,000 drives under 10,000 requests each.
pub fn configurations(report: &mut Report) {
    for (count, bar_s) in [(1_000, None), (10_000, Some(Bar::AtMost(60.0)))] {
        let name = format!("sweep of {count} drives, 10,000 requests each");
        let memory = format!("peak memory, {name}");
        let [count, requests] = [count, REQUESTS].map(|full| report.size().count(full).to_string());
        let found = match run_json("sweep.py", &["configurations", &count, &requests]) {
            Err(missing) => {
                report.miss(&name, missing);
                continue;
            }
            Ok(found) => found,
        };
        let answer = found["answer"].as_str().map(str::to_owned);
        let processor = format!("the same, of all cores ({count} drives)");
        report.add(figure(name, number(&found, "seconds"), "s", bar_s, answer));
        report.add(figure(processor, number(&found, "processor_s"), "s", None, None));
        report.add(figure(memory, number(&found, "peak_mib"), "MiB", Some(Bar::AtMost(512.0)), None));
    }
}

/// The same sweep here and on a cluster of this machine.
pub fn cluster(report: &mut Report) {
    let name = "a sweep on a Dask cluster, beyond what it takes here";
    let size = report.size();
    let [count, requests] = [2_000, REQUESTS].map(|full| size.count(full).to_string());
    match run_json("sweep.py", &["cluster", &count, &requests, &size.rounds(7).to_string()]) {
        Err(missing) => report.miss(name, missing),
        Ok(found) => {
            report.add(figure(name.to_owned(), number(&found, "price_percent"), "%", Some(Bar::AtMost(3.0)), None));
        }
    }
}

/// Predictions from the low-level tests of a drive.
pub fn predictions(report: &mut Report) {
    let mut arguments = vec!["cheetah-9lp"];
    if report.size() == Size::Smoke {
        arguments.push("--smoke");
    }
    match run_json("predict.py", &arguments) {
        Err(missing) => report.miss("predictions", missing),
        Ok(found) => {
            for (loops, bar) in [("closed", Some(Bar::AtLeast(10_000.0))), ("open", None)] {
                let name = format!("predictions, {loops} loops");
                report.add(figure(name, number(&found, loops), "predictions/s", bar, None));
            }
        }
    }
}

fn figure(name: String, value: f64, unit: &'static str, bar: Option<Bar>, answer: Option<String>) -> Figure {
    Figure { name, value, best: None, unit, peer: None, bar, answer }
}

/// The interpreter that has headstack: of `HEADSTACK_PYTHON`, or of the checkout's environment.
fn python() -> PathBuf {
    let usual = || repository().join(".venv/bin/python");
    std::env::var_os("HEADSTACK_PYTHON").map_or_else(usual, PathBuf::from)
}

/// Standard output of a script in this folder.
///
/// # Errors
/// When there is no interpreter, or the script fails.
pub fn run_script(script: &str, arguments: &[&OsStr]) -> Result<String, Missing> {
    let python = python();
    if !python.exists() {
        return Err(lacking(&format!("no {}: run make build", python.display())));
    }
    let script = repository().join("benches").join(script);
    let output = Command::new(&python).arg(script).args(arguments).output();
    let output = output.map_err(|error| Missing::Broken(format!("{}: {error}", python.display())))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(broken(&output))
    }
}

/// Why a process gave no figure, by its exit code and the last line of its standard error.
pub fn broken(output: &Output) -> Missing {
    let error = String::from_utf8_lossy(&output.stderr);
    let last = error.lines().last().unwrap_or("no error message");
    match output.status.code() {
        Some(LACKING) => lacking(last),
        _ => Missing::Broken(format!("{}: {last}", output.status)),
    }
}

/// A row that this machine cannot measure.
pub fn lacking(reason: &str) -> Missing {
    Missing::Lacking(reason.to_owned())
}

/// The JSON that a script in this folder prints.
///
/// # Errors
/// When there is no interpreter, or the script fails or prints something else.
pub fn run_json(script: &str, arguments: &[&str]) -> Result<Value, Missing> {
    let arguments: Vec<&OsStr> = arguments.iter().map(OsStr::new).collect();
    let text = run_script(script, &arguments)?;
    serde_json::from_str(&text).map_err(|_| Missing::Broken(format!("{script} prints {text:?}")))
}

fn number(found: &Value, key: &str) -> f64 {
    found[key].as_f64().unwrap_or_else(|| panic!("{key} is no number in {found}"))
}
