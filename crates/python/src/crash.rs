//! Crash states for Python: recordings, the search through their states, and images.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use headstack_crash::ext4::{ReadOutcome, copy_folder, read_files};
use headstack_crash::states::{CrashState, Rules, Search, SearchOptions};
use headstack_crash::{
    Base, CrashError, Ending, Event, Fate, Image, Overlay, Recording, Reproduced, Start, Stored, dmlog, folder_for,
    reproduced, write_journal, write_reproducer,
};
use headstack_live::LiveError;
use headstack_live::crashed::CrashedDevice as Shown;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::Serialize;

use crate::error::{RunError, input_error};
use crate::live::live_error;
use crate::plain::{Plain, plain};

/// Name of the mount directory within a folder.
const MOUNT: &str = "mount";

/// Maps errors of the kernel to `OSError`, others to bad input.
fn crash_error(error: CrashError) -> PyErr {
    match error.number {
        None => input_error(error),
        Some(number) => PyOSError::new_err((number, error.message, error.file)),
    }
}

fn base_of(base: Option<&Path>) -> PyResult<Base> {
    base.map_or(Ok(Base::zeros()), |path| Base::open(path).map_err(crash_error))
}

/// A device's requests and its answers.
#[pyclass(frozen)]
pub struct CrashRecording(Arc<Recording>);

/// Description of a recording.
#[derive(Serialize)]
struct Described<'a> {
    capacity_bytes: u64,
    block_bytes: u32,
    atomic_bytes: u32,
    has_volatile_cache: bool,
    image: Option<&'a str>,
    events: usize,
    changes: usize,
    trims: usize,
    forced: usize,
    failed: usize,
    data_bytes: u64,
    flushes: u32,
    marks: usize,
    power_cuts: usize,
    span_ns: u64,
    is_finished: bool,
    left_bytes: u64,
}

/// A change as returned to Python.
#[derive(Serialize)]
struct SentChange {
    number: u32,
    what: &'static str,
    offset_bytes: u64,
    length_bytes: u64,
    is_forced: bool,
    is_metadata: bool,
    submitted_ns: u64,
    event: usize,
}

#[pymethods]
impl CrashRecording {
    /// Opens a journal or a log of dm-log-writes, of a device at least as large as its initial image.
    #[new]
    fn new(py: Python<'_>, path: PathBuf, base: Option<PathBuf>) -> PyResult<CrashRecording> {
        let mut recording = py.detach(|| Recording::open(&path)).map_err(crash_error)?;
        recording.grow_to(base_of(base.as_deref())?.size_bytes());
        Ok(CrashRecording(Arc::new(recording)))
    }

    /// Its device, its counts and its ending.
    fn described<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let recording = &*self.0;
        let count = |is_it: &dyn Fn(&Event) -> bool| recording.events.iter().filter(|event| is_it(event)).count();
        let changes = &recording.changes;
        let ends_ns = recording.times_ns.iter().max().copied().unwrap_or(0);
        let described = Described {
            capacity_bytes: recording.device.capacity_bytes,
            block_bytes: recording.device.block_bytes,
            atomic_bytes: recording.device.atomic_bytes,
            has_volatile_cache: recording.device.has_volatile_cache,
            image: match &recording.device.start {
                Start::Zeros => None,
                Start::Image(name) => Some(name),
            },
            events: recording.events.len(),
            changes: changes.len(),
            trims: changes.iter().filter(|change| change.stored == Stored::Trim).count(),
            forced: changes.iter().filter(|change| change.is_forced).count(),
            failed: count(&|event| {
                matches!(event, Event::Changed(_, Fate::Failed(_)) | Event::Flushed(_, Fate::Failed(_)))
            }),
            data_bytes: changes
                .iter()
                .filter(|change| matches!(change.stored, Stored::Data { .. }))
                .map(|change| change.length_bytes)
                .sum(),
            flushes: recording.flushes,
            marks: recording.marks.len(),
            power_cuts: count(&|event| *event == Event::PowerOff),
            span_ns: ends_ns - recording.times_ns.first().copied().unwrap_or(ends_ns),
            is_finished: recording.ending == Ending::Whole,
            left_bytes: match recording.ending {
                Ending::Whole | Ending::Unfinished => 0,
                Ending::CutOff { left_bytes, .. } => left_bytes,
            },
        };
        plain(py, &described)
    }

    /// The changes that a crash after so many events may lose.
    fn open_after(&self, events: usize) -> Vec<u32> {
        self.0.open_after(events)
    }

    /// The marks before a crash after so many events.
    fn marks_before(&self, events: usize) -> Vec<String> {
        let made = self.0.events.iter().take(events).filter(|event| matches!(event, Event::Mark(_))).count();
        self.0.marks[..made].to_vec()
    }

    /// Time of the last of so many events.
    fn time_of(&self, events: usize) -> u64 {
        self.0.times_ns.get(events.saturating_sub(1)).copied().unwrap_or(0)
    }

    /// The changes with these numbers.
    fn changes(&self, numbers: Vec<u32>) -> PyResult<Plain<Vec<SentChange>>> {
        let sent = |number: u32| {
            let change =
                self.0.changes.get(number as usize).ok_or_else(|| input_error(format!("{number}: no change")))?;
            let event = self.0.events.iter().position(|event| *event == Event::Change(number));
            Ok(SentChange {
                number,
                what: match change.stored {
                    Stored::Data { .. } => "write",
                    Stored::Zeros => "zeros",
                    Stored::Trim => "trim",
                },
                offset_bytes: change.offset_bytes,
                length_bytes: change.length_bytes,
                is_forced: change.is_forced,
                is_metadata: change.is_metadata,
                submitted_ns: change.submitted_ns,
                event: event.expect("each change is sent by an event"),
            })
        };
        numbers.into_iter().map(sent).collect::<PyResult<_>>().map(Plain)
    }

    /// The state of a reproducer; `None` for other recordings.
    fn reproduced(&self) -> PyResult<Option<Plain<Reproduced>>> {
        Ok(reproduced(&self.0).map_err(crash_error)?.map(Plain))
    }

    /// A digest of its contents, independent of times: 32 hexadecimal digits.
    fn digest(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("{:032x}", py.detach(|| self.0.digest()).map_err(crash_error)?))
    }

    /// Writes it as a journal.
    fn write_journal(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.detach(|| write_journal(&self.0, &path)).map_err(crash_error)
    }

    /// Writes it as a log of dm-log-writes, without failed changes; returns their number.
    fn write_dm_log(&self, py: Python<'_>, path: PathBuf) -> PyResult<u64> {
        py.detach(|| dmlog::write(&self.0, &path)).map_err(crash_error)
    }
}

/// The states that crashes may leave, one after another.
#[pyclass(frozen)]
pub struct CrashSearch(Mutex<Search>);

impl CrashSearch {
    fn search(&self) -> MutexGuard<'_, Search> {
        self.0.lock().expect("the lock is not poisoned")
    }
}

#[pymethods]
impl CrashSearch {
    /// Searches the states that a crash of a recording over an image may leave.
    #[new]
    fn new(
        py: Python<'_>,
        recording: &CrashRecording,
        base: Option<PathBuf>,
        asked: Plain<SearchOptions>,
    ) -> PyResult<CrashSearch> {
        let base = base_of(base.as_deref())?;
        let search = py.detach(|| Search::new(Arc::clone(&recording.0), &base, asked.0)).map_err(crash_error)?;
        Ok(CrashSearch(Mutex::new(search)))
    }

    /// The next state; `None` if there is no new one.
    fn next_state(&self, py: Python<'_>) -> PyResult<Option<Plain<CrashState>>> {
        Ok(py.detach(|| self.search().next_state()).map_err(crash_error)?.map(Plain))
    }

    /// The coverage so far.
    fn coverage<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        plain(py, &self.search().coverage())
    }

    /// The moments at which crashes are tried.
    fn moments<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        plain(py, &self.search().moments())
    }
}

/// The image of a device after a power failure.
#[pyclass(frozen)]
pub struct CrashImage(Mutex<Image>);

impl CrashImage {
    fn image(&self) -> MutexGuard<'_, Image> {
        self.0.lock().expect("the lock is not poisoned")
    }
}

#[pymethods]
impl CrashImage {
    /// Creates it in a folder that no one else uses.
    #[new]
    fn new(
        folder: PathBuf,
        recording: &CrashRecording,
        base: Option<PathBuf>,
        rules: Plain<Rules>,
    ) -> PyResult<CrashImage> {
        let base = base_of(base.as_deref())?;
        let image = Image::create(&folder, Arc::clone(&recording.0), &base, &rules.0).map_err(crash_error)?;
        Ok(CrashImage(Mutex::new(image)))
    }

    /// Path of the image.
    #[getter]
    fn path(&self) -> PathBuf {
        self.image().path().to_owned()
    }

    /// Changes to a state.
    fn take(&self, py: Python<'_>, state: Plain<CrashState>) -> PyResult<()> {
        py.detach(|| self.image().take(&state.0)).map_err(crash_error)
    }

    /// Undoes a check's changes; returns false if there are none.
    fn restore(&self, py: Python<'_>) -> PyResult<bool> {
        py.detach(|| self.image().restore()).map_err(crash_error)
    }

    /// Writes a journal of one state with everything needed to reproduce it.
    fn reproduce(&self, py: Python<'_>, found: Plain<Reproduced>, path: PathBuf) -> PyResult<()> {
        py.detach(|| write_reproducer(&mut self.image(), &found.0, &path)).map_err(crash_error)
    }
}

/// A device after a power failure, exported over NBD or FUSE.
#[pyclass(frozen)]
pub struct CrashedDevice {
    /// `None` after it is closed.
    shown: Mutex<Option<Shown>>,
    /// The socket, or the file.
    #[pyo3(get)]
    place: PathBuf,
}

impl CrashedDevice {
    fn with<T>(&self, what: impl FnOnce(&Shown) -> Result<T, CrashError>) -> PyResult<T> {
        match &*self.shown.lock().expect("the lock is not poisoned") {
            Some(shown) => what(shown).map_err(crash_error),
            None => Err(input_error("the device is closed")),
        }
    }
}

#[pymethods]
impl CrashedDevice {
    /// Exports it in a folder that no one else uses; `over` is "nbd" or "fuse".
    #[new]
    fn new(
        py: Python<'_>,
        folder: PathBuf,
        recording: &CrashRecording,
        base: Option<PathBuf>,
        rules: Plain<Rules>,
        over: &str,
    ) -> PyResult<CrashedDevice> {
        let base = base_of(base.as_deref())?;
        let overlay = Overlay::new(Arc::clone(&recording.0), &base, &rules.0).map_err(crash_error)?;
        let shown = py.detach(|| match over {
            "nbd" => Shown::over_nbd(overlay, &folder.join("nbd")),
            "fuse" => Shown::over_fuse(overlay, &folder.join(MOUNT)),
            _ => Err(LiveError::Invalid(format!("over: {over:?} cannot show a device; nbd and fuse are allowed"))),
        });
        let shown = shown.map_err(live_error)?;
        let place = shown.place().to_owned();
        Ok(CrashedDevice { shown: Mutex::new(Some(shown)), place })
    }

    /// Changes to a state.
    fn take(&self, py: Python<'_>, state: Plain<CrashState>) -> PyResult<()> {
        py.detach(|| self.with(|shown| shown.take(&state.0)))
    }

    /// Discards a check's writes; returns false if there were none.
    fn restore(&self, py: Python<'_>) -> PyResult<bool> {
        py.detach(|| self.with(Shown::restore))
    }

    /// Ends the export.
    fn close(&self, py: Python<'_>) {
        py.detach(|| drop(self.shown.lock().expect("the lock is not poisoned").take()));
    }

    /// Unmounts the leftover of a killed process in a folder.
    #[staticmethod]
    fn clear(py: Python<'_>, folder: PathBuf) -> PyResult<()> {
        py.detach(|| headstack_live::fuse::clear(&folder.join(MOUNT))).map_err(live_error)
    }
}

/// Folder for that many images: in memory if there is room.
#[pyfunction]
pub fn crash_folder(recording: &CrashRecording, base: Option<PathBuf>, images: u64) -> PyResult<PathBuf> {
    folder_for(&recording.0, &base_of(base.as_deref())?, images).map_err(crash_error)
}

/// The contents of files of an ext4 file system. Raises `RunError` if it is damaged, `InputError` for an unsupported
/// feature.
#[pyfunction]
pub fn ext4_files(py: Python<'_>, image: PathBuf, paths: Vec<String>) -> PyResult<Vec<Option<Py<PyBytes>>>> {
    let files = ext4_result(py.detach(|| read_files(&image, &paths)))?;
    Ok(files.into_iter().map(|file| file.map(|data| PyBytes::new(py, &data).unbind())).collect())
}

/// Copies a folder of an ext4 file system; returns false if it does not exist. Raises as for `ext4_files`.
#[pyfunction]
pub fn ext4_folder(py: Python<'_>, image: PathBuf, folder: &str, to: PathBuf) -> PyResult<bool> {
    ext4_result(py.detach(|| copy_folder(&image, folder, &to)))
}

fn ext4_result<T>(found: Result<ReadOutcome<T>, CrashError>) -> PyResult<T> {
    match found.map_err(crash_error)? {
        ReadOutcome::Read(found) => Ok(found),
        ReadOutcome::Damaged(why) => Err(RunError::new_err(why)),
        ReadOutcome::Unknown(why) => Err(input_error(why)),
    }
}
