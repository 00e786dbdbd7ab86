//! Mooncake's requests to language models: a JSON object a line, with `timestamp` in ms and `hash_ids`, the blocks of 512 tokens
//! that the input is made of. Each block is a request to a cache of them.
//!
//! Ids are numbers from 0 on, or texts, which are keys. How many bytes a block has depends on the model: it is 512, a byte a
//! token, unless somebody says so.

use serde::Deserialize;

use super::first_lines::most_lines;
use super::keys;
use crate::collect::Collector;
use crate::error::{Problem, TraceError};
use crate::input::Head;
use crate::meta::Clock;
use crate::record::{Operation, Record};
use crate::time::TIME_NS_END;

/// A byte a token.
const BLOCK_BYTES: u32 = 512;

/// The fields of a request that tell of the cache.
#[derive(Deserialize)]
struct Row {
    timestamp: f64,
    hash_ids: Vec<Id>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Id {
    Number(u64),
    Text(String),
}

pub(crate) fn fits(head: Head<'_>) -> bool {
    most_lines(head, |line| {
        line.trim_ascii_start().starts_with(b"{") && memchr::memmem::find(line, b"\"hash_ids\"").is_some()
    })
}

/// A file being read.
#[derive(Debug)]
pub(crate) struct Mooncake {
    block_bytes: u32,
}

impl Mooncake {
    pub(crate) fn new(file: &str, block_bytes: Option<u32>, out: &mut Collector) -> Result<Mooncake, TraceError> {
        out.meta.clock = Clock::Recording;
        out.meta.resolution_ns = 1_000_000;
        out.meta.note("each block of 512 tokens of a request's input is one read");
        if block_bytes.is_none() {
            out.meta.note("blocks are taken for 512 bytes: the model says how many there are");
        }
        match block_bytes.unwrap_or(BLOCK_BYTES) {
            0 => Err(TraceError::of_file(file, "the sector size must be at least 1 byte")),
            block_bytes => Ok(Mooncake { block_bytes }),
        }
    }

    /// Hands the reads of a line to `out`.
    pub(crate) fn parse(&mut self, line: &[u8], out: &mut Collector) -> Result<(), Problem> {
        let row: Row = serde_json::from_slice(line).map_err(|error| {
            let message = error.to_string();
            ("", message.lines().next().unwrap_or_default().to_owned())
        })?;
        let at_ns = (row.timestamp * 1e6).round();
        if !(0.0..TIME_NS_END as f64).contains(&at_ns) {
            return Err(("timestamp", format!("must be ms from 0 on and below 2^63 ns, not {}", row.timestamp)));
        }
        let device = out.device("");
        for id in row.hash_ids {
            let address = match id {
                Id::Number(number) => keys::object_address(number, self.block_bytes)?,
                Id::Text(text) => keys::address(text.as_bytes()),
            };
            let mut record = Record::new(at_ns as u64, Operation::Read, address, self.block_bytes);
            record.device = device;
            out.records.push(record);
        }
        Ok(())
    }
}
