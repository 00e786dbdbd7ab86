//! A trace's twin: other requests at other places and times that are to a system what the trace's are.
//!
//! Kept are the requests' kinds and sizes, what is used again after what, runs, and the tree of bursts within bursts;
//! drawn are the order of the bursts at every scale, the gaps within them, and where the pieces of the devices lie. One
//! pass learns, a second one writes: memory is a window of requests a copy, and the extents that are touched.

mod bursts;
mod clients;
mod copies;
mod history;
mod learnt;
mod places;
mod runs;
#[cfg(test)]
mod tests;
mod thoughts;
mod twin;

use std::path::Path;

use headstack_files::AtomicFile;
use serde::Serialize;

use clients::Clients;
use copies::Copies;
pub use history::Open;
use learnt::Learnt;
use twin::{Output, Twin};

use crate::error::{Place, TraceError};
use crate::meta::Meta;
use crate::store::StoreWriter;
use crate::transform::strip_names;

/// Copies of the footprint at most: each holds a window of requests.
const FOOTPRINT_MAX: f64 = 256.0;
/// The longest trace, as the longest replay: 73 years.
const LATEST_NS: u64 = 1 << 61;

/// How long a twin is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Length {
    /// So many requests for each of the trace.
    Times(f64),
    /// So many requests.
    Requests(u64),
    /// As many as arrive in this time.
    Ns(u64),
}

/// What twin is asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// How long it is.
    pub length: Length,
    /// Arrivals a second, over those of the trace. A closed loop's clients and its device are so much faster.
    pub rate: f64,
    /// Blocks touched in a lap over the trace, over those of the trace: from 1. Caches miss as often if they are so much
    /// larger.
    pub footprint: f64,
    /// A closed loop of so many clients, whatever the trace is.
    pub clients: Option<u32>,
    /// Seed of all random draws.
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

/// What was learnt, and what was written.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Synthesis {
    /// Requests of the trace.
    pub learnt_requests: u64,
    /// The clients of the closed loop that the trace was; null where requests came from outside.
    pub learnt_clients: Option<u32>,
    /// Parts of devices that were dealt out.
    pub pieces: u64,
    /// The clients of the closed loop that the twin is; null where its requests come from outside.
    pub clients: Option<u32>,
    /// Requests of the twin.
    pub requests: u64,
    /// From its first arrival to its last.
    pub duration_ns: u64,
    /// What the twin says of itself.
    pub meta: Meta,
}

/// Writes a twin of the trace that `open` opens to `path`, in the stored form. `progress` hears the number of requests
/// read and written so far and says whether to go on; nothing is left under any name unless the twin is whole.
///
/// # Errors
/// Options out of range; what the trace or the disk does; a stop, as an error that says so.
pub fn synthesize(
    open: &Open,
    options: &Options,
    path: &Path,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<Synthesis, TraceError> {
    options.check()?;
    let name = path.display().to_string();
    let stopped = || TraceError::of_file(name.clone(), "stopped; nothing is written");
    // First, for a place that cannot be written to should be known before the work.
    let writer = StoreWriter::write_to(path, AtomicFile::create_whole(path)?)?;
    let (learnt, meta) = learn(open, progress, &stopped)?;
    let learnt_clients = learnt.clients();
    let clients = options.clients.or(learnt_clients);
    if clients.is_some() && !learnt.has_responses() {
        let message = "the trace does not record when its requests were complete, so that nobody could wait for them: \
                       leave clients out, and replay the twin by --mode asap --depth N";
        return Err(refused("clients", message.to_owned()));
    }
    let (learnt_requests, mean_gap_ns) = (learnt.requests, learnt.mean_gap_ns());
    let mean_response_ns = learnt.mean_response_ns();
    // Of more clients, each with the same responses and thoughts, requests come in proportion.
    let gap_rate = clients.map_or(options.rate, |clients| options.rate * f64::from(clients) / learnt.loop_clients());
    let (requests_max, latest_ns) = match options.length {
        Length::Times(times) => (((learnt_requests as f64 * times).round() as u64).max(1), LATEST_NS),
        Length::Requests(requests) => (requests, LATEST_NS),
        Length::Ns(ns) if mean_gap_ns == 0 => {
            let message = format!("a trace whose requests all come at once has no rate: {ns} ns would never pass");
            return Err(refused("length", message));
        }
        Length::Ns(ns) => (u64::MAX, ns.min(LATEST_NS)),
    };
    let places = learnt.touched.dealt(options.footprint, options.seed);
    let copies = Copies::begin(open, &places, mean_gap_ns, options.seed)?;
    let meta = described(meta, options, clients);
    let mut twin = Twin::new(copies, (options.rate, gap_rate), clients.map(Clients::new), mean_response_ns);
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
) -> Result<(Learnt, Meta), TraceError> {
    let (mut learnt, mut reader, mut batch) = (Learnt::new(), open()?, Vec::new());
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

/// What the twin says of itself: nothing of the names, dates and losses of the trace.
fn described(mut meta: Meta, options: &Options, clients: Option<u32>) -> Meta {
    strip_names(&mut meta);
    let Options { rate, footprint, seed, .. } = options;
    let mut notes = vec![format!("a twin, synthesized: rate {rate}x, footprint {footprint}x, seed {seed}")];
    if let Some(clients) = clients {
        notes.push(format!("a closed loop of {clients} clients: replay it by --mode closed"));
    }
    Meta {
        // Times that are divided, or follow completions, have steps of their own.
        resolution_ns: if *rate == 1.0 && clients.is_none() { meta.resolution_ns } else { 1 },
        counts: Default::default(),
        rejected: 0,
        notes,
        ..meta
    }
}
