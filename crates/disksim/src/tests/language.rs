//! The parameter language: subtypes, lists, files, errors and arbitrary text.

use super::*;

#[test]
fn subtypes_inherit_and_override() {
    let text = disk(&[]) + "TOY FAST { Max queue length = 32 }\nFAST FASTER { Max queue length = 64 }\n";
    let imported = parse_str("toy", &text).unwrap();
    let depths: Vec<(&str, u32)> =
        imported.drives.iter().map(|drive| (drive.name.as_str(), drive.description.queue.depth)).collect();
    assert_eq!(depths, [("TOY", 16), ("FAST", 32), ("FASTER", 64)]);
    assert_eq!(imported.drives[2].sources["queue.depth"], "A toy:69");
    assert_eq!(imported.drives[2].description.buffer, imported.drives[0].description.buffer);
}

#[test]
fn the_first_of_two_definitions_counts() {
    let again = disk(&[("Max queue length", "99")]);
    let imported = parse_str("toy", &(disk(&[]) + &again)).unwrap();
    assert_eq!(imported.drives.len(), 1);
    assert_eq!(imported.drives[0].description.queue.depth, 16);
    let ignored = "toy:68: `TOY` is already defined at toy:1; this one is ignored";
    assert!(imported.warnings.iter().any(|warning| warning == ignored), "{:?}", imported.warnings);
}

#[test]
fn a_model_named_twice_is_the_first_of_them() {
    let other = disk(&[]).replace("disk TOY {", "disk OTHER {").replace("surfaces = 2", "surfaces = 9");
    let imported = parse_str("toy", &(disk(&[]) + &other)).unwrap();
    assert_eq!(imported.drives[1].name, "OTHER");
    assert_eq!(imported.drives[1].description.geometry.heads, 2);
}

#[test]
fn several_names_can_share_a_value() {
    let text = disk(&[("Read hit over. after read", "-"), ("Read hit over. after write", "-")])
        .replace("  Max queue", "  [ Read hit over. after read, Read hit over. after write ] = 0.35,\n  Max queue");
    let cost = only(&text).description.overheads.read_hit_ns;
    assert_eq!((cost.after_read, cost.after_write), (720_000, 720_000));
}

#[test]
fn a_parameter_set_twice_keeps_the_last_value_with_a_warning() {
    let imported = parse_str("toy", &disk(&[("Print stats", "0,\nMax queue length = 3")])).unwrap();
    assert_eq!(imported.drives[0].description.queue.depth, 3);
    assert!(imported.warnings.iter().any(|warning| warning.contains("set twice")), "{:?}", imported.warnings);
}

const HOST: &str = "disksim_iodriver D { Use queueing in subsystem = 1,\n\
    Scheduler = disksim_ioqueue { Scheduling policy = 4 } }\n\
    disksim_bus FAST { Arbitration time = 0.5, Read block transfer time = 0.01, Write block transfer time = 0.01 }\n\
    disksim_bus SLOW { Arbitration time = 0.5, Read block transfer time = 0.256, Write block transfer time = 0.512 }\n\
    disksim_ctlr C { Bulk sector transfer time = 0.128 }\n\
    disksim_logorg ORG { Stripe unit = 64, devices = [ a0 .. a2 ] }\n\
    instantiate [ d ] as D\ninstantiate [ fast ] as FAST\ninstantiate [ slow ] as SLOW\ninstantiate [ c ] as C\n";

fn experiment(rest: &str) -> Imported {
    let main = HOST.to_owned() + "source sub/toy.diskspecs\n" + rest;
    let specs = disk(&[]).replace(&toy_model().replace('\n', " "), "source toy.model");
    let mechanics = MECHANICS.replace("constant, Constant seek time = 4.5", "extracted, Full seek curve = toy.seek");
    let files = [
        ("dir/main.parv", main.as_str()),
        ("dir/sub/toy.diskspecs", &specs),
        ("dir/sub/toy.model", &model(&mechanics, LAYOUT, ZONE)),
        ("dir/sub/toy.seek", "1, 1.0\n10, 2.0\n"),
    ];
    import_files(&files).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn an_experiment_sources_its_drive_and_names_its_instances() {
    let imported = experiment("instantiate [ disk0 .. disk3, spare ] as TOY\n");
    let drive = &imported.drives[0];
    assert_eq!(drive.instances, ["disk0", "disk1", "disk2", "disk3", "spare"]);
    assert_eq!(drive.description.mechanics.seek, SeekCurve::Points(vec![(1, 1_000_000), (10, 2_000_000)]));
    assert_eq!(drive.sources["geometry.heads"], "A dir/sub/toy.model:1");
    let left_out = imported.host.unmapped.iter().find(|entry| entry.parameter == "Stripe unit").unwrap();
    assert_eq!((left_out.block.as_str(), left_out.line), ("ORG", 6));
}

#[test]
fn the_slowest_component_above_a_drive_sets_its_transfer_time() {
    let topology = |bus: &str| {
        experiment(&format!(
            "instantiate [ a ] as TOY\ntopology disksim_iodriver d [ disksim_ctlr c [ disksim_bus {bus} [ disksim_disk a [] ] ] ]"
        ))
    };
    let byte_ns = |imported: &Imported| {
        let interface = imported.drives[0].description.interface;
        (interface.read_ns_per_byte, interface.write_ns_per_byte)
    };
    let fast = topology("fast");
    assert_eq!(byte_ns(&fast), (250.0, 250.0));
    assert_eq!(fast.drives[0].sources["interface.read_ns_per_byte"], "A dir/sub/toy.diskspecs:6, A dir/main.parv:5");
    let slow = topology("slow");
    assert_eq!(byte_ns(&slow), (500.0, 1_000.0));
    assert_eq!(slow.drives[0].sources["interface.write_ns_per_byte"], "A dir/sub/toy.diskspecs:6, A dir/main.parv:4");
    assert_eq!(byte_ns(&experiment("instantiate [ a ] as TOY")), (500.0, 1_000.0));
    assert_eq!((slow.host.buses[1].read_ns_per_block, slow.host.buses[1].arbitration_ns), (256_000, 500_000));
}

#[test]
fn the_driver_decides_how_many_commands_a_drive_gets() {
    let imported = experiment("instantiate [ a ] as TOY");
    let interface = imported.drives[0].description.interface;
    assert_eq!((interface.host_elevator, interface.host_tags), (Policy::Sstf, 16));
    assert_eq!(imported.host.driver, Some(Driver { queueing: true, elevator: Policy::Sstf }));
    let sources = &imported.drives[0].sources;
    assert_eq!(sources["interface.host_tags"], "A dir/main.parv:1");
    assert_eq!(sources["interface.host_elevator"], "A dir/main.parv:2, A dir/main.parv:2");
}

#[test]
fn a_drive_that_is_not_instantiated_is_left_out_with_a_warning() {
    let imported = experiment("TOY OTHER { Max queue length = 2 }\ninstantiate [ a ] as OTHER");
    assert_eq!(imported.drives.len(), 1);
    assert_eq!(imported.drives[0].description.queue.depth, 2);
    assert!(imported.warnings.iter().any(|warning| warning.contains("drive `TOY` is not instantiated")));
}

#[test]
fn refusals_name_file_line_and_key_on_one_line() {
    let cases = [
        (disk(&[("Max queue length", "0")]), "toy:4: Max queue length: must be an integer from 1 to 65536, not 0"),
        (disk(&[("Max queue length", "2.0")]), "toy:4: Max queue length: must be an integer"),
        (disk(&[("Max queue length", "-")]), "toy:1: Max queue length: this parameter is missing from TOY"),
        (disk(&[("Fast write level", "3")]), "toy:34: Fast write level: must be an integer from 0 to 2, not 3"),
        (disk(&[("Minimum seek delay", "-0.5")]), "toy:65: Minimum seek delay: must be a number from 0"),
        (disk(&[("Minimum seek delay", "1e5")]), "toy:65: Minimum seek delay: must be a number from 0"),
        (disk(&[("Scheduler", "5")]), "toy:3: Scheduler: must be a block disksim_ioqueue { ... }, not 5"),
        (disk(&[("Print stats", "0,")]), "toy:67: Print stats: expected a parameter name (no comma"),
        (disk(&[("Print stats", "")]), "toy:67: Print stats: expected a number, a word"),
        ("dm_disk".to_owned(), "toy:1: dm_disk: expected a name and `{`, but the file ends here"),
        ("lamp X { }".to_owned(), "toy:1: lamp: unknown type"),
        ("\n\n= 5".to_owned(), "toy:3: expected a definition"),
        ("instantiate [ a ] as X".to_owned(), "toy:1: instantiate: no block is called `X`"),
        ("instantiate [ a ] is X".to_owned(), "toy:1: instantiate: expected `as`, found `is`"),
        ("disksim_pf P { a = [ d3 .. d1 ] }".to_owned(), "toy:1: a: expected two names with the same stem"),
        ("disksim_pf P { a = [ d1 .. d999999999 ] }".to_owned(), "toy:1: a: expands to too many names"),
        ("disksim_pf P { }".to_owned(), "toy: no drive description"),
        (String::new(), "toy: no drive description"),
        ("source other".to_owned(), "toy:1: source: cannot read `other`"),
    ];
    for (text, expected) in cases {
        let error = refusal(&text);
        assert!(error.starts_with(expected), "{error}\n  expected {expected}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

#[test]
fn impossible_mechanics_and_layouts_are_refused() {
    let mechanics = |from: &str, to: &str| model(&MECHANICS.replace(from, to), LAYOUT, ZONE);
    let layout = |from: &str, to: &str| model(MECHANICS, &LAYOUT.replace(from, to), ZONE);
    let zone = |from: &str, to: &str| model(MECHANICS, LAYOUT, &ZONE.replace(from, to));
    let cases = [
        (mechanics("trackSwitchPlusRotation", "averageRotation"), "Access time type: must be trackSwitchPlusRotation"),
        (mechanics("constant", "magic"), "Seek type: must be extracted, hplplus10"),
        (mechanics("6000", "0"), "Rotation speed (in rpms): must be"),
        (layout("dm_layout_g1", "dm_layout_g4"), "Layout Model: must be a block dm_layout_g1 { ... }; dm_layout_g4 is"),
        (layout("dm_layout_g1", "dm_layout_g2"), "Layout Model: must be a block dm_layout_g1 { ... }; dm_layout_g2 is"),
        (layout("used = 3", "used = 8"), "Layout Model.Rangesize for sparing: this parameter is missing"),
        (layout("ZONE", ""), "Layout Model.Zones: must be a list of 1 to 255 zones"),
        (layout("ZONE", "7"), "Layout Model.Zones[0]: must be a block dm_layout_g1_zone"),
        (layout("ZONE", "ZONE, ZONE"), "Layout Model.Zones[1].First cylinder number: must be an integer from 10 to 11"),
        (zone("number = 9", "number = 13"), "Layout Model.Zones[0].Last cylinder number: must be"),
        (zone("spares = 1", "spares = 51"), "Layout Model.Zones[0].Number of spares: must be an integer from 0 to 49"),
        (zone("= 10,", "= 980,"), "Layout Model.Zones[0].Number of spares: the empty space"),
        (zone("3, 120", "3, 4, 120"), "Layout Model.Zones[0].slips: 2 slips from place 3 on, but only 1"),
        (zone("3, 120", "3, 1000"), "Layout Model.Zones[0].slips: must be a list of integers from 0 to 999"),
        (zone("30, 49", "30"), "Layout Model.Zones[0].defects: must be a list of pairs"),
    ];
    for (text, expected) in cases {
        let error = refusal(&text);
        assert!(error.contains(expected), "{error}\n  expected {expected}");
    }
}

#[test]
fn source_in_a_circle_or_too_deep_is_refused() {
    let circle = import_files(&[("dir/main.parv", "source a"), ("dir/a", "\nsource main.parv")]);
    assert_eq!(circle.unwrap_err().to_string(), "dir/a:2: source: `main.parv` sources itself");
    let mut depth = 0;
    let endless = import_with(Path::new("f"), &mut |_| {
        depth += 1;
        Ok(format!("source f{depth}"))
    });
    assert!(endless.unwrap_err().message.contains("at most 64 levels"));
    let wide = import_with(Path::new("f"), &mut |path| {
        let name = path.display().to_string();
        Ok(if name.len() > 20 { String::new() } else { format!("source {name}a\nsource {name}b") })
    });
    assert!(wide.unwrap_err().message.contains("more than 1000 files"));
}

#[test]
fn deep_nesting_is_refused_not_overflowed() {
    for (start, level) in [
        ("disksim_pf P { a = ", "["),
        ("", "disksim_pf P { a = "),
        ("disksim_pf P { a = ", "disksim_pf { a = "),
        ("topology", " disksim_bus b ["),
    ] {
        let text = start.to_owned() + &level.repeat(100_000);
        assert!(refusal(&text).contains("nested too deeply"), "{level}");
    }
    let chain: String = (0..1_000).map(|i| format!("P{i} P{} {{ }}\n", i + 1)).collect();
    assert!(refusal(&format!("disksim_pf P0 {{ }}\n{chain}")).contains("at most 64 levels"));
}

#[test]
fn a_truncated_file_is_refused_at_any_length() {
    let text = disk(&[]);
    let end = text.trim_end().len();
    for cut in (1..end).filter(|&cut| text.is_char_boundary(cut)) {
        let error = refusal(&text[..cut]);
        assert!(error.starts_with("toy") && error.lines().count() == 1, "{error}");
    }
}

/// Imports `text` and checks that the model accepts every imported drive.
fn import_anything(text: &str) {
    match parse_str("fuzz", text) {
        Ok(imported) => {
            for drive in imported.drives {
                check(&drive.description).unwrap();
            }
        }
        Err(error) => assert_eq!(error.to_string().lines().count(), 1),
    }
}

const PIECES: [&str; 24] = [
    "{",
    "}",
    "[",
    "]",
    ",",
    "=",
    "..",
    "source x",
    "topology",
    "instantiate",
    "as",
    "dm_disk",
    "disksim_disk",
    "TOY",
    "a1",
    "a9",
    "0",
    "-1",
    "9223372036854775807",
    "0.5",
    "Model",
    "Zones",
    "#",
    "\n",
];

proptest! {
    #[test]
    fn any_text_is_imported_or_refused(text in "(?s).{0,300}") {
        import_anything(&text);
    }

    #[test]
    fn any_sequence_of_tokens_is_imported_or_refused(tokens in prop::collection::vec(prop::sample::select(&PIECES[..]), 0..60)) {
        import_anything(&tokens.join(" "));
    }

    #[test]
    fn a_mutated_drive_is_imported_or_refused(
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0..12usize, prop::sample::select(&PIECES[..])), 1..6)
    ) {
        let mut text = disk(&[]);
        for (at, length, piece) in edits {
            let start = at.index(text.len());
            let end = (start + length).min(text.len());
            text.replace_range(start..end, piece);
        }
        import_anything(&text);
    }

    /// Drives with numbers of any size are rejected, or imported as drives that the model accepts.
    #[test]
    fn a_drive_with_other_numbers_is_imported_or_refused(
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0..5_000i64, 0..4u32), 1..4)
    ) {
        let text = disk(&[]);
        let numbers: Vec<(usize, usize)> = {
            let mut ends = 0;
            text.split(' ').filter_map(|word| {
                let start = ends;
                ends += word.len() + 1;
                let digits = word.trim_end_matches([',', '\n']);
                digits.parse::<f64>().is_ok().then_some((start, start + digits.len()))
            }).collect()
        };
        let mut chosen: Vec<_> = changes.iter().map(|(at, number, zeros)| (numbers[at.index(numbers.len())], number * 10i64.pow(*zeros))).collect();
        chosen.sort_by_key(|((start, _), _)| std::cmp::Reverse(*start));
        chosen.dedup_by_key(|((start, _), _)| *start);
        let mut text = text;
        for ((start, end), number) in chosen {
            text.replace_range(start..end, &number.to_string());
        }
        import_anything(&text);
    }
}
