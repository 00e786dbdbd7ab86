//! The SSDs of the catalogue are complete, have sources, and are close to the figures of their data sheets.

use std::collections::BTreeMap;

use headstack_catalogue::ssd::description_to_toml;
use headstack_catalogue::{Changes, ResolvedDevice, ResolvedSsd, drives, load_device, load_drive, load_system, ssd};
use headstack_sim::SystemDescription;
use headstack_sim::device::DeviceDescription;
use headstack_sim::ssd::description::FlashState;
use headstack_workload::Document;

use crate::common::ssds::{Figure, What};
use crate::real_ssds::key;

fn each(mut test: impl FnMut(&str, &str, ResolvedSsd)) {
    let ssds: Vec<_> = drives().iter().filter(|entry| entry.is_ssd()).collect();
    assert!(ssds.len() >= 4, "only {} solid-state drives", ssds.len());
    for entry in ssds {
        match load_device(entry.id).unwrap_or_else(|error| panic!("{error}")) {
            ResolvedDevice::Ssd(resolved) => test(entry.id, entry.text, *resolved),
            ResolvedDevice::Disk(_) | ResolvedDevice::Volume(_) => panic!("{} is no solid-state drive", entry.id),
        }
    }
}

/// Collects every key that holds a value, except `[sources]`.
fn keys(table: &toml::Table, parent: &str, found: &mut Vec<String>) {
    for (key, value) in table.iter().filter(|(key, _)| !parent.is_empty() || *key != "sources") {
        let path = if parent.is_empty() { key.clone() } else { format!("{parent}.{key}") };
        match value {
            toml::Value::Table(inner) => keys(inner, &path, found),
            _ => found.push(path),
        }
    }
}

#[test]
fn every_value_has_a_source() {
    each(|id, text, resolved| {
        let mut found = Vec::new();
        keys(&text.parse().unwrap(), "", &mut found);
        for key in &found {
            assert!(resolved.source(key).is_some(), "{id}: {key} has no source");
        }
        for key in resolved.file.sources.keys().filter(|key| *key != "default") {
            let named = |path: &String| path == key || path.starts_with(&format!("{key}."));
            assert!(found.iter().any(named), "{id}: the source of {key} names no key of the file");
        }
    });
}

#[test]
fn ssds_load_by_name_fresh_and_as_devices() {
    each(|id, _, resolved| {
        let description = resolved.description.clone();
        assert_eq!(description.state, FlashState::Filled, "{id}");
        assert_eq!(load_device(&description.name).unwrap(), ResolvedDevice::Ssd(Box::new(resolved)), "{id}: by name");
        let system = load_system(id, &Changes::default()).unwrap().description();
        let drive = SystemDescription::Drive(DeviceDescription::Ssd(description));
        assert_eq!(system, drive);
        let text = serde_json::to_string(&system).unwrap();
        assert!(text.starts_with("{\"drive\":{\"ssd\":{"), "{text}");
        let error = load_drive(id).unwrap_err().to_string();
        assert!(error.contains("solid-state drive; a disk"), "{error}");
    });
}

#[test]
fn complete_form_reads_back_exactly_and_derives_nothing() {
    each(|id, _, resolved| {
        let sources = BTreeMap::from([("default".to_owned(), "I resolved".to_owned())]);
        let text = description_to_toml(&resolved.description, &sources);
        let again =
            ssd::resolve(&Document::parse(id, &text).unwrap()).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!((again.description, again.derived), (resolved.description, vec![]), "{id}:\n{text}");
    });
}

#[test]
fn rated_writes_agree_with_drive_writes_per_day() {
    let mut rated = 0;
    each(|id, _, resolved| {
        let endurance = resolved.file.endurance;
        let (Some(tbw), Some(dwpd), Some(years)) = (endurance.tbw, endurance.dwpd, endurance.warranty_years) else {
            return;
        };
        let product = resolved.description.capacity.logical_bytes as f64 / 1e12 * dwpd * 365.0 * years;
        // Makers round both figures.
        assert!((tbw / product - 1.0).abs() < 0.03, "{id}: {tbw} TBW, {dwpd} DWPD over {years} years are {product}");
        rated += 1;
    });
    assert!(rated >= 30, "only {rated} drives state both");
}

/// Maximum relative difference between a simulated figure and the one in the drive's file.
const STATED_BOUND: f64 = 0.10;

/// `make test` runs one in this many drives of the catalogue.
const SAMPLE_STEP: usize = 4;

/// Checks each drive in one part of the catalogue, so that several parts run in parallel.
fn do_what_their_files_state(part: usize) {
    let (mut index, mut problems) = (0, Vec::new());
    let sampled = headstack_needs::sampled(0..1000, SAMPLE_STEP);
    each(|id, _, resolved| {
        index += 1;
        if index % PARTS != part || !sampled.contains(&(index / PARTS)) {
            return;
        }
        // Figures from general knowledge do not count, and their steady writes would take most of the time.
        let known = |figure: &Figure| {
            let source = resolved.source(&format!("stated.{}", key(figure.what)));
            source.is_some_and(|source| !source.starts_with(['C', 'D']))
        };
        for figure in Figure::of(&resolved.file).into_iter().filter(known) {
            let found = figure.measure(&resolved.description);
            let deviation = found / figure.stated - 1.0;
            let line = format!("{id:24} {figure} {found:12.1} ({:+.1} %)", 100.0 * deviation);
            println!("{line}");
            if deviation.abs() > STATED_BOUND {
                problems.push(line);
            }
        }
    });
    assert!(problems.is_empty(), "{problems:#?}");
}

const PARTS: usize = 4;

#[test]
fn simulated_ssds_match_their_stated_figures() {
    do_what_their_files_state(0);
}

#[test]
fn simulated_ssds_match_their_stated_figures_2() {
    do_what_their_files_state(1);
}

#[test]
fn simulated_ssds_match_their_stated_figures_3() {
    do_what_their_files_state(2);
}

#[test]
fn simulated_ssds_match_their_stated_figures_4() {
    do_what_their_files_state(3);
}

/// A valid file; tests replace or add lines.
const SHEET: &str = r#"name = "Test"
[capacity]
size = "100GB"
[flash]
cells = "tlc"
channels = 4
dies_per_channel = 2
over_provisioning = 0.1
[interface]
kind = "nvme"
generation = 3
"#;

/// Replaces `from` in the valid file and expects an error of one line that starts with `place` and contains `words`.
#[track_caller]
fn refused(from: &str, to: &str, place: &str, words: &str) {
    assert!(SHEET.contains(from), "{from}");
    let text = SHEET.replacen(from, to, 1);
    let error =
        Document::parse("bad.toml", &text).and_then(|document| ssd::resolve(&document)).unwrap_err().to_string();
    assert!(error.starts_with(place) && error.contains(words) && !error.contains('\n'), "{error}");
}

#[test]
fn bad_files_are_refused_in_one_line() {
    ssd::resolve(&Document::parse("good.toml", SHEET).unwrap()).unwrap();
    let spare = "over_provisioning = 0.1";
    refused("channels = 4", "channels = 0", "bad.toml:6: flash.channels: 0;", "1 to 256");
    refused("cells = \"tlc\"\n", "", "bad.toml:4: flash.cells: this key is missing", "slc, mlc, tlc, qlc");
    refused(spare, "over_provisioning = 0.0", "bad.toml:8: flash.over_provisioning: 0 is not allowed;", "above 0");
    refused(spare, "over_provisioning = -0.1", "bad.toml:8: flash.over_provisioning: -0.1 is not allowed;", "above 0");
    refused(spare, "over_provisioning = 0.00001", "bad.toml:3: capacity.size: ", "no over-provisioning");
    refused(spare, "raw = \"99GB\"", "bad.toml:8: flash.raw: 99GB is too small;", "above the capacity");
    refused(
        spare,
        "raw = \"110GB\"\nblocks_per_plane = 9",
        "bad.toml:9: flash.blocks_per_plane: ",
        "not allowed with flash.raw",
    );
    refused(spare, "blocks_per_plane = 0", "bad.toml:8: flash.blocks_per_plane: 0;", "1 to");
    refused(spare, "read = \"-1us\"", "bad.toml:8: flash.read: -", "0ms or more");
    refused(spare, "page = \"3KiB\"", "bad.toml:8: flash.page: 3072 bytes;", "multiple of the mapping unit");
    refused(spare, "channel_rate = \"0MB/s\"", "bad.toml:8: flash.channel_rate: 0", "above 0");
    refused(
        "[interface]",
        "[buffer]\nsize = \"4KiB\"\n[interface]",
        "bad.toml:10: buffer.size: 4096 bytes;",
        "rows of a page of each plane",
    );
    refused("size = \"100GB\"\n", "", "bad.toml:2: capacity.size: this key is missing", "960GB");
    refused("kind = \"nvme\"\n", "", "bad.toml:9: interface.kind: this key is missing", "nvme, sata, sas");
    refused("generation = 3\n", "", "bad.toml:9: interface.generation: this key is missing", "such as 3");
    refused("generation = 3", "generation = 9", "bad.toml:11: interface.generation: 9 is not allowed;", "1 to 5");
    refused(
        "generation = 3",
        "generation = 3\nlanes = 0",
        "bad.toml:12: interface.lanes: 0 is not allowed;",
        "1 to 16",
    );
    refused("kind = \"nvme\"", "kind = \"sata\"", "bad.toml:11: interface.generation: ", "only nvme");
    refused(
        "[interface]",
        "[power]\nidle_w = 1.0\n[interface]",
        "bad.toml:9: power.active_w: this key is missing",
        "set together",
    );
    refused(
        "[interface]",
        "[endurance]\ndwpd = 0.0\n[interface]",
        "bad.toml:10: endurance.dwpd: 0 is not allowed;",
        "above 0",
    );
    refused("[interface]", "[spindle]\nspeed = \"7200rpm\"\n[interface]", "bad.toml:9: spindle: unknown key", "");
}

/// Resolves a data sheet that omits every rate.
fn bare_sheet(vendor: &str, name: &str, size: &str) -> ResolvedSsd {
    let text = format!(
        "name = \"{name}\"\nvendor = \"{vendor}\"\nyear = 2024\n[capacity]\nsize = \"{size}\"\n[flash]\ncells = \"tlc\"\n\
         [buffer]\npower_loss_protected = true\n[interface]\nkind = \"nvme\"\ngeneration = 5\n"
    );
    ssd::resolve(&Document::parse("bare.toml", &text).unwrap()).unwrap()
}

#[track_caller]
fn rule<'a>(resolved: &'a ResolvedSsd, key: &str) -> &'a str {
    &resolved.derived.iter().find(|derived| derived.key == key).expect("it is derived").rule
}

#[test]
fn omitted_rates_are_estimated_from_another_capacity_of_the_family() {
    let family = bare_sheet("Solidigm", "Solidigm D7-PS1010 15.36 TB", "15360GB");
    let expected = "C stated for Solidigm D7-PS1010 7.68 TB";
    assert!(rule(&family, "controller.command_interval").starts_with(expected), "{:?}", family.derived);
    assert!(rule(&family, "flash.program").starts_with(expected), "{:?}", family.derived);
    // 3,100,000 random reads per second, as on the sheet of the 7.68 TB drive.
    assert_eq!(family.description.controller.command_interval_ns, 323);
    // The capacity itself, another maker and another product are not used.
    for (vendor, name) in [("Other", "Solidigm D7-PS1010 15.36 TB"), ("Solidigm", "Solidigm D7-PS2010 15.36 TB")] {
        let other = bare_sheet(vendor, name, "15360GB");
        let source = rule(&other, "controller.command_interval");
        assert_eq!(source, "C fraction of sequential reads, usual for PCI Express 5 in data centers");
    }
    let same = bare_sheet("Samsung", "Samsung PM9D3a 7.68 TB", "7681.5GB");
    assert!(rule(&same, "controller.command_interval").contains("30.72 TB"), "{:?}", same.derived);
}

#[test]
fn omitted_steady_writes_depend_on_the_spare_flash() {
    // Drives with the same dies: one drive write per day, and three.
    let steady = |size| {
        let drive = bare_sheet("Other", "Other 1", size);
        Figure { what: What::SteadyWrite { depth: 256, bytes: 4096 }, stated: 1.0 }.measure(&drive.description)
    };
    let (read_intensive, mixed_use) = (steady("7681.5GB"), steady("6401.3GB"));
    // Write amplifications of 4.1 and 2.1, plus 0.55 for a move.
    let ratio = mixed_use / read_intensive;
    assert!((1.9..2.5).contains(&ratio), "{read_intensive} and {mixed_use} writes/s");
}
