//! [`Log`]: what was injected, with proof.

use headstack_workload::DurationNs;
use serde::Serialize;

use super::contents::DamageProof;
use super::deed::FaultEffect;
use super::{Fault, RequestKind, Schedule, StrikeTime, Timed, Trigger};
use crate::power_cut::PowerLoss;

/// A request that met a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct FaultHit {
    /// Its kind.
    pub kind: RequestKind,
    /// Its offset.
    pub offset_bytes: u64,
    /// Its length.
    pub length_bytes: u32,
    /// Time of arrival.
    pub arrival_ns: u64,
    /// Time of its answer; `None` while there is none.
    pub completion_ns: Option<u64>,
    /// Effect of the fault on it.
    pub deed: FaultEffect,
}

/// Counters of a device while a media fault was active.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Passes repeated.
    pub retried_passes: u64,
    /// Accesses that failed.
    pub uncorrectable_errors: u64,
}

/// A fault that was injected, with its proof.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Injection {
    /// Its number, from 0, in the order of injection.
    pub number: u32,
    /// Time of injection, in nanoseconds of the model.
    pub at_ns: u64,
    /// Time of its end.
    pub until_ns: Option<u64>,
    /// The fault.
    pub fault: Fault,
    /// Its full statement, if requests trigger it; it waits for them from `at_ns` on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stated: Option<Timed>,
    /// How often it took effect.
    pub strikes: u64,
    /// Error of the system, if it could not be injected.
    pub refused: Option<String>,
    /// Requests that met it.
    pub met: u64,
    /// How many of them failed.
    pub failed: u64,
    /// The first request that met it.
    pub first: Option<FaultHit>,
    /// The last request that met it.
    pub last: Option<FaultHit>,
    /// Damage that it did to data, up to a maximum.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub harms: Vec<DamageProof>,
    /// How often it damaged data.
    pub harmed: u64,
    /// Counters of the device while a media fault was active.
    pub counters: Option<Counters>,
    /// Data lost in a power cut.
    pub loss: Option<PowerLoss>,
}

impl Injection {
    /// Ends it by command.
    pub(super) fn ends_by_order(&mut self, now_ns: u64) {
        self.until_ns = Some(now_ns);
        if let Some(stated) = &mut self.stated {
            (stated.until, stated.lasts) = (Some(DurationNs(now_ns as i64)), None);
        }
    }
}

/// The log of everything that was injected so far.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Log {
    /// Seed of the random draws.
    pub seed: u64,
    /// Injections in order.
    pub injections: Vec<Injection>,
}

impl Log {
    /// Returns the schedule that would reproduce it.
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

    /// Returns the active faults, with what they have met so far.
    pub fn active(&self) -> serde_json::Value {
        let lasts = |injection: &&Injection| injection.until_ns.is_none() && injection.refused.is_none();
        let describe = |injection: &Injection| {
            let Injection { number, at_ns, fault, met, failed, .. } = injection;
            serde_json::json!({ "number": number, "at_ns": at_ns, "fault": fault, "met": met, "failed": failed })
        };
        self.injections.iter().filter(lasts).map(describe).collect()
    }
}
