//! Measures the overhead of the path to the clock and back when a server starts, since this part of a latency is not
//! the drive's.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Instant;

use headstack_nbd::{Header, command};
use headstack_sim::{Constant, Model};
use headstack_workload::Span;

use crate::LiveError;
use crate::contents::Contents;
use crate::device::{Device, Export};
use crate::fuse::Mount;
use crate::nbd::client::Client;
use crate::nbd::{Security, serve};
use crate::pacer::{Session, SessionOptions};
use crate::stream::Stream;
use crate::ublk::BlockDevices;

/// Maximum duration of a probe, in ns, for any device.
const PROBED_FOR_NS: u64 = 250_000_000;
const PROBES_MAX: usize = 100;
/// Number of initial requests that are ignored because they warm up caches and threads.
const WARM_UP: usize = 4;
const BLOCK_BYTES: u32 = 4096;

/// Measures the time of a 4 KiB read over a unix socket in excess of the model, in ns of wall-clock time: the 10 %
/// quantile of many reads from a device with a service time of `service_ns`. A thread that sleeps longer takes longer
/// to wake, most of all on a halted virtual processor, so the result applies only to devices of about this speed.
///
/// # Errors
/// Returns an error if no socket or thread can be created.
pub fn measure_nbd(realtime: bool, service_ns: u64) -> Result<u64, LiveError> {
    let (session, device) = probed(realtime, service_ns)?;
    let (ours, theirs) = UnixStream::pair().map_err(LiveError::io("a socket pair"))?;
    let server = thread::spawn(move || serve(&device, &Stream::socket_of(theirs), &Security::None));
    let latencies = probe(Stream::socket_of(ours), probes_of(service_ns));
    // The thread ends with its client; errors show in the probe's own result.
    let _ = server.join();
    session.stop();
    floor_of(latencies, service_ns)
}

/// Measures the overhead for a file of a FUSE mount. A loop device adds its own overhead.
///
/// # Errors
/// Returns an error if this user may not mount.
pub fn measure_fuse(realtime: bool, service_ns: u64) -> Result<u64, LiveError> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let directory = std::env::temp_dir().join(format!("headstack-floor-{}-{number}", std::process::id()));
    let (session, device) = probed(realtime, service_ns)?;
    let latencies = Mount::start(&device, &directory).and_then(|mount| {
        let latencies = probe_file(&mount.files()[0], probes_of(service_ns));
        mount.stop()?;
        Ok(latencies)
    });
    session.stop();
    floor_of(latencies?, service_ns)
}

/// Measures the overhead for a ublk device.
///
/// # Errors
/// Returns an error if the machine has no ublk.
pub fn measure_ublk(realtime: bool, service_ns: u64) -> Result<u64, LiveError> {
    let (session, device) = probed(realtime, service_ns)?;
    let latencies = BlockDevices::start(&device).and_then(|devices| {
        let latencies = probe_file(&devices.paths()[0], probes_of(service_ns));
        devices.stop()?;
        Ok(latencies)
    });
    session.stop();
    floor_of(latencies?, service_ns)
}

/// Creates a device with a constant service time.
fn probed(realtime: bool, service_ns: u64) -> Result<(Session, Arc<Device>), LiveError> {
    let capacity_bytes = 1 << 20;
    let model = Model::Constant(Constant { latency_ns: service_ns, capacity_bytes });
    let options = SessionOptions { realtime, ..SessionOptions::default() };
    let export = Export {
        name: "floor".to_owned(),
        description: String::new(),
        span: Span { start_bytes: 0, length_bytes: capacity_bytes },
        block_bytes: 512,
        is_rotational: false,
    };
    let contents = Contents::in_memory(capacity_bytes)?;
    let session = Session::start(&model, options, None)?;
    let device = Device::of(&session, vec![export], contents);
    Ok((session, device))
}

fn floor_of(latencies: std::io::Result<Vec<u64>>, service_ns: u64) -> Result<u64, LiveError> {
    let mut latencies = latencies.map_err(LiveError::io("the probe of the floor"))?;
    latencies.sort_unstable();
    // Slower reads also waited for a processor, as most reads do on a busy machine.
    Ok(latencies[latencies.len() / 10].saturating_sub(service_ns))
}

fn probes_of(service_ns: u64) -> usize {
    (PROBED_FOR_NS / service_ns.max(1)).clamp(9, PROBES_MAX as u64) as usize
}

fn probe(stream: Stream, probes: usize) -> std::io::Result<Vec<u64>> {
    let mut client = Client::connect(stream, "")?;
    let mut data = vec![0; BLOCK_BYTES as usize];
    let mut latencies = Vec::with_capacity(probes);
    for number in 0..WARM_UP + probes {
        let cookie = number as u64;
        let header =
            Header { flags: 0, command: command::READ, cookie, offset_bytes: 0, length_bytes: BLOCK_BYTES.into() };
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

fn probe_file(path: &Path, probes: usize) -> std::io::Result<Vec<u64>> {
    let direct = rustix::fs::OFlags::DIRECT.bits() as i32;
    let file: File = OpenOptions::new().read(true).custom_flags(direct).open(path)?;
    // Direct I/O requires whole pages.
    let block = BLOCK_BYTES as usize;
    let mut pages = vec![0; 2 * block];
    let start = pages.as_ptr().align_offset(block);
    let data = &mut pages[start..start + block];
    let mut latencies = Vec::with_capacity(probes);
    for number in 0..WARM_UP + probes {
        let begun = Instant::now();
        file.read_exact_at(data, 0)?;
        if number >= WARM_UP {
            latencies.push(begun.elapsed().as_nanos() as u64);
        }
    }
    Ok(latencies)
}
