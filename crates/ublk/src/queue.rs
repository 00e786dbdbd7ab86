//! Requests of a device: one queue, whose commands one thread issues, and which any thread completes.

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

/// Event value: requests have been completed, or the queue closes.
const WAKE: u64 = 1 << 32;
/// How long the removal of a device waits for requests in flight: a request that hangs would block it for ever.
const CLOSING: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(200);

/// A request.
#[derive(Debug)]
pub struct KernelRequest {
    /// Completes it.
    pub ticket: Ticket,
    /// When it was received.
    pub at: Instant,
    /// The requested operation.
    pub operation: Operation,
    /// The request has to be durable when it completes.
    pub is_forced: bool,
    /// First byte.
    pub offset_bytes: u64,
    /// Length.
    pub length_bytes: u64,
}

/// The right to complete a request, once.
#[derive(Debug)]
pub struct Ticket {
    tag: u16,
    /// Counts the requests that have used this tag.
    turn: u32,
}

/// Completes requests and moves their data, from any thread. Clones refer to the same queue. It stops working with its
/// queue: the kernel releases a device only when its file is closed, and a request that hangs would keep it open.
#[derive(Clone, Debug)]
pub struct Completer(Weak<Shared>);

#[derive(Debug)]
struct Shared {
    file: File,
    /// For each tag, the request that has it.
    turns: Box<[AtomicU32]>,
    state: Mutex<State>,
    /// The queue's thread looks at the state.
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
        // A counter that is far from full has room for 1.
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }

    /// A request that was given up must not have another one's data.
    fn has(&self, ticket: &Ticket) -> bool {
        self.turns[usize::from(ticket.tag)].load(Ordering::Acquire) == ticket.turn
    }

    fn complete(&self, ticket: Ticket, result: Result<u32, i32>) {
        let result = result.map_or_else(|errno| -errno, |bytes| bytes as i32);
        let mut state = self.state();
        state.done.push((ticket, result));
        // The first of a batch wakes the thread; the others find it awake.
        let is_first = state.done.len() == 1;
        drop(state);
        if is_first {
            self.wake();
        }
    }
}

impl Completer {
    /// Fills `into` with the data to be written.
    ///
    /// # Errors
    /// If the kernel has given up the request.
    pub fn take(&self, ticket: &Ticket, into: &mut [u8]) -> io::Result<()> {
        self.of(ticket)?.file.read_exact_at(into, abi::data_offset(ticket.tag))
    }

    /// Has a read bring `data`.
    ///
    /// # Errors
    /// As above.
    pub fn bring(&self, ticket: &Ticket, data: &[u8]) -> io::Result<()> {
        self.of(ticket)?.file.write_all_at(data, abi::data_offset(ticket.tag))
    }

    /// Completes a request with the number of bytes moved, or an error number.
    pub fn complete(&self, ticket: Ticket, result: Result<u32, i32>) {
        if let Some(shared) = self.0.upgrade() {
            shared.complete(ticket, result);
        }
    }

    /// Closes the queue: requests under way may take ten more seconds.
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

/// The kernel's descriptions of requests, one a tag.
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
        // SAFETY: a new mapping at an address of the kernel's choice, which nothing else knows.
        let memory =
            unsafe { libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Descriptions { memory: NonNull::new(memory).expect("a mapping is never at address 0"), bytes })
    }

    /// The kernel's description of the request with a tag. The request has arrived and is not complete, so the kernel does
    /// not write there.
    fn of(&self, tag: u16) -> [u8; DESCRIPTION_BYTES] {
        let start = usize::from(tag) * DESCRIPTION_BYTES;
        assert!(start + DESCRIPTION_BYTES <= self.bytes, "a tag of this queue");
        // SAFETY: within the mapping, as was just asserted; the kernel wrote it before it said that the request has come.
        unsafe { self.memory.cast::<u8>().add(start).cast::<[u8; DESCRIPTION_BYTES]>().read_volatile() }
    }
}

impl Drop for Descriptions {
    fn drop(&mut self) {
        // SAFETY: mapped with this length, and no reference into it exists.
        unsafe { libc::munmap(self.memory.as_ptr(), self.bytes) };
    }
}

/// A device's queue.
pub struct Queue {
    // The ring goes first: with it go the commands that name the memory and the file.
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
        // One command per tag and one read of the wake event: what one round submits.
        let ring = IoUring::new(u32::from(depth) + 1).map_err(UblkError::io("io_uring, which ublk needs"))?;
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let wake = wake.map_err(|error| UblkError::io("an eventfd")(error.into()))?;
        let turns = (0..depth).map(|_| AtomicU32::new(0)).collect();
        let shared = Arc::new(Shared { file, turns, state: Mutex::default(), wake });
        Ok(Queue { ring, descriptions, shared, depth })
    }

    /// How its requests are completed.
    pub fn way(&self) -> Completer {
        Completer(Arc::downgrade(&self.shared))
    }

    /// Passes each request to `each`, which must not block, until the device is removed. `ready` is called once the
    /// device can be started. Everything is called from the calling thread, by which the kernel knows the queue.
    ///
    /// # Errors
    /// Errors of the ring.
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
                    // The value does not matter; the requests are examined anyway.
                    let _ = rustix::io::read(&self.shared.wake, &mut [0; 8]);
                    self.await_wake();
                } else if result < 0 {
                    // The device goes.
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

    /// Reports completed requests to the kernel, and fetches the next one for each tag; returns whether the device is
    /// being removed.
    fn commit(&mut self, under_way: &mut [bool]) -> bool {
        let (done, closing) = {
            let mut state = self.shared.state();
            (std::mem::take(&mut state.done), state.closing)
        };
        for (ticket, result) in done {
            // Unless it was given up.
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
                // A signal, and nothing in time.
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
        // SAFETY: the entry names no memory, and its file is open for as long as the ring.
        unsafe { self.ring.submission().push(entry) }.expect("one entry per tag, and one more");
    }
}
