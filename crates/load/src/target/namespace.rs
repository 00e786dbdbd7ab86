//! Opens NVMe namespaces through their character devices. A namespace has the same contents as its block device, so the
//! same checks precede writing. A namespace without a block device can only be read, since its users cannot be
//! determined.

use std::fs::{File, OpenOptions};
use std::sync::Arc;

use headstack_jobfiles::Sync;

use super::machine::{Block, Machine};
use super::object::Number;
use super::refusals::{open_failure, refused};
use super::{Access, Opened, Permission, device, kernel};
use crate::LoadError;
use crate::nvme::Namespace;

/// Memory alignment that NVMe drives require, in bytes: a dword.
const MEMORY_ALIGN_BYTES: u32 = 4;

/// An open namespace, with the cleanup for when it is closed.
pub(super) struct OpenNamespace {
    pub namespace: Arc<Namespace>,
    _past: Option<UncachedBlockDevice>,
}

/// Block device of a namespace that is written directly. Its page cache is emptied on drop.
struct UncachedBlockDevice(File);

impl Drop for UncachedBlockDevice {
    fn drop(&mut self) {
        // After this, reads of the block device see the new contents. A vanished device has no cache.
        let _ = kernel::forget_device(&self.0);
    }
}

/// Opens the namespace whose character device is `number`, at the path `path`.
pub(super) fn open(path: &str, number: Number, access: &Access, permission: &Permission) -> Result<Opened, LoadError> {
    let machine = Machine::this();
    let failure = |error| open_failure(path, error, permission.write);
    let Some((name, block)) = machine.namespace(number) else {
        let message = "is a character device; a file, block device or NVMe namespace (/dev/ng0n1) is required";
        return Err(refused(path, message));
    };
    let mut opened = match &block {
        Some(block) => Some(beside(path, &name, block, &machine, access, permission)?),
        None if permission.write => {
            let message = format!("has no block device nvme{} to check for users; it can only be read", &name[2..]);
            return Err(refused(path, message));
        }
        None => None,
    };
    let file = OpenOptions::new().read(true).write(permission.write).open(path).map_err(failure)?;
    let kept = file.try_clone().map_err(failure)?;
    let namespace = Namespace::new(file, access.sync != Sync::No).map_err(|message| refused(path, message))?;
    if let Some(block) = &block {
        check_same(path, block, &namespace, opened.as_ref().map_or(0, |opened| opened.capacity_bytes))?;
    }
    let namespace = namespace.with_longest(block.as_ref().and_then(longest_bytes).unwrap_or(u32::MAX));
    let past = match &opened {
        Some(opened) if permission.write => {
            // Dirty cached pages would sooner or later overwrite the measured data.
            kernel::forget_device(&opened.file).map_err(failure)?;
            Some(UncachedBlockDevice(opened.file.try_clone().map_err(failure)?))
        }
        _ => None,
    };
    let geometry = *namespace.geometry();
    let block_bytes = 1 << geometry.block_shift;
    let open = OpenNamespace { namespace: Arc::new(namespace), _past: past };
    Ok(Opened {
        capacity_bytes: geometry.capacity_bytes,
        block_bytes,
        physical_block_bytes: opened.as_ref().map_or(block_bytes, |opened| opened.physical_block_bytes),
        memory_align_bytes: MEMORY_ALIGN_BYTES,
        namespace: Some(open),
        _claim: opened.as_mut().and_then(|opened| opened._claim.take()),
        notes: opened.as_mut().map(|opened| std::mem::take(&mut opened.notes)).unwrap_or_default(),
        file: opened.map_or(kept, |opened| opened.file),
        block,
    })
}

/// Opens the block device with the same contents, with all checks that precede writing a device. A user who names the
/// namespace as one to overwrite also names the block device.
fn beside(
    path: &str,
    name: &str,
    block: &Block,
    machine: &Machine,
    access: &Access,
    permission: &Permission,
) -> Result<Opened, LoadError> {
    let mut permission = permission.clone();
    let named = |signature_name: &String| signature_name.trim() == name || signature_name.trim() == path;
    if permission.destroy.iter().any(named) {
        permission.destroy.push(block.name.clone());
    }
    let node = machine.dev.join(&block.name);
    let access = Access { direct: true, ..*access };
    device::open(&node.to_string_lossy(), block.number, &access, &permission).map_err(|error| match error {
        LoadError::Target { target, message } => refused(path, format!("its block device {target} {message}")),
        other => other,
    })
}

/// Checks, by number and size, that the two devices that sysfs lists together are the same namespace.
fn check_same(path: &str, block: &Block, namespace: &Namespace, block_capacity_bytes: u64) -> Result<(), LoadError> {
    let geometry = namespace.geometry();
    let number = block.attribute_u64("nsid");
    if number.is_some_and(|number| number != u64::from(geometry.namespace)) {
        let message = format!("is namespace {}, but its block device {} is another", geometry.namespace, block.name);
        return Err(refused(path, message));
    }
    if geometry.capacity_bytes != block_capacity_bytes {
        let message = format!(
            "has {} bytes, but its block device {} has {block_capacity_bytes}: rescan the namespace, whose size \
             changed",
            geometry.capacity_bytes, block.name
        );
        return Err(refused(path, message));
    }
    Ok(())
}

/// Returns the maximum command that the kernel passes on, in bytes: the limit of its driver for memory without adjacent
/// pages.
fn longest_bytes(block: &Block) -> Option<u32> {
    let disk = block.disk();
    let by_length = disk.attribute_u64("queue/max_hw_sectors_kb")?.saturating_mul(1024);
    let by_pages = disk.attribute_u64("queue/max_segments")?.saturating_mul(4096);
    u32::try_from(by_length.min(by_pages)).ok()
}
