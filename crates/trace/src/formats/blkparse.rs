//! blkparse's text in its default format: one event per line, in order of time, and totals at the end.
//!
//! `maj,min cpu sequence s.ns pid action rwbs …`; the rest depends on the action. Sectors are of 512 bytes.

use super::Stage;
use super::blktrace::events::{Event, EventKind, SECTOR_BYTES, category, flags, operation};
use super::blktrace::pairing::Pairing;
use super::cutter::{Cutter, Text, check_length};
use crate::collect::Collector;
use crate::error::{Place, Problem, TraceError, refused};
use crate::input::{Head, Input};
use crate::meta::Clock;
use crate::record::Flags;
use crate::text::{decimal, whole, words};

/// Number of lines used for detection.
const LINES_LOOKED_AT: usize = 100;
const COLUMNS: &str = "blkparse's default format: `maj,min cpu sequence s.ns pid action rwbs …`";
/// blkparse's text for a process without a known name.
const NO_NAME: &str = "(null)";
/// All actions of blkparse; a message is an `m`.
const ACTIONS: [&[u8]; 18] =
    [b"Q", b"M", b"F", b"G", b"S", b"R", b"D", b"C", b"P", b"U", b"UT", b"I", b"X", b"B", b"A", b"m", b"Z", b"?"];

/// Whether all of the first lines are events.
pub(crate) fn fits(head: Head<'_>) -> bool {
    let lines = head.lines().filter(|line| !line.trim_ascii().is_empty()).take(LINES_LOOKED_AT);
    let mut lines = lines.take_while(|line| !is_total(line)).peekable();
    lines.peek().is_some() && lines.all(|line| columns(line).is_ok())
}

/// Whether a line begins the totals: `CPU0 (8,0):`, or `Total (8,0):`.
fn is_total(line: &[u8]) -> bool {
    let Some((first, rest)) = line.split_at_checked(3) else { return false };
    line.starts_with(b"Total (") || first == b"CPU" && rest.first().is_some_and(u8::is_ascii_digit)
}

/// A parser of one or several texts, each with its own times and requests.
pub(crate) struct Blkparse {
    cutter: Cutter,
    text: Text,
    stage: Option<Stage>,
    pairing: Pairing,
    /// Number of lines read from the current input.
    line: u64,
    /// Number of events read, which the totals count too.
    events: u64,
    total: Option<u64>,
}

impl Blkparse {
    pub(crate) fn new(inputs: Vec<Input>, stage: Option<Stage>, out: &mut Collector) -> Blkparse {
        out.meta.clock = Clock::Recording;
        out.meta.resolution_ns = 1;
        let (cutter, pairing) = (Cutter::new(inputs), Pairing::new(stage, out));
        Blkparse { cutter, text: Text::default(), stage, pairing, line: 0, events: 0, total: None }
    }

    /// Reads a chunk; returns false at the end.
    pub(crate) fn read(&mut self, out: &mut Collector) -> Result<bool, TraceError> {
        if !self.cutter.fill(&mut self.text)? {
            return Ok(false);
        }
        let name = &self.cutter.input(self.text.input).name;
        if self.text.is_first && self.text.input > 0 {
            self.pairing = Pairing::new(self.stage, out);
            (self.line, self.events, self.total) = (0, 0, None);
        }
        self.text.check(name, self.line)?;
        for line in self.text.lines() {
            self.line += 1;
            let line = line.trim_ascii();
            if self.total.is_some() || is_total(line) {
                let before = self.total.unwrap_or(0);
                self.total = Some(before.saturating_add(events_of_total(line)));
            } else if !line.is_empty() {
                match check_length(line).and_then(|()| event(line, &mut self.pairing, out)) {
                    Ok(event) => {
                        self.events += 1;
                        if let Some(event) = event {
                            self.pairing.event(&event, out);
                        }
                    }
                    Err(problem) => out.reject(name, Place::Line(self.line), problem)?,
                }
            }
        }
        if !self.text.is_last {
            self.pairing.hand_over(out);
            return Ok(true);
        }
        self.pairing.finish(out);
        if let Some(total) = self.total.filter(|&total| total > self.events) {
            out.meta.note(format!("{name}: blkparse counted {total} events, but its text has {}", self.events));
        }
        Ok(true)
    }
}

/// Number of a device's events, from the line `Events (7,0): 71,814 entries`; 0 for other lines.
fn events_of_total(line: &[u8]) -> u64 {
    let ([first, _, number], _) = words::<3>(line);
    let digits: Vec<u8> = number.iter().copied().filter(|&byte| byte != b',').collect();
    if first == b"Events" { whole(&digits).unwrap_or(0) } else { 0 }
}

/// Columns of every event line.
struct Columns<'a> {
    device: u32,
    at_ns: u64,
    pid: u32,
    action: &'a [u8],
    rwbs: &'a [u8],
    /// The rest of the line.
    rest: &'a [u8],
}

fn columns(line: &[u8]) -> Result<Columns<'_>, Problem> {
    let mut rest = line.trim_ascii();
    let mut columns: [&[u8]; 7] = [&[]; 7];
    for column in &mut columns {
        let end = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
        *column = &rest[..end];
        rest = rest[end..].trim_ascii_start();
    }
    let [device, cpu, sequence, time, pid, action, rwbs] = columns;
    if rwbs.is_empty() {
        return Err(("", format!("fewer than seven columns; expected {COLUMNS}")));
    }
    let number = |text: &[u8], end: u64| whole(text).filter(|&number| number < end).map(|number| number as u32);
    let comma = device.iter().position(|&byte| byte == b',').unwrap_or(device.len());
    let major = number(&device[..comma], 1 << 12);
    let minor = device.get(comma + 1..).and_then(|minor| number(minor, 1 << 20));
    let (Some(major), Some(minor)) = (major, minor) else {
        return Err(refused("device", device, "`major,minor`"));
    };
    whole(cpu).ok_or_else(|| refused("cpu", cpu, "a whole number"))?;
    whole(sequence).ok_or_else(|| refused("sequence", sequence, "a whole number"))?;
    let has_ns = time.iter().rev().position(|&byte| byte == b'.') == Some(9);
    let at_ns =
        decimal(time, 9).filter(|_| has_ns).ok_or_else(|| refused("time", time, "seconds with nine decimals"))?;
    let pid = number(pid, 1 << 32).ok_or_else(|| refused("pid", pid, "a whole number below 2^32"))?;
    if !ACTIONS.contains(&action) {
        return Err(refused("action", action, "one of blkparse's"));
    }
    Ok(Columns { device: major << 20 | minor, at_ns, pid, action, rwbs, rest })
}

/// Parses a line; `None` if it is not about a stage of a request.
fn event(line: &[u8], pairing: &mut Pairing, out: &mut Collector) -> Result<Option<Event>, Problem> {
    let Columns { device, at_ns, pid, action, rwbs, rest } = columns(line)?;
    let Some(what) = EventKind::from_letter(action) else { return Ok(None) };
    // A name may contain blanks and brackets; numbers do not.
    let open = rest.iter().position(|&byte| byte == b'[');
    let close = rest.iter().rposition(|&byte| byte == b']');
    let (Some(open), Some(close)) = (open, close.filter(|&close| Some(close) > open)) else {
        return Err(refused("action", rest, "followed by a `[name]` or an `[error]`"));
    };
    let (before, bracket) = (&rest[..open], &rest[open + 1..close]);
    // Parentheses contain the time taken, or the bytes of a command.
    let numbers = before.split(|&byte| byte == b'(').next().unwrap_or_default();
    let mut categories = categories(rwbs)?;
    let place = address(numbers, what)?;
    if place.is_pass_through {
        categories |= category::PASS_THROUGH;
    }
    let mut flags = flags(categories, place.bytes);
    if what == EventKind::Complete {
        let digits = bracket.strip_prefix(b"-").unwrap_or(bracket);
        if whole(digits).ok_or_else(|| refused("error", bracket, "a whole number"))? != 0 {
            flags = flags.with(Flags::ERROR);
        }
    } else if matches!(what, EventKind::Queue | EventKind::Issue) {
        // For a requeue, it is an error.
        let name = String::from_utf8_lossy(bracket);
        if name != NO_NAME {
            pairing.name(pid, &name, out);
        }
    }
    let operation = operation(categories, place.bytes);
    let Address { sector, second_sector, bytes, .. } = place;
    Event { at_ns, sector, second_sector, bytes, device, pid, flags, operation, what }.checked().map(Some)
}

/// Address of an event on the device.
struct Address {
    sector: u64,
    second_sector: u64,
    bytes: u32,
    is_pass_through: bool,
}

/// Parses `sector + sectors`, or `sector / second sector` of a split; nothing for an event without bytes; only the
/// sector for a completion of none; only bytes for a pass-through command, whose completion has neither.
fn address(numbers: &[u8], what: EventKind) -> Result<Address, Problem> {
    let ([first, sign, second], count) = words::<3>(numbers);
    let number = |text: &[u8]| whole(text).ok_or_else(|| refused("sector", text, "a whole number"));
    let mut address = Address { sector: 0, second_sector: 0, bytes: 0, is_pass_through: false };
    match (count, sign, what) {
        (0, _, EventKind::Complete) => address.is_pass_through = true,
        (0, ..) => {}
        (1, _, EventKind::Complete) => address.sector = number(first)?,
        (1, ..) => {
            let bytes = whole(first).and_then(|bytes| u32::try_from(bytes).ok());
            address.bytes = bytes.ok_or_else(|| refused("bytes", first, "a whole number below 2^32"))?;
            address.is_pass_through = true;
        }
        (3, b"+", _) => {
            let bytes = whole(second).and_then(|sectors| u32::try_from(sectors.checked_mul(SECTOR_BYTES)?).ok());
            address.sector = number(first)?;
            address.bytes = bytes.ok_or_else(|| refused("sectors", second, "a whole number below 8388608"))?;
        }
        (3, b"/", EventKind::Split) => {
            (address.sector, address.second_sector) = (number(first)?, number(second)?);
            // A split is of a request with data; the text does not say how many bytes.
            address.bytes = 1;
        }
        _ => return Err(refused("sector", numbers, "`sector + sectors`")),
    }
    Ok(address)
}

/// Category bits of the letters: a flush before it, the operation, and other flags. An F at the front is a flush, one
/// at the end FUA.
///
/// Until Linux 2.6.37 a write could be a barrier, B: the drive's cache was flushed before it, and it was on the media
/// when it completed, which is now written as F at the front and the end.
pub(crate) fn categories(rwbs: &[u8]) -> Result<u64, Problem> {
    use category::*;
    const ALLOWED: &str = "F, then one of D, DE, W, R, N and Z with a letter, then of F, A, B, S, M, U";
    let (mut categories, kind) = match rwbs {
        [b'F', rest @ ..] => (FLUSH, rest),
        _ => (0, rwbs),
    };
    let (kind, carried) = match kind {
        [b'D', b'E', rest @ ..] | [b'D', rest @ ..] => (WRITE | DISCARD, rest),
        [b'Z', b'A', rest @ ..] => (WRITE, rest),
        [b'Z', b'R', b'A', rest @ ..] | [b'Z', b'R' | b'F' | b'O' | b'C', rest @ ..] => (ZONE_MANAGEMENT, rest),
        [b'W', rest @ ..] => (WRITE, rest),
        [b'R', rest @ ..] => (READ, rest),
        [b'N', rest @ ..] => (0, rest),
        // Kernels name a separate flush by a second F, or by nothing.
        [b'F', rest @ ..] if categories == FLUSH => (0, rest),
        [] if categories == FLUSH => (0, kind),
        _ => return Err(refused("rwbs", rwbs, ALLOWED)),
    };
    categories |= kind;
    for letter in carried {
        categories |= match letter {
            b'F' => FUA,
            b'A' => READ_AHEAD,
            b'B' => FLUSH | FUA,
            b'S' => SYNC,
            b'M' => METADATA,
            b'U' => 0,
            _ => return Err(refused("rwbs", rwbs, ALLOWED)),
        };
    }
    Ok(categories)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Operation;

    #[test]
    fn the_place_of_a_letter_decides() {
        let read = |rwbs: &str, bytes| {
            let categories = categories(rwbs.as_bytes()).unwrap();
            (operation(categories, bytes), flags(categories, bytes))
        };
        let sync = Flags::SYNC;
        for (rwbs, bytes, expected) in [
            ("FWS", 0, (Operation::Flush, sync)),
            ("FN", 0, (Operation::Flush, Flags::default())),
            ("FF", 0, (Operation::Flush, Flags::default())),
            ("WFS", 512, (Operation::Write, sync.with(Flags::FUA))),
            ("FWFSM", 512, (Operation::Write, sync.with(Flags::FUA).with(Flags::PRE_FLUSH).with(Flags::METADATA))),
            ("RA", 512, (Operation::Read, Flags::READ_AHEAD)),
            ("D", 512, (Operation::Trim, Flags::default())),
            ("DES", 512, (Operation::Trim, sync)),
            ("ZA", 512, (Operation::Write, Flags::default())),
            ("ZRA", 0, (Operation::Other, Flags::default())),
            ("WSU", 512, (Operation::Write, sync)),
            ("N", 0, (Operation::Other, Flags::default())),
            // Of Linux 2.6.
            ("WBS", 512, (Operation::Write, sync.with(Flags::FUA).with(Flags::PRE_FLUSH))),
            ("WB", 512, (Operation::Write, Flags::FUA.with(Flags::PRE_FLUSH))),
            ("WBSM", 512, (Operation::Write, sync.with(Flags::FUA).with(Flags::PRE_FLUSH).with(Flags::METADATA))),
            ("NBS", 0, (Operation::Flush, sync)),
            ("RAM", 512, (Operation::Read, Flags::READ_AHEAD.with(Flags::METADATA))),
            ("DS", 512, (Operation::Trim, sync)),
        ] {
            assert_eq!(read(rwbs, bytes), expected, "{rwbs}");
        }
        for wrong in ["", "S", "RW", "WX", "Z", "ZX", "r"] {
            assert!(categories(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
