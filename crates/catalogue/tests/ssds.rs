//! The solid-state drives of the catalogue: complete, sourced, and near what their data sheets promise.

use std::collections::BTreeMap;
use std::sync::Mutex;

use headstack_catalogue::ssd::description_to_toml;
use headstack_catalogue::{Changes, ResolvedDevice, ResolvedSsd, drives, load_device, load_drive, load_system, ssd};
use headstack_sim::SystemDescription;
use headstack_sim::device::DeviceDescription;
use headstack_sim::ssd::Ssd;
use headstack_sim::ssd::description::SsdDescription;
use headstack_workload::{Document, Kind, Purpose, Random, Request};

fn each(mut test: impl FnMut(&str, &str, ResolvedSsd)) {
    let ssds: Vec<_> = drives().iter().filter(|entry| entry.is_ssd()).collect();
    assert!(ssds.len() >= 4, "only {} solid-state drives", ssds.len());
    for entry in ssds {
        match load_device(entry.id).unwrap_or_else(|error| panic!("{error}")) {
            ResolvedDevice::Ssd(resolved) => test(entry.id, entry.text, *resolved),
            ResolvedDevice::Disk(_) => panic!("{} is a disk", entry.id),
        }
    }
}

/// Every key that holds a value, `[sources]` apart.
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
fn they_are_found_and_fresh_and_devices() {
    each(|id, _, resolved| {
        let description = resolved.description.clone();
        assert!(!description.preconditioned, "{id} takes long to load");
        assert_eq!(load_device(&description.name).unwrap(), ResolvedDevice::Ssd(Box::new(resolved)), "{id}: by name");
        let system = load_system(id, &Changes::default()).unwrap().description();
        let drive = SystemDescription::Drive(DeviceDescription::Ssd(description));
        assert_eq!(system, drive);
        let text = serde_json::to_string(&system).unwrap();
        assert!(text.starts_with("{\"drive\":{\"ssd\":{"), "{text}");
        let error = load_drive(id).unwrap_err().to_string();
        assert!(error.contains("solid-state drive, where a disk"), "{error}");
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

/// A drive under commands that follow each other in a closed loop.
struct Bench {
    ssd: Ssd,
    now_ns: u64,
}

impl Bench {
    fn new(description: &SsdDescription) -> Bench {
        Bench { ssd: Ssd::new(description, 1).unwrap(), now_ns: 0 }
    }

    /// Seconds that `count` commands take, `depth` at once.
    fn seconds(&mut self, count: u32, depth: u32, mut request: impl FnMut(u32) -> Request) -> f64 {
        let (start_ns, mut issued, mut done) = (self.now_ns, 0, 0);
        while done < count {
            while issued < count && issued - done < depth {
                self.ssd.submit(self.now_ns, issued, &request(issued));
                issued += 1;
            }
            self.now_ns = self.ssd.next_event_ns();
            self.ssd.advance(self.now_ns, |_| done += 1);
        }
        (self.now_ns - start_ns) as f64 / 1e9
    }
}

fn request(kind: Kind, offset_bytes: u64, length_bytes: u32) -> Request {
    Request { kind, offset_bytes, length_bytes, force_unit_access: false, ordered: false }
}

/// The drive with blocks of 16 pages, each erased in as much less time: as fast, and as full.
fn small(description: &SsdDescription) -> SsdDescription {
    const PAGES: u32 = 16;
    let mut small = description.clone();
    let ratio = f64::from(PAGES) / f64::from(description.flash.pages_per_block);
    small.flash.pages_per_block = PAGES;
    small.timing.erase_ns = (description.timing.erase_ns as f64 * ratio) as u64;
    let unit = u64::from(description.capacity.mapping_unit_bytes);
    small.capacity.logical_bytes = (description.capacity.logical_bytes as f64 * ratio) as u64 / unit * unit;
    small
}

const LONG: u32 = 128 << 10;
const SHORT: u32 = 4 << 10;

/// Compares with the sheet, where it has the figure: at most `bound` off.
fn compare(id: &str, what: &str, found: f64, sheet: Option<f64>, bound: f64, problems: &mut Vec<String>) {
    let Some(sheet) = sheet else { return };
    let deviation = found / sheet - 1.0;
    let line = format!("{id:26} {what:26} {found:12.1}, the sheet says {sheet:10.1} ({:+.0} %)", 100.0 * deviation);
    println!("{line}");
    if deviation.abs() > bound {
        problems.push(line);
    }
}

#[test]
fn figures_are_near_those_of_the_sheets() {
    let problems = Mutex::default();
    // A thread each: together they simulate for minutes on a busy machine.
    std::thread::scope(|scope| {
        each(|id, _, resolved| {
            let (id, problems) = (id.to_owned(), &problems);
            scope.spawn(move || compare_with_the_sheet(&id, &resolved, problems));
        });
    });
    let problems = problems.into_inner().unwrap();
    assert!(problems.is_empty(), "{problems:#?}");
}

fn compare_with_the_sheet(id: &str, resolved: &ResolvedSsd, problems: &Mutex<Vec<String>>) {
    let (description, sheet) = (&resolved.description, &resolved.file.sheet);
    let depth = description.interface.queue_depth;
    let mut random = Random::new(3, Purpose::Addresses);
    let check = |what: &str, found: f64, sheet: Option<f64>, bound: f64| {
        compare(id, what, found, sheet, bound, &mut problems.lock().unwrap());
    };
    let mut fresh = Bench::new(description);
    let runs = 16_384;
    let mb = f64::from(runs) * f64::from(LONG) / 1e6;
    let in_order = |kind| move |index: u32| request(kind, u64::from(index) * u64::from(LONG), LONG);
    let write_s = fresh.seconds(runs, 32, in_order(Kind::Write));
    check("sequential write, MB/s", mb / write_s, sheet.sequential_write.map(|rate| rate.0 / 1e6), 0.15);
    let read_s = fresh.seconds(runs, 32, in_order(Kind::Read));
    check("sequential read, MB/s", mb / read_s, sheet.sequential_read.map(|rate| rate.0 / 1e6), 0.15);
    let written = u64::from(runs) * u64::from(LONG / SHORT);
    let mut read = |_| request(Kind::Read, random.below(written) * u64::from(SHORT), SHORT);
    let read_iops = 40_000.0 / fresh.seconds(40_000, depth, &mut read);
    check("random reads a second", read_iops, sheet.random_read_iops, 0.15);
    let latency_us = fresh.seconds(1_000, 1, &mut read) * 1e3;
    check("read alone, us", latency_us, sheet.read_latency.map(|time| time.0 as f64 / 1e3), 0.15);

    if sheet.random_write_iops.is_none() {
        return;
    }
    let mut steady = Bench::new(&SsdDescription { preconditioned: true, ..small(description) });
    let units = steady.ssd.capacity_bytes() / u64::from(SHORT);
    let mut write = |_| request(Kind::Write, random.below(units) * u64::from(SHORT), SHORT);
    let _ = steady.seconds(200_000, depth, &mut write);
    let write_iops = 200_000.0 / steady.seconds(200_000, depth, &mut write);
    check("random writes a second", write_iops, sheet.random_write_iops, 0.35);
}

/// A good file; tests replace or add lines.
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

/// Replaces `from` in the good file and expects an error of one line that starts with `place` and holds `words`.
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
    refused("channels = 4\n", "", "bad.toml:4: flash.channels: this key is missing", "such as 8");
    refused("channels = 4", "channels = 0", "bad.toml:6: flash.channels: 0;", "1 to 256");
    refused("cells = \"tlc\"\n", "", "bad.toml:4: flash.cells: this key is missing", "slc, mlc and tlc");
    refused(spare, "over_provisioning = 0.0", "bad.toml:8: flash.over_provisioning: 0;", "above 0");
    refused(spare, "over_provisioning = -0.1", "bad.toml:8: flash.over_provisioning: -0.1;", "above 0");
    refused(spare, "over_provisioning = 0.00001", "bad.toml:3: capacity.size: ", "no over-provisioning");
    refused(spare, "raw = \"99GB\"", "bad.toml:8: flash.raw: 99GB;", "more than the capacity");
    refused(spare, "raw = \"110GB\"\nblocks_per_plane = 9", "bad.toml:9: flash.blocks_per_plane: ", "beside flash.raw");
    refused(spare, "blocks_per_plane = 0", "bad.toml:8: flash.blocks_per_plane: 0;", "1 to");
    refused(spare, "read = \"-1us\"", "bad.toml:8: flash.read: -", "0ms or more");
    refused(spare, "page = \"3KiB\"", "bad.toml:8: flash.page: 3072 bytes;", "multiple of the mapping unit");
    refused(spare, "channel_rate = \"0MB/s\"", "bad.toml:8: flash.channel_rate: 0", "positive");
    refused(
        "[interface]",
        "[buffer]\nsize = \"4KiB\"\n[interface]",
        "bad.toml:10: buffer.size: 4096 bytes;",
        "two rows",
    );
    refused("size = \"100GB\"\n", "", "bad.toml:2: capacity.size: this key is missing", "960GB");
    refused("kind = \"nvme\"\n", "", "bad.toml:9: interface.kind: this key is missing", "nvme, sata and sas");
    refused("generation = 3\n", "", "bad.toml:9: interface.generation: this key is missing", "such as 3");
    refused("generation = 3", "generation = 9", "bad.toml:11: interface.generation: 9;", "1 to 5");
    refused("generation = 3", "generation = 3\nlanes = 0", "bad.toml:12: interface.lanes: 0;", "1 to 16");
    refused("kind = \"nvme\"", "kind = \"sata\"", "bad.toml:11: interface.generation: ", "only nvme");
    refused(
        "[interface]",
        "[power]\nidle_w = 1.0\n[interface]",
        "bad.toml:9: power.active_w: this key is missing",
        "others",
    );
    refused("[interface]", "[spindle]\nspeed = \"7200rpm\"\n[interface]", "bad.toml:9: spindle: unknown key", "");
}
