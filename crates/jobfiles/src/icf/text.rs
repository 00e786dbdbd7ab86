//! The text of an `.icf` file. Lines that begin with an apostrophe are keys; the lines below a key are its values.

use headstack_workload::document::InputError;

use crate::Remark;

/// A key and its values.
pub(super) struct Entry<'t> {
    /// The key without its apostrophe.
    pub(super) key: &'t str,
    pub(super) line: usize,
    pub(super) values: Vec<Value<'t>>,
}

/// A line below a key, without leading and trailing blanks.
#[derive(Clone, Copy)]
pub(super) struct Value<'t> {
    pub(super) text: &'t str,
    pub(super) line: usize,
}

/// The entries of a file, consumed one by one.
pub(super) struct Entries<'t> {
    file: &'t str,
    /// Whether specifications have names, as in files since version 1998.05.21.
    pub(super) has_names: bool,
    entries: std::vec::IntoIter<Entry<'t>>,
    last_line: usize,
}

/// The first version whose access specifications have names and eight columns.
const NAMES_SINCE: u64 = 19_980_521;

impl<'t> Entries<'t> {
    pub(super) fn new(file: &'t str, text: &'t str) -> Result<Entries<'t>, InputError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut lines = text.lines().enumerate().map(|(index, line)| (index + 1, line));
        let first = lines.by_ref().find(|(_, line)| !line.trim().is_empty());
        let (line, version) = first.unwrap_or((1, ""));
        let has_names = has_names(version).ok_or_else(|| {
            let message = "an .icf file must begin with its version, for example \"Version 2006.07.27\"";
            error(file, line, "Version", message.to_owned())
        })?;
        let mut entries: Vec<Entry> = Vec::new();
        let mut last_line = line;
        for (line, text) in lines {
            last_line = line;
            match text.trim_start().strip_prefix('\'') {
                // Column headings.
                Some(comment) if comment.is_empty() || comment.starts_with([' ', '\t']) => {}
                Some(key) => entries.push(Entry { key: key.trim_end(), line, values: Vec::new() }),
                None => {
                    let text = text.trim();
                    match entries.last_mut() {
                        _ if text.is_empty() || text.starts_with("Version ") => {}
                        Some(entry) => entry.values.push(Value { text, line }),
                        None => {
                            let message = format!("{text:?} is not below a key; a key begins with an apostrophe");
                            return Err(error(file, line, "", message));
                        }
                    }
                }
            }
        }
        Ok(Entries { file, has_names, entries: entries.into_iter(), last_line })
    }

    pub(super) fn next(&mut self) -> Option<Entry<'t>> {
        self.entries.next()
    }

    /// Returns the next entry, or an error if the file ends before `end`.
    pub(super) fn before(&mut self, end: &str) -> Result<Entry<'t>, InputError> {
        self.next().ok_or_else(|| error(self.file, self.last_line, end, format!("the file ends before '{end}")))
    }

    pub(super) fn error(&self, line: usize, key: &str, message: impl Into<String>) -> InputError {
        error(self.file, line, key, message.into())
    }

    /// Returns the error for an entry in the wrong place.
    pub(super) fn misplaced(&self, entry: &Entry, allowed: &str) -> InputError {
        let message = format!("this line is not expected here; allowed: {allowed}");
        self.error(entry.line, entry.key, message)
    }

    /// Returns the comma-separated fields of an entry's first value.
    pub(super) fn fields(&self, entry: &Entry<'t>) -> Result<Fields<'t>, InputError> {
        let value =
            entry.values.first().copied().ok_or_else(|| self.error(entry.line, entry.key, "the value is missing"))?;
        Ok(Fields { file: self.file, names: entry.key, value, fields: value.text.split(',').collect(), next: 0 })
    }

    /// Returns the fields of a value, separated by commas or, with `by_blanks`, also by blanks.
    pub(super) fn fields_of(&self, names: &'t str, value: Value<'t>, by_blanks: bool) -> Fields<'t> {
        let is_separator = |c: char| c == ',' || by_blanks && c.is_whitespace();
        let keep = |field: &&str| !by_blanks || !field.is_empty();
        let fields = value.text.split(is_separator).filter(keep).collect();
        Fields { file: self.file, names, value, fields, next: 0 }
    }
}

/// Whether files of this version have names. Iometer 1.1 writes its own version instead of a date.
fn has_names(line: &str) -> Option<bool> {
    let version = line.trim().strip_prefix("Version")?.trim();
    let number = |part: &str| {
        let part = part.trim();
        part[..part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len())].parse::<u64>().ok()
    };
    let parts = version.split('.').map(number).collect::<Option<Vec<u64>>>()?;
    match *parts.as_slice() {
        [year @ 1900..=9999, month @ 1..=12, day @ 1..=31] => Some(year * 10_000 + month * 100 + day >= NAMES_SINCE),
        [1900..=9999, ..] | [] => None,
        _ => Some(true),
    }
}

fn error(file: &str, line: usize, key: &str, message: String) -> InputError {
    InputError { file: file.to_owned(), line: Some(line), key: key.to_owned(), message }
}

/// The fields of a line, consumed one by one.
pub(super) struct Fields<'t> {
    file: &'t str,
    /// Names of the fields, from the key line.
    names: &'t str,
    value: Value<'t>,
    fields: Vec<&'t str>,
    next: usize,
}

impl<'t> Fields<'t> {
    pub(super) fn line(&self) -> usize {
        self.value.line
    }

    pub(super) fn error(&self, name: &str, message: String) -> InputError {
        error(self.file, self.value.line, name, message)
    }

    /// Returns the next field, or an error if it is missing.
    pub(super) fn text(&mut self, name: &str) -> Result<&'t str, InputError> {
        let field = self.fields.get(self.next).map(|field| field.trim());
        self.next += 1;
        field.filter(|field| !field.is_empty()).ok_or_else(|| {
            let message =
                format!("field {} is missing in {:?}; the fields are {}", self.next, self.value.text, self.names);
            self.error(name, message)
        })
    }

    /// Returns the next field as a whole number in a range.
    pub(super) fn number(&mut self, name: &str, allowed: std::ops::RangeInclusive<u64>) -> Result<u64, InputError> {
        let text = self.text(name)?;
        match text.parse() {
            Ok(number) if allowed.contains(&number) => Ok(number),
            _ => {
                let message = format!(
                    "{text:?} is not allowed; must be a whole number from {} to {}",
                    allowed.start(),
                    allowed.end()
                );
                Err(self.error(name, message))
            }
        }
    }

    /// Returns the next field as a number of up to 32 bits.
    pub(super) fn number_u32(&mut self, name: &str, allowed: std::ops::RangeInclusive<u32>) -> Result<u32, InputError> {
        let number = self.number(name, u64::from(*allowed.start())..=u64::from(*allowed.end()))?;
        Ok(u32::try_from(number).unwrap_or(u32::MAX))
    }

    /// Returns the next field as one of a few words, ignoring case.
    pub(super) fn word<T: Copy>(&mut self, name: &str, words: &[(&str, T)]) -> Result<T, InputError> {
        let text = self.text(name)?;
        match words.iter().find(|(word, _)| word.eq_ignore_ascii_case(text)) {
            Some((_, value)) => Ok(*value),
            None => {
                let allowed: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
                Err(self.error(name, format!("{text:?} is not allowed; use {}", allowed.join(" or "))))
            }
        }
    }

    /// Whether all fields are consumed.
    pub(super) fn is_empty(&self) -> bool {
        self.next >= self.fields.len()
    }
}

/// Returns a remark on an unsupported setting.
pub(super) fn remark(line: usize, option: &str, message: impl Into<String>) -> Remark {
    Remark { line: u32::try_from(line).unwrap_or(u32::MAX), option: option.to_owned(), message: message.into() }
}
