//! Operations on a virtual array: performs the accesses returned by the map of its [`Pool`].

use headstack_workload::Kind;

use super::levels::Extent;
use super::pool::{self, Effect, Migration, Placement, Pool};
use super::state::{Array, Event};
use super::under_way::{Owner, Relay, RelayEnd, request};
use crate::description::array::{ArrayDescription, Prefill};
use crate::error::InvalidDescription;

/// Creates the pools of an array's groups, with the prefill of the LUNs.
pub fn pools(description: &ArrayDescription) -> Result<Vec<Option<Pool>>, InvalidDescription> {
    let pool_of = |(group, table): (usize, &crate::description::array::Group)| {
        let Some(settings) = &table.pool else {
            return Ok(None);
        };
        let luns: Vec<_> = description.luns.iter().filter(|lun| lun.group as usize == group).collect();
        let lengths: Vec<u64> = luns.iter().map(|lun| lun.length_bytes).collect();
        let mut pool = Pool::new(settings, &lengths)?;
        let segments: Vec<u64> = lengths.iter().map(|length| length.div_ceil(settings.segment_bytes)).collect();
        for (lun, &count) in segments.iter().enumerate().filter(|(lun, _)| luns[*lun].prefill == Prefill::Serial) {
            for segment in 0..count {
                write_first(&mut pool, lun, segment)?;
            }
        }
        let longest = segments.iter().copied().max().unwrap_or(0);
        for segment in 0..longest {
            for (lun, &count) in segments.iter().enumerate() {
                if luns[lun].prefill == Prefill::Concurrent && segment < count {
                    write_first(&mut pool, lun, segment)?;
                }
            }
        }
        Ok(Some(pool))
    };
    description.groups.iter().enumerate().map(pool_of).collect()
}

fn write_first(pool: &mut Pool, lun: usize, segment: u64) -> Result<(), InvalidDescription> {
    match pool.write(lun as u32, segment as u32) {
        Ok(_) => Ok(()),
        Err(full) => Err(InvalidDescription { key: format!("luns[{lun}].prefill"), message: full.to_string() }),
    }
}

impl Array {
    /// Reads or writes a run of a LUN of a pool.
    pub(super) fn operate_pooled(
        &mut self,
        now_ns: u64,
        operation: u32,
        place: (u32, u32),
        write: bool,
        offset: u64,
        length: u64,
    ) {
        let (group, lun) = place;
        let pool = self.pools[group as usize].as_ref().expect("the group has a pool");
        let segment_bytes = pool.description().segment_bytes;
        let (mut at, end) = (offset, offset + length);
        while at < end {
            let (segment, within) = ((at / segment_bytes) as u32, at % segment_bytes);
            let bytes = (segment_bytes - within).min(end - at);
            if write {
                self.write_segment(now_ns, operation, (group, lun, segment), within, bytes);
            } else {
                self.read_segment(now_ns, operation, (group, lun, segment), within, bytes);
            }
            at += bytes;
        }
    }

    fn pool(&mut self, group: u32) -> &mut Pool {
        self.pools[group as usize].as_mut().expect("the group has a pool")
    }

    fn read_segment(&mut self, now_ns: u64, operation: u32, at: (u32, u32, u32), within: u64, bytes: u64) {
        let (group, lun, segment) = at;
        let part = |place: pool::Extent| part(place, within, bytes);
        match self.pool(group).place(lun, segment) {
            // The segment was never written, so the controller need not read anything.
            None => {}
            Some(Placement::Mirrored(copies)) => {
                if let Some(best) = self.best_copy(group, copies.into_iter().map(part)) {
                    self.command(now_ns, operation, group, Kind::Read, &best);
                }
            }
            Some(Placement::Parity { data, stripe }) => {
                let there = |extent: &Extent| self.groups[group as usize].member_for(extent, Kind::Read).is_some();
                let own = part(data);
                if there(&own) {
                    return self.command(now_ns, operation, group, Kind::Read, &own);
                }
                let needed = stripe.data().count();
                let others = stripe.others(data).chain(stripe.parity()).map(part).filter(there);
                let others: Vec<Extent> = others.take(needed).collect();
                self.counters.reconstruction_reads += others.len() as u64;
                others.iter().for_each(|extent| self.command(now_ns, operation, group, Kind::Read, extent));
            }
        }
    }

    fn write_segment(&mut self, now_ns: u64, operation: u32, at: (u32, u32, u32), within: u64, bytes: u64) {
        let (group, lun, segment) = at;
        let pool = self.pool(group);
        let segment_bytes = pool.description().segment_bytes;
        let allocation_ns = pool.description().allocation_ns;
        let written = match pool.write(lun, segment) {
            Ok(written) => written,
            Err(full) => {
                let name = &self.description.groups[group as usize].name;
                self.data_loss.get_or_insert_with(|| format!("group {name}: {full}"));
                return self.fail_segment(operation, at, within);
            }
        };
        let part = |place: pool::Extent| part(place, within, bytes);
        let whole = |place: pool::Extent| self::part(place, 0, segment_bytes);
        match (written.placement, written.effect) {
            (Placement::Mirrored(copies), Effect::Overwritten) => {
                for copy in copies {
                    self.command(now_ns, operation, group, Kind::Write, &part(copy));
                }
            }
            (Placement::Mirrored(copies), Effect::Allocated { moves }) => {
                self.counters.allocations += 1;
                moves.iter().for_each(|migration| self.make_room(now_ns, group, migration));
                let allocated_ns = self.processors.work(now_ns, allocation_ns);
                self.relay(now_ns, allocated_ns, operation, group, &[], copies.map(part).to_vec());
            }
            (Placement::Mirrored(copies), Effect::Promoted { from }) => {
                self.counters.promotions += 1;
                let Placement::Parity { data, .. } = from else {
                    unreachable!("only segments in a stripe are promoted");
                };
                let reads = if bytes < segment_bytes { vec![whole(data)] } else { vec![] };
                self.relay(now_ns, now_ns, operation, group, &reads, copies.map(whole).to_vec());
            }
            (Placement::Parity { data, stripe }, _) => {
                let [p, q] = stripe.parity();
                let places = [part(data), part(p), part(q)];
                self.counters.parity_reads += 3;
                self.counters.parity_writes += 2;
                self.relay(now_ns, now_ns, operation, group, &places, places.to_vec());
            }
        }
    }

    /// Fails an operation because a segment has no space.
    fn fail_segment(&mut self, operation: u32, (group, lun, segment): (u32, u32, u32), within: u64) {
        let segment_bytes = self.pool(group).description().segment_bytes;
        let luns = self.description.luns.iter().zip(&self.lun_bases).zip(&self.lun_numbers);
        let base = luns.filter(|&((place, _), &number)| place.group == group && number == lun);
        let base = base.map(|((place, &base), _)| base - place.start_bytes).next().unwrap_or(0);
        self.fail_operation(operation, base + u64::from(segment) * segment_bytes + within);
    }

    /// Handles bytes that a relay cannot read or write: the relay skips its writes, and the operation fails.
    pub(super) fn relay_failed(&mut self, number: u32, member: u32, bad: (u64, u64)) {
        let relay = self.relays.get_mut(number);
        match relay.then {
            RelayEnd::Operation(operation) => {
                // Report the destination of the data, unless the failed command was already a write.
                let wanted =
                    relay.writes.drain(..).next().map(|extent| (extent.slot, extent.at_bytes, extent.end_bytes()));
                let (slot, from, to) = wanted.unwrap_or_else(|| {
                    let slot = self.groups[relay.group as usize].slot_at(member, bad.0);
                    (slot, bad.0, bad.1)
                });
                self.fail_part(operation, slot, (from, to));
            }
            // The other columns or copies were read as well, and a write that fails marks its bytes as lost.
            RelayEnd::Restore { .. } => {}
            // The other copy or the stripe still has the data; reading them from there is not modelled.
            RelayEnd::Migration(_) => {}
        }
    }

    /// Completes migrations that a power loss interrupted: their segments move to their destinations.
    pub(super) fn finish_migrations(&mut self) {
        let numbers: Vec<u32> = self.relays.iter().map(|(number, _)| number).collect();
        for number in numbers {
            let relay = self.relays.remove(number);
            if let RelayEnd::Migration(migration) = relay.then {
                self.pool(relay.group).complete(&migration);
            }
        }
    }

    /// Performs reads, then writes, for an operation. Starts at `begin_ns`.
    pub(super) fn relay(
        &mut self,
        now_ns: u64,
        begin_ns: u64,
        operation: u32,
        group: u32,
        reads: &[Extent],
        writes: Vec<Extent>,
    ) {
        let then = RelayEnd::Operation(operation);
        self.relay_then(now_ns, begin_ns, (operation, group), reads, writes, then);
    }

    /// Performs reads, then writes, for an operation of a group, with its own end.
    pub(super) fn relay_then(
        &mut self,
        now_ns: u64,
        begin_ns: u64,
        (operation, group): (u32, u32),
        reads: &[Extent],
        writes: Vec<Extent>,
        then: RelayEnd,
    ) {
        self.operations.get_mut(operation).pending += 1;
        let number = self.relays.insert(Relay { group, pending: 1, writes, then });
        for extent in reads {
            self.relay_command(now_ns, number, Kind::Read, extent);
        }
        if begin_ns > now_ns {
            self.at(begin_ns, Event::Relay(number));
        } else {
            self.relay_part_done(now_ns, number);
        }
    }

    fn relay_command(&mut self, now_ns: u64, number: u32, kind: Kind, extent: &Extent) {
        let group = self.relays.get(number).group;
        if let Some(member) = self.groups[group as usize].member_for(extent, kind) {
            self.relays.get_mut(number).pending += 1;
            match kind {
                Kind::Write => self.counters.data_writes += 1,
                Kind::Read | Kind::Trim | Kind::Flush => self.counters.data_reads += 1,
            }
            self.issue(now_ns, member, Owner::Relay(number), request(kind, extent));
        }
    }

    /// Counts one completed command of a relay: after the last read the writes begin, and after the last write the
    /// relay ends.
    pub(super) fn relay_part_done(&mut self, now_ns: u64, number: u32) {
        let relay = self.relays.get_mut(number);
        relay.pending -= 1;
        if relay.pending > 0 {
            return;
        }
        let writes = std::mem::take(&mut relay.writes);
        if !writes.is_empty() {
            relay.pending = 1;
            for extent in &writes {
                self.relay_command(now_ns, number, Kind::Write, extent);
            }
            return self.relay_part_done(now_ns, number);
        }
        let relay = self.relays.remove(number);
        match relay.then {
            RelayEnd::Operation(operation) => self.operation_part_done(now_ns, operation),
            RelayEnd::Restore { operation, bytes } => {
                self.restored(relay.group, bytes);
                self.operation_part_done(now_ns, operation);
            }
            RelayEnd::Migration(migration) => {
                let moved = self.pool(relay.group).complete(&migration);
                self.counters.migrated_segments += u64::from(moved);
                if self.host_requests == 0 {
                    self.migrate(now_ns, relay.group);
                }
            }
        }
    }

    /// Starts the next migration of a pool, if the pool needs one.
    pub(super) fn migrate(&mut self, now_ns: u64, group: u32) {
        let Some(pool) = &mut self.pools[group as usize] else {
            return;
        };
        let segment_bytes = pool.description().segment_bytes;
        let Some(migration) = pool.next_migration() else {
            return;
        };
        let whole = |place: &pool::Extent| part(*place, 0, segment_bytes);
        let reads: Vec<Extent> = migration.reads.iter().map(whole).collect();
        let writes = migration.writes.iter().map(whole).collect();
        let number = self.relays.insert(Relay { group, pending: 1, writes, then: RelayEnd::Migration(migration) });
        for extent in &reads {
            self.relay_command(now_ns, number, Kind::Read, extent);
        }
        self.relay_part_done(now_ns, number);
    }

    /// Performs the accesses of a migration that made room for a write. No request waits for these accesses, but they
    /// load the members.
    fn make_room(&mut self, now_ns: u64, group: u32, migration: &Migration) {
        let segment_bytes = self.pool(group).description().segment_bytes;
        self.counters.migrated_segments += migration.reads.len() as u64;
        for (kind, places) in [(Kind::Read, &migration.reads), (Kind::Write, &migration.writes)] {
            for place in places {
                let extent = part(*place, 0, segment_bytes);
                if let Some(member) = self.groups[group as usize].member_for(&extent, kind) {
                    self.issue(now_ns, member, Owner::Background, request(kind, &extent));
                }
            }
        }
    }
}

/// Returns part of a segment on one member, as an extent of the group. Members of the pool are the slots of the group.
pub fn part(place: pool::Extent, within: u64, length_bytes: u64) -> Extent {
    Extent { slot: place.member, at_bytes: place.offset_bytes + within, length_bytes }
}
