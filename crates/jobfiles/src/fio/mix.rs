//! [`Mix`]: the sizes, kinds, offsets and arrivals of requests.

use headstack_workload::{
    AccessLine, AccessSpecification, ArrivalProcess, Arrivals, InputError, RunLength, Sequence, Think, WarmUp, Workload,
};

use super::direction::{Direction, READ, TRIM, WRITE};
use super::distribution::{self, Pattern};
use super::settings::{Remarks, Settings};
use super::values::{self, Split, Triple};

const DEFAULT_SIZE_BYTES: u64 = 4096;

/// Maximum number of sizes in a `bsrange`.
const SIZES_MAX: u64 = 16_384;

/// The requests of a job.
pub(super) struct Mix {
    pub(super) workload: Workload,
    /// Mean length of the requests, in bytes.
    pub(super) mean_bytes: f64,
    /// Fraction of its part that a job covers in one pass.
    pub(super) progress: f64,
    /// Whether offsets cover all targets although the job transfers only as many bytes as its part has.
    pub(super) crosses_part: bool,
    /// Number of requests per offset; 2 if each offset is trimmed and written.
    pub(super) visits: u64,
    /// Rates of reads, writes and trims in requests per second, if each kind has its own.
    pub(super) rates_per_s: Option<[f64; 3]>,
}

/// Requests of one kind that are all random or all sequential.
#[derive(PartialEq)]
struct Piece {
    kind: usize,
    share_percent: f64,
    random_percent: f64,
    align_bytes: Option<u64>,
    sizes: Split,
}

/// Returns the requests of a job with `files` files and queue depth `depth`.
pub(super) fn mix(
    settings: &Settings,
    total_bytes: Option<u64>,
    files: u64,
    depth: u32,
    remarks: &mut Remarks,
) -> Result<Mix, InputError> {
    let mut direction = Direction::new(settings)?;
    let sizes = sizes(settings, remarks)?;
    let rates = rates(settings, &mut direction, &sizes)?;
    let pieces = pieces(settings, &direction, &sizes)?;
    let pattern = distribution::pattern(settings, &direction, total_bytes, largest(&pieces), remarks)?;
    let mut lines = lines(settings, pieces, &pattern)?;
    let mean_bytes = lines.iter().map(|line| f64::from(line.size_bytes) * line.share_percent / 100.0).sum::<f64>();
    let rates_per_s = rates.as_ref().filter(|_| direction.is_mixed).map(|rates| rates.of_kinds(&sizes));
    let arrivals = arrivals(settings, rates.map(|rates| rates.per_s(&sizes)), depth, &mut lines, remarks)?;
    let is_sequential = lines.iter().all(|line| line.random_percent == 0.0);
    let workload = Workload {
        name: String::new(),
        source: String::new(),
        specification: AccessSpecification { name: String::new(), lines },
        addresses: pattern.addresses,
        streams: streams(settings, files, is_sequential, remarks),
        stream_turn: 1,
        flush_every: settings.whole("fdatasync")?.unwrap_or(0),
        sync_every: settings.whole("fsync")?.unwrap_or(0),
        dsync_every: 0,
        sequence: Sequence {
            kinds_apart: true,
            trim_then_write: direction.trims_first,
            run: pattern.run,
            repeats: settings.text("rw_sequencer") == Some("identical"),
            looped: None,
        },
        arrivals,
        warm_up: WarmUp { requests: 0, time_ns: 0 },
        run_length: RunLength::default(),
    };
    let visits = if direction.trims_first { 2 } else { 1 };
    Ok(Mix {
        workload,
        mean_bytes,
        progress: pattern.progress,
        crosses_part: pattern.crosses_part,
        visits,
        rates_per_s,
    })
}

/// Returns the sizes of each kind of request, from `bssplit`, else from `bsrange`, else from `bs`.
fn sizes(settings: &Settings, remarks: &mut Remarks) -> Result<[Split; 3], InputError> {
    let plain = settings.sizes("bs")?;
    let ranges: Triple<(u64, u64)> =
        settings.parsed("bsrange", |value, _| values::ranges(value, settings.base))?.unwrap_or_default();
    let splits: Triple<Split> =
        settings.parsed("bssplit", |value, _| values::splits(value, settings.base))?.unwrap_or_default();
    let mut sizes = [const { Vec::new() }; 3];
    for (kind, split) in splits.into_iter().enumerate() {
        sizes[kind] = match (split, ranges[kind]) {
            (Some(split), _) => split,
            (None, Some((low, high))) => {
                let of_range = values::sizes_of_range(low, high, SIZES_MAX);
                of_range.ok_or_else(|| {
                    settings.error(
                        &["bsrange"],
                        format!("{low} to {high} has more than {SIZES_MAX} sizes; use a smaller range"),
                    )
                })?
            }
            (None, None) => vec![(plain[kind].unwrap_or(DEFAULT_SIZE_BYTES), 100.0)],
        };
        if let Some((size, _)) = sizes[kind].iter().find(|(size, _)| u32::try_from(*size).is_err()) {
            let message = format!("{size} bytes is too large; a request must be smaller than 4 GiB");
            return Err(settings.error(&["bssplit", "bsrange", "bs"], message));
        }
    }
    if let Some(setting) = settings.get("bs_unaligned").filter(|setting| setting.value == "1") {
        remarks.add(setting, "request lengths are the given sizes, or multiples of the smallest size");
    }
    Ok(sizes)
}

fn largest(pieces: &[Piece]) -> u64 {
    pieces.iter().flat_map(|piece| &piece.sizes).map(|(size, _)| *size).max().unwrap_or(DEFAULT_SIZE_BYTES)
}

fn mean_bytes(split: &Split) -> f64 {
    split.iter().map(|(size, share)| *size as f64 * share / 100.0).sum()
}

/// Rates of reads, writes and trims as stated, in requests or bytes per second.
enum Rates {
    Requests([f64; 3]),
    Bytes([f64; 3]),
}

impl Rates {
    /// Returns the requests per second of each kind.
    fn of_kinds(&self, sizes: &[Split; 3]) -> [f64; 3] {
        match self {
            Rates::Requests(rates) => *rates,
            Rates::Bytes(rates) => std::array::from_fn(|kind| rates[kind] / mean_bytes(&sizes[kind])),
        }
    }

    fn per_s(&self, sizes: &[Split; 3]) -> f64 {
        self.of_kinds(sizes).iter().sum()
    }
}

/// Returns the rates of the kinds that exist. If each kind has a rate, the rates determine the mix, as in fio.
fn rates(settings: &Settings, direction: &mut Direction, sizes: &[Split; 3]) -> Result<Option<Rates>, InputError> {
    let of_requests = settings.sizes("rate_iops")?;
    let of_bytes = settings.sizes("rate")?;
    let is_of_requests = direction.kinds().any(|kind| of_requests[kind].is_some_and(|rate| rate > 0));
    let (name, stated) = if is_of_requests { ("rate_iops", of_requests) } else { ("rate", of_bytes) };
    let mut rates = [0.0; 3];
    for kind in direction.kinds() {
        rates[kind] = stated[kind].unwrap_or(0) as f64;
    }
    let limited = direction.kinds().filter(|kind| rates[*kind] > 0.0).count();
    if limited == 0 {
        return Ok(None);
    }
    if limited < direction.kinds().count() {
        let message = "covers only some kinds of requests; give a rate for each kind, for example 100,50";
        return Err(settings.error(&[name], message));
    }
    let rates = if is_of_requests { Rates::Requests(rates) } else { Rates::Bytes(rates) };
    if direction.is_mixed {
        let (of_kinds, all) = (rates.of_kinds(sizes), rates.per_s(sizes));
        for kind in direction.kinds().collect::<Vec<usize>>() {
            direction.shares[kind] = 100.0 * of_kinds[kind] / all;
        }
    }
    Ok(Some(rates))
}

fn pieces(settings: &Settings, direction: &Direction, sizes: &[Split; 3]) -> Result<Vec<Piece>, InputError> {
    let random = settings.sizes("percentage_random")?;
    let aligns = settings.sizes("ba")?;
    let mut pieces = Vec::new();
    for kind in direction.kinds() {
        let share_percent = direction.shares[kind];
        let random_percent = if direction.is_random { random[kind].unwrap_or(100) as f64 } else { 0.0 };
        let piece = |sizes: &Split, share_percent: f64, random_percent: f64| {
            let smallest = sizes.iter().map(|(size, _)| *size).min();
            let align_bytes = aligns[kind].or(smallest.filter(|_| random_percent > 0.0));
            Piece { kind, share_percent, random_percent, align_bytes, sizes: sizes.clone() }
        };
        // With this option, the first size is for sequential requests and the second for random ones.
        if settings.is("bs_is_seq_rand", false) {
            pieces.push(piece(&sizes[READ], share_percent * (100.0 - random_percent) / 100.0, 0.0));
            pieces.push(piece(&sizes[WRITE], share_percent * random_percent / 100.0, 100.0));
        } else {
            pieces.push(piece(&sizes[kind], share_percent, random_percent));
        }
    }
    pieces.retain(|piece| piece.share_percent > 0.0);
    Ok(pieces)
}

/// Returns the access lines; pieces that differ only in their kind are merged.
fn lines(settings: &Settings, pieces: Vec<Piece>, pattern: &Pattern) -> Result<Vec<AccessLine>, InputError> {
    let alike = |a: &Piece, b: &Piece| {
        (a.random_percent, a.align_bytes, &a.sizes) == (b.random_percent, b.align_bytes, &b.sizes)
    };
    let mut groups: Vec<Vec<Piece>> = Vec::new();
    for piece in pieces {
        match groups.iter_mut().find(|group| alike(&group[0], &piece)) {
            Some(group) => group.push(piece),
            None => groups.push(vec![piece]),
        }
    }
    let mut lines = Vec::new();
    for group in groups {
        let share =
            // In Rust, an empty floating-point sum is -0.
            |kind: usize| group.iter().filter(|piece| piece.kind == kind).fold(0.0, |sum, piece| sum + piece.share_percent);
        let (read, write, trim) = (share(READ), share(WRITE), share(TRIM));
        let first = &group[0];
        let align_bytes = first.align_bytes.map(|align| {
            u32::try_from(align)
                .map_err(|_| settings.error(&["ba", "bs"], format!("{align} bytes is too large; must be below 4 GiB")))
        });
        let align_bytes = align_bytes.transpose()?;
        for (size, share_percent) in &first.sizes {
            lines.push(AccessLine {
                size_bytes: *size as u32,
                share_percent: share_percent * (read + write + trim) / 100.0,
                read_percent: 100.0 * read / (read + write + trim),
                random_percent: pattern.random_percent.unwrap_or(first.random_percent),
                trim_percent: if write + trim > 0.0 { 100.0 * trim / (write + trim) } else { 0.0 },
                delay_ns: 0,
                burst: 1,
                align_bytes,
            });
        }
    }
    Ok(lines)
}

/// Returns the arrivals. A rate defines a schedule; without a rate, each completion is followed by a request after the
/// think time.
fn arrivals(
    settings: &Settings,
    rate_per_s: Option<f64>,
    depth: u32,
    lines: &mut [AccessLine],
    remarks: &mut Remarks,
) -> Result<Arrivals, InputError> {
    let think_ns = settings.time_ns("thinktime")?.unwrap_or(0);
    if let Some(rate_per_s) = rate_per_s {
        if think_ns > 0 {
            remarks.about(settings, &["thinktime"], "a job with a rate does not pause");
        }
        let process = match settings.text("rate_process") {
            Some("poisson") => ArrivalProcess::Poisson,
            _ => ArrivalProcess::Fixed,
        };
        return Ok(Arrivals::Open { rate_per_s, process });
    }
    let blocks = settings.within("thinktime_blocks", 1, 1, 1 << 31)? as u32;
    if think_ns > 0 && depth > 1 {
        remarks.about(
            settings,
            &["thinktime"],
            "each slot of the queue pauses separately; fio pauses all of them together",
        );
    }
    if think_ns > 0 && blocks > 1 {
        for line in lines {
            (line.delay_ns, line.burst) = (think_ns, blocks);
        }
        return Ok(Arrivals::Closed { queue_depth: depth, think: Think::None });
    }
    let think = if think_ns > 0 { Think::Fixed(think_ns) } else { Think::None };
    Ok(Arrivals::Closed { queue_depth: depth, think })
}

/// Returns the number of sequential streams. fio takes files in turn and reads each from its start, which is one stream
/// per file.
fn streams(settings: &Settings, files: u64, is_sequential: bool, remarks: &mut Remarks) -> u32 {
    let service = settings.text("file_service_type").unwrap_or("roundrobin");
    let (service, postfix) = service.split_once([':', ',']).unwrap_or((service, ""));
    if files < 2 {
        return 1;
    }
    let is_kept = service == "sequential" || (service == "roundrobin" && matches!(postfix, "" | "1"));
    if !is_kept || (service == "sequential" && !is_sequential) {
        remarks.about(settings, &["file_service_type"], "files are used in turn, or at random for random offsets");
    }
    if service == "sequential" || !is_sequential { 1 } else { files.min(65_536) as u32 }
}
