//! [`Tracepoints`]: capture by block tracepoints in a private tracing instance: several concurrent users, names of
//! processes, no interference.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};

use super::claim::Owner;
use super::control::{Folder, failed, open_pipe, refused};
use super::device::BlockDevice;
use super::pages::{Field, Layout, PageLayout};
use super::window::Window;
use crate::collect::Collector;
use crate::error::{Place, Problem, TraceError};
use crate::formats::Stage;
use crate::formats::blkparse::categories;
use crate::formats::blktrace::events::{Event, EventKind, SECTOR_BYTES, category, flags, operation};
use crate::formats::blktrace::pairing::Pairing;
use crate::record::Flags;

/// Number of pages read from one processor before the next one's turn.
const PAGES_A_TURN: usize = 512;

/// Value of the kernel for a missing sector.
const NO_SECTOR: u64 = u64::MAX;

/// The tracepoints of each stage of a request.
const TRACEPOINTS: [(&str, EventKind); 6] = [
    ("block_rq_issue", EventKind::Issue),
    ("block_rq_complete", EventKind::Complete),
    ("block_rq_requeue", EventKind::Requeue),
    ("block_bio_queue", EventKind::Queue),
    ("block_split", EventKind::Split),
    // For devices without their own queue, such as those of the device mapper.
    ("block_bio_complete", EventKind::Complete),
];
/// Number of those that show when the device receives and completes requests.
const ISSUE_TRACEPOINTS: usize = 3;

/// A tracepoint of this kernel.
struct Tracepoint {
    id: u64,
    what: EventKind,
    pid: Field,
    sector: Field,
    rwbs: Field,
    /// Length in bytes, which some tracepoints lack.
    bytes: Option<Field>,
    /// Length in sectors.
    sectors: Option<Field>,
    /// Start of the second part of a split.
    second_sector: Option<Field>,
    /// 0, or a negative number.
    error: Option<Field>,
    /// Name of the process.
    comm: Option<Field>,
}

impl Tracepoint {
    fn parse(format: &str, what: EventKind) -> Option<Tracepoint> {
        let layout = Layout::parse(format);
        Some(Tracepoint {
            id: layout.id,
            what,
            pid: layout.find("common_pid")?,
            sector: layout.find("sector")?,
            rwbs: layout.find("rwbs")?,
            bytes: layout.find("bytes"),
            sectors: layout.find("nr_sector"),
            second_sector: layout.find("new_sector"),
            error: layout.find("error"),
            comm: layout.find("comm"),
        })
    }

    /// Returns the event of a record of this tracepoint.
    ///
    /// # Errors
    /// When the letters or the sector are invalid.
    fn event(&self, at_ns: u64, device: u32, record: &[u8]) -> Result<Event, Problem> {
        let sector = self.sector.number(record);
        let second_sector = self.second_sector.map_or(0, |field| field.number(record));
        let sectors = match self.sectors {
            Some(sectors) => sectors.number(record),
            None => second_sector.saturating_sub(sector),
        };
        let length = self.bytes.map(|field| field.number(record));
        let mut categories = categories(self.rwbs.text(record))?;
        // A pass-through command has no sectors, also on completion.
        let is_command = sector == NO_SECTOR || sectors == 0 && length.is_some_and(|bytes| bytes > 0);
        if is_command && categories & category::FLUSH == 0 {
            categories |= category::PASS_THROUGH;
        }
        // Completions always count whole sectors.
        let bytes = length.map_or_else(|| sectors.saturating_mul(SECTOR_BYTES), |bytes| bytes & !(SECTOR_BYTES - 1));
        let bytes = u32::try_from(bytes).map_err(|_| ("bytes", format!("must be below 2^32, not {bytes}")))?;
        let is_error = self.error.is_some_and(|field| field.number(record) != 0);
        let event = Event {
            at_ns,
            sector,
            second_sector,
            bytes,
            device,
            pid: self.pid.number(record) as u32,
            flags: flags(categories, bytes).with(if is_error { Flags::ERROR } else { Flags::default() }),
            operation: operation(categories, bytes),
            what: self.what,
        };
        event.checked()
    }
}

/// Our tracing instance; removed when dropped.
struct Instance {
    folder: Folder,
}

impl Instance {
    fn create(tracefs: &Folder) -> Result<Instance, TraceError> {
        let path = tracefs.path().join("instances").join(Owner::this()?.instance());
        fs::create_dir(&path).map_err(|error| refused(&path, "cannot be made", &error))?;
        Ok(Instance { folder: Folder::new(path) })
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // Its events end with it. The kernel keeps it while one of its files is open, so these are closed first.
        let _ = fs::remove_dir(self.folder.path());
    }
}

/// The pages of one processor.
struct Pipe {
    file: File,
    /// Time of the last event that was read.
    read_to_ns: u64,
}

/// A capture by tracepoints.
pub(super) struct Tracepoints {
    pipes: Vec<Pipe>,
    instance: Instance,
    tracepoints: Vec<Tracepoint>,
    layout: PageLayout,
    page: Vec<u8>,
    device: u32,
    last_named: (u32, Vec<u8>),
}

impl Tracepoints {
    /// Starts the capture.
    ///
    /// # Errors
    /// When the kernel has no such tracepoints, or refuses them.
    pub(super) fn start(
        tracefs: &Folder,
        device: &BlockDevice,
        stage: Stage,
        buffer_kib: u64,
    ) -> Result<Tracepoints, TraceError> {
        if !tracefs.has("events/block/block_rq_issue/format") {
            return Err(failed("needs the block tracepoints, which this kernel does not have"));
        }
        let instance = Instance::create(tracefs)?;
        let folder = &instance.folder;
        // Switching a tracepoint on takes milliseconds; recording starts for all of them at the same time.
        folder.write("tracing_on", "0")?;
        folder.write("trace_clock", "mono")?;
        folder.write("buffer_size_kb", &buffer_kib.to_string())?;
        let layout = PageLayout::parse(&tracefs.read("events/header_page")?)?;
        let pipes = folder.processors()?.into_iter().map(|processor| {
            let file = open_pipe(&processor.path().join("trace_pipe_raw"))?;
            Ok(Pipe { file, read_to_ns: 0 })
        });
        let pipes = pipes.collect::<Result<Vec<_>, TraceError>>()?;
        let filter = filter(device);
        let count = if stage == Stage::Issue { ISSUE_TRACEPOINTS } else { TRACEPOINTS.len() };
        let mut tracepoints = Vec::with_capacity(count);
        for (name, what) in &TRACEPOINTS[..count] {
            let events = format!("events/block/{name}");
            if folder.has(&events) {
                let tracepoint = Tracepoint::parse(&folder.read(&format!("{events}/format"))?, *what);
                tracepoints
                    .push(tracepoint.ok_or_else(|| failed(format!("{events} does not have the expected fields")))?);
                folder.write(&format!("{events}/filter"), &filter)?;
                folder.write(&format!("{events}/enable"), "1")?;
            }
        }
        folder.write("tracing_on", "1")?;
        let page = vec![0; layout.page_bytes()];
        Ok(Tracepoints {
            pipes,
            instance,
            tracepoints,
            layout,
            page,
            device: device.number,
            last_named: (0, Vec::new()),
        })
    }

    /// Its buffers and their counters.
    pub(super) fn folder(&self) -> &Folder {
        &self.instance.folder
    }

    /// Ends the capture; the buffers keep their contents.
    pub(super) fn stop(&mut self) -> Result<(), TraceError> {
        self.instance.folder.write("tracing_on", "0")
    }

    /// Reads all or many of the available events. Returns the time up to which events were read; the maximum if all
    /// were.
    pub(super) fn read(
        &mut self,
        window: &mut Window,
        pairing: &mut Pairing,
        out: &mut Collector,
    ) -> Result<u64, TraceError> {
        let mut read_to_ns = u64::MAX;
        for place in 0..self.pipes.len() {
            if !self.read_processor(place, window, pairing, out)? {
                read_to_ns = read_to_ns.min(self.pipes[place].read_to_ns);
            }
        }
        Ok(read_to_ns)
    }

    /// Returns whether all of this processor's events were read.
    fn read_processor(
        &mut self,
        place: usize,
        window: &mut Window,
        pairing: &mut Pairing,
        out: &mut Collector,
    ) -> Result<bool, TraceError> {
        let Tracepoints { pipes, tracepoints, layout, page, device, last_named, instance } = self;
        let pipe = &mut pipes[place];
        let mut result = Ok(());
        for _ in 0..PAGES_A_TURN {
            let length = match pipe.file.read(page) {
                Ok(0) => return Ok(true),
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(true),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(refused(instance.folder.path(), "cannot be read", &error)),
            };
            layout.events(&page[..length], |at_ns, record| {
                pipe.read_to_ns = at_ns;
                let Some(tracepoint) = tracepoints.iter().find(|known| known.id == id(record)) else { return };
                let event = match tracepoint.event(at_ns, *device, record) {
                    Ok(event) => event,
                    Err(problem) => {
                        if let Err(error) = out.reject("tracepoints", Place::File, problem) {
                            result = Err(error);
                        }
                        return;
                    }
                };
                if let Some(comm) = tracepoint.comm.map(|field| field.text(record))
                    && (last_named.0 != event.pid || last_named.1 != comm)
                {
                    last_named.0 = event.pid;
                    last_named.1.clear();
                    last_named.1.extend_from_slice(comm);
                    pairing.name(event.pid, &String::from_utf8_lossy(comm), out);
                }
                window.push(event);
            });
            result.clone()?;
        }
        Ok(false)
    }
}

/// The number of the tracepoint comes first in every record.
fn id(record: &[u8]) -> u64 {
    record.first_chunk().map_or(0, |bytes| u64::from(u16::from_ne_bytes(*bytes)))
}

/// Filter for the requests of a device. Requests to a partition carry its number while they are queued, and the disk's
/// from then on; they count sectors from the start of the disk. A flush has sector 0 too.
fn filter(device: &BlockDevice) -> String {
    let numbers: Vec<String> = device.numbers.iter().map(|number| format!("dev=={number}")).collect();
    let numbers = numbers.join("||");
    if device.is_partition {
        let range = &device.sectors;
        format!("({numbers})&&(sector==0||(sector>={}&&sector<{}))", range.start, range.end)
    } else {
        numbers
    }
}

#[cfg(test)]
#[cfg(target_endian = "little")]
mod tests {
    use super::*;
    use crate::record::Operation;

    const FORMAT: &str = "ID: 7\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\
        \tfield:sector_t sector;\toffset:8;\tsize:8;\tsigned:0;\n\
        \tfield:unsigned int nr_sector;\toffset:16;\tsize:4;\tsigned:0;\n\
        \tfield:int error;\toffset:20;\tsize:4;\tsigned:1;\n\
        \tfield:char rwbs[8];\toffset:24;\tsize:8;\tsigned:0;\n";
    const BYTES: &str = "\tfield:unsigned int bytes;\toffset:32;\tsize:4;\tsigned:0;\n";

    fn event(format: &str, sector: u64, sectors: u32, bytes: u32, rwbs: &str, error: i32) -> Result<Event, Problem> {
        let mut record = vec![7, 0, 0, 0, 9, 0, 0, 0];
        record.extend(sector.to_le_bytes());
        record.extend(sectors.to_le_bytes());
        record.extend(error.to_le_bytes());
        record.extend(rwbs.as_bytes());
        record.resize(32, 0);
        record.extend(bytes.to_le_bytes());
        Tracepoint::parse(format, EventKind::Complete).unwrap().event(1, 2, &record)
    }

    #[test]
    fn records_are_events() {
        let issue = format!("{FORMAT}{BYTES}");
        let event = |format, sector, sectors, bytes, rwbs| {
            let event = super::tests::event(format, sector, sectors, bytes, rwbs, 0).unwrap();
            assert_eq!((event.at_ns, event.device, event.pid), (1, 2, 9));
            (event.sector, event.bytes, event.operation, event.flags)
        };
        let none = Flags::default();
        assert_eq!(event(&issue, 80, 8, 4096, "WFS"), (80, 4096, Operation::Write, Flags::FUA.with(Flags::SYNC)));
        assert_eq!(event(FORMAT, 80, 8, 0, "R"), (80, 4096, Operation::Read, none));
        // Both ends of a flush, and of a command, must look alike to be paired.
        assert_eq!(event(&issue, 0, 0, 0, "FF"), event(FORMAT, NO_SECTOR, 0, 0, "FF"));
        assert_eq!(event(&issue, 0, 0, 36, "N"), (0, 0, Operation::Other, Flags::PASS_THROUGH));
        assert_eq!(event(&issue, 0, 0, 36, "N"), event(FORMAT, NO_SECTOR, 0, 0, "N"));
        assert_eq!(event(&issue, 0, 0, 4096, "N"), event(FORMAT, NO_SECTOR, 8, 0, "N"));
        // The letter also marks write-zeroes requests, which have an address.
        assert_eq!(event(FORMAT, 80, 8, 0, "N"), (80, 4096, Operation::Other, none));
    }

    #[test]
    fn errors_are_kept_and_nonsense_is_refused() {
        assert_eq!(event(FORMAT, 80, 8, 0, "R", -5).unwrap().flags, Flags::ERROR);
        assert_eq!(event(FORMAT, 80, u32::MAX, 0, "R", 0).unwrap_err().0, "bytes");
        assert_eq!(event(FORMAT, 1 << 60, 8, 0, "R", 0).unwrap_err().0, "sector");
        assert_eq!(event(FORMAT, 80, 8, 0, "?", 0).unwrap_err().0, "rwbs");
    }

    #[test]
    fn the_end_of_a_buffer_is_distinguished_from_an_event() {
        assert_eq!(id(&[7, 1, 0]), 263);
        assert_eq!(id(&[7]), 0);
    }
}
