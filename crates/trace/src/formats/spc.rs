//! SPC traces (UMass Financial and WebSearch), specification 1.0.1: `ASU,LBA,Size,Opcode,Timestamp`, then optional
//! fields.
//!
//! An application storage unit is a separate address space. LBA counts blocks whose size the description of the trace
//! states, Size counts bytes and may be 0. The timestamp is in seconds from the start, with digits on both sides of its
//! point, and never decreases.

use super::Part;
use super::first_lines::{finest_step_ns, most_lines};
use super::units::{self, SECTOR_BYTES, Stated, proven_unit};
use crate::collect::Collector;
use crate::error::{Problem, TraceError, refused};
use crate::input::{Head, Input};
use crate::meta::Clock;
use crate::record::{Operation, Record};
use crate::text::{fields, length_bytes, offset_bytes, whole};
use crate::time::TimeUnit;

pub(crate) fn fits(head: Head<'_>) -> bool {
    most_lines(head, |line| {
        let (field, count) = fields::<5>(line, b',');
        count >= 5 && operation(field[3]).is_some() && seconds(field[4]).is_some()
    })
}

/// The block size, and its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Block {
    /// Given by the user.
    Said(u32),
    /// Proved by requests that follow each other.
    Proven(u32),
    /// The unit of all published traces.
    Usual,
}

impl Block {
    /// The given size, or the one that requests prove.
    ///
    /// # Errors
    /// For sizes that no drive has.
    pub(crate) fn of(input: &Input, sector_option: Option<u32>) -> Result<Block, TraceError> {
        if let Some(bytes) = sector_option {
            return units::check_unit(input, bytes).map(Block::Said);
        }
        let stated = |line| {
            let (field, count) = fields::<5>(line, b',');
            let (device, address, length_bytes) = (whole(field[0])?, whole(field[1])?, whole(field[2])?);
            (count >= 5).then_some(Stated { device, address, length_bytes })
        };
        let requests: Vec<Stated> = input.head().lines().filter_map(stated).collect();
        Ok(proven_unit(&requests).map_or(Block::Usual, Block::Proven))
    }

    fn bytes(self) -> u32 {
        match self {
            Block::Said(bytes) | Block::Proven(bytes) => bytes,
            Block::Usual => SECTOR_BYTES,
        }
    }
}

pub(crate) fn describe(block: Block, head: Head<'_>, out: &mut Collector) {
    out.meta.clock = Clock::Recording;
    out.meta.resolution_ns = finest_step_ns(head, TimeUnit::Seconds, |line| fields::<5>(line, b',').0[4]);
    match block {
        Block::Said(_) => {}
        Block::Proven(bytes) => {
            out.meta.note(format!("addresses are blocks of {bytes} bytes, as sequential requests show"));
        }
        Block::Usual => out.meta.note("addresses are treated as blocks of 512 bytes"),
    }
}

pub(crate) fn parse(line: &[u8], block: Block, part: &mut Part) -> Result<Record, Problem> {
    let (field, count) = fields::<5>(line, b',');
    if count < 5 {
        return Err(("", format!("{count} columns; expected at least the five of `ASU,LBA,size,R|W,timestamp`")));
    }
    let [asu, lba, size, opcode, time] = field;
    let operation = operation(opcode).ok_or_else(|| refused("opcode", opcode, "R or W"))?;
    let arrival_ns = seconds(time).ok_or_else(|| refused("timestamp", time, "seconds such as 0.5"))?;
    let offset = offset_bytes("LBA", lba, block.bytes())?;
    let mut record = Record::new(arrival_ns, operation, offset, length_bytes("size", size, 1)?);
    record.device = part.devices.of_number("ASU", asu)?;
    Ok(record)
}

fn operation(opcode: &[u8]) -> Option<Operation> {
    match opcode {
        b"R" | b"r" => Some(Operation::Read),
        b"W" | b"w" => Some(Operation::Write),
        _ => None,
    }
}

fn seconds(time: &[u8]) -> Option<u64> {
    let has_both_parts = matches!(time, [b'0'..=b'9', .., b'0'..=b'9']) && time.contains(&b'.');
    TimeUnit::Seconds.ns(time).filter(|_| has_both_parts)
}
