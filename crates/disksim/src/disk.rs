//! `disksim_disk`: queue, buffer, overheads and bus.

use std::rc::Rc;

use headstack_sim::drive::description::{
    AfterReadWrite, Buffer, Disconnect, DriveDescription, ExtraDisconnect, Interface, InterfaceKind, Overheads, Policy,
    Queue, ReadAhead, SlowProcesses, WriteCache,
};
use headstack_workload::InputError;

use super::fields::{Fields, Ledger, Reason, ns};
use super::layout::{SECTOR_BYTES, geometry};
use super::mechanics::mechanics;
use super::parser::{Block, ReadFile};

const fn reason(parameter: &'static str, neutral: Option<f64>, why: &'static str) -> Reason {
    Reason { parameter, neutral, why }
}

/// Reasons why some parameters of a `disksim_disk` have no counterpart in a drive description.
const DISK_REASONS: [Reason; 17] = [
    reason("Avg sectors per cylinder", None, "used only by schedulers outside the drive"),
    reason("Hold bus entire read xfer", Some(0.0), "a drive does not share its bus"),
    reason("Hold bus entire write xfer", Some(0.0), "a drive does not share its bus"),
    reason("Calc sector by sector", Some(1.0), "DiskSim always uses 1"),
    reason("Stop prefetch in sector", None, "the model has its own rule for the end of read-ahead"),
    reason("Write hit stop prefetch", None, "the model has its own rule for the end of read-ahead"),
    reason("Read-ahead over requested", None, "read-ahead may overwrite sectors already returned"),
    reason("Allow sneaky full read hits", Some(0.0), "a command is never overtaken by a hit"),
    reason("Allow sneaky partial read hits", Some(0.0), "a command is never overtaken by a hit"),
    reason("Allow sneaky intermediate read hits", Some(0.0), "a command is never overtaken by a hit"),
    reason("Immed transfer partial hit", None, "the model has its own rule for partial hits"),
    reason("Read directly to buffer", None, "the model has its own rule for passing sectors through the buffer"),
    reason("Combine seq writes", None, "the model has its own rule for joining extents"),
    reason("Allow write prebuffering", Some(0.0), "data is transferred after its command starts"),
    reason("Disconnect write if seek", Some(0.0), "a write leaves the bus after its data transfer"),
    reason("Preseeking level", Some(0.0), "the next command starts after the previous one completes"),
    reason("Print stats", None, "affects only DiskSim's output"),
];

/// Reasons why some parameters of a `disksim_ioqueue` have no counterpart in a drive description.
const QUEUE_REASONS: [Reason; 12] = [
    reason("Cylinder mapping strategy", None, "the scheduler knows the physical location of each block"),
    reason("Write initiation delay", Some(0.0), "a command starts immediately"),
    reason("Read initiation delay", Some(0.0), "a command starts immediately"),
    reason("Sequential stream scheme", Some(0.0), "commands are not merged"),
    reason("Maximum concat size", None, "commands are not merged"),
    reason("Overlapping request scheme", Some(0.0), "overlapping commands are not merged"),
    reason("Sequential stream diff maximum", None, "commands are not merged"),
    reason("Scheduling timeout scheme", Some(0.0), "no ageing"),
    reason("Timeout time/weight", None, "no ageing"),
    reason("Timeout scheduling", None, "no ageing"),
    reason("Scheduling priority scheme", Some(0.0), "commands have no priority"),
    reason("Priority scheduling", None, "commands have no priority"),
];

/// Returns the drive that a `disksim_disk` describes.
pub(super) fn drive(block: &Block, ledger: &mut Ledger, read: &mut ReadFile) -> Result<DriveDescription, InputError> {
    let mut disk = Fields::new(block, "");
    let model = disk.block(ledger, "Model", "geometry", "dm_disk")?.clone();
    let mut drive = bare_drive(&model, "Model", ledger, read)?;
    drive.name = block.label().to_owned();
    drive.queue.depth = queue_depth(&mut disk, ledger)?;
    drive.queue.policy = scheduler(&mut disk, "queue.policy", ledger)?;
    drive.buffer = buffer(&mut disk, ledger)?;
    ledger.sources.remove("overheads");
    let scale = disk.number(ledger, "Time scale for overheads", "overheads", 0.0..=1_000.0)?;
    let mut costs = Costs { disk: &mut disk, ledger, scale };
    drive.overheads = overheads(&mut costs)?;
    if drive.buffer.write_cache != WriteCache::Off {
        // A seek curve extracted through the interface includes part of the firmware's time, which is therefore missing
        // from the read overheads. A write that ends in the buffer involves no mechanics, so its overhead shows the
        // full firmware time.
        drive.overheads.read_settled_min_ns = drive.overheads.write_hit_ns;
        let why = "a read without a seek takes at least as long as a write into the buffer";
        costs.ledger.assume("overheads.read_settled_min_ns", why);
    }
    drive.interface = interface(&mut costs, drive.queue.depth)?;
    if drive.interface.disconnect.is_none() {
        // The watermark says when to reconnect for more of a write's data, which does not apply to a drive that never
        // disconnects. Waiting for all data is fitted to the measured writes of the RZ26.
        drive.buffer.write_watermark = Buffer::whole_write();
        let why = "a drive that keeps the bus receives a whole write first";
        costs.ledger.assume("buffer.write_watermark", why);
        costs.disk.leave(costs.ledger, "Low (write) water mark", why);
    }
    let on_arrival =
        |disk: &mut Fields, ledger: &mut Ledger, name, to| disk.integer(ledger, name, to, 0..=2).map(|level| level > 0);
    drive.mechanics.read_on_arrival =
        on_arrival(&mut disk, ledger, "Immediate buffer read", "mechanics.read_on_arrival")?;
    drive.mechanics.write_on_arrival =
        on_arrival(&mut disk, ledger, "Immediate buffer write", "mechanics.write_on_arrival")?;
    disk.finish(ledger, &DISK_REASONS);
    Ok(drive)
}

/// Returns the drive that a `dm_disk` alone describes: geometry and mechanics, with one command at a time, no buffer,
/// no overheads and no interface limits.
pub(super) fn bare_drive(
    block: &Rc<Block>,
    path: &str,
    ledger: &mut Ledger,
    read: &mut ReadFile,
) -> Result<DriveDescription, InputError> {
    let mut model = Fields::new(block, path);
    let geometry = geometry(&mut model, ledger)?;
    let mechanics = mechanics(&mut model, geometry.cylinders, ledger, read)?;
    model.finish(ledger, &[]);
    for key in ["queue", "buffer", "overheads", "interface"] {
        ledger.assume(key, "not stated: one command at a time, no buffer, no overheads, no limit");
    }
    ledger.assume("slow", "DiskSim has no slow processes");
    Ok(DriveDescription {
        name: block.label().to_owned(),
        geometry,
        mechanics,
        queue: Queue::NONE,
        buffer: Buffer {
            segments: 0,
            segment_sectors: 0,
            read_ahead: ReadAhead::None,
            read_ahead_max_sectors: 0,
            read_ahead_min_sectors: 0,
            read_ahead_on_hit: false,
            keep_passing_sectors: false,
            read_hits_on_arriving: false,
            read_hits_on_writes: false,
            write_cache: WriteCache::Off,
            dirty_extents_max: 1,
            dirty_sectors_max: 1,
            separate_write_segment: false,
            read_watermark: 0.0,
            write_watermark: Buffer::whole_write(),
        },
        overheads: Overheads::default(),
        interface: Interface {
            kind: InterfaceKind::Scsi,
            read_ns_per_byte: 0.0,
            write_ns_per_byte: 0.0,
            host_tags: 1,
            host_elevator: Policy::Fcfs,
            host: None,
            disconnect: None,
        },
        slow: SlowProcesses::default(),
        flash_cache: None,
        media_cache: None,
        shingles: None,
        actuators: 1,
        power: None,
    })
}

fn queue_depth(disk: &mut Fields, ledger: &mut Ledger) -> Result<u32, InputError> {
    ledger.sources.remove("queue");
    ledger.assume("queue.ageing_ns", "none in DiskSim 4.0");
    ledger.assume("queue.reordering_strength", "the scheduler chooses among all commands");
    disk.count(ledger, "Max queue length", "queue.depth", 1..=65_536)
}

/// Reads the policy of a `Scheduler` block, which belongs to a drive or to the host's driver.
pub(super) fn scheduler(fields: &mut Fields, to: &str, ledger: &mut Ledger) -> Result<Policy, InputError> {
    const NAME: &str = "Scheduling policy";
    let block = fields.block(ledger, "Scheduler", to, "disksim_ioqueue")?;
    let mut queue = Fields::new(block, &fields.key("Scheduler"));
    let number = queue.integer(ledger, NAME, to, 1..=28)?;
    let (policy, exact) = policy(number);
    if !exact {
        let message = format!("policy {number} has no counterpart; {policy:?} is used");
        queue.warn(ledger, NAME, &message);
        queue.leave(ledger, NAME, &message);
    }
    queue.finish(ledger, &QUEUE_REASONS);
    Ok(policy)
}

/// Returns the policy for a DiskSim number and whether the match is exact. Weighted, aged and mixed policies have only
/// an approximate match.
fn policy(number: u64) -> (Policy, bool) {
    match number {
        1 => (Policy::Fcfs, true),
        2 | 5 => (Policy::Look, true),
        3 | 6 => (Policy::CLook, true),
        4 | 7 => (Policy::Sstf, true),
        8 | 9 | 24 => (Policy::Sptf, true),
        17..=19 => (Policy::Look, false),
        22 | 23 => (Policy::Sstf, false),
        28 => (Policy::Fcfs, false),
        _ => (Policy::Sptf, false),
    }
}

fn buffer(disk: &mut Fields, ledger: &mut Ledger) -> Result<Buffer, InputError> {
    ledger.sources.remove("buffer");
    let caching = disk.integer(ledger, "Enable caching in buffer", "buffer.segments", 0..=2)? > 0;
    let segments = disk.count(ledger, "Number of buffer segments", "buffer.segments", 1..=65_536)?;
    let segment_sectors = disk.count(ledger, "Segment size (in blks)", "buffer.segment_sectors", 1..=1 << 30)?;
    let dirty_extents_max =
        disk.count(ledger, "Maximum number of write segments", "buffer.dirty_extents_max", 1..=65_536)?;
    ledger.assume("buffer.dirty_sectors_max", "number of write segments times the segment size");
    let write_level = disk.integer(ledger, "Fast write level", "buffer.write_cache", 0..=2)?;
    let (read_watermark, write_watermark) = watermarks(disk, ledger)?;
    Ok(Buffer {
        // Without caching, the buffer only matches the speeds of media and bus.
        segments: if caching { segments } else { 0 },
        segment_sectors,
        read_ahead: read_ahead(disk, ledger)?,
        read_ahead_max_sectors: disk.count(
            ledger,
            "Maximum read-ahead (blks)",
            "buffer.read_ahead_max_sectors",
            0..=1 << 30,
        )?,
        read_ahead_min_sectors: disk.count(
            ledger,
            "Minimum read-ahead (blks)",
            "buffer.read_ahead_min_sectors",
            0..=1 << 30,
        )?,
        read_ahead_on_hit: disk.flag(ledger, "Read-ahead on idle hit", "buffer.read_ahead_on_hit")?,
        keep_passing_sectors: disk.flag(ledger, "Read any free blocks", "buffer.keep_passing_sectors")?,
        read_hits_on_arriving: disk.flag(ledger, "Allow almost read hits", "buffer.read_hits_on_arriving")?,
        read_hits_on_writes: disk.flag(ledger, "Allow read hits on write data", "buffer.read_hits_on_writes")?,
        write_cache: match write_level {
            1 if caching => WriteCache::Appending,
            2 if caching => WriteCache::On,
            _ => WriteCache::Off,
        },
        dirty_extents_max,
        dirty_sectors_max: dirty_extents_max.saturating_mul(segment_sectors),
        separate_write_segment: disk.flag(ledger, "Use separate write segment", "buffer.separate_write_segment")?,
        read_watermark,
        write_watermark,
    })
}

fn read_ahead(disk: &mut Fields, ledger: &mut Ledger) -> Result<ReadAhead, InputError> {
    Ok(match disk.integer(ledger, "Buffer continuous read", "buffer.read_ahead", 0..=4)? {
        0 => ReadAhead::None,
        1 => ReadAhead::Track,
        2 => ReadAhead::Cylinder,
        3 => ReadAhead::Segment,
        _ => ReadAhead::TrackAfterSequential,
    })
}

/// Returns the read and write watermarks as fractions of the request. Warns if the file states fractions of a segment.
fn watermarks(disk: &mut Fields, ledger: &mut Ledger) -> Result<(f64, f64), InputError> {
    const BY_REQUEST: &str = "Set watermark by reqsize";
    let read = disk.number(ledger, "High (read) water mark", "buffer.read_watermark", 0.0..=1.0)?;
    let write = disk.number(ledger, "Low (write) water mark", "buffer.write_watermark", 0.0..=1.0)?;
    if !disk.flag(ledger, BY_REQUEST, "buffer.read_watermark")? && read.max(write) > 0.0 {
        let message = "the watermarks are fractions of a segment here; they are used as fractions of the request";
        disk.warn(ledger, BY_REQUEST, message);
        disk.leave(ledger, BY_REQUEST, message);
    }
    Ok((read, write))
}

/// Reads overheads and multiplies each by the drive's time scale.
struct Costs<'d, 'b, 'l> {
    disk: &'d mut Fields<'b>,
    ledger: &'l mut Ledger,
    scale: f64,
}

impl Costs<'_, '_, '_> {
    fn ns(&mut self, name: &str, to: &str) -> Result<u64, InputError> {
        self.disk.ms(self.ledger, name, to).map(|ms| ns(ms * self.scale))
    }

    /// Returns the overhead of a kind of command, including `every_ms`, the overhead of every request.
    fn command(&mut self, kind: &str, to: &str, every_ms: f64) -> Result<AfterReadWrite, InputError> {
        let mut after = |before: &str| {
            let ms = self.disk.ms(self.ledger, &format!("{kind} over. after {before}"), to)?;
            Ok::<u64, InputError>(ns((ms + every_ms) * self.scale))
        };
        Ok(AfterReadWrite { after_read: after("read")?, after_write: after("write")? })
    }
}

fn overheads(costs: &mut Costs) -> Result<Overheads, InputError> {
    let every_ms = costs.disk.ms(costs.ledger, "Per-request overhead time", "overheads")?;
    Ok(Overheads {
        read_settled_min_ns: AfterReadWrite::default(),
        read_hit_ns: costs.command("Read hit", "overheads.read_hit_ns", every_ms)?,
        read_miss_ns: costs.command("Read miss", "overheads.read_miss_ns", every_ms)?,
        write_hit_ns: costs.command("Write hit", "overheads.write_hit_ns", every_ms)?,
        write_miss_ns: costs.command("Write miss", "overheads.write_miss_ns", every_ms)?,
        read_completion_ns: costs.ns("Read completion overhead", "overheads.read_completion_ns")?,
        write_completion_ns: costs.ns("Write completion overhead", "overheads.write_completion_ns")?,
        data_preparation_ns: costs.ns("Data preparation overhead", "overheads.data_preparation_ns")?,
        minimum_seek_delay_ns: costs.ns("Minimum seek delay", "overheads.minimum_seek_delay_ns")?,
    })
}

fn interface(costs: &mut Costs, depth: u32) -> Result<Interface, InputError> {
    costs.ledger.sources.remove("interface");
    costs.ledger.assume("interface.kind", "the bus that DiskSim models is parallel SCSI");
    costs.ledger.assume("interface.host_tags", "as many commands as the drive accepts");
    costs.ledger.assume("interface.host_elevator", "the file states no driver");
    let block_ns = costs.disk.block_ns(costs.ledger, "Bulk sector transfer time", "interface.read_ns_per_byte")?;
    let source = costs.ledger.sources.get("interface.read_ns_per_byte").cloned().unwrap_or_default();
    costs.ledger.sources.insert("interface.write_ns_per_byte".to_owned(), source);
    let ns_per_byte = block_ns as f64 / f64::from(SECTOR_BYTES);
    Ok(Interface {
        kind: InterfaceKind::Scsi,
        read_ns_per_byte: ns_per_byte,
        write_ns_per_byte: ns_per_byte,
        host_tags: depth,
        host_elevator: Policy::Fcfs,
        host: None,
        disconnect: disconnect(costs)?,
    })
}

const DISCONNECT: &str = "interface.disconnect";
const DISCONNECT_COSTS: [&str; 5] = [
    "First reselect overhead",
    "Other reselect overhead",
    "Read disconnect afterread",
    "Read disconnect afterwrite",
    "Write disconnect overhead",
];
const EXTRA_COSTS: [&str; 5] = [
    "Extradisc command overhead",
    "Extradisc disconnect overhead",
    "Extradisc inter-disconnect delay",
    "Extradisc 2nd disconnect overhead",
    "Extradisc seek delta",
];

fn disconnect(costs: &mut Costs) -> Result<Option<Disconnect>, InputError> {
    if costs.disk.flag(costs.ledger, "Never disconnect", DISCONNECT)? {
        for name in DISCONNECT_COSTS.iter().chain(&["Extra write disconnect"]).chain(&EXTRA_COSTS) {
            costs.disk.leave(costs.ledger, name, "the drive never disconnects");
        }
        return Ok(None);
    }
    let read_ns = AfterReadWrite {
        after_read: costs.ns("Read disconnect afterread", DISCONNECT)?,
        after_write: costs.ns("Read disconnect afterwrite", DISCONNECT)?,
    };
    Ok(Some(Disconnect {
        read_ns,
        write_ns: costs.ns("Write disconnect overhead", DISCONNECT)?,
        first_reselect_ns: costs.ns("First reselect overhead", DISCONNECT)?,
        other_reselect_ns: costs.ns("Other reselect overhead", DISCONNECT)?,
        extra: extra_disconnect(costs)?,
    }))
}

fn extra_disconnect(costs: &mut Costs) -> Result<Option<ExtraDisconnect>, InputError> {
    if !costs.disk.flag(costs.ledger, "Extra write disconnect", DISCONNECT)? {
        for name in EXTRA_COSTS {
            costs.disk.leave(costs.ledger, name, "writes disconnect once");
        }
        return Ok(None);
    }
    Ok(Some(ExtraDisconnect {
        command_ns: costs.ns("Extradisc command overhead", DISCONNECT)?,
        disconnect_ns: costs.ns("Extradisc disconnect overhead", DISCONNECT)?,
        between_ns: costs.ns("Extradisc inter-disconnect delay", DISCONNECT)?,
        second_disconnect_ns: costs.ns("Extradisc 2nd disconnect overhead", DISCONNECT)?,
        seek_delta_ns: costs.ns("Extradisc seek delta", DISCONNECT)?,
    }))
}
