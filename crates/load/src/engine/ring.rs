//! [`Ring`]: io_uring. One system call submits a batch and waits for the next completion.

use std::io;
use std::os::fd::RawFd;

use headstack_workload::{Kind, Request};
use io_uring::types::{Fd, Fixed, SubmitArgs, Timespec};
use io_uring::{IoUring, Submitter, cqueue, opcode, squeue};

use super::flushes::Flushes;
use super::system_calls::{PUNCH_HOLE, trim};
use super::{Completion, Setup, Wait, await_by};
use crate::LoadError;
use crate::buffers::{Buffers, Memory};
use crate::target_map::{Piece, TargetMap, TargetPlace};
use crate::waker::Waker;

/// Name of the action that fails if io_uring is not available.
pub const SETUP: &str = "io_uring_setup";
/// `BLOCK_URING_CMD_DISCARD` of `linux/blkdev.h`: _IO(0x12, 0). Linux 6.12 and later.
const DISCARD: u32 = 0x1200;
/// Maximum size of memory that the kernel registers, in bytes.
const REGISTERED_MAX: usize = 1 << 30;
/// Maximum number of ring entries.
pub(super) const ENTRIES_MAX: u32 = 32_768;

/// The ring of one thread.
///
/// With deferred task work, the kernel completes requests in batches within the call that waits for them, instead of
/// interrupting the thread for each request (`io_uring_setup(2)`, Linux 6.1). Registered files, buffers and rings need
/// no lookup, pinning or reference count per request.
pub struct Ring {
    ring: IoUring,
    map: TargetMap,
    buffers: Buffers,
    buffers_are_registered: bool,
    name: String,
    /// Descriptor that becomes readable when this thread must wake up.
    waker_fd: RawFd,
    /// Trims in flight in the ring, and trims that system calls must execute.
    trims: Vec<(u32, Request)>,
    trims_by_calls: Vec<(u32, Request)>,
    /// Buffer lists of transfers in flight that are longer than a buffer.
    long: Vec<(u32, Box<[libc::iovec]>)>,
    /// Whether the kernel's ring supports trims of devices; if not, system calls are used.
    trims_by_ring: bool,
    flushes: Flushes,
    /// Completions of trims and flushes that have not been processed yet.
    special: Vec<(u64, i32)>,
    batch: Batch,
}

/// Transfers that are submitted together: two after a wait, then twice as many each time until the next wait. The
/// device may be idle after a wait, so the first few requests keep it busy while the others are prepared; large batches
/// save calls and doorbells. At depths 32 and 64 (virtio), this took less processor time at equal IOPS than batches of
/// 4, 8 or 16, and than doubling from 4.
pub(super) struct Batch {
    /// Number of transfers prepared but not yet submitted.
    taken: u32,
    size: u32,
}

impl Batch {
    /// The first batch after a wait.
    pub(super) const FIRST: Batch = Batch { taken: 0, size: 2 };

    /// Adds a transfer. Returns whether the batch is full.
    #[inline]
    pub(super) fn takes(&mut self) -> bool {
        self.taken += 1;
        self.taken >= self.size
    }

    /// Records that the batch was submitted.
    #[inline]
    pub(super) fn is_handed_over(&mut self) {
        *self = Batch { taken: 0, size: self.size.saturating_mul(2) };
    }
}

/// Flags of trims and flushes, combined with the slot.
const TRIM: u64 = 1 << 32;
const FLUSH: u64 = 1 << 33;
/// User data of the end of a wait without a completion.
const WAKE: u64 = 1 << 34;

impl Ring {
    /// Creates a ring for the calling thread. `waker` ends its waits.
    ///
    /// # Errors
    /// Returns an error with the action [`SETUP`] if io_uring is not available, and other errors if the kernel grants
    /// no memory.
    pub fn new(setup: Setup, waker: &Waker) -> Result<Ring, LoadError> {
        let failed = |action| {
            let target = setup.name.clone();
            move |source| LoadError::Io { target, action, source }
        };
        // A flush takes one entry per file. Trims are submitted first, when the entries of all slots are free.
        let entries = (setup.slots + 1).max(setup.map.pieces().len() as u32).clamp(1, ENTRIES_MAX);
        let ring = set_up(entries).map_err(failed(SETUP))?;
        let fds: Vec<i32> = setup.map.pieces().iter().map(Piece::fd).collect();
        register_files(ring.submitter(), &fds).map_err(failed("register files"))?;
        let buffers = Buffers::new(setup.slots, setup.longest_bytes, setup.own_buffers).map_err(failed("allocate"))?;
        // SAFETY: the memory outlives the ring, which is dropped first (fields drop in declaration order).
        let registered = unsafe { register_buffers(&ring.submitter(), &buffers) };
        let mut ring = Ring {
            ring,
            map: setup.map,
            buffers,
            buffers_are_registered: registered,
            name: setup.name,
            waker_fd: waker.fd(),
            trims: Vec::new(),
            trims_by_calls: Vec::new(),
            long: Vec::new(),
            trims_by_ring: true,
            flushes: Flushes::default(),
            special: Vec::new(),
            batch: Batch::FIRST,
        };
        ring.await_waker();
        Ok(ring)
    }

    fn await_waker(&mut self) {
        let wake = opcode::PollAdd::new(Fd(self.waker_fd), libc::POLLIN as u32).build();
        self.push(&wake.user_data(WAKE));
    }

    #[inline]
    pub fn prepare(&mut self, slot: u32, request: &Request) {
        match request.kind {
            Kind::Read | Kind::Write => {
                let entry = self.transfer(slot, request).user_data(u64::from(slot));
                self.push(&entry);
                if self.batch.takes() {
                    self.submit_batch();
                }
            }
            Kind::Trim => self.prepare_trim(slot, request),
            Kind::Flush => self.prepare_flush(slot, request.force_unit_access),
        }
    }

    /// Submits without reading completions. An error here occurs again in the next call that reads completions, and is
    /// reported there.
    #[inline]
    fn submit_batch(&mut self) {
        self.batch.is_handed_over();
        let _ = self.ring.submit();
    }

    /// Submits all accepted requests, including flushes and trims.
    #[inline]
    pub fn hand_over(&mut self) {
        if !self.ring.submission().is_empty() {
            self.submit_batch();
        }
    }

    /// Whether all accepted requests have been submitted.
    #[inline]
    pub fn has_handed_over(&mut self) -> bool {
        self.ring.submission().is_empty()
    }

    #[inline]
    fn transfer(&mut self, slot: u32, request: &Request) -> squeue::Entry {
        let TargetPlace { piece, offset_bytes } = self.map.place(request);
        let (file, length) = (Fixed(piece as u32), request.length_bytes);
        let buffer = match self.buffers.memory(slot, length) {
            Memory::One(buffer) => buffer,
            Memory::Many(pieces) => return self.long_transfer(slot, request, pieces),
        };
        match (request.kind, self.buffers_are_registered) {
            (Kind::Read, true) => opcode::ReadFixed::new(file, buffer, length, 0).offset(offset_bytes).build(),
            (Kind::Read, false) => opcode::Read::new(file, buffer, length).offset(offset_bytes).build(),
            (_, registered) => {
                let flags = if request.force_unit_access { libc::RWF_DSYNC } else { 0 };
                if registered {
                    opcode::WriteFixed::new(file, buffer, length, 0).offset(offset_bytes).rw_flags(flags).build()
                } else {
                    opcode::Write::new(file, buffer, length).offset(offset_bytes).rw_flags(flags).build()
                }
            }
        }
    }

    #[cold]
    fn long_transfer(&mut self, slot: u32, request: &Request, pieces: Box<[libc::iovec]>) -> squeue::Entry {
        let TargetPlace { piece, offset_bytes } = self.map.place(request);
        let (file, data, count) = (Fixed(piece as u32), pieces.as_ptr(), pieces.len() as u32);
        self.long.push((slot, pieces));
        if request.kind == Kind::Read {
            return opcode::Readv::new(file, data, count).offset(offset_bytes).build();
        }
        let flags = if request.force_unit_access { libc::RWF_DSYNC } else { 0 };
        opcode::Writev::new(file, data, count).offset(offset_bytes).rw_flags(flags).build()
    }

    fn prepare_trim(&mut self, slot: u32, request: &Request) {
        if !self.trims_by_ring {
            self.trims_by_calls.push((slot, *request));
            return;
        }
        let TargetPlace { piece, offset_bytes } = self.map.place(request);
        let length = u64::from(request.length_bytes);
        let entry = if !self.map.pieces()[piece].is_device() {
            opcode::Fallocate::new(Fixed(piece as u32), length).offset(offset_bytes).mode(PUNCH_HOLE).build()
        } else {
            let mut command = [0; 16];
            command[..8].copy_from_slice(&length.to_ne_bytes());
            opcode::UringCmd16::new(Fixed(piece as u32), DISCARD).cmd(command).addr(Some(offset_bytes)).build()
        };
        self.trims.push((slot, *request));
        self.push(&entry.user_data(u64::from(slot) | TRIM));
    }

    fn prepare_flush(&mut self, slot: u32, with_metadata: bool) {
        let files = self.map.pieces().len() as u32;
        self.flushes.begin(slot, files);
        for file in 0..files {
            let fsync = opcode::Fsync::new(Fixed(file));
            let fsync = if with_metadata { fsync } else { fsync.flags(io_uring::types::FsyncFlags::DATASYNC) };
            self.push(&fsync.build().user_data(u64::from(slot) | FLUSH));
        }
    }

    #[inline]
    fn push(&mut self, entry: &squeue::Entry) {
        loop {
            // SAFETY: buffers do not move while the ring exists, and files stay open as long as the map exists.
            if unsafe { self.ring.submission().push(entry) }.is_ok() {
                return;
            }
            // The queue can only be full of flushes of many files; submitting empties it.
            if self.ring.submit().is_err() {
                std::thread::yield_now();
            }
        }
    }

    #[inline]
    pub fn drive(&mut self, wait: Wait, done: &mut Vec<Completion>) -> Result<(), LoadError> {
        if !self.trims_by_calls.is_empty() {
            self.trim_by_calls(done);
        }
        await_by(wait, done, |at_most_ns, done| {
            self.batch = Batch::FIRST;
            enter(&mut self.ring, at_most_ns, &self.name)?;
            self.reap(done);
            Ok(())
        })
    }

    #[inline]
    fn reap(&mut self, done: &mut Vec<Completion>) {
        for entry in self.ring.completion() {
            let (data, result) = (entry.user_data(), entry.result());
            if data < TRIM {
                done.push(Completion { slot: data as u32, result });
                if !self.long.is_empty() {
                    self.long.retain(|long| long.0 != data as u32);
                }
            } else {
                self.special.push((data, result));
            }
        }
        if !self.special.is_empty() {
            self.reap_special(done);
        }
    }

    fn reap_special(&mut self, done: &mut Vec<Completion>) {
        let mut special = std::mem::take(&mut self.special);
        for (data, result) in special.drain(..) {
            let slot = data as u32;
            if data & WAKE != 0 {
                Waker::drain(self.waker_fd);
                self.await_waker();
                continue;
            }
            if data & FLUSH != 0 {
                done.extend(self.flushes.ended(slot, result));
                continue;
            }
            let at = self.trims.iter().position(|trim| trim.0 == slot).expect("the slot has a trim in flight");
            let trim = self.trims.swap_remove(at);
            if matches!(-result, libc::EOPNOTSUPP | libc::EINVAL) {
                // Rings of kernels before 6.12 do not support trims of devices. If the request itself is invalid, the
                // system call fails again.
                self.trims_by_ring = false;
                self.trims_by_calls.push(trim);
            } else {
                done.push(Completion { slot, result });
            }
        }
        self.special = special;
        self.trim_by_calls(done);
    }

    fn trim_by_calls(&mut self, done: &mut Vec<Completion>) {
        for (slot, request) in self.trims_by_calls.drain(..) {
            let TargetPlace { piece, offset_bytes } = self.map.place(&request);
            let piece = &self.map.pieces()[piece];
            done.push(Completion {
                slot,
                result: trim(piece.fd(), piece.is_device(), offset_bytes, request.length_bytes),
            });
        }
    }

    pub fn buffers(&mut self) -> &mut Buffers {
        &mut self.buffers
    }
}

impl Drop for Ring {
    /// Releases the files at once. The kernel dismantles a ring only some time after it is closed, and files that it
    /// still holds would keep their file system from being unmounted.
    fn drop(&mut self) {
        let _ = self.ring.submitter().unregister_files();
    }
}

/// Submits queued requests, lets the kernel run deferred work, and waits for a completion, for at most `at_most_ns` or
/// without limit. Makes no system call if there is nothing to submit and nothing to wait for.
#[inline]
pub(super) fn enter<S: squeue::EntryMarker, C: cqueue::EntryMarker>(
    ring: &mut IoUring<S, C>,
    at_most_ns: Option<u64>,
    name: &str,
) -> Result<(), LoadError> {
    let queue = ring.submission();
    if at_most_ns == Some(0) && queue.is_empty() && !queue.taskrun() && !queue.cq_overflow() {
        return Ok(());
    }
    drop(queue);
    loop {
        // Deferred work runs only on request, even if the caller does not wait.
        let result = match at_most_ns {
            None => ring.submit_and_wait(1),
            Some(0) => ring.submit_and_wait(0),
            Some(ns) => {
                let time = Timespec::new().sec(ns / 1_000_000_000).nsec((ns % 1_000_000_000) as u32);
                ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&time))
            }
        };
        match result {
            Ok(_) => return Ok(()),
            Err(error) => match error.raw_os_error() {
                Some(libc::ETIME) => return Ok(()),
                Some(libc::EINTR) => {}
                // There is no room for completions or requests until some completions are reaped.
                Some(libc::EBUSY | libc::EAGAIN) => return Ok(()),
                _ => {
                    return Err(LoadError::Io { target: name.to_owned(), action: "io_uring_enter", source: error });
                }
            },
        }
    }
}

/// Registers the files and the ring, so that the kernel need not look them up for each request.
pub(super) fn register_files(mut submitter: Submitter<'_>, fds: &[i32]) -> io::Result<()> {
    submitter.register_files(fds)?;
    // This is an optimization of Linux 5.18; without it, each call looks up its ring.
    let _ = submitter.register_ring_fd();
    Ok(())
}

/// Registers the buffers, so that the kernel need not pin them for each request. Returns whether this succeeded.
///
/// # Safety
/// The buffers must outlive the ring.
pub(super) unsafe fn register_buffers(submitter: &Submitter<'_>, buffers: &Buffers) -> bool {
    let whole = buffers.whole();
    // SAFETY: the caller guarantees that the buffers outlive the ring.
    whole.iov_len <= REGISTERED_MAX && unsafe { submitter.register_buffers(&[whole]) }.is_ok()
}

/// Creates the best ring that this kernel supports.
pub(super) fn set_up<S: squeue::EntryMarker, C: cqueue::EntryMarker>(entries: u32) -> io::Result<IoUring<S, C>> {
    let mut deferring = IoUring::<S, C>::builder();
    match deferring.setup_single_issuer().setup_defer_taskrun().setup_taskrun_flag().build(entries) {
        // Kernels before 6.1 do not know these flags.
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => IoUring::<S, C>::builder().build(entries),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use headstack_needs::{Need, lacks};

    use super::*;
    use crate::target_map::TargetHandle;

    /// Returns `rw_flags` of `struct io_uring_sqe`.
    fn rw_flags(entry: &squeue::Entry) -> i32 {
        // SAFETY: an entry has the layout of the kernel's structure of 64 bytes, and any bytes are valid numbers.
        let words: &[i32; 16] = unsafe { &*(&raw const *entry).cast() };
        words[7]
    }

    #[test]
    fn fua_writes_set_dsync_with_any_buffer() {
        const { assert!(size_of::<squeue::Entry>() == 64) };
        let map = TargetMap::new([(TargetHandle::File(0), 1 << 20)]);
        let setup = Setup { map, slots: 1, longest_bytes: 4096, own_buffers: false, name: "a file".to_owned() };
        let mut ring = match Ring::new(setup, &Waker::new().unwrap()) {
            Err(LoadError::Io { action: SETUP, source, .. }) => {
                return lacks(Need::Kernel, format_args!("io_uring: {source}"));
            }
            ring => ring.unwrap(),
        };
        for (registered, length_bytes) in [(true, 4096), (false, 4096), (false, 65_536)] {
            ring.buffers_are_registered = registered;
            for (kind, force_unit_access, expected) in
                [(Kind::Write, true, libc::RWF_DSYNC), (Kind::Write, false, 0), (Kind::Read, false, 0)]
            {
                let request = Request { kind, offset_bytes: 0, length_bytes, force_unit_access, ordered: false };
                let entry = ring.transfer(0, &request);
                assert_eq!(rw_flags(&entry), expected, "{registered} {request:?}");
            }
        }
    }
}
