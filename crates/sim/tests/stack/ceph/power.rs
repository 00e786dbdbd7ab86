//! Power cuts: acknowledged writes survive at every event.

use std::collections::HashMap;

use headstack_workload::{Kind, Request};

use super::*;
use crate::common::{Dice, MS, flush, read, request, write};

const BLOCK: u64 = 512;

/// Submits random requests, and compares the data at risk with what was acknowledged, at every event. Returns the
/// number of events.
fn survives_cuts(description: &CephDescription, below: &[SystemDescription], seed: u64) -> u64 {
    let mut bench = Bench::new(&ceph(description, below));
    let mut dice = Dice(seed);
    // By block: the last write that was submitted, and the last that was acknowledged.
    let mut blocks: HashMap<u64, (u64, u64)> = HashMap::new();
    let mut in_flight: HashMap<u32, (Request, u64)> = HashMap::new();
    let blocks_of = |request: &Request| {
        let end = request.offset_bytes + u64::from(request.length_bytes);
        request.offset_bytes / BLOCK..end / BLOCK
    };
    let mut events = 0;
    for number in 1..=250 {
        let until_ns = bench.now_ns + dice.below(2 * MS);
        while bench.system.next_event_ns() <= until_ns {
            for completion in bench.run_to(bench.system.next_event_ns()) {
                let (request, own) = in_flight.remove(&completion.id).unwrap();
                if request.kind == Kind::Write {
                    for block in blocks_of(&request) {
                        let state = blocks.entry(block).or_default();
                        state.1 = state.1.max(own);
                    }
                }
            }
            events += 1;
            let lost = bench.volatile();
            for (&block, &(submitted, acknowledged)) in &blocks {
                let is_lost = lost.iter().any(|&(from, to)| from < (block + 1) * BLOCK && block * BLOCK < to);
                assert!(!is_lost || acknowledged < submitted, "block {block} at {} ns", bench.now_ns);
            }
        }
        bench.run_to(until_ns);
        let request = match dice.below(10) {
            0 => read(dice.below(20_000), 1 + dice.below(40)),
            _ => write(dice.below(2_000), 1 + dice.below(60)),
        };
        if request.kind == Kind::Write {
            blocks_of(&request).for_each(|block| blocks.entry(block).or_default().0 = number);
        }
        let id = bench.submit(&request);
        in_flight.insert(id, (request, number));
    }
    events
}

/// Acknowledged writes are never at risk, on devices whose caches lose their contents.
#[test]
fn acknowledged_writes_survive_a_cut_at_any_event() {
    let copies = CephDescription { capacity_bytes: 16 * MIB, ..free(3, 3, Redundancy::Copies(2)) };
    let deferred = CephDescription { prefer_deferred_bytes: 16 << 10, osds_per_db: Some(3), ..copies.clone() };
    let redundancy = erasure(2, 1, 16, ErasureAccess::ChangedShards);
    let coded = CephDescription { osds: 4, hosts: 4, redundancy, ..copies.clone() };
    for (description, below) in
        [(copies, vec![forgetful()]), (deferred, vec![forgetful(), forgetful()]), (coded, vec![forgetful()])]
    {
        for seed in 1..=2 {
            let events = survives_cuts(&description, &below, seed);
            assert!(events > 2_000, "{events} events");
        }
    }
}

/// When a write is acknowledged, no device of any OSD holds data that a cut would take.
#[test]
fn all_copies_are_durable_when_a_write_is_acknowledged() {
    for (deferred, redundancy) in [
        (0, Redundancy::Copies(3)),
        (0, erasure(2, 2, 4, ErasureAccess::WholeStripes)),
        (64 << 10, Redundancy::Copies(3)),
    ] {
        let description = CephDescription { prefer_deferred_bytes: deferred, ..free(4, 4, redundancy) };
        let mut bench = Bench::new(&ceph(&description, &[forgetful()]));
        for at in 0..15 {
            bench.takes_ns(&request(Kind::Write, at * 5 * MIB / 2, 8 * KIB));
            assert_eq!(bench.volatile_below(), [], "write {at}");
        }
    }
}

/// A power cycle empties the cluster: nothing is in flight, the next requests take as long as the first.
#[test]
fn a_power_cycle_empties_the_cluster() {
    let mut bench = Bench::new(&ceph(&free(3, 3, Redundancy::Copies(3)), &[forgetful()]));
    let first_ns = bench.takes_ns(&request(Kind::Read, 8 * MIB, 4096));
    for at in 0..50 {
        bench.submit(&request(Kind::Write, at * 64 * KIB, 4096));
        bench.submit(&flush());
    }
    bench.run_to(bench.now_ns + MS / 10);
    bench.system.power_fails(bench.now_ns);
    bench.system.power_cycle(bench.now_ns);
    assert_eq!(bench.volatile(), []);
    assert_eq!(bench.settle(), []);
    bench.now_ns += SECOND;
    assert_eq!(bench.takes_ns(&request(Kind::Read, 8 * MIB, 4096)), first_ns);
    bench.takes_ns(&request(Kind::Write, 0, 4096));
}
