//! [`Step`]: transformations of traces. The result of each step depends only on the requests passed through it, in
//! order.

mod parse;

pub(crate) use parse::exact_time;

use rustc_hash::FxHashMap;

use crate::meta::{Clock, Meta};
use crate::record::{Operation, Record};
use crate::text::BYTES_END;
use crate::time::TIME_NS_END;

/// An exact decimal factor as given by the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Factor {
    numerator: u64,
    denominator: u64,
}

impl Factor {
    /// Returns `value` times the factor, rounded down and saturating.
    fn of(self, value: u64) -> u64 {
        let scaled = u128::from(value) * u128::from(self.numerator) / u128::from(self.denominator);
        u64::try_from(scaled).unwrap_or(u64::MAX)
    }
}

/// A half-open range of addresses or times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// Start, inclusive.
    pub from: u64,
    /// End, exclusive.
    pub to: u64,
}

/// A transformation. [`Step::parse`] reads and `Display` prints the same text, which is stored in the metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Keeps only these operations: `kind=read,write`.
    Kind(Vec<Operation>),
    /// Keeps only these devices: `device=hm.0,hm.1`.
    Device(Vec<String>),
    /// Keeps only these processes, by ID or name: `process=fio,4711`.
    Process(Vec<String>),
    /// Keeps only arrivals in this time range, in ns since the first request: `time=10s-20min`.
    Time(Range),
    /// Keeps only the first requests: `first=1000000`.
    First(u64),
    /// Keeps only requests in this address range and cuts those that cross its ends: `clip=0-36GB`.
    Clip(Range),
    /// Maps addresses into this range, modulo its length. A request that would cross the end is moved down:
    /// `fold=36GB`.
    Fold(Range),
    /// Shifts addresses by this many bytes. A request that would begin before 0 is dropped: `shift=-10GiB`.
    Shift(i64),
    /// Maps all devices to one, each placed this many bytes after the previous: `stack=1TB`.
    Stack(u64),
    /// Multiplies arrivals, counted from the first, by a factor. Latencies stay unchanged, and a request that would
    /// arrive 292 years or more after time 0 is dropped. For example, `time-scale=0.5` makes the trace twice as fast.
    TimeScale(Factor),
    /// Multiplies addresses by a factor, rounded down to a multiple of 512; lengths stay unchanged: `address-scale=2`.
    AddressScale(Factor),
    /// Keeps a random sample of requests, selected by request number and seed: `sample=0.1`, `sample=0.1@7`.
    Sample(Share),
    /// Keeps the requests to a random share of 4 KiB blocks, selected by address and seed, which preserves reuse:
    /// `sample-addresses=0.01`.
    SampleAddresses(Share),
    /// Replaces unknown operations: `unknown=read`.
    Unknown(Operation),
    /// Removes names, dates, process IDs and the file's description of its devices: `strip-names`. Addresses, gaps,
    /// sizes, capacities and hashes of keys remain, so the trace may still be recognizable.
    StripNames,
}

/// A random share, selected by a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// The share, as given by the user.
    factor: Factor,
    /// Seed of the selection.
    seed: u64,
}

impl Share {
    fn takes(self, what: u64) -> bool {
        let limit = (u128::from(self.factor.numerator) << 64) / u128::from(self.factor.denominator);
        u128::from(hash(what ^ hash(self.seed))) < limit
    }
}

/// Hashes `value` with the finalizer of splitmix64 (Steele, Lea & Flood, OOPSLA 2014): every bit of the result depends
/// on every bit of `value`.
fn hash(value: u64) -> u64 {
    let mut mixed = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Block size of [`Step::SampleAddresses`], which keeps or drops whole blocks.
const SAMPLED_BLOCK_BYTES: u64 = 4096;
/// Alignment of scaled addresses.
const SECTOR_BYTES: u64 = 512;

impl Step {
    /// Returns whether the result for a request is independent of earlier requests.
    pub fn is_of_each_request(&self) -> bool {
        match self {
            Step::Kind(_)
            | Step::Device(_)
            | Step::Process(_)
            | Step::Clip(_)
            | Step::Fold(_)
            | Step::Shift(_)
            | Step::Stack(_)
            | Step::AddressScale(_)
            | Step::SampleAddresses(_)
            | Step::Unknown(_) => true,
            Step::Time(_) | Step::First(_) | Step::TimeScale(_) | Step::Sample(_) | Step::StripNames => false,
        }
    }
}

/// The steps applied to a trace, with their state.
#[derive(Debug)]
pub(crate) struct Applied {
    steps: Vec<State>,
}

/// A step and its state.
#[derive(Debug)]
struct State {
    step: Step,
    /// Arrival of the first request that the step received, in ns.
    first_ns: Option<u64>,
    /// Number of requests that the step received.
    met: u64,
    /// Whether the step will drop all further requests.
    is_over: bool,
    /// Whether the step accepts a device or process, for those seen so far.
    taken: FxHashMap<u32, bool>,
}

impl Applied {
    pub(crate) fn new(steps: &[Step]) -> Applied {
        let state = |step: &Step| State {
            step: step.clone(),
            first_ns: None,
            met: 0,
            is_over: false,
            taken: FxHashMap::default(),
        };
        Applied { steps: steps.iter().map(state).collect() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Returns whether no more requests will pass.
    pub(crate) fn is_over(&self) -> bool {
        self.steps.iter().any(|state| state.is_over)
    }

    /// Transforms a batch in place. `meta` is the metadata of the source.
    pub(crate) fn apply(&mut self, batch: &mut Vec<Record>, meta: &Meta) {
        for state in &mut self.steps {
            batch.retain_mut(|record| state.passes(record, meta));
        }
    }

    /// Adds the steps to `meta`, a copy of the source's metadata.
    pub(crate) fn describe(&self, meta: &mut Meta) {
        for state in &self.steps {
            match state.step {
                Step::StripNames => strip_names(meta),
                Step::Stack(_) => stack(meta),
                _ => {}
            }
            meta.steps.push(state.step.to_string());
        }
    }
}

impl State {
    /// Transforms a request; returns false if it is dropped.
    fn passes(&mut self, record: &mut Record, meta: &Meta) -> bool {
        let since_ns = record.arrival_ns - *self.first_ns.get_or_insert(record.arrival_ns);
        self.met += 1;
        match &self.step {
            Step::Kind(operations) => operations.contains(&record.operation),
            Step::Device(names) => {
                let name = || names.contains(&meta.devices[record.device as usize].name);
                *self.taken.entry(record.device).or_insert_with(name)
            }
            Step::Process(names) => {
                *self.taken.entry(record.process).or_insert_with(|| is_among(names, record.process, meta))
            }
            Step::Time(range) => {
                self.is_over |= since_ns >= range.to;
                (range.from..range.to).contains(&since_ns)
            }
            Step::First(limit) => {
                self.is_over |= self.met >= *limit;
                self.met <= *limit
            }
            Step::Clip(range) => clip(record, *range),
            Step::Fold(range) => {
                fold(record, *range);
                true
            }
            Step::Shift(bytes) => move_to(record, record.offset_bytes.checked_add_signed(*bytes)),
            Step::Stack(stride_bytes) => {
                let base = stride_bytes.checked_mul(u64::from(record.device));
                record.device = 0;
                move_to(record, base.and_then(|base| record.offset_bytes.checked_add(base)))
            }
            Step::TimeScale(factor) => {
                record.arrival_ns = (record.arrival_ns - since_ns).saturating_add(factor.of(since_ns));
                record.arrival_ns < TIME_NS_END
            }
            Step::AddressScale(factor) => {
                let scaled = factor.of(record.offset_bytes);
                move_to(record, Some(scaled - scaled % SECTOR_BYTES))
            }
            Step::Sample(share) => share.takes(self.met),
            Step::SampleAddresses(share) => {
                let block = record.offset_bytes / SAMPLED_BLOCK_BYTES;
                share.takes(block ^ hash(u64::from(record.device)))
            }
            Step::Unknown(operation) => {
                if record.operation == Operation::Unknown {
                    record.operation = *operation;
                }
                true
            }
            Step::StripNames => {
                record.arrival_ns = since_ns;
                true
            }
        }
    }
}

/// Returns whether a process is selected by its ID or name.
fn is_among(names: &[String], process: u32, meta: &Meta) -> bool {
    let Some(index) = process.checked_sub(1) else {
        return false;
    };
    let process = &meta.processes[index as usize];
    names.iter().any(|name| *name == process.name || name.parse() == Ok(process.pid))
}

fn clip(record: &mut Record, range: Range) -> bool {
    if record.length_bytes == 0 {
        return record.operation == Operation::Flush || (range.from..range.to).contains(&record.offset_bytes);
    }
    let (from, to) = (record.offset_bytes.max(range.from), record.end_bytes().min(range.to));
    if from >= to {
        return false;
    }
    (record.offset_bytes, record.length_bytes) = (from, (to - from) as u32);
    true
}

fn fold(record: &mut Record, range: Range) {
    let size = range.to - range.from;
    record.length_bytes = u64::from(record.length_bytes).min(size) as u32;
    let within = (record.offset_bytes % size).min(size - u64::from(record.length_bytes));
    record.offset_bytes = range.from + within;
}

/// Moves a request to a new offset; returns false if that is impossible.
fn move_to(record: &mut Record, offset_bytes: Option<u64>) -> bool {
    let fits = |offset: &u64| offset.checked_add(u64::from(record.length_bytes)).is_some_and(|end| end < BYTES_END);
    let Some(offset_bytes) = offset_bytes.filter(fits) else {
        return false;
    };
    record.offset_bytes = offset_bytes;
    true
}

/// Removes the names of devices, processes and files, process IDs, dates, and texts that quote them.
pub(crate) fn strip_names(meta: &mut Meta) {
    for (device, index) in meta.devices.iter_mut().zip(0..) {
        (device.name, device.model) = (format!("device {index}"), None);
    }
    for (process, number) in meta.processes.iter_mut().zip(1..) {
        (process.pid, process.name) = (number, String::new());
    }
    meta.origin.iter_mut().for_each(|origin| origin.file = "-".to_owned());
    if meta.clock != Clock::Order {
        meta.clock = Clock::Recording;
    }
    (meta.zero_unix_ns, meta.header) = (None, None);
    // Reject reasons and notes may quote lines and names, and so may earlier steps.
    meta.rejects.clear();
    meta.notes.clear();
    meta.steps.clear();
}

fn stack(meta: &mut Meta) {
    let names: Vec<&str> = meta.devices.iter().map(|device| &*device.name).collect();
    if names.len() > 1 {
        let name = names.join(" + ");
        meta.devices.truncate(1);
        meta.devices[0].name = name;
        meta.devices[0].capacity_bytes = None;
    }
}

#[cfg(test)]
mod tests;
