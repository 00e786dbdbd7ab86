//! The twin's requests at their times, and the file that they go to.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;

use super::bursts::Played;
use super::copies::Copies;
use crate::error::TraceError;
use crate::meta::Meta;
use crate::record::{NOT_RECORDED, Record};
use crate::store::StoreWriter;

/// Requests that are handed to the file at a time.
const BATCH: usize = 1 << 12;

/// Requests that come when their copies say, or when their clients have thought.
pub(super) struct Twin<'a> {
    copies: Copies<'a>,
    rate: f64,
    arrivals: Arrivals,
    mean_response_ns: u64,
}

enum Arrivals {
    /// From outside, so long after the one before.
    Outside { last_ns: Option<u64>, carried: f64 },
    /// Of clients, each with the request that it issues next, by (issue, number).
    Clients { ready: BinaryHeap<Reverse<(u64, u64)>>, requests: FxHashMap<u64, Record>, idle: u32, taken: u64 },
}

impl<'a> Twin<'a> {
    /// What was in flight when the recording ended takes a client the mean time.
    pub(super) fn new(copies: Copies<'a>, rate: f64, clients: Option<u32>, mean_response_ns: u64) -> Twin<'a> {
        let arrivals = match clients {
            None => Arrivals::Outside { last_ns: None, carried: 0.0 },
            Some(idle) => {
                Arrivals::Clients { ready: BinaryHeap::new(), requests: FxHashMap::default(), idle, taken: 0 }
            }
        };
        Twin { copies, rate, arrivals, mean_response_ns }
    }

    /// The next request; none arrives before the one before.
    pub(super) fn next(&mut self) -> Result<Record, TraceError> {
        let Twin { copies, rate, arrivals, mean_response_ns } = self;
        match arrivals {
            Arrivals::Outside { last_ns, carried } => {
                let Played { mut record, gap_ns, .. } = copies.next()?;
                let gap = gap_ns as f64 / *rate + *carried;
                record.arrival_ns = last_ns.map_or(0, |last_ns| last_ns.saturating_add(gap as u64));
                (*last_ns, *carried) = (Some(record.arrival_ns), gap.fract());
                Ok(record)
            }
            Arrivals::Clients { ready, requests, idle, taken } => {
                for _ in 0..std::mem::take(idle) {
                    ready.push(Reverse((0, *taken)));
                    requests.insert(*taken, copies.next()?.record);
                    *taken += 1;
                }
                // Whose request is issued draws the next one, and what it thinks before that.
                let Played { record: next, think_ns, .. } = copies.next()?;
                let Reverse((now_ns, number)) = ready.pop().expect("every client has a request");
                let mut record = requests.remove(&number).expect("it waits under its number");
                record.arrival_ns = now_ns;
                if record.response_ns == NOT_RECORDED {
                    record.response_ns = *mean_response_ns;
                }
                let faster = |ns: u64| if ns == NOT_RECORDED { ns } else { (ns as f64 / *rate).round() as u64 };
                (record.response_ns, record.wait_ns) = (faster(record.response_ns), faster(record.wait_ns));
                let until_ns = now_ns.saturating_add(record.response_ns).saturating_add(faster(think_ns));
                ready.push(Reverse((until_ns, *taken)));
                requests.insert(*taken, next);
                *taken += 1;
                Ok(record)
            }
        }
    }
}

/// The file being written.
pub(super) struct Output<'a> {
    writer: StoreWriter,
    meta: &'a Meta,
    batch: Vec<Record>,
    last_ns: u64,
}

impl<'a> Output<'a> {
    pub(super) fn new(writer: StoreWriter, meta: &'a Meta) -> Output<'a> {
        Output { writer, meta, batch: Vec::with_capacity(BATCH), last_ns: 0 }
    }

    /// Requests so far.
    pub(super) fn requests(&self) -> u64 {
        self.writer.written() + self.batch.len() as u64
    }

    /// Appends a request; whether a batch was handed over with it.
    pub(super) fn add(&mut self, record: Record) -> Result<bool, TraceError> {
        self.last_ns = record.arrival_ns;
        self.batch.push(record);
        if self.batch.len() < BATCH {
            return Ok(false);
        }
        self.writer.write(&self.batch, self.meta)?;
        self.batch.clear();
        Ok(true)
    }

    /// Gives the file its name; says how many requests it has, and when the last of them arrives.
    pub(super) fn finish(mut self) -> Result<(u64, u64), TraceError> {
        self.writer.write(&self.batch, self.meta)?;
        let requests = self.writer.written();
        self.writer.finish(self.meta)?;
        Ok((requests, self.last_ns))
    }
}
