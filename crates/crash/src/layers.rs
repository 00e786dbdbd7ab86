//! [`Layers`]: the contents of a device after a crash in layers: the initial contents, the durable changes, and the
//! surviving part of the others. Nothing is copied: a range is resolved to the change that provides it.

use std::sync::Arc;

use crate::CrashError;
use crate::base::Base;
use crate::recording::Recording;
use crate::states::extents::{Extents, Range, Version};
use crate::states::walk::Walk;
use crate::states::{CrashState, Rules};

/// The layers of one state.
#[derive(Debug)]
pub(crate) struct Layers {
    pub(crate) recording: Arc<Recording>,
    pub(crate) base: Base,
    atom_bytes: u64,
    walk: Walk,
    durable: Extents,
    /// Changes above the durable ones.
    over: Extents,
}

impl Layers {
    /// Creates the layers of the initial state.
    pub(crate) fn new(recording: Arc<Recording>, base: &Base, rules: &Rules) -> Result<Layers, CrashError> {
        Ok(Layers {
            atom_bytes: rules.atom(&recording),
            recording,
            base: base.again()?,
            walk: Walk::default(),
            durable: Extents::default(),
            over: Extents::default(),
        })
    }

    pub(crate) fn capacity_bytes(&self) -> u64 {
        self.recording.device.capacity_bytes
    }

    /// Changes to a state, and returns the ranges that may differ from the previous one, in order.
    pub(crate) fn take(&mut self, state: &CrashState) -> Result<Vec<Range>, CrashError> {
        let events = self.recording.events.len();
        if state.events > events {
            let message =
                format!("has {events} events; the state after event {} is not one of its states", state.events);
            return Err(CrashError::of(self.recording.path(), message));
        }
        let mut touched: Vec<Range> = self.over.iter().map(|(range, _)| range).collect();
        if state.events < self.walk.events {
            self.walk = Walk::default();
            touched.extend(self.durable.iter().map(|(range, _)| range));
            self.durable.clear();
        }
        while self.walk.events < state.events {
            let durable = &mut self.durable;
            self.walk.step(&self.recording, |change, ranges| {
                for &range in ranges {
                    durable.put(range, change);
                    touched.push(range);
                }
            });
        }
        self.over = state.overlay(&self.recording, self.atom_bytes, &self.walk.open);
        touched.extend(self.over.iter().map(|(range, _)| range));
        Ok(merged(touched))
    }

    /// The parts of a range with the change that provides each, in order and without gaps.
    pub(crate) fn versions(&self, range: Range) -> Vec<(Range, Version)> {
        let mut versions = Vec::new();
        for (part, over) in self.over.parts(range) {
            match over {
                Some(change) => versions.push((part, Some(change))),
                None => versions.extend(self.durable.parts(part)),
            }
        }
        versions
    }

    /// Whether a range of this version is known to be zeros.
    pub(crate) fn is_zeros(&self, start: u64, version: Version) -> bool {
        match version {
            None => self.base.size_bytes() <= start,
            Some(change) => self.recording.changes[change as usize].stored.is_zeros(),
        }
    }

    /// Reads the data of a version.
    pub(crate) fn read(&self, at_bytes: u64, version: Version, into: &mut [u8]) -> Result<(), CrashError> {
        match version {
            None => self.base.read(at_bytes, into),
            Some(change) => {
                let from_bytes = at_bytes - self.recording.changes[change as usize].offset_bytes;
                self.recording.read(change, from_bytes, into)
            }
        }
    }
}

/// Merges ranges into ones without overlaps, in order.
pub(crate) fn merged(mut ranges: Vec<Range>) -> Vec<Range> {
    ranges.sort_unstable();
    let mut merged: Vec<Range> = Vec::with_capacity(ranges.len());
    for (start, end) in ranges {
        match merged.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => merged.push((start, end)),
        }
    }
    merged
}
