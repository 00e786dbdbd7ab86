//! [`Machine`]: what the kernel reports about block devices: numbers, partitions, and which devices are built on which.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::kernel;
use super::object::{Number, Object};

/// Directories with the kernel's information: `/proc`, `/sys`, and the device nodes.
#[derive(Clone, Debug)]
pub(super) struct Machine {
    pub proc: PathBuf,
    pub sys: PathBuf,
    pub dev: PathBuf,
    pub run: PathBuf,
}

impl Machine {
    /// Returns the machine that this program runs on.
    pub(super) fn this() -> Machine {
        Machine { proc: "/proc".into(), sys: "/sys".into(), dev: "/dev".into(), run: "/run".into() }
    }

    /// Returns the block device with this number.
    ///
    /// # Errors
    /// Returns an error if sysfs does not list the device, or is not mounted.
    pub(super) fn block(&self, number: Number) -> io::Result<Block> {
        let directory = fs::canonicalize(self.sys.join("dev/block").join(number.to_string()))?;
        let name = name_of(&directory);
        Ok(Block { number, name, directory })
    }

    /// Returns the block device with this kernel name.
    pub(super) fn block_named(&self, name: &str) -> Option<Block> {
        let directory = fs::canonicalize(self.sys.join("class/block").join(name)).ok()?;
        Block::at(directory)
    }

    /// Returns the name of the NVMe namespace whose character device has this number, such as `ng0n1`, and the block
    /// device with the same contents, if there is one. Both are in the sysfs directory of their controller, or of their
    /// subsystem if several controllers lead to it.
    pub(super) fn namespace(&self, number: Number) -> Option<(String, Option<Block>)> {
        let directory = fs::canonicalize(self.sys.join("dev/char").join(number.to_string())).ok()?;
        let name = name_of(&directory);
        let block = format!("nvme{}", name.strip_prefix("ng")?);
        let block = Block::at(directory.parent()?.join(block));
        Some((name, block))
    }

    /// Returns all block devices.
    pub(super) fn blocks(&self) -> io::Result<Vec<Block>> {
        let numbers = fs::read_dir(self.sys.join("dev/block"))?;
        // Ignores a device that vanishes between the listing and this access.
        Ok(numbers
            .filter_map(|entry| Number::parse(&entry.ok()?.file_name().to_string_lossy()))
            .filter_map(|number| self.block(number).ok())
            .collect())
    }

    /// Returns the number of the device at a path, as seen by another process. If the node is not visible from here,
    /// the kernel name is used.
    pub(super) fn number_of(&self, source: &str, process: &Path) -> Option<Number> {
        let seen = process.join("root").join(source.trim_start_matches('/'));
        for path in [seen, PathBuf::from(source)] {
            if let Ok(metadata) = fs::metadata(path)
                && let Object::Device(number) = Object::of(&metadata)
            {
                return Some(number);
            }
        }
        self.block_named(&name_of(Path::new(source))).map(|block| block.number)
    }

    /// Returns the object behind a loop device: by the kernel's numbers if this user may query them, otherwise by the
    /// path in sysfs.
    pub(super) fn backing(&self, block: &Block) -> Option<Object> {
        let path = block.attribute("loop/backing_file")?;
        let backing = File::open(self.dev.join(&block.name)).and_then(|device| kernel::loop_backing(&device));
        match backing {
            Ok((_, _, raw)) if raw != 0 => Some(Object::Device(Number::from_raw(raw))),
            Ok((device, inode, _)) => Some(Object::File { device, inode }),
            Err(_) => fs::metadata(path).ok().map(|metadata| Object::of(&metadata)),
        }
    }

    /// Returns the `/proc` directories of all processes.
    pub(super) fn processes(&self) -> Vec<PathBuf> {
        let is_process =
            |path: &PathBuf| path.file_name().is_some_and(|name| name.as_encoded_bytes()[0].is_ascii_digit());
        list(&self.proc).into_iter().filter(is_process).collect()
    }

    /// Returns a property that udev stores for a device, such as `ID_SERIAL`.
    pub(super) fn udev_property(&self, number: Number, key: &str) -> Option<String> {
        let text = fs::read_to_string(self.run.join(format!("udev/data/b{number}"))).ok()?;
        let value = text.lines().find_map(|line| line.strip_prefix("E:")?.strip_prefix(key)?.strip_prefix('='))?;
        Some(value.to_owned())
    }
}

/// Returns the entries of a directory; none if it does not exist.
pub(super) fn list(directory: &Path) -> Vec<PathBuf> {
    fs::read_dir(directory).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path())).collect()
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// A block device in sysfs: a disk, a partition, a mapping.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub number: Number,
    /// The kernel's name, such as `sda1`.
    pub name: String,
    directory: PathBuf,
}

impl Block {
    fn at(directory: PathBuf) -> Option<Block> {
        let number = Number::parse(&fs::read_to_string(directory.join("dev")).ok()?)?;
        Some(Block { number, name: name_of(&directory), directory })
    }

    /// Returns an attribute, such as `queue/scheduler`, without surrounding white space; `None` if it is missing or
    /// empty.
    pub(super) fn attribute(&self, name: &str) -> Option<String> {
        let text = fs::read_to_string(self.directory.join(name)).ok()?;
        let text = text.trim_matches(|c: char| c.is_whitespace() || c.is_control());
        (!text.is_empty()).then(|| text.to_owned())
    }

    pub(super) fn attribute_u64(&self, name: &str) -> Option<u64> {
        self.attribute(name)?.parse().ok()
    }

    /// Returns the partitions of the device.
    pub(super) fn partitions(&self) -> Vec<Block> {
        let Ok(entries) = fs::read_dir(&self.directory) else { return Vec::new() };
        let directories = entries.filter_map(|entry| Some(entry.ok()?.path()));
        directories.filter(|path| path.join("partition").exists()).filter_map(Block::at).collect()
    }

    /// Returns the character device of an NVMe namespace, whose commands bypass the block device.
    pub(super) fn generic(&self) -> Option<Number> {
        let name = format!("ng{}", self.name.strip_prefix("nvme")?);
        Number::parse(&fs::read_to_string(self.directory.parent()?.join(name).join("dev")).ok()?)
    }

    /// Returns start and length of a partition on its disk, in bytes. sysfs counts in units of 512 bytes for any block
    /// size.
    pub(super) fn extent_bytes(&self) -> Option<(u64, u64)> {
        Some((self.attribute_u64("start")?.checked_mul(512)?, self.attribute_u64("size")?.checked_mul(512)?))
    }

    /// Returns the disk that contains a partition.
    pub(super) fn parent(&self) -> Option<Block> {
        self.directory.join("partition").exists().then(|| Block::at(self.directory.parent()?.to_owned())).flatten()
    }

    /// Returns the disk whose queue serves the device.
    pub(super) fn disk(&self) -> Block {
        self.parent().unwrap_or_else(|| self.clone())
    }

    /// Returns whether sysfs still lists the device under the same number.
    pub(super) fn is_present(&self) -> bool {
        Block::at(self.directory.clone()).is_some_and(|block| block.number == self.number)
    }

    /// Returns the devices built on this device: mappings, arrays, caches.
    pub(super) fn holders(&self) -> Vec<Block> {
        self.linked("holders")
    }

    /// Returns the devices that this device consists of.
    pub(super) fn slaves(&self) -> Vec<Block> {
        self.linked("slaves")
    }

    fn linked(&self, kind: &str) -> Vec<Block> {
        let Ok(entries) = fs::read_dir(self.directory.join(kind)) else { return Vec::new() };
        let mut blocks: Vec<Block> =
            entries.filter_map(|entry| Block::at(fs::canonicalize(entry.ok()?.path()).ok()?)).collect();
        blocks.sort_by_key(|block| block.number);
        blocks
    }

    /// Returns the serial numbers and world wide names that identify exactly this device, the simplest first.
    pub(super) fn serials(&self, machine: &Machine) -> Vec<String> {
        // For a partition, udev and sysfs report the serial number of the disk, which identifies the whole disk.
        if self.parent().is_some() {
            return Vec::new();
        }
        // Page 80h of a SCSI disk: four bytes of header, then the serial number.
        let page = fs::read(self.directory.join("device/vpd_pg80")).ok();
        let page = page.map(|page| String::from_utf8_lossy(page.get(4..).unwrap_or_default()).trim().to_owned());
        let attributes = ["serial", "device/serial", "wwid", "device/wwid", "device/cid", "dm/name", "dm/uuid"];
        let properties = ["ID_SERIAL_SHORT", "ID_SERIAL", "ID_WWN", "ID_WWN_WITH_EXTENSION", "ID_SCSI_SERIAL"];
        let mut candidates: Vec<String> =
            attributes.iter().filter_map(|name| self.attribute(name)).chain(page).collect();
        candidates.extend(properties.iter().filter_map(|key| machine.udev_property(self.number, key)));
        let mut serials: Vec<String> = Vec::new();
        for serial in candidates.into_iter().filter(|serial| !serial.is_empty()) {
            if !serials.contains(&serial) {
                serials.push(serial);
            }
        }
        serials
    }
}
