//! The mechanisms on generated traces: what is kept, what is random, what scales.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::path::PathBuf;

use headstack_workload::{Purpose, Random};

use super::*;
use crate::analyze::{Analysis, Report};
use crate::formats::ReadOptions;
use crate::reader::TraceReader;
use crate::record::{NOT_RECORDED, Operation, Record};

const SAME: Options = Options { length: Length::Times(1.0), rate: 1.0, footprint: 1.0, clients: None, seed: 7 };

/// A folder that is removed with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("headstack-synthesize-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn store(&self, records: &[Record]) -> PathBuf {
        let path = self.0.join("trace.parquet");
        let mut meta = Meta { resolution_ns: 1, ..Meta::default() };
        let devices = 1 + records.iter().map(|record| record.device).max().unwrap();
        let name = |number: u32| crate::DeviceMeta { name: format!("d{number}"), ..Default::default() };
        meta.devices = (0..devices).map(name).collect();
        let mut writer = StoreWriter::create(&path).unwrap();
        writer.write(records, &meta).unwrap();
        writer.finish(&meta).unwrap();
        path
    }

    fn twin(&self, records: &[Record], options: Options) -> (Synthesis, Vec<Record>) {
        let (trace, path) = (self.store(records), self.0.join("twin.parquet"));
        let open = || TraceReader::open(&[&trace], &ReadOptions::default());
        let synthesis = synthesize(&open, &options, &path, &mut |_| true).unwrap();
        let twin = TraceReader::open(&[&path], &ReadOptions::default()).unwrap().read_all().unwrap();
        assert_eq!((synthesis.requests, synthesis.duration_ns), (twin.len() as u64, twin[twin.len() - 1].arrival_ns));
        (synthesis, twin)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}

/// Bursts of runs and single requests on two devices: hot pieces and cold ones, pauses of any length.
fn bursty(requests: usize) -> Vec<Record> {
    let mut random = Random::new(3, Purpose::Choices);
    let (mut records, mut now_ns) = (Vec::new(), 5_000_000_000u64);
    while records.len() < requests {
        now_ns += (random.exponential(1.0).powi(3) * 2e8) as u64;
        let is_run = random.below(3) == 0;
        let spread = if random.below(4) == 0 { 40_000 } else { 400 };
        let device = random.below(2) as u32;
        let mut at = random.below(spread) * 65_536 * 3;
        for _ in 0..1 + random.below(40) {
            let operation = if random.below(3) == 0 { Operation::Write } else { Operation::Read };
            let length = if is_run { 65_536 } else { 4_096 << random.below(3) };
            records.push(Record { device, ..Record::new(now_ns, operation, at, length) });
            at = if is_run { at + u64::from(length) } else { random.below(spread) * 65_536 * 3 };
            now_ns += random.exponential(2e5) as u64;
        }
    }
    records.truncate(requests);
    records
}

/// Clients that issue a request as soon as their last one is complete.
fn closed(requests: usize, clients: u32) -> Vec<Record> {
    let mut random = Random::new(5, Purpose::Choices);
    let mut ready: BinaryHeap<Reverse<u64>> = (0..clients).map(|_| Reverse(0)).collect();
    let one = |number| {
        let Reverse(now_ns) = ready.pop().unwrap();
        let response_ns = 100_000 + random.below(200_000);
        ready.push(Reverse(now_ns + response_ns));
        // The last of them were in flight when the recording ended.
        let response_ns = if number + 3 < requests { response_ns } else { NOT_RECORDED };
        Record { response_ns, ..Record::new(now_ns, Operation::Read, random.below(1 << 18) * 4_096, 4_096) }
    };
    (0..requests).map(one).collect()
}

/// Mean recorded response time.
fn mean_ms(records: &[Record]) -> f64 {
    let known = records.iter().filter(|record| record.response_ns != NOT_RECORDED);
    known.clone().map(|record| record.response_ns as f64 / 1e6).sum::<f64>() / known.count() as f64
}

fn analyzed(records: &[Record]) -> Report {
    let mut analysis = Analysis::new(Default::default()).unwrap();
    analysis.add(records);
    let meta = Meta { resolution_ns: 1, ..Meta::default() };
    analysis.finish(&meta)
}

/// Misses in an LRU cache of that many blocks.
fn misses(report: &Report, blocks: f64) -> f64 {
    let curve = &report.reuse.as_ref().unwrap().lru_curve;
    curve.iter().take_while(|point| point.cache as f64 <= blocks).last().map_or(1.0, |point| point.miss_ratio)
}

/// Largest difference of misses, with the synthetic trace's caches scaled by the footprint.
fn curve_error(of: &Report, twin: &Report, footprint: f64, up_to: f64) -> f64 {
    let sizes = of.reuse.as_ref().unwrap().lru_curve.iter().map(|point| point.cache as f64);
    let error = |size: f64| (misses(of, size) - misses(twin, size * footprint)).abs();
    sizes.filter(|&size| size <= up_to * of.reuse.as_ref().unwrap().distinct).map(error).fold(0.0, f64::max)
}

/// Checks that counts vary alike at every scale for which the trace has enough bins.
fn is_as_bursty(of: &Report, twin: &Report, bins: u64) {
    let both = of.arrivals.scales.iter().zip(&twin.arrivals.scales).filter(|(of, _)| of.bins > bins);
    assert!(both.clone().count() > 5);
    for (of, made) in both {
        let ratio = made.index_of_dispersion / of.index_of_dispersion;
        assert!((0.8..1.25).contains(&ratio), "{ratio} in bins of {} ns", of.bin_ns);
    }
}

fn kinds(records: &[Record]) -> BTreeMap<(u32, Operation, u32), usize> {
    let mut kinds = BTreeMap::new();
    for record in records {
        *kinds.entry((record.device, record.operation, record.length_bytes)).or_default() += 1;
    }
    kinds
}

#[test]
fn a_synthetic_trace_matches_cache_hits_and_queue_depth() {
    let records = bursty(30_000);
    let (synthesis, twin) = Folder::new("same").twin(&records, SAME);
    assert_eq!((synthesis.requests, synthesis.clients), (30_000, None));
    assert_eq!(kinds(&records), kinds(&twin));
    let (of, made) = (analyzed(&records), analyzed(&twin));
    let error = curve_error(&of, &made, 1.0, 1.0);
    assert!(error < 0.02, "{error}");
    is_as_bursty(&of, &made, 50);
    let share = |report: &Report| report.sequence.streams.share.unwrap();
    assert!((share(&of) - share(&made)).abs() < 0.02, "{} {}", share(&of), share(&made));
}

#[test]
fn a_synthetic_trace_is_not_a_copy_and_depends_on_its_seed() {
    let records = bursty(5_000);
    let folder = Folder::new("seeds");
    let (_, one) = folder.twin(&records, SAME);
    assert_eq!(one, folder.twin(&records, SAME).1);
    let (_, other) = folder.twin(&records, Options { seed: 8, ..SAME });
    let start_ns = records[0].arrival_ns;
    for (made, of) in [(&one, &records), (&other, &records), (&one, &other)] {
        let same = made.iter().zip(of.iter());
        let same_place = same.clone().filter(|(made, of)| made.offset_bytes == of.offset_bytes).count();
        let moved = |of: &Record| of.arrival_ns.checked_sub(start_ns).unwrap_or(of.arrival_ns);
        let same_time = same.filter(|(made, of)| made.arrival_ns == moved(of)).count();
        assert!(same_place < 500 && same_time < 1_000, "{same_place} at their places, {same_time} at their times");
    }
}

#[test]
fn length_rate_and_footprint_are_as_stated() {
    let records = bursty(20_000);
    let folder = Folder::new("scaled");
    let of = analyzed(&records);
    let options = Options { length: Length::Times(4.0), rate: 2.0, footprint: 2.0, ..SAME };
    let (synthesis, twin) = folder.twin(&records, options);
    let made = analyzed(&twin);
    assert_eq!(synthesis.requests, 80_000);
    let rate = made.requests_per_s.unwrap() / of.requests_per_s.unwrap();
    assert!((1.8..2.2).contains(&rate), "{rate}");
    let distinct = |report: &Report| report.reuse.as_ref().unwrap().distinct;
    // Two copies, each of which passes over the trace twice.
    let footprint = distinct(&made) / distinct(&of);
    assert!((3.99..4.01).contains(&footprint), "{footprint}");
    let error = curve_error(&of, &made, 2.0, 0.95);
    assert!(error < 0.03, "{error}");
    let (synthesis, _) = folder.twin(&records, Options { length: Length::Ns(of.duration_ns / 3), ..SAME });
    assert!(synthesis.duration_ns <= of.duration_ns / 3 && synthesis.requests < 12_000, "{synthesis:?}");
}

#[test]
fn copies_in_turns_leave_bursts_whole() {
    let mut records = bursty(20_000);
    // Periods that are busy for a thousand requests, and quiet ones of as many.
    let arrivals_ns: Vec<u64> = records.iter().map(|record| record.arrival_ns).collect();
    for number in 1..records.len() {
        let gap_ns = arrivals_ns[number] - arrivals_ns[number - 1];
        records[number].arrival_ns = records[number - 1].arrival_ns + gap_ns * [1, 10][number / 1_000 % 2];
    }
    let folder = Folder::new("copies");
    let of = analyzed(&records);
    for footprint in [2.0, 5.0] {
        let options = Options { length: Length::Times(footprint), footprint, ..SAME };
        is_as_bursty(&of, &analyzed(&folder.twin(&records, options).1), 200);
    }
}

#[test]
fn a_fraction_of_the_footprint_is_as_many_pieces_once_more() {
    let records = bursty(20_000);
    let (_, twin) =
        Folder::new("fraction").twin(&records, Options { footprint: 1.5, length: Length::Times(1.5), ..SAME });
    let (of, made) = (analyzed(&records), analyzed(&twin));
    let footprint = made.reuse.as_ref().unwrap().distinct / of.reuse.as_ref().unwrap().distinct;
    assert!((1.45..1.55).contains(&footprint), "{footprint}");
    let error = curve_error(&of, &made, 1.5, 0.95);
    assert!(error < 0.03, "{error}");
}

#[test]
fn clients_of_one_disk_stay_as_regular_as_it_is() {
    // A disk that is never idle: a fixed time per request, for any client, nearest request first.
    let (mut random, mut now_ns) = (Random::new(5, Purpose::Choices), 0);
    let mut records: Vec<Record> = (0..8).map(|_| Record::new(0, Operation::Read, 0, 4_096)).collect();
    let mut in_flight: Vec<usize> = (0..8).collect();
    for number in 8..20_000 {
        now_ns += 3_000_000 + random.below(4_000_000);
        let served = in_flight.swap_remove(random.below(8) as usize);
        records[served].response_ns = now_ns - records[served].arrival_ns;
        in_flight.push(number);
        records.push(Record::new(now_ns, Operation::Read, random.below(1 << 18) * 4_096, 4_096));
    }
    let folder = Folder::new("regular");
    let (_, twin) = folder.twin(&records, SAME);
    let (of, made) = (analyzed(&records), analyzed(&twin));
    is_as_bursty(&of, &made, 100);
    assert!((mean_ms(&twin) / mean_ms(&records) - 1.0).abs() < 0.01, "{} {}", mean_ms(&twin), mean_ms(&records));
}

#[test]
fn clients_of_a_trace_that_was_no_loop_have_its_responses() {
    let (mut random, mut now_ns) = (Random::new(5, Purpose::Choices), 0);
    let mut one = || {
        now_ns += random.exponential(1e6) as u64;
        let response_ns = 50_000 + random.below(100_000);
        Record { response_ns, ..Record::new(now_ns, Operation::Read, random.below(1 << 18) * 4_096, 4_096) }
    };
    let records: Vec<Record> = (0..10_000).map(|_| one()).collect();
    let (synthesis, twin) = Folder::new("outside").twin(&records, Options { clients: Some(4), ..SAME });
    assert_eq!((synthesis.learnt_clients, synthesis.clients), (None, Some(4)));
    assert!(analyzed(&twin).depth.unwrap().max <= 4);
    assert!((mean_ms(&twin) / mean_ms(&records) - 1.0).abs() < 0.1, "{} {}", mean_ms(&twin), mean_ms(&records));
}

#[test]
fn a_closed_loop_keeps_the_requested_clients() {
    let records = closed(20_000, 8);
    let folder = Folder::new("closed");
    for (clients, depth) in [(None, 8), (Some(3), 3)] {
        let (synthesis, twin) = folder.twin(&records, Options { clients, ..SAME });
        assert_eq!((synthesis.learnt_clients, synthesis.clients), (Some(8), Some(depth)));
        let found = analyzed(&twin).depth.unwrap();
        assert_eq!(found.max, u64::from(depth));
        assert!(found.mean > 0.98 * f64::from(depth), "{}", found.mean);
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let folder = Folder::new("refused");
    let trace = folder.store(&bursty(100));
    let open = || TraceReader::open(&[&trace], &ReadOptions::default());
    let path = folder.0.join("twin.parquet");
    let wrong = [
        ("length", Options { length: Length::Times(0.0), ..SAME }),
        ("length", Options { length: Length::Requests(0), ..SAME }),
        ("rate", Options { rate: f64::INFINITY, ..SAME }),
        ("footprint", Options { footprint: 0.5, ..SAME }),
        ("clients", Options { clients: Some(0), ..SAME }),
        // Completion times are not recorded.
        ("clients", Options { clients: Some(4), ..SAME }),
    ];
    for (field, options) in wrong {
        assert_eq!(synthesize(&open, &options, &path, &mut |_| true).unwrap_err().field, field);
    }
    // With or without clients, simultaneous arrivals have no duration.
    let at_once: Vec<Record> = closed(8, 8).iter().map(|one| Record { response_ns: 1_000, ..*one }).collect();
    let other = Folder::new("at-once");
    let at_once = other.store(&at_once);
    let opened = || TraceReader::open(&[&at_once], &ReadOptions::default());
    let options = Options { length: Length::Ns(1_000_000), ..SAME };
    assert_eq!(synthesize(&opened, &options, &path, &mut |_| true).unwrap_err().field, "length");
    // A stop leaves nothing behind, whether it learns or writes.
    for stop_at in [0, 100] {
        let stopped =
            synthesize(&open, &Options { length: Length::Times(1_000.0), ..SAME }, &path, &mut |done| done <= stop_at);
        assert!(stopped.unwrap_err().message.contains("stopped"));
    }
    assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 1);
}
