//! Peak memory of runs and analyses, each in a process of its own, since a peak never falls.

use std::process::Command;
use std::time::Instant;

use headstack_catalogue::{Changes, array};
use headstack_result::content_hash;
use headstack_sim::{Demand, RunSpec, SystemDescription, run};
use headstack_trace::Meta;
use headstack_trace::analyze::{Analysis, Options};
use headstack_workload::{Document, RunLength, Workload};
use serde_json::json;

use crate::python::{broken, lacking};
use crate::recordings::scattered;
use crate::report::{Bar, Figure, Missing, Report, first_value};
use crate::rows::{answer, deep_drive, random_reads};

/// The argument, followed by a number of requests, that makes this program the child.
pub const CHILD: &str = "--peak-memory-of";

/// The argument, followed by a number of requests, that makes this program the child with the analysis.
pub const ANALYSIS_CHILD: &str = "--peak-memory-of-an-analysis-of";

/// The argument that makes this program the child with the virtual array.
pub const ARRAY_CHILD: &str = "--peak-memory-of-a-virtual-array";

const KIB_PER_MIB: f64 = 1024.0;

struct Peak {
    mib: f64,
    per_s: f64,
    answer: String,
}

/// Simulates `requests` and prints the process's peak memory in KiB, requests a second and the answer.
pub fn child(requests: u64) {
    simulate(&random_reads(&deep_drive("cheetah-x15-36lp"), 1, requests), requests);
}

fn simulate(spec: &RunSpec, requests: u64) {
    let start = Instant::now();
    let result = run(spec, &|_| true).expect("the specification is valid");
    tell_peak(requests as f64 / start.elapsed().as_secs_f64(), &answer(&result));
}

/// Analyses so many scattered requests, by default options.
pub fn analysis_child(requests: u64) {
    let start = Instant::now();
    let mut analysis = Analysis::new(Options::default()).expect("the default is allowed");
    scattered(requests).for_each(|batch| analysis.add(&batch));
    let report = analysis.finish(&Meta::default());
    assert_eq!(report.requests, requests, "requests were lost");
    let report = serde_json::to_string(&report).expect("reports become JSON");
    tell_peak(requests as f64 / start.elapsed().as_secs_f64(), &content_hash(report.as_bytes()));
}

/// What [`peak_of`] reads.
fn tell_peak(per_s: f64, answer: &str) {
    let peak = first_value("/proc/self/status", "VmHWM").unwrap_or_default();
    println!("{} {per_s} {answer}", peak.trim_end_matches(" kB"));
}

/// A virtual array with a LUN of so many MB that has been written from end to end, under 100,000 random requests.
pub fn array_child(lun_mb: u64) {
    const REQUESTS: u64 = 100_000;
    let text = format!(
        "name = \"virtual array\"\n[[drives]]\ndrive = \"constellation2-1tb\"\ncount = 15\n\
                [[groups]]\nlevel = \"raid10\"\nchunk_size = \"256KiB\"\n[groups.pool]\n\
                [[luns]]\nname = \"lun\"\nsize = \"{lun_mb}MB\"\nprefill = \"serial\"\n"
    );
    let document = Document::parse("virtual array", &text).expect("it is TOML");
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
        faults: None,
    };
    simulate(&spec, REQUESTS);
}

fn peak_of(arguments: &[&str]) -> Result<Peak, Missing> {
    let program = std::env::current_exe().map_err(|error| Missing::Broken(error.to_string()))?;
    let output = Command::new(program).args(arguments).output();
    let output = output.map_err(|error| Missing::Broken(format!("no child process: {error}")))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let words: Vec<&str> = text.split_whitespace().collect();
    match words[..] {
        [kib, per_s, answer] => Ok(Peak {
            mib: kib.parse::<f64>().map_err(|_| lacking("no VmHWM in /proc/self/status"))? / KIB_PER_MIB,
            per_s: per_s.parse().expect("the child prints a number"),
            answer: answer.to_owned(),
        }),
        [_, _] => Err(lacking("no VmHWM in /proc/self/status")),
        _ => Err(broken(&output)),
    }
}

/// What has a peak: the argument of its child, how it is called, requests of two lengths, and what memory is allowed.
struct Subject {
    child: &'static str,
    what: &'static str,
    few: u64,
    many: u64,
    peak_mib: f64,
    growth_mib: f64,
}

/// Peaks of runs of 10^6 and of `many` requests, and by how much they grew.
pub fn of_runs(report: &mut Report) {
    let (few, many) = (report.size().count(1_000_000), report.size().long_count(100_000_000));
    compare(report, &Subject { child: CHILD, what: "", few, many, peak_mib: 64.0, growth_mib: 1.0 });
}

/// The same of analyses. Hardly any block comes twice, so that tables grow until they are as large as they may be: with
/// the first ten million requests they are.
pub fn of_analyses(report: &mut Report) {
    let what = "analysis of ";
    let (few, many) = (report.size().count(10_000_000), report.size().long_count(30_000_000));
    compare(report, &Subject { child: ANALYSIS_CHILD, what, few, many, peak_mib: 1024.0, growth_mib: 16.0 });
}

fn compare(report: &mut Report, subject: &Subject) {
    let (few, many) = (power(subject.few), power(subject.many));
    let peak_of = |requests: u64| peak_of(&[subject.child, &requests.to_string()]);
    let peaks = peak_of(subject.few).and_then(|few| Ok((few, peak_of(subject.many)?)));
    let what = subject.what;
    let name = |requests: &str| format!("peak memory, {what}{requests} requests");
    let (few_peak, many_peak) = match peaks {
        Ok(peaks) => peaks,
        Err(missing) => return report.miss(&name(&many), missing),
    };
    let single =
        |name: String, value, unit, bar, answer| Figure { name, value, best: None, unit, peer: None, bar, answer };
    let at_most = Some(Bar::AtMost(subject.peak_mib));
    report.add(single(name(&few), few_peak.mib, "MiB", at_most, Some(few_peak.answer)));
    report.add(single(name(&many), many_peak.mib, "MiB", at_most, Some(many_peak.answer)));
    let growth_mib = many_peak.mib - few_peak.mib;
    let at_most = Some(Bar::AtMost(subject.growth_mib));
    report.add(single(format!("growth from {what}{few} to {many}"), growth_mib, "MiB", at_most, None));
    report.add(single(format!("speed over {what}{many} requests"), many_peak.per_s, "requests/s", None, None));
}

/// 10^n, or 3 x 10^n.
fn power(requests: u64) -> String {
    let exponent = requests.ilog10();
    match requests / 10u64.pow(exponent) {
        1 => format!("10^{exponent}"),
        times => format!("{times} x 10^{exponent}"),
    }
}

/// Peak of a virtual array of 1 TB, all of it allocated.
pub fn virtual_array(report: &mut Report) {
    const NAME: &str = "peak memory, 1 TB virtual array, all allocated";
    let lun_mb = report.size().count(1_000_000);
    match peak_of(&[ARRAY_CHILD, &lun_mb.to_string()]) {
        Err(missing) => report.miss(NAME, missing),
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
