//! [`Direction`], the option `rw`: read, write or trim, random or sequential.

use headstack_workload::InputError;

use super::settings::Settings;
use super::values;

/// Index of reads in a triple of reads, writes and trims.
pub(super) const READ: usize = 0;
pub(super) const WRITE: usize = 1;
pub(super) const TRIM: usize = 2;

/// Parsed value of `rw`.
pub(super) struct Direction {
    pub(super) is_random: bool,
    /// Shares of reads, writes and trims, in percent.
    pub(super) shares: [f64; 3],
    /// Text after the colon of `rw`.
    pub(super) postfix: Option<String>,
    pub(super) is_mixed: bool,
    /// Whether each offset is trimmed and then written.
    pub(super) trims_first: bool,
}

impl Direction {
    pub(super) fn new(settings: &Settings) -> Result<Direction, InputError> {
        let value = settings.text("rw").unwrap_or("read");
        let (name, postfix) = value.split_once(':').unwrap_or((value, ""));
        let name = name.trim();
        let read = read_percent(settings)?;
        let shares = match name.strip_prefix("rand").unwrap_or(name) {
            "write" => [0.0, 100.0, 0.0],
            "trim" => [0.0, 0.0, 100.0],
            "rw" | "readwrite" => [read, 100.0 - read, 0.0],
            // The address sequence adds a write after each trim.
            "trimwrite" => [0.0, 0.0, 100.0],
            _ => [100.0, 0.0, 0.0],
        };
        Ok(Direction {
            is_random: name.starts_with("rand"),
            is_mixed: shares.iter().filter(|share| **share > 0.0).count() > 1,
            shares,
            trims_first: name.ends_with("trimwrite"),
            postfix: (!postfix.is_empty()).then(|| postfix.to_owned()),
        })
    }

    pub(super) fn kinds(&self) -> impl Iterator<Item = usize> {
        [READ, WRITE, TRIM].into_iter().filter(|kind| self.shares[*kind] > 0.0)
    }
}

fn read_percent(settings: &Settings) -> Result<f64, InputError> {
    let Some(setting) = settings.last_of(&["rwmixread", "rwmixwrite"]) else {
        return Ok(50.0);
    };
    let percent = values::size(setting.value.trim(), settings.base).map_err(|message| setting.error(message))?;
    Ok(if setting.option.name == "rwmixread" { percent as f64 } else { 100.0 - percent as f64 })
}
