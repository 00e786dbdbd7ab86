//! [`Receiver`]: the kernel's requests to a block device, and their effect on the data.

use std::sync::Arc;

use headstack_ublk::{Completer, KernelRequest, Operation};
use headstack_workload::{Kind, Request, Span};

use super::reply::{Reply, ReplyPayload};
use crate::budget::Share;
use crate::copy_thread::CopyQueue;
use crate::device::{Device, Export};
use crate::kernel::{self, KernelReply};
use crate::power::Change;

/// Executes the requests of one device, in order of arrival.
#[derive(Debug)]
pub struct Receiver {
    device: Arc<Device>,
    span: Span,
    way: Completer,
    copy_queue: CopyQueue<ReplyPayload>,
}

impl Receiver {
    /// Creates a receiver of `export`, which answers over `way`; `copy_queue` takes long reads.
    pub fn new(device: &Arc<Device>, export: &Export, way: Completer, copy_queue: CopyQueue<ReplyPayload>) -> Receiver {
        Receiver { device: Arc::clone(device), span: export.span, way, copy_queue }
    }

    /// Applies a request to the contents, and submits it to the clock for the answer.
    pub fn carry_out(&self, kernel_request: KernelRequest) {
        let KernelRequest { ticket, at, operation, is_forced, offset_bytes, length_bytes } = kernel_request;
        // The kernel observes the limits of the device.
        let length = length_bytes as u32;
        let start = self.span.start_bytes + offset_bytes;
        let request = |kind: Kind| Request {
            kind,
            offset_bytes: start,
            length_bytes: length,
            force_unit_access: is_forced && kind == Kind::Write,
            ordered: false,
        };
        let undo_bytes = self.device.undo_bytes(length_bytes);
        match operation {
            Operation::Read => {
                let share = self.room(length_bytes);
                let mut data = vec![0; length as usize];
                let read = self.device.read(start, &mut data);
                let reply = Reply::without_data(ticket, &self.way, length, &self.copy_queue);
                match read {
                    Ok(()) => {
                        kernel::submit(&self.device, at, request(Kind::Read), reply.with_data(start, data, share))
                    }
                    Err(error) => reply.fail(&error),
                }
            }
            Operation::Write => {
                let share = self.room(length_bytes + undo_bytes);
                let mut data = vec![0; length as usize];
                let taken = self.way.take(&ticket, &mut data);
                let reply = Reply::without_data(ticket, &self.way, length, &self.copy_queue);
                match taken {
                    Ok(()) => kernel::change(
                        &self.device,
                        at,
                        request(Kind::Write),
                        (Change::Data(&data), is_forced),
                        share,
                        reply,
                    ),
                    Err(error) => reply.fail(&error),
                }
            }
            Operation::Flush => {
                let request = Request { offset_bytes: 0, length_bytes: 0, ..request(Kind::Flush) };
                kernel::submit(&self.device, at, request, Reply::without_data(ticket, &self.way, 0, &self.copy_queue));
            }
            Operation::Discard => {
                let reply = Reply::without_data(ticket, &self.way, length, &self.copy_queue);
                kernel::change(
                    &self.device,
                    at,
                    request(Kind::Trim),
                    (Change::Zero, is_forced),
                    self.room(undo_bytes),
                    reply,
                );
            }
            Operation::WriteZeroes { keeps_place } => {
                let change = if keeps_place { Change::Fill } else { Change::Zero };
                let reply = Reply::without_data(ticket, &self.way, length, &self.copy_queue);
                kernel::change(
                    &self.device,
                    at,
                    request(Kind::Write),
                    (change, is_forced),
                    self.room(undo_bytes),
                    reply,
                );
            }
        }
    }

    /// Waits for memory for a request. The kernel reads every answer, and no answer waits for this thread.
    fn room(&self, bytes: u64) -> Share {
        let mut share = self.device.submitter.budget().share();
        self.device.make_room(&mut share, bytes, &|| true);
        share
    }
}
