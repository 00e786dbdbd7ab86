//! [`Negotiation`]: the fixed newstyle handshake, option by option, until the client has chosen an export or leaves.

use std::io;
use std::time::Instant;

use headstack_nbd::{self as wire, Framing, info, option, option_reply, reply, transmission};

use super::tls::Tls;
use crate::device::{Device, Export};
use crate::stream::Stream;

/// Bytes read at a time by a thread that serves a single client.
const PART_BYTES: usize = 4096;
/// Header of an option: a magic number, the option's number, its length.
const OPTION_HEAD_BYTES: usize = 16;

/// Result of the negotiation.
#[derive(Clone, Debug)]
pub struct Terms {
    /// The export that the client chose.
    pub export: Export,
    /// Format of requests and replies.
    pub framing: Framing,
    /// Whether the client may request extents.
    pub has_context: bool,
    /// Number of power cuts when the client connected: the next one ends the connection.
    pub power_cuts: u32,
}

/// Outcome of the handshake.
#[derive(Clone, Debug)]
pub enum HandshakeOutcome {
    /// Requests follow.
    Export(Terms),
    /// The client has requested TLS, and may begin it.
    Tls(Tls, GreetingReply),
    /// The connection is closed.
    Over,
}

/// Encryption policy.
#[derive(Clone, Debug, Default)]
pub enum Security {
    /// Unencrypted: there is no certificate.
    #[default]
    None,
    /// Encrypted if the client requests it.
    Offered(Tls),
    /// Encrypted: other clients are refused.
    Required(Tls),
}

/// The client's answer to the greeting, which remains valid under TLS.
#[derive(Clone, Copy, Debug)]
pub struct GreetingReply {
    no_zeroes: bool,
}

/// Encryption state of a connection.
#[derive(Clone, Copy, Debug)]
pub enum Cover<'a> {
    /// Not encrypted yet.
    Clear(&'a Security),
    /// Under TLS: options start again, without a greeting.
    Encrypted,
}

/// State of a handshake. It does no I/O itself: it receives input and returns output.
#[derive(Debug)]
pub struct Negotiation {
    /// `None` until the client answers the greeting.
    greeted: Option<GreetingReply>,
    framing: Framing,
    /// The export for which extents were requested.
    context_of: Option<String>,
    /// An option that is too long: its number, and how many of its bytes are still to be skipped.
    unread: Option<(u32, usize)>,
    power_cuts: u32,
}

/// An option that is being answered.
struct Answering<'a> {
    talk: &'a mut Negotiation,
    device: &'a Device,
    cover: Cover<'a>,
    /// Whether no data follow it yet.
    is_last: bool,
    say: &'a mut Vec<u8>,
}

impl Negotiation {
    /// Greets a client.
    pub fn greet(device: &Device, say: &mut Vec<u8>) -> Negotiation {
        say.extend_from_slice(&wire::MAGIC.to_be_bytes());
        say.extend_from_slice(&wire::OPTION_MAGIC.to_be_bytes());
        say.extend_from_slice(&(wire::HANDSHAKE_FIXED_NEWSTYLE | wire::HANDSHAKE_NO_ZEROES).to_be_bytes());
        Negotiation { greeted: None, ..Negotiation::resumed(device, GreetingReply { no_zeroes: false }) }
    }

    /// Continues under TLS with a client that was greeted before.
    pub fn resumed(device: &Device, greeted: GreetingReply) -> Negotiation {
        let power_cuts = device.power_cuts();
        Negotiation { greeted: Some(greeted), framing: Framing::Simple, context_of: None, unread: None, power_cuts }
    }

    /// Removes whole messages from the front of `heard` and appends the answers to `say`, until more data are needed
    /// (`None`) or the handshake is over. A client that breaks the protocol is disconnected; an unknown option is
    /// refused and the next one processed.
    pub fn hear(
        &mut self,
        device: &Device,
        cover: Cover<'_>,
        heard: &mut Vec<u8>,
        say: &mut Vec<u8>,
    ) -> Option<HandshakeOutcome> {
        let mut at = 0;
        let agreed = loop {
            match self.message(device, cover, &heard[at..], say) {
                Message::Partial => break None,
                Message::Taken(bytes) => at += bytes,
                Message::Last(bytes, agreed) => {
                    at += bytes;
                    break Some(agreed);
                }
            }
        };
        heard.drain(..at);
        agreed
    }

    /// Processes the first message of `heard`.
    fn message(&mut self, device: &Device, cover: Cover<'_>, heard: &[u8], say: &mut Vec<u8>) -> Message {
        if let Some((option, left)) = self.unread {
            let taken = left.min(heard.len());
            self.unread = (taken < left).then_some((option, left - taken));
            if self.unread.is_none() {
                option_reply(say, option, reply::ERR_TOO_BIG, b"too long");
            }
            return if taken == 0 { Message::Partial } else { Message::Taken(taken) };
        }
        if self.greeted.is_none() {
            let Some(client) = heard.first_chunk() else { return Message::Partial };
            let client = u32::from_be_bytes(*client);
            let known = u32::from(wire::HANDSHAKE_FIXED_NEWSTYLE | wire::HANDSHAKE_NO_ZEROES);
            if client & !known != 0 {
                return Message::Last(heard.len(), HandshakeOutcome::Over);
            }
            self.greeted = Some(GreetingReply { no_zeroes: client & u32::from(wire::HANDSHAKE_NO_ZEROES) != 0 });
            return Message::Taken(4);
        }
        let Some(head) = heard.first_chunk::<OPTION_HEAD_BYTES>() else {
            // Data that cannot become an option are not waited for.
            let is_option = wire::OPTION_MAGIC.to_be_bytes().starts_with(&heard[..heard.len().min(8)]);
            return if is_option { Message::Partial } else { Message::Last(heard.len(), HandshakeOutcome::Over) };
        };
        let word = |at: usize| u32::from_be_bytes(head[at..at + 4].try_into().expect("four bytes"));
        if head[..8] != wire::OPTION_MAGIC.to_be_bytes() {
            return Message::Last(heard.len(), HandshakeOutcome::Over);
        }
        let (option, length) = (word(8), word(12));
        if length > wire::OPTION_BYTES_MAX {
            if option == option::EXPORT_NAME {
                return Message::Last(heard.len(), HandshakeOutcome::Over);
            }
            self.unread = Some((option, length as usize));
            return Message::Taken(OPTION_HEAD_BYTES);
        }
        let whole = OPTION_HEAD_BYTES + length as usize;
        let Some(data) = heard.get(OPTION_HEAD_BYTES..whole) else { return Message::Partial };
        let mut answering = Answering { talk: self, device, cover, is_last: heard.len() == whole, say };
        match answering.option(option, data) {
            Some(agreed) => Message::Last(whole, agreed),
            None => Message::Taken(whole),
        }
    }

    /// Negotiates over a stream that this thread serves alone. Returns the data received after the handshake.
    ///
    /// # Errors
    /// The stream's error; [`io::ErrorKind::TimedOut`].
    pub fn conclude(
        &mut self,
        device: &Device,
        cover: Cover<'_>,
        stream: &Stream,
        mut say: Vec<u8>,
        deadline: Option<Instant>,
    ) -> io::Result<(HandshakeOutcome, Vec<u8>)> {
        let (mut heard, mut part) = (Vec::new(), [0; PART_BYTES]);
        loop {
            stream.write_all(&std::mem::take(&mut say))?;
            match stream.read_by(&mut part, deadline)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => heard.extend_from_slice(&part[..read]),
            }
            let agreed = self.hear(device, cover, &mut heard, &mut say);
            if let Some(agreed) = agreed {
                stream.write_all(&say)?;
                return Ok((agreed, heard));
            }
        }
    }
}

/// Outcome of the first message in the input.
enum Message {
    /// It is not complete yet.
    Partial,
    /// Bytes that were consumed.
    Taken(usize),
    /// Bytes that were consumed; no option follows.
    Last(usize, HandshakeOutcome),
}

impl Answering<'_> {
    /// Processes an option; returns the outcome if it ends the handshake.
    fn option(&mut self, option: u32, data: &[u8]) -> Option<HandshakeOutcome> {
        let is_open = matches!(option, option::ABORT | option::STARTTLS);
        if matches!(self.cover, Cover::Clear(Security::Required(_))) && !is_open {
            if option == option::EXPORT_NAME {
                return Some(HandshakeOutcome::Over);
            }
            return self.refuse(option, reply::ERR_TLS_REQD, "this server requires TLS");
        }
        if !self.device.has_power() && option != option::ABORT {
            if option == option::EXPORT_NAME {
                return Some(HandshakeOutcome::Over);
            }
            return self.refuse(option, reply::ERR_SHUTDOWN, "the power is off");
        }
        match option {
            option::EXPORT_NAME => self.export_name(data),
            option::ABORT => {
                self.answer(option, reply::ACK, &[]);
                Some(HandshakeOutcome::Over)
            }
            option::LIST => self.list(data),
            option::STARTTLS => self.start_tls(data),
            option::INFO | option::GO => self.inform(option, data),
            option::STRUCTURED_REPLY => self.frame(option, data, Framing::Structured),
            option::EXTENDED_HEADERS => self.frame(option, data, Framing::Extended),
            option::LIST_META_CONTEXT | option::SET_META_CONTEXT => self.contexts(option, data),
            _ => self.refuse(option, reply::ERR_UNSUP, "unknown option"),
        }
    }

    fn answer(&mut self, option: u32, kind: u32, data: &[u8]) -> Option<HandshakeOutcome> {
        option_reply(self.say, option, kind, data);
        None
    }

    fn refuse(&mut self, option: u32, kind: u32, why: &str) -> Option<HandshakeOutcome> {
        self.answer(option, kind, why.as_bytes())
    }

    fn agree(&self, export: &Export) -> HandshakeOutcome {
        let named = |name: &String| self.device.export(name).is_some_and(|other| other.name == export.name);
        let Negotiation { framing, ref context_of, power_cuts, .. } = *self.talk;
        let has_context = framing.has_chunks() && context_of.as_ref().is_some_and(named);
        HandshakeOutcome::Export(Terms { export: export.clone(), framing, has_context, power_cuts })
    }

    /// Changes the format of requests and replies. Extended headers cannot be turned off again.
    fn frame(&mut self, option: u32, data: &[u8], framing: Framing) -> Option<HandshakeOutcome> {
        if !data.is_empty() {
            return self.refuse(option, reply::ERR_INVALID, "takes no data");
        }
        if self.talk.framing == Framing::Extended && framing != Framing::Extended {
            return self.refuse(option, reply::ERR_EXT_HEADER_REQD, "headers are extended already");
        }
        self.talk.framing = framing;
        self.answer(option, reply::ACK, &[])
    }

    /// The oldest option: its only reply is the export's data, and errors close the connection. A client that supports
    /// extended headers has to use newer options.
    fn export_name(&mut self, data: &[u8]) -> Option<HandshakeOutcome> {
        if self.talk.framing == Framing::Extended {
            return Some(HandshakeOutcome::Over);
        }
        let Some(export) = std::str::from_utf8(data).ok().and_then(|name| self.device.export(name)) else {
            return Some(HandshakeOutcome::Over);
        };
        self.say.extend_from_slice(&export.span.length_bytes.to_be_bytes());
        self.say.extend_from_slice(&flags_of(export, self.talk.framing).to_be_bytes());
        if self.talk.greeted.is_none_or(|greeted| !greeted.no_zeroes) {
            self.say.resize(self.say.len() + 124, 0);
        }
        Some(self.agree(export))
    }

    fn list(&mut self, data: &[u8]) -> Option<HandshakeOutcome> {
        if !data.is_empty() {
            return self.refuse(option::LIST, reply::ERR_INVALID, "takes no data");
        }
        for export in &self.device.exports {
            let mut server = (export.name.len() as u32).to_be_bytes().to_vec();
            server.extend_from_slice(export.name.as_bytes());
            server.extend_from_slice(export.description.as_bytes());
            self.answer(option::LIST, reply::SERVER, &server);
        }
        self.answer(option::LIST, reply::ACK, &[])
    }

    fn start_tls(&mut self, data: &[u8]) -> Option<HandshakeOutcome> {
        let tls = match self.cover {
            Cover::Encrypted => return self.refuse(option::STARTTLS, reply::ERR_INVALID, "is already on"),
            Cover::Clear(Security::None) => {
                return self.refuse(option::STARTTLS, reply::ERR_UNSUP, "this server has no certificate");
            }
            Cover::Clear(Security::Offered(tls) | Security::Required(tls)) => tls,
        };
        // Anything sent before the answer would be interpreted as encrypted.
        if !data.is_empty() || !self.is_last {
            return self.refuse(
                option::STARTTLS,
                reply::ERR_INVALID,
                "takes no data, and no option may follow it in the same packet",
            );
        }
        let greeted = self.talk.greeted?;
        self.answer(option::STARTTLS, reply::ACK, &[]);
        Some(HandshakeOutcome::Tls(tls.clone(), greeted))
    }

    /// INFO and GO: the name of an export, and the information requested.
    fn inform(&mut self, option: u32, data: &[u8]) -> Option<HandshakeOutcome> {
        let mut data = Data(data);
        let parsed = data.text().and_then(|name| {
            let count = data.half()?;
            let wanted: Option<Vec<u16>> = (0..count).map(|_| data.half()).collect();
            data.0.is_empty().then_some((name, wanted?))
        });
        let Some((name, wanted)) = parsed else {
            return self.refuse(option, reply::ERR_INVALID, "a name and a list of items are required");
        };
        let Some(export) = self.device.export(name) else {
            return self.refuse(option, reply::ERR_UNKNOWN, "no such export");
        };
        self.facts(option, export, &wanted);
        self.answer(option, reply::ACK, &[]);
        (option == option::GO).then(|| self.agree(export))
    }

    fn facts(&mut self, option: u32, export: &Export, wanted: &[u16]) {
        let mut facts = info::EXPORT.to_be_bytes().to_vec();
        facts.extend_from_slice(&export.span.length_bytes.to_be_bytes());
        facts.extend_from_slice(&flags_of(export, self.talk.framing).to_be_bytes());
        self.answer(option, reply::INFO, &facts);
        // Clients that do not request block sizes may assume that requests of any byte are allowed, so the sizes are
        // always sent.
        let mut sizes = info::BLOCK_SIZE.to_be_bytes().to_vec();
        for bytes in [export.block_bytes, export.block_bytes.max(4096), wire::PAYLOAD_BYTES_MAX] {
            sizes.extend_from_slice(&bytes.to_be_bytes());
        }
        self.answer(option, reply::INFO, &sizes);
        for (item, text) in [(info::NAME, &export.name), (info::DESCRIPTION, &export.description)] {
            if wanted.contains(&item) {
                let payload = [&item.to_be_bytes(), text.as_bytes()].concat();
                self.answer(option, reply::INFO, &payload);
            }
        }
    }

    /// Selects metadata contexts: only that of extents exists.
    fn contexts(&mut self, option: u32, data: &[u8]) -> Option<HandshakeOutcome> {
        if option == option::SET_META_CONTEXT {
            // It replaces the previous selection, even if it fails.
            self.talk.context_of = None;
        }
        let mut data = Data(data);
        let parsed = data.text().and_then(|name| {
            let count = data.word()?;
            let mut queries = Vec::new();
            for _ in 0..count {
                queries.push(data.text()?);
            }
            data.0.is_empty().then_some((name, queries))
        });
        let Some((name, queries)) = parsed else {
            return self.refuse(option, reply::ERR_INVALID, "a name and a list of queries are required");
        };
        if !self.talk.framing.has_chunks() {
            return self.refuse(option, reply::ERR_INVALID, "requires structured replies first");
        }
        if self.device.export(name).is_none() {
            return self.refuse(option, reply::ERR_UNKNOWN, "no such export");
        }
        let is_list = option == option::LIST_META_CONTEXT;
        let is_selected = |query: &str| query == wire::BASE_ALLOCATION || (is_list && query == "base:");
        let payload = (is_list && queries.is_empty()) || queries.iter().any(|query| is_selected(query));
        if !is_list {
            self.talk.context_of = payload.then(|| name.to_owned());
        }
        if payload {
            let id = if is_list { 0 } else { wire::BASE_ALLOCATION_ID };
            let context = [&id.to_be_bytes(), wire::BASE_ALLOCATION.as_bytes()].concat();
            self.answer(option, reply::META_CONTEXT, &context);
        }
        self.answer(option, reply::ACK, &[])
    }
}

fn flags_of(export: &Export, framing: Framing) -> u16 {
    use transmission::*;
    let always = HAS_FLAGS | SEND_FLUSH | SEND_FUA | SEND_TRIM | SEND_WRITE_ZEROES | SEND_CACHE;
    // A flush of one connection covers the writes of all of them, since they share one cache.
    let always = always | CAN_MULTI_CONN;
    // Offered so that clients can find out that it is never fast: drives write zeros like any other data.
    let always = always | SEND_FAST_ZERO;
    let framed = match framing {
        Framing::Simple => 0,
        Framing::Structured => SEND_DF,
        Framing::Extended => SEND_DF | BLOCK_STATUS_PAYLOAD,
    };
    always | framed | if export.is_rotational { ROTATIONAL } else { 0 }
}

/// Parser of an option's data.
struct Data<'a>(&'a [u8]);

impl<'a> Data<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn word(&mut self) -> Option<u32> {
        Some(u32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    fn half(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes(self.take(2)?.try_into().ok()?))
    }

    /// Parses a length and that many bytes of text.
    fn text(&mut self) -> Option<&'a str> {
        let length = self.word()? as usize;
        let bytes = self.take(length)?;
        (length <= wire::NAME_BYTES_MAX).then(|| std::str::from_utf8(bytes).ok())?
    }
}
