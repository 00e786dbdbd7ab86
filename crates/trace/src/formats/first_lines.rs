//! What the first lines of a file tell of its format.

use crate::input::Head;
use crate::time::TimeUnit;

/// The lines of text that formats are told by: some hundred, without blank ones.
pub(super) fn first_lines(head: Head<'_>) -> impl Iterator<Item = &[u8]> {
    head.lines().filter(|line| !line.trim_ascii().is_empty()).take(300)
}

/// More than half of the first lines are so. All would be too much to ask: no bad line would then ever be named.
pub(super) fn most_lines(head: Head<'_>, mut is_like: impl FnMut(&[u8]) -> bool) -> bool {
    let (mut lines, mut alike) = (0, 0);
    for line in first_lines(head) {
        lines += 1;
        alike += usize::from(is_like(line));
    }
    2 * alike > lines
}

/// A line names columns: as many fields as `names`, each one of its column's names, however it is written (`I/O Type`,
/// `io_type`, `"IOType"`).
pub(super) fn names_columns<Names: AsRef<[Name]>, Name: AsRef<str>>(line: &[u8], names: &[Names]) -> bool {
    let fields: Vec<String> = line.split(|&byte| byte == b',').map(plain).collect();
    let is_named = |(field, names): (&String, &Names)| names.as_ref().iter().any(|name| name.as_ref() == field);
    fields.len() == names.len() && fields.iter().zip(names).all(is_named)
}

/// A column's name however it is written: its letters and digits, in lower case.
pub(super) fn plain(name: &[u8]) -> String {
    name.iter().filter(|byte| byte.is_ascii_alphanumeric()).map(|byte| char::from(byte.to_ascii_lowercase())).collect()
}

/// The step of times with as many digits behind their point as those of the first lines have at most.
pub(super) fn finest_step_ns<'a>(head: Head<'a>, unit: TimeUnit, time: impl Fn(&'a [u8]) -> &'a [u8]) -> u64 {
    let digits = first_lines(head).map(|line| {
        let time = time(line).trim_ascii();
        if unit.ns(time).is_some() { time.iter().rev().position(|&byte| byte == b'.').unwrap_or(0) } else { 0 }
    });
    unit.step_ns(digits.max().unwrap_or(0))
}
