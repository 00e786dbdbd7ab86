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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_numbered_and_named_in_one_order() {
        let mut kinds = Kinds::default();
        for kind in 0..4u64 {
            kinds.of(kind as usize).count = kind + 1;
        }
        let counts = kinds.all().map(|(name, kind)| (name, kind.count));
        assert_eq!(counts, [("read", 1), ("write", 2), ("trim", 3), ("flush", 4)]);
    }

    #[test]
    fn response_begins_at_the_intended_time_and_service_at_the_issue() {
        let mut kinds = Kinds::default();
        kinds.record(&Finished { kind: 1, length_bytes: 4096, intended_ns: 100, started_ns: 130, at_ns: 150 });
        // Issued early: the service begins at the intended time.
        kinds.record(&Finished { kind: 1, length_bytes: 512, intended_ns: 100, started_ns: 70, at_ns: 160 });
        let KindResult { count, bytes, errors, response, service, .. } = &kinds.write;
        assert_eq!((*count, *bytes, *errors), (2, 4608, 0));
        assert_eq!((response.min_ns(), response.max_ns(), response.count()), (50, 60, 2));
        assert_eq!((service.min_ns(), service.max_ns(), service.count()), (20, 60, 2));
    }

    #[test]
    fn merged_kinds_hold_the_requests_of_both() {
        let of = |kind: usize, at_ns: u64| {
            let mut kinds = Kinds::default();
            kinds.record(&Finished { kind, length_bytes: 4096, intended_ns: 0, started_ns: 5, at_ns });
            let it = kinds.of(kind);
            it.errors = 3;
            it.handing_over.get_or_insert_default().record(2);
            kinds
        };
        let mut both = of(0, 10);
        both.merge(&of(0, 20));
        both.merge(&of(3, 30));
        both.merge(&Kinds::default());
        let read = &both.read;
        assert_eq!((read.count, read.bytes, read.errors), (2, 8192, 6));
        assert_eq!((read.response.count(), read.response.sum_ns(), read.service.sum_ns()), (2, 30, 20));
        assert_eq!(read.handing_over.as_ref().map(|it| it.count()), Some(2));
        assert_eq!((both.flush.count, both.flush.response.max_ns(), both.flush.service.max_ns()), (1, 30, 25));
        assert_eq!((both.write.count, &both.write.handing_over), (0, &None));
    }

    #[test]
    fn figures_of_a_stream_are_facts() {
        let stream = StreamResult::new("log".to_owned(), Kinds::default(), vec![("transactions/s".to_owned(), 2.5)]);
        assert_eq!(stream.facts, [Fact { name: "transactions/s".to_owned(), value: 2.5 }]);
        assert_eq!(stream.name, "log");
    }
}
