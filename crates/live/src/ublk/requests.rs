//! What the kernel asks of a block device, and what becomes of the data.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use headstack_ublk::{Asked, Operation, Way};
use headstack_workload::{Kind, Request, Span};

use super::reply::{Reply, Word};
use crate::budget::Share;
use crate::courier::Bag;
use crate::device::{Device, Export};
use crate::pacer::Answer;
use crate::power::Change;

/// Carries out the requests of one device, in the order in which they came.
#[derive(Debug)]
pub struct Receiver {
    device: Arc<Device>,
    span: Span,
    way: Way,
    bag: Bag<Word>,
}

impl Receiver {
    /// Of `export`, answered over `way`, with long reads by `bag`.
    pub fn new(device: &Arc<Device>, export: &Export, way: Way, bag: Bag<Word>) -> Receiver {
        Receiver { device: Arc::clone(device), span: export.span, way, bag }
    }

    /// Does to the contents what a request does, and has the clock answer it.
    pub fn carry_out(&self, asked: Asked) {
        let Asked { ticket, at, operation, is_forced, offset_bytes, length_bytes } = asked;
        // The kernel keeps to the limits of the device.
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
                let reply = Reply::done(ticket, &self.way, length, &self.bag);
                match read {
                    Ok(()) => self.submit(at, request(Kind::Read), reply.with_data(start, data, share)),
                    Err(error) => reply.refuse(errno_of(&error)),
                }
            }
            Operation::Write => {
                let share = self.room(length_bytes + undo_bytes);
                let mut data = vec![0; length as usize];
                let taken = self.way.take(&ticket, &mut data);
                let reply = Reply::done(ticket, &self.way, length, &self.bag);
                match taken {
                    Ok(()) => self.change(at, (request(Kind::Write), is_forced), Change::Data(&data), share, reply),
                    Err(error) => reply.refuse(errno_of(&error)),
                }
            }
            Operation::Flush => {
                let request = Request { offset_bytes: 0, length_bytes: 0, ..request(Kind::Flush) };
                self.submit(at, request, Reply::done(ticket, &self.way, 0, &self.bag));
            }
            Operation::Discard => {
                let reply = Reply::done(ticket, &self.way, length, &self.bag);
                self.change(at, (request(Kind::Trim), is_forced), Change::Zero, self.room(undo_bytes), reply);
            }
            Operation::WriteZeroes { keeps_place } => {
                let change = if keeps_place { Change::Fill } else { Change::Zero };
                let reply = Reply::done(ticket, &self.way, length, &self.bag);
                self.change(at, (request(Kind::Write), is_forced), change, self.room(undo_bytes), reply);
            }
        }
    }

    /// Memory for a request, once there is any. The kernel reads every answer, and none waits for this thread.
    fn room(&self, bytes: u64) -> Share {
        let mut share = self.device.submitter.budget().share();
        self.device.make_room(&mut share, bytes, &|| true);
        share
    }

    /// Hands a request to the clock for the time that it takes, or answers where none takes any.
    fn submit(&self, at: Instant, request: Request, reply: Reply) {
        let submitter = &self.device.submitter;
        if submitter.is_instant() {
            submitter.count_at_once(1);
            reply.send_here();
        } else {
            submitter.submit(at, request, Box::new(reply));
        }
    }

    /// Changes contents and hands that to the clock, or answers where nothing takes time.
    fn change(
        &self,
        at: Instant,
        (request, is_forced): (Request, bool),
        change: Change<'_>,
        mut share: Share,
        reply: Reply,
    ) {
        if self.device.submitter.is_instant() {
            return match change.apply(&self.device.contents, request.span()) {
                Ok(()) => self.submit(at, request, reply),
                Err(error) => reply.refuse(errno_of(&error)),
            };
        }
        let mut reply = Some(reply);
        let answer = |_: &mut Share| Box::new(reply.take().expect("it is made once")) as Box<dyn Answer>;
        if let Err(error) = self.device.change(at, request, change, is_forced, &mut share, answer) {
            reply.expect("nothing was handed in").refuse(errno_of(&error));
        }
    }
}

fn errno_of(error: &io::Error) -> i32 {
    if error.kind() == io::ErrorKind::StorageFull { libc::ENOSPC } else { libc::EIO }
}
