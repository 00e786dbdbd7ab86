//! Tests of scenarios on files and devices: waits of clients take their time, and every stream is reported by name.

use std::sync::Arc;

use crate::bench::{LoopDevice, Scratch};
use headstack_jobfiles::Sync;
use headstack_load::{EngineKind, LoadError, Permission, ScenarioSpec, Target, Time, play_scenario};
use headstack_result::{RunResult, StreamResult, SystemRecord};
use headstack_workload::Scenario;

const US: u64 = 1_000;
const MS: u64 = 1_000_000;
const MIB: u64 = 1 << 20;

fn spec(text: &str, luns: Vec<(&str, Arc<Target>)>, engine: EngineKind) -> ScenarioSpec {
    let text = format!("name = \"test\"\nsource = \"this test\"\n{text}");
    ScenarioSpec {
        system: SystemRecord::new("target", "file", luns[0].1.description().clone()),
        luns: luns.into_iter().map(|(name, target)| (name.to_owned(), target)).collect(),
        scenario: Scenario::from_toml("test.toml", &text).unwrap(),
        engine,
        slots: 64,
        seed: 1,
        interval_ns: None,
        verification: None,
    }
}

fn play(spec: &ScenarioSpec) -> Result<RunResult, LoadError> {
    let result = play_scenario(spec, &mut |_| true)?;
    assert!(result.checks.iter().all(|check| check.passed), "{:?}", result.checks);
    Ok(result)
}

/// Returns a null target in virtual time.
fn null() -> Vec<(&'static str, Arc<Target>)> {
    vec![("disk", Arc::new(Target::null_in(Time::Virtual { late_ns: 0 }, 256 * MIB)))]
}

fn on_null(text: &str, service_ns: u64) -> RunResult {
    play(&spec(text, null(), EngineKind::Null { service_ns })).unwrap()
}

fn opened(path: &str, permission: &Permission) -> Arc<Target> {
    Arc::new(Target::open(path, false, Sync::No, permission, &|_| true).unwrap())
}

fn file(scratch: &Scratch, name: &str, bytes: u64, write: bool) -> Arc<Target> {
    let path = scratch.path(name);
    std::fs::write(&path, vec![7; bytes as usize]).unwrap();
    opened(&path, &Permission { write, overwrite: write, ..Permission::default() })
}

fn stream<'a>(result: &'a RunResult, name: &str) -> &'a StreamResult {
    result.streams.iter().find(|stream| stream.name == name).unwrap()
}

fn fact(result: &RunResult, name: &str, fact: &str) -> f64 {
    let facts = &stream(result, name).facts;
    facts.iter().find(|one| one.name == fact).unwrap_or_else(|| panic!("{facts:?}")).value
}

fn counter(result: &RunResult, name: &str) -> u64 {
    result.counters.iter().find(|counter| counter.name == name).unwrap().value
}

#[test]
fn streams_are_distinguished() {
    let result = on_null(
        "run_length = { requests = 2000 }\npool = { closed = { queue_depth = 4 } }\n\
         [[streams]]\nname = \"three\"\n[streams.access]\nshare_percent = 75\n\
         lines = [{ size = \"4KiB\", read_percent = 100, random_percent = 100 }]\n\
         [[streams]]\nname = \"one\"\n[streams.access]\nshare_percent = 25\n\
         lines = [{ size = \"8KiB\", read_percent = 0, random_percent = 0 }]\n",
        100 * US,
    );
    let count = |name: &str| stream(&result, name).kinds.all().iter().map(|(_, kind)| kind.count).sum::<u64>();
    assert!((2_000..2_004).contains(&result.count()), "{}", result.count());
    assert!((1_350..1_650).contains(&count("three")), "{}", count("three"));
    assert_eq!(count("one"), stream(&result, "one").kinds.write.count);
    assert_eq!(stream(&result, "one").kinds.write.bytes, 8192 * count("one"));
    assert_eq!(result.depth.max, 4);
}

#[test]
fn processors_are_waited_for_and_not_burnt() {
    let text = |cpus: u32, time: &str| {
        format!(
            "cpus = {cpus}\nrun_length = {{ time = \"{time}\" }}\n[[streams]]\nname = \"clients\"\n\
             [streams.transactions]\nclients = 8\ncpu = \"4ms\"\nrequests = 1\n\
             lines = [{{ size = \"4KiB\", read_percent = 100, random_percent = 100 }}]\n"
        )
    };
    let processors = |result: &RunResult| {
        result.components.iter().find(|component| component.name == "host processors").unwrap().clone()
    };
    // One processor handles 250 requests/s and four handle 1,000; the target could handle 80,000.
    for (cpus, most) in [(1, 250.0), (4, 1_000.0)] {
        let result = on_null(&text(cpus, "1s"), 100 * US);
        let rate = fact(&result, "clients", "transactions_per_s");
        assert!(rate <= most && rate > most * 0.98, "{rate} a second by {cpus}");
        let busy = processors(&result);
        assert_eq!(busy.servers, cpus);
        assert!(busy.busy_ns > 980 * MS * u64::from(cpus) && busy.waited_ns > 0, "{busy:?}");
    }
    // In wall-clock time, the simulated processors use no time of this machine.
    let wall = vec![("disk", Arc::new(Target::null(256 * MIB)))];
    let result = play(&spec(&text(4, "200ms"), wall, EngineKind::Null { service_ns: 100 * US })).unwrap();
    let (busy_ns, burnt_ns) =
        (processors(&result).busy_ns, counter(&result, "cpu_user_ns") + counter(&result, "cpu_system_ns"));
    assert!(burnt_ns < busy_ns / 2, "{burnt_ns} ns of this machine for {busy_ns} ns");
}

#[test]
fn a_network_takes_its_time() {
    let web = |network: &str| {
        on_null(
            &format!(
                "{network}\nrun_length = {{ time = \"1s\" }}\n[[streams]]\nname = \"pages\"\n[streams.web]\nusers = 4\n\
                 files = 100\nsmallest_file = \"64KiB\"\nmean_file = \"128KiB\"\nlargest_file = \"192KiB\"\n\
                 hot_files_percent = 10\nhot_pages_percent = 50\nrequest = \"64KiB\"\n"
            ),
            50 * US,
        )
    };
    let slow = web("network = \"20MB/s\"");
    let bytes_per_s = fact(&slow, "pages", "page_bytes") / (slow.duration_ns as f64 / 1e9);
    assert!(bytes_per_s < 20.5e6 && bytes_per_s > 18e6, "{bytes_per_s}");
    assert!(slow.components.iter().any(|component| component.name == "client network"));
    let free = web("");
    assert!(fact(&free, "pages", "page_bytes") > 3.0 * fact(&slow, "pages", "page_bytes"));
}

#[test]
fn rates_are_kept_and_queueing_counts() {
    let at_rate = |slots: u32| {
        let text = "run_length = { time = \"1s\" }\n[[streams]]\nname = \"rate\"\n[streams.access]\n\
                    arrivals = { open = { rate_per_s = 1000, process = \"poisson\" } }\n\
                    lines = [{ size = \"4KiB\", read_percent = 100, random_percent = 100 }]\n";
        play(&ScenarioSpec { slots, ..spec(text, null(), EngineKind::Null { service_ns: 2 * MS }) }).unwrap()
    };
    let kept = at_rate(64);
    assert!((900..1_100).contains(&kept.count()) && !kept.saturated, "{}", kept.count());
    assert_eq!((kept.kinds.read.latency.min_ns(), kept.kinds.read.latency.max_ns()), (2 * MS, 2 * MS));
    let piled = at_rate(1);
    assert!(piled.saturated && piled.count().abs_diff(499) <= 2, "{}", piled.count());
    // All arrivals are accounted for. One of two requests waits at the end, and the last one served waited for half of
    // the run.
    let arrived = piled.count() + piled.backlog;
    assert!((900..1_100).contains(&arrived), "{arrived}");
    assert!((400 * MS..600 * MS).contains(&piled.kinds.read.latency.max_ns()));
}

#[test]
fn luns_are_targets_of_their_own() {
    let scratch = Scratch::new();
    let text = "run_length = { requests = 400 }\n\
                [[streams]]\nname = \"log\"\nlun = \"log\"\n[streams.access]\narrivals = { closed = { queue_depth = 2 } }\n\
                lines = [{ size = \"8KiB\", read_percent = 0, random_percent = 0 }]\n\
                [[streams]]\nname = \"data\"\nlun = \"data\"\nrange = [\"50%\", \"100%\"]\n[streams.access]\n\
                arrivals = { closed = { queue_depth = 1, think = { exponential = \"50us\" } } }\n\
                lines = [{ size = \"4KiB\", read_percent = 100, random_percent = 100 }]\n";
    // The size is not a multiple of the block, so the next LUN begins where the whole blocks end.
    let luns = |write| {
        let data = file(&scratch, "data", 4 * MIB + 100, false);
        vec![("data", data), ("log", file(&scratch, "log", 16 * MIB, write))]
    };
    let refused = play(&spec(text, luns(false), EngineKind::Auto)).unwrap_err().to_string();
    assert!(refused.contains("log writes to") && refused.contains("--overwrite"), "{refused}");
    let result = play(&spec(text, luns(true), EngineKind::Auto)).unwrap();
    assert_eq!((&result.ended_early, result.kinds.all().iter().map(|(_, kind)| kind.errors).sum::<u64>()), (&None, 0));
    let written = stream(&result, "log").kinds.write.count;
    assert!(written > 0 && stream(&result, "data").kinds.read.count > 0);
    let log = std::fs::read(scratch.path("log")).unwrap();
    assert!(log[..8192] != [7; 8192] && log[8 * MIB as usize..] == vec![7; 8 * MIB as usize]);
    assert!(std::fs::read(scratch.path("data")).unwrap() == vec![7; 4 * MIB as usize + 100]);
    let only_data = vec![("data", file(&scratch, "data", 4 * MIB, false))];
    let missing = play(&spec(text, only_data, EngineKind::Auto)).unwrap_err().to_string();
    assert!(missing.contains("no LUN \"log\"") && missing.contains("data"), "{missing}");
}

#[test]
fn a_prefill_writes_all_of_a_device_and_ends() {
    let Some(device) = LoopDevice::new(32 * MIB) else { return };
    let destroy = Permission { write: true, destroy: vec![device.name().to_owned()], ..Permission::default() };
    let text = "run_length = \"all_done\"\n[[streams]]\nname = \"prefill\"\n[streams.prefill]\norder = \"serial\"\n\
                block = \"1MiB\"\nqueue_depth = 2\n";
    let result = play(&spec(text, vec![("disk", opened(&device.path, &destroy))], EngineKind::Auto)).unwrap();
    assert_eq!((result.kinds.write.bytes, result.kinds.write.count), (32 * MIB, 32));
    assert!(fact(&result, "prefill", "done_s") > 0.0);
    let written = std::fs::read(&device.path).unwrap();
    assert!(written.chunks(4096).all(|block| block.iter().any(|&byte| byte != 0)));
}

#[test]
fn a_stopped_run_is_reported() {
    let text = "run_length = { time = \"1h\" }\n[[streams]]\nname = \"x\"\n[streams.access]\n\
                lines = [{ size = \"4KiB\", read_percent = 100, random_percent = 100 }]\n";
    let spec = spec(text, null(), EngineKind::Null { service_ns: MS });
    let result = play_scenario(&spec, &mut |progress| progress.elapsed_ns < 200 * MS).unwrap();
    assert_eq!(result.ended_early.as_deref(), Some("stopped by hand"));
    assert!(result.count() > 10 && (200 * MS..=300 * MS).contains(&result.duration_ns), "{}", result.duration_ns);
    assert!(result.checks.iter().all(|check| check.passed), "{:?}", result.checks);
}
