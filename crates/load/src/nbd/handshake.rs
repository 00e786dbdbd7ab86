//! The fixed newstyle handshake (doc/proto.md), in which client and server negotiate an export before the first
//! request.

use std::io::{self, Read, Write};

use headstack_nbd::{self as wire, Framing, info, option, reply, transmission};

use super::Terms;

/// Maximum length of an option reply, in bytes; longer replies contain only text.
const REPLY_BYTES_MAX: usize = 1 << 16;

/// Result of the handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agreed {
    /// Size and abilities of the export.
    pub terms: Terms,
    /// Format of requests and replies.
    pub framing: Framing,
}

/// Negotiates an export on a new connection.
///
/// # Errors
/// Returns the reason as text.
pub fn hold(stream: &mut (impl Read + Write), export: &str) -> Result<Agreed, String> {
    let mut talk = Negotiation { stream };
    talk.greet()?;
    let framing = if talk.agrees(option::EXTENDED_HEADERS)? {
        Framing::Extended
    } else if talk.agrees(option::STRUCTURED_REPLY)? {
        Framing::Structured
    } else {
        Framing::Simple
    };
    Ok(Agreed { terms: talk.go(export)?, framing })
}

struct Negotiation<'s, S> {
    stream: &'s mut S,
}

struct OptionReply {
    kind: u32,
    data: Vec<u8>,
}

impl OptionReply {
    fn is_last(&self) -> bool {
        self.kind == reply::ACK || self.kind & reply::IS_ERROR != 0
    }

    /// Returns the server's message for an error.
    fn text(&self) -> String {
        match String::from_utf8_lossy(&self.data) {
            text if text.is_empty() => String::new(),
            text => format!(" (server message: {})", text.trim()),
        }
    }
}

fn describe_io_error(error: io::Error) -> String {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            "its server does not answer; it may have reached its limit of clients".to_owned()
        }
        io::ErrorKind::UnexpectedEof => "its server closed the connection during the handshake".to_owned(),
        _ => format!("the handshake fails: {error}"),
    }
}

fn word(bytes: &[u8]) -> u32 {
    u32::from_be_bytes(bytes[..4].try_into().expect("four bytes"))
}

impl<S: Read + Write> Negotiation<'_, S> {
    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let mut bytes = [0; N];
        self.stream.read_exact(&mut bytes).map_err(describe_io_error)?;
        Ok(bytes)
    }

    fn greet(&mut self) -> Result<(), String> {
        let magic: [u8; 8] = self.bytes()?;
        if magic != wire::MAGIC.to_be_bytes() {
            return Err("the peer is not an NBD server".to_owned());
        }
        let style: [u8; 8] = self.bytes()?;
        let server_flags = u16::from_be_bytes(self.bytes()?);
        if style != wire::OPTION_MAGIC.to_be_bytes() || server_flags & wire::HANDSHAKE_FIXED_NEWSTYLE == 0 {
            return Err("its server supports only the old handshake; fixed newstyle is required".to_owned());
        }
        let flags = u32::from(server_flags & (wire::HANDSHAKE_FIXED_NEWSTYLE | wire::HANDSHAKE_NO_ZEROES));
        self.stream.write_all(&flags.to_be_bytes()).map_err(describe_io_error)
    }

    fn send_option(&mut self, option: u32, data: &[u8]) -> Result<(), String> {
        let mut message = wire::OPTION_MAGIC.to_be_bytes().to_vec();
        message.extend_from_slice(&option.to_be_bytes());
        message.extend_from_slice(&(data.len() as u32).to_be_bytes());
        message.extend_from_slice(data);
        self.stream.write_all(&message).map_err(describe_io_error)
    }

    fn answer(&mut self, option: u32) -> Result<OptionReply, String> {
        let head: [u8; 20] = self.bytes()?;
        let length = word(&head[16..]) as usize;
        let is_reply = head[..8] == wire::OPTION_REPLY_MAGIC.to_be_bytes() && word(&head[8..]) == option;
        if !is_reply || length > REPLY_BYTES_MAX {
            return Err("its server sent an invalid reply to an option".to_owned());
        }
        let mut data = vec![0; length];
        self.stream.read_exact(&mut data).map_err(describe_io_error)?;
        let kind = word(&head[12..]);
        let reply = OptionReply { kind, data };
        match kind {
            reply::ERR_TLS_REQD => Err("its server requires TLS, which is not supported".to_owned()),
            reply::ERR_POLICY => Err(format!("its server's policy forbids that{}", reply.text())),
            reply::ERR_SHUTDOWN => Err(format!("its server is shutting down{}", reply.text())),
            _ => Ok(reply),
        }
    }

    /// Negotiates an optional feature. Returns whether the server supports it.
    fn agrees(&mut self, option: u32) -> Result<bool, String> {
        self.send_option(option, &[])?;
        loop {
            let reply = self.answer(option)?;
            if reply.is_last() {
                return Ok(reply.kind == reply::ACK);
            }
        }
    }

    fn go(&mut self, export: &str) -> Result<Terms, String> {
        let request = [1u16.to_be_bytes(), info::BLOCK_SIZE.to_be_bytes()].concat();
        self.send_option(option::GO, &wire::named(export, &request))?;
        let mut terms = Terms::default();
        loop {
            let reply = self.answer(option::GO)?;
            match reply.kind {
                reply::INFO => parse_info(&mut terms, &reply.data)?,
                reply::ACK if terms.flags & transmission::HAS_FLAGS != 0 => return Ok(terms),
                reply::ACK => return Err("its server does not describe the export".to_owned()),
                reply::ERR_UNKNOWN => return Err(self.unknown(export)),
                reply::ERR_UNSUP => {
                    return Err("its server does not support NBD_OPT_GO, which is required".to_owned());
                }
                kind if kind & reply::IS_ERROR != 0 => {
                    let error = kind & !reply::IS_ERROR;
                    return Err(format!("its server refuses the export with error {error}{}", reply.text()));
                }
                _ => {}
            }
        }
    }

    /// Returns the message that there is no such export, with the list of existing exports if the server provides it.
    fn unknown(&mut self, export: &str) -> String {
        let mut names = Vec::new();
        if self.send_option(option::LIST, &[]).is_ok() {
            while let Ok(reply) = self.answer(option::LIST)
                && !reply.is_last()
            {
                let length = reply.data.get(..4).map_or(0, word) as usize;
                let name = reply.data.get(4..4 + length).unwrap_or_default();
                names.push(format!("{:?}", String::from_utf8_lossy(name)));
            }
        }
        match names.is_empty() {
            true => format!("its server has no export {export:?}"),
            false => format!("its server has no export {export:?}; it has {}", names.join(", ")),
        }
    }
}

fn parse_info(terms: &mut Terms, info: &[u8]) -> Result<(), String> {
    let short = || "its server's description of the export is truncated".to_owned();
    let (kind, data) = info.split_at_checked(2).ok_or_else(short)?;
    match u16::from_be_bytes([kind[0], kind[1]]) {
        info::EXPORT => {
            let data: [u8; 10] = data.try_into().map_err(|_| short())?;
            terms.capacity_bytes = u64::from_be_bytes(data[..8].try_into().expect("eight bytes"));
            terms.flags = u16::from_be_bytes([data[8], data[9]]);
        }
        info::BLOCK_SIZE => {
            let data: [u8; 12] = data.try_into().map_err(|_| short())?;
            (terms.minimum_bytes, terms.preferred_bytes, terms.maximum_bytes) =
                (word(&data), word(&data[4..]), word(&data[8..]));
            let is_power = |bytes: u32| bytes.is_power_of_two();
            if !is_power(terms.minimum_bytes) || terms.minimum_bytes > 1 << 16 || !is_power(terms.preferred_bytes) {
                return Err(format!(
                    "its server requires multiples of {} bytes and prefers {}; both must be powers of 2, the \
                     first up to 65536",
                    terms.minimum_bytes, terms.preferred_bytes
                ));
            }
        }
        // Other information was not requested.
        _ => {}
    }
    Ok(())
}
