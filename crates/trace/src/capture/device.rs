//! [`BlockDevice`]: the block device to capture: by path, name or number, whole or a partition.

use std::fs;
use std::ops::Range;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::error::TraceError;
use crate::meta::DeviceMeta;

/// Sector size of the kernel's counters and records, for any device.
const SECTOR_BYTES: u64 = 512;

/// A block device of this machine.
#[derive(Clone, Debug)]
pub(super) struct BlockDevice {
    /// Kernel name: `sda`, `sda1`, `loop0`.
    pub(super) name: String,
    /// Device number: major << 20 | minor.
    pub(super) number: u32,
    /// All numbers that its requests carry: its own, its partitions', or that of the disk it is a partition of.
    pub(super) numbers: Vec<u32>,
    /// Range on its disk, in sectors of 512 bytes; the kernel's records count from the start of the disk.
    pub(super) sectors: Range<u64>,
    /// Whether it is a partition.
    pub(super) is_partition: bool,
    /// Folder in sysfs.
    folder: PathBuf,
}

impl BlockDevice {
    /// Finds the device of a user's text: `/dev/sda`, `sda`, `sda1`, `8:0`.
    ///
    /// # Errors
    /// When it is not a block device.
    pub(super) fn find(text: &str) -> Result<BlockDevice, TraceError> {
        let refused = |message: &str| TraceError::of_file(text, message);
        let link = match number_of(text) {
            Some((major, minor)) => PathBuf::from(format!("/sys/dev/block/{major}:{minor}")),
            None if text.contains('/') => {
                let metadata = fs::metadata(text).map_err(|error| refused(&error.to_string()))?;
                if !metadata.file_type().is_block_device() {
                    return Err(refused("is not a block device; /dev/NAME, NAME or MAJOR:MINOR is allowed"));
                }
                PathBuf::from(format!(
                    "/sys/dev/block/{}:{}",
                    libc::major(metadata.rdev()),
                    libc::minor(metadata.rdev())
                ))
            }
            None => PathBuf::from("/sys/class/block").join(text),
        };
        let folder = fs::canonicalize(link)
            .ok()
            .filter(|folder| !text.is_empty() && folder.join("dev").is_file())
            .ok_or_else(|| refused("no such block device; /dev/NAME, NAME or MAJOR:MINOR is allowed"))?;
        BlockDevice::at(folder).ok_or_else(|| refused("sysfs does not describe this device"))
    }

    fn at(folder: PathBuf) -> Option<BlockDevice> {
        let number = device_number(&folder)?;
        let is_partition = folder.join("partition").exists();
        let start = if is_partition { attribute(&folder, "start")?.parse().ok()? } else { 0 };
        let length: u64 = attribute(&folder, "size")?.parse().ok()?;
        let others = if is_partition {
            vec![device_number(folder.parent()?)?]
        } else {
            let entries = fs::read_dir(&folder).ok()?;
            let folders = entries.filter_map(|entry| Some(entry.ok()?.path()));
            folders.filter(|path| path.join("partition").exists()).filter_map(|path| device_number(&path)).collect()
        };
        Some(BlockDevice {
            name: folder.file_name()?.to_string_lossy().replace('!', "/"),
            number,
            numbers: std::iter::once(number).chain(others).collect(),
            sectors: start..start.checked_add(length)?,
            is_partition,
            folder,
        })
    }

    /// Folder of its block tracer controls, if the kernel has one.
    pub(super) fn trace_folder(&self) -> PathBuf {
        self.folder.join("trace")
    }

    /// Metadata of the device for the trace.
    pub(super) fn meta(&self) -> DeviceMeta {
        let disk = if self.is_partition { self.folder.parent().unwrap_or(&self.folder) } else { &self.folder };
        let length = self.sectors.end - self.sectors.start;
        DeviceMeta {
            name: self.name.clone(),
            capacity_bytes: length.checked_mul(SECTOR_BYTES).filter(|&bytes| bytes > 0),
            sector_bytes: attribute(disk, "queue/logical_block_size").and_then(|text| text.parse().ok()),
            model: attribute(disk, "device/model").filter(|model| !model.is_empty()),
        }
    }
}

/// Parses `8:0`.
fn number_of(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Twelve bits of major and twenty of minor, as the kernel packs them.
fn device_number(folder: &Path) -> Option<u32> {
    let (major, minor) = number_of(&attribute(folder, "dev")?)?;
    (major < 1 << 12 && minor < 1 << 20).then_some(major << 20 | minor)
}

fn attribute(folder: &Path, name: &str) -> Option<String> {
    Some(fs::read_to_string(folder.join(name)).ok()?.trim().to_owned())
}
