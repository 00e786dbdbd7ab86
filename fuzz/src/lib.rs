//! What must hold of a drive or a trace that a parser has accepted, whichever parser it was.

use std::collections::BTreeMap;

use headstack_catalogue::{description_to_toml, resolve};
use headstack_sim::drive::check;
use headstack_sim::drive::description::DriveDescription;
use headstack_sim::drive::geometry::Layout;
use headstack_sim::replay::closed_responses_ns;
use headstack_trace::{CsvColumns, Format, Input, Meta, NOT_RECORDED, ReadOptions, Record, TraceError, TraceReader};
use headstack_workload::{Document, Kind, Recorded, Request};

/// Asserts that the drive can exist, that its ends are on it, that it serves requests, and that its complete form reads
/// back as the very same drive.
pub fn assert_sound(description: &DriveDescription) {
    check(description).expect("an accepted drive is possible");
    let layout = Layout::new(&description.geometry);
    for block in [0, layout.blocks() - 1] {
        let extent = layout.locate(block, 1);
        assert!(extent.cylinder < description.geometry.cylinders, "block {block} lies on cylinder {}", extent.cylinder);
        assert!(extent.head < description.geometry.heads, "block {block} lies on surface {}", extent.head);
    }
    assert_serves(description);
    let text = description_to_toml(description, &BTreeMap::new());
    let again = resolve(&Document::parse("complete.toml", &text).expect("the complete form is TOML"));
    let again = again.expect("the complete form is accepted");
    assert_eq!(again.description, *description);
    assert_eq!(again.derived, [], "the complete form leaves nothing to derive");
}

/// A read, a write and a read again of the first, the middle and the last block.
fn assert_serves(description: &DriveDescription) {
    let block_bytes = description.geometry.logical_block_bytes;
    let last = description.geometry.logical_blocks - 1;
    let accesses = [0, last / 2, last].into_iter().flat_map(|block| [Kind::Read, Kind::Write, Kind::Read].map(|kind| (kind, block)));
    let records: Vec<Recorded> = accesses
        .map(|(kind, block)| Request {
            kind,
            offset_bytes: block * u64::from(block_bytes),
            length_bytes: block_bytes,
            force_unit_access: false,
            ordered: false,
        })
        .map(|request| Recorded { arrival_ns: 0, completion_ns: Some(0), request })
        .collect();
    let responses_ns = closed_responses_ns(description, records.iter().copied()).expect("the requests lie on the drive");
    assert_eq!(responses_ns.len(), records.len());
}

/// Asserts that a trace is read in order of arrival, or refused on one line.
pub fn assert_trace_is_sound(bytes: &[u8], format: Option<Format>, skip_bad: bool) {
    if let Err(error) = read_trace(bytes, format, skip_bad) {
        assert_eq!(error.to_string().lines().count(), 1, "an error is one line");
    }
}

/// The columns of the sample of declared ones.
const CSV: &str = "time=ts_us:us,offset=lba:512,length=bytes,op=op,device=volume,response=latency_ms:ms,separator=;";

fn read_trace(bytes: &[u8], format: Option<Format>, skip_bad: bool) -> Result<(), TraceError> {
    let input = Input::from_bytes("fuzz.trace", bytes.to_vec())?;
    let csv = (format == Some(Format::Csv)).then(|| CsvColumns::parse(CSV).expect("columns"));
    let options = ReadOptions { format, skip_bad, csv, ..ReadOptions::default() };
    let mut reader = TraceReader::from_inputs(vec![input], &options)?;
    let (mut batch, mut latest_ns) = (Vec::new(), 0);
    while reader.next_batch(&mut batch)? {
        assert_records_are_sound(&batch, reader.meta(), &mut latest_ns);
    }
    assert_eq!(reader.meta().rejected > 0, !reader.meta().rejects.is_empty());
    Ok(())
}

/// Asserts what holds for every request of a trace, the one before these having arrived at `latest_ns`.
pub fn assert_records_are_sound(records: &[Record], meta: &Meta, latest_ns: &mut u64) {
    for record in records {
        assert!(record.arrival_ns < 1 << 63, "an arrival is a time");
        assert!(record.offset_bytes.checked_add(record.length_bytes.into()).is_some_and(|end| end < 1 << 63));
        assert!((record.device as usize) < meta.devices.len());
        assert!(record.process as usize <= meta.processes.len());
        assert!(record.arrival_ns >= *latest_ns, "an arrival goes back");
        for time_ns in [record.response_ns, record.wait_ns] {
            assert!(time_ns < 1 << 63 || time_ns == NOT_RECORDED, "a time is a time");
        }
        *latest_ns = record.arrival_ns;
    }
}
