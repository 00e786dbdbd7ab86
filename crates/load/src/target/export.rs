//! Opens exports of NBD servers.
//!
//! Only the server knows who else uses the data of an export; this machine cannot find out. Only the signatures in the
//! export are checked.

use std::fs::File;
use std::io;
use std::os::fd::FromRawFd;
use std::os::unix::fs::FileExt;

use headstack_jobfiles::Sync;
use headstack_workload::{Kind, Request};
use serde_json::{Value, json};

use super::libblkid::Libblkid;
use super::refusals::refused;
use super::{Permission, contents, device, kernel, superblocks};
use crate::LoadError;
use crate::nbd::Export;
use crate::newer_calls;

const MIB: u64 = 1 << 20;

/// Ranges near the start that are searched for signatures, including the copies of ext4 and btrfs. Copies of XFS and
/// the sampled blocks are read separately.
const LOOKED_AT: [(u64, u64); 6] =
    [(0, 9 * MIB), (32 * MIB, MIB), (64 * MIB, MIB), (128 * MIB, MIB), (32 << 30, MIB), (256 << 30, MIB)];
/// Number of bytes at the end that are searched too.
const END_BYTES: u64 = 4 * MIB;

/// Opens the export `name`. Returns it with notes that qualify its results.
pub(super) fn open(
    name: &str,
    is_durable: bool,
    permission: &Permission,
    connections: u32,
) -> Result<(Export, Vec<String>), LoadError> {
    if permission.create_bytes.is_some() {
        return Err(refused(name, "is an NBD export of fixed size; omit --create"));
    }
    let export = Export::open(name, permission.write, is_durable, connections)?;
    if export.terms().capacity_bytes == 0 {
        return Err(refused(name, "has a size of 0"));
    }
    let mut notes = Vec::new();
    if permission.write {
        if !permission.destroy.iter().any(|given| export.is_named(given)) {
            let mistaken = match &permission.destroy[..] {
                [] => String::new(),
                given => format!("; --destroy {} names another target", given.join(" ")),
            };
            let message =
                format!("writing destroys the data in this export; to allow it, add --destroy '{name}'{mistaken}");
            return Err(refused(name, message));
        }
        let unread =
            |error| refused(name, format!("not written, since it cannot be searched for file systems: {error}"));
        let image = image(&export).map_err(unread)?;
        let whole = ("the export", (0, export.terms().capacity_bytes));
        notes.extend(device::check_signatures(name, &image, std::iter::once(whole), &permission.signatures)?);
        if Libblkid::here().is_none() {
            notes.push(device::NO_SECOND_OPINION.to_owned());
        }
    }
    Ok((export, notes))
}

/// Copies the ranges that may have signatures into a sparse file of the same size.
fn image(export: &Export) -> io::Result<File> {
    // SAFETY: the name is a C string, and the file takes ownership of the descriptor.
    let fd = unsafe { newer_calls::memfd_create(c"an export".as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: as above.
    let file = unsafe { File::from_raw_fd(fd) };
    let terms = export.terms();
    let unit = u64::from(terms.minimum_bytes);
    let capacity_bytes = terms.capacity_bytes / unit * unit;
    file.set_len(capacity_bytes)?;
    let step = MIB.min(u64::from(terms.maximum_bytes) / unit * unit).max(unit);
    let end = (capacity_bytes.saturating_sub(END_BYTES) / unit * unit, END_BYTES + unit);
    let mut buffer = vec![0; step as usize];
    let copies = superblocks::xfs_windows(capacity_bytes).map(|at| (at, superblocks::XFS_WINDOW_BYTES));
    let sampled = contents::places(capacity_bytes).map(|at| (at, contents::BLOCK_BYTES));
    let is_known = |at: u64| at < LOOKED_AT[0].1 || at >= end.0;
    let others = copies.chain(sampled).filter(|&(at, _)| !is_known(at));
    // Requests must begin and end at multiples of the server's block size.
    let others = others.map(|(at, length)| (at / unit * unit, length.next_multiple_of(unit) + unit));
    for (from, length) in LOOKED_AT.into_iter().chain(others).chain([end]) {
        let until = (from + length).min(capacity_bytes);
        for offset_bytes in (from..until).step_by(step as usize) {
            let length_bytes = step.min(until - offset_bytes) as u32;
            let kind = Kind::Read;
            let read = Request { kind, offset_bytes, length_bytes, force_unit_access: false, ordered: false };
            let result = export.carry_out(&read, &mut buffer);
            match u32::try_from(result) {
                Ok(bytes) if bytes == length_bytes => {}
                Ok(_) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Err(_) => return Err(io::Error::from_raw_os_error(-result)),
            }
            file.write_all_at(&buffer[..length_bytes as usize], offset_bytes)?;
        }
    }
    Ok(file)
}

/// Returns the properties of the export that affect its results.
pub(super) fn describe(name: &str, export: &Export, sync: Sync, write: bool, notes: &[String]) -> Value {
    let terms = export.terms();
    let mut description = json!({
        "path": name,
        "kind": super::TargetKind::Export.name(),
        "capacity_bytes": terms.capacity_bytes,
        "block_bytes": terms.minimum_bytes,
        "physical_block_bytes": terms.preferred_bytes,
        "memory_align_bytes": 1,
        "direct": true,
        "sync": sync,
        "written": write,
        "kernel": kernel::release(),
        "export": export.describe(),
    });
    if !notes.is_empty() {
        description["notes"] = json!(notes);
    }
    description
}
