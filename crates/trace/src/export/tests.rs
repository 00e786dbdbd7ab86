//! Tests that exported traces are read back unchanged.

use proptest::prelude::*;

use super::*;
use crate::formats::Format;
use crate::formats::tests::{of, read};
use crate::meta::{Clock, DeviceMeta, Meta};
use crate::record::{Flags, NOT_RECORDED, Record};

fn to_msr(records: &[Record], meta: &Meta) -> (Vec<u8>, Losses) {
    let mut bytes = Vec::new();
    let mut writer = msr::Writer::new(&mut bytes);
    for part in records.chunks(3) {
        writer.write(part, meta).unwrap();
    }
    let losses = writer.finish().unwrap();
    (bytes, losses)
}

fn to_disksim(records: &[Record], meta: &Meta) -> (Vec<u8>, Losses) {
    let mut bytes = Vec::new();
    let mut writer = disksim::Writer::new(&mut bytes);
    for part in records.chunks(3) {
        writer.write(part, meta).unwrap();
    }
    let losses = writer.finish().unwrap();
    (bytes, losses)
}

fn with_devices(clock: Clock, names: &[&str]) -> Meta {
    let devices = names.iter().map(|name| DeviceMeta { name: (*name).to_owned(), ..DeviceMeta::default() });
    Meta { clock, devices: devices.collect(), ..Meta::default() }
}

/// Returns records with the names of their devices, independent of numbering.
fn named(records: &[Record], meta: &Meta) -> Vec<(Record, String)> {
    let name = |record: &Record| meta.devices[record.device as usize].name.clone();
    records.iter().map(|record| (Record { device: 0, ..*record }, name(record))).collect()
}

/// Generates requests in order that a format with these units of time and address can represent.
fn requests(time_ns: u64, address_bytes: u32, devices: u32) -> impl Strategy<Value = Vec<Record>> {
    let request = (0..1u64 << 40, 0..1u64 << 53, 0..1u32 << 22, 0..devices, any::<bool>(), any::<bool>());
    prop::collection::vec(request, 1..40).prop_map(move |mut requests| {
        requests.sort_unstable();
        let record = |(time, offset, length, device, is_read, is_sync)| {
            let operation = if is_read { Operation::Read } else { Operation::Write };
            let mut record =
                Record::new(time * time_ns, operation, offset * u64::from(address_bytes), length * address_bytes);
            record.device = device;
            record.flags = if is_sync { Flags::SYNC } else { Flags::default() };
            record
        };
        requests.into_iter().map(record).collect()
    })
}

proptest! {
    #[test]
    fn disksim_export_keeps_representable_fields(records in requests(1, 512, 4)) {
        let meta = with_devices(Clock::Recording, &["17", "0", "3", "4294967295"]);
        let (bytes, losses) = to_disksim(&records, &meta);
        let (again, meta_again) = read(&bytes, &of(Format::DiskSim)).unwrap();
        prop_assert_eq!(named(&again, &meta_again), named(&records, &meta));
        prop_assert!(losses.keys().all(|lost| lost.contains("2^31")), "{:?}", losses);
        prop_assert_eq!(to_disksim(&again, &meta_again).0, bytes);
    }

    #[test]
    fn msr_export_keeps_representable_fields(
        mut records in requests(100, 1, 3),
        responses in prop::collection::vec(prop::option::of(0..1u64 << 40), 40),
    ) {
        for (record, response) in records.iter_mut().zip(responses) {
            record.arrival_ns += 1_172_164_929_551_466_300;
            record.response_ns = response.map_or(NOT_RECORDED, |ticks| ticks * 100);
            record.flags = Flags::default();
        }
        let meta = with_devices(Clock::Unix, &["hm.1", "a b.c.0", "hm.0"]);
        let (bytes, losses) = to_msr(&records, &meta);
        let (again, meta_again) = read(&bytes, &of(Format::Msr)).unwrap();
        prop_assert_eq!(named(&again, &meta_again), named(&records, &meta));
        prop_assert_eq!(losses, Losses::new());
        prop_assert_eq!(to_msr(&again, &meta_again).0, bytes);
    }
}

/// Returns one request of each operation, with all possible fields.
fn rich() -> Vec<Record> {
    let mut records: Vec<Record> =
        Operation::ALL.map(|operation| Record::new(1_000_000_150, operation, 700, 600)).into();
    for record in &mut records {
        (record.response_ns, record.wait_ns, record.process, record.flags) = (250, 50, 1, Flags::FUA.with(Flags::SYNC));
    }
    records
}

#[test]
fn msr_export_reports_lost_fields() {
    let (bytes, losses) = to_msr(&rich(), &with_devices(Clock::Recording, &["sda"]));
    let (records, meta) = read(&bytes, &of(Format::Msr)).unwrap();
    assert_eq!(records.len(), 2);
    assert_eq!((records[0].arrival_ns, records[0].response_ns), (946_684_801_000_000_100, 200));
    assert_eq!(meta.devices[0].name, "device.0");
    let expected = [
        ("flags", 2),
        ("flushes", 1),
        ("names of devices", 1),
        ("processes", 2),
        ("requests of unknown kind", 1),
        ("requests other than read, write, trim and flush", 1),
        ("sub-100-ns parts of times", 2),
        ("the missing date: times count from 2000-01-01", 2),
        ("times in queue", 2),
        ("trims", 1),
    ];
    assert_eq!(losses, Losses::from(expected));

    let dated = Meta { zero_unix_ns: Some(1_700_000_000_000_000_000), ..with_devices(Clock::Recording, &["x.0"]) };
    let (bytes, losses) = to_msr(&[Record::new(5_000, Operation::Read, 0, 512)], &dated);
    assert_eq!(read(&bytes, &of(Format::Msr)).unwrap().0[0].arrival_ns, 1_700_000_000_000_005_000);
    assert_eq!(losses, Losses::new());
    let (bytes, losses) = to_msr(&[Record::new(5_000, Operation::Read, 0, 512)], &with_devices(Clock::Unix, &["x.0"]));
    assert_eq!((bytes, losses), (Vec::new(), Losses::from([("requests before 1980 or after 2099", 1)])));
}

#[test]
fn disksim_export_reports_lost_fields() {
    let (bytes, losses) = to_disksim(&rich(), &with_devices(Clock::Unix, &["sda"]));
    assert_eq!(String::from_utf8(bytes).unwrap(), "0.000000 0 1 2 81\n0.000000 0 1 2 80\n");
    let expected = [
        ("flags", 2),
        ("flushes", 1),
        ("names of devices", 1),
        ("offsets and lengths within blocks", 2),
        ("processes", 2),
        ("requests of unknown kind", 1),
        ("requests other than read, write, trim and flush", 1),
        ("response times", 2),
        ("times in queue", 2),
        ("trims", 1),
        ("when the first request arrived", 1),
    ];
    assert_eq!(losses, Losses::from(expected));
    let late = [Record::new(5, Operation::Read, 0, 512), Record::new(4, Operation::Read, 0, 512)];
    let error = disksim::Writer::new(Vec::new()).write(&late, &with_devices(Clock::Recording, &["0"]));
    assert_eq!(error.unwrap_err().kind(), std::io::ErrorKind::InvalidInput);
}

#[test]
fn devices_stay_apart_under_other_names() {
    let records: Vec<Record> =
        (0..4).map(|device| Record { device, ..Record::new(7, Operation::Read, 0, 512) }).collect();
    let meta = with_devices(Clock::Recording, &["sda", "0", "2", "sdb"]);
    let (again, meta_again) = read(&to_disksim(&records, &meta).0, &of(Format::DiskSim)).unwrap();
    let names: Vec<String> = named(&again, &meta_again).into_iter().map(|(_, name)| name).collect();
    assert_eq!(names, ["1", "0", "2", "3"]);
    let meta = with_devices(Clock::Recording, &["a,b", "device.2", "", "x.y"]);
    let (again, meta_again) = read(&to_msr(&records, &meta).0, &of(Format::Msr)).unwrap();
    let names: Vec<String> = named(&again, &meta_again).into_iter().map(|(_, name)| name).collect();
    assert_eq!(names, ["device.0", "device.2", "device1.2", "device.3"]);
}
