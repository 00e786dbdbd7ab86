//! An NBD server for tests, which keeps its contents in memory and can misbehave in one way.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use headstack_nbd::{
    self as wire, Framing, Header, To, chunk, command, info, option, option_reply, reply, transmission,
};

/// How the server misbehaves, or differs from the simplest behavior.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quirk {
    None,
    /// Reads are answered in three parts, the last one first, with zeros as a hole.
    InParts,
    /// A byte is changed when it is read.
    Corrupts {
        at_bytes: u64,
    },
    /// Requests with this command fail.
    Fails {
        command: u16,
        errno: u32,
    },
    /// Reads end early, without an error.
    IsShort,
    /// After a number of requests the server hangs up, answers nothing, or sends garbage. Before it hangs up, it stops
    /// reading, and answers the last request when the client can no longer send.
    HangsUp {
        after: u64,
    },
    IsSilent {
        after: u64,
    },
    Babbles {
        after: u64,
    },
    /// The server accepts only clients with TLS.
    WantsTls,
    /// The peer is not an NBD server.
    IsAnother,
}

#[derive(Clone)]
pub struct Settings {
    pub capacity_bytes: u64,
    /// The best reply format that the server supports.
    pub framing: Framing,
    pub flags: u16,
    /// Minimum, preferred and maximum block size, in bytes.
    pub blocks: Option<[u32; 3]>,
    pub quirk: Quirk,
}

pub const FLAGS: u16 = transmission::HAS_FLAGS
    | transmission::SEND_FLUSH
    | transmission::SEND_FUA
    | transmission::SEND_TRIM
    | transmission::CAN_MULTI_CONN;

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            capacity_bytes: 16 << 20,
            framing: Framing::Structured,
            flags: FLAGS,
            blocks: None,
            quirk: Quirk::None,
        }
    }
}

/// What the clients requested.
#[derive(Default)]
pub struct Seen {
    pub connections: AtomicU64,
    pub at_once: AtomicU64,
    pub requests: AtomicU64,
    pub forced: AtomicU64,
    pub flushes: AtomicU64,
    pub trims: AtomicU64,
    pub leaves: AtomicU64,
}

struct Shared {
    settings: Settings,
    contents: Mutex<Vec<u8>>,
    seen: Seen,
    is_over: AtomicBool,
}

/// A server with one export, `disk`, at its own socket.
pub struct Server {
    path: PathBuf,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    pub fn new(settings: Settings) -> Server {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("headstack-nbd-{}-{number}", std::process::id()));
        let listener = UnixListener::bind(&path).unwrap();
        let contents = Mutex::new(vec![0; settings.capacity_bytes as usize]);
        let shared = Arc::new(Shared { settings, contents, seen: Seen::default(), is_over: AtomicBool::new(false) });
        let served = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, shared) = (stream.unwrap(), Arc::clone(&served));
                if shared.is_over.load(Ordering::Relaxed) {
                    return;
                }
                shared.seen.connections.fetch_add(1, Ordering::Relaxed);
                std::thread::spawn(move || {
                    shared.seen.at_once.fetch_add(1, Ordering::Relaxed);
                    // An error when a client leaves ends the connection.
                    let _ = Client { stream, shared: &shared, framing: Framing::Simple }.serve();
                    shared.seen.at_once.fetch_sub(1, Ordering::Relaxed);
                });
            }
        });
        Server { path, shared, thread: Some(thread) }
    }

    pub fn uri(&self) -> String {
        self.uri_of("disk")
    }

    pub fn uri_of(&self, export: &str) -> String {
        format!("nbd+unix:///{export}?socket={}", self.path.display())
    }

    pub fn counters(&self) -> &Seen {
        &self.shared.seen
    }

    pub fn put(&self, at: usize, bytes: &[u8]) {
        self.shared.contents.lock().unwrap()[at..at + bytes.len()].copy_from_slice(bytes);
    }

    pub fn contents(&self) -> Vec<u8> {
        self.shared.contents.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        drop(UnixStream::connect(&self.path));
        let ended = self.thread.take().unwrap().join();
        std::fs::remove_file(&self.path).unwrap();
        assert!(ended.is_ok() || std::thread::panicking());
    }
}

struct Client<'s> {
    stream: UnixStream,
    shared: &'s Shared,
    framing: Framing,
}

impl Client<'_> {
    fn serve(mut self) -> io::Result<()> {
        if self.shared.settings.quirk == Quirk::IsAnother {
            return self.stream.write_all(b"220 mail.example.com ESMTP\r\n");
        }
        if !self.negotiate()? {
            return Ok(());
        }
        loop {
            let mut head = vec![0; self.framing.request_bytes()];
            self.stream.read_exact(&mut head)?;
            let header = Header::parse(&head, self.framing).expect("a request");
            if header.command == command::DISC {
                self.shared.seen.leaves.fetch_add(1, Ordering::Relaxed);
                return Ok(());
            }
            let count = self.shared.seen.requests.fetch_add(1, Ordering::Relaxed);
            match self.shared.settings.quirk {
                Quirk::HangsUp { after } if count + 1 == after => {
                    self.stream.shutdown(Shutdown::Read)?;
                    std::thread::sleep(Duration::from_millis(20));
                    self.answer(&header)?;
                    return Ok(());
                }
                Quirk::IsSilent { after } if count >= after => {
                    io::copy(&mut self.stream, &mut io::sink())?;
                    return Ok(());
                }
                Quirk::Babbles { after } if count >= after => {
                    self.stream.write_all(b"what?what?what?what?what?what?")?
                }
                _ => self.answer(&header)?,
            }
        }
    }

    fn negotiate(&mut self) -> io::Result<bool> {
        let mut say = wire::MAGIC.to_be_bytes().to_vec();
        say.extend(wire::OPTION_MAGIC.to_be_bytes());
        say.extend((wire::HANDSHAKE_FIXED_NEWSTYLE | wire::HANDSHAKE_NO_ZEROES).to_be_bytes());
        self.stream.write_all(&say)?;
        let mut flags = [0; 4];
        self.stream.read_exact(&mut flags)?;
        loop {
            let mut head = [0; 16];
            self.stream.read_exact(&mut head)?;
            let word = |at: usize| u32::from_be_bytes(head[at..at + 4].try_into().unwrap());
            let (asked, mut data) = (word(8), vec![0; word(12) as usize]);
            self.stream.read_exact(&mut data)?;
            let settings = &self.shared.settings;
            let mut say = Vec::new();
            let mut is_over = false;
            let kind = match asked {
                _ if settings.quirk == Quirk::WantsTls => reply::ERR_TLS_REQD,
                option::EXTENDED_HEADERS if settings.framing == Framing::Extended => {
                    self.framing = Framing::Extended;
                    reply::ACK
                }
                option::STRUCTURED_REPLY if settings.framing == Framing::Structured => {
                    self.framing = Framing::Structured;
                    reply::ACK
                }
                option::GO if !data.starts_with(b"\0\0\0\x04disk") => reply::ERR_UNKNOWN,
                option::GO => {
                    is_over = true;
                    let mut told = info::EXPORT.to_be_bytes().to_vec();
                    told.extend(settings.capacity_bytes.to_be_bytes());
                    told.extend(settings.flags.to_be_bytes());
                    option_reply(&mut say, asked, reply::INFO, &told);
                    if let Some(blocks) = settings.blocks {
                        let mut told = info::BLOCK_SIZE.to_be_bytes().to_vec();
                        blocks.iter().for_each(|bytes| told.extend(bytes.to_be_bytes()));
                        option_reply(&mut say, asked, reply::INFO, &told);
                    }
                    reply::ACK
                }
                option::LIST => {
                    option_reply(&mut say, asked, reply::SERVER, b"\0\0\0\x04disk");
                    reply::ACK
                }
                _ => reply::ERR_UNSUP,
            };
            option_reply(&mut say, asked, kind, &[]);
            self.stream.write_all(&say)?;
            if is_over {
                return Ok(true);
            }
        }
    }

    fn answer(&mut self, header: &Header) -> io::Result<()> {
        let Header { command, cookie, offset_bytes, length_bytes, flags } = *header;
        let (at, length) = (offset_bytes as usize, length_bytes as usize);
        let seen = &self.shared.seen;
        seen.forced.fetch_add(u64::from(flags & command::FLAG_FUA != 0), Ordering::Relaxed);
        let mut payload = vec![0; if command == command::WRITE { length } else { 0 }];
        self.stream.read_exact(&mut payload)?;
        if let Quirk::Fails { command: failing, errno } = self.shared.settings.quirk
            && failing == command
        {
            return self.fail(header, errno);
        }
        match command {
            command::READ => {
                let mut data = self.shared.contents.lock().unwrap()[at..at + length].to_vec();
                if let Quirk::Corrupts { at_bytes } = self.shared.settings.quirk
                    && (offset_bytes..offset_bytes + length_bytes).contains(&at_bytes)
                {
                    data[(at_bytes - offset_bytes) as usize] ^= 1;
                }
                return self.send_reply(header, &data);
            }
            command::WRITE => self.shared.contents.lock().unwrap()[at..at + length].copy_from_slice(&payload),
            command::TRIM => {
                seen.trims.fetch_add(1, Ordering::Relaxed);
                self.shared.contents.lock().unwrap()[at..at + length].fill(0);
            }
            command::FLUSH => {
                seen.flushes.fetch_add(1, Ordering::Relaxed);
            }
            other => panic!("nobody sends {other}"),
        }
        let mut say = Vec::new();
        match self.framing {
            Framing::Extended => wire::chunk_header(&mut say, self.to(header), chunk::FLAG_DONE, chunk::NONE, 0),
            // Either format is allowed without data.
            Framing::Simple | Framing::Structured => wire::simple(&mut say, cookie, 0),
        }
        self.stream.write_all(&say)
    }

    fn to(&self, header: &Header) -> To {
        To { framing: self.framing, cookie: header.cookie, offset_bytes: header.offset_bytes }
    }

    fn fail(&mut self, header: &Header, errno: u32) -> io::Result<()> {
        let mut say = Vec::new();
        if self.framing == Framing::Simple {
            wire::simple(&mut say, header.cookie, errno);
        } else {
            wire::chunk_header(&mut say, self.to(header), chunk::FLAG_DONE, chunk::ERROR, 10);
            say.extend(errno.to_be_bytes());
            say.extend(b"\0\x04oops");
        }
        self.stream.write_all(&say)
    }

    fn send_reply(&mut self, header: &Header, data: &[u8]) -> io::Result<()> {
        let mut say = Vec::new();
        if self.framing == Framing::Simple {
            wire::simple(&mut say, header.cookie, 0);
            say.extend(data);
            return self.stream.write_all(&say);
        }
        let to = self.to(header);
        let mut part = |from: usize, until: usize, flags: u16| {
            let (place, data) = (header.offset_bytes + from as u64, &data[from..until]);
            if self.shared.settings.quirk == Quirk::InParts && data.iter().all(|byte| *byte == 0) {
                wire::chunk_header(&mut say, to, flags, chunk::OFFSET_HOLE, 12);
                say.extend(place.to_be_bytes());
                say.extend((data.len() as u32).to_be_bytes());
            } else {
                wire::chunk_header(&mut say, to, flags, chunk::OFFSET_DATA, 8 + data.len() as u32);
                say.extend(place.to_be_bytes());
                say.extend(data);
            }
        };
        match self.shared.settings.quirk {
            Quirk::InParts => {
                let (third, half) = (data.len() / 4, data.len() / 2);
                part(half, data.len(), 0);
                part(third, half, 0);
                part(0, third, 0);
                wire::chunk_header(&mut say, to, chunk::FLAG_DONE, chunk::NONE, 0);
            }
            Quirk::IsShort => part(0, data.len() / 2, chunk::FLAG_DONE),
            _ => part(0, data.len(), chunk::FLAG_DONE),
        }
        self.stream.write_all(&say)
    }
}
