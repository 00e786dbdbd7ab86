//! [`Latencies`]: latency by size, device and process, separately for reads and writes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::mix::PROCESSES_MAX;
use super::times::{TimeClass, Times, TimesReport};
use crate::meta::Meta;
use crate::record::{NOT_RECORDED, Operation, Record};

/// Maximum number of devices with separate latencies; each keeps a distribution of several KB.
const DEVICES_MAX: usize = 256;

/// Class of operations: reads, writes, or all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Sort {
    Read,
    Write,
    Other,
}

impl Sort {
    pub(crate) const ALL: [Sort; 3] = [Sort::Read, Sort::Write, Sort::Other];

    pub(crate) fn of(operation: Operation) -> Sort {
        match operation {
            Operation::Read => Sort::Read,
            Operation::Write => Sort::Write,
            Operation::Trim | Operation::Flush | Operation::Other | Operation::Unknown => Sort::Other,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Sort::Read => "read",
            Sort::Write => "write",
            Sort::Other => "other",
        }
    }
}

/// Latencies by class of operation.
pub(crate) type BySort = [Times; Sort::ALL.len()];

/// Latency of one size class, device or process.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SliceReport<K> {
    /// Lower limit of the size class, name of the device, or the process.
    pub of: K,
    /// Latency of reads; null if there are none.
    pub read: Option<TimesReport>,
    /// Latency of writes; null if there are none.
    pub write: Option<TimesReport>,
    /// Latency of all requests, including other operations.
    pub all: TimesReport,
}

/// A process of the trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProcessName {
    /// Process ID.
    pub pid: u32,
    /// Name; empty if the trace has none.
    pub name: String,
}

/// Latency: the whole distribution, and by size, device and process.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LatencyReport {
    /// Distribution for reads, writes and other operations, if present; each class is 1.6 % wide.
    pub distribution: BTreeMap<&'static str, Vec<TimeClass>>,
    /// Latency by length in bytes; each class extends to twice its lower limit.
    pub by_size: Vec<SliceReport<u64>>,
    /// Latency by device, for the first 256 devices.
    pub by_device: Vec<SliceReport<String>>,
    /// Latency by process, for the first 1,024 processes.
    pub by_process: Vec<SliceReport<ProcessName>>,
}

/// Latencies by size, device and process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Latencies {
    sizes: Vec<BySort>,
    devices: Vec<BySort>,
    processes: Vec<BySort>,
}

impl Latencies {
    #[inline]
    pub(crate) fn add(&mut self, record: &Record) {
        if record.response_ns == NOT_RECORDED {
            return;
        }
        let sort = Sort::of(record.operation) as usize;
        let size = (u32::BITS - record.length_bytes.leading_zeros()) as usize;
        at(&mut self.sizes, size)[sort].add(record.response_ns);
        if (record.device as usize) < DEVICES_MAX {
            at(&mut self.devices, record.device as usize)[sort].add(record.response_ns);
        }
        let process = (record.process as usize).wrapping_sub(1);
        if process < PROCESSES_MAX {
            at(&mut self.processes, process)[sort].add(record.response_ns);
        }
    }

    /// Merges a part of the trace with the same numbers of devices and processes.
    #[must_use]
    pub(crate) fn merge(mut self, later: Latencies) -> Latencies {
        for (mine, later) in
            [(&mut self.sizes, later.sizes), (&mut self.devices, later.devices), (&mut self.processes, later.processes)]
        {
            for (index, later) in later.into_iter().enumerate() {
                at(mine, index).iter_mut().zip(&later).for_each(|(times, later)| times.merge(later));
            }
        }
        self
    }

    /// Returns the report; `None` if no latency is recorded.
    pub(crate) fn finish(&self, meta: &Meta) -> Option<LatencyReport> {
        let mut whole = BySort::default();
        for of in &self.sizes {
            whole.iter_mut().zip(of).for_each(|(times, of)| times.merge(of));
        }
        let distribution = Sort::ALL.into_iter().zip(&whole).map(|(sort, times)| (sort.name(), times.classes()));
        let distribution: BTreeMap<_, _> = distribution.filter(|(_, classes)| !classes.is_empty()).collect();
        let name = |index: usize| {
            let device = meta.devices.get(index);
            device.map_or_else(|| index.to_string(), |device| device.name.clone())
        };
        let process = |index: usize| {
            let process = meta.processes.get(index);
            process.map_or(ProcessName { pid: 0, name: String::new() }, |process| ProcessName {
                pid: process.pid,
                name: process.name.clone(),
            })
        };
        (!distribution.is_empty()).then(|| LatencyReport {
            distribution,
            by_size: slices(&self.sizes, |power| if power == 0 { 0 } else { 1 << (power - 1) }),
            by_device: slices(&self.devices, name),
            by_process: slices(&self.processes, process),
        })
    }
}

#[inline]
fn at(slices: &mut Vec<BySort>, index: usize) -> &mut BySort {
    if index >= slices.len() {
        slices.resize_with(index + 1, BySort::default);
    }
    &mut slices[index]
}

/// Returns the reports of slices that have a recorded latency.
fn slices<K>(slices: &[BySort], of: impl Fn(usize) -> K) -> Vec<SliceReport<K>> {
    let report = |(index, times): (usize, &BySort)| {
        let mut all = Times::default();
        times.iter().for_each(|times| all.merge(times));
        let [read, write, _] = times;
        Some(SliceReport { of: of(index), read: read.report(), write: write.report(), all: all.report()? })
    };
    slices.iter().enumerate().filter_map(report).collect()
}
