//! A client, as little as floors, tests and benchmarks need: simple replies, any number of requests under way.

use std::io;

use super::input::Input;
use super::stream::Stream;
use super::wire::{self, Header, option, reply};

/// A connection to an export.
#[derive(Debug)]
pub struct Client {
    stream: Stream,
    input: Input,
    /// Bytes of the export.
    pub capacity_bytes: u64,
    /// What it can do.
    pub flags: u16,
}

impl Client {
    /// Chooses an export over a fresh connection.
    ///
    /// # Errors
    /// The stream's; a server that does not have it.
    pub fn connect(stream: Stream, export: &str) -> io::Result<Client> {
        let mut input = Input::new(stream.clone());
        let greeting: [u8; 18] = input.array()?;
        if greeting[..8] != wire::MAGIC.to_be_bytes() || greeting[8..16] != wire::OPTION_MAGIC.to_be_bytes() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "no NBD server"));
        }
        let mut hello = 3u32.to_be_bytes().to_vec();
        hello.extend_from_slice(&wire::OPTION_MAGIC.to_be_bytes());
        hello.extend_from_slice(&option::GO.to_be_bytes());
        hello.extend_from_slice(&(export.len() as u32 + 6).to_be_bytes());
        hello.extend_from_slice(&(export.len() as u32).to_be_bytes());
        hello.extend_from_slice(export.as_bytes());
        hello.extend_from_slice(&0u16.to_be_bytes());
        stream.write_all(&hello)?;
        let mut client = Client { stream, input, capacity_bytes: 0, flags: 0 };
        client.hear_facts()?;
        Ok(client)
    }

    fn hear_facts(&mut self) -> io::Result<()> {
        loop {
            let head: [u8; 20] = self.input.array()?;
            let word = |at: usize| u32::from_be_bytes(head[at..at + 4].try_into().expect("four bytes"));
            let mut data = vec![0; word(16) as usize];
            self.input.exact(&mut data)?;
            match word(12) {
                reply::ACK => return Ok(()),
                reply::INFO if data.len() == 12 && data[..2] == wire::info::EXPORT.to_be_bytes() => {
                    self.capacity_bytes = u64::from_be_bytes(data[2..10].try_into().expect("eight bytes"));
                    self.flags = u16::from_be_bytes(data[10..].try_into().expect("two bytes"));
                }
                reply::INFO => {}
                _ => return Err(io::Error::new(io::ErrorKind::NotFound, String::from_utf8_lossy(&data).into_owned())),
            }
        }
    }

    /// Sends a request, and the payload of a write.
    ///
    /// # Errors
    /// The stream's.
    pub fn send(&mut self, header: &Header, payload: &[u8]) -> io::Result<()> {
        let mut message = Vec::with_capacity(wire::REQUEST_BYTES + payload.len());
        message.extend_from_slice(&header.to_bytes());
        message.extend_from_slice(payload);
        self.stream.write_all(&message)
    }

    /// Waits for a reply: its cookie and its error, 0 for none. `data_of` has room for what a read brings.
    ///
    /// # Errors
    /// The stream's; a reply that is none.
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
}
