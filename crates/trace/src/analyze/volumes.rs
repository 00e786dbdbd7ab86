//! [`Volumes`]: figures for choosing volumes of a trace, collected for any number of devices in one pass.

use serde::Serialize;

use super::sample::Sample;
use super::table::{Table, place};
use crate::meta::{Clock, Meta};
use crate::record::{Operation, Record};
use crate::summary::Counts;

const S: u64 = 1_000_000_000;
/// Block size for footprints, in bytes.
const BLOCK_BYTES: u64 = 4_096;
/// Window for the working set: 10 minutes, long enough for a cache to warm up.
const WINDOW_NS: u64 = 600 * S;
/// Memory limit for the block table; above it, half of the blocks represent all.
const MEMORY_BYTES: u64 = 256 << 20;

/// Figures of one device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VolumeReport {
    /// Name of the device in the trace.
    pub volume: String,
    /// Number of requests.
    pub requests: u64,
    /// Number of reads.
    pub reads: u64,
    /// Number of writes.
    pub writes: u64,
    /// Reads as a share of reads and writes; null if there are none.
    pub read_share: Option<f64>,
    /// Total length of the requests.
    pub bytes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Total size of the 4 KiB blocks touched by reads and writes, in bytes; an estimate if `sampled_rate` is below 1.
    pub footprint_bytes: f64,
    /// Total size of the blocks touched in 10 minutes, in bytes, averaged over the trace; null if times are not
    /// recorded.
    pub working_set_bytes: Option<f64>,
    /// End of the highest touched range, in bytes; null if offsets are not device offsets.
    pub end_bytes: Option<u64>,
    /// Requests per second over the duration of the trace; null if the duration is 0.
    pub requests_per_s: Option<f64>,
    /// Maximum number of requests in one second of the trace's clock; null if times are not recorded.
    pub busiest_per_s: Option<u64>,
    /// Mean latency, in ns; null if none is recorded.
    pub mean_latency_ns: Option<f64>,
    /// Share of blocks still sampled at the end.
    pub sampled_rate: f64,
}

#[derive(Default)]
struct Volume {
    counts: Counts,
    second: u64,
    in_second: u64,
    busiest: u64,
    /// Number of sampled blocks touched for the first time, and for the first time in their window.
    touched: f64,
    in_windows: f64,
}

#[derive(Clone, Copy, Default)]
struct Block {
    device: u32,
    window: u32,
}

/// Counts requests by device.
pub struct Volumes {
    volumes: Vec<Volume>,
    blocks: Table<Block>,
    blocks_max: usize,
    sample: Sample,
    first_ns: Option<u64>,
    last_ns: u64,
}

impl Default for Volumes {
    fn default() -> Volumes {
        Volumes::within(MEMORY_BYTES)
    }
}

impl Volumes {
    fn within(memory_bytes: u64) -> Volumes {
        let blocks_max = Table::<Block>::blocks_within(memory_bytes);
        let (volumes, blocks, sample) = (Vec::new(), Table::new(), Sample::all(0));
        Volumes { volumes, blocks, blocks_max, sample, first_ns: None, last_ns: 0 }
    }

    /// Adds the next requests, in order of arrival.
    pub fn add(&mut self, records: &[Record]) {
        records.iter().for_each(|record| self.add_one(record));
    }

    fn add_one(&mut self, record: &Record) {
        let index = record.device as usize;
        if index >= self.volumes.len() {
            self.volumes.resize_with(index + 1, Volume::default);
        }
        let first_ns = *self.first_ns.get_or_insert(record.arrival_ns);
        self.last_ns = record.arrival_ns;
        let volume = &mut self.volumes[index];
        volume.counts.add(record);
        let second = record.arrival_ns / S;
        if second != volume.second {
            (volume.second, volume.in_second) = (second, 0);
        }
        volume.in_second += 1;
        volume.busiest = volume.busiest.max(volume.in_second);
        if matches!(record.operation, Operation::Read | Operation::Write | Operation::Unknown)
            && record.length_bytes > 0
        {
            let window = 1 + ((record.arrival_ns - first_ns) / WINDOW_NS) as u32;
            let blocks = record.offset_bytes / BLOCK_BYTES..(record.end_bytes() - 1) / BLOCK_BYTES + 1;
            blocks.for_each(|block| self.touch(record.device, block, window));
        }
    }

    fn touch(&mut self, device: u32, block: u64, window: u32) {
        let at = place(device, block);
        if !self.sample.takes(at) {
            return;
        }
        let volume = &mut self.volumes[device as usize];
        let (known, is_new) = self.blocks.entry(at);
        volume.touched += f64::from(u8::from(is_new));
        if known.window != window {
            volume.in_windows += 1.0;
        }
        *known = Block { device, window };
        if self.blocks.len() > self.blocks_max {
            self.halve();
        }
    }

    /// Halves the sample. The blocks in the table are recounted; counts of earlier windows are halved.
    #[cold]
    fn halve(&mut self) {
        self.sample.halve();
        let sample = self.sample;
        self.blocks.retain(|place| sample.takes(place));
        self.volumes.iter_mut().for_each(|volume| (volume.touched, volume.in_windows) = (0.0, volume.in_windows / 2.0));
        for (_, block) in self.blocks.iter() {
            self.volumes[block.device as usize].touched += 1.0;
        }
    }

    /// Returns the devices with requests, in the order of the trace's device list in `meta`.
    pub fn finish(&self, meta: &Meta) -> Vec<VolumeReport> {
        let is_timed = meta.clock != Clock::Order;
        let duration_ns = if is_timed { self.last_ns - self.first_ns.unwrap_or(self.last_ns) } else { 0 };
        let windows = (duration_ns / WINDOW_NS + 1) as f64;
        let bytes = |blocks: f64| blocks / self.sample.rate() * BLOCK_BYTES as f64;
        let over = |part: f64, all: u64| (all > 0).then(|| part / all as f64);
        let report = |(volume, device): (&Volume, &crate::DeviceMeta)| {
            let counts = &volume.counts;
            let of = |all: &[u64; 6], operation: Operation| all[operation as usize];
            let requests = counts.requests.iter().sum();
            let (reads, writes) = (of(&counts.requests, Operation::Read), of(&counts.requests, Operation::Write));
            (requests > 0).then(|| VolumeReport {
                volume: device.name.clone(),
                requests,
                reads,
                writes,
                read_share: over(reads as f64, reads + writes),
                bytes: counts.bytes.iter().sum(),
                read_bytes: of(&counts.bytes, Operation::Read),
                written_bytes: of(&counts.bytes, Operation::Write),
                footprint_bytes: bytes(volume.touched),
                working_set_bytes: is_timed.then(|| bytes(volume.in_windows) / windows),
                end_bytes: meta.address_space.has_distances().then_some(counts.highest_end_byte),
                requests_per_s: over(requests as f64 * S as f64, duration_ns),
                busiest_per_s: is_timed.then_some(volume.busiest),
                mean_latency_ns: over(counts.response_sum_ns as f64, counts.responses),
                sampled_rate: self.sample.rate(),
            })
        };
        self.volumes.iter().zip(&meta.devices).filter_map(report).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DeviceMeta;

    fn meta(devices: u32) -> Meta {
        let device = |index| DeviceMeta { name: format!("v{index}"), ..DeviceMeta::default() };
        Meta { devices: (0..devices).map(device).collect(), ..Meta::default() }
    }

    fn request(at_s: u64, device: u32, operation: Operation, block: u64, blocks: u32) -> Record {
        let length = blocks * BLOCK_BYTES as u32;
        Record { device, ..Record::new((1_000 + at_s) * S, operation, block * BLOCK_BYTES, length) }
    }

    #[test]
    fn volumes_are_counted_by_hand() {
        let mut volumes = Volumes::default();
        volumes.add(&[
            request(0, 0, Operation::Read, 0, 2),
            request(0, 0, Operation::Write, 1, 1),
            request(0, 2, Operation::Flush, 0, 0),
            request(700, 0, Operation::Read, 0, 4),
            request(1_500, 2, Operation::Write, 9, 1),
        ]);
        let found = volumes.finish(&meta(3));
        let names: Vec<_> = found.iter().map(|volume| (volume.volume.as_str(), volume.requests)).collect();
        assert_eq!(names, [("v0", 3), ("v2", 2)]);
        let first = &found[0];
        assert_eq!((first.reads, first.writes, first.read_share), (2, 1, Some(2.0 / 3.0)));
        assert_eq!((first.bytes, first.read_bytes, first.written_bytes), (7 * 4_096, 6 * 4_096, 4_096));
        // Four blocks in total: two in the first ten minutes, four in the second, none in the third.
        assert_eq!((first.footprint_bytes, first.working_set_bytes), (4.0 * 4_096.0, Some(2.0 * 4_096.0)));
        assert_eq!((first.busiest_per_s, first.end_bytes), (Some(2), Some(4 * 4_096)));
        assert_eq!(first.requests_per_s, Some(3.0 / 1_500.0));
        assert_eq!((found[1].footprint_bytes, found[1].mean_latency_ns), (4_096.0, None));
    }

    #[test]
    fn footprints_above_the_memory_limit_are_marked_as_estimates() {
        let mut volumes = Volumes::within(100_000);
        let records: Vec<Record> = (0..60_000).map(|i| request(0, (i % 2) as u32, Operation::Read, i * 7, 1)).collect();
        volumes.add(&records);
        for volume in volumes.finish(&meta(2)) {
            assert!(volume.sampled_rate < 0.5);
            assert!((volume.footprint_bytes / BLOCK_BYTES as f64 / 30_000.0 - 1.0).abs() < 0.1, "{volume:?}");
        }
    }
}
