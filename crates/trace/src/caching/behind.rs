//! [`CacheBefore`]: a cache in front of a system: which requests reach the system, and the resulting response times
//! before the cache.

use std::collections::VecDeque;

use headstack_cache::CachePolicy;
use headstack_workload::{Kind, Recorded, Request};

use super::cell::{BackRequest, Cell};
use super::options::{LabOptions, Unit};
use super::references::{Ids, Reference};
use crate::analyze::sample::Sample;
use crate::error::TraceError;
use crate::meta::{Clock, Meta};
use crate::record::{Operation, Record};
use crate::requests::note_of_places;
use crate::stamps::Stamps;

/// A request to the cache that is not answered yet.
struct Front {
    is_write: bool,
    /// Number of system requests that it waits for.
    waits_for: u32,
    /// Longest response of the completed ones.
    behind_ns: u64,
}

/// A cache of one policy and size in front of a system. The owner of the system takes requests from it, and reports
/// their completions.
pub struct CacheBefore {
    cell: Cell,
    ids: Ids,
    unit: Unit,
    hit_ns: u64,
    references: Vec<Reference>,
    device: Option<u32>,
    fronts: VecDeque<Front>,
    /// Number of the first one.
    first_front: u64,
    /// For each incomplete system request, in order of issue: the request that waits for it.
    waiting: VecDeque<Option<u64>>,
    responses: Vec<(bool, u64)>,
    stamps: Stamps,
}

impl CacheBefore {
    /// Creates an empty cache, whose hits take `hit_ns`.
    ///
    /// # Errors
    /// When options are out of range.
    pub fn new(policy: CachePolicy, size: u64, options: &LabOptions, hit_ns: u64) -> Result<CacheBefore, TraceError> {
        options.check()?;
        let mut cell = Cell::online(policy, size, options);
        cell.ledger.to_back = Some(Vec::new());
        Ok(CacheBefore {
            cell,
            ids: Ids::new(options.unit, Sample::all(options.seed)),
            unit: options.unit,
            hit_ns,
            references: Vec::new(),
            device: None,
            fronts: VecDeque::new(),
            first_front: 0,
            waiting: VecDeque::new(),
            responses: Vec::new(),
            stamps: Stamps::default(),
        })
    }

    /// Passes the transfers of requests to the cache, and adds the resulting system requests.
    ///
    /// # Errors
    /// When requests go to a second device, since there is only one system, or the trace has no times.
    pub fn pass_to_cache(
        &mut self,
        records: &[Record],
        meta: &Meta,
        to_back: &mut Vec<Recorded>,
    ) -> Result<(), TraceError> {
        if meta.clock == Clock::Order {
            let message = "times are not recorded, so misses cannot be replayed on a system behind the cache";
            return Err(TraceError::of_file(&meta.origin[0].file, message));
        }
        for record in records {
            self.references.clear();
            self.ids.refer(std::slice::from_ref(record), &mut self.references);
            if self.references.is_empty() {
                continue;
            }
            if *self.device.get_or_insert(record.device) != record.device {
                let message = "its requests went to several devices: choose one with the step device=NAME, or concatenate \
                               them with stack=SIZE";
                return Err(TraceError::of_file(&meta.origin[0].file, message));
            }
            self.cell.run(&self.references, 0, &self.ids);
            let transfers = self.cell.ledger.to_back.as_mut().map(std::mem::take).unwrap_or_default();
            self.stamps.add(record.arrival_ns);
            let number = self.first_front + self.fronts.len() as u64;
            let waits_for = transfers.iter().filter(|request| !request.is_destage).count() as u32;
            let is_write = record.operation == Operation::Write;
            self.fronts.push_back(Front { is_write, waits_for, behind_ns: 0 });
            for request in transfers {
                self.waiting.push_back((!request.is_destage).then_some(number));
                to_back.push(self.recorded(&request, record.arrival_ns));
            }
        }
        self.answer();
        Ok(())
    }

    fn recorded(&self, transfers: &BackRequest, arrival_ns: u64) -> Recorded {
        let (_, value) = self.ids.place(transfers.id);
        let offset_bytes = match self.unit {
            Unit::Blocks { bytes } => value * u64::from(bytes),
            Unit::Objects | Unit::ObjectBytes => value,
        };
        let kind = if transfers.is_write { Kind::Write } else { Kind::Read };
        let length_bytes = transfers.length_bytes;
        let request = Request { kind, offset_bytes, length_bytes, force_unit_access: false, ordered: false };
        Recorded { arrival_ns, completion_ns: None, request, pre_flush: false }
    }

    /// Notes that the next system request, in order of issue, is complete after that time.
    pub fn completed(&mut self, response_ns: u64) {
        let Some(number) = self.waiting.pop_front().flatten() else { return };
        let front = &mut self.fronts[(number - self.first_front) as usize];
        front.waits_for -= 1;
        front.behind_ns = front.behind_ns.max(response_ns);
        self.answer();
    }

    fn answer(&mut self) {
        while let Some(front) = self.fronts.front().filter(|front| front.waits_for == 0) {
            self.responses.push((front.is_write, self.hit_ns + front.behind_ns));
            self.fronts.pop_front();
            self.first_front += 1;
        }
    }

    /// Notes on limits of these response times: a coarse clock, and offsets that name objects.
    pub fn notes(&self, meta: &Meta) -> Vec<String> {
        self.stamps.note(meta).into_iter().chain(note_of_places(meta)).collect()
    }

    /// Takes the response times since the last call, each with whether it is a write's.
    pub fn responses(&mut self) -> std::vec::Drain<'_, (bool, u64)> {
        self.responses.drain(..)
    }
}
