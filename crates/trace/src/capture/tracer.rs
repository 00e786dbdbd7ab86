//! [`Tracer`]: capture by the kernel's block tracer in binary mode: blktrace's records, for one user at a time, without
//! the debugfs files that locked-down kernels forbid.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::PathBuf;

use super::control::{Folder, failed, open_pipe, refused};
use super::device::BlockDevice;
use super::settings::Settings;
use super::window::Window;
use crate::collect::Collector;
use crate::error::TraceError;
use crate::formats::Stage;
use crate::formats::blktrace::decode::Stream;
use crate::formats::blktrace::events::Event;
use crate::formats::blktrace::pairing::Pairing;

/// The merged stream of all processors.
const PIPE: &str = "trace_pipe";
/// Bytes requested at a time; the kernel returns up to two pages.
const READ_BYTES: usize = 8 << 10;
/// Number of reads before pairing.
const READS_A_TURN: usize = 512;
/// Smallest number of names that the kernel is to remember.
const NAMES_KEPT: u64 = 4096;

/// A capture by the block tracer.
pub(super) struct Tracer {
    // The kernel resets the tracer only when its pipe is closed, which is why it comes first.
    pipe: File,
    tracefs: Folder,
    device: Folder,
    _settings: Settings,
    stream: Stream,
    events: Vec<Event>,
}

impl Tracer {
    /// Starts the capture.
    ///
    /// # Errors
    /// When another user has the tracer, or the kernel lacks or refuses it.
    pub(super) fn start(
        tracefs: &Folder,
        device: &BlockDevice,
        stage: Stage,
        buffer_kib: u64,
    ) -> Result<Tracer, TraceError> {
        let controls = Folder::new(device.trace_folder());
        refuse_others(tracefs, &controls, device)?;
        let buffer = buffer_kib.to_string();
        let names = NAMES_KEPT.to_string();
        let file = |name: &str| tracefs.path().join(name);
        let mut changes: Vec<(PathBuf, &str)> = Vec::new();
        for size in buffer_sizes(tracefs)? {
            changes.push((size, &buffer));
        }
        changes.push((file("trace_clock"), "mono"));
        if tracefs.read("saved_cmdlines_size")?.parse().is_ok_and(|kept: u64| kept < NAMES_KEPT) {
            changes.push((file("saved_cmdlines_size"), &names));
        }
        changes.push((file("tracing_on"), "1"));
        changes.push((file("current_tracer"), "blk"));
        // Otherwise text in blktrace's format would precede the binary data.
        if tracefs.has("options/blk_classic") {
            changes.push((file("options/blk_classic"), "0"));
        }
        changes.push((file("options/bin"), "1"));
        changes.push((file("options/context-info"), "0"));
        changes.push((controls.path().join("enable"), "1"));
        let settings = Settings::change(&changes)?;
        let mask = match stage {
            // A request matches by any of its bits, and a split only has those of its direction.
            Stage::Queue => "read,write,queue,requeue,issue,complete",
            Stage::Issue => "requeue,issue,complete",
        };
        controls.write("act_mask", mask)?;
        let pipe = open_pipe(&file(PIPE))?;
        Ok(Tracer {
            pipe,
            tracefs: tracefs.clone(),
            device: controls,
            _settings: settings,
            stream: Stream::new(&device.name),
            events: Vec::new(),
        })
    }

    /// Its buffers and their counters.
    pub(super) fn folder(&self) -> &Folder {
        &self.tracefs
    }

    /// Ends the capture; the buffers keep their contents.
    pub(super) fn stop(&mut self) -> Result<(), TraceError> {
        // A device that is gone is not traced any more.
        if self.device.has("enable") { self.device.write("enable", "0") } else { Ok(()) }
    }

    /// Reads all or many of the available events. Returns the time up to which events were read; the maximum if all
    /// were.
    pub(super) fn read(
        &mut self,
        window: &mut Window,
        pairing: &mut Pairing,
        out: &mut Collector,
    ) -> Result<u64, TraceError> {
        let mut is_all = false;
        for _ in 0..READS_A_TURN {
            let held = self.stream.buffer.len();
            self.stream.buffer.resize(held + READ_BYTES, 0);
            let read = self.pipe.read(&mut self.stream.buffer[held..]);
            self.stream.buffer.truncate(held + read.as_ref().map_or(0, |&length| length));
            match read {
                Ok(0) => is_all = true,
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => is_all = true,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(refused(&self.tracefs.path().join(PIPE), "cannot be read", &error)),
            }
            if is_all {
                break;
            }
            self.stream.decode(false, &mut self.events, pairing, out)?;
            for event in self.events.drain(..) {
                window.push(event);
            }
        }
        // The kernel merges the processors' buffers.
        Ok(if is_all { u64::MAX } else { window.newest_ns() })
    }

    /// Reads names of processes, as far as the kernel remembers them.
    pub(super) fn name(&self, pairing: &mut Pairing, out: &mut Collector) -> Result<(), TraceError> {
        for line in self.tracefs.read("saved_cmdlines")?.lines() {
            if let Some((pid, name)) = line.trim_start().split_once(' ')
                && let Ok(pid) = pid.parse()
                // The kernel's text for a forgotten name.
                && name != "<...>"
            {
                pairing.name(pid, name, out);
            }
        }
        Ok(())
    }
}

/// Refuses to take over another user's tracer.
fn refuse_others(tracefs: &Folder, controls: &Folder, device: &BlockDevice) -> Result<(), TraceError> {
    let tracers = tracefs.read("available_tracers")?;
    if !controls.has("enable") || !tracers.split_whitespace().any(|tracer| tracer == "blk") {
        return Err(failed("needs the block tracer, which this kernel does not have"));
    }
    let tracer = tracefs.read("current_tracer")?;
    if tracer != "nop" {
        let path = tracefs.path().join("current_tracer");
        return Err(failed(format!(
            "another program uses the tracer `{tracer}`; to reset a stale one, write `nop` to {}",
            path.display()
        )));
    }
    if tracefs.read("events/enable")? != "0" {
        return Err(failed(format!(
            "another program records events; see {}",
            tracefs.path().join("set_event").display()
        )));
    }
    if controls.read("enable")? != "0" {
        return Err(failed(format!(
            "another program traces {}; to reset a stale trace, write 0 to {}/enable",
            device.name,
            controls.path().display()
        )));
    }
    Ok(())
}

/// The file with the size of all buffers; one file per buffer if they differ.
fn buffer_sizes(tracefs: &Folder) -> Result<Vec<PathBuf>, TraceError> {
    const SIZE: &str = "buffer_size_kb";
    if tracefs.read(SIZE)? != "X" {
        return Ok(vec![tracefs.path().join(SIZE)]);
    }
    Ok(tracefs.processors()?.iter().map(|processor| processor.path().join(SIZE)).collect())
}
