//! What `smartctl -j -a` would say of simulated devices: its shape, and that its counters follow what was injected.
//!
//! The reports are kept in tests/python/samples/inspect, where Python's inspection reads them;
//! `HEADSTACK_WRITE_SAMPLES=1 cargo test -p headstack-live smart` renews them.

use std::fs;
use std::path::Path;

use crate::common::*;
use headstack_live::smart::reports;
use headstack_sim::Outcome;
use serde_json::Value;

const HOUR: u64 = 3600 * S;

/// Holds a report against the sample that Python reads.
fn matches_sample(name: &str, report: &Value) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/python/samples/inspect");
    let path = folder.join(format!("live-{name}.smartctl.json"));
    let text = serde_json::to_string_pretty(report).unwrap() + "\n";
    if std::env::var_os("HEADSTACK_WRITE_SAMPLES").is_some() {
        fs::write(&path, &text).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == text, "{} is not current: see the head of this file", path.display());
}

fn raw(report: &Value, id: u64) -> Option<u64> {
    let rows = report["ata_smart_attributes"]["table"].as_array().expect("a table");
    rows.iter().find(|row| row["id"] == id).map(|row| row["raw"]["value"].as_u64().expect("a number"))
}

fn bad(first_gib: u64) -> String {
    format!(
        "[[fault]]\nat = \"1s\"\nwhat = \"media-error\"\ntime = \"2s\"\nranges = [{{ offset = \"{first_gib}GiB\", length = \"64KiB\" }}]\n"
    )
}

#[test]
fn sata_attributes_follow_injected_faults() {
    let links = "[[fault]]\nat = \"100s\"\nfor = \"100s\"\nwhat = \"link-errors\"\npercent = 100\ntime-out = \"1s\"\n";
    let mut session = Virtual::new(&model("wd1200bb"), &(bad(10) + links));
    let report = |session: &Virtual, at_ns: u64| reports(&session.timeline, at_ns)[0].clone();
    let counters = |report: &Value| [5, 187, 197, 198, 199].map(|id| raw(report, id).unwrap());
    assert_eq!(counters(&report(&session, 0)), [0, 0, 0, 0, 0]);
    session.arrive(2 * S, read(10 * GIB));
    session.advance(20 * S);
    assert_eq!(session.answer(0).unwrap().outcome, Outcome::Failed(Some(10 * GIB)));
    assert_eq!(counters(&report(&session, 20 * S)), [0, 1, 1, 1, 0], "pending");
    session.arrive(21 * S, forced(10 * GIB));
    session.arrive(110 * S, read(0));
    session.advance(200 * S);
    let found = report(&session, 5 * HOUR);
    assert_eq!(counters(&found), [8, 1, 0, 0, 6], "the write moved eight sectors; the read was sent six times");
    assert_eq!((raw(&found, 9), raw(&found, 12), raw(&found, 241)), (Some(5), Some(1), Some(8)));
    assert_eq!(found["device"]["protocol"], "ATA");
    assert_eq!(found["smart_status"]["passed"], true);
    matches_sample("sata", &found);
}

#[test]
fn too_many_spares_fail_the_verdict() {
    let mut session = Virtual::new(&model("wd1200bb"), &bad(10));
    (0..16).for_each(|number| session.arrive(2 * S + number * S, forced(10 * GIB + number * 4 * KIB)));
    session.advance(100 * S);
    let report = reports(&session.timeline, 100 * S)[0].clone();
    assert_eq!((raw(&report, 5), &report["smart_status"]["passed"]), (Some(128), &Value::Bool(false)));
    assert_eq!(report["smartctl"]["exit_status"], 8 | 16);
}

#[test]
fn scsi_drives_have_error_counters() {
    let weak = "[[fault]]\nat = \"1s\"\nwhat = \"weak-sectors\"\nturns = 4\n\
                ranges = [{ offset = \"2GiB\", length = \"64KiB\" }]\n";
    let mut session = Virtual::new(&model("atlas-10k-9"), &(bad(1) + weak));
    session.arrive(2 * S, read(GIB));
    session.arrive(10 * S, read(2 * GIB));
    session.arrive(20 * S, forced(GIB));
    session.advance(60 * S);
    let report = reports(&session.timeline, HOUR)[0].clone();
    let read = &report["scsi_error_counter_log"]["read"];
    assert_eq!((&read["total_uncorrected_errors"], &read["total_errors_corrected"]), (&1.into(), &4.into()));
    assert_eq!(report["scsi_grown_defect_list"], 8);
    assert_eq!(report["scsi_transport_protocol"]["name"], "Parallel SCSI (SPI-4)");
    matches_sample("scsi", &report);
}

#[test]
fn a_scsi_drive_announces_its_failure_while_every_read_succeeds() {
    let weak = "[[fault]]\nat = \"1s\"\nwhat = \"weak-sectors\"\nturns = 1\n\
                ranges = [{ offset = \"2GiB\", length = \"64MiB\" }]\n";
    let mut session = Virtual::new(&model("cheetah-4lp"), weak);
    (0..93).for_each(|number| session.arrive(2 * S + number * S, read(2 * GIB + number * 512 * KIB)));
    session.advance(100 * S);
    let before = reports(&session.timeline, 100 * S)[0].clone();
    assert_eq!((&before["smart_status"]["passed"], &before["smartctl"]["exit_status"]), (&true.into(), &0.into()));
    session.arrive(101 * S, read(2 * GIB + 60 * 1024 * KIB));
    session.advance(110 * S);
    let report = reports(&session.timeline, 110 * S)[0].clone();
    let said = "FAILURE PREDICTION THRESHOLD EXCEEDED";
    let status = serde_json::json!({ "passed": false, "scsi": { "asc": 0x5d, "ascq": 0, "ie_string": said } });
    assert_eq!((&report["smart_status"], &report["smartctl"]["exit_status"]), (&status, &8.into()));
    assert_eq!(report["scsi_error_counter_log"]["read"]["total_uncorrected_errors"], 0);
    assert!((0..94).all(|number| session.answer(number).unwrap().outcome == Outcome::Done), "nothing is lost");
}

#[test]
fn an_nvme_drive_has_its_health_log() {
    let mut session = Virtual::new(&model("dc-p4500-1tb"), &bad(1));
    session.arrive(2 * S, write(GIB));
    session.arrive(10 * S, read(GIB + 32 * KIB));
    session.advance(60 * S);
    assert_eq!(session.answer(1).unwrap().outcome, Outcome::Failed(Some(GIB + 32 * KIB)));
    let report = reports(&session.timeline, 2 * HOUR)[0].clone();
    let log = &report["nvme_smart_health_information_log"];
    assert_eq!((&log["media_errors"], &log["data_units_written"]), (&1.into(), &1.into()));
    assert_eq!((&log["power_on_hours"], &log["unsafe_shutdowns"]), (&2.into(), &0.into()));
    assert_eq!(report["device"]["protocol"], "NVMe");
    matches_sample("nvme", &report);
}

#[test]
fn a_member_that_failed_cannot_be_opened() {
    let text = "[[fault]]\nat = \"1s\"\nwhat = \"member-fails\"\nmember = \"d3\"\n";
    let mut session = Virtual::new(&model("md-raid5-8x2tb"), text);
    session.advance(2 * S);
    let reports = reports(&session.timeline, 2 * S);
    let names: Vec<&str> = reports.iter().map(|report| report["device"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7"]);
    let open = |number: usize| reports[number].get("model_name").is_some();
    assert_eq!([open(2), open(3), open(4)], [true, false, true]);
    assert_eq!(reports[3]["smartctl"]["exit_status"], 2);
}
