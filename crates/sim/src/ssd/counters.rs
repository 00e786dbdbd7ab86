//! [`SsdCounters`]: counters of an SSD.

/// Counters of an SSD since the start of the simulation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SsdCounters {
    /// Reads of the host that began.
    pub reads: u64,
    /// Writes of the host that began.
    pub writes: u64,
    /// Trims that began.
    pub trims: u64,
    /// Flushes that began.
    pub flushes: u64,
    /// Mapping units that writes touched.
    pub written_units: u64,
    /// Mapping units written again before they left the write buffer.
    pub write_hits: u64,
    /// Mapping units read from the write buffer.
    pub read_hits: u64,
    /// Unwritten mapping units that were read.
    pub unwritten_reads: u64,
    /// Mapping units whose rest had to be read for a partial write.
    pub partial_writes: u64,
    /// Pages read, for any purpose.
    pub page_reads: u64,
    /// Pages programmed, moved and padded ones included.
    pub page_programs: u64,
    /// Mapping units moved by garbage collection.
    pub moved_units: u64,
    /// Blocks erased, counted per plane.
    pub erases: u64,
    /// Reads of a die that found it programming, erasing or moving data.
    pub read_waits: u64,
    /// Pages of the map that had to be read from the flash.
    pub map_reads: u64,
    /// Programs and erases that reads suspended.
    pub suspensions: u64,
    /// Time that dies were occupied, summed over them, including waits for the channel.
    pub dies_busy_ns: u64,
    /// Time that channels carried data, summed over them.
    pub channels_busy_ns: u64,
    /// Time that the interface carried data, summed over its directions.
    pub interface_ns: u64,
    /// Maximum erases of a block since the start of the simulation.
    pub erases_max: u32,
    /// Mean erases per block since then.
    pub erases_mean: f64,
}
