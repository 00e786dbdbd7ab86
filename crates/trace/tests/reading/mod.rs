//! Traces in memory, read to their end.

use headstack_trace::{Format, Input, Meta, ReadOptions, Record, TraceError, TraceReader};

/// All records and what is known of them; the format is `format`, or told by content.
pub fn read(bytes: &[u8], format: Option<Format>, skip_bad: bool) -> Result<(Vec<Record>, Meta), TraceError> {
    read_files(&[("trace", bytes)], format, skip_bad)
}

/// The same, of several files.
pub fn read_files(
    files: &[(&str, &[u8])],
    format: Option<Format>,
    skip_bad: bool,
) -> Result<(Vec<Record>, Meta), TraceError> {
    let inputs = files.iter().map(|(name, bytes)| Input::from_bytes(name, bytes.to_vec()));
    let inputs = inputs.collect::<Result<Vec<_>, _>>()?;
    let mut reader = TraceReader::from_inputs(inputs, &ReadOptions { format, skip_bad, ..ReadOptions::default() })?;
    let (mut records, mut batch) = (Vec::new(), Vec::new());
    while reader.next_batch(&mut batch)? {
        records.append(&mut batch);
    }
    Ok((records, reader.meta().clone()))
}
