//! [`SlowProcesses`]: optional processes that cause the far tail of real drives.

use serde::{Deserialize, Serialize};

/// Slow processes, each explicit. They make the tail beyond p99 that geometry cannot explain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlowProcesses {
    /// Retries of media accesses.
    pub retries: Option<Retries>,
    /// Thermal recalibration.
    pub recalibration: Option<Recalibration>,
    /// Background media scan.
    pub scan: Option<BackgroundScan>,
    /// Each write to the media is read back a turn later before it counts (ATA's write-read-verify; SCSI drives do so until
    /// their first scan of the surface is over).
    #[serde(default)]
    pub write_verify: bool,
}

/// A media access fails with a probability and is repeated a turn later.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retries {
    /// Probability that a pass over a track fails.
    pub probability: f64,
    /// Passes after which the drive gives up and corrects from its ECC.
    pub passes_max: u32,
}

/// Occupies the arm for a while, at fixed intervals, as soon as it is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recalibration {
    /// Between two starts.
    pub interval_ns: u64,
    /// How long.
    pub duration_ns: u64,
}

/// The drive reads its own surface when idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackgroundScan {
    /// Idle time before it starts.
    pub idle_ns: u64,
    /// Sectors of one step; a step is never interrupted.
    pub step_sectors: u32,
}
