//! [`TrackLayout`]: the place of each sector, compiled from zones, block order, skews, spares, slips and remaps for
//! fast lookup.
//!
//! A block here is a *physical sector*, numbered by logical address (the host's block address divided by the blocks in
//! a physical sector). Places in a zone are numbered from the zone's first sector in track order, including spares and
//! slipped sectors. `place` of such a number returns the angle and the track.

use crate::description::drive::{BlockOrder, Geometry, Sparing, Zone};

/// Fraction of a turn in units of 2^-32 turns; wraps around after a whole turn.
pub type Angle = u32;

/// Converts turns to an [`Angle`]. Accepts any real number and drops whole turns.
pub fn angle_of_turns(turns: f64) -> Angle {
    let fraction = turns.rem_euclid(1.0);
    // 2^32 itself (a fraction that rounds up to one turn) must wrap to 0.
    (fraction * 4_294_967_296.0).round() as u64 as u32
}

/// Run of sectors on one track without a gap for the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Cylinder of the track.
    pub cylinder: u32,
    /// Surface of the track.
    pub head: u32,
    /// Angle at which the first sector begins.
    pub angle: Angle,
    /// Angle over the wanted sectors, including slipped sectors between them, in 2^-32 turns (2^32 = a whole turn).
    pub span: u64,
    /// Angle of one sector, in 2^-32 turns.
    pub sector_span: u32,
    /// Number of wanted sectors.
    pub sectors: u32,
    /// Minimum number of sectors that follow on the track without a gap; the exact number would need a search.
    pub followers: u32,
    /// Number of sectors before the first one on its track; valid only if `followers` is not 0.
    pub before: u32,
}

/// Division by a constant as a multiplication, exact for every dividend below 2^64 / divisor.
#[derive(Clone, Copy, Debug)]
struct Divisor {
    divisor: u64,
    reciprocal: u64,
}

impl Divisor {
    fn new(divisor: u64) -> Self {
        assert!(divisor > 0, "the geometry was checked before compilation");
        // floor(2^64 / d) + 1. For d = 1 this does not fit in a `u64`, so `divide` handles d = 1 separately.
        let reciprocal = if divisor == 1 { 0 } else { (u64::MAX / divisor) + 1 };
        Divisor { divisor, reciprocal }
    }

    #[inline]
    fn divide(self, dividend: u64) -> (u64, u64) {
        let quotient = if self.reciprocal == 0 {
            dividend
        } else {
            ((u128::from(dividend) * u128::from(self.reciprocal)) >> 64) as u64
        };
        (quotient, dividend - quotient * self.divisor)
    }
}

/// Division of a zone's blocks into regions with spares of their own.
#[derive(Clone, Copy, Debug)]
struct Regions {
    /// Blocks in a region; all blocks of the zone if it has one region.
    blocks: Divisor,
    /// Sectors in a region, including spares.
    sectors: u64,
    /// Number of spares in front of the region's data.
    front: u64,
    /// Whether slips in earlier regions shift this region, because they do not use up spares.
    slips_accumulate: bool,
}

#[derive(Clone, Debug)]
struct CompiledZone {
    first_block: u64,
    blocks: u64,
    first_cylinder: u32,
    cylinders: u32,
    sectors_per_track: Divisor,
    tracks_per_cylinder: Divisor,
    sector_span_fixed: u64,
    offset: Angle,
    track_skew: Angle,
    /// Angle from the first track of a cylinder to the first track of the next.
    cylinder_step: Angle,
    cylinder_skew: Angle,
    reserved: u64,
    regions: Option<Regions>,
    /// Slipped sectors in ascending order (whole tracks if `slips_are_tracks`).
    slips: Vec<u64>,
    remaps: Vec<(u64, u64)>,
    slips_are_tracks: bool,
    /// Whether the zone has neither slips nor remaps, so that the fast path applies.
    plain: bool,
    reversed: Reversal,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reversal {
    Never,
    OddInZone,
    OddAbsolute,
    Band { cylinders: u32 },
}

/// A compiled geometry: maps blocks to places.
#[derive(Clone, Debug)]
pub struct TrackLayout {
    zones: Vec<CompiledZone>,
    /// First zone that can hold a block, indexed by the block's leading bits.
    zone_hint: Vec<u8>,
    hint_shift: u32,
    heads: u32,
    blocks: u64,
    cylinders: u32,
}

/// Returns the number of sectors that remain for data in a zone under its sparing scheme.
///
/// Follows the table of sparing schemes in layout g1 of DiskSim 4.0.
pub fn zone_blocks(geometry: &Geometry, zone: usize) -> u64 {
    let heads = u64::from(geometry.heads);
    let zone = &geometry.zones[zone];
    let cylinders = u64::from(zone.last_cylinder - zone.first_cylinder) + 1;
    let spares = u64::from(zone.spares);
    let slips = zone.slips.len() as u64;
    let lost = match geometry.sparing {
        Sparing::None => 0,
        Sparing::TracksAtZoneEnd => spares * u64::from(zone.sectors_per_track),
        Sparing::CylinderEnd | Sparing::CylinderFront => spares * cylinders,
        Sparing::TrackEnd => spares * cylinders * heads,
        Sparing::CylinderEndSlipsApart | Sparing::CylinderFrontSlipsApart => spares * cylinders + slips,
        Sparing::DiskEnd => slips,
        Sparing::RangeEnd { cylinders: range } => spares * (cylinders / u64::from(range.max(1))),
        Sparing::ZoneEnd => spares,
        Sparing::ZoneEndSlipsApart => spares + slips,
    };
    (cylinders * heads * u64::from(zone.sectors_per_track)).saturating_sub(zone.reserved_sectors + lost)
}

impl TrackLayout {
    /// Compiles a geometry that has passed [`super::check`].
    pub fn new(geometry: &Geometry) -> Self {
        let mut first_block = 0;
        let mut zones = Vec::with_capacity(geometry.zones.len());
        for (index, zone) in geometry.zones.iter().enumerate() {
            let blocks = zone_blocks(geometry, index);
            zones.push(CompiledZone::new(geometry, zone, first_block, blocks));
            first_block += blocks;
        }
        let per_sector = u64::from(geometry.physical_sector_bytes / geometry.logical_block_bytes);
        let wanted = geometry.logical_blocks.div_ceil(per_sector.max(1));
        let blocks = first_block.min(wanted);
        let hint_shift = (64 - first_block.leading_zeros()).saturating_sub(8);
        let zone_hint = (0..=(first_block >> hint_shift))
            .map(|slot| {
                let block = slot << hint_shift;
                zones.partition_point(|zone| zone.first_block + zone.blocks <= block).min(zones.len() - 1) as u8
            })
            .collect();
        TrackLayout { zones, zone_hint, hint_shift, heads: geometry.heads, blocks, cylinders: geometry.cylinders }
    }

    /// Returns the capacity exported to the host, in physical sectors.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Returns the number of cylinders.
    pub fn cylinders(&self) -> u32 {
        self.cylinders
    }

    #[inline]
    fn zone_of(&self, block: u64) -> &CompiledZone {
        let mut index = usize::from(self.zone_hint[(block >> self.hint_shift) as usize]);
        while block - self.zones[index].first_block >= self.zones[index].blocks {
            index += 1;
        }
        &self.zones[index]
    }

    /// Returns the extent that starts at `block` and covers up to `wanted` blocks on the same track.
    ///
    /// Panics if the drive has no such block; requests are checked on arrival.
    // Inlined: an extent returned through memory is read back in wider words than it was written in, which stalls the
    // processor.
    #[inline(always)]
    pub fn locate(&self, block: u64, wanted: u32) -> Extent {
        let zone = self.zone_of(block);
        let relative = block - zone.first_block;
        if zone.plain { zone.locate_plain(relative, wanted) } else { zone.locate_any(relative, wanted) }
    }

    /// Returns the first block of the track that holds `block`, and the block after its last.
    pub fn track_bounds(&self, block: u64) -> (u64, u64) {
        let zone = self.zone_of(block);
        if zone.plain {
            let (track, _) = zone.sectors_per_track.divide(block - zone.first_block + zone.reserved);
            let begin = track * zone.sectors_per_track.divisor;
            let end = begin + zone.sectors_per_track.divisor;
            let first = zone.first_block + begin.saturating_sub(zone.reserved);
            return (first, zone.first_block + (end - zone.reserved).min(zone.blocks));
        }
        let here = self.locate(block, u32::MAX);
        let end = block + u64::from(here.sectors);
        // Blocks of a track are contiguous, so bisection over at most one track finds the first.
        let mut low = block.saturating_sub(u64::from(self.sectors_per_track(block))).max(zone.first_block);
        let mut high = block;
        while low < high {
            let middle = (low + high) / 2;
            let there = self.locate(middle, 1);
            if (there.cylinder, there.head) == (here.cylinder, here.head) { high = middle } else { low = middle + 1 }
        }
        (high, end)
    }

    /// Returns the number of sectors on the track that holds `block`, including spares.
    pub fn sectors_per_track(&self, block: u64) -> u32 {
        self.zone_of(block).sectors_per_track.divisor as u32
    }

    /// Returns the number of surfaces.
    pub fn heads(&self) -> u32 {
        self.heads
    }
}

impl CompiledZone {
    fn new(geometry: &Geometry, zone: &Zone, first_block: u64, blocks: u64) -> Self {
        let heads = u64::from(geometry.heads);
        let per_track = u64::from(zone.sectors_per_track);
        let cylinders = zone.last_cylinder - zone.first_cylinder + 1;
        let spares = u64::from(zone.spares);
        let region = |sectors: u64, front: u64, slips_accumulate: bool| {
            Some(Regions { blocks: Divisor::new(sectors - spares), sectors, front, slips_accumulate })
        };
        let cylinder = heads * per_track;
        let regions = match geometry.sparing {
            Sparing::None | Sparing::TracksAtZoneEnd | Sparing::DiskEnd => None,
            Sparing::ZoneEnd | Sparing::ZoneEndSlipsApart => None,
            Sparing::TrackEnd => region(per_track, 0, false),
            Sparing::CylinderEnd => region(cylinder, 0, false),
            Sparing::CylinderEndSlipsApart => region(cylinder, 0, true),
            Sparing::CylinderFront => region(cylinder, spares, false),
            Sparing::CylinderFrontSlipsApart => region(cylinder, spares, true),
            Sparing::RangeEnd { cylinders } => region(cylinder * u64::from(cylinders.max(1)), 0, false),
        };
        let track_skew = angle_of_turns(zone.track_skew_turns);
        let cylinder_skew = angle_of_turns(zone.cylinder_skew_turns);
        CompiledZone {
            first_block,
            blocks,
            first_cylinder: zone.first_cylinder,
            cylinders,
            sectors_per_track: Divisor::new(per_track),
            tracks_per_cylinder: Divisor::new(heads),
            sector_span_fixed: (1u128 << 64).div_euclid(u128::from(per_track)).min(u128::from(u64::MAX)) as u64,
            offset: angle_of_turns(zone.offset_turns),
            track_skew,
            cylinder_step: track_skew.wrapping_mul(geometry.heads - 1).wrapping_add(cylinder_skew),
            cylinder_skew,
            reserved: zone.reserved_sectors,
            regions: if spares == 0 && zone.slips.is_empty() { None } else { regions },
            slips: zone.slips.clone(),
            remaps: zone.remaps.clone(),
            slips_are_tracks: geometry.sparing == Sparing::TracksAtZoneEnd,
            plain: zone.slips.is_empty()
                && zone.remaps.is_empty()
                && (spares == 0 || regions.is_none())
                && !matches!(geometry.order, BlockOrder::SurfaceSerpentine { .. }),
            reversed: match geometry.order {
                BlockOrder::CylinderMajor => Reversal::Never,
                BlockOrder::SerpentineInZone => Reversal::OddInZone,
                BlockOrder::Serpentine => Reversal::OddAbsolute,
                BlockOrder::SurfaceSerpentine { band_cylinders } => Reversal::Band { cylinders: band_cylinders.max(1) },
            },
        }
    }

    #[inline(always)]
    fn locate_plain(&self, relative: u64, wanted: u32) -> Extent {
        let (track, sector) = self.sectors_per_track.divide(relative + self.reserved);
        let left = (self.sectors_per_track.divisor - sector).min(self.blocks - relative) as u32;
        let sectors = wanted.min(left);
        let before = sector.min(relative) as u32;
        Extent { followers: left - sectors, before, ..self.extent(track, sector, sectors, u64::from(sectors)) }
    }

    /// Locates blocks in a zone with slips, remaps or spares inside the zone.
    #[inline(never)]
    fn locate_any(&self, relative: u64, wanted: u32) -> Extent {
        let place = self.place(relative);
        if let Ok(at) = self.remaps.binary_search_by_key(&place.unmapped, |&(defect, _)| defect)
            && !self.slips_are_tracks
        {
            let (track, sector) = self.sectors_per_track.divide(self.remaps[at].1);
            return self.extent(track, sector, 1, 1);
        }
        let (track, sector) = self.sectors_per_track.divide(place.sector);
        let track_left = self.sectors_per_track.divisor - sector;
        let mut sectors = u64::from(wanted).min(track_left).min(place.region_left).min(self.blocks - relative);
        // Slips reduce the data on the track, so find the last block that is still on it.
        let on_track = |count: u64| self.place(relative + count - 1).sector < place.sector + track_left;
        if !self.slips.is_empty() && !self.slips_are_tracks && sectors > 1 && !on_track(sectors) {
            let (mut low, mut high) = (1, sectors);
            while high - low > 1 {
                let middle = (low + high) / 2;
                if on_track(middle) { low = middle } else { high = middle }
            }
            sectors = low;
        }
        if !self.slips_are_tracks {
            // A remapped sector is stored elsewhere, so the run ends before it.
            let first = self.remaps.partition_point(|&(defect, _)| defect <= place.unmapped);
            if let Some(&(defect, _)) = self.remaps.get(first) {
                while sectors > 1 && self.place(relative + sectors - 1).unmapped >= defect {
                    sectors -= 1;
                }
            }
        }
        let last = self.place(relative + sectors - 1).sector;
        self.extent(track, sector, sectors as u32, last - place.sector + 1)
    }

    fn place(&self, relative: u64) -> DiskAddress {
        let data = relative + self.reserved;
        if self.slips_are_tracks {
            let (track, sector) = self.sectors_per_track.divide(data);
            let track = track + slips_before(&self.slips, track);
            let track = self.remaps.iter().find(|&&(defect, _)| defect == track).map_or(track, |&(_, spare)| spare);
            let sector = track * self.sectors_per_track.divisor + sector;
            return DiskAddress { sector, unmapped: sector, region_left: u64::MAX };
        }
        let Some(regions) = self.regions else {
            let sector = data + slips_before(&self.slips, data);
            return DiskAddress { sector, unmapped: sector, region_left: u64::MAX };
        };
        let (region, rest) = regions.blocks.divide(data);
        let begin = region * regions.sectors;
        let first_slip = self.slips.partition_point(|&slip| slip < begin);
        let end_slip = self.slips.partition_point(|&slip| slip < begin + regions.sectors);
        let sector = if regions.slips_accumulate {
            let start = begin + regions.front + rest;
            start + slips_before(&self.slips, start)
        } else {
            // The region's data end at the same place with any number of slips, because each slip uses a spare in
            // front.
            let slips = &self.slips[first_slip..end_slip];
            let start = begin + regions.front.saturating_sub(slips.len() as u64) + rest;
            start + slips_before(slips, start)
        };
        DiskAddress { sector, unmapped: sector, region_left: regions.blocks.divisor - rest }
    }

    /// Returns the extent of `sectors` blocks, which occupy `physical` sectors from `sector` on of the zone's `track`.
    #[inline(always)]
    fn extent(&self, track: u64, sector: u64, sectors: u32, physical: u64) -> Extent {
        let (cylinder, head, skew) = self.track_place(track);
        let sector_angle = ((u128::from(sector) * u128::from(self.sector_span_fixed)) >> 32) as u64 as u32;
        Extent {
            cylinder: self.first_cylinder + cylinder,
            head,
            angle: self.offset.wrapping_add(skew).wrapping_add(sector_angle),
            span: ((u128::from(physical) * u128::from(self.sector_span_fixed)) >> 32) as u64,
            sector_span: (self.sector_span_fixed >> 32) as u32,
            sectors,
            followers: 0,
            before: 0,
        }
    }

    /// Returns the cylinder (counted from the zone's first), the head and the skew of a track.
    #[inline(always)]
    fn track_place(&self, track: u64) -> (u32, u32, Angle) {
        if let Reversal::Band { cylinders } = self.reversed {
            return self.band_place(track, cylinders);
        }
        let (cylinder, sequence) = self.tracks_per_cylinder.divide(track);
        let (cylinder, sequence) = (cylinder as u32, sequence as u32);
        let odd = match self.reversed {
            Reversal::OddInZone => cylinder & 1,
            Reversal::OddAbsolute => (cylinder + self.first_cylinder) & 1,
            Reversal::Never | Reversal::Band { .. } => 0,
        };
        let head = if odd == 1 { self.tracks_per_cylinder.divisor as u32 - 1 - sequence } else { sequence };
        let skew = self.track_skew.wrapping_mul(sequence).wrapping_add(self.cylinder_step.wrapping_mul(cylinder));
        (cylinder, head, skew)
    }

    /// Returns cylinder, head and skew for an order in bands: one surface after another over the same cylinders, in
    /// alternating direction. The last band takes the remaining cylinders.
    #[inline(never)]
    fn band_place(&self, track: u64, band: u32) -> (u32, u32, Angle) {
        let heads = self.tracks_per_cylinder.divisor;
        let bands = u64::from((self.cylinders / band).max(1));
        let index = (track / (heads * u64::from(band))).min(bands - 1);
        let first = index as u32 * band;
        let width = if index == bands - 1 { self.cylinders - first } else { band };
        let within = track - u64::from(first) * heads;
        let (surface, step) = (within / u64::from(width), (within % u64::from(width)) as u32);
        let cylinder = if surface & 1 == 0 { first + step } else { first + width - 1 - step };
        // One head change per surface (also at the band's end), and one single-cylinder step for each other track.
        let head_changes = (u64::from(first) * heads / u64::from(band) + surface) as u32;
        let skew = self
            .track_skew
            .wrapping_mul(head_changes)
            .wrapping_add(self.cylinder_skew.wrapping_mul((track as u32).wrapping_sub(head_changes)));
        (cylinder, surface as u32, skew)
    }
}

struct DiskAddress {
    /// Sector in the zone, in track order.
    sector: u64,
    /// Sector number before remapping.
    unmapped: u64,
    /// Blocks from this one to the end of the region.
    region_left: u64,
}

/// Returns the number of slips before data sector number `data`. Slip i counts if it is at or before `data` plus the i
/// earlier slips.
fn slips_before(slips: &[u64], data: u64) -> u64 {
    // slips[i] - i never decreases, because slips ascend strictly.
    let (mut low, mut high) = (0, slips.len());
    while low < high {
        let middle = (low + high) / 2;
        if slips[middle] - middle as u64 <= data { low = middle + 1 } else { high = middle }
    }
    low as u64
}
