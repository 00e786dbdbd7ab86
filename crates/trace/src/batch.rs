//! Some requests of a trace, as replays take them.

use std::sync::Arc;

use headstack_workload::Recorded;

use crate::error::TraceError;
use crate::meta::Meta;
use crate::record::Record;

/// Some requests in order of arrival. What a replay does not ask for is left behind where the trace is read, so that less
/// goes from the core that reads to the one that replays.
#[derive(Default)]
pub(crate) struct Batch {
    pub(crate) requests: Vec<Recorded>,
    /// The device of each.
    pub(crate) devices: Vec<u32>,
    /// What holds for all that were read up to them.
    pub(crate) meta: Arc<Meta>,
}

impl Batch {
    /// Puts `records` in place of what there was.
    ///
    /// # Errors
    /// What no system can be asked for.
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

    /// Puts what `other` holds in place of what there was.
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
        "it has requests whose operation is `{operation}`: leave them out by the step \
         kind=read,write,trim,flush, or say what unknown ones are by unknown=read"
    );
    TraceError::of_file(&meta.origin[0].file, message)
}
