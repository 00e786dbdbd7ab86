//! [`SsdCounters`]: the counters of a solid-state drive.

/// Counters of a solid-state drive, for its own time: preconditioning only affects the wear.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SsdCounters {
    /// Reads of the host's that began.
    pub reads: u64,
    /// Writes of the host's that began.
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
    /// Mapping units read that were never written.
    pub unwritten_reads: u64,
    /// Mapping units whose rest had to be read because a part was written.
    pub partial_writes: u64,
    /// Pages read, for any purpose.
    pub page_reads: u64,
    /// Pages programmed, moved and padded ones included.
    pub page_programs: u64,
    /// Mapping units moved by garbage collection.
    pub moved_units: u64,
    /// Blocks erased, counted a plane.
    pub erases: u64,
    /// Reads of a die that found it programming, erasing or moving data.
    pub read_waits: u64,
    /// Pages of the map that had to be read from the flash.
    pub map_reads: u64,
    /// Programs and erases that reads interrupted.
    pub suspensions: u64,
    /// Dies were occupied, summed over them; waiting for the channel counts.
    pub dies_busy_ns: u64,
    /// Channels carried data, summed over them.
    pub channels_busy_ns: u64,
    /// The interface carried data, summed over its directions.
    pub interface_ns: u64,
    /// Most erases of a block since manufacture, preconditioning included.
    pub erases_max: u32,
    /// Mean erases per block since manufacture.
    pub erases_mean: f64,
}
