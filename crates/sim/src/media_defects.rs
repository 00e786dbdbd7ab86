//! [`MediaDefects`]: requested media defects and their state on one mechanism's media, in its sectors: which accesses
//! meet them, which sectors were remapped to spares, and what failed. Only media passes meet them, cache hits do not.

use std::collections::{BTreeMap, BTreeSet};

use headstack_workload::{Purpose, Random, Span};

/// A defect of a range of a device's media.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MediaDefect {
    /// Bytes of the device (of the member, in an array); partially covered sectors belong to it.
    pub span: Span,
    /// Whether reads meet it.
    pub reads: bool,
    /// Whether writes meet it.
    pub writes: bool,
    /// Share of the accesses that meet it, 0 to 1.
    pub share: f64,
    /// Additional time of an access that meets it.
    pub delay: Delay,
    /// Whether the access fails after that: an unrecoverable read error, or a write fault.
    pub fails: bool,
    /// Whether a write remaps the sectors that it touches to spares, whether it meets the defect or not: they are good
    /// from then on, but every later access pays for the way to the spares and back. In flash there is no such way.
    pub healed_by_write: bool,
}

/// Additional time of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delay {
    /// A number of turns of the spindle: retries. In an SSD as many reads of the cell, or programs for a write.
    Turns(u32),
    /// A number of nanoseconds: the limit of error recovery, or a drive that fails slowly.
    Ns(u64),
}

/// A run of sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    /// First sector.
    pub from: u64,
    /// The sector after the last.
    pub to: u64,
}

/// A command that ends, or has ended, in error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// Id of the command.
    pub id: u32,
    /// First byte of the device that could not be read or written.
    pub from_bytes: u64,
    /// The byte after the last bad one.
    pub to_bytes: u64,
    /// Whether it could not be written.
    pub write: bool,
}

/// Failures that the next layer has not collected: few at any time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Failures(Vec<Failure>);

impl Failures {
    /// Whether there are none, which is usual.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Records the failure of a command; of several places the first counts.
    pub fn note(&mut self, failure: Failure) {
        match self.0.iter_mut().find(|known| known.id == failure.id) {
            Some(known) if known.from_bytes <= failure.from_bytes => {}
            Some(known) => *known = failure,
            None => self.0.push(failure),
        }
    }

    /// Returns the failure of a completed command, once.
    pub fn take(&mut self, id: u32) -> Option<Failure> {
        let at = self.0.iter().position(|failure| failure.id == id)?;
        Some(self.0.remove(at))
    }

    /// Drops all failures.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

/// Effect of the defects on an access.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DefectEffect {
    /// Additional time.
    pub delay_ns: u64,
    /// Passes repeated in that time.
    pub repeats: u32,
    /// Sectors at which it fails, if it does.
    pub fails: Option<Stretch>,
}

/// Part of the path of an access to its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PathSegment {
    /// First sector; for spares, their distance from the end of the media, in sectors.
    pub at: u64,
    /// Number of sectors.
    pub sectors: u64,
    /// Whether they are spares.
    pub spare: bool,
}

#[derive(Clone, Copy, Debug)]
struct Mark {
    from: u64,
    to: u64,
    media_defect: MediaDefect,
}

/// Media defects of one mechanism.
#[derive(Clone, Debug)]
pub(crate) struct MediaDefects {
    /// The defects, ascending.
    marks: Vec<Mark>,
    random: Random,
    /// Remapped sectors as disjoint runs: first sector to (sector after the last, number of the last spare).
    spared: BTreeMap<u64, (u64, u64)>,
    /// Number of spares in use.
    pub spares: u64,
    /// Sectors found unreadable.
    pending: BTreeSet<u64>,
    /// Data of the write cache that could not be written: the next flush reports them.
    deferred: Option<Stretch>,
    /// Failed accesses.
    pub errors: u64,
    /// Repeated passes.
    pub retried: u64,
}

impl MediaDefects {
    /// Returns media without defects.
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

    /// Whether there are no defects and no remapped sectors: the usual case costs one test.
    #[inline]
    pub fn is_clean(&self) -> bool {
        self.marks.is_empty() && self.spared.is_empty()
    }

    /// Replaces the media defects, whose spans are in sectors of `sector_bytes`; remapped sectors stay.
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

    /// Returns the effect on an access to the sectors `[from, to)`. A read does not need the sectors in `elsewhere`;
    /// `renews` marks a write of new data of the host, and `turn_ns` is the time of a repeated pass.
    pub fn meet(
        &mut self,
        (from, to): (u64, u64),
        write: bool,
        renews: bool,
        elsewhere: &[(u64, u64)],
        turn_ns: u64,
    ) -> DefectEffect {
        let mut meeting = DefectEffect::default();
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

    /// Marks `[from, to)` as stored elsewhere; new data will be written home to spares.
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

    /// Returns the first run of `[from, to)` that is neither on spares nor elsewhere.
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

    /// Returns the run of remapped sectors that holds `at`: first, end, number of the last spare.
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

    /// Calls `each` with the legs of an access to `[from, to)`. Spares are counted from the end of the media.
    pub fn legs(&self, from: u64, to: u64, mut each: impl FnMut(PathSegment)) {
        let mut at = from;
        while at < to {
            let leg_end;
            if let Some((begin, end, last)) = self.spared_at(at) {
                leg_end = end.min(to);
                each(PathSegment { at: last - (at - begin), sectors: leg_end - at, spare: true });
            } else {
                leg_end = self.spared.range(at..to).next().map_or(to, |(&begin, _)| begin);
                each(PathSegment { at, sectors: leg_end - at, spare: false });
            }
            at = leg_end;
        }
    }

    /// Returns where read-ahead from `from` ends: at the next sector that is bad or remapped.
    pub fn next_from(&self, from: u64) -> u64 {
        let marks = self.marks.iter().filter(|mark| mark.to > from).map(|mark| mark.from.max(from));
        let spared = self.spared_at(from).map(|_| from);
        let spared = spared.or_else(|| self.spared.range(from..).next().map(|(&begin, _)| begin));
        marks.chain(spared).min().unwrap_or(u64::MAX)
    }

    /// Returns the sector, not before `from`, from which on everything up to `to` is good.
    pub fn clear_since(&self, from: u64, to: u64) -> u64 {
        let marks = self.marks.iter().filter(|mark| mark.from < to).map(|mark| mark.to.min(to));
        let spared = self.spared.range(..to).next_back().map(|(_, &(end, _))| end.min(to));
        marks.chain(spared).chain([from]).max().unwrap_or(from)
    }

    /// Records data of the write cache that could not be written.
    pub fn defer(&mut self, stretch: Stretch) {
        self.deferred.get_or_insert(stretch);
    }

    /// Returns the failure that a flush has to report.
    pub fn take_deferred(&mut self) -> Option<Stretch> {
        self.deferred.take()
    }

    /// Returns the number of sectors found unreadable and not written since.
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
    fn written_bad_sectors_are_remapped_and_good() {
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
