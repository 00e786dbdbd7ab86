//! [`Filter`]: the requests that a fault concerns, and errors in the keys that select them.

use headstack_workload::{DurationNs, Kind, Request, Span};

/// An invalid key of a fault, with an error message.
pub(crate) type Complaint = (&'static str, String);

/// The requests that a fault concerns.
#[derive(Clone, Debug)]
pub(crate) struct Filter {
    /// Whether the fault concerns each kind, indexed by `Kind as usize`.
    kinds: [bool; 4],
    /// Concerned spans; all addresses if empty.
    pub spans: Vec<Span>,
}

impl Filter {
    /// Creates a filter of kinds, indexed by `Kind as usize`, and spans.
    pub fn new(kinds: [bool; 4], spans: Vec<Span>) -> Filter {
        Filter { kinds, spans }
    }

    /// Whether the filter matches a request. A flush has no address, so a filter with ranges does not match it.
    pub fn matches(&self, request: &Request) -> bool {
        let start = request.offset_bytes;
        let end = start + u64::from(request.length_bytes);
        self.kinds[request.kind as usize]
            && (self.spans.is_empty()
                || (request.kind != Kind::Flush && self.spans.iter().any(|span| overlaps(span, start, end))))
    }

    /// Whether the filter includes any byte of a request, regardless of kind.
    pub fn touches(&self, request: &Request) -> bool {
        let (start, end) = (request.offset_bytes, request.offset_bytes + u64::from(request.length_bytes));
        self.spans.is_empty() || self.spans.iter().any(|span| overlaps(span, start, end))
    }

    /// Whether the ranges of the filter contain a byte.
    pub fn holds(&self, at_bytes: u64) -> bool {
        self.spans.is_empty() || self.spans.iter().any(|span| overlaps(span, at_bytes, at_bytes + 1))
    }
}

fn overlaps(span: &Span, start: u64, end: u64) -> bool {
    start < span.start_bytes + span.length_bytes && span.start_bytes < end
}

/// Converts a percentage to a share of requests; the default is all requests.
///
/// # Errors
/// If the percentage is out of range.
pub(super) fn share(percent: Option<f64>) -> Result<f64, Complaint> {
    let percent = percent.unwrap_or(100.0);
    if percent > 0.0 && percent <= 100.0 {
        Ok(percent / 100.0)
    } else {
        Err(("percent", format!("{percent} is out of range; must be above 0 and up to 100 (percent)")))
    }
}

/// Returns a time in ns, which must be above 0.
///
/// # Errors
/// If the time is 0 or negative.
pub(super) fn positive(key: &'static str, time: DurationNs) -> Result<u64, Complaint> {
    u64::try_from(time.0)
        .ok()
        .filter(|&ns| ns > 0)
        .ok_or_else(|| (key, format!("{time} is out of range; must be more than 0ns")))
}
