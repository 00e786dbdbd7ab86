//! [`Kinds`]: requests by kind, of a run and over time.

use serde::{Deserialize, Serialize};

use crate::{LatencyHistogram, StoredHistogram};

/// A completed request.
#[derive(Clone, Copy, Debug)]
pub struct Finished {
    /// Index of its kind in [`Kinds`]: read, write, trim, flush.
    pub kind: usize,
    /// Length in bytes.
    pub length_bytes: u32,
    /// Intended time of arrival.
    pub intended_ns: u64,
    /// Time at which the system accepted it.
    pub started_ns: u64,
    /// Time of completion.
    pub at_ns: u64,
}

/// Results of the requests of one kind within the measured time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct KindResult {
    /// Requests that completed without error.
    pub count: u64,
    /// Bytes they moved.
    pub bytes: u64,
    /// Requests that failed: neither in `count` nor in the histograms.
    pub errors: u64,
    /// Completion minus intended arrival.
    pub response: LatencyHistogram,
    /// Completion minus the moment at which the system took the request.
    pub service: LatencyHistogram,
    /// From the decision to issue a request until the system had taken it, where that was timed apart; `service` is then
    /// what followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handing_over: Option<Box<LatencyHistogram>>,
}

/// The kinds of request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Kinds {
    /// Reads.
    pub read: KindResult,
    /// Writes.
    pub write: KindResult,
    /// Trims (discards).
    pub trim: KindResult,
    /// Flushes.
    pub flush: KindResult,
}

impl Kinds {
    /// Returns every kind with its name.
    pub fn all(&self) -> [(&'static str, &KindResult); 4] {
        [("read", &self.read), ("write", &self.write), ("trim", &self.trim), ("flush", &self.flush)]
    }

    /// Returns the kind of an index, in the order of [`all`](Self::all).
    #[inline]
    pub fn of(&mut self, kind: usize) -> &mut KindResult {
        match kind {
            0 => &mut self.read,
            1 => &mut self.write,
            2 => &mut self.trim,
            _ => &mut self.flush,
        }
    }

    /// Records a completed request.
    #[inline]
    pub fn record(&mut self, finished: &Finished) {
        let kind = self.of(finished.kind);
        kind.count += 1;
        kind.bytes += u64::from(finished.length_bytes);
        kind.response.record(finished.at_ns - finished.intended_ns);
        kind.service.record(finished.at_ns - finished.started_ns.max(finished.intended_ns));
    }

    /// Adds everything that `other` holds.
    pub fn merge(&mut self, other: &Kinds) {
        for (index, (_, theirs)) in other.all().into_iter().enumerate() {
            let kind = self.of(index);
            kind.count += theirs.count;
            kind.bytes += theirs.bytes;
            kind.errors += theirs.errors;
            kind.response.merge(&theirs.response);
            kind.service.merge(&theirs.service);
            if let Some(theirs) = &theirs.handing_over {
                kind.handing_over.get_or_insert_default().merge(theirs);
            }
        }
    }
}

/// A stretch of the measured time; requests count where they complete.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Interval {
    /// When it begins.
    pub start_ns: u64,
    /// How long it lasts.
    pub duration_ns: u64,
    /// Requests of all kinds that completed in it without error.
    pub count: u64,
    /// Bytes they moved.
    pub bytes: u64,
    /// Their response times.
    pub response: StoredHistogram,
}

/// Results of one stream of a scenario.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct StreamResult {
    /// Its name in the scenario.
    pub name: String,
    /// Its requests, by kind.
    pub kinds: Kinds,
    /// Figures of its own, such as `frames_dropped` or `completion_s`.
    pub facts: Vec<Fact>,
}

impl StreamResult {
    /// Creates a stream with its figures: name with unit, and value.
    pub fn new(name: String, kinds: Kinds, figures: Vec<(String, f64)>) -> Self {
        let facts = figures.into_iter().map(|(name, value)| Fact { name, value }).collect();
        Self { name, kinds, facts }
    }
}

/// Results of one kind of operation on files and folders, such as `create` or `getattr`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct OperationResult {
    /// Its name.
    pub name: String,
    /// Operations that ended without error.
    pub count: u64,
    /// Operations that failed: neither in `count` nor in the histogram.
    pub errors: u64,
    /// Bytes they moved.
    pub bytes: u64,
    /// End minus the moment at which it was meant to begin.
    pub response: LatencyHistogram,
}

/// A named figure.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Fact {
    /// Its name, with the unit.
    pub name: String,
    /// How much.
    pub value: f64,
}
