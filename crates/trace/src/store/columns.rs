//! Encodes and decodes the columns of a row group.

use bytes::Bytes;
use parquet::column::reader::ColumnReader;
use parquet::column::writer::{ColumnCloseResult, ColumnWriter, get_column_writer};
use parquet::data_type::ByteArray;
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::WriterPropertiesPtr;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;
use rustc_hash::FxHashMap;

use super::schema::Column;
use crate::meta::Meta;
use crate::record::{Flags, NOT_RECORDED, Operation, Record};

/// Number of records passed to the encoder at a time: their values fit a core's cache. Page boundaries are unchanged as
/// long as this is a multiple of the encoder's own 1,024.
const TAKEN_AT_A_TIME: usize = 8_192;

/// The names in a row group's text columns, in the encoder's form.
pub(crate) struct Names {
    operations: [ByteArray; Operation::ALL.len()],
    devices: Vec<ByteArray>,
    /// Number and name of each process.
    processes: Vec<(i32, ByteArray)>,
}

impl Names {
    pub(crate) fn new(meta: &Meta) -> Names {
        let text = |name: &str| ByteArray::from(name.as_bytes().to_vec());
        // Static text is cloned without reference counting.
        let operation = |operation: Operation| ByteArray::from(Bytes::from_static(operation.name().as_bytes()));
        Names {
            operations: Operation::ALL.map(operation),
            devices: meta.devices.iter().map(|device| text(&device.name)).collect(),
            processes: meta.processes.iter().map(|process| (process.pid as i32, text(&process.name))).collect(),
        }
    }
}

/// Encodes a column of `records` as the bytes of a column chunk.
pub(crate) fn encode(
    column: Column,
    records: &[Record],
    names: &Names,
    description: ColumnDescPtr,
    properties: WriterPropertiesPtr,
) -> Result<(Bytes, ColumnCloseResult)> {
    let mut sink = TrackedWrite::new(Vec::new());
    let pages = Box::new(SerializedPageWriter::new(&mut sink));
    let mut writer = get_column_writer(description, properties, pages);
    for records in records.chunks(TAKEN_AT_A_TIME) {
        write(&mut writer, column, records, names)?;
    }
    let close = writer.close()?;
    Ok((Bytes::from(sink.into_inner()?), close))
}

fn write(writer: &mut ColumnWriter, column: Column, records: &[Record], names: &Names) -> Result<()> {
    match writer {
        ColumnWriter::Int64ColumnWriter(writer) => {
            let value = |record: &Record| match column {
                Column::Arrival => record.arrival_ns,
                Column::Response => record.response_ns,
                Column::Wait => record.wait_ns,
                Column::Got => record.got_ns,
                Column::Inserted => record.inserted_ns,
                _ => record.offset_bytes,
            };
            if column.is_time_that_may_lack() {
                let recorded = |record: &&Record| value(record) != NOT_RECORDED;
                let levels: Vec<i16> = records.iter().map(|record| i16::from(recorded(&record))).collect();
                let values: Vec<i64> = records.iter().filter(recorded).map(|record| value(record) as i64).collect();
                writer.write_batch(&values, Some(&levels), None)?;
            } else {
                let values: Vec<i64> = records.iter().map(|record| value(record) as i64).collect();
                writer.write_batch(&values, None, None)?;
            }
        }
        ColumnWriter::Int32ColumnWriter(writer) => match column {
            Column::Length => {
                let values: Vec<i32> = records.iter().map(|record| record.length_bytes as i32).collect();
                writer.write_batch(&values, None, None)?;
            }
            Column::Flags => {
                let values: Vec<i32> = records.iter().map(|record| i32::from(record.flags.0)).collect();
                writer.write_batch(&values, None, None)?;
            }
            _ => {
                let (levels, recorded) = processes(records);
                let values: Vec<i32> = recorded.iter().map(|&index| names.processes[index].0).collect();
                writer.write_batch(&values, Some(&levels), None)?;
            }
        },
        ColumnWriter::ByteArrayColumnWriter(writer) => match column {
            Column::Operation => {
                let values: Vec<ByteArray> =
                    records.iter().map(|record| names.operations[record.operation as usize].clone()).collect();
                writer.write_batch(&values, None, None)?;
            }
            Column::Device => {
                let values: Vec<ByteArray> =
                    records.iter().map(|record| names.devices[record.device as usize].clone()).collect();
                writer.write_batch(&values, None, None)?;
            }
            _ => {
                let (levels, recorded) = processes(records);
                let values: Vec<ByteArray> = recorded.iter().map(|&index| names.processes[index].1.clone()).collect();
                writer.write_batch(&values, Some(&levels), None)?;
            }
        },
        _ => unreachable!("the schema has no other types"),
    }
    Ok(())
}

/// Which records have a process, and the indices of these.
fn processes(records: &[Record]) -> (Vec<i16>, Vec<usize>) {
    let levels = records.iter().map(|record| i16::from(record.process != 0)).collect();
    let recorded = records.iter().filter(|record| record.process != 0);
    (levels, recorded.map(|record| record.process as usize - 1).collect())
}

/// The values of a column.
pub(crate) enum Values {
    /// Numbers; [`NOT_RECORDED`] for null.
    Long(Vec<u64>),
    /// Numbers; absent for null.
    Short(Vec<Option<u32>>),
    /// Indices in the [names](Chunk::names) of the chunk; absent for null.
    Text(Vec<Option<u32>>),
}

impl Values {
    /// Converts to the types of the stored form: other programs widen and narrow numbers.
    ///
    /// # Errors
    /// When numbers do not fit, or types do not match.
    pub(crate) fn of_column(self, column: Column) -> Result<Values> {
        let wrong = |what: &str| ParquetError::General(format!("the column {} {what}", column.name()));
        match self {
            Values::Text(_) if !column.is_text() => Err(wrong("has texts; allowed: numbers")),
            Values::Long(_) | Values::Short(_) if column.is_text() => Err(wrong("has numbers; allowed: texts")),
            Values::Long(values) if column.is_short() => {
                let narrow = |value: u64| match value {
                    NOT_RECORDED => Ok(None),
                    value => u32::try_from(value).map(Some).map_err(|_| wrong("has a number at or above 2^32")),
                };
                Ok(Values::Short(values.into_iter().map(narrow).collect::<Result<_>>()?))
            }
            Values::Short(values) if !column.is_short() => {
                let wide = |value: Option<u32>| value.map_or(NOT_RECORDED, u64::from);
                Ok(Values::Long(values.into_iter().map(wide).collect()))
            }
            values @ (Values::Long(_) | Values::Short(_) | Values::Text(_)) => Ok(values),
        }
    }

    /// The values of a missing column.
    pub(crate) fn absent(column: Column, rows: usize) -> Values {
        if column.is_text() {
            Values::Text(vec![None; rows])
        } else if column.is_short() {
            Values::Short(vec![None; rows])
        } else {
            Values::Long(vec![NOT_RECORDED; rows])
        }
    }
}

/// Reads a column chunk, some rows at a time.
pub(crate) struct Chunk {
    reader: ColumnReader,
    is_optional: bool,
    /// Number of rows that it must have, and number read.
    rows: usize,
    read: usize,
    levels: Vec<i16>,
    /// Names of a text column so far, and the last one by the address of its bytes.
    names: Vec<String>,
    indices: FxHashMap<String, u32>,
    last: Option<(ByteArray, u32)>,
}

impl Chunk {
    pub(crate) fn new(reader: ColumnReader, rows: usize, is_optional: bool) -> Chunk {
        let (names, indices) = (Vec::new(), FxHashMap::default());
        Chunk { reader, is_optional, rows, read: 0, levels: Vec::new(), names, indices, last: None }
    }

    /// Reads the next `rows` rows, which must exist.
    pub(crate) fn next(&mut self, rows: usize) -> Result<Values> {
        self.levels.clear();
        let wanted = self.is_optional.then_some(&mut self.levels);
        match &mut self.reader {
            ColumnReader::Int64ColumnReader(reader) => {
                let mut values = Vec::with_capacity(rows);
                let read = reader.read_records(rows, wanted, None, &mut values)?.0;
                self.complete(read, rows)?;
                let values = values.into_iter().map(|value| value as u64);
                Ok(Values::Long(if self.is_optional {
                    spread(&self.levels, values, NOT_RECORDED)
                } else {
                    values.collect()
                }))
            }
            ColumnReader::Int32ColumnReader(reader) => {
                let mut values = Vec::with_capacity(rows);
                let read = reader.read_records(rows, wanted, None, &mut values)?.0;
                self.complete(read, rows)?;
                let values = values.into_iter().map(|value| Some(value as u32));
                Ok(Values::Short(if self.is_optional { spread(&self.levels, values, None) } else { values.collect() }))
            }
            ColumnReader::ByteArrayColumnReader(reader) => {
                let mut values = Vec::with_capacity(rows);
                let read = reader.read_records(rows, wanted, None, &mut values)?.0;
                self.complete(read, rows)?;
                let indices = self.interned(values)?.into_iter().map(Some);
                Ok(Values::Text(if self.is_optional { spread(&self.levels, indices, None) } else { indices.collect() }))
            }
            _ => Err(ParquetError::General("a column of another type".to_owned())),
        }
    }

    /// Names of the text column so far.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    fn complete(&mut self, read: usize, wanted: usize) -> Result<()> {
        self.read += read;
        if read == wanted {
            return Ok(());
        }
        Err(ParquetError::General(format!("a column holds {} rows of {}", self.read, self.rows)))
    }

    /// Converts texts to indices of the names. Texts of one dictionary entry share their bytes, so comparing addresses
    /// mostly suffices; the last text is kept, so that no other can get its address.
    fn interned(&mut self, values: Vec<ByteArray>) -> Result<Vec<u32>> {
        let place = |value: &ByteArray| (value.data().as_ptr(), value.len());
        let mut texts = Vec::with_capacity(values.len());
        for value in values {
            let index = match &self.last {
                Some((last, index)) if place(last) == place(&value) => *index,
                _ => {
                    let text = value.as_utf8()?;
                    let next = self.names.len() as u32;
                    let index = *self.indices.entry(text.to_owned()).or_insert(next);
                    if index == next {
                        self.names.push(text.to_owned());
                    }
                    self.last = Some((value, index));
                    index
                }
            };
            texts.push(index);
        }
        Ok(texts)
    }
}

/// Inserts `absent` where the level is 0.
fn spread<T: Copy>(levels: &[i16], mut values: impl Iterator<Item = T>, absent: T) -> Vec<T> {
    levels.iter().map(|&level| if level == 0 { absent } else { values.next().unwrap_or(absent) }).collect()
}

/// The flags of a stored number.
pub(crate) fn flags(stored: u32) -> Flags {
    Flags(stored as u16)
}
