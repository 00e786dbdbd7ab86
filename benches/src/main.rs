//! Every speed figure of the product in one table: `cargo run --release -p headstack-benches --bin speed`.
//!
//! `--long` simulates 10^9 requests for the row of peak memory instead of 10^8, and analyses 3 x 10^8 instead of 3 x 10^7.
//! `--simulator`, `--replays`, `--measuring` and `--live` measure some groups only. `--smoke` measures every row at a tiny
//! size, to see that all of them run. `--bare-loop` prints the machine's own speed. Exits with 1 if a row failed.

mod analyses;
mod arrays;
mod bare;
mod history;
mod live;
mod measure;
mod measuring;
mod memory;
mod nbd;
mod python;
mod recordings;
mod replaying;
mod report;
mod rows;
mod size;
mod traces;

use std::io;
use std::process::ExitCode;

use report::Report;
use size::Size;

/// A group of rows: its name, the options that measure it on their own, and the function that measures it.
type Group = (&'static str, &'static [&'static str], fn(&mut Report));

const GROUPS: &[Group] = &[
    ("random reads of one drive", &["simulator"], rows::drive_under_random_reads),
    ("File Server", &[], rows::file_server),
    ("two cores", &[], rows::two_cores),
    ("solid-state drive", &[], arrays::solid_state),
    ("7 drives", &[], arrays::striped),
    ("set-up of 24 drives", &["simulator"], arrays::set_up),
    ("Emerald hot band", &[], arrays::hot_band),
    ("one hour of OLTP", &["oltp"], arrays::an_hour_of_oltp),
    ("parts of a request", &[], rows::parts),
    ("replays", &["simulator"], rows::replayed),
    ("replays of a stored trace", &["simulator", "replays"], replaying::stored_trace),
    ("block trace", &[], traces::block_trace),
    ("MSR CSV", &[], traces::msr),
    ("stack distances", &[], analyses::stack_distances),
    ("cache lab", &[], analyses::caches),
    ("whole analyses", &[], analyses::whole),
    ("peak memory of runs", &[], memory::of_runs),
    ("peak memory of a virtual array", &[], memory::virtual_array),
    ("peak memory of analyses", &[], memory::of_analyses),
    ("sweeps", &["python"], python::configurations),
    ("sweep on a cluster", &["python"], python::cluster),
    ("predictions", &["python"], python::predictions),
    ("measuring, null target", &["measuring"], measuring::null_target),
    ("measuring, random reads", &["measuring"], measuring::random_reads),
    ("measuring, overload", &["measuring"], measuring::overload),
    ("lateness of a live export", &["live"], live::lateness),
    ("queue of a live export", &["live"], live::queue),
    ("live drive and simulated drive", &["live"], live::conformance),
    ("live export and nbdkit", &["live"], nbd::compare_with_nbdkit),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let number = |text: &str| -> u64 { text.parse().expect("the parent gives a number") };
    match arguments[..] {
        [] => measure(Size::Full, "all"),
        ["--long"] => measure(Size::Long, "long"),
        ["--smoke"] => measure(Size::Smoke, "all"),
        ["--bare-loop"] => {
            println!("{}", bare::Probe::new(Size::Full).per_s());
            ExitCode::SUCCESS
        }
        [measuring::CHILD, target, depth, requests] => {
            measuring::child(target, number(depth) as u32, number(requests));
            ExitCode::SUCCESS
        }
        [memory::ARRAY_CHILD, lun_mb] => {
            memory::array_child(number(lun_mb));
            ExitCode::SUCCESS
        }
        [memory::ANALYSIS_CHILD, requests] => {
            memory::analysis_child(number(requests));
            ExitCode::SUCCESS
        }
        [memory::CHILD, requests] => {
            memory::child(number(requests));
            ExitCode::SUCCESS
        }
        [option] if parts().contains(&option.trim_start_matches("--")) && option.starts_with("--") => {
            measure(Size::Full, option.trim_start_matches("--"))
        }
        _ => {
            let parts: Vec<String> = parts().iter().map(|part| format!("--{part}")).collect();
            eprintln!(
                "speed: {arguments:?}: use no option, --long, --smoke, --bare-loop, or one of {}",
                parts.join(" ")
            );
            ExitCode::from(2)
        }
    }
}

/// The options that measure some groups only.
fn parts() -> Vec<&'static str> {
    let mut parts: Vec<&str> = GROUPS.iter().flat_map(|(_, parts, _)| parts.iter().copied()).collect();
    parts.sort_unstable();
    parts.dedup();
    parts
}

/// Measures the groups that one of the options selects, or all of them.
fn measure(size: Size, part: &str) -> ExitCode {
    let measured = || -> io::Result<bool> {
        let mut report = Report::begin(size, part);
        let selected = self::parts().contains(&part);
        for (name, parts, measure) in GROUPS {
            if !selected || parts.contains(&part) {
                report.group(name, *measure)?;
            }
        }
        report.finish()
    };
    match measured() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("speed: the figures cannot be written: {error}");
            ExitCode::FAILURE
        }
    }
}
