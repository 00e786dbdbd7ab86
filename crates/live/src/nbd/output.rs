//! [`Output`]: the write side of a connection. Small replies are sent by the thread that has them, large ones and those
//! to a slow client by a thread of the connection, in order.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;

use crate::budget::Share;
use crate::stream::{ClientTimeout, Stream};
use crate::wall::step_behind_the_clock;

/// Longest reply that is sent at once; a longer copy would delay other replies, so the connection's own thread sends
/// it.
const AT_ONCE_BYTES: usize = 64 << 10;
/// Limit of the memory of a connection's pending replies; beyond it, its reader waits.
const OWED_BYTES_MAX: usize = 64 << 20;
/// Overhead of a reply under way: its entries in queues, here and at the clock.
const KEEPING_BYTES: usize = 512;
/// Stack size of a connection's threads, of which there may be a thousand.
pub const STACK_BYTES: usize = 256 << 10;

/// The write side of a connection.
#[derive(Debug)]
pub struct Output {
    stream: Stream,
    state: Mutex<State>,
    /// Signals that the sender has work, or room was made.
    changed: Condvar,
    /// Patience with a slow client.
    patience: ClientTimeout,
    /// Whether the handshake is over: then the client is not displaced for others.
    agreed: AtomicBool,
}

/// Room reserved for a reply, which permits sending one message.
#[derive(Debug)]
pub struct Room {
    bytes: usize,
    /// Its memory, which is freed once the message is sent.
    share: Share,
}

impl Room {
    /// Sets the memory of the message.
    pub fn holds(&mut self, share: Share) {
        self.share = share;
    }

    /// Takes the memory of the message from `share`.
    pub fn takes_over(&mut self, share: &mut Share, bytes: u64) {
        self.share.take_over(share, bytes);
    }
}

#[derive(Debug, Default)]
struct State {
    /// Messages, with the number of bytes sent.
    waiting: VecDeque<(Vec<u8>, usize, Room)>,
    /// Whether the connection's thread is running.
    has_sender: bool,
    sending: bool,
    /// Whether sending has failed.
    broken: bool,
    /// Whether no more messages will follow.
    closing: bool,
    owed_bytes: usize,
    /// Whether the reader waits for room.
    reader_waits: bool,
}

impl Output {
    /// Creates the write side of `stream`.
    pub fn new(stream: Stream, patience: ClientTimeout) -> Arc<Output> {
        Arc::new(Output {
            stream,
            patience,
            state: Mutex::default(),
            changed: Condvar::new(),
            agreed: AtomicBool::new(false),
        })
    }

    /// The underlying stream.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Patience with the client.
    pub fn patience(&self) -> &ClientTimeout {
        &self.patience
    }

    /// Whether the client can still receive.
    pub fn is_open(&self) -> bool {
        !self.state().broken
    }

    /// Marks the handshake as over.
    pub fn agree(&self) {
        self.agreed.store(true, Ordering::Release);
    }

    /// Whether it is still in its handshake and has not been displaced yet.
    pub fn may_be_displaced(&self) -> bool {
        !self.agreed.load(Ordering::Acquire) && !self.state().broken
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("the lock is not poisoned")
    }

    /// Waits for room for a reply of `bytes`, with the memory `share`; `None` if the connection is broken.
    pub fn reserve(&self, bytes: usize, share: Share) -> Option<Room> {
        let bytes = bytes + KEEPING_BYTES;
        let mut state = self.state();
        while !state.broken && state.owed_bytes > 0 && state.owed_bytes + bytes > OWED_BYTES_MAX {
            state.reader_waits = true;
            state = self.changed.wait(state).expect("the lock is not poisoned");
        }
        state.reader_waits = false;
        state.owed_bytes += bytes;
        (!state.broken).then_some(Room { bytes, share })
    }

    /// Sends a message, or queues it; never waits for the client.
    pub fn send(self: &Arc<Self>, message: Vec<u8>, room: Room) {
        let mut state = self.state();
        let sent = if message.len() <= AT_ONCE_BYTES { self.send_now(&mut state, &message) } else { 0 };
        if state.broken {
            return;
        }
        if sent == message.len() {
            return self.free(&mut state, room);
        }
        state.waiting.push_back((message, sent, room));
        if !state.has_sender {
            state.has_sender = true;
            let output = Arc::clone(self);
            let sender = thread::Builder::new().name("headstack-send".to_owned()).stack_size(STACK_BYTES);
            if sender.spawn(move || output.send_on()).is_err() {
                (state.broken, state.has_sender) = (true, false);
                self.stream.shut();
            }
        }
        self.changed.notify_all();
    }

    /// Sends messages together from the reader's thread, which waits if too much is pending. `share` is their memory;
    /// both are empty afterwards if not all could be sent at once.
    ///
    /// # Errors
    /// When the connection is broken.
    pub fn send_together(self: &Arc<Self>, messages: &mut Vec<u8>, share: &mut Share) -> io::Result<()> {
        let sent = self.send_now(&mut self.state(), messages);
        if sent < messages.len() {
            let mut rest = std::mem::take(messages);
            rest.drain(..sent);
            let share = std::mem::replace(share, self.patience.budget.share());
            let room = self.reserve(rest.len(), share).ok_or(io::ErrorKind::BrokenPipe)?;
            self.send(rest, room);
        }
        Ok(())
    }

    /// Sends as much as the client has room for, unless other messages are before it; returns the number of bytes sent.
    fn send_now(&self, state: &mut State, message: &[u8]) -> usize {
        if state.broken || state.sending || !state.waiting.is_empty() {
            return 0;
        }
        self.stream.write_at_once(message).unwrap_or_else(|_| {
            state.broken = true;
            self.changed.notify_all();
            0
        })
    }

    fn free(&self, state: &mut State, Room { bytes, share }: Room) {
        drop(share);
        state.owed_bytes -= bytes;
        // Notifying no one would still cost a system call per reply.
        if state.reader_waits {
            self.changed.notify_all();
        }
    }

    /// The connection's own thread: sends queued messages until no more will follow.
    fn send_on(&self) {
        step_behind_the_clock();
        let mut state = self.state();
        loop {
            if let Some((message, from, room)) = state.waiting.pop_front() {
                state.sending = true;
                drop(state);
                let sent = self.stream.write_patiently(&message[from..], &self.patience);
                drop(message);
                if sent.is_err() {
                    // A client that makes others wait is disconnected.
                    self.stream.shut();
                }
                state = self.state();
                state.sending = false;
                state.broken |= sent.is_err();
                self.free(&mut state, room);
            } else if state.closing || state.broken {
                state.has_sender = false;
                return self.changed.notify_all();
            } else {
                state = self.changed.wait(state).expect("the lock is not poisoned");
            }
            if state.broken {
                state.waiting.clear();
                self.changed.notify_all();
            }
        }
    }

    /// Waits until queued messages are sent, unless the client has left.
    pub fn close(&self) {
        let mut state = self.state();
        state.closing = true;
        self.changed.notify_all();
        while state.has_sender {
            state = self.changed.wait(state).expect("the lock is not poisoned");
        }
        state.broken = true;
    }

    /// Closes the connection at once, even with requests under way; its reader and its client see it closed.
    pub fn cut(&self) {
        self.state().broken = true;
        self.stream.shut();
        self.changed.notify_all();
    }
}
