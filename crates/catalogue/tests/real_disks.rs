//! Compares disks under fio with the unmodified descriptions of the catalogue: rates and percentiles at every depth.
//!
//! Run with `--nocapture` to print the tables.

use std::collections::BTreeMap;

use headstack_catalogue::load_drive;
use headstack_sim::drive::description::DriveDescription;
use headstack_sim::run_all;

use crate::common::{Errors, FioRow, fio_runs, random_4k};

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
    assert!(all.rate.mean() <= 0.05 && all.rate.worst() <= 0.12);
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
    // The limits are the results rounded up: 5.1 %, worst 9.7 %; 12.4 %; 28.6 %.
    assert!(score.rate.mean() <= 0.07 && score.rate.worst() <= 0.12);
    assert!(score.median.mean() <= 0.15);
    assert!(score.p99.mean() <= 0.32);
}
