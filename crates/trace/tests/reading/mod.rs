//! Traces in memory, read to their end, and folders for those that are not.

use std::path::PathBuf;

use headstack_trace::{Format, Input, Meta, ReadOptions, Record, TraceError, TraceReader};

/// The columns of the sample that leaves them to be declared.
pub const CSV_COLUMNS: &str =
    "time=ts_us:us,offset=lba:512,length=bytes,op=op,device=volume,response=latency_ms:ms,separator=;";

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
    let records = reader.read_all()?;
    Ok((records, reader.meta().clone()))
}

/// A real trace that the project does not ship, by its path in the folder of such; nothing, said aloud, where it is missing.
pub fn shared(path: &str) -> Option<PathBuf> {
    let shared = std::env::var_os("HEADSTACK_SHARED")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"), PathBuf::from);
    let path = shared.join(path);
    if !path.is_file() {
        headstack_needs::lacks(headstack_needs::Need::Data, format_args!("{} is missing", path.display()));
        return None;
    }
    Some(path)
}

/// A sample that the project ships.
pub fn sample(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("samples").join(name)
}

/// Asserts that a sample is what a test makes of it; `HEADSTACK_WRITE_SAMPLES=1` writes it anew.
pub fn assert_is_sample(name: &str, bytes: &[u8]) {
    if std::env::var_os("HEADSTACK_WRITE_SAMPLES").is_some() {
        std::fs::write(sample(name), bytes).unwrap();
    }
    let found = std::fs::read(sample(name)).unwrap();
    assert!(found == bytes, "{name} is not what the test makes; HEADSTACK_WRITE_SAMPLES=1 writes it anew");
}

/// A folder of its own for each test, gone with it.
pub struct Folder(PathBuf);

impl Folder {
    /// An empty one.
    pub fn new(test: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("headstack-{test}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    /// The path of a file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// What is in it, in order.
    pub fn names(&self) -> Vec<String> {
        let name = |entry: std::fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
        let mut names: Vec<String> = std::fs::read_dir(&self.0).unwrap().map(|entry| name(entry.unwrap())).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
