//! The path of a live export that takes no time, against nbdkit's memory plugin.

use serde_json::Value;

use crate::python::tell;
use crate::report::{Bar, Figure, Peer, Report};

/// How many I/Os a second, and what each costs the server, by fio.
pub fn beside_nbdkit(report: &mut Report) {
    let told = match tell("nbd.py", &[]) {
        Err(reason) => return report.skip("live exports beside nbdkit", reason),
        Ok(told) => told,
    };
    for workload in told.as_array().expect("the script prints a list") {
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
        // At depth 1 it is the machine that is measured: how soon a processor wakes that has nothing to do.
        let is_deep = depth != "1";
        let rate = is_deep.then(|| Bar::AtLeast(1.2 * theirs("ios_per_s")));
        let cost = is_deep.then(|| Bar::AtMost(0.8 * theirs("processor_us")));
        report.add(figure("I/O", "ios_per_s", "I/O/s", rate));
        report.add(figure("processor of the server", "processor_us", "us an I/O", cost));
    }
}

fn number(told: &Value, key: &str) -> f64 {
    told[key].as_f64().expect("the script prints numbers")
}
