//! [`AllHosts`]: merges results that several hosts measured at the same time, on a common clock.
//!
//! Counts and histograms are integers, and totals are sums over the hosts. The overall rate is the number of all
//! requests divided by the time from the first start to the last end, as for the threads of one host. If some hosts did
//! not measure during all of that time, [`Common`] has the rate for the time in which all hosts measured.

use headstack_result::{
    Check, Counter, DepthResult, Estimate, Fact, Interval, Mode, RunResult, Sampling, Stalls, StreamResult,
    SystemRecord, TooShort,
};
use headstack_workload::GENERATOR_NAME;
use serde_json::{Value, json};

use crate::measured::joined_intervals;

/// Results of one host.
pub struct HostRun {
    /// Name of the host.
    pub host: String,
    /// Start of the run on the common clock, in ns.
    pub began_ns: u64,
    /// Accuracy of the start time and drift of the clock, as named figures.
    pub facts: Vec<Fact>,
    /// All other results, with times relative to the start.
    pub result: RunResult,
}

/// A host without a result.
pub struct Missing {
    /// Name of the host.
    pub host: String,
    /// Time at which the host vanished and its progress, as named figures.
    pub facts: Vec<Fact>,
}

/// Results of hosts that were to measure at the same time.
pub struct AllHosts {
    /// Name for all hosts together in results.
    pub name: String,
    /// Hosts with results.
    pub runs: Vec<HostRun>,
    /// Hosts without results.
    pub missing: Vec<Missing>,
    /// Length of the intervals of the time series, in ns.
    pub interval_ns: Option<u64>,
    /// Reason why the measurement as a whole is incomplete.
    pub ended_early: Option<String>,
    /// Notes for the reader.
    pub notes: Vec<String>,
}

/// The time during which all hosts measured, and the requests that completed in it.
struct Common {
    duration_ns: u64,
    requests: u64,
    bytes: u64,
}

impl AllHosts {
    /// Returns the merged result of all hosts, and the result of each host under its own name; `None` if no host has a
    /// result.
    pub fn joined(self) -> Option<(RunResult, Vec<RunResult>)> {
        let first = self.runs.first()?;
        let system = SystemRecord::new(self.name.as_str(), "hosts", json!({ "hosts": self.systems() }));
        let seed = first.result.seed;
        let mut all = RunResult::new(Mode::Measured, system, self.workload(), seed, GENERATOR_NAME);
        let origin_ns = self.runs.iter().map(|run| run.began_ns).min().unwrap_or(0);
        // The times of a host that never finished its warm-up are meaningless.
        let spans = || self.runs.iter().filter(|run| run.result.duration_ns > 0).map(|run| run.span(origin_ns));
        all.start_ns = spans().map(|(start_ns, _)| start_ns).min().unwrap_or(0);
        all.duration_ns = spans().map(|(_, end_ns)| end_ns).max().unwrap_or(all.start_ns) - all.start_ns;
        for run in &self.runs {
            let host = &run.result;
            all.kinds.merge(&host.kinds);
            all.late_arrivals += host.late_arrivals;
            all.backlog += host.backlog;
            all.saturated |= host.saturated;
        }
        all.offered_per_s = self.runs.iter().map(|run| run.result.offered_per_s).sum();
        all.depth = self.depth(all.duration_ns);
        all.sampling = self.sampling();
        let later = |run: &HostRun| (run.began_ns - origin_ns) as i64;
        all.stalls = Stalls::joined(self.runs.iter().filter_map(|run| Some((later(run), run.result.stalls.as_ref()?))));
        let each = self.runs.iter().flat_map(|run| {
            let later_ns = run.began_ns - origin_ns;
            run.result.intervals.iter().map(move |interval| (later_ns + interval.start_ns, interval))
        });
        all.intervals = joined_intervals(each, self.interval_ns);
        all.streams = self.streams();
        all.checks = self.checks(&all);
        all.notes.clone_from(&self.notes);
        if let Some(common) = self.common(origin_ns) {
            all.notes.extend(common.common_window_note(&all, self.runs.len()));
            all.counters = common.counters();
        } else if self.runs.len() > 1 {
            all.notes.push("the hosts never measured at the same time, so there is no total rate".to_owned());
        }
        let own = self.runs.iter().find_map(|run| Some(format!("{}: {}", run.host, run.result.ended_early.as_ref()?)));
        all.ended_early = self.ended_early.or(own);
        let named = |run: HostRun| {
            let mut result = run.result;
            result.system.name = format!("{}:{}", run.host, result.system.name);
            result
        };
        Some((all, self.runs.into_iter().map(named).collect()))
    }

    fn systems(&self) -> Vec<Value> {
        let describe = |run: &HostRun| {
            let SystemRecord { name, kind, description, .. } = &run.result.system;
            json!({ "host": run.host, "name": name, "kind": kind, "description": **description })
        };
        self.runs.iter().map(describe).collect()
    }

    /// Returns the workload of all hosts together, as a multiple if all hosts run the same workload.
    fn workload(&self) -> Value {
        let mut each = self.runs.iter().map(|run| &run.result.workload);
        let Some(first) = each.next() else { return Value::Null };
        if !each.all(|other| other == first) {
            let each = self.runs.iter().map(|run| json!({ "host": run.host, "workload": run.result.workload }));
            let names = self.runs.iter().filter_map(|run| run.result.workload["name"].as_str());
            return json!({ "name": names.collect::<Vec<_>>().join(", "), "hosts": each.collect::<Vec<_>>() });
        }
        let mut workload = first.clone();
        for place in ["/arrivals/closed/queue_depth", "/run_length/requests"] {
            if let Some(number) = workload.pointer_mut(place)
                && let Some(count) = number.as_u64()
            {
                *number = (count * self.runs.len() as u64).into();
            }
        }
        if let Some(rate) = workload.pointer_mut("/arrivals/open/rate_per_s")
            && let Some(per_s) = rate.as_f64()
        {
            *rate = (per_s * self.runs.len() as f64).into();
        }
        workload
    }

    fn depth(&self, duration_ns: u64) -> DepthResult {
        let weight = |run: &HostRun| run.result.duration_ns as f64 / (duration_ns as f64).max(1.0);
        DepthResult {
            mean: self.runs.iter().map(|run| run.result.depth.mean * weight(run)).sum(),
            max: self.runs.iter().map(|run| run.result.depth.max).sum(),
            time_at_depth_ns: Vec::new(),
        }
    }

    /// Returns the sampling error of the overall mean. The hosts share the system, so a slow period affects all of
    /// them; in the worst case their errors add up.
    fn sampling(&self) -> Sampling {
        let mut sampling = Sampling::nothing(TooShort::SeveralThreads);
        let total: f64 = self.runs.iter().map(|run| run.result.count() as f64).sum();
        let (mut low_ns, mut high_ns) = (0.0, 0.0);
        for HostRun { result, .. } in self.runs.iter().filter(|run| run.result.count() > 0) {
            let share = result.count() as f64 / total;
            match &result.sampling.mean {
                Estimate::Between { low_ns: low, high_ns: high } => {
                    low_ns += low * share;
                    high_ns += high * share;
                }
                too_short @ Estimate::TooShort(_) => {
                    sampling.mean = *too_short;
                    return sampling;
                }
            }
            sampling.warm_up_requests += result.sampling.warm_up_requests;
        }
        if total > 0.0 {
            sampling.mean = Estimate::Between { low_ns, high_ns };
        }
        sampling
    }

    /// Returns one stream per host, including missing hosts.
    fn streams(&self) -> Vec<StreamResult> {
        let there = self.runs.iter().map(|run| StreamResult {
            name: run.host.clone(),
            kinds: run.result.kinds.clone(),
            facts: run.facts.clone(),
        });
        let missing = self.missing.iter().map(|one| StreamResult {
            name: one.host.clone(),
            facts: one.facts.clone(),
            ..StreamResult::default()
        });
        there.chain(missing).collect()
    }

    /// Checks that no request is lost or counted twice, and repeats the checks of each host.
    fn checks(&self, all: &RunResult) -> Vec<Check> {
        let sum = |of: fn(&RunResult) -> u64| self.runs.iter().map(|run| of(&run.result)).sum::<u64>();
        let hosts = (sum(RunResult::count), sum(RunResult::bytes), sum(|one| one.latency().count()));
        let joined = (all.count(), all.bytes(), all.latency().count());
        let added = Check {
            name: "all = the sum of the hosts".to_owned(),
            passed: hosts == joined,
            detail: format!("{} requests, {} bytes, {} response times", joined.0, joined.1, joined.2),
        };
        let failed = self.runs.iter().flat_map(|run| {
            run.result.checks.iter().filter(|check| !check.passed).map(|check| Check {
                name: format!("{}: {}", run.host, check.name),
                passed: false,
                detail: check.detail.clone(),
            })
        });
        std::iter::once(added).chain(failed).collect()
    }

    /// Returns the requests that completed while all hosts measured, computed from their intervals. An interval at the
    /// edge counts in proportion.
    fn common(&self, origin_ns: u64) -> Option<Common> {
        let spans = || self.runs.iter().map(|run| run.span(origin_ns));
        let from_ns = spans().map(|(start_ns, _)| start_ns).max()?;
        let to_ns = spans().map(|(_, end_ns)| end_ns).min()?;
        if from_ns >= to_ns || self.runs.iter().any(|run| run.result.intervals.is_empty()) {
            return None;
        }
        let mut common = Common { duration_ns: to_ns - from_ns, requests: 0, bytes: 0 };
        for run in &self.runs {
            for interval in &run.result.intervals {
                let Interval { start_ns, duration_ns, count, bytes, .. } = *interval;
                let start_ns = run.began_ns - origin_ns + start_ns;
                let inside_ns = (start_ns + duration_ns).min(to_ns).saturating_sub(start_ns.max(from_ns));
                let share = |amount: u64| u128::from(amount) * u128::from(inside_ns) / u128::from(duration_ns.max(1));
                // The product is at most the count of the interval.
                common.requests += share(count) as u64;
                common.bytes += share(bytes) as u64;
            }
        }
        Some(common)
    }
}

impl HostRun {
    /// Returns the start and end of the measured part on the common clock, in ns.
    fn span(&self, origin_ns: u64) -> (u64, u64) {
        let start_ns = self.began_ns - origin_ns + self.result.start_ns;
        (start_ns, start_ns + self.result.duration_ns)
    }
}

impl Common {
    fn counters(&self) -> Vec<Counter> {
        let counter = |name: &str, value| Counter { name: name.to_owned(), value };
        vec![
            counter("common_window_ns", self.duration_ns),
            counter("common_window_requests", self.requests),
            counter("common_window_bytes", self.bytes),
        ]
    }

    fn common_window_note(&self, all: &RunResult, hosts: usize) -> Option<String> {
        let seconds = self.duration_ns as f64 / 1e9;
        (hosts > 1).then(|| {
            format!(
                "all {hosts} hosts measured together for {seconds:.3} of {:.3} s: {:.1} IOPS and {:.2} MB/s in that time, \
                 by their intervals",
                all.duration_ns as f64 / 1e9,
                self.requests as f64 / seconds,
                self.bytes as f64 / 1e6 / seconds,
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a host that measures from 100 ms after its start: `intervals` intervals of 100 ms with 10 requests each,
    /// whose latencies are 1, 2, ..., 10 times `unit_ns`.
    fn host(name: &str, began_ms: u64, intervals: u64, unit_ns: u64) -> HostRun {
        let system = SystemRecord::new("/dev/sdb", "block device", json!({ "host": name }));
        let workload = json!({ "name": "w", "arrivals": { "closed": { "queue_depth": 8 } } });
        let mut result = RunResult::new(Mode::Measured, system, workload, 1, GENERATOR_NAME);
        (result.start_ns, result.duration_ns) = (100_000_000, intervals * 100_000_000);
        for index in 0..intervals {
            let mut latency = headstack_result::LatencyHistogram::new();
            for times in 1..=10 {
                result.kinds.read.count += 1;
                result.kinds.read.bytes += 4096;
                result.kinds.read.latency.record(times * unit_ns);
                latency.record(times * unit_ns);
            }
            result.intervals.push(Interval {
                start_ns: 100_000_000 * (1 + index),
                duration_ns: 100_000_000,
                count: 10,
                bytes: 40_960,
                latency: latency.store(),
            });
        }
        HostRun { host: name.to_owned(), began_ns: began_ms * 1_000_000, facts: Vec::new(), result }
    }

    fn all(runs: Vec<HostRun>) -> AllHosts {
        let missing = vec![Missing { host: "c".to_owned(), facts: Vec::new() }];
        AllHosts {
            name: "a, b, c".to_owned(),
            runs,
            missing,
            interval_ns: Some(100_000_000),
            ended_early: None,
            notes: Vec::new(),
        }
    }

    #[test]
    fn what_hosts_measured_adds_up_to_the_last_request() {
        let (joined, each) = all(vec![host("a", 1000, 10, 1000), host("b", 1000, 10, 7001)]).joined().unwrap();
        let mut union = each[0].latency();
        union.merge(&each[1].latency());
        assert_eq!(joined.latency(), union);
        assert_eq!((joined.count(), joined.bytes()), (200, 200 * 4096));
        assert!(joined.passed(), "{:?}", joined.checks);
        let names: Vec<_> = joined.streams.iter().map(|stream| stream.name.as_str()).collect();
        assert_eq!(names, ["a", "b", "c"]);
        assert_eq!(each[1].system.name, "b:/dev/sdb");
        assert_eq!(joined.workload["arrivals"]["closed"]["queue_depth"], 16);
        let counts: Vec<_> = joined.intervals.iter().map(|interval| interval.count).collect();
        assert_eq!(counts, [20; 10]);
        assert_eq!(RunResult::from_json(&joined.to_json().unwrap()).unwrap(), joined);
    }

    #[test]
    fn a_host_that_began_later_is_moved_and_the_time_of_all_is_kept_apart() {
        // b measures from 250 ms after a, for 1 s: 750 ms are common, with 75 requests of each host.
        let (joined, _) = all(vec![host("a", 1000, 10, 1000), host("b", 1250, 10, 1000)]).joined().unwrap();
        assert_eq!((joined.start_ns, joined.duration_ns), (100_000_000, 1_250_000_000));
        let counters: Vec<_> = joined.counters.iter().map(|counter| counter.value).collect();
        assert_eq!(counters, [750_000_000, 150, 150 * 4096]);
        assert!(joined.notes[0].contains("for 0.750 of 1.250 s: 200.0 IOPS"), "{:?}", joined.notes);
        assert_eq!(joined.intervals.iter().map(|interval| interval.count).sum::<u64>(), 200);
        let (apart, _) = all(vec![host("a", 1000, 2, 1000), host("b", 5000, 2, 1000)]).joined().unwrap();
        assert!(
            apart.counters.is_empty() && apart.notes[0].starts_with("the hosts never measured at the same time"),
            "{:?}",
            apart.notes
        );
    }

    #[test]
    fn the_end_of_one_host_is_reported_for_all() {
        let mut b = host("b", 1000, 1, 1000);
        b.result.ended_early = Some("no space".to_owned());
        b.result.checks.push(Check { name: "in = out".to_owned(), passed: false, detail: "1, 2".to_owned() });
        let (joined, _) = all(vec![host("a", 1000, 2, 1000), b]).joined().unwrap();
        assert_eq!(joined.ended_early.as_deref(), Some("b: no space"));
        assert!(joined.checks.iter().any(|check| check.name == "b: in = out" && !check.passed));
        assert!(all(Vec::new()).joined().is_none());
    }

    #[test]
    fn the_workload_of_hosts_that_do_the_same_is_a_multiple_of_it() {
        let joined = |workloads: [Value; 2]| {
            let runs = workloads.into_iter().map(|workload| {
                let mut run = host("a", 1000, 1, 1000);
                run.result.workload = workload;
                run
            });
            all(runs.collect()).joined().unwrap().0.workload
        };
        let same = json!({
            "name": "w", "arrivals": { "open": { "rate_per_s": 10.5 } }, "run_length": { "requests": 500 },
        });
        let workload = joined([same.clone(), same.clone()]);
        assert_eq!(workload["arrivals"]["open"]["rate_per_s"], 21.0);
        assert_eq!((&workload["run_length"]["requests"], &workload["name"]), (&json!(1000), &json!("w")));
        let workload = joined([same, json!({ "name": "v" })]);
        assert_eq!((&workload["name"], &workload["hosts"][1]["workload"]["name"]), (&json!("w, v"), &json!("v")));
    }

    #[test]
    fn what_hosts_offered_and_held_outstanding_adds_up() {
        let (mut a, mut b) = (host("a", 1000, 10, 1000), host("b", 1000, 5, 1000));
        (a.result.offered_per_s, b.result.offered_per_s) = (Some(100.0), Some(50.0));
        (a.result.late_arrivals, b.result.late_arrivals) = (2, 3);
        (a.result.backlog, b.result.backlog) = (5, 6);
        b.result.saturated = true;
        a.result.depth = DepthResult { mean: 4.0, max: 8, time_at_depth_ns: Vec::new() };
        b.result.depth = DepthResult { mean: 2.0, max: 3, time_at_depth_ns: Vec::new() };
        b.facts = vec![Fact { name: "clock_error_us".to_owned(), value: 3.0 }];
        let (joined, _) = all(vec![a, b]).joined().unwrap();
        assert_eq!((joined.offered_per_s, joined.saturated), (Some(150.0), true));
        assert_eq!((joined.late_arrivals, joined.backlog), (5, 11));
        // The second host measured for half of the time.
        assert_eq!((joined.depth.mean, joined.depth.max), (5.0, 11));
        assert_eq!((joined.streams[1].facts.len(), joined.streams[1].kinds.read.count), (1, 50));
        let (joined, _) = all(vec![host("a", 1000, 1, 1000)]).joined().unwrap();
        assert_eq!((joined.offered_per_s, joined.saturated, joined.notes), (None, false, Vec::new()));
    }

    #[test]
    fn the_error_of_the_mean_of_all_hosts_is_weighted_by_their_requests() {
        let known = |name: &str, intervals, low_ns, high_ns| {
            let mut run = host(name, 1000, intervals, 1000);
            run.result.sampling.mean = Estimate::Between { low_ns, high_ns };
            run.result.sampling.warm_up_requests = 3;
            run
        };
        let (a, b) = (|| known("a", 3, 4000.0, 8000.0), || known("b", 1, 8000.0, 12_000.0));
        // A host without requests has weight 0.
        let idle = host("c", 1000, 0, 1000);
        let (joined, _) = all(vec![a(), b(), idle]).joined().unwrap();
        assert_eq!(joined.sampling.mean, Estimate::Between { low_ns: 5000.0, high_ns: 9000.0 });
        assert_eq!(joined.sampling.warm_up_requests, 6);
        let mut short = b();
        short.result.sampling.mean = Estimate::TooShort(TooShort::Drifts);
        let (joined, _) = all(vec![a(), short]).joined().unwrap();
        assert_eq!(joined.sampling.mean, Estimate::TooShort(TooShort::Drifts));
        let (joined, _) = all(vec![host("c", 1000, 0, 1000)]).joined().unwrap();
        assert_eq!(joined.sampling.mean, Estimate::TooShort(TooShort::SeveralThreads));
        assert_eq!((joined.start_ns, joined.duration_ns), (0, 0), "the host never finished its warm-up");
        assert!(joined.notes.is_empty(), "{:?}", joined.notes);
        let mut run = known("a", 0, 4000.0, 8000.0);
        run.result.kinds.read.count = 1;
        let (joined, _) = all(vec![run]).joined().unwrap();
        assert_eq!(joined.sampling.mean, Estimate::Between { low_ns: 4000.0, high_ns: 8000.0 });
    }

    #[test]
    fn an_interval_that_the_common_time_cuts_counts_by_its_share() {
        // The hosts measure together from 150 ms to 300 ms after the first start: half an interval and one whole
        // interval of each.
        let (joined, _) = all(vec![host("a", 1000, 2, 1000), host("b", 1050, 2, 1000)]).joined().unwrap();
        let counters: Vec<_> = joined.counters.iter().map(|counter| (counter.name.as_str(), counter.value)).collect();
        let expected =
            [("common_window_ns", 150_000_000), ("common_window_requests", 30), ("common_window_bytes", 30 * 4096)];
        assert_eq!(counters, expected);
        assert!(
            joined.notes[0].ends_with("200.0 IOPS and 0.82 MB/s in that time, by their intervals"),
            "{:?}",
            joined.notes
        );
    }

    #[test]
    fn stalls_are_moved_to_the_time_of_the_first_host() {
        let (a, mut b) = (host("a", 1000, 10, 1000), host("b", 1250, 10, 1000));
        let longest = vec![headstack_result::Stall { start_ns: 200_000_000, duration_ns: 150_000_000, queue_depth: 2 }];
        b.result.stalls = Some(Stalls { longest, latency: headstack_result::LatencyHistogram::new().store() });
        let (joined, _) = all(vec![a, b]).joined().unwrap();
        assert_eq!(joined.stalls.unwrap().longest[0].start_ns, 450_000_000);
        let starts: Vec<_> = joined.intervals.iter().map(|interval| interval.start_ns).collect();
        assert_eq!((starts[0], starts.len()), (100_000_000, 13));
    }

    #[test]
    fn the_system_of_all_hosts_lists_that_of_each() {
        let mut both = all(vec![host("a", 1000, 1, 1000), host("b", 1000, 1, 1000)]);
        both.notes = vec!["c did not start".to_owned()];
        let (joined, _) = both.joined().unwrap();
        let one =
            |name| json!({ "host": name, "name": "/dev/sdb", "kind": "block device", "description": { "host": name } });
        assert_eq!(*joined.system.description, json!({ "hosts": [one("a"), one("b")] }));
        assert_eq!((joined.system.name.as_str(), joined.system.kind.as_str()), ("a, b, c", "hosts"));
        assert_eq!((joined.notes[0].as_str(), joined.notes.len()), ("c did not start", 2));
    }

    #[test]
    fn hosts_without_a_common_time_or_without_intervals_have_no_common_rate() {
        // b begins to measure at the moment at which a ends.
        let (joined, _) = all(vec![host("a", 1000, 2, 1000), host("b", 1200, 2, 1000)]).joined().unwrap();
        assert_eq!((joined.counters.len(), joined.notes.len()), (0, 1));
        let mut unknown = host("b", 1000, 2, 1000);
        unknown.result.intervals.clear();
        let (joined, _) = all(vec![host("a", 1000, 2, 1000), unknown]).joined().unwrap();
        assert_eq!((joined.counters.len(), joined.notes.len()), (0, 1));
    }

    #[test]
    fn the_measurement_ends_early_for_its_own_reason_first() {
        let mut a = host("a", 1000, 1, 1000);
        a.result.ended_early = Some("no space".to_owned());
        let mut hosts = all(vec![a]);
        hosts.ended_early = Some("stopped by hand".to_owned());
        assert_eq!(hosts.joined().unwrap().0.ended_early.as_deref(), Some("stopped by hand"));
    }
}
