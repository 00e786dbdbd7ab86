//! The ublk export: a block device of the kernel's for each LUN, /dev/ublkbN, without a loop device or network between.
//!
//! A thread has the ring of a device and never waits; what it hears it hands to another one, which finds memory, copies
//! what is written and tells the clock. Replies leave from the clock thread, long reads from one of their own. The kernel
//! cuts requests at 1 MiB and has 128 under way.
//!
//! A device that vanished answers with EIO, as behind FUSE: the kernel would wait for ever.

mod reply;
mod requests;

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use headstack_ublk::{Disk, Queue, Shape, UblkError};

use crate::LiveError;
use crate::courier::Courier;
use crate::device::{Device, Export};
use reply::Word;
use requests::Receiver;

/// Requests under way.
const DEPTH: u16 = 128;
/// The longest read or write. What is only cleared has no data: the model is asked for a gibibyte at a time.
const LONGEST_BYTES: u32 = 1 << 20;
const LONGEST_CLEARED_BYTES: u32 = 1 << 30;

/// Block devices of a system, one a LUN.
#[derive(Debug)]
pub struct BlockDevices {
    paths: Vec<PathBuf>,
    served: Vec<Served>,
    courier: Courier<Word>,
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
            UblkError::Lacking(what) => LiveError::Asked(what),
            UblkError::Io { what, error } => LiveError::Io { what, error },
        }
    }
}

impl BlockDevices {
    /// Has the block devices appear.
    ///
    /// # Errors
    /// A machine without ublk, or one that does not let this user have it.
    pub fn start(device: &Arc<Device>) -> Result<BlockDevices, LiveError> {
        let courier = Courier::start(device.submitter.clone())?;
        let mut devices = BlockDevices { paths: Vec::new(), served: Vec::new(), courier };
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
        let receiver = Receiver::new(device, export, queue.way(), self.courier.bag());
        let (ready, is_ready) = mpsc::channel();
        let (queue, receiver) = spawn(device, queue, receiver, ready)?;
        let started = match is_ready.recv() {
            Ok(()) => disk.start().map_err(LiveError::from),
            Err(_) => Err(LiveError::Asked("the queue of a ublk device could not be served".to_owned())),
        };
        let served = Served { disk, queue, receiver };
        match started {
            Ok(()) => Ok(served),
            Err(error) => {
                // What went wrong first is said.
                let _ = served.stop();
                Err(error)
            }
        }
    }

    /// The block devices, in order of the exports.
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// Somebody has taken the devices away.
    pub fn is_over(&self) -> bool {
        self.served.iter().all(|served| served.queue.is_finished())
    }

    /// Takes the devices away, after what is cached of them has been written: the clock still answers.
    ///
    /// # Errors
    /// A device that was in use, which is gone all the same.
    pub fn stop(self) -> Result<(), LiveError> {
        let stopped: Vec<Result<(), LiveError>> = self.served.into_iter().map(Served::stop).collect();
        self.courier.stop();
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
            return Err(LiveError::Asked(format!(
                "{path}: was in use when it ended: unmount the file system on it first"
            )));
        }
        Ok(())
    }
}

/// Two threads of a device, which end with it.
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
        // Both who waits for this and who carries out requests are there for as long as this thread needs them.
        let is_ready = || ready.send(()).expect("somebody waits");
        queue.serve(is_ready, |asked| hand.send(asked).expect("it listens"))
    });
    Ok((serving.map_err(failed())?, receiving))
}
