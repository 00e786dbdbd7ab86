//! The cache lab ([`Lab`]): evaluates caches of many policies and sizes on a trace in one pass.
//!
//! Every reference is mapped to a small number once, for all caches. LRU at all sizes is one count of stack distances;
//! Belady's policy needs all references and runs at the end; of the others each cache runs separately, batch by batch.
//! A sample contains one in 2^k blocks, with caches scaled down accordingly (Waldspurger, Saemundsson, Ahmad and Park,
//! "Cache modeling and optimization using miniature simulations", USENIX ATC 2017); several independent ones give the
//! error.

mod behind;
mod cell;
mod curve;
mod options;
mod references;
mod report;

use std::sync::Arc;

use headstack_cache::{Belady, CachePolicy, Future};
use rayon::prelude::*;

pub use behind::CacheBefore;
pub use options::{Admission, LabOptions, LabPolicy, Unit, Writes};
pub use report::{CacheReport, LabReport, Share};

use crate::analyze::mix::transfers;
use crate::analyze::sample::Sample;
use crate::error::TraceError;
use crate::record::Record;
use cell::Cell;
use curve::Curve;
use references::{ID_BYTES, Ids, Reference};
use report::Counts;

/// Memory of a policy per id: most have one node of 16 bytes, LIRS two, W-TinyLFU a key in addition.
const NODE_BYTES: u64 = 32;
/// Upper limit of W-TinyLFU's counters per held id in bytes: two for each of 14.4, and they double.
const COUNTERS_BYTES: u64 = 58;
/// Memory of Belady's policy per reference at its end: the reference, its id, and its next use.
const FUTURE_BYTES: u64 = 12 + 4 + 4;

/// Caches of one sample, or of all references.
struct Lane {
    ids: Ids,
    references: Vec<Reference>,
    /// Policies by sizes; empty if a curve or Belady's policy replaces them.
    cells: Vec<Vec<Cell>>,
    curve: Option<Curve>,
    /// All references so far, if Belady's policy is requested.
    past: Vec<Reference>,
    /// References of reads, and of writes, sampled or not.
    referred: [u64; 2],
    seen: usize,
}

/// Caches that process a trace.
pub struct Lab {
    options: LabOptions,
    lanes: Vec<Lane>,
    requests: u64,
}

impl Lab {
    /// Creates empty caches.
    ///
    /// # Errors
    /// When options are out of range.
    pub fn new(options: LabOptions) -> Result<Lab, TraceError> {
        options.check()?;
        let samples = if options.rate < 1.0 { options.samples } else { 1 };
        let lanes = (0..samples).map(|number| Lane::new(&options, u64::from(number))).collect();
        let lab = Lab { options, lanes, requests: 0 };
        lab.check_memory()?;
        Ok(lab)
    }

    /// Adds the next requests, in order of arrival.
    ///
    /// # Errors
    /// When the memory does not suffice for the blocks, or the references for Belady's policy.
    pub fn add(&mut self, records: &[Record]) -> Result<(), TraceError> {
        self.lanes.par_iter_mut().for_each(|lane| lane.add(records, &self.options));
        self.requests += records.iter().filter(|record| transfers(record.operation)).count() as u64;
        self.check_memory()
    }

    fn check_memory(&self) -> Result<(), TraceError> {
        let needed = self.lanes.iter().map(|lane| lane.bytes(&self.options)).sum::<u64>();
        if needed > self.options.memory_bytes {
            let message = format!(
                "{} different blocks or objects at {} sizes need more than {} MiB: allow more memory, use fewer sizes, or use \
                 a sample",
                self.lanes.iter().map(|lane| lane.ids.len()).sum::<usize>(),
                self.options.sizes.len(),
                self.options.memory_bytes >> 20
            );
            return Err(TraceError { file: "cache".to_owned(), place: crate::Place::File, field: "memory", message });
        }
        Ok(())
    }

    /// Returns the results of the caches.
    pub fn finish(mut self) -> LabReport {
        let options = &self.options;
        let by_lane: Vec<Vec<Counts>> = self.lanes.par_iter_mut().map(|lane| lane.finish(options)).collect();
        let rate = self.lanes[0].ids.rate();
        let samples = self.lanes.len() as f64;
        let caches = options.policies.iter().flat_map(|policy| options.sizes.iter().map(move |&size| (*policy, size)));
        let summary = |(number, (policy, size))| {
            let lanes: Vec<Counts> = by_lane.iter().map(|counts| counts[number]).collect();
            report::summarise(policy, size, options, self.lanes[0].referred, rate, &lanes)
        };
        LabReport {
            unit: match options.unit {
                Unit::Blocks { .. } => "blocks",
                Unit::Objects => "objects",
                Unit::ObjectBytes => "bytes",
            }
            .to_owned(),
            block_bytes: if let Unit::Blocks { bytes } = options.unit { Some(bytes) } else { None },
            references: self.lanes[0].referred,
            requests: self.requests,
            distinct: self.lanes.iter().map(|lane| lane.ids.len() as f64).sum::<f64>() / samples / rate,
            sampled_rate: rate,
            samples: self.lanes.len() as u32,
            caches: caches.enumerate().map(summary).collect(),
        }
    }
}

impl Lane {
    fn new(options: &LabOptions, number: u64) -> Lane {
        let mut sample = Sample::all(options.seed.wrapping_add(number.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        while sample.rate() / 2.0 >= options.rate {
            sample.halve();
        }
        let rate = sample.rate();
        let cells_of = |policy: &LabPolicy| match *policy {
            LabPolicy::Online(CachePolicy::Lru) if is_one_pass(options) => Vec::new(),
            LabPolicy::Online(policy) => {
                options.sizes.iter().map(|&size| Cell::online(policy, scaled(size, rate), options)).collect()
            }
            LabPolicy::Belady => Vec::new(),
        };
        let asks_for_lru = options.policies.contains(&LabPolicy::Online(CachePolicy::Lru));
        Lane {
            ids: Ids::new(options.unit, sample),
            references: Vec::new(),
            cells: options.policies.iter().map(cells_of).collect(),
            curve: (asks_for_lru && is_one_pass(options)).then(|| Curve::new(options.unit)),
            past: Vec::new(),
            referred: [0; 2],
            seen: 0,
        }
    }

    fn add(&mut self, records: &[Record], options: &LabOptions) {
        self.references.clear();
        let referred = self.ids.refer(records, &mut self.references);
        (0..2).for_each(|kind| self.referred[kind] += referred[kind]);
        let (references, ids, seen) = (&self.references, &self.ids, self.seen);
        let curve = &mut self.curve;
        let cells = &mut self.cells;
        rayon::join(
            || {
                if let Some(curve) = curve {
                    curve.add(references, ids.len());
                }
            },
            || cells.par_iter_mut().flatten().for_each(|cell| cell.run(references, seen, ids)),
        );
        self.seen += references.len();
        if options.policies.contains(&LabPolicy::Belady) {
            self.past.extend_from_slice(references);
        }
    }

    fn bytes(&self, options: &LabOptions) -> u64 {
        let cells = self.cells.iter().map(Vec::len).sum::<usize>() as u64;
        let belady = if self.past.is_empty() { 0 } else { options.sizes.len() as u64 };
        let dirty = if options.writes == Writes::Back { 2 } else { 1 };
        let ids = self.ids.len() as u64;
        let counted = options.policies.iter().filter(|policy| **policy == LabPolicy::Online(CachePolicy::WTinyLfu));
        let held = |&size: &u64| scaled(size, self.ids.rate()).min(ids);
        let counters = counted.count() as u64 * options.sizes.iter().map(held).sum::<u64>();
        counters * COUNTERS_BYTES
            + ids * (ID_BYTES + dirty * NODE_BYTES * (cells + belady))
            + self.past.len() as u64 * FUTURE_BYTES
    }

    fn finish(&mut self, options: &LabOptions) -> Vec<Counts> {
        let rate = self.ids.rate();
        let sizes: Vec<u64> = options.sizes.iter().map(|&size| scaled(size, rate)).collect();
        let future = self.past.iter().map(|reference| reference.id).collect();
        let future = Arc::new(Future::new(future, self.ids.len()));
        let mut counts = Vec::new();
        for (policy, cells) in options.policies.iter().zip(&self.cells) {
            match policy {
                LabPolicy::Belady => {
                    let one = |&size: &u64| {
                        let mut cell = Cell::belady(Belady::new(future.clone()), size, options);
                        cell.run(&self.past, 0, &self.ids);
                        cell.ledger.counts
                    };
                    counts.par_extend(sizes.par_iter().map(one));
                }
                LabPolicy::Online(_) if cells.is_empty() => {
                    let curve = self.curve.as_ref().expect("LRU alone has no cells");
                    counts.extend(curve.counts(&sizes));
                }
                LabPolicy::Online(_) => counts.extend(cells.iter().map(|cell| cell.ledger.counts)),
            }
        }
        counts
    }
}

/// Whether all sizes of LRU follow from distances: everything is admitted with equal weight.
fn is_one_pass(options: &LabOptions) -> bool {
    let weigh_alike = matches!(options.unit, Unit::Blocks { .. } | Unit::Objects);
    weigh_alike && options.writes == Writes::Through && options.admission == Admission::All
}

/// Size of a cache scaled to a sample.
fn scaled(size: u64, rate: f64) -> u64 {
    ((size as f64 * rate).round() as u64).max(1)
}
