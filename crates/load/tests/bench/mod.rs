//! Loop devices and directories of tests, which nothing else uses, and which are gone when the test is.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory of its own for a test.
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
        fs::remove_dir_all(&self.0).unwrap();
    }
}

/// A loop device on a sparse file.
pub struct LoopDevice {
    pub path: String,
    pub backing: String,
    undo: Vec<Vec<String>>,
    _scratch: Scratch,
}

impl LoopDevice {
    /// `None`, and why, where no loop device can be made.
    pub fn new(bytes: u64) -> Option<LoopDevice> {
        let scratch = Scratch::new();
        let backing = scratch.path("disk");
        fs::File::create(&backing).unwrap().set_len(bytes).unwrap();
        let path = attach(&backing)?;
        Some(LoopDevice { path, backing, undo: Vec::new(), _scratch: scratch })
    }

    /// The kernel's name, such as `loop3`.
    pub fn name(&self) -> &str {
        self.path.strip_prefix("/dev/").unwrap()
    }

    pub fn directory(&self, name: &str) -> String {
        let path = self._scratch.path(name);
        fs::create_dir_all(&path).unwrap();
        path
    }

    /// Runs a command now and the other when the test is over, the last first.
    pub fn during(&mut self, command: &[&str], undo: &[&str]) -> bool {
        let done = run(command);
        if done {
            self.undo.push(undo.iter().map(ToString::to_string).collect());
        }
        done
    }

    /// Partition `number`, from sector `start` on.
    pub fn add_partition(&mut self, number: u32, start: u64, sectors: u64) -> Option<String> {
        let (device, number) = (self.path.clone(), number.to_string());
        let added = self.during(
            &["addpart", &device, &number, &start.to_string(), &sectors.to_string()],
            &["delpart", &device, &number],
        );
        let path = format!("{device}p{number}");
        if !added || !Path::new(&path).exists() {
            println!("skipped: no partition can be added");
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
        run(&["losetup", "--detach", &self.path]);
    }
}

/// Attaches a loop device to a file or device.
pub fn attach(backing: &str) -> Option<String> {
    let output = Command::new("losetup").args(["--find", "--show", backing]).output();
    match output {
        Ok(output) if output.status.success() => Some(String::from_utf8(output.stdout).unwrap().trim().to_owned()),
        Ok(output) => skipped(&format!("no loop device: {}", String::from_utf8_lossy(&output.stderr).trim())),
        Err(error) => skipped(&format!("there is no losetup: {error}")),
    }
}

pub fn skipped<T>(why: &str) -> Option<T> {
    println!("skipped: {why}");
    None
}

/// Whether a command is there and succeeds.
pub fn run(command: &[&str]) -> bool {
    let status = Command::new(command[0]).args(&command[1..]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}
