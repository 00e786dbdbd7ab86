//! [`Split`]: a drive with several actuators, which are independent mechanisms behind one port.

use std::sync::Arc;

use headstack_result::Levels;
use headstack_workload::{Kind, Request, Span};

use super::split_commands::SplitCommands;
use crate::description::drive::{DriveDescription, InterfaceKind};
use crate::description::link::{LinkDescription, LinkKind};
use crate::drive::mechanics::SpindleVariation;
use crate::drive::{Completion, Counters, Drive};
use crate::error::InvalidDescription;
use crate::gauges::{DeviceGauge, DeviceHealth, DeviceState};
use crate::link::{Link, Upstream};
use crate::media_defects::MediaDefect;
use crate::media_defects::{Failure, Failures};
use crate::spans::common;

/// Several mechanisms, each with its share of the blocks; the first has the lowest.
#[derive(Clone, Debug)]
pub struct Split {
    description: Arc<DriveDescription>,
    drives: Vec<Drive>,
    /// Their shared port.
    port: Link,
    share_bytes: u64,
    flights: SplitCommands,
    /// Failed commands, by the host's names.
    pub failures: Failures,
    done: Vec<Completion>,
}

impl Split {
    /// Creates the drive of a checked description.
    pub fn new(description: &DriveDescription, seed: u64) -> Result<Self, InvalidDescription> {
        let count = description.actuators;
        let mut share = description.clone();
        share.actuators = 1;
        share.geometry.heads /= count;
        share.geometry.logical_blocks /= u64::from(count);
        // The buffer is shared; evenly, because nothing else is known.
        let buffer = &mut share.buffer;
        buffer.segments = buffer.segments.div_ceil(count);
        buffer.dirty_extents_max = buffer.dirty_extents_max.div_ceil(count);
        buffer.dirty_sectors_max = buffer.dirty_sectors_max.div_ceil(count);
        Ok(Split::at_rest(&Drive::new(&share, seed)?, Arc::new(description.clone()), seed))
    }

    /// Creates another idle one of the same description.
    pub fn another(&self, seed: u64) -> Self {
        Split::at_rest(&self.drives[0], Arc::clone(&self.description), seed)
    }

    /// Gives the spindle that all actuators share its own phase and speed.
    pub fn vary_spindle(&mut self, variation: SpindleVariation) {
        self.drives.iter_mut().for_each(|drive| drive.vary_spindle(variation));
    }

    fn at_rest(mechanism: &Drive, description: Arc<DriveDescription>, seed: u64) -> Self {
        let mechanism_of = |index| mechanism.another(seed + u64::from(index));
        Split {
            share_bytes: mechanism.capacity_bytes(),
            drives: (0..description.actuators).map(mechanism_of).collect(),
            port: port(&description),
            description,
            flights: SplitCommands::default(),
            failures: Failures::default(),
            done: Vec::new(),
        }
    }

    /// Returns its description.
    pub fn description(&self) -> &DriveDescription {
        &self.description
    }

    /// Returns the summed counters of the mechanisms.
    pub fn counters(&self) -> Counters {
        let mut sum = self.drives.iter().fold(Counters::default(), |sum, drive| sum.plus(&drive.counters()));
        sum.interface_ns = self.port.busy_ns;
        sum
    }

    /// Returns the time of the next event; `u64::MAX` if there is none.
    pub fn next_event_ns(&self) -> u64 {
        self.drives.iter().map(Drive::next_event_ns).min().unwrap_or(u64::MAX)
    }

    /// Whether nothing is queued, in service or dirty.
    pub fn is_idle(&self) -> bool {
        self.drives.iter().all(Drive::is_idle)
    }

    /// Takes a command; one that spans several shares is split.
    pub fn submit_behind(&mut self, upstream: &mut Upstream, now_ns: u64, id: u32, request: &Request) {
        let mut upstream = upstream.through(now_ns, &mut self.port);
        if request.kind == Kind::Flush {
            let name = self.flights.start(id, self.drives.len() as u32);
            for drive in &mut self.drives {
                drive.submit_behind(&mut upstream, now_ns, name, request);
            }
            return;
        }
        let end = request.offset_bytes + u64::from(request.length_bytes);
        let first = request.offset_bytes / self.share_bytes;
        let last = (end - 1) / self.share_bytes;
        let name = self.flights.start(id, (last - first + 1) as u32);
        for index in first..=last {
            let share_from = index * self.share_bytes;
            let from = request.offset_bytes.max(share_from);
            let to = end.min(share_from + self.share_bytes);
            let part = Request { offset_bytes: from - share_from, length_bytes: (to - from) as u32, ..*request };
            self.drives[index as usize].submit_behind(&mut upstream, now_ns, name, &part);
        }
    }

    /// Processes every event up to `now_ns`.
    pub fn advance_behind(&mut self, upstream: &mut Upstream, now_ns: u64, mut completed: impl FnMut(Completion)) {
        loop {
            let at_ns = self.next_event_ns();
            if at_ns > now_ns {
                return;
            }
            let mut upstream = upstream.through(at_ns, &mut self.port);
            for drive in &mut self.drives {
                drive.advance_behind(&mut upstream, at_ns, |part| self.done.push(part));
            }
            if self.drives.iter().any(Drive::has_failures) {
                self.note_failures();
            }
            for part in self.done.drain(..) {
                if let Some(landed) = self.flights.part_done(&part) {
                    completed(landed.completion);
                }
            }
        }
    }
}

impl Split {
    /// Fails the commands of finished parts that failed.
    #[cold]
    fn note_failures(&mut self) {
        for (index, drive) in self.drives.iter_mut().enumerate() {
            let base = index as u64 * self.share_bytes;
            for part in &self.done {
                if let Some(Failure { from_bytes, to_bytes, write, .. }) = drive.take_failure(part.id) {
                    let (from_bytes, to_bytes) = (base + from_bytes, base + to_bytes);
                    let id = self.flights.id(part.id);
                    self.failures.note(Failure { id, from_bytes, to_bytes, write });
                }
            }
        }
    }

    /// Returns the part of a span that is in an actuator's share, relative to its beginning.
    fn part_of(&self, index: usize, span: Span) -> Option<Span> {
        let base = index as u64 * self.share_bytes;
        let part = common(span, base, base + self.share_bytes)?;
        Some(Span { start_bytes: part.start_bytes - base, ..part })
    }

    /// Replaces the media defects; each actuator draws random numbers of its own.
    pub fn set_media_defects(&mut self, media_defects: &[MediaDefect], seed: u64) {
        for index in 0..self.drives.len() {
            let part = |media_defect: &MediaDefect| {
                Some(MediaDefect { span: self.part_of(index, media_defect.span)?, ..*media_defect })
            };
            let own: Vec<MediaDefect> = media_defects.iter().filter_map(part).collect();
            self.drives[index].set_media_defects(&own, seed.wrapping_add(index as u64));
        }
    }

    /// Whether acknowledged data can be in a volatile cache.
    pub fn caches_writes(&self) -> bool {
        self.drives.iter().any(Drive::caches_writes)
    }

    /// Switches the write cache.
    pub fn set_write_cache(&mut self, on: bool) {
        self.drives.iter_mut().for_each(|drive| drive.set_write_cache(on));
    }

    /// Appends the parts of a span that are only in a volatile cache.
    pub fn volatile(&self, span: Span, into: &mut Vec<Span>) {
        for (index, drive) in self.drives.iter().enumerate() {
            let Some(part) = self.part_of(index, span) else {
                continue;
            };
            let first = into.len();
            drive.volatile(part, into);
            into[first..].iter_mut().for_each(|span| span.start_bytes += index as u64 * self.share_bytes);
        }
    }

    /// Returns the end of the track that holds a byte.
    pub fn track_end_bytes(&self, at_bytes: u64) -> u64 {
        let base = at_bytes / self.share_bytes * self.share_bytes;
        base + self.drives[(at_bytes / self.share_bytes) as usize].track_end_bytes(at_bytes - base)
    }

    /// Handles a power cycle.
    pub fn power_cycle(&mut self, now_ns: u64) {
        self.drives.iter_mut().for_each(|drive| drive.power_cycle(now_ns));
        self.flights = SplitCommands::default();
        self.failures.clear();
        self.port.reset();
    }

    /// Returns its fill levels.
    pub fn levels(&self) -> Levels {
        [self.drives.iter().map(Drive::dirty_bytes).sum(), 0, 0, 0, 0]
    }

    /// Returns its activity for display: that of the first actuator that works.
    pub fn gauge(&self, now_ns: u64) -> DeviceGauge {
        let gauges: Vec<DeviceGauge> = self.drives.iter().map(|drive| drive.gauge(now_ns)).collect();
        let works = |gauge: &&DeviceGauge| !matches!(gauge.state, DeviceState::Idle | DeviceState::Standby);
        let shown = gauges.iter().find(works).unwrap_or(&gauges[0]);
        let dirty_bytes = gauges.iter().map(|gauge| gauge.dirty_bytes).sum();
        DeviceGauge { queue: self.flights.count() as u32, dirty_bytes, ..shown.clone() }
    }

    /// Adds its media defects to a health record.
    pub fn add_health(&self, into: &mut DeviceHealth) {
        self.drives.iter().for_each(|drive| drive.add_health(into));
    }
}

/// Returns the port that the mechanisms share; their overheads include the cost of a command there.
fn port(description: &DriveDescription) -> Link {
    let interface = &description.interface;
    let (kind, full_duplex) = match interface.kind {
        InterfaceKind::Scsi => (LinkKind::Scsi, false),
        InterfaceKind::Ata => (LinkKind::Ata, false),
        InterfaceKind::Sata => (LinkKind::Sata, false),
        InterfaceKind::Sas => (LinkKind::Sas, true),
        InterfaceKind::Fc => (LinkKind::FcLoop, true),
    };
    Link::new(&LinkDescription {
        name: "port".to_owned(),
        kind,
        ns_per_byte: interface.read_ns_per_byte.max(interface.write_ns_per_byte),
        command_ns: 0,
        read_ns: 0,
        write_ns: 0,
        latency_ns: 0,
        full_duplex,
        held_by_command: false,
    })
}
