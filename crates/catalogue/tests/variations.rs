//! What-if tests: varying a key of a drive moves the result in its physical direction or is rejected.

use headstack_catalogue::{Blueprint, Described, Drafter, ResolvedDevice, drives, load_device};
use headstack_sim::device::DeviceDescription;
use headstack_sim::{SystemDescription, run};
use headstack_workload::{Arrivals, Document, Think};
use toml::Table;

use crate::common::random_4k;

/// Effect of a larger value of a key on the rate under a load.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Effect {
    /// The rate never falls.
    Raises(Load),
    /// The rate never rises.
    Lowers(Load),
    /// Physics implies no direction; the text states why.
    Open(&'static str),
}

use Effect::{Lowers, Open, Raises};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Load {
    /// Random 4 KiB reads, one at a time.
    LoneReads,
    /// Random 4 KiB reads at the maximum queue depth of the drive.
    DeepReads,
    LoneWrites,
    DeepWrites,
    /// Sequential reads: 128 KiB from an SSD, 32 KiB from a disk. The latter is smaller than a segment of the disk's
    /// buffer, so that read-ahead does not stop and lose a turn.
    ReadsInOrder,
    WritesInOrder,
}

use Load::{DeepReads, DeepWrites, LoneReads, LoneWrites, ReadsInOrder, WritesInOrder};

/// Effects of the keys of disks. A key includes the keys below it.
const DISK: &[(&str, Effect)] = &[
    ("actuators", Raises(DeepReads)),
    ("buffer.dirty_extents_max", Raises(DeepWrites)),
    ("buffer.dirty_sectors_max", Raises(DeepWrites)),
    ("buffer.keep_passing_sectors", Open("a choice")),
    ("buffer.read_ahead", Open("a choice")),
    ("buffer.read_hits", Open("a choice")),
    ("buffer.read_watermark", Open("a share of the bus against a wait")),
    ("buffer.segment", Open("segments share the buffer")),
    ("buffer.separate_write_segment", Open("a choice")),
    ("buffer.size", Raises(ReadsInOrder)),
    ("buffer.write_cache", Open("a choice")),
    ("buffer.write_watermark", Open("a share of the bus against a wait")),
    ("capacity", Open("the same figures over more or larger sectors")),
    ("flash_cache.block", Open("more of the neighbourhood against fewer places")),
    ("flash_cache.fill_rate", Raises(DeepReads)),
    ("flash_cache", Open("what is in it depends on the requests before")),
    ("geometry", Open("the same capacity and rates in another layout")),
    ("interface.host", Open("a choice")),
    ("family", Open("a choice")),
    ("interface.kind", Open("a choice")),
    ("interface.rate", Raises(ReadsInOrder)),
    ("media.raw_outer_rate", Raises(ReadsInOrder)),
    ("media.sustained_outer_rate", Raises(ReadsInOrder)),
    ("media", Open("decides where blocks are: cylinders, and zones from the outer rim inwards")),
    ("media_cache", Open("writes go on until it is cleaned")),
    ("overheads.command", Lowers(LoneReads)),
    ("overheads.read_hit", Lowers(ReadsInOrder)),
    ("overheads.read_miss", Lowers(LoneReads)),
    ("overheads.write", Lowers(LoneWrites)),
    ("queue.age_weight", Lowers(DeepReads)),
    ("queue.committed", Lowers(DeepReads)),
    ("queue.depth", Raises(DeepReads)),
    ("queue.policy", Open("a choice")),
    ("queue.reordering_strength", Raises(DeepReads)),
    ("queue.rotation_margin", Lowers(LoneReads)),
    ("seek.constant", Lowers(LoneReads)),
    ("seek.head_switch", Lowers(ReadsInOrder)),
    ("seek.points", Open("a list")),
    ("seek.read_average", Lowers(LoneReads)),
    ("seek.read_full_stroke", Open("another shape with the same average")),
    ("seek.read_settle", Lowers(LoneReads)),
    ("seek.read_track_to_track", Open("another shape with the same average")),
    ("seek.two_piece.boundary_cylinders", Open("another shape")),
    ("seek.two_piece.first", Open("a list")),
    ("seek.two_piece", Lowers(LoneReads)),
    ("seek.write_average", Lowers(LoneWrites)),
    ("seek.write_full_stroke", Open("carried, not simulated")),
    ("seek.write_settle", Lowers(LoneWrites)),
    ("seek.write_track_to_track", Lowers(LoneWrites)),
    ("shingles.band", Open("larger bands are rewritten less often, and take longer")),
    ("slow", Open("a choice")),
    ("spindle.read_on_arrival", Open("a choice")),
    ("spindle.speed", Raises(LoneReads)),
    ("spindle.write_on_arrival", Open("a choice")),
];

/// Effects of the keys of SSDs.
const SSD: &[(&str, Effect)] = &[
    ("buffer.flush", Open("only with flushes")),
    ("buffer.flushes_per_map_update", Open("only with flushes")),
    ("buffer.map_update", Open("only with flushes")),
    ("buffer.power_loss_protected", Open("a choice")),
    ("buffer.reports_volatile_cache", Open("only with flushes")),
    ("buffer.size", Raises(DeepWrites)),
    ("capacity", Open("the same figures over more or larger units")),
    ("controller.command", Lowers(LoneReads)),
    ("controller.command_interval", Lowers(DeepReads)),
    ("controller.map_cache", Raises(DeepReads)),
    ("controller.read_ns_per_byte", Lowers(ReadsInOrder)),
    ("controller.read_rate", Raises(ReadsInOrder)),
    ("controller.write_command", Lowers(LoneWrites)),
    ("controller.write_interval", Lowers(DeepWrites)),
    ("controller.write_ns_per_byte", Lowers(WritesInOrder)),
    ("controller.write_rate", Raises(WritesInOrder)),
    ("flash.blocks_per_plane", Open("room that a fresh drive does not need")),
    ("flash.cells", Open("a choice")),
    ("flash.channel_ns_per_byte", Lowers(ReadsInOrder)),
    ("flash.channel_rate", Raises(ReadsInOrder)),
    ("flash.channels", Raises(DeepReads)),
    ("flash.dies_per_channel", Raises(DeepReads)),
    ("flash.erase", Lowers(DeepWrites)),
    ("flash.free_blocks_min", Open("room that a fresh drive does not need")),
    ("flash.generation", Open("a choice")),
    ("flash.independent_planes", Open("a choice")),
    ("flash.over_provisioning", Open("room that a fresh drive does not need")),
    ("flash.page", Open("more at once against longer transfers")),
    ("flash.pages_per_program", Open("the same rate in longer programs")),
    ("flash.pages_per_block", Open("the same flash in other blocks")),
    ("flash.planes_per_die", Open("more at once against longer transfers")),
    ("flash.program", Lowers(DeepWrites)),
    ("flash.raw", Open("room that a fresh drive does not need")),
    ("flash.read", Lowers(DeepReads)),
    ("flash.reads_ahead_max", Open("reads against writes")),
    ("flash.resume", Open("only where reads meet writes")),
    ("flash.suspend", Open("only where reads meet writes")),
    ("flash.suspend_spread", Open("only where reads meet writes")),
    ("flash.suspensions_max", Open("only where reads meet writes")),
    ("flash.writes_urgent_when_full", Open("only where reads meet writes")),
    ("interface.generation", Raises(ReadsInOrder)),
    ("interface.kind", Open("a choice")),
    ("interface.lanes", Raises(ReadsInOrder)),
    ("interface.queue_depth", Raises(DeepReads)),
    ("interface.rate", Raises(ReadsInOrder)),
    ("state", Open("a choice")),
    ("slc_cache.bits_per_cell", Open("decides the room that the cache takes")),
    ("slc_cache.folds_when_idle", Open("a choice")),
    ("slc_cache.idle", Open("a load that never rests")),
    ("slc_cache.program", Lowers(WritesInOrder)),
    ("slc_cache.read", Lowers(DeepReads)),
    ("slc_cache", Raises(DeepWrites)),
];

/// Keys of disks and SSDs that affect no rate.
const NO_RATE: [&str; 11] =
    ["endurance", "model", "name", "notes", "power", "price", "reliability", "stated", "twin", "vendor", "year"];

/// Keys whose variation changes the rate of every drive, unless the variation is rejected.
const STRICT: [&str; 4] = ["seek.read_average", "spindle.speed", "controller.command", "overheads.command"];

const FACTORS: [f64; 3] = [0.5, 1.0, 2.0];

/// Change in the wrong direction that is still noise, because other values lead to other rotational phases.
const NOISE: f64 = 0.03;

/// `make test` runs one in this many drives.
const SAMPLE_STEP: usize = 12;

const PARTS: usize = 2;

fn effect_of(key: &str, table: &[(&str, Effect)]) -> Effect {
    let longest = table.iter().filter(|(prefix, _)| key.starts_with(prefix)).max_by_key(|(prefix, _)| prefix.len());
    longest.unwrap_or_else(|| panic!("{key} is in no table: say in which direction it moves a rate")).1
}

fn keys(table: &Table, parent: &str, found: &mut Vec<(String, String)>) {
    for (key, value) in table.iter().filter(|(key, _)| !parent.is_empty() || *key != "sources") {
        let path = if parent.is_empty() { key.clone() } else { format!("{parent}.{key}") };
        match value {
            toml::Value::Table(inner) => keys(inner, &path, found),
            toml::Value::String(text) => found.push((path, text.clone())),
            other => found.push((path, other.to_string())),
        }
    }
}

/// Returns all keys of a drive with their values, both stated and derived.
fn values_of(id: &str, text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    keys(&text.parse().unwrap(), "", &mut found);
    let derived = match load_device(id).unwrap() {
        ResolvedDevice::Disk(disk) => disk.derived,
        ResolvedDevice::Ssd(ssd) => ssd.derived,
        ResolvedDevice::Volume(_) => panic!("{id} is a volume"),
    };
    found.extend(derived.into_iter().map(|derived| (derived.key, derived.value)));
    found.retain(|(key, _)| {
        let top = key.split('.').next().unwrap();
        !NO_RATE.contains(&top) && !key.contains(',')
    });
    found.sort();
    found.dedup_by(|later, first| later.0 == first.0);
    found
}

/// Multiplies a quantity by a factor; `None` if the text is not a quantity.
fn scaled(text: &str, factor: f64) -> Option<String> {
    let digits = text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-'))).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let value = number.parse::<f64>().ok()? * factor;
    let is_count = unit.is_empty() && !number.contains('.');
    Some(if is_count { format!("{}", value.round().max(1.0)) } else { format!("{value}{unit}") })
}

fn rate(id: &str, system: &SystemDescription, load: Load, is_ssd: bool) -> f64 {
    let (deep, requests) = if is_ssd { (256, 3000) } else { (16, 800) };
    let (depth, reads_percent) = match load {
        LoneReads | ReadsInOrder => (1, 100.0),
        DeepReads => (deep, 100.0),
        LoneWrites | WritesInOrder => (1, 0.0),
        DeepWrites => (deep, 0.0),
    };
    let mut spec = random_4k(id, system.clone(), depth, reads_percent, requests);
    let headstack_sim::Demand::Workload(workload) = &mut spec.demand else { unreachable!("random_4k makes workloads") };
    workload.warm_up.requests = 100;
    if matches!(load, ReadsInOrder | WritesInOrder) {
        let line = &mut workload.specification.lines[0];
        let size_bytes = if is_ssd { 128 << 10 } else { 32 << 10 };
        (line.size_bytes, line.align_bytes, line.random_percent) = (size_bytes, Some(size_bytes), 0.0);
        if is_ssd {
            workload.arrivals = Arrivals::Closed { queue_depth: 32, think: Think::None };
        }
    }
    run(&spec, &|_| true).unwrap_or_else(|error| panic!("{id}: {load:?}: {error}")).throughput_per_s()
}

/// Whether the outermost zone of a disk delivers data faster than the host takes it in requests of 32 KiB. The buffer
/// is then repeatedly full and the head waits for a turn each time, so a higher media rate may be slower.
fn outruns_its_host(system: &SystemDescription) -> bool {
    let SystemDescription::Drive(DeviceDescription::Disk(disk)) = system else { return false };
    let turn_ns = 60e9 / disk.mechanics.rpm;
    let track_bytes = f64::from(disk.geometry.zones[0].sectors_per_track * disk.geometry.logical_block_bytes);
    let request_bytes = f64::from(32 << 10);
    let own_ns = disk.overheads.read_hit_ns.after_read + disk.overheads.read_completion_ns;
    let host_ns_per_byte = disk.interface.read_ns_per_byte + own_ns as f64 / request_bytes;
    turn_ns / track_bytes < host_ns_per_byte
}

/// Returns the problems in the results of a drive, one per line.
fn problems_of(id: &str, text: &str, is_ssd: bool) -> Vec<String> {
    let drafter = Drafter::new(Blueprint::for_system(id, &[]).unwrap()).unwrap();
    let table = if is_ssd { SSD } else { DISK };
    let mut problems = Vec::new();
    for (key, value) in values_of(id, text) {
        let (load, sign) = match effect_of(&key, table) {
            Raises(load) => (load, 1.0),
            Lowers(load) => (load, -1.0),
            Open(_) => continue,
        };
        let mut rates: Vec<(String, f64)> = Vec::new();
        for factor in FACTORS {
            let Some(varied) = scaled(&value, factor) else { continue };
            match drafter.with(&[(key.clone(), varied.clone())]) {
                Ok(Described::System(system)) if key.starts_with("media.") && outruns_its_host(&system) => {}
                Ok(Described::System(system)) => rates.push((varied, rate(id, &system, load, is_ssd))),
                Ok(Described::Demand(_)) => unreachable!("a drive is described"),
                Err(_) => {}
            }
        }
        let told = || rates.iter().map(|(value, rate)| format!("{value}: {rate:.1}/s")).collect::<Vec<_>>().join(", ");
        let moves = |by: &dyn Fn(f64) -> bool| rates.windows(2).all(|pair| by(sign * (pair[1].1 / pair[0].1 - 1.0)));
        if !moves(&|change| change > -NOISE) {
            problems.push(format!("{id}: {key} moves {load:?} the wrong way: {}", told()));
        }
        if STRICT.contains(&key.as_str()) && !moves(&|change| change > 0.0) {
            problems.push(format!("{id}: {key} does not move {load:?}: {}", told()));
        }
    }
    problems
}

fn move_answers_as_physics_does(is_ssd: bool, part: usize) {
    let wanted: Vec<_> = drives().iter().filter(|entry| entry.is_ssd() == is_ssd).collect();
    let sampled = headstack_needs::sampled(0..wanted.len(), SAMPLE_STEP);
    let of_part = wanted.iter().enumerate().filter(|(place, _)| place % PARTS == part && sampled.contains(place));
    let problems: Vec<String> = of_part.flat_map(|(_, entry)| problems_of(entry.id, entry.text, is_ssd)).collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn varied_keys_of_disks_move_the_answer_as_physics_does_or_are_refused() {
    move_answers_as_physics_does(false, 0);
}

#[test]
fn varied_keys_of_disks_move_the_answer_as_physics_does_or_are_refused_2() {
    move_answers_as_physics_does(false, 1);
}

#[test]
fn varied_keys_of_ssds_move_the_answer_as_physics_does_or_are_refused() {
    move_answers_as_physics_does(true, 0);
}

#[test]
fn varied_keys_of_ssds_move_the_answer_as_physics_does_or_are_refused_2() {
    move_answers_as_physics_does(true, 1);
}

#[test]
fn every_key_of_the_catalogue_has_a_direction_or_a_reason_for_none() {
    for entry in drives() {
        let table = if entry.is_ssd() { SSD } else { DISK };
        for (key, _) in values_of(entry.id, entry.text) {
            effect_of(&key, table);
        }
    }
}

/// Returns the IOPS of a drive with one key varied.
fn rates(id: &str, key: &str, values: &[&str], load: Load) -> Vec<f64> {
    let drafter = Drafter::new(Blueprint::for_system(id, &[]).unwrap()).unwrap();
    let is_ssd = drives().iter().find(|entry| entry.id == id).unwrap().is_ssd();
    let rate_of = |value: &&str| match drafter.with(&[(key.to_owned(), (*value).to_owned())]).unwrap() {
        Described::System(system) => rate(id, &system, load, is_ssd),
        Described::Demand(_) => unreachable!("a drive is described"),
    };
    values.iter().map(rate_of).collect()
}

#[test]
fn fewer_channels_than_the_sheet_s_serve_fewer_reads() {
    let found = rates("990-pro-2tb", "flash.channels", &["2", "4", "8"], DeepReads);
    // From 4 channels on, the controller's interval between commands is the limit.
    assert!(found[0] < 0.7 * found[1] && found[1] < found[2], "{found:?}");
}

#[test]
fn longer_seeks_than_the_sheet_s_serve_fewer_reads() {
    let found = rates("exos-x16-16tb", "seek.read_average", &["4ms", "7ms", "8ms"], DeepReads);
    assert!(found[0] > 1.1 * found[1] && found[1] > 1.02 * found[2], "{found:?}");
}

#[test]
fn a_link_faster_than_its_generation_s_is_a_little_faster() {
    let with_rate = |rate: &str| {
        let text = format!(
            "name = \"Test\"\n[capacity]\nsize = \"100GB\"\n[flash]\ncells = \"tlc\"\n[interface]\nkind = \"nvme\"\n\
             generation = 4\nrate = \"{rate}\"\n"
        );
        headstack_catalogue::ssd::resolve(&Document::parse("test.toml", &text).unwrap())
    };
    assert!(with_rate("7.45GB/s").unwrap().description.interface.read_ns_per_byte < 0.135);
    for rate in ["8GB/s", "3GB/s"] {
        let error = with_rate(rate).unwrap_err().to_string();
        assert!(error.starts_with("test.toml:9: interface.rate: ") && error.contains("; must be "), "{error}");
    }
}
