//! Compares published measurements of real drives with the unmodified descriptions of the catalogue.
//!
//! Run with `--nocapture` to print signed errors for each value, so that the largest errors are visible.

use headstack_catalogue::{disks, load_drive, workloads};
use headstack_result::score;
use headstack_sim::drive::description::{BlockOrder, DriveDescription, ReadAhead};
use headstack_sim::drive::geometry::zone_blocks;
use headstack_sim::replay::closed_responses_ns;
use headstack_sim::{RunSpec, run};
use headstack_trace::{ReadOptions, Record, TraceReader};
use headstack_workload::{Arrivals, RunLength, Think, Workload};

use crate::common::measurements;

const REQUESTS: u64 = 40_000;

fn workload(id: &str, queue_depth: u32) -> Workload {
    let entry = workloads().iter().find(|entry| entry.id == id).unwrap_or_else(|| panic!("no workload {id}"));
    let mut workload = Workload::from_toml(entry.file_name, entry.text).unwrap();
    workload.arrivals = Arrivals::Closed { queue_depth, think: Think::None };
    workload.run_length = RunLength::Requests(REQUESTS);
    workload
}

/// DiskSim 4.0's own demerit in ms with its parameters and traces, from its validation.
const DISKSIM_DEMERIT_MS: [(&str, f64); 5] =
    [("atlas10k", 0.2675), ("barracuda", 0.3479), ("cheetah9LP", 0.1071), ("dec_rz26", 0.3406), ("hp_c2247a", 0.0893)];

#[test]
fn replayed_traces_of_five_real_drives_come_out_at_least_as_well_as_in_disksim() {
    let Some(folder) = measurements("validation") else { return };
    let (mut as_good, mut relative) = (0, 0.0);
    for (name, disksim_ms) in DISKSIM_DEMERIT_MS {
        let imported = headstack_disksim::import(&folder.join(format!("disksim/{name}.parv"))).unwrap();
        let file = folder.join(format!("disksim/{name}.trace"));
        let trace = TraceReader::open(&[&file], &ReadOptions::default()).unwrap().read_all().unwrap();
        let ms = |ns: u64| ns as f64 / 1e6;
        let recorded = trace.iter().filter_map(Record::recorded);
        let responses_ns = closed_responses_ns(&imported.drives[0].description, recorded).unwrap();
        let simulated: Vec<f64> = responses_ns.into_iter().map(ms).collect();
        let measured: Vec<f64> = trace.iter().map(|record| ms(record.response_ns)).collect();
        let score = score(&simulated, &measured).unwrap();
        println!(
            "{name:12} mean {:.3} of {:.3} ms, demerit {:.4} ms ({:.2} %), as DiskSim bins it {:.4}, DiskSim {disksim_ms} ms",
            score.mean_simulated_ms,
            score.mean_measured_ms,
            score.demerit_ms,
            score.demerit_relative * 100.0,
            score.demerit_disksim_ms
        );
        as_good += usize::from(score.demerit_disksim_ms <= disksim_ms && score.demerit_ms <= disksim_ms);
        relative += score.demerit_relative / DISKSIM_DEMERIT_MS.len() as f64;
        assert!(score.demerit_ms <= 1.25 * disksim_ms && score.demerit_disksim_ms <= 1.25 * disksim_ms, "{name}");
    }
    println!("mean relative demerit {:.2} %", relative * 100.0);
    assert!(as_good >= 4);
    assert!(relative <= 0.03);
}

/// Returns the sustained rate of a zone by IBM's formula: the sectors of a track, divided by the time of a turn and of
/// the change to the next track, which the skew covers.
fn sustained_bytes_per_s(drive: &DriveDescription) -> f64 {
    let geometry = &drive.geometry;
    let (zone, heads) = (&geometry.zones[0], f64::from(geometry.heads));
    let turn_s = 60.0 / drive.mechanics.rpm;
    let skews = match geometry.order {
        // Nearly every change is to the next cylinder on the same surface.
        BlockOrder::SurfaceSerpentine { .. } => zone.cylinder_skew_turns,
        _ => ((heads - 1.0) * zone.track_skew_turns + zone.cylinder_skew_turns) / heads,
    };
    f64::from(zone.sectors_per_track) * f64::from(geometry.physical_sector_bytes) / (turn_s * (1.0 + skews))
}

#[test]
fn every_drive_streams_reads_at_its_sustained_rate() {
    for entry in disks() {
        let drive = load_drive(entry.id).unwrap().description;
        if matches!(drive.buffer.read_ahead, ReadAhead::Track | ReadAhead::None) {
            continue;
        }
        let zone_bytes = zone_blocks(&drive.geometry, 0) * u64::from(drive.geometry.physical_sector_bytes);
        // Queue depth 2: at depth 1, the fastest disks pass 64 KiB before the next command arrives and its data crosses
        // SATA.
        let mut streaming = workload("sequential-read-64k", 2);
        streaming.run_length = RunLength::Requests((zone_bytes / 65536).clamp(500, 8000) - 200);
        streaming.warm_up.requests = 100;
        let expected = sustained_bytes_per_s(&drive).min(1e9 / drive.interface.read_ns_per_byte * 0.9);
        let spec = RunSpec {
            system_name: entry.id.to_owned(),
            system: drive.into(),
            demand: streaming.into(),
            span: None,
            seed: 1,
            interval_ns: None,
            preload: 0,
            faults: None,
        };
        let rate = run(&spec, &|_| true).unwrap().throughput_bytes_per_s();
        println!("{:24} {:6.1} of {:6.1} MB/s", entry.id, rate / 1e6, expected / 1e6);
        assert!(
            (0.97..1.03).contains(&(rate / expected)),
            "{}: {:.1} MB/s, not {:.1}",
            entry.id,
            rate / 1e6,
            expected / 1e6
        );
    }
}
