//! [`Buffers`]: page-aligned memory that requests read into and write from.

use std::io;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use headstack_workload::{Purpose, Random};

/// Upper limit of the buffer memory, in bytes. Above it, requests share buffers and read data is not checked.
const BYTES_MAX: usize = 1 << 28;
/// Alignment of transfers, in bytes: one page, which every device accepts.
pub const ALIGN_BYTES: usize = 4096;
/// `IOV_MAX` of Linux: the kernel cuts a transfer with more pieces short, as it does with transfers above 2 GiB.
const PIECES_MAX: usize = 1024;
/// Block size at which deduplicating or compressing storage compares contents.
const SECTOR_BYTES: usize = 512;

/// The memory of one transfer.
pub enum Memory {
    /// The buffer of the request's slot.
    One(*mut u8),
    /// Pieces for `preadv(2)`, at most `PIECES_MAX`, of a transfer that is longer than a buffer and uses the whole
    /// memory.
    Many(Box<[libc::iovec]>),
}

// SAFETY: the addresses are within memory that engines keep until their requests have ended.
unsafe impl Send for Memory {}

/// One page-aligned buffer per slot, all in one mapping.
pub struct Buffers {
    memory: NonNull<u8>,
    length_bytes: usize,
    stride_bytes: usize,
    count: usize,
    writes: u64,
}

// SAFETY: only this value owns the memory, whichever thread it is in.
unsafe impl Send for Buffers {}

impl Buffers {
    /// Allocates buffers of `each_bytes`, filled with incompressible noise. With `own`, every slot has its own buffer.
    ///
    /// # Errors
    /// Returns an error if the system does not have that much memory.
    pub fn new(slots: u32, each_bytes: u32, own: bool) -> io::Result<Buffers> {
        let stride_bytes = (each_bytes as usize).max(1).next_multiple_of(ALIGN_BYTES);
        let room = if own { usize::MAX } else { (BYTES_MAX / stride_bytes).max(1) };
        let count = (slots as usize).min(room);
        let length_bytes = count.checked_mul(stride_bytes).ok_or(io::ErrorKind::OutOfMemory)?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: maps new memory, which nothing else refers to.
        let memory = unsafe { libc::mmap(ptr::null_mut(), length_bytes, protection, flags, -1, 0) };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the range was just mapped, and the hint does not change its contents. Fewer pages make pinning
        // faster.
        unsafe { libc::madvise(memory, length_bytes, libc::MADV_HUGEPAGE) };
        let memory = NonNull::new(memory.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        let mut buffers = Buffers { memory, length_bytes, stride_bytes, count, writes: 0 };
        buffers.fill_with_noise();
        Ok(buffers)
    }

    fn fill_with_noise(&mut self) {
        let mut noise = Random::new(unlike_others(), Purpose::Choices);
        // SAFETY: the range was mapped readable and writable, is page-aligned, and is borrowed exclusively.
        let words =
            unsafe { std::slice::from_raw_parts_mut(self.memory.as_ptr().cast::<u64>(), self.length_bytes / 8) };
        words.iter_mut().for_each(|word| *word = noise.bits());
    }

    /// Returns the address of the slot's buffer.
    #[inline]
    fn start(&self, slot: u32) -> *mut u8 {
        let index =
            if self.count.is_power_of_two() { slot as usize & (self.count - 1) } else { slot as usize % self.count };
        // SAFETY: `index` is below `count`, and `count` strides were mapped.
        unsafe { self.memory.as_ptr().add(index * self.stride_bytes) }
    }

    /// Returns the length of each slot's buffer in bytes.
    pub fn each_bytes(&self) -> usize {
        self.stride_bytes
    }

    /// Returns the memory for `length` bytes of the slot. A request longer than a buffer spans the
    /// whole memory, wrapping around if needed; its contents are not checked.
    #[inline]
    pub fn memory(&self, slot: u32, length: u32) -> Memory {
        if length as usize <= self.stride_bytes { Memory::One(self.start(slot)) } else { self.pieces(length as usize) }
    }

    #[cold]
    fn pieces(&self, length: usize) -> Memory {
        let piece = |at: usize| {
            let iov_len = self.length_bytes.min(length - at);
            libc::iovec { iov_base: self.memory.as_ptr().cast(), iov_len }
        };
        Memory::Many((0..length).step_by(self.length_bytes).take(PIECES_MAX).map(piece).collect())
    }

    /// Returns the first `length` bytes of the slot's buffer. Call this only while no request in the slot is in flight.
    #[inline]
    pub fn slice(&mut self, slot: u32, length: u32) -> &mut [u8] {
        debug_assert!(length as usize <= self.stride_bytes);
        // SAFETY: as in `start`; the exclusive borrow and the caller's promise keep others out.
        unsafe { std::slice::from_raw_parts_mut(self.start(slot), length as usize) }
    }

    /// Makes each sector of a write unique, so that deduplicating storage finds no equal blocks.
    #[inline]
    pub fn freshen(&mut self, slot: u32, length: u32) {
        let mut writes = self.writes;
        // A write longer than a buffer repeats its own data or data of other slots.
        let length = (length as usize).min(self.stride_bytes) as u32;
        for sector in self.slice(slot, length).chunks_mut(SECTOR_BYTES) {
            writes += 1;
            // The multiplication spreads the counter over all bits, so that the words form no pattern.
            let word = writes.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_ne_bytes();
            let length = sector.len().min(word.len());
            sector[..length].copy_from_slice(&word[..length]);
        }
        self.writes = writes;
    }

    /// Fills the slot's buffer with repetitions of `pattern`.
    pub fn fill(&mut self, slot: u32, length: u32, pattern: &[u8]) {
        let slice = self.slice(slot, length);
        match pattern {
            [byte] => slice.fill(*byte),
            _ => slice.chunks_mut(pattern.len()).for_each(|part| part.copy_from_slice(&pattern[..part.len()])),
        }
    }

    /// Returns the whole memory, for registration with the kernel.
    pub fn whole(&self) -> libc::iovec {
        libc::iovec { iov_base: self.memory.as_ptr().cast(), iov_len: self.length_bytes }
    }
}

/// Returns a seed that no other thread or earlier run uses, so that deduplicating storage finds no equal blocks.
fn unlike_others() -> u64 {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // The counter is added to the bits in which the clock varies least, so that equal times give different seeds.
    (since_1970.as_nanos() as u64) ^ COUNT.fetch_add(1, Ordering::Relaxed).rotate_right(16)
}

impl Drop for Buffers {
    fn drop(&mut self) {
        // SAFETY: mapped in `new` with this length, and unmapped only here; engines end all requests before they drop
        // it.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), self.length_bytes) };
    }
}
