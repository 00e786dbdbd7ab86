//! A drive with several actuators: mechanisms that move on their own behind one port.

use headstack_workload::{Kind, Request};

use super::flights::Flights;
use crate::drive::description::{DriveDescription, InterfaceKind};
use crate::drive::{Completion, Counters, Drive, Fault};
use crate::link::{Link, LinkDescription, LinkKind, Upstream};

/// Several mechanisms, each with its share of the blocks, the first with the lowest.
#[derive(Clone, Debug)]
pub struct Split {
    description: DriveDescription,
    drives: Vec<Drive>,
    /// Their common port.
    port: Link,
    share_bytes: u64,
    flights: Flights,
    done: Vec<Completion>,
}

impl Split {
    /// The drive of a checked description.
    pub fn new(description: &DriveDescription, seed: u64) -> Result<Self, Fault> {
        let count = description.actuators;
        let mut share = description.clone();
        share.actuators = 1;
        share.geometry.heads /= count;
        share.geometry.logical_blocks /= u64::from(count);
        // The buffer is shared; evenly, as far as anybody knows.
        let buffer = &mut share.buffer;
        buffer.segments = buffer.segments.div_ceil(count);
        buffer.dirty_extents_max = buffer.dirty_extents_max.div_ceil(count);
        buffer.dirty_sectors_max = buffer.dirty_sectors_max.div_ceil(count);
        let drives =
            (0..count).map(|index| Drive::new(&share, seed + u64::from(index))).collect::<Result<Vec<_>, _>>()?;
        Ok(Split {
            share_bytes: drives[0].capacity_bytes(),
            drives,
            port: port(description),
            description: description.clone(),
            flights: Flights::default(),
            done: Vec::new(),
        })
    }

    /// Its description.
    pub fn description(&self) -> &DriveDescription {
        &self.description
    }

    /// What it has counted so far, the mechanisms together.
    pub fn counters(&self) -> Counters {
        let mut sum = self.drives.iter().fold(Counters::default(), |sum, drive| sum.plus(&drive.counters()));
        sum.interface_ns = self.port.busy_ns;
        sum
    }

    /// When something happens next; `u64::MAX` if nothing will.
    pub fn next_event_ns(&self) -> u64 {
        self.drives.iter().map(Drive::next_event_ns).min().unwrap_or(u64::MAX)
    }

    /// Nothing is queued, in service or dirty.
    pub fn is_idle(&self) -> bool {
        self.drives.iter().all(Drive::is_idle)
    }

    /// Takes a command; one that reaches into several shares is cut.
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
            for part in self.done.drain(..) {
                if let Some(landed) = self.flights.part_done(&part) {
                    completed(landed.completion);
                }
            }
        }
    }
}

/// The port that the mechanisms share; what a command costs there is in their overheads.
fn port(description: &DriveDescription) -> Link {
    let interface = &description.interface;
    let kind = match interface.kind {
        InterfaceKind::Scsi => LinkKind::Scsi,
        InterfaceKind::Ata => LinkKind::Ata,
        InterfaceKind::Sata => LinkKind::Sata,
        InterfaceKind::Sas => LinkKind::Sas,
        InterfaceKind::Fc => LinkKind::FcLoop,
    };
    Link::new(&LinkDescription {
        name: "port".to_owned(),
        kind,
        ns_per_byte: interface.read_ns_per_byte.max(interface.write_ns_per_byte),
        command_ns: 0,
        read_ns: 0,
        write_ns: 0,
        latency_ns: 0,
        full_duplex: matches!(kind, LinkKind::Sas | LinkKind::FcLoop),
        held_by_command: false,
    })
}
