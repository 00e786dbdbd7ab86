//! Times as text: units ([`TimeUnit`]) and plausible dates.

use serde::{Deserialize, Serialize};

use crate::error::{Problem, refused};
use crate::text::{decimal, whole};

/// Unit of a trace's times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TimeUnit {
    /// Seconds.
    #[serde(rename = "s")]
    Seconds,
    /// Milliseconds.
    #[serde(rename = "ms")]
    Milliseconds,
    /// Microseconds.
    #[serde(rename = "us")]
    Microseconds,
    /// Windows ticks of 100 ns.
    #[serde(rename = "100ns")]
    Ticks,
    /// Nanoseconds.
    #[serde(rename = "ns")]
    Nanoseconds,
    /// Picoseconds, used by simulators; rounded to the nearest nanosecond.
    #[serde(rename = "ps")]
    Picoseconds,
}

impl TimeUnit {
    /// All units, longest first.
    pub const ALL: [TimeUnit; 6] = [
        TimeUnit::Seconds,
        TimeUnit::Milliseconds,
        TimeUnit::Microseconds,
        TimeUnit::Ticks,
        TimeUnit::Nanoseconds,
        TimeUnit::Picoseconds,
    ];

    /// Returns the symbol in options and messages.
    pub fn name(self) -> &'static str {
        match self {
            TimeUnit::Seconds => "s",
            TimeUnit::Milliseconds => "ms",
            TimeUnit::Microseconds => "us",
            TimeUnit::Ticks => "100ns",
            TimeUnit::Nanoseconds => "ns",
            TimeUnit::Picoseconds => "ps",
        }
    }

    /// Returns the unit with that symbol.
    pub fn from_name(name: &str) -> Option<TimeUnit> {
        TimeUnit::ALL.into_iter().find(|unit| unit.name() == name)
    }

    /// Parses a time in this unit to ns below 2^63; returns `None` for anything else.
    #[inline]
    pub(crate) fn ns(self, text: &[u8]) -> Option<u64> {
        let ns = match self {
            TimeUnit::Picoseconds => decimal(text, 0)?.checked_add(500)? / 1_000,
            _ => decimal(text, self.exponent())?,
        };
        (ns < TIME_NS_END).then_some(ns)
    }

    /// Returns the resolution in ns of a time with `digits` decimal places; at least 1.
    pub(crate) fn step_ns(self, digits: usize) -> u64 {
        10u64.pow(self.exponent().saturating_sub(u32::try_from(digits).unwrap_or(u32::MAX)))
    }

    /// Returns the base-10 logarithm of the unit in ns; 0 for picoseconds.
    fn exponent(self) -> u32 {
        match self {
            TimeUnit::Seconds => 9,
            TimeUnit::Milliseconds => 6,
            TimeUnit::Microseconds => 3,
            TimeUnit::Ticks => 2,
            TimeUnit::Nanoseconds | TimeUnit::Picoseconds => 0,
        }
    }
}

/// Exclusive upper limit of times in ns: 2^63 ns or 292 years, so that the sum of two times never overflows.
pub(crate) const TIME_NS_END: u64 = 1 << 63;

pub(crate) const NS_PER_S: u64 = 1_000_000_000;
/// 1980-01-01 in s since 1970, older than any block trace.
pub(crate) const OLDEST_UNIX_S: u64 = 315_532_800;
/// 2100-01-01 in s since 1970.
pub(crate) const NEWEST_UNIX_S: u64 = 4_102_444_800;
/// 1970-01-01 in 100 ns since 1601-01-01, the base of Windows file times.
pub(crate) const UNIX_EPOCH_TICKS: u64 = 116_444_736_000_000_000;
pub(crate) const NS_PER_TICK: u64 = 100;

/// Epoch and unit of dates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Calendar {
    /// Time since 1970-01-01 UTC, in any unit.
    Unix(TimeUnit),
    /// Windows file time: 100 ns since 1601-01-01 UTC.
    FileTime,
    /// Date and time of day as text, in UTC unless a time zone is given.
    Text,
}

/// Returns the days from 1970-01-01 to a day of the Gregorian calendar; month and day count from 1.
pub(crate) fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    // Years that begin in March, so that a leap day is the last day of its year.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1 - 719_468
}

/// Parses a date such as `2026-01-31 12:00:00.5` to ns since 1970. Also accepts `T` between date and time, slashes in
/// the date, a decimal comma, and `Z`, `UTC` or `+01:00` at the end.
fn text_date_ns(text: &[u8]) -> Option<u64> {
    let number = |range: std::ops::Range<usize>| whole(text.get(range)?);
    let is = |at: usize, allowed: &[u8]| text.get(at).is_some_and(|byte| allowed.contains(byte));
    let is_formed = is(4, b"-/") && is(7, b"-/") && is(10, b" T") && is(13, b":") && is(16, b":");
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
    let is_within = (1..=12).contains(&month) && (1..=31).contains(&day) && hour < 24 && minute < 60 && second <= 60;
    if !is_formed || !is_within {
        return None;
    }
    let rest = &text[19..];
    let digits = match rest.split_first() {
        Some((b'.' | b',', behind)) => behind.iter().take_while(|byte| byte.is_ascii_digit()).count(),
        _ => 0,
    };
    let (fraction, zone) = rest.split_at(if digits > 0 { digits + 1 } else { 0 });
    let ns = if digits > 0 { decimal(&[b".", &fraction[1..]].concat(), 9)? } else { 0 };
    let ahead_s = zone_s(zone.trim_ascii())?;
    let days = days_since_1970(year as i64, month as i64, day as i64);
    let since_s = days * 86_400 + (hour * 3_600 + minute * 60 + second) as i64 - ahead_s;
    u64::try_from(since_s).ok()?.checked_mul(NS_PER_S)?.checked_add(ns)
}

/// Returns the offset of a time zone from UTC in seconds; `None` if the zone is invalid.
fn zone_s(zone: &[u8]) -> Option<i64> {
    let (sign, rest) = match zone.split_first() {
        None => return Some(0),
        Some((b'+', rest)) => (1, rest),
        Some((b'-', rest)) => (-1, rest),
        Some(_) => return matches!(zone, b"Z" | b"UTC").then_some(0),
    };
    let (hours, minutes) = match rest.len() {
        2 => (whole(rest)?, 0),
        4 => (whole(&rest[..2])?, whole(&rest[2..])?),
        5 if rest[2] == b':' => (whole(&rest[..2])?, whole(&rest[3..])?),
        _ => return None,
    };
    (hours <= 14 && minutes < 60).then_some(sign * (hours * 3_600 + minutes * 60) as i64)
}

impl Calendar {
    /// Parses a date to ns since 1970; returns `None` if it is not plausible for a trace.
    #[inline]
    pub(crate) fn date_ns(self, text: &[u8]) -> Option<u64> {
        let ns = match self {
            Calendar::Unix(unit) => unit.ns(text)?,
            Calendar::FileTime => whole(text)?.checked_sub(UNIX_EPOCH_TICKS)?.checked_mul(NS_PER_TICK)?,
            Calendar::Text => text_date_ns(text)?,
        };
        (OLDEST_UNIX_S * NS_PER_S..NEWEST_UNIX_S * NS_PER_S).contains(&ns).then_some(ns)
    }

    /// Returns an error that names the allowed dates, and the unit in which the value would be plausible.
    #[cold]
    pub(crate) fn refused(self, field: &'static str, text: &[u8]) -> Problem {
        let allowed = format!("{}, between 1980 and 2099", self.title());
        let (field, mut message) = refused(field, text, &allowed);
        if let Some((title, year)) = plausible(text) {
            message += &format!("; as {title} it would be in {year}");
        }
        (field, message)
    }

    fn title(self) -> String {
        match self {
            Calendar::Unix(unit) => format!("{} since 1970", unit.name()),
            Calendar::FileTime => "100 ns since 1601".to_owned(),
            Calendar::Text => "a date such as 2026-01-31 12:00:00.5".to_owned(),
        }
    }
}

/// Returns the calendar in which `text` is plausible, and the year. The ranges do not overlap.
pub(crate) fn plausible(text: &[u8]) -> Option<(String, u64)> {
    let calendars = TimeUnit::ALL.into_iter().map(Calendar::Unix).chain([Calendar::FileTime]);
    /// Mean length of a year in s, accurate enough for a message.
    const S_PER_YEAR: u64 = 31_556_952;
    calendars
        .filter(|&calendar| {
            calendar != Calendar::Unix(TimeUnit::Ticks) && calendar != Calendar::Unix(TimeUnit::Picoseconds)
        })
        .find_map(|calendar| Some((calendar.title(), 1970 + calendar.date_ns(text)? / NS_PER_S / S_PER_YEAR)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_read_the_same_time() {
        for (unit, text) in [
            (TimeUnit::Seconds, "1.5"),
            (TimeUnit::Milliseconds, "1500.0"),
            (TimeUnit::Microseconds, "1500000"),
            (TimeUnit::Ticks, "15000000"),
            (TimeUnit::Nanoseconds, "1500000000"),
            (TimeUnit::Picoseconds, "1499999999999"),
        ] {
            assert_eq!(unit.ns(text.as_bytes()), Some(1_500_000_000), "{unit:?}");
            assert_eq!(TimeUnit::from_name(unit.name()), Some(unit));
            assert_eq!(unit.ns(b"1e3"), None);
        }
        assert_eq!(TimeUnit::Nanoseconds.ns(b"9223372036854775807"), Some(i64::MAX as u64));
        assert_eq!(TimeUnit::Nanoseconds.ns(b"9223372036854775808"), None);
        assert_eq!(TimeUnit::Picoseconds.ns(b"18446744073709551615"), None);
    }

    #[test]
    fn dates_as_text_are_those_of_their_zone() {
        let noon_ns = 1_700_049_600_500_000_000;
        for text in [
            "2023-11-15 12:00:00.5",
            "2023-11-15T12:00:00.500000000Z",
            "2023/11/15 12:00:00,5 UTC",
            "2023-11-15 13:00:00.5+01:00",
            "2023-11-15T13:00:00.5+0100",
            "2023-11-15 07:00:00.5 -05",
        ] {
            assert_eq!(Calendar::Text.date_ns(text.as_bytes()), Some(noon_ns), "{text}");
        }
        for text in [
            "2023-11-15",
            "2023-13-15 12:00:00",
            "2023-11-15 12:00",
            "2023-11-15 12:00:00 CET",
            "1960-01-01 00:00:00",
            "",
            "x",
        ] {
            assert_eq!(Calendar::Text.date_ns(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn steps_follow_the_digits() {
        assert_eq!(TimeUnit::Seconds.step_ns(0), 1_000_000_000);
        assert_eq!(TimeUnit::Seconds.step_ns(6), 1_000);
        assert_eq!(TimeUnit::Milliseconds.step_ns(9), 1);
        assert_eq!(TimeUnit::Picoseconds.step_ns(0), 1);
    }

    #[test]
    fn dates_are_of_our_age() {
        let ticks = Calendar::FileTime;
        assert_eq!(ticks.date_ns(b"128166385295514663"), Some(1_172_164_929_551_466_300));
        assert_eq!(ticks.date_ns(b"116444736000000000"), None);
        let seconds = Calendar::Unix(TimeUnit::Seconds);
        assert_eq!(seconds.date_ns(b"315532800"), Some(315_532_800_000_000_000));
        assert_eq!(seconds.date_ns(b"315532799.9"), None);
        assert_eq!(seconds.date_ns(b"4102444799.9"), Some(4_102_444_799_900_000_000));
        assert_eq!(seconds.date_ns(b"4102444800"), None);
    }

    #[test]
    fn a_wrong_unit_is_named_with_the_right_one() {
        let (field, message) = Calendar::Unix(TimeUnit::Seconds).refused("time", b"1538323200000");
        assert_eq!(field, "time");
        assert_eq!(
            message,
            "must be s since 1970, between 1980 and 2099, not `1538323200000`; as ms since 1970 it would be in 2018"
        );
        let (_, message) = Calendar::Unix(TimeUnit::Microseconds).refused("time", b"128166385295514663");
        assert!(message.ends_with("as 100 ns since 1601 it would be in 2007"), "{message}");
        let (_, message) = Calendar::FileTime.refused("time", b"17");
        assert!(message.ends_with("not `17`"), "{message}");
    }
}
