//! Power cuts: acknowledged synchronous data survive at every event.

use std::collections::HashMap;

use headstack_sim::array::description::Level;
use headstack_sim::stack::description::{InstanceLimitDescription, Sync, ZfsDescription, ZfsParameters};
use headstack_sim::system::System;
use headstack_sim::{SystemDescription, ssd::description::SsdDescription};
use headstack_workload::{Kind, Request};

use super::*;
use crate::common::arrays;
use crate::common::{Dice, MS, flush, request};

const BLOCK: u64 = 4096;

/// An SSD whose cache loses data at a power cut.
fn forgetful() -> SystemDescription {
    let mut ssd: SsdDescription = small_ssd();
    ssd.buffer.power_loss_protected = false;
    drive(ssd)
}

/// State of a block: number of its last write, and of the last one that must survive.
#[derive(Clone, Copy, Debug, Default)]
struct Written {
    submitted: u64,
    acknowledged: u64,
    safe: u64,
}

/// A request, the number of its write, and the blocks with the writes that were acknowledged when it began.
type InFlight = (Request, u64, Vec<(u64, u64)>);

/// Submits random requests, and compares the data at risk with what was acknowledged, at every event.
fn survives_cuts(description: &ZfsDescription, below: &[SystemDescription], seed: u64) -> [u64; 2] {
    let mut bench = Bench::new(&zfs(description, below));
    let mut dice = Dice(seed);
    let mut blocks: HashMap<u64, Written> = HashMap::new();
    // Requests in flight: their number, and what was acknowledged when a flush began.
    let mut in_flight: HashMap<u32, InFlight> = HashMap::new();
    let (mut number, mut events, mut at_risk) = (0, 0, 0);
    while number < 1_500 {
        let pause_ns = dice.below(3 * MS);
        let until_ns = bench.now_ns + if dice.below(50) == 0 { SECOND } else { pause_ns };
        while bench.system.next_event_ns() <= until_ns {
            let done = bench.run_to(bench.system.next_event_ns());
            events += 1;
            for completion in done {
                let (request, own, covered) = in_flight.remove(&completion.id).unwrap();
                for block in
                    request.offset_bytes / BLOCK..(request.offset_bytes + u64::from(request.length_bytes)) / BLOCK
                {
                    let state = blocks.entry(block).or_default();
                    state.acknowledged = state.acknowledged.max(own);
                    if request.force_unit_access {
                        state.safe = state.safe.max(own);
                    }
                }
                for (block, write) in covered {
                    let state = blocks.entry(block).or_default();
                    state.safe = state.safe.max(write);
                }
            }
            let volatile = bench.volatile();
            let is_volatile =
                |block: u64| volatile.iter().any(|&(from, to)| from < (block + 1) * BLOCK && block * BLOCK < to);
            for (&block, state) in &blocks {
                // The newest write is safe, or a later one makes the block undecided.
                let lost = is_volatile(block);
                at_risk += u64::from(lost);
                assert!(!lost || state.safe < state.submitted, "block {block} at {} ns: {state:?}", bench.now_ns);
            }
        }
        bench.run_to(until_ns);
        number += 1;
        let mut request = match dice.below(10) {
            0 => flush(),
            1 => request(Kind::Read, dice.below(2_000) * BLOCK, BLOCK),
            _ => request(Kind::Write, dice.below(400) * BLOCK, (1 + dice.below(20)) * BLOCK),
        };
        request.force_unit_access = request.kind == Kind::Write && dice.below(3) == 0;
        let mut covered = Vec::new();
        if request.kind == Kind::Flush {
            covered = blocks.iter().map(|(&block, state)| (block, state.acknowledged)).collect();
        }
        let mut own = 0;
        if request.kind == Kind::Write {
            own = number;
            for block in request.offset_bytes / BLOCK..(request.offset_bytes + u64::from(request.length_bytes)) / BLOCK
            {
                blocks.entry(block).or_default().submitted = number;
            }
        }
        let id = bench.submit(&request);
        in_flight.insert(id, (request, own, covered));
    }
    [events, at_risk]
}

/// A dataset's bytes lie elsewhere in the pool, so that halves of writes on mirrors must not be taken for its contents.
#[test]
fn mirrors_below_zfs_leave_no_halves() {
    let mut group = arrays::group(Level::Raid10, 0..4, 1);
    (group.chunk_bytes, group.rebuild.step_bytes) = (128 * KIB, MIB);
    let SystemDescription::Drive(device) = forgetful() else { unreachable!() };
    group.member_bytes = device.capacity_bytes() / MIB * MIB;
    let mut array = arrays::array(group, 0);
    array.devices = vec![device];
    array.luns[0].length_bytes = array.groups[0].capacity_bytes();
    let pool = SystemDescription::Array(array);
    let dataset = zfs(&small(256 * MIB), std::slice::from_ref(&pool));
    let leaves_halves = |system: &SystemDescription| System::new(system, 1).unwrap().leaves_halves();
    assert_eq!([leaves_halves(&pool), leaves_halves(&dataset)], [true, false]);
    let accounting = Accounting { unit_bytes: None, merges: false, whole_units: false };
    let limit = Limit { counts: Counts::Bytes, of: LimitScope::Both, per_s: 1_000_000, burst: None };
    let instance = LayerDescription::InstanceLimit(InstanceLimitDescription { accounting, limits: vec![limit] });
    assert!(leaves_halves(&over(instance, std::slice::from_ref(&pool))));
    assert_eq!([&pool, &dataset].map(|system| system.array_in_place().is_some()), [true, false]);
}

/// A record goes to a new place, so that power takes all of a write to it or nothing.
#[test]
fn a_write_within_a_record_is_never_torn() {
    let system = zfs(&small(256 * MIB), &[forgetful()]);
    let bench = Bench::new(&system);
    assert_eq!(bench.system.atomic_bytes(), Some(RECORD));
    assert_eq!([0, 4096, RECORD].map(|at| bench.system.tear_bound(at)), [RECORD, RECORD, 2 * RECORD]);
    assert_eq!(Bench::new(&forgetful()).system.atomic_bytes(), None);
}

/// Acknowledged writes with FUA, and writes before an acknowledged flush, are never at risk; other writes are, until
/// their group syncs.
#[test]
fn acknowledged_synchronous_data_survive_a_cut_at_every_event() {
    let of =
        |parameters: ZfsParameters| ZfsDescription { dirty_data_max_bytes: 16 * MIB, parameters, ..small(64 * MIB) };
    let slog = ZfsDescription { log: Some(1), ..of(ZfsParameters::v2_4()) };
    let always = ZfsDescription { sync: Sync::Always, ..of(ZfsParameters::v2_3()) };
    for (description, below) in [
        (of(ZfsParameters::v2_4()), vec![forgetful()]),
        (of(ZfsParameters::v2_1()), vec![forgetful()]),
        (slog, vec![forgetful(), forgetful()]),
        (always, vec![forgetful()]),
    ] {
        for seed in 1..=2 {
            let [events, at_risk] = survives_cuts(&description, &below, seed);
            assert!(events > 3_000 && at_risk > 100, "{events} events, {at_risk} blocks at risk");
        }
    }
}

/// When a synchronous write is acknowledged, the devices hold nothing that a cut would take.
#[test]
fn the_devices_have_flushed_what_a_commit_covers() {
    for slog in [None, Some(1)] {
        let description = ZfsDescription { log: slog, ..small(64 * MIB) };
        let below = vec![forgetful(); if slog.is_some() { 2 } else { 1 }];
        let mut bench = Bench::new(&zfs(&description, &below));
        for at in 0..20 {
            let write = request(Kind::Write, at * RECORD, RECORD);
            bench.takes_ns(&Request { force_unit_access: true, ..write });
            assert_eq!(bench.volatile_below(), [], "write {at}");
        }
    }
}

/// `sync=disabled` loses what its groups have not synced, although a flush was acknowledged.
#[test]
fn sync_disabled_loses_acknowledged_data() {
    let description = ZfsDescription { sync: Sync::Disabled, ..small(64 * MIB) };
    let mut bench = Bench::new(&zfs(&description, &[forgetful()]));
    bench.takes_ns(&request(Kind::Write, RECORD, RECORD));
    bench.takes_ns(&flush());
    assert_eq!(bench.volatile(), [(RECORD, 2 * RECORD)]);
    bench.settle();
    assert_eq!(bench.volatile(), []);
}

/// A power cycle empties memory: the next read goes to the device, the next requests are served.
#[test]
fn a_power_cycle_empties_memory() {
    let description = small(64 * MIB);
    let mut bench = Bench::new(&zfs(&description, &[forgetful()]));
    let read = request(Kind::Read, 0, 4096);
    let cold_ns = bench.takes_ns(&read);
    assert_eq!(bench.takes_ns(&read), description.read_ns);
    for record in 0..50 {
        bench.submit(&request(Kind::Write, record * RECORD, RECORD));
        bench.submit(&flush());
    }
    bench.run_to(bench.now_ns + MS);
    bench.system.power_fails(bench.now_ns);
    bench.system.power_cycle(bench.now_ns);
    assert_eq!(bench.volatile(), []);
    assert_eq!(bench.settle(), []);
    assert_eq!(bench.system.levels()[..2], [0, 0]);
    assert_eq!(bench.takes_ns(&read), cold_ns);
    bench.takes_ns(&request(Kind::Write, 0, RECORD));
    bench.takes_ns(&flush());
    bench.settle();
}
