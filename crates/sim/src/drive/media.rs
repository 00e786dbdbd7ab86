//! [`Media`]: passes over the media, that is, the times that arm and spindle take for a run of sectors.

use std::sync::Arc;

use super::geometry::{Extent, TrackLayout};
use super::mechanics::{Arm, Spindle};
use crate::description::drive::DriveDescription;

/// Position of the heads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Cylinder.
    pub cylinder: u32,
    /// Active surface.
    pub head: u32,
}

impl Head {
    fn is_on(self, extent: &Extent) -> bool {
        self.cylinder == extent.cylinder && self.head == extent.head
    }
}

/// The result of one access to the media.
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    /// Time at which `mark` sectors (in order from the first) had been transferred.
    pub mark_ns: u64,
    /// Time at which the last sector had been transferred.
    pub end_ns: u64,
    /// Wait from the settled head to the first wanted sector, on the first track.
    pub first_wait_ns: u64,
    /// Angle of a sector of the last track, in 2^-32 turns.
    pub sector_span: u32,
    /// Sectors that follow the last one on its track without a gap, as far as known.
    pub followers: u32,
    /// First block of the last track; known if there are followers.
    pub track_first: u64,
    /// Final position of the heads.
    pub head: Head,
    /// Time of arm movement, head switches and settling.
    pub seek_ns: u64,
    /// Rotational latency.
    pub rotation_ns: u64,
}

/// The request of a pass.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// First block (physical sector).
    pub block: u64,
    /// Number of sectors; at least 1.
    pub sectors: u32,
    /// Whether write settling applies.
    pub write: bool,
    /// Earliest start of the arm.
    pub start_ns: u64,
    /// Earliest end of settling (minimum seek delay).
    pub settled_ns: u64,
    /// Earliest transfer of a sector (data still on their way from the host).
    pub data_ns: u64,
    /// Sectors to the mark; 1 to `sectors`.
    pub mark: u32,
}

/// Geometry, spindle and arm of one drive. Clones share the large parts.
#[derive(Clone, Debug)]
pub struct Media {
    /// Map from blocks to places.
    pub layout: Arc<TrackLayout>,
    /// Speed and phase of this drive's spindle, different from others of its kind.
    pub spindle: Spindle,
    /// Seek times.
    pub arm: Arc<Arm>,
    read_on_arrival: bool,
    write_on_arrival: bool,
}

impl Media {
    /// Compiles a checked description.
    pub fn new(description: &DriveDescription) -> Self {
        Media {
            layout: Arc::new(TrackLayout::new(&description.geometry)),
            spindle: Spindle::new(description.mechanics.rpm),
            arm: Arc::new(Arm::new(&description.mechanics, description.geometry.cylinders)),
            read_on_arrival: description.mechanics.read_on_arrival,
            write_on_arrival: description.mechanics.write_on_arrival,
        }
    }

    /// Returns the time to bring the heads from `from` to a track.
    #[inline]
    pub fn position_ns(&self, from: Head, cylinder: u32, head: u32, write: bool) -> u64 {
        self.arm.position_ns(from.cylinder.abs_diff(cylinder), from.head != head, write)
    }

    /// Performs `access` with the heads at `from`.
    pub fn pass(&self, from: Head, access: &Access) -> Pass {
        let extent = self.layout.locate(access.block, access.sectors);
        self.pass_from(from, access, &extent)
    }

    /// Performs `access`, whose first extent is known, with the heads at `from`.
    // As for `Layout::locate`: not through memory.
    #[inline(always)]
    pub fn pass_from(&self, from: Head, access: &Access, extent: &Extent) -> Pass {
        let seek = self.position_ns(from, extent.cylinder, extent.head, access.write);
        let on_track = (access.start_ns + seek).max(access.settled_ns);
        let ready = on_track.max(access.data_ns);
        let first_ns = self.spindle.meet_ns(ready, extent.angle);
        let on_arrival = if access.write { self.write_on_arrival } else { self.read_on_arrival };
        let mut pass = Pass {
            mark_ns: first_ns + self.spindle.turn_ns(self.span_of(extent, access.mark)),
            end_ns: first_ns + self.spindle.turn_ns(extent.span),
            first_wait_ns: first_ns.saturating_sub(on_track),
            sector_span: extent.sector_span,
            followers: extent.followers,
            track_first: access.block - u64::from(extent.before),
            head: Head { cylinder: extent.cylinder, head: extent.head },
            seek_ns: on_track - access.start_ns,
            rotation_ns: first_ns.saturating_sub(on_track),
        };
        if on_arrival {
            self.read_from_within(extent, ready, &mut pass);
        }
        if extent.sectors < access.sectors {
            self.follow(access, extent.sectors, &mut pass);
        }
        pass
    }

    /// Returns the angle of the first `sectors` of an extent; slips inside make it slightly short, never longer than
    /// the extent.
    #[inline]
    fn span_of(&self, extent: &Extent, sectors: u32) -> u64 {
        (u64::from(extent.sector_span) * u64::from(sectors)).min(extent.span)
    }

    /// Performs a zero-latency access: a head that settles inside the wanted sectors takes them from the next sector
    /// boundary on, and the last one it needs is the one that it was in, a turn after that boundary.
    fn read_from_within(&self, extent: &Extent, ready_ns: u64, pass: &mut Pass) {
        let into = u64::from(self.spindle.angle_at(ready_ns).wrapping_sub(extent.angle));
        let sector = u64::from(extent.sector_span);
        let boundary = into.div_ceil(sector) * sector;
        if boundary >= extent.span || boundary == 0 {
            return;
        }
        let end_ns = ready_ns + self.spindle.turn_ns(boundary - into) + self.spindle.revolution_ns();
        if end_ns < pass.end_ns {
            pass.rotation_ns = end_ns.saturating_sub(ready_ns + self.spindle.turn_ns(extent.span));
            pass.end_ns = end_ns;
            pass.mark_ns = pass.mark_ns.min(end_ns);
        }
    }

    /// Continues an access on the tracks after the first.
    fn follow(&self, access: &Access, mut done: u32, pass: &mut Pass) {
        while done < access.sectors {
            let extent = self.layout.locate(access.block + u64::from(done), access.sectors - done);
            let switch = self.position_ns(pass.head, extent.cylinder, extent.head, access.write);
            let ready = pass.end_ns + switch;
            let first_ns = self.spindle.meet_ns(ready, extent.angle);
            if access.mark > done {
                pass.mark_ns = first_ns + self.spindle.turn_ns(self.span_of(&extent, access.mark - done));
            }
            pass.seek_ns += switch;
            pass.rotation_ns += first_ns.saturating_sub(ready);
            pass.end_ns = first_ns + self.spindle.turn_ns(extent.span);
            pass.head = Head { cylinder: extent.cylinder, head: extent.head };
            (pass.sector_span, pass.followers) = (extent.sector_span, extent.followers);
            pass.track_first = access.block + u64::from(done) - u64::from(extent.before);
            done += extent.sectors;
        }
    }
}

/// Read-ahead after a request, advanced only when its state is needed.
#[derive(Clone, Copy, Debug)]
pub struct ReadAheadRun {
    /// Segment that it fills.
    pub segment: usize,
    /// Next block to be read.
    pub next: u64,
    /// Reading stops here.
    pub limit: u64,
    /// When the heads finished their last action, `into` sectors before `next`.
    pub at_ns: u64,
    /// Sectors read since then, all on this track.
    pub into: u32,
    /// Position of the heads at `at_ns`.
    pub head: Head,
    /// Whether it may leave the track or the cylinder.
    pub leaves: ReadAheadReach,
    /// Angle of a sector of this track, in 2^-32 turns.
    pub sector_span: u32,
    /// Sectors that are known to be consecutive on this track from `at_ns` on.
    pub followers: u32,
}

/// How far read-ahead may move the arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadAheadReach {
    /// Not at all: it stays on its track.
    Nothing,
    /// To other heads of the cylinder.
    Track,
    /// To other cylinders.
    Cylinder,
}

impl ReadAheadRun {
    /// Returns when the block before `next` had been read, or the arm could start for it.
    #[inline]
    pub fn ready_ns(&self, media: &Media) -> u64 {
        // From the start of the run, so that rounding errors do not add up.
        self.at_ns + media.spindle.turn_ns(u64::from(self.into) * u64::from(self.sector_span))
    }

    /// Reads until `now_ns`. Returns when the arm can be taken: `now_ns`, or the end of a movement in progress.
    #[inline]
    pub fn advance(&mut self, media: &Media, now_ns: u64) -> u64 {
        let read = media.spindle.sectors_in(now_ns.saturating_sub(self.at_ns), self.sector_span);
        let start = self.next - u64::from(self.into);
        if read < u64::from(self.followers) && start + read <= self.limit {
            // The usual case: still on the track of the request.
            (self.next, self.into) = (start + read.max(u64::from(self.into)), (read as u32).max(self.into));
            return now_ns;
        }
        self.at_ns = self.ready_ns(media);
        (self.into, self.followers) = (0, 0);
        self.advance_over_tracks(media, now_ns)
    }

    fn advance_over_tracks(&mut self, media: &Media, now_ns: u64) -> u64 {
        while self.next < self.limit {
            let wanted = u32::try_from(self.limit - self.next).unwrap_or(u32::MAX);
            let extent = media.layout.locate(self.next, wanted);
            if !self.head.is_on(&extent) {
                let allowed = match self.leaves {
                    ReadAheadReach::Nothing => false,
                    ReadAheadReach::Track => self.head.cylinder == extent.cylinder,
                    ReadAheadReach::Cylinder => true,
                };
                if !allowed {
                    self.limit = self.next;
                    break;
                }
                if self.at_ns >= now_ns {
                    break;
                }
                let settled = self.at_ns + media.position_ns(self.head, extent.cylinder, extent.head, false);
                self.head = Head { cylinder: extent.cylinder, head: extent.head };
                self.at_ns = settled;
                if settled >= now_ns {
                    return settled;
                }
            }
            let begin = media.spindle.meet_ns(self.at_ns, extent.angle);
            let end = begin + media.spindle.turn_ns(extent.span);
            if end > now_ns {
                let read = media.spindle.sectors_in(now_ns.saturating_sub(begin), extent.sector_span);
                let read = read.min(u64::from(extent.sectors) - 1);
                if read > 0 {
                    self.next += read;
                    self.at_ns = begin + media.spindle.turn_ns(read * u64::from(extent.sector_span));
                }
                break;
            }
            self.next += u64::from(extent.sectors);
            self.at_ns = end;
        }
        now_ns
    }

    /// Whether nothing is left to read.
    pub fn is_done(&self) -> bool {
        self.next >= self.limit
    }
}
