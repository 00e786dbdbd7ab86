//! [`Places`]: aligned positions where requests may start.

use serde::{Deserialize, Serialize};

use crate::span::Span;

/// Equally spaced positions: `first_bytes + k * step_bytes` for k below `count`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Places {
    /// Offset of the first position in bytes.
    pub first_bytes: u64,
    /// Distance of two positions in bytes, above 0.
    pub step_bytes: u64,
    /// Number of positions, above 0.
    pub count: u64,
}

impl Places {
    /// Returns the positions in `span` at which `length_bytes` fit: every `step_bytes` from the first multiple of
    /// `align_bytes`. Returns `None` if there are none.
    pub(crate) fn within(span: Span, align_bytes: u64, step_bytes: u64, length_bytes: u64) -> Option<Places> {
        let end_bytes = span.start_bytes.checked_add(span.length_bytes)?;
        let first_bytes = span.start_bytes.checked_next_multiple_of(align_bytes)?;
        let room_bytes = end_bytes.checked_sub(first_bytes)?.checked_sub(length_bytes)?;
        Some(Places { first_bytes, step_bytes, count: room_bytes / step_bytes + 1 })
    }

    #[inline]
    pub(crate) fn offset_bytes(&self, index: u64) -> u64 {
        self.first_bytes + index * self.step_bytes
    }
}
