//! Properties of every drive and workload: nothing is lost, time never decreases, and equal inputs give equal bytes.

use crate::common::*;
use headstack_sim::drive::description::{
    AfterReadWrite, BlockOrder, DriveDescription, Policy, ReadAhead, Recalibration, Retries, SeekCurve, WriteCache,
};
use headstack_sim::drive::{Drive, check};
use headstack_sim::run;
use headstack_workload::{ArrivalProcess, Arrivals, Kind, Request, RunLength, Think, Workload};
use proptest::prelude::*;

prop_compose! {
    fn mechanism()(
        (physical, order, rpm) in (prop::sample::select(vec![(512, 512), (512, 4096), (4096, 4096)]),
            prop::sample::select(BlockOrder::ALL.to_vec()), 3_000f64..16_000.0),
        seek in prop::sample::select(vec![
            SeekCurve::Constant(2_000_000),
            SeekCurve::ThreeParameter { minimum_ns: 600_000, average_ns: 5_000_000, maximum_ns: 10_000_000 },
            SeekCurve::Points(vec![(1, 800_000), (300, 6_000_000), (310, 5_900_000)]),
        ]),
        (head_switch_ns, settle_ns, on_arrival) in (0u64..2_000_000, -300_000i64..600_000, any::<(bool, bool)>()),
    ) -> DriveDescription {
        let mut drive = bare_drive();
        (drive.geometry.logical_block_bytes, drive.geometry.physical_sector_bytes) = physical;
        drive.geometry.order = order;
        drive.geometry.zones = vec![zone(0, 499, 100), zone(500, 999, 63)];
        drive.geometry.logical_blocks = 2_000 * 163 * u64::from(physical.1 / physical.0);
        (drive.mechanics.rpm, drive.mechanics.seek) = (rpm, seek);
        (drive.mechanics.head_switch_ns, drive.mechanics.write_settle_ns) = (head_switch_ns, settle_ns);
        (drive.mechanics.read_on_arrival, drive.mechanics.write_on_arrival) = on_arrival;
        drive
    }
}

prop_compose! {
    fn any_drive()(
        mut drive in mechanism(),
        (policy, depth, tags, strength, ageing) in (prop::sample::select(Policy::ALL.to_vec()), 1u32..40, 1u32..40, 0.0f64..=1.0,
            prop::option::of(MS..500 * MS)),
        elevator in prop::sample::select(Policy::ALL.to_vec()),
        (segments, segment_sectors, ahead, ahead_max, ahead_min) in (0u32..6, 8u32..300,
            prop::sample::select(ReadAhead::ALL.to_vec()), 0u32..300, 0u32..40),
        (cache, extents, dirty_sectors) in (prop::sample::select(WriteCache::ALL.to_vec()), 1u32..20, 1u32..500),
        flags in any::<[bool; 5]>(),
        (overhead_ns, watermark, read_rate, write_rate) in (0u64..500_000, 0.0f64..=1.0, 0.0f64..300.0, 0.0f64..300.0),
        slow in any::<[bool; 2]>(),
    ) -> DriveDescription {
        (drive.queue.policy, drive.queue.depth, drive.queue.reordering_strength) = (policy, depth, strength);
        drive.queue.ageing_ns = ageing;
        (drive.interface.host_tags, drive.interface.host_elevator) = (tags, elevator);
        (drive.interface.read_ns_per_byte, drive.interface.write_ns_per_byte) = (read_rate, write_rate);
        let buffer = &mut drive.buffer;
        (buffer.segments, buffer.segment_sectors, buffer.read_ahead) = (segments, segment_sectors, ahead);
        (buffer.read_ahead_max_sectors, buffer.read_ahead_min_sectors) = (ahead_max, ahead_min);
        (buffer.write_cache, buffer.dirty_extents_max, buffer.dirty_sectors_max) = (cache, extents, dirty_sectors);
        (buffer.read_ahead_on_hit, buffer.keep_passing_sectors, buffer.read_hits_on_arriving) = (flags[0], flags[1], flags[2]);
        (buffer.read_hits_on_writes, buffer.separate_write_segment) = (flags[3], flags[4]);
        buffer.read_watermark = watermark;
        let cost = AfterReadWrite { after_read: overhead_ns, after_write: overhead_ns / 2 };
        (drive.overheads.read_miss_ns, drive.overheads.write_miss_ns) = (cost, cost);
        (drive.overheads.read_hit_ns, drive.overheads.write_hit_ns) = (cost, cost);
        drive.overheads.data_preparation_ns = overhead_ns / 7;
        drive.slow.retries = slow[0].then_some(Retries { probability: 0.1, passes_max: 5 });
        drive.slow.recalibration = slow[1].then_some(Recalibration { interval_ns: 300 * MS, duration_ns: 30 * MS });
        drive
    }
}

prop_compose! {
    fn any_workload()(
        size in prop::sample::select(vec![4096u32, 8192, 65_536, 1 << 20]),
        read in 0.0f64..=100.0, random in 0.0f64..=100.0, trim in 0.0f64..20.0, streams in 1u32..4, flush_every in 0u64..20,
        arrivals in prop_oneof![
            (1u32..60).prop_map(closed),
            (1u32..20, 1u64..30).prop_map(|(queue_depth, ms)| {
                Arrivals::Closed { queue_depth, think: Think::Exponential(ms * MS) }
            }),
            (5.0f64..400.0).prop_map(|rate_per_s| Arrivals::Open { rate_per_s, process: ArrivalProcess::Poisson }),
        ],
        length in prop_oneof![
            (100u64..600).prop_map(RunLength::Requests),
            (500u64..3_000).prop_map(|ms| RunLength::TimeNs(ms * MS)),
        ],
        warm_up in 0u64..100,
    ) -> Workload {
        let mut line = line(size, read, random);
        line.trim_percent = trim;
        let mut workload = workload(line, arrivals, 1);
        (workload.streams, workload.flush_every, workload.run_length) = (streams, flush_every, length);
        workload.warm_up.requests = warm_up;
        workload
    }
}

/// Generates commands, aligned to 512 bytes or to physical sectors as the drive requires.
fn any_commands() -> impl Strategy<Value = Vec<(u64, u8, u64, u64, bool, bool)>> {
    let command =
        (0u64..20 * MS, 0u8..12, any::<u64>(), 1u64..40, prop::bool::weighted(0.1), prop::bool::weighted(0.1));
    prop::collection::vec(command, 1..80)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn runs_keep_their_books(drive in any_drive(), workload in any_workload(), seed in any::<u64>()) {
        check(&drive).map_err(|fault| TestCaseError::fail(fault.to_string()))?;
        let spec = headstack_sim::RunSpec { seed, interval_ns: Some(500 * MS), ..spec(&drive, workload) };
        let result = run(&spec, &|_| true).map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert!(result.passed(), "{:?}", result.checks);
        prop_assert_eq!(result.errors(), 0);
        for (name, kind) in result.kinds.all() {
            prop_assert_eq!(kind.latency.count(), kind.count, "{}", name);
            prop_assert_eq!(kind.service.count(), kind.count, "{}", name);
            prop_assert!(kind.latency.sum_ns() >= kind.service.sum_ns(), "{}: response below service", name);
        }
        prop_assert_eq!(result.intervals.iter().map(|interval| interval.count).sum::<u64>(), result.count());
        // A second run gives the same bytes.
        let again = run(&spec, &|_| true).map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(result.to_json().unwrap(), again.to_json().unwrap());
    }

    #[test]
    fn every_command_completes_once_and_in_order_of_time(drive in any_drive(), commands in any_commands()) {
        let block = u64::from(drive.geometry.logical_block_bytes);
        let blocks = drive.geometry.logical_blocks;
        let mut now_ns = 0;
        let requests: Vec<(u64, Request)> = commands.into_iter().map(|(gap_ns, kind, place, length, forced, ordered)| {
            now_ns += gap_ns;
            let kind = match kind { 0 => Kind::Flush, 1 => Kind::Trim, 2..7 => Kind::Write, _ => Kind::Read };
            // Half of them close together, so that they share data in the buffer.
            let first = if place % 2 == 0 { place % (blocks - 40) } else { place % 200 };
            let (offset, length) = if kind == Kind::Flush { (0, 0) } else { (first * block, length * block) };
            (now_ns, Request { force_unit_access: forced && kind == Kind::Write, ordered, ..request(kind, offset, length) })
        }).collect();
        let done = serve_all(&mut Drive::new(&drive, 3).unwrap(), &requests);
        prop_assert!(done.windows(2).all(|pair| pair[0].at_ns <= pair[1].at_ns), "completions out of order");
        let mut ids: Vec<u32> = done.iter().map(|completion| completion.id).collect();
        ids.sort_unstable();
        prop_assert_eq!(ids, (0..requests.len() as u32).collect::<Vec<_>>());
        for completion in &done {
            let (arrived_ns, _) = requests[completion.id as usize];
            prop_assert!(arrived_ns <= completion.started_ns && completion.started_ns <= completion.at_ns);
        }
    }

    /// At depth 1, on random reads with one seed.
    #[test]
    fn faster_mechanisms_are_not_slower(drive in mechanism(), seed in any::<u64>()) {
        let mean = |drive: &DriveDescription| {
            let line = line(4096, 100.0, 100.0);
            let spec = headstack_sim::RunSpec { seed, ..spec(drive, workload(line, closed(1), 4_000)) };
            run_spec(&spec).mean_latency_ns()
        };
        let before = mean(&drive);
        let mut spun = drive.clone();
        spun.mechanics.rpm *= 1.3;
        prop_assert!(mean(&spun) < before, "a faster spindle is slower");
        let mut nimble = drive.clone();
        nimble.mechanics.seek = match drive.mechanics.seek {
            SeekCurve::Constant(ns) => SeekCurve::Constant(ns / 2),
            SeekCurve::Points(points) => SeekCurve::Points(points.into_iter().map(|(d, ns)| (d, ns / 2)).collect()),
            SeekCurve::ThreeParameter { minimum_ns, average_ns, maximum_ns } => {
                SeekCurve::ThreeParameter { minimum_ns: minimum_ns / 2, average_ns: average_ns / 2, maximum_ns: maximum_ns / 2 }
            }
            other => other,
        };
        prop_assert!(mean(&nimble) < before, "faster seeks are slower");
    }
}
