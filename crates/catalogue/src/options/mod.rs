//! Options of runs as users write them ([`Draft`]), applied to descriptions. They come from the command line, the
//! Python package, or the points of a sweep.

mod load;
mod run;
mod state;
mod system;

use headstack_sim::faults::Schedule;
use headstack_sim::ssd::description::FlashState;
use headstack_sim::{Demand, SystemDescription};
use headstack_workload::{InputError, Scenario, Span, Workload, quantity};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub use load::{scenario_with_clients, uniform_workload};

use crate::key_error;

/// The options in the order in which they are applied, since some depend on others.
pub const OPTIONS: [&str; 33] = [
    "size",
    "read",
    "random",
    "streams",
    "range",
    "drives",
    "drive",
    "level",
    "usable",
    "lun",
    "fail",
    "policy",
    "queue_depth",
    "reordering",
    "ageing",
    "host",
    "host_tags",
    "elevator",
    "write_cache",
    "read_ahead",
    "state",
    "depth",
    "rate",
    "arrivals",
    "think",
    "requests",
    "time",
    "confidence",
    "warm_up",
    "interval",
    "preload",
    "seed",
    "faults",
];

/// Minimum interval, in ns. Each interval stores its own histogram.
const INTERVAL_MIN_NS: u64 = 100_000_000;

/// A run that is being specified. Fields that are unknown, or irrelevant to the caller, are `None`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Draft {
    /// Name of the system in results.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub system_name: String,
    /// The simulated system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<SystemDescription>,
    /// The file or device to measure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<TargetSize>,
    /// Load that is a single access specification.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<Workload>,
    /// Load that is a scenario.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scenario: Option<Scenario>,
    /// Requested number of clients of the scenario, which result tables show as depth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<u64>,
    /// Start and length in bytes of the part that is used; `None` for the whole system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span: Option<(u64, u64)>,
    /// Seed of all random choices.
    pub seed: u64,
    /// Interval for which results are also kept, in ns; `None` for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_ns: Option<u64>,
    /// Number of past requests that warm the caches.
    #[serde(default, skip_serializing_if = "is_none")]
    pub preload: u64,
    /// Faults to inject and their times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub faults: Option<Schedule>,
}

// serde passes a reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_none(requests: &u64) -> bool {
    *requests == 0
}

/// Size of the file or device to measure.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TargetSize {
    /// Capacity in bytes.
    pub capacity_bytes: u64,
    /// Block size in bytes; every request is a multiple of it.
    pub block_bytes: u32,
}

impl Draft {
    /// Returns a run of a system without any options.
    pub fn new(system_name: String, system: SystemDescription, demand: Demand) -> Draft {
        let (workload, scenario) = match demand {
            Demand::Workload(workload) => (Some(workload), None),
            Demand::Scenario(scenario) => (None, Some(scenario)),
        };
        Draft { workload, scenario, ..Draft::for_system(system_name, system) }
    }

    /// Returns a run of a system without a load, for the replay of a trace.
    pub fn for_system(system_name: String, system: SystemDescription) -> Draft {
        Draft {
            system_name,
            system: Some(system),
            target: None,
            workload: None,
            scenario: None,
            clients: None,
            span: None,
            seed: 1,
            interval_ns: None,
            preload: 0,
            faults: None,
        }
    }

    /// Applies options, which may be in any order.
    ///
    /// # Errors
    /// If a value is invalid or the run does not have the option. The error names the option.
    pub fn apply(&mut self, chosen: &[(String, String)]) -> Result<(), InputError> {
        let mut ordered: Vec<_> =
            chosen.iter().map(|(option, text)| Ok((place_of(option)?, text))).collect::<Result<_, _>>()?;
        ordered.sort_by_key(|&(place, _)| place);
        ordered.into_iter().try_for_each(|(place, text)| self.set(OPTIONS[place], text))
    }

    fn set(&mut self, option: &str, text: &str) -> Result<(), InputError> {
        match option {
            // These options create the system or the workload before others are applied.
            "size" | "read" | "random" | "drives" | "drive" | "level" | "usable" => {}
            "range" => self.set_range(text)?,
            "lun" => self.set_lun(text)?,
            "fail" => self.set_failures(text)?,
            "policy" => {
                let policy = choice(option, text, &system::POLICIES)?;
                self.each_disk(option, |disk| disk.queue.policy = policy)?;
            }
            "queue_depth" => {
                let depth = whole_u32(option, text)?;
                self.each_disk(option, |disk| disk.queue.depth = depth)?;
            }
            "reordering" => {
                let strength = number(option, text, "a number; must be 0 (FCFS) to 1 (the ideal policy)")?;
                self.each_disk(option, |disk| disk.queue.reordering_strength = strength)?;
            }
            "ageing" => {
                let ageing_ns = if text == "off" { None } else { Some(positive_ns(option, text, "a time or off")?) };
                self.each_disk(option, |disk| disk.queue.ageing_ns = ageing_ns)?;
            }
            "host" => {
                let host = choice(option, text, &system::HOSTS)?;
                self.set_host(host)?;
            }
            "host_tags" => {
                let tags = whole_u32(option, text)?;
                self.each_disk(option, |disk| disk.interface.host_tags = tags)?;
            }
            "elevator" => {
                let policy = choice(option, text, &system::POLICIES)?;
                self.each_disk(option, |disk| disk.interface.host_elevator = policy)?;
            }
            "write_cache" => {
                let kind = choice(option, text, &system::WRITE_CACHES)?;
                self.set_write_cache(kind)?;
            }
            "read_ahead" => {
                let kind = choice(option, text, &system::READ_AHEADS)?;
                self.each_disk(option, |disk| disk.buffer.read_ahead = kind)?;
            }
            "state" => {
                // `yes` and `no` are the values of the former option `preconditioned`.
                let text = match text {
                    "yes" => "steady",
                    "no" => "filled",
                    other => other,
                };
                let state = match text.strip_prefix("steady:") {
                    Some(addresses) => FlashState::Skewed(self.skewed_writes(addresses)?),
                    None => state::unskewed(text)?,
                };
                self.set_state(&state)?;
            }
            "streams" => self.workload(option)?.streams = whole_u32(option, text)?,
            "depth" => self.set_depth(text)?,
            "rate" => self.set_rate(text)?,
            "arrivals" => self.set_arrivals(text)?,
            "think" => self.set_think(text)?,
            "requests" => self.set_requests(whole(option, text)?)?,
            "time" => self.set_time(positive_ns(option, text, "0s or more")?)?,
            "confidence" => self.set_confidence(text)?,
            "warm_up" => self.set_warm_up(text)?,
            "interval" => self.interval_ns = Some(interval_ns(text)?),
            "preload" => self.preload = whole(option, text)?,
            "seed" => self.seed = whole(option, text)?,
            "faults" => self.set_faults(text)?,
            other => unreachable!("every option of OPTIONS is matched: {other}"),
        }
        Ok(())
    }

    /// Returns the part of the system that is used.
    pub fn used(&self) -> Option<Span> {
        self.span.map(|(start_bytes, length_bytes)| Span { start_bytes, length_bytes })
    }
}

fn place_of(option: &str) -> Result<usize, InputError> {
    let unknown = || key_error(option, "unknown option".to_owned());
    let option = if option == "preconditioned" { "state" } else { option };
    OPTIONS.iter().position(|&known| known == option).ok_or_else(unknown)
}

/// Parses the interval for which results are kept, in ns.
///
/// # Errors
/// If the text is not a duration, or the interval is too short.
pub fn interval_ns(text: &str) -> Result<u64, InputError> {
    match duration_ns("interval", text)?.try_into() {
        Ok(length_ns) if length_ns >= INTERVAL_MIN_NS => Ok(length_ns),
        Ok(_) | Err(_) => Err(key_error("interval", format!("{text} is too short; the minimum is 100ms"))),
    }
}

/// Parses a whole number from 0.
fn whole(option: &str, text: &str) -> Result<u64, InputError> {
    let number = text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten();
    number.ok_or_else(|| key_error(option, format!("'{text}' is not a whole number below 2^64")))
}

fn whole_u32(option: &str, text: &str) -> Result<u32, InputError> {
    let number = whole(option, text)?;
    u32::try_from(number).map_err(|_| key_error(option, format!("{number} is too large; the maximum is {}", u32::MAX)))
}

/// Parses a finite number, which may have `_` between digits. `kind` is what an invalid text is not, with the allowed
/// values.
fn number(option: &str, text: &str, kind: &str) -> Result<f64, InputError> {
    let digits = text.trim();
    let number = if digits.starts_with('_') || digits.ends_with('_') || digits.contains("__") {
        None
    } else {
        digits.replace('_', "").parse().ok().filter(|number: &f64| number.is_finite())
    };
    number.ok_or_else(|| key_error(option, format!("'{text}' is not {kind}")))
}

/// Parses a percentage, with or without the percent sign. `allowed` describes the valid values.
fn percent(option: &str, text: &str, allowed: &str) -> Result<f64, InputError> {
    number(option, text.strip_suffix('%').unwrap_or(text).trim_end(), &format!("a percentage; must be {allowed}"))
}

fn duration_ns(option: &str, text: &str) -> Result<i64, InputError> {
    quantity::parse_duration_ns(text).map_err(|error| key_error(option, error.to_string()))
}

/// Parses a duration of 0 or more, in ns. `allowed` describes the valid values.
fn positive_ns(option: &str, text: &str, allowed: &str) -> Result<u64, InputError> {
    let negative = |_| key_error(option, format!("{text} is negative; must be {allowed}"));
    duration_ns(option, text)?.try_into().map_err(negative)
}

/// Parses one of the words in `allowed`.
fn choice<T: Clone + Serialize + DeserializeOwned>(option: &str, text: &str, allowed: &[T]) -> Result<T, InputError> {
    let names: Vec<String> = allowed.iter().map(name_of).collect();
    match names.iter().position(|name| name == text) {
        Some(at) => Ok(allowed[at].clone()),
        None => Err(key_error(option, format!("'{text}' is unknown; allowed: {}", names.join(", ")))),
    }
}

fn name_of<T: Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(name)) => name,
        other => unreachable!("every allowed value serializes as a name: {other:?}"),
    }
}

#[cfg(test)]
mod tests;
