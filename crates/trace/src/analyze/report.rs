//! [`Report`]: the JSON report of an analysis.

use std::collections::BTreeMap;

use headstack_workload::quantity::counted;
use serde::Serialize;

use super::environment::{AnalysisResults, EnvironmentReport};
use super::mix::Mix;
use super::{
    AlignmentReport, Amount, Analysis, ArrivalReport, DEVICES_MAX, DepthReport, Device, HeatReport, LatencyReport,
    PROCESSES_MAX, PhasesReport, RateReport, ResponseReport, ReuseReport, Sequence, SequenceReport, SizesReport,
    TimelineReport, WorkingSetReport,
};
use crate::meta::{AddressSpace, Clock, Meta};
use crate::record::Operation;

const NS_PER_S: f64 = 1e9;

/// Figures of one device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeviceReport {
    /// Name of the device in the trace.
    pub name: String,
    /// Requests by operation.
    pub operations: BTreeMap<&'static str, Amount>,
    /// First byte touched by a transfer; null if there are no transfers.
    pub lowest_bytes: Option<u64>,
    /// End of the highest range touched by a transfer.
    pub highest_end_bytes: Option<u64>,
    /// Mean latency, in ns; null if none is recorded.
    pub mean_latency_ns: Option<f64>,
    /// Mean queue depth between the first and last arrival of the trace, by Little's law; null if no latency is
    /// recorded.
    pub mean_depth: Option<f64>,
    /// Sequentiality of the device's requests.
    pub sequence: SequenceReport,
}

/// Figures of one process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProcessReport {
    /// Process ID.
    pub pid: u32,
    /// Name; empty if the trace has none.
    pub name: String,
    /// Requests by operation.
    pub operations: BTreeMap<&'static str, Amount>,
}

/// Report on a trace. Null means not recorded; shares are from 0 to 1.
///
/// "Transfers" are reads, writes and requests with an unknown operation. Only transfers have an address, so only they
/// count for alignment, addresses, sequences, blocks and reuse.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Number of requests.
    pub requests: u64,
    /// Total length of the requests.
    pub bytes: u64,
    /// First arrival on the trace's clock, in ns; null if there are no requests.
    pub first_arrival_ns: Option<u64>,
    /// Time from the first to the last arrival, in ns.
    pub duration_ns: u64,
    /// Arrivals per second: number of gaps divided by the duration; null if the duration is 0.
    pub requests_per_s: Option<f64>,
    /// Bytes per second over the duration.
    pub bytes_per_s: Option<f64>,
    /// Resolution of the clock, in ns; null if unknown.
    pub resolution_ns: Option<u64>,
    /// Requests by operation.
    pub operations: BTreeMap<&'static str, Amount>,
    /// Requests by flag.
    pub flags: BTreeMap<&'static str, u64>,
    /// Lengths of requests.
    pub sizes: SizesReport,
    /// Alignment of transfers.
    pub alignment: AlignmentReport,
    /// First byte touched by a transfer on any device; null if there are no transfers.
    pub lowest_bytes: Option<u64>,
    /// End of the highest range touched by a transfer on any device.
    pub highest_end_bytes: Option<u64>,
    /// Arrival process.
    pub arrivals: ArrivalReport,
    /// Rates over time.
    pub rate: RateReport,
    /// Rates, latency, phases, working set and reuse over time.
    pub timeline: TimelineReport,
    /// Sequentiality of transfers, per device.
    pub sequence: SequenceReport,
    /// Touched blocks; null if not requested.
    pub working_set: Option<WorkingSetReport>,
    /// Reuse of blocks; null if not requested.
    pub reuse: Option<ReuseReport>,
    /// Latency of requests.
    pub response: ResponseReport,
    /// Distribution of latency, and latency by size, device and process; null if none is recorded.
    pub latency: Option<LatencyReport>,
    /// Times per phase; null if the trace does not record when the device received requests.
    pub phases: Option<PhasesReport>,
    /// Queue depth; null if no latency is recorded.
    pub depth: Option<DepthReport>,
    /// Map of accesses by address and time; null if not requested.
    pub heat: Option<HeatReport>,
    /// The trace summarized as an access specification.
    pub environment: EnvironmentReport,
    /// Figures of the first 131,072 devices that have requests.
    pub devices: Vec<DeviceReport>,
    /// Requests to all other devices, without sequences.
    pub other_devices: Amount,
    /// Figures of the first 1,024 processes that have requests.
    pub processes: Vec<ProcessReport>,
    /// Requests of all other processes.
    pub other_processes: Amount,
    /// Notes on the limits of these figures.
    pub notes: Vec<String>,
}

pub(super) fn report(mut analysis: Analysis, meta: &Meta) -> Report {
    let mut notes = Vec::new();
    let is_timed = meta.clock != Clock::Order;
    let has_runs = meta.address_space.has_runs();
    let has_distances = meta.address_space.has_distances();
    let duration_ns = if is_timed { analysis.last_ns } else { 0 };
    let devices = devices(&mut analysis.devices, meta, duration_ns);
    let sequence =
        Sequence::together(analysis.devices.iter().map(|device| &device.sequence)).within(meta.address_space);
    let resolution_ns = meta.resolution_ns;
    let total = analysis.mix.total();
    let arrivals = if is_timed { analysis.arrivals.finish(resolution_ns) } else { ArrivalReport::default() };
    let (response, depth) = analysis.flights.finish();
    let per_s = |count: f64| (duration_ns > 0).then(|| count * NS_PER_S / duration_ns as f64);
    let requests_per_s = per_s(total.requests.saturating_sub(1) as f64);
    let alignment = if has_runs { analysis.alignment.report() } else { AlignmentReport::default() };
    let touched = has_distances && analysis.range.highest_end_bytes > 0;

    if analysis.out_of_order > 0 {
        let count = analysis.out_of_order;
        notes.push(format!("arrivals before the previous request, moved to its time: {}", counted(count, "request")));
    }
    if arrivals.mean_gap_ns.is_some() && arrivals.gap_variation.is_none() {
        notes.push(
            "gaps between arrivals are below the clock's resolution, so their variation is not reported".to_owned(),
        );
    }
    if !is_timed {
        notes.push("times are not recorded, so rates, gaps and changes over time are not reported".to_owned());
    }
    match meta.address_space {
        AddressSpace::Device => {}
        AddressSpace::File => notes.push("offsets are within files, so seeks and ranges are not reported".to_owned()),
        AddressSpace::Object => {
            notes.push("requests name objects, so runs, seeks, alignment and ranges are not reported".to_owned());
        }
    }
    let mean_latency_ns = response.all_ns.as_ref().map(|all| all.mean);
    if mean_latency_ns.is_some_and(|mean| is_timed && mean < resolution_ns as f64) {
        notes.push(
            "the clock's resolution is coarser than the mean response, so queue depths are per clock step".to_owned(),
        );
    }
    if response.recorded > 0 && response.recorded < total.requests {
        let lacking = total.requests - response.recorded;
        notes.push(format!(
            "{} without a response time, so the queue depth is a lower bound",
            counted(lacking, "request")
        ));
    }
    if analysis.other_devices.total().requests > 0 {
        notes.push(format!("sequences are detected only on the first {DEVICES_MAX} devices"));
    }
    if analysis.other_processes.total().requests > 0 {
        notes.push(format!("processes after the first {PROCESSES_MAX} are counted together"));
    }
    let mut working_set = analysis.blocks.map(|blocks| blocks.finish(duration_ns));
    if let Some(set) = working_set.as_mut().filter(|_| !is_timed) {
        set.growth.clear();
        set.windows.clear();
        set.reuse_times_ns.clear();
        set.update_times_ns.clear();
    }
    if let Some(set) = working_set.as_ref().filter(|set| set.sampled_rate < 1.0) {
        notes.push(format!(
            "working set: estimated from a fraction {} of the blocks, since all blocks do not fit in memory",
            set.sampled_rate
        ));
    }
    let environment = AnalysisResults {
        name: name(meta),
        sizes: analysis.sizes.sorted(),
        spread: &analysis.spread,
        span_bytes: analysis.range.highest_end_bytes,
        align_bytes: alignment.common_bytes.filter(|bytes| (512..=1 << 20).contains(bytes)),
        mean_run_requests: sequence.streams.mean_requests,
        concurrent_streams: sequence.mean_concurrent_streams,
        depth: depth.as_ref().map(|depth| depth.mean),
        requests_per_s,
        gap_variation: arrivals.gap_variation,
        flushes: analysis.mix.of(Operation::Flush).requests,
        has_runs,
        has_distances,
    }
    .report(&mut notes);

    let mut rate = analysis.series.finish(resolution_ns, duration_ns);
    let mut timeline = analysis.timeline.finish(analysis.start_ns.unwrap_or(0), duration_ns, resolution_ns);
    if !is_timed {
        rate.bins.clear();
        timeline.bins.clear();
    }

    Report {
        requests: total.requests,
        bytes: total.bytes,
        first_arrival_ns: analysis.start_ns.filter(|_| is_timed),
        duration_ns,
        requests_per_s,
        bytes_per_s: per_s(total.bytes as f64),
        resolution_ns: (is_timed && resolution_ns > 0).then_some(resolution_ns),
        operations: analysis.mix.report(),
        flags: analysis.flags.report(),
        sizes: analysis.sizes.report(),
        alignment,
        lowest_bytes: touched.then_some(analysis.range.lowest_bytes),
        highest_end_bytes: touched.then_some(analysis.range.highest_end_bytes),
        arrivals,
        rate,
        timeline,
        sequence,
        working_set,
        reuse: analysis.reuse.map(super::Reuse::finish),
        response,
        latency: analysis.latencies.finish(meta),
        phases: analysis.phases.finish(),
        depth,
        heat: analysis.heat.filter(|_| is_timed && has_distances).map(super::Heat::finish),
        environment,
        devices,
        other_devices: analysis.other_devices.total(),
        processes: processes(&analysis.processes, meta),
        other_processes: analysis.other_processes.total(),
        notes,
    }
}

fn name(meta: &Meta) -> String {
    let file = meta.origin.first().map_or("trace", |origin| origin.file.as_str());
    let stem = file.split('.').next().unwrap_or(file);
    if stem.is_empty() { "trace".to_owned() } else { stem.to_owned() }
}

fn devices(devices: &mut [Device], meta: &Meta, duration_ns: u64) -> Vec<DeviceReport> {
    let report = |(index, device): (usize, &mut Device)| {
        let sequence = device.sequence.finish().within(meta.address_space);
        let (range, responses) = (device.range, device.responses);
        let touched = meta.address_space.has_distances() && range.lowest_bytes < u64::MAX;
        (device.mix.total().requests > 0).then(|| DeviceReport {
            name: meta.devices.get(index).map_or_else(|| index.to_string(), |device| device.name.clone()),
            operations: device.mix.report(),
            lowest_bytes: touched.then_some(range.lowest_bytes),
            highest_end_bytes: touched.then_some(range.highest_end_bytes),
            mean_latency_ns: (responses > 0).then(|| device.response_ns as f64 / responses as f64),
            mean_depth: (responses > 0 && duration_ns > 0).then(|| device.response_ns as f64 / duration_ns as f64),
            sequence,
        })
    };
    devices.iter_mut().enumerate().filter_map(report).collect()
}

fn processes(processes: &[Mix], meta: &Meta) -> Vec<ProcessReport> {
    let report = |(index, mix): (usize, &Mix)| {
        let process = meta.processes.get(index);
        ProcessReport {
            pid: process.map_or(0, |process| process.pid),
            name: process.map_or_else(String::new, |process| process.name.clone()),
            operations: mix.report(),
        }
    };
    processes.iter().enumerate().filter(|(_, mix)| mix.total().requests > 0).map(report).collect()
}
