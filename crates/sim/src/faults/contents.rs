//! What faults do to contents: as somebody asks for it, as whoever keeps contents is told, and as it is proven.
//!
//! A system has no contents, so that a fault says which bytes are wrong in which way, and whoever keeps some carries that
//! out. Where nobody does, in simulated runs, the proof is the same.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use headstack_workload::quantity::parse_bytes;
use headstack_workload::{Random, Request, Span};
use serde::{Deserialize, Serialize};

use super::RequestKind;
use super::trigger::Pattern;

/// What is damaged at once: a sector of 512 bytes, whatever a block is.
pub const SECTOR_BYTES: u64 = 512;
/// Damages that are told one by one, of each fault.
pub const HARMS_TOLD: usize = 1 << 16;
/// Places with older data that one fault remembers; beyond, it forgets the oldest.
pub const PLACES_MAX: usize = 4096;

/// What a flush that fails does with what it should have made durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unflushed {
    /// It stays in the cache: the next flush may do better.
    #[default]
    Keep,
    /// The cache has lost it, and the next flush knows nothing of it.
    Drop,
}

/// Where data are corrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// On their way to the media: what is stored is not what was sent.
    Write,
    /// Where they lie.
    Rest,
    /// On their way back: what is stored is well.
    Read,
}

/// What becomes of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Corruption {
    /// Single bits are inverted.
    BitFlip,
    /// Sectors are zeros.
    Zeros,
    /// Sectors are ones.
    Ones,
    /// Sectors are filled with a pattern.
    Pattern,
}

/// How long reads find older data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lasting {
    /// The next read of the place alone.
    #[default]
    Once,
    /// All, until the place is written again.
    UntilRewritten,
}

/// A distance on the address space, forwards or backwards: `"1MiB"`, `"-64KiB"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Distance(pub i64);

impl FromStr for Distance {
    type Err = String;

    fn from_str(text: &str) -> Result<Distance, String> {
        let wrong = || format!("{text:?} is not a distance: write a size such as \"64KiB\" or \"-64KiB\"");
        let (sign, size) = text.strip_prefix('-').map_or((1, text), |size| (-1, size));
        let bytes = parse_bytes(size).ok().and_then(|bytes| i64::try_from(bytes).ok()).ok_or_else(wrong)?;
        Ok(Distance(sign * bytes))
    }
}

impl fmt::Display for Distance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        write!(f, "{sign}{}", headstack_workload::Bytes(self.0.unsigned_abs()))
    }
}

/// A part of a whole: `"3/8"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// So many
    pub numerator: u32,
    /// of so many.
    pub denominator: u32,
}

impl FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> Result<Part, String> {
        let wrong = || format!("{text:?} is not a part: write two numbers such as \"3/8\", the first the smaller");
        let (numerator, denominator) = text.split_once('/').ok_or_else(wrong)?;
        let number = |text: &str| text.trim().parse::<u32>().map_err(|_| wrong());
        let part = Part { numerator: number(numerator)?, denominator: number(denominator)? };
        if part.numerator < part.denominator { Ok(part) } else { Err(wrong()) }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.numerator, self.denominator)
    }
}

/// Serde as text, by way of the type's own.
macro_rules! as_text {
    ($type:ident) => {
        impl Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

as_text!(Distance);
as_text!(Part);

/// What is put in the place of data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum With {
    /// The bits of this mask are inverted.
    Flip(u8),
    /// All bytes are this.
    Byte(u8),
    /// These, again and again from the start of the place.
    Bytes(Arc<[u8]>),
}

/// Bytes that are not what they should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alteration {
    /// Where.
    pub span: Span,
    /// How.
    pub with: With,
}

impl Alteration {
    /// The part of it from `start_bytes` on, within it.
    pub fn part(&self, start_bytes: u64) -> With {
        match &self.with {
            With::Bytes(bytes) => {
                let mut turned = bytes.to_vec();
                turned.rotate_left((start_bytes - self.span.start_bytes) as usize % bytes.len());
                With::Bytes(turned.into())
            }
            With::Flip(_) | With::Byte(_) => self.with.clone(),
        }
    }

    /// Does it to data that begin at `start_bytes`, as far as they are meant.
    pub fn apply(&self, start_bytes: u64, data: &mut [u8]) {
        let from = self.span.start_bytes.max(start_bytes);
        let to = (self.span.start_bytes + self.span.length_bytes).min(start_bytes + data.len() as u64);
        if from >= to {
            return;
        }
        let place = &mut data[(from - start_bytes) as usize..(to - start_bytes) as usize];
        match &self.with {
            With::Flip(mask) => place.iter_mut().for_each(|byte| *byte ^= mask),
            With::Byte(value) => place.fill(*value),
            With::Bytes(bytes) => {
                let skipped = (from - self.span.start_bytes) as usize;
                let again = bytes.iter().cycle().skip(skipped % bytes.len());
                place.iter_mut().zip(again).for_each(|(byte, value)| *byte = *value);
            }
        }
    }
}

/// What is to be done to contents that somebody keeps. Changes go by the numbers of the undo log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Damage {
    /// What a change did there is not stored.
    Undone {
        /// Which.
        change: u64,
        /// Where.
        span: Span,
    },
    /// What a change stored is not what was sent; without one, what lies there now is altered.
    Altered {
        /// Which.
        change: Option<u64>,
        /// How.
        how: Alteration,
    },
    /// A member of an array holds something else than the contents imply.
    OfMember {
        /// Which.
        member: u32,
        /// The damage.
        what: MemberDamage,
    },
    /// What a change should have stored there is somewhere else.
    Astray {
        /// Which.
        change: u64,
        /// Where it should be.
        span: Span,
        /// The first byte of where it is.
        to_bytes: u64,
    },
    /// What was there before a change is kept: reads may find it.
    Kept {
        /// Which.
        change: u64,
        /// Where.
        span: Span,
    },
    /// A read will want what was kept for this change ([`Spoil::Before`]), when it is answered.
    Awaited {
        /// Which.
        change: u64,
    },
    /// What was kept for this change is not needed any more, but by reads that await it.
    Forgotten {
        /// Which.
        change: u64,
    },
}

/// What has happened to what a member holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemberDamage {
    /// What lies there is altered: the place is the member's own.
    Altered(Alteration),
    /// What it should have stored of a change it has not, data and parity alike: the place is the array's.
    NotStored {
        /// Which.
        change: u64,
        /// Where.
        span: Span,
    },
}

/// What a read brings that is not what is stored there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spoil {
    /// Altered bytes.
    Altered(Alteration),
    /// What is stored elsewhere.
    From {
        /// Where it was asked for.
        span: Span,
        /// The first byte of where it came from.
        from_bytes: u64,
    },
    /// What was there before a change.
    Before {
        /// Where.
        span: Span,
        /// Which.
        change: u64,
    },
}

impl Spoil {
    /// The change of which it wants what was there before.
    pub fn change(&self) -> Option<u64> {
        match self {
            Spoil::Before { change, .. } => Some(*change),
            Spoil::Altered(_) | Spoil::From { .. } => None,
        }
    }
}

/// Damage that was done, as proof: to which request, and which bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Harm {
    /// When it was done.
    pub at_ns: u64,
    /// The request that met it; none where data were struck that lay there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<HarmedRequest>,
    /// What was done.
    #[serde(flatten)]
    pub what: HarmDone,
}

/// A request, as a proof names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct HarmedRequest {
    /// What it was.
    pub kind: RequestKind,
    /// Where.
    pub offset_bytes: u64,
    /// How much.
    pub length_bytes: u32,
}

impl From<&Request> for HarmedRequest {
    fn from(request: &Request) -> HarmedRequest {
        let Request { kind, offset_bytes, length_bytes, .. } = *request;
        HarmedRequest { kind: kind.into(), offset_bytes, length_bytes }
    }
}

/// What was done to bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "harm", rename_all = "kebab-case")]
pub enum HarmDone {
    /// These bits of a byte were inverted.
    Flipped {
        /// Which byte.
        at_bytes: u64,
        /// Which bits.
        mask: u8,
    },
    /// Other bytes are there.
    Overwritten {
        /// The first.
        at_bytes: u64,
        /// How many.
        length_bytes: u64,
    },
    /// Nothing was stored.
    NotStored {
        /// The first byte.
        at_bytes: u64,
        /// How many.
        length_bytes: u64,
    },
    /// They were stored elsewhere.
    StoredElsewhere {
        /// The first byte.
        at_bytes: u64,
        /// How many.
        length_bytes: u64,
        /// The first byte of where they are.
        to_bytes: u64,
    },
    /// Those of another place were read.
    ReadElsewhere {
        /// The first byte.
        at_bytes: u64,
        /// How many.
        length_bytes: u64,
        /// The first byte of where they are.
        from_bytes: u64,
    },
    /// Those from before the last write were read.
    Stale {
        /// The first byte.
        at_bytes: u64,
        /// How many.
        length_bytes: u64,
    },
}

/// How data are corrupted, of whichever request.
#[derive(Clone, Debug)]
pub(crate) struct Corruptor {
    pub how: Corruption,
    /// Bits of a request, or sectors that follow each other.
    pub count: u64,
    pub pattern: Option<Pattern>,
}

impl Corruptor {
    /// What it does to a span, drawn anew: bits anywhere, or a run of sectors. Errors of real devices lie together (Bairavasundaram
    /// and others, FAST 2008), so that sectors are one run.
    pub fn draw(&self, span: Span, random: &mut Random) -> Vec<(Alteration, HarmDone)> {
        if span.length_bytes == 0 {
            return Vec::new();
        }
        let with = match (self.how, &self.pattern) {
            (Corruption::BitFlip, _) => return self.flips(span, random),
            (Corruption::Zeros, _) => With::Byte(0),
            (Corruption::Ones, _) => With::Byte(0xFF),
            (Corruption::Pattern, pattern) => With::Bytes(pattern.as_ref().expect("checked before").bytes().into()),
        };
        let sectors = span.length_bytes.div_ceil(SECTOR_BYTES);
        let count = self.count.min(sectors);
        let start_bytes = span.start_bytes + random.below(sectors - count + 1) * SECTOR_BYTES;
        let end_bytes = (start_bytes + count * SECTOR_BYTES).min(span.start_bytes + span.length_bytes);
        let length_bytes = end_bytes - start_bytes;
        let how = Alteration { span: Span { start_bytes, length_bytes }, with };
        vec![(how, HarmDone::Overwritten { at_bytes: start_bytes, length_bytes })]
    }

    /// Different bits: one that is inverted twice is well.
    fn flips(&self, span: Span, random: &mut Random) -> Vec<(Alteration, HarmDone)> {
        let bits = span.length_bytes * 8;
        let mut drawn: Vec<u64> = Vec::new();
        while (drawn.len() as u64) < self.count.min(bits) {
            let bit = random.below(bits);
            if !drawn.contains(&bit) {
                drawn.push(bit);
            }
        }
        drawn.sort_unstable();
        let mut masks: Vec<(u64, u8)> = Vec::new();
        for bit in drawn {
            let (at_bytes, mask) = (span.start_bytes + bit / 8, 1 << (bit % 8));
            match masks.last_mut() {
                Some((last, bits)) if *last == at_bytes => *bits |= mask,
                _ => masks.push((at_bytes, mask)),
            }
        }
        let flip = |(at_bytes, mask): (u64, u8)| {
            let span = Span { start_bytes: at_bytes, length_bytes: 1 };
            (Alteration { span, with: With::Flip(mask) }, HarmDone::Flipped { at_bytes, mask })
        };
        masks.into_iter().map(flip).collect()
    }
}
