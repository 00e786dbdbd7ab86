//! [`Phases`]: the phases of a request in the block layer, with the names used by btt of Linux.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::times::{Times, TimesReport};
use crate::record::{NOT_RECORDED, Operation, Record};

/// A phase of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Phase {
    /// From queueing until the kernel has allocated a request.
    Q2G,
    /// From allocation until insertion into the scheduler's queue.
    G2I,
    /// From insertion until dispatch to the driver.
    I2D,
    /// From queueing until dispatch to the driver: Q2G, G2I and I2D together, which more traces record.
    Q2D,
    /// From dispatch until completion by the device.
    D2C,
    /// From queueing until completion.
    Q2C,
}

impl Phase {
    pub(crate) const ALL: [Phase; 6] = [Phase::Q2G, Phase::G2I, Phase::I2D, Phase::Q2D, Phase::D2C, Phase::Q2C];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Phase::Q2G => "q2g",
            Phase::G2I => "g2i",
            Phase::I2D => "i2d",
            Phase::Q2D => "q2d",
            Phase::D2C => "d2c",
            Phase::Q2C => "q2c",
        }
    }

    /// Returns the duration of the phase in ns; [`NOT_RECORDED`] if the trace does not have it.
    fn of(self, record: &Record) -> u64 {
        let between = |from_ns: u64, to_ns: u64| match to_ns.checked_sub(from_ns) {
            Some(ns) if to_ns != NOT_RECORDED => ns,
            // A requeued or partially completed request was dispatched before, so the value is invalid.
            _ => NOT_RECORDED,
        };
        let Record { got_ns, inserted_ns, wait_ns, response_ns, .. } = *record;
        match self {
            Phase::Q2G => got_ns,
            Phase::G2I => between(got_ns, inserted_ns),
            Phase::I2D => between(inserted_ns, wait_ns),
            Phase::Q2D => wait_ns,
            Phase::D2C => between(wait_ns, response_ns),
            Phase::Q2C => response_ns,
        }
    }
}

/// Times by phase.
pub(crate) type ByPhase = [Times; Phase::ALL.len()];

/// Adds the recorded phases of a request.
#[inline]
pub(crate) fn add(times: &mut ByPhase, record: &Record) {
    for (phase, times) in Phase::ALL.into_iter().zip(times) {
        let time_ns = phase.of(record);
        if time_ns != NOT_RECORDED {
            times.add(time_ns);
        }
    }
}

/// Returns the recorded phases, by name.
pub(crate) fn report(times: &ByPhase) -> BTreeMap<&'static str, TimesReport> {
    let reports = Phase::ALL.into_iter().zip(times).map(|(phase, times)| Some((phase.name(), times.report()?)));
    reports.flatten().collect()
}

/// Time of requests in each phase; phases that are not recorded are absent.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PhasesReport {
    /// Phases of all requests.
    pub all: BTreeMap<&'static str, TimesReport>,
    /// Phases by operation.
    pub by_operation: BTreeMap<&'static str, BTreeMap<&'static str, TimesReport>>,
}

/// Times in each phase by operation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Phases([Option<Box<ByPhase>>; Operation::ALL.len()]);

impl Phases {
    #[inline]
    pub(crate) fn add(&mut self, record: &Record) {
        if record.wait_ns == NOT_RECORDED && record.got_ns == NOT_RECORDED {
            return;
        }
        add(self.0[record.operation as usize].get_or_insert_default(), record);
    }

    /// Merges another part of the trace.
    #[must_use]
    pub(crate) fn merge(mut self, later: Phases) -> Phases {
        for (mine, later) in self.0.iter_mut().zip(later.0) {
            let Some(later) = later else { continue };
            let mine = mine.get_or_insert_default();
            mine.iter_mut().zip(later.iter()).for_each(|(times, later)| times.merge(later));
        }
        self
    }

    /// Returns the report; `None` if the trace does not record when the device received requests.
    pub(crate) fn finish(&self) -> Option<PhasesReport> {
        let mut all = ByPhase::default();
        for of in self.0.iter().flatten() {
            all.iter_mut().zip(of.iter()).for_each(|(times, of)| times.merge(of));
        }
        let by_operation = Operation::ALL.into_iter().zip(&self.0);
        let by_operation: BTreeMap<_, _> =
            by_operation.filter_map(|(operation, of)| Some((operation.name(), report(of.as_ref()?)))).collect();
        (!by_operation.is_empty()).then(|| PhasesReport { all: report(&all), by_operation })
    }
}
