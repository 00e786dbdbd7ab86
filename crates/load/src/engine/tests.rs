//! Tests of the system calls that engines make for each request.

use std::fs::File;
use std::io::pipe;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;

use headstack_needs::{Need, lacks};
use headstack_workload::{Kind, Request};

use super::*;
use crate::target_map::TargetHandle;

/// Returns an anonymous file that vanishes when it is closed.
fn file() -> File {
    let mut options = File::options();
    options.read(true).write(true).custom_flags(libc::O_TMPFILE).open(std::env::temp_dir()).unwrap()
}

fn request(kind: Kind, length_bytes: u32, force_unit_access: bool) -> Request {
    Request { kind, offset_bytes: 0, length_bytes, force_unit_access, ordered: false }
}

fn setup(fds: &[RawFd], slots: u32) -> Setup {
    let map = TargetMap::new(fds.iter().map(|&fd| (TargetHandle::File(fd), 1 << 20)));
    Setup { map, slots, longest_bytes: 4096, own_buffers: false, name: "files".to_owned() }
}

/// Returns an engine for these files; `None` if this machine does not support it.
fn engine(kind: EngineKind, slots: u32, fds: &[RawFd], waker: &Waker) -> Option<Engine> {
    match Engine::new(kind, setup(fds, slots), waker) {
        Err(LoadError::Io { action: ring::SETUP, source, .. }) => {
            lacks(Need::Kernel, format_args!("io_uring: {source}"));
            None
        }
        engine => Some(engine.unwrap()),
    }
}

fn result_of(engine: &mut Engine, request: &Request) -> i32 {
    let mut done = Vec::new();
    engine.prepare(0, request);
    while done.is_empty() {
        engine.drive(Wait::One, &Clock::Wall, &mut done).unwrap();
    }
    assert_eq!((done.len(), done[0].slot), (1, 0));
    done[0].result
}

/// Uses a pipe: it cannot be flushed, so its error shows whether a flush was attempted.
#[test]
fn a_flush_covers_every_file_and_fails_if_one_fails() {
    let (first, last) = (file(), file());
    let (_reader, writer) = pipe().unwrap();
    let (first, last, pipe) = (first.as_raw_fd(), last.as_raw_fd(), writer.as_raw_fd());
    let waker = Waker::new().unwrap();
    for (kind, slots) in [(EngineKind::Ring, 4), (EngineKind::Psync, 1), (EngineKind::Psync, 4)] {
        for (files, expected) in [
            (&[first, last][..], 0),
            (&[first, pipe], -libc::EINVAL),
            (&[pipe, last], -libc::EINVAL),
            (&[first, pipe, last], -libc::EINVAL),
        ] {
            for with_metadata in [false, true] {
                let Some(mut engine) = engine(kind, slots, files, &waker) else { continue };
                let result = result_of(&mut engine, &request(Kind::Flush, 0, with_metadata));
                assert_eq!(result, expected, "{kind:?}, {slots} slots, files {files:?}");
            }
        }
    }
}
