//! Finds other processes that have a device or file open for writing, such as servers that export it, virtual machines
//! and databases.
//!
//! For a file, the kernel itself answers with a lease, which it grants only if no one has the file open: this takes two
//! system calls, and no process can hide. `/proc` shows which process has it open. It must suffice for devices, which
//! have no leases.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::kernel;
use super::machine::Machine;
use super::object::Object;

/// Device that a process keeps open while it serves a file system.
const FUSE: &str = "/dev/fuse";

/// Maximum time for which tools that query a drive's health have it open for writing.
const PASSING: Duration = Duration::from_millis(300);

/// Maximum wait for the kernel to close the files of an io_uring whose run has ended. On two busy cores, 300 ms was
/// once too short in the tests (the ring is the likely cause, not a proven one). 3 s is ten times as long; it is not
/// based on a measurement.
const KERNEL_RELEASE: Duration = Duration::from_secs(3);

/// Returns how another process uses a file that is about to be written. `file` is open for reading; `objects` are the
/// file and those objects through which this process may have it open.
pub(super) fn of_file(machine: &Machine, file: &File, objects: &[Object]) -> Option<String> {
    join_uses(holders(machine, objects)).or_else(|| {
        // This process may have the file open several times, since several jobs can use one file.
        let is_refused =
            || kernel::lease(file, libc::F_RDLCK) == Some(false) && does(&machine.proc.join("self"), objects).is_none();
        let start = Instant::now();
        let mut is_hidden = is_refused();
        while is_hidden && start.elapsed() < KERNEL_RELEASE {
            thread::sleep(Duration::from_millis(5));
            is_hidden = is_refused();
        }
        is_hidden.then(|| "a process in another namespace has it open for writing".to_owned())
    })
}

/// Returns how another process has begun to use a file that is being written. `file` is open for writing.
pub(super) fn of_written_file(machine: &Machine, file: &File, what: Object) -> Option<String> {
    if kernel::lease(file, libc::F_WRLCK) == Some(true) {
        return None;
    }
    lasting(|| holders(machine, &[what]))
}

/// Returns how another process uses devices, or the objects behind them.
pub(super) fn of_devices(machine: &Machine, objects: &[Object]) -> Option<String> {
    lasting(|| holders(machine, objects))
}

/// Returns the result of `look` if it is still the same a moment later.
fn lasting(look: impl Fn() -> Vec<String>) -> Option<String> {
    let before = look();
    if before.is_empty() {
        return None;
    }
    thread::sleep(PASSING);
    join_uses(look().into_iter().filter(|line| before.contains(line)).collect())
}

fn join_uses(lines: Vec<String>) -> Option<String> {
    (!lines.is_empty()).then(|| lines.join("; "))
}

/// Returns the other processes that use one of `objects`, with their use.
fn holders(machine: &Machine, objects: &[Object]) -> Vec<String> {
    let own = std::process::id().to_string();
    let others = machine.processes().into_iter().filter(|process| !process.ends_with(&own));
    let lines = others.filter_map(|process| {
        let use_of_object = does(&process, objects)?;
        let name = fs::read_to_string(process.join("comm")).unwrap_or_default();
        let id = process.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Some(format!("{} (process {id}) {use_of_object}", name.trim()))
    });
    lines.collect()
}

/// Returns how a process uses one of `objects`: through its descriptors, or through its memory if descriptors were
/// closed.
fn does(process: &Path, objects: &[Object]) -> Option<&'static str> {
    by_descriptor(process, objects).or_else(|| by_memory(process, objects))
}

fn by_descriptor(process: &Path, objects: &[Object]) -> Option<&'static str> {
    let descriptors = fs::read_dir(process.join("fd")).ok()?;
    // Most descriptors are sockets and pipes.
    let links = descriptors.filter_map(|entry| {
        let path = entry.ok()?.path();
        let leads_to = fs::read_link(&path).ok().filter(|leads_to| leads_to.starts_with("/"))?;
        Some((path, leads_to))
    });
    let links: Vec<(PathBuf, PathBuf)> = links.collect();
    // The process mounts what it reads: squashfuse and fuse2fs read an image.
    let serves = links.iter().any(|(_, leads_to)| leads_to == Path::new(FUSE));
    links.iter().find_map(|(link, _)| {
        let lines = fs::read_to_string(process.join("fdinfo").join(link.file_name()?)).ok()?;
        let (writes, locks) = (writes(&lines), lines.lines().any(|line| line.starts_with("lock:")));
        if !writes && !locks && !serves {
            return None;
        }
        let object = kernel::object(link).ok().filter(|object| objects.contains(object))?;
        // udev locks a device for a moment to look at it, with a lock that other readers share.
        let alone = || lines.lines().any(|line| line.starts_with("lock:") && line.contains(" WRITE "));
        match (writes, object) {
            (true, _) => Some("has it open for writing"),
            (false, _) if serves => Some("has it open and serves a FUSE file system"),
            (false, Object::Device(_)) if !alone() => None,
            (false, _) => Some("holds a lock on it"),
        }
    })
}

fn writes(descriptor: &str) -> bool {
    let flags = descriptor.lines().find_map(|line| i32::from_str_radix(line.strip_prefix("flags:")?.trim(), 8).ok());
    flags.is_some_and(|flags| flags & libc::O_ACCMODE != libc::O_RDONLY)
}

/// Checks the lines of `maps`, such as `7f1c-7f1d rw-s 00000000 08:01 1234 /path`. For root, the links of the same
/// range lead to the mapped object.
fn by_memory(process: &Path, objects: &[Object]) -> Option<&'static str> {
    let text = fs::read_to_string(process.join("maps")).ok()?;
    text.lines().find_map(|line| {
        let mut fields = line.split_ascii_whitespace();
        let (range, rights) = (fields.next()?, fields.next()?);
        let inode = fields.nth(2)?;
        let path = fields.next().filter(|path| path.starts_with('/'))?;
        let is_meant = |object: &Object| matches!(object, Object::File { inode: its, .. } if its.to_string() == inode);
        let use_of_object = if rights.ends_with('s') && rights.contains('w') {
            "has it in its memory for writing"
        } else if rights.contains('x') && objects.iter().any(is_meant) {
            "executes it as a program or library"
        } else {
            return None;
        };
        let mapped = kernel::object(&process.join("map_files").join(range));
        let named = || kernel::object(&process.join("root").join(path.trim_start_matches('/')));
        mapped.or_else(|_| named()).is_ok_and(|object| objects.contains(&object)).then_some(use_of_object)
    })
}
