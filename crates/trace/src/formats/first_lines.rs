//! Detects formats by the first lines of a file.

use crate::input::Head;
use crate::time::TimeUnit;

/// Returns the lines used for detection: about 100, without blank lines.
pub(super) fn first_lines(head: Head<'_>) -> impl Iterator<Item = &[u8]> {
    head.lines().filter(|line| !line.trim_ascii().is_empty()).take(300)
}

/// Returns whether `is_like` is true for more than half of the first lines. If all lines had to match, bad lines would
/// never be reported.
pub(super) fn most_lines(head: Head<'_>, mut is_like: impl FnMut(&[u8]) -> bool) -> bool {
    let (mut lines, mut alike) = (0, 0);
    for line in first_lines(head) {
        lines += 1;
        alike += usize::from(is_like(line));
    }
    2 * alike > lines
}

/// Returns whether a line is a header: it has as many fields as `names`, and each field is a name of its column in any
/// spelling (`I/O Type`, `io_type`, `"IOType"`).
pub(super) fn names_columns<Names: AsRef<[Name]>, Name: AsRef<str>>(line: &[u8], names: &[Names]) -> bool {
    let fields: Vec<String> = line.split(|&byte| byte == b',').map(plain).collect();
    let is_named = |(field, names): (&String, &Names)| names.as_ref().iter().any(|name| name.as_ref() == field);
    fields.len() == names.len() && fields.iter().zip(names).all(is_named)
}

/// Reduces a column name to letters and digits in lower case.
pub(super) fn plain(name: &[u8]) -> String {
    name.iter().filter(|byte| byte.is_ascii_alphanumeric()).map(|byte| char::from(byte.to_ascii_lowercase())).collect()
}

/// Returns the resolution of times in ns, given by the maximum number of decimals in the first lines.
pub(super) fn finest_step_ns<'a>(head: Head<'a>, unit: TimeUnit, time: impl Fn(&'a [u8]) -> &'a [u8]) -> u64 {
    let digits = first_lines(head).map(|line| {
        let time = time(line).trim_ascii();
        if unit.ns(time).is_some() { time.iter().rev().position(|&byte| byte == b'.').unwrap_or(0) } else { 0 }
    });
    unit.step_ns(digits.max().unwrap_or(0))
}
