//! A database: closed forms of group commit, checkpoints, full pages and shared buffers.

use headstack_workload::Kind;
use headstack_workload::quantity::Bytes;
use headstack_workload::scenario::{Facts, Scenario, ScenarioRun, StreamKind};

use crate::fake::{Done, Fake, Outcome, luns};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const MS: u64 = 1_000_000;
const S: u64 = 1_000_000_000;

/// A database whose 1 MiB of pages is in memory, on files for log and data.
fn database(keys: &str) -> Scenario {
    let text = format!(
        "name = \"test\"\nrun_length = {{ time = \"1h\" }}\n[[streams]]\nname = \"x\"\n[streams.database]\n\
         clients = 1\nshared_buffers = \"4MiB\"\nsize = \"1MiB\"\nlog_record = \"600B\"\n{keys}"
    );
    Scenario::from_toml("s.toml", &text).unwrap_or_else(|error| panic!("{error}"))
}

/// Runs on a system where a write takes 1 ms, a sync 2 ms, and a read no time.
fn run(scenario: &Scenario, limit_ns: u64) -> Outcome {
    let latency_ns = |request: &headstack_workload::Request| match request.kind {
        Kind::Read | Kind::Trim => 0,
        Kind::Write => MS,
        Kind::Flush => 2 * MS,
    };
    let fake = Fake { latency_ns, limit_ns, limit_requests: usize::MAX, ..Fake::default() };
    fake.run(scenario, &luns(&[("wal", GIB), ("data", GIB)]))
}

struct Result {
    per_s: f64,
    commit_ms: [f64; 2],
    per_sync: f64,
    full_pages: u64,
    checkpoint_pages: u64,
    checkpoints: u64,
}

fn result(outcome: &Outcome) -> Result {
    let Facts::Database {
        transactions_per_s,
        commit_ns,
        commits_per_sync,
        full_pages,
        checkpoint_pages,
        checkpoints,
        ..
    } = *outcome.facts("x")
    else {
        panic!()
    };
    Result {
        per_s: transactions_per_s,
        commit_ms: commit_ns.map(|ns| ns / 1e6),
        per_sync: commits_per_sync,
        full_pages,
        checkpoint_pages,
        checkpoints,
    }
}

fn is_in_log(done: &Done) -> bool {
    done.request.offset_bytes < GIB
}

/// One client: a transaction costs a write and a sync of the log.
#[test]
fn one_client_commits_once_a_write_and_sync() {
    let outcome = run(&database("full_page_writes = false"), 60 * S);
    let result = result(&outcome);
    assert!((result.per_s - 1_000.0 / 3.0).abs() < 0.5, "{}", result.per_s);
    assert!((result.per_sync - 1.0).abs() < 1e-9 && result.commit_ms.iter().all(|ms| (3.0..3.05).contains(ms)));
    let syncs: Vec<_> =
        outcome.done.iter().filter(|done| done.request.kind == Kind::Flush && is_in_log(done)).collect();
    assert!(syncs.iter().all(|done| done.request.offset_bytes == 0 && !done.request.force_unit_access));
    // O_DSYNC needs no sync.
    let forced = run(&database("full_page_writes = false\nsync = \"open_datasync\""), 60 * S);
    assert!((self::result(&forced).per_s - 1_000.0).abs() < 1.0);
    let of_log: Vec<_> = forced.done.iter().filter(|done| is_in_log(done)).collect();
    assert!(of_log.iter().all(|done| done.request.kind == Kind::Write && done.request.force_unit_access));
    let synced = run(&database("full_page_writes = false\nsync = \"fsync\""), S);
    assert!(synced.done.iter().any(|done| done.request.kind == Kind::Flush && done.request.force_unit_access));
}

/// n clients without work of their own: the writer commits once alone while the others wait, then all commit together,
/// so that two rounds serve n + 1 transactions. A commit waits for up to two rounds.
#[test]
fn n_clients_commit_once_in_two_rounds() {
    for clients in [2, 16, 100] {
        let scenario = database("full_page_writes = false").with_clients(clients);
        let result = result(&run(&scenario, 60 * S));
        let expected = f64::from(clients + 1) / 0.006;
        assert!((result.per_s / expected - 1.0).abs() < 0.01, "{clients}: {} {expected}", result.per_s);
        assert!((result.per_sync / (f64::from(clients + 1) / 2.0) - 1.0).abs() < 0.01);
        assert!(result.commit_ms[1] < 6.1, "{:?}", result.commit_ms);
    }
    // With a delay of the writer for others, each round serves all: n / t in the limit.
    let delayed = database("full_page_writes = false\ncommit_delay = \"1us\"").with_clients(16);
    let result = result(&run(&delayed, 60 * S));
    assert!((result.per_s / (16.0 / 0.003_001) - 1.0).abs() < 0.01, "{}", result.per_s);
}

/// Log writes take whole pages, and the last one again until it is full.
#[test]
fn the_log_is_written_in_pages_in_a_circle() {
    let outcome = run(&database("full_page_writes = false"), 60 * S);
    let writes: Vec<u64> = outcome
        .done
        .iter()
        .filter(|done| done.request.kind == Kind::Write && is_in_log(done))
        .map(|done| done.request.offset_bytes)
        .collect();
    // 8 KiB hold 13.65 records of 600 bytes.
    assert!(writes[..13].iter().all(|&at_bytes| at_bytes == 0) && writes[14] == 8192, "{:?}", &writes[..16]);
}

/// A checkpoint writes each changed page once, spread over 90 % of the time to the next one, and syncs the data.
#[test]
fn checkpoints_spread_their_writes_and_sync_the_data() {
    let keys = "full_page_writes = false\ncheckpoint_timeout = \"30s\"";
    let outcome = run(&database(keys), 61 * S);
    let result = result(&outcome);
    let pages: Vec<&Done> =
        outcome.done.iter().filter(|done| done.request.kind == Kind::Write && !is_in_log(done)).collect();
    let in_first: Vec<u64> =
        pages.iter().filter(|done| done.issued_ns < 60 * S).map(|done| done.request.offset_bytes).collect();
    assert_eq!(in_first.len(), 128, "all pages of 1 MiB, once");
    assert!(in_first.is_sorted());
    let times: Vec<f64> = pages.iter().map(|done| done.issued_ns as f64 / 1e9 - 30.0).filter(|&at| at < 30.0).collect();
    for share in [0.25, 0.5, 1.0] {
        let at = times[(127.0 * share) as usize];
        assert!((at - 27.0 * share).abs() < 0.5, "{share} of the pages at {at} s");
    }
    let sync = outcome.done.iter().find(|done| done.request.kind == Kind::Flush && !is_in_log(done)).unwrap();
    assert!(sync.request.force_unit_access && sync.request.offset_bytes == GIB);
    assert!((56.5..57.5).contains(&(sync.issued_ns as f64 / 1e9)), "{}", sync.issued_ns);
    assert_eq!(result.checkpoints, 1);
    assert!(result.checkpoint_pages >= 128);
}

/// The first change of a page after the start of a checkpoint adds the page to the log; a small log starts checkpoints.
#[test]
fn full_pages_fill_the_log_which_starts_checkpoints() {
    let outcome = run(&database("checkpoint_timeout = \"30s\""), 59 * S);
    assert_eq!(result(&outcome).full_pages, 256, "128 pages, before the checkpoint and after its start");
    // The log of 64 MiB / 1.9 starts a checkpoint after 35.3 MB: 88 s, at 333 transactions of 1,200 bytes a second.
    let keys = "full_page_writes = false\nmax_wal_size = \"64MiB\"\ncheckpoint_timeout = \"1h\"";
    let mut small = database(keys);
    let StreamKind::Database(described) = &mut small.streams[0].kind else { panic!() };
    described.record_bytes = 1_200;
    let outcome = run(&small, 100 * S);
    let first = outcome.done.iter().find(|done| done.request.kind == Kind::Write && !is_in_log(done)).unwrap();
    assert!((87.5..89.5).contains(&(first.issued_ns as f64 / 1e9)), "{}", first.issued_ns);
}

/// A page that is not in memory is read, after the changed page that it replaces is written.
#[test]
fn misses_read_pages_and_evict_changed_ones() {
    let keys = "full_page_writes = false\ncheckpoint_timeout = \"1h\"";
    let mut scenario = database(keys);
    let StreamKind::Database(database) = &mut scenario.streams[0].kind else { panic!() };
    database.size = Some(Bytes(40 * MIB));
    let outcome = run(&scenario, 60 * S);
    let Facts::Database { transactions, read_pages, evicted_pages, .. } = *outcome.facts("x") else { panic!() };
    // A tenth of the pages is in memory; nearly every page that is replaced was changed.
    assert!((read_pages as f64 / transactions as f64 - 0.9).abs() < 0.02, "{read_pages} {transactions}");
    assert!(evicted_pages + 512 >= read_pages && evicted_pages < read_pages, "{evicted_pages} {read_pages}");
}

/// Without files for log and data, the log takes the first part of the range, and syncs cover everything.
#[test]
fn a_system_without_files_is_divided() {
    let scenario = database("log_space = \"64MiB\"");
    let fake = Fake { limit_ns: S, limit_requests: usize::MAX, ..Fake::default() };
    let outcome = fake.run(&scenario, &luns(&[("drive", GIB)]));
    let at = |done: &&Done| done.request.offset_bytes;
    assert!(outcome.done.iter().filter(|done| done.request.kind == Kind::Write).all(|done| at(&done) < 64 * MIB));
    assert!(outcome.done.iter().filter(|done| done.request.kind == Kind::Flush).all(|done| at(&done) == 0));
    let small = ScenarioRun::new(&scenario, &luns(&[("drive", 32 * MIB)]), 512, 1);
    let error = small.err().unwrap().to_string();
    assert!(error.contains("less than the log"), "{error}");
}

#[test]
fn impossible_databases_are_refused_in_one_line() {
    for (keys, expected) in [
        ("changed_pages = 2", "changed_pages: 2 is out of range; must be 0 to pages (1)"),
        ("checkpoint_completion_target = 0.0", "checkpoint_completion_target"),
        ("max_wal_size = \"1MiB\"", "must be 32MiB or more"),
        ("page = \"0B\"", "a page has content"),
        ("sync = \"none\"", "fdatasync"),
    ] {
        let text = format!(
            "name = \"test\"\nrun_length = {{ time = \"1h\" }}\n[[streams]]\nname = \"x\"\n[streams.database]\n\
             clients = 1\nshared_buffers = \"4MiB\"\nlog_record = \"600B\"\n{keys}"
        );
        let error = Scenario::from_toml("s.toml", &text).unwrap_err().to_string();
        assert!(error.contains(expected) && !error.contains('\n'), "{error}");
    }
}
