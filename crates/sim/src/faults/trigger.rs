//! [`Trigger`]s: which requests start a fault, or meet it. Every counter counts the same for equal requests.

use std::fmt;

use headstack_workload::{DurationNs, Kind, Span};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use crate::gauges::GroupHealth;

/// Most patterns that one session looks for: one bit for each marks those that a write contains.
pub const PATTERNS_MAX: usize = 64;

/// Conditions that start a fault and select the requests that meet it.
///
/// `at` and `after` state when it first takes effect; it lasts from then on. `touching`, `containing`, `while` and
/// `state` select the requests that these count, or, without either, those that meet the fault. `every` takes each nth
/// of the requests that would meet it, and `once` only the first. A fault that does not concern single requests takes
/// effect at the first request that passes these conditions, and with `every` repeatedly.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Trigger {
    /// A time of the model, or the arrival of the nth request of a kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<StrikeTime>,
    /// Number of requests of a kind that have been answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Count>,
    /// Requests that touch this part of the system, such as `1GiB..2GiB`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub touching: Option<String>,
    /// Writes that contain these bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub containing: Option<Pattern>,
    /// Only while a group of the array is in this state.
    #[serde(default, rename = "while", skip_serializing_if = "Option::is_none")]
    pub health: Option<GroupHealth>,
    /// Only while the schedule is in this state, which is 1 at the start (`set-state`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<u32>,
    /// Each nth request, or each nth of a kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Every>,
    /// Whether only one request meets it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub once: bool,
}

/// When a fault first takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StrikeTime {
    /// At this model time since the start.
    Time(DurationNs),
    /// At the arrival of this request, which meets it.
    Request(Nth),
}

/// A request by its number, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Nth {
    /// The request with this number, of any kind.
    Request(u64),
    /// The read with this number.
    Read(u64),
    /// The write with this number.
    Write(u64),
    /// The trim with this number.
    Trim(u64),
    /// The flush with this number.
    Flush(u64),
}

/// Each nth request: a number, or the number of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Every(pub Nth);

/// A number of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Count {
    /// Requests of any kind.
    Requests(u64),
    /// Reads.
    Reads(u64),
    /// Writes.
    Writes(u64),
    /// Trims.
    Trims(u64),
    /// Flushes.
    Flushes(u64),
}

impl Nth {
    /// Returns the kind of the request, `None` for any, and its number.
    fn parts(self) -> (Option<Kind>, u64) {
        match self {
            Nth::Request(nth) => (None, nth),
            Nth::Read(nth) => (Some(Kind::Read), nth),
            Nth::Write(nth) => (Some(Kind::Write), nth),
            Nth::Trim(nth) => (Some(Kind::Trim), nth),
            Nth::Flush(nth) => (Some(Kind::Flush), nth),
        }
    }
}

impl Count {
    fn parts(self) -> (Option<Kind>, u64) {
        match self {
            Count::Requests(count) => (None, count),
            Count::Reads(count) => (Some(Kind::Read), count),
            Count::Writes(count) => (Some(Kind::Write), count),
            Count::Trims(count) => (Some(Kind::Trim), count),
            Count::Flushes(count) => (Some(Kind::Flush), count),
        }
    }
}

impl Serialize for Every {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Nth::Request(nth) => nth.serialize(serializer),
            other @ (Nth::Read(_) | Nth::Write(_) | Nth::Trim(_) | Nth::Flush(_)) => other.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Every {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct EveryVisitor;
        impl<'de> Visitor<'de> for EveryVisitor {
            type Value = Every;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of requests such as 10, or { write = 10 }")
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Every, E> {
                let wrong = |_| E::invalid_value(de::Unexpected::Signed(number), &self);
                u64::try_from(number).map(|number| Every(Nth::Request(number))).map_err(wrong)
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Every, E> {
                Ok(Every(Nth::Request(number)))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Every, A::Error> {
                Nth::deserialize(MapAccessDeserializer::new(map)).map(Every)
            }
        }
        deserializer.deserialize_any(EveryVisitor)
    }
}

impl Serialize for StrikeTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            StrikeTime::Time(time) => time.serialize(serializer),
            StrikeTime::Request(nth) => nth.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for StrikeTime {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AtVisitor;
        impl<'de> Visitor<'de> for AtVisitor {
            type Value = StrikeTime;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a duration with its unit such as \"8.5ms\", or a request such as { flush = 7 }")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<StrikeTime, E> {
                DurationNs::deserialize(de::value::StrDeserializer::new(text)).map(StrikeTime::Time)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<StrikeTime, A::Error> {
                Nth::deserialize(MapAccessDeserializer::new(map)).map(StrikeTime::Request)
            }
        }
        deserializer.deserialize_any(AtVisitor)
    }
}

/// Bytes to find: a text, or hexadecimal digits after `0x`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    text: String,
    bytes: Vec<u8>,
}

impl Pattern {
    /// Returns the bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Parses a pattern.
    ///
    /// # Errors
    /// A text that is no pattern: the allowed forms.
    pub fn parse(text: &str) -> Result<Pattern, String> {
        let wrong = || format!("{text:?} is not a pattern: write some text, or 0x and pairs of hexadecimal digits");
        let bytes = match text.strip_prefix("0x") {
            None => text.as_bytes().to_vec(),
            Some(digits) if digits.len() % 2 == 1 || !digits.is_ascii() => return Err(wrong()),
            Some(digits) => {
                let pair = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).map_err(|_| wrong());
                (0..digits.len()).step_by(2).map(pair).collect::<Result<_, _>>()?
            }
        };
        if bytes.is_empty() { Err(wrong()) } else { Ok(Pattern { text: text.to_owned(), bytes }) }
    }
}

impl Serialize for Pattern {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Pattern::parse(&String::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

/// Properties of a request that triggers check.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestView {
    pub kind: Kind,
    pub span: Span,
    /// Patterns that it contains, one bit each.
    pub holds: u64,
    /// States of the array's groups, one bit each by [`bit_of`].
    pub health: u8,
    /// State of the schedule.
    pub state: u32,
}

/// Returns the bit of a state.
pub(crate) fn bit_of(health: GroupHealth) -> u8 {
    1 << health as u8
}

/// Conditions on requests.
#[derive(Clone, Copy, Debug, Default)]
struct Conditions {
    span: Option<Span>,
    /// Bit of the pattern.
    pattern: Option<u32>,
    health: Option<GroupHealth>,
    state: Option<u32>,
}

impl Conditions {
    /// Whether a request meets the conditions. A flush has no place and no data: it meets no condition on either.
    fn hold(&self, sight: &RequestView) -> bool {
        let (start, end) = (sight.span.start_bytes, sight.span.start_bytes + sight.span.length_bytes);
        let touches = |span: Span| start < span.start_bytes + span.length_bytes && span.start_bytes < end;
        self.span.is_none_or(|span| sight.kind != Kind::Flush && touches(span))
            && self.pattern.is_none_or(|bit| sight.holds >> bit & 1 == 1)
            && self.health.is_none_or(|health| sight.health & bit_of(health) != 0)
            && self.state.is_none_or(|state| sight.state == state)
    }
}

/// Condition that a fault waits for before it takes effect.
#[derive(Clone, Debug)]
pub(crate) struct Cue {
    conditions: Conditions,
    /// Kind of request; `None` for any.
    kind: Option<Kind>,
    nth: u64,
    /// Whether requests count when they are answered, rather than on arrival.
    pub when_answered: bool,
    /// Whether it waits again after the fault has taken effect.
    pub repeats: bool,
    seen: u64,
}

impl Cue {
    /// Counts an arriving or answered request; returns whether the condition is fulfilled.
    pub fn sees(&mut self, sight: &RequestView) -> bool {
        if self.kind.is_some_and(|kind| kind != sight.kind) || !self.conditions.hold(sight) {
            return false;
        }
        self.seen += 1;
        let is_it = self.seen == self.nth;
        if is_it && self.repeats {
            self.seen = 0;
        }
        is_it
    }
}

/// Selects which of the requests that could meet a fault do.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    conditions: Conditions,
    /// Kind of request; `None` for any.
    kind: Option<Kind>,
    every: u64,
    once: bool,
    seen: u64,
    /// Whether the only request has met it.
    is_spent: bool,
}

impl Choice {
    /// Returns a choice of all requests.
    pub fn all() -> Choice {
        Choice { conditions: Conditions::default(), kind: None, every: 1, once: false, seen: 0, is_spent: false }
    }

    /// Whether all requests that could meet it do.
    pub fn is_all(&self) -> bool {
        let Conditions { span, pattern, health, state } = self.conditions;
        !self.once && (self.kind, self.every) == (None, 1) && (span, pattern, health, state) == (None, None, None, None)
    }

    /// Counts a request that could meet the fault; returns whether it does.
    pub fn takes(&mut self, sight: &RequestView) -> bool {
        let is_kind = self.kind.is_none_or(|kind| kind == sight.kind);
        if self.is_spent || !is_kind || !self.conditions.hold(sight) {
            return false;
        }
        self.seen += 1;
        self.seen.is_multiple_of(self.every)
    }

    /// Records that a request has met it.
    pub fn spend(&mut self) {
        self.is_spent = self.once;
    }

    /// Whether no request can meet it any more.
    pub fn is_spent(&self) -> bool {
        self.is_spent
    }
}

impl Trigger {
    /// Whether it has no conditions on requests.
    pub fn is_timed(&self) -> bool {
        let only_at = Trigger { at: self.at, ..Trigger::default() };
        *self == only_at && !matches!(self.at, Some(StrikeTime::Request(_)))
    }

    /// Returns the condition that a fault waits for, and the requests that meet it then. `is_event` is set for a fault
    /// that does not concern single requests; the system has this capacity and block size, and may be an array;
    /// `pattern` is the bit of the pattern that it looks for.
    ///
    /// # Errors
    /// The first impossible key and its allowed values.
    pub(crate) fn plan(
        &self,
        is_event: bool,
        (capacity_bytes, block_bytes, is_array): (u64, u32, bool),
        pattern: Option<u32>,
    ) -> Result<(Option<Cue>, Choice), (&'static str, String)> {
        let span = self.touching.as_ref().map(|text| {
            let span = Span::parse(text, capacity_bytes, block_bytes);
            span.map_err(|message| ("touching", message))
        });
        if self.health.is_some() && !is_array {
            return Err(("while", "the system is not an array; this key is not allowed".to_owned()));
        }
        let conditions = Conditions { span: span.transpose()?, pattern, health: self.health, state: self.state };
        let counted = match (self.at, self.after) {
            (Some(StrikeTime::Request(_)), Some(_)) => {
                return Err(("after", "at already counts requests; one of the two is allowed".to_owned()));
            }
            (Some(StrikeTime::Request(nth)), None) => Some(("at", nth.parts(), false)),
            (_, Some(count)) => Some(("after", count.parts(), true)),
            (_, None) => None,
        };
        let (every_kind, every) = self.every.map_or((None, 1), |every| every.0.parts());
        for (key, number) in [("every", Some(every))].into_iter().chain(counted.map(|(key, of, _)| (key, Some(of.1)))) {
            if number == Some(0) {
                return Err((key, "0 is not a number of requests; 1 or more are allowed".to_owned()));
            }
        }
        let named = [(self.touching.is_some(), "touching"), (self.containing.is_some(), "containing")];
        if let (Some((key, (Some(Kind::Flush), _), _)), Some((_, other))) =
            (counted, named.into_iter().find(|(is_named, _)| *is_named))
        {
            return Err((key, format!("a flush has neither address nor data, which {other} needs")));
        }
        let cue = |(kind, nth), when_answered, repeats| Cue { conditions, kind, nth, when_answered, repeats, seen: 0 };
        let (kind, once) = (every_kind, self.once);
        match counted {
            Some(_) if is_event && self.every.is_some() => {
                Err(("every", "at and after both set the time; one of them is allowed".to_owned()))
            }
            Some((_, of, when_answered)) => {
                let choice = Choice { conditions: Conditions::default(), kind, every, once, seen: 0, is_spent: false };
                Ok((Some(cue(of, when_answered, false)), choice))
            }
            None if is_event && !self.is_timed() => {
                let repeats = self.every.is_some() && !once;
                Ok((Some(cue((kind, every), false, repeats)), Choice::all()))
            }
            None => Ok((None, Choice { conditions, kind, every, once, seen: 0, is_spent: false })),
        }
    }
}
