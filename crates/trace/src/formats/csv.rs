//! Any CSV with one request a line, whose columns, units and words somebody declares.

mod declaration;

pub use declaration::CsvColumns;
use declaration::{Base, Clockwork};
use declaration::{DEVICE, LENGTH, OFFSET, OPERATION, RESPONSE, SLOTS, TIME};

use super::Part;
use super::first_lines::finest_step_ns;
use crate::collect::Collector;
use crate::error::{Place, Problem, TraceError, refused};
use crate::input::{Head, Input};
use crate::meta::{Clock, ResponseSpan};
use crate::record::{NOT_RECORDED, Operation, Record};
use crate::text::{length_bytes, offset_bytes};
use crate::time::{Calendar, NS_PER_TICK, TIME_NS_END, TimeUnit, plausible};

/// No recording is longer than 10 years: its unit would be wrong.
const SPAN_NS_MAX: u64 = 10 * 366 * 24 * 3_600 * 1_000_000_000;
/// No request takes longer than a day.
const RESPONSE_NS_MAX: u64 = 24 * 3_600 * 1_000_000_000;
/// So many requests are never all outstanding at once.
const REQUESTS_TOGETHER: usize = 1_000;

/// A declaration, applied to a file.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    declared: CsvColumns,
    /// Columns from 0 and the slots that they fill, the first column first.
    wanted: Vec<(usize, usize)>,
    /// How many columns a line has.
    columns: usize,
    header: Option<Vec<u8>>,
    leading_lines: u64,
    base: Base,
    first_ns: u64,
    step_ns: u64,
}

impl Layout {
    /// Looks at the first lines of `input`: the header, the columns, what times count from.
    ///
    /// # Errors
    /// Without a declaration, or one that the file does not fit.
    pub(crate) fn open(input: &Input, declared: Option<&CsvColumns>) -> Result<Layout, TraceError> {
        let example = "time=ts:us,offset=lba:512,length=size,op=rw";
        let declared = declared
            .ok_or_else(|| TraceError::of_file(&input.name, format!("a CSV needs its columns declared: {example}")))?;
        let at = |line: u64, (field, message): Problem| TraceError {
            file: input.name.clone(),
            place: Place::Line(line),
            field,
            message,
        };
        let mut lines = input.head().lines().zip(1..).skip(usize::try_from(declared.skip).unwrap_or(usize::MAX));
        let mut next = || lines.by_ref().find(|(line, _)| !line.trim_ascii().is_empty());
        let ended = || TraceError::of_file(&input.name, "there is no request behind the header");
        let header = if declared.has_header() { Some(next().ok_or_else(ended)?) } else { None };
        // Windows' programs put a byte order mark before it.
        let names = header.map(|(line, _)| line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line));
        let wanted = declared.places(names);
        let wanted = wanted.map_err(|problem| at(header.map_or(1, |(_, number)| number), problem))?;
        let (first, number) = next().ok_or_else(ended)?;
        let mut layout = Layout {
            wanted,
            columns: declared.separator.split(header.map_or(first, |(line, _)| line)).count(),
            header: header.map(|(line, _)| line.trim_ascii().to_owned()),
            leading_lines: header.map_or(declared.skip, |(_, number)| number),
            base: Base::Recording,
            first_ns: 0,
            step_ns: NS_PER_TICK,
            declared: declared.clone(),
        };
        let slots = layout.slots(first).map_err(|problem| at(number, problem))?;
        layout.base = layout.base_of(slots[TIME]).map_err(|problem| at(number, problem))?;
        layout.first_ns = layout.arrival_ns(slots[TIME]).unwrap_or_default();
        if let Clockwork::Since(_, unit) = layout.declared.clockwork() {
            let time = |line| layout.slots(line).map_or(&b""[..], |slots| slots[TIME]);
            layout.step_ns = finest_step_ns(input.head(), unit, time);
        }
        layout.check_response_times(input.head()).map_err(|problem| at(number, problem))?;
        Ok(layout)
    }

    /// Says in `out` what holds for all requests.
    pub(crate) fn describe(&self, out: &mut Collector) {
        out.meta.clock = if self.base == Base::Unix { Clock::Unix } else { Clock::Recording };
        out.meta.resolution_ns = self.step_ns;
        out.meta.response = self.declared.response.as_ref().map(|_| ResponseSpan::AtTheHost);
    }

    /// Lines before the first request, which are none themselves.
    pub(crate) fn leading_lines(&self) -> u64 {
        self.leading_lines
    }

    /// The request of a line; nothing for a header that comes again.
    pub(crate) fn parse(&self, line: &[u8], part: &mut Part) -> Result<Option<Record>, Problem> {
        if self.header.as_deref() == Some(line.trim_ascii()) {
            return Ok(None);
        }
        let slots = self.slots(line)?;
        let mut record = self.record(&slots)?;
        record.device = part.devices.of("device", slots[DEVICE])?;
        if record.operation == Operation::Unknown && self.declared.operation.is_some() {
            part.count("requests of unknown kind");
        }
        if record.response_ns == NOT_RECORDED && self.declared.response.is_some() {
            part.count("requests without a response time");
        }
        Ok(Some(record))
    }

    /// The request of those fields, but for its device.
    fn record(&self, slots: &[&[u8]; SLOTS]) -> Result<Record, Problem> {
        let arrival_ns = self.arrival_ns(slots[TIME])?;
        if arrival_ns.abs_diff(self.first_ns) > SPAN_NS_MAX {
            let (field, message) = refused("time", slots[TIME], "within 10 years of the first request");
            return Err((field, format!("{message}; is its unit right?")));
        }
        let operation = match slots[OPERATION] {
            b"" => Operation::Unknown,
            word => self.declared.words.operation(word).ok_or_else(|| {
                refused("op", word, &format!("{}; declare read=WORD and write=WORD", self.declared.words.title()))
            })?,
        };
        let offset = offset_bytes("offset", slots[OFFSET], self.declared.offset.1)?;
        let length = length_bytes("length", slots[LENGTH], self.declared.length.1)?;
        let mut record = Record::new(arrival_ns, operation, offset, length);
        if let Some((_, unit)) = self.declared.response {
            record.response_ns = response_ns(slots[RESPONSE], unit)?;
        }
        Ok(record)
    }

    /// The fields that a request is made of.
    fn slots<'a>(&self, line: &'a [u8]) -> Result<[&'a [u8]; SLOTS], Problem> {
        let mut slots = [&b""[..]; SLOTS];
        let mut wanted = self.wanted.iter().peekable();
        let mut count = 0;
        for field in self.declared.separator.split(line) {
            while let Some((_, slot)) = wanted.next_if(|(column, _)| *column == count) {
                slots[*slot] = field;
            }
            count += 1;
        }
        if count == self.columns {
            return Ok(slots);
        }
        Err(("", format!("{count} columns; expected {} as in the first line", self.columns)))
    }

    /// What the times of a file count from, by its first.
    fn base_of(&self, first: &[u8]) -> Result<Base, Problem> {
        let Clockwork::Since(declared, unit) = self.declared.clockwork() else {
            return Ok(Base::Unix);
        };
        if let Some(base) = declared {
            return Ok(base);
        }
        if Calendar::Unix(unit).date_ns(first).is_some() {
            return Ok(Base::Unix);
        }
        match plausible(first) {
            None => Ok(Base::Recording),
            Some((title, year)) => {
                let name = unit.name();
                let message = format!(
                    "in {name} it is not a date, but as {title} it is of {year}; correct the unit, or declare base=recording"
                );
                Err(("time", message))
            }
        }
    }

    fn arrival_ns(&self, text: &[u8]) -> Result<u64, Problem> {
        let unit = match (self.declared.clockwork(), self.base) {
            (Clockwork::FileTime, _) => {
                return Calendar::FileTime.date_ns(text).ok_or_else(|| Calendar::FileTime.refused("time", text));
            }
            (Clockwork::Since(_, unit), Base::Unix) => {
                let calendar = Calendar::Unix(unit);
                return calendar.date_ns(text).ok_or_else(|| calendar.refused("time", text));
            }
            (Clockwork::Since(_, unit), Base::Recording) => unit,
        };
        floating_ns(text, unit)
            .ok_or_else(|| refused("time", text, &format!("a number of {} below 2^63 ns", unit.name())))
    }

    /// Response times that keep a thousand requests outstanding at once are of another unit than arrivals.
    fn check_response_times(&self, head: Head<'_>) -> Result<(), Problem> {
        let Some((_, unit)) = self.declared.response else {
            return Ok(());
        };
        let lines = head.lines().skip(usize::try_from(self.leading_lines).unwrap_or(usize::MAX));
        let requests = lines.filter_map(|line| self.record(&self.slots(line).ok()?).ok());
        let requests = requests.filter(|record| record.response_ns != NOT_RECORDED);
        let (mut count, mut sum_ns, mut least_ns, mut greatest_ns) = (0, 0u128, u64::MAX, 0);
        for record in requests {
            count += 1;
            sum_ns += u128::from(record.response_ns);
            least_ns = least_ns.min(record.arrival_ns);
            greatest_ns = greatest_ns.max(record.arrival_ns);
        }
        if count < REQUESTS_TOGETHER {
            return Ok(());
        }
        let mean_ns = sum_ns / count as u128;
        // Requests with one stamp arrived within the step of stamps.
        let span_ns = u128::from(greatest_ns - least_ns) + u128::from(self.step_ns);
        if mean_ns <= span_ns {
            return Ok(());
        }
        let mean_s = mean_ns as f64 / 1e9;
        let span_s = span_ns as f64 / 1e9;
        let name = unit.name();
        let message = format!(
            "{mean_s} s on average in {name}, but the first {count} requests arrive within {span_s} s; correct the unit of one of both"
        );
        Err(("response", message))
    }
}

/// A response time; blank or `nan` where there is none.
fn response_ns(text: &[u8], unit: TimeUnit) -> Result<u64, Problem> {
    if text.is_empty() || text.eq_ignore_ascii_case(b"nan") {
        return Ok(NOT_RECORDED);
    }
    let ns = floating_ns(text, unit).filter(|&ns| ns <= RESPONSE_NS_MAX);
    ns.ok_or_else(|| refused("response", text, &format!("a number of {}, at most a day, or blank", unit.name())))
}

/// A time in ns; data frames print short ones as `5e-05`, which is read through a double.
fn floating_ns(text: &[u8], unit: TimeUnit) -> Option<u64> {
    if !text.iter().any(|byte| matches!(byte, b'e' | b'E')) {
        return unit.ns(text);
    }
    let value: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    let ns = (value * unit.step_ns(0) as f64).round();
    (0.0..TIME_NS_END as f64).contains(&ns).then_some(ns as u64)
}

#[cfg(test)]
mod tests;
