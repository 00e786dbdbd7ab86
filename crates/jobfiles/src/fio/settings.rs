//! [`Settings`] of a job and [`Remarks`] on them.

use std::collections::{BTreeMap, BTreeSet};

use headstack_workload::document::InputError;

use super::syntax::{Place, Setting};
use super::values::{self, Amount, Base, Triple, Written};
use crate::Remark;

/// Settings of a job: the global settings, overridden by the job's own.
#[derive(Clone, Default)]
pub(super) struct Settings {
    /// Latest setting of each option, by name, with its position.
    latest: BTreeMap<&'static str, (usize, Setting)>,
    stated: usize,
    pub(super) base: Base,
}

impl Settings {
    pub(super) fn add(&mut self, setting: &Setting) {
        self.stated += 1;
        if setting.option.name == "kb_base" {
            self.base = super::syntax::base([setting]);
        }
        self.latest.insert(setting.option.name, (self.stated, setting.clone()));
    }

    pub(super) fn get(&self, name: &str) -> Option<&Setting> {
        self.latest.get(name).map(|(_, setting)| setting)
    }

    /// Returns the setting of `names` that was stated last.
    pub(super) fn last_of(&self, names: &[&str]) -> Option<&Setting> {
        let stated = names.iter().filter_map(|name| self.latest.get(*name));
        stated.max_by_key(|(order, _)| *order).map(|(_, setting)| setting)
    }

    /// Returns an error about the setting of `names` that was stated last.
    pub(super) fn error(&self, names: &[&str], message: impl Into<String>) -> InputError {
        let fallback = || Place::default().error(names.first().copied().unwrap_or_default(), "");
        let message = message.into();
        match self.last_of(names) {
            Some(setting) => setting.error(message),
            None => InputError { message, ..fallback() },
        }
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.get(name).map(|setting| setting.value.trim())
    }

    pub(super) fn is(&self, name: &str, usual: bool) -> bool {
        self.text(name).map_or(usual, |value| value == "1")
    }

    /// Whether requests bypass the page cache.
    pub(super) fn is_direct(&self) -> bool {
        match self.last_of(&["direct", "buffered", "atomic"]) {
            Some(setting) => (setting.option.name == "buffered") == (setting.value == "0"),
            None => false,
        }
    }

    pub(super) fn parsed<T>(
        &self,
        name: &str,
        parse: impl Fn(&str, &Setting) -> Result<T, String>,
    ) -> Result<Option<T>, InputError> {
        let parse = |setting: &Setting| parse(setting.value.trim(), setting).map_err(|message| setting.error(message));
        self.get(name).map(parse).transpose()
    }

    pub(super) fn whole(&self, name: &str) -> Result<Option<u64>, InputError> {
        self.parsed(name, |value, _| values::size(value, self.base))
    }

    pub(super) fn time_ns(&self, name: &str) -> Result<Option<u64>, InputError> {
        self.parsed(name, |value, setting| {
            values::time_ns(value.split(',').next().unwrap_or_default(), setting.option.kind)
        })
    }

    pub(super) fn amount(&self, name: &str) -> Result<Option<Amount>, InputError> {
        self.parsed(name, |value, _| match values::amount(value, self.base)? {
            Written::Amount(amount) => Ok(amount),
            Written::Zones(zones) => {
                let zone_bytes = self.text("zonesize").map_or(Ok(0), |size| values::size(size, self.base))?;
                match zones.checked_mul(zone_bytes) {
                    Some(bytes) if zone_bytes > 0 => Ok(Amount::Bytes(bytes)),
                    Some(_) => {
                        Err("a number of zones needs a zone size; add zonesize, or use bytes or percent".to_owned())
                    }
                    None => Err(format!("{zones} zones of {zone_bytes} bytes exceed 2^64")),
                }
            }
        })
    }

    /// Returns a whole number from `low` to `high`; `usual` if the setting is missing.
    pub(super) fn within(&self, name: &str, usual: u64, low: u64, high: u64) -> Result<u64, InputError> {
        let number = self.parsed(name, |value, _| match values::size(value, self.base)? {
            number if (low..=high).contains(&number) => Ok(number),
            number => Err(format!("{number} is out of range; must be {low} to {high}")),
        });
        Ok(number?.unwrap_or(usual))
    }

    pub(super) fn sizes(&self, name: &str) -> Result<Triple<u64>, InputError> {
        Ok(self.parsed(name, |value, _| values::sizes(value, self.base))?.unwrap_or_default())
    }
}

/// Collects remarks without duplicates.
#[derive(Default)]
pub(super) struct Remarks {
    pub(super) list: Vec<Remark>,
    /// Keys of the collected remarks, for finding duplicates.
    seen: BTreeSet<(u32, String, String)>,
    /// Position of the section being read.
    pub(super) section: Place,
}

impl Remarks {
    pub(super) fn add(&mut self, setting: &Setting, message: impl Into<String>) {
        self.at(&setting.place, &setting.written_name, message);
    }

    /// Adds a remark on the setting of `names` that was stated last. If there is none, the remark refers to the section
    /// and the first name.
    pub(super) fn about(&mut self, settings: &Settings, names: &[&str], message: impl Into<String>) {
        match settings.last_of(names) {
            Some(setting) => self.add(setting, message),
            None => {
                let section = self.section.clone();
                self.at(&section, names.first().copied().unwrap_or_default(), message);
            }
        }
    }

    pub(super) fn at(&mut self, place: &Place, option: &str, message: impl Into<String>) {
        let (line, message) = match place.included_at {
            None => (place.line, message.into()),
            Some(line) => (line, format!("{}:{}: {}", place.file, place.line, message.into())),
        };
        if self.seen.insert((line, option.to_owned(), message.clone())) {
            self.list.push(Remark { line, option: option.to_owned(), message });
        }
    }
}
