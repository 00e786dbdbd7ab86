//! Scrub, resilver and sequential rebuild: what they read and write, when, and how they yield.

use headstack_sim::array::description::IncidentKind;
use headstack_sim::gauges::GroupHealth;
use headstack_sim::stack::description::ZfsDescription;
use headstack_workload::Kind;

use super::*;
use crate::common::request;

/// A pool of members that transfer 500 MB/s each, of 512 MiB, with records of 128 KiB.
fn pool(level: Level, members: u32) -> SystemDescription {
    let mut group = arrays::group(level, 0..members, 1);
    let has_records = level.rules().has_records;
    (group.chunk_bytes, group.record_bytes) = if has_records { (4096, RECORD) } else { (64 * KIB, 0) };
    group.member_bytes = 512 * MIB;
    let capacity = group.capacity_bytes();
    let SystemDescription::Drive(member) = sink(512 * MIB, 500_000_000, 200 * US) else { unreachable!() };
    let mut array = arrays::array(group, capacity);
    array.devices = vec![member];
    SystemDescription::Array(array)
}

fn raidz2() -> SystemDescription {
    pool(Level::Raidz { parity: 2 }, 6)
}

fn bench(description: &ZfsDescription, pool: &SystemDescription) -> Bench {
    Bench::new(&zfs(description, std::slice::from_ref(pool)))
}

fn strike(bench: &mut Bench, incident: IncidentKind) {
    bench.system.strike(bench.now_ns, incident).unwrap();
}

fn replace(bench: &mut Bench, member: u32) {
    strike(bench, IncidentKind::MemberFails { member });
    strike(bench, IncidentKind::SpareAdded { group: 0 });
}

/// Bytes that a device has read and written.
fn traffic(bench: &Bench, member: usize) -> (u64, u64) {
    let device = &bench.health()[member];
    (device.read_bytes, device.written_bytes)
}

const SIZE: u64 = 256 * MIB;
const RECORDS: u64 = SIZE / RECORD;

/// The blocks of all members together are all sectors of all records, and each member is filled with its own.
#[test]
fn a_resilver_restores_every_allocated_byte_of_the_member_once() {
    let mut sum = 0;
    for member in 0..6 {
        let mut bench = bench(&small(SIZE), &raidz2());
        replace(&mut bench, member);
        assert_eq!(bench.system.group_states(), [GroupHealth::Rebuilding]);
        bench.settle();
        assert_eq!(bench.system.group_states(), [GroupHealth::Healthy]);
        let restored = count(&bench, "rebuilt_bytes");
        let (read, written) = traffic(&bench, 6);
        // The groups that sync meanwhile write their metadata to every member.
        assert!(read == 0 && (restored..restored + MIB).contains(&written), "{read} read, {written} of {restored}");
        assert_eq!([count(&bench, "zfs_scans"), count(&bench, "rebuilds")], [1, 1]);
        assert_eq!(count(&bench, "zfs_scan_issued_bytes"), SIZE);
        assert_eq!(count(&bench, "zfs_scan_total_bytes"), SIZE);
        sum += restored;
    }
    // 32 sectors of data and 2 parities of 8.
    assert_eq!(sum, RECORDS * 48 * 4096);
}

#[test]
fn mirrors_and_distributed_spares_are_rebuilt_in_order_and_then_scrubbed() {
    let mirrors = pool(Level::Raid10, 4);
    for is_sequential in [false, true] {
        let description = ZfsDescription { sequential_resilver: is_sequential, ..small(SIZE) };
        let mut bench = bench(&description, &mirrors);
        replace(&mut bench, 1);
        bench.settle();
        assert_eq!(count(&bench, "rebuilt_bytes"), SIZE / 2);
        assert_eq!(count(&bench, "rebuilds"), 1);
        // The rebuild walks no metadata; the scrub after it does.
        let scans = 1 + u64::from(is_sequential);
        assert_eq!([count(&bench, "zfs_scans"), count(&bench, "zfs_scan_walked_blocks")], [scans, RECORDS]);
        assert_eq!(count(&bench, "zfs_scan_issued_bytes"), scans * SIZE);
    }
    let draid = pool(Level::Draid { parity: 1, data: 4, spares: 1 }, 11);
    let mut sum = 0;
    for member in 0..11 {
        let mut bench = bench(&small(SIZE), &draid);
        strike(&mut bench, IncidentKind::MemberFails { member });
        bench.settle();
        assert_eq!(bench.system.group_states(), [GroupHealth::Healthy]);
        sum += count(&bench, "rebuilt_bytes");
        assert_eq!(count(&bench, "zfs_scans"), 2);
    }
    assert_eq!(sum, RECORDS * RECORD / 4 * 5);
}

/// Until the end of a resilver, data are read from the other members, while writes go to the new one as well.
#[test]
fn reads_go_to_the_survivors_until_the_resilver_ends() {
    let description = ZfsDescription { arc_max_bytes: 8 * RECORD, ..small(SIZE) };
    let mut bench = bench(&description, &raidz2());
    replace(&mut bench, 2);
    let mut reads = 0;
    while bench.system.group_states() == [GroupHealth::Rebuilding] {
        let record = reads * 7919 % RECORDS;
        let (_, failed) = bench.serve(&request(Kind::Read, record * RECORD, RECORD));
        assert_eq!(failed, []);
        assert_eq!(traffic(&bench, 6).0, 0, "read {reads}");
        bench.run_to(bench.now_ns + 5_000_000);
        reads += 1;
    }
    assert!(reads > 20, "{reads}");
    assert!(count(&bench, "reconstruction_reads") > 0);
    for record in 0..20 {
        bench.takes_ns(&request(Kind::Read, (record * 7919 + 11) % RECORDS * RECORD, RECORD));
    }
    assert!(traffic(&bench, 6).0 > 0, "the new member serves its data");
}

/// A record that is written during a resilver goes to the new member at once, and its old place is not restored.
#[test]
fn records_that_change_meanwhile_are_not_restored_again() {
    // The walk reads all metadata first, and no block is issued before the queue is full.
    let run = |writes: u64| {
        let mut bench = bench(&small(SIZE), &raidz2());
        for record in 0..writes {
            bench.submit(&request(Kind::Write, record * RECORD, RECORD));
        }
        bench.run_to(1_000_000);
        replace(&mut bench, 0);
        bench.settle();
        (count(&bench, "zfs_scan_issued_bytes"), count(&bench, "rebuilt_bytes"))
    };
    let (none, some) = (run(0), run(100));
    assert_eq!(none.0, SIZE);
    assert!(some.0 >= SIZE - 100 * RECORD && some.0 <= SIZE, "{some:?}");
    assert!(some.1 <= none.1, "{some:?} {none:?}");
}

/// A scrub reads every column of every record once, and ends. With little memory it walks and issues in turns.
#[test]
fn a_scrub_reads_all_columns_once_within_its_memory() {
    // The dataset of 8 GiB takes 65,536 blocks.
    let mut array = raidz2();
    let SystemDescription::Array(inner) = &mut array else { unreachable!() };
    let SystemDescription::Drive(member) = sink(4 << 30, 500_000_000, 200 * US) else { unreachable!() };
    (inner.devices, inner.groups[0].member_bytes) = (vec![member], 4 << 30);
    inner.luns[0].length_bytes = inner.groups[0].capacity_bytes();
    let size = 8 << 30;
    let scrub = |memory: u64| {
        let description = ZfsDescription { scan_memory_bytes: memory, ..small(size) };
        let mut bench = bench(&description, &array);
        let scrub = IncidentKind::Scrub { group: 0, repair: false };
        strike(&mut bench, scrub);
        assert!(bench.system.strike(0, scrub).unwrap_err().to_string().contains("wait for the end"));
        bench.settle();
        let read: u64 = (0..6).map(|member| traffic(&bench, member).0).sum();
        // 64 indirect blocks of 64 KiB, of which RAIDZ reads the data columns.
        let metadata = 64 * 64 * KIB;
        // Gaps of up to 32 KiB are read as well: no sector of padding follows 48 sectors.
        assert_eq!(read, size / RECORD * 48 * 4096 + metadata);
        assert_eq!(count(&bench, "rebuilt_bytes"), 0);
        (count(&bench, "zfs_scan_queue_max_bytes"), count(&bench, "zfs_scan_ns"))
    };
    let (large, _) = scrub(64 << 20);
    assert_eq!(large, size / RECORD * 150);
    let (small, took_ns) = scrub(1 << 20);
    assert!(small <= (1 << 20) + 1024 * 150, "{small}");
    assert_eq!(scrub(1 << 20), (small, took_ns), "the same input gives the same result");
}
