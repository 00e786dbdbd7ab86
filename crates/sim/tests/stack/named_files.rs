//! Files in a file system: a sync covers one of them, commits serve all, and synced data survive cuts.

use std::collections::BTreeMap;

use headstack_sim::stack::description::{
    FileDescription, JournalDescription, JournalKind, LayerDescription, PageCacheDescription,
};
use headstack_sim::{StackDescription, SystemDescription};
use headstack_workload::{Kind, Request};

use super::counted;
use super::files::{by_hand, cache, ext4, forced, fsync, ssd};
use super::zfs::{count, small};
use crate::common::bench::Bench;
use crate::common::{Dice, US, flush, request};

const MIB: u64 = 1 << 20;
const PAGE: u64 = 4096;
/// First bytes of the files `wal` and `data`.
const WAL: u64 = MIB;
const DATA: u64 = 3 * MIB;

fn with_files(layer: LayerDescription, below: SystemDescription) -> SystemDescription {
    with_files_over(layer, vec![below])
}

fn with_files_over(layer: LayerDescription, below: Vec<SystemDescription>) -> SystemDescription {
    let file = |name: &str, mib: u64| FileDescription { name: name.to_owned(), length_bytes: mib * MIB };
    let files = vec![file("wal", 2), file("data", 64)];
    SystemDescription::Stack(Box::new(StackDescription { name: "test".to_owned(), layer, below, files }))
}

fn on_ext4(written_bytes: u64) -> SystemDescription {
    with_files(LayerDescription::Journal(JournalDescription { written_bytes, ..ext4() }), ssd())
}

fn cached(below: SystemDescription) -> SystemDescription {
    with_files(LayerDescription::PageCache(cache(64 << 20)), below)
}

fn write(at_bytes: u64, length_bytes: u64) -> Request {
    request(Kind::Write, at_bytes, length_bytes)
}

/// A sync of the file at an address.
fn sync_of(at_bytes: u64, sync: Request) -> Request {
    Request { offset_bytes: at_bytes, ..sync }
}

/// A sync of the log takes a write and a flush, however many pages of the data are dirty; they stay dirty.
#[test]
fn a_sync_of_a_file_leaves_the_pages_of_others_dirty() {
    let mut bench = Bench::new(&cached(on_ext4(1 << 30)));
    bench.takes_ns(&write(DATA, 100 * PAGE));
    bench.takes_ns(&write(WAL, PAGE));
    let took_ns = bench.takes_ns(&sync_of(WAL, flush()));
    assert_eq!(took_ns, by_hand(&[write(WAL, PAGE), flush()]));
    assert_eq!(counted(&bench.system, "written_back_pages"), 1);
    assert_eq!(bench.volatile(), [(DATA, DATA + 100 * PAGE)]);
    bench.takes_ns(&forced(write(WAL + PAGE, PAGE)));
    assert_eq!(counted(&bench.system, "written_back_pages"), 2, "O_DSYNC is a sync of the file that it writes");
    bench.takes_ns(&flush());
    assert_eq!((counted(&bench.system, "written_back_pages"), bench.volatile()), (102, vec![]), "all files");
}

/// A sync does not wait for another file's pages: their writes take turns at the device.
#[test]
fn a_sync_does_not_wait_for_the_sync_of_another_file() {
    let narrow = PageCacheDescription { writes_max: 1, write_bytes_max: 128 << 10, ..cache(64 << 20) };
    let mut bench = Bench::new(&with_files(LayerDescription::PageCache(narrow), on_ext4(1 << 30)));
    bench.takes_ns(&write(DATA, 4 * MIB));
    let of_data = bench.submit(&sync_of(DATA, flush()));
    bench.submit(&write(WAL, PAGE));
    bench.run_to(bench.now_ns + 10 * US);
    let of_log = bench.submit(&sync_of(WAL, flush()));
    let order: Vec<u32> = bench.settle().iter().map(|done| done.id).collect();
    assert_eq!(order, [of_log, of_data]);
}

/// Allocations of the data file do not make an overwrite of the log wait for a commit.
#[test]
fn a_sync_needs_no_commit_for_changes_of_another_file() {
    let mut bench = Bench::new(&on_ext4(DATA));
    bench.takes_ns(&write(DATA, PAGE));
    bench.takes_ns(&write(WAL, PAGE));
    let writes = [write(DATA, PAGE), write(WAL, PAGE)];
    let flush_ns = by_hand(&[writes[0], writes[1], flush()]) - by_hand(&writes);
    assert_eq!(bench.takes_ns(&sync_of(WAL, flush())), flush_ns);
    assert_eq!(counted(&bench.system, "journal_commits"), 0);
    bench.takes_ns(&sync_of(DATA, flush()));
    assert_eq!(counted(&bench.system, "journal_commits"), 1);
}

/// One commit serves all files. In ext4's ordered mode it waits for data of other files in space that it allocates; in
/// XFS it does not.
#[test]
fn a_commit_in_ordered_mode_waits_for_the_data_of_other_files() {
    for (kind, is_ordered) in [(JournalKind::Ext4, true), (JournalKind::Xfs, false)] {
        let journal = LayerDescription::Journal(JournalDescription { kind, barriers: false, external: true, ..ext4() });
        let mut bench = Bench::new(&with_files_over(journal, vec![ssd(), ssd()]));
        bench.takes_ns(&write(WAL, PAGE));
        let writes: Vec<u32> = (0..32).map(|number| bench.submit(&write(DATA + number * MIB, MIB))).collect();
        let of_log = bench.submit(&sync_of(WAL, flush()));
        let order: Vec<u32> = bench.settle().iter().map(|done| done.id).collect();
        let place = |id: u32| order.iter().position(|&done| done == id).unwrap();
        let last_data = writes.iter().map(|&id| place(id)).max().unwrap();
        assert_eq!(place(of_log) > last_data, is_ordered, "{kind:?}: {order:?}");
        bench.takes_ns(&sync_of(DATA, flush()));
        let commits = if is_ordered { "journal_commits" } else { "log_forces" };
        assert_eq!(counted(&bench.system, commits), 1, "the commit held the allocations of both files");
    }
}

/// A trim frees space, as the deletion of a file does; a write there allocates again, and its sync needs a commit.
#[test]
fn a_trim_frees_space_for_the_next_allocation() {
    let mut bench = Bench::new(&on_ext4(1 << 30));
    bench.takes_ns(&write(DATA, PAGE));
    bench.takes_ns(&sync_of(DATA, flush()));
    assert_eq!(counted(&bench.system, "journal_commits"), 0, "an overwrite");
    bench.takes_ns(&request(Kind::Trim, DATA, PAGE));
    bench.takes_ns(&write(DATA, PAGE));
    bench.takes_ns(&sync_of(DATA, flush()));
    assert_eq!(counted(&bench.system, "journal_commits"), 1);
}

/// A commit of the log file puts its own records into log blocks, not those of the data.
#[test]
fn a_commit_of_zfs_takes_the_records_of_its_file() {
    let zfs = LayerDescription::Zfs(Box::new(small(256 * MIB)));
    let mut bench = Bench::new(&with_files(zfs, super::zfs::ssd()));
    (0..20).for_each(|number| _ = bench.takes_ns(&write(DATA + number * 128 * 1024, 128 * 1024)));
    bench.takes_ns(&write(WAL, 2048));
    let before = bench.volatile();
    bench.takes_ns(&sync_of(WAL, flush()));
    assert_eq!((count(&bench, "zil_blocks"), count(&bench, "zil_bytes")), (1, 4096));
    assert_eq!((before.len(), bench.volatile()), (2, vec![(DATA, DATA + 20 * 128 * 1024)]));
    bench.takes_ns(&sync_of(DATA, flush()));
    assert_eq!(bench.volatile(), []);
}

/// A state of the test below: when the newest write of each page ended, and the newest completed sync of each file.
#[derive(Default)]
struct History {
    ended: BTreeMap<u64, u64>,
    writes: BTreeMap<u32, u64>,
    syncs: BTreeMap<u32, (u64, Option<usize>)>,
    synced: [u64; 3],
}

/// The file of a page: none before the log, the log, or the data.
fn file_of(page: u64) -> usize {
    match page * PAGE {
        at_bytes if at_bytes < WAL => 0,
        at_bytes if at_bytes < DATA => 1,
        _ => 2,
    }
}

impl History {
    fn note(&mut self, id: u32, number: u64) {
        if let Some((begun, file)) = self.syncs.remove(&id) {
            let covered = file.map_or(0..3, |file| file..file + 1);
            self.synced[covered].iter_mut().for_each(|synced| *synced = begun.max(*synced));
        }
        if let Some(page) = self.writes.remove(&id) {
            self.ended.insert(page, number);
        }
    }

    /// Checks that no page is at risk that a completed sync covers; returns the number of pages looked at.
    fn check(&self, at_risk: &[(u64, u64)]) -> u64 {
        let pages = at_risk.iter().flat_map(|&(from, to)| from / PAGE..to.div_ceil(PAGE));
        let look = |page: u64| {
            let end = self.ended.get(&page).copied().unwrap_or(u64::MAX);
            let synced = self.synced[file_of(page)];
            assert!(end >= synced, "page {page}: a write that ended at {end} is at risk after sync {synced}");
        };
        pages.map(look).count() as u64
    }
}

/// Writes and syncs of several files: at every event, no data are at risk that a completed sync of their file covers.
fn survive_cuts(system: &SystemDescription, seed: u64) {
    let mut bench = Bench::new(system);
    let mut dice = Dice(seed);
    let mut history = History::default();
    let mut checked = 0;
    for number in 1..800 {
        if dice.below(4) == 0 {
            let sync = if dice.below(2) == 0 { fsync() } else { flush() };
            let file = [None, Some(1), Some(1), Some(2)][dice.below(4) as usize];
            let at_bytes = file.map_or(0, |file| [0, WAL, DATA][file] + PAGE);
            history.syncs.insert(bench.submit(&sync_of(at_bytes, sync)), (number, file));
        } else {
            let page = [255, WAL / PAGE, DATA / PAGE][dice.below(3) as usize] + dice.below(100);
            history.ended.remove(&page);
            history.writes.retain(|_, written| *written != page);
            history.writes.insert(bench.submit(&write(page * PAGE, PAGE)), page);
        }
        for _ in 0..dice.below(8) {
            let next_ns = bench.system.next_event_ns();
            if next_ns == u64::MAX {
                break;
            }
            for done in bench.run_to(next_ns) {
                history.note(done.id, number);
            }
            checked += history.check(&bench.volatile());
        }
    }
    assert!(checked > 1_000 && history.synced.iter().all(|&synced| synced > 100), "{checked} {:?}", history.synced);
}

#[test]
fn synced_files_survive_a_cut_at_any_event() {
    for (seed, kind) in [(1, JournalKind::Ext4), (2, JournalKind::Xfs)] {
        let journal = LayerDescription::Journal(JournalDescription { kind, ..ext4() });
        let below = with_files(journal, ssd());
        survive_cuts(&with_files(LayerDescription::PageCache(cache(4 << 20)), below.clone()), seed);
        survive_cuts(&below, seed + 10);
    }
    survive_cuts(&with_files(LayerDescription::Zfs(Box::new(small(256 * MIB))), super::zfs::ssd()), 5);
}

/// Files must fit, and need names and sizes of their own.
#[test]
fn impossible_files_are_refused() {
    let refused = |files: &[(&str, u64)]| {
        let files = files.iter().map(|&(name, length_bytes)| FileDescription { name: name.to_owned(), length_bytes });
        let layer = LayerDescription::PageCache(cache(64 << 20));
        let stack = StackDescription { name: "x".to_owned(), layer, below: vec![ssd()], files: files.collect() };
        SystemDescription::Stack(Box::new(stack)).check().unwrap_err().to_string()
    };
    for (files, expected) in [
        (vec![("a", MIB), ("a", MIB)], "must have a name of its own"),
        (vec![("", MIB)], "must have a name of its own"),
        (vec![("a", 1000)], "must be a multiple of 1 MiB"),
        (vec![("a", 767 * MIB), ("b", MIB)], "after the file system"),
    ] {
        let error = refused(&files);
        assert!(error.contains(expected), "{error}");
    }
}
