//! StorageReview's experiment: Iometer recorded on one drive and replayed on seven, held against the published table.
//!
//! Run with `--nocapture` for the table, cell by cell.

use std::path::Path;

use headstack_catalogue::{load_drive, workloads};
use headstack_replay::{Replay, ReplayMode, in_memory};
use headstack_result::RunResult;
use headstack_sim::replay::{ReplaySpec, replay};
use headstack_sim::{Observed, RunSpec, SimError, SystemDescription, record, run};
use headstack_workload::{Arrivals, Recorded, RunLength, Span, Think, WarmUp, Workload};
use rayon::prelude::*;

/// The drive that was recorded.
const REFERENCE: &str = "cheetah-x15-36lp";
/// Its host addressed whole BIOS cylinders: 4,462 of 255 heads and 63 sectors.
const SECTORS: u64 = 4_462 * 255 * 63;
/// "The innermost request was for sector 71,682,019".
const INNERMOST_SECTOR: u64 = 71_682_019;
/// "Within these 80 minutes of activity, 1,184,172 requests were made".
const REQUESTS: f64 = 1_184_172.0;
const TRIAL_NS: u64 = 600_000_000_000;
/// Iometer's own score of the other drives, which needs no ten minutes.
const SCORED_REQUESTS: u64 = 40_000;

/// A row of the published table.
struct Cell {
    system: String,
    workload: String,
    outstanding: u32,
    ipeak_iops: f64,
    /// Percentages of the reference drive's scores, and their difference; none for itself.
    percent: Option<(f64, f64, f64)>,
}

fn published() -> Vec<Cell> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies/storagereview-replay/published.csv");
    let text = std::fs::read_to_string(path).unwrap();
    let cell = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        let number = |at: usize| fields[at].parse::<f64>();
        Cell {
            system: fields[0].to_owned(),
            workload: fields[1].to_owned(),
            outstanding: fields[2].parse().unwrap(),
            ipeak_iops: number(5).unwrap(),
            percent: number(4).ok().map(|iometer| (iometer, number(6).unwrap(), number(7).unwrap())),
        }
    };
    text.lines().skip(1).map(cell).collect()
}

fn system(id: &str) -> SystemDescription {
    load_drive(id).unwrap().description.into()
}

fn iometer(id: &str, workload: &str, outstanding: u32) -> RunSpec {
    let entry = workloads().iter().find(|entry| entry.id == workload).unwrap();
    let mut workload = Workload::from_toml(entry.file_name, entry.text).unwrap();
    workload.arrivals = Arrivals::Closed { outstanding, think: Think::None };
    workload.run_length = RunLength::Requests(SCORED_REQUESTS);
    let (system_name, system) = (id.to_owned(), system(id));
    // Trials are made one after the other: none repeats another's addresses.
    let seed = u64::from(outstanding);
    RunSpec { system_name, system, demand: workload.into(), span: None, seed, interval_ns: None, preload: 0 }
}

/// Ten minutes of Iometer on the reference drive, from the first request on.
fn trial(workload: &str, outstanding: u32) -> (RunResult, Vec<Recorded>) {
    let mut spec = iometer(REFERENCE, workload, outstanding);
    spec.span = Some(Span { start_bytes: 0, length_bytes: SECTORS * 512 });
    let headstack_sim::Demand::Workload(demand) = &mut spec.demand else { unreachable!("it is a workload") };
    demand.run_length = RunLength::TimeNs(TRIAL_NS);
    demand.warm_up = WarmUp { requests: 0, time_ns: 0 };
    let mut records = Vec::new();
    let mut hear = |observed: &Observed| records.push(observed.recorded);
    let result = record(&spec, &|_| true, &mut hear).unwrap();
    assert!(result.passed());
    (result, records)
}

/// The recording played back as fast as it goes at its own depth, as RankDisk does.
fn rank(id: &str, records: &[Recorded], outstanding: u32) -> f64 {
    let spec = ReplaySpec {
        system_name: id.to_owned(),
        system: system(id),
        replay: Replay::new(REFERENCE, ReplayMode::Asap { depth: outstanding }),
        seed: 1,
        interval_ns: None,
    };
    let result = replay::<SimError>(&spec, &mut in_memory(records.iter().copied()), &|_| true, None).unwrap();
    assert!(result.passed() && result.count() == records.len() as u64, "{id}: {:?}", result.checks);
    let fidelity = result.fidelity.as_ref().unwrap();
    assert_eq!((fidelity.reordered, fidelity.dropped, fidelity.folded, fidelity.rounded), (0, 0, 0, 0));
    result.throughput_per_s()
}

/// What one trial and its replays give.
struct Trial {
    requests: u64,
    last_sector: u64,
    highest_request_sector: u64,
    /// Cell by cell: Iometer's score and the replay's.
    scores: Vec<(f64, f64)>,
}

fn carry_out(cells: &[&Cell]) -> Trial {
    let (workload, outstanding) = (&cells[0].workload, cells[0].outstanding);
    let (result, records) = trial(workload, outstanding);
    let score = |cell: &&Cell| {
        let iometer_iops = match cell.system.as_str() {
            REFERENCE => result.throughput_per_s(),
            id => run(&iometer(id, workload, outstanding), &|_| true).unwrap().throughput_per_s(),
        };
        (iometer_iops, rank(&cell.system, &records, outstanding))
    };
    let ends = records.iter().map(|r| r.request.offset_bytes + u64::from(r.request.length_bytes));
    Trial {
        requests: result.count(),
        last_sector: ends.max().unwrap() / 512 - 1,
        highest_request_sector: records.iter().map(|r| r.request.offset_bytes).max().unwrap() / 512,
        scores: cells.par_iter().map(score).collect(),
    }
}

fn mean_absolute(errors: &[f64]) -> f64 {
    errors.iter().map(|error| error.abs()).sum::<f64>() / errors.len() as f64
}

#[test]
fn iometer_recorded_on_one_drive_and_replayed_on_seven_follows_storage_review() {
    let table = published();
    let drives: Vec<&str> =
        table.iter().filter(|c| c.outstanding == 1 && c.workload == "web-server").map(|c| c.system.as_str()).collect();
    let loads: Vec<(&str, u32)> = table.iter().take(8).map(|c| (c.workload.as_str(), c.outstanding)).collect();
    let columns: Vec<Vec<&Cell>> = loads
        .iter()
        .map(|&(workload, depth)| table.iter().filter(|c| c.workload == workload && c.outstanding == depth).collect())
        .collect();
    let trials: Vec<Trial> = columns.par_iter().map(|cells| carry_out(cells)).collect();

    let requests: u64 = trials.iter().map(|trial| trial.requests).sum();
    let highest = trials.iter().map(|trial| trial.highest_request_sector).max().unwrap();
    let last = trials.iter().map(|trial| trial.last_sector).max().unwrap();
    println!(
        "{requests} requests in 80 minutes, {:+.2} %; highest request at sector {highest}, last sector {last}",
        (requests as f64 / REQUESTS - 1.0) * 100.0
    );

    let (mut ipeak, mut percents, mut gains, mut wrong) = (vec![], vec![], vec![], vec![]);
    for (row, drive) in drives.iter().enumerate() {
        let mut lines = [format!("{drive:18}IPEAK"), format!("{:18}%    ", ""), format!("{:18}gain ", "")];
        for (trial, cells) in trials.iter().zip(&columns) {
            let (cell, (iometer_iops, ipeak_iops)) = (cells[row], trial.scores[row]);
            assert_eq!(cell.system, *drive);
            let reference = trial.scores[0];
            ipeak.push(ipeak_iops / cell.ipeak_iops - 1.0);
            lines[0] += &format!("  {ipeak_iops:>6.0}/{:<6.0}", cell.ipeak_iops);
            let Some((_, ipeak_percent, gain)) = cell.percent else { continue };
            let percent = ipeak_iops / reference.1 * 100.0;
            let points = percent - iometer_iops / reference.0 * 100.0;
            lines[1] += &format!("  {percent:>6.2}/{ipeak_percent:<6.2}");
            lines[2] += &format!("  {points:>6.2}/{gain:<6.2}");
            percents.push(percent - ipeak_percent);
            gains.push(points - gain);
            if points * gain <= 0.0 {
                wrong.push((*drive, cell.workload.as_str(), cell.outstanding, points, gain));
            }
        }
        lines.iter().for_each(|line| println!("{line}"));
    }
    println!("IPEAK mean absolute error {:.2} %", mean_absolute(&ipeak) * 100.0);
    println!("percentage of the reference: mean absolute error {:.2} points", mean_absolute(&percents));
    println!("gain: mean absolute error {:.2} points; of another sign: {wrong:?}", mean_absolute(&gains));

    assert!(mean_absolute(&ipeak) <= 0.05 && mean_absolute(&gains) <= 2.0);
    // The 36 GB drives gain nothing: the published figures are rounding and chance, all below a point. The others gain.
    let short_stroked = |(drive, ..): &&(&str, &str, u32, f64, f64)| !["mam3367", "ultrastar-36z15"].contains(drive);
    assert_eq!(wrong.iter().filter(short_stroked).count(), 0);
    assert!(wrong.iter().all(|(.., points, gain)| points.abs() < 1.0 && gain.abs() < 1.0));
    // As many as the model's rate at 64 outstanding allows, which is a tenth too low on this drive.
    assert!((requests as f64 / REQUESTS - 1.0).abs() <= 0.04);
    // The largest of a million uniform draws: the drive's last kilobytes, and nothing behind the last whole cylinder.
    assert!(last < SECTORS && last.abs_diff(INNERMOST_SECTOR) < 500);
}
