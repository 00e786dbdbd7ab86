//! Clients of a scenario on a system that completes every request after 1 ms, regardless of its load.

use std::collections::VecDeque;

use headstack_driver::{ClientIssue, Clients};
use headstack_result::{Component, Finished, Measuring, Mode, RunResult, SystemRecord};
use headstack_workload::Span;
use headstack_workload::scenario::Scenario;
use serde_json::Value;

const MS: u64 = 1_000_000;

/// Clients of the scenario, and the requests to the system.
struct Played {
    clients: Clients,
    issued: Vec<ClientIssue>,
    now_ns: u64,
    is_measured: bool,
}

fn play(text: &str, until_ns: u64) -> Played {
    play_from(text, u64::MAX, until_ns)
}

/// Measures from `from_ns` on, until `until_ns` or until nothing is left to do.
fn play_from(text: &str, from_ns: u64, until_ns: u64) -> Played {
    let text = format!("name = \"test\"\nsource = \"this test\"\n{text}");
    let scenario = Scenario::from_toml("test.toml", &text).unwrap();
    let luns = [("disk".to_owned(), Span { start_bytes: 0, length_bytes: 1 << 30 })];
    let clients = Clients::new(&scenario, &luns, 512, 1).unwrap();
    let mut played = Played { clients, issued: Vec::new(), now_ns: 0, is_measured: false };
    played.go(from_ns, until_ns);
    played
}

impl Played {
    fn go(&mut self, from_ns: u64, until_ns: u64) {
        let mut under_way: VecDeque<ClientIssue> = VecDeque::new();
        let mut fresh = Vec::new();
        self.clients.begin(|issue| fresh.push(*issue));
        loop {
            self.issued.extend(&fresh);
            under_way.extend(fresh.drain(..));
            let (due_ns, done_ns) = (self.clients.next_due_ns(), under_way.front().map_or(u64::MAX, done_ns));
            let next_ns = due_ns.min(done_ns);
            if next_ns >= until_ns {
                self.now_ns = until_ns;
                return;
            }
            if next_ns >= from_ns && !self.is_measured {
                self.clients.start_measuring(from_ns);
                self.is_measured = true;
            }
            if done_ns > due_ns {
                self.clients.issue_next(|issue| fresh.push(*issue));
                continue;
            }
            let ClientIssue { due_ns, request, owner } = under_way.pop_front().unwrap();
            let (kind, length_bytes) = (request.kind as usize, request.length_bytes);
            if self.is_measured {
                let finished = Finished { kind, length_bytes, intended_ns: due_ns, started_ns: due_ns, at_ns: done_ns };
                self.clients.record(owner, &finished);
            }
            self.clients.completed(owner, done_ns, |issue| fresh.push(*issue));
        }
    }

    fn issued_ms(&self) -> Vec<u64> {
        self.issued.iter().map(|issue| issue.due_ns / MS).collect()
    }

    fn result(self) -> RunResult {
        let system = SystemRecord::new("", "", Value::Null);
        let mut result = RunResult::new(Mode::Simulated, system, Value::Null, 0, "");
        self.clients.finish(self.now_ns).write_to(&mut result);
        result
    }
}

fn done_ns(issue: &ClientIssue) -> u64 {
    issue.due_ns + MS
}

fn transactions(cpus: u32, clients: u32, think: &str, cpu: &str) -> String {
    format!(
        "cpus = {cpus}\nrun_length = {{ time = \"1s\" }}\n[[streams]]\nname = \"clients\"\n[streams.transactions]\n\
         clients = {clients}\nthink = {{ fixed = \"{think}\" }}\ncpu = \"{cpu}\"\nrequests = 1\n\
         lines = [{{ size = \"4KiB\", read_percent = 100, random_percent = 100 }}]\n"
    )
}

#[test]
fn clients_wait_for_the_processor_that_is_free_first() {
    // One processor for 4 ms each, one client after the other, while others wait for the system.
    let one = play(&transactions(1, 3, "0s", "4ms"), 27 * MS);
    assert_eq!(one.issued_ms(), [4, 8, 12, 16, 20, 24]);
    let owners: Vec<u32> = one.issued.iter().map(|issue| issue.owner.client).collect();
    assert_eq!(owners, [0, 1, 2, 0, 1, 2]);
    // Two: the third client waits for the first to be free, the others come back at 5 ms, to one free and one busy.
    let two = play(&transactions(2, 3, "0s", "4ms"), 14 * MS);
    assert_eq!(two.issued_ms(), [4, 4, 8, 9, 12, 13]);
}

#[test]
fn simultaneous_clients_issue_in_order_of_waiting() {
    let mut played = play(&transactions(1, 3, "5ms", "0s"), 5 * MS);
    assert_eq!((played.issued.len(), played.clients.next_due_ns()), (0, 5 * MS));
    let mut first = Vec::new();
    (0..3).for_each(|_| played.clients.issue_next(|issue| first.push(*issue)));
    assert_eq!(first.iter().map(|issue| issue.owner.client).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(played.clients.next_due_ns(), u64::MAX, "all of them wait for the system");
    // They come back in another order, with equal think times.
    for at in [2, 0, 1] {
        played.clients.completed(first[at].owner, 6 * MS, |issue| panic!("{issue:?} while it thinks"));
    }
    let mut second = Vec::new();
    (0..3).for_each(|_| played.clients.issue_next(|issue| second.push(*issue)));
    let told: Vec<(u64, u32)> = second.iter().map(|issue| (issue.due_ns, issue.owner.client)).collect();
    assert_eq!(told, [(11 * MS, 2), (11 * MS, 0), (11 * MS, 1)]);
}

#[test]
fn components_and_streams_cover_only_the_measured_part() {
    // Two clients keep one processor busy without a pause: from 10 ms to 30 ms it works for 20 ms, within one.
    let played = play_from(&transactions(1, 2, "0s", "4ms"), 10 * MS, 30 * MS);
    assert_eq!(played.issued_ms(), [4, 8, 12, 16, 20, 24, 28]);
    let result = played.result();
    let [Component { name, servers: 1, busy_ns, .. }] = &result.components[..] else { panic!("{result:?}") };
    assert_eq!((name.as_str(), *busy_ns), ("host processors", 20 * MS));
    assert_eq!(result.streams[0].kinds.read.count, 5, "those that are complete at 13, 17, 21, 25 and 29 ms");
}

#[test]
fn a_network_carries_one_thing_at_a_time() {
    let web = |network: &str| {
        format!(
            "{network}\nrun_length = {{ time = \"1s\" }}\n[[streams]]\nname = \"pages\"\n[streams.web]\nusers = 4\n\
             files = 100\nsmallest_file = \"64KiB\"\nmean_file = \"128KiB\"\nlargest_file = \"192KiB\"\n\
             hot_files_percent = 10\nhot_pages_percent = 50\n"
        )
    };
    let pages = |result: &RunResult, fact: &str| {
        result.streams[0].facts.iter().find(|one| one.name == fact).unwrap_or_else(|| panic!("{result:?}")).value
    };
    let result = play_from(&web("network = \"10MB/s\""), 0, 1_000 * MS).result();
    let network = result.components.iter().find(|one| one.name == "client network").unwrap();
    assert_eq!(network.servers, 1);
    // It is never idle once the first page is read, and bytes of pages in transit are not counted yet.
    assert!((pages(&result, "page_bytes") / 10e6 - 1.0).abs() < 0.08, "{result:?}");
    assert!(network.busy_ns >= 1_000 * MS - 5 * MS, "{network:?}");
    // Without a network, pages take as long as the system does.
    let free = play_from(&web(""), 0, 1_000 * MS).result();
    assert_eq!(free.components.len(), 1);
    assert!(pages(&free, "pages_per_s") > 10.0 * pages(&result, "pages_per_s"), "{free:?}");
}

#[test]
fn a_scenario_ends_with_the_last_of_its_finite_streams() {
    let text = "run_length = \"all_done\"\n[[streams]]\nname = \"fill\"\nrange = [\"0B\", \"1MiB\"]\n\
                [streams.prefill]\norder = \"serial\"\nblock = \"256KiB\"\n";
    let measuring = Measuring::new(0, 0, u64::MAX);
    let under_way = play(text, 2 * MS);
    assert!(!under_way.clients.is_over(&measuring, 1), "{:?}", under_way.issued_ms());
    let done = play(text, 100 * MS);
    assert_eq!(done.issued.iter().map(|issue| u64::from(issue.request.length_bytes)).sum::<u64>(), 1 << 20);
    assert!(done.clients.is_over(&measuring, done.issued.len() as u64));
    assert_eq!(done.clients.next_due_ns(), u64::MAX);
}

#[test]
fn a_warm_up_ends_when_both_its_limits_have_passed() {
    let text = format!("warm_up = {{ requests = 3, time = \"10ms\" }}\n{}", transactions(1, 1, "0s", "1ms"));
    let clients = play(&text, 0).clients;
    assert!(!clients.is_warm(2, 10 * MS) && !clients.is_warm(3, 10 * MS - 1) && clients.is_warm(3, 10 * MS));
}
