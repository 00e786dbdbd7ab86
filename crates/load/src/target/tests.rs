//! Tests on simulated machines: mappings, arrays and mounts, laid out in a directory as the kernel shows them.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::in_use::{Uses, unescape};
use super::machine::{Block, Machine};
use super::object::Number;

struct Laboratory {
    directory: PathBuf,
    machine: Machine,
}

impl Laboratory {
    fn new(mounts: &str) -> Laboratory {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let directory = std::env::temp_dir().join(format!("headstack-machine-{}-{number}", std::process::id()));
        let sub = |name: &str| directory.join(name);
        let machine = Machine { proc: sub("proc"), sys: sub("sys"), dev: sub("dev"), run: sub("run") };
        for name in ["proc/self/root", "sys/dev/block", "sys/class/block", "sys/devices", "run/udev/data"] {
            fs::create_dir_all(sub(name)).unwrap();
        }
        fs::write(sub("proc/self/mountinfo"), mounts).unwrap();
        Laboratory { directory, machine }
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.directory.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn block(&self, path: &str, number: &str) {
        let directory = self.machine.sys.join("devices").join(path);
        fs::create_dir_all(directory.join("holders")).unwrap();
        fs::create_dir_all(directory.join("slaves")).unwrap();
        fs::write(directory.join("dev"), format!("{number}\n")).unwrap();
        if path.contains('/') {
            fs::write(directory.join("partition"), "1\n").unwrap();
        }
        symlink(&directory, self.machine.sys.join("dev/block").join(number)).unwrap();
        symlink(&directory, self.machine.sys.join("class/block").join(directory.file_name().unwrap())).unwrap();
    }

    /// Builds the device `upper` on `lower`.
    fn hold(&self, lower: &str, upper: &str) {
        let devices = self.machine.sys.join("devices");
        let name = |path: &str| Path::new(path).file_name().unwrap().to_owned();
        symlink(devices.join(upper), devices.join(lower).join("holders").join(name(upper))).unwrap();
        symlink(devices.join(lower), devices.join(upper).join("slaves").join(name(lower))).unwrap();
    }

    fn find(&self, name: &str) -> Block {
        self.machine.block_named(name).unwrap()
    }

    #[track_caller]
    fn assert(&self, name: &str, wanted: Option<&str>) {
        let uses = Uses::of(&self.machine).unwrap();
        assert_eq!(uses.of_device(&self.find(name)).as_deref(), wanted, "{name}");
    }
}

impl Drop for Laboratory {
    fn drop(&mut self) {
        let removed = fs::remove_dir_all(&self.directory);
        assert!(removed.is_ok() || std::thread::panicking());
    }
}

/// Returns a machine with two disks. The first has the root file system in a volume on an encrypted partition; the
/// second has an array with nothing on it, and a free partition.
fn server() -> Laboratory {
    let mounts = "30 1 253:1 / / rw,relatime shared:1 - ext4 /dev/mapper/vg-root rw\n\
                  31 30 8:1 / /boot/a\\040b rw - vfat /dev/sda1 rw\n";
    let server = Laboratory::new(mounts);
    for (path, number) in [
        ("sda", "8:0"),
        ("sda/sda1", "8:1"),
        ("sda/sda2", "8:2"),
        ("sda/sda3", "8:3"),
        ("sdb", "8:16"),
        ("sdb/sdb1", "8:17"),
        ("sdb/sdb2", "8:18"),
        ("sdc", "8:32"),
        ("md0", "9:0"),
        ("dm-0", "253:0"),
        ("dm-1", "253:1"),
        ("dm-2", "253:2"),
    ] {
        server.block(path, number);
    }
    server.hold("sda/sda2", "dm-0");
    server.hold("dm-0", "dm-1");
    server.hold("dm-0", "dm-2");
    server.hold("sdb/sdb1", "md0");
    server
}

#[test]
fn holders_are_followed_up_to_a_mount() {
    let server = server();
    server.assert("sda", Some("sda1 is mounted at /boot/a b"));
    server.assert("sda1", Some("sda1 is mounted at /boot/a b"));
    server.assert("sda2", Some("sda2 is held by dm-0; dm-0 is held by dm-1; dm-1 holds the root file system"));
    server.assert("dm-0", Some("dm-0 is held by dm-1; dm-1 holds the root file system"));
    server.assert("dm-1", Some("dm-1 holds the root file system"));
    // An assembled array is in use even if it is not mounted, since it holds data.
    server.assert("sdb", Some("sdb1 is held by md0"));
    server.assert("sdb1", Some("sdb1 is held by md0"));
    // These are next to devices in use, but in their own volume or partition.
    for free in ["sda3", "dm-2", "sdb2", "sdc", "md0"] {
        server.assert(free, None);
    }
}

#[test]
fn what_a_device_is_made_of_is_not_in_use_otherwise() {
    let server = server();
    server.write("proc/77/mountinfo", "30 1 8:17 / /srv rw - ext4 /dev/sdb1 rw\n");
    server.assert("md0", Some("md0 is on sdb1, which is mounted at /srv"));
}

#[test]
fn a_disk_that_is_held_as_a_whole_has_no_free_partitions() {
    let server = server();
    server.block("dm-3", "253:3");
    server.hold("sdb", "dm-3");
    server.assert("sdb2", Some("sdb is held by dm-3"));
}

#[test]
fn mounts_of_other_namespaces_count_once_each() {
    let server = server();
    for (process, namespace, mounts) in [
        ("self", "mnt:[1]", None),
        // This process is skipped, since it has the same namespace.
        ("10", "mnt:[1]", Some("30 1 8:18 / /same rw - ext4 /dev/x rw\n")),
        ("11", "mnt:[2]", Some("30 1 8:32 / /srv rw - xfs /dev/disk/by-id/any rw\nnonsense\n1 2 - \n")),
        ("tty", "mnt:[3]", Some("30 1 8:18 / /none rw - ext4 /dev/x rw\n")),
    ] {
        let directory = server.machine.proc.join(process);
        fs::create_dir_all(directory.join("ns")).unwrap();
        symlink(namespace, directory.join("ns/mnt")).unwrap();
        if let Some(mounts) = mounts {
            fs::write(directory.join("mountinfo"), mounts).unwrap();
        }
    }
    server.assert("sdc", Some("sdc is mounted at /srv"));
    server.assert("sdb2", None);
}

#[test]
fn file_systems_without_a_device_number_are_found_by_their_source() {
    let server = Laboratory::new(
        "30 1 0:25 /@ / rw - btrfs /dev/nvme9n1p2 rw,subvol=/@\n\
         31 1 0:26 / /pool rw - bcachefs /dev/nvme8n1:/dev/nvme9n2 rw\n\
         32 1 0:27 / /run rw - tmpfs tmpfs rw\n",
    );
    for (path, number) in [
        ("nvme9n1", "259:0"),
        ("nvme9n1/nvme9n1p2", "259:2"),
        ("nvme9n2", "259:3"),
        ("nvme8n1", "259:4"),
        ("nvme7n1", "259:5"),
        ("nvme6n1", "259:6"),
    ] {
        server.block(path, number);
    }
    // The other member is not in the mount table.
    server.write("sys/fs/btrfs/0c1e/devices/nvme7n1/dev", "259:5\n");
    server.assert("nvme9n1", Some("nvme9n1p2 holds the root file system"));
    server.assert("nvme9n2", Some("nvme9n2 is mounted at /pool"));
    server.assert("nvme8n1", Some("nvme8n1 is mounted at /pool"));
    server.assert("nvme7n1", Some("nvme7n1 is part of a mounted btrfs"));
    server.assert("nvme6n1", None);
}

#[test]
fn what_is_exported_is_in_use() {
    let server = server();
    for (namespace, path, enabled) in [("1", "/dev/sdc\n", "1\n"), ("2", "/dev/sdb2\n", "0\n")] {
        let directory = format!("sys/kernel/config/nvmet/subsystems/nqn.2014-08.org/namespaces/{namespace}");
        server.write(&format!("{directory}/device_path"), path);
        server.write(&format!("{directory}/enable"), enabled);
    }
    server.assert("sdc", Some("sdc is exported over NVMe"));
    server.assert("sdb2", None);
}

#[test]
fn swap_files_are_found_through_links() {
    let server = server();
    server.write("proc/swaps", "Filename\tType\tSize\tUsed\tPriority\n/dev/sdc   partition\t100\t0\t-2\n");
    server.assert("sdc", Some("sdc is used as swap"));
    server.assert("sdb2", None);
}

#[test]
fn no_device_is_free_without_sysfs() {
    for missing in ["proc/self/mountinfo", "sys/dev/block", "proc/self/root"] {
        let server = server();
        let path = server.directory.join(missing);
        fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path)).unwrap();
        assert!(Uses::of(&server.machine).is_err(), "{missing}");
    }
}

#[test]
fn a_namespace_maps_to_its_block_device() {
    let server = server();
    let sys = &server.machine.sys;
    fs::create_dir_all(sys.join("dev/char")).unwrap();
    // One namespace with its own controller, one of a subsystem with several controllers, and one of a command set
    // without block devices.
    for (folder, name, number) in
        [("pci0/nvme/nvme0", "ng0n1", "242:0"), ("nvme-subsys1", "ng1n2", "242:1"), ("nvme-subsys1", "ng1n3", "242:2")]
    {
        server.write(&format!("sys/devices/{folder}/{name}/dev"), &format!("{number}\n"));
        symlink(sys.join("devices").join(folder).join(name), sys.join("dev/char").join(number)).unwrap();
    }
    server.write("sys/devices/pci0/nvme/nvme0/nvme0n1/dev", "259:1\n");
    server.write("sys/devices/nvme-subsys1/nvme1n2/dev", "259:4\n");
    server.write("sys/devices/pci0/rtc0/dev", "252:0\n");
    symlink(sys.join("devices/pci0/rtc0"), sys.join("dev/char/252:0")).unwrap();
    let found = |minor| server.machine.namespace(Number { major: 242, minor });
    let beside = |minor| found(minor).map(|(name, block)| (name, block.map(|block| (block.name, block.number.minor))));
    let named = |name: &str, block: Option<(&str, u32)>| {
        Some((name.to_owned(), block.map(|(block, minor)| (block.to_owned(), minor))))
    };
    assert_eq!(beside(0), named("ng0n1", Some(("nvme0n1", 1))));
    assert_eq!(beside(1), named("ng1n2", Some(("nvme1n2", 4))));
    assert_eq!(beside(2), named("ng1n3", None));
    assert!(beside(3).is_none());
    let generic = |minor| found(minor).and_then(|(_, block)| block?.generic()).map(|number| number.minor);
    assert_eq!((generic(0), generic(1)), (Some(0), Some(1)), "the block device leads back to its namespace");
    assert!(server.machine.namespace(Number { major: 252, minor: 0 }).is_none(), "a character device that is a clock");
}

#[test]
fn a_serial_number_names_a_disk_and_not_its_partitions() {
    let server = server();
    server.write("sys/devices/sdc/device/wwid", "naa.5000c500a1b2c3d4 \n");
    server.write("sys/devices/sdc/device/vpd_pg80", "\0\u{0}\0\u{8}  ZX1234");
    server.write("run/udev/data/b8:32", "S:disk/by-id/x\nE:ID_SERIAL=ST8000_ZX1234\nE:ID_SERIAL_SHORT=ZX1234\n");
    server.write("sys/devices/sdb/serial", "QM00001\n");
    server.write("run/udev/data/b8:17", "E:ID_SERIAL_SHORT=QM00001\n");
    let serials = |name| server.find(name).serials(&server.machine);
    assert_eq!(serials("sdc"), ["naa.5000c500a1b2c3d4", "ZX1234", "ST8000_ZX1234"]);
    assert_eq!(serials("sdb"), ["QM00001"]);
    assert!(serials("sdb1").is_empty() && serials("sda").is_empty());
}

#[test]
fn octal_escapes_are_undone() {
    for (text, meant) in
        [("/a\\040b\\134", "/a b\\"), ("plain", "plain"), ("\\04", "\\04"), ("\\999é", "\\999é"), ("", "")]
    {
        assert_eq!(unescape(text), meant);
    }
}
