//! [`Meta`]: metadata of a trace: its origin, its clock, its devices and processes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Base of arrival times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Clock {
    /// 1970-01-01 UTC.
    Unix,
    /// The start of the recording, or the 0 of its file.
    #[default]
    Recording,
    /// An unknown moment, such as the boot of the machine.
    Boot,
    /// None: times are not recorded, and requests are numbered, a nanosecond each.
    Order,
}

/// Meaning of offsets. Later variants carry less information.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AddressSpace {
    /// Addresses on a device: neighbours are adjacent.
    #[default]
    Device,
    /// Offsets in a file or another object with a key: neighbours are adjacent within it, and files have no order.
    File,
    /// Whole objects, whose offsets only distinguish them.
    Object,
}

impl AddressSpace {
    /// Whether requests to adjacent addresses form a run.
    pub fn has_runs(self) -> bool {
        match self {
            AddressSpace::Device | AddressSpace::File => true,
            AddressSpace::Object => false,
        }
    }

    /// Whether distances, ranges and maps are meaningful.
    pub fn has_distances(self) -> bool {
        match self {
            AddressSpace::Device => true,
            AddressSpace::File | AddressSpace::Object => false,
        }
    }

    fn is_device(&self) -> bool {
        *self == AddressSpace::Device
    }
}

/// Span of a response time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResponseSpan {
    /// From submission by the file system or program to completion (blktrace's Q2C).
    QueueToCompletion,
    /// From the device's receipt to completion (blktrace's D2C).
    IssueToCompletion,
    /// From the driver's queue to completion (HP's SRT).
    EnqueueToDone,
    /// As seen on the network between host and storage.
    OnTheWire,
    /// As seen by the storage controller.
    AtTheController,
    /// As seen by the host, without further detail.
    AtTheHost,
    /// In virtual time, from the intended arrival.
    Simulated,
}

/// A source file of the trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// Name without its folder.
    pub file: String,
    /// Format as which it was read.
    pub format: String,
}

/// Target of requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceMeta {
    /// Name in the trace: `7,0`, `hm.0`, a path.
    pub name: String,
    /// Capacity, if recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity_bytes: Option<u64>,
    /// Unit of its addresses, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sector_bytes: Option<u32>,
    /// Product or model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// Issuer of requests.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Process {
    /// Process ID; of a thread if the kernel records that.
    pub pid: u32,
    /// Name; empty if the trace has none.
    pub name: String,
}

/// Metadata of a trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Meta {
    /// Source files.
    pub origin: Vec<Origin>,
    /// Base of arrival times.
    pub clock: Clock,
    /// Date of time 0 in ns since 1970, if the clock is not Unix time and the trace has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zero_unix_ns: Option<u64>,
    /// Resolution of the recorded times: 10^9 for whole seconds.
    pub resolution_ns: u64,
    /// Meaning of offsets.
    #[serde(default, skip_serializing_if = "AddressSpace::is_device")]
    pub address_space: AddressSpace,
    /// Span of response times, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<ResponseSpan>,
    /// Targets of requests.
    pub devices: Vec<DeviceMeta>,
    /// Issuers of requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<Process>,
    /// Counters of reading: `lost events`, `out of order`, each above 0.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counts: BTreeMap<String, u64>,
    /// Number of lines or records that were skipped on request.
    #[serde(default)]
    pub rejected: u64,
    /// The first of them, with their reasons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rejects: Vec<String>,
    /// Notes for readers of results: `times are whole seconds`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Transformations that were applied, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<String>,
    /// The file's own description of its devices, verbatim (SRT's header).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
}

impl Meta {
    /// Whether it has all names of `later`, an earlier or later state of the same trace: names are only ever added.
    pub(crate) fn has_names_of(&self, later: &Meta) -> bool {
        (self.devices.len(), self.processes.len()) == (later.devices.len(), later.processes.len())
    }

    /// Adds `note`, once.
    pub fn note(&mut self, note: impl Into<String>) {
        let note = note.into();
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Adds `number` to the count of `what`.
    pub fn count(&mut self, what: &str, number: u64) {
        if number > 0 {
            *self.counts.entry(what.to_owned()).or_default() += number;
        }
    }
}
