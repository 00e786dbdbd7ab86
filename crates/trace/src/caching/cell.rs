//! [`Cell`]: one cache of the lab, with a policy, a size, and counts of reads and writes.

use headstack_cache::{Belady, CachePolicy, List, Nodes, Policy, Replacement, Task};

use super::options::{Admission, LabOptions, Unit, Writes};
use super::references::{Ids, Reference};
use super::report::Counts;
use crate::analyze::table::mix;

/// A request to the system behind a cache, for a range of consecutive ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BackRequest {
    pub id: u32,
    pub count: u32,
    pub length_bytes: u32,
    pub is_write: bool,
    /// Whether this is a destage, which no request waits for.
    pub is_destage: bool,
}

/// Dirty ids, ordered by age.
struct Dirty {
    nodes: Nodes,
    by_age: List,
    units: u64,
    units_max: u64,
    run_bytes: u64,
}

/// Options, contents and counters of a cache.
pub(super) struct Ledger {
    capacity: u64,
    held: u64,
    /// Seed of the policies' random choices.
    seed: u64,
    unit: Unit,
    writes: Writes,
    admission: Admission,
    /// Bitmap of ids that were referenced before, for admission on the second access.
    seen: Vec<u64>,
    misses: u64,
    dirty: Option<Dirty>,
    pub counts: Counts,
    /// Whether the next reference may continue the current read, or the current write, of the system behind the cache.
    open: [bool; 2],
    /// Requests to the system behind the cache, if they are collected.
    pub to_back: Option<Vec<BackRequest>>,
}

/// Returns the key of an id for policies that count by hash.
fn key(id: u32, seed: u64) -> u64 {
    u64::from(id) ^ seed << 32
}

enum Rule {
    Online(Replacement),
    Belady(Box<Belady>),
}

/// A cache with one policy and size.
pub(super) struct Cell {
    rule: Rule,
    pub ledger: Ledger,
}

impl Cell {
    pub fn online(policy: CachePolicy, capacity: u64, options: &LabOptions) -> Cell {
        let rule = Rule::Online(Replacement::new(policy, capacity, false));
        Cell { rule, ledger: Ledger::new(capacity, options) }
    }

    pub fn belady(policy: Belady, capacity: u64, options: &LabOptions) -> Cell {
        Cell { rule: Rule::Belady(Box::new(policy)), ledger: Ledger::new(capacity, options) }
    }

    /// Processes references; `number` is the number of the first one.
    pub fn run(&mut self, references: &[Reference], number: usize, ids: &Ids) {
        let run = Run { ledger: &mut self.ledger, references, number, ids };
        match &mut self.rule {
            Rule::Online(policy) => policy.carry_out(run),
            Rule::Belady(policy) => run.with(&mut **policy),
        }
    }
}

struct Run<'a> {
    ledger: &'a mut Ledger,
    references: &'a [Reference],
    number: usize,
    ids: &'a Ids,
}

impl Task for Run<'_> {
    fn with<P: Policy>(self, policy: &mut P) {
        let Run { ledger, references, number, ids } = self;
        policy.nodes().reach(ids.len());
        if ledger.is_plain() {
            ledger.run_plain(policy, references, number);
        } else {
            for (offset, reference) in references.iter().enumerate() {
                policy.is_at(number + offset);
                ledger.refer(policy, reference, ids);
            }
        }
    }
}

impl Ledger {
    fn new(capacity: u64, options: &LabOptions) -> Ledger {
        let dirty = (options.writes == Writes::Back).then(|| Dirty {
            nodes: Nodes::new(false),
            by_age: List::default(),
            units: 0,
            units_max: (capacity as f64 * options.dirty_share) as u64,
            run_bytes: u64::from(options.destage_bytes),
        });
        let LabOptions { unit, writes, admission, seed, .. } = *options;
        let (counts, seen) = (Counts::default(), Vec::new());
        Ledger {
            capacity,
            held: 0,
            seed,
            unit,
            writes,
            admission,
            seen,
            misses: 0,
            dirty,
            counts,
            open: [false; 2],
            to_back: None,
        }
    }

    /// Returns whether every reference is admitted with weight 1, and writes are write-through.
    fn is_plain(&self) -> bool {
        let unit_weights = matches!(self.unit, Unit::Blocks { .. } | Unit::Objects);
        unit_weights && self.writes == Writes::Through && self.admission == Admission::All && self.to_back.is_none()
    }

    fn run_plain<P: Policy>(&mut self, policy: &mut P, references: &[Reference], number: usize) {
        let mut before_missed = false;
        let counts = &mut self.counts;
        for (offset, reference) in references.iter().enumerate() {
            let Reference { id, is_write, is_first, length_bytes } = *reference;
            policy.is_at(number + offset);
            let (hit, kind) = (policy.holds(id), usize::from(is_write));
            counts.references[kind] += 1;
            if hit {
                counts.hits[kind] += 1;
                policy.hit(id);
            } else {
                policy.recall(id);
                if self.held == self.capacity {
                    policy.replace();
                } else {
                    self.held += 1;
                }
                policy.admit(id, 1, key(id, self.seed));
            }
            // Batches never split a request, so no request continues from the previous batch.
            let begins = is_first || !before_missed;
            before_missed = !hit && !is_write;
            let bytes = u64::from(self.unit.bytes_of(length_bytes));
            if is_write {
                counts.traffic.write_bytes += bytes;
                counts.traffic.write_operations += u64::from(is_first);
            } else if !hit {
                counts.traffic.read_bytes += bytes;
                counts.traffic.read_operations += u64::from(begins);
            }
        }
    }

    fn refer<P: Policy>(&mut self, policy: &mut P, reference: &Reference, ids: &Ids) {
        let Reference { id, is_write, is_first, .. } = *reference;
        let kind = usize::from(is_write);
        if is_first {
            self.open = [false; 2];
        }
        self.counts.references[kind] += 1;
        if policy.holds(id) {
            self.counts.hits[kind] += 1;
            self.open[0] = false;
            match (is_write, self.writes) {
                (true, Writes::ReadOnly) => {
                    self.held -= self.weight_of(policy, id);
                    policy.discard(id);
                    self.pass_on(reference);
                }
                (true, Writes::Through | Writes::Around) => {
                    policy.hit(id);
                    self.pass_on(reference);
                }
                (true, Writes::Back) => {
                    policy.hit(id);
                    self.write(reference, ids);
                }
                (false, _) => policy.hit(id),
            }
            return;
        }
        let goes_by = is_write && matches!(self.writes, Writes::Around | Writes::ReadOnly);
        let is_taken = !goes_by && self.admits(reference);
        if !is_write || !is_taken || self.writes != Writes::Back {
            self.pass_on(reference);
        }
        if is_taken {
            self.take(policy, reference, ids);
            if is_write && self.writes == Writes::Back {
                self.write(reference, ids);
            }
        }
    }

    fn take<P: Policy>(&mut self, policy: &mut P, reference: &Reference, ids: &Ids) {
        let weight = self.unit.weight(reference.length_bytes);
        policy.recall(reference.id);
        while self.held + u64::from(weight) > self.capacity {
            let gone = policy.replace();
            self.held -= self.weight_of(policy, gone);
            if self.dirty.as_ref().is_some_and(|dirty| dirty.nodes.is_held(gone)) {
                self.destage(gone, ids);
            }
        }
        policy.admit(reference.id, weight, key(reference.id, self.seed));
        self.held += u64::from(weight);
    }

    fn weight_of<P: Policy>(&self, policy: &mut P, id: u32) -> u64 {
        u64::from(policy.nodes().weight(id))
    }

    fn admits(&mut self, reference: &Reference) -> bool {
        self.misses += 1;
        let fits = u64::from(self.unit.weight(reference.length_bytes)) <= self.capacity;
        fits && match self.admission {
            Admission::All => true,
            Admission::UpTo { length_bytes } => reference.length_bytes <= length_bytes,
            // Admits a fixed share of misses, selected by a hash of the miss number, which is the same in every cache.
            Admission::Share { share } => {
                (mix(self.misses ^ self.seed << 40) >> 11) as f64 / (1u64 << 53) as f64 > 1.0 - share
            }
            Admission::Second => {
                let (word, bit) = (reference.id as usize / 64, reference.id % 64);
                if self.seen.len() <= word {
                    self.seen.resize(word + 1, 0);
                }
                let was_seen = self.seen[word] >> bit & 1 == 1;
                self.seen[word] |= 1 << bit;
                was_seen
            }
        }
    }

    /// Processes a write to a cached id and marks the id as dirty.
    fn write(&mut self, reference: &Reference, ids: &Ids) {
        let bytes = self.unit.bytes_of(reference.length_bytes);
        let weight = u64::from(self.unit.weight(reference.length_bytes));
        let Some(dirty) = &mut self.dirty else { return };
        if dirty.nodes.is_held(reference.id) {
            return;
        }
        dirty.nodes.hold(reference.id, bytes, 0);
        dirty.by_age.push(&mut dirty.nodes, reference.id);
        dirty.units += weight;
        self.counts.dirty_bytes = dirty.by_age.weight;
        while let Some(dirty) = self.dirty.as_ref().filter(|dirty| dirty.units > dirty.units_max) {
            self.destage(dirty.by_age.oldest, ids);
        }
    }

    /// Destages a dirty id together with dirty neighbors. All of them stay in the cache.
    fn destage(&mut self, id: u32, ids: &Ids) {
        let Some(dirty) = &mut self.dirty else { return };
        let mut run = std::collections::VecDeque::from([id]);
        if let Unit::Blocks { bytes } = self.unit {
            let (device, value) = ids.place(id);
            let most = (dirty.run_bytes / u64::from(bytes)).max(1);
            let is_dirty = |value: u64| ids.find(device, value).filter(|&id| dirty.nodes.is_held(id));
            let above = (value + 1..value + most).map_while(is_dirty);
            run.extend(above);
            let room = most - run.len() as u64;
            let below = (value.saturating_sub(room)..value).rev().map_while(is_dirty);
            below.for_each(|id| run.push_front(id));
        }
        let mut bytes = 0;
        for &id in &run {
            let weight = dirty.nodes.weight(id);
            bytes += weight;
            dirty.by_age.remove(&mut dirty.nodes, id);
            dirty.nodes.forget(id);
            dirty.units -= u64::from(if self.unit == Unit::ObjectBytes { weight } else { 1 });
        }
        self.counts.traffic.write_operations += 1;
        self.counts.traffic.write_bytes += u64::from(bytes);
        self.counts.dirty_bytes = dirty.by_age.weight;
        if let Some(to_back) = &mut self.to_back {
            let (id, count) = (run[0], run.len() as u32);
            to_back.push(BackRequest { id, count, length_bytes: bytes, is_write: true, is_destage: true });
        }
    }

    /// Sends the reference to the system behind the cache, as a continuation of the previous request if possible.
    fn pass_on(&mut self, reference: &Reference) {
        let kind = usize::from(reference.is_write);
        let continues = std::mem::replace(&mut self.open[kind], true);
        let bytes = self.unit.bytes_of(reference.length_bytes);
        let traffic = &mut self.counts.traffic;
        let (operations, sum) = match reference.is_write {
            false => (&mut traffic.read_operations, &mut traffic.read_bytes),
            true => (&mut traffic.write_operations, &mut traffic.write_bytes),
        };
        *operations += u64::from(!continues);
        *sum += u64::from(bytes);
        let Some(to_back) = &mut self.to_back else { return };
        let is_same = |last: &&mut BackRequest| continues && !last.is_destage && last.is_write == reference.is_write;
        match to_back.iter_mut().rev().find(is_same) {
            Some(last) => {
                last.count += 1;
                last.length_bytes += bytes;
            }
            None => to_back.push(BackRequest {
                id: reference.id,
                count: 1,
                length_bytes: bytes,
                is_write: reference.is_write,
                is_destage: false,
            }),
        }
    }
}
