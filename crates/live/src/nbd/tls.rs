//! TLS: a relay thread between the client and a socket pair, so that the request loop needs no TLS.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use rustix::event::{PollFd, PollFlags, poll};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection};

use super::output::STACK_BYTES;
use crate::LiveError;
use crate::stream::Stream;

/// Bytes relayed at a time.
const PART_BYTES: usize = 64 << 10;

/// The server's certificate and key, and which clients are accepted.
#[derive(Clone, Debug)]
pub struct Tls {
    config: Arc<ServerConfig>,
}

impl Tls {
    /// Loads a certificate with its chain and its key from PEM files. With `client_ca`, clients have to show a
    /// certificate that one of the authorities in that file has signed.
    ///
    /// # Errors
    /// When a file cannot be read, contains no certificate or key, or does not match the others.
    pub fn from_files(certificate: &Path, key: &Path, client_ca: Option<&Path>) -> Result<Tls, LiveError> {
        let invalid = |path: &Path, what: String| LiveError::Invalid(format!("{}: {what}", path.display()));
        let chain = certificates(certificate)?;
        let private = PrivateKeyDer::from_pem_file(key).map_err(|error| unreadable(key, "private key", error))?;
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
        let builder = builder.map_err(|error| LiveError::Invalid(format!("tls: {error}")))?;
        let builder = match client_ca {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let mut roots = RootCertStore::empty();
                for root in certificates(path)? {
                    roots
                        .add(root)
                        .map_err(|error| invalid(path, format!("is not a certificate authority: {error}")))?;
                }
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
                builder.with_client_cert_verifier(verifier.map_err(|error| invalid(path, error.to_string()))?)
            }
        };
        let config = builder.with_single_cert(chain, private);
        let config = config
            .map_err(|error| invalid(certificate, format!("does not match the key in {}: {error}", key.display())))?;
        Ok(Tls { config: Arc::new(config) })
    }

    /// Starts a thread that runs the handshake over `outer`, then relays both directions. Returns the unencrypted inner
    /// side; the thread ends when that is shut down.
    pub(super) fn stand_between(&self, outer: &Stream) -> io::Result<(Stream, JoinHandle<io::Result<()>>)> {
        let (ours, theirs) = UnixStream::pair()?;
        let inner = Stream::socket_of(theirs);
        outer.never_wait()?;
        inner.never_wait()?;
        let tls = ServerConnection::new(Arc::clone(&self.config)).map_err(io::Error::other)?;
        let relay = Relay { tls, outer: outer.clone(), inner, received: Vec::new(), client_over: false, over: false };
        let thread = thread::Builder::new().name("headstack-tls".to_owned()).stack_size(STACK_BYTES);
        let relay = thread.spawn(move || relay.run())?;
        Ok((Stream::socket_of(ours), relay))
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, LiveError> {
    let chain_result = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match chain_result {
        Ok(chain_result) if chain_result.is_empty() => Err(unreadable(path, "certificate", pem::Error::NoItemsFound)),
        chain_result => chain_result.map_err(|error| unreadable(path, "certificate", error)),
    }
}

fn unreadable(path: &Path, wanted: &str, error: pem::Error) -> LiveError {
    let name = path.display();
    match error {
        pem::Error::Io(error) => LiveError::io(name.to_string())(error),
        pem::Error::NoItemsFound => LiveError::Invalid(format!("{name}: has no {wanted} in PEM form")),
        other => LiveError::Invalid(format!("{name}: a {wanted} in PEM form is required: {other}")),
    }
}

/// The relay between a client and its connection.
struct Relay {
    tls: ServerConnection,
    outer: Stream,
    inner: Stream,
    /// Decrypted data from the client that the connection has not accepted yet.
    received: Vec<u8>,
    /// Whether the client will send no more.
    client_over: bool,
    /// Whether the connection will send no more.
    over: bool,
}

impl Relay {
    /// Runs until the connection has ended and the client has received everything, or is gone.
    fn run(mut self) -> io::Result<()> {
        while !self.over || self.tls.wants_write() {
            let [can_read, can_write, has_more, has_room] = self.wait()?;
            if has_room {
                self.pass_in()?;
            }
            if can_read {
                self.receive()?;
            }
            if has_more {
                self.pass_out()?;
            }
            if can_write || has_more {
                self.send()?;
            }
        }
        Ok(())
    }

    /// Waits for the next possible action: reading from and writing to the client, then the connection. Neither side is
    /// read while its previous data are still here, so that no backlog grows.
    fn wait(&self) -> io::Result<[bool; 4]> {
        let (outer_in, outer_out) = self.outer.ends();
        let (inner, _) = self.inner.ends();
        let sends = self.tls.wants_write();
        let is_open = !self.tls.is_handshaking() || self.client_over;
        let wanted = [
            (outer_in, PollFlags::IN, !self.client_over && self.received.is_empty()),
            (outer_out, PollFlags::OUT, sends),
            (inner, PollFlags::IN, !self.over && !sends && is_open),
            (inner, PollFlags::OUT, !self.received.is_empty()),
        ];
        // An end without a wanted event is omitted: if closed, it would be reported again and again.
        let mut invalid: Vec<_> =
            wanted.iter().filter(|(.., is)| *is).map(|(fd, flags, _)| PollFd::new(fd, *flags)).collect();
        while let Err(error) = poll(&mut invalid, None) {
            if error != rustix::io::Errno::INTR {
                return Err(error.into());
            }
        }
        let mut ready = invalid.iter().map(|fd| !fd.revents().is_empty());
        Ok(wanted.map(|(.., is)| is && ready.next().expect("one for each that was asked")))
    }

    /// Receives records from the client, some with data and some of the protocol itself.
    fn receive(&mut self) -> io::Result<()> {
        match self.tls.read_tls(&mut Ciphertext(&self.outer)) {
            Ok(0) => self.client_over = true,
            Ok(_) => {
                let state = match self.tls.process_new_packets() {
                    Ok(state) => state,
                    Err(error) => {
                        // The client gets the reason by an alert, if it is still there.
                        let _ = self.send();
                        return Err(io::Error::new(io::ErrorKind::InvalidData, error));
                    }
                };
                self.client_over |= state.peer_has_closed();
                self.received.resize(state.plaintext_bytes_to_read(), 0);
                self.tls.reader().read_exact(&mut self.received)?;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        self.end_in();
        Ok(())
    }

    fn pass_in(&mut self) -> io::Result<()> {
        let sent = or_later(self.inner.write(&self.received))?.unwrap_or(0);
        self.received.drain(..sent);
        self.end_in();
        Ok(())
    }

    /// Passes the end of the client's data on to the connection.
    fn end_in(&self) {
        if self.client_over && self.received.is_empty() {
            self.inner.shut_writing();
        }
    }

    fn pass_out(&mut self) -> io::Result<()> {
        let mut part = [0; PART_BYTES];
        match or_later(self.inner.read(&mut part))? {
            None => {}
            Some(0) => {
                self.over = true;
                self.tls.send_close_notify();
            }
            Some(length) => self.tls.writer().write_all(&part[..length])?,
        }
        Ok(())
    }

    fn send(&mut self) -> io::Result<()> {
        while self.tls.wants_write() {
            if or_later(self.tls.write_tls(&mut Ciphertext(&self.outer)))?.is_none() {
                break;
            }
        }
        Ok(())
    }
}

/// `None` if nothing was available yet.
fn or_later(done: io::Result<usize>) -> io::Result<Option<usize>> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        done => done.map(Some),
    }
}

/// Adapter of a stream for rustls.
struct Ciphertext<'a>(&'a Stream);

impl Read for Ciphertext<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.read(into)
    }
}

impl Write for Ciphertext<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
