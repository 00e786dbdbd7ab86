//! Power: closed forms of the energy of a run, and the cost of standby.

use crate::common::*;
use headstack_result::{Energy, RunResult};
use headstack_sim::array::description::Level;
use headstack_sim::device::DeviceDescription;
use headstack_sim::drive::Drive;
use headstack_sim::drive::description::{DriveDescription, Power, SpinChange};
use headstack_sim::{RunSpec, SystemDescription};
use headstack_workload::{ArrivalProcess, Arrivals, RunLength};

const S: u64 = 1_000 * MS;

const POWER: Power = Power {
    electronics_w: 4.0,
    spindle_w: 6.0,
    seek_w: 5.0,
    transfer_w: 3.0,
    standby_w: 2.0,
    spin_down: SpinChange { joules: 12.0, ns: S },
    spin_up: SpinChange { joules: 120.0, ns: 8 * S },
    idle_timeout_ns: None,
    ambient_celsius: 25.0,
    airflow_k_per_w: 2.0,
};

fn powered(power: Power) -> DriveDescription {
    DriveDescription { power: Some(power), ..bare_drive() }
}

/// Returns a run of one block every `1 / rate_per_s`, for `time_ns`.
fn seldom(system: SystemDescription, rate_per_s: f64, time_ns: u64) -> RunSpec {
    let arrivals = Arrivals::Open { rate_per_s, process: ArrivalProcess::Fixed };
    let mut workload = workload(line(512, 100.0, 100.0), arrivals, 1);
    workload.run_length = RunLength::TimeNs(time_ns);
    RunSpec { system, ..spec(&bare_drive(), workload) }
}

fn energy(result: &RunResult) -> &Energy {
    result.energy.as_ref().expect("every device tells")
}

fn assert_joules(found: f64, expected: f64, what: &str) {
    assert!((found - expected).abs() < 1e-9 * expected.max(1.0), "{what}: {found} J, expected {expected}");
}

#[test]
fn an_idle_drive_takes_idle_power_for_the_time() {
    let result = run_spec(&seldom(powered(POWER).into(), 1e-6, 100 * S));
    assert_eq!(result.count(), 0);
    let expected = Energy {
        joules: 1000.0,
        spindle_joules: 600.0,
        seek_joules: 0.0,
        electronics_joules: 400.0,
        case_celsius: Some(45.0),
    };
    assert_eq!(energy(&result), &expected);
    assert_eq!((result.mean_watts(), result.joules_per_request(), result.io_per_watt()), (Some(10.0), None, Some(0.0)));
}

#[test]
fn energy_is_the_sum_of_the_states() {
    let result = run_closed(&powered(POWER), line(8192, 70.0, 60.0), 1, 2_000);
    let seconds = |ns: u64| ns as f64 / 1e9;
    let (time_s, found) = (seconds(result.duration_ns), energy(&result));
    assert_joules(found.spindle_joules, 6.0 * time_s, "spindle");
    assert_joules(found.seek_joules, 5.0 * seconds(counter(&result, "seek_ns")), "arm");
    let transfer_s = seconds(counter(&result, "transfer_ns"));
    assert_joules(found.electronics_joules, 4.0 * time_s + 3.0 * transfer_s, "electronics");
    assert_joules(found.joules, found.spindle_joules + found.seek_joules + found.electronics_joules, "all");
    assert_joules(result.mean_watts().unwrap() * time_s, found.joules, "mean power");
    assert_joules(result.joules_per_request().unwrap() * 2_000.0, found.joules, "of all requests");
    assert_joules(result.io_per_watt().unwrap() * found.joules, 2_000.0, "requests");
    let warmer_by = found.case_celsius.unwrap() - 25.0;
    assert_close(warmer_by, 2.0 * result.mean_watts().unwrap(), 1e-6, "airflow");
}

#[test]
fn more_seeks_take_more() {
    let at = |random_percent| {
        let arrivals = Arrivals::Open { rate_per_s: 50.0, process: ArrivalProcess::Fixed };
        let result = run_spec(&spec(&powered(POWER), workload(line(512, 100.0, random_percent), arrivals, 2_000)));
        let energy = energy(&result);
        (energy.seek_joules, result.mean_watts().unwrap())
    };
    let shares = [0.0, 30.0, 60.0, 100.0].map(at);
    assert!(shares.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1), "{shares:?}");
}

/// A stream that read-ahead serves keeps data under the heads, though the arm has no job.
#[test]
fn read_ahead_is_transfer() {
    let mut drive = powered(POWER);
    drive.buffer.segments = 4;
    drive.buffer.segment_sectors = 4096;
    drive.buffer.read_ahead_max_sectors = 4096;
    drive.buffer.read_ahead = headstack_sim::drive::description::ReadAhead::Segment;
    drive.buffer.read_ahead_on_hit = true;
    let result = run_closed(&drive, line(4096, 100.0, 0.0), 1, 5_000);
    let read_s = result.bytes() as f64 / 512.0 * SECTOR_NS as f64 / 1e9;
    let time_s = result.duration_ns as f64 / 1e9;
    let found = energy(&result).electronics_joules - 4.0 * time_s;
    assert!((0.999..1.05).contains(&(found / (3.0 * read_s))), "{found} J for {read_s} s of reading in {time_s} s");
}

#[test]
fn members_add_up_and_the_warmest_counts() {
    for members in [2, 5] {
        let mut array = arrays::of(Level::Raid0, members);
        array.devices = vec![DeviceDescription::Disk(powered(POWER))];
        let result = run_spec(&seldom(SystemDescription::Array(array.clone()), 1e-6, 10 * S));
        assert_joules(energy(&result).joules, 100.0 * f64::from(members), "idle members");
        assert_eq!(energy(&result).case_celsius, Some(45.0));
        array.devices.push(DeviceDescription::Disk(powered(Power { spindle_w: 8.0, ..POWER })));
        array.members[1].device = 1;
        let result = run_spec(&seldom(SystemDescription::Array(array.clone()), 1e-6, 10 * S));
        assert_joules(energy(&result).joules, 100.0 * f64::from(members) + 20.0, "one that takes more");
        assert_eq!(energy(&result).case_celsius, Some(49.0));
        array.devices[1] = DeviceDescription::Disk(bare_drive());
        let result = run_spec(&seldom(SystemDescription::Array(array), 1e-6, 10 * S));
        assert_eq!(result.energy, None, "one does not tell");
    }
}

#[test]
fn power_changes_nothing_but_the_energy() {
    let of = |power| {
        let drive = DriveDescription { power, ..bare_drive() };
        run_closed(&drive, line(4096, 50.0, 80.0), 1, 3_000)
    };
    let (told, again, untold) = (of(Some(POWER)), of(Some(POWER)), of(None));
    assert_eq!(told.to_json().unwrap(), again.to_json().unwrap());
    assert_eq!(untold.energy, None);
    let never = of(Some(Power { idle_timeout_ns: Some(S), ..POWER }));
    for mut result in [told, never] {
        result.energy = None;
        assert_eq!(outcome(&result), outcome(&untold));
    }
}

#[test]
fn a_command_to_a_drive_at_rest_waits_for_the_spindle() {
    let drive = |idle_timeout_ns| Drive::new(&powered(Power { idle_timeout_ns, ..POWER }), 0).unwrap();
    // Angle and arm as if nothing had happened: the waits are multiples of the turn of 6 ms.
    let awake_ns = serve(&mut drive(None), 60 * S, &read(5_000, 1));
    // In the middle of standby; just stopping, which takes a second from 30 s on; before the timeout.
    for (at_ns, waits_ns, standby_ns) in [(60 * S, 8 * S, 30 * S), (30 * S + 1, 9 * S - 1, S), (30 * S, 0, 0)] {
        let mut drive = drive(Some(30 * S));
        let turns_ns = serve(&mut drive, at_ns, &read(5_000, 1)) - waits_ns;
        assert!(turns_ns.abs_diff(awake_ns) <= TURN_NS, "{turns_ns} ns at {at_ns}, awake {awake_ns}");
        assert_eq!((drive.counters().standby_ns, drive.counters().spin_ups), (standby_ns, u64::from(waits_ns > 0)));
    }
    // Flushes and trims need no media; another read finds the spindle turning.
    let mut drive = drive(Some(30 * S));
    assert_eq!(serve(&mut drive, 60 * S, &flush()), 0);
    serve(&mut drive, 60 * S, &read(5_000, 1));
    assert!(serve(&mut drive, 80 * S, &read(5_000, 1)) < 2 * TURN_NS + 10 * MS);
}

#[test]
fn standby_saves_when_it_is_long_and_costs_when_it_is_short() {
    let mean_watts = |idle_timeout_ns, every_s: f64| {
        let drive = powered(Power { idle_timeout_ns, ..POWER });
        let result = run_spec(&seldom(drive.into(), 1.0 / every_s, 100_000 * S));
        (result.mean_watts().unwrap(), energy(&result).clone())
    };
    let always = mean_watts(None, 600.0).0;
    assert_close(always, 10.0, 0.1, "idle");
    // Of 600 s: 8 s starting (120 J), some ms of work, 10 s idle, 1 s stopping (12 J), the rest in standby.
    let (watts, parts) = mean_watts(Some(10 * S), 600.0);
    let turning_s = 10.0;
    let expected = (120.0 + 12.0 + 10.0 * turning_s + 2.0 * (600.0 - turning_s - 8.0 - 1.0)) / 600.0;
    assert_close(watts, expected, 0.1, "at rest most of the time");
    assert_joules(parts.joules, parts.spindle_joules + parts.seek_joules + parts.electronics_joules, "all");
    assert!(mean_watts(Some(10 * S), 20.0).0 > always, "starting costs more than a second of rest saves");
}

#[test]
fn an_idle_drive_stays_in_standby() {
    let drive = powered(Power { idle_timeout_ns: Some(10 * S), ..POWER });
    let result = run_spec(&seldom(drive.into(), 1e-6, 100 * S));
    // 10 s idle, 12 J to stop within a second, and 89 s in standby.
    assert_joules(energy(&result).joules, 100.0 + 12.0 + 178.0, "a single stop");
}

#[test]
fn impossible_power_is_refused() {
    let refused = |power: Power| Drive::new(&powered(power), 0).unwrap_err().key;
    assert_eq!(refused(Power { spindle_w: -1.0, ..POWER }), "power.spindle_w");
    assert_eq!(refused(Power { seek_w: f64::NAN, ..POWER }), "power.seek_w");
    assert_eq!(refused(Power { ambient_celsius: 1e3, ..POWER }), "power.ambient_celsius");
    assert_eq!(refused(Power { idle_timeout_ns: Some(u64::MAX), ..POWER }), "power.idle_timeout");
}
