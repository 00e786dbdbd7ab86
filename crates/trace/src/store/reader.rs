//! [`Stored`]: reads the stored form, some rows at a time.
//!
//! Other programs rewrite it: they filter, reorder columns, make every column nullable, widen numbers, enlarge row
//! groups, and may drop the metadata. Columns are found by name, and lost information is noted.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};

use parquet::basic::{Compression, LogicalType, TimeUnit, Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::file::statistics::Statistics;
use parquet::schema::types::SchemaDescriptor;
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::columns::{Chunk, Values, flags};
use super::data::Data;
use super::schema::Column;
use super::{META_KEY, ROW_GROUP};
use crate::collect::Collector;
use crate::error::{Place, TraceError};
use crate::input::Input;
use crate::meta::{Clock, Meta, Origin, Process};
use crate::record::{NOT_RECORDED, Operation, Record};
use crate::text::BYTES_END;
use crate::time::{NS_PER_S, OLDEST_UNIX_S, TIME_NS_END};
use crate::window::Window;

/// Number of rows decoded at a time: they stay in a core's cache until the caller has processed them.
const SLICE: usize = 1 << 14;

/// A row group being read.
struct OpenGroup {
    rows_left: usize,
    /// In the order of [`Column::ALL`]; `None` if the file lacks the column.
    columns: Vec<Option<Chunk>>,
}

/// A reader of a stored trace.
pub(crate) struct Stored {
    name: String,
    file: SerializedFileReader<Data>,
    /// Index of each of [`Column::ALL`] in the file.
    places: Places,
    /// Whether another program has rewritten it.
    is_rewritten: bool,
    window: Option<Window>,
    next_group: usize,
    group: Option<OpenGroup>,
    devices: FxHashMap<String, u32>,
    processes: FxHashMap<Process, u32>,
    read: u64,
    last_arrival_ns: u64,
}

impl Stored {
    /// Opens the file again, since its metadata are at its end, and stores its metadata in `out`.
    pub(crate) fn open(input: &Input, window: Option<Window>, out: &mut Collector) -> Result<Stored, TraceError> {
        let name = input.name.clone();
        let of_file = |error: &dyn std::fmt::Display| TraceError::of_file(&name, error);
        let file = File::open(&name).and_then(Data::new).map_err(|error| of_file(&error))?;
        let file = decoded(|| SerializedFileReader::new(file)).map_err(|error| of_file(&broken(&error)))?;
        let metadata = file.metadata().file_metadata();
        let places = places(metadata.schema_descr()).map_err(|why| of_file(&why))?;
        check_compression(file.metadata().row_groups(), &places).map_err(|why| of_file(&why))?;
        let is_rewritten = !metadata.created_by().is_some_and(|program| program.starts_with("headstack "));
        let stored = metadata.key_value_metadata().into_iter().flatten().find(|entry| entry.key == META_KEY);
        let meta: Meta = match stored.and_then(|entry| entry.value.as_deref()) {
            Some(stored) => serde_json::from_str(stored).map_err(|error| of_file(&format!("its metadata: {error}")))?,
            None if is_rewritten => {
                let first_ns =
                    decoded(|| first_arrival_ns(&file, &places)).map_err(|error| of_file(&broken(&error)))?;
                meta_of(&input.label, metadata.created_by(), first_ns)
            }
            None => return Err(of_file(&format!("is a Parquet file without `{META_KEY}` in its metadata"))),
        };
        let stored = Stored {
            places,
            is_rewritten,
            devices: meta.devices.iter().zip(0..).map(|(device, index)| (device.name.clone(), index)).collect(),
            processes: meta.processes.iter().cloned().zip(1..).collect(),
            name,
            file,
            window,
            next_group: 0,
            group: None,
            read: 0,
            last_arrival_ns: 0,
        };
        out.adopt(meta);
        Ok(stored)
    }

    /// Reads the next rows; returns false at the end.
    pub(crate) fn read(&mut self, out: &mut Collector) -> Result<bool, TraceError> {
        while self.group.is_none() && self.next_group < self.file.num_row_groups() && self.is_outside(self.next_group) {
            self.read += self.file.metadata().row_group(self.next_group).num_rows().unsigned_abs();
            self.next_group += 1;
        }
        let mut group = match self.group.take() {
            Some(group) => group,
            None if self.next_group == self.file.num_row_groups() => return Ok(false),
            None => decoded(|| self.open_group()).map_err(|error| self.failed(&error))?,
        };
        let rows = group.rows_left.min(SLICE);
        let next = |(chunk, column): (&mut Option<Chunk>, Column)| match chunk {
            Some(chunk) => chunk.next(rows)?.of_column(column),
            None => Ok(Values::absent(column, rows)),
        };
        let all = || group.columns.par_iter_mut().zip(Column::ALL).with_max_len(1).map(next).collect();
        let columns: Vec<Values> = decoded(all).map_err(|error| self.failed(&error))?;
        self.join(rows, &columns, &group.columns, out)?;
        group.rows_left -= rows;
        self.group = (group.rows_left > 0).then_some(group);
        Ok(true)
    }

    /// The row groups in order.
    pub(crate) fn groups(&self) -> Vec<Group> {
        self.file.metadata().row_groups().iter().map(|group| Group::of(group, &self.places)).collect()
    }

    fn is_outside(&self, group: usize) -> bool {
        let Some(window) = self.window else { return false };
        let Group { first_ns, last_ns, done_ns, .. } = Group::of(self.file.metadata().row_group(group), &self.places);
        last_ns < window.from_ns
            || first_ns >= window.to_ns
            || window.in_flight_at_ns.is_some_and(|at_ns| done_ns <= at_ns)
    }

    /// Opens the next row group.
    fn open_group(&mut self) -> Result<OpenGroup, ParquetError> {
        let group = self.file.get_row_group(self.next_group)?;
        let rows = usize::try_from(group.metadata().num_rows()).ok();
        let rows = rows.filter(|&rows| rows <= ROW_GROUP || self.is_rewritten);
        let rows = rows.ok_or_else(|| ParquetError::General(format!("a row group has more than {ROW_GROUP} rows")))?;
        let columns = self.places.iter().map(|place| place.map(|index| chunk(&*group, index, rows)).transpose());
        let columns = columns.collect::<Result<_, ParquetError>>()?;
        self.next_group += 1;
        Ok(OpenGroup { rows_left: rows, columns })
    }

    fn join(
        &mut self,
        rows: usize,
        columns: &[Values],
        chunks: &[Option<Chunk>],
        out: &mut Collector,
    ) -> Result<(), TraceError> {
        use Values::{Long, Short, Text};
        let [
            Long(arrival),
            Long(response),
            Long(wait),
            Text(operation),
            Long(offset),
            Short(length),
            Text(device),
            Short(pid),
            Text(process),
            Short(flag),
            Long(got),
            Long(inserted),
        ] = columns
        else {
            return Err(TraceError::of_file(&self.name, "is not a stored trace: a column is of another type"));
        };
        let names = |column: Column| chunks[column as usize].as_ref().map_or(&[][..], Chunk::names);
        let (operations, devices) = (names(Column::Operation), names(Column::Device));
        let processes = names(Column::Process);
        let operations: Vec<Option<Operation>> = operations.iter().map(|name| Operation::from_name(name)).collect();
        if self.is_rewritten {
            // Names missing in the metadata are in the rows.
            for name in devices {
                self.devices.entry(name.clone()).or_insert_with(|| out.device(name));
            }
        }
        let devices: Vec<Option<u32>> = devices.iter().map(|name| self.devices.get(name).copied()).collect();
        let mut last_process = (None, 0);
        for row in 0..rows {
            self.read += 1;
            let wrong = |message: &str| TraceError {
                file: self.name.clone(),
                place: Place::Record(self.read),
                field: "",
                message: format!("{message}: {}", if self.is_rewritten { REWRITTEN } else { NOT_OURS }),
            };
            let named = |column: &[Option<u32>]| column[row].map(|index| index as usize);
            let operation = named(operation).and_then(|index| operations[index]);
            let device = match named(device) {
                Some(index) => devices[index],
                None if self.is_rewritten => Some(*self.devices.entry(String::new()).or_insert_with(|| out.device(""))),
                None => None,
            };
            let who = pid[row].zip(process[row]);
            if who != last_process.0 {
                let index = who.map(|(pid, name)| {
                    let process = Process { pid, name: processes[name as usize].clone() };
                    match self.processes.get(&process) {
                        Some(&index) => Ok(index),
                        None if self.is_rewritten => {
                            let index = out.process(pid, &process.name);
                            self.processes.insert(process, index);
                            Ok(index)
                        }
                        None => Err(wrong("an unknown process")),
                    }
                });
                last_process = (who, index.transpose()?.unwrap_or(0));
            }
            let record = Record {
                arrival_ns: arrival[row],
                response_ns: response[row],
                wait_ns: wait[row],
                got_ns: got[row],
                inserted_ns: inserted[row],
                offset_bytes: offset[row],
                length_bytes: length[row].ok_or_else(|| wrong("no length"))?,
                device: device.ok_or_else(|| wrong("an unknown device"))?,
                process: last_process.1,
                flags: flags(flag[row].unwrap_or(0)),
                operation: operation.ok_or_else(|| wrong("an unknown operation"))?,
            };
            if record.offset_bytes >= BYTES_END || record.end_bytes() >= BYTES_END {
                return Err(wrong("an offset at or past 2^63"));
            }
            let is_time = |ns: u64| ns < TIME_NS_END || ns == NOT_RECORDED;
            let spans = [record.response_ns, record.wait_ns, record.got_ns, record.inserted_ns];
            if record.arrival_ns >= TIME_NS_END || !spans.into_iter().all(is_time) {
                return Err(wrong("a negative or missing time"));
            }
            if record.arrival_ns < self.last_arrival_ns {
                return Err(wrong("an arrival before the previous request"));
            }
            self.last_arrival_ns = record.arrival_ns;
            if self.window.is_none_or(|window| window.holds(&record)) {
                out.records.push(record);
            }
        }
        Ok(())
    }

    fn failed(&self, error: &ParquetError) -> TraceError {
        TraceError::of_file(&self.name, broken(error))
    }
}

/// Statistics of a row group; without any, the widest possible ones.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group {
    /// First and last arrival.
    pub(crate) first_ns: u64,
    pub(crate) last_ns: u64,
    /// Latest completion, as far as recorded.
    pub(crate) done_ns: u64,
    pub(crate) requests: u64,
}

impl Group {
    fn of(group: &RowGroupMetaData, places: &Places) -> Group {
        let statistics = |column: Column| places[column as usize].and_then(|index| group.column(index).statistics());
        let bounds = |column: Column| match statistics(column) {
            Some(Statistics::Int64(known)) => known.min_opt().zip(known.max_opt()).map(|(&a, &b)| (a as u64, b as u64)),
            _ => None,
        };
        let (first_ns, last_ns) = bounds(Column::Arrival).unwrap_or((0, u64::MAX));
        let requests = group.num_rows().unsigned_abs();
        let nulls = statistics(Column::Response).and_then(Statistics::null_count_opt);
        let has_none = places[Column::Response as usize].is_none() || nulls == Some(requests);
        let longest_ns = if has_none { 0 } else { bounds(Column::Response).map_or(u64::MAX, |(_, most)| most) };
        Group { first_ns, last_ns, done_ns: last_ns.saturating_add(longest_ns), requests }
    }
}

/// Index of each of [`Column::ALL`] in a file; `None` if it lacks the column.
type Places = [Option<usize>; Column::ALL.len()];

const REWRITTEN: &str = "another program rewrote the file; rows must be in order of arrival_ns";
const NOT_OURS: &str = "headstack did not write the file";

/// Finds columns by name.
///
/// # Errors
/// When a required column is missing, or a column has another type.
fn places(schema: &SchemaDescriptor) -> Result<Places, String> {
    let mut places = Places::default();
    for (place, column) in places.iter_mut().zip(Column::ALL) {
        let is_named = |index: &usize| schema.column(*index).path().parts() == [column.name()];
        *place = (0..schema.num_columns()).find(is_named);
        let Some(index) = *place else {
            if column.is_required() {
                let name = column.name();
                return Err(format!("is a Parquet file, but not a stored trace: it has no column {name}"));
            }
            continue;
        };
        if let Some(LogicalType::Timestamp(found)) = schema.column(index).logical_type_ref()
            && !matches!(found.unit, TimeUnit::NANOS)
        {
            return Err(format!("its column {} has another unit than its name; allowed: ns", column.name()));
        }
        let stored = schema.column(index).physical_type();
        if !matches!(stored, Type::INT32 | Type::INT64 | Type::BYTE_ARRAY) {
            let name = column.name();
            return Err(format!("its column {name} has the type {stored}; allowed: INT32, INT64 and BYTE_ARRAY"));
        }
    }
    Ok(places)
}

/// Checks the compression of the columns.
///
/// # Errors
/// For a compression that this build does not support.
fn check_compression(groups: &[RowGroupMetaData], places: &Places) -> Result<(), String> {
    let columns = places.iter().zip(Column::ALL).filter_map(|(place, column)| Some(((*place)?, column)));
    for (index, column) in columns {
        let methods = groups.iter().filter_map(|group| Some(group.columns().get(index)?.compression()));
        for method in methods {
            if !matches!(method, Compression::UNCOMPRESSED | Compression::SNAPPY | Compression::ZSTD(_)) {
                let method = format!("{method}").to_ascii_lowercase();
                let method = method.split('(').next().unwrap_or(&method);
                let name = column.name();
                return Err(format!("its column {name} is compressed by {method}; allowed: zstd, snappy or none"));
            }
        }
    }
    Ok(())
}

fn chunk(group: &dyn RowGroupReader, index: usize, rows: usize) -> Result<Chunk, ParquetError> {
    let is_optional = group.metadata().schema_descr().column(index).max_def_level() > 0;
    Ok(Chunk::new(group.get_column_reader(index)?, rows, is_optional))
}

/// First arrival of a file whose metadata lack the base of times.
fn first_arrival_ns(file: &SerializedFileReader<Data>, places: &Places) -> Result<u64, ParquetError> {
    let (Some(index), true) = (places[Column::Arrival as usize], file.num_row_groups() > 0) else { return Ok(0) };
    let group = file.get_row_group(0)?;
    let rows = usize::from(group.metadata().num_rows() > 0);
    match chunk(&*group, index, rows)?.next(rows)?.of_column(Column::Arrival)? {
        Values::Long(arrivals) => Ok(arrivals.first().copied().unwrap_or(0)),
        Values::Short(_) | Values::Text(_) => Ok(0),
    }
}

/// Metadata of a file without any.
fn meta_of(file: &str, program: Option<&str>, first_ns: u64) -> Meta {
    let is_date = first_ns >= OLDEST_UNIX_S * NS_PER_S;
    let mut meta = Meta {
        origin: vec![Origin { file: file.to_owned(), format: "parquet".to_owned() }],
        clock: if is_date { Clock::Unix } else { Clock::Recording },
        ..Meta::default()
    };
    let program = program.unwrap_or("another program");
    meta.note(format!("rewritten by {program}: clock resolution, capacities and notes are lost"));
    meta
}

/// Calls the parquet crate on a file. It refuses most malformed data, and panics on the rest (sizes for slicing,
/// requested capacities); a panic holds none of our state, so it is treated as damage too.
fn decoded<T>(decode: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ParquetError> {
    let lost = |_| Err(ParquetError::General("its contents contradict each other".to_owned()));
    catch_unwind(AssertUnwindSafe(decode)).unwrap_or_else(lost)
}

fn broken(error: &ParquetError) -> String {
    format!("the file is damaged or was not finished: {error}").replace('\n', " ")
}
