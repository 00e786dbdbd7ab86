//! [`JournalWriter`]: writes a journal during a session.
//!
//! Callers copy each record once into a buffer in memory; the writer's thread takes the buffer when it is free, adds
//! the checksums and writes it. The buffer is bounded: a caller waits while it is full.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;

use headstack_files::Place;
use rustix::fs::OFlags;

use super::{FAILED, FORCED, HEAD_BYTES, Head, Kind, MAGIC, METADATA, SUM_BYTES, header, sum};
use crate::error::refused;
use crate::{Change, CrashError, Device, Fate, Stored};

/// Limit of the buffer; a larger record has the buffer to itself. There are two such buffers.
pub const QUEUE_BYTES: usize = 8 << 20;

/// Longest mark, which is a line of text.
const MARK_BYTES_MAX: usize = 1 << 20;

/// A journal that is being written by any number of threads.
///
/// The order of the calls is the order of events: record a change before it can be read back, an answer before it is
/// given, and a request after it was received. After a write error, the next call and all later ones fail.
#[derive(Debug)]
pub struct JournalWriter {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    queue: Mutex<Queue>,
    /// Signals that a record was added, or that no more will follow.
    filled: Condvar,
    /// Signals that records were written.
    emptied: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    /// Whole records without their checksums.
    bytes: Vec<u8>,
    /// Number of assigned numbers.
    numbers: u64,
    /// Bytes added, and bytes written.
    added_bytes: u64,
    written_bytes: u64,
    is_closed: bool,
    /// Write error: its kind and message.
    failure: Option<(io::ErrorKind, String)>,
}

impl Queue {
    fn check(&self) -> io::Result<()> {
        match &self.failure {
            None => Ok(()),
            Some((kind, words)) => Err(io::Error::new(*kind, format!("the journal cannot be written: {words}"))),
        }
    }
}

impl JournalWriter {
    /// Starts a journal at `path`, replacing an earlier one: it grows in place, so that it can be read however this
    /// process ends.
    ///
    /// # Errors
    /// When the path cannot be a regular file or this user may not write it, the existing file is no journal, or the
    /// device is impossible.
    pub fn create(path: &Path, device: &Device) -> Result<JournalWriter, CrashError> {
        let place = match Place::of(path).map_err(refused)? {
            Place::File { folder, name, .. } => folder.join(name),
            Place::Special(_) | Place::Descriptor(_) => {
                return Err(CrashError::of(path, "is not a regular file; a journal must be one"));
            }
        };
        check(path, device)?;
        check_own(path, &place)?;
        let header = header(device).ok_or_else(|| CrashError::of(path, "the name of the image is too long"))?;
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
        let mut file = options.open(place).map_err(CrashError::io(path))?;
        file.write_all(&header).map_err(CrashError::io(path))?;
        let shared = Arc::new(Shared {
            queue: Mutex::new(Queue { bytes: Vec::with_capacity(QUEUE_BYTES), ..Queue::default() }),
            filled: Condvar::new(),
            emptied: Condvar::new(),
        });
        let theirs = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("journal".to_owned()).spawn(move || drain(&theirs, file));
        Ok(JournalWriter { shared, thread: Some(thread.map_err(CrashError::io(path))?) })
    }

    /// Upper limit of its memory, as long as no record is larger than [`QUEUE_BYTES`].
    pub const MEMORY_BYTES: usize = 2 * QUEUE_BYTES;

    /// Records that `data` are written at an offset; returns the number of the change, for its answer.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub fn write(&self, at_ns: u64, offset_bytes: u64, data: &[u8], is_forced: bool) -> io::Result<u64> {
        let flags = if is_forced { FORCED } else { 0 };
        let length_bytes = data.len() as u64;
        self.numbered(Head { offset_bytes, length_bytes, flags, ..Head::new(Kind::Write, at_ns) }, data)
    }

    /// Records that zeros are written.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub fn zeros(&self, at_ns: u64, offset_bytes: u64, length_bytes: u64, is_forced: bool) -> io::Result<u64> {
        let flags = if is_forced { FORCED } else { 0 };
        self.numbered(Head { offset_bytes, length_bytes, flags, ..Head::new(Kind::Zeros, at_ns) }, &[])
    }

    /// Records that a range is trimmed, and reads as zeros afterwards.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub fn trim(&self, at_ns: u64, offset_bytes: u64, length_bytes: u64, is_forced: bool) -> io::Result<u64> {
        let flags = if is_forced { FORCED } else { 0 };
        self.numbered(Head { offset_bytes, length_bytes, flags, ..Head::new(Kind::Trim, at_ns) }, &[])
    }

    /// Records a change of another recording, with its data if it has any.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub fn copied(&self, change: &Change, data: &[u8]) -> io::Result<u64> {
        let &Change { offset_bytes, length_bytes, is_forced, is_metadata, submitted_ns, .. } = change;
        let kind = match change.stored {
            Stored::Data { .. } => Kind::Write,
            Stored::Zeros => Kind::Zeros,
            Stored::Trim => Kind::Trim,
        };
        let flags = (if is_forced { FORCED } else { 0 }) | (if is_metadata { METADATA } else { 0 });
        self.numbered(Head { offset_bytes, length_bytes, flags, ..Head::new(kind, submitted_ns) }, data)
    }

    /// Records the start of a flush.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub fn flush(&self, at_ns: u64) -> io::Result<u64> {
        self.numbered(Head::new(Kind::Flush, at_ns), &[])
    }

    /// Records the outcome of a change or a flush; call it just before the outcome is reported.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub fn answered(&self, at_ns: u64, number: u64, fate: Fate) -> io::Result<()> {
        let (flags, errno) = match fate {
            Fate::Acknowledged => (0, 0),
            Fate::Failed(errno) => (FAILED, errno),
        };
        self.add(Head { number, flags, errno, ..Head::new(Kind::Answer, at_ns) }, &[]).map(drop)
    }

    /// Records a line of text, and returns when it is in the file.
    ///
    /// # Errors
    /// When it is empty, longer than 1 MiB, or not a single line, or the journal cannot be written.
    pub fn mark(&self, at_ns: u64, text: &str) -> io::Result<()> {
        if text.is_empty() || text.len() > MARK_BYTES_MAX || text.contains(['\n', '\0']) {
            let message = format!("a mark is one line of 1 to {MARK_BYTES_MAX} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let end_bytes = self.add(Head::new(Kind::Mark, at_ns), text.as_bytes())?;
        let mut queue = self.queue();
        while queue.written_bytes < end_bytes {
            queue.check()?;
            queue = self.shared.emptied.wait(queue).expect("the lock is not poisoned");
        }
        Ok(())
    }

    /// Records a power failure: the changes that follow are data that the device takes back.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub fn power_off(&self, at_ns: u64) -> io::Result<()> {
        self.add(Head::new(Kind::PowerOff, at_ns), &[]).map(drop)
    }

    /// Records that power is back.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub fn power_on(&self, at_ns: u64) -> io::Result<()> {
        self.add(Head::new(Kind::PowerOn, at_ns), &[]).map(drop)
    }

    /// Writes the remaining records and the end record.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub fn finish(mut self) -> io::Result<()> {
        let number = self.queue().numbers;
        self.add(Head { number, ..Head::new(Kind::End, 0) }, &[])?;
        self.close();
        self.queue().check()
    }

    fn close(&mut self) {
        self.queue().is_closed = true;
        self.shared.filled.notify_one();
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the writer's thread does not panic");
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.shared.queue.lock().expect("the lock is not poisoned")
    }

    fn numbered(&self, head: Head, data: &[u8]) -> io::Result<u64> {
        self.append(head, data, true).map(|(number, _)| number)
    }

    /// Adds a record; returns where it ends, in bytes of all records.
    fn add(&self, head: Head, carried: &[u8]) -> io::Result<u64> {
        self.append(head, carried, false).map(|(_, end_bytes)| end_bytes)
    }

    fn append(&self, mut head: Head, carried: &[u8], takes_number: bool) -> io::Result<(u64, u64)> {
        head.carried_bytes = u32::try_from(carried.len())
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "a record carries less than 4 GiB"))?;
        let mut queue = self.queue();
        while !queue.bytes.is_empty() && queue.bytes.len() + head.record_bytes() > QUEUE_BYTES {
            queue.check()?;
            queue = self.shared.emptied.wait(queue).expect("the lock is not poisoned");
        }
        queue.check()?;
        if takes_number {
            head.number = queue.numbers;
            queue.numbers += 1;
        }
        queue.bytes.extend_from_slice(&head.to_bytes());
        queue.bytes.extend_from_slice(carried);
        queue.bytes.extend_from_slice(&[0; SUM_BYTES]);
        queue.added_bytes += head.record_bytes() as u64;
        let added = (head.number, queue.added_bytes);
        drop(queue);
        self.shared.filled.notify_one();
        Ok(added)
    }
}

impl Drop for JournalWriter {
    fn drop(&mut self) {
        self.close();
    }
}

/// Checks that a device is possible.
fn check(path: &Path, device: &Device) -> Result<(), CrashError> {
    if !device.block_bytes.is_power_of_two() || !device.capacity_bytes.is_multiple_of(u64::from(device.block_bytes)) {
        let message = format!(
            "a device of {} bytes in blocks of {}: blocks are a power of two, and a device is a multiple of them",
            device.capacity_bytes, device.block_bytes
        );
        return Err(CrashError::of(path, message));
    }
    Ok(())
}

/// Fails if there is a file that is not a journal.
fn check_own(path: &Path, place: &Path) -> Result<(), CrashError> {
    let mut begin = [0; MAGIC.len()];
    let read = match File::open(place) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        opened => opened.and_then(|mut file| match file.metadata()?.len() {
            0 => Ok(true),
            _ => Ok(file.read_exact(&mut begin).is_ok() && begin == MAGIC),
        }),
    };
    match read.map_err(CrashError::io(path))? {
        true => Ok(()),
        false => Err(CrashError::of(path, "exists and is not a journal; name another file, or remove it")),
    }
}

/// The writer's thread: runs until the last record is written.
fn drain(shared: &Shared, mut file: File) {
    let mut bytes = Vec::with_capacity(QUEUE_BYTES);
    let mut queue = shared.queue.lock().expect("the lock is not poisoned");
    loop {
        while queue.bytes.is_empty() && !queue.is_closed {
            queue = shared.filled.wait(queue).expect("the lock is not poisoned");
        }
        if queue.bytes.is_empty() {
            return;
        }
        std::mem::swap(&mut queue.bytes, &mut bytes);
        drop(queue);
        shared.emptied.notify_all();
        seal(&mut bytes);
        let written = file.write_all(&bytes);
        queue = shared.queue.lock().expect("the lock is not poisoned");
        match written {
            Ok(()) => queue.written_bytes += bytes.len() as u64,
            Err(error) => {
                queue.failure = Some((error.kind(), headstack_files::words(&error)));
                shared.emptied.notify_all();
                return;
            }
        }
        shared.emptied.notify_all();
        bytes.clear();
        // Memory of a large record is freed.
        if bytes.capacity() > QUEUE_BYTES {
            bytes = Vec::with_capacity(QUEUE_BYTES);
        }
    }
}

/// Adds the checksum to the end of each record.
fn seal(bytes: &mut [u8]) {
    let mut rest = bytes;
    while let Some(carried) = rest.get(4..8) {
        let carried_bytes = u32::from_le_bytes(std::array::from_fn(|i| carried[i])) as usize;
        let (record, others) = rest.split_at_mut(HEAD_BYTES + carried_bytes + SUM_BYTES);
        let (summed, place) = record.split_at_mut(HEAD_BYTES + carried_bytes);
        place.copy_from_slice(&sum(summed));
        rest = others;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;

    /// A writer whose thread has not started yet.
    fn idle() -> JournalWriter {
        let queue = Mutex::new(Queue::default());
        let shared = Shared { queue, filled: Condvar::new(), emptied: Condvar::new() };
        JournalWriter { shared: Arc::new(shared), thread: None }
    }

    #[test]
    fn who_fills_the_queue_waits_until_it_is_written() {
        let (journal, data) = (idle(), vec![1; QUEUE_BYTES / 4]);
        for write in 0..3 {
            assert_eq!(journal.write(0, 0, &data, false).unwrap(), write);
        }
        let (done, heard) = channel();
        std::thread::scope(|scope| {
            scope.spawn(|| done.send(journal.write(0, 0, &data, false).unwrap()).unwrap());
            assert!(heard.recv_timeout(Duration::from_millis(50)).is_err(), "a fourth does not fit with its heads");
            assert!(journal.queue().bytes.len() <= QUEUE_BYTES);
            journal.queue().bytes.clear();
            journal.shared.emptied.notify_all();
            assert_eq!(heard.recv_timeout(Duration::from_secs(10)), Ok(3));
        });
        // A record larger than the queue has it to itself.
        journal.queue().bytes.clear();
        assert_eq!(journal.write(0, 0, &vec![1; QUEUE_BYTES + 512], false).unwrap(), 4);
    }

    #[test]
    fn a_journal_write_failure_reaches_every_writer() {
        let journal = idle();
        journal.write(0, 0, &[1; 512], false).unwrap();
        drain(&journal.shared, File::open("/dev/null").unwrap());
        for error in [journal.write(0, 0, &[1; 512], false).unwrap_err(), journal.mark(0, "lost").unwrap_err()] {
            assert!(error.to_string().starts_with("the journal cannot be written: "), "{error}");
        }
        assert!(journal.finish().is_err());
    }

    #[test]
    fn a_mark_is_a_line() {
        for text in ["", "two\nlines", &"x".repeat(MARK_BYTES_MAX + 1)] {
            assert!(idle().mark(0, text).unwrap_err().to_string().starts_with("a mark is one line"));
        }
    }
}
