//! The ublk export: a kernel block device per LUN, /dev/ublkbN, without a loop device or network.
//!
//! One thread owns the ring of a device and never waits; it passes requests to another one, which allocates memory,
//! copies written data and submits to the clock. Replies are sent by the clock thread, long reads by a separate thread.
//! The kernel splits requests at 1 MiB and has 128 under way.
//!
//! A vanished device answers with EIO, as with FUSE: otherwise the kernel would wait forever.

mod reply;
mod requests;

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use headstack_ublk::{Disk, Queue, Shape, UblkError};

use crate::LiveError;
use crate::copy_thread::CopyThread;
use crate::device::{Device, Export};
use reply::ReplyPayload;
use requests::Receiver;

/// Queue depth.
const DEPTH: u16 = 128;
/// Longest read or write. Requests that only clear carry no data: the model accepts a gibibyte at a time.
const LONGEST_BYTES: u32 = 1 << 20;
const LONGEST_CLEARED_BYTES: u32 = 1 << 30;

/// Block devices of a system, one per LUN.
#[derive(Debug)]
pub struct BlockDevices {
    paths: Vec<PathBuf>,
    served: Vec<Served>,
    copy_thread: CopyThread<ReplyPayload>,
}

#[derive(Debug)]
struct Served {
    disk: Disk,
    queue: JoinHandle<io::Result<()>>,
    receiver: JoinHandle<()>,
}

impl From<UblkError> for LiveError {
    fn from(error: UblkError) -> LiveError {
        match error {
            UblkError::Lacking(what) => LiveError::Invalid(what),
            UblkError::Io { what, error } => LiveError::Io { what, error },
        }
    }
}

impl BlockDevices {
    /// Creates the block devices.
    ///
    /// # Errors
    /// When the machine has no ublk, or this user may not use it.
    pub fn start(device: &Arc<Device>) -> Result<BlockDevices, LiveError> {
        let copy_thread = CopyThread::start(device.submitter.clone())?;
        let mut devices = BlockDevices { paths: Vec::new(), served: Vec::new(), copy_thread };
        for export in &device.exports {
            match devices.serve(device, export) {
                Ok(served) => {
                    devices.paths.push(served.disk.path());
                    devices.served.push(served);
                }
                Err(error) => {
                    devices.stop()?;
                    return Err(error);
                }
            }
        }
        Ok(devices)
    }

    fn serve(&self, device: &Arc<Device>, export: &Export) -> Result<Served, LiveError> {
        let (mut disk, queue) = Disk::add(&Shape {
            capacity_bytes: export.span.length_bytes,
            block_bytes: export.block_bytes,
            is_rotational: export.is_rotational,
            is_read_only: false,
            depth: DEPTH,
            longest_bytes: LONGEST_BYTES,
            longest_cleared_bytes: LONGEST_CLEARED_BYTES,
        })?;
        let receiver = Receiver::new(device, export, queue.way(), self.copy_thread.copy_queue());
        let (ready, is_ready) = mpsc::channel();
        let (queue, receiver) = spawn(device, queue, receiver, ready)?;
        let started = match is_ready.recv() {
            Ok(()) => disk.start().map_err(LiveError::from),
            Err(_) => Err(LiveError::Invalid("the queue of a ublk device could not be served".to_owned())),
        };
        let served = Served { disk, queue, receiver };
        match started {
            Ok(()) => Ok(served),
            Err(error) => {
                // The original error is reported.
                let _ = served.stop();
                Err(error)
            }
        }
    }

    /// Paths of the block devices, in the order of the exports.
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// Whether the devices were removed from outside.
    pub fn is_over(&self) -> bool {
        self.served.iter().all(|served| served.queue.is_finished())
    }

    /// Removes the devices after their cached data have been written: the clock still answers.
    ///
    /// # Errors
    /// When a device was in use; it is removed nevertheless.
    pub fn stop(self) -> Result<(), LiveError> {
        let stopped: Vec<Result<(), LiveError>> = self.served.into_iter().map(Served::stop).collect();
        self.copy_thread.stop();
        stopped.into_iter().collect()
    }
}

impl Served {
    fn stop(self) -> Result<(), LiveError> {
        let path = self.disk.path();
        let was_in_use = self.disk.is_in_use();
        let stopped = self.disk.stop();
        let served = self.queue.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        self.receiver.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        stopped?;
        served.map_err(LiveError::io(path.display().to_string()))?;
        if was_in_use {
            let path = path.display();
            return Err(LiveError::Invalid(format!("{path}: still in use at the end; unmount its file system first")));
        }
        Ok(())
    }
}

/// Starts the two threads of a device, which end with it.
fn spawn(
    device: &Arc<Device>,
    queue: Queue,
    receiver: Receiver,
    ready: mpsc::Sender<()>,
) -> Result<(JoinHandle<io::Result<()>>, JoinHandle<()>), LiveError> {
    let named = |name: &str| thread::Builder::new().name(name.to_owned());
    let failed = || LiveError::io("a thread of a block device");
    let (hand, requests) = mpsc::channel();
    let submitter = device.submitter.clone();
    let receiving = named("headstack-ublk").spawn(move || {
        submitter.keep_up();
        requests.iter().for_each(|asked| receiver.carry_out(asked));
    });
    let receiving = receiving.map_err(failed())?;
    let submitter = device.submitter.clone();
    let serving = named("headstack-ublk").spawn(move || {
        submitter.keep_up();
        // The waiting thread and the request thread exist as long as this thread needs them.
        let is_ready = || ready.send(()).expect("somebody waits");
        queue.serve(is_ready, |asked| hand.send(asked).expect("it listens"))
    });
    Ok((serving.map_err(failed())?, receiving))
}
