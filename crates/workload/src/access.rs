//! [`AccessSpecification`]: Iometer's joint distribution of size, kind and randomness.

use serde::{Deserialize, Serialize};

use crate::quantity::{bytes_u32, bytes_u32_option, duration_u64};

/// Tolerance of the sum of shares around 100 %, so that shares such as 1/3 can be written in decimals.
pub(crate) const SHARE_TOLERANCE_PERCENT: f64 = 1e-6;

/// An access specification: a mix of lines, each with its share of the requests.
#[derive(Clone, Debug, PartialEq)]
pub struct AccessSpecification {
    /// The specification's name in its source, such as "File Server".
    pub name: String,
    /// The lines; their shares sum to 100 %.
    pub lines: Vec<AccessLine>,
}

/// A line of an access specification. Percentages apply to the line's own requests, as in Iometer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccessLine {
    /// Length of the requests in bytes.
    #[serde(rename = "size", with = "bytes_u32")]
    pub size_bytes: u32,
    /// Share of all requests in percent, above 0.
    #[serde(default = "all")]
    pub share_percent: f64,
    /// Reads among the line's requests, in percent; the rest are writes and trims.
    pub read_percent: f64,
    /// Requests with a random address, in percent; the rest continue sequentially.
    pub random_percent: f64,
    /// Trims among the line's requests that are not reads, in percent.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub trim_percent: f64,
    /// Pause before each burst of the line in a closed loop, in nanoseconds.
    #[serde(default, rename = "delay", with = "duration_u64")]
    pub delay_ns: u64,
    /// Consecutive requests in a burst of the line, 1 or more.
    #[serde(default = "default_one")]
    pub burst: u32,
    /// Offsets are multiples of this; if `None`, of the sector.
    #[serde(default, rename = "align", with = "bytes_u32_option", skip_serializing_if = "Option::is_none")]
    pub align_bytes: Option<u32>,
}

fn all() -> f64 {
    100.0
}

fn default_one() -> u32 {
    1
}

// serde passes a reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(percent: &f64) -> bool {
    *percent == 0.0
}

/// An invalid key below the one that is being checked, and the allowed values.
pub(crate) type Complaint = (String, String);

pub(crate) fn check_percent(key: &str, percent: f64) -> Result<(), Complaint> {
    if (0.0..=100.0).contains(&percent) {
        return Ok(());
    }
    let message = format!("{percent} is not a percentage; 0 to 100 is allowed");
    Err((key.to_owned(), message))
}

pub(crate) fn check_share(key: &str, percent: f64) -> Result<(), Complaint> {
    if percent > 0.0 && percent <= 100.0 {
        return Ok(());
    }
    let message = format!("{percent} is not a share; above 0 and up to 100 (percent) is allowed");
    Err((key.to_owned(), message))
}

pub(crate) fn check_sum(key: &str, shares: impl Iterator<Item = f64>) -> Result<(), Complaint> {
    let sum: f64 = shares.sum();
    if (sum - 100.0).abs() <= SHARE_TOLERANCE_PERCENT {
        return Ok(());
    }
    let message = format!("share_percent sums to {sum}; it must sum to 100");
    Err((key.to_owned(), message))
}

impl AccessSpecification {
    /// Checks everything that does not depend on the system.
    pub(crate) fn validate(&self) -> Result<(), Complaint> {
        if self.lines.is_empty() {
            let message = "no lines; at least one is required".to_owned();
            return Err(("lines".to_owned(), message));
        }
        for (index, line) in self.lines.iter().enumerate() {
            line.validate().map_err(|(key, message)| (format!("lines[{index}].{key}"), message))?;
        }
        check_sum("lines", self.lines.iter().map(|line| line.share_percent))
    }
}

impl AccessLine {
    fn validate(&self) -> Result<(), Complaint> {
        check_share("share_percent", self.share_percent)?;
        check_percent("read_percent", self.read_percent)?;
        check_percent("random_percent", self.random_percent)?;
        check_percent("trim_percent", self.trim_percent)?;
        let zero = |key: &str, allowed: &str| {
            let message = format!("0 is not allowed; {allowed}");
            Err((key.to_owned(), message))
        };
        if self.size_bytes == 0 {
            return zero("size", "a request has at least one sector");
        }
        if self.burst == 0 {
            return zero("burst", "a burst has at least one request");
        }
        if self.align_bytes == Some(0) {
            return zero("align", "omit the key to align to the sector");
        }
        Ok(())
    }
}
