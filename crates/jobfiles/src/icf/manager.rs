//! The section MANAGER LIST: workers, their access specifications and their targets.

use headstack_workload::{InputError, QUEUE_DEPTH_MAX};

use super::text::{Entries, Entry, remark};
use crate::Remark;

/// A disk worker.
pub(super) struct Worker {
    pub(super) name: String,
    /// Index of the worker's manager, from 0.
    pub(super) manager: usize,
    pub(super) line: usize,
    /// Queue depth per target.
    pub(super) queue_depth: u32,
    /// Length of the used part in sectors; 0 for the whole disk.
    pub(super) maximum_sectors: u64,
    pub(super) first_sector: u64,
    pub(super) seed: Option<u64>,
    /// Names of access specifications with their line numbers; `None` if the default specifications apply.
    pub(super) specifications: Option<Vec<(String, usize)>>,
    pub(super) targets: Vec<String>,
}

impl Worker {
    pub(super) fn new(name: &str, manager: usize, line: usize) -> Worker {
        Worker {
            name: name.to_owned(),
            manager,
            line,
            queue_depth: 1,
            maximum_sectors: 0,
            first_sector: 0,
            seed: None,
            specifications: None,
            targets: Vec::new(),
        }
    }
}

/// Maximum size of a disk in sectors: 8 EiB.
const SECTORS_MAX: u64 = 1 << 54;

const END_LIST: &str = "END manager list";
const END_MANAGER: &str = "End manager";
const END_WORKER: &str = "End worker";
const END_SETTINGS: &str = "End default target settings for worker";
const END_ASSIGNED: &str = "End assigned access specs";
const END_TARGETS: &str = "End target assignments";
const DEPTH: &str = "Number of outstanding IOs,test connection rate,transactions per connection";
const DEPTH_AND_SEED: &str = "Number of outstanding IOs,test connection rate,transactions per connection,use fixed \
                              seed,fixed seed value";
const SIZE: &str = "Disk maximum size,starting sector";
const SIZE_AND_PATTERN: &str = "Disk maximum size,starting sector,Data pattern";

fn is(entry: &Entry, key: &str) -> bool {
    entry.key.eq_ignore_ascii_case(key)
}

fn text(entry: &Entry) -> String {
    entry.values.first().map_or(String::new(), |value| value.text.to_owned())
}

/// Reads all managers and adds their disk workers to `workers`.
pub(super) fn read(
    entries: &mut Entries,
    workers: &mut Vec<Worker>,
    remarks: &mut Vec<Remark>,
) -> Result<(), InputError> {
    let mut manager = 0;
    loop {
        let entry = entries.before(END_LIST)?;
        if is(&entry, END_LIST) {
            return Ok(());
        }
        if is(&entry, "Worker") {
            worker(entries, &entry, manager, workers, remarks)?;
        } else if is(&entry, END_MANAGER) {
            manager += 1;
        } else if !is(&entry, "Manager ID, manager name") && !is(&entry, "Manager network address") {
            let allowed =
                "'Manager ID, manager name, 'Manager network address, 'Worker, 'End manager, 'END manager list";
            return Err(entries.misplaced(&entry, allowed));
        }
    }
}

fn worker(
    entries: &mut Entries,
    entry: &Entry,
    manager: usize,
    workers: &mut Vec<Worker>,
    remarks: &mut Vec<Remark>,
) -> Result<(), InputError> {
    let mut worker = Worker::new(&text(entry), manager, entry.line);
    let kind = entries.before(END_WORKER)?;
    if !is(&kind, "Worker type") {
        return Err(entries.misplaced(&kind, "'Worker type"));
    }
    let is_disk = entries.fields(&kind)?.word("worker type", &[("DISK", true), ("NETWORK", false)])?;
    loop {
        let entry = entries.before(END_WORKER)?;
        if is(&entry, END_WORKER) {
            break;
        } else if is(&entry, "Default target settings for worker") {
            settings(entries, &mut worker, remarks)?;
        } else if is(&entry, "Assigned access specs") {
            let names = entry.values.iter().map(|value| (value.text.to_owned(), value.line));
            worker.specifications = Some(names.collect());
            let end = entries.before(END_ASSIGNED)?;
            if !is(&end, END_ASSIGNED) {
                return Err(entries.misplaced(&end, &format!("'{END_ASSIGNED}")));
            }
        } else if is(&entry, "Target assignments") {
            targets(entries, &mut worker)?;
        } else {
            let allowed =
                "'Default target settings for worker, 'Assigned access specs, 'Target assignments, 'End worker";
            return Err(entries.misplaced(&entry, allowed));
        }
    }
    if is_disk {
        workers.push(worker);
    } else {
        remarks.push(remark(
            worker.line,
            "Worker type",
            format!("{} loads a network, not a disk; it is skipped", worker.name),
        ));
    }
    Ok(())
}

fn settings(entries: &mut Entries, worker: &mut Worker, remarks: &mut Vec<Remark>) -> Result<(), InputError> {
    let enabled = [("ENABLED", true), ("DISABLED", false)];
    loop {
        let entry = entries.before(END_SETTINGS)?;
        if is(&entry, END_SETTINGS) {
            return Ok(());
        } else if is(&entry, DEPTH) || is(&entry, DEPTH_AND_SEED) {
            let mut fields = entries.fields(&entry)?;
            worker.queue_depth = fields.number_u32("Number of outstanding IOs", 1..=QUEUE_DEPTH_MAX)?;
            let reconnects = fields.word("test connection rate", &enabled)?;
            fields.number("transactions per connection", 0..=u64::MAX)?;
            if reconnects {
                let message = "targets are opened once, not reopened after a number of transactions";
                remarks.push(remark(fields.line(), "test connection rate", message));
            }
            if is(&entry, DEPTH_AND_SEED) {
                let is_fixed = fields.word("use fixed seed", &enabled)?;
                worker.seed = Some(fields.number("fixed seed value", 0..=u64::MAX)?).filter(|_| is_fixed);
            }
        } else if is(&entry, SIZE) || is(&entry, SIZE_AND_PATTERN) {
            let mut fields = entries.fields(&entry)?;
            worker.maximum_sectors = fields.number("Disk maximum size", 0..=SECTORS_MAX)?;
            worker.first_sector = fields.number("starting sector", 0..=SECTORS_MAX)?;
            // 0 repeats bytes, 1 is partly random, 2 fully random. The choice matters to a disk that compresses data.
            if is(&entry, SIZE_AND_PATTERN) && fields.number("Data pattern", 0..=2)? != 0 {
                remarks.push(remark(fields.line(), "Data pattern", "the job file does not select the written data"));
            }
        } else if !is(&entry, "Local network interface") && !is(&entry, "VI outstanding IOs") {
            let allowed = format!("'{DEPTH_AND_SEED}; '{SIZE_AND_PATTERN}; '{END_SETTINGS}");
            return Err(entries.misplaced(&entry, &allowed));
        }
    }
}

fn targets(entries: &mut Entries, worker: &mut Worker) -> Result<(), InputError> {
    loop {
        let entry = entries.before(END_TARGETS)?;
        if is(&entry, END_TARGETS) {
            return Ok(());
        } else if is(&entry, "Target") {
            let name = text(&entry);
            if name.is_empty() {
                return Err(entries.error(entry.line, "Target", "the name is missing"));
            }
            worker.targets.push(name);
        } else if is(&entry, "Target type") {
            entries.fields(&entry)?.word("target type", &[("DISK", true), ("NETWORK", false)])?;
        } else if !is(&entry, "Target manager ID, manager name") && !is(&entry, "End target") {
            return Err(entries.misplaced(&entry, "'Target, 'Target type, 'End target, 'End target assignments"));
        }
    }
}
