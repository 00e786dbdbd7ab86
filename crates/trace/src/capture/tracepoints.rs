//! The block tracepoints in a private tracing instance: several users at once, names of processes, no interference.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};

use super::control::{Folder, failed, open_pipe, refused};
use super::device::BlockDevice;
use super::owner::Owner;
use super::pages::{Field, Layout, PageLayout};
use super::window::Window;
use crate::collect::Collector;
use crate::error::{Place, TraceError};
use crate::formats::Stage;
use crate::formats::blktrace::events::{Event, SECTOR_BYTES, What, category, flags, operation};
use crate::formats::blktrace::pairing::Pairing;
use crate::record::Flags;

/// Pages that are read from one processor before it is another's turn.
const PAGES_A_TURN: usize = 512;

/// The tracepoints of each moment in a request's way.
const TRACEPOINTS: [(&str, What); 6] = [
    ("block_rq_issue", What::Issue),
    ("block_rq_complete", What::Complete),
    ("block_rq_requeue", What::Requeue),
    ("block_bio_queue", What::Queue),
    ("block_split", What::Split),
    // Of devices without a queue of their own, such as those of the device mapper.
    ("block_bio_complete", What::Complete),
];
/// Those of them that tell what a device is given and does.
const ISSUE_TRACEPOINTS: usize = 3;

/// A tracepoint of this kernel.
struct Tracepoint {
    id: u64,
    what: What,
    pid: Field,
    sector: Field,
    rwbs: Field,
    /// Length in bytes, which not all tracepoints give.
    bytes: Option<Field>,
    /// Length in sectors.
    sectors: Option<Field>,
    /// Where the second part of a split begins.
    second_sector: Option<Field>,
    /// 0, or a negative number.
    error: Option<Field>,
    /// The name of the process.
    comm: Option<Field>,
}

impl Tracepoint {
    fn parse(format: &str, what: What) -> Option<Tracepoint> {
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

    fn event(&self, at_ns: u64, device: u32, record: &[u8]) -> Event {
        let sector = self.sector.number(record);
        let second_sector = self.second_sector.map_or(0, |field| field.number(record));
        let bytes = match (self.bytes, self.sectors) {
            (Some(bytes), _) => bytes.number(record),
            (None, Some(sectors)) => sectors.number(record).saturating_mul(SECTOR_BYTES),
            (None, None) => second_sector.saturating_sub(sector).saturating_mul(SECTOR_BYTES),
        };
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let categories = categories(self.rwbs.text(record));
        let is_error = self.error.is_some_and(|field| field.number(record) != 0);
        let failed = if is_error { Flags::ERROR } else { Flags::default() };
        Event {
            at_ns,
            sector,
            second_sector,
            bytes,
            device,
            pid: self.pid.number(record) as u32,
            flags: flags(categories, bytes).with(failed),
            operation: operation(categories, bytes),
            what: self.what,
        }
    }
}

/// A tracing instance of ours; removed when dropped.
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
        // Its events end with it. The kernel keeps it while one of its files is open, so that those go first.
        let _ = fs::remove_dir(self.folder.path());
    }
}

/// The pages of one processor.
struct Pipe {
    file: File,
    /// The time of the last event that was read.
    read_to_ns: u64,
}

/// A recording by tracepoints.
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
    /// Begins to record.
    ///
    /// # Errors
    /// A kernel without these tracepoints, or one that does not let us.
    pub(super) fn start(
        tracefs: &Folder,
        device: &BlockDevice,
        stage: Stage,
        buffer_kib: u64,
    ) -> Result<Tracepoints, TraceError> {
        if !tracefs.has("events/block/block_rq_issue/format") {
            return Err(failed("needs the block tracepoints, which this kernel has not"));
        }
        let instance = Instance::create(tracefs)?;
        let folder = &instance.folder;
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
                    .push(tracepoint.ok_or_else(|| failed(format!("{events} has not the fields that it should")))?);
                folder.write(&format!("{events}/filter"), &filter)?;
            }
        }
        // What ends a request is switched on before what begins one, so that none is recorded without its end.
        for (name, _) in TRACEPOINTS[..count].iter().rev() {
            let enable = format!("events/block/{name}/enable");
            if folder.has(&enable) {
                folder.write(&enable, "1")?;
            }
        }
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

    /// Ends the recording; what is in the buffers stays there.
    pub(super) fn stop(&mut self) -> Result<(), TraceError> {
        self.instance.folder.write("tracing_on", "0")
    }

    /// Reads what is there, or a good part of it. Says up to which time it was read, which is the end of time where all was.
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

    /// Whether all was read that this processor had.
    fn read_processor(
        &mut self,
        place: usize,
        window: &mut Window,
        pairing: &mut Pairing,
        out: &mut Collector,
    ) -> Result<bool, TraceError> {
        let Tracepoints { pipes, tracepoints, layout, page, device, last_named, instance } = self;
        let pipe = &mut pipes[place];
        let mut rejected = None;
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
                let event = tracepoint.event(at_ns, *device, record);
                if let Some(comm) = tracepoint.comm.map(|field| field.text(record))
                    && (last_named.0 != event.pid || last_named.1 != comm)
                {
                    last_named.0 = event.pid;
                    last_named.1.clear();
                    last_named.1.extend_from_slice(comm);
                    pairing.name(event.pid, &String::from_utf8_lossy(comm), out);
                }
                match event.checked() {
                    Ok(event) => window.push(event),
                    Err(problem) => rejected = Some(problem),
                }
            });
            if let Some(problem) = rejected.take() {
                out.reject("tracepoints", Place::File, problem)?;
            }
        }
        Ok(false)
    }
}

/// The number of the tracepoint comes first in every record.
fn id(record: &[u8]) -> u64 {
    record.first_chunk().map_or(0, |bytes| u64::from(u16::from_ne_bytes(*bytes)))
}

/// The requests of a device. Requests to a partition carry its number while they are queued, and the disk's from then on;
/// they count sectors from the start of the disk. Sector 0 is also that of a flush.
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

/// What the letters of a tracepoint's `rwbs` say, as categories of the block tracer: `F` before the operation asks for a
/// flush first, behind it for the data to be stable.
fn categories(rwbs: &[u8]) -> u64 {
    use category::*;
    let (before, rest) = match rwbs {
        [b'F', b'D' | b'W' | b'R' | b'N' | b'F' | b'Z', ..] => (FLUSH, &rwbs[1..]),
        _ => (0, rwbs),
    };
    let (operation, rest) = match rest {
        [b'D', b'E', rest @ ..] | [b'D', rest @ ..] => (WRITE | DISCARD, rest),
        [b'W', rest @ ..] => (WRITE, rest),
        [b'R', rest @ ..] => (READ, rest),
        [b'F', rest @ ..] => (READ | FLUSH, rest),
        // Appending to a zone writes; the rest manages zones.
        [b'Z', b'A', rest @ ..] => (WRITE, rest),
        [b'Z', _, rest @ ..] => (ZONE_MANAGEMENT, rest),
        // Commands of a driver or a program.
        [b'N', rest @ ..] => (PASS_THROUGH, rest),
        _ => (0, rest),
    };
    rest.iter().fold(before | operation, |categories, letter| {
        categories
            | match letter {
                b'F' => FUA,
                b'A' => READ_AHEAD,
                b'S' => SYNC,
                b'M' => METADATA,
                _ => 0,
            }
    })
}
