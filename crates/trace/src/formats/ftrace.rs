//! Linux' tracepoints of the block layer as text: the output of ftrace's `trace` and `trace_pipe`, trace-cmd report and
//! perf script.
//!
//! `name-pid [cpu] flags s.us: block_rq_issue: 8,0 R 4096 () 2048 + 8 [name]`; perf has a blank before the pid, and
//! `block:` before the event. Sectors are of 512 bytes. Requests are paired like those of blktrace: `block_bio_queue`
//! is its Q, `block_rq_issue` D, `block_rq_complete` and, for devices without requests, `block_bio_complete` C,
//! `block_rq_requeue` R, `block_split` X.

use super::Stage;
use super::blkparse::categories;
use super::blktrace::events::{Event, EventKind, SECTOR_BYTES, category, flags, operation};
use super::blktrace::pairing::Pairing;
use super::cutter::{Cutter, Text, check_length};
use super::first_lines::{finest_step_ns, first_lines, most_lines};
use crate::collect::Collector;
use crate::error::{Place, Problem, TraceError, refused};
use crate::input::{Head, Input};
use crate::meta::Clock;
use crate::record::Flags;
use crate::text::{decimal, whole, words};
use crate::time::TimeUnit;

const SHAPE: &str = "`name-pid [cpu] s.us: event: …`";

/// Whether most of the first lines are events, and one of them of the block layer.
pub(crate) fn fits(head: Head<'_>) -> bool {
    let is_of_blocks = |line| columns(line).is_ok_and(|columns| columns.event.starts_with(b"block_"));
    first_lines(head).any(is_of_blocks) && most_lines(head, |line| is_remark(line) || columns(line).is_ok())
}

/// Whether a line is a comment, or trace-cmd's information about the file.
fn is_remark(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    line.starts_with(b"#")
        || line.starts_with(b"cpus=")
        || line.starts_with(b"version = ")
        || line.ends_with(b" is empty")
}

/// The number of lost events in `CPU:1 [LOST 1716 EVENTS]`.
fn lost(line: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(line.trim_ascii()).ok()?.strip_prefix("CPU:")?;
    text.split_once(" [LOST ")?.1.strip_suffix(" EVENTS]")?.parse().ok()
}

/// A parser of one or several texts, each with its own times and requests.
pub(crate) struct Ftrace {
    cutter: Cutter,
    text: Text,
    stage: Option<Stage>,
    pairing: Pairing,
    /// Number of lines read from the current input.
    line: u64,
}

impl Ftrace {
    pub(crate) fn new(inputs: Vec<Input>, stage: Option<Stage>, out: &mut Collector) -> Ftrace {
        out.meta.clock = Clock::Boot;
        let time = |line| columns(line).map_or(&b""[..], |columns| columns.time);
        let steps = inputs.iter().map(|input| finest_step_ns(input.head(), TimeUnit::Seconds, time));
        out.meta.resolution_ns = steps.min().unwrap_or(1);
        let (cutter, pairing) = (Cutter::new(inputs), Pairing::new(stage, out));
        Ftrace { cutter, text: Text::default(), stage, pairing, line: 0 }
    }

    /// Reads a chunk; returns false at the end.
    pub(crate) fn read(&mut self, out: &mut Collector) -> Result<bool, TraceError> {
        if !self.cutter.fill(&mut self.text)? {
            return Ok(false);
        }
        let name = &self.cutter.input(self.text.input).name;
        if self.text.is_first && self.text.input > 0 {
            (self.pairing, self.line) = (Pairing::new(self.stage, out), 0);
        }
        self.text.check(name, self.line)?;
        for line in self.text.lines() {
            self.line += 1;
            if line.trim_ascii().is_empty() || is_remark(line) {
                continue;
            }
            if let Some(lost) = lost(line) {
                out.meta.count("lost events", lost);
                continue;
            }
            match check_length(line).and_then(|()| event(line, &mut self.pairing, out)) {
                Ok(Some(event)) => self.pairing.event(&event, out),
                Ok(None) => {}
                Err(problem) => out.reject(name, Place::Line(self.line), problem)?,
            }
        }
        if self.text.is_last {
            self.pairing.finish(out);
        } else {
            self.pairing.hand_over(out);
        }
        Ok(true)
    }
}

/// Columns of every event line.
struct Columns<'a> {
    task: &'a [u8],
    pid: u32,
    time: &'a [u8],
    event: &'a [u8],
    /// The rest of the line.
    rest: &'a [u8],
}

/// Splits a line at its time, the first word of digits and a point followed by a colon.
fn columns(line: &[u8]) -> Result<Columns<'_>, Problem> {
    let refused = || refused("", line, SHAPE);
    let is_time = |word: &[u8]| {
        let digits = word.strip_suffix(b":").filter(|digits| digits.contains(&b'.'));
        digits.is_some_and(|digits| digits.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.'))
    };
    let time = line.split(u8::is_ascii_whitespace).find(|word| is_time(word)).ok_or_else(refused)?;
    let at = time.as_ptr() as usize - line.as_ptr() as usize;
    let rest = line[at + time.len()..].trim_ascii_start();
    let end = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
    let event = rest[..end].strip_suffix(b":").ok_or_else(refused)?;
    let event = event.strip_prefix(b"block:").unwrap_or(event);
    // The processor in brackets follows the task; the thread group in parentheses may be in between.
    let before = &line[..at];
    let task = before.iter().rposition(|&byte| byte == b'[').map_or(before, |open| &before[..open]).trim_ascii();
    let task = match task.strip_suffix(b")") {
        Some(grouped) => grouped.iter().rposition(|&byte| byte == b'(').map_or(task, |open| &task[..open]).trim_ascii(),
        None => task,
    };
    let (task, pid) = task.split_at(without_digits(task).len());
    let pid = whole(pid).and_then(|pid| u32::try_from(pid).ok()).ok_or_else(refused)?;
    // In perf's optional `pid/tid`, the thread is the one that blktrace records.
    let task = task.strip_suffix(b"/").map_or(task, without_digits);
    let task = task.strip_suffix(b"-").unwrap_or(task).trim_ascii();
    Ok(Columns { task, pid, time: &time[..time.len() - 1], event, rest: rest[end..].trim_ascii() })
}

/// Removes the digits at the end.
fn without_digits(text: &[u8]) -> &[u8] {
    let digits = text.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    &text[..text.len() - digits]
}

/// Type of a block layer event.
fn event_kind(event: &[u8]) -> Option<EventKind> {
    match event {
        b"block_bio_queue" => Some(EventKind::Queue),
        b"block_split" => Some(EventKind::Split),
        b"block_rq_requeue" => Some(EventKind::Requeue),
        b"block_rq_issue" => Some(EventKind::Issue),
        b"block_rq_complete" | b"block_bio_complete" => Some(EventKind::Complete),
        _ => None,
    }
}

/// Parses a line; `None` if it is not about a stage of a request.
fn event(line: &[u8], pairing: &mut Pairing, out: &mut Collector) -> Result<Option<Event>, Problem> {
    let Columns { task, pid, time, event, rest } = columns(line)?;
    let at_ns = decimal(time, 9).ok_or_else(|| refused("time", time, "seconds below 2^63 ns"))?;
    let Some(what) = event_kind(event) else { return Ok(None) };
    let ([device, rwbs], _) = words::<2>(rest);
    let device = number(device)?;
    let behind = rest.iter().position(|&byte| byte == b'[').unwrap_or(rest.len());
    let after = rest[..behind].splitn(3, u8::is_ascii_whitespace).nth(2).unwrap_or_default().trim_ascii();
    // Only requests have bytes and a command in parentheses.
    let (before, command, address) = match after.iter().position(|&byte| byte == b'(') {
        Some(open) => {
            let close = after.iter().position(|&byte| byte == b')').filter(|&close| close > open);
            let close = close.ok_or_else(|| refused("command", after, "closed by a parenthesis"))?;
            (after[..open].trim_ascii(), after[open + 1..close].trim_ascii(), &after[close + 1..])
        }
        None => (&b""[..], &b""[..], after),
    };
    let ([first, sign, second], count) = words::<3>(address);
    let number = |text: &[u8]| whole(text).ok_or_else(|| refused("sector", text, "a whole number"));
    let (sector, second_sector, mut bytes) = match (count >= 3, sign, what) {
        (true, b"/", EventKind::Split) => (number(first)?, number(second)?, 1),
        (true, b"+", _) => {
            let bytes = whole(second).and_then(|sectors| u32::try_from(sectors.checked_mul(SECTOR_BYTES)?).ok());
            let bytes = bytes.ok_or_else(|| refused("sectors", second, "a whole number below 8388608"))?;
            (number(first)?, 0, bytes)
        }
        _ => return Err(refused("sector", address, "`sector + sectors`")),
    };
    let mut categories = categories(rwbs)?;
    if !command.is_empty() {
        categories |= category::PASS_THROUGH;
    }
    if categories & category::PASS_THROUGH != 0 && bytes == 0 && !before.is_empty() {
        let length = whole(before).and_then(|bytes| u32::try_from(bytes).ok());
        bytes = length.ok_or_else(|| refused("bytes", before, "a whole number below 2^32"))?;
    }
    let mut flags = flags(categories, bytes);
    if what == EventKind::Complete && error(&rest[behind..])? {
        flags = flags.with(Flags::ERROR);
    }
    if pid > 0 && matches!(what, EventKind::Queue | EventKind::Issue) {
        pairing.name(pid, &String::from_utf8_lossy(task), out);
    }
    let operation = operation(categories, bytes);
    Event { at_ns, sector, second_sector, bytes, device, pid, flags, operation, what }.checked().map(Some)
}

/// Parses `major,minor`.
fn number(device: &[u8]) -> Result<u32, Problem> {
    let number = |text: &[u8], end: u64| whole(text).filter(|&number| number < end).map(|number| number as u32);
    let comma = device.iter().position(|&byte| byte == b',').unwrap_or(device.len());
    let (major, minor) =
        (number(&device[..comma], 1 << 12), device.get(comma + 1..).and_then(|text| number(text, 1 << 20)));
    let device_number = major.zip(minor).map(|(major, minor)| major << 20 | minor);
    device_number.ok_or_else(|| refused("device", device, "`major,minor`"))
}

/// Whether the `[error]` of a completion is a failure.
fn error(bracket: &[u8]) -> Result<bool, Problem> {
    let inside = bracket.strip_prefix(b"[").and_then(|rest| rest.strip_suffix(b"]"));
    let digits = inside.map(|text| text.strip_prefix(b"-").unwrap_or(text));
    let number = digits.and_then(whole).ok_or_else(|| refused("error", bracket, "a whole number in brackets"))?;
    Ok(number != 0)
}
