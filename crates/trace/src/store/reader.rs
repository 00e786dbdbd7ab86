//! Reading the stored form, some rows at a time.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};

use parquet::errors::ParquetError;
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::statistics::Statistics;
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::columns::{Chunk, Values, flags};
use super::data::Data;
use super::schema::{Column, WITHOUT_PHASES, schema};
use super::{META_KEY, ROW_GROUP};
use crate::collect::Collector;
use crate::error::{Place, TraceError};
use crate::input::Input;
use crate::meta::{Meta, Process};
use crate::record::{NOT_RECORDED, Operation, Record};
use crate::text::BYTES_END;
use crate::time::TIME_NS_END;
use crate::window::Window;

/// Rows that are decoded at a time: they stay in a core's cache until whoever asked has looked at them.
const SLICE: usize = 1 << 14;

/// A row group being read.
struct OpenGroup {
    rows_left: usize,
    columns: Vec<Chunk>,
}

/// A stored trace being read.
pub(crate) struct Stored {
    name: String,
    file: SerializedFileReader<Data>,
    window: Option<Window>,
    next_group: usize,
    group: Option<OpenGroup>,
    devices: FxHashMap<String, u32>,
    processes: FxHashMap<Process, u32>,
    read: u64,
    last_arrival_ns: u64,
}

impl Stored {
    /// Opens the file again, for its metadata stand at its end, and puts its metadata into `out`.
    pub(crate) fn open(input: &Input, window: Option<Window>, out: &mut Collector) -> Result<Stored, TraceError> {
        let name = input.name.clone();
        let of_file = |error: &dyn std::fmt::Display| TraceError::of_file(&name, error);
        let file = File::open(&name).and_then(Data::new).map_err(|error| of_file(&error))?;
        let file = decoded(|| SerializedFileReader::new(file)).map_err(|error| of_file(&broken(&error)))?;
        let metadata = file.metadata().file_metadata();
        let columns = |schema: &parquet::schema::types::Type| -> Vec<(String, Option<parquet::basic::Type>)> {
            let physical =
                |field: &parquet::schema::types::Type| field.is_primitive().then(|| field.get_physical_type());
            schema.get_fields().iter().map(|field| (field.name().to_owned(), physical(field))).collect()
        };
        let (found, known) = (columns(metadata.schema()), columns(&schema()));
        if found != known && found != known[..WITHOUT_PHASES] {
            return Err(of_file(&"is a Parquet file, but not a stored trace: its columns are others"));
        }
        let stored = metadata.key_value_metadata().into_iter().flatten().find(|entry| entry.key == META_KEY);
        let stored = stored.and_then(|entry| entry.value.as_deref());
        let stored =
            stored.ok_or_else(|| of_file(&format!("is a Parquet file without `{META_KEY}` in its metadata")))?;
        let meta: Meta = serde_json::from_str(stored).map_err(|error| of_file(&format!("its metadata: {error}")))?;
        let stored = Stored {
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

    /// Reads the next rows; false at the end.
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
        let next = || group.columns.par_iter_mut().with_max_len(1).map(|chunk| chunk.next(rows)).collect();
        let mut columns: Vec<Values> = decoded(next).map_err(|error| self.failed(&error))?;
        // Those that were stored before phases were.
        columns.resize_with(Column::ALL.len(), || Values::Long(vec![NOT_RECORDED; rows]));
        self.join(rows, &columns, &group.columns, out)?;
        group.rows_left -= rows;
        self.group = (group.rows_left > 0).then_some(group);
        Ok(true)
    }

    /// The row groups in their order.
    pub(crate) fn groups(&self) -> Vec<Group> {
        self.file.metadata().row_groups().iter().map(Group::of).collect()
    }

    fn is_outside(&self, group: usize) -> bool {
        let Some(window) = self.window else { return false };
        let Group { first_ns, last_ns, done_ns, .. } = Group::of(self.file.metadata().row_group(group));
        last_ns < window.from_ns
            || first_ns >= window.to_ns
            || window.in_flight_at_ns.is_some_and(|at_ns| done_ns <= at_ns)
    }

    /// The next row group.
    fn open_group(&mut self) -> Result<OpenGroup, ParquetError> {
        let group = self.file.get_row_group(self.next_group)?;
        let rows = usize::try_from(group.metadata().num_rows()).ok().filter(|&rows| rows <= ROW_GROUP);
        let rows = rows.ok_or_else(|| ParquetError::General(format!("a row group has more than {ROW_GROUP} rows")))?;
        let columns = (0..group.metadata().num_columns()).map(|index| {
            let is_optional = group.metadata().schema_descr().column(index).max_def_level() > 0;
            Ok(Chunk::new(group.get_column_reader(index)?, rows, is_optional))
        });
        let columns = columns.collect::<Result<_, ParquetError>>()?;
        self.next_group += 1;
        Ok(OpenGroup { rows_left: rows, columns })
    }

    fn join(
        &mut self,
        rows: usize,
        columns: &[Values],
        chunks: &[Chunk],
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
        let names = |column: Column| chunks[column as usize].names();
        let (operations, devices) = (names(Column::Operation), names(Column::Device));
        let processes = names(Column::Process);
        let operations: Vec<Option<Operation>> = operations.iter().map(|name| Operation::from_name(name)).collect();
        let devices: Vec<Option<u32>> = devices.iter().map(|name| self.devices.get(name).copied()).collect();
        let mut last_process = (None, 0);
        for row in 0..rows {
            self.read += 1;
            let wrong = |message: &str| TraceError {
                file: self.name.clone(),
                place: Place::Record(self.read),
                field: "",
                message: format!("{message}: the file was not written by headstack"),
            };
            let named = |column: &[Option<u32>]| column[row].map(|index| index as usize);
            let operation = named(operation).and_then(|index| operations[index]);
            let device = named(device).and_then(|index| devices[index]);
            let who = pid[row].zip(process[row]);
            if who != last_process.0 {
                let index = who.map(|(pid, name)| {
                    let name = processes[name as usize].clone();
                    self.processes.get(&Process { pid, name }).copied().ok_or_else(|| wrong("an unknown process"))
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
                length_bytes: length[row].unwrap_or(0),
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
                return Err(wrong("a time that is negative or not there"));
            }
            if record.arrival_ns < self.last_arrival_ns {
                return Err(wrong("an arrival before that of the request before it"));
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

/// What statistics say of a row group; of one without any, all that they could.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group {
    /// Arrivals, from and to.
    pub(crate) first_ns: u64,
    pub(crate) last_ns: u64,
    /// No request is complete later, as far as that is recorded.
    pub(crate) done_ns: u64,
    pub(crate) requests: u64,
}

impl Group {
    fn of(group: &RowGroupMetaData) -> Group {
        let bounds = |column: Column| match group.column(column as usize).statistics() {
            Some(Statistics::Int64(known)) => known.min_opt().zip(known.max_opt()).map(|(&a, &b)| (a as u64, b as u64)),
            _ => None,
        };
        let (first_ns, last_ns) = bounds(Column::Arrival).unwrap_or((0, u64::MAX));
        let response = group.column(Column::Response as usize).statistics();
        let requests = group.num_rows().unsigned_abs();
        let has_none = response.and_then(Statistics::null_count_opt) == Some(requests);
        let longest_ns = if has_none { 0 } else { bounds(Column::Response).map_or(u64::MAX, |(_, most)| most) };
        Group { first_ns, last_ns, done_ns: last_ns.saturating_add(longest_ns), requests }
    }
}

/// What the parquet crate makes of a file. It refuses most of what is malformed, and panics at the rest (sizes that it
/// slices by, capacities that it asks for); a panic holds none of our state, so that it is one more way of being damaged.
fn decoded<T>(decode: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ParquetError> {
    let lost = |_| Err(ParquetError::General("its contents contradict each other".to_owned()));
    catch_unwind(AssertUnwindSafe(decode)).unwrap_or_else(lost)
}

fn broken(error: &ParquetError) -> String {
    format!("the file is damaged or was not finished: {error}").replace('\n', " ")
}
