//! Measurements of real devices with which the models are compared. This repository contains none of them.

pub mod sheets;
pub mod ssds;

use std::path::{Path, PathBuf};

use headstack_catalogue::workloads;
use headstack_needs::{Need, lacks};
use headstack_sim::{RunSpec, SystemDescription};
use headstack_workload::{Arrivals, RunLength, Think, Workload};
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// Returns the root of the repository.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns a folder of measurements (in `HEADSTACK_SHARED`, else next to the repository). Prints a message and returns
/// `None` if it is missing.
pub fn measurements(name: &str) -> Option<PathBuf> {
    let shared = std::env::var_os("HEADSTACK_SHARED").map_or_else(|| repository().join("../shared"), PathBuf::from);
    let path = shared.join(name);
    if !path.exists() {
        lacks(Need::Data, format_args!("no measurements at {}", path.display()));
        return None;
    }
    Some(path)
}

/// Returns the rows of a table. Panics on unexpected content, because then the measurements are not the known ones.
pub fn rows<T: DeserializeOwned>(path: &Path) -> Vec<T> {
    let mut reader = csv::Reader::from_path(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    reader.deserialize().map(|row| row.unwrap_or_else(|error| panic!("{}: {error}", path.display()))).collect()
}

/// A fio run on a real system: 4 KiB random requests for a minute.
#[derive(Clone, Debug, Deserialize)]
pub struct FioRow {
    /// Name of host, host adapter and device.
    pub system: String,
    /// Value of fio's `rw`: `randread`, `randwrite` or `randrw`.
    pub rw: String,
    /// Queue depth per job.
    pub iodepth: u32,
    /// Number of jobs.
    pub numjobs: u32,
    /// Rate, in IOPS.
    pub iops: f64,
    /// Maximum latency, in ms.
    pub lat_max_ms: f64,
    /// Median latency, in ms.
    pub p50_ms: f64,
    /// 99th percentile of the latency, in ms.
    pub p99_ms: f64,
    /// 99.9th percentile of the latency, in ms.
    pub p999_ms: f64,
    /// Activity of each member device, as `sda:READS/WRITES/UTILIZATION`, separated by semicolons.
    pub disk_util: String,
}

/// Returns the measurements of `system`. Prints a message and returns `None` if they are missing.
pub fn fio_runs(system: &str) -> Option<Vec<FioRow>> {
    let path = measurements("validation/fio-systems.csv")?;
    let found: Vec<FioRow> = rows::<FioRow>(&path).into_iter().filter(|row| row.system == system).collect();
    assert!(!found.is_empty(), "no system {system} in {}", path.display());
    Some(found)
}

/// Median latencies of a drive under a light open-loop load, measured by a probe on its Linux host.
#[derive(Clone, Debug, Deserialize)]
pub struct LightLoadRow {
    /// Name of the drive.
    pub device: String,
    /// Offered writes per second.
    pub offered_rate: u64,
    /// Median read latency, in us.
    pub read_50p_us: f64,
    /// Median write latency, in us.
    pub write_50p_us: f64,
}

/// Returns the row of `device` at the lowest rate. Prints a message and returns `None` if the measurements are missing.
pub fn under_light_load(device: &str) -> Option<LightLoadRow> {
    let path = measurements("validation/measured/ssdiq_latency_under_load.csv")?;
    let found = rows::<LightLoadRow>(&path).into_iter().filter(|row| row.device == device);
    Some(found.min_by_key(|row| row.offered_rate).unwrap_or_else(|| panic!("no {device} in {}", path.display())))
}

/// Relative errors of a comparison, each with a label.
#[derive(Debug, Default)]
pub struct Errors(Vec<(String, f64)>);

impl Errors {
    /// Adds the error of a simulated figure relative to a measured one.
    pub fn add(&mut self, what: impl Into<String>, simulated: f64, measured: f64) {
        assert!(measured > 0.0 && simulated.is_finite(), "{simulated} against {measured}");
        self.0.push((what.into(), simulated / measured - 1.0));
    }

    /// Returns the mean of the absolute errors.
    pub fn mean(&self) -> f64 {
        assert!(!self.0.is_empty(), "nothing was held against anything");
        self.0.iter().map(|(_, error)| error.abs()).sum::<f64>() / self.0.len() as f64
    }

    /// Returns the largest absolute error.
    pub fn worst(&self) -> f64 {
        self.0.iter().map(|(_, error)| error.abs()).fold(0.0, f64::max)
    }

    /// Prints the mean error, and the largest error with its label.
    pub fn print(&self, title: &str) {
        let (what, worst) = self.0.iter().max_by(|a, b| a.1.abs().total_cmp(&b.1.abs())).expect("not empty");
        let (mean, count) = (self.mean() * 100.0, self.0.len());
        println!("{title}: mean {mean:.1} %, worst {:+.1} % ({what}), {count} figures", worst * 100.0);
    }
}

/// Runs uniform random 4 KiB requests on a whole system in a closed loop with this queue depth.
pub fn random_4k(
    name: &str,
    system: SystemDescription,
    queue_depth: u32,
    reads_percent: f64,
    requests: u64,
) -> RunSpec {
    let entry = workloads().iter().find(|entry| entry.id == "random-read-4k").expect("the catalogue has it");
    let mut workload = Workload::from_toml(entry.file_name, entry.text).unwrap();
    workload.specification.lines[0].read_percent = reads_percent;
    workload.arrivals = Arrivals::Closed { queue_depth, think: Think::None };
    workload.run_length = RunLength::Requests(requests);
    RunSpec {
        system_name: name.to_owned(),
        system,
        demand: workload.into(),
        span: None,
        seed: 1,
        interval_ns: None,
        preload: 0,
        faults: None,
    }
}
