//! Reads map files of GNU ddrescue, which record the bad sectors of a failing drive.

use headstack_workload::{InputError, Span};

/// Status characters of blocks, from "Mapfile structure" in the manual.
const STATUSES: &str = "?*/-+";

/// Parses a map file and returns the unreadable ranges: bad sectors (`-`), and failed blocks that are not yet trimmed
/// (`*`) or scraped (`/`). Rescued blocks (`+`) are good. The state of untried blocks (`?`) is unknown.
///
/// Lines that begin with `#` are comments. The first other line has the program's position; all further lines have a
/// position, a size and a status. Numbers are bytes: decimal, hexadecimal with `0x`, or octal with `0`.
///
/// # Errors
/// If a line is invalid, or blocks overlap or are out of order.
pub fn bad_spans(file: &str, text: &str) -> Result<Vec<Span>, InputError> {
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.split('#').next().unwrap_or("").trim()));
    let mut lines = lines.filter(|(_, line)| !line.is_empty());
    let error = |line: usize, message: &str| InputError {
        file: file.to_owned(),
        line: Some(line),
        key: String::new(),
        message: message.to_owned(),
    };
    let Some((line, status)) = lines.next() else {
        return Err(error(1, "no status line; a map file of ddrescue starts with a position, a status and a pass"));
    };
    let mut words = status.split_whitespace();
    let position = words.next().and_then(number);
    let is_status = words.next().is_some_and(|word| word.len() == 1 && "?*/-FG+".contains(word));
    let is_pass = words.next().is_none_or(|word| word.parse::<u32>().is_ok());
    if position.is_none() || !is_status || !is_pass || words.next().is_some() {
        return Err(error(line, "not a status line; must be a position, one of ?*/-FG+ and a pass"));
    }
    let (mut spans, mut end) = (Vec::new(), 0);
    for (line, block) in lines {
        let words: Vec<&str> = block.split_whitespace().collect();
        let [position, size, status] = words[..] else {
            return Err(error(line, "not a block; must be a position, a size and a status"));
        };
        let (Some(start_bytes), Some(length_bytes)) = (number(position), number(size)) else {
            return Err(error(line, "not a number of bytes; must be decimal, 0x hexadecimal or 0 octal"));
        };
        if status.len() != 1 || !STATUSES.contains(status) {
            return Err(error(line, "not the status of a block; must be one of ?*/-+"));
        }
        let block_end = start_bytes.checked_add(length_bytes).filter(|_| length_bytes > 0 && start_bytes >= end);
        let Some(block_end) = block_end else {
            return Err(error(line, "blocks must have a size above 0, ascend, and not overlap"));
        };
        end = block_end;
        if "*/-".contains(status) {
            spans.push(Span { start_bytes, length_bytes });
        }
    }
    Ok(spans)
}

fn number(word: &str) -> Option<u64> {
    let lower = word.to_ascii_lowercase();
    match (lower.strip_prefix("0x"), lower.strip_prefix('0')) {
        (Some(digits), _) => u64::from_str_radix(digits, 16).ok(),
        (None, Some(digits)) if !digits.is_empty() => u64::from_str_radix(digits, 8).ok(),
        _ => lower.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example from the manual's chapter on map files.
    const MANUAL: &str = "# Mapfile. Created by GNU ddrescue version 1.27
# Command line: ddrescue -d -c18 /dev/fd0 fdimage mapfile
# Start time:   2015-07-21 09:37:44
# Current time: 2015-07-21 09:38:19
# Copying non-tried blocks... Pass 1 (forwards)
# current_pos  current_status  current_pass
0x00120000     ?               1
#      pos        size  status
0x00000000  0x00117000  +
0x00117000  0x00000200  -
0x00117200  0x00001000  /
0x00118200  0x00007E00  *
0x00120000  0x00048000  ?
";

    #[test]
    fn what_could_not_be_read_is_bad() {
        let spans = bad_spans("mapfile", MANUAL).unwrap();
        let expected = [(0x117000, 0x200), (0x117200, 0x1000), (0x118200, 0x7E00)];
        assert_eq!(spans.iter().map(|span| (span.start_bytes, span.length_bytes)).collect::<Vec<_>>(), expected);
        let decimal = bad_spans("m", "0 +\n0 512 +\n512 01000 - # octal\n").unwrap();
        assert_eq!((decimal[0].start_bytes, decimal[0].length_bytes), (512, 512));
    }

    #[test]
    fn errors_name_the_line() {
        for (text, line) in [
            ("", 1),
            ("# nothing\n\n", 1),
            ("nonsense\n", 1),
            ("0 +\n0 512\n", 2),
            ("0 +\n0 512 !\n", 2),
            ("0 +\n0 0x200 -\n0 0x200 -\n", 3),
            ("0 +\n#\n12k 512 -\n", 3),
            ("0 +\n0xFFFFFFFFFFFFFFFF 2 -\n", 2),
        ] {
            let error = bad_spans("disk.map", text).unwrap_err();
            assert_eq!((error.file.as_str(), error.line), ("disk.map", Some(line)), "{text:?}: {error}");
        }
    }
}
