//! hfplayer: NetApp controller dumps as CSV, with a header of typed columns: `#…,ELAPSED_USECS.D,…,LBA.I,NBLKS.I,…`.
//!
//! Columns are found by name; `.I`, `.D`, `.S` and `.N` mean integer, decimal, text and signed. Blocks are of 512
//! bytes.
//!
//! There are two kinds of dumps. In the first, a request is a line with its response time. In the second, raw one, it
//! has a line on arrival, whose response time is still 0, and one on completion, `RD_OUT` or `WR_OUT`, with the same
//! sequence number and the response time. So a response time of 0 means not recorded.
//!
//! Times are from the columns in microseconds: those in ticks may disagree. Only if the first line has 0 and the ticks
//! show that the recording began long before, the ticks between the first two lines determine the first arrival.

use rustc_hash::FxHashMap;

use super::first_lines::finest_step_ns;
use crate::collect::Collector;
use crate::error::{Place, Problem, TraceError, refused};
use crate::input::{Head, Input};
use crate::meta::{Clock, ResponseSpan};
use crate::record::{NOT_RECORDED, Operation, Record};
use crate::text::{length_bytes, offset_bytes, whole};
use crate::time::{Calendar, TimeUnit};

const BLOCK_BYTES: u32 = 512;
/// A dump has 16 columns; its tools add more.
const COLUMNS_MAX: usize = 64;

pub(crate) fn fits(head: Head<'_>) -> bool {
    let mut lines = head.lines().filter(|line| !line.trim_ascii().is_empty());
    lines.next().is_some_and(|line| line.starts_with(b"#DUMP_OFFSET") || line.starts_with(b"#") && has_needed(line))
}

fn has_needed(header: &[u8]) -> bool {
    ["ELAPSED_USECS", "LBA", "NBLKS"].iter().all(|name| column(header, name).is_some())
}

/// Index of a column.
fn column(header: &[u8], wanted: &str) -> Option<usize> {
    header.strip_prefix(b"#")?.split(|&byte| byte == b',').position(|column| {
        let name = column.trim_ascii();
        let name = [&b".I"[..], b".D", b".S", b".N"].iter().find_map(|kind| name.strip_suffix(*kind)).unwrap_or(name);
        name == wanted.as_bytes()
    })
}

/// Indices of the columns.
#[derive(Clone, Debug, PartialEq)]
struct Layout {
    header: Vec<u8>,
    columns: usize,
    elapsed: usize,
    block: usize,
    blocks: usize,
    ticks: Option<usize>,
    absolute_s: Option<usize>,
    sequence: Option<usize>,
    command: Option<usize>,
    operation: Option<usize>,
    latency: Option<usize>,
    device: Option<usize>,
}

type Fields<'a> = [&'a [u8]; COLUMNS_MAX];

/// Whether a line is a request or its completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    In(Operation),
    Out,
}

impl Layout {
    /// Reads the header of `input`.
    ///
    /// # Errors
    /// Without a header, or with one that lacks the columns that a request needs.
    fn open(input: &Input) -> Result<Layout, TraceError> {
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
            ticks: column(header, "ELAPSED_TICKS"),
            absolute_s: column(header, "ABS_SECS"),
            sequence: column(header, "SEQID"),
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

    /// The fields of a line.
    ///
    /// # Errors
    /// When their number differs from that of the header.
    fn fields<'a>(&self, line: &'a [u8]) -> Result<Fields<'a>, Problem> {
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
        Ok(fields)
    }

    fn elapsed_ns(&self, fields: &Fields<'_>) -> Result<u64, Problem> {
        let elapsed = fields[self.elapsed];
        TimeUnit::Microseconds.ns(elapsed).ok_or_else(|| refused("ELAPSED_USECS", elapsed, "microseconds"))
    }

    /// Response time of a line; `NOT_RECORDED` if it has none, or 0.
    fn response_ns(&self, fields: &Fields<'_>) -> Result<u64, Problem> {
        match self.latency.map(|column| fields[column]) {
            None | Some(b"") => Ok(NOT_RECORDED),
            Some(text) => {
                let ns = TimeUnit::Microseconds.ns(text);
                let ns = ns.ok_or_else(|| refused("LATENCY_USECS", text, "microseconds"))?;
                Ok(if ns == 0 { NOT_RECORDED } else { ns })
            }
        }
    }

    /// Phase of a line.
    fn phase(&self, fields: &Fields<'_>) -> Result<Phase, Problem> {
        let by_name = self.command.map(|column| match fields[column] {
            b"RD" | b"RD_IN" => Ok(Phase::In(Operation::Read)),
            b"WR" | b"WR_IN" => Ok(Phase::In(Operation::Write)),
            b"RD_OUT" | b"WR_OUT" => Ok(Phase::Out),
            text => Err(refused("CMD", text, "RD, WR, or these with _IN or _OUT")),
        });
        // A completion has the request's number plus 2.
        let by_number = self.operation.map(|column| match fields[column] {
            b"0" => Ok(Phase::In(Operation::Read)),
            b"1" => Ok(Phase::In(Operation::Write)),
            b"2" | b"3" => Ok(Phase::Out),
            text => Err(refused("OP", text, "0 (read), 1 (write), or these plus 2 for a completion")),
        });
        match (by_name.transpose()?, by_number.transpose()?) {
            (Some(name), Some(number)) if name != number => Err(("OP", "contradicts CMD".to_owned())),
            (Some(phase), _) | (None, Some(phase)) => Ok(phase),
            (None, None) => Err(("CMD", "is missing".to_owned())),
        }
    }

    /// The lines of `head` with all columns, split into fields.
    fn rows<'a>(&'a self, head: Head<'a>) -> impl Iterator<Item = Fields<'a>> + 'a {
        head.lines()
            .filter(|line| !line.trim_ascii().is_empty() && !line.starts_with(b"#"))
            .flat_map(|line| self.fields(line))
    }

    /// Arrival of the first line, if its 0 differs from the 0 of the other lines.
    ///
    /// The ticks of the second and third line, and of all others of the head, give the number of ticks per microsecond.
    fn first_elapsed_ns(&self, head: Head<'_>) -> Option<u64> {
        let ticks = self.ticks?;
        let mut rows = self.rows(head).map_while(|row| Some((self.elapsed_ns(&row).ok()?, whole(row[ticks])?)));
        let (first, second) = (rows.next()?, rows.next()?);
        let last = rows.last()?;
        if first.0 != 0 || last.0 <= second.0 || last.1 <= second.1 || second.1 < first.1 {
            return None;
        }
        let ns_a_tick = (last.0 - second.0) as f64 / (last.1 - second.1) as f64;
        let gap_ns = ((second.1 - first.1) as f64 * ns_a_tick).round() as u64;
        // If the 0 is right, the two agree to the written digits.
        (gap_ns < second.0 / 2).then(|| second.0 - gap_ns)
    }
}

/// A parser of a dump.
#[derive(Debug)]
pub(crate) struct Hfplayer {
    layout: Layout,
    /// Arrival of the first line, if that line itself is wrong.
    first_elapsed_ns: Option<u64>,
    /// Whether requests have a second line on completion.
    has_completions: bool,
    /// Requests that wait for it, by sequence number.
    pending: FxHashMap<u64, Record>,
}

impl Hfplayer {
    /// Reads the header of `input`, and stores the metadata of all requests in `out`.
    ///
    /// # Errors
    /// Without a header, or with one that lacks the columns that a request needs.
    pub(crate) fn open(input: &Input, out: &mut Collector) -> Result<Hfplayer, TraceError> {
        let layout = Layout::open(input)?;
        let head = input.head();
        let first_elapsed_ns = layout.first_elapsed_ns(head);
        let is_out = |row: Fields<'_>| layout.phase(&row) == Ok(Phase::Out);
        let has_completions = layout.sequence.is_some() && layout.rows(head).any(is_out);
        out.meta.clock = Clock::Recording;
        out.meta.resolution_ns = finest_step_ns(head, TimeUnit::Microseconds, |line| {
            if line.starts_with(b"#") {
                b""
            } else {
                line.split(|&byte| byte == b',').nth(layout.elapsed).unwrap_or_default()
            }
        });
        out.meta.response = layout.latency.map(|_| ResponseSpan::AtTheController);
        if first_elapsed_ns.is_some() {
            out.meta.note("ELAPSED_USECS of the first request is 0, but the others count from long before; its arrival is from ELAPSED_TICKS");
        }
        // The date is that of the first line, whose elapsed time is known.
        if let (Some(column), Some(row)) = (layout.absolute_s, layout.rows(head).next())
            && let Some(date_ns) = Calendar::Unix(TimeUnit::Seconds).date_ns(row[column])
            && let Some(elapsed_ns) = first_elapsed_ns.or_else(|| layout.elapsed_ns(&row).ok())
        {
            out.meta.zero_unix_ns = date_ns.checked_sub(elapsed_ns);
        }
        Ok(Hfplayer { layout, first_elapsed_ns, has_completions, pending: FxHashMap::default() })
    }

    /// Returns the request that a line completes or is; `None` for headers, and for requests that wait for their
    /// completion.
    pub(crate) fn parse(&mut self, line: &[u8], out: &mut Collector) -> Result<Option<Record>, Problem> {
        let layout = &self.layout;
        if line.starts_with(b"#") {
            // Concatenated dumps include their headers.
            return if line == layout.header {
                Ok(None)
            } else {
                Err(refused("header", line, "the same as at the top"))
            };
        }
        let fields = layout.fields(line)?;
        let phase = layout.phase(&fields)?;
        let elapsed_ns = layout.elapsed_ns(&fields)?;
        let response_ns = layout.response_ns(&fields)?;
        let sequence = layout
            .sequence
            .map(|column| whole(fields[column]).ok_or_else(|| refused("SEQID", fields[column], "a whole number")));
        let sequence = sequence.transpose()?;
        let Phase::In(operation) = phase else {
            let Some(mut record) = sequence.and_then(|sequence| self.pending.remove(&sequence)) else {
                out.meta.count("completions without a matching request", 1);
                return Ok(None);
            };
            record.response_ns = match response_ns {
                NOT_RECORDED => elapsed_ns.checked_sub(record.arrival_ns).unwrap_or(NOT_RECORDED),
                said_ns => said_ns,
            };
            return Ok(Some(record));
        };
        let offset = offset_bytes("LBA", fields[layout.block], BLOCK_BYTES)?;
        let length = length_bytes("NBLKS", fields[layout.blocks], BLOCK_BYTES)?;
        let arrival_ns = self.first_elapsed_ns.take().unwrap_or(elapsed_ns);
        let mut record = Record::new(arrival_ns, operation, offset, length);
        record.response_ns = response_ns;
        record.device = match layout.device {
            Some(column) => {
                let number = whole(fields[column]).filter(|&number| number <= u64::from(u32::MAX));
                let number = number.ok_or_else(|| refused("LUN", fields[column], "a whole number below 2^32"))?;
                out.device(&number.to_string())
            }
            None => out.device(""),
        };
        if record.response_ns != NOT_RECORDED || !self.has_completions {
            return Ok(Some(record));
        }
        // A number that recurs before its completion belongs to another request.
        let before = sequence.and_then(|sequence| self.pending.insert(sequence, record));
        Ok(before)
    }

    /// Returns requests that were never completed, without a response time, in order of arrival so that the output is
    /// reproducible.
    pub(crate) fn end(&mut self, out: &mut Collector) {
        let mut left: Vec<(u64, Record)> = self.pending.drain().collect();
        left.sort_unstable_by_key(|&(sequence, record)| (record.arrival_ns, sequence));
        out.meta.count("requests without a completion", left.len() as u64);
        out.records.extend(left.into_iter().map(|(_, record)| record));
    }
}
