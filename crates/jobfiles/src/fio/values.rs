//! Parses values: numbers with fio's units, times, ranges, lists, expressions.
//!
//! Every function returns its error on one line that includes the allowed values.

use super::expression;
use super::options::Kind;

/// A value each for reads, writes and trims; `None` keeps the current value.
pub(super) type Triple<T> = [Option<T>; 3];

/// Sizes with their percentages, which sum to 100.
pub(super) type Split = Vec<(u64, f64)>;

const NS_PER_S: u64 = 1_000_000_000;
const NS_PER_US: u64 = 1_000;

const SIZE_ALLOWED: &str = "use a whole number with an optional k, m, g, t or p, for example 64k";
const TIME_ALLOWED: &str = "use a whole number with an optional us, ms, s, m, h or d, for example 5m";

/// Meaning of size prefixes, set by fio's `kb_base`.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Base {
    /// k is 1024 and ki is 1000, fio's default.
    #[default]
    Short1024,
    /// k is 1000 and ki is 1024, as in the standards.
    Short1000,
}

/// A size in bytes, or a percentage of one.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Amount {
    Bytes(u64),
    Percent(f64),
}

/// An amount as written. A number of zones becomes bytes once the zone size is known.
pub(super) enum Written {
    Amount(Amount),
    Zones(u64),
}

/// Returns the number of bytes of a size unit; `None` if the unit is unknown.
pub(super) fn size_factor(unit: &str, base: Base) -> Option<u64> {
    let unit = unit.to_ascii_lowercase();
    if matches!(unit.as_str(), "" | "b") {
        return Some(1);
    }
    let power = "kmgtp".find(unit.chars().next()?)? as u32 + 1;
    let is_long = match &unit[1..] {
        "" | "b" => false,
        "i" | "ib" => true,
        _ => return None,
    };
    let step: u64 = if is_long == (base == Base::Short1024) { 1000 } else { 1024 };
    step.checked_pow(power)
}

/// Returns the number of nanoseconds of a time unit; `None` if the unit is unknown.
pub(super) fn time_factor_ns(unit: &str, default_ns: u64) -> Option<u64> {
    Some(match unit.to_ascii_lowercase().as_str() {
        "" => default_ns,
        "us" | "usec" => NS_PER_US,
        "ms" | "msec" => 1_000_000,
        "s" | "sec" => NS_PER_S,
        "m" => 60 * NS_PER_S,
        "h" => 3_600 * NS_PER_S,
        "d" => 86_400 * NS_PER_S,
        _ => return None,
    })
}

/// Splits a text such as `"64k"` into number and unit.
pub(super) fn number_and_unit(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    (&text[..end], text[end..].trim_start())
}

fn quantity(text: &str, allowed: &str, factor: impl Fn(&str) -> Option<u64>) -> Result<u64, String> {
    let text = text.trim();
    if text.starts_with('(') {
        return expression::evaluate(text, &factor).and_then(whole);
    }
    let hexadecimal = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let (number, factor) = match hexadecimal {
        Some(digits) => (u64::from_str_radix(digits, 16).ok(), factor("")),
        None => {
            let (number, unit) = number_and_unit(text);
            (number.parse().ok(), factor(unit))
        }
    };
    let (Some(number), Some(factor)) = (number, factor) else {
        return Err(format!("{text:?} is invalid; {allowed}"));
    };
    number.checked_mul(factor).ok_or_else(|| format!("{text:?} exceeds 2^64"))
}

/// Rounds to the nearest whole number.
fn whole(value: f64) -> Result<u64, String> {
    let rounded = (value + 0.5).floor();
    // Above 2^53, not every whole number is exact.
    if (0.0..=9_007_199_254_740_992.0).contains(&rounded) {
        return Ok(rounded as u64);
    }
    Err(format!("{value} is out of range; must be 0 to 2^53"))
}

pub(super) fn size(text: &str, base: Base) -> Result<u64, String> {
    quantity(text, SIZE_ALLOWED, |unit| size_factor(unit, base))
}

pub(super) fn signed_size(text: &str, base: Base) -> Result<i64, String> {
    let (is_negative, magnitude) = match text.trim().strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let magnitude = i64::try_from(size(magnitude, base)?).map_err(|_| format!("{text:?} exceeds 2^63"))?;
    Ok(if is_negative { -magnitude } else { magnitude })
}

pub(super) fn time_ns(text: &str, kind: Kind) -> Result<u64, String> {
    let default_ns = if matches!(kind, Kind::Micros) { NS_PER_US } else { NS_PER_S };
    let time_ns = quantity(text, TIME_ALLOWED, |unit| time_factor_ns(unit, default_ns))?;
    match i64::try_from(time_ns) {
        Ok(_) => Ok(time_ns),
        Err(_) => Err(format!("{text:?} exceeds the maximum of 292 years")),
    }
}

pub(super) fn amount(text: &str, base: Base) -> Result<Written, String> {
    let text = text.trim();
    if let Some(number) = text.strip_suffix('%') {
        let percent: u64 = number.trim().parse().map_err(|_| format!("{text:?} is not a percentage such as 50%"))?;
        if percent > 100 {
            return Err(format!("{text:?} is too large; the maximum is 100%"));
        }
        return Ok(Written::Amount(Amount::Percent(percent as f64)));
    }
    if let Some(Ok(zones)) = text.strip_suffix(['z', 'Z']).map(str::parse) {
        return Ok(Written::Zones(zones));
    }
    size(text, base).map(|bytes| Written::Amount(Amount::Bytes(bytes)))
}

/// Returns the fields of `"a,b,c"` for reads, writes and trims. A missing field equals the previous one.
fn fields(text: &str) -> Result<[&str; 3], String> {
    let stated: Vec<&str> = text.split(',').map(str::trim).collect();
    match stated[..] {
        [all] => Ok([all; 3]),
        [read, rest] => Ok([read, rest, rest]),
        [read, write, trim] => Ok([read, write, trim]),
        _ => Err(format!("{text:?} has more than three values; use one each for reads, writes and trims")),
    }
}

pub(super) fn triple<T: Clone>(text: &str, read: impl Fn(&str) -> Result<T, String>) -> Result<Triple<T>, String> {
    let mut values = [None, None, None];
    for (value, field) in values.iter_mut().zip(fields(text)?) {
        if !field.is_empty() {
            *value = Some(read(field)?);
        }
    }
    if values.iter().all(Option::is_none) {
        return Err("the value is missing".to_owned());
    }
    Ok(values)
}

pub(super) fn sizes(text: &str, base: Base) -> Result<Triple<u64>, String> {
    triple(text, |field| size(field, base))
}

/// Returns both ends of a range such as `"1k-4k"` or `"1k:4k"`, the smaller first.
pub(super) fn range(text: &str, read: impl Fn(&str) -> Result<u64, String>) -> Result<(u64, u64), String> {
    let (low, high) = text.split_once(['-', ':']).unwrap_or((text, text));
    let (low, high) = (read(low)?, read(high)?);
    Ok((low.min(high), low.max(high)))
}

pub(super) fn ranges(text: &str, base: Base) -> Result<Triple<(u64, u64)>, String> {
    triple(&text.replace('/', ","), |field| {
        if !field.contains(['-', ':']) {
            return Err(format!("{field:?} is not a range such as 1k-4k"));
        }
        let (low, high) = range(field, |end| size(end, base))?;
        if low == 0 {
            Err("0 is not allowed; a request must have at least one byte".to_owned())
        } else {
            Ok((low, high))
        }
    })
}

pub(super) fn splits(text: &str, base: Base) -> Result<Triple<Split>, String> {
    triple(text, |field| {
        let shares = shares(field, |value| size(value, base))?;
        match shares.iter().any(|(size, _)| *size == 0) {
            true => Err("0 is not allowed; a request must have at least one byte".to_owned()),
            false => Ok(shares),
        }
    })
}

/// Parses sizes with percentages, such as `"4k/60:8k/40"`. Entries without a percentage, or with 0, divide the rest
/// evenly.
fn shares(text: &str, read: impl Fn(&str) -> Result<u64, String>) -> Result<Split, String> {
    let mut entries: Vec<(u64, Option<u64>)> = Vec::new();
    for entry in text.split(':').filter(|entry| !entry.is_empty()) {
        let (value, share) = entry.split_once('/').unwrap_or((entry, ""));
        entries.push((read(value)?, percent_or_rest(share)?));
    }
    let stated: u64 = entries.iter().filter_map(|entry| entry.1).sum();
    if stated > 100 || entries.is_empty() {
        return Err(format!("the percentages of {text:?} sum to {stated}; the maximum is 100"));
    }
    let rest = (100 - stated) as f64;
    let open = entries.iter().filter(|entry| entry.1.is_none()).count();
    let mut split: Split = entries
        .into_iter()
        .map(|(value, share)| (value, share.map_or(rest / open.max(1) as f64, |share| share as f64)))
        .collect();
    // The largest share gets the remainder, as in fio's search through the sorted list.
    if open == 0
        && let Some(largest) = split.iter_mut().max_by(|a, b| a.1.total_cmp(&b.1))
    {
        largest.1 += rest;
    }
    split.retain(|(_, share)| *share > 0.0);
    Ok(split)
}

fn percent_or_rest(text: &str) -> Result<Option<u64>, String> {
    if text.trim().is_empty() {
        return Ok(None);
    }
    match text.trim().parse::<u64>() {
        Ok(0) => Ok(None),
        Ok(percent) if percent <= 100 => Ok(Some(percent)),
        _ => Err(format!("{text:?} is not a percentage from 0 to 100")),
    }
}

/// A zone of `random_distribution=zoned`: its percentage of the requests, and its length.
pub(super) type Zone<L> = (f64, L);

/// Parses zones such as `"50/5:30/15:20/80"`: pairs of a percentage of the requests and a length. The percentages must
/// sum to 100.
pub(super) fn zones<L>(text: &str, read: impl Fn(&str) -> Result<L, String>) -> Result<Vec<Zone<Option<L>>>, String> {
    let mut zones = Vec::new();
    for entry in text.split(':').filter(|entry| !entry.is_empty()) {
        let (share, length) = entry.split_once('/').unwrap_or((entry, ""));
        let length = if length.trim().is_empty() { None } else { Some(read(length)?) };
        zones.push((percent_or_rest(share)?, length));
    }
    let stated: u64 = zones.iter().filter_map(|zone| zone.0).sum();
    let open = zones.iter().filter(|zone| zone.0.is_none()).count();
    if stated > 100 || (stated < 100 && open == 0) {
        return Err(format!("the shares of {text:?} sum to {stated}; they must sum to 100"));
    }
    let rest = (100 - stated) as f64 / open.max(1) as f64;
    Ok(zones.into_iter().map(|(share, length)| (share.map_or(rest, |share| share as f64), length)).collect())
}

/// Parses numbers separated by `:`.
pub(super) fn floats(text: &str, most: f64) -> Result<Vec<f64>, String> {
    text.split(':')
        .map(|number| match number.trim().parse::<f64>() {
            Ok(value) if (0.0..=most).contains(&value) => Ok(value),
            _ => Err(format!("{number:?} is not a number from 0 to {most}")),
        })
        .collect()
}

/// Maximum pattern length in fio, in bytes.
const PATTERN_BYTES_MAX: usize = 512;

const PATTERN_ALLOWED: &str =
    "allowed, in sequence: text in double quotes, 0x with hexadecimal digits, decimal numbers";

/// Returns the bytes of a `buffer_pattern`, such as `"abcd"-120xdead`: a sequence of texts, hexadecimal bytes, and
/// little-endian numbers of up to four bytes.
pub(super) fn pattern(text: &str) -> Result<Vec<u8>, String> {
    let wrong = || format!("{text:?} is invalid; {PATTERN_ALLOWED}");
    let mut bytes = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        rest = match rest.as_bytes()[0] {
            b'"' => {
                let (quoted, behind) = rest[1..].split_once('"').ok_or_else(wrong)?;
                bytes.extend_from_slice(quoted.as_bytes());
                behind
            }
            b'\'' => return Err(format!("{text:?} names a file, which is not supported; {PATTERN_ALLOWED}")),
            _ if is_hexadecimal(rest) => hexadecimal(&rest[2..], &mut bytes).ok_or_else(wrong)?,
            _ => decimal(rest, &mut bytes).ok_or_else(wrong)?,
        };
    }
    match bytes.len() {
        0 => Err(wrong()),
        1..=PATTERN_BYTES_MAX => Ok(bytes),
        length => Err(format!("a pattern of {length} bytes is too long; the maximum is {PATTERN_BYTES_MAX}")),
    }
}

fn is_hexadecimal(text: &str) -> bool {
    text.starts_with("0x") || text.starts_with("0X")
}

/// Adds the bytes of the leading hexadecimal digits and returns the rest. If the number of digits is odd, the first
/// digit is a byte.
fn hexadecimal<'t>(text: &'t str, bytes: &mut Vec<u8>) -> Option<&'t str> {
    let end = text.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(text.len());
    let mut digits = text[..end].chars().filter_map(|c| c.to_digit(16)).peekable();
    digits.peek()?;
    if !end.is_multiple_of(2) {
        bytes.push(digits.next()? as u8);
    }
    while let (Some(high), Some(low)) = (digits.next(), digits.next()) {
        bytes.push((high << 4 | low) as u8);
    }
    Some(&text[end..])
}

/// Adds the bytes of a leading decimal number without its leading zero bytes, and returns the rest. A number ends where
/// `0x` begins: `-120xdead` is -12 followed by two bytes.
fn decimal<'t>(text: &'t str, bytes: &mut Vec<u8>) -> Option<&'t str> {
    let text = text.trim_start();
    let is_digit = |c: char| c.is_ascii_digit();
    let sign = usize::from(text.starts_with(['-', '+']));
    let mut end = text[sign..].find(|c| !is_digit(c)).map_or(text.len(), |end| end + sign);
    if let Some(begin) = (sign..end).find(|&at| is_hexadecimal(&text[at..])) {
        end = begin;
    }
    let number: i32 = text[..end].parse().ok()?;
    let all = number.to_le_bytes();
    let length = all.iter().rposition(|byte| *byte != 0).map_or(1, |last| last + 1);
    bytes.extend_from_slice(&all[..length]);
    Some(&text[end..])
}

/// Checks that a value has the format of its kind.
pub(super) fn check(kind: Kind, value: &str, base: Base) -> Result<(), String> {
    let within = |number: u64, low: u64, high: u64| match (low..=high).contains(&number) {
        true => Ok(()),
        false if high == u64::MAX => Err(format!("{number} is out of range; must be {low} or more")),
        false => Err(format!("{number} is out of range; must be {low} to {high}")),
    };
    match kind {
        Kind::Text | Kind::TextOrNone => Ok(()),
        Kind::Flag | Kind::Bool(_) => match value {
            "0" | "1" => Ok(()),
            _ => Err(format!("{value:?} is not allowed; use 0 or 1")),
        },
        Kind::Choice(choices) => check_choice(choices, value),
        Kind::ChoiceAnd(choices) => check_choice(choices, value.split([':', ',']).next().unwrap_or_default().trim()),
        Kind::Whole(low, high) => within(size(value, base)?, low, high),
        Kind::Wholes(low, high) => {
            sizes(value, base)?.into_iter().flatten().try_for_each(|number| within(number, low, high))
        }
        Kind::Signed(low, high) => match value.trim().parse::<i64>() {
            Ok(number) if (low..=high).contains(&number) => Ok(()),
            _ => Err(format!("{value:?} is not a whole number from {low} to {high}")),
        },
        Kind::Ranges => ranges(value, base).map(drop),
        Kind::Splits => splits(value, base).map(drop),
        Kind::SizeRange => range(value, |end| size(end, base)).map(drop),
        Kind::Extent => amount(value, base).map(drop),
        Kind::Seconds => time_ns(value, kind).map(drop),
        Kind::Micros => triple(value, |field| time_ns(field, kind)).map(drop),
        Kind::SecondsRange => range(value, |end| time_ns(end, kind)).map(drop),
        Kind::Floats(most) => floats(value, most).map(drop),
    }
}

fn check_choice(choices: &[&str], value: &str) -> Result<(), String> {
    match choices.contains(&value) {
        true => Ok(()),
        false => Err(format!("{value:?} is not allowed; allowed: {}", choices.join(", "))),
    }
}

/// Returns the sizes of fio's `bsrange`, as fio draws them: a length is uniform from `low` over as many bytes as
/// `high`, rounded down to a multiple of `low`, and limited to `high`. `None` if there are more than `most` sizes.
pub(super) fn sizes_of_range(low: u64, high: u64, most: u64) -> Option<Split> {
    if high / low > most {
        return None;
    }
    let share = |lengths: u64| 100.0 * lengths as f64 / high as f64;
    let mut split: Split = (1..=high / low).map(|multiple| (low * multiple, share(low))).collect();
    if !high.is_multiple_of(low) {
        split.push((high, share(high % low)));
    }
    Some(split)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: Base = Base::Short1024;

    #[test]
    fn units_of_sizes_follow_the_base() {
        let in_both = |unit| (size_factor(unit, Base::Short1024), size_factor(unit, Base::Short1000));
        assert_eq!(in_both(""), (Some(1), Some(1)));
        assert_eq!(in_both("B"), (Some(1), Some(1)));
        assert_eq!(in_both("k"), (Some(1024), Some(1000)));
        assert_eq!(in_both("KiB"), (Some(1000), Some(1024)));
        assert_eq!(in_both("mb"), (Some(1 << 20), Some(1_000_000)));
        assert_eq!(in_both("p"), (Some(1 << 50), Some(1_000_000_000_000_000)));
        assert_eq!((in_both("kx"), in_both("x")), ((None, None), (None, None)));
    }

    #[test]
    fn numbers_are_decimal_hexadecimal_or_calculated() {
        assert_eq!(size("64 k", BASE), Ok(65_536));
        assert_eq!((size("0x1F", BASE), size("0X10", BASE)), (Ok(31), Ok(16)));
        assert_eq!((size("(1k+0.4)", BASE), size("(1k+0.5)", BASE)), (Ok(1_024), Ok(1_025)));
        assert_eq!(size("(2^53)", BASE), Ok(1 << 53));
        assert!(size("(2^53+2)", BASE).unwrap_err().ends_with("must be 0 to 2^53"));
        assert!(size("(0-1)", BASE).unwrap_err().starts_with("-1 is out of range"));
        assert_eq!(size("16777216t", BASE).unwrap_err(), "\"16777216t\" exceeds 2^64");
        assert_eq!((signed_size("-4k", BASE), signed_size(" 4k", BASE)), (Ok(-4_096), Ok(4_096)));
        assert_eq!(signed_size("8388608t", BASE).unwrap_err(), "\"8388608t\" exceeds 2^63");
    }

    #[test]
    fn times_have_units_up_to_days() {
        let ns = |text: &str| time_ns(text, Kind::Seconds);
        assert_eq!((ns("2"), time_ns("2", Kind::Micros)), (Ok(2_000_000_000), Ok(2_000)));
        assert_eq!((ns("3us"), ns("4ms"), ns("5s")), (Ok(3_000), Ok(4_000_000), Ok(5_000_000_000)));
        assert_eq!((ns("2m"), ns("2h")), (Ok(120_000_000_000), Ok(7_200_000_000_000)));
        assert_eq!(ns("2d"), Ok(172_800_000_000_000));
        assert_eq!(ns("9223372036"), Ok(9_223_372_036_000_000_000));
        assert!(ns("9223372037").unwrap_err().ends_with("exceeds the maximum of 292 years"));
    }

    #[test]
    fn amounts_are_bytes_percentages_or_zones() {
        let percent = |text: &str| match amount(text, BASE) {
            Ok(Written::Amount(Amount::Percent(percent))) => Some(percent),
            _ => None,
        };
        assert_eq!(
            (percent("100%"), percent("0%"), percent("101%"), percent("x%")),
            (Some(100.0), Some(0.0), None, None)
        );
        assert!(matches!(amount("7z", BASE), Ok(Written::Zones(7))));
        assert!(matches!(amount("7k", BASE), Ok(Written::Amount(Amount::Bytes(7_168)))));
    }

    #[test]
    fn a_missing_value_of_a_kind_equals_the_one_before_or_keeps_the_current_one() {
        assert_eq!(sizes("4k", BASE), Ok([Some(4_096); 3]));
        assert_eq!(sizes("1,2", BASE), Ok([Some(1), Some(2), Some(2)]));
        assert_eq!(sizes("1,2,3", BASE), Ok([Some(1), Some(2), Some(3)]));
        assert_eq!(sizes(",2,", BASE), Ok([None, Some(2), None]));
        assert_eq!(sizes(",,", BASE).unwrap_err(), "the value is missing");
        assert!(sizes("1,2,3,4", BASE).unwrap_err().contains("more than three values"));
    }

    #[test]
    fn ranges_have_their_smaller_end_first_and_no_size_of_zero() {
        assert_eq!(range("4k-1k", |end| size(end, BASE)), Ok((1_024, 4_096)));
        assert_eq!(range("3", |end| size(end, BASE)), Ok((3, 3)));
        assert_eq!(ranges("1-2/3:4", BASE), Ok([Some((1, 2)), Some((3, 4)), Some((3, 4))]));
        assert!(ranges("0-4k", BASE).unwrap_err().starts_with("0 is not allowed"));
        assert!(ranges("4k", BASE).unwrap_err().ends_with("is not a range such as 1k-4k"));
    }

    #[test]
    fn shares_sum_to_a_hundred() {
        let split = |text: &str| splits(text, BASE).map(|[read, ..]| read.unwrap());
        assert_eq!(split("1/60:2/40"), Ok(vec![(1, 60.0), (2, 40.0)]));
        assert_eq!(split("1/60:2:3/0"), Ok(vec![(1, 60.0), (2, 20.0), (3, 20.0)]));
        assert_eq!(split("1/30:2/50"), Ok(vec![(1, 30.0), (2, 70.0)]), "the largest takes the remainder");
        assert_eq!(split("1/100:2"), Ok(vec![(1, 100.0)]), "a size without requests is none");
        assert!(split("1/60:2/41").unwrap_err().contains("sum to 101"));
        assert!(split("1/101").unwrap_err().contains("not a percentage from 0 to 100"));
        assert!(split("0/50:1").unwrap_err().starts_with("0 is not allowed"));
        assert!(split(":").is_err());
    }

    #[test]
    fn shares_of_zones_sum_to_a_hundred_and_lengths_may_be_open() {
        let of = |text: &str| zones(text, |length| size(length, BASE));
        assert_eq!(of("50/5:30/15:20"), Ok(vec![(50.0, Some(5)), (30.0, Some(15)), (20.0, None)]));
        assert_eq!(of("60/5:/1:/2"), Ok(vec![(60.0, Some(5)), (20.0, Some(1)), (20.0, Some(2))]));
        assert_eq!(of("100/5:/1"), Ok(vec![(100.0, Some(5)), (0.0, Some(1))]));
        assert_eq!(of("60/5:30/1").unwrap_err(), "the shares of \"60/5:30/1\" sum to 90; they must sum to 100");
        assert!(of("60/5:41/1").is_err());
    }

    #[test]
    fn numbers_of_a_list_are_within_bounds() {
        assert_eq!(floats("0:99.9:100", 100.0), Ok(vec![0.0, 99.9, 100.0]));
        assert_eq!(floats("1:100.5", 100.0).unwrap_err(), "\"100.5\" is not a number from 0 to 100");
    }

    #[test]
    fn patterns_are_at_most_512_bytes() {
        assert_eq!(pattern("\"ab\"-120xdead"), Ok(vec![b'a', b'b', 0xf4, 0xff, 0xff, 0xff, 0xde, 0xad]));
        assert_eq!((pattern("0xf12"), pattern("0X0a")), (Ok(vec![0xf, 0x12]), Ok(vec![0x0a])));
        assert_eq!((pattern("0"), pattern("256"), pattern("+255")), (Ok(vec![0]), Ok(vec![0, 1]), Ok(vec![255])));
        assert_eq!(pattern(&format!("0x{}", "ab".repeat(512))).map(|bytes| bytes.len()), Ok(512));
        assert!(pattern(&format!("0x{}", "ab".repeat(513))).unwrap_err().contains("513 bytes is too long"));
        for wrong in ["", "0x", "\"ab", "zz", "'file'", "4294967296"] {
            assert!(pattern(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn values_have_the_form_of_their_option() {
        let is_good = |kind, value: &str| check(kind, value, BASE).is_ok();
        assert!(is_good(Kind::Flag, "0") && is_good(Kind::Flag, "1") && !is_good(Kind::Flag, "2"));
        assert!(is_good(Kind::Whole(2, 4), "2") && is_good(Kind::Whole(2, 4), "4"));
        assert!(!is_good(Kind::Whole(2, 4), "1") && !is_good(Kind::Whole(2, 4), "5"));
        assert_eq!(check(Kind::Whole(2, 4), "5", BASE).unwrap_err(), "5 is out of range; must be 2 to 4");
        let open = check(Kind::Whole(2, u64::MAX), "1", BASE).unwrap_err();
        assert_eq!(open, "1 is out of range; must be 2 or more");
        assert!(is_good(Kind::Wholes(2, 4), "2,3,4") && !is_good(Kind::Wholes(2, 4), "2,3,5"));
        assert!(is_good(Kind::Signed(-2, 4), "-2") && !is_good(Kind::Signed(-2, 4), "-3"));
        assert!(is_good(Kind::Choice(&["a", "b"]), "b") && !is_good(Kind::Choice(&["a", "b"]), "b:1"));
        assert!(is_good(Kind::ChoiceAnd(&["a", "b"]), "b:1"));
        assert!(is_good(Kind::Floats(5.0), "5") && !is_good(Kind::Floats(5.0), "6"));
    }

    #[test]
    fn sizes_of_a_range_are_multiples_of_its_low_end_and_the_high_end() {
        assert_eq!(sizes_of_range(4, 8, 2), Some(vec![(4, 50.0), (8, 50.0)]));
        assert_eq!(sizes_of_range(4, 10, 2), Some(vec![(4, 40.0), (8, 40.0), (10, 20.0)]));
        assert_eq!(sizes_of_range(4, 12, 2), None);
    }
}
