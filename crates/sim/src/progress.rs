//! Progress of a run, for callers that show or end it.

/// Receives the share of a run that is done, 0 to 1; returns false to end the run.
pub type Progress<'a> = dyn Fn(f64) -> bool + Sync + 'a;
