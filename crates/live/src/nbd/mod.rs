//! The NBD server: fixed newstyle over unix sockets, TCP, standard input and output, and sockets that were opened for it.
//!
//! A connection is a thread that reads; replies leave from the clock thread, or from a second thread where they are long or
//! the client is slow ([`output`]). Under TLS a third one stands between it and the client ([`tls`]).

pub mod client;
mod input;
mod negotiation;
mod output;
mod requests;
mod server;
mod stream;
pub mod tls;
pub mod wire;

pub use negotiation::Security;
pub use requests::Reply;
pub(crate) use server::unix_listener;
pub use server::{Endpoint, Server};
pub use stream::Stream;
pub use tls::Tls;

use std::io;
use std::sync::Arc;

use crate::device::Device;
use input::Input;
use negotiation::{Agreed, Cover};
use output::Output;
use requests::Requests;

/// Serves one client to its end, on this thread.
///
/// # Errors
/// The stream's, a client's that breaks the protocol or goes in the middle of a request.
pub fn serve(device: &Device, stream: &Stream, security: &Security) -> io::Result<()> {
    attend(device, &Output::new(stream.clone()), Cover::Clear(security), &|_| ())
}

/// As [`serve`]; `opened` hears of a further way back, so that it can be cut too.
fn attend(device: &Device, output: &Arc<Output>, cover: Cover<'_>, opened: &dyn Fn(&Arc<Output>)) -> io::Result<()> {
    let stream = output.stream();
    let mut input = Input::new(stream.clone());
    let power_cuts = device.power_cuts();
    match negotiation::negotiate(&mut input, stream, device, cover)? {
        Agreed::Export(terms) => {
            let served = Requests::new(input, Arc::clone(output), device, terms, power_cuts).serve();
            output.close();
            served
        }
        Agreed::Tls(tls, greeted) => {
            drop(input);
            let (inner, relay) = tls.stand_between(stream)?;
            let inner = Output::new(inner);
            opened(&inner);
            let served = attend(device, &inner, Cover::Encrypted(greeted), opened);
            inner.stream().shut();
            let relayed = relay.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            served.and(relayed)
        }
        Agreed::Over => Ok(()),
    }
}
