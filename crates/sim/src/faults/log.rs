//! [`Log`]: the injected faults, with proof of their effects.

use headstack_workload::DurationNs;
use serde::Serialize;

use super::contents::DamageProof;
use super::deed::FaultEffect;
use super::{Fault, RequestKind, Schedule, StrikeTime, Timed, Trigger};
use crate::power_cut::PowerLoss;

/// A request that met a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct FaultHit {
    /// Kind of the request.
    pub kind: RequestKind,
    /// Offset of the request, in bytes.
    pub offset_bytes: u64,
    /// Length of the request, in bytes.
    pub length_bytes: u32,
    /// Time of arrival.
    pub arrival_ns: u64,
    /// Time of the answer; `None` while the request is unanswered.
    pub completion_ns: Option<u64>,
    /// Effect of the fault on the request.
    pub deed: FaultEffect,
}

/// Counters of a device while a media fault was active.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Number of repeated passes.
    pub retried_passes: u64,
    /// Number of failed accesses.
    pub uncorrectable_errors: u64,
}

/// An injected fault, with proof of its effects.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Injection {
    /// Number of the fault in the order of injection, from 0.
    pub number: u32,
    /// Time of injection in model time, in ns.
    pub at_ns: u64,
    /// Time at which the fault ends; `None` for no end.
    pub until_ns: Option<u64>,
    /// The injected fault.
    pub fault: Fault,
    /// Full statement of a fault that requests trigger; the fault waits for them from `at_ns` on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stated: Option<Timed>,
    /// Number of times that the fault took effect.
    pub strikes: u64,
    /// Error of the system, if the fault could not be injected.
    pub refused: Option<String>,
    /// Number of requests that met the fault.
    pub met: u64,
    /// Number of these requests that failed.
    pub failed: u64,
    /// First request that met the fault.
    pub first: Option<FaultHit>,
    /// Last request that met the fault.
    pub last: Option<FaultHit>,
    /// Damage to data, up to a maximum number of entries.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub harms: Vec<DamageProof>,
    /// Number of times that the fault damaged data.
    pub harmed: u64,
    /// Counters of the device while a media fault was active.
    pub counters: Option<Counters>,
    /// Data lost in a power cut.
    pub loss: Option<PowerLoss>,
}

impl Injection {
    /// Ends the fault on command.
    pub(super) fn ends_by_order(&mut self, now_ns: u64) {
        self.until_ns = Some(now_ns);
        if let Some(stated) = &mut self.stated {
            (stated.until, stated.lasts) = (Some(DurationNs(now_ns as i64)), None);
        }
    }
}

/// The log of all faults injected so far.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Log {
    /// Seed of the random numbers.
    pub seed: u64,
    /// Injected faults, in order.
    pub injections: Vec<Injection>,
}

impl Log {
    /// Returns the schedule that reproduces the log.
    pub fn schedule(&self) -> Schedule {
        let time = |ns: u64| DurationNs(ns as i64);
        let timed = |injection: &Injection| match &injection.stated {
            Some(stated) => stated.clone(),
            None => Timed {
                from: None,
                until: injection.until_ns.map(time),
                lasts: None,
                trigger: Trigger { at: Some(StrikeTime::Time(time(injection.at_ns))), ..Trigger::default() },
                fault: injection.fault.clone(),
            },
        };
        Schedule { seed: self.seed, faults: self.injections.iter().map(timed).collect() }
    }

    /// Returns the active faults, with the number of requests that they have met so far.
    pub fn active(&self) -> serde_json::Value {
        let lasts = |injection: &&Injection| injection.until_ns.is_none() && injection.refused.is_none();
        let describe = |injection: &Injection| {
            let Injection { number, at_ns, fault, met, failed, .. } = injection;
            serde_json::json!({ "number": number, "at_ns": at_ns, "fault": fault, "met": met, "failed": failed })
        };
        self.injections.iter().filter(lasts).map(describe).collect()
    }
}
