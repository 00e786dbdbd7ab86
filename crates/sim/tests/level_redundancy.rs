//! Compares each level's own figures with its layout: failures survived, bytes exported, the units of a stripe.

use headstack_sim::array::description::Level;
use headstack_sim::array::levels::{Layout, Placing, Shape};
use headstack_sim::description::level::{Rotation, SmallWrites};

const UNIT: u64 = 64 << 10;
const SECTOR: u64 = 4 << 10;
const MEMBER: u64 = 16 << 30;
/// Members of the largest group whose failures are tried one by one.
const MEMBERS_MAX: u32 = 14;

fn shape(level: Level, members: u32, spans: u32) -> Shape {
    let has_records = level.rules().has_records;
    Shape {
        members: members.into(),
        spans: spans.into(),
        unit_bytes: if has_records { SECTOR } else { UNIT },
        member_bytes: MEMBER,
        record_bytes: if has_records { 128 << 10 } else { 0 },
        rotation: Rotation::default(),
        small_writes: SmallWrites::default(),
        is_pooled: false,
    }
}

/// Returns each level with every number of members that its rules allow, and in two spans if it can have them.
fn groups() -> Vec<(Level, u32, u32)> {
    let mut groups = Vec::new();
    for &level in Level::ALL {
        let rules = level.rules();
        let members = (rules.members_min..=MEMBERS_MAX).filter(|count| count.is_multiple_of(rules.members_step));
        let of_spans = |count: u32| (count.is_multiple_of(2) && count / 2 >= rules.members_min).then_some((count, 2));
        let before = groups.len();
        for members in members {
            groups.push((level, members, 1));
            groups
                .extend(of_spans(members).filter(|_| rules.has_spans).map(|(members, spans)| (level, members, spans)));
        }
        assert!(groups.len() > before, "{level}");
    }
    groups
}

/// Returns every set of `failed` members, as bits.
fn sets(members: u32, failed: u64) -> impl Iterator<Item = u32> {
    (0u32..1 << members).filter(move |set| u64::from(set.count_ones()) == failed)
}

#[test]
fn each_level_survives_exactly_its_redundancy() {
    for (level, members, spans) in groups() {
        let redundancy = level.redundancy(members.into(), spans.into());
        let layout = Layout::new(level, &shape(level, members, spans));
        let survives = |failed: u32| layout.survives(&|slot, _| failed >> slot & 1 == 0);
        let named = format!("{level} of {members} in {spans}");
        assert!(sets(members, redundancy.survives).all(survives), "{named}");
        assert!(!sets(members, redundancy.survives + 1).all(survives), "{named}");
        assert!(redundancy.width <= redundancy.members, "{named}");
        assert_eq!(
            redundancy.width < redundancy.members,
            level.rules().is_declustered && redundancy.spares > 0,
            "{named}"
        );
    }
}

#[test]
fn usable_bytes_are_those_of_the_layout_but_for_whole_stripes() {
    for (level, members, spans) in groups() {
        let (usable, exact) = (
            level.usable_bytes(members.into(), spans.into(), MEMBER),
            level.capacity_bytes(&shape(level, members, spans)),
        );
        // Of an odd number of members in pairs the last is left out.
        let slack = if level == Level::Raid10 && members % 2 == 1 { MEMBER } else { usable / 100 };
        assert!(usable.abs_diff(exact) <= slack, "{level} of {members} in {spans}: {usable} and {exact}");
    }
}

#[test]
fn the_units_of_a_stripe_are_all_the_members_of_a_span_or_of_a_code() {
    for (level, members, spans) in groups() {
        let Some(stripe) = level.stripe(u64::from(members / spans)) else { continue };
        let redundancy = level.redundancy(members.into(), spans.into());
        let units = (stripe.data + stripe.parity) * stripe.copies;
        match level {
            Level::Erasure { .. } => assert_eq!(units, redundancy.width),
            Level::Raid10 => assert_eq!(units, u64::from(members / 2 * 2)),
            _ => assert_eq!(units, u64::from(members / spans) - redundancy.spares, "{level}"),
        }
    }
}

#[test]
fn usual_groups_are_in_spans_of_16_at_most() {
    let layouts = |level: Level, most| level.usual_layouts(most).collect::<Vec<_>>();
    assert_eq!(layouts(Level::Raid5, 20).split_off(13), [(16, 1), (18, 2), (20, 2)]);
    assert_eq!(layouts(Level::Raid6, 51).split_off(22), [(36, 3), (39, 3), (42, 3), (45, 3), (48, 3)]);
    assert_eq!(layouts(Level::Raid1, 9), [(2, 1), (3, 1), (4, 1)]);
    assert_eq!(layouts(Level::Raid10, 6), [(2, 1), (4, 1), (6, 1)]);
    assert_eq!(layouts(Level::Raidz { parity: 3 }, 40).last(), Some(&(16, 1)));
    assert_eq!(layouts(Level::Erasure { data: 4, parity: 2 }, 13), [(6, 1), (12, 1)]);
    assert_eq!(layouts(Level::Draid { parity: 2, data: 8, spares: 1 }, 300).len(), 255 - 10);
    assert_eq!(layouts(Level::Raid6, 3), []);
}
