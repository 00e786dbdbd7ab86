//! File systems and page caches: what a sync sends to the device, writeback, read-ahead, and data that survive cuts.

use std::collections::BTreeMap;

use headstack_sim::SystemDescription;
use headstack_sim::device::DeviceDescription;
use headstack_sim::drive::Completion;
use headstack_sim::stack::description::{JournalDescription, JournalKind, LayerDescription, PageCacheDescription};
use headstack_workload::{Kind, Request};

use super::{counted, over};
use crate::common::bench::Bench;
use crate::common::flash::small_ssd;
use crate::common::{Dice, MS, US, assert_close, closed, flush, line, read, request, write};

const SECOND: u64 = 1_000_000_000;
const PAGE: u64 = 4096;
/// Sectors of a page.
const PAGE_SECTORS: u64 = 8;

/// An SSD without capacitors: a flush programs the buffer.
pub fn ssd() -> SystemDescription {
    let mut ssd = small_ssd();
    ssd.buffer.power_loss_protected = false;
    ssd.buffer.flush_ns = 30 * US;
    SystemDescription::Drive(DeviceDescription::Ssd(ssd))
}

pub fn ext4() -> JournalDescription {
    JournalDescription {
        kind: JournalKind::Ext4,
        journal_bytes: 16 << 20,
        external: false,
        interval_ns: 5 * SECOND,
        barriers: true,
        forced_writes: true,
        allocation_blocks: 4,
        timestamp_ns: 4 * MS,
        checkpoint_ns: 30 * SECOND,
        written_bytes: 0,
    }
}

pub fn cache(memory_bytes: u64) -> PageCacheDescription {
    PageCacheDescription {
        memory_bytes,
        background_percent: 10,
        dirty_percent: 20,
        expire_ns: 30 * SECOND,
        writeback_interval_ns: 5 * SECOND,
        write_bytes_max: 1280 << 10,
        writes_max: 128,
        read_ahead_bytes: 128 << 10,
        call_ns: 2 * US,
        ns_per_byte: 0.1,
    }
}

fn on(journal: JournalDescription) -> SystemDescription {
    let below = if journal.external { vec![ssd(), ssd()] } else { vec![ssd()] };
    over(LayerDescription::Journal(journal), &below)
}

fn cached(cache: PageCacheDescription, below: &SystemDescription) -> SystemDescription {
    over(LayerDescription::PageCache(cache), std::slice::from_ref(below))
}

pub fn fsync() -> Request {
    Request { force_unit_access: true, ..flush() }
}

pub fn forced(request: Request) -> Request {
    Request { force_unit_access: true, ..request }
}

/// Time of requests one after the other on the bare device.
pub fn by_hand(requests: &[Request]) -> u64 {
    let mut bench = Bench::new(&ssd());
    requests.iter().map(|request| bench.takes_ns(request)).sum()
}

/// A write of blocks of the journal of 16 MiB on the test drive.
fn journal_write(from_block: u64, blocks: u64) -> Request {
    let at_bytes = ext4().journal_at_bytes(768 << 20);
    request(Kind::Write, at_bytes + from_block * PAGE, blocks * PAGE)
}

/// An append and its fsync: data; descriptor and metadata; flush; commit block (FUA). All in series.
#[test]
fn an_append_and_fsync_on_ext4_take_write_journal_flush_and_forced_write() {
    let mut bench = Bench::new(&on(ext4()));
    let took_ns = bench.takes_ns(&write(0, 8)) + bench.takes_ns(&fsync());
    let parts = [write(0, 8), journal_write(0, 5), flush(), forced(journal_write(5, 1))];
    assert_eq!(took_ns, by_hand(&parts));
}

/// XFS writes its log buffer once, after a flush.
#[test]
fn an_append_and_fsync_on_xfs_take_write_flush_and_forced_write() {
    let mut bench = Bench::new(&on(JournalDescription { kind: JournalKind::Xfs, ..ext4() }));
    let took_ns = bench.takes_ns(&write(0, 8)) + bench.takes_ns(&fsync());
    assert_eq!(took_ns, by_hand(&[write(0, 8), flush(), forced(journal_write(0, 1))]));
}

/// A device without forced writes gets the write, then a flush.
#[test]
fn without_forced_writes_the_commit_block_is_followed_by_a_flush() {
    let mut bench = Bench::new(&on(JournalDescription { forced_writes: false, ..ext4() }));
    let took_ns = bench.takes_ns(&write(0, 8)) + bench.takes_ns(&fsync());
    let parts = [write(0, 8), journal_write(0, 5), flush(), journal_write(5, 1), flush()];
    assert_eq!(took_ns, by_hand(&parts));
}

/// Without barriers nothing is flushed, and nothing is forced.
#[test]
fn without_barriers_a_commit_only_writes() {
    let mut bench = Bench::new(&on(JournalDescription { barriers: false, ..ext4() }));
    let took_ns = bench.takes_ns(&write(0, 8)) + bench.takes_ns(&fsync());
    assert_eq!(took_ns, by_hand(&[write(0, 8), journal_write(0, 5), journal_write(5, 1)]));
    assert_eq!(bench.takes_ns(&flush()), 0, "fdatasync has nothing to do");
}

/// An overwrite with fdatasync costs the write and one flush; O_DSYNC one forced write. fsync also commits the
/// timestamp, once a tick.
#[test]
fn an_overwrite_needs_no_commit() {
    let written = JournalDescription { written_bytes: 1 << 30, ..ext4() };
    let mut bench = Bench::new(&on(written.clone()));
    assert_eq!(bench.takes_ns(&write(0, 8)) + bench.takes_ns(&flush()), by_hand(&[write(0, 8), flush()]));
    let mut bench = Bench::new(&on(written.clone()));
    assert_eq!(bench.takes_ns(&forced(write(0, 8))), by_hand(&[forced(write(0, 8))]));
    let mut bench = Bench::new(&on(written));
    let commits = |bench: &Bench| counted(&bench.system, "journal_commits");
    bench.takes_ns(&write(0, 8));
    bench.takes_ns(&fsync());
    assert_eq!(commits(&bench), 1);
    // The next write is in the same tick of 4 ms.
    bench.takes_ns(&write(0, 8));
    bench.takes_ns(&fsync());
    assert_eq!(commits(&bench), 1);
    bench.run_to(bench.now_ns + 4 * MS);
    bench.takes_ns(&write(0, 8));
    bench.takes_ns(&fsync());
    assert_eq!(commits(&bench), 2);
}

/// Space is allocated once; a synchronous append waits for the commit.
#[test]
fn a_synchronous_append_waits_for_the_commit() {
    let mut bench = Bench::new(&on(ext4()));
    let parts = [write(0, 8), journal_write(0, 5), flush(), forced(journal_write(5, 1))];
    assert_eq!(bench.takes_ns(&forced(write(0, 8))), by_hand(&parts));
    let again_ns = bench.takes_ns(&forced(write(0, 8)));
    assert!(again_ns < by_hand(&parts) / 2, "{again_ns}");
}

/// An external journal: the data device is flushed first.
#[test]
fn an_external_journal_flushes_the_data_device_first() {
    let mut bench = Bench::new(&on(JournalDescription { external: true, ..ext4() }));
    let took_ns = bench.takes_ns(&write(0, 8)) + bench.takes_ns(&fsync());
    let data = by_hand(&[write(0, 8), flush()]);
    let log = by_hand(&[write(0, 40), flush(), forced(write(40, 8))]);
    assert_eq!(took_ns, data + log);
    assert_eq!(bench.system.devices(), 2);
    assert_eq!(bench.health()[1].name, "journal");
}

/// Everybody who waits shares a commit: the first starts one, the others have the next.
#[test]
fn concurrent_syncs_share_commits() {
    let mut bench = Bench::new(&on(ext4()));
    for block in 0..32 {
        bench.takes_ns(&write(8 * block, 8));
    }
    let syncs: Vec<u32> = (0..32).map(|_| bench.submit(&fsync())).collect();
    let ids: Vec<u32> = bench.run_to(bench.now_ns + 100 * MS).iter().map(|done| done.id).collect();
    assert_eq!(ids, syncs, "in order");
    assert_eq!(counted(&bench.system, "journal_commits"), 1);
}

/// A transaction that nobody syncs is committed after the interval, and its metadata are written in place later.
#[test]
fn the_journal_commits_by_itself() {
    let mut bench = Bench::new(&on(ext4()));
    bench.takes_ns(&write(0, 8));
    bench.run_to(5 * SECOND - 1);
    assert_eq!(counted(&bench.system, "journal_commits"), 0);
    bench.run_to(6 * SECOND);
    assert_eq!(counted(&bench.system, "journal_commits"), 1);
    bench.run_to(40 * SECOND);
    assert_eq!(counted(&bench.system, "metadata_checkpoints"), 1);
}

/// Addresses above the journal, which lies in the middle, are those of the device plus its size.
#[test]
fn the_journal_lies_in_the_middle_of_the_device() {
    let at_bytes = ext4().reserved_at_bytes(768 << 20);
    let mut bench = Bench::new(&on(JournalDescription { written_bytes: 1 << 30, ..ext4() }));
    bench.takes_ns(&request(Kind::Write, at_bytes - 8192, 16384));
    let held = bench.volatile();
    assert_eq!(held, [(at_bytes - 8192, at_bytes + 8192)]);
    bench.takes_ns(&flush());
    assert_eq!(bench.volatile(), []);
}

/// A buffered write and a read of its pages take a system call and a copy.
#[test]
fn pages_in_memory_take_a_call_and_a_copy() {
    let mut bench = Bench::new(&cached(cache(64 << 20), &ssd()));
    let call_ns = 2 * US + 410;
    assert_eq!(bench.takes_ns(&write(800, 8)), call_ns);
    assert_eq!(bench.takes_ns(&read(800, 8)), call_ns);
    let missed_ns = bench.takes_ns(&read(8000, 8));
    assert_eq!(missed_ns, Bench::new(&ssd()).takes_ns(&read(8000, 8)) + call_ns);
    assert_eq!(bench.takes_ns(&read(8000, 8)), call_ns);
}

/// A write of part of a page reads the page first.
#[test]
fn a_partial_page_is_read_before_it_is_written() {
    let mut bench = Bench::new(&cached(cache(64 << 20), &ssd()));
    let read_ns = Bench::new(&ssd()).takes_ns(&read(8000, 8));
    assert_eq!(bench.takes_ns(&write(8001, 2)), read_ns + 2 * US + 102);
    assert_eq!(bench.takes_ns(&write(8003, 2)), 2 * US + 102);
}

/// Dirty pages are written back after 30 s, at the next look, and a sync sends them at once.
#[test]
fn old_pages_are_written_back() {
    let mut bench = Bench::new(&cached(cache(64 << 20), &ssd()));
    bench.run_to(SECOND);
    bench.takes_ns(&write(0, 80));
    bench.run_to(35 * SECOND - 1);
    assert_eq!(counted(&bench.system, "written_back_pages"), 0);
    bench.run_to(36 * SECOND);
    assert_eq!(counted(&bench.system, "written_back_pages"), 10);
    bench.takes_ns(&write(800, 80));
    let volatile = bench.volatile();
    assert_eq!(volatile.last(), Some(&(800 * 512, 880 * 512)), "{volatile:?}");
    bench.takes_ns(&flush());
    assert_eq!(bench.volatile(), []);
    assert_eq!(counted(&bench.system, "written_back_pages"), 20);
}

/// Buffered writes run at the speed of memory until 15 % of it are dirty, then at the speed of the device.
#[test]
fn writers_wait_for_the_device_once_too_many_pages_are_dirty() {
    let memory_bytes = 64 << 20;
    let system = cached(cache(memory_bytes), &ssd());
    let result = super::of(&system, line(65_536, 0.0, 0.0), closed(4), 8_000);
    let direct = super::of(&ssd(), line(1_310_720, 0.0, 0.0), closed(4), 400);
    assert_close(result.throughput_bytes_per_s(), direct.throughput_bytes_per_s(), 10.0, "the device's rate");
    let mut bench = Bench::new(&system);
    let mut last_ns = 0;
    for chunk in 0..600 {
        last_ns = bench.takes_ns(&write(128 * chunk, 128));
        let dirty = bench.volatile().iter().map(|(from, to)| to - from).sum::<u64>();
        assert!(dirty <= memory_bytes * 15 / 100 + (2 << 20) + 65_536, "{dirty} bytes are dirty");
    }
    assert!(last_ns > 10 * US, "the last write waited: {last_ns} ns");
}

/// A sequential reader finds its pages in memory: each read-ahead is 128 KiB.
#[test]
fn sequential_reads_are_read_ahead() {
    let mut bench = Bench::new(&cached(cache(64 << 20), &ssd()));
    let times: Vec<u64> = (0..2_000).map(|page| bench.takes_ns(&read(8 * page, 8))).collect();
    let hits = times.iter().filter(|&&took_ns| took_ns <= 2 * US + 410).count();
    assert!(hits > 1_800, "{hits} of 2,000 reads were hits");
    let random = super::of(&cached(cache(1 << 20), &ssd()), line(4096, 100.0, 100.0), closed(1), 500);
    assert_eq!(crate::common::counter(&random, "read_ahead_pages"), 0);
}

/// Two readers of a page read it once.
#[test]
fn a_page_is_read_once() {
    let mut bench = Bench::new(&cached(cache(64 << 20), &ssd()));
    let ids = [bench.submit(&read(8000, 16)), bench.submit(&read(8000, 24))];
    let done: Vec<u32> = bench.settle().iter().map(|done| done.id).collect();
    assert_eq!(done, ids);
    assert_eq!(counted(&bench.system, "page_cache_reads"), 3);
}

/// Writes, some synced, on a page cache over ext4 and XFS.
#[test]
fn synced_data_survive_a_cut_at_any_event() {
    for (seed, journal) in [(1, ext4()), (2, JournalDescription { kind: JournalKind::Xfs, ..ext4() })] {
        assert_synced_data_survive(&cached(cache(4 << 20), &on(journal)), seed);
    }
}

/// Asserts at every event of writes and syncs that no data of a completed sync are at risk unless they were written
/// again.
pub fn assert_synced_data_survive(system: &SystemDescription, seed: u64) {
    let mut bench = Bench::new(system);
    let mut dice = Dice(seed);
    // When the newest write of each page ended; absent while it is under way. A completed sync covers what had
    // ended when it began.
    let mut ended: BTreeMap<u64, u64> = BTreeMap::new();
    let (mut writes, mut syncs): (BTreeMap<u32, u64>, BTreeMap<u32, u64>) = Default::default();
    let mut synced = 0;
    let mut checked = 0;
    for number in 1..600 {
        if dice.below(5) == 0 {
            let kind = if dice.below(2) == 0 { fsync() } else { flush() };
            syncs.insert(bench.submit(&kind), number);
        } else {
            let page = dice.below(400);
            ended.remove(&page);
            writes.retain(|_, written| *written != page);
            writes.insert(bench.submit(&write(PAGE_SECTORS * page, PAGE_SECTORS)), page);
        }
        for _ in 0..dice.below(8) {
            let next_ns = bench.system.next_event_ns();
            if next_ns == u64::MAX {
                break;
            }
            let done: Vec<Completion> = bench.run_to(next_ns);
            for done in done {
                synced = synced.max(syncs.remove(&done.id).unwrap_or(0));
                if let Some(page) = writes.remove(&done.id) {
                    ended.insert(page, number);
                }
            }
            for (from, to) in bench.volatile() {
                for page in from / PAGE..to.div_ceil(PAGE) {
                    let end = ended.get(&page).copied().unwrap_or(u64::MAX);
                    assert!(end >= synced, "page {page}: a write that ended at {end} is at risk after sync {synced}");
                    checked += 1;
                }
            }
        }
    }
    assert!(checked > 1_000 && synced > 100, "{checked} {synced}");
}
