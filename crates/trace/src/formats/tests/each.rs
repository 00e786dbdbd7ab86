//! Tests of parsing and errors for each format.

use super::*;

/// Returns the only record of a line in a format without a header.
fn parse_line(format: Format, line: &str) -> (Record, Meta) {
    let (records, meta) = read(line.as_bytes(), &of(format)).unwrap_or_else(|error| panic!("{line}: {error}"));
    assert_eq!(records.len(), 1, "{line}");
    (records[0], meta)
}

/// Checks that every line is rejected at its field, with a one-line message.
fn refuses(options: &ReadOptions, header: &str, cases: &[(&str, &str)]) {
    for (line, field) in cases {
        let text = if header.is_empty() { format!("\n{line}\n") } else { format!("{header}\n{line}\n") };
        let error = read(text.as_bytes(), options).expect_err(line);
        assert_eq!((error.place, error.field), (crate::Place::Line(2), *field), "{line}: {error}");
        assert_eq!(error.to_string().lines().count(), 1, "{line}");
    }
}

const HUGE: &str = "9223372036854775808";

#[test]
fn msr() {
    let (record, meta) = parse_line(Format::Msr, "128166385295514663,hm,0,Write,9056014336,2048,2833");
    assert_eq!(record.arrival_ns, 1_172_164_929_551_466_300);
    assert_eq!((record.offset_bytes, record.length_bytes, record.response_ns), (9_056_014_336, 2_048, 283_300));
    assert_eq!((record.operation, meta.devices[0].name.as_str(), meta.clock), (Operation::Write, "hm.0", Clock::Unix));
    let (blank, meta) = parse_line(Format::Msr, "128166385295514663,hm,0,Read,0,512,");
    assert_eq!((blank.response_ns, meta.counts["requests without a response time"]), (NOT_RECORDED, 1));
    // Adjacent numbers that a double cannot distinguish.
    let (next, _) = parse_line(Format::Msr, "128166385295514664,hm,0,Write,9056014336,2048,2833");
    assert_eq!(next.arrival_ns - record.arrival_ns, 100);
    let refused = [
        ("128166385295514663,hm,0,write,0,512,1", "type"),
        ("128166385295514663,hm,0,,0,512,1", "type"),
        ("1281663852955146,hm,0,Read,0,512,1", "timestamp"),
        ("1172164929551466300,hm,0,Read,0,512,1", "timestamp"),
        ("128166385295514663.5.1,hm,0,Read,0,512,1", "timestamp"),
        ("-128166385295514663,hm,0,Read,0,512,1", "timestamp"),
        ("99999999999999999999999,hm,0,Read,0,512,1", "timestamp"),
        ("128166385295514663,,0,Read,0,512,1", "host"),
        ("128166385295514663,\u{fffd}\u{0}x,a,Read,0,512,1", "disk"),
        ("128166385295514663,hm,,Read,0,512,1", "disk"),
        ("128166385295514663,hm,0,Read,-1,512,1", "offset"),
        (&format!("128166385295514663,hm,0,Read,{HUGE},512,1"), "offset"),
        ("128166385295514663,hm,0,Read,9223372036854775807,1,1", "offset"),
        ("128166385295514663,hm,0,Read,0,4294967296,1", "size"),
        ("128166385295514663,hm,0,Read,0,,1", "size"),
        ("128166385295514663,hm,0,Read,0,1e3,1", "size"),
        ("128166385295514663,hm,0,Read,0,512,x", "response"),
        ("128166385295514663,hm,0,Read,0,512,99999999999999999", "response"),
        ("128166385295514663,hm,0,Read,0,512", ""),
        ("128166385295514663,hm,0,Read,0,512,1,", ""),
    ];
    refuses(&of(Format::Msr), "", &refused);
    let bad = b"128166385295514663,h\xffm,0,Read,0,512,1";
    assert_eq!(read(bad, &of(Format::Msr)).unwrap_err().field, "host");
    let largest = parse_line(Format::Msr, "128166385295514663,hm,0,Read,9223372036854775296,511,1").0;
    assert_eq!(largest.end_bytes(), (1 << 63) - 1);
}

#[test]
fn systor() {
    let header = "Timestamp,Response,IOType,LUN,Offset,Size";
    let text = format!("{header}\n1456095145.133076000,0.000806000,R,0,899056122368,131072\n1456095145.2,,,6,0,512\n");
    let (records, meta) = read(text.as_bytes(), &of(Format::Systor)).unwrap();
    assert_eq!(records[0].arrival_ns, 1_456_095_145_133_076_000);
    assert_eq!((records[0].response_ns, records[0].operation), (806_000, Operation::Read));
    assert_eq!((records[1].response_ns, records[1].operation), (NOT_RECORDED, Operation::Unknown));
    assert_eq!(meta.counts["requests of unknown kind"], 1);
    assert_eq!(meta.counts["requests without a response time"], 1);
    assert_eq!(meta.devices.iter().map(|device| device.name.as_str()).collect::<Vec<_>>(), ["0", "6"]);
    let refused = [
        ("1456095145133.076,0,R,0,0,512", "Timestamp"),
        (",0,R,0,0,512", "Timestamp"),
        ("1456095145.1,-0.1,R,0,0,512", "Response"),
        ("1456095145.1,0,r,0,0,512", "IOType"),
        ("1456095145.1,0,R,x,0,512", "LUN"),
        ("1456095145.1,0,R,,0,512", "LUN"),
        ("1456095145.1,0,R,0,0.5,512", "Offset"),
        ("1456095145.1,0,R,0,0,-512", "Size"),
        ("1456095145.1,0,R,0,0", ""),
    ];
    refuses(&of(Format::Systor), header, &refused);
}

#[test]
fn spc() {
    let (record, meta) = parse_line(Format::Spc, "2,\t20, 0, r ,0.5,extra, fields");
    assert_eq!((record.offset_bytes, record.length_bytes, record.arrival_ns), (10_240, 0, 500_000_000));
    assert_eq!((record.operation, meta.devices[0].name.as_str()), (Operation::Read, "2"));
    assert_eq!(meta.resolution_ns, 100_000_000);
    let large = ReadOptions { sector_bytes: Some(4096), ..of(Format::Spc) };
    assert_eq!(read(b"2,20,512,w,0.5", &large).unwrap().0[0].offset_bytes, 81_920);
    let none = ReadOptions { sector_bytes: Some(0), ..of(Format::Spc) };
    assert!(read(b"2,20,512,w,0.5", &none).is_err());
    let refused = [
        ("0,2 448003,8192,R,0.5", "LBA"),
        ("0,20,8192,X,0.5", "opcode"),
        ("0,20,8192,RW,0.5", "opcode"),
        ("0,20,8192,R,.5", "timestamp"),
        ("0,20,8192,R,5.", "timestamp"),
        ("0,20,8192,R,5", "timestamp"),
        ("0,20,8192,R,1e1.0", "timestamp"),
        ("0,18014398509481984,8192,R,0.5", "LBA"),
        ("0,18014398509481983,8192,R,0.5", "offset"),
        ("0,20,4294967296,R,0.5", "size"),
        ("-1,20,512,R,0.5", "ASU"),
        ("4294967296,20,512,R,0.5", "ASU"),
        ("0,20,512,R", ""),
    ];
    refuses(&of(Format::Spc), "", &refused);
    let back = read(b"0,1,512,R,1.5\n0,1,512,R,1.5\n0,1,512,R,1.4\n", &of(Format::Spc)).unwrap_err();
    assert_eq!(back.to_string(), "t:3: time: must not go back, from 1500000000 ns to 1400000000 ns");
}

#[test]
fn alibaba() {
    let (record, meta) = parse_line(Format::Alibaba, "0419,W,12288,4096,1577808144360767");
    assert_eq!((record.arrival_ns, record.offset_bytes), (1_577_808_144_360_767_000, 12_288));
    assert_eq!((meta.devices[0].name.as_str(), meta.resolution_ns), ("419", 1_000));
    let refused = [
        ("419,W,12288,4096,1577808144", "timestamp"),
        ("419,W,12288,4096,1577808144360767.5", "timestamp"),
        ("419,w,12288,4096,1577808144360767", "opcode"),
        ("4294967296,W,12288,4096,1577808144360767", "device"),
        ("419,W,x,4096,1577808144360767", "offset"),
        ("419,W,12288,4294967296,1577808144360767", "length"),
        ("419,W,12288,4096", ""),
        ("419,W,12288,4096,1577808144360767,1", ""),
    ];
    refuses(&of(Format::Alibaba), "", &refused);
    let error = read(b"419,W,12288,4096,1577808144\n", &of(Format::Alibaba)).unwrap_err();
    assert!(error.message.contains("as s since 1970 it would be in 2019"), "{error}");
}

#[test]
fn tencent() {
    let (record, meta) = parse_line(Format::Tencent, "1538323200,12910952,128,0,1063");
    assert_eq!((record.operation, record.arrival_ns), (Operation::Read, 1_538_323_200_000_000_000));
    assert_eq!((record.offset_bytes, record.length_bytes), (12_910_952 * 512, 65_536));
    assert_eq!((meta.resolution_ns, meta.notes.len()), (1_000_000_000, 1));
    assert_eq!(parse_line(Format::Tencent, "1538323200,0,8,1,1").0.operation, Operation::Write);
    let refused = [
        ("1538323200000,0,8,1,1", "timestamp"),
        ("1538323200.5,0,8,1,1", "timestamp"),
        ("1538323200,0,8,2,1", "type"),
        ("1538323200,0,8388608,1,1", "size"),
        ("1538323200,18014398509481984,8,1,1", "offset"),
        ("1538323200,0,8,1,a", "volume"),
        ("1538323200,0,8,1", ""),
    ];
    refuses(&of(Format::Tencent), "", &refused);
}

#[test]
fn cloudphysics() {
    let header = "version,time,op,size,lbn";
    let text = format!("{header}\n1,7,28,512,3\n1,7,2a,512,3\n1,7,8a,0,3\n1,8,35,0,0\n1,8,42,24,0\n1,8,0,0,0\n");
    let (records, meta) = read(text.as_bytes(), &of(Format::CloudPhysics)).unwrap();
    use Operation::{Flush, Other, Read, Trim, Write};
    assert_eq!(
        records.iter().map(|record| record.operation).collect::<Vec<_>>(),
        [Read, Write, Write, Flush, Trim, Other]
    );
    assert_eq!((records[0].arrival_ns, records[0].offset_bytes), (7_000_000_000, 1_536));
    assert_eq!((meta.clock, meta.resolution_ns), (Clock::Boot, 1_000_000_000));
    let refused = [
        ("3,7,28,512,3", "version"),
        ("1,7.5,28,512,3", "time"),
        ("1,9223372037,28,512,3", "time"),
        ("1,7,128,512,3", "op"),
        ("1,7,zz,512,3", "op"),
        ("1,7,28,-1,3", "size"),
        ("1,7,28,512,18014398509481984", "lbn"),
        ("1,7,28,512", ""),
    ];
    refuses(&of(Format::CloudPhysics), header, &refused);
}

#[test]
fn disksim() {
    let (record, meta) = parse_line(Format::DiskSim, "13.191135\t30  576560 5 81");
    assert_eq!((record.arrival_ns, record.offset_bytes, record.length_bytes), (13_191_135, 576_560 * 512, 2_560));
    assert_eq!((record.operation, record.flags), (Operation::Read, Flags::SYNC));
    assert_eq!((meta.devices[0].name.as_str(), meta.resolution_ns), ("30", 1));
    assert_eq!(parse_line(Format::DiskSim, "1 0 0 1 100").0.flags, Flags::default());
    let refused = [
        ("-1.5 0 0 1 1", "time"),
        ("nan 0 0 1 1", "time"),
        ("1.5 x 0 1 1", "device"),
        ("1.5 0 -1 1 1", "block"),
        ("1.5 0 0 8388608 1", "blocks"),
        ("1.5 0 0 1 9", "flags"),
        ("1.5 0 0 1 g", "flags"),
        ("1.5 0 0 1", ""),
        ("1.5 0 0 1 1 1", ""),
    ];
    refuses(&of(Format::DiskSim), "", &refused);
    assert_eq!(read(b"2.0 0 0 1 1\n1.999999 0 0 1 1\n", &of(Format::DiskSim)).unwrap_err().field, "time");
}

#[test]
fn mqsim() {
    let (record, meta) = parse_line(Format::MqSim, "938513000 4 264719034 16 0");
    assert_eq!((record.arrival_ns, record.operation, record.length_bytes), (938_513_000, Operation::Write, 8_192));
    assert_eq!((meta.resolution_ns, meta.notes.len()), (1, 1));
    for (unit, expected_ns) in [(TimeUnit::Microseconds, 938_513_000_000), (TimeUnit::Picoseconds, 938_513)] {
        let options = ReadOptions { time_unit: Some(unit), ..of(Format::MqSim) };
        assert_eq!(read(b"938513000 4 264719034 16 0", &options).unwrap().0[0].arrival_ns, expected_ns);
    }
    let refused = [
        ("1.5 4 0 16 0", "time"),
        ("9223372036854775808 4 0 16 0", "time"),
        ("1 4294967296 0 16 0", "device"),
        ("1 4 0 16 2", "type"),
        ("1 4 0 x 1", "sectors"),
        ("1 4 0x1 1 1", "lba"),
        ("1 4 0 1", ""),
    ];
    refuses(&of(Format::MqSim), "", &refused);
}

/// In a raw dump, the response time is in the completion, and completions may be in any order.
#[test]
fn hfplayer_in_and_out() {
    let header = "#ELAPSED_USECS.D,CMD.S,SEQID.I,LUN_SSID.I,OP.I,LBA.I,NBLKS.I,LATENCY_USECS.D";
    let lines = [
        "10.000,RD_IN,1,6,0,8,8,0.000",
        "20.000,WR_IN,2,6,1,16,8,0.000",
        "30.000,RD_IN,3,6,0,24,8,0.000",
        "45.500,WR_OUT,2,6,3,16,8,25.250",
        "50.000,RD_OUT,1,6,2,8,8,0.000",
        "60.000,RD_OUT,9,6,2,8,8,5.000",
    ];
    let text = format!("{header}\n{}\n", lines.join("\n"));
    let (records, meta) = read(text.as_bytes(), &ReadOptions::default()).unwrap();
    let times: Vec<(u64, u64)> = records.iter().map(|record| (record.arrival_ns, record.response_ns)).collect();
    // The second response time is below the 25.5 µs between its two lines, the first is missing, and the third request
    // never completed.
    assert_eq!(times, [(10_000, 40_000), (20_000, 25_250), (30_000, NOT_RECORDED)]);
    assert_eq!(meta.counts["completions without a matching request"], 1);
    assert_eq!(meta.counts["requests without a completion"], 1);
}

/// In this dump, the first line has time 0 while later lines count from the start of the controller.
#[test]
fn hfplayer_first_line_at_zero() {
    let header =
        "#ABS_SECS.D,ELAPSED_USECS.D,ELAPSED_TICKS.I,CMD.S,SEQID.I,OP.I,LBA.I,NBLKS.I,LATENCY_USECS.D,LBA_SHIFT.N";
    let lines = |first_us: &str| {
        let first = format!("1443033226.409,{first_us},36817835820,RD_IN,1,0,8,8,6896.102,0");
        let others = "1443033226.416,18415864.166,36831728332,WR_IN,2,1,112,8,330.288,104\n\
            1443033226.416,18416282.474,36832564948,RD_IN,3,0,0,8,6177.910,-120";
        format!("{header}\n{first}\n{others}\n")
    };
    let (records, meta) = read(lines("0").as_bytes(), &ReadOptions::default()).unwrap();
    // 2,000 ticks per µs, and 13,892,512 ticks before the second line.
    let arrivals: Vec<u64> = records.iter().map(|record| record.arrival_ns).collect();
    assert_eq!(arrivals, [18_408_917_910, 18_415_864_166, 18_416_282_474]);
    assert_eq!(meta.zero_unix_ns, Some(1_443_033_226_409_000_000 - 18_408_917_910));
    assert_eq!(meta.notes.len(), 1);
    let (right, meta) = read(lines("18408917.910").as_bytes(), &ReadOptions::default()).unwrap();
    assert_eq!((right, meta.notes.len()), (records, 0));
}

#[test]
fn headers_of_copies_are_no_requests() {
    for (format, header, line) in [
        (
            Format::Msr,
            "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime",
            "128166372003061629,hm,1,Read,4096,512,413",
        ),
        (
            Format::Msr,
            "timestamp, host, disk, op_type, offset, size, latency",
            "128166372003061629,hm,1,Read,4096,512,413",
        ),
        (Format::Alibaba, "device_id,opcode,offset,length,timestamp", "419,W,8792731648,16384,1577808144360767"),
        (
            Format::Alibaba,
            "\"DeviceID\",\"Op\",\"Offset\",\"Size\",\"Time\"",
            "419,W,8792731648,16384,1577808144360767",
        ),
        (Format::Tencent, "\u{feff}Timestamp,Offset,Size,IOType,VolumeID", "1538323199,3584,128,1,1283"),
    ] {
        // Headers are at the top and where two files were joined; a single request is enough to detect the format.
        for text in [format!("{header}\n{line}\n"), format!("{header}\n{line}\n{line}\n{header}\n{line}\n")] {
            let (records, meta) = read(text.as_bytes(), &ReadOptions::default()).unwrap();
            assert_eq!(meta.origin[0].format, format.name());
            assert_eq!(records.len(), text.lines().count() - text.matches(header).count(), "{header}");
            assert_eq!(meta.rejected, 0);
        }
        // A header with reordered columns is a bad line and is reported.
        let swapped = header.rsplit(',').collect::<Vec<_>>().join(",");
        let text = format!("{swapped}\n{line}\n{line}\n");
        let error = read(text.as_bytes(), &of(format)).unwrap_err();
        assert_eq!(error.place, crate::Place::Line(1), "{swapped}: {error}");
    }
}

#[test]
fn hfplayer() {
    let header = "#ELAPSED_USECS.D,CMD.S,LUN_SSID.I,OP.I,LBA.I,NBLKS.I,LATENCY_USECS.D";
    let text = format!("{header}\n50.25,WR_IN,6,1,2,2,200\n60,WR_OUT,6,3,2,2,200\n70,RD,7,0,4,8,\n");
    let (records, meta) = read(text.as_bytes(), &ReadOptions::default()).unwrap();
    assert_eq!(records.len(), 2);
    assert_eq!((records[0].arrival_ns, records[0].response_ns), (50_250, 200_000));
    assert_eq!((records[1].response_ns, records[1].length_bytes, records[1].device), (NOT_RECORDED, 4_096, 1));
    assert_eq!(meta.counts["completions without a matching request"], 1);
    assert_eq!(meta.resolution_ns, 10);
    let refused = [
        ("x,WR,6,1,2,2,200", "ELAPSED_USECS"),
        ("1,UN,6,1,2,2,200", "CMD"),
        ("1,WR,6,4,2,2,200", "OP"),
        ("1,WR,6,0,2,2,200", "OP"),
        ("1,WR,6,1,-2,2,200", "LBA"),
        ("1,WR,6,1,2,8388608,200", "NBLKS"),
        ("1,WR,6,1,2,2,-200", "LATENCY_USECS"),
        ("1,WR,,1,2,2,200", "LUN"),
        ("1,WR,6,1,2,2", ""),
        ("#ELAPSED_USECS.D,CMD.S", "header"),
    ];
    refuses(&of(Format::Hfplayer), header, &refused);
    let error = read(b"#DUMP_OFFSET.I,LBA.I\n1,2\n", &ReadOptions::default()).unwrap_err();
    assert_eq!((error.place, error.field), (crate::Place::Line(1), "header"), "{error}");
}

#[test]
fn biosnoop() {
    let header = "TIME(s)     COMM           PID     DISK      T SECTOR     BYTES   LAT(ms)";
    let text = format!(
        "{header}\n0.000004 supervise 1950 xvda1 W 13092560 4096 0.74\n0.1 kworker u8 (x) 7 vda RAM 8 512 1.25\n\
         0.2 ? 0 R -1 8 0.25\n0.3 a 1 vda FWS -1 0 0.5\n"
    );
    let (records, meta) = read(text.as_bytes(), &ReadOptions::default()).unwrap();
    assert_eq!(records.len(), 3);
    assert_eq!((records[0].arrival_ns, records[0].response_ns), (0, 740_000));
    // All times are shifted so that the first request begins at 0.
    assert_eq!(records[1].arrival_ns, 100_000_000 - 1_250_000 + 736_000);
    assert_eq!(records[1].flags, Flags::READ_AHEAD.with(Flags::METADATA));
    assert_eq!((records[2].operation, records[2].wait_ns), (Operation::Flush, NOT_RECORDED));
    let process = &meta.processes[records[1].process as usize - 1];
    assert_eq!((process.pid, process.name.as_str()), (7, "kworker u8 (x)"));
    assert_eq!(meta.counts["requests without an address"], 1);
    assert_eq!(meta.resolution_ns, 10_000);
    assert!(meta.notes.iter().any(|note| note.contains("736000 ns")), "{:?}", meta.notes);

    let queued = "TIMESTAMP TIME(s) COMM PID DISK T SECTOR BYTES QUE(ms) LAT(ms)";
    let text = format!("{queued}\n12:00:01 1.0 a b 7 vda WFS 8 512 0.25 1.5\n");
    let record = read(text.as_bytes(), &ReadOptions::default()).unwrap().0[0];
    assert_eq!((record.arrival_ns, record.wait_ns, record.response_ns), (998_250_000, 250_000, 1_750_000));
    assert_eq!((record.operation, record.flags), (Operation::Write, Flags::FUA.with(Flags::SYNC)));
    let pattern = "TIME(s) COMM PID DISK T SECTOR BYTES P LAT(ms)";
    let text = format!("{pattern}\n1.0 a b 7 vda W 8 512 S 1.5\n");
    assert_eq!(read(text.as_bytes(), &ReadOptions::default()).unwrap().0[0].length_bytes, 512);

    let refused = [
        ("x a 1 vda W 8 512 0.5", "TIME(s)"),
        ("1.0 a x vda W 8 512 0.5", "PID"),
        ("1.0 a 1 vda X 8 512 0.5", "T"),
        ("1.0 a 1 vda WX 8 512 0.5", "T"),
        ("1.0 a 1 vda W x 512 0.5", "SECTOR"),
        ("1.0 a 1 vda W 8 -1 0.5", "BYTES"),
        ("1.0 a 1 vda W 8 512 x", "LAT(ms)"),
        ("1.0 1 vda W 8 512 0.5", ""),
    ];
    refuses(&of(Format::Biosnoop), header, &refused);
    let late = "1.0 a 1 vda W 8 512 0.5\n".repeat(20_000) + "2.0 a 1 vda W 8 512 2000.5\n";
    let error = read(format!("{header}\n{late}").as_bytes(), &of(Format::Biosnoop)).unwrap_err();
    assert_eq!((error.place, error.field), (crate::Place::Line(20_002), "LAT(ms)"));

    let bpftrace = "Attached 4 probes\nTIME(ms)     DISK ID        COMM             PID    LAT(ms)\n611  259   0   bash   4179   10\n";
    let error = read(bpftrace.as_bytes(), &ReadOptions::default()).unwrap_err();
    assert!(error.message.contains("neither offset, length nor direction"), "{error}");
}

#[test]
fn options_of_other_formats_are_refused() {
    let text = b"128166385295514663,hm,0,Read,0,512,1";
    for options in [
        ReadOptions { sector_bytes: Some(512), ..of(Format::Msr) },
        ReadOptions { time_unit: Some(TimeUnit::Nanoseconds), ..of(Format::Msr) },
        ReadOptions { csv: of(Format::Csv).csv, ..of(Format::Msr) },
        ReadOptions { csv: None, ..of(Format::Csv) },
    ] {
        assert!(read(text, &options).is_err(), "{options:?}");
    }
}

#[test]
fn arc() {
    let (records, meta) = read(b"2814 4 0 1\n16 0 0 2\n2814 1 0 3\n", &of(table("arc"))).unwrap();
    assert_eq!((records[0].offset_bytes, records[0].length_bytes), (2_814 * 512, 2_048));
    assert_eq!(records.iter().map(|record| record.arrival_ns).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!((records[0].operation, meta.clock), (Operation::Unknown, Clock::Order));
    assert!(meta.notes[0].contains("times are not recorded"), "{:?}", meta.notes);
    let refused = [("x 4 0 1", "offset"), ("1 -4 0 1", "length"), ("1 4 0", ""), ("1 4 0 1 1", "")];
    refuses(&of(table("arc")), "1 4 0 1", &refused);
}

#[test]
fn lists_of_blocks_and_of_keys() {
    let (records, meta) = read(b"7\n7\n9\n", &of(table("blocks"))).unwrap();
    assert_eq!((records[2].offset_bytes, records[2].length_bytes, records[2].arrival_ns), (36_864, 4_096, 2));
    assert!(
        meta.notes.iter().any(|note| note == "numbers are treated as addresses in blocks of 4096 bytes"),
        "{:?}",
        meta.notes
    );
    let sectors = ReadOptions { sector_bytes: Some(512), ..of(table("blocks")) };
    assert_eq!(read(b"7\n", &sectors).unwrap().0[0], Record::new(0, Operation::Unknown, 3_584, 512));
    let (records, _) = read("a:1\nß\na:1\n".as_bytes(), &of(table("keys"))).unwrap();
    assert_eq!(records[0].offset_bytes, records[2].offset_bytes);
    assert_ne!(records[0].offset_bytes, records[1].offset_bytes);
    refuses(&of(table("blocks")), "7", &[("x", "offset"), ("7 8", ""), ("4503599627370496", "offset")]);
    refuses(&of(table("keys")), "7", &[("a,b", "key"), ("a b", ""), ("{", "key"), ("\u{1}", "key")]);
    let fits = |name: &str, text: &str| {
        let input = Input::from_bytes("t", text.as_bytes().to_vec()).unwrap();
        Format::ALL.into_iter().filter(|format| format.fits(input.head())).map(Format::name).collect::<Vec<_>>()
            == [name]
    };
    assert!(fits("blocks", "1\n2\n3\n") && !fits("blocks", "1\n2\n") && !fits("blocks", "1\n2\n3\nx\n"));
    // A list of words without repetitions is more likely a dictionary.
    assert!(fits("keys", "aa\nbb\naa\n") && !fits("keys", "aa\nbb\ncc\n"));
}

#[test]
fn fiu() {
    let line = "89967195974 4892 syslogd 904265560 8 W 6 0 531e779d26a45d0b3f9d2e1c8a7b6054";
    let (record, meta) = parse_line(table("fiu"), line);
    assert_eq!(
        (record.arrival_ns, record.offset_bytes, record.length_bytes),
        (89_967_195_974, 904_265_560 * 512, 4_096)
    );
    assert_eq!(
        (record.operation, meta.devices[0].name.as_str(), meta.clock),
        (Operation::Write, "6,0", Clock::Recording)
    );
    let process = &meta.processes[record.process as usize - 1];
    assert_eq!((process.pid, process.name.as_str(), meta.resolution_ns), (4_892, "syslogd", 1));
    let refused = [
        ("x 4892 syslogd 904265560 8 W 6 0 5", "time"),
        ("9 x syslogd 904265560 8 W 6 0 5", "pid"),
        ("9 4892 syslogd x 8 W 6 0 5", "offset"),
        ("9 4892 syslogd 9 x W 6 0 5", "length"),
        ("9 4892 syslogd 9 8 w 6 0 5", "op"),
        ("9 4892 syslogd 9 8 W 6 0", ""),
    ];
    refuses(&of(table("fiu")), line, &refused);
}

#[test]
fn tectonic() {
    let lines = "7 131072 65536 1572566425.1 2 1 17 5\n7 0 512 1572566425.5 4 1 17 5\n8 0 512 1572566426 100 1 17 5\n";
    let (records, meta) = read(lines.as_bytes(), &of(table("tectonic"))).unwrap();
    use Operation::{Read, Unknown, Write};
    assert_eq!(records.iter().map(|record| record.operation).collect::<Vec<_>>(), [Read, Write, Unknown]);
    // A request to part of a block has its offset within the block.
    assert_eq!(records[0].offset_bytes - records[1].offset_bytes, 131_072);
    assert_eq!(
        (records[0].arrival_ns, meta.clock, meta.resolution_ns),
        (1_572_566_425_100_000_000, Clock::Unix, 100_000_000)
    );
    let refused =
        [("7 0 512 1572566425.1 7 1 17 5", "op"), ("7 0 512 x 2 1 17 5", "time"), ("7 0 512 1572566425.1 2 1 17", "")];
    refuses(&of(table("tectonic")), "7 131072 65536 1572566425.1 2 1 17 5", &refused);
    // Releases have 8 to 10 columns; all lines of a file have the same number.
    assert_eq!(parse_line(table("tectonic"), "7 0 512 1572566425.1 2 1 17 5 9 9").0.length_bytes, 512);
}

#[test]
fn thesios() {
    let header = "filename,file_offset,op_type,request_io_size_bytes,start_time,simulated_latency";
    let text = format!("{header}\nab,65536,READ,4096,1705363200.25,0.0015\nab,0,WRITE,512,1705363200.5,\n");
    let (records, meta) = read(text.as_bytes(), &of(table("thesios"))).unwrap();
    assert_eq!(records[0].offset_bytes - records[1].offset_bytes, 65_536);
    assert_eq!((records[0].arrival_ns, records[0].response_ns), (1_705_363_200_250_000_000, 1_500_000));
    assert_eq!((records[1].response_ns, meta.response), (NOT_RECORDED, Some(crate::ResponseSpan::AtTheController)));
    refuses(
        &of(table("thesios")),
        header,
        &[("ab,0,Read,1,1705363200.25,1", "op"), ("ab,0,READ,1,1705363200,-1", "response")],
    );
    // Columns in another order, without optional ones.
    let other = "start_time,op_type,file_offset,filename,request_io_size_bytes\n1705363200.25,READ,65536,ab,4096\n";
    let (again, meta) = read(other.as_bytes(), &of(table("thesios"))).unwrap();
    assert_eq!(again[0], Record { response_ns: NOT_RECORDED, ..records[0] });
    assert_eq!(meta.response, None);
}

#[test]
fn twitter() {
    let (record, meta) = parse_line(table("twitter"), "12,q:q:1:8WTfjZU14ee,17,213,4,get,0");
    assert_eq!((record.arrival_ns, record.length_bytes, record.operation), (12_000_000_000, 213, Operation::Read));
    assert_eq!((meta.clock, meta.processes[0].pid, meta.resolution_ns), (Clock::Recording, 4, 1_000_000_000));
    assert_eq!(parse_line(table("twitter"), "12,x,17,213,4,delete,0").0.operation, Operation::Trim);
    refuses(
        &of(table("twitter")),
        "1,x,1,2,3,set,9",
        &[("1,x,1,2,3,SET,9", "op"), ("1,,1,2,3,set,9", "key"), ("1,x,1,2,3,set", "")],
    );
}

#[test]
fn cachelib() {
    let text = "key,op,size,op_count,key_size\n7,GET,0,3,40\n9,SET,82,1,40\n7,DELETE,82,120,40\n";
    let (records, meta) = read(text.as_bytes(), &of(table("cachelib"))).unwrap();
    use Operation::{Read, Trim, Write};
    assert_eq!(
        records.iter().take(5).map(|record| record.operation).collect::<Vec<_>>(),
        [Read, Read, Read, Write, Trim]
    );
    // A line represents as many requests as it states, up to 100.
    assert_eq!((records.len(), records[103].arrival_ns, meta.clock), (104, 103, Clock::Order));
    assert_eq!(meta.counts["requests omitted, of lines that represent more than 100"], 20);
    let timed = "op_time,key,key_size,op,op_count,size\n604038471,a,48,GET_LEASE,1,87\n604038473,b,48,SET,1,87\n";
    let (records, meta) = read(timed.as_bytes(), &of(table("cachelib"))).unwrap();
    assert_eq!((records[1].arrival_ns, meta.clock), (604_038_473_000_000_000, Clock::Recording));
    refuses(
        &of(table("cachelib")),
        "key,op,size,op_count,key_size",
        &[("7,GET,0,0,40", "count"), ("7,get,0,1,40", "op")],
    );
}

#[test]
fn open_cas() {
    let header = "device.id,device.name,header.timestamp,io.latency,io.lba,io.len,io.operation";
    let text = format!("{header}\n1,nvme0n1,33493819292,144925,8,16,Read\n");
    let (records, meta) = read(text.as_bytes(), &of(table("open-cas"))).unwrap();
    let mut expected = Record::new(33_493_819_292, Operation::Read, 4_096, 8_192);
    expected.response_ns = 144_925;
    assert_eq!((records[0], meta.devices[0].name.as_str()), (expected, "nvme0n1"));
    refuses(
        &of(table("open-cas")),
        header,
        &[("1,nvme0n1,33493819292,144925,8,16,read", "op"), ("1,a,1,1,x,1,Read", "offset")],
    );
}

const ETW: &str = "BeginHeader\n DiskRead, TimeStamp, Process Name ( PID), ByteOffset, IOSize, ElapsedTime, DiskNum\n \
                   DiskWrite, TimeStamp, Process Name ( PID), ByteOffset, IOSize, ElapsedTime, DiskNum\n \
                   DiskFlush, TimeStamp, Process Name ( PID), ElapsedTime, DiskNum\nEndHeader";

#[test]
fn etw() {
    let text = format!("{ETW}\nDiskRead, 1204, a b.exe ( 12), 0x1000, 0x200, 204, 4\n DiskFlush, 7, x ( 1), 2, 4\n");
    let (records, meta) = read(text.as_bytes(), &of(Format::Etw)).unwrap();
    // The event is written on completion of the request.
    let mut expected = Record::new(1_000_000, Operation::Read, 4_096, 512);
    (expected.response_ns, expected.process) = (204_000, 1);
    assert_eq!((records, meta.counts["lines of other events"]), (vec![expected], 1));
    assert_eq!(
        (meta.processes[0].pid, meta.processes[0].name.as_str(), meta.devices[0].name.as_str()),
        (12, "a b.exe", "4")
    );
    for (line, field) in [
        ("DiskRead, x, a ( 1), 0x0, 0x200, 1, 4", "TimeStamp"),
        ("DiskRead, 5, a ( x), 0x0, 0x200, 1, 4", "Process Name ( PID)"),
        ("DiskRead, 5, a ( 1), y, 0x200, 1, 4", "ByteOffset"),
        ("DiskRead, 5, a ( 1), 0x0, 0x100000000, 1, 4", "IOSize"),
        ("DiskRead, 5, a ( 1), 0x0, 0x200, 6, 4", "ElapsedTime"),
        ("DiskRead, 5, a ( 1), 0x0, 0x200, 1, d", "DiskNum"),
        ("DiskRead, 5, a ( 1), 0x0, 0x200, 1", ""),
        ("FileIo, 5", "event"),
    ] {
        let error = read(format!("{ETW}\n{line}\n").as_bytes(), &of(Format::Etw)).expect_err(line);
        assert_eq!((error.place, error.field), (crate::Place::Line(6), field), "{line}: {error}");
    }
    let error = read(b"BeginHeader\nEndHeader\nDiskRead, 1\n", &of(Format::Etw)).unwrap_err();
    assert!(error.message.contains("must declare DiskRead"), "{error}");
}

#[test]
fn bytes_are_not_taken_for_sectors() {
    let line =
        |number: u64, time: u64, unit: u64| format!("{time} 0 {} {} 1\n", number * 16 * 512 / unit, 8_192 / unit);
    let text = |unit: u64, point: &str| -> String {
        (0..40).map(|number| line(number, number * 1_000_000, unit).replacen(' ', &format!("{point} "), 1)).collect()
    };
    for (format, point) in [(Format::DiskSim, ".5"), (Format::MqSim, "")] {
        let sectors = read(text(512, point).as_bytes(), &of(format)).unwrap().0;
        assert_eq!((sectors[1].offset_bytes, sectors[1].length_bytes), (8_192, 8_192), "{format:?}");
        let error = read(text(1, point).as_bytes(), &of(format)).unwrap_err().to_string();
        assert!(error.contains("--sector 1 if they are bytes"), "{error}");
        for (options, expected) in [(1, 8_192), (512, 8_192 * 512)] {
            let options = ReadOptions { sector_bytes: Some(options), ..of(format) };
            assert_eq!(read(text(1, point).as_bytes(), &options).unwrap().0[1].offset_bytes, expected, "{format:?}");
        }
    }
}

#[test]
fn times_that_no_device_keeps_up_with_are_not_ns() {
    let text: String = (0..40).map(|number| format!("{} 0 {} 8 1\n", number * 20, number * 800)).collect();
    let error = read(text.as_bytes(), &of(Format::MqSim)).unwrap_err().to_string();
    assert!(error.contains("add --unit us, ms or s"), "{error}");
    let options = ReadOptions { time_unit: Some(TimeUnit::Milliseconds), ..of(Format::MqSim) };
    assert_eq!(read(text.as_bytes(), &options).unwrap().0[1].arrival_ns, 20_000_000);
}

#[test]
fn runs_prove_the_blocks_of_spc() {
    let text = |unit: u64| -> String {
        (0..100).map(|number| format!("0,{},8192,R,{number}.5\n", (900_000_000 + number * 8_192) / unit)).collect()
    };
    let (records, meta) = read(text(4_096).as_bytes(), &of(Format::Spc)).unwrap();
    assert_eq!(records[1].offset_bytes - records[0].offset_bytes, 8_192);
    assert!(meta.notes[0].contains("blocks of 4096 bytes"), "{:?}", meta.notes);
    let options = ReadOptions { sector_bytes: Some(512), ..of(Format::Spc) };
    assert_eq!(read(text(4_096).as_bytes(), &options).unwrap().0[1].offset_bytes, 219_728 * 512);
}

#[test]
fn options_that_a_format_has_no_use_for_are_refused() {
    let options = ReadOptions { sector_bytes: Some(512), ..of(Format::Iolog) };
    let error = read(b"fio version 3 iolog\n1 a add\n", &options).unwrap_err().to_string();
    assert!(error.contains("has no option sector size"), "{error}");
}

#[test]
fn biosnoop_without_its_header_is_read_as_with_it() {
    let header = "TIME(s)     COMM           PID    DISK      T SECTOR     BYTES  QUE(ms) LAT(ms)\n";
    let lines =
        "0.000004  fio  1234  sda  R  2048  4096  0.02 0.12\n0.5  my app  7  nvme0n1  WS  64  8192  0.01 1.50\n";
    let (records, _) = read(format!("{header}{lines}").as_bytes(), &of(Format::Biosnoop)).unwrap();
    let (found, meta) = read(lines.as_bytes(), &ReadOptions::default()).unwrap();
    assert_eq!((found, meta.origin[0].format.as_str()), (records, "biosnoop"));
    assert!(
        meta.notes[0].starts_with("the header is missing; columns are assumed to be TIME(s) COMM PID"),
        "{:?}",
        meta.notes
    );
    let plain = "0.000004  fio  1234  sda  R  2048  4096  0.12\n";
    assert_eq!(read(plain.as_bytes(), &ReadOptions::default()).unwrap().0[0].response_ns, 120_000);
}
