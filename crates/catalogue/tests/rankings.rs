//! Tests whether the simulator ranks pairs of drives in the same order as published figures.
//!
//! A pair counts if its published figures differ by more than 3 %. Figures from general knowledge do not count. Run
//! with `--nocapture` to print the rows.

use std::collections::BTreeMap;

use headstack_catalogue::resolve::Resolved;
use headstack_catalogue::{ResolvedDevice, disks, drives, load_device, load_drive, resolve, ssd, workloads};
use headstack_sim::{RunSpec, run_all};
use headstack_workload::{Arrivals, Document, RunLength, Think, Workload};
use rayon::prelude::*;

use crate::common::ssds::{Figure, What};
use crate::common::{random_4k, repository};
use crate::real_disks::{DISKS, Measured, measured};
use crate::real_ssds::key;

/// Minimum relative difference between the figures of a pair that counts.
const MARGIN: f64 = 0.03;

/// A published figure of a drive and its simulated value. Within a row, a higher value is either always better or
/// always worse.
struct Ranked {
    id: String,
    /// Compared quantity, which is the same for both drives of a pair.
    what: String,
    published: f64,
    found: f64,
}

/// Counts the pairs that have the same order in published and simulated figures.
#[derive(Default)]
struct Row {
    same: usize,
    pairs: usize,
    wrong: Vec<String>,
}

impl Row {
    fn of(ranked: &[Ranked]) -> Row {
        let mut row = Row::default();
        for (at, one) in ranked.iter().enumerate() {
            for other in ranked[at + 1..].iter().filter(|other| other.what == one.what) {
                if (one.published / other.published).ln().abs() <= (1.0 + MARGIN).ln() {
                    continue;
                }
                row.pairs += 1;
                if (one.published < other.published) == (one.found < other.found) {
                    row.same += 1;
                } else {
                    row.wrong.push(format!("{}: {} and {}", one.what, one.id, other.id));
                }
            }
        }
        row
    }

    fn share(&self) -> f64 {
        assert!(self.pairs > 0, "no pair differs");
        self.same as f64 / self.pairs as f64
    }

    fn print(&self, title: &str) {
        println!("{title}: {:.1} % of {} pairs are ranked as published", 100.0 * self.share(), self.pairs);
        for wrong in self.wrong.iter().take(12) {
            println!("    not {wrong}");
        }
    }
}

#[test]
fn measured_disks_are_ranked_as_measured() {
    #[derive(serde::Deserialize)]
    struct Cell {
        system: String,
        workload: String,
        depth: u32,
        iometer_iops: Option<f64>,
    }
    let path = repository().join("python/headstack/studies/shipped/storagereview/published.csv");
    let cells = csv::Reader::from_path(path).unwrap().into_deserialize().map(|cell| cell.unwrap());
    let mut ranked: Vec<Ranked> = cells
        .filter_map(|cell: Cell| {
            let published = cell.iometer_iops?;
            let what = format!("{} at {}", cell.workload, cell.depth);
            Some(Ranked { id: cell.system, what, published, found: 0.0 })
        })
        .collect();
    let specs: Vec<RunSpec> = ranked.iter().map(|one| under(&one.id, &one.what)).collect();
    for (one, result) in ranked.iter_mut().zip(run_all(&specs, &|_, _| true)) {
        one.found = result.unwrap().throughput_per_s();
    }
    let row = Row::of(&ranked);
    row.print("StorageReview, file and web server");
    assert!(row.share() >= 0.98, "{:#?}", row.wrong);
}

/// Returns a run of a drive under a load `WORKLOAD at DEPTH`.
fn under(id: &str, what: &str) -> RunSpec {
    let (name, depth) = what.split_once(" at ").unwrap();
    let entry = workloads().iter().find(|entry| entry.id == name).unwrap();
    let mut workload = Workload::from_toml(entry.file_name, entry.text).unwrap();
    workload.arrivals = Arrivals::Closed { queue_depth: depth.parse().unwrap(), think: Think::None };
    workload.run_length = RunLength::Requests(20_000);
    RunSpec {
        system_name: id.to_owned(),
        system: load_drive(id).unwrap().description.into(),
        demand: workload.into(),
        span: None,
        seed: 1,
        interval_ns: None,
        preload: 0,
        faults: None,
    }
}

/// The queues of these three drives are fitted to these measurements, as their files state.
#[test]
fn disks_under_fio_are_ranked_as_measured() {
    let mut ranked = Vec::new();
    for disk in &DISKS {
        let Some(points) = measured(disk, "randread") else { return };
        let drive = load_drive(disk.id).unwrap().description;
        let spec = |point: &Measured| random_4k(disk.id, drive.clone().into(), point.queue_depth, 100.0, 10_000);
        let specs: Vec<_> = points.iter().map(spec).collect();
        for (point, result) in points.iter().zip(run_all(&specs, &|_, _| true)) {
            let found = result.unwrap().throughput_per_s();
            let what = format!("random reads at {}", point.queue_depth);
            ranked.push(Ranked { id: disk.id.to_owned(), what, published: point.iops, found });
        }
    }
    let row = Row::of(&ranked);
    row.print("fio, random reads of three disks");
    assert!(row.share() >= 0.98, "{:#?}", row.wrong);
}

/// Whether a figure has a source that was read or is certain.
fn counts(source: Option<&str>) -> bool {
    source.is_some_and(|source| source.starts_with(['A', 'S', 'B']))
}

/// Returns the file of an entry without `key` of `table`.
fn without(file_name: &str, text: &str, table: &str, key: &str) -> Document {
    let mut file: toml::Table = text.parse().unwrap();
    let hidden = file.get_mut(table).and_then(toml::Value::as_table_mut).unwrap().remove(key);
    assert!(hidden.is_some(), "{file_name} has no {table}.{key}");
    Document::parse(file_name, &toml::to_string(&file).unwrap()).unwrap()
}

/// Whether the figure takes at most a second to simulate.
fn is_quick(what: What) -> bool {
    match what {
        What::RandomRead { .. }
        | What::SequentialRead
        | What::SequentialWrite
        | What::ReadLatency
        | What::WriteLatency => true,
        What::SteadyWrite { .. } | What::BurstWrite { .. } | What::SlcCache | What::AfterSlc => false,
    }
}

#[test]
fn solid_state_drives_are_ranked_as_their_sheets_do() {
    // The full comparison uses all drives; `make test` compares disks only.
    if headstack_needs::left_to_test_all() {
        return;
    }
    struct Stated {
        id: &'static str,
        figure: Figure,
        key: &'static str,
    }
    let mut stated = Vec::new();
    for entry in drives() {
        let Ok(ResolvedDevice::Ssd(ssd)) = load_device(entry.id) else { continue };
        for figure in Figure::of(&ssd.file) {
            let key = key(figure.what);
            if is_quick(figure.what) && counts(ssd.source(&format!("stated.{key}"))) {
                stated.push(Stated { id: entry.id, figure, key });
            }
        }
    }
    // The rate with this figure hidden is compared with the stated rate.
    let found: Vec<(f64, f64)> = stated
        .par_iter()
        .map(|one| {
            let entry = drives().iter().find(|entry| entry.id == one.id).unwrap();
            let Ok(ResolvedDevice::Ssd(known)) = load_device(one.id) else { unreachable!("it was one above") };
            let hidden = ssd::resolve(&without(entry.file_name, entry.text, "stated", one.key)).unwrap();
            (one.figure.measure(&known.description), one.figure.measure(&hidden.description))
        })
        .collect();
    let ranked = |of: fn(&(f64, f64)) -> f64| -> Vec<Ranked> {
        let each = stated.iter().zip(&found);
        each.map(|(one, found)| Ranked {
            id: one.id.to_owned(),
            what: one.key.to_owned(),
            published: one.figure.stated,
            found: of(found),
        })
        .collect()
    };
    let (known, hidden) = (ranked(|found| found.0), ranked(|found| found.1));
    let row = Row::of(&known);
    row.print("sheets of solid-state drives, as described");
    assert!(row.share() >= 0.98, "{:#?}", row.wrong);
    let mut by_key: BTreeMap<&str, Vec<Ranked>> = BTreeMap::new();
    for (one, ranked) in stated.iter().zip(hidden) {
        by_key.entry(one.key).or_default().push(ranked);
    }
    for (key, ranked) in by_key {
        Row::of(&ranked).print(&format!("sheets of solid-state drives, {key} hidden"));
    }
}

/// Returns the media rate of the outermost zone, in bytes per second.
fn outer_rate(resolved: &Resolved) -> f64 {
    let description = &resolved.description;
    let track_bytes = f64::from(description.geometry.zones[0].sectors_per_track)
        * f64::from(description.geometry.physical_sector_bytes);
    track_bytes * description.mechanics.rpm / 60.0
}

#[test]
fn disks_stream_in_the_order_of_their_sheets() {
    let mut hidden = Vec::new();
    for entry in disks() {
        let known = load_drive(entry.id).unwrap();
        let Some(published) = known.file.media.sustained_outer_rate else { continue };
        if !counts(known.source("media.sustained_outer_rate")) || known.file.actuators.is_some() {
            continue;
        }
        // No other key may determine the rate.
        let document = without(entry.file_name, entry.text, "media", "sustained_outer_rate");
        let Ok(resolved) = resolve(&document) else { continue };
        let found = outer_rate(&resolved);
        hidden.push(Ranked { id: entry.id.to_owned(), what: "streaming".to_owned(), published: published.0, found });
    }
    assert!(hidden.len() >= 20, "{}", hidden.len());
    let row = Row::of(&hidden);
    row.print("sustained rates of disks, hidden: from capacity, disks, speed and year");
    assert!(row.share() >= 0.85, "{:#?}", row.wrong);
}
