//! Compares SSDs with their sheets and reviews as predictions: each stated figure is hidden in turn, and the drive
//! described by the rest of its file is simulated. Only figures with a source that was read count.
//!
//! Run with `--nocapture` to print the table.

use headstack_catalogue::ssd::file::{Cells, SsdFile};
use headstack_catalogue::ssd::{self, ESTIMATE_RULES, EstimateRules};
use headstack_catalogue::{Entry, HostProfile, ResolvedDevice, drives, load_device};
use std::collections::BTreeMap;

use headstack_sim::notes::{SYNC_WRITES_PROTECTED, SYNC_WRITES_UNPROTECTED};
use headstack_sim::{SystemDescription, run_all};
use headstack_workload::Document;
use rayon::prelude::*;
use serde::Deserialize;

use crate::common::sheets;
use crate::common::ssds::{Figure, What};
use crate::common::{Errors, FioRow, fio_runs, measurements, random_4k, rows};

/// Returns the `[stated]` key of a figure.
pub fn key(what: What) -> &'static str {
    match what {
        What::RandomRead { .. } => "random_read",
        What::SteadyWrite { .. } | What::BurstWrite { .. } => "random_write",
        What::SequentialRead => "sequential_read",
        What::SequentialWrite => "sequential_write",
        What::ReadLatency => "read_latency",
        What::WriteLatency => "write_latency",
        What::SlcCache => "slc_cache",
        What::AfterSlc => "after_slc",
    }
}

/// Returns the file without one of its stated figures.
fn without(text: &str, key: &str) -> String {
    let mut stated = false;
    let kept = text.lines().filter(|line| {
        stated = if line.starts_with('[') { *line == "[stated]" } else { stated };
        let is_it = stated && line.split('=').next().is_some_and(|name| name.trim() == key);
        !is_it && !line.starts_with(&format!("\"stated.{key}\""))
    });
    kept.collect::<Vec<_>>().join("\n")
}

/// Whether the figure's source was read; figures from general knowledge do not count.
fn decides(file: &SsdFile, figure: &Figure) -> bool {
    sheets::is_read(file, key(figure.what))
}

/// Errors by kind of figure.
#[derive(Default)]
struct Score {
    stated: Vec<(&'static str, Errors)>,
}

impl Score {
    fn add(&mut self, kind: &'static str, what: String, found: f64, stated: f64) {
        let index = self.stated.iter().position(|(name, _)| *name == kind).unwrap_or_else(|| {
            self.stated.push((kind, Errors::default()));
            self.stated.len() - 1
        });
        self.stated[index].1.add(what, found, stated);
    }

    fn mean(&self, kind: &str) -> f64 {
        self.stated.iter().find(|(name, _)| *name == kind).expect("some drive states it").1.mean()
    }

    fn print(&self, title: &str) {
        self.stated.iter().for_each(|(kind, errors)| errors.print(&format!("{title}, {kind}")));
    }
}

/// Whether a figure can be predicted. The size of an SLC cache cannot: drives of the same year and kind have none, 4 %
/// or 38 % of their capacity.
fn is_predicted(what: What) -> bool {
    !matches!(what, What::SlcCache | What::AfterSlc)
}

/// A hidden figure and its predictions.
struct Hidden {
    id: &'static str,
    figure: Figure,
    /// Prediction if the maker is unknown, so that no other capacity of the drive is used.
    alone: f64,
    /// Prediction from another capacity in the catalogue, if that changes it.
    family: Option<f64>,
}

/// Returns the drives of flash, whose figures the estimates are fitted to. One drive of 3D XPoint cannot check them.
fn flash_drives() -> Vec<&'static Entry> {
    let is_flash = |entry: &&Entry| entry.is_ssd() && sheets::file(entry).flash.cells != Some(Cells::Xpoint);
    drives().iter().filter(is_flash).collect()
}

/// Predicts each stated figure of a drive from the rest of its file, with `rules`.
fn hide(entry: &'static Entry, rules: &EstimateRules) -> Vec<Hidden> {
    let ResolvedDevice::Ssd(resolved) = load_device(entry.id).unwrap() else { panic!("{} is a disk", entry.id) };
    let figures = Figure::of(&resolved.file);
    let count = figures.len();
    let decide = figures.into_iter().filter(|figure| is_predicted(figure.what) && decides(&resolved.file, figure));
    decide
        .map(|figure| {
            let text = without(entry.text, key(figure.what));
            let predict = |text: &str| {
                let document = Document::parse(entry.file_name, text).unwrap();
                let hidden = ssd::resolve_by(&document, rules).unwrap_or_else(|error| panic!("{error}"));
                assert_eq!(Figure::of(&hidden.file).len() + 1, count, "{} is hidden", key(figure.what));
                hidden.description
            };
            let unknown: Vec<&str> = text.lines().filter(|line| !line.starts_with("vendor")).collect();
            let (alone, family) = (predict(&unknown.join("\n")), predict(&text));
            let measured = figure.measure(&alone);
            let family = (family != alone).then(|| figure.measure(&family));
            Hidden { id: entry.id, figure, alone: measured, family }
        })
        .collect()
}

/// Bounds of the mean errors without and with other capacities of the family, and of the share of errors above 35 %.
const HIDDEN_BOUNDS: [(&str, f64, f64, f64); 4] = [
    ("random_read", 0.165, 0.12, 0.07),
    ("random_write", 0.19, 0.19, 0.16),
    ("sequential_read", 0.055, 0.055, 0.01),
    ("sequential_write", 0.145, 0.12, 0.08),
];

#[test]
fn hidden_figures_follow_from_the_others() {
    // `simulated_ssds_match_their_stated_figures` tests a sample of stated figures in `make test`.
    if headstack_needs::left_to_test_all() {
        return;
    }
    let entries = flash_drives();
    let files: Vec<SsdFile> = entries.iter().map(|entry| sheets::file(entry)).collect();
    let hidden: Vec<Vec<Hidden>> = entries
        .par_iter()
        .zip(&files)
        .map(|(entry, file)| hide(entry, &sheets::fit(files.iter().filter(|other| !sheets::same_maker(file, other)))))
        .collect();
    let (mut alone, mut related, mut both) = (Score::default(), Score::default(), Score::default());
    for Hidden { id, figure, alone: predicted, family } in hidden.iter().flatten() {
        let kind = key(figure.what);
        let best = family.unwrap_or(*predicted);
        let percent = |rate: f64| 100.0 * (rate / figure.stated - 1.0);
        println!("{id:24} {figure} {predicted:>12.1} ({:+.1} %) {:+.1} %", percent(*predicted), percent(best));
        alone.add(kind, (*id).to_owned(), *predicted, figure.stated);
        both.add(kind, (*id).to_owned(), best, figure.stated);
        if let Some(predicted) = family {
            related.add(kind, (*id).to_owned(), *predicted, figure.stated);
        }
    }
    alone.print("hidden, family unknown");
    related.print("hidden, only drives whose family is known");
    both.print("hidden, family used if known");
    for (kind, alone_bound, both_bound, far_bound) in HIDDEN_BOUNDS {
        let errors = hidden.iter().flatten().filter(|hidden| key(hidden.figure.what) == kind);
        let far = errors.filter(|it| (it.family.unwrap_or(it.alone) / it.figure.stated - 1.0).abs() > 0.35).count();
        let far = far as f64 / hidden.iter().flatten().filter(|it| key(it.figure.what) == kind).count() as f64;
        println!("{kind}: {:.1} % of figures are off by more than 35 %", 100.0 * far);
        assert!(alone.mean(kind) <= alone_bound && both.mean(kind) <= both_bound && far <= far_bound, "{kind}");
    }
}

#[test]
fn estimates_hold_for_other_makers() {
    let entries = flash_drives();
    let files: Vec<SsdFile> = entries.iter().map(|entry| sheets::file(entry)).collect();
    let (fitted, published) = (sheets::values(&sheets::fit(files.iter())), sheets::values(&ESTIMATE_RULES));
    println!("fit {fitted:.3?}\npublished {published:.3?}");
    for (fitted, published) in fitted.iter().zip(published) {
        assert!((fitted / published - 1.0).abs() < 0.03, "a fit to the catalogue gives {fitted}, not {published}");
    }
    sheets::print_floor(&files);
}

/// Unmodified drives on the hosts on which they were measured; none of these hosts has a cache.
const MEASURED: [(&str, HostProfile, &str); 7] = [
    ("d3-s4610-480gb", HostProfile::Ahci, "HPMICROSERVERG10/SATA_AHCI_INTEL_D3-S4610_SSDSC2KG48"),
    ("d3-s4610-480gb", HostProfile::Ahci3g, "HPMICROSERVERG8/SATA300/INTELD3S4610"),
    ("d3-s4610-480gb", HostProfile::M1015, "SERVER/IBM_M1015/INTEL_D3-S4610_SSDSC2KG48"),
    ("d3-s4610-480gb", HostProfile::P420iHba, "HPDL380G8/HBA/INTEL_D3_S4610"),
    ("pm883-480gb", HostProfile::Ahci, "HPMICROSERVERG10/SATA_AHCI_SAMSUNG_PM833_MZ7LH480HAHQ"),
    ("pm883-480gb", HostProfile::Ahci3g, "HPMICROSERVERG8/SATA300/SAMSUNGPM833"),
    ("pm883-480gb", HostProfile::M1015, "SERVER/IBM_M1015/SAMSUNG_PM883"),
];

/// Returns the errors of rate and p99 in a drive's rows with one job.
fn on_host(id: &str, host: HostProfile, rows: &[FioRow], rw: &str) -> (Errors, Errors) {
    let mut device = load_device(id).unwrap().description();
    host.carry(&mut device);
    let of_one_job = |row: &&FioRow| row.rw == rw && row.numjobs == 1;
    let rows: Vec<&FioRow> = rows.iter().filter(of_one_job).collect();
    let reads_percent = if rw == "randread" { 100.0 } else { 0.0 };
    let spec =
        |row: &&FioRow| random_4k(id, SystemDescription::Drive(device.clone()), row.iodepth, reads_percent, 20_000);
    let specs: Vec<_> = rows.iter().map(spec).collect();
    let (mut rates, mut tails) = (Errors::default(), Errors::default());
    for (row, result) in rows.iter().zip(run_all(&specs, &|_, _| true)) {
        let result = result.unwrap();
        let name = format!("{id} {host:?} {rw} at {}", row.iodepth);
        let p99_ms = result.quantile_ns(0.99).expect("a drive answers") as f64 / 1e6;
        let rate = result.throughput_per_s();
        println!("{name:46} {rate:>7.0}/{:<7.0} p99 {p99_ms:.3}/{:.3}", row.iops, row.p99_ms);
        rates.add(&name, rate, row.iops);
        tails.add(name, p99_ms, row.p99_ms);
    }
    (rates, tails)
}

#[test]
fn sata_drives_on_their_hosts_are_near_fio() {
    let mut means: Vec<[f64; 3]> = Vec::new();
    for (id, host, system) in MEASURED {
        let Some(rows) = fio_runs(system) else { return };
        let (reads, read_tails) = on_host(id, host, &rows, "randread");
        let (writes, write_tails) = on_host(id, host, &rows, "randwrite");
        reads.print(&format!("{id} on {host:?}, reads"));
        read_tails.print(&format!("{id} on {host:?}, p99 of reads"));
        writes.print(&format!("{id} on {host:?}, writes"));
        write_tails.print(&format!("{id} on {host:?}, p99 of writes"));
        means.push([reads.mean(), writes.mean(), f64::midpoint(read_tails.mean(), write_tails.mean())]);
    }
    let mean = |index: usize| means.iter().map(|of_host| of_host[index]).sum::<f64>() / means.len() as f64;
    println!("all: reads {:.1} %, writes {:.1} %, p99 {:.1} %", 100.0 * mean(0), 100.0 * mean(1), 100.0 * mean(2));
    assert!(mean(0) <= 0.17 && mean(1) <= 0.10 && mean(2) <= 0.25);
}

/// Synchronous writes of a drive, by one writer.
#[derive(Deserialize)]
struct SyncRow {
    drive: String,
    class: String,
    plp: String,
    test: String,
    writes_per_s: Option<f64>,
}

#[test]
fn synchronous_writes_of_measured_drives_are_inside_the_interval_of_their_class() {
    let Some(path) = measurements("validation/measured/fsync.csv") else { return };
    let mut by_class: BTreeMap<bool, BTreeMap<String, Vec<f64>>> = BTreeMap::new();
    for row in rows::<SyncRow>(&path) {
        let is_set = ["2x", "4x", "6 disks"].iter().any(|start| row.drive.starts_with(start));
        let is_other = ["depth 32", "ZFS", "open_datasync"].iter().any(|part| row.test.contains(part));
        let protected = match row.plp.as_str() {
            "yes" => true,
            "no" => false,
            _ => continue,
        };
        if let Some(per_s) = row.writes_per_s.filter(|_| !is_set && !is_other && row.class != "cloud local") {
            by_class.entry(protected).or_default().entry(row.drive).or_default().push(per_s.ln());
        }
    }
    for (protected, interval, share) in [(false, SYNC_WRITES_UNPROTECTED, 0.85), (true, SYNC_WRITES_PROTECTED, 0.85)] {
        let drives = &by_class[&protected];
        assert_eq!(drives.len(), interval.drives as usize, "drives of the class");
        let inside = drives.values().filter(|logs| {
            let per_s = (logs.iter().sum::<f64>() / logs.len() as f64).exp();
            (f64::from(interval.low_per_s)..=f64::from(interval.high_per_s)).contains(&per_s)
        });
        let inside = inside.count();
        println!("protected {protected}: {inside} of {} inside {interval:?}", drives.len());
        assert!(inside as f64 >= share * drives.len() as f64, "{inside} of {}", drives.len());
    }
}
