//! [`Sequence`]: how requests follow each other on a device: runs, streams, seeks.

use serde::{Deserialize, Serialize};

use super::heat::Spread;
use super::histogram::{Bin, Powers};
use super::mix::Sizes;
use crate::meta::AddressSpace;
use crate::record::Record;

/// Number of concurrent streams that are followed per device.
pub const STREAMS: usize = 32;

/// Runs of requests, each of which starts where an earlier one ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RunReport {
    /// Share of requests that continue a run, of those that could.
    pub share: Option<f64>,
    /// Number of runs, of one request or more.
    pub runs: u64,
    /// Mean requests of a run.
    pub mean_requests: Option<f64>,
    /// Mean bytes of a run.
    pub mean_bytes: Option<f64>,
    /// Runs by number of requests.
    pub requests: Vec<Bin>,
    /// Runs by bytes.
    pub bytes: Vec<Bin>,
}

/// Sequentiality of requests that transfer data, per device.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SequenceReport {
    /// Runs in which each request starts where the previous one ended.
    pub strict: RunReport,
    /// Runs in which each request continues one of the last 32 streams, with others in between.
    pub streams: RunReport,
    /// Mean number of streams with two requests or more among the last 32.
    pub mean_concurrent_streams: Option<f64>,
    /// Largest number of such streams.
    pub max_concurrent_streams: u64,
    /// Mean distance from the end of a request to the start of the next, in either direction, in bytes.
    pub mean_seek_bytes: Option<f64>,
    /// Forward seeks by distance; those of 0 are sequential.
    pub forward_seeks_bytes: Vec<Bin>,
    /// Backward seeks by distance.
    pub backward_seeks_bytes: Vec<Bin>,
}

impl SequenceReport {
    /// Removes figures that are meaningless for offsets of this kind.
    pub(crate) fn within(self, space: AddressSpace) -> SequenceReport {
        match space {
            AddressSpace::Device => self,
            AddressSpace::File => {
                let (forward_seeks_bytes, backward_seeks_bytes) = (Vec::new(), Vec::new());
                SequenceReport { mean_seek_bytes: None, forward_seeks_bytes, backward_seeks_bytes, ..self }
            }
            AddressSpace::Object => SequenceReport::default(),
        }
    }
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Runs {
    continued: u64,
    possible: u64,
    runs: u64,
    run_bytes: u128,
    requests: Powers,
    bytes: Powers,
}

impl Runs {
    fn end(&mut self, run: &Stream) {
        self.runs += 1;
        self.run_bytes += u128::from(run.bytes);
        self.requests.add(run.requests);
        self.bytes.add(run.bytes);
    }

    fn merge(&mut self, other: &Runs) {
        self.continued += other.continued;
        self.possible += other.possible;
        self.runs += other.runs;
        self.run_bytes += other.run_bytes;
        self.requests.merge(&other.requests);
        self.bytes.merge(&other.bytes);
    }

    fn report(&self) -> RunReport {
        let over = |sum: f64, count: u64| (count > 0).then(|| sum / count as f64);
        RunReport {
            share: over(self.continued as f64, self.possible),
            runs: self.runs,
            mean_requests: over((self.continued + self.runs) as f64, self.runs),
            mean_bytes: over(self.run_bytes as f64, self.runs),
            requests: self.requests.bins(),
            bytes: self.bytes.bins(),
        }
    }
}

/// Not the number of an [`Opening`].
const NONE: u8 = u8::MAX;

/// A run in progress.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Stream {
    end_bytes: u64,
    requests: u64,
    bytes: u64,
    /// Number of the [`Opening`] with which it began, or [`NONE`].
    opening: u8,
}

impl Stream {
    fn begin(record: &Record) -> Stream {
        Stream { end_bytes: record.end_bytes(), requests: 1, bytes: u64::from(record.length_bytes), opening: NONE }
    }

    /// Makes it the continuation of a run of an earlier part of the trace.
    fn continue_from(&mut self, earlier: &Stream) {
        self.requests += earlier.requests;
        self.bytes += earlier.bytes;
    }

    fn is_long(&self) -> bool {
        self.requests > 1
    }

    fn go_on(&mut self, record: &Record) {
        self.end_bytes = record.end_bytes();
        self.requests += 1;
        self.bytes += u64::from(record.length_bytes);
    }
}

/// Counters of one device, or of several together.
#[derive(Clone, Default, Serialize, Deserialize)]
struct Counts {
    strict: Runs,
    streams: Runs,
    concurrent: u64,
    concurrent_max: u64,
    seeks: u64,
    seek_bytes: u128,
    forward: Powers,
    backward: Powers,
}

/// Whether a request continues a stream of its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placement {
    Sequential,
    Random,
    /// Depends on an earlier part of the trace.
    Open,
}

/// The first request of one of the first [`STREAMS`] streams of a later part: only these can continue a stream of an
/// earlier part. Streams used here are more recent than all others, and the fate of the older ones does not affect
/// them, so everything else is known without them.
#[derive(Clone, Serialize, Deserialize)]
struct Opening {
    record: Record,
    /// The stream when it ended, if it did.
    left: Option<Stream>,
}

/// A period with the same openings, of which the same streams had one request.
#[derive(Clone, Serialize, Deserialize)]
struct Span {
    openings: u8,
    singles: u32,
    requests: u64,
    /// Largest number of streams of two requests or more.
    long_max: u64,
}

/// Data at the start of a later part that depend on the part before.
#[derive(Clone, Default, Serialize, Deserialize)]
struct Seam {
    /// The run that began with the first request, once it is over.
    first_run: Option<Stream>,
    openings: Vec<Opening>,
    /// Openings whose streams have one request.
    singles: u32,
    /// At most 65: openings begin and end.
    spans: Vec<Span>,
}

impl Seam {
    fn count(&mut self, long: u64) {
        let (openings, singles) = (self.openings.len() as u8, self.singles);
        match self.spans.last_mut() {
            Some(span) if (span.openings, span.singles) == (openings, singles) => {
                span.requests += 1;
                span.long_max = span.long_max.max(long);
            }
            _ => self.spans.push(Span { openings, singles, requests: 1, long_max: long }),
        }
    }
}

/// The requests of one device in order.
#[derive(Serialize, Deserialize)]
pub(crate) struct Sequence {
    counts: Counts,
    last: Option<Stream>,
    /// Most recently used first.
    recent: Vec<Stream>,
    /// Number of streams of two requests or more.
    long: u64,
    /// Open start, if this is a later part of a trace.
    seam: Option<Box<Seam>>,
}

impl Sequence {
    /// The sequence of a trace, or of a later part of one.
    pub(crate) fn new(is_later: bool) -> Sequence {
        let seam = is_later.then(Box::default);
        Sequence { counts: Counts::default(), last: None, recent: Vec::new(), long: 0, seam }
    }

    /// Adds a request that transfers data.
    #[inline]
    pub(crate) fn add(&mut self, record: &Record) -> Placement {
        self.follow_last(record);
        let stream_index = self.recent.iter().position(|stream| stream.end_bytes == record.offset_bytes);
        self.counts.streams.possible += u64::from(!self.recent.is_empty());
        let placement = match stream_index {
            Some(index) => {
                self.go_on(index, record);
                Placement::Sequential
            }
            None => self.begin(record),
        };
        self.counts.concurrent += self.long;
        match &mut self.seam {
            Some(seam) => seam.count(self.long),
            None => self.counts.concurrent_max = self.counts.concurrent_max.max(self.long),
        }
        placement
    }

    #[inline]
    fn go_on(&mut self, index: usize, record: &Record) {
        self.counts.streams.continued += 1;
        self.recent[..=index].rotate_right(1);
        let stream = &mut self.recent[0];
        self.long += u64::from(!stream.is_long());
        if let Some(seam) = self.seam.as_mut().filter(|_| stream.opening != NONE) {
            seam.singles &= !(1 << stream.opening);
        }
        stream.go_on(record);
    }

    #[inline]
    fn begin(&mut self, record: &Record) -> Placement {
        let mut stream = Stream::begin(record);
        let is_full = self.recent.len() == STREAMS;
        if is_full {
            self.leave_oldest();
        }
        let open = self.seam.as_mut().filter(|_| !is_full);
        let placement = if open.is_some() { Placement::Open } else { Placement::Random };
        if let Some(seam) = open {
            stream.opening = seam.openings.len() as u8;
            seam.singles |= 1 << stream.opening;
            seam.openings.push(Opening { record: *record, left: None });
        }
        self.recent.insert(0, stream);
        placement
    }

    fn leave_oldest(&mut self) {
        let Some(oldest) = self.recent.pop() else { return };
        self.long -= u64::from(oldest.is_long());
        match self.seam.as_mut().filter(|_| oldest.opening != NONE) {
            Some(seam) => {
                seam.singles &= !(1 << oldest.opening);
                seam.openings[usize::from(oldest.opening)].left = Some(oldest);
            }
            None => self.counts.streams.end(&oldest),
        }
    }

    #[inline]
    fn follow_last(&mut self, record: &Record) {
        let Some(last) = &mut self.last else {
            self.last = Some(Stream::begin(record));
            return;
        };
        if self.counts.seek(last.end_bytes, record.offset_bytes) {
            last.go_on(record);
        } else {
            let over = std::mem::replace(last, Stream::begin(record));
            match self.seam.as_mut().filter(|seam| seam.first_run.is_none()) {
                Some(seam) => seam.first_run = Some(over),
                None => self.counts.strict.end(&over),
            }
        }
    }

    /// Appends a later part of the same device. Requests for which that part did not know whether they continue a
    /// stream are now counted in `sizes` and `spread`.
    pub(crate) fn merge(&mut self, later: Sequence, sizes: &mut Sizes, spread: &mut Spread) {
        let (Some(mut seam), Some(last)) = (later.seam, later.last) else { return };
        self.counts.merge(&later.counts);
        self.join_runs(seam.openings[0].record.offset_bytes, seam.first_run, last);

        self.counts.streams.possible += u64::from(!self.recent.is_empty());
        let mut before = std::mem::take(&mut self.recent);
        let long = |streams: &[Stream]| streams.iter().filter(|stream| stream.is_long()).count() as u64;
        let mut long_before = vec![long(&before)];
        let mut continued = [None; STREAMS];
        for (index, opening) in seam.openings.iter().enumerate() {
            let stream_index = before.iter().position(|stream| stream.end_bytes == opening.record.offset_bytes);
            if let Some(at) = stream_index {
                continued[index] = Some(before.remove(at));
                self.counts.streams.continued += 1;
            } else {
                spread.add(opening.record.offset_bytes);
                if before.len() + index == STREAMS {
                    before.pop().iter().for_each(|oldest| self.counts.streams.end(oldest));
                }
            }
            sizes.add(&opening.record, stream_index.is_some());
            long_before.push(long(&before));
        }
        for (opening, earlier) in seam.openings.iter_mut().zip(&continued) {
            if let Some(left) = &mut opening.left {
                earlier.iter().for_each(|earlier| left.continue_from(earlier));
                self.counts.streams.end(left);
            }
        }
        self.recent = later.recent;
        for stream in self.recent.iter_mut().filter(|stream| stream.opening != NONE) {
            let earlier = continued[usize::from(std::mem::replace(&mut stream.opening, NONE))];
            earlier.iter().for_each(|earlier| stream.continue_from(earlier));
        }
        self.recent.append(&mut before);
        self.long = long(&self.recent);

        let continued = continued.iter().enumerate().filter(|(_, earlier)| earlier.is_some());
        let continued: u32 = continued.map(|(index, _)| 1 << index).sum();
        for span in &seam.spans {
            let more = long_before[usize::from(span.openings)] + u64::from((span.singles & continued).count_ones());
            self.counts.concurrent += span.requests * more;
            self.counts.concurrent_max = self.counts.concurrent_max.max(span.long_max + more);
        }
    }

    /// Joins the current run here with the first of a later part.
    fn join_runs(&mut self, offset_bytes: u64, first_run: Option<Stream>, last: Stream) {
        let mut first = first_run.unwrap_or(last);
        if let Some(before) = self.last {
            if self.counts.seek(before.end_bytes, offset_bytes) {
                first.continue_from(&before);
            } else {
                self.counts.strict.end(&before);
            }
        }
        if first_run.is_some() {
            self.counts.strict.end(&first);
            self.last = Some(last);
        } else {
            self.last = Some(first);
        }
    }

    /// Ends current runs, and returns the report of one device.
    pub(crate) fn finish(&mut self) -> SequenceReport {
        if let Some(last) = self.last.take() {
            self.counts.strict.end(&last);
        }
        for stream in self.recent.drain(..) {
            self.counts.streams.end(&stream);
        }
        self.counts.report()
    }

    /// Report of all devices together, each of which is finished.
    pub(crate) fn together<'a>(devices: impl Iterator<Item = &'a Sequence>) -> SequenceReport {
        let mut all = Counts::default();
        devices.for_each(|device| all.merge(&device.counts));
        all.report()
    }
}

impl Counts {
    /// Adds the seek from the end of a request to the start of the next; returns whether that continues its run.
    #[inline]
    fn seek(&mut self, end_bytes: u64, offset_bytes: u64) -> bool {
        let distance = offset_bytes.abs_diff(end_bytes);
        self.strict.possible += 1;
        self.strict.continued += u64::from(distance == 0);
        self.seeks += 1;
        self.seek_bytes += u128::from(distance);
        if offset_bytes >= end_bytes {
            self.forward.add(distance);
        } else {
            self.backward.add(distance);
        }
        distance == 0
    }

    fn merge(&mut self, other: &Counts) {
        self.strict.merge(&other.strict);
        self.streams.merge(&other.streams);
        self.concurrent += other.concurrent;
        self.concurrent_max = self.concurrent_max.max(other.concurrent_max);
        self.seeks += other.seeks;
        self.seek_bytes += other.seek_bytes;
        self.forward.merge(&other.forward);
        self.backward.merge(&other.backward);
    }

    fn report(&self) -> SequenceReport {
        let requests = self.streams.continued + self.streams.runs;
        SequenceReport {
            strict: self.strict.report(),
            streams: self.streams.report(),
            mean_concurrent_streams: (requests > 0).then(|| self.concurrent as f64 / requests as f64),
            max_concurrent_streams: self.concurrent_max,
            mean_seek_bytes: (self.seeks > 0).then(|| self.seek_bytes as f64 / self.seeks as f64),
            forward_seeks_bytes: self.forward.bins(),
            backward_seeks_bytes: self.backward.bins(),
        }
    }
}
