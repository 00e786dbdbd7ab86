//! Schedules: which fault strikes when, as a TOML file says it.

use std::fs;
use std::path::Path;

use headstack_workload::{Document, DurationNs, InputError};
use serde::{Deserialize, Serialize};

use super::effect::{Complaint, Known, Subject, effect_of};
use super::{Fault, Stretch, ddrescue};
use crate::timeline::Model;

/// What goes wrong in a session, and when.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// Seed of everything that is drawn: each fault has a stream of its own, in the order in which they strike.
    #[serde(default)]
    pub seed: u64,
    /// The faults.
    #[serde(default, rename = "fault", skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<Timed>,
}

/// A fault with its time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timed {
    /// When it strikes, in time of the model since the start.
    pub at: DurationNs,
    /// When it ends; never, where neither this nor `for` is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<DurationNs>,
    /// How long it lasts.
    #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
    pub lasts: Option<DurationNs>,
    /// What goes wrong.
    #[serde(flatten)]
    pub fault: Fault,
}

impl Timed {
    /// When it strikes, and when it ends (`u64::MAX` for never), in nanoseconds of the model.
    ///
    /// # Errors
    /// The key that makes no sense, and what is allowed.
    pub fn span_ns(&self) -> Result<(u64, u64), (&'static str, String)> {
        let at_ns = u64::try_from(self.at.0).map_err(|_| ("at", format!("{}: 0s or more is allowed", self.at)))?;
        let (key, until_ns) = match (self.until, self.lasts) {
            (None, None) => return Ok((at_ns, u64::MAX)),
            (Some(_), Some(_)) => return Err(("for", "until says it already; one of the two is allowed".to_owned())),
            (Some(until), None) => ("until", i128::from(until.0)),
            (None, Some(lasts)) => ("for", i128::from(self.at.0) + i128::from(lasts.0)),
        };
        if self.fault.is_momentary() {
            return Err((key, "this fault happens in a moment; the key is not allowed".to_owned()));
        }
        match u64::try_from(until_ns) {
            Ok(until_ns) if until_ns > at_ns => Ok((at_ns, until_ns)),
            _ => Err((key, format!("ends before it begins; after {} is allowed", self.at))),
        }
    }
}

impl Schedule {
    /// Reads the file at `path` for a model, and the map files that it names, relative to it.
    ///
    /// # Errors
    /// A file that cannot be read; what is wrong in it: file, line, key and what is allowed.
    pub fn load(path: &Path, model: &Model) -> Result<Schedule, InputError> {
        let file = path.display().to_string();
        let text = read(path, &file)?;
        Schedule::parse(&file, &text, path.parent().unwrap_or(Path::new("")), model)
    }

    /// Reads the text of `file`, whose map files are in `folder`, for a model.
    ///
    /// # Errors
    /// What is wrong in it: file, line, key and what is allowed.
    pub fn parse(file: &str, text: &str, folder: &Path, model: &Model) -> Result<Schedule, InputError> {
        let document = Document::parse(file, text)?;
        let mut schedule: Schedule = document.read()?;
        for (index, timed) in schedule.faults.iter_mut().enumerate() {
            timed.fault.read_map(folder).map_err(|error| match error.line {
                Some(_) => error,
                // What cannot be read is the schedule's fault.
                None => document.error(&format!("fault[{index}].map"), format!("{}: {}", error.file, error.message)),
            })?;
        }
        schedule
            .check(model)
            .map_err(|(index, (key, message))| document.error(&format!("fault[{index}].{key}"), message))?;
        Ok(schedule)
    }

    /// What cannot be in it: the number of the fault, the key and what is allowed.
    pub(crate) fn check(&self, model: &Model) -> Result<(), (usize, Complaint)> {
        let (subject, devices) = (Subject::of(model), Known::devices_of(model));
        // A spare that is to come has no name yet.
        let grows = self.faults.iter().any(|timed| matches!(timed.fault, Fault::SpareAdded { .. }));
        for (index, timed) in self.faults.iter().enumerate() {
            timed.span_ns().map_err(|complaint| (index, complaint))?;
            match effect_of(&timed.fault, &subject, &devices) {
                Err(("member", _)) if grows => {}
                checked => drop(checked.map_err(|complaint| (index, complaint))?),
            }
        }
        Ok(())
    }
}

impl Fault {
    /// Takes in the map file that it names, if it names one, from `folder`.
    ///
    /// # Errors
    /// What is wrong with that file; without a line where it cannot be read.
    pub fn read_map(&mut self, folder: &Path) -> Result<(), InputError> {
        let Some((map, ranges)) = self.map_mut() else { return Ok(()) };
        let Some(path) = map.take().map(|path| folder.join(path)) else { return Ok(()) };
        let file = path.display().to_string();
        let spans = ddrescue::bad_spans(&file, &read(&path, &file)?)?;
        ranges.extend(spans.iter().map(|span| Stretch::of_bytes(span.start_bytes, span.length_bytes)));
        Ok(())
    }
}

fn read(path: &Path, file: &str) -> Result<String, InputError> {
    fs::read_to_string(path).map_err(|error| InputError {
        file: file.to_owned(),
        line: None,
        key: String::new(),
        message: error.to_string(),
    })
}
