//! blkparse's text against the real program, and out and in again.

use crate::reading;
use headstack_needs::{Need, lacks};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use headstack_trace::export::blkparse::Writer;
use headstack_trace::{
    Clock, Collector, Flags, Format, Input, Meta, NOT_RECORDED, Operation, ReadOptions, Record, ResponseSpan, Stage,
    TraceReader,
};
use proptest::prelude::*;

fn read(input: Input, options: &ReadOptions) -> (Vec<Record>, Meta) {
    let mut reader = TraceReader::from_inputs(vec![input], options).unwrap();
    let records = reader.read_all().unwrap();
    (records, reader.meta().clone())
}

fn written(records: &[Record], meta: &Meta) -> (Vec<u8>, BTreeMap<&'static str, u64>) {
    let mut text = Vec::new();
    let mut writer = Writer::new(&mut text);
    for part in records.chunks(7) {
        writer.write(part, meta).unwrap();
    }
    let losses = writer.finish().unwrap();
    (text, losses)
}

fn as_text(text: Vec<u8>) -> (Vec<Record>, Meta) {
    let options = ReadOptions { format: Some(Format::Blkparse), ..ReadOptions::default() };
    read(Input::from_bytes("text", text).unwrap(), &options)
}

/// The program's text of one of the real traces; nothing where one of them is missing.
fn printed(name: &str) -> Option<(PathBuf, Vec<u8>)> {
    let path = reading::shared(&format!("traces/blktrace/{name}"))?;
    let unpacked = if name.ends_with(".xz") {
        let Ok(xz) = Command::new("xz").args(["-dc"]).arg(&path).stdout(Stdio::piped()).spawn() else {
            lacks(Need::Programs, "there is no xz");
            return None;
        };
        Stdio::from(xz.stdout.unwrap())
    } else {
        Stdio::from(File::open(&path).unwrap())
    };
    let Ok(output) = Command::new("blkparse").args(["-i", "-"]).stdin(unpacked).output() else {
        lacks(Need::Programs, "there is no blkparse");
        return None;
    };
    Some((path, output.stdout))
}

#[test]
fn the_text_of_real_traces_is_read_as_the_same_requests() {
    for name in ["loop0_poisson1500_8s.blktrace.bin", "loop0_220k_zipf.blktrace.bin.xz"] {
        let Some((path, text)) = printed(name) else { continue };
        for stage in [Stage::Queue, Stage::Issue] {
            let options = ReadOptions { at: Some(stage), ..ReadOptions::default() };
            let (binary, binary_meta) = read(Input::open(&path).unwrap(), &options);
            let (mut records, meta) = read(Input::from_bytes("text", text.clone()).unwrap(), &options);
            // The text counts from its first event, of whatever kind.
            let zero_ns = binary[0].arrival_ns - records[0].arrival_ns;
            records.iter_mut().for_each(|record| record.arrival_ns += zero_ns);
            assert!(records == binary, "{name} {stage:?}");
            assert_eq!((meta.processes, meta.devices), (binary_meta.processes, binary_meta.devices));
            assert!(meta.notes.is_empty(), "{:?}", meta.notes);
        }
    }
}

#[test]
fn a_real_trace_is_written_as_it_was_read() {
    let Some((path, _)) = printed("loop0_220k_zipf.blktrace.bin.xz") else { return };
    let (records, mut meta) = read(Input::open(&path).unwrap(), &ReadOptions::default());
    meta.clock = Clock::Recording;
    let (text, losses) = written(&records, &meta);
    assert!(losses.is_empty(), "{losses:?}");
    assert!(as_text(text).0 == records);
}

#[test]
fn the_sample_is_written_as_it_was_read() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("samples/sample.blkparse");
    for stage in [Stage::Queue, Stage::Issue] {
        let options = ReadOptions { at: Some(stage), ..ReadOptions::default() };
        let (records, meta) = read(Input::open(&path).unwrap(), &options);
        let (text, losses) = written(&records, &meta);
        assert!(losses.is_empty(), "{losses:?}");
        let (again, again_meta) = as_text(text);
        assert_eq!((again, again_meta.processes), (records, meta.processes));
        assert_eq!(again_meta.response, meta.response);
    }
}

#[test]
fn blkparse_text_reports_lost_fields() {
    let mut out = Collector::new(false);
    (out.meta.clock, out.meta.response) = (Clock::Unix, Some(ResponseSpan::AtTheHost));
    let device = out.device("hm.0");
    let mut odd = Record { device, ..Record::new(1_000, Operation::Read, 100, 1_000) };
    (odd.response_ns, odd.wait_ns) = (10, 20);
    let records = [
        odd,
        Record { device, ..Record::new(1_001, Operation::Unknown, 512, 512) },
        Record { device, flags: Flags::ERROR, ..Record::new(1_002, Operation::Write, 512, 0) },
        Record { device, flags: Flags::PASS_THROUGH, ..Record::new(1_003, Operation::Read, 0, 512) },
        Record { device, ..Record::new(1_004, Operation::Flush, 512, 512) },
    ];
    let (text, losses) = written(&records, &out.meta);
    let expected = [
        ("addresses", 2),
        ("dates", 1),
        ("device names", 5),
        ("errors", 1),
        ("lengths", 1),
        ("parts of sectors", 1),
        ("pass-through flags", 1),
        ("requests of no bytes", 1),
        ("unknown operations", 1),
        ("waits", 1),
    ];
    assert_eq!(losses, BTreeMap::from(expected));
    let first = "  0,0    0        1     0.000000000     0  Q   R 0 + 3 [(null)]\n";
    assert!(text.starts_with(first.as_bytes()), "{}", String::from_utf8_lossy(&text));
}

/// Requests that the text can hold: whole sectors, each at an address of its own; flushes one at a time.
fn requests(is_queued: bool) -> impl Strategy<Value = (Vec<Record>, Meta)> {
    let time = prop_oneof![Just(NOT_RECORDED), 0u64..2_000_000_000];
    let request = (0u64..3_000_000_000, 0usize..4, 1u32..4_000, 0u16..64, time.clone(), time, 0u32..3, 0u32..4);
    prop::collection::vec(request, 1..60).prop_map(move |requests| {
        let mut out = Collector::new(false);
        out.meta.response =
            Some(if is_queued { ResponseSpan::QueueToCompletion } else { ResponseSpan::IssueToCompletion });
        for device in ["8,0", "259,17", "253,1048575"] {
            out.device(device);
        }
        for (pid, name) in [(1, "init"), (77, "a b] [c"), (4_194_304, "")] {
            out.process(pid, name);
        }
        let records = requests.into_iter().enumerate().map(|(index, request)| {
            let (arrival_ns, kind, sectors, flags, wait_ns, response_ns, device, process) = request;
            let operation = [Operation::Read, Operation::Write, Operation::Trim, Operation::Other][kind];
            let mut record = Record::new(arrival_ns, operation, index as u64 * 4_000 * 512, sectors * 512);
            (record.response_ns, record.device, record.process, record.flags) =
                (response_ns, device, process, Flags(flags));
            if response_ns == NOT_RECORDED {
                record.flags.0 &= !Flags::ERROR.0;
            }
            if is_queued && (wait_ns == NOT_RECORDED || wait_ns <= response_ns) {
                record.wait_ns = wait_ns;
            }
            record
        });
        let mut records: Vec<Record> = records.collect();
        records.sort_by_key(|record| record.arrival_ns);
        let mut flush = Record::new(0, Operation::Flush, 0, 0);
        let end_ns = |record: &Record| record.arrival_ns + record.response_ns.min(2_000_000_000);
        flush.arrival_ns = records.iter().map(end_ns).max().unwrap_or(0) + 5;
        flush.response_ns = 40;
        flush.wait_ns = if is_queued { 7 } else { NOT_RECORDED };
        records.push(flush);
        (records, out.meta)
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read_again((records, meta) in any::<bool>().prop_flat_map(requests)) {
        let (text, losses) = written(&records, &meta);
        prop_assert!(losses.is_empty(), "{:?}", losses);
        let (again, again_meta) = as_text(text);
        prop_assert_eq!(again.len(), records.len());
        prop_assert_eq!(again_meta.response, meta.response);
        for (again, record) in again.iter().zip(&records) {
            let named = |record: &Record, meta: &Meta| {
                let process = (record.process as usize).checked_sub(1).map(|index| meta.processes[index].clone());
                let device = meta.devices[record.device as usize].name.clone();
                (Record { device: 0, process: 0, ..*record }, device, process)
            };
            prop_assert_eq!(named(again, &again_meta), named(record, &meta));
        }
    }

    #[test]
    fn any_lines_are_read_or_refused(text in "([0-9,]{1,5} [0-9]{1,2} 1 [0-9]{1,12}\\.[0-9]{9} [0-9]{1,11} [QDCXRA] [FWRDNZASM]{1,4} [0-9]{0,21}( [+/] [0-9]{1,21})? ?(\\(.{0,3}\\))?\\[.{0,4}\\]\n){1,6}") {
        let options = ReadOptions { format: Some(Format::Blkparse), skip_bad: true, ..ReadOptions::default() };
        let mut reader = TraceReader::from_inputs(vec![Input::from_bytes("t", text.into_bytes()).unwrap()], &options).unwrap();
        let mut batch = Vec::new();
        while reader.next_batch(&mut batch).unwrap() {
            for record in &batch {
                prop_assert!(record.end_bytes() <= 1 << 63);
            }
        }
    }
}
