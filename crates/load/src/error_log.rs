//! What goes wrong in mid-run.

use std::sync::Arc;

use headstack_workload::Request;

use crate::target::{FailureScope, Target};
use crate::target_map::{TargetMap, TargetPlace};

/// The first failures are told one by one.
pub const TOLD: usize = 4;

/// Failures of a job.
#[derive(Clone, Debug, Default)]
pub struct ErrorLog {
    /// The first of them, in words.
    pub first: Vec<String>,
    /// All of them.
    pub count: u64,
    /// The one after which nothing goes on.
    pub fatal: Option<String>,
}

impl ErrorLog {
    /// Books a failed request; `result` is the negative error number, or the bytes of a short transfer.
    pub fn add(&mut self, targets: &[Arc<Target>], map: &TargetMap, request: &Request, result: i32) {
        self.count += 1;
        let TargetPlace { piece, offset_bytes } = map.place(request);
        // Each target has its own offsets.
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

    /// Adds what went wrong in another job.
    pub fn merge(&mut self, other: ErrorLog) {
        self.count += other.count;
        self.first.extend(other.first);
        self.first.truncate(TOLD);
        self.fatal = self.fatal.take().or(other.fatal);
    }
}
