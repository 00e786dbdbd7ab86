//! How requests follow each other on a device: runs, streams, seeks.

use serde::Serialize;

use super::histogram::{Bin, Powers};
use crate::record::Record;

/// Streams that are followed at a time on a device.
pub const STREAMS: usize = 32;

/// Requests of which each starts where one before it ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunReport {
    /// Requests that continue a run, over those that could.
    pub share: Option<f64>,
    /// Runs, of one request or more.
    pub runs: u64,
    /// Mean requests of a run.
    pub mean_requests: Option<f64>,
    /// Mean bytes of a run.
    pub mean_bytes: Option<f64>,
    /// Runs by their requests.
    pub requests: Vec<Bin>,
    /// Runs by their bytes.
    pub bytes: Vec<Bin>,
}

/// How requests that transfer data follow each other, each device by itself.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SequenceReport {
    /// Runs in which each request starts where the one just before it ended.
    pub strict: RunReport,
    /// Runs in which each continues one of the last 32 streams, others between them.
    pub streams: RunReport,
    /// Mean number of streams with two requests or more among the last 32.
    pub mean_concurrent_streams: Option<f64>,
    /// Most of them at a time.
    pub max_concurrent_streams: u64,
    /// Mean distance from the end of a request to the start of the next, either way, in bytes.
    pub mean_seek_bytes: Option<f64>,
    /// Forward seeks by their bytes; those of 0 are sequential.
    pub forward_seeks_bytes: Vec<Bin>,
    /// Backward seeks by their bytes.
    pub backward_seeks_bytes: Vec<Bin>,
}

#[derive(Clone)]
struct Runs {
    continued: u64,
    possible: u64,
    runs: u64,
    run_bytes: f64,
    requests: Powers,
    bytes: Powers,
}

impl Runs {
    fn new() -> Runs {
        Runs { continued: 0, possible: 0, runs: 0, run_bytes: 0.0, requests: Powers::new(), bytes: Powers::new() }
    }

    fn end(&mut self, run: &Stream) {
        self.runs += 1;
        self.run_bytes += run.bytes as f64;
        self.requests.add(run.requests);
        self.bytes.add(run.bytes);
    }

    fn join(&mut self, other: &Runs) {
        self.continued += other.continued;
        self.possible += other.possible;
        self.runs += other.runs;
        self.run_bytes += other.run_bytes;
        self.requests.join(&other.requests);
        self.bytes.join(&other.bytes);
    }

    fn report(&self) -> RunReport {
        let over = |sum: f64, count: u64| (count > 0).then(|| sum / count as f64);
        RunReport {
            share: over(self.continued as f64, self.possible),
            runs: self.runs,
            mean_requests: over((self.continued + self.runs) as f64, self.runs),
            mean_bytes: over(self.run_bytes, self.runs),
            requests: self.requests.bins(),
            bytes: self.bytes.bins(),
        }
    }
}

/// A run under way.
#[derive(Clone, Copy, Default)]
struct Stream {
    end_bytes: u64,
    requests: u64,
    bytes: u64,
}

impl Stream {
    fn begin(record: &Record) -> Stream {
        Stream { end_bytes: record.end_bytes(), requests: 1, bytes: u64::from(record.length_bytes) }
    }

    fn go_on(&mut self, record: &Record) {
        self.end_bytes = record.end_bytes();
        self.requests += 1;
        self.bytes += u64::from(record.length_bytes);
    }
}

/// What was counted of one device, or of several together.
#[derive(Clone)]
struct Counts {
    strict: Runs,
    streams: Runs,
    concurrent: u64,
    concurrent_max: u64,
    seeks: u64,
    seek_bytes: f64,
    forward: Powers,
    backward: Powers,
}

/// One device's requests in order.
pub(crate) struct Sequence {
    counts: Counts,
    last: Option<Stream>,
    /// The last used first.
    recent: Vec<Stream>,
    /// Those of two requests or more.
    long: u64,
}

impl Sequence {
    pub(crate) fn new() -> Sequence {
        let counts = Counts {
            strict: Runs::new(),
            streams: Runs::new(),
            concurrent: 0,
            concurrent_max: 0,
            seeks: 0,
            seek_bytes: 0.0,
            forward: Powers::new(),
            backward: Powers::new(),
        };
        Sequence { counts, last: None, recent: Vec::with_capacity(STREAMS), long: 0 }
    }

    /// A request that transfers data; whether it continues a recent stream.
    #[inline]
    pub(crate) fn add(&mut self, record: &Record) -> bool {
        self.follow_last(record);
        let found = self.recent.iter().position(|stream| stream.end_bytes == record.offset_bytes);
        self.counts.streams.possible += u64::from(!self.recent.is_empty());
        match found {
            Some(index) => {
                self.counts.streams.continued += 1;
                self.recent[..=index].rotate_right(1);
                self.long += u64::from(self.recent[0].requests == 1);
                self.recent[0].go_on(record);
            }
            None => {
                if self.recent.len() == STREAMS {
                    let oldest = self.recent[STREAMS - 1];
                    self.counts.streams.end(&oldest);
                    self.long -= u64::from(oldest.requests > 1);
                    self.recent.pop();
                }
                self.recent.insert(0, Stream::begin(record));
            }
        }
        self.counts.concurrent += self.long;
        self.counts.concurrent_max = self.counts.concurrent_max.max(self.long);
        found.is_some()
    }

    #[inline]
    fn follow_last(&mut self, record: &Record) {
        let Some(last) = &mut self.last else {
            self.last = Some(Stream::begin(record));
            return;
        };
        let counts = &mut self.counts;
        counts.strict.possible += 1;
        counts.seeks += 1;
        let distance = record.offset_bytes.abs_diff(last.end_bytes);
        counts.seek_bytes += distance as f64;
        if record.offset_bytes >= last.end_bytes {
            counts.forward.add(distance);
        } else {
            counts.backward.add(distance);
        }
        if distance == 0 {
            counts.strict.continued += 1;
            last.go_on(record);
        } else {
            counts.strict.end(last);
            *last = Stream::begin(record);
        }
    }

    /// Ends what is under way, and says what one device was like.
    pub(crate) fn finish(&mut self) -> SequenceReport {
        if let Some(last) = self.last.take() {
            self.counts.strict.end(&last);
        }
        for stream in self.recent.drain(..) {
            self.counts.streams.end(&stream);
        }
        self.counts.report()
    }

    /// All devices together, each of which is finished.
    pub(crate) fn together<'a>(devices: impl Iterator<Item = &'a Sequence>) -> SequenceReport {
        let mut all = Sequence::new().counts;
        for device in devices {
            all.join(&device.counts);
        }
        all.report()
    }
}

impl Counts {
    fn join(&mut self, other: &Counts) {
        self.strict.join(&other.strict);
        self.streams.join(&other.streams);
        self.concurrent += other.concurrent;
        self.concurrent_max = self.concurrent_max.max(other.concurrent_max);
        self.seeks += other.seeks;
        self.seek_bytes += other.seek_bytes;
        self.forward.join(&other.forward);
        self.backward.join(&other.backward);
    }

    fn report(&self) -> SequenceReport {
        let requests = self.streams.continued + self.streams.runs;
        SequenceReport {
            strict: self.strict.report(),
            streams: self.streams.report(),
            mean_concurrent_streams: (requests > 0).then(|| self.concurrent as f64 / requests as f64),
            max_concurrent_streams: self.concurrent_max,
            mean_seek_bytes: (self.seeks > 0).then(|| self.seek_bytes / self.seeks as f64),
            forward_seeks_bytes: self.forward.bins(),
            backward_seeks_bytes: self.backward.bins(),
        }
    }
}
