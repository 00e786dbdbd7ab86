//! Text formats whose lines depend on earlier lines ([`SerialFormat`]).

use super::cutter::{Cutter, Text, check_length};
use super::{hfplayer, iolog, mooncake, validate};
use crate::collect::Collector;
use crate::error::{Place, Problem, TraceError};
use crate::input::Input;
use crate::record::Record;

/// The format, with the state of the current file.
#[derive(Debug)]
pub(crate) enum SerialFormat {
    Hfplayer(Option<Box<hfplayer::Hfplayer>>),
    Iolog(iolog::Iolog),
    Mooncake(mooncake::Mooncake),
    Validate(validate::Validate),
}

impl SerialFormat {
    /// Starts a file.
    ///
    /// # Errors
    /// Returns an error if the header is invalid.
    fn begin(&mut self, input: &Input, out: &mut Collector) -> Result<(), TraceError> {
        match self {
            SerialFormat::Hfplayer(hfplayer) => *hfplayer = Some(Box::new(hfplayer::Hfplayer::open(input, out)?)),
            SerialFormat::Iolog(iolog) => *iolog = iolog::Iolog::default(),
            SerialFormat::Mooncake(_) => {}
            SerialFormat::Validate(validate) => validate.begin(input, out),
        }
        Ok(())
    }

    /// Ends a file and returns all records that wait for a later line.
    fn end(&mut self, out: &mut Collector) {
        match self {
            SerialFormat::Hfplayer(hfplayer) => hfplayer.iter_mut().for_each(|hfplayer| hfplayer.end(out)),
            SerialFormat::Iolog(_) | SerialFormat::Mooncake(_) | SerialFormat::Validate(_) => {}
        }
    }

    /// Returns an error if a line is too long for the format. A request to a language model may have 100,000 blocks.
    fn check_length(&self, line: &[u8]) -> Result<(), Problem> {
        match self {
            SerialFormat::Mooncake(_) => Ok(()),
            SerialFormat::Hfplayer(_) | SerialFormat::Iolog(_) | SerialFormat::Validate(_) => check_length(line),
        }
    }

    /// Parses a line; `None` if it contains no request (such as a header) or its requests were already added to `out`.
    #[inline]
    fn parse(&mut self, line: &[u8], out: &mut Collector) -> Result<Option<Record>, Problem> {
        match self {
            SerialFormat::Hfplayer(hfplayer) => {
                hfplayer.as_mut().expect("`begin` is called before lines are parsed").parse(line, out)
            }
            SerialFormat::Iolog(iolog) => iolog.parse(line, out),
            SerialFormat::Mooncake(mooncake) => mooncake.parse(line, out).map(|()| None),
            SerialFormat::Validate(validate) => validate.parse(line).map(Some),
        }
    }
}

/// Reads the lines of several inputs, one after another.
pub(crate) struct Serial {
    cutter: Cutter,
    text: Text,
    format: SerialFormat,
    /// Number of lines parsed in the current input.
    line: u64,
}

impl Serial {
    pub(crate) fn new(inputs: Vec<Input>, format: SerialFormat) -> Serial {
        Serial { cutter: Cutter::new(inputs), text: Text::default(), format, line: 0 }
    }

    /// Reads a chunk; returns false at the end.
    pub(crate) fn read(&mut self, out: &mut Collector) -> Result<bool, TraceError> {
        if !self.cutter.fill(&mut self.text)? {
            return Ok(false);
        }
        let input = self.cutter.input(self.text.input);
        if self.text.is_first {
            self.format.begin(input, out)?;
            self.line = 0;
        }
        self.text.check(&input.name, self.line)?;
        for line in self.text.lines() {
            self.line += 1;
            let line = line.trim_ascii();
            if line.is_empty() {
                continue;
            }
            match self.format.check_length(line).and_then(|()| self.format.parse(line, out)) {
                Ok(Some(record)) => out.records.push(record),
                Ok(None) => {}
                Err(problem) => out.reject(&input.name, Place::Line(self.line), problem)?,
            }
        }
        if self.text.is_last {
            self.format.end(out);
        }
        Ok(true)
    }
}
