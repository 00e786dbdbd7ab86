//! [`Search`]: goes through the states that crashes may leave.

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_64;

use super::candidates::{SMALL, Stage, candidates};
use super::extents::Extents;
use super::hashes::Hashes;
use super::state::{CrashState, Member, Rules};
use super::walk::{Walk, Window, windows};
use crate::CrashError;
use crate::base::Base;
use crate::recording::{Event, Recording};

/// Settings of a search.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SearchOptions {
    /// The device's guarantees.
    #[serde(default)]
    pub rules: Rules,
    /// The first state to try.
    #[serde(default)]
    pub from: From,
    /// Seed of all random choices.
    #[serde(default)]
    pub seed: u64,
}

/// The start of a search.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum From {
    /// At the first mark; at the beginning if there is none.
    #[default]
    FirstMark,
    /// From the beginning.
    Beginning,
    /// At the first mark with this text.
    Mark(String),
}

/// Windows with at most this many states are exhausted.
const EXHAUST_MAX: f64 = 1024.0;
/// Number of windows that are visited in order of time, so that contents are carried forward; batches are ordered by
/// how likely faults are.
const BATCH: usize = 64;
/// Number of random rounds without a new state after which a search ends.
const VAIN_ROUNDS_MAX: u32 = 16;

/// Coverage of the possible states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Coverage {
    /// States returned: no two have the same contents and the same marks.
    pub states: u64,
    /// States skipped because their contents were already visited.
    pub duplicates: u64,
    /// Subsets of open changes that were tried, including torn ones, each once.
    pub subsets: u64,
    /// Number of possible subsets.
    pub possible: f64,
    /// Moments at which crashes were tried.
    pub windows: u64,
    /// Moments of which all subsets were tried.
    pub whole_windows: u64,
    /// Largest number of simultaneously open changes.
    pub largest_window: u64,
}

/// The states that crashes may leave, in an order that depends on a seed.
#[derive(Debug)]
pub struct Search {
    recording: Arc<Recording>,
    options: SearchOptions,
    windows: Vec<Window>,
    /// Indices into `windows`, the most interesting in the first batch.
    order: Vec<usize>,
    is_whole: Vec<bool>,
    /// Stages and windows of a round.
    visits: Vec<(Stage, usize)>,
    place: usize,
    round: usize,
    vain_rounds: u32,
    states_before_round: u64,
    waiting: VecDeque<CrashState>,
    scene: DurableMoment,
    contents: FxHashSet<u64>,
    subsets: FxHashSet<u64>,
    coverage: Coverage,
    moments: Vec<CrashWindow>,
}

/// A window: a moment at which crashes are tried.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CrashWindow {
    /// Number of events before it.
    pub events: usize,
    /// Time of the moment.
    pub at_ns: u64,
    /// Number of marks before it.
    pub marks: usize,
    /// Number of open changes.
    pub open: usize,
    /// Number of subsets of these, including torn ones.
    pub possible: f64,
}

/// A moment of a recording, with the hash of its durable contents.
#[derive(Debug)]
struct DurableMoment {
    walk: Walk,
    durable: Extents,
    sum: u64,
    hashes: Hashes,
}

impl Search {
    /// Creates a search over the initial contents.
    ///
    /// # Errors
    /// When there is no such mark, or an atom is no multiple of a block.
    pub fn new(recording: Arc<Recording>, base: &Base, options: SearchOptions) -> Result<Search, CrashError> {
        let atom_bytes = options.rules.atom(&recording);
        let block_bytes = u64::from(recording.device.block_bytes);
        if !atom_bytes.is_multiple_of(block_bytes) {
            let message = format!(
                "{atom_bytes} bytes for an atom; a multiple of its block size, {block_bytes} bytes, is allowed"
            );
            return Err(CrashError::of(recording.path(), message));
        }
        let keeps_order = !options.rules.regions.is_empty();
        let windows = windows(&recording, first_event(&recording, &options.from)?, keeps_order);
        let order = order(&windows, options.seed);
        let mut search = Search {
            visits: first_visits(&order),
            order,
            is_whole: vec![false; windows.len()],
            place: 0,
            round: 0,
            vain_rounds: 0,
            states_before_round: 0,
            waiting: VecDeque::new(),
            scene: DurableMoment::new(Hashes::new(base.again()?)),
            contents: FxHashSet::default(),
            subsets: FxHashSet::default(),
            coverage: Coverage { windows: windows.len() as u64, ..Coverage::default() },
            moments: Vec::with_capacity(windows.len()),
            recording,
            options,
            windows,
        };
        search.count();
        Ok(search)
    }

    /// Coverage so far.
    pub fn coverage(&self) -> Coverage {
        self.coverage
    }

    /// Returns the next state; `None` if all were tried, or random choices have found nothing new for a while.
    ///
    /// # Errors
    /// The file system's error.
    pub fn next_state(&mut self) -> Result<Option<CrashState>, CrashError> {
        loop {
            while let Some(state) = self.waiting.pop_front() {
                if self.subsets.insert(hash_of(&state)) {
                    self.coverage.subsets += 1;
                    if self.contents.insert(self.scene.hash(&self.recording, &self.options.rules, &state)?) {
                        self.coverage.states += 1;
                        return Ok(Some(state));
                    }
                    self.coverage.duplicates += 1;
                }
            }
            if !self.go_on()? {
                return Ok(None);
            }
        }
    }

    /// Starts the next round: the next stage in all windows, finally random choices. Returns false if nothing more is
    /// expected.
    fn next_round(&mut self) -> bool {
        self.place = 0;
        if let Some(&stage) = Stage::THEN.get(self.round) {
            self.visits = self.order.iter().map(|&number| (stage, number)).collect();
        } else {
            let is_vain = self.coverage.states == self.states_before_round;
            self.vain_rounds = if is_vain { self.vain_rounds + 1 } else { 0 };
            self.states_before_round = self.coverage.states;
        }
        self.round += 1;
        self.vain_rounds <= VAIN_ROUNDS_MAX && !self.is_whole.iter().all(|&is_whole| is_whole)
    }

    /// Moves to the next window; returns false if there is none.
    fn go_on(&mut self) -> Result<bool, CrashError> {
        if self.place == self.visits.len() && !self.next_round() {
            return Ok(false);
        }
        let (stage, number) = self.visits[self.place];
        self.place += 1;
        if self.is_whole[number] {
            return Ok(true);
        }
        let events = self.windows[number].events;
        self.scene.go_to(&self.recording, events)?;
        let members = self.options.rules.members(&self.recording, &self.scene.walk.open);
        let drawn = hash_of(&(self.options.seed, stage, number, self.round));
        let mut random = Xoshiro256PlusPlus::seed_from_u64(drawn);
        let states = candidates(stage, events, &members, EXHAUST_MAX, &mut random);
        let outcomes: f64 = members.iter().map(Member::outcomes).product();
        let is_whole = match stage {
            Stage::Ends => outcomes <= SMALL,
            Stage::All => outcomes <= EXHAUST_MAX,
            Stage::Prefixes(_)
            | Stage::Missing(_)
            | Stage::Surviving(_)
            | Stage::Torn(_)
            | Stage::Pairs
            | Stage::Drawn => false,
        };
        if is_whole {
            self.is_whole[number] = true;
            self.coverage.whole_windows += 1;
        }
        self.waiting.extend(states.into_iter().map(|state| self.options.rules.lawful(&members, state)));
        Ok(true)
    }

    /// The windows, in order.
    pub fn moments(&self) -> &[CrashWindow] {
        &self.moments
    }

    /// Counts the possible states.
    fn count(&mut self) {
        let mut walk = Walk::default();
        for window in &self.windows {
            while walk.events < window.events {
                walk.step(&self.recording, |_, _| {});
            }
            let members = self.options.rules.members(&self.recording, &walk.open);
            let last = walk.events.saturating_sub(1);
            let moment = CrashWindow {
                events: walk.events,
                at_ns: self.recording.times_ns.get(last).copied().unwrap_or(0),
                marks: walk.marks,
                open: members.len(),
                possible: self.options.rules.possible(&members),
            };
            self.coverage.possible = (self.coverage.possible + moment.possible).min(f64::MAX);
            self.coverage.largest_window = self.coverage.largest_window.max(moment.open as u64);
            self.moments.push(moment);
        }
    }
}

impl DurableMoment {
    fn new(hashes: Hashes) -> DurableMoment {
        DurableMoment { walk: Walk::default(), durable: Extents::default(), sum: 0, hashes }
    }

    fn go_to(&mut self, recording: &Recording, events: usize) -> Result<(), CrashError> {
        if events < self.walk.events {
            self.walk = Walk::default();
            self.durable.clear();
            self.sum = 0;
        }
        let mut settled = Vec::new();
        while self.walk.events < events {
            self.walk.step(recording, |change, ranges| settled.extend(ranges.iter().map(|&range| (range, change))));
            for (range, change) in settled.drain(..) {
                for (part, held) in self.durable.parts(range) {
                    self.sum = self.sum.wrapping_sub(self.hashes.of(recording, part, held)?);
                }
                self.sum = self.sum.wrapping_add(self.hashes.of(recording, range, Some(change))?);
                self.durable.put(range, change);
            }
        }
        Ok(())
    }

    /// Hash of the contents and of the number of marks that they have to satisfy.
    fn hash(&mut self, recording: &Recording, rules: &Rules, state: &CrashState) -> Result<u64, CrashError> {
        let mut sum = self.sum;
        for (range, change) in state.overlay(recording, rules.atom(recording), &self.walk.open).iter() {
            for (part, held) in self.durable.parts(range) {
                sum = sum.wrapping_sub(self.hashes.of(recording, part, held)?);
            }
            sum = sum.wrapping_add(self.hashes.of(recording, range, Some(change))?);
        }
        Ok(hash_of(&(sum, self.walk.marks)))
    }
}

/// The event after which crashes are tried.
fn first_event(recording: &Recording, from: &From) -> Result<usize, CrashError> {
    let mark = |is_it: &dyn Fn(&str) -> bool| {
        let is_it = |event: &Event| matches!(event, Event::Mark(mark) if is_it(&recording.marks[*mark as usize]));
        recording.events.iter().position(is_it).map(|place| place + 1)
    };
    match from {
        From::Beginning => Ok(0),
        From::FirstMark => Ok(mark(&|_| true).unwrap_or(0)),
        From::Mark(text) => {
            mark(&|mark| mark == text).ok_or_else(|| CrashError::of(recording.path(), format!("has no mark {text:?}")))
        }
    }
}

/// A few of each kind, batch by batch: if states are expensive, the most interesting windows have had some of all kinds
/// before time runs out.
fn first_visits(order: &[usize]) -> Vec<(Stage, usize)> {
    let in_batch = |batch: &[usize]| -> Vec<(Stage, usize)> {
        Stage::FIRST.iter().flat_map(|&stage| batch.iter().map(move |&number| (stage, number))).collect()
    };
    order.chunks(BATCH).flat_map(in_batch).collect()
}

/// Orders windows by interest, but within a batch by time.
fn order(windows: &[Window], seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..windows.len()).collect();
    order.sort_by_key(|&place| (u32::MAX - windows[place].interest, hash_of(&(seed, place))));
    for batch in order.chunks_mut(BATCH) {
        batch.sort_unstable();
    }
    order
}

fn hash_of(value: &impl Hash) -> u64 {
    let mut hasher = XxHash3_64::with_seed(0);
    value.hash(&mut hasher);
    hasher.finish()
}
