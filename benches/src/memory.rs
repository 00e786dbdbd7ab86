//! Peak memory of a run, each in a process of its own, since a peak never falls.

use std::process::Command;
use std::time::Instant;

use headstack_sim::run;

use crate::report::{Bar, Figure, Report, first_value};
use crate::rows::{answer, deep_drive, random_reads};

/// The argument, followed by a number of requests, that makes this program the child.
pub const CHILD: &str = "--peak-memory-of";

const FEW: u64 = 1_000_000;
const KIB_PER_MIB: f64 = 1024.0;

struct Peak {
    mib: f64,
    per_s: f64,
    answer: String,
}

/// Simulates `requests` and prints the process's peak memory in KiB, requests a second and the answer.
pub fn child(requests: u64) {
    let spec = random_reads(&deep_drive("cheetah-x15-36lp"), 1, requests);
    let start = Instant::now();
    let result = run(&spec, &|_| true).expect("the specification is valid");
    let per_s = requests as f64 / start.elapsed().as_secs_f64();
    let peak = first_value("/proc/self/status", "VmHWM").unwrap_or_default();
    println!("{} {per_s} {}", peak.trim_end_matches(" kB"), answer(&result));
}

fn peak_of(requests: u64) -> Result<Peak, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new(program).args([CHILD, &requests.to_string()]).output();
    let output = output.map_err(|error| format!("no child process: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let words: Vec<&str> = text.split_whitespace().collect();
    match words[..] {
        [kib, per_s, answer] => Ok(Peak {
            mib: kib.parse::<f64>().map_err(|_| "no VmHWM in /proc/self/status".to_owned())? / KIB_PER_MIB,
            per_s: per_s.parse().expect("the child prints a number"),
            answer: answer.to_owned(),
        }),
        _ => Err(format!("the child says {text:?}, {}", output.status)),
    }
}

/// Peak at 10^6 and at `many` requests, and by how much it grew.
pub fn rows(report: &mut Report, many: u64) {
    let name = |requests: u64| format!("peak memory, 10^{} requests", requests.ilog10());
    let (few, many_peak) = match (peak_of(FEW), peak_of(many)) {
        (Ok(few), Ok(many)) => (few, many),
        (Err(reason), _) | (_, Err(reason)) => return report.skip(&name(many), reason),
    };
    let single =
        |name: String, value, unit, bar, answer| Figure { name, value, best: None, unit, peer: None, bar, answer };
    report.add(single(name(FEW), few.mib, "MiB", Some(Bar::AtMost(64.0)), Some(few.answer)));
    report.add(single(name(many), many_peak.mib, "MiB", Some(Bar::AtMost(64.0)), Some(many_peak.answer)));
    let growth_mib = many_peak.mib - few.mib;
    report.add(single(
        format!("growth from 10^6 to 10^{}", many.ilog10()),
        growth_mib,
        "MiB",
        Some(Bar::AtMost(1.0)),
        None,
    ));
    report.add(single(format!("speed over 10^{} requests", many.ilog10()), many_peak.per_s, "requests/s", None, None));
}
