//! [`Document`]: a TOML file with errors that name the line.
//!
//! [`Document::read`] converts the file to a value. An error is returned as one [`InputError`] that names the file, the
//! line, the key and the allowed values. Checks after reading, for example of a sum of shares or of a range that
//! depends on another key, use [`Document::error`], which finds the line of a key.
//!
//! Renamed keys have their current names in the text of a document; see [`renamed`].

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use serde::de::DeserializeOwned;
use toml::de::{DeTable, DeValue};

use crate::renamed;

/// Error in the input: its position, the key, and the allowed values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputError {
    /// File as named by the user; empty if the input is not a file.
    pub file: String,
    /// Line in the file, from 1.
    pub line: Option<usize>,
    /// Path of the key, for example `lines[3].size`; empty for the whole input.
    pub key: String,
    /// One-line error message, with the allowed values.
    pub message: String,
}

impl fmt::Display for InputError {
    /// Formats `FILE:LINE: KEY: MESSAGE` without unknown parts.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.file.as_str(), self.line) {
            ("", None) => {}
            ("", Some(line)) => write!(f, "line {line}: ")?,
            (file, None) => write!(f, "{file}: ")?,
            (file, Some(line)) => write!(f, "{file}:{line}: ")?,
        }
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for InputError {}

/// Message for a missing required key.
const MISSING: &str = "this key is missing";
/// Maximum number of other missing keys to report.
const MISSING_MAX: usize = 64;

/// Prefix of an error about a key that does not exist.
const UNKNOWN_KEY: &str = "unknown key; ";

impl InputError {
    /// Whether the error is about an unknown key.
    pub fn is_unknown_key(&self) -> bool {
        self.message.starts_with(UNKNOWN_KEY)
    }
}

/// A TOML file: its text and the position of every key.
#[derive(Clone, Debug)]
pub struct Document {
    file: String,
    text: String,
    /// Entries in the order of the tables: each key, then its value, then the entries inside the value.
    entries: Vec<Entry>,
}

#[derive(Clone, Debug)]
struct Entry {
    path: String,
    span: Range<usize>,
    /// Whether the span is that of the key; otherwise that of its value.
    is_key: bool,
}

impl Document {
    /// Parses `text`, which was read from `file`.
    ///
    /// # Errors
    /// Returns an error if the text is not TOML.
    pub fn parse(file: &str, text: &str) -> Result<Document, InputError> {
        let mut document = Document { file: file.to_owned(), text: text.to_owned(), entries: Vec::new() };
        let table = DeTable::parse(text).map_err(|error| InputError {
            file: file.to_owned(),
            line: error.span().map(|span| document.line_at(span.start)),
            key: String::new(),
            message: one_line(error.message()),
        })?;
        collect_table("", table.get_ref(), &mut document.entries);
        match document.with_current_keys() {
            Some(text) => Document::parse(file, &text),
            None => Ok(document),
        }
    }

    /// Returns the text with the new names of renamed keys; `None` if all names are current.
    fn with_current_keys(&self) -> Option<String> {
        let current = |entry: &Entry| {
            let written = self.text.get(entry.span.clone())?;
            let text = renamed::current_text(&entry.path, written, &self.file, self.line_at(entry.span.start))?;
            Some((entry.span.clone(), text))
        };
        let mut changes: Vec<(Range<usize>, String)> =
            self.entries.iter().filter(|entry| entry.is_key).filter_map(current).collect();
        // From the end, so that the positions of earlier keys stay valid.
        changes.sort_by_key(|(span, _)| std::cmp::Reverse(span.start));
        let mut text = (!changes.is_empty()).then(|| self.text.clone())?;
        for (span, name) in changes {
            text.replace_range(span, &name);
        }
        Some(text)
    }

    /// Reads the document into a value.
    ///
    /// The error for a misspelled key names the key that was probably meant and all allowed keys. This needs
    /// `#[serde(deny_unknown_fields)]` on the type.
    ///
    /// # Errors
    /// Returns an error if a key is unknown, missing or of the wrong type, or its value is rejected.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, InputError> {
        toml::from_str(&self.text).map_err(|error| {
            // The top-level table has an empty span.
            let span = error.span().filter(|span| !span.is_empty());
            let path = span.as_ref().map_or("", |span| self.path_at(span));
            let explained = self.explain(path, span.as_ref(), error.message());
            if explained.message == MISSING { self.with_others_missing::<T>(explained) } else { explained }
        })
    }

    /// Adds the names of other missing keys to an error, so that the author sees all of them at once.
    fn with_others_missing<T: DeserializeOwned>(&self, first: InputError) -> InputError {
        let Ok(mut table) = toml::from_str::<toml::Table>(&self.text) else { return first };
        let mut others: Vec<String> = Vec::new();
        while others.len() < MISSING_MAX
            && let Err(refused) = trial::<T>(&table)
            && let Some(name) = refused.missing()
        {
            let lacking = tables_without(&mut table, &refused.path, name);
            let keys: Vec<String> = lacking.iter().map(|(place, _)| join(place, name)).collect();
            others.extend(keys.iter().filter(|&key| *key != first.key).cloned());
            if keys.is_empty() || !fill::<T>(&mut table, &refused.path, name) {
                break;
            }
        }
        if others.is_empty() {
            return first;
        }
        InputError { message: format!("{MISSING}, and so are {}", others.join(", ")), ..first }
    }

    /// Returns the file name as given by the user.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Returns the text of the file, with the current names of renamed keys.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the file contains the key at `key_path`.
    pub fn states(&self, key_path: &str) -> bool {
        self.entries.iter().any(|entry| entry.path == key_path)
    }

    /// Returns the line of each key, and of each item of a list, by its path.
    pub fn lines(&self) -> BTreeMap<String, usize> {
        let mut lines = BTreeMap::new();
        for entry in &self.entries {
            // A key precedes its value, so the first entry has the line of the key.
            lines.entry(entry.path.clone()).or_insert_with(|| self.line_at(entry.span.start));
        }
        lines
    }

    /// Returns an error about the key at `key_path`, for example `geometry.zones[3].first_cylinder`, with the line of
    /// the key or of its nearest parent in the file.
    pub fn error(&self, key_path: &str, message: impl Into<String>) -> InputError {
        let mut path = key_path;
        let entry = loop {
            let matching = self.entries.iter().find(|entry| entry.path == path);
            match path.rfind(['.', '[']) {
                Some(end) if matching.is_none() => path = &path[..end],
                _ => break matching,
            }
        };
        InputError {
            file: self.file.clone(),
            line: entry.map(|entry| self.line_at(entry.span.start)),
            key: key_path.to_owned(),
            message: message.into(),
        }
    }

    /// Rewrites serde's message about the entry at `path` in terms of the file's keys.
    fn explain(&self, path: &str, span: Option<&Range<usize>>, message: &str) -> InputError {
        if let Some((name, expected)) = unknown(message, "unknown field").or_else(|| unexpected(message)) {
            let key = self.key_named(path, name);
            return self.error(&key, format!("{UNKNOWN_KEY}{}", allowed(name, expected)));
        }
        if let Some((name, expected)) = unknown(message, "unknown variant") {
            let text = format!("unknown value `{name}`; {}", allowed(name, expected));
            return self.error(self.path_of_value(path, name), text);
        }
        if let Some(name) = quoted_after(message, "missing field") {
            return self.error(&join(path, name), MISSING);
        }
        if let Some(value) = value_in(message) {
            let exact = self.path_of_value(path, &value);
            if exact != path {
                return self.error(exact, one_line(message));
            }
        }
        let error = self.error(path, one_line(message));
        // A value may start on a later line than its key.
        let line = span.map(|span| self.line_at(span.start)).or(error.line);
        InputError { line, ..error }
    }

    /// Returns the path of the smallest entry that contains `span`.
    fn path_at(&self, span: &Range<usize>) -> &str {
        self.entries
            .iter()
            .rev()
            .filter(|entry| entry.span.start <= span.start && span.end <= entry.span.end)
            .min_by_key(|entry| entry.span.len())
            .map_or("", |entry| entry.path.as_str())
    }

    /// Returns the path of the key `name` in or at `path`. For types that serde buffers, such as tagged enums, serde
    /// reports only the table around the key.
    fn key_named(&self, path: &str, name: &str) -> String {
        let is_named = |candidate: &str| {
            candidate.strip_suffix(name).is_some_and(|parent| parent.is_empty() || parent.ends_with('.'))
        };
        if is_named(path) {
            return path.to_owned();
        }
        self.entries
            .iter()
            .find(|entry| entry.path.starts_with(path) && is_named(&entry.path))
            .map_or_else(|| join(path, name), |entry| entry.path.clone())
    }

    /// Returns the path of the value `text` (without the quotes of a string) in the table at `path`, because serde
    /// reports only the table for types that it buffers. Returns the table's path unless exactly one value matches.
    fn path_of_value<'p>(&'p self, path: &'p str, text: &str) -> &'p str {
        let is_within = |entry: &&Entry| entry.path.strip_prefix(path).is_some_and(|rest| rest.starts_with(['.', '[']));
        let is_it = |entry: &&Entry| {
            let written = self.text.get(entry.span.clone()).unwrap_or_default();
            written == text || written.trim_matches(['"', '\'']) == text && written.len() == text.len() + 2
        };
        let mut matching = self.entries.iter().filter(is_within).filter(is_it);
        match (matching.next(), matching.next()) {
            (Some(entry), None) => &entry.path,
            _ => path,
        }
    }

    fn line_at(&self, offset: usize) -> usize {
        let end = offset.min(self.text.len());
        1 + self.text.as_bytes()[..end].iter().filter(|&&byte| byte == b'\n').count()
    }
}

/// Error in a table, with its position.
struct Refused {
    path: String,
    message: String,
}

impl Refused {
    fn missing(&self) -> Option<&str> {
        quoted_after(&self.message, "missing field")
    }
}

/// Checks that the table is a valid value of type `T`. The table is converted to text and parsed like a file, because
/// another parser for every type would make up 1/3 of the web engine.
fn trial<T: DeserializeOwned>(table: &toml::Table) -> Result<(), Refused> {
    let text = toml::to_string(table).expect("tables can be written as text");
    let Err(error) = toml::from_str::<T>(&text) else { return Ok(()) };
    let document = Document::parse("", &text).expect("the same library wrote the text");
    let span = error.span().filter(|span| !span.is_empty());
    let path = span.as_ref().map_or("", |span| document.path_at(span)).to_owned();
    Err(Refused { path, message: error.message().to_owned() })
}

/// Returns the tables at `path` that lack the key `name`, with their paths. There are several if the path leads through
/// lists.
fn tables_without<'t>(table: &'t mut toml::Table, path: &str, name: &str) -> Vec<(String, &'t mut toml::Table)> {
    let mut matching = vec![(String::new(), table)];
    // If one item of a list lacks a key, others may lack it too.
    for part in path.split('.').map(|part| part.split('[').next().unwrap_or(part)).filter(|part| !part.is_empty()) {
        let below = |(place, table): (String, &'t mut toml::Table)| -> Vec<(String, &'t mut toml::Table)> {
            match table.get_mut(part) {
                Some(toml::Value::Table(table)) => vec![(join(&place, part), table)],
                Some(toml::Value::Array(items)) => {
                    let items = items.iter_mut().enumerate();
                    let item = |(index, item): (usize, &'t mut toml::Value)| {
                        Some((format!("{}[{index}]", join(&place, part)), item.as_table_mut()?))
                    };
                    items.filter_map(item).collect()
                }
                _ => Vec::new(),
            }
        };
        matching = matching.into_iter().flat_map(below).collect();
    }
    matching.retain(|(_, table)| !table.contains_key(name));
    matching
}

/// Sets a missing key to a value of the right type, so that other missing keys can be found. Returns whether such a
/// value was found.
fn fill<T: DeserializeOwned>(table: &mut toml::Table, path: &str, name: &str) -> bool {
    let text = |text: &str| toml::Value::String(text.to_owned());
    let mut candidates = vec![
        toml::Value::Integer(1),
        text("1ms"),
        text("1MB/s"),
        text("1rpm"),
        text("1"),
        toml::Value::Boolean(true),
        toml::Value::Float(1.0),
        toml::Value::Array(Vec::new()),
        toml::Value::Table(toml::Table::new()),
    ];
    let (own, before) = (join(path, name), table.clone());
    while !candidates.is_empty() {
        let candidate = candidates.remove(0);
        for (_, lacking) in tables_without(table, path, name) {
            lacking.insert(name.to_owned(), candidate.clone());
        }
        let Err(refused) = trial::<T>(table) else { return true };
        if refused.path != own || refused.missing().is_some() {
            return true;
        }
        // The value is one of a few words.
        candidates
            .extend(unknown(&refused.message, "unknown variant").and_then(|(_, words)| Some(text(words.first()?))));
        table.clone_from(&before);
    }
    false
}

fn collect_table(parent: &str, table: &DeTable<'_>, entries: &mut Vec<Entry>) {
    for (key, value) in table {
        let path = join(parent, key.get_ref());
        entries.push(Entry { path: path.clone(), span: key.span(), is_key: true });
        collect_value(path, value.get_ref(), value.span(), entries);
    }
}

fn collect_value(path: String, value: &DeValue<'_>, span: Range<usize>, entries: &mut Vec<Entry>) {
    entries.push(Entry { path: path.clone(), span, is_key: false });
    match value {
        DeValue::Table(table) => collect_table(&path, table, entries),
        DeValue::Array(array) => {
            for (index, item) in array.iter().enumerate() {
                collect_value(format!("{path}[{index}]"), item.get_ref(), item.span(), entries);
            }
        }
        DeValue::String(_) | DeValue::Integer(_) | DeValue::Float(_) | DeValue::Boolean(_) | DeValue::Datetime(_) => {}
    }
}

fn join(parent: &str, key: &str) -> String {
    if parent.is_empty() { key.to_owned() } else { format!("{parent}.{key}") }
}

/// Joins a multi-line message of the parser into one line.
fn one_line(message: &str) -> String {
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the name in backticks after `prefix`.
fn quoted_after<'m>(message: &'m str, prefix: &str) -> Option<&'m str> {
    let rest = message.strip_prefix(prefix)?.trim_start();
    rest.strip_prefix('`')?.split('`').next()
}

/// Returns the value from serde's "invalid type: integer `7`, …", or from a quantity's "\"7\" is not a duration: …".
fn value_in(message: &str) -> Option<String> {
    if let Some(rest) = message.strip_prefix('"') {
        return rest.split_once("\" is not ").map(|(text, _)| text.to_owned());
    }
    let rest = message.strip_prefix("invalid type: ").or_else(|| message.strip_prefix("invalid value: "))?;
    let mut parts = rest.splitn(3, ['`', '"']);
    parts.nth(1).map(str::to_owned)
}

/// Splits serde's "unknown field `x`, expected one of `a`, `b`" into the unknown name and the allowed ones.
fn unknown<'m>(message: &'m str, prefix: &str) -> Option<(&'m str, Vec<&'m str>)> {
    let name = quoted_after(message, prefix)?;
    let (_, after) = message.split_once(", expected").unwrap_or((message, ""));
    Some((name, after.split('`').skip(1).step_by(2).collect()))
}

/// Splits toml's "unexpected keys in table: x, available keys: a, b" (for fields of an enum) into the unknown name and
/// the allowed ones.
fn unexpected(message: &str) -> Option<(&str, Vec<&str>)> {
    let (names, expected) = message.strip_prefix("unexpected keys in table: ")?.split_once(", available keys: ")?;
    Some((names.split(", ").next()?, expected.split(", ").collect()))
}

/// Formats "did you mean `size`? allowed: size, share_percent".
fn allowed(name: &str, expected: Vec<&str>) -> String {
    if expected.is_empty() {
        return "no key is allowed here".to_owned();
    }
    let close = nearest(name, expected.iter().copied(), 1);
    let hint = close.first().map_or(String::new(), |candidate| format!("did you mean `{candidate}`? "));
    format!("{hint}allowed: {}", expected.join(", "))
}

/// Returns up to `most` of the `candidates` that `name` may be a misspelling of, most likely first.
pub fn nearest<'c>(name: &str, candidates: impl Iterator<Item = &'c str>, most: usize) -> Vec<&'c str> {
    let mut close: Vec<(usize, &str)> = candidates
        .map(|candidate| (edit_distance(name, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= 1 + candidate.chars().count() / 4)
        .collect();
    close.sort_unstable();
    close.dedup();
    close.into_iter().take(most).map(|(_, candidate)| candidate).collect()
}

/// Returns the Levenshtein distance between two strings, in characters.
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j].min(diagonal) + 1);
        }
    }
    row[b.len()]
}
