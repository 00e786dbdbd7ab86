//! Effects of faults on contents: as requested ([`Corruption`]), as reported to the component that keeps contents
//! ([`Damage`]), and as proof ([`DamageProof`]).
//! A simulated system has no contents, so a fault only states which bytes are wrong and how; the component that keeps
//! contents applies this damage. The proof is the same in a simulated run, which keeps no contents.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use headstack_workload::quantity::parse_bytes;
use headstack_workload::{Random, Request, Span};
use serde::{Deserialize, Serialize};

use super::RequestKind;
use super::trigger::Pattern;

/// Unit of damage: a sector of 512 bytes, regardless of the block size.
pub const SECTOR_BYTES: u64 = 512;
/// Maximum number of damages per fault that are listed individually.
pub const HARMS_LISTED_MAX: usize = 1 << 16;
/// Maximum number of places with older data per fault; the oldest are dropped first.
pub const PLACES_MAX: usize = 4096;

/// How a failed flush treats the data that it should have made durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unflushed {
    /// The data stay in the cache: the next flush may succeed.
    #[default]
    Keep,
    /// The cache drops the data, and the next flush does not report the loss.
    Drop,
}

/// When data are corrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// On the way to the media: the stored data differ from the sent data.
    Write,
    /// While they are stored.
    Rest,
    /// On the way back: the stored data are intact.
    Read,
}

/// Kind of corruption.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Corruption {
    /// Inverts single bits.
    BitFlip,
    /// Sets sectors to zeros.
    Zeros,
    /// Sets sectors to ones.
    Ones,
    /// Fills sectors with a pattern.
    Pattern,
}

/// How long reads return older data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lasting {
    /// Only for the next read of the place.
    #[default]
    Once,
    /// For all reads until the place is rewritten.
    UntilRewritten,
}

/// A signed distance in the address space: `"1MiB"`, `"-64KiB"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Distance(pub i64);

impl FromStr for Distance {
    type Err = String;

    fn from_str(text: &str) -> Result<Distance, String> {
        let wrong = || format!("{text:?} is not a distance; use a size such as \"64KiB\" or \"-64KiB\"");
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
        let wrong = || format!("{text:?} is not a fraction; use two numbers such as \"3/8\", the smaller first");
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

/// Serializes a type as text, with the type's own parser and `Display`.
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

/// The new contents of altered bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Replacement {
    /// Inverts the bits of this mask.
    Flip(u8),
    /// Sets all bytes to this value.
    Byte(u8),
    /// Repeats these bytes from the start of the span.
    Bytes(Arc<[u8]>),
}

/// A span with altered contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alteration {
    /// The affected bytes.
    pub span: Span,
    /// Their new contents.
    pub with: Replacement,
}

impl Alteration {
    /// Returns the replacement for the part from `start_bytes` on, which must be within the span.
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

    /// Applies the alteration to data that begin at `start_bytes`, as far as the two overlap.
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

/// A damage to apply to kept contents. Changes have the same numbers as in the undo log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Damage {
    /// A change is not stored in a span.
    Undone {
        /// Number of the change.
        change: u64,
        /// The affected bytes.
        span: Span,
    },
    /// A change is stored with alterations; without a change, the stored data are altered.
    Altered {
        /// Number of the change.
        change: Option<u64>,
        /// The alteration.
        how: Alteration,
    },
    /// A member of an array holds something other than it should.
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
        /// Intended place of the data.
        span: Span,
        /// First byte of the actual place.
        to_bytes: u64,
    },
    /// The data before a change are kept, so that reads can return them.
    Kept {
        /// Number of the change.
        change: u64,
        /// The affected bytes.
        span: Span,
    },
    /// A read will need the data kept for this change ([`ReadCorruption::Before`]) when the read is answered.
    Awaited {
        /// Number of the change.
        change: u64,
    },
    /// The data kept for this change are no longer needed, except by reads that already await them.
    Forgotten {
        /// Number of the change.
        change: u64,
    },
}

/// Damage to the contents of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemberDamage {
    /// The stored data are altered; addresses are those of the member.
    Altered(Alteration),
    /// A change is not stored, neither data nor parity; addresses are those of the array.
    NotStored {
        /// Number of the change.
        change: u64,
        /// The affected bytes.
        span: Span,
    },
}

/// Wrong data that a read returns instead of the stored data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadCorruption {
    /// Altered bytes.
    Altered(Alteration),
    /// Data from another place.
    From {
        /// The requested bytes.
        span: Span,
        /// First byte of the place from which the data came.
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
    /// Returns the change whose previous data the read needs, if any.
    pub fn change(&self) -> Option<u64> {
        match self {
            ReadCorruption::Before { change, .. } => Some(*change),
            ReadCorruption::Altered(_) | ReadCorruption::From { .. } => None,
        }
    }
}

/// Proof of damage: the damaged request and bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct DamageProof {
    /// Time of the damage.
    pub at_ns: u64,
    /// The damaged request; `None` if stored data were damaged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<HarmedRequest>,
    /// The damage.
    #[serde(flatten)]
    pub what: ByteDamage,
}

/// A request in a proof of damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct HarmedRequest {
    /// Kind of the request.
    pub kind: RequestKind,
    /// Offset of the request, in bytes.
    pub offset_bytes: u64,
    /// Length of the request, in bytes.
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
    /// Data were stored at the wrong place.
    StoredElsewhere {
        /// The first byte.
        at_bytes: u64,
        /// Number of bytes.
        length_bytes: u64,
        /// First byte of the actual place.
        to_bytes: u64,
    },
    /// Data were read from the wrong place.
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

/// Parameters of a corruption, which apply to any request.
#[derive(Clone, Debug)]
pub(crate) struct Corruptor {
    pub how: Corruption,
    /// Number of bits per request, or of consecutive sectors.
    pub count: u64,
    pub pattern: Option<Pattern>,
}

impl Corruptor {
    /// Draws the corruption of a span: bits anywhere, or one run of sectors, because errors of real devices are
    /// clustered (Bairavasundaram et al., FAST 2008).
    pub fn draw(&self, span: Span, random: &mut Random) -> Vec<(Alteration, ByteDamage)> {
        if span.length_bytes == 0 {
            return Vec::new();
        }
        let with = match (self.how, &self.pattern) {
            (Corruption::BitFlip, _) => return self.flips(span, random),
            (Corruption::Zeros, _) => Replacement::Byte(0),
            (Corruption::Ones, _) => Replacement::Byte(0xFF),
            (Corruption::Pattern, pattern) => {
                Replacement::Bytes(pattern.as_ref().expect("a pattern corruption has a pattern").bytes().into())
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

    /// Draws distinct bits, because inverting a bit twice would restore it.
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
