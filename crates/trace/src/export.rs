//! Writes traces in the formats of other programs ([`export`]).

use std::collections::BTreeMap;
use std::io::{self, BufWriter};
use std::path::Path;

use headstack_files::AtomicFile;

use crate::error::TraceError;
use crate::meta::Meta;
use crate::reader::TraceReader;
use crate::record::{Operation, Record};

pub mod blkparse;
mod blktrace;
pub(crate) mod disksim;
mod events;
mod iolog;
pub(crate) mod msr;

/// Data that a format could not represent, by name: number of requests or facts that were omitted or changed.
pub type Losses = BTreeMap<&'static str, u64>;

/// An output format other than the stored form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    /// The lines of blkparse.
    Blkparse,
    /// Linux' block trace, binary, version 7.
    Blktrace,
    /// DiskSim's ascii trace.
    DiskSim,
    /// fio's iolog, version 3.
    Iolog,
    /// MSR Cambridge's CSV.
    Msr,
}

impl ExportFormat {
    /// All formats.
    pub const ALL: [ExportFormat; 5] =
        [ExportFormat::Blkparse, ExportFormat::Blktrace, ExportFormat::DiskSim, ExportFormat::Iolog, ExportFormat::Msr];

    /// Name in options.
    pub fn name(self) -> &'static str {
        match self {
            ExportFormat::Blkparse => "blkparse",
            ExportFormat::Blktrace => "blktrace",
            ExportFormat::DiskSim => "disksim",
            ExportFormat::Iolog => "iolog",
            ExportFormat::Msr => "msr",
        }
    }

    /// Description for users.
    pub fn title(self) -> &'static str {
        match self {
            ExportFormat::Blkparse => "blkparse's text",
            ExportFormat::Blktrace => "blktrace, binary, version 7, of one CPU",
            ExportFormat::DiskSim => "DiskSim ascii",
            ExportFormat::Iolog => "fio iolog, version 3",
            ExportFormat::Msr => "MSR Cambridge CSV",
        }
    }

    /// Returns the format with that name.
    pub fn from_name(name: &str) -> Option<ExportFormat> {
        ExportFormat::ALL.into_iter().find(|format| format.name() == name)
    }
}

/// A file being written.
enum Writer<'a> {
    Blkparse(blkparse::Writer<&'a mut BufWriter<AtomicFile>>),
    Blktrace(blktrace::Writer<&'a mut BufWriter<AtomicFile>>),
    DiskSim(disksim::Writer<&'a mut BufWriter<AtomicFile>>),
    Iolog(iolog::Writer<&'a mut BufWriter<AtomicFile>>),
    Msr(msr::Writer<&'a mut BufWriter<AtomicFile>>),
}

impl<'a> Writer<'a> {
    fn new(format: ExportFormat, out: &'a mut BufWriter<AtomicFile>) -> Writer<'a> {
        match format {
            ExportFormat::Blkparse => Writer::Blkparse(blkparse::Writer::new(out)),
            ExportFormat::Blktrace => Writer::Blktrace(blktrace::Writer::new(out)),
            ExportFormat::DiskSim => Writer::DiskSim(disksim::Writer::new(out)),
            ExportFormat::Iolog => Writer::Iolog(iolog::Writer::new(out)),
            ExportFormat::Msr => Writer::Msr(msr::Writer::new(out)),
        }
    }

    fn write(&mut self, records: &[Record], meta: &Meta) -> io::Result<()> {
        match self {
            Writer::Blkparse(writer) => writer.write(records, meta),
            Writer::Blktrace(writer) => writer.write(records, meta),
            Writer::DiskSim(writer) => writer.write(records, meta),
            Writer::Iolog(writer) => writer.write(records, meta),
            Writer::Msr(writer) => writer.write(records, meta),
        }
    }

    fn finish(self) -> io::Result<Losses> {
        match self {
            Writer::Blkparse(writer) => writer.finish(),
            Writer::Blktrace(writer) => writer.finish(),
            Writer::DiskSim(writer) => writer.finish(),
            Writer::Iolog(writer) => writer.finish(),
            Writer::Msr(writer) => writer.finish(),
        }
    }
}

/// Writes all requests of `reader` to `path`, under a temporary name until complete; returns what the format could not
/// represent. `progress` receives the number of requests written so far and returns whether to continue.
///
/// # Errors
/// For errors of the trace or the disk, and as "stopped" when `progress` stops it.
pub fn export(
    reader: &mut TraceReader,
    path: &Path,
    format: ExportFormat,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<Losses, TraceError> {
    let failed = |error: io::Error| TraceError::for_output(path, &error);
    let mut out = BufWriter::with_capacity(1 << 20, AtomicFile::create(path)?);
    let mut writer = Writer::new(format, &mut out);
    let (mut batch, mut written) = (Vec::new(), 0);
    while reader.next_batch(&mut batch)? {
        writer.write(&batch, reader.meta()).map_err(failed)?;
        written += batch.len() as u64;
        if !progress(written) {
            return Err(TraceError::of_file(path.display().to_string(), "stopped; nothing is written"));
        }
    }
    let losses = writer.finish().map_err(failed)?;
    out.into_inner().map_err(|error| failed(error.into_error()))?.finish()?;
    Ok(losses)
}

/// Whether a request is a read, for formats that only know reads and writes; otherwise the data lost with it.
fn reads(operation: Operation) -> Result<bool, &'static str> {
    match operation {
        Operation::Read => Ok(true),
        Operation::Write => Ok(false),
        Operation::Trim => Err("trims"),
        Operation::Flush => Err("flushes"),
        Operation::Other => Err("requests other than read, write, trim and flush"),
        Operation::Unknown => Err("requests of unknown kind"),
    }
}

#[cfg(test)]
mod tests;
