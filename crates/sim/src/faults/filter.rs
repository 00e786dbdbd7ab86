//! [`Filter`]: which requests a fault concerns, and errors in keys that state it.

use headstack_workload::{DurationNs, Kind, Request, Span};

/// An invalid key of a fault, with a message.
pub(crate) type Complaint = (&'static str, String);

/// Which requests a fault concerns.
#[derive(Clone, Debug)]
pub(crate) struct Filter {
    /// Whether it concerns each kind, by `Kind as usize`.
    kinds: [bool; 4],
    /// Concerned spans; everywhere if empty.
    pub spans: Vec<Span>,
}

impl Filter {
    /// Creates a filter of kinds, by `Kind as usize`, and spans.
    pub fn new(kinds: [bool; 4], spans: Vec<Span>) -> Filter {
        Filter { kinds, spans }
    }

    /// Whether it concerns a request. A flush has no place: a filter with ranges does not match it.
    pub fn matches(&self, request: &Request) -> bool {
        let start = request.offset_bytes;
        let end = start + u64::from(request.length_bytes);
        self.kinds[request.kind as usize]
            && (self.spans.is_empty()
                || (request.kind != Kind::Flush && self.spans.iter().any(|span| overlaps(span, start, end))))
    }

    /// Whether it concerns the place of a request of any kind.
    pub fn touches(&self, request: &Request) -> bool {
        let (start, end) = (request.offset_bytes, request.offset_bytes + u64::from(request.length_bytes));
        self.spans.is_empty() || self.spans.iter().any(|span| overlaps(span, start, end))
    }

    /// Whether a byte is in its ranges.
    pub fn holds(&self, at_bytes: u64) -> bool {
        self.spans.is_empty() || self.spans.iter().any(|span| overlaps(span, at_bytes, at_bytes + 1))
    }
}

fn overlaps(span: &Span, start: u64, end: u64) -> bool {
    start < span.start_bytes + span.length_bytes && span.start_bytes < end
}

/// Converts a percentage to a share of the requests; all by default.
///
/// # Errors
/// A percentage outside the allowed range.
pub(super) fn share(percent: Option<f64>) -> Result<f64, Complaint> {
    let percent = percent.unwrap_or(100.0);
    if percent > 0.0 && percent <= 100.0 {
        Ok(percent / 100.0)
    } else {
        Err(("percent", format!("{percent}; above 0 and up to 100 (percent) is allowed")))
    }
}

/// Returns a time above 0.
///
/// # Errors
/// A time of 0.
pub(super) fn positive(key: &'static str, time: DurationNs) -> Result<u64, Complaint> {
    u64::try_from(time.0).ok().filter(|&ns| ns > 0).ok_or_else(|| (key, format!("{time}: more than 0ns is allowed")))
}
