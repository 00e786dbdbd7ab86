//! [`SlowProcesses`]: optional processes that cause the tail latency of real drives.

use serde::{Deserialize, Serialize};

/// Optional slow processes, which cause tail latency above p99 that geometry cannot explain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlowProcesses {
    /// Retries of media accesses.
    pub retries: Option<Retries>,
    /// Thermal recalibration.
    pub recalibration: Option<Recalibration>,
    /// Background media scan.
    pub scan: Option<BackgroundScan>,
    /// Whether the drive reads back each media write one turn later, before the write completes (ATA's
    /// write-read-verify; SCSI drives do so until their first scan of the surface has finished).
    #[serde(default)]
    pub write_verify: bool,
}

/// Retries: a media access fails with this probability and is repeated one turn later.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retries {
    /// Probability that a pass over a track fails.
    pub probability: f64,
    /// Maximum number of passes, after which the drive corrects the data with ECC.
    pub passes_max: u32,
}

/// Thermal recalibration: occupies the arm at fixed intervals, as soon as the arm is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recalibration {
    /// Time between the starts of two recalibrations.
    pub interval_ns: u64,
    /// Duration of a recalibration.
    pub duration_ns: u64,
}

/// Background media scan: an idle drive reads its own surface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackgroundScan {
    /// Idle time before the scan starts.
    pub idle_ns: u64,
    /// Number of sectors of a step, which cannot be interrupted.
    pub step_sectors: u32,
}
