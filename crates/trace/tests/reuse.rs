//! Stack distances against a naive list, against figures of a real trace, and samples against exact curves.

use crate::reading;
use headstack_trace::analyze::{Analysis, Granularity, Options, Reuse, ReuseOptions, ReuseReport};
use headstack_trace::{Meta, Operation, ReadOptions, Record, TraceReader};
use headstack_workload::{Purpose, Random, Workload};
use proptest::prelude::*;

const K: u64 = 4_096;
const SALTS: u64 = 20;

fn read(arrival_ns: u64, block: u64, blocks: u32) -> Record {
    Record::new(arrival_ns, Operation::Read, block * K, blocks * K as u32)
}

/// Hits of exact LRU at cache sizes from 1 on, by moving to the front of a list.
fn naive_hits(references: impl Iterator<Item = (u32, u64)>, caches: usize) -> Vec<u64> {
    let mut stack: Vec<(u32, u64)> = Vec::new();
    let mut hits = vec![0; caches];
    for reference in references {
        if let Some(index) = stack.iter().rposition(|other| *other == reference) {
            let distance = stack.len() - 1 - index;
            hits.iter_mut().skip(distance).for_each(|hits| *hits += 1);
            stack.remove(index);
        }
        stack.push(reference);
    }
    hits
}

fn reuse_of(records: &[Record], options: ReuseOptions) -> ReuseReport {
    let mut reuse = Reuse::new(options, K as u32);
    records.iter().for_each(|record| reuse.add(record));
    reuse.finish()
}

fn hits_at(report: &ReuseReport, cache: u64) -> u64 {
    report.lru_curve.iter().find(|point| point.cache == cache).unwrap().hits as u64
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn distances_are_those_of_a_list(
        list in prop::collection::vec((0u64..120, 1u32..9, 0u32..3, any::<bool>()), 1..600)
    ) {
        let record = |&(block, blocks, device, half): &(u64, u32, u32, bool)| {
            // Half a block in front, so that ends and starts are not aligned.
            let offset_bytes = block * K + u64::from(half) * 2_048;
            Record { device, offset_bytes, ..read(0, block, blocks) }
        };
        let records: Vec<Record> = list.iter().map(record).collect();
        let blocks = records.iter().flat_map(|record| {
            (record.offset_bytes / K..=(record.end_bytes() - 1) / K).map(|block| (record.device, block))
        });
        let whole = records.iter().map(|record| (record.device, record.offset_bytes));
        let all = 800;
        for (granularity, naive) in
            [(Granularity::Block, naive_hits(blocks, all)), (Granularity::Request, naive_hits(whole, all))]
        {
            let cache_sizes = (1..=all as u64).collect();
            let report = reuse_of(&records, ReuseOptions { granularity, cache_sizes, ..ReuseOptions::default() });
            for (cache, hits) in (1..).zip(naive) {
                prop_assert_eq!(hits_at(&report, cache), hits, "{:?} {}", granularity, cache);
            }
        }
    }
}

fn unit(random: &mut Random) -> f64 {
    random.below(1 << 53) as f64 / (1u64 << 53) as f64
}

/// Popularity in inverse proportion to rank, and now and then the next part of a long scan.
fn zipf(count: u64, blocks: u64, scans: bool) -> Vec<Record> {
    let mut random = Random::new(11, Purpose::Addresses);
    let mut scan = 0;
    let mut record = |i: u64| {
        if scans && i & 3 == 0 {
            scan += 8;
            return read(i, 4 * blocks + scan % blocks, 8);
        }
        let rank = (blocks as f64).powf(unit(&mut random)) as u64;
        read(i, rank.wrapping_mul(0x9e37_79b9_7f4a_7c15) % (4 * blocks), 1)
    };
    (0..count).map(&mut record).collect()
}

fn steps(distinct: f64) -> Vec<u64> {
    (1..=100).map(|step| (distinct * f64::from(step) / 100.0) as u64).collect()
}

/// Mean distance of two curves over cache sizes in equal steps up to the working set, and how often the band holds.
fn held_against(exact: &ReuseReport, sampled: &ReuseReport) -> (f64, f64) {
    let at = |report: &ReuseReport, cache: u64| *report.lru_curve.iter().find(|point| point.cache == cache).unwrap();
    let caches = steps(exact.distinct);
    let (mut sum, mut held) = (0.0, 0.0);
    for &cache in &caches {
        let (exact, point) = (at(exact, cache).miss_ratio, at(sampled, cache));
        sum += (exact - point.miss_ratio).abs();
        held += f64::from(u8::from((point.low.unwrap()..=point.high.unwrap()).contains(&exact)));
    }
    (sum / caches.len() as f64, held / caches.len() as f64)
}

fn samples_are_close(name: &str, records: &[Record]) {
    let distinct = reuse_of(records, ReuseOptions::default()).distinct;
    let with = |rate, salt, memory_bytes| {
        let cache_sizes = steps(distinct);
        reuse_of(records, ReuseOptions { rate, salt, memory_bytes, cache_sizes, ..ReuseOptions::default() })
    };
    let exact = with(1.0, 0, 1 << 30);
    let samples = (0..SALTS).map(|salt| held_against(&exact, &with(0.01, salt, 1 << 30)));
    let (errors, held): (Vec<f64>, Vec<f64>) = samples.unzip();
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let greatest = errors.iter().copied().fold(0.0, f64::max);
    println!("{name}: error {:.4}, greatest {greatest:.4}, in the band {:.2}", mean(&errors), mean(&held));
    assert!(greatest < 0.01 && mean(&held) > 0.85, "{name}: {errors:?} {held:?}");
    // Fewer blocks than there are.
    let bounded = with(1.0, 1, 1 << 20);
    let (error, held) = held_against(&exact, &bounded);
    println!("{name}, 1 MiB: rate {}, mean error {error:.4}, within the band {held:.2}", bounded.sampled_rate);
    assert!(bounded.sampled_rate < 0.5 && error < 0.01, "{name}: {error}");
}

#[test]
fn samples_estimate_the_curve_of_generated_traces() {
    samples_are_close("zipf", &zipf(1_000_000, 1_000_000, false));
    samples_are_close("zipf and scans", &zipf(1_000_000, 400_000, true));
}

fn cloudphysics() -> Option<Vec<Record>> {
    let path = reading::shared("traces/cloudphysics/cloudPhysicsIO.vscsi")?;
    Some(TraceReader::open(&[&path], &ReadOptions::default()).unwrap().read_all().unwrap())
}

#[test]
fn a_real_trace_has_its_known_figures() {
    let Some(records) = cloudphysics() else { return };
    let mut analysis = Analysis::new(Options::default()).unwrap();
    analysis.add(&records);
    let report = analysis.finish(&Meta { resolution_ns: 1_000, ..Meta::default() });
    assert_eq!((report.requests, report.bytes), (113_872, 4_205_978_112));
    assert_eq!((report.operations["read"].requests, report.operations["write"].requests), (46_974, 66_898));
    assert_eq!(report.highest_end_bytes, Some(65_595_583 * 512));
    assert_eq!((report.sizes.min_bytes, report.sizes.max_bytes), (Some(512), Some(69_632)));
    assert!(report.sizes.sizes.iter().any(|size| (size.length_bytes, size.requests) == (65_536, 38_389)));
    let reuse = report.reuse.unwrap();
    assert_eq!((reuse.references, reuse.distinct), (1_141_869, 269_210.0));
    assert_eq!(report.working_set.unwrap().touched_bytes, 269_210.0 * 4_096.0);
    assert!(report.depth.is_none());
    let workload = Workload::from_toml("trace", report.environment.workload_toml.as_deref().unwrap()).unwrap();
    let reads: f64 = workload.specification.lines.iter().map(|line| line.share_percent * line.read_percent).sum();
    assert!((reads - 1e4 * 46_974.0 / 113_872.0).abs() < 1e-6, "{reads}");
}

#[test]
fn a_real_trace_has_its_known_miss_ratio_curve() {
    let Some(records) = cloudphysics() else { return };
    let ids = [
        (1, 2_685),
        (10, 6_252),
        (100, 13_657),
        (1_000, 19_049),
        (5_000, 22_345),
        (10_000, 34_434),
        (20_000, 41_819),
        (40_000, 64_878),
        (50_000, 64_898),
    ];
    // 1, 10, 100, 390.625 MiB and 1 GiB.
    let blocks = [(256, 101_580), (2_560, 117_562), (25_600, 142_253), (100_000, 451_698), (262_144, 872_630)];
    for (granularity, table) in [(Granularity::Request, &ids[..]), (Granularity::Block, &blocks[..])] {
        let cache_sizes = table.iter().map(|(cache, _)| *cache).collect();
        let report = reuse_of(&records, ReuseOptions { granularity, cache_sizes, ..ReuseOptions::default() });
        for (cache, hits) in table {
            assert_eq!(hits_at(&report, *cache), *hits, "{granularity:?} {cache}");
        }
    }
    samples_are_close("CloudPhysics", &records);
}
