//! For every block order and sparing scheme, each block is where a slow walk over the surfaces puts it.

use crate::common;
use std::collections::{HashMap, HashSet};

use headstack_sim::drive::check;
use headstack_sim::drive::description::{BlockOrder, DriveDescription, Geometry, Sparing, Zone};
use headstack_sim::drive::geometry::{TrackLayout, zone_blocks};
use proptest::prelude::*;

const SCHEMES: [Sparing; 11] = [
    Sparing::None,
    Sparing::TracksAtZoneEnd,
    Sparing::CylinderEnd,
    Sparing::TrackEnd,
    Sparing::CylinderEndSlipsApart,
    Sparing::CylinderFront,
    Sparing::CylinderFrontSlipsApart,
    Sparing::DiskEnd,
    Sparing::RangeEnd { cylinders: 2 },
    Sparing::ZoneEnd,
    Sparing::ZoneEndSlipsApart,
];

const ORDERS: [BlockOrder; 5] = [
    BlockOrder::CylinderMajor,
    BlockOrder::SerpentineInZone,
    BlockOrder::Serpentine,
    BlockOrder::SurfaceSerpentine { band_cylinders: 1 },
    BlockOrder::SurfaceSerpentine { band_cylinders: 3 },
];

/// Cylinder, surface, sector of the track, angle in turns.
#[derive(Clone, Copy, Debug)]
struct Place {
    cylinder: u32,
    head: u32,
    sector: u32,
    turns: f64,
}

/// The tracks of a zone in the order of their sectors' numbers, each with the angle of its first sector: every change of
/// head adds the track skew, every other step the cylinder skew.
fn walk_tracks(geometry: &Geometry, zone: &Zone) -> Vec<(u32, u32, f64)> {
    let cylinders = zone.last_cylinder - zone.first_cylinder + 1;
    let mut tracks: Vec<(u32, u32)> = Vec::new();
    match geometry.order {
        BlockOrder::SurfaceSerpentine { band_cylinders } => {
            let bands = (cylinders / band_cylinders).max(1);
            for band in 0..bands {
                let first = band * band_cylinders;
                let end = if band == bands - 1 { cylinders } else { first + band_cylinders };
                for head in 0..geometry.heads {
                    let along = (first..end).map(|cylinder| (zone.first_cylinder + cylinder, head));
                    if head % 2 == 0 { tracks.extend(along) } else { tracks.extend(along.rev()) }
                }
            }
        }
        order => {
            for cylinder in zone.first_cylinder..=zone.last_cylinder {
                let counted = match order {
                    BlockOrder::SerpentineInZone => cylinder - zone.first_cylinder,
                    BlockOrder::Serpentine => cylinder,
                    _ => 0,
                };
                let along = (0..geometry.heads).map(|head| (cylinder, head));
                if counted % 2 == 0 { tracks.extend(along) } else { tracks.extend(along.rev()) }
            }
        }
    }
    let banded = matches!(geometry.order, BlockOrder::SurfaceSerpentine { .. });
    let mut turns = zone.offset_turns;
    let mut walked: Vec<(u32, u32, f64)> = Vec::new();
    for (cylinder, head) in tracks {
        if let Some(&(before, other, _)) = walked.last() {
            let changes_head = if banded { other != head } else { before == cylinder };
            turns += if changes_head { zone.track_skew_turns } else { zone.cylinder_skew_turns };
        }
        walked.push((cylinder, head, turns));
    }
    walked
}

/// Returns the numbers of the zone's sectors that hold data, in the order of blocks: walks over the regions, skips
/// slipped sectors, and leaves the spares out.
fn walk_data(geometry: &Geometry, zone: &Zone) -> Vec<u64> {
    let track = u64::from(zone.sectors_per_track);
    let cylinder = track * u64::from(geometry.heads);
    let total = cylinder * u64::from(zone.last_cylinder - zone.first_cylinder + 1);
    let spares = u64::from(zone.spares);
    let slipped: HashSet<u64> = zone.slips.iter().copied().collect();
    let good = |from: u64, to: u64| (from..to.min(total)).filter(|sector| !slipped.contains(sector));
    // Regions whose slips use up their own spares.
    let regions = |sectors: u64, at_front: bool| {
        let mut data = Vec::new();
        for from in (0..total).step_by(sectors as usize) {
            let here: Vec<u64> = good(from, from + sectors).collect();
            // A range that the zone's end cuts short has no spares.
            let wanted = if from + sectors > total { here.len() } else { (sectors - spares) as usize };
            let skipped = if at_front { here.len() - wanted } else { 0 };
            data.extend(&here[skipped..skipped + wanted]);
        }
        data
    };
    // Regions that slips push on as they are, spares and all.
    let pushed_on = |data: std::ops::Range<u64>| -> Vec<u64> {
        let pattern = good(0, total).enumerate();
        pattern.filter(|&(at, _)| data.contains(&(at as u64 % cylinder))).map(|(_, sector)| sector).collect()
    };
    let mut data = match geometry.sparing {
        Sparing::TracksAtZoneEnd => {
            let tracks = (0..total / track).filter(|number| !slipped.contains(number));
            let remapped: HashMap<u64, u64> = zone.remaps.iter().copied().collect();
            let tracks = tracks.map(|number| remapped.get(&number).copied().unwrap_or(number));
            tracks.flat_map(|number| number * track..(number + 1) * track).collect()
        }
        Sparing::TrackEnd => regions(track, false),
        Sparing::CylinderEnd => regions(cylinder, false),
        Sparing::CylinderFront => regions(cylinder, true),
        Sparing::RangeEnd { cylinders } => regions(cylinder * u64::from(cylinders), false),
        Sparing::CylinderEndSlipsApart => pushed_on(0..cylinder - spares),
        Sparing::CylinderFrontSlipsApart => pushed_on(spares..cylinder),
        Sparing::None | Sparing::DiskEnd | Sparing::ZoneEnd | Sparing::ZoneEndSlipsApart => good(0, total).collect(),
    };
    let remapped: HashMap<u64, u64> = zone.remaps.iter().copied().collect();
    if geometry.sparing != Sparing::TracksAtZoneEnd {
        data.iter_mut().for_each(|sector| *sector = remapped.get(sector).copied().unwrap_or(*sector));
    }
    data.drain(..zone.reserved_sectors as usize);
    data
}

/// Blocks of a zone by the table of the schemes.
fn tabulated_blocks(geometry: &Geometry, zone: &Zone) -> u64 {
    let cylinders = u64::from(zone.last_cylinder - zone.first_cylinder + 1);
    let (heads, track) = (u64::from(geometry.heads), u64::from(zone.sectors_per_track));
    let (spares, slips) = (u64::from(zone.spares), zone.slips.len() as u64);
    let lost = match geometry.sparing {
        Sparing::None => 0,
        Sparing::TracksAtZoneEnd => spares * track,
        Sparing::CylinderEnd | Sparing::CylinderFront => spares * cylinders,
        Sparing::TrackEnd => spares * cylinders * heads,
        Sparing::CylinderEndSlipsApart | Sparing::CylinderFrontSlipsApart => spares * cylinders + slips,
        Sparing::DiskEnd => slips,
        Sparing::RangeEnd { cylinders: range } => spares * (cylinders / u64::from(range)),
        Sparing::ZoneEnd => spares,
        Sparing::ZoneEndSlipsApart => spares + slips,
    };
    (cylinders * heads * track).saturating_sub(zone.reserved_sectors + lost)
}

fn walk(geometry: &Geometry) -> Vec<Place> {
    let mut places = Vec::new();
    for zone in &geometry.zones {
        let tracks = walk_tracks(geometry, zone);
        let data = walk_data(geometry, zone);
        let blocks = tabulated_blocks(geometry, zone) as usize;
        assert!(blocks <= data.len(), "the table promises {blocks} blocks, the walk finds {}", data.len());
        for sector in &data[..blocks] {
            let (number, sector) =
                (sector / u64::from(zone.sectors_per_track), sector % u64::from(zone.sectors_per_track));
            let (cylinder, head, turns) = tracks[number as usize];
            let turns = turns + sector as f64 / f64::from(zone.sectors_per_track);
            places.push(Place { cylinder, head, sector: sector as u32, turns });
        }
    }
    places
}

/// Returns the distance of two angles in turns, 0 to 1/2.
fn apart(a: f64, b: f64) -> f64 {
    let ahead = (a - b).rem_euclid(1.0);
    ahead.min(1.0 - ahead)
}

fn turns_of(angle: u32) -> f64 {
    f64::from(angle) / 4_294_967_296.0
}

/// Compares the layout with the walk, block by block, for extents of several lengths.
fn compare(geometry: &Geometry) -> Result<(), String> {
    let layout = TrackLayout::new(geometry);
    let expected = walk(geometry);
    if layout.blocks() != expected.len() as u64 {
        return Err(format!("{} blocks, expected {}", layout.blocks(), expected.len()));
    }
    let mut seen = HashSet::new();
    for (block, place) in expected.iter().enumerate() {
        let found = layout.locate(block as u64, 1);
        let same = (found.cylinder, found.head) == (place.cylinder, place.head);
        if !same || apart(turns_of(found.angle), place.turns) > 1e-8 {
            return Err(format!("block {block}: {found:?} at {}, expected {place:?}", turns_of(found.angle)));
        }
        if !seen.insert((place.cylinder, place.head, place.sector)) {
            return Err(format!("block {block} shares {place:?}"));
        }
        for wanted in [2, 5, u32::MAX] {
            let extent = layout.locate(block as u64, wanted);
            if extent.sectors == 0 || extent.sectors > wanted || extent.angle != found.angle {
                return Err(format!("block {block} x {wanted}: {extent:?}"));
            }
            let last_of = |sectors: u32| expected[block + sectors as usize - 1];
            let last = last_of(extent.sectors + extent.followers);
            if (last.cylinder, last.head) != (place.cylinder, place.head) || last.sector < place.sector {
                return Err(format!("block {block} x {wanted}: {extent:?} leaves its track at {last:?}"));
            }
            if extent.followers > 0 && last.sector - place.sector + 1 != extent.sectors + extent.followers {
                return Err(format!("block {block} x {wanted}: {extent:?} has followers with gaps"));
            }
            let covered = f64::from(last_of(extent.sectors).sector - place.sector + 1);
            let sector = extent.sector_span as f64 / 4_294_967_296.0;
            if (extent.span as f64 / 4_294_967_296.0 - covered * sector).abs() > 1e-6 {
                return Err(format!("block {block} x {wanted}: {extent:?} should cover {covered} sectors"));
            }
        }
    }
    Ok(())
}

fn small_zone(first_cylinder: u32, last_cylinder: u32, sectors_per_track: u32) -> Zone {
    Zone {
        offset_turns: 0.3,
        track_skew_turns: 0.11,
        cylinder_skew_turns: 0.23,
        ..common::zone(first_cylinder, last_cylinder, sectors_per_track)
    }
}

fn geometry(heads: u32, order: BlockOrder, sparing: Sparing, zones: Vec<Zone>) -> Geometry {
    let mut geometry = Geometry {
        heads,
        order,
        sparing,
        cylinders: zones.last().unwrap().last_cylinder + 1,
        zones,
        ..common::bare_drive().geometry
    };
    geometry.logical_blocks = geometry.zones.iter().map(|zone| tabulated_blocks(&geometry, zone)).sum();
    geometry
}

#[test]
fn plain_zones_of_every_order_and_scheme() {
    for order in ORDERS {
        for sparing in SCHEMES {
            for heads in [2, 3, 4] {
                let mut zones = vec![small_zone(0, 6, 10), small_zone(9, 9, 8), small_zone(10, 15, 7)];
                (zones[0].spares, zones[1].spares, zones[2].spares) = (2, 1, 3);
                (zones[0].reserved_sectors, zones[2].reserved_sectors) = (5, 13);
                if sparing == Sparing::None {
                    zones.iter_mut().for_each(|zone| zone.spares = 0);
                }
                let geometry = geometry(heads, order, sparing, zones);
                compare(&geometry).unwrap_or_else(|error| panic!("{order:?}, {sparing:?}, {heads} heads: {error}"));
            }
        }
    }
}

#[test]
fn slips_and_remaps_of_every_order_and_scheme() {
    for order in ORDERS {
        for sparing in SCHEMES {
            let mut zone = small_zone(1, 6, 10);
            zone.spares = 6;
            // The first sector of the zone, others of its first track and cylinder, and some in later regions.
            (zone.slips, zone.remaps) = match sparing {
                Sparing::None => (vec![], vec![(4, 29)]),
                Sparing::TracksAtZoneEnd => (vec![0, 5], vec![(3, 17)]),
                _ => (vec![0, 4, 19, 63, 71, 149], vec![]),
            };
            if sparing == Sparing::None {
                (zone.spares, zone.reserved_sectors) = (0, 30);
                zone.remaps = vec![(45, 2), (46, 1), (59, 0)];
            }
            let geometry = geometry(3, order, sparing, vec![zone]);
            compare(&geometry).unwrap_or_else(|error| panic!("{order:?}, {sparing:?}: {error}"));
        }
    }
}

/// By hand: 2 surfaces, 10 sectors a track, 2 spares at the front of each cylinder, sector 5 slipped. The data of the
/// first cylinder end with the cylinder; the slip costs one of its spares.
#[test]
fn slips_with_spares_in_front_use_the_cylinders_own_spares() {
    let zone = Zone { spares: 2, slips: vec![5], ..small_zone(0, 1, 10) };
    let layout = TrackLayout::new(&geometry(2, BlockOrder::CylinderMajor, Sparing::CylinderFront, vec![zone]));
    let place = |block| {
        let extent = layout.locate(block, 1);
        let turns = turns_of(extent.angle) - 0.3 - 0.11 * f64::from(extent.head) - 0.34 * f64::from(extent.cylinder);
        (extent.cylinder, extent.head, (turns.rem_euclid(1.0) * 10.0).round() as u32 % 10)
    };
    assert_eq!(layout.blocks(), 36);
    assert_eq!((place(0), place(3), place(4), place(17)), ((0, 0, 1), (0, 0, 4), (0, 0, 6), (0, 1, 9)));
    assert_eq!((place(18), place(35)), ((1, 0, 2), (1, 1, 9)));
}

/// By hand, from the definition of cells: 2 surfaces, bands of 2 cylinders, 5 cylinders: the last band has three.
#[test]
fn surface_serpentine_by_hand() {
    let order = BlockOrder::SurfaceSerpentine { band_cylinders: 2 };
    let layout = TrackLayout::new(&geometry(2, order, Sparing::None, vec![small_zone(0, 4, 10)]));
    let tracks: Vec<(u32, u32)> =
        (0..10).map(|track| layout.locate(track * 10, 1)).map(|extent| (extent.cylinder, extent.head)).collect();
    let expected = [(0, 0), (1, 0), (1, 1), (0, 1), (2, 0), (3, 0), (4, 0), (4, 1), (3, 1), (2, 1)];
    assert_eq!(tracks, expected);
}

#[test]
fn track_bounds_are_those_of_the_track() {
    for order in ORDERS {
        let mut zones = vec![small_zone(0, 3, 10), small_zone(4, 6, 7)];
        (zones[0].spares, zones[1].spares) = (1, 1);
        zones[0].slips = vec![25];
        let geometry = geometry(3, order, Sparing::TrackEnd, zones);
        let layout = TrackLayout::new(&geometry);
        let places = walk(&geometry);
        for (block, here) in places.iter().enumerate() {
            let shared = |other: &Place| (other.cylinder, other.head) == (here.cylinder, here.head);
            let first = places.iter().position(shared).unwrap() as u64;
            let last = places.iter().rposition(shared).unwrap() as u64;
            assert_eq!(layout.track_bounds(block as u64), (first, last + 1), "block {block}, {order:?}");
        }
    }
}

#[test]
fn physical_sectors_hold_eight_logical_blocks() {
    for (logical, physical, blocks, expected) in [(512, 512, 600, 600), (512, 4096, 4793, 600), (4096, 4096, 600, 600)]
    {
        let mut geometry = geometry(3, BlockOrder::CylinderMajor, Sparing::None, vec![small_zone(0, 19, 10)]);
        (geometry.logical_block_bytes, geometry.physical_sector_bytes) = (logical, physical);
        geometry.logical_blocks = blocks;
        assert_eq!(TrackLayout::new(&geometry).blocks(), expected, "{logical} on {physical}");
    }
}

/// Slips that a scheme can bear: no more in a region than it has spares.
fn bearable(geometry: &Geometry, zone: &Zone, wanted: &[u64]) -> Vec<u64> {
    let track = u64::from(zone.sectors_per_track);
    let cylinder = track * u64::from(geometry.heads);
    let total = cylinder * u64::from(zone.last_cylinder - zone.first_cylinder + 1);
    let (unit, region) = match geometry.sparing {
        Sparing::None => return vec![],
        Sparing::TracksAtZoneEnd => (total / track, total / track),
        Sparing::TrackEnd => (total, track),
        Sparing::CylinderEnd | Sparing::CylinderFront => (total, cylinder),
        Sparing::RangeEnd { cylinders } => {
            let range = cylinder * u64::from(cylinders);
            (total / range * range, range)
        }
        _ => (total, total),
    };
    let mut in_region: HashMap<u64, u32> = HashMap::new();
    let slips_apart = matches!(
        geometry.sparing,
        Sparing::CylinderEndSlipsApart
            | Sparing::CylinderFrontSlipsApart
            | Sparing::ZoneEndSlipsApart
            | Sparing::DiskEnd
    );
    let mut slips: Vec<u64> = wanted.iter().filter(|_| unit > 0).map(|slip| slip % unit.max(1)).collect();
    slips.sort_unstable();
    slips.dedup();
    slips.retain(|slip| {
        let count = in_region.entry(slip / region).or_default();
        *count += 1;
        slips_apart || *count <= zone.spares
    });
    slips
}

prop_compose! {
    fn any_zone()(
        gap in 0u32..3, cylinders in 1u32..9, sectors in 4u32..24, offset in -2.0f64..2.0, track_skew in 0.0f64..1.0,
        cylinder_skew in -1.0f64..1.0, reserved in 0u64..4, spares in 0u32..4, slips in prop::collection::vec(0u64..2000, 0..6)
    ) -> (u32, Zone) {
        let zone = Zone {
            first_cylinder: 0, last_cylinder: cylinders - 1, sectors_per_track: sectors, offset_turns: offset,
            track_skew_turns: track_skew, cylinder_skew_turns: cylinder_skew, reserved_sectors: reserved,
            spares, slips, remaps: vec![],
        };
        (gap, zone)
    }
}

#[test]
fn slips_without_spares_are_impossible() {
    // (scheme, slips that just fit into 2 spares, one too many); 3 surfaces of 10 sectors, 5 cylinders.
    let cases = [
        (Sparing::None, vec![], vec![3]),
        (Sparing::TracksAtZoneEnd, vec![0, 14], vec![0, 3, 14]),
        (Sparing::TrackEnd, vec![0, 9, 11], vec![0, 4, 9]),
        (Sparing::CylinderEnd, vec![0, 29, 30], vec![0, 1, 29]),
        (Sparing::CylinderFront, vec![0, 29, 30], vec![0, 1, 29]),
        (Sparing::RangeEnd { cylinders: 2 }, vec![0, 59, 60, 119], vec![120]),
        (Sparing::ZoneEnd, vec![0, 149], vec![0, 77, 149]),
        (Sparing::ZoneEndSlipsApart, vec![0, 1, 2, 77, 149], vec![150]),
    ];
    for (sparing, fitting, excessive) in cases {
        for (slips, expected) in [(fitting, true), (excessive, false)] {
            let zone = Zone { spares: 2, slips: slips.clone(), ..small_zone(0, 4, 10) };
            let geometry = geometry(3, BlockOrder::CylinderMajor, sparing, vec![zone]);
            assert_eq!(is_possible(&geometry), expected, "{sparing:?} with slips at {slips:?}");
            if expected {
                compare(&geometry).unwrap_or_else(|error| panic!("{sparing:?}: {error}"));
            }
        }
    }
}

fn is_possible(geometry: &Geometry) -> bool {
    check(&DriveDescription { geometry: geometry.clone(), ..common::bare_drive() }).is_ok()
}

prop_compose! {
    fn any_geometry()(
        heads in 2u32..6, order in 0usize..ORDERS.len(), sparing in 0usize..SCHEMES.len(),
        zones in prop::collection::vec(any_zone(), 1..4), remaps in prop::collection::vec((0usize..1000, 0usize..1000), 0..4)
    ) -> Geometry {
        let mut next = 0;
        let zones = zones.into_iter().map(|(gap, zone)| {
            let (first, last) = (next + gap, next + gap + zone.last_cylinder);
            next = last + 1;
            Zone { first_cylinder: first, last_cylinder: last, ..zone }
        }).collect();
        let mut geometry = Geometry {
            heads, order: ORDERS[order], sparing: SCHEMES[sparing], cylinders: next, zones,
            ..common::bare_drive().geometry
        };
        for index in 0..geometry.zones.len() {
            let mut zone = geometry.zones[index].clone();
            zone.slips = bearable(&geometry, &zone, &zone.slips);
            zone.remaps = vec![];
            // A defect among the data, a replacement among what holds none.
            let (whole, track) = (Zone { reserved_sectors: 0, ..zone.clone() }, u64::from(zone.sectors_per_track));
            let mut data = walk_data(&geometry, &whole);
            data.truncate(tabulated_blocks(&geometry, &whole) as usize);
            let tracks = geometry.sparing == Sparing::TracksAtZoneEnd;
            if tracks {
                data.retain(|sector| sector % track == 0);
                data.iter_mut().for_each(|sector| *sector /= track);
            }
            let cylinders = u64::from(zone.last_cylinder - zone.first_cylinder + 1);
            let places = cylinders * u64::from(heads) * if tracks { 1 } else { track };
            let used: HashSet<u64> = data.iter().chain(&zone.slips).copied().collect();
            let mut free: Vec<u64> = (0..places).filter(|place| !used.contains(place)).collect();
            for &(defect, spare) in &remaps {
                if !free.is_empty() && !data.is_empty() {
                    let replacement = free.swap_remove(spare % free.len());
                    zone.remaps.push((data.swap_remove(defect % data.len()), replacement));
                }
            }
            zone.remaps.sort_unstable();
            geometry.zones[index] = zone;
        }
        geometry.logical_blocks = (0..geometry.zones.len()).map(|zone| zone_blocks(&geometry, zone)).sum();
        geometry
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn random_geometries_are_as_walked(geometry in any_geometry().prop_filter("room for data", is_possible)) {
        compare(&geometry).map_err(TestCaseError::fail)?;
    }
}
