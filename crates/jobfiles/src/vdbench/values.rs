//! Parses parameter values: flags, sizes, ranges, seeks, rates and overrides.

use headstack_workload::{InputError, QUEUE_DEPTH_MAX};

use super::scan::{Item, Number, Parameter, Unit, number as number_of};
use crate::Sync;

/// Unit of requests, in bytes.
pub(super) const BLOCK_BYTES: f64 = 512.0;

/// Maximum number of sizes in `xfersize=(min,max,align)`.
const SIZES_MAX: u64 = 4_096;

/// Flags for opening files.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct OpenFlags {
    pub(super) direct: bool,
    pub(super) sync: Sync,
    /// Whether written data is flushed on close.
    pub(super) fsync: bool,
}

impl OpenFlags {
    /// Reads the flags. On Linux, `OpenFlags.java` opens with `O_DSYNC` for `o_sync`, `o_dsync` and `o_rsync`.
    pub(super) fn read(parameter: &Parameter) -> Result<OpenFlags, InputError> {
        let mut flags = OpenFlags::default();
        for word in parameter.words()? {
            match word.to_ascii_lowercase().as_str() {
                "o_direct" | "directio" | "f_nocache" | "0x4000" => flags.direct = true,
                "o_dsync" | "o_rsync" | "o_sync" | "0x1000" => flags.sync = Sync::Data,
                "0x101000" => flags.sync = Sync::File,
                "fsync" => flags.fsync = true,
                // These flags take effect only when a file is opened or closed.
                "clear_cache" | "clearcache" | "directio_off" => {}
                _ => {
                    let allowed = "o_direct, directio, o_dsync, o_rsync, o_sync, fsync";
                    return Err(parameter.error(format!("{word:?} is not allowed; allowed: {allowed}")));
                }
            }
        }
        Ok(flags)
    }
}

/// Request sizes with their shares in percent, and the alignment if stated.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sizes {
    pub(super) shares: Vec<(u32, f64)>,
    pub(super) align_bytes: Option<u32>,
}

/// Returns a size in bytes.
pub(super) fn size_bytes(parameter: &Parameter, number: Number) -> Result<u32, InputError> {
    let size = parameter.within(number, BLOCK_BYTES..=f64::from(u32::MAX))?;
    if size % BLOCK_BYTES != 0.0 {
        return Err(parameter.error(format!("{size} is not a multiple of 512 bytes")));
    }
    Ok(size as u32)
}

impl Sizes {
    pub(super) fn read(parameter: &Parameter) -> Result<Sizes, InputError> {
        let numbers = parameter.numbers(Unit::Size)?;
        let size = |number| size_bytes(parameter, number);
        match *numbers.as_slice() {
            [one] => Ok(Sizes { shares: vec![(size(one)?, 100.0)], align_bytes: None }),
            [min, max, align] => Sizes::between(parameter, size(min)?, size(max)?, size(align)?),
            _ if numbers.len() % 2 == 1 => {
                Err(parameter
                    .error("use pairs of sizes and percentages, for example (4k,50,8k,50), or (min,max,align)"))
            }
            _ => {
                let share = |pair: &[Number]| Ok((size(pair[0])?, parameter.within(pair[1], 0.0..=100.0)?));
                let mut shares = numbers.chunks_exact(2).map(share).collect::<Result<Vec<_>, InputError>>()?;
                let sum: f64 = shares.iter().map(|(_, share)| share).sum();
                if sum.round() != 100.0 {
                    return Err(parameter.error(format!("the percentages sum to {sum}; they must sum to 100")));
                }
                // vdbench rounds the percentages; headstack normalizes them exactly.
                shares.iter_mut().for_each(|(_, share)| *share *= 100.0 / sum);
                shares.retain(|(_, share)| *share > 0.0);
                Ok(Sizes { shares, align_bytes: None })
            }
        }
    }

    /// Returns the multiples of `align` between two sizes, uniformly distributed.
    fn between(parameter: &Parameter, min: u32, max: u32, align: u32) -> Result<Sizes, InputError> {
        let count = u64::from(max.saturating_sub(min) / align) + 1;
        if min >= max || count > SIZES_MAX {
            let message = format!("(min,max,align) needs min below max and at most {SIZES_MAX} sizes between them");
            return Err(parameter.error(message));
        }
        let shares = (0..count as u32).map(|index| (min + index * align, 100.0 / count as f64)).collect();
        Ok(Sizes { shares, align_bytes: Some(align) })
    }
}

/// Range of random requests: in percent up to 200, otherwise in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Span {
    pub(super) from: f64,
    pub(super) to: f64,
}

impl Span {
    pub(super) fn read(parameter: &Parameter) -> Result<Span, InputError> {
        let value = |number: &Number| match *number {
            Number::Plain(value) | Number::Percent(value) => value,
        };
        match *parameter.numbers(Unit::Size)?.iter().map(value).collect::<Vec<f64>>().as_slice() {
            [from, to]
                if from < to && to <= 1e18 && (to > 200.0 || to - from < 100.0 || from == 0.0 && to == 100.0) =>
            {
                Ok(Span { from, to })
            }
            _ => Err(parameter.error(format!(
                "{} is not a range; use percent such as (10,20), or (90,110) to wrap around, or bytes above 200",
                parameter.raw
            ))),
        }
    }
}

/// Share of random requests in a workload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Seek {
    /// Percentage of random requests.
    Random(f64),
    /// Sequential requests; ends at the end of the storage.
    UntilEnd,
}

pub(super) fn threads(parameter: &Parameter, number: Number) -> Result<u32, InputError> {
    Ok(parameter.within(number, 0.0..=f64::from(QUEUE_DEPTH_MAX))?.trunc().max(1.0) as u32)
}

pub(super) fn seek(parameter: &Parameter) -> Result<Seek, InputError> {
    let text = parameter.word()?.to_ascii_lowercase();
    if "sequential".starts_with(&text) || text == "seqnz" {
        Ok(Seek::Random(0.0))
    } else if "random".starts_with(&text) {
        Ok(Seek::Random(100.0))
    } else if text == "eof" {
        Ok(Seek::UntilEnd)
    } else if "poisson".starts_with(&text) {
        Err(parameter
            .error("vdbench's Poisson distribution of addresses is not supported; use 0 to 100, seq, rand or eof"))
    } else {
        match number_of(&text, Unit::Size) {
            Some(Number::Plain(percent)) if percent <= 100.0 => Ok(Seek::Random(percent)),
            _ => Err(parameter.error(format!("{text:?} is not allowed; use 0 to 100, seq, seqnz, rand or eof"))),
        }
    }
}

/// Rate of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Rate {
    Max,
    Curve,
    PerSecond(f64),
    /// Percentage of the last observed rate.
    Percent(f64),
}

/// A setting that a run overrides in its workloads.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Override {
    Size(u32),
    Threads(u32),
    ReadPercent(f64),
    Seek(Seek),
}

pub(super) fn percentages(parameter: &Parameter) -> Result<impl Iterator<Item = f64>, InputError> {
    let percent = |number| parameter.within(number, 0.0..=100.0);
    let all = parameter.numbers(Unit::Size)?.into_iter().map(percent).collect::<Result<Vec<f64>, InputError>>()?;
    Ok(all.into_iter())
}

/// Number that stands for an unlimited rate in vdbench's lists (`RD_entry.MAX_RATE`).
const MAX_RATE: &str = "9999988";

pub(super) fn rates(parameter: &Parameter) -> Result<Vec<Rate>, InputError> {
    if parameter.raw.eq_ignore_ascii_case("curve") {
        return Ok(vec![Rate::Curve]);
    }
    let mut numeric = parameter.clone();
    for item in &mut numeric.items {
        if matches!(item, Item::Text(text) if text.eq_ignore_ascii_case("max")) {
            *item = Item::Text(MAX_RATE.to_owned());
        }
    }
    let rate = |number| match number {
        Number::Percent(percent) if percent > 0.0 && percent <= 1000.0 => Ok(Rate::Percent(percent)),
        Number::Plain(value) if value.to_string() == MAX_RATE => Ok(Rate::Max),
        Number::Plain(value) if value > 0.0 && value <= 1e9 => Ok(Rate::PerSecond(value)),
        _ => Err(parameter.error("must be max, curve, or a number above 0 and up to 1e9")),
    };
    let numbers = numeric.numbers(Unit::Size).map_err(|_| {
        parameter.error(format!("{:?} is not a rate; use max, curve, a number or a list of numbers", parameter.raw))
    })?;
    numbers.into_iter().map(rate).collect()
}
