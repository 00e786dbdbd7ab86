//! The NBD server: fixed newstyle over unix sockets, TCP, standard input and output, and sockets opened by a service
//! manager.
//!
//! Handshakes run on one thread. A client that has chosen an export gets a reading thread; replies are sent by the
//! clock thread, or by a second thread if they are long or the client is slow ([`output`]). With TLS another thread
//! relays between it and the client ([`tls`]).

pub mod client;
mod input;
mod negotiation;
mod output;
mod parts;
mod reply;
mod requests;
mod server;
mod sparse;
pub mod tls;

pub use headstack_nbd as wire;
pub use negotiation::Security;
pub use reply::Reply;
pub use server::{Endpoint, Limits, SOCKET_MODE, Server};
pub(crate) use server::{allow_many_files, unix_listener};
pub use tls::Tls;

use std::io;
use std::sync::Arc;
use std::time::Instant;

use crate::device::Device;
use crate::stream::{ClientTimeout, Stream};
use input::Input;
use negotiation::{Cover, HandshakeOutcome, Negotiation};
use output::Output;
use requests::Requests;

/// Serves one client to its end, on this thread.
///
/// # Errors
/// The stream's error; that the client breaks the protocol or leaves in the middle of a request.
pub fn serve(device: &Device, stream: &Stream, security: &Security) -> io::Result<()> {
    let mut reply_bytes = Vec::new();
    let mut talk = Negotiation::greet(device, &mut reply_bytes);
    let (agreed, received) = talk.conclude(device, Cover::Clear(security), stream, reply_bytes, None)?;
    let patience = ClientTimeout { stall: Limits::default().stall, budget: device.submitter.budget().clone() };
    attend(device, &Output::new(stream.clone(), patience), agreed, &received, (None, false), &|_| ())
}

/// Serves a client to its end, after the handshake. With TLS a second handshake follows, until `deadline`, and a relay
/// is placed in front; `opened` receives the output through it, so that it can be closed too.
fn attend(
    device: &Device,
    output: &Arc<Output>,
    agreed: HandshakeOutcome,
    received: &[u8],
    (deadline, is_relayed): (Option<Instant>, bool),
    opened: &dyn Fn(&Arc<Output>),
) -> io::Result<()> {
    let stream = output.stream();
    match agreed {
        HandshakeOutcome::Export(terms) => {
            output.agree();
            let input = Input::after(stream.clone(), received, device.submitter.budget().share());
            device.submitter.keep_up();
            let client = device.submitter.meet(stream, is_relayed);
            let served = Requests::new(input, Arc::clone(output), device, terms, client).serve();
            output.close();
            served
        }
        HandshakeOutcome::Tls(tls, greeted) => {
            let (inner, relay) = tls.stand_between(stream)?;
            let inner = Output::new(inner, output.patience().clone());
            opened(&inner);
            let mut talk = Negotiation::resumed(device, greeted);
            let agreed = talk.conclude(device, Cover::Encrypted, inner.stream(), Vec::new(), deadline);
            let served = agreed.and_then(|(agreed, received)| {
                output.agree();
                attend(device, &inner, agreed, &received, (deadline, true), opened)
            });
            inner.stream().shut();
            if served.is_err() {
                // There is no more to send to the client, or to receive.
                stream.shut();
            }
            let relayed = relay.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            served.and(relayed)
        }
        HandshakeOutcome::Over => Ok(()),
    }
}
