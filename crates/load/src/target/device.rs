//! Opens block devices.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt;

use super::contents::Sample;
use super::in_use::Uses;
use super::libblkid::Libblkid;
use super::machine::{Block, Machine};
use super::object::{Number, Object};
use super::refusals::{open_failure, refused};
use super::signatures::{Signature, probe};
use super::superblocks::Part;
use super::{Access, Opened, Permission, kernel, openers, partitions};
use crate::LoadError;

/// Note for machines without libblkid.
pub(super) const NO_SECOND_OPINION: &str =
    "libblkid.so.1 not found: only headstack's own table checked the device for file systems";

/// Opens the block device `number` at the path `path`.
pub(super) fn open(path: &str, number: Number, access: &Access, permission: &Permission) -> Result<Opened, LoadError> {
    let machine = Machine::this();
    let failure = |error| open_failure(path, error, permission.write);
    if !permission.write {
        // Not exclusive, so that mounted disks can be read too.
        let file = access.options(false).open(path).map_err(failure)?;
        return finish(path, file, None, number, &machine);
    }
    let unknown =
        |error| refused(path, format!("not written, since sysfs does not show whether it is in use: {error}"));
    let block = machine.block(number).map_err(unknown)?;
    check_named(path, &block, &machine, &permission.destroy)?;
    let uses = Uses::of(&machine)
        .map_err(|error| refused(path, format!("not written, since the mounts cannot be read: {error}")))?;
    let in_use = |used| refused(path, format!("is in use: {used}; it is not written"));
    if let Some(used) = used_by_others(&uses, &machine, &block) {
        return Err(in_use(used));
    }
    // The device is held exclusively until the target is closed, so that attempts to mount it or to add it to an array
    // fail with EBUSY. It is opened read-only, so that nothing can be written before all checks are done.
    let claim = fs::OpenOptions::new().read(true).custom_flags(libc::O_EXCL).open(path).map_err(|error| match error
        .raw_os_error()
    {
        Some(libc::EBUSY) => in_use(
            "another user holds it exclusively, such as a file system in another namespace, \
                                         ZFS, or another run"
                .into(),
        ),
        _ => failure(error),
    })?;
    check_same(path, &claim, number)?;
    let length_bytes = kernel::capacity_bytes(&claim).map_err(|error| open_failure(path, error, false))?;
    let partitions = block.partitions();
    let inside = partitions.iter().filter_map(|part| Some((part.name.as_str(), part.extent_bytes()?)));
    let whole = (block.name.as_str(), (0, length_bytes));
    let notes = check_signatures(path, &claim, std::iter::once(whole).chain(inside), &permission.signatures)?;
    if kernel::is_read_only(&claim).map_err(failure)? {
        return Err(refused(path, "is read-only (by blockdev --setro or the drive's write protection)"));
    }
    let file = access.options(true).open(path).map_err(failure)?;
    check_same(path, &file, number)?;
    let mut opened = finish(path, file, Some(claim), number, &machine)?;
    opened.notes.extend(notes);
    if Libblkid::here().is_none() {
        opened.notes.push(NO_SECOND_OPINION.to_owned());
    }
    Ok(opened)
}

/// Returns how others use a device; `None` if they do not.
pub(super) fn used_by_others(uses: &Uses, machine: &Machine, block: &Block) -> Option<String> {
    uses.of_device(block).or_else(|| openers::of_devices(machine, &uses.objects_of(block)))
}

fn finish(path: &str, file: File, claim: Option<File>, number: Number, machine: &Machine) -> Result<Opened, LoadError> {
    check_same(path, &file, number)?;
    let failure = |error| open_failure(path, error, false);
    let capacity_bytes = kernel::capacity_bytes(&file).map_err(failure)?;
    let (block_bytes, physical_block_bytes) = kernel::block_bytes(&file).map_err(failure)?;
    let block = machine.block(number).ok();
    // Fallback for kernels that do not report an alignment: the block size, which they require.
    let stated = block.as_ref().and_then(|block| block.disk().attribute_u64("queue/dma_alignment"));
    let memory_align_bytes = kernel::direct_alignment(&file).map(|alignment| alignment.memory_bytes).filter(|&n| n > 0);
    let memory_align_bytes = memory_align_bytes
        .or_else(|| u32::try_from(stated?.checked_add(1)?).ok())
        .filter(|bytes| bytes.is_power_of_two())
        .unwrap_or(block_bytes);
    Ok(Opened {
        file,
        namespace: None,
        _claim: claim,
        capacity_bytes,
        block_bytes,
        physical_block_bytes,
        memory_align_bytes,
        block,
        notes: vec![],
    })
}

/// Returns an error if the path now leads to another device.
fn check_same(path: &str, file: &File, number: Number) -> Result<(), LoadError> {
    let metadata = file.metadata().map_err(|error| open_failure(path, error, false))?;
    if Object::of(&metadata) == Object::Device(number) {
        return Ok(());
    }
    Err(refused(path, "was replaced by another device while it was opened"))
}

/// Returns an error unless the user named the device as one to overwrite, by its kernel name, a path that leads to it,
/// or its serial number.
fn check_named(path: &str, block: &Block, machine: &Machine, destroy: &[String]) -> Result<(), LoadError> {
    let serials = block.serials(machine);
    let names = |device_name: &String| {
        let device_name = device_name.trim();
        // A path counts by its destination; anything else is a name, even if a file of that name exists.
        let leads_here = || {
            device_name.contains('/')
                && fs::metadata(device_name).is_ok_and(|metadata| Object::of(&metadata) == Object::Device(block.number))
        };
        !device_name.is_empty()
            && (device_name == block.name || serials.iter().any(|serial| serial == device_name) || leads_here())
    };
    if destroy.iter().any(names) {
        return Ok(());
    }
    let serial = serials.first().map(|serial| format!(" or by its serial number, {serial}")).unwrap_or_default();
    let mistaken = match destroy {
        [] => String::new(),
        device_name => format!("; --destroy {} names another target", device_name.join(" ")),
    };
    let name = &block.name;
    Err(refused(
        path,
        format!("writing destroys the data on this block device; to allow it, add --destroy {name}{serial}{mistaken}"),
    ))
}

/// Checks the parts of a device (name, start and length) for data that must not be overwritten. Returns an error if a
/// part has a signature that is not in `allowed`, according to headstack's table or libblkid, or if the whole device
/// (the first part) has structured data but no signature in `allowed`. Partitions that the kernel has not read are also
/// checked. Returns further notes.
pub(super) fn check_signatures<'n>(
    path: &str,
    device: &File,
    parts: impl Iterator<Item = (&'n str, (u64, u64))>,
    allowed: &[String],
) -> Result<Vec<String>, LoadError> {
    let unread = |name: &str, error: io::Error| {
        refused(path, format!("not written, since {name} cannot be searched for file systems: {error}"))
    };
    let parts = with_unread_partitions(device, parts).map_err(|error| unread("its partition table", error))?;
    // Name, offset and part of each signature.
    let mut found: Vec<(String, u64, &str)> = Vec::new();
    for (name, (from_bytes, length_bytes)) in &parts {
        for (signature, at_bytes) in carried(device, *from_bytes, *length_bytes).map_err(|error| unread(name, error))? {
            if !found.iter().any(|(known, _, part)| *known == signature && part == name) {
                found.push((signature, at_bytes, name));
            }
        }
    }
    let is_allowed = |name: &str| allowed.iter().any(|allowed| allowed.eq_ignore_ascii_case(name));
    let explains = |name: &str| is_allowed(name) && !Signature::is_table(name);
    let mut sample = Sample::default();
    if let Some((name, (from_bytes, length_bytes))) = parts.first()
        && !found.iter().any(|(name, ..)| explains(name))
    {
        let has_table = found.iter().any(|(name, ..)| Signature::is_table(name));
        let part = Part::new(device, *from_bytes, *length_bytes);
        sample = Sample::take(&part, *length_bytes, has_table).map_err(|error| unread(name, error))?;
    }
    // Pages cached here would hide the device's contents from buffered reads of the measurement. SAFETY: takes only
    // numbers; a failure only affects the speed of such reads.
    unsafe { libc::posix_fadvise(std::os::fd::AsRawFd::as_raw_fd(device), 0, 0, libc::POSIX_FADV_DONTNEED) };
    found.retain(|(name, ..)| !is_allowed(name));
    if found.is_empty() {
        return match sample.refusal(allowed) {
            Some(message) => Err(refused(path, message)),
            None => Ok(sample.note().into_iter().collect()),
        };
    }
    let listed: Vec<String> = found.iter().map(|(name, at, part)| format!("{name} (at byte {at} of {part})")).collect();
    let mut names: Vec<String> = Vec::new();
    for (name, ..) in &found {
        let option = format!("--signature {name}");
        if !names.contains(&option) {
            names.push(option);
        }
    }
    Err(refused(path, format!("carries {}; to overwrite it, add {}", listed.join(", "), names.join(" "))))
}

/// Returns the parts, and the unlisted partitions within them.
fn with_unread_partitions<'n>(
    device: &File,
    parts: impl Iterator<Item = (&'n str, (u64, u64))>,
) -> io::Result<Vec<(String, (u64, u64))>> {
    let mut all: Vec<(String, (u64, u64))> = parts.map(|(name, extent)| (name.to_owned(), extent)).collect();
    for (name, (from_bytes, length_bytes)) in all.clone() {
        for extent in partitions::inside(device, from_bytes, length_bytes)? {
            if !all.iter().any(|(_, known)| *known == extent) {
                all.push((format!("the partition at byte {} of {name}", extent.0 - from_bytes), extent));
            }
        }
    }
    Ok(all)
}

/// Returns the signatures in a part, with name and offset, as found by headstack's table and by libblkid.
fn carried(device: &File, from_bytes: u64, length_bytes: u64) -> io::Result<Vec<(String, u64)>> {
    let ours = probe(device, from_bytes, length_bytes)?;
    let theirs = Libblkid::here().map(|library| library.probe(device, from_bytes, length_bytes)).transpose()?;
    // libblkid may report a boot sector as a partition table. A boot sector that protects a GPT is part of the GPT.
    let is_boot = ours.iter().any(Signature::is_boot_sector);
    let theirs = theirs.unwrap_or_default().into_iter().filter(|one| !(is_boot && one.name == "dos"));
    let all = ours.into_iter().map(|one| (one.name.to_owned(), one.at_bytes));
    let all = all.chain(theirs.map(|one| (one.name, one.at_bytes)));
    Ok(all.map(|(name, at)| (if name == "PMBR" { "gpt".to_owned() } else { name }, at)).collect())
}
