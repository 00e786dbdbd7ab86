//! Every speed figure of the product in one table: `cargo run --release -p headstack-benches --bin speed`.
//!
//! `--simulator` takes those of simulated drives alone: requests a second, replays, set-up, `--replays` those of stored
//! traces. `--measuring` takes those of
//! measuring alone, which need fio for comparison, `--live` those of live exports. `--long` simulates 10^9 requests for the
//! figure of memory, in place of 10^8, and analyses 10^8, in place of 3 x 10^7.

mod analyses;
mod arrays;
mod bare;
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
mod traces;

use std::process::ExitCode;

use report::Report;

/// Requests that are simulated and analysed for the figures of memory.
const USUAL: [u64; 2] = [100_000_000, 30_000_000];
const LONG: [u64; 2] = [1_000_000_000, 100_000_000];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let [simulated, analysed] = match arguments[..] {
        ["--replays"] => {
            let mut report = Report::begin();
            replaying::stored_trace(&mut report);
            return finish(report);
        }
        ["--simulator"] => return finish(simulator(Report::begin())),
        ["--measuring"] => return finish(measured(Report::begin())),
        ["--live"] => return finish(exported(Report::begin())),
        [measuring::CHILD, target, depth, requests] => {
            let number = |text: &str| -> u64 { text.parse().expect("the parent gives a number") };
            measuring::child(target, number(depth) as u32, number(requests));
            return ExitCode::SUCCESS;
        }
        [] => USUAL,
        ["--long"] => LONG,
        [memory::ARRAY_CHILD] => {
            memory::array_child();
            return ExitCode::SUCCESS;
        }
        [memory::ANALYSIS_CHILD, requests] => {
            memory::analysis_child(requests.parse().expect("the parent gives a number"));
            return ExitCode::SUCCESS;
        }
        [memory::CHILD, requests] => {
            memory::child(requests.parse().expect("the parent gives a number"));
            return ExitCode::SUCCESS;
        }
        _ => {
            eprintln!("speed: {arguments:?}: nothing, --long, --simulator, --measuring or --live is allowed");
            return ExitCode::from(2);
        }
    };
    let mut report = Report::begin();
    rows::drive_under_random_reads(&mut report);
    rows::file_server(&mut report);
    rows::two_cores(&mut report);
    arrays::solid_state(&mut report);
    arrays::striped(&mut report);
    arrays::set_up(&mut report);
    arrays::hot_band(&mut report);
    arrays::an_hour_of_oltp(&mut report);
    rows::parts(&mut report);
    rows::replayed(&mut report);
    replaying::stored_trace(&mut report);
    traces::block_trace(&mut report);
    traces::msr(&mut report);
    analyses::stack_distances(&mut report);
    analyses::caches(&mut report);
    analyses::whole(&mut report);
    memory::of_runs(&mut report, simulated);
    memory::virtual_array(&mut report);
    memory::of_analyses(&mut report, analysed);
    python::configurations(&mut report);
    python::cluster(&mut report);
    python::predictions(&mut report);
    finish(exported(measured(report)))
}

/// The figures of simulated drives that a change of the simulator shows in first.
fn simulator(mut report: Report) -> Report {
    rows::drive_under_random_reads(&mut report);
    arrays::set_up(&mut report);
    rows::replayed(&mut report);
    replaying::stored_trace(&mut report);
    report
}

/// The figures of live exports.
fn exported(mut report: Report) -> Report {
    live::lateness(&mut report);
    live::queue(&mut report);
    live::conformance(&mut report);
    nbd::beside_nbdkit(&mut report);
    report
}

/// The figures of measuring.
fn measured(mut report: Report) -> Report {
    measuring::null_target(&mut report);
    measuring::random_reads(&mut report);
    measuring::overload(&mut report);
    report
}

fn finish(report: Report) -> ExitCode {
    match report.finish() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("speed: target/bench.json cannot be written: {error}");
            ExitCode::FAILURE
        }
    }
}
