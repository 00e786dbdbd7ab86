//! `dm_mech_g1` and its seek curve.

use std::ops::RangeInclusive;
use std::path::Path;

use headstack_sim::drive::description::{Mechanics, SeekCurve};
use headstack_workload::InputError;

use super::fields::{Fields, Ledger, MS_MAX, NS_PER_MS, ns};
use super::parser::ReadFile;

const SEEK: &str = "mechanics.seek";
const TIMES_MS: RangeInclusive<f64> = 0.0..=MS_MAX;

/// Parameters that a seek type may leave unused; extracted models fill these with meaningless values.
const SEEK_PARAMETERS: [&str; 7] = [
    "Average seek time",
    "Constant seek time",
    "Single cylinder seek time",
    "Full strobe seek time",
    "Full seek curve",
    "HPL seek equation values",
    "First ten seek times",
];

/// Reads the mechanics of a `dm_disk` with `cylinders`, except the settings for access on arrival.
///
/// # Errors
/// If the access model is not the full one, or a value is missing or out of range.
pub(super) fn mechanics(
    model: &mut Fields,
    cylinders: u32,
    ledger: &mut Ledger,
    read: &mut ReadFile,
) -> Result<Mechanics, InputError> {
    let block = model.block(ledger, "Mechanical Model", "mechanics", "dm_mech_g1")?;
    let mut mech = Fields::new(block, &model.key("Mechanical Model"));
    access_time_type(&mut mech, ledger)?;
    let seek = seek(&mut mech, cylinders, ledger, read)?;
    for name in SEEK_PARAMETERS {
        mech.leave_unread(ledger, name, "not used by this seek type");
    }
    mech.leave(ledger, "Constant access time", "used only by the access time type `constant`");
    spindle_error(&mut mech, ledger);
    ledger.assume("mechanics.read_settle_ns", "the seek times are for reads");
    let mechanics = Mechanics {
        rpm: mech.number(ledger, "Rotation speed (in rpms)", "mechanics.rpm", 100.0..=100_000.0)?,
        seek,
        read_settle_ns: 0,
        write_settle_ns: write_settle_ns(&mut mech, ledger)?,
        head_switch_ns: mech.ns(ledger, "Head switch time", "mechanics.head_switch_ns")?,
        read_on_arrival: false,
        write_on_arrival: false,
    };
    mech.finish(ledger, &[]);
    Ok(mechanics)
}

fn access_time_type(mech: &mut Fields, ledger: &mut Ledger) -> Result<(), InputError> {
    const NAME: &str = "Access time type";
    const FULL_MODEL: &str = "trackSwitchPlusRotation";
    match mech.word(ledger, NAME, "mechanics", FULL_MODEL)? {
        FULL_MODEL => Ok(()),
        other => Err(mech.error(NAME, format!("must be {FULL_MODEL}, the full mechanical model, not {other}"))),
    }
}

/// Reads the additional settling time of writes, in ns. A write must be at least as exactly on track as a read, or it
/// destroys the neighbouring track, so it cannot settle faster. A negative delay compensates for an error elsewhere in
/// the model that it was fitted to and is read as 0.
fn write_settle_ns(mech: &mut Fields, ledger: &mut Ledger) -> Result<i64, InputError> {
    const NAME: &str = "Add. write settling delay";
    let settle_ns = mech.settle_ns(ledger, NAME, "mechanics.write_settle_ns")?;
    if settle_ns < 0 {
        let message = "a write cannot settle faster than a read; 0 is used";
        mech.warn(ledger, NAME, message);
        mech.leave(ledger, NAME, message);
    }
    Ok(settle_ns.max(0))
}

/// Handles the spindle error: DiskSim draws each drive's speed within this error, but a description has one speed.
fn spindle_error(mech: &mut Fields, ledger: &mut Ledger) {
    const NAME: &str = "Percent error in rpms";
    let exact = mech.block.get(NAME).is_none_or(|parameter| parameter.value.as_number() == Some(0.0));
    if exact {
        mech.leave(ledger, NAME, "has no effect at this value");
    } else {
        mech.warn(ledger, NAME, "the spindle turns at its stated speed; the error is ignored");
        mech.leave(ledger, NAME, "the spindle turns at its stated speed");
    }
}

fn seek(mech: &mut Fields, cylinders: u32, ledger: &mut Ledger, read: &mut ReadFile) -> Result<SeekCurve, InputError> {
    const NAME: &str = "Seek type";
    const ALLOWED: &str = "extracted, hplplus10, hpl, curve, linear or constant";
    match mech.word(ledger, NAME, SEEK, ALLOWED)? {
        "extracted" => extracted(mech, ledger, read),
        "hplplus10" => {
            let first = mech.numbers(ledger, "First ten seek times", SEEK, 10)?;
            if !first.iter().all(|ms| TIMES_MS.contains(ms)) {
                return Err(mech.error("First ten seek times", format!("must be ten times from 0 to {MS_MAX} ms")));
            }
            two_piece(mech, ledger, Some(first))
        }
        "hpl" => two_piece(mech, ledger, None),
        "curve" => {
            let [minimum_ns, average_ns, maximum_ns] = three_times(mech, ledger)?;
            Ok(SeekCurve::ThreeParameter { minimum_ns, average_ns, maximum_ns })
        }
        "linear" => {
            let [single, average, full] = three_times(mech, ledger)?;
            if cylinders < 6 {
                return Err(mech.error(NAME, "linear needs 6 cylinders or more"));
            }
            // The mean distance of two uniformly random cylinders is 1/3 of the stroke.
            Ok(SeekCurve::Points(vec![(1, single), (cylinders / 3, average), (cylinders - 1, full)]))
        }
        "constant" => Ok(SeekCurve::Constant(mech.ns(ledger, "Constant seek time", SEEK)?)),
        other => Err(mech.error(NAME, format!("must be {ALLOWED}, not {other}"))),
    }
}

fn three_times(mech: &mut Fields, ledger: &mut Ledger) -> Result<[u64; 3], InputError> {
    let single = mech.ns(ledger, "Single cylinder seek time", SEEK)?;
    let average = mech.ns(ledger, "Average seek time", SEEK)?;
    let full = mech.ns(ledger, "Full strobe seek time", SEEK)?;
    if single > average || average > full {
        let message = "must be between the single-cylinder and full-stroke times";
        return Err(mech.error("Average seek time", message));
    }
    Ok([single, average, full])
}

/// Reads HP Labs' curve: V1 is the boundary in cylinders, V2 to V5 the coefficients in ms, V6 the time of a
/// one-cylinder seek in ms, or -1.
fn two_piece(mech: &mut Fields, ledger: &mut Ledger, first_ten: Option<Vec<f64>>) -> Result<SeekCurve, InputError> {
    const NAME: &str = "HPL seek equation values";
    let values = mech.numbers(ledger, NAME, SEEK, 6)?;
    if values[0] < 0.0 || values[0].fract() != 0.0 {
        return Err(mech.error(NAME, "must begin with a whole number of cylinders"));
    }
    if !values[1..5].iter().all(|ms| TIMES_MS.contains(ms)) || values[5] > MS_MAX {
        return Err(mech.error(NAME, format!("must be times from 0 to {MS_MAX} ms after the first value")));
    }
    let one_cylinder = || values[5..].iter().copied().filter(|&ms| ms >= 0.0).collect();
    let first = first_ten.unwrap_or_else(one_cylinder);
    Ok(SeekCurve::TwoPiece {
        boundary_cylinders: values[0] as u32,
        short_ns: values[1] * NS_PER_MS,
        short_ns_per_sqrt: values[2] * NS_PER_MS,
        long_ns: values[3] * NS_PER_MS,
        long_ns_per_cylinder: values[4] * NS_PER_MS,
        first_ns: first.into_iter().map(ns).collect(),
    })
}

fn extracted(mech: &mut Fields, ledger: &mut Ledger, read: &mut ReadFile) -> Result<SeekCurve, InputError> {
    const NAME: &str = "Full seek curve";
    let name = mech.word(ledger, NAME, SEEK, "the name of a file")?;
    let place = &mech.block.get(NAME).expect("a parameter that was read exists").value.place;
    let path = Path::new(&*place.file).parent().unwrap_or(Path::new("")).join(name);
    let text = read(&path).map_err(|error| {
        mech.error(NAME, format!("cannot read `{name}`: {error}; a file in or below this file's folder is expected"))
    })?;
    seek_points(&path.display().to_string(), &text).map(SeekCurve::Points)
}

/// Reads the points of a `.seek` file: lines of `distance, ms`. Further columns are ignored.
pub(super) fn seek_points(file: &str, text: &str) -> Result<Vec<(u32, u64)>, InputError> {
    const HEADER: &str = "Seek distances measured:";
    let error = |line: usize, key: &str, message: String| InputError {
        file: file.to_owned(),
        line: Some(line),
        key: key.to_owned(),
        message,
    };
    let mut points: Vec<(u32, u64)> = Vec::new();
    let mut announced = None;
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let line_number = index + 1;
        if let Some(count) = line.trim().strip_prefix(HEADER) {
            let count = count.trim().parse::<usize>();
            let count = count.map_err(|_| error(line_number, HEADER, "must be a whole number".to_owned()))?;
            announced = Some((line_number, count));
            continue;
        }
        let (distance, ms) = seek_line(line).map_err(|(key, message)| error(line_number, key, message))?;
        if points.last().is_some_and(|&(last, _)| last >= distance) {
            return Err(error(line_number, "distance", "must be greater than in the previous line".to_owned()));
        }
        points.push((distance, ns(ms)));
    }
    if let Some((line, count)) = announced.filter(|&(_, count)| count != points.len()) {
        return Err(error(line, HEADER, format!("the count is {count}, but {} lines follow", points.len())));
    }
    if points.len() < 2 {
        return Err(error(
            text.lines().count().max(1),
            "distance",
            "at least two distances are required; add lines".to_owned(),
        ));
    }
    Ok(points)
}

/// Returns the distance in cylinders and the time in milliseconds from a line.
fn seek_line(line: &str) -> Result<(u32, f64), (&'static str, String)> {
    let columns: Vec<&str> = line.split(',').map(str::trim).collect();
    if !(2..=4).contains(&columns.len()) {
        return Err(("", format!("must be `distance, ms`, not {} columns", columns.len())));
    }
    let distance = columns[0].parse().ok().filter(|&d: &u32| d >= 1);
    let distance = distance.ok_or(("distance", "must be a whole number of cylinders from 1".to_owned()))?;
    let ms = columns[1].parse().ok().filter(|ms| TIMES_MS.contains(ms));
    let ms = ms.ok_or_else(|| ("ms", format!("must be a time from 0 to {MS_MAX} ms")))?;
    Ok((distance, ms))
}
