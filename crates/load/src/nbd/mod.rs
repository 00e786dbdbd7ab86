//! The client side of NBD: finding an export, the handshake, and parsing replies. [`engine`](crate::engine) sends the
//! requests.

mod connection;
mod export;
mod handshake;
mod replies;
mod terms;

pub use connection::Connection;
pub use export::Export;
pub use replies::{Pending, ReceiveBuffer, Replies};
pub use terms::Terms;

use headstack_nbd::command;
use headstack_workload::{Kind, Request};

/// Returns the NBD command of a request, and its flags. With `durable`, every write must be on stable storage when it
/// completes.
pub fn command_of(request: &Request, durable: bool) -> (u16, u16) {
    let is_durable = request.kind == Kind::Write && (durable || request.force_unit_access);
    let flags = if is_durable { command::FLAG_FUA } else { 0 };
    match request.kind {
        Kind::Read => (command::READ, flags),
        Kind::Write => (command::WRITE, flags),
        Kind::Trim => (command::TRIM, flags),
        Kind::Flush => (command::FLUSH, flags),
    }
}
