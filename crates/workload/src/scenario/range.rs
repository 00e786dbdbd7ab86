//! [`Range`]: the part of a LUN that a stream uses.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::access::Complaint;
use crate::quantity::{Bytes, parse_bytes};
use crate::span::Span;

/// A range of a LUN, written as two marks, for example `["0%", "50%"]` or `["0B", "180GB"]`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "[Mark; 2]", into = "[Mark; 2]")]
pub struct Range {
    /// Start of the range.
    pub from: Mark,
    /// End of the range.
    pub to: Mark,
}

impl From<[Mark; 2]> for Range {
    fn from([from, to]: [Mark; 2]) -> Range {
        Range { from, to }
    }
}

impl From<Range> for [Mark; 2] {
    fn from(range: Range) -> [Mark; 2] {
        [range.from, range.to]
    }
}

/// A position in a LUN.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Mark {
    /// Percentage of the LUN's size.
    Percent(f64),
    /// Number of bytes from the LUN's start.
    Bytes(u64),
}

impl TryFrom<String> for Mark {
    type Error = String;

    fn try_from(text: String) -> Result<Mark, String> {
        let Some(number) = text.strip_suffix('%') else {
            return parse_bytes(&text).map(Mark::Bytes).map_err(|error| format!("{error}; or 0% to 100%"));
        };
        match number.trim().parse() {
            Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(Mark::Percent(percent)),
            _ => Err(format!("{text:?} is not an offset in a LUN; use \"0%\" to \"100%\" or a size")),
        }
    }
}

impl From<Mark> for String {
    fn from(mark: Mark) -> String {
        mark.to_string()
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mark::Percent(percent) => write!(f, "{percent}%"),
            Mark::Bytes(bytes) => Bytes(*bytes).fmt(f),
        }
    }
}

impl Range {
    /// Checks everything that does not depend on the LUN.
    pub(crate) fn validate(&self) -> Result<(), Complaint> {
        let is_empty = match (self.from, self.to) {
            (Mark::Percent(from), Mark::Percent(to)) => from >= to,
            (Mark::Bytes(from), Mark::Bytes(to)) => from >= to,
            (_, Mark::Percent(to)) => to == 0.0,
            (_, Mark::Bytes(to)) => to == 0,
        };
        if is_empty { Err(self.empty()) } else { Ok(()) }
    }

    fn empty(&self) -> Complaint {
        let message = format!("the range ends at {}, which is not above its start at {}", self.to, self.from);
        ("range".to_owned(), message)
    }

    /// Returns the range's part of `lun`, rounded to whole sectors.
    fn within(&self, lun: Span, sector_bytes: u32) -> Result<Span, Complaint> {
        let offset_bytes = |mark: Mark| {
            let bytes = match mark {
                Mark::Percent(percent) => (lun.length_bytes as f64 * (percent / 100.0)) as u64,
                Mark::Bytes(bytes) => bytes,
            };
            bytes / u64::from(sector_bytes) * u64::from(sector_bytes)
        };
        let (from_bytes, to_bytes) = (offset_bytes(self.from), offset_bytes(self.to));
        if to_bytes > lun.length_bytes {
            let message = format!("the range ends at {}; the LUN holds {}", self.to, Bytes(lun.length_bytes));
            return Err(("range".to_owned(), message));
        }
        if from_bytes >= to_bytes {
            return Err(self.empty());
        }
        Ok(Span { start_bytes: lun.start_bytes + from_bytes, length_bytes: to_bytes - from_bytes })
    }
}

/// Checks the LUNs of a system, which must be consecutive in its address space.
pub(crate) fn check_luns(luns: &[(String, Span)], sector_bytes: u32) -> Result<(), Complaint> {
    let error = |message: String| Err(("luns".to_owned(), message));
    if luns.is_empty() || sector_bytes == 0 {
        return error("the system has no LUN or no sectors".to_owned());
    }
    let mut next_bytes = luns[0].1.start_bytes;
    for (name, span) in luns {
        let sectors = span.start_bytes.is_multiple_of(u64::from(sector_bytes))
            && span.length_bytes.is_multiple_of(u64::from(sector_bytes));
        if span.start_bytes != next_bytes || !sectors || span.length_bytes == 0 {
            return error(format!("{name}: LUNs must be whole sectors, one after another"));
        }
        next_bytes = match span.start_bytes.checked_add(span.length_bytes) {
            Some(end_bytes) if end_bytes <= i64::MAX as u64 => end_bytes,
            _ => return error(format!("{name}: the end is above 8 EiB")),
        };
    }
    Ok(())
}

/// Returns the part of the system that a stream with this `lun` and `range` uses.
pub(crate) fn resolve(
    lun: Option<&str>,
    range: Option<Range>,
    luns: &[(String, Span)],
    sector_bytes: u32,
) -> Result<Span, Complaint> {
    let span = match lun {
        None => {
            let start_bytes = luns[0].1.start_bytes;
            Span { start_bytes, length_bytes: luns.iter().map(|(_, span)| span.length_bytes).sum() }
        }
        Some(wanted) => match luns.iter().find(|(name, _)| name == wanted) {
            Some((_, span)) => *span,
            None => {
                let names: Vec<&str> = luns.iter().map(|(name, _)| name.as_str()).collect();
                let message = format!(
                    "the system has no LUN {wanted:?}; allowed: {}, or omit the key for the whole system",
                    names.join(", ")
                );
                return Err(("lun".to_owned(), message));
            }
        },
    };
    match range {
        None => Ok(span),
        Some(range) => range.within(span, sector_bytes),
    }
}

/// Divides `span` into `count` equal parts of whole sectors.
pub(crate) fn parts(span: Span, count: u32, sector_bytes: u32) -> Vec<Span> {
    let length_bytes = span.length_bytes / u64::from(count) / u64::from(sector_bytes) * u64::from(sector_bytes);
    (0..u64::from(count))
        .map(|index| Span { start_bytes: span.start_bytes + index * length_bytes, length_bytes })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LUN: Span = Span { start_bytes: 10_240, length_bytes: 10_240 };

    fn within(from: Mark, to: Mark) -> Result<(u64, u64), String> {
        let span = Range { from, to }.within(LUN, 512);
        span.map(|span| (span.start_bytes, span.length_bytes)).map_err(|(_, message)| message)
    }

    #[test]
    fn ranges_are_whole_sectors_of_their_lun() {
        assert_eq!(within(Mark::Percent(0.0), Mark::Percent(100.0)), Ok((10_240, 10_240)));
        assert_eq!(within(Mark::Percent(12.0), Mark::Percent(50.0)), Ok((11_264, 4_096)));
        assert_eq!(within(Mark::Bytes(1_023), Mark::Bytes(1_535)), Ok((10_752, 512)));
        assert_eq!(within(Mark::Bytes(0), Mark::Bytes(10_240)), Ok((10_240, 10_240)));
        let empty = within(Mark::Bytes(512), Mark::Bytes(1_023)).unwrap_err();
        assert!(empty.contains("is not above its start"), "{empty}");
        let beyond = within(Mark::Bytes(0), Mark::Bytes(10_752)).unwrap_err();
        assert!(beyond.contains("the LUN holds 10KiB"), "{beyond}");
    }

    #[test]
    fn ranges_that_are_empty_whatever_the_lun_are_refused() {
        let is_good = |from, to| Range { from, to }.validate().is_ok();
        assert!(is_good(Mark::Percent(1.0), Mark::Percent(2.0)) && !is_good(Mark::Percent(2.0), Mark::Percent(2.0)));
        assert!(is_good(Mark::Bytes(1), Mark::Bytes(2)) && !is_good(Mark::Bytes(2), Mark::Bytes(2)));
        assert!(is_good(Mark::Percent(1.0), Mark::Bytes(1)) && !is_good(Mark::Percent(1.0), Mark::Bytes(0)));
        assert!(is_good(Mark::Bytes(1), Mark::Percent(1.0)) && !is_good(Mark::Bytes(1), Mark::Percent(0.0)));
        let mark = |text: &str| Mark::try_from(text.to_owned());
        assert_eq!((mark("100%"), mark("4KiB")), (Ok(Mark::Percent(100.0)), Ok(Mark::Bytes(4_096))));
        assert!(mark("101%").is_err() && mark("-1%").is_err() && mark("x").is_err());
    }

    #[test]
    fn luns_are_whole_sectors_one_after_another() {
        let span = |start_bytes, length_bytes| ("lun".to_owned(), Span { start_bytes, length_bytes });
        let is_good = |luns: &[(String, Span)]| check_luns(luns, 512).is_ok();
        assert!(is_good(&[span(512, 1_024), span(1_536, 512)]));
        assert!(!is_good(&[]) && check_luns(&[span(0, 512)], 0).is_err());
        assert!(!is_good(&[span(512, 1_024), span(2_048, 512)]), "a gap");
        assert!(!is_good(&[span(512, 0)]) && !is_good(&[span(100, 512)]) && !is_good(&[span(512, 100)]));
        assert!(is_good(&[span(0, i64::MAX as u64 / 512 * 512)]) && !is_good(&[span(0, 1 << 63)]));
        let (whole, part) = (resolve(None, None, &[span(0, 512), ("b".to_owned(), LUN)], 512), |lun| {
            resolve(Some(lun), None, &[span(0, 512), ("b".to_owned(), LUN)], 512)
        });
        assert_eq!((whole.unwrap().length_bytes, part("b").unwrap()), (10_752, LUN));
        assert!(part("c").unwrap_err().1.contains("allowed: lun, b, or omit the key"));
        assert_eq!(
            parts(LUN, 3, 512).iter().map(|part| part.start_bytes).collect::<Vec<_>>(),
            [10_240, 13_312, 16_384]
        );
        assert!(parts(LUN, 3, 512).iter().all(|part| part.length_bytes == 3_072));
    }
}
