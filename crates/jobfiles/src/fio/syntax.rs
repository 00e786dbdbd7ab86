//! Parses text or arguments into sections of settings. Checks that names are known and values are well-formed.

use std::io;

use headstack_workload::document::{InputError, nearest};

use super::expression;
use super::options::{self, Fate, Kind, OptionOfFio};
use super::values::{self, Base};
use crate::IN_INCLUDED;

/// Job file keywords: page size in bytes, memory of the machine in MiB, and its number of processors.
pub const KEYWORDS: [&str; 3] = ["$pagesize", "$mb_memory", "$ncpus"];

/// Maximum nesting depth of included files.
const INCLUDES_MAX: u32 = 16;

/// Returns the value of a variable or keyword.
pub(super) type Environment<'e> = &'e dyn Fn(&str) -> Option<String>;

/// Returns the text of an included file.
pub(super) type Include<'i> = &'i dyn Fn(&str) -> io::Result<String>;

/// The settings under a `[name]` line.
pub(super) struct Section {
    pub(super) name: String,
    pub(super) place: Place,
    pub(super) settings: Vec<Setting>,
}

/// A setting from one line or argument.
#[derive(Clone)]
pub(super) struct Setting {
    pub(super) option: OptionOfFio,
    /// Option name or alias, as written.
    pub(super) written_name: String,
    /// Value as written; empty for a flag without a value.
    pub(super) written: String,
    /// Value with variables and keywords replaced.
    pub(super) value: String,
    pub(super) place: Place,
}

/// A position in the input.
#[derive(Clone, Default)]
pub(super) struct Place {
    /// Name of the file; empty for arguments.
    pub(super) file: String,
    /// Line number in the file, or argument number, from 1.
    pub(super) line: u32,
    /// Line of the job file that includes this file; `None` if it is not included.
    pub(super) included_at: Option<u32>,
}

impl Place {
    /// Returns an error at this position. For an included file, the error prints only option names and no other text of
    /// the line.
    pub(super) fn error(&self, key: &str, message: impl Into<String>) -> InputError {
        let key = if self.included_at.is_none() || options::find(key).is_some() { key } else { "" };
        let message = if self.included_at.is_none() { message.into() } else { IN_INCLUDED.to_owned() };
        self.plain_error(key, one_line(&message))
    }

    /// Like [`error`](Self::error), for a message that contains no text of the line.
    fn plain_error(&self, key: &str, message: impl Into<String>) -> InputError {
        let line = (!self.file.is_empty()).then_some(self.line as usize);
        InputError { file: self.file.clone(), line, key: key.to_owned(), message: message.into() }
    }
}

/// Converts a value to a single line for messages.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

impl Setting {
    pub(super) fn error(&self, message: impl Into<String>) -> InputError {
        self.place.error(&one_line(&self.written_name), message)
    }
}

/// Reads a job file.
pub(super) fn read(
    file: &str,
    text: &str,
    environment: Environment,
    include: Include,
) -> Result<Vec<Section>, InputError> {
    let mut reader = Reader { environment, include, sections: Vec::new() };
    reader.file(file, text, None, 0)?;
    reader.sections.iter_mut().try_for_each(|section| check(&mut section.settings))?;
    Ok(reader.sections)
}

struct Reader<'r> {
    environment: Environment<'r>,
    include: Include<'r>,
    sections: Vec<Section>,
}

impl Reader<'_> {
    /// Reads the lines of a file. `included_at` is the line of the job file that includes it, if any.
    fn file(&mut self, file: &str, text: &str, included_at: Option<u32>, depth: u32) -> Result<(), InputError> {
        for (line, text) in (1u32..).zip(text.lines()) {
            let place = Place { file: file.to_owned(), line, included_at };
            let content = text.split([';', '#']).next().unwrap_or_default().trim();
            if content.is_empty() {
                continue;
            }
            if let Some(name) = content.strip_prefix('[') {
                self.begin_section(name, place, depth)?;
            } else if let Some(name) = included(content) {
                self.include(name, &place, depth)?;
            } else {
                let setting = setting(content, place, self.environment)?;
                match self.sections.last_mut() {
                    Some(section) => section.settings.push(setting),
                    None => return Err(setting.error("is before the first [section]; move it into a section")),
                }
            }
        }
        Ok(())
    }

    fn begin_section(&mut self, name: &str, place: Place, depth: u32) -> Result<(), InputError> {
        if depth > 0 {
            return Err(place.plain_error("", "begins a section; included files must not have sections"));
        }
        let Some(name) = name.strip_suffix(']') else {
            return Err(place.error("", format!("\"[{name}\" has no closing bracket")));
        };
        self.sections.push(Section { name: name.to_owned(), place, settings: Vec::new() });
        Ok(())
    }

    fn include(&mut self, name: &str, place: &Place, depth: u32) -> Result<(), InputError> {
        if depth >= INCLUDES_MAX {
            return Err(place
                .plain_error("include", format!("nests includes too deeply; the maximum is {INCLUDES_MAX} levels")));
        }
        if self.sections.is_empty() {
            return Err(place.error("include", "is before the first [section]; move it into a section"));
        }
        let text = (self.include)(name).map_err(|error| place.error("include", format!("{name:?}: {error}")))?;
        self.file(name, &text, Some(place.included_at.unwrap_or(place.line)), depth + 1)
    }
}

/// Returns the file name of a line `include NAME`.
fn included(content: &str) -> Option<&str> {
    let rest = content.strip_prefix("include")?;
    rest.starts_with(char::is_whitespace).then(|| rest.trim())
}

/// Parses `name=value` or `name`.
fn setting(content: &str, place: Place, environment: Environment) -> Result<Setting, InputError> {
    let (name, written) = match content.split_once('=') {
        Some((name, value)) => (name.trim_end(), Some(value.trim())),
        None => (content, None),
    };
    let option = option_named(name, &place)?;
    let implied = match option.kind {
        Kind::Flag => Some("1"),
        Kind::TextOrNone => Some(""),
        _ => None,
    };
    let Some(stated) = written.or(implied) else {
        return Err(place.error(name, "the value is missing"));
    };
    let value = substitute(stated, environment).map_err(|message| place.error(name, message))?;
    let written = written.unwrap_or_default().to_owned();
    Ok(Setting { option, written_name: name.to_owned(), written, value, place })
}

fn option_named(name: &str, place: &Place) -> Result<OptionOfFio, InputError> {
    options::find(name).ok_or_else(|| {
        let names = options::all().flat_map(|(option, aliases)| std::iter::once(option.name).chain(aliases));
        let close = nearest(name, names, 3);
        let hint = match close.is_empty() {
            true => "see `fio --cmdhelp=all` for valid options".to_owned(),
            false => format!("did you mean {}?", close.join(", ")),
        };
        place.error(&one_line(name), format!("unknown option; {hint}"))
    })
}

/// Replaces `${NAME}`, and `$pagesize`, `$mb_memory` and `$ncpus`, which may be used in calculations.
fn substitute(text: &str, environment: Environment) -> Result<String, String> {
    let mut value = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let Some(length) = rest[start..].find('}') else { break };
        value.push_str(&rest[..start]);
        // As in fio, an unset variable is empty.
        value.push_str(&environment(&rest[start + 2..start + length]).unwrap_or_default());
        rest = &rest[start + length + 1..];
    }
    value.push_str(rest);
    let mut is_calculated = false;
    for keyword in KEYWORDS {
        if value.contains(keyword) {
            let number = environment(keyword).ok_or_else(|| format!("{keyword} is not a known keyword"))?;
            value = value.replace(keyword, &number);
            is_calculated = true;
        }
    }
    if is_calculated && value.contains(['+', '-', '*', '/']) {
        let result = expression::evaluate(&value, &|unit| unit.is_empty().then_some(1))?;
        // fio calls bc(1), which drops the fraction.
        value = format!("{:.0}", result.trunc());
    }
    Ok(value)
}

/// Checks the values of a section. Their units depend on the section's `kb_base`, which may be anywhere in it.
fn check(settings: &mut [Setting]) -> Result<(), InputError> {
    let base = base(settings.iter());
    for setting in settings {
        let value = setting.value.trim();
        // The base is known only after globals and job are merged, but whether a value is valid does not depend on it.
        values::check(setting.option.kind, value, base).map_err(|message| setting.error(message))?;
    }
    Ok(())
}

/// Returns the base set by the last `kb_base` of the settings.
pub(super) fn base<'s>(settings: impl IntoIterator<Item = &'s Setting>) -> Base {
    let stated = settings.into_iter().filter(|setting| setting.option.name == "kb_base").last();
    match stated.map(|setting| setting.value.as_str()) {
        Some("1000") => Base::Short1000,
        _ => Base::Short1024,
    }
}

impl Setting {
    /// Returns the remark on an unsupported option; `None` if its value is what headstack does anyway.
    ///
    /// # Errors
    /// If the option would change the data written.
    pub(super) fn remark(&self) -> Result<Option<&'static str>, InputError> {
        let is_usual = match self.option.kind {
            Kind::Flag => self.value == "0",
            Kind::Bool(usual) => self.value == if usual { "1" } else { "0" },
            Kind::Choice(choices) => choices.first() == Some(&self.value.as_str()) && self.value == "none",
            Kind::Whole(least, _) => matches!(self.option.fate, Fate::Refused(_)) && self.value == least.to_string(),
            _ => false,
        };
        match self.option.fate {
            Fate::Refused(why) if !is_usual => Err(self.error(format!("not supported: {why}"))),
            Fate::Not(message) if !is_usual => Ok(Some(message)),
            _ => Ok(None),
        }
    }
}

/// Options of the fio program (not of jobs) that may be among the arguments and take a value.
const PROGRAM_WITH_VALUE: &[&str] = &[
    "output",
    "output-format",
    "append-terse",
    "debug",
    "bandwidth-log-file",
    "eta",
    "eta-interval",
    "eta-newline",
    "status-interval",
    "max-jobs",
    "alloc-size",
    "terse-version",
    "aux-path",
    "client",
    "server",
    "daemonize",
    "remote-config",
    "trigger",
    "trigger-file",
    "trigger-timeout",
    "trigger-remote",
    "idle-prof",
    "inflate-log",
    "section",
    "warnings-fatal",
    "merge-blktrace-only",
];
const PROGRAM_ALONE: &[&str] = &["minimal", "bandwidth-log", "readonly", "parse-only", "showcmd", "version", "help"];

/// fio's command line: the sections, and the program's own options with their positions.
pub(super) struct CommandLine {
    pub(super) sections: Vec<Section>,
    pub(super) of_program: Vec<(String, Place)>,
}

/// Reads fio's arguments, with or without the word `fio` before them.
pub(super) fn read_arguments(arguments: &[String], environment: Environment) -> Result<CommandLine, InputError> {
    let mut line = CommandLine { sections: Vec::new(), of_program: Vec::new() };
    let is_program =
        |(index, argument): &(usize, &String)| *index == 0 && (*argument == "fio" || argument.ends_with("/fio"));
    let mut rest = arguments.iter().enumerate().peekable();
    rest.next_if(is_program);
    while let Some((index, argument)) = rest.next() {
        let number = u32::try_from(index + 1).unwrap_or(u32::MAX);
        let place = Place { line: number, ..Place::default() };
        let Some(content) = argument.strip_prefix("--").filter(|content| !content.is_empty()) else {
            let message = "is not an option; options begin with --, for example --name=job";
            return Err(place.error(&one_line(argument), message));
        };
        let name = content.split('=').next().unwrap_or_default();
        let is_alone = PROGRAM_ALONE.contains(&name);
        if is_alone || PROGRAM_WITH_VALUE.contains(&name) {
            if !is_alone && !content.contains('=') {
                rest.next();
            }
            line.of_program.push((name.to_owned(), place));
            continue;
        }
        let option = option_named(name, &place)?;
        let takes_next = !content.contains('=') && !matches!(option.kind, Kind::Flag | Kind::TextOrNone);
        let content = match rest.next_if(|_| takes_next) {
            Some((_, value)) => format!("{name}={value}"),
            None => content.to_owned(),
        };
        line.add(setting(&content, place, environment)?);
    }
    line.sections.iter_mut().try_for_each(|section| check(&mut section.settings))?;
    Ok(line)
}

impl CommandLine {
    /// Adds a setting. Each `--name` starts a section; settings before the first `--name` apply to all.
    fn add(&mut self, setting: Setting) {
        let is_name = setting.option.name == "name";
        if is_name || self.sections.is_empty() {
            let name = if is_name { setting.value.clone() } else { "global".to_owned() };
            self.sections.push(Section { name, place: setting.place.clone(), settings: Vec::new() });
        }
        if let Some(section) = self.sections.last_mut().filter(|_| !is_name) {
            section.settings.push(setting);
        }
    }
}
