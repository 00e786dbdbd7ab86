//! The handshake: fixed newstyle, option by option, until the client has chosen an export or goes.

use std::io;

use super::input::Input;
use super::stream::Stream;
use super::tls::Tls;
use super::wire::{self, info, option, option_reply, reply, transmission};
use crate::device::{Device, Export};

/// What client and server agreed on.
#[derive(Clone, Copy, Debug)]
pub struct Terms<'d> {
    /// What the client chose.
    pub export: &'d Export,
    /// Replies are structured.
    pub structured: bool,
    /// The client may ask for extents.
    pub has_context: bool,
}

/// What the handshake came to.
#[derive(Debug)]
pub enum Agreed<'d> {
    /// Requests follow.
    Export(Terms<'d>),
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
    Encrypted(Greeted),
}

/// What stands so far.
struct Negotiation<'a, 'd> {
    input: &'a mut Input,
    stream: &'a Stream,
    device: &'d Device,
    cover: Cover<'a>,
    greeted: Greeted,
    structured: bool,
    /// The export for which extents were asked.
    context_of: Option<String>,
}

/// Negotiates with a client. A client that breaks the protocol is hung up on; an option that is not known is refused and
/// the next one heard.
///
/// # Errors
/// The stream's.
pub fn negotiate<'d>(
    input: &mut Input,
    stream: &Stream,
    device: &'d Device,
    cover: Cover<'_>,
) -> io::Result<Agreed<'d>> {
    let greeted = match cover {
        Cover::Clear(_) => greet(input, stream)?,
        Cover::Encrypted(greeted) => greeted,
    };
    let mut talk = Negotiation { input, stream, device, cover, greeted, structured: false, context_of: None };
    loop {
        if u64::from_be_bytes(talk.input.array()?) != wire::OPTION_MAGIC {
            return Ok(Agreed::Over);
        }
        let option = u32::from_be_bytes(talk.input.array()?);
        let length = u32::from_be_bytes(talk.input.array()?);
        if let Some(agreed) = talk.option(option, length)? {
            return Ok(agreed);
        }
    }
}

fn greet(input: &mut Input, stream: &Stream) -> io::Result<Greeted> {
    let mut greeting = Vec::with_capacity(18);
    greeting.extend_from_slice(&wire::MAGIC.to_be_bytes());
    greeting.extend_from_slice(&wire::OPTION_MAGIC.to_be_bytes());
    let flags = wire::HANDSHAKE_FIXED_NEWSTYLE | wire::HANDSHAKE_NO_ZEROES;
    greeting.extend_from_slice(&flags.to_be_bytes());
    stream.write_all(&greeting)?;
    let client = u32::from_be_bytes(input.array()?);
    if client & !u32::from(flags) != 0 {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "unknown flags of a client"));
    }
    Ok(Greeted { no_zeroes: client & u32::from(wire::HANDSHAKE_NO_ZEROES) != 0 })
}

impl<'d> Negotiation<'_, 'd> {
    /// One option; the end of the handshake where it is one.
    fn option(&mut self, option: u32, length: u32) -> io::Result<Option<Agreed<'d>>> {
        if length > wire::OPTION_BYTES_MAX {
            if option == option::EXPORT_NAME {
                return Ok(Some(Agreed::Over));
            }
            self.input.skip(length as usize)?;
            return self.refuse(option, reply::ERR_TOO_BIG, "too long");
        }
        let mut data = vec![0; length as usize];
        self.input.exact(&mut data)?;
        let is_open = matches!(option, option::ABORT | option::STARTTLS);
        if matches!(self.cover, Cover::Clear(Security::Required(_))) && !is_open {
            if option == option::EXPORT_NAME {
                return Ok(Some(Agreed::Over));
            }
            return self.refuse(option, reply::ERR_TLS_REQD, "this server wants TLS first");
        }
        if !self.device.has_power() && option != option::ABORT {
            if option == option::EXPORT_NAME {
                return Ok(Some(Agreed::Over));
            }
            return self.refuse(option, reply::ERR_SHUTDOWN, "the power is off");
        }
        match option {
            option::EXPORT_NAME => self.export_name(&data),
            option::ABORT => {
                self.answer(option, reply::ACK, &[])?;
                Ok(Some(Agreed::Over))
            }
            option::LIST => self.list(&data),
            option::STARTTLS => self.start_tls(&data),
            option::INFO | option::GO => self.inform(option, &data),
            option::STRUCTURED_REPLY if data.is_empty() => {
                self.structured = true;
                self.answer(option, reply::ACK, &[])
            }
            option::STRUCTURED_REPLY => self.refuse(option, reply::ERR_INVALID, "takes no data"),
            option::LIST_META_CONTEXT | option::SET_META_CONTEXT => self.contexts(option, &data),
            _ => self.refuse(option, reply::ERR_UNSUP, "not known here"),
        }
    }

    fn answer(&self, option: u32, kind: u32, data: &[u8]) -> io::Result<Option<Agreed<'d>>> {
        let mut message = Vec::with_capacity(20 + data.len());
        option_reply(&mut message, option, kind, data);
        self.stream.write_all(&message)?;
        Ok(None)
    }

    fn refuse(&self, option: u32, kind: u32, why: &str) -> io::Result<Option<Agreed<'d>>> {
        self.answer(option, kind, why.as_bytes())
    }

    fn agree(&self, export: &'d Export) -> Agreed<'d> {
        let named = |name: &String| self.device.export(name).is_some_and(|other| other.name == export.name);
        let has_context = self.structured && self.context_of.as_ref().is_some_and(named);
        Agreed::Export(Terms { export, structured: self.structured, has_context })
    }

    /// The old way in: no reply but the facts, and no way to refuse but the end.
    fn export_name(&mut self, data: &[u8]) -> io::Result<Option<Agreed<'d>>> {
        let Some(export) = std::str::from_utf8(data).ok().and_then(|name| self.device.export(name)) else {
            return Ok(Some(Agreed::Over));
        };
        let mut message = Vec::with_capacity(134);
        message.extend_from_slice(&export.span.length_bytes.to_be_bytes());
        message.extend_from_slice(&flags_of(export, self.structured).to_be_bytes());
        if !self.greeted.no_zeroes {
            message.resize(message.len() + 124, 0);
        }
        self.stream.write_all(&message)?;
        Ok(Some(self.agree(export)))
    }

    fn list(&mut self, data: &[u8]) -> io::Result<Option<Agreed<'d>>> {
        if !data.is_empty() {
            return self.refuse(option::LIST, reply::ERR_INVALID, "takes no data");
        }
        for export in &self.device.exports {
            let mut server = (export.name.len() as u32).to_be_bytes().to_vec();
            server.extend_from_slice(export.name.as_bytes());
            server.extend_from_slice(export.description.as_bytes());
            self.answer(option::LIST, reply::SERVER, &server)?;
        }
        self.answer(option::LIST, reply::ACK, &[])
    }

    fn start_tls(&mut self, data: &[u8]) -> io::Result<Option<Agreed<'d>>> {
        let tls = match self.cover {
            Cover::Encrypted(_) => return self.refuse(option::STARTTLS, reply::ERR_INVALID, "is on already"),
            Cover::Clear(Security::None) => {
                return self.refuse(option::STARTTLS, reply::ERR_UNSUP, "this server has no certificate");
            }
            Cover::Clear(Security::Offered(tls) | Security::Required(tls)) => tls,
        };
        // Anything sent before the answer would be taken for the encrypted part.
        if !data.is_empty() || !self.input.is_drained() {
            return self.refuse(option::STARTTLS, reply::ERR_INVALID, "takes no data, and nothing may follow it");
        }
        self.answer(option::STARTTLS, reply::ACK, &[])?;
        Ok(Some(Agreed::Tls(tls.clone(), self.greeted)))
    }

    /// INFO and GO: a name, and what the client would like to be told.
    fn inform(&mut self, option: u32, data: &[u8]) -> io::Result<Option<Agreed<'d>>> {
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
        self.facts(option, export, &wanted)?;
        self.answer(option, reply::ACK, &[])?;
        Ok((option == option::GO).then(|| self.agree(export)))
    }

    fn facts(&self, option: u32, export: &Export, wanted: &[u16]) -> io::Result<()> {
        let mut facts = info::EXPORT.to_be_bytes().to_vec();
        facts.extend_from_slice(&export.span.length_bytes.to_be_bytes());
        facts.extend_from_slice(&flags_of(export, self.structured).to_be_bytes());
        self.answer(option, reply::INFO, &facts)?;
        // Whoever does not ask may think that every byte can be had by itself: the size is told to all.
        let mut sizes = info::BLOCK_SIZE.to_be_bytes().to_vec();
        for bytes in [export.block_bytes, export.block_bytes.max(4096), wire::PAYLOAD_BYTES_MAX] {
            sizes.extend_from_slice(&bytes.to_be_bytes());
        }
        self.answer(option, reply::INFO, &sizes)?;
        for (item, text) in [(info::NAME, &export.name), (info::DESCRIPTION, &export.description)] {
            if wanted.contains(&item) {
                let told = [&item.to_be_bytes(), text.as_bytes()].concat();
                self.answer(option, reply::INFO, &told)?;
            }
        }
        Ok(())
    }

    /// The contexts of which extents can be told: one.
    fn contexts(&mut self, option: u32, data: &[u8]) -> io::Result<Option<Agreed<'d>>> {
        if option == option::SET_META_CONTEXT {
            // It replaces what was set before, and does so where it fails too.
            self.context_of = None;
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
        if !self.structured {
            return self.refuse(option, reply::ERR_INVALID, "wants structured replies first");
        }
        if self.device.export(name).is_none() {
            return self.refuse(option, reply::ERR_UNKNOWN, "no such export");
        }
        let is_list = option == option::LIST_META_CONTEXT;
        let asked = |query: &str| query == wire::BASE_ALLOCATION || (is_list && query == "base:");
        let told = (is_list && queries.is_empty()) || queries.iter().any(|query| asked(query));
        if !is_list {
            self.context_of = told.then(|| name.to_owned());
        }
        if told {
            let id = if is_list { 0 } else { wire::BASE_ALLOCATION_ID };
            let context = [&id.to_be_bytes(), wire::BASE_ALLOCATION.as_bytes()].concat();
            self.answer(option, reply::META_CONTEXT, &context)?;
        }
        self.answer(option, reply::ACK, &[])
    }
}

fn flags_of(export: &Export, structured: bool) -> u16 {
    use transmission::*;
    let always = HAS_FLAGS | SEND_FLUSH | SEND_FUA | SEND_TRIM | SEND_WRITE_ZEROES | SEND_CACHE;
    // A flush of one connection covers what all of them wrote: they share one cache.
    let always = always | CAN_MULTI_CONN;
    // It is offered so that clients can find out that it never is fast: drives write zeros as anything else.
    let always = always | SEND_FAST_ZERO;
    always | if export.is_rotational { ROTATIONAL } else { 0 } | if structured { SEND_DF } else { 0 }
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
