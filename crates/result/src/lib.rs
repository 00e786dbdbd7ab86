//! Results of runs and their comparison: latency histograms, sampling errors, the versioned [`RunResult`], the demerit
//! figure, and the knee of a saturation curve. See docs/design/results.md.
//!
//! Everything here is a pure function of recorded data, without clock, randomness or I/O.

#![deny(clippy::wildcard_enum_match_arm)] // A new variant does not compile until every match handles it.

mod batches;
pub mod columns;
mod components;
mod curve;
mod demerit;
mod fault_record;
mod fidelity;
mod histogram;
mod integrity;
mod kinds;
mod measuring;
mod model_error;
mod run_result;
mod sampling;
mod servers;
mod stalls;
mod stored;
mod system_record;
pub mod tables;
mod upgrades;

pub use batches::{Batches, FREE_FLASH, LEVEL_NAMES, Levels};
pub use components::{Check, Component, Counter, DepthResult, Energy};
pub use curve::{CurvePoint, Knee, knee, throughput_at_response};
pub use demerit::{
    Score, demerit_disksim_ms, demerit_ms, demerit_of_histograms_ms, paired_rms_ms, pearson_r, score, worst_percentile,
};
pub use fault_record::{FaultRecord, LossRecord};
pub use fidelity::Fidelity;
pub use histogram::{LatencyHistogram, MAX_BINNED_NS, StoredHistogram};
pub use integrity::Integrity;
pub use kinds::{Fact, Finished, Interval, KindResult, Kinds, OperationResult, StreamResult};
pub use measuring::{Measuring, piles_up};
pub use model_error::{ModelError, Range};
pub use run_result::RunResult;
pub use sampling::{Estimate, PERCENTS, Percentile, Sampling, TooShort};
pub use servers::Servers;
pub use stalls::{Stall, Stalls};
pub use system_record::{Mode, SystemRecord, content_hash};
pub use upgrades::SCHEMA_VERSION;

/// An error in a result, or in samples to compare.
#[derive(Debug, thiserror::Error)]
pub enum ResultError {
    /// The text is not a result: invalid JSON, a missing or unknown field, or an inconsistent histogram.
    #[error("result: {0}")]
    Json(#[from] serde_json::Error),
    /// The result was written with a schema that this version cannot read.
    #[error("result: schema {found}; this version reads schemas 1 to {SCHEMA_VERSION}")]
    Schema {
        /// Schema number in the text.
        found: u64,
    },
    /// A field is NaN or infinite, which JSON cannot represent.
    #[error("result: {field} is {value}; must be finite")]
    NotFinite {
        /// Name of the field.
        field: &'static str,
        /// Value of the field.
        value: f64,
    },
    /// A sample of latencies cannot be scored.
    #[error("{sample} response times: {reason}")]
    Sample {
        /// `simulated` or `measured`.
        sample: &'static str,
        /// Reason, with the position of the value.
        reason: String,
    },
}
