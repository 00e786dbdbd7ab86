//! [`CrashState`]: a state that a crash may leave, and [`Rules`]: the guarantees of a device.

use serde::{Deserialize, Serialize};

use super::extents::{Extents, Range};
use super::walk::Open;
use crate::recording::{Recording, Stored};

/// Positions at which a write may be torn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tear {
    /// Nowhere: writes are atomic.
    #[default]
    None,
    /// After any atom: the atoms before it survive.
    Prefix,
    /// Anywhere: any subset of the atoms survives.
    Any,
}

/// Maximum number of atoms of a trim that may be torn. Longer trims count as atomic, since those of a whole device have
/// millions of atoms.
const TORN_TRIM_ATOMS_MAX: u64 = 4096;

/// Guarantees of the device in addition to flushes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rules {
    /// Positions at which writes may be torn.
    pub tear: Tear,
    /// Size of an atom in bytes; atoms are aligned to multiples of their size. 0 for the block size of the device.
    pub atom_bytes: u64,
    /// First bytes of regions. Within each region, changes survive in the order in which they were sent. Empty if the
    /// device keeps no order.
    pub regions: Vec<u64>,
}

impl Default for Rules {
    fn default() -> Rules {
        Rules { tear: Tear::None, atom_bytes: 0, regions: Vec::new() }
    }
}

/// A write of which some atoms survive.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Torn {
    /// Number of the change.
    pub change: u32,
    /// Ranges of surviving atoms, counted from the first atom of the change; the end of each range is exclusive.
    pub kept: Vec<(u32, u32)>,
}

/// A state after a crash, with all durable changes and all open changes except those listed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CrashState {
    /// Number of events before the crash.
    pub events: usize,
    /// Numbers of the open changes that are missing, in order.
    pub missing: Vec<u32>,
    /// Open changes that survive in part, in order.
    pub torn: Vec<Torn>,
}

/// An open change with its possible outcomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) change: u32,
    pub(crate) tear: Tear,
    /// Number of atoms that the change touches; 1 if it cannot be torn.
    pub(crate) atoms: u32,
    region: usize,
}

/// Outcome of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ChangeOutcome {
    Nothing,
    Atoms(Vec<(u32, u32)>),
    All,
}

impl Rules {
    /// Returns the size of an atom in bytes.
    pub(crate) fn atom(&self, recording: &Recording) -> u64 {
        self.atom_bytes.max(u64::from(recording.device.block_bytes))
    }

    /// Returns the possible outcomes of each open change.
    pub(crate) fn members(&self, recording: &Recording, open: &[Open]) -> Vec<Member> {
        open.iter().map(|open| self.member(recording, open)).collect()
    }

    fn member(&self, recording: &Recording, open: &Open) -> Member {
        let change = &recording.changes[open.change as usize];
        let (start, end) = (change.offset_bytes, change.offset_bytes + change.length_bytes);
        let unit = |bytes: u64| end.div_ceil(bytes) - start / bytes;
        let is_atomic = recording.device.atomic_bytes > 0 && unit(u64::from(recording.device.atomic_bytes)) == 1;
        // A failed change may survive in any mixture; a device's guarantees cover only successful changes.
        let tear = if open.has_failed { Tear::Any } else { self.tear };
        // No device guarantees that a trim is atomic.
        let is_trim = change.stored == Stored::Trim;
        let is_long_trim = is_trim && unit(self.atom(recording)) > TORN_TRIM_ATOMS_MAX;
        let is_whole = tear == Tear::None || is_long_trim || (is_atomic && !is_trim && !open.has_failed);
        let atoms = if is_whole { 1 } else { u32::try_from(unit(self.atom(recording))).unwrap_or(u32::MAX) };
        let region = self.regions.partition_point(|&from| from <= start);
        Member { change: open.change, tear: if atoms == 1 { Tear::None } else { tear }, atoms, region }
    }

    /// Makes a state possible for the device: in each region, no change survives after a missing or torn change.
    pub(crate) fn lawful(&self, members: &[Member], mut state: CrashState) -> CrashState {
        if self.regions.is_empty() {
            return state;
        }
        let mut is_over = vec![false; self.regions.len() + 1];
        for member in members {
            let is_missing = state.missing.binary_search(&member.change);
            let torn = state.torn.iter().position(|torn| torn.change == member.change);
            if is_over[member.region] {
                torn.map(|place| state.torn.remove(place));
                if let Err(place) = is_missing {
                    state.missing.insert(place, member.change);
                }
            } else {
                is_over[member.region] = is_missing.is_ok() || torn.is_some();
            }
        }
        state
    }

    /// Returns the number of subsets of the open changes, including torn changes. The number is capped at the largest
    /// finite value, since JSON has no infinity.
    pub(crate) fn possible(&self, members: &[Member]) -> f64 {
        if self.regions.is_empty() {
            return members.iter().map(Member::outcomes).product::<f64>().min(f64::MAX);
        }
        let mut of_regions = vec![1.0; self.regions.len() + 1];
        for member in members {
            of_regions[member.region] += member.outcomes() - 1.0;
        }
        of_regions.iter().product::<f64>().min(f64::MAX)
    }
}

impl Member {
    /// Returns the number of possible outcomes of the change.
    pub(crate) fn outcomes(&self) -> f64 {
        match self.tear {
            Tear::None => 2.0,
            Tear::Prefix => f64::from(self.atoms) + 1.0,
            Tear::Any => f64::from(self.atoms).exp2(),
        }
    }

    /// Returns the outcome with this number: in the first outcome nothing survives, and in the last everything does.
    pub(crate) fn outcome(&self, number: u64) -> ChangeOutcome {
        let atoms = u64::from(self.atoms);
        match self.tear {
            _ if number == 0 => ChangeOutcome::Nothing,
            Tear::None => ChangeOutcome::All,
            Tear::Prefix if number == atoms => ChangeOutcome::All,
            Tear::Prefix => ChangeOutcome::Atoms(vec![(0, number as u32)]),
            Tear::Any if number == u64::MAX >> (64 - atoms) => ChangeOutcome::All,
            Tear::Any => ChangeOutcome::Atoms(runs(self.atoms, |atom| number >> atom & 1 == 1)),
        }
    }
}

/// Returns the runs of atoms for which `is_kept` returns true.
pub(crate) fn runs(atoms: u32, mut is_kept: impl FnMut(u32) -> bool) -> Vec<(u32, u32)> {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for atom in 0..atoms {
        if is_kept(atom) {
            match runs.last_mut() {
                Some(run) if run.1 == atom => run.1 += 1,
                _ => runs.push((atom, atom + 1)),
            }
        }
    }
    runs
}

impl CrashState {
    /// Returns the state in which each member has the outcome that `kept` returns for it.
    pub(crate) fn of(events: usize, members: &[Member], mut kept: impl FnMut(usize) -> ChangeOutcome) -> CrashState {
        let mut state = CrashState { events, ..CrashState::default() };
        for (place, member) in members.iter().enumerate() {
            match kept(place) {
                ChangeOutcome::Nothing => state.missing.push(member.change),
                ChangeOutcome::Atoms(kept) => state.torn.push(Torn { change: member.change, kept }),
                ChangeOutcome::All => {}
            }
        }
        state
    }

    /// Returns the outcome of a range of an open change, in atoms of that range.
    pub(crate) fn outcome_of_range(
        &self,
        recording: &Recording,
        atom_bytes: u64,
        change: u32,
        range: Range,
    ) -> ChangeOutcome {
        if self.missing.binary_search(&change).is_ok() {
            return ChangeOutcome::Nothing;
        }
        let Some(torn) = self.torn.iter().find(|torn| torn.change == change) else { return ChangeOutcome::All };
        let before = range.0 / atom_bytes - recording.changes[change as usize].offset_bytes / atom_bytes;
        let atoms = range.1.div_ceil(atom_bytes) - range.0 / atom_bytes;
        let is_there = |atom: u32| {
            let atom = before as u32 + atom;
            torn.kept.iter().any(|&(from, to)| from <= atom && atom < to)
        };
        match runs(atoms as u32, is_there) {
            kept if kept.is_empty() => ChangeOutcome::Nothing,
            kept if kept == [(0, atoms as u32)] => ChangeOutcome::All,
            kept => ChangeOutcome::Atoms(kept),
        }
    }

    /// Returns the surviving open changes above the durable ones, as the last change of each range.
    pub(crate) fn overlay(&self, recording: &Recording, atom_bytes: u64, open: &[Open]) -> Extents {
        let mut over = Extents::default();
        for open in open {
            if self.missing.binary_search(&open.change).is_ok() {
                continue;
            }
            let torn = self.torn.iter().find(|torn| torn.change == open.change);
            for &left in &open.left {
                match torn {
                    None => over.put(left, open.change),
                    Some(torn) => {
                        let first = recording.changes[open.change as usize].offset_bytes / atom_bytes;
                        for &(from, to) in &torn.kept {
                            let kept: Range =
                                ((first + u64::from(from)) * atom_bytes, (first + u64::from(to)) * atom_bytes);
                            let both = (kept.0.max(left.0), kept.1.min(left.1));
                            if both.0 < both.1 {
                                over.put(both, open.change);
                            }
                        }
                    }
                }
            }
        }
        over
    }
}
