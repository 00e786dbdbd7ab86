//! Creates files to be measured. Their data are written, because reads of allocated but unwritten space return zeros
//! without reaching the device.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use headstack_files::is_among_devices;
use headstack_workload::quantity::format_bytes;
use headstack_workload::{Purpose, Random};

use super::kernel;
use super::refusals::{check_same, open_failure, refused};
use crate::LoadError;

/// Length of one write in bytes.
const CHUNK_BYTES: usize = 1 << 20;
/// Alignment of memory for direct writes, in bytes: one page, which every device accepts.
const ALIGN_BYTES: usize = 4096;

/// Creates a file of `bytes` of incompressible data. Until the file is complete and on stable storage, it is a hidden
/// file in the same directory. The hidden file is removed if something fails, or if `progress`, which receives the
/// completed share, returns false.
pub(super) fn create(path: &str, bytes: u64, progress: &dyn Fn(f64) -> bool) -> Result<(), LoadError> {
    let failure = |error| open_failure(path, error, true);
    let place = Path::new(path);
    let Some(name) = place.file_name() else { return Err(refused(path, "is not a file name")) };
    if bytes == 0 {
        return Err(refused(path, "cannot be created with 0 bytes; use 1 or more"));
    }
    let directory = place.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let directory = fs::canonicalize(directory).map_err(failure)?;
    if is_among_devices(&directory) {
        return Err(refused(path, "does not exist; files in /dev are not created"));
    }
    check_space(path, &directory, bytes)?;
    let partial = directory.join(format!(".{}.partial", name.to_string_lossy()));
    let file = fs::OpenOptions::new().write(true).create_new(true).open(&partial);
    let file = file.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            let rest = partial.display();
            refused(path, format!("is being created by another process; if that process was killed, remove {rest}"))
        }
        _ => failure(error),
    })?;
    let half_made = UnfinishedFile(partial);
    fill(path, &file, &half_made.0, 0, bytes, progress)?;
    kernel::rename_new(&half_made.0, &directory.join(name)).map_err(failure)?;
    half_made.keep();
    File::open(&directory).and_then(|directory| directory.sync_all()).map_err(failure)
}

/// Grows the file that `metadata` describes to `bytes`, and restores its old size if that fails.
pub(super) fn grow(
    path: &str,
    metadata: &fs::Metadata,
    bytes: u64,
    progress: &dyn Fn(f64) -> bool,
) -> Result<(), LoadError> {
    let from_bytes = metadata.len();
    let failure = |error| open_failure(path, error, true);
    let place = fs::canonicalize(path).map_err(failure)?;
    check_space(path, &place, bytes - from_bytes)?;
    let file = fs::OpenOptions::new().write(true).open(&place).map_err(failure)?;
    check_same(path, &file, metadata)?;
    fill(path, &file, &place, from_bytes, bytes, progress).inspect_err(|_| {
        // The first error is reported; an error here would only be its consequence.
        let _ = file.set_len(from_bytes);
    })
}

fn check_space(path: &str, place: &Path, bytes: u64) -> Result<(), LoadError> {
    let (_, free_bytes) = kernel::file_system(place).map_err(|error| open_failure(path, error, true))?;
    if bytes > free_bytes || i64::try_from(bytes).is_err() {
        let (wanted, free) = (format_bytes(bytes), format_bytes(free_bytes));
        return Err(refused(path, format!("{wanted} to write, but only {free} are free")));
    }
    Ok(())
}

/// Writes the bytes `from_bytes..bytes` of `file`, which is at the path `place`.
fn fill(
    path: &str,
    file: &File,
    place: &Path,
    from_bytes: u64,
    bytes: u64,
    progress: &dyn Fn(f64) -> bool,
) -> Result<(), LoadError> {
    let failure = |error| open_failure(path, error, true);
    match kernel::allocate(file, from_bytes, bytes - from_bytes) {
        // If the file system cannot reserve space, it runs full while writing.
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {}
        result => result.map_err(failure)?,
    }
    // Direct I/O, so that other data stay in the page cache and the progress is that of the device.
    let direct = fs::OpenOptions::new().write(true).custom_flags(libc::O_DIRECT).open(place).ok();
    let mut random = Random::new(seed_of(path), Purpose::Contents);
    let mut memory = vec![0; CHUNK_BYTES + ALIGN_BYTES];
    let start = memory.as_ptr().align_offset(ALIGN_BYTES);
    let chunk = &mut memory[start..start + CHUNK_BYTES];
    let mut at = from_bytes;
    while at < bytes {
        if !progress((at - from_bytes) as f64 / (bytes - from_bytes) as f64) {
            return Err(LoadError::Stopped);
        }
        // The first chunk ends at a multiple of the chunk length.
        let length = (CHUNK_BYTES as u64 - at % CHUNK_BYTES as u64).min(bytes - at) as usize;
        for word in chunk.chunks_exact_mut(8) {
            word.copy_from_slice(&random.bits().to_le_bytes());
        }
        let data = &chunk[..length];
        let whole = direct.as_ref().filter(|_| length == CHUNK_BYTES);
        match whole.map_or_else(|| file.write_all_at(data, at), |direct| direct.write_all_at(data, at)) {
            // Some file systems open files for direct I/O but reject direct writes.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) && whole.is_some() => {
                file.write_all_at(data, at).map_err(failure)?;
            }
            result => result.map_err(failure)?,
        }
        at += length as u64;
    }
    file.sync_all().map_err(failure)?;
    progress(1.0);
    Ok(())
}

/// Returns the seed for the contents of a file. Files with different names have different contents, so that a
/// deduplicating drive finds no duplicates.
fn seed_of(path: &str) -> u64 {
    path.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

/// A file that is removed on drop unless it was renamed after completion.
struct UnfinishedFile(PathBuf);

impl UnfinishedFile {
    fn keep(mut self) {
        self.0.clear();
    }
}

impl Drop for UnfinishedFile {
    fn drop(&mut self) {
        if !self.0.as_os_str().is_empty() {
            // Nothing can be done about an error here, and the original error is reported.
            let _ = fs::remove_file(&self.0);
        }
    }
}
