//! [`ErrorLog`]: failures during a run.

use std::sync::Arc;

use headstack_workload::Request;

use crate::target::{FailureScope, Target};
use crate::target_map::{TargetMap, TargetPlace};

/// Maximum number of failures that are reported individually.
pub const TOLD: usize = 4;

/// Failures of a job.
#[derive(Clone, Debug, Default)]
pub struct ErrorLog {
    /// Messages of the first failures.
    pub first: Vec<String>,
    /// Number of failures.
    pub count: u64,
    /// The failure that ended the job.
    pub fatal: Option<String>,
}

impl ErrorLog {
    /// Adds a failed request; `result` is the negative error number, or the bytes of a short transfer.
    pub fn add(&mut self, targets: &[Arc<Target>], map: &TargetMap, request: &Request, result: i32) {
        self.count += 1;
        let TargetPlace { piece, offset_bytes } = map.place(request);
        // The message has the offset within the target.
        let request = &Request { offset_bytes, ..*request };
        let scope = match (targets.get(piece), u32::try_from(result)) {
            (Some(target), Err(_)) => target.classify(request, -result),
            (Some(target), Ok(bytes)) => target.classify_short(request, bytes),
            (None, _) => FailureScope::CountOn(format!("{} without a target", request.kind.name())),
        };
        let (FailureScope::CountOn(message) | FailureScope::End(message)) = &scope;
        if self.first.len() < TOLD {
            self.first.push(message.clone());
        }
        if let FailureScope::End(message) = scope {
            self.fatal.get_or_insert(message);
        }
    }

    /// Adds the failures of another job.
    pub fn merge(&mut self, other: ErrorLog) {
        self.count += other.count;
        self.first.extend(other.first);
        self.first.truncate(TOLD);
        self.fatal = self.fatal.take().or(other.fatal);
    }
}
