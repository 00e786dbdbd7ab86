//! Options of the load on a system.

use headstack_workload::scenario::ScenarioLength;
use headstack_workload::{
    ArrivalProcess, Arrivals, InputError, RunLength, Scenario, Think, WarmUp, Workload, quantity,
};
use serde_json::json;

use super::{Draft, number, percent, positive_ns, whole};
use crate::key_error;

/// Maximum number of requests of a run that ends at a confidence.
const REQUESTS_MAX: u64 = 10_000_000;

/// Returns a workload with requests of one size at multiples of the size, as in fio. `read` and `random` are
/// percentages.
///
/// # Errors
/// If a text is not a size or a percentage. The error names the option.
pub fn uniform_workload(size: &str, read: &str, random: &str) -> Result<Workload, InputError> {
    quantity::parse_bytes(size).map_err(|error| key_error("size", error.to_string()))?;
    let plain = |text: &str| text.trim_end_matches('%').to_owned();
    let line = json!({
        "size": size,
        "align": size,
        "read_percent": share_percent("read", read)?,
        "random_percent": share_percent("random", random)?,
    });
    let name = format!("{size}, {} % read, {} % random", plain(read), plain(random));
    let workload: Workload = serde_json::from_value(json!({ "name": name, "lines": [line] }))
        .map_err(|error| crate::whole("", &error.to_string()))?;
    workload.validate().map_err(|error| key_error(&error.key, error.message))?;
    Ok(workload)
}

/// Parses a percentage. A number between 0 and 1 is ambiguous, because it may be meant as a fraction.
fn share_percent(option: &str, text: &str) -> Result<f64, InputError> {
    let value = percent(option, text, "0 to 100")?;
    if 0.0 < value && value < 1.0 && !text.ends_with('%') {
        let (share, small) = (six_digits(value * 100.0), six_digits(value));
        let message = format!("does {text} mean {share} % or {small} %? write {share} or {small}%");
        return Err(key_error(option, message));
    }
    Ok(value)
}

/// Rounds a number to six significant digits.
fn six_digits(value: f64) -> f64 {
    format!("{value:.5e}").parse().expect("a formatted number parses")
}

/// Returns a scenario with `clients` clients in every stream that has a client count.
///
/// # Errors
/// If no stream has a client count, or the number is not supported.
pub fn scenario_with_clients(scenario: &Scenario, clients: u64) -> Result<Scenario, String> {
    if scenario.with_clients(1) == scenario.with_clients(2) {
        return Err(format!("no stream of {} has a number of clients to set", scenario.name));
    }
    // Numbers that do not fit are rejected with other values out of range.
    let scenario = scenario.with_clients(u32::try_from(clients).unwrap_or(u32::MAX));
    scenario.validate().map_err(|error| error.to_string())?;
    Ok(scenario)
}

impl Draft {
    pub(super) fn workload(&mut self, option: &str) -> Result<&mut Workload, InputError> {
        let missing = || key_error(option, "only workloads have this option".to_owned());
        self.workload.as_mut().ok_or_else(missing)
    }

    pub(super) fn set_depth(&mut self, text: &str) -> Result<(), InputError> {
        let depth = whole("depth", text)?;
        if let Some(scenario) = &mut self.scenario {
            *scenario = scenario_with_clients(scenario, depth).map_err(|message| key_error("depth", message))?;
            self.clients = Some(depth);
            return Ok(());
        }
        let arrivals = &mut self.workload("depth")?.arrivals;
        let think = match *arrivals {
            Arrivals::Closed { think, .. } => think,
            Arrivals::Open { .. } => Think::None,
        };
        // Numbers that do not fit are rejected with other values out of range.
        *arrivals = Arrivals::Closed { queue_depth: u32::try_from(depth).unwrap_or(u32::MAX), think };
        Ok(())
    }

    pub(super) fn set_rate(&mut self, text: &str) -> Result<(), InputError> {
        let workload = self.workload("rate")?;
        let process = match workload.arrivals {
            Arrivals::Open { process, .. } => process,
            Arrivals::Closed { .. } => ArrivalProcess::Poisson,
        };
        // A rate in MB/s is converted to requests per second; 4000/s is a number of requests.
        let text = text.trim();
        let amount = text.strip_suffix("/s").unwrap_or(text);
        let rate_per_s = if amount != text && !amount.ends_with(|last: char| last.is_ascii_digit()) {
            bytes_per_s(text)? / mean_bytes(workload)
        } else {
            let message = || format!("'{text}' is not a rate; write 4000/s, 200MB/s or 2050Mb/s");
            number("rate", amount, "a rate").map_err(|_| key_error("rate", message()))?
        };
        workload.arrivals = Arrivals::Open { rate_per_s, process };
        Ok(())
    }

    pub(super) fn set_arrivals(&mut self, text: &str) -> Result<(), InputError> {
        let Arrivals::Open { process, .. } = &mut self.workload("arrivals")?.arrivals else {
            return Err(key_error("arrivals", "a closed loop has no arrival process; add --rate".to_owned()));
        };
        let (kind, lengths) = text.split_once(':').unwrap_or((text, ""));
        *process = match kind {
            "fixed" => ArrivalProcess::Fixed,
            "poisson" => ArrivalProcess::Poisson,
            "bursty" => {
                let lengths = if lengths.is_empty() { "100ms/100ms" } else { lengths };
                let (on, off) = lengths.split_once('/').unwrap_or((lengths, ""));
                let phase_ns = |text| positive_ns("arrivals", text, "0s or more");
                ArrivalProcess::Bursty {
                    on_ns: phase_ns(on)?,
                    off_ns: phase_ns(if off.is_empty() { on } else { off })?,
                }
            }
            other => {
                let message = format!("'{other}' is unknown; allowed: fixed, poisson, bursty");
                return Err(key_error("arrivals", message));
            }
        };
        Ok(())
    }

    pub(super) fn set_think(&mut self, text: &str) -> Result<(), InputError> {
        let Arrivals::Closed { think, .. } = &mut self.workload("think")?.arrivals else {
            return Err(key_error("think", "an open loop has no think time; add --depth for a closed loop".to_owned()));
        };
        let time_ns = |text| positive_ns("think", text, "0s or more");
        *think = match text.split_once(':') {
            None => Think::Fixed(time_ns(text)?),
            Some(("exponential", mean)) => Think::Exponential(time_ns(mean)?),
            Some((kind, _)) => {
                return Err(key_error("think", format!("'{kind}' is unknown; allowed: exponential")));
            }
        };
        Ok(())
    }

    pub(super) fn set_requests(&mut self, requests: u64) -> Result<(), InputError> {
        match &mut self.scenario {
            Some(scenario) => scenario.run_length = ScenarioLength::Requests(requests),
            None => self.workload("requests")?.run_length = RunLength::Requests(requests),
        }
        Ok(())
    }

    pub(super) fn set_time(&mut self, time_ns: u64) -> Result<(), InputError> {
        match &mut self.scenario {
            Some(scenario) => scenario.run_length = ScenarioLength::TimeNs(time_ns),
            None => self.workload("time")?.run_length = RunLength::TimeNs(time_ns),
        }
        Ok(())
    }

    pub(super) fn set_confidence(&mut self, text: &str) -> Result<(), InputError> {
        let percent = percent("confidence", text, "above 0 and at most 100")?;
        self.workload("confidence")?.run_length = RunLength::Confidence { percent, max_requests: REQUESTS_MAX };
        Ok(())
    }

    pub(super) fn set_warm_up(&mut self, text: &str) -> Result<(), InputError> {
        let warm_up = if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            WarmUp { requests: whole("warm_up", text)?, time_ns: 0 }
        } else {
            WarmUp { requests: 0, time_ns: positive_ns("warm_up", text, "0s or more")? }
        };
        match &mut self.scenario {
            Some(scenario) => scenario.warm_up = warm_up,
            None => self.workload("warm_up")?.warm_up = warm_up,
        }
        Ok(())
    }
}

/// Parses a positive rate with its unit, in bytes per second.
fn bytes_per_s(text: &str) -> Result<f64, InputError> {
    let rate = quantity::parse_rate_bytes_per_s(text).map_err(|error| key_error("rate", error.to_string()))?;
    if rate <= 0.0 {
        return Err(key_error("rate", format!("'{text}' must be above 0")));
    }
    Ok(rate)
}

/// Returns the mean length of the workload's requests, in bytes.
fn mean_bytes(workload: &Workload) -> f64 {
    let lines = workload.specification.lines.iter();
    let sum: f64 = lines.map(|line| f64::from(line.size_bytes) * line.share_percent / 100.0).sum();
    sum.max(1.0)
}
