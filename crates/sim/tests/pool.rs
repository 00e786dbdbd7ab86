//! The map of a virtual array: no segment is ever lost, no place used twice, every byte accounted for.

use std::collections::{HashMap, HashSet};

use headstack_sim::array::pool::{
    Classes, Effect, Extent, Migration, MigrationKind, Placement, Pool, PoolDescription, Space, check,
};
use proptest::prelude::*;

const SEGMENT: u64 = 256 * 1024;

fn mirrored(members: u32, rows: u64) -> PoolDescription {
    PoolDescription {
        segment_bytes: SEGMENT,
        members,
        member_bytes: rows * SEGMENT,
        spare_bytes: 0,
        allocation_ns: 500_000,
        classes: Classes::Mirrored,
    }
}

/// Marks in groups.
fn migrating(members: u32, rows: u64, parity_width: u32, low: u64, high: u64) -> PoolDescription {
    let group = group_bytes(parity_width);
    let classes = Classes::Migrating { parity_width, low_free_bytes: low * group, high_free_bytes: high * group };
    PoolDescription { classes, ..mirrored(members, rows) }
}

fn group_bytes(parity_width: u32) -> u64 {
    u64::from(if parity_width.is_multiple_of(2) { parity_width } else { 2 * parity_width }) * SEGMENT
}

fn pool(description: &PoolDescription, lun_segments: &[u64]) -> Pool {
    let lengths: Vec<u64> = lun_segments.iter().map(|segments| segments * SEGMENT).collect();
    Pool::new(description, &lengths).expect("a possible pool")
}

/// Completes all proposed migrations.
fn settle(pool: &mut Pool) -> Vec<Migration> {
    let mut done = Vec::new();
    while let Some(migration) = pool.next_migration() {
        assert!(done.len() < 100_000, "migrations without end");
        pool.complete(&migration);
        done.push(migration);
    }
    pool.verify().unwrap();
    done
}

fn copies(placement: Placement) -> Vec<Extent> {
    match placement {
        Placement::Mirrored(copies) => copies.to_vec(),
        Placement::Parity { data, .. } => vec![data],
    }
}

fn is_mirrored(pool: &Pool, lun: u32, segment: u32) -> bool {
    matches!(pool.place(lun, segment), Some(Placement::Mirrored(_)))
}

/// Writes; returns whether it was a first write.
fn allocates(pool: &mut Pool, lun: u32, segment: u32) -> bool {
    matches!(pool.write(lun, segment).unwrap().effect, Effect::Allocated { .. })
}

/// Returns the pair number of a mirrored segment along the rows.
fn pair(pool: &Pool, lun: u32, segment: u32) -> u64 {
    let first = copies(pool.place(lun, segment).expect("written"))[0];
    let cell = first.offset_bytes / SEGMENT * u64::from(pool.description().members) + u64::from(first.member);
    assert_eq!(cell % 2, 0);
    cell / 2
}

/// Returns the numbers below `count`, shuffled.
fn shuffled(count: u32, seed: u64) -> Vec<u32> {
    let mut numbers: Vec<u32> = (0..count).collect();
    let mut state = seed;
    for at in (1..numbers.len()).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        numbers.swap(at, (state >> 33) as usize % (at + 1));
    }
    numbers
}

/// Checks that no place is shared, and that copies are on different members.
fn check_places(pool: &Pool, written: impl Iterator<Item = (u32, u32)>) {
    let description = pool.description();
    let mut used = HashSet::new();
    let mut parities = HashSet::new();
    for (lun, segment) in written {
        let placement = pool.place(lun, segment).expect("a written segment is found");
        for extent in copies(placement) {
            assert!(used.insert(extent), "{extent:?} is used twice");
            assert!(extent.member < description.members);
            assert!(extent.offset_bytes + SEGMENT <= description.member_bytes);
        }
        match placement {
            Placement::Mirrored([first, second]) => {
                assert_eq!((first.member + 1) % description.members, second.member, "copies on adjacent members");
            }
            Placement::Parity { data, stripe } => {
                parities.extend(stripe.parity());
                let all: Vec<Extent> = stripe.parity().into_iter().chain(stripe.data()).collect();
                let members: HashSet<u32> = all.iter().map(|extent| extent.member).collect();
                assert_eq!(members.len(), all.len(), "a stripe takes each member once");
                assert!(stripe.data().any(|extent| extent == data));
                assert_eq!(stripe.others(data).count(), all.len() - 3);
            }
        }
    }
    assert!(used.is_disjoint(&parities), "a parity lies on data");
}

/// Checks the sums of the space, and the amount of data.
fn check_space(space: Space, live: u64) {
    let Space { raw_bytes, reserved_bytes, mirrored_bytes, parity_bytes, dead_bytes, hole_bytes, free_bytes } = space;
    assert_eq!(raw_bytes, reserved_bytes + mirrored_bytes + parity_bytes + hole_bytes + free_bytes);
    // Without migrations in progress.
    assert!(mirrored_bytes / 2 <= live * SEGMENT && parity_bytes + mirrored_bytes / 2 >= live * SEGMENT + dead_bytes);
}

#[derive(Clone, Debug)]
enum Step {
    Write(u32, u32),
    Recreate(u32),
    Propose,
    Complete,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    // Half of the writes go to a few segments, so that some are hot.
    let step = prop_oneof![
        30 => (0u32..3, 0u32..150).prop_map(|(lun, segment)| Step::Write(lun, segment)),
        30 => (0u32..3, 0u32..12).prop_map(|(lun, segment)| Step::Write(lun, segment)),
        1 => (0u32..3).prop_map(Step::Recreate),
        15 => Just(Step::Propose),
        10 => Just(Step::Complete),
    ];
    prop::collection::vec(step, 1..1500)
}

prop_compose! {
    fn any_pool()(members in 5u32..18, groups in 2u64..30)
        (members in Just(members), groups in Just(groups), parity_width in 5..=members, mirrors_only in any::<bool>(),
            low in 1..=groups, more in 0u64..5, spare in 0u64..7) -> PoolDescription {
        let rows = (groups * group_bytes(parity_width) / SEGMENT + spare).div_ceil(u64::from(members));
        let high = (low + more).min(groups);
        let description = migrating(members, rows, parity_width, low, high);
        let description = PoolDescription { spare_bytes: spare * SEGMENT, ..description };
        if mirrors_only { PoolDescription { classes: Classes::Mirrored, ..description } } else { description }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_lost(description in any_pool(), steps in steps()) {
        prop_assume!(check(&description).is_ok());
        let mut pool = pool(&description, &[150, 150, 150]);
        let mut model: HashSet<(u32, u32)> = HashSet::new();
        let mut under_way = None;
        let mut written_since = HashSet::new();
        for step in steps {
            match step {
                Step::Write(lun, segment) => {
                    let before = pool.place(lun, segment);
                    prop_assert_eq!(before.is_some(), model.contains(&(lun, segment)));
                    match pool.write(lun, segment) {
                        Ok(written) => {
                            prop_assert_eq!(pool.place(lun, segment), Some(written.placement));
                            written_since.insert((lun, segment));
                            let first = model.insert((lun, segment));
                            match written.effect {
                                Effect::Allocated { .. } => prop_assert!(first),
                                Effect::Promoted { from } => prop_assert_eq!(before, Some(from)),
                                Effect::Overwritten => prop_assert_eq!(before, Some(written.placement)),
                            }
                        }
                        Err(full) => {
                            prop_assert!(before.is_none());
                            prop_assert!(full.to_string().starts_with("pool is full: "));
                        }
                    }
                }
                Step::Recreate(lun) => {
                    let count = model.len();
                    model.retain(|&(other, _)| other != lun);
                    written_since.retain(|&(other, _)| other != lun);
                    prop_assert_eq!(pool.recreate_lun(lun), (count - model.len()) as u64 * SEGMENT);
                }
                Step::Propose => {
                    if let Some(migration) = pool.next_migration() {
                        under_way = Some(migration);
                        written_since.clear();
                    }
                }
                Step::Complete => {
                    if let Some(migration) = under_way.take() {
                        // Segments written meanwhile stay where they were written.
                        let before = |&(lun, segment): &(u32, u32)| pool.place(lun, segment);
                        let before: Vec<_> = written_since.iter().map(|key| (*key, before(key))).collect();
                        pool.complete(&migration);
                        for ((lun, segment), before) in before {
                            prop_assert_eq!(pool.place(lun, segment), before);
                        }
                    }
                }
            }
            pool.verify().map_err(TestCaseError::fail)?;
        }
        if let Some(migration) = under_way {
            pool.complete(&migration);
        }
        check_places(&pool, model.iter().copied());
        check_space(pool.space(), model.len() as u64);
        let of_luns: u64 = (0..3).map(|lun| pool.allocated_bytes(lun)).sum();
        prop_assert_eq!(of_luns, model.len() as u64 * SEGMENT);

        settle(&mut pool);
        prop_assert!(pool.next_migration().is_none());
        check_places(&pool, model.iter().copied());
        check_space(pool.space(), model.len() as u64);

        (0..3).for_each(|lun| { pool.recreate_lun(lun); });
        pool.verify().map_err(TestCaseError::fail)?;
        let space = pool.space();
        prop_assert_eq!(space.free_bytes, space.raw_bytes - space.reserved_bytes);
    }
}

#[test]
fn random_first_writes_are_stored_sequentially() {
    for members in [2, 3, 14, 15] {
        let mut pool = pool(&mirrored(members, 600), &[500]);
        let order = shuffled(500, 7);
        for (number, &segment) in order.iter().enumerate() {
            assert!(allocates(&mut pool, 0, segment));
            assert_eq!(pair(&pool, 0, segment), number as u64);
        }
        let ascending = (1..500).filter(|&segment| pair(&pool, 0, segment) > pair(&pool, 0, segment - 1)).count();
        let next = (1..500).filter(|&segment| pair(&pool, 0, segment) == pair(&pool, 0, segment - 1) + 1).count();
        assert!((200..300).contains(&ascending) && next < 10, "{ascending} ascending, {next} adjacent of 499");
        // Overwriting, in any order, changes nothing.
        let before: Vec<u64> = (0..500).map(|segment| pair(&pool, 0, segment)).collect();
        (0..500).for_each(|segment| assert!(!allocates(&mut pool, 0, segment)));
        assert_eq!(before, (0..500).map(|segment| pair(&pool, 0, segment)).collect::<Vec<_>>());
    }
}

#[test]
fn serial_prefill_is_contiguous_and_concurrent_prefill_interleaved() {
    let mut serial = pool(&mirrored(15, 100), &[100, 100, 100]);
    let mut concurrent = serial.clone();
    for lun in 0..3 {
        (0..100).for_each(|segment| assert!(allocates(&mut serial, lun, segment)));
    }
    for segment in 0..100 {
        (0..3).for_each(|lun| assert!(allocates(&mut concurrent, lun, segment)));
    }
    for (lun, segment) in (0..3).flat_map(|lun| (0..100).map(move |segment| (lun, segment))) {
        assert_eq!(pair(&serial, lun, segment), u64::from(lun * 100 + segment));
        assert_eq!(pair(&concurrent, lun, segment), u64::from(segment * 3 + lun));
    }
}

#[test]
fn odd_members_have_two_adjacent_partners() {
    for members in [3, 5, 15] {
        let mut pool = pool(&mirrored(members, 200), &[300]);
        let mut partners: HashMap<u32, HashSet<u32>> = HashMap::new();
        let mut held = vec![0; members as usize];
        for segment in 0..150 {
            pool.write(0, segment).unwrap();
            let Some(Placement::Mirrored([first, second])) = pool.place(0, segment) else { panic!() };
            partners.entry(first.member).or_default().insert(second.member);
            partners.entry(second.member).or_default().insert(first.member);
            [first, second].iter().for_each(|extent| held[extent.member as usize] += 1);
        }
        for (member, partners) in partners {
            let expected = HashSet::from([(member + 1) % members, (member + members - 1) % members]);
            assert_eq!(partners, expected);
        }
        assert!(held.iter().max().unwrap() - held.iter().min().unwrap() <= 1, "{held:?}");
    }
}

#[test]
fn only_deleting_a_lun_frees_space_and_it_is_used_again_in_order() {
    let mut pool = pool(&mirrored(15, 20), &[75, 75, 150]);
    for lun in 0..2 {
        (0..75).for_each(|segment| assert!(allocates(&mut pool, lun, segment)));
    }
    assert_eq!(pool.space().available_bytes(), 0);
    let full = pool.write(2, 0).unwrap_err();
    assert_eq!((full.live_bytes, full.usable_bytes), (150 * SEGMENT, 300 * SEGMENT));
    // A new file system writes segments that have space already.
    (0..75).for_each(|segment| assert!(!allocates(&mut pool, 0, segment)));
    assert_eq!(pool.allocated_bytes(0), 75 * SEGMENT);
    assert_eq!(pool.recreate_lun(0), 75 * SEGMENT);
    assert_eq!((pool.allocated_bytes(0), pool.place(0, 3)), (0, None));
    (0..75).for_each(|segment| assert!(allocates(&mut pool, 2, segment)));
    assert!((0..75).all(|segment| pair(&pool, 2, segment) == u64::from(segment)));
    assert!(pool.write(2, 80).is_err());
}

#[test]
fn demotion_takes_the_segments_written_longest_ago_and_stops_at_the_high_mark() {
    // 40 groups of 8 pairs; 20 segments are hot.
    let description = migrating(16, 40, 16, 10, 12);
    let mut pool = pool(&description, &[400]);
    (0..250).for_each(|segment| drop(pool.write(0, segment).unwrap()));
    (0..20).for_each(|segment| drop(pool.write(0, segment * 12).unwrap()));
    let before = pool.space().available_bytes();
    let done = settle(&mut pool);
    let demoted: Vec<u32> = (0..250).filter(|&segment| !is_mirrored(&pool, 0, segment)).collect();
    let coldest: Vec<u32> =
        (0..250).filter(|segment| segment % 12 != 0 || *segment >= 240).take(demoted.len()).collect();
    assert_eq!(demoted, coldest);
    let available = pool.space().available_bytes();
    assert!(before < 10 * group_bytes(16) && available >= 12 * group_bytes(16), "{before} {available}");
    let demotions = done.iter().filter(|migration| migration.kind == MigrationKind::Demotion);
    for demotion in demotions {
        assert_eq!((demotion.reads.len(), demotion.writes.len()), (14, 16));
        assert_eq!(demotion.writes.iter().map(|extent| extent.member).collect::<HashSet<_>>().len(), 16);
    }
    // Each demotion frees 28 cells and takes 16: the mark is passed by less than that.
    assert!(available < 12 * group_bytes(16) + 12 * SEGMENT);
}

#[test]
fn a_write_promotes_and_a_read_does_not() {
    let mut pool = pool(&migrating(15, 40, 15, 10, 12), &[400]);
    (0..250).for_each(|segment| drop(pool.write(0, segment).unwrap()));
    settle(&mut pool);
    let old = pool.place(0, 0).unwrap();
    assert!(matches!(old, Placement::Parity { .. }));
    assert_eq!(pool.place(0, 0), Some(old));
    let written = pool.write(0, 0).unwrap();
    assert_eq!(written.effect, Effect::Promoted { from: old });
    assert!(is_mirrored(&pool, 0, 0));
    assert_eq!(pool.space().dead_bytes % SEGMENT, 0);
    assert!(pool.space().dead_bytes >= SEGMENT);
}

#[test]
fn what_is_written_during_its_migration_stays() {
    let mut pool = pool(&migrating(16, 40, 16, 10, 12), &[400]);
    (0..250).for_each(|segment| drop(pool.write(0, segment).unwrap()));
    let migration = pool.next_migration().unwrap();
    assert!(pool.next_migration().is_none(), "one at a time");
    pool.write(0, 3).unwrap();
    pool.write(0, 5).unwrap();
    assert_eq!(pool.complete(&migration), 12);
    assert_eq!(pool.complete(&migration), 0, "only once");
    assert!((0..14).all(|segment| is_mirrored(&pool, 0, segment) == (segment == 3 || segment == 5)));
    assert_eq!(pool.space().dead_bytes, 2 * SEGMENT);
    pool.verify().unwrap();
}

#[test]
fn a_pool_fills_up_to_the_capacity_of_double_parity() {
    for (members, width, rows) in [(15, 15, 200), (15, 12, 200), (6, 5, 100), (16, 8, 100)] {
        let description = migrating(members, rows, width, 2, 3);
        let mut pool = pool(&description, &[1_000_000]);
        let mut segments = 0;
        let full = loop {
            match pool.write(0, segments) {
                Ok(_) => segments += 1,
                Err(full) => break full,
            }
        };
        pool.verify().unwrap();
        check_places(&pool, (0..segments).map(|segment| (0, segment)));
        let usable = full.usable_bytes as f64;
        let share = full.live_bytes as f64 / usable;
        // One group stays free, less than one is mirrored.
        let ideal = f64::from(width - 2) / f64::from(width);
        let slack = 2.0 * group_bytes(width) as f64 / usable;
        assert!(share <= ideal && share >= ideal - slack, "{members} members, width {width}: {share}, ideal {ideal}");
        assert_eq!(full.live_bytes, pool.allocated_bytes(0));
        // Full, yet every segment can still be written.
        for segment in shuffled(segments, 3) {
            assert!(!allocates(&mut pool, 0, segment));
        }
        settle(&mut pool);
    }
}

#[test]
fn parities_spread_over_all_members() {
    for (members, width) in [(15, 15), (15, 14), (16, 15), (16, 16), (12, 8), (7, 5)] {
        let mut pool = pool(&migrating(members, 2_000, width, 2, 3), &[100_000]);
        let mut segments = 0;
        while pool.write(0, segments).is_ok() {
            segments += 1;
        }
        let mut parities = HashSet::new();
        for segment in 0..segments {
            if let Some(Placement::Parity { stripe, .. }) = pool.place(0, segment) {
                parities.extend(stripe.parity());
            }
        }
        let mut held = vec![0; members as usize];
        parities.iter().for_each(|extent| held[extent.member as usize] += 1);
        let (most, least) = (*held.iter().max().unwrap(), *held.iter().min().unwrap());
        assert!(least > 0 && most * 20 <= least * 21, "{members} members, width {width}: {held:?}");
    }
}

#[test]
fn segments_return_to_mirrors_when_a_lun_is_deleted() {
    let mut pool = pool(&migrating(15, 40, 15, 4, 6), &[180, 150]);
    (0..180).for_each(|segment| drop(pool.write(0, segment).unwrap()));
    (0..150).for_each(|segment| drop(pool.write(1, segment).unwrap()));
    settle(&mut pool);
    assert!((0..180).any(|segment| !is_mirrored(&pool, 0, segment)));
    pool.recreate_lun(1);
    let done = settle(&mut pool);
    assert!(done.iter().all(|migration| migration.kind == MigrationKind::Promotion) && !done.is_empty());
    assert!((0..180).all(|segment| is_mirrored(&pool, 0, segment)));
    assert!(pool.space().available_bytes() >= 6 * group_bytes(15));
}

#[test]
fn a_hot_set_stays_mirrored_while_the_rest_is_demoted_and_cleaned() {
    // 1,200 raw cells, 700 segments: mirroring all would take 1,400.
    let mut pool = pool(&migrating(15, 80, 15, 4, 6), &[700]);
    let mut kinds: HashMap<String, u32> = HashMap::new();
    let cold = [shuffled(700, 11), shuffled(700, 12), shuffled(700, 13)].concat();
    for turn in 0..20_000u32 {
        // 9 of 10 writes go to 61 segments.
        let segment = if turn % 10 == 0 { cold[turn as usize / 10] } else { turn * 7 % 61 };
        pool.write(0, segment).unwrap();
        if let Some(migration) = pool.next_migration() {
            pool.complete(&migration);
            *kinds.entry(format!("{:?}", migration.kind)).or_default() += 1;
        }
        if turn > 10_000 && turn % 100 == 0 {
            let hot = (0..61).filter(|&segment| is_mirrored(&pool, 0, segment)).count();
            assert_eq!(hot, 61, "turn {turn}, {kinds:?}");
        }
    }
    pool.verify().unwrap();
    check_places(&pool, (0..700).map(|segment| (0, segment)));
    assert!(kinds["Demotion"] > 10 && kinds["Compaction"] > 10, "{kinds:?}");
}

#[test]
fn faults_name_the_field() {
    let good = migrating(15, 40, 15, 4, 6);
    check(&good).unwrap();
    let classes = |parity_width, low_free_bytes, high_free_bytes| PoolDescription {
        classes: Classes::Migrating { parity_width, low_free_bytes, high_free_bytes },
        ..good.clone()
    };
    let cases = [
        (PoolDescription { segment_bytes: 100_000, ..good.clone() }, "pool.segment_bytes"),
        (PoolDescription { members: 1, ..good.clone() }, "pool.members"),
        (PoolDescription { member_bytes: 1000, ..good.clone() }, "pool.member_bytes"),
        (PoolDescription { member_bytes: u64::MAX / 16, ..good.clone() }, "pool.member_bytes"),
        (PoolDescription { spare_bytes: u64::MAX, ..good.clone() }, "pool.spare_bytes"),
        (classes(4, 1 << 30, 1 << 30), "pool.parity_width"),
        (classes(16, 1 << 30, 1 << 30), "pool.parity_width"),
        (classes(15, 1, 1 << 26), "pool.low_free_bytes"),
        (classes(15, 1 << 26, 1 << 25), "pool.high_free_bytes"),
        (classes(15, 1 << 26, 1 << 40), "pool.high_free_bytes"),
    ];
    for (description, key) in cases {
        let fault = check(&description).unwrap_err();
        assert_eq!(fault.key, key);
        assert!(
            !fault.message.contains('\n')
                && ["allowed", "must", "maximum", "minimum"].iter().any(|word| fault.message.contains(word)),
            "{fault}"
        );
    }
    let fault = Pool::new(&good, &[SEGMENT, 0]).unwrap_err();
    assert_eq!(fault.key, "luns[1]");
}
