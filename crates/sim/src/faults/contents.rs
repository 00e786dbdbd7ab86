//! Effects of faults on contents: their configuration, the instructions for the owner of contents, and their proof.
//!
//! A system has no contents, so a fault describes the affected bytes and the damage, and the owner of contents applies
//! it. Without contents, in simulated runs, the proof is the same.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use headstack_workload::quantity::parse_bytes;
use headstack_workload::{Random, Request, Span};
use serde::{Deserialize, Serialize};

use super::RequestKind;
use super::trigger::Pattern;

/// Unit of damage: a sector of 512 bytes, for any block size.
pub const SECTOR_BYTES: u64 = 512;
/// Number of damages that are listed individually per fault.
pub const HARMS_TOLD: usize = 1 << 16;
/// Places with older data that one fault remembers; beyond, it forgets the oldest.
pub const PLACES_MAX: usize = 4096;

/// Treatment of unflushed data by a failed flush.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unflushed {
    /// It stays in the cache: the next flush may do better.
    #[default]
    Keep,
    /// The cache has lost them, and the next flush does not report it.
    Drop,
}

/// Stage at which data are corrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// On their way to the media: the stored data differ from those sent.
    Write,
    /// At rest.
    Rest,
    /// On their way back: the stored data are intact.
    Read,
}

/// Kind of corruption.
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
    /// Only the next read of the place.
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
    /// Numerator of the share.
    pub numerator: u32,
    /// Denominator of the share.
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

/// Replacement of data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum With {
    /// The bits of this mask are inverted.
    Flip(u8),
    /// All bytes are this.
    Byte(u8),
    /// These, again and again from the start of the place.
    Bytes(Arc<[u8]>),
}

/// Altered bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alteration {
    /// Range.
    pub span: Span,
    /// How.
    pub with: With,
}

impl Alteration {
    /// The part from `start_bytes` on, within it.
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

/// An instruction for the owner of contents. Changes are identified by the numbers of the undo log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Damage {
    /// A change is not stored in a range.
    Undone {
        /// Which.
        change: u64,
        /// Range.
        span: Span,
    },
    /// A change is stored with other data; without a change, the present data are altered.
    Altered {
        /// Which.
        change: Option<u64>,
        /// How.
        how: Alteration,
    },
    /// A member of an array differs from the data implied by the contents.
    OfMember {
        /// Which.
        member: u32,
        /// The damage.
        what: MemberDamage,
    },
    /// A change is stored at another place.
    Astray {
        /// Which.
        change: u64,
        /// Intended range.
        span: Span,
        /// First byte of the actual range.
        to_bytes: u64,
    },
    /// Keeps the previous data of a change: reads may return them.
    Kept {
        /// Which.
        change: u64,
        /// Range.
        span: Span,
    },
    /// A read will use the data kept for this change ([`Spoil::Before`]) when it is answered.
    Awaited {
        /// Which.
        change: u64,
    },
    /// The data kept for this change are not needed any more, except by reads that await them.
    Forgotten {
        /// Which.
        change: u64,
    },
}

/// Damage of a member's data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemberDamage {
    /// The present data are altered; the range is on the member.
    Altered(Alteration),
    /// Its part of a change is not stored, data and parity alike; the range is in the array.
    NotStored {
        /// Which.
        change: u64,
        /// Range.
        span: Span,
    },
}

/// Deviation of a read's data from the stored ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spoil {
    /// Altered bytes.
    Altered(Alteration),
    /// Data of another place.
    From {
        /// Requested range.
        span: Span,
        /// First byte of the actual range.
        from_bytes: u64,
    },
    /// Data from before a change.
    Before {
        /// Range.
        span: Span,
        /// Which.
        change: u64,
    },
}

impl Spoil {
    /// The change whose previous data it uses.
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
    /// The affected request; `None` for data damaged at rest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<HarmedRequest>,
    /// The damage.
    #[serde(flatten)]
    pub what: HarmDone,
}

/// A request, as a proof names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct HarmedRequest {
    /// Kind of the request.
    pub kind: RequestKind,
    /// Offset of the request.
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

/// Damage of bytes.
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
        /// First byte of the actual range.
        to_bytes: u64,
    },
    /// Data of another place were read.
    ReadElsewhere {
        /// The first byte.
        at_bytes: u64,
        /// How many.
        length_bytes: u64,
        /// First byte of the actual range.
        from_bytes: u64,
    },
    /// Data from before the last write were read.
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
    /// Random alteration of a span: arbitrary bits, or a run of sectors. Errors of real devices are clustered
    /// (Bairavasundaram and others, FAST 2008), so sectors form one run.
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
