//! Replies to the kernel, sent by any thread.

use std::io;
use std::time::Duration;

use fuser::{Errno, ReplyData, ReplyEmpty, ReplyWrite};
use headstack_sim::{Outcome, faults};

use crate::budget::Share;
use crate::copy_thread::{AT_ONCE_BYTES, CopyQueue, DeferredReply};
use crate::kernel::KernelReply;
use crate::pacer::Answer;

/// The reply on success.
#[derive(Debug)]
pub enum ReplyPayload {
    Data(ReplyData, Vec<u8>, Share),
    Written(ReplyWrite, u32),
    Done(ReplyEmpty),
}

impl DeferredReply for ReplyPayload {
    fn send(self) {
        match self {
            ReplyPayload::Data(reply, data, share) => {
                reply.data(&data);
                drop((data, share));
            }
            ReplyPayload::Written(reply, bytes) => reply.written(bytes),
            ReplyPayload::Done(reply) => reply.ok(),
        }
    }
}

impl ReplyPayload {
    fn fail(self, errno: Errno) {
        match self {
            ReplyPayload::Data(reply, ..) => reply.error(errno),
            ReplyPayload::Written(reply, _) => reply.error(errno),
            ReplyPayload::Done(reply) => reply.error(errno),
        }
    }
}

/// The reply to one request. The kernel waits for it forever: dropped unsent, it sends EIO.
#[derive(Debug)]
pub struct Reply {
    word: ReplyPayload,
    /// Address in the system of the data that were read.
    start_bytes: u64,
    copy_queue: CopyQueue<ReplyPayload>,
}

impl Answer for Reply {
    /// Answers from the calling thread, or queues a long read.
    fn send(self: Box<Self>, outcome: Outcome, _: Duration) {
        match (outcome, self.word) {
            (Outcome::Done, word @ ReplyPayload::Data(..)) if matches!(&word, ReplyPayload::Data(_, data, _) if data.len() > AT_ONCE_BYTES) =>
            {
                self.copy_queue.enqueue(word);
            }
            (Outcome::Done, word) => word.send(),
            (Outcome::Refused(errno), word) => word.fail(kernel_errno(errno)),
            // Processes behind a loop device would hang if a vanished drive did not answer.
            (Outcome::Failed(_) | Outcome::Vanished, word) => word.fail(Errno::EIO),
        }
    }

    fn data(&mut self) -> Option<(u64, &mut [u8])> {
        match &mut self.word {
            ReplyPayload::Data(_, data, _) => Some((self.start_bytes, data)),
            ReplyPayload::Written(..) | ReplyPayload::Done(_) => None,
        }
    }
}

fn kernel_errno(errno: faults::Errno) -> Errno {
    match errno {
        faults::Errno::Io => Errno::EIO,
        faults::Errno::NoSpace => Errno::ENOSPC,
        faults::Errno::TimedOut => Errno::ETIMEDOUT,
        faults::Errno::ReadOnly => Errno::EROFS,
    }
}

impl Reply {
    /// Replies with an error.
    pub fn refuse(self, errno: Errno) {
        self.word.fail(errno);
    }
}

impl KernelReply for Reply {
    fn send_here(self) {
        self.word.send();
    }

    fn fail(self, error: &io::Error) {
        self.refuse(errno_of(error));
    }
}

/// The error number of a failure of the contents.
pub fn errno_of(error: &io::Error) -> Errno {
    if error.kind() == io::ErrorKind::StorageFull { Errno::ENOSPC } else { Errno::EIO }
}

/// Creates replies.
#[derive(Clone, Debug)]
pub struct Replies {
    copy_queue: CopyQueue<ReplyPayload>,
}

impl Replies {
    /// Creates replies of which long ones go through `copy_queue`.
    pub fn new(copy_queue: CopyQueue<ReplyPayload>) -> Replies {
        Replies { copy_queue }
    }

    /// Creates the reply to a read of `data` from `start_bytes` of the system, whose memory is `share`.
    pub fn data(&self, reply: ReplyData, start_bytes: u64, data: Vec<u8>, share: Share) -> Reply {
        Reply { word: ReplyPayload::Data(reply, data, share), start_bytes, copy_queue: self.copy_queue.clone() }
    }

    /// Creates the reply to a write of `bytes`.
    pub fn written(&self, reply: ReplyWrite, bytes: u32) -> Reply {
        Reply { word: ReplyPayload::Written(reply, bytes), start_bytes: 0, copy_queue: self.copy_queue.clone() }
    }

    /// Creates the reply to any other request.
    pub fn without_data(&self, reply: ReplyEmpty) -> Reply {
        Reply { word: ReplyPayload::Done(reply), start_bytes: 0, copy_queue: self.copy_queue.clone() }
    }
}
