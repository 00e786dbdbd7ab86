//! Detects the table of a file, and loads declarations from files.

#[cfg(feature = "files")]
use std::path::{Path, PathBuf};
#[cfg(feature = "files")]
use std::{fs, io};

use rustc_hash::FxHashSet;

use super::super::first_lines::{first_lines, most_lines};
use super::{CsvColumns, Layout};
#[cfg(feature = "files")]
use crate::error::TraceError;
use crate::input::Head;
#[cfg(feature = "files")]
use crate::input::Input;
use crate::text::whole;

/// Number of lines needed to detect a table without times, which has few characteristics.
const UNTIMED_LINES_MIN: usize = 3;

impl CsvColumns {
    /// Loads the declaration in a file, or from a folder the one that fits the trace `of`.
    ///
    /// # Errors
    /// When a file cannot be read or declares no table; when none of a folder fits, or more than one.
    #[cfg(feature = "files")]
    pub fn load(path: &Path, of: &Path) -> Result<CsvColumns, TraceError> {
        let name = path.display().to_string();
        let refused = |error: io::Error| TraceError::of_file(&name, error);
        if !path.is_dir() {
            headstack_files::note_input(path)?;
            let text = fs::read_to_string(path).map_err(refused)?;
            return CsvColumns::from_toml(&text).map_err(|why| TraceError::of_file(&name, why));
        }
        let input = Input::open(of)?;
        let mut files: Vec<PathBuf> = Vec::new();
        for entry in fs::read_dir(path).map_err(refused)? {
            files.push(entry.map_err(refused)?.path());
        }
        files.retain(|file| file.extension().is_some_and(|extension| extension == "toml"));
        files.sort();
        let mut fitting = Vec::new();
        for file in files {
            let columns = CsvColumns::load(&file, of)?;
            if columns.fits(input.head()) {
                fitting.push((file, columns));
            }
        }
        match fitting.pop() {
            Some((_, columns)) if fitting.is_empty() => Ok(columns),
            None => Err(TraceError::of_file(name, format!("none of its tables fits {}", of.display()))),
            Some((last, _)) => {
                let both = format!("{} and {} both fit {}", fitting[0].0.display(), last.display(), of.display());
                Err(TraceError::of_file(name, format!("{both}; name one of them")))
            }
        }
    }

    /// Whether the head of a file fits this table: it has the required header, or most of its lines are valid.
    pub fn fits(&self, head: Head<'_>) -> bool {
        let Ok(layout) = Layout::from_head(head, self, None) else { return false };
        if layout.header.is_some() {
            return true;
        }
        let is_good =
            |line: &[u8]| layout.is_header(line) || layout.slots(line).is_ok_and(|slots| layout.record(&slots).is_ok());
        if !layout.is_untimed() {
            return most_lines(head, is_good);
        }
        // With so few characteristics, all lines must fit. Keys that never recur are more likely a word list, and if
        // all are numbers they are block numbers.
        let mut seen = FxHashSet::default();
        let mut recurs = || !first_lines(head).all(|line| seen.insert(line.trim_ascii()));
        let are_numbers = || first_lines(head).all(|line| whole(line.trim_ascii()).is_some());
        let enough = first_lines(head).nth(UNTIMED_LINES_MIN - 1).is_some();
        enough && first_lines(head).all(is_good) && (self.key.is_none() || recurs() && !are_numbers())
    }
}
