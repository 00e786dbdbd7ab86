//! A client of ordinary priority beside the others: what it waits for, they wait for.
//!
//! Its requests go over a unix socket to a punctual thread that answers each a millisecond after it has come, and that has
//! nothing to do with the model. So what it measures beyond that millisecond is the path's: the way there, and the way of a
//! process that slept back to a processor.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use super::Flags;
use super::turns::Times;
use crate::wall::{Duty, be_punctual};

/// What the answer takes.
const ANSWER: Duration = Duration::from_millis(1);
/// From one request to the next.
const PAUSE: Duration = Duration::from_millis(4);
/// How often it looks whether there are clients that it could speak for.
const IDLE: Duration = Duration::from_millis(50);

/// Answers until the other end is closed.
pub fn answer(socket: &UnixStream, realtime: bool) -> io::Result<()> {
    be_punctual(Duty::Path, realtime);
    let (mut socket, mut request) = (socket, [0]);
    while socket.read(&mut request)? > 0 {
        thread::sleep(ANSWER);
        socket.write_all(&request)?;
    }
    Ok(())
}

/// Asks, while there is traffic, until the session ends.
pub fn ask(socket: &UnixStream, flags: &Flags, times: &Mutex<Times>) -> io::Result<()> {
    let (mut socket, mut reply) = (socket, [0]);
    while !flags.is_closing() {
        if !flags.has_traffic() {
            thread::sleep(IDLE);
            continue;
        }
        let begun = Instant::now();
        socket.write_all(&[1])?;
        socket.read_exact(&mut reply)?;
        let waited = begun.elapsed().saturating_sub(ANSWER);
        times.lock().expect("nobody panics with it").record(waited);
        thread::sleep(PAUSE);
    }
    Ok(())
}
