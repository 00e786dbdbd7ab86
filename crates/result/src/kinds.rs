//! [`Kinds`]: results by kind of request, for a run and over time.

use serde::{Deserialize, Serialize};

use crate::{LatencyHistogram, StoredHistogram};

/// A completed request.
#[derive(Clone, Copy, Debug)]
pub struct Finished {
    /// Index of the request's kind in [`Kinds`]: read, write, trim, flush.
    pub kind: usize,
    /// Length in bytes.
    pub length_bytes: u32,
    /// Intended arrival time, in ns.
    pub intended_ns: u64,
    /// Time at which the system accepted the request, in ns.
    pub started_ns: u64,
    /// Completion time, in ns.
    pub at_ns: u64,
}

/// Results of the requests of one kind during the measured time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct KindResult {
    /// Requests that completed without error.
    pub count: u64,
    /// Bytes transferred by these requests.
    pub bytes: u64,
    /// Requests that failed; they are neither in `count` nor in the histograms.
    pub errors: u64,
    /// Response times: from intended arrival to completion.
    pub latency: LatencyHistogram,
    /// Service times: from acceptance by the system to completion.
    pub service: LatencyHistogram,
    /// Times from the decision to issue a request until the system had accepted it, if measured separately; `service`
    /// then covers only the time after acceptance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handing_over: Option<Box<LatencyHistogram>>,
}

/// Results for each kind of request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Kinds {
    /// Results of reads.
    pub read: KindResult,
    /// Results of writes.
    pub write: KindResult,
    /// Results of trims (discards).
    pub trim: KindResult,
    /// Results of flushes.
    pub flush: KindResult,
}

impl Kinds {
    /// Returns every kind with its name.
    pub fn all(&self) -> [(&'static str, &KindResult); 4] {
        [("read", &self.read), ("write", &self.write), ("trim", &self.trim), ("flush", &self.flush)]
    }

    /// Returns the kind at an index, in the order of [`all`](Self::all).
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
        kind.latency.record(finished.at_ns - finished.intended_ns);
        kind.service.record(finished.at_ns - finished.started_ns.max(finished.intended_ns));
    }

    /// Adds the results of `other`.
    pub fn merge(&mut self, other: &Kinds) {
        for (index, (_, theirs)) in other.all().into_iter().enumerate() {
            let kind = self.of(index);
            kind.count += theirs.count;
            kind.bytes += theirs.bytes;
            kind.errors += theirs.errors;
            kind.latency.merge(&theirs.latency);
            kind.service.merge(&theirs.service);
            if let Some(theirs) = &theirs.handing_over {
                kind.handing_over.get_or_insert_default().merge(theirs);
            }
        }
    }
}

/// An interval of the measured time. Requests count in the interval in which they complete.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Interval {
    /// Start of the interval, in ns.
    pub start_ns: u64,
    /// Length of the interval, in ns.
    pub duration_ns: u64,
    /// Requests of all kinds that completed without error.
    pub count: u64,
    /// Bytes transferred by these requests.
    pub bytes: u64,
    /// Response times of these requests.
    pub latency: StoredHistogram,
}

/// Results of one stream of a scenario.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct StreamResult {
    /// Name of the stream in the scenario.
    pub name: String,
    /// Results of the stream by kind of request.
    pub kinds: Kinds,
    /// Figures specific to the stream, such as `frames_dropped` or `completion_s`.
    pub facts: Vec<Fact>,
}

impl StreamResult {
    /// Creates a stream from its results and its figures (name with unit, and value).
    pub fn new(name: String, kinds: Kinds, figures: Vec<(String, f64)>) -> Self {
        let facts = figures.into_iter().map(|(name, value)| Fact { name, value }).collect();
        Self { name, kinds, facts }
    }
}

/// Results of one kind of operation on files and directories, such as `create` or `getattr`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct OperationResult {
    /// Name of the operation.
    pub name: String,
    /// Operations that completed without error.
    pub count: u64,
    /// Operations that failed; they are neither in `count` nor in the histogram.
    pub errors: u64,
    /// Bytes transferred by these operations.
    pub bytes: u64,
    /// Response times: from the intended start to the end.
    pub latency: LatencyHistogram,
}

/// A named figure.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Fact {
    /// Name of the figure, with its unit.
    pub name: String,
    /// Value of the figure.
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
        let KindResult { count, bytes, errors, latency, service, .. } = &kinds.write;
        assert_eq!((*count, *bytes, *errors), (2, 4608, 0));
        assert_eq!((latency.min_ns(), latency.max_ns(), latency.count()), (50, 60, 2));
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
        assert_eq!((read.latency.count(), read.latency.sum_ns(), read.service.sum_ns()), (2, 30, 20));
        assert_eq!(read.handing_over.as_ref().map(|it| it.count()), Some(2));
        assert_eq!((both.flush.count, both.flush.latency.max_ns(), both.flush.service.max_ns()), (1, 30, 25));
        assert_eq!((both.write.count, &both.write.handing_over), (0, &None));
    }

    #[test]
    fn figures_of_a_stream_are_facts() {
        let stream = StreamResult::new("log".to_owned(), Kinds::default(), vec![("transactions/s".to_owned(), 2.5)]);
        assert_eq!(stream.facts, [Fact { name: "transactions/s".to_owned(), value: 2.5 }]);
        assert_eq!(stream.name, "log");
    }
}
