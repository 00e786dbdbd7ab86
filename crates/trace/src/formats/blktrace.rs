//! Linux' binary block trace: records of blktrace and of the kernel's `blk` tracer, versions 7 and 8, in either byte
//! order.
//!
//! A record is an event: a request is queued, issued, completed. There is a file for each CPU, or one for all of them.

pub(crate) mod decode;
pub(crate) mod events;
pub(crate) mod pairing;
mod places;
mod requests;

use std::io::Read;

use crate::collect::Collector;
use crate::error::TraceError;
use crate::input::{Head, Input};
use crate::meta::Clock;
use decode::Stream;
use events::Event;
use pairing::{Pairing, Stage};

/// Bytes decoded at a time; their events fit the processor's cache.
const CHUNK_BYTES: u64 = 256 << 10;

pub(crate) fn fits(head: Head<'_>) -> bool {
    decode::fits(head)
}

fn describe(out: &mut Collector) {
    out.meta.clock = Clock::Boot;
    out.meta.resolution_ns = 1;
}

/// Block traces in files, merged by time.
pub(crate) struct Blktrace {
    sources: Vec<Source>,
    pairing: Pairing,
}

struct Source {
    input: Input,
    stream: Stream,
    /// Decoded events, the first `taken` of them paired.
    events: Vec<Event>,
    taken: usize,
    is_at_end: bool,
}

impl Blktrace {
    pub(crate) fn new(inputs: Vec<Input>, stage: Option<Stage>, out: &mut Collector) -> Blktrace {
        describe(out);
        let source = |input: Input| Source {
            stream: Stream::new(&input.name),
            input,
            events: Vec::new(),
            taken: 0,
            is_at_end: false,
        };
        Blktrace { sources: inputs.into_iter().map(source).collect(), pairing: Pairing::new(stage, out) }
    }

    /// Reads until the events of one of the files are used up; returns false at the end.
    pub(crate) fn read(&mut self, out: &mut Collector) -> Result<bool, TraceError> {
        for source in &mut self.sources {
            source.fill(&mut self.pairing, out)?;
        }
        if self.sources.iter().all(Source::is_empty) {
            let is_first_end = !self.sources.is_empty();
            self.sources.clear();
            self.pairing.finish(out);
            return Ok(is_first_end);
        }
        while self.take_run(out) {}
        self.pairing.hand_over(out);
        Ok(true)
    }

    /// Takes events of the file with the earliest ones, until another file has earlier ones; returns false if more must
    /// be read first.
    fn take_run(&mut self, out: &mut Collector) -> bool {
        let nexts = self.sources.iter().enumerate().filter_map(|(index, source)| Some((source.next_ns()?, index)));
        let Some((_, first)) = nexts.clone().min() else { return false };
        let until_ns = nexts.filter(|&(_, index)| index != first).min().map_or(u64::MAX, |(at_ns, _)| at_ns);
        let source = &mut self.sources[first];
        for event in source.events[source.taken..].iter().take_while(|event| event.at_ns <= until_ns) {
            self.pairing.event(event, out);
            source.taken += 1;
        }
        !source.is_empty()
    }
}

impl Source {
    fn is_empty(&self) -> bool {
        self.taken == self.events.len()
    }

    /// Time of the next event, if there is one.
    fn next_ns(&self) -> Option<u64> {
        self.events.get(self.taken).map(|event| event.at_ns)
    }

    /// Decodes events if there is none, unless the end is reached.
    fn fill(&mut self, pairing: &mut Pairing, out: &mut Collector) -> Result<(), TraceError> {
        while self.is_empty() && !self.is_at_end {
            self.events.clear();
            self.taken = 0;
            let read = self.input.by_ref().take(CHUNK_BYTES).read_to_end(&mut self.stream.buffer);
            let read = read.map_err(|error| self.input.error(&error))?;
            self.is_at_end = (read as u64) < CHUNK_BYTES;
            self.stream.decode(self.is_at_end, &mut self.events, pairing, out)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::formats::ReadOptions;
    use crate::meta::{Meta, ResponseSpan};
    use crate::reader::TraceReader;
    use crate::record::{NOT_RECORDED, Operation, Record};

    fn shared(name: &str) -> Option<PathBuf> {
        let shared = std::env::var_os("HEADSTACK_SHARED")
            .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"), PathBuf::from);
        let path = shared.join("traces/blktrace").join(name);
        if !path.exists() {
            headstack_needs::lacks(headstack_needs::Need::Data, format_args!("{} is missing", path.display()));
            return None;
        }
        Some(path)
    }

    fn read(inputs: Vec<Input>, options: &ReadOptions) -> (Vec<Record>, Meta) {
        let mut reader = TraceReader::from_inputs(inputs, options).unwrap();
        let (mut records, mut batch) = (Vec::new(), Vec::new());
        while reader.next_batch(&mut batch).unwrap() {
            records.extend_from_slice(&batch);
        }
        (records, reader.meta().clone())
    }

    /// Mean, median, 99th percentile and maximum of times in us.
    fn figures(times_ns: impl Iterator<Item = u64>) -> [f64; 4] {
        let mut sorted: Vec<u64> = times_ns.collect();
        sorted.sort_unstable();
        let rank = |share: f64| sorted[(share * sorted.len() as f64).ceil() as usize - 1] as f64 / 1e3;
        [sorted.iter().sum::<u64>() as f64 / sorted.len() as f64 / 1e3, rank(0.5), rank(0.99), rank(1.0)]
    }

    fn in_flight_max(records: &[Record]) -> i32 {
        let completions = records.iter().map(|record| (record.completion_ns().unwrap(), -1));
        let mut changes: Vec<(u64, i32)> = records.iter().map(|r| (r.arrival_ns, 1)).chain(completions).collect();
        changes.sort_unstable();
        let in_flight = changes.iter().scan(0, |now, change| {
            *now += change.1;
            Some(*now)
        });
        in_flight.max().unwrap_or(0)
    }

    fn bytes_of(records: &[Record], operation: Operation) -> (usize, u64) {
        let those = records.iter().filter(|record| record.operation == operation);
        those.fold((0, 0), |(count, bytes), record| (count + 1, bytes + u64::from(record.length_bytes)))
    }

    #[test]
    fn requests_that_overlap_are_all_paired() {
        let Some(path) = shared("loop0_220k_zipf.blktrace.bin.xz") else { return };
        for (at, response, mean_us) in [
            (Stage::Queue, ResponseSpan::QueueToCompletion, 213.7),
            (Stage::Issue, ResponseSpan::IssueToCompletion, 211.8),
        ] {
            let options = ReadOptions { at: Some(at), ..ReadOptions::default() };
            let (records, meta) = read(vec![Input::open(&path).unwrap()], &options);
            assert_eq!((records.len(), meta.response, meta.counts.len()), (220_000, Some(response), 0));
            assert_eq!(bytes_of(&records, Operation::Read), (154_076, 1_898_749_952));
            assert_eq!(bytes_of(&records, Operation::Write), (65_924, 809_885_696));
            assert!(records.iter().all(|record| record.response_ns != NOT_RECORDED));
            assert!(records.is_sorted_by_key(|record| record.arrival_ns));
            assert_eq!(in_flight_max(&records), 32);
            let [mean, ..] = figures(records.iter().map(|record| record.response_ns));
            assert!((mean - mean_us).abs() < 0.06, "{mean}");
            if at == Stage::Queue {
                let service = figures(records.iter().map(|record| record.response_ns - record.wait_ns));
                for (found, expected) in service.into_iter().zip([211.8, 213.0, 648.3, 4_227.3]) {
                    assert!((found - expected).abs() < 0.06, "{service:?}");
                }
            }
        }
    }

    #[test]
    fn requests_count_at_the_queue_unless_issue_is_selected() {
        let Some(path) = shared("loop0_poisson1500_8s.blktrace.bin") else { return };
        let (records, meta) = read(vec![Input::open(&path).unwrap()], &ReadOptions::default());
        assert_eq!(meta.response, Some(ResponseSpan::QueueToCompletion));
        assert_eq!(bytes_of(&records, Operation::Read), (8_307, 34_025_472));
        assert_eq!(bytes_of(&records, Operation::Write), (3_662, 14_999_552));
        assert_eq!((in_flight_max(&records), meta.devices[0].name.as_str()), (15, "7,0"));
        let [mean, ..] = figures(records.iter().map(|record| record.response_ns));
        assert!((mean - 44.4).abs() < 0.06, "{mean}");
        let service = figures(records.iter().map(|record| record.response_ns - record.wait_ns));
        for (found, expected) in service.into_iter().zip([37.1, 19.6, 167.0]) {
            assert!((found - expected).abs() < 0.06, "{service:?}");
        }
        let span_s = (records[records.len() - 1].arrival_ns - records[0].arrival_ns) as f64 / 1e9;
        assert!((span_s - 7.9996).abs() < 0.001, "{span_s}");
    }

    #[test]
    fn pieces_of_any_length_give_the_same_requests() {
        let Some(path) = shared("loop0_poisson1500_8s.blktrace.bin") else { return };
        let (records, meta) = read(vec![Input::open(&path).unwrap()], &ReadOptions::default());
        let bytes = std::fs::read(&path).unwrap();
        let mut out = Collector::new(false);
        describe(&mut out);
        let (mut stream, mut pairing, mut events) = (Stream::new("pipe"), Pairing::new(None, &mut out), Vec::new());
        let mut rest = &bytes[..];
        for length in (1..).cycle() {
            let (piece, after) = rest.split_at(rest.len().min(length % 700));
            stream.buffer.extend_from_slice(piece);
            rest = after;
            stream.decode(rest.is_empty(), &mut events, &mut pairing, &mut out).unwrap();
            events.drain(..).for_each(|event| pairing.event(&event, &mut out));
            pairing.hand_over(&mut out);
            if rest.is_empty() {
                break;
            }
        }
        pairing.finish(&mut out);
        assert_eq!(out.records, records);
        assert_eq!(Meta { origin: meta.origin.clone(), ..out.meta }, meta);
    }
}
