//! A running virtual array, compared with the VA 7100's guide on allocation, prefilling and space.

use crate::common;
use crate::common::MS;
use crate::common::arrays::{UNIT, group, request};
use headstack_sim::array::Array;
use headstack_sim::array::description::{ArrayDescription, Level, Lun, Prefill};
use headstack_sim::array::pool::{Classes, PoolDescription};
use headstack_workload::Kind;

const SEGMENT: u64 = 4 * UNIT;
const MEMBERS: u32 = 5;

fn pool(prefill: Prefill, classes: Classes) -> ArrayDescription {
    let mut members = group(Level::Raid10, 0..MEMBERS, 1);
    members.chunk_bytes = SEGMENT;
    members.pool = Some(PoolDescription {
        segment_bytes: SEGMENT,
        members: MEMBERS,
        member_bytes: members.member_bytes,
        spare_bytes: 0,
        allocation_ns: 10 * MS,
        classes,
    });
    let mut description = common::arrays::array(members, 0);
    let lun = |name: &str| Lun { name: name.to_owned(), group: 0, start_bytes: 0, length_bytes: 8 * SEGMENT, prefill };
    description.luns = vec![lun("a"), lun("b")];
    description
}

/// Serves the requests one after the other; returns the latency of each.
fn responses_ns(array: &mut Array, from_ns: u64, requests: &[(Kind, u64, u64)]) -> Vec<u64> {
    let (mut now_ns, mut done) = (from_ns, vec![]);
    array.advance(now_ns, &mut done);
    let mut serve = |&(kind, offset, length): &(Kind, u64, u64)| {
        let begin_ns = now_ns;
        array.submit(now_ns, 0, &request(kind, offset, length));
        while done.is_empty() {
            now_ns = array.next_event_ns();
            array.advance(now_ns, &mut done);
        }
        done.clear();
        now_ns - begin_ns
    };
    requests.iter().map(&mut serve).collect()
}

#[test]
fn the_first_write_allocates_and_is_slower() {
    let mut array = Array::new(&pool(Prefill::None, Classes::Mirrored), 1).unwrap();
    let write = (Kind::Write, 0, 4096);
    let times = responses_ns(&mut array, 0, &[write, write]);
    assert_eq!(array.counters().allocations, 1);
    assert!(times[0] >= 10 * MS && times[0] > times[1], "{times:?}");
    // Two copies of each.
    assert_eq!(array.counters().data_writes, 4);
}

#[test]
fn unwritten_segments_are_read_without_drive_io() {
    let mut array = Array::new(&pool(Prefill::None, Classes::Mirrored), 1).unwrap();
    assert_eq!(responses_ns(&mut array, 0, &[(Kind::Read, 0, 4096)]), [0]);
    assert_eq!(array.counters().data_reads, 0);
    let mut filled = Array::new(&pool(Prefill::Serial, Classes::Mirrored), 1).unwrap();
    let write = responses_ns(&mut filled, 0, &[(Kind::Read, 0, 4096), (Kind::Write, 0, 4096)]);
    assert!(write[0] > 0);
    assert_eq!((filled.counters().data_reads, filled.counters().allocations), (1, 0), "space is there already");
}

/// Serial: a LUN's segments are neighbours. Concurrent: those of the two LUNs alternate. Random first writes: in the order
/// of writing, so that reading in order of addresses afterwards is random.
#[test]
fn the_order_of_the_first_writes_is_the_order_on_the_drives() {
    let scan = |array: &mut Array, from_ns| {
        let reads: Vec<_> = (0..8).map(|segment| (Kind::Read, segment * SEGMENT, SEGMENT)).collect();
        responses_ns(array, from_ns, &reads).iter().sum::<u64>()
    };
    let time = |prefill| scan(&mut Array::new(&pool(prefill, Classes::Mirrored), 1).unwrap(), 0);
    let (serial, concurrent) = (time(Prefill::Serial), time(Prefill::Concurrent));
    let mut fresh = Array::new(&pool(Prefill::None, Classes::Mirrored), 1).unwrap();
    let scattered: Vec<_> = [5, 0, 3, 7, 1, 6, 2, 4].map(|segment| (Kind::Write, segment * SEGMENT, SEGMENT)).into();
    responses_ns(&mut fresh, 0, &scattered);
    let random = scan(&mut fresh, 100_000 * MS);
    println!("scan of a LUN: {serial} ns filled serially, {concurrent} concurrently, {random} randomly");
    assert!(serial <= concurrent && serial < random);
}

#[test]
fn cold_segments_are_demoted_without_loss() {
    // Raw 64 x 5 cells of a row unit: 80 segments' worth of cells, 32 of them used by mirrored LUNs.
    let cells = 64 / 4 * u64::from(MEMBERS);
    let low_free_bytes = (cells - 16) * SEGMENT;
    let classes = Classes::Migrating { parity_width: 5, low_free_bytes, high_free_bytes: low_free_bytes };
    let mut array = Array::new(&pool(Prefill::Serial, classes), 1).unwrap();
    // One request, and then an idle host.
    responses_ns(&mut array, 0, &[(Kind::Read, 0, 4096)]);
    while array.next_event_ns() != u64::MAX {
        array.advance(array.next_event_ns(), &mut vec![]);
    }
    let moved = array.counters().migrated_segments;
    assert!(moved > 0, "idle time was used");
    let all: Vec<_> = (0..16).map(|segment| (Kind::Read, segment * SEGMENT, 4096)).collect();
    let times = responses_ns(&mut array, 1_000_000 * MS, &all);
    assert!(times.iter().all(|&ns| ns > 0), "every segment is on the drives still");
    // Writing moves a segment back.
    let writes: Vec<_> = (0..16).map(|segment| (Kind::Write, segment * SEGMENT, 4096)).collect();
    responses_ns(&mut array, 2_000_000 * MS, &writes);
    assert!(array.counters().promotions > 0);
}

#[test]
fn a_pool_without_room_ends_the_run_by_name() {
    let mut description = pool(Prefill::Serial, Classes::Mirrored);
    description.luns.push(Lun {
        name: "c".to_owned(),
        group: 0,
        start_bytes: 0,
        length_bytes: 40 * SEGMENT,
        prefill: Prefill::None,
    });
    let mut array = Array::new(&description, 1).unwrap();
    for segment in 16..56u64 {
        array.submit(segment * 1000 * MS, segment as u32, &request(Kind::Write, segment * SEGMENT, 4096));
        let mut done = vec![];
        array.advance((segment + 1) * 1000 * MS, &mut done);
    }
    assert!(array.data_loss().unwrap().contains("pool is full"), "{:?}", array.data_loss());
}
