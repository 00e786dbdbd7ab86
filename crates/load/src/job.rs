//! What is measured.

use std::os::fd::AsRawFd;
use std::sync::Arc;

use headstack_workload::jobs::Limits;
use headstack_workload::{Arrivals, RunLength, Span, Workload};

use crate::LoadError;
use crate::engine::EngineKind;
use crate::ground::Ground;
use crate::target::{Target, TargetKind};

/// One thread's work.
#[derive(Clone)]
pub struct Job {
    /// Its name; jobs of one name are reported as one.
    pub name: String,
    /// The files and devices that it works on, whose address spaces lie one after another.
    pub targets: Vec<Arc<Target>>,
    /// The part that is used; all of it where absent.
    pub span: Option<Span>,
    /// Sizes, places, arrivals, warm-up.
    pub workload: Workload,
    /// What ends it; where none is set, the workload's run length.
    pub limits: Limits,
    /// How requests are handed over.
    pub engine: EngineKind,
    /// Of an open loop: requests with the system at a time.
    pub slots: u32,
    /// Nothing is issued before this time.
    pub start_delay_ns: u64,
    /// Seed of its random choices.
    pub seed: u64,
}

/// When a job is over.
#[derive(Clone, Copy, Debug)]
pub struct End {
    /// Requests of the measured part.
    pub requests: u64,
    /// Bytes of the measured part.
    pub bytes: u64,
    /// Length of the measured part.
    pub time_ns: u64,
    /// Until the mean is known to so many percent.
    pub confidence_percent: Option<f64>,
}

impl Job {
    /// The targets as one address space.
    pub fn ground(&self) -> Ground {
        let file = |target: &Arc<Target>| {
            let is_device = target.kind() == TargetKind::BlockDevice;
            target.fd().map(|fd| (fd.as_raw_fd(), target.capacity_bytes(), is_device))
        };
        match self.targets.iter().map(file).collect::<Option<Vec<_>>>() {
            Some(files) => Ground::new(files),
            None => Ground::nowhere(self.targets.iter().map(|target| target.capacity_bytes()).sum()),
        }
    }

    /// What errors call the targets.
    pub fn target(&self) -> String {
        self.targets.iter().map(|target| target.name()).collect::<Vec<_>>().join(", ")
    }

    /// The unit that requests begin and end on.
    pub fn block_bytes(&self) -> u32 {
        Target::common_block_bytes(&self.targets)
    }

    /// The part that is used.
    ///
    /// # Errors
    /// When it lies outside of the target or is empty.
    pub fn span(&self) -> Result<Span, LoadError> {
        let capacity: u64 = self.targets.iter().map(|target| target.capacity_bytes()).sum();
        let span = self.span.unwrap_or(Span { start_bytes: 0, length_bytes: capacity });
        match span.start_bytes.checked_add(span.length_bytes) {
            Some(end) if end <= capacity && span.length_bytes > 0 => Ok(span),
            _ => Err(LoadError::Target {
                target: self.target(),
                message: format!("{} bytes from {}: it has {capacity} bytes", span.length_bytes, span.start_bytes),
            }),
        }
    }

    /// When it is over.
    pub fn end(&self) -> End {
        let Limits { requests, bytes, time_ns } = self.limits;
        let or_never = |limit: Option<u64>| limit.unwrap_or(u64::MAX);
        let stated = End {
            requests: or_never(requests),
            bytes: or_never(bytes),
            time_ns: or_never(time_ns),
            confidence_percent: None,
        };
        if self.limits != Limits::default() {
            return stated;
        }
        match self.workload.run_length {
            RunLength::Requests(requests) => End { requests, ..stated },
            RunLength::TimeNs(time_ns) => End { time_ns, ..stated },
            RunLength::Confidence { percent, max_requests } => {
                End { requests: max_requests, confidence_percent: Some(percent), ..stated }
            }
        }
    }

    /// Requests with the system at a time, at most.
    pub fn depth(&self) -> u32 {
        match self.workload.arrivals {
            Arrivals::Closed { outstanding, .. } => outstanding,
            Arrivals::Open { .. } => self.slots,
        }
    }
}
