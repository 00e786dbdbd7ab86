//! [`Capture`]: records requests on this machine as they happen, from the kernel's block layer.
//!
//! There are two methods with equal results: the kernel's block tracer, which one user at a time can have, or the block
//! tracepoints in our own tracing instance. All changes to the kernel are undone when a [`Capture`] ends or is dropped.

mod claim;
mod control;
mod device;
mod options;
mod pages;
mod settings;
mod tracepoints;
mod tracer;
mod window;

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::collect::Collector;
use crate::error::TraceError;
use crate::formats::blktrace::events::Event;
use crate::formats::blktrace::pairing::Pairing;
use crate::meta::{Clock, Meta, Origin};
use crate::record::{Flags, Operation, Record};
use control::{Folder, failed};
use device::BlockDevice;
use tracepoints::Tracepoints;
use tracer::Tracer;
use window::Window;

pub use options::{CaptureOptions, Method, Progress};

/// Longest wait of [`Capture::poll`].
const POLL: Duration = Duration::from_millis(100);
/// Sleep while there is nothing to read: a compromise between wakeups and buffer size.
const PAUSE: Duration = Duration::from_millis(10);
/// Interval of reading counters and names.
const LOOK: Duration = Duration::from_secs(1);
/// Time for outstanding requests to complete after the limit is reached.
const GRACE: Duration = Duration::from_secs(1);
/// Time after which an outstanding request counts as lost. The kernel's drivers give a device 30 s, more than once.
const GIVEN_UP_NS: u64 = 120_000_000_000;
/// Name of lost events in [`Meta::counts`].
const LOST: &str = "lost events";
/// Smallest buffer of a processor: some pages.
const BUFFER_KIB_MIN: u64 = 16;

enum Source {
    Tracer(Tracer),
    Tracepoints(Tracepoints),
}

impl Source {
    fn folder(&self) -> &Folder {
        match self {
            Source::Tracer(tracer) => tracer.folder(),
            Source::Tracepoints(tracepoints) => tracepoints.folder(),
        }
    }

    fn stop(&mut self) -> Result<(), TraceError> {
        match self {
            Source::Tracer(tracer) => tracer.stop(),
            Source::Tracepoints(tracepoints) => tracepoints.stop(),
        }
    }
}

/// A capture of this machine's requests; dropping it ends it and restores the kernel.
pub struct Capture {
    /// `None` after the end.
    source: Option<Source>,
    method: Method,
    device: BlockDevice,
    limits: (Option<Duration>, Option<u64>),
    window: Window,
    pairing: Pairing,
    out: Collector,
    started: Instant,
    /// When the requested number of requests had arrived.
    enough: Option<Instant>,
    is_stopped: bool,
    looked: Option<Instant>,
    progress: Progress,
    /// Progress about a second ago, from which rates are computed.
    mark: Progress,
}

impl Capture {
    /// Starts a capture.
    ///
    /// # Errors
    /// When there is no such block device, this user is not root, the kernel has no tracing, or another user has the
    /// method's resources.
    pub fn start(options: &CaptureOptions) -> Result<Capture, TraceError> {
        let device = BlockDevice::find(&options.device)?;
        let buffer_kib = options.buffer_bytes >> 10;
        if buffer_kib < BUFFER_KIB_MIN {
            return Err(failed(format!("the buffer must be {BUFFER_KIB_MIN} KiB or more, not {buffer_kib} KiB")));
        }
        let tracefs = Folder::tracefs()?;
        let mut out = Collector::new(true);
        for note in claim::clean_up(&tracefs) {
            out.meta.note(note);
        }
        let (source, method) = Source::start(&tracefs, &device, options, buffer_kib, &mut out)?;
        describe(&tracefs, source.folder(), &device, method, &mut out);
        Ok(Capture {
            source: Some(source),
            method,
            device,
            limits: (options.duration, options.requests),
            window: Window::default(),
            pairing: Pairing::new(Some(options.stage), &mut out),
            out,
            started: Instant::now(),
            enough: None,
            is_stopped: false,
            looked: None,
            progress: Progress::default(),
            mark: Progress::default(),
        })
    }

    /// The method in use.
    pub fn method(&self) -> Method {
        self.method
    }

    /// Metadata of the trace; complete once the capture is over.
    pub fn meta(&self) -> &Meta {
        &self.out.meta
    }

    /// Replaces `batch` by the next requests, in order of arrival; waits for at most 100 ms. Call it until the capture
    /// is over; the last requests come with that.
    ///
    /// # Errors
    /// When the kernel refuses an operation.
    pub fn poll(&mut self, batch: &mut Vec<Record>) -> Result<Progress, TraceError> {
        batch.clear();
        let deadline = Instant::now() + POLL;
        while self.source.is_some() {
            let is_empty = self.round()?;
            std::mem::swap(batch, &mut self.out.records);
            self.limit(batch)?;
            if !batch.is_empty() || Instant::now() >= deadline {
                break;
            }
            if is_empty && !self.is_stopped {
                std::thread::sleep(PAUSE);
            }
        }
        self.count(batch);
        Ok(self.progress)
    }

    /// Ends the capture. Requests recorded until now are still returned by [`Capture::poll`].
    ///
    /// # Errors
    /// When the kernel refuses an operation.
    pub fn stop(&mut self) -> Result<(), TraceError> {
        if let Some(source) = &mut self.source
            && !self.is_stopped
        {
            self.is_stopped = true;
            source.stop()?;
        }
        Ok(())
    }

    /// Reads and pairs the kernel's events once; returns true if there were none.
    fn round(&mut self) -> Result<bool, TraceError> {
        if self.looked.is_none_or(|looked| looked.elapsed() >= LOOK) {
            self.look()?;
        }
        let Some(source) = &mut self.source else { return Ok(true) };
        let Capture { window, pairing, out, .. } = self;
        let before = window.count();
        let read_to_ns = match source {
            Source::Tracer(tracer) => tracer.read(window, pairing, out)?,
            Source::Tracepoints(tracepoints) => tracepoints.read(window, pairing, out)?,
        };
        let is_empty = window.count() == before && read_to_ns == u64::MAX;
        for event in window.settle(read_to_ns) {
            take(&self.device, event, pairing, out);
        }
        pairing.give_up_before(window.newest_ns().saturating_sub(GIVEN_UP_NS));
        pairing.hand_over(out);
        if is_empty && self.is_stopped {
            self.finish()?;
        }
        Ok(is_empty)
    }

    /// Returns the remaining requests.
    fn finish(&mut self) -> Result<(), TraceError> {
        self.end()?;
        for event in self.window.finish() {
            take(&self.device, event, &mut self.pairing, &mut self.out);
        }
        self.pairing.finish(&mut self.out);
        Ok(())
    }

    /// Reads counters and names for the last time, and restores the kernel.
    fn end(&mut self) -> Result<(), TraceError> {
        self.look()?;
        self.source = None;
        self.progress.is_over = true;
        if self.progress.lost > 0 {
            self.out.meta.counts.insert(LOST.to_owned(), self.progress.lost);
        }
        Ok(())
    }

    /// Reads counters and names.
    fn look(&mut self) -> Result<(), TraceError> {
        let Some(source) = &self.source else { return Ok(()) };
        self.looked = Some(Instant::now());
        let counted = source.folder().lost()?;
        // The stream reports it too, possibly earlier.
        let recorded = self.out.meta.counts.get(LOST).copied().unwrap_or(0);
        self.progress.lost = self.progress.lost.max(counted).max(recorded);
        if let Source::Tracer(tracer) = source {
            tracer.name(&mut self.pairing, &mut self.out)?;
        }
        Ok(())
    }

    /// Ends the capture when a limit is reached.
    fn limit(&mut self, batch: &mut Vec<Record>) -> Result<(), TraceError> {
        let (duration, requests) = self.limits;
        if duration.is_some_and(|duration| self.started.elapsed() >= duration) {
            self.stop()?;
        }
        let Some(requests) = requests else { return Ok(()) };
        let left = requests.saturating_sub(self.progress.requests);
        if batch.len() as u64 >= left {
            batch.truncate(left as usize);
            self.stop()?;
            self.end()?;
        } else if self.pairing.arrived() >= requests {
            let enough = *self.enough.get_or_insert_with(Instant::now);
            if enough.elapsed() >= GRACE {
                self.stop()?;
            }
        }
        Ok(())
    }

    fn count(&mut self, batch: &[Record]) {
        let progress = &mut self.progress;
        progress.requests += batch.len() as u64;
        progress.bytes += batch.iter().map(|record| u64::from(record.length_bytes)).sum::<u64>();
        progress.events = self.window.count();
        progress.elapsed = self.started.elapsed();
        let since = (progress.elapsed - self.mark.elapsed).as_secs_f64();
        if since >= LOOK.as_secs_f64() || self.mark.elapsed.is_zero() && since > 0.0 {
            progress.rate_per_s = (progress.requests - self.mark.requests) as f64 / since;
            progress.bytes_per_s = (progress.bytes - self.mark.bytes) as f64 / since;
            if since >= LOOK.as_secs_f64() {
                self.mark = *progress;
            }
        }
    }
}

impl Source {
    /// Starts the capture by the requested method, or by the first that works.
    fn start(
        tracefs: &Folder,
        device: &BlockDevice,
        options: &CaptureOptions,
        buffer_kib: u64,
        out: &mut Collector,
    ) -> Result<(Source, Method), TraceError> {
        let stage = options.stage;
        let start = |method| -> Result<Source, TraceError> {
            Ok(match method {
                Method::Tracer => Source::Tracer(Tracer::start(tracefs, device, stage, buffer_kib)?),
                Method::Tracepoints => Source::Tracepoints(Tracepoints::start(tracefs, device, stage, buffer_kib)?),
            })
        };
        if let Some(method) = options.method {
            return Ok((start(method)?, method));
        }
        let mut refusals = Vec::new();
        for method in Method::ALL {
            match start(method) {
                Ok(source) => {
                    for refusal in refusals {
                        out.meta.note(refusal);
                    }
                    return Ok((source, method));
                }
                Err(error) => refusals.push(format!("the {} does not work: {}", method.name(), error.message)),
            }
        }
        Err(failed(format!("no method works: {}", refusals.join("; "))))
    }
}

fn describe(tracefs: &Folder, buffers: &Folder, device: &BlockDevice, method: Method, out: &mut Collector) {
    out.meta.origin.push(Origin { file: device.name.clone(), format: "capture".to_owned() });
    out.meta.clock = Clock::Boot;
    out.meta.resolution_ns = 1;
    let unix_ns =
        SystemTime::now().duration_since(UNIX_EPOCH).ok().and_then(|time| u64::try_from(time.as_nanos()).ok());
    if let (Some(unix_ns), Some(now_ns)) = (unix_ns, buffers.now_ns()) {
        out.meta.zero_unix_ns = unix_ns.checked_sub(now_ns);
    }
    // The pairing knows the device by its number, users by its name.
    let index = out.device(&format!("{},{}", device.number >> 20, device.number & 0xf_ffff));
    out.meta.devices[index as usize] = device.meta();
    out.meta.note(format!("recorded by the {} under {}", method.name(), tracefs.path().display()));
}

/// Pairs an event, with its sector counted from the start of the device.
fn take(device: &BlockDevice, mut event: Event, pairing: &mut Pairing, out: &mut Collector) {
    event.device = device.number;
    let has_address =
        event.bytes > 0 && event.operation != Operation::Flush && !event.flags.contains(Flags::PASS_THROUGH);
    if device.is_partition && has_address {
        if !device.sectors.contains(&event.sector) {
            return;
        }
        event.sector -= device.sectors.start;
        event.second_sector = event.second_sector.saturating_sub(device.sectors.start);
    }
    pairing.event(&event, out);
}
