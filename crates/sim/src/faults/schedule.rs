//! [`Schedule`]: which fault starts when.

use std::fmt;

use headstack_workload::DurationNs;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

use super::effect::{NamedDevice, Subject, effect_of};
use super::filter::Complaint;
use super::trigger::{Every, PATTERNS_MAX};
use super::{Fault, Pattern, StrikeTime, Trigger};
use crate::description::model::Model;

/// The faults of a session and their times.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// Seed of everything that is drawn: each fault has a stream of its own, in the order of injection.
    #[serde(default)]
    pub seed: u64,
    /// The faults.
    #[serde(default, rename = "fault", skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<Timed>,
}

/// A fault with its time and trigger.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Written")]
pub struct Timed {
    /// Time of the model from which requests count, for a fault that they trigger; by default the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<DurationNs>,
    /// Time of its end; never, if neither this nor `for` is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<DurationNs>,
    /// Its duration.
    #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
    pub lasts: Option<DurationNs>,
    /// When it starts, and which requests meet it.
    #[serde(flatten)]
    pub trigger: Trigger,
    /// The fault itself.
    #[serde(flatten)]
    pub fault: Fault,
}

/// A fault as written in a schedule: some keys, such as `every`, are a number of requests for all faults, but a time
/// for link resets.
#[derive(Deserialize)]
struct Written {
    #[serde(default)]
    from: Option<DurationNs>,
    #[serde(default)]
    until: Option<DurationNs>,
    #[serde(default, rename = "for")]
    lasts: Option<DurationNs>,
    #[serde(default)]
    every: Option<EveryOrTime>,
    #[serde(flatten)]
    trigger: Trigger,
    #[serde(flatten)]
    fault: Fault,
}

enum EveryOrTime {
    Requests(Every),
    Time(DurationNs),
}

impl<'de> Deserialize<'de> for EveryOrTime {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct EveryVisitor;
        impl<'de> Visitor<'de> for EveryVisitor {
            type Value = EveryOrTime;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of requests, or for resets of a link a duration such as \"2s\"")
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<EveryOrTime, E> {
                Every::deserialize(de::value::I64Deserializer::new(number)).map(EveryOrTime::Requests)
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<EveryOrTime, E> {
                Every::deserialize(de::value::U64Deserializer::new(number)).map(EveryOrTime::Requests)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<EveryOrTime, E> {
                DurationNs::deserialize(de::value::StrDeserializer::new(text)).map(EveryOrTime::Time)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<EveryOrTime, A::Error> {
                Every::deserialize(MapAccessDeserializer::new(map)).map(EveryOrTime::Requests)
            }
        }
        deserializer.deserialize_any(EveryVisitor)
    }
}

impl TryFrom<Written> for Timed {
    type Error = String;

    fn try_from(written: Written) -> Result<Timed, String> {
        let Written { from, until, lasts, every, mut trigger, mut fault } = written;
        match (every, &mut fault) {
            (Some(EveryOrTime::Time(time)), Fault::LinkResets { every, .. }) => *every = Some(time),
            (Some(EveryOrTime::Time(time)), _) => {
                return Err(format!("\"{time}\" is not a number of requests: write one, such as 10"));
            }
            (Some(EveryOrTime::Requests(number)), _) => trigger.every = Some(number),
            (None, _) => {}
        }
        Ok(Timed { from, until, lasts, trigger, fault })
    }
}

impl Timed {
    /// Returns its start and its end (`u64::MAX` for never), in nanoseconds of the model.
    ///
    /// # Errors
    /// The first impossible key and its allowed values.
    pub fn span_ns(&self) -> Result<(u64, u64), (&'static str, String)> {
        let (key, at) = match (self.trigger.at, self.from) {
            (Some(StrikeTime::Time(_)), Some(_)) => {
                return Err(("from", "at is already a time; one of the two is allowed".to_owned()));
            }
            (None, None) if self.trigger.is_timed() => {
                let text = "this key is missing; set the time, such as \"10s\", or a request, such as { write = 1000 }";
                return Err(("at", text.to_owned()));
            }
            (Some(StrikeTime::Time(at)), None) => ("at", at),
            (_, from) => ("from", from.unwrap_or(DurationNs(0))),
        };
        let at_ns = u64::try_from(at.0).map_err(|_| (key, format!("{at}: 0s or more is allowed")))?;
        let (key, until_ns) = match (self.until, self.lasts) {
            (None, None) => return Ok((at_ns, u64::MAX)),
            (Some(_), Some(_)) => return Err(("for", "until also sets the end; one of the two is allowed".to_owned())),
            (Some(until), None) => ("until", i128::from(until.0)),
            (None, Some(lasts)) => ("for", i128::from(at.0) + i128::from(lasts.0)),
        };
        if self.fault.is_momentary() {
            return Err((key, "this fault is instantaneous; the key is not allowed".to_owned()));
        }
        match u64::try_from(until_ns) {
            Ok(until_ns) if until_ns > at_ns => Ok((at_ns, until_ns)),
            _ => Err((key, format!("ends before it begins; after {at} is allowed"))),
        }
    }
}

impl Schedule {
    /// Checks that every fault can be injected into a model.
    ///
    /// # Errors
    /// The first impossible fault: its number, the key and the allowed values.
    pub fn check(&self, model: &Model) -> Result<(), (usize, Complaint)> {
        let (subject, devices) = (Subject::of(model), NamedDevice::devices_of(model));
        // A spare that is added later has no name yet.
        let grows = self.faults.iter().any(|timed| matches!(timed.fault, Fault::SpareAdded { .. }));
        for (index, timed) in self.faults.iter().enumerate() {
            timed.span_ns().map_err(|complaint| (index, complaint))?;
            match effect_of(&timed.fault, &subject, &devices) {
                Err(("member", _)) if grows => {}
                checked => {
                    let is_event = checked.map_err(|complaint| (index, complaint))?.is_event();
                    timed.trigger.plan(is_event, subject.extent(), Some(0)).map_err(|complaint| (index, complaint))?;
                }
            }
        }
        if let Some((index, _)) = self.patterns().nth(PATTERNS_MAX) {
            return Err((index, ("containing", format!("up to {PATTERNS_MAX} patterns are allowed"))));
        }
        Ok(())
    }

    /// Checks that every fault can be injected where no contents are kept, as in a simulated run.
    ///
    /// # Errors
    /// As for [`check`](Self::check).
    pub fn check_without_contents(&self) -> Result<(), (usize, Complaint)> {
        match self.patterns().next() {
            Some((index, _)) => {
                Err((index, ("containing", "a simulation stores no data; only live exports do".to_owned())))
            }
            None => Ok(()),
        }
    }

    /// Returns the patterns that its faults look for in contents, with the faults' numbers.
    fn patterns(&self) -> impl Iterator<Item = (usize, &Pattern)> {
        let faults = self.faults.iter().enumerate();
        faults.filter_map(|(index, timed)| Some((index, timed.trigger.containing.as_ref()?)))
    }
}
