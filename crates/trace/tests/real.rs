//! Real traces, held against figures that were computed from them by other programs. They are no part of the project.

use crate::reading;
use std::path::Path;
use std::process::Command;

use crate::reading::shared;
use headstack_trace::analyze::{Analysis, Options};
use headstack_trace::{Clock, Meta, Operation, ReadOptions, Record, TraceReader};
use rustc_hash::{FxHashMap, FxHashSet};

fn read(path: &Path) -> (Vec<Record>, Meta) {
    let mut reader = TraceReader::open(&[path], &ReadOptions::default()).unwrap();
    let records = reader.read_all().unwrap();
    (records, reader.meta().clone())
}

fn count(records: &[Record], is_counted: impl Fn(&Record) -> bool) -> usize {
    records.iter().filter(|record| is_counted(record)).count()
}

#[test]
fn vscsi_has_its_figures() {
    let Some(path) = shared("traces/cloudphysics/cloudPhysicsIO.vscsi") else { return };
    let (records, meta) = read(&path);
    assert_eq!((meta.origin[0].format.as_str(), meta.clock), ("vscsi", Clock::Boot));
    assert_eq!(records.len(), 113_872);
    assert_eq!(count(&records, |r| r.operation == Operation::Read), 46_974);
    assert_eq!(count(&records, |r| r.operation == Operation::Write), 66_898);
    assert!(records.is_sorted_by_key(|record| record.arrival_ns));
    assert_eq!(records[0].arrival_ns, 5_633_898_368_802_000);
    let span_ns = records[records.len() - 1].arrival_ns - records[0].arrival_ns;
    assert_eq!((span_ns + 500_000) / 1_000_000, 7_200_090);
    assert_eq!(records.iter().map(|r| u64::from(r.length_bytes)).sum::<u64>(), 4_205_978_112);
    assert_eq!(count(&records, |r| r.length_bytes == 65_536), 38_389);
    assert_eq!(records.iter().map(|r| r.length_bytes).min(), Some(512));
    assert_eq!(records.iter().map(|r| r.length_bytes).max(), Some(69_632));
    assert_eq!(records.iter().map(Record::end_bytes).max(), Some(65_595_583 * 512));
}

#[test]
fn vscsi_agrees_with_its_csv() {
    let binary = shared("traces/cloudphysics/cloudPhysicsIO.vscsi");
    let (Some(binary), Some(csv)) = (binary, shared("traces/cloudphysics/cloudPhysicsIO.csv")) else { return };
    let (records, _) = read(&binary);
    let csv = std::fs::read_to_string(csv).unwrap();
    let lines: Vec<&str> = csv.lines().skip(1).collect();
    assert_eq!(lines.len(), records.len());
    for (line, record) in lines.iter().zip(&records) {
        let field: Vec<&str> = line.split(',').map(str::trim).collect();
        let operation = match field[2] {
            "28" => Operation::Read,
            "2a" | "2A" => Operation::Write,
            other => panic!("{other}"),
        };
        let number = |index: usize| field[index].parse::<u64>().unwrap();
        let said = (number(1), operation, number(3), number(4) * 512);
        let read = record.arrival_ns / 1_000_000_000;
        assert_eq!((read, record.operation, u64::from(record.length_bytes), record.offset_bytes), said, "{line}");
    }
}

/// Misses of an LRU cache of `objects` blocks, a block known by its first byte.
fn lru_hits(records: &[Record], objects: usize) -> usize {
    // The latest access of each block, and which accesses are the latest of theirs, in a tree of counts.
    let mut latest: FxHashMap<u64, usize> = FxHashMap::default();
    let mut tree = vec![0i32; records.len() + 1];
    let add = |tree: &mut [i32], index: usize, value: i32| {
        let mut node = index + 1;
        while node < tree.len() {
            tree[node] += value;
            node += node & node.wrapping_neg();
        }
    };
    let up_to = |tree: &[i32], index: usize| {
        let (mut node, mut sum) = (index + 1, 0);
        while node > 0 {
            sum += tree[node];
            node -= node & node.wrapping_neg();
        }
        sum
    };
    let mut hits = 0;
    for (index, record) in records.iter().enumerate() {
        if let Some(earlier) = latest.insert(record.offset_bytes, index) {
            let since = latest.len() as i32 - up_to(&tree, earlier);
            hits += usize::from(since < objects as i32);
            add(&mut tree, earlier, -1);
        }
        add(&mut tree, index, 1);
    }
    hits
}

#[test]
fn oracle_general_agrees_with_vscsi_and_its_figures() {
    let oracle = shared("traces/cloudphysics/cloudPhysicsIO.oracleGeneral.bin");
    let (Some(oracle), Some(vscsi)) = (oracle, shared("traces/cloudphysics/cloudPhysicsIO.vscsi")) else { return };
    let ((records, meta), (commands, _)) = (read(&oracle), read(&vscsi));
    assert_eq!((meta.origin[0].format.as_str(), meta.resolution_ns), ("oracle-general", 1_000_000_000));
    assert_eq!(records.len(), commands.len());
    assert!(records.iter().all(|record| record.operation == Operation::Unknown));
    let mut other_sizes = 0;
    let mut first: FxHashMap<u64, u32> = FxHashMap::default();
    for (record, command) in records.iter().zip(&commands) {
        assert_eq!(record.arrival_ns, command.arrival_ns / 1_000_000_000 * 1_000_000_000);
        assert_eq!(record.offset_bytes, command.offset_bytes);
        assert_eq!(record.length_bytes, *first.entry(command.offset_bytes).or_insert(command.length_bytes));
        other_sizes += usize::from(record.length_bytes != command.length_bytes);
    }
    assert_eq!((other_sizes, first.len()), (13_671, 48_974));
    let hits = [1, 10, 100, 1_000, 5_000, 10_000, 20_000, 40_000, 50_000].map(|objects| lru_hits(&records, objects));
    assert_eq!(hits, [2_685, 6_252, 13_657, 19_049, 22_345, 34_434, 41_819, 64_878, 64_898]);
}

/// The five validation traces of DiskSim 4.0: requests, mean service time in ms, mean blocks, mean think time in ms.
const VALIDATE: [(&str, usize, f64, f64, f64); 5] = [
    ("atlas10k", 10_000, 3.893, 6.31, 46.19),
    ("barracuda", 10_000, 6.627, 6.33, 43.43),
    ("cheetah9LP", 10_000, 4.273, 6.32, 45.49),
    ("dec_rz26", 7_980, 15.809, 16.87, 13.87),
    ("hp_c2247a", 9_999, 15.298, 16.50, 14.19),
];

#[test]
fn validate_traces_give_their_think_times_back() {
    for (name, requests, service_ms, blocks, think_ms) in VALIDATE {
        let Some(path) = shared(&format!("validation/disksim/{name}.trace")) else { continue };
        let (records, meta) = read(&path);
        assert_eq!((meta.origin[0].format.as_str(), records.len()), ("validate", requests), "{name}");
        assert_eq!((records[0].arrival_ns, meta.resolution_ns), (0, 1), "{name}");
        let text = std::fs::read_to_string(&path).unwrap();
        let think_us = |line: &str| line.split_whitespace().nth(5).unwrap().parse::<f64>().unwrap();
        let think_ns: Vec<u64> = text.lines().map(|line| (think_us(line) * 1e3).round() as u64).collect();
        for (pair, &think_ns) in records.windows(2).zip(&think_ns) {
            assert_eq!(pair[1].arrival_ns - pair[0].completion_ns().unwrap(), think_ns, "{name}");
        }
        let mean = |figure: fn(&Record) -> f64| records.iter().map(figure).sum::<f64>() / requests as f64;
        let is_close = |a: f64, b: f64, digits: i32| (a - b).abs() <= 0.5001 * 10f64.powi(-digits);
        assert!(is_close(mean(|r| r.response_ns as f64 / 1e6), service_ms, 3), "{name}");
        assert!(is_close(mean(|r| f64::from(r.length_bytes) / 512.0), blocks, 2), "{name}");
        let idle_ns = records.windows(2).map(|p| p[1].arrival_ns - p[0].completion_ns().unwrap()).sum::<u64>();
        let last_ns = think_ns[requests - 1];
        assert!(is_close((idle_ns + last_ns) as f64 / 1e6 / requests as f64, think_ms, 2), "{name}");
        let kinds: FxHashSet<Operation> = records.iter().map(|record| record.operation).collect();
        assert!(kinds.iter().all(|kind| matches!(kind, Operation::Read | Operation::Write)), "{name}");
    }
}

#[test]
fn other_real_traces_are_of_none_of_these_formats() {
    let binary = ["vscsi", "oracle-general", "srt", "validate", "iolog"];
    for path in [
        "traces/blktrace/loop0_poisson1500_8s.blktrace.bin",
        "traces/blktrace/loop0_220k_zipf.blktrace.bin.xz",
        "traces/disksim/ascii.trace",
        "traces/mqsim/tpcc-small.trace",
        "traces/mqsim/wsrch-small.trace",
        "traces/hfplayer/sampleTrace.csv",
        "traces/systor17/systor17-traces-sample.csv",
        "traces/msr/msr-cambridge1-sample.csv",
        "traces/cloudphysics/cloudPhysicsIO.csv",
    ] {
        let Some(path) = shared(path) else { continue };
        if let Ok(reader) = TraceReader::open(&[&path], &ReadOptions::default()) {
            let format = &reader.meta().origin[0].format;
            assert!(!binary.contains(&format.as_str()), "{} is taken for {format}", path.display());
        }
    }
}

/// A file of the shape of another format, read as it: an error of a place, not nonsense.
#[test]
fn a_sister_read_as_the_other_is_refused() {
    let Some(path) = shared("traces/cloudphysics/cloudPhysicsIO.oracleGeneral.bin") else { return };
    let bytes = std::fs::read(path).unwrap();
    assert!(reading::read(&bytes, Some(headstack_trace::Format::Vscsi), false).is_err());
    let (cut, _) = reading::read(&bytes[..24 * 50_000], None, false).unwrap();
    assert_eq!(cut.len(), 50_000);
    let error = reading::read(&bytes[..24 * 50_000 + 7], None, false).unwrap_err();
    assert_eq!(error.to_string(), "trace: record 50001: the file ends after 7 bytes of it");
}

#[test]
fn fio_logs_match_fios_report() {
    let folder = std::env::temp_dir().join(format!("headstack-fio-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let output = Command::new("fio")
        .args(["--name=w", "--ioengine=null", "--rw=randrw", "--size=4m", "--nrfiles=2", "--fsync=5"])
        .args(["--write_iolog=w.log", "--output-format=json"])
        .current_dir(&folder)
        .output();
    let Ok(output) = output else {
        headstack_needs::lacks(headstack_needs::Need::Programs, "fio is not installed");
        return;
    };
    let (records, meta) = read(&folder.join("w.log"));
    std::fs::remove_dir_all(&folder).unwrap();
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    let report: serde_json::Value = serde_json::from_str(&report[report.find('{').unwrap()..]).unwrap();
    assert_eq!((meta.origin[0].format.as_str(), meta.devices.len()), ("iolog", 2));
    for (name, operation) in [("read", Operation::Read), ("write", Operation::Write), ("sync", Operation::Flush)] {
        let said = &report["jobs"][0][name]["total_ios"];
        assert_eq!(*said, count(&records, |record| record.operation == operation), "{name}");
    }
}

#[test]
fn percentiles_of_response_times_are_those_of_the_files() {
    for (name, mean_us, greatest_us) in
        [("msr/msr-cambridge1-sample.csv", 989.5, 28_412.5), ("systor17/systor17-traces-sample.csv", 3_862.0, 73_935.0)]
    {
        let Some(path) = shared(&format!("traces/{name}")) else { continue };
        let (records, meta) = read(&path);
        let mut analysis = Analysis::new(Options::default()).unwrap();
        analysis.add(&records);
        let found = analysis.finish(&meta).response.all_ns.unwrap();
        assert!((found.mean / 1e3 - mean_us).abs() <= 0.5, "{name}: {found:?}");
        assert_eq!(found.max as f64 / 1e3, greatest_us, "{name}");
        let mut sorted: Vec<u64> = records.iter().map(|record| record.response_ns).collect();
        sorted.sort_unstable();
        for (share, found) in [(0.5, found.p50), (0.9, found.p90), (0.99, found.p99)] {
            let exact = sorted[(share * sorted.len() as f64).ceil() as usize - 1];
            assert!(found >= exact && found - exact <= exact / 1_000, "{name}: {found} is not {exact}");
        }
    }
}
