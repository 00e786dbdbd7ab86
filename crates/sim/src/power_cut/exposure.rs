//! [`Exposure`]: the changes that a power cut would undo according to the model, and the [`Fate`] of each change at a
//! power cut.

use std::collections::BTreeMap;

use headstack_workload::{Random, Span};

use super::{CHANGE_BYTES_MAX, PowerLoss, Tear, TornWrite};
use crate::spans::{common_with_all, put_in_order};

/// Maximum acknowledged data whose previous contents are kept, in bytes. Above this limit the oldest changes count as
/// durable, as in a drive that destages the oldest data first. The reported loss is therefore never too large, but may
/// be too small for a very large cache.
const EXPOSED_BYTES_MAX: u64 = 256 << 20;
/// Number of exposed changes at which the model is first queried for durability. It is queried again each time the
/// number has doubled.
const ASK_AT: usize = 64;

/// A change to the contents, which an export passes with its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Changed {
    /// Number of the change in the undo log.
    pub number: u64,
    /// Whether the change must be durable when it is acknowledged (FUA).
    pub forced: bool,
}

/// Fate of a change at a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The change is durable.
    Durable,
    /// The change is lost.
    Lost {
        /// Whether the change had been acknowledged.
        acknowledged: bool,
    },
}

impl Fate {
    /// Whether the contents no longer match what the change wrote.
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
    /// Number of the change in the undo log.
    pub number: u64,
    /// Byte range of the part.
    pub span: Span,
    /// Fate of these bytes.
    pub fate: Fate,
}

/// A change that a power cut interrupted: in flight, or partly only in a volatile cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterruptedChange {
    /// Number of the change in the undo log.
    pub number: u64,
    /// Byte range of the change.
    pub span: Span,
    /// Random number that decides the fate of copies and parity on the members of an array.
    pub draw: u64,
}

/// Properties of the system's storage that determine losses.
pub struct Medium<'a> {
    /// Appends the parts of the given spans that are only in a volatile cache. Input and output are ascending and
    /// disjoint.
    pub volatile: &'a dyn Fn(&[Span], &mut Vec<Span>),
    /// Returns the end of the track, page or chunk that holds a byte.
    pub tear_bound: &'a dyn Fn(u64) -> u64,
    /// Number of bytes that are written atomically.
    pub atom_bytes: u64,
}

#[derive(Clone, Copy, Debug)]
struct Exposed {
    span: Span,
    forced: bool,
    /// Time at which the change was acknowledged.
    acknowledged_ns: Option<u64>,
    /// Whether the request ended with an error.
    failed: bool,
}

/// Changes that a power cut would undo or might undo.
#[derive(Debug)]
pub struct Exposure {
    exposed: BTreeMap<u64, Exposed>,
    acknowledged_bytes: u64,
    /// Number of exposed changes left after the last query of the model.
    left: usize,
    verdicts: Vec<Verdict>,
    halfway: Vec<InterruptedChange>,
    /// Maximum number of acknowledged bytes to keep.
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
    /// Sets the maximum number of acknowledged bytes to keep.
    pub fn limit(&mut self, bytes_max: u64) {
        self.bytes_max = bytes_max.min(EXPOSED_BYTES_MAX);
    }

    /// Records the start of a change.
    pub fn began(&mut self, changed: Changed, span: Span) {
        if span.length_bytes <= CHANGE_BYTES_MAX {
            let exposed = Exposed { span, forced: changed.forced, acknowledged_ns: None, failed: false };
            self.exposed.insert(changed.number, exposed);
        }
    }

    /// Records that a change was acknowledged at `at_ns`. `may_be_lost` says whether the system can lose acknowledged
    /// data.
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

    /// Records that a change failed. Its contents are as uncertain as those of a change in flight, and a cache may
    /// still hold them.
    pub fn failed(&mut self, number: u64, at_ns: u64) {
        if let Some(exposed) = self.exposed.get_mut(&number) {
            (exposed.acknowledged_ns, exposed.failed) = (Some(at_ns), true);
            self.acknowledged_bytes += exposed.span.length_bytes;
        }
    }

    /// Records the completion of a flush submitted at `submitted_ns`, which makes durable every change acknowledged by
    /// then.
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

    /// Drops acknowledged data that are only in a volatile cache, while power stays on and requests in flight continue.
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

    /// Records a change that arrived while power was off and is therefore lost completely.
    pub fn refused(&mut self, changed: Changed, span: Span) {
        self.verdicts.push(Verdict { number: changed.number, span, fate: Fate::Lost { acknowledged: false } });
    }

    /// Returns the number of changes that might be lost.
    pub fn len(&self) -> usize {
        self.exposed.len()
    }

    /// Whether a power cut would undo nothing.
    pub fn is_empty(&self) -> bool {
        self.exposed.is_empty()
    }

    /// Appends the verdicts since the last call to `into`.
    pub fn take_verdicts(&mut self, into: &mut Vec<Verdict>) {
        into.append(&mut self.verdicts);
    }

    /// Returns and removes the changes that the last power cut interrupted.
    pub fn take_halfway(&mut self) -> Vec<InterruptedChange> {
        std::mem::take(&mut self.halfway)
    }

    /// Cuts power at `at_ns`. Acknowledged data that are only in a volatile cache are lost, except for the first part
    /// of the extent that was being destaged. Requests in flight are complete, absent, or torn. The verdicts must be
    /// applied to the contents before the lost bytes are known ([`PowerLoss::record_loss`]).
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
        // Drawn last, so that the random losses above are the same with and without array members.
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

    /// Drops changes that no volatile cache holds any longer, and the oldest changes above the byte limit.
    fn drop_settled(&mut self, medium: &Medium<'_>) {
        let volatile = self.volatile(medium);
        let is_safe =
            |exposed: &Exposed| exposed.acknowledged_ns.is_some() && within(&volatile, exposed.span).is_empty();
        let safe: Vec<u64> =
            self.exposed.iter().filter(|(_, exposed)| is_safe(exposed)).map(|(&number, _)| number).collect();
        safe.into_iter().for_each(|number| self.durable(number));
        if self.acknowledged_bytes > self.bytes_max {
            // Drop to 3/4 of the limit, so that the next change does not query the model again.
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

    /// Returns the acknowledged spans that are only in a volatile cache, in ascending order.
    fn volatile(&self, medium: &Medium<'_>) -> Vec<Span> {
        let acknowledged = self.exposed.values().filter(|exposed| exposed.acknowledged_ns.is_some());
        let spans = joined(acknowledged.map(|exposed| exposed.span).collect());
        let mut volatile = Vec::new();
        (medium.volatile)(&spans, &mut volatile);
        volatile
    }

    fn durable(&mut self, number: u64) {
        let exposed = self.exposed.remove(&number).expect("the change is tracked");
        if exposed.acknowledged_ns.is_some() {
            self.acknowledged_bytes -= exposed.span.length_bytes;
        }
        self.verdicts.push(Verdict { number, span: exposed.span, fate: Fate::Durable });
    }
}

/// Returns the part of an in-flight write that is missing after the power cut.
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

/// Keeps the first part of a randomly chosen lost extent, which the arm was writing when power failed.
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
    let part = destaged.into_iter().nth(chosen).expect("the index is in range");
    if let Some(torn_at_bytes) = place_of_tear(*part, tear, medium, random) {
        *part = torn(*part, torn_at_bytes, true, loss);
    }
}

/// Records a torn write; returns the span that was not written.
fn torn(span: Span, torn_at_bytes: u64, acknowledged: bool, loss: &mut PowerLoss) -> Span {
    let (at_bytes, length_bytes) = (span.start_bytes, span.length_bytes);
    loss.torn.push(TornWrite { at_bytes, length_bytes, torn_at_bytes, acknowledged });
    Span { start_bytes: torn_at_bytes, length_bytes: at_bytes + length_bytes - torn_at_bytes }
}

/// Draws a position in a span where the write may have stopped.
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

/// Appends the verdicts on a change that lost the spans `lost`, in ascending order.
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

/// Returns the parts of ascending `spans` that are inside `span`.
fn within(spans: &[Span], span: Span) -> Vec<Span> {
    let mut inside = Vec::new();
    common_with_all(spans, span.start_bytes, span.start_bytes + span.length_bytes, &mut inside);
    inside
}

/// Returns the spans in ascending order, with adjacent spans merged.
pub fn joined(mut spans: Vec<Span>) -> Vec<Span> {
    put_in_order(&mut spans, 0);
    spans
}
