//! [`Cycles`]: how Iometer repeats a test with increasing numbers of workers, targets or queue depth
//! (`GalileoView.cpp`).

use std::collections::BTreeMap;

/// Maximum number of combinations; a higher number indicates a mistake in the file.
pub(super) const STEPS_MAX: usize = 10_000;

/// The quantity that is cycled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TestKind {
    Normal,
    Targets,
    Workers,
    TargetsParallel,
    TargetsSerial,
    WorkersAndTargets,
    Depths,
    DepthsAndTargets,
}

impl TestKind {
    /// Names in files. Old files have numbers instead, in this order.
    pub(super) const ALL: [(&str, TestKind); 8] = [
        ("NORMAL", TestKind::Normal),
        ("CYCLE_TARGETS", TestKind::Targets),
        ("CYCLE_WORKERS", TestKind::Workers),
        ("INCREMENT_TARGETS_PARALLEL", TestKind::TargetsParallel),
        ("INCREMENT_TARGETS_SERIAL", TestKind::TargetsSerial),
        ("CYCLE_WORKERS_AND_TARGETS", TestKind::WorkersAndTargets),
        ("CYCLE_OUTSTANDING_IOS", TestKind::Depths),
        ("CYCLE_OUTSTANDING_IOS_AND_TARGETS", TestKind::DepthsAndTargets),
    ];
}

/// A sequence of increasing numbers.
#[derive(Clone, Copy)]
pub(super) struct Cycle {
    pub(super) start: u32,
    pub(super) step: u32,
    pub(super) exponential: bool,
    /// Line number in the file.
    pub(super) line: usize,
}

impl Cycle {
    fn numbers(self) -> impl Iterator<Item = u32> {
        std::iter::successors(Some(self.start), move |&last| {
            // With a factor of 1, Iometer adds 1 instead of multiplying.
            if self.exponential && self.step > 1 { last.checked_mul(self.step) } else { last.checked_add(self.step) }
        })
        .take(STEPS_MAX)
    }
}

/// A worker that takes part in cycling.
#[derive(Clone, Copy)]
pub(super) struct Candidate {
    pub(super) manager: usize,
    pub(super) targets: usize,
}

/// One test: the number of targets of each worker, and the queue depth if it is cycled.
pub(super) struct Step {
    pub(super) targets: Vec<usize>,
    pub(super) depth: Option<u32>,
}

/// The cycles of a file.
pub(super) struct Cycles {
    pub(super) kind: TestKind,
    pub(super) workers: Cycle,
    pub(super) targets: Cycle,
    pub(super) depths: Cycle,
    pub(super) last_depth: u32,
}

impl Cycles {
    /// Returns the tests of an access specification.
    pub(super) fn steps(&self, candidates: &[Candidate]) -> Vec<Step> {
        let all: Vec<usize> = candidates.iter().map(|candidate| candidate.targets).collect();
        let selections = match self.kind {
            TestKind::Normal | TestKind::Depths => vec![all],
            TestKind::Targets | TestKind::DepthsAndTargets => growing(self.targets, |count| each(candidates, count)),
            TestKind::Workers => growing(self.workers, |count| first_workers(candidates, count, usize::MAX)),
            TestKind::TargetsParallel => {
                growing(self.targets, |count| filled(candidates, count, |candidate| candidate.manager))
            }
            TestKind::TargetsSerial => growing(self.targets, |count| filled(candidates, count, |_| 0)),
            TestKind::WorkersAndTargets => {
                let workers = growing(self.workers, |count| first_workers(candidates, count, 1));
                let chosen = |selection: &Vec<usize>| {
                    let taken = selection.clone();
                    growing(self.targets, move |count| {
                        let of =
                            |(candidate, &used): (&Candidate, &usize)| candidate.targets.min(count as usize) * used;
                        candidates.iter().zip(&taken).map(of).collect()
                    })
                };
                workers.iter().flat_map(chosen).collect()
            }
        };
        let depths: Vec<Option<u32>> = match self.kind {
            TestKind::Depths | TestKind::DepthsAndTargets => {
                self.depths.numbers().take_while(|depth| *depth <= self.last_depth).map(Some).collect()
            }
            _ => vec![None],
        };
        let steps = selections.into_iter().flat_map(|targets| {
            depths.iter().map(move |&depth| Step { targets: targets.clone(), depth }).collect::<Vec<_>>()
        });
        steps.take(STEPS_MAX + 1).collect()
    }
}

/// Returns selections of increasing numbers of targets until a selection adds no more.
fn growing(cycle: Cycle, select: impl Fn(u32) -> Vec<usize>) -> Vec<Vec<usize>> {
    let mut last = 0;
    let selections = cycle.numbers().map(select).take_while(|selection| {
        let count = selection.iter().sum();
        std::mem::replace(&mut last, count) < count
    });
    selections.collect()
}

/// Returns how many targets each worker has among its first `count`.
fn each(candidates: &[Candidate], count: u32) -> Vec<usize> {
    candidates.iter().map(|candidate| candidate.targets.min(count as usize)).collect()
}

/// Returns the targets of the first `count` workers of each manager, up to `targets` targets each.
fn first_workers(candidates: &[Candidate], count: u32, targets: usize) -> Vec<usize> {
    let mut left: BTreeMap<usize, u32> = BTreeMap::new();
    let take = |candidate: &Candidate| {
        let left = left.entry(candidate.manager).or_insert(count);
        if *left == 0 {
            return 0;
        }
        *left -= 1;
        candidate.targets.min(targets)
    };
    candidates.iter().map(take).collect()
}

/// Returns the first `count` targets of each pool, taken from one worker after another.
fn filled(candidates: &[Candidate], count: u32, pool: impl Fn(&Candidate) -> usize) -> Vec<usize> {
    let mut left: BTreeMap<usize, usize> = BTreeMap::new();
    let take = |candidate: &Candidate| {
        let left = left.entry(pool(candidate)).or_insert(count as usize);
        let taken = candidate.targets.min(*left);
        *left -= taken;
        taken
    };
    candidates.iter().map(take).collect()
}
