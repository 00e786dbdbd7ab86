//! Prepares and checks trees: creates, inspects, verifies and removes their members.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use headstack_workload::{Purpose, Random};

use super::calls;
use super::contents::{Buffer, FileIdentity, Judged};
use super::names::parent;
use super::place::{Place, Removed};
use super::shape::Shape;
use super::states::{Expected, FileState};
use super::worker::Grown;
use crate::LoadError;

/// Number of threads that create, inspect and remove files: as many as vdbench uses for formatting.
const THREADS: u64 = 8;
/// Bytes per read or write.
const CHUNK_BYTES: usize = 128 << 10;
/// Number of files that a thread takes at a time.
const BATCH: u64 = 64;

/// Progress callback: receives the completed share, 0 to 1, and returns false to stop.
pub type ProgressCallback<'a> = &'a (dyn Fn(f64) -> bool + Sync);

/// Calls `work` for each of `count` members in several threads, until a call fails or `goes` returns false.
fn each(
    count: u64,
    goes: ProgressCallback,
    work: &(dyn Fn(u64, &mut String, &mut Buffer) -> Result<(), LoadError> + Sync),
) -> Result<(), LoadError> {
    let (next, stop, failed) = (AtomicU64::new(0), AtomicBool::new(false), Mutex::new(None));
    std::thread::scope(|scope| {
        for thread in 0..THREADS.min(count.div_ceil(BATCH)) {
            let (next, stop, failed) = (&next, &stop, &failed);
            scope.spawn(move || {
                let (mut path, mut buffer) = (String::new(), Buffer::new(CHUNK_BYTES, thread));
                while !stop.load(Ordering::Relaxed) {
                    let first = next.fetch_add(BATCH, Ordering::Relaxed);
                    if first >= count {
                        break;
                    }
                    let outcome =
                        (first..(first + BATCH).min(count)).try_for_each(|member| work(member, &mut path, &mut buffer));
                    if let Err(error) = outcome {
                        failed.lock().expect("the lock is not poisoned").get_or_insert(error);
                        stop.store(true, Ordering::Relaxed);
                    }
                    if !goes(first as f64 / count as f64) {
                        stop.store(true, Ordering::Relaxed);
                        failed.lock().expect("the lock is not poisoned").get_or_insert(LoadError::Stopped);
                    }
                }
            });
        }
    });
    failed.into_inner().expect("the lock is not poisoned").map_or(Ok(()), Err)
}

/// Removes everything that the marker of a place lists, and nothing else.
///
/// # Errors
/// Returns an error if something cannot be removed, such as a directory with contents that headstack did not create.
pub fn remove(place: &Place, shape: &Shape, goes: ProgressCallback) -> Result<Removed, LoadError> {
    let (files, folders) = (AtomicU64::new(0), AtomicU64::new(0));
    each(shape.files(), goes, &|file, path, _| {
        shape.file_path(file, path);
        remove_one(place, path, false, &files)
    })?;
    // Starts with the lowest level: directories of a level have higher numbers than those above.
    let mut path = String::new();
    for folder in (0..shape.folders()).rev() {
        shape.folder_path(folder, &mut path);
        remove_one(place, &path, true, &folders)?;
    }
    Ok(Removed { files: files.into_inner(), folders: folders.into_inner() })
}

fn remove_one(place: &Place, path: &str, is_folder: bool, count: &AtomicU64) -> Result<(), LoadError> {
    let removed = match path.rsplit_once('/') {
        Some((folder, name)) => calls::open(place.folder(), folder, libc::O_PATH | libc::O_DIRECTORY)
            .and_then(|folder| calls::remove(folder.as_fd(), name, is_folder)),
        None => calls::remove(place.folder(), path, is_folder),
    };
    match removed {
        Ok(()) => {
            count.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
            let target = format!("{}/{path}", place.name());
            Err(LoadError::Target {
                target,
                message: "has files that headstack did not create; it is left unchanged".to_owned(),
            })
        }
        Err(source) => Err(LoadError::Io { target: format!("{}/{path}", place.name()), action: "remove", source }),
    }
}

/// Inspects a tree that an earlier run left. Files of the intended length count as full. Their contents are unknown, so
/// all generations before those of this run are accepted.
///
/// # Errors
/// Returns an error if the user stops the inspection, or if a name is not a regular file.
pub fn look(tree: &Grown, goes: ProgressCallback) -> Result<(), LoadError> {
    let Grown { place, shape, states } = tree;
    let mut path = String::new();
    for folder in 0..shape.folders() {
        shape.folder_path(folder, &mut path);
        // Parents were inspected before. A directory that does not exist contains nothing.
        if states.join(shape.parent(folder)) {
            let is_there = calls::open(place.folder(), &path, libc::O_PATH | libc::O_DIRECTORY).is_ok();
            states.give_folder(folder, Some(is_there));
            if !is_there {
                states.leave(shape.parent(folder));
            }
        }
    }
    each(shape.files(), goes, &|file, path, _| {
        let folder = shape.folder_of(file);
        if !states.join(folder) {
            return Ok(());
        }
        shape.file_path(file, path);
        match calls::status(place.folder(), path) {
            Ok((true, bytes)) => {
                let is_full = bytes == shape.size_bytes(file);
                states.give_file(file, FileState { exists: true, is_full, ..states.file(file) });
            }
            Ok((false, _)) => {
                let target = format!("{}/{path}", place.name());
                return Err(LoadError::Target { target, message: "is not a regular file".to_owned() });
            }
            Err(_) => states.leave(folder),
        }
        Ok(())
    })
}

/// Creates missing members: directories, and with `with_files` also files, filled with noise or stamps.
///
/// # Errors
/// Returns an error if something cannot be created, for example because the file system is full.
pub fn make(tree: &Grown, with_files: bool, stamped: bool, goes: ProgressCallback) -> Result<(), LoadError> {
    let Grown { place, shape, states } = tree;
    let mut path = String::new();
    for folder in 0..shape.folders() {
        if states.has_folder(folder) {
            continue;
        }
        shape.folder_path(folder, &mut path);
        let made = parent(tree, &path).and_then(|(parent, name)| calls::mkdir(parent.as_fd(), name));
        made.map_err(|source| failed(tree, &path, "create the directory", source))?;
        assert!(states.join(shape.parent(folder)), "a parent directory is created before its children");
        states.give_folder(folder, Some(true));
    }
    if !with_files {
        return Ok(());
    }
    each(shape.files(), goes, &|file, path, buffer| {
        let state = states.file(file);
        if state.exists && state.is_full {
            return Ok(());
        }
        shape.file_path(file, path);
        let generation = state.next();
        let belongs = FileIdentity { tree: place.id(), file };
        fill(tree, path, shape.size_bytes(file), stamped.then_some((belongs, generation)), buffer)
            .map_err(|source| failed(tree, path, "create the file", source))?;
        if !state.exists {
            assert!(states.join(shape.folder_of(file)), "the parent directory exists");
        }
        states.give_file(
            file,
            FileState { exists: true, is_full: true, is_unknown: false, whole: generation, latest: generation },
        );
        Ok(())
    })
}

fn failed(tree: &Grown, path: &str, action: &'static str, source: io::Error) -> LoadError {
    LoadError::Io { target: format!("{}/{path}", tree.place.name()), action, source }
}

fn fill(
    tree: &Grown,
    path: &str,
    size_bytes: u64,
    stamp: Option<(FileIdentity, u32)>,
    buffer: &mut Buffer,
) -> io::Result<()> {
    let file = File::from(calls::open(tree.place.folder(), path, libc::O_WRONLY | libc::O_CREAT)?);
    let mut noise = Random::new(size_bytes, Purpose::Choices);
    let mut offset = 0;
    while offset < size_bytes {
        let length = (size_bytes - offset).min(CHUNK_BYTES as u64) as usize;
        match stamp {
            Some((belongs, generation)) => belongs.stamp(buffer.of(length), offset, generation),
            None => buffer.renew(length, &mut noise),
        }
        file.write_all_at(buffer.of(length), offset)?;
        offset += length as u64;
    }
    calls::close(OwnedFd::from(file))
}

/// Compares names, sizes and contents of all files with the recorded state. Call this while no thread works on the
/// files, also after a crash or a power loss.
///
/// # Errors
/// Returns an error if the user stops the check.
pub fn check(tree: &Grown, power_was_lost: bool, goes: ProgressCallback) -> Result<Judged, LoadError> {
    let Grown { place, shape, states } = tree;
    let all = Mutex::new(Judged::default());
    let unknown = AtomicU64::new(0);
    each(shape.files(), goes, &|file, path, buffer| {
        let expected = states.expected(file, power_was_lost);
        let Expected { state, is_sure, is_unknown } = expected;
        if is_unknown {
            unknown.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        }
        shape.file_path(file, path);
        let mut judged = Judged::default();
        let full_path = format!("{}/{path}", place.name());
        match (calls::status(place.folder(), path), state.exists) {
            (Ok((_, bytes)), _) if !is_sure => {
                let belongs = FileIdentity { tree: place.id(), file };
                check_contents(tree, path, &full_path, bytes, (belongs, expected), buffer, &mut judged);
            }
            (Err(_), _) if !is_sure => {}
            (Ok(_), false) => judged.returned_file(&full_path),
            (Err(_), true) => judged.lost_file(&full_path, shape.size_bytes(file), "is missing"),
            (Ok((_, bytes)), true) if state.is_full && bytes != shape.size_bytes(file) => {
                let expected_bytes = shape.size_bytes(file);
                let what = format!("has {bytes} bytes, but {expected_bytes} were written");
                judged.lost_file(&full_path, expected_bytes.saturating_sub(bytes), &what);
            }
            (Ok((_, bytes)), true) if state.is_full => {
                let belongs = FileIdentity { tree: place.id(), file };
                check_contents(tree, path, &full_path, bytes, (belongs, expected), buffer, &mut judged);
            }
            _ => {}
        }
        if judged.report.checked > 0 {
            all.lock().expect("the lock is not poisoned").merge(judged);
        }
        Ok(())
    })?;
    let mut all = all.into_inner().expect("the lock is not poisoned");
    let unknown = unknown.into_inner();
    if unknown > 0 {
        all.report.cannot_tell.push(format!("{unknown} files of {}: an operation on them failed", place.name()));
    }
    Ok(all)
}

fn check_contents(
    tree: &Grown,
    path: &str,
    full_path: &str,
    bytes: u64,
    (belongs, expected): (FileIdentity, Expected),
    buffer: &mut Buffer,
    judged: &mut Judged,
) {
    let mut offset = 0;
    let opened = calls::open(tree.place.folder(), path, libc::O_RDONLY).map(File::from);
    let mut read = |offset: u64, length: usize| {
        opened.as_ref().map_err(|error| io::Error::from(error.kind()))?.read_exact_at(buffer.of(length), offset)?;
        belongs.check(buffer.of(length), offset, expected, full_path, judged);
        Ok::<(), io::Error>(())
    };
    let mut failed = None;
    while offset < bytes && failed.is_none() {
        let length = (bytes - offset).min(CHUNK_BYTES as u64);
        failed = read(offset, length as usize).err();
        offset += if failed.is_none() { length } else { 0 };
    }
    if let Some(error) = failed {
        judged.unreadable(full_path, offset, bytes - offset, &error);
    }
}
