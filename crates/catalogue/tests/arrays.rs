//! The arrays of the catalogue are complete, have sources, and have their known properties.

use headstack_catalogue::array::standards::LinkStandard;
use headstack_catalogue::{
    Blueprint, Changes, Drafter, ResolvedArray, ResolvedSystem, arrays, load_array, load_system,
};
use headstack_sim::array::description::{ArrayDescription, Level};
use headstack_sim::link::LinkKind;
use headstack_workload::quantity::{Bytes, parse_bytes};
use serde_json::json;

fn array(name: &str) -> ResolvedArray {
    load_array(name, &Changes::default()).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn every_array_is_complete_and_sourced() {
    for entry in arrays() {
        let array = array(entry.id);
        headstack_sim::array::check(&array.description).unwrap();
        assert!(array.description.capacity_bytes() > 0, "{}", entry.id);
        assert!(array.source("default").is_some(), "{}: no default source", entry.id);
        assert_eq!(
            load_array(&array.description.name, &Changes::default()).unwrap(),
            array,
            "{}: by its name",
            entry.id
        );
        let ResolvedSystem::Array(system) = load_system(entry.id, &Changes::default()).unwrap() else {
            panic!("{} is not an array", entry.id);
        };
        assert_eq!(*system, array);
    }
}

#[test]
fn ids_of_drives_and_arrays_differ() {
    for entry in arrays() {
        assert!(headstack_catalogue::drives().iter().all(|drive| drive.id != entry.id), "{}", entry.id);
    }
}

#[test]
fn descriptions_pass_through_json() {
    for entry in arrays() {
        let description = array(entry.id).description;
        let text = serde_json::to_string(&description).unwrap();
        assert_eq!(
            serde_json::from_str::<headstack_sim::array::description::ArrayDescription>(&text).unwrap(),
            description
        );
    }
}

#[test]
fn compaqs_chain_has_the_requested_number_of_drives() {
    for count in 1..=15 {
        let changes = Changes { drives: Some(count), ..Changes::default() };
        let description = load_array("compaq-wide-ultra", &changes).unwrap().description;
        assert_eq!((description.members.len(), description.luns.len()), (count as usize, count as usize));
        assert!(description.members.iter().all(|member| member.ways == [[0]]));
    }
    let changes = Changes { drives: Some(16), ..Changes::default() };
    let error = load_array("compaq-wide-ultra", &changes).unwrap_err().to_string();
    assert!(error.contains("16 drives on link \"bus\" are too many; the maximum is 15"), "{error}");
    let changes = Changes { drive: Some("barracuda-9lp-9".to_owned()), ..Changes::default() };
    let slower = load_array("compaq-wide-ultra", &changes).unwrap().description;
    assert_eq!(slower.devices, array("compaq-wide-ultra-7200").description.devices);
    let error = load_system("cheetah-9lp", &Changes { drives: Some(2), ..Changes::default() }).unwrap_err();
    assert!(error.to_string().starts_with("drives: cheetah-9lp is a single drive"), "{error}");
}

fn changed(name: &str, asked: &[(&str, &str)]) -> Result<ArrayDescription, String> {
    let mut changes = Changes::default();
    for (name, text) in asked {
        changes.set(name, text).map_err(|error| error.to_string())?;
    }
    load_array(name, &changes).map(|array| array.description).map_err(|error| error.to_string())
}

#[test]
fn changing_the_level_drops_keys_of_the_old_level() {
    let mirrored = changed("demartek-512n-raid5-24", &[("level", "raid10")]).unwrap();
    assert_eq!((mirrored.groups[0].level, mirrored.groups[0].name.as_str()), (Level::Raid10, "raid10"));
    assert_eq!(mirrored.capacity_bytes(), array("demartek-512n-raid10-24").description.capacity_bytes());
    // LUNs name groups by the level in the file.
    let several = changed("demartek-512n-raid5-20-log-raid10-4", &[("level", "raid6")]).unwrap();
    assert_eq!(several.groups.iter().map(|group| group.level).collect::<Vec<_>>(), [Level::Raid6, Level::Raid6]);
    for (asked, expected) in [
        (
            &[("level", "raid7")],
            "level: \"raid7\" is unknown; allowed: jbod, concat, raid0, raid1, raid10, raid5, raid6",
        ),
        (&[("levels", "raid6")], "levels: this cannot be changed; allowed: drives, drive, level, usable"),
        (&[("drives", "+4")], "drives: \"+4\" is not a number of drives; must be 1 to 4096"),
        (&[("drives", "4097")], "drives: \"4097\" is not a number of drives"),
    ] {
        assert!(changed("md-raid5-8x2tb", asked).unwrap_err().starts_with(expected));
    }
    // A virtual array does not support some keys; these are errors.
    let refused = changed("va-7100", &[("level", "raid6")]).unwrap_err();
    assert!(refused.starts_with("level: a pool has its own placement rules and must be raid10"), "{refused}");
    assert!(changed("va-7100", &[("level", "raid10")]).is_ok());
}

#[test]
fn the_fewest_drives_that_export_the_requested_capacity_are_used() {
    for (level, usable, drives) in [
        ("raid6", "9TB", 12),
        ("raid10", "9TB", 20),
        ("raid10", "9.3TB", 21),
        ("raid6", "1MB", 4),
        ("raid5", "900GB", 3),
        ("raid0", "900GB", 1),
        ("raid0", "901GB", 2),
    ] {
        let asked = [("level", level), ("usable", usable)];
        let found = changed("demartek-512n-raid10-24", &asked).unwrap();
        assert_eq!(found.members.len(), drives, "{level} {usable}");
        let fewer = changed("demartek-512n-raid10-24", &[("level", level), ("drives", &(drives - 1).to_string())]);
        let usable = parse_bytes(usable).unwrap();
        assert!(fewer.is_err() || fewer.unwrap().capacity_bytes() < usable, "{level} {usable}");
    }
    for (name, asked, expected) in [
        ("demartek-512n-raid10-24", ("usable", "9PB"), "usable: 9PB is too large for any number of drives; "),
        ("demartek-512n-raid10-24", ("usable", "0TB"), "usable: \"0TB\" is not a capacity; add the unit"),
        ("demartek-512n-raid10-24", ("usable", "9"), "usable: \"9\" is not a capacity; add the unit"),
        ("demartek-512n-raid10-24", ("usable", "much"), "usable: "),
        ("compaq-wide-ultra", ("usable", "1TB"), "usable: 1TB needs 110 drives, which is not possible: "),
    ] {
        let error = changed(name, &[asked]).unwrap_err();
        assert!(error.starts_with(expected), "{error}");
    }
    let both = changed("md-raid5-8x2tb", &[("drives", "8"), ("usable", "1TB")]).unwrap_err();
    assert_eq!(both, "usable: set drives or usable, not both");
    let error = load_system("cheetah-9lp", &Changes { usable: Some(Bytes(1)), ..Changes::default() }).unwrap_err();
    assert!(error.to_string().starts_with("usable: cheetah-9lp is a single drive"), "{error}");
}

#[test]
fn wide_ultra_reaches_the_measured_throughput() {
    let bus = &array("compaq-wide-ultra").description.links[0];
    let bytes = 65536.0;
    let mb_per_s = bytes / (bytes * bus.ns_per_byte + (bus.command_ns + bus.read_ns) as f64) * 1000.0;
    assert!((36.0..38.0).contains(&mb_per_s), "{mb_per_s}");
}

#[test]
fn a_loop_carries_the_peaks_of_the_va_7100() {
    let front = &array("va-7100").description.links[0];
    let mb_per_s = |bytes: f64, own_ns: u64| bytes / (bytes * front.ns_per_byte + own_ns as f64) * 1000.0;
    assert!((mb_per_s(131_072.0, front.command_ns + front.read_ns) - 93.1).abs() < 0.1);
    assert!((mb_per_s(131_072.0, front.command_ns + front.write_ns) - 92.7).abs() < 0.1);
    // 12,400 reads of 1 KiB per second, the limit of the controller.
    assert!(mb_per_s(1024.0, front.command_ns + front.read_ns) / 1024e-6 > 12_400.0);
}

#[test]
fn mark5c_has_two_drives_on_each_of_four_cables() {
    let description = array("mark5c-module").description;
    let cables: Vec<u32> = description.members.iter().map(|member| member.ways[0][1]).collect();
    assert_eq!(cables, [8, 8, 9, 9, 10, 10, 11, 11]);
    assert!(description.members.iter().zip(0..).all(|(member, bridge)| member.ways[0][0] == bridge));
    let cable = |name: &str| array(name).description.links[8].clone();
    assert_eq!(cable("mark5c-module").kind, LinkKind::Ata);
    assert!(cable("mark5c-module").held_by_command && !cable("mark5c-module-overlapped").held_by_command);
    assert_eq!(cable("mark5c-barracuda").ns_per_byte, 10.0);
    // 8 drives of 2 TB.
    assert_eq!(description.capacity_bytes() / 1_000_000_000, 16_003);
}

#[test]
fn demarteks_drives_have_two_ways_and_their_groups() {
    let description = array("demartek-512n-raid5-20-log-raid10-4").description;
    assert!(description.members.iter().all(|member| member.ways == [[0], [1]]));
    let groups: Vec<usize> = description.groups.iter().map(|group| group.members.len()).collect();
    assert_eq!(groups, [20, 4]);
    let luns: Vec<(&str, u64)> =
        description.luns.iter().map(|lun| (lun.name.as_str(), lun.length_bytes / 1_000_000_000)).collect();
    assert_eq!(luns, [("data0", 300), ("data1", 300), ("data2", 300), ("log", 225)]);
    assert_eq!(description.luns[1].start_bytes, 300_000_000_000);
    let twelve = arrays().iter().filter(|entry| entry.id.starts_with("demartek-")).count();
    assert_eq!(twelve, 12);
}

#[test]
fn capacities_follow_from_the_level() {
    let drive = array("nearline-12-raid6").description.groups[0].member_bytes;
    assert_eq!(array("nearline-12-raid6").description.capacity_bytes(), 10 * drive);
    assert_eq!(array("nearline-24-raid10").description.capacity_bytes(), 12 * drive);
    assert_eq!(array("nearline-24-raid6").description.capacity_bytes(), 22 * drive);
    let mut group = array("va-7100").description.groups.remove(0);
    let rows = group.member_bytes / group.chunk_bytes;
    assert_eq!(group.capacity_bytes(), rows / 2 * 15 * group.chunk_bytes, "whole groups of two rows");
    group.pool = None;
    assert_eq!(group.capacity_bytes(), 15 * rows / 2 * group.chunk_bytes, "fifteen drives hold seven and a half");
}

#[test]
fn every_standard_of_links_has_sound_figures() {
    for standard in LinkStandard::ALL {
        let figures = standard.figures();
        assert!(figures.bytes_per_s.is_none_or(|rate| (10e6..4e9).contains(&rate)), "{standard:?}");
        assert!(figures.source.split_once(' ').is_some_and(|(code, _)| "ASBCDI".contains(code)), "{standard:?}");
        let name = serde_json::Value::String(standard.name());
        assert_eq!(serde_json::from_value::<LinkStandard>(name).unwrap(), standard);
    }
}

fn drafter(text: &str) -> Drafter {
    let blueprint = json!({ "kind": "array", "text": text, "drives": {} });
    Drafter::new(serde_json::from_value(blueprint).expect("it is a blueprint")).expect("it is TOML")
}

fn values(of: &[(&str, &str)]) -> Vec<(String, String)> {
    of.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect()
}

/// Drives, number, level and keys are changed in a sweep point and in the file written from it.
#[test]
fn a_drafted_file_matches_its_sweep_point() {
    let changes: [&[(&str, &str)]; 5] = [
        &[],
        &[("drive", "re4-2tb"), ("drives", "9"), ("level", "raid5")],
        &[("drives", "14"), ("level", "4+3"), ("groups[0].chunk_size", "64KiB")],
        &[("drive", "dc-s3700-400gb"), ("drives", "6"), ("level", "raid10")],
        &[("drives", "16"), ("level", "raidz2")],
    ];
    for name in ["server-12-raid6-cache", "md-raid6-12x16tb", "zfs-raidz2-12", "nearline-12-raid6-nvme-cache"] {
        let blueprint = Blueprint::for_system(name, &[]).expect("it is in the catalogue");
        let drafter = Drafter::new(blueprint).expect("it is TOML");
        for change in changes {
            let change = values(change);
            let text = drafter.text_with(&change).expect("it can be written");
            let written = self::drafter(&text).with(&[]).expect("what is written can be read");
            assert_eq!(written, drafter.with(&change).expect("it can be described"), "{name} {change:?}\n{text}");
        }
    }
}

/// A controller that switches off the caches of its disks has no effect on SSDs that replace the disks.
#[test]
fn what_only_disks_know_goes_with_them() {
    let drafter =
        Drafter::new(Blueprint::for_system("server-12-raid6-cache", &[]).expect("it is there")).expect("TOML");
    let as_stated = drafter.text_with(&[]).expect("it can be written");
    assert!(as_stated.contains("write_cache = \"off\""));
    let of_flash = drafter.text_with(&values(&[("drive", "dc-s3700-400gb")])).expect("it takes them");
    assert!(!of_flash.contains("write_cache"), "{of_flash}");
    // An array file that sets a disk-only key for named drives is rejected for other kinds of drives.
    let wrong = as_stated.replace("exos-x18-18tb", "dc-s3700-400gb").replace("\"off\"", "\"protected\"");
    let error = self::drafter(&wrong).with(&[]).expect_err("solid-state drives have no such cache").to_string();
    assert!(error.contains("only disks have this"), "{error}");
}

#[test]
fn a_capacity_is_no_file() {
    let drafter = Drafter::new(Blueprint::for_system("md-raid6-12x16tb", &[]).expect("it is there")).expect("TOML");
    let error = drafter.text_with(&values(&[("usable", "90TB")])).expect_err("a file counts drives").to_string();
    assert_eq!(error, "usable: a file has a fixed number of drives; use drives instead");
}
