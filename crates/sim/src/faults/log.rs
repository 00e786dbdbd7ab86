//! [`Log`] of injected faults, with their proof.

use headstack_workload::DurationNs;
use serde::Serialize;

use super::contents::Harm;
use super::deed::Deed;
use super::{At, Fault, RequestKind, Schedule, Timed, Trigger};
use crate::power_cut::PowerLoss;

/// A request that met a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Meeting {
    /// Kind of the request.
    pub kind: RequestKind,
    /// Offset.
    pub offset_bytes: u64,
    /// How much.
    pub length_bytes: u32,
    /// When it came.
    pub arrival_ns: u64,
    /// When it was answered; not yet, if absent.
    pub completion_ns: Option<u64>,
    /// Effect on it.
    pub deed: Deed,
}

/// Counters of a device during a fault of its media.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Passes repeated.
    pub retried_passes: u64,
    /// Accesses that failed.
    pub uncorrectable_errors: u64,
}

/// A fault that struck, with its proof.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Injection {
    /// Its number, from 0, in the order in which they struck.
    pub number: u32,
    /// When it struck, in nanoseconds of the model.
    pub at_ns: u64,
    /// When it ended.
    pub until_ns: Option<u64>,
    /// The fault.
    pub fault: Fault,
    /// The complete definition, if requests trigger it; it waits for them from `at_ns` on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stated: Option<Timed>,
    /// How often it struck.
    pub strikes: u64,
    /// The system's error, if it was refused.
    pub refused: Option<String>,
    /// Requests that met it.
    pub met: u64,
    /// Number of those that failed.
    pub failed: u64,
    /// The first that met it.
    pub first: Option<Meeting>,
    /// The last.
    pub last: Option<Meeting>,
    /// The first of its damages.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub harms: Vec<Harm>,
    /// How often it did something to data.
    pub harmed: u64,
    /// Counters of the device meanwhile, for a fault of its media.
    pub counters: Option<Counters>,
    /// Data lost in a power cut.
    pub loss: Option<PowerLoss>,
}

impl Injection {
    /// Ends it by order.
    pub(super) fn ends_by_order(&mut self, now_ns: u64) {
        self.until_ns = Some(now_ns);
        if let Some(stated) = &mut self.stated {
            (stated.until, stated.lasts) = (Some(DurationNs(now_ns as i64)), None);
        }
    }
}

/// Everything that was injected so far.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Log {
    /// Seed of the random numbers.
    pub seed: u64,
    /// In the order in which they struck.
    pub injections: Vec<Injection>,
}

impl Log {
    /// The schedule under which the same would happen again.
    pub fn schedule(&self) -> Schedule {
        let time = |ns: u64| DurationNs(ns as i64);
        let timed = |injection: &Injection| match &injection.stated {
            Some(stated) => stated.clone(),
            None => Timed {
                from: None,
                until: injection.until_ns.map(time),
                lasts: None,
                trigger: Trigger { at: Some(At::Time(time(injection.at_ns))), ..Trigger::default() },
                fault: injection.fault.clone(),
            },
        };
        Schedule { seed: self.seed, faults: self.injections.iter().map(timed).collect() }
    }

    /// Current faults, with their effects so far.
    pub fn active(&self) -> serde_json::Value {
        let lasts = |injection: &&Injection| injection.until_ns.is_none() && injection.refused.is_none();
        let told = |injection: &Injection| {
            let Injection { number, at_ns, fault, met, failed, .. } = injection;
            serde_json::json!({ "number": number, "at_ns": at_ns, "fault": fault, "met": met, "failed": failed })
        };
        self.injections.iter().filter(lasts).map(told).collect()
    }
}
