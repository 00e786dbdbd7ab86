//! [`Part`]: a part of a trace that is analysed separately and merged in order.

use std::mem::{replace, take};

use super::timeline::Timeline;
use super::{Analysis, Device, Options};
use crate::error::TraceError;
use crate::record::Record;

/// Analysis of a part of a trace other than the first.
pub struct Part(Analysis);

impl Part {
    /// Creates an empty part. The whole trace begins at `start_ns`; `in_flight` contains the requests of earlier parts
    /// that are not complete when this part begins.
    ///
    /// # Errors
    /// Returns an error if an option is out of range.
    pub fn new(options: Options, start_ns: u64, in_flight: &[Record]) -> Result<Part, TraceError> {
        options.check()?;
        let mut part = Analysis::begin(options, true);
        part.start_ns = Some(start_ns);
        in_flight.iter().for_each(|record| part.flights.add_earlier(start_ns, record));
        Ok(Part(part))
    }

    /// Adds the next requests, as [`Analysis::add`] does.
    pub fn add(&mut self, records: &[Record]) {
        self.0.add(records);
    }

    /// Serializes the part for sending or storing.
    pub fn to_bytes(&self) -> Vec<u8> {
        let packed = zstd::stream::write::Encoder::new(Vec::new(), 1)
            .map_err(|error| error.to_string())
            .and_then(|encoder| postcard::to_io(&self.0, encoder).map_err(|error| error.to_string()))
            .and_then(|encoder| encoder.finish().map_err(|error| error.to_string()));
        packed.expect("serializing plain data to memory cannot fail")
    }

    /// Restores a part from [`Part::to_bytes`] of the same build.
    ///
    /// # Errors
    /// Returns an error if `bytes` is not a serialized part.
    pub fn from_bytes(bytes: &[u8]) -> Result<Part, TraceError> {
        let damaged = |error: &dyn std::fmt::Display| refused(&format!("a part is damaged: {error}"));
        let plain = zstd::stream::decode_all(bytes).map_err(|error| damaged(&error))?;
        postcard::from_bytes(&plain).map(Part).map_err(|error| damaged(&error))
    }
}

impl Analysis {
    /// Appends a later part.
    ///
    /// # Errors
    /// Returns an error if the later part has another start of trace or other options, begins too early, or was created
    /// without all requests in flight.
    pub fn merge(&mut self, later: Part) -> Result<(), TraceError> {
        let Part(later) = later;
        if later.options != self.options {
            return Err(refused("a part was analysed with different options"));
        }
        if later.mix.total().requests == 0 {
            return Ok(());
        }
        if self.start_ns.is_some_and(|start_ns| later.start_ns != Some(start_ns)) {
            return Err(refused("a part belongs to a trace with a different start time"));
        }
        if later.arrivals.first_ns() < Some(self.last_ns) {
            return Err(refused("a part begins before the end of the previous part"));
        }
        self.start_ns = later.start_ns;
        self.last_ns = later.last_ns;
        self.out_of_order += later.out_of_order;
        self.mix.merge(&later.mix);
        self.flags.merge(&later.flags);
        self.sizes.merge(&later.sizes);
        self.alignment.merge(&later.alignment);
        self.range.merge(later.range);
        self.arrivals.merge(later.arrivals);
        if !self.flights.merge(later.flights, &mut self.series) {
            return Err(refused("a part was started without all requests in flight before it"));
        }
        self.series.merge(later.series);
        self.timeline = replace(&mut self.timeline, Timeline::new(None)).merge(later.timeline);
        self.latencies = take(&mut self.latencies).merge(later.latencies);
        self.phases = take(&mut self.phases).merge(later.phases);
        self.spread.merge(later.spread);
        self.other_devices.merge(&later.other_devices);
        self.other_processes.merge(&later.other_processes);
        self.merge_devices(later.devices);
        self.processes.resize(self.processes.len().max(later.processes.len()), Default::default());
        self.processes.iter_mut().zip(&later.processes).for_each(|(process, later)| process.merge(later));
        if let (Some(heat), Some(later)) = (&mut self.heat, later.heat) {
            heat.merge(later);
        }
        let (blocks, reuse) = (self.blocks.as_mut().zip(later.blocks), self.reuse.as_mut().zip(later.reuse));
        rayon::join(
            || blocks.into_iter().for_each(|(blocks, later)| blocks.merge(later)),
            || reuse.into_iter().for_each(|(reuse, later)| reuse.merge(later)),
        );
        Ok(())
    }

    fn merge_devices(&mut self, later: Vec<Device>) {
        if self.devices.len() < later.len() {
            self.devices.resize_with(later.len(), || Device::new(false));
        }
        for (device, later) in self.devices.iter_mut().zip(later) {
            device.mix.merge(&later.mix);
            device.range.merge(later.range);
            device.responses += later.responses;
            device.response_ns += later.response_ns;
            device.sequence.merge(later.sequence, &mut self.sizes, &mut self.spread);
        }
    }
}

fn refused(message: &str) -> TraceError {
    TraceError::of_file("analysis", message)
}
