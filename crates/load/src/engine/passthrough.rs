//! [`Passthrough`]: NVMe commands through io_uring. Entries of 128 bytes contain the commands, and completions of 32
//! bytes contain the drive's status.

use std::os::fd::RawFd;
use std::sync::Arc;

use headstack_workload::{Kind, Request};
use io_uring::types::{Fd, Fixed};
use io_uring::{IoUring, cqueue, opcode, squeue};

use super::flushes::Flushes;
use super::ring::{self, Batch};
use super::{Completion, Setup, Wait, await_by};
use crate::LoadError;
use crate::buffers::{Buffers, Memory};
use crate::nvme::{Command, Namespace, TrimRange, result_of};
use crate::target_map::{Piece, TargetMap, TargetPlace};
use crate::waker::Waker;

/// `NVME_URING_CMD_IO` of `linux/nvme_ioctl.h`: _IOWR('N', 0x80, struct nvme_uring_cmd). Linux 5.19 and later.
const NVME_URING_CMD_IO: u32 = 0xc048_4e80;
/// [`NVME_URING_CMD_IO`] with several buffers.
const NVME_URING_CMD_IO_VEC: u32 = 0xc048_4e81;

/// Flags combined with the slot: a flush, and the end of a wait without a completion.
const FLUSH: u64 = 1 << 33;
const WAKE: u64 = 1 << 34;

/// NVMe commands of one thread.
pub struct Passthrough {
    ring: IoUring<squeue::Entry128, cqueue::Entry32>,
    namespaces: Vec<Arc<Namespace>>,
    map: TargetMap,
    buffers: Buffers,
    buffers_are_registered: bool,
    /// For each slot, the bytes of the transfer in flight, and the range to which a trim command refers.
    lengths: Vec<u32>,
    ranges: Box<[TrimRange]>,
    /// Buffer lists of transfers in flight that are longer than a buffer.
    long: Vec<(u32, Box<[libc::iovec]>)>,
    flushes: Flushes,
    batch: Batch,
    waker_fd: RawFd,
    name: String,
}

impl Passthrough {
    /// Creates a ring for the calling thread. `waker` ends its waits.
    ///
    /// # Errors
    /// Returns an error with the action [`ring::SETUP`] if the kernel has no such rings, and other errors if the job
    /// mixes namespaces with other targets or the kernel grants no memory.
    pub fn new(setup: Setup, waker: &Waker) -> Result<Passthrough, LoadError> {
        let failed = |action| {
            let target = setup.name.clone();
            move |source| LoadError::Io { target, action, source }
        };
        let namespaces = setup.map.pieces().iter().map(|piece| piece.namespace().cloned()).collect::<Option<Vec<_>>>();
        let namespaces = namespaces.ok_or_else(|| LoadError::Target {
            target: setup.name.clone(),
            message: "NVMe character devices and other targets cannot share a job; use one job for each".to_owned(),
        })?;
        let entries = (setup.slots + 1).max(namespaces.len() as u32).clamp(1, ring::ENTRIES_MAX);
        let ring = ring::set_up(entries).map_err(failed(ring::SETUP))?;
        let fds: Vec<RawFd> = setup.map.pieces().iter().map(Piece::fd).collect();
        ring::register_files(ring.submitter(), &fds).map_err(failed("register files"))?;
        let buffers = Buffers::new(setup.slots, setup.longest_bytes, setup.own_buffers).map_err(failed("allocate"))?;
        // SAFETY: the memory outlives the ring, which is dropped first (fields drop in declaration order).
        let buffers_are_registered = unsafe { ring::register_buffers(&ring.submitter(), &buffers) };
        let mut engine = Passthrough {
            ring,
            namespaces,
            map: setup.map,
            buffers,
            buffers_are_registered,
            lengths: vec![0; setup.slots as usize],
            ranges: vec![TrimRange::default(); setup.slots as usize].into_boxed_slice(),
            long: Vec::new(),
            flushes: Flushes::default(),
            batch: Batch::FIRST,
            waker_fd: waker.fd(),
            name: setup.name,
        };
        engine.await_waker();
        Ok(engine)
    }

    fn await_waker(&mut self) {
        let wake = opcode::PollAdd::new(Fd(self.waker_fd), libc::POLLIN as u32).build();
        self.push(&wake.user_data(WAKE).into());
    }

    #[inline]
    pub fn prepare(&mut self, slot: u32, request: &Request) {
        if request.kind == Kind::Flush {
            return self.prepare_flush(slot);
        }
        let TargetPlace { piece, offset_bytes } = self.map.place(request);
        let namespace = &self.namespaces[piece];
        let geometry = namespace.geometry();
        let (how, command, buffer) = if request.kind == Kind::Trim {
            self.lengths[slot as usize] = 0;
            let range = &mut self.ranges[slot as usize];
            *range = TrimRange::new(offset_bytes, request.length_bytes.into(), geometry);
            (NVME_URING_CMD_IO, Command::trim(range, geometry), None)
        } else {
            self.lengths[slot as usize] = request.length_bytes;
            let transfer = |memory| Command::transfer(request, offset_bytes, geometry, memory, namespace.is_durable());
            match self.buffers.memory(slot, request.length_bytes) {
                Memory::One(memory) => {
                    (NVME_URING_CMD_IO, transfer(memory as u64), self.buffers_are_registered.then_some(0))
                }
                Memory::Many(pieces) => {
                    let command = transfer(0).scattered(pieces.as_ptr(), pieces.len());
                    self.long.push((slot, pieces));
                    (NVME_URING_CMD_IO_VEC, command, None)
                }
            }
        };
        let entry = opcode::UringCmd80::new(Fixed(piece as u32), how).cmd(command.to_bytes());
        self.push(&entry.buf_index(buffer).build().user_data(u64::from(slot)));
        if self.batch.takes() {
            self.submit_batch();
        }
    }

    #[cold]
    fn prepare_flush(&mut self, slot: u32) {
        self.flushes.begin(slot, self.namespaces.len() as u32);
        for piece in 0..self.namespaces.len() {
            let command = Command::flush(self.namespaces[piece].geometry()).to_bytes();
            let entry = opcode::UringCmd80::new(Fixed(piece as u32), NVME_URING_CMD_IO).cmd(command).build();
            self.push(&entry.user_data(u64::from(slot) | FLUSH));
        }
    }

    /// Submits without reading completions. An error here occurs again in the next call that reads completions, and is
    /// reported there.
    #[inline]
    fn submit_batch(&mut self) {
        self.batch.is_handed_over();
        let _ = self.ring.submit();
    }

    /// Submits all accepted requests.
    #[inline]
    pub fn hand_over(&mut self) {
        if !self.has_handed_over() {
            self.submit_batch();
        }
    }

    /// Whether all accepted requests have been submitted.
    #[inline]
    pub fn has_handed_over(&mut self) -> bool {
        self.ring.submission().is_empty()
    }

    #[inline]
    fn push(&mut self, entry: &squeue::Entry128) {
        // SAFETY: buffers and ranges do not move while the ring exists, and files stay open as long as the map exists.
        while unsafe { self.ring.submission().push(entry) }.is_err() {
            // The queue can only be full of flushes of many namespaces; submitting empties it.
            if self.ring.submit().is_err() {
                std::thread::yield_now();
            }
        }
    }

    #[inline]
    pub fn drive(&mut self, wait: Wait, done: &mut Vec<Completion>) -> Result<(), LoadError> {
        await_by(wait, done, |at_most_ns, done| {
            self.batch = Batch::FIRST;
            ring::enter(&mut self.ring, at_most_ns, &self.name)?;
            self.reap(done);
            Ok(())
        })
    }

    #[inline]
    fn reap(&mut self, done: &mut Vec<Completion>) {
        let mut is_woken = false;
        for entry in self.ring.completion() {
            let (data, said) = (entry.user_data(), entry.result());
            let slot = data as u32;
            if data & FLUSH != 0 {
                done.extend(self.flushes.ended(slot, result_of(said, 0)));
            } else if data & WAKE != 0 {
                is_woken = true;
            } else {
                done.push(Completion { slot, result: result_of(said, self.lengths[slot as usize]) });
                if !self.long.is_empty() {
                    self.long.retain(|long| long.0 != slot);
                }
            }
        }
        if is_woken {
            Waker::drain(self.waker_fd);
            self.await_waker();
        }
    }

    pub fn buffers(&mut self) -> &mut Buffers {
        &mut self.buffers
    }
}

impl Drop for Passthrough {
    /// Releases the files at once, like [`Ring`](super::Ring).
    fn drop(&mut self) {
        let _ = self.ring.submitter().unregister_files();
    }
}
