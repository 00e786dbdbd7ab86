//! [`Export`]: an NBD export under test, and the connections to it.

use std::fmt;
use std::sync::Mutex;

use headstack_nbd::{Address, Framing, Header, transmission};
use headstack_workload::{Kind, Request};
use serde_json::{Value, json};

use super::replies::{Pending, Replies};
use super::{Connection, Terms, command_of};
use crate::LoadError;

/// Transmission flags of an export, with their names in results.
const ABILITIES: [(u16, &str); 9] = [
    (transmission::READ_ONLY, "read-only"),
    (transmission::SEND_FLUSH, "flush"),
    (transmission::SEND_FUA, "fua"),
    (transmission::ROTATIONAL, "rotational"),
    (transmission::SEND_TRIM, "trim"),
    (transmission::SEND_WRITE_ZEROES, "write-zeroes"),
    (transmission::SEND_DF, "df"),
    (transmission::CAN_MULTI_CONN, "multi-conn"),
    (transmission::SEND_CACHE, "cache"),
];

/// An export and its idle connections. Idle connections stay open, since a server may exit when the last one closes.
pub struct Export {
    address: Address,
    /// Address as the user wrote it.
    name: String,
    terms: Terms,
    framing: Framing,
    /// Number of connections per thread.
    connections: u32,
    is_written: bool,
    /// Whether every write must be on stable storage when it completes.
    is_durable: bool,
    idle: Mutex<IdleConnections>,
}

struct IdleConnections {
    connections: Vec<Connection>,
    in_use: u32,
}

impl fmt::Debug for Export {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.debug_struct("Export").field("name", &self.name).field("terms", &self.terms).finish_non_exhaustive()
    }
}

impl Export {
    /// Connects to the export `name`, for writing if `is_written`. Each thread that measures the export uses
    /// `connections` connections.
    ///
    /// # Errors
    /// Returns an error if the name is not an address, if the server does not answer or does not have the export, or if
    /// the export does not allow this use.
    pub fn open(name: &str, is_written: bool, is_durable: bool, connections: u32) -> Result<Export, LoadError> {
        let refused = |message: String| LoadError::Target { target: name.to_owned(), message };
        let address = Address::parse(name).map_err(refused)?;
        let (connection, agreed) = Connection::open(&address).map_err(refused)?;
        let export = Export {
            address,
            name: name.to_owned(),
            terms: agreed.terms,
            framing: agreed.framing,
            connections: connections.max(1),
            is_written,
            is_durable,
            idle: Mutex::new(IdleConnections { connections: vec![connection], in_use: 0 }),
        };
        if is_written && export.can(transmission::READ_ONLY) {
            return Err(refused("is a read-only export".to_owned()));
        }
        if is_durable && is_written && !export.can(transmission::SEND_FUA) {
            return Err(refused(
                "its server does not support FUA for writes to stable storage; use flushes".to_owned(),
            ));
        }
        if export.connections > 1 && is_written && !export.can(transmission::CAN_MULTI_CONN) {
            return Err(export.one_connection());
        }
        Ok(export)
    }

    /// Returns the server's terms for the export.
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Returns whether the export has the transmission flag `flag` ([`transmission`]).
    pub fn can(&self, flag: u16) -> bool {
        self.terms.flags & flag != 0
    }

    /// Returns the number of connections per thread.
    pub fn connections(&self) -> u32 {
        self.connections
    }

    /// Returns whether every write must be on stable storage when it completes.
    pub fn is_durable(&self) -> bool {
        self.is_durable
    }

    /// Returns the error number of a request that must not be sent, because the protocol or the user's permission
    /// forbids it; `None` if it may be sent.
    pub fn refuses(&self, request: &Request) -> Option<i32> {
        // The kernel would enforce this for a file.
        if !self.is_written && matches!(request.kind, Kind::Write | Kind::Trim) {
            return Some(libc::EBADF);
        }
        let needed = match request.kind {
            Kind::Trim => transmission::SEND_TRIM,
            Kind::Flush => transmission::SEND_FLUSH,
            Kind::Write if request.force_unit_access => transmission::SEND_FUA,
            Kind::Read | Kind::Write => 0,
        };
        if needed != 0 && !self.can(needed) {
            return Some(libc::EOPNOTSUPP);
        }
        let carries = matches!(request.kind, Kind::Read | Kind::Write);
        (carries && request.length_bytes > self.terms.maximum_bytes).then_some(libc::EMSGSIZE)
    }

    /// Returns whether `name_given` permits overwriting this export: it must be the address as given, or the export's
    /// own name.
    pub fn is_named(&self, name_given: &str) -> bool {
        let name_given = name_given.trim();
        name_given == self.name
            || (!name_given.is_empty() && name_given == self.address.export)
            || Address::parse(name_given).is_ok_and(|address| address == self.address)
    }

    /// Returns a connection for one thread: an idle connection or a new one.
    ///
    /// # Errors
    /// Returns an error if no new connection is possible, or if the address now leads to another export.
    pub fn take(&self) -> Result<Connection, LoadError> {
        let mut idle = self.idle.lock().expect("the lock is not poisoned");
        let connection = match idle.connections.pop() {
            Some(connection) => connection,
            None if idle.in_use > 0 && self.is_written && !self.can(transmission::CAN_MULTI_CONN) => {
                return Err(self.one_connection());
            }
            None => self.connect()?,
        };
        idle.in_use += 1;
        Ok(connection)
    }

    fn connect(&self) -> Result<Connection, LoadError> {
        let (connection, agreed) = Connection::open(&self.address).map_err(|message| self.refused(message))?;
        if agreed.terms != self.terms || agreed.framing != self.framing {
            return Err(self.refused("is no longer the export that was opened".to_owned()));
        }
        Ok(connection)
    }

    /// Takes back a connection with no request in flight; `None` if the connection is unusable.
    pub fn give_back(&self, connection: Option<Connection>) {
        let mut idle = self.idle.lock().expect("the lock is not poisoned");
        idle.in_use -= 1;
        idle.connections.extend(connection);
    }

    /// Executes a request other than a write, outside of the measurement. Returns the bytes read, or the negative error
    /// number.
    pub fn carry_out(&self, request: &Request, into: &mut [u8]) -> i32 {
        if let Some(errno) = self.refuses(request) {
            return -errno;
        }
        let Ok(mut connection) = self.take() else { return -libc::ENOTCONN };
        let outcome = exchange(&mut connection, request, into);
        self.give_back(outcome.is_ok().then_some(connection));
        outcome.unwrap_or_else(|errno| -errno)
    }

    /// Discards a range. Returns 0 or the negative error number.
    pub fn trim(&self, offset_bytes: u64, length_bytes: u32) -> i32 {
        let trim = Request { kind: Kind::Trim, offset_bytes, length_bytes, force_unit_access: false, ordered: false };
        self.carry_out(&trim, &mut [])
    }

    /// Returns the description for results.
    pub fn describe(&self) -> Value {
        let can = ABILITIES.iter().filter(|(flag, _)| self.can(*flag)).map(|(_, name)| *name).collect::<Vec<_>>();
        json!({
            "name": self.address.export,
            "server": self.address.place.to_string(),
            "replies": match self.framing {
                Framing::Simple => "simple",
                Framing::Structured => "structured",
                Framing::Extended => "extended",
            },
            "can": can,
            "maximum_bytes": self.terms.maximum_bytes,
            "connections": self.connections,
        })
    }

    fn one_connection(&self) -> LoadError {
        self.refused(
            "its server does not support several consistent connections (no multi-conn), so only one may \
             write: use one thread and --connections 1"
                .to_owned(),
        )
    }

    fn refused(&self, message: String) -> LoadError {
        LoadError::Target { target: self.name.clone(), message }
    }
}

/// Sends a request on a connection with no other request in flight, and receives its reply. Returns an error number if
/// the connection has become unusable.
fn exchange(connection: &mut Connection, request: &Request, into: &mut [u8]) -> Result<i32, i32> {
    debug_assert!(
        request.kind != Kind::Write && (request.kind != Kind::Read || into.len() >= request.length_bytes as usize)
    );
    let number = |error: std::io::Error| error.raw_os_error().unwrap_or(libc::EIO);
    let (command, flags) = command_of(request, false);
    let (cookie, framing) = (connection.cookie(0), connection.framing());
    let (offset_bytes, length_bytes) = (request.offset_bytes, request.length_bytes.into());
    connection
        .send(&Header { flags, command, cookie, offset_bytes, length_bytes }.to_bytes(framing))
        .map_err(number)?;
    let mut pending = [Pending::new(cookie, *request, into.as_mut_ptr(), into.len())];
    let mut replies = Replies::new(framing, true);
    let mut done = Vec::new();
    while done.is_empty() {
        let landing = replies.landing(&mut pending);
        // SAFETY: the address is within the replies' own memory or within `into`, and nothing else uses either.
        let room = unsafe { std::slice::from_raw_parts_mut(landing.memory, landing.room) };
        match connection.receive(room).map_err(number)? {
            0 => return Err(libc::ECONNRESET),
            bytes => replies.took(bytes, &mut pending, &mut done).map_err(|_| libc::EPROTO)?,
        }
    }
    if replies.is_at_rest() { Ok(done[0].result) } else { Err(libc::EPROTO) }
}
