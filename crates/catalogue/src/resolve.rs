//! Completes a drive file ([`resolve`]): missing values follow from rules.
//!
//! Each rule documents its physics and its source. [`Resolved::derived`] lists the results, so that a report can
//! distinguish figures of a data sheet from derived values.

mod assists;
mod check;
mod commands;
mod geometry;
mod mechanics;
mod power;
mod seek;
mod stated;

use std::collections::BTreeMap;

use headstack_sim::drive::description::{DriveDescription, Mechanics, SeekCurve};
use headstack_workload::quantity::DurationNs;
use headstack_workload::{Document, InputError};
use serde::Serialize;

use crate::constants;
use crate::family::Family;
use crate::file::DriveFile;

pub(crate) use check::source_code as check_source;
pub use geometry::cylinders_from_density;
pub use power::spindle_w;

/// A complete drive with its file.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    /// Description with every value that the model needs.
    pub description: DriveDescription,
    /// The file as it was read, with its sources and the keys that the model does not use.
    pub file: DriveFile,
    /// The file with the values that were fitted to its `[stated]` figures.
    pub(crate) solved: DriveFile,
    /// Values that the file does not state, in order of derivation.
    pub derived: Vec<Derived>,
}

impl Resolved {
    /// Returns the source of a key of the file as `CODE text`: the source of the key itself, else of the table that
    /// contains the key, else the default.
    pub fn source(&self, key: &str) -> Option<&str> {
        source_of(&self.file.sources, key)
    }
}

/// Returns the source of a key, of the table that contains the key, or the default.
pub(crate) fn source_of<'s>(sources: &'s BTreeMap<String, String>, key: &str) -> Option<&'s str> {
    let mut path = key;
    loop {
        match (sources.get(path), path.rfind(['.', '['])) {
            (Some(source), _) => return Some(source),
            (None, Some(end)) => path = &path[..end],
            (None, None) => return sources.get("default").map(String::as_str),
        }
    }
}

/// A value that the file does not state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Derived {
    /// Key that would state the value.
    pub key: String,
    /// The value, as text.
    pub value: String,
    /// Rule from which the value follows.
    pub rule: String,
}

impl Derived {
    pub(crate) fn new(key: &str, value: &impl Serialize, rule: &str) -> Derived {
        let text = serde_json::to_string(value).expect("a plain value is valid JSON");
        Derived { key: key.to_owned(), value: text.trim_matches('"').to_owned(), rule: rule.to_owned() }
    }
}

/// Completes a drive file.
///
/// # Errors
/// If the file is not a drive file, contradicts itself, or lacks values that cannot be derived. The error names file,
/// line and key.
///
/// Figures that a sheet promises under `[stated]` are fitted first. Everything else then follows as if the file stated
/// the fitted values.
pub fn resolve(document: &Document) -> Result<Resolved, InputError> {
    let file: DriveFile = document.read()?;
    check::file(document, &file)?;
    let mut whole = file.clone();
    let cache = assists::add_media_cache(&mut whole);
    let solved = stated::solve(document, &whole)?;
    let (description, mut derived) = complete(document, &solved.file)?;
    derived.splice(0..0, cache.into_iter().chain(solved.derived));
    Ok(Resolved { description, file, solved: solved.file, derived })
}

/// Returns the description and its derived values. The seek curve is derived last, with a checked geometry, because the
/// mean seek time depends on the location of the blocks.
fn complete(document: &Document, file: &DriveFile) -> Result<(DriveDescription, Vec<Derived>), InputError> {
    let mut resolver = Resolver { document, file, derived: Vec::new() };
    let interface = resolver.interface()?;
    let motion = resolver.motion()?;
    let geometry = resolver.geometry(&motion)?;
    let sector_bytes = geometry.physical_sector_bytes;
    let (read_on_arrival, write_on_arrival) = resolver.on_arrival()?;
    let queue = resolver.queue(interface.kind)?;
    let buffer = resolver.buffer(interface.kind, geometry.physical_sector_bytes, read_on_arrival)?;
    let overheads = resolver.overheads();
    let mut description = DriveDescription {
        name: file.name.clone(),
        geometry,
        mechanics: Mechanics {
            rpm: motion.rpm,
            seek: SeekCurve::Constant(0),
            read_settle_ns: motion.read_settle_ns,
            write_settle_ns: motion.write_settle_ns,
            head_switch_ns: motion.head_switch_ns,
            read_on_arrival,
            write_on_arrival,
        },
        queue,
        buffer,
        overheads,
        interface,
        slow: commands::slow(file),
        flash_cache: resolver.flash_cache()?,
        media_cache: resolver.media_cache(sector_bytes)?,
        shingles: resolver.shingles(),
        actuators: file.actuators.unwrap_or(1),
        power: None,
    };
    check::description(document, &description)?;
    description.mechanics.seek = resolver.seek_curve(&motion, &description.geometry)?;
    description.power = resolver.power(&description)?;
    check::description(document, &description)?;
    Ok((description, resolver.derived))
}

/// Returns the end of an error message, which lists the other missing keys so that all are reported together.
pub(crate) fn also_missing(key: &str, needed: &[(&str, bool)]) -> String {
    let others = needed.iter().filter(|(other, is_stated)| !is_stated && *other != key).map(|(other, _)| *other);
    match others.collect::<Vec<_>>() {
        others if others.is_empty() => String::new(),
        others => format!("; also missing: {}", others.join(", ")),
    }
}

struct Resolver<'a> {
    document: &'a Document,
    file: &'a DriveFile,
    derived: Vec<Derived>,
}

impl Resolver<'_> {
    fn missing<T>(&self, key: &str, why: &str) -> Result<T, InputError> {
        Err(self.document.error(key, format!("this key is missing; {why}{}", self.also_missing(key))))
    }

    /// Returns the required keys, other than `key`, that the file does not state.
    fn also_missing(&self, key: &str) -> String {
        let DriveFile { capacity, geometry, spindle, seek, buffer, interface, .. } = self.file;
        let has_curve = mechanics::explicit_curve(seek).is_some();
        let has_times = interface.read_ns_per_byte.is_some() && interface.write_ns_per_byte.is_some();
        also_missing(
            key,
            &[
                ("capacity.logical_blocks", capacity.logical_blocks.is_some() || capacity.size.is_some()),
                ("geometry.heads", geometry.heads.is_some() || geometry.platters.is_some()),
                ("spindle.speed", spindle.speed.is_some()),
                ("seek.read_average", seek.read_average.is_some() || has_curve),
                ("buffer.size", buffer.size.is_some() || buffer.segment_sectors.is_some()),
                ("interface.kind", interface.kind.is_some()),
                ("interface.rate", interface.rate.is_some() || has_times),
            ],
        )
    }

    /// Returns the stated value. If there is none, returns the result of `make` and records it with its rule.
    fn given_or<T: Serialize>(
        &mut self,
        given: Option<T>,
        key: &str,
        rule: &str,
        make: impl FnOnce(&Self) -> Result<T, InputError>,
    ) -> Result<T, InputError> {
        match given {
            Some(value) => Ok(value),
            None => {
                let value = make(self)?;
                Ok(self.record(key, value, rule))
            }
        }
    }

    fn record<T: Serialize>(&mut self, key: &str, value: T, rule: &str) -> T {
        self.derived.push(Derived::new(key, &value, rule));
        value
    }

    /// Returns the family that the file states, or the one that its time between failures suggests.
    fn family(&self) -> Family {
        self.file.family.unwrap_or_else(|| Family::from_mtbf(self.file.reliability.mtbf_h))
    }

    fn year(&self) -> Result<u32, InputError> {
        match self.file.year {
            Some(year) => Ok(year),
            None => self.missing("year", "defaults depend on it; give the year of introduction, such as 2001"),
        }
    }

    /// Interpolates a quantity that has changed over the years, for the drive's year.
    fn by_year(&self, table: &[(f64, f64)]) -> Result<f64, InputError> {
        Ok(constants::interpolate(table, f64::from(self.year()?)))
    }
}

/// Converts a duration to nanoseconds. [`check::file`] must have found that it is not negative.
fn ns(duration: DurationNs) -> u64 {
    u64::try_from(duration.0).expect("check::file rejects negative durations")
}

fn ms(value: f64) -> DurationNs {
    DurationNs((value * 1e6).round() as i64)
}
