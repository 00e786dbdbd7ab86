//! Local disks of cloud instances: every row of the table is a drive with the rates of all its disks together.

use std::collections::BTreeSet;

use headstack_catalogue::volume::description_to_toml;
use headstack_catalogue::{ResolvedDevice, ResolvedVolume, instances, load_device, load_system, volume, volumes};
use headstack_sim::volume::description::{Counts, LimitScope};
use headstack_workload::Document;

fn resolved(id: &str) -> ResolvedVolume {
    match load_device(id).unwrap() {
        ResolvedDevice::Volume(volume) => *volume,
        other => panic!("{other:?} is no volume"),
    }
}

/// Returns read IOPS, read bytes, write IOPS and write bytes per second.
fn limits(id: &str) -> [u64; 4] {
    let limits = resolved(id).description.limits;
    let limit = |counts: Counts, of: LimitScope| {
        limits.iter().find(|limit| (limit.counts, limit.of) == (counts, of)).unwrap().per_s
    };
    [
        limit(Counts::Requests, LimitScope::Reads),
        limit(Counts::Bytes, LimitScope::Reads),
        limit(Counts::Requests, LimitScope::Writes),
        limit(Counts::Bytes, LimitScope::Writes),
    ]
}

/// Every value is stated with a source, so nothing is derived, and no instance has the name of another entry.
#[test]
fn every_instance_is_a_complete_entry_with_sources() {
    assert!(instances().len() >= 160, "{}", instances().len());
    let mut ids: BTreeSet<&str> = volumes().iter().map(|entry| entry.id).collect();
    for entry in instances() {
        assert!(ids.insert(entry.id), "{} twice", entry.id);
        let volume = resolved(entry.id);
        assert_eq!(volume.derived, [], "{}", entry.id);
        assert!(volume.source("volume.read_iops").is_some_and(|source| source.len() > 20), "{}", entry.id);
        let again = Document::parse("x.toml", &description_to_toml(&volume.description, &Default::default())).unwrap();
        assert_eq!(volume::resolve(&again).unwrap().description, volume.description, "{}", entry.id);
        let instance = volume.file.instance.unwrap();
        assert_eq!(instance.kind, entry.id);
        assert_eq!(volume.description.capacity_bytes, instance.disk.0 * u64::from(instance.disks) / 512 * 512);
    }
}

/// The rates of one disk were measured on an i4g.16xlarge with four, those of all eight on an i7ie.24xlarge.
#[test]
fn rates_are_those_of_all_disks() {
    assert_eq!(limits("i4g.large"), [34_035, 288_471_904, 27_943, 126_763_269]);
    assert_eq!(limits("i4g.16xlarge"), [250_489 * 4, 2_286_635_861 * 4, 93_737 * 4, 1_034_256_042 * 4]);
    assert_eq!(limits("i7ie.24xlarge"), [1_770_378, 24_913_655_808, 1_234_112, 12_060_468_224]);
    assert_eq!(limits("i4i.large"), [50_000, 50_000 * 7_350, 27_500, 27_500 * 6_020]);
}

#[test]
fn sources_state_whether_rates_were_measured() {
    let source = |id: &str, key: &str| resolved(id).source(key).unwrap().to_owned();
    assert!(source("i7i.large", "volume.read_iops").starts_with("A ScyllaDB's iotune"));
    assert!(source("i4g.16xlarge", "volume.read_iops").starts_with("I ScyllaDB's iotune"));
    assert!(source("i4i.large", "volume.read_iops").starts_with("B Amazon"));
    assert!(source("i4i.large", "volume.read_throughput").starts_with("D estimate"));
    assert!(source("i7i.large", "volume.read").starts_with("D not known"));
    assert!(source("im4gn.4xlarge", "volume.read").starts_with("A diskplorer"));
}

#[test]
fn shares_of_a_disk_are_limited_and_whole_disks_are_crowded() {
    let slack_ns = |id: &str| resolved(id).description.slack_ns;
    assert_eq!(["i4g.large", "i7ie.2xlarge", "Standard_L2s_v4"].map(slack_ns), [volume::SLACK_NS; 3]);
    assert_eq!(["i4g.4xlarge", "i7ie.3xlarge", "Standard_L8s_v3"].map(slack_ns), [1_000_000; 3]);
    let crowding_ppm = |id: &str| resolved(id).description.read_crowding_ppm;
    assert_eq!(["i4g.large", "i4g.4xlarge", "i3.2xlarge"].map(crowding_ppm), [0, 410_000, 590_000]);
}

#[test]
fn a_wrong_name_is_answered_with_close_ones() {
    for (name, close) in [("i4g.larg", "i4g.large"), ("L8s_v3", "Standard_L8s_v3"), ("m5d-2xlarge", "m5d.2xlarge")] {
        for error in [load_device(name).unwrap_err(), load_system(name, &Default::default()).unwrap_err()] {
            assert!(error.message.contains(close), "{}", error.message);
        }
    }
}

/// A type or a list of limits determines what the rates of reads and writes would.
#[test]
fn rates_exclude_a_type() {
    let text = "name = \"x\"\n[capacity]\nsize = \"500GiB\"\n[volume]\ntype = \"gp3\"\nread_iops = 100\n";
    let error = volume::resolve(&Document::parse("x.toml", text).unwrap()).unwrap_err().to_string();
    assert!(error.contains("volume.read_iops: remove this key, or volume.type"), "{error}");
}
