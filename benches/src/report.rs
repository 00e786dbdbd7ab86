//! The rows: printed as they are measured, written as JSON at the end.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

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

/// The JSON form of a figure.
#[derive(Serialize)]
struct Row {
    name: String,
    value: f64,
    best: Option<f64>,
    unit: &'static str,
    peer: Option<String>,
    peer_value: Option<f64>,
    ratio: Option<f64>,
    bar: Option<f64>,
    bar_is: Option<&'static str>,
    bar_met: Option<bool>,
    answer: Option<String>,
}

#[derive(Serialize)]
struct Skipped {
    name: String,
    reason: String,
}

/// Where and when the figures were taken.
#[derive(Serialize)]
struct Machine {
    version: &'static str,
    measured_unix_s: u64,
    cpu: String,
    cores: usize,
    /// Of 1, 5 and 15 minutes.
    load_average_before: String,
    load_average_after: Option<String>,
}

/// The table so far.
#[derive(Serialize)]
pub struct Report {
    machine: Machine,
    rows: Vec<Row>,
    skipped: Vec<Skipped>,
}

impl Report {
    /// Prints the machine and the head of the table.
    pub fn begin() -> Report {
        let machine = Machine {
            version: env!("CARGO_PKG_VERSION"),
            measured_unix_s: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
            cpu: first_value("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown".to_owned()),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            load_average_before: load_average(),
            load_average_after: None,
        };
        println!(
            "headstack {}; {} cores of {}; load average {}\n",
            machine.version, machine.cores, machine.cpu, machine.load_average_before
        );
        println!(
            "{:<53} {:>11} {:>11} {:<11} {:<24} {:>11} {:>6}  {:<20} answer",
            "figure", "median", "best", "unit", "peer", "its figure", "ratio", "bar"
        );
        Report { machine, rows: Vec::new(), skipped: Vec::new() }
    }

    /// Prints a figure and keeps it.
    pub fn add(&mut self, figure: Figure) {
        let (bar, bar_is, bar_met) = match figure.bar {
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
            unit: figure.unit,
            bar,
            bar_is,
            bar_met,
            answer: figure.answer,
        };
        row.print();
        self.rows.push(row);
    }

    /// Prints what was not measured and why, and keeps it.
    pub fn skip(&mut self, name: &str, reason: String) {
        println!("{name:<53} skipped: {reason}");
        self.skipped.push(Skipped { name: name.to_owned(), reason });
    }

    /// Writes `target/bench.json` and prints what became of the bars.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn finish(mut self) -> io::Result<()> {
        self.machine.load_average_after = Some(load_average());
        let path = repository().join("target/bench.json");
        std::fs::create_dir_all(path.parent().expect("the path has a folder"))?;
        std::fs::write(&path, serde_json::to_string_pretty(&self)? + "\n")?;
        let judged = self.rows.iter().filter_map(|row| row.bar_met);
        let (met, bars) = (judged.clone().filter(|met| *met).count(), judged.count());
        println!("\n{met} of {bars} bars met; load average {}; rows in target/bench.json", load_average());
        Ok(())
    }
}

impl Row {
    fn print(&self) {
        let bar = match (self.bar, self.bar_is, self.bar_met) {
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
            self.answer.as_deref().map_or("", |answer| &answer[..12]),
        );
        // A row takes seconds: whoever watches a pipe sees each one when it is there.
        let _ = io::stdout().flush();
    }
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
fn figure(value: f64) -> String {
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
