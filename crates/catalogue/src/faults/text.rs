//! Writes a log of injections as the text of a schedule.

use std::fmt::Write;

use headstack_sim::faults::contents::{DamageProof, HarmedRequest};
use headstack_sim::faults::{Counters, FaultHit, Injection, Log, Schedule, Timed};
use headstack_sim::power_cut::PowerLoss;
use serde::Serialize;

/// Maximum number of damaged requests that the comments list; `injections` contains all of them.
const HARMS_PRINTED: usize = 16;

/// Returns a log as a schedule file that reproduces the faults. Comments record what happened.
pub fn faults_to_toml(log: &Log) -> String {
    let Schedule { seed, faults } = log.schedule();
    let mut text = format!("seed = {seed}\n");
    for (injection, timed) in log.injections.iter().zip(faults) {
        text.push('\n');
        comment(injection, &mut text);
        let one = One { fault: [timed] };
        text.push_str(&toml::to_string(&one).expect("a fault is valid TOML"));
    }
    text
}

#[derive(Serialize)]
struct One {
    fault: [Timed; 1],
}

fn comment(injection: &Injection, text: &mut String) {
    let infallible = "writing to a string never fails";
    if let Some(refused) = &injection.refused {
        writeln!(text, "# refused: {refused}").expect(infallible);
    }
    writeln!(text, "# affected {} requests, of which {} failed", injection.met, injection.failed).expect(infallible);
    let second = injection.last.as_ref().filter(|_| injection.met > 1);
    for (word, meeting) in [("first", injection.first.as_ref()), ("last", second)] {
        let Some(FaultHit { kind, offset_bytes, length_bytes, arrival_ns, completion_ns, deed }) = meeting else {
            continue;
        };
        let answered = completion_ns.map_or("not answered yet".to_owned(), |ns| format!("answered at {ns} ns"));
        let line = format!("{kind:?} of {length_bytes} B at {offset_bytes}, arrived at {arrival_ns} ns, {answered}");
        writeln!(text, "# {word}: {line}: {deed:?}").expect(infallible);
    }
    if injection.stated.is_some() && injection.strikes == 0 {
        writeln!(text, "# has not affected any request yet").expect(infallible);
    }
    for DamageProof { at_ns, request, what } in injection.harms.iter().take(HARMS_PRINTED) {
        let to = request.map_or("the stored data".to_owned(), |HarmedRequest { kind, offset_bytes, length_bytes }| {
            format!("{kind:?} of {length_bytes} B at {offset_bytes}")
        });
        writeln!(text, "# done at {at_ns} ns to {to}: {what:?}").expect(infallible);
    }
    if injection.harmed > HARMS_PRINTED as u64 {
        writeln!(text, "# more follow: {} in total", injection.harmed).expect(infallible);
    }
    if let Some(Counters { retried_passes, uncorrectable_errors }) = injection.counters {
        let line = format!("{retried_passes} passes repeated, {uncorrectable_errors} accesses failed");
        writeln!(text, "# device errors: {line}").expect(infallible);
    }
    if let Some(PowerLoss { lost_bytes, lost_extents, lost_writes, torn, .. }) = &injection.loss {
        let line = format!("{lost_bytes} B in {lost_extents} extents, of {lost_writes} acknowledged writes");
        writeln!(text, "# lost: {line}").expect(infallible);
        for torn in torn {
            let acknowledged = if torn.acknowledged { "acknowledged" } else { "in flight" };
            let line = format!("{} B at {}, {acknowledged}", torn.length_bytes, torn.at_bytes);
            writeln!(text, "# torn at {}: {line}", torn.torn_at_bytes).expect(infallible);
        }
    }
}
