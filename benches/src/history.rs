//! Runs of `make bench` on this checkout, a line of JSON each, and what changed since the last one.

use std::fs::{File, OpenOptions, create_dir_all};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::report::{Machine, Row, Unmeasured, figure, repository};

/// A change below this is never shown: two runs of the same build on a quiet machine differ by up to so much.
const LEAST_NOISE: f64 = 0.1;

/// A run, as the history keeps it.
#[derive(Debug, Serialize, Deserialize)]
pub struct Run {
    /// The rows that were requested: `all`, `long`, or for example `live`.
    pub part: String,
    pub machine: Machine,
    pub rows: Vec<Row>,
    pub failed: Vec<Unmeasured>,
}

/// The history: outside `target`, so that `make clean` keeps it. `HEADSTACK_HISTORY` names another folder.
pub fn path() -> PathBuf {
    let folder = std::env::var_os("HEADSTACK_HISTORY").map_or_else(|| repository().join("history"), PathBuf::from);
    folder.join("bench.jsonl")
}

/// Appends a run.
///
/// # Errors
/// When the file cannot be written.
pub fn append(path: &Path, run: &Run) -> io::Result<()> {
    create_dir_all(path.parent().expect("the path has a folder"))?;
    let line = serde_json::to_string(run)? + "\n";
    OpenOptions::new().create(true).append(true).open(path)?.write_all(line.as_bytes())
}

/// The last run of the same part and profile. Lines that another version wrote in another form are passed over.
fn last(path: &Path, run: &Run) -> Option<Run> {
    let lines = BufReader::new(File::open(path).ok()?).lines().map_while(Result::ok);
    let runs = lines.filter_map(|line| serde_json::from_str::<Run>(&line).ok());
    runs.filter(|before| before.part == run.part && before.machine.profile == run.machine.profile).last()
}

/// How a figure follows the machine's own speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Follows {
    /// A rate: twice as high on a machine that is twice as fast.
    Speed,
    /// A time: half as long there.
    Time,
    /// Neither: memory, percentages, ratios.
    Nothing,
}

fn follows(unit: &str) -> Follows {
    match unit {
        "s" | "ms" | "us" => Follows::Time,
        _ if unit.ends_with("/s") => Follows::Speed,
        _ if unit.starts_with("ns/") || unit.starts_with("us/") || unit.starts_with("us an ") => Follows::Time,
        _ => Follows::Nothing,
    }
}

/// A row that changed by more than the noise.
#[derive(Debug, PartialEq)]
struct Change {
    /// New figure over the old one, both as on a machine of the same speed.
    factor: f64,
    noise: f64,
}

/// The change of a row, if it is more than the noise: the largest of [`LEAST_NOISE`], the spread of the bare loop in either
/// run, and the distance of the best round from the median in either run.
fn change(before: &Row, after: &Row, spread: f64) -> Option<Change> {
    let faster = after.bare_loop_per_s / before.bare_loop_per_s;
    let (correction, spread) = match follows(&after.unit) {
        Follows::Speed => (1.0 / faster, spread),
        Follows::Time => (faster, spread),
        Follows::Nothing => (1.0, 0.0),
    };
    let own = |row: &Row| row.best.map_or(0.0, |best| (best / row.value - 1.0).abs());
    let noise = LEAST_NOISE.max(spread).max(own(before)).max(own(after));
    let factor = after.value / before.value * correction;
    let is_change = factor.is_finite() && factor > 0.0 && (factor.ln().abs() > noise.ln_1p());
    is_change.then_some(Change { factor, noise })
}

/// Prints the rows that changed since the last run of the same part, or went missing.
pub fn print_changes(path: &Path, run: &Run) {
    let Some(before) = last(path, run) else {
        return println!("no earlier run in {} to compare with", path.display());
    };
    let spread = before.machine.bare_loop_spread_percent.max(run.machine.bare_loop_spread_percent) / 100.0;
    let commit = before.machine.commit.as_deref().unwrap_or("unknown");
    let speed = run.machine.bare_loop_per_s / before.machine.bare_loop_per_s;
    println!("changes since commit {commit}, corrected by the bare loop ({speed:.2} times as fast now):");
    let find = |rows: &[Row], wanted: &Row| rows.iter().find(|row| is_same(row, wanted)).cloned();
    let mut shown: Vec<&str> = Vec::new();
    for after in &run.rows {
        let changed = find(&before.rows, after).and_then(|old| Some((change(&old, after, spread)?, old)));
        if let Some((Change { factor, noise }, old)) = changed
            && !shown.contains(&after.name.as_str())
        {
            shown.push(&after.name);
            let percent = (factor - 1.0) * 100.0;
            let [old, new] = [old.value, after.value].map(figure);
            println!("  {percent:+.0} % (noise {:.0} %) {}: {old} -> {new} {}", noise * 100.0, after.name, after.unit);
        }
    }
    let gone: Vec<&Row> = before.rows.iter().filter(|old| find(&run.rows, old).is_none()).collect();
    gone.iter().for_each(|old| println!("  not measured this time: {}", old.name));
    if shown.is_empty() && gone.is_empty() {
        println!("  none above the noise");
    }
}

/// Returns true if two rows hold the same figure and peer. A name may end in a noise level that varies between runs.
fn is_same(one: &Row, other: &Row) -> bool {
    let name = |row: &Row| row.name.split(" (noise").next().map(str::to_owned);
    name(one) == name(other) && one.peer == other.peer
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(value: f64, unit: &str, bare_loop_per_s: f64) -> Row {
        Row {
            name: "row".to_owned(),
            value,
            best: None,
            unit: unit.to_owned(),
            peer: None,
            peer_value: None,
            ratio: None,
            bar: None,
            bar_is: None,
            bar_met: None,
            answer: None,
            bare_loop_per_s,
        }
    }

    fn factor(before: &Row, after: &Row, spread: f64) -> Option<f64> {
        change(before, after, spread).map(|change| (change.factor * 1e6).round() / 1e6)
    }

    #[test]
    fn a_change_is_corrected_by_the_speed_of_the_machine() {
        for (unit, half_speed) in [("requests/s", 50.0), ("s", 200.0), ("ns/request", 200.0), ("us an I/O", 200.0)] {
            assert_eq!(factor(&row(100.0, unit, 2e7), &row(half_speed, unit, 1e7), 0.0), None, "{unit}");
            let same = factor(&row(100.0, unit, 2e7), &row(100.0, unit, 1e7), 0.0);
            assert_eq!(same, Some(if unit == "requests/s" { 2.0 } else { 0.5 }), "{unit}");
        }
        assert_eq!(factor(&row(100.0, "MiB", 2e7), &row(50.0, "MiB", 1e7), 0.0), Some(0.5));
    }

    #[test]
    fn a_change_within_the_noise_is_not_shown() {
        let (before, after) = (row(100.0, "s", 1e7), row(120.0, "s", 1e7));
        assert_eq!(factor(&before, &after, 0.0), Some(1.2));
        assert_eq!(factor(&before, &after, 0.25), None);
        assert_eq!(factor(&Row { best: Some(75.0), ..before }, &after, 0.0), None);
        assert_eq!(factor(&row(100.0, "s", 1e7), &row(108.0, "s", 1e7), 0.0), None);
    }

    #[test]
    fn the_last_run_of_the_same_part_is_compared_with() {
        let path = std::env::temp_dir().join(format!("headstack-history-{}/bench.jsonl", std::process::id()));
        let machine = |version: &str| Machine {
            version: version.to_owned(),
            commit: None,
            profile: "release".to_owned(),
            measured_unix_s: 0,
            cpu: String::new(),
            cores: 1,
            load_average_before: String::new(),
            load_average_after: None,
            bare_loop_per_s: 1e7,
            bare_loop_spread_percent: 0.0,
        };
        let run = |part: &str, version: &str| Run {
            part: part.to_owned(),
            machine: machine(version),
            rows: vec![row(1.0, "s", 1e7)],
            failed: Vec::new(),
        };
        assert!(last(&path, &run("all", "1")).is_none());
        for (part, version) in [("all", "1"), ("all", "2"), ("live", "3")] {
            append(&path, &run(part, version)).unwrap();
        }
        OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{}\n").unwrap();
        assert_eq!(last(&path, &run("all", "4")).unwrap().machine.version, "2");
        std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }
}
