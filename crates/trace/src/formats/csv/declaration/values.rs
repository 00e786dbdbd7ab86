//! [`Values`]: the keys and values of a declaration, from text or from a file.

use std::ops::RangeInclusive;

use super::column::{Base, COLUMNS_MAX, Column, ColumnPlace, UNIT_BYTES_MAX};
use crate::formats::csv::split::Separator;
use crate::formats::first_lines::plain;
use crate::meta::ResponseSpan;
use crate::time::{Calendar, TimeUnit};

const KEYS: [&str; 20] = [
    "time",
    "offset",
    "length",
    "op",
    "device",
    "response",
    "separator",
    "skip",
    "base",
    "read",
    "write",
    "trim",
    "flush",
    "unknown",
    "key",
    "block",
    "count",
    "pid",
    "process",
    "at",
];
/// Keys that only files may have.
const KEYS_OF_FILES: [&str; 8] = ["title", "sample", "notes", "columns", "header", "order", "span", "sector"];

/// Keys and their values, each once.
pub(super) struct Values {
    values: Vec<(String, String)>,
    is_file: bool,
}

impl Values {
    /// Parses `KEY=VALUE` pairs between commas.
    pub(super) fn from_text(text: &str) -> Result<Values, String> {
        let mut values = Values { values: Vec::new(), is_file: false };
        for item in text.split(',').map(str::trim).filter(|item| !item.is_empty()) {
            let (key, value) = item
                .split_once('=')
                .ok_or_else(|| format!("`{item}` must be KEY=VALUE, KEY being {}", values.keys()))?;
            values.add(key.trim(), value.trim().to_owned())?;
        }
        Ok(values)
    }

    /// Parses TOML: texts, numbers, and lists of texts, which are words.
    pub(super) fn from_toml(text: &str) -> Result<Values, String> {
        let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
            let at = error.span().map_or(0, |span| span.start.min(text.len()));
            let line = text.as_bytes()[..at].iter().filter(|&&byte| byte == b'\n').count() + 1;
            format!("line {line}: {}", error.message().lines().next().unwrap_or_default())
        })?;
        let mut values = Values { values: Vec::new(), is_file: true };
        for (key, value) in table {
            let words = |list: Vec<toml::Value>| -> Option<String> {
                let words: Option<Vec<String>> = list.into_iter().map(|word| Some(word.as_str()?.to_owned())).collect();
                Some(words?.join("|"))
            };
            let value = match value {
                toml::Value::String(text) => Some(text),
                toml::Value::Integer(number) => Some(number.to_string()),
                toml::Value::Array(list) => words(list),
                toml::Value::Float(_) | toml::Value::Boolean(_) | toml::Value::Datetime(_) | toml::Value::Table(_) => {
                    None
                }
            };
            let value = value.ok_or_else(|| format!("`{key}` must be a text, a whole number or a list of words"))?;
            values.add(&key, value)?;
        }
        Ok(values)
    }

    fn add(&mut self, key: &str, value: String) -> Result<(), String> {
        let is_known = KEYS.contains(&key) || self.is_file && KEYS_OF_FILES.contains(&key);
        if !is_known {
            return Err(format!("`{key}` must be {}", self.keys()));
        }
        if self.get(key).is_some() {
            return Err(format!("`{key}` must be declared once"));
        }
        if value.trim().is_empty() {
            return Err(format!("`{key}` must have a value"));
        }
        self.values.push((key.to_owned(), value));
        Ok(())
    }

    /// The value of a key.
    pub(super) fn get(&self, key: &str) -> Option<&str> {
        self.values.iter().find(|(other, _)| other == key).map(|(_, value)| value.as_str())
    }

    /// Whether the declaration is from a file.
    pub(super) fn is_file(&self) -> bool {
        self.is_file
    }

    /// The permitted keys.
    fn keys(&self) -> String {
        let all = if self.is_file { [&KEYS[..], &KEYS_OF_FILES].concat() } else { KEYS.to_vec() };
        let (last, others) = all.split_last().expect("a non-empty list");
        format!("{} or {last}", others.join(", "))
    }
}

/// Parses a column; an optional one has a question mark at its end.
pub(super) fn column(key: &str, text: &str) -> Result<Column, String> {
    let (text, is_optional) = text.strip_suffix('?').map_or((text, false), |text| (text, true));
    if text.is_empty() {
        return Err(format!("{key}: must be a name of the header or a column's number from 1"));
    }
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(Column { place: ColumnPlace::Name(text.to_owned()), is_optional });
    }
    match text.parse() {
        Ok(number @ 1..=COLUMNS_MAX) => Ok(Column { place: ColumnPlace::Number(number - 1), is_optional: false }),
        _ => Err(format!("{key}: a column's number must be from 1 to {COLUMNS_MAX}, not `{text}`")),
    }
}

/// Form of times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum TimeForm {
    /// Numbers of a unit, relative to `base` or as the first one determines.
    Unit(TimeUnit),
    /// Dates.
    Dates(Calendar),
}

/// Whether times are completions.
pub(super) fn at(text: &str) -> Result<bool, String> {
    match text {
        "arrival" => Ok(false),
        "completion" => Ok(true),
        _ => Err(format!("at: must be arrival or completion, not `{text}`")),
    }
}

/// Parses a column of times and their form.
pub(super) fn time(key: &str, text: &str) -> Result<(Column, TimeForm), String> {
    const UNITS: &str = "s, ms, us, ns, 100ns";
    let (text, mark) = text.strip_suffix('?').map_or((text, ""), |text| (text, "?"));
    let (name, unit) =
        text.rsplit_once(':').ok_or_else(|| format!("{key}: must have a unit: {key}={text}:us ({UNITS})"))?;
    let unit = match unit {
        "filetime" => TimeForm::Dates(Calendar::FileTime),
        "date" => TimeForm::Dates(Calendar::Text),
        _ => match TimeUnit::from_name(unit) {
            Some(known) if known != TimeUnit::Picoseconds => TimeForm::Unit(known),
            _ => return Err(format!("{key}: the unit must be {UNITS}, filetime or date, not `{unit}`")),
        },
    };
    Ok((column(key, &format!("{name}{mark}"))?, unit))
}

/// Parses a column of addresses or lengths and the bytes of its unit.
pub(super) fn address(key: &str, text: &str) -> Result<(Column, u32), String> {
    let (name, unit) = text.rsplit_once(':').unwrap_or((text, "bytes"));
    let bytes = if unit == "bytes" { Some(1) } else { unit_bytes(unit) };
    let bytes = bytes.ok_or_else(|| {
        format!("{key}: the unit must be `bytes` or a number of bytes up to {UNIT_BYTES_MAX}, not `{unit}`")
    })?;
    Ok((column(key, name)?, bytes))
}

/// Parses a number of bytes.
pub(super) fn bytes(key: &str, text: &str) -> Result<u32, String> {
    unit_bytes(text).ok_or_else(|| format!("{key}: must be a number of bytes up to {UNIT_BYTES_MAX}, not `{text}`"))
}

fn unit_bytes(text: &str) -> Option<u32> {
    text.parse().ok().filter(|bytes| (1..=UNIT_BYTES_MAX).contains(bytes))
}

/// Parses a column, or two with a + between.
pub(super) fn devices(text: &str) -> Result<Vec<Column>, String> {
    let parts: Vec<&str> = text.split('+').collect();
    if parts.len() > 2 {
        return Err(format!("device: must be one column, or two with a + between them, not `{text}`"));
    }
    parts.into_iter().map(|part| column("device", part)).collect()
}

/// Parses a number of columns: `9`, `5-`, `8-10`.
pub(super) fn columns(text: &str) -> Result<RangeInclusive<usize>, String> {
    let number = |text: &str| text.parse().ok().filter(|number| (1..=COLUMNS_MAX).contains(number));
    let range = match text.split_once('-') {
        None => number(text).map(|number| number..=number),
        Some((least, "")) => number(least).map(|least| least..=COLUMNS_MAX),
        Some((least, most)) => number(least).zip(number(most)).map(|(least, most)| least..=most),
    };
    let range = range.filter(|range| !range.is_empty());
    range.ok_or_else(|| format!("columns: must be a number such as 9, 5- or 8-10, up to {COLUMNS_MAX}, not `{text}`"))
}

/// Parses header names: alternatives separated by `|`, columns by commas.
pub(super) fn names(text: &str) -> Vec<Vec<String>> {
    let names = |column: &str| column.split('|').map(|name| plain(name.as_bytes())).collect();
    text.split(',').map(names).collect()
}

pub(super) fn base(text: &str) -> Result<Base, String> {
    match text {
        "unix" => Ok(Base::Unix),
        "recording" => Ok(Base::Recording),
        _ => Err(format!("base: must be unix or recording, not `{text}`")),
    }
}

/// Parses the span of response times, by its name in metadata.
pub(super) fn span(text: &str) -> Result<ResponseSpan, String> {
    serde_json::from_value(serde_json::Value::from(text)).map_err(|_| {
        format!("span: must be queue-to-completion, at-the-host, at-the-controller, on-the-wire …, not `{text}`")
    })
}

pub(super) fn separator(text: &str) -> Result<Separator, String> {
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
