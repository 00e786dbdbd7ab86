//! Requests to language models: one JSON object per line, with a `timestamp` and `hash_ids`, the token blocks of the
//! input. Each block becomes one request to a cache of blocks.
//!
//! Mooncake, Dynamo and AIPerf write `timestamp` in ms and have blocks of any number of tokens (Mooncake: 512).
//! Qwen-Bailian names the conversation (`chat_id`), writes seconds, and has blocks of 16 tokens. The number of tokens
//! per block is computed from the length of the input: `hash_ids` has one entry per block, and the last block may be
//! partial.
//!
//! Ids are numbers from 0 up, or texts, which are treated as keys. The bytes of a block depend on the model; by default
//! one byte per token.

use std::ops::RangeInclusive;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::first_lines::most_lines;
use super::keys::{self, Numbers};
use crate::collect::Collector;
use crate::error::{Problem, TraceError};
use crate::input::{Head, Input};
use crate::meta::{AddressSpace, Clock};
use crate::record::{Operation, Record};
use crate::time::{TIME_NS_END, TimeUnit};

/// Tokens per block in Qwen-Bailian traces.
const BAILIAN_TOKENS: u64 = 16;

/// Fields of a request that describe its time and its blocks.
#[derive(Deserialize)]
struct Row {
    #[serde(alias = "created_time")]
    timestamp: f64,
    hash_ids: Vec<Id>,
    #[serde(alias = "input_tokens")]
    input_length: Option<u64>,
    /// Conversation ID, in Qwen-Bailian traces.
    chat_id: Option<IgnoredAny>,
    /// Model name, in traces that do not state the unit of times.
    model: Option<IgnoredAny>,
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

/// Returns the range of tokens per block that gives each row the right number of blocks; empty if rows disagree.
fn block_tokens(rows: &[Row]) -> RangeInclusive<u64> {
    let (mut least, mut most) = (1, u64::MAX);
    for row in rows {
        let blocks = row.hash_ids.len() as u64;
        let Some(length) = row.input_length.filter(|length| *length > 0 && blocks > 0) else { continue };
        least = least.max(length.div_ceil(blocks));
        if blocks > 1 {
            most = most.min((length.div_ceil(blocks - 1)).saturating_sub(1));
        }
    }
    least..=most
}

/// Returns the number of tokens per block, if only one is possible. Engines use powers of two.
fn proven_tokens(possible: &RangeInclusive<u64>, is_bailian: bool) -> Option<u64> {
    if possible.start() == possible.end() {
        return Some(*possible.start());
    }
    if is_bailian && possible.contains(&BAILIAN_TOKENS) {
        return Some(BAILIAN_TOKENS);
    }
    let mut powers = (0..32).map(|power| 1u64 << power).filter(|tokens| possible.contains(tokens));
    powers.next().filter(|_| powers.next().is_none())
}

/// A parser of a file.
#[derive(Debug)]
pub(crate) struct Mooncake {
    unit: TimeUnit,
    block_bytes: u32,
}

impl Mooncake {
    pub(crate) fn new(
        input: &Input,
        block_bytes: Option<u32>,
        unit: Option<TimeUnit>,
        out: &mut Collector,
    ) -> Result<Mooncake, TraceError> {
        let refused = |why: String| TraceError::of_file(&input.name, why);
        let rows: Vec<Row> = input.head().lines().filter_map(|line| serde_json::from_slice(line).ok()).collect();
        let is_bailian = rows.iter().any(|row| row.chat_id.is_some());
        let is_open = !is_bailian && rows.iter().any(|row| row.model.is_some());
        let unit = match unit {
            Some(unit) => unit,
            None if is_bailian => TimeUnit::Seconds,
            None if is_open => {
                let why = "rows have a `model`, and traces with a model do not state the unit of `timestamp`; add --unit ms or --unit s";
                return Err(refused(why.to_owned()));
            }
            None => TimeUnit::Milliseconds,
        };
        let possible = block_tokens(&rows);
        let tokens = proven_tokens(&possible, is_bailian);
        let block_bytes = match (block_bytes, tokens) {
            (Some(0), _) => return Err(refused("the sector size must be at least 1 byte".to_owned())),
            (Some(bytes), _) => bytes,
            (None, Some(tokens)) => {
                out.meta.note(format!(
                    "blocks are treated as {tokens} bytes, one byte per token; set --sector to the bytes per block of the model"
                ));
                u32::try_from(tokens)
                    .map_err(|_| refused(format!("blocks of {tokens} tokens; add --sector with the bytes per block")))?
            }
            (None, None) => {
                let found = match (possible.start(), possible.end()) {
                    (_, &u64::MAX) => "no row determines the number of tokens per block".to_owned(),
                    (least, most) if least > most => {
                        "`input_length` and `hash_ids` match no single block size".to_owned()
                    }
                    (least, most) => format!("blocks have {least} to {most} tokens by `input_length` and `hash_ids`"),
                };
                return Err(refused(format!("{found}; add --sector with the bytes per block")));
            }
        };
        out.meta.clock = Clock::Recording;
        out.meta.resolution_ns = unit.step_ns(0).min(1_000_000);
        out.meta.address_space = AddressSpace::Object;
        out.meta.note(match tokens {
            Some(tokens) => format!("each block of {tokens} tokens of a request's input is one read"),
            None => "each block of tokens of a request's input is one read".to_owned(),
        });
        Ok(Mooncake { unit, block_bytes })
    }

    /// Adds the reads of a line to `out`.
    pub(crate) fn parse(&mut self, line: &[u8], out: &mut Collector) -> Result<(), Problem> {
        let row: Row = serde_json::from_slice(line).map_err(|error| {
            let message = error.to_string();
            ("", message.lines().next().unwrap_or_default().to_owned())
        })?;
        let at_ns = (row.timestamp * self.unit.step_ns(0) as f64).round();
        if !(0.0..TIME_NS_END as f64).contains(&at_ns) {
            let unit = self.unit.name();
            return Err(("timestamp", format!("must be {unit} from 0 on and below 2^63 ns, not {}", row.timestamp)));
        }
        let device = out.device("");
        for id in row.hash_ids {
            let address = match id {
                Id::Number(number) => Numbers::Blocks { bytes: self.block_bytes }.address(number)?,
                Id::Text(text) => keys::address(text.as_bytes()),
            };
            let mut record = Record::new(at_ns as u64, Operation::Read, address, self.block_bytes);
            record.device = device;
            out.records.push(record);
        }
        Ok(())
    }
}
