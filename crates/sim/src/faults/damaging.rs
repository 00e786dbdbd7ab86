//! [`Damaging`]: faults of single requests that fail them, or damage the data that they write or read.

use headstack_workload::{Bytes, Kind, Random, Request, Span};

use super::contents::{
    ByteDamage, Corruption, Corruptor, Damage, DamageProof, HarmedRequest, Lasting, MemberDamage, Part, ReadCorruption,
    SECTOR_BYTES, Stage, Unflushed,
};
use super::filter::{Complaint, Filter, positive, share};
use super::stale::Places;
use super::trigger::{Choice, RequestView};
use super::{Errno, Fault, FaultEffect, RequestKind, Stretch};

/// Returns the filter for ranges and kinds.
type Filtering<'a> = dyn Fn(&[Stretch], &[RequestKind]) -> Result<Filter, Complaint> + 'a;

/// A fault of single requests: which requests meet it, and its effect on them.
#[derive(Clone, Debug)]
pub(crate) struct Damaging {
    pub(super) filter: Filter,
    share: f64,
    wrong: Wrong,
}

#[derive(Clone, Debug)]
enum Wrong {
    Refused {
        errno: Errno,
        time_ns: u64,
        unflushed: Unflushed,
    },
    /// Not stored by a member of an array, or by the whole array.
    NotStored {
        member: Option<u32>,
    },
    Shorn {
        part: Part,
        atom_bytes: u64,
    },
    Misdirected {
        distance_bytes: i64,
        capacity_bytes: u64,
    },
    Corrupted(Corruptor),
    Stale {
        lasting: Lasting,
        places: Places,
    },
}

/// An arriving request, with what a fault needs to know about it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArrivingRequest<'a> {
    pub at_ns: u64,
    pub request: &'a Request,
    pub sight: &'a RequestView,
    /// Its number in the undo log; any number if no contents are kept.
    pub change: u64,
    /// Whether another fault has failed or damaged it: of several, a request meets only the first.
    pub is_wronged: bool,
}

/// The outcome of a request that met a fault.
#[derive(Clone, Debug, Default)]
pub(crate) struct FaultOutcome {
    pub deed: Option<FaultEffect>,
    /// Error with which it is refused, and after what time.
    pub refused: Option<(Errno, u64)>,
    /// Whether data that were not flushed are lost.
    pub drops_unflushed: bool,
    pub damages: Vec<Damage>,
    pub spoils: Vec<ReadCorruption>,
    pub harms: Vec<DamageProof>,
}

impl Damaging {
    /// Returns the effect of a fault of contents, or of single requests, on a system of `capacity_bytes` in blocks of
    /// `block_bytes`, or on a member of it. `filter` translates ranges and kinds.
    ///
    /// # Errors
    /// The first impossible key and its allowed values.
    pub fn of(
        fault: &Fault,
        member: Option<u32>,
        (capacity_bytes, block_bytes): (u64, u32),
        filter: &Filtering<'_>,
    ) -> Result<Damaging, Complaint> {
        let usual = |kinds: &[RequestKind], usual: &[RequestKind]| {
            if kinds.is_empty() { usual.to_vec() } else { kinds.to_vec() }
        };
        let (reads, writes) = (&[RequestKind::Read][..], &[RequestKind::Write][..]);
        let damaging = |ranges: &[Stretch], kinds: &[RequestKind], percent: Option<f64>, wrong: Wrong| {
            Ok(Damaging { filter: filter(ranges, kinds)?, share: share(percent)?, wrong })
        };
        match fault {
            Fault::Corrupt { ranges, on, how, bits, sectors, pattern, percent, .. } => {
                let corruptor = corruptor(*how, *bits, *sectors, pattern.as_ref())?;
                match on {
                    Stage::Rest => unreachable!("it is about no request"),
                    Stage::Read => damaging(ranges, reads, *percent, Wrong::Corrupted(corruptor)),
                    Stage::Write => damaging(ranges, writes, *percent, Wrong::Corrupted(corruptor)),
                }
            }
            Fault::Misdirect { ranges, distance, percent, kinds, .. } => {
                if kinds.iter().any(|kind| matches!(kind, RequestKind::Trim | RequestKind::Flush)) {
                    return Err((
                        "kinds",
                        "only reads and writes have data to misplace; allowed: read, write".to_owned(),
                    ));
                }
                let block = i64::from(block_bytes);
                if distance.0 == 0 || distance.0 % block != 0 || distance.0.unsigned_abs() >= capacity_bytes {
                    let text = format!("{distance}: whole blocks of {block} B within the system are allowed");
                    return Err(("distance", text));
                }
                let wrong = Wrong::Misdirected { distance_bytes: distance.0, capacity_bytes };
                damaging(ranges, &usual(kinds, writes), *percent, wrong)
            }
            Fault::LoseWrite { ranges, percent, .. } => damaging(ranges, writes, *percent, Wrong::NotStored { member }),
            Fault::StaleRead { ranges, lasting, percent } => {
                damaging(ranges, reads, *percent, Wrong::Stale { lasting: *lasting, places: Places::default() })
            }
            Fault::ShornWrite { ranges, part, atom, percent } => {
                let atom_bytes = atom.map_or(SECTOR_BYTES, |Bytes(bytes)| bytes);
                if !atom_bytes.is_power_of_two() || !(SECTOR_BYTES..=65536).contains(&atom_bytes) {
                    let text = format!(
                        "{atom_bytes} B is not the size of an atom; a power of two from 512 B to 64 KiB is allowed"
                    );
                    return Err(("atom", text));
                }
                damaging(ranges, writes, *percent, Wrong::Shorn { part: *part, atom_bytes })
            }
            Fault::Errno { ranges, errno, kinds, time, unflushed, percent } => {
                let kinds = match errno {
                    Errno::Io | Errno::TimedOut => kinds.clone(),
                    Errno::NoSpace => usual(kinds, writes),
                    Errno::ReadOnly => usual(kinds, &[RequestKind::Write, RequestKind::Trim]),
                };
                let flushes = kinds.is_empty() || kinds.contains(&RequestKind::Flush);
                if unflushed.is_some() && !flushes {
                    return Err(("unflushed", "its kinds include no flush; the key is not allowed".to_owned()));
                }
                let time_ns = time.map_or(Ok(0), |time| positive("time", time))?;
                let wrong = Wrong::Refused { errno: *errno, time_ns, unflushed: unflushed.unwrap_or_default() };
                damaging(ranges, &kinds, *percent, wrong)
            }
            Fault::MediaError { .. }
            | Fault::WeakSectors { .. }
            | Fault::FailSlow { .. }
            | Fault::LatencySpike { .. }
            | Fault::Hang { .. }
            | Fault::DropOut
            | Fault::MemberFails { .. }
            | Fault::MemberReturns { .. }
            | Fault::SpareAdded { .. }
            | Fault::Scrub { .. }
            | Fault::BatteryFails
            | Fault::BatteryReturns
            | Fault::LinkErrors { .. }
            | Fault::LinkResets { .. }
            | Fault::LyingCache
            | Fault::PowerCut { .. }
            | Fault::PowerOn
            | Fault::SetState { .. } => unreachable!("it neither damages data nor fails requests"),
        }
    }

    /// Returns the outcome of a request; without a deed if it does not meet the fault.
    pub fn meets(&mut self, coming: &ArrivingRequest<'_>, choice: &mut Choice, random: &mut Random) -> FaultOutcome {
        let ArrivingRequest { request, sight, change, is_wronged, .. } = *coming;
        let mut met = FaultOutcome::default();
        let changes = matches!(request.kind, Kind::Write | Kind::Trim);
        if let Wrong::Stale { places, .. } = &mut self.wrong
            && changes
        {
            // Writes turn data into old data.
            if self.filter.touches(request) {
                places.written(request.span(), change, request.kind == Kind::Write, &mut met.damages);
            }
            return met;
        }
        if !self.filter.matches(request) || !self.can_strike(request) {
            return met;
        }
        // A request that has read old data once continues to do so.
        let is_bound = matches!(&self.wrong, Wrong::Stale { places, .. } if places.sticks(request.span()));
        if !is_bound && (!choice.takes(sight) || random.fraction() >= self.share) {
            return met;
        }
        // Its random numbers do not depend on other faults.
        if is_wronged {
            return met;
        }
        choice.spend();
        self.strike(coming, random, &mut met);
        met
    }

    /// Whether the fault can do anything to a request.
    fn can_strike(&self, request: &Request) -> bool {
        match &self.wrong {
            Wrong::Refused { .. } => true,
            Wrong::NotStored { .. } | Wrong::Shorn { .. } | Wrong::Corrupted(_) => request.length_bytes > 0,
            Wrong::Misdirected { distance_bytes, capacity_bytes } => {
                let end = |to: u64| to.checked_add(u64::from(request.length_bytes));
                let to = request.offset_bytes.checked_add_signed(*distance_bytes);
                to.and_then(end).is_some_and(|end| end <= *capacity_bytes) && request.length_bytes > 0
            }
            Wrong::Stale { places, .. } => !places.within(request.span()).is_empty(),
        }
    }

    fn strike(&mut self, coming: &ArrivingRequest<'_>, random: &mut Random, met: &mut FaultOutcome) {
        let ArrivingRequest { at_ns, request, change, .. } = *coming;
        let span = request.span();
        let (at_bytes, length_bytes) = (span.start_bytes, span.length_bytes);
        let harmed = Some(HarmedRequest::from(request));
        let harm = |what: ByteDamage| DamageProof { at_ns, request: harmed, what };
        met.deed = Some(match &mut self.wrong {
            Wrong::Refused { errno, time_ns, unflushed } => {
                if matches!(request.kind, Kind::Write | Kind::Trim) {
                    met.damages.push(Damage::Undone { change, span });
                }
                met.drops_unflushed = request.kind == Kind::Flush && *unflushed == Unflushed::Drop;
                met.refused = Some((*errno, *time_ns));
                FaultEffect::Refused
            }
            Wrong::NotStored { member } => {
                met.damages.push(match *member {
                    None => Damage::Undone { change, span },
                    Some(member) => Damage::OfMember { member, what: MemberDamage::NotStored { change, span } },
                });
                met.harms.push(harm(ByteDamage::NotStored { at_bytes, length_bytes }));
                FaultEffect::NotStored
            }
            Wrong::Shorn { part, atom_bytes } => {
                let stored = length_bytes * u64::from(part.numerator) / u64::from(part.denominator);
                let stored = stored / *atom_bytes * *atom_bytes;
                let (at_bytes, length_bytes) = (at_bytes + stored, length_bytes - stored);
                met.damages.push(Damage::Undone { change, span: Span { start_bytes: at_bytes, length_bytes } });
                met.harms.push(harm(ByteDamage::NotStored { at_bytes, length_bytes }));
                FaultEffect::Shorn
            }
            Wrong::Misdirected { distance_bytes, .. } => {
                let other = at_bytes.checked_add_signed(*distance_bytes).expect("it was seen that it can be");
                if request.kind == Kind::Read {
                    met.spoils.push(ReadCorruption::From { span, from_bytes: other });
                    met.harms.push(harm(ByteDamage::ReadElsewhere { at_bytes, length_bytes, from_bytes: other }));
                } else {
                    met.damages.push(Damage::Astray { change, span, to_bytes: other });
                    met.harms.push(harm(ByteDamage::StoredElsewhere { at_bytes, length_bytes, to_bytes: other }));
                }
                FaultEffect::Misdirected
            }
            Wrong::Corrupted(corruptor) => {
                for (how, what) in corruptor.draw(span, random) {
                    match request.kind {
                        Kind::Read => met.spoils.push(ReadCorruption::Altered(how)),
                        Kind::Write | Kind::Trim | Kind::Flush => {
                            met.damages.push(Damage::Altered { change: Some(change), how });
                        }
                    }
                    met.harms.push(harm(what));
                }
                FaultEffect::Corrupted
            }
            Wrong::Stale { lasting, places } => {
                met.spoils = places.within(span);
                for spoil in &met.spoils {
                    let ReadCorruption::Before { span: Span { start_bytes: at_bytes, length_bytes }, .. } = *spoil
                    else {
                        continue;
                    };
                    met.harms.push(harm(ByteDamage::Stale { at_bytes, length_bytes }));
                    met.damages.extend(spoil.change().map(|change| Damage::Awaited { change }));
                }
                places.read(span, *lasting == Lasting::Once, &mut met.damages);
                FaultEffect::Stale
            }
        });
    }

    /// Ends the fault.
    pub fn end(&mut self, damages: &mut Vec<Damage>) {
        if let Wrong::Stale { places, .. } = &mut self.wrong {
            places.end(damages);
        }
    }

    /// Whether a fault that meets only one request stays active afterwards, for others that follow from it.
    pub fn outlives_once(&self) -> bool {
        matches!(self.wrong, Wrong::Stale { .. })
    }
}

/// Returns the corruptor for some keys.
///
/// # Errors
/// Keys that exclude each other.
pub(super) fn corruptor(
    how: Corruption,
    bits: Option<u32>,
    sectors: Option<u32>,
    pattern: Option<&super::Pattern>,
) -> Result<Corruptor, Complaint> {
    let count = match (how, bits, sectors) {
        (Corruption::BitFlip, bits, None) => ("bits", bits),
        (Corruption::BitFlip, _, Some(_)) => {
            return Err(("sectors", "this damage inverts single bits; set bits instead".to_owned()));
        }
        (Corruption::Zeros | Corruption::Ones | Corruption::Pattern, None, sectors) => ("sectors", sectors),
        (Corruption::Zeros | Corruption::Ones | Corruption::Pattern, Some(_), _) => {
            return Err(("bits", "this damage replaces whole sectors; set sectors instead".to_owned()));
        }
    };
    match (how, pattern) {
        (Corruption::Pattern, None) => {
            return Err(("pattern", "this key is missing: some text, or 0x and hexadecimal digits".to_owned()));
        }
        (Corruption::BitFlip | Corruption::Zeros | Corruption::Ones, Some(_)) => {
            return Err(("pattern", "only allowed with how = \"pattern\"".to_owned()));
        }
        (Corruption::Pattern, Some(_)) | (Corruption::BitFlip | Corruption::Zeros | Corruption::Ones, None) => {}
    }
    let (key, count) = (count.0, count.1.unwrap_or(1));
    // As many as a request of 32 MiB has sectors.
    if !(1..=65536).contains(&count) {
        return Err((key, format!("{count}: 1 to 65536 are allowed")));
    }
    Ok(Corruptor { how, count: u64::from(count), pattern: pattern.cloned() })
}
