//! [`Stamping`]: verification by one thread. Its writes are stamped and recorded, and its reads are compared with the
//! allowed contents.

use std::sync::Arc;

use headstack_result::Integrity;
use headstack_workload::{Kind, Request};

use crate::LoadError;
use crate::buffers::Buffers;
use crate::integrity::{Expectation, IntegrityReport, Outcome, Scanner, Stamper, Ticket};
use crate::target::Target;
use crate::target_map::{TargetMap, TargetPlace};
use crate::verification::{Basis, Verification};

/// The stamps and checks of one thread's requests.
pub struct Stamping<'a> {
    pieces: Vec<Piece<'a>>,
    slots: Vec<Slot>,
    /// For each slot, the epoch that a flush in flight ends on each file.
    epochs: Vec<u32>,
    buffer_bytes: u32,
    report: IntegrityReport,
    unit_bytes: u32,
}

/// Verdicts on reads, and the unit size.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The verdicts.
    pub report: IntegrityReport,
    /// Unit size, in bytes; with several targets, the smallest.
    pub unit_bytes: u32,
}

/// A file of the address space.
struct Piece<'a> {
    judge: Judge<'a>,
    /// Whether an acknowledged write is on the medium (`O_DSYNC`, `O_SYNC`).
    is_durable: bool,
}

enum Judge<'a> {
    Ledger(&'a Stamper),
    Stamps(Box<Scanner<'static>>),
}

#[derive(Default)]
struct Slot {
    ticket: Option<Ticket>,
    expectation: Expectation,
}

impl<'a> Stamping<'a> {
    /// Prepares for requests to `targets`, all of which `verification` must include, in buffers of `buffer_bytes`.
    ///
    /// # Errors
    /// Returns an error if `verification` does not include a target, or if one of several targets has a size that is
    /// not a multiple of its unit, so that requests would be shifted.
    pub fn new(
        verification: &'a Verification,
        targets: &[Arc<Target>],
        map: &TargetMap,
        slots: u32,
        buffer_bytes: u32,
    ) -> Result<Stamping<'a>, LoadError> {
        let mut pieces = Vec::with_capacity(targets.len());
        let mut smallest_bytes = u32::MAX;
        for (target, mapped) in targets.iter().zip(map.pieces()) {
            let refused = |message| LoadError::Target { target: target.name().to_owned(), message };
            let basis = verification.basis(target).ok_or_else(|| refused("is not verified by this run".to_owned()))?;
            smallest_bytes = smallest_bytes.min(basis.layout().unit_bytes());
            let unit_bytes = u64::from(basis.layout().unit_bytes());
            let bytes = mapped.length_bytes;
            if targets.len() > 1 && !bytes.is_multiple_of(unit_bytes) {
                return Err(refused(format!(
                    "has {bytes} bytes; with other targets, only multiples of {unit_bytes} bytes can be verified"
                )));
            }
            let judge = match basis {
                Basis::Ledger(stamper) => Judge::Ledger(stamper),
                Basis::Stamps { layout, run } => Judge::Stamps(Box::new(Scanner::without_ledger(*layout, Some(*run)))),
            };
            pieces.push(Piece { judge, is_durable: target.writes_are_durable() });
        }
        Ok(Stamping {
            epochs: vec![0; slots as usize * pieces.len()],
            pieces,
            slots: (0..slots).map(|_| Slot::default()).collect(),
            buffer_bytes,
            report: IntegrityReport::default(),
            unit_bytes: smallest_bytes,
        })
    }

    /// Stamps a write, or takes the expectation of a read, before the request is submitted.
    ///
    /// # Errors
    /// Returns an error if the request is not in whole units or is longer than a buffer, or if the ledger has no room.
    /// The request must then not be submitted.
    pub fn begin(
        &mut self,
        slot: u32,
        request: &Request,
        map: &TargetMap,
        buffers: &mut Buffers,
    ) -> Result<(), LoadError> {
        if request.kind == Kind::Flush {
            self.begin_flush(slot);
            return Ok(());
        }
        let TargetPlace { piece, offset_bytes } = map.place(request);
        let (slots, pieces) = (&mut self.slots, &self.pieces);
        let here = &mut slots[slot as usize];
        here.ticket = None;
        let length = request.length_bytes;
        if request.kind != Kind::Trim && length > self.buffer_bytes {
            let message =
                format!("a request of {length} bytes; the maximum with verification is {}", self.buffer_bytes);
            return Err(LoadError::Target { target: "integrity".to_owned(), message });
        }
        let Judge::Ledger(stamper) = &pieces[piece].judge else { return Ok(()) };
        match request.kind {
            Kind::Read => stamper.expect(offset_bytes, u64::from(length), &mut here.expectation)?,
            Kind::Write => here.ticket = Some(stamper.fill(offset_bytes, buffers.slice(slot, length))?),
            Kind::Trim => here.ticket = Some(stamper.trim(offset_bytes, u64::from(length))?),
            Kind::Flush => {}
        }
        Ok(())
    }

    /// Resets a zone of a device with `act`, which returns whether it succeeded. The contents then count as trimmed.
    pub fn reset_zone(&mut self, piece: usize, offset: u64, length: u64, act: &mut dyn FnMut() -> bool) {
        let ticket = match &self.pieces[piece].judge {
            Judge::Ledger(stamper) => stamper.trim(offset, length).ok().map(|ticket| (stamper, ticket)),
            Judge::Stamps(_) => None,
        };
        let worked = act();
        if let Some((stamper, ticket)) = ticket {
            stamper.ended(ticket, if worked { Outcome::Acknowledged } else { Outcome::Failed });
        }
    }

    #[cold]
    fn begin_flush(&mut self, slot: u32) {
        let count = self.pieces.len();
        for (piece, epoch) in self.pieces.iter().zip(&mut self.epochs[slot as usize * count..]) {
            if let Judge::Ledger(stamper) = &piece.judge {
                *epoch = stamper.flush();
            }
        }
    }

    /// Processes a completed request, before its slot is reused.
    #[inline(never)]
    pub fn end(&mut self, slot: u32, request: &Request, failed: bool, map: &TargetMap, buffers: &mut Buffers) {
        if request.kind == Kind::Flush {
            self.end_flush(slot, failed);
            return;
        }
        let TargetPlace { piece, offset_bytes } = map.place(request);
        let Piece { judge, is_durable } = &mut self.pieces[piece];
        let here = &mut self.slots[slot as usize];
        match judge {
            Judge::Ledger(stamper) => match here.ticket.take() {
                Some(ticket) => {
                    let is_durable = request.kind == Kind::Write && (request.force_unit_access || *is_durable);
                    stamper.ended(
                        ticket,
                        if failed {
                            Outcome::Failed
                        } else if is_durable {
                            Outcome::Durable
                        } else {
                            Outcome::Acknowledged
                        },
                    );
                }
                None if request.kind == Kind::Read && !failed => {
                    stamper.check(&here.expectation, buffers.slice(slot, request.length_bytes), &mut self.report);
                }
                None => {}
            },
            Judge::Stamps(scanner) if request.kind == Kind::Read && !failed => {
                let read = scanner.read(offset_bytes, buffers.slice(slot, request.length_bytes));
                debug_assert!(read.is_ok(), "requests consist of whole units");
            }
            Judge::Stamps(_) => {}
        }
    }

    #[cold]
    fn end_flush(&mut self, slot: u32, failed: bool) {
        let count = self.pieces.len();
        for (piece, epoch) in self.pieces.iter().zip(&self.epochs[slot as usize * count..]) {
            if let (Judge::Ledger(stamper), false) = (&piece.judge, failed) {
                stamper.flushed(*epoch);
            }
        }
    }

    /// Returns the verdicts on the thread's reads.
    pub fn finish(self) -> Checked {
        let (mut report, unit_bytes) = (self.report, self.unit_bytes);
        for piece in self.pieces {
            if let Judge::Stamps(scanner) = piece.judge {
                report.merge(&scanner.finish());
            }
        }
        Checked { report, unit_bytes }
    }
}

impl Checked {
    /// Returns the verdicts in the form of results.
    pub fn integrity(self) -> Integrity {
        self.report.to_integrity(self.unit_bytes)
    }

    /// Merges two sets of verdicts.
    pub fn and(mut self, other: Checked) -> Checked {
        self.report.merge(&other.report);
        self.unit_bytes = self.unit_bytes.min(other.unit_bytes);
        self
    }
}
