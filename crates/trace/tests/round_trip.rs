//! What is stored or written in another program's format is read again as it was, but for what that format cannot hold.

use crate::reading;
use std::path::{Path, PathBuf};

use crate::reading::{CSV_COLUMNS, Folder};
use headstack_trace::export::{ExportFormat, Losses, export};
use headstack_trace::{
    Clock, CsvColumns, DeviceMeta, Flags, Format, Meta, NOT_RECORDED, Operation, ReadOptions, Record, ResponseSpan,
    StoreWriter, TraceReader, import,
};
use proptest::prelude::*;

/// What requests must be like for a format to hold all of them.
struct Holds {
    clock: Clock,
    /// The arrival of the first request, and the unit of times.
    first_ns: u64,
    unit_ns: u64,
    /// The unit of addresses and lengths, and how many of them a device has.
    sector_bytes: u32,
    sectors: u64,
    operations: &'static [Operation],
    has_responses: bool,
    flags: Flags,
    devices: [&'static str; 2],
}

fn holds(format: ExportFormat) -> Holds {
    use Operation::{Flush, Read, Trim, Write};
    const WHOLE: Holds = Holds {
        clock: Clock::Recording,
        first_ns: 0,
        unit_ns: 1,
        sector_bytes: 512,
        sectors: 1 << 53,
        operations: &[Read, Write],
        has_responses: true,
        flags: Flags(0),
        devices: ["8,0", "8,16"],
    };
    match format {
        ExportFormat::Blkparse | ExportFormat::Blktrace => {
            Holds { operations: &[Read, Write, Trim], flags: Flags::SYNC.with(Flags::METADATA), ..WHOLE }
        }
        ExportFormat::DiskSim => {
            Holds { sectors: 1 << 30, has_responses: false, flags: Flags::SYNC, devices: ["0", "17"], ..WHOLE }
        }
        // A log begins a microsecond after its start.
        ExportFormat::Iolog => Holds {
            first_ns: 1_000,
            unit_ns: 1_000,
            sector_bytes: 1,
            operations: &[Read, Write, Trim, Flush],
            has_responses: false,
            devices: ["/dev/sda", "b.0"],
            ..WHOLE
        },
        ExportFormat::Msr => Holds {
            clock: Clock::Unix,
            first_ns: 1_172_164_929_551_466_300,
            unit_ns: 100,
            sector_bytes: 1,
            devices: ["hm.0", "a b.1"],
            ..WHOLE
        },
    }
}

fn requests(format: ExportFormat) -> impl Strategy<Value = (ExportFormat, Vec<Record>)> {
    let holds = holds(format);
    let one =
        (0u64..1 << 30, 1u32..1 << 12, any::<prop::sample::Index>(), prop::option::of(0u64..1 << 20), any::<u8>());
    prop::collection::vec(one, 1..60).prop_map(move |requests| {
        // Two requests under way with one address would be told apart by their order alone.
        let stride = holds.sectors / requests.len() as u64;
        let mut arrival_ns = holds.first_ns;
        let record = |(index, (gap, sectors, operation, response, chance)): (
            u64,
            (u64, u32, prop::sample::Index, Option<u64>, u8),
        )| {
            let operation = *operation.get(holds.operations);
            let offset_bytes = (index * stride + gap % (stride - (1 << 12))) * u64::from(holds.sector_bytes);
            let mut record = Record::new(arrival_ns, operation, offset_bytes, sectors * holds.sector_bytes);
            if operation == Operation::Flush {
                (record.offset_bytes, record.length_bytes) = (0, 0);
            }
            let response = response.filter(|_| holds.has_responses);
            record.response_ns = response.map_or(NOT_RECORDED, |response| response * holds.unit_ns);
            record.device = u32::from(chance & 1);
            record.flags = if chance & 2 == 0 { Flags::default() } else { holds.flags };
            arrival_ns += gap % 1_000 * holds.unit_ns;
            record
        };
        (format, (0..).zip(requests).map(record).collect())
    })
}

fn open(path: &Path) -> TraceReader {
    let csv = (path.file_name().unwrap() == "csv.csv").then(|| CsvColumns::parse(CSV_COLUMNS).unwrap());
    TraceReader::open(&[path], &ReadOptions { csv, ..ReadOptions::default() }).unwrap()
}

fn exported(from: &Path, to: &Path, format: ExportFormat) -> Losses {
    export(&mut open(from), to, format, &mut |_| true).unwrap()
}

/// Records with the names of their devices, in an order that does not hang on how ties are written.
fn named(mut records: Vec<Record>, meta: &Meta) -> Vec<(Record, String)> {
    records.sort_by_key(|record| (record.arrival_ns, record.device, record.offset_bytes, record.length_bytes));
    let name = |record: &Record| meta.devices[record.device as usize].name.clone();
    let mut named: Vec<_> = records.iter().map(|record| (Record { device: 0, ..*record }, name(record))).collect();
    named.sort_by(|a, b| (a.0.arrival_ns, &a.1, a.0.offset_bytes).cmp(&(b.0.arrival_ns, &b.1, b.0.offset_bytes)));
    named
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_format_round_trips_its_fields((format, records) in prop::sample::select(&ExportFormat::ALL[..]).prop_flat_map(requests)) {
        let holds = holds(format);
        let devices = holds.devices.map(|name| DeviceMeta { name: name.to_owned(), ..DeviceMeta::default() });
        let response = holds.has_responses.then_some(ResponseSpan::QueueToCompletion);
        let meta =
            Meta { clock: holds.clock, resolution_ns: 1, response, devices: devices.into(), ..Meta::default() };
        let folder = Folder::new("held");
        let (stored, text) = (folder.file("t.parquet"), folder.file("t.text"));
        let mut writer = StoreWriter::create(&stored).unwrap();
        writer.write(&records, &meta).unwrap();
        writer.finish(&meta).unwrap();
        prop_assert_eq!(exported(&stored, &text, format), Losses::new());
        let mut reader = open(&text);
        let again = reader.read_all().unwrap();
        prop_assert_eq!(&reader.meta().origin[0].format, format.name());
        prop_assert_eq!(named(again, reader.meta()), named(records, &meta));
    }
}

fn samples() -> Vec<PathBuf> {
    let folder = reading::sample("");
    let mut samples: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    samples.sort();
    assert!(samples.len() >= Format::ALL.len(), "{samples:?}");
    samples
}

#[test]
fn every_sample_is_stored_as_it_was_read() {
    let folder = Folder::new("stored");
    for sample in samples() {
        let path = folder.file("t.parquet");
        let mut reader = open(&sample);
        let records = reader.read_all().unwrap();
        let described = import(&mut open(&sample), &path, &mut |_| true).unwrap();
        let mut stored = open(&path);
        assert_eq!(stored.read_all().unwrap(), records, "{}", sample.display());
        assert_eq!((stored.meta(), &described), (reader.meta(), reader.meta()), "{}", sample.display());
    }
}

/// What is said of requests that are left out, in whatever format.
const LEFT_OUT: [&str; 7] = [
    "trims",
    "flushes",
    "requests of unknown kind",
    "requests other than read, write, trim and flush",
    "requests of unknown operation",
    "requests without length",
    "requests before 1980 or after 2099",
];

#[test]
fn conversion_losses_are_all_reported() {
    let folder = Folder::new("exported");
    for sample in samples() {
        let records = open(&sample).read_all().unwrap();
        for format in ExportFormat::ALL {
            let path = folder.file("t.text");
            let losses = exported(&sample, &path, format);
            let left_out: u64 = LEFT_OUT.iter().filter_map(|what| losses.get(what)).sum();
            // An iolog has a line of its own for the flush before a write.
            let is_commit = |one: &&Record| one.operation == Operation::Write && one.flags.contains(Flags::PRE_FLUSH);
            let syncs = if format == ExportFormat::Iolog { records.iter().filter(is_commit).count() as u64 } else { 0 };
            let expected = records.len() as u64 + syncs - left_out;
            let what = format!("{} as {}: {losses:?}", sample.display(), format.name());
            if expected == 0 {
                continue;
            }
            let mut again = TraceReader::open(&[&path], &ReadOptions::default()).expect(&what);
            assert_eq!(again.read_all().expect(&what).len() as u64, expected, "{what}");
        }
    }
}
