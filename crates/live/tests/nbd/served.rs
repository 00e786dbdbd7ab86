//! A server under test, and clients for it.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use headstack_live::nbd::client::{Chunk, Client};
use headstack_live::nbd::wire::{self, Framing, Header, command, option};
use headstack_live::nbd::{Endpoint, Limits, SOCKET_MODE, Security, Server};
use headstack_live::stream::Stream;
use headstack_live::{Contents, Device, Export, Session, SessionOptions};
use headstack_sim::{Constant, Model};
use headstack_workload::Span;

/// Size of the first export, `large`, in bytes.
pub const LARGE_BYTES: u64 = 256 << 20;
/// Size of the second export, `small`, in bytes; its blocks have 4 KiB.
pub const SMALL_BYTES: u64 = 1 << 20;
/// Latencies of a device that answers immediately, and of a device that the clock answers.
pub const LATENCIES_NS: [u64; 2] = [0, 100_000];
/// Time after which an operation counts as hanging; a test itself may take two minutes.
pub const PATIENCE: Duration = Duration::from_secs(100);

/// A server that ends with the test.
pub struct Served {
    parts: Option<(Server, Session)>,
    pub device: Arc<Device>,
    pub socket: PathBuf,
}

impl Served {
    /// Serves two exports in memory, on which every request takes `latency_ns`.
    pub fn new(latency_ns: u64) -> Served {
        let contents = Contents::in_memory(LARGE_BYTES + SMALL_BYTES).expect("memory");
        Served::with(latency_ns, contents, Security::None)
    }

    pub fn with(latency_ns: u64, contents: Contents, security: Security) -> Served {
        Served::limited(latency_ns, contents, security, Limits::default())
    }

    pub fn limited(latency_ns: u64, contents: Contents, security: Security, limits: Limits) -> Served {
        Served::sized(latency_ns, LARGE_BYTES, contents, security, limits)
    }

    /// Like `new`, with a large export of `large_bytes`.
    pub fn sized(latency_ns: u64, large_bytes: u64, contents: Contents, security: Security, limits: Limits) -> Served {
        let model = Model::Constant(Constant { latency_ns, capacity_bytes: large_bytes + SMALL_BYTES });
        let session = Session::start(&model, SessionOptions::default(), None).expect("the session starts");
        let export = |name: &str, start_bytes, length_bytes, block_bytes| Export {
            name: name.to_owned(),
            description: format!("the {name} one"),
            span: Span { start_bytes, length_bytes },
            block_bytes,
            is_rotational: block_bytes == 4096,
        };
        let exports = vec![export("large", 0, large_bytes, 512), export("small", large_bytes, SMALL_BYTES, 4096)];
        let device = Arc::new(Device { exports, contents, submitter: session.submitter() });
        let socket = fresh_path("socket");
        let endpoints = [Endpoint::Unix(socket.clone())];
        let server = Server::start_with(&device, &endpoints, security, limits, SOCKET_MODE).expect("the server starts");
        Served { parts: Some((server, session)), device, socket }
    }

    pub fn server(&self) -> &Server {
        &self.parts.as_ref().expect("it is still running").0
    }

    /// Ends the server before the test ends.
    pub fn stop(&mut self) {
        if let Some((server, session)) = self.parts.take() {
            server.stop();
            session.stop();
        }
    }

    pub fn stream(&self) -> Stream {
        let socket = UnixStream::connect(&self.socket).expect("the server listens");
        socket.set_read_timeout(Some(PATIENCE)).expect("a socket has timeouts");
        Stream::socket_of(socket)
    }

    /// Returns a client after the greeting, before any options.
    pub fn greeted(&self) -> Client {
        Client::greet(self.stream(), wire::HANDSHAKE_FIXED_NEWSTYLE | wire::HANDSHAKE_NO_ZEROES)
            .expect("the server sends a greeting")
    }

    /// Returns a client of the large export, with simple replies.
    pub fn client(&self) -> Client {
        Client::connect(self.stream(), "large").expect("the server has the export")
    }

    /// Returns a client of an export, with structured replies and extents.
    pub fn structured(&self, export: &str) -> Client {
        self.framed(export, Framing::Structured)
    }

    /// Returns a client of an export, with the given format of replies, and extents.
    pub fn framed(&self, export: &str, framing: Framing) -> Client {
        let mut client = self.greeted();
        client.frame(framing).expect("the server supports this format");
        let told = client.option(option::SET_META_CONTEXT, &contexts(export, &[wire::BASE_ALLOCATION]));
        assert_eq!(told.expect("replies").len(), 2);
        client.go(export).expect("the server has the export");
        client
    }

    /// Waits until no client is connected.
    pub fn await_empty(&self) {
        let begun = std::time::Instant::now();
        while self.server().connections() > 0 {
            assert!(begun.elapsed() < PATIENCE, "{} connections remain", self.server().connections());
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Returns a path that no other test uses.
pub fn fresh_path(what: &str) -> PathBuf {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("headstack-nbd-{}-{number}-{what}", std::process::id()))
}

/// A folder that no other test uses, removed on drop.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Folder {
        let path = fresh_path("folder");
        std::fs::create_dir(&path).expect("the folder is created");
        Folder(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns the data of an option that selects contexts.
pub fn contexts(export: &str, queries: &[&str]) -> Vec<u8> {
    let mut rest = (queries.len() as u32).to_be_bytes().to_vec();
    queries.iter().for_each(|query| rest.extend(wire::named(query, &[])));
    wire::named(export, &rest)
}

pub fn header(command: u16, flags: u16, cookie: u64, offset_bytes: u64, length_bytes: u32) -> Header {
    Header { flags, command, cookie, offset_bytes, length_bytes: length_bytes.into() }
}

/// Returns bytes that differ between positions.
pub fn pattern(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    std::iter::repeat_with(next).flatten().take(length).collect()
}

/// Sends a single request and waits for its reply.
pub trait Asking {
    /// Returns the data of a simple reply, or its error.
    fn simple(&mut self, header: &Header, payload: &[u8]) -> Result<Vec<u8>, u32>;
    /// Returns the chunks of a structured reply.
    fn chunks(&mut self, header: &Header, payload: &[u8]) -> Vec<Chunk>;
}

impl Asking for Client {
    fn simple(&mut self, header: &Header, payload: &[u8]) -> Result<Vec<u8>, u32> {
        self.send(header, payload).expect("sending succeeds");
        let brings = header.command == command::READ;
        let mut data = vec![0; if brings { header.length_bytes as usize } else { 0 }];
        let (cookie, error) = self.receive(|_| &mut data).expect("the server replies");
        assert_eq!(cookie, header.cookie);
        if error == 0 { Ok(data) } else { Err(error) }
    }

    fn chunks(&mut self, header: &Header, payload: &[u8]) -> Vec<Chunk> {
        self.send(header, payload).expect("sending succeeds");
        let mut chunks = Vec::new();
        while chunks.last().is_none_or(|chunk: &Chunk| !chunk.is_last) {
            let chunk = self.receive_chunk().expect("the server sends a chunk");
            assert_eq!(chunk.cookie, header.cookie);
            chunks.push(chunk);
        }
        chunks
    }
}
