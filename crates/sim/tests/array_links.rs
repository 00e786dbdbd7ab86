//! Links between members and controller: which commands wait, and where links saturate.

use crate::common::MS;
use crate::common::arrays::{UNIT, of, request, run_array, serve};
use headstack_result::RunResult;
use headstack_sim::adapter::description::{AdapterDescription, Coalescing};
use headstack_sim::array::description::{ArrayDescription, Level};
use headstack_sim::drive::description::Policy;
use headstack_sim::link::{LinkDescription, LinkKind};
use headstack_workload::Kind;
use serde_json::json;

fn link(kind: LinkKind, mb_per_s: f64) -> LinkDescription {
    LinkDescription {
        name: format!("{kind:?}"),
        kind,
        ns_per_byte: 1000.0 / mb_per_s,
        command_ns: 0,
        read_ns: 0,
        write_ns: 0,
        latency_ns: 0,
        full_duplex: false,
        held_by_command: false,
    }
}

/// Returns drives each of which has these paths to the controller.
fn with_links(members: u32, links: Vec<LinkDescription>, ways: &[Vec<u32>]) -> ArrayDescription {
    let mut description = of(Level::Raid0, members);
    description.links = links;
    description.members.iter_mut().for_each(|member| member.ways = ways.to_vec());
    description
}

fn run_on(description: &ArrayDescription, size: u64, queue_depth: u32) -> RunResult {
    let size = format!("{size}B");
    let line = json!({"size": size, "align": size, "read_percent": 100, "random_percent": 100});
    run_array(description, line, queue_depth, 4_000, 100)
}

fn rate_mb(result: &RunResult) -> f64 {
    result.throughput_bytes_per_s() / 1e6
}

fn utilization(result: &RunResult, name: &str) -> f64 {
    result.utilization(result.components.iter().find(|component| component.name == name).unwrap())
}

#[test]
fn bus_throughput_is_bounded_by_drives_or_bus() {
    let alone = rate_mb(&run_on(&of(Level::Raid0, 1), UNIT, 4));
    for members in [1u32, 2, 4, 8] {
        let free = rate_mb(&run_on(&of(Level::Raid0, members), UNIT, 4 * members));
        let bus_mb = 2.5 * alone;
        let result = run_on(&with_links(members, vec![link(LinkKind::Scsi, bus_mb)], &[vec![0]]), UNIT, 4 * members);
        let (rate, busy) = (rate_mb(&result), utilization(&result, "Scsi"));
        println!("{members} drives: {free:.1} MB/s free, {rate:.1} on a bus of {bus_mb:.1}, {busy:.2} busy");
        assert!(rate <= bus_mb * 1.001 && rate <= free * 1.01);
        assert!((busy - rate / bus_mb).abs() < 0.02, "utilization is bytes over rate");
        if members <= 2 {
            assert!(rate > 0.85 * free);
        } else {
            assert!(rate > 0.95 * bus_mb, "saturated");
            let bus = result.components.iter().find(|component| component.name == "Scsi").unwrap();
            assert!(bus.waited_ns > 0, "and waited for");
        }
    }
}

#[test]
fn a_cable_that_a_command_holds_serves_one_drive_at_a_time() {
    let cable = |held_by_command| LinkDescription { held_by_command, ..link(LinkKind::Ata, 100.0) };
    let of_cable =
        |held, members| run_on(&with_links(members, vec![cable(held)], &[vec![0]]), 4096, 4).throughput_per_s();
    let one = of_cable(true, 1);
    // Two drives behind one cable: seeks are shorter on each, but there is only one command at a time.
    let (held, overlapped) = (of_cable(true, 2), of_cable(false, 2));
    println!("{one:.0}/s of one drive, {held:.0} of two that hold the cable, {overlapped:.0} of two that release it");
    assert!((held / one - 1.0).abs() < 0.1);
    assert!(overlapped > 1.7 * held);
}

#[test]
fn two_ways_share_the_work() {
    let links =
        || vec![link(LinkKind::Sas, 4.0), LinkDescription { name: "other".to_owned(), ..link(LinkKind::Sas, 4.0) }];
    let one = run_on(&with_links(8, links(), &[vec![0]]), UNIT, 32);
    let two = run_on(&with_links(8, links(), &[vec![0], vec![1]]), UNIT, 32);
    assert!(rate_mb(&two) > 1.8 * rate_mb(&one), "{} against {} MB/s", rate_mb(&two), rate_mb(&one));
    assert!((utilization(&two, "Sas") - utilization(&two, "other")).abs() < 0.05);
    assert_eq!(utilization(&one, "other"), 0.0);
}

#[test]
fn a_chain_is_as_fast_as_its_slowest_link() {
    let links = vec![link(LinkKind::Sata, 50.0), link(LinkKind::Ata, 2.0), link(LinkKind::Pci, 133.0)];
    let result = run_on(&with_links(2, links, &[vec![0, 1, 2]]), UNIT, 16);
    assert!((1.9..2.001).contains(&rate_mb(&result)), "{}", rate_mb(&result));
    assert_eq!(result.bottleneck().unwrap().0, "Ata");
}

#[test]
fn the_way_to_the_host_bounds_the_array() {
    let mut description = of(Level::Raid0, 8);
    description.links = vec![link(LinkKind::Ethernet, 3.0)];
    description.host_links = vec![0];
    let result = run_on(&description, UNIT, 32);
    assert!((2.95..3.001).contains(&rate_mb(&result)), "{}", rate_mb(&result));
    assert_eq!(result.bottleneck().unwrap().0, "Ethernet");
}

/// Each request takes the adapter's latency once, and two commands to one member start its interval apart.
#[test]
fn a_host_adapter_delays_each_request_and_paces_each_member() {
    let adapter = AdapterDescription {
        tags: 32,
        elevator: Policy::Fcfs,
        read_interval_ns: 50 * MS,
        write_interval_ns: 100 * MS,
        ns_per_byte: 0.0,
        latency_ns: 3 * MS,
        wake_ns: MS,
        coalescing: None,
    };
    let mut description = of(Level::Raid0, 4);
    let (_, before) = serve(&description, 0, &[request(Kind::Read, 0, 4096)]);
    description.controller.adapter = Some(adapter);
    let (_, after) = serve(&description, 0, &[request(Kind::Read, 0, 4096)]);
    assert_eq!(after[0].at_ns, before[0].at_ns + 4 * MS, "the latency, and who waits alone wakes the processor");
    for (read_percent, per_s) in [(100, 4.0 / 0.05), (0, 4.0 / 0.1)] {
        let line = json!({"size": "4KiB", "read_percent": read_percent, "random_percent": 100});
        let rate = run_array(&description, line, 256, 4_000, 400).throughput_per_s();
        assert!((0.95..1.01).contains(&(rate / per_s)), "{rate} against {per_s}");
    }
}

/// Completions that wait for one interrupt are reported together.
#[test]
fn a_host_adapter_saves_interrupts_of_an_array() {
    let mut description = of(Level::Raid0, 4);
    let coalescing = Coalescing { interval_ns: 200 * MS, completions_max: 16, from_outstanding: 4, one_in: 1000 };
    description.controller.adapter = Some(AdapterDescription {
        tags: 32,
        elevator: Policy::Fcfs,
        read_interval_ns: 0,
        write_interval_ns: 0,
        ns_per_byte: 0.0,
        latency_ns: 0,
        wake_ns: 0,
        coalescing: Some(coalescing),
    });
    let line = json!({"size": "4KiB", "read_percent": 100, "random_percent": 100});
    let result = run_array(&description, line, 8, 2_000, 200);
    assert!(
        (0.9..1.02).contains(&(result.throughput_per_s() / 40.0)),
        "eight in 200 ms: {}",
        result.throughput_per_s()
    );
}
