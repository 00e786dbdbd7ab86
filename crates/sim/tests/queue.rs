//! Scheduling: which command is served next, and the gain.

use crate::common::*;
use headstack_sim::drive::Drive;
use headstack_sim::drive::description::{DriveDescription, Policy, SeekCurve, WriteCache};
use headstack_workload::Request;

/// First sector of a cylinder, on surface 0.
fn cylinder(number: u64) -> u64 {
    number * CYLINDER
}

/// Returns the order of service of `sectors`, all of which arrive while the drive is busy on cylinder 50.
fn order_of_service(description: &DriveDescription, sectors: &[u64], ordered: &[usize]) -> Vec<u64> {
    let mut requests = vec![(0, read(cylinder(50), 1))];
    for (index, &sector) in sectors.iter().enumerate() {
        requests.push((0, Request { ordered: ordered.contains(&index), ..read(sector, 1) }));
    }
    let mut drive = Drive::new(description, 0).unwrap();
    let done = serve_all(&mut drive, &requests);
    assert_eq!((done.len(), done[0].id), (sectors.len() + 1, 0));
    done[1..].iter().map(|completion| sectors[completion.id as usize - 1]).collect()
}

#[test]
fn each_policy_serves_in_its_order() {
    let waiting = [10, 60, 40, 90, 55, 20];
    let orders = [
        (Policy::Fcfs, [10, 60, 40, 90, 55, 20]),
        // From 50: 55 (5 away), 60 (5), then 40 (20) before 90 (30), 20, 10, 90.
        (Policy::Sstf, [55, 60, 40, 20, 10, 90]),
        (Policy::Look, [55, 60, 90, 40, 20, 10]),
        (Policy::CLook, [55, 60, 90, 10, 20, 40]),
    ];
    for (policy, expected) in orders {
        let served = order_of_service(&queueing_drive(policy, 32), &waiting.map(cylinder), &[]);
        assert_eq!(served, expected.map(cylinder), "{policy:?}");
    }
}

/// Without seek and switch times only the angle counts.
#[test]
fn shortest_positioning_without_seeks_follows_the_rotation() {
    let mut description = queueing_drive(Policy::Sptf, 32);
    (description.mechanics.seek, description.mechanics.head_switch_ns) = (SeekCurve::Constant(0), 0);
    description.geometry.zones[0].cylinder_skew_turns = 0.0;
    description.geometry.zones[0].track_skew_turns = 0.0;
    // The first command ends at sector 1; sector 1 itself would be next, and 0 has just passed.
    let waiting = [cylinder(900) + 40, cylinder(3) + 99, cylinder(50), cylinder(400) + 5, cylinder(999) + 41];
    let expected = [cylinder(400) + 5, cylinder(900) + 40, cylinder(999) + 41, cylinder(3) + 99, cylinder(50)];
    assert_eq!(order_of_service(&description, &waiting, &[]), expected);
}

/// Greedy choice by the independent mechanism: the full order of a long queue.
#[test]
fn shortest_positioning_is_greedy() {
    let description = queueing_drive(Policy::Sptf, 256);
    for seed in 0..20 {
        let mut dice = Dice(seed);
        let mut waiting: Vec<u64> = (0..100).map(|_| dice.below(CYLINDERS * CYLINDER)).collect();
        let served = order_of_service(&description, &waiting, &[]);
        let mut mechanism = Mechanism::at_rest(&description);
        let (_, mut now_ns) = mechanism.access(0.0, cylinder(50), 1, false);
        for (number, &sector) in served.iter().enumerate() {
            let reach_ns = |&sector: &u64| {
                let place = mechanism.place(sector);
                let seek_ns = mechanism.position_ns(place, false);
                seek_ns + mechanism.wait_ns(now_ns + seek_ns, place.turns)
            };
            let best_ns = waiting.iter().map(reach_ns).fold(f64::MAX, f64::min);
            let taken_ns = reach_ns(&sector);
            assert!(taken_ns <= best_ns + 20.0, "choice {number}: {taken_ns} ns, {best_ns} were to be had");
            waiting.retain(|&other| other != sector);
            (_, now_ns) = mechanism.access(now_ns, sector, 1, false);
        }
    }
}

#[test]
fn ordered_commands_are_barriers() {
    for policy in Policy::ALL {
        for seed in 0..20 {
            let mut dice = Dice(seed);
            let waiting: Vec<u64> = (0..40).map(|_| dice.below(CYLINDERS * CYLINDER)).collect();
            let barriers = [dice.below(13) as usize, 13 + dice.below(13) as usize, 26 + dice.below(14) as usize];
            let served = order_of_service(&queueing_drive(policy, 64), &waiting, &barriers);
            for barrier in barriers {
                let place = served.iter().position(|&sector| sector == waiting[barrier]).unwrap();
                assert_eq!(place, barrier, "{policy:?}: an ordered command keeps its place");
                let earlier = |sector: &u64| waiting[..barrier].contains(sector);
                assert!(served[..place].iter().all(earlier), "{policy:?}: something passed an ordered command");
            }
        }
    }
}

fn throughput(description: &DriveDescription, queue_depth: u32) -> f64 {
    run_closed(description, line(4096, 100.0, 100.0), queue_depth, 20_000).throughput_per_s()
}

#[test]
fn better_informed_policies_serve_more() {
    for depth in [4, 16, 64] {
        let of = |policy| throughput(&queueing_drive(policy, depth), depth);
        let [fcfs, sstf, look, c_look, sptf] = Policy::ALL.map(of);
        assert!(fcfs < c_look && c_look < sptf, "depth {depth}: FCFS {fcfs}, C-LOOK {c_look}, SPTF {sptf}");
        assert!(fcfs < sstf && sstf < sptf, "depth {depth}: FCFS {fcfs}, SSTF {sstf}, SPTF {sptf}");
        assert!(fcfs < look && look < sptf, "depth {depth}: FCFS {fcfs}, LOOK {look}, SPTF {sptf}");
    }
}

/// Thomasian: service time is proportional to depth^-0.2.
#[test]
fn service_time_falls_with_a_fifth_root_of_the_depth() {
    let depths = [2, 4, 8, 16, 32, 64, 128];
    let points: Vec<(f64, f64)> = depths
        .iter()
        .map(|&depth| (f64::from(depth).ln(), -throughput(&queueing_drive(Policy::Sptf, depth), depth).ln()))
        .collect();
    let n = points.len() as f64;
    let (mean_x, mean_y) = (points.iter().map(|p| p.0).sum::<f64>() / n, points.iter().map(|p| p.1).sum::<f64>() / n);
    let slope = points.iter().map(|p| (p.0 - mean_x) * (p.1 - mean_y)).sum::<f64>()
        / points.iter().map(|p| (p.0 - mean_x).powi(2)).sum::<f64>();
    assert!((-0.27..-0.15).contains(&slope), "exponent {slope}");
}

#[test]
fn reordering_strength_spans_fcfs_to_the_ideal() {
    let of = |policy, strength| {
        let mut description = queueing_drive(policy, 32);
        description.queue.reordering_strength = strength;
        run_closed(&description, line(4096, 70.0, 100.0), 32, 20_000)
    };
    assert_eq!(outcome(&of(Policy::Sptf, 0.0)), outcome(&of(Policy::Fcfs, 1.0)), "strength 0 is FCFS");
    let strengths = [0.0, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0];
    let rates = strengths.map(|strength| of(Policy::Sptf, strength).throughput_per_s());
    for at in 1..rates.len() {
        assert!(rates[at] > 0.99 * rates[at - 1], "strength {}: {rates:?}", strengths[at]);
    }
    assert!(rates[6] > 1.5 * rates[0], "{rates:?}");
    // Half a strength of 6 waiting commands chooses among the oldest 3 or 4, 3.5 on average.
    let mut half = queueing_drive(Policy::Sstf, 32);
    half.queue.reordering_strength = 0.5;
    let served = order_of_service(&half, &[10, 90, 30, 51, 52, 53].map(cylinder), &[]);
    // Of {10, 90, 30} 30; of {10, 90, 51} (5 wait, 3 are open) 10; of {90, 51, 52} (4 wait: the remaining half makes 3
    // of 2.5) 51; of {90, 52} 52; of {90} and {53} in turn.
    assert_eq!(served, [30, 10, 51, 52, 90, 53].map(cylinder));
}

/// No strength is rounded away: with two commands even 33 % of the choice has an effect from time to time.
#[test]
fn a_little_more_strength_serves_a_little_more() {
    let rate = |queue_depth, strength| {
        let mut description = queueing_drive(Policy::Sptf, 32);
        description.queue.reordering_strength = strength;
        run_closed(&description, line(4096, 100.0, 100.0), queue_depth, 50_000).throughput_per_s()
    };
    for queue_depth in [3, 5] {
        let rates = [0.0, 0.25, 0.33, 0.35, 0.5, 0.75, 1.0].map(|strength| rate(queue_depth, strength));
        assert!(rates[2] != rates[3], "{rates:?}");
        assert!(rates.windows(2).all(|pair| pair[1] > 0.995 * pair[0]), "{rates:?}");
        assert!(rates[6] > 1.05 * rates[0] && rates[4] > 1.01 * rates[0] && rates[4] < rates[6], "{rates:?}");
    }
}

/// A later command overtakes planned ones only if nothing is committed.
#[test]
fn what_is_committed_keeps_its_place() {
    let served = |committed| {
        let mut description = queueing_drive(Policy::Sstf, 32);
        description.queue.committed = committed;
        let far = [300, 500, 700, 900];
        let early = far.map(|number| (0, read(cylinder(number), 1)));
        let first = [(0, read(cylinder(50), 1))];
        // While the arm is on its way to 300.
        let near = [(8 * MS, read(cylinder(301), 1))];
        let requests: Vec<(u64, Request)> = first.into_iter().chain(early).chain(near).collect();
        let done = serve_all(&mut Drive::new(&description, 0).unwrap(), &requests);
        assert!(done[0].at_ns < 8 * MS && 8 * MS < done[1].at_ns, "{done:?}");
        done.iter().position(|completion| completion.id == 5).unwrap()
    };
    // The last one to arrive is next to the second; 0, 1 and 3 others were planned by then.
    assert_eq!([0.0, 1.0, 3.0].map(served), [2, 3, 5]);
}

/// Writes in order stream from the write cache, also when the order of other commands is fixed.
#[test]
fn committed_commands_do_not_interrupt_a_stream_of_writes() {
    let rate = |committed| {
        let mut description = queueing_drive(Policy::Sptf, 32);
        description.queue.committed = committed;
        description.buffer.write_cache = WriteCache::On;
        description.buffer.dirty_extents_max = 8;
        run_closed(&description, line(16 << 10, 0.0, 0.0), 4, 20_000).throughput_per_s()
    };
    let [free, planned] = [0.0, 2.0].map(rate);
    assert_close(planned, free, 1.0, "a stream, in percent");
}

/// With two commands planned only each second time, one and a half are committed.
#[test]
fn commitment_costs_little_by_little() {
    let rate = |committed| {
        let mut description = queueing_drive(Policy::Sptf, 32);
        description.queue.committed = committed;
        run_closed(&description, line(4096, 100.0, 100.0), 8, 50_000).throughput_per_s()
    };
    let rates = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 7.0].map(rate);
    assert!(rates.windows(2).all(|pair| pair[1] < pair[0]), "{rates:?}");
    let fcfs = queueing_drive(Policy::Fcfs, 32);
    let in_order = run_closed(&fcfs, line(4096, 100.0, 100.0), 8, 50_000).throughput_per_s();
    // Except for the first eight, which arrive at once.
    assert_close(rates[7], in_order, 0.1, "nothing is left to choose from");
}

/// A sector that passes soon after the seek is left for the next turn by firmware that expects to miss it.
#[test]
fn sectors_within_the_rotation_margin_are_left_for_the_next_turn() {
    let order = |margin_ns| {
        let mut description = queueing_drive(Policy::Sptf, 32);
        (description.mechanics.seek, description.mechanics.head_switch_ns) = (SeekCurve::Constant(0), 0);
        description.geometry.zones[0].cylinder_skew_turns = 0.0;
        description.geometry.zones[0].track_skew_turns = 0.0;
        description.queue.rotation_margin_ns = margin_ns;
        order_of_service(&description, &[cylinder(7) + 30, cylinder(8) + 60], &[])
    };
    assert_eq!(order(0), [cylinder(7) + 30, cylinder(8) + 60]);
    assert_eq!(order(40 * SECTOR_NS), [cylinder(8) + 60, cylinder(7) + 30]);
}

/// The older of two commands is first if its age outweighs the distance.
#[test]
fn age_makes_up_for_positioning() {
    let far_first = |age_weight| {
        let mut description = queueing_drive(Policy::Sptf, 32);
        description.queue.age_weight = age_weight;
        let near = (1..30).map(|number| (number * MS, read(cylinder(50 + number), 1)));
        let requests: Vec<(u64, Request)> =
            [(0, read(cylinder(50), 1)), (0, read(cylinder(950), 1))].into_iter().chain(near).collect();
        let done = serve_all(&mut Drive::new(&description, 0).unwrap(), &requests);
        done.iter().position(|completion| completion.id == 1).unwrap()
    };
    let [never, slowly, soon] = [0.0, 0.4, 1.0].map(far_first);
    assert!(soon < slowly && slowly < never, "{soon} {slowly} {never}");
}

#[test]
fn ageing_bounds_the_longest_response() {
    let (depth, limit_ns) = (32, 250 * MS);
    let mut description = queueing_drive(Policy::Sptf, depth);
    let line = line(4096, 100.0, 100.0);
    let longest = |description: &DriveDescription| run_closed(description, line.clone(), depth, 50_000);
    let free = longest(&description);
    description.queue.ageing_ns = Some(limit_ns);
    let aged = longest(&description);
    // Above the limit, older ones are served first, each with at most a full stroke and a turn.
    let bound_ns = limit_ns + u64::from(depth) * (10 * MS + TURN_NS + 8 * SECTOR_NS);
    let (free_ns, aged_ns) = (free.quantile_ns(1.0).unwrap(), aged.quantile_ns(1.0).unwrap());
    assert!(aged_ns <= bound_ns && bound_ns < free_ns, "{aged_ns} with ageing, {free_ns} without, bound {bound_ns}");
    description.queue.policy = Policy::Fcfs;
    assert!(aged.throughput_per_s() > 1.2 * longest(&description).throughput_per_s());
}

/// A distant command that always loses is served as soon as it has waited for the limit, and not before.
#[test]
fn aged_commands_are_served_first() {
    const LIMIT_NS: u64 = 40 * MS;
    let near = (0..12).map(|number| (0, read(cylinder(51 + number), 1)));
    let requests: Vec<(u64, Request)> =
        [(0, read(cylinder(50), 1)), (0, read(cylinder(900), 1))].into_iter().chain(near).collect();
    let served = |ageing_ns| {
        let mut description = queueing_drive(Policy::Sstf, 32);
        description.queue.ageing_ns = ageing_ns;
        let done = serve_all(&mut Drive::new(&description, 0).unwrap(), &requests);
        let far = done.iter().position(|completion| completion.id == 1).unwrap();
        (far, done)
    };
    assert_eq!(served(None).0, requests.len() - 1, "without a limit it is the last");
    let (far, done) = served(Some(LIMIT_NS));
    // The arm takes its next job when it has done the one before.
    assert!(done[far - 1].at_ns > LIMIT_NS && done[far - 2].at_ns <= LIMIT_NS, "{far}: {done:?}");
    assert_eq!(done[far + 1].id, done[far - 1].id + 1, "the others are as old, and go in their order");
}

#[test]
fn host_tags_limit_the_drives_queue() {
    let line = line(4096, 100.0, 100.0);
    let with = |depth, tags, queue_depth| {
        let mut description = queueing_drive(Policy::Sptf, depth);
        description.interface.host_tags = tags;
        run_closed(&description, line.clone(), queue_depth, 5_000)
    };
    let four = with(256, 256, 4);
    for (depth, tags) in [(256, 4), (4, 256)] {
        let many = with(depth, tags, 64);
        // The drive sees the same commands at the same times; only the host's wait is longer.
        assert_eq!(many.duration_ns, four.duration_ns);
        assert_close(many.depth.mean, 64.0, 1e-9, "queue depth");
        assert_close(many.mean_latency_ns(), 16.0 * four.mean_latency_ns(), 2.0, "wait in the host");
    }
    assert!(with(256, 256, 64).duration_ns < four.duration_ns);
}

/// Without queueing in the drive the host's elevator sorts by address: better than nothing, worse than the drive's own
/// choice, which knows the rotation.
#[test]
fn the_hosts_elevator_sorts_by_address() {
    let with = |elevator| {
        let mut description = bare_drive();
        description.interface.host_elevator = elevator;
        throughput(&description, 32)
    };
    let (none, c_look, look, sstf) = (with(Policy::Fcfs), with(Policy::CLook), with(Policy::Look), with(Policy::Sstf));
    let drive = throughput(&queueing_drive(Policy::Sptf, 32), 32);
    assert!(c_look > 1.3 * none && look > 1.3 * none && sstf > 1.3 * none, "{none} {c_look} {look} {sstf}");
    assert!(drive > 1.2 * c_look && drive > 1.2 * look && drive > 1.2 * sstf, "{drive} {c_look} {look} {sstf}");
}
