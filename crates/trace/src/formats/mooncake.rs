//! Requests to language models: one JSON object per line, with `timestamp` and `hash_ids`, the blocks of tokens of the
//! input. Each block is a request to a cache of them.
//!
//! Mooncake, Dynamo and AIPerf write `timestamp` in ms, and blocks of any number of tokens (Mooncake 512). Qwen-Bailian
//! names the conversation (`chat_id`), writes seconds, and has blocks of 16. The number of tokens per block follows
//! from the length of the input: `hash_ids` has one entry per block, of which the last may be partial.
//!
//! Ids are numbers from 0 on, or texts, which are keys. The bytes of a block depend on the model: one byte per token
//! unless given.

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

/// Tokens per block of Qwen-Bailian's traces.
const BAILIAN_TOKENS: u64 = 16;

/// The fields of a request that describe its time and its blocks.
#[derive(Deserialize)]
struct Row {
    #[serde(alias = "created_time")]
    timestamp: f64,
    hash_ids: Vec<Id>,
    #[serde(alias = "input_tokens")]
    input_length: Option<u64>,
    /// The conversation, in Qwen-Bailian's traces.
    chat_id: Option<IgnoredAny>,
    /// The model, in traces that state no unit.
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

/// Range of tokens per block for which each row has the right number of blocks; empty if rows disagree.
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

/// Tokens per block, if only one number is possible. Engines use powers of two.
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
                let why = "rows have a `model`, and such traces do not state the unit of `timestamp`; add --unit ms or --unit s";
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
                    "blocks are treated as {tokens} bytes, one byte per token; set --sector to the bytes that the model needs"
                ));
                u32::try_from(tokens).map_err(|_| {
                    refused(format!("blocks of {tokens} tokens; add --sector with the bytes of a block"))
                })?
            }
            (None, None) => {
                let found = match (possible.start(), possible.end()) {
                    (_, &u64::MAX) => "no row determines the number of tokens of a block".to_owned(),
                    (least, most) if least > most => "`input_length` and `hash_ids` agree on no block size".to_owned(),
                    (least, most) => format!("blocks have {least} to {most} tokens by `input_length` and `hash_ids`"),
                };
                return Err(refused(format!("{found}; add --sector with the bytes of a block")));
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
