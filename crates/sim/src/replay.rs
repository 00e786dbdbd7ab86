//! Replay of a recorded trace with one request outstanding and the recorded think times.

use headstack_workload::{ReplayRecord, Request};

use crate::SimError;
use crate::disk::Disk;
use crate::drive::description::DriveDescription;

/// Response times of `records` on a drive that starts at rest with an empty buffer: the first request is issued at 0,
/// each later one its predecessor's think time after that one's completion.
///
/// # Errors
/// An impossible drive, or a request outside it.
pub fn replay(description: &DriveDescription, records: &[ReplayRecord]) -> Result<Vec<u64>, SimError> {
    let mut drive = Disk::new(description, 0)?;
    let capacity = drive.capacity_bytes();
    let mut responses = Vec::with_capacity(records.len());
    let mut issue_ns = 0;
    for (index, record) in records.iter().enumerate() {
        let end = record.offset_bytes.checked_add(u64::from(record.length_bytes));
        if record.length_bytes == 0 || end.is_none_or(|end| end > capacity) {
            return Err(SimError::Request {
                number: index + 1,
                message: format!(
                    "{} bytes at {}; the drive ends at {capacity}",
                    record.length_bytes, record.offset_bytes
                ),
            });
        }
        drive.advance(issue_ns, |_| unreachable!("one request is outstanding at a time"));
        drive.submit(
            issue_ns,
            0,
            &Request {
                kind: record.kind,
                offset_bytes: record.offset_bytes,
                length_bytes: record.length_bytes,
                force_unit_access: false,
                ordered: false,
            },
        );
        let mut completed_ns = None;
        while completed_ns.is_none() {
            drive.advance(drive.next_event_ns(), |completion| completed_ns = Some(completion.at_ns));
        }
        let completed_ns = completed_ns.expect("the loop ends with a completion");
        responses.push(completed_ns - issue_ns);
        issue_ns = completed_ns + record.think_ns;
    }
    Ok(responses)
}
