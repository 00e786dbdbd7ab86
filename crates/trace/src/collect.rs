//! What readers hand over: records, names, and what they could not accept.

use rustc_hash::FxHashMap;

use crate::error::{Place, Problem, TraceError};
use crate::meta::{DeviceMeta, Meta, Process};
use crate::record::Record;

/// Rejects that are kept with their reasons; the rest are counted.
pub(crate) const REJECTS_KEPT: usize = 10;

/// Takes what a reader finds.
#[derive(Debug, Default)]
pub struct Collector {
    /// Records that were read and not yet taken.
    pub records: Vec<Record>,
    /// What holds for the trace as a whole, as far as it was read.
    pub meta: Meta,
    skip_bad: bool,
    devices: FxHashMap<String, u32>,
    processes: FxHashMap<Process, u32>,
}

impl Collector {
    /// An empty one, that refuses the first bad line or counts them all.
    pub fn new(skip_bad: bool) -> Collector {
        Collector { skip_bad, ..Collector::default() }
    }

    /// The index of the device of that name.
    pub fn device(&mut self, name: &str) -> u32 {
        if let Some(&index) = self.devices.get(name) {
            return index;
        }
        let index = self.meta.devices.len() as u32;
        self.meta.devices.push(DeviceMeta { name: name.to_owned(), ..DeviceMeta::default() });
        self.devices.insert(name.to_owned(), index);
        index
    }

    /// What [`Record::process`] says of that process: its index plus 1.
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

    /// Begins with what a stored trace says of itself.
    pub(crate) fn adopt(&mut self, meta: Meta) {
        self.devices = meta.devices.iter().zip(0..).map(|(device, index)| (device.name.clone(), index)).collect();
        self.processes = meta.processes.iter().cloned().zip(1..).collect();
        self.meta = meta;
    }

    /// A line or record that cannot be accepted: an error, or one more of the skipped.
    ///
    /// # Errors
    /// Unless bad lines are to be skipped.
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
