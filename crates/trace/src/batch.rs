//! [`Batch`]: some requests of a trace, reduced for replays.

use std::sync::Arc;

use headstack_workload::Recorded;

use crate::error::TraceError;
use crate::meta::Meta;
use crate::record::Record;

/// Some requests in order of arrival. Data that a replay does not need are dropped where the trace is read, so that
/// less is passed between cores.
#[derive(Default)]
pub(crate) struct Batch {
    pub(crate) requests: Vec<Recorded>,
    /// Device of each request.
    pub(crate) devices: Vec<u32>,
    /// Metadata of all requests up to these.
    pub(crate) meta: Arc<Meta>,
}

impl Batch {
    /// Replaces the contents by `records`.
    ///
    /// # Errors
    /// When a request cannot be sent to any system.
    pub(crate) fn fill(&mut self, records: &[Record], meta: &Arc<Meta>) -> Result<(), TraceError> {
        self.requests.clear();
        self.requests.reserve(records.len());
        for record in records {
            self.requests.push(record.recorded().ok_or_else(|| not_replayable(record, meta))?);
        }
        self.devices.clear();
        self.devices.extend(records.iter().map(|record| record.device));
        self.meta.clone_from(meta);
        Ok(())
    }

    /// Replaces the contents by those of `other`.
    #[cfg(feature = "files")]
    pub(crate) fn copy(&mut self, other: &Batch) {
        self.requests.clone_from(&other.requests);
        self.devices.clone_from(&other.devices);
        self.meta.clone_from(&other.meta);
    }
}

#[cold]
fn not_replayable(record: &Record, meta: &Meta) -> TraceError {
    let operation = record.operation.name();
    let message = format!(
        "it has requests whose operation is `{operation}`: drop them with the step \
         kind=read,write,trim,flush, or treat unknown ones as reads with unknown=read"
    );
    TraceError::of_file(&meta.origin[0].file, message)
}
