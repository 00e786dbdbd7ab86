//! hfplayer: NetApp controller dumps as CSV, with a header of typed columns: `#…,ELAPSED_USECS.D,…,LBA.I,NBLKS.I,…`.
//!
//! Columns are found by name; `.I`, `.D` and `.S` say integer, decimal and text. Times are taken from the columns in
//! microseconds: those in ticks may disagree. Blocks are of 512 bytes. In raw dumps a request has a second line for its
//! completion, `RD_OUT` or `WR_OUT`, which says nothing new.

use super::{Part, finest_step_ns};
use crate::collect::Collector;
use crate::error::{Place, Problem, TraceError, refused};
use crate::input::{Head, Input};
use crate::meta::{Clock, ResponseSpan};
use crate::record::{NOT_RECORDED, Operation, Record};
use crate::text::{length_bytes, offset_bytes};
use crate::time::TimeUnit;

const BLOCK_BYTES: u32 = 512;
/// A dump has 16 columns; more are added by its tools.
const COLUMNS_MAX: usize = 64;

pub(crate) fn fits(head: Head<'_>) -> bool {
    let mut lines = head.lines().filter(|line| !line.trim_ascii().is_empty());
    lines.next().is_some_and(|line| line.starts_with(b"#DUMP_OFFSET") || line.starts_with(b"#") && has_needed(line))
}

fn has_needed(header: &[u8]) -> bool {
    ["ELAPSED_USECS", "LBA", "NBLKS"].iter().all(|name| column(header, name).is_some())
}

/// The place of a column, from 0.
fn column(header: &[u8], wanted: &str) -> Option<usize> {
    header.strip_prefix(b"#")?.split(|&byte| byte == b',').position(|column| {
        let name = column.trim_ascii();
        let name = [&b".I"[..], b".D", b".S"].iter().find_map(|kind| name.strip_suffix(*kind)).unwrap_or(name);
        name == wanted.as_bytes()
    })
}

/// Where the columns are.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Layout {
    header: Vec<u8>,
    columns: usize,
    elapsed: usize,
    block: usize,
    blocks: usize,
    command: Option<usize>,
    operation: Option<usize>,
    latency: Option<usize>,
    device: Option<usize>,
}

impl Layout {
    /// Reads the header of `input`.
    ///
    /// # Errors
    /// Without a header, or one without the columns that a request needs.
    pub(crate) fn open(input: &Input) -> Result<Layout, TraceError> {
        let lines = input.head();
        let mut lines = lines.lines().zip(1..).map(|(line, number)| (line.trim_ascii(), number));
        let (header, number) = lines.find(|(line, _)| !line.is_empty()).unwrap_or_default();
        let refuse = |message: String| TraceError {
            file: input.name.clone(),
            place: Place::Line(number),
            field: "header",
            message,
        };
        let needed = |name: &str| {
            column(header, name).ok_or_else(|| {
                refuse(format!("must begin with # and have the column {name} (ELAPSED_USECS, LBA, NBLKS, CMD or OP)"))
            })
        };
        let columns = header.split(|&byte| byte == b',').count();
        if columns > COLUMNS_MAX {
            return Err(refuse(format!("has {columns} columns; at most {COLUMNS_MAX}")));
        }
        let layout = Layout {
            elapsed: needed("ELAPSED_USECS")?,
            block: needed("LBA")?,
            blocks: needed("NBLKS")?,
            command: column(header, "CMD"),
            operation: column(header, "OP"),
            latency: column(header, "LATENCY_USECS"),
            device: column(header, "LUN_SSID").or_else(|| column(header, "HOST_LUN")),
            columns,
            header: header.to_vec(),
        };
        if layout.command.is_none() && layout.operation.is_none() {
            needed("CMD")?;
        }
        Ok(layout)
    }

    /// Says in `out` what holds for all requests.
    pub(crate) fn describe(&self, head: Head<'_>, out: &mut Collector) {
        out.meta.clock = Clock::Recording;
        out.meta.resolution_ns = finest_step_ns(head, TimeUnit::Microseconds, |line| {
            if line.starts_with(b"#") {
                b""
            } else {
                line.split(|&byte| byte == b',').nth(self.elapsed).unwrap_or_default()
            }
        });
        out.meta.response = self.latency.map(|_| ResponseSpan::AtTheController);
    }

    /// The request of a line; nothing for headers and completions.
    pub(crate) fn parse(&self, line: &[u8], part: &mut Part) -> Result<Option<Record>, Problem> {
        if line.starts_with(b"#") {
            // Dumps that follow each other bring their headers along.
            return if line.trim_ascii() == self.header {
                Ok(None)
            } else {
                Err(refused("header", line, "the same as at the top"))
            };
        }
        let mut fields = [&b""[..]; COLUMNS_MAX];
        let mut count = 0;
        for field in line.split(|&byte| byte == b',') {
            if let Some(slot) = fields.get_mut(count) {
                *slot = field.trim_ascii();
            }
            count += 1;
        }
        if count != self.columns {
            return Err(("", format!("{count} columns; the header has {}", self.columns)));
        }
        let Some(operation) = self.operation(&fields)? else {
            part.count("completions that repeat their request");
            return Ok(None);
        };
        let elapsed = fields[self.elapsed];
        let arrival_ns = TimeUnit::Microseconds.ns(elapsed);
        let arrival_ns = arrival_ns.ok_or_else(|| refused("ELAPSED_USECS", elapsed, "microseconds"))?;
        let offset = offset_bytes("LBA", fields[self.block], BLOCK_BYTES)?;
        let length = length_bytes("NBLKS", fields[self.blocks], BLOCK_BYTES)?;
        let mut record = Record::new(arrival_ns, operation, offset, length);
        record.response_ns = match self.latency.map(|column| fields[column]) {
            None | Some(b"") => NOT_RECORDED,
            Some(text) => {
                TimeUnit::Microseconds.ns(text).ok_or_else(|| refused("LATENCY_USECS", text, "microseconds"))?
            }
        };
        record.device = match self.device {
            Some(column) => part.devices.of_number("LUN", fields[column])?,
            None => part.devices.of("LUN", b"")?,
        };
        Ok(Some(record))
    }

    /// What the request did; nothing where the line is a completion.
    fn operation(&self, fields: &[&[u8]; COLUMNS_MAX]) -> Result<Option<Operation>, Problem> {
        let by_name = self.command.map(|column| match fields[column] {
            b"RD" | b"RD_IN" => Ok(Some(Operation::Read)),
            b"WR" | b"WR_IN" => Ok(Some(Operation::Write)),
            b"RD_OUT" | b"WR_OUT" => Ok(None),
            text => Err(refused("CMD", text, "RD, WR, or these with _IN or _OUT")),
        });
        // A completion is a request's number plus 2.
        let by_number = self.operation.map(|column| match fields[column] {
            b"0" => Ok(Some(Operation::Read)),
            b"1" => Ok(Some(Operation::Write)),
            b"2" | b"3" => Ok(None),
            text => Err(refused("OP", text, "0 (read), 1 (write), or these plus 2 for a completion")),
        });
        match (by_name.transpose()?, by_number.transpose()?) {
            (Some(name), Some(number)) if name != number => Err(("OP", "does not say the same as CMD".to_owned())),
            (Some(operation), _) | (None, Some(operation)) => Ok(operation),
            (None, None) => Err(("CMD", "is missing".to_owned())),
        }
    }
}
