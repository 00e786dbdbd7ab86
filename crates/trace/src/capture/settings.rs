//! [`Settings`]: temporary changes to control files.

use std::path::PathBuf;

use super::claim::{self, Claim};
use super::control::{read, write};
use crate::error::TraceError;

/// Changed control files, restored on drop. The previous values are also stored in a file meanwhile, for cleanup after
/// the process is killed.
#[derive(Debug)]
pub(super) struct Settings {
    before: Vec<(PathBuf, String)>,
    _claim: Claim,
}

impl Settings {
    /// Writes the values of `changes` in order; they are restored in reverse order.
    ///
    /// # Errors
    /// Returns an error if another headstack process has the files, or if a file is missing or refuses its value. Files
    /// already changed are then restored.
    pub(super) fn change(changes: &[(PathBuf, &str)]) -> Result<Settings, TraceError> {
        let mut before = Vec::with_capacity(changes.len());
        for (path, _) in changes {
            before.push((path.clone(), setting(&read(path)?).to_owned()));
        }
        let claim = Claim::take(&before)?;
        let settings = Settings { before, _claim: claim };
        for (path, value) in changes {
            write(path, value)?;
        }
        Ok(settings)
    }
}

impl Drop for Settings {
    fn drop(&mut self) {
        claim::set_back(&self.before);
    }
}

/// Extracts the value from a control file's text: `local` from `[local] global`, 1408 from `7 (expanded: 1408)`. The
/// kernel shows the smaller number until the buffer is first used, and uses the larger one from then on.
fn setting(text: &str) -> &str {
    let between = |from, to| Some(text.split_once(from)?.1.split_once(to)?.0);
    between("[", "]").or_else(|| between("(expanded: ", ")")).unwrap_or(text).trim()
}

#[cfg(test)]
mod tests {
    use super::setting;

    #[test]
    fn settings_are_distinguished_from_other_shown_text() {
        assert_eq!(setting("local global [mono] boot\n"), "mono");
        assert_eq!(setting("7 (expanded: 1408)\n"), "1408");
        assert_eq!(setting("1410\n"), "1410");
        assert_eq!(setting("nop\n"), "nop");
    }
}
