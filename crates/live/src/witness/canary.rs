//! The canary: a client of ordinary priority, whose waits are representative of other clients.
//!
//! Its requests go over a unix socket to a punctual thread that answers each request after 1 ms, without the model. Any
//! excess of the measured times over 1 ms is therefore due to the path: the transfer, and the time until a sleeping
//! process gets a processor again.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use super::Flags;
use super::turns::Times;
use crate::wall::{ThreadRole, be_punctual};

/// Service time of the probe's answers.
const ANSWER: Duration = Duration::from_millis(1);
/// Time between requests.
const PAUSE: Duration = Duration::from_millis(4);
/// Interval of checks for traffic while there is none.
const IDLE: Duration = Duration::from_millis(50);

/// Answers requests until the peer closes the socket.
pub fn answer(socket: &UnixStream, realtime: bool) -> io::Result<()> {
    be_punctual(ThreadRole::Path, realtime);
    let (mut socket, mut request) = (socket, [0]);
    while socket.read(&mut request)? > 0 {
        thread::sleep(ANSWER);
        socket.write_all(&request)?;
    }
    Ok(())
}

/// Sends requests while there is traffic, until the session ends.
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
