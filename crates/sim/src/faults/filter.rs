//! [`Filter`]: the requests that a fault affects.

use headstack_workload::{DurationNs, Kind, Request, Span};

/// A fault's key with its error.
pub(crate) type Complaint = (&'static str, String);

/// Which requests a fault concerns.
#[derive(Clone, Debug)]
pub(crate) struct Filter {
    /// By `Kind as usize`.
    kinds: [bool; 4],
    /// Ranges; everywhere if empty.
    pub spans: Vec<Span>,
}

impl Filter {
    /// Creates a filter for kinds, by `Kind as usize`, and ranges.
    pub fn new(kinds: [bool; 4], spans: Vec<Span>) -> Filter {
        Filter { kinds, spans }
    }

    /// Whether it matches a request. A flush is everywhere: with ranges, it does not match.
    pub fn matches(&self, request: &Request) -> bool {
        let start = request.offset_bytes;
        let end = start + u64::from(request.length_bytes);
        self.kinds[request.kind as usize]
            && (self.spans.is_empty()
                || (request.kind != Kind::Flush && self.spans.iter().any(|span| overlaps(span, start, end))))
    }

    /// Whether it concerns the place of a request, of whichever kind.
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

/// A share of the requests; by default all.
///
/// # Errors
/// For an invalid share.
pub(super) fn share(percent: Option<f64>) -> Result<f64, Complaint> {
    let percent = percent.unwrap_or(100.0);
    if percent > 0.0 && percent <= 100.0 {
        Ok(percent / 100.0)
    } else {
        Err(("percent", format!("{percent} is not a share; more than 0 and up to 100 are allowed")))
    }
}

/// A time that takes any.
///
/// # Errors
/// One that takes none.
pub(super) fn positive(key: &'static str, time: DurationNs) -> Result<u64, Complaint> {
    u64::try_from(time.0).ok().filter(|&ns| ns > 0).ok_or_else(|| (key, format!("{time}: more than 0ns is allowed")))
}
