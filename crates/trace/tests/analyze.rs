//! Compares reports of small traces with figures computed by hand and with naive references.

use headstack_trace::analyze::{Analysis, Bin, Options, Report};
use headstack_trace::{DeviceMeta, Flags, Meta, Operation, Process, Record};
use headstack_workload::{Addresses, Arrivals, Purpose, Random, Workload};
use proptest::prelude::*;

const MS: u64 = 1_000_000;
const S: u64 = 1_000_000_000;
const K: u64 = 4_096;

fn request(arrival_ns: u64, operation: Operation, block: u64, blocks: u32) -> Record {
    Record::new(arrival_ns, operation, block * K, blocks * K as u32)
}

fn analyze(records: &[Record], meta: &Meta) -> Report {
    let mut analysis = Analysis::new(Options::default()).unwrap();
    // The division into batches must not affect the result.
    records.chunks(3).for_each(|batch| analysis.add(batch));
    analysis.finish(meta)
}

fn close(a: Option<f64>, b: f64) {
    let a = a.unwrap_or(f64::NAN);
    assert!((a - b).abs() <= 1e-9 * b.abs().max(1.0), "{a} is not {b}");
}

fn bin(from: u64, count: f64) -> Bin {
    Bin { from, count }
}

/// Two devices; sequential reads and random writes; at most two requests in flight.
///
/// | arrival | what | blocks | device | response |
/// | --- | --- | --- | --- | --- |
/// | 0 ms | read | 0 to 1 | a | 3 ms: to 3 |
/// | 2 ms | read | 2 to 3 | a | 2 ms: to 4 |
/// | 4 ms | write | 0 | a | 1 ms: to 5 |
/// | 10 ms | write | 0 | a | 4 ms: to 14 |
/// | 12 ms | read | 0 | a | 1 ms: to 13, overlaps the write |
/// | 14 ms | flush | | a | 2 ms: to 16 |
/// | 20 ms | read | 1000 | b | not recorded |
fn small() -> (Vec<Record>, Meta) {
    let mut records = vec![
        request(100 * MS, Operation::Read, 0, 2),
        request(102 * MS, Operation::Read, 2, 2),
        request(104 * MS, Operation::Write, 0, 1),
        request(110 * MS, Operation::Write, 0, 1),
        request(112 * MS, Operation::Read, 0, 1),
        request(114 * MS, Operation::Flush, 0, 0),
        request(120 * MS, Operation::Read, 1000, 1),
    ];
    for (record, response_ms) in records.iter_mut().zip([3, 2, 1, 4, 1, 2]) {
        record.response_ns = response_ms * MS;
        record.process = 2;
    }
    records[2].flags = Flags::SYNC.with(Flags::FUA);
    records[3].flags = Flags::SYNC;
    records[6].device = 1;
    let device = |name: &str| DeviceMeta { name: name.to_owned(), ..DeviceMeta::default() };
    let process = |pid, name: &str| Process { pid, name: name.to_owned() };
    let meta = Meta {
        resolution_ns: 1_000,
        devices: vec![device("a"), device("b")],
        processes: vec![process(1, "none"), process(7, "db")],
        ..Meta::default()
    };
    (records, meta)
}

#[test]
fn mixes_sizes_and_places_are_counted() {
    let (records, meta) = small();
    let report = analyze(&records, &meta);
    assert_eq!((report.requests, report.bytes), (7, 8 * K));
    assert_eq!((report.first_arrival_ns, report.duration_ns), (Some(100 * MS), 20 * MS));
    close(report.requests_per_s, 6.0 / 0.020);
    close(report.bytes_per_s, 8.0 * 4096.0 / 0.020);
    let amount = |name: &str| (report.operations[name].requests, report.operations[name].bytes);
    assert_eq!((amount("read"), amount("write"), amount("flush")), ((4, 6 * K), (2, 2 * K), (1, 0)));
    assert_eq!(report.operations.len(), 3);
    assert_eq!(report.flags, [("fua", 1), ("sync", 2)].into());

    close(report.sizes.mean_bytes, 8.0 * 4096.0 / 6.0);
    assert_eq!((report.sizes.p50_bytes, report.sizes.p90_bytes), (Some(4_096), Some(8_192)));
    let sizes: Vec<_> = report.sizes.sizes.iter().map(|s| (s.length_bytes, s.requests, s.reads, s.writes)).collect();
    assert_eq!(sizes, [(4_096, 4, 2, 2), (8_192, 2, 2, 0)]);
    assert_eq!(report.alignment.common_bytes, Some(4_096));
    let share = |bytes| *report.alignment.shares.iter().find(|share| share.align_bytes == bytes).unwrap();
    close(Some(share(4_096).both), 1.0);
    // The offsets are 0, 2, 0, 0, 0 and 1000 blocks; two requests have two blocks.
    close(Some(share(8_192).offset), 1.0);
    close(Some(share(8_192).length), 2.0 / 6.0);
    close(Some(share(16_384).offset), 5.0 / 6.0);
    assert_eq!((report.lowest_bytes, report.highest_end_bytes), (Some(0), Some(1_001 * K)));

    assert_eq!(report.devices.len(), 2);
    assert_eq!(report.devices[1].name, "b");
    assert_eq!((report.devices[0].highest_end_bytes, report.devices[1].lowest_bytes), (Some(4 * K), Some(1_000 * K)));
    close(report.devices[0].mean_depth, 13.0 / 20.0);
    assert_eq!(report.devices[1].mean_latency_ns, None);
    assert_eq!(report.processes.len(), 1);
    assert_eq!((report.processes[0].pid, report.processes[0].operations["read"].requests), (7, 3));
}

#[test]
fn runs_and_seeks_are_of_each_device() {
    let (records, meta) = small();
    let sequence = analyze(&records, &meta).sequence;
    // Ends on `a` are 2, 4, 1, 1, 1 blocks: one of four requests continues a run; the flush is ignored.
    close(sequence.strict.share, 0.25);
    close(sequence.streams.share, 0.25);
    assert_eq!(sequence.strict.runs, 5);
    close(sequence.strict.mean_requests, 6.0 / 5.0);
    close(sequence.strict.mean_bytes, 8.0 * 4096.0 / 5.0);
    assert_eq!(sequence.strict.requests, [bin(1, 4.0), bin(2, 1.0)]);
    // Seeks are 0, 4 blocks back, 1 back and 1 back.
    close(sequence.mean_seek_bytes, 6.0 * 4096.0 / 4.0);
    assert_eq!(sequence.forward_seeks_bytes, [bin(0, 1.0)]);
    assert_eq!(sequence.backward_seeks_bytes, [bin(4_096, 2.0), bin(16_384, 1.0)]);
    // One stream from the second request of `a` on; none on `b`.
    close(sequence.mean_concurrent_streams, 4.0 / 6.0);
    assert_eq!(sequence.max_concurrent_streams, 1);
}

#[test]
fn interleaved_streams_are_runs_of_streams_and_not_of_requests() {
    let turn =
        |turn: u64| (0..3).map(move |stream| request(turn * 3 + stream, Operation::Read, stream * 1_000 + turn, 1));
    let records: Vec<Record> = (0..10).flat_map(turn).collect();
    let report = analyze(&records, &Meta::default());
    close(report.sequence.strict.share, 0.0);
    close(report.sequence.streams.share, 27.0 / 29.0);
    assert_eq!(report.sequence.streams.requests, [bin(8, 3.0)]);
    assert_eq!(report.sequence.max_concurrent_streams, 3);
    // No stream in the first turn, then 1, 2, 3, and 3 for 24 more requests.
    close(report.sequence.mean_concurrent_streams, (1.0 + 2.0 + 3.0 + 24.0 * 3.0) / 30.0);
    close(report.environment.random_share, 0.1);
}

#[test]
fn depth_and_response_times_are_those_of_the_table() {
    let (records, meta) = small();
    let report = analyze(&records, &meta);
    let depth = report.depth.unwrap();
    // Until 20 ms, when the last request arrives, which has no recorded latency: 13 ms in flight.
    close(Some(depth.mean), 13.0 / 20.0);
    assert_eq!(depth.max, 2);
    // Depth 2 from 2 to 3 ms and 12 to 13 ms; depth 1 in 0-2, 3-5, 10-12 and 13-16 ms.
    let shares: Vec<f64> = depth.time_shares.iter().map(|share| share * 20.0).collect();
    assert_eq!(shares.len(), 3);
    close(Some(shares[0]), 9.0);
    close(Some(shares[1]), 9.0);
    close(Some(shares[2]), 2.0);
    // Depth on arrival: 0, 1, 0, 0, 1, 0, 0. The flush has no range.
    close(Some(depth.mean_at_arrival), 2.0 / 7.0);
    close(depth.overlap_share, 1.0 / 6.0);
    let all = report.response.all_ns.unwrap();
    assert_eq!((all.count, all.min, all.max), (6, MS, 4 * MS));
    close(Some(all.mean), 13.0 / 6.0 * 1e6);
    close(Some(report.response.by_operation_ns["write"].mean), 2.5e6);
    let classes = report.response.by_depth.iter();
    let by_depth: Vec<_> = classes.map(|class| (class.from, class.requests, class.mean_ns)).collect();
    assert_eq!(by_depth, [(0, 4, 2.5e6), (1, 2, 1.5e6)]);
    assert_eq!(report.response.wait_ns, None);
    assert!(report.notes.iter().any(|note| note.contains("1 request without a response time")), "{:?}", report.notes);
}

#[test]
fn blocks_are_touched_and_touched_again() {
    let (records, meta) = small();
    let report = analyze(&records, &meta);
    let set = report.working_set.unwrap();
    assert_eq!(set.references, 8);
    let k = |bytes: f64| bytes / K as f64;
    assert_eq!((k(set.touched_bytes), k(set.read_bytes), k(set.written_bytes)), (5.0, 5.0, 1.0));
    // Block 0 is read, written, written, and read.
    let found = set.successions;
    assert_eq!((found.write_after_read, found.write_after_write), (1.0, 1.0));
    assert_eq!((found.read_after_write, found.read_after_read), (1.0, 0.0));
    // Times of 4, 6 and 2 ms; 6 ms from write to write.
    assert_eq!(set.reuse_times_ns, [bin(1 << 20, 1.0), bin(1 << 21, 1.0), bin(1 << 22, 1.0)]);
    assert_eq!(set.update_times_ns, [bin(1 << 22, 1.0)]);
    assert_eq!(set.windows.len(), 1);
    assert_eq!((k(set.windows[0].mean_bytes), k(set.windows[0].max_bytes)), (5.0, 5.0));
    let growth: Vec<_> = set.growth.iter().map(|point| (point.at_ns / MS, k(point.touched_bytes))).collect();
    assert_eq!(growth, [(0, 2.0), (2, 4.0), (20, 5.0)]);

    let reuse = report.reuse.unwrap();
    // Distances: 3 (blocks 1, 2 and 3 in between), 0 and 0.
    let hits: Vec<_> = reuse.lru_curve.iter().map(|point| (point.cache, point.hits)).collect();
    assert_eq!(hits, [(1, 2.0), (2, 2.0), (3, 2.0), (4, 3.0), (5, 3.0)]);
    assert_eq!((reuse.lru_curve[3].miss_ratio, reuse.lru_curve[3].cache_bytes), (5.0 / 8.0, Some(4 * K)));
    assert_eq!((reuse.distinct, reuse.sampled_rate, reuse.lru_curve[0].low), (5.0, 1.0, None));
}

#[test]
fn windows_count_each_block_once() {
    let at = [(0, 0), (0, 1), (S / 2, 0), (S, 0), (S + 1, 5), (11 * S, 0), (12 * S, 7)];
    let records: Vec<Record> = at.iter().map(|&(at, block)| request(at, Operation::Read, block, 1)).collect();
    let windows = analyze(&records, &Meta::default()).working_set.unwrap().windows;
    let k = |bytes: f64| bytes / K as f64;
    // Blocks by second: 0: {0, 1}, 1: {0, 5}, 11: {0}, 12: {7}; 13 seconds in total.
    assert_eq!((windows[0].window_ns, k(windows[0].max_bytes)), (S, 2.0));
    close(Some(k(windows[0].mean_bytes)), 6.0 / 13.0);
    // Blocks by window of ten seconds: {0, 1, 5} and {0, 7}.
    close(Some(k(windows[1].mean_bytes)), 2.5);
    close(Some(k(windows[2].mean_bytes)), 4.0);
    assert_eq!(windows.len(), 3);
}

#[test]
fn rates_and_maps_hold_every_request() {
    let (records, meta) = small();
    let report = analyze(&records, &meta);
    // 20 ms would need 2,001 bins of 10 µs.
    assert_eq!((report.rate.bin_ns, report.rate.bins.len()), (20_000, 1_001));
    let first = report.rate.bins[0];
    assert_eq!((first.requests, first.reads, first.bytes, first.read_bytes), (1, 1, 2 * K, 2 * K));
    assert_eq!((first.mean_latency_ns, first.mean_depth), (Some(3e6), Some(1.0)));
    // At 12.5 ms, two requests are in flight and none arrives.
    assert_eq!((report.rate.bins[625].requests, report.rate.bins[625].mean_depth), (0, Some(2.0)));
    assert_eq!(report.rate.bins.iter().map(|bin| bin.requests).sum::<u64>(), 7);
    let heat = report.heat.unwrap();
    let sum = |map: &[Vec<u64>]| map.iter().flatten().sum::<u64>();
    assert_eq!((sum(&heat.reads), sum(&heat.writes)), (4, 2));
    // 1,000 blocks in 256 rows: four per row. 20 ms in columns of 2^k µs.
    assert_eq!((heat.row_bytes, heat.column_ns), (4 * K, 128_000));
    assert_eq!(heat.reads[20_000 / 128][250], 1);
    assert_eq!(heat.reads[0], [1]);
}

#[test]
fn gaps_are_summed_up() {
    let (records, meta) = small();
    let arrivals = analyze(&records, &meta).arrivals;
    // Gaps of 2, 2, 6, 2, 2 and 6 ms: mean 20/6, mean square 88/6.
    close(arrivals.mean_gap_ns, 20e6 / 6.0);
    close(arrivals.gap_variation, (88.0f64 / 6.0 - (20.0f64 / 6.0).powi(2)).sqrt() / (20.0 / 6.0));
    assert_eq!(arrivals.gaps_ns.unwrap().max, 6 * MS);
    assert_eq!(arrivals.gap_histogram_ns.unwrap(), [bin(1 << 20, 4.0), bin(1 << 22, 2.0)]);
    // Bins of 2 ms with arrivals at 0, 2, 4, 10, 12, 14 and 20 ms; the last bin is one clock step long.
    let scale = arrivals.scales.iter().find(|scale| scale.bin_ns == 2 * MS).unwrap();
    let bins_long = (20 * MS + meta.resolution_ns) as f64 / (2 * MS) as f64;
    let mean = 7.0 / bins_long;
    assert_eq!(scale.bins, 11);
    close(Some(scale.mean), mean);
    close(Some(scale.peak_over_mean), 1.0 / mean);
    let expected_in_last = mean * (bins_long - 10.0);
    let squares = 6.0 * (1.0 - mean).powi(2) + 4.0 * mean.powi(2) + (1.0 - expected_in_last).powi(2);
    close(Some(scale.index_of_dispersion), squares / bins_long / mean);
    assert!(arrivals.hurst.is_none());
}

/// A trace that ends in a burst: most of its requests are in the last bin, which is shorter than the others.
#[test]
fn the_last_bin_counts_at_every_scale() {
    let steady = (0..1_000).map(|i| request(i * MS, Operation::Read, i, 1));
    let burst = (0..1_200).map(|i| request(999 * MS + i, Operation::Read, i, 1));
    let records: Vec<Record> = steady.chain(burst).collect();
    let arrivals = analyze(&records, &Meta { resolution_ns: 1, ..Meta::default() }).arrivals;
    assert!(arrivals.scales.len() > 5);
    for scale in arrivals.scales {
        let length_ns = (999 * MS + 1_200) as f64;
        let requests = scale.mean * length_ns / scale.bin_ns as f64;
        assert!((requests - 2_200.0).abs() < 1e-6, "{requests} in bins of {} ns", scale.bin_ns);
        let peak = scale.peak_over_mean * scale.mean;
        assert!(peak > 1_200.0, "{peak} at most in bins of {} ns", scale.bin_ns);
    }
}

#[test]
fn what_is_below_the_step_of_the_clock_is_null() {
    let records: Vec<Record> = (0..2_000).map(|i| request(i / 20 * S, Operation::Read, i, 1)).collect();
    let report = analyze(&records, &Meta { resolution_ns: S, ..Meta::default() });
    let arrivals = &report.arrivals;
    assert!(arrivals.gap_variation.is_none() && arrivals.gaps_ns.is_none() && arrivals.gap_histogram_ns.is_none());
    assert!(arrivals.scales.iter().all(|scale| scale.bin_ns >= S) && !arrivals.scales.is_empty());
    assert_eq!(report.rate.bin_ns, S);
    assert!(report.rate.bins.iter().all(|bin| bin.requests == 20));
    assert!(report.notes.iter().any(|note| note.contains("below the clock's resolution")));
}

#[test]
fn nothing_is_null_and_not_zero() {
    let report = analyze(&[], &Meta::default());
    assert_eq!((report.requests, report.first_arrival_ns, report.requests_per_s), (0, None, None));
    assert!(report.depth.is_none() && report.environment.workload_toml.is_none() && report.sizes.mean_bytes.is_none());
    let json = serde_json::to_value(&report).unwrap();
    assert!(json["depth"].is_null() && json["sizes"]["p50_bytes"].is_null());
    let unknown = analyze(&[request(5, Operation::Unknown, 0, 1)], &Meta::default());
    assert!(unknown.environment.workload_toml.is_none() && unknown.environment.read_share.is_none());
}

fn unit(random: &mut Random) -> f64 {
    random.below(1 << 53) as f64 / (1u64 << 53) as f64
}

fn exponential(random: &mut Random, mean: f64) -> f64 {
    -mean * (1.0 - unit(random)).ln()
}

#[test]
fn poisson_arrivals_are_not_bursty_at_any_scale() {
    let mut random = Random::new(7, Purpose::Arrivals);
    let mut now = 0.0;
    let mut next = |i: u64| {
        now += exponential(&mut random, 1e6);
        request(now as u64, Operation::Read, i % 1_000 * 7, 1)
    };
    let records: Vec<Record> = (0..400_000).map(&mut next).collect();
    let arrivals = analyze(&records, &Meta::default()).arrivals;
    assert!((arrivals.gap_variation.unwrap() - 1.0).abs() < 0.01);
    for scale in arrivals.scales.iter().filter(|scale| scale.bins >= 2_000) {
        // The variance of the index of dispersion of a Poisson sample is 2 / bins.
        let error = (2.0 / scale.bins as f64).sqrt();
        assert!((scale.index_of_dispersion - 1.0).abs() < 4.0 * error, "{scale:?}");
    }
    let hurst = arrivals.hurst.unwrap();
    assert!((hurst.exponent - 0.5).abs() < 0.06 && hurst.r_squared > 0.98 && hurst.points >= 6, "{hurst:?}");
}

/// On-off sources with on and off times of infinite variance (Willinger et al., 1997): H = (3 - alpha) / 2 = 0.8.
#[test]
fn heavy_tailed_bursts_are_self_similar() {
    let mut random = Random::new(3, Purpose::Arrivals);
    let (alpha, length_ns) = (1.4, 4e12);
    let mut stamps: Vec<u64> = Vec::new();
    for _ in 0..30 {
        let (mut now, mut is_on) = (0.0, false);
        while now < length_ns {
            let phase: f64 = 1e8 * (1.0 - unit(&mut random)).powf(-1.0 / alpha);
            let mut at = now + exponential(&mut random, 5e7);
            while is_on && at < (now + phase).min(length_ns) {
                stamps.push(at as u64);
                at += exponential(&mut random, 5e7);
            }
            (now, is_on) = (now + phase, !is_on);
        }
    }
    stamps.sort_unstable();
    let records: Vec<Record> = stamps.iter().map(|&at| request(at, Operation::Read, 0, 1)).collect();
    let hurst = analyze(&records, &Meta::default()).arrivals.hurst.unwrap();
    assert!((0.65..0.95).contains(&hurst.exponent), "{hurst:?}");
}

prop_compose! {
    fn requests()(
        list in prop::collection::vec((0u64..120, 1u32..9, 0u32..3, 0u64..500, 0usize..3, any::<bool>()), 1..400)
    ) -> Vec<Record> {
        let mut now = 0;
        list.into_iter().map(|(block, blocks, device, gap, operation, half)| {
            now += gap;
            let operation = [Operation::Read, Operation::Write, Operation::Unknown][operation];
            let mut record = request(now, operation, block, blocks);
            record.offset_bytes += u64::from(half) * 2_048;
            record.device = device;
            record
        }).collect()
    }
}

fn blocks_of(record: &Record) -> impl Iterator<Item = (u32, u64)> {
    let (device, first, last) = (record.device, record.offset_bytes / K, (record.end_bytes() - 1) / K);
    (first..=last).map(move |block| (device, block))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn sequences_and_working_sets_are_those_of_a_naive_count(records in requests()) {
        let report = analyze(&records, &Meta::default());
        let (mut pairs, mut sequential, mut seek) = (0u64, 0u64, 0u64);
        for device in 0..3 {
            let own: Vec<&Record> = records.iter().filter(|record| record.device == device).collect();
            for pair in own.windows(2) {
                pairs += 1;
                sequential += u64::from(pair[0].end_bytes() == pair[1].offset_bytes);
                seek += pair[0].end_bytes().abs_diff(pair[1].offset_bytes);
            }
        }
        if pairs > 0 {
            close(report.sequence.strict.share, sequential as f64 / pairs as f64);
            close(report.sequence.mean_seek_bytes, seek as f64 / pairs as f64);
        }
        let touched = |of: &dyn Fn(&Record) -> bool| {
            let blocks = records.iter().filter(|record| of(record)).flat_map(blocks_of);
            blocks.collect::<std::collections::HashSet<_>>().len() as f64 * K as f64
        };
        let set = report.working_set.unwrap();
        prop_assert_eq!(set.touched_bytes, touched(&|_| true));
        prop_assert_eq!(set.read_bytes, touched(&|record| record.operation == Operation::Read));
        prop_assert_eq!(set.written_bytes, touched(&|record| record.operation == Operation::Write));
    }

    #[test]
    fn any_records_are_analysed(
        list in prop::collection::vec(
            (any::<u64>(), any::<u64>(), any::<u64>(), any::<u32>(), any::<u32>(), 0usize..6), 1..8)
    ) {
        let mut records: Vec<Record> = list.iter().map(|&(arrival, offset, response, length, device, operation)| {
            let mut record = Record::new(arrival, Operation::ALL[operation], offset >> 1, length >> 8);
            record.offset_bytes = record.offset_bytes.min((1 << 63) - 1 - u64::from(record.length_bytes));
            (record.response_ns, record.wait_ns) = (response, response);
            (record.device, record.process) = (device >> 22, device);
            record
        }).collect();
        // First out of order, then in order.
        let report = analyze(&records, &Meta::default());
        prop_assert_eq!(report.requests, records.len() as u64);
        records.sort_by_key(|record| record.arrival_ns);
        let report = analyze(&records, &Meta { resolution_ns: list[0].0, ..Meta::default() });
        prop_assert!(serde_json::to_string(&report).is_ok());
        let amounts = report.devices.iter().flat_map(|device| device.operations.values()).map(|amount| amount.requests);
        prop_assert_eq!(amounts.sum::<u64>() + report.other_devices.requests, records.len() as u64);
    }
}

#[test]
fn the_workload_has_the_mix_of_the_trace() {
    let mut random = Random::new(5, Purpose::Addresses);
    let mut next = 0;
    let mut record = |i: u64| {
        let blocks = [1, 2, 16][random.below(3) as usize];
        // Reads of 64 KiB are sequential; other requests are random, in the first 25 % or in the whole range.
        let (operation, block) = match (blocks, random.below(10)) {
            (16, 0..7) => (Operation::Read, next),
            (_, 0..3) => (Operation::Write, random.below(25_000)),
            (_, 3) => (Operation::Trim, random.below(25_000)),
            _ => (Operation::Read, random.below(100_000)),
        };
        if blocks == 16 && operation == Operation::Read {
            next = block + 16;
        }
        request(i * MS, operation, block, blocks)
    };
    let mut records: Vec<Record> = (0..50_000).map(&mut record).collect();
    records.extend((0..50).map(|i| request(50 * S + i, Operation::Flush, 0, 0)));
    let report = analyze(&records, &Meta::default());
    let text = report.environment.workload_toml.as_deref().unwrap();
    let workload = Workload::from_toml("trace.toml", text).unwrap();

    let lines = &workload.specification.lines;
    let share = |of: &dyn Fn(&headstack_workload::AccessLine) -> f64| {
        lines.iter().map(|line| line.share_percent * of(line)).sum::<f64>()
    };
    let all = records.len() as f64 - 50.0;
    let count = |of: &dyn Fn(&Record) -> bool| records.iter().filter(|record| of(record)).count() as f64;
    let of = |operation| count(&|record| record.operation == operation);
    close(Some(share(&|_| 1.0)), 100.0);
    close(Some(share(&|line| line.read_percent)), 1e4 * of(Operation::Read) / all);
    let trims = share(&|line| (100.0 - line.read_percent) * line.trim_percent);
    close(Some(trims), 1e6 * of(Operation::Trim) / all);
    for bytes in [4_096, 8_192, 65_536] {
        let of_size = share(&|line| f64::from(u8::from(line.size_bytes == bytes)));
        close(Some(of_size), 100.0 * count(&|record| record.length_bytes == bytes) / all);
    }
    let random_reads = share(&|line| line.read_percent * line.random_percent) / share(&|line| line.read_percent);
    close(report.environment.read_random_share, random_reads / 100.0);
    assert!(random_reads < 80.0, "{random_reads}");
    assert!(matches!(workload.arrivals, Arrivals::Open { rate_per_s, .. } if (rate_per_s - 1_000.0).abs() < 2.0));
    assert_eq!(workload.flush_every, of(Operation::Write) as u64 / 50);
    assert_eq!(lines[0].align_bytes, Some(4_096));
    let Addresses::HotBands(bands) = &workload.addresses else { panic!("{:?}", workload.addresses) };
    let first_quarter: f64 = bands.iter().filter(|band| band.to_percent <= 25.0).map(|band| band.share_percent).sum();
    // All random writes and 25 % of the random reads.
    let (reads, writes) = (random_reads / 100.0 * of(Operation::Read), of(Operation::Write));
    let expected = 100.0 * (reads / 4.0 + writes) / (reads + writes);
    assert!((first_quarter - expected).abs() < 3.0, "{first_quarter} is not {expected}");
}
