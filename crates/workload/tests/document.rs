//! Errors of TOML files: each is one line with file, line and key.

use headstack_workload::{Bytes, Document, DurationNs, InputError, Workload};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code)]
struct Drive {
    name: String,
    average_seek: Option<DurationNs>,
    geometry: Geometry,
    buffer: Option<Buffer>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code)]
struct Geometry {
    zones: Vec<Zone>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code)]
struct Zone {
    first_cylinder: u32,
    sectors_per_track: u32,
}

/// An internally tagged enum, which serde buffers, so that serde reports only the position of the table.
#[derive(Debug, Deserialize)]
#[serde(tag = "policy", rename_all = "snake_case", deny_unknown_fields)]
#[allow(dead_code)]
enum Buffer {
    Segmented { size: Bytes, segments: u32 },
}

const DRIVE: &str = r#"name = "x"
average_seek = "5ms"

[[geometry.zones]]
first_cylinder = 0
sectors_per_track = 200

[[geometry.zones]]
first_cylinder = 100
sectors_per_track = 180

[buffer]
policy = "segmented"
size = "1MiB"
segments = 4
"#;

fn error_with(from: &str, to: &str) -> InputError {
    assert!(DRIVE.contains(from));
    let text = DRIVE.replacen(from, to, 1);
    Document::parse("drives/x.toml", &text).and_then(|document| document.read::<Drive>()).unwrap_err()
}

#[test]
fn a_good_document_reads() {
    let document = Document::parse("drives/x.toml", DRIVE).unwrap();
    assert_eq!(document.read::<Drive>().unwrap().geometry.zones.len(), 2);
}

#[test]
fn a_misspelt_key_is_one_line_with_a_hint_and_the_list() {
    let error = error_with("average_seek", "averge_seek");
    assert_eq!(
        error.to_string(),
        "drives/x.toml:2: averge_seek: unknown key; did you mean `average_seek`? \
         allowed: name, average_seek, geometry, buffer"
    );
    let error = error_with("first_cylinder = 100", "cylinder = 100");
    assert_eq!(
        error.to_string(),
        "drives/x.toml:9: geometry.zones[1].cylinder: unknown key; allowed: first_cylinder, sectors_per_track"
    );
}

#[test]
fn a_key_in_a_buffered_table_is_found() {
    let error = error_with("segments = 4", "segment = 4");
    assert_eq!(
        error.to_string(),
        "drives/x.toml:15: buffer.segment: unknown key; did you mean `segments`? allowed: size, segments"
    );
    let error = error_with("\"segmented\"", "\"segmentd\"");
    assert_eq!((error.line, error.key.as_str()), (Some(13), "buffer.policy"));
    assert_eq!(error.message, "unknown value `segmentd`; did you mean `segmented`? allowed: segmented");
}

#[test]
fn a_missing_key_is_named_at_its_table() {
    let error = error_with("first_cylinder = 100\n", "");
    assert_eq!(error.to_string(), "drives/x.toml:8: geometry.zones[1].first_cylinder: this key is missing");
    let error = error_with("name = \"x\"\n", "");
    assert_eq!(error.to_string(), "drives/x.toml: name: this key is missing");
}

#[test]
fn all_missing_keys_are_reported_at_once() {
    let error = error_with("first_cylinder = 100\nsectors_per_track = 180\n", "");
    assert_eq!(
        error.to_string(),
        "drives/x.toml:8: geometry.zones[1].first_cylinder: this key is missing, and so are \
         geometry.zones[1].sectors_per_track"
    );
    let read = |text: &str| Document::parse("x.toml", text).and_then(|document| document.read::<Drive>()).unwrap_err();
    assert_eq!(read("").to_string(), "x.toml: name: this key is missing, and so are geometry, geometry.zones");
    assert_eq!(read("name = \"x\"\n[geometry]\n").to_string(), "x.toml:2: geometry.zones: this key is missing");
    let line =
        "x.toml:1: lines[0].size: this key is missing, and so are lines[0].read_percent, lines[0].random_percent";
    let error = Workload::from_toml("x.toml", "lines = [{}]\nname = \"w\"\n").unwrap_err();
    assert_eq!(error.to_string(), line);
}

#[test]
fn a_refused_value_is_named_with_its_line() {
    let error = error_with("\"5ms\"", "\"5m\"");
    assert_eq!((error.line, error.key.as_str()), (Some(2), "average_seek"));
    assert!(error.message.starts_with("\"5m\" is not a duration: "), "{error}");
    let error = error_with("= 180", "= \"many\"");
    assert_eq!(
        error.to_string(),
        "drives/x.toml:10: geometry.zones[1].sectors_per_track: invalid type: string \"many\", expected u32"
    );
}

#[test]
fn a_syntax_error_names_its_line() {
    let error = error_with("segments = 4", "segments = = 4");
    assert_eq!(error.line, Some(15));
    let text = error.to_string();
    assert!(text.starts_with("drives/x.toml:15: ") && !text.contains('\n'), "{text}");
}

#[test]
fn later_checks_find_the_line_of_a_key_or_its_parent() {
    let document = Document::parse("x.toml", DRIVE).unwrap();
    let line = |key: &str| document.error(key, "no").line;
    assert_eq!(line("name"), Some(1));
    assert_eq!(line("geometry.zones[0].first_cylinder"), Some(5));
    assert_eq!(line("geometry.zones[1].first_cylinder"), Some(9));
    assert_eq!(line("geometry.zones[1].skew"), Some(8));
    assert_eq!(line("geometry.zones[7].skew"), Some(4));
    assert_eq!(line("buffer.size"), Some(14));
    assert_eq!(line("spindle.speed"), None);
    assert_eq!(document.error("spindle", "no").to_string(), "x.toml: spindle: no");
    assert_eq!(document.error("", "no").to_string(), "x.toml: no");
}

const WORKLOAD: &str = r#"name = "mixed"
source = "a test"
addresses.zipf.theta = 0.9

[arrivals.closed]
queue_depth = 4
think.fixed = "2ms"

[[lines]]
size = "4KiB"
share_percent = 60
read_percent = 80
random_percent = 100

[[lines]]
size = "64KiB"
share_percent = 40
read_percent = 100
random_percent = 0
"#;

#[test]
fn workloads_are_checked_line_by_line() {
    Workload::from_toml("w.toml", WORKLOAD).unwrap();
    for (from, to, expected) in [
        ("= 40", "= 39", "w.toml:9: lines: share_percent sums to 99; must sum to 100"),
        ("= 80", "= 101", "w.toml:12: lines[0].read_percent: 101 is not a percentage; must be 0 to 100"),
        (
            "queue_depth = 4",
            "queue_depth = 0",
            "w.toml:6: arrivals.closed.queue_depth: 0 is out of range; must be 1 to 65536",
        ),
        ("\"64KiB\"", "0", "w.toml:16: lines[1].size: 0 is not allowed; a request has at least one sector"),
        (
            "\"64KiB\"",
            "\"64G\"",
            "w.toml:16: lines[1].size: \"64G\" is not a size: G is ambiguous; write GiB (powers of 1024) or GB (of 1000)",
        ),
        ("\"2ms\"", "\"-2ms\"", "w.toml:7: arrivals.closed.think: -2ms is negative; must be 0ns or more"),
        (
            "theta = 0.9",
            "theta = 0",
            "w.toml:3: addresses.zipf.theta: 0 is out of range; must be above 0 and at most 10",
        ),
        (
            "theta = 0.9",
            "thet = 0.9",
            "w.toml:3: addresses.zipf.thet: unknown key; did you mean `theta`? allowed: theta",
        ),
        (
            ".zipf.theta = 0.9",
            " = \"unifrom\"",
            "w.toml:3: addresses: unknown value `unifrom`; did you mean `uniform`? allowed: uniform, once, random_map, strided, zipf, pareto, normal, hot_bands, vdbench_hotband",
        ),
        ("source", "streams = 0\nsource", "w.toml:2: streams: 0 is out of range; must be 1 to 65536"),
        (
            "source",
            "run_length.requests = 0\nsource",
            "w.toml:2: run_length.requests: 0 is out of range; must be 1 or more",
        ),
        (
            "random_percent = 0",
            "random_percent = 0\nburst = 0",
            "w.toml:20: lines[1].burst: 0 is not allowed; a burst has at least one request",
        ),
    ] {
        assert!(WORKLOAD.contains(from));
        let text = WORKLOAD.replacen(from, to, 1);
        let error = Workload::from_toml("w.toml", &text).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn a_workload_has_defaults_and_one_canonical_form() {
    use headstack_workload::{Addresses, Arrivals, RunLength, Think, WarmUp};
    let workload = Workload::from_toml("w.toml", WORKLOAD).unwrap();
    assert_eq!(workload.addresses, Addresses::Zipf { theta: 0.9 });
    assert_eq!(workload.arrivals, Arrivals::Closed { queue_depth: 4, think: Think::Fixed(2_000_000) });
    assert_eq!((workload.streams, workload.flush_every), (1, 0));
    assert_eq!(workload.warm_up, WarmUp { requests: 500, time_ns: 0 });
    assert_eq!(workload.run_length, RunLength::Requests(50_000));
    assert_eq!(workload.specification.name, "mixed");

    let json = serde_json::to_string(&workload).unwrap();
    let again: Workload = serde_json::from_str(&json).unwrap();
    assert_eq!(again, workload);
    assert_eq!(serde_json::to_string(&again).unwrap(), json);
}

#[test]
fn every_form_of_arrivals_and_lengths_reads_back() {
    for keys in [
        "arrivals.open = { rate_per_s = 100, process = \"poisson\" }",
        "arrivals.open = { rate_per_s = 1.5, process = \"fixed\" }\nrun_length.time = \"10s\"",
        "arrivals.open = { rate_per_s = 9, process.bursty = { on = \"10ms\", off = \"90ms\" } }",
        "arrivals.closed = { queue_depth = 8, think.exponential = \"1ms\" }\nwarm_up.time = \"2s\"",
        "run_length.confidence = { percent = 1, max_requests = 1000000 }\nflush_every = 64",
        "addresses.hot_bands = [{ from_percent = 0, to_percent = 5, share_percent = 100 }]",
        "addresses.normal = { mean_percent = 50, deviation_percent = 10 }",
        "addresses = \"once\"",
        "addresses.strided = { zone = \"8KiB\", step = \"1MiB\", backwards = true }",
        "addresses.pareto.h = 0.2\nspecification = \"Other\"",
    ] {
        let text = WORKLOAD
            .replace("addresses.zipf.theta = 0.9\n", "")
            .replace("[arrivals.closed]\nqueue_depth = 4\nthink.fixed = \"2ms\"\n", "")
            .replace("source", &format!("{keys}\nsource"));
        let workload = Workload::from_toml("w.toml", &text).unwrap();
        let json = serde_json::to_string(&workload).unwrap();
        assert_eq!(serde_json::from_str::<Workload>(&json).unwrap(), workload);
    }
}

#[test]
fn misspelt_names_are_at_most_one_change_and_a_quarter_of_their_length_away() {
    let nearest = |name: &str, most| {
        headstack_workload::document::nearest(name, ["cpu", "cpus", "network", "pool"].into_iter(), most)
    };
    assert_eq!(nearest("xcpu", 9), ["cpu", "cpus"]);
    assert_eq!(nearest("xcpu", 1), ["cpu"]);
    assert_eq!((nearest("cu", 9), nearest("cxu", 9)), (vec!["cpu", "cpus"], vec!["cpu", "cpus"]));
    assert_eq!(nearest("entwork", 9), ["network"]);
    assert_eq!(nearest("ntewrok", 9), Vec::<&str>::new(), "three changes");
    assert_eq!(nearest("network", 9), ["network"]);
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Array {
    groups: Vec<Group>,
    #[serde(default)]
    sources: std::collections::BTreeMap<String, String>,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    chunk_size: Bytes,
}

#[test]
fn an_earlier_name_of_a_key_is_read_with_one_note() {
    let new = "# chunks\n[[groups]]\nchunk_size = \"64KiB\"\n[[groups]]\nchunk_size = \"1KiB\"\n\
               [sources]\n\"groups[0].chunk_size\" = \"C default\"\n";
    let old = new.replace("chunk_size", "stripe_unit");
    let read = |file: &str, text: &str| Document::parse(file, text).unwrap();
    let document = read("old.toml", &old);
    assert_eq!(document.read::<Array>().unwrap(), read("new.toml", new).read::<Array>().unwrap());
    assert_eq!((document.text(), read("old.toml", &old).text()), (new, new));
    // The positions are those of the file with the earlier names.
    let error = document.error("groups[1].chunk_size", "wrong");
    assert_eq!(error.to_string(), "old.toml:5: groups[1].chunk_size: wrong");
    let mut notes = headstack_workload::take_notes_of_renamed_keys();
    notes.retain(|note| note.starts_with("old.toml") || note.starts_with("new.toml"));
    assert_eq!(notes, ["old.toml:3: `stripe_unit` is now `chunk_size`"]);
}

#[test]
fn a_workload_with_the_earlier_name_of_the_queue_depth_is_read() {
    let old = WORKLOAD.replace("queue_depth", "outstanding");
    let read = |text: &str| Workload::from_toml("depth.toml", text).unwrap();
    assert_eq!(read(&old), read(WORKLOAD));
    let mut notes = headstack_workload::take_notes_of_renamed_keys();
    notes.retain(|note| note.starts_with("depth.toml"));
    assert_eq!(notes, ["depth.toml:6: `outstanding` is now `queue_depth`"]);
    let message = "depth.toml:6: arrivals.closed.queue_depth: 0 is out of range; must be 1 to 65536";
    let error = Workload::from_toml("depth.toml", &old.replace("= 4\n", "= 0\n")).unwrap_err();
    assert_eq!(error.to_string(), message);
}

#[test]
fn other_keys_with_an_earlier_name_stay() {
    let text = "stripe_unit = 1\n[other]\nstripe_unit = 2\n[notes]\ntext = \"stripe_unit = 3\"\n";
    assert_eq!(Document::parse("other.toml", text).unwrap().text(), text);
    // A file that has both names is refused as one that states a key twice.
    let twice = "[[groups]]\nchunk_size = \"1KiB\"\nstripe_unit = \"2KiB\"\n";
    let error = Document::parse("twice.toml", twice).unwrap_err().to_string();
    assert!(error.starts_with("twice.toml:3: ") && error.contains("duplicate key"), "{error}");
}
