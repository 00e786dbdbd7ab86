//! [`SlowProcesses`]: optional processes that form the far tail of real drives.

use serde::{Deserialize, Serialize};

/// Optional slow processes. They form the tail above p99 that geometry cannot explain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlowProcesses {
    /// Retries of media accesses.
    pub retries: Option<Retries>,
    /// Thermal recalibration.
    pub recalibration: Option<Recalibration>,
    /// Background media scan.
    pub scan: Option<BackgroundScan>,
    /// Whether each write to the media is read back one turn later before it completes (ATA's write-read-verify; SCSI
    /// drives do so until their first scan of the surface is over).
    #[serde(default)]
    pub write_verify: bool,
}

/// Retries: a media access fails with a probability and is repeated one turn later.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retries {
    /// Probability that a pass over a track fails.
    pub probability: f64,
    /// Passes after which the drive gives up and corrects from its ECC.
    pub passes_max: u32,
}

/// Thermal recalibration: occupies the arm at fixed intervals, as soon as it is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recalibration {
    /// Time between two starts.
    pub interval_ns: u64,
    /// Duration.
    pub duration_ns: u64,
}

/// Background media scan: the drive reads its own surface when idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackgroundScan {
    /// Idle time before it starts.
    pub idle_ns: u64,
    /// Sectors of one step, which cannot be interrupted.
    pub step_sectors: u32,
}
