//! [`Twin`]: the timed requests of a synthetic trace. [`Output`]: the file it is written to.

use super::bursts::Played;
use super::clients::Clients;
use super::copies::Copies;
use crate::error::TraceError;
use crate::meta::Meta;
use crate::record::{NOT_RECORDED, Record};
use crate::store::StoreWriter;

/// Number of requests written at a time.
const BATCH: usize = 1 << 12;

/// Requests of all copies with their times; for a closed loop, with completions determined by the clients.
pub(super) struct Twin<'a> {
    copies: Copies<'a>,
    /// Factor by which latencies and think times are divided.
    rate: f64,
    /// Factor by which gaps are divided.
    gap_rate: f64,
    last_ns: Option<u64>,
    /// Accumulated rounding error of gaps.
    carried: f64,
    clients: Option<Clients>,
    mean_latency_ns: u64,
}

impl<'a> Twin<'a> {
    /// Creates the generator. Requests in flight at the end of the recording get the mean latency.
    pub(super) fn new(
        copies: Copies<'a>,
        (rate, gap_rate): (f64, f64),
        clients: Option<Clients>,
        mean_latency_ns: u64,
    ) -> Twin<'a> {
        Twin { copies, rate, gap_rate, last_ns: None, carried: 0.0, clients, mean_latency_ns }
    }

    /// Returns the next request, in order of arrival.
    pub(super) fn next(&mut self) -> Result<Record, TraceError> {
        loop {
            if let Some(record) = self.clients.as_mut().and_then(Clients::answered) {
                return Ok(record);
            }
            let Played { mut record, gap_ns, think_ns, .. } = self.copies.next()?;
            let gap = gap_ns as f64 / self.gap_rate + self.carried;
            record.arrival_ns = self.last_ns.map_or(0, |last_ns| last_ns.saturating_add(gap as u64));
            (self.last_ns, self.carried) = (Some(record.arrival_ns), gap.fract());
            let Some(clients) = &mut self.clients else {
                return Ok(record);
            };
            if record.response_ns == NOT_RECORDED {
                record.response_ns = self.mean_latency_ns;
            }
            let faster = |ns: u64| (ns as f64 / self.rate).round() as u64;
            record.response_ns = faster(record.response_ns);
            if record.wait_ns != NOT_RECORDED {
                record.wait_ns = faster(record.wait_ns);
            }
            clients.issue(record, faster(think_ns));
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

    /// Returns the number of requests added so far.
    pub(super) fn requests(&self) -> u64 {
        self.writer.written() + self.batch.len() as u64
    }

    /// Appends a request; returns whether a batch was written.
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

    /// Gives the file its name; returns its number of requests and the last arrival.
    pub(super) fn finish(mut self) -> Result<(u64, u64), TraceError> {
        self.writer.write(&self.batch, self.meta)?;
        let requests = self.writer.written();
        self.writer.finish(self.meta)?;
        Ok((requests, self.last_ns))
    }
}
