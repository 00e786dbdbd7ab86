//! Synthetic traces: different requests at different addresses and times that load a system like the original trace
//! ([`synthesize`]). See docs/design/synthesis.md.
//!
//! Operations and sizes of requests, the reuse pattern, runs, and the tree of bursts within bursts are kept. The order
//! of bursts at every scale, the gaps within them, and the positions of pieces on the devices are random. One pass
//! learns and a second pass writes. Memory holds a window of requests per copy, and the touched extents.

mod bursts;
mod clients;
mod copies;
mod history;
mod places;
mod runs;
mod statistics;
#[cfg(test)]
mod tests;
mod think_times;
mod twin;

use std::path::Path;

use headstack_files::AtomicFile;
use serde::Serialize;

use clients::Clients;
use copies::Copies;
pub use history::Open;
use statistics::TraceStatistics;
use twin::{Output, Twin};

use crate::error::{Place, TraceError};
use crate::meta::Meta;
use crate::store::StoreWriter;
use crate::transform::strip_names;

/// Maximum number of copies of the footprint; each copy holds a window of requests.
const FOOTPRINT_MAX: f64 = 256.0;
/// Maximum duration of a trace, the same as for a replay: 73 years.
const LATEST_NS: u64 = 1 << 61;

/// Length of a synthetic trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Length {
    /// Length as a multiple of the original's number of requests.
    Times(f64),
    /// Number of requests.
    Requests(u64),
    /// Duration, in ns.
    Ns(u64),
}

/// Options of a synthetic trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Length of the trace.
    pub length: Length,
    /// Factor applied to the arrival rate. For a closed loop, clients and device become faster by this factor.
    pub rate: f64,
    /// Factor applied to the number of blocks touched per pass, at least 1. A cache that is larger by this factor has
    /// the same miss ratio.
    pub footprint: f64,
    /// Number of clients of a closed loop. Makes the synthetic trace a closed loop whether or not the original is.
    pub clients: Option<u32>,
    /// Seed of all random numbers.
    pub seed: u64,
}

impl Options {
    fn check(&self) -> Result<(), TraceError> {
        let refuse = |field, message| Err(refused(field, message));
        let is_positive = |value: f64| value > 0.0 && value.is_finite();
        match self.length {
            Length::Times(times) if !is_positive(times) => {
                return refuse("length", format!("must be above 0, not {times}x"));
            }
            Length::Requests(0) => return refuse("length", "must be at least 1 request, not 0".to_owned()),
            Length::Ns(0) => return refuse("length", "must be above 0 s".to_owned()),
            Length::Times(_) | Length::Requests(_) | Length::Ns(_) => {}
        }
        if !is_positive(self.rate) {
            return refuse("rate", format!("must be above 0, not {}", self.rate));
        }
        if !(1.0..=FOOTPRINT_MAX).contains(&self.footprint) {
            let message = format!("must be from 1 to {FOOTPRINT_MAX}, not {}", self.footprint);
            return refuse("footprint", message);
        }
        if self.clients == Some(0) {
            return refuse("clients", "must be at least 1, not 0".to_owned());
        }
        Ok(())
    }
}

fn refused(field: &'static str, message: String) -> TraceError {
    TraceError { file: "synthesis".to_owned(), place: Place::File, field, message }
}

/// Summary of the requests learned and written.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Synthesis {
    /// Number of requests in the original trace.
    pub learnt_requests: u64,
    /// Number of clients if the original is a closed loop; null if its requests arrive independently.
    pub learnt_clients: Option<u32>,
    /// Number of device pieces that were rearranged.
    pub pieces: u64,
    /// Number of clients if the synthetic trace is a closed loop; null if its requests arrive independently.
    pub clients: Option<u32>,
    /// Number of requests in the synthetic trace.
    pub requests: u64,
    /// Time from the first to the last arrival of the synthetic trace, in ns.
    pub duration_ns: u64,
    /// Metadata of the synthetic trace.
    pub meta: Meta,
}

/// Writes a synthetic version of the trace that `open` opens to `path`, in the stored form. `progress` receives the
/// number of requests read and written so far and returns whether to continue. No file remains unless the trace is
/// complete.
///
/// # Errors
/// Returns an error if an option is out of range or reading or writing fails, or a "stopped" error if `progress`
/// returns false.
pub fn synthesize(
    open: &Open,
    options: &Options,
    path: &Path,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<Synthesis, TraceError> {
    options.check()?;
    let name = path.display().to_string();
    let stopped = || TraceError::of_file(name.clone(), "stopped; no file was written");
    // Created first, so that a path that cannot be written is reported before the work.
    let writer = StoreWriter::write_to(path, AtomicFile::create_whole(path)?)?;
    let (learnt, meta) = learn(open, progress, &stopped)?;
    let learnt_clients = learnt.clients();
    let clients = options.clients.or(learnt_clients);
    if clients.is_some() && !learnt.has_responses() {
        let message = "the trace does not record completions, so there is no closed loop: \
                       omit clients, and replay the synthetic trace with --mode asap --depth N";
        return Err(refused("clients", message.to_owned()));
    }
    let (learnt_requests, mean_gap_ns) = (learnt.requests, learnt.mean_gap_ns());
    let mean_latency_ns = learnt.mean_latency_ns();
    // With more clients of equal latency and think time, requests arrive proportionally faster.
    let gap_rate = clients.map_or(options.rate, |clients| options.rate * f64::from(clients) / learnt.loop_clients());
    let (requests_max, latest_ns) = match options.length {
        Length::Times(times) => (((learnt_requests as f64 * times).round() as u64).max(1), LATEST_NS),
        Length::Requests(requests) => (requests, LATEST_NS),
        Length::Ns(ns) if mean_gap_ns == 0 => {
            let message =
                format!("all requests of the trace arrive at the same time, so a length of {ns} ns is not possible");
            return Err(refused("length", message));
        }
        Length::Ns(ns) => (u64::MAX, ns.min(LATEST_NS)),
    };
    let places = learnt.touched.dealt(options.footprint, options.seed);
    let copies = Copies::begin(open, &places, mean_gap_ns, options.seed)?;
    let meta = described(meta, options, clients);
    let mut twin = Twin::new(copies, (options.rate, gap_rate), clients.map(Clients::new), mean_latency_ns);
    let mut output = Output::new(writer, &meta);
    while output.requests() < requests_max {
        let record = twin.next()?;
        if record.arrival_ns > latest_ns {
            break;
        }
        if output.add(record)? && !progress(learnt_requests + output.requests()) {
            return Err(stopped());
        }
    }
    let (requests, duration_ns) = output.finish()?;
    Ok(Synthesis { learnt_requests, learnt_clients, pieces: places.pieces, clients, requests, duration_ns, meta })
}

fn learn(
    open: &Open,
    progress: &mut dyn FnMut(u64) -> bool,
    stopped: &dyn Fn() -> TraceError,
) -> Result<(TraceStatistics, Meta), TraceError> {
    let (mut learnt, mut reader, mut batch) = (TraceStatistics::new(), open()?, Vec::new());
    while reader.next_batch(&mut batch)? {
        batch.iter().for_each(|record| learnt.add(record));
        if !progress(learnt.requests) {
            return Err(stopped());
        }
    }
    let meta = reader.meta().clone();
    if learnt.requests == 0 {
        let file = meta.origin.first().map_or("trace", |origin| &origin.file);
        return Err(TraceError::of_file(file, "has no request to learn from"));
    }
    Ok((learnt, meta))
}

/// Returns the metadata of the synthetic trace, without names, dates and losses of the original.
fn described(mut meta: Meta, options: &Options, clients: Option<u32>) -> Meta {
    strip_names(&mut meta);
    let Options { rate, footprint, seed, .. } = options;
    let mut notes = vec![format!("a synthetic trace: rate {rate}x, footprint {footprint}x, seed {seed}")];
    if let Some(clients) = clients {
        notes.push(format!("a closed loop of {clients} clients: replay it with --mode closed"));
    }
    Meta {
        // Scaled times, and times that depend on completions, are no longer multiples of the original resolution.
        resolution_ns: if *rate == 1.0 && clients.is_none() { meta.resolution_ns } else { 1 },
        counts: Default::default(),
        rejected: 0,
        notes,
        ..meta
    }
}
