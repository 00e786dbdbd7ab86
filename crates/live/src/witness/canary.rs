//! The canary: a client of ordinary priority, whose waits are representative of other clients.
//!
//! Its requests go over a unix socket to a punctual thread that answers each after a millisecond, without the model. So
//! the excess of its measured times over that millisecond is due to the path: the transfer, and the time for a sleeping
//! process to get a processor again.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use super::Flags;
use super::turns::Times;
use crate::wall::{ThreadRole, be_punctual};

/// Service time of the answer.
const ANSWER: Duration = Duration::from_millis(1);
/// Time between requests.
const PAUSE: Duration = Duration::from_millis(4);
/// Interval at which it checks whether there are clients to represent.
const IDLE: Duration = Duration::from_millis(50);

/// Answers requests until the other end is closed.
pub fn answer(socket: &UnixStream, realtime: bool) -> io::Result<()> {
    be_punctual(ThreadRole::Path, realtime);
    let (mut socket, mut request) = (socket, [0]);
    while socket.read(&mut request)? > 0 {
        thread::sleep(ANSWER);
        socket.write_all(&request)?;
    }
    Ok(())
}

/// Sends requests, while there is traffic, until the session ends.
pub fn send_probes(socket: &UnixStream, flags: &Flags, times: &Mutex<Times>) -> io::Result<()> {
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
        times.lock().expect("the lock is not poisoned").record(waited);
        thread::sleep(PAUSE);
    }
    Ok(())
}
