//! Opens recordings in any format.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::recording::Recording;
use crate::{CrashError, dmlog, journal};

impl Recording {
    /// Reads the events of a journal or of a log of dm-log-writes, whichever it is.
    ///
    /// # Errors
    /// It is neither, or says something impossible.
    ///
    /// ```
    /// # let path = std::env::temp_dir().join(format!("headstack-doc-{}", std::process::id()));
    /// use headstack_crash::journal::JournalWriter;
    /// use headstack_crash::{Device, Fate, Recording, Start};
    ///
    /// let device = Device {
    ///     capacity_bytes: 1 << 20,
    ///     block_bytes: 512,
    ///     atomic_bytes: 0,
    ///     has_volatile_cache: true,
    ///     start: Start::Zeros,
    /// };
    /// let journal = JournalWriter::create(&path, &device)?;
    /// let write = journal.write(1_000, 4096, &[7; 512], false)?;
    /// journal.answered(2_000, write, Fate::Acknowledged)?;
    /// journal.mark(3_000, "one block is there")?;
    /// journal.finish()?;
    ///
    /// let recording = Recording::open(&path)?;
    /// assert_eq!((recording.changes.len(), recording.marks.len()), (1, 1));
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open(path: &Path) -> Result<Recording, CrashError> {
        let file = File::open(path).map_err(CrashError::io(path))?;
        let mut magic = [0; 8];
        match file.read_exact_at(&mut magic, 0) {
            Ok(()) if magic == journal::MAGIC => journal::read(path, file),
            Ok(()) if u64::from_le_bytes(magic) == dmlog::MAGIC => dmlog::read(path, file),
            Ok(()) => Err(CrashError::of(path, "is neither a headstack journal nor a dm-log-writes log")),
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                Err(CrashError::of(path, "is too short for a journal"))
            }
            Err(error) => Err(CrashError::io(path)(error)),
        }
    }
}
