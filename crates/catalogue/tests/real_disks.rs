//! Compares disks under fio with the unmodified descriptions of the catalogue: rates and percentiles at every depth.
//!
//! Run with `--nocapture` to print the tables.

use std::collections::BTreeMap;

use headstack_catalogue::{load_drive, resolve};
use headstack_sim::drive::description::DriveDescription;
use headstack_sim::{Demand, run, run_all};
use headstack_workload::{ArrivalProcess, Arrivals, Document};
use serde::Deserialize;

use crate::common::{Errors, FioRow, fio_runs, measurements, random_4k, rows};

const REQUESTS: u64 = 20_000;

/// Latency above which a row measures a stall: libata resets a device that has not responded for 30 s.
const STALL_MS: f64 = 29_000.0;

/// A disk of the measurements and its description.
pub struct Disk {
    systems: &'static [&'static str],
    pub id: &'static str,
}

pub const DISKS: [Disk; 3] = [
    Disk { systems: &["HPMICROSERVERG10/SATA_AHCI_SAMSUNGF1_1TB_7K2RPM"], id: "spinpoint-f1-1tb" },
    Disk { systems: &["HPMICROSERVERG10/SATA_AHCI_HGST_HTS72101_100GB_7K2RPM"], id: "travelstar-7k100-100gb" },
    Disk {
        systems: &[
            "HPMICROSERVERG10/SATA_AHCI_WD740GD_74GB_10RPM/RUN1",
            "HPMICROSERVERG10/SATA_AHCI_WD740GD_74GB_10RPM/RUN2",
        ],
        id: "raptor-wd740gd",
    },
];

/// Measurements at a queue depth: the mean over all ways to split the depth into jobs.
pub struct Measured {
    pub queue_depth: u32,
    pub iops: f64,
    p50_ms: f64,
    p99_ms: f64,
    p999_ms: f64,
}

/// Returns a disk's runs of pure reads or writes, up to the 32 tags of native command queueing and without stalls.
pub fn measured(disk: &Disk, rw: &str) -> Option<Vec<Measured>> {
    let mut rows: BTreeMap<u32, Vec<FioRow>> = BTreeMap::new();
    for system in disk.systems {
        for row in fio_runs(system)? {
            if row.rw == rw && row.iodepth * row.numjobs <= 32 && row.lat_max_ms < STALL_MS {
                rows.entry(row.iodepth * row.numjobs).or_default().push(row);
            }
        }
    }
    let of = |(queue_depth, rows): (u32, Vec<FioRow>)| {
        let mean = |of: fn(&FioRow) -> f64| rows.iter().map(of).sum::<f64>() / rows.len() as f64;
        Measured {
            queue_depth,
            iops: mean(|row| row.iops),
            p50_ms: mean(|row| row.p50_ms),
            p99_ms: mean(|row| row.p99_ms),
            p999_ms: mean(|row| row.p999_ms),
        }
    };
    Some(rows.into_iter().map(of).collect())
}

/// Errors of rate, median and 99th percentile.
#[derive(Default)]
struct Score {
    rate: Errors,
    median: Errors,
    p99: Errors,
}

impl Score {
    /// Compares a drive with measurements, and prints the comparison.
    fn add(&mut self, id: &str, drive: &DriveDescription, reads_percent: f64, measured: &[Measured]) {
        let spec = |row: &Measured| random_4k(id, drive.clone().into(), row.queue_depth, reads_percent, REQUESTS);
        let specs: Vec<_> = measured.iter().map(spec).collect();
        for (row, result) in measured.iter().zip(run_all(&specs, &|_, _| true)) {
            let result = result.unwrap();
            let ms = |q: f64| result.quantile_ns(q).expect("a drive answers") as f64 / 1e6;
            let (name, rate) = (format!("{id} at {}", row.queue_depth), result.throughput_per_s());
            println!(
                "{name:28} {rate:>6.1}/{:<6.1}  p50 {:>6.1}/{:<6.1}  p99 {:>6.1}/{:<6.1}  p99.9 {:>6.1}/{:<6.1}",
                row.iops,
                ms(0.5),
                row.p50_ms,
                ms(0.99),
                row.p99_ms,
                ms(0.999),
                row.p999_ms
            );
            self.rate.add(&name, rate, row.iops);
            self.median.add(&name, ms(0.5), row.p50_ms);
            self.p99.add(&name, ms(0.99), row.p99_ms);
        }
    }

    fn print(&self) {
        self.rate.print("IOPS");
        self.median.print("median");
        self.p99.print("p99");
    }
}

#[test]
fn reads_of_disks_follow_their_measured_curves_over_depth() {
    let mut all = Score::default();
    for disk in DISKS {
        let Some(measured) = measured(&disk, "randread") else { return };
        all.add(disk.id, &load_drive(disk.id).unwrap().description, 100.0, &measured);
    }
    all.print();
    // The Travelstar's description lies between two hosts, one of which is this: 5 to 18 % above it.
    assert!(all.rate.mean() <= 0.05 && all.rate.worst() <= 0.20);
    assert!(all.median.mean() <= 0.10);
    assert!(all.p99.mean() <= 0.15);
}

#[test]
fn writes_of_disks_follow_their_measured_curves_over_depth() {
    let mut all = Score::default();
    for disk in DISKS {
        let Some(measured) = measured(&disk, "randwrite") else { return };
        all.add(disk.id, &load_drive(disk.id).unwrap().description, 0.0, &measured);
    }
    all.print();
    assert!(all.rate.mean() <= 0.12);
}

/// An unfitted disk: its sheet, and the average firmware of the other two disks.
#[test]
fn an_unfitted_disk_is_predicted_from_its_data_sheet_and_family() {
    let [f1, travelstar, raptor] = DISKS;
    let queue = |disk: &Disk| load_drive(disk.id).unwrap().description.queue;
    let (one, other) = (queue(&travelstar), queue(&raptor));
    let mut drive = load_drive(f1.id).unwrap().description;
    drive.queue.committed = (one.committed + other.committed) / 2.0;
    drive.queue.rotation_margin_ns = u64::midpoint(one.rotation_margin_ns, other.rotation_margin_ns);
    drive.queue.age_weight = (one.age_weight + other.age_weight) / 2.0;
    let Some(measured) = measured(&f1, "randread") else { return };
    let mut score = Score::default();
    score.add("spinpoint-f1-1tb from its family", &drive, 100.0, &measured);
    score.print();
    // The limits are the results rounded up: 4.5 %, worst 14.3 %; 9.2 %; 25.8 %.
    assert!(score.rate.mean() <= 0.06 && score.rate.worst() <= 0.16);
    assert!(score.median.mean() <= 0.12);
    assert!(score.p99.mean() <= 0.30);
}

/// A desktop drive from its sheet, two disks of 1 TB at 7,200 rpm, with more keys.
fn desktop_drive(name: &str, year: u32, keys: &str) -> DriveDescription {
    let text = format!(
        "name = \"{name}\"\nyear = {year}\nfamily = \"desktop\"\ncapacity.logical_blocks = 3_907_029_168\n\
         capacity.physical_sector = \"4096B\"\ngeometry.heads = 4\nmedia.sustained_outer_rate = \"200MB/s\"\n\
         spindle.speed = \"7200rpm\"\nbuffer.size = \"64MiB\"\ninterface.kind = \"sata\"\n\
         interface.rate = \"600MB/s\"\n{keys}\n"
    );
    let document = Document::parse("desktop.toml", &text).unwrap();
    resolve(&document).unwrap_or_else(|error| panic!("{error}")).description
}

/// The only figure of its sheet that says how fast it moves.
const SHEET: &str = "seek.read_average = \"8.5ms\"";

/// A row of diskplorer: random reads that arrive at random times, next to sequential writes.
#[derive(Debug, Deserialize)]
struct ArrivalRow {
    system: String,
    offered_read_iops: f64,
    offered_write_mb_s: f64,
    read_p50_ms: Option<f64>,
    read_p95_ms: Option<f64>,
}

/// Rate in reads/s, median and 95th percentile in ms of the DT01ACA200 without writes. Fewer than 26 reads/s have an
/// unexplained 95th percentile of 32 ms; more than 111 are too close to what the drive can do.
fn reads_of_the_dt01aca200() -> Option<Vec<(f64, f64, f64)>> {
    let path = measurements("validation/measured/diskplorer_reads_beside_writes.csv")?;
    let of_reads = |row: ArrivalRow| {
        let is_read = row.system == "hdd-toshiba-DT01ACA200" && row.offered_write_mb_s == 0.0;
        let rate = row.offered_read_iops;
        (is_read && (26.0..=111.0).contains(&rate)).then_some((rate, row.read_p50_ms?, row.read_p95_ms?))
    };
    Some(rows::<ArrivalRow>(&path).into_iter().filter_map(of_reads).collect())
}

/// Rates of an ST2000DM006 on an AHCI host under fio, by queue depth.
const ST2000DM006: [(u32, f64); 6] = [(1, 57.6), (2, 64.5), (4, 71.2), (8, 78.6), (16, 86.3), (32, 93.6)];

/// Returns the errors of random read rates at each depth.
fn rate_errors(drive: &DriveDescription, measured: &[(u32, f64)]) -> Errors {
    let mut rates = Errors::default();
    for &(depth, iops) in measured {
        let found = run(&random_4k("", drive.clone().into(), depth, 100.0, REQUESTS), &|_| true).unwrap();
        println!("depth {depth:>2}: {:.1}/{iops}", found.throughput_per_s());
        rates.add(format!("depth {depth}"), found.throughput_per_s(), iops);
    }
    rates.print("IOPS");
    rates
}

/// Slow seeks, one committed command, a margin and an age explain a whole curve of latencies: four values are fitted to 28
/// figures.
#[test]
fn a_desktop_drive_follows_its_measured_latency_over_the_arrival_rate() {
    let Some(measured) = reads_of_the_dt01aca200() else { return };
    assert_eq!(measured.len(), 14);
    let fitted = "seek.read_average = \"10.65ms\"\nseek.read_full_stroke = \"19.7ms\"\n\
                  queue.committed = 1.0\nqueue.rotation_margin = \"1.75ms\"\nqueue.age_weight = 0.02";
    let drive = desktop_drive("DT01ACA200", 2012, fitted);
    let (mut median, mut p95) = (Errors::default(), Errors::default());
    let spec = |&(rate, ..): &(f64, f64, f64)| {
        let mut spec = random_4k("DT01ACA200", drive.clone().into(), 1, 100.0, REQUESTS);
        let Demand::Workload(workload) = &mut spec.demand else { unreachable!("it is one workload") };
        workload.arrivals = Arrivals::Open { rate_per_s: rate, process: ArrivalProcess::Poisson };
        spec
    };
    let specs: Vec<_> = measured.iter().map(spec).collect();
    for (&(rate, p50_ms, p95_ms), result) in measured.iter().zip(run_all(&specs, &|_, _| true)) {
        let result = result.unwrap();
        let ms = |q: f64| result.quantile_ns(q).expect("a drive answers") as f64 / 1e6;
        println!("{rate:>4} reads/s  p50 {:>6.1}/{p50_ms:<6.1}  p95 {:>6.1}/{p95_ms:<6.1}", ms(0.5), ms(0.95));
        median.add(format!("{rate} reads/s"), ms(0.5), p50_ms);
        p95.add(format!("{rate} reads/s"), ms(0.95), p95_ms);
    }
    median.print("median");
    p95.print("p95");
    assert!(median.mean() <= 0.12 && p95.mean() <= 0.15);
}

/// The same mechanism with other values explains the rates of a drive of another maker.
#[test]
fn a_desktop_drive_gains_less_from_its_queue_than_an_ideal_choice_would() {
    let fitted = "seek.read_average = \"13ms\"\nseek.read_full_stroke = \"24.2ms\"\nqueue.committed = 0.0\n\
                  queue.rotation_margin = \"4.5ms\"\nqueue.age_weight = 0.025";
    let rates = rate_errors(&desktop_drive("ST2000DM006", 2016, fitted), &ST2000DM006);
    assert!(rates.mean() <= 0.05 && rates.worst() <= 0.12);
    let ideal = format!("{SHEET}\nqueue.committed = 0.0\nqueue.rotation_margin = \"0ms\"\nqueue.age_weight = 0.0");
    assert!(rate_errors(&desktop_drive("ideal", 2016, &ideal), &ST2000DM006).mean() > 0.3);
}

/// Sheet and family, whose values lie between both drives. The DT01ACA200 reaches 124 reads/s at about 31 waiting ones.
#[test]
fn desktop_drives_are_predicted_from_sheet_and_family() {
    let rates = rate_errors(&desktop_drive("desktop", 2016, SHEET), &ST2000DM006);
    assert!(rates.mean() <= 0.15 && rates.worst() <= 0.20);
    assert!(rate_errors(&desktop_drive("desktop", 2012, SHEET), &[(1, 63.0), (32, 124.0)]).worst() <= 0.20);
}
