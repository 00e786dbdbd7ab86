//! Creates, starts and removes a device, by commands to /dev/ublk-control.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use io_uring::types::Fd;
use io_uring::{IoUring, cqueue, opcode, squeue};

use crate::UblkError;
use crate::abi;
use crate::queue::{Completer, Queue};
use crate::shape::Shape;

const CONTROL: &str = "/dev/ublk-control";

/// A block device whose requests a [`Queue`] has.
#[derive(Debug)]
pub struct Disk {
    control: Control,
    id: u32,
    way: Completer,
    is_started: bool,
    /// [`stop`](Self::stop) has taken it away.
    is_gone: bool,
}

impl Disk {
    /// Creates a device with a free number. It appears when it is started, which waits until its queue is served.
    ///
    /// # Errors
    /// If the machine has no ublk, or its Linux is older than 6.5; if the right to use it is missing; if the kernel
    /// refuses the shape.
    pub fn add(shape: &Shape) -> Result<(Disk, Queue), UblkError> {
        let mut control = Control::open()?;
        let mut info = abi::info(shape.depth, shape.longest_bytes);
        control.order("a device", abi::ADD_DEV, abi::ANY_DEVICE, &mut info, 0)?;
        let id = info[abi::INFO_ID..].first_chunk().map_or(0, |id| u32::from_ne_bytes(*id));
        let made = control
            .order("its size", abi::SET_PARAMS, id, &mut abi::params(shape), 0)
            .and_then(|()| Queue::open(id, shape.depth));
        match made {
            Ok(queue) => {
                let way = queue.way();
                Ok((Disk { control, id, way, is_started: false, is_gone: false }, queue))
            }
            Err(error) => {
                // Report the first error.
                let _ = control.order("the end", abi::DEL_DEV, id, &mut [], 0);
                Err(error)
            }
        }
    }

    /// The block device.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/dev/ublkb{}", self.id))
    }

    /// Makes the block device appear. Its queue must already be served, from another thread: the kernel reads a
    /// partition table.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn start(&mut self) -> Result<(), UblkError> {
        self.control.order("starting", abi::START_DEV, self.id, &mut [], u64::from(std::process::id()))?;
        self.is_started = true;
        Ok(())
    }

    /// Whether the device is mounted or otherwise opened exclusively.
    pub fn is_in_use(&self) -> bool {
        let exclusively = OpenOptions::new().read(true).custom_flags(libc::O_EXCL).open(self.path());
        exclusively.is_err_and(|error| error.raw_os_error() == Some(libc::EBUSY))
    }

    /// Removes the device, even if it is in use, after cached data have been written. This ends the queue.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn stop(mut self) -> Result<(), UblkError> {
        self.take_away()
    }

    fn take_away(&mut self) -> Result<(), UblkError> {
        self.is_gone = true;
        self.way.close();
        // A device that was never started has a queue all the same; this ends it.
        let stopped = self.control.order("stopping", abi::STOP_DEV, self.id, &mut [], 0);
        let mut end = |command: u32| self.control.order("the end", command, self.id, &mut [], 0);
        // Before Linux 6.9 this waits until the device is unmounted.
        stopped.and(end(abi::DEL_DEV_ASYNC).or_else(|_| end(abi::DEL_DEV)))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if !self.is_gone {
            // Callers that need the error call `stop`.
            let _ = self.take_away();
        }
    }
}

/// The control device, and a ring for one command at a time.
struct Control {
    file: File,
    ring: IoUring<squeue::Entry128, cqueue::Entry>,
}

impl std::fmt::Debug for Control {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.file.fmt(formatter)
    }
}

impl Control {
    fn open() -> Result<Control, UblkError> {
        let file = OpenOptions::new().read(true).write(true).open(CONTROL).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => UblkError::Lacking(format!(
                "{CONTROL} not found; load the module (`modprobe ublk_drv`, Linux 6.5 or newer), or add the device to the container"
            )),
            io::ErrorKind::PermissionDenied => UblkError::Lacking(format!("{CONTROL}: ublk devices require root")),
            _ => UblkError::io(CONTROL)(error),
        })?;
        let ring = IoUring::<squeue::Entry128, cqueue::Entry>::builder().build(4);
        let ring = ring.map_err(UblkError::io("io_uring, which ublk needs"))?;
        let mut control = Control { file, ring };
        let mut features = [0; 8];
        let queried = control.order("its features", abi::GET_FEATURES, 0, &mut features, 0);
        let has_copies = queried.is_ok() && u64::from_ne_bytes(features) & abi::USER_COPY != 0;
        if has_copies {
            Ok(control)
        } else {
            Err(UblkError::Lacking(format!("{CONTROL}: Linux 6.5 or newer is required")))
        }
    }

    /// Gives one order about a device, and waits for its end.
    fn order(&mut self, what: &str, command: u32, device: u32, buffer: &mut [u8], data: u64) -> Result<(), UblkError> {
        let named = || format!("{CONTROL}: {what}");
        let bytes = abi::control(device, (buffer.as_mut_ptr() as u64, buffer.len() as u16), data);
        let entry = opcode::UringCmd80::new(Fd(self.file.as_raw_fd()), command).cmd(bytes).build();
        // SAFETY: the buffer, which the command names, and the file outlive it: its end is waited for below.
        unsafe { self.ring.submission().push(&entry) }.expect("one command at a time");
        loop {
            match self.ring.submit_and_wait(1) {
                Ok(_) => {}
                // A signal is none of its business.
                Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
                // The ring itself is unusable: memory that the kernel might still write to must not go.
                Err(error) => panic!("io_uring: {error}"),
            }
            if let Some(end) = self.ring.completion().next() {
                let failed = |errno: i32| UblkError::io(named())(io::Error::from_raw_os_error(errno));
                return if end.result() < 0 { Err(failed(-end.result())) } else { Ok(()) };
            }
        }
    }
}
