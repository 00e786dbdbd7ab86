//! The handshake: fixed newstyle, option by option, until the client has chosen an export or goes.

use std::io;
use std::time::Instant;

use headstack_nbd::{self as wire, Framing, info, option, option_reply, reply, transmission};

use super::tls::Tls;
use crate::device::{Device, Export};
use crate::stream::Stream;

/// What is read at a time by a thread that has the client for itself.
const PART_BYTES: usize = 4096;
/// An option without its data: a magic number, its own, its length.
const OPTION_HEAD_BYTES: usize = 16;

/// What client and server agreed on.
#[derive(Clone, Debug)]
pub struct Terms {
    /// What the client chose.
    pub export: Export,
    /// How requests and replies look.
    pub framing: Framing,
    /// The client may ask for extents.
    pub has_context: bool,
    /// How often power had failed when the client came: the connection goes with the next time.
    pub power_cuts: u32,
}

/// What the handshake came to.
#[derive(Clone, Debug)]
pub enum Agreed {
    /// Requests follow.
    Export(Terms),
    /// The client wants TLS from here on, and was told to begin.
    Tls(Tls, Greeted),
    /// The connection is over.
    Over,
}

/// How clients may come.
#[derive(Clone, Debug, Default)]
pub enum Security {
    /// In the clear: there is no certificate.
    #[default]
    None,
    /// Encrypted where the client asks.
    Offered(Tls),
    /// Encrypted: nothing is told without.
    Required(Tls),
}

/// What the client said to the greeting. It holds for what follows under TLS too.
#[derive(Clone, Copy, Debug)]
pub struct Greeted {
    no_zeroes: bool,
}

/// What a connection runs under.
#[derive(Clone, Copy, Debug)]
pub enum Cover<'a> {
    /// Nothing yet.
    Clear(&'a Security),
    /// TLS: options start anew, without a greeting.
    Encrypted,
}

/// A handshake as far as it has come. It reads and writes nothing itself: it is told what was heard, and tells what to say.
#[derive(Debug)]
pub struct Negotiation {
    /// `None` until the greeting is answered.
    greeted: Option<Greeted>,
    framing: Framing,
    /// The export for which extents were asked.
    context_of: Option<String>,
    /// An option that is too long: its number, and how many of its bytes are still to be read.
    unread: Option<(u32, usize)>,
    power_cuts: u32,
}

/// One option, on its way to an answer.
struct Answering<'a> {
    talk: &'a mut Negotiation,
    device: &'a Device,
    cover: Cover<'a>,
    /// Nothing came after it yet.
    is_last: bool,
    say: &'a mut Vec<u8>,
}

impl Negotiation {
    /// Greets a client.
    pub fn greet(device: &Device, say: &mut Vec<u8>) -> Negotiation {
        say.extend_from_slice(&wire::MAGIC.to_be_bytes());
        say.extend_from_slice(&wire::OPTION_MAGIC.to_be_bytes());
        say.extend_from_slice(&(wire::HANDSHAKE_FIXED_NEWSTYLE | wire::HANDSHAKE_NO_ZEROES).to_be_bytes());
        Negotiation { greeted: None, ..Negotiation::resumed(device, Greeted { no_zeroes: false }) }
    }

    /// Goes on under TLS with a client that was greeted before.
    pub fn resumed(device: &Device, greeted: Greeted) -> Negotiation {
        let power_cuts = device.power_cuts();
        Negotiation { greeted: Some(greeted), framing: Framing::Simple, context_of: None, unread: None, power_cuts }
    }

    /// Takes whole messages off the front of `heard` and appends the answers to `say`, until more has to come (`None`) or the
    /// handshake is over. A client that breaks the protocol is hung up on; an option that is not known is refused and the next
    /// one heard.
    pub fn hear(
        &mut self,
        device: &Device,
        cover: Cover<'_>,
        heard: &mut Vec<u8>,
        say: &mut Vec<u8>,
    ) -> Option<Agreed> {
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

    /// The first message of `heard`.
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
                return Message::Last(heard.len(), Agreed::Over);
            }
            self.greeted = Some(Greeted { no_zeroes: client & u32::from(wire::HANDSHAKE_NO_ZEROES) != 0 });
            return Message::Taken(4);
        }
        let Some(head) = heard.first_chunk::<OPTION_HEAD_BYTES>() else {
            // What cannot become an option is not waited for.
            let is_option = wire::OPTION_MAGIC.to_be_bytes().starts_with(&heard[..heard.len().min(8)]);
            return if is_option { Message::Partial } else { Message::Last(heard.len(), Agreed::Over) };
        };
        let word = |at: usize| u32::from_be_bytes(head[at..at + 4].try_into().expect("four bytes"));
        if head[..8] != wire::OPTION_MAGIC.to_be_bytes() {
            return Message::Last(heard.len(), Agreed::Over);
        }
        let (option, length) = (word(8), word(12));
        if length > wire::OPTION_BYTES_MAX {
            if option == option::EXPORT_NAME {
                return Message::Last(heard.len(), Agreed::Over);
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

    /// Negotiates over a stream whose client this thread has for itself. Returns what was heard after the handshake.
    ///
    /// # Errors
    /// The stream's; [`io::ErrorKind::TimedOut`].
    pub fn conclude(
        &mut self,
        device: &Device,
        cover: Cover<'_>,
        stream: &Stream,
        mut say: Vec<u8>,
        deadline: Option<Instant>,
    ) -> io::Result<(Agreed, Vec<u8>)> {
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

/// What has become of the front of what was heard.
enum Message {
    /// It is not a whole message yet.
    Partial,
    /// So much of it was taken.
    Taken(usize),
    /// So much of it was taken, and no option follows.
    Last(usize, Agreed),
}

impl Answering<'_> {
    /// One option; the end of the handshake where it is one.
    fn option(&mut self, option: u32, data: &[u8]) -> Option<Agreed> {
        let is_open = matches!(option, option::ABORT | option::STARTTLS);
        if matches!(self.cover, Cover::Clear(Security::Required(_))) && !is_open {
            if option == option::EXPORT_NAME {
                return Some(Agreed::Over);
            }
            return self.refuse(option, reply::ERR_TLS_REQD, "this server wants TLS first");
        }
        if !self.device.has_power() && option != option::ABORT {
            if option == option::EXPORT_NAME {
                return Some(Agreed::Over);
            }
            return self.refuse(option, reply::ERR_SHUTDOWN, "the power is off");
        }
        match option {
            option::EXPORT_NAME => self.export_name(data),
            option::ABORT => {
                self.answer(option, reply::ACK, &[]);
                Some(Agreed::Over)
            }
            option::LIST => self.list(data),
            option::STARTTLS => self.start_tls(data),
            option::INFO | option::GO => self.inform(option, data),
            option::STRUCTURED_REPLY => self.frame(option, data, Framing::Structured),
            option::EXTENDED_HEADERS => self.frame(option, data, Framing::Extended),
            option::LIST_META_CONTEXT | option::SET_META_CONTEXT => self.contexts(option, data),
            _ => self.refuse(option, reply::ERR_UNSUP, "not known here"),
        }
    }

    fn answer(&mut self, option: u32, kind: u32, data: &[u8]) -> Option<Agreed> {
        option_reply(self.say, option, kind, data);
        None
    }

    fn refuse(&mut self, option: u32, kind: u32, why: &str) -> Option<Agreed> {
        self.answer(option, kind, why.as_bytes())
    }

    fn agree(&self, export: &Export) -> Agreed {
        let named = |name: &String| self.device.export(name).is_some_and(|other| other.name == export.name);
        let Negotiation { framing, ref context_of, power_cuts, .. } = *self.talk;
        let has_context = framing.has_chunks() && context_of.as_ref().is_some_and(named);
        Agreed::Export(Terms { export: export.clone(), framing, has_context, power_cuts })
    }

    /// Other requests and replies from here on. There is no way back from extended headers.
    fn frame(&mut self, option: u32, data: &[u8], framing: Framing) -> Option<Agreed> {
        if !data.is_empty() {
            return self.refuse(option, reply::ERR_INVALID, "takes no data");
        }
        if self.talk.framing == Framing::Extended && framing != Framing::Extended {
            return self.refuse(option, reply::ERR_EXT_HEADER_REQD, "headers are extended already");
        }
        self.talk.framing = framing;
        self.answer(option, reply::ACK, &[])
    }

    /// The old way in: no reply but the facts, and no way to refuse but the end. Who knows of extended headers knows better.
    fn export_name(&mut self, data: &[u8]) -> Option<Agreed> {
        if self.talk.framing == Framing::Extended {
            return Some(Agreed::Over);
        }
        let Some(export) = std::str::from_utf8(data).ok().and_then(|name| self.device.export(name)) else {
            return Some(Agreed::Over);
        };
        self.say.extend_from_slice(&export.span.length_bytes.to_be_bytes());
        self.say.extend_from_slice(&flags_of(export, self.talk.framing).to_be_bytes());
        if self.talk.greeted.is_none_or(|greeted| !greeted.no_zeroes) {
            self.say.resize(self.say.len() + 124, 0);
        }
        Some(self.agree(export))
    }

    fn list(&mut self, data: &[u8]) -> Option<Agreed> {
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

    fn start_tls(&mut self, data: &[u8]) -> Option<Agreed> {
        let tls = match self.cover {
            Cover::Encrypted => return self.refuse(option::STARTTLS, reply::ERR_INVALID, "is on already"),
            Cover::Clear(Security::None) => {
                return self.refuse(option::STARTTLS, reply::ERR_UNSUP, "this server has no certificate");
            }
            Cover::Clear(Security::Offered(tls) | Security::Required(tls)) => tls,
        };
        // Anything sent before the answer would be taken for the encrypted part.
        if !data.is_empty() || !self.is_last {
            return self.refuse(option::STARTTLS, reply::ERR_INVALID, "takes no data, and nothing may follow it");
        }
        let greeted = self.talk.greeted?;
        self.answer(option::STARTTLS, reply::ACK, &[]);
        Some(Agreed::Tls(tls.clone(), greeted))
    }

    /// INFO and GO: a name, and what the client would like to be told.
    fn inform(&mut self, option: u32, data: &[u8]) -> Option<Agreed> {
        let mut data = Data(data);
        let parsed = data.text().and_then(|name| {
            let count = data.half()?;
            let wanted: Option<Vec<u16>> = (0..count).map(|_| data.half()).collect();
            data.0.is_empty().then_some((name, wanted?))
        });
        let Some((name, wanted)) = parsed else {
            return self.refuse(option, reply::ERR_INVALID, "a name and a list of items are wanted");
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
        // Whoever does not ask may think that every byte can be had by itself: the size is told to all.
        let mut sizes = info::BLOCK_SIZE.to_be_bytes().to_vec();
        for bytes in [export.block_bytes, export.block_bytes.max(4096), wire::PAYLOAD_BYTES_MAX] {
            sizes.extend_from_slice(&bytes.to_be_bytes());
        }
        self.answer(option, reply::INFO, &sizes);
        for (item, text) in [(info::NAME, &export.name), (info::DESCRIPTION, &export.description)] {
            if wanted.contains(&item) {
                let told = [&item.to_be_bytes(), text.as_bytes()].concat();
                self.answer(option, reply::INFO, &told);
            }
        }
    }

    /// The contexts of which extents can be told: one.
    fn contexts(&mut self, option: u32, data: &[u8]) -> Option<Agreed> {
        if option == option::SET_META_CONTEXT {
            // It replaces what was set before, and does so where it fails too.
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
            return self.refuse(option, reply::ERR_INVALID, "a name and a list of queries are wanted");
        };
        if !self.talk.framing.has_chunks() {
            return self.refuse(option, reply::ERR_INVALID, "wants structured replies first");
        }
        if self.device.export(name).is_none() {
            return self.refuse(option, reply::ERR_UNKNOWN, "no such export");
        }
        let is_list = option == option::LIST_META_CONTEXT;
        let asked = |query: &str| query == wire::BASE_ALLOCATION || (is_list && query == "base:");
        let told = (is_list && queries.is_empty()) || queries.iter().any(|query| asked(query));
        if !is_list {
            self.talk.context_of = told.then(|| name.to_owned());
        }
        if told {
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
    // A flush of one connection covers what all of them wrote: they share one cache.
    let always = always | CAN_MULTI_CONN;
    // It is offered so that clients can find out that it never is fast: drives write zeros as anything else.
    let always = always | SEND_FAST_ZERO;
    let framed = match framing {
        Framing::Simple => 0,
        Framing::Structured => SEND_DF,
        Framing::Extended => SEND_DF | BLOCK_STATUS_PAYLOAD,
    };
    always | framed | if export.is_rotational { ROTATIONAL } else { 0 }
}

/// The data of an option, from the front.
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

    /// A length and so many bytes of text.
    fn text(&mut self) -> Option<&'a str> {
        let length = self.word()? as usize;
        let bytes = self.take(length)?;
        (length <= wire::NAME_BYTES_MAX).then(|| std::str::from_utf8(bytes).ok())?
    }
}
