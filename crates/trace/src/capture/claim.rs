//! [`Claim`]: ownership of a capture: the changes made to the kernel, and cleanup after killed processes.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::control::{Folder, failed, refused};
use crate::error::TraceError;

/// File with the owner of the kernel's block tracer and the previous values of its control files: the owner, then `PATH
/// VALUE` lines.
const CLAIM: &str = "/run/headstack-capture";
/// Prefix of the names of our instances; the owner follows.
const INSTANCE: &str = "headstack-";

/// A process, distinguished from a later one with the same ID by its start time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    pid: u32,
    /// In clock ticks since boot.
    started: u64,
}

impl Owner {
    /// This process.
    pub(super) fn this() -> Result<Owner, TraceError> {
        let pid = std::process::id();
        let started = started(pid).ok_or_else(|| failed(format!("/proc/{pid}/stat cannot be read")))?;
        Ok(Owner { pid, started })
    }

    fn is_alive(self) -> bool {
        started(self.pid) == Some(self.started)
    }

    /// Returns a name for an instance of this owner, a different one at each call.
    pub(super) fn instance(self) -> String {
        format!("{INSTANCE}{}-{}-{}", self.pid, self.started, next_number())
    }

    /// The owner of an instance, if it is ours.
    fn from_instance(name: &str) -> Option<Owner> {
        let mut parts = name.strip_prefix(INSTANCE)?.split('-');
        Some(Owner { pid: parts.next()?.parse().ok()?, started: parts.next()?.parse().ok()? })
    }

    /// The owner of a claim.
    fn from_claim(text: &str) -> Option<Owner> {
        let (pid, started) = text.lines().next()?.split_once(' ')?;
        Some(Owner { pid: pid.parse().ok()?, started: started.parse().ok()? })
    }
}

/// The 22nd field of a process's `stat`; its name, the second, may contain blanks and brackets.
fn started(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

/// The exclusive right, among our processes, to the kernel's only block tracer; released when dropped.
#[derive(Debug)]
pub(super) struct Claim;

impl Claim {
    /// Takes the claim, and stores the values to restore.
    ///
    /// # Errors
    /// When another process has it.
    pub(super) fn take(before: &[(PathBuf, String)]) -> Result<Claim, TraceError> {
        let owner = Owner::this()?;
        let mut text = format!("{} {}\n", owner.pid, owner.started);
        for (path, value) in before {
            text += &format!("{} {value}\n", path.display());
        }
        // Complete or absent, also for concurrent readers: written under another name, then linked.
        let draft = draft();
        let write = |path: &Path| fs::File::create(path)?.write_all(text.as_bytes());
        let linked = write(&draft).and_then(|()| fs::hard_link(&draft, CLAIM));
        let _ = fs::remove_file(&draft);
        match linked {
            Ok(()) => Ok(Claim),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let other = fs::read_to_string(CLAIM).ok().and_then(|text| Owner::from_claim(&text));
                Err(failed(match other {
                    Some(other) => format!("the block tracer is in use by headstack process {}", other.pid),
                    None => format!("{CLAIM} is not a headstack file; remove it"),
                }))
            }
            Err(error) => Err(refused(Path::new(CLAIM), "cannot be written", &error)),
        }
    }
}

/// A unique name next to [`CLAIM`].
fn draft() -> PathBuf {
    PathBuf::from(format!("{CLAIM}.{}.{}", std::process::id(), next_number()))
}

/// Returns a different number at each call in this process.
fn next_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl Drop for Claim {
    fn drop(&mut self) {
        let _ = fs::remove_file(CLAIM);
    }
}

/// Restores control files, in reverse order.
pub(super) fn set_back(before: &[(PathBuf, String)]) {
    for (path, value) in before.iter().rev() {
        // A device may be gone by now, and there is no one to report it to.
        let _ = fs::write(path, value);
    }
}

/// Restores and removes leftovers of our dead processes; returns a description.
pub(super) fn clean_up(tracefs: &Folder) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(pid) = clean_claim() {
        notes.push(format!("reset the block tracer that headstack process {pid} left on"));
    }
    let entries = fs::read_dir(tracefs.path().join("instances")).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        if let Some(owner) = Owner::from_instance(&name)
            && !owner.is_alive()
            && fs::remove_dir(entry.path()).is_ok()
        {
            notes.push(format!("removed the tracing instance {name} that a headstack process left behind"));
        }
    }
    notes
}

fn clean_claim() -> Option<u32> {
    let owner = Owner::from_claim(&fs::read_to_string(CLAIM).ok()?)?;
    if owner.is_alive() {
        return None;
    }
    // Of two processes that clean up, one gets the file.
    let mine = draft();
    fs::rename(CLAIM, &mine).ok()?;
    let text = fs::read_to_string(&mine).ok()?;
    if Owner::from_claim(&text)?.is_alive() {
        // The other one was faster, and has already claimed it again.
        let _ = fs::rename(&mine, CLAIM);
        return None;
    }
    let _ = fs::remove_file(&mine);
    let lines = text.lines().skip(1).filter_map(|line| line.split_once(' '));
    let settings: Vec<(PathBuf, String)> =
        lines.filter(|(path, _)| path.starts_with("/sys/")).map(|(path, value)| (path.into(), value.into())).collect();
    set_back(&settings);
    Some(owner.pid)
}
