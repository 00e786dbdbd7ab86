//! The way back to a client: small replies leave from the thread that has them, large ones and those for a client that is
//! slow to read from a thread of the connection, in order.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;

use crate::budget::Share;
use crate::stream::{Patience, Stream};
use crate::wall::step_behind_the_clock;

/// A reply longer than this is sent by the connection's own thread: its copy would make other replies late.
const AT_ONCE_BYTES: usize = 64 << 10;
/// What the replies that a connection has under way may take; its reader waits beyond.
const OWED_BYTES_MAX: usize = 64 << 20;
/// What a reply takes beside its message while it is under way: its place in queues, here and at the clock.
const KEEPING_BYTES: usize = 512;
/// Stacks of the threads of a connection: there may be a thousand.
pub const STACK_BYTES: usize = 256 << 10;

/// The write side of a connection.
#[derive(Debug)]
pub struct Output {
    stream: Stream,
    state: Mutex<State>,
    /// The sender has work, or room was made.
    changed: Condvar,
    /// With who is slow to read.
    patience: Patience,
    /// The handshake is over: whoever is served is not turned out for others.
    agreed: AtomicBool,
}

/// Room that was set aside for a reply: whoever has it sends one message.
#[derive(Debug)]
pub struct Room {
    bytes: usize,
    /// The memory of it, which is free once the message is sent.
    share: Share,
}

impl Room {
    /// The memory of the message is this.
    pub fn holds(&mut self, share: Share) {
        self.share = share;
    }

    /// The memory of the message is taken from this.
    pub fn takes_over(&mut self, share: &mut Share, bytes: u64) {
        self.share.take_over(share, bytes);
    }
}

#[derive(Debug, Default)]
struct State {
    /// Messages, and how much of each is sent.
    waiting: VecDeque<(Vec<u8>, usize, Room)>,
    /// The connection's thread runs, and has or looks for work.
    has_sender: bool,
    sending: bool,
    /// Nothing can be sent any more.
    broken: bool,
    /// No more is to come.
    closing: bool,
    owed_bytes: usize,
    /// Somebody waits for room.
    reader_waits: bool,
}

impl Output {
    /// The way back over `stream`.
    pub fn new(stream: Stream, patience: Patience) -> Arc<Output> {
        Arc::new(Output {
            stream,
            patience,
            state: Mutex::default(),
            changed: Condvar::new(),
            agreed: AtomicBool::new(false),
        })
    }

    /// What it goes over.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// How long the client is waited for.
    pub fn patience(&self) -> &Patience {
        &self.patience
    }

    /// Somebody is there to be answered.
    pub fn is_open(&self) -> bool {
        !self.state().broken
    }

    /// The handshake is over.
    pub fn agree(&self) {
        self.agreed.store(true, Ordering::Release);
    }

    /// It still shakes hands, and nobody has displaced it yet.
    pub fn may_be_displaced(&self) -> bool {
        !self.agreed.load(Ordering::Acquire) && !self.state().broken
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics with it")
    }

    /// Waits until there is room for a reply of `bytes`, whose memory is `share`; `None` when the connection is broken.
    pub fn reserve(&self, bytes: usize, share: Share) -> Option<Room> {
        let bytes = bytes + KEEPING_BYTES;
        let mut state = self.state();
        while !state.broken && state.owed_bytes > 0 && state.owed_bytes + bytes > OWED_BYTES_MAX {
            state.reader_waits = true;
            state = self.changed.wait(state).expect("nobody panics with it");
        }
        state.reader_waits = false;
        state.owed_bytes += bytes;
        (!state.broken).then_some(Room { bytes, share })
    }

    /// Sends, or has sent, a message; never waits for the client.
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

    /// Sends messages that leave together from the reader's thread, which waits where the client is owed too much already.
    /// `share` is their memory; both are empty afterwards where not all could be sent at once.
    ///
    /// # Errors
    /// The connection is broken.
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

    /// Sends what the client has room for, unless others are before it; returns how much that was.
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
        // A word to nobody would be a system call for every reply.
        if state.reader_waits {
            self.changed.notify_all();
        }
    }

    /// The connection's own thread: sends what waits until nothing more will come.
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
                    // A client that lets others wait hears no more, and is heard no more.
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
                state = self.changed.wait(state).expect("nobody panics with it");
            }
            if state.broken {
                state.waiting.clear();
                self.changed.notify_all();
            }
        }
    }

    /// Nothing more will be sent: waits for what waits, unless the client has gone.
    pub fn close(&self) {
        let mut state = self.state();
        state.closing = true;
        self.changed.notify_all();
        while state.has_sender {
            state = self.changed.wait(state).expect("nobody panics with it");
        }
        state.broken = true;
    }

    /// The connection ends at once, whatever is under way; its reader and its client find it closed.
    pub fn cut(&self) {
        self.state().broken = true;
        self.stream.shut();
        self.changed.notify_all();
    }
}
