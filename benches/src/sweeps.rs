//! Sweeps, through Python as users run them: how long, how much memory, and what a cluster adds.

use std::process::Command;

use serde_json::Value;

use crate::report::{Bar, Figure, Report, repository};

/// Sweeps of 1,000 and of 10,000 drives under 10,000 requests each.
pub fn configurations(report: &mut Report) {
    for (count, bar_s) in [(1_000, None), (10_000, Some(Bar::AtMost(60.0)))] {
        let name = format!("sweep of {count} drives, 10,000 requests each");
        let memory = format!("peak memory, {name}");
        let told = match tell("configurations", count) {
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
    match tell("cluster", 2_000) {
        Err(reason) => report.skip(name, reason),
        Ok(told) => {
            report.add(figure(name.to_owned(), number(&told, "price_percent"), "%", Some(Bar::AtMost(3.0)), None));
        }
    }
}

fn figure(name: String, value: f64, unit: &'static str, bar: Option<Bar>, answer: Option<String>) -> Figure {
    Figure { name, value, best: None, unit, peer: None, bar, answer }
}

/// What `benches/sweep.py` says.
fn tell(command: &str, count: u32) -> Result<Value, String> {
    let python = repository().join(".venv/bin/python");
    let script = repository().join("benches/sweep.py");
    let output = Command::new(&python).arg(script).args([command, &count.to_string()]).output();
    let output = output.map_err(|error| format!("{}: {error}", python.display()))?;
    serde_json::from_slice(&output.stdout).map_err(|_| {
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        error.lines().last().unwrap_or("it says nothing").to_owned()
    })
}

fn number(told: &Value, key: &str) -> f64 {
    told[key].as_f64().expect("the script prints numbers")
}
