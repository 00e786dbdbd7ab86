//! The queue of a device: one thread issues its commands, and any thread completes its requests.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};

use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode, squeue};
use rustix::event::{EventfdFlags, eventfd};

use crate::UblkError;
use crate::abi::{self, DESCRIPTION_BYTES, Operation};

/// Event value that means: requests have been completed, or the queue is closing.
const WAKE: u64 = 1 << 32;
/// Maximum wait for requests in flight when a device is removed. Without a limit, a hanging request would block the
/// removal.
const CLOSING: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(200);

/// A request of the kernel.
#[derive(Debug)]
pub struct KernelRequest {
    /// Ticket that completes the request.
    pub ticket: Ticket,
    /// Time at which the request was received.
    pub at: Instant,
    /// The requested operation.
    pub operation: Operation,
    /// Whether the request has to be durable when it completes.
    pub is_forced: bool,
    /// First byte of the range.
    pub offset_bytes: u64,
    /// Length of the range in bytes.
    pub length_bytes: u64,
}

/// The right to complete a request once.
#[derive(Debug)]
pub struct Ticket {
    tag: u16,
    /// Number of requests that have used this tag.
    turn: u32,
}

/// Completes requests and moves their data, from any thread. Clones refer to the same queue. A completer stops working
/// with its queue: the kernel releases a device only when its file is closed, and a hanging request would keep the file
/// open.
#[derive(Clone, Debug)]
pub struct Completer(Weak<Shared>);

#[derive(Debug)]
struct Shared {
    file: File,
    /// For each tag, the number of the request that currently has the tag.
    turns: Box<[AtomicU32]>,
    state: Mutex<State>,
    /// Wakes the queue's thread, which then checks the state.
    wake: OwnedFd,
}

#[derive(Debug, Default)]
struct State {
    done: Vec<(Ticket, i32)>,
    closing: Option<Instant>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("the lock is not poisoned")
    }

    fn wake(&self) {
        // The write cannot block, since the counter is far from full.
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }

    /// Whether the ticket is still valid: a request that was given up must not get the data of a later request with its
    /// tag.
    fn has(&self, ticket: &Ticket) -> bool {
        self.turns[usize::from(ticket.tag)].load(Ordering::Acquire) == ticket.turn
    }

    fn complete(&self, ticket: Ticket, result: Result<u32, i32>) {
        let result = result.map_or_else(|errno| -errno, |bytes| bytes as i32);
        let mut state = self.state();
        state.done.push((ticket, result));
        // Only the first completion of a batch wakes the thread.
        let is_first = state.done.len() == 1;
        drop(state);
        if is_first {
            self.wake();
        }
    }
}

impl Completer {
    /// Fills `into` with the data of a write.
    ///
    /// # Errors
    /// Returns an error if the kernel has given up the request.
    pub fn take(&self, ticket: &Ticket, into: &mut [u8]) -> io::Result<()> {
        self.of(ticket)?.file.read_exact_at(into, abi::data_offset(ticket.tag))
    }

    /// Passes `data` to the kernel as the result of a read.
    ///
    /// # Errors
    /// Returns an error if the kernel has given up the request.
    pub fn bring(&self, ticket: &Ticket, data: &[u8]) -> io::Result<()> {
        self.of(ticket)?.file.write_all_at(data, abi::data_offset(ticket.tag))
    }

    /// Completes a request with the number of bytes moved, or an error number.
    pub fn complete(&self, ticket: Ticket, result: Result<u32, i32>) {
        if let Some(shared) = self.0.upgrade() {
            shared.complete(ticket, result);
        }
    }

    /// Closes the queue. Requests in flight may take up to ten more seconds.
    pub(crate) fn close(&self) {
        if let Some(shared) = self.0.upgrade() {
            shared.state().closing.get_or_insert_with(Instant::now);
            shared.wake();
        }
    }

    fn of(&self, ticket: &Ticket) -> io::Result<Arc<Shared>> {
        let shared = self.0.upgrade().ok_or(io::ErrorKind::NotFound)?;
        if shared.has(ticket) { Ok(shared) } else { Err(io::ErrorKind::NotFound.into()) }
    }
}

/// The kernel's descriptions of requests, one per tag.
#[derive(Debug)]
struct Descriptions {
    memory: NonNull<libc::c_void>,
    bytes: usize,
}

// SAFETY: the mapping belongs to the owner of this value, on any thread.
unsafe impl Send for Descriptions {}

impl Descriptions {
    fn map(file: &File, depth: u16) -> io::Result<Descriptions> {
        let page = rustix::param::page_size();
        let bytes = (usize::from(depth) * DESCRIPTION_BYTES).next_multiple_of(page);
        // SAFETY: creates a new mapping at an address that the kernel chooses, so no other memory is affected.
        let memory =
            unsafe { libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Descriptions { memory: NonNull::new(memory).expect("a mapping is never at address 0"), bytes })
    }

    /// Returns the kernel's description of the request with a tag. The request must have arrived and must not be
    /// complete, so that the kernel does not write to its description.
    fn of(&self, tag: u16) -> [u8; DESCRIPTION_BYTES] {
        let start = usize::from(tag) * DESCRIPTION_BYTES;
        assert!(start + DESCRIPTION_BYTES <= self.bytes, "the tag belongs to this queue");
        // SAFETY: the address is within the mapping, as asserted above; the kernel wrote the description before it
        // reported the request.
        unsafe { self.memory.cast::<u8>().add(start).cast::<[u8; DESCRIPTION_BYTES]>().read_volatile() }
    }
}

impl Drop for Descriptions {
    fn drop(&mut self) {
        // SAFETY: the memory was mapped with this length, and no reference to it exists.
        unsafe { libc::munmap(self.memory.as_ptr(), self.bytes) };
    }
}

/// A device's queue.
pub struct Queue {
    // The ring is dropped first, together with the commands that refer to the memory and the file.
    ring: IoUring,
    descriptions: Descriptions,
    shared: Arc<Shared>,
    depth: u16,
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Queue")
            .field("shared", &self.shared)
            .field("depth", &self.depth)
            .finish_non_exhaustive()
    }
}

impl Queue {
    pub(crate) fn open(id: u32, depth: u16) -> Result<Queue, UblkError> {
        let name = format!("/dev/ublkc{id}");
        let failed = || UblkError::io(name.clone());
        let file = OpenOptions::new().read(true).write(true).open(&name).map_err(failed())?;
        let descriptions = Descriptions::map(&file, depth).map_err(failed())?;
        // One round submits at most one command per tag, and one read of the wake event.
        let ring = IoUring::new(u32::from(depth) + 1).map_err(UblkError::io("io_uring, which ublk needs"))?;
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let wake = wake.map_err(|error| UblkError::io("an eventfd")(error.into()))?;
        let turns = (0..depth).map(|_| AtomicU32::new(0)).collect();
        let shared = Arc::new(Shared { file, turns, state: Mutex::default(), wake });
        Ok(Queue { ring, descriptions, shared, depth })
    }

    /// Returns the handle that completes requests.
    pub fn way(&self) -> Completer {
        Completer(Arc::downgrade(&self.shared))
    }

    /// Passes each request to `each`, which must not block, until the device is removed. `ready` is called once the
    /// device can be started. All calls are made on the calling thread, since the kernel binds the queue to it.
    ///
    /// # Errors
    /// Returns the errors of the ring.
    pub fn serve(mut self, ready: impl FnOnce(), mut each: impl FnMut(KernelRequest)) -> io::Result<()> {
        (0..self.depth).for_each(|tag| self.push(tag, abi::FETCH, 0));
        self.await_wake();
        self.ring.submit()?;
        ready();
        let mut open = usize::from(self.depth);
        let mut events = Vec::with_capacity(open + 1);
        let mut under_way = vec![false; open];
        while open > 0 {
            let closing = self.commit(&mut under_way);
            self.wait(closing)?;
            let at = Instant::now();
            events.clear();
            events.extend(self.ring.completion().map(|event| (event.user_data(), event.result())));
            for &(what, result) in &events {
                if what == WAKE {
                    // Ignore the value, since all completed requests are examined anyway.
                    let _ = rustix::io::read(&self.shared.wake, &mut [0; 8]);
                    self.await_wake();
                } else if result < 0 {
                    // The device is being removed.
                    open -= 1;
                } else {
                    let tag = what as u16;
                    under_way[usize::from(tag)] = true;
                    self.receive(tag, at, &mut each);
                }
            }
        }
        Ok(())
    }

    fn receive(&self, tag: u16, at: Instant, each: &mut impl FnMut(KernelRequest)) {
        let turn = self.shared.turns[usize::from(tag)].fetch_add(1, Ordering::AcqRel).wrapping_add(1);
        let ticket = Ticket { tag, turn };
        match abi::described(&self.descriptions.of(tag)) {
            Some((operation, is_forced, offset_bytes, length_bytes)) => {
                each(KernelRequest { ticket, at, operation, is_forced, offset_bytes, length_bytes });
            }
            None => self.shared.complete(ticket, Err(libc::EOPNOTSUPP)),
        }
    }

    /// Reports completed requests to the kernel, and fetches the next request for each free tag; returns whether the
    /// device is being removed.
    fn commit(&mut self, under_way: &mut [bool]) -> bool {
        let (done, closing) = {
            let mut state = self.shared.state();
            (std::mem::take(&mut state.done), state.closing)
        };
        for (ticket, result) in done {
            // Skip requests that were given up.
            if self.shared.has(&ticket) && under_way[usize::from(ticket.tag)] {
                under_way[usize::from(ticket.tag)] = false;
                self.push(ticket.tag, abi::COMMIT_AND_FETCH, result);
            }
        }
        if closing.is_some_and(|since| since.elapsed() > CLOSING) {
            for tag in 0..self.depth {
                if std::mem::take(&mut under_way[usize::from(tag)]) {
                    self.shared.turns[usize::from(tag)].fetch_add(1, Ordering::AcqRel);
                    self.push(tag, abi::COMMIT_AND_FETCH, -libc::EIO);
                }
            }
        }
        closing.is_some()
    }

    fn wait(&mut self, closing: bool) -> io::Result<()> {
        let look = Timespec::from(LOOK);
        let waited = if closing {
            self.ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&look))
        } else {
            self.ring.submit_and_wait(1)
        };
        match waited {
            Ok(_) => Ok(()),
            Err(error) => match error.raw_os_error() {
                // A signal arrived, or nothing happened in time.
                Some(libc::EINTR | libc::ETIME) => Ok(()),
                _ => Err(error),
            },
        }
    }

    fn await_wake(&mut self) {
        let wake = opcode::PollAdd::new(Fd(self.shared.wake.as_raw_fd()), libc::POLLIN as u32).build();
        self.hand_over(&wake.user_data(WAKE));
    }

    fn push(&mut self, tag: u16, command: u32, result: i32) {
        let entry = opcode::UringCmd16::new(Fd(self.shared.file.as_raw_fd()), command).cmd(abi::io(tag, result));
        self.hand_over(&entry.build().user_data(u64::from(tag)));
    }

    fn hand_over(&mut self, entry: &squeue::Entry) {
        // SAFETY: the entry refers to no memory, and its file is open as long as the ring.
        unsafe { self.ring.submission().push(entry) }.expect("the ring has room for one entry per tag and one more");
    }
}
