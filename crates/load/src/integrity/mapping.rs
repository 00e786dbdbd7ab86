//! Memory of the ledger: anonymous, or a file's pages.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

use super::ledger::{Counters, Entry};

/// Zeroed memory that is only ever touched through atomics. Pages take room when they are first written.
#[derive(Debug)]
pub(crate) struct Mapping {
    begin: NonNull<u8>,
    bytes: usize,
}

// SAFETY: everything handed out is a shared reference to atomics; the mapping itself does not change.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps the first `bytes` of `file`, or as much memory.
    pub(crate) fn new(file: Option<&File>, bytes: u64) -> io::Result<Mapping> {
        let bytes = usize::try_from(bytes).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        let (kind, descriptor) = match file {
            Some(file) => (libc::MAP_SHARED, file.as_raw_fd()),
            None => (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1),
        };
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at a place of the kernel's choice touches no memory of ours.
        let begin =
            unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, kind | libc::MAP_NORESERVE, descriptor, 0) };
        match NonNull::new(begin.cast::<u8>()) {
            Some(begin) if begin.as_ptr().cast() != libc::MAP_FAILED => Ok(Mapping { begin, bytes }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Entry `index` of those that begin at byte `at`. Beyond the mapping is a bug of ours.
    pub(super) fn entry(&self, at: usize, index: usize) -> &Entry {
        let place = at + index * size_of::<Entry>();
        assert!(place + size_of::<Entry>() <= self.bytes && place.is_multiple_of(align_of::<Entry>()));
        // SAFETY: within the mapping and aligned, as just asserted; any bits are valid atomics, and nothing else than
        // atomics ever refers to these bytes.
        unsafe { self.begin.add(place).cast::<Entry>().as_ref() }
    }

    /// Word `index` of those that begin at byte `at`.
    pub(crate) fn word(&self, at: usize, index: usize) -> &AtomicU64 {
        let place = at + index * size_of::<AtomicU64>();
        assert!(place + size_of::<AtomicU64>() <= self.bytes && place.is_multiple_of(align_of::<AtomicU64>()));
        // SAFETY: as for entries.
        unsafe { self.begin.add(place).cast::<AtomicU64>().as_ref() }
    }

    /// The counters, which begin at byte `at`.
    pub(super) fn counters(&self, at: usize) -> &Counters {
        assert!(at + size_of::<Counters>() <= self.bytes && at.is_multiple_of(align_of::<Counters>()));
        // SAFETY: as for entries.
        unsafe { self.begin.add(at).cast::<Counters>().as_ref() }
    }

    /// Waits until the file has what the memory has.
    pub(crate) fn sync(&self) -> io::Result<()> {
        // SAFETY: exactly the mapping.
        match unsafe { libc::msync(self.begin.as_ptr().cast(), self.bytes, libc::MS_SYNC) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping, to which no reference outlives `self`.
        unsafe { libc::munmap(self.begin.as_ptr().cast(), self.bytes) };
    }
}
