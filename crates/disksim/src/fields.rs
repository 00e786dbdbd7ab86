//! Typed access to a block's parameters, with a record of where each value was used.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::rc::Rc;

use headstack_workload::InputError;

use super::parser::{Block, Parameter, Value, ValueKind};

/// A parameter that has no counterpart in a drive description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmapped {
    /// File that sets the parameter.
    pub file: String,
    /// Line of the parameter's name.
    pub line: usize,
    /// Name of its block, or the block's type if it has no name.
    pub block: String,
    /// Name of the parameter.
    pub parameter: String,
    /// Value of the parameter, shortened.
    pub value: String,
    /// Reason why the parameter is left out.
    pub why: String,
}

/// Maximum time accepted for a drive parameter, in ms: just below 10 s.
pub(super) const MS_MAX: f64 = 9_999.0;
/// Maximum transfer time of 512 bytes on a bus, in ms.
const BLOCK_MS_MAX: f64 = 500.0;
/// Maximum settling time, in ms: just below 1 s.
const SETTLE_MS_MAX: f64 = 999.0;
/// Maximum number in a list; a boundary in cylinders may be this large.
const LISTED_MAX: f64 = 1e6;
pub(super) const NS_PER_MS: f64 = 1e6;

/// Sources of the values of a description, and unused parameters.
#[derive(Default)]
pub(super) struct Ledger {
    pub(super) sources: BTreeMap<String, String>,
    pub(super) unmapped: Vec<Unmapped>,
    pub(super) warnings: Vec<String>,
}

impl Ledger {
    /// Records that `key` of the description takes the parameter's value: code A (read from a source) and the place.
    fn map(&mut self, key: &str, parameter: &Parameter) {
        self.add_source(key, &format!("A {}", parameter.place));
    }

    /// Records that `source` also contributed to the value of `key`.
    pub(super) fn add_source(&mut self, key: &str, source: &str) {
        let sources = self.sources.entry(key.to_owned()).or_default();
        if !sources.is_empty() {
            sources.push_str(", ");
        }
        sources.push_str(source);
    }

    /// Records that `key` of the description has a value that no parameter states: code I (inferred) and the reason.
    pub(super) fn assume(&mut self, key: &str, why: &str) {
        self.sources.insert(key.to_owned(), format!("I {why}"));
    }
}

/// The reason why a parameter has no counterpart.
pub(super) struct Reason {
    pub(super) parameter: &'static str,
    /// Value at which the parameter has no effect; `None` if there is none.
    pub(super) neutral: Option<f64>,
    pub(super) why: &'static str,
}

/// The parameters of one block. Unread parameters end up in the ledger's `unmapped`.
pub(super) struct Fields<'b> {
    pub(super) block: &'b Block,
    /// Path of the block, for messages, such as `Layout Model.Zones[3]`.
    path: String,
    read: BTreeSet<String>,
}

impl<'b> Fields<'b> {
    pub(super) fn new(block: &'b Block, path: &str) -> Fields<'b> {
        Fields { block, path: path.to_owned(), read: BTreeSet::new() }
    }

    pub(super) fn key(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    /// Returns the error for the parameter `name`, with its place.
    pub(super) fn error(&self, name: &str, message: impl Into<String>) -> InputError {
        let place = self.block.get(name).map_or(&self.block.place, |found| &found.value.place);
        place.error(&self.key(name), message)
    }

    fn refused(&self, name: &str, value: &Value, allowed: &str) -> InputError {
        value.place.error(&self.key(name), format!("must be {allowed}, not {}", value.describe()))
    }

    /// Adds a warning about a parameter, with its place.
    pub(super) fn warn(&self, ledger: &mut Ledger, name: &str, message: &str) {
        let error = self.error(name, message);
        ledger.warnings.push(error.to_string());
    }

    fn optional(&mut self, ledger: &mut Ledger, name: &str, to: &str) -> Option<&'b Value> {
        let parameter = self.block.get(name)?;
        self.read.insert(name.to_owned());
        ledger.map(to, parameter);
        Some(&parameter.value)
    }

    fn required(&mut self, ledger: &mut Ledger, name: &str, to: &str, allowed: &str) -> Result<&'b Value, InputError> {
        let missing =
            self.error(name, format!("this parameter is missing from {}; allowed: {allowed}", self.block.label()));
        self.optional(ledger, name, to).ok_or(missing)
    }

    /// Reads an integer within `range` for the description's key `to`.
    pub(super) fn integer(
        &mut self,
        ledger: &mut Ledger,
        name: &str,
        to: &str,
        range: RangeInclusive<i64>,
    ) -> Result<u64, InputError> {
        let allowed = format!("an integer from {} to {}", range.start(), range.end());
        let value = self.required(ledger, name, to, &allowed)?;
        match value.kind {
            ValueKind::Integer(number) if range.contains(&number) => Ok(number as u64),
            _ => Err(self.refused(name, value, &allowed)),
        }
    }

    /// Like [`Fields::integer`], with `u32::MAX` as the maximum.
    pub(super) fn count(
        &mut self,
        ledger: &mut Ledger,
        name: &str,
        to: &str,
        range: RangeInclusive<u32>,
    ) -> Result<u32, InputError> {
        let range = i64::from(*range.start())..=i64::from(*range.end());
        self.integer(ledger, name, to, range).map(|number| number as u32)
    }

    /// Reads a 0 or 1.
    pub(super) fn flag(&mut self, ledger: &mut Ledger, name: &str, to: &str) -> Result<bool, InputError> {
        Ok(self.integer(ledger, name, to, 0..=1)? == 1)
    }

    /// Reads a number within `range`.
    pub(super) fn number(
        &mut self,
        ledger: &mut Ledger,
        name: &str,
        to: &str,
        range: RangeInclusive<f64>,
    ) -> Result<f64, InputError> {
        let allowed = format!("a number from {} to {}", range.start(), range.end());
        let value = self.required(ledger, name, to, &allowed)?;
        match value.as_number() {
            Some(number) if range.contains(&number) => Ok(number),
            _ => Err(self.refused(name, value, &allowed)),
        }
    }

    /// Reads a time in milliseconds.
    pub(super) fn ms(&mut self, ledger: &mut Ledger, name: &str, to: &str) -> Result<f64, InputError> {
        self.number(ledger, name, to, 0.0..=MS_MAX)
    }

    /// Reads a time in milliseconds and returns nanoseconds.
    pub(super) fn ns(&mut self, ledger: &mut Ledger, name: &str, to: &str) -> Result<u64, InputError> {
        self.ms(ledger, name, to).map(ns)
    }

    /// Reads the transfer time of 512 bytes on a bus in milliseconds and returns nanoseconds.
    pub(super) fn block_ns(&mut self, ledger: &mut Ledger, name: &str, to: &str) -> Result<u64, InputError> {
        self.number(ledger, name, to, 0.0..=BLOCK_MS_MAX).map(ns)
    }

    /// Reads a settling time in milliseconds, which may be negative, and returns nanoseconds.
    pub(super) fn settle_ns(&mut self, ledger: &mut Ledger, name: &str, to: &str) -> Result<i64, InputError> {
        let ms = self.number(ledger, name, to, -SETTLE_MS_MAX..=SETTLE_MS_MAX)?;
        Ok((ms * NS_PER_MS).round() as i64)
    }

    /// Reads a word; `allowed` lists the valid words for messages.
    pub(super) fn word(
        &mut self,
        ledger: &mut Ledger,
        name: &str,
        to: &str,
        allowed: &str,
    ) -> Result<&'b str, InputError> {
        let value = self.required(ledger, name, to, allowed)?;
        match &value.kind {
            ValueKind::Word(word) => Ok(word),
            _ => Err(self.refused(name, value, allowed)),
        }
    }

    /// Like [`Fields::word`], but returns `None` if the parameter is missing.
    pub(super) fn optional_word(
        &mut self,
        ledger: &mut Ledger,
        name: &str,
        to: &str,
        allowed: &str,
    ) -> Result<Option<&'b str>, InputError> {
        self.block.get(name).map(|_| self.word(ledger, name, to, allowed)).transpose()
    }

    /// Reads a block of type `module`. A `*` at the end of `module` matches any suffix.
    pub(super) fn block(
        &mut self,
        ledger: &mut Ledger,
        name: &str,
        to: &str,
        module: &str,
    ) -> Result<&'b Rc<Block>, InputError> {
        let allowed = format!("a block {module} {{ ... }}");
        let value = self.required(ledger, name, to, &allowed)?;
        let fits = |found: &str| match module.strip_suffix('*') {
            Some(prefix) => found.starts_with(prefix),
            None => found == module,
        };
        match &value.kind {
            ValueKind::Block(block) if fits(&block.module) => Ok(block),
            _ => Err(self.refused(name, value, &allowed)),
        }
    }

    /// Reads a list.
    pub(super) fn list(
        &mut self,
        ledger: &mut Ledger,
        name: &str,
        to: &str,
        allowed: &str,
    ) -> Result<&'b [Value], InputError> {
        let value = self.required(ledger, name, to, allowed)?;
        match &value.kind {
            ValueKind::List(items) => Ok(items),
            _ => Err(self.refused(name, value, allowed)),
        }
    }

    /// Reads a list of integers from 0 to `last`; empty if the parameter is missing.
    pub(super) fn places(
        &mut self,
        ledger: &mut Ledger,
        name: &str,
        to: &str,
        last: u64,
    ) -> Result<Vec<u64>, InputError> {
        if self.block.get(name).is_none() {
            return Ok(Vec::new());
        }
        let allowed = format!("a list of integers from 0 to {last}");
        let items = self.list(ledger, name, to, &allowed)?;
        let place = |item: &Value| match item.kind {
            ValueKind::Integer(number) => u64::try_from(number).ok().filter(|&n| n <= last),
            _ => None,
        };
        items.iter().map(|item| place(item).ok_or_else(|| self.refused(name, item, &allowed))).collect()
    }

    /// Reads a list of exactly `length` numbers from -[`LISTED_MAX`] to [`LISTED_MAX`].
    pub(super) fn numbers(
        &mut self,
        ledger: &mut Ledger,
        name: &str,
        to: &str,
        length: usize,
    ) -> Result<Vec<f64>, InputError> {
        let allowed = format!("a list of {length} numbers from -{LISTED_MAX} to {LISTED_MAX}");
        let items = self.list(ledger, name, to, &allowed)?;
        if items.len() != length {
            return Err(self.error(name, format!("must be {allowed}, but it has {}", items.len())));
        }
        let number = |item: &Value| item.as_number().filter(|n| n.abs() <= LISTED_MAX);
        items.iter().map(|item| number(item).ok_or_else(|| self.refused(name, item, &allowed))).collect()
    }

    /// Records a parameter as unmapped for a reason that depends on other parameters.
    pub(super) fn leave(&mut self, ledger: &mut Ledger, name: &str, why: &str) {
        let Some(parameter) = self.block.get(name) else {
            return;
        };
        self.read.insert(name.to_owned());
        ledger.unmapped.push(Unmapped {
            file: parameter.place.file.to_string(),
            line: parameter.place.line,
            block: self.block.label().to_owned(),
            parameter: name.to_owned(),
            value: parameter.value.describe(),
            why: why.to_owned(),
        });
    }

    /// Like [`Fields::leave`], but does nothing if the parameter was read.
    pub(super) fn leave_unread(&mut self, ledger: &mut Ledger, name: &str, why: &str) {
        if !self.read.contains(name) {
            self.leave(ledger, name, why);
        }
    }

    /// Records every unread parameter as unmapped, with its reason or as unknown. Warns about each parameter whose
    /// value makes the real drive behave differently from the model.
    pub(super) fn finish(&mut self, ledger: &mut Ledger, reasons: &[Reason]) {
        for name in self.block.names() {
            if self.read.contains(name) {
                continue;
            }
            let number = self.block.get(name).and_then(|parameter| parameter.value.as_number());
            match reasons.iter().find(|reason| reason.parameter == name) {
                Some(reason) if reason.neutral.is_some() && reason.neutral == number => {
                    self.leave(ledger, name, &format!("has no effect at this value ({})", reason.why));
                }
                Some(reason) => {
                    if reason.neutral.is_some() {
                        self.warn(ledger, name, &format!("has no counterpart: {}", reason.why));
                    }
                    self.leave(ledger, name, reason.why);
                }
                None => {
                    self.warn(ledger, name, "unknown parameter; ignored");
                    self.leave(ledger, name, "unknown parameter");
                }
            }
        }
    }

    /// Records every unread parameter as unmapped for the same reason.
    pub(super) fn finish_all(&mut self, ledger: &mut Ledger, why: &str) {
        for name in self.block.names() {
            if !self.read.contains(name) {
                self.leave(ledger, name, why);
            }
        }
    }
}

/// Converts milliseconds to nanoseconds; a negative time becomes 0.
pub(super) fn ns(ms: f64) -> u64 {
    (ms * NS_PER_MS).round() as u64
}
