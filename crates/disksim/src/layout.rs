//! `dm_disk` and its `dm_layout_g1`: zones, skews, spares and defects.

use headstack_sim::drive::description::{BlockOrder, Geometry, Sparing, Zone};
use headstack_sim::drive::geometry::zone_blocks;
use headstack_workload::InputError;

use super::fields::{Fields, Ledger};
use super::parser::{Block, ValueKind};

/// Bytes in a sector, the only size in DiskSim.
pub(super) const SECTOR_BYTES: u32 = 512;

const HEADS_MAX: u32 = 256;
const CYLINDERS_MAX: u32 = 8_000_000;
const ZONES_MAX: usize = 255;
const SECTORS_PER_TRACK_MAX: u32 = 1 << 16;
/// Maximum skew, in turns: far above any real skew, and small enough to keep the fraction of a turn exact.
const TURNS_MAX: f64 = 1_000.0;

/// The unit of offsets and skews.
#[derive(Clone, Copy, PartialEq)]
enum SkewUnits {
    Sectors,
    Turns,
}

/// Reads the geometry of a `dm_disk` from the parameters in `model`.
///
/// # Errors
/// If the layout is not g1, or its zones do not fit on the disk.
pub(super) fn geometry(model: &mut Fields, ledger: &mut Ledger) -> Result<Geometry, InputError> {
    let heads = model.count(ledger, "Number of data surfaces", "geometry.heads", 1..=HEADS_MAX)?;
    let cylinders = model.count(ledger, "Number of cylinders", "geometry.cylinders", 1..=CYLINDERS_MAX)?;
    let block = model.block(ledger, "Layout Model", "geometry", "dm_layout_g*")?;
    if &*block.module != "dm_layout_g1" {
        let message = format!("must be a block dm_layout_g1 {{ ... }}; {} is not supported", block.module);
        return Err(model.error("Layout Model", message));
    }
    let layout = &mut Fields::new(block, &model.key("Layout Model"));
    let order = match layout.integer(ledger, "LBN-to-PBN mapping scheme", "geometry.order", 0..=2)? {
        0 => BlockOrder::CylinderMajor,
        1 => BlockOrder::SerpentineInZone,
        _ => BlockOrder::Serpentine,
    };
    let sparing = sparing(layout, ledger)?;
    let units = skew_units(layout, ledger)?.unwrap_or(SkewUnits::Sectors);
    let mut geometry = Geometry {
        logical_block_bytes: SECTOR_BYTES,
        physical_sector_bytes: SECTOR_BYTES,
        logical_blocks: 0,
        heads,
        cylinders,
        order,
        sparing,
        zones: Vec::new(),
    };
    let zones = layout.list(ledger, "Zones", "geometry.zones", "a list of dm_layout_g1_zone { ... }")?;
    let mut held = 0;
    for (index, value) in zones.iter().enumerate() {
        let path = layout.key(&format!("Zones[{index}]"));
        let ValueKind::Block(block) = &value.kind else {
            let message = format!("must be a block dm_layout_g1_zone {{ ... }}, not {}", value.describe());
            return Err(value.place.error(&path, message));
        };
        held += zone(&mut geometry, block, &path, units, ledger)?;
    }
    if zones.is_empty() || zones.len() > ZONES_MAX {
        let message = format!("must be a list of 1 to {ZONES_MAX} zones, not {}", zones.len());
        return Err(layout.error("Zones", message));
    }
    layout.finish(ledger, &[]);
    geometry.logical_blocks = logical_blocks(model, held, ledger)?;
    ledger.assume("geometry.logical_block_bytes", "the only size in DiskSim");
    ledger.assume("geometry.physical_sector_bytes", "the only size in DiskSim");
    Ok(geometry)
}

/// Returns the number of blocks in the zones. A different stated count is ignored with a warning; DiskSim ignores it
/// silently.
fn logical_blocks(model: &mut Fields, held: u64, ledger: &mut Ledger) -> Result<u64, InputError> {
    const NAME: &str = "Block count";
    const KEY: &str = "geometry.logical_blocks";
    if model.block.get(NAME).is_none() {
        ledger.assume(KEY, "capacity of the zones");
        return Ok(held);
    }
    let stated = model.integer(ledger, NAME, KEY, 1..=i64::MAX)?;
    if stated != held {
        let message = format!("{stated} blocks are stated, but the zones hold {held}; {held} is used");
        model.warn(ledger, NAME, &message);
    }
    Ok(held)
}

fn sparing(layout: &mut Fields, ledger: &mut Ledger) -> Result<Sparing, InputError> {
    const RANGE: &str = "Rangesize for sparing";
    let scheme = layout.integer(ledger, "Sparing scheme used", "geometry.sparing", 0..=10)?;
    if scheme != 8 {
        layout.leave(ledger, RANGE, "only sparing scheme 8 has ranges");
    }
    Ok(match scheme {
        0 => Sparing::None,
        1 => Sparing::TracksAtZoneEnd,
        2 => Sparing::CylinderEnd,
        3 => Sparing::TrackEnd,
        4 => Sparing::CylinderEndSlipsApart,
        5 => Sparing::CylinderFront,
        6 => Sparing::CylinderFrontSlipsApart,
        7 => Sparing::DiskEnd,
        8 => Sparing::RangeEnd { cylinders: layout.count(ledger, RANGE, "geometry.sparing", 1..=CYLINDERS_MAX)? },
        9 => Sparing::ZoneEnd,
        _ => Sparing::ZoneEndSlipsApart,
    })
}

fn skew_units(fields: &mut Fields, ledger: &mut Ledger) -> Result<Option<SkewUnits>, InputError> {
    const NAME: &str = "Skew units";
    const ALLOWED: &str = "sectors or revolutions";
    match fields.optional_word(ledger, NAME, "geometry.zones", ALLOWED)? {
        None => Ok(None),
        Some("sectors") => Ok(Some(SkewUnits::Sectors)),
        Some("revolutions") => Ok(Some(SkewUnits::Turns)),
        Some(other) => Err(fields.error(NAME, format!("must be {ALLOWED}, not {other}"))),
    }
}

/// Adds a zone and returns its number of blocks.
fn zone(
    geometry: &mut Geometry,
    block: &Block,
    path: &str,
    layout_units: SkewUnits,
    ledger: &mut Ledger,
) -> Result<u64, InputError> {
    const FIRST: &str = "First cylinder number";
    let fields = &mut Fields::new(block, path);
    let index = geometry.zones.len();
    let key = |name: &str| format!("geometry.zones[{index}].{name}");
    let free = geometry.zones.last().map_or(0, |zone| zone.last_cylinder + 1);
    if free == geometry.cylinders {
        return Err(fields.error(FIRST, "the zones before this one fill every cylinder"));
    }
    let first_cylinder = fields.count(ledger, FIRST, &key("first_cylinder"), free..=geometry.cylinders - 1)?;
    let last_cylinder = last_cylinder(fields, ledger, &key("last_cylinder"), first_cylinder, geometry.cylinders)?;
    let sectors_per_track =
        fields.count(ledger, "Blocks per track", &key("sectors_per_track"), 1..=SECTORS_PER_TRACK_MAX)?;
    let units = skew_units(fields, ledger)?.unwrap_or(layout_units);
    let track = Track { sectors: f64::from(sectors_per_track), units };
    let offset = track.turns(fields, ledger, "Offset of first block", &key("offset_turns"))?;
    let tracks = u64::from(last_cylinder - first_cylinder + 1) * u64::from(geometry.heads);
    let sectors = tracks * u64::from(sectors_per_track);
    let in_tracks = geometry.sparing == Sparing::TracksAtZoneEnd;
    let last_place = if in_tracks { tracks } else { sectors } - 1;
    let region = region_places(geometry, sectors_per_track, tracks);
    let spares_max = u32::try_from(region - 1).unwrap_or(u32::MAX);
    let zone = Zone {
        first_cylinder,
        last_cylinder,
        sectors_per_track,
        offset_turns: offset.rem_euclid(1.0),
        track_skew_turns: track.skew(fields, ledger, "Skew for track switch", &key("track_skew_turns"))?,
        cylinder_skew_turns: track.skew(fields, ledger, "Skew for cylinder switch", &key("cylinder_skew_turns"))?,
        reserved_sectors: fields.integer(
            ledger,
            "Empty space at zone front",
            &key("reserved_sectors"),
            0..=sectors as i64,
        )?,
        spares: fields.count(ledger, "Number of spares", &key("spares"), 0..=spares_max)?,
        slips: slips(fields, ledger, &key("slips"), last_place)?,
        remaps: remaps(fields, ledger, &key("remaps"), last_place)?,
    };
    check_slips(geometry, &zone, region, fields)?;
    geometry.zones.push(zone);
    let blocks = zone_blocks(geometry, index);
    if blocks == 0 {
        let message = format!("the empty space at the front of the zone uses all of its {sectors} sectors");
        return Err(fields.error("Number of spares", message));
    }
    fields.finish(ledger, &[]);
    Ok(blocks)
}

/// Returns the last cylinder of a zone. Cylinders are numbered from 0, so the last is the number of cylinders minus
/// one. Many files state the number of cylinders instead, and DiskSim accepts this.
fn last_cylinder(
    fields: &mut Fields,
    ledger: &mut Ledger,
    to: &str,
    first: u32,
    cylinders: u32,
) -> Result<u32, InputError> {
    const NAME: &str = "Last cylinder number";
    let last = fields.count(ledger, NAME, to, first..=cylinders)?;
    if last == cylinders {
        let message = format!("{last} is the number of cylinders, but cylinders count from 0; {} is used", last - 1);
        fields.warn(ledger, NAME, &message);
    }
    Ok(last.min(cylinders - 1))
}

/// Converts numbers of sectors into angles.
struct Track {
    sectors: f64,
    units: SkewUnits,
}

impl Track {
    fn turns(&self, fields: &mut Fields, ledger: &mut Ledger, name: &str, to: &str) -> Result<f64, InputError> {
        let a_turn = if self.units == SkewUnits::Sectors { self.sectors } else { 1.0 };
        Ok(fields.number(ledger, name, to, -TURNS_MAX * a_turn..=TURNS_MAX * a_turn)? / a_turn)
    }

    /// Like `turns`, but rounds skews in sectors down to whole sectors as DiskSim does.
    fn skew(&self, fields: &mut Fields, ledger: &mut Ledger, name: &str, to: &str) -> Result<f64, InputError> {
        match self.units {
            SkewUnits::Turns => self.turns(fields, ledger, name, to),
            SkewUnits::Sectors => {
                let limit = TURNS_MAX * self.sectors;
                Ok(fields.number(ledger, name, to, -limit..=limit)?.trunc() / self.sectors)
            }
        }
    }
}

/// Returns the slipped places, ascending.
fn slips(fields: &mut Fields, ledger: &mut Ledger, to: &str, last: u64) -> Result<Vec<u64>, InputError> {
    let mut slips = fields.places(ledger, "slips", to, last)?;
    if !slips.is_sorted_by(|a, b| a < b) {
        fields.warn(ledger, "slips", "not in ascending order, or with duplicates; sorted");
        slips.sort_unstable();
        slips.dedup();
    }
    Ok(slips)
}

/// Returns pairs of defective place and replacement, sorted by defective place.
fn remaps(fields: &mut Fields, ledger: &mut Ledger, to: &str, last: u64) -> Result<Vec<(u64, u64)>, InputError> {
    let places = fields.places(ledger, "defects", to, last)?;
    let mut remaps: Vec<(u64, u64)> = places.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
    remaps.sort_unstable();
    if !places.len().is_multiple_of(2) || !remaps.is_sorted_by(|a, b| a.0 < b.0) {
        let message = "must be a list of pairs: defective place, replacement; each defective place once";
        return Err(fields.error("defects", message));
    }
    Ok(remaps)
}

/// Returns the number of places in a region that has its own spares, according to the sparing scheme of `dm_layout_g1`.
fn region_places(geometry: &Geometry, sectors_per_track: u32, tracks: u64) -> u64 {
    let track = u64::from(sectors_per_track);
    let cylinder = track * u64::from(geometry.heads);
    match geometry.sparing {
        Sparing::TracksAtZoneEnd => tracks,
        Sparing::TrackEnd => track,
        Sparing::CylinderEnd
        | Sparing::CylinderEndSlipsApart
        | Sparing::CylinderFront
        | Sparing::CylinderFrontSlipsApart => cylinder,
        Sparing::RangeEnd { cylinders } => (cylinder * u64::from(cylinders)).min(tracks * track),
        Sparing::None | Sparing::DiskEnd | Sparing::ZoneEnd | Sparing::ZoneEndSlipsApart => tracks * track,
    }
}

/// Checks that a region has a spare for each slip; otherwise its last blocks would have no place.
fn check_slips(geometry: &Geometry, zone: &Zone, region: u64, fields: &Fields) -> Result<(), InputError> {
    match geometry.sparing {
        Sparing::None if !(zone.slips.is_empty() && zone.remaps.is_empty()) => {
            let name = if zone.slips.is_empty() { "defects" } else { "slips" };
            return Err(fields.error(name, "must be empty: sparing scheme 0 has no spares"));
        }
        Sparing::CylinderEndSlipsApart
        | Sparing::CylinderFrontSlipsApart
        | Sparing::DiskEnd
        | Sparing::ZoneEndSlipsApart => return Ok(()),
        _ => {}
    }
    let mut regions = zone.slips.chunk_by(|a, b| a / region == b / region);
    match regions.find(|slips| slips.len() > zone.spares as usize) {
        None => Ok(()),
        Some(slips) => Err(fields.error(
            "slips",
            format!("{} slips from place {} on, but only {} spares in this region", slips.len(), slips[0], zone.spares),
        )),
    }
}
