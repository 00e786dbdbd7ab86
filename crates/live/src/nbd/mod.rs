//! The NBD server: fixed newstyle over unix sockets, TCP, standard input and output, and sockets that were opened for it.
//!
//! A connection is a thread that reads; replies leave from the clock thread, or from a second thread where they are long or
//! the client is slow ([`output`]).

pub mod client;
mod input;
mod negotiation;
mod output;
mod requests;
mod server;
mod stream;
pub mod wire;

pub use negotiation::Security;
pub use requests::Reply;
pub(crate) use server::unix_listener;
pub use server::{Endpoint, Server};
pub use stream::Stream;

use std::io;
use std::sync::Arc;

use crate::device::Device;
use input::Input;
use negotiation::Agreed;
use output::Output;
use requests::Requests;

/// Serves one client to its end. `opened` hears of the way back once there is one, so that it can be cut.
///
/// # Errors
/// The stream's, a client's that breaks the protocol or goes in the middle of a request.
pub(crate) fn serve(
    device: &Device,
    stream: &Stream,
    security: Security,
    opened: impl Fn(&Arc<Output>),
) -> io::Result<()> {
    let mut input = Input::new(stream.clone());
    let power_cuts = device.power_cuts();
    let agreed = negotiation::negotiate(&mut input, stream, device, security)?;
    let Agreed::Export { export, structured, has_context } = agreed else {
        return Ok(());
    };
    let output = Output::new(stream.clone());
    opened(&output);
    let (batch, payload) = (Vec::new(), Vec::new());
    let mut requests = Requests {
        input,
        output: Arc::clone(&output),
        device,
        export,
        structured,
        has_context,
        power_cuts,
        batch,
        payload,
    };
    let served = requests.serve();
    output.close();
    served
}
