//! The view of an [`Array`] from outside: members, health, volatile data and gauges.

use headstack_result::{LEVEL_NAMES, Levels};
use headstack_workload::{Kind, Span};

use super::health::{GroupState, SlotState};
use super::intent::Intent;
use super::levels::{Extent, Placing, Tear};
use super::pass::{GroupStatus, Pass};
use super::places::{Piece, PiecePlacement};
use super::state::{Array, Event};
use crate::device::Device;
use crate::gauges::{DeviceGauge, DeviceHealth, DeviceState, Gauges, GroupHealth, PassGauge};
use crate::pending_requests::Failed;
use crate::slab::Slab;
use crate::spans::{common, common_with_all, put_in_order};

impl Array {
    /// Returns the number of members, including spares.
    pub(crate) fn members(&self) -> usize {
        self.members.len()
    }

    /// Returns a member.
    pub(crate) fn member_mut(&mut self, member: u32) -> &mut Device {
        &mut self.members[member as usize]
    }

    /// Returns the fill levels of the array, such as that of its cache.
    pub(crate) fn levels(&self) -> Levels {
        let mut levels = [0; LEVEL_NAMES.len()];
        for member in &self.members {
            levels.iter_mut().zip(member.levels()).for_each(|(sum, level)| *sum += level);
        }
        if let Some(cache) = &self.cache {
            let (dirty, clean) = cache.held_bytes();
            levels[0] += dirty;
            levels[1] += clean;
        }
        levels[3] = self.pools.iter().flatten().map(|pool| pool.space().mirrored_bytes).sum();
        levels
    }

    /// Appends the requests that have failed since the last call.
    pub(crate) fn take_failed(&mut self, into: &mut Vec<Failed>) {
        into.append(&mut self.failed);
    }

    /// Returns the group and the slot of a member, if the member has a slot.
    pub(crate) fn slot_of(&self, member: u32) -> Option<(u32, u32)> {
        let slot = |state: &GroupState| state.slots.iter().position(|slot| slot.member == member);
        (0..).zip(&self.groups).find_map(|(group, state)| Some((group, slot(state)? as u32)))
    }

    /// Returns why a member has no contents that can be damaged separately; `None` if it has such contents.
    pub(crate) fn holds_nothing(&self, member: u32) -> Option<String> {
        let name = &self.description.members[member as usize].name;
        let Some(group) = self.groups.iter().position(|state| state.serves(member)) else {
            return Some(format!("{name} has no slot in a group; use an active member"));
        };
        let has_records = self.description.groups[group].level.rules().has_records;
        (has_records || self.pools[group].is_some()).then(|| {
            let table = &self.description.groups[group];
            let allowed = "use a member of a group without records and without a pool";
            format!("{name} of group {} has no individual contents; {allowed}", table.name)
        })
    }

    /// Whether a slot of a group holds all its data.
    pub(crate) fn is_whole(&self, (group, slot): (u32, u32)) -> bool {
        self.groups[group as usize].slots[slot as usize].state == SlotState::Whole
    }

    /// Returns the health of each group.
    pub(crate) fn group_states(&self) -> Vec<GroupHealth> {
        self.groups.iter().map(GroupState::state).collect()
    }

    /// Whether a power loss can lose acknowledged data, now or after the battery is empty.
    pub(crate) fn may_lose_data(&self) -> bool {
        self.cache.as_ref().is_some_and(|cache| cache.writes_back()) || self.members.iter().any(Device::caches_writes)
    }

    /// Appends, in ascending order, the parts of `spans` that are only in volatile caches. `spans` must be ascending.
    pub(crate) fn volatile(&self, spans: &[Span], into: &mut Vec<Span>) {
        let first = into.len();
        if let Some(cache) = &self.cache {
            cache.volatile(|from, to| common_with_all(spans, from, to, into));
        }
        let held_by = |member: &Device| {
            let mut spans = Vec::new();
            member.volatile(Span { start_bytes: 0, length_bytes: member.capacity_bytes() }, &mut spans);
            spans
        };
        let held: Vec<Vec<Span>> = self.members.iter().map(held_by).collect();
        if held.iter().any(|spans| !spans.is_empty()) {
            for span in spans {
                self.pieces(span.start_bytes, span.length_bytes, |piece| self.volatile_of(piece, &held, into));
            }
        }
        put_in_order(into, first);
    }

    /// Appends the volatile parts of a piece. Copied bytes are lost only if every copy is lost; bytes that must be
    /// reconstructed are lost if any source is lost.
    fn volatile_of(&self, piece: &Piece, held: &[Vec<Span>], into: &mut Vec<Span>) {
        let state = &self.groups[piece.group as usize];
        let runs = |extent: &Extent| -> Option<Vec<(u64, u64)>> {
            let member = state.member_for(extent, Kind::Read)?;
            let spans = &held[member as usize];
            let begin = spans.partition_point(|span| span.start_bytes + span.length_bytes <= extent.at_bytes);
            let inside = spans[begin..].iter().take_while(|span| span.start_bytes < extent.end_bytes());
            let place = Span { start_bytes: extent.at_bytes, length_bytes: extent.length_bytes };
            let parts = inside.filter_map(|span| common(place, span.start_bytes, span.start_bytes + span.length_bytes));
            let from = |span: &Span| span.start_bytes - extent.at_bytes;
            Some(parts.map(|span| (from(&span), from(&span) + span.length_bytes)).collect())
        };
        let lost = match piece.held {
            PiecePlacement::Copies(copies) => copies.iter().filter_map(runs).reduce(|one, other| in_both(&one, &other)),
            PiecePlacement::Row(extent) | PiecePlacement::Stripe(extent, ..) => runs(&extent).or_else(|| {
                let sources = self.recovery((piece.at_bytes, piece.length_bytes), piece.group, &extent)?;
                Some(sources.iter().filter_map(runs).flatten().collect())
            }),
        };
        let at = |(from, to): (u64, u64)| Span { start_bytes: piece.at_bytes + from, length_bytes: to - from };
        into.extend(lost.into_iter().flatten().map(at));
    }

    /// Returns the end of the chunk, pool segment, track or page that contains a byte.
    pub(crate) fn tear_bound(&self, at_bytes: u64) -> u64 {
        let lun = self.lun_bases.partition_point(|&base| base <= at_bytes) - 1;
        let lun = lun.min(self.description.luns.len() - 1);
        let place = &self.description.luns[lun];
        let offset = place.start_bytes + (at_bytes - self.lun_bases[lun]);
        let state = &self.groups[place.group as usize];
        let bound = match &self.pools[place.group as usize] {
            Some(pool) => (offset / pool.description().segment_bytes + 1) * pool.description().segment_bytes,
            None => match state.layout.tear(offset) {
                Tear::At(bound) => bound,
                Tear::OfMember { slot, base_bytes } => {
                    let member = self.description.groups[place.group as usize].members[slot as usize];
                    let bound = self.members[member as usize].tear_bound(offset - base_bytes);
                    base_bytes + bound.min(state.slot_bytes)
                }
            },
        };
        (at_bytes + (bound - offset)).min(self.lun_bases[lun + 1])
    }

    /// Handles a power cycle. Parity that the processors had still to compute is dropped.
    pub(crate) fn power_cycle(&mut self, now_ns: u64) {
        self.finish_migrations();
        (self.requests, self.operations, self.commands) = (Slab::default(), Slab::default(), Slab::default());
        (self.row_writes, self.row_locks) = (Slab::default(), Default::default());
        let tables = self.description.groups.iter();
        self.intents = tables.map(|group| group.bitmap.map(Intent::new)).collect();
        self.ppls = super::ppls(&self.description);
        self.events.retain(|event| matches!(event.0.2, Event::Incident(_)));
        self.links.iter_mut().for_each(|link| link.reset());
        self.held.iter_mut().for_each(|held| *held = Default::default());
        for at in 0..self.members.len() {
            self.ports[at].reset();
            self.members[at].power_cycle(now_ns);
            let next_ns = if self.missing[at] { u64::MAX } else { self.members[at].next_event_ns() };
            self.set_member_next(at, next_ns);
        }
        if let Some(cache) = &mut self.cache {
            cache.power_cycle();
        }
        self.done.clear();
        if let Some(adapter) = &mut self.adapter {
            adapter.reset();
        }
        self.failed.clear();
        (self.deferred, self.host_requests) = (None, 0);
        self.power_cycles += 1;
        (0..self.groups.len() as u32).for_each(|group| self.resume_rebuild(now_ns, group));
        self.resync(now_ns);
        self.destage(now_ns);
    }

    /// Returns which members serve which bytes of each group, with the last pass of the group. Returns `None` if
    /// nothing has changed since `seen`, and updates `seen`.
    pub(crate) fn standings(&self, seen: &mut u64) -> Option<Vec<GroupStatus>> {
        if std::mem::replace(seen, self.standing) == self.standing {
            return None;
        }
        let standing =
            |(state, pass): (&GroupState, &Option<Pass>)| GroupStatus { served: state.served(), pass: pass.clone() };
        Some(self.groups.iter().zip(&self.passes).map(standing).collect())
    }

    /// Returns the current activity of the array for display.
    pub(crate) fn gauges(&self, now_ns: u64) -> Gauges {
        let device = |at: usize| {
            let gauge = self.members[at].gauge(now_ns);
            let is_filled = self.groups.iter().any(|state| state.is_filling(at as u32));
            let state = if self.missing[at] {
                DeviceState::Missing
            } else if is_filled {
                DeviceState::Rebuilding
            } else {
                gauge.state
            };
            let queue = if self.missing[at] { 0 } else { self.ports[at].outstanding() as u32 };
            DeviceGauge { name: self.description.members[at].name.clone(), state, queue, ..gauge }
        };
        let groups = self.groups.iter().zip(&self.description.groups).enumerate();
        let groups = groups.map(|(number, (state, table))| {
            let of_group = self.lost.iter().filter(|lost| state.serves(lost.member));
            let lost_bytes = of_group.map(|lost| lost.to - lost.from).sum();
            let pass = self.passes[number].as_ref().map(|pass| PassGauge {
                kind: pass.kind,
                state: pass.state,
                done_bytes: pass.done_bytes(),
                of_bytes: pass.of_bytes(),
            });
            crate::gauges::GroupGauge { lost_bytes, pass, ..state.gauge(&table.name) }
        });
        Gauges {
            outstanding: self.host_requests as u32,
            devices: (0..self.members.len()).map(device).collect(),
            cache: self.cache.as_ref().map(|cache| cache.gauge()),
            groups: groups.collect(),
        }
    }

    /// Appends the values behind the SMART counters of each member.
    pub(crate) fn device_health(&self, into: &mut Vec<DeviceHealth>) {
        let members = self.members.iter().zip(&self.description.members).zip(&self.traffic).zip(&self.missing);
        into.extend(members.map(|(((device, member), traffic), &missing)| {
            device.health(&member.name, traffic, self.power_cycles, missing)
        }));
    }
}

/// Returns the intersection of two ascending lists of runs.
fn in_both(one: &[(u64, u64)], other: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let meet = |&(from, to): &(u64, u64)| {
        let common = other.iter().map(move |&(begin, end)| (begin.max(from), end.min(to)));
        common.filter(|(begin, end)| begin < end)
    };
    one.iter().flat_map(meet).collect()
}
