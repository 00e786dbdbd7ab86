//! A trace being read, whatever its format: batches of records in order of arrival.

use std::path::Path;

use crate::collect::Collector;
use crate::error::TraceError;
use crate::formats::{CsvColumns, Format, Parser};
use crate::input::Input;
use crate::meta::{Meta, Origin};
use crate::record::Record;
use crate::time::TimeUnit;

/// How a trace is read.
#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    /// Its format, where that is not to be told by content.
    pub format: Option<Format>,
    /// Skip lines that cannot be accepted, and count them.
    pub skip_bad: bool,
    /// The size of a sector, of formats that leave it to their description (SPC; 512 unless said).
    pub sector_bytes: Option<u32>,
    /// The unit of times, of formats that leave it to a configuration (MQSim; ns unless said).
    pub time_unit: Option<TimeUnit>,
    /// The columns of a CSV, which says that the files are such.
    pub csv: Option<CsvColumns>,
}

/// A trace being read.
pub struct TraceReader {
    parser: Parser,
    out: Collector,
}

impl TraceReader {
    /// Opens files that are one trace, in the order given.
    ///
    /// # Errors
    /// Files that cannot be read, or are of no format, or of two.
    pub fn open(paths: &[&Path], options: &ReadOptions) -> Result<TraceReader, TraceError> {
        let inputs = paths.iter().map(|path| Input::open(path)).collect::<Result<Vec<_>, _>>()?;
        TraceReader::from_inputs(inputs, options)
    }

    /// The same, of inputs that are open.
    ///
    /// # Errors
    /// As of files.
    pub fn from_inputs(inputs: Vec<Input>, options: &ReadOptions) -> Result<TraceReader, TraceError> {
        let mut out = Collector::new(options.skip_bad);
        let declared = options.format.or(options.csv.is_some().then_some(Format::Csv));
        let mut format = declared;
        for input in &inputs {
            let found = match declared {
                Some(format) => format,
                None => detect(input)?,
            };
            if *format.get_or_insert(found) != found {
                return Err(TraceError::of_file(&input.name, "is of another format than the files before it"));
            }
            let file =
                Path::new(&input.name).file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
            out.meta.origin.push(Origin { file, format: found.name().to_owned() });
        }
        let format = format.ok_or_else(|| TraceError::of_file("trace", "there is no file"))?;
        let parser = Parser::open(format, inputs, options, &mut out)?;
        Ok(TraceReader { parser, out })
    }

    /// Replaces `batch` by the next records, in order of arrival; false at the end.
    ///
    /// # Errors
    /// What cannot be accepted.
    pub fn next_batch(&mut self, batch: &mut Vec<Record>) -> Result<bool, TraceError> {
        batch.clear();
        while self.out.records.is_empty() {
            if !self.parser.read(&mut self.out)? {
                return Ok(false);
            }
        }
        std::mem::swap(batch, &mut self.out.records);
        Ok(true)
    }

    /// What holds for the trace as a whole; all of it once the end was reached.
    pub fn meta(&self) -> &Meta {
        &self.out.meta
    }
}

fn detect(input: &Input) -> Result<Format, TraceError> {
    let fitting: Vec<Format> = Format::ALL.into_iter().filter(|format| format.fits(input.head())).collect();
    let names = |formats: &[Format]| formats.iter().map(|format| format.name()).collect::<Vec<_>>().join(", ");
    match fitting[..] {
        [format] => Ok(format),
        [] => Err(TraceError::of_file(
            &input.name,
            format!("is in none of the formats {}; a CSV needs its columns declared", names(&Format::ALL)),
        )),
        _ => Err(TraceError::of_file(&input.name, format!("fits {} alike; say which one it is", names(&fitting)))),
    }
}
