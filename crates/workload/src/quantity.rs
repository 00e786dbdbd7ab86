//! Quantities with units: the only module that parses and prints such text.
//!
//! `"64KiB"`, `"8.5ms"`, `"69MB/s"`, `"15000rpm"`. Decimal and binary prefixes are never confused: MB is 10^6 and MiB
//! is 2^20 bytes. A bare `k` or `M` is 2^10 or 2^20, as in the request sizes of fio, dd and others; a bare `G` or `T`
//! is rejected, since programs and makers of disks disagree on it.
//!
//! Parsing is exact decimal arithmetic, rounded once to the nearest whole byte or nanosecond. The newtypes print the
//! shortest text that parses back to the same value; the `format_` functions print four significant digits for display.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};

/// A text that is not the expected quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not {expected}: {reason}")]
pub struct QuantityError {
    text: String,
    expected: &'static str,
    reason: String,
}

const BYTES: &str = "a size";
const DURATION: &str = "a duration";
const RATE: &str = "a rate";
const RPM: &str = "a spindle speed";

const BYTES_ALLOWED: &str = "write a number and B, KB, MB, GB, TB (powers of 1000) \
     or KiB, MiB, GiB, TiB (powers of 1024; k and m are KiB and MiB), as in \"64KiB\"";
const DURATION_ALLOWED: &str = "write a number and ns, us, ms, s, min or h, as in \"8.5ms\"";
const RATE_ALLOWED: &str = "write a number and B/s, KB/s, MB/s, GB/s, KiB/s, MiB/s, GiB/s (bytes) \
     or b/s, Kb/s, Mb/s, Gb/s (bits), as in \"69MB/s\"";
const RPM_ALLOWED: &str = "write a positive number and rpm, as in \"15000rpm\"";

/// Units of size, largest first: binary before decimal so that a whole number of both prints as
/// the binary one.
const BYTE_UNITS: [(&str, u64); 11] = [
    ("PiB", 1 << 50),
    ("PB", 1_000_000_000_000_000),
    ("TiB", 1 << 40),
    ("TB", 1_000_000_000_000),
    ("GiB", 1 << 30),
    ("GB", 1_000_000_000),
    ("MiB", 1 << 20),
    ("MB", 1_000_000),
    ("KiB", 1 << 10),
    ("KB", 1_000),
    ("B", 1),
];

const DURATION_UNITS: [(&str, u64); 6] = [
    ("h", 3_600_000_000_000),
    ("min", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

/// Units of rate in bits per second, so that bits and bytes share one exact table.
const RATE_UNITS: [(&str, f64); 15] = [
    ("TB/s", 8e12),
    ("GB/s", 8e9),
    ("MB/s", 8e6),
    ("KB/s", 8e3),
    ("kB/s", 8e3),
    ("B/s", 8.0),
    ("GiB/s", 8.0 * 1_073_741_824.0),
    ("MiB/s", 8.0 * 1_048_576.0),
    ("KiB/s", 8.0 * 1_024.0),
    ("Tb/s", 1e12),
    ("Gb/s", 1e9),
    ("Mb/s", 1e6),
    ("Kb/s", 1e3),
    ("kb/s", 1e3),
    ("b/s", 1.0),
];

/// Largest rate: far above any rate and any speed, with few enough digits that printed values parse back.
const RATE_MAX_BYTES_PER_S: f64 = 1e18;
const RPM_MAX: f64 = 1e9;

/// The byte units in which a rate is printed, largest first.
const PRINTED_RATE_UNITS: [(&str, f64); 4] = [("GB/s", 1e9), ("MB/s", 1e6), ("KB/s", 1e3), ("B/s", 1.0)];

fn wrong(text: &str, expected: &'static str, reason: impl Into<String>) -> QuantityError {
    QuantityError { text: text.to_owned(), expected, reason: reason.into() }
}

/// A decimal number, exactly as written: `digits / 10^decimals`.
struct Decimal {
    digits: u128,
    decimals: u32,
}

impl Decimal {
    /// Returns the whole number nearest to `self * factor` (halves up); `None` if it overflows, and if a quantity that
    /// is not zero would become zero.
    fn scaled(&self, factor: u64) -> Option<u128> {
        let divisor = 10u128.checked_pow(self.decimals)?;
        let product = self.digits.checked_mul(u128::from(factor))?;
        let rounded = product.checked_add(divisor / 2)? / divisor;
        (rounded != 0 || product == 0).then_some(rounded)
    }
}

/// Splits `"8.5 ms"` into its number (without sign) and its unit.
fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(text.len());
    (&text[..end], text[end..].trim_start())
}

/// Parses digits with at most one point; underscores may group digits as in TOML.
fn decimal(number: &str) -> Option<Decimal> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits: String = [whole, fraction].concat().chars().filter(|&c| c != '_').collect();
    let point_without_digits = number.contains('.') && (whole.is_empty() || fraction.is_empty());
    if point_without_digits || fraction.contains('_') {
        return None;
    }
    Some(Decimal { digits: digits.parse().ok()?, decimals: u32::try_from(fraction.len()).ok()? })
}

/// Parses a size such as `"64KiB"`, `"36.7GB"`, `"512B"` or `"512"` into bytes.
///
/// # Errors
/// When the text is not a number with a unit of size, is not a whole number of bytes in unit B, or
/// exceeds 2^64 - 1 bytes. A bare `G` or `T` is refused.
pub fn parse_bytes(text: &str) -> Result<u64, QuantityError> {
    let (number, unit) = split(text);
    let Some(value) = decimal(number) else {
        return Err(wrong(text, BYTES, BYTES_ALLOWED));
    };
    let factor = match unit {
        "" => 1,
        "kB" => 1_000,
        "k" | "K" => 1 << 10,
        "m" | "M" => 1 << 20,
        _ => match BYTE_UNITS.iter().find(|(name, _)| *name == unit) {
            Some((_, factor)) => *factor,
            None => return Err(wrong(text, BYTES, unknown_byte_unit(unit))),
        },
    };
    if factor == 1 && value.decimals > 0 {
        return Err(wrong(text, BYTES, "it is not a whole number of bytes"));
    }
    value
        .scaled(factor)
        .and_then(|bytes| u64::try_from(bytes).ok())
        .ok_or_else(|| wrong(text, BYTES, "it is out of range (up to 16 EiB)"))
}

fn unknown_byte_unit(unit: &str) -> String {
    match unit {
        "G" | "g" | "T" | "t" | "P" | "p" => {
            let prefix = unit.to_ascii_uppercase();
            format!("{unit} is ambiguous; write {prefix}iB (powers of 1024) or {prefix}B (of 1000)")
        }
        "KIB" | "kib" | "kiB" | "Kib" | "MIB" | "mib" | "Mib" | "GIB" | "gib" | "Gib" | "TIB" | "tib" | "Tib" => {
            let prefix = unit[..1].to_ascii_uppercase();
            format!("{unit} is not a unit; write {prefix}iB (a power of 1024)")
        }
        "Kb" | "kb" | "Mb" | "mb" | "Gb" | "gb" | "Tb" | "tb" => {
            let prefix = unit[..1].to_ascii_uppercase();
            format!("{unit} may mean bits; write {prefix}B (a power of 1000) or {prefix}iB (of 1024)")
        }
        _ => BYTES_ALLOWED.to_owned(),
    }
}

/// Parses a duration such as `"8.5ms"`, `"120us"`, `"10s"`, `"5min"` or `"-0.483ms"` into
/// nanoseconds. Zero needs a unit too.
///
/// # Errors
/// When the text is not a number with a unit of time, exceeds the range of `i64` nanoseconds (292
/// years), or is not zero but rounds to zero.
pub fn parse_duration_ns(text: &str) -> Result<i64, QuantityError> {
    let trimmed = text.trim();
    let (negative, magnitude) = match trimmed.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, trimmed.strip_prefix('+').unwrap_or(trimmed)),
    };
    let (number, unit) = split(magnitude);
    let factor = match unit {
        "µs" | "μs" => Some(1_000),
        _ => DURATION_UNITS.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor),
    };
    let (Some(value), Some(factor)) = (decimal(number), factor) else {
        return Err(wrong(text, DURATION, DURATION_ALLOWED));
    };
    value
        .scaled(factor)
        .and_then(|ns| i64::try_from(ns).ok())
        .map(|ns| if negative { -ns } else { ns })
        .ok_or_else(|| wrong(text, DURATION, "it is out of range (1 ns up to 292 years)"))
}

/// Parses a rate such as `"69MB/s"`, `"1.1MiB/s"` or `"560Mb/s"` (bits) into bytes a second.
///
/// # Errors
/// When the text is not a number with a unit of rate, or exceeds 1 EB/s.
pub fn parse_rate_bytes_per_s(text: &str) -> Result<f64, QuantityError> {
    let (number, unit) = split(text);
    let factor = RATE_UNITS.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor);
    let (Some(value), Some(bits_per_s)) = (float(number), factor) else {
        return Err(wrong(text, RATE, RATE_ALLOWED));
    };
    let bytes_per_s = value * (bits_per_s / 8.0);
    if bytes_per_s > RATE_MAX_BYTES_PER_S {
        return Err(wrong(text, RATE, "it is out of range (up to 10^18 bytes a second)"));
    }
    Ok(bytes_per_s)
}

/// Parses the rate of a link, in bytes (`"600MB/s"`) or in bits: the line rate of data sheets (`"6Gb/s"`), for which
/// `coding` states how many bits carry a byte.
///
/// # Errors
/// As for [`parse_rate_bytes_per_s`].
pub fn parse_link_rate(text: &str) -> Result<LinkRate, QuantityError> {
    let in_bits = split(text).1.ends_with("b/s");
    parse_rate_bytes_per_s(text).map(|bytes_per_s| LinkRate { bytes_per_s, in_bits })
}

/// Parses a spindle speed such as `"15000rpm"` into revolutions a minute.
///
/// # Errors
/// When the text is not a positive number with the unit rpm, or exceeds 10^9 rpm.
pub fn parse_rpm(text: &str) -> Result<f64, QuantityError> {
    let (number, unit) = split(text);
    match float(number) {
        Some(value) if value > RPM_MAX && unit == "rpm" => Err(wrong(text, RPM, "it is out of range (up to 10^9 rpm)")),
        Some(value) if value > 0.0 && unit == "rpm" => Ok(value),
        _ => Err(wrong(text, RPM, RPM_ALLOWED)),
    }
}

/// Returns the correctly rounded value of a number that [`decimal`] accepts.
fn float(number: &str) -> Option<f64> {
    decimal(number)?;
    number.replace('_', "").parse().ok()
}

/// Prints `value` with `digits` significant digits and no trailing zeros.
fn significant(value: f64, digits: i32) -> String {
    let magnitude = if value == 0.0 { 0 } else { value.abs().log10().floor() as i32 };
    let decimals = (digits - 1 - magnitude).max(0) as usize;
    trim_zeros(format!("{value:.decimals$}"))
}

fn trim_zeros(mut text: String) -> String {
    if text.contains('.') {
        text.truncate(text.trim_end_matches('0').trim_end_matches('.').len());
    }
    text
}

/// Prints a size for display: exactly if four digits suffice (`"64KiB"`, `"36.7GB"`), else rounded to four with a
/// decimal prefix (`"9.186GB"`).
pub fn format_bytes(bytes: u64) -> String {
    let exact = Bytes(bytes).to_string();
    if exact.bytes().filter(u8::is_ascii_digit).count() <= 4 {
        return exact;
    }
    let decimal_units = || BYTE_UNITS.iter().filter(|(name, _)| !name.contains('i'));
    let (unit, factor) = decimal_units().find(|(_, factor)| bytes >= *factor).unwrap_or(&("B", 1));
    format!("{}{unit}", significant(bytes as f64 / *factor as f64, 4))
}

/// Prints a duration in nanoseconds for display, with four significant digits: `"8.512ms"`.
pub fn format_duration_ns(duration_ns: i64) -> String {
    let magnitude = duration_ns.unsigned_abs();
    // Whole minutes and hours are readable; "1.512h" is not until the time is long.
    let (unit, factor) = DURATION_UNITS
        .iter()
        .find(|(name, factor)| match *name {
            "h" | "min" => magnitude >= 10 * factor,
            _ => magnitude >= *factor,
        })
        .unwrap_or(&("ns", 1));
    format!("{}{unit}", significant(duration_ns as f64 / *factor as f64, 4))
}

/// Returns a count and its noun, with an `s` in the plural: `1 request`, `2 requests`.
pub fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Prints a rate in bytes per second for display, with four significant digits: `"69MB/s"`.
pub fn format_rate(bytes_per_s: f64) -> String {
    let (unit, factor) = PRINTED_RATE_UNITS.iter().find(|(_, factor)| bytes_per_s >= *factor).unwrap_or(&("B/s", 1.0));
    format!("{}{unit}", significant(bytes_per_s / factor, 4))
}

/// A size in bytes, written in descriptions as text with a unit or as a whole number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

/// A signed duration in nanoseconds, written as text with a unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DurationNs(pub i64);

/// A rate in bytes a second, written as text with a unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Rate(pub f64);

/// The rate of a link, written as text with a unit: of its data in bytes, or of its line in bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct LinkRate {
    /// Rate with eight bits per byte.
    bytes_per_s: f64,
    in_bits: bool,
}

/// How many bits of a line carry a byte of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineCoding {
    /// Ten, as with 8b/10b on SATA, SAS and Fibre Channel; later generations have other codes, and are named after the
    /// rate with ten (24G SAS: 2,400 MB/s).
    TenBits,
    /// Eight: parallel buses, networks.
    EightBits,
}

impl LinkRate {
    /// Returns the rate of data on a link of this line rate.
    pub fn data(self, coding: LineCoding) -> Rate {
        match (self.in_bits, coding) {
            (true, LineCoding::TenBits) => Rate(self.bytes_per_s * 0.8),
            _ => Rate(self.bytes_per_s),
        }
    }
}

impl From<Rate> for LinkRate {
    /// Converts a rate of data.
    fn from(rate: Rate) -> LinkRate {
        LinkRate { bytes_per_s: rate.0, in_bits: false }
    }
}

impl fmt::Display for LinkRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.in_bits {
            false => Rate(self.bytes_per_s).fmt(f),
            true => write!(f, "{}b/s", self.bytes_per_s * 8.0),
        }
    }
}

/// A spindle speed in revolutions a minute, written as text with a unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Rpm(pub f64);

impl fmt::Display for Bytes {
    /// Prints exactly: the largest unit of which the size is a multiple of a thousandth (decimal units) or a whole
    /// multiple (binary units).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exact = |(name, factor): &(&str, u64)| {
            let step = if name.contains('i') || *factor == 1 { *factor } else { factor / 1000 };
            self.0 >= *factor && self.0.is_multiple_of(step)
        };
        let (unit, factor) = BYTE_UNITS.iter().find(|unit| exact(unit)).unwrap_or(&("B", 1));
        let (whole, rest) = (self.0 / factor, self.0 % factor);
        if rest == 0 {
            return write!(f, "{whole}{unit}");
        }
        let thousandths = rest / (factor / 1000);
        let number = trim_zeros(format!("{whole}.{thousandths:03}"));
        write!(f, "{number}{unit}")
    }
}

impl fmt::Display for DurationNs {
    /// Prints exactly: whole hours and minutes, else the largest decimal unit with all its digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let magnitude = self.0.unsigned_abs();
        let sign = if self.0 < 0 { "-" } else { "" };
        let (unit, factor) = DURATION_UNITS
            .iter()
            .find(|(name, factor)| match *name {
                "h" | "min" => magnitude >= *factor && magnitude.is_multiple_of(*factor),
                _ => magnitude >= *factor,
            })
            .unwrap_or(&("ns", 1));
        let (whole, rest) = (magnitude / factor, magnitude % factor);
        if rest == 0 {
            return write!(f, "{sign}{whole}{unit}");
        }
        let decimals = factor.ilog10() as usize;
        let number = trim_zeros(format!("{whole}.{rest:0decimals$}"));
        write!(f, "{sign}{number}{unit}")
    }
}

impl fmt::Display for Rate {
    /// Prints exactly: the largest unit in which the shortest decimal parses back to the same value.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let candidate = PRINTED_RATE_UNITS
            .iter()
            .filter(|(_, factor)| self.0 >= *factor)
            .map(|(unit, factor)| format!("{}{unit}", self.0 / factor))
            .find(|text| parse_rate_bytes_per_s(text) == Ok(self.0));
        match candidate {
            Some(text) => f.write_str(&text),
            None => write!(f, "{}B/s", self.0),
        }
    }
}

impl fmt::Display for Rpm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}rpm", self.0)
    }
}

/// Deserializes a quantity from text, and from a whole number if `from_integer` allows it.
struct QuantityVisitor<T> {
    expected: &'static str,
    parse: fn(&str) -> Result<T, QuantityError>,
    from_integer: Option<fn(u64) -> T>,
}

impl<T> Visitor<'_> for QuantityVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        (self.parse)(text).map_err(E::custom)
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<T, E> {
        match self.from_integer {
            Some(make) => Ok(make(value)),
            None => Err(E::invalid_type(de::Unexpected::Unsigned(value), &self)),
        }
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<T, E> {
        match (self.from_integer, u64::try_from(value)) {
            (Some(make), Ok(value)) => Ok(make(value)),
            _ => Err(E::invalid_type(de::Unexpected::Signed(value), &self)),
        }
    }
}

/// Serializes as text with a unit, through the type's `Display` and its parse function.
macro_rules! as_text {
    ($quantity:ident, $parse:expr, $make:expr, $from_integer:expr, $expected:literal) => {
        impl Serialize for $quantity {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $quantity {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(QuantityVisitor {
                    expected: $expected,
                    parse: |text| $parse(text).map($make),
                    from_integer: $from_integer,
                })
            }
        }
    };
}

as_text!(Bytes, parse_bytes, Bytes, Some(Bytes), "a size such as \"64KiB\", or a whole number of bytes");
as_text!(DurationNs, parse_duration_ns, DurationNs, None, "a duration with its unit such as \"8.5ms\"");
as_text!(Rate, parse_rate_bytes_per_s, Rate, None, "a rate with its unit such as \"69MB/s\"");
as_text!(
    LinkRate,
    parse_link_rate,
    std::convert::identity,
    None,
    "a rate with its unit such as \"600MB/s\" of data, or \"6Gb/s\" of a line"
);
as_text!(Rpm, parse_rpm, Rpm, None, "a spindle speed such as \"15000rpm\"");

/// Serde of a `u32` size in bytes as [`Bytes`].
pub(crate) mod bytes_u32 {
    use super::{Bytes, Deserialize, Deserializer, Serialize, Serializer, de};

    pub fn serialize<S: Serializer>(bytes: &u32, serializer: S) -> Result<S::Ok, S::Error> {
        Bytes(u64::from(*bytes)).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
        let bytes = Bytes::deserialize(deserializer)?;
        u32::try_from(bytes.0)
            .map_err(|_| de::Error::custom(format!("{bytes} is too large; less than 4GiB is allowed")))
    }
}

/// Serde of an optional `u32` size in bytes as [`Bytes`].
pub(crate) mod bytes_u32_option {
    use super::{Bytes, Deserializer, Serialize, Serializer, bytes_u32};

    pub fn serialize<S: Serializer>(bytes: &Option<u32>, serializer: S) -> Result<S::Ok, S::Error> {
        bytes.map(|value| Bytes(u64::from(value))).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
        bytes_u32::deserialize(deserializer).map(Some)
    }
}

/// Serde of a `u64` size in bytes as [`Bytes`].
pub(crate) mod bytes_u64 {
    use super::{Bytes, Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(bytes: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        Bytes(*bytes).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        Bytes::deserialize(deserializer).map(|bytes| bytes.0)
    }
}

/// Serde of a `u64` duration in nanoseconds as a [`DurationNs`] that is not negative.
pub(crate) mod duration_u64 {
    use super::{Deserialize, Deserializer, DurationNs, Serialize, Serializer, de};

    pub fn serialize<S: Serializer>(duration_ns: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        let signed = i64::try_from(*duration_ns).map_err(|_| {
            serde::ser::Error::custom(format!("{duration_ns} ns is too long; up to 292 years is allowed"))
        })?;
        DurationNs(signed).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        let duration = DurationNs::deserialize(deserializer)?;
        u64::try_from(duration.0)
            .map_err(|_| de::Error::custom(format!("{duration} is negative; 0ns or more is allowed")))
    }
}
