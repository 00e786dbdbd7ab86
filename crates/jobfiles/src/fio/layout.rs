//! [`Layout`]: the files of a job and the part of them that is used.

use headstack_nbd::Address;
use headstack_workload::document::InputError;

use super::engine;
use super::settings::{Remarks, Settings};
use super::values::{self, Amount};
use crate::{Extent, Part};

/// Maximum number of files in a job file.
pub(super) const FILES_MAX: u64 = 65_536;

/// Maximum length of a file name, in bytes.
const NAME_BYTES_MAX: usize = 4096;

/// Files of a job and their sizes.
pub(super) struct Layout {
    names: Names,
    directories: Vec<String>,
    /// Number of files per copy.
    files: u64,
    copies: u64,
    size: Option<Amount>,
    file_size: Option<u64>,
    offset: Amount,
    increment: Amount,
}

enum Names {
    /// Names from the file, shared by all copies.
    Stated(Vec<String>),
    /// Names generated from a format for each copy and file.
    Made { format: String, job: String },
}

impl Layout {
    pub(super) fn new(
        job: &str,
        settings: &Settings,
        copies: u64,
        remarks: &mut Remarks,
    ) -> Result<Layout, InputError> {
        let stated = settings.within("nrfiles", 1, 1, FILES_MAX)?;
        let export = engine::export(job, settings)?;
        let directory = settings.text("directory").filter(|_| export.is_none());
        let names = match export.as_deref().or(settings.text("filename")) {
            // An address may contain colons.
            Some(uri) if export.is_some() => Names::Stated(vec![uri.to_owned()]),
            Some(names) if !names.is_empty() => Names::Stated(list(names)),
            // A job named after a device uses that device.
            _ if stated == 1 && job.starts_with("/dev/") => Names::Stated(vec![job.to_owned()]),
            _ => {
                let format = settings.text("filename_format").filter(|format| !format.is_empty());
                Names::Made { format: format.unwrap_or("$jobname.$jobnum.$filenum").to_owned(), job: job.to_owned() }
            }
        };
        let files = match &names {
            Names::Stated(names) => names.len() as u64,
            Names::Made { .. } => stated,
        };
        let file_size =
            settings.parsed("filesize", |value, _| values::range(value, |end| values::size(end, settings.base)))?;
        if let (Some(setting), Some((low, high))) = (settings.get("filesize"), file_size)
            && low != high
        {
            remarks.add(setting, format!("all files have the smaller size, {low} bytes"));
        }
        let layout = Layout {
            names,
            directories: directory.map(list).unwrap_or_default(),
            files,
            copies,
            size: settings.amount("size")?.filter(|size| *size != Amount::Bytes(0)),
            file_size: file_size.map(|(low, _)| low).filter(|low| *low > 0),
            offset: settings.amount("offset")?.unwrap_or(Amount::Bytes(0)),
            increment: settings.amount("offset_increment")?.unwrap_or(Amount::Bytes(0)),
        };
        layout.check(settings)?;
        layout.remark(settings, remarks)?;
        Ok(layout)
    }

    fn check(&self, settings: &Settings) -> Result<(), InputError> {
        if self.files.saturating_mul(if self.copies_differ() { self.copies } else { 1 }) > FILES_MAX {
            let message = format!("there are more than {FILES_MAX} files, the maximum");
            return Err(settings.error(&["nrfiles", "filename", "numjobs"], message));
        }
        if self.targets(0).iter().any(|name| name.len() > NAME_BYTES_MAX) {
            let message = format!("a file name is longer than {NAME_BYTES_MAX} bytes");
            return Err(settings.error(&["filename", "filename_format", "directory", "name"], message));
        }
        Ok(())
    }

    fn remark(&self, settings: &Settings, remarks: &mut Remarks) -> Result<(), InputError> {
        if let Some(setting) = settings.get("offset_align").filter(|_| matches!(self.offset, Amount::Percent(_)))
            && settings.whole("offset_align")? != Some(0)
        {
            remarks.add(setting, "an offset in percent is rounded to whole blocks of the target");
        }
        if let Some(setting) = settings.get("offset").filter(|_| self.files > 1 && self.offset != Amount::Bytes(0)) {
            remarks.add(setting, "counts from the start of all files joined together, not of each file");
        }
        Ok(())
    }

    /// Returns the number of files per copy.
    pub(super) fn files(&self) -> u64 {
        self.files
    }

    /// Returns the size of the used part in bytes if the file states it.
    pub(super) fn total_bytes(&self) -> Option<u64> {
        let of_files = self.file_size.and_then(|size| size.checked_mul(self.files));
        match self.size {
            Some(Amount::Bytes(size)) => Some(of_files.map_or(size, |of_files| size.min(of_files))),
            Some(_) => None,
            None => of_files,
        }
    }

    /// Whether copies have their own files or offsets.
    pub(super) fn copies_differ(&self) -> bool {
        let by_name = matches!(&self.names, Names::Made { format, .. }
            if format.contains("$jobnum") || self.directories.len() > 1);
        let by_place = !matches!(self.increment, Amount::Bytes(0) | Amount::Percent(0.0));
        self.copies > 1 && (by_name || by_place)
    }

    /// Returns the files of a copy by its number.
    pub(super) fn targets(&self, copy: u32) -> Vec<String> {
        match &self.names {
            // Shared files are in the first directory.
            Names::Stated(names) => names.iter().map(|name| within(self.directories.first(), name)).collect(),
            Names::Made { format, job } => {
                let directory = match self.directories.len() {
                    0 => None,
                    count => self.directories.get(copy as usize % count),
                };
                (0..self.files).map(|file| within(directory, &expanded_name(format, job, copy, file))).collect()
            }
        }
    }

    /// Returns the size of each file of the copy.
    pub(super) fn file_bytes(&self, start: Extent, targets: &[String]) -> Option<u64> {
        if targets.iter().all(|target| target.starts_with("/dev/") || Address::is_meant(target)) {
            return None;
        }
        let (Some(total), Extent::Bytes(start)) = (self.total_bytes(), start) else {
            return self.file_size;
        };
        self.file_size.or_else(|| total.div_ceil(self.files).checked_add(start))
    }

    /// Returns the part of its files that the copy uses.
    pub(super) fn part(&self, copy: u32, settings: &Settings) -> Result<Part, InputError> {
        let wrong = |message: &str| settings.error(&["offset_increment", "offset"], message);
        let copy = u64::from(copy);
        let start = match (self.offset, self.increment) {
            (Amount::Percent(offset), Amount::Percent(step)) => Extent::Percent(offset + step * copy as f64),
            (Amount::Bytes(0), Amount::Percent(step)) => Extent::Percent(step * copy as f64),
            (Amount::Percent(offset), Amount::Bytes(0)) => Extent::Percent(offset),
            (Amount::Bytes(offset), Amount::Bytes(step)) => step
                .checked_mul(copy)
                .and_then(|distance| distance.checked_add(offset))
                .map(Extent::Bytes)
                .ok_or_else(|| wrong("the last copy begins above 2^64"))?,
            _ => return Err(wrong("the offset and its increment must both be in bytes or both in percent")),
        };
        if matches!(start, Extent::Percent(percent) if percent >= 100.0) {
            return Err(wrong("the last copy begins after the end; its offset must be below 100 %"));
        }
        let length = match self.size {
            Some(Amount::Percent(percent)) => Some(Extent::Percent(percent)),
            _ => self.total_bytes().map(Extent::Bytes),
        };
        Ok(Part { start, length })
    }
}

/// Splits a list at its colons; `\:` stands for a colon in a name.
fn list(text: &str) -> Vec<String> {
    let (mut names, mut name) = (Vec::new(), String::new());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\\' if characters.next_if_eq(&':').is_some() => name.push(':'),
            ':' => names.push(std::mem::take(&mut name)),
            other => name.push(other),
        }
    }
    names.push(name);
    names.retain(|name| !name.is_empty());
    names
}

fn within(directory: Option<&String>, name: &str) -> String {
    match directory {
        Some(directory) => format!("{}/{}", directory.trim_end_matches('/'), name.trim_start_matches('/')),
        None => name.to_owned(),
    }
}

fn expanded_name(format: &str, job: &str, copy: u32, file: u64) -> String {
    format
        .replace("$jobnum", &copy.to_string())
        .replace("$filenum", &file.to_string())
        .replace("$clientuid", "localhost")
        .replace("$jobname", job)
}
