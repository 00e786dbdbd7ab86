//! Scenario files, and the clients of those that are accepted.

#![no_main]

use headstack_workload::scenario::StreamKind;
use headstack_workload::{Scenario, ScenarioRun, Span, Step};
use libfuzzer_sys::fuzz_target;

const LUN_BYTES: u64 = 1 << 28;
const LUNS: [&str; 5] = ["data", "data1", "data2", "data3", "log"];
const SECTOR_BYTES: u32 = 512;
/// More files are allowed, and slow.
const FILES_MAX: u32 = 1 << 14;
const CLIENTS_MAX: u32 = 64;
const STEPS: usize = 64;

fuzz_target!(|text: &str| {
    let scenario = match Scenario::from_toml("fuzz.toml", text) {
        Ok(scenario) => scenario,
        Err(error) => return assert_eq!(error.to_string().lines().count(), 1, "an error is one line"),
    };
    let printed = toml::to_string(&scenario).expect("an accepted scenario becomes TOML");
    let again = Scenario::from_toml("printed.toml", &printed).expect("what was printed is accepted");
    assert_eq!(again, scenario);
    scenario.with_clients(CLIENTS_MAX).validate().expect("another number of clients is accepted");
    let too_slow = |kind: &StreamKind| matches!(kind, StreamKind::Web(web) if web.files > FILES_MAX);
    if !scenario.streams.iter().any(|stream| too_slow(&stream.kind)) {
        assert_stays_on_its_luns(&scenario);
    }
});

/// The first steps of the first clients, whose requests are complete whenever they wait for one.
fn assert_stays_on_its_luns(scenario: &Scenario) {
    let lun = |(name, start_bytes): (&&str, u64)| (name.to_string(), Span { start_bytes, length_bytes: LUN_BYTES });
    let luns: Vec<_> = LUNS.iter().zip((0..).map(|index| index * LUN_BYTES)).map(lun).collect();
    // A LUN may be missing, or a request not fit: that is an error, not a panic.
    let Ok(mut run) = ScenarioRun::new(scenario, &luns, SECTOR_BYTES, 1) else {
        return;
    };
    let mut now_ns = 0;
    for client in 0..run.clients().min(CLIENTS_MAX) {
        let mut in_flight = 0;
        for _ in 0..STEPS {
            match run.next(client, now_ns) {
                Step::Io { stream, request } => {
                    assert!((stream as usize) < scenario.streams.len());
                    let end_bytes = request.offset_bytes + u64::from(request.length_bytes);
                    assert!(end_bytes <= LUN_BYTES * LUNS.len() as u64, "a request ends beyond the last LUN");
                    assert!(end_bytes.is_multiple_of(u64::from(SECTOR_BYTES)), "a request ends inside a sector");
                    in_flight += 1;
                }
                Step::Await => {
                    assert!(in_flight > 0, "a client would wait forever");
                    (0..std::mem::take(&mut in_flight)).for_each(|_| {
                        let _ = run.complete(client);
                    });
                }
                Step::Think { until_ns } => now_ns = now_ns.max(until_ns),
                Step::Cpu { busy_ns } => now_ns = now_ns.saturating_add(busy_ns),
                Step::Transfer { .. } => now_ns += 1,
                Step::Done => break,
            }
        }
    }
    run.report(now_ns);
}
