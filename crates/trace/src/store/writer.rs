//! Writing the stored form: under a temporary name until it is whole.

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterPropertiesPtr;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::ColumnDescPtr;
use rayon::prelude::*;

use super::columns::{Names, encode};
use super::schema::{Column, descriptor, properties, schema};
use super::{META_KEY, ROW_GROUP};
use crate::error::TraceError;
use crate::meta::Meta;
use crate::record::Record;

/// Writes a trace in the stored form. Until [`StoreWriter::finish`] the file has a temporary name beside its own, and is
/// removed when the writer is dropped.
pub struct StoreWriter {
    path: PathBuf,
    temporary: PathBuf,
    file: Option<SerializedFileWriter<BufWriter<File>>>,
    descriptions: Vec<ColumnDescPtr>,
    properties: WriterPropertiesPtr,
    pending: Vec<Record>,
    written: u64,
    last_arrival_ns: u64,
}

impl StoreWriter {
    /// Begins a file that will be `path`.
    ///
    /// # Errors
    /// A place that cannot be written to.
    pub fn create(path: &Path) -> Result<StoreWriter, TraceError> {
        let name =
            path.file_name().ok_or_else(|| TraceError::of_file(path.display().to_string(), "is no file name"))?;
        let temporary = path.with_file_name(format!(".{}.{}.partial", name.to_string_lossy(), std::process::id()));
        let failed = |error: &dyn std::fmt::Display| TraceError::of_file(path.display().to_string(), error);
        let file = File::create(&temporary).map_err(|error| failed(&error))?;
        let properties = properties();
        let file = SerializedFileWriter::new(BufWriter::with_capacity(1 << 20, file), schema(), properties.clone());
        Ok(StoreWriter {
            path: path.to_owned(),
            temporary,
            file: Some(file.map_err(|error| failed(&error))?),
            descriptions: descriptor().columns().to_vec(),
            properties,
            pending: Vec::with_capacity(ROW_GROUP),
            written: 0,
            last_arrival_ns: 0,
        })
    }

    /// Appends records, which continue the order of arrival. `meta` names their devices and processes.
    ///
    /// # Errors
    /// A disk that is full or gone.
    pub fn write(&mut self, records: &[Record], meta: &Meta) -> Result<(), TraceError> {
        for part in records.chunks(ROW_GROUP) {
            let (now, later) = part.split_at(part.len().min(ROW_GROUP - self.pending.len()));
            self.pending.extend_from_slice(now);
            if self.pending.len() == ROW_GROUP {
                self.write_row_group(meta)?;
            }
            self.pending.extend_from_slice(later);
        }
        Ok(())
    }

    /// Requests that were written.
    pub fn written(&self) -> u64 {
        self.written + self.pending.len() as u64
    }

    /// Writes what is left and gives the file its name.
    ///
    /// # Errors
    /// A disk that is full or gone.
    pub fn finish(self, meta: &Meta) -> Result<(), TraceError> {
        let path = self.path.clone();
        self.finish_as(&path, meta)
    }

    /// The same, under another name.
    pub(crate) fn finish_as(mut self, path: &Path, meta: &Meta) -> Result<(), TraceError> {
        self.write_row_group(meta)?;
        let meta = serde_json::to_string(meta).expect("metadata is plain data");
        let mut file = self.file.take().expect("a writer is finished once");
        file.append_key_value_metadata(KeyValue::new(META_KEY.to_owned(), meta));
        file.close().map_err(|error| self.failed(&error))?;
        fs::rename(&self.temporary, path).map_err(|error| self.failed(&error))
    }

    fn write_row_group(&mut self, meta: &Meta) -> Result<(), TraceError> {
        if self.pending.is_empty() {
            return Ok(());
        }
        self.check_order();
        let names = Names::new(meta);
        let (records, properties) = (&self.pending, &self.properties);
        let encoded: Result<Vec<_>, ParquetError> = Column::ALL
            .par_iter()
            .zip(&self.descriptions)
            .with_max_len(1)
            .map(|(&column, description)| encode(column, records, &names, description.clone(), properties.clone()))
            .collect();
        let file = self.file.as_mut().expect("a writer is written to before its end");
        let appended = encoded.and_then(|columns| {
            let mut group = file.next_row_group()?;
            columns.into_iter().try_for_each(|(bytes, close)| group.append_column(&bytes, close))?;
            group.close()
        });
        appended.map_err(|error| TraceError::of_file(self.path.display().to_string(), error))?;
        self.written += self.pending.len() as u64;
        self.pending.clear();
        Ok(())
    }

    /// The order is what readers, merges and analyses rely on.
    fn check_order(&mut self) {
        let first_ns = self.pending[0].arrival_ns;
        assert!(
            first_ns >= self.last_arrival_ns && self.pending.is_sorted_by_key(|record| record.arrival_ns),
            "a trace is stored in order of arrival"
        );
        self.last_arrival_ns = self.pending[self.pending.len() - 1].arrival_ns;
    }

    fn failed(&self, error: &dyn std::fmt::Display) -> TraceError {
        TraceError::of_file(self.path.display().to_string(), error)
    }
}

impl Drop for StoreWriter {
    fn drop(&mut self) {
        // After a rename there is nothing to remove; a file that cannot be removed is named as temporary.
        self.file = None;
        let _ = fs::remove_file(&self.temporary);
    }
}
