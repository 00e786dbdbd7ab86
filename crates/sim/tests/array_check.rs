//! Impossible arrays that no file can state: descriptions that are built or come as JSON.

use headstack_catalogue::{Changes, load_array};
use headstack_sim::array::check;
use headstack_sim::array::description::{ArrayDescription, Level};

fn array(name: &str) -> ArrayDescription {
    load_array(name, &Changes::default()).unwrap().description
}

#[track_caller]
fn refused(name: &str, change: impl FnOnce(&mut ArrayDescription), key: &str, words: &str) {
    let mut description = array(name);
    check(&description).unwrap();
    change(&mut description);
    let fault = check(&description).unwrap_err();
    assert_eq!(fault.key, key, "{fault}");
    assert!(fault.message.contains(words), "{fault}");
}

#[test]
fn indices_are_checked_against_their_lists() {
    refused("va-7100", |a| a.members[3].device = 1, "drives", "device 1 is out of range; must be 0 to 0");
    refused("va-7100", |a| a.members[3].ways[0].push(9), "drives", "only links of the array");
    refused("va-7100", |a| a.members[3].ways[0].push(1), "drives", "each link at most once");
    refused("va-7100", |a| a.members[3].ways = vec![vec![]; 9], "drives", "9 paths");
    refused("va-7100", |a| a.members[3].name = "d2".to_owned(), "drives", "a unique name");
    refused("va-7100", |a| a.members.clear(), "drives", "0 drives");
    refused("va-7100", |a| a.groups[0].members[0] = 15, "groups[0].drives", "0 to 14");
    refused("va-7100", |a| a.groups[0].members.clear(), "groups[0].drives", "0 drives are too few for raid10");
    refused("va-7100", |a| a.groups.clear(), "groups", "no group");
    refused("va-7100", |a| a.luns[0].group = 1, "luns[0].group", "0 to 0");
    refused("va-7100", |a| a.luns.clear(), "luns", "no LUN");
    refused("va-7100", |a| a.host_links.push(7), "host.links", "link 7");
    refused("va-7100", |a| a.host_links.push(0), "host.links", "link 0");
    let cached = |a: &mut ArrayDescription| a.controller.cache.as_mut().unwrap().mirror_link = Some(3);
    refused("va-7100", cached, "controller.cache.mirror", "links 0 to 2");
    let flash = |a: &mut ArrayDescription| a.controller.cache.as_mut().unwrap().flash_members = vec![99];
    refused("va-7100", flash, "controller.cache.flash_drives", "0 to 14");
}

#[test]
fn figures_are_finite() {
    for wrong in [f64::NAN, f64::INFINITY, -1.0] {
        refused("va-7100", |a| a.links[1].ns_per_byte = wrong, "links[1].rate", "positive rate");
        refused("va-7100", |a| a.controller.parity_ns_per_byte = wrong, "controller.parity_rate", "positive rate");
        let limited = |a: &mut ArrayDescription| a.groups[0].rebuild.rate_limit_bytes_per_s = Some(wrong);
        refused("va-7100", limited, "groups[0].rebuild.rate_limit", "positive rate");
        refused("va-7100", |a| a.groups[0].rebuild.yield_to_host = wrong, "groups[0].rebuild.yield_to_host", "or more");
        let water = |a: &mut ArrayDescription| a.controller.cache.as_mut().unwrap().high_water = wrong;
        refused("va-7100", water, "controller.cache.high_water", "0 to 1");
    }
}

#[test]
fn nothing_overflows() {
    refused("nearline-12-raid6", |a| a.luns[0].start_bytes = u64::MAX - 511, "luns[0].size", "holds");
    refused("nearline-12-raid6", |a| a.luns[0].length_bytes = u64::MAX - 511, "luns[0].size", "holds");
    refused("va-7100", |a| a.luns[0].start_bytes = 512, "luns[0].start", "a pool has no start");
    refused("va-7100", |a| a.luns[0].length_bytes = u64::MAX - 511, "luns", "segments in all LUNs");
    refused("va-7100", |a| a.groups[0].member_bytes = u64::MAX, "groups[0].drive_size", "holds 18");
    refused("va-7100", |a| a.groups[0].spans = u32::MAX, "groups[0].spans", "must be 1");
    refused("va-7100", |a| a.groups[0].pool.as_mut().unwrap().members = 14, "groups[0].pool.members", "the group's 15");
    let larger = |a: &mut ArrayDescription| a.groups[0].pool.as_mut().unwrap().member_bytes = u64::MAX;
    refused("va-7100", larger, "groups[0].drive_size", "for the pool");
    let odd = |a: &mut ArrayDescription| a.groups[0].pool.as_mut().unwrap().segment_bytes = 1000;
    refused("va-7100", odd, "groups[0].pool.segment", "a power of two");
    refused("md-raid5-8x2tb", |a| a.groups[0].spans = u32::MAX, "groups[0].spans", "divides");
    refused(
        "md-raid5-8x2tb",
        |a| a.groups[0].spans = 4,
        "groups[0].drives",
        "8 drives are too few for raid5 in 4 spans; the minimum is 12",
    );
    let twice = |a: &mut ArrayDescription| {
        a.luns.push(a.luns[0].clone());
        a.luns[0].length_bytes = u64::MAX / 2 + 1;
        a.luns[1].length_bytes = u64::MAX / 2 + 1;
    };
    refused("md-raid5-8x2tb", twice, "luns", "16 EiB");
}

#[test]
fn a_mirrored_pair_and_a_parity_of_two_drives() {
    for (level, fewest) in [(Level::Raid1, 2), (Level::Raid5, 3), (Level::Raid6, 4)] {
        let shrink = |a: &mut ArrayDescription| {
            a.groups[0].level = level;
            a.groups[0].members.truncate(fewest - 1);
        };
        refused("md-raid5-8x2tb", shrink, "groups[0].drives", &format!("the minimum is {fewest}"));
    }
}

#[test]
fn capacities_are_whole_chunks() {
    let mut group = array("md-raid5-8x2tb").groups.remove(0);
    (group.chunk_bytes, group.member_bytes) = (1000, 10_500);
    let mut held = |level, members: u32, spans| {
        (group.level, group.members, group.spans) = (level, (0..members).collect(), spans);
        group.capacity_bytes()
    };
    assert_eq!(held(Level::Concat, 3, 1), 31_500);
    assert_eq!(held(Level::Raid0, 3, 1), 30_000);
    assert_eq!(held(Level::Raid1, 3, 1), 10_500);
    assert_eq!(held(Level::Raid10, 3, 1), 15_000);
    assert_eq!(held(Level::Raid5, 3, 1), 20_000);
    assert_eq!(held(Level::Raid6, 12, 2), 80_000);
}
