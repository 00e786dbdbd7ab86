//! [`StoreWriter`]: writes the stored form, under a temporary name until it is complete.

use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use headstack_files::{AtomicFile, Draft};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterPropertiesPtr;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::ColumnDescPtr;
use rayon::prelude::*;

use super::columns::{Names, encode};
use super::schema::{Column, DESCRIPTOR, PACKED, PLAIN, schema};
use super::{META_KEY, ROW_GROUP};
use crate::error::TraceError;
use crate::meta::Meta;
use crate::record::Record;

/// Writes a trace in the stored form. Until [`StoreWriter::finish`] the file has a temporary name in the same folder,
/// and is removed when the writer is dropped; a pipe is written directly.
pub struct StoreWriter {
    path: PathBuf,
    file: SerializedFileWriter<BufWriter<AtomicFile>>,
    descriptions: Vec<ColumnDescPtr>,
    properties: WriterPropertiesPtr,
    pending: Vec<Record>,
    written: u64,
    last_arrival_ns: u64,
}

impl StoreWriter {
    /// Starts the file for `path`.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn create(path: &Path) -> Result<StoreWriter, TraceError> {
        StoreWriter::write_to(path, AtomicFile::create(path)?)
    }

    /// Writes to `file`, which is or will be `path`.
    pub(crate) fn write_to(path: &Path, file: AtomicFile) -> Result<StoreWriter, TraceError> {
        StoreWriter::begin(path, file, PACKED.clone())
    }

    /// Like [`write_to`](Self::write_to) without compression, for few requests.
    pub(crate) fn write_short_to(path: &Path, file: AtomicFile) -> Result<StoreWriter, TraceError> {
        StoreWriter::begin(path, file, PLAIN.clone())
    }

    fn begin(path: &Path, file: AtomicFile, properties: WriterPropertiesPtr) -> Result<StoreWriter, TraceError> {
        let file = SerializedFileWriter::new(BufWriter::with_capacity(1 << 16, file), schema(), properties.clone());
        Ok(StoreWriter {
            path: path.to_owned(),
            file: file.map_err(|error| failed(path, error))?,
            descriptions: DESCRIPTOR.columns().to_vec(),
            properties,
            // Grows as needed: if there are many files, most are short.
            pending: Vec::new(),
            written: 0,
            last_arrival_ns: 0,
        })
    }

    /// Appends records, which continue the order of arrival. `meta` has the names of their devices and processes.
    ///
    /// # Errors
    /// When the disk is full or gone.
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

    /// Number of requests written.
    pub fn written(&self) -> u64 {
        self.written + self.pending.len() as u64
    }

    /// Writes the rest and gives the file its name.
    ///
    /// # Errors
    /// When the disk is full or gone.
    pub fn finish(self, meta: &Meta) -> Result<(), TraceError> {
        Ok(self.close(meta)?.finish()?)
    }

    /// Writes the rest of a part of another file.
    pub(crate) fn finish_part(self, meta: &Meta) -> Result<Draft, TraceError> {
        Ok(self.close(meta)?.into_draft())
    }

    /// Writes the rest.
    pub(crate) fn close(mut self, meta: &Meta) -> Result<AtomicFile, TraceError> {
        self.write_row_group(meta)?;
        let meta = serde_json::to_string(meta).expect("metadata is plain data");
        self.file.append_key_value_metadata(KeyValue::new(META_KEY.to_owned(), meta));
        let buffer = self.file.into_inner().map_err(|error| failed(&self.path, error))?;
        buffer.into_inner().map_err(|error| TraceError::for_output(&self.path, error.error()))
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
        let appended = encoded.and_then(|columns| {
            let mut group = self.file.next_row_group()?;
            columns.into_iter().try_for_each(|(bytes, close)| group.append_column(&bytes, close))?;
            group.close()
        });
        appended.map_err(|error| failed(&self.path, error))?;
        self.written += self.pending.len() as u64;
        self.pending.clear();
        Ok(())
    }

    /// Checks the order on which readers, merges and analyses rely.
    fn check_order(&mut self) {
        let first_ns = self.pending[0].arrival_ns;
        assert!(
            first_ns >= self.last_arrival_ns && self.pending.is_sorted_by_key(|record| record.arrival_ns),
            "a trace is stored in order of arrival"
        );
        self.last_arrival_ns = self.pending[self.pending.len() - 1].arrival_ns;
    }
}

/// The error of writing `path`, mostly of the disk.
fn failed(path: &Path, error: ParquetError) -> TraceError {
    match error {
        ParquetError::External(error) if error.is::<io::Error>() => {
            TraceError::for_output(path, error.downcast_ref().expect("it was just looked at"))
        }
        other => TraceError::of_file(path.display().to_string(), other),
    }
}
