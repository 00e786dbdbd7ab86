//! [`Slow`]: optional slow processes that cause the far latency tail of real drives.

use crate::description::drive::SlowProcesses;

/// State of the enabled processes.
#[derive(Clone, Debug)]
pub struct Slow {
    processes: SlowProcesses,
    /// State of SplitMix64 (Steele, Lea and Flood 2014), which supplies one random number per pass.
    random: u64,
    recalibration_ns: u64,
    scan_block: u64,
    /// Whether all processes are disabled, which is the usual case and costs one test.
    off: bool,
}

impl Slow {
    /// Creates the processes with random numbers from `seed`.
    pub fn new(processes: &SlowProcesses, seed: u64) -> Self {
        Slow {
            processes: *processes,
            random: seed,
            recalibration_ns: processes.recalibration.map_or(u64::MAX, |process| process.interval_ns),
            scan_block: 0,
            off: *processes == SlowProcesses::default(),
        }
    }

    /// Returns when a process next occupies an arm that is idle since `free_ns`; `u64::MAX` for never.
    #[inline]
    pub fn next_ns(&self, free_ns: u64) -> u64 {
        if self.off {
            return u64::MAX;
        }
        let scan = self.processes.scan.map_or(u64::MAX, |scan| free_ns + scan.idle_ns);
        self.recalibration_ns.max(free_ns).min(scan)
    }

    /// Whether recalibration is due when the arm becomes free at `now_ns`.
    #[inline]
    pub fn recalibration_due(&self, now_ns: u64) -> bool {
        self.recalibration_ns <= now_ns
    }

    /// Starts the process that is due. Returns how long it occupies the arm, in ns, and for a scan its first block and
    /// number of sectors.
    pub fn start(&mut self, now_ns: u64, blocks: u64) -> (u64, Option<(u64, u32)>) {
        if let Some(process) = self.processes.recalibration
            && self.recalibration_ns <= now_ns
        {
            self.recalibration_ns += process.interval_ns * ((now_ns - self.recalibration_ns) / process.interval_ns + 1);
            return (process.duration_ns, None);
        }
        let scan = self.processes.scan.expect("a scan is due if recalibration is not");
        let block = if self.scan_block >= blocks { 0 } else { self.scan_block };
        let sectors = u64::from(scan.step_sectors).min(blocks - block) as u32;
        self.scan_block = block + u64::from(sectors);
        (0, Some((block, sectors)))
    }

    /// Whether the drive reads back writes to the media.
    #[inline]
    pub fn verifies_writes(&self) -> bool {
        self.processes.write_verify
    }

    /// Draws how many passes fail before one succeeds.
    #[inline]
    pub fn repeated_passes(&mut self) -> u32 {
        let Some(retries) = self.processes.retries else {
            return 0;
        };
        let mut failed = 0;
        while failed < retries.passes_max && self.uniform() < retries.probability {
            failed += 1;
        }
        failed
    }

    fn uniform(&mut self) -> f64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}
