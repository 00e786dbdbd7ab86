//! Compares real traces with figures from other programs.

use super::*;

/// Returns a file from the samples directory, if it exists.
fn shared(path: &str) -> Option<Vec<u8>> {
    let shared = std::env::var_os("HEADSTACK_SHARED")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"), PathBuf::from);
    let path = shared.join("traces").join(path);
    let bytes = std::fs::read(&path).ok();
    if bytes.is_none() {
        headstack_needs::lacks(headstack_needs::Need::Data, format_args!("{} is missing", path.display()));
    }
    bytes
}

/// Expected figures of a file.
struct Figures {
    path: &'static str,
    format: Format,
    reads: usize,
    writes: usize,
    /// Bytes read and written.
    bytes: u64,
    first_ns: u64,
    span_ns: u64,
    highest_end_bytes: Option<u64>,
    devices: usize,
    /// Mean response time in units of 100 ns, rounded.
    mean_response_100ns: Option<u64>,
}

const FILES: [Figures; 8] = [
    Figures {
        path: "msr/msr-cambridge1-sample.csv",
        format: Format::Msr,
        reads: 508,
        writes: 492,
        bytes: 6_108_672 + 3_580_928,
        first_ns: 1_172_164_929_551_466_300,
        span_ns: 127_233_000_000,
        highest_end_bytes: Some(13_575_029_248),
        devices: 1,
        mean_response_100ns: Some(9_895),
    },
    Figures {
        path: "systor17/systor17-traces-sample.csv",
        format: Format::Systor,
        reads: 826,
        writes: 173,
        bytes: 39_122_432,
        first_ns: 0,
        span_ns: 2_448_000_000,
        highest_end_bytes: None,
        devices: 1,
        mean_response_100ns: Some(38_620),
    },
    Figures {
        path: "systor17/systor17-additional-sample.csv",
        format: Format::Systor,
        reads: 700,
        writes: 299,
        bytes: 20_692_480,
        first_ns: 0,
        span_ns: 1_331_000_000,
        highest_end_bytes: None,
        devices: 1,
        mean_response_100ns: Some(53_370),
    },
    Figures {
        path: "cloudphysics/cloudPhysicsIO.csv",
        format: Format::CloudPhysics,
        reads: 46_974,
        writes: 66_898,
        bytes: 4_205_978_112,
        first_ns: 5_633_898_000_000_000,
        span_ns: 7_200_000_000_000,
        highest_end_bytes: Some(65_595_583 * 512),
        devices: 1,
        mean_response_100ns: None,
    },
    Figures {
        path: "hfplayer/sampleTrace.csv",
        format: Format::Hfplayer,
        reads: 19,
        writes: 0,
        bytes: 19 * 1_024,
        first_ns: 50_000,
        span_ns: 900_000,
        highest_end_bytes: None,
        devices: 1,
        mean_response_100ns: None,
    },
    Figures {
        path: "disksim/ascii.trace",
        format: Format::DiskSim,
        reads: 79_634,
        writes: 20_366,
        bytes: 1_016_678 * 512,
        first_ns: 13_191_135,
        span_ns: 1_532_949_045_363 - 13_191_135,
        highest_end_bytes: Some(2_376_020 * 512),
        devices: 14,
        mean_response_100ns: None,
    },
    Figures {
        path: "mqsim/tpcc-small.trace",
        format: Format::MqSim,
        reads: 4_381,
        writes: 2_618,
        bytes: 116_638 * 512,
        first_ns: 938_513_000,
        span_ns: 136_489_000,
        highest_end_bytes: None,
        devices: 16,
        mean_response_100ns: None,
    },
    Figures {
        path: "mqsim/wsrch-small.trace",
        format: Format::MqSim,
        reads: 24_779,
        writes: 4,
        bytes: 746_324 * 512,
        first_ns: 11_413_000,
        span_ns: 60_055_200_000,
        highest_end_bytes: None,
        devices: 6,
        mean_response_100ns: None,
    },
];

#[test]
fn real_traces_have_their_figures() {
    for figures in &FILES {
        let Some(bytes) = shared(figures.path) else { continue };
        let path = figures.path;
        let input = Input::from_bytes(path, bytes.clone()).unwrap();
        let fitting: Vec<Format> = Format::ALL.into_iter().filter(|format| format.fits(input.head())).collect();
        assert_eq!(fitting, [figures.format], "{path}");
        let (records, meta) = read(&bytes, &ReadOptions::default()).unwrap();
        let count = |operation| records.iter().filter(|record| record.operation == operation).count();
        assert_eq!((count(Operation::Read), count(Operation::Write)), (figures.reads, figures.writes), "{path}");
        assert_eq!(records.len(), figures.reads + figures.writes, "{path}");
        assert_eq!(records.iter().map(|record| u64::from(record.length_bytes)).sum::<u64>(), figures.bytes, "{path}");
        let arrivals = || records.iter().map(|record| record.arrival_ns);
        let (first_ns, last_ns) = (arrivals().min().unwrap(), arrivals().max().unwrap());
        if figures.first_ns > 0 {
            assert_eq!(first_ns, figures.first_ns, "{path}");
        }
        // The expected figure is known to the millisecond or to 100 µs.
        assert!((last_ns - first_ns).abs_diff(figures.span_ns) <= 500_000, "{path}: {}", last_ns - first_ns);
        if let Some(end_bytes) = figures.highest_end_bytes {
            assert_eq!(records.iter().map(Record::end_bytes).max(), Some(end_bytes), "{path}");
        }
        assert_eq!(meta.devices.len(), figures.devices, "{path}");
        if let Some(expected) = figures.mean_response_100ns {
            let sum: u64 = records.iter().map(|record| record.response_ns).sum();
            assert!((sum / records.len() as u64).abs_diff(expected * 100) <= 600, "{path}");
        }
        assert!(records.is_sorted_by_key(|record| record.arrival_ns), "{path}");
        assert_eq!((meta.rejected, meta.counts.len()), (0, 0), "{path}");
    }
}

#[test]
fn response_times_are_not_taken_from_ticks() {
    let Some(bytes) = shared("hfplayer/sampleDepTrace.csv") else { return };
    let (records, _) = read(&bytes, &ReadOptions::default()).unwrap();
    let us: Vec<(u64, u64)> = records.iter().map(|r| (r.arrival_ns / 1_000, r.response_ns / 1_000)).collect();
    assert_eq!(us, [(0, 20), (50, 245), (100, 190), (150, 135), (200, 80), (250, 10), (300, 20)]);
}

#[test]
fn real_traces_are_written_as_they_were() {
    if let Some(bytes) = shared("msr/msr-cambridge1-sample.csv") {
        let (records, meta) = read(&bytes, &ReadOptions::default()).unwrap();
        let mut written = Vec::new();
        let mut writer = crate::export::msr::Writer::new(&mut written);
        writer.write(&records, &meta).unwrap();
        assert!(writer.finish().unwrap().is_empty());
        assert!(written == bytes, "the output is identical");
    }
    if let Some(bytes) = shared("disksim/ascii.trace") {
        let (records, meta) = read(&bytes, &ReadOptions::default()).unwrap();
        let mut written = Vec::new();
        let mut writer = crate::export::disksim::Writer::new(&mut written);
        writer.write(&records, &meta).unwrap();
        assert!(writer.finish().unwrap().is_empty());
        // The original columns are separated by tabs.
        assert!(String::from_utf8(written).unwrap() == String::from_utf8(bytes).unwrap().replace('\t', " "));
    }
}
