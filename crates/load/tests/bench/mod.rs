//! Loop devices and directories for a single test, removed when the test ends.
#![allow(dead_code)] // Each test file uses a part.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use headstack_needs::{Need, lacks};

/// A directory for one test.
pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new() -> Scratch {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("headstack-guard-{}-{number}", std::process::id()));
        fs::create_dir(&path).unwrap();
        Scratch(path)
    }

    pub fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let removed = fs::remove_dir_all(&self.0);
        assert!(removed.is_ok() || std::thread::panicking(), "{removed:?}");
    }
}

/// A loop device on a sparse file.
pub struct LoopDevice {
    pub path: String,
    pub backing: String,
    undo: Vec<Vec<String>>,
    attached: Attached,
    scratch: Scratch,
    _others: fs::File,
    _alone: MutexGuard<'static, ()>,
}

/// Allows only one test with devices at a time: a mount namespace of one test would keep the mounts of others, and
/// processes that are starting hold their files open. Other test runs wait too.
static ALONE: Mutex<()> = Mutex::new(());

impl LoopDevice {
    /// Creates a loop device; `None` with a note if none can be created.
    pub fn new(bytes: u64) -> Option<LoopDevice> {
        LoopDevice::with_sectors(bytes, 512)
    }

    /// Creates a loop device with logical blocks of `sector_bytes`.
    pub fn with_sectors(bytes: u64, sector_bytes: u32) -> Option<LoopDevice> {
        // A failed test has also cleaned up.
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let others = fs::File::create(std::env::temp_dir().join("headstack-loop-devices.lock")).unwrap();
        others.lock().unwrap();
        let scratch = Scratch::new();
        let backing = scratch.path("disk");
        fs::File::create(&backing).unwrap().set_len(bytes).unwrap();
        let attached = attach_with(&backing, sector_bytes)?;
        Some(LoopDevice {
            path: attached.0.clone(),
            backing,
            undo: Vec::new(),
            attached,
            scratch,
            _others: others,
            _alone: alone,
        })
    }

    /// Returns the kernel's name of the device, such as `loop3`.
    pub fn name(&self) -> &str {
        self.attached.name()
    }

    pub fn directory(&self, name: &str) -> String {
        let path = self.scratch.path(name);
        fs::create_dir_all(&path).unwrap();
        path
    }

    /// Runs `command` now, and `undo` when the test ends; the last `undo` runs first.
    pub fn during(&mut self, command: &[&str], undo: &[&str]) -> bool {
        let done = run(command);
        if done {
            self.undo.push(undo.iter().map(ToString::to_string).collect());
        }
        done
    }

    /// Adds partition `number`, which starts at sector `start`.
    pub fn add_partition(&mut self, number: u32, start: u64, sectors: u64) -> Option<String> {
        let (device, number) = (self.path.clone(), number.to_string());
        let added = self.during(
            &["addpart", &device, &number, &start.to_string(), &sectors.to_string()],
            &["delpart", &device, &number],
        );
        let path = format!("{device}p{number}");
        if !added || !Path::new(&path).exists() {
            lacks(Need::Loop, "no partition can be added");
            return None;
        }
        Some(path)
    }

    pub fn undo_last(&mut self) {
        let undo = self.undo.pop().unwrap();
        assert!(run(&undo.iter().map(String::as_str).collect::<Vec<_>>()), "{undo:?}");
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        while let Some(undo) = self.undo.pop() {
            run(&undo.iter().map(String::as_str).collect::<Vec<_>>());
        }
    }
}

/// A loop device, given by its path, that is detached on drop.
pub struct Attached(pub String);

impl Attached {
    pub fn name(&self) -> &str {
        self.0.strip_prefix("/dev/").unwrap()
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        run(&["losetup", "--detach", &self.0]);
    }
}

/// Attaches a loop device to a file or device.
pub fn attach(backing: &str) -> Option<Attached> {
    attach_with(backing, 512)
}

fn attach_with(backing: &str, sector_bytes: u32) -> Option<Attached> {
    if !headstack_needs::is_privileged() {
        return without(Need::Root, "loop devices that are mounted and divided need root");
    }
    let sectors = format!("--sector-size={sector_bytes}");
    let output = Command::new("losetup").args(["--find", "--show", &sectors, backing]).output();
    match output {
        Ok(output) if output.status.success() => {
            let attached = Attached(String::from_utf8(output.stdout).unwrap().trim().to_owned());
            // Earlier users may have left the device read-only or with partitions.
            run(&["blockdev", "--setrw", &attached.0]);
            if Path::new(&format!("{}p1", attached.0)).exists() {
                run(&["partx", "--delete", &attached.0]);
            }
            Some(attached)
        }
        Ok(output) => {
            without(Need::Loop, &format!("no loop device: {}", String::from_utf8_lossy(&output.stderr).trim()))
        }
        Err(error) => without(Need::Loop, &format!("there is no losetup: {error}")),
    }
}

/// Returns `None`, and notes why.
#[track_caller]
pub fn without<T>(need: Need, why: &str) -> Option<T> {
    lacks(need, why);
    None
}

/// Returns whether a command exists and succeeds.
pub fn run(command: &[&str]) -> bool {
    let status = Command::new(command[0]).args(&command[1..]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}
