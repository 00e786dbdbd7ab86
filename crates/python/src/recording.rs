//! [`Recording`]: records runs and replays as traces.

use std::path::Path;

use headstack_sim::{Observed, SystemDescription};
use headstack_trace::{
    Clock, DeviceMeta, Flags, Meta, NOT_RECORDED, Origin, Process, Record, ResponseSpan, StoreWriter, TraceError,
};
use headstack_workload::Recorded;

/// Number of requests that are written at a time.
const BATCH: usize = 1 << 14;

/// A trace that records the requests to a system.
pub struct Recording {
    writer: StoreWriter,
    meta: Meta,
    batch: Vec<Record>,
    /// First error, which is reported at the end.
    failure: Option<TraceError>,
    /// Names of the streams of a scenario, whose clients are recorded as processes.
    streams: Vec<String>,
}

impl Recording {
    /// Creates the trace `path` for requests to a simulated system; `demand` is the name of a workload, scenario or
    /// trace.
    pub fn simulated(
        path: &str,
        demand: &str,
        system_name: &str,
        system: &SystemDescription,
        streams: Vec<String>,
    ) -> Result<Recording, TraceError> {
        let device = DeviceMeta {
            name: system_name.to_owned(),
            capacity_bytes: Some(system.capacity_bytes()),
            sector_bytes: Some(system.block_bytes()),
            model: None,
        };
        let recording = Recording::create(path, demand, "simulated", ResponseSpan::Simulated, device)?;
        Ok(Recording { streams, ..recording })
    }

    /// Like [`simulated`](Self::simulated), for real targets. Response times are those seen by the host.
    pub fn measured(path: &str, demand: &str, device: DeviceMeta) -> Result<Recording, TraceError> {
        Recording::create(path, demand, "measured", ResponseSpan::AtTheHost, device)
    }

    fn create(
        path: &str,
        demand: &str,
        format: &str,
        response: ResponseSpan,
        device: DeviceMeta,
    ) -> Result<Recording, TraceError> {
        let meta = Meta {
            origin: vec![Origin { file: demand.to_owned(), format: format.to_owned() }],
            clock: Clock::Recording,
            resolution_ns: 1,
            response: Some(response),
            devices: vec![device],
            ..Meta::default()
        };
        let writer = StoreWriter::create(Path::new(path))?;
        Ok(Recording { writer, meta, batch: Vec::with_capacity(BATCH), failure: None, streams: Vec::new() })
    }

    /// Adds a request of a simulated run.
    pub fn observe(&mut self, observed: &Observed) {
        let mut record = record_of(&observed.recorded);
        record.wait_ns = observed.wait_ns.unwrap_or(NOT_RECORDED);
        if !self.streams.is_empty() {
            record.process = self.process(observed.client, observed.stream as usize);
        }
        self.take(record);
    }

    /// Adds a request, which must not have arrived before the previous one.
    pub fn take(&mut self, record: Record) {
        self.batch.push(record);
        if self.batch.len() == BATCH {
            self.write();
        }
    }

    /// Whether an error has occurred, so that further requests are useless.
    pub fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    /// Returns the process ID of a client. Clients are numbered across all streams.
    fn process(&mut self, client: u32, stream: usize) -> u32 {
        let index = client as usize;
        while self.meta.processes.len() <= index {
            let pid = self.meta.processes.len() as u32;
            self.meta.processes.push(Process { pid, name: String::new() });
        }
        let process = &mut self.meta.processes[index];
        if process.name.is_empty() {
            process.name.clone_from(&self.streams[stream]);
        }
        client + 1
    }

    fn write(&mut self) {
        if self.failure.is_none() {
            self.failure = self.writer.write(&self.batch, &self.meta).err();
        }
        self.batch.clear();
    }

    /// Writes the remaining requests and gives the file its name.
    pub fn finish(mut self) -> Result<(), TraceError> {
        self.write();
        match self.failure {
            Some(failure) => Err(failure),
            None => self.writer.finish(&self.meta),
        }
    }
}

/// Converts a recorded request to the form of traces.
pub fn record_of(recorded: &Recorded) -> Record {
    let request = &recorded.request;
    let mut record = Record::new(recorded.arrival_ns, request.kind.into(), request.offset_bytes, request.length_bytes);
    record.response_ns = recorded.completion_ns.map_or(NOT_RECORDED, |at_ns| at_ns - recorded.arrival_ns);
    if request.force_unit_access {
        record.flags = Flags::FUA;
    }
    record
}
