//! Operations on names: create, remove, query and move.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use headstack_jobfiles::trees::Operation;

use super::calls;
use super::states::FileState;
use super::steps::Step;
use super::worker::{Grown, Times, Worker};

/// Opens the directory that contains the last name of a path, without following symbolic links. Returns it with that
/// name.
pub(super) fn parent<'p>(tree: &Grown, path: &'p str) -> io::Result<(OwnedFd, &'p str)> {
    match path.rsplit_once('/') {
        Some((folder, name)) => Ok((calls::open(tree.place.folder(), folder, libc::O_PATH | libc::O_DIRECTORY)?, name)),
        None => Ok((tree.place.folder().try_clone_to_owned()?, path)),
    }
}

impl Worker<'_> {
    pub(super) fn make_folder(&mut self, folder: u64) {
        let tree = self.tree();
        let Some(due_ns) = self.due() else {
            tree.states.leave(tree.shape.parent(folder));
            return tree.states.give_folder(folder, Some(false));
        };
        let mut path = std::mem::take(&mut self.path);
        tree.shape.folder_path(folder, &mut path);
        self.path = path;
        let made = self.step(Step::Mkdir, Some(due_ns), 0, |worker| {
            let (parent, name) = parent(tree, &worker.path)?;
            calls::mkdir(parent.as_fd(), name)
        });
        if made.is_err() {
            tree.states.leave(tree.shape.parent(folder));
        }
        tree.states.give_folder(folder, made.ok().map(|()| true));
    }

    pub(super) fn remove_folder(&mut self, folder: u64) {
        let tree = self.tree();
        let Some(due_ns) = self.due() else { return tree.states.give_folder(folder, Some(true)) };
        let mut path = std::mem::take(&mut self.path);
        tree.shape.folder_path(folder, &mut path);
        self.path = path;
        let removed = self.step(Step::Rmdir, Some(due_ns), 0, |worker| {
            let (parent, name) = parent(tree, &worker.path)?;
            calls::remove(parent.as_fd(), name, true)
        });
        if removed.is_ok() {
            tree.states.leave(tree.shape.parent(folder));
        }
        tree.states.give_folder(folder, removed.ok().map(|()| false));
    }

    /// Creates an empty file.
    pub(super) fn create(&mut self, file: u64, state: FileState) {
        let tree = self.tree();
        let Some(due_ns) = self.due() else { return self.give_up_new(tree, file, state) };
        self.name_file(file);
        let made = self.step(Step::Create, Some(due_ns), 0, |worker| {
            calls::open(tree.place.folder(), &worker.path, libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL)
        });
        match made {
            Ok(made) => {
                let closed = self.step(Step::Close, None, 0, |_| calls::close(made));
                let is_full = tree.shape.size_bytes(file) == 0;
                let new = FileState { exists: true, is_full, is_unknown: closed.is_err(), ..state };
                tree.states.give_file(file, new);
            }
            Err(_) => {
                tree.states.leave(tree.shape.folder_of(file));
                tree.states.give_file(file, FileState { is_unknown: true, ..state });
            }
        }
    }

    /// Releases a file that could not be created.
    fn give_up_new(&self, tree: &Grown, file: u64, state: FileState) {
        tree.states.leave(tree.shape.folder_of(file));
        tree.states.give_file(file, state);
    }

    pub(super) fn delete(&mut self, file: u64, state: FileState) {
        let tree = self.tree();
        let Some(due_ns) = self.due() else { return tree.states.give_file(file, state) };
        self.name_file(file);
        tree.states.unpromise(file);
        let removed = self.step(Step::Delete, Some(due_ns), 0, |worker| {
            let (parent, name) = parent(tree, &worker.path)?;
            calls::remove(parent.as_fd(), name, false)
        });
        match removed {
            Ok(()) => {
                tree.states.leave(tree.shape.folder_of(file));
                tree.states.give_file(file, FileState { exists: false, is_full: false, ..state });
            }
            Err(_) => tree.states.give_file(file, FileState { is_unknown: true, ..state }),
        }
    }

    /// Queries attributes or access, or sets times, in one call that leaves the file's contents unchanged.
    pub(super) fn query_attributes(&mut self, file: u64, state: FileState) {
        let tree = self.tree();
        let Some(due_ns) = self.due() else { return tree.states.give_file(file, state) };
        self.name_file(file);
        let operation = self.load.operation;
        // A failure is counted, and the file is unchanged.
        let _ = self.step(Step::of(operation), Some(due_ns), 0, |worker| match operation {
            Operation::Getattr => calls::status(tree.place.folder(), &worker.path).map(drop),
            Operation::Access => calls::access(tree.place.folder(), &worker.path),
            _ => {
                let (parent, name) = parent(tree, &worker.path)?;
                calls::touch(parent.as_fd(), name)
            }
        });
        tree.states.give_file(file, state);
    }

    pub(super) fn open_and_close(&mut self, file: u64, state: FileState) {
        let tree = self.tree();
        let Some(due_ns) = self.due() else { return tree.states.give_file(file, state) };
        self.name_file(file);
        let opened = self
            .step(Step::Open, Some(due_ns), 0, |worker| calls::open(tree.place.folder(), &worker.path, libc::O_RDONLY));
        if let Ok(opened) = opened {
            // A failure is counted, and the file is unchanged.
            let _ = self.step(Step::Close, None, 0, |_| calls::close(opened));
        }
        tree.states.give_file(file, state);
    }

    /// Copies or moves a file to the same name in another tree.
    pub(super) fn transfer(&mut self, file: u64, state: FileState, new: FileState) {
        let tree = self.tree();
        let Some(other) = self.load.to_tree else { return };
        let other = &self.common.trees[other];
        let Some(intended_ns) = self.due() else {
            self.give_up_new(other, file, new);
            return tree.states.give_file(file, state);
        };
        self.name_file(file);
        let step = Step::of(self.load.operation);
        let started_ns = self.now_ns();
        let is_move = self.load.operation == Operation::Move;
        if is_move {
            tree.states.unpromise(file);
        }
        let done = if is_move { self.rename(tree, other) } else { self.copy_file(file, tree, other, state, new) };
        let times = Times { intended_ns, started_ns, at_ns: self.now_ns() };
        let bytes = if is_move { 0 } else { tree.shape.size_bytes(file) };
        self.book(step, times, bytes, done.as_ref().err());
        match done {
            Ok(written) => {
                other.states.give_file(file, written.unwrap_or(FileState { is_unknown: false, ..state }));
                if is_move {
                    tree.states.leave(tree.shape.folder_of(file));
                    return tree.states.give_file(file, FileState { exists: false, is_full: false, ..state });
                }
                tree.states.give_file(file, state);
            }
            Err(_) => {
                other.states.leave(other.shape.folder_of(file));
                other.states.give_file(file, FileState { is_unknown: true, ..new });
                tree.states.give_file(file, FileState { is_unknown: is_move, ..state });
            }
        }
    }

    fn rename(&mut self, tree: &Grown, other: &Grown) -> io::Result<Option<FileState>> {
        let (from, name) = parent(tree, &self.path)?;
        let (to, new) = parent(other, &self.path)?;
        calls::rename(from.as_fd(), name, to.as_fd(), new).map(|()| None)
    }

    /// Stores the file's path in `path`.
    pub(super) fn name_file(&mut self, file: u64) {
        let mut path = std::mem::take(&mut self.path);
        self.tree().shape.file_path(file, &mut path);
        self.path = path;
    }
}
