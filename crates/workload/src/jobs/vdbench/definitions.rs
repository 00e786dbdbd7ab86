//! Storage, workload and run definitions (`sd`, `wd`, `rd`), each with the keywords that vdbench 5.04.06 knows.
//!
//! A keyword may be cut short: it means the first of its definition's keywords that begins with it, which is why the
//! tables keep the order of vdbench's sources (`SD_entry.java`, `WD_entry.java`, `RD_entry.java`, `For_loop.java`).

use super::scan::{Number, Parameter, Unit};
use crate::arrivals::{ArrivalProcess, OUTSTANDING_MAX};
use crate::document::InputError;
use crate::jobs::Sync;

/// Requests are whole blocks of 512 bytes.
const BLOCK_BYTES: f64 = 512.0;

/// Sizes that `xfersize=(min,max,align)` may stand for.
const SIZES_MAX: u64 = 4_096;

/// What a keyword of a definition means.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Word {
    Host,
    Lun,
    Count,
    Size,
    Threads,
    Offset,
    Align,
    OpenFlags,
    Range,
    Sds,
    Wds,
    Skew,
    Sizes,
    ReadPercent,
    WritePercent,
    Hotband,
    Seek,
    Rate,
    Streams,
    MaxData,
    Curve,
    StopCurve,
    Elapsed,
    Interval,
    Warmup,
    Pause,
    Distribution,
    /// Changes nothing of the load by itself.
    Nothing,
    /// Is not done; the text says what becomes of it.
    NotDone(&'static str),
    Refused(&'static str),
}

use Word::{NotDone, Nothing, Refused};

const REPLAY: Word = Refused("traces are not replayed from here; import and replay the trace itself");
const FILE_SYSTEM: Word = Refused("file system workloads (fsd, fwd) are not supported; sd, wd and rd are");
const HITS: Word = NotDone("cache hits are not forced: requests go where the rest of the definition sends them");
const CONTENTS: Word = NotDone("what is written is not chosen by the file");
const COMMANDS: Word = NotDone("commands are not executed");

const SD: &[(&str, Word)] = &[
    ("hd", Word::Host),
    ("host", Word::Host),
    ("lun", Word::Lun),
    ("count", Word::Count),
    ("size", Word::Size),
    ("threads", Word::Threads),
    ("hitarea", Nothing),
    ("offset", Word::Offset),
    ("align", Word::Align),
    ("kstat", Nothing),
    ("instance", Nothing),
    ("replay", REPLAY),
    ("journal", NotDone("no journal is kept")),
    ("resetlun", NotDone("LUNs are not reset")),
    ("resetbus", NotDone("buses are not reset")),
    ("openflags", Word::OpenFlags),
    ("range", Word::Range),
    ("dedup", CONTENTS),
    ("streams", Refused("streams belong to a workload definition (wd)")),
];

const WD: &[(&str, Word)] = &[
    ("sd", Word::Sds),
    ("hd", Word::Host),
    ("skew", Word::Skew),
    ("xfersize", Word::Sizes),
    ("readpct", Word::ReadPercent),
    ("rdpct", Word::ReadPercent),
    ("writepct", Word::WritePercent),
    ("wrpct", Word::WritePercent),
    ("range", Word::Range),
    ("hotband", Word::Hotband),
    ("seekpct", Word::Seek),
    ("stride", NotDone("sequential requests follow one another without gaps")),
    ("priority", NotDone("no workload goes before another: each has its own rate or its share")),
    ("iorate", Word::Rate),
    ("rhpct", HITS),
    ("whpct", HITS),
    ("host", Word::Host),
    ("openflags", Word::OpenFlags),
    ("user", Refused("requests of a program of the user's are not supported")),
    ("threads", Word::Threads),
    ("streams", Word::Streams),
];

const RD: &[(&str, Word)] = &[
    ("wd", Word::Wds),
    ("sd", Word::Sds),
    ("fsd", FILE_SYSTEM),
    ("iorate", Word::Rate),
    ("maxdata", Word::MaxData),
    ("maxdataread", NotDone("reads alone are not counted; the run ends by its time")),
    ("maxdatawritten", NotDone("writes alone are not counted; the run ends by its time")),
    ("curve", Word::Curve),
    ("stopcurve", Word::StopCurve),
    ("elapsed", Word::Elapsed),
    ("interval", Word::Interval),
    ("warmup", Word::Warmup),
    ("replay", REPLAY),
    ("pause", Word::Pause),
    ("forxfersize", Word::Sizes),
    ("forthreads", Word::Threads),
    ("forrdpct", Word::ReadPercent),
    ("forrhpct", HITS),
    ("forwhpct", HITS),
    ("forseekpct", Word::Seek),
    ("forhitarea", HITS),
    ("forcompratio", CONTENTS),
    ("forcompression", CONTENTS),
    ("xfersize", Word::Sizes),
    ("threads", Word::Threads),
    ("rdpct", Word::ReadPercent),
    ("rhpct", HITS),
    ("whpct", HITS),
    ("seekpct", Word::Seek),
    ("hitarea", HITS),
    ("compratio", CONTENTS),
    ("compression", CONTENTS),
    ("distribution", Word::Distribution),
    ("startcmd", COMMANDS),
    ("start_cmd", COMMANDS),
    ("endcmd", COMMANDS),
    ("end_cmd", COMMANDS),
    ("fwd", FILE_SYSTEM),
    ("fwdrate", FILE_SYSTEM),
    ("operations", FILE_SYSTEM),
    ("foroperations", FILE_SYSTEM),
    ("format", FILE_SYSTEM),
    ("openflags", Word::OpenFlags),
    ("mount", NotDone("nothing is mounted")),
];

/// What a keyword means in a table.
pub(super) fn meaning(table: &[(&str, Word)], parameter: &Parameter) -> Result<Word, InputError> {
    let keyword = parameter.keyword.as_str();
    // `dedup...` is any of a family of keywords; the other tables know it by its beginning.
    let is = |(name, _): &&(&str, Word)| name.starts_with(keyword) || *name == "dedup" && keyword.starts_with(name);
    match table.iter().find(|(name, _)| *name == keyword).or_else(|| table.iter().find(is)) {
        Some((_, Refused(reason))) => Err(parameter.error(*reason)),
        Some((_, word)) => Ok(*word),
        None => {
            let names: Vec<&str> = table.iter().map(|(name, _)| *name).collect();
            Err(parameter.error(format!("unknown keyword; allowed: {}", names.join(", "))))
        }
    }
}

/// How files are opened.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct OpenFlags {
    pub(super) direct: bool,
    pub(super) sync: Sync,
}

impl OpenFlags {
    /// `OpenFlags.java` opens with `O_DSYNC` for each of `o_sync`, `o_dsync` and `o_rsync` on Linux.
    fn read(parameter: &Parameter) -> Result<OpenFlags, InputError> {
        let mut flags = OpenFlags::default();
        for word in parameter.words()? {
            match word.to_ascii_lowercase().as_str() {
                "o_direct" | "directio" | "f_nocache" | "0x4000" => flags.direct = true,
                "o_dsync" | "o_rsync" | "o_sync" | "0x1000" => flags.sync = Sync::Data,
                "0x101000" => flags.sync = Sync::File,
                // These act when a file is opened or closed.
                "fsync" | "clear_cache" | "clearcache" | "directio_off" => {}
                _ => {
                    let allowed = "o_direct, directio, o_dsync, o_rsync, o_sync, fsync";
                    return Err(parameter.error(format!("{word:?} is not allowed; {allowed} are")));
                }
            }
        }
        Ok(flags)
    }
}

/// Sizes of requests with their shares in percent, and the alignment where it is stated.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sizes {
    pub(super) shares: Vec<(u32, f64)>,
    pub(super) align_bytes: Option<u32>,
}

/// One size in bytes.
pub(super) fn size_bytes(parameter: &Parameter, number: Number) -> Result<u32, InputError> {
    let size = parameter.within(number, BLOCK_BYTES..=f64::from(u32::MAX))?;
    if size % BLOCK_BYTES != 0.0 {
        return Err(parameter.error(format!("{size} is no multiple of 512 bytes")));
    }
    Ok(size as u32)
}

impl Sizes {
    fn read(parameter: &Parameter) -> Result<Sizes, InputError> {
        let numbers = parameter.numbers(Unit::Size)?;
        let size = |number| size_bytes(parameter, number);
        match *numbers.as_slice() {
            [one] => Ok(Sizes { shares: vec![(size(one)?, 100.0)], align_bytes: None }),
            [min, max, align] => Sizes::between(parameter, size(min)?, size(max)?, size(align)?),
            _ if numbers.len() % 2 == 1 => {
                Err(parameter.error("sizes and percentages come in pairs, as in (4k,50,8k,50), or as (min,max,align)"))
            }
            _ => {
                let share = |pair: &[Number]| Ok((size(pair[0])?, parameter.within(pair[1], 0.0..=100.0)?));
                let mut shares = numbers.chunks_exact(2).map(share).collect::<Result<Vec<_>, InputError>>()?;
                let sum: f64 = shares.iter().map(|(_, share)| share).sum();
                if sum.round() != 100.0 {
                    return Err(parameter.error(format!("the percentages sum to {sum}; they must sum to 100")));
                }
                // vdbench rounds the sum, ours is exact.
                shares.iter_mut().for_each(|(_, share)| *share *= 100.0 / sum);
                shares.retain(|(_, share)| *share > 0.0);
                Ok(Sizes { shares, align_bytes: None })
            }
        }
    }

    /// Any multiple of `align` between two sizes, each as likely.
    fn between(parameter: &Parameter, min: u32, max: u32, align: u32) -> Result<Sizes, InputError> {
        let count = u64::from(max.saturating_sub(min) / align) + 1;
        if min >= max || count > SIZES_MAX {
            let message = format!("(min,max,align) needs min below max and up to {SIZES_MAX} sizes between them");
            return Err(parameter.error(message));
        }
        let shares = (0..count as u32).map(|index| (min + index * align, 100.0 / count as f64)).collect();
        Ok(Sizes { shares, align_bytes: Some(align) })
    }
}

/// Where random requests begin and end: in percent up to 200, else in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Span {
    pub(super) from: f64,
    pub(super) to: f64,
}

impl Span {
    fn read(parameter: &Parameter) -> Result<Span, InputError> {
        let value = |number: &Number| match *number {
            Number::Plain(value) | Number::Percent(value) => value,
        };
        match *parameter.numbers(Unit::Size)?.iter().map(value).collect::<Vec<f64>>().as_slice() {
            [from, to]
                if from < to && to <= 1e18 && (to > 200.0 || to - from < 100.0 || from == 0.0 && to == 100.0) =>
            {
                Ok(Span { from, to })
            }
            _ => Err(parameter.error(format!(
                "{} is no range; (10,20) in percent, (90,110) round the end, or bytes above 200 are allowed",
                parameter.raw
            ))),
        }
    }
}

/// A storage definition.
#[derive(Clone, Debug)]
pub(super) struct Storage {
    pub(super) name: String,
    pub(super) place: Option<Parameter>,
    pub(super) lun: Option<String>,
    pub(super) size_bytes: Option<u64>,
    pub(super) threads: u32,
    pub(super) offset_bytes: u64,
    pub(super) align_bytes: Option<u32>,
    pub(super) range: Option<Span>,
    pub(super) open: OpenFlags,
    /// First number and how many.
    pub(super) count: Option<(u32, u32)>,
}

impl Storage {
    pub(super) fn new() -> Storage {
        Storage {
            name: "default".to_owned(),
            place: None,
            lun: None,
            size_bytes: None,
            threads: 8,
            offset_bytes: 0,
            align_bytes: None,
            range: None,
            open: OpenFlags::default(),
            count: None,
        }
    }

    /// Notes a parameter; the text says what becomes of one that is not done.
    pub(super) fn set(&mut self, parameter: &Parameter) -> Result<Option<&'static str>, InputError> {
        const BYTES_MAX: f64 = 9e18;
        let ratio = |parameter: &Parameter| -> Result<(f64, f64), InputError> {
            let numbers = parameter.numbers(Unit::Size)?;
            let divisor = numbers.get(1).map_or(Ok(1.0), |&number| parameter.within(number, 1.0..=BYTES_MAX))?;
            Ok((parameter.within(numbers[0], 1.0..=BYTES_MAX)?, divisor.trunc()))
        };
        let blocks = |max: f64| -> Result<f64, InputError> {
            let bytes = parameter.plain(Unit::Size, 0.0..=max)?;
            match bytes % BLOCK_BYTES == 0.0 {
                true => Ok(bytes),
                false => Err(parameter.error(format!("{} is no multiple of 512 bytes", parameter.raw))),
            }
        };
        match meaning(SD, parameter)? {
            Word::Host if self.lun.is_some() && parameter.raw != "localhost" => {
                return Ok(Some("requests are issued by this host alone"));
            }
            Word::Host => {}
            Word::Lun if self.name == "default" => {
                return Err(parameter.error("sd=default has no lun of its own; the definitions after it have"));
            }
            Word::Lun if self.lun.is_some() => return Ok(Some("the lun of another host is not used")),
            Word::Lun => self.lun = Some(parameter.raw.clone()),
            Word::Count => match *parameter.numbers(Unit::Size)?.as_slice() {
                [start, count] => {
                    let start = parameter.within(start, 0.0..=1e6)? as u32;
                    self.count = Some((start, parameter.within(count, 1.0..=10_000.0)? as u32));
                }
                _ => return Err(parameter.error("count=(start,count) has two numbers")),
            },
            Word::Size => {
                let (bytes, divisor) = ratio(parameter)?;
                self.size_bytes = Some((bytes / divisor) as u64);
            }
            Word::Threads => {
                let (threads, divisor) = ratio(parameter)?;
                let threads = (threads / divisor).trunc().max(1.0);
                self.threads = parameter.within(Number::Plain(threads), 1.0..=f64::from(OUTSTANDING_MAX))? as u32;
            }
            Word::Offset => self.offset_bytes = blocks(BYTES_MAX)? as u64,
            Word::Align => self.align_bytes = Some(blocks(f64::from(u32::MAX))? as u32).filter(|align| *align > 0),
            Word::OpenFlags => self.open = OpenFlags::read(parameter)?,
            Word::Range => self.range = Some(Span::read(parameter)?),
            NotDone(message) => return Ok(Some(message)),
            _ => {}
        }
        Ok(None)
    }
}

/// How much of a workload is random.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Seek {
    /// In percent.
    Random(f64),
    /// Sequential, and done at the end.
    UntilEnd,
}

/// A workload definition.
#[derive(Clone, Debug)]
pub(super) struct Load {
    pub(super) name: String,
    pub(super) place: Option<Parameter>,
    pub(super) storages: Vec<String>,
    pub(super) skew_percent: f64,
    pub(super) sizes: Sizes,
    pub(super) read_percent: f64,
    pub(super) span: Option<Span>,
    /// Whether random requests go to the span by the hot band's curve.
    pub(super) is_hotband: bool,
    pub(super) seek: Seek,
    pub(super) rate_per_s: Option<f64>,
    pub(super) streams: u32,
    pub(super) threads: Option<u32>,
    pub(super) open: Option<OpenFlags>,
}

impl Load {
    pub(super) fn new() -> Load {
        Load {
            name: "default".to_owned(),
            place: None,
            storages: Vec::new(),
            skew_percent: 0.0,
            sizes: Sizes { shares: vec![(4_096, 100.0)], align_bytes: None },
            read_percent: 100.0,
            span: None,
            is_hotband: false,
            seek: Seek::Random(100.0),
            rate_per_s: None,
            streams: 1,
            threads: None,
            open: None,
        }
    }

    pub(super) fn set(&mut self, parameter: &Parameter) -> Result<Option<&'static str>, InputError> {
        match meaning(WD, parameter)? {
            Word::Sds => self.storages = parameter.words()?,
            Word::Host if parameter.raw != "localhost" => return Ok(Some("requests are issued by this host alone")),
            Word::Skew => self.skew_percent = parameter.plain(Unit::Size, 0.0..=100.0)?,
            Word::Sizes => self.sizes = Sizes::read(parameter)?,
            // vdbench cuts percentages of reads to whole ones.
            Word::ReadPercent => self.read_percent = parameter.plain(Unit::Size, 0.0..=100.0)?.trunc(),
            Word::WritePercent => self.read_percent = 100.0 - parameter.plain(Unit::Size, 0.0..=100.0)?.trunc(),
            Word::Range => (self.span, self.is_hotband) = (Some(Span::read(parameter)?), false),
            Word::Hotband => (self.span, self.is_hotband) = (Some(Span::read(parameter)?), true),
            Word::Seek => {
                self.seek = seek(parameter)?;
                if parameter.word()?.to_ascii_lowercase() == "seqnz" {
                    return Ok(Some("the sequence begins at the start, not at a random place"));
                }
            }
            Word::Rate => self.rate_per_s = Some(parameter.plain(Unit::Size, 1.0..=1e9)?),
            Word::OpenFlags => self.open = Some(OpenFlags::read(parameter)?),
            Word::Threads => self.threads = Some(threads(parameter, parameter.number(Unit::Size)?)?),
            Word::Streams => self.streams = parameter.plain(Unit::Size, 2.0..=65_536.0)? as u32,
            NotDone(message) => return Ok(Some(message)),
            _ => {}
        }
        if self.rate_per_s.is_some() && self.skew_percent > 0.0 {
            return Err(parameter.error("iorate and skew exclude each other in a workload definition"));
        }
        Ok(None)
    }
}

fn threads(parameter: &Parameter, number: Number) -> Result<u32, InputError> {
    Ok(parameter.within(number, 0.0..=f64::from(OUTSTANDING_MAX))?.trunc().max(1.0) as u32)
}

fn seek(parameter: &Parameter) -> Result<Seek, InputError> {
    let text = parameter.word()?.to_ascii_lowercase();
    if "sequential".starts_with(&text) || text == "seqnz" {
        Ok(Seek::Random(0.0))
    } else if "random".starts_with(&text) {
        Ok(Seek::Random(100.0))
    } else if text == "eof" {
        Ok(Seek::UntilEnd)
    } else if "poisson".starts_with(&text) {
        Err(parameter.error("addresses by vdbench's Poisson law are not supported; 0 to 100, seq, rand or eof is"))
    } else {
        match super::scan::number(&text, Unit::Size) {
            Some(Number::Plain(percent)) if percent <= 100.0 => Ok(Seek::Random(percent)),
            _ => Err(parameter.error(format!("{text:?} is not allowed; 0 to 100, seq, seqnz, rand or eof is"))),
        }
    }
}

/// The rate of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Rate {
    Max,
    Curve,
    PerSecond(f64),
    /// Of what was last observed.
    Percent(f64),
}

/// What a run overrides in its workloads.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Override {
    Size(u32),
    Threads(u32),
    ReadPercent(f64),
    Seek(Seek),
}

/// A run definition.
#[derive(Clone, Debug)]
pub(super) struct RunDefinition {
    pub(super) name: String,
    pub(super) place: Option<Parameter>,
    pub(super) loads: Vec<String>,
    pub(super) storages: Option<Vec<String>>,
    pub(super) rates: Vec<Rate>,
    pub(super) curve_percent: Vec<f64>,
    pub(super) stop_response_ns: Option<u64>,
    pub(super) elapsed_ns: u64,
    pub(super) interval_ns: u64,
    pub(super) warm_up_ns: u64,
    pub(super) pause_ns: u64,
    /// Bytes, or below 100 how often the storage's size.
    pub(super) max_data: Option<f64>,
    pub(super) process: ArrivalProcess,
    /// Keyword and values of each loop, the outermost first.
    pub(super) loops: Vec<(&'static str, Vec<Override>)>,
    pub(super) open: Option<OpenFlags>,
}

impl RunDefinition {
    pub(super) fn new() -> RunDefinition {
        RunDefinition {
            name: "default".to_owned(),
            place: None,
            loads: Vec::new(),
            storages: None,
            rates: Vec::new(),
            // `RD_entry.insertCurveRuns`.
            curve_percent: vec![10.0, 50.0, 70.0, 80.0, 90.0, 100.0],
            stop_response_ns: None,
            elapsed_ns: 30_000_000_000,
            interval_ns: 1_000_000_000,
            warm_up_ns: 0,
            pause_ns: 0,
            max_data: None,
            process: ArrivalProcess::Poisson,
            loops: Vec::new(),
            open: None,
        }
    }

    pub(super) fn set(&mut self, parameter: &Parameter) -> Result<Option<&'static str>, InputError> {
        let numbers = || parameter.numbers(Unit::Size);
        match meaning(RD, parameter)? {
            Word::Wds => self.loads = parameter.words()?,
            Word::Sds => self.storages = Some(parameter.words()?),
            Word::Rate => self.rates = rates(parameter)?,
            Word::MaxData => self.max_data = Some(parameter.plain(Unit::Size, 1.0..=1e18)?),
            Word::Curve => {
                let percent = |number: &Number| match *number {
                    Number::Plain(value) | Number::Percent(value) if (1.0..=1000.0).contains(&value) => {
                        Ok(value.trunc())
                    }
                    _ => Err(parameter.error("points of a curve are percentages, 1 to 1000")),
                };
                self.curve_percent = numbers()?.iter().map(percent).collect::<Result<_, _>>()?;
            }
            Word::StopCurve => {
                self.stop_response_ns = Some((parameter.plain(Unit::Size, 0.001..=1e6)? * 1e6) as u64);
            }
            Word::Elapsed => self.elapsed_ns = parameter.duration_ns()?,
            Word::Interval => self.interval_ns = parameter.duration_ns()?,
            Word::Warmup => self.warm_up_ns = parameter.duration_ns()?,
            Word::Pause => self.pause_ns = parameter.duration_ns()?,
            Word::Sizes => {
                let sizes = numbers()?.into_iter().map(|number| Ok(Override::Size(size_bytes(parameter, number)?)));
                self.repeat("xfersize", sizes.collect::<Result<_, InputError>>()?);
            }
            Word::Threads => {
                let counts = numbers()?.into_iter().map(|number| Ok(Override::Threads(threads(parameter, number)?)));
                self.repeat("threads", counts.collect::<Result<_, InputError>>()?);
            }
            Word::ReadPercent => self.repeat("rdpct", percentages(parameter)?.map(Override::ReadPercent).collect()),
            Word::Seek => {
                let seeks = match parameter.items.len() {
                    1 => vec![Override::Seek(seek(parameter)?)],
                    _ => percentages(parameter)?.map(|percent| Override::Seek(Seek::Random(percent))).collect(),
                };
                self.repeat("seekpct", seeks);
            }
            Word::Distribution => return self.set_distribution(parameter),
            Word::OpenFlags => self.open = Some(OpenFlags::read(parameter)?),
            NotDone(message) => return Ok(Some(message)),
            _ => {}
        }
        Ok(None)
    }

    /// Adds a loop inside all others; one of the same keyword is replaced.
    fn repeat(&mut self, keyword: &'static str, values: Vec<Override>) {
        self.loops.retain(|(known, _)| *known != keyword);
        self.loops.push((keyword, values));
    }

    fn set_distribution(&mut self, parameter: &Parameter) -> Result<Option<&'static str>, InputError> {
        for word in parameter.words()? {
            let word = word.to_ascii_lowercase();
            if "exponential".starts_with(&word) {
                self.process = ArrivalProcess::Poisson;
            } else if "deterministic".starts_with(&word) {
                self.process = ArrivalProcess::Fixed;
            } else if "uniform".starts_with(&word) {
                // Of the processes there are, the nearest: distances of 0 to twice the mean vary by 58 % of it.
                self.process = ArrivalProcess::Poisson;
                return Ok(Some("distances of arrivals are exponential, not uniform"));
            } else {
                let allowed =
                    "exponential, uniform or deterministic is; rates that change during a run are not supported";
                return Err(parameter.error(format!("{word:?} is not allowed; {allowed}")));
            }
        }
        Ok(None)
    }
}

fn percentages(parameter: &Parameter) -> Result<impl Iterator<Item = f64>, InputError> {
    let percent = |number| parameter.within(number, 0.0..=100.0);
    let all = parameter.numbers(Unit::Size)?.into_iter().map(percent).collect::<Result<Vec<f64>, InputError>>()?;
    Ok(all.into_iter())
}

/// What vdbench takes for a rate without a limit, so that a list may hold one (`RD_entry.MAX_RATE`).
const MAX_RATE: &str = "9999988";

fn rates(parameter: &Parameter) -> Result<Vec<Rate>, InputError> {
    use super::scan::Item;
    if parameter.raw.eq_ignore_ascii_case("curve") {
        return Ok(vec![Rate::Curve]);
    }
    let mut numeric = parameter.clone();
    for item in &mut numeric.items {
        if matches!(item, Item::Text(text) if text.eq_ignore_ascii_case("max")) {
            *item = Item::Text(MAX_RATE.to_owned());
        }
    }
    let rate = |number| match number {
        Number::Percent(percent) if percent > 0.0 && percent <= 1000.0 => Ok(Rate::Percent(percent)),
        Number::Plain(value) if value.to_string() == MAX_RATE => Ok(Rate::Max),
        Number::Plain(value) if value > 0.0 && value <= 1e9 => Ok(Rate::PerSecond(value)),
        _ => Err(parameter.error("a rate is max, curve, or a number above 0 and up to 1e9")),
    };
    let numbers = numeric.numbers(Unit::Size).map_err(|_| {
        parameter.error(format!("{:?} is no rate; max, curve, a number or a list of numbers is", parameter.raw))
    })?;
    numbers.into_iter().map(rate).collect()
}
