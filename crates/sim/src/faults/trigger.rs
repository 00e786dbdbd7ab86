//! [`Trigger`]: which requests start a fault, or meet it. Counting is reproducible for equal requests.

use std::fmt;

use headstack_workload::{DurationNs, Kind, Span};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use crate::gauges::GroupHealth;

/// Largest number of patterns per session: one bit each in a write's sight.
pub const PATTERNS_MAX: usize = 64;

/// Start condition of a fault, and the requests that meet it.
///
/// `at` and `after` define when it first strikes; it lasts from then on. `touching`, `containing`, `while` and `state`
/// restrict the requests that these count, or without them the requests that meet it. Of those, `every` selects each
/// nth, and `once` only the first. A fault that is not about single requests strikes at the first request that all
/// conditions permit, and with `every` repeatedly.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Trigger {
    /// A time of the model, or the nth request of a kind, as it comes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<At>,
    /// After this number of requests of a kind have been answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Count>,
    /// A request touches this part of the system, such as `1GiB..2GiB`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub touching: Option<String>,
    /// A write brings these bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub containing: Option<Pattern>,
    /// A group of the array is in this state.
    #[serde(default, rename = "while", skip_serializing_if = "Option::is_none")]
    pub health: Option<GroupHealth>,
    /// The schedule is in this state, which is 1 at the start (`set-state`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<u32>,
    /// Each nth of them, or of those of a kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Every>,
    /// Only one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub once: bool,
}

/// When a fault strikes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// At this model time since the start.
    Time(DurationNs),
    /// On the arrival of this request, which meets it.
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

/// Each nth request: a number, or as of a kind.
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
    /// The kind of the request, `None` for any, and its number.
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

impl Serialize for At {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            At::Time(time) => time.serialize(serializer),
            At::Request(nth) => nth.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for At {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AtVisitor;
        impl<'de> Visitor<'de> for AtVisitor {
            type Value = At;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a duration with its unit such as \"8.5ms\", or a request such as { flush = 7 }")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<At, E> {
                DurationNs::deserialize(de::value::StrDeserializer::new(text)).map(At::Time)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<At, A::Error> {
                Nth::deserialize(MapAccessDeserializer::new(map)).map(At::Request)
            }
        }
        deserializer.deserialize_any(AtVisitor)
    }
}

/// Bytes that are looked for: a text, or digits after `0x`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    text: String,
    bytes: Vec<u8>,
}

impl Pattern {
    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Parses a text.
    ///
    /// # Errors
    /// When it is invalid, with the permitted forms.
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

/// Properties of a request for triggers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sight {
    pub kind: Kind,
    pub span: Span,
    /// Which patterns it brings, a bit each.
    pub holds: u64,
    /// In which states groups of the array are, a bit each by [`bit_of`].
    pub health: u8,
    /// In which state the schedule is.
    pub state: u32,
}

/// The bit of a state.
pub(crate) fn bit_of(health: GroupHealth) -> u8 {
    1 << health as u8
}

/// Which requests are meant.
#[derive(Clone, Copy, Debug, Default)]
struct Conditions {
    span: Option<Span>,
    /// By its bit.
    pattern: Option<u32>,
    health: Option<GroupHealth>,
    state: Option<u32>,
}

impl Conditions {
    /// A flush is everywhere and has no data: with a range or a pattern, it does not match.
    fn hold(&self, sight: &Sight) -> bool {
        let (start, end) = (sight.span.start_bytes, sight.span.start_bytes + sight.span.length_bytes);
        let touches = |span: Span| start < span.start_bytes + span.length_bytes && span.start_bytes < end;
        self.span.is_none_or(|span| sight.kind != Kind::Flush && touches(span))
            && self.pattern.is_none_or(|bit| sight.holds >> bit & 1 == 1)
            && self.health.is_none_or(|health| sight.health & bit_of(health) != 0)
            && self.state.is_none_or(|state| sight.state == state)
    }
}

/// A start condition that is still to be met.
#[derive(Clone, Debug)]
pub(crate) struct Cue {
    conditions: Conditions,
    /// Kind of request; `None` for any.
    kind: Option<Kind>,
    nth: u64,
    /// Requests count when they are answered, not when they come.
    pub when_answered: bool,
    /// It waits again once it has struck.
    pub repeats: bool,
    seen: u64,
}

impl Cue {
    /// Processes the arrival, or the completion, of a request; returns whether the condition is met.
    pub fn sees(&mut self, sight: &Sight) -> bool {
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

/// Selects the affected requests among those that could meet a fault.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    conditions: Conditions,
    /// Kind of request; `None` for any.
    kind: Option<Kind>,
    every: u64,
    once: bool,
    seen: u64,
    /// Whether the single request has met it.
    is_spent: bool,
}

impl Choice {
    /// Everything meets it.
    pub fn all() -> Choice {
        Choice { conditions: Conditions::default(), kind: None, every: 1, once: false, seen: 0, is_spent: false }
    }

    /// Whether all that could meet it do.
    pub fn is_all(&self) -> bool {
        let Conditions { span, pattern, health, state } = self.conditions;
        !self.once && (self.kind, self.every) == (None, 1) && (span, pattern, health, state) == (None, None, None, None)
    }

    /// A request could meet it: whether it does.
    pub fn takes(&mut self, sight: &Sight) -> bool {
        let is_kind = self.kind.is_none_or(|kind| kind == sight.kind);
        if self.is_spent || !is_kind || !self.conditions.hold(sight) {
            return false;
        }
        self.seen += 1;
        self.seen.is_multiple_of(self.every)
    }

    /// A request has met it.
    pub fn spend(&mut self) {
        self.is_spent = self.once;
    }

    /// Nothing can meet it any more.
    pub fn is_spent(&self) -> bool {
        self.is_spent
    }
}

impl Trigger {
    /// Whether it has no conditions on requests.
    pub fn is_timed(&self) -> bool {
        let only_at = Trigger { at: self.at, ..Trigger::default() };
        *self == only_at && !matches!(self.at, Some(At::Request(_)))
    }

    /// Builds the start condition of a fault, and its selection of requests. `is_event` means that it is not about
    /// single requests; the system has this capacity and block size, and may be an array; `pattern` is the bit of its
    /// pattern.
    ///
    /// # Errors
    /// The invalid key, and the permitted values.
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
            (Some(At::Request(_)), Some(_)) => {
                return Err(("after", "at counts requests already; one of the two is allowed".to_owned()));
            }
            (Some(At::Request(nth)), None) => Some(("at", nth.parts(), false)),
            (_, Some(count)) => Some(("after", count.parts(), true)),
            (_, None) => None,
        };
        let (every_kind, every) = self.every.map_or((None, 1), |every| every.0.parts());
        for (key, number) in [("every", Some(every))].into_iter().chain(counted.map(|(key, of, _)| (key, Some(of.1)))) {
            if number == Some(0) {
                return Err((key, "0 is no number of requests; 1 or more are allowed".to_owned()));
            }
        }
        let named = [(self.touching.is_some(), "touching"), (self.containing.is_some(), "containing")];
        if let (Some((key, (Some(Kind::Flush), _), _)), Some((_, other))) =
            (counted, named.into_iter().find(|(is_named, _)| *is_named))
        {
            return Err((key, format!("a flush has no place and no data, which {other} asks for")));
        }
        let cue = |(kind, nth), when_answered, repeats| Cue { conditions, kind, nth, when_answered, repeats, seen: 0 };
        let (kind, once) = (every_kind, self.once);
        match counted {
            Some(_) if is_event && self.every.is_some() => {
                Err(("every", "at or after says when this strikes; one of them is allowed".to_owned()))
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
