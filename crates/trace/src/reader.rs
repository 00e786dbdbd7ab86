//! [`TraceReader`]: reads a trace of any format in batches of records in order of arrival.

use std::fs;
use std::path::{Path, PathBuf};

#[cfg(feature = "files")]
use headstack_files::{Draft, Outputs, note_input};

use crate::error::TraceError;
use crate::formats::{Format, ReadOptions};
use crate::input::{Head, Input};
use crate::merge::Merge;
use crate::meta::Meta;
use crate::nearest::nearest;
use crate::record::Record;
use crate::recording::{Next, Recording};
#[cfg(feature = "files")]
use crate::store::StoreWriter;
use crate::transform::Applied;

/// A reader of a trace.
pub struct TraceReader {
    source: Source,
    steps: Applied,
    meta: Meta,
    /// Merged files, if there are too many to read concurrently; removed on drop.
    #[cfg(feature = "files")]
    gathered: Vec<Draft>,
    /// Its files, which must not be replaced while they are read.
    #[cfg(feature = "files")]
    inputs: Outputs,
}

#[allow(clippy::large_enum_variant)] // One a trace.
enum Source {
    One(Recording),
    Several(Merge),
}

impl TraceReader {
    /// Opens files that are one trace. Those of several CPUs of blktrace belong together; others are merged by time. A
    /// folder means the stored traces in it, as written by a split.
    ///
    /// # Errors
    /// When files cannot be read, or have no format, or match two.
    pub fn open(paths: &[&Path], options: &ReadOptions) -> Result<TraceReader, TraceError> {
        #[cfg_attr(not(feature = "files"), allow(unused_mut))]
        let mut files = files_of(paths)?;
        #[cfg(feature = "files")]
        let held = hold_inputs(&files)?;
        #[cfg(feature = "files")]
        let gathered = gathered(&files)?;
        #[cfg(feature = "files")]
        if !gathered.is_empty() {
            files = gathered.iter().map(|draft| draft.path().to_owned()).collect();
        }
        let inputs = files.iter().map(|path| Input::open(path)).collect::<Result<Vec<_>, _>>()?;
        #[cfg_attr(not(feature = "files"), allow(unused_mut))]
        let mut reader = TraceReader::from_inputs(inputs, options)?;
        #[cfg(feature = "files")]
        {
            reader.gathered = gathered;
            reader.inputs = held;
        }
        Ok(reader)
    }

    /// Like [`open`](Self::open) for open inputs.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn from_inputs(mut inputs: Vec<Input>, options: &ReadOptions) -> Result<TraceReader, TraceError> {
        for index in 1..inputs.len() {
            if inputs[..index].iter().any(|before| before.label == inputs[index].label) {
                inputs[index].label = inputs[index].name.clone();
            }
        }
        let declared = options.format.or(options.csv.is_some().then_some(Format::Csv));
        let mut groups: Vec<(Format, Vec<Input>)> = Vec::new();
        for input in inputs {
            let format = declared.map_or_else(|| detect(&input), Ok)?;
            match groups.last_mut() {
                Some((last, group)) if *last == format && format.files_belong_together() => group.push(input),
                _ => groups.push((format, vec![input])),
            }
        }
        let parts = groups.into_iter().map(|(format, inputs)| Recording::open(format, inputs, options));
        let mut parts: Vec<Recording> = parts.collect::<Result<_, _>>()?;
        let source = match parts.len() {
            0 => return Err(TraceError::of_file("trace", "no file is named")),
            1 => Source::One(parts.remove(0)),
            _ => Source::Several(Merge::new(parts)?),
        };
        let mut reader = TraceReader {
            source,
            steps: Applied::new(&options.steps),
            meta: Meta::default(),
            #[cfg(feature = "files")]
            gathered: Vec::new(),
            #[cfg(feature = "files")]
            inputs: Outputs::for_reader(),
        };
        reader.refresh();
        Ok(reader)
    }

    /// Replaces `batch` by the next records, in order of arrival; returns false at the end.
    ///
    /// # Errors
    /// When a record cannot be accepted, including a file whose order is too far from that of arrival:
    /// [`crate::import`] sorts it.
    pub fn next_batch(&mut self, batch: &mut Vec<Record>) -> Result<bool, TraceError> {
        match self.next(batch)? {
            Next::Batch => Ok(true),
            Next::End => Ok(false),
            Next::NewRun => Err(TraceError::of_file(
                self.source.name(),
                "is far from the order of arrival; import it first to sort it",
            )),
        }
    }

    /// Reads the rest into memory: 48 bytes per request. Prefer batches for data that need not be kept.
    ///
    /// # Errors
    /// As for [`next_batch`](Self::next_batch).
    pub fn read_all(&mut self) -> Result<Vec<Record>, TraceError> {
        let (mut records, mut batch) = (Vec::new(), Vec::new());
        while self.next_batch(&mut batch)? {
            records.append(&mut batch);
        }
        Ok(records)
    }

    pub(crate) fn next(&mut self, batch: &mut Vec<Record>) -> Result<Next, TraceError> {
        loop {
            batch.clear();
            let next = match &mut self.source {
                Source::One(part) => part.next(batch)?,
                Source::Several(merge) => merge.next(batch)?,
            };
            match next {
                Next::Batch => {
                    self.steps.apply(batch, self.source.meta());
                    if !self.meta.has_names_of(self.source.meta()) {
                        self.refresh();
                    }
                    if batch.is_empty() && !self.steps.is_over() {
                        continue;
                    }
                    if batch.is_empty() {
                        self.refresh();
                        return Ok(Next::End);
                    }
                }
                Next::NewRun if !self.steps.is_empty() => {
                    return Err(TraceError::of_file(
                        self.source.name(),
                        "is far from the order of arrival; import it without steps first",
                    ));
                }
                Next::NewRun | Next::End => self.refresh(),
            }
            return Ok(next);
        }
    }

    /// Metadata of the trace; complete once the end was reached.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    fn refresh(&mut self) {
        self.meta = self.source.meta().clone();
        self.steps.describe(&mut self.meta);
    }
}

impl Source {
    fn name(&self) -> &str {
        match self {
            Source::One(part) => &part.name,
            Source::Several(merge) => merge.name(),
        }
    }

    fn meta(&self) -> &Meta {
        match self {
            Source::One(part) => part.meta(),
            Source::Several(merge) => merge.meta(),
        }
    }
}

/// The files of paths, with folders expanded.
pub(crate) fn files_of(paths: &[&Path]) -> Result<Vec<PathBuf>, TraceError> {
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() { files.extend(stored_in(path)?) } else { files.push(path.to_path_buf()) }
    }
    Ok(files)
}

/// The stored traces in a folder, by name; hidden ones are incomplete.
fn stored_in(folder: &Path) -> Result<Vec<PathBuf>, TraceError> {
    let failed = |error: std::io::Error| TraceError::of_file(folder.display().to_string(), error);
    let entries = fs::read_dir(folder).map_err(failed)?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>();
    let is_stored = |path: &PathBuf| {
        path.extension().is_some_and(|suffix| suffix == "parquet")
            && !path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
    };
    let mut paths: Vec<PathBuf> = paths.map_err(failed)?.into_iter().filter(is_stored).collect();
    paths.sort();
    if paths.is_empty() {
        let message = "is a directory without *.parquet files of a stored trace";
        return Err(TraceError::of_file(folder.display().to_string(), message));
    }
    Ok(paths)
}

/// Number of stored traces read concurrently, with a row group of each in memory: 400 MB if they are long.
#[cfg(feature = "files")]
pub(crate) const SIDE_BY_SIDE: usize = 32;

/// Protects the files from being replaced while they are read, and registers them with the current command.
#[cfg(feature = "files")]
pub(crate) fn hold_inputs(files: &[PathBuf]) -> Result<Outputs, TraceError> {
    let inputs = Outputs::for_reader();
    for path in files {
        note_input(path)?;
        inputs.measure(path, &[])?;
    }
    Ok(inputs)
}

/// Merges stored traces if there are more than can be read concurrently; `None` otherwise.
#[cfg(feature = "files")]
fn gathered(paths: &[PathBuf]) -> Result<Vec<Draft>, TraceError> {
    let is_stored = |path: &PathBuf| path.is_file() && begins_as_parquet(path).unwrap_or(false);
    if paths.len() <= SIDE_BY_SIDE || !paths.iter().all(is_stored) {
        return Ok(Vec::new());
    }
    let place = std::env::temp_dir().join("gathered.parquet");
    let put_together = |paths: &[&Path]| {
        let (writer, meta) = merged(paths, StoreWriter::create(&place)?)?;
        writer.finish_part(&meta)
    };
    let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
    let mut drafts = paths.chunks(SIDE_BY_SIDE).map(put_together).collect::<Result<Vec<_>, _>>()?;
    while drafts.len() > SIDE_BY_SIDE {
        drafts = paths_of(&drafts).chunks(SIDE_BY_SIDE).map(put_together).collect::<Result<_, _>>()?;
    }
    Ok(drafts)
}

#[cfg(feature = "files")]
fn begins_as_parquet(path: &Path) -> std::io::Result<bool> {
    use std::io::Read;
    let mut head = [0; 4];
    fs::File::open(path)?.read_exact(&mut head)?;
    Ok(head == *b"PAR1")
}

#[cfg(feature = "files")]
pub(crate) fn paths_of(drafts: &[Draft]) -> Vec<&Path> {
    drafts.iter().map(Draft::path).collect()
}

/// Merges several stored traces into one, with their metadata.
#[cfg(feature = "files")]
pub(crate) fn merged(paths: &[&Path], mut writer: StoreWriter) -> Result<(StoreWriter, Meta), TraceError> {
    let options = ReadOptions { format: Some(Format::Parquet), ..ReadOptions::default() };
    let mut reader = TraceReader::open(paths, &options)?;
    let mut batch = Vec::new();
    while reader.next_batch(&mut batch)? {
        writer.write(&batch, reader.meta())?;
    }
    Ok((writer, reader.meta().clone()))
}

/// Number of lines by which a file is detected that changes its format later.
const FIRST_LINES: usize = 5;

fn detect(input: &Input) -> Result<Format, TraceError> {
    // Most other formats parse the head as text, which takes milliseconds, and none begins like this one.
    if Format::Parquet.fits(input.head()) {
        return Ok(Format::Parquet);
    }
    let fitting = |head: Head<'_>| Format::ALL.into_iter().filter(|format| format.fits(head)).collect::<Vec<Format>>();
    let names = |formats: &[Format]| formats.iter().map(|format| format.name()).collect::<Vec<_>>().join(", ");
    let all = fitting(input.head());
    match all[..] {
        [format] => Ok(format),
        // Reading it reports the line that does not fit.
        [] => match fitting(input.head().first(FIRST_LINES))[..] {
            [format] => Ok(format),
            _ => {
                let none = "is in no known format (see `headstack trace formats`)";
                let hint = nearest(input).unwrap_or_else(|| "a CSV needs its columns declared".to_owned());
                Err(TraceError::of_file(&input.name, format!("{none}; {hint}")))
            }
        },
        _ => Err(TraceError::of_file(&input.name, format!("fits {}; add --format to select one", names(&all)))),
    }
}
