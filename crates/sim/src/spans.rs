//! Arithmetic on spans: intersections and sorting.

use headstack_workload::Span;

/// Returns the intersection of a span with the bytes `[from, to)`.
pub(crate) fn common(span: Span, from: u64, to: u64) -> Option<Span> {
    let (from, to) = (from.max(span.start_bytes), to.min(span.start_bytes + span.length_bytes));
    (from < to).then(|| Span { start_bytes: from, length_bytes: to - from })
}

/// Appends the intersections of ascending spans with the bytes `[from, to)`.
pub(crate) fn common_with_all(spans: &[Span], from: u64, to: u64, into: &mut Vec<Span>) {
    let begin = spans.partition_point(|span| span.start_bytes + span.length_bytes <= from);
    let inside = spans[begin..].iter().take_while(|span| span.start_bytes < to);
    into.extend(inside.filter_map(|&span| common(span, from, to)));
}

/// Sorts the spans from index `first` on, and merges adjacent ones.
pub(crate) fn put_in_order(spans: &mut Vec<Span>, first: usize) {
    spans[first..].sort_unstable_by_key(|span| span.start_bytes);
    let mut kept = first;
    for at in first..spans.len() {
        let span = spans[at];
        if kept > first && span.start_bytes <= spans[kept - 1].start_bytes + spans[kept - 1].length_bytes {
            let end = span.start_bytes + span.length_bytes;
            let last = &mut spans[kept - 1];
            last.length_bytes = last.length_bytes.max(end - last.start_bytes);
        } else {
            spans[kept] = span;
            kept += 1;
        }
    }
    spans.truncate(kept);
}
