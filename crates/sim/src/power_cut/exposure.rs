//! [`Exposure`]: the changes that a power cut would undo, as virtual time knows them, and the [`Fate`] of each at a
//! cut.

use std::collections::BTreeMap;

use headstack_workload::{Random, Span};

use super::{CHANGE_BYTES_MAX, PowerLoss, Tear, TornWrite};
use crate::spans::{common_with_all, put_in_order};

/// Most acknowledged data whose previous contents are kept. Above it the oldest count as durable, as in a drive that
/// destaged them first: the loss is never larger than the model says, but may be smaller for a very large cache.
const EXPOSED_BYTES_MAX: u64 = 256 << 20;
/// The model is queried when this many changes may be lost, and then whenever the number has doubled.
const ASK_AT: usize = 64;

/// A change to the contents, as the export that made it passes it with its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Changed {
    /// Its number in the undo log.
    pub number: u64,
    /// Whether it must be durable when it is acknowledged (FUA).
    pub forced: bool,
}

/// Fate of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is durable.
    Durable,
    /// It is lost.
    Lost {
        /// Whether it had been acknowledged.
        acknowledged: bool,
    },
}

impl Fate {
    /// Whether the contents differ from what the change wrote.
    pub fn is_lost(self) -> bool {
        match self {
            Fate::Durable => false,
            Fate::Lost { .. } => true,
        }
    }
}

/// Fate of a part of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The change's number in the undo log.
    pub number: u64,
    /// The bytes of the part.
    pub span: Span,
    /// Their fate.
    pub fate: Fate,
}

/// A change that a power cut interrupted: in flight, or partly only in a volatile cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterruptedChange {
    /// Its number in the undo log.
    pub number: u64,
    /// The bytes that it changed.
    pub span: Span,
    /// Random number that decides the fate of its copies and parities at members of an array.
    pub draw: u64,
}

/// Properties of the system's media.
pub struct Medium<'a> {
    /// Appends the parts of spans that are only in a volatile cache; both are ascending and disjoint.
    pub volatile: &'a dyn Fn(&[Span], &mut Vec<Span>),
    /// Returns the end of the track, page or stripe unit that holds a byte.
    pub tear_bound: &'a dyn Fn(u64) -> u64,
    /// Bytes that are written atomically.
    pub atom_bytes: u64,
}

#[derive(Clone, Copy, Debug)]
struct Exposed {
    span: Span,
    forced: bool,
    /// Time of its acknowledgement.
    acknowledged_ns: Option<u64>,
    /// Whether it was answered with an error.
    failed: bool,
}

/// Changes that a power cut would or could undo.
#[derive(Debug)]
pub struct Exposure {
    exposed: BTreeMap<u64, Exposed>,
    acknowledged_bytes: u64,
    /// Changes that remained when the model was last queried.
    left: usize,
    verdicts: Vec<Verdict>,
    halfway: Vec<InterruptedChange>,
    /// Limit of acknowledged bytes that are kept.
    bytes_max: u64,
}

impl Default for Exposure {
    fn default() -> Self {
        Exposure {
            exposed: BTreeMap::new(),
            acknowledged_bytes: 0,
            left: 0,
            verdicts: Vec::new(),
            halfway: Vec::new(),
            bytes_max: EXPOSED_BYTES_MAX,
        }
    }
}

impl Exposure {
    /// Sets the limit of acknowledged bytes that are kept.
    pub fn limit(&mut self, bytes_max: u64) {
        self.bytes_max = bytes_max.min(EXPOSED_BYTES_MAX);
    }

    /// Records a change that begins.
    pub fn began(&mut self, changed: Changed, span: Span) {
        if span.length_bytes <= CHANGE_BYTES_MAX {
            let exposed = Exposed { span, forced: changed.forced, acknowledged_ns: None, failed: false };
            self.exposed.insert(changed.number, exposed);
        }
    }

    /// Records that a change is acknowledged at `at_ns`, by a system that may or may not lose it.
    pub fn acknowledged(&mut self, number: u64, at_ns: u64, may_be_lost: bool, medium: &Medium<'_>) {
        let Some(exposed) = self.exposed.get_mut(&number) else { return };
        if exposed.forced || !may_be_lost {
            return self.durable(number);
        }
        exposed.acknowledged_ns = Some(at_ns);
        self.acknowledged_bytes += exposed.span.length_bytes;
        let is_much = self.acknowledged_bytes > self.bytes_max;
        if is_much || self.exposed.len() >= ASK_AT.max(2 * self.left) {
            self.drop_settled(medium);
        }
    }

    /// Records that a change failed: its contents are as uncertain as those of one in flight, and a cache may still
    /// hold them.
    pub fn failed(&mut self, number: u64, at_ns: u64) {
        if let Some(exposed) = self.exposed.get_mut(&number) {
            (exposed.acknowledged_ns, exposed.failed) = (Some(at_ns), true);
            self.acknowledged_bytes += exposed.span.length_bytes;
        }
    }

    /// Records a completed flush that was submitted at `submitted_ns`: it covers everything acknowledged by then.
    pub fn flushed(&mut self, submitted_ns: u64) {
        let covered = |exposed: &Exposed| exposed.acknowledged_ns.is_some_and(|at_ns| at_ns <= submitted_ns);
        let numbers: Vec<u64> =
            self.exposed.iter().filter(|(_, exposed)| covered(exposed)).map(|(&number, _)| number).collect();
        numbers.into_iter().for_each(|number| self.durable(number));
    }

    /// Records a durable change that is not tracked.
    pub fn stays(&mut self, number: u64, span: Span) {
        self.verdicts.push(Verdict { number, span, fate: Fate::Durable });
    }

    /// Drops acknowledged data that are only in a volatile cache; power stays on, and requests in flight continue.
    pub fn drop_acknowledged(&mut self, at_ns: u64, medium: &Medium<'_>) -> PowerLoss {
        let volatile = self.volatile(medium);
        let exposed = std::mem::take(&mut self.exposed);
        let (answered, under_way): (BTreeMap<_, _>, _) =
            exposed.into_iter().partition(|(_, exposed)| exposed.acknowledged_ns.is_some());
        self.exposed = under_way;
        for (number, exposed) in answered.iter().rev() {
            let gone = Fate::Lost { acknowledged: !exposed.failed };
            decide(*number, exposed.span, &within(&volatile, exposed.span), gone, &mut self.verdicts);
        }
        (self.acknowledged_bytes, self.left) = (0, 0);
        PowerLoss { at_ns, ..PowerLoss::default() }
    }

    /// Records a change that arrived while power was off, and is lost completely.
    pub fn refused(&mut self, changed: Changed, span: Span) {
        self.verdicts.push(Verdict { number: changed.number, span, fate: Fate::Lost { acknowledged: false } });
    }

    /// Returns the number of changes that may be lost.
    pub fn len(&self) -> usize {
        self.exposed.len()
    }

    /// Whether a power cut would undo nothing.
    pub fn is_empty(&self) -> bool {
        self.exposed.is_empty()
    }

    /// Moves the verdicts since the last call.
    pub fn take_verdicts(&mut self, into: &mut Vec<Verdict>) {
        into.append(&mut self.verdicts);
    }

    /// Returns the changes that the last power cut interrupted, once.
    pub fn take_halfway(&mut self) -> Vec<InterruptedChange> {
        std::mem::take(&mut self.halfway)
    }

    /// Cuts power at `at_ns`. Acknowledged data that are only in a volatile cache are lost, except for the first part
    /// of the one extent that was being destaged; requests in flight are complete, absent, or torn. The effect on the
    /// contents is known once the verdicts are applied ([`PowerLoss::record_loss`]).
    pub fn cut(&mut self, at_ns: u64, tear: Tear, medium: &Medium<'_>, random: &mut Random) -> PowerLoss {
        let mut loss = PowerLoss { at_ns, ..PowerLoss::default() };
        let mut gone = Vec::new();
        self.halfway.clear();
        let volatile = self.volatile(medium);
        for (&number, exposed) in self.exposed.iter().rev() {
            let parts = if exposed.acknowledged_ns.is_some() {
                within(&volatile, exposed.span)
            } else {
                loss.under_way += 1;
                Vec::from_iter(remainder(exposed.span, tear, medium, random, &mut loss))
            };
            gone.push((number, exposed, parts));
        }
        tear_destage(&mut gone, tear, medium, random, &mut loss);
        // Drawn last, so that the loss of contents is the same without members.
        for (number, exposed, parts) in &gone {
            if exposed.acknowledged_ns.is_none() || !parts.is_empty() {
                self.halfway.push(InterruptedChange { number: *number, span: exposed.span, draw: random.bits() });
            }
        }
        for (number, exposed, parts) in &gone {
            let acknowledged = exposed.acknowledged_ns.is_some() && !exposed.failed;
            decide(*number, exposed.span, parts, Fate::Lost { acknowledged }, &mut self.verdicts);
        }
        self.exposed.clear();
        (self.acknowledged_bytes, self.left) = (0, 0);
        loss
    }

    /// Drops changes that no volatile cache holds any more, and the oldest above the limit.
    fn drop_settled(&mut self, medium: &Medium<'_>) {
        let volatile = self.volatile(medium);
        let is_safe =
            |exposed: &Exposed| exposed.acknowledged_ns.is_some() && within(&volatile, exposed.span).is_empty();
        let safe: Vec<u64> =
            self.exposed.iter().filter(|(_, exposed)| is_safe(exposed)).map(|(&number, _)| number).collect();
        safe.into_iter().for_each(|number| self.durable(number));
        if self.acknowledged_bytes > self.bytes_max {
            // Some more, so that the next change does not query again.
            let mut excess_bytes = self.acknowledged_bytes - self.bytes_max / 4 * 3;
            let oldest = self.exposed.iter().filter(|(_, exposed)| exposed.acknowledged_ns.is_some());
            let oldest = oldest.map_while(|(&number, exposed)| {
                let goes = excess_bytes > 0;
                excess_bytes = excess_bytes.saturating_sub(exposed.span.length_bytes);
                goes.then_some(number)
            });
            let oldest: Vec<u64> = oldest.collect();
            oldest.into_iter().for_each(|number| self.durable(number));
        }
        self.left = self.exposed.len();
    }

    /// Returns the acknowledged spans that are only in a volatile cache, in order of place.
    fn volatile(&self, medium: &Medium<'_>) -> Vec<Span> {
        let acknowledged = self.exposed.values().filter(|exposed| exposed.acknowledged_ns.is_some());
        let spans = joined(acknowledged.map(|exposed| exposed.span).collect());
        let mut volatile = Vec::new();
        (medium.volatile)(&spans, &mut volatile);
        volatile
    }

    fn durable(&mut self, number: u64) {
        let exposed = self.exposed.remove(&number).expect("a change that may be lost");
        if exposed.acknowledged_ns.is_some() {
            self.acknowledged_bytes -= exposed.span.length_bytes;
        }
        self.verdicts.push(Verdict { number, span: exposed.span, fate: Fate::Durable });
    }
}

/// Returns the part of a write in flight that is missing.
fn remainder(span: Span, tear: Tear, medium: &Medium<'_>, random: &mut Random, loss: &mut PowerLoss) -> Option<Span> {
    let fate = random.below(3);
    let torn_at_bytes = if fate == 2 { place_of_tear(span, tear, medium, random) } else { None };
    match (fate, torn_at_bytes) {
        (0, _) => {
            loss.absent += 1;
            Some(span)
        }
        (_, Some(torn_at_bytes)) => Some(torn(span, torn_at_bytes, false, loss)),
        _ => {
            loss.whole += 1;
            None
        }
    }
}

/// Keeps the first part of one of the lost extents, which the arm was writing.
fn tear_destage(
    gone: &mut [(u64, &Exposed, Vec<Span>)],
    tear: Tear,
    medium: &Medium<'_>,
    random: &mut Random,
    loss: &mut PowerLoss,
) {
    let acknowledged = |exposed: &Exposed| exposed.acknowledged_ns.is_some();
    let destaged: Vec<&mut Span> =
        gone.iter_mut().filter(|(_, exposed, _)| acknowledged(exposed)).flat_map(|(.., parts)| parts).collect();
    if destaged.is_empty() {
        return;
    }
    let chosen = random.below(destaged.len() as u64) as usize;
    let part = destaged.into_iter().nth(chosen).expect("one of them");
    if let Some(torn_at_bytes) = place_of_tear(*part, tear, medium, random) {
        *part = torn(*part, torn_at_bytes, true, loss);
    }
}

/// Records a tear; returns the span after it.
fn torn(span: Span, torn_at_bytes: u64, acknowledged: bool, loss: &mut PowerLoss) -> Span {
    let (at_bytes, length_bytes) = (span.start_bytes, span.length_bytes);
    loss.torn.push(TornWrite { at_bytes, length_bytes, torn_at_bytes, acknowledged });
    Span { start_bytes: torn_at_bytes, length_bytes: at_bytes + length_bytes - torn_at_bytes }
}

/// Draws a place within a span at which its write may have stopped.
fn place_of_tear(span: Span, tear: Tear, medium: &Medium<'_>, random: &mut Random) -> Option<u64> {
    let end_bytes = span.start_bytes + span.length_bytes;
    match tear {
        Tear::None => None,
        Tear::Sector => {
            let (first, last) = (span.start_bytes / medium.atom_bytes + 1, (end_bytes - 1) / medium.atom_bytes);
            (first <= last).then(|| (first + random.below(last - first + 1)) * medium.atom_bytes)
        }
        Tear::Track => {
            let bounds = std::iter::successors(Some(span.start_bytes), |&at_bytes| Some((medium.tear_bound)(at_bytes)));
            let places: Vec<u64> = bounds.skip(1).take_while(|&at_bytes| at_bytes < end_bytes).collect();
            (!places.is_empty()).then(|| places[random.below(places.len() as u64) as usize])
        }
    }
}

/// Appends verdicts on a change of which `lost` is gone, in order of place.
fn decide(number: u64, span: Span, lost: &[Span], gone: Fate, verdicts: &mut Vec<Verdict>) {
    let mut at_bytes = span.start_bytes;
    let mut part = |until_bytes: u64, at_bytes: &mut u64, fate| {
        if *at_bytes < until_bytes {
            let span = Span { start_bytes: *at_bytes, length_bytes: until_bytes - *at_bytes };
            verdicts.push(Verdict { number, span, fate });
            *at_bytes = until_bytes;
        }
    };
    for lost in lost {
        part(lost.start_bytes, &mut at_bytes, Fate::Durable);
        part(lost.start_bytes + lost.length_bytes, &mut at_bytes, gone);
    }
    part(span.start_bytes + span.length_bytes, &mut at_bytes, Fate::Durable);
}

/// Returns the parts of ascending `spans` that are within a span.
fn within(spans: &[Span], span: Span) -> Vec<Span> {
    let mut inside = Vec::new();
    common_with_all(spans, span.start_bytes, span.start_bytes + span.length_bytes, &mut inside);
    inside
}

/// Returns spans in order of place, with adjacent ones merged.
pub fn joined(mut spans: Vec<Span>) -> Vec<Span> {
    put_in_order(&mut spans, 0);
    spans
}
