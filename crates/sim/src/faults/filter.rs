//! Which requests a fault concerns, and what is wrong with keys that say so.

use headstack_workload::{DurationNs, Kind, Request, Span};

/// What is wrong with a key of a fault.
pub(crate) type Complaint = (&'static str, String);

/// Which requests a fault concerns.
#[derive(Clone, Debug)]
pub(crate) struct Filter {
    /// By `Kind as usize`.
    kinds: [bool; 4],
    /// Where; everywhere if empty.
    pub spans: Vec<Span>,
}

impl Filter {
    /// One of these kinds, by `Kind as usize`, and these places.
    pub fn new(kinds: [bool; 4], spans: Vec<Span>) -> Filter {
        Filter { kinds, spans }
    }

    /// Whether it concerns a request. A flush is everywhere: where ranges are named, it is not meant.
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

    /// Whether a byte lies in its ranges.
    pub fn holds(&self, at_bytes: u64) -> bool {
        self.spans.is_empty() || self.spans.iter().any(|span| overlaps(span, at_bytes, at_bytes + 1))
    }
}

fn overlaps(span: &Span, start: u64, end: u64) -> bool {
    start < span.start_bytes + span.length_bytes && span.start_bytes < end
}

/// A share of the requests; all, where nothing is said.
///
/// # Errors
/// One that is none.
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
