//! Every speed figure of the product in one table: `cargo run --release -p headstack-benches --bin speed`.
//!
//! `--long` simulates 10^9 requests for the figure of memory, in place of 10^8.

mod arrays;
mod bare;
mod measure;
mod memory;
mod report;
mod rows;

use std::process::ExitCode;

use report::Report;

const LONG: u64 = 1_000_000_000;
const USUAL: u64 = 100_000_000;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let memory_requests = match arguments[..] {
        [] => USUAL,
        ["--long"] => LONG,
        [memory::ARRAY_CHILD] => {
            memory::array_child();
            return ExitCode::SUCCESS;
        }
        [memory::CHILD, requests] => {
            memory::child(requests.parse().expect("the parent gives a number"));
            return ExitCode::SUCCESS;
        }
        _ => {
            eprintln!("speed: {arguments:?}: nothing or --long is allowed");
            return ExitCode::from(2);
        }
    };
    let mut report = Report::begin();
    rows::drive_under_random_reads(&mut report);
    rows::file_server(&mut report);
    rows::two_cores(&mut report);
    arrays::solid_state(&mut report);
    arrays::striped(&mut report);
    arrays::hot_band(&mut report);
    arrays::an_hour_of_oltp(&mut report);
    rows::parts(&mut report);
    rows::traces(&mut report);
    memory::rows(&mut report, memory_requests);
    memory::virtual_array(&mut report);
    match report.finish() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("speed: target/bench.json cannot be written: {error}");
            ExitCode::FAILURE
        }
    }
}
