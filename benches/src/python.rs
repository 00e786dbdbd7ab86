//! What is measured through Python, as users run it: sweeps with their memory, what a cluster adds, predictions.

use std::process::Command;

use serde_json::Value;

use crate::report::{Bar, Figure, Report, repository};

/// Sweeps of 1,000 and of 10,000 drives under 10,000 requests each.
pub fn configurations(report: &mut Report) {
    for (count, bar_s) in [(1_000, None), (10_000, Some(Bar::AtMost(60.0)))] {
        let name = format!("sweep of {count} drives, 10,000 requests each");
        let memory = format!("peak memory, {name}");
        let told = match tell("sweep.py", &["configurations", &count.to_string()]) {
            Err(reason) => {
                report.skip(&name, reason);
                continue;
            }
            Ok(told) => told,
        };
        let answer = told["answer"].as_str().map(str::to_owned);
        let processor = format!("the same, of all cores ({count} drives)");
        report.add(figure(name, number(&told, "seconds"), "s", bar_s, answer));
        report.add(figure(processor, number(&told, "processor_s"), "s", None, None));
        report.add(figure(memory, number(&told, "peak_mib"), "MiB", Some(Bar::AtMost(512.0)), None));
    }
}

/// The same sweep here and on a cluster of this machine.
pub fn cluster(report: &mut Report) {
    let name = "a sweep on a Dask cluster, beyond what it takes here";
    match tell("sweep.py", &["cluster", "2000"]) {
        Err(reason) => report.skip(name, reason),
        Ok(told) => {
            report.add(figure(name.to_owned(), number(&told, "price_percent"), "%", Some(Bar::AtMost(3.0)), None));
        }
    }
}

/// Predictions from the low-level tests of a drive.
pub fn predictions(report: &mut Report) {
    match tell("predict.py", &["cheetah-9lp"]) {
        Err(reason) => report.skip("predictions", reason),
        Ok(told) => {
            for (loops, bar) in [("closed", Some(Bar::AtLeast(10_000.0))), ("open", None)] {
                let name = format!("predictions, {loops} loops");
                report.add(figure(name, number(&told, loops), "predictions/s", bar, None));
            }
        }
    }
}

fn figure(name: String, value: f64, unit: &'static str, bar: Option<Bar>, answer: Option<String>) -> Figure {
    Figure { name, value, best: None, unit, peer: None, bar, answer }
}

/// What a script of this folder says.
///
/// # Errors
/// The last line of its complaint.
pub fn tell(script: &str, arguments: &[&str]) -> Result<Value, String> {
    let python = repository().join(".venv/bin/python");
    let script = repository().join("benches").join(script);
    let output = Command::new(&python).arg(script).args(arguments).output();
    let output = output.map_err(|error| format!("{}: {error}", python.display()))?;
    serde_json::from_slice(&output.stdout).map_err(|_| {
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        error.lines().last().unwrap_or("it says nothing").to_owned()
    })
}

fn number(told: &Value, key: &str) -> f64 {
    told[key].as_f64().expect("the script prints numbers")
}
