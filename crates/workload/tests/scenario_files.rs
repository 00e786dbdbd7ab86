//! Scenarios as files: the catalogue's scenarios, both forms, and invalid ones.

use crate::fake;
use crate::fake::files::{EVERYTHING, catalogue, files};
use crate::fake::{Fake, luns};
use headstack_workload::{Kind, Scenario, ScenarioRun};

const GB: u64 = 1_000_000_000;

fn everything() -> Scenario {
    Scenario::from_toml("s.toml", &format!("name = \"test\"\n{EVERYTHING}")).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn every_scenario_of_the_catalogue_is_sourced_and_runs() {
    assert!(files().len() >= 19);
    for path in files() {
        let stem = path.file_stem().unwrap().to_str().unwrap();
        let scenario = catalogue(stem);
        assert_eq!(scenario.name, stem);
        assert!(!scenario.source.is_empty());
        let names_luns = scenario.streams.iter().any(|stream| stream.lun.is_some());
        let lun = match (stem.starts_with("prefill"), names_luns) {
            (true, _) => luns(&[("data", 4 * GB / 512 * 512)]),
            // A single drive is enough.
            (false, false) => luns(&[("drive", 900 * GB)]),
            (false, true) => luns(&[("data0", 300 * GB), ("data1", 300 * GB), ("data2", 300 * GB), ("log", 225 * GB)]),
        };
        let limit_requests = if stem == "demartek-boot-storm" { usize::MAX } else { 50_000 };
        let outcome = Fake { limit_requests, ..Fake::default() }.run(&scenario, &lun);
        assert_eq!(outcome.issued, outcome.done.len() + outcome.in_flight);
        let finite = scenario.streams.iter().any(|stream| stream.kind.is_finite());
        assert!(outcome.all_done == finite && outcome.done.len() > 1_000, "{stem}");
        for stream in &scenario.streams {
            assert!(!outcome.of(&stream.name).is_empty(), "{stem}: {} is idle", stream.name);
        }
        if stem == "demartek-boot-storm" {
            let writes = outcome.done.iter().filter(|done| done.request.kind == Kind::Write).count();
            assert!(writes * 10 >= outcome.done.len());
        }
    }
}

#[test]
fn scenarios_survive_toml_and_json() {
    let all = files().into_iter().map(|path| catalogue(path.file_stem().unwrap().to_str().unwrap()));
    for scenario in all.chain([everything()]) {
        let json = serde_json::to_string(&scenario).unwrap();
        assert_eq!(serde_json::from_str::<Scenario>(&json).unwrap(), scenario);
        let text = toml::to_string(&scenario).unwrap();
        assert_eq!(Scenario::from_toml("s.toml", &text).unwrap(), scenario);
    }
}

#[test]
fn the_earlier_name_of_the_queue_depth_is_read_in_every_table() {
    let text = format!("name = \"test\"\n{EVERYTHING}");
    let tables = text.matches("queue_depth").count();
    let old = text.replace("queue_depth", "outstanding");
    assert_eq!((tables, Scenario::from_toml("outstanding.toml", &old).unwrap()), (6, everything()));
    let mut notes = headstack_workload::take_notes_of_renamed_keys();
    notes.retain(|note| note.starts_with("outstanding.toml"));
    assert_eq!(notes, ["outstanding.toml:5: `outstanding` is now `queue_depth`"]);
    // The old name in a table without a queue depth is unknown.
    let text = text.replace("cpus = 2", "cpus = 2\noutstanding = 4");
    let error = Scenario::from_toml("s.toml", &text).unwrap_err();
    assert!(error.is_unknown_key() && error.key == "outstanding", "{error}");
}

/// Returns the error of the scenario with every kind of stream after `from` is replaced with `to`.
fn error_with(from: &str, to: &str) -> String {
    let text = format!("name = \"test\"{EVERYTHING}");
    assert!(text.contains(from), "{from}");
    Scenario::from_toml("s.toml", &text.replacen(from, to, 1)).expect_err(from).to_string()
}

#[test]
fn what_is_refused_is_one_line_with_the_key() {
    let out_of_range = "0 is out of range; must be 1 to 65536";
    for (from, to, expected) in [
        ("share_percent = 75", "share_percent = 74", "s.toml:7: streams: share_percent sums to 99; must sum to 100"),
        (
            "share_percent = 75",
            "share_percent = 0",
            "s.toml:36: streams[3].access.share_percent: 0 is not a share in percent; must be above 0 and at most 100",
        ),
        (
            "share_percent = 75",
            "share_percent = 75\narrivals = { closed = { queue_depth = 1 } }",
            "s.toml:35: streams[3].access: arrivals and share_percent exclude each other; use one of them",
        ),
        (
            "pool = { closed = { queue_depth = 5, think = { exponential = \"1ms\" } } }",
            "",
            "s.toml: pool: streams have a share, but there is no pool; add its arrivals",
        ),
        ("queue_depth = 5", "queue_depth = 0", &format!("s.toml:4: pool.closed.queue_depth: {out_of_range}")),
        (
            "rate_per_s = 300",
            "rate_per_s = 0",
            "s.toml:20: streams[1].access.arrivals.open.rate_per_s: 0 is out of range; must be above 0 and at most 1e9",
        ),
        ("cpus = 2", "cpus = 0", "s.toml:2: cpus: 0 is out of range; must be 1 to 4096"),
        ("100MB/s", "0MB/s", "s.toml:3: network: a rate of 0 is not allowed; omit the key for no limit"),
        ("{ time = \"20s\" }", "{ time = \"0s\" }", "s.toml:5: run_length.time: 0ns is out of range; must be above 0"),
        (
            "[\"0%\", \"10%\"]",
            "[\"10%\", \"10%\"]",
            "s.toml:10: streams[0].range: the range ends at 10%, which is not above its start at 10%",
        ),
        (
            "[\"0%\", \"10%\"]",
            "[\"0%\", \"110%\"]",
            "s.toml:10: streams[0].range[1]: \"110%\" is not an offset in a LUN; use \"0%\" to \"100%\" or a size",
        ),
        (
            "name = \"rate\"",
            "name = \"processes\"",
            "s.toml:16: streams[1].name: \"processes\" is already the name of a stream; names must differ",
        ),
        (
            "[streams.access]",
            "[streams.acess]",
            "s.toml:11: streams[0].acess: unknown key; did you mean `access`? allowed: name, lun, range, access, web, boot, video, transactions, sequential, prefill, database",
        ),
        ("users = 3", "users = 0", &format!("s.toml:45: streams[4].web.users: {out_of_range}")),
        (
            "mean_file = \"2MiB\"",
            "mean_file = \"5MiB\"",
            "s.toml:48: streams[4].web.mean_file: 5242880 bytes is not between the smallest and the largest file",
        ),
        (
            "hot_pages_percent = 80",
            "hot_pages_percent = 180",
            "s.toml:51: streams[4].web.hot_pages_percent: 180 is not a percentage; must be 0 to 100",
        ),
        ("guests = 4", "guests = 0", &format!("s.toml:61: streams[5].boot.guests: {out_of_range}")),
        (
            "requests = 200",
            "requests = 0",
            "s.toml:66: streams[5].boot.phases[1].requests: 0 is not allowed; a phase has at least one request",
        ),
        (
            "frames_per_s = 25",
            "frames_per_s = 0",
            "s.toml:78: streams[6].video.frames_per_s: 0 is out of range; must be above 0 and at most 1e6",
        ),
        (
            "frames_per_s = 25",
            "frames_per_s = 25\nframes = 0",
            "s.toml:79: streams[6].video.frames: 0 is not allowed; omit the key for an endless stream",
        ),
        (
            "frames_per_s = 25",
            "frames_per_s = 1000001",
            "s.toml:78: streams[6].video.frames_per_s: 1000001 is out of range; must be above 0 and at most 1e6",
        ),
        (
            "reads = 2\nwrites = 1",
            "reads = 0",
            "s.toml:74: streams[6].video.reads: no tracks; reads or writes must be above 0",
        ),
        ("clients = 6", "clients = 0", &format!("s.toml:88: streams[7].transactions.clients: {out_of_range}")),
        (
            "direction = \"read\"",
            "direction = \"reed\"",
            "s.toml:100: streams[8].sequential.direction: unknown value `reed`; did you mean `read`? allowed: read, write",
        ),
        (
            "order = \"serial\"",
            "order = \"parallel\"",
            "s.toml:109: streams[9].prefill.order: unknown value `parallel`; allowed: serial, concurrent",
        ),
    ] {
        assert_eq!(error_with(from, to), expected);
    }
    let kinds = "must have exactly one of access, web, boot, video, transactions, sequential, prefill, database";
    let text = "name = \"x\"\nrun_length = \"all_done\"\n\n[[streams]]\nname = \"b\"\nprefill = { order = \"serial\", block = 512 }\n[[streams]]\nname = \"a\"";
    assert_eq!(Scenario::from_toml("s.toml", text).unwrap_err().to_string(), format!("s.toml:7: streams[1]: {kinds}"));
    let text = "name = \"x\"\nrun_length = \"all_done\"\n[[streams]]\nname = \"a\"\n[streams.sequential]\nstreams = 1\ndirection = \"read\"\nblock = \"4KiB\"";
    let error = Scenario::from_toml("s.toml", text).unwrap_err().to_string();
    assert!(error.starts_with("s.toml:2: run_length: no stream ends; "), "{error}");
}

#[test]
fn requests_that_do_not_fit_the_system_are_refused() {
    let everything = everything();
    let error = |luns: &[(&str, u64)], sector_bytes: u32| {
        ScenarioRun::new(&everything, &fake::luns(luns), sector_bytes, 1).err().unwrap().to_string()
    };
    assert_eq!(
        error(&[("data", 512 << 20), ("logs", 1 << 20)], 512),
        "streams[2].lun: the system has no LUN \"log\"; allowed: data, logs, or omit the key for the whole system"
    );
    assert_eq!(error(&[], 512), "luns: the system has no LUN or no sectors");
    assert_eq!(error(&[("data", 1_000)], 512), "luns: data: LUNs must be whole sectors, one after another");
    // Each of three tracks gets a part of 10 % of 1 MiB.
    assert_eq!(
        error(&[("data", 1 << 20), ("log", 1 << 20)], 512),
        "streams[6].video.frame: no frame fits in a track of 34816 bytes"
    );
    assert_eq!(
        error(&[("data", 512 << 20), ("log", 1 << 20)], 4096),
        "streams[7].transactions.lines[0].size: 2048 bytes is not a multiple of the sector size (4096 bytes)"
    );
    let mut bytes = everything.clone();
    bytes.streams[0].range = serde_json::from_str("[\"1GB\", \"2GB\"]").unwrap();
    let error = ScenarioRun::new(&bytes, &luns(&[("data", GB / 512 * 512), ("log", 1 << 20)]), 512, 1).err().unwrap();
    assert!(error.to_string().starts_with("streams[0].range: the range ends at 2GB; the LUN holds "), "{error}");
}
