//! What is replayed of a trace.

use std::sync::Arc;

use headstack_workload::Recorded;

#[cfg(feature = "files")]
use crate::ahead::{Follower, followed};
use crate::error::TraceError;
use crate::meta::{Clock, Meta};
use crate::reader::TraceReader;
use crate::record::Record;

/// The requests of a trace as replays take them.
pub struct Requests {
    source: Source,
    /// The first: what it tells is known before a request is asked for.
    batch: Option<Batch>,
    device: Option<u32>,
}

/// Some records, and what holds for all that were read up to them.
type Batch = (Arc<Vec<Record>>, Arc<Meta>);

#[allow(clippy::large_enum_variant)] // One a replay.
enum Source {
    /// Read where it is asked for: the web has no threads.
    Here(TraceReader),
    #[cfg(feature = "files")]
    Elsewhere(Follower),
}

impl Source {
    fn next(&mut self) -> Result<Option<Batch>, TraceError> {
        match self {
            Source::Here(reader) => {
                let mut records = Vec::new();
                let more = reader.next_batch(&mut records)?;
                Ok(more.then(|| (Arc::new(records), Arc::new(reader.meta().clone()))))
            }
            #[cfg(feature = "files")]
            Source::Elsewhere(follower) => follower.next(),
        }
    }
}
/// Puts the request to a device of that name where it is replayed; nothing where it is left out.
pub type Placing<'a> = dyn FnMut(&str, Recorded) -> Result<Option<Recorded>, String> + 'a;

impl Requests {
    /// Reads the first of them.
    ///
    /// # Errors
    /// What cannot be accepted.
    pub fn of(reader: TraceReader) -> Result<Requests, TraceError> {
        Requests::begin(Source::Here(reader))
    }

    /// The same for so many replays, which go on at the same time: a thread reads the trace once for all of them, ahead of
    /// who is fastest, and no further from who is slowest than memory has room. One that is dropped holds nobody up.
    ///
    /// # Errors
    /// What cannot be accepted.
    #[cfg(feature = "files")]
    pub fn shared(reader: TraceReader, replays: usize) -> Result<Vec<Requests>, TraceError> {
        let begin = |follower| Requests::begin(Source::Elsewhere(follower));
        followed(reader, replays).into_iter().map(begin).collect()
    }

    fn begin(mut source: Source) -> Result<Requests, TraceError> {
        let batch = source.next()?;
        Ok(Requests { source, batch, device: None })
    }

    /// The first arrival, where the clock began with the recording.
    pub fn start_of_recording_ns(&self) -> Option<u64> {
        let (records, meta) = self.batch.as_ref()?;
        records.first().filter(|_| meta.clock == Clock::Recording).map(|record| record.arrival_ns)
    }

    /// The next of them in place of the old ones; whether there were any.
    ///
    /// # Errors
    /// What cannot be accepted, or replayed.
    pub fn next(&mut self, requests: &mut Vec<Recorded>) -> Result<bool, TraceError> {
        requests.clear();
        let Some((records, meta)) = self.read()? else { return Ok(false) };
        requests.reserve(records.len());
        for record in &*records {
            self.device = Some(of_one_device(record, self.device, &meta)?);
            requests.push(replayable(record, &meta)?);
        }
        Ok(true)
    }

    /// The same of several devices, which `place` puts somewhere each.
    ///
    /// # Errors
    /// What cannot be accepted, replayed, or placed.
    pub fn next_placed(&mut self, requests: &mut Vec<Recorded>, place: &mut Placing<'_>) -> Result<bool, TraceError> {
        requests.clear();
        let Some((records, meta)) = self.read()? else { return Ok(false) };
        for record in &*records {
            let placed = place(&meta.devices[record.device as usize].name, replayable(record, &meta)?);
            requests.extend(placed.map_err(|message| TraceError::of_file(&meta.origin[0].file, message))?);
        }
        Ok(true)
    }

    fn read(&mut self) -> Result<Option<Batch>, TraceError> {
        self.batch.take().map_or_else(|| self.source.next(), |first| Ok(Some(first)))
    }
}

/// The device of all requests, for addresses of several mean different places.
fn of_one_device(record: &Record, device: Option<u32>, meta: &Meta) -> Result<u32, TraceError> {
    let name = |device: u32| &meta.devices[device as usize].name;
    let first = device.unwrap_or(record.device);
    if record.device != first {
        let message = format!(
            "its requests went to several devices, `{}` and `{}` among them: choose one by the step device=NAME, put \
             them one after the other by stack=SIZE, or give each a place by map",
            name(first),
            name(record.device)
        );
        return Err(TraceError::of_file(&meta.origin[0].file, message));
    }
    Ok(first)
}

fn replayable(record: &Record, meta: &Meta) -> Result<Recorded, TraceError> {
    record.recorded().ok_or_else(|| {
        let operation = record.operation.name();
        let message = format!(
            "it has requests whose operation is `{operation}`: leave them out by the step \
             kind=read,write,trim,flush, or say what unknown ones are by unknown=read"
        );
        TraceError::of_file(&meta.origin[0].file, message)
    })
}
