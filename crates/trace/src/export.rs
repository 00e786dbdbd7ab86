//! Traces written in the formats of other programs.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::Path;

use crate::error::TraceError;
use crate::meta::Meta;
use crate::reader::TraceReader;
use crate::record::{Operation, Record};

pub mod blkparse;
pub(crate) mod disksim;
mod iolog;
pub(crate) mod msr;

/// What a format could not hold, by name: how many requests or facts were left out or changed.
pub type Losses = BTreeMap<&'static str, u64>;

/// A format that traces are written in, beside the stored form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    /// The lines of blkparse.
    Blkparse,
    /// DiskSim's ascii trace.
    DiskSim,
    /// fio's iolog, version 3.
    Iolog,
    /// MSR Cambridge's CSV.
    Msr,
}

impl ExportFormat {
    /// Every one.
    pub const ALL: [ExportFormat; 4] =
        [ExportFormat::Blkparse, ExportFormat::DiskSim, ExportFormat::Iolog, ExportFormat::Msr];

    /// Its name in options.
    pub fn name(self) -> &'static str {
        match self {
            ExportFormat::Blkparse => "blkparse",
            ExportFormat::DiskSim => "disksim",
            ExportFormat::Iolog => "iolog",
            ExportFormat::Msr => "msr",
        }
    }

    /// What it is, for people.
    pub fn title(self) -> &'static str {
        match self {
            ExportFormat::Blkparse => "blkparse's text",
            ExportFormat::DiskSim => "DiskSim ascii",
            ExportFormat::Iolog => "fio iolog, version 3",
            ExportFormat::Msr => "MSR Cambridge CSV",
        }
    }

    /// The format of that name.
    pub fn from_name(name: &str) -> Option<ExportFormat> {
        ExportFormat::ALL.into_iter().find(|format| format.name() == name)
    }
}

/// A file being written.
enum Writer {
    Blkparse(blkparse::Writer<BufWriter<File>>),
    DiskSim(disksim::Writer<BufWriter<File>>),
    Iolog(iolog::Writer<BufWriter<File>>),
    Msr(msr::Writer<BufWriter<File>>),
}

impl Writer {
    fn new(format: ExportFormat, out: BufWriter<File>) -> Writer {
        match format {
            ExportFormat::Blkparse => Writer::Blkparse(blkparse::Writer::new(out)),
            ExportFormat::DiskSim => Writer::DiskSim(disksim::Writer::new(out)),
            ExportFormat::Iolog => Writer::Iolog(iolog::Writer::new(out)),
            ExportFormat::Msr => Writer::Msr(msr::Writer::new(out)),
        }
    }

    fn write(&mut self, records: &[Record], meta: &Meta) -> io::Result<()> {
        match self {
            Writer::Blkparse(writer) => writer.write(records, meta),
            Writer::DiskSim(writer) => writer.write(records, meta),
            Writer::Iolog(writer) => writer.write(records, meta),
            Writer::Msr(writer) => writer.write(records, meta),
        }
    }

    fn finish(self) -> io::Result<Losses> {
        match self {
            Writer::Blkparse(writer) => writer.finish(),
            Writer::DiskSim(writer) => writer.finish(),
            Writer::Iolog(writer) => writer.finish(),
            Writer::Msr(writer) => writer.finish(),
        }
    }
}

/// Writes all that `reader` yields to `path`, under a temporary name until it is whole, and says what the format could not
/// hold. `progress` hears the number of requests written so far and says whether to go on.
///
/// # Errors
/// What the trace or the disk does; a stop, as an error that says so.
pub fn export(
    reader: &mut TraceReader,
    path: &Path,
    format: ExportFormat,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<Losses, TraceError> {
    let failed = |error: io::Error| TraceError::of_file(path.display().to_string(), error);
    let name = path.file_name().ok_or_else(|| TraceError::of_file(path.display().to_string(), "is no file name"))?;
    let temporary = path.with_file_name(format!(".{}.{}.partial", name.to_string_lossy(), std::process::id()));
    let mut write = || {
        let file = File::create(&temporary).map_err(failed)?;
        let mut writer = Writer::new(format, BufWriter::with_capacity(1 << 20, file));
        let (mut batch, mut written) = (Vec::new(), 0);
        while reader.next_batch(&mut batch)? {
            writer.write(&batch, reader.meta()).map_err(failed)?;
            written += batch.len() as u64;
            if !progress(written) {
                return Err(TraceError::of_file(path.display().to_string(), "stopped; nothing is written"));
            }
        }
        let losses = writer.finish().map_err(failed)?;
        fs::rename(&temporary, path).map_err(failed)?;
        Ok(losses)
    };
    let result = write();
    if result.is_err() {
        // Nothing half-done is left; what was never begun cannot be removed.
        let _ = fs::remove_file(&temporary);
    }
    result
}
/// Whether a request reads, where a format knows reads and writes only; else what is lost with it.
fn reads(operation: Operation) -> Result<bool, &'static str> {
    match operation {
        Operation::Read => Ok(true),
        Operation::Write => Ok(false),
        Operation::Trim => Err("trims"),
        Operation::Flush => Err("flushes"),
        Operation::Other => Err("requests that are no read, write, trim or flush"),
        Operation::Unknown => Err("requests of unknown kind"),
    }
}

#[cfg(test)]
mod tests;
