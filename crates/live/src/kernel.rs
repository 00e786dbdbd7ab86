//! Handles requests from the kernel, over FUSE and ublk: submits them to the clock, or answers them immediately if the
//! device takes no time.

use std::io;
use std::time::Instant;

use headstack_workload::Request;

use crate::budget::Share;
use crate::device::Device;
use crate::pacer::Answer;
use crate::power::Change;

/// A reply that the kernel waits for.
pub trait KernelReply: Answer + Sized + 'static {
    /// Sends success from the calling thread.
    fn send_here(self);
    /// Sends an error.
    fn fail(self, error: &io::Error);
}

/// Submits a request that does not change contents.
pub fn submit(device: &Device, at: Instant, request: Request, reply: impl KernelReply) {
    let submitter = &device.submitter;
    if submitter.is_instant() {
        submitter.count_at_once(1);
        reply.send_here();
    } else {
        submitter.submit(at, request, Box::new(reply));
    }
}

/// Changes contents and submits the request; with `forced`, the change must be durable when it is acknowledged. Memory
/// for the previous contents is taken from `share`.
pub fn change(
    device: &Device,
    at: Instant,
    request: Request,
    (change, forced): (Change<'_>, bool),
    mut share: Share,
    reply: impl KernelReply,
) {
    if device.submitter.is_instant() {
        return match change.apply(&device.contents, request.span()) {
            Ok(()) => submit(device, at, request, reply),
            Err(error) => reply.fail(&error),
        };
    }
    let mut reply = Some(reply);
    let answer = |_: &mut Share| Box::new(reply.take().expect("the answer is created once")) as Box<dyn Answer>;
    if let Err(error) = device.change(at, request, change, forced, &mut share, answer) {
        reply.expect("the reply was not taken").fail(&error);
    }
}
