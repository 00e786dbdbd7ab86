//! Schedule files: what they may say, and what is said of those that are wrong.

use std::fs;
use std::path::Path;

use headstack_sim::faults::{Fault, RequestKind, Schedule, Stretch};
use headstack_sim::{Constant, Model};
use headstack_workload::{Bytes, DurationNs};

fn model(name: &str) -> Model {
    let system = headstack_catalogue::load_system(name, &Default::default()).expect("it is in the catalogue");
    Model::System(system.description())
}

fn parse(text: &str, model: &Model) -> Result<Schedule, String> {
    headstack_catalogue::parse_faults("bad.toml", text, Path::new(""), model).map_err(|error| error.to_string())
}

#[test]
fn a_schedule_says_what_goes_wrong_when() {
    let text = r#"
seed = 7

[[fault]]
at = "10s"
for = "2.5s"
what = "hang"
kinds = ["write", "flush"]

[[fault]]
at = "1s"
until = "1min"
what = "media-error"
ranges = [{ offset = "1GiB", length = "64KiB" }, { lba = 2048, blocks = 8 }]
time = "7s"
"#;
    let schedule = parse(text, &model("wd1200bb")).unwrap();
    assert_eq!(schedule.seed, 7);
    let hang = Fault::Hang { ranges: vec![], kinds: vec![RequestKind::Write, RequestKind::Flush] };
    assert_eq!(schedule.faults[0].fault, hang);
    assert_eq!(schedule.faults[0].span_ns(), Ok((10_000_000_000, 12_500_000_000)));
    assert_eq!(schedule.faults[1].span_ns(), Ok((1_000_000_000, 60_000_000_000)));
    let Fault::MediaError { ranges, time, .. } = &schedule.faults[1].fault else { panic!("not a media error") };
    assert_eq!(
        ranges[0],
        Stretch { offset: Some(Bytes(1 << 30)), length: Some(Bytes(64 << 10)), ..Stretch::default() }
    );
    assert_eq!(ranges[1], Stretch { lba: Some(2048), blocks: Some(8), ..Stretch::default() });
    assert_eq!(*time, Some(DurationNs(7_000_000_000)));
}

#[test]
fn an_error_names_file_line_and_key_and_what_is_allowed() {
    let (drive, array) = (model("wd1200bb"), model("md-raid5-8x2tb"));
    let constant = Model::Constant(Constant { latency_ns: 1, capacity_bytes: 1 << 20 });
    let cases: &[(&Model, &str, &str, &[&str])] = &[
        (
            &drive,
            "what = \"hangs\"",
            "bad.toml:4: fault[0].what: unknown value `hangs`",
            &["did you mean `hang`", "drop-out"],
        ),
        (&drive, "", "bad.toml:2: fault[0].what: ", &["missing"]),
        (
            &drive,
            "what = \"hang\"\nkinds = [\"reads\"]",
            "bad.toml:5: fault[0].kinds[0]: unknown value `reads`",
            &["read, write"],
        ),
        (&drive, "what = \"hang\"\ntime = \"1s\"", "bad.toml:5: fault[0].time: unknown key", &["ranges, kinds"]),
        (&drive, "what = \"fail-slow\"", "bad.toml:2: fault[0].time: this key is missing", &[]),
        (
            &drive,
            "what = \"fail-slow\"\ntime = \"7\"",
            "bad.toml:5: fault[0].time: \"7\" is not a duration",
            &["ms, s"],
        ),
        (&drive, "what = \"fail-slow\"\ntime = 7", "bad.toml:5: fault[0].time: invalid type: integer `7`", &["unit"]),
        (
            &drive,
            "what = \"fail-slow\"\ntime = \"0s\"",
            "bad.toml:5: fault[0].time: 0ns: more than 0ns is allowed",
            &[],
        ),
        (
            &drive,
            "what = \"fail-slow\"\ntime = \"1s\"\npercent = 101",
            "bad.toml:6: fault[0].percent: 101",
            &["up to 100"],
        ),
        (&drive, "what = \"weak-sectors\"\nturns = 0", "bad.toml:5: fault[0].turns: ", &["1 or more"]),
        (&drive, "what = \"media-error\"", "bad.toml:2: fault[0].ranges: no sectors", &["ddrescue"]),
        (
            &drive,
            "what = \"media-error\"\nranges = [{ offset = \"1TB\", length = \"4KiB\" }]",
            "bad.toml:5: fault[0].ranges: 1000000000000+4096 does not lie in it",
            &["up to 120"],
        ),
        (
            &drive,
            "what = \"media-error\"\nranges = [{ lba = 1, length = \"4KiB\" }]",
            "bad.toml:5: fault[0].ranges: each has offset and length, or lba and blocks",
            &[],
        ),
        (
            &drive,
            "what = \"media-error\"\nrecovery = \"limited\"\ntime = \"1s\"\nranges = [{ lba = 1 }]",
            "bad.toml:6: fault[0].time: recovery says it already",
            &[],
        ),
        (&drive, "what = \"media-error\"\nmap = \"no.map\"", "bad.toml:5: fault[0].map: no.map: No such file", &[]),
        (
            &drive,
            "what = \"media-error\"\nmember = \"d0\"\nranges = [{ lba = 1 }]",
            "bad.toml:5: fault[0].member: ",
            &[],
        ),
        (
            &array,
            "what = \"media-error\"\nranges = [{ lba = 1 }]",
            "bad.toml:2: fault[0].member: this key is missing",
            &["d7"],
        ),
        (
            &array,
            "what = \"member-fails\"\nmember = \"d8\"",
            "bad.toml:5: fault[0].member: no member is called \"d8\"",
            &["d7"],
        ),
        (&array, "what = \"spare-added\"\ngroup = \"x\"", "bad.toml:5: fault[0].group: no group is called \"x\"", &[]),
        (&array, "what = \"scrub\"\ngroup = \"x\"", "bad.toml:5: fault[0].group: no group is called \"x\"", &[]),
        (&array, "what = \"scrub\"\nrepair = true\nfor = \"1s\"", "bad.toml:6: fault[0].for: ", &["moment"]),
        (&drive, "what = \"scrub\"", "bad.toml:4: fault[0].what: ", &["array"]),
        (&array, "what = \"member-fails\"\nmember = \"d1\"\nfor = \"1s\"", "bad.toml:6: fault[0].for: ", &["moment"]),
        (&drive, "what = \"battery-fails\"", "bad.toml:4: fault[0].what: ", &["array"]),
        (
            &constant,
            "what = \"fail-slow\"\ntime = \"1s\"",
            "bad.toml:4: fault[0].what: a constant device has no media",
            &[],
        ),
        (&constant, "what = \"drop-out\"\nfor = \"0s\"", "bad.toml:5: fault[0].for: ends before it begins", &[]),
        (&constant, "what = \"drop-out\"\nuntil = \"9s\"", "bad.toml:5: fault[0].until: ends before", &["10s"]),
        (
            &constant,
            "what = \"drop-out\"\nuntil = \"11s\"\nfor = \"1s\"",
            "bad.toml:6: fault[0].for: until",
            &["one of"],
        ),
        (
            &constant,
            "what = \"link-resets\"\ntime = \"2s\"\nevery = \"1s\"",
            "bad.toml:6: fault[0].every: the link is never up",
            &["more than 2s"],
        ),
    ];
    for (model, keys, begins, contains) in cases {
        let text = format!("seed = 1\n[[fault]]\nat = \"10s\"\n{keys}\n");
        let error = parse(&text, model).expect_err(keys);
        assert!(error.starts_with(begins), "{keys}\n  {error}\n  {begins}");
        for part in *contains {
            assert!(error.contains(part), "{error}: no {part}");
        }
    }
    let error = parse("sed = 1\n", &constant).unwrap_err();
    assert!(error.starts_with("bad.toml:1: sed: unknown key; did you mean `seed`?"), "{error}");
}

#[test]
fn a_map_of_ddrescue_is_media_errors_with_its_own_lines() {
    let folder = std::env::temp_dir().join(format!("headstack-map-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let schedule = "[[fault]]\nat = \"0s\"\nwhat = \"media-error\"\nmap = \"disk.map\"\n";
    fs::write(folder.join("faults.toml"), schedule).unwrap();
    fs::write(folder.join("disk.map"), "0x0 +\n0 1024 +\n0x400 512 -\n0x600 512 /\n0x800 0x200 *\n").unwrap();
    let drive = model("wd1200bb");
    let read = headstack_catalogue::load_faults(&folder.join("faults.toml"), &drive).unwrap();
    let Fault::MediaError { ranges, map, .. } = &read.faults[0].fault else { panic!("not a media error") };
    let expected = [1024, 1536, 2048].map(|start| Stretch::of_bytes(start, 512));
    assert_eq!((ranges.as_slice(), map), (&expected[..], &None));
    fs::write(folder.join("disk.map"), "0x0 +\n0 1024 %\n").unwrap();
    let error = headstack_catalogue::load_faults(&folder.join("faults.toml"), &drive).unwrap_err();
    assert_eq!((error.file.ends_with("disk.map"), error.line), (true, Some(2)), "{error}");
    fs::remove_dir_all(&folder).unwrap();
}
