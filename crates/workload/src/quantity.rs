//! Quantities with units. Only this module parses and prints them.
//!
//! Examples: `"64KiB"`, `"8.5ms"`, `"69MB/s"`, `"15000rpm"`. Decimal and binary prefixes differ: MB is 10^6 and MiB is
//! 2^20 bytes. A bare `k` or `M` means 2^10 or 2^20, as in the request sizes of fio, dd and others. A bare `G` or `T`
//! is rejected, because programs and disk manufacturers disagree on its meaning.
//!
//! Parsing uses exact decimal arithmetic and rounds once, to the nearest byte or nanosecond. The newtypes print the
//! shortest text that parses to the same value; the `format_` functions print four significant digits for display.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};

/// Error for a text that is not the expected quantity.
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
     or b/s, Kb/s, Mb/s, Gb/s (bits; Gbit/s is the same), as in \"69MB/s\"";
const RPM_ALLOWED: &str = "write a positive number and rpm, as in \"15000rpm\"";

/// Size units, largest first. Binary units precede decimal ones, so that a whole multiple of both prints in the binary
/// unit.
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

/// Rate units in bits per second, so that one exact table serves bits and bytes.
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

/// Maximum rate: above any real rate, and small enough that printed values can be parsed.
const RATE_MAX_BYTES_PER_S: f64 = 1e18;
const RPM_MAX: f64 = 1e9;

/// Units for printing rates in bytes, largest first.
const PRINTED_RATE_UNITS: [(&str, f64); 4] = [("GB/s", 1e9), ("MB/s", 1e6), ("KB/s", 1e3), ("B/s", 1.0)];

fn wrong(text: &str, expected: &'static str, reason: impl Into<String>) -> QuantityError {
    QuantityError { text: text.to_owned(), expected, reason: reason.into() }
}

/// A decimal number exactly as written: `digits / 10^decimals`.
struct Decimal {
    digits: u128,
    decimals: u32,
}

impl Decimal {
    /// Returns the integer nearest to `self * factor`, with halves rounded up. Returns `None` if it overflows, or if a
    /// nonzero quantity would become 0.
    fn scaled(&self, factor: u64) -> Option<u128> {
        let divisor = 10u128.checked_pow(self.decimals)?;
        let product = self.digits.checked_mul(u128::from(factor))?;
        let rounded = product.checked_add(divisor / 2)? / divisor;
        (rounded != 0 || product == 0).then_some(rounded)
    }
}

/// Splits a text such as `"8.5 ms"` into the number (without sign) and the unit.
fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(text.len());
    (&text[..end], text[end..].trim_start())
}

/// Parses digits with at most one decimal point. Underscores may separate digits, as in TOML.
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
/// Returns an error if the text is not a number with a size unit, is not a whole number of bytes in unit B, or exceeds
/// 2^64 - 1 bytes. A bare `G` or `T` is rejected.
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
        return Err(wrong(text, BYTES, "must be a whole number of bytes"));
    }
    value
        .scaled(factor)
        .and_then(|bytes| u64::try_from(bytes).ok())
        .ok_or_else(|| wrong(text, BYTES, "out of range; the maximum is 16 EiB"))
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

/// Parses a duration such as `"8.5ms"`, `"120us"`, `"10s"`, `"5min"` or `"-0.483ms"` into ns. Zero also needs a unit.
///
/// # Errors
/// Returns an error if the text is not a number with a time unit, exceeds the range of `i64` ns (292 years), or rounds
/// to zero although it is not zero.
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
        .ok_or_else(|| wrong(text, DURATION, "out of range; must be 1 ns to 292 years"))
}

/// Parses a rate such as `"69MB/s"`, `"1.1MiB/s"` or `"560Mb/s"` (bits) into bytes per second.
///
/// # Errors
/// Returns an error if the text is not a number with a rate unit, or exceeds 1 EB/s.
pub fn parse_rate_bytes_per_s(text: &str) -> Result<f64, QuantityError> {
    let (number, unit) = split(text);
    let unit = unit.replace("bit/s", "b/s");
    let factor = RATE_UNITS.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor);
    let (Some(value), Some(bits_per_s)) = (float(number), factor) else {
        return Err(wrong(text, RATE, RATE_ALLOWED));
    };
    let bytes_per_s = value * (bits_per_s / 8.0);
    if bytes_per_s > RATE_MAX_BYTES_PER_S {
        return Err(wrong(text, RATE, "out of range; the maximum is 10^18 bytes per second"));
    }
    Ok(bytes_per_s)
}

/// Parses the rate of a link in bytes (`"600MB/s"`), or in bits as the line rate of data sheets (`"6Gb/s"`). For a line
/// rate, a [`LineCoding`] states how many bits carry a byte.
///
/// # Errors
/// Returns an error under the same conditions as [`parse_rate_bytes_per_s`].
pub fn parse_link_rate(text: &str) -> Result<LinkRate, QuantityError> {
    let unit = split(text).1;
    let in_bits = unit.ends_with("b/s") || unit.ends_with("bit/s");
    parse_rate_bytes_per_s(text).map(|bytes_per_s| LinkRate { bytes_per_s, in_bits })
}

/// Parses a spindle speed such as `"15000rpm"` into revolutions per minute.
///
/// # Errors
/// Returns an error if the text is not a positive number with the unit rpm, or exceeds 10^9 rpm.
pub fn parse_rpm(text: &str) -> Result<f64, QuantityError> {
    let (number, unit) = split(text);
    match float(number) {
        Some(value) if value > RPM_MAX && unit == "rpm" => {
            Err(wrong(text, RPM, "out of range; the maximum is 10^9 rpm"))
        }
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

/// Prints a size for display: exactly if four digits are enough (`"64KiB"`, `"36.7GB"`), otherwise rounded to four
/// digits with a decimal prefix (`"9.186GB"`).
pub fn format_bytes(bytes: u64) -> String {
    let exact = Bytes(bytes).to_string();
    if exact.bytes().filter(u8::is_ascii_digit).count() <= 4 {
        return exact;
    }
    let decimal_units = || BYTE_UNITS.iter().filter(|(name, _)| !name.contains('i'));
    let (unit, factor) = decimal_units().find(|(_, factor)| bytes >= *factor).unwrap_or(&("B", 1));
    format!("{}{unit}", significant(bytes as f64 / *factor as f64, 4))
}

/// Prints a duration given in ns for display, with four significant digits, for example `"8.512ms"`.
pub fn format_duration_ns(duration_ns: i64) -> String {
    let magnitude = duration_ns.unsigned_abs();
    // Whole minutes and hours are easy to read, but a fraction such as "1.512h" is clear only for long times.
    let (unit, factor) = DURATION_UNITS
        .iter()
        .find(|(name, factor)| match *name {
            "h" | "min" => magnitude >= 10 * factor,
            _ => magnitude >= *factor,
        })
        .unwrap_or(&("ns", 1));
    format!("{}{unit}", significant(duration_ns as f64 / *factor as f64, 4))
}

/// Returns a count and its noun, with an `s` in the plural, for example `1 request` or `2 requests`.
pub fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Prints a rate in bytes per second for display, with four significant digits, for example `"69MB/s"`.
pub fn format_rate(bytes_per_s: f64) -> String {
    let (unit, factor) = PRINTED_RATE_UNITS.iter().find(|(_, factor)| bytes_per_s >= *factor).unwrap_or(&("B/s", 1.0));
    format!("{}{unit}", significant(bytes_per_s / factor, 4))
}

/// A size in bytes, written as text with a unit or as a whole number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

/// A signed duration in ns, written as text with a unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DurationNs(pub i64);

/// A rate in bytes per second, written as text with a unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Rate(pub f64);

/// Rate of a link, written as text with a unit: the data rate in bytes, or the line rate in bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct LinkRate {
    /// Rate in bytes per second, at eight bits per byte.
    bytes_per_s: f64,
    in_bits: bool,
}

/// Number of bits on a line that carry one byte of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineCoding {
    /// Ten bits, as with 8b/10b on SATA, SAS and Fibre Channel. Later generations use other codes, but are named after
    /// the rate with ten bits (24G SAS: 2,400 MB/s).
    TenBits,
    /// Eight bits, as on parallel buses and networks.
    EightBits,
}

impl LinkRate {
    /// Returns the data rate of a link with this line rate.
    pub fn data(self, coding: LineCoding) -> Rate {
        match (self.in_bits, coding) {
            (true, LineCoding::TenBits) => Rate(self.bytes_per_s * 0.8),
            _ => Rate(self.bytes_per_s),
        }
    }
}

impl From<Rate> for LinkRate {
    /// Converts a data rate.
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

/// A spindle speed in revolutions per minute, written as text with a unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Rpm(pub f64);

impl fmt::Display for Bytes {
    /// Prints the size exactly, in the largest unit that gives at most three decimals (decimal units) or a whole number
    /// (binary units).
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
    /// Prints the duration exactly: in whole hours or minutes, otherwise in the largest decimal unit with all digits.
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
    /// Prints the rate exactly, in the largest unit whose shortest decimal parses to the same value.
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

/// Deserializes a quantity from text, or from a whole number if `from_integer` is set.
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

/// Serializes a quantity as text with a unit, through the type's `Display` and its parse function.
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

/// Serializes a `u32` size in bytes as [`Bytes`].
pub(crate) mod bytes_u32 {
    use super::{Bytes, Deserialize, Deserializer, Serialize, Serializer, de};

    pub fn serialize<S: Serializer>(bytes: &u32, serializer: S) -> Result<S::Ok, S::Error> {
        Bytes(u64::from(*bytes)).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
        let bytes = Bytes::deserialize(deserializer)?;
        u32::try_from(bytes.0).map_err(|_| de::Error::custom(format!("{bytes} is too large; must be less than 4GiB")))
    }
}

/// Serializes an optional `u32` size in bytes as [`Bytes`].
pub(crate) mod bytes_u32_option {
    use super::{Bytes, Deserializer, Serialize, Serializer, bytes_u32};

    pub fn serialize<S: Serializer>(bytes: &Option<u32>, serializer: S) -> Result<S::Ok, S::Error> {
        bytes.map(|value| Bytes(u64::from(value))).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
        bytes_u32::deserialize(deserializer).map(Some)
    }
}

/// Serializes a `u64` size in bytes as [`Bytes`].
pub(crate) mod bytes_u64 {
    use super::{Bytes, Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(bytes: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        Bytes(*bytes).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        Bytes::deserialize(deserializer).map(|bytes| bytes.0)
    }
}

/// Serializes a `u64` duration in ns as a [`DurationNs`] that is not negative.
pub(crate) mod duration_u64 {
    use super::{Deserialize, Deserializer, DurationNs, Serialize, Serializer, de};

    pub fn serialize<S: Serializer>(duration_ns: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        let signed = i64::try_from(*duration_ns).map_err(|_| {
            serde::ser::Error::custom(format!("{duration_ns} ns is too long; the maximum is 292 years"))
        })?;
        DurationNs(signed).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        let duration = DurationNs::deserialize(deserializer)?;
        u64::try_from(duration.0).map_err(|_| de::Error::custom(format!("{duration} is negative; must be 0ns or more")))
    }
}
