//! What the way to the clock and back costs, measured when a server starts: that much is no drive's latency.

use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Instant;

use headstack_workload::Span;

use crate::LiveError;
use crate::contents::Contents;
use crate::device::Export;
use crate::nbd::client::Client;
use crate::nbd::wire::{Header, command};
use crate::nbd::{Security, Stream, serve};
use crate::pacer::{Session, SessionOptions};
use crate::timeline::{Constant, Model};

/// What the device of the probe takes: a drive's order of magnitude, so that the clock has to sleep.
const PROBE_NS: u64 = 1_000_000;
const PROBES: usize = 100;
/// The first few wake caches and threads.
const WARM_UP: usize = 10;
const BLOCK_BYTES: u32 = 4096;

/// Median of what a read of 4 KiB takes over a unix socket beside what the model says, in nanoseconds of the wall.
///
/// # Errors
/// A machine that has no sockets or threads.
pub fn measure_nbd(realtime: bool) -> Result<u64, LiveError> {
    let capacity_bytes = 1 << 20;
    let model = Model::Constant(Constant { latency_ns: PROBE_NS, capacity_bytes });
    let options = SessionOptions { realtime, ..SessionOptions::default() };
    let session = Session::start(&model, options, None)?;
    let export = Export {
        name: "floor".to_owned(),
        description: String::new(),
        span: Span { start_bytes: 0, length_bytes: capacity_bytes },
        block_bytes: 512,
        is_rotational: false,
    };
    let contents = Contents::in_memory(capacity_bytes)?;
    let device = session.device(vec![export], contents);
    let (ours, theirs) = UnixStream::pair().map_err(LiveError::io("a socket pair"))?;
    let server = thread::spawn(move || serve(&device, &Stream::socket_of(theirs), Security::None, |_| {}));
    let latencies = probe(Stream::socket_of(ours));
    // It ends with its client; how is in the probe's own result.
    let _ = server.join();
    session.stop();
    let mut latencies = latencies.map_err(LiveError::io("the probe of the floor"))?;
    latencies.sort_unstable();
    Ok(latencies[latencies.len() / 2].saturating_sub(PROBE_NS))
}

fn probe(stream: Stream) -> std::io::Result<Vec<u64>> {
    let mut client = Client::connect(stream, "")?;
    let mut data = vec![0; BLOCK_BYTES as usize];
    let mut latencies = Vec::with_capacity(PROBES);
    for number in 0..WARM_UP + PROBES {
        let cookie = number as u64;
        let header = Header { flags: 0, command: command::READ, cookie, offset_bytes: 0, length_bytes: BLOCK_BYTES };
        let begun = Instant::now();
        client.send(&header, &[])?;
        client.receive(|_| &mut data)?;
        if number >= WARM_UP {
            latencies.push(begun.elapsed().as_nanos() as u64);
        }
    }
    let goodbye = Header { flags: 0, command: command::DISC, cookie: 0, offset_bytes: 0, length_bytes: 0 };
    client.send(&goodbye, &[])?;
    Ok(latencies)
}
