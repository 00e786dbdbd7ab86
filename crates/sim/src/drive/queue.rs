//! [`ArmQueue`]: jobs that wait for the arm, and the choice of the next one.

use super::geometry::{Angle, Extent};
use super::media::{Head, Media};
use crate::description::drive::{Policy, Queue};

/// The start of a job, which the scheduler compares.
#[derive(Clone, Copy, Debug)]
struct Target {
    /// First block.
    block: u64,
    /// Its cylinder.
    cylinder: u32,
    /// Its surface.
    head: u32,
    /// Angle at which it begins.
    angle: Angle,
    /// Slot of the job.
    slot: u32,
    /// Whether write settling applies.
    write: bool,
    /// Whether it is a destage, for which no command waits.
    destage: bool,
}

/// The work of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// A read or a write-through write of the host.
    Host(HostJob),
    /// A dirty extent of the write cache, by slot.
    Destage(u32),
    /// An internal access of the drive.
    InternalAccess(InternalAccess),
}

/// A host command that needs the media.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostJob {
    /// The host's id of the command.
    pub id: u32,
    /// Whether it is a write.
    pub write: bool,
    /// First block (physical sector) that the media must read or write.
    pub block: u64,
    /// Number of sectors from there.
    pub sectors: u32,
    /// Sectors before `block` that were in the buffer when the command arrived.
    pub buffered: u32,
    /// Whether it starts or ends inside a physical sector.
    pub partial: bool,
    /// Whether it continues the previous write.
    pub sequential_write: bool,
    /// Whether the previous command was a read.
    pub after_read: bool,
    /// Its firmware overhead.
    pub overhead_ns: u64,
    /// Whether it is a write that may complete as soon as the write cache has room for it.
    pub cacheable: bool,
    /// The segment that it continues.
    pub segment: Option<usize>,
}

/// A read or write of sectors as background I/O: no command, no transfer over the port. The firmware has prepared it by
/// the time the arm takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InternalAccess {
    /// Id that its completion bears.
    pub id: u32,
    /// Whether it writes.
    pub write: bool,
    /// First physical sector.
    pub block: u64,
    /// Number of sectors.
    pub sectors: u32,
    /// When the data of a write are in the buffer and the firmware is ready for its first sector.
    pub ready_ns: u64,
}

/// A job with its place.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    /// The work itself.
    pub work: Work,
    /// First block.
    pub block: u64,
    /// Its first extent.
    pub extent: Extent,
    /// Time of arrival.
    pub arrived_ns: u64,
    /// Whether everything before it is done first, and everything after it later.
    pub ordered: bool,
}

impl Job {
    fn cacheable(&self) -> Option<HostJob> {
        match self.work {
            Work::Host(host) if host.cacheable => Some(host),
            Work::Host(_) | Work::Destage(_) | Work::InternalAccess(_) => None,
        }
    }

    fn target(&self, slot: u32) -> Target {
        Target {
            block: self.block,
            cylinder: self.extent.cylinder,
            head: self.extent.head,
            angle: self.extent.angle,
            slot,
            write: match self.work {
                Work::Host(host) => host.write,
                Work::Destage(_) => true,
                Work::InternalAccess(access) => access.write,
            },
            destage: matches!(self.work, Work::Destage(_)),
        }
    }
}

/// State of the arm when it can be taken.
#[derive(Clone, Copy, Debug)]
pub struct ArmState {
    /// Position of the heads.
    pub head: Head,
    /// The block under them.
    pub continues: u64,
    /// Time at which it could begin to move to any other block.
    pub start_ns: u64,
}

/// The jobs, with their targets in a separate list, so that a scan touches little memory.
#[derive(Clone, Debug)]
pub struct ArmQueue {
    /// First the plan in the order of service, then open jobs in order of arrival.
    targets: Vec<Target>,
    /// Number of targets in the plan.
    planned: usize,
    slots: Vec<Option<Job>>,
    free: Vec<u32>,
    policy: Policy,
    ageing_ns: u64,
    strength: Fraction,
    committed: Fraction,
    /// Whether only the positioning time counts.
    is_plain: bool,
    margin_ns: u64,
    /// Nanoseconds of positioning that [`AGE_UNIT`] nanoseconds of waiting outweigh.
    age_weight: i64,
    ordered: u32,
    cacheable: u32,
    upwards: bool,
}

impl ArmQueue {
    /// Creates an empty queue with room for `capacity` jobs.
    pub fn new(queue: &Queue, capacity: usize) -> Self {
        ArmQueue {
            targets: Vec::with_capacity(capacity),
            slots: Vec::with_capacity(capacity),
            free: Vec::with_capacity(capacity),
            policy: queue.policy,
            ageing_ns: queue.ageing_ns.unwrap_or(u64::MAX),
            strength: Fraction::new(queue.reordering_strength),
            committed: Fraction::new(queue.committed),
            margin_ns: queue.rotation_margin_ns,
            age_weight: (queue.age_weight * f64::from(AGE_UNIT)).round() as i64,
            is_plain: queue.rotation_margin_ns == 0 && queue.age_weight == 0.0,
            planned: 0,
            ordered: 0,
            cacheable: 0,
            upwards: true,
        }
    }

    /// Whether no job waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// Returns the number of waiting jobs.
    pub fn len(&self) -> usize {
        self.targets.len()
    }

    /// Whether an ordered command waits.
    #[inline]
    pub fn has_ordered(&self) -> bool {
        self.ordered > 0
    }

    /// Adds a job.
    #[inline]
    pub fn push(&mut self, job: Job) {
        self.ordered += u32::from(job.ordered);
        self.cacheable += u32::from(job.cacheable().is_some());
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            (self.slots.len() - 1) as u32
        });
        self.targets.push(job.target(slot));
        self.slots[slot as usize] = Some(job);
    }

    /// Updates a dirty extent that grew and may begin elsewhere now.
    pub fn replace_destage(&mut self, dirty: u32, block: u64, extent: Extent) {
        let work = Work::Destage(dirty);
        if let Some(at) = (0..self.targets.len()).find(|&at| self.job(at).work == work) {
            let slot = self.targets[at].slot;
            let job = Job { block, extent, ..*self.job(at) };
            self.targets[at] = job.target(slot);
            self.slots[slot as usize] = Some(job);
        }
    }

    /// Returns internal access `id`, if it waits.
    pub fn waiting_internal_access(&mut self, id: u32) -> Option<&mut InternalAccess> {
        self.slots.iter_mut().flatten().find_map(|job| match &mut job.work {
            Work::InternalAccess(access) => (access.id == id).then_some(access),
            Work::Host(_) | Work::Destage(_) => None,
        })
    }

    /// Returns the oldest write that waits for room in the write cache.
    pub fn oldest_cacheable(&self) -> Option<(usize, u64, HostJob)> {
        if self.cacheable == 0 {
            return None;
        }
        (0..self.targets.len()).find_map(|at| {
            let job = self.job(at);
            job.cacheable().map(|host| (at, job.arrived_ns, host))
        })
    }

    /// Records that the write at index `at` is in the write cache now: it keeps its place as the destage of `dirty`, or
    /// leaves the queue if it joined another.
    pub fn cached(&mut self, at: usize, dirty: Option<u32>) {
        let slot = self.targets[at].slot;
        let job = Job { ..*self.job(at) };
        self.cacheable -= 1;
        match dirty {
            Some(dirty) => {
                self.slots[slot as usize] = Some(Job { work: Work::Destage(dirty), ..job });
                self.targets[at].destage = true;
            }
            None => {
                self.ordered -= u32::from(job.ordered);
                self.planned -= usize::from(at < self.planned);
                self.targets.remove(at);
                self.slots[slot as usize] = None;
                self.free.push(slot);
            }
        }
    }

    /// Drops every job.
    pub fn clear(&mut self) {
        self.targets.clear();
        self.slots.clear();
        self.free.clear();
        (self.ordered, self.cacheable, self.planned) = (0, 0, 0);
    }

    /// Takes the next job at `now_ns`, and plans as many after it as the firmware commits itself to. `overhead_ns` is
    /// the time of each before the arm moves.
    #[inline]
    pub fn take(&mut self, media: &Media, arm: ArmState, now_ns: u64, overhead_ns: u64) -> Job {
        let at = if self.targets.len() == 1 {
            0
        } else if self.committed.is_zero() {
            self.choose(media, arm, now_ns)
        } else {
            self.plan(media, arm, now_ns, overhead_ns);
            0
        };
        self.planned = self.planned.saturating_sub(1);
        let target = self.targets.remove(at);
        let job = self.slots[target.slot as usize].take().expect("targets name occupied slots");
        self.free.push(target.slot);
        self.ordered -= u32::from(job.ordered);
        self.cacheable -= u32::from(job.cacheable().is_some());
        if self.policy == Policy::Look && target.cylinder != arm.head.cylinder {
            self.upwards = target.cylinder > arm.head.cylinder;
        }
        job
    }

    /// Fills the plan: the job to take now, and the following ones to which the firmware commits itself. Each is chosen
    /// for where the arm will be when its turn comes; planned jobs keep their order.
    fn plan(&mut self, media: &Media, arm: ArmState, now_ns: u64, overhead_ns: u64) {
        let wanted = (self.committed.next(1) + 1).min(self.targets.len());
        let mut arm = (0..self.planned).fold(arm, |arm, at| self.after(media, arm, overhead_ns, at));
        while self.planned < wanted {
            let at = self.choose(media, arm, now_ns);
            debug_assert!(at >= self.planned, "what is planned stays in its place");
            self.targets[self.planned..=at].rotate_right(1);
            arm = self.after(media, arm, overhead_ns, self.planned);
            self.planned += 1;
        }
    }

    /// Returns the state of the arm after the job at index `at`, served next.
    fn after(&self, media: &Media, arm: ArmState, overhead_ns: u64, at: usize) -> ArmState {
        let (target, job) = (&self.targets[at], self.job(at));
        let settled_ns = arm.start_ns + media.position_ns(arm.head, target.cylinder, target.head, target.write);
        let end_ns = media.spindle.meet_ns(settled_ns, target.angle) + media.spindle.turn_ns(job.extent.span);
        ArmState {
            head: Head { cylinder: target.cylinder, head: target.head },
            continues: job.block + u64::from(job.extent.sectors),
            start_ns: end_ns + overhead_ns,
        }
    }

    /// Returns the job at index `at`.
    pub(super) fn job(&self, at: usize) -> &Job {
        self.slots[self.targets[at].slot as usize].as_ref().expect("targets name occupied slots")
    }

    /// Returns the index of the best open job for the state of the arm.
    fn choose(&mut self, media: &Media, arm: ArmState, now_ns: u64) -> usize {
        let first = self.planned;
        let aged = self.ageing_ns != u64::MAX && now_ns.saturating_sub(self.job(first).arrived_ns) > self.ageing_ns;
        if self.policy == Policy::Fcfs || aged {
            return first;
        }
        let window = self.window();
        let open = &self.targets[first..first + window];
        // A job that continues at the heads costs nothing: no overhead, no seek, no latency.
        if let Some(at) = open.iter().position(|target| target.block == arm.continues) {
            return first + at;
        }
        let numbered = open.iter().enumerate();
        let best = match self.policy {
            Policy::Fcfs => Some(0),
            Policy::Sstf => numbered.min_by_key(|(_, t)| t.cylinder.abs_diff(arm.head.cylinder)).map(|(at, _)| at),
            Policy::Sptf if self.is_plain => Some(shortest_positioning(open, media, arm)),
            Policy::Sptf => Some(self.shortest_weighed(open, media, arm, now_ns)),
            Policy::CLook => numbered.min_by_key(|(_, t)| (t.block < arm.continues, t.block)).map(|(at, _)| at),
            Policy::Look => {
                let up = numbered.clone().filter(|(_, t)| t.block >= arm.continues).min_by_key(|(_, t)| t.block);
                let down = numbered.filter(|(_, t)| t.block < arm.continues).max_by_key(|(_, t)| t.block);
                if self.upwards { up.or(down) } else { down.or(up) }.map(|(at, _)| at)
            }
        };
        first + best.unwrap_or(0)
    }

    /// Returns the number of open jobs that the policy may choose from: the oldest, as many as the reordering strength
    /// allows, up to an ordered one.
    fn window(&mut self) -> usize {
        let open = self.targets.len() - self.planned;
        let mut window = if self.strength.is_whole() { open } else { 1 + self.strength.next(open as u64 - 1) };
        if self.ordered > 0 {
            let first = (self.planned..self.targets.len()).position(|at| self.job(at).ordered).unwrap_or(open);
            window = window.min(first.max(1));
        }
        window
    }

    /// Like [`shortest_positioning`], for firmware that does not rely on reaching a sector that passes within its
    /// margin, and that favours a job the longer it has waited.
    fn shortest_weighed(&self, targets: &[Target], media: &Media, arm: ArmState, now_ns: u64) -> usize {
        let turn_ns = media.spindle.revolution_ns();
        let cost_ns = |target: &Target| {
            let position = media.position_ns(arm.head, target.cylinder, target.head, target.write);
            let wait = media.spindle.wait_ns(arm.start_ns + position, target.angle);
            let turn = if wait < self.margin_ns { turn_ns } else { 0 };
            let job = self.slots[target.slot as usize].as_ref().expect("targets name occupied slots");
            let since_ns = if target.destage { now_ns } else { job.arrived_ns };
            let age_ns = now_ns.saturating_sub(since_ns).min(LONGEST_AGE_NS) as i64;
            (position + wait + turn) as i64 - ((age_ns * self.age_weight) >> AGE_UNIT.trailing_zeros())
        };
        let costs = targets.iter().map(cost_ns).enumerate();
        costs.min_by_key(|&(at, cost)| (cost, at)).map_or(0, |(at, _)| at)
    }
}

/// Unit of age that is weighed against positioning time.
const AGE_UNIT: u32 = 1 << 20;

/// Largest age that counts: a thousand seconds, so that a weighted age fits its integer.
const LONGEST_AGE_NS: u64 = 1_000_000_000_000;

/// A number that need not be whole, approximated on average by consecutive whole ones.
#[derive(Clone, Copy, Debug)]
struct Fraction {
    /// Value in units of 2^-16.
    value: u64,
    /// Remainder of the last whole number.
    left: u64,
}

impl Fraction {
    fn new(value: f64) -> Fraction {
        Fraction { value: (value * 65536.0).round() as u64, left: 0 }
    }

    fn is_zero(self) -> bool {
        self.value == 0
    }

    fn is_whole(self) -> bool {
        self.value == 1 << 16
    }

    /// Returns the next whole number for `times` its value.
    fn next(&mut self, times: u64) -> usize {
        let sum = self.value * times + self.left;
        self.left = sum & 0xffff;
        (sum >> 16) as usize
    }
}

/// Returns the job whose first sector the heads reach first. This is the inner loop of every simulation with a deep
/// queue: it selects without branches, since a branch predictor guesses the nearest job no better than chance.
fn shortest_positioning(targets: &[Target], media: &Media, arm: ArmState) -> usize {
    let mut best = 0;
    let mut best_ns = u64::MAX;
    for (at, target) in targets.iter().enumerate() {
        let position = media.position_ns(arm.head, target.cylinder, target.head, target.write);
        let total = position + media.spindle.wait_ns(arm.start_ns + position, target.angle);
        (best, best_ns) = if total < best_ns { (at, total) } else { (best, best_ns) };
    }
    best
}
