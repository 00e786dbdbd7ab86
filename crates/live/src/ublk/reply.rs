//! Replies to the kernel, sent by any thread.

use std::io;
use std::time::Duration;

use headstack_sim::{Outcome, faults};
use headstack_ublk::{Completer, Ticket};

use crate::budget::Share;
use crate::copy_thread::{AT_ONCE_BYTES, CopyQueue, DeferredReply};
use crate::kernel::KernelReply;
use crate::pacer::Answer;

/// The reply on success.
#[derive(Debug)]
pub struct ReplyPayload {
    ticket: Ticket,
    way: Completer,
    /// Bytes that were transferred, or cleared.
    length_bytes: u32,
    /// Data of a read, with their memory.
    data: Vec<u8>,
    share: Option<Share>,
}

impl DeferredReply for ReplyPayload {
    fn send(self) {
        let ReplyPayload { ticket, way, length_bytes, data, share } = self;
        // A request that the kernel has given up needs no answer: the device is being removed.
        let brought = if data.is_empty() { Ok(()) } else { way.bring(&ticket, &data) };
        drop((data, share));
        way.complete(ticket, brought.map(|()| length_bytes).map_err(|_| libc::EIO));
    }
}

/// The reply to one request.
#[derive(Debug)]
pub struct Reply {
    word: ReplyPayload,
    /// Address in the system of the data that were read.
    start_bytes: u64,
    copy_queue: CopyQueue<ReplyPayload>,
}

impl Reply {
    /// Creates the reply to a request of `length_bytes` without data.
    pub fn without_data(
        ticket: Ticket,
        way: &Completer,
        length_bytes: u32,
        copy_queue: &CopyQueue<ReplyPayload>,
    ) -> Reply {
        let word = ReplyPayload { ticket, way: way.clone(), length_bytes, data: Vec::new(), share: None };
        Reply { word, start_bytes: 0, copy_queue: copy_queue.clone() }
    }

    /// Adds the data of a read from `start_bytes` of the system, whose memory is `share`.
    pub fn with_data(self, start_bytes: u64, data: Vec<u8>, share: Share) -> Reply {
        Reply { word: ReplyPayload { data, share: Some(share), ..self.word }, start_bytes, ..self }
    }

    /// Replies with an error.
    pub fn refuse(self, errno: i32) {
        self.word.way.complete(self.word.ticket, Err(errno));
    }
}

impl KernelReply for Reply {
    fn send_here(self) {
        self.word.send();
    }

    fn fail(self, error: &io::Error) {
        self.refuse(if error.kind() == io::ErrorKind::StorageFull { libc::ENOSPC } else { libc::EIO });
    }
}

impl Answer for Reply {
    fn send(self: Box<Self>, outcome: Outcome, _: Duration) {
        match outcome {
            Outcome::Done if self.word.data.len() > AT_ONCE_BYTES => self.copy_queue.enqueue(self.word),
            Outcome::Done => self.word.send(),
            Outcome::Refused(errno) => self.refuse(kernel_errno(errno)),
            Outcome::Failed(_) | Outcome::Vanished => self.refuse(libc::EIO),
        }
    }

    fn data(&mut self) -> Option<(u64, &mut [u8])> {
        if self.word.data.is_empty() { None } else { Some((self.start_bytes, &mut self.word.data)) }
    }
}

/// The block layer has no error for a read-only device: it makes EIO of it.
fn kernel_errno(errno: faults::Errno) -> i32 {
    match errno {
        faults::Errno::Io => libc::EIO,
        faults::Errno::NoSpace => libc::ENOSPC,
        faults::Errno::TimedOut => libc::ETIMEDOUT,
        faults::Errno::ReadOnly => libc::EROFS,
    }
}
