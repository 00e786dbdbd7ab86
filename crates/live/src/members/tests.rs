//! Compares the implementation that stores members as differences with one that stores members in full, where every
//! member is an array of bytes and every operation is executed literally.

use std::io;

use headstack_sim::array::description::{Filler, Group, Level, MirrorReads, Rebuild, Rotation, SmallWrites};
use headstack_sim::array::levels::{Extent, Layout, Placing};
use headstack_workload::{Purpose, Random};

use super::code::{Code, add};
use super::stripes::{Role, SECTOR_BYTES, Stripes};
use super::{Flat, Members, Served, Unfinished};

const UNIT_BYTES: u64 = 1024;
const MEMBER_BYTES: u64 = 6 * UNIT_BYTES;
const WHOLE: u64 = u64::MAX;

#[derive(Clone)]
struct Bytes(Vec<u8>);

impl Flat for Bytes {
    fn read(&self, offset_bytes: u64, into: &mut [u8]) -> io::Result<()> {
        into.copy_from_slice(&self.0[offset_bytes as usize..][..into.len()]);
        Ok(())
    }

    fn change(&mut self, offset_bytes: u64, data: &[u8]) -> io::Result<()> {
        self.0[offset_bytes as usize..][..data.len()].copy_from_slice(data);
        Ok(())
    }
}

fn group(level: Level, members: u32, spans: u32, small_writes: SmallWrites) -> Group {
    Group {
        name: "g".to_owned(),
        level,
        members: (0..members).collect(),
        spans,
        chunk_bytes: UNIT_BYTES,
        rotation: Rotation::default(),
        member_bytes: MEMBER_BYTES,
        record_bytes: 0,
        small_writes,
        mirror_reads: MirrorReads::RoundRobin,
        spares: vec![],
        rebuild: Rebuild {
            step_bytes: 1 << 20,
            steps: 1,
            rate_limit_bytes_per_s: None,
            yield_to_host: 0.0,
            minimum: None,
            filled_by: Filler::Array,
        },
        pool: None,
        bitmap: None,
        ppl: None,
        is_journaled: false,
    }
}

/// Every level that has columns, with each method of small writes.
fn groups() -> Vec<Group> {
    let code = |data, parity| Level::Erasure { data, parity };
    let shapes = [
        (Level::Concat, 3, 1),
        (Level::Raid0, 3, 1),
        (Level::Raid1, 3, 1),
        (Level::Raid10, 4, 1),
        (Level::Raid10, 5, 1),
        (Level::Raid5, 4, 1),
        (Level::Raid5, 6, 2),
        (Level::Raid6, 6, 1),
        (code(3, 3), 6, 1),
        (code(1, 2), 3, 1),
    ];
    let ways = [SmallWrites::Cheapest, SmallWrites::ReadModifyWrite, SmallWrites::Reconstruct];
    shapes.iter().flat_map(|&(level, members, spans)| ways.map(|way| group(level, members, spans, way))).collect()
}

/// Members stored in full.
struct Dense {
    layout: Layout,
    code: Code,
    data: u64,
    unit_bytes: u64,
    slots: Vec<Vec<u8>>,
    there: Vec<bool>,
    reads: u64,
}

/// One sector of each unit of a stripe, at an equal offset in each unit.
struct Column {
    data: Vec<(usize, usize)>,
    redundant: Vec<(usize, usize)>,
}

impl Dense {
    fn new(stripes: &Stripes, slots: usize) -> Dense {
        Dense {
            layout: stripes.layout.clone(),
            code: stripes.code.clone(),
            data: stripes.data,
            unit_bytes: stripes.unit_bytes,
            slots: vec![vec![0; MEMBER_BYTES as usize]; slots],
            there: vec![true; slots],
            reads: 0,
        }
    }

    /// Returns the positions of byte `within` of each unit of a stripe.
    fn column(&self, stripe: u64, within: u64) -> Column {
        let mut places = Vec::new();
        for unit in 0..self.data {
            self.layout.places((stripe * self.data + unit) * self.unit_bytes + within, 1, &mut places);
        }
        let of = |extent: &Extent| (extent.slot as usize, extent.at_bytes as usize);
        match &self.layout {
            Layout::Copies(_) => Column { data: vec![of(&places[0])], redundant: places[1..].iter().map(of).collect() },
            Layout::Parity(parity) => {
                let mut redundant = Vec::new();
                parity.parities_of(&places[0], |extent| redundant.push(of(&extent)));
                Column { data: places.iter().map(of).collect(), redundant }
            }
        }
    }

    fn byte(&self, (slot, at): (usize, usize)) -> u8 {
        self.slots[slot][at]
    }

    /// Returns the readable data of a column; missing units are restored from the first redundant units.
    fn data(&self, column: &Column) -> Vec<u8> {
        let there = |place: &(usize, usize)| self.there[place.0];
        let mut data: Vec<u8> = column.data.iter().map(|&p| if there(&p) { self.byte(p) } else { 0 }).collect();
        let missing: Vec<usize> = (0..data.len()).filter(|&unit| !there(&column.data[unit])).collect();
        let used: Vec<usize> =
            (0..column.redundant.len()).filter(|&k| there(&column.redundant[k])).take(missing.len()).collect();
        if missing.is_empty() {
            return data;
        }
        // Each redundant unit minus the available data is a sum of the missing units.
        let rest: Vec<u8> = used.iter().map(|&k| self.byte(column.redundant[k]) ^ self.redundancy(&data, k)).collect();
        for (factors, &unit) in self.code.solution(&used, &missing).iter().zip(&missing) {
            factors.iter().zip(&rest).for_each(|(&factor, &byte)| add(&mut data[unit..=unit], factor, &[byte]));
        }
        data
    }

    fn redundancy(&self, data: &[u8], number: usize) -> u8 {
        let mut sum = [0];
        data.iter().enumerate().for_each(|(unit, &byte)| add(&mut sum, self.code.factor(number, unit), &[byte]));
        sum[0]
    }

    fn place_of(&self, offset: u64) -> (Column, usize) {
        let unit = offset / self.unit_bytes;
        (self.column(unit / self.data, offset % self.unit_bytes), (unit % self.data) as usize)
    }

    fn read(&mut self, offset: u64, length: u64) -> Vec<u8> {
        let mut differs = false;
        let turn = self.reads;
        let bytes = (offset..offset + length)
            .map(|at| {
                let (column, unit) = self.place_of(at);
                if matches!(self.layout, Layout::Parity(_)) {
                    return self.data(&column)[unit];
                }
                // Sectors whose copies differ in any byte are read from the copies in turn.
                let sector = at / SECTOR_BYTES * SECTOR_BYTES;
                let there: Vec<(usize, usize)> = (column.data.iter().chain(&column.redundant).copied())
                    .filter(|place| self.there[place.0])
                    .collect();
                let own = |place: &(usize, usize)| {
                    let from = place.1 - (at - sector) as usize;
                    &self.slots[place.0][from..from + SECTOR_BYTES as usize]
                };
                let is_one = there.iter().all(|place| own(place) == own(&there[0]));
                differs |= !is_one;
                let chosen = if is_one { 0 } else { (turn % there.len() as u64) as usize };
                self.byte(there[chosen])
            })
            .collect();
        self.reads += u64::from(differs);
        bytes
    }

    /// Writes as the level's plan requires: read, compute, write.
    fn write(&mut self, offset: u64, data: &[u8]) {
        let (stripe_bytes, unit_bytes) = (self.data * self.unit_bytes, self.unit_bytes);
        let layout = self.layout.clone();
        let there = self.there.clone();
        let is_there = |extent: &Extent| there[extent.slot as usize];
        let mut writes: Vec<((usize, usize), u8)> = Vec::new();
        let plans = match &layout {
            Layout::Copies(_) => None,
            Layout::Parity(parity) => {
                let mut plans = Vec::new();
                parity.parts(offset, data.len() as u64, |part| {
                    plans.push((part, parity.plan(&part, &is_there, &is_there)));
                });
                Some(plans)
            }
        };
        for (at, &byte) in (offset..).zip(data) {
            let (column, unit) = self.place_of(at);
            writes.push((column.data[unit], byte));
            if plans.is_none() {
                writes.extend(column.redundant.iter().map(|&place| (place, byte)));
            }
        }
        for (part, plan) in plans.into_iter().flatten() {
            for within in 0..unit_bytes {
                let column = self.column(part.row, within);
                let old = self.data(&column);
                let mut new = old.clone();
                for (unit, byte) in new.iter_mut().enumerate() {
                    let at = part.row * stripe_bytes + unit as u64 * unit_bytes + within;
                    if let Some(written) = at.checked_sub(offset).and_then(|at| data.get(at as usize)) {
                        *byte = *written;
                    }
                }
                for (number, &(slot, at)) in column.redundant.iter().enumerate() {
                    let is_written = plan.parity.iter().any(|extent| {
                        extent.slot as usize == slot && (extent.at_bytes..extent.end_bytes()).contains(&(at as u64))
                    });
                    if !is_written {
                        continue;
                    }
                    let changed = self.redundancy(&old, number) ^ self.redundancy(&new, number);
                    let parity =
                        if plan.modifies { self.byte((slot, at)) ^ changed } else { self.redundancy(&new, number) };
                    writes.push(((slot, at), parity));
                }
            }
        }
        for ((slot, at), byte) in writes {
            if self.there[slot] {
                self.slots[slot][at] = byte;
            }
        }
    }

    fn stripes(&self, capacity: u64) -> impl Iterator<Item = (u64, u64)> + use<> {
        let unit_bytes = self.unit_bytes;
        let ends = (capacity / self.data).min(capacity);
        (0..ends).map(move |at| (at / unit_bytes, at % unit_bytes))
    }

    /// Puts a spare into a slot and fills it with reconstructed data.
    fn rebuild(&mut self, slot: usize, capacity: u64) {
        let mut filled = self.slots[slot].clone();
        for (stripe, within) in self.stripes(capacity) {
            let column = self.column(stripe, within);
            let data = self.data(&column);
            for (unit, place) in column.data.iter().enumerate().filter(|(_, place)| place.0 == slot) {
                filled[place.1] = data[unit];
            }
            for (number, place) in column.redundant.iter().enumerate().filter(|(_, place)| place.0 == slot) {
                filled[place.1] = self.redundancy(&data, number);
            }
        }
        self.slots[slot] = filled;
        self.there[slot] = true;
    }

    /// Rewrites the redundancy from the data; returns the number of sectors of the pages with differences.
    fn scrub(&mut self, capacity: u64, repairs: bool) -> u64 {
        let mut pages = std::collections::BTreeSet::new();
        for (stripe, within) in self.stripes(capacity) {
            let column = self.column(stripe, within);
            let data = self.data(&column);
            for (number, &(slot, at)) in column.redundant.iter().enumerate() {
                let should = self.redundancy(&data, number);
                if self.there[slot] && self.slots[slot][at] != should {
                    pages.insert((stripe, column.redundant[0].1 / 4096));
                    if repairs {
                        self.slots[slot][at] = should;
                    }
                }
            }
        }
        pages.len() as u64 * 8
    }
}

/// Both implementations under test.
struct Both {
    members: Members,
    flat: Bytes,
    dense: Dense,
    capacity: u64,
    losses: Vec<u32>,
}

impl Both {
    fn new(group: &Group) -> Both {
        let stripes = Stripes::of(group).expect("the group has columns");
        let capacity = group.capacity_bytes();
        Both {
            dense: Dense::new(&stripes, group.members.len()),
            members: Members::of(group).unwrap(),
            flat: Bytes(vec![0; capacity as usize]),
            capacity,
            losses: vec![0; group.members.len()],
        }
    }

    fn write(&mut self, offset: u64, data: &[u8]) {
        self.flat.change(offset, data).unwrap();
        self.members.written(offset, data.len() as u64);
        self.dense.write(offset, data);
    }

    fn serve(&mut self, slot: usize, filled_bytes: u64) {
        let served = |(at, slot): (usize, &Served)| Served { losses: self.losses[at], ..*slot };
        let mut all: Vec<Served> = self.members.slots.iter().enumerate().map(served).collect();
        all[slot].filled_bytes = filled_bytes;
        self.members.serve(&all, &mut self.flat).unwrap();
    }

    fn fail(&mut self, slot: usize) {
        self.losses[slot] += 1;
        self.serve(slot, 0);
        self.dense.there[slot] = false;
    }

    fn rebuild(&mut self, slot: usize) {
        // Rebuild half of the member first: the rebuilt half is already in use, and the other half is unchanged.
        self.serve(slot, MEMBER_BYTES / 2);
        self.serve(slot, WHOLE);
        self.dense.rebuild(slot, self.capacity);
    }

    fn read(&mut self, offset: u64, length: u64) -> (Vec<u8>, Vec<u8>) {
        let mut read_back = vec![0; length as usize];
        self.flat.read(offset, &mut read_back).unwrap();
        self.members.read(offset, &mut read_back);
        (read_back, self.dense.read(offset, length))
    }

    fn compare(&self, what: &str) {
        for slot in 0..self.dense.slots.len() {
            for at in (0..MEMBER_BYTES).step_by(SECTOR_BYTES as usize) {
                let held = self.members.sector(slot as u32, at, &self.flat).unwrap();
                let wanted = &self.dense.slots[slot][at as usize..][..SECTOR_BYTES as usize];
                if let Some(held) = held {
                    assert!(self.dense.there[slot], "{what}: slot {slot} is missing");
                    assert!(held == wanted, "{what}: slot {slot}, byte {at}");
                } else if self.dense.there[slot] {
                    assert!(self.members.stripes.role(slot as u32, at).is_none(), "{what}: slot {slot}, byte {at}");
                }
            }
        }
    }
}

fn some_bytes(random: &mut Random, length: u64) -> Vec<u8> {
    (0..length).map(|_| random.below(256) as u8).collect()
}

/// Returns a random run of whole sectors.
fn some_run(random: &mut Random, of_bytes: u64, sectors_max: u64) -> (u64, u64) {
    let sectors = of_bytes / SECTOR_BYTES;
    let length = 1 + random.below(sectors_max.min(sectors));
    (random.below(sectors - length + 1) * SECTOR_BYTES, length * SECTOR_BYTES)
}

/// Tests a power loss that leaves the first part of a change's data.
fn cut(both: &mut Both, random: &mut Random) {
    let (offset, length) = some_run(random, both.capacity, 20);
    // Other tests cover stripes that a write recomputes or carries along, so make the redundancy consistent first.
    both.members.repair(&(0..MEMBER_BYTES));
    both.dense.scrub(both.capacity, true);
    let mut old = vec![0; length as usize];
    both.flat.read(offset, &mut old).unwrap();
    let before = both.dense.slots.clone();
    let new = some_bytes(random, length);
    both.write(offset, &new);
    let whole = both.dense.slots.clone();
    let torn = random.below(length / SECTOR_BYTES + 1) * SECTOR_BYTES;
    let now: Vec<u8> = [&new[..torn as usize], &old[torn as usize..]].concat();
    // In the literal implementation, restore the previous state, apply the remaining data with matching parity, then
    // apply the outcome of each member.
    both.dense.slots = before.clone();
    both.dense.write(offset, &now);
    both.flat.change(offset, &now).unwrap();
    let draw = random.bits();
    for at in offset..offset + length {
        let (column, _) = both.dense.place_of(at);
        let stripe = at / both.dense.unit_bytes / both.dense.data;
        for &(slot, at) in &column.redundant {
            if both.dense.there[slot] {
                match super::fate(draw, stripe, slot as u32) {
                    0 => {}
                    1 => both.dense.slots[slot][at] = before[slot][at],
                    _ => both.dense.slots[slot][at] = whole[slot][at],
                }
            }
        }
    }
    both.members.cut(&Unfinished { offset_bytes: offset, old, new, draw }, &mut both.flat).unwrap();
}

/// Tests a write that one member does not store.
fn lose(both: &mut Both, random: &mut Random) {
    let (offset, length) = some_run(random, both.capacity, 24);
    let slot = random.below(both.dense.slots.len() as u64) as usize;
    // Parity that was already wrong and was then recomputed by a write is indistinguishable from correct parity, so
    // make the redundancy consistent first.
    both.members.repair(&(0..MEMBER_BYTES));
    both.dense.scrub(both.capacity, true);
    let data = some_bytes(random, length);
    let kept = both.dense.slots[slot].clone();
    both.dense.write(offset, &data);
    if both.dense.there[slot] {
        both.dense.slots[slot] = kept;
    }
    let mut old = vec![0; length as usize];
    both.flat.read(offset, &mut old).unwrap();
    both.flat.change(offset, &data).unwrap();
    both.members.written(offset, length);
    let change = Unfinished { offset_bytes: offset, old, new: data, draw: 0 };
    both.members.not_stored(slot as u32, &change, &mut both.flat).unwrap();
}

#[test]
fn members_stored_as_differences_equal_full_members() {
    let (mut steps, mut differed, mut mismatches) = (0, 0, 0);
    // `make test` runs every fourth group, which covers each method of small writes and most shapes, with one seed.
    for (number, group) in headstack_needs::sampled(groups().iter().enumerate(), 4) {
        let redundant = Stripes::of(group).unwrap().code.redundant();
        for seed in headstack_needs::sampled(0..2, 2) {
            let mut random = Random::new(seed * 100 + number as u64, Purpose::Faults);
            let mut both = Both::new(group);
            let slots = group.members.len() as u64;
            for step in 0..60 {
                steps += 1;
                let missing: Vec<usize> = (0..slots as usize).filter(|&slot| !both.dense.there[slot]).collect();
                // At least one copy of a stripe must survive; in odd layouts, any two members are neighbours in some
                // stripe.
                let may_fail = if matches!(group.level, Level::Raid10) { 1 } else { redundant.min(3) };
                let what = random.below(11);
                match what {
                    0..4 => {
                        let (offset, length) = some_run(&mut random, both.capacity, 24);
                        let data = some_bytes(&mut random, length);
                        both.write(offset, &data);
                    }
                    4 | 5 => {
                        let slot = random.below(slots) as usize;
                        let at = random.below(MEMBER_BYTES - 700);
                        let length = 1 + random.below(700);
                        let bytes = some_bytes(&mut random, length);
                        both.members.corrupt(slot as u32, at, &bytes, &mut both.flat).unwrap();
                        if both.dense.there[slot] {
                            both.dense.slots[slot][at as usize..][..bytes.len()].copy_from_slice(&bytes);
                        }
                    }
                    6 if missing.len() < may_fail => both.fail(random.below(slots) as usize),
                    7 if !missing.is_empty() => both.rebuild(missing[0]),
                    8 if missing.is_empty() => {
                        let read_back = both.members.mismatched_sectors(&(0..MEMBER_BYTES));
                        let repairs = random.below(3) == 0;
                        assert_eq!(read_back, both.dense.scrub(both.capacity, repairs), "{group:?}");
                        mismatches += read_back;
                        if repairs {
                            both.members.repair(&(0..MEMBER_BYTES));
                            assert!(!both.members.differ());
                        }
                    }
                    9 if step % 2 == 0 => cut(&mut both, &mut random),
                    10 => lose(&mut both, &mut random),
                    _ => {}
                }
                let name = format!("{} {:?}, seed {seed}, step {step}: {what}", group.level, group.small_writes);
                // A slot that failed twice counts once.
                both.compare(&name);
                let (offset, length) = some_run(&mut random, both.capacity, 40);
                let (read_back, wanted) = both.read(offset, length);
                assert!(read_back == wanted, "{name}: a read of {length} B at {offset}");
                differed += u64::from(both.members.differ());
            }
        }
    }
    let text = format!("{differed} of {steps} steps with differences, {mismatches} mismatches");
    assert!(differed * 6 > steps && mismatches * 8 > steps, "{text}");
}

#[test]
fn every_byte_of_a_stripe_follows_the_layout() {
    for group in groups() {
        let stripes = Stripes::of(&group).unwrap();
        let columns = group.capacity_bytes() / stripes.data / SECTOR_BYTES;
        let mut found = 0;
        for column in 0..columns {
            let places = stripes.places(column);
            for (unit, place) in places.data.iter().enumerate() {
                assert_eq!(
                    stripes.role(place.slot, place.at_bytes),
                    Some((column, Role::Data(unit))),
                    "{}",
                    group.level
                );
                assert_eq!(stripes.column(stripes.address(column, unit)), (column, unit));
            }
            for (number, place) in places.redundant.iter().enumerate() {
                let role = stripes.role(place.slot, place.at_bytes);
                assert_eq!(role, Some((column, Role::Redundant(number))), "{}", group.level);
            }
            found += places.data.len() + places.redundant.len();
        }
        let all = group.members.len() as u64 * MEMBER_BYTES / SECTOR_BYTES;
        assert!(found as u64 + stripes.height() * 2 > all, "{}: {found} of {all}", group.level);
    }
}

#[test]
fn pools_and_records_have_no_members_contents() {
    let raidz = Group { record_bytes: 8192, ..group(Level::Raidz { parity: 1 }, 4, 1, SmallWrites::Cheapest) };
    assert!(Members::of(&raidz).is_none());
    let draid = Level::Draid { parity: 1, data: 2, spares: 1 };
    let draid = Group { record_bytes: 8192, member_bytes: 64 << 20, ..group(draid, 5, 1, SmallWrites::Cheapest) };
    assert!(Members::of(&draid).is_none());
}

/// "Parity Lost": a read-modify-write carries the damage of a block into the parity, where it outlives the block.
#[test]
fn a_small_write_carries_damage_into_the_parity() {
    let damaged = |small_writes| {
        let mut both = Both::new(&group(Level::Raid5, 4, 1, small_writes));
        let capacity = both.capacity;
        both.write(0, &vec![7; capacity as usize]);
        both.members.corrupt(0, 0, &[9; 512], &mut both.flat).unwrap();
        both.dense.slots[0][..512].fill(9);
        // Rewriting the damaged block makes it correct from now on.
        both.write(0, &[7; 512]);
        assert_eq!(both.read(0, 512).0, [7; 512]);
        // Its neighbour fails and is restored with wrong data, although no client wrote to the neighbour.
        both.fail(1);
        let (read_back, wanted) = both.read(UNIT_BYTES, 512);
        assert!(read_back == wanted);
        read_back != [7; 512]
    };
    assert!(damaged(SmallWrites::ReadModifyWrite));
    assert!(!damaged(SmallWrites::Reconstruct));
}
