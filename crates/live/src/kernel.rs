//! Requests of the kernel's, over FUSE and ublk alike: handed to the clock, or answered at once where nothing takes time.

use std::io;
use std::time::Instant;

use headstack_workload::Request;

use crate::budget::Share;
use crate::device::Device;
use crate::pacer::Answer;
use crate::power::Change;

/// What the kernel waits for.
pub trait KernelReply: Answer + Sized + 'static {
    /// Says that it is done, from the calling thread.
    fn send_here(self);
    /// Says that it cannot be.
    fn fail(self, error: &io::Error);
}

/// Hands in what changes nothing.
pub fn submit(device: &Device, at: Instant, request: Request, reply: impl KernelReply) {
    let submitter = &device.submitter;
    if submitter.is_instant() {
        submitter.count_at_once(1);
        reply.send_here();
    } else {
        submitter.submit(at, request, Box::new(reply));
    }
}

/// Changes contents, `forced` to the media or not, and hands that in. What is kept of what was there is taken from `share`.
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
    let answer = |_: &mut Share| Box::new(reply.take().expect("it is made once")) as Box<dyn Answer>;
    if let Err(error) = device.change(at, request, change, forced, &mut share, answer) {
        reply.expect("nothing was handed in").fail(&error);
    }
}
