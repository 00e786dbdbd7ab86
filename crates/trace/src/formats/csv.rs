//! Any table with one request per line, whose columns, units and words are declared by the user or by a file of
//! `formats/`.

mod column_tables;
mod declaration;
pub(crate) mod shipped;
mod split;

pub use declaration::CsvColumns;
use declaration::{Base, Clockwork};
use declaration::{COUNT, DEVICE, KEY, LENGTH, OFFSET, OPERATION, PID, PROCESS, RESPONSE, SLOTS, TIME, UNIT};
use split::{COLUMNS_FAST, Separator};

use rustc_hash::FxHashMap;

use super::first_lines::{finest_step_ns, names_columns};
use super::units::{Stated, proven_unit};
use super::{Part, WHOLE_SECONDS, keys};
use crate::collect::Collector;
use crate::error::{Place, Problem, TraceError, refused};
use crate::input::{Head, Input};
use crate::meta::{AddressSpace, Clock};
use crate::record::{NOT_RECORDED, Operation, Record};
use crate::text::{BYTES_END, fields, length_bytes, offset_bytes, whole, words};
use crate::time::{Calendar, NS_PER_S, NS_PER_TICK, TIME_NS_END, TimeUnit, plausible};

/// Longest recording, 10 years: anything longer indicates a wrong unit.
const SPAN_NS_MAX: u64 = 10 * 366 * 24 * 3_600 * 1_000_000_000;
/// Longest response time, a day.
const RESPONSE_NS_MAX: u64 = 24 * 3_600 * 1_000_000_000;
/// Number of outstanding requests that never occurs.
const REQUESTS_TOGETHER: usize = 1_000;
/// Largest number of requests that a line represents, so that a line cannot fill the memory.
const REPEATS_MAX: u64 = 100;
/// Number of lines that are searched for the first valid one.
const LINES_LOOKED_AT: usize = 300;

/// A declaration applied to a file.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    declared: CsvColumns,
    /// Columns from 0 and the slots that they fill, in column order.
    wanted: Vec<(usize, usize)>,
    /// Number of columns of a line.
    columns: (usize, usize),
    header: Option<Vec<u8>>,
    leading_lines: u64,
    clockwork: Clockwork,
    base: Base,
    first_ns: u64,
    step_ns: u64,
    /// Added to times of completion.
    shift_ns: u64,
    /// Bytes of a block, if given.
    sector_bytes: Option<u32>,
}

impl Layout {
    /// Examines the first lines of `input`: the header, the columns, the base of times.
    ///
    /// # Errors
    /// Without a declaration, or with one that the file does not fit.
    pub(crate) fn open(
        input: &Input,
        declared: Option<&CsvColumns>,
        sector_bytes: Option<u32>,
    ) -> Result<Layout, TraceError> {
        let example = "time=ts:us,offset=lba:512,length=size,op=rw";
        let declared = declared
            .ok_or_else(|| TraceError::of_file(&input.name, format!("a CSV needs its columns declared: {example}")))?;
        if sector_bytes.is_some() && !declared.has_open_sector {
            let message = "its format has no sector size; set the unit of its columns";
            return Err(TraceError::of_file(&input.name, message));
        }
        if sector_bytes == Some(0) {
            return Err(TraceError::of_file(&input.name, "the sector size must be at least 1 byte"));
        }
        Layout::from_head(input.head(), declared, sector_bytes).map_err(|(line, (field, message))| TraceError {
            file: input.name.clone(),
            place: line.map_or(Place::File, Place::Line),
            field,
            message,
        })
    }

    /// Like [`open`](Self::open) on a head; an error includes the line, if it concerns one.
    fn from_head(
        head: Head<'_>,
        declared: &CsvColumns,
        sector_bytes: Option<u32>,
    ) -> Result<Layout, (Option<u64>, Problem)> {
        let mut lines = head.lines().zip(1..).skip(usize::try_from(declared.skip).unwrap_or(usize::MAX));
        let mut next = || lines.by_ref().find(|(line, _)| !line.trim_ascii().is_empty());
        let ended = || (None, ("", "there is no request after the header".to_owned()));
        let header = if declared.has_header() { Some(next().ok_or_else(ended)?) } else { None };
        let names = header.map(|(line, _)| line);
        let wanted = declared.places(names);
        let wanted = wanted.map_err(|problem| (Some(header.map_or(1, |(_, number)| number)), problem))?;
        let (first, number) = next().ok_or_else(ended)?;
        let as_first = declared.separator.split(header.map_or(first, |(line, _)| line)).count();
        let is_timed = wanted.iter().any(|&(_, slot)| slot == TIME);
        let mut layout = Layout {
            wanted,
            columns: match &declared.count {
                Some(count) if header.is_none() => (*count.start(), *count.end()),
                _ => (as_first, as_first),
            },
            header: header.map(|(line, _)| line.trim_ascii().to_owned()),
            leading_lines: header.map_or(declared.skip, |(_, number)| number),
            clockwork: if is_timed { declared.clockwork() } else { Clockwork::Order },
            base: Base::Recording,
            first_ns: 0,
            step_ns: NS_PER_TICK,
            shift_ns: 0,
            sector_bytes,
            declared: declared.clone(),
        };
        layout.look(head, first, number)?;
        Ok(layout)
    }

    /// Determines from the first lines, of which `first` has a number, what the declaration leaves open.
    fn look(&mut self, head: Head<'_>, first: &[u8], number: u64) -> Result<(), (Option<u64>, Problem)> {
        let begin = usize::try_from(self.leading_lines).unwrap_or(usize::MAX);
        let lines = head.lines().zip(1..).skip(begin).filter(|(line, _)| !line.trim_ascii().is_empty());
        // If a file defines its number of columns, a bad first line is reported during reading.
        let is_told = self.declared.count.is_some() || self.header.is_some();
        let is_good = |line: &[u8]| !self.is_header(line) && (!is_told || self.slots(line).is_ok());
        let good: Vec<(&[u8], u64)> = lines.filter(|(line, _)| is_good(line)).take(LINES_LOOKED_AT).collect();
        let (first, number) = good.first().copied().unwrap_or((first, number));
        let at = |problem| (Some(number), problem);
        let slots = self.slots(first).map_err(at)?;
        // If files differ in their number of columns, each has as many throughout as in its first line.
        let count = self.declared.separator.split(first).count();
        self.columns = (count, count);
        if let Clockwork::Since(_, unit) = self.clockwork {
            self.base = self.base_of(slots[TIME], unit).map_err(at)?;
            let time = |line| self.slots(line).map_or(&b""[..], |slots| slots[TIME]);
            self.step_ns = finest_step_ns(head, unit, time);
        }
        if let Clockwork::Dates(Calendar::Text) = self.clockwork {
            let time = |line| self.slots(line).map_or(&b""[..], |slots| slots[TIME]);
            let digits = |line| {
                let behind = time(line).iter().skip_while(|byte| !matches!(byte, b'.' | b',')).skip(1);
                behind.take_while(|byte| byte.is_ascii_digit()).count()
            };
            let most = good.iter().map(|(line, _)| digits(line)).max();
            self.step_ns = TimeUnit::Seconds.step_ns(most.unwrap_or(0));
        }
        self.shift_ns = self.shift_ns(&good);
        let time = |(line, _): &(&[u8], u64)| self.arrival_ns(self.slots(line).ok()?[TIME]).ok();
        self.first_ns = good.iter().find_map(time).unwrap_or_default();
        self.check_addresses(head).map_err(at)?;
        self.check_response_times(head).map_err(at)
    }

    /// Shift of times of completion, so that requests that began before the clock have non-negative ones.
    fn shift_ns(&self, good: &[(&[u8], u64)]) -> u64 {
        let (&Some((_, unit)), true) = (&self.declared.response, self.declared.is_at_completion) else { return 0 };
        let before = |line: &[u8]| {
            let slots = self.slots(line).ok()?;
            let response_ns = response_ns(slots[RESPONSE], unit).ok().filter(|ns| *ns != NOT_RECORDED)?;
            Some(response_ns.saturating_sub(self.arrival_ns(slots[TIME]).ok()?))
        };
        good.iter().filter_map(|(line, _)| before(line)).max().unwrap_or(0)
    }

    /// Stores the metadata of all requests in `out`.
    pub(crate) fn describe(&self, out: &mut Collector) {
        (out.meta.clock, out.meta.resolution_ns) = match (self.clockwork, self.base) {
            (Clockwork::Order, _) => (Clock::Order, 1),
            (Clockwork::Dates(_), _) | (Clockwork::Since(..), Base::Unix) => (Clock::Unix, self.step_ns),
            (Clockwork::Since(..), Base::Recording) => (Clock::Recording, self.step_ns),
        };
        let has_responses = self.wanted.iter().any(|&(_, slot)| slot == RESPONSE);
        out.meta.response = has_responses.then_some(self.declared.span);
        if self.clockwork == Clockwork::Order {
            out.meta.note("times are not recorded: requests are numbered, a nanosecond each");
        }
        if self.clockwork == Clockwork::Dates(Calendar::Text) {
            out.meta.note("dates without a time zone are treated as UTC");
        }
        if self.shift_ns > 0 {
            let shift_ns = self.shift_ns;
            out.meta
                .note(format!("times are shifted by {shift_ns} ns, since the first requests arrived before time 0"));
        }
        if self.step_ns == NS_PER_S && self.clockwork != Clockwork::Order {
            out.meta.note(WHOLE_SECONDS);
        }
        if self.declared.key.is_some() {
            let within_files = self.declared.offset.is_some();
            out.meta.address_space = if within_files { AddressSpace::File } else { AddressSpace::Object };
            out.meta.note("addresses are hashes of keys, so neighbours are unrelated");
        } else if self.declared.has_open_sector && self.sector_bytes.is_none() {
            out.meta.note(format!("numbers are treated as blocks of {} bytes", self.declared.block_bytes));
        }
        self.declared.notes.iter().for_each(|note| out.meta.note(note.as_str()));
    }

    /// Whether requests have no times, and are numbered in line order.
    pub(crate) fn is_untimed(&self) -> bool {
        self.clockwork == Clockwork::Order
    }

    /// Number of lines before the first request.
    pub(crate) fn leading_lines(&self) -> u64 {
        self.leading_lines
    }

    /// Whether a line is a header, at the top or of a concatenated file.
    pub(crate) fn is_header(&self, line: &[u8]) -> bool {
        if self.header.as_deref() == Some(line.trim_ascii()) {
            return true;
        }
        !self.declared.header.is_empty() && names_columns(line, &self.declared.header)
    }

    /// Parses a line; `None` for a repeated header.
    #[inline]
    pub(crate) fn parse(&self, line: &[u8], part: &mut Part) -> Result<Option<Record>, Problem> {
        if self.header.as_deref() == Some(line.trim_ascii()) {
            return Ok(None);
        }
        let slots = self.slots(line)?;
        let mut record = self.record(&slots)?;
        record.device = match slots[UNIT] {
            b"" => part.devices.of("device", slots[DEVICE])?,
            unit => part.devices.of_pair("device", slots[DEVICE], b',', unit)?,
        };
        if !slots[PID].is_empty() {
            let is_pid = whole(slots[PID]).is_some_and(|pid| pid <= u64::from(u32::MAX));
            if !is_pid {
                return Err(refused("pid", slots[PID], "a whole number below 2^32"));
            }
            record.process = 1 + part.processes.of_pair("process", slots[PID], b' ', slots[PROCESS])?;
        }
        if record.operation == Operation::Unknown && self.declared.operation.is_some() {
            part.count("requests of unknown kind");
        }
        if record.response_ns == NOT_RECORDED && self.declared.response.is_some() {
            part.count("requests without a response time");
        }
        if !slots[COUNT].is_empty() {
            part.repeat(record, repeats(slots[COUNT])?, REPEATS_MAX);
        }
        Ok(Some(record))
    }

    /// Builds the request from the fields, without its device.
    #[inline]
    fn record(&self, slots: &[&[u8]; SLOTS]) -> Result<Record, Problem> {
        let arrival_ns = self.arrival_ns(slots[TIME])?;
        if arrival_ns.abs_diff(self.first_ns) > SPAN_NS_MAX {
            let (field, message) = refused("time", slots[TIME], "within 10 years of the first request");
            return Err((field, format!("{message}; is its unit right?")));
        }
        let operation = match slots[OPERATION] {
            b"" => Operation::Unknown,
            word => {
                let words = &self.declared.words;
                words.operation(word).ok_or_else(|| refused("op", word, &words.title()))?
            }
        };
        let offset = self.offset_bytes(slots)?;
        let length = match self.declared.length {
            Some((_, unit_bytes)) => length_bytes("length", slots[LENGTH], unit_bytes)?,
            None => self.sector_bytes.unwrap_or(self.declared.block_bytes),
        };
        let mut record = Record::new(arrival_ns, operation, offset, length);
        if let Some((_, unit)) = self.declared.response {
            record.response_ns = response_ns(slots[RESPONSE], unit)?;
        }
        if self.declared.is_at_completion {
            if record.response_ns == NOT_RECORDED {
                return Err(refused("response", slots[RESPONSE], "a duration, since the time is the completion time"));
            }
            let shifted_ns = record.arrival_ns + self.shift_ns;
            record.arrival_ns = shifted_ns
                .checked_sub(record.response_ns)
                .ok_or_else(|| ("response", "the request began before the first requests of the file".to_owned()))?;
        }
        Ok(record)
    }

    /// Start of a request: its address, the address of its key, or an offset from the latter.
    #[inline]
    fn offset_bytes(&self, slots: &[&[u8]; SLOTS]) -> Result<u64, Problem> {
        let within = match &self.declared.offset {
            Some((_, unit_bytes)) => {
                let unit_bytes =
                    if self.declared.has_open_sector { self.sector_bytes } else { None }.unwrap_or(*unit_bytes);
                offset_bytes("offset", slots[OFFSET], unit_bytes)?
            }
            None => 0,
        };
        if self.declared.key.is_none() {
            return Ok(within);
        }
        keys::check(slots[KEY])?;
        let offset = keys::address(slots[KEY]).checked_add(within).filter(|&offset| offset < BYTES_END);
        offset.ok_or_else(|| refused("offset", slots[OFFSET], "a whole number of bytes below 2^62"))
    }

    /// The fields of a request.
    #[inline]
    fn slots<'a>(&self, line: &'a [u8]) -> Result<[&'a [u8]; SLOTS], Problem> {
        let mut slots = [&b""[..]; SLOTS];
        let is_far = self.wanted.last().is_some_and(|&(column, _)| column >= COLUMNS_FAST);
        let count = match self.declared.separator {
            Separator::Byte(byte) if !is_far && memchr::memchr(b'"', line).is_none() => {
                let (found, count) = fields::<COLUMNS_FAST>(line, byte);
                self.wanted.iter().for_each(|&(column, slot)| slots[slot] = found[column]);
                count
            }
            Separator::Blanks if !is_far => {
                let (found, count) = words::<COLUMNS_FAST>(line);
                self.wanted.iter().for_each(|&(column, slot)| slots[slot] = found[column]);
                count
            }
            separator => {
                let mut wanted = self.wanted.iter().peekable();
                let mut count = 0;
                for field in separator.split(line) {
                    while let Some((_, slot)) = wanted.next_if(|(column, _)| *column == count) {
                        slots[*slot] = field;
                    }
                    count += 1;
                }
                count
            }
        };
        let (least, most) = self.columns;
        if (least..=most).contains(&count) {
            return Ok(slots);
        }
        let expected =
            if least == most { format!("{least} as in the first line") } else { format!("at least {least}") };
        Err(("", format!("{count} columns; expected {expected}")))
    }

    /// Base of the times of a file, by its first one.
    fn base_of(&self, first: &[u8], unit: TimeUnit) -> Result<Base, Problem> {
        if let Clockwork::Since(Some(base), _) = self.clockwork {
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
                    "not a date in {name}, but the year {year} in {title}; correct the unit, or declare base=recording"
                );
                Err(("time", message))
            }
        }
    }

    #[inline]
    fn arrival_ns(&self, text: &[u8]) -> Result<u64, Problem> {
        let unit = match (self.clockwork, self.base) {
            (Clockwork::Order, _) => return Ok(0),
            (Clockwork::Dates(calendar), _) => {
                return calendar.date_ns(text).ok_or_else(|| calendar.refused("time", text));
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

    /// Fails if requests that follow each other prove another unit than the declared one.
    fn check_addresses(&self, head: Head<'_>) -> Result<(), Problem> {
        let (Some((_, unit)), None, Some(_)) = (&self.declared.offset, &self.declared.key, &self.declared.length)
        else {
            return Ok(());
        };
        let unit = if self.declared.has_open_sector { self.sector_bytes.unwrap_or(*unit) } else { *unit };
        let lines = head.lines().skip(usize::try_from(self.leading_lines).unwrap_or(usize::MAX));
        let mut devices: FxHashMap<(&[u8], &[u8]), u64> = FxHashMap::default();
        let stated = |line| {
            let slots = self.slots(line).ok()?;
            let record = self.record(&slots).ok()?;
            let next = devices.len() as u64;
            let device = *devices.entry((slots[DEVICE], slots[UNIT])).or_insert(next);
            let address = record.offset_bytes / u64::from(unit);
            Some(Stated { device, address, length_bytes: u64::from(record.length_bytes) })
        };
        let requests: Vec<Stated> = lines.filter_map(stated).collect();
        match proven_unit(&requests) {
            Some(proven) if proven != unit => {
                let message = format!(
                    "requests are sequential in units of {proven} bytes, but not in units of {unit}; correct the unit of offset or length"
                );
                Err(("offset", message))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Fails if response times imply a thousand outstanding requests, since their unit must then differ from that of
    /// arrivals.
    fn check_response_times(&self, head: Head<'_>) -> Result<(), Problem> {
        let Some((_, unit)) = self.declared.response else {
            return Ok(());
        };
        if self.is_untimed() {
            return Ok(());
        }
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
        // Requests with equal timestamps arrived within their resolution.
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

/// Number of requests that a line represents.
fn repeats(text: &[u8]) -> Result<u64, Problem> {
    let repeats = whole(text).filter(|&count| count > 0);
    repeats.ok_or_else(|| refused("count", text, "a whole number above 0"))
}

/// A response time; blank or `nan` if there is none.
fn response_ns(text: &[u8], unit: TimeUnit) -> Result<u64, Problem> {
    if text.is_empty() || text.eq_ignore_ascii_case(b"nan") {
        return Ok(NOT_RECORDED);
    }
    let ns = floating_ns(text, unit).filter(|&ns| ns <= RESPONSE_NS_MAX);
    ns.ok_or_else(|| refused("response", text, &format!("a number of {}, at most a day, or blank", unit.name())))
}

/// A time in ns; data frames print short ones as `5e-05`, which is parsed as a double.
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
