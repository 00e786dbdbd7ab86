//! Tests that no data are destroyed: which targets are opened, which are refused, and with which messages.

#[path = "../bench/mod.rs"]
mod bench;
mod devices;
mod failures;
mod files;
mod signatures;
mod watched;
mod ways;

use std::os::fd::AsRawFd;

use headstack_jobfiles::Sync;
use headstack_load::{LoadError, Permission, Target};

const MIB: u64 = 1 << 20;

fn open(path: &str, permission: &Permission) -> Result<Target, LoadError> {
    Target::open(path, true, Sync::No, permission, &|_| true)
}

/// Returns the one-line message with which a target is refused.
fn refusal(path: &str, permission: &Permission) -> String {
    let Err(error) = open(path, permission) else { panic!("{path} was opened under {permission:?}") };
    let line = error.to_string();
    assert!(!line.contains('\n') && line.starts_with(path), "{line}");
    line
}

#[track_caller]
fn assert_refused(path: &str, permission: &Permission, wanted: &str) {
    let line = refusal(path, permission);
    assert!(line.contains(wanted), "{line:?} without {wanted:?}");
}

fn destroying(name: &str) -> Permission {
    Permission { write: true, destroy: vec![name.to_owned()], ..Permission::default() }
}

fn descriptor_writes(target: &Target) -> bool {
    // SAFETY: only queries flags.
    let flags = unsafe { libc::fcntl(target.fd().unwrap().as_raw_fd(), libc::F_GETFL) };
    flags & libc::O_ACCMODE != libc::O_RDONLY
}
