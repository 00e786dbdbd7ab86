//! Opening block devices.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt;

use super::in_use::Uses;
use super::libblkid::Libblkid;
use super::machine::{Block, Machine, Number, Object};
use super::signatures::{Signature, probe};
use super::{Access, Opened, Permission, kernel, open_failure, openers, refused};
use crate::LoadError;

/// What is told where the machine has no libblkid.
pub(super) const NO_SECOND_OPINION: &str =
    "libblkid.so.1 is not on this machine: what the device carried was judged by headstack's own table alone";

/// Opens the block device `number` under the path `path`.
pub(super) fn open(path: &str, number: Number, access: &Access, permission: &Permission) -> Result<Opened, LoadError> {
    let machine = Machine::this();
    let failure = |error| open_failure(path, error, permission.write);
    if !permission.write {
        // Not exclusively: mounted disks are read too.
        let file = access.options(false).open(path).map_err(failure)?;
        return finish(path, file, None, number, &machine);
    }
    let unknown =
        |error| refused(path, format!("sysfs does not tell whether it is in use, so that it is not written: {error}"));
    let block = machine.block(number).map_err(unknown)?;
    check_named(path, &block, &machine, &permission.destroy)?;
    let uses = Uses::of(&machine).map_err(|error| {
        refused(path, format!("what is mounted cannot be read ({error}), so that no device is written"))
    })?;
    let in_use = |used| refused(path, format!("is in use: {used}; it is not written"));
    if let Some(used) = used_by_others(&uses, &machine, &block) {
        return Err(in_use(used));
    }
    // Held until the target is closed: whoever mounts it or makes it part of something meanwhile gets EBUSY. Opened for
    // reading, so that nothing can be written before all is checked.
    let claim = fs::OpenOptions::new().read(true).custom_flags(libc::O_EXCL).open(path).map_err(|error| match error
        .raw_os_error()
    {
        Some(libc::EBUSY) => in_use(
            "somebody holds it exclusively, such as a file system in another namespace, \
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
    check_signatures(path, &claim, std::iter::once(whole).chain(inside), &permission.signatures)?;
    if kernel::is_read_only(&claim).map_err(failure)? {
        return Err(refused(path, "is read-only, set so by blockdev --setro or by the drive's write protection"));
    }
    let file = access.options(true).open(path).map_err(failure)?;
    check_same(path, &file, number)?;
    let mut opened = finish(path, file, Some(claim), number, &machine)?;
    if Libblkid::here().is_none() {
        opened.notes.push(NO_SECOND_OPINION.to_owned());
    }
    Ok(opened)
}

/// What others need a device for, if they do.
pub(super) fn used_by_others(uses: &Uses, machine: &Machine, block: &Block) -> Option<String> {
    uses.of_device(block).or_else(|| openers::of_devices(machine, &uses.objects_of(block)))
}

fn finish(path: &str, file: File, claim: Option<File>, number: Number, machine: &Machine) -> Result<Opened, LoadError> {
    check_same(path, &file, number)?;
    let failure = |error| open_failure(path, error, false);
    let capacity_bytes = kernel::capacity_bytes(&file).map_err(failure)?;
    let (block_bytes, physical_block_bytes) = kernel::block_bytes(&file).map_err(failure)?;
    let block = machine.block(number).ok();
    // Else the block: what kernels want that do not say.
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

/// The path may name another device by now.
fn check_same(path: &str, file: &File, number: Number) -> Result<(), LoadError> {
    let metadata = file.metadata().map_err(|error| open_failure(path, error, false))?;
    if Object::of(&metadata) == Object::Device(number) {
        return Ok(());
    }
    Err(refused(path, "became another device while it was opened"))
}

/// Whoever allows a device to be overwritten names it: by its kernel name, a path that leads to it, or its serial number.
fn check_named(path: &str, block: &Block, machine: &Machine, destroy: &[String]) -> Result<(), LoadError> {
    let serials = block.serials(machine);
    let names = |given: &String| {
        let given = given.trim();
        // A path counts by what it leads to; anything else is a name, wherever a file of that name may be.
        let leads_here = || {
            given.contains('/')
                && fs::metadata(given).is_ok_and(|metadata| Object::of(&metadata) == Object::Device(block.number))
        };
        !given.is_empty() && (given == block.name || serials.iter().any(|serial| serial == given) || leads_here())
    };
    if destroy.iter().any(names) {
        return Ok(());
    }
    let serial = serials.first().map(|serial| format!(" or by its serial number, {serial}")).unwrap_or_default();
    let mistaken = match destroy {
        [] => String::new(),
        given => format!("; --destroy {} names something else", given.join(" ")),
    };
    let name = &block.name;
    Err(refused(
        path,
        format!("writing destroys what is on this block device: allow it by --destroy {name}{serial}{mistaken}"),
    ))
}

/// Fails where one of a device's parts, each with its name, begin and length, carries what `allowed` does not name, by our
/// own table or by libblkid's.
pub(super) fn check_signatures<'n>(
    path: &str,
    device: &File,
    parts: impl Iterator<Item = (&'n str, (u64, u64))>,
    allowed: &[String],
) -> Result<(), LoadError> {
    // Names, where each is, and of which device.
    let mut found: Vec<(String, u64, &str)> = Vec::new();
    for (name, (from_bytes, length_bytes)) in parts {
        let unread = |error: io::Error| {
            refused(path, format!("{name} cannot be searched for file systems ({error}), so that it is not written"))
        };
        let ours = probe(device, from_bytes, length_bytes).map_err(unread)?;
        let theirs = Libblkid::here().map(|library| library.probe(device, from_bytes, length_bytes)).transpose();
        let theirs = theirs.map_err(unread)?.unwrap_or_default();
        // Which it may take for a partition table; where one protects a GPT, it is a part of that.
        let is_boot = ours.iter().any(Signature::is_boot_sector);
        let all = ours.into_iter().map(|one| (one.name.to_owned(), one.at_bytes));
        let theirs = theirs.into_iter().filter(|one| !(is_boot && one.name == "dos"));
        for (signature, at_bytes) in all.chain(theirs.map(|one| (one.name, one.at_bytes))) {
            let signature = if signature == "PMBR" { "gpt".to_owned() } else { signature };
            if !found.iter().any(|(known, _, part)| *known == signature && *part == name) {
                found.push((signature, at_bytes, name));
            }
        }
    }
    found.retain(|(name, ..)| !allowed.iter().any(|allowed| allowed.eq_ignore_ascii_case(name)));
    // Pages read here would hide what is on the device from buffered reads of the measurement.
    // SAFETY: takes numbers only; that it may fail changes nothing but the speed of such reads.
    unsafe { libc::posix_fadvise(std::os::fd::AsRawFd::as_raw_fd(device), 0, 0, libc::POSIX_FADV_DONTNEED) };
    if found.is_empty() {
        return Ok(());
    }
    let listed: Vec<String> = found.iter().map(|(name, at, part)| format!("{name} (at byte {at} of {part})")).collect();
    let mut names: Vec<String> = Vec::new();
    for (name, ..) in &found {
        let option = format!("--signature {name}");
        if !names.contains(&option) {
            names.push(option);
        }
    }
    Err(refused(path, format!("carries {}: allow that to be overwritten by {}", listed.join(", "), names.join(" "))))
}
