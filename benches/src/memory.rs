//! Peak memory of a run, each in a process of its own, since a peak never falls.

use std::process::Command;
use std::time::Instant;

use headstack_catalogue::{Changes, array};
use headstack_sim::{Demand, RunSpec, SystemDescription, run};
use headstack_workload::{Document, RunLength, Workload};
use serde_json::json;

use crate::report::{Bar, Figure, Report, first_value};
use crate::rows::{answer, deep_drive, random_reads};

/// The argument, followed by a number of requests, that makes this program the child.
pub const CHILD: &str = "--peak-memory-of";

/// The argument that makes this program the child with the virtual array.
pub const ARRAY_CHILD: &str = "--peak-memory-of-a-virtual-array";

const FEW: u64 = 1_000_000;
const KIB_PER_MIB: f64 = 1024.0;

struct Peak {
    mib: f64,
    per_s: f64,
    answer: String,
}

/// Simulates `requests` and prints the process's peak memory in KiB, requests a second and the answer.
pub fn child(requests: u64) {
    tell(&random_reads(&deep_drive("cheetah-x15-36lp"), 1, requests), requests);
}

fn tell(spec: &RunSpec, requests: u64) {
    let start = Instant::now();
    let result = run(spec, &|_| true).expect("the specification is valid");
    let per_s = requests as f64 / start.elapsed().as_secs_f64();
    let peak = first_value("/proc/self/status", "VmHWM").unwrap_or_default();
    println!("{} {per_s} {}", peak.trim_end_matches(" kB"), answer(&result));
}

/// A virtual array with a LUN of 1 TB that has been written from end to end, under 100,000 random requests.
pub fn array_child() {
    const REQUESTS: u64 = 100_000;
    let text = "name = \"virtual array\"\n[[drives]]\ndrive = \"constellation2-1tb\"\ncount = 15\n\
                [[groups]]\nlevel = \"raid10\"\nstripe_unit = \"256KiB\"\n[groups.pool]\n\
                [[luns]]\nname = \"lun\"\nsize = \"1TB\"\nprefill = \"serial\"\n";
    let document = Document::parse("virtual array", text).expect("it is TOML");
    let array = array::resolve(&document, &Changes::default()).unwrap_or_else(|error| panic!("{error}"));
    let line = json!({"size": "8KiB", "read_percent": 60, "random_percent": 100});
    let workload: Workload = serde_json::from_value(json!({"name": "mix", "lines": [line]})).expect("it is valid");
    let spec = RunSpec {
        system_name: String::new(),
        system: SystemDescription::Array(array.description),
        demand: Demand::Workload(Workload { run_length: RunLength::Requests(REQUESTS), ..workload }),
        span: None,
        seed: 1,
        interval_ns: None,
        preload: 0,
    };
    tell(&spec, REQUESTS);
}

fn peak_of(arguments: &[&str]) -> Result<Peak, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new(program).args(arguments).output();
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
    let (few, many_peak) = match (peak_of(&[CHILD, &FEW.to_string()]), peak_of(&[CHILD, &many.to_string()])) {
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

/// Peak of a virtual array of 1 TB, all of it allocated.
pub fn virtual_array(report: &mut Report) {
    const NAME: &str = "peak memory, 1 TB virtual array, all allocated";
    match peak_of(&[ARRAY_CHILD]) {
        Err(reason) => report.skip(NAME, reason),
        Ok(peak) => report.add(Figure {
            name: NAME.to_owned(),
            value: peak.mib,
            best: None,
            unit: "MiB",
            peer: None,
            bar: Some(Bar::AtMost(256.0)),
            answer: Some(peak.answer),
        }),
    }
}
