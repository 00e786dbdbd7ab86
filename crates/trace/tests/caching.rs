//! The cache lab against libCacheSim on a real trace, against caches that search lists, and samples against exact counts.

use headstack_cache::CachePolicy;
use headstack_trace::caching::{Admission, CacheReport, Lab, LabOptions, LabPolicy, LabReport, Unit, Writes};
use headstack_trace::{Operation, ReadOptions, Record, TraceReader};
use headstack_workload::{Purpose, Random};
use proptest::prelude::*;

use crate::reading::shared;

const K: u64 = 4_096;

fn options(policies: &[CachePolicy], sizes: &[u64]) -> LabOptions {
    LabOptions {
        policies: policies.iter().map(|&policy| LabPolicy::Online(policy)).collect(),
        sizes: sizes.to_vec(),
        unit: Unit::Blocks { bytes: K as u32 },
        writes: Writes::Through,
        dirty_share: 1.0,
        destage_bytes: 65_536,
        admission: Admission::All,
        rate: 1.0,
        samples: 8,
        seed: 0,
        memory_bytes: 1 << 30,
    }
}

fn lab(records: &[Record], options: LabOptions) -> LabReport {
    let mut lab = Lab::new(options).unwrap();
    records.chunks(997).for_each(|batch| lab.add(batch).unwrap());
    lab.finish()
}

fn cloud_physics() -> Option<Vec<Record>> {
    let path = shared("traces/cloudphysics/cloudPhysicsIO.vscsi")?;
    Some(TraceReader::open(&[&path], &ReadOptions::default()).unwrap().read_all().unwrap())
}

/// Miss ratios of libCacheSim (October 2024, default parameters) over the blocks of 4 KiB of a real trace, within a thousandth.
#[test]
fn policies_miss_as_often_as_those_of_lib_cache_sim() {
    let (Some(records), Some(table)) = (cloud_physics(), shared("validation/cache-policies.csv")) else { return };
    let table = std::fs::read_to_string(table).unwrap();
    let rows: Vec<(String, u64, f64)> = table
        .lines()
        .skip(1)
        .map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            let policy = cells[0].to_lowercase().replace("s3fifo", "s3-fifo");
            (policy, cells[1].parse().unwrap(), cells[2].parse().unwrap())
        })
        .collect();
    assert_eq!(rows.len(), 55);
    let sizes = [1_000, 5_000, 20_000, 50_000, 100_000];
    let found = lab(&records, options(&CachePolicy::ALL, &sizes));
    assert_eq!((found.references.iter().sum::<u64>(), found.distinct), (1_141_869, 269_210.0));
    let ratio = |report: &LabReport, policy: &str, size: u64| {
        report.caches.iter().find(|cache| cache.policy == policy && cache.cache == size).unwrap().miss_ratio.value
    };
    // What its filter tells of keys that collide depends on the hash: other hashes, other figures.
    let hashed = |seed| lab(&records, LabOptions { seed, ..options(&[CachePolicy::WTinyLfu], &sizes) });
    let hashed: Vec<LabReport> = (1..=6).map(hashed).collect();
    let mut far = Vec::new();
    for (policy, size, expected) in rows {
        let found = ratio(&found, &policy, size);
        println!("{policy} {size}: {found:.4}, libCacheSim {expected:.4}, {:+.4}", found - expected);
        let (low, high) = if policy == "wtinylfu" {
            let found = hashed.iter().map(|report| ratio(report, &policy, size));
            found.fold((1.0, 0.0), |(low, high): (f64, f64), ratio| (low.min(ratio), high.max(ratio)))
        } else {
            (found, found)
        };
        // As far beyond the six as they are apart.
        let slack = 0.001_f64.max(high - low);
        if !(low - slack..=high + slack).contains(&expected) || high - low > 0.03 {
            far.push((policy, size, low, high, expected));
        }
    }
    assert_eq!(far, []);
}

/// Popularity in inverse proportion to rank, runs of neighbours, a scan now and then, and a third of writes.
fn mixed(count: u64, blocks: u64, seed: u64) -> Vec<Record> {
    let mut random = Random::new(seed, Purpose::Addresses);
    let mut scan = 0;
    let mut record = |number: u64| {
        let operation = if random.below(3) == 0 { Operation::Write } else { Operation::Read };
        if number.is_multiple_of(8) {
            scan = (scan + 8) % blocks;
            return Record::new(number, operation, (blocks + scan) * K, 8 * K as u32);
        }
        let unit = random.below(1 << 53) as f64 / (1u64 << 53) as f64;
        let rank = (blocks as f64).powf(unit) as u64;
        let block = rank.wrapping_mul(0x9e37_79b9_7f4a_7c15) % blocks;
        Record::new(number, operation, block * K, (1 + random.below(4)) as u32 * K as u32)
    };
    (0..count).map(&mut record).collect()
}

fn figures(report: &CacheReport) -> (f64, Option<u64>, Option<u64>, f64, f64) {
    let CacheReport { back_reads, back_writes, back_read_bytes, back_write_bytes, .. } = report;
    (report.miss_ratio.value, *back_reads, *back_writes, *back_read_bytes, *back_write_bytes)
}

/// LRU at all sizes from one count says what a cache of each size by itself does, of reads, writes and the back end.
#[test]
fn one_pass_simulates_every_cache() {
    let records = mixed(3_000, 600, 5);
    let sizes: Vec<u64> = (1..60).chain([100, 200, 500, 1_000, 5_000]).collect();
    // Admission of all, by chance, is not known to be that of all.
    let admission = Admission::Share { share: 1.0 };
    for unit in [Unit::Blocks { bytes: K as u32 }, Unit::Objects] {
        let asked = LabOptions { unit, ..options(&[CachePolicy::Lru], &sizes) };
        let together = lab(&records, asked.clone());
        let by_themselves = lab(&records, LabOptions { admission, ..asked });
        assert_eq!(together, by_themselves, "{unit:?}");
        assert_eq!(together.caches.len(), sizes.len());
    }
}

/// An LRU cache of blocks that searches a list, with what goes to the back end.
#[derive(Default)]
struct Naive {
    size: usize,
    /// Oldest first, each with whether it is dirty.
    held: Vec<(u64, bool)>,
    /// Dirty blocks, the longest dirty first.
    dirty: Vec<u64>,
    hits: u64,
    reads: u64,
    read_blocks: u64,
    writes: u64,
    write_blocks: u64,
}

impl Naive {
    fn destage(&mut self, block: u64, most: u64) {
        let mut run = vec![block];
        while (run.len() as u64) < most && self.dirty.contains(&(run[run.len() - 1] + 1)) {
            run.push(run[run.len() - 1] + 1);
        }
        while (run.len() as u64) < most && run[0] > 0 && self.dirty.contains(&(run[0] - 1)) {
            run.insert(0, run[0] - 1);
        }
        self.dirty.retain(|block| !run.contains(block));
        self.writes += 1;
        self.write_blocks += run.len() as u64;
    }

    fn take(&mut self, block: u64) {
        if self.held.len() == self.size {
            let (gone, _) = self.held.remove(0);
            if self.dirty.contains(&gone) {
                self.destage(gone, 16);
            }
        }
        self.held.push((block, false));
    }

    fn used(&mut self, record: &Record, writes: Writes, dirty_max: usize) {
        let is_write = record.operation == Operation::Write;
        let (mut before_read, mut before_written) = (false, false);
        for block in record.offset_bytes / K..record.end_bytes() / K {
            let at = self.held.iter().position(|(held, _)| *held == block);
            let hit = at.is_some();
            self.hits += u64::from(hit);
            let entry = at.map(|at| self.held.remove(at));
            let goes_through = is_write && writes != Writes::Back;
            match (entry, is_write, writes) {
                (Some(_), true, Writes::ReadOnly) | (None, true, Writes::ReadOnly | Writes::Around) => {}
                (Some(entry), ..) => self.held.push(entry),
                (None, ..) => self.take(block),
            }
            if is_write && writes == Writes::Back && !self.dirty.contains(&block) {
                self.dirty.push(block);
                while self.dirty.len() > dirty_max {
                    self.destage(self.dirty[0], 16);
                }
            }
            let is_read = !is_write && !hit;
            self.reads += u64::from(is_read && !before_read);
            self.read_blocks += u64::from(is_read);
            self.writes += u64::from(goes_through && !before_written);
            self.write_blocks += u64::from(goes_through);
            (before_read, before_written) = (is_read, goes_through);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Each way of writing moves what a cache that searches lists moves.
    #[test]
    fn writes_follow_the_write_policy(seed in any::<u64>(), size in 1u64..80, dirty_tenths in 1u64..11) {
        let records = mixed(400, 60, seed);
        for writes in [Writes::Through, Writes::Back, Writes::Around, Writes::ReadOnly] {
            let dirty_share = dirty_tenths as f64 / 10.0;
            let asked = LabOptions { writes, dirty_share, ..options(&[CachePolicy::Lru], &[size]) };
            let found = lab(&records, asked);
            let mut naive = Naive { size: size as usize, ..Naive::default() };
            let dirty_max = (size as f64 * dirty_share) as usize;
            records.iter().for_each(|record| naive.used(record, writes, dirty_max));
            let references: u64 = found.references.iter().sum();
            let misses = (references - naive.hits) as f64 / references as f64;
            let bytes = |blocks: u64| (blocks * K) as f64;
            let expected =
                (misses, Some(naive.reads), Some(naive.writes), bytes(naive.read_blocks), bytes(naive.write_blocks));
            prop_assert_eq!(figures(&found.caches[0]), expected, "{:?}", writes);
            prop_assert_eq!(found.caches[0].dirty_bytes, bytes(naive.dirty.len() as u64), "{:?}", writes);
        }
    }
}

/// What is not taken in is not there: on the second access alone, requests up to a length alone, none by chance.
#[test]
fn what_is_not_admitted_misses_again() {
    let read = |block: u64, blocks: u32| Record::new(0, Operation::Read, block * K, blocks * K as u32);
    let records: Vec<Record> = (0..3).flat_map(|_| [read(0, 1), read(10, 2)]).collect();
    let hits = |admission| {
        let report = lab(&records, LabOptions { admission, ..options(&[CachePolicy::Lru], &[100]) });
        9.0 * (1.0 - report.caches[0].miss_ratio.value)
    };
    let asked = [
        Admission::All,
        Admission::Second,
        Admission::UpTo { length_bytes: K as u32 },
        Admission::Share { share: 0.0 },
    ];
    assert_eq!(asked.map(|admission| hits(admission).round() as u64), [6, 3, 2, 0]);
}

/// Objects are known by where they begin, and take what they weigh: two of 8 KiB fit into 16 KiB, and one of 12 KiB alone.
#[test]
fn objects_count_with_their_size() {
    let read = |offset: u64, length: u32| Record::new(0, Operation::Read, offset, length);
    let records =
        [read(0, 8_192), read(4_096, 8_192), read(0, 8_192), read(65_536, 12_288), read(0, 8_192), read(0, 512)];
    let misses = |unit, size| {
        let report = lab(&records, LabOptions { unit, ..options(&[CachePolicy::Lru], &[size]) });
        (6.0 * report.caches[0].miss_ratio.value, report.caches[0].back_read_bytes)
    };
    assert_eq!(misses(Unit::Objects, 3), (3.0, 28_672.0));
    assert_eq!(misses(Unit::ObjectBytes, 16_384), (4.0, 36_864.0));
    // What is larger than the cache passes by, and nothing goes for it.
    assert_eq!(misses(Unit::ObjectBytes, 8_192), (4.0, 36_864.0));
}

/// W-TinyLFU forgets as fast and needs as much memory where the same objects are measured in bytes: what was popular gives way
/// to what is, and a size in bytes is no number of counters.
#[test]
fn caches_in_bytes_count_objects_and_not_bytes() {
    let phases = (0..4u64).flat_map(|phase| {
        let shifted = move |record: Record| Record { offset_bytes: record.offset_bytes + phase * (1 << 40), ..record };
        let whole = |record: Record| Record { length_bytes: K as u32, ..record };
        mixed(40_000, 2_000, phase).into_iter().map(whole).map(shifted).collect::<Vec<Record>>()
    });
    let records: Vec<Record> = phases.collect();
    let misses = |unit, size| {
        let report = lab(&records, LabOptions { unit, ..options(&[CachePolicy::WTinyLfu], &[size]) });
        report.caches[0].miss_ratio.value
    };
    let (by_number, by_bytes) = (misses(Unit::Objects, 500), misses(Unit::ObjectBytes, 500 * K));
    // With counters for more objects, fewer share them: less may miss, not more.
    assert!(by_bytes < by_number + 0.01, "{by_number} {by_bytes}");
    // All of it fits, and the first use of each object misses.
    let objects: std::collections::HashSet<u64> = records.iter().map(|record| record.offset_bytes).collect();
    assert_eq!(misses(Unit::ObjectBytes, 1 << 50), objects.len() as f64 / records.len() as f64);
}

/// Belady's policy never misses more than another.
#[test]
fn belady_has_the_lowest_miss_rate() {
    let records = mixed(5_000, 800, 9);
    let asked = LabOptions { policies: vec![LabPolicy::Belady], ..options(&[], &[10, 50, 200, 700]) };
    let best = lab(&records, asked);
    let others = lab(&records, options(&CachePolicy::ALL, &[10, 50, 200, 700]));
    for other in &others.caches {
        let best = best.caches.iter().find(|best| best.cache == other.cache).unwrap();
        assert!(best.miss_ratio.value < other.miss_ratio.value, "{} {}", other.policy, other.cache);
    }
}

#[test]
fn memory_is_bounded_and_reported() {
    let records = mixed(20_000, 50_000, 3);
    let mut lab = Lab::new(LabOptions { memory_bytes: 1 << 20, ..options(&CachePolicy::ALL, &[10, 20]) }).unwrap();
    let error = records.chunks(1_000).find_map(|batch| lab.add(batch).err()).expect("1 MiB is too little");
    assert!(error.to_string().contains("memory: ") && error.to_string().contains("take a sample"), "{error}");
}

/// How often the band of a sampled figure holds the exact one, and its mean width, over policies and sizes.
fn coverage(records: &[Record], policies: &[CachePolicy], sizes: &[u64], rate: f64) -> (f64, f64) {
    let exact = lab(records, options(policies, sizes));
    let (mut held, mut width, mut count) = (0.0, 0.0, 0.0);
    for seed in 0..6 {
        let sampled = lab(records, LabOptions { rate, seed, ..options(policies, sizes) });
        for (exact, sampled) in exact.caches.iter().zip(&sampled.caches) {
            let (low, high) = (sampled.miss_ratio.low.unwrap(), sampled.miss_ratio.high.unwrap());
            let holds = (low..=high).contains(&exact.miss_ratio.value);
            if !holds {
                println!(
                    "{} {}: {:.4} not in {low:.4} to {high:.4}",
                    exact.policy, exact.cache, exact.miss_ratio.value
                );
            }
            held += f64::from(u8::from(holds));
            width += high - low;
            count += 1.0;
        }
    }
    (held / count, width / count)
}

/// Bands of 95 % hold at least so often, on generated traces and on a real one.
#[test]
fn confidence_bands_cover_the_true_value() {
    use CachePolicy::{Arc, Clock, Lirs, Lru, S3Fifo, WTinyLfu};
    let policies = [Lru, Clock, Arc, S3Fifo, Lirs, WTinyLfu];
    let mut traces = vec![("mixed", mixed(60_000, 20_000, 1)), ("other", mixed(40_000, 60_000, 2))];
    traces.extend(cloud_physics().map(|records| ("real", records[..40_000].to_vec())));
    for (name, records) in traces {
        let distinct = lab(&records, options(&[CachePolicy::Lru], &[1])).distinct;
        let sizes = [0.05, 0.1, 0.2, 0.4, 0.8].map(|share| (distinct * share) as u64);
        let (held, width) = coverage(&records, &policies, &sizes, 0.06);
        println!("{name}: {held:.3} in the band, {width:.4} wide");
        assert!(held >= 0.95 && width < 0.1, "{name}: {held} {width}");
    }
}
