//! Checks a drive file before anything is derived from it, and the complete description.

use headstack_sim::drive::description::{BlockOrder, DriveDescription};
use headstack_workload::quantity::{Bytes, DurationNs};
use headstack_workload::{Document, InputError};

use crate::file::{AfterTable, DriveFile, SeekTable};

/// Checks a complete description.
pub(super) fn description(document: &Document, description: &DriveDescription) -> Result<(), InputError> {
    headstack_sim::drive::check(description).map_err(|fault| document.error(&fault.key, fault.message))
}

/// Checks that the file meets the assumptions of the derivation rules and that its figures do not contradict each
/// other.
pub(super) fn file(document: &Document, file: &DriveFile) -> Result<(), InputError> {
    let check = Check { document };
    check.sources(file)?;
    check.sizes(file)?;
    check.rates(file)?;
    check.durations(file)?;
    check.seek(&file.seek)?;
    check.power(file)?;
    file.price.as_ref().map_or(Ok(()), |price| price.check(document))?;
    let interface = &file.interface;
    let exact = [
        ("interface.read_ns_per_byte", interface.read_ns_per_byte),
        ("interface.write_ns_per_byte", interface.write_ns_per_byte),
    ];
    match exact.iter().find(|(_, time)| time.is_some()) {
        Some((key, _)) if interface.rate.is_some() => check.fail(key, "not allowed with interface.rate"),
        _ => Ok(()),
    }
}

/// Checks an entry of `[sources]`.
pub(crate) fn source_code(document: &Document, key: &str, source: &str) -> Result<(), InputError> {
    let (code, text) = source.split_once(' ').unwrap_or((source, ""));
    if matches!(code, "A" | "S" | "B" | "C" | "D" | "I") && !text.trim().is_empty() {
        return Ok(());
    }
    let message = format!("{source:?} is not a source; use a code (A, S, B, C, D or I), a blank and the source");
    Err(document.error(&format!("sources.{key}"), message))
}

struct Check<'a> {
    document: &'a Document,
}

impl Check<'_> {
    fn fail(&self, key: &str, message: impl Into<String>) -> Result<(), InputError> {
        Err(self.document.error(key, message))
    }

    fn sources(&self, file: &DriveFile) -> Result<(), InputError> {
        file.sources.iter().try_for_each(|(key, source)| source_code(self.document, key, source))
    }

    fn sizes(&self, file: &DriveFile) -> Result<(), InputError> {
        let (capacity, geometry) = (&file.capacity, &file.geometry);
        let bytes = [
            ("capacity.logical_block", capacity.logical_block),
            ("capacity.physical_sector", capacity.physical_sector),
        ];
        for (key, size) in bytes {
            if size.is_some_and(|size| ![512, 4096].contains(&size.0)) {
                return self.fail(key, "must be 512B or 4096B");
            }
        }
        let smaller = |logical: Bytes, physical: Bytes| physical < logical;
        let block = capacity.logical_block.unwrap_or(Bytes(512));
        if capacity.physical_sector.is_some_and(|sector| smaller(block, sector)) {
            return self.fail("capacity.physical_sector", "must not be smaller than a logical block");
        }
        let counts = [
            ("capacity.logical_blocks", capacity.logical_blocks.map(|blocks| blocks == 0)),
            ("geometry.platters", geometry.platters.map(|count| count == 0)),
            ("geometry.heads", geometry.heads.map(|count| count == 0)),
            ("geometry.cylinders", geometry.cylinders.map(|count| count == 0)),
            ("geometry.zone_count", geometry.zone_count.map(|count| count == 0)),
            ("geometry.outer_sectors_per_track", geometry.outer_sectors_per_track.map(|count| count == 0)),
            ("geometry.inner_sectors_per_track", geometry.inner_sectors_per_track.map(|count| count == 0)),
        ];
        if let Some((key, _)) = counts.iter().find(|(_, zero)| *zero == Some(true)) {
            return self.fail(key, "0 is not allowed; must be 1 or more");
        }
        let bytes =
            capacity.logical_blocks.map(|blocks| blocks.saturating_mul(block.0)).or(capacity.size.map(|size| size.0));
        let cache = file.media_cache.as_ref().and_then(|cache| cache.size);
        if cache.zip(bytes).is_some_and(|(cache, bytes)| cache.0 > bytes) {
            return self.fail("media_cache.size", "must not exceed the size of the drive");
        }
        if let Some(BlockOrder::SurfaceSerpentine { band_cylinders: 0 }) = geometry.order {
            return self.fail("geometry.order", "a band must have 1 cylinder or more");
        }
        Ok(())
    }

    fn rates(&self, file: &DriveFile) -> Result<(), InputError> {
        let (geometry, media) = (&file.geometry, &file.media);
        let pairs = [
            (
                "media.sustained_outer_rate",
                media.sustained_outer_rate.map(|rate| rate.0),
                "media.sustained_inner_rate",
                media.sustained_inner_rate.map(|rate| rate.0),
            ),
            (
                "media.raw_outer_rate",
                media.raw_outer_rate.map(|rate| rate.0),
                "media.raw_inner_rate",
                media.raw_inner_rate.map(|rate| rate.0),
            ),
            (
                "geometry.outer_sectors_per_track",
                geometry.outer_sectors_per_track.map(f64::from),
                "geometry.inner_sectors_per_track",
                geometry.inner_sectors_per_track.map(f64::from),
            ),
        ];
        for (outer_key, outer, inner_key, inner) in pairs {
            for (key, value) in [(outer_key, outer), (inner_key, inner)] {
                if value == Some(0.0) {
                    return self.fail(key, "0 is not allowed; must be above 0");
                }
            }
            if let (Some(outer), Some(inner)) = (outer, inner)
                && inner > outer
            {
                return self.fail(inner_key, format!("must not exceed {outer_key}; inner tracks are shorter"));
            }
        }
        Ok(())
    }

    /// Checks that all times, except settling times, are 0 or more.
    fn durations(&self, file: &DriveFile) -> Result<(), InputError> {
        let (seek, overheads) = (&file.seek, &file.overheads);
        let single = [
            ("seek.read_average", seek.read_average),
            ("seek.write_average", seek.write_average),
            ("seek.read_track_to_track", seek.read_track_to_track),
            ("seek.write_track_to_track", seek.write_track_to_track),
            ("seek.read_full_stroke", seek.read_full_stroke),
            ("seek.write_full_stroke", seek.write_full_stroke),
            ("seek.constant", seek.constant),
            ("seek.head_switch", seek.head_switch),
            ("queue.ageing", file.queue.ageing),
            ("queue.rotation_margin", file.queue.rotation_margin),
            ("overheads.command", overheads.command),
            ("overheads.read_completion", overheads.read_completion),
            ("overheads.write_completion", overheads.write_completion),
            ("overheads.data_preparation", overheads.data_preparation),
            ("overheads.minimum_seek_delay", overheads.minimum_seek_delay),
            ("slow.recalibration.interval", file.slow.recalibration.as_ref().map(|process| process.interval)),
            ("slow.recalibration.duration", file.slow.recalibration.as_ref().map(|process| process.duration)),
            ("power.spin_down", file.power.spin_down),
            ("power.spin_up", file.power.spin_up),
            ("power.idle_timeout", file.power.idle_timeout),
            ("slow.scan.idle", file.slow.scan.as_ref().map(|scan| scan.idle)),
            ("flash_cache.latency", file.flash_cache.as_ref().and_then(|flash| flash.latency)),
            ("media_cache.idle", file.media_cache.as_ref().and_then(|cache| cache.idle)),
        ];
        for (key, duration) in single {
            self.not_negative(key, duration)?;
        }
        for (key, cost) in [
            ("overheads.read_hit", overheads.read_hit),
            ("overheads.read_miss", overheads.read_miss),
            ("overheads.write_hit", overheads.write_hit),
            ("overheads.write_miss", overheads.write_miss),
            ("overheads.read_settled_min", overheads.read_settled_min),
        ] {
            self.cost(key, cost)?;
        }
        if let Some(disconnect) = &file.interface.disconnect {
            self.cost("interface.disconnect.read", Some(disconnect.read))?;
            self.not_negative("interface.disconnect.write", Some(disconnect.write))?;
            self.not_negative("interface.disconnect.first_reselect", Some(disconnect.first_reselect))?;
            self.not_negative("interface.disconnect.other_reselect", Some(disconnect.other_reselect))?;
            if let Some(extra) = &disconnect.extra {
                self.not_negative("interface.disconnect.extra.command", Some(extra.command))?;
                self.not_negative("interface.disconnect.extra.disconnect", Some(extra.disconnect))?;
                self.not_negative("interface.disconnect.extra.between", Some(extra.between))?;
                self.not_negative("interface.disconnect.extra.second_disconnect", Some(extra.second_disconnect))?;
                self.not_negative("interface.disconnect.extra.seek_delta", Some(extra.seek_delta))?;
            }
        }
        Ok(())
    }

    fn power(&self, file: &DriveFile) -> Result<(), InputError> {
        let power = &file.power;
        let amounts = [("power.idle_w", power.idle_w), ("power.active_w", power.active_w)];
        for (key, watts) in amounts.into_iter().filter_map(|(key, watts)| Some((key, watts?))) {
            if !(watts > 0.0 && watts < 1e6) {
                return self.fail(key, format!("{watts} is not allowed; must be above 0"));
            }
        }
        if power.active_w.zip(power.idle_w).is_some_and(|(active_w, idle_w)| active_w < idle_w) {
            return self.fail("power.active_w", "must not be less than power.idle_w");
        }
        match file.geometry.media_diameter_mm {
            Some(mm) if !(10.0..=1000.0).contains(&mm) => {
                self.fail("geometry.media_diameter_mm", format!("{mm} is not allowed; must be 10 to 1,000"))
            }
            _ => Ok(()),
        }
    }

    fn cost(&self, key: &str, cost: Option<AfterTable>) -> Result<(), InputError> {
        self.not_negative(&format!("{key}.after_read"), cost.map(|cost| cost.after_read))?;
        self.not_negative(&format!("{key}.after_write"), cost.map(|cost| cost.after_write))
    }

    fn not_negative(&self, key: &str, duration: Option<DurationNs>) -> Result<(), InputError> {
        match duration {
            Some(duration) if duration.0 < 0 => self.fail(key, format!("{duration} is negative; must be 0ms or more")),
            _ => Ok(()),
        }
    }

    fn seek(&self, seek: &SeekTable) -> Result<(), InputError> {
        let curves = [
            ("seek.points", seek.points.is_some()),
            ("seek.two_piece", seek.two_piece.is_some()),
            ("seek.three_parameter", seek.three_parameter.is_some()),
            ("seek.constant", seek.constant.is_some()),
        ];
        let stated_curves: Vec<&str> =
            curves.iter().filter(|(_, stated_curves)| *stated_curves).map(|(key, _)| *key).collect();
        if let [first, second, ..] = stated_curves[..] {
            return self.fail(second, format!("{first} is also stated; only one curve is allowed"));
        }
        for (index, (_, time)) in seek.points.iter().flatten().enumerate() {
            self.not_negative(&format!("seek.points[{index}]"), Some(*time))?;
        }
        for (index, time) in seek.two_piece.iter().flat_map(|pieces| &pieces.first).enumerate() {
            self.not_negative(&format!("seek.two_piece.first[{index}]"), Some(*time))?;
        }
        if let Some(parameters) = &seek.three_parameter {
            self.not_negative("seek.three_parameter.minimum", Some(parameters.minimum))?;
            self.ascending(
                ("seek.three_parameter.minimum", Some(parameters.minimum)),
                ("seek.three_parameter.average", Some(parameters.average)),
            )?;
            self.ascending(
                ("seek.three_parameter.average", Some(parameters.average)),
                ("seek.three_parameter.maximum", Some(parameters.maximum)),
            )?;
        }
        let read = ("seek.read_average", seek.read_average);
        let write = ("seek.write_average", seek.write_average);
        self.ascending(("seek.read_track_to_track", seek.read_track_to_track), read)?;
        self.ascending(read, ("seek.read_full_stroke", seek.read_full_stroke))?;
        self.ascending(("seek.write_track_to_track", seek.write_track_to_track), write)?;
        self.ascending(write, ("seek.write_full_stroke", seek.write_full_stroke))
    }

    fn ascending(
        &self,
        (low_key, low): (&str, Option<DurationNs>),
        (high_key, high): (&str, Option<DurationNs>),
    ) -> Result<(), InputError> {
        match (low, high) {
            (Some(low), Some(high)) if low > high => {
                self.fail(low_key, format!("{low} must not exceed {high_key}, {high}"))
            }
            _ => Ok(()),
        }
    }
}
