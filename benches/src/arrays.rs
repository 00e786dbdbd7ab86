//! Arrays and solid-state drives: host requests a second, beside DiskSim where it was measured.

use std::time::Instant;

use headstack_catalogue::{Changes, array, load_system, scenarios};
use headstack_result::content_hash;
use headstack_sim::system::System;
use headstack_sim::{Demand, RunSpec, SystemDescription, run};
use headstack_workload::scenario::{Scenario, ScenarioLength};
use headstack_workload::{Arrivals, Document, RunLength, Think, Workload};
use serde_json::json;

use crate::measure::{ROUNDS, interleaved, round};
use crate::report::{Bar, Figure, Peer, Report};
use crate::rows::{DISKSIM, REQUESTS_PER_S, answer, milliseconds, rate, simulate};

/// Seven drives of the Cheetah 9LP's kind, each with a queue of its own, and no time for anything else: what DiskSim was
/// given.
fn seven_drives(level: &str) -> SystemDescription {
    let text = format!(
        "name = \"seven drives\"\n[[drives]]\ndrive = \"cheetah-9lp\"\ncount = 7\nwrite_cache = \"off\"\n\
         [[groups]]\nlevel = \"{level}\"\n"
    );
    let document = Document::parse("seven drives", &text).expect("it is TOML");
    let array = array::resolve(&document, &Changes::default()).expect("it is an array");
    SystemDescription::Array(array.description)
}

fn spec(system: SystemDescription, demand: Demand) -> RunSpec {
    RunSpec {
        system_name: String::new(),
        system,
        demand,
        span: None,
        seed: 1,
        interval_ns: None,
        preload: 0,
        faults: None,
    }
}

fn mix(queue_depth: u32, requests: u64) -> Demand {
    let line = json!({"size": "4KiB", "read_percent": 66, "random_percent": 100});
    let workload: Workload =
        serde_json::from_value(json!({"name": "mix", "lines": [line]})).expect("the workload is valid");
    Demand::Workload(Workload {
        arrivals: Arrivals::Closed { queue_depth, think: Think::None },
        run_length: RunLength::Requests(requests),
        ..workload
    })
}

/// RAID 0 and RAID 5 of seven drives, 66 % reads of 4 KiB, 16 outstanding. DiskSim's figures are for the same drives and
/// depth: RAID 0 with shortest positioning time first, RAID 5 first come, first served, one command a drive (with a
/// queue it crashes).
pub fn striped(report: &mut Report) {
    for (level, requests, bar, disksim_per_s) in
        [("raid0", 1_000_000, 2e6, 23_980.0), ("raid5", 500_000, 400e3, 2_628.0)]
    {
        let requests = report.size().count(requests);
        let spec = spec(seven_drives(level), mix(16, requests));
        let [speed] = interleaved(report.size().rounds(ROUNDS), [&mut || simulate(&spec, requests)]);
        let peer = Peer { name: DISKSIM.to_owned(), value: disksim_per_s };
        let name = format!("7 drives in {level}, 66 % reads of 4 KiB, depth 16");
        report.add(rate(name, speed, Some(peer), Some(Bar::AtLeast(bar))));
    }
}

/// What it takes to have 24 drives ready, before the first request.
pub fn set_up(report: &mut Report) {
    let arrays = report.size().count(100);
    let system = load_system("demartek-512n-raid5-24", &Changes::default()).expect("the catalogue has it");
    let description = system.description();
    let once = || System::new(&description, 1).expect("the catalogue is valid");
    let work = || (1..arrays).fold(once(), |_, _| once());
    let identify = |array: System| content_hash(array.next_event_ns().to_string().as_bytes());
    let [speed] = interleaved(report.size().rounds(ROUNDS), [&mut || round(arrays, work, identify)]);
    report.add(Figure { bar: Some(Bar::AtMost(5.0)), ..milliseconds("24 drives in RAID 5, set up", speed) });
}

fn scenario(id: &str) -> Scenario {
    let entry = scenarios().iter().find(|entry| entry.id == id).expect("the catalogue has it");
    Scenario::from_toml(entry.file_name, entry.text).expect("the catalogue is valid")
}

fn catalogue(array: &str, scenario: Scenario) -> RunSpec {
    let system = load_system(array, &Changes::default()).expect("the catalogue has it").description();
    spec(system, scenario.into())
}

/// The Emerald hot band on 24 drives in RAID 5.
pub fn hot_band(report: &mut Report) {
    let requests = report.size().count(500_000);
    let mut scenario = scenario("emerald-hot-band").with_clients(30);
    scenario.warm_up.time_ns = 0;
    scenario.run_length = ScenarioLength::Requests(requests);
    let spec = catalogue("demartek-512n-raid5-24", scenario);
    let [speed] = interleaved(report.size().rounds(ROUNDS), [&mut || simulate(&spec, requests)]);
    report.add(rate("24 drives in RAID 5, Emerald hot band".to_owned(), speed, None, Some(Bar::AtLeast(300e3))));
}

/// A solid-state drive, full of data, under random reads.
pub fn solid_state(report: &mut Report) {
    let requests = report.size().count(1_000_000);
    let line = json!({"size": "4KiB", "read_percent": 100, "random_percent": 100});
    let workload: Workload = serde_json::from_value(json!({
        "name": "reads", "lines": [line],
        "arrivals": {"closed": {"queue_depth": 32}}, "run_length": {"requests": requests},
    }))
    .expect("the workload is valid");
    let system = load_system("dc-p4500-1tb", &Changes::default()).expect("the catalogue has it").description();
    let spec = spec(system, workload.into());
    let [speed] = interleaved(report.size().rounds(ROUNDS), [&mut || simulate(&spec, requests)]);
    report.add(rate("dc-p4500-1tb, random 4 KiB reads, depth 32".to_owned(), speed, None, None));
}

/// One hour of OLTP on 24 drives whose flash warms up.
pub fn an_hour_of_oltp(report: &mut Report) {
    const HOUR_NS: u64 = 3_600_000_000_000;
    let mut scenario = scenario("demartek-oltp");
    scenario.warm_up.time_ns = 0;
    scenario.run_length = ScenarioLength::TimeNs(report.size().count(HOUR_NS));
    let spec = catalogue("demartek-512e-raid5-20-log-raid10-4", scenario);
    // Once, without a warm-up round: it takes a minute.
    let start = Instant::now();
    let result = run(&spec, &|_| true).expect("the specification is valid");
    let seconds = start.elapsed().as_secs_f64();
    let requests = result.latency().count();
    let name = "one hour of OLTP on 24 drives with flash, cold at first";
    let row =
        |name: String, value, unit, bar, answer| Figure { name, value, best: None, unit, peer: None, bar, answer };
    report.add(row(name.to_owned(), seconds, "s", Some(Bar::AtMost(60.0)), Some(answer(&result))));
    // How many requests an hour has depends on the drives and the scenario: without the rate, more of them look slow.
    report.add(row("the same, OLTP requests of the hour".to_owned(), requests as f64, "requests", None, None));
    report.add(row("the same, OLTP".to_owned(), requests as f64 / seconds, REQUESTS_PER_S, None, None));
}
