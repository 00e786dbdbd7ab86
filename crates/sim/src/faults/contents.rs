//! Effects of faults on contents: as requested ([`Corruption`]), as reported to the component that keeps contents
//! ([`Damage`]), and as proof ([`DamageProof`]).
//!
//! A system has no contents, so a fault states which bytes are wrong and how, and the component that keeps contents
//! applies that. In simulated runs, which keep none, the proof is the same.

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
/// Most damages that are listed one by one, per fault.
pub const HARMS_LISTED_MAX: usize = 1 << 16;
/// Most places with older data that one fault remembers; it forgets the oldest of more.
pub const PLACES_MAX: usize = 4096;

/// How a failed flush treats the data that it should have made durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unflushed {
    /// They stay in the cache: the next flush may succeed.
    #[default]
    Keep,
    /// The cache has lost them, and the next flush does not report it.
    Drop,
}

/// When data are corrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// On their way to the media: the stored data differ from the sent ones.
    Write,
    /// While they are stored.
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

/// How long reads return older data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lasting {
    /// Only the next read of the place.
    #[default]
    Once,
    /// All reads until the place is rewritten.
    UntilRewritten,
}

/// A distance in the address space, forwards or backwards: `"1MiB"`, `"-64KiB"`.
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

/// A fraction: `"3/8"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Numerator.
    pub numerator: u32,
    /// Denominator.
    pub denominator: u32,
}

impl FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> Result<Part, String> {
        let wrong = || format!("{text:?} is not a fraction: write two numbers such as \"3/8\", the smaller first");
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

/// Serializes a type as text, with its own parser and display.
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

/// Replacement for data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Replacement {
    /// Inverts the bits of this mask.
    Flip(u8),
    /// Sets all bytes to this one.
    Byte(u8),
    /// Repeats these bytes from the start of the place.
    Bytes(Arc<[u8]>),
}

/// Bytes with wrong contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alteration {
    /// The affected bytes.
    pub span: Span,
    /// Their new contents.
    pub with: Replacement,
}

impl Alteration {
    /// Returns the part from `start_bytes` on, which is within it.
    pub fn part(&self, start_bytes: u64) -> Replacement {
        match &self.with {
            Replacement::Bytes(bytes) => {
                let mut turned = bytes.to_vec();
                turned.rotate_left((start_bytes - self.span.start_bytes) as usize % bytes.len());
                Replacement::Bytes(turned.into())
            }
            Replacement::Flip(_) | Replacement::Byte(_) => self.with.clone(),
        }
    }

    /// Applies it to data that begin at `start_bytes`, as far as they overlap.
    pub fn apply(&self, start_bytes: u64, data: &mut [u8]) {
        let from = self.span.start_bytes.max(start_bytes);
        let to = (self.span.start_bytes + self.span.length_bytes).min(start_bytes + data.len() as u64);
        if from >= to {
            return;
        }
        let place = &mut data[(from - start_bytes) as usize..(to - start_bytes) as usize];
        match &self.with {
            Replacement::Flip(mask) => place.iter_mut().for_each(|byte| *byte ^= mask),
            Replacement::Byte(value) => place.fill(*value),
            Replacement::Bytes(bytes) => {
                let skipped = (from - self.span.start_bytes) as usize;
                let again = bytes.iter().cycle().skip(skipped % bytes.len());
                place.iter_mut().zip(again).for_each(|(byte, value)| *byte = *value);
            }
        }
    }
}

/// A damage to apply to kept contents. Changes are numbered as in the undo log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Damage {
    /// A change is not stored in a span.
    Undone {
        /// Number of the change.
        change: u64,
        /// The affected bytes.
        span: Span,
    },
    /// A change is stored altered; without a change, the stored data are altered.
    Altered {
        /// Number of the change.
        change: Option<u64>,
        /// The alteration.
        how: Alteration,
    },
    /// A member of an array holds something other than the contents imply.
    OfMember {
        /// The member.
        member: u32,
        /// The damage.
        what: MemberDamage,
    },
    /// A change is stored elsewhere.
    Astray {
        /// Number of the change.
        change: u64,
        /// Its intended place.
        span: Span,
        /// First byte of its actual place.
        to_bytes: u64,
    },
    /// The data before a change are kept: reads may return them.
    Kept {
        /// Number of the change.
        change: u64,
        /// The affected bytes.
        span: Span,
    },
    /// A read will need the data kept for this change ([`ReadCorruption::Before`]) when it is answered.
    Awaited {
        /// Number of the change.
        change: u64,
    },
    /// The data kept for this change are no longer needed, except by reads that await them.
    Forgotten {
        /// Number of the change.
        change: u64,
    },
}

/// Damage to the contents of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemberDamage {
    /// The stored data are altered; addresses are the member's own.
    Altered(Alteration),
    /// A change is not stored, neither data nor parity; addresses are the array's.
    NotStored {
        /// Number of the change.
        change: u64,
        /// The affected bytes.
        span: Span,
    },
}

/// Wrong data that a read returns instead of the stored ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadCorruption {
    /// Altered bytes.
    Altered(Alteration),
    /// Data of another place.
    From {
        /// The requested bytes.
        span: Span,
        /// First byte of the place that they came from.
        from_bytes: u64,
    },
    /// The data before a change.
    Before {
        /// The affected bytes.
        span: Span,
        /// Number of the change.
        change: u64,
    },
}

impl ReadCorruption {
    /// Returns the change whose previous data it needs.
    pub fn change(&self) -> Option<u64> {
        match self {
            ReadCorruption::Before { change, .. } => Some(*change),
            ReadCorruption::Altered(_) | ReadCorruption::From { .. } => None,
        }
    }
}

/// Proof of damage: the request that met it, and the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct DamageProof {
    /// Time of the damage.
    pub at_ns: u64,
    /// The request that met it; `None` if stored data were damaged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<HarmedRequest>,
    /// The damage.
    #[serde(flatten)]
    pub what: ByteDamage,
}

/// A request, as a proof names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct HarmedRequest {
    /// Its kind.
    pub kind: RequestKind,
    /// Its offset.
    pub offset_bytes: u64,
    /// Its length.
    pub length_bytes: u32,
}

impl From<&Request> for HarmedRequest {
    fn from(request: &Request) -> HarmedRequest {
        let Request { kind, offset_bytes, length_bytes, .. } = *request;
        HarmedRequest { kind: kind.into(), offset_bytes, length_bytes }
    }
}

/// Damage to bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "harm", rename_all = "kebab-case")]
pub enum ByteDamage {
    /// Bits of a byte were inverted.
    Flipped {
        /// Address of the byte.
        at_bytes: u64,
        /// Mask of the bits.
        mask: u8,
    },
    /// Bytes were overwritten.
    Overwritten {
        /// The first byte.
        at_bytes: u64,
        /// Number of bytes.
        length_bytes: u64,
    },
    /// Nothing was stored.
    NotStored {
        /// The first byte.
        at_bytes: u64,
        /// Number of bytes.
        length_bytes: u64,
    },
    /// Data were stored elsewhere.
    StoredElsewhere {
        /// The first byte.
        at_bytes: u64,
        /// Number of bytes.
        length_bytes: u64,
        /// First byte of their actual place.
        to_bytes: u64,
    },
    /// Data of another place were read.
    ReadElsewhere {
        /// The first byte.
        at_bytes: u64,
        /// Number of bytes.
        length_bytes: u64,
        /// First byte of the place that was read.
        from_bytes: u64,
    },
    /// Data from before the last write were read.
    Stale {
        /// The first byte.
        at_bytes: u64,
        /// Number of bytes.
        length_bytes: u64,
    },
}

/// Parameters of a corruption, for any request.
#[derive(Clone, Debug)]
pub(crate) struct Corruptor {
    pub how: Corruption,
    /// Number of bits of a request, or of consecutive sectors.
    pub count: u64,
    pub pattern: Option<Pattern>,
}

impl Corruptor {
    /// Draws the corruption of a span: bits anywhere, or a run of sectors. Errors of real devices are clustered
    /// (Bairavasundaram and others, FAST 2008), so sectors form one run.
    pub fn draw(&self, span: Span, random: &mut Random) -> Vec<(Alteration, ByteDamage)> {
        if span.length_bytes == 0 {
            return Vec::new();
        }
        let with = match (self.how, &self.pattern) {
            (Corruption::BitFlip, _) => return self.flips(span, random),
            (Corruption::Zeros, _) => Replacement::Byte(0),
            (Corruption::Ones, _) => Replacement::Byte(0xFF),
            (Corruption::Pattern, pattern) => {
                Replacement::Bytes(pattern.as_ref().expect("checked before").bytes().into())
            }
        };
        let sectors = span.length_bytes.div_ceil(SECTOR_BYTES);
        let count = self.count.min(sectors);
        let start_bytes = span.start_bytes + random.below(sectors - count + 1) * SECTOR_BYTES;
        let end_bytes = (start_bytes + count * SECTOR_BYTES).min(span.start_bytes + span.length_bytes);
        let length_bytes = end_bytes - start_bytes;
        let how = Alteration { span: Span { start_bytes, length_bytes }, with };
        vec![(how, ByteDamage::Overwritten { at_bytes: start_bytes, length_bytes })]
    }

    /// Draws distinct bits: inverting one twice would restore it.
    fn flips(&self, span: Span, random: &mut Random) -> Vec<(Alteration, ByteDamage)> {
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
            (Alteration { span, with: Replacement::Flip(mask) }, ByteDamage::Flipped { at_bytes, mask })
        };
        masks.into_iter().map(flip).collect()
    }
}
