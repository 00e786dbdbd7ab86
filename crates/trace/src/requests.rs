//! What is replayed of a trace.

use headstack_workload::Recorded;

use crate::error::TraceError;
use crate::meta::{Clock, Meta};
use crate::reader::TraceReader;
use crate::record::Record;

/// The requests of a trace as replays take them.
pub struct Requests {
    reader: TraceReader,
    /// Read ahead: what it tells is known before the first request is asked for.
    batch: Vec<Record>,
    more: bool,
    device: Option<u32>,
}

impl Requests {
    /// Reads the first of them.
    ///
    /// # Errors
    /// What cannot be accepted.
    pub fn of(mut reader: TraceReader) -> Result<Requests, TraceError> {
        let mut batch = Vec::new();
        let more = reader.next_batch(&mut batch)?;
        Ok(Requests { reader, batch, more, device: None })
    }

    /// The first arrival, where the clock began with the recording.
    pub fn start_of_recording_ns(&self) -> Option<u64> {
        let first = self.batch.first().filter(|_| self.reader.meta().clock == Clock::Recording);
        first.map(|record| record.arrival_ns)
    }

    /// The next of them in place of the old ones; whether there were any.
    ///
    /// # Errors
    /// What cannot be accepted, or replayed.
    pub fn next(&mut self, requests: &mut Vec<Recorded>) -> Result<bool, TraceError> {
        requests.clear();
        if !self.more {
            return Ok(false);
        }
        for record in &self.batch {
            requests.push(replayable(record, &mut self.device, self.reader.meta())?);
        }
        self.more = self.reader.next_batch(&mut self.batch)?;
        Ok(true)
    }
}

/// The request of a record; all of them go to one device, for addresses of several mean different places.
fn replayable(record: &Record, device: &mut Option<u32>, meta: &Meta) -> Result<Recorded, TraceError> {
    let name = |device: u32| &meta.devices[device as usize].name;
    let first = *device.get_or_insert(record.device);
    if record.device != first {
        let message = format!(
            "its requests went to several devices, `{}` and `{}` among them: choose one by the step device=NAME, or put \
             them one after the other by stack=SIZE",
            name(first),
            name(record.device)
        );
        return Err(TraceError::of_file(&meta.origin[0].file, message));
    }
    record.recorded().ok_or_else(|| {
        let operation = record.operation.name();
        let message = format!(
            "it has requests whose operation is `{operation}`: leave them out by the step \
             kind=read,write,trim,flush, or say what unknown ones are by unknown=read"
        );
        TraceError::of_file(&meta.origin[0].file, message)
    })
}
