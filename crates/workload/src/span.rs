//! [`Span`]: parts of a system, as users write them.

use crate::quantity;

/// The part of a system that a workload may touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// First byte.
    pub start_bytes: u64,
    /// Length in bytes.
    pub length_bytes: u64,
}

impl Span {
    /// Parses a part of a system of `capacity_bytes`: `36.7GB` (the first), `10GB..20GB` or `0%..50%`, with ends
    /// rounded down to whole sectors.
    ///
    /// # Errors
    /// One line, if the text is no range, or the range is empty or exceeds the system.
    pub fn parse(text: &str, capacity_bytes: u64, sector_bytes: u32) -> Result<Span, String> {
        debug_assert!(sector_bytes > 0, "sectors hold something");
        let place = |end: &str| -> Result<Option<u64>, String> {
            let bytes = match end.strip_suffix('%') {
                Some(share) => {
                    let share = share.trim_end();
                    let percent = share.trim_start().parse::<f64>().ok().filter(|percent| percent.is_finite());
                    let percent = percent.ok_or_else(|| format!("{text}: '{share}' is not a number"))?;
                    if percent < 0.0 {
                        return Ok(None);
                    }
                    (percent / 100.0 * capacity_bytes as f64) as u64
                }
                None => quantity::parse_bytes(end).map_err(|error| format!("{text}: {error}"))?,
            };
            Ok(Some(bytes / u64::from(sector_bytes) * u64::from(sector_bytes)))
        };
        let (start, end) = match text.split_once("..") {
            Some((first, last)) => (place(first)?, place(last)?),
            None => (Some(0), place(text)?),
        };
        let empty = || format!("{text}: the range is empty; write 36.7GB, 10GB..20GB or 0%..50%");
        let (start, end) = start.zip(end).filter(|(start, end)| start < end).ok_or_else(empty)?;
        if end > capacity_bytes {
            let holds = quantity::format_bytes(capacity_bytes);
            return Err(format!("{text}: the range ends after the system's capacity, {holds}"));
        }
        Ok(Span { start_bytes: start, length_bytes: end - start })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_sizes_or_shares_in_whole_sectors() {
        let parsed = |text| Span::parse(text, 1_000_000, 512).map(|span| (span.start_bytes, span.length_bytes));
        assert_eq!(parsed("10KiB"), Ok((0, 10_240)));
        assert_eq!(parsed("1000B..3000B"), Ok((512, 2_560 - 512)));
        assert_eq!(parsed("25%..50%"), Ok((249_856, 499_712 - 249_856)));
        assert_eq!(parsed("0%..100%"), Ok((0, 999_936)));
        assert_eq!(parsed("1KiB..0.5 %"), Ok((1024, 4608 - 1024)));
    }

    #[test]
    fn what_is_no_range_is_refused() {
        let error_of = |text| Span::parse(text, 1_000_000, 512).unwrap_err();
        for empty in ["20KB..10KB", "0%", "-5%..50%", "0B..511B", "5%..5%"] {
            assert_eq!(error_of(empty), format!("{empty}: the range is empty; write 36.7GB, 10GB..20GB or 0%..50%"));
        }
        assert_eq!(error_of("2MB"), "2MB: the range ends after the system's capacity, 1MB");
        assert_eq!(error_of("half%"), "half%: 'half' is not a number");
        assert!(error_of("10KB..much").starts_with("10KB..much: "), "{}", error_of("10KB..much"));
    }
}
