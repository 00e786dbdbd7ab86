//! Transformations: any text as steps, one a line up to a byte 0, and what they do to requests whose figures the bytes behind
//! it choose among those at the edges.

#![no_main]

use std::fmt::Write;

use headstack_fuzz::assert_records_are_sound;
use headstack_trace::{CsvColumns, Input, ReadOptions, Step, TraceReader};
use libfuzzer_sys::fuzz_target;

/// Bytes that make a request.
const REQUEST_BYTES: usize = 4;
const NUMBERS: [u64; 12] = [
    0,
    1,
    511,
    512,
    4096,
    1 << 20,
    1 << 32,
    (1 << 32) + 1,
    1 << 53,
    (1 << 63) - (1 << 32),
    (1 << 63) - 1024,
    (1 << 63) - 1,
];
const LENGTHS: [u32; 6] = [0, 1, 512, 4096, 1 << 20, u32::MAX];

fuzz_target!(|bytes: &[u8]| {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    let Ok(text) = std::str::from_utf8(&bytes[..end]) else { return };
    let mut steps = Vec::new();
    for line in text.lines() {
        match Step::parse(line) {
            Ok(step) => {
                let printed = step.to_string();
                assert_eq!(Step::parse(&printed).as_ref(), Ok(&step), "{printed}");
                steps.push(step);
            }
            Err(error) => assert!(error.lines().count() <= 1 || line.contains(char::is_control), "{error}"),
        }
    }
    if bytes.len() < end + REQUEST_BYTES {
        return;
    }
    let mut csv = "time,offset,length,op,device\n".to_owned();
    for request in bytes[end..].chunks_exact(REQUEST_BYTES) {
        let number = |at: usize| NUMBERS[usize::from(request[at]) % NUMBERS.len()];
        let length = LENGTHS[usize::from(request[2]) % LENGTHS.len()];
        let operation = ["R", "W"][usize::from(request[3]) % 2];
        writeln!(csv, "{},{},{length},{operation},{}", number(0), number(1), request[3] / 32).expect("memory");
    }
    let columns = CsvColumns::parse("time=time:ns,offset=offset,length=length,op=op,device=device");
    let options = ReadOptions { csv: Some(columns.expect("columns")), skip_bad: true, steps, ..ReadOptions::default() };
    let input = Input::from_bytes("steps.csv", csv.into_bytes()).expect("it has a header");
    let mut reader = TraceReader::from_inputs(vec![input], &options).expect("it has columns");
    let records = reader.read_all().expect("bad lines are skipped");
    assert_records_are_sound(&records, reader.meta(), &mut 0);
});
