//! [`Uses`]: whether a device or file is in use, that is mounted, used as swap, exported, part of another device, or
//! backing one.
//!
//! Devices and inodes are compared by number, never by name. This finds mounts through links, in other mount
//! namespaces, and below mappings, arrays and loop devices.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::machine::{Block, Machine, list};
use super::object::{Number, Object};

/// A mounted file system.
struct Mount {
    /// The devices below the file system, as far as known.
    devices: Vec<Number>,
    at: String,
}

/// A loop device and the object behind it.
struct LoopDevice {
    block: Block,
    backing: Object,
}

/// Devices in use on a machine.
pub(super) struct Uses<'a> {
    machine: &'a Machine,
    mounts: Vec<Mount>,
    swaps: Vec<Object>,
    loops: Vec<LoopDevice>,
    /// Members of mounted btrfs file systems; the mount table names only one member.
    btrfs: Vec<Number>,
    /// Devices and files that the kernel's NVMe target exports; it does not hold them exclusively.
    exported: Vec<Object>,
}

impl Uses<'_> {
    /// Collects the uses of a machine's devices.
    ///
    /// # Errors
    /// Returns an error if mounts, swaps or devices cannot be read, since then no device is known to be free.
    pub(super) fn of(machine: &Machine) -> io::Result<Uses<'_>> {
        let loops = machine.blocks()?.into_iter().filter_map(|block| {
            let backing = machine.backing(&block)?;
            Some(LoopDevice { block, backing })
        });
        let loops = loops.collect();
        let (mounts, swaps) = (mounts(machine)?, swaps(machine)?);
        let (btrfs, exported) = (btrfs_members(machine), exported(machine));
        Ok(Uses { machine, mounts, swaps, loops, btrfs, exported })
    }

    /// Returns how a block device is in use; `None` if it is not. This includes its partitions, devices built on it,
    /// the disk that contains it, and the devices that it consists of.
    pub(super) fn of_device(&self, block: &Block) -> Option<String> {
        self.around(block, &mut BTreeSet::new())
    }

    /// Returns a device and everything on it or behind it. Writing any of these changes the data of the device.
    pub(super) fn objects_of(&self, block: &Block) -> Vec<Object> {
        let mut backing_objects = Vec::new();
        self.collect(block, &mut backing_objects);
        for part in block.partitions() {
            backing_objects.push(Object::Device(part.number));
        }
        backing_objects
    }

    fn collect(&self, block: &Block, backing_objects: &mut Vec<Object>) {
        if backing_objects.contains(&Object::Device(block.number)) {
            return;
        }
        backing_objects.push(Object::Device(block.number));
        backing_objects.extend(block.generic().map(Object::CharacterDevice));
        block.slaves().iter().chain(&block.parent()).for_each(|below| self.collect(below, backing_objects));
        for backing in self.loops.iter().filter(|one| one.block.number == block.number).map(|one| one.backing) {
            match backing {
                Object::Device(number) => {
                    if let Ok(below) = self.machine.block(number) {
                        self.collect(&below, backing_objects);
                    }
                }
                Object::CharacterDevice(_) | Object::File { .. } => backing_objects.push(backing),
            }
        }
    }

    /// Returns how a file is in use: as swap, exported, or behind a loop device; `None` if it is not.
    pub(super) fn of_file(&self, file: Object) -> Option<String> {
        if self.swaps.contains(&file) {
            return Some("is used as swap".into());
        }
        if self.exported.contains(&file) {
            return Some("is exported over NVMe".into());
        }
        let backing_objects = self.loops.iter().find(|one| one.backing == file)?;
        let further = self.above(&backing_objects.block, &mut BTreeSet::new());
        Some(format!("is behind {}{}", backing_objects.block.name, and(further)))
    }

    fn around(&self, block: &Block, seen: &mut BTreeSet<Number>) -> Option<String> {
        let whole =
            || block.parent().and_then(|disk| self.uses_without_partitions(&disk, &mut BTreeSet::from([block.number])));
        self.above(block, seen).or_else(whole).or_else(|| self.below(block, seen))
    }

    /// Returns the use of a device, its partitions, or anything built on them.
    fn above(&self, block: &Block, seen: &mut BTreeSet<Number>) -> Option<String> {
        self.uses_without_partitions(block, seen)
            .or_else(|| block.partitions().iter().find_map(|partition| self.uses_without_partitions(partition, seen)))
    }

    /// Returns the use of a device without its partitions.
    fn uses_without_partitions(&self, block: &Block, seen: &mut BTreeSet<Number>) -> Option<String> {
        if !seen.insert(block.number) {
            return None;
        }
        let name = &block.name;
        if let Some(used) = self.directly(block.number) {
            return Some(format!("{name} {used}"));
        }
        let backed = self.loops.iter().filter(|one| one.backing == Object::Device(block.number));
        let mut holders = block.holders();
        holders.extend(backed.map(|one| one.block.clone()));
        let holder = holders.into_iter().find(|holder| !seen.contains(&holder.number))?;
        let further = self.above(&holder, seen);
        Some(format!("{name} is held by {}{}", holder.name, and(further)))
    }

    /// Returns the use of the devices that a device consists of, except by the device itself.
    fn below(&self, block: &Block, seen: &mut BTreeSet<Number>) -> Option<String> {
        for slave in block.slaves() {
            if let Some(used) = self.directly(slave.number) {
                return Some(format!("{} is on {}, which {used}", block.name, slave.name));
            }
            if seen.insert(slave.number)
                && let Some(used) = self.below(&slave, seen)
            {
                return Some(used);
            }
        }
        match self.loops.iter().find(|one| one.block.number == block.number)?.backing {
            Object::Device(number) => self.around(&self.machine.block(number).ok()?, seen),
            file => {
                let other = self.loops.iter().find(|one| one.backing == file && one.block.number != block.number);
                let swapped = self.swaps.contains(&file).then(|| "that is used as swap".to_owned());
                let used = swapped.or_else(|| Some(format!("that also backs {}", other?.block.name)))?;
                Some(format!("{} is on a file {used}", block.name))
            }
        }
    }

    fn directly(&self, number: Number) -> Option<String> {
        let mut on_it = self.mounts.iter().filter(|mount| mount.devices.contains(&number));
        if on_it.clone().any(|mount| mount.at == "/") {
            return Some("holds the root file system".into());
        }
        if let Some(mount) = on_it.next() {
            return Some(format!("is mounted at {}", mount.at));
        }
        if self.swaps.contains(&Object::Device(number)) {
            return Some("is used as swap".into());
        }
        if self.exported.contains(&Object::Device(number)) {
            return Some("is exported over NVMe".into());
        }
        self.btrfs.contains(&number).then(|| "is part of a mounted btrfs".into())
    }
}

fn and(further: Option<String>) -> String {
    further.map(|used| format!("; {used}")).unwrap_or_default()
}

/// Returns the mounts of all namespaces that can be read.
fn mounts(machine: &Machine) -> io::Result<Vec<Mount>> {
    // If the root directory is not a mount point, as under chroot, its device can only be found this way.
    let root = Number::from_raw(fs::metadata(machine.proc.join("self/root"))?.dev());
    let tables = mount_tables(machine)?;
    let mut mounts: Vec<Mount> =
        tables.iter().flat_map(|(process, text)| parse_mounts(machine, process, text)).collect();
    mounts.push(Mount { devices: vec![root], at: "/".into() });
    Ok(mounts)
}

/// Returns the mount table of each readable namespace, with a process in it. This process's own namespace is first.
pub(super) fn mount_tables(machine: &Machine) -> io::Result<Vec<(PathBuf, String)>> {
    let own = machine.proc.join("self");
    let text = fs::read_to_string(own.join("mountinfo"))?;
    let mut namespaces: BTreeSet<PathBuf> = fs::read_link(own.join("ns/mnt")).into_iter().collect();
    let mut tables = vec![(own, text)];
    for process in machine.processes() {
        // Skips a process that has ended or cannot be read.
        let known = fs::read_link(process.join("ns/mnt")).is_ok_and(|namespace| !namespaces.insert(namespace));
        if !known && let Ok(text) = fs::read_to_string(process.join("mountinfo")) {
            tables.push((process, text));
        }
    }
    Ok(tables)
}

/// Parses the lines of proc(5)'s mountinfo: `36 35 98:0 /root /at options optional - type source superblock-options`.
fn parse_mounts(machine: &Machine, process: &Path, text: &str) -> Vec<Mount> {
    let parse = |line: &str| {
        let (mount, system) = line.split_once(" - ")?;
        let mut fields = mount.split(' ');
        let number = Number::parse(fields.nth(2)?)?;
        let at = unescape(fields.nth(1)?);
        let source = unescape(system.split(' ').nth(1)?);
        let mut devices = vec![number];
        // Device numbers with major 0 are artificial: btrfs, bcachefs and others have no single device. The visible
        // layers of an overlay are on mounts that are visible here too.
        if number.major == 0 {
            let sources = source.split(':').filter(|source| source.starts_with('/'));
            devices.extend(sources.filter_map(|source| machine.number_of(source, process)));
        }
        Some(Mount { devices, at })
    };
    text.lines().filter_map(parse).collect()
}

fn swaps(machine: &Machine) -> io::Result<Vec<Object>> {
    let text = match fs::read_to_string(machine.proc.join("swaps")) {
        // The kernel has no swap support.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        text => text?,
    };
    let paths = text.lines().skip(1).filter_map(|line| Some(unescape(line.split_ascii_whitespace().next()?)));
    let object = |path: String| {
        let node = fs::metadata(&path).ok().map(|metadata| Object::of(&metadata));
        let named = || machine.number_of(&path, &machine.proc.join("self")).map(Object::Device);
        node.or_else(named)
    };
    Ok(paths.filter_map(object).collect())
}

fn btrfs_members(machine: &Machine) -> Vec<Number> {
    list(&machine.sys.join("fs/btrfs"))
        .into_iter()
        .flat_map(|system| list(&system.join("devices")))
        .filter_map(|device| Number::parse(&fs::read_to_string(device.join("dev")).ok()?))
        .collect()
}

fn exported(machine: &Machine) -> Vec<Object> {
    list(&machine.sys.join("kernel/config/nvmet/subsystems"))
        .into_iter()
        .flat_map(|subsystem| list(&subsystem.join("namespaces")))
        .filter(|namespace| fs::read_to_string(namespace.join("enable")).is_ok_and(|text| text.trim() == "1"))
        .filter_map(|namespace| {
            let path = fs::read_to_string(namespace.join("device_path")).ok()?;
            let node = fs::metadata(path.trim()).ok().map(|metadata| Object::of(&metadata));
            node.or_else(|| machine.number_of(path.trim(), &machine.proc.join("self")).map(Object::Device))
        })
        .collect()
}

/// Decodes the octal escapes of `/proc`: `\040` is a space.
pub(super) fn unescape(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let code = (byte == b'\\').then(|| text_of(after.get(..3)?)).flatten();
        let code = code.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        bytes.push(code.unwrap_or(byte));
        rest = if code.is_some() { &after[3..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn text_of(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}
