use headstack_sim::device::DeviceDescription;
use headstack_workload::{Addresses, Arrivals, Band, RunLength, Think};

use super::*;
use crate::{Changes, load_demand, load_system};

fn draft(system: &str, demand: &str) -> Draft {
    let found = load_system(system, &Changes::default()).unwrap().description();
    Draft::new(system.to_owned(), found, load_demand(demand).unwrap())
}

fn applied(draft: &Draft, chosen: &[(&str, &str)]) -> Result<Draft, String> {
    let mut draft = draft.clone();
    let chosen: Vec<_> = chosen.iter().map(|&(option, text)| (option.to_owned(), text.to_owned())).collect();
    draft.apply(&chosen).map(|()| draft).map_err(|error| error.to_string())
}

#[test]
fn options_apply_in_any_order() {
    let drive = draft("cheetah-x15-36lp", "random-read-4k");
    let chosen = [
        ("think", "exponential:2ms"),
        ("depth", "8"),
        ("requests", "300"),
        ("range", "10GB..20GB"),
        ("queue_depth", "4"),
        ("ageing", "20ms"),
        ("read_ahead", "none"),
        ("warm_up", "1s"),
        ("seed", "7"),
    ];
    let run = applied(&drive, &chosen).unwrap();
    let workload = run.workload.as_ref().unwrap();
    assert_eq!(workload.arrivals, Arrivals::Closed { queue_depth: 8, think: Think::Exponential(2_000_000) });
    assert_eq!(workload.run_length, RunLength::Requests(300));
    assert_eq!((workload.warm_up.requests, workload.warm_up.time_ns), (0, 1_000_000_000));
    assert_eq!((run.seed, run.used().unwrap().start_bytes), (7, 10_000_000_000));
    assert_eq!(run.system_name, "cheetah-x15-36lp@10GB..20GB");
    let Some(SystemDescription::Drive(DeviceDescription::Disk(disk))) = &run.system else {
        panic!("this drive is a disk")
    };
    assert_eq!((disk.queue.depth, disk.queue.ageing_ns), (4, Some(20_000_000)));
    let mut turned = chosen;
    turned.reverse();
    assert_eq!(
        serde_json::to_string(&applied(&drive, &turned).unwrap()).unwrap(),
        serde_json::to_string(&run).unwrap()
    );
}

#[test]
fn rates_are_of_requests_or_of_bytes() {
    let drive = draft("cheetah-x15-36lp", "random-read-4k");
    for (text, expected) in [("200", 200.0), ("200/s", 200.0), ("4096kB/s", 1000.0), ("1_000", 1000.0)] {
        let run = applied(&drive, &[("rate", text), ("arrivals", "fixed")]).unwrap();
        let expected = Arrivals::Open { rate_per_s: expected, process: headstack_workload::ArrivalProcess::Fixed };
        assert_eq!(run.workload.unwrap().arrivals, expected, "{text}");
    }
}

#[test]
fn drives_fail_in_the_order_of_their_times() {
    let array = draft("va-7100", "random-read-4k");
    let run = applied(&array, &[("fail", "d3@20s+d1@10s")]).unwrap();
    let Some(SystemDescription::Array(array)) = run.system else { panic!("it is an array") };
    let times: Vec<u64> = array.incidents.iter().map(|incident| incident.at_ns).collect();
    assert_eq!(times, [10_000_000_000, 20_000_000_000]);
}

#[test]
fn write_caches_of_all_drives_are_switched() {
    let ssd = draft("980-1tb", "random-read-4k");
    let cache = |text| match applied(&ssd, &[("write_cache", text)])?.system {
        Some(SystemDescription::Drive(DeviceDescription::Ssd(ssd))) => Ok(!ssd.buffer.write_through),
        _ => panic!("it is an SSD"),
    };
    assert_eq!((cache("on"), cache("off")), (Ok(true), Ok(false)));
    let refused = "write_cache: only disks have this value; use on or off for an SSD";
    assert_eq!((cache("protected"), cache("appending")), (Err(refused.to_owned()), Err(refused.to_owned())));
}

#[test]
fn skewed_states_are_written_as_in_fio_and_take_the_blocks_of_the_workload() {
    let ssd = draft("980-1tb", "random-read-4k");
    let writes = |draft: &Draft| match &draft.system {
        Some(SystemDescription::Drive(DeviceDescription::Ssd(ssd))) => match &ssd.state {
            FlashState::Skewed(writes) => writes.clone(),
            other @ (FlashState::Fresh | FlashState::Filled | FlashState::Steady) => panic!("{other:?}"),
        },
        _ => panic!("it is an SSD"),
    };
    let addresses = |text| applied(&ssd, &[("state", text)]).map(|draft| writes(&draft).addresses);
    let band = |from_percent, to_percent, share_percent| Band { from_percent, to_percent, share_percent };
    assert_eq!(addresses("steady:zipf"), Ok(Addresses::Zipf { theta: 1.1 }));
    assert_eq!(addresses("steady:zipf:0.9"), Ok(Addresses::Zipf { theta: 0.9 }));
    assert_eq!(addresses("steady:pareto"), Ok(Addresses::Pareto { h: 0.2 }));
    let zones = vec![band(0.0, 10.0, 80.0), band(30.0, 100.0, 20.0)];
    assert_eq!(addresses("steady:zoned:80/10:0/20:20/70"), Ok(Addresses::HotBands(zones)));
    for (text, message) in [
        ("steady:zipf:11", "11 is out of range; must be above 0 and at most 10"),
        ("steady:zipf:much", "'much' is not a number; write steady:zipf[:THETA]"),
        ("steady:pareto:1", "1 is out of range; must be above 0 and below 1"),
        ("steady:zoned", "zones are out of range"),
        ("steady:zoned:80/20:20/90", "zones are out of range"),
        ("steady:zoned:80/20:10/80", "share_percent sums to 90; must sum to 100"),
        ("steady:normal", "steady:normal is unknown; write steady:zipf[:THETA]"),
        ("steadyy", "allowed: fresh, filled, steady; for skewed overwrites write steady:zipf"),
    ] {
        let error = addresses(text).unwrap_err();
        assert!(error.contains(message), "{text}: {error}");
    }

    // With a skewed workload: its parameter, unless another is stated, and its blocks.
    let mut skewed = ssd.clone();
    skewed.workload.as_mut().unwrap().addresses = Addresses::Zipf { theta: 0.7 };
    for (state, theta) in [("steady:zipf", 0.7), ("steady:zipf:0.8", 0.8)] {
        let run = applied(&skewed, &[("state", state), ("range", "0%..50%")]).unwrap();
        let (_, spec) = run.split(Vec::new());
        let writes = writes(&Draft::new(String::new(), spec.system, spec.demand));
        assert_eq!(writes.addresses, Addresses::Zipf { theta });
        let blocks = writes.blocks.expect("those of the workload");
        assert_eq!((blocks.first_bytes, blocks.step_bytes), (0, 4096));
        assert_eq!(blocks.count, spec.span.unwrap().length_bytes / 4096);
    }
    let array = applied(&draft("md-raid5-6-nvme", "random-read-4k"), &[("state", "steady:zipf")]);
    let error = array.and_then(|draft| draft.fault().map_err(|error| error.to_string())).unwrap_err();
    assert!(error.contains("striping gives each drive other hot blocks"), "{error}");
}

#[test]
fn impossible_values_of_options_are_reported_by_name() {
    let drive = draft("cheetah-x15-36lp", "random-read-4k");
    for (option, text, expected) in [
        ("policy", "best", "policy: 'best' is unknown; allowed: fcfs, sstf, look, c-look, sptf"),
        ("queue_depth", "-1", "queue_depth: '-1' is not a whole number below 2^64"),
        ("queue_depth", "5000000000", "queue_depth: 5000000000 is too large; the maximum is 4294967295"),
        ("reordering", "nan", "reordering: 'nan' is not a number; must be 0 (FCFS) to 1 (the ideal policy)"),
        ("ageing", "-1ms", "ageing: -1ms is negative; must be a time or off"),
        ("fail", "d3@10s", "fail: cheetah-x15-36lp is a single drive; only arrays have this"),
        ("state", "steady", "state: cheetah-x15-36lp has no solid-state drive"),
        ("preconditioned", "yes", "state: cheetah-x15-36lp has no solid-state drive"),
        ("arrivals", "fixed", "arrivals: a closed loop has no arrival process; add --rate"),
        ("interval", "10ms", "interval: 10ms is too short; the minimum is 100ms"),
        ("rate", "many", "rate: 'many' is not a rate; write 4000/s, 200MB/s or 2050Mb/s"),
        ("range", "1TB", "1TB: the range ends after the system's capacity"),
        ("colour", "red", "colour: unknown option"),
    ] {
        let error = applied(&drive, &[(option, text)]).unwrap_err();
        assert!(error.starts_with(expected), "{error}");
    }
    let array = draft("va-7100", "serverbench");
    for (option, text, expected) in [
        ("fail", "d3", "fail: 'd3' is not a failure; use DRIVE@TIME, for example "),
        ("fail", "ghost@1s", "fail: there is no drive 'ghost' in va-7100; allowed: "),
        ("lun", "nowhere", "lun: 'nowhere' is unknown; allowed: "),
        ("depth", "0", "depth: "),
        ("rate", "5", "rate: only workloads have this"),
    ] {
        let error = applied(&array, &[(option, text)]).unwrap_err();
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn a_text_that_is_no_percentage_is_refused_with_the_allowed_values() {
    let error = uniform_workload("4KiB", "reads", "100").unwrap_err().to_string();
    assert_eq!(error, "read: 'reads' is not a percentage; must be 0 to 100");
    let error = uniform_workload("4KiB", "100", "half%").unwrap_err().to_string();
    assert_eq!(error, "random: 'half' is not a percentage; must be 0 to 100");
}

#[test]
fn an_ambiguous_percentage_is_refused() {
    assert_eq!(uniform_workload("8KiB", "70%", "0").unwrap().name, "8KiB, 70 % read, 0 % random");
    let error = uniform_workload("4KiB", "0.56", "100").unwrap_err().to_string();
    assert_eq!(error, "read: does 0.56 mean 56 % or 0.56 %? write 56 or 0.56%");
    assert!(uniform_workload("four", "100", "100").unwrap_err().to_string().starts_with("size: "));
}
