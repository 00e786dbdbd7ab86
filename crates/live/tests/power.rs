//! Power losses: a client stamps sectors over NBD, power fails at a random time, and afterwards each sector must have
//! one of the stamps that the rule allows.

use std::path::Path;

use crate::common::*;
use crate::stamping::{Bench, Tally};
use headstack_live::Contents;
use headstack_live::power::{Change, UndoLog};
use headstack_sim::Model;
use headstack_sim::Outcome;
use headstack_sim::SystemDescription;
use headstack_sim::array::description::CacheWrites;
use headstack_sim::device::DeviceDescription;
use headstack_sim::drive::description::WriteCache;
use headstack_sim::faults::Fault;
use headstack_sim::power_cut::{Changed, Tear};
use headstack_sim::timeline::Timeline;
use headstack_workload::Request;

/// Number of power losses for each kind of system.
const CUTS: u32 = 40;

fn system(name: &str) -> SystemDescription {
    let Model::System(system) = model(name) else { panic!("a system") };
    system
}

fn with_write_cache(mut system: SystemDescription, kind: WriteCache) -> SystemDescription {
    let devices = system.device_kinds_mut();
    for device in devices {
        if let DeviceDescription::Disk(disk) = device {
            disk.buffer.write_cache = kind;
        }
    }
    system
}

pub fn scsi_without_cache() -> SystemDescription {
    with_write_cache(system("cheetah-x15-36lp"), WriteCache::Off)
}

pub fn ide() -> SystemDescription {
    with_write_cache(system("wd1200bb"), WriteCache::On)
}

pub fn unprotected_ssd() -> SystemDescription {
    let mut system = system("dc-s3700-400gb");
    let SystemDescription::Drive(DeviceDescription::Ssd(ssd)) = &mut system else { panic!("a solid-state drive") };
    ssd.buffer.power_loss_protected = false;
    system
}

/// Returns a controller that acknowledges writes from its battery-backed cache, over drives without a cache.
fn array_with_battery() -> SystemDescription {
    let system = with_write_cache(system("nearline-12-raid6"), WriteCache::Off);
    let SystemDescription::Array(array) = &system else { panic!("an array") };
    let cache = array.controller.cache.as_ref().expect("the controller has a cache");
    assert!(cache.writes == CacheWrites::Back && cache.battery);
    system
}

/// Returns an array whose members acknowledge writes from volatile caches, which mirrors and parity do not protect.
pub fn array_without_battery() -> SystemDescription {
    with_write_cache(system("md-raid5-8x2tb"), WriteCache::On)
}

fn cuts(name: &str, system: SystemDescription, speed: f64, cuts: u32) -> Tally {
    seeded_cuts(name, system, speed, cuts, 7)
}

fn seeded_cuts(name: &str, system: SystemDescription, speed: f64, cuts: u32, seed: u64) -> Tally {
    let tally = Bench::new(name, system, speed, seed).cuts(cuts);
    println!("{name}: {tally:?}");
    assert_eq!(tally.violations, Vec::<String>::new());
    assert_eq!(tally.cuts, cuts);
    tally
}

#[test]
fn a_drive_without_a_write_cache_loses_nothing_that_it_acknowledged() {
    // A write is torn only while its sectors pass below the head, and power losses happen at wall-clock times. At ten
    // times the drive's speed, which even a busy machine can follow, most losses hit a write; at fifty times, 320
    // losses once tore no write.
    let (mut absent, mut whole, mut torn) = (0, 0, 0);
    for seed in 7..15 {
        let tally = seeded_cuts("scsi", scsi_without_cache(), 10.0, CUTS / 4, seed);
        assert_eq!(tally.lost_sectors, 0);
        (absent, whole, torn) = (absent + tally.absent, whole + tally.whole, torn + tally.torn);
        if absent > 0 && whole > 0 && torn > 0 {
            return;
        }
    }
    panic!("of {} cuts, {absent} writes were absent, {whole} whole and {torn} torn", 8 * (CUTS / 4));
}

#[test]
fn a_write_cache_loses_unflushed_writes() {
    assert!(cuts("ide", ide(), 30.0, CUTS).lost_sectors > 0);
}

#[test]
fn a_solid_state_drive_without_protection_loses_its_buffer() {
    assert!(cuts("ssd", unprotected_ssd(), 1.0, CUTS).lost_sectors > 0);
}

#[test]
fn an_array_with_a_battery_loses_nothing_that_it_acknowledged() {
    assert_eq!(cuts("battery", array_with_battery(), 50.0, CUTS).lost_sectors, 0);
}

#[test]
fn an_array_without_a_battery_loses_undestaged_writes() {
    assert!(cuts("members", array_without_battery(), 50.0, CUTS).lost_sectors > 0);
}

#[test]
fn a_battery_that_fails_before_the_power_does_exposes_the_cache() {
    let mut bench = Bench::new("exposed", array_with_battery(), 20.0, 7);
    bench.before_cut = Some(Fault::BatteryFails);
    bench.after_cut = Some(Fault::BatteryReturns);
    let tally = bench.cuts(10);
    assert_eq!(tally.violations, Vec::<String>::new());
    assert!(tally.lost_sectors > 0, "{tally:?}");
}

#[test]
fn a_cache_that_ignores_flushes_is_detected() {
    let bench = Bench::new("lies", ide(), 30.0, 7);
    bench.inject(Fault::LyingCache, None);
    let tally = bench.cuts(CUTS);
    assert!(!tally.violations.is_empty(), "nothing that was flushed is missing: {tally:?}");
    assert!(tally.violations[0].contains("durable"), "{}", tally.violations[0]);
}

/// Runs hundreds of power losses with several seeds. Each kind of system is a separate test, since the time limit is
/// two minutes per test.
fn hundreds_of_cuts(what: &str, system: fn() -> SystemDescription, speed: f64) {
    let mut cuts = 0;
    for seed in 0..4 {
        let tally = Bench::new(&format!("many-{what}"), system(), speed, seed).cuts(2 * CUTS);
        assert_eq!(tally.violations, Vec::<String>::new(), "{what}, seed {seed}");
        cuts += tally.cuts;
    }
    let row = serde_json::json!({
        "name": format!("power cuts of {what} that lost what was flushed"), "value": 0, "unit": format!("of {cuts} cuts"),
        "bar": 0, "bar_is": "at most", "bar_met": true
    });
    println!("row: {row}");
}

#[test]
#[ignore = "a minute"]
fn hundreds_of_cuts_of_a_drive_without_a_write_cache() {
    hundreds_of_cuts("a drive without a write cache", scsi_without_cache, 100.0);
}

#[test]
#[ignore = "a minute"]
fn hundreds_of_cuts_of_a_drive_with_a_write_cache() {
    hundreds_of_cuts("a drive with a write cache", ide, 30.0);
}

#[test]
#[ignore = "a minute"]
fn hundreds_of_cuts_of_a_solid_state_drive() {
    hundreds_of_cuts("a solid-state drive", unprotected_ssd, 1.0);
}

#[test]
#[ignore = "a minute"]
fn hundreds_of_cuts_of_an_array_with_a_battery() {
    hundreds_of_cuts("an array with a battery", array_with_battery, 50.0);
}

#[test]
#[ignore = "a minute"]
fn hundreds_of_cuts_of_an_array_without_one() {
    hundreds_of_cuts("an array without a battery", array_without_battery, 50.0);
}

/// Runs a session in virtual time with contents, in which every byte of a 64 KiB write is the write's `number`.
fn session(system: SystemDescription, seed: u64, tear: Tear) -> (Vec<u8>, serde_json::Value) {
    const AREA_BYTES: u64 = 4 << 20;
    let model = Model::System(system);
    let mut timeline = Timeline::new(&model, 1, None).unwrap();
    let text = format!("seed = {seed}\n[[fault]]\nat = \"80ms\"\nfor = \"1s\"\nwhat = \"power-cut\"\ntear = {}\n", {
        serde_json::to_string(&tear).unwrap()
    });
    timeline.follow(&schedule(&model, &text)).unwrap();
    let contents = Contents::in_memory(AREA_BYTES).unwrap();
    let mut log = UndoLog::default();
    let (mut finished, mut verdicts) = (Vec::new(), Vec::new());
    for number in 0..60u64 {
        let at_ns = 1_000_000 + number * 1_500_000;
        let request = Request { length_bytes: 65536, ..write(number * 7 % 60 * 65536) };
        let change = log.apply(&contents, request.span(), Change::Data(&[number as u8 + 1; 65536])).unwrap();
        timeline.arrive(at_ns, request, Some(Changed { number: change, forced: false }), number);
        if number % 16 == 15 {
            timeline.arrive(at_ns, flush(), None, number);
        }
    }
    timeline.advance(2_000_000_000, &mut finished);
    timeline.take_verdicts(&mut verdicts);
    timeline.note_lost(&log.settle(&contents, &verdicts).unwrap());
    assert!(finished.iter().any(|finished| finished.outcome == Outcome::Vanished));
    assert!(timeline.has_power() && timeline.power_cuts() == 1);
    let mut data = vec![0; AREA_BYTES as usize];
    contents.read(0, &mut data).unwrap();
    let loss = serde_json::to_value(timeline.loss_of(0).expect("power was cut")).unwrap();
    (data, loss)
}

#[test]
fn the_same_session_and_seed_leave_the_same_contents() {
    let first = session(ide(), 5, Tear::Sector);
    assert!(first == session(ide(), 5, Tear::Sector), "equal seeds leave equal contents and losses");
    assert!(first != session(ide(), 6, Tear::Sector), "another seed tears other writes");
    assert!(first.1["lost_bytes"].as_u64().unwrap() > 0, "{}", first.1);
}

#[test]
fn torn_writes_stop_at_allowed_boundaries() {
    for seed in 0..20 {
        for (tear, atom) in [(Tear::Sector, 512), (Tear::Track, 512), (Tear::None, 1)] {
            let (_, loss) = session(ide(), seed, tear);
            let torn = loss["torn"].as_array().unwrap();
            assert!(torn.iter().all(|torn| torn["torn_at_bytes"].as_u64().unwrap() % atom == 0));
            assert!(tear != Tear::None || torn.is_empty());
        }
    }
}

#[test]
fn an_impossible_power_cut_is_refused_with_a_reason() {
    let model = Model::System(ide());
    for (keys, wanted) in [
        ("atom = \"100B\"", "must be a power of two from 512 B to 64 KiB"),
        ("tear = \"halves\"", "tear"),
        ("percent = 5", "percent"),
    ] {
        let text = format!("[[fault]]\nat = \"1s\"\nwhat = \"power-cut\"\n{keys}\n");
        let error = headstack_catalogue::parse_faults("faults.toml", &text, Path::new(""), &model).unwrap_err();
        assert!(error.to_string().contains(wanted), "{error}");
    }
    let mut timeline: Timeline<()> = Timeline::new(&model, 1, None).unwrap();
    let said = |result: Result<_, headstack_sim::SimError>| result.map(|_: (u32, u64)| ()).unwrap_err().to_string();
    assert!(said(timeline.inject(1, Fault::PowerOn, None)).contains("the power is already on"));
    let cut = Fault::PowerCut { tear: Tear::Sector, atom: None };
    timeline.inject(2, cut.clone(), None).unwrap();
    assert!(said(timeline.inject(3, cut, None)).contains("the power is already off"));
}
