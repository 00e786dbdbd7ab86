//! bcc's biosnoop: `TIME(s) COMM PID DISK T SECTOR BYTES [P] [QUE(ms)] LAT(ms)`, with that header or, after grep or
//! tail, without.
//!
//! TIME is the *completion* of the request, so it arrived LAT (and QUE, if present) earlier. COMM may contain blanks:
//! columns are counted from the right. Sectors are of 512 bytes. Requests without an address have sector -1.
//!
//! biosnoop.bt of bpftrace has neither offset nor length nor direction, and is refused.

use super::Part;
use super::first_lines::most_lines;
use crate::collect::Collector;
use crate::error::{Place, Problem, TraceError, refused};
use crate::input::Head;
use crate::input::Input;
use crate::meta::{Clock, ResponseSpan};
use crate::record::{Flags, NOT_RECORDED, Operation, Record};
use crate::text::{length_bytes, offset_bytes, whole};
use crate::time::TimeUnit;

const SECTOR_BYTES: u32 = 512;
/// Largest number of columns of a line, without the words of its COMM.
const COLUMNS_MAX: usize = 16;
/// Sector of requests without an address; some versions print it unsigned.
const NO_SECTOR: [&[u8]; 2] = [b"-1", b"18446744073709551615"];

pub(crate) fn fits(head: Head<'_>) -> bool {
    header(head).is_some() || Layout::from_lines(head).is_some()
}

/// Columns between BYTES and LAT of a file without a header.
const BETWEEN: [&[&[u8]]; 4] = [&[], &[b"QUE(ms)"], &[b"P"], &[b"P", b"QUE(ms)"]];
/// Columns that may precede COMM.
const BEFORE: [&[&[u8]]; 2] = [&[b"TIME(s)"], &[b"TIME", b"TIME(s)"]];

/// The header's words; bpftrace's version has a line before it.
fn header(head: Head<'_>) -> Option<(Vec<&[u8]>, u64)> {
    let mut lines = head.lines().zip(1..).take(10);
    lines.find_map(|(line, number)| {
        let words: Vec<&[u8]> = split(line).collect();
        let is_header = |name: &[u8]| words.iter().take(2).any(|&word| word == name) && words.contains(&&b"COMM"[..]);
        (is_header(b"TIME(s)") || is_header(b"TIME(ms)")).then_some((words, number))
    })
}

fn split(line: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}

/// The columns of a file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Layout {
    /// The header line.
    line: Vec<Vec<u8>>,
    /// Whether the file has no header, so that the columns are assumed.
    is_assumed: bool,
    /// Number of words before COMM: TIME(s), or a time of day and TIME(s).
    before: usize,
    /// Positions of the columns after COMM, from the right.
    latency: usize,
    queue: Option<usize>,
    bytes: usize,
    sector: usize,
    kind: usize,
    disk: usize,
    pid: usize,
    /// Shift of all times, so that requests that began before the recording have non-negative ones.
    shift_ns: u64,
    step_ns: u64,
}

impl Layout {
    /// Reads the header of `input`.
    ///
    /// # Errors
    /// For bpftrace's version, and headers without the columns that a request needs.
    pub(crate) fn open(input: &Input) -> Result<Layout, TraceError> {
        let refuse = |place: Place, message: &str| TraceError {
            file: input.name.clone(),
            place,
            field: "header",
            message: message.to_owned(),
        };
        let Some((words, number)) = header(input.head()) else {
            let mut layout = Layout::from_lines(input.head()).ok_or_else(|| {
                refuse(Place::File, "missing; expected `TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)`")
            })?;
            layout.look_ahead(input.head());
            return Ok(layout);
        };
        if words.contains(&&b"TIME(ms)"[..]) {
            let why =
                "biosnoop.bt of bpftrace records neither offset, length nor direction; record with bcc's biosnoop";
            return Err(refuse(Place::Line(number), why));
        }
        let mut layout = Layout::from_words(&words).map_err(|why| refuse(Place::Line(number), &why))?;
        layout.look_ahead(input.head());
        Ok(layout)
    }

    /// Returns the layout of a header.
    fn from_words(words: &[&[u8]]) -> Result<Layout, String> {
        let from_right = |name: &[u8]| words.iter().rev().position(|&word| word == name);
        let needed = |name: &str| {
            from_right(name.as_bytes())
                .ok_or_else(|| format!("must have {name}: `TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)`"))
        };
        let comm = needed("COMM")?;
        let layout = Layout {
            before: words.len() - 1 - comm,
            latency: needed("LAT(ms)")?,
            queue: from_right(b"QUE(ms)"),
            bytes: needed("BYTES")?,
            sector: needed("SECTOR")?,
            kind: needed("T")?,
            disk: needed("DISK")?,
            pid: needed("PID")?,
            line: words.iter().map(|word| word.to_vec()).collect(),
            is_assumed: false,
            shift_ns: 0,
            step_ns: 0,
        };
        let after = [layout.latency, layout.bytes, layout.sector, layout.kind, layout.disk, layout.pid];
        if after.into_iter().any(|place| place >= comm) || layout.pid + 1 != comm || comm >= COLUMNS_MAX {
            return Err("must have PID right after COMM, and the other columns after it".to_owned());
        }
        Ok(layout)
    }

    /// Returns the layout that most lines of a file without a header fit.
    fn from_lines(head: Head<'_>) -> Option<Layout> {
        let all = BEFORE.iter().flat_map(|before| BETWEEN.iter().map(move |between| (before, between)));
        all.map(|(before, between)| {
            let columns: [&[u8]; 7] = [b"COMM", b"PID", b"DISK", b"T", b"SECTOR", b"BYTES", b"LAT(ms)"];
            let (first, last) = columns.split_at(6);
            [before, first, between, last].concat()
        })
        .filter_map(|words| Layout::from_words(&words).ok())
        .find(|layout| most_lines(head, |line| layout.is_like(line)))
        .map(|layout| Layout { is_assumed: true, ..layout })
    }

    /// Whether a line has valid values in each column, with decimal places in times.
    fn is_like(&self, line: &[u8]) -> bool {
        let column = |place: usize| split(line).rev().nth(place).unwrap_or_default();
        let has_point = |text: &[u8]| text.contains(&b'.');
        let is_number = |text: &[u8]| whole(text).is_some();
        self.times(line).is_ok()
            && split(line).nth(self.before - 1).is_some_and(has_point)
            && has_point(column(self.latency))
            && is_number(column(self.bytes))
            && (is_number(column(self.sector)) || NO_SECTOR.contains(&column(self.sector)))
            && operation(column(self.kind)).is_some()
            && is_number(column(self.pid))
            && column(self.disk).first().is_some_and(u8::is_ascii_alphabetic)
    }

    /// Determines the earliest arrival and the resolution of times from the lines of the head.
    fn look_ahead(&mut self, head: Head<'_>) {
        let digits = |text: &[u8]| text.iter().rev().position(|&byte| byte == b'.').unwrap_or(0);
        let (mut time_digits, mut latency_digits) = (0, 0);
        for line in head.lines() {
            let Ok((completion_ns, response_ns, _)) = self.times(line) else { continue };
            self.shift_ns = self.shift_ns.max(response_ns.saturating_sub(completion_ns));
            time_digits = time_digits.max(split(line).nth(self.before - 1).map_or(0, digits));
            latency_digits = latency_digits.max(split(line).rev().nth(self.latency).map_or(0, digits));
        }
        self.step_ns = TimeUnit::Seconds.step_ns(time_digits).max(TimeUnit::Milliseconds.step_ns(latency_digits));
    }

    /// Stores the metadata of all requests in `out`.
    pub(crate) fn describe(&self, out: &mut Collector) {
        out.meta.clock = Clock::Recording;
        out.meta.resolution_ns = self.step_ns;
        out.meta.response = Some(match self.queue {
            Some(_) => ResponseSpan::QueueToCompletion,
            None => ResponseSpan::IssueToCompletion,
        });
        if self.is_assumed {
            let columns = self.line.iter().map(|word| String::from_utf8_lossy(word)).collect::<Vec<_>>().join(" ");
            out.meta.note(format!("the header is missing: the columns are assumed to be {columns}"));
        }
        out.meta.note("biosnoop silently loses events of fast devices");
        if self.shift_ns > 0 {
            let moved =
                format!("times are shifted by {} ns, since the first requests arrived before time 0", self.shift_ns);
            out.meta.note(moved);
        }
    }

    /// Parses a line; `None` for headers and for requests without an address.
    pub(crate) fn parse(&self, line: &[u8], part: &mut Part) -> Result<Option<Record>, Problem> {
        if split(line).eq(self.line.iter().map(Vec::as_slice)) {
            return Ok(None);
        }
        let (completion_ns, response_ns, queue_ns) = self.times(line)?;
        let column = |place: usize| split(line).rev().nth(place).unwrap_or_default();
        let (mut operation, flags) = operation(column(self.kind))
            .ok_or_else(|| refused("T", column(self.kind), "letters such as R, W, WS, D or F"))?;
        let length = length_bytes("BYTES", column(self.bytes), 1)?;
        if length == 0 && flags.contains(Flags::PRE_FLUSH) {
            // It has no data, which is what makes the write a flush.
            operation = Operation::Flush;
        }
        let offset = match column(self.sector) {
            sector if !NO_SECTOR.contains(&sector) => offset_bytes("SECTOR", sector, SECTOR_BYTES)?,
            _ if operation == Operation::Flush => 0,
            _ => {
                part.count("requests without an address");
                return Ok(None);
            }
        };
        let arrival_ns = completion_ns.checked_add(self.shift_ns).and_then(|ns| ns.checked_sub(response_ns));
        let arrival_ns = arrival_ns
            .ok_or_else(|| ("LAT(ms)", "the request began before the first requests of the file".to_owned()))?;
        let mut record = Record::new(arrival_ns, operation, offset, length);
        (record.response_ns, record.wait_ns, record.flags) = (response_ns, queue_ns, flags);
        record.process = self.process(line, part)?;
        record.device = part.devices.of("DISK", column(self.disk))?;
        Ok(Some(record))
    }

    /// Returns the completion time as in the file, the time from arrival to completion, and from arrival to issue if
    /// known.
    fn times(&self, line: &[u8]) -> Result<(u64, u64, u64), Problem> {
        let count = split(line).count();
        // Requests without an address have no disk either.
        let sector = split(line).rev().nth(self.sector).unwrap_or_default();
        if count < self.line.len() - usize::from(NO_SECTOR.contains(&sector)) {
            return Err(("", format!("{count} columns; the header has {}", self.line.len())));
        }
        let time = split(line).nth(self.before - 1).unwrap_or_default();
        let completion_ns = TimeUnit::Seconds.ns(time).ok_or_else(|| refused("TIME(s)", time, "seconds"))?;
        let ms = |field, place| {
            let text = split(line).rev().nth(place).unwrap_or_default();
            TimeUnit::Milliseconds.ns(text).ok_or_else(|| refused(field, text, "milliseconds"))
        };
        let latency_ns = ms("LAT(ms)", self.latency)?;
        Ok(match self.queue {
            None => (completion_ns, latency_ns, NOT_RECORDED),
            Some(place) => {
                let queue_ns = ms("QUE(ms)", place)?;
                (completion_ns, latency_ns + queue_ns, queue_ns)
            }
        })
    }

    /// The process: everything between the columns on the left and those on the right.
    fn process(&self, line: &[u8], part: &mut Part) -> Result<u32, Problem> {
        let pid = split(line).rev().nth(self.pid).unwrap_or_default();
        if whole(pid).is_none_or(|pid| pid > u64::from(u32::MAX)) {
            return Err(refused("PID", pid, "a whole number below 2^32"));
        }
        let place = |word: &[u8]| word.as_ptr().addr() - line.as_ptr().addr();
        let start = split(line).nth(self.before).map_or(0, place);
        let end = split(line).rev().nth(self.pid).map_or(0, place);
        let comm = line.get(start..end).unwrap_or_default().trim_ascii();
        Ok(part.processes.of_pair("COMM", pid, b' ', comm)? + 1)
    }
}

/// Operation and flags of blktrace's letters; bcc only prints R and W.
fn operation(letters: &[u8]) -> Option<(Operation, Flags)> {
    let (is_flush, letters) = letters.strip_prefix(b"F").map_or((false, letters), |rest| (true, rest));
    let (operation, rest) = match letters.split_first() {
        Some((b'R', rest)) => (Operation::Read, rest),
        Some((b'W', rest)) => (Operation::Write, rest),
        Some((b'D', rest)) => (Operation::Trim, rest.strip_prefix(b"E").unwrap_or(rest)),
        Some((b'N', rest)) => (if is_flush { Operation::Flush } else { Operation::Other }, rest),
        Some((b'F', rest)) if is_flush => (Operation::Flush, rest),
        _ if is_flush => (Operation::Flush, letters),
        _ => return None,
    };
    let mut flags = if is_flush && operation == Operation::Write { Flags::PRE_FLUSH } else { Flags::default() };
    for letter in rest {
        flags = flags.with(match letter {
            b'F' => Flags::FUA,
            b'A' => Flags::READ_AHEAD,
            b'S' => Flags::SYNC,
            b'M' => Flags::METADATA,
            _ => return None,
        });
    }
    Some((operation, flags))
}
