//! The five drives of DiskSim's validation suite.

use super::*;

/// Returns the path of a file of DiskSim's validation suite if it is available.
fn validation_file(name: &str) -> Option<PathBuf> {
    let shared = std::env::var_os("HEADSTACK_SHARED")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"), PathBuf::from);
    let path = shared.join("validation/disksim").join(name);
    if !path.is_file() {
        headstack_needs::lacks(headstack_needs::Need::Data, format_args!("{} is missing", path.display()));
        return None;
    }
    Some(path)
}

/// Name, number of blocks in the zones, stated number of blocks.
const VALIDATION: [(&str, u64, u64); 5] = [
    ("atlas10k", 17_966_953, 17_938_986),
    ("barracuda", 4_217_670, 4_110_000),
    ("cheetah9LP", 17_918_387, 17_783_240),
    ("dec_rz26", 2_050_860, 2_050_860),
    ("hp_c2247a", 2_054_864, 2_054_864),
];

#[test]
fn the_validation_drives_have_their_sizes() {
    for (name, held, stated) in VALIDATION {
        let Some(path) = validation_file(&format!("{name}.parv")) else {
            continue;
        };
        let imported = import(&path).unwrap_or_else(|error| panic!("{error}"));
        // The RZ26 states a negative write settling time, two drives never disconnect, and three state fewer blocks
        // than their zones hold.
        let warnings_with = |what: &str| imported.warnings.iter().filter(|warning| warning.contains(what)).count();
        let (holds, settles) = (warnings_with("Hold bus entire"), warnings_with("settling"));
        assert_eq!(
            holds,
            match name {
                "dec_rz26" => 2,
                "hp_c2247a" => 1,
                _ => 0,
            },
            "{:?}",
            imported.warnings
        );
        assert_eq!(settles, usize::from(name == "dec_rz26"), "{:?}", imported.warnings);
        let blocks = format!("{stated} blocks are stated, but the zones hold {held}; {held} is used");
        assert_eq!(warnings_with(&blocks), usize::from(stated != held), "{:?}", imported.warnings);
        assert_eq!(imported.warnings.len(), holds + settles + usize::from(stated != held), "{:?}", imported.warnings);
        let [drive] = &imported.drives[..] else { panic!("{name}") };
        assert_eq!(drive.instances, ["disk0"]);
        let geometry = &drive.description.geometry;
        let sum: u64 = (0..geometry.zones.len()).map(|zone| zone_blocks(geometry, zone)).sum();
        assert_eq!((sum, geometry.logical_blocks), (held, held), "{name}");
        Drive::new(&drive.description, 1).unwrap();
    }
}

#[test]
fn a_validation_drive_is_the_same_from_each_of_its_files() {
    for (name, ..) in VALIDATION {
        let (Some(parv), Some(specs)) =
            (validation_file(&format!("{name}.parv")), validation_file(&format!("{name}.diskspecs")))
        else {
            continue;
        };
        let model = parv.with_extension("model");
        let model = if model.is_file() { model } else { parv.with_file_name(format!("{name}_validate.model")) };
        let [parv, specs, model] = [parv, specs, model].map(|path| import(&path).unwrap().drives.remove(0).description);
        assert_eq!(parv.geometry, model.geometry);
        assert_eq!(specs.mechanics.seek, model.mechanics.seek);
        assert_eq!((parv.overheads, &parv.buffer), (specs.overheads, &specs.buffer));
    }
}

#[test]
fn no_parameter_of_the_validation_drives_is_dropped() {
    for (name, ..) in VALIDATION {
        let Some(parv) = validation_file(&format!("{name}.parv")) else {
            continue;
        };
        let imported = import(&parv).unwrap();
        let drive = &imported.drives[0];
        let mut named = named_lines(&drive.sources, &drive.unmapped);
        named.append(&mut named_lines(&imported.host.sources, &imported.host.unmapped));
        let specs = parv.with_extension("diskspecs");
        let text = std::fs::read_to_string(&specs).unwrap();
        let model = text.split_once("source ").unwrap().1.split(',').next().unwrap();
        let model = parv.with_file_name(model);
        for (path, depth) in [(parv, 1), (specs, 9), (model, 9)] {
            let text = std::fs::read_to_string(&path).unwrap();
            let missing: Vec<usize> = parameter_lines(&text, depth)
                .filter(|line| !named.contains(&format!("{}:{line}", path.display())))
                .collect();
            assert!(missing.is_empty(), "{}: lines {missing:?}", path.display());
        }
        assert!(drive.unmapped.iter().all(|entry| entry.why != "unknown parameter"), "{name}");
    }
}

#[test]
fn figures_of_the_validation_drives() {
    let load =
        |name: &str| Some(import(&validation_file(&format!("{name}.parv"))?).unwrap().drives.remove(0).description);
    if let Some(hp) = load("hp_c2247a") {
        assert_eq!((hp.geometry.heads, hp.geometry.zones.len()), (13, 8));
        assert_eq!(hp.geometry.sparing, Sparing::TracksAtZoneEnd);
        assert_eq!(hp.geometry.zones[1].offset_turns, 14.0 / 92.0);
        assert_eq!(hp.geometry.zones[0].slips.len(), 12);
        assert_eq!(hp.overheads.read_hit_ns, AfterReadWrite { after_read: 953_430, after_write: 953_430 });
        assert_eq!(hp.overheads.minimum_seek_delay_ns, 600_000);
        assert_eq!(hp.interface.disconnect.unwrap().extra.unwrap().command_ns, 642_440);
        assert_eq!(hp.interface.read_ns_per_byte, 170_100.0 / 512.0);
        assert_eq!(hp.interface.write_ns_per_byte, 186_860.0 / 512.0);
        let SeekCurve::TwoPiece { boundary_cylinders, first_ns, .. } = &hp.mechanics.seek else { panic!() };
        assert_eq!((*boundary_cylinders, first_ns[0], first_ns.len()), (300, 2_890_000, 10));
    }
    if let Some(dec) = load("dec_rz26") {
        assert_eq!(dec.mechanics.write_settle_ns, 0, "a write cannot settle in less time than a read");
        assert_eq!((dec.mechanics.rpm, dec.interface.disconnect), (5_360.0, None));
        let SeekCurve::Points(points) = &dec.mechanics.seek else { panic!() };
        assert_eq!((points.len(), points[0]), (64, (1, 1_014_397)));
        assert_eq!(dec.geometry.zones[0].reserved_sectors, 23_142);
    }
    if let Some(atlas) = load("atlas10k") {
        assert_eq!((atlas.geometry.order, atlas.geometry.sparing), (BlockOrder::SerpentineInZone, Sparing::ZoneEnd));
        assert_eq!(atlas.geometry.zones[0].track_skew_turns, 63.0 / 334.0);
        assert_eq!(atlas.buffer.read_ahead, ReadAhead::TrackAfterSequential);
        assert_eq!((atlas.buffer.write_cache, atlas.buffer.segments), (WriteCache::On, 10));
        assert!(atlas.mechanics.read_on_arrival && atlas.buffer.keep_passing_sectors);
        assert_eq!(atlas.interface.read_ns_per_byte, 99_000.0 / 512.0);
    }
    if let Some(barracuda) = load("barracuda") {
        assert_eq!(barracuda.geometry.sparing, Sparing::RangeEnd { cylinders: 6 });
        assert_eq!(barracuda.buffer.write_cache, WriteCache::Appending);
    }
}
