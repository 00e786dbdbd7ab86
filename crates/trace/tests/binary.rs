//! Binary formats: what they say, and what in them is refused.

use crate::reading;
use crate::reading::{read, read_files};
use headstack_trace::analyze::{Analysis, Options};
use headstack_trace::{
    AddressSpace, Clock, Flags, Format, Input, Meta, NOT_RECORDED, Operation, Place, ReadOptions, Record, TraceReader,
};

struct Scsi {
    opcode: u16,
    length: u32,
    block: u64,
    us: u64,
}

const COMMANDS: [Scsi; 16] = {
    const fn scsi(opcode: u16, length: u32, block: u64, us: u64) -> Scsi {
        Scsi { opcode, length, block, us }
    }
    [
        scsi(0x28, 4_096, 2_048, 5_000_000),
        scsi(0x2a, 8_192, 64, 5_000_120),
        scsi(0x08, 512, 0, 5_000_200),
        scsi(0x0a, 512, 1, 5_000_300),
        scsi(0xa8, 65_536, 1 << 31, 5_001_000),
        scsi(0xaa, 65_536, 1 << 31, 5_001_001),
        scsi(0x88, 1 << 20, 1 << 33, 5_002_000),
        scsi(0x8a, 1 << 20, 1 << 33, 5_002_500),
        scsi(0x2e, 4_096, 8, 5_002_600),
        scsi(0x35, 0, 0, 5_003_000),
        scsi(0x91, 0, 0, 5_003_100),
        scsi(0x42, 24, 0, 5_003_200),
        scsi(0x41, 512, 4_096, 5_003_300),
        scsi(0x93, 512, 8_192, 5_003_400),
        scsi(0x12, 36, 0, 5_004_000),
        scsi(0x28, 4_096, 2_056, 5_003_999),
    ]
};

const OPERATIONS: [Operation; 16] = {
    use Operation::*;
    [Read, Write, Read, Write, Read, Write, Read, Write, Write, Flush, Flush, Trim, Write, Write, Other, Read]
};

fn vscsi(version: u16, commands: &[Scsi]) -> Vec<u8> {
    let record = |(number, command): (usize, &Scsi)| {
        let (length, opcode) = (command.length.to_le_bytes(), command.opcode.to_le_bytes());
        // It wraps, and has gaps.
        let serial = (number as u32 * 3).wrapping_sub(5).to_le_bytes();
        let version_field = (version << 8).to_le_bytes();
        let elements = 1u32.to_le_bytes();
        let mut bytes = match version {
            1 => [&serial[..], &length, &elements, &opcode, &version_field].concat(),
            _ => [&opcode[..], &version_field, &serial, &length, &elements].concat(),
        };
        bytes.extend([command.block.to_le_bytes(), command.us.to_le_bytes()].concat());
        if version == 2 {
            bytes.extend(123u64.to_le_bytes());
        }
        bytes
    };
    commands.iter().enumerate().flat_map(|(number, command)| record((number, command))).collect()
}

/// Time in seconds, object, size, next access.
type Access = (u32, u64, u32, i64);

const ACCESSES: [Access; 6] = [
    (10, 100, 4_096, 3),
    (10, 200, 512, -1),
    (11, 100, 4_096, 5),
    (11, 300, 65_536, i64::MAX),
    (15, 100, 4_096, -1),
    (15, 1 << 40, 4_096, -1),
];
/// get, set, read, write, delete, invalid.
const CACHE_OPERATIONS: [u8; 6] = [1, 3, 12, 13, 9, 255];

fn oracle(accesses: &[Access], has_operations: bool) -> Vec<u8> {
    let record = |(number, &(time, object, size, next)): (usize, &Access)| {
        let mut bytes = [&time.to_le_bytes()[..], &object.to_le_bytes(), &size.to_le_bytes()].concat();
        if has_operations {
            bytes.extend([CACHE_OPERATIONS[number % 6], 7, 0]);
        }
        bytes.extend(next.to_le_bytes());
        bytes
    };
    accesses.iter().enumerate().flat_map(record).collect()
}

/// Version, bytes of the header; objects above 2^54 are hashes.
fn lcs(version: u64, header_bytes: usize, accesses: &[Access]) -> Vec<u8> {
    const MAGIC: u64 = 0x1234_5678_9abc_def0;
    let mut bytes = vec![0; header_bytes];
    bytes[..8].copy_from_slice(&MAGIC.to_le_bytes());
    bytes[8..16].copy_from_slice(&version.to_le_bytes());
    bytes[header_bytes - 8..].copy_from_slice(&MAGIC.to_le_bytes());
    for (number, &(time, object, size, next)) in accesses.iter().enumerate() {
        bytes.extend([&time.to_le_bytes()[..], &object.to_le_bytes()].concat());
        match version {
            1 | 2 => bytes.extend(size.to_le_bytes()),
            _ => bytes.extend(i64::from(size).to_le_bytes()),
        }
        if version > 1 {
            bytes.extend([CACHE_OPERATIONS[number % 6], 7, 0, 0]);
        }
        if version > 2 {
            bytes.extend(3_600u32.to_le_bytes());
        }
        bytes.extend(next.to_le_bytes());
        bytes.extend(vec![0xee; [0, 0, 0, 4, 8, 16, 32, 64][version as usize - 1]]);
    }
    bytes
}

const SRT_HEADER: &str = "$$TR_IOREC-1.3 made by headstack\0
tracedate = \"Sat Apr 18 09:30:00 1992\";
system = \"toy\";
pagesize = 4096;
disks = {
    3 -> { disktype = \"TOY 256\"; nspt = 113; ntpc = 8; ncyl = 1449; sectorsize = 256; blockmajor = 0;
           charactermajor = 4; sections = { 0 -> { start = 0; }; }; };
    4 -> { disktype = \"TOY 512\"; sectorsize = 512; blockmajor = 7; charactermajor = 47; };
};
\x0c";

/// Version, type, words after the id.
type SrtRecord = (u32, u32, Vec<u32>);

fn srt_records() -> Vec<SrtRecord> {
    let disk3 = 3 << 8;
    let raw3 = 4 << 24 | 3 << 8 | 2;
    let disk4 = 7 << 24 | 4 << 8;
    vec![
        // sec, usec, start, stop, bytes, sector, device, driver, cylinder, flags, info, queue
        (4, 1, vec![5, 250, 100, 9_100, 8_192, 904, disk3, 1, 1, 0x1, 0, 2]),
        (4, 1, vec![5, 250, 0, 12_000, 2_048, 0, raw3, 1, 0, 0x100_0000, 0, 1]),
        (1, 1, vec![6, 0, 0, 400, 1_024, 77, disk4, 1, 0, 0x8101, 0]),
        (3, 4, vec![6, 999_999, 10, 20, 512, 78, disk4, 1, 0, 0x200, 0, 5]),
        (4, 4, vec![7, 0, 0, 30, 512, 79, disk4, 1, 0, 0x400, 0, 1, 0]),
        (2, 3, vec![0x7465_7874]),
        (4, 2, vec![0; 20]),
    ]
}

fn srt(header: &str, records: &[SrtRecord]) -> Vec<u8> {
    let record = |(version, kind, words): &SrtRecord| {
        let begin = [8 + 4 * words.len() as u32, version << 16 | kind];
        begin.iter().chain(words).flat_map(|word| word.to_be_bytes()).collect::<Vec<u8>>()
    };
    [header.as_bytes(), &records.iter().flat_map(record).collect::<Vec<u8>>()].concat()
}

fn samples() -> [(&'static str, Vec<u8>); 7] {
    [
        ("vscsi-v1.bin", vscsi(1, &COMMANDS)),
        ("vscsi-v2.bin", vscsi(2, &COMMANDS)),
        ("lcs-v1.bin", lcs(1, 1_024, &ACCESSES)),
        ("lcs-v3.bin", lcs(3, 1_024, &ACCESSES)),
        ("oracle-general.bin", oracle(&ACCESSES, false)),
        ("oracle-general-opns.bin", oracle(&ACCESSES, true)),
        ("srt.bin", srt(SRT_HEADER, &srt_records())),
    ]
}

#[test]
fn sample_files_match_the_encoders() {
    for (name, bytes) in samples() {
        reading::assert_is_sample(name, &bytes);
    }
}

#[test]
fn vscsi_commands_of_both_layouts() {
    for version in [1, 2] {
        let (records, meta) = read(&vscsi(version, &COMMANDS), None, false).unwrap();
        assert_eq!((meta.origin[0].format.as_str(), meta.clock, meta.resolution_ns), ("vscsi", Clock::Boot, 1_000));
        let expected = COMMANDS.iter().zip(OPERATIONS).map(|(command, operation)| {
            Record::new(command.us * 1_000, operation, command.block * 512, command.length)
        });
        let mut expected: Vec<Record> = expected.collect();
        expected.sort_by_key(|record| record.arrival_ns);
        assert_eq!(records, expected);
        assert_eq!(meta.devices[0].name, "trace");
        assert_eq!(meta.counts["write same"], 2);
        let says_unit = meta.notes.iter().any(|note| note.starts_with("response times are omitted"));
        assert_eq!(says_unit, version == 2);
        // Two records are enough.
        let two = &vscsi(version, &COMMANDS[..2]);
        assert_eq!(read(two, None, false).unwrap().0.len(), 2);
        assert!(read(&vscsi(version, &COMMANDS[..1]), None, false).is_err());
    }
}

/// What is reported of `bytes`, and that skipping leaves `left` records.
fn refused(bytes: &[u8], format: Format, left: usize) -> String {
    let error = read(bytes, Some(format), false).unwrap_err();
    assert!(matches!(error.place, Place::Record(_)), "{error}");
    let (records, meta) = read(bytes, Some(format), true).unwrap();
    assert_eq!((records.len(), meta.rejected, &meta.rejects[0]), (left, 1, &error.to_string()));
    error.to_string()
}

#[test]
fn vscsi_that_cannot_be_is_refused() {
    let broken = |change: fn(&mut Scsi)| {
        let mut commands = COMMANDS;
        change(&mut commands[2]);
        refused(&vscsi(1, &commands), Format::Vscsi, 15)
    };
    assert_eq!(broken(|c| c.opcode = 0x128), "trace: record 3: opcode: must be one of SCSI's, at most 0xff, not 0x128");
    assert!(broken(|c| c.block = 1 << 54).starts_with("trace: record 3: block: must end below 2^63 bytes"));
    assert!(broken(|c| c.block = u64::MAX).starts_with("trace: record 3: block: "));
    assert!(broken(|c| (c.block, c.length) = ((1 << 54) - 1, 512)).starts_with("trace: record 3: block: "));
    assert!(broken(|c| c.us = u64::MAX).starts_with("trace: record 3: time: must be below 2^63 ns"));
    let mut other = vscsi(1, &COMMANDS);
    other[32 * 4 + 15] = 2;
    assert_eq!(refused(&other, Format::Vscsi, 15), "trace: record 5: version: must be 1 << 8, not 0x200");
    // Mixed, beyond what detection looks at.
    let many: Vec<u8> = (0..10).flat_map(|_| vscsi(1, &COMMANDS)).collect();
    let mixed = [&many[..], b"this line is 32 characters long\n"].concat();
    assert!(read(&mixed, None, false).unwrap_err().to_string().starts_with("trace: record 161: version: "));
    assert_eq!(read(&mixed, None, true).unwrap().0.len(), 160);
    let cut = &vscsi(2, &COMMANDS)[..40 * 9 + 1];
    assert_eq!(refused(cut, Format::Vscsi, 9), "trace: record 10: the file ends after 1 bytes of it");
    let error = read(&[0; 640], Some(Format::Vscsi), true).unwrap_err();
    assert_eq!(error.to_string(), "trace: no record has the version 1 or 2 of vscsi");
}

#[test]
fn files_of_vscsi_are_devices() {
    let (one, two) = (vscsi(1, &COMMANDS), vscsi(2, &COMMANDS));
    let (records, meta) =
        read_files(&[("x/a.vscsi", &one), ("b.vscsi", &two), ("y/a.vscsi", &one)], None, false).unwrap();
    let names: Vec<&str> = meta.devices.iter().map(|device| device.name.as_str()).collect();
    assert_eq!(names, ["a.vscsi", "b.vscsi", "y/a.vscsi"]);
    for device in 0..3 {
        assert_eq!(records.iter().filter(|record| record.device == device).count(), 16);
    }
}

/// A trace whose object numbers count blocks of 512 bytes, as somebody says.
fn read_in_sectors(bytes: &[u8]) -> (Vec<Record>, Meta) {
    let options = ReadOptions { sector_bytes: Some(512), ..ReadOptions::default() };
    let input = Input::from_bytes("trace", bytes.to_vec()).unwrap();
    let mut reader = TraceReader::from_inputs(vec![input], &options).unwrap();
    (reader.read_all().unwrap(), reader.meta().clone())
}

/// Accesses with their links.
fn linked(objects: impl Iterator<Item = (u64, u32)>) -> Vec<Access> {
    let mut accesses: Vec<Access> = Vec::new();
    let mut latest = std::collections::HashMap::new();
    for (number, (object, size)) in objects.enumerate() {
        if let Some(earlier) = latest.insert(object, number) {
            accesses[earlier].3 = number as i64 + 1;
        }
        accesses.push((number as u32 / 100, object, size, -1));
    }
    accesses
}

/// Numbers of popular objects of 4 to 64 KiB, given in no order of size or time.
fn popular() -> Vec<Access> {
    let mut state = 11u64;
    linked((0..5_000).map(move |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let object = 900f64.powf((state >> 11) as f64 / (1u64 << 53) as f64) as u64;
        (object, 4_096 << (object % 5))
    }))
}

/// Four streams in turn, each 16 sectors a request.
fn streams() -> Vec<Access> {
    linked((0..2_000u64).map(|number| (number % 4 * 90_000_000 + number / 4 * 16, 8_192)))
}

#[test]
fn objects_never_overlap() {
    let accesses = popular();
    for bytes in [oracle(&accesses, false), lcs(1, 8_192, &accesses)] {
        let (records, meta) = read(&bytes, None, false).unwrap();
        assert_eq!((meta.address_space, meta.devices[0].sector_bytes), (AddressSpace::Object, None));
        let mut ranges: Vec<(u64, u64)> =
            records.iter().map(|record| (record.offset_bytes, record.end_bytes())).collect();
        ranges.sort_unstable();
        ranges.dedup();
        let objects: std::collections::HashSet<u64> = accesses.iter().map(|access| access.1).collect();
        assert_eq!(ranges.len(), objects.len());
        assert!(ranges.windows(2).all(|pair| pair[0].1 <= pair[1].0));
        let (said, meta) = read_in_sectors(&bytes);
        assert_eq!(meta.address_space, AddressSpace::Device);
        assert!(said.iter().zip(&accesses).all(|(record, access)| record.offset_bytes == access.1 * 512));
    }
}

#[test]
fn requests_that_follow_each_other_prove_addresses() {
    let accesses = streams();
    for bytes in [oracle(&accesses, false), lcs(3, 1_024, &accesses)] {
        let (records, meta) = read(&bytes, None, false).unwrap();
        assert_eq!((meta.address_space, meta.devices[0].sector_bytes), (AddressSpace::Device, Some(512)));
        assert!(meta.notes.iter().any(|note| note.contains("prove")), "{:?}", meta.notes);
        assert_eq!((records[4].offset_bytes, records[5].offset_bytes), (8_192, 90_000_000 * 512 + 8_192));
    }
}

#[test]
fn an_analysis_omits_offsets_of_objects() {
    let report_of = |accesses: &[Access]| {
        let (records, meta) = read(&oracle(accesses, false), None, false).unwrap();
        let mut analysis = Analysis::new(Options::default()).unwrap();
        analysis.add(&records);
        analysis.finish(&meta)
    };
    let objects = report_of(&popular());
    assert_eq!((objects.sequence.streams.share, objects.sequence.mean_seek_bytes), (None, None));
    assert_eq!((objects.highest_end_bytes, objects.heat, objects.alignment.shares.len()), (None, None, 0));
    assert_eq!((objects.environment.random_share, objects.environment.workload_toml), (None, None));
    assert_eq!((objects.devices[0].highest_end_bytes, objects.devices[0].sequence.strict.share), (None, None));
    assert!(objects.notes.iter().any(|note| note.contains("requests name objects")), "{:?}", objects.notes);
    assert!(objects.reuse.is_some_and(|reuse| reuse.distinct > 0.0));
    let blocks = report_of(&streams());
    assert!(blocks.sequence.streams.share.unwrap() > 0.99 && blocks.highest_end_bytes.is_some());
}

#[test]
fn oracle_general_with_and_without_operations() {
    for has_operations in [false, true] {
        let (records, meta) = read_in_sectors(&oracle(&ACCESSES, has_operations));
        assert_eq!((meta.origin[0].format.as_str(), meta.resolution_ns), ("oracle-general", 1_000_000_000));
        use Operation::{Read, Trim, Unknown, Write};
        let operations = if has_operations { [Read, Write, Read, Write, Trim, Unknown] } else { [Unknown; 6] };
        let expected = ACCESSES.iter().zip(operations).map(|(&(s, object, size, _), operation)| {
            Record::new(u64::from(s) * 1_000_000_000, operation, object * 512, size)
        });
        assert_eq!(records, expected.collect::<Vec<_>>());
    }
}

#[test]
fn oracle_general_is_recognised_by_its_links() {
    let detected = |change: fn(&mut [Access; 6])| {
        let mut accesses = ACCESSES;
        change(&mut accesses);
        read(&oracle(&accesses, false), None, false).is_ok()
    };
    assert!(detected(|_| {}));
    // One to itself, one back, one to another object, one left out, two to one.
    assert!(!detected(|a| a[0].3 = 1));
    assert!(!detected(|a| a[2].3 = 1));
    assert!(!detected(|a| a[0].3 = 2));
    assert!(!detected(|a| a[2].3 = -1));
    assert!(!detected(|a| (a[1].3, a[3].3) = (99, 99)));
    assert!(!detected(|a| a[1].3 = 0));
    // A link beyond the file: it was cut off between two records.
    assert!(detected(|a| a[1].3 = 99));
}

#[test]
fn oracle_general_that_cannot_be_is_refused() {
    let broken = |change: fn(&mut [Access; 6])| {
        let mut accesses = ACCESSES;
        change(&mut accesses);
        refused(&oracle(&accesses, false), Format::OracleGeneral, 5)
    };
    assert_eq!(broken(|a| a[3].0 = 9), "trace: record 4: time: must not go back: 9 s after 11 s");
    assert_eq!(broken(|a| a[2].3 = 2), "trace: record 3: next access: must be 4 to 2^40, or -1 for none, not 2");
    let cut = &oracle(&ACCESSES, false)[..24 * 5 + 23];
    assert_eq!(refused(cut, Format::OracleGeneral, 5), "trace: record 6: the file ends after 23 bytes of it");
}

#[test]
fn lcs_of_every_version_and_either_header() {
    use Operation::{Read, Trim, Unknown, Write};
    for version in 1..=8 {
        for header_bytes in [1_024, 8_192] {
            let (records, meta) = read_in_sectors(&lcs(version, header_bytes, &ACCESSES));
            assert_eq!((meta.origin[0].format.as_str(), meta.resolution_ns), ("lcs", 1_000_000_000));
            let operations = if version > 1 { [Read, Write, Read, Write, Trim, Unknown] } else { [Unknown; 6] };
            let expected = ACCESSES.iter().zip(operations).map(|(&(s, object, size, _), operation)| {
                Record::new(u64::from(s) * 1_000_000_000, operation, object * 512, size)
            });
            assert_eq!(records, expected.collect::<Vec<_>>(), "version {version}");
        }
    }
}

#[test]
fn lcs_that_cannot_be_is_refused() {
    let file = |version| lcs(version, 8_192, &ACCESSES);
    let error = read(&file(1), None, false).map(|_| ()).and(read(&patched(file(1), 8, 9), None, false).map(|_| ()));
    assert_eq!(error.unwrap_err().to_string(), "trace: lcs version 9 is unknown; allowed: 1 to 8");
    assert!(read(&patched(file(1), 0, 1), None, false).is_err());
    assert!(read(&patched(file(1), 8_191, 1), None, false).is_err());
    let back = patched(file(2), 8_192 + 28 * 3, 1);
    assert_eq!(refused(&back, Format::Lcs, 5), "trace: record 4: time: must not go back: 1 s after 11 s");
    let large = patched(file(3), 8_192 + 36 * 2 + 16, 1);
    assert_eq!(refused(&large, Format::Lcs, 5), "trace: record 3: size: must be below 2^32 bytes, not 4294971392");
}

fn patched(mut bytes: Vec<u8>, at: usize, byte: u8) -> Vec<u8> {
    bytes[at] = byte;
    bytes
}

/// Numbers of objects may be hashes: they have an address of their own, and the same one each time.
#[test]
fn objects_that_are_no_blocks_are_hashed() {
    let hash = 0xf00d_feed_dead_beef;
    let accesses = [(1, hash, 100, 3), (1, 7, 100, -1), (2, hash, 100, -1), (2, hash - 1, 100, -1)];
    for bytes in [lcs(2, 8_192, &accesses), oracle(&accesses, false)] {
        let (records, _) = read_in_sectors(&bytes);
        assert_eq!((records[0].offset_bytes, records[1].offset_bytes), (records[2].offset_bytes, 3_584));
        assert_ne!(records[0].offset_bytes, records[3].offset_bytes);
    }
}

#[test]
fn srt_records_of_all_versions() {
    let (records, meta) = read(&srt(SRT_HEADER, &srt_records()), None, false).unwrap();
    let request = |us: u64, operation, offset, length, device, wait_us: u64, response_us: u64, flags| Record {
        device,
        wait_ns: wait_us * 1_000,
        response_ns: response_us * 1_000,
        flags,
        ..Record::new(us * 1_000, operation, offset, length)
    };
    use Operation::{Read, Write};
    let expected = [
        request(5_000_250, Read, 904 * 256, 8_192, 0, 100, 9_100, Flags::SYNC),
        request(5_000_250, Write, 0, 2_048, 0, 0, 12_000, Flags::SYNC),
        request(6_000_000, Read, 77 * 512, 1_024, 1, 0, 400, Flags::default()),
        request(6_999_999, Write, 78 * 512, 512, 1, 10, 20, Flags::ERROR),
        request(7_000_000, Write, 79 * 512, 512, 1, 0, 30, Flags::default()),
    ];
    assert_eq!(records, expected);
    assert_eq!((meta.clock, meta.zero_unix_ns), (Clock::Recording, Some(703_589_400_000_000_000)));
    let devices: Vec<_> = meta.devices.iter().map(|d| (d.name.as_str(), d.model.as_deref(), d.sector_bytes)).collect();
    assert_eq!(devices, [("disk3", Some("TOY 256"), Some(256)), ("disk4", Some("TOY 512"), Some(512))]);
    assert!(meta.header.unwrap().contains("ncyl = 1449"));
    let counts: Vec<(&str, u64)> = meta.counts.iter().map(|(what, number)| (what.as_str(), *number)).collect();
    let none = "records of type 2, which is not I/O";
    let text = "records of type 3, which is not I/O";
    assert_eq!(counts, [("found in the cache", 1), (none, 1), (text, 1), ("suspect I/Os", 2)]);
}

#[test]
fn srt_files_follow_each_other_by_their_dates() {
    let first = srt(SRT_HEADER, &srt_records());
    let second = srt(&SRT_HEADER.replace("Apr 18 09:30:00", "Apr 19 09:30:00"), &srt_records());
    let (records, _) = read_files(&[("1", &first), ("2", &second)], None, false).unwrap();
    assert_eq!(records[5].arrival_ns, records[0].arrival_ns + 86_400_000_000_000);
    let error = read_files(&[("2", &second), ("1", &first)], None, true).unwrap_err();
    assert_eq!(
        error.to_string(),
        "1: tracedate: is before that of the first file; name the files in chronological order"
    );
}

#[test]
fn srt_that_cannot_be_is_refused() {
    let broken = |change: fn(&mut SrtRecord)| {
        let mut records = srt_records();
        change(&mut records[0]);
        refused(&srt(SRT_HEADER, &records), Format::Srt, 4)
    };
    assert_eq!(broken(|r| r.0 = 5), "trace: record 1: version: must be 1 to 4, not 5");
    assert_eq!(broken(|r| r.2.push(0)), "trace: record 1: size: must be 56 for version 4, type 1, not 60");
    assert_eq!(broken(|r| r.2[1] = 1_000_000), "trace: record 1: usec: must be below 1000000, not 1000000");
    assert!(broken(|r| r.2[3] = 99).starts_with("trace: record 1: stop: must not be before start at 100 us"));
    assert!(broken(|r| r.2[6] = 9 << 8).starts_with("trace: record 1: device: must be a disk with a sectorsize"));
    let whole = srt(SRT_HEADER, &srt_records());
    let at = SRT_HEADER.len();
    let cut = &whole[..at + 56 + 7];
    assert_eq!(refused(cut, Format::Srt, 1), "trace: record 2: the file ends after 7 bytes of it");
    // A size that is none: what follows cannot be found, and is not guessed at.
    for size in [0u32, 7, u32::MAX] {
        let mut lost = whole.clone();
        lost[at + 56..at + 60].copy_from_slice(&size.to_be_bytes());
        assert!(refused(&lost, Format::Srt, 1).starts_with("trace: record 2: size: must be 8 to 1048576 bytes"));
    }
    for header in ["$$TR_IOREC-1.3 without an end\n", "no header\n\x0c"] {
        let error = read(header.as_bytes(), Some(Format::Srt), true).unwrap_err();
        assert_eq!(error.to_string(), "trace: has no header from `$$TR_` to a form feed");
    }
    let error = read(SRT_HEADER.replace("Apr", "Foo").as_bytes(), None, true).unwrap_err();
    assert!(error.to_string().starts_with("trace: tracedate: must be a date such as"), "{error}");
}

#[test]
fn missing_fields_are_null_not_zero() {
    for (name, bytes) in samples().iter().filter(|(name, _)| !name.starts_with("srt")) {
        let (records, meta) = read(bytes, None, false).unwrap();
        assert!(records.iter().all(|r| r.response_ns == NOT_RECORDED && r.wait_ns == NOT_RECORDED), "{name}");
        assert_eq!((meta.response, meta.zero_unix_ns), (None, None), "{name}");
    }
}
