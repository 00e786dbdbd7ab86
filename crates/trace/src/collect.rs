//! [`Collector`]: collects the records, names and rejects that readers produce.

use rustc_hash::FxHashMap;

use crate::error::{Place, Problem, TraceError};
use crate::meta::{DeviceMeta, Meta, Process};
use crate::record::Record;

/// Maximum number of rejects kept with their reasons; the rest are only counted.
pub(crate) const REJECTS_KEPT: usize = 10;

/// Receives the results of a reader.
#[derive(Debug, Default)]
pub struct Collector {
    /// Records that were read but not taken yet.
    pub records: Vec<Record>,
    /// Metadata of the trace so far.
    pub meta: Meta,
    skip_bad: bool,
    devices: FxHashMap<String, u32>,
    processes: FxHashMap<Process, u32>,
}

impl Collector {
    /// Creates an empty collector. The first bad line is an error, or, with `skip_bad`, bad lines are counted.
    pub fn new(skip_bad: bool) -> Collector {
        Collector { skip_bad, ..Collector::default() }
    }

    /// Returns the index of the device with this name, and adds the device if it is new.
    pub fn device(&mut self, name: &str) -> u32 {
        if let Some(&index) = self.devices.get(name) {
            return index;
        }
        let index = self.meta.devices.len() as u32;
        self.meta.devices.push(DeviceMeta { name: name.to_owned(), ..DeviceMeta::default() });
        self.devices.insert(name.to_owned(), index);
        index
    }

    /// Returns the value of [`Record::process`] for this process (its index plus 1), and adds the process if it is new.
    pub fn process(&mut self, pid: u32, name: &str) -> u32 {
        let process = Process { pid, name: name.to_owned() };
        if let Some(&index) = self.processes.get(&process) {
            return index;
        }
        self.meta.processes.push(process.clone());
        let index = self.meta.processes.len() as u32;
        self.processes.insert(process, index);
        index
    }

    /// Starts with the metadata of a stored trace.
    pub(crate) fn adopt(&mut self, meta: Meta) {
        self.devices = meta.devices.iter().zip(0..).map(|(device, index)| (device.name.clone(), index)).collect();
        self.processes = meta.processes.iter().cloned().zip(1..).collect();
        self.meta = meta;
    }

    /// Rejects a line or record: returns an error or counts it as skipped.
    ///
    /// # Errors
    /// Returns the error unless bad lines are to be skipped.
    pub fn reject(&mut self, file: &str, place: Place, (field, message): Problem) -> Result<(), TraceError> {
        let error = TraceError { file: file.to_owned(), place, field, message };
        if !self.skip_bad {
            return Err(error);
        }
        self.meta.rejected += 1;
        if self.meta.rejects.len() < REJECTS_KEPT {
            self.meta.rejects.push(error.to_string());
        }
        Ok(())
    }
}
