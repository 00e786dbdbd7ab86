//! [`DatabaseRun`]: the processes of a database and the state that they share.

use std::collections::{HashSet, VecDeque};

use super::Database;
use super::backend::Backend;
use super::buffers::Buffers;
use super::checkpointer::Checkpointer;
use super::log::{Log, SEGMENT_BYTES};
use super::shared::{Counters, Shared, Times};
use crate::access::{AccessLine, Complaint};
use crate::arrivals::Arrivals;
use crate::quantity::Bytes;
use crate::random::{Purpose, Random, seed_of};
use crate::scenario::access::generator;
use crate::scenario::step::{Facts, Step, StreamSetup, Turn, check_sectors, per_second};
use crate::span::Span;

/// Draws for each buffer that fill the buffers at the start; with skewed addresses, some stay empty.
const DRAWS_MAX: usize = 4;

/// The processes of a database.
pub(crate) struct DatabaseRun {
    database: Database,
    backends: Vec<Backend>,
    checkpointer: Checkpointer,
    shared: Shared,
    /// State of the log when measuring started: end of the records, syncs.
    before: [u64; 2],
}

impl DatabaseRun {
    pub(crate) fn new(database: &Database, setup: &StreamSetup) -> Result<DatabaseRun, Complaint> {
        check_sectors("page", database.page_bytes, setup.sector_bytes)?;
        let ([log, data], syncs_at) = places(database, setup)?;
        let line = AccessLine {
            size_bytes: database.page_bytes,
            share_percent: 100.0,
            read_percent: 100.0,
            random_percent: 100.0,
            trim_percent: 0.0,
            delay_ns: 0,
            burst: 1,
            align_bytes: Some(database.page_bytes),
        };
        let generator =
            generator(&[line], &database.addresses, Arrivals::default(), data, setup.sector_bytes, setup.seed)?;
        let frames = (database.buffers_bytes / u64::from(database.page_bytes)) as usize;
        let mut shared = Shared {
            stream: setup.stream,
            buffers: Buffers::new(frames),
            log: Log::new(log),
            changed: HashSet::new(),
            woken: VecDeque::new(),
            counters: Counters::default(),
            times: Times::default(),
            generator,
            syncs_at,
        };
        for _ in 0..DRAWS_MAX.saturating_mul(frames) {
            let page = shared.draw_page();
            if shared.buffers.is_full() {
                break;
            }
            if !shared.buffers.hit(page) {
                shared.buffers.add(page);
            }
        }
        let random = |client| Random::new(seed_of(setup.seed, "client", client), Purpose::Think);
        Ok(DatabaseRun {
            database: database.clone(),
            backends: (0..database.clients).map(|client| Backend::new(random(client))).collect(),
            checkpointer: Checkpointer::new(),
            shared,
            before: [0; 2],
        })
    }

    /// Returns the number of processes: one for each client, and the checkpointer.
    pub(crate) fn clients(&self) -> u32 {
        self.backends.len() as u32 + 1
    }

    pub(crate) fn next(&mut self, turn: Turn) -> Step {
        match self.backends.get_mut(turn.client as usize) {
            Some(backend) => backend.next(turn, &self.database, &mut self.shared),
            None => self.checkpointer.next(turn, &self.database, &mut self.shared),
        }
    }

    /// Returns the next client whose wait for another client is over.
    pub(crate) fn take_woken(&mut self) -> Option<u32> {
        let client = self.shared.woken.pop_front()?;
        self.backends[client as usize].wake();
        Some(client)
    }

    pub(crate) fn start_measuring(&mut self) {
        self.shared.times = Times::default();
        self.shared.counters = Counters::default();
        self.before = [self.shared.log.inserted, self.shared.log.syncs];
    }

    pub(crate) fn facts(&self, seconds: f64) -> Facts {
        let Shared { log, counters, times, .. } = &self.shared;
        let Times { transactions, commits } = times;
        let syncs = log.syncs - self.before[1];
        Facts::Database {
            transactions: transactions.count(),
            transactions_per_s: per_second(transactions.count(), seconds),
            mean_latency_ns: transactions.mean_ns(),
            latency_ns: [0.5, 0.99].map(|share| transactions.quantile_ns(share)),
            commit_ns: [0.5, 0.99].map(|share| commits.quantile_ns(share)),
            commits_per_sync: if syncs > 0 { commits.count() as f64 / syncs as f64 } else { 0.0 },
            log_bytes: log.inserted - self.before[0],
            full_pages: counters.full_pages,
            read_pages: counters.read_pages,
            evicted_pages: counters.evicted_pages,
            checkpoint_pages: counters.checkpoint_pages,
            checkpoints: counters.checkpoints,
        }
    }
}

/// Returns the places of log and data, and the addresses of their syncs.
fn places(database: &Database, setup: &StreamSetup) -> Result<([Span; 2], [u64; 2]), Complaint> {
    let named = |wanted: &str| setup.names.iter().find(|(name, _)| name == wanted).map(|(_, span)| *span);
    let (log, data, syncs_at) = match (named("wal"), named("data")) {
        (Some(log), Some(data)) => (log, data, [log.start_bytes, data.start_bytes]),
        (None | Some(_), None) | (None, Some(_)) => {
            let space = database.log_space_bytes.next_multiple_of(SEGMENT_BYTES);
            let Some(rest) = setup.span.length_bytes.checked_sub(space) else {
                let message = format!("the range holds {}, less than the log", Bytes(setup.span.length_bytes));
                return Err(("log_space".to_owned(), message));
            };
            let log = Span { length_bytes: space, ..setup.span };
            let data = Span { start_bytes: setup.span.start_bytes + space, length_bytes: rest };
            (log, data, [setup.sync_at_bytes; 2])
        }
    };
    let log = Span { length_bytes: log.length_bytes / SEGMENT_BYTES * SEGMENT_BYTES, ..log };
    if log.length_bytes < 2 * SEGMENT_BYTES {
        return Err(("log_space".to_owned(), "the log has less than 32 MiB of space".to_owned()));
    }
    let length_bytes = database.size.map_or(data.length_bytes, |size| size.0);
    if length_bytes > data.length_bytes {
        let message = format!("the pages do not fit; there is space for {}", Bytes(data.length_bytes));
        return Err(("size".to_owned(), message));
    }
    Ok(([log, Span { length_bytes, ..data }], syncs_at))
}
