//! [`Step`]: the steps of clients, and other parts that all kinds of streams share.

use serde::{Deserialize, Serialize};

use crate::access::Complaint;
use crate::arrivals::QUEUE_DEPTH_MAX;
use crate::request::{Kind, Request};
use crate::span::Span;

/// The next step of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The client issues this request now, and its next step follows at once. The request's latency counts from now. A
    /// client of an open loop takes this step at the intended arrival time.
    Io {
        /// Index of the request's stream.
        stream: u32,
        /// The request.
        request: Request,
    },
    /// The client waits for any of its requests to complete.
    Await,
    /// The client waits until another client of its stream wakes it (`ScenarioRun::take_woken`).
    AwaitClient,
    /// The client's next step follows at this time.
    Think {
        /// Time in ns.
        until_ns: u64,
    },
    /// The client needs a host processor for this time; its next step follows afterwards.
    Cpu {
        /// Processor time in ns.
        busy_ns: u64,
    },
    /// The network in front of the server transfers these bytes to the client; its next step follows afterwards.
    Transfer {
        /// Number of bytes.
        bytes: u64,
    },
    /// The client has no requests in flight and will never issue another.
    Done,
}

/// Inputs for a client's next step.
#[derive(Clone, Copy)]
pub(crate) struct Turn {
    /// Number of the client in its stream.
    pub(crate) client: u32,
    /// Number of the client's requests in flight.
    pub(crate) in_flight: u32,
    pub(crate) now_ns: u64,
}

/// Position of a stream in the system, and the seed of its draws.
#[derive(Clone)]
pub(crate) struct StreamSetup {
    pub(crate) stream: u32,
    pub(crate) span: Span,
    /// LUNs of the span, each as a span of its own.
    pub(crate) luns: Vec<Span>,
    /// LUNs and files of the system by name, for a stream without a LUN or range of its own.
    pub(crate) names: Vec<(String, Span)>,
    /// Address of the stream's syncs: that of its LUN, so that a sync covers only this file; 0 for everything.
    pub(crate) sync_at_bytes: u64,
    pub(crate) sector_bytes: u32,
    pub(crate) seed: u64,
}

/// Facts about a stream in the measured part of a run, in addition to the latencies of its requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Facts {
    /// No facts, for access and sequential streams.
    Requests,
    /// A web server's pages.
    Pages {
        /// Number of files that fit in the range.
        files: u64,
        /// Number of pages that arrived at their users.
        pages: u64,
        /// Pages per second.
        pages_per_s: f64,
        /// Total size of these pages in bytes.
        bytes: u64,
        /// Mean time from the request for a page to its arrival, in ns.
        mean_page_ns: f64,
    },
    /// Guests of a boot storm in the order of their start, over the whole run.
    Boot {
        /// Start and end of each guest's boot.
        guests: Vec<GuestBoot>,
    },
    /// The frames of a video stream.
    Frames {
        /// Number of frames completed in time.
        complete: u64,
        /// Number of frames that were late, including overdue frames in progress.
        dropped: u64,
        /// Complete frames per second.
        frames_per_s: f64,
    },
    /// Transactions.
    Transactions {
        /// Number of transactions completed.
        transactions: u64,
        /// Transactions per second.
        transactions_per_s: f64,
        /// Mean time from the end of the think time to the last completion, in ns.
        mean_latency_ns: f64,
    },
    /// Transactions of a database.
    Database {
        /// Number of transactions completed.
        transactions: u64,
        /// Transactions per second.
        transactions_per_s: f64,
        /// Mean time from the end of the think time to the end of the commit, in ns.
        mean_latency_ns: f64,
        /// Median and 99th percentile of that time, in ns.
        latency_ns: [f64; 2],
        /// Median and 99th percentile of the time that a commit waits for the log, in ns.
        commit_ns: [f64; 2],
        /// Mean number of commits that one sync of the log serves.
        commits_per_sync: f64,
        /// Records that were added to the log, in bytes.
        log_bytes: u64,
        /// Number of full pages in the log.
        full_pages: u64,
        /// Number of pages that were not in the shared buffers.
        read_pages: u64,
        /// Number of changed pages that a transaction had to write to make room.
        evicted_pages: u64,
        /// Number of pages that checkpoints wrote.
        checkpoint_pages: u64,
        /// Number of completed checkpoints.
        checkpoints: u64,
    },
    /// Progress of a prefill, over the whole run.
    Prefill {
        /// Number of bytes to be written.
        bytes: u64,
        /// Time at which all bytes had been written; `None` if not yet.
        done_ns: Option<u64>,
    },
}

impl Facts {
    /// Returns all facts as named figures with their units.
    pub fn figures(&self) -> Vec<(String, f64)> {
        let fact = |name: &str, value: f64| (name.to_owned(), value);
        let seconds = |ns: u64| ns as f64 / 1e9;
        match self {
            Facts::Requests => vec![],
            Facts::Pages { files, pages, pages_per_s, bytes, mean_page_ns } => vec![
                fact("files", *files as f64),
                fact("pages", *pages as f64),
                fact("pages_per_s", *pages_per_s),
                fact("page_bytes", *bytes as f64),
                fact("mean_page_ms", mean_page_ns / 1e6),
            ],
            Facts::Boot { guests } => {
                let booted: Vec<(u64, u64)> =
                    guests.iter().filter_map(|guest| Some((guest.started_ns, guest.booted_ns?))).collect();
                let ends = || booted.iter().map(|&(_, end_ns)| end_ns);
                let mut all = vec![fact("guests", guests.len() as f64), fact("booted", booted.len() as f64)];
                if let (Some(first), Some(last)) = (ends().min(), ends().max()) {
                    all.push(fact("first_booted_s", seconds(first)));
                    all.push(fact("last_booted_s", seconds(last)));
                }
                let times = booted.iter().enumerate();
                all.extend(times.map(|(at, (from, to))| fact(&format!("guest_{}_boot_s", at + 1), seconds(to - from))));
                all
            }
            Facts::Frames { complete, dropped, frames_per_s } => vec![
                fact("frames_complete", *complete as f64),
                fact("frames_dropped", *dropped as f64),
                fact("frames_per_s", *frames_per_s),
            ],
            Facts::Transactions { transactions, transactions_per_s, mean_latency_ns } => vec![
                fact("transactions", *transactions as f64),
                fact("transactions_per_s", *transactions_per_s),
                fact("mean_transaction_ms", mean_latency_ns / 1e6),
            ],
            Facts::Database {
                transactions,
                transactions_per_s,
                mean_latency_ns,
                latency_ns: [median_ns, p99_ns],
                commit_ns: [median_commit_ns, p99_commit_ns],
                commits_per_sync,
                log_bytes,
                full_pages,
                read_pages,
                evicted_pages,
                checkpoint_pages,
                checkpoints,
            } => vec![
                fact("transactions", *transactions as f64),
                fact("transactions_per_s", *transactions_per_s),
                fact("mean_transaction_ms", mean_latency_ns / 1e6),
                fact("p50_transaction_ms", median_ns / 1e6),
                fact("p99_transaction_ms", p99_ns / 1e6),
                fact("p50_commit_ms", median_commit_ns / 1e6),
                fact("p99_commit_ms", p99_commit_ns / 1e6),
                fact("commits_per_sync", *commits_per_sync),
                fact("log_bytes", *log_bytes as f64),
                fact("full_pages", *full_pages as f64),
                fact("read_pages", *read_pages as f64),
                fact("evicted_pages", *evicted_pages as f64),
                fact("checkpoint_pages", *checkpoint_pages as f64),
                fact("checkpoints", *checkpoints as f64),
            ],
            Facts::Prefill { bytes, done_ns } => {
                let done = done_ns.map(|at_ns| fact("done_s", seconds(at_ns)));
                std::iter::once(fact("prefill_bytes", *bytes as f64)).chain(done).collect()
            }
        }
    }
}

/// Boot of one guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestBoot {
    /// Time at which the guest started.
    pub started_ns: u64,
    /// Time at which the guest had booted; `None` if not yet.
    pub booted_ns: Option<u64>,
}

/// Returns events per second; 0 if no time has passed.
pub(crate) fn per_second(count: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { count as f64 / seconds } else { 0.0 }
}

/// Returns the mean of `count` times, given their sum; 0 if there are none.
pub(crate) fn mean_ns(sum_ns: u128, count: u64) -> f64 {
    if count > 0 { sum_ns as f64 / count as f64 } else { 0.0 }
}

#[inline]
pub(crate) fn io(stream: u32, request: Request) -> Step {
    Step::Io { stream, request }
}

#[inline]
pub(crate) fn read(offset_bytes: u64, length_bytes: u32) -> Request {
    Request { kind: Kind::Read, offset_bytes, length_bytes, force_unit_access: false, ordered: false }
}

#[inline]
pub(crate) fn write(offset_bytes: u64, length_bytes: u32) -> Request {
    Request { kind: Kind::Write, ..read(offset_bytes, length_bytes) }
}

/// Checks a number of clients or a queue depth.
pub(crate) fn check_count(key: &str, count: u32) -> Result<(), Complaint> {
    if (1..=QUEUE_DEPTH_MAX).contains(&count) {
        return Ok(());
    }
    Err((key.to_owned(), format!("{count} is out of range; must be 1 to {QUEUE_DEPTH_MAX}")))
}

/// Returns an error with this reason if a value is 0.
pub(crate) fn check_not_zero(key: &str, value: u64, reason: &str) -> Result<(), Complaint> {
    if value == 0 { Err((key.to_owned(), format!("0 is not allowed; {reason}"))) } else { Ok(()) }
}

/// Checks that a size is a multiple of the sector size.
pub(crate) fn check_sectors(key: &str, bytes: u32, sector_bytes: u32) -> Result<(), Complaint> {
    if bytes.is_multiple_of(sector_bytes) {
        return Ok(());
    }
    let message = format!("{bytes} bytes is not a multiple of the sector size ({sector_bytes} bytes)");
    Err((key.to_owned(), message))
}
