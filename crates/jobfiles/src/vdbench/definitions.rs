//! Storage, workload and run definitions (`sd`, `wd`, `rd`): their defaults and the effect of each parameter.

use headstack_workload::{ArrivalProcess, InputError, QUEUE_DEPTH_MAX};

use super::defined::Definition;
use super::scan::{Number, Parameter, Unit};
use super::values::{
    BLOCK_BYTES, OpenFlags, Override, Rate, Seek, Sizes, Span, percentages, rates, seek, size_bytes, threads,
};
use super::words::{RD, SD, WD, Word, meaning};

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
    /// Start number and count of `count=(start,count)`.
    pub(super) count: Option<(u32, u32)>,
}

impl Definition for Storage {
    fn new() -> Storage {
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

    fn name(&self) -> &str {
        &self.name
    }

    fn called(self, name: String, place: Parameter) -> Self {
        Self { name, place: Some(place), ..self }
    }

    fn set(&mut self, parameter: &Parameter) -> Result<Option<&'static str>, InputError> {
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
                false => Err(parameter.error(format!("{} is not a multiple of 512 bytes", parameter.raw))),
            }
        };
        match meaning(SD, parameter)? {
            Word::Host if self.lun.is_some() && parameter.raw != "localhost" => {
                return Ok(Some("only this host issues requests"));
            }
            Word::Host => {}
            Word::Lun if self.name == "default" => {
                return Err(parameter.error("sd=default must not have a lun; set it in the definitions after it"));
            }
            Word::Lun if self.lun.is_some() => return Ok(Some("the lun of another host is ignored")),
            Word::Lun => self.lun = Some(parameter.raw.clone()),
            Word::Count => match *parameter.numbers(Unit::Size)?.as_slice() {
                [start, count] => {
                    let start = parameter.within(start, 0.0..=1e6)? as u32;
                    self.count = Some((start, parameter.within(count, 1.0..=10_000.0)? as u32));
                }
                _ => return Err(parameter.error("must be count=(start,count)")),
            },
            Word::Size => {
                let (bytes, divisor) = ratio(parameter)?;
                self.size_bytes = Some((bytes / divisor) as u64);
            }
            Word::Threads => {
                let (threads, divisor) = ratio(parameter)?;
                let threads = (threads / divisor).trunc().max(1.0);
                self.threads = parameter.within(Number::Plain(threads), 1.0..=f64::from(QUEUE_DEPTH_MAX))? as u32;
            }
            Word::Offset => self.offset_bytes = blocks(BYTES_MAX)? as u64,
            Word::Align => self.align_bytes = Some(blocks(f64::from(u32::MAX))? as u32).filter(|align| *align > 0),
            Word::OpenFlags => self.open = OpenFlags::read(parameter)?,
            Word::Range => self.range = Some(Span::read(parameter)?),
            Word::NotDone(message) => return Ok(Some(message)),
            _ => {}
        }
        Ok(None)
    }
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
    /// Whether random requests follow the hotband curve over the span.
    pub(super) is_hotband: bool,
    pub(super) seek: Seek,
    pub(super) rate_per_s: Option<f64>,
    pub(super) streams: u32,
    pub(super) threads: Option<u32>,
    pub(super) open: Option<OpenFlags>,
}

impl Definition for Load {
    fn new() -> Load {
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

    fn name(&self) -> &str {
        &self.name
    }

    fn called(self, name: String, place: Parameter) -> Self {
        Self { name, place: Some(place), ..self }
    }

    fn set(&mut self, parameter: &Parameter) -> Result<Option<&'static str>, InputError> {
        match meaning(WD, parameter)? {
            Word::Sds => self.storages = parameter.words()?,
            Word::Host if parameter.raw != "localhost" => return Ok(Some("only this host issues requests")),
            Word::Skew => self.skew_percent = parameter.plain(Unit::Size, 0.0..=100.0)?,
            Word::Sizes => self.sizes = Sizes::read(parameter)?,
            // vdbench truncates read percentages to whole numbers.
            Word::ReadPercent => self.read_percent = parameter.plain(Unit::Size, 0.0..=100.0)?.trunc(),
            Word::WritePercent => self.read_percent = 100.0 - parameter.plain(Unit::Size, 0.0..=100.0)?.trunc(),
            Word::Range => (self.span, self.is_hotband) = (Some(Span::read(parameter)?), false),
            Word::Hotband => (self.span, self.is_hotband) = (Some(Span::read(parameter)?), true),
            Word::Seek => {
                self.seek = seek(parameter)?;
                if parameter.word()?.eq_ignore_ascii_case("seqnz") {
                    return Ok(Some("the sequence begins at the start, not at a random offset"));
                }
            }
            Word::Rate => self.rate_per_s = Some(parameter.plain(Unit::Size, 1.0..=1e9)?),
            Word::OpenFlags => self.open = Some(OpenFlags::read(parameter)?),
            Word::Threads => self.threads = Some(threads(parameter, parameter.number(Unit::Size)?)?),
            Word::Streams => self.streams = parameter.plain(Unit::Size, 2.0..=65_536.0)? as u32,
            Word::NotDone(message) => return Ok(Some(message)),
            _ => {}
        }
        if self.rate_per_s.is_some() && self.skew_percent > 0.0 {
            return Err(parameter.error("a workload definition cannot have both iorate and skew"));
        }
        Ok(None)
    }
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
    /// Maximum amount of data in bytes; below 100, a multiple of the storage size.
    pub(super) max_data: Option<f64>,
    pub(super) process: ArrivalProcess,
    /// Keyword and values of each loop, outermost first.
    pub(super) loops: Vec<(&'static str, Vec<Override>)>,
    pub(super) open: Option<OpenFlags>,
}

impl Definition for RunDefinition {
    fn new() -> RunDefinition {
        RunDefinition {
            name: "default".to_owned(),
            place: None,
            loads: Vec::new(),
            storages: None,
            rates: Vec::new(),
            // From `RD_entry.insertCurveRuns`.
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

    fn name(&self) -> &str {
        &self.name
    }

    fn called(self, name: String, place: Parameter) -> Self {
        Self { name, place: Some(place), ..self }
    }

    fn set(&mut self, parameter: &Parameter) -> Result<Option<&'static str>, InputError> {
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
                    _ => Err(parameter.error("points of a curve must be percentages from 1 to 1000")),
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
            Word::NotDone(message) => return Ok(Some(message)),
            _ => {}
        }
        Ok(None)
    }
}

impl RunDefinition {
    /// Adds a loop inside all others. Replaces a loop with the same keyword.
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
                // Poisson is the closest available process: intervals uniform between 0 and twice the mean have a
                // coefficient of variation of 58 %.
                self.process = ArrivalProcess::Poisson;
                return Ok(Some("interarrival times are exponential, not uniform"));
            } else {
                let allowed = "use exponential, uniform or deterministic; variable rates are not supported";
                return Err(parameter.error(format!("{word:?} is not allowed; {allowed}")));
            }
        }
        Ok(None)
    }
}
