//! The path of a live export that takes no time, compared with nbdkit's memory plugin.

use serde_json::Value;

use crate::python::run_json;
use crate::report::{Bar, Figure, Peer, Report};
use crate::size::Size;

/// I/Os a second and the server's processor time for each, by fio.
pub fn compare_with_nbdkit(report: &mut Report) {
    let arguments: &[&str] = if report.size() == Size::Smoke { &["1", "0.1"] } else { &["7", "1"] };
    let found = match run_json("nbd.py", arguments) {
        Err(missing) => return report.miss("live exports beside nbdkit", missing),
        Ok(found) => found,
    };
    for workload in found.as_array().expect("the script prints a list") {
        let [kind, depth] = ["kind", "depth"].map(|key| workload[key].to_string().replace('"', ""));
        let figure = |what: &str, key: &str, unit, bar: Option<Bar>| Figure {
            name: format!("live over NBD, 4 KiB {kind}, depth {depth}: {what}"),
            value: number(&workload["headstack"], key),
            best: None,
            unit,
            peer: Some(Peer { name: "nbdkit memory, here".to_owned(), value: number(&workload["nbdkit"], key) }),
            bar,
            answer: None,
        };
        let theirs = |key: &str| number(&workload["nbdkit"], key);
        // Depth 1 measures the machine: how soon an idle processor wakes.
        let is_deep = depth != "1";
        let rate = is_deep.then(|| Bar::AtLeast(1.2 * theirs("ios_per_s")));
        let cost = is_deep.then(|| Bar::AtMost(0.8 * theirs("processor_us")));
        report.add(figure("I/O", "ios_per_s", "I/O/s", rate));
        report.add(figure("processor of the server", "processor_us", "us an I/O", cost));
    }
}

fn number(found: &Value, key: &str) -> f64 {
    found[key].as_f64().unwrap_or_else(|| panic!("{key} is no number in {found}"))
}
