//! Splits a trace by device in one pass ([`split`]): a file in the stored form for each, for any number of devices.
//!
//! Requests are held up to a limit, sorted by device, and written to a temporary file without a name; these parts are
//! then read concurrently, one device after another. Memory is that of the held requests and of a read buffer per part,
//! and each core has one device's file open at a time.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use headstack_files::{AtomicFile, Draft};
use parquet::file::reader::ChunkReader;
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::error::TraceError;
use crate::meta::{DeviceMeta, Meta};
use crate::reader::TraceReader;
use crate::record::{Flags, Operation, Record};
use crate::store::{Data, ROW_GROUP, StoreWriter};

/// Number of requests held at a time: 100 MB, and the same again for sorting.
const HELD_MAX: usize = 1 << 21;
/// Number of requests below which a file is not compressed: setting up compression would take longer than everything
/// else.
const SHORT: usize = 4_096;
/// Longest name; with its suffix it fits every file system.
const NAME_BYTES_MAX: usize = 200;

/// The file of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Name of the device.
    pub device: String,
    /// Path of its file.
    pub path: PathBuf,
    /// Number of its requests.
    pub requests: u64,
}

/// Writes the requests of `reader` to a file per device in `folder`, and returns the metadata of the trace. `progress`
/// receives the number of requests read so far and returns whether to continue. All files get their names when all are
/// complete: nothing is left behind unless the split succeeds.
///
/// # Errors
/// For errors of the trace or the disk, and as "stopped" when `progress` stops it.
pub fn split(
    reader: &mut TraceReader,
    folder: &Path,
    progress: &mut (dyn FnMut(u64) -> bool + Send),
) -> Result<(Meta, Vec<Piece>), TraceError> {
    split_holding(reader, folder, progress, HELD_MAX)
}

fn split_holding(
    reader: &mut TraceReader,
    folder: &Path,
    progress: &mut (dyn FnMut(u64) -> bool + Send),
    held_max: usize,
) -> Result<(Meta, Vec<Piece>), TraceError> {
    let is_new = !folder.exists();
    fs::create_dir_all(folder).map_err(|error| TraceError::for_output(folder, &error))?;
    let parted = Parts::of(reader, folder, progress, held_max).and_then(|(parts, read)| {
        let meta = reader.meta().clone();
        let mut goes_on = || progress(read);
        let pieces = Pieces::new(folder, &meta).write(parts, &mut goes_on)?;
        Ok((meta, pieces))
    });
    if parted.is_err() && is_new {
        // It is empty except for files of others.
        let _ = fs::remove_dir(folder);
    }
    parted
}

fn stopped(folder: &Path) -> TraceError {
    TraceError::of_file(folder.display().to_string(), "stopped; nothing is written")
}

/// Requests by device and, within each, in order of arrival.
type Part<'a> = Box<dyn Iterator<Item = Result<Record, TraceError>> + 'a>;

/// The requests read, in consecutive parts of time.
struct Parts {
    /// All parts except the last.
    aside: Option<TemporaryParts>,
    held: Vec<Record>,
}

impl Parts {
    fn of(
        reader: &mut TraceReader,
        folder: &Path,
        progress: &mut (dyn FnMut(u64) -> bool + Send),
        held_max: usize,
    ) -> Result<(Parts, u64), TraceError> {
        let mut parts = Parts { aside: None, held: Vec::new() };
        let (mut batch, mut read) = (Vec::new(), 0);
        while reader.next_batch(&mut batch)? {
            read += batch.len() as u64;
            parts.held.append(&mut batch);
            if parts.held.len() >= held_max {
                parts.lay_aside(folder)?;
            }
            if !progress(read) {
                return Err(stopped(folder));
            }
        }
        by_device(&mut parts.held);
        Ok((parts, read))
    }

    fn lay_aside(&mut self, folder: &Path) -> Result<(), TraceError> {
        by_device(&mut self.held);
        let aside = match &mut self.aside {
            Some(aside) => aside,
            empty => empty.insert(TemporaryParts::begin(folder)?),
        };
        aside.add(&self.held)?;
        self.held.clear();
        Ok(())
    }

    /// The parts, each to be read from its start.
    fn read(&self) -> Result<Vec<Part<'_>>, TraceError> {
        let mut parts = self.aside.as_ref().map_or_else(|| Ok(Vec::new()), TemporaryParts::read)?;
        parts.push(Box::new(self.held.iter().map(|record| Ok(*record))));
        Ok(parts)
    }
}

/// Stable counting sort by device, since there are many requests of each.
fn by_device(records: &mut Vec<Record>) {
    let mut places: Vec<usize> = Vec::new();
    for record in records.iter() {
        let device = record.device as usize;
        if device >= places.len() {
            places.resize(device + 1, 0);
        }
        places[device] += 1;
    }
    let mut before = 0;
    for place in &mut places {
        (*place, before) = (before, before + *place);
    }
    let mut sorted = records.clone();
    for record in records.iter() {
        let place = &mut places[record.device as usize];
        sorted[*place] = *record;
        *place += 1;
    }
    *records = sorted;
}

/// Parts in a temporary file.
struct TemporaryParts {
    path: PathBuf,
    file: AtomicFile,
    written: u64,
    /// Offset of each part, and the number of its requests.
    parts: Vec<(u64, u64)>,
}

impl TemporaryParts {
    fn begin(folder: &Path) -> Result<TemporaryParts, TraceError> {
        let path = folder.join("aside");
        let file = AtomicFile::create(&path)?;
        Ok(TemporaryParts { path, file, written: 0, parts: Vec::new() })
    }

    fn add(&mut self, records: &[Record]) -> Result<(), TraceError> {
        let mut counted = Counted { file: &mut self.file, bytes: 0 };
        let packed = zstd::stream::write::Encoder::new(&mut counted, 1).and_then(|encoder| {
            let mut out = BufWriter::with_capacity(1 << 16, encoder);
            records.iter().try_for_each(|record| out.write_all(&packed(record)))?;
            out.into_inner().map_err(io::IntoInnerError::into_error)?.finish().map(drop)
        });
        packed.map_err(|error| TraceError::for_output(&self.path, &error))?;
        self.parts.push((self.written, records.len() as u64));
        self.written += counted.bytes;
        Ok(())
    }

    fn read(&self) -> Result<Vec<Part<'_>>, TraceError> {
        let failed = |error: &dyn std::fmt::Display| TraceError::of_file(self.path.display().to_string(), error);
        let draft = self.file.draft().expect("a file next to others is a regular one");
        let data = File::open(draft).and_then(Data::new).map_err(|error| failed(&error))?;
        let part = |&(start, requests): &(u64, u64)| -> Result<Part<'_>, TraceError> {
            let bytes = BufReader::new(data.get_read(start).map_err(|error| failed(&error))?);
            let mut decoder =
                zstd::stream::read::Decoder::with_buffer(bytes).map_err(|error| failed(&error))?.single_frame();
            let next = move |_| {
                let mut packed = [0; PACKED_BYTES];
                decoder.read_exact(&mut packed).map_err(|error| failed(&error))?;
                Ok(unpacked(&packed))
            };
            Ok(Box::new((0..requests).map(next)))
        };
        self.parts.iter().map(part).collect()
    }
}

/// Counts the requests read.
struct Counted<'a> {
    file: &'a mut AtomicFile,
    bytes: u64,
}

impl Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

const PACKED_BYTES: usize = 63;

fn packed(record: &Record) -> [u8; PACKED_BYTES] {
    let mut bytes = [0; PACKED_BYTES];
    let longs =
        [record.arrival_ns, record.response_ns, record.wait_ns, record.offset_bytes, record.got_ns, record.inserted_ns];
    let shorts = [record.length_bytes, record.device, record.process];
    for (place, value) in bytes[..48].chunks_exact_mut(8).zip(longs) {
        place.copy_from_slice(&value.to_le_bytes());
    }
    for (place, value) in bytes[48..60].chunks_exact_mut(4).zip(shorts) {
        place.copy_from_slice(&value.to_le_bytes());
    }
    bytes[60..62].copy_from_slice(&record.flags.0.to_le_bytes());
    bytes[62] = record.operation as u8;
    bytes
}

fn unpacked(bytes: &[u8; PACKED_BYTES]) -> Record {
    let long = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    let short = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    Record {
        arrival_ns: long(0),
        response_ns: long(8),
        wait_ns: long(16),
        offset_bytes: long(24),
        got_ns: long(32),
        inserted_ns: long(40),
        length_bytes: short(48),
        device: short(52),
        process: short(56),
        flags: Flags(u16::from_le_bytes([bytes[60], bytes[61]])),
        operation: Operation::ALL[usize::from(bytes[62])],
    }
}

/// The files being written.
struct Pieces<'a> {
    folder: &'a Path,
    meta: &'a Meta,
    names: Vec<String>,
    written: Vec<(usize, Piece, Draft)>,
    /// Devices with few requests, which are written concurrently.
    few: Vec<(usize, Vec<Record>)>,
    held: usize,
}

impl Pieces<'_> {
    fn new<'a>(folder: &'a Path, meta: &'a Meta) -> Pieces<'a> {
        Pieces { folder, meta, names: file_names(&meta.devices), written: Vec::new(), few: Vec::new(), held: 0 }
    }

    /// Writes all devices with requests.
    fn write(mut self, parts: Parts, goes_on: &mut dyn FnMut() -> bool) -> Result<Vec<Piece>, TraceError> {
        let mut parts: Vec<_> = parts.read()?.into_iter().map(Iterator::peekable).collect();
        for device in 0..self.meta.devices.len() {
            let is_of_it = |next: &Result<Record, TraceError>| {
                next.as_ref().map_or(true, |record| record.device as usize == device)
            };
            let mut records = Vec::new();
            let mut writer = None;
            for part in &mut parts {
                while let Some(next) = part.next_if(is_of_it) {
                    records.push(Record { device: 0, ..next? });
                    if records.len() == ROW_GROUP {
                        let (writer, who) = match &mut writer {
                            Some(writer) => writer,
                            empty => empty.insert((self.begin(device)?, DeviceProcesses::default())),
                        };
                        let processes = self.meta.processes.len();
                        who.rename(&mut records, processes);
                        writer.write(&records, &who.meta_of(self.meta, device))?;
                        records.clear();
                        if !goes_on() {
                            return Err(stopped(self.folder));
                        }
                    }
                }
            }
            match writer {
                Some((writer, who)) => {
                    let piece = self.end(device, writer, who, records)?;
                    self.written.push(piece);
                }
                None if records.is_empty() => {}
                None => {
                    self.held += records.len();
                    self.few.push((device, records));
                }
            }
            if self.held >= ROW_GROUP {
                self.write_few(goes_on)?;
            }
        }
        self.write_few(goes_on)?;
        self.written.sort_by_key(|(device, ..)| *device);
        let finished = self.written.into_iter().map(|(_, piece, draft)| draft.finish().map(|()| piece));
        Ok(finished.collect::<Result<_, _>>()?)
    }

    fn begin(&self, device: usize) -> Result<StoreWriter, TraceError> {
        let path = self.folder.join(&self.names[device]);
        StoreWriter::write_to(&path, AtomicFile::create(&path)?)
    }

    fn begin_short(&self, device: usize) -> Result<StoreWriter, TraceError> {
        let path = self.folder.join(&self.names[device]);
        StoreWriter::write_short_to(&path, AtomicFile::create(&path)?)
    }

    fn write_few(&mut self, goes_on: &mut dyn FnMut() -> bool) -> Result<(), TraceError> {
        self.held = 0;
        let few = std::mem::take(&mut self.few);
        let one = |(device, records): (usize, Vec<Record>)| {
            let is_short = records.len() < SHORT;
            let writer = if is_short { self.begin_short(device)? } else { self.begin(device)? };
            self.end(device, writer, DeviceProcesses::default(), records)
        };
        let written = few.into_par_iter().map(one).collect::<Result<Vec<_>, TraceError>>()?;
        self.written.extend(written);
        if goes_on() { Ok(()) } else { Err(stopped(self.folder)) }
    }

    fn end(
        &self,
        device: usize,
        mut writer: StoreWriter,
        mut who: DeviceProcesses,
        mut records: Vec<Record>,
    ) -> Result<(usize, Piece, Draft), TraceError> {
        who.rename(&mut records, self.meta.processes.len());
        let meta = who.meta_of(self.meta, device);
        writer.write(&records, &meta)?;
        let (requests, name) = (writer.written(), self.meta.devices[device].name.clone());
        let piece = Piece { device: name, path: self.folder.join(&self.names[device]), requests };
        Ok((device, piece, writer.finish_part(&meta)?))
    }
}

/// Processes of a device, so that its file only names these.
#[derive(Default)]
struct DeviceProcesses {
    /// Their indices in the trace, in order of appearance.
    processes: Vec<u32>,
    numbers: FxHashMap<u32, u32>,
}

impl DeviceProcesses {
    fn rename(&mut self, records: &mut [Record], of: usize) {
        if of == 0 {
            return;
        }
        for record in records.iter_mut().filter(|record| record.process != 0) {
            let processes = &mut self.processes;
            record.process = *self.numbers.entry(record.process).or_insert_with(|| {
                processes.push(record.process - 1);
                processes.len() as u32
            });
        }
    }

    /// Metadata of one device's part of the trace.
    fn meta_of(&self, meta: &Meta, device: usize) -> Meta {
        let device = &meta.devices[device];
        let mut steps = meta.steps.clone();
        if meta.devices.len() > 1 {
            steps.push(format!("device={}", device.name));
        }
        Meta {
            origin: meta.origin.clone(),
            devices: vec![device.clone()],
            processes: self.processes.iter().map(|&index| meta.processes[index as usize].clone()).collect(),
            counts: meta.counts.clone(),
            rejects: meta.rejects.clone(),
            notes: meta.notes.clone(),
            header: meta.header.clone(),
            steps,
            ..*meta
        }
    }
}

/// File name of each device: its own as far as file names permit, with a number if two would be equal, also on
/// case-insensitive file systems.
fn file_names(devices: &[DeviceMeta]) -> Vec<String> {
    let mut taken = FxHashSet::default();
    let mut name_of = |device: &DeviceMeta| {
        let clean = |letter: char| if letter.is_alphanumeric() || "-._".contains(letter) { letter } else { '_' };
        let clean: String = device.name.chars().map(clean).collect();
        let mut clean = clean.trim_matches('.');
        while clean.len() > NAME_BYTES_MAX {
            clean = &clean[..clean.char_indices().next_back().map_or(0, |(at, _)| at)];
        }
        let clean = if clean.is_empty() { "device" } else { clean };
        let mut name = clean.to_owned();
        for number in 2.. {
            if taken.insert(name.to_lowercase()) {
                break;
            }
            name = format!("{clean}-{number}");
        }
        format!("{name}.parquet")
    };
    devices.iter().map(&mut name_of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::ReadOptions;
    use crate::input::Input;

    const ROWS: usize = 5_000;

    /// Alibaba's columns: device, operation, offset, length, time in microseconds.
    fn csv(devices: usize) -> Vec<u8> {
        let line = |row: usize| {
            let (device, operation) = (row * row % devices, if row.is_multiple_of(3) { 'W' } else { 'R' });
            format!("{device},{operation},{},4096,{}\n", row * 4096, 1_600_000_000_000_000 + row)
        };
        (0..ROWS).map(line).collect::<String>().into_bytes()
    }

    fn reader(bytes: Vec<u8>) -> TraceReader {
        let options = ReadOptions { format: crate::Format::from_name("alibaba"), ..ReadOptions::default() };
        TraceReader::from_inputs(vec![Input::from_bytes("t.csv", bytes).unwrap()], &options).unwrap()
    }

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("headstack-split-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        folder
    }

    /// The limit of held requests changes nothing: temporary parts are read back, device by device, in order.
    #[test]
    fn a_split_is_the_trace_by_devices_however_little_is_held() {
        let whole = reader(csv(97)).read_all().unwrap();
        for held_max in [usize::MAX, 700, 1] {
            let folder = folder(&held_max.to_string());
            let mut source = reader(csv(97));
            let (meta, pieces) = split_holding(&mut source, &folder, &mut |_| true, held_max).unwrap();
            assert_eq!(fs::read_dir(&folder).unwrap().count(), pieces.len());
            assert_eq!(pieces.iter().map(|piece| piece.requests).sum::<u64>(), ROWS as u64);
            for piece in &pieces {
                let mut one = TraceReader::open(&[&piece.path], &ReadOptions::default()).unwrap();
                let records = one.read_all().unwrap();
                let index = meta.devices.iter().position(|device| device.name == piece.device).unwrap() as u32;
                let expected = whole.iter().filter(|record| record.device == index);
                assert!(expected.map(|record| Record { device: 0, ..*record }).eq(records), "{}", piece.device);
                assert_eq!(one.meta().devices, meta.devices[index as usize..=index as usize]);
            }
            fs::remove_dir_all(folder).unwrap();
        }
    }

    #[test]
    fn a_stopped_split_leaves_no_files() {
        let folder = folder("stopped");
        for calls in 0..4 {
            let mut left = calls;
            let mut goes_on = |_| {
                left -= 1;
                left >= 0
            };
            let stopped = split_holding(&mut reader(csv(10)), &folder, &mut goes_on, 100);
            assert_eq!(stopped.is_err(), calls < 2, "{calls}");
            assert_eq!(folder.exists(), calls >= 2, "{calls}");
        }
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn names_that_would_be_one_file_get_a_number() {
        let device = |name: &str| DeviceMeta { name: name.to_owned(), ..DeviceMeta::default() };
        let long = "x".repeat(400);
        let names = ["a/b", "a:b", "A_B", "a_b-2", "..", "", "7,0", long.as_str(), "ä"];
        let files = file_names(&names.map(device));
        let expected = ["a_b", "a_b-2", "A_B-3", "a_b-2-2", "device", "device-2", "7_0", &long[..NAME_BYTES_MAX], "ä"];
        assert_eq!(files, expected.map(|name| format!("{name}.parquet")));
    }
}
