//! [`Folder`]: the kernel's control files: found, read, written.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::error::TraceError;

/// Longest text of a control file that is read at once, except for lists.
const TEXT_BYTES: usize = 16 << 10;

/// A folder of control files: tracefs itself, one of its instances, or that of a device.
#[derive(Clone, Debug)]
pub(super) struct Folder {
    path: PathBuf,
}

impl Folder {
    /// The folder at `path`.
    pub(super) fn new(path: impl Into<PathBuf>) -> Folder {
        Folder { path: path.into() }
    }

    /// Tracefs, if it is mounted.
    ///
    /// # Errors
    /// When this user is not root, or there is no tracefs.
    pub(super) fn tracefs() -> Result<Folder, TraceError> {
        let places = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
        for place in places {
            match fs::metadata(Path::new(place).join("trace_pipe")) {
                Ok(_) => return Ok(Folder::new(place)),
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    return Err(failed("needs root: this user may not open the kernel's tracing files"));
                }
                Err(_) => {}
            }
        }
        if Path::new(places[0]).is_dir() {
            return Err(failed(
                "needs root and tracefs, which is not mounted: `mount -t tracefs nodev /sys/kernel/tracing`",
            ));
        }
        Err(failed("needs a kernel with tracing; /sys/kernel/tracing is missing"))
    }

    /// Path of the folder.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it has that file.
    pub(super) fn has(&self, name: &str) -> bool {
        self.path.join(name).exists()
    }

    /// Reads a file, without surrounding blanks.
    pub(super) fn read(&self, name: &str) -> Result<String, TraceError> {
        let path = self.path.join(name);
        Ok(read(&path)?.trim().to_owned())
    }

    /// Writes a file.
    pub(super) fn write(&self, name: &str, value: &str) -> Result<(), TraceError> {
        write(&self.path.join(name), value)
    }

    /// The folders of the processors' buffers.
    pub(super) fn processors(&self) -> Result<Vec<Folder>, TraceError> {
        let path = self.path.join("per_cpu");
        let entries = fs::read_dir(&path).map_err(|error| refused(&path, "cannot be read", &error))?;
        Ok(entries.filter_map(|entry| Some(Folder::new(entry.ok()?.path()))).collect())
    }

    /// Number of events lost because buffers were full, since they were created or their clock was set, which empties
    /// them.
    pub(super) fn lost(&self) -> Result<u64, TraceError> {
        let mut lost: u64 = 0;
        for processor in self.processors()? {
            for line in processor.read("stats")?.lines() {
                if let Some((name, value)) = line.split_once(": ")
                    && matches!(name, "overrun" | "commit overrun" | "dropped events")
                {
                    lost = lost.saturating_add(value.trim().parse().unwrap_or(0));
                }
            }
        }
        Ok(lost)
    }

    /// Current time of the clock of its records.
    pub(super) fn now_ns(&self) -> Option<u64> {
        let stats = self.read("per_cpu/cpu0/stats").ok()?;
        let now = stats.lines().find_map(|line| line.strip_prefix("now ts:"))?;
        crate::text::decimal(now.trim().as_bytes(), 9)
    }
}

/// An error of the capture as a whole.
pub(super) fn failed(message: impl std::fmt::Display) -> TraceError {
    TraceError::of_file("capture", message)
}

/// An error of one of the kernel's files.
pub(super) fn refused(path: &Path, what: &str, error: &io::Error) -> TraceError {
    match error.kind() {
        io::ErrorKind::PermissionDenied => failed(format!("needs root: {} {what}", path.display())),
        _ => TraceError::of_file(path.display().to_string(), format!("{what}: {error}")),
    }
}

/// Opens a buffer for non-blocking reads.
pub(super) fn open_pipe(path: &Path) -> Result<File, TraceError> {
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path);
    opened.map_err(|error| match error.kind() {
        io::ErrorKind::ResourceBusy => failed(format!("{} is in use by another program", path.display())),
        _ => refused(path, "cannot be opened", &error),
    })
}

pub(super) fn read(path: &Path) -> Result<String, TraceError> {
    // Some of the kernel's files return their text only to the first read, however short that is.
    let mut text = String::with_capacity(TEXT_BYTES);
    let read = File::open(path).and_then(|mut file| file.read_to_string(&mut text));
    read.map_err(|error| refused(path, "cannot be read", &error))?;
    Ok(text)
}

pub(super) fn write(path: &Path, value: &str) -> Result<(), TraceError> {
    fs::write(path, value).map_err(|error| refused(path, &format!("does not take `{value}`"), &error))
}
