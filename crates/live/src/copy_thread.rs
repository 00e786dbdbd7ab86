//! [`CopyThread`]: a thread that copies long reads to the kernel, which on the clock thread would delay other replies.

use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use crate::LiveError;
use crate::pacer::Submitter;

/// Longest read that is copied on the clock thread: waking another thread would take longer.
pub const AT_ONCE_BYTES: usize = 64 << 10;

/// A reply that can send itself.
pub trait DeferredReply: Send + 'static {
    /// Copies it, on the calling thread.
    fn send(self);
}

/// The thread.
#[derive(Debug)]
pub struct CopyThread<P> {
    queue: mpsc::Sender<Option<P>>,
    thread: JoinHandle<()>,
}

/// Queue of replies to send.
#[derive(Debug)]
pub struct CopyQueue<P>(mpsc::Sender<Option<P>>);

impl<P> Clone for CopyQueue<P> {
    fn clone(&self) -> Self {
        CopyQueue(self.0.clone())
    }
}

impl<P: DeferredReply> CopyQueue<P> {
    /// Queues a reply. After the end of an export no one waits for it.
    pub fn enqueue(&self, parcel: P) {
        drop(self.0.send(Some(parcel)));
    }
}

impl<P: DeferredReply> CopyThread<P> {
    /// Starts the thread.
    ///
    /// # Errors
    /// When no thread is available.
    pub fn start(submitter: Submitter) -> Result<CopyThread<P>, LiveError> {
        let (queue, work) = mpsc::channel::<Option<P>>();
        let thread = thread::Builder::new().name("headstack-send".to_owned());
        let thread = thread.spawn(move || {
            submitter.keep_up();
            work.iter().map_while(|parcel| parcel).for_each(P::send);
        });
        Ok(CopyThread { queue, thread: thread.map_err(LiveError::io("a thread for replies"))? })
    }

    /// Its queue.
    pub fn copy_queue(&self) -> CopyQueue<P> {
        CopyQueue(self.queue.clone())
    }

    /// Ends the thread: queued replies are dropped, since no one waits for them.
    pub fn stop(self) {
        drop(self.queue.send(None));
        // It only panics with the allocator, which ends the process.
        let _ = self.thread.join();
    }
}
