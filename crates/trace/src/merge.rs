//! [`Merge`]: merges several traces by time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;

use crate::collect::REJECTS_KEPT;
use crate::error::TraceError;
use crate::meta::{Meta, Process};
use crate::record::Record;
use crate::recording::{Next, Recording};

/// Number of requests merged at a time.
const BATCH: usize = 1 << 16;

/// Merges parts that are in order of arrival. Devices and processes with the same name are identified.
pub(crate) struct Merge {
    parts: Vec<Stream>,
    /// Arrival of the next request of each part, and the part.
    heap: BinaryHeap<Reverse<(u64, usize)>>,
    meta: Meta,
    devices: FxHashMap<String, u32>,
    processes: FxHashMap<Process, u32>,
    is_begun: bool,
}

struct Stream {
    part: Recording,
    batch: Vec<Record>,
    next: usize,
    /// Merged index of each of its devices and processes.
    devices: Vec<u32>,
    processes: Vec<u32>,
}

impl Merge {
    /// Merges parts with a common clock.
    pub(crate) fn new(parts: Vec<Recording>) -> Result<Merge, TraceError> {
        let clock = parts[0].meta().clock;
        for part in &parts {
            let other = part.meta().clock;
            if other != clock {
                let message = format!("its times count from {other:?}, but those of earlier files from {clock:?}");
                return Err(TraceError::of_file(&part.name, message.to_lowercase()));
            }
        }
        let stream = |part| Stream { part, batch: Vec::new(), next: 0, devices: Vec::new(), processes: Vec::new() };
        let mut merge = Merge {
            parts: parts.into_iter().map(stream).collect(),
            heap: BinaryHeap::new(),
            meta: Meta::default(),
            devices: FxHashMap::default(),
            processes: FxHashMap::default(),
            is_begun: false,
        };
        merge.describe();
        Ok(merge)
    }

    /// Fills `batch`, which must be empty.
    pub(crate) fn next(&mut self, batch: &mut Vec<Record>) -> Result<Next, TraceError> {
        if !self.is_begun {
            self.is_begun = true;
            for index in 0..self.parts.len() {
                self.refill(index)?;
            }
        }
        while batch.len() < BATCH {
            let Some(Reverse((_, index))) = self.heap.pop() else {
                break;
            };
            let limit = self.heap.peek().map_or((u64::MAX, usize::MAX), |&Reverse(other)| other);
            let stream = &mut self.parts[index];
            // Mostly a part yields several requests before another's turn comes.
            while let Some(record) = stream.batch.get(stream.next) {
                if (record.arrival_ns, index) > limit || batch.len() >= BATCH {
                    break;
                }
                let mut record = *record;
                record.device = stream.devices[record.device as usize];
                record.process = stream.processes[record.process as usize];
                batch.push(record);
                stream.next += 1;
            }
            match stream.batch.get(stream.next) {
                Some(record) => self.heap.push(Reverse((record.arrival_ns, index))),
                None => self.refill(index)?,
            }
        }
        if batch.is_empty() {
            self.describe();
            return Ok(Next::End);
        }
        Ok(Next::Batch)
    }

    pub(crate) fn meta(&self) -> &Meta {
        &self.meta
    }

    /// Name of the first part.
    pub(crate) fn name(&self) -> &str {
        &self.parts[0].part.name
    }

    /// Reads more of a part, and adds its names.
    fn refill(&mut self, index: usize) -> Result<(), TraceError> {
        let stream = &mut self.parts[index];
        (stream.next, _) = (0, stream.batch.clear());
        match stream.part.next(&mut stream.batch)? {
            // Also for a part that yields nothing: numbers of names do not depend on the selection of requests.
            Next::Batch | Next::End => {}
            Next::NewRun => {
                let message = "is far from the order of arrival; import it separately first to sort it";
                return Err(TraceError::of_file(&stream.part.name, message));
            }
        }
        for device in &stream.part.meta().devices[stream.devices.len()..] {
            let merged = *self.devices.entry(device.name.clone()).or_insert_with(|| {
                self.meta.devices.push(device.clone());
                self.meta.devices.len() as u32 - 1
            });
            stream.devices.push(merged);
        }
        if stream.processes.is_empty() {
            // Not recorded stays so.
            stream.processes.push(0);
        }
        for process in &stream.part.meta().processes[stream.processes.len() - 1..] {
            let merged = *self.processes.entry(process.clone()).or_insert_with(|| {
                self.meta.processes.push(process.clone());
                self.meta.processes.len() as u32
            });
            stream.processes.push(merged);
        }
        if let Some(first) = stream.batch.first() {
            self.heap.push(Reverse((first.arrival_ns, index)));
        }
        Ok(())
    }

    /// Merges the metadata of the parts.
    fn describe(&mut self) {
        let meta = &mut self.meta;
        let first = self.parts[0].part.meta();
        (meta.clock, meta.zero_unix_ns, meta.response) = (first.clock, first.zero_unix_ns, first.response);
        (meta.origin, meta.counts, meta.rejected, meta.resolution_ns) = Default::default();
        (meta.rejects, meta.notes) = Default::default();
        for stream in &self.parts {
            let part = stream.part.meta();
            meta.origin.extend(part.origin.iter().cloned());
            meta.resolution_ns = meta.resolution_ns.max(part.resolution_ns);
            meta.address_space = meta.address_space.max(part.address_space);
            meta.rejected += part.rejected;
            meta.rejects.extend(part.rejects.iter().cloned());
            meta.rejects.truncate(REJECTS_KEPT);
            part.counts.iter().for_each(|(what, &number)| *meta.counts.entry(what.clone()).or_default() += number);
            part.notes.iter().for_each(|note| meta.note(note));
            // Steps of one part were not applied to all.
            part.steps.iter().for_each(|step| meta.note(format!("{}: {step}", part.origin[0].file)));
            if part.zero_unix_ns != meta.zero_unix_ns {
                meta.zero_unix_ns = None;
            }
            if part.response != meta.response {
                meta.response = None;
            }
        }
    }
}
