//! [`Disk`]: a drive as its host sees it, with any caches between its port and its mechanisms. See
//! docs/design/disks.md.
//!
//! A plain drive is only a [`Drive`]. Flash and a media cache add memories in front of it ([`assisted`]): the flash
//! serves repeated reads ([`flash`]), the media cache takes writes in the order of their arrival ([`log`]) and moves
//! them home later ([`cleaning`]), single extents in a conventional drive, whole bands in a shingled one. Several
//! actuators are as many drives behind one port ([`split`]).

mod assisted;
mod cleaning;
mod flash;
mod log;
mod outside;
mod runs;
mod split;
mod split_commands;
mod staging;
#[cfg(test)]
mod tests;

use headstack_workload::Request;

use crate::description::drive::DriveDescription;
use crate::drive::mechanics::SpindleVariation;
use crate::drive::{Completion, Counters, Drive, check};
use crate::error::InvalidDescription;
use crate::link::Upstream;
use assisted::Assisted;
use split::Split;

/// A disk in virtual time, with the interface of a [`Drive`].
#[derive(Clone, Debug)]
pub struct Disk {
    kind: Kind,
}

#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)] // the large one is the usual one
enum Kind {
    Plain(Drive),
    Assisted(Box<Assisted>),
    Split(Box<Split>),
}

impl Disk {
    /// Creates an idle disk with empty caches. `seed` drives only the optional random processes.
    ///
    /// # Errors
    /// The first impossible value in the description.
    pub fn new(description: &DriveDescription, seed: u64) -> Result<Disk, InvalidDescription> {
        check(description)?;
        let kind = if description.actuators > 1 {
            Kind::Split(Box::new(Split::new(description, seed)?))
        } else if description.flash_cache.is_some() || description.media_cache.is_some() {
            Kind::Assisted(Box::new(Assisted::new(description, seed)?))
        } else {
            Kind::Plain(Drive::new(description, seed)?)
        };
        Ok(Disk { kind })
    }

    /// Creates another idle disk of the same description: the two share the compiled data.
    pub fn another(&self, seed: u64) -> Disk {
        let kind = match &self.kind {
            Kind::Plain(drive) => Kind::Plain(drive.another(seed)),
            Kind::Assisted(assisted) => Kind::Assisted(Box::new(assisted.another(seed))),
            Kind::Split(split) => Kind::Split(Box::new(split.another(seed))),
        };
        Disk { kind }
    }

    /// Gives the spindle of an idle disk its own phase and speed. Several actuators share one spindle.
    pub fn vary_spindle(&mut self, variation: SpindleVariation) {
        match &mut self.kind {
            Kind::Plain(drive) => drive.vary_spindle(variation),
            Kind::Assisted(assisted) => assisted.vary_spindle(variation),
            Kind::Split(split) => split.vary_spindle(variation),
        }
    }

    /// Returns the bytes that it exports.
    pub fn capacity_bytes(&self) -> u64 {
        let geometry = &self.description().geometry;
        geometry.logical_blocks * u64::from(geometry.logical_block_bytes)
    }

    /// Returns its description.
    pub fn description(&self) -> &DriveDescription {
        match &self.kind {
            Kind::Plain(drive) => drive.description(),
            Kind::Assisted(assisted) => assisted.description(),
            Kind::Split(split) => split.description(),
        }
    }

    /// Returns its counters.
    pub fn counters(&self) -> Counters {
        match &self.kind {
            Kind::Plain(drive) => drive.counters(),
            Kind::Assisted(assisted) => assisted.counters(),
            Kind::Split(split) => split.counters(),
        }
    }

    /// Returns when the spindle stops if no command arrives before; `u64::MAX` for never. A timeout is not allowed with
    /// several actuators.
    pub(crate) fn stops_ns(&self) -> u64 {
        match &self.kind {
            Kind::Plain(drive) => drive.stops_ns(),
            Kind::Assisted(assisted) => assisted.stops_ns(),
            Kind::Split(_) => u64::MAX,
        }
    }

    /// Returns the time of the next event; `u64::MAX` if there is none.
    #[inline]
    pub fn next_event_ns(&self) -> u64 {
        match &self.kind {
            Kind::Plain(drive) => drive.next_event_ns(),
            Kind::Assisted(assisted) => assisted.next_event_ns(),
            Kind::Split(split) => split.next_event_ns(),
        }
    }

    /// Whether nothing is queued, in service, or only in the buffer. A media cache may hold data, and will be cleaned.
    pub fn is_idle(&self) -> bool {
        match &self.kind {
            Kind::Plain(drive) => drive.is_idle(),
            Kind::Assisted(assisted) => assisted.is_idle(),
            Kind::Split(split) => split.is_idle(),
        }
    }

    /// Whether it is idle and a media cache is empty.
    pub fn is_clean(&self) -> bool {
        match &self.kind {
            Kind::Assisted(assisted) => assisted.is_clean(),
            Kind::Plain(_) | Kind::Split(_) => self.is_idle(),
        }
    }

    /// Adds a request to the read cache in flash, in no time and regardless of its fill rate, so that it is warmed as
    /// by hours of such requests. Does nothing in a disk without one.
    pub fn warm_with(&mut self, request: &Request) {
        if let Kind::Assisted(assisted) = &mut self.kind {
            assisted.warm_with(request);
        }
    }

    /// Takes a command at `now_ns`. The caller has processed every event up to `now_ns`, gives commands in flight
    /// different `id`s and stays inside the capacity.
    #[inline]
    pub fn submit(&mut self, now_ns: u64, id: u32, request: &Request) {
        self.submit_behind(&mut Upstream::none(), now_ns, id, request);
    }

    /// Like [`Self::submit`], for a disk behind shared links.
    #[inline]
    pub fn submit_behind(&mut self, upstream: &mut Upstream, now_ns: u64, id: u32, request: &Request) {
        match &mut self.kind {
            Kind::Plain(drive) => drive.submit_behind(upstream, now_ns, id, request),
            Kind::Assisted(assisted) => assisted.submit_behind(upstream, now_ns, id, request),
            Kind::Split(split) => split.submit_behind(upstream, now_ns, id, request),
        }
    }

    /// Processes every event up to `now_ns`; calls `completed` with each completion in order of time.
    #[inline]
    pub fn advance(&mut self, now_ns: u64, completed: impl FnMut(Completion)) {
        self.advance_behind(&mut Upstream::none(), now_ns, completed);
    }

    /// Like [`Self::advance`], for a disk behind shared links.
    #[inline]
    pub fn advance_behind(&mut self, upstream: &mut Upstream, now_ns: u64, completed: impl FnMut(Completion)) {
        match &mut self.kind {
            Kind::Plain(drive) => drive.advance_behind(upstream, now_ns, completed),
            Kind::Assisted(assisted) => assisted.advance_behind(upstream, now_ns, completed),
            Kind::Split(split) => split.advance_behind(upstream, now_ns, completed),
        }
    }
}
