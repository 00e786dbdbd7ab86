//! [`Prefill`]: writes everything once, from start to end.

use serde::{Deserialize, Serialize};

use super::step::{Facts, Step, StreamSetup, Turn, check_count, check_not_zero, check_sectors, io, write};
use crate::access::Complaint;
use crate::quantity::bytes_u32;
use crate::span::Span;

/// A stream that writes its LUN or range once. If it names neither, writes each LUN of the system.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prefill {
    /// Order in which LUNs are filled.
    pub order: Order,
    /// Request size in bytes; the last request of a LUN may be shorter.
    #[serde(rename = "block", with = "bytes_u32")]
    pub block_bytes: u32,
    /// Queue depth for each LUN being written.
    #[serde(default = "default_one")]
    pub queue_depth: u32,
}

/// Order in which LUNs are filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// LUNs one after another.
    Serial,
    /// All LUNs at once.
    Concurrent,
}

fn default_one() -> u32 {
    1
}

impl Prefill {
    pub(crate) fn validate(&self) -> Result<(), Complaint> {
        check_count("queue_depth", self.queue_depth)?;
        check_not_zero("block", u64::from(self.block_bytes), "a request has at least one sector")
    }
}

pub(crate) struct PrefillRun {
    stream: u32,
    prefill: Prefill,
    writers: Vec<Writer>,
    bytes: u64,
    done_ns: Option<u64>,
    unfinished: usize,
}

/// Writes a list of LUNs, one after another.
struct Writer {
    luns: Vec<Span>,
    lun: usize,
    done_bytes: u64,
}

impl PrefillRun {
    pub(crate) fn new(prefill: &Prefill, setup: &StreamSetup) -> Result<PrefillRun, Complaint> {
        check_sectors("block", prefill.block_bytes, setup.sector_bytes)?;
        let writer = |luns: &[Span]| Writer { luns: luns.to_vec(), lun: 0, done_bytes: 0 };
        let writers: Vec<Writer> = match prefill.order {
            Order::Serial => vec![writer(&setup.luns)],
            Order::Concurrent => setup.luns.chunks(1).map(writer).collect(),
        };
        Ok(PrefillRun {
            stream: setup.stream,
            prefill: *prefill,
            bytes: setup.luns.iter().map(|lun| lun.length_bytes).sum(),
            unfinished: writers.len(),
            writers,
            done_ns: None,
        })
    }

    pub(crate) fn clients(&self) -> u32 {
        self.writers.len() as u32
    }

    pub(crate) fn next(&mut self, turn: Turn) -> Step {
        let writer = &mut self.writers[turn.client as usize];
        if turn.in_flight == self.prefill.queue_depth {
            return Step::Await;
        }
        if writer.luns.get(writer.lun).is_some_and(|lun| lun.length_bytes == writer.done_bytes) {
            // Start the next LUN only when this one has been written.
            if turn.in_flight > 0 {
                return Step::Await;
            }
            (writer.lun, writer.done_bytes) = (writer.lun + 1, 0);
        }
        let Some(lun) = writer.luns.get(writer.lun) else {
            self.unfinished -= 1;
            if self.unfinished == 0 {
                self.done_ns = Some(turn.now_ns);
            }
            return Step::Done;
        };
        let left_bytes = lun.length_bytes - writer.done_bytes;
        let length_bytes = left_bytes.min(u64::from(self.prefill.block_bytes));
        let offset_bytes = lun.start_bytes + writer.done_bytes;
        writer.done_bytes += length_bytes;
        io(self.stream, write(offset_bytes, length_bytes as u32))
    }

    pub(crate) fn facts(&self) -> Facts {
        Facts::Prefill { bytes: self.bytes, done_ns: self.done_ns }
    }
}
