//! Parsing and printing of steps.

use std::fmt;

use headstack_workload::Bytes;
use headstack_workload::quantity::{parse_bytes, parse_duration_ns};

use super::{Factor, Range, Share, Step};
use crate::record::Operation;

const STEPS: &str = "kind=, device=, process=, time=, first=, clip=, fold=, shift=, stack=, time-scale=, address-scale=, \
    sample=, sample-addresses=, unknown= or strip-names";

impl Step {
    /// Parses a step: `NAME=VALUE`, or `strip-names`.
    ///
    /// # Errors
    /// The fault and the permitted values, on one line.
    pub fn parse(text: &str) -> Result<Step, String> {
        let (name, value) = text.split_once('=').unwrap_or((text, ""));
        let of = |error: String| format!("{name}: {error}");
        let list = || value.split(',').map(str::trim).filter(|part| !part.is_empty());
        let names = || {
            let names: Vec<String> = list().map(str::to_owned).collect();
            if names.is_empty() { Err(format!("{name}: expected names between commas")) } else { Ok(names) }
        };
        Ok(match name {
            "kind" => {
                let operations: Result<Vec<Operation>, String> =
                    list().map(|name| operation(name).map_err(of)).collect();
                let operations = operations?;
                if operations.is_empty() {
                    return Err(of(operation("").unwrap_err()));
                }
                Step::Kind(operations)
            }
            "device" => Step::Device(names()?),
            "process" => Step::Process(names()?),
            "time" => Step::Time(range(value, time, "10s-20min").map_err(of)?),
            "first" => match value.replace('_', "").parse() {
                Ok(requests) if requests > 0 => Step::First(requests),
                _ => return Err(format!("first: must be a number of requests above 0, not `{value}`")),
            },
            "clip" => Step::Clip(range(value, bytes, "0-36GB").map_err(of)?),
            "fold" => Step::Fold(range(value, bytes, "36GB or 10GB-46GB").map_err(of)?),
            "shift" => {
                let (sign, size) = value.strip_prefix('-').map_or((1, value), |size| (-1, size));
                let size = i64::try_from(bytes(size).map_err(of)?).map_err(|_| of("at most 8 EiB".to_owned()))?;
                Step::Shift(sign * size)
            }
            "stack" => match bytes(value).map_err(of)? {
                0 => return Err("stack: must be above 0".to_owned()),
                stride => Step::Stack(stride),
            },
            "time-scale" => Step::TimeScale(factor(value).map_err(of)?),
            "address-scale" => Step::AddressScale(factor(value).map_err(of)?),
            "sample" => Step::Sample(share(value).map_err(of)?),
            "sample-addresses" => Step::SampleAddresses(share(value).map_err(of)?),
            "unknown" => Step::Unknown(operation(value).map_err(of)?),
            "strip-names" if value.is_empty() => Step::StripNames,
            "anonymise" => {
                let message = "anonymise: renamed to strip-names, since it removes only names, dates and process numbers: addresses, \
                               gaps, sizes and hashes of keys remain, and may identify a trace";
                return Err(message.to_owned());
            }
            _ => return Err(format!("`{text}` is not a step; allowed: {STEPS}")),
        })
    }
}

fn operation(name: &str) -> Result<Operation, String> {
    let names = Operation::ALL.map(Operation::name).join(", ");
    Operation::from_name(name).ok_or_else(|| format!("must be one of {names}, not `{name}`"))
}

/// Parses a size with its unit, which is required: `fold=36` for a drive of 36 GB would fold everything into 36 bytes.
fn bytes(text: &str) -> Result<u64, String> {
    let bytes = parse_bytes(text).map_err(|error| error.to_string())?;
    let number = text.trim();
    if bytes > 0 && number.ends_with(|last: char| last.is_ascii_digit()) {
        return Err(format!("`{number}` needs a unit, such as {number}GB, or {number}B for bytes"));
    }
    Ok(bytes)
}

fn time(text: &str) -> Result<u64, String> {
    let ns = parse_duration_ns(text).map_err(|error| error.to_string())?;
    u64::try_from(ns).map_err(|_| format!("`{text}` is before the first request"))
}

fn range(text: &str, read: impl Fn(&str) -> Result<u64, String>, example: &str) -> Result<Range, String> {
    let range = match text.split_once('-') {
        Some((from, "")) => Range { from: read(from)?, to: END },
        Some((from, to)) => Range { from: read(from)?, to: read(to)? },
        None => Range { from: 0, to: read(text)? },
    };
    if range.from >= range.to || range.to > END {
        return Err(format!("`{text}` is not a range such as {example}"));
    }
    Ok(range)
}

/// Parses up to nine digits on each side of the point, so that products of them fit.
fn factor(text: &str) -> Result<Factor, String> {
    let wrong = || format!("must be a number above 0 such as 0.5, not `{text}`");
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let fraction = fraction.trim_end_matches('0');
    let is_number = |digits: &str| digits.len() <= 9 && digits.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(fraction) {
        return Err(wrong());
    }
    let denominator = 10u64.pow(fraction.len() as u32);
    let digits: u64 = format!("{whole}{fraction}").parse().map_err(|_| wrong())?;
    if digits == 0 { Err(wrong()) } else { Ok(Factor { numerator: digits, denominator }) }
}

fn share(text: &str) -> Result<Share, String> {
    let (text, seed) = match text.split_once('@') {
        Some((text, seed)) => (text, seed.parse().map_err(|_| format!("the seed must be a number, not `{seed}`"))?),
        None => (text, 0),
    };
    let factor = factor(text)?;
    if factor.numerator > factor.denominator {
        return Err(format!("must be a share of at most 1, not `{text}`"));
    }
    Ok(Share { factor, seed })
}

/// End of all addresses and times: no request ends at or beyond 2^63 bytes.
const END: u64 = (1 << 63) - 1;

/// Prints a size in the largest unit that represents it exactly.
fn exact_bytes(bytes: u64) -> String {
    Bytes(bytes).to_string()
}

/// Prints a time in the largest unit that represents it exactly.
pub(crate) fn exact_time(ns: u64) -> String {
    let units = [(60_000_000_000, "min"), (1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns")];
    let (unit_ns, unit) = units.into_iter().find(|(unit_ns, _)| ns.is_multiple_of(*unit_ns)).unwrap_or((1, "ns"));
    format!("{}{unit}", ns / unit_ns)
}

impl fmt::Display for Factor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, fraction) = (self.numerator / self.denominator, self.numerator % self.denominator);
        let places = self.denominator.ilog10() as usize;
        if fraction == 0 {
            return write!(f, "{whole}");
        }
        let digits = format!("{fraction:0places$}");
        write!(f, "{whole}.{}", digits.trim_end_matches('0'))
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.factor)?;
        if self.seed == 0 { Ok(()) } else { write!(f, "@{}", self.seed) }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let range = |range: &Range, text: fn(u64) -> String| match range.to {
            END => format!("{}-", text(range.from)),
            to => format!("{}-{}", text(range.from), text(to)),
        };
        match self {
            Step::Kind(operations) => {
                let names: Vec<&str> = operations.iter().map(|operation| operation.name()).collect();
                write!(f, "kind={}", names.join(","))
            }
            Step::Device(names) => write!(f, "device={}", names.join(",")),
            Step::Process(names) => write!(f, "process={}", names.join(",")),
            Step::Time(times) => write!(f, "time={}", range(times, exact_time)),
            Step::First(requests) => write!(f, "first={requests}"),
            Step::Clip(addresses) => write!(f, "clip={}", range(addresses, exact_bytes)),
            Step::Fold(addresses) => write!(f, "fold={}", range(addresses, exact_bytes)),
            Step::Shift(bytes) => {
                write!(f, "shift={}{}", if *bytes < 0 { "-" } else { "" }, exact_bytes(bytes.unsigned_abs()))
            }
            Step::Stack(bytes) => write!(f, "stack={}", exact_bytes(*bytes)),
            Step::TimeScale(factor) => write!(f, "time-scale={factor}"),
            Step::AddressScale(factor) => write!(f, "address-scale={factor}"),
            Step::Sample(share) => write!(f, "sample={share}"),
            Step::SampleAddresses(share) => write!(f, "sample-addresses={share}"),
            Step::Unknown(operation) => write!(f, "unknown={}", operation.name()),
            Step::StripNames => write!(f, "strip-names"),
        }
    }
}
