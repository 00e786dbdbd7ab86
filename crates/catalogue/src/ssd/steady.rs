//! [`RandomWrites`]: approximate formulas for random writes in the steady state. They select missing values so that the
//! drive meets its sheet; the simulated drive does not use them.

use headstack_sim::ssd::description::{Capacity, Collection, Flash, Timing};

/// Limits in the steady state of a drive.
#[derive(Clone, Copy, Debug)]
pub struct Steady {
    /// Flash in excess of the capacity, as a fraction of the capacity.
    pub over_provisioning: f64,
    /// Maximum random write IOPS of the flash in the steady state.
    pub per_second: f64,
    /// The same with the usual cost of moves, if the file does not state random writes.
    pub expected_per_second: Option<f64>,
}

/// A drive under random writes of `size_bytes`.
#[derive(Clone, Copy, Debug)]
pub struct RandomWrites {
    pub capacity: Capacity,
    pub flash: Flash,
    pub timing: Timing,
    pub collection: Collection,
    pub size_bytes: f64,
}

impl RandomWrites {
    /// Returns the number of dies on all channels.
    pub fn dies(&self) -> f64 {
        f64::from(self.flash.channels) * f64::from(self.flash.dies_per_channel)
    }

    /// Returns the number of bytes that a die programs at once.
    pub fn row_bytes(&self) -> f64 {
        f64::from(self.flash.planes_per_die) * f64::from(self.flash.page_bytes)
    }

    /// Returns the write IOPS with a write amplification of `amplification` and a program time of `program_ns`, if all
    /// dies or all channels are always busy.
    pub fn per_second(&self, amplification: f64, program_ns: f64) -> f64 {
        let timing = &self.timing;
        let unit_bytes = f64::from(self.capacity.mapping_unit_bytes);
        let units_per_row = (self.row_bytes() / unit_bytes).max(1.0);
        let send_ns = unit_bytes * timing.channel_ns_per_byte;
        let program_ns = program_ns / units_per_row + send_ns;
        let erase_ns = timing.erase_ns as f64 / (units_per_row * f64::from(self.flash.pages_per_block));
        let sense_ns = timing.read_ns as f64;
        // The valid data of a row is read at once.
        let valid = units_per_row * (1.0 - 1.0 / amplification);
        let moved_ns = send_ns + sense_ns / valid.max(1.0);
        let units = (self.size_bytes / unit_bytes).ceil();
        let rest_ns = if self.size_bytes < unit_bytes { sense_ns + send_ns } else { 0.0 };
        let unit_ns = amplification * (program_ns + erase_ns) + (amplification - 1.0) * moved_ns;
        let by_dies = self.dies() * 1e9 / (units * unit_ns + rest_ns);
        // Moved data crosses the channel twice.
        let sent = units * (2.0 * amplification - 1.0) + if rest_ns > 0.0 { 1.0 } else { 0.0 };
        let by_channels = f64::from(self.flash.channels) * 1e9 / (sent * send_ns).max(1e-3);
        // If dies and channels are about equally busy, each waits for the other.
        libm::pow(by_dies.powi(-8) + by_channels.powi(-8), -0.125)
    }

    /// Returns the free blocks and the unused part of open blocks as a fraction of the flash. Per die, this is the
    /// minimum number of free blocks minus 0.75, according to simulations of drives with 80 and 320 blocks per die.
    fn reserved_share(&self, over_provisioning: f64) -> f64 {
        let raw = self.capacity.logical_bytes as f64 * (1.0 + over_provisioning);
        let blocks = raw / (self.dies() * self.row_bytes() * f64::from(self.flash.pages_per_block));
        (f64::from(self.collection.free_blocks_min) - 0.75) / blocks.max(1.0)
    }

    /// Returns the write amplification of greedy collection of large blocks under uniform writes (Desnoyers 2012). If a
    /// fraction `x` of a victim is valid, the ratio of flash to data is ln(1/x) / (1 - x), and the amplification is 1 /
    /// (1 - x).
    pub fn amplification(&self, over_provisioning: f64) -> f64 {
        let flash_over_data = (1.0 + over_provisioning) * (1.0 - self.reserved_share(over_provisioning)).max(0.1);
        let (mut low, mut high) = (1e-9, 1.0 - 1e-6);
        for _ in 0..60 {
            let x = f64::midpoint(low, high);
            if libm::log(1.0 / x) / (1.0 - x) > flash_over_data { low = x } else { high = x }
        }
        1.0 / (1.0 - low)
    }

    /// Returns the write IOPS with an over-provisioning.
    pub fn at(&self, over_provisioning: f64) -> f64 {
        self.per_second(self.amplification(over_provisioning), self.timing.program_ns as f64)
    }
}

/// Returns the approximate argument between `low` and `high` at which a rising function equals `value`.
pub fn solve_rising(low: f64, high: f64, value: f64, function: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (low, high);
    for _ in 0..50 {
        let middle = f64::midpoint(low, high);
        if function(middle) < value { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}
