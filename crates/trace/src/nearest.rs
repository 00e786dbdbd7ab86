//! Finds the most similar format of a file that has none, and the first deviation.

use std::cmp::Reverse;

use crate::error::{Place, TraceError};
use crate::formats::{Format, ReadOptions};
use crate::input::Input;
use crate::recording::{Next, Recording};

/// Number of lines that are compared.
const LINES: usize = 20;

/// Number of valid lines, and the smallest number of fields of the first bad one that must be replaced to make it
/// valid.
type Likeness = (u64, Reverse<usize>);

/// One line on the format that most of the first lines of `input` fit, or that the first one fits except for the fewest
/// fields.
pub(crate) fn nearest(input: &Input) -> Option<String> {
    let lines: Vec<&[u8]> = input.head().lines().filter(|line| !line.trim_ascii().is_empty()).take(LINES).collect();
    if lines.is_empty() || lines.iter().any(|line| line.contains(&0)) {
        return None;
    }
    let formats = Format::ALL.into_iter().filter(|format| is_text(*format));
    let compared = formats.filter_map(|format| {
        let (likeness, error) = compare(&lines, format)?;
        Some((likeness, format, error))
    });
    // Of two equally similar ones, the first is reported.
    let (_, format, error) = compared.reduce(|best, next| if next.0 > best.0 { next } else { best })?;
    let looks = format!("it looks most like {} ({})", format.name(), format.title());
    let Some(error) = error else {
        return Some(format!("{looks}; to read it so, add --format {}", format.name()));
    };
    let Place::Line(line) = error.place else { return Some(format!("{looks}: {}", error.message)) };
    let place = field_of(&error, &fields(lines[line as usize - 1]));
    let place = place.map_or(String::new(), |place| format!(", field {}", place + 1));
    let name = if error.field.is_empty() { String::new() } else { format!("{} ", error.field) };
    Some(format!("{looks}: line {line}{place}: {name}{}", error.message))
}

/// Similarity of lines to a format, and the first deviation; `None` if they have nothing in common.
fn compare(lines: &[&[u8]], format: Format) -> Option<(Likeness, Option<TraceError>)> {
    let text = lines.join(&b'\n');
    let Err(error) = read(&text, format, false) else {
        return Some(((lines.len() as u64, Reverse(0)), None));
    };
    let rejected = read(&text, format, true).unwrap_or(u64::MAX);
    let good = (lines.len() as u64).saturating_sub(rejected);
    let line = match error.place {
        Place::Line(line) => lines.get(line as usize - 1),
        Place::File | Place::Record(_) | Place::Byte(_) | Place::Output(_) => None,
    };
    match line.and_then(|line| replacements(line, format, &error)) {
        Some(replaced) => Some(((good, Reverse(replaced)), Some(error))),
        None => (good > 0).then_some(((good, Reverse(usize::MAX)), Some(error))),
    }
}

/// Number of lines of a text that a format rejects.
fn read(text: &[u8], format: Format, skip_bad: bool) -> Result<u64, TraceError> {
    let input = Input::from_bytes("t", text.to_vec())?;
    let options = ReadOptions { format: Some(format), skip_bad, ..ReadOptions::default() };
    let mut recording = Recording::open(format, vec![input], &options)?;
    let mut batch = Vec::new();
    while recording.next(&mut batch)? == Next::Batch {
        batch.clear();
    }
    Ok(recording.meta().rejected)
}

/// Number of fields of a line that must be replaced by those of the format's sample for it to be accepted; `None` if
/// more than half.
fn replacements(line: &[u8], format: Format, error: &TraceError) -> Option<usize> {
    let separator = if line.contains(&b',') { b',' } else { b' ' };
    let (sample, mut fields) = (fields(format.sample().as_bytes()), fields(line));
    let mut error = error.clone();
    for replaced in 1..=fields.len() / 2 {
        let place = field_of(&error, &fields)?;
        let good = *sample.get(place).filter(|good| **good != fields[place])?;
        fields[place] = good;
        match read(&fields.join(&separator), format, false) {
            Ok(_) => return Some(replaced),
            Err(next) => error = next,
        }
    }
    None
}

/// Fields between the commas of a line, or between its blanks if it has none.
fn fields(line: &[u8]) -> Vec<&[u8]> {
    if line.contains(&b',') {
        return line.split(|&byte| byte == b',').map(<[u8]>::trim_ascii).collect();
    }
    line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).collect()
}

/// Index of the field that an error quotes.
fn field_of(error: &TraceError, fields: &[&[u8]]) -> Option<usize> {
    let (_, quoted) = error.message.split_once("not `")?;
    let quoted_text = quoted.split('`').next().filter(|quoted_text| !quoted_text.is_empty())?;
    fields.iter().position(|field| *field == quoted_text.as_bytes())
}

/// Whether its files are lines of text that need no declaration.
fn is_text(format: Format) -> bool {
    match format {
        Format::Parquet
        | Format::Blktrace
        | Format::Csv
        | Format::Lcs
        | Format::OracleGeneral
        | Format::Srt
        | Format::Vscsi => false,
        Format::Alibaba
        | Format::Biosnoop
        | Format::Blkparse
        | Format::CloudPhysics
        | Format::DiskSim
        | Format::Etw
        | Format::Ftrace
        | Format::Hfplayer
        | Format::Iolog
        | Format::Mooncake
        | Format::MqSim
        | Format::Msr
        | Format::Spc
        | Format::Systor
        | Format::Tencent
        | Format::Validate
        | Format::Table(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nearest_format(text: &str) -> Option<String> {
        nearest(&Input::from_bytes("t", text.as_bytes().to_vec()).unwrap())
    }

    #[test]
    fn the_nearest_format_is_named_with_its_error() {
        for (text, expected) in [
            (
                "128166385295514663,hm,0,X,9056014336,2048,2833\n",
                "looks most like msr (MSR Cambridge CSV (SNIA IOTTA 387, 388)): line 1, field 4: type must be Read or Write, \
                 not `X`",
            ),
            (
                "419,X,12288,4096,1577808144360767\n419,Y,12288,4096,1577808144360768\n",
                "looks most like alibaba (Alibaba block traces 2020): line 1, field 2: opcode must be R or W, not `X`",
            ),
            (
                "1538323200,12910952,128,2,1063\n",
                "looks most like tencent (Tencent CBS 2018): line 1, field 4: type must be 0 (read) or 1 (write), not `2`",
            ),
            (
                "0,q:1,17,213,4,fetch,0\n0,q:2,17,213,4,fetch,0\n",
                "looks most like twitter (Twitter key-value 2020 (SNIA IOTTA)): line 1, field 6: op must be get, gets,",
            ),
            (
                "aa\nbb\ncc\n",
                "looks most like keys (keys, one a line, without times (libCacheSim txt)); to read it so, add --format keys",
            ),
        ] {
            let hint = nearest_format(text).unwrap_or_else(|| panic!("{text} looks like nothing"));
            assert!(hint.contains(expected) && hint.lines().count() == 1, "{hint}");
        }
        assert_eq!(nearest_format("a b c d e f g h i j k l\n"), None);
    }
}
