//! [`Ledger`]: the generations that each unit may hold, in memory or in a file that outlives the process.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use twox_hash::XxHash3_64;

use super::Layout;
use super::mapping::{Counters, Entry, Mapping};
use super::stamp::Generation;
use crate::error::LoadError;
use crate::newer_calls;

const MAGIC: u64 = u64::from_le_bytes(*b"hsledgr1");
/// Number of bytes before the entries: the fixed header, then the counters.
const HEADER_BYTES: u64 = 4096;
/// Offset of the counters.
const COUNTERS_AT: usize = 256;
/// Offset of the kernel's boot id.
const BOOT_AT: u64 = 128;
/// Size of the pieces in which the file is allocated before they are written, so that a full file system causes an
/// error and not a SIGBUS.
const PIECE_BYTES: u64 = 64 << 10;
const ENTRY_BYTES: u64 = size_of::<Entry>() as u64;

/// `Entry::state`: a write or trim is in flight.
pub(super) const BUSY: u32 = 1;
/// `Entry::state`: a trim may have left zeros.
pub(super) const TRIMMED: u32 = 2;
/// `Entry::state`: a trim may have left zeros if the writes since the last flush are lost.
pub(super) const TRIM_LOST: u32 = 4;
/// `Entry::state`: lowest bit of the flush epoch in which the floor was acknowledged.
pub(super) const EPOCH_SHIFT: u32 = 3;
const LAST_EPOCH: u32 = u32::MAX >> EPOCH_SHIFT;

/// The generations that each unit may hold. All workers share it.
#[derive(Debug)]
pub struct Ledger {
    mapping: Mapping,
    /// The file, locked against other processes; `None` if the ledger is in memory.
    file: Option<File>,
    name: String,
    layout: Layout,
    run: u64,
    given_room: Vec<AtomicBool>,
}

impl Ledger {
    /// Creates an empty ledger for a new run, in a new file at `path` or in memory, where it is lost when the process
    /// ends.
    ///
    /// The file is sparse and takes [16 bytes per written unit](super#the-ledger). Do not store it on the target.
    ///
    /// # Errors
    /// Returns an error if the file exists or cannot be created or mapped, or if there is no random number for the run.
    pub fn create(layout: Layout, path: Option<&Path>) -> Result<Ledger, LoadError> {
        let name = path.map_or_else(|| "ledger".to_owned(), |path| path.display().to_string());
        let run = random_run().map_err(|source| failed(&name, "getrandom", source))?;
        let bytes = ledger_bytes(layout);
        let file = match path {
            None => None,
            Some(path) => {
                let file = OpenOptions::new().read(true).write(true).create_new(true).open(path);
                let file = file.map_err(|source| failed(&name, "create", source))?;
                lock(&file, &name)?;
                write_header(&file, layout, run, bytes).map_err(|source| failed(&name, "write", source))?;
                Some(file)
            }
        };
        let ledger = Ledger::mapped(file, name, layout, run)?;
        ledger.counters().epoch.store(1, Ordering::Release);
        Ok(ledger)
    }

    /// Opens the ledger of an earlier run at `path`, however that run ended.
    ///
    /// # Errors
    /// Returns an error if the file is not a ledger, is damaged, truncated or of another version, or is in use by
    /// another process.
    pub fn open(path: &Path) -> Result<Ledger, LoadError> {
        let name = path.display().to_string();
        let file = OpenOptions::new().read(true).write(true).open(path);
        let file = file.map_err(|source| failed(&name, "open", source))?;
        lock(&file, &name)?;
        let mut header = [0; BOOT_AT as usize + 16];
        let read = file.read_exact_at(&mut header, 0);
        read.map_err(|_| invalid(&name, "is not a ledger: shorter than a ledger's header of 4096 bytes"))?;
        let (layout, run) = read_header(&header).map_err(|message| invalid(&name, &message))?;
        let length = file.metadata().map_err(|source| failed(&name, "stat", source))?.len();
        if length != ledger_bytes(layout) {
            let expected = ledger_bytes(layout);
            return Err(invalid(&name, &format!("is a ledger of {length} bytes, but its header states {expected}")));
        }
        let ledger = Ledger::mapped(Some(file), name, layout, run)?;
        let counters = ledger.counters();
        if counters.clean.load(Ordering::Acquire) == 0 && header[BOOT_AT as usize..] != boot_id() {
            counters.lagging.store(1, Ordering::Release);
        }
        Ok(ledger)
    }

    fn mapped(file: Option<File>, name: String, layout: Layout, run: u64) -> Result<Ledger, LoadError> {
        let bytes = ledger_bytes(layout);
        let mapping = Mapping::new(file.as_ref(), bytes).map_err(|source| failed(&name, "mmap", source))?;
        let pieces = bytes.div_ceil(PIECE_BYTES);
        let given_room = (0..pieces).map(|_| AtomicBool::new(file.is_none())).collect();
        Ok(Ledger { mapping, file, name, layout, run, given_room })
    }

    /// Returns the layout of the target.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Returns the random number of the run, which every stamp carries.
    pub fn run(&self) -> u64 {
        self.run
    }

    /// Returns whether the host went down with this ledger open, so that its newest entries may be missing, up to the
    /// [bound](super#the-ledger).
    pub fn is_lagging(&self) -> bool {
        self.counters().lagging.load(Ordering::Acquire) != 0
    }

    /// Writes the current state of the ledger to stable storage, so that it survives a power loss of its host.
    ///
    /// # Errors
    /// Returns an error if `msync` fails.
    pub fn sync(&self) -> Result<(), LoadError> {
        self.mapping.sync().map_err(|source| failed(&self.name, "msync", source))
    }

    /// Returns the entry of a unit within the layout.
    pub(super) fn entry(&self, unit: u64) -> &Entry {
        self.mapping.entry(HEADER_BYTES as usize, unit as usize)
    }

    pub(super) fn counters(&self) -> &Counters {
        self.mapping.counters(COUNTERS_AT)
    }

    /// Returns the next range of `units` that contains written or trimmed units. The range is at most `most` units long
    /// and includes gaps of less than `gap` units.
    pub(crate) fn written(&self, units: std::ops::Range<u64>, most: u64, gap: u64) -> Option<std::ops::Range<u64>> {
        let is_issued = |unit: u64| Generation(self.entry(unit).issued.load(Ordering::Acquire)) != Generation::NONE;
        let end = units.end.min(self.layout.units());
        let first = (units.start..end).find(|&unit| is_issued(unit))?;
        let mut last = first;
        for unit in first..end.min(first.saturating_add(most)) {
            if is_issued(unit) {
                last = unit;
            } else if unit - last > gap {
                break;
            }
        }
        Some(first..last + 1)
    }

    /// Starts writing, for a new run or for one that continues after a crash.
    pub(crate) fn begin(&self) -> Result<(), LoadError> {
        if let Some(file) = &self.file {
            self.give_room(0..HEADER_BYTES)?;
            file.write_all_at(&boot_id(), BOOT_AT).map_err(|source| failed(&self.name, "write", source))?;
        }
        let counters = self.counters();
        if counters.lagging.load(Ordering::Acquire) != 0 {
            // Skips request numbers that may have been used after the last page that survived.
            counters.requests.fetch_add(1 << 32, Ordering::AcqRel);
        }
        counters.clean.store(0, Ordering::Release);
        Ok(())
    }

    /// Ends a run with no request in flight. Syncs everything, so that a later power loss loses nothing.
    pub(crate) fn end(&self) -> Result<(), LoadError> {
        self.sync()?;
        self.counters().clean.store(1, Ordering::Release);
        self.sync()
    }

    /// Allocates the entries of these units in the file, since a store without free space would cause a SIGBUS.
    pub(super) fn give_room_to(&self, units: &std::ops::Range<u64>) -> Result<(), LoadError> {
        self.give_room(HEADER_BYTES + units.start * ENTRY_BYTES..HEADER_BYTES + units.end * ENTRY_BYTES)
    }

    fn give_room(&self, bytes: std::ops::Range<u64>) -> Result<(), LoadError> {
        let Some(file) = &self.file else { return Ok(()) };
        for piece in bytes.start / PIECE_BYTES..bytes.end.div_ceil(PIECE_BYTES) {
            let Some(done) = self.given_room.get(piece as usize) else { continue };
            if done.load(Ordering::Acquire) {
                continue;
            }
            let length = PIECE_BYTES.min(ledger_bytes(self.layout) - piece * PIECE_BYTES);
            // SAFETY: a system call on a descriptor that `file` keeps open, without access to memory.
            let code = unsafe {
                libc::posix_fallocate(file.as_raw_fd(), (piece * PIECE_BYTES) as libc::off_t, length as libc::off_t)
            };
            if code != 0 {
                return Err(failed(&self.name, "posix_fallocate", io::Error::from_raw_os_error(code)));
            }
            done.store(true, Ordering::Release);
        }
        Ok(())
    }
}

impl Counters {
    /// Starts a flush, which does not cover later acknowledgements. Returns the epoch that the flush covers.
    pub(super) fn next_epoch(&self) -> u32 {
        let next = |epoch: u32| Some(epoch.saturating_add(1).min(LAST_EPOCH));
        self.epoch.fetch_update(Ordering::AcqRel, Ordering::Acquire, next).unwrap_or(LAST_EPOCH)
    }

    /// Records that a flush of `epoch` is complete. The last epoch never ends, so no flush covers it.
    pub(super) fn flushed(&self, epoch: u32) {
        if epoch < LAST_EPOCH {
            self.flushed.fetch_max(epoch, Ordering::AcqRel);
        }
    }
}

impl Entry {
    /// Returns whether a power loss may bring back zeros that a trim left.
    pub(super) fn may_lose_to_trim(&self, flushed: u32) -> bool {
        let state = self.state.load(Ordering::Acquire);
        state & TRIM_LOST != 0 && state >> EPOCH_SHIFT > flushed
    }

    /// Returns the oldest generation that may be read after a power loss.
    pub(super) fn oldest_durable(&self, flushed: u32) -> Generation {
        let state = self.state.load(Ordering::Acquire);
        let kept = if state >> EPOCH_SHIFT <= flushed { &self.floor } else { &self.durable };
        let durable = Generation(self.durable.load(Ordering::Acquire));
        let kept = Generation(kept.load(Ordering::Acquire));
        if kept.is_before(durable) { durable } else { kept }
    }
}

fn ledger_bytes(layout: Layout) -> u64 {
    (HEADER_BYTES + layout.units() * ENTRY_BYTES).next_multiple_of(HEADER_BYTES)
}

fn lock(file: &File, name: &str) -> Result<(), LoadError> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(std::fs::TryLockError::WouldBlock) => Err(invalid(name, "is in use by another process")),
        Err(std::fs::TryLockError::Error(source)) => Err(failed(name, "flock", source)),
    }
}

fn write_header(file: &File, layout: Layout, run: u64, bytes: u64) -> io::Result<()> {
    let sizes = u64::from(layout.unit_bytes()) | u64::from(layout.sector_bytes()) << 32;
    let mut header = Vec::with_capacity(40);
    for word in [MAGIC, run, layout.span_bytes(), sizes] {
        header.extend_from_slice(&word.to_le_bytes());
    }
    header.extend_from_slice(&XxHash3_64::oneshot(&header).to_le_bytes());
    // The length is set first, so that a process that finds the header also finds the entries.
    file.set_len(bytes)?;
    file.write_all_at(&boot_id(), BOOT_AT)?;
    file.write_all_at(&header, 0)?;
    file.sync_all()
}

fn read_header(header: &[u8]) -> Result<(Layout, u64), String> {
    let word = |index: usize| {
        let bytes = header.get(index * 8..index * 8 + 8).and_then(|bytes| bytes.try_into().ok());
        u64::from_le_bytes(bytes.unwrap_or([0; 8]))
    };
    if word(0) != MAGIC {
        return Err("is not a ledger of this version: it does not begin with `hsledgr1`".to_owned());
    }
    if header.get(..32).map(XxHash3_64::oneshot) != Some(word(4)) {
        return Err("is a ledger whose header is damaged".to_owned());
    }
    let sizes = word(3);
    let layout = Layout::new(word(2), sizes as u32, (sizes >> 32) as u32).map_err(|error| error.to_string())?;
    Ok((layout, word(1)))
}

/// Returns a random number that identifies a run.
pub(crate) fn random_run() -> io::Result<u64> {
    let mut bytes = [0; 8];
    // SAFETY: the kernel writes at most the 8 bytes of `bytes`.
    let count = unsafe { newer_calls::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    if count != bytes.len() as isize {
        return Err(io::Error::last_os_error());
    }
    Ok(u64::from_ne_bytes(bytes))
}

/// Returns the kernel's boot id; zeros if it has none, so that all boots count as the same boot.
fn boot_id() -> [u8; 16] {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let digits: Vec<u8> =
        text.bytes().filter_map(|byte| (byte as char).to_digit(16)).map(|digit| digit as u8).collect();
    let mut id = [0; 16];
    for (byte, pair) in id.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = pair[0] << 4 | pair[1];
    }
    id
}

fn failed(name: &str, action: &'static str, source: io::Error) -> LoadError {
    LoadError::Io { target: name.to_owned(), action, source }
}

fn invalid(name: &str, message: &str) -> LoadError {
    LoadError::Target { target: name.to_owned(), message: message.to_owned() }
}
