//! Schedule files: what they may contain, and the messages for invalid ones.

use std::fs;
use std::path::Path;

use headstack_sim::faults::{Fault, RequestKind, Schedule, Stretch};
use headstack_sim::{Constant, Model};
use headstack_workload::{Bytes, DurationNs};

fn model(name: &str) -> Model {
    let system = headstack_catalogue::load_system(name, &Default::default()).expect("the catalogue has this system");
    Model::System(system.description())
}

fn parse(text: &str, model: &Model) -> Result<Schedule, String> {
    headstack_catalogue::parse_faults("bad.toml", text, Path::new(""), model).map_err(|error| error.to_string())
}

#[test]
fn a_schedule_sets_faults_and_times() {
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
fn an_error_names_file_line_key_and_allowed_values() {
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
            "bad.toml:5: fault[0].time: 0ns is out of range; must be more than 0ns",
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
            "bad.toml:5: fault[0].ranges: 1000000000000+4096 is outside",
            &["maximum is 120"],
        ),
        (
            &drive,
            "what = \"media-error\"\nranges = [{ lba = 1, length = \"4KiB\" }]",
            "bad.toml:5: fault[0].ranges: each range must have either offset and length, or lba and blocks",
            &[],
        ),
        (
            &drive,
            "what = \"media-error\"\nrecovery = \"limited\"\ntime = \"1s\"\nranges = [{ lba = 1 }]",
            "bad.toml:6: fault[0].time: recovery also sets the time",
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
        (&array, "what = \"scrub\"\nrepair = true\nfor = \"1s\"", "bad.toml:6: fault[0].for: ", &["instantaneous"]),
        (&drive, "what = \"scrub\"", "bad.toml:4: fault[0].what: ", &["array"]),
        (
            &array,
            "what = \"member-fails\"\nmember = \"d1\"\nfor = \"1s\"",
            "bad.toml:6: fault[0].for: ",
            &["instantaneous"],
        ),
        (&drive, "what = \"battery-fails\"", "bad.toml:4: fault[0].what: ", &["array"]),
        (
            &constant,
            "what = \"fail-slow\"\ntime = \"1s\"",
            "bad.toml:4: fault[0].what: a constant device has no media",
            &[],
        ),
        (
            &constant,
            "what = \"drop-out\"\nfor = \"0s\"",
            "bad.toml:5: fault[0].for: the fault ends before it begins",
            &[],
        ),
        (
            &constant,
            "what = \"drop-out\"\nuntil = \"9s\"",
            "bad.toml:5: fault[0].until: the fault ends before",
            &["10s"],
        ),
        (
            &constant,
            "what = \"drop-out\"\nuntil = \"11s\"\nfor = \"1s\"",
            "bad.toml:6: fault[0].for: until",
            &["one of"],
        ),
        (
            &constant,
            "what = \"link-resets\"\ntime = \"2s\"\nevery = \"1s\"",
            "bad.toml:6: fault[0].every: the link would never be up",
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

#[test]
fn trigger_and_damage_errors_name_key_and_allowed_values() {
    let (drive, array) = (model("wd1200bb"), model("md-raid5-8x2tb"));
    let cases: &[(&Model, &str, &str, &[&str])] = &[
        (&drive, "what = \"errno\"", "bad.toml:2: fault[0].at: this key is missing", &["write = 1000"]),
        (&drive, "what = \"errno\"\nat = { flushs = 7 }", "bad.toml:4: fault[0].at", &["did you mean `flush`", "trim"]),
        (&drive, "what = \"errno\"\nat = 7", "bad.toml:4: fault[0].at: invalid type: integer `7`", &["{ flush = 7 }"]),
        (&drive, "what = \"errno\"\nat = { flush = 0 }", "bad.toml:4: fault[0].at: 0 is not a number", &["1 or more"]),
        (&drive, "what = \"errno\"\nafter = { write = 7 }", "bad.toml:4: fault[0].after", &["`writes`"]),
        (
            &drive,
            "what = \"errno\"\nafter = { writes = 7 }\nat = { write = 7 }",
            "bad.toml:4: fault[0].after: at already counts requests",
            &["one of the two"],
        ),
        (&drive, "what = \"errno\"\nevery = \"2s\"", "bad.toml:4: fault[0].every: \"2s\" is not a number", &["10"]),
        (&drive, "what = \"errno\"\nevery = 0", "bad.toml:4: fault[0].every: 0 is not a number of requests", &[]),
        (
            &drive,
            "what = \"power-cut\"\nafter = { writes = 9 }\nevery = 2",
            "bad.toml:5: fault[0].every: at or after already sets the time",
            &[],
        ),
        (&drive, "what = \"errno\"\ntouching = \"1TB..2TB\"", "bad.toml:4: fault[0].touching: ", &["120"]),
        (
            &drive,
            "what = \"errno\"\ncontaining = \"0x123\"",
            "bad.toml:4: fault[0].containing: \"0x123\" is not",
            &["0x"],
        ),
        (
            &drive,
            "what = \"errno\"\ntouching = \"0..1MiB\"\nat = { flush = 1 }",
            "bad.toml:5: fault[0].at: a flush has neither address",
            &["touching"],
        ),
        (
            &drive,
            "what = \"errno\"\nwhile = \"rebuilding\"",
            "bad.toml:4: fault[0].while: the system is not an array",
            &[],
        ),
        (
            &array,
            "what = \"errno\"\nwhile = \"building\"",
            "bad.toml:4: fault[0].while: unknown value",
            &["rebuilding"],
        ),
        (
            &drive,
            "what = \"errno\"\nat = \"1s\"\nfrom = \"2s\"",
            "bad.toml:5: fault[0].from: at is already a time",
            &[],
        ),
        (&drive, "what = \"errno\"\nevery = 2\nerrno = \"EPERM\"", "bad.toml:5: fault[0].errno: ", &["EROFS"]),
        (
            &drive,
            "what = \"errno\"\nevery = 2\nkinds = [\"write\"]\nunflushed = \"drop\"",
            "bad.toml:6: fault[0].unflushed: the kinds include no flush",
            &[],
        ),
        (
            &array,
            "what = \"misdirect\"\nevery = 2\nmember = \"d1\"\ndistance = \"64KiB\"",
            "bad.toml:5: fault[0].member: members do not swap data",
            &["omit this key"],
        ),
        (
            &array,
            "what = \"corrupt\"\nevery = 2\nmember = \"d1\"\non = \"write\"\nhow = \"zeros\"",
            "bad.toml:5: fault[0].member: only stored data of a member can be corrupted",
            &["rest"],
        ),
        (
            &array,
            "what = \"lose-write\"\nevery = 2\nmember = \"d9\"",
            "bad.toml:5: fault[0].member: no member",
            &["d7"],
        ),
        (
            &drive,
            "what = \"misdirect\"\nevery = 2\ndistance = \"100B\"",
            "bad.toml:5: fault[0].distance: 100B is not allowed; must be a whole number of blocks",
            &["512 B"],
        ),
        (
            &drive,
            "what = \"misdirect\"\nevery = 2\ndistance = \"far\"",
            "bad.toml:5: fault[0].distance: \"far\" is not",
            &[],
        ),
        (
            &drive,
            "what = \"shorn-write\"\nevery = 2\npart = \"8/3\"",
            "bad.toml:5: fault[0].part: \"8/3\" is not a fraction",
            &[],
        ),
        (
            &drive,
            "what = \"corrupt\"\nevery = 2\non = \"write\"\nhow = \"zeros\"\nbits = 3",
            "bad.toml:7: fault[0].bits: this damage replaces whole sectors",
            &["sectors"],
        ),
        (
            &drive,
            "what = \"corrupt\"\nevery = 2\non = \"write\"\nhow = \"pattern\"",
            "bad.toml:2: fault[0].pattern: this key is missing",
            &[],
        ),
        (
            &drive,
            "what = \"corrupt\"\nat = \"1s\"\non = \"rest\"\nhow = \"zeros\"\nfor = \"1s\"",
            "bad.toml:7: fault[0].for: this fault is instantaneous",
            &[],
        ),
    ];
    for (model, keys, begins, contains) in cases {
        let error = parse(&format!("seed = 1\n[[fault]]\n{keys}\n"), model).expect_err(keys);
        assert!(error.starts_with(begins), "{keys}\n  {error}\n  {begins}");
        for part in *contains {
            assert!(error.contains(part), "{error}: no {part}");
        }
    }
    let looks = "[[fault]]\nwhat = \"lose-write\"\ncontaining = \"x\"\n";
    let schedule = parse(looks, &drive).unwrap();
    let (index, (key, message)) = schedule.check_without_contents().unwrap_err();
    assert_eq!(
        (index, key, message.as_str()),
        (0, "containing", "a simulation stores no data; use this key with a live export")
    );
}

#[test]
fn blkdebug_files_are_read_as_far_as_a_device_supports_them() {
    let drive = model("wd1200bb");
    let text = "# of QEMU\n[inject-error]\nevent = \"read_aio\"\niotype = \"read\"\nerrno = \"5\"\nsector = \"2048\"\n\
                once = \"on\"\nimmediately = \"off\"\n\n[set-state]\nstate = \"1\"\nevent = \"flush_to_disk\"\n\
                new_state = \"2\"\n[inject-error]\nevent = \"none\"\nstate = \"2\"\niotype = \"write\"\nerrno = \"28\"\n";
    let ours = "[[fault]]\nat = { read = 1 }\nonce = true\nwhat = \"errno\"\nkinds = [\"read\"]\n\
                ranges = [{ offset = 1048576, length = 512 }]\n\
                [[fault]]\nwhat = \"set-state\"\nto = 2\nstate = 1\nevery = { flush = 1 }\n\
                [[fault]]\nwhat = \"errno\"\nerrno = \"ENOSPC\"\nkinds = [\"write\"]\nstate = 2\n";
    assert_eq!(parse(text, &drive).unwrap(), parse(ours, &drive).unwrap());
    for (text, told) in [
        ("[inject-error]\nevent = \"l2_update\"\n", "bad.toml:2: event: l2_update is internal to QEMU"),
        (
            "[inject-error]\nevent = \"none\"\niotype = \"block-status\"\n",
            "bad.toml:3: iotype: block-status is not a device request",
        ),
        (
            "[inject-error]\nevent = \"none\"\nerrno = \"12\"\n",
            "bad.toml:3: errno: 12 is not supported; allowed: 5 (EIO), 28",
        ),
        ("[inject-error]\nerrno = \"5\"\n", "bad.toml:1: event: this key is missing"),
        (
            "[inject-error]\nevent = \"none\"\nspeed = \"5\"\n",
            "bad.toml:3: speed: not a key of [inject-error]; allowed: event",
        ),
        ("[set-state]\nevent = \"none\"\nnew_state = \"2\"\n", "bad.toml:2: event: the event none never occurs"),
        ("[set-state]\nevent = \"read_aio\"\n", "bad.toml:1: new_state: this key is missing"),
        ("[inject-error]\nnonsense\n", "bad.toml:2: neither a section nor a key"),
        ("[inject-error]\nevent = \"none\"\n[suspend]\n", "bad.toml:3: [suspend]: not a section of blkdebug"),
    ] {
        let error = parse(text, &drive).expect_err(text);
        assert!(error.starts_with(told), "{text}\n  {error}\n  {told}");
    }
}
