//! Derives the spindle speed and the settling and switching times.

use headstack_sim::drive::description::SeekCurve;
use headstack_sim::drive::mechanics::seek_ns;
use headstack_workload::InputError;
use headstack_workload::quantity::DurationNs;

use super::{Resolver, ms, ns};
use crate::constants::{MODERN_SINCE, SINGLE_CYLINDER_MS_BY_YEAR, WRITE_SETTLE};
use crate::file::{SeekTable, TwoPieceTable};

/// Times that determine the skews and the ends of the seek curve.
pub(super) struct Motion {
    pub(super) rpm: f64,
    /// Seek curve, if the file states one.
    pub(super) curve: Option<SeekCurve>,
    /// Read seek time to the next cylinder, in ns.
    pub(super) single_cylinder_ns: u64,
    pub(super) head_switch_ns: u64,
    pub(super) read_settle_ns: i64,
    pub(super) write_settle_ns: i64,
}

impl Motion {
    pub(super) fn revolution_ns(&self) -> f64 {
        60e9 / self.rpm
    }

    /// Returns the time from the last sector of a track to the first of the next surface that is sufficient for reads
    /// and writes, in ns.
    pub(super) fn head_change_ns(&self) -> f64 {
        self.head_switch_ns as f64 + self.settle_ns()
    }

    /// Returns the time from the last sector of a track to the first of the next cylinder in ns, including a change of
    /// surface.
    pub(super) fn cylinder_change_ns(&self) -> f64 {
        self.single_cylinder_ns.max(self.head_switch_ns) as f64 + self.settle_ns()
    }

    fn settle_ns(&self) -> f64 {
        self.read_settle_ns.max(self.write_settle_ns).max(0) as f64
    }
}

impl Resolver<'_> {
    /// Returns the switching and settling times.
    ///
    /// - Write settling is the additional average time of writes: the sheet's write average minus its read average,
    ///   else the difference of the track-to-track times (a write must be on track more precisely than a read).
    /// - A change of head takes as long as a seek to the next cylinder: tracks of different surfaces are not aligned, so
    ///   the arm must find the track again (general knowledge, high confidence for drives since about 1998; the
    ///   extracted older drives have 0.03 to 0.89 ms).
    pub(super) fn motion(&mut self) -> Result<Motion, InputError> {
        let sheet = &self.file.seek;
        let Some(speed) = self.file.spindle.speed else {
            return self.missing("spindle.speed", "give the spindle speed, such as \"7200rpm\"");
        };
        let curve = explicit_curve(sheet);
        let from_curve = curve.as_ref().map(|curve| DurationNs(i64::from(seek_ns(curve, 1, 2))));
        let single_cylinder = self.given_or(
            sheet.read_track_to_track.or(from_curve),
            "seek.read_track_to_track",
            "usual in the year of introduction",
            |resolver| Ok(ms(resolver.by_year(&SINGLE_CYLINDER_MS_BY_YEAR)?)),
        )?;
        let head_switch = self.given_or(
            sheet.head_switch,
            "seek.head_switch",
            "same as a seek to the next cylinder: the arm searches for the track on each surface",
            |_| Ok(single_cylinder),
        )?;
        let difference = |write: Option<DurationNs>, read: Option<DurationNs>| Some(DurationNs(write?.0 - read?.0));
        let by_average = difference(sheet.write_average, sheet.read_average);
        let by_step = difference(sheet.write_track_to_track, sheet.read_track_to_track);
        let rule = match (by_average, by_step) {
            (Some(_), _) => "write average minus read average",
            (None, Some(_)) => "write track-to-track minus read track-to-track",
            (None, None) => "usual (0.3 to 0.9 ms in data sheets)",
        };
        let settle = by_average.or(by_step).unwrap_or(WRITE_SETTLE);
        let write_settle = self.given_or(sheet.write_settle, "seek.write_settle", rule, |_| Ok(settle))?;
        let read_settle =
            self.given_or(sheet.read_settle, "seek.read_settle", "part of the seek curve", |_| Ok(DurationNs(0)))?;
        Ok(Motion {
            rpm: speed.0,
            curve,
            single_cylinder_ns: ns(single_cylinder),
            head_switch_ns: ns(head_switch),
            read_settle_ns: read_settle.0,
            write_settle_ns: write_settle.0,
        })
    }

    /// Returns whether reads and whether writes start at the first requested sector that passes the head.
    pub(super) fn on_arrival(&mut self) -> Result<(bool, bool), InputError> {
        let spindle = &self.file.spindle;
        let rule = "since 2005 (medium confidence)";
        let modern = |resolver: &Self| Ok(resolver.year()? >= MODERN_SINCE);
        let read = self.given_or(spindle.read_on_arrival, "spindle.read_on_arrival", rule, modern)?;
        let write = self.given_or(spindle.write_on_arrival, "spindle.write_on_arrival", rule, modern)?;
        Ok((read, write))
    }
}

/// Returns the seek curve that the file states.
pub(super) fn explicit_curve(table: &SeekTable) -> Option<SeekCurve> {
    if let Some(points) = &table.points {
        return Some(SeekCurve::Points(points.iter().map(|&(cylinders, time)| (cylinders, ns(time))).collect()));
    }
    if let Some(pieces) = &table.two_piece {
        let TwoPieceTable { boundary_cylinders, short_ns, short_ns_per_sqrt, long_ns, long_ns_per_cylinder, .. } =
            *pieces;
        return Some(SeekCurve::TwoPiece {
            boundary_cylinders,
            short_ns,
            short_ns_per_sqrt,
            long_ns,
            long_ns_per_cylinder,
            first_ns: pieces.first.iter().copied().map(ns).collect(),
        });
    }
    if let Some(parameters) = &table.three_parameter {
        return Some(SeekCurve::ThreeParameter {
            minimum_ns: ns(parameters.minimum),
            average_ns: ns(parameters.average),
            maximum_ns: ns(parameters.maximum),
        });
    }
    table.constant.map(|time| SeekCurve::Constant(ns(time)))
}
