//! A thread that copies long reads to the kernel: on the clock thread that would make other replies late.

use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use crate::LiveError;
use crate::pacer::Submitter;

/// What is no longer is copied on the clock thread: to wake another one would take longer.
pub const AT_ONCE_BYTES: usize = 64 << 10;

/// A reply that knows its way.
pub trait Parcel: Send + 'static {
    /// Copies it, on the calling thread.
    fn send(self);
}

/// The thread.
#[derive(Debug)]
pub struct Courier<P> {
    queue: mpsc::Sender<Option<P>>,
    thread: JoinHandle<()>,
}

/// Where it finds what is to be sent.
#[derive(Debug)]
pub struct Bag<P>(mpsc::Sender<Option<P>>);

impl<P> Clone for Bag<P> {
    fn clone(&self) -> Self {
        Bag(self.0.clone())
    }
}

impl<P: Parcel> Bag<P> {
    /// Has it sent. After the end of an export nobody waits for it.
    pub fn put(&self, parcel: P) {
        drop(self.0.send(Some(parcel)));
    }
}

impl<P: Parcel> Courier<P> {
    /// Waits for work.
    ///
    /// # Errors
    /// A thread that could not be had.
    pub fn start(submitter: Submitter) -> Result<Courier<P>, LiveError> {
        let (queue, work) = mpsc::channel::<Option<P>>();
        let thread = thread::Builder::new().name("headstack-send".to_owned());
        let thread = thread.spawn(move || {
            submitter.keep_up();
            work.iter().map_while(|parcel| parcel).for_each(P::send);
        });
        Ok(Courier { queue, thread: thread.map_err(LiveError::io("a thread for replies"))? })
    }

    /// Where it finds its work.
    pub fn bag(&self) -> Bag<P> {
        Bag(self.queue.clone())
    }

    /// Ends the thread: what still is to be sent has nobody who waits for it.
    pub fn stop(self) {
        drop(self.queue.send(None));
        // It panics with the allocator at most, which ends the process.
        let _ = self.thread.join();
    }
}
