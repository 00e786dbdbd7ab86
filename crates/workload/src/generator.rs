//! [`Generator`]: converts a workload to requests. The hot path does not allocate or divide, and draws few random
//! numbers.

use crate::access::AccessLine;
use crate::addresses::{Addresses, RandomMap, Sampler};
use crate::arrivals::{Arrivals, Think};
use crate::error::WorkloadError;
use crate::hotband::Hotband;
use crate::places::Places;
use crate::random::{AliasTable, Purpose, Random};
use crate::request::{Kind, Request};
use crate::span::Span;
use crate::workload::{Sequence, Workload};

/// Maximum number of blocks. Higher ranks would have probabilities below the resolution of a 53-bit random number.
const BLOCKS_MAX: u64 = 1 << 40;

/// Endless sequence of a workload's requests on a span.
///
/// The sequence depends only on the workload, the span, the sector size and the seed.
pub struct Generator {
    lines: Vec<Line>,
    line_choice: AliasTable,
    sampler: Sampler,
    /// Start of the next sequential access of each stream, and of each kind if kinds have their own pointers.
    pointers: Vec<u64>,
    /// Offset from a kind's pointers to those of the next kind; 0 if kinds share pointers.
    kind_pointers: usize,
    end_bytes: u64,
    streams: usize,
    stream: usize,
    stream_turn: u32,
    left_in_turn: u32,
    line: usize,
    left_in_burst: u32,
    pending_delay_ns: u64,
    think: Think,
    flush_every: u64,
    sync_every: u64,
    dsync_every: u64,
    /// Address of flushes; see [`Request::offset_bytes`].
    syncs_at_bytes: u64,
    writes: u64,
    /// Whether the last request was a write, so that a flush may be due.
    has_written: bool,
    sequence: Sequence,
    /// Number of requests left in the current run, including its random one.
    left_in_run: u32,
    /// Offset of the last request of each kind, which a run may repeat.
    last: [u64; 3],
    /// A trimmed range that must be written next.
    trimmed: Option<(u64, u32)>,
    /// State of the loop, if the sequence repeats.
    again: Option<Box<Again>>,
    addresses: Random,
    choices: Random,
    think_times: Random,
}

/// A repeating loop of requests, with the inputs for a new generator.
struct Again {
    workload: Workload,
    span: Span,
    sector_bytes: u32,
    seed: u64,
    /// Transfers and bytes left in the loop.
    left: (u64, u64),
}

/// An access line prepared for drawing, with percentages as thresholds for 32-bit random numbers.
struct Line {
    length_bytes: u32,
    places: Places,
    read_below: u64,
    random_below: u64,
    trim_below: u64,
    /// Alignment of the line if it is coarser than the sector size. Pointers are always aligned to sectors.
    pointer_align_bytes: Option<u64>,
    delay_ns: u64,
    burst: u32,
}

/// Returns the threshold for a percentage. No 32-bit number is below the threshold of 0 %, and all are below that of
/// 100 %.
fn threshold(percent: f64) -> u64 {
    (percent / 100.0 * (1u64 << 32) as f64).round() as u64
}

impl Line {
    fn new(line: &AccessLine, span: Span, sector_bytes: u32) -> Result<Line, (&'static str, String)> {
        if !line.size_bytes.is_multiple_of(sector_bytes) {
            let message =
                format!("{} bytes is not a multiple of the sector size ({sector_bytes} bytes)", line.size_bytes);
            return Err(("size", message));
        }
        let align_bytes = line.align_bytes.unwrap_or(sector_bytes);
        if !align_bytes.is_multiple_of(sector_bytes) {
            let message = format!("{align_bytes} bytes is not a multiple of the sector size ({sector_bytes} bytes)");
            return Err(("align", message));
        }
        let step_bytes = u64::from(align_bytes);
        let Some(places) = Places::within(span, step_bytes, step_bytes, u64::from(line.size_bytes)) else {
            let message = format!(
                "no aligned request of {} bytes fits in the span of {} bytes",
                line.size_bytes, span.length_bytes
            );
            return Err(("size", message));
        };
        Ok(Line {
            length_bytes: line.size_bytes,
            places,
            read_below: threshold(line.read_percent),
            random_below: threshold(line.random_percent),
            trim_below: threshold(line.trim_percent),
            pointer_align_bytes: (align_bytes > sector_bytes).then_some(u64::from(align_bytes)),
            delay_ns: line.delay_ns,
            burst: line.burst,
        })
    }
}

/// Returns the blocks of a skewed distribution. A block has the size of the smallest request, rounded up so that every
/// block start is aligned for every line. The largest request fits at the last block.
fn popular_blocks(lines: &[Line], span: Span) -> Option<Places> {
    let align_bytes = lines.iter().map(|line| line.places.step_bytes).try_fold(1, least_common_multiple)?;
    let sizes = || lines.iter().map(|line| u64::from(line.length_bytes));
    let block_bytes = sizes().min()?.checked_next_multiple_of(align_bytes)?;
    Places::within(span, align_bytes, block_bytes, sizes().max()?)
}

/// Returns the hot band, or an error if the largest request does not fit in it.
fn hotband(span: Span, from_percent: f64, to_percent: f64, lines: &[Line]) -> Result<Hotband, WorkloadError> {
    let band = Hotband::new(span, from_percent, to_percent);
    match lines.iter().find(|line| !band.holds(&line.places, line.length_bytes)) {
        None => Ok(band),
        Some(line) => Err(WorkloadError {
            key: "addresses.vdbench_hotband".to_owned(),
            message: format!(
                "no aligned request of {} bytes fits in {from_percent} to {to_percent} % of the span of {} bytes",
                line.length_bytes, span.length_bytes
            ),
        }),
    }
}

/// Checks that zones start and continue at addresses that are aligned for every line.
fn check_strides(addresses: &Addresses, lines: &[Line]) -> Result<(), WorkloadError> {
    let Addresses::Strided { zone_bytes, step_bytes, .. } = addresses else {
        return Ok(());
    };
    for line in lines {
        let align_bytes = line.places.step_bytes;
        if align_bytes != lines[0].places.step_bytes {
            let message = "strided lines must have the same alignment; omit align".to_owned();
            return Err(WorkloadError { key: "addresses.strided".to_owned(), message });
        }
        for (key, bytes) in [("zone", *zone_bytes), ("step", *step_bytes), ("size", line.length_bytes.into())] {
            if !bytes.is_multiple_of(align_bytes) {
                let message = format!("{bytes} bytes is not a multiple of the alignment ({align_bytes} bytes)");
                let key = if key == "size" { "lines.size".to_owned() } else { format!("addresses.strided.{key}") };
                return Err(WorkloadError { key, message });
            }
        }
    }
    Ok(())
}

fn least_common_multiple(a: u64, b: u64) -> Option<u64> {
    let (mut divisor, mut rest) = (a, b);
    while rest != 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    (a / divisor).checked_mul(b)
}

impl Generator {
    /// Creates a generator of `workload`'s requests on `span`, for a system with sectors of `sector_bytes`.
    ///
    /// # Errors
    /// Returns an error if the workload is invalid, a size or alignment is not a multiple of the sector size, or a
    /// request does not fit in the span.
    pub fn new(workload: &Workload, span: Span, sector_bytes: u32, seed: u64) -> Result<Generator, WorkloadError> {
        workload.validate()?;
        check_span(span, sector_bytes)?;
        let specified = &workload.specification.lines;
        let lines = specified
            .iter()
            .enumerate()
            .map(|(index, line)| {
                Line::new(line, span, sector_bytes).map_err(|(key, message)| (format!("lines[{index}].{key}"), message))
            })
            .collect::<Result<Vec<Line>, _>>()?;
        // A line with bursts is chosen less often, so that its share of the requests is correct.
        let weights: Vec<f64> = specified.iter().map(|line| line.share_percent / f64::from(line.burst)).collect();
        let blocks = match workload.addresses {
            Addresses::Once | Addresses::RandomMap | Addresses::Zipf { .. } | Addresses::Pareto { .. } => {
                popular_blocks(&lines, span)
                    .filter(|blocks| blocks.count <= BLOCKS_MAX)
                    .ok_or_else(|| skewed_error(span))?
            }
            Addresses::Uniform
            | Addresses::Strided { .. }
            | Addresses::Normal { .. }
            | Addresses::HotBands(_)
            | Addresses::VdbenchHotband { .. } => lines[0].places,
        };
        check_strides(&workload.addresses, &lines)?;
        let keys = Random::new(seed, Purpose::Permutation);
        let sampler = match workload.addresses {
            Addresses::VdbenchHotband { from_percent, to_percent } => {
                Sampler::VdbenchHotband(hotband(span, from_percent, to_percent, &lines)?)
            }
            Addresses::RandomMap => {
                Sampler::Map(RandomMap::new(map_blocks(blocks, span)).ok_or_else(|| skewed_error(span))?)
            }
            Addresses::Uniform
            | Addresses::Once
            | Addresses::Strided { .. }
            | Addresses::Zipf { .. }
            | Addresses::Pareto { .. }
            | Addresses::Normal { .. }
            | Addresses::HotBands(_) => Sampler::new(&workload.addresses, blocks, keys),
        };
        Ok(Generator {
            line_choice: AliasTable::new(&weights),
            sampler,
            pointers: {
                let starts = stream_starts(span, workload.streams, sector_bytes);
                if workload.sequence.kinds_apart { starts.repeat(3) } else { starts }
            },
            kind_pointers: if workload.sequence.kinds_apart { workload.streams as usize } else { 0 },
            lines,
            end_bytes: span.start_bytes + span.length_bytes,
            streams: workload.streams as usize,
            stream: 0,
            stream_turn: workload.stream_turn,
            left_in_turn: workload.stream_turn,
            line: 0,
            left_in_burst: 0,
            pending_delay_ns: 0,
            think: match workload.arrivals {
                Arrivals::Closed { think, .. } => think,
                Arrivals::Open { .. } => Think::None,
            },
            flush_every: workload.flush_every,
            sync_every: workload.sync_every,
            dsync_every: workload.dsync_every,
            syncs_at_bytes: 0,
            writes: 0,
            has_written: false,
            sequence: workload.sequence,
            left_in_run: workload.sequence.run,
            last: [span.start_bytes; 3],
            trimmed: None,
            again: workload.sequence.looped.map(|length| {
                let left = length.on(span.length_bytes);
                Box::new(Again { workload: workload.clone(), span, sector_bytes, seed, left })
            }),
            addresses: Random::new(seed, Purpose::Addresses),
            choices: Random::new(seed, Purpose::Choices),
            think_times: Random::new(seed, Purpose::Think),
        })
    }

    /// Lets flushes cover only the file at this address.
    pub(crate) fn with_syncs_at(mut self, address_bytes: u64) -> Generator {
        self.syncs_at_bytes = address_bytes;
        self
    }

    /// Returns the blocks that differ in popularity; `None` unless the addresses are skewed.
    pub fn popular_blocks(&self) -> Option<Places> {
        match &self.sampler {
            Sampler::Zipf(_, scatter) | Sampler::Pareto { scatter, .. } => Some(scatter.blocks),
            Sampler::HotBands { .. } => Some(self.lines[0].places),
            Sampler::Uniform
            | Sampler::Once(_)
            | Sampler::Map(_)
            | Sampler::Strided(_)
            | Sampler::Normal { .. }
            | Sampler::VdbenchHotband(_) => None,
        }
    }

    /// Returns the next request.
    #[allow(clippy::should_implement_trait)] // The sequence never ends, so there is no `Option`.
    #[inline]
    pub fn next(&mut self) -> Request {
        if self.has_written
            && let Some(flush) = self.due_flush()
        {
            return flush;
        }
        if let Some((offset_bytes, length_bytes)) = self.trimmed.take() {
            self.count(length_bytes);
            return self.write(offset_bytes, length_bytes);
        }
        self.loop_when_due();
        let (kind, bits) = self.choose();
        self.request(kind, bits)
    }

    /// Returns the next request of kind `wanted`, which the lines must include, or a flush if one is due.
    pub fn next_of(&mut self, wanted: Kind) -> Request {
        if self.has_written
            && let Some(flush) = self.due_flush()
        {
            return flush;
        }
        self.loop_when_due();
        loop {
            let (kind, bits) = self.choose();
            if kind == wanted {
                return self.request(kind, bits);
            }
        }
    }

    #[inline]
    fn count(&mut self, length_bytes: u32) {
        if let Some(again) = &mut self.again {
            again.left.0 -= 1;
            again.left.1 = again.left.1.saturating_sub(u64::from(length_bytes));
        }
    }

    /// Restarts the sequence at the end of a loop.
    #[inline]
    fn loop_when_due(&mut self) {
        if self.again.as_ref().is_some_and(|again| again.left.0 == 0 || again.left.1 == 0) {
            self.begin_anew();
        }
    }

    #[cold]
    fn begin_anew(&mut self) {
        let again = self.again.take().expect("a loop has ended");
        let made = Generator::new(&again.workload, again.span, again.sector_bytes, again.seed);
        *self = made.expect("the same inputs were valid before").with_syncs_at(self.syncs_at_bytes);
    }

    /// Returns the flush that is due after the last write, if any.
    #[inline]
    fn due_flush(&mut self) -> Option<Request> {
        self.has_written = false;
        let is_due = |every: u64, writes: u64| every != 0 && writes.is_multiple_of(every);
        let with_metadata = is_due(self.sync_every, self.writes);
        (with_metadata || is_due(self.flush_every, self.writes))
            .then(|| Request { force_unit_access: with_metadata, ..request(Kind::Flush, self.syncs_at_bytes, 0) })
    }

    #[inline]
    fn write(&mut self, offset_bytes: u64, length_bytes: u32) -> Request {
        self.writes += 1;
        self.has_written = self.flush_every | self.sync_every != 0;
        let force_unit_access = self.dsync_every != 0 && self.writes.is_multiple_of(self.dsync_every);
        Request { force_unit_access, ..request(Kind::Write, offset_bytes, length_bytes) }
    }

    /// Chooses the line of the next request. Returns the request's kind and the bits that decide whether its address is
    /// random.
    #[inline]
    fn choose(&mut self) -> (Kind, u64) {
        self.begin_burst();
        self.left_in_burst -= 1;
        let line = &self.lines[self.line];
        let bits = self.choices.bits();
        let kind = if bits >> 32 < line.read_below {
            Kind::Read
        } else if line.trim_below != 0 && self.choices.bits() >> 32 < line.trim_below {
            Kind::Trim
        } else {
            Kind::Write
        };
        (kind, bits)
    }

    /// Returns a request for the chosen line.
    #[inline]
    fn request(&mut self, kind: Kind, bits: u64) -> Request {
        let line = &self.lines[self.line];
        let mut length_bytes = line.length_bytes;
        let stream = self.stream;
        self.left_in_turn -= 1;
        if self.left_in_turn == 0 {
            self.left_in_turn = self.stream_turn;
            self.stream = if stream + 1 == self.streams { 0 } else { stream + 1 };
        }
        let mut is_random = bits & 0xffff_ffff < line.random_below;
        let mut repeats = false;
        if self.sequence.run > 0 {
            self.left_in_run -= 1;
            if self.left_in_run == 0 {
                self.left_in_run = self.sequence.run;
            } else {
                (is_random, repeats) = (false, self.sequence.repeats);
            }
        }
        let pointer = &mut self.pointers[stream + kind as usize * self.kind_pointers];
        // As in fio, a run among random requests that reaches the end continues at a random offset.
        let has_room = *pointer + u64::from(length_bytes) <= self.end_bytes;
        is_random |= self.kind_pointers > 0 && line.random_below > 0 && !repeats && !has_room;
        let offset_bytes = if is_random {
            match &mut self.sampler {
                Sampler::Map(map) => {
                    let offset_bytes;
                    (offset_bytes, length_bytes) = map.take(length_bytes, &mut self.addresses);
                    offset_bytes
                }
                sampler @ (Sampler::Uniform
                | Sampler::Once(_)
                | Sampler::Strided(_)
                | Sampler::Zipf(..)
                | Sampler::Pareto { .. }
                | Sampler::Normal { .. }
                | Sampler::HotBands { .. }
                | Sampler::VdbenchHotband(_)) => {
                    sampler.offset_bytes(&line.places, length_bytes, kind, &mut self.addresses)
                }
            }
        } else {
            let start_bytes = if repeats { self.last[kind as usize] } else { *pointer };
            let aligned = match line.pointer_align_bytes {
                None => start_bytes,
                Some(align_bytes) => start_bytes.next_multiple_of(align_bytes),
            };
            if aligned + u64::from(length_bytes) <= self.end_bytes { aligned } else { line.places.first_bytes }
        };
        // As in Iometer, a random access also moves the pointer, so a sequential access continues after it.
        *pointer = offset_bytes + u64::from(length_bytes);
        self.last[kind as usize] = offset_bytes;
        self.count(length_bytes);
        if self.sequence.trim_then_write {
            self.trimmed = Some((offset_bytes, length_bytes));
            return request(Kind::Trim, offset_bytes, length_bytes);
        }
        match kind {
            Kind::Write => self.write(offset_bytes, length_bytes),
            Kind::Read | Kind::Trim | Kind::Flush => request(kind, offset_bytes, length_bytes),
        }
    }

    /// Returns the time in ns between a completion and the next request of a closed loop: the think time, plus the
    /// delay of the request's line if it starts a burst.
    #[inline]
    pub fn think_ns(&mut self) -> u64 {
        self.begin_burst();
        let think_ns = self.think.draw_ns(&mut self.think_times);
        think_ns + std::mem::take(&mut self.pending_delay_ns)
    }

    /// Chooses the line of the next request if the last burst has ended.
    #[inline]
    fn begin_burst(&mut self) {
        if self.left_in_burst > 0 {
            return;
        }
        if self.lines.len() > 1 {
            self.line = self.line_choice.pick(&mut self.choices);
        }
        let line = &self.lines[self.line];
        self.left_in_burst = line.burst;
        self.pending_delay_ns = line.delay_ns;
    }
}

#[inline]
fn request(kind: Kind, offset_bytes: u64, length_bytes: u32) -> Request {
    Request { kind, offset_bytes, length_bytes, force_unit_access: false, ordered: false }
}

fn check_span(span: Span, sector_bytes: u32) -> Result<(), WorkloadError> {
    let error = |message: String| Err(WorkloadError { key: "span".to_owned(), message });
    if sector_bytes == 0 {
        return error("a sector size of 0 bytes is not allowed".to_owned());
    }
    if !span.start_bytes.is_multiple_of(u64::from(sector_bytes)) {
        return error(format!(
            "start at byte {} is not a multiple of the sector size ({sector_bytes} bytes)",
            span.start_bytes
        ));
    }
    match span.start_bytes.checked_add(span.length_bytes) {
        Some(end_bytes) if end_bytes <= i64::MAX as u64 => Ok(()),
        _ => error("the end is above 8 EiB".to_owned()),
    }
}

/// Returns the blocks of a random map, which cover the span up to its end. A request that does not fit there is cut.
fn map_blocks(blocks: Places, span: Span) -> Places {
    let room_bytes = span.start_bytes + span.length_bytes - blocks.first_bytes;
    Places { count: room_bytes / blocks.step_bytes, ..blocks }
}

fn skewed_error(span: Span) -> WorkloadError {
    WorkloadError {
        key: "addresses".to_owned(),
        message: format!(
            "the span of {} bytes must hold 1 to 2^40 blocks that are aligned for every line",
            span.length_bytes
        ),
    }
}

/// Returns the starts of `streams` streams at equal distances.
fn stream_starts(span: Span, streams: u32, sector_bytes: u32) -> Vec<u64> {
    let sectors = span.length_bytes / u64::from(sector_bytes);
    (0..streams)
        .map(|stream| {
            let sector = u128::from(sectors) * u128::from(stream) / u128::from(streams);
            span.start_bytes + sector as u64 * u64::from(sector_bytes)
        })
        .collect()
}

#[cfg(test)]
mod tests;
