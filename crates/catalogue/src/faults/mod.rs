//! Reads fault schedules from files: TOML files, which may name GNU ddrescue maps of bad sectors, or configuration
//! files of QEMU's blkdebug.

mod blkdebug;
pub mod ddrescue;
mod text;

pub use text::faults_to_toml;

use std::fs;
use std::path::Path;

use headstack_sim::Model;
use headstack_sim::faults::{Fault, Schedule, Stretch};
use headstack_workload::{Document, InputError};

/// Reads the schedule at `path` for a model, including the map files that the schedule names relative to its folder.
///
/// # Errors
/// If a file cannot be read or a value is invalid. The error names file, line, key and the allowed values.
pub fn load_faults(path: &Path, model: &Model) -> Result<Schedule, InputError> {
    let file = path.display().to_string();
    let text = read(path, &file)?;
    parse_faults(&file, &text, path.parent().unwrap_or(Path::new("")), model)
}

/// Like [`load_faults`], for a schedule of a simulated run, which stores no data contents.
///
/// # Errors
/// Returns the same errors as [`load_faults`].
pub fn load_faults_of_run(path: &Path, model: &Model) -> Result<Schedule, InputError> {
    let schedule = load_faults(path, model)?;
    let file = path.display().to_string();
    let text = read(path, &file)?;
    schedule.check_without_contents().map_err(|complaint| complaint_of(&file, &text, complaint))?;
    Ok(schedule)
}

/// Reads the schedule at `path` and its map files without a model. [`Schedule::check`] verifies that a model supports
/// the schedule.
///
/// # Errors
/// If a file cannot be read or a value is invalid. The error names file, line, key and the allowed values.
pub fn read_faults(path: &Path) -> Result<Schedule, InputError> {
    let file = path.display().to_string();
    let text = read(path, &file)?;
    faults_of_text(&file, &text, path.parent().unwrap_or(Path::new("")))
}

/// Like [`read_faults`], but from the text of `file`; its map files are in `folder`.
///
/// # Errors
/// If a value is invalid. The error names file, line, key and the allowed values.
pub fn faults_of_text(file: &str, text: &str, folder: &Path) -> Result<Schedule, InputError> {
    if blkdebug::is_blkdebug(text) {
        return blkdebug::parse(file, text);
    }
    let document = Document::parse(file, text)?;
    schedule_of(&document, folder)
}

/// Reads the schedule in the text of `file` for a model; its map files are in `folder`.
///
/// # Errors
/// If a value is invalid. The error names file, line, key and the allowed values.
pub fn parse_faults(file: &str, text: &str, folder: &Path, model: &Model) -> Result<Schedule, InputError> {
    let schedule = faults_of_text(file, text, folder)?;
    schedule.check(model).map_err(|complaint| complaint_of(file, text, complaint))?;
    Ok(schedule)
}

/// Returns the error about a fault in a parsed schedule, with its line.
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
            // An unreadable map file is reported as an error of the schedule.
            None => document.error(&format!("fault[{index}].map"), format!("{}: {}", error.file, error.message)),
        })?;
    }
    Ok(schedule)
}

/// Reads the map file of a fault, if it names one, from `folder`.
///
/// # Errors
/// If the map file is invalid or cannot be read. The error has no line if the file cannot be read.
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
