//! The numbers of the NBD protocol (NetworkBlockDevice/nbd, doc/proto.md), its messages, and the addresses of exports:
//! the parts shared by servers and clients. All numbers are big-endian.

mod address;

pub use address::{Address, Place};

/// First words of a server.
pub const MAGIC: u64 = 0x4e42_444d_4147_4943;
/// Before an option, in both directions' fixed newstyle.
pub const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
/// Before the reply to an option.
pub const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
/// Before a request.
pub const REQUEST_MAGIC: u32 = 0x2560_9513;
/// Starts a request if extended headers were negotiated.
pub const EXTENDED_REQUEST_MAGIC: u32 = 0x21e4_1c71;
/// Before a simple reply.
pub const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
/// Before a chunk of a structured reply.
pub const STRUCTURED_REPLY_MAGIC: u32 = 0x668e_33ef;
/// Starts a chunk of a reply if extended headers were negotiated.
pub const EXTENDED_REPLY_MAGIC: u32 = 0x6e8a_278c;

/// Handshake flags of the server: fixed newstyle, and no 124 zeros if the client does not want them.
pub const HANDSHAKE_FIXED_NEWSTYLE: u16 = 1;
/// As above.
pub const HANDSHAKE_NO_ZEROES: u16 = 2;

/// Options longer than this are refused unread.
pub const OPTION_BYTES_MAX: u32 = 64 << 10;
/// Names longer than this are not of the protocol.
pub const NAME_BYTES_MAX: usize = 4096;
/// The longest payload of a request.
pub const PAYLOAD_BYTES_MAX: u32 = 32 << 20;
/// Bytes of the longest request without its payload.
pub const REQUEST_BYTES_MAX: usize = 32;

/// Options that are understood.
#[allow(missing_docs)] // They are named as in the protocol.
pub mod option {
    pub const EXPORT_NAME: u32 = 1;
    pub const ABORT: u32 = 2;
    pub const LIST: u32 = 3;
    pub const STARTTLS: u32 = 5;
    pub const INFO: u32 = 6;
    pub const GO: u32 = 7;
    pub const STRUCTURED_REPLY: u32 = 8;
    pub const LIST_META_CONTEXT: u32 = 9;
    pub const SET_META_CONTEXT: u32 = 10;
    pub const EXTENDED_HEADERS: u32 = 11;
}

/// Replies to options.
#[allow(missing_docs)] // They are named as in the protocol.
pub mod reply {
    pub const ACK: u32 = 1;
    pub const SERVER: u32 = 2;
    pub const INFO: u32 = 3;
    pub const META_CONTEXT: u32 = 4;
    /// Set in every reply that is an error.
    pub const IS_ERROR: u32 = 1 << 31;
    pub const ERR_UNSUP: u32 = (1 << 31) + 1;
    pub const ERR_POLICY: u32 = (1 << 31) + 2;
    pub const ERR_INVALID: u32 = (1 << 31) + 3;
    pub const ERR_TLS_REQD: u32 = (1 << 31) + 5;
    pub const ERR_UNKNOWN: u32 = (1 << 31) + 6;
    pub const ERR_SHUTDOWN: u32 = (1 << 31) + 7;
    pub const ERR_BLOCK_SIZE_REQD: u32 = (1 << 31) + 8;
    pub const ERR_TOO_BIG: u32 = (1 << 31) + 9;
    pub const ERR_EXT_HEADER_REQD: u32 = (1 << 31) + 10;
}

/// Kinds of information on an export.
#[allow(missing_docs)] // They are named as in the protocol.
pub mod info {
    pub const EXPORT: u16 = 0;
    pub const NAME: u16 = 1;
    pub const DESCRIPTION: u16 = 2;
    pub const BLOCK_SIZE: u16 = 3;
}

/// Flags of an export's abilities.
#[allow(missing_docs)] // They are named as in the protocol.
pub mod transmission {
    pub const HAS_FLAGS: u16 = 1;
    pub const READ_ONLY: u16 = 1 << 1;
    pub const SEND_FLUSH: u16 = 1 << 2;
    pub const SEND_FUA: u16 = 1 << 3;
    pub const ROTATIONAL: u16 = 1 << 4;
    pub const SEND_TRIM: u16 = 1 << 5;
    pub const SEND_WRITE_ZEROES: u16 = 1 << 6;
    pub const SEND_DF: u16 = 1 << 7;
    pub const CAN_MULTI_CONN: u16 = 1 << 8;
    pub const SEND_CACHE: u16 = 1 << 10;
    pub const SEND_FAST_ZERO: u16 = 1 << 11;
    pub const BLOCK_STATUS_PAYLOAD: u16 = 1 << 12;
}

/// Requests.
#[allow(missing_docs)] // They are named as in the protocol.
pub mod command {
    pub const READ: u16 = 0;
    pub const WRITE: u16 = 1;
    pub const DISC: u16 = 2;
    pub const FLUSH: u16 = 3;
    pub const TRIM: u16 = 4;
    pub const CACHE: u16 = 5;
    pub const WRITE_ZEROES: u16 = 6;
    pub const BLOCK_STATUS: u16 = 7;

    /// The data are on stable storage before the reply.
    pub const FLAG_FUA: u16 = 1;
    /// Zeros that take their place.
    pub const FLAG_NO_HOLE: u16 = 1 << 1;
    /// Data in one chunk.
    pub const FLAG_DF: u16 = 1 << 2;
    /// Requests only one extent.
    pub const FLAG_REQ_ONE: u16 = 1 << 3;
    /// Writes zeros only if that is quicker than writing data.
    pub const FLAG_FAST_ZERO: u16 = 1 << 4;
    /// The length is that of the payload, not of the requested range; only with extended headers.
    pub const FLAG_PAYLOAD_LEN: u16 = 1 << 5;
}

/// Chunks of structured replies.
#[allow(missing_docs)] // They are named as in the protocol.
pub mod chunk {
    pub const FLAG_DONE: u16 = 1;
    pub const NONE: u16 = 0;
    pub const OFFSET_DATA: u16 = 1;
    pub const OFFSET_HOLE: u16 = 2;
    pub const BLOCK_STATUS: u16 = 5;
    pub const BLOCK_STATUS_EXT: u16 = 6;
    pub const ERROR: u16 = (1 << 15) + 1;
    pub const ERROR_OFFSET: u16 = (1 << 15) + 2;
}

/// The context that describes allocated and zero extents.
pub const BASE_ALLOCATION: &str = "base:allocation";
/// Its number in block status replies.
pub const BASE_ALLOCATION_ID: u32 = 1;
/// Nothing was written there, and it reads as zeros.
pub const STATE_HOLE_ZERO: u32 = 3;

/// Errors as the protocol numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Errno {
    /// It may only be read.
    NotPermitted = 1,
    /// Input or output error.
    Io = 5,
    /// Not a request that this export takes.
    Invalid = 22,
    /// Nothing is left, or the write goes past the end.
    NoSpace = 28,
    /// It would take as long as writing.
    NotSupported = 95,
}

/// A request, without its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Flags of the command.
    pub flags: u16,
    /// The command.
    pub command: u16,
    /// The client's handle of the request.
    pub cookie: u64,
    /// First byte, of the export.
    pub offset_bytes: u64,
    /// Length. Without extended headers it has 32 bits.
    pub length_bytes: u64,
}

/// Format of requests and replies, chosen by the client during the handshake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Framing {
    /// A reply is a header, and the data of a read.
    #[default]
    Simple,
    /// A reply consists of chunks, which can describe zero ranges and the place of an error.
    Structured,
    /// As structured, with lengths of 64 bits.
    Extended,
}

impl Framing {
    /// Replies are of chunks.
    pub fn has_chunks(self) -> bool {
        self != Framing::Simple
    }

    /// Bytes of a request without its payload.
    pub fn request_bytes(self) -> usize {
        match self {
            Framing::Simple | Framing::Structured => 28,
            Framing::Extended => REQUEST_BYTES_MAX,
        }
    }

    /// Bytes of a chunk's header.
    pub fn chunk_bytes(self) -> usize {
        match self {
            Framing::Simple | Framing::Structured => 20,
            Framing::Extended => 32,
        }
    }
}

impl Header {
    /// Parses a request of [`Framing::request_bytes`] bytes; `None` if it does not start with the magic of a request.
    pub fn parse(bytes: &[u8], framing: Framing) -> Option<Header> {
        let word = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let long = |at: usize| u64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let half = |at: usize| u16::from_be_bytes(bytes[at..at + 2].try_into().expect("two bytes"));
        let (magic, length_bytes) = match framing {
            Framing::Simple | Framing::Structured => (REQUEST_MAGIC, u64::from(word(24))),
            Framing::Extended => (EXTENDED_REQUEST_MAGIC, long(24)),
        };
        (word(0) == magic).then(|| Header {
            flags: half(4),
            command: half(6),
            cookie: long(8),
            offset_bytes: long(16),
            length_bytes,
        })
    }

    /// Encodes the header.
    ///
    /// # Panics
    /// If the length needs extended headers, and they are not used.
    pub fn to_bytes(self, framing: Framing) -> Vec<u8> {
        let is_extended = framing == Framing::Extended;
        let magic = if is_extended { EXTENDED_REQUEST_MAGIC } else { REQUEST_MAGIC };
        let mut bytes = magic.to_be_bytes().to_vec();
        bytes.extend_from_slice(&self.flags.to_be_bytes());
        bytes.extend_from_slice(&self.command.to_be_bytes());
        bytes.extend_from_slice(&self.cookie.to_be_bytes());
        bytes.extend_from_slice(&self.offset_bytes.to_be_bytes());
        if is_extended {
            bytes.extend_from_slice(&self.length_bytes.to_be_bytes());
        } else {
            let length = u32::try_from(self.length_bytes).expect("a length of 32 bits");
            bytes.extend_from_slice(&length.to_be_bytes());
        }
        bytes
    }
}

/// The request that a reply belongs to, and the reply's format.
#[derive(Clone, Copy, Debug)]
pub struct To {
    /// How replies look.
    pub framing: Framing,
    /// The client's handle of the request.
    pub cookie: u64,
    /// Offset of the request in the export.
    pub offset_bytes: u64,
}

/// Appends a simple reply's header.
pub fn simple(into: &mut Vec<u8>, cookie: u64, error: u32) {
    into.extend_from_slice(&SIMPLE_REPLY_MAGIC.to_be_bytes());
    into.extend_from_slice(&error.to_be_bytes());
    into.extend_from_slice(&cookie.to_be_bytes());
}

/// Appends a chunk's header.
pub fn chunk_header(into: &mut Vec<u8>, to: To, flags: u16, kind: u16, length_bytes: u32) {
    let is_extended = to.framing == Framing::Extended;
    let magic = if is_extended { EXTENDED_REPLY_MAGIC } else { STRUCTURED_REPLY_MAGIC };
    into.extend_from_slice(&magic.to_be_bytes());
    into.extend_from_slice(&flags.to_be_bytes());
    into.extend_from_slice(&kind.to_be_bytes());
    into.extend_from_slice(&to.cookie.to_be_bytes());
    if is_extended {
        into.extend_from_slice(&to.offset_bytes.to_be_bytes());
        into.extend_from_slice(&u64::from(length_bytes).to_be_bytes());
    } else {
        into.extend_from_slice(&length_bytes.to_be_bytes());
    }
}

/// Appends a reply to an option.
pub fn option_reply(into: &mut Vec<u8>, option: u32, kind: u32, data: &[u8]) {
    into.extend_from_slice(&OPTION_REPLY_MAGIC.to_be_bytes());
    into.extend_from_slice(&option.to_be_bytes());
    into.extend_from_slice(&kind.to_be_bytes());
    into.extend_from_slice(&(data.len() as u32).to_be_bytes());
    into.extend_from_slice(data);
}

/// The data of an option that begins with an export's name.
pub fn named(export: &str, rest: &[u8]) -> Vec<u8> {
    let mut data = (export.len() as u32).to_be_bytes().to_vec();
    data.extend_from_slice(export.as_bytes());
    data.extend_from_slice(rest);
    data
}
