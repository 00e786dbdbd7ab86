//! Phases as simulations: the load is the same, and every omission has a remark.

use crate::fake::{Fake, luns};
use headstack_jobfiles::{
    Bounds, Demand, Extent, Job, JobEngine, JobFile, Limits, Part, Phase, Simulation, Sync, Verify, icf, vdbench,
};
use headstack_workload::scenario::{Access, Load, Mark, ScenarioLength, StreamKind};
use headstack_workload::{
    AccessLine, AccessSpecification, Addresses, ArrivalProcess, Arrivals, RunLength, Scenario, Think, WarmUp, Workload,
};
use proptest::prelude::*;

const GB: u64 = 1_000_000_000;
const CAPACITY: u64 = 100 * GB / 4096 * 4096;

fn job(name: &str) -> Job {
    let line = AccessLine {
        size_bytes: 4096,
        share_percent: 100.0,
        read_percent: 100.0,
        random_percent: 100.0,
        trim_percent: 0.0,
        delay_ns: 0,
        burst: 1,
        align_bytes: None,
    };
    Job {
        name: name.to_owned(),
        group: None,
        copies: 1,
        first_copy: 0,
        targets: Vec::new(),
        file_bytes: None,
        part: Part::default(),
        engine: JobEngine::Ring,
        direct: true,
        sync: Sync::No,
        workload: Workload {
            name: name.to_owned(),
            source: String::new(),
            specification: AccessSpecification { name: name.to_owned(), lines: vec![line] },
            addresses: Addresses::Uniform,
            streams: 1,
            stream_turn: 1,
            flush_every: 0,
            sync_every: 0,
            dsync_every: 0,
            sequence: headstack_workload::Sequence::default(),
            arrivals: Arrivals::Closed { queue_depth: 4, think: Think::None },
            warm_up: WarmUp { requests: 0, time_ns: 2 * GB },
            run_length: RunLength::default(),
        },
        limits: Limits { time_ns: Some(30 * GB), ..Limits::default() },
        rates_per_s: None,
        flow: None,
        errors: headstack_jobfiles::Errors::default(),
        content: headstack_jobfiles::Content::default(),
        bounds: Bounds::default(),
        flushes_at_end: false,
        zones: None,
        share_percent: None,
        start_delay_ns: 0,
        slots: 4,
        verify: Verify::No,
        seed: None,
        unlink: false,
        invalidate: false,
        percentiles: Vec::new(),
        as_written: Vec::new(),
    }
}

fn phase(jobs: Vec<Job>) -> Phase {
    Phase { name: "phase".to_owned(), jobs, ..Phase::default() }
}

fn simulate(phase: &Phase) -> Simulation {
    phase.demand(CAPACITY).unwrap_or_else(|error| panic!("{error}"))
}

fn workload(phase: &Phase) -> Workload {
    match simulate(phase).demand {
        Demand::Workload(workload) => workload,
        Demand::Scenario(scenario) => panic!("{scenario:?}"),
    }
}

fn scenario(phase: &Phase) -> Scenario {
    match simulate(phase).demand {
        Demand::Scenario(scenario) => scenario,
        Demand::Workload(workload) => panic!("{workload:?}"),
    }
}

fn options(phase: &Phase) -> Vec<String> {
    simulate(phase).remarks.into_iter().map(|remark| remark.option).collect()
}

fn access(scenario: &Scenario, stream: usize) -> &Access {
    match &scenario.streams[stream].kind {
        StreamKind::Access(access) => access,
        other => panic!("{other:?}"),
    }
}

fn range(scenario: &Scenario, stream: usize) -> Option<(u64, u64)> {
    match scenario.streams[stream].range.map(|range| (range.from, range.to)) {
        Some((Mark::Bytes(from), Mark::Bytes(to))) => Some((from, to)),
        None => None,
        other => panic!("{other:?}"),
    }
}

#[test]
fn one_job_on_the_whole_system_is_its_workload() {
    let made = workload(&phase(vec![job("a")]));
    assert_eq!(made, Workload { run_length: RunLength::TimeNs(30 * GB), ..job("a").workload });
    assert!(options(&phase(vec![job("a")])).is_empty());
}

#[test]
fn without_a_time_requests_end_a_run() {
    let length = |limits: Limits| workload(&phase(vec![Job { limits, ..job("a") }])).run_length;
    let none = Limits::default();
    assert_eq!(length(Limits { requests: Some(1234), ..none }), RunLength::Requests(1234));
    assert_eq!(length(Limits { bytes: Some(40_961), ..none }), RunLength::Requests(11));
    assert_eq!(length(Limits { requests: Some(7), bytes: Some(40_960), ..none }), RunLength::Requests(7));
    assert_eq!(length(none), RunLength::Requests(CAPACITY / 4096));
    assert_eq!(length(Limits { passes: Some(0.5), ..none }), RunLength::Requests(CAPACITY / 4096 / 2));
    assert_eq!(length(Limits { passes: Some(2.0), requests: Some(5), ..none }), RunLength::Requests(5));
    let mut mixed = Job { limits: Limits { bytes: Some(1 << 20), ..none }, ..job("a") };
    let line = mixed.workload.specification.lines[0].clone();
    let large = AccessLine { size_bytes: 12_288, share_percent: 25.0, ..line.clone() };
    mixed.workload.specification.lines = vec![AccessLine { share_percent: 75.0, ..line }, large];
    // The mean is 6 KiB.
    assert_eq!(workload(&phase(vec![mixed])).run_length, RunLength::Requests(171));
    let both =
        phase(vec![Job { limits: Limits { requests: Some(7), time_ns: Some(GB), ..Limits::default() }, ..job("a") }]);
    assert_eq!((workload(&both).run_length, options(&both)), (RunLength::TimeNs(GB), vec!["limits".to_owned()]));
}

#[test]
fn jobs_become_streams_on_their_parts() {
    let half = Part { start: Extent::Percent(50.0), length: Some(Extent::Percent(25.0)) };
    let bytes = Part { start: Extent::Bytes(GB), length: Some(Extent::Bytes(2 * GB)) };
    let made = scenario(&phase(vec![job("a"), Job { part: half, ..job("a") }, Job { part: bytes, ..job("b") }]));
    let names: Vec<&str> = made.streams.iter().map(|stream| stream.name.as_str()).collect();
    assert_eq!(names, ["a", "a (2)", "b"]);
    assert_eq!(range(&made, 0), None);
    assert_eq!(range(&made, 1), Some((CAPACITY / 2 / 512 * 512, CAPACITY / 4 * 3 / 512 * 512)));
    assert_eq!(range(&made, 2), Some((GB, 3 * GB)));
    assert_eq!((made.run_length, made.warm_up.time_ns), (ScenarioLength::TimeNs(30 * GB), 2 * GB));
    let one = scenario(&phase(vec![Job { part: half, ..job("a") }]));
    assert_eq!(one.streams.len(), 1);
}

#[test]
fn the_first_to_end_may_end_all() {
    let timed = |name: &str, time_ns| Job { limits: Limits { time_ns, ..Limits::default() }, ..job(name) };
    let jobs = vec![timed("a", Some(10 * GB)), timed("b", Some(20 * GB)), timed("c", None)];
    let all = phase(jobs);
    assert_eq!(
        (scenario(&all).run_length, options(&all)),
        (ScenarioLength::TimeNs(20 * GB), vec!["limits".to_owned()])
    );
    let first = Phase { ends_with_first: true, ..all };
    assert_eq!(scenario(&first).run_length, ScenarioLength::TimeNs(10 * GB));
}

#[test]
fn copies_keep_the_load_the_same() {
    let copied = |change: &dyn Fn(&mut Job)| {
        let mut job = Job { copies: 3, ..job("a") };
        change(&mut job);
        simulate(&phase(vec![job])).demand
    };
    let streams = |demand: Demand| match demand {
        Demand::Workload(workload) => panic!("{workload:?}"),
        Demand::Scenario(scenario) => scenario.streams.len(),
    };
    let Demand::Workload(random) = copied(&|_| {}) else { panic!("random requests are the same from one client") };
    assert_eq!(random.arrivals, Arrivals::Closed { queue_depth: 12, think: Think::None });
    let poisson = Arrivals::Open { rate_per_s: 100.0, process: ArrivalProcess::Poisson };
    let Demand::Workload(open) = copied(&|job| job.workload.arrivals = poisson) else { panic!("Poisson adds up") };
    assert_eq!(open.arrivals, Arrivals::Open { rate_per_s: 300.0, process: ArrivalProcess::Poisson });
    let fixed = Arrivals::Open { rate_per_s: 100.0, process: ArrivalProcess::Fixed };
    assert_eq!(streams(copied(&|job| job.workload.arrivals = fixed)), 3);
    assert_eq!(streams(copied(&|job| job.workload.specification.lines[0].random_percent = 0.0)), 3);
    assert_eq!(streams(copied(&|job| job.workload.addresses = Addresses::Zipf { theta: 0.9 })), 3);
    assert_eq!(streams(copied(&|job| job.workload.flush_every = 8)), 3);
    // The limit applies to each copy.
    let limits = Limits { requests: Some(100), ..Limits::default() };
    let Demand::Workload(limited) = copied(&|job| job.limits = limits) else { panic!("one client") };
    assert_eq!(limited.run_length, RunLength::Requests(300));
}

#[test]
fn files_and_devices_are_concatenated() {
    let on = |name: &str, target: &str, file_bytes: Option<u64>| Job {
        targets: vec![target.to_owned()],
        file_bytes,
        ..job(name)
    };
    let devices = phase(vec![on("a", "/dev/sdb", None), on("b", "/dev/sdc", None), on("c", "/dev/sdb", None)]);
    let made = scenario(&devices);
    let half = CAPACITY / 2 / 4096 * 4096;
    assert_eq!((range(&made, 0), range(&made, 1)), (Some((0, half)), Some((half, 2 * half))));
    assert_eq!((range(&made, 2), options(&devices)), (Some((0, half)), vec!["targets".to_owned()]));
    let files = scenario(&phase(vec![on("a", "x", Some(4096 * 1000)), on("b", "y", Some(4096 * 2000))]));
    assert_eq!((range(&files, 0), range(&files, 1)), (Some((0, 4_096_000)), Some((4_096_000, 12_288_000))));
    let error = phase(vec![on("a", "x", Some(GB)), on("b", "y", Some(CAPACITY))]).demand(CAPACITY).unwrap_err();
    assert_eq!(error.to_string(), "jobs[1].targets: y does not fit into a system of 100GB");
    assert!(matches!(simulate(&phase(vec![on("a", "/dev/sdb", None)])).demand, Demand::Workload(_)));
}

#[test]
fn parts_beyond_the_end_are_cut_or_refused() {
    let part =
        |start: u64, length: Option<u64>| Part { start: Extent::Bytes(start), length: length.map(Extent::Bytes) };
    let cut = phase(vec![Job { part: part(CAPACITY - GB, Some(2 * GB)), ..job("a") }]);
    assert_eq!(range(&scenario(&cut), 0), Some(((CAPACITY - GB) / 512 * 512, CAPACITY)));
    assert_eq!(options(&cut), ["part"]);
    let beyond = phase(vec![job("a"), Job { part: part(CAPACITY, None), ..job("b") }]).demand(CAPACITY).unwrap_err();
    assert_eq!(beyond.key, "jobs[1].part");
    assert_eq!(phase(vec![job("a")]).demand(100).unwrap_err().key, "capacity");
    assert_eq!(phase(Vec::new()).demand(CAPACITY).unwrap_err().key, "jobs");
}

/// fio's fsync, fdatasync and sync=dsync have their own keys; O_SYNC counts as O_DSYNC.
#[test]
fn synchronous_writes_and_both_flushes_are_simulated() {
    let access = |change: &dyn Fn(&mut Job)| {
        let mut changed = job("a");
        change(&mut changed);
        let Demand::Scenario(scenario) = phase(vec![changed, job("b")]).demand(CAPACITY).unwrap().demand else {
            panic!()
        };
        let StreamKind::Access(access) = scenario.streams[0].kind.clone() else { panic!() };
        (access.flush_every, access.sync_every, access.dsync_every)
    };
    assert_eq!(access(&|job| job.workload.flush_every = 3), (3, 0, 0));
    assert_eq!(access(&|job| job.workload.sync_every = 2), (0, 2, 0));
    assert_eq!(access(&|job| job.sync = Sync::Data), (0, 0, 1));
    assert_eq!(access(&|job| job.sync = Sync::File), (0, 0, 1));
    let alone = phase(vec![Job { sync: Sync::Data, ..job("a") }]).demand(CAPACITY).unwrap().demand;
    let Demand::Workload(alone) = alone else { panic!() };
    assert_eq!(alone.dsync_every, 1);
}

#[test]
fn omissions_are_reported() {
    let odd = Job {
        direct: false,
        sync: Sync::File,
        verify: Verify::Stamp,
        seed: Some(1),
        start_delay_ns: GB,
        workload: Workload {
            arrivals: Arrivals::Open { rate_per_s: 10.0, process: ArrivalProcess::Poisson },
            ..job("odd").workload
        },
        ..job("odd")
    };
    let null =
        Job { engine: JobEngine::Null, limits: Limits { time_ns: Some(GB), ..Limits::default() }, ..job("null") };
    let told = options(&phase(vec![odd, null]));
    assert_eq!(told, ["direct", "engine", "sync", "verify", "seed", "start_delay", "slots", "limits"]);
    // A delay that all jobs have has no effect.
    assert!(options(&phase(vec![Job { start_delay_ns: GB, ..job("a") }])).is_empty());
}

#[test]
fn a_wrong_workload_is_named() {
    let mut wrong = job("b");
    wrong.workload.specification.lines[0].read_percent = 101.0;
    let error = phase(vec![job("a"), wrong]).demand(CAPACITY).unwrap_err();
    assert_eq!(error.key, "jobs[1].lines[0].read_percent");
}

fn read_vdbench(text: &str) -> JobFile {
    let include = |_: &str| Err(std::io::Error::from(std::io::ErrorKind::NotFound));
    vdbench::read("p.txt", text, &[], &include).unwrap_or_else(|error| panic!("{error}"))
}

const SKEWED: &str = "sd=sd1,lun=/dev/sdb,threads=10\nwd=hot,sd=sd1,skew=70,hotband=(10,20),xfersize=8k\n\
                      wd=cold,sd=sd1,skew=30,rdpct=0,xfersize=64k\n";

#[test]
fn skew_is_kept_by_the_pool() {
    let file = read_vdbench(&format!("{SKEWED}rd=max,wd=*,iorate=curve,elapsed=20\n"));
    let made = scenario(&file.phases[0]);
    assert_eq!(made.pool, Some(Arrivals::Closed { queue_depth: 10, think: Think::None }));
    assert_eq!(access(&made, 0).load, Load::SharePercent(70.0));
    let outcome = Fake { limit_requests: 20_000, ..Fake::default() }.run(&made, &luns(&[("drive", CAPACITY)]));
    let (hot, cold) = (outcome.of("hot sd1"), outcome.of("cold sd1"));
    let share = hot.len() as f64 / (hot.len() + cold.len()) as f64;
    assert!((share - 0.7).abs() < 0.02, "{share}");
    let band = CAPACITY / 10..CAPACITY / 5;
    assert!(hot.iter().all(|done| band.contains(&done.request.offset_bytes) && done.request.length_bytes == 8192));
    let error = file.phases[1].demand(CAPACITY).unwrap_err();
    assert_eq!(error.key, "curve_point");
    let point = scenario(&file.phases[1].at_observed(&[600.0, 400.0]));
    assert_eq!(point.pool, None);
    let poisson = |rate_per_s| Load::Own(Arrivals::Open { rate_per_s, process: ArrivalProcess::Poisson });
    assert_eq!((access(&point, 0).load, access(&point, 1).load), (poisson(60.0), poisson(40.0)));
}

#[test]
fn iometer_files_are_simulated() {
    let text = "Version 1.1.0\n'TEST SETUP ===\n'Run Time\n\t0 0 20\n'Ramp Up Time (s)\n\t5\n'Queue Depth Cycling\n\
                \t1 16 4 EXPONENTIAL\n'Test Type\n\tCYCLE_OUTSTANDING_IOS\n'END test setup\n'MANAGER LIST ===\n\
                'Manager ID, manager name\n\t1,a\n'Manager network address\n\t\n'Worker\n\tW\n'Worker type\n\tDISK\n\
                'Assigned access specs\n\tDefault\n'End assigned access specs\n'Target assignments\n'Target\n\tC:\n\
                'Target type\n\tDISK\n'End target\n'End target assignments\n'End worker\n'End manager\n\
                'END manager list\n";
    let file = icf::read("t.icf", text).unwrap();
    let made: Vec<Workload> = file.phases.iter().map(workload).collect();
    let depths: Vec<Arrivals> = made.iter().map(|workload| workload.arrivals).collect();
    let closed = |queue_depth| Arrivals::Closed { queue_depth, think: Think::None };
    assert_eq!(depths, [closed(1), closed(4), closed(16)]);
    assert_eq!((made[0].run_length, made[0].warm_up.time_ns), (RunLength::TimeNs(20 * GB), 5 * GB));
}

proptest! {
    #[test]
    fn any_part_of_any_system_is_inside_or_refused(
        capacity_bytes in 0u64..=i64::MAX as u64,
        start in 0u64..=u64::MAX,
        length in prop::option::of(0u64..=u64::MAX),
        percent in 0.0f64..=120.0,
        files in prop::collection::vec(prop::option::of(0u64..=u64::MAX), 0..4),
        copies in 0u32..=u32::MAX,
        in_percent in any::<bool>(),
    ) {
        let start = if in_percent { Extent::Percent(percent) } else { Extent::Bytes(start) };
        let mut jobs = vec![Job { part: Part { start, length: length.map(Extent::Bytes) }, copies, ..job("a") }];
        for (index, &file_bytes) in files.iter().enumerate() {
            let limits = Limits::default();
            jobs.push(Job { targets: vec![index.to_string()], file_bytes, limits, ..job("f") });
        }
        match phase(jobs).demand(capacity_bytes) {
            Ok(Simulation { demand: Demand::Workload(made), .. }) => prop_assert_eq!(made.validate(), Ok(())),
            Ok(Simulation { demand: Demand::Scenario(made), .. }) => {
                prop_assert_eq!(made.validate(), Ok(()));
                for stream in 0..made.streams.len() {
                    if let Some((from, to)) = range(&made, stream) {
                        prop_assert!(from < to && to <= capacity_bytes);
                    }
                }
            }
            Err(error) => prop_assert_eq!(error.to_string().lines().count(), 1),
        }
    }
}

#[test]
fn results_number_copies_and_name_groups_by_common_prefix() {
    let grouped = |name: &str, group: u32| Job { group: Some(group), ..job(name) };
    let phase = Phase {
        jobs: vec![
            Job { copies: 2, ..job("a") },
            Job { first_copy: 2, ..job("a") },
            job("b"),
            grouped("Worker 1 C:", 0),
            grouped("Worker 1 D:", 0),
            grouped("read", 1),
            grouped("write", 1),
            Job { copies: 2, ..grouped("read", 2) },
        ],
        ..Phase::default()
    };
    let names = phase.stream_names();
    let expected: [&[&str]; 8] = [
        &["a.0", "a.1"],
        &["a.2"],
        &["b"],
        &["Worker 1"],
        &["Worker 1"],
        &["read"],
        &["read"],
        &["read (2)", "read (2)"],
    ];
    assert_eq!(names, expected);
}

#[test]
fn every_copy_has_a_seed_of_its_own_and_the_same_again() {
    let jobs = [job("a"), job("b"), Job { first_copy: 2, ..job("a") }, Job { seed: Some(2), ..job("a") }];
    let seeds: Vec<u64> = jobs.iter().flat_map(|job| [job.seed_of(0, 1), job.seed_of(1, 1)]).collect();
    let different: std::collections::HashSet<u64> = seeds.iter().copied().collect();
    assert_eq!(different.len(), seeds.len());
    // A job's own seed takes precedence over the run's, and a copy is identified by its index among all copies with its
    // name.
    assert_eq!(jobs[3].seed_of(0, 1), jobs[3].seed_of(0, 9));
    assert_eq!(jobs[0].seed_of(2, 1), jobs[2].seed_of(0, 1));
    assert_ne!(jobs[0].seed_of(0, 1), jobs[0].seed_of(0, 9));
    // A later version repeats the random choices of this one: FNV-1a and SplitMix64, computed independently.
    let log = job("log");
    assert_eq!((log.seed_of(0, 7), log.seed_of(3, 9)), (652_332_215_798_342_924, 12_037_798_414_981_585_770));
}

#[test]
fn streams_of_a_simulation_are_reported_as_those_of_a_measurement() {
    let random = Phase { jobs: vec![Job { copies: 3, ..job("a") }, job("b")], ..Phase::default() };
    // Three random copies are one stream with the job's name.
    assert_eq!(simulate(&random).streams, ["a", "b"]);
    let group = |name: &str| Job { group: Some(0), ..job(name) };
    let grouped = Phase { jobs: vec![group("x 1"), group("x 2")], ..Phase::default() };
    assert_eq!(simulate(&grouped).streams, ["x", "x"]);
}
