//! Imports any trace into the stored form, in order of arrival, at any size ([`import`]).

use std::path::Path;

use headstack_files::{AtomicFile, Draft};

use crate::error::TraceError;
use crate::meta::Meta;
use crate::reader::{TraceReader, merged, paths_of};
use crate::recording::Next;
use crate::store::StoreWriter;

/// Number of runs merged at a time: each holds a row group in memory.
const FAN_IN: usize = 16;

/// Writes all requests of `reader` to `path`, and returns the metadata. Requests that are not in order of arrival are
/// written as several sorted runs in the same folder, which are then merged; the target of `path` receives the file
/// when it is complete. `progress` receives the number of requests read so far and returns whether to continue; nothing
/// is left behind unless the import succeeds.
///
/// # Errors
/// For errors of the trace or the disk, and as "stopped" when `progress` stops it.
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
        // The previous batch is encoded meanwhile: neither leaves a core idle in its serial parts.
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
    // Names are those of the runs in the order of the merge; the rest is the metadata of the whole.
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
