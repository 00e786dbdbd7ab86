//! Analysis of a trace ([`Analysis`]): one pass over its requests in order of arrival, in memory independent of its
//! length. See docs/design/traces.md.
//!
//! A trace can be analysed in parts that are merged in order: the report is that of one pass. Every part knows the
//! start of the whole and the requests in flight before it; each accumulator has a `merge` that appends a later part.
//! Sums over requests are added. Figures that depend on order (runs, gaps, windows, blocks, re-use) keep the data that
//! a part cannot evaluate alone, and the merge completes them. Sums are whole numbers, since sums of floats depend on
//! order. If blocks are sampled, estimates depend on the boundaries of parts, within their error.

mod blocks;
mod course;
mod distances;
mod environment;
mod flight;
mod heat;
mod histogram;
mod latency;
pub(crate) mod mix;
mod part;
mod phases;
mod rate;
mod report;
mod reuse;
pub(crate) mod sample;
mod sequence;
pub(crate) mod stack;
pub(crate) mod table;
mod timeline;
mod times;
mod touched;
mod volumes;

pub use blocks::{GrowthPoint, Successions, WindowReport, WorkingSetReport};
pub use course::Course;
pub use distances::CurvePoint;
pub use environment::EnvironmentReport;
pub use flight::{ClassReport, DepthReport, ResponseReport};
pub use heat::HeatReport;
pub use histogram::{Bin, Summary};
pub use latency::{LatencyReport, ProcessName, SliceReport};
pub use mix::{AlignmentReport, AlignmentShare, Amount, SizeReport, SizesReport};
pub use part::Part;
pub use phases::PhasesReport;
pub use rate::{ArrivalReport, HurstReport, RateBin, RateReport, ScaleReport};
pub use report::{DeviceReport, ProcessReport, Report};
pub use reuse::{Granularity, Reuse, ReuseOptions, ReuseReport};
pub use sequence::{RunReport, STREAMS, SequenceReport};
pub use timeline::{SortReport, TimelineBin, TimelineReport};
pub use times::{TimeClass, TimesReport};
pub use volumes::{VolumeReport, Volumes};

use blocks::Blocks;
use flight::DepthTracker;
use heat::{Heat, Spread};
use latency::Latencies;
pub(crate) use mix::transfers;
use mix::{Alignment, DEVICES_MAX, FlagCounts, Mix, PROCESSES_MAX, Sizes};
use phases::Phases;
use rate::{Arrivals, Series};
use sequence::{Placement, Sequence};
use serde::{Deserialize, Serialize};
use timeline::Timeline;

use crate::error::{Place, TraceError};
use crate::meta::Meta;
use crate::record::{NOT_RECORDED, Operation, Record};

const BLOCK_BYTES_MAX: u32 = 1 << 30;

/// Scope of an analysis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Options {
    /// Block size for the working set and re-use: a power of two from 512 to 2^30.
    pub block_bytes: u32,
    /// Whether to track blocks: the working set and successions.
    pub working_set: bool,
    /// Memory for the table of blocks; beyond it, half of them are dropped and the rest represents all.
    pub working_set_memory_bytes: u64,
    /// How re-use is counted; `None` for not at all.
    pub reuse: Option<ReuseOptions>,
    /// Whether to build the map of addresses over time.
    pub heat_map: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            block_bytes: 4_096,
            working_set: true,
            working_set_memory_bytes: 256 << 20,
            reuse: Some(ReuseOptions::default()),
            heat_map: true,
        }
    }
}

impl Options {
    fn check(&self) -> Result<(), TraceError> {
        let refuse =
            |field, message| Err(TraceError { file: "analysis".to_owned(), place: Place::File, field, message });
        if !self.block_bytes.is_power_of_two() || !(512..=BLOCK_BYTES_MAX).contains(&self.block_bytes) {
            let message = format!("must be a power of two from 512 to 2^30, not {}", self.block_bytes);
            return refuse("block_bytes", message);
        }
        match &self.reuse {
            Some(reuse) if !(reuse.rate > 0.0 && reuse.rate <= 1.0) => {
                refuse("rate", format!("must be above 0 and up to 1, not {}", reuse.rate))
            }
            _ => Ok(()),
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Device {
    mix: Mix,
    sequence: Sequence,
    range: Range,
    responses: u64,
    response_ns: u128,
}

impl Device {
    fn new(is_later: bool) -> Device {
        let sequence = Sequence::new(is_later);
        Device { mix: Mix::default(), sequence, range: Range::EMPTY, responses: 0, response_ns: 0 }
    }
}

/// Range of the touched addresses.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Range {
    lowest_bytes: u64,
    highest_end_bytes: u64,
}

impl Range {
    const EMPTY: Range = Range { lowest_bytes: u64::MAX, highest_end_bytes: 0 };

    #[inline]
    fn add(&mut self, record: &Record) {
        self.lowest_bytes = self.lowest_bytes.min(record.offset_bytes);
        self.highest_end_bytes = self.highest_end_bytes.max(record.end_bytes());
    }

    fn merge(&mut self, other: Range) {
        self.lowest_bytes = self.lowest_bytes.min(other.lowest_bytes);
        self.highest_end_bytes = self.highest_end_bytes.max(other.highest_end_bytes);
    }
}

/// An analysis in progress.
#[derive(Serialize, Deserialize)]
pub struct Analysis {
    options: Options,
    /// Whether it is a later part of a trace.
    is_later: bool,
    start_ns: Option<u64>,
    last_ns: u64,
    out_of_order: u64,
    mix: Mix,
    flags: FlagCounts,
    sizes: Sizes,
    alignment: Alignment,
    range: Range,
    arrivals: Arrivals,
    series: Series,
    timeline: Timeline,
    latencies: Latencies,
    phases: Phases,
    flights: DepthTracker,
    devices: Vec<Device>,
    other_devices: Mix,
    processes: Vec<Mix>,
    other_processes: Mix,
    spread: Spread,
    heat: Option<Heat>,
    blocks: Option<Blocks>,
    reuse: Option<Reuse>,
}

impl Analysis {
    /// Creates an empty analysis.
    ///
    /// # Errors
    /// When options are out of range.
    pub fn new(options: Options) -> Result<Analysis, TraceError> {
        options.check()?;
        Ok(Analysis::begin(options, false))
    }

    fn begin(options: Options, is_later: bool) -> Analysis {
        let reuse = if is_later { Reuse::later } else { Reuse::new };
        let (block_bytes, memory_bytes) = (options.block_bytes, options.working_set_memory_bytes);
        Analysis {
            is_later,
            start_ns: None,
            last_ns: 0,
            out_of_order: 0,
            mix: Mix::default(),
            flags: FlagCounts::default(),
            sizes: Sizes::new(),
            alignment: Alignment::new(),
            range: Range::EMPTY,
            arrivals: Arrivals::new(),
            series: Series::new(),
            timeline: Timeline::new(options.working_set.then_some(options.block_bytes)),
            latencies: Latencies::default(),
            phases: Phases::default(),
            flights: DepthTracker::new(),
            devices: Vec::new(),
            other_devices: Mix::default(),
            processes: Vec::new(),
            other_processes: Mix::default(),
            spread: Spread::new(),
            heat: options.heat_map.then(Heat::new),
            blocks: options.working_set.then(|| Blocks::new(block_bytes, memory_bytes, is_later)),
            reuse: options.reuse.clone().map(|options| reuse(options, block_bytes)),
            options,
        }
    }

    /// Adds the next requests, in order of arrival. A request before its predecessor counts as arriving with it.
    pub fn add(&mut self, records: &[Record]) {
        // Re-use takes about as long as everything else, and the two are independent.
        let mut reuse = self.reuse.take();
        rayon::join(
            || records.iter().for_each(|record| self.add_one(record)),
            || {
                if let Some(reuse) = &mut reuse {
                    records.iter().filter(|record| transfers(record.operation)).for_each(|record| reuse.add(record));
                }
            },
        );
        self.reuse = reuse;
    }

    #[inline]
    fn add_one(&mut self, record: &Record) {
        let start_ns = *self.start_ns.get_or_insert(record.arrival_ns);
        let since_start_ns = match record.arrival_ns.checked_sub(start_ns) {
            Some(since_start_ns) if since_start_ns >= self.last_ns => since_start_ns,
            _ => {
                self.out_of_order += 1;
                self.last_ns
            }
        };
        self.last_ns = since_start_ns;

        self.mix.add(record);
        self.flags.add(record.flags);
        self.arrivals.add(since_start_ns);
        self.flights.add(since_start_ns, record, &mut self.series);
        self.series.add(since_start_ns, record);
        self.timeline.add(start_ns + since_start_ns, record);
        self.latencies.add(record);
        self.phases.add(record);
        self.add_process(record);
        let placement = self.add_device(record);
        let has_size = transfers(record.operation) || record.operation == Operation::Trim;
        if has_size && placement != Placement::Open {
            self.sizes.add(record, placement == Placement::Sequential);
        }
        if transfers(record.operation) {
            self.add_transfer(since_start_ns, record, placement);
        }
    }

    #[inline]
    fn add_transfer(&mut self, since_start_ns: u64, record: &Record, placement: Placement) {
        self.alignment.add(record);
        self.range.add(record);
        if placement == Placement::Random {
            self.spread.add(record.offset_bytes);
        }
        if let Some(heat) = &mut self.heat {
            heat.add(since_start_ns, record.offset_bytes, record.operation == Operation::Write);
        }
        if let Some(blocks) = &mut self.blocks {
            blocks.add(since_start_ns, record);
        }
    }

    /// Adds a request to its device's sequence; returns whether it continues a stream.
    #[inline]
    fn add_device(&mut self, record: &Record) -> Placement {
        let index = record.device as usize;
        if index >= DEVICES_MAX {
            self.other_devices.add(record);
            return Placement::Random;
        }
        if index >= self.devices.len() {
            let is_later = self.is_later;
            self.devices.resize_with(index + 1, || Device::new(is_later));
        }
        let device = &mut self.devices[index];
        device.mix.add(record);
        if record.response_ns != NOT_RECORDED {
            device.responses += 1;
            device.response_ns += u128::from(record.response_ns);
        }
        if !transfers(record.operation) {
            return Placement::Random;
        }
        device.range.add(record);
        device.sequence.add(record)
    }

    #[inline]
    fn add_process(&mut self, record: &Record) {
        let Some(index) = (record.process as usize).checked_sub(1) else { return };
        if index >= PROCESSES_MAX {
            self.other_processes.add(record);
            return;
        }
        if index >= self.processes.len() {
            self.processes.resize(index + 1, Mix::default());
        }
        self.processes[index].add(record);
    }

    /// Returns the report; `meta` provides names and the clock's resolution.
    pub fn finish(self, meta: &Meta) -> Report {
        report::report(self, meta)
    }
}
