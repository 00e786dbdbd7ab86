//! Progress of a run, for callers that display or stop the run.

/// Receives the share of the run that is done, 0 to 1; returns false to stop the run.
pub type Progress<'a> = dyn Fn(f64) -> bool + Sync + 'a;
