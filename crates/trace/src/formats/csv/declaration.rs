//! What somebody declares of a CSV: `time=ts:us,offset=lba:512,length=size,op=rw,device=vol,response=lat:ms`.

use crate::error::Problem;
use crate::record::Operation;
use crate::time::TimeUnit;

/// What a request is made of, in the order of the slots of a layout.
pub(super) const SLOTS: usize = 6;
pub(super) const TIME: usize = 0;
pub(super) const OFFSET: usize = 1;
pub(super) const LENGTH: usize = 2;
pub(super) const OPERATION: usize = 3;
pub(super) const DEVICE: usize = 4;
pub(super) const RESPONSE: usize = 5;

/// The columns of a CSV, their units and words.
#[derive(Clone, Debug, PartialEq)]
pub struct CsvColumns {
    time: (Column, Option<TimeUnit>),
    base: Option<Base>,
    /// And the bytes of its unit.
    pub(super) offset: (Column, u32),
    /// And the bytes of its unit.
    pub(super) length: (Column, u32),
    pub(super) operation: Option<Column>,
    device: Option<Column>,
    pub(super) response: Option<(Column, TimeUnit)>,
    pub(super) words: Words,
    pub(super) separator: Separator,
    /// Lines before the header, or before the first request where there is none.
    pub(super) skip: u64,
}

/// Which column.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Column {
    /// From 0.
    Number(usize),
    /// As in the header, in any case.
    Name(String),
}

/// What times count from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Base {
    Unix,
    Recording,
}

/// How times are to be read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Clockwork {
    /// 100 ns since 1601.
    FileTime,
    /// Since what is declared, or what the file tells.
    Since(Option<Base>, TimeUnit),
}

/// What stands between columns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Separator {
    Byte(u8),
    /// Any number of blanks and tabs.
    Blanks,
}

/// The words of reads and writes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Words {
    read: Vec<String>,
    write: Vec<String>,
}

/// Most columns of a file that are looked at.
const COLUMNS_MAX: usize = 1_000;
/// A sector or other unit of addresses is not larger.
const UNIT_BYTES_MAX: u32 = 1 << 20;
const KEYS: &str = "time, offset, length, op, device, response, separator, skip, base, read or write";

impl CsvColumns {
    /// Reads a declaration: `KEY=VALUE` between commas.
    ///
    /// `time`, `offset` and `length` are required; `op`, `device` and `response` are not. Their value is a name of the
    /// header, in any case, or a column's number from 1, and a unit behind a colon: `s`, `ms`, `us`, `ns`, `100ns` or, for
    /// `time`, `filetime` (100 ns since 1601); `bytes` (which is understood) or a number of bytes for `offset` and `length`.
    /// `separator` is `comma` (understood), `semicolon`, `tab`, `pipe`, `blank` or a character; `skip` a number of lines;
    /// `base` says whether times count from 1970 (`unix`) or from the start of the `recording`, which else is told by the
    /// first of them; `read` and `write` are words with `|` between.
    ///
    /// # Errors
    /// What is wrong, and what is allowed, on one line.
    pub fn parse(text: &str) -> Result<CsvColumns, String> {
        let mut values: Vec<(&str, &str)> = Vec::new();
        for item in text.split(',').map(str::trim).filter(|item| !item.is_empty()) {
            let (key, value) =
                item.split_once('=').ok_or_else(|| format!("`{item}` must be KEY=VALUE, KEY being {KEYS}"))?;
            let (key, value) = (key.trim(), value.trim());
            if !KEYS.split([',', ' ']).any(|known| known == key && known != "or") {
                return Err(format!("`{key}` must be {KEYS}"));
            }
            if values.iter().any(|(other, _)| *other == key) {
                return Err(format!("`{key}` must be declared once"));
            }
            if value.is_empty() {
                return Err(format!("`{key}` must have a value"));
            }
            values.push((key, value));
        }
        let value = |key: &str| values.iter().find(|(other, _)| *other == key).map(|(_, value)| *value);
        let needed =
            |key: &str, example: &str| value(key).ok_or_else(|| format!("`{key}` must be declared: {example}"));
        let response = value("response").map(|value| match time("response", value)? {
            (column, Some(unit)) => Ok((column, unit)),
            _ => Err("response: filetime is a date; a duration is in s, ms, us, ns or 100ns".to_owned()),
        });
        let columns = CsvColumns {
            time: time("time", needed("time", "time=timestamp:us")?)?,
            base: value("base").map(base).transpose()?,
            offset: address("offset", needed("offset", "offset=lba:512")?)?,
            length: address("length", needed("length", "length=size")?)?,
            operation: value("op").map(|value| column("op", value)).transpose()?,
            device: value("device").map(|value| column("device", value)).transpose()?,
            response: response.transpose()?,
            words: Words::parse(value("read"), value("write"))?,
            separator: value("separator").map_or(Ok(Separator::Byte(b',')), separator)?,
            skip: value("skip").map_or(Ok(0), |text| {
                text.parse().map_err(|_| format!("skip: must be a number of lines, not `{text}`"))
            })?,
        };
        if columns.time.1.is_none() && columns.base == Some(Base::Recording) {
            return Err("base: file times are dates; leave it out".to_owned());
        }
        Ok(columns)
    }

    /// How times are to be read.
    pub(super) fn clockwork(&self) -> Clockwork {
        self.time.1.map_or(Clockwork::FileTime, |unit| Clockwork::Since(self.base, unit))
    }

    /// The file has a header, as columns are named.
    pub(super) fn has_header(&self) -> bool {
        self.columns().any(|(column, _)| matches!(column, Column::Name(_)))
    }

    /// Columns from 0 and the slots that they fill, the first column first.
    ///
    /// # Errors
    /// Names that the header does not have, or has twice.
    pub(super) fn places(&self, header: Option<&[u8]>) -> Result<Vec<(usize, usize)>, Problem> {
        let header: Vec<&[u8]> =
            header.map_or(Vec::new(), |line| self.separator.split(line).take(COLUMNS_MAX).collect());
        let mut places = Vec::new();
        for (column, slot) in self.columns() {
            let place = match column {
                Column::Number(number) => *number,
                Column::Name(name) => {
                    let mut found =
                        header.iter().enumerate().filter(|(_, field)| field.eq_ignore_ascii_case(name.as_bytes()));
                    match (found.next(), found.next()) {
                        (Some((place, _)), None) => place,
                        (None, _) => {
                            let names = header
                                .iter()
                                .map(|field| String::from_utf8_lossy(field))
                                .collect::<Vec<_>>()
                                .join(", ");
                            let names: String = names.chars().filter(|c| !c.is_control()).take(300).collect();
                            return Err(("header", format!("there is no column `{name}` among {names}")));
                        }
                        (Some(_), Some(_)) => {
                            return Err(("header", format!("there are two columns `{name}`; give a number")));
                        }
                    }
                }
            };
            places.push((place, slot));
        }
        places.sort_unstable();
        Ok(places)
    }

    fn columns(&self) -> impl Iterator<Item = (&Column, usize)> {
        let needed = [(&self.time.0, TIME), (&self.offset.0, OFFSET), (&self.length.0, LENGTH)];
        let operation = self.operation.as_ref().map(|column| (column, OPERATION));
        let device = self.device.as_ref().map(|column| (column, DEVICE));
        let response = self.response.as_ref().map(|(column, _)| (column, RESPONSE));
        needed.into_iter().chain(operation).chain(device).chain(response)
    }
}

fn column(key: &str, text: &str) -> Result<Column, String> {
    if text.is_empty() {
        return Err(format!("{key}: must be a name of the header or a column's number from 1"));
    }
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(Column::Name(text.to_owned()));
    }
    match text.parse() {
        Ok(number @ 1..=COLUMNS_MAX) => Ok(Column::Number(number - 1)),
        _ => Err(format!("{key}: a column's number must be from 1 to {COLUMNS_MAX}, not `{text}`")),
    }
}

/// A column of times and its unit; no unit for file times.
fn time(key: &str, text: &str) -> Result<(Column, Option<TimeUnit>), String> {
    const UNITS: &str = "s, ms, us, ns, 100ns";
    let (name, unit) =
        text.rsplit_once(':').ok_or_else(|| format!("{key}: must say its unit: {key}={text}:us ({UNITS})"))?;
    let unit = match unit {
        "filetime" => None,
        _ => match TimeUnit::from_name(unit) {
            Some(known) if known != TimeUnit::Picoseconds => Some(known),
            _ => return Err(format!("{key}: the unit must be {UNITS} or filetime, not `{unit}`")),
        },
    };
    Ok((column(key, name)?, unit))
}

/// A column of addresses or lengths and the bytes of its unit.
fn address(key: &str, text: &str) -> Result<(Column, u32), String> {
    let (name, unit) = text.rsplit_once(':').unwrap_or((text, "bytes"));
    let bytes =
        if unit == "bytes" { Some(1) } else { unit.parse().ok().filter(|bytes| (1..=UNIT_BYTES_MAX).contains(bytes)) };
    let bytes = bytes.ok_or_else(|| {
        format!("{key}: the unit must be `bytes` or a number of bytes up to {UNIT_BYTES_MAX}, not `{unit}`")
    })?;
    Ok((column(key, name)?, bytes))
}

fn base(text: &str) -> Result<Base, String> {
    match text {
        "unix" => Ok(Base::Unix),
        "recording" => Ok(Base::Recording),
        _ => Err(format!("base: must be unix or recording, not `{text}`")),
    }
}

fn separator(text: &str) -> Result<Separator, String> {
    Ok(match text {
        "comma" => Separator::Byte(b','),
        "semicolon" => Separator::Byte(b';'),
        "tab" => Separator::Byte(b'\t'),
        "pipe" => Separator::Byte(b'|'),
        "blank" => Separator::Blanks,
        _ => match text.as_bytes() {
            [byte] if byte.is_ascii_punctuation() && *byte != b'"' => Separator::Byte(*byte),
            _ => {
                return Err(format!(
                    "separator: must be comma, semicolon, tab, pipe, blank or a character, not `{text}`"
                ));
            }
        },
    })
}

impl Words {
    fn parse(read: Option<&str>, write: Option<&str>) -> Result<Words, String> {
        let words = |text: Option<&str>| -> Vec<String> {
            text.map_or(Vec::new(), |text| text.split('|').map(|word| word.trim().to_owned()).collect())
        };
        let (mut read, mut write) = (words(read), words(write));
        // Of two bits, one says what the other is.
        let other = |bits: &[String]| match bits {
            [bit] if bit == "0" => vec!["1".to_owned()],
            [bit] if bit == "1" => vec!["0".to_owned()],
            _ => Vec::new(),
        };
        match (&read[..], &write[..]) {
            (bits, []) => write = other(bits),
            ([], bits) => read = other(bits),
            _ => {}
        }
        match read.iter().find(|word| write.contains(word)) {
            Some(word) => Err(format!("read, write: `{word}` must be one of both")),
            None => Ok(Words { read, write }),
        }
    }

    /// What a word says: as declared, or as usual. Bits are only what is declared, as formats differ.
    pub(super) fn operation(&self, word: &[u8]) -> Option<Operation> {
        let is_in = |words: &[String]| words.iter().any(|known| known.as_bytes() == word);
        let is_any = |words: &[&str]| words.iter().any(|known| known.as_bytes().eq_ignore_ascii_case(word));
        match () {
            () if is_in(&self.read) => Some(Operation::Read),
            () if is_in(&self.write) => Some(Operation::Write),
            () if is_any(&["r", "rd", "read"]) => Some(Operation::Read),
            () if is_any(&["w", "wr", "write"]) => Some(Operation::Write),
            () if is_any(&["d", "t", "trim", "discard", "unmap"]) => Some(Operation::Trim),
            () if is_any(&["f", "flush"]) => Some(Operation::Flush),
            () => None,
        }
    }

    /// What is allowed, for messages.
    pub(super) fn title(&self) -> String {
        let declared: Vec<&str> = self.read.iter().chain(&self.write).map(String::as_str).collect();
        let usual = "R, W, read, write, trim or flush in any case";
        if declared.is_empty() { usual.to_owned() } else { format!("{}, {usual}", declared.join(", ")) }
    }
}

impl Separator {
    /// The fields of a line, without blanks and quotes around them.
    pub(super) fn split(self, line: &[u8]) -> Fields<'_> {
        Fields { separator: self, rest: Some(line) }
    }
}

/// The fields of a line that are left.
pub(super) struct Fields<'a> {
    separator: Separator,
    rest: Option<&'a [u8]>,
}

impl<'a> Iterator for Fields<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest?;
        let (separator, rest) = match self.separator {
            Separator::Byte(byte) => (byte, rest),
            Separator::Blanks => {
                let rest = rest.trim_ascii_start();
                if rest.is_empty() {
                    self.rest = None;
                    return None;
                }
                let end = rest.iter().position(u8::is_ascii_whitespace);
                self.rest = end.map(|end| &rest[end..]);
                return Some(&rest[..end.unwrap_or(rest.len())]);
            }
        };
        let blanks = rest.iter().take_while(|&&byte| byte == b' ').count();
        if let Some(quoted) = rest[blanks..].strip_prefix(b"\"")
            && let Some(end) = memchr::memchr(b'"', quoted)
        {
            let behind = &quoted[end + 1..];
            self.rest = memchr::memchr(separator, behind).map(|at| &behind[at + 1..]);
            return Some(quoted[..end].trim_ascii());
        }
        let end = memchr::memchr(separator, rest);
        self.rest = end.map(|end| &rest[end + 1..]);
        Some(rest[..end.unwrap_or(rest.len())].trim_ascii())
    }
}
