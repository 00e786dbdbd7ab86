//! [`History`]: the original trace, read window by window, repeatedly if needed.

use super::bursts::{Played, Window};
use super::think_times::ThinkTimes;
use crate::error::TraceError;
use crate::reader::TraceReader;
use crate::record::Record;

/// Opens the trace: once to learn from it, then for each lap.
pub type Open<'a> = dyn Fn() -> Result<TraceReader, TraceError> + Sync + 'a;

/// Number of requests per window, which is held in memory and keeps its position in the history.
const WINDOW: usize = 1 << 14;

/// Reading position, and state for the next request.
pub(super) struct History<'a> {
    open: &'a Open<'a>,
    reader: TraceReader,
    /// Number of completed passes.
    lap: u64,
    /// Gap between the last request of a lap and the first of the next.
    lap_gap_ns: u64,
    batch: Vec<Record>,
    at: usize,
    last_ns: Option<u64>,
    thoughts: ThinkTimes,
}

impl<'a> History<'a> {
    /// Starts a history.
    pub(super) fn begin(open: &'a Open<'a>, lap_gap_ns: u64) -> Result<History<'a>, TraceError> {
        Ok(History {
            open,
            reader: open()?,
            lap: 0,
            lap_gap_ns,
            batch: Vec::new(),
            at: 0,
            last_ns: None,
            thoughts: ThinkTimes::default(),
        })
    }

    /// Returns the next window, which is shorter at the end of a lap, and the number of the lap.
    pub(super) fn next(&mut self) -> Result<(Window, u64), TraceError> {
        loop {
            let requests = self.read()?;
            if !requests.is_empty() {
                return Ok((Window::of(requests), self.lap));
            }
            self.reader = (self.open)()?;
            self.lap += 1;
            (self.last_ns, self.at) = (None, 0);
            self.batch.clear();
            self.thoughts = ThinkTimes::default();
        }
    }

    /// Reads the requests of a window; none at the end.
    fn read(&mut self) -> Result<Vec<Played>, TraceError> {
        let mut requests = Vec::with_capacity(WINDOW);
        while requests.len() < WINDOW {
            if self.at == self.batch.len() {
                self.at = 0;
                self.batch.clear();
                if !self.reader.next_batch(&mut self.batch)? {
                    break;
                }
                continue;
            }
            let record = self.batch[self.at];
            self.at += 1;
            let gap_ns = self.last_ns.map_or(self.lap_gap_ns, |last_ns| record.arrival_ns.saturating_sub(last_ns));
            self.last_ns = Some(record.arrival_ns);
            let think_ns = self.thoughts.before_ns(&record);
            requests.push(Played { record, gap_ns, think_ns, goes_on: false });
        }
        Ok(requests)
    }
}
