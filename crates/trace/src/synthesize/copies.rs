//! The trace's history, played again and again: a copy of the footprint each, in turns.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use headstack_workload::{Purpose, Random};

use super::bursts::{Played, Window};
use super::places::Places;
use crate::error::TraceError;
use crate::reader::TraceReader;
use crate::record::{NOT_RECORDED, Record};

/// Opens the trace: once to learn from it, then for each copy and lap.
pub type Open<'a> = dyn Fn() -> Result<TraceReader, TraceError> + Sync + 'a;

/// Requests of a window: what is held in memory, and what keeps its place in the history.
const WINDOW: usize = 1 << 14;
/// Requests after which another copy has its turn, even without a pause.
const TURN_MAX: u64 = 256;

/// One that plays the history on its own pieces.
struct Copy {
    number: u64,
    /// Its part of the requests, against that of the first.
    weight: f64,
    issued: f64,
    /// Times that it came to the history's end.
    lap: u64,
    reader: TraceReader,
    batch: Vec<Record>,
    at: usize,
    last_ns: Option<u64>,
    /// Completions as recorded, and those that nobody has answered.
    in_flight: BinaryHeap<Reverse<u64>>,
    unanswered: VecDeque<u64>,
    random: Random,
    played: std::vec::IntoIter<Played>,
    next: Option<Played>,
}

impl Copy {
    fn begin(open: &Open, number: u64, weight: f64, seed: u64) -> Result<Copy, TraceError> {
        Ok(Copy {
            number,
            weight,
            issued: 0.0,
            lap: 0,
            reader: open()?,
            batch: Vec::new(),
            at: 0,
            last_ns: None,
            in_flight: BinaryHeap::new(),
            unanswered: VecDeque::new(),
            // Copies differ by the golden ratio's bits, as streams of SplitMix64 do.
            random: Random::new(seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15), Purpose::Permutation),
            played: Vec::new().into_iter(),
            next: None,
        })
    }

    /// Leaves out the first requests.
    fn skip(&mut self, requests: u64) -> Result<(), TraceError> {
        let mut left = requests;
        while left > 0 && self.reader.next_batch(&mut self.batch)? {
            let skipped = left.min(self.batch.len() as u64);
            self.at = skipped as usize;
            left -= skipped;
        }
        Ok(())
    }

    /// Reads up to a window, less at the end of the history; whether there was any request.
    fn fill(&mut self, lap_gap_ns: u64) -> Result<bool, TraceError> {
        let mut requests = Vec::with_capacity(WINDOW);
        while requests.len() < WINDOW {
            if self.at == self.batch.len() {
                self.at = 0;
                self.batch.clear();
                if !self.reader.next_batch(&mut self.batch)? {
                    break;
                }
                continue;
            }
            let record = self.batch[self.at];
            self.at += 1;
            let gap_ns = self.last_ns.map_or(lap_gap_ns, |last_ns| record.arrival_ns.saturating_sub(last_ns));
            self.last_ns = Some(record.arrival_ns);
            let think_ns = self.think_ns(&record);
            requests.push(Played { record, gap_ns, think_ns, goes_on: false });
        }
        let any = !requests.is_empty();
        self.played = Window::of(requests).played(&mut self.random).into_iter();
        Ok(any)
    }

    /// Since the completion that a request answers: the first that no other has answered.
    fn think_ns(&mut self, record: &Record) -> u64 {
        while let Some(&Reverse(at_ns)) = self.in_flight.peek().filter(|at| at.0 <= record.arrival_ns) {
            self.in_flight.pop();
            self.unanswered.push_back(at_ns);
        }
        if record.response_ns != NOT_RECORDED {
            self.in_flight.push(Reverse(record.arrival_ns.saturating_add(record.response_ns)));
        }
        self.unanswered.pop_front().map_or(0, |at_ns| record.arrival_ns - at_ns)
    }

    /// Begins the history again at its end.
    fn refill(&mut self, open: &Open, lap_gap_ns: u64) -> Result<(), TraceError> {
        while self.next.is_none() {
            self.next = self.played.next();
            if self.next.is_none() && !self.fill(lap_gap_ns)? {
                self.reader = open()?;
                self.lap += 1;
                (self.last_ns, self.at) = (None, 0);
                self.batch.clear();
                self.in_flight.clear();
                self.unanswered.clear();
            }
        }
        Ok(())
    }
}

/// All copies, of which one has its turn.
pub(super) struct Copies<'a> {
    open: &'a Open<'a>,
    places: &'a Places,
    copies: Vec<Copy>,
    turn: usize,
    of_turn: u64,
    mean_gap_ns: u64,
}

impl<'a> Copies<'a> {
    /// So many copies of a history of `requests`, which must be some; the last may be part of one.
    pub(super) fn begin(
        open: &'a Open<'a>,
        places: &'a Places,
        footprint: f64,
        (requests, mean_gap_ns): (u64, u64),
        seed: u64,
    ) -> Result<Copies<'a>, TraceError> {
        let count = footprint.ceil() as u64;
        let copy = |number: u64| {
            let mut copy = Copy::begin(open, number, (footprint - number as f64).min(1.0), seed)?;
            // Each at another part of it, so that their bursts do not come together.
            copy.skip(requests * number / count)?;
            Ok::<Copy, TraceError>(copy)
        };
        let copies = (0..count).map(copy).collect::<Result<_, _>>()?;
        Ok(Copies { open, places, copies, turn: 0, of_turn: 0, mean_gap_ns })
    }

    /// The next request, at its new place.
    pub(super) fn next(&mut self) -> Result<Played, TraceError> {
        self.copies[self.turn].refill(self.open, self.mean_gap_ns)?;
        let next = self.copies[self.turn].next.as_ref().expect("it was just filled");
        let is_pause = !next.goes_on && (next.gap_ns > self.mean_gap_ns || self.of_turn >= TURN_MAX);
        if is_pause && self.copies.len() > 1 {
            let behind = |copy: &Copy| copy.issued / copy.weight;
            let least = (0..self.copies.len())
                .min_by(|&one, &other| behind(&self.copies[one]).total_cmp(&behind(&self.copies[other])));
            (self.turn, self.of_turn) = (least.expect("there is a copy"), 0);
            self.copies[self.turn].refill(self.open, self.mean_gap_ns)?;
        }
        let copy = &mut self.copies[self.turn];
        copy.issued += 1.0;
        self.of_turn += 1;
        let mut played = copy.next.take().expect("it was just filled");
        played.record.offset_bytes = self.places.offset_bytes(&played.record, copy.number, copy.lap);
        Ok(played)
    }
}
