//! [`Reply`]: a reply that waits for its completion time, and its encoding of the outcome.

use std::sync::Arc;
use std::time::{Duration, Instant};

use headstack_nbd::{self as wire, Errno, To, chunk};
use headstack_sim::{Outcome, faults};

use super::output::{Output, Room};
use super::sparse;
use crate::pacer::Answer;
use crate::witness::{Client, Issued};

/// A reply, sent at the completion time of the model.
#[derive(Debug)]
pub struct Reply {
    /// Connection to the client.
    pub output: Arc<Output>,
    /// The request that it answers.
    pub to: To,
    /// The message on success.
    pub message: Vec<u8>,
    /// First byte of the export in the system's address space.
    pub start_bytes: u64,
    /// Length of a read's data.
    pub read_bytes: Option<u32>,
    /// Room reserved for sending it.
    pub room: Room,
    /// The client.
    pub client: Arc<Client>,
    /// Issue time of the request, as far as known.
    pub issued: Issued,
}

impl Answer for Reply {
    fn send(self: Box<Self>, outcome: Outcome, took: Duration) {
        let message = match outcome {
            Outcome::Done => self.message,
            Outcome::Refused(errno) => {
                let mut message = Vec::new();
                error(&mut message, self.to, wire_errno(errno), None);
                message
            }
            Outcome::Failed(at) => {
                let mut message = Vec::new();
                let at = at.map(|bytes| bytes.saturating_sub(self.start_bytes));
                error(&mut message, self.to, Errno::Io, at);
                message
            }
            // A client that waits for a vanished device would wait forever.
            Outcome::Vanished => return self.output.cut(),
        };
        let (turns, output, room) = (&self.client.turns, self.output, self.room);
        turns.answered(Instant::now(), self.issued, took, message.len(), || output.send(message, room));
    }

    fn data(&mut self) -> Option<(u64, &mut [u8])> {
        let length_bytes = self.read_bytes?;
        if self.to.framing.has_chunks() {
            sparse::put_in_zeros(&mut self.message, self.to, length_bytes);
        }
        let from = self.message.len() - length_bytes as usize;
        Some((self.start_bytes + self.to.offset_bytes, &mut self.message[from..]))
    }
}

/// Returns the protocol's error for a fault: it has no time-out, and for a read-only device only "not permitted".
fn wire_errno(errno: faults::Errno) -> Errno {
    match errno {
        faults::Errno::Io | faults::Errno::TimedOut => Errno::Io,
        faults::Errno::NoSpace => Errno::NoSpace,
        faults::Errno::ReadOnly => Errno::NotPermitted,
    }
}

impl Reply {
    /// Replies with an error.
    pub fn refuse(self, errno: Errno) {
        let mut message = Vec::new();
        error(&mut message, self.to, errno, None);
        let (turns, output, room) = (&self.client.turns, self.output, self.room);
        turns.answered(Instant::now(), self.issued, Duration::ZERO, message.len(), || output.send(message, room));
    }
}

/// Appends an error, with its offset if known.
pub fn error(into: &mut Vec<u8>, to: To, errno: Errno, at_bytes: Option<u64>) {
    if !to.framing.has_chunks() {
        return wire::simple(into, to.cookie, errno as u32);
    }
    let (kind, length) = if at_bytes.is_some() { (chunk::ERROR_OFFSET, 14) } else { (chunk::ERROR, 6) };
    wire::chunk_header(into, to, chunk::FLAG_DONE, kind, length);
    into.extend_from_slice(&(errno as u32).to_be_bytes());
    into.extend_from_slice(&0u16.to_be_bytes());
    into.extend(at_bytes.into_iter().flat_map(u64::to_be_bytes));
}

#[cfg(test)]
pub mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::budget::Budget;
    use crate::stream::{ClientTimeout, Stream};
    use crate::witness::WitnessState;
    use headstack_nbd::Framing;

    /// The bytes that a client receives as reply to cookie 7 of an export that begins at 1 MiB.
    pub fn reply_bytes(framing: Framing, outcome: Outcome) -> Vec<u8> {
        bytes_received(framing, |reply| Box::new(reply).send(outcome, Duration::ZERO))
    }

    /// The bytes that a client receives when `answer` uses such a reply.
    pub fn bytes_received(framing: Framing, answer: impl FnOnce(Reply)) -> Vec<u8> {
        let (ours, theirs) = UnixStream::pair().expect("sockets");
        let budget = Budget::new(0);
        let patience = ClientTimeout { stall: Duration::from_secs(10), budget: budget.clone() };
        let output = Output::new(Stream::socket_of(ours), patience);
        let room = output.reserve(3, budget.share()).expect("room");
        let client = WitnessState::new().meet(output.stream(), false);
        let issued = client.turns.arrived(Instant::now(), Instant::now(), 0);
        let message = b"yes".to_vec();
        let to = To { framing, cookie: 7, offset_bytes: 0 };
        answer(Reply { output, to, message, start_bytes: 1 << 20, read_bytes: None, room, client, issued });
        let mut received = Vec::new();
        std::io::Read::read_to_end(&mut &theirs, &mut received).expect("an end");
        received
    }

    #[test]
    fn a_failure_is_reported_with_its_place_if_known() {
        assert_eq!(reply_bytes(Framing::Structured, Outcome::Done), b"yes");
        assert_eq!(reply_bytes(Framing::Structured, Outcome::Vanished), b"");
        let [io, cookie] = [5u32.to_be_bytes().to_vec(), 7u64.to_be_bytes().to_vec()];
        let simple = [&wire::SIMPLE_REPLY_MAGIC.to_be_bytes()[..], &io, &cookie].concat();
        assert_eq!(reply_bytes(Framing::Simple, Outcome::Failed(Some((1 << 20) + 512))), simple);
        let chunk = |kind: u16, length: u32| {
            let head = [&wire::STRUCTURED_REPLY_MAGIC.to_be_bytes()[..], &1u16.to_be_bytes(), &kind.to_be_bytes()];
            [&head.concat()[..], &cookie, &length.to_be_bytes(), &io, &[0, 0]].concat()
        };
        assert_eq!(reply_bytes(Framing::Structured, Outcome::Failed(None)), chunk(chunk::ERROR, 6));
        let placed = [&chunk(chunk::ERROR_OFFSET, 14)[..], &512u64.to_be_bytes()].concat();
        assert_eq!(
            reply_bytes(Framing::Structured, Outcome::Failed(Some((1 << 20) + 512))),
            placed,
            "within the export"
        );
    }
}
