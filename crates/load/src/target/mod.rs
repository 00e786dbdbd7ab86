//! [`Target`]: a file, block device, NVMe namespace or NBD export under test, opened in a way that protects existing
//! data.
//!
//! Reading needs no permission. To write a block device, its name or serial number must be given, and no known user may
//! need its contents. To write an export, its address or name must be given. To write an existing file, permission to
//! overwrite it is required.

mod contents;
mod create;
mod describe;
mod device;
mod export;
mod failure_scope;
mod file;
mod in_use;
mod kernel;
mod libblkid;
mod machine;
mod map;
mod namespace;
mod object;
mod openers;
mod partitions;
mod refusals;
mod signatures;
mod stacked;
mod superblocks;
#[cfg(test)]
mod tests;

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use headstack_jobfiles::{Sync, Zoning};
use headstack_nbd::{Address, transmission};
use headstack_workload::quantity::format_bytes;
use serde_json::Value;

use crate::LoadError;
use crate::clock::Time;
use crate::engine::trim;
use crate::nbd::Export;
use crate::nvme::words_of;
use crate::target_map::TargetHandle;
use crate::zones::{DeviceLimits, Zones};
use in_use::Uses;
use machine::{Block, Machine};
use object::{Number, Object};
use refusals::{missing, open_failure, refused};

pub use failure_scope::FailureScope;

/// Block size of a null target, in bytes.
const BLOCK_BYTES: u32 = 512;

/// Start of the message that explains why writing to a target has stopped.
pub const WRITING_STOPPED: &str = "is now in use; writing stops";

/// Time between two checks whether others have begun to use a written target.
pub(crate) const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Number of bytes discarded between two checks for a stop.
const DISCARD_BYTES: u64 = 1 << 30;

/// Permissions for a target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permission {
    /// Whether the target may be written, as far as the other fields allow.
    pub write: bool,
    /// Block devices whose contents may be lost, by kernel name, path (such as `/dev/disk/by-id/...`), serial number or
    /// world wide name; exports by address or name.
    pub destroy: Vec<String>,
    /// Signatures on a device that may be overwritten, by the names that `blkid` uses: `ext4`, `gpt`.
    pub signatures: Vec<String>,
    /// Size of a file, in bytes. The file is created if it does not exist, and grown if it is smaller and `overwrite`
    /// is set. A larger file keeps its size.
    pub create_bytes: Option<u64>,
    /// Whether an existing file may be written and grown.
    pub overwrite: bool,
}

/// Kind of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetKind {
    /// A file in a file system.
    File,
    /// A disk, a partition or a mapping.
    BlockDevice,
    /// An NVMe namespace, by its character device.
    Namespace,
    /// An export of an NBD server.
    Export,
    /// A null target, where every request completes at once.
    Null,
}

impl TargetKind {
    /// Returns the kind's name in results.
    pub fn name(self) -> &'static str {
        match self {
            TargetKind::File => "file",
            TargetKind::BlockDevice => "block device",
            TargetKind::Namespace => "NVMe namespace",
            TargetKind::Export => "NBD export",
            TargetKind::Null => "null",
        }
    }
}

/// How a target is opened.
#[derive(Clone, Copy, Debug)]
struct Access {
    direct: bool,
    sync: Sync,
}

impl Access {
    fn options(&self, write: bool) -> OpenOptions {
        let sync = match self.sync {
            Sync::No => 0,
            Sync::Data => libc::O_DSYNC,
            Sync::File => libc::O_SYNC,
        };
        let direct = if self.direct { libc::O_DIRECT } else { 0 };
        let mut options = OpenOptions::new();
        options.read(true).write(write).custom_flags(direct | sync);
        options
    }
}

/// An open target of this machine.
struct Opened {
    /// The open file or device.
    file: File,
    namespace: Option<namespace::OpenNamespace>,
    /// Exclusive claim that keeps others from mounting a device while it is written.
    _claim: Option<File>,
    capacity_bytes: u64,
    block_bytes: u32,
    physical_block_bytes: u32,
    memory_align_bytes: u32,
    /// The block device: the target, or the device that a file is on.
    block: Option<Block>,
    notes: Vec<String>,
}

/// Data source behind a target.
enum Backing {
    /// A file or device of this machine.
    Kernel(Opened),
    /// An export, and notes that qualify its results.
    Server(Arc<Export>, Vec<String>),
    /// Nothing: a null target.
    Nothing,
}

/// An open file, block device or export. It is closed and free for others when this value is dropped.
///
/// A device that is written is held exclusively, so the jobs of a run share one `Target`.
pub struct Target {
    name: String,
    kind: TargetKind,
    time: Time,
    behind: Backing,
    capacity_bytes: u64,
    is_writable: bool,
    writes_are_durable: bool,
    description: Value,
    /// Zones of the target, once a job has requested them.
    zones: Mutex<Option<Arc<Zones>>>,
    /// Whether the user gave up the requests in flight.
    given_up: AtomicBool,
    /// Path of the file without links, if this run created it.
    created: Option<PathBuf>,
}

impl Target {
    /// Opens a file, block device or export (`nbd://...`) as `permission` allows, by default for reading. `direct`
    /// bypasses the page cache; with `sync`, a write completes only when it is on stable storage.
    ///
    /// A file that is created or grown is first written completely. `progress` receives the completed share, 0 to 1,
    /// and returns whether to continue.
    ///
    /// # Errors
    /// Returns an error if the target does not exist, is not a file or block device, has no size, or may not be opened
    /// by this user; if it is to be written, but `permission` does not allow that, it is in use, or it has a signature
    /// that `permission` does not name; or if there is no room for it. Returns `LoadError::Stopped` if `progress`
    /// returned false. After an error, nothing has been written and no file is left behind.
    pub fn open(
        path: &str,
        direct: bool,
        sync: Sync,
        permission: &Permission,
        progress: &dyn Fn(f64) -> bool,
    ) -> Result<Target, LoadError> {
        if Target::is_export(path) {
            return Target::open_export(path, sync, permission, 1);
        }
        let access = Access { direct, sync };
        let (opened, resolved, is_created) = match fs::canonicalize(path) {
            Ok(resolved) => (open_existing(path, &resolved, &access, permission, progress)?, resolved, false),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let Some(bytes) = permission.create_bytes else { return Err(missing(path)) };
                if fs::symlink_metadata(path).is_ok() {
                    return Err(missing(path));
                }
                let opened = file::create(path, bytes, &access, permission, progress)?;
                (opened, fs::canonicalize(path).map_err(|error| open_failure(path, error, false))?, true)
            }
            Err(error) => return Err(open_failure(path, error, permission.write)),
        };
        if opened.capacity_bytes == 0 {
            return Err(refused(path, "has a size of 0: no medium, or nothing attached"));
        }
        let is_file = opened.file.metadata().map_err(|error| open_failure(path, error, false))?.is_file();
        let kind = match &opened.namespace {
            Some(_) => TargetKind::Namespace,
            None if is_file => TargetKind::File,
            None => TargetKind::BlockDevice,
        };
        let description = describe::describe(path, &resolved, kind, &access, permission.write, &opened);
        let capacity_bytes = opened.capacity_bytes;
        Ok(Target {
            name: path.to_owned(),
            kind,
            time: Time::Wall,
            behind: Backing::Kernel(opened),
            capacity_bytes,
            is_writable: permission.write,
            writes_are_durable: sync != Sync::No,
            description,
            zones: Mutex::new(None),
            given_up: AtomicBool::new(false),
            created: is_created.then_some(resolved),
        })
    }

    /// Opens an export of an NBD server by its address (`nbd://host:port/export`, `nbd+unix:///export?socket=PATH`).
    /// Each thread that measures it uses `connections` connections.
    ///
    /// # Errors
    /// Returns an error if the server does not answer or does not have the export, or if the export has size 0; and if
    /// it is to be written, but `permission` does not allow that, it is read-only, or it has a signature that
    /// `permission` does not name.
    pub fn open_export(name: &str, sync: Sync, permission: &Permission, connections: u32) -> Result<Target, LoadError> {
        let (export, notes) = export::open(name, sync != Sync::No, permission, connections)?;
        Ok(Target {
            name: name.to_owned(),
            kind: TargetKind::Export,
            time: Time::Wall,
            capacity_bytes: export.terms().capacity_bytes,
            is_writable: permission.write,
            writes_are_durable: sync != Sync::No,
            description: export::describe(name, &export, sync, permission.write, &notes),
            behind: Backing::Server(Arc::new(export), notes),
            zones: Mutex::new(None),
            given_up: AtomicBool::new(false),
            created: None,
        })
    }

    /// Returns whether the name is the address of an export.
    pub fn is_export(name: &str) -> bool {
        Address::is_meant(name)
    }

    /// Returns a null target of this size.
    pub fn null(capacity_bytes: u64) -> Target {
        let description = serde_json::json!({ "kind": TargetKind::Null.name(), "capacity_bytes": capacity_bytes });
        Target {
            name: "null".to_owned(),
            kind: TargetKind::Null,
            time: Time::Wall,
            behind: Backing::Nothing,
            capacity_bytes,
            is_writable: true,
            writes_are_durable: false,
            description,
            zones: Mutex::new(None),
            given_up: AtomicBool::new(false),
            created: None,
        }
    }

    /// Returns a null target with its own kind of time, which all targets of a run share, so that results can be
    /// compared with expected values on any machine.
    pub fn null_in(time: Time, capacity_bytes: u64) -> Target {
        Target { time, ..Target::null(capacity_bytes) }
    }

    /// Removes the file if opening the target created it and it is still the same. Used for measurements that are
    /// refused.
    pub fn remove_created(&self) {
        let (Some(path), Some(opened)) = (&self.created, self.opened()) else { return };
        let object = |metadata: fs::Metadata| Object::of(&metadata);
        let is_ours = opened
            .file
            .metadata()
            .is_ok_and(|own| fs::symlink_metadata(path).is_ok_and(|at| object(at) == object(own)));
        if is_ours {
            // The original error is reported; a file that cannot be removed does no harm.
            let _ = fs::remove_file(path);
        }
    }

    /// Shortens the wait for outstanding requests to a time in which a working device answers. Use this for runs that
    /// must stop on a device that may never answer, but not for runs that continue.
    pub fn give_up(&self) {
        self.given_up.store(true, Ordering::Relaxed);
    }

    /// Returns whether the user gave up the requests in flight.
    pub(crate) fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::Relaxed)
    }

    /// Returns the destination of requests to the target.
    pub(crate) fn at(&self) -> TargetHandle {
        match &self.behind {
            Backing::Kernel(Opened { namespace: Some(open), .. }) => {
                TargetHandle::Namespace(Arc::clone(&open.namespace))
            }
            Backing::Kernel(opened) if self.kind == TargetKind::BlockDevice => {
                TargetHandle::Device(opened.file.as_raw_fd())
            }
            Backing::Kernel(opened) => TargetHandle::File(opened.file.as_raw_fd()),
            Backing::Server(export, _) => TargetHandle::Export(Arc::clone(export)),
            Backing::Nothing => TargetHandle::Nowhere,
        }
    }

    fn opened(&self) -> Option<&Opened> {
        match &self.behind {
            Backing::Kernel(opened) => Some(opened),
            Backing::Server(..) | Backing::Nothing => None,
        }
    }

    /// Returns the export, if the target is one.
    pub(crate) fn export(&self) -> Option<&Arc<Export>> {
        match &self.behind {
            Backing::Server(export, _) => Some(export),
            Backing::Kernel(_) | Backing::Nothing => None,
        }
    }

    /// Returns the maximum length of a request, in bytes, if known.
    pub(crate) fn longest_bytes(&self) -> Option<u32> {
        match &self.behind {
            Backing::Kernel(opened) => Some(opened.namespace.as_ref()?.namespace.geometry().longest_bytes),
            Backing::Server(export, _) => Some(export.terms().maximum_bytes),
            Backing::Nothing => None,
        }
    }

    /// Returns the path or address with which the target was opened; `null` for a null target.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the kind of the target.
    pub fn kind(&self) -> TargetKind {
        self.kind
    }

    /// Returns the descriptor; `None` for an export or a null target.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.opened().map(|opened| opened.file.as_fd())
    }

    /// Returns the size at the time of opening, in bytes.
    pub fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }

    /// Returns the capacity in whole blocks of `block_bytes`, in bytes.
    pub fn whole_bytes(&self, block_bytes: u32) -> u64 {
        self.capacity_bytes / u64::from(block_bytes) * u64::from(block_bytes)
    }

    /// Returns the block size of requests to all targets, in bytes: at least 512, as on a simulated drive.
    pub fn common_block_bytes(targets: &[Arc<Target>]) -> u32 {
        targets.iter().map(|target| target.block_bytes()).fold(BLOCK_BYTES, u32::max)
    }

    /// Returns whether requests may begin and end at any byte, as for a file through the page cache.
    pub fn takes_any_bytes(&self) -> bool {
        self.kind == TargetKind::File && self.description["direct"] == false
    }

    /// Returns the kind of time that all targets share.
    ///
    /// # Errors
    /// Returns an error if the targets use different clocks.
    pub fn common_time<'t>(targets: impl IntoIterator<Item = &'t Arc<Target>>) -> Result<Time, LoadError> {
        let mut targets = targets.into_iter();
        let time = targets.next().map_or(Time::Wall, |target| target.time);
        match targets.find(|target| target.time != time) {
            Some(other) => Err(LoadError::Target {
                target: other.name.clone(),
                message: "uses another clock than the other targets; use real time, or the same virtual time, for all of them".into(),
            }),
            None => Ok(time),
        }
    }

    /// Returns the zones of the target, which all jobs share: those of a zoned device, or a division of any other
    /// target.
    ///
    /// # Errors
    /// Returns an error if the zones do not match the request or another job's division, if the target is a zoned
    /// device to be written through the page cache, or if it is an export.
    pub(crate) fn zones(&self, zoning: &Zoning) -> Result<Arc<Zones>, LoadError> {
        let refuse = |message| refused(&self.name, message);
        let mut known = self.zones.lock().expect("the lock is not poisoned");
        if let Some(zones) = &*known {
            zones.check(zoning).map_err(refuse)?;
            zones.open_max(zoning).map_err(refuse)?;
            return Ok(Arc::clone(zones));
        }
        let zones = match (self.opened(), self.zoned_model()) {
            (Some(opened), Some(_)) => {
                if self.is_writable && self.description["direct"] == false {
                    return Err(refuse("is a zoned device; it can be written only with direct I/O".to_owned()));
                }
                let disk = opened.block.as_ref().map(Block::disk);
                let limit = |name| disk.as_ref().and_then(|disk| disk.attribute_u64(name)).unwrap_or(0);
                let limits =
                    DeviceLimits { open: limit("queue/max_open_zones"), active: limit("queue/max_active_zones") };
                let device = opened.file.try_clone().map_err(|error| open_failure(&self.name, error, false))?;
                Zones::of_device(device, &limits, zoning)
            }
            (Some(_), None) | (None, _) if self.export().is_none() => {
                Zones::divided(self.capacity_bytes, u64::from(self.block_bytes().max(BLOCK_BYTES)), zoning)
            }
            _ => Err("is an NBD export, whose zones are unknown".to_owned()),
        };
        let zones = Arc::new(zones.map_err(refuse)?);
        zones.open_max(zoning).map_err(refuse)?;
        *known = Some(Arc::clone(&zones));
        Ok(zones)
    }

    /// Returns an error if the target is a zoned device, which accepts writes only at its write pointers.
    ///
    /// # Errors
    /// Returns instructions for the user.
    pub(crate) fn check_untended(&self) -> Result<(), LoadError> {
        match self.zoned_model().as_deref() {
            Some("host-managed") => Err(refused(
                &self.name,
                "is a zoned device, to be written only at write pointers; use --zoned, or \
                 zonemode=zbd in a job file",
            )),
            // A host-aware device accepts writes anywhere.
            Some(_) | None => Ok(()),
        }
    }

    /// Returns `host-managed` or `host-aware` for a zoned device.
    fn zoned_model(&self) -> Option<String> {
        let has_zones = matches!(self.kind, TargetKind::BlockDevice | TargetKind::Namespace);
        let block = self.opened().filter(|_| has_zones)?.block.as_ref()?;
        block.disk().attribute("queue/zoned").filter(|model| model != "none")
    }

    /// Returns whether the target was opened for writing.
    pub fn is_writable(&self) -> bool {
        self.is_writable
    }

    /// Returns whether a completed write is on stable storage.
    pub(crate) fn writes_are_durable(&self) -> bool {
        self.writes_are_durable
    }

    /// Returns the logical block size, in bytes: the alignment of offsets and lengths of direct requests.
    pub fn block_bytes(&self) -> u32 {
        match &self.behind {
            Backing::Kernel(opened) => opened.block_bytes,
            Backing::Server(export, _) => export.terms().minimum_bytes,
            Backing::Nothing => 1,
        }
    }

    /// Returns the physical block size, in bytes. Smaller writes make the device read first.
    pub fn physical_block_bytes(&self) -> u32 {
        match &self.behind {
            Backing::Kernel(opened) => opened.physical_block_bytes,
            Backing::Server(export, _) => export.terms().preferred_bytes,
            Backing::Nothing => 1,
        }
    }

    /// Returns the memory alignment of direct requests, in bytes.
    pub fn memory_align_bytes(&self) -> u32 {
        self.opened().map_or(1, |opened| opened.memory_align_bytes)
    }

    /// Returns whether the device, or the device that the file is on, is an HDD, according to the kernel or the
    /// export's server; `None` if unknown.
    pub fn is_rotational(&self) -> Option<bool> {
        if let Some(export) = self.export() {
            return export.can(transmission::ROTATIONAL).then_some(true);
        }
        let disk = self.opened()?.block.as_ref()?.disk();
        disk.attribute_u64("queue/rotational").map(|flag| flag != 0)
    }

    /// Returns notes that qualify the target's results, one line each.
    pub fn notes(&self) -> &[String] {
        match &self.behind {
            Backing::Kernel(opened) => &opened.notes,
            Backing::Server(_, notes) => notes,
            Backing::Nothing => &[],
        }
    }

    /// Returns a description for results, as JSON: path and destination of links, kind, sizes and blocks, how the
    /// target was opened, the device with model, serial number, queue and scheduler, the file system of a file, and the
    /// kernel.
    pub fn description(&self) -> &Value {
        &self.description
    }

    /// Checks that no one else has begun to use one of the written `targets`: by mounting it, building something on it,
    /// using it behind a loop device or as swap, or opening it for writing.
    ///
    /// # Errors
    /// Returns an error with the target and its use, or if the uses cannot be read.
    pub fn check_unused(targets: &[&Target]) -> Result<(), LoadError> {
        let machine = Machine::this();
        let mut written = targets.iter().filter_map(|target| Some((target, target.written()?))).peekable();
        let Some((first, _)) = written.peek() else { return Ok(()) };
        let unknown =
            |error| refused(&first.name, format!("{WRITING_STOPPED}: its users cannot be determined ({error})"));
        let uses = Uses::of(&machine).map_err(unknown)?;
        for (target, opened) in written {
            let used = match (target.kind, &opened.block) {
                (TargetKind::BlockDevice | TargetKind::Namespace, Some(block)) => {
                    device::used_by_others(&uses, &machine, block)
                }
                _ => file::used_by_others(&uses, &machine, &opened.file),
            };
            if let Some(used) = used {
                return Err(refused(&target.name, format!("{WRITING_STOPPED}: {used}")));
            }
        }
        Ok(())
    }

    fn written(&self) -> Option<&Opened> {
        self.opened().filter(|_| self.is_writable)
    }

    /// Drops the clean pages of the target from the page cache.
    ///
    /// # Errors
    /// Returns an error if the kernel refuses; only root may do this for a device.
    pub(crate) fn forget_cached(&self) -> io::Result<()> {
        match (self.opened(), self.kind) {
            (Some(opened), TargetKind::File) => kernel::forget_file(&opened.file),
            (Some(opened), TargetKind::BlockDevice) => kernel::forget_device(&opened.file),
            _ => Ok(()),
        }
    }

    /// Discards everything on a block device or export, so that an SSD has no valid data left. `progress` receives the
    /// completed share, 0 to 1, and returns whether to continue.
    ///
    /// # Errors
    /// Returns an error if the target is a file or null target, was not opened for writing, or does not support
    /// discard. Returns `LoadError::Stopped` if `progress` returned false; a part has been discarded then.
    pub fn discard(&self, progress: &dyn Fn(f64) -> bool) -> Result<(), LoadError> {
        let at = self.at();
        match &at {
            TargetHandle::File(_) | TargetHandle::Nowhere => {
                return Err(refused(&self.name, "is not a block device; only block devices can discard"));
            }
            TargetHandle::Device(_) | TargetHandle::Namespace(_) | TargetHandle::Export(_) if !self.is_writable => {
                return Err(refused(&self.name, "is opened read-only"));
            }
            TargetHandle::Device(_) | TargetHandle::Namespace(_) | TargetHandle::Export(_) => {}
        }
        let (mut at_bytes, mut looked) = (0, Instant::now());
        while at_bytes < self.capacity_bytes {
            if looked.elapsed() >= LOOK_EVERY {
                Target::check_unused(&[self])?;
                looked = Instant::now();
            }
            if !progress(at_bytes as f64 / self.capacity_bytes as f64) {
                return Err(LoadError::Stopped);
            }
            let length_bytes = DISCARD_BYTES.min(self.capacity_bytes - at_bytes);
            let result = match &at {
                TargetHandle::Export(export) => export.trim(at_bytes, length_bytes as u32),
                TargetHandle::Namespace(namespace) => namespace.trim(at_bytes, length_bytes),
                TargetHandle::Device(fd) | TargetHandle::File(fd) => trim(*fd, true, at_bytes, length_bytes as u32),
                TargetHandle::Nowhere => 0,
            };
            match -result {
                0 => at_bytes += length_bytes,
                libc::EOPNOTSUPP => return Err(refused(&self.name, "does not support discard")),
                errno => return Err(refused(&self.name, format!("discard: {}", words_of(errno)))),
            }
        }
        Ok(())
    }

    /// Checks that the target has `length_bytes` from `offset_bytes` on.
    ///
    /// # Errors
    /// Returns an error if the target ends earlier.
    pub fn check_span(&self, offset_bytes: u64, length_bytes: u64) -> Result<(), LoadError> {
        match offset_bytes.checked_add(length_bytes) {
            Some(end) if end <= self.capacity_bytes => Ok(()),
            _ => {
                let (length, offset) = (format_bytes(length_bytes), format_bytes(offset_bytes));
                let message = format!("has {}; {length} from {offset} do not fit", format_bytes(self.capacity_bytes));
                Err(refused(&self.name, message))
            }
        }
    }
}

/// Returns the files that a target consists of, as device number and inode: the file itself, or the files behind the
/// loop devices that a block device is or is built on.
pub fn files_below(path: &Path) -> Vec<(u64, u64)> {
    let mut files = Vec::new();
    if let Ok(metadata) = fs::metadata(path) {
        collect_files(&Machine::this(), Object::of(&metadata), &mut files);
    }
    files
}

fn collect_files(machine: &Machine, object: Object, files: &mut Vec<(u64, u64)>) {
    match object {
        Object::File { device, inode } => files.push((device, inode)),
        Object::CharacterDevice(_) => {}
        Object::Device(number) => {
            // Nothing is known about what is below a device that sysfs does not list.
            let Ok(block) = machine.block(number) else { return };
            let disk = block.disk();
            let slaves = block.slaves().into_iter().map(|slave| Object::Device(slave.number));
            for below in slaves.chain(machine.backing(&disk)) {
                collect_files(machine, below, files);
            }
        }
    }
}

fn open_existing(
    path: &str,
    resolved: &Path,
    access: &Access,
    permission: &Permission,
    progress: &dyn Fn(f64) -> bool,
) -> Result<Opened, LoadError> {
    let metadata = fs::metadata(resolved).map_err(|error| open_failure(path, error, permission.write))?;
    let kind = metadata.file_type();
    let what = if kind.is_block_device() {
        return device::open(path, Number::from_raw(metadata.rdev()), access, permission);
    } else if kind.is_file() {
        return file::open(path, access, permission, progress);
    } else if kind.is_dir() {
        "is a directory"
    } else if kind.is_char_device() {
        return namespace::open(path, Number::from_raw(metadata.rdev()), access, permission);
    } else if kind.is_fifo() {
        "is a pipe"
    } else {
        "is a socket"
    };
    Err(refused(path, format!("{what}; a file or block device is required")))
}
