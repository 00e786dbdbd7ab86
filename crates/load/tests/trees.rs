//! Tests of loads on trees of files: creation, operations and findings.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use headstack_jobfiles::Sync;
use headstack_jobfiles::trees::{Format, Operation, Order, Tree, TreeLoad, TreePhase};
use headstack_load::trees::{TreeSpec, play_trees};
use headstack_load::{LoadError, Progress};
use headstack_result::RunResult;
use headstack_workload::ArrivalProcess;

const SECOND_NS: u64 = 1_000_000_000;

/// A directory that is removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("headstack-trees-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Folder(path)
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn tree(folder: &Folder) -> Tree {
    Tree {
        name: "t".to_owned(),
        anchor: folder.path().display().to_string(),
        depth: 2,
        width: 2,
        files: 5,
        has_files_everywhere: false,
        sizes: vec![(8_192, 50.0), (20_480, 50.0)],
        total_bytes: None,
        used_bytes: None,
    }
}

fn load(operation: Operation) -> TreeLoad {
    TreeLoad {
        name: operation.name().to_owned(),
        tree: 0,
        to_tree: None,
        operation,
        read_percent: None,
        files: Order::Once,
        requests: Order::Sequential,
        sizes: vec![(4_096, 100.0)],
        threads: 2,
        share_percent: None,
        requests_per_file: None,
        direct: false,
        sync: Sync::No,
        flushes_at_close: false,
    }
}

fn phase(tree: Tree, loads: Vec<TreeLoad>, format: Format) -> TreeSpec {
    let phase = TreePhase {
        name: "r".to_owned(),
        trees: vec![tree],
        loads,
        format,
        rate_per_s: None,
        process: ArrivalProcess::Poisson,
        time_ns: 60 * SECOND_NS,
        warm_up_ns: 0,
        interval_ns: SECOND_NS,
        verify: true,
    };
    TreeSpec { phase, seed: 3, ledger: None }
}

fn play(spec: &TreeSpec) -> RunResult {
    play_trees(spec, &mut |_: &Progress| true).unwrap_or_else(|error| panic!("{error}"))
}

fn count(result: &RunResult, name: &str) -> u64 {
    assert_eq!(result.operations.iter().map(|one| one.errors).sum::<u64>(), 0, "{:?}", result.notes);
    result.operations.iter().find(|one| one.name == name).map_or(0, |one| one.count)
}

fn faults(result: &RunResult) -> Vec<String> {
    let integrity = result.integrity.as_ref().expect("the run was verified");
    assert_eq!(integrity.faults() > 0, !integrity.findings.is_empty());
    integrity.findings.clone()
}

#[test]
fn each_operation_is_done_once_to_each_member() {
    let folder = Folder::new("each");
    let made = play(&phase(tree(&folder), vec![load(Operation::Read)], Format::Anew));
    let bytes: u64 = fs::read_dir(folder.path().join("vdb.1_1.dir/vdb.2_2.dir"))
        .unwrap()
        .map(|file| file.unwrap().metadata().unwrap().len())
        .sum();
    assert!((5 * 8_192..=5 * 20_480).contains(&bytes));
    assert_eq!((count(&made, "open"), count(&made, "close")), (20, 20));
    let whole: u64 = made.kinds.read.bytes;
    assert_eq!((count(&made, "read"), faults(&made)), (whole / 4_096, Vec::new()));
    let integrity = made.integrity.as_ref().unwrap();
    assert_eq!(integrity.intact, integrity.checked, "{integrity:?}");
    // Each sector is checked once under load, and once at the end.
    assert_eq!(integrity.checked, 2 * whole / 512);
    for operation in [Operation::Getattr, Operation::Setattr, Operation::Access, Operation::Open, Operation::Write] {
        let done = play(&phase(tree(&folder), vec![load(operation)], Format::No));
        let expected = if operation == Operation::Write { whole / 4_096 } else { 20 };
        assert_eq!((count(&done, operation.name()), faults(&done)), (expected, Vec::new()), "{operation:?}");
    }
    for (operation, expected) in
        [(Operation::Delete, 20), (Operation::Rmdir, 6), (Operation::Mkdir, 6), (Operation::Create, 20)]
    {
        // A second thread might find a directory that the first has not created yet.
        let alone = TreeLoad { threads: 1, ..load(operation) };
        let done = play(&phase(tree(&folder), vec![alone], Format::No));
        assert_eq!(count(&done, operation.name()), expected, "{operation:?}");
    }
    let cleaned = play(&phase(tree(&folder), Vec::new(), Format::Clean));
    assert_eq!(cleaned.operations, []);
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|member| member.unwrap().file_name()).collect();
    assert_eq!(left, [".headstack-tree"]);
}

#[test]
fn members_are_made_removed_and_read_at_the_same_time() {
    let folder = Folder::new("mix");
    let of = |operation, files| TreeLoad { files, ..load(operation) };
    let loads = vec![
        of(Operation::Create, Order::Random),
        of(Operation::Delete, Order::Random),
        of(Operation::Write, Order::Random),
        TreeLoad { requests: Order::Random, read_percent: Some(70.0), ..of(Operation::Read, Order::Random) },
        of(Operation::Getattr, Order::Sequential),
    ];
    let mut spec = phase(tree(&folder), loads, Format::Anew);
    spec.phase.time_ns = SECOND_NS / 2;
    let result = play(&spec);
    for name in ["create", "delete", "write", "read", "getattr"] {
        assert!(count(&result, name) > 10, "{name}: {:?}", result.notes);
    }
    assert_eq!(faults(&result), Vec::<String>::new());
    assert!(result.passed(), "{:?}", result.checks);
    assert_eq!(result.streams.len(), 5);
}

/// Returns the findings of a check after `change` was applied to an unused tree.
fn found(name: &str, change: impl FnOnce(&Path)) -> Vec<String> {
    let folder = Folder::new(name);
    play(&phase(tree(&folder), vec![load(Operation::Write)], Format::Anew));
    change(&folder.path().join("vdb.1_1.dir/vdb.2_1.dir/vdb_f0001.file"));
    faults(&play(&phase(tree(&folder), vec![load(Operation::Read)], Format::No)))
}

#[test]
fn damage_is_found() {
    assert_eq!(found("nothing", |_| {}), Vec::<String>::new());
    let flipped = found("flip", |file| {
        let file = fs::OpenOptions::new().read(true).write(true).open(file).unwrap();
        let mut byte = [0];
        file.read_exact_at(&mut byte, 4_200).unwrap();
        file.write_all_at(&[byte[0] ^ 1], 4_200).unwrap();
    });
    // Found under load, and at the end.
    assert_eq!(flipped.len(), 2);
    assert!(flipped[0].contains("vdb_f0001.file, byte 4096: 1 bits differ"), "{flipped:?}");
    let swapped = found("swap", |file| {
        let other = file.with_file_name("vdb_f0002.file");
        let contents = fs::read(&other).unwrap();
        let length = fs::metadata(file).unwrap().len().min(contents.len() as u64) as usize;
        fs::OpenOptions::new().write(true).open(file).unwrap().write_all_at(&contents[..length], 0).unwrap();
    });
    assert!(swapped[0].contains("has data of file 1"), "{swapped:?}");
}

#[test]
fn foreign_files_are_left_unchanged() {
    let folder = Folder::new("alone");
    fs::create_dir(folder.path()).unwrap();
    fs::write(folder.path().join("thesis.txt"), "years of work").unwrap();
    let error = play_trees(&phase(tree(&folder), Vec::new(), Format::Anew), &mut |_| true).unwrap_err();
    assert!(matches!(error, LoadError::Target { .. }) && error.to_string().contains("thesis.txt"), "{error}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing was created");
    fs::remove_file(folder.path().join("thesis.txt")).unwrap();
    play(&phase(tree(&folder), Vec::new(), Format::Anew));
    // A foreign file in a directory of the tree stays, and so does the directory.
    let stranger = folder.path().join("vdb.1_1.dir/thesis.txt");
    fs::write(&stranger, "years of work").unwrap();
    let error = play_trees(&phase(tree(&folder), Vec::new(), Format::Clean), &mut |_| true).unwrap_err();
    assert!(error.to_string().contains("has files that headstack did not create"), "{error}");
    assert_eq!(fs::read_to_string(&stranger).unwrap(), "years of work");
}

#[test]
fn no_anchor_is_made_among_the_devices() {
    let among = Path::new("/dev/headstack-tree-none");
    let folder = Folder::new("devices");
    std::fs::create_dir(folder.path()).unwrap();
    let link = folder.path().join("link");
    std::os::unix::fs::symlink("/dev", &link).unwrap();
    for anchor in
        [among.to_owned(), link.join("headstack-tree-none"), folder.path().join("link/../dev/headstack-tree-none")]
    {
        let tree = Tree { anchor: anchor.display().to_string(), ..tree(&folder) };
        let error = play_trees(&phase(tree, Vec::new(), Format::Anew), &mut |_| true).unwrap_err();
        assert!(error.to_string().contains("is in /dev"), "{}: {error}", anchor.display());
        assert!(!among.exists(), "{}", anchor.display());
    }
}

#[test]
fn a_refused_tree_removes_the_other_trees() {
    let (folder, taken) = (Folder::new("first"), Folder::new("taken"));
    fs::create_dir(taken.path()).unwrap();
    fs::write(taken.path().join("thesis.txt"), "years of work").unwrap();
    let mut spec = phase(tree(&folder), Vec::new(), Format::Anew);
    spec.phase.trees.push(Tree { name: "u".to_owned(), ..tree(&taken) });
    let error = play_trees(&spec, &mut |_| true).unwrap_err();
    assert!(error.to_string().contains("thesis.txt"), "{error}");
    assert!(!folder.path().exists());
    // A directory that existed before stays, and is empty again.
    fs::create_dir(folder.path()).unwrap();
    play_trees(&spec, &mut |_| true).unwrap_err();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn no_link_leads_out_of_the_tree() {
    let folder = Folder::new("link");
    play(&phase(tree(&folder), Vec::new(), Format::Anew));
    let outside = Folder::new("outside");
    fs::create_dir_all(outside.path().join("vdb.2_1.dir")).unwrap();
    let precious = outside.path().join("vdb.2_1.dir/vdb_f0001.file");
    fs::write(&precious, "precious").unwrap();
    let inner = folder.path().join("vdb.1_1.dir");
    fs::rename(&inner, folder.path().join("aside")).unwrap();
    std::os::unix::fs::symlink(outside.path(), &inner).unwrap();
    for operation in [Operation::Write, Operation::Delete, Operation::Setattr, Operation::Read] {
        let spec = phase(tree(&folder), vec![load(operation)], Format::No);
        // Nothing exists behind a link.
        let result = play(&spec);
        assert!(result.operations.iter().all(|one| one.count < 100));
    }
    let _ = play_trees(&phase(tree(&folder), Vec::new(), Format::Clean), &mut |_| true);
    assert_eq!(fs::read_to_string(&precious).unwrap(), "precious");
}

#[test]
fn a_rate_is_kept_and_response_times_count_from_when_operations_were_due() {
    let folder = Folder::new("rate");
    let mut spec =
        phase(tree(&folder), vec![TreeLoad { files: Order::Random, ..load(Operation::Getattr) }], Format::Anew);
    (spec.phase.rate_per_s, spec.phase.time_ns) = (Some(400.0), 2 * SECOND_NS);
    (spec.phase.process, spec.phase.interval_ns) = (ArrivalProcess::Fixed, SECOND_NS / 2);
    let result = play(&spec);
    let done = count(&result, "getattr");
    assert!((700..=800).contains(&done), "{done} of 800 on a busy machine");
    assert_eq!(result.offered_per_s, Some(400.0));
    assert_eq!(result.intervals.iter().map(|interval| interval.count).sum::<u64>(), done);
    assert!((3..=5).contains(&result.intervals.len()), "{}", result.intervals.len());
}

#[test]
fn loads_keep_to_their_shares() {
    let folder = Folder::new("share");
    let of = |operation, percent| TreeLoad { files: Order::Random, share_percent: Some(percent), ..load(operation) };
    let mut spec = phase(tree(&folder), vec![of(Operation::Getattr, 80.0), of(Operation::Access, 20.0)], Format::Anew);
    (spec.phase.time_ns, spec.phase.verify) = (SECOND_NS / 2, false);
    let result = play(&spec);
    let (most, least) = (count(&result, "getattr") as f64, count(&result, "access") as f64);
    assert!(most > 1_000.0 && (most / least / 4.0 - 1.0).abs() < 0.2, "{most} and {least}");
}

#[test]
fn a_copy_has_its_own_stamps_and_a_move_removes_its_source() {
    let (from, to) = (Folder::new("from"), Folder::new("to"));
    let run = |operation, verify, format| {
        let mut spec = phase(tree(&from), vec![TreeLoad { to_tree: Some(1), ..load(operation) }], format);
        let target = Tree { name: "u".to_owned(), ..tree(&to) };
        spec.phase.trees.push(target);
        spec.phase.verify = verify;
        spec
    };
    // The target must be empty, so only its directories are created.
    play(&phase(tree(&from), Vec::new(), Format::Anew));
    play(&phase(tree(&to), Vec::new(), Format::Folders));
    let copied = play(&run(Operation::Copy, true, Format::No));
    assert_eq!((count(&copied, "copy"), faults(&copied)), (20, Vec::new()));
    assert!(matches!(play_trees(&run(Operation::Move, true, Format::No), &mut |_| true), Err(LoadError::Job { .. })));
    let mut plain = phase(tree(&from), Vec::new(), Format::Anew);
    plain.phase.verify = false;
    play(&plain);
    let mut folders = phase(tree(&to), Vec::new(), Format::Folders);
    folders.phase.verify = false;
    play(&folders);
    let moved = play(&run(Operation::Move, false, Format::No));
    assert_eq!(count(&moved, "move"), 20);
    assert_eq!(fs::read_dir(from.path().join("vdb.1_1.dir/vdb.2_1.dir")).unwrap().count(), 0);
    assert_eq!(fs::read_dir(to.path().join("vdb.1_1.dir/vdb.2_1.dir")).unwrap().count(), 5);
}

#[test]
fn a_stop_keeps_results() {
    let folder = Folder::new("stop");
    let mut spec =
        phase(tree(&folder), vec![TreeLoad { files: Order::Random, ..load(Operation::Getattr) }], Format::Anew);
    spec.phase.verify = false;
    let result = play_trees(&spec, &mut |now: &Progress| now.completed < 100).unwrap();
    assert_eq!(result.ended_early.as_deref(), Some("stopped by hand"));
    assert!(count(&result, "getattr") >= 100 && result.duration_ns < 30 * SECOND_NS);
}
