//! Any trace into the stored form, in order of arrival, at any size.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::TraceError;
use crate::formats::Format;
use crate::meta::Meta;
use crate::reader::{Next, ReadOptions, TraceReader};
use crate::store::StoreWriter;

/// Runs that are merged at a time: each holds a row group in memory.
const FAN_IN: usize = 16;

/// Writes all that `reader` yields to `path`, and says what holds for it. What is not in order of arrival is written as
/// several sorted runs beside `path`, which are then merged. `progress` hears the number of requests read so far and says
/// whether to go on; nothing is left under any name unless the import succeeds.
///
/// # Errors
/// What the trace or the disk does; a stop, as an error that says so.
pub fn import(
    reader: &mut TraceReader,
    path: &Path,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<Meta, TraceError> {
    let mut runs = Runs { path, runs: Vec::new(), made: 0 };
    let mut writer = StoreWriter::create(path)?;
    let (mut batch, mut before) = (Vec::new(), Vec::new());
    let mut meta = reader.meta().clone();
    let mut read = 0;
    loop {
        // What is encoded was read before: neither leaves a core idle in its serial parts.
        let (next, written) = rayon::join(|| reader.next(&mut batch), || writer.write(&before, &meta));
        written?;
        let next = next?;
        std::mem::swap(&mut batch, &mut before);
        if !meta.has_names_of(reader.meta()) {
            meta.clone_from(reader.meta());
        }
        match next {
            Next::Batch => {}
            Next::NewRun => {
                let run = runs.next_name();
                writer.finish_as(&run, reader.meta())?;
                runs.runs.push(run);
                writer = StoreWriter::create(path)?;
            }
            Next::End => break,
        }
        read += before.len() as u64;
        if !progress(read) {
            return Err(TraceError::of_file(path.display().to_string(), "stopped; nothing is written"));
        }
    }
    let meta = reader.meta().clone();
    if runs.runs.is_empty() {
        writer.finish(&meta)?;
        return Ok(meta);
    }
    let last = runs.next_name();
    writer.finish_as(&last, &meta)?;
    runs.runs.push(last);
    while runs.runs.len() > FAN_IN {
        let some: Vec<PathBuf> = runs.runs.drain(..FAN_IN).collect();
        let merged = runs.next_name();
        let result = merge_runs(&some, &merged, &meta);
        some.iter().for_each(|run| drop(fs::remove_file(run)));
        result?;
        runs.runs.push(merged);
    }
    merge_runs(&runs.runs, path, &meta)?;
    Ok(meta)
}

fn merge_runs(runs: &[PathBuf], path: &Path, meta: &Meta) -> Result<(), TraceError> {
    let paths: Vec<&Path> = runs.iter().map(PathBuf::as_path).collect();
    let options = ReadOptions { format: Some(Format::Parquet), ..ReadOptions::default() };
    let mut reader = TraceReader::open(&paths, &options)?;
    let mut writer = StoreWriter::create(path)?;
    let mut batch = Vec::new();
    while reader.next_batch(&mut batch)? {
        writer.write(&batch, reader.meta())?;
    }
    // The names are those of the runs in the order of the merge; the rest is what the whole said of itself.
    let merged = reader.meta();
    writer.finish(&Meta { devices: merged.devices.clone(), processes: merged.processes.clone(), ..meta.clone() })
}

/// Sorted parts of a trace on disk, gone when this is.
struct Runs<'a> {
    path: &'a Path,
    runs: Vec<PathBuf>,
    made: usize,
}

impl Runs<'_> {
    fn next_name(&mut self) -> PathBuf {
        self.made += 1;
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        self.path.with_file_name(format!(".{name}.{}.run-{}", std::process::id(), self.made))
    }
}

impl Drop for Runs<'_> {
    fn drop(&mut self) {
        self.runs.iter().for_each(|run| drop(fs::remove_file(run)));
    }
}
