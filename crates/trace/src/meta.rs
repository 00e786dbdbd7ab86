//! What holds for a trace as a whole: where it is from, what its clock is, who made the requests.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What arrival times count from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Clock {
    /// 1970-01-01 UTC.
    Unix,
    /// The start of the recording, or whatever its file calls 0.
    #[default]
    Recording,
    /// A moment that is not known, such as the start of the machine.
    Boot,
    /// Nothing: times are not recorded, and requests are numbered, a nanosecond each.
    Order,
}

/// What offsets count in. The later ones say less.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AddressSpace {
    /// The device: neighbours are neighbours.
    #[default]
    Device,
    /// A file, or another object with a key: neighbours are neighbours within it, and files have no order.
    File,
    /// Nothing: requests name whole objects, whose offsets only tell them apart.
    Object,
}

impl AddressSpace {
    /// Requests next to each other in it are a run.
    pub fn has_runs(self) -> bool {
        match self {
            AddressSpace::Device | AddressSpace::File => true,
            AddressSpace::Object => false,
        }
    }

    /// Distances, ranges and maps of it mean something.
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

/// What a response time spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResponseSpan {
    /// From the file system's or program's request to its completion (blktrace's Q2C).
    QueueToCompletion,
    /// From the device being given it to its completion (blktrace's D2C).
    IssueToCompletion,
    /// From the driver's queue to its completion (HP's SRT).
    EnqueueToDone,
    /// As seen on the network between host and storage.
    OnTheWire,
    /// As seen by the storage controller.
    AtTheController,
    /// As seen by the host; more is not said.
    AtTheHost,
    /// In virtual time, from the intended arrival.
    Simulated,
}

/// A file that the trace came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// Its name, without its folder.
    pub file: String,
    /// The format it was read as.
    pub format: String,
}

/// What requests went to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceMeta {
    /// Its name in the trace: `7,0`, `hm.0`, a path.
    pub name: String,
    /// Its capacity, where the trace says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity_bytes: Option<u64>,
    /// The unit of its addresses, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sector_bytes: Option<u32>,
    /// What it is: a product, a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// Who issued requests.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Process {
    /// Its number; of a thread where the kernel gives that.
    pub pid: u32,
    /// Its name; empty where the trace does not say.
    pub name: String,
}

/// What holds for a trace as a whole.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Meta {
    /// The files it came from.
    pub origin: Vec<Origin>,
    /// What arrival times count from.
    pub clock: Clock,
    /// The date of time 0 of the clock in ns since 1970, where the clock is another and the trace says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zero_unix_ns: Option<u64>,
    /// The step of the recorded times: 10^9 where they are whole seconds.
    pub resolution_ns: u64,
    /// What offsets count in.
    #[serde(default, skip_serializing_if = "AddressSpace::is_device")]
    pub address_space: AddressSpace,
    /// What response times span, where there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<ResponseSpan>,
    /// What requests went to.
    pub devices: Vec<DeviceMeta>,
    /// Who issued them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<Process>,
    /// What was counted while reading: `lost events`, `out of order`, each above 0.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counts: BTreeMap<String, u64>,
    /// Lines or records that were skipped as asked for, and the first of them with their reasons.
    #[serde(default)]
    pub rejected: u64,
    /// The first of them, with their reasons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rejects: Vec<String>,
    /// What a reader of results should know: `times are whole seconds`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The transformations it went through, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<String>,
    /// What the file itself says of its devices, as it stands there (SRT's header).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
}

impl Meta {
    /// It names all that `later` does, an earlier or later state of the same trace: names are only ever added.
    pub(crate) fn has_names_of(&self, later: &Meta) -> bool {
        (self.devices.len(), self.processes.len()) == (later.devices.len(), later.processes.len())
    }

    /// Says `note`, once.
    pub fn note(&mut self, note: impl Into<String>) {
        let note = note.into();
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Counts `number` more of `what`.
    pub fn count(&mut self, what: &str, number: u64) {
        if number > 0 {
            *self.counts.entry(what.to_owned()).or_default() += number;
        }
    }
}
