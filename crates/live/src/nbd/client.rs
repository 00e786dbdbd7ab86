//! [`Client`]: a minimal client for floors, tests and benchmarks: any option, any request, any queue depth.

use std::io;

use headstack_nbd::{self as wire, Framing, Header, option, reply};

use super::input::Input;
use crate::stream::Stream;

/// A connection to a server.
#[derive(Debug)]
pub struct Client {
    stream: Stream,
    input: Input,
    /// Size of the export in bytes.
    pub capacity_bytes: u64,
    /// Transmission flags of the export.
    pub flags: u16,
    /// Format of requests and replies.
    pub framing: Framing,
}

/// A reply to an option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptionReply {
    /// Type, one of [`reply`].
    pub kind: u32,
    /// Data of the reply.
    pub data: Vec<u8>,
}

/// A chunk of a structured reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Cookie of its request.
    pub cookie: u64,
    /// Whether it is the last one of the reply.
    pub is_last: bool,
    /// Type, one of [`wire::chunk`].
    pub kind: u16,
    /// Data of the chunk.
    pub data: Vec<u8>,
}

impl Client {
    /// Chooses an export over a new connection, with simple replies.
    ///
    /// # Errors
    /// The stream's error; that the server does not have the export.
    pub fn connect(stream: Stream, export: &str) -> io::Result<Client> {
        let mut client = Client::greet(stream, wire::HANDSHAKE_FIXED_NEWSTYLE | wire::HANDSHAKE_NO_ZEROES)?;
        client.go(export)?;
        Ok(client)
    }

    /// Receives a server's greeting, and answers with `flags`.
    ///
    /// # Errors
    /// The stream's error; that the peer is no server.
    pub fn greet(stream: Stream, flags: u16) -> io::Result<Client> {
        let mut input = Input::new(stream.clone());
        let greeting: [u8; 18] = input.array()?;
        if greeting[..8] != wire::MAGIC.to_be_bytes() || greeting[8..16] != wire::OPTION_MAGIC.to_be_bytes() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "no NBD server"));
        }
        stream.write_all(&u32::from(flags).to_be_bytes())?;
        Ok(Client { stream, input, capacity_bytes: 0, flags: 0, framing: Framing::Simple })
    }

    /// Sends an option. Returns the replies to it, up to the final one.
    ///
    /// # Errors
    /// The stream's error; an invalid reply.
    pub fn option(&mut self, option: u32, data: &[u8]) -> io::Result<Vec<OptionReply>> {
        self.send_option(option, data)?;
        let mut replies = Vec::new();
        loop {
            let head: [u8; 20] = self.input.array()?;
            let word = |at: usize| u32::from_be_bytes(head[at..at + 4].try_into().expect("four bytes"));
            if head[..8] != wire::OPTION_REPLY_MAGIC.to_be_bytes() || word(8) != option {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "no reply to this option"));
            }
            let kind = word(12);
            replies.push(OptionReply { kind, data: self.input.bytes(word(16) as usize)?.to_vec() });
            if kind == reply::ACK || kind & reply::IS_ERROR != 0 {
                return Ok(replies);
            }
        }
    }

    /// Sends an option without waiting for replies.
    ///
    /// # Errors
    /// The stream's error.
    pub fn send_option(&mut self, option: u32, data: &[u8]) -> io::Result<()> {
        let mut message = wire::OPTION_MAGIC.to_be_bytes().to_vec();
        message.extend_from_slice(&option.to_be_bytes());
        message.extend_from_slice(&(data.len() as u32).to_be_bytes());
        message.extend_from_slice(data);
        self.stream.write_all(&message)
    }

    /// Chooses an export.
    ///
    /// # Errors
    /// The stream's error; that the server does not have the export.
    pub fn go(&mut self, export: &str) -> io::Result<()> {
        for told in self.option(option::GO, &wire::named(export, &[0, 0]))? {
            match told.kind {
                reply::INFO if told.data.len() == 12 && told.data[..2] == wire::info::EXPORT.to_be_bytes() => {
                    self.capacity_bytes = u64::from_be_bytes(told.data[2..10].try_into().expect("eight bytes"));
                    self.flags = u16::from_be_bytes(told.data[10..].try_into().expect("two bytes"));
                }
                reply::INFO | reply::ACK => {}
                _ => {
                    let why = String::from_utf8_lossy(&told.data).into_owned();
                    return Err(io::Error::new(io::ErrorKind::NotFound, why));
                }
            }
        }
        Ok(())
    }

    /// Sends a request, and the payload of a write.
    ///
    /// # Errors
    /// The stream's error.
    pub fn send(&mut self, header: &Header, payload: &[u8]) -> io::Result<()> {
        let mut message = header.to_bytes(self.framing);
        message.extend_from_slice(payload);
        self.stream.write_all(&message)
    }

    /// Waits for a simple reply: returns its cookie and its error, 0 for none. `data_of` provides the memory for a
    /// read's data.
    ///
    /// # Errors
    /// The stream's error; an invalid reply.
    pub fn receive<'b>(&mut self, data_of: impl FnOnce(u64) -> &'b mut [u8]) -> io::Result<(u64, u32)> {
        let head: [u8; 16] = self.input.array()?;
        if head[..4] != wire::SIMPLE_REPLY_MAGIC.to_be_bytes() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "not a reply"));
        }
        let error = u32::from_be_bytes(head[4..8].try_into().expect("four bytes"));
        let cookie = u64::from_be_bytes(head[8..].try_into().expect("eight bytes"));
        if error == 0 {
            self.input.exact(data_of(cookie))?;
        }
        Ok((cookie, error))
    }

    /// Negotiates this format of requests and replies.
    ///
    /// # Errors
    /// The stream's error; that the server does not support it.
    pub fn frame(&mut self, framing: Framing) -> io::Result<()> {
        let option = match framing {
            Framing::Simple => return Ok(()),
            Framing::Structured => option::STRUCTURED_REPLY,
            Framing::Extended => option::EXTENDED_HEADERS,
        };
        if self.option(option, &[])?.iter().any(|told| told.kind != reply::ACK) {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "the server does not support such replies"));
        }
        self.framing = framing;
        Ok(())
    }

    /// Waits for a chunk of a reply.
    ///
    /// # Errors
    /// The stream's error; an invalid chunk.
    pub fn receive_chunk(&mut self) -> io::Result<Chunk> {
        let head = self.input.bytes(self.framing.chunk_bytes())?.to_vec();
        let half = |at: usize| u16::from_be_bytes(head[at..at + 2].try_into().expect("two bytes"));
        let long = |at: usize| u64::from_be_bytes(head[at..at + 8].try_into().expect("eight bytes"));
        let (magic, length) = match self.framing {
            Framing::Simple | Framing::Structured => {
                let length = u32::from_be_bytes(head[16..].try_into().expect("four bytes"));
                (wire::STRUCTURED_REPLY_MAGIC, u64::from(length))
            }
            Framing::Extended => (wire::EXTENDED_REPLY_MAGIC, long(24)),
        };
        if head[..4] != magic.to_be_bytes() || length > 2 * u64::from(wire::PAYLOAD_BYTES_MAX) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "not a chunk"));
        }
        Ok(Chunk {
            cookie: long(8),
            is_last: half(4) & wire::chunk::FLAG_DONE != 0,
            kind: half(6),
            data: self.input.bytes(length as usize)?.to_vec(),
        })
    }

    /// Waits for bytes outside of a reply, such as the answer to the oldest option.
    ///
    /// # Errors
    /// The stream's error, including its end.
    pub fn receive_bytes(&mut self, length: usize) -> io::Result<Vec<u8>> {
        Ok(self.input.bytes(length)?.to_vec())
    }

    /// The underlying stream.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }
}
