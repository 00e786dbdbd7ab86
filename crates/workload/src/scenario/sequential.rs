//! [`Sequential`]: sequential streams, each in its own region.

use serde::{Deserialize, Serialize};

use super::range::parts;
use super::step::{Step, StreamSetup, Turn, check_count, check_not_zero, check_sectors, io, read, write};
use crate::access::Complaint;
use crate::arrivals::Think;
use crate::quantity::bytes_u32;
use crate::random::{Purpose, Random, seed_of};
use crate::span::Span;

/// Sequential streams. Each goes through its region from start to end, and then starts over.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sequential {
    /// Number of streams; each stream has an equal part of the range to itself.
    pub streams: u32,
    /// Direction of the transfers.
    pub direction: Direction,
    /// Request size in bytes.
    #[serde(rename = "block", with = "bytes_u32")]
    pub block_bytes: u32,
    /// Queue depth of each stream.
    #[serde(default = "default_one")]
    pub queue_depth: u32,
    /// Think time before each request.
    #[serde(default)]
    pub think: Think,
}

/// Direction of transfers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Reads.
    Read,
    /// Writes.
    Write,
}

fn default_one() -> u32 {
    1
}

impl Sequential {
    pub(crate) fn validate(&self) -> Result<(), Complaint> {
        check_count("streams", self.streams)?;
        check_count("queue_depth", self.queue_depth)?;
        check_not_zero("block", u64::from(self.block_bytes), "a request has at least one sector")
    }
}

pub(crate) struct SequentialRun {
    stream: u32,
    sequential: Sequential,
    readers: Vec<Reader>,
}

struct Reader {
    region: Span,
    done_bytes: u64,
    random: Random,
    has_thought: bool,
}

impl SequentialRun {
    pub(crate) fn new(sequential: &Sequential, setup: &StreamSetup) -> Result<SequentialRun, Complaint> {
        check_sectors("block", sequential.block_bytes, setup.sector_bytes)?;
        let regions = parts(setup.span, sequential.streams, setup.sector_bytes);
        if regions[0].length_bytes < u64::from(sequential.block_bytes) {
            let message = format!("a request does not fit in a stream's region of {} bytes", regions[0].length_bytes);
            return Err(("block".to_owned(), message));
        }
        let readers = regions.into_iter().zip(0..).map(|(region, index)| Reader {
            region,
            done_bytes: 0,
            random: Random::new(seed_of(setup.seed, "reader", index), Purpose::Think),
            has_thought: false,
        });
        Ok(SequentialRun { stream: setup.stream, sequential: *sequential, readers: readers.collect() })
    }

    pub(crate) fn clients(&self) -> u32 {
        self.readers.len() as u32
    }

    pub(crate) fn next(&mut self, turn: Turn) -> Step {
        let Sequential { direction, block_bytes, queue_depth, think, .. } = self.sequential;
        let reader = &mut self.readers[turn.client as usize];
        if turn.in_flight == queue_depth {
            return Step::Await;
        }
        if !reader.has_thought {
            reader.has_thought = true;
            let think_ns = think.draw_ns(&mut reader.random);
            if think_ns > 0 {
                return Step::Think { until_ns: turn.now_ns + think_ns };
            }
        }
        reader.has_thought = false;
        if reader.done_bytes + u64::from(block_bytes) > reader.region.length_bytes {
            reader.done_bytes = 0;
        }
        let offset_bytes = reader.region.start_bytes + reader.done_bytes;
        reader.done_bytes += u64::from(block_bytes);
        let make = match direction {
            Direction::Read => read,
            Direction::Write => write,
        };
        io(self.stream, make(offset_bytes, block_bytes))
    }
}
