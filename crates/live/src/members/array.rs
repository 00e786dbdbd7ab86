//! [`ArrayMembers`]: the members of all groups of an array. It maps addresses to groups, follows the model's members
//! and passes, and reports mismatches.

use std::io;
use std::ops::Range;

use headstack_sim::array::description::{ArrayDescription, Group};
use headstack_sim::array::{GroupStatus, Pass, PassKind};
use headstack_sim::faults::contents::{Alteration, MemberDamage};
use headstack_sim::power_cut::InterruptedChange;
use headstack_workload::Span;
use serde::Serialize;

use super::{Flat, Members, Served, Unfinished};
use crate::contents::Contents;
use crate::power::UndoLog;

/// Limit of the memory for differences; beyond it a power cut leaves copies and parities that match the data.
const DIFFERENCES_BYTES_MAX: u64 = 64 << 20;
/// Limit of the data of unfinished changes that are processed at a power cut, and of the data that would replace them.
const UNFINISHED_BYTES_MAX: u64 = 16 << 20;

/// A LUN's place in its group.
#[derive(Clone, Copy, Debug)]
struct Place {
    group: usize,
    /// First byte in the group, and in the array's address space.
    start_bytes: u64,
    base_bytes: u64,
    length_bytes: u64,
}

#[derive(Debug)]
struct GroupMembers {
    name: String,
    /// `None` if members have no contents of their own.
    members: Option<Members>,
    /// The last pass that was followed: its number, and its progress.
    followed: (u32, u64),
    /// Sectors found to differ by the last pass so far.
    mismatched_sectors: u64,
}

/// Mismatches of a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GroupMismatches {
    /// Name of the group.
    pub name: String,
    /// Sectors of the pages in which the last check, repair or resync found copies or parities to differ, like md's
    /// `mismatch_cnt`.
    pub mismatched_sectors: u64,
    /// Bytes of copies and parities that differ now, found or not; null if members have no contents of their own.
    pub differing_bytes: Option<u64>,
}

/// The members of an array.
#[derive(Debug)]
pub struct ArrayMembers {
    groups: Vec<GroupMembers>,
    places: Vec<Place>,
}

/// The contents of a group, with permanent changes.
struct OfGroup<'a> {
    places: &'a [Place],
    group: usize,
    contents: &'a Contents,
    log: &'a mut UndoLog,
}

impl OfGroup<'_> {
    /// Calls `each` with the parts of a run that belong to LUNs: their addresses, and the bytes of the run.
    fn parts(
        &self,
        offset_bytes: u64,
        length: usize,
        mut each: impl FnMut(u64, Range<usize>) -> io::Result<()>,
    ) -> io::Result<()> {
        for place in self.places.iter().filter(|place| place.group == self.group) {
            let from = offset_bytes.max(place.start_bytes);
            let to = (offset_bytes + length as u64).min(place.start_bytes + place.length_bytes);
            if from < to {
                let part = (from - offset_bytes) as usize..(to - offset_bytes) as usize;
                each(place.base_bytes + (from - place.start_bytes), part)?;
            }
        }
        Ok(())
    }
}

impl Flat for OfGroup<'_> {
    fn read(&self, offset_bytes: u64, into: &mut [u8]) -> io::Result<()> {
        // Space without a LUN holds zeros.
        into.fill(0);
        self.parts(offset_bytes, into.len(), |at_bytes, part| self.contents.read(at_bytes, &mut into[part]))
    }

    fn change(&mut self, offset_bytes: u64, data: &[u8]) -> io::Result<()> {
        let mut found = Vec::new();
        self.parts(offset_bytes, data.len(), |at_bytes, part| {
            found.push((at_bytes, part));
            Ok(())
        })?;
        for (start_bytes, part) in found {
            let span = Span { start_bytes, length_bytes: part.len() as u64 };
            self.log.apply_for_good(self.contents, span, &data[part])?;
        }
        Ok(())
    }
}

impl ArrayMembers {
    /// Creates the members of a healthy array.
    pub fn of(array: &ArrayDescription) -> ArrayMembers {
        let group = |group: &Group| GroupMembers {
            name: group.name.clone(),
            members: Members::of(group),
            followed: (0, 0),
            mismatched_sectors: 0,
        };
        let mut base_bytes = 0;
        let places = array.luns.iter().map(|lun| {
            let (group, start_bytes, length_bytes) = (lun.group as usize, lun.start_bytes, lun.length_bytes);
            base_bytes += length_bytes;
            Place { group, start_bytes, base_bytes: base_bytes - length_bytes, length_bytes }
        });
        let places = places.collect();
        ArrayMembers { groups: array.groups.iter().map(group).collect(), places }
    }

    /// Whether anything differs.
    pub fn differ(&self) -> bool {
        self.groups.iter().filter_map(|group| group.members.as_ref()).any(Members::differ)
    }

    /// Memory of the differences.
    pub fn memory_bytes(&self) -> u64 {
        self.groups.iter().filter_map(|group| group.members.as_ref()).map(Members::memory_bytes).sum()
    }

    /// Mismatches of each group.
    pub fn mismatches(&self) -> Vec<GroupMismatches> {
        let mismatches_of = |group: &GroupMembers| GroupMismatches {
            name: group.name.clone(),
            mismatched_sectors: group.mismatched_sectors,
            differing_bytes: group.members.as_ref().map(Members::differing_bytes),
        };
        self.groups.iter().map(mismatches_of).collect()
    }

    /// The parts of a span: their groups, first bytes there, and byte ranges within the span.
    fn parts(&self, span: Span) -> Vec<(usize, u64, Range<u64>)> {
        let end_bytes = span.start_bytes + span.length_bytes;
        let part = |place: &Place| {
            let from = span.start_bytes.max(place.base_bytes);
            let to = end_bytes.min(place.base_bytes + place.length_bytes);
            let offset_bytes = place.start_bytes + from.saturating_sub(place.base_bytes);
            (from < to).then(|| (place.group, offset_bytes, from - span.start_bytes..to - span.start_bytes))
        };
        self.places.iter().filter_map(part).collect()
    }

    /// Notes that a client's write has changed the contents of a span.
    pub fn written(&mut self, span: Span) {
        for (group, offset_bytes, part) in self.parts(span) {
            if let Some(members) = &mut self.groups[group].members {
                members.written(offset_bytes, part.end - part.start);
            }
        }
    }

    /// Reads as a client does from an address on; `into` already has the contents.
    pub fn read(&mut self, start_bytes: u64, into: &mut [u8]) {
        for (group, offset_bytes, part) in self.parts(Span { start_bytes, length_bytes: into.len() as u64 }) {
            if let Some(members) = &mut self.groups[group].members {
                members.read(offset_bytes, &mut into[part.start as usize..part.end as usize]);
            }
        }
    }

    /// Follows the model's assignment of members to slots, and its passes.
    ///
    /// # Errors
    /// Those of the contents.
    pub fn follow(&mut self, standings: &[GroupStatus], contents: &Contents, log: &mut UndoLog) -> io::Result<()> {
        for (number, (group, standing)) in self.groups.iter_mut().zip(standings).enumerate() {
            let Some(members) = &mut group.members else { continue };
            let served = |&(member, losses, filled_bytes): &(u32, u32, u64)| Served { member, losses, filled_bytes };
            let served: Vec<Served> = standing.served.iter().map(served).collect();
            let mut flat = OfGroup { places: &self.places, group: number, contents, log };
            if let Some(pass) = &standing.pass {
                follow_pass(members, pass, &mut group.followed, &mut group.mismatched_sectors);
            }
            members.serve(&served, &mut flat)?;
        }
        Ok(())
    }

    /// Applies a fault's damage to a member; does nothing if the member serves no slot any more.
    ///
    /// # Errors
    /// Those of the contents; when differences exceed their memory.
    pub fn damage(
        &mut self,
        member: u32,
        what: &MemberDamage,
        contents: &Contents,
        log: &mut UndoLog,
    ) -> io::Result<()> {
        let memory_bytes = self.memory_bytes();
        let place = |group: &GroupMembers| group.members.as_ref().and_then(|members| members.slot_of(member));
        let found = self.groups.iter().enumerate().find_map(|(number, group)| Some((number, place(group)?)));
        let Some((number, slot)) = found else { return Ok(()) };
        let parts = match what {
            MemberDamage::Altered(_) => Vec::new(),
            MemberDamage::NotStored { span, .. } => self.parts(*span),
        };
        let members = self.groups[number].members.as_mut().expect("just found");
        let (MemberDamage::Altered(Alteration { span, .. }) | MemberDamage::NotStored { span, .. }) = what;
        if memory_bytes + members.memory_for(span.length_bytes) > DIFFERENCES_BYTES_MAX {
            return Err(io::Error::other("members differ in more than is kept"));
        }
        match what {
            MemberDamage::Altered(how) => {
                let flat = &mut OfGroup { places: &self.places, group: number, contents, log };
                let mut held = members.read_slot(slot, how.span, flat)?;
                how.apply(how.span.start_bytes, &mut held);
                members.corrupt(slot, how.span.start_bytes, &held, flat)
            }
            MemberDamage::NotStored { change, span } => {
                for (_, offset_bytes, part) in parts.into_iter().filter(|(group, ..)| *group == number) {
                    let (start_bytes, length_bytes) = (span.start_bytes + part.start, part.end - part.start);
                    let new = log.left_by(contents, *change, Span { start_bytes, length_bytes })?;
                    let mut old = new.clone();
                    log.read_before(&[*change].into(), start_bytes, &mut old);
                    let lost = Unfinished { offset_bytes, old, new, draw: 0 };
                    let mut flat = OfGroup { places: &self.places, group: number, contents, log: &mut *log };
                    members.not_stored(slot, &lost, &mut flat)?;
                }
                Ok(())
            }
        }
    }

    /// Collects the unfinished changes before the verdicts of a power cut are applied; `old` has the contents before
    /// them.
    ///
    /// # Errors
    /// Those of the contents.
    pub fn before_cut(
        &self,
        halfway: &[InterruptedChange],
        contents: &Contents,
        log: &UndoLog,
    ) -> io::Result<Vec<(usize, Unfinished)>> {
        let numbers = halfway.iter().map(|change| change.number).collect();
        let (mut unfinished, mut bytes) = (Vec::new(), 0);
        for change in halfway {
            for (group, offset_bytes, part) in self.parts(change.span) {
                let length_bytes = part.end - part.start;
                let is_redundant = self.groups[group].members.as_ref().is_some_and(Members::are_redundant);
                if !is_redundant || bytes + length_bytes > UNFINISHED_BYTES_MAX {
                    continue;
                }
                bytes += length_bytes;
                let mut new = vec![0; length_bytes as usize];
                let start_bytes = change.span.start_bytes + part.start;
                contents.read(start_bytes, &mut new)?;
                let mut old = new.clone();
                log.read_before(&numbers, start_bytes, &mut old);
                unfinished.push((group, Unfinished { offset_bytes, old, new, draw: change.draw }));
            }
        }
        Ok(unfinished)
    }

    /// Applies a power cut: the contents are already those that it left, and each member gets its own progress of the
    /// changes.
    ///
    /// # Errors
    /// Those of the contents.
    pub fn cut(
        &mut self,
        unfinished: &[(usize, Unfinished)],
        contents: &Contents,
        log: &mut UndoLog,
    ) -> io::Result<()> {
        for (number, change) in unfinished {
            let left_bytes = DIFFERENCES_BYTES_MAX.saturating_sub(self.memory_bytes());
            let mut flat = OfGroup { places: &self.places, group: *number, contents, log };
            let members = self.groups[*number].members.as_mut().expect("its changes were kept");
            if members.memory_for(change.new.len() as u64) <= left_bytes {
                members.cut(change, &mut flat)?;
            }
        }
        Ok(())
    }
}

/// Processes the progress of a pass since it was last followed.
fn follow_pass(members: &mut Members, pass: &Pass, followed: &mut (u32, u64), mismatched_sectors: &mut u64) {
    if followed.0 != pass.number {
        (*followed, *mismatched_sectors) = ((pass.number, 0), 0);
    }
    for run in &pass.runs {
        let run = run.start.max(followed.1)..run.end.min(pass.at_bytes);
        if run.is_empty() {
            continue;
        }
        *mismatched_sectors += members.mismatched_sectors(&run);
        match pass.kind {
            PassKind::Check => {}
            PassKind::Repair | PassKind::Resync => members.repair(&run),
        }
    }
    followed.1 = pass.at_bytes;
}
