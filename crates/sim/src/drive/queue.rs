//! [`ArmQueue`]: jobs that wait for the arm, and the scheduler that chooses the next job.

use super::geometry::{Angle, Extent};
use super::media::{Head, Media};
use crate::description::drive::{Policy, Queue};

/// Start position of a job, which the scheduler compares.
#[derive(Clone, Copy, Debug)]
struct Target {
    /// First block.
    block: u64,
    /// Cylinder of the first block.
    cylinder: u32,
    /// Surface of the first block.
    head: u32,
    /// Angle at which the first block starts.
    angle: Angle,
    /// Slot of the job.
    slot: u32,
    /// Whether the job is a write, which needs write settling.
    write: bool,
    /// Whether the job is a destage, for which no command waits.
    destage: bool,
}

/// The work of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// A host read or a write-through host write.
    Host(HostJob),
    /// A destage of the dirty extent in this slot of the write cache.
    Destage(u32),
    /// An internal access.
    InternalAccess(InternalAccess),
}

/// A host command that needs the media.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostJob {
    /// The host's id of the command.
    pub id: u32,
    /// Whether the command is a write.
    pub write: bool,
    /// First block (physical sector) that the media must read or write.
    pub block: u64,
    /// Number of sectors from `block` on.
    pub sectors: u32,
    /// Sectors before `block` that were in the buffer when the command arrived.
    pub buffered: u32,
    /// Whether the command starts or ends inside a physical sector.
    pub partial: bool,
    /// Whether the command continues the previous write.
    pub sequential_write: bool,
    /// Whether the previous command was a read.
    pub after_read: bool,
    /// Firmware overhead of the command, in ns.
    pub overhead_ns: u64,
    /// Whether the command is a write that may complete as soon as the write cache has room.
    pub cacheable: bool,
    /// Segment that the command continues, if any.
    pub segment: Option<usize>,
}

/// Background read or write of sectors, without a host command or a transfer over the port. The firmware has prepared
/// the access before the arm takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InternalAccess {
    /// Id under which the access completes.
    pub id: u32,
    /// Whether the access is a write.
    pub write: bool,
    /// First physical sector.
    pub block: u64,
    /// Number of sectors.
    pub sectors: u32,
    /// Time at which a write's data are in the buffer and the firmware is ready for the first sector.
    pub ready_ns: u64,
}

/// A job with its position on the media.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    /// Work for the arm.
    pub work: Work,
    /// First block.
    pub block: u64,
    /// First extent of the job.
    pub extent: Extent,
    /// Time of arrival.
    pub arrived_ns: u64,
    /// Whether the job is ordered: all earlier jobs are done before it, and all later ones after it.
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

/// State of the arm at the time when it can take a job.
#[derive(Clone, Copy, Debug)]
pub struct ArmState {
    /// Position of the heads.
    pub head: Head,
    /// Block under the heads.
    pub continues: u64,
    /// Time at which the arm could start to move to any other block.
    pub start_ns: u64,
}

/// Waiting jobs. Their targets are in a separate list, so that a scan touches little memory.
#[derive(Clone, Debug)]
pub struct ArmQueue {
    /// Planned jobs in order of service, followed by open jobs in order of arrival.
    targets: Vec<Target>,
    /// Number of targets in the plan.
    planned: usize,
    slots: Vec<Option<Job>>,
    free: Vec<u32>,
    policy: Policy,
    ageing_ns: u64,
    strength: Fraction,
    committed: Fraction,
    /// Whether the scheduler weighs only the positioning time.
    is_plain: bool,
    margin_ns: u64,
    /// Positioning time in ns that is worth [`AGE_UNIT`] ns of waiting.
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

    /// Whether no job is waiting.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// Returns the number of waiting jobs.
    pub fn len(&self) -> usize {
        self.targets.len()
    }

    /// Whether an ordered command is waiting.
    #[inline]
    pub fn has_ordered(&self) -> bool {
        self.ordered > 0
    }

    /// Adds a job to the open jobs.
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

    /// Updates the job of a dirty extent that grew, and may now start at another block.
    pub fn replace_destage(&mut self, dirty: u32, block: u64, extent: Extent) {
        let work = Work::Destage(dirty);
        if let Some(at) = (0..self.targets.len()).find(|&at| self.job(at).work == work) {
            let slot = self.targets[at].slot;
            let job = Job { block, extent, ..*self.job(at) };
            self.targets[at] = job.target(slot);
            self.slots[slot as usize] = Some(job);
        }
    }

    /// Returns internal access `id` if it is waiting.
    pub fn waiting_internal_access(&mut self, id: u32) -> Option<&mut InternalAccess> {
        self.slots.iter_mut().flatten().find_map(|job| match &mut job.work {
            Work::InternalAccess(access) => (access.id == id).then_some(access),
            Work::Host(_) | Work::Destage(_) => None,
        })
    }

    /// Returns the oldest write that waits for room in the write cache, with its index and arrival time.
    pub fn oldest_cacheable(&self) -> Option<(usize, u64, HostJob)> {
        if self.cacheable == 0 {
            return None;
        }
        (0..self.targets.len()).find_map(|at| {
            let job = self.job(at);
            job.cacheable().map(|host| (at, job.arrived_ns, host))
        })
    }

    /// Records that the write at index `at` is now in the write cache. The job becomes the destage of `dirty`, or
    /// leaves the queue if the write joined another extent.
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

    /// Drops all jobs.
    pub fn clear(&mut self) {
        self.targets.clear();
        self.slots.clear();
        self.free.clear();
        (self.ordered, self.cacheable, self.planned) = (0, 0, 0);
    }

    /// Removes and returns the next job at `now_ns`, and plans as many jobs after it as the firmware commits to.
    /// `overhead_ns` is the overhead of each job before the arm moves.
    #[inline]
    pub fn take(&mut self, media: &Media, arm: ArmState, now_ns: u64, overhead_ns: u64) -> Job {
        let at = if self.targets.len() == 1 {
            0
        } else if self.committed.is_zero() {
            self.choose(media, arm, now_ns)
        } else if let Some(at) = self.continuing_destage(arm) {
            at
        } else {
            self.plan(media, arm, now_ns, overhead_ns);
            0
        };
        self.planned -= usize::from(at < self.planned);
        let target = self.targets.remove(at);
        let job = self.slots[target.slot as usize].take().expect("the target's slot is occupied");
        self.free.push(target.slot);
        self.ordered -= u32::from(job.ordered);
        self.cacheable -= u32::from(job.cacheable().is_some());
        if self.policy == Policy::Look && target.cylinder != arm.head.cylinder {
            self.upwards = target.cylinder > arm.head.cylinder;
        }
        job
    }

    /// Returns the destage that continues at the heads. It comes before the plan of commands: an arm that writes in order
    /// does not leave the track.
    fn continuing_destage(&self, arm: ArmState) -> Option<usize> {
        if self.ordered > 0 {
            return None;
        }
        self.targets.iter().position(|target| target.destage && target.block == arm.continues)
    }

    /// Fills the plan with the job to take now and the following jobs that the firmware commits to. Each is chosen for
    /// the arm's position when its turn comes. Planned jobs keep their order.
    fn plan(&mut self, media: &Media, arm: ArmState, now_ns: u64, overhead_ns: u64) {
        let wanted = (self.committed.next(1) + 1).min(self.targets.len());
        let mut arm = (0..self.planned).fold(arm, |arm, at| self.after(media, arm, overhead_ns, at));
        while self.planned < wanted {
            let at = self.choose(media, arm, now_ns);
            debug_assert!(at >= self.planned, "planned jobs keep their place");
            self.targets[self.planned..=at].rotate_right(1);
            arm = self.after(media, arm, overhead_ns, self.planned);
            self.planned += 1;
        }
    }

    /// Returns the state of the arm after it has served the job at index `at`.
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
        self.slots[self.targets[at].slot as usize].as_ref().expect("the target's slot is occupied")
    }

    /// Returns the index of the open job that the policy prefers for this state of the arm.
    fn choose(&mut self, media: &Media, arm: ArmState, now_ns: u64) -> usize {
        let first = self.planned;
        let aged = self.ageing_ns != u64::MAX && now_ns.saturating_sub(self.job(first).arrived_ns) > self.ageing_ns;
        if self.policy == Policy::Fcfs || aged {
            return first;
        }
        let window = self.window();
        let open = &self.targets[first..first + window];
        // A job that continues at the heads needs no overhead, seek or rotational latency.
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

    /// Returns the number of open jobs that the policy may choose from, oldest first: the share set by the reordering
    /// strength, but not past an ordered job.
    fn window(&mut self) -> usize {
        let open = self.targets.len() - self.planned;
        let mut window = if self.strength.is_whole() { open } else { 1 + self.strength.next(open as u64 - 1) };
        if self.ordered > 0 {
            let first = (self.planned..self.targets.len()).position(|at| self.job(at).ordered).unwrap_or(open);
            window = window.min(first.max(1));
        }
        window
    }

    /// Returns the job with the lowest positioning cost, like [`shortest_positioning`], but adds a turn for a sector
    /// within the rotation margin and favors jobs by their age.
    fn shortest_weighed(&self, targets: &[Target], media: &Media, arm: ArmState, now_ns: u64) -> usize {
        let turn_ns = media.spindle.revolution_ns();
        let cost_ns = |target: &Target| {
            let position = media.position_ns(arm.head, target.cylinder, target.head, target.write);
            let wait = media.spindle.wait_ns(arm.start_ns + position, target.angle);
            let turn = if wait < self.margin_ns { turn_ns } else { 0 };
            let job = self.slots[target.slot as usize].as_ref().expect("the target's slot is occupied");
            let since_ns = if target.destage { now_ns } else { job.arrived_ns };
            let age_ns = now_ns.saturating_sub(since_ns).min(LONGEST_AGE_NS) as i64;
            (position + wait + turn) as i64 - ((age_ns * self.age_weight) >> AGE_UNIT.trailing_zeros())
        };
        let costs = targets.iter().map(cost_ns).enumerate();
        costs.min_by_key(|&(at, cost)| (cost, at)).map_or(0, |(at, _)| at)
    }
}

/// Unit of age, in ns, for weighing against positioning time.
const AGE_UNIT: u32 = 1 << 20;

/// Largest age that counts, 1000 s in ns, so that a weighted age fits in an `i64`.
const LONGEST_AGE_NS: u64 = 1_000_000_000_000;

/// A real number, approximated on average by a sequence of whole numbers.
#[derive(Clone, Copy, Debug)]
struct Fraction {
    /// Value in units of 2^-16.
    value: u64,
    /// Remainder carried to the next whole number.
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

    /// Returns the next whole number that approximates `times` the value.
    fn next(&mut self, times: u64) -> usize {
        let sum = self.value * times + self.left;
        self.left = sum & 0xffff;
        (sum >> 16) as usize
    }
}

/// Returns the job whose first sector the heads reach first. This is the inner loop of every simulation with a deep
/// queue. It avoids branches, because a branch predictor cannot guess the nearest job.
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
