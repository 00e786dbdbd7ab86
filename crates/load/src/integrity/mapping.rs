//! [`Mapping`]: the memory of the ledger's entries and counters, anonymous or file-backed.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// The ledger entry of one unit, 16 bytes. Fields are stored one at a time, in an order that is consistent at any
/// interruption.
#[repr(C, align(16))]
#[derive(Debug, Default)]
pub(super) struct Entry {
    /// Latest generation issued.
    pub issued: AtomicU32,
    /// Oldest generation that may be read.
    pub floor: AtomicU32,
    /// Oldest generation that may be read after a power loss, as known from flushes before the floor was last raised.
    pub durable: AtomicU32,
    /// Flags [`BUSY`](super::ledger::BUSY), [`TRIMMED`](super::ledger::TRIMMED) and
    /// [`TRIM_LOST`](super::ledger::TRIM_LOST), and the epoch.
    pub state: AtomicU32,
}

/// Counters of the whole ledger. Each group has its own cache line.
#[repr(C, align(64))]
#[derive(Debug)]
pub(super) struct Counters {
    /// Number of requests issued.
    pub requests: AtomicU64,
    _requests_line: [u64; 7],
    /// Current flush epoch of acknowledgements. Each submitted flush increments it.
    pub epoch: AtomicU32,
    /// Last epoch that is on the medium.
    pub flushed: AtomicU32,
    /// Number of trims issued.
    pub trims: AtomicU64,
    /// 1 if everything was synced and nothing has been issued since then.
    pub clean: AtomicU32,
    /// 1 if the host went down with an unsynced ledger, so that the newest entries may be missing.
    pub lagging: AtomicU32,
}

/// Zeroed memory that is only accessed through atomics. Pages are allocated on the first write.
#[derive(Debug)]
pub(crate) struct Mapping {
    begin: NonNull<u8>,
    bytes: usize,
}

// SAFETY: only shared references to atomics are handed out, and the mapping itself does not change.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps the first `bytes` of `file`, or that much anonymous memory.
    pub(crate) fn new(file: Option<&File>, bytes: u64) -> io::Result<Mapping> {
        let bytes = usize::try_from(bytes).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        let (kind, descriptor) = match file {
            Some(file) => (libc::MAP_SHARED, file.as_raw_fd()),
            None => (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1),
        };
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address chosen by the kernel does not affect existing memory.
        let begin =
            unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, kind | libc::MAP_NORESERVE, descriptor, 0) };
        match NonNull::new(begin.cast::<u8>()) {
            Some(begin) if begin.as_ptr().cast() != libc::MAP_FAILED => Ok(Mapping { begin, bytes }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Returns entry `index` of the array that starts at byte `at`. Panics outside the mapping.
    pub(super) fn entry(&self, at: usize, index: usize) -> &Entry {
        let place = at + index * size_of::<Entry>();
        assert!(place + size_of::<Entry>() <= self.bytes && place.is_multiple_of(align_of::<Entry>()));
        // SAFETY: the address is within the mapping and aligned, as just asserted; any bits are valid atomics, and
        // these bytes are only accessed as atomics.
        unsafe { self.begin.add(place).cast::<Entry>().as_ref() }
    }

    /// Returns word `index` of the array that starts at byte `at`.
    pub(crate) fn word(&self, at: usize, index: usize) -> &AtomicU64 {
        let place = at + index * size_of::<AtomicU64>();
        assert!(place + size_of::<AtomicU64>() <= self.bytes && place.is_multiple_of(align_of::<AtomicU64>()));
        // SAFETY: as for entries.
        unsafe { self.begin.add(place).cast::<AtomicU64>().as_ref() }
    }

    /// Returns the counters, which start at byte `at`.
    pub(super) fn counters(&self, at: usize) -> &Counters {
        assert!(at + size_of::<Counters>() <= self.bytes && at.is_multiple_of(align_of::<Counters>()));
        // SAFETY: as for entries.
        unsafe { self.begin.add(at).cast::<Counters>().as_ref() }
    }

    /// Waits until the memory has been written to the file.
    pub(crate) fn sync(&self) -> io::Result<()> {
        // SAFETY: address and length are those of the mapping.
        match unsafe { libc::msync(self.begin.as_ptr().cast(), self.bytes, libc::MS_SYNC) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: address and length are those of the mapping, and no reference outlives `self`.
        unsafe { libc::munmap(self.begin.as_ptr().cast(), self.bytes) };
    }
}
