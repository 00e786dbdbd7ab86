//! [`System`]: the target of a run: one device, an array, or a stack of layers over such systems.

mod stack;
mod stack_outside;

use headstack_result::Levels;
use headstack_workload::{Kind, Request, Span};

use crate::adapter::Adapter;
use crate::array::{Array, GroupStatus};
use crate::description::array::IncidentKind;
use crate::description::device::DeviceDescription;
use crate::description::drive::Policy;
use crate::description::system::SystemDescription;
use crate::device::{Device, Traffic};
use crate::drive::Completion;
use crate::error::InvalidDescription;
use crate::error::SimError;
use crate::gauges::{DeviceHealth, Gauges, GroupHealth};
use crate::host::Host;
use crate::link::Upstream;
use crate::media_defects::Failure;
use crate::media_defects::MediaDefect;
use crate::pending_requests::Failed;
use crate::repair::{Filling, Repair, RepairKind};
use crate::snapshot::Snapshot;
use crate::spans::common_with_all;
use crate::stack::{Layer, Orders};
use crate::stripes::StripeWrite;

impl SystemDescription {
    /// Rejects impossible descriptions.
    ///
    /// # Errors
    /// The first impossible value.
    pub fn check(&self) -> Result<(), InvalidDescription> {
        match self {
            SystemDescription::Drive(device) => device.check(),
            SystemDescription::Array(array) => crate::array::check(array),
            SystemDescription::Stack(stack) => {
                stack.below.iter().try_for_each(SystemDescription::check)?;
                stack.check_layer()
            }
        }
    }
}

/// A system in virtual time.
#[derive(Clone, Debug)]
pub enum System {
    /// A single device and the host's queue in front of it.
    Drive(Single),
    /// An array.
    Array(Box<Array>),
    /// A layer of software or network over other systems.
    Stack(Box<Stack>),
}

impl System {
    /// Creates an idle system.
    ///
    /// # Errors
    /// The first impossible value in the description.
    pub fn new(description: &SystemDescription, seed: u64) -> Result<System, SimError> {
        Ok(match description {
            SystemDescription::Drive(device) => System::Drive(Single::new(device, seed)?),
            SystemDescription::Array(array) => System::Array(Box::new(Array::new(array, seed)?)),
            SystemDescription::Stack(stack) => System::Stack(Box::new(Stack::new(stack, seed)?)),
        })
    }

    /// Takes a request at `now_ns`; returns false if it waits in the host for a tag. The caller has processed every
    /// event up to `now_ns` and gives requests in flight different `id`s.
    #[inline]
    pub fn submit(&mut self, now_ns: u64, id: u32, request: &Request) -> bool {
        match self {
            System::Drive(single) => single.submit(now_ns, id, request),
            System::Array(array) => {
                array.submit(now_ns, id, request);
                true
            }
            System::Stack(stack) => {
                stack.submit(now_ns, id, request);
                true
            }
        }
    }

    /// Takes a repair of blocks, which completes like a request. A system without copies that it knows of is only read.
    pub(crate) fn repair(&mut self, now_ns: u64, id: u32, repair: &Repair) {
        match self {
            System::Array(array) => array.repair(now_ns, id, repair),
            System::Drive(_) | System::Stack(_) => {
                debug_assert!(repair.kind == RepairKind::Verify, "only an array has members to restore");
                let Repair { offset_bytes, length_bytes, .. } = *repair;
                let read =
                    Request { kind: Kind::Read, offset_bytes, length_bytes, force_unit_access: false, ordered: false };
                self.submit(now_ns, id, &read);
            }
        }
    }

    /// Writes stripes of an array; it answers as to a request.
    pub(crate) fn write_stripes(&mut self, now_ns: u64, id: u32, stripes: &StripeWrite) {
        match self {
            System::Array(array) => array.write_stripes(now_ns, id, stripes),
            System::Drive(_) | System::Stack(_) => unreachable!("only an array has stripes"),
        }
    }

    /// Returns the members that the layer above fills, if they have changed since the last call.
    pub(crate) fn take_fillings(&mut self) -> Option<Vec<Filling>> {
        match self {
            System::Array(array) => array.take_fillings(),
            System::Drive(_) | System::Stack(_) => None,
        }
    }

    /// Takes the report of the layer above that it has filled the member of a group.
    pub(crate) fn end_filling(&mut self, now_ns: u64, group: u32) {
        match self {
            System::Array(array) => array.end_filling(now_ns, group),
            System::Drive(_) | System::Stack(_) => {}
        }
    }

    /// Adds a past request to its caches, in no time.
    pub fn warm_with(&mut self, request: &Request) {
        match self {
            System::Drive(single) => single.device.warm_with(request),
            System::Array(array) => array.warm_with(request),
            System::Stack(stack) => stack.warm_with(request),
        }
    }

    /// Returns the dirty pages of its write-back cache as a share of the pages that may be dirty; `None` without such a
    /// cache.
    pub fn dirty_share(&self) -> Option<f64> {
        match self {
            System::Drive(_) => None,
            System::Array(array) => array.dirty_share(),
            System::Stack(stack) => stack.base().dirty_share(),
        }
    }

    /// Cleans its cache, in no time, until at most `share` is dirty; later past requests keep to that share.
    pub fn leave_dirty(&mut self, share: f64) {
        match self {
            System::Drive(_) => {}
            System::Array(array) => array.leave_dirty(share),
            System::Stack(stack) => stack.leave_dirty(share),
        }
    }

    /// Returns the number of pages of its cache that its members do not have yet.
    pub fn dirty_pages(&self) -> u32 {
        match self {
            System::Drive(_) => 0,
            System::Array(array) => array.dirty_pages(),
            System::Stack(stack) => stack.base().dirty_pages(),
        }
    }

    /// Returns its fill levels, such as that of a cache.
    pub fn levels(&self) -> Levels {
        match self {
            System::Drive(single) => single.device.levels(),
            System::Array(array) => array.levels(),
            System::Stack(stack) => stack.levels(),
        }
    }

    /// Returns the time of the next event; `u64::MAX` if there is none.
    #[inline]
    pub fn next_event_ns(&self) -> u64 {
        match self {
            System::Drive(single) => single.next_event_ns(),
            System::Array(array) => array.next_event_ns(),
            System::Stack(stack) => stack.next_event_ns(),
        }
    }

    /// Processes every event up to `now_ns`, and appends completions in order of time.
    #[inline]
    pub fn advance(&mut self, now_ns: u64, done: &mut Vec<Completion>) {
        match self {
            System::Drive(single) => single.advance(now_ns, done),
            System::Array(array) => array.advance(now_ns, done),
            System::Stack(stack) => stack.advance(now_ns, done),
        }
    }

    /// Processes the next events up to the first that completes a request, and appends the completions; an array stops
    /// after each event. The next event is at or before `limit_ns`. Returns when it stopped.
    #[inline]
    pub fn advance_to_completions(&mut self, limit_ns: u64, done: &mut Vec<Completion>) -> u64 {
        match self {
            System::Drive(single) => single.advance_to_completions(limit_ns, done),
            System::Array(array) => {
                let now_ns = array.next_event_ns();
                array.advance(now_ns, done);
                now_ns
            }
            System::Stack(stack) => stack.advance_to_completions(limit_ns, done),
        }
    }

    /// Returns its counters.
    pub fn snapshot(&self) -> Snapshot {
        let mut snapshot = Snapshot::default();
        match self {
            System::Drive(single) => single.device.snapshot("", &mut snapshot),
            System::Array(array) => array.snapshot(&mut snapshot),
            System::Stack(stack) => stack.snapshot(&mut snapshot),
        }
        snapshot
    }

    /// Replaces the media defects of a device: the drive itself (`member` none or 0), or a member of an array. `seed`
    /// is that of the draws of their shares. Sectors that were remapped to spares stay there.
    ///
    /// # Errors
    /// No such member; a span outside it; a share that is not between 0 and 1.
    pub fn set_media_defects(
        &mut self,
        member: Option<u32>,
        media_defects: Vec<MediaDefect>,
        seed: u64,
    ) -> Result<(), SimError> {
        let device = self.device_mut(member)?;
        if !device.has_media() && !media_defects.is_empty() {
            return Err(SimError::Fault("media defects: a volume has no media; a drive is allowed".to_owned()));
        }
        check_media_defects(&media_defects, device.capacity_bytes())?;
        device.set_media_defects(&media_defects, seed);
        Ok(())
    }

    /// Switches the write cache of a drive on or off, as `hdparm -W` does; its contents are written to the media all
    /// the same.
    ///
    /// # Errors
    /// If there is no such member, or the system is a volume, which has no write cache.
    pub fn set_write_cache(&mut self, member: Option<u32>, on: bool) -> Result<(), SimError> {
        self.device_mut(member)?.set_write_cache(on)
    }

    /// Appends the requests that completed in error since the last call, in order of completion.
    pub fn take_failed(&mut self, into: &mut Vec<Failed>) {
        match self {
            System::Drive(single) => into.append(&mut single.failed),
            System::Array(array) => array.take_failed(into),
            System::Stack(stack) => stack.take_failed(into),
        }
    }

    /// Applies an incident to the array at `now_ns`, up to which every event has been processed.
    ///
    /// # Errors
    /// An incident that cannot happen to the system.
    pub fn strike(&mut self, now_ns: u64, incident: IncidentKind) -> Result<(), SimError> {
        match self {
            System::Drive(_) => Err(SimError::Fault("a single drive has no members and no battery".to_owned())),
            System::Array(array) => array.strike(now_ns, incident),
            System::Stack(stack) => stack.strike(now_ns, incident),
        }
    }

    /// Appends the parts of `spans`, which are ascending and disjoint, whose newest data would be lost by a power cut
    /// at `now_ns`, because they are only in a volatile cache. The result is ascending and disjoint too, in whole
    /// sectors of the media. Data of a write in flight may be among them.
    pub fn volatile(&self, now_ns: u64, spans: &[Span], into: &mut Vec<Span>) {
        match self {
            System::Drive(single) => {
                let (Some(first), Some(last)) = (spans.first(), spans.last()) else { return };
                let length_bytes = last.start_bytes + last.length_bytes - first.start_bytes;
                let mut held = Vec::new();
                single.device.volatile(Span { start_bytes: first.start_bytes, length_bytes }, &mut held);
                for span in held {
                    common_with_all(spans, span.start_bytes, span.start_bytes + span.length_bytes, into);
                }
            }
            System::Array(array) => array.volatile(spans, into),
            System::Stack(stack) => stack.volatile(now_ns, spans, into),
        }
    }

    /// Returns the group and the slot that a member of an array serves, if it serves one.
    pub fn slot_of(&self, member: u32) -> Option<(u32, u32)> {
        match self {
            System::Drive(_) => None,
            System::Array(array) => array.slot_of(member),
            System::Stack(stack) => stack.with_owner(member, System::slot_of).flatten(),
        }
    }

    /// Returns the health of an array's groups.
    pub fn group_states(&self) -> Vec<GroupHealth> {
        match self {
            System::Drive(_) => Vec::new(),
            System::Array(array) => array.group_states(),
            System::Stack(stack) => stack.group_states(),
        }
    }

    /// Whether a slot of a group holds all its data.
    pub fn is_whole(&self, place: (u32, u32)) -> bool {
        match self {
            System::Drive(_) => true,
            System::Array(array) => array.is_whole(place),
            System::Stack(stack) => stack.base().is_whole(place),
        }
    }

    /// Whether a request reads, or has to write, data of a slot of a group that does not hold them now.
    pub fn misses(&self, place: (u32, u32), request: &Request) -> bool {
        match self {
            System::Drive(_) => false,
            System::Array(array) => array.misses(place, request),
            System::Stack(stack) => stack.misses(place, request),
        }
    }

    /// Whether a cache of it can hold acknowledged data that a power cut loses, now or once a battery is empty.
    pub fn may_lose_data(&self) -> bool {
        match self {
            System::Drive(single) => single.device.caches_writes(),
            System::Array(array) => array.may_lose_data(),
            System::Stack(stack) => stack.may_lose_data(),
        }
    }

    /// Returns the aligned bytes that a write changes as a whole, even if power fails meanwhile; `None` if only sectors
    /// are, as on drives and arrays.
    pub fn atomic_bytes(&self) -> Option<u64> {
        match self {
            System::Drive(_) | System::Array(_) => None,
            System::Stack(stack) => stack.atomic_bytes(),
        }
    }

    /// Returns the end of the physical unit within which a torn write can stop: the track that holds the byte, the page
    /// in an SSD, the chunk in a striped array.
    pub fn tear_bound(&self, at_bytes: u64) -> u64 {
        match self {
            System::Drive(single) => single.device.tear_bound(at_bytes),
            System::Array(array) => array.tear_bound(at_bytes),
            System::Stack(stack) => stack.tear_bound(at_bytes),
        }
    }

    /// Returns why a member of an array holds nothing that could be damaged on its own; `None` if it does.
    pub fn holds_nothing(&self, member: u32) -> Option<String> {
        match self {
            System::Drive(_) => Some("a single drive has no members".to_owned()),
            System::Array(array) => array.holds_nothing(member),
            System::Stack(stack) => stack.with_owner(member, System::holds_nothing).flatten(),
        }
    }

    /// Handles a power loss at `now_ns`, up to which every event has been processed.
    pub fn power_fails(&mut self, now_ns: u64) {
        match self {
            System::Drive(_) => {}
            System::Array(array) => array.power_fails(now_ns),
            System::Stack(stack) => stack.power_fails(now_ns),
        }
    }

    /// Whether a write interrupted by a power cut can be on some members of an array and not on others. Below layers that
    /// move data, the contents of members are not modelled.
    pub fn leaves_halves(&self) -> bool {
        match self {
            System::Drive(_) => false,
            System::Array(array) => array.leaves_halves(),
            System::Stack(stack) => stack.leaves_halves(),
        }
    }

    /// Returns the standing of an array's groups; `None` if nothing has changed since `seen`, which is updated.
    pub fn standings(&self, seen: &mut u64) -> Option<Vec<GroupStatus>> {
        match self {
            System::Drive(_) => None,
            System::Array(array) => array.standings(seen),
            System::Stack(stack) => stack.standings(seen),
        }
    }

    /// Handles a power cycle whose power is back at `now_ns`, up to which every event has been processed: queues and
    /// volatile caches are empty, outstanding requests are gone without a completion. Data on the media stay, and so do
    /// the maps of flash, media caches and pools, failed members, media defects, spares and counters. A disk is ready
    /// once its spindle turns, if its description states how long that takes.
    pub fn power_cycle(&mut self, now_ns: u64) {
        match self {
            System::Drive(single) => single.power_cycle(now_ns),
            System::Array(array) => array.power_cycle(now_ns),
            System::Stack(stack) => stack.power_cycle(now_ns),
        }
    }

    /// Returns its activity, for display.
    pub fn gauges(&self, now_ns: u64) -> Gauges {
        match self {
            System::Drive(single) => Gauges {
                outstanding: single.host.outstanding(),
                devices: vec![single.device.gauge(now_ns)],
                cache: None,
                groups: Vec::new(),
            },
            System::Array(array) => array.gauges(now_ns),
            System::Stack(stack) => stack.gauges(now_ns),
        }
    }

    /// Appends the source values of each device's SMART counters.
    pub fn device_health(&self, into: &mut Vec<DeviceHealth>) {
        match self {
            System::Drive(single) => {
                into.push(single.device.health("", &single.traffic, single.power_cycles, false));
            }
            System::Array(array) => array.device_health(into),
            System::Stack(stack) => stack.device_health(into),
        }
    }

    /// Returns the number of its devices.
    pub fn devices(&self) -> usize {
        match self {
            System::Drive(_) => 1,
            System::Array(array) => array.members(),
            System::Stack(stack) => stack.devices(),
        }
    }

    pub(crate) fn device_mut(&mut self, member: Option<u32>) -> Result<&mut Device, SimError> {
        match self {
            System::Drive(single) => {
                check_member(member, 1)?;
                Ok(&mut single.device)
            }
            System::Array(array) => {
                let member = check_member(member, array.members())?;
                Ok(array.member_mut(member))
            }
            System::Stack(stack) => stack.device_mut(member.unwrap_or(0)),
        }
    }

    /// Returns the data loss that ended it: one beyond what redundancy could restore.
    pub fn data_loss(&self) -> Option<&str> {
        match self {
            System::Drive(_) => None,
            System::Array(array) => array.data_loss(),
            System::Stack(stack) => stack.data_loss(),
        }
    }
}

/// A layer over systems, in virtual time.
#[derive(Clone, Debug)]
pub struct Stack {
    layer: Layer,
    below: Vec<System>,
    /// Name of each system below, as in counters; empty for the first.
    port_names: Vec<String>,
    /// Name of the systems below that are parts of one kind, whose counters are summed.
    part_names: Vec<Option<&'static str>>,
    /// Time of the next event of each system below.
    next_ns: Vec<u64>,
    orders: Orders,
    /// Completions of a system below, while the layer processes them.
    returned: Vec<Completion>,
    returned_failed: Vec<Failed>,
    /// Answers that are due at once, because the layer gave them while it took a request.
    immediate: Vec<Completion>,
    failed: Vec<Failed>,
    capacity_bytes: u64,
    /// Whether each byte lies at its own address in the first system below.
    keeps_addresses: bool,
    /// Requests from above without an answer.
    outstanding: u32,
}

/// A single device, with the host's tag limit and elevator in front of it, and its adapter if one is described.
#[derive(Clone, Debug)]
pub struct Single {
    device: Device,
    host: Host,
    adapter: Option<Box<Adapter>>,
    /// Requests that wait in the host, by id.
    waiting: Vec<Request>,
    failed: Vec<Failed>,
    traffic: Traffic,
    power_cycles: u32,
}

impl Single {
    fn new(description: &DeviceDescription, seed: u64) -> Result<Single, SimError> {
        let adapter = description.host();
        let elevator = match description {
            DeviceDescription::Disk(drive) => drive.interface.host_elevator,
            DeviceDescription::Ssd(_) => adapter.map_or(Policy::Fcfs, |adapter| adapter.elevator),
            DeviceDescription::Volume(_) => Policy::Fcfs,
        };
        let tags = adapter.map_or(u32::MAX, |adapter| adapter.tags).min(description.tags());
        description.check()?;
        Ok(Single {
            device: Device::new(description, seed)?,
            host: Host::new(tags, elevator),
            adapter: adapter.map(|adapter| Box::new(Adapter::new(*adapter))),
            waiting: Vec::new(),
            failed: Vec::new(),
            traffic: Traffic::default(),
            power_cycles: 1,
        })
    }

    #[inline]
    fn next_event_ns(&self) -> u64 {
        match &self.adapter {
            None => self.device.next_event_ns(),
            Some(adapter) => self.device.next_event_ns().min(adapter.next_event_ns()),
        }
    }

    #[inline]
    fn submit(&mut self, now_ns: u64, id: u32, request: &Request) -> bool {
        debug_assert!(self.next_event_ns() >= now_ns, "earlier events are processed before a request");
        self.traffic.count(request);
        let admitted = self.host.admit(id, request.offset_bytes);
        if admitted {
            self.hand_over(now_ns, id, request);
        } else {
            self.keep(id, request);
        }
        admitted
    }

    /// Sends a request with a tag to the device, through the adapter.
    #[inline]
    fn hand_over(&mut self, now_ns: u64, id: u32, request: &Request) {
        match &mut self.adapter {
            None => self.device.submit(&mut Upstream::none(), now_ns, id, request),
            Some(adapter) => adapter.take(now_ns, id, request),
        }
    }

    #[cold]
    fn keep(&mut self, id: u32, request: &Request) {
        if self.waiting.len() <= id as usize {
            self.waiting.resize(id as usize + 1, *request);
        }
        self.waiting[id as usize] = *request;
    }

    #[inline]
    fn advance(&mut self, now_ns: u64, done: &mut Vec<Completion>) {
        if self.adapter.is_some() {
            return self.advance_behind_adapter(now_ns, done);
        }
        let first = done.len();
        self.device.advance(&mut Upstream::none(), now_ns, |completion| done.push(completion));
        if self.device.has_failures() {
            self.note_failed(&done[first..]);
        }
        for completion in &done[first..] {
            self.give_tag(completion.at_ns);
        }
        debug_assert!(self.next_event_ns() < u64::MAX || self.is_clear(), "no event is scheduled, but requests wait");
    }

    /// Whether no request is in flight: the state after the last event.
    fn is_clear(&self) -> bool {
        self.host.outstanding() == 0 && self.adapter.as_deref().is_none_or(Adapter::is_idle)
    }

    /// Advances event by event, since the adapter's events are between those of the device.
    #[inline(never)]
    fn advance_behind_adapter(&mut self, now_ns: u64, done: &mut Vec<Completion>) {
        loop {
            let at_ns = self.next_event_ns();
            if at_ns > now_ns {
                debug_assert!(at_ns < u64::MAX || self.is_clear(), "no event is scheduled, but requests wait");
                return;
            }
            let mut completed = Vec::new();
            self.device.advance(&mut Upstream::none(), at_ns, |completion| completed.push(completion));
            if self.device.has_failures() {
                self.note_failed(&completed);
            }
            let adapter = self.adapter.as_mut().expect("the caller has looked");
            completed.into_iter().for_each(|completion| adapter.complete(completion));
            while let Some((at_ns, id, request)) = adapter.deliver(at_ns) {
                self.device.submit(&mut Upstream::none(), at_ns, id, &request);
            }
            while let Some(completion) = self.adapter.as_mut().and_then(|adapter| adapter.report(at_ns)) {
                done.push(completion);
                self.give_tag(completion.at_ns);
            }
        }
    }

    /// Releases the tag of a command that has left the device: the next request by the elevator's policy takes it.
    #[inline]
    fn give_tag(&mut self, now_ns: u64) {
        if let Some(next) = self.host.release() {
            let request = self.waiting[next as usize];
            self.hand_over(now_ns, next, &request);
        }
    }

    #[inline]
    fn advance_to_completions(&mut self, limit_ns: u64, done: &mut Vec<Completion>) -> u64 {
        loop {
            let now_ns = self.next_event_ns();
            self.advance(now_ns, done);
            let next_ns = self.next_event_ns();
            debug_assert!(next_ns >= now_ns, "time does not go back: {next_ns} after {now_ns}");
            if !done.is_empty() || next_ns > limit_ns || next_ns == u64::MAX {
                return now_ns;
            }
        }
    }

    #[cold]
    fn note_failed(&mut self, done: &[Completion]) {
        for completion in done {
            if let Some(failure) = self.device.take_failure(completion.id) {
                let Failure { id, from_bytes, write, .. } = failure;
                self.failed.push(Failed { id, at_bytes: from_bytes, write });
            }
        }
    }

    fn power_cycle(&mut self, now_ns: u64) {
        self.device.power_cycle(now_ns);
        self.host.reset();
        if let Some(adapter) = &mut self.adapter {
            adapter.reset();
        }
        self.failed.clear();
        self.power_cycles += 1;
    }
}

/// Returns the member; the first if none is named.
fn check_member(member: Option<u32>, count: usize) -> Result<u32, SimError> {
    let member = member.unwrap_or(0);
    if (member as usize) < count {
        Ok(member)
    } else {
        Err(SimError::Fault(format!("member {member}; 0 to {} are allowed", count - 1)))
    }
}

fn check_media_defects(media_defects: &[MediaDefect], capacity_bytes: u64) -> Result<(), SimError> {
    for (index, media_defect) in media_defects.iter().enumerate() {
        let Span { start_bytes, length_bytes } = media_defect.span;
        if length_bytes == 0 || start_bytes.checked_add(length_bytes).is_none_or(|end| end > capacity_bytes) {
            let text = format!(
                "{length_bytes} bytes from {start_bytes}; at least one byte within 0 to {capacity_bytes} is allowed"
            );
            return Err(SimError::Fault(format!("media defect {index}: {text}")));
        }
        if !(0.0..=1.0).contains(&media_defect.share) {
            return Err(SimError::Fault(format!(
                "media defect {index}: share {}; 0 to 1 are allowed",
                media_defect.share
            )));
        }
    }
    Ok(())
}
