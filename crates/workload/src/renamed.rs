//! Keys of TOML files, and columns of tables, that have a new name. The old name is still read, with a note.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// A key with a new name.
struct RenamedKey {
    /// Table of the key, without the tables around it.
    table: &'static str,
    old: &'static str,
    new: &'static str,
}

impl RenamedKey {
    /// Returns the former `outstanding` of a table of a workload or scenario.
    const fn queue_depth(table: &'static str) -> RenamedKey {
        RenamedKey { table, old: "outstanding", new: "queue_depth" }
    }
}

const RENAMED_KEYS: &[RenamedKey] = &[
    RenamedKey { table: "groups", old: "stripe_unit", new: "chunk_size" },
    RenamedKey::queue_depth("closed"),
    RenamedKey::queue_depth("phases"),
    RenamedKey::queue_depth("prefill"),
    RenamedKey::queue_depth("sequential"),
    RenamedKey::queue_depth("video"),
];

/// Old and new names of columns of tables, and of the keys that declare columns.
const RENAMED_COLUMNS: &[(&str, &str)] = &[
    ("mean_response_ns", "mean_latency_ns"),
    ("busy", "utilization"),
    ("busy_percent", "utilization_percent"),
    ("utilisation_percent", "utilization_percent"),
];

/// Table of an array or drive file whose keys are themselves key paths.
const SOURCES: &str = "sources";

/// Notes on old names that were read.
struct Notes {
    /// Files, each with an old name that it contains, since the last call of [`take_notes_of_renamed_keys`].
    seen: BTreeSet<(String, &'static str)>,
    /// Notes that were not returned yet.
    pending: Vec<String>,
}

static NOTES: Mutex<Notes> = Mutex::new(Notes { seen: BTreeSet::new(), pending: Vec::new() });

/// Returns the notes on old names that were read since the last call: one for each file and name.
pub fn take_notes_of_renamed_keys() -> Vec<String> {
    let mut notes = NOTES.lock().unwrap_or_else(PoisonError::into_inner);
    notes.seen.clear();
    std::mem::take(&mut notes.pending)
}

/// Returns the current form of a key path such as `groups[0].chunk_size`, and adds a note if a name in it is old.
pub fn current_key(path: &str) -> String {
    let Some(renamed) = find(path) else { return path.to_owned() };
    add_note("", None, renamed.old, renamed.new);
    with_new_name(path, renamed)
}

/// Returns the current name of a column of a table, and adds a note if the name is old.
pub fn current_column(name: &str) -> &str {
    let Some((old, new)) = RENAMED_COLUMNS.iter().find(|(old, _)| *old == name) else { return name };
    add_note("", None, old, new);
    new
}

/// Returns the renamed key at the end of a path; `None` if its name is current.
fn find(path: &str) -> Option<&'static RenamedKey> {
    let (parents, name) = path.rsplit_once('.')?;
    let table = parents.rsplit('.').next()?.split('[').next()?;
    RENAMED_KEYS.iter().find(|renamed| renamed.old == name && renamed.table == table)
}

/// Returns the new text of a key of a file, as written there (with its quotation marks), and adds a note; `None` if the
/// key's name is current.
pub(crate) fn current_text(path: &str, written: &str, file: &str, line: usize) -> Option<String> {
    let own = path.strip_prefix(SOURCES).and_then(|rest| rest.strip_prefix('.'));
    let renamed = find(own.unwrap_or(path))?;
    add_note(file, Some(line), renamed.old, renamed.new);
    Some(with_new_name(written, renamed))
}

/// Replaces the last occurrence of the old name.
fn with_new_name(text: &str, renamed: &RenamedKey) -> String {
    let (before, after) = text.rsplit_once(renamed.old).unwrap_or((text, ""));
    format!("{before}{}{after}", renamed.new)
}

fn add_note(file: &str, line: Option<usize>, old: &'static str, new: &str) {
    let mut notes = NOTES.lock().unwrap_or_else(PoisonError::into_inner);
    if notes.seen.insert((file.to_owned(), old)) {
        let place = line.filter(|_| !file.is_empty()).map_or_else(String::new, |line| format!("{file}:{line}: "));
        notes.pending.push(format!("{place}`{old}` is now `{new}`"));
    }
}
