//! Derives zones from a data sheet's capacity, surfaces and rates.

use headstack_sim::drive::description::{BlockOrder, Geometry, InterfaceKind, Sparing, Zone};
use headstack_workload::quantity::Bytes;
use headstack_workload::{InputError, Rate};

use super::Resolver;
use super::mechanics::Motion;
use crate::constants::{
    ADVANCED_FORMAT_ABOVE, ADVANCED_FORMAT_SINCE, BAND_CYLINDERS, BIT_ASPECT_BY_YEAR, FORMAT_EFFICIENCY, MODERN_SINCE,
    RATE_RATIO_BY_YEAR, ZONES,
};
use crate::file::ZoneTable;

/// A zone of a derived layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ring {
    cylinders: u32,
    sectors_per_track: u32,
}

/// The size and shape of a layout.
struct Extents {
    /// Number of physical sectors that the layout must hold.
    sectors: u64,
    heads: u32,
    /// Number of sectors on the outermost and innermost track. If the number of cylinders is known, only their ratio is
    /// used.
    outer: f64,
    inner: f64,
    zones: u32,
}

impl Extents {
    /// Returns the sectors per track of a zone before rounding. They fall linearly from the outer to the inner edge:
    /// bit density is about constant (zoned recording), so sectors per track are proportional to the radius, which
    /// falls linearly with the cylinder number.
    fn sectors_per_track(&self, zone: u32) -> f64 {
        let inwards = f64::from(zone) / f64::from((self.zones - 1).max(1));
        self.outer + (self.inner - self.outer) * inwards
    }

    fn capacity_of(&self, rings: &[Ring]) -> u64 {
        rings
            .iter()
            .map(|ring| u64::from(self.heads) * u64::from(ring.cylinders) * u64::from(ring.sectors_per_track))
            .sum()
    }

    /// Returns zones of equal width whose sectors per track are multiplied by `scale`.
    fn rings(&self, cylinders: u32, scale: f64) -> Vec<Ring> {
        let edge = |zone: u32| (u64::from(cylinders) * u64::from(zone) / u64::from(self.zones)) as u32;
        (0..self.zones)
            .map(|zone| Ring {
                cylinders: edge(zone + 1) - edge(zone),
                sectors_per_track: (self.sectors_per_track(zone) * scale).round() as u32,
            })
            .collect()
    }

    /// Returns zones with as many cylinders as the rates require. The innermost zone takes the rest, so that less than
    /// one of its cylinders is unused.
    fn by_rate(&self) -> Vec<Ring> {
        let mean = (self.outer + self.inner) / 2.0;
        let cylinders = (self.sectors as f64 / (f64::from(self.heads) * mean)).ceil() as u32;
        let mut rings = self.rings(cylinders.max(self.zones), 1.0);
        let outer = self.capacity_of(&rings[..rings.len() - 1]);
        if let Some(last) = rings.last_mut() {
            let per_cylinder = u64::from(self.heads) * u64::from(last.sectors_per_track);
            last.cylinders = (self.sectors.saturating_sub(outer).div_ceil(per_cylinder) as u32).max(1);
        }
        rings
    }

    /// Returns zones for the stated number of cylinders. Sectors per track are scaled to the capacity; then the middle
    /// boundary moves outwards as far as the blocks still fit.
    fn by_cylinders(&self, cylinders: u32) -> Vec<Ring> {
        let exact = self.sectors as f64 / (f64::from(self.heads) * f64::from(cylinders));
        let (mut low, mut high) = (0.0, 2.0 * (exact + 1.0) / self.inner);
        for _ in 0..64 {
            let middle = (low + high) / 2.0;
            if self.capacity_of(&self.rings(cylinders, middle)) < self.sectors { low = middle } else { high = middle }
        }
        let mut rings = self.rings(cylinders, high);
        let slack = self.capacity_of(&rings) - self.sectors;
        let middle = rings.len() / 2;
        if middle > 0 {
            let (outer, inner) = (rings[middle - 1], rings[middle]);
            let step = u64::from(self.heads) * u64::from(outer.sectors_per_track.abs_diff(inner.sectors_per_track));
            let moved = slack.checked_div(step).unwrap_or(0).min(u64::from(outer.cylinders.saturating_sub(1))) as u32;
            rings[middle - 1].cylinders -= moved;
            rings[middle].cylinders += moved;
        }
        rings
    }
}

/// Returns the number of cylinders of a drive that states only its capacity.
///
/// A surface with track pitch 1/T and linear density D holds pi (ro^2 - ri^2) T D bits on T (ro - ri) cylinders. With k
/// = ro/ri and the aspect ratio a = D/T, the size of the disk cancels out: cylinders = sqrt(bits per surface / (pi a) *
/// (k - 1) / (k + 1)). [`crate::constants::BIT_ASPECT_BY_YEAR`] has the aspect ratio by year.
pub fn cylinders_from_density(bits_per_surface: f64, outer_over_inner: f64, bit_aspect: f64) -> f64 {
    let radii = (outer_over_inner - 1.0) / (outer_over_inner + 1.0);
    (bits_per_surface * radii / (std::f64::consts::PI * bit_aspect)).sqrt()
}

/// Returns the media rate for the sustained rate of a sheet, in bytes per second. IBM's formula is sustained = A / (B +
/// C + D): A is the number of bytes in a cylinder, B the time of its head switches, C the time of the change to the
/// next cylinder, and D the time of the turns. The result is A / D. (Quoted in reviews of IBM's Ultrastar drives.)
/// `order` determines how many of a cylinder's tracks end with a head switch.
fn media_rate(sustained: f64, motion: &Motion, heads: u32, order: BlockOrder) -> f64 {
    let heads = f64::from(heads);
    let switches = match order {
        BlockOrder::SurfaceSerpentine { band_cylinders } => {
            let band = f64::from(band_cylinders.max(1));
            (motion.head_change_ns() + (band - 1.0) * motion.cylinder_change_ns()) / band
        }
        BlockOrder::CylinderMajor | BlockOrder::SerpentineInZone | BlockOrder::Serpentine => {
            ((heads - 1.0) * motion.head_change_ns() + motion.cylinder_change_ns()) / heads
        }
    };
    sustained * (1.0 + switches / motion.revolution_ns())
}

impl Resolver<'_> {
    /// Returns the physical sector size: the stated one, or the usual one of the year. Since 2012, SATA drives, and all
    /// drives above 4 TB, have physical sectors of 4 KiB and export blocks of 512 bytes (IDEMA's Advanced Format from
    /// 2011 on). SAS drives of 4 TB are still sold with 512 bytes.
    fn physical_sector(&mut self, block: Bytes) -> Bytes {
        let capacity = &self.file.capacity;
        if let Some(sector) = capacity.physical_sector {
            return sector;
        }
        let bytes = capacity.logical_blocks.map(|blocks| blocks * block.0).or(capacity.size.map(|size| size.0));
        let is_sata = self.file.interface.kind == Some(InterfaceKind::Sata);
        if self.file.year >= Some(ADVANCED_FORMAT_SINCE) && (is_sata || bytes > Some(ADVANCED_FORMAT_ABOVE)) {
            return self.record("capacity.physical_sector", Bytes(block.0.max(4096)), "usual since 2012");
        }
        self.record("capacity.physical_sector", block, "same as the logical block")
    }

    pub(super) fn geometry(&mut self, motion: &Motion) -> Result<Geometry, InputError> {
        let (capacity, table) = (&self.file.capacity, &self.file.geometry);
        let block = self.given_or(capacity.logical_block, "capacity.logical_block", "usual", |_| Ok(Bytes(512)))?;
        let sector = self.physical_sector(block);
        let logical_blocks = self.given_or(
            capacity.logical_blocks,
            "capacity.logical_blocks",
            "whole blocks in the size",
            |resolver| match capacity.size {
                Some(size) => Ok(size.0 / block.0),
                None => resolver.missing("capacity.logical_blocks", "give it, or capacity.size such as \"36.7GB\""),
            },
        )?;
        let heads =
            self.given_or(table.heads, "geometry.heads", "both sides of each platter", |resolver| {
                match table.platters {
                    Some(platters) => Ok(2 * platters),
                    None => resolver.missing("geometry.heads", "give the recording surfaces, or geometry.platters"),
                }
            })?;
        let order = self.given_or(table.order, "geometry.order", "usual in the year of introduction", |resolver| {
            Ok(if resolver.year()? < MODERN_SINCE {
                BlockOrder::CylinderMajor
            } else {
                BlockOrder::SurfaceSerpentine { band_cylinders: BAND_CYLINDERS }
            })
        })?;
        let sparing = self
            .given_or(table.sparing, "geometry.sparing", "spares are left out of the layout", |_| Ok(Sparing::None))?;
        let mut geometry = Geometry {
            logical_block_bytes: block.0 as u32,
            physical_sector_bytes: sector.0 as u32,
            logical_blocks,
            heads,
            cylinders: 0,
            order,
            sparing,
            zones: Vec::new(),
        };
        let zones = match &table.zones {
            Some(zones) => zones.clone(),
            None => self.derived_zones(&geometry, motion)?,
        };
        geometry.cylinders =
            self.given_or(table.cylinders, "geometry.cylinders", "end of the innermost zone", |_| {
                Ok(zones.iter().map(|zone| zone.last_cylinder.saturating_add(1)).max().unwrap_or(0))
            })?;
        if zones.iter().any(|zone| zone.track_skew_turns.is_none() || zone.cylinder_skew_turns.is_none()) {
            let times = format!("{:.3} and {:.3} ms", motion.head_change_ns() / 1e6, motion.cylinder_change_ns() / 1e6);
            self.record(
                "geometry.zones.track_skew_turns, cylinder_skew_turns",
                times,
                "head switch and single-cylinder seek, each with the write settle, rounded up to whole sectors and one more",
            );
        }
        geometry.zones = zones.into_iter().map(|zone| complete(zone, motion)).collect();
        Ok(geometry)
    }

    /// Returns a layout that holds the blocks of `geometry` and the media cache.
    ///
    /// Stated cylinders and capacity take precedence over rates, which then determine only the ratio of the outer to
    /// the inner track. Sheets state rates in many ways (before or after formatting and switching), but capacity in
    /// only one.
    fn derived_zones(&mut self, geometry: &Geometry, motion: &Motion) -> Result<Vec<ZoneTable>, InputError> {
        if geometry.sparing != Sparing::None {
            return self.missing("geometry.zones", "a sparing scheme needs the table of zones");
        }
        let per_sector = u64::from(geometry.physical_sector_bytes / geometry.logical_block_bytes);
        let cache = self.file.media_cache.as_ref().and_then(|cache| cache.size).map_or(0, |size| size.0);
        let sectors = geometry.logical_blocks.div_ceil(per_sector) + cache / u64::from(geometry.physical_sector_bytes);
        let zones = self.given_or(self.file.geometry.zone_count, "geometry.zone_count", "usual", |_| Ok(ZONES))?;
        let rates = self.track_sectors(geometry, motion)?;
        let (outer, inner) = match rates {
            Some(both) => both,
            None => {
                let rule = "ratio of rates usual in the year of introduction";
                let ratio = self.by_year(&RATE_RATIO_BY_YEAR)?;
                (self.record("media.sustained_outer_rate over media.sustained_inner_rate", ratio, rule), 1.0)
            }
        };
        let mut extents = Extents { sectors, heads: geometry.heads, outer, inner, zones };
        let cylinders = match (self.file.geometry.cylinders, rates) {
            (Some(cylinders), _) => Some(cylinders),
            (None, Some(_)) => None,
            (None, None) => {
                let bits = sectors as f64 * f64::from(geometry.physical_sector_bytes) * 8.0 / f64::from(geometry.heads);
                let aspect = self.by_year(&BIT_ASPECT_BY_YEAR)?;
                let cylinders = cylinders_from_density(bits, outer / inner, aspect).round() as u32;
                let rule = "areal density and the bit aspect ratio usual in the year of introduction";
                Some(self.record("geometry.cylinders", cylinders.max(1), rule))
            }
        };
        extents.zones = zones.min(cylinders.unwrap_or(zones));
        let rings = match cylinders {
            Some(cylinders) if u64::from(cylinders) * u64::from(geometry.heads) > sectors => {
                let message = format!("more tracks than the {sectors} sectors; reduce cylinders or heads");
                return Err(self.document.error("geometry.cylinders", message));
            }
            Some(cylinders) => extents.by_cylinders(cylinders),
            None => extents.by_rate(),
        };
        let ends = format!(
            "{} zones, {} to {} sectors per track",
            rings.len(),
            rings[0].sectors_per_track,
            rings[rings.len() - 1].sectors_per_track
        );
        let rule = match cylinders {
            Some(_) => "sectors per track fall linearly, in the ratio of the rates, scaled to capacity and cylinders",
            None => "sectors per track fall linearly between the rates; cylinders follow from the capacity",
        };
        self.record("geometry.zones", ends, rule);
        let mut first_cylinder = 0;
        Ok(rings
            .iter()
            .map(|ring| {
                let first = first_cylinder;
                first_cylinder += ring.cylinders;
                ZoneTable {
                    first_cylinder: first,
                    last_cylinder: first_cylinder - 1,
                    sectors_per_track: ring.sectors_per_track,
                    ..ZoneTable::default()
                }
            })
            .collect())
    }

    /// Returns the number of physical sectors on the outermost and innermost track: as stated, else from the sustained
    /// rates, else from the raw rates. If only one of the two is known, the usual ratio of the year yields the other.
    fn track_sectors(&mut self, geometry: &Geometry, motion: &Motion) -> Result<Option<(f64, f64)>, InputError> {
        let (table, media) = (&self.file.geometry, &self.file.media);
        let per_rate = motion.revolution_ns() / 1e9 / f64::from(geometry.physical_sector_bytes);
        let sustained = |rate: Rate| media_rate(rate.0, motion, geometry.heads, geometry.order) * per_rate;
        let raw = |rate: Rate| rate.0 * FORMAT_EFFICIENCY * per_rate;
        let candidates = [
            (table.outer_sectors_per_track.map(f64::from), table.inner_sectors_per_track.map(f64::from)),
            (media.sustained_outer_rate.map(sustained), media.sustained_inner_rate.map(sustained)),
            (media.raw_outer_rate.map(raw), media.raw_inner_rate.map(raw)),
        ];
        let both = candidates.iter().find(|(outer, inner)| outer.is_some() && inner.is_some());
        let one = candidates.iter().find(|(outer, inner)| outer.is_some() || inner.is_some());
        let Some(&ends) = both.or(one) else {
            return Ok(None);
        };
        if let (Some(outer), Some(inner)) = ends {
            return Ok(Some((outer, inner)));
        }
        let ratio = self.by_year(&RATE_RATIO_BY_YEAR)?;
        let rule = "ratio usual in the year of introduction";
        let ratio = self.record("media.sustained_outer_rate over media.sustained_inner_rate", ratio, rule);
        Ok(match ends {
            (Some(outer), _) => Some((outer, outer / ratio)),
            (_, inner) => inner.map(|inner| (inner * ratio, inner)),
        })
    }
}

/// Completes a zone. A skew covers the switch time and the settling time of a write, so that neither sequential reads
/// nor sequential writes lose a turn: ceil(time / turn * sectors) sectors, plus one for rounding.
fn complete(zone: ZoneTable, motion: &Motion) -> Zone {
    let skew = |time_ns: f64| {
        let sectors = f64::from(zone.sectors_per_track);
        ((time_ns / motion.revolution_ns() * sectors).ceil() + 1.0) / sectors
    };
    Zone {
        first_cylinder: zone.first_cylinder,
        last_cylinder: zone.last_cylinder,
        sectors_per_track: zone.sectors_per_track,
        offset_turns: zone.offset_turns.unwrap_or(0.0),
        track_skew_turns: zone.track_skew_turns.unwrap_or_else(|| skew(motion.head_change_ns())),
        cylinder_skew_turns: zone.cylinder_skew_turns.unwrap_or_else(|| skew(motion.cylinder_change_ns())),
        reserved_sectors: zone.reserved_sectors.unwrap_or(0),
        spares: zone.spares.unwrap_or(0),
        slips: zone.slips.unwrap_or_default(),
        remaps: zone.remaps.unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn motion(head_switch_ns: u64, single_cylinder_ns: u64, write_settle_ns: i64) -> Motion {
        Motion { rpm: 15_000.0, curve: None, single_cylinder_ns, head_switch_ns, read_settle_ns: 0, write_settle_ns }
    }

    #[test]
    fn ibm_formula_inverted_gives_back_the_sustained_rate() {
        // 4 surfaces, turns of 4 ms, switch times of 0.5 and 0.9 ms with settling, 500 sectors per track.
        let motion = motion(300_000, 700_000, 200_000);
        let bytes_per_cylinder = 4.0 * 500.0 * 512.0;
        let sustained = bytes_per_cylinder / (3.0 * 0.0005 + 0.0009 + 4.0 * 0.004);
        let media = media_rate(sustained, &motion, 4, BlockOrder::CylinderMajor);
        assert!((media - 500.0 * 512.0 / 0.004).abs() < 1.0, "{media}");
        // In surface order, every track of a band except one ends with a step to the next cylinder.
        let sustained = 10.0 * 500.0 * 512.0 / (0.0005 + 9.0 * 0.0009 + 10.0 * 0.004);
        let media = media_rate(sustained, &motion, 4, BlockOrder::SurfaceSerpentine { band_cylinders: 10 });
        assert!((media - 500.0 * 512.0 / 0.004).abs() < 1.0, "{media}");
    }

    #[test]
    fn density_formula_counts_the_tracks_of_a_ring() {
        // 1,000 tracks per inch on 0.5 in, radii 1.0 and 0.5 in, 8,000 bits per inch on every track: aspect ratio 8.
        let bits: f64 =
            (0..500).map(|i| 2.0 * std::f64::consts::PI * (0.5 + (f64::from(i) + 0.5) / 1000.0) * 8000.0).sum();
        let cylinders = cylinders_from_density(bits, 2.0, 8.0);
        assert!((cylinders - 500.0).abs() < 0.5, "{cylinders}");
    }

    #[test]
    fn skew_covers_switch_and_write_settle() {
        let zone = ZoneTable { first_cylinder: 0, last_cylinder: 9, sectors_per_track: 400, ..ZoneTable::default() };
        let zone = complete(zone, &motion(300_000, 700_000, 205_000));
        // In a turn of 4 ms, 0.505 ms are 50.5 sectors and 0.905 ms are 90.5.
        assert_eq!(zone.track_skew_turns, 52.0 / 400.0);
        assert_eq!(zone.cylinder_skew_turns, 92.0 / 400.0);
    }

    proptest! {
        #[test]
        fn layouts_hold_the_sectors_with_little_slack(
            heads in 1u32..25, inner in 50.0f64..2000.0, ratio in 1.05f64..2.5, zones in 2u32..31,
            cylinders in 1000u32..200_000, by_cylinders: bool,
        ) {
            let mean = inner * (1.0 + ratio) / 2.0;
            let sectors = (f64::from(heads) * f64::from(cylinders) * mean) as u64;
            let extents = Extents { sectors, heads, outer: inner * ratio, inner, zones };
            let rings = if by_cylinders { extents.by_cylinders(cylinders) } else { extents.by_rate() };
            prop_assert!(extents.capacity_of(&rings) >= sectors);
            prop_assert!(rings.windows(2).all(|pair| pair[0].sectors_per_track >= pair[1].sectors_per_track));
            let total: u64 = rings.iter().map(|ring| u64::from(ring.cylinders)).sum();
            let slack = extents.capacity_of(&rings) - sectors;
            if by_cylinders {
                prop_assert_eq!(total, u64::from(cylinders));
                // At most half a sector per track is unused if the zones' rounding errors add up.
                prop_assert!(slack <= u64::from(heads) * u64::from(cylinders));
            } else {
                prop_assert!(slack < u64::from(heads) * u64::from(rings[rings.len() - 1].sectors_per_track));
                let deviation = total as f64 / f64::from(cylinders) - 1.0;
                prop_assert!(deviation.abs() < 0.05, "{deviation}");
            }
        }
    }
}
