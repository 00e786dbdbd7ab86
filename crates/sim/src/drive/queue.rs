//! Jobs that wait for the arm, and the choice of the next one.

use super::description::{Policy, Queue};
use super::geometry::{Angle, Extent};
use super::internal_access::InternalAccess;
use super::media::{Head, Media};

/// What the scheduler looks at: where a job begins.
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
    /// Write settling applies.
    write: bool,
}

/// What is to be done there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// A read or a write-through write of the host.
    Host(HostJob),
    /// A dirty extent of the write cache, by slot.
    Destage(u32),
    /// The drive's own.
    InternalAccess(InternalAccess),
}

/// A host command that needs the media.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostJob {
    /// The host's name for the command.
    pub id: u32,
    /// It is a write.
    pub write: bool,
    /// First block (physical sector) that the media must deliver or take.
    pub block: u64,
    /// Sectors from there.
    pub sectors: u32,
    /// Sectors before `block` that were in the buffer when the command came.
    pub buffered: u32,
    /// Starts or ends inside a physical sector.
    pub partial: bool,
    /// Sequential to the write before it.
    pub sequential_write: bool,
    /// The command before it was a read.
    pub after_read: bool,
    /// Its firmware overhead.
    pub overhead_ns: u64,
    /// A write that may complete as soon as the write cache has room for it.
    pub cacheable: bool,
    /// The segment that it continues.
    pub segment: Option<usize>,
}

/// A job with what is known of its place.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    /// What to do.
    pub work: Work,
    /// First block.
    pub block: u64,
    /// Its first extent.
    pub extent: Extent,
    /// When it came.
    pub arrived_ns: u64,
    /// Everything before it is done first, everything after it later.
    pub ordered: bool,
}

impl Job {
    fn cacheable(&self) -> Option<HostJob> {
        match self.work {
            Work::Host(host) if host.cacheable => Some(host),
            _ => None,
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
        }
    }
}

/// The jobs, their targets in order of arrival and apart, so that a scan touches little memory.
#[derive(Clone, Debug)]
pub struct ArmQueue {
    targets: Vec<Target>,
    slots: Vec<Option<Job>>,
    free: Vec<u32>,
    policy: Policy,
    ageing_ns: u64,
    /// Reordering strength, 2^16 to the whole.
    strength: u64,
    ordered: u32,
    cacheable: u32,
    upwards: bool,
}

impl ArmQueue {
    /// An empty queue with room for `capacity` jobs.
    pub fn new(queue: &Queue, capacity: usize) -> Self {
        ArmQueue {
            targets: Vec::with_capacity(capacity),
            slots: Vec::with_capacity(capacity),
            free: Vec::with_capacity(capacity),
            policy: queue.policy,
            ageing_ns: queue.ageing_ns.unwrap_or(u64::MAX),
            strength: (queue.reordering_strength * 65536.0).round() as u64,
            ordered: 0,
            cacheable: 0,
            upwards: true,
        }
    }

    /// Nothing waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// Jobs that wait.
    pub fn len(&self) -> usize {
        self.targets.len()
    }

    /// An ordered command waits.
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

    /// A dirty extent grew: it may begin elsewhere now.
    pub fn replace_destage(&mut self, dirty: u32, block: u64, extent: Extent) {
        let work = Work::Destage(dirty);
        if let Some(at) = (0..self.targets.len()).find(|&at| self.job(at).work == work) {
            let slot = self.targets[at].slot;
            let job = Job { block, extent, ..*self.job(at) };
            self.targets[at] = job.target(slot);
            self.slots[slot as usize] = Some(job);
        }
    }

    /// The internal access of that name, if it waits.
    pub fn waiting_internal_access(&mut self, id: u32) -> Option<&mut InternalAccess> {
        self.slots.iter_mut().flatten().find_map(|job| match &mut job.work {
            Work::InternalAccess(access) if access.id == id => Some(access),
            _ => None,
        })
    }

    /// The oldest write that waits for room in the write cache.
    pub fn oldest_cacheable(&self) -> Option<(usize, u64, HostJob)> {
        if self.cacheable == 0 {
            return None;
        }
        (0..self.targets.len()).find_map(|at| {
            let job = self.job(at);
            job.cacheable().map(|host| (at, job.arrived_ns, host))
        })
    }

    /// The write at place `at` is in the write cache now: it keeps its place as the destage of `dirty`, or leaves the
    /// queue where it joined another.
    pub fn cached(&mut self, at: usize, dirty: Option<u32>) {
        let slot = self.targets[at].slot;
        let job = Job { ..*self.job(at) };
        self.cacheable -= 1;
        match dirty {
            Some(dirty) => self.slots[slot as usize] = Some(Job { work: Work::Destage(dirty), ..job }),
            None => {
                self.ordered -= u32::from(job.ordered);
                self.targets.remove(at);
                self.slots[slot as usize] = None;
                self.free.push(slot);
            }
        }
    }

    /// Forgets every job.
    pub fn clear(&mut self) {
        self.targets.clear();
        self.slots.clear();
        self.free.clear();
        (self.ordered, self.cacheable) = (0, 0);
    }

    /// Takes out the next job. `continues` is the block under the heads now, `start_ns` when the arm could begin to
    /// move for any other.
    #[inline]
    pub fn take(&mut self, media: &Media, head: Head, continues: u64, now_ns: u64, start_ns: u64) -> Job {
        let at = if self.targets.len() == 1 { 0 } else { self.choose(media, head, continues, now_ns, start_ns) };
        let target = self.targets.remove(at);
        let job = self.slots[target.slot as usize].take().expect("targets name occupied slots");
        self.free.push(target.slot);
        self.ordered -= u32::from(job.ordered);
        self.cacheable -= u32::from(job.cacheable().is_some());
        if self.policy == Policy::Look && target.cylinder != head.cylinder {
            self.upwards = target.cylinder > head.cylinder;
        }
        job
    }

    fn job(&self, at: usize) -> &Job {
        self.slots[self.targets[at].slot as usize].as_ref().expect("targets name occupied slots")
    }

    fn choose(&self, media: &Media, head: Head, continues: u64, now_ns: u64, start_ns: u64) -> usize {
        let aged = self.ageing_ns != u64::MAX && now_ns.saturating_sub(self.job(0).arrived_ns) > self.ageing_ns;
        if self.policy == Policy::Fcfs || aged {
            return 0;
        }
        let open = &self.targets[..self.window()];
        // What the heads can go on with costs nothing: no overhead, no seek, no latency.
        if let Some(at) = open.iter().position(|target| target.block == continues) {
            return at;
        }
        let numbered = open.iter().enumerate();
        let best = match self.policy {
            Policy::Fcfs => Some(0),
            Policy::Sstf => numbered.min_by_key(|(_, t)| t.cylinder.abs_diff(head.cylinder)).map(|(at, _)| at),
            Policy::Sptf => Some(shortest_positioning(open, media, head, start_ns)),
            Policy::CLook => numbered.min_by_key(|(_, t)| (t.block < continues, t.block)).map(|(at, _)| at),
            Policy::Look => {
                let up = numbered.clone().filter(|(_, t)| t.block >= continues).min_by_key(|(_, t)| t.block);
                let down = numbered.filter(|(_, t)| t.block < continues).max_by_key(|(_, t)| t.block);
                if self.upwards { up.or(down) } else { down.or(up) }.map(|(at, _)| at)
            }
        };
        best.unwrap_or(0)
    }

    /// Jobs that the policy may choose from: the oldest, as many as the reordering strength gives, up to an ordered one.
    fn window(&self) -> usize {
        let waiting = self.targets.len();
        let earned = ((self.strength * waiting as u64 + (1 << 15)) >> 16) as usize;
        let mut window = earned.clamp(1, waiting);
        if self.ordered > 0 {
            let first = (0..waiting).position(|at| self.job(at).ordered).unwrap_or(waiting);
            window = window.min(first.max(1));
        }
        window
    }
}

/// The job whose first sector the heads reach first. The inner loop of every simulation of a deep queue: it decides by
/// selection, since a processor guesses no better than chance which job is the nearest so far.
fn shortest_positioning(targets: &[Target], media: &Media, head: Head, start_ns: u64) -> usize {
    let mut best = 0;
    let mut best_ns = u64::MAX;
    for (at, target) in targets.iter().enumerate() {
        let position = media.position_ns(head, target.cylinder, target.head, target.write);
        let total = position + media.spindle.wait_ns(start_ns + position, target.angle);
        (best, best_ns) = if total < best_ns { (at, total) } else { (best, best_ns) };
    }
    best
}
