//! Answers to the kernel, from whichever thread has them.

use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use fuser::{Errno, ReplyData, ReplyEmpty, ReplyWrite};
use headstack_sim::{Outcome, faults};

use crate::LiveError;
use crate::budget::Share;
use crate::pacer::{Answer, Submitter};

/// A read longer than this is sent by a thread of the mount: its copy into the kernel would make other replies late.
const AT_ONCE_BYTES: usize = 64 << 10;

/// What is said if all is well.
#[derive(Debug)]
enum Word {
    Data(ReplyData, Vec<u8>, Share),
    Written(ReplyWrite, u32),
    Done(ReplyEmpty),
}

impl Word {
    fn send(self) {
        match self {
            Word::Data(reply, data, share) => {
                reply.data(&data);
                drop((data, share));
            }
            Word::Written(reply, bytes) => reply.written(bytes),
            Word::Done(reply) => reply.ok(),
        }
    }

    fn fail(self, errno: Errno) {
        match self {
            Word::Data(reply, ..) => reply.error(errno),
            Word::Written(reply, _) => reply.error(errno),
            Word::Done(reply) => reply.error(errno),
        }
    }
}

/// The answer to one request. The kernel waits for it without end: dropped unsent, it says EIO.
#[derive(Debug)]
pub struct Reply {
    word: Word,
    /// First byte in the system of what was read.
    start_bytes: u64,
    courier: mpsc::Sender<Option<Word>>,
}

impl Answer for Reply {
    /// Answers from the calling thread, or has a long read sent.
    fn send(self: Box<Self>, outcome: Outcome, _: Duration) {
        match (outcome, self.word) {
            (Outcome::Done, word @ Word::Data(..)) if matches!(&word, Word::Data(_, data, _) if data.len() > AT_ONCE_BYTES) =>
            {
                // After the end of the mount nobody waits for it.
                drop(self.courier.send(Some(word)));
            }
            (Outcome::Done, word) => word.send(),
            (Outcome::Refused(errno), word) => word.fail(kernel_errno(errno)),
            // Whoever waits behind a loop device would hang if a vanished drive did not answer.
            (Outcome::Failed(_) | Outcome::Vanished, word) => word.fail(Errno::EIO),
        }
    }

    fn data(&mut self) -> Option<(u64, &mut [u8])> {
        match &mut self.word {
            Word::Data(_, data, _) => Some((self.start_bytes, data)),
            Word::Written(..) | Word::Done(_) => None,
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
    /// Says that it cannot be.
    pub fn refuse(self, errno: Errno) {
        self.word.fail(errno);
    }

    /// Says that it is done, from the calling thread.
    pub fn send_here(self) {
        self.word.send();
    }
}

/// The thread that sends long reads.
#[derive(Debug)]
pub struct Courier {
    queue: mpsc::Sender<Option<Word>>,
    thread: JoinHandle<()>,
}

impl Courier {
    /// Waits for work.
    ///
    /// # Errors
    /// A thread that could not be had.
    pub fn start(submitter: Submitter) -> Result<Courier, LiveError> {
        let (queue, work) = mpsc::channel::<Option<Word>>();
        let thread = thread::Builder::new().name("headstack-send".to_owned());
        let thread = thread.spawn(move || {
            submitter.keep_up();
            work.iter().map_while(|word| word).for_each(Word::send);
        });
        Ok(Courier { queue, thread: thread.map_err(LiveError::io("a thread of the mount"))? })
    }

    /// Makes replies that it helps to send.
    pub fn replies(&self) -> Replies {
        Replies { courier: self.queue.clone() }
    }

    /// Ends the thread: what still is to be sent has nobody who waits for it.
    pub fn stop(self) {
        drop(self.queue.send(None));
        // It panics with the allocator at most, which ends the process.
        let _ = self.thread.join();
    }
}

/// Makes replies.
#[derive(Clone, Debug)]
pub struct Replies {
    courier: mpsc::Sender<Option<Word>>,
}

impl Replies {
    /// A read brought `data` from `start_bytes` of the system, for which `share` was taken.
    pub fn data(&self, reply: ReplyData, start_bytes: u64, data: Vec<u8>, share: Share) -> Reply {
        Reply { word: Word::Data(reply, data, share), start_bytes, courier: self.courier.clone() }
    }

    /// So many bytes were written.
    pub fn written(&self, reply: ReplyWrite, bytes: u32) -> Reply {
        Reply { word: Word::Written(reply, bytes), start_bytes: 0, courier: self.courier.clone() }
    }

    /// It was done.
    pub fn done(&self, reply: ReplyEmpty) -> Reply {
        Reply { word: Word::Done(reply), start_bytes: 0, courier: self.courier.clone() }
    }
}
