//! Reads configuration files of QEMU's blkdebug as far as a device can implement them.
//!
//! A file consists of sections `[inject-error]` and `[set-state]` with `key = "value"` lines (QEMU's
//! docs/devel/blkdebug.rst). An error is armed by its event and then affects requests of its `iotype`: one request with
//! `once`, otherwise all until the end. The state machine starts in state 1. Most of QEMU's events happen within its
//! image formats and are invisible to a device; they are rejected by name.

use headstack_sim::faults::{Errno, Every, Fault, Nth, RequestKind, Schedule, Stretch, StrikeTime, Timed, Trigger};
use headstack_workload::{DurationNs, InputError};

/// Size of QEMU's sectors, in bytes.
const SECTOR_BYTES: u64 = 512;

/// Whether a text is a blkdebug file: its first line that is not a comment starts one of the two sections.
pub fn is_blkdebug(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.next().is_some_and(|line| section_of(line).is_some())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    InjectError,
    SetState,
}

fn section_of(line: &str) -> Option<Section> {
    match line {
        "[inject-error]" => Some(Section::InjectError),
        "[set-state]" => Some(Section::SetState),
        _ => None,
    }
}

/// A section with its keys and their line numbers.
struct Rule<'t> {
    section: Section,
    line: usize,
    keys: Vec<(usize, &'t str, &'t str)>,
}

/// Parses a blkdebug file as a schedule.
///
/// # Errors
/// If a line is invalid or a device cannot implement a rule. The error lists the allowed values.
pub fn parse(file: &str, text: &str) -> Result<Schedule, InputError> {
    let error = |line: usize, key: &str, message: String| InputError {
        file: file.to_owned(),
        line: Some(line),
        key: key.to_owned(),
        message,
    };
    let mut rules: Vec<Rule<'_>> = Vec::new();
    for (number, line) in text.lines().enumerate().map(|(index, line)| (index + 1, line.trim())) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if line.starts_with('[') {
            let section = section_of(line).ok_or_else(|| {
                error(number, line, "not a section of blkdebug; allowed: [inject-error], [set-state]".to_owned())
            })?;
            rules.push(Rule { section, line: number, keys: Vec::new() });
            continue;
        }
        let pair = line.split_once('=').map(|(key, value)| (key.trim(), value.trim().trim_matches('"')));
        let (Some((key, value)), Some(rule)) = (pair, rules.last_mut()) else {
            return Err(error(number, "", "neither a section nor a key; use lines such as errno = \"5\"".to_owned()));
        };
        rule.keys.push((number, key, value));
    }
    let faults = rules.iter().map(|rule| {
        let parsed = match rule.section {
            Section::InjectError => injected(rule),
            Section::SetState => state_set(rule),
        };
        parsed.map_err(|(line, key, message)| error(line, key, message))
    });
    Ok(Schedule { seed: 0, faults: faults.collect::<Result<_, _>>()? })
}

/// Line, key, and a message with the allowed values.
type LineError<'t> = (usize, &'t str, String);

fn injected<'t>(rule: &Rule<'t>) -> Result<Timed, LineError<'t>> {
    let (mut event, mut errno, mut iotype, mut ranges) = (None, Errno::Io, None, Vec::new());
    let mut trigger = Trigger::default();
    for &(line, key, value) in &rule.keys {
        let wrong = |message: String| (line, key, message);
        match key {
            "event" => event = Some(event_of(value).map_err(wrong)?),
            "iotype" => iotype = Some(iotype_of(value).map_err(wrong)?),
            "errno" => errno = errno_of(value).map_err(wrong)?,
            "sector" => {
                let sector = number(value).map_err(wrong)?;
                let start_bytes = sector.checked_mul(SECTOR_BYTES);
                let start_bytes =
                    start_bytes.ok_or_else(|| wrong(format!("{value} exceeds the maximum device size")))?;
                ranges = vec![Stretch::of_bytes(start_bytes, SECTOR_BYTES)];
            }
            "once" => trigger.once = flag(value).map_err(wrong)?,
            // The sender of a request cannot distinguish an error on arrival from an error in a callback.
            "immediately" => drop(flag(value).map_err(wrong)?),
            "state" => trigger.state = state(value).map_err(wrong)?,
            _ => {
                let allowed = "event, iotype, errno, sector, once, immediately, state";
                return Err(wrong(format!("not a key of [inject-error]; allowed: {allowed}")));
            }
        }
    }
    let Some(event) = event else { return Err((rule.line, "event", "this key is missing".to_owned())) };
    trigger.at = event.map(|kind| StrikeTime::Request(first(kind)));
    if trigger == Trigger::default() {
        trigger.at = Some(StrikeTime::Time(DurationNs(0)));
    }
    let kinds = iotype.map_or_else(all_kinds, |kind| vec![kind]);
    let fault = Fault::Errno { ranges, errno, kinds, time: None, unflushed: None, percent: None };
    Ok(Timed { from: None, until: None, lasts: None, trigger, fault })
}

fn state_set<'t>(rule: &Rule<'t>) -> Result<Timed, LineError<'t>> {
    let (mut event, mut to) = (None, None);
    // The rule applies each time its event happens in its state.
    let mut trigger = Trigger::default();
    for &(line, key, value) in &rule.keys {
        let wrong = |message: String| (line, key, message);
        match key {
            "event" => event = Some((line, event_of(value).map_err(wrong)?)),
            "state" => trigger.state = state(value).map_err(wrong)?,
            "new_state" => to = Some(number(value).map_err(wrong)?).and_then(|to| u32::try_from(to).ok()),
            _ => return Err(wrong("not a key of [set-state]; allowed: event, state, new_state".to_owned())),
        }
    }
    let missing = |key| (rule.line, key, "this key is missing".to_owned());
    let (line, event) = event.ok_or_else(|| missing("event"))?;
    let Some(kind) = event else {
        return Err((line, "event", "the event none never occurs; name another event".to_owned()));
    };
    let to = to.ok_or_else(|| missing("new_state"))?;
    trigger.every = Some(Every(first(kind)));
    Ok(Timed { from: None, until: None, lasts: None, trigger, fault: Fault::SetState { to } })
}

fn all_kinds() -> Vec<RequestKind> {
    vec![RequestKind::Read, RequestKind::Write, RequestKind::Trim, RequestKind::Flush]
}

fn first(kind: RequestKind) -> Nth {
    match kind {
        RequestKind::Read => Nth::Read(1),
        RequestKind::Write => Nth::Write(1),
        RequestKind::Trim => Nth::Trim(1),
        RequestKind::Flush => Nth::Flush(1),
    }
}

/// Returns the kind of request that triggers an event; `None` for `none`, which applies from the start.
fn event_of(event: &str) -> Result<Option<RequestKind>, String> {
    match event {
        "none" => Ok(None),
        "read_aio" => Ok(Some(RequestKind::Read)),
        "write_aio" | "pwritev" => Ok(Some(RequestKind::Write)),
        "flush_to_os" | "flush_to_disk" => Ok(Some(RequestKind::Flush)),
        _ => {
            let allowed = "read_aio, write_aio, pwritev, flush_to_os, flush_to_disk, none";
            Err(format!("{event} is internal to QEMU and never reaches a device; allowed: {allowed}"))
        }
    }
}

fn iotype_of(iotype: &str) -> Result<RequestKind, String> {
    match iotype {
        "read" => Ok(RequestKind::Read),
        "write" => Ok(RequestKind::Write),
        "discard" => Ok(RequestKind::Trim),
        "flush" => Ok(RequestKind::Flush),
        _ => Err(format!("{iotype} is not a device request; allowed: read, write, discard, flush")),
    }
}

fn errno_of(errno: &str) -> Result<Errno, String> {
    match errno {
        "5" => Ok(Errno::Io),
        "28" => Ok(Errno::NoSpace),
        "30" => Ok(Errno::ReadOnly),
        "110" => Ok(Errno::TimedOut),
        _ => Err(format!("{errno} is not supported; allowed: 5 (EIO), 28 (ENOSPC), 30 (EROFS), 110 (ETIMEDOUT)")),
    }
}

fn flag(value: &str) -> Result<bool, String> {
    match value {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(format!("{value} is not allowed; use on or off")),
    }
}

fn number(value: &str) -> Result<u64, String> {
    value.parse().map_err(|_| format!("{value} is not a number; must be 0 or more"))
}

/// Parses a state; 0 means any.
fn state(value: &str) -> Result<Option<u32>, String> {
    let state = u32::try_from(number(value)?).map_err(|_| format!("{value} is too large for a state"))?;
    Ok((state > 0).then_some(state))
}
