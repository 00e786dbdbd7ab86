//! Tests of exports of NBD servers: measurements, refusals and failures.

mod server;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use headstack_jobfiles::{Sync, Verify};
use headstack_load::{EngineKind, Job, Permission, Target, run};
use headstack_nbd::{Framing, command, transmission};
use headstack_result::RunResult;
use headstack_workload::{Kind, Workload};
use serde_json::{Value, json};

use crate::engine::support::{
    KIB, MS, assert_sound, bytes, closed, count, errors, generated, job, measure, open as at_a_rate, requests, spec,
    time, workload,
};
use server::{FLAGS, Quirk, Server, Settings};

const ENGINES: [EngineKind; 2] = [EngineKind::Ring, EngineKind::Psync];
const FRAMINGS: [Framing; 3] = [Framing::Simple, Framing::Structured, Framing::Extended];

fn destroying(server: &Server) -> Permission {
    Permission { write: true, destroy: vec![server.uri()], ..Permission::default() }
}

fn open(uri: &str, permission: &Permission) -> Result<Arc<Target>, String> {
    Target::open(uri, true, Sync::No, permission, &|_| true).map(Arc::new).map_err(|error| error.to_string())
}

fn with(quirk: Quirk) -> Server {
    Server::new(Settings { quirk, ..Settings::default() })
}

fn reading(server: &Server, engine: EngineKind, load: Workload) -> Job {
    job(&[open(&server.uri(), &Permission::default()).unwrap()], engine, load, requests(2000))
}

/// Returns the only note about failures.
#[track_caller]
fn told(result: &RunResult) -> &str {
    let notes: Vec<_> = result.notes.iter().filter(|note| note.contains("failed")).collect();
    assert_eq!(notes.len(), 1, "{:?}", result.notes);
    notes[0]
}

#[test]
fn nbd_writes_are_read_back_with_any_reply_format() {
    for framing in FRAMINGS {
        for engine in ENGINES {
            for (size, depth) in [(4 * KIB, 16), (64 * KIB, 3), (1024 * KIB, 2)] {
                let server = Server::new(Settings { framing, quirk: Quirk::InParts, ..Settings::default() });
                let target = open(&server.uri(), &destroying(&server)).unwrap();
                let changes = json!({"flush_every": 40, "line": {"trim_percent": 10},
                                     "arrivals": {"closed": {"queue_depth": depth}}});
                let count = u64::from(8192 * KIB / size).min(1000);
                let load = workload(size, 40.0, &changes);
                let one = Job { verify: Verify::StampAndRead, ..job(&[target], engine, load, requests(count)) };
                let result = run(&spec(vec![one]), &mut |_| true).unwrap();
                let found = result.integrity.as_ref().expect("the run was verified");
                assert_eq!((found.faults(), errors(&result)), (0, 0), "{framing:?} {engine:?}: {found:?}");
                assert!(found.intact > 0 && result.ended_early.is_none(), "{:?}", result.ended_early);
                assert!(size > 64 * KIB || server.counters().flushes.load(Ordering::Relaxed) > 0);
                assert!(size > 64 * KIB || server.counters().trims.load(Ordering::Relaxed) > 0);
            }
        }
    }
}

#[test]
fn corruption_by_a_server_is_detected() {
    for engine in ENGINES {
        let server = with(Quirk::Corrupts { at_bytes: 5 * 4096 + 100 });
        // The corrupt byte is in one of the blocks that are sampled before the export is overwritten.
        let signature = open(&server.uri(), &destroying(&server)).err().expect("the export looks used");
        let signature = signature.rsplit(' ').next().unwrap().to_owned();
        assert!(signature.starts_with("data:"), "{signature}");
        let permission = Permission { signatures: vec![signature], ..destroying(&server) };
        let target = open(&server.uri(), &permission).unwrap();
        let load =
            workload(4 * KIB, 0.0, &json!({"line": {"random_percent": 0}, "arrivals": {"closed": {"queue_depth": 8}}}));
        let one = Job { verify: Verify::StampAndRead, ..job(&[target], engine, load, requests(100)) };
        let found = run(&spec(vec![one]), &mut |_| true).unwrap().integrity.expect("the run was verified");
        assert_eq!(found.faults(), 1, "{found:?}");
        assert!(found.findings[0].contains("20480"), "{found:?}");
    }
}

#[test]
fn requests_over_nbd_are_those_that_simulation_would_issue() {
    for engine in ENGINES {
        let server = Server::new(Settings::default());
        let target = open(&server.uri(), &destroying(&server)).unwrap();
        let load = workload(8 * KIB, 70.0, &closed(4));
        let one = Job { flushes_at_end: true, ..job(&[target], engine, load, requests(500)) };
        let expected = generated(&one, 500);
        let result = measure(vec![one]);
        assert_eq!(count(&result), 500);
        assert_eq!(bytes(&result), expected.iter().map(|request| u64::from(request.length_bytes)).sum::<u64>());
        let writes = expected.iter().filter(|request| request.kind == Kind::Write).count() as u64;
        assert_eq!(result.kinds.write.count, writes);
        assert_eq!(server.counters().flushes.load(Ordering::Relaxed), 1, "one flush, at the end of the run");
        // The search for signatures comes first.
        assert!(server.counters().requests.load(Ordering::Relaxed) > 501);
        assert_eq!(server.counters().connections.load(Ordering::Relaxed), 1, "the connection of the check is used");
    }
}

#[test]
fn open_loops_over_nbd_count_from_the_intended_arrival() {
    for engine in ENGINES {
        let server = Server::new(Settings::default());
        let load = workload(4 * KIB, 100.0, &at_a_rate(5000.0, "poisson"));
        let result = measure(vec![reading(&server, engine, load)]);
        assert_eq!((count(&result), errors(&result)), (2000, 0));
    }
}

#[test]
fn failures_are_reported_with_the_request() {
    for framing in FRAMINGS {
        for engine in ENGINES {
            for (command, errno, expected, ends) in [
                (command::READ, 5, "read of 4KiB at byte ", false),
                (command::READ, 22, "its driver or server rejects the request", true),
                (command::READ, 108, "its server has ended or is disconnected", true),
                (command::WRITE, 28, "the device has run out of backing space", true),
                (command::WRITE, 1, "such requests are not allowed", true),
            ] {
                let quirk = Quirk::None;
                let server = Server::new(Settings { framing, quirk, ..Settings::default() });
                let target = open(&server.uri(), &destroying(&server)).unwrap();
                drop(target);
                let failing = Settings { framing, quirk: Quirk::Fails { command, errno }, ..Settings::default() };
                let failing = Server::new(failing);
                let read_percent = if command == command::READ { 100.0 } else { 0.0 };
                let permission = if read_percent == 0.0 { destroying(&failing) } else { Permission::default() };
                let target = open(&failing.uri(), &permission).unwrap();
                let load = workload(4 * KIB, read_percent, &closed(4));
                let one = job(&[target], engine, load, requests(20));
                let result = run(&spec(vec![one]), &mut |progress| progress.errors < 20).unwrap();
                let line = told(&result);
                assert!(line.contains(expected), "{line}");
                assert_eq!(result.ended_early.as_deref().is_some_and(|why| why.contains(expected)), ends, "{line}");
            }
        }
    }
}

#[test]
fn reads_that_end_early_are_counted_as_failed() {
    for engine in ENGINES {
        let server = with(Quirk::IsShort);
        let one = reading(&server, engine, workload(4 * KIB, 100.0, &closed(4)));
        let result = run(&spec(vec![one]), &mut |progress| progress.errors < 10).unwrap();
        assert!(errors(&result) > 0 && count(&result) == 0);
        assert!(told(&result).contains("only 2048 bytes were transferred"), "{}", told(&result));
    }
}

#[test]
fn a_lost_server_ends_the_run_and_keeps_measurements() {
    for engine in ENGINES {
        for (quirk, why) in [
            (Quirk::HangsUp { after: 200 }, "its server has ended or is disconnected"),
            (Quirk::Babbles { after: 200 }, "its server sent an invalid NBD reply"),
        ] {
            for load in [closed(8), at_a_rate(10_000.0, "poisson")] {
                let server = with(quirk);
                let result = run(&spec(vec![reading(&server, engine, workload(4 * KIB, 100.0, &load))]), &mut |_| true);
                let result = result.unwrap();
                assert_sound(&result);
                let ended = result.ended_early.as_deref().expect("the run ended early");
                assert!(ended.contains(why) && ended.contains("read of 4KiB at byte "), "{ended}");
                assert_eq!(count(&result), 200, "{engine:?}, {quirk:?}");
            }
        }
    }
}

#[test]
fn what_a_silent_server_never_answers_is_named() {
    for engine in ENGINES {
        let server = with(Quirk::IsSilent { after: 100 });
        let target = open(&server.uri(), &Permission::default()).unwrap();
        let one = job(&[Arc::clone(&target)], engine, workload(4 * KIB, 100.0, &closed(6)), time(3_600_000 * MS));
        let result = run(&spec(vec![one]), &mut |now| {
            if now.is_ending {
                target.give_up();
            }
            now.completed < 100
        })
        .unwrap();
        assert_eq!(count(&result), 100);
        let note =
            result.notes.iter().find(|note| note.contains("had not completed")).expect("a note lists the requests");
        assert!(
            note.starts_with("6 requests had not completed when they were abandoned, as requested (6 reads): "),
            "{note}"
        );
        assert!(note.contains("read of 4KiB at byte ") && note.contains(&server.uri()), "{note}");
    }
}

#[test]
fn each_thread_has_the_requested_connections() {
    let server = Server::new(Settings::default());
    let target = Target::open_export(&server.uri(), Sync::No, &destroying(&server), 3).map(Arc::new).unwrap();
    let jobs = [1, 2].map(|seed| {
        let load = workload(4 * KIB, 50.0, &closed(8));
        Job { seed, ..job(&[Arc::clone(&target)], EngineKind::Auto, load, requests(500)) }
    });
    assert_eq!(count(&measure(jobs.clone().into())), 1000);
    assert_eq!(server.counters().connections.load(Ordering::Relaxed), 6);
    // The next run uses the connections of the first.
    assert_eq!(count(&measure(jobs.into())), 1000);
    assert_eq!(server.counters().connections.load(Ordering::Relaxed), 6);
    drop(target);
    while server.counters().at_once.load(Ordering::Relaxed) > 0 {
        std::thread::yield_now();
    }
    assert_eq!(server.counters().leaves.load(Ordering::Relaxed), 6);
}

#[test]
fn several_connections_write_only_with_multi_conn() {
    let flags = FLAGS & !transmission::CAN_MULTI_CONN;
    let server = Server::new(Settings { flags, ..Settings::default() });
    let expected = "(no multi-conn)";
    let error = Target::open_export(&server.uri(), Sync::No, &destroying(&server), 2).err().unwrap().to_string();
    assert!(error.contains(expected), "{error}");
    let target = open(&server.uri(), &destroying(&server)).unwrap();
    let load = workload(4 * KIB, 0.0, &closed(2));
    let one = job(&[target], EngineKind::Auto, load, requests(100));
    assert_eq!(count(&measure(vec![one.clone()])), 100);
    let error = run(&spec(vec![one.clone(), one]), &mut |_| true).err().unwrap().to_string();
    assert!(error.contains(expected), "{error}");
    // Connections that only read cannot disagree.
    let two = Target::open_export(&server.uri(), Sync::No, &Permission::default(), 2).map(Arc::new).unwrap();
    let load = workload(4 * KIB, 100.0, &closed(4));
    assert_eq!(count(&measure(vec![job(&[two], EngineKind::Auto, load, requests(100))])), 100);
}

#[test]
fn an_export_is_read_unless_it_is_named_to_be_destroyed() {
    let server = Server::new(Settings::default());
    let writing = |destroy: &[&str]| {
        let destroy = destroy.iter().map(ToString::to_string).collect();
        open(&server.uri(), &Permission { write: true, destroy, ..Permission::default() })
    };
    let error = writing(&[]).err().unwrap();
    let uri = server.uri();
    assert!(
        error.ends_with(&format!("writing destroys the data in this export; to allow it, add --destroy '{uri}'")),
        "{error}"
    );
    let error = writing(&["sda", ""]).err().unwrap();
    assert!(error.ends_with("; --destroy sda  names another target"), "{error}");
    assert!(writing(&["disk"]).is_ok() && writing(&[&uri]).is_ok());
    let other = uri.replace("nbd+unix", "NBD+UNIX");
    assert!(writing(&[&other]).is_ok(), "the same address in other letters");
    let reading = open(&uri, &Permission::default()).unwrap();
    assert!(!reading.is_writable());
    for changes in [closed(1), json!({"line": {"trim_percent": 100}})] {
        let load = workload(4 * KIB, 0.0, &changes);
        let one = job(&[Arc::clone(&reading)], EngineKind::Auto, load, requests(10));
        let ended = run(&spec(vec![one]), &mut |_| true).unwrap().ended_early.expect("the run ends early");
        assert!(ended.contains("such requests are not allowed"), "{ended}");
    }
    server.put(0, &[1]);
    assert!(reading.discard(&|_| true).is_err());
    assert_eq!(server.contents().iter().filter(|byte| **byte != 0).count(), 1);
}

#[test]
fn what_an_export_carries_is_not_overwritten_unless_it_is_named() {
    let server = Server::new(Settings { capacity_bytes: 12 << 20, ..Settings::default() });
    server.put(0, b"XFSB");
    let last = (12 << 20) - 512;
    server.put(last, b"EFI PART");
    let error = open(&server.uri(), &destroying(&server)).err().unwrap();
    assert!(error.contains("xfs (at byte 0 of the export)"), "{error}");
    assert!(error.contains(&format!("gpt (at byte {last} of the export)")), "{error}");
    let signatures = vec!["xfs".to_owned(), "gpt".to_owned()];
    open(&server.uri(), &Permission { signatures, ..destroying(&server) }).unwrap();
}

#[test]
fn what_cannot_be_measured_is_refused_in_words() {
    let refusal = |settings: Settings, permission: fn(&Server) -> Permission, export: &str, expected: &str| {
        let server = Server::new(settings);
        let error = open(&server.uri_of(export), &permission(&server)).err().expect("the target is refused");
        assert!(error.contains(expected), "{error}");
    };
    let reads: fn(&Server) -> Permission = |_| Permission::default();
    let quirk = |quirk| Settings { quirk, ..Settings::default() };
    refusal(Settings::default(), reads, "other", "its server has no export \"other\"; it has \"disk\"");
    refusal(quirk(Quirk::WantsTls), reads, "disk", "its server requires TLS");
    refusal(quirk(Quirk::IsAnother), reads, "disk", "the peer is not an NBD server");
    refusal(Settings { capacity_bytes: 0, ..Settings::default() }, reads, "disk", "has a size of 0");
    let blocks = Some([3000, 4096, 1 << 20]);
    refusal(Settings { blocks, ..Settings::default() }, reads, "disk", "multiples of 3000 bytes");
    let flags = FLAGS | transmission::READ_ONLY;
    refusal(Settings { flags, ..Settings::default() }, destroying, "disk", "is a read-only export");
    let created: fn(&Server) -> Permission = |server| Permission { create_bytes: Some(1), ..destroying(server) };
    refusal(Settings::default(), created, "disk", "omit --create");
    for (uri, expected) in [
        ("nbds://localhost/x", "nbds is NBD over TLS, which is not supported"),
        ("nbd+unix:///x?socket=/nowhere/at/all", "there is no socket at /nowhere/at/all"),
        ("nbd://127.0.0.1:1/x", "no server listens at 127.0.0.1:1"),
    ] {
        let error = open(uri, &Permission::default()).err().expect("the target is refused");
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn what_the_server_does_not_know_is_not_sent() {
    let flags = transmission::HAS_FLAGS;
    let server = Server::new(Settings { flags, blocks: Some([512, 4096, 64 * KIB]), ..Settings::default() });
    let target = open(&server.uri(), &destroying(&server)).unwrap();
    assert_eq!((target.block_bytes(), target.physical_block_bytes()), (512, 4096));
    let ended = |changes: &Value, read_percent: f64| {
        let load = workload(4 * KIB, read_percent, changes);
        let one = job(&[Arc::clone(&target)], EngineKind::Auto, load, requests(100));
        run(&spec(vec![one]), &mut |_| true).unwrap().ended_early.expect("the run ends early")
    };
    assert!(ended(&json!({"line": {"trim_percent": 100}}), 0.0).contains("the target does not support trim"));
    assert!(ended(&json!({"flush_every": 2}), 0.0).contains("the target does not support flush"));
    let long = job(&[Arc::clone(&target)], EngineKind::Auto, workload(128 * KIB, 100.0, &closed(1)), requests(1));
    let error = run(&spec(vec![long]), &mut |_| true).err().unwrap().to_string();
    assert!(error.contains("requests of 131072 bytes; the maximum is 65536"), "{error}");
    let seen = server.counters();
    assert_eq!((seen.trims.load(Ordering::Relaxed), seen.flushes.load(Ordering::Relaxed)), (0, 0));
    let durable = Target::open_export(&server.uri(), Sync::Data, &destroying(&server), 1).err().unwrap().to_string();
    assert!(durable.contains("its server does not support FUA"), "{durable}");
}

#[test]
fn synchronous_writes_are_sent_with_fua() {
    let server = Server::new(Settings::default());
    let target = Target::open_export(&server.uri(), Sync::Data, &destroying(&server), 1).map(Arc::new).unwrap();
    measure(vec![job(&[target], EngineKind::Auto, workload(4 * KIB, 0.0, &closed(2)), requests(100))]);
    assert_eq!(server.counters().forced.load(Ordering::Relaxed), 100);
}

#[test]
fn files_and_exports_are_not_one_address_space() {
    let server = Server::new(Settings::default());
    let file = crate::engine::support::TestFile::holes(1 << 20);
    let targets = [file.open(false), open(&server.uri(), &Permission::default()).unwrap()];
    let one = job(&targets, EngineKind::Auto, workload(4 * KIB, 100.0, &closed(1)), requests(1));
    let error = run(&spec(vec![one]), &mut |_| true).err().unwrap().to_string();
    assert!(error.contains("cannot share a job"), "{error}");
    let exports = [&server, &server].map(|server| open(&server.uri(), &Permission::default()).unwrap());
    let one = job(&exports, EngineKind::Auto, workload(4 * KIB, 100.0, &closed(8)), requests(500));
    assert_eq!(count(&measure(vec![one])), 500);
}

#[test]
fn an_export_is_discarded_as_devices_are() {
    let server = Server::new(Settings::default());
    server.put(1 << 20, &[7; 4096]);
    let target = open(&server.uri(), &destroying(&server)).unwrap();
    target.discard(&|_| true).unwrap();
    assert!(server.contents().iter().all(|byte| *byte == 0));
    assert!(open(&server.uri(), &Permission::default()).unwrap().discard(&|_| true).is_err());
}
