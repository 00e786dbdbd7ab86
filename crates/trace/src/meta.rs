//! [`Meta`]: metadata of a trace: its origin, clock, devices and processes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Origin of arrival times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Clock {
    /// 1970-01-01 UTC.
    Unix,
    /// Start of the recording, or time 0 of its file.
    #[default]
    Recording,
    /// An unknown time, such as the boot of the machine.
    Boot,
    /// None: times are not recorded. Arrivals are sequence numbers, in steps of 1 ns.
    Order,
}

/// Meaning of offsets. Later variants carry less information.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AddressSpace {
    /// Addresses on a device: nearby offsets are physically adjacent.
    #[default]
    Device,
    /// Offsets in a file or another object with a key. Nearby offsets are adjacent within the file; files have no
    /// order.
    File,
    /// Whole objects; offsets only identify them.
    Object,
}

impl AddressSpace {
    /// Returns whether requests to adjacent addresses form a run.
    pub fn has_runs(self) -> bool {
        match self {
            AddressSpace::Device | AddressSpace::File => true,
            AddressSpace::Object => false,
        }
    }

    /// Returns whether distances, ranges and address maps are meaningful.
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

/// The interval that a recorded latency covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResponseSpan {
    /// From submission by the file system or program to completion (blktrace's Q2C).
    QueueToCompletion,
    /// From receipt by the device to completion (blktrace's D2C).
    IssueToCompletion,
    /// From the driver's queue to completion (HP's SRT).
    EnqueueToDone,
    /// As observed on the network between host and storage.
    OnTheWire,
    /// As observed by the storage controller.
    AtTheController,
    /// As observed by the host, without further detail.
    AtTheHost,
    /// In virtual time, from the intended arrival.
    Simulated,
}

/// A source file of the trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// File name without its directory.
    pub file: String,
    /// Format in which the file was read.
    pub format: String,
}

/// A target of requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceMeta {
    /// Name in the trace, such as `7,0`, `hm.0` or a path.
    pub name: String,
    /// Capacity in bytes, if recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity_bytes: Option<u64>,
    /// Sector size in bytes, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sector_bytes: Option<u32>,
    /// Product or model name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// An issuer of requests.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Process {
    /// Process ID, or thread ID if the kernel records threads.
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
    /// Origin of arrival times.
    pub clock: Clock,
    /// Date of time 0, in ns since 1970, if the trace records it and the clock is not Unix time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zero_unix_ns: Option<u64>,
    /// Resolution of the recorded times, in ns; for example 10^9 for whole seconds.
    pub resolution_ns: u64,
    /// Meaning of offsets.
    #[serde(default, skip_serializing_if = "AddressSpace::is_device")]
    pub address_space: AddressSpace,
    /// Interval that latencies cover, if latencies are recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<ResponseSpan>,
    /// Targets of requests.
    pub devices: Vec<DeviceMeta>,
    /// Issuers of requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<Process>,
    /// Counts from reading, such as `lost events` or `out of order`; zeros are omitted.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counts: BTreeMap<String, u64>,
    /// Number of invalid lines or records skipped on request.
    #[serde(default)]
    pub rejected: u64,
    /// First rejected lines or records, with the reasons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rejects: Vec<String>,
    /// Notes for the user, such as `times are whole seconds`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Transformations applied, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<String>,
    /// The file's own description of its devices, verbatim (SRT's header).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
}

impl Meta {
    /// Returns whether this metadata has all names of `later`, another state of the same trace. Names are only ever
    /// added.
    pub(crate) fn has_names_of(&self, later: &Meta) -> bool {
        (self.devices.len(), self.processes.len()) == (later.devices.len(), later.processes.len())
    }

    /// Adds `note` unless it is already present.
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
