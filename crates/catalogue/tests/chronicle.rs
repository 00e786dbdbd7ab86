//! The event logs of systems are consistent with their results.

use std::collections::HashMap;

use headstack_catalogue::{Changes, load_system};
use headstack_result::RunResult;
use headstack_sim::array::description::{ArrayDescription, Incident, IncidentKind};
use headstack_sim::chronicle::{Chronicle, DieWork, Event, Purpose, Work, chronicle};
use headstack_sim::device::DeviceDescription;
use headstack_sim::drive::description::Policy;
use headstack_sim::{RunSpec, SystemDescription, run};
use headstack_workload::Workload;

const DISK: &str = "cheetah-x15-36lp";
const SSD: &str = "970-evo-1tb";
const RAID5: &str = "md-raid5-8x2tb";

fn system(name: &str) -> SystemDescription {
    load_system(name, &Changes::default()).unwrap_or_else(|error| panic!("{error}")).description()
}

fn array(name: &str) -> ArrayDescription {
    match system(name) {
        SystemDescription::Array(array) => array,
        SystemDescription::Drive(_) | SystemDescription::Stack(_) => panic!("{name} is no array"),
    }
}

/// Returns a disk with a scheduling policy.
fn disk(policy: Policy) -> SystemDescription {
    let mut system = system(DISK);
    if let SystemDescription::Drive(DeviceDescription::Disk(drive)) = &mut system {
        drive.queue.policy = policy;
    }
    system
}

struct Load {
    size: &'static str,
    read_percent: u32,
    depth: u32,
    requests: u64,
}

fn watched(system: SystemDescription, load: &Load) -> (RunResult, Chronicle) {
    let Load { size, read_percent, depth, requests } = load;
    let text = format!(
        "name = \"mixed\"\nsource = \"test\"\nwarm_up = {{ requests = 0 }}\nrun_length = {{ requests = {requests} }}\n\
         arrivals = {{ closed = {{ queue_depth = {depth} }} }}\n\
         [[lines]]\nsize = \"{size}\"\nshare_percent = 100\nread_percent = {read_percent}\nrandom_percent = 100\n"
    );
    let spec = RunSpec {
        system_name: "watched".to_owned(),
        system,
        demand: Workload::from_toml("mixed.toml", &text).unwrap_or_else(|error| panic!("{error}")).into(),
        span: None,
        seed: 1,
        interval_ns: None,
        preload: 0,
        faults: None,
    };
    let alone = run(&spec, &|_| true).unwrap();
    let (result, told) = chronicle(1 << 20, || run(&spec, &|_| true).unwrap());
    assert_eq!(result, alone, "telling changes nothing");
    assert!(!told.is_cut);
    (result, told)
}

fn counter(result: &RunResult, name: &str) -> u64 {
    result.counters.iter().find(|counter| counter.name == name).expect("results count it").value
}

/// Returns arrival, start of service and completion of each completed request.
fn answered(told: &Chronicle) -> Vec<(u64, u64, u64)> {
    let mut arrivals = HashMap::new();
    let mut answered = Vec::new();
    for event in &told.events {
        match *event {
            Event::Arrives { at_ns, request, .. } => assert_eq!(arrivals.insert(request, at_ns), None, "comes once"),
            Event::Completes { at_ns, request, started_ns, .. } => {
                answered.push((arrivals[&request], started_ns, at_ns));
            }
            _ => {}
        }
    }
    answered
}

fn mean_latency_ns(told: &Chronicle) -> f64 {
    let answered = answered(told);
    answered.iter().map(|&(from_ns, _, to_ns)| (to_ns - from_ns) as f64).sum::<f64>() / answered.len() as f64
}

#[test]
fn events_of_every_kind_of_system_have_its_mean_response() {
    let load = Load { size: "8KiB", read_percent: 67, depth: 16, requests: 300 };
    let mut means = Vec::new();
    for system in [disk(Policy::Sptf), disk(Policy::Fcfs), system(SSD), system(RAID5), system("barracuda-8tb-smr")] {
        let (result, told) = watched(system, &load);
        let (mean_ns, of_result_ns) = (mean_latency_ns(&told), result.mean_latency_ns());
        assert_eq!(answered(&told).len(), 300);
        assert!((mean_ns - of_result_ns).abs() < 1e-6 * of_result_ns, "{mean_ns} {of_result_ns}");
        means.push(mean_ns);
    }
    assert!(means[0] < 0.8 * means[1], "the shortest positioning time first is faster: {means:?}");
}

#[test]
fn an_access_is_seek_rotation_and_transfer_and_fits_its_service_time() {
    for policy in [Policy::Fcfs, Policy::Sptf] {
        let (result, told) = watched(disk(policy), &Load { size: "8KiB", read_percent: 100, depth: 8, requests: 300 });
        let mut completed = HashMap::new();
        for event in &told.events {
            if let Event::Completes { at_ns, request, started_ns, .. } = *event {
                completed.insert(request, (started_ns, at_ns));
            }
        }
        let (mut seek_ns_sum, mut free_ns, mut head) = (0, 0, 0);
        for event in &told.events {
            let Event::Access {
                at_ns, work, id, from_cylinder, cylinder, start_ns, seek_ns, rotation_ns, end_ns, ..
            } = *event
            else {
                continue;
            };
            assert_eq!(work, Work::Command);
            assert!(free_ns <= at_ns && at_ns <= start_ns, "one access at a time");
            assert!(start_ns + seek_ns + rotation_ns < end_ns, "what is left is the transfer");
            assert!(from_cylinder != cylinder || seek_ns < 2_000_000, "who stays on a cylinder does not seek");
            let Some(&(started_ns, done_ns)) = completed.get(&id) else { continue };
            // Without a media access, the service consists only of firmware overheads and the bus: less than a
            // millisecond here.
            assert_eq!(started_ns, at_ns);
            assert!(end_ns <= done_ns && done_ns - started_ns < end_ns - start_ns + 1_000_000);
            (seek_ns_sum, free_ns, head) = (seek_ns_sum + seek_ns, end_ns, cylinder);
        }
        assert!(head > 0);
        // When the last request completes, the drive has already started another one.
        let of_result = counter(&result, "seek_ns");
        assert!(seek_ns_sum <= of_result && of_result - seek_ns_sum < 20_000_000, "{seek_ns_sum} {of_result}");
    }
}

#[test]
fn fair_policies_starve_no_command() {
    let passed = |policy| {
        let (_, told) = watched(disk(policy), &Load { size: "8KiB", read_percent: 100, depth: 64, requests: 500 });
        let mut waiting = Vec::new();
        let mut most = 0;
        for event in &told.events {
            match *event {
                Event::Waits { id, .. } => waiting.push((id, 0)),
                Event::Access { id, .. } => {
                    let place = waiting.iter().position(|&(other, _)| other == id).unwrap_or(0);
                    waiting[..place].iter_mut().for_each(|(_, passed)| *passed += 1);
                    if waiting.get(place).is_some_and(|&(other, _)| other == id) {
                        most = most.max(waiting.remove(place).1);
                    }
                }
                _ => {}
            }
        }
        most
    };
    assert_eq!(passed(Policy::Fcfs), 0);
    assert!(passed(Policy::Sptf) > 50);
}

/// Returns the kinds and purposes of the commands issued for each host request, in order of issue.
fn commands(told: &Chronicle) -> HashMap<u32, Vec<(&'static str, Purpose)>> {
    let mut commands: HashMap<u32, Vec<_>> = HashMap::new();
    for event in &told.events {
        if let Event::Command { request: Some(request), kind, purpose, .. } = *event {
            commands.entry(request).or_default().push((kind, purpose));
        }
    }
    commands
}

#[test]
fn a_small_write_of_raid_5_is_two_reads_and_then_two_writes() {
    let mut array = array(RAID5);
    array.controller.cache = None;
    array.groups.iter_mut().for_each(|group| group.bitmap = None);
    let (_, told) =
        watched(SystemDescription::Array(array), &Load { size: "4KiB", read_percent: 0, depth: 1, requests: 20 });
    let commands = commands(&told);
    for request in 0..20 {
        let mut found = commands[&request].clone();
        found[..2].sort_by_key(|&(_, purpose)| purpose as u32);
        found[2..].sort_by_key(|&(_, purpose)| purpose as u32);
        let (old, renewed) = (
            [("read", Purpose::Parity), ("read", Purpose::Old)],
            [("write", Purpose::Data), ("write", Purpose::Parity)],
        );
        assert_eq!(found, [old, renewed].concat(), "{request}");
    }
    let asked = told.events.iter().filter(|event| matches!(event, Event::Command { .. })).count();
    let done = told.events.iter().filter(|event| matches!(event, Event::Answers { .. })).count();
    assert!(asked - done <= 4, "{asked} commands, {done} done");
}

#[test]
fn a_degraded_read_accesses_every_survivor_and_the_rebuild_continues() {
    let mut array = array(RAID5);
    array.controller.cache = None;
    let members = array.groups[0].members.len();
    array.incidents.push(Incident { at_ns: 0, what: IncidentKind::MemberFails { member: 0 } });
    array.incidents.push(Incident { at_ns: 0, what: IncidentKind::SpareAdded { group: 0 } });
    let (_, told) =
        watched(SystemDescription::Array(array), &Load { size: "4KiB", read_percent: 100, depth: 4, requests: 200 });
    let commands = commands(&told);
    let survivors = |found: &&Vec<(&str, Purpose)>| found.iter().all(|&(_, purpose)| purpose == Purpose::Survivor);
    let reconstructed: Vec<_> = commands.values().filter(survivors).collect();
    assert!(!reconstructed.is_empty() && reconstructed.len() < commands.len(), "{}", reconstructed.len());
    assert!(reconstructed.iter().all(|found| found.len() == members - 1));
    let fails = told.events.iter().filter(|event| matches!(event, Event::Fails { member: 0, .. })).count();
    let done: Vec<u64> = (told.events.iter())
        .filter_map(|event| if let Event::Rebuilt { done_bytes, .. } = event { Some(*done_bytes) } else { None })
        .collect();
    assert_eq!(fails, 1);
    assert!(done[0] == 0 && done.is_sorted() && done[done.len() - 1] > 0, "{done:?}");
}

#[test]
fn dies_of_a_drive_do_one_thing_at_a_time() {
    let (result, told) = watched(system(SSD), &Load { size: "4KiB", read_percent: 70, depth: 32, requests: 2_000 });
    let mut until: HashMap<u32, (u64, DieWork)> = HashMap::new();
    let mut sensed = 0;
    for event in &told.events {
        if let Event::Die { at_ns, die, does, ends_ns, .. } = *event {
            let (free_ns, before) = until.insert(die, (ends_ns, does)).unwrap_or((0, DieWork::Sense));
            assert!(free_ns <= at_ns || does == DieWork::Suspend, "{before:?} until {free_ns}, {does:?} at {at_ns}");
            assert!(at_ns <= ends_ns);
            sensed += u64::from(does == DieWork::Sense);
        }
    }
    let asked = told.events.iter().filter(|event| matches!(event, Event::Asks { .. })).count() as u64;
    assert!(sensed <= asked && asked - sensed <= 64, "{asked} asked, {sensed} sensed");
    assert!(sensed <= counter(&result, "flash_page_reads"));
}

#[test]
fn a_write_cache_fills_and_empties() {
    let mut system = system(DISK);
    if let SystemDescription::Drive(DeviceDescription::Disk(drive)) = &mut system {
        drive.buffer.write_cache = headstack_sim::drive::description::WriteCache::On;
        drive.buffer.dirty_extents_max = drive.buffer.dirty_extents_max.max(8);
        drive.buffer.dirty_sectors_max = drive.buffer.dirty_sectors_max.max(1024);
    }
    let (result, told) = watched(system, &Load { size: "8KiB", read_percent: 0, depth: 16, requests: 300 });
    let (mut before, mut rises, mut falls) = (0, 0u64, 0u64);
    for event in &told.events {
        match *event {
            Event::Cached { dirty_sectors, .. } => {
                rises += u64::from(dirty_sectors > before);
                before = dirty_sectors;
            }
            Event::Destaged { dirty_sectors, .. } => {
                falls += u64::from(dirty_sectors < before);
                before = dirty_sectors;
            }
            _ => {}
        }
    }
    assert!(rises > 100 && falls > 100, "{rises} {falls}");
    assert!(counter(&result, "destages").abs_diff(falls) <= 1);
}
