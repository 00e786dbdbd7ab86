//! Recordings of a known shape, made here: what traces are read, imported and analysed by needs no file of anybody's.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use headstack_trace::{Operation, Record};

/// Bytes of a block of all of them.
pub const BLOCK_BYTES: u32 = 4_096;

/// Knuth's generator of MMIX, by its upper half: only the shape of the recordings matters.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 32
    }

    fn below(&mut self, end: u64) -> u64 {
        (self.next() * end) >> 32
    }

    /// From 0, below 1.
    fn unit(&mut self) -> f64 {
        self.next() as f64 / 4_294_967_296.0
    }

    /// One of so many blocks, the n-th most popular with a chance in proportion to 1/n, scattered.
    fn popular(&mut self, blocks: u64) -> u64 {
        let rank = (blocks as f64).powf(self.unit()) as u64;
        rank.wrapping_mul(0x9e37_79b9_7f4a_7c15) % blocks
    }
}

/// Requests of one block at places of very different popularity.
pub fn popular_blocks(requests: usize, blocks: u64) -> Vec<Record> {
    let mut random = Random(1);
    let mut record = |number: usize| {
        let offset_bytes = random.popular(blocks) * u64::from(BLOCK_BYTES);
        Record::new(number as u64 * 1_000, Operation::Read, offset_bytes, BLOCK_BYTES)
    };
    (0..requests).map(&mut record).collect()
}

/// Requests of one block, in batches, at random places of 4 TB, so that hardly any block comes twice; with response times.
pub fn scattered(requests: u64) -> impl Iterator<Item = Vec<Record>> {
    const BATCH: u64 = 10_000;
    let mut random = Random(1);
    let mut record = move |number: u64| {
        let operation = if random.below(2) == 0 { Operation::Read } else { Operation::Write };
        let offset_bytes = random.below(1 << 30) * u64::from(BLOCK_BYTES);
        let response_ns = 50_000 + random.below(16_384);
        Record { response_ns, ..Record::new(number * 10_000, operation, offset_bytes, BLOCK_BYTES) }
    };
    (0..requests).step_by(BATCH as usize).map(move |first| {
        let end = requests.min(first + BATCH);
        (first..end).map(&mut record).collect()
    })
}

/// Writes rows of MSR Cambridge's shape: one host with three disks, stamps of 18 digits, offsets of up to 13 GB of which
/// three in ten continue the request before, response times of some digits.
///
/// # Errors
/// What the disk says.
pub fn write_msr(path: &Path, rows: u64) -> io::Result<()> {
    const FIRST_TICKS: u64 = 128_166_372_003_061_629;
    const SIZES: [u32; 8] = [4_096, 4_096, 4_096, 8_192, 16_384, 32_768, 512, 65_536];
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
    let (mut random, mut ticks, mut end_bytes) = (Random(1), FIRST_TICKS, 0);
    for _ in 0..rows {
        // Exponential, with a mean of 2 ms.
        ticks += (-20_000.0 * (1.0 - random.unit()).ln()) as u64;
        let disk = [0, 0, 0, 0, 1, 2][random.below(6) as usize];
        let kind = if random.below(10) < 6 { "Read" } else { "Write" };
        let offset = if random.below(10) < 3 { end_bytes } else { random.below(13_000_000_000 / 512) * 512 };
        let size = SIZES[random.below(8) as usize];
        // From 55 us to 0.4 s, as many in each octave.
        let response = (550.0 * 8_192f64.powf(random.unit())) as u64;
        writeln!(out, "{ticks},hm,{disk},{kind},{offset},{size},{response}")?;
        end_bytes = offset + u64::from(size);
    }
    out.flush()
}

/// Events of a request in [`block_trace`].
pub const EVENTS_A_REQUEST: u64 = 6;

/// What happens to a request, in order, with the event's number and category bit in `blktrace_api.h`, and how long after
/// its queueing at the least; completion is the last.
const EVENTS: [(u32, u32, u64); EVENTS_A_REQUEST as usize] = [
    (1, 1 << 4, 0),      // queued
    (4, 1 << 4, 300),    // given a request
    (9, 1 << 4, 500),    // plugged
    (10, 1 << 4, 900),   // unplugged
    (7, 1 << 6, 1_300),  // issued
    (8, 1 << 7, 20_000), // completed
];
const UNPLUG: u32 = 10;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Coming {
    at_ns: u64,
    number: u64,
    event: usize,
    sector: u64,
    bytes: u32,
    is_write: bool,
}

/// Linux' block trace, version 7, of a closed loop: 32 requests at a time, six events each, popular blocks, so that equal
/// requests are under way at once.
pub fn block_trace(requests: u64) -> Vec<u8> {
    const DEPTH: u64 = 32;
    const BLOCKS: u64 = 1 << 19;
    let mut random = Random(1);
    let mut coming = BinaryHeap::new();
    let (mut trace, mut begun) = (Vec::with_capacity(requests as usize * 300), 0);
    let mut begin = |queued_ns: u64, coming: &mut BinaryHeap<Reverse<Coming>>| {
        if begun == requests {
            return;
        }
        let (sector, is_write) = (random.popular(BLOCKS) * u64::from(BLOCK_BYTES / 512), random.below(10) < 3);
        let bytes = BLOCK_BYTES << [0, 0, 0, 0, 0, 0, 1, 1, 2, 4][random.below(10) as usize];
        let service_ns = random.below(400_000);
        for (event, &(_, _, after_ns)) in EVENTS.iter().enumerate() {
            let is_last = event + 1 == EVENTS.len();
            let at_ns = queued_ns + after_ns + if is_last { service_ns } else { 0 };
            coming.push(Reverse(Coming { at_ns, number: begun, event, sector, bytes, is_write }));
        }
        begun += 1;
    };
    (0..DEPTH).for_each(|slot| begin(slot * 1_000, &mut coming));
    let mut sequence = 0;
    while let Some(Reverse(now)) = coming.pop() {
        sequence += 1;
        encode(&mut trace, sequence, &now);
        if now.event + 1 == EVENTS.len() {
            begin(now.at_ns + 2_000, &mut coming);
        }
    }
    trace
}

/// A record: 48 bytes and, of an unplug, how many requests were held back, in network order.
fn encode(trace: &mut Vec<u8>, sequence: u32, now: &Coming) {
    const MAGIC: u32 = 0x6561_7407;
    const DEVICE: u32 = 7 << 20;
    const PID: u32 = 1_234;
    let (event, category, _) = EVENTS[now.event];
    let direction = if now.is_write { 1 << 1 } else { 1 };
    let (sector, bytes) = if event == 9 || event == UNPLUG { (0, 0) } else { (now.sector, now.bytes) };
    let more: &[u8] = if event == UNPLUG { &1u64.to_be_bytes() } else { &[] };
    trace.extend_from_slice(&MAGIC.to_le_bytes());
    trace.extend_from_slice(&sequence.to_le_bytes());
    trace.extend_from_slice(&now.at_ns.to_le_bytes());
    trace.extend_from_slice(&sector.to_le_bytes());
    trace.extend_from_slice(&bytes.to_le_bytes());
    trace.extend_from_slice(&(event | (direction | category) << 16).to_le_bytes());
    trace.extend_from_slice(&PID.to_le_bytes());
    trace.extend_from_slice(&DEVICE.to_le_bytes());
    // All on CPU 0, without error.
    trace.extend_from_slice(&0u32.to_le_bytes());
    trace.extend_from_slice(&0u16.to_le_bytes());
    trace.extend_from_slice(&(more.len() as u16).to_le_bytes());
    trace.extend_from_slice(more);
}
