//! The rows: printed as they are measured, written as JSON after each group.

use std::any::Any;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::bare::Probe;
use crate::history::{self, Run};
use crate::size::Size;

/// What a figure is to reach.
#[derive(Clone, Copy, Debug)]
pub enum Bar {
    /// At least this.
    AtLeast(f64),
    /// At most this.
    AtMost(f64),
}

/// What a figure is held against.
#[derive(Clone, Debug)]
pub struct Peer {
    /// What it is, and whether it was measured here or is quoted.
    pub name: String,
    /// Its figure, in the unit of the row.
    pub value: f64,
}

/// One figure.
#[derive(Clone, Debug)]
pub struct Figure {
    /// What is measured.
    pub name: String,
    /// The median round, or the only one.
    pub value: f64,
    /// The best round, where there were several.
    pub best: Option<f64>,
    /// Unit of `value`, `best`, the peer's figure and the bar.
    pub unit: &'static str,
    /// What it is held against.
    pub peer: Option<Peer>,
    /// What it is to reach.
    pub bar: Option<Bar>,
    /// Identifies what was computed: a figure counts as faster only while this stays the same.
    pub answer: Option<String>,
}

/// Why a row has no figure.
#[derive(Clone, Debug)]
pub enum Missing {
    /// This machine lacks something that the row needs, such as fio.
    Lacking(String),
    /// Something is broken: the run fails.
    Broken(String),
}

/// The JSON form of a figure.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    pub name: String,
    pub value: f64,
    pub best: Option<f64>,
    pub unit: String,
    pub peer: Option<String>,
    pub peer_value: Option<f64>,
    pub ratio: Option<f64>,
    pub bar: Option<f64>,
    pub bar_is: Option<String>,
    pub bar_met: Option<bool>,
    pub answer: Option<String>,
    /// Speed of the machine while the row was measured: see [`Machine::bare_loop_per_s`].
    pub bare_loop_per_s: f64,
}

/// A row without a figure.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Unmeasured {
    pub name: String,
    pub reason: String,
}

/// Where and when the figures were taken.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Machine {
    pub version: String,
    /// Commit that was checked out, with `-dirty` if the checkout had changes; nothing without git.
    pub commit: Option<String>,
    /// Profile of the build.
    pub profile: String,
    pub measured_unix_s: u64,
    pub cpu: String,
    pub cores: usize,
    /// Of 1, 5 and 15 minutes.
    pub load_average_before: String,
    pub load_average_after: Option<String>,
    /// The machine's own speed: requests a second of the bare loop at depth 16, median of all probes of the run.
    pub bare_loop_per_s: f64,
    /// Half the distance between the 10th and the 90th percentile of the probes, in percent of their median.
    pub bare_loop_spread_percent: f64,
}

/// The table so far.
#[derive(Serialize)]
pub struct Report {
    machine: Machine,
    rows: Vec<Row>,
    skipped: Vec<Unmeasured>,
    failed: Vec<Unmeasured>,
    #[serde(skip)]
    size: Size,
    /// The groups that are measured: `all`, `long`, or for example `live`.
    #[serde(skip)]
    part: String,
    #[serde(skip)]
    probe: Probe,
    #[serde(skip)]
    probes_per_s: Vec<f64>,
}

impl Report {
    /// Prints the machine and the head of the table.
    pub fn begin(size: Size, part: &str) -> Report {
        let machine = Machine {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: commit(),
            profile: if cfg!(debug_assertions) { "dev" } else { "release" }.to_owned(),
            measured_unix_s: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
            cpu: first_value("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown".to_owned()),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            load_average_before: load_average(),
            load_average_after: None,
            bare_loop_per_s: 0.0,
            bare_loop_spread_percent: 0.0,
        };
        let (rows, skipped, failed) = (Vec::new(), Vec::new(), Vec::new());
        let (probe, part) = (Probe::new(size), part.to_owned());
        let mut report = Report { machine, rows, skipped, failed, size, part, probe, probes_per_s: Vec::new() };
        let bare_loop_per_s = report.probe_machine();
        let machine = &report.machine;
        println!(
            "headstack {}; {} cores of {}; load average {}; bare loop {} requests/s\n",
            machine.version,
            machine.cores,
            machine.cpu,
            machine.load_average_before,
            figure(bare_loop_per_s)
        );
        println!(
            "{:<53} {:>11} {:>11} {:<11} {:<24} {:>11} {:>6}  {:<20} answer",
            "figure", "median", "best", "unit", "peer", "its figure", "ratio", "bar"
        );
        report
    }

    /// How much work a row does.
    pub fn size(&self) -> Size {
        self.size
    }

    /// Measures the machine's own speed, in requests a second of the bare loop.
    fn probe_machine(&mut self) -> f64 {
        let per_s = self.probe.per_s();
        self.probes_per_s.push(per_s);
        let sorted = sorted(&self.probes_per_s);
        let at = |share: f64| sorted[(share * (sorted.len() - 1) as f64).round() as usize];
        self.machine.bare_loop_per_s = at(0.5);
        self.machine.bare_loop_spread_percent = 100.0 * (at(0.9) - at(0.1)) / 2.0 / at(0.5);
        per_s
    }

    /// Measures the rows of a group, and the machine's own speed before and after it. Writes all rows so far.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn group(&mut self, name: &str, measure: fn(&mut Report)) -> io::Result<()> {
        let before_per_s = self.probes_per_s[self.probes_per_s.len() - 1];
        let first = self.rows.len();
        self.attempt(name, measure);
        let per_s = f64::midpoint(before_per_s, self.probe_machine());
        self.rows[first..].iter_mut().for_each(|row| row.bare_loop_per_s = per_s);
        self.write()
    }

    /// Runs `measure`; a panic becomes a failed row, and other rows are still measured.
    pub fn attempt(&mut self, name: &str, measure: impl FnOnce(&mut Report)) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| measure(self))) {
            self.fail(name, format!("panicked: {}", message(&*panic)));
        }
    }

    /// Prints a figure and keeps it.
    pub fn add(&mut self, figure: Figure) {
        let bar = figure.bar.filter(|_| self.size != Size::Smoke);
        let (bar, bar_is, bar_met) = match bar {
            None => (None, None, None),
            Some(Bar::AtLeast(least)) => (Some(least), Some("at least"), Some(figure.value >= least)),
            Some(Bar::AtMost(most)) => (Some(most), Some("at most"), Some(figure.value <= most)),
        };
        let row = Row {
            ratio: figure.peer.as_ref().map(|peer| figure.value / peer.value),
            peer_value: figure.peer.as_ref().map(|peer| peer.value),
            peer: figure.peer.map(|peer| peer.name),
            name: figure.name,
            value: figure.value,
            best: figure.best,
            unit: figure.unit.to_owned(),
            bar,
            bar_is: bar_is.map(str::to_owned),
            bar_met,
            answer: figure.answer,
            bare_loop_per_s: 0.0,
        };
        row.print();
        self.rows.push(row);
    }

    /// Prints and keeps why a row has no figure.
    pub fn miss(&mut self, name: &str, missing: Missing) {
        match missing {
            Missing::Lacking(reason) => {
                println!("{name:<53} skipped: {reason}");
                self.skipped.push(Unmeasured { name: name.to_owned(), reason });
            }
            Missing::Broken(reason) => self.fail(name, reason),
        }
    }

    fn fail(&mut self, name: &str, reason: String) {
        println!("{name:<53} FAILED: {reason}");
        self.failed.push(Unmeasured { name: name.to_owned(), reason });
    }

    /// Writes all rows so far.
    fn write(&self) -> io::Result<()> {
        let path = repository().join(self.file_name());
        std::fs::create_dir_all(path.parent().expect("the path has a folder"))?;
        std::fs::write(&path, serde_json::to_string_pretty(self)? + "\n")
    }

    fn file_name(&self) -> &'static str {
        if self.size == Size::Smoke { "target/bench-smoke.json" } else { "target/bench.json" }
    }

    /// Writes the rows, appends a full run to the history, and prints the bars that are met, what changed since the last
    /// run and what failed. Returns whether every row was measured or skipped.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn finish(mut self) -> io::Result<bool> {
        self.machine.load_average_after = Some(load_average());
        self.write()?;
        println!(
            "\nload average {}; bare loop {} requests/s (spread {} %); rows in {}",
            load_average(),
            figure(self.machine.bare_loop_per_s),
            figure(self.machine.bare_loop_spread_percent),
            self.file_name()
        );
        if self.size != Size::Smoke {
            let judged = self.rows.iter().filter_map(|row| row.bar_met);
            let (met, bars) = (judged.clone().filter(|met| *met).count(), judged.count());
            println!("{met} of {bars} bars met");
            let run = Run { part: self.part, machine: self.machine, rows: self.rows, failed: self.failed.clone() };
            let path = history::path();
            history::print_changes(&path, &run);
            history::append(&path, &run)?;
            println!("run appended to {}", path.display());
        }
        for unmeasured in &self.failed {
            println!("FAILED: {}: {}", unmeasured.name, unmeasured.reason);
        }
        Ok(self.failed.is_empty())
    }
}

/// Text of a panic.
fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values
}

/// Short hash of the commit that is checked out.
fn commit() -> Option<String> {
    let arguments = ["describe", "--always", "--dirty", "--exclude=*", "--abbrev=12"];
    let output = Command::new("git").args(arguments).current_dir(repository()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}

impl Row {
    fn print(&self) {
        let bar = match (self.bar, self.bar_is.as_deref(), self.bar_met) {
            (Some(bar), Some(is), Some(met)) => {
                format!(
                    "{} {} {}",
                    if is == "at least" { ">=" } else { "<=" },
                    figure(bar),
                    if met { "met" } else { "MISSED" }
                )
            }
            _ => String::new(),
        };
        println!(
            "{:<53} {:>11} {:>11} {:<11} {:<24} {:>11} {:>6}  {:<20} {}",
            self.name,
            figure(self.value),
            self.best.map_or(String::new(), figure),
            self.unit,
            self.peer.as_deref().unwrap_or(""),
            self.peer_value.map_or(String::new(), figure),
            self.ratio.map_or(String::new(), figure),
            bar,
            self.answer.as_deref().map_or("", shortened),
        );
        // A row takes seconds: whoever watches a pipe sees each one when it is there.
        let _ = io::stdout().flush();
    }
}

/// The first 12 characters of an answer: enough to see whether it is the same.
fn shortened(answer: &str) -> &str {
    answer.get(..12).unwrap_or(answer)
}

/// The repository that this was built from.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate lies in the repository").to_owned()
}

/// Where real traces and parameters lie that do not ship with the project, if they are there.
pub fn shared() -> PathBuf {
    std::env::var_os("HEADSTACK_SHARED").map_or_else(|| repository().join("../shared"), PathBuf::from)
}

/// Load averages of 1, 5 and 15 minutes.
fn load_average() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let averages: Vec<&str> = text.split_whitespace().take(3).collect();
    if averages.is_empty() { "unknown".to_owned() } else { averages.join(" ") }
}

/// The first `key : value` of a file in /proc.
pub fn first_value(path: &str, key: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let (_, value) = text.lines().filter_map(|line| line.split_once(':')).find(|(name, _)| name.trim() == key)?;
    Some(value.trim().to_owned())
}

/// Whole and in groups of three from 1,000 on, else with three significant digits.
pub fn figure(value: f64) -> String {
    if value.abs() < 1000.0 {
        let decimals = if value.abs() >= 100.0 {
            0
        } else if value.abs() >= 10.0 {
            1
        } else {
            2
        };
        return format!("{value:.decimals$}");
    }
    let digits = format!("{:.0}", value.abs());
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    if value < 0.0 { format!("-{grouped}") } else { grouped }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_any_length_are_shortened() {
        for (answer, shown) in [("", ""), ("1000000", "1000000"), ("0123456789abcdef", "0123456789ab")] {
            assert_eq!(shortened(answer), shown);
        }
    }

    #[test]
    fn a_panic_fails_its_row_and_leaves_the_others() {
        let mut report = Report::begin(Size::Smoke, "all");
        report.attempt("broken", |_| panic!("{}", 42));
        report.attempt("whole", |report| report.miss("peer", Missing::Lacking("not installed".to_owned())));
        assert_eq!((report.failed[0].name.as_str(), report.failed[0].reason.as_str()), ("broken", "panicked: 42"));
        assert_eq!((report.failed.len(), report.skipped.len()), (1, 1));
    }
}
