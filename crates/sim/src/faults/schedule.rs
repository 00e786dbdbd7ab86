//! Schedules: which fault strikes when.

use headstack_workload::DurationNs;
use serde::{Deserialize, Serialize};

use super::Fault;
use super::effect::{Complaint, Known, Subject, effect_of};
use crate::model::Model;

/// What goes wrong in a session, and when.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// Seed of everything that is drawn: each fault has a stream of its own, in the order in which they strike.
    #[serde(default)]
    pub seed: u64,
    /// The faults.
    #[serde(default, rename = "fault", skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<Timed>,
}

/// A fault with its time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timed {
    /// When it strikes, in time of the model since the start.
    pub at: DurationNs,
    /// When it ends; never, where neither this nor `for` is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<DurationNs>,
    /// How long it lasts.
    #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
    pub lasts: Option<DurationNs>,
    /// What goes wrong.
    #[serde(flatten)]
    pub fault: Fault,
}

impl Timed {
    /// When it strikes, and when it ends (`u64::MAX` for never), in nanoseconds of the model.
    ///
    /// # Errors
    /// The key that makes no sense, and what is allowed.
    pub fn span_ns(&self) -> Result<(u64, u64), (&'static str, String)> {
        let at_ns = u64::try_from(self.at.0).map_err(|_| ("at", format!("{}: 0s or more is allowed", self.at)))?;
        let (key, until_ns) = match (self.until, self.lasts) {
            (None, None) => return Ok((at_ns, u64::MAX)),
            (Some(_), Some(_)) => return Err(("for", "until says it already; one of the two is allowed".to_owned())),
            (Some(until), None) => ("until", i128::from(until.0)),
            (None, Some(lasts)) => ("for", i128::from(self.at.0) + i128::from(lasts.0)),
        };
        if self.fault.is_momentary() {
            return Err((key, "this fault happens in a moment; the key is not allowed".to_owned()));
        }
        match u64::try_from(until_ns) {
            Ok(until_ns) if until_ns > at_ns => Ok((at_ns, until_ns)),
            _ => Err((key, format!("ends before it begins; after {} is allowed", self.at))),
        }
    }
}

impl Schedule {
    /// Whether all of it can strike a model.
    ///
    /// # Errors
    /// What cannot: the number of the fault, the key and what is allowed.
    pub fn check(&self, model: &Model) -> Result<(), (usize, Complaint)> {
        let (subject, devices) = (Subject::of(model), Known::devices_of(model));
        // A spare that is to come has no name yet.
        let grows = self.faults.iter().any(|timed| matches!(timed.fault, Fault::SpareAdded { .. }));
        for (index, timed) in self.faults.iter().enumerate() {
            timed.span_ns().map_err(|complaint| (index, complaint))?;
            match effect_of(&timed.fault, &subject, &devices) {
                Err(("member", _)) if grows => {}
                checked => drop(checked.map_err(|complaint| (index, complaint))?),
            }
        }
        Ok(())
    }
}
