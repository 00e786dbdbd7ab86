//! Media defects as they are requested, and their state on the media of one mechanism, counted in its sectors: what an
//! access meets, which sectors were moved to spares, and which accesses failed. Only accesses to the media meet them,
//! not those served from a cache.

use std::collections::{BTreeMap, BTreeSet};

use headstack_workload::{Purpose, Random, Span};

/// Something wrong with a stretch of a device's media.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MediaDefect {
    /// Bytes of the device (of the member, in an array); sectors that it touches in part belong to it.
    pub span: Span,
    /// Reads meet it.
    pub reads: bool,
    /// Writes meet it.
    pub writes: bool,
    /// Share of the accesses that meet it, 0 to 1.
    pub share: f64,
    /// How much longer the mechanism is held by an access that meets it.
    pub delay: Delay,
    /// The access fails after that: an unrecoverable read error, or a write fault.
    pub fails: bool,
    /// A write moves its sectors to spares, whether it meets the media defect or not: they are readable from then on,
    /// but every later access takes the time to the spares and back. Flash has no such detour.
    pub healed_by_write: bool,
}

/// How long a mechanism is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delay {
    /// A number of turns of the spindle: retries. In a solid-state drive as many reads of the cell, or programs for a
    /// write.
    Turns(u32),
    /// A number of nanoseconds: the limit of error recovery, or a drive that fails slowly.
    Ns(u64),
}

/// A run of sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    /// First sector.
    pub from: u64,
    /// One past the last.
    pub to: u64,
}

/// A command that ends, or has ended, in error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// Its name.
    pub id: u32,
    /// First byte of the device that could not be had.
    pub from_bytes: u64,
    /// One past the last byte with the defect.
    pub to_bytes: u64,
    /// It could not be written.
    pub write: bool,
}

/// Failures that the next layer has not fetched yet: few at any time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Failures(Vec<Failure>);

impl Failures {
    /// Usually so.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A command fails; of several places in it the first counts.
    pub fn note(&mut self, failure: Failure) {
        match self.0.iter_mut().find(|known| known.id == failure.id) {
            Some(known) if known.from_bytes <= failure.from_bytes => {}
            Some(known) => *known = failure,
            None => self.0.push(failure),
        }
    }

    /// The failure of a completed command, once.
    pub fn take(&mut self, id: u32) -> Option<Failure> {
        let at = self.0.iter().position(|failure| failure.id == id)?;
        Some(self.0.remove(at))
    }

    /// Drops all failures.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

/// The effect of media defects on an access.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Meeting {
    /// Extra time for which the mechanism is busy.
    pub delay_ns: u64,
    /// Passes that are repeated in that time.
    pub repeats: u32,
    /// Where the access fails.
    pub fails: Option<Stretch>,
}

/// The way of an access to its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Leg {
    /// First sector, where it lies by its number, or how many sectors of spares before the last.
    pub at: u64,
    /// Sectors.
    pub sectors: u64,
    /// They are spares.
    pub spare: bool,
}

#[derive(Clone, Copy, Debug)]
struct Mark {
    from: u64,
    to: u64,
    media_defect: MediaDefect,
}

/// The media defects of one mechanism.
#[derive(Clone, Debug)]
pub(crate) struct MediaDefects {
    /// Ascending.
    marks: Vec<Mark>,
    random: Random,
    /// First sector to (one past the last, number of the last spare): sectors moved to spares, disjoint.
    spared: BTreeMap<u64, (u64, u64)>,
    /// Spares in use.
    pub spares: u64,
    /// Sectors found unreadable.
    pending: BTreeSet<u64>,
    /// Data of the write cache that could not be written: the next flush reports them.
    deferred: Option<Stretch>,
    /// Accesses that failed.
    pub errors: u64,
    /// Passes repeated.
    pub retried: u64,
}

impl MediaDefects {
    /// Nothing is wrong.
    pub fn none() -> Self {
        MediaDefects {
            marks: Vec::new(),
            random: Random::new(0, Purpose::MediaDefects),
            spared: BTreeMap::new(),
            spares: 0,
            pending: BTreeSet::new(),
            deferred: None,
            errors: 0,
            retried: 0,
        }
    }

    /// Whether there is no defect and no sector on spares: the usual case costs one test.
    #[inline]
    pub fn is_clean(&self) -> bool {
        self.marks.is_empty() && self.spared.is_empty()
    }

    /// Replaces the media defects by others, whose spans are in sectors of `sector_bytes`; sectors on spares stay
    /// there.
    pub fn replace(&mut self, media_defects: &[MediaDefect], sector_bytes: u64, seed: u64) {
        let mark = |media_defect: &MediaDefect| Mark {
            from: media_defect.span.start_bytes / sector_bytes,
            to: (media_defect.span.start_bytes + media_defect.span.length_bytes).div_ceil(sector_bytes),
            media_defect: *media_defect,
        };
        self.marks = media_defects.iter().map(mark).collect();
        self.marks.sort_by_key(|mark| mark.from);
        self.random = Random::new(seed, Purpose::MediaDefects);
        let marks = &self.marks;
        self.pending.retain(|sector| marks.iter().any(|mark| (mark.from..mark.to).contains(sector)));
    }

    /// The effect on an access to the sectors `[from, to)`. A read does not need the sectors in `elsewhere`; `renews`
    /// means that a write brings new data from the host, and `turn_ns` is the time of one more pass.
    pub fn meet(
        &mut self,
        (from, to): (u64, u64),
        write: bool,
        renews: bool,
        elsewhere: &[(u64, u64)],
        turn_ns: u64,
    ) -> Meeting {
        let mut meeting = Meeting::default();
        for at in 0..self.marks.len() {
            let Mark { from: first, to: end, media_defect } = self.marks[at];
            let Some(stretch) = self.first_bad(from.max(first), to.min(end), elsewhere) else {
                continue;
            };
            let concerns = if write { media_defect.writes } else { media_defect.reads };
            let meets = concerns && (media_defect.share >= 1.0 || self.draw() < media_defect.share);
            if meets {
                match media_defect.delay {
                    Delay::Turns(turns) => {
                        meeting.delay_ns += u64::from(turns) * turn_ns;
                        meeting.repeats += turns;
                        self.retried += u64::from(turns);
                    }
                    Delay::Ns(ns) => meeting.delay_ns += ns,
                }
            }
            if write && renews && media_defect.healed_by_write {
                self.move_to_spares(stretch.from, to.min(end));
            } else if meets && media_defect.fails {
                self.errors += 1;
                if !write {
                    self.pending.insert(stretch.from);
                }
                meeting.fails = Some(stretch);
                break;
            }
        }
        meeting
    }

    /// New data for `[from, to)` are on other media and will come home to spares.
    pub fn renew(&mut self, from: u64, to: u64) {
        for at in 0..self.marks.len() {
            let Mark { from: first, to: end, media_defect } = self.marks[at];
            if media_defect.healed_by_write {
                self.move_to_spares(from.max(first), to.min(end));
            }
        }
    }

    fn draw(&mut self) -> f64 {
        (self.random.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// The first run of `[from, to)` that is neither on spares nor elsewhere.
    fn first_bad(&self, from: u64, to: u64, elsewhere: &[(u64, u64)]) -> Option<Stretch> {
        let covers = |at: u64| {
            let spared = self.spared_at(at).map(|(_, end, _)| end);
            spared.or_else(|| elsewhere.iter().find(|&&(begin, end)| begin <= at && at < end).map(|&(_, end)| end))
        };
        let mut at = from;
        while at < to {
            let Some(end) = covers(at) else {
                let next_spared = self.spared.range(at..to).next().map_or(to, |(&begin, _)| begin);
                let next = elsewhere.iter().map(|&(begin, _)| begin).filter(|&begin| begin > at).min();
                return Some(Stretch { from: at, to: next.map_or(next_spared, |next| next.min(next_spared)) });
            };
            at = end;
        }
        None
    }

    /// The run of spared sectors that holds `at`: first, end, number of the last spare.
    fn spared_at(&self, at: u64) -> Option<(u64, u64, u64)> {
        let (&begin, &(end, last)) = self.spared.range(..=at).next_back()?;
        (at < end).then_some((begin, end, last))
    }

    fn move_to_spares(&mut self, from: u64, to: u64) {
        let mut at = from;
        while let Some(bad) = self.first_bad(at, to, &[]) {
            self.spares += bad.to - bad.from;
            self.spared.insert(bad.from, (bad.to, self.spares));
            self.pending.retain(|sector| !(bad.from..bad.to).contains(sector));
            at = bad.to;
        }
    }

    /// The legs of an access to `[from, to)`. Spares are counted from the end of the media.
    pub fn legs(&self, from: u64, to: u64, mut each: impl FnMut(Leg)) {
        let mut at = from;
        while at < to {
            let leg_end;
            if let Some((begin, end, last)) = self.spared_at(at) {
                leg_end = end.min(to);
                each(Leg { at: last - (at - begin), sectors: leg_end - at, spare: true });
            } else {
                leg_end = self.spared.range(at..to).next().map_or(to, |(&begin, _)| begin);
                each(Leg { at, sectors: leg_end - at, spare: false });
            }
            at = leg_end;
        }
    }

    /// Reading on behind `from` ends here: at the next sector that is bad or elsewhere.
    pub fn next_from(&self, from: u64) -> u64 {
        let marks = self.marks.iter().filter(|mark| mark.to > from).map(|mark| mark.from.max(from));
        let spared = self.spared_at(from).map(|_| from);
        let spared = spared.or_else(|| self.spared.range(from..).next().map(|(&begin, _)| begin));
        marks.chain(spared).min().unwrap_or(u64::MAX)
    }

    /// From here on to `to` everything that the heads passed is good, beginning with `from` at the earliest.
    pub fn clear_since(&self, from: u64, to: u64) -> u64 {
        let marks = self.marks.iter().filter(|mark| mark.from < to).map(|mark| mark.to.min(to));
        let spared = self.spared.range(..to).next_back().map(|(_, &(end, _))| end.min(to));
        marks.chain(spared).chain([from]).max().unwrap_or(from)
    }

    /// Registers a failed write of data from the write cache.
    pub fn defer(&mut self, stretch: Stretch) {
        self.deferred.get_or_insert(stretch);
    }

    /// Takes the failure that a flush reports.
    pub fn take_deferred(&mut self) -> Option<Stretch> {
        self.deferred.take()
    }

    /// Sectors found unreadable and not written since.
    pub fn pending(&self) -> u64 {
        self.pending.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use headstack_workload::Span;

    use super::*;

    fn bad(from: u64, to: u64) -> MediaDefect {
        MediaDefect {
            span: Span { start_bytes: 512 * from, length_bytes: 512 * (to - from) },
            reads: true,
            writes: false,
            share: 1.0,
            delay: Delay::Turns(2),
            fails: true,
            healed_by_write: true,
        }
    }

    #[test]
    fn what_is_written_is_on_spares_and_well() {
        let mut media = MediaDefects::none();
        assert!(media.is_clean());
        media.replace(&[bad(10, 20)], 512, 1);
        let met = media.meet((0, 15), false, false, &[], 6);
        assert_eq!((met.delay_ns, met.repeats, met.fails), (12, 2, Some(Stretch { from: 10, to: 15 })));
        assert_eq!(media.meet((0, 12), false, false, &[(9, 12)], 6).fails, None, "the cache has it");
        assert_eq!((media.pending(), media.errors), (1, 1));
        let met = media.meet((8, 13), true, true, &[], 6);
        assert_eq!((met.delay_ns, met.fails, media.spares, media.pending()), (0, None, 3, 0));
        assert_eq!(media.meet((5, 13), false, false, &[], 6).delay_ns, 0);
        assert_eq!(media.meet((5, 30), false, false, &[], 6).fails, Some(Stretch { from: 13, to: 20 }));
        media.meet((15, 16), true, true, &[], 6);
        assert_eq!(media.meet((5, 30), false, false, &[], 6).fails, Some(Stretch { from: 13, to: 15 }));
        let mut legs = vec![];
        media.legs(8, 18, |leg| legs.push((leg.at, leg.sectors, leg.spare)));
        let expected = [(8, 2, false), (3, 3, true), (13, 2, false), (4, 1, true), (16, 2, false)];
        assert_eq!(legs, expected);
        assert_eq!((media.next_from(5), media.next_from(14), media.next_from(25)), (10, 14, u64::MAX));
        assert_eq!((media.clear_since(2, 8), media.clear_since(2, 25), media.clear_since(22, 25)), (2, 20, 22));
        media.replace(&[], 512, 1);
        assert!(!media.is_clean(), "spares stay in use");
    }

    #[test]
    fn a_share_of_the_accesses_meets_it_by_its_own_stream() {
        let mut media = MediaDefects::none();
        let mut count = |seed: u64| {
            media.replace(&[MediaDefect { share: 0.25, fails: false, ..bad(0, 1) }], 512, seed);
            (0..4000).map(|_| media.meet((0, 1), false, false, &[], 1).repeats / 2).collect::<Vec<u32>>()
        };
        let met = count(5);
        assert_eq!(met, count(5));
        assert_ne!(met, count(6));
        assert!((900..1100).contains(&met.iter().sum::<u32>()));
    }
}
