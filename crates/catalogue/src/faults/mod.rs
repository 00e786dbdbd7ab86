//! Schedules of faults as files: TOML, with maps of GNU ddrescue for bad sectors, or files of QEMU's blkdebug.

mod blkdebug;
pub mod ddrescue;
mod text;

pub use text::faults_to_toml;

use std::fs;
use std::path::Path;

use headstack_sim::Model;
use headstack_sim::faults::{Fault, Schedule, Stretch};
use headstack_workload::{Document, InputError};

/// Reads the schedule at `path` for a model, and the map files that it names, relative to it.
///
/// # Errors
/// When a file cannot be read or is invalid: file, line, key and permitted values.
pub fn load_faults(path: &Path, model: &Model) -> Result<Schedule, InputError> {
    let file = path.display().to_string();
    let text = read(path, &file)?;
    parse_faults(&file, &text, path.parent().unwrap_or(Path::new("")), model)
}

/// Like [`load_faults`] for a simulated run, which has no contents.
///
/// # Errors
/// As for [`load_faults`].
pub fn load_faults_of_run(path: &Path, model: &Model) -> Result<Schedule, InputError> {
    let schedule = load_faults(path, model)?;
    let file = path.display().to_string();
    let text = read(path, &file)?;
    schedule.check_without_contents().map_err(|complaint| complaint_of(&file, &text, complaint))?;
    Ok(schedule)
}

/// Reads the schedule at `path` and the map files that it names for any model: [`Schedule::check`] determines whether
/// all of it can strike one.
///
/// # Errors
/// When a file cannot be read or is invalid: file, line, key and permitted values.
pub fn read_faults(path: &Path) -> Result<Schedule, InputError> {
    let file = path.display().to_string();
    let text = read(path, &file)?;
    faults_of_text(&file, &text, path.parent().unwrap_or(Path::new("")))
}

/// Like [`read_faults`] for the text of `file`, whose map files are in `folder`.
///
/// # Errors
/// When it is invalid: file, line, key and permitted values.
pub fn faults_of_text(file: &str, text: &str, folder: &Path) -> Result<Schedule, InputError> {
    if blkdebug::is_blkdebug(text) {
        return blkdebug::parse(file, text);
    }
    let document = Document::parse(file, text)?;
    schedule_of(&document, folder)
}

/// Reads the text of `file`, whose map files are in `folder`, for a model.
///
/// # Errors
/// When it is invalid: file, line, key and permitted values.
pub fn parse_faults(file: &str, text: &str, folder: &Path, model: &Model) -> Result<Schedule, InputError> {
    let schedule = faults_of_text(file, text, folder)?;
    schedule.check(model).map_err(|complaint| complaint_of(file, text, complaint))?;
    Ok(schedule)
}

/// The error of a fault in a readable schedule, with its line.
fn complaint_of(file: &str, text: &str, (index, (key, message)): (usize, (&'static str, String))) -> InputError {
    let key = format!("fault[{index}].{key}");
    match Document::parse(file, text) {
        Ok(document) if !blkdebug::is_blkdebug(text) => document.error(&key, message),
        _ => InputError { file: file.to_owned(), line: None, key, message },
    }
}

fn schedule_of(document: &Document, folder: &Path) -> Result<Schedule, InputError> {
    let mut schedule: Schedule = document.read()?;
    for (index, timed) in schedule.faults.iter_mut().enumerate() {
        read_map(&mut timed.fault, folder).map_err(|error| match error.line {
            Some(_) => error,
            // An unreadable map file is an error of the schedule.
            None => document.error(&format!("fault[{index}].map"), format!("{}: {}", error.file, error.message)),
        })?;
    }
    Ok(schedule)
}

/// Reads the map file that a fault names, if any, from `folder`.
///
/// # Errors
/// When that file is invalid; without a line if it cannot be read.
pub fn read_map(fault: &mut Fault, folder: &Path) -> Result<(), InputError> {
    let Some((map, ranges)) = fault.map_mut() else { return Ok(()) };
    let Some(path) = map.take().map(|path| folder.join(path)) else { return Ok(()) };
    let file = path.display().to_string();
    let spans = ddrescue::bad_spans(&file, &read(&path, &file)?)?;
    ranges.extend(spans.iter().map(|span| Stretch::of_bytes(span.start_bytes, span.length_bytes)));
    Ok(())
}

fn read(path: &Path, file: &str) -> Result<String, InputError> {
    crate::note_input(file)?;
    fs::read_to_string(path).map_err(|error| InputError {
        file: file.to_owned(),
        line: None,
        key: String::new(),
        message: error.to_string(),
    })
}
