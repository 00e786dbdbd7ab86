//! Offsets of requests: distributions, strides and zones.

use headstack_workload::{Addresses, Band, InputError};

use super::direction::Direction;
use super::settings::{Remarks, Settings};
use super::values::{self, Zone};

/// fio's default theta of a Zipf distribution.
const ZIPF_THETA: f64 = 1.1;
const PARETO_H: f64 = 0.2;

/// The distribution of offsets and its effects on the requests.
pub(super) struct Pattern {
    pub(super) addresses: Addresses,
    /// Percentage of requests that follow the distribution, if it differs from `rw` and `percentage_random`.
    pub(super) random_percent: Option<f64>,
    /// Fraction of its part that a job covers in one pass.
    pub(super) progress: f64,
    /// Whether the zones cover all targets although the job transfers only as many bytes as its part has.
    pub(super) crosses_part: bool,
    /// One request in `run` goes to an offset of the distribution; 0 if `random_percent` determines the number.
    pub(super) run: u32,
}

impl Pattern {
    fn plain(addresses: Addresses) -> Pattern {
        Pattern { addresses, random_percent: None, progress: 1.0, crosses_part: false, run: 0 }
    }
}

pub(super) fn pattern(
    settings: &Settings,
    direction: &Direction,
    total_bytes: Option<u64>,
    largest_bytes: u64,
    remarks: &mut Remarks,
) -> Result<Pattern, InputError> {
    if !direction.is_random {
        return match &direction.postfix {
            Some(postfix) => strided(settings, postfix, largest_bytes),
            None => {
                zoned_mode(settings, true, remarks).map(|law| law.unwrap_or_else(|| Pattern::plain(Addresses::Uniform)))
            }
        };
    }
    zoned_mode(settings, false, remarks)?;
    let mut pattern = Pattern::plain(random(settings, total_bytes, remarks)?);
    if let Some(postfix) = &direction.postfix {
        let run: u32 = postfix.trim().parse().ok().filter(|run| *run > 0).ok_or_else(|| {
            settings.error(&["rw"], format!("{postfix:?} is not a number of requests; must be 1 or more"))
        })?;
        pattern.run = if run > 1 { run } else { 0 };
    }
    Ok(pattern)
}

/// Returns the pattern of `rw=read:8k`: each request is followed by a gap, or by a step back if the value is negative.
fn strided(settings: &Settings, postfix: &str, largest_bytes: u64) -> Result<Pattern, InputError> {
    let wrong = |message: String| settings.error(&["rw"], message);
    let skip = values::signed_size(postfix, settings.base).map_err(wrong)?;
    let step = i128::from(largest_bytes) + i128::from(skip);
    if step == 0 {
        return Err(wrong(format!("{skip} bytes would give every request the same offset")));
    }
    let step_bytes = u64::try_from(step.unsigned_abs()).map_err(|_| wrong(format!("{skip} bytes is too large")))?;
    Ok(Pattern {
        addresses: Addresses::Strided { zone_bytes: largest_bytes, step_bytes, backwards: step < 0 },
        random_percent: Some(100.0),
        progress: largest_bytes as f64 / step_bytes as f64,
        crosses_part: false,
        run: 0,
    })
}

/// Returns the pattern of `zonemode=strided` for sequential requests; `None` if the mode is not set.
fn zoned_mode(settings: &Settings, is_sequential: bool, remarks: &mut Remarks) -> Result<Option<Pattern>, InputError> {
    let zone_bytes = settings.whole("zonesize")?.unwrap_or(0);
    match settings.text("zonemode") {
        // Zones are managed when requests are executed.
        Some("zbd" | "none") => return Ok(None),
        // fio treats a zone size without a mode as `strided`.
        None if zone_bytes == 0 => return Ok(None),
        _ => {}
    }
    if zone_bytes == 0 {
        return Err(settings.error(&["zonemode"], "strided zones need a size; add zonesize"));
    }
    if !is_sequential {
        remarks.about(
            settings,
            &["zonemode", "zonesize"],
            "random requests cover the whole range, without regard to zones",
        );
        return Ok(None);
    }
    let range_bytes = settings.whole("zonerange")?.filter(|range| *range > 0).unwrap_or(zone_bytes);
    let skip_bytes = match settings.amount("zoneskip")? {
        None => 0,
        Some(values::Amount::Bytes(bytes)) => bytes,
        Some(_) => return Err(settings.error(&["zoneskip"], "must be in bytes, not percent")),
    };
    let step_bytes = range_bytes
        .checked_add(skip_bytes)
        .ok_or_else(|| settings.error(&["zoneskip"], "a zone and its skip exceed 2^64 bytes"))?;
    // fio continues until `size` bytes are done. It restarts at the beginning if the zones contain too few bytes.
    let addresses = Addresses::Strided { zone_bytes, step_bytes, backwards: false };
    Ok(Some(Pattern { addresses, random_percent: Some(100.0), progress: 1.0, crosses_part: true, run: 0 }))
}

/// Returns the distribution of random offsets.
fn random(settings: &Settings, total_bytes: Option<u64>, remarks: &mut Remarks) -> Result<Addresses, InputError> {
    let usual = || match settings.text("random_generator") {
        _ if settings.is("norandommap", false) => Addresses::Uniform,
        // The LFSR visits all offsets without a map.
        Some("lfsr") => Addresses::Once,
        _ => Addresses::RandomMap,
    };
    let Some(setting) = settings.get("random_distribution") else {
        return Ok(usual());
    };
    let wrong = |message: String| setting.error(message);
    let (name, rest) = setting.value.split_once(':').unwrap_or((&setting.value, ""));
    let number = |fallback: Option<f64>, allowed: &str, is_allowed: fn(f64) -> bool| {
        let text = rest.split(':').next().unwrap_or_default().trim();
        let stated = if text.is_empty() { fallback } else { text.parse().ok() };
        stated
            .filter(|value| is_allowed(*value))
            .ok_or_else(|| wrong(format!("{text:?} is out of range; must be {allowed}")))
    };
    let centre = rest.split_once(':').map(|(_, centre)| centre.trim());
    if matches!(name.trim(), "zipf" | "pareto") && centre.is_some() {
        remarks.add(setting, "the seed selects the hottest block; the centre is ignored");
    }
    Ok(match name.trim() {
        "zipf" => Addresses::Zipf {
            theta: number(Some(ZIPF_THETA), "above 0 and up to 10", |theta| theta > 0.0 && theta <= 10.0)?,
        },
        "pareto" => Addresses::Pareto { h: number(Some(PARETO_H), "above 0 and below 1", |h| h > 0.0 && h < 1.0)? },
        "normal" => Addresses::Normal {
            deviation_percent: number(None, "a deviation above 0 and up to 100", |percent| {
                percent > 0.0 && percent <= 100.0
            })?,
            mean_percent: match centre.map(str::parse::<f64>) {
                None => 50.0,
                Some(Ok(centre)) if (0.0..=1.0).contains(&centre) => 100.0 * centre,
                Some(_) => return Err(wrong(format!("the centre of {rest:?} is out of range; must be 0 to 1"))),
            },
        },
        "zoned" => {
            let text = first_of_kinds(rest, setting, remarks);
            let zones = values::zones(text, percent).map_err(wrong)?;
            Addresses::HotBands(bands(zones, 100.0).map_err(wrong)?)
        }
        "zoned_abs" => {
            let text = first_of_kinds(rest, setting, remarks);
            let zones = values::zones(text, |length| values::size(length, settings.base).map(|bytes| bytes as f64));
            let zones = zones.map_err(wrong)?;
            let total = total_bytes.ok_or_else(|| wrong("zones in bytes need a size in bytes; add size".to_owned()))?;
            Addresses::HotBands(bands(zones, total as f64).map_err(wrong)?)
        }
        "sequence" => {
            remarks.add(setting, "fixed block sequences are not supported; offsets are random");
            usual()
        }
        _ => usual(),
    })
}

fn percent(text: &str) -> Result<f64, String> {
    let percent = text.trim().trim_end_matches('%').parse::<u64>().ok().filter(|percent| *percent <= 100);
    percent.map(|percent| percent as f64).ok_or_else(|| format!("{text:?} is not a percentage from 0 to 100"))
}

/// Returns the zones of reads, which apply to all kinds of requests here.
fn first_of_kinds<'t>(text: &'t str, setting: &super::syntax::Setting, remarks: &mut Remarks) -> &'t str {
    let (first, others) = text.split_once(',').unwrap_or((text, ""));
    if !others.is_empty() {
        remarks.add(setting, "the zones of reads also apply to writes and trims");
    }
    first
}

/// Converts consecutive zones to bands of a space of `total`. Zones without a length divide the rest evenly.
fn bands(zones: Vec<Zone<Option<f64>>>, total: f64) -> Result<Vec<Band>, String> {
    let stated: f64 = zones.iter().filter_map(|zone| zone.1).sum();
    let open = zones.iter().filter(|zone| zone.1.is_none()).count();
    if stated > total || (open > 0 && stated >= total) {
        return Err("the zones exceed the target".to_owned());
    }
    let rest = (total - stated) / open.max(1) as f64;
    let mut from_percent = 0.0;
    let mut bands = Vec::new();
    for (share_percent, length) in zones {
        let to_percent = (from_percent + 100.0 * length.unwrap_or(rest) / total).min(100.0);
        if share_percent > 0.0 {
            if to_percent <= from_percent {
                return Err("a zone with requests must be longer than 0".to_owned());
            }
            bands.push(Band { from_percent, to_percent, share_percent });
        }
        from_percent = to_percent;
    }
    Ok(bands)
}
