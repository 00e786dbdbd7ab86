//! Scheduler statistics of a process: how long its threads ran, and how long they waited for a processor
//! (`/proc/PID/task/TID/schedstat`).

use std::collections::HashMap;
use std::fs;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::turns::{Spread, Times};

/// Number of threads of a process that are sampled: the first ones.
const THREADS_MAX: usize = 64;

/// Time that a thread ran and waited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Use {
    ran_ns: u64,
    waited_ns: u64,
    runs: u64,
}

/// A process from some moment on.
#[derive(Debug)]
pub struct Process {
    pid: u32,
    since: Instant,
    /// For each thread: its use at the last sample, and its use since the first.
    threads: HashMap<u32, (Use, Use)>,
    /// Names of the threads that count; all of them if empty.
    counted: &'static [&'static str],
    /// Mean wait before a run, by sample.
    waits: Times,
}

/// Statistics of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct WaitStatistics {
    /// Share of the time in which its busiest thread ran.
    pub ran_share: f64,
    /// Largest share of the time in which any of its threads waited for a processor.
    pub waited_share: f64,
    /// Total running time of all threads.
    pub ran_ns: u64,
    /// Total waiting time of all threads.
    pub waited_ns: u64,
    /// Wait of a thread before a run, between samples.
    pub wait: Spread,
}

impl Process {
    /// Starts observing a process; `None` if it has ended, or the kernel keeps no such statistics.
    pub fn new(pid: u32, counted: &'static [&'static str]) -> Option<Process> {
        let (since, threads, waits) = (Instant::now(), HashMap::new(), Times::new());
        let mut process = Process { pid, since, threads, counted, waits };
        process.look();
        if process.threads.is_empty() {
            return None;
        }
        // Earlier use does not count.
        process.threads.values_mut().for_each(|(_, used)| *used = Use::default());
        process.waits = Times::new();
        Some(process)
    }

    /// Samples its threads. A thread that has ended counts with its use at the last sample.
    pub fn look(&mut self) {
        let Ok(tasks) = fs::read_dir(format!("/proc/{}/task", self.pid)) else { return };
        let names = tasks.flatten().filter_map(|task| task.file_name().to_str()?.parse::<u32>().ok());
        let (mut waited_ns, mut runs) = (0, 0);
        for thread in names.take(THREADS_MAX) {
            let is_known = self.threads.contains_key(&thread);
            if !is_known && !self.counts(thread) {
                continue;
            }
            let Some(now) = used(self.pid, thread) else { continue };
            let (last, sum) = self.threads.entry(thread).or_default();
            let (ran, waited, run) = (
                now.ran_ns.saturating_sub(last.ran_ns),
                now.waited_ns.saturating_sub(last.waited_ns),
                now.runs.saturating_sub(last.runs),
            );
            *last = now;
            *sum = Use { ran_ns: sum.ran_ns + ran, waited_ns: sum.waited_ns + waited, runs: sum.runs + run };
            (waited_ns, runs) = (waited_ns + waited, runs + run);
        }
        if let Some(wait_ns) = waited_ns.checked_div(runs) {
            self.waits.record(Duration::from_nanos(wait_ns));
        }
    }

    fn counts(&self, thread: u32) -> bool {
        let name = || fs::read_to_string(format!("/proc/{}/task/{thread}/comm", self.pid)).unwrap_or_default();
        self.counted.is_empty() || self.counted.contains(&name().trim())
    }

    /// Statistics so far.
    pub fn statistics(&self) -> WaitStatistics {
        let wall_ns = self.since.elapsed().as_nanos().max(1) as f64;
        let most = |of: fn(&Use) -> u64| self.threads.values().map(|(_, used)| of(used)).max().unwrap_or(0) as f64;
        let sum = |of: fn(&Use) -> u64| self.threads.values().map(|(_, used)| of(used)).sum();
        WaitStatistics {
            ran_share: most(|used| used.ran_ns) / wall_ns,
            waited_share: most(|used| used.waited_ns) / wall_ns,
            ran_ns: sum(|used| used.ran_ns),
            waited_ns: sum(|used| used.waited_ns),
            wait: self.waits.spread(),
        }
    }
}

fn used(pid: u32, thread: u32) -> Option<Use> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{thread}/schedstat")).ok()?;
    let mut figures = text.split_whitespace().map_while(|figure| figure.parse().ok());
    Some(Use { ran_ns: figures.next()?, waited_ns: figures.next()?, runs: figures.next()? })
}

/// The name of a process.
pub fn name_of(pid: u32) -> Option<String> {
    fs::read_to_string(format!("/proc/{pid}/comm")).ok().map(|name| name.trim().to_owned())
}

/// Total time in which any task on this machine waited for a processor; `None` if the kernel does not report it.
pub fn pressure() -> Option<Duration> {
    let text = fs::read_to_string("/proc/pressure/cpu").ok()?;
    let total = text.lines().find(|line| line.starts_with("some"))?.rsplit_once("total=")?.1;
    total.trim().parse().ok().map(Duration::from_micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_worked_is_seen_to_have_run() {
        let mut process = Process::new(std::process::id(), &[]).expect("this one can be looked at");
        assert_eq!(process.statistics().ran_ns, 0);
        let mut sum = 0u64;
        // Until the scheduler has accounted for it, which it does at its ticks.
        while process.statistics().ran_ns == 0 {
            sum = (0..100_000).fold(sum, |sum, number| std::hint::black_box(sum ^ number));
            process.look();
        }
        assert!(process.statistics().ran_share > 0.0);
        assert!(Process::new(u32::MAX, &[]).is_none());
        assert!(Process::new(std::process::id(), &["no-such-thread"]).is_none());
    }
}
