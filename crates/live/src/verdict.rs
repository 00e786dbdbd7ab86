//! [`Verdict`]: from which latencies on a session is valid. It bounds the error that clients measured in excess of the
//! model, and names the cause if that is large.
//!
//! If the turns of a client follow each other without a pause, its measured error has a known upper bound
//! ([`crate::witness`]). For a client that pauses, or cannot be observed, it is inferred from a client of ordinary
//! priority that runs at the same time, and from the scheduler's statistics.

use crate::ledger::Path;
use crate::wall::Scheduling;
use crate::witness::{ClientStatistics, Observations};

/// A latency is valid if the path's own error, at p99 and in the mean, is at most this share of it.
const VALID_SHARE: f64 = 0.05;
/// Limit above which a valid latency is no drive's latency any more, except at its deepest queues.
const HOPELESS_NS: u64 = 100_000_000;
/// Smallest number of canary requests for a conclusion.
const CANARIES_MIN: u64 = 20;
/// Clients with less than this fraction (1 in so many) of the requests are ignored.
const SHARE_OF_REQUESTS: u64 = 100;
/// Work of an unobserved client per request, to within an order of magnitude.
const UNSEEN_WORK_NS: u64 = 10_000;
/// Share of running time above which a thread makes its requests wait.
const BUSY_SHARE: f64 = 0.8;
/// Share of waiting that is mentioned.
const NAMED_SHARE: f64 = 0.05;

/// Verdict on a session.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Upper bound of the latency that clients measured in excess of the model, at p99 and in the mean, in wall-clock
    /// time; `None` if undecided.
    pub error_ns: Option<u64>,
    /// Smallest latency of the model for which it is valid.
    pub valid_above_ns: Option<u64>,
    /// The verdict in words.
    pub words: String,
}

/// Basis of a client's error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Basis {
    /// Its turns bound the error.
    Turns,
    /// Inferred from the canary.
    Canary,
}

/// Judges statistics and observations.
pub fn judge(path: &Path, seen: &Observations) -> Verdict {
    let not_valid =
        |error_ns, why: String| Verdict { error_ns, valid_above_ns: None, words: format!("not valid: {why}") };
    if path.requests == 0 {
        return Verdict {
            error_ns: None,
            valid_above_ns: None,
            words: "no verdict: no request was answered".to_owned(),
        };
    }
    let witnessed: u64 = seen.clients.iter().map(|client| client.turns.requests).sum();
    let unseen = ClientStatistics {
        turns: crate::witness::TurnStatistics {
            requests: path.requests.saturating_sub(witnessed),
            depth: path.deepest_queue,
            ..Default::default()
        },
        ..ClientStatistics::default()
    };
    let mut worst: Option<(u64, Basis, &ClientStatistics)> = None;
    for client in seen.clients.iter().chain([&unseen]) {
        let requests = client.turns.requests;
        if requests == 0 || requests * SHARE_OF_REQUESTS < path.requests {
            continue;
        }
        let Some((error_ns, basis)) = error_of(client, path, seen) else {
            return not_valid(None, unknown(client, seen));
        };
        if worst.is_none_or(|(worst_ns, ..)| error_ns > worst_ns) {
            worst = Some((error_ns, basis, client));
        }
    }
    let (client_ns, basis, client) = worst.expect("some client has 1 % of the requests");
    // On a path that is faster than its floor, answers are early by at most the floor.
    let error_ns = client_ns.max(path.floor_ns);
    let valid_ns = error_ns as f64 / VALID_SHARE;
    if valid_ns > HOPELESS_NS as f64 {
        let why = if client_ns < path.floor_ns {
            format!("the path took {} at the start", time(path.floor_ns))
        } else {
            blame(client_ns, client, path, seen)
        };
        return not_valid(Some(error_ns), why);
    }
    let valid_above_ns = (valid_ns * path.speed).ceil() as u64;
    let words = format!(
        "valid for latencies above {:.1} ms (clients measure mean and p99 within 5 % of the model{})",
        // Rounded up, so that the figure is never better than the required one.
        (valid_above_ns as f64 / 1e5).ceil() / 10.0,
        match basis {
            Basis::Turns => String::new(),
            Basis::Canary => format!(", judged by a probe of normal priority next to {}", name(client)),
        }
    );
    Verdict { error_ns: Some(error_ns), valid_above_ns: Some(valid_above_ns), words }
}

/// Upper bound of a client's error in excess of the model; `None` if undecided.
fn error_of(client: &ClientStatistics, path: &Path, seen: &Observations) -> Option<(u64, Basis)> {
    let turns = &client.turns;
    let by_turns = (turns.error.count > 0 && client.pid.is_some())
        .then(|| (turns.error.p99_ns.max(turns.error.mean_ns), Basis::Turns));
    let by_canary = by_canary(client, path, seen).map(|error_ns| (error_ns, Basis::Canary));
    match (by_turns, by_canary) {
        (Some(turns), Some(canary)) => Some(if canary.0 < turns.0 { canary } else { turns }),
        (turns, canary) => turns.or(canary),
    }
}

/// Error inferred for a client that cannot be observed, or that does other work between its requests.
fn by_canary(client: &ClientStatistics, path: &Path, seen: &Observations) -> Option<u64> {
    let turns = &client.turns;
    if seen.canary.count < CANARIES_MIN || turns.lying * SHARE_OF_REQUESTS > turns.requests {
        return None;
    }
    let (work_ns, wait_ns) = match (&client.waits, client.pid) {
        (Some(waits), Some(_)) => {
            let explained_ns = turns.depth as u64 * (waits.ran_ns + waits.waited_ns)
                + 2 * turns.requests * path.floor_ns.max(UNSEEN_WORK_NS);
            // A client that does not pause is judged by its turns; one without idle time has requests that wait for it.
            if turns.turned_ns < 2 * explained_ns || waits.ran_share > BUSY_SHARE {
                return None;
            }
            (waits.ran_ns / turns.requests, waits.wait.p99_ns)
        }
        // A local client without scheduler statistics: its pauses cannot be distinguished from waiting.
        (None, Some(_)) => return None,
        (_, None) => (UNSEEN_WORK_NS, 0),
    };
    // All replies of a queue may arrive at once, and the last of them waits for the processing of the others.
    let queued_ns = turns.depth as u64 * work_ns;
    Some(
        path.lateness_p99_ns.max(path.lateness_mean_ns)
            + path.copying_p99_ns
            + seen.canary.p99_ns.max(seen.canary.mean_ns)
            + wait_ns
            + queued_ns,
    )
}

/// Names the cause of a large error.
fn blame(error_ns: u64, client: &ClientStatistics, path: &Path, seen: &Observations) -> String {
    if path.lateness_p99_ns.max(path.lateness_mean_ns) * 2 >= error_ns {
        let late = format!("1 % of the answers were {} late", time(path.lateness_p99_ns));
        let waited = seen.server.map(|server| server.waited_share).filter(|&share| share > NAMED_SHARE);
        let waited = waited
            .map_or(String::new(), |share| format!(", which waited {} of the time for a processor", percent(share)));
        return match path.scheduling {
            Scheduling::Realtime => format!("{late}: the machine is too busy for the server{waited}"),
            Scheduling::Shared => {
                format!("{late}: the server shares its processor{waited}; grant it CAP_SYS_NICE for SCHED_FIFO")
            }
        };
    }
    let on_time = format!("the server was on time (p99 {})", time(path.lateness_p99_ns));
    // Requests that wait for memory before they are copied look as if the copy took that long.
    let waits = path.memory_waits * SHARE_OF_REQUESTS >= path.requests;
    if waits && path.memory_wait_mean_ns * 2 >= error_ns {
        return format!(
            "{on_time}, but {} of its requests waited for memory, {} on average; raise --memory",
            percent(path.memory_waits as f64 / path.requests.max(path.memory_waits) as f64),
            time(path.memory_wait_mean_ns)
        );
    }
    let long = client.turns.long_error;
    let copies = long.count * 2 > client.turns.error.count || path.copying_p99_ns * 2 >= error_ns;
    if copies {
        return format!("{on_time}, but copying long requests took up to {} for 1 % of them", time(error_ns));
    }
    format!(
        "{on_time}, but {}; measured latency may be {} longer than the model's",
        starved(client, seen),
        time(error_ns)
    )
}

/// Names what delayed a client.
fn starved(client: &ClientStatistics, seen: &Observations) -> String {
    let name = name(client);
    let turns = &client.turns;
    match client.waits {
        Some(waits) if waits.waited_share > NAMED_SHARE => {
            format!("{name} waited {} of the time for a processor", percent(waits.waited_share))
        }
        Some(waits) if waits.ran_share > BUSY_SHARE => {
            format!("{name} was CPU-bound, running {} of the time", percent(waits.ran_share))
        }
        _ if turns.lying * SHARE_OF_REQUESTS > turns.requests => {
            format!(
                "{name} left {} of its replies unread for more than 20 ms",
                percent(turns.lying as f64 / turns.requests as f64)
            )
        }
        Some(_) => {
            format!("{name} took {} from a reply to the next request", time(turns.turned_ns / turns.error.count.max(1)))
        }
        None => {
            let canary = time(seen.canary.p99_ns.max(seen.canary.mean_ns));
            format!("a probe of normal priority next to {name} waited {canary} for a processor")
        }
    }
}

/// Explains why the error is undecided.
fn unknown(client: &ClientStatistics, seen: &Observations) -> String {
    if client.turns.lying * SHARE_OF_REQUESTS > client.turns.requests {
        return starved(client, seen);
    }
    format!("too short to determine what {} waited for", name(client))
}

fn name(client: &ClientStatistics) -> String {
    match (&client.name, client.pid) {
        (Some(name), Some(pid)) => format!("the client ({name}, process {pid})"),
        (_, Some(pid)) => format!("the client (process {pid})"),
        _ => "clients that cannot be observed".to_owned(),
    }
}

fn time(ns: u64) -> String {
    if ns < 1_000_000 { format!("{:.0} us", ns as f64 / 1e3) } else { format!("{:.1} ms", ns as f64 / 1e6) }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::witness::{Spread, TurnStatistics, WaitStatistics};

    const US: u64 = 1_000;
    const MS: u64 = 1_000_000;

    /// A server that is on time.
    fn path() -> Path {
        Path {
            requests: 10_000,
            floor_ns: 20 * US,
            lateness_p50_ns: 5 * US,
            lateness_p99_ns: 12 * US,
            lateness_p999_ns: 40 * US,
            lateness_max_ns: 90 * US,
            lateness_mean_ns: 6 * US,
            copying_p99_ns: 0,
            memory_waits: 0,
            memory_wait_mean_ns: 0,
            below_floor: 0,
            deepest_queue: 1,
            scheduling: Scheduling::Realtime,
            speed: 1.0,
        }
    }

    fn spread(p99_ns: u64) -> Spread {
        Spread { count: 10_000, mean_ns: p99_ns / 2, p99_ns, max_ns: 2 * p99_ns }
    }

    /// A client of a device of 1 ms that sends its next request as soon as it has a reply.
    fn client(error_ns: u64) -> ClientStatistics {
        let turns = TurnStatistics {
            requests: 10_000,
            depth: 1,
            error: spread(error_ns),
            turned_ns: 600 * MS,
            served_ns: 10_000 * MS,
            ..TurnStatistics::default()
        };
        let waits = WaitStatistics {
            ran_share: 0.05,
            waited_share: 0.001,
            ran_ns: 500 * MS,
            waited_ns: 10 * MS,
            wait: spread(10 * US),
        };
        ClientStatistics { name: Some("fio".to_owned()), pid: Some(42), turns, waits: Some(waits) }
    }

    fn observations(client: ClientStatistics) -> Observations {
        let server = WaitStatistics { ran_share: 0.1, ..WaitStatistics::default() };
        Observations { clients: vec![client], canary: spread(60 * US), server: Some(server), pressure_share: Some(0.1) }
    }

    #[test]
    fn turns_that_leave_no_room_prove_the_bound() {
        let verdict = judge(&path(), &observations(client(50 * US)));
        assert_eq!((verdict.error_ns, verdict.valid_above_ns), (Some(50 * US), Some(MS)));
        assert!(verdict.words.starts_with("valid for latencies above 1.0 ms ("), "{}", verdict.words);
        // At a speed of 0.1, model time advances ten times more slowly than wall-clock time.
        let slow = judge(&Path { speed: 0.1, ..path() }, &observations(client(50 * US)));
        assert_eq!(slow.valid_above_ns, Some(100 * US));
        // Without PSI, schedstat and canary, the turns still count.
        let blind = Observations {
            clients: vec![ClientStatistics { waits: None, ..client(50 * US) }],
            ..Observations::default()
        };
        assert_eq!(judge(&path(), &blind), verdict);
        // A floor measured at a busy start is a bound too: early answers are errors as well.
        let floor = judge(&Path { floor_ns: 100 * US, ..path() }, &observations(client(50 * US)));
        assert_eq!(floor.valid_above_ns, Some(2 * MS));
        // The mean counts if a few are very late.
        let mut rare = client(50 * US);
        rare.turns.error.mean_ns = 200 * US;
        assert_eq!(judge(&path(), &observations(rare)).error_ns, Some(200 * US));
    }

    #[test]
    fn a_starved_client_is_named_even_if_the_server_is_on_time() {
        let mut starved = client(234 * MS);
        starved.waits = Some(WaitStatistics {
            waited_share: 0.94,
            waited_ns: 100_000 * MS,
            wait: spread(100 * MS),
            ..starved.waits.unwrap()
        });
        let verdict = judge(&path(), &observations(starved));
        assert_eq!((verdict.error_ns, verdict.valid_above_ns), (Some(234 * MS), None));
        assert_eq!(
            verdict.words,
            "not valid: the server was on time (p99 12 us), but the client (fio, process 42) waited 94 % of the time for a \
             processor; measured latency may be 234.0 ms longer than the model's"
        );
    }

    #[test]
    fn a_server_that_starves_is_named() {
        let late = Path { lateness_p99_ns: 8 * MS, scheduling: Scheduling::Shared, ..path() };
        let mut seen = observations(client(9 * MS));
        seen.server = Some(WaitStatistics { waited_share: 0.5, ..WaitStatistics::default() });
        let verdict = judge(&late, &seen);
        assert_eq!(verdict.valid_above_ns, None);
        let words = "not valid: 1 % of the answers were 8.0 ms late: the server shares its processor, which waited 50 % of the \
                     time for a processor; grant it CAP_SYS_NICE for SCHED_FIFO";
        assert_eq!(verdict.words, words);
        let realtime = judge(&Path { scheduling: Scheduling::Realtime, ..late }, &seen);
        assert!(realtime.words.contains("the machine is too busy for the server"), "{}", realtime.words);
    }

    #[test]
    fn waiting_for_memory_is_not_copying() {
        let mut copying = client(7 * MS);
        copying.turns.long_error = copying.turns.error;
        let path = Path { memory_waits: 3_000, memory_wait_mean_ns: 6 * MS, copying_p99_ns: 5 * MS, ..path() };
        let verdict = judge(&path, &observations(copying.clone()));
        assert_eq!(verdict.valid_above_ns, None);
        let says = "30 % of its requests waited for memory, 6.0 ms on average; raise --memory";
        assert!(verdict.words.contains(says), "{}", verdict.words);
        // A few that waited, or waited briefly, explain nothing.
        for path in [Path { memory_waits: 50, ..path.clone() }, Path { memory_wait_mean_ns: 50 * US, ..path }] {
            let words = judge(&path, &observations(copying.clone())).words;
            assert!(words.contains("but copying long requests"), "{words}");
        }
    }

    #[test]
    fn the_time_of_copies_is_not_a_busy_machine() {
        let mut copying = client(7 * MS);
        copying.turns.long_error = copying.turns.error;
        for path in [path(), Path { copying_p99_ns: 5 * MS, ..path() }] {
            let verdict = judge(&path, &observations(copying.clone()));
            assert_eq!(verdict.valid_above_ns, None);
            assert!(verdict.words.contains("but copying long requests took up to 7.0 ms"), "{}", verdict.words);
            assert!(!verdict.words.contains("busy"), "{}", verdict.words);
        }
    }

    /// A client that pauses for 9 ms between two requests.
    fn pausing() -> ClientStatistics {
        let mut pausing = client(18 * MS);
        pausing.turns.turned_ns = 10_000 * 9 * MS;
        pausing
    }

    #[test]
    fn a_client_that_pauses_is_judged_by_another_and_by_the_scheduler() {
        let verdict = judge(&path(), &observations(pausing()));
        // Lateness, the canary, its own waits, and its own work per request.
        assert_eq!(verdict.error_ns, Some((12 + 60 + 10 + 50) * US));
        assert!(verdict.words.contains("next to the client (fio, process 42)"), "{}", verdict.words);
        let not_valid = |why: &str, seen: &Observations| {
            let verdict = judge(&path(), seen);
            assert_eq!(verdict.valid_above_ns, None, "{why}");
            verdict.words
        };
        let mut busy_canary = observations(pausing());
        busy_canary.canary = spread(6 * MS);
        not_valid("the canary starves", &busy_canary);
        let mut no_canary = observations(pausing());
        no_canary.canary.count = 3;
        assert!(
            not_valid("the canary has seen too little", &no_canary).contains("9.0 ms from a reply to the next request")
        );
        let waits = pausing().waits.unwrap();
        let with = |waits| observations(ClientStatistics { waits, ..pausing() });
        not_valid("its waits are long", &with(Some(WaitStatistics { wait: spread(5 * MS), ..waits })));
        let starved = WaitStatistics { waited_share: 0.9, waited_ns: 80_000 * MS, ..waits };
        assert!(not_valid("its pauses are waits", &with(Some(starved))).contains("waited 90 % of the time"));
        let bound = WaitStatistics { ran_share: 0.97, ..waits };
        assert!(not_valid("it has no time to pause", &with(Some(bound))).contains("CPU-bound"));
        not_valid("its pauses cannot be observed", &with(None));
        let mut stopped = pausing();
        stopped.turns.lying = 300;
        assert!(
            not_valid("it was stopped", &observations(stopped))
                .contains("left 3 % of its replies unread for more than 20 ms")
        );
    }

    #[test]
    fn who_cannot_be_seen_is_judged_by_the_canary() {
        // A file system on a mount: no connection, no process.
        let nobody = Observations { clients: Vec::new(), ..observations(client(0)) };
        let verdict = judge(&Path { deepest_queue: 4, ..path() }, &nobody);
        assert_eq!(verdict.error_ns, Some((12 + 60) * US + 4 * UNSEEN_WORK_NS));
        let busy = Observations { canary: spread(6 * MS), ..nobody };
        let words = judge(&path(), &busy).words;
        assert!(
            words.contains("a probe of normal priority next to clients that cannot be observed waited 6.0 ms"),
            "{words}"
        );
        // A remote connection's turns prove nothing.
        let mut remote = client(50 * US);
        (remote.pid, remote.name, remote.waits) = (None, None, None);
        assert_eq!(judge(&path(), &observations(remote)).error_ns, Some((12 + 60) * US + UNSEEN_WORK_NS));
        assert!(judge(&path(), &Observations::default()).words.contains("too short to determine"));
    }

    #[test]
    fn the_worst_of_the_clients_that_matter_decides() {
        let mut two = observations(client(50 * US));
        two.clients.push(client(MS));
        assert_eq!(judge(&Path { requests: 20_000, ..path() }, &two).error_ns, Some(MS));
        // A client that left after a few requests has less than 1 % of them.
        two.clients[1].turns.requests = 3;
        assert_eq!(judge(&Path { requests: 10_003, ..path() }, &two).error_ns, Some(50 * US));
        let nothing = judge(&Path { requests: 0, ..path() }, &two);
        assert_eq!((nothing.valid_above_ns, &*nothing.words), (None, "no verdict: no request was answered"));
    }
}
