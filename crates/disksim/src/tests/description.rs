//! Each parameter is mapped to its key of the description, and no parameter is dropped.

use super::*;
use crate::mechanics::seek_points;

#[test]
fn a_drive_takes_every_parameter_that_has_a_counterpart() {
    let drive = only(&disk(&[])).description;
    assert_eq!(drive.name, "TOY");
    assert_eq!((drive.queue.depth, drive.queue.policy), (16, Policy::CLook));
    let buffer = &drive.buffer;
    assert_eq!((buffer.segments, buffer.segment_sectors), (7, 200));
    assert_eq!((buffer.dirty_extents_max, buffer.dirty_sectors_max), (3, 600));
    assert_eq!((buffer.read_ahead, buffer.write_cache), (ReadAhead::Cylinder, WriteCache::Appending));
    assert_eq!((buffer.read_ahead_min_sectors, buffer.read_ahead_max_sectors), (8, 180));
    assert_eq!(buffer.read_watermark, 0.5);
    assert!(buffer.read_ahead_on_hit && buffer.keep_passing_sectors && buffer.separate_write_segment);
    assert!(buffer.read_hits_on_arriving && buffer.read_hits_on_writes);
    assert!(drive.mechanics.read_on_arrival && !drive.mechanics.write_on_arrival);
    let interface = drive.interface;
    assert_eq!((interface.read_ns_per_byte, interface.write_ns_per_byte), (125.0, 125.0));
    check(&drive).unwrap();
}

#[test]
fn overheads_are_scaled_and_commands_have_their_share_of_every_request() {
    let drive = only(&disk(&[])).description;
    let overheads = drive.overheads;
    let of = |after_read, after_write| AfterReadWrite { after_read, after_write };
    assert_eq!(overheads.read_hit_ns, of(220_000, 420_000));
    assert_eq!(overheads.read_miss_ns, of(620_000, 820_000));
    assert_eq!(overheads.write_hit_ns, of(1_020_000, 1_220_000));
    assert_eq!(overheads.write_miss_ns, of(1_420_000, 1_620_000));
    assert_eq!((overheads.read_completion_ns, overheads.write_completion_ns), (1_800_000, 220_000));
    assert_eq!((overheads.data_preparation_ns, overheads.minimum_seek_delay_ns), (240_000, 360_000));
    let extra = ExtraDisconnect {
        command_ns: 2_200_000,
        disconnect_ns: 2_400_000,
        between_ns: 2_600_000,
        second_disconnect_ns: 2_800_000,
        seek_delta_ns: 3_000_000,
    };
    let disconnect = Disconnect {
        read_ns: of(300_000, 320_000),
        write_ns: 340_000,
        first_reselect_ns: 260_000,
        other_reselect_ns: 280_000,
        extra: Some(extra),
    };
    assert_eq!(drive.interface.disconnect, Some(disconnect));
    let once = only(&disk(&[("Extra write disconnect", "0")])).description;
    assert_eq!(once.interface.disconnect, Some(Disconnect { extra: None, ..disconnect }));
    let never = only(&disk(&[("Never disconnect", "1")])).description;
    assert_eq!(never.interface.disconnect, None);
}

#[test]
fn levels_map_to_their_kinds() {
    let read_ahead = |value| only(&disk(&[("Buffer continuous read", value)])).description.buffer.read_ahead;
    assert_eq!(
        ["0", "1", "2", "3", "4"].map(read_ahead),
        [ReadAhead::None, ReadAhead::Track, ReadAhead::Cylinder, ReadAhead::Segment, ReadAhead::TrackAfterSequential]
    );
    let cache = |value| only(&disk(&[("Fast write level", value)])).description.buffer.write_cache;
    assert_eq!(["0", "1", "2"].map(cache), [WriteCache::Off, WriteCache::Appending, WriteCache::On]);
    let speed_matching = only(&disk(&[("Enable caching in buffer", "0")])).description.buffer;
    assert_eq!((speed_matching.segments, speed_matching.write_cache), (0, WriteCache::Off));
}

#[test]
fn unsupported_policies_are_reported_with_their_substitute() {
    let policy = |number: u32| {
        let queue = format!("disksim_ioqueue {{ Scheduling policy = {number} }}");
        let drive = only(&disk(&[("Scheduler", &queue)]));
        let is_unmapped = drive.unmapped.iter().any(|entry| entry.parameter == "Scheduling policy");
        (drive.description.queue.policy, is_unmapped)
    };
    use Policy::{CLook, Fcfs, Look, Sptf, Sstf};
    let exact = [(1, Fcfs), (2, Look), (3, CLook), (4, Sstf), (5, Look), (6, CLook), (7, Sstf), (8, Sptf), (24, Sptf)];
    for (number, expected) in exact {
        assert_eq!(policy(number), (expected, false), "{number}");
    }
    for (number, expected) in [(11, Sptf), (17, Look), (22, Sstf), (28, Fcfs)] {
        assert_eq!(policy(number), (expected, true), "{number}");
    }
}

#[test]
fn a_zone_is_read_in_sectors_or_revolutions() {
    let drive = only(&toy_model());
    let geometry = &drive.description.geometry;
    assert_eq!((geometry.heads, geometry.cylinders), (2, 12));
    assert_eq!((geometry.order, geometry.sparing), (BlockOrder::Serpentine, Sparing::TrackEnd));
    assert_eq!(geometry.logical_blocks, 10 * 2 * 50 - 10 - 20);
    let zone = &geometry.zones[0];
    assert_eq!((zone.first_cylinder, zone.last_cylinder, zone.sectors_per_track), (0, 9, 50));
    assert_eq!((zone.offset_turns, zone.track_skew_turns, zone.cylinder_skew_turns), (0.1, 0.14, 0.24));
    assert_eq!((zone.reserved_sectors, zone.spares), (10, 1));
    assert_eq!((&zone.slips[..], &zone.remaps[..]), (&[3, 120][..], &[(30, 49)][..]));
    check(&drive.description).unwrap();

    let unordered = ZONE.replace("3, 120", "120, 3, 120").replace("30, 49", "70, 49, 30, 48");
    let imported = parse_str("toy", &model(MECHANICS, LAYOUT, &unordered)).unwrap();
    let zone = &imported.drives[0].description.geometry.zones[0];
    assert_eq!((&zone.slips[..], &zone.remaps[..]), (&[3, 120][..], &[(30, 48), (70, 49)][..]));
    assert!(imported.warnings[0].contains("slips: not in ascending order"), "{:?}", imported.warnings);

    let turns = ZONE.replace("= 5,", "= 1.25, Skew units = revolutions,").replace("7.9", "0.9").replace("12,", "0.5,");
    let zone = only(&model(MECHANICS, LAYOUT, &turns)).description.geometry.zones.remove(0);
    assert_eq!((zone.offset_turns, zone.track_skew_turns, zone.cylinder_skew_turns), (0.25, 0.9, 0.5));
    let all_turns = LAYOUT.replace("Zones", "Skew units = revolutions, Zones");
    let zone = only(&model(MECHANICS, &all_turns, ZONE)).description.geometry.zones.remove(0);
    assert_eq!((zone.offset_turns, zone.track_skew_turns), (0.0, 7.9));
    let back = ZONE.replace("= 5,", "= 5, Skew units = sectors,");
    let zone = only(&model(MECHANICS, &all_turns, &back)).description.geometry.zones.remove(0);
    assert_eq!(zone.offset_turns, 0.1);
}

#[test]
fn every_mapping_scheme_has_its_order() {
    let order = |scheme: u32| {
        let layout = LAYOUT.replace("mapping scheme = 2", &format!("mapping scheme = {scheme}"));
        only(&model(MECHANICS, &layout, ZONE)).description.geometry.order
    };
    assert_eq!([0, 1, 2].map(order), [BlockOrder::CylinderMajor, BlockOrder::SerpentineInZone, BlockOrder::Serpentine]);
}

#[test]
fn every_sparing_scheme_has_its_kind() {
    for scheme in 0..=10 {
        let zone = if scheme == 0 { ZONE.replace("3, 120", "").replace("30, 49", "") } else { ZONE.to_owned() };
        let zone = zone.replace("[ 3, 120 ]", "[ 3 ]").replace("30, 49", "1, 2");
        let layout = LAYOUT
            .replace("used = 3", &format!("used = {scheme}"))
            .replace("Zones", "Rangesize for sparing = 4, Zones");
        let drive = only(&model(MECHANICS, &layout, &zone));
        let geometry = &drive.description.geometry;
        let expected = [
            Sparing::None,
            Sparing::TracksAtZoneEnd,
            Sparing::CylinderEnd,
            Sparing::TrackEnd,
            Sparing::CylinderEndSlipsApart,
            Sparing::CylinderFront,
            Sparing::CylinderFrontSlipsApart,
            Sparing::DiskEnd,
            Sparing::RangeEnd { cylinders: 4 },
            Sparing::ZoneEnd,
            Sparing::ZoneEndSlipsApart,
        ];
        assert_eq!(geometry.sparing, expected[scheme]);
        check(&drive.description).unwrap();
    }
}

#[test]
fn zones_are_trusted_over_the_block_count() {
    let imported = parse_str("toy", &toy_model()).unwrap();
    assert_eq!(imported.drives[0].description.geometry.logical_blocks, 970);
    assert!(imported.warnings[0].starts_with("toy:1: Block count: 980 blocks are stated, but the zones hold 970"));
    let fewer = parse_str("toy", &toy_model().replace("980", "900")).unwrap();
    assert_eq!(fewer.drives[0].description.geometry.logical_blocks, 970);
    assert!(fewer.warnings[0].contains("900 blocks are stated, but the zones hold 970; 970 is used"));
    let unstated = only(&toy_model().replace("Block count = 980,", ""));
    assert_eq!(unstated.description.geometry.logical_blocks, 970);
}

#[test]
fn a_last_cylinder_that_is_their_number_is_taken() {
    let imported = parse_str("toy", &model(MECHANICS, LAYOUT, &ZONE.replace("number = 9", "number = 12"))).unwrap();
    assert_eq!(imported.drives[0].description.geometry.zones[0].last_cylinder, 11);
    let expected = "12 is the number of cylinders, but cylinders count from 0; 11 is used";
    assert!(imported.warnings.iter().any(|warning| warning.contains(expected)), "{:?}", imported.warnings);
}

#[test]
fn what_makes_a_drive_behave_otherwise_is_a_warning() {
    let warnings = |changes: &[(&str, &str)]| parse_str("toy", &disk(changes)).unwrap().warnings;
    let quiet = warnings(&[]);
    let loud = warnings(&[("Preseeking level", "2"), ("Stop prefetch in sector", "0")]);
    assert_eq!(loud.len(), quiet.len() + 1, "{loud:?}");
    assert!(loud.iter().any(|warning| warning.contains("Preseeking level: has no counterpart")), "{loud:?}");
}

#[test]
fn both_water_marks_are_read() {
    let buffer = only(&disk(&[])).description.buffer;
    assert_eq!((buffer.read_watermark, buffer.write_watermark), (0.5, 0.25));
    let keeps_the_bus = only(&disk(&[("Never disconnect", "1")])).description.buffer;
    assert_eq!((keeps_the_bus.read_watermark, keeps_the_bus.write_watermark), (0.5, 1.0));
}

#[test]
fn every_seek_type_has_its_curve() {
    let seek = |text: &str| {
        let mechanics = MECHANICS.replace("constant, Constant seek time = 4.5", text);
        only(&model(&mechanics, LAYOUT, ZONE)).description.mechanics.seek
    };
    let three = "Single cylinder seek time = 1, Average seek time = 5.5, Full strobe seek time = 9.25";
    let hpl = "HPL seek equation values = [ 300, 3.5, 0.25, 7, 0.005, 1.75 ]";
    let ten = "First ten seek times = [ 1.0, 2, 3, 4, 5, 6, 7, 8, 9, 10 ]";
    assert_eq!(seek("constant, Constant seek time = 4.5"), SeekCurve::Constant(4_500_000));
    assert_eq!(
        seek(&format!("linear, {three}")),
        SeekCurve::Points(vec![(1, 1_000_000), (4, 5_500_000), (11, 9_250_000)])
    );
    assert_eq!(
        seek(&format!("curve, {three}")),
        SeekCurve::ThreeParameter { minimum_ns: 1_000_000, average_ns: 5_500_000, maximum_ns: 9_250_000 }
    );
    let two_piece = |first_ns| SeekCurve::TwoPiece {
        boundary_cylinders: 300,
        short_ns: 3.5e6,
        short_ns_per_sqrt: 0.25e6,
        long_ns: 7e6,
        long_ns_per_cylinder: 5e3,
        first_ns,
    };
    assert_eq!(seek(&format!("hpl, {hpl}")), two_piece(vec![1_750_000]));
    assert_eq!(seek(&format!("hpl, {}", hpl.replace("1.75", "-1.0"))), two_piece(vec![]));
    let millis = (1..=10).map(|ms| ms * 1_000_000).collect();
    assert_eq!(seek(&format!("hplplus10, {hpl}, {ten}")), two_piece(millis));
}

#[test]
fn seek_files_are_points() {
    let points = seek_points("s", "Seek distances measured: 3\r\n1,\t1.5\r\n\r\n4, 1.25, 0.1\n9,2.0000004").unwrap();
    assert_eq!(points, [(1, 1_500_000), (4, 1_250_000), (9, 2_000_000)]);
    let refused = [
        ("1, 2\n1, 3", "s:2: distance: must be greater"),
        ("1, 2\n3, -1", "s:2: ms: must be a time"),
        ("1, 2\n3, NaN", "s:2: ms: must be a time"),
        ("0, 2\n3, 1", "s:1: distance: must be a whole number"),
        ("1, 2\n3", "s:2: must be `distance, ms`"),
        ("1, 2", "s:1: distance: at least two"),
        ("", "s:1: distance: at least two"),
        (
            "Seek distances measured: 3\n1, 2\n3, 4\n",
            "s:1: Seek distances measured:: the count is 3, but 2 lines follow",
        ),
    ];
    for (text, expected) in refused {
        let error = seek_points("s", text).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn every_parameter_is_mapped_or_named_as_unmapped() {
    for changes in [&[][..], &[("Never disconnect", "1")], &[("Extra write disconnect", "0")]] {
        let text = disk(changes);
        let drive = only(&text);
        let named = named_lines(&drive.sources, &drive.unmapped);
        let missing: Vec<usize> =
            parameter_lines(&text, 1).filter(|line| !named.contains(&format!("toy:{line}"))).collect();
        assert!(missing.is_empty(), "lines {missing:?}");
        assert!(drive.unmapped.iter().all(|entry| !entry.why.is_empty() && entry.why != "unknown parameter"));
    }
}

#[test]
fn sources_name_file_and_line_and_neutral_values() {
    let drive = only(&disk(&[]));
    assert_eq!(drive.sources["geometry.heads"], "A toy:2");
    assert_eq!(drive.sources["overheads.read_hit_ns"], "A toy:49, A toy:50");
    assert!(drive.sources["interface.kind"].starts_with("I "));
    let why = |name: &str| drive.unmapped.iter().find(|entry| entry.parameter == name).unwrap().why.clone();
    assert!(why("Hold bus entire read xfer").starts_with("has no effect at this value"));
    assert!(!why("Hold bus entire write xfer").contains("changes nothing"));
    assert!(why("Cylinder mapping strategy").starts_with("the scheduler knows"));
}

#[test]
fn unknown_parameters_are_warned_about() {
    let imported = parse_str("toy", &disk(&[("Print stats", "0,\n Colour of lamp = green")])).unwrap();
    let expected = "toy:67: Colour of lamp: unknown parameter; ignored";
    assert!(imported.warnings.iter().any(|warning| warning == expected), "{:?}", imported.warnings);
    let lamp = imported.drives[0].unmapped.iter().find(|entry| entry.parameter == "Colour of lamp").unwrap();
    assert_eq!((lamp.line, lamp.block.as_str(), lamp.value.as_str()), (67, "TOY", "green"));
}

#[test]
fn reads_without_arm_movement_take_the_firmware_time_derived_from_writes() {
    let settled = |level: &str| {
        let drive = only(&disk(&[("Fast write level", level)])).description;
        (drive.overheads.read_settled_min_ns, drive.overheads.write_hit_ns)
    };
    let (cached, write_hit) = settled("2");
    assert_eq!(cached, write_hit);
    assert_ne!(write_hit, Default::default());
    let (through, _) = settled("0");
    assert_eq!(through, Default::default(), "a write through to the media does not show the firmware's time alone");
}
