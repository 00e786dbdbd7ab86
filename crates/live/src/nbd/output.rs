//! The way back to a client: small replies leave from the thread that has them, large ones and those for a client that is
//! slow to read from a thread of the connection, in order.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;

use rustix::net::{SendFlags, send};

use super::stream::Stream;

/// A reply longer than this is sent by the connection's own thread: its copy would make other replies late.
const AT_ONCE_BYTES: usize = 64 << 10;
/// Payload of requests and replies that a connection may have under way; its reader waits beyond.
const OWED_BYTES_MAX: usize = 64 << 20;
/// Stacks of the threads of a connection: there may be a thousand.
pub const STACK_BYTES: usize = 256 << 10;

/// The write side of a connection.
#[derive(Debug)]
pub struct Output {
    stream: Stream,
    state: Mutex<State>,
    /// The sender has work, or room was made.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<(Vec<u8>, usize)>,
    /// The connection's thread runs, and has or looks for work.
    has_sender: bool,
    sending: bool,
    /// Nothing can be sent any more.
    broken: bool,
    /// No more is to come.
    closing: bool,
    owed_bytes: usize,
}

impl Output {
    /// The way back over `stream`.
    pub fn new(stream: Stream) -> Arc<Output> {
        Arc::new(Output { stream, state: Mutex::default(), changed: Condvar::new() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics with it")
    }

    /// Waits until there is room for `bytes` more under way; false when the connection is broken.
    pub fn reserve(&self, bytes: usize) -> bool {
        let mut state = self.state();
        while !state.broken && state.owed_bytes > 0 && state.owed_bytes + bytes > OWED_BYTES_MAX {
            state = self.changed.wait(state).expect("nobody panics with it");
        }
        state.owed_bytes += bytes;
        !state.broken
    }

    /// Sends, or has sent, a message for which `reserved` bytes were set aside.
    pub fn send(self: &Arc<Self>, message: Vec<u8>, reserved: usize) {
        let mut state = self.state();
        if state.broken {
            return;
        }
        let mut sent = 0;
        if state.waiting.is_empty() && !state.sending && message.len() <= AT_ONCE_BYTES {
            sent = match self.send_now(&message) {
                Ok(sent) => sent,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
                Err(_) => {
                    state.broken = true;
                    self.changed.notify_all();
                    return;
                }
            };
        }
        if sent == message.len() {
            state.owed_bytes -= reserved;
            if reserved > 0 {
                self.changed.notify_all();
            }
            return;
        }
        let rest = if sent == 0 { message } else { message[sent..].to_vec() };
        state.waiting.push_back((rest, reserved));
        if !state.has_sender {
            state.has_sender = true;
            let output = Arc::clone(self);
            let sender = thread::Builder::new().name("headstack-send".to_owned()).stack_size(STACK_BYTES);
            if sender.spawn(move || output.send_on()).is_err() {
                state.broken = true;
            }
        }
        self.changed.notify_all();
    }

    fn send_now(&self, message: &[u8]) -> io::Result<usize> {
        match self.stream.socket() {
            Some(socket) => Ok(send(socket, message, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)?),
            None => Ok(0),
        }
    }

    /// The connection's own thread: sends what waits until nothing more will come.
    fn send_on(&self) {
        let mut state = self.state();
        loop {
            if let Some((message, reserved)) = state.waiting.pop_front() {
                state.sending = true;
                drop(state);
                let sent = self.stream.write_all(&message);
                state = self.state();
                state.sending = false;
                state.owed_bytes -= reserved;
                state.broken |= sent.is_err();
                self.changed.notify_all();
            } else if state.closing || state.broken {
                state.has_sender = false;
                self.changed.notify_all();
                return;
            } else {
                state = self.changed.wait(state).expect("nobody panics with it");
            }
        }
    }

    /// Nothing more will be sent: waits for what waits, unless the client has gone.
    pub fn close(&self) {
        let mut state = self.state();
        state.closing = true;
        self.changed.notify_all();
        while state.has_sender && !state.broken {
            state = self.changed.wait(state).expect("nobody panics with it");
        }
        state.broken = true;
        self.changed.notify_all();
    }

    /// The connection ends at once, whatever is under way; its reader and its client find it closed.
    pub fn cut(&self) {
        self.state().broken = true;
        self.stream.shut();
        self.changed.notify_all();
    }
}
