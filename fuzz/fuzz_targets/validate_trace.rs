//! DiskSim's `validate` traces.

#![no_main]

use headstack_trace::validate::{ValidateRecord, read_validate};
use headstack_workload::Kind;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| match read_validate("fuzz.trace", text) {
    Ok(records) => {
        let printed: String = records.iter().map(line).collect();
        assert_eq!(read_validate("printed.trace", &printed), Ok(records));
    }
    Err(error) => assert_eq!(error.to_string().lines().count(), 1, "an error is one line"),
});

fn line(record: &ValidateRecord) -> String {
    let kind = match record.kind {
        Kind::Read => 'R',
        Kind::Write => 'W',
        other => panic!("a validate trace holds no {}", other.name()),
    };
    let us = |ns: u64| format!("{}.{:03}", ns / 1000, ns % 1000);
    let ValidateRecord { block, blocks, service_ns, think_ns, .. } = *record;
    format!("{kind} Hit {block} {blocks} {} {}\n", us(service_ns), us(think_ns))
}
