//! Layers that only delay requests: limits of an instance, and networks.

use headstack_sim::device::DeviceDescription;
use headstack_sim::stack::description::{InstanceLimitDescription, LayerDescription, NetworkDescription};
use headstack_sim::volume::description::{Accounting, Burst, Counts, Limit, LimitScope};
use headstack_sim::{RunSpec, SystemDescription};
use headstack_workload::{AccessLine, Request, RunLength};

use super::{of, over};
use crate::common::bench::{Bench, unreadable};
use crate::common::flash::small_ssd;
use crate::common::{MS, US, assert_close, bare_drive, closed, flush, line, read, run_spec, spec, workload, write};

const SECOND: u64 = 1_000_000_000;

fn accounting() -> Accounting {
    Accounting { unit_bytes: None, merges: false, whole_units: false }
}

fn requests_per_s(per_s: u64, burst: Option<Burst>) -> Limit {
    Limit { counts: Counts::Requests, of: LimitScope::Both, per_s, burst }
}

fn limited(limits: Vec<Limit>, below: &SystemDescription) -> SystemDescription {
    let layer = LayerDescription::InstanceLimit(InstanceLimitDescription { accounting: accounting(), limits });
    over(layer, std::slice::from_ref(below))
}

/// A network that costs nothing.
fn free_network() -> NetworkDescription {
    NetworkDescription {
        round_trip_ns: 0,
        bytes_per_s: u64::MAX,
        window: u32::MAX,
        initiator_ns: 0,
        initiator_cores: 1,
        target_core_ns: 0,
        target_cores: 1,
        target_serial_share: 0.0,
        unsolicited_bytes: None,
        burst_bytes: u32::MAX,
    }
}

fn through(network: NetworkDescription, below: &SystemDescription) -> SystemDescription {
    over(LayerDescription::Network(network), std::slice::from_ref(below))
}

fn ssd() -> SystemDescription {
    SystemDescription::Drive(DeviceDescription::Ssd(small_ssd()))
}

fn random_reads(size_bytes: u32) -> AccessLine {
    line(size_bytes, 100.0, 100.0)
}

/// Layers without cost, also one over another, give the results of the device alone.
#[test]
fn a_layer_that_costs_nothing_is_the_identity() {
    let of_writes = || vec![Limit { of: LimitScope::Writes, ..requests_per_s(1, None) }];
    for below in [ssd(), bare_drive().into()] {
        let (mixed, reads) = (line(8192, 70.0, 80.0), line(8192, 100.0, 80.0));
        let layered = [
            (mixed, through(free_network(), &below)),
            (reads.clone(), limited(of_writes(), &below)),
            (reads, limited(of_writes(), &through(free_network(), &through(free_network(), &below)))),
        ];
        for (line, system) in layered {
            let (result, alone) = [&system, &below].map(|system| of(system, line.clone(), closed(8), 3_000)).into();
            assert_eq!(result.kinds.read, alone.kinds.read);
            assert_eq!(result.kinds.write, alone.kinds.write);
            assert_eq!(result.duration_ns, alone.duration_ns);
        }
    }
}

/// A request alone: the device's time, the round trip, the processors, the bytes on the wire, and a round trip for each
/// permission to write. A flush costs a round trip as well.
#[test]
fn a_network_adds_its_parts_to_each_request() {
    let network = NetworkDescription {
        round_trip_ns: 20 * US,
        bytes_per_s: 1_000_000_000,
        initiator_ns: 3 * US,
        target_core_ns: 5 * US,
        target_cores: 3,
        target_serial_share: 0.1,
        unsolicited_bytes: Some(16 << 10),
        burst_bytes: 64 << 10,
        ..free_network()
    };
    let alone = |request: &Request| Bench::new(&ssd()).takes_ns(request);
    let added = |request: &Request| Bench::new(&through(network, &ssd())).takes_ns(request) - alone(request);
    let fixed_ns = 20 * US + 3 * US + 6 * US;
    assert_eq!(added(&read(0, 8)), fixed_ns + 4096);
    assert_eq!(added(&write(0, 32)), fixed_ns + (16 << 10));
    assert_eq!(added(&write(0, 33)), fixed_ns + (33 << 9) + 20 * US);
    assert_eq!(added(&write(0, 32 + 129)), fixed_ns + (161 << 9) + 40 * US);
    assert_eq!(added(&flush()), fixed_ns);
}

/// Throughput is the least of window / round trip, wire rate and processors.
#[test]
fn the_tightest_part_of_a_network_limits_throughput() {
    let reads = |network: NetworkDescription, size_bytes: u32| {
        let result = of(&through(network, &ssd()), random_reads(size_bytes), closed(64), 20_000);
        result.throughput_per_s()
    };
    let window = NetworkDescription { round_trip_ns: 10 * MS, window: 8, ..free_network() };
    let device_ns = Bench::new(&ssd()).takes_ns(&read(0, 8)) as f64;
    assert_close(reads(window, 4096), 8.0 / (10e-3 + device_ns / 1e9), 1.0, "window");
    let wire = NetworkDescription { bytes_per_s: 100_000_000, ..free_network() };
    assert_close(reads(wire, 65_536), 100e6 / 65_536.0, 0.5, "wire");
    let initiator = NetworkDescription { initiator_ns: 50 * US, ..free_network() };
    assert_close(reads(initiator, 4096), 20_000.0, 0.5, "one core of the initiator");
    let target = NetworkDescription { target_core_ns: 80 * US, target_cores: 2, ..free_network() };
    assert_close(reads(target, 4096), 25_000.0, 0.5, "two cores of the target");
}

/// SPDK's NVMe/TCP target (spdk issue 2963): 323,000 random writes a second with one core and 4.05 million with 32 give
/// the processor time and the serial share. The rates between are predicted.
#[test]
fn cores_share_their_locks_as_measured() {
    let one_ns = 1e9 / 323_000.0;
    let serial = (32.0 * 323_000.0 / 4_050_000.0 - 1.0) / 31.0;
    for (cores, measured, percent) in [(1_u32, 323e3, 0.1), (32, 4.05e6, 0.1), (4, 1.25e6, 12.0), (16, 3.5e6, 18.0)] {
        let network = NetworkDescription {
            target_core_ns: one_ns as u64 * 1_000,
            target_cores: cores,
            target_serial_share: serial,
            ..free_network()
        };
        let per_s = f64::from(cores) / network.target_ns() as f64 * 1e9 * 1_000.0;
        assert_close(per_s, measured, percent, &format!("{cores} cores"));
    }
}

/// The burst of an instance ends when its credits do: after credit / (burst - sustained) seconds.
#[test]
fn a_burst_lasts_as_long_as_its_credits() {
    let (sustained, burst) = (500, 2_000);
    let credits = 30 * (burst - sustained);
    let limit = requests_per_s(sustained, Some(Burst { per_s: burst, credits }));
    let mut work = workload(random_reads(4096), closed(32), 1);
    work.run_length = RunLength::TimeNs(60 * SECOND);
    let spec = RunSpec { system: limited(vec![limit], &ssd()), interval_ns: Some(SECOND), ..spec(&bare_drive(), work) };
    let rates: Vec<u64> = run_spec(&spec).intervals.iter().map(|interval| interval.count).collect();
    assert!(rates[1..29].iter().all(|rate| (1_990..=2_010).contains(rate)), "{rates:?}");
    assert!(rates[32..59].iter().all(|rate| (498..=502).contains(rate)), "{rates:?}");
}

/// The smaller limit of an instance and of a volume decides at each moment.
#[test]
fn the_smaller_of_two_limits_decides() {
    for (outer, inner) in [(1_000, 3_000), (3_000, 1_000)] {
        let inside = limited(vec![requests_per_s(inner, None)], &ssd());
        let system = limited(vec![requests_per_s(outer, None)], &inside);
        let result = of(&system, random_reads(4096), closed(16), 5_000);
        assert_close(result.throughput_per_s(), 1_000.0, 0.5, "the smaller limit");
    }
}

/// A failure below keeps its place.
#[test]
fn a_failure_passes_through_layers() {
    let system = limited(vec![requests_per_s(1 << 40, None)], &through(free_network(), &bare_drive().into()));
    let mut bench = Bench::new(&system).with(None, &[unreadable(10, 20)]);
    let (_, failed) = bench.serve(&read(5, 10));
    assert_eq!(failed.iter().map(|failed| (failed.at_bytes, failed.write)).collect::<Vec<_>>(), [(5120, false)]);
}

/// A power cycle empties the layers; the next request takes as long as the first one.
#[test]
fn a_power_cycle_empties_the_layers() {
    let network = NetworkDescription { round_trip_ns: 50 * US, window: 1, ..free_network() };
    let mut bench = Bench::new(&limited(vec![requests_per_s(1_000, None)], &through(network, &ssd())));
    let first_ns = bench.takes_ns(&read(0, 8));
    for _ in 0..5 {
        bench.submit(&read(0, 8));
    }
    bench.now_ns += SECOND;
    bench.run_to(bench.now_ns - SECOND + 60 * US);
    bench.system.power_cycle(bench.now_ns);
    assert_eq!(bench.settle(), []);
    bench.now_ns += SECOND;
    assert_eq!(bench.takes_ns(&read(0, 8)), first_ns);
}
