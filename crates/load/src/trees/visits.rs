//! Visits to files: open, then read or write request by request, then close.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

use headstack_jobfiles::Sync;
use headstack_jobfiles::trees::{Operation, Order};

use super::calls;
use super::contents::FileIdentity;
use super::states::{Expected, FileState};
use super::steps::Step;
use super::worker::{Grown, Worker};

/// An open file and its state.
pub(super) struct Visit {
    pub(super) file: File,
    pub(super) belongs: FileIdentity,
    /// State at the start of the visit. After a write, the latest generation is that of this visit.
    pub(super) state: FileState,
    pub(super) size_bytes: u64,
    /// Whether the visit has written anything.
    pub(super) has_written: bool,
}

/// How a visit ended.
enum Ended {
    /// The visit covered the whole file, from start to end.
    AtEnd,
    /// The visit covered only a part of the file.
    Within,
    /// An operation failed.
    Failed,
}

impl Worker<'_> {
    /// Reads or writes a file: once in order, or with as many requests as the load defines.
    pub(super) fn visit(&mut self, file: u64, state: FileState) {
        let tree = self.tree();
        let Some(due_ns) = self.due() else { return tree.states.give_file(file, state) };
        self.name_file(file);
        let writes =
            self.load.operation == Operation::Write || self.load.read_percent.is_some_and(|reads| reads < 100.0);
        let Ok(opened) = self.step(Step::Open, None, 0, |worker| worker.open_for(tree, writes)) else {
            return tree.states.give_file(file, state);
        };
        let belongs = FileIdentity { tree: tree.place.id(), file };
        let size_bytes = tree.shape.size_bytes(file);
        let mut visit = Visit { file: opened, belongs, state, size_bytes, has_written: false };
        let ended = if size_bytes == 0 { Ended::AtEnd } else { self.requests_of(&mut visit, due_ns) };
        let mut is_unknown = matches!(ended, Ended::Failed) && visit.has_written;
        let mut is_durable = visit.has_written && self.load.sync != Sync::No;
        if visit.has_written && self.load.flushes_at_close {
            is_durable = self.step(Step::Flush, None, 0, |_| visit.file.sync_all()).is_ok();
            is_unknown |= !is_durable;
        }
        let closed = self.step(Step::Close, None, 0, |_| calls::close(OwnedFd::from(visit.file)));
        is_unknown |= closed.is_err() && visit.has_written;
        let mut now = FileState { is_unknown, ..visit.state };
        if matches!(ended, Ended::AtEnd) && visit.has_written && self.writes_alone(state) {
            now.whole = now.latest;
            now.is_full = true;
        }
        if is_durable && !is_unknown {
            tree.states.flushed(file, now);
        }
        tree.states.give_file(file, now);
    }

    fn open_for(&self, tree: &Grown, writes: bool) -> io::Result<File> {
        let mut flags = if writes { libc::O_RDWR } else { libc::O_RDONLY };
        flags |= if self.load.direct { libc::O_DIRECT } else { 0 };
        flags |= match self.load.sync {
            Sync::No => 0,
            Sync::Data => libc::O_DSYNC,
            Sync::File => libc::O_SYNC,
        };
        calls::open(tree.place.folder(), &self.path, flags).map(File::from)
    }

    /// Returns whether all requests of a visit are writes. A file that is not full is written from start to end.
    fn writes_alone(&self, state: FileState) -> bool {
        self.load.operation == Operation::Write && (self.load.read_percent.is_none() || !state.is_full)
    }

    fn requests_of(&mut self, visit: &mut Visit, due_ns: u64) -> Ended {
        let alone = self.writes_alone(visit.state);
        let in_order = !visit.state.is_full || self.load.requests != Order::Random;
        let most = if visit.state.is_full { self.requests(visit.size_bytes) } else { u64::MAX };
        let (mut due_ns, mut next, mut count) = (Some(due_ns), 0, 0);
        loop {
            let drawn = self.length();
            let offset = if in_order { next } else { self.random.below((visit.size_bytes / drawn).max(1)) * drawn };
            let length = drawn.min(visit.size_bytes - offset);
            let reads = match self.load.read_percent {
                _ if alone => false,
                Some(percent) => self.random.fraction() * 100.0 < percent,
                None => self.load.operation == Operation::Read,
            };
            let done = if reads {
                self.read(visit, offset, length, due_ns)
            } else {
                self.write(visit, offset, length, due_ns)
            };
            if done.is_err() {
                return Ended::Failed;
            }
            (next, count) = (offset + length, count + 1);
            if in_order && next >= visit.size_bytes {
                return Ended::AtEnd;
            }
            if count >= most {
                return Ended::Within;
            }
            due_ns = self.due();
            if due_ns.is_none() {
                return Ended::Within;
            }
        }
    }

    fn read(&mut self, visit: &Visit, offset: u64, length: u64, due_ns: Option<u64>) -> io::Result<()> {
        let length_bytes = length as usize;
        let done = self.step(Step::Read, due_ns, length, |worker| {
            visit.file.read_exact_at(worker.buffer.of(length_bytes), offset)
        });
        if self.common.verifies {
            let (path, judged) = (&self.path, &mut self.done.judged);
            match &done {
                Ok(()) => {
                    let expected = Expected { state: visit.state, is_sure: true, is_unknown: false };
                    visit.belongs.check(self.buffer.of(length_bytes), offset, expected, path, judged);
                }
                Err(error) => judged.unreadable(path, offset, length, error),
            }
        }
        done
    }

    fn write(&mut self, visit: &mut Visit, offset: u64, length: u64, due_ns: Option<u64>) -> io::Result<()> {
        if !visit.has_written {
            visit.has_written = true;
            visit.state.latest = visit.state.next();
        }
        let length_bytes = length as usize;
        if self.common.verifies {
            visit.belongs.stamp(self.buffer.of(length_bytes), offset, visit.state.latest);
        } else {
            self.buffer.renew(length_bytes, &mut self.random);
        }
        self.step(Step::Write, due_ns, length, |worker| visit.file.write_all_at(worker.buffer.of(length_bytes), offset))
    }

    /// Copies a full file to a name that does not exist yet. Returns the state of the copy.
    pub(super) fn copy_file(
        &mut self,
        file: u64,
        tree: &Grown,
        other: &Grown,
        state: FileState,
        new: FileState,
    ) -> io::Result<Option<FileState>> {
        let from = self.step(Step::Open, None, 0, |worker| worker.open_for(tree, false))?;
        let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL;
        let to = self.step(Step::Create, None, 0, |worker| calls::open(other.place.folder(), &worker.path, flags))?;
        let size_bytes = tree.shape.size_bytes(file);
        let of = |file_of: &Grown| FileIdentity { tree: file_of.place.id(), file };
        let source = Visit { file: from, belongs: of(tree), state, size_bytes, has_written: false };
        let mut target = Visit { file: File::from(to), belongs: of(other), state: new, size_bytes, has_written: false };
        let mut offset = 0;
        while offset < size_bytes {
            let length = self.length().min(size_bytes - offset);
            self.read(&source, offset, length, None)?;
            self.write(&mut target, offset, length, None)?;
            offset += length;
        }
        if self.load.flushes_at_close {
            self.step(Step::Flush, None, 0, |_| target.file.sync_all())?;
        }
        self.step(Step::Close, None, 0, |_| calls::close(OwnedFd::from(source.file)))?;
        self.step(Step::Close, None, 0, |_| calls::close(OwnedFd::from(target.file)))?;
        Ok(Some(FileState {
            exists: true,
            is_full: true,
            is_unknown: false,
            whole: target.state.latest,
            ..target.state
        }))
    }
}
