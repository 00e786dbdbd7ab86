//! [`Layout`]: places files and devices in the single address space of a simulated system.

use headstack_workload::quantity::format_bytes;
use headstack_workload::{Span, WorkloadError};

use super::{Job, Remark};

/// Alignment of files and parts in bytes, a multiple of every sector size.
const GRAIN_BYTES: u64 = 4_096;

/// The files and devices of a phase, one after another.
pub(super) struct Layout {
    /// Targets with their spans, in the order in which the jobs first name them.
    targets: Vec<(String, Span)>,
    capacity_bytes: u64,
    /// Whether targets of unknown size divide the space that the others leave.
    is_shared: bool,
}

/// Alignment of jobs' parts, in bytes.
const SECTOR_BYTES: u64 = 512;

fn wrong(index: usize, key: &str, message: String) -> WorkloadError {
    WorkloadError { key: format!("jobs[{index}].{key}"), message }
}

impl Layout {
    /// Places the targets of all jobs. Jobs without targets use the whole system.
    pub(super) fn new(jobs: &[Job], capacity_bytes: u64) -> Result<Layout, WorkloadError> {
        if capacity_bytes < GRAIN_BYTES {
            let message = format!("{capacity_bytes} bytes is too small; the minimum is {GRAIN_BYTES} bytes");
            return Err(WorkloadError { key: "capacity".to_owned(), message });
        }
        let mut sizes: Vec<(String, Option<u64>, usize)> = Vec::new();
        for (index, job) in jobs.iter().enumerate() {
            for target in &job.targets {
                match sizes.iter_mut().find(|(known, ..)| known == target) {
                    Some((_, size, _)) => *size = (*size).max(job.file_bytes),
                    None => sizes.push((target.clone(), job.file_bytes, index)),
                }
            }
        }
        let known_bytes = sizes.iter().filter_map(|(_, size, _)| *size).fold(0u64, u64::saturating_add);
        let unknown = sizes.iter().filter(|(_, size, _)| size.is_none()).count() as u64;
        let left_bytes = capacity_bytes.saturating_sub(known_bytes);
        let share_bytes = left_bytes.checked_div(unknown).unwrap_or(0);
        let share_bytes = if unknown == 1 { share_bytes } else { share_bytes / GRAIN_BYTES * GRAIN_BYTES };
        let mut targets = Vec::new();
        let mut start_bytes = 0u64;
        for (target, size, index) in sizes {
            let length_bytes = size.unwrap_or(share_bytes);
            let end_bytes = start_bytes.checked_add(length_bytes).filter(|end| *end <= capacity_bytes);
            let (Some(end_bytes), 1..) = (end_bytes, length_bytes) else {
                let message = format!("{target} does not fit into a system of {}", format_bytes(capacity_bytes));
                return Err(wrong(index, "targets", message));
            };
            targets.push((target, Span { start_bytes, length_bytes }));
            start_bytes = end_bytes.checked_next_multiple_of(GRAIN_BYTES).unwrap_or(u64::MAX);
        }
        Ok(Layout { targets, capacity_bytes, is_shared: unknown > 1 })
    }

    pub(super) fn remarks(&self) -> Vec<Remark> {
        let remark = || Remark {
            line: 0,
            option: "targets".to_owned(),
            message: "files and devices of unknown size divide the remaining space evenly".to_owned(),
        };
        if self.is_shared { vec![remark()] } else { Vec::new() }
    }

    /// Returns the span of the system that a job uses.
    pub(super) fn span(&self, index: usize, job: &Job, remarks: &mut Vec<Remark>) -> Result<Span, WorkloadError> {
        let whole = self.targets_of(job);
        let (span, is_cut) =
            job.part.within(whole.length_bytes, SECTOR_BYTES).map_err(|message| wrong(index, "part", message))?;
        if is_cut {
            let message = format!(
                "the part of {} ends at the size of its targets, {}",
                job.name,
                format_bytes(whole.length_bytes)
            );
            remarks.push(Remark { line: 0, option: "part".to_owned(), message });
        }
        Ok(Span { start_bytes: whole.start_bytes + span.start_bytes, ..span })
    }

    /// Returns the span from the first to the last of a job's targets.
    fn targets_of(&self, job: &Job) -> Span {
        let own = || self.targets.iter().filter(|(name, _)| job.targets.contains(name)).map(|(_, span)| span);
        let start_bytes = own().map(|span| span.start_bytes).min();
        let end_bytes = own().map(|span| span.start_bytes + span.length_bytes).max();
        match (start_bytes, end_bytes, job.file_bytes) {
            (Some(start_bytes), Some(end_bytes), _) => Span { start_bytes, length_bytes: end_bytes - start_bytes },
            // The job has a file size but no file name.
            (_, _, Some(bytes)) => Span { start_bytes: 0, length_bytes: bytes.min(self.capacity_bytes) },
            _ => Span { start_bytes: 0, length_bytes: self.capacity_bytes },
        }
    }
}
