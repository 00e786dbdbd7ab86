//! Tests of declarations, and of files that do or do not match them.

use super::*;
use crate::formats::Format;
use crate::formats::ReadOptions;
use crate::formats::tests::read;
use crate::meta::{Meta, ResponseSpan};

fn declared(text: &str) -> ReadOptions {
    ReadOptions {
        csv: Some(CsvColumns::parse(text).unwrap_or_else(|why| panic!("{text}: {why}"))),
        ..ReadOptions::default()
    }
}

fn all(text: &str, declaration: &str) -> (Vec<Record>, Meta) {
    read(text.as_bytes(), &declared(declaration)).unwrap_or_else(|error| panic!("{declaration}: {error}"))
}

fn refusal(text: &str, declaration: &str) -> TraceError {
    read(text.as_bytes(), &declared(declaration)).expect_err(declaration)
}

#[test]
fn columns_are_found_by_name() {
    let text = "Size, LBA ,ts,OP,vol,lat\n4096,7,1538323200000001,r,\"a, b\",0.25\n512,8,1538323200000002,Trim,c,\n";
    let declaration = "time=ts:us,offset=lba:512,length=size,op=op,device=vol,response=lat:ms";
    let (records, meta) = all(text, declaration);
    assert_eq!(records[0].arrival_ns, 1_538_323_200_000_001_000);
    assert_eq!((records[0].offset_bytes, records[0].length_bytes, records[0].response_ns), (3_584, 4_096, 250_000));
    assert_eq!((records[1].operation, records[1].response_ns), (Operation::Trim, NOT_RECORDED));
    assert_eq!(meta.devices.iter().map(|device| device.name.as_str()).collect::<Vec<_>>(), ["a, b", "c"]);
    assert_eq!((meta.clock, meta.resolution_ns, meta.response), (Clock::Unix, 1_000, Some(ResponseSpan::AtTheHost)));
    assert_eq!(meta.counts["requests without a response time"], 1);
    assert_eq!(meta.origin[0].format, Format::Csv.name());
    assert_eq!(refusal(text, "time=when:us,offset=lba,length=size").field, "header");
    assert_eq!(all("\u{feff}t,o,l\r\n1,2,3\r\n", "time=t:us,offset=o,length=l").0.len(), 1);
    let twice = refusal("ts,ts,o,l\n1,2,3,4\n", "time=ts:us,offset=o,length=l");
    assert!(twice.message.contains("two columns `ts`"), "{twice}");
}

#[test]
fn columns_are_found_by_number_after_skipped_lines() {
    let text = "# made by hand\n# twice\n0.5\t0\t8\t1\n1.25\t16\t8\t0\n";
    let (records, meta) = all(text, "time=1:s,offset=2:512,length=3:512,op=4,read=1,separator=tab,skip=2");
    assert_eq!(records.iter().map(|record| record.operation).collect::<Vec<_>>(), [Operation::Read, Operation::Write]);
    assert_eq!(
        (records[1].arrival_ns, records[1].offset_bytes, records[1].length_bytes),
        (1_250_000_000, 8_192, 4_096)
    );
    assert_eq!((meta.clock, meta.resolution_ns, meta.response), (Clock::Recording, 10_000_000, None));
    // Without `op`, the operation is unknown, which is not an error.
    let (records, meta) = all(text, "time=1:s,offset=2:512,length=3:512,separator=blank,skip=2");
    assert_eq!((records[0].operation, meta.counts.len()), (Operation::Unknown, 0));
    // Empty fields at the end of a line count.
    let (records, _) = all("1\t2\t3\t\n4\t5\t6\t\n", "time=1:us,offset=2,length=3,op=4,separator=tab");
    assert_eq!(records.len(), 2);
}

#[test]
fn lines_are_skipped_at_the_top_only() {
    let mut text = "x\n".repeat(3);
    for i in 0..40_000 {
        text += &format!("{i},{},512\n", i * 512);
    }
    let (records, _) = all(&text, "time=1:us,offset=2,length=3,skip=3");
    assert_eq!(records.len(), 40_000);
    assert!(records.iter().zip(0..).all(|(record, i)| record.arrival_ns == i * 1_000));
}

#[test]
fn units_of_time_and_their_base() {
    let columns = "offset=2,length=3";
    for (text, declaration, expected_ns) in [
        ("1538323200.5", "time=1:s", 1_538_323_200_500_000_000),
        ("1538323200500", "time=1:ms", 1_538_323_200_500_000_000),
        ("1538323200500000001", "time=1:ns", 1_538_323_200_500_000_001),
        ("128166385295514663", "time=1:filetime", 1_172_164_929_551_466_300),
        ("17", "time=1:100ns", 1_700),
        ("2.5e-3", "time=1:s", 2_500_000),
        // About 25 minutes in the recording, or a date.
        ("1538323200", "time=1:us,base=recording", 1_538_323_200_000),
    ] {
        let records = all(&format!("{text},0,512\n"), &format!("{declaration},{columns}")).0;
        assert_eq!(records[0].arrival_ns, expected_ns, "{declaration}");
    }
    for (text, declaration, hint) in [
        ("1538323200500", "time=1:us", "the year 2018 in ms since 1970"),
        ("1538323200", "time=1:ms", "the year 2018 in s since 1970"),
        ("1538323200500000000", "time=1:us", "the year 2018 in ns since 1970"),
        ("128166385295514663", "time=1:us", "the year 2007 in 100 ns since 1601"),
        ("1538323200500", "time=1:us,base=unix", "as ms since 1970 it would be in 2018"),
        ("17", "time=1:us,base=unix", "between 1980 and 2099"),
        ("17", "time=1:filetime", "100 ns since 1601, between 1980 and 2099"),
        ("-1", "time=1:us", "a number of us"),
        ("1e99", "time=1:us", "a number of us"),
    ] {
        let error = refusal(&format!("{text},0,512\n"), &format!("{declaration},{columns}"));
        assert!(error.message.contains(hint) && error.field == "time", "{declaration}: {error}");
        assert_eq!(error.to_string().lines().count(), 1);
    }
}

#[test]
fn a_recording_of_decades_has_a_wrong_unit() {
    let error = refusal("0,0,512\n400000000,0,512\n", "time=1:s,offset=2,length=3");
    assert_eq!((error.place, error.field), (Place::Line(2), "time"), "{error}");
    assert!(error.message.contains("10 years"), "{error}");
    assert_eq!(all("0,0,512\n300000000,0,512\n", "time=1:s,offset=2,length=3").0.len(), 2);
}

#[test]
fn response_times_are_of_the_unit_of_arrivals() {
    // The mean queue depth is 2 if all times are in µs.
    let text: String = (0..2_000).map(|i| format!("{},0,512,200\n", 100 * i)).collect();
    assert_eq!(all(&text, "time=1:us,offset=2,length=3,response=4:us").0.len(), 2_000);
    for declaration in ["time=1:us,offset=2,length=3,response=4:s", "time=1:ns,offset=2,length=3,response=4:ms"] {
        let error = refusal(&text, declaration);
        assert!(error.field == "response" && error.message.contains("correct the unit"), "{error}");
    }
    // Requests within one second may have equal timestamps.
    let text: String = (0..2_000).map(|_| "7,0,512,200\n".to_owned()).collect();
    assert_eq!(all(&text, "time=1:s,offset=2,length=3,response=4:ms").0.len(), 2_000);
    let error = refusal("7,0,512,86401\n", "time=1:s,offset=2,length=3,response=4:s");
    assert_eq!(error.field, "response");
}

#[test]
fn bad_lines_name_their_field() {
    let header = "t,o,l,k,r";
    let declaration = "time=t:us,offset=o:4096,length=l:512,op=k,response=r:us";
    for (line, field) in [
        ("x,0,1,R,1", "time"),
        ("1,2251799813685248,1,R,1", "offset"),
        ("1,2251799813685247,8,R,1", "offset"),
        ("1,-1,1,R,1", "offset"),
        ("1,0,8388608,R,1", "length"),
        ("1,0,,R,1", "length"),
        ("1,0,1,0,1", "op"),
        ("1,0,1,R,-1", "response"),
        ("1,0,1,R,inf", "response"),
        ("1,0,1,R", ""),
        ("1,0,1,R,1,1", ""),
        ("\"1,0,1,R,1", "time"),
        ("\"1,0,1,R,1\"", ""),
    ] {
        let error = refusal(&format!("{header}\n1,0,1,R,1\n{line}\n"), declaration);
        assert_eq!((error.place, error.field), (Place::Line(3), field), "{line}: {error}");
    }
    let error = refusal(&format!("{header}\n1,0,1,0,1\n"), declaration);
    assert!(error.message.contains("declare read=WORD"), "{error}");
    let declaration = format!("{declaration},read=1|Get,write=0|Put");
    assert_eq!(all(&format!("{header}\n1,0,1,Put,1\n"), &declaration).0[0].operation, Operation::Write);
    assert!(refusal("a,b\n", "time=a:us,offset=b,length=b").message.contains("no request"));
}

#[test]
fn bad_declarations_are_refused_with_allowed_values() {
    for (text, part) in [
        ("", "`offset` must be declared"),
        ("offset=1,length=2,base=unix", "without a time"),
        ("time=1:us,length=2", "`offset` must be declared"),
        ("time=1:us,offset=2", "`length` must be declared"),
        ("time", "KEY=VALUE"),
        ("when=1:us", "`when` must be time, offset"),
        ("or=1", "`or` must be time, offset"),
        ("time=,offset=1,length=1", "must have a value"),
        ("time=1:us,time=2:us", "once"),
        ("time=1,offset=2,length=3", "must have a unit"),
        ("time=1:h,offset=2,length=3", "not `h`"),
        ("time=1:ps,offset=2,length=3", "not `ps`"),
        ("time=0:us,offset=2,length=3", "from 1 to 1000"),
        ("time=:us,offset=2,length=3", "name in the header"),
        ("time=1:us,offset=2:0,length=3", "not `0`"),
        ("time=1:us,offset=2:KiB,length=3", "not `KiB`"),
        ("time=1:us,offset=2,length=3:2000000", "up to 1048576"),
        ("time=1:us,offset=2,length=3,response=4", "must have a unit"),
        ("time=1:us,offset=2,length=3,response=4:filetime", "a duration"),
        ("time=1:filetime,offset=2,length=3,base=recording", "file times and dates"),
        ("time=1:us,offset=2,length=3,base=boot", "unix or recording"),
        ("time=1:us,offset=2,length=3,separator=xx", "semicolon"),
        ("time=1:us,offset=2,length=3,skip=-1", "number of lines"),
        ("time=1:us,offset=2,length=3,read=a|b,write=b", "only one of read and write"),
    ] {
        let why = CsvColumns::parse(text).expect_err(text);
        assert!(why.contains(part) && why.lines().count() == 1, "{text}: {why}");
    }
}

#[test]
fn dates_are_texts_and_times_those_of_completion() {
    let text = "when,lba,len,lat\n2023-11-15 12:00:00.250,0,512,250\n2023-11-15T12:00:01.000+00:00,8,512,1000\n";
    let (records, meta) = all(text, "time=when:date,offset=lba:512,length=len,response=lat:ms,at=completion");
    let noon_ns = 1_700_049_600_000_000_000;
    assert_eq!(records.iter().map(|record| record.arrival_ns).collect::<Vec<_>>(), [noon_ns, noon_ns]);
    assert_eq!((meta.clock, meta.resolution_ns), (Clock::Unix, 1_000_000));
    // The first request began before the recording.
    let (records, meta) = all("5,0,512,8\n9,8,512,2\n", "time=1:ms,offset=2,length=3,response=4:ms,at=completion");
    assert_eq!(records.iter().map(|record| record.arrival_ns / 1_000_000).collect::<Vec<_>>(), [0, 10]);
    assert!(meta.notes.iter().any(|note| note.contains("shifted by 3000000 ns")), "{:?}", meta.notes);
    let seconds = all("2023-11-15 12:00:00,0,512\n", "time=1:date,offset=2,length=3").1;
    assert_eq!(seconds.resolution_ns, NS_PER_S);
    assert!(seconds.notes.iter().any(|note| note.contains("whole seconds")), "{:?}", seconds.notes);
    let error = refusal("15.11.2023 12:00,0,512\n", "time=1:date,offset=2,length=3");
    assert!(error.message.contains("a date such as"), "{error}");
    for (declaration, part) in [
        ("time=1:s,offset=2,length=3,at=completion", "declare both"),
        ("time=1:s,offset=2,length=3,response=4:s,at=x", "arrival or completion"),
    ] {
        let why = CsvColumns::parse(declaration).expect_err(declaration);
        assert!(why.contains(part), "{declaration}: {why}");
    }
}

#[test]
fn a_declared_unit_that_runs_disprove_is_refused() {
    let text: String = (0..100).map(|number| format!("{number},{},8192\n", 7_000_000 + number * 16)).collect();
    assert_eq!(all(&text, "time=1:s,offset=2:512,length=3").0[1].offset_bytes, 7_000_016 * 512);
    let error = refusal(&text, "time=1:s,offset=2,length=3");
    assert_eq!(error.field, "offset");
    assert!(error.message.contains("sequential in units of 512 bytes"), "{error}");
}
