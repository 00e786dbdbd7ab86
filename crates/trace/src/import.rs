//! Any trace into the stored form, in order of arrival, at any size.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use headstack_files::{AtomicFile, Draft};

use crate::error::TraceError;
use crate::formats::Format;
use crate::formats::ReadOptions;
use crate::meta::Meta;
use crate::reader::TraceReader;
use crate::recording::Next;
use crate::store::StoreWriter;

/// Runs that are merged at a time: each holds a row group in memory.
const FAN_IN: usize = 16;
/// Stored traces that are read side by side, likewise: 400 MB where they are long.
const SIDE_BY_SIDE: usize = 32;

/// Writes all that `reader` yields to `path`, and says what holds for it. What is not in order of arrival is written as
/// several sorted runs beside `path`, which are then merged; what `path` leads to gets it when it is whole. `progress` hears the number of requests read so far and says
/// whether to go on; nothing is left under any name unless the import succeeds.
///
/// # Errors
/// What the trace or the disk does; a stop, as an error that says so.
pub fn import(
    reader: &mut TraceReader,
    path: &Path,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<Meta, TraceError> {
    let mut runs: Vec<Draft> = Vec::new();
    let begin = || StoreWriter::write_to(path, AtomicFile::create_whole(path)?);
    let mut writer = begin()?;
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
                runs.push(writer.finish_part(reader.meta())?);
                writer = begin()?;
            }
            Next::End => break,
        }
        read += before.len() as u64;
        if !progress(read) {
            return Err(TraceError::of_file(path.display().to_string(), "stopped; nothing is written"));
        }
    }
    let meta = reader.meta().clone();
    if runs.is_empty() {
        writer.finish(&meta)?;
        return Ok(meta);
    }
    runs.push(writer.finish_part(&meta)?);
    // The names are those of the runs in the order of the merge; the rest is what the whole said of itself.
    let of_all = |names: Meta| Meta { devices: names.devices, processes: names.processes, ..meta.clone() };
    while runs.len() > FAN_IN {
        let some: Vec<Draft> = runs.drain(..FAN_IN).collect();
        let (writer, names) = merged(&paths_of(&some), begin()?)?;
        runs.push(writer.finish_part(&of_all(names))?);
    }
    let (writer, names) = merged(&paths_of(&runs), begin()?)?;
    writer.close(&of_all(names))?.finish()?;
    Ok(meta)
}

/// Stored traces that are more than are read side by side, put together in as few as are; nothing where they are not.
pub(crate) fn gathered(paths: &[PathBuf]) -> Result<Vec<Draft>, TraceError> {
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

fn begins_as_parquet(path: &Path) -> std::io::Result<bool> {
    let mut head = [0; 4];
    File::open(path)?.read_exact(&mut head)?;
    Ok(head == *b"PAR1")
}

fn paths_of(drafts: &[Draft]) -> Vec<&Path> {
    drafts.iter().map(Draft::path).collect()
}

/// Writes several stored traces as one, and what they say of themselves together.
fn merged(paths: &[&Path], mut writer: StoreWriter) -> Result<(StoreWriter, Meta), TraceError> {
    let options = ReadOptions { format: Some(Format::Parquet), ..ReadOptions::default() };
    let mut reader = TraceReader::open(paths, &options)?;
    let mut batch = Vec::new();
    while reader.next_batch(&mut batch)? {
        writer.write(&batch, reader.meta())?;
    }
    Ok((writer, reader.meta().clone()))
}
