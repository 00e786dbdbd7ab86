//! The twin's requests at their times, and the file that they go to.

use super::bursts::Played;
use super::clients::Clients;
use super::copies::Copies;
use crate::error::TraceError;
use crate::meta::Meta;
use crate::record::{NOT_RECORDED, Record};
use crate::store::StoreWriter;

/// Requests that are handed to the file at a time.
const BATCH: usize = 1 << 12;

/// Requests that come when their copies say; clients, if there are any, have been waiting for them.
pub(super) struct Twin<'a> {
    copies: Copies<'a>,
    /// Responses and thoughts are so much shorter than the trace's.
    rate: f64,
    /// Gaps are.
    gap_rate: f64,
    last_ns: Option<u64>,
    /// What was cut off gaps.
    carried: f64,
    clients: Option<Clients>,
    mean_response_ns: u64,
}

impl<'a> Twin<'a> {
    /// What was in flight when the recording ended takes a client the mean time.
    pub(super) fn new(
        copies: Copies<'a>,
        (rate, gap_rate): (f64, f64),
        clients: Option<Clients>,
        mean_response_ns: u64,
    ) -> Twin<'a> {
        Twin { copies, rate, gap_rate, last_ns: None, carried: 0.0, clients, mean_response_ns }
    }

    /// The next request; none arrives before the one before.
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
                record.response_ns = self.mean_response_ns;
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
