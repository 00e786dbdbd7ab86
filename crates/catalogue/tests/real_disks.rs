//! Disks under fio, held against the catalogue's descriptions as they stand: rates and percentiles at every depth.
//!
//! Run with `--nocapture` for the tables.

use headstack_catalogue::load_drive;
use headstack_sim::run_all;

use crate::common::{Errors, FioRow, fio_runs, random_4k};

const REQUESTS: u64 = 20_000;

/// A disk of the measurements and the description that stands for it.
const DISKS: [(&str, &str); 1] = [("HPMICROSERVERG10/SATA_AHCI_SAMSUNGF1_1TB_7K2RPM", "spinpoint-f1-1tb")];

/// The rows of one job of pure reads or writes, by depth.
fn by_depth(rows: &[FioRow], rw: &str) -> Vec<FioRow> {
    let mut rows: Vec<FioRow> = rows.iter().filter(|row| row.rw == rw && row.numjobs == 1).cloned().collect();
    rows.sort_by_key(|row| row.iodepth);
    rows
}

#[test]
fn disks_follow_their_measured_curves_over_depth() {
    for (system, id) in DISKS {
        let Some(runs) = fio_runs(system) else { return };
        let drive = load_drive(id).unwrap().description;
        let rows = by_depth(&runs, "randread");
        let spec = |row: &FioRow| random_4k(id, drive.clone().into(), row.iodepth, 100.0, REQUESTS);
        let specs: Vec<_> = rows.iter().map(spec).collect();
        let (mut rate, mut median, mut p99) = (Errors::default(), Errors::default(), Errors::default());
        for (row, result) in rows.iter().zip(run_all(&specs, &|_, _| true)) {
            let result = result.unwrap();
            let ms = |q: f64| result.quantile_ns(q).expect("a drive answers") as f64 / 1e6;
            let (name, found) = (format!("{id} at {}", row.iodepth), result.throughput_per_s());
            println!(
                "{name:24} {found:>6.1}/{:<6.1}  p50 {:>6.1}/{:<6.1}  p99 {:>6.1}/{:<6.1}  p99.9 {:>6.1}/{:<6.1}",
                row.iops,
                ms(0.5),
                row.p50_ms,
                ms(0.99),
                row.p99_ms,
                ms(0.999),
                row.p999_ms
            );
            rate.add(&name, found, row.iops);
            median.add(&name, ms(0.5), row.p50_ms);
            p99.add(&name, ms(0.99), row.p99_ms);
        }
        rate.print("IO/s");
        median.print("median");
        p99.print("p99");
        assert!(rate.worst() <= 0.12);
    }
}
