//! Opens files.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use headstack_workload::quantity::format_bytes;

use super::in_use::Uses;
use super::machine::{Block, Machine};
use super::object::{Number, Object};
use super::refusals::{check_same, open_failure, refused};
use super::stacked::{self, FileBacking};
use super::{Access, Opened, Permission, create, kernel, openers};
use crate::LoadError;

/// `statfs` types of tmpfs and ramfs, which store files in memory.
const MEMORY_FILE_SYSTEMS: [i64; 2] = [0x0102_1994, 0x8584_58f6];

/// Opens an existing file.
pub(super) fn open(
    path: &str,
    access: &Access,
    permission: &Permission,
    progress: &dyn Fn(f64) -> bool,
) -> Result<Opened, LoadError> {
    let failure = |error| open_failure(path, error, permission.write);
    check_direct(path, Path::new(path), access)?;
    let metadata = fs::metadata(path).map_err(failure)?;
    let mut length_bytes = metadata.len();
    let grown_bytes = permission.create_bytes.filter(|&bytes| bytes > length_bytes);
    if permission.write || grown_bytes.is_some() {
        check_overwrite(path, permission, length_bytes)?;
        check_unused(path, &metadata, &permission.signatures)?;
    }
    if let Some(bytes) = grown_bytes {
        create::grow(path, &metadata, bytes, progress)?;
        length_bytes = bytes;
    }
    if length_bytes == 0 {
        return Err(refused(path, "is empty; to fill it, add --create SIZE"));
    }
    let file = access.options(permission.write).open(path).map_err(failure)?;
    check_same(path, &file, &metadata)?;
    finish(path, file, access)
}

/// Creates a file and opens it.
pub(super) fn create(
    path: &str,
    bytes: u64,
    access: &Access,
    permission: &Permission,
    progress: &dyn Fn(f64) -> bool,
) -> Result<Opened, LoadError> {
    let directory = Path::new(path).parent().filter(|parent| !parent.as_os_str().is_empty());
    check_direct(path, directory.unwrap_or(Path::new(".")), access)?;
    create::create(path, bytes, progress)?;
    let file = access.options(permission.write).open(path).map_err(|error| open_failure(path, error, true))?;
    finish(path, file, access)
}

/// Returns an error for direct I/O to a file in memory: Linux 6.6 and later accept `O_DIRECT` there, but still copy.
fn check_direct(path: &str, place: &Path, access: &Access) -> Result<(), LoadError> {
    let (kind, _) = kernel::file_system(place).map_err(|error| open_failure(path, error, false))?;
    if access.direct && MEMORY_FILE_SYSTEMS.contains(&kind) {
        return Err(refused(
            path,
            "is in memory (tmpfs), which has no direct I/O; use buffered I/O, or a file on a disk",
        ));
    }
    Ok(())
}

fn check_overwrite(path: &str, permission: &Permission, length_bytes: u64) -> Result<(), LoadError> {
    if !permission.overwrite {
        let grown = permission.create_bytes.filter(|&bytes| bytes > length_bytes);
        let what = match grown {
            Some(bytes) => format!("has {}, and {} are requested", format_bytes(length_bytes), format_bytes(bytes)),
            None => format!("has {} that would be overwritten", format_bytes(length_bytes)),
        };
        return Err(refused(path, format!("exists and {what}; to allow it, add --overwrite")));
    }
    Ok(())
}

/// Returns an error if others use the file that `metadata` describes, or a file behind it. If this cannot be
/// determined, `allowed` must name the kind of file system.
fn check_unused(path: &str, metadata: &fs::Metadata, allowed: &[String]) -> Result<(), LoadError> {
    let machine = Machine::this();
    let unknown = |error| refused(path, format!("not written, since its users cannot be determined: {error}"));
    let uses = Uses::of(&machine).map_err(unknown)?;
    let what = Object::of(metadata);
    let file = File::open(path).map_err(|error| open_failure(path, error, true))?;
    check_same(path, &file, metadata)?;
    let used = uses.of_file(what).map(|used| format!("it {used}"));
    let in_use = |used: String| refused(path, format!("is in use: {used}; it is not written"));
    if let Some(used) = used.or_else(|| openers::of_file(&machine, &file, &[what])) {
        return Err(in_use(used));
    }
    let canonical = fs::canonicalize(path).map_err(|error| open_failure(path, error, true))?;
    match stacked::behind(&machine, &canonical) {
        FileBacking::Itself => Ok(()),
        FileBacking::Files(files) => {
            for behind in files {
                let file = File::open(&behind).map_err(unknown)?;
                let real = Object::of(&file.metadata().map_err(unknown)?);
                let used = uses.of_file(real).map(|used| format!("it {used}"));
                if let Some(used) = used.or_else(|| openers::of_file(&machine, &file, &[real, what])) {
                    return Err(in_use(format!("{used} (as {})", behind.display())));
                }
            }
            Ok(())
        }
        FileBacking::Unknown(kind, _) if allowed.contains(&kind) => Ok(()),
        FileBacking::Unknown(kind, why) => {
            Err(refused(path, format!("may be in use: {why}; to write it anyway, add --signature {kind}")))
        }
    }
}

/// Returns how others have begun to use a file that is open for writing; `None` if they have not.
pub(super) fn used_by_others(uses: &Uses, machine: &Machine, file: &File) -> Option<String> {
    let what = Object::of(&file.metadata().ok()?);
    let used = uses.of_file(what).map(|used| format!("it {used}"));
    used.or_else(|| openers::of_written_file(machine, file, what))
}

fn finish(path: &str, file: File, access: &Access) -> Result<Opened, LoadError> {
    let failure = |error| open_failure(path, error, false);
    let metadata = file.metadata().map_err(failure)?;
    if !metadata.is_file() {
        return Err(refused(path, "was replaced while it was opened"));
    }
    let machine = Machine::this();
    let block = device_below(&machine, path, metadata.dev());
    let disk = block.as_ref().map(Block::disk);
    let attribute = |name| u32::try_from(disk.as_ref()?.attribute_u64(name)?).ok();
    let logical_bytes = attribute("queue/logical_block_size");
    let alignment = kernel::direct_alignment(&file);
    if access.direct && alignment.is_some_and(|alignment| alignment.offset_bytes == 0) {
        return Err(refused(
            path,
            "does not support direct I/O on its file system, which would copy through the page cache (journalled or encrypted \
             data); use buffered I/O",
        ));
    }
    let alignment = alignment.filter(|alignment| alignment.offset_bytes > 0);
    let block_bytes = alignment.map(|alignment| alignment.offset_bytes).or(logical_bytes).unwrap_or(4096);
    let memory_align_bytes = alignment.map_or(block_bytes, |alignment| alignment.memory_bytes);
    let physical_block_bytes = attribute("queue/physical_block_size").unwrap_or(block_bytes).max(block_bytes);
    let capacity_bytes = metadata.len();
    // File systems without an extent map at least report holes.
    let stored = kernel::stored_bytes(&file, capacity_bytes).or_else(|_| kernel::data_bytes(&file, capacity_bytes));
    let stored_bytes = stored.map_err(failure)?;
    let mut notes = Vec::new();
    if stored_bytes < capacity_bytes {
        let percent = (capacity_bytes - stored_bytes) as f64 / capacity_bytes as f64 * 100.0;
        notes.push(format!("{percent:.3} % of the file is unallocated; reads there never reach the device"));
    }
    Ok(Opened {
        file,
        namespace: None,
        _claim: None,
        capacity_bytes,
        block_bytes,
        physical_block_bytes,
        memory_align_bytes,
        block,
        notes,
    })
}

/// Returns the device of a file's file system. For btrfs and overlays, only the source of the mount identifies it.
fn device_below(machine: &Machine, path: &str, device: u64) -> Option<Block> {
    let number = Number::from_raw(device);
    if number.major != 0 {
        return machine.block(number).ok();
    }
    let mount = stacked::mount_of(machine, &fs::canonicalize(path).ok()?)?;
    machine.block(machine.number_of(&mount.source, &machine.proc.join("self"))?).ok()
}
