//! Trees, loads and runs: their defaults and the effect of each parameter.

use headstack_workload::{ArrivalProcess, InputError};

use super::words::{FSD, FWD, RD, Word, meaning};
use crate::trees::{Format, Operation, Order, Tree};
use crate::vdbench::defined::Definition;
use crate::vdbench::scan::{Number, Parameter, Unit};
use crate::vdbench::values::{OpenFlags, Sizes};

/// Maximum number of folders and files in a tree; a higher number indicates a mistake in the file.
const MEMBERS_MAX: u64 = 1_000_000_000;
const THREADS_MAX: f64 = 1_024.0;
const BYTES_MAX: f64 = 1e15;

/// A tree definition (`fsd`).
#[derive(Clone, Debug)]
pub(super) struct Folder {
    pub(super) place: Option<Parameter>,
    pub(super) tree: Tree,
    pub(super) open: OpenFlags,
    /// Start number and count of `count=(start,count)`.
    pub(super) count: Option<(u32, u32)>,
}

fn whole(parameter: &Parameter, number: Number, most: f64) -> Result<u32, InputError> {
    Ok(parameter.within(number, 0.0..=most)?.trunc() as u32)
}

fn bytes(parameter: &Parameter, number: Number) -> Result<u64, InputError> {
    Ok(parameter.within(number, 1.0..=BYTES_MAX)?.trunc() as u64)
}

/// Returns file sizes with their shares in percent, from one size or from pairs.
fn file_sizes(parameter: &Parameter) -> Result<Vec<(u64, f64)>, InputError> {
    let numbers = parameter.numbers(Unit::Size)?;
    if let [one] = *numbers {
        return Ok(vec![(bytes(parameter, one)?, 100.0)]);
    }
    if numbers.len() % 2 == 1 {
        return Err(parameter.error("use pairs of sizes and percentages, for example (4k,50,1m,50)"));
    }
    let share = |pair: &[Number]| Ok((bytes(parameter, pair[0])?, parameter.within(pair[1], 0.0..=100.0)?));
    let mut sizes = numbers.chunks_exact(2).map(share).collect::<Result<Vec<_>, InputError>>()?;
    let sum: f64 = sizes.iter().map(|(_, share)| share).sum();
    if sum.round() != 100.0 {
        return Err(parameter.error(format!("the percentages sum to {sum}; they must sum to 100")));
    }
    sizes.retain(|(_, share)| *share > 0.0);
    Ok(sizes)
}

impl Definition for Folder {
    fn new() -> Folder {
        let tree = Tree {
            name: "default".to_owned(),
            anchor: String::new(),
            depth: 0,
            width: 0,
            files: 0,
            has_files_everywhere: false,
            sizes: Vec::new(),
            total_bytes: None,
            used_bytes: None,
        };
        Folder { place: None, tree, open: OpenFlags::default(), count: None }
    }

    fn name(&self) -> &str {
        &self.tree.name
    }

    fn called(mut self, name: String, place: Parameter) -> Self {
        self.tree.name = name;
        Self { place: Some(place), ..self }
    }

    fn set(&mut self, parameter: &Parameter) -> Result<Option<&'static str>, InputError> {
        let number = || parameter.number(Unit::Size);
        match meaning(FSD, parameter)? {
            Word::Anchor => self.tree.anchor = parameter.raw.clone(),
            Word::Depth => self.tree.depth = whole(parameter, number()?, 64.0)?,
            Word::Width => self.tree.width = whole(parameter, number()?, 1e6)?,
            Word::Files => self.tree.files = whole(parameter, number()?, 1e9)?,
            Word::Sizes => self.tree.sizes = file_sizes(parameter)?,
            Word::TotalSize => self.tree.total_bytes = Some(bytes(parameter, number()?)?),
            Word::WorkingSet => self.tree.used_bytes = Some(bytes(parameter, number()?)?),
            Word::Distribution => {
                self.tree.has_files_everywhere = match parameter.word()?.to_ascii_lowercase() {
                    word if "all".starts_with(&word) => true,
                    word if "bottom".starts_with(&word) => false,
                    _ => return Err(parameter.error("use all or bottom")),
                };
            }
            Word::OpenFlags => self.open = OpenFlags::read(parameter)?,
            Word::Count => match *parameter.numbers(Unit::Size)?.as_slice() {
                [start, count] => {
                    let start = whole(parameter, start, 1e6)?;
                    self.count = Some((start, parameter.within(count, 1.0..=10_000.0)? as u32));
                }
                _ => return Err(parameter.error("must be count=(start,count)")),
            },
            Word::NotDone(message) => return Ok(Some(message)),
            _ => {}
        }
        Ok(None)
    }
}

impl Folder {
    /// Checks that the definition is a valid tree.
    pub(super) fn check(&self, place: &Parameter) -> Result<(), InputError> {
        let tree = &self.tree;
        if tree.anchor.is_empty() {
            return Err(place.error("has no anchor; add anchor=DIRECTORY"));
        }
        if tree.depth > 0 && tree.width == 0 {
            return Err(place.error("has a depth but no width; add width=DIRECTORIES"));
        }
        if tree.members().is_none_or(|members| members > MEMBERS_MAX) {
            return Err(place.error(format!("depth, width and files yield more than {MEMBERS_MAX} files; reduce them")));
        }
        Ok(())
    }
}

/// A load definition (`fwd`).
#[derive(Clone, Debug)]
pub(super) struct Load {
    pub(super) name: String,
    pub(super) place: Option<Parameter>,
    pub(super) folders: Vec<String>,
    pub(super) to_folder: Option<String>,
    pub(super) operation: Operation,
    pub(super) read_percent: Option<f64>,
    pub(super) files: Order,
    pub(super) requests: Order,
    pub(super) sizes: Vec<(u32, f64)>,
    pub(super) threads: u32,
    pub(super) skew_percent: Option<f64>,
    pub(super) stop_after: Option<u64>,
    pub(super) open: Option<OpenFlags>,
}

pub(super) fn operation(parameter: &Parameter, word: &str) -> Result<Operation, InputError> {
    let lower = word.to_ascii_lowercase();
    let operation_named = Operation::NAMES.iter().find(|(name, _)| *name == lower);
    operation_named.map(|(_, operation)| *operation).ok_or_else(|| {
        let allowed: Vec<&str> = Operation::NAMES.iter().map(|(name, _)| *name).collect();
        parameter.error(format!("{word:?} is not an operation; allowed: {}", allowed.join(", ")))
    })
}

impl Definition for Load {
    fn new() -> Load {
        Load {
            name: "default".to_owned(),
            place: None,
            folders: Vec::new(),
            to_folder: None,
            operation: Operation::Read,
            read_percent: None,
            files: Order::Sequential,
            requests: Order::Sequential,
            sizes: vec![(4_096, 100.0)],
            threads: 1,
            skew_percent: None,
            stop_after: None,
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
        match meaning(FWD, parameter)? {
            Word::Fsd => self.folders = parameter.words()?,
            Word::Target => self.to_folder = Some(parameter.word()?.to_owned()),
            Word::Host if parameter.raw != "localhost" => return Ok(Some("only this host runs operations")),
            Word::Operation => self.operation = operation(parameter, parameter.word()?)?,
            Word::FileIo => return self.set_file_io(parameter),
            Word::FileSelect => {
                self.files = match parameter.word()?.to_ascii_lowercase() {
                    word if "random".starts_with(&word) => Order::Random,
                    word if "sequential".starts_with(&word) => Order::Sequential,
                    word if "once".starts_with(&word) => Order::Once,
                    _ => return Err(parameter.error("use random, sequential or once")),
                };
            }
            Word::XferSizes => self.sizes = Sizes::read(parameter)?.shares,
            Word::ReadPercent => self.read_percent = Some(parameter.plain(Unit::Size, 0.0..=100.0)?),
            Word::Skew => self.skew_percent = Some(parameter.plain(Unit::Size, 0.0..=100.0)?),
            Word::Threads => self.threads = threads(parameter, parameter.number(Unit::Size)?)?,
            Word::StopAfter => self.stop_after = Some(parameter.plain(Unit::Size, 1.0..=1e15)? as u64),
            Word::OpenFlags => self.open = Some(OpenFlags::read(parameter)?),
            Word::NotDone(message) => return Ok(Some(message)),
            _ => {}
        }
        Ok(None)
    }
}

impl Load {
    fn set_file_io(&mut self, parameter: &Parameter) -> Result<Option<&'static str>, InputError> {
        let mut words = parameter.words()?.into_iter().map(|word| word.to_ascii_lowercase());
        self.requests = match words.next().unwrap_or_default() {
            word if "random".starts_with(&word) => Order::Random,
            word if "sequential".starts_with(&word) => Order::Sequential,
            _ => return Err(parameter.error("use random or sequential")),
        };
        match words.next().as_deref() {
            None => Ok(None),
            Some("shared") => Ok(Some("only one thread at a time uses a file")),
            Some("delete") => Ok(Some("files are not removed before they are written")),
            Some(_) => Err(parameter.error("use random, sequential, (random,shared) or (seq,delete)")),
        }
    }
}

pub(super) fn threads(parameter: &Parameter, number: Number) -> Result<u32, InputError> {
    Ok(parameter.within(number, 1.0..=THREADS_MAX)?.trunc() as u32)
}

/// A setting that a run overrides in its trees and loads.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Override {
    Operation(Operation),
    Depth(u32),
    Width(u32),
    Files(u32),
    Size(u64),
    Total(u64),
    Used(u64),
    Threads(u32),
    Transfer(u32),
    ReadPercent(f64),
}

/// A run definition (`rd`).
#[derive(Clone, Debug)]
pub(super) struct FolderRun {
    pub(super) name: String,
    pub(super) place: Option<Parameter>,
    pub(super) loads: Vec<String>,
    /// Rates in operations per second; `None` for an unlimited rate.
    pub(super) rates: Vec<Option<f64>>,
    pub(super) format: Format,
    /// Whether the run only formats.
    pub(super) formats_alone: bool,
    pub(super) process: ArrivalProcess,
    pub(super) elapsed_ns: u64,
    pub(super) interval_ns: u64,
    pub(super) warm_up_ns: u64,
    pub(super) open: Option<OpenFlags>,
    /// Keyword and values of each loop, outermost first.
    pub(super) loops: Vec<(&'static str, Vec<Override>)>,
}

impl Definition for FolderRun {
    fn new() -> FolderRun {
        FolderRun {
            name: "default".to_owned(),
            place: None,
            loads: Vec::new(),
            rates: Vec::new(),
            format: Format::No,
            formats_alone: false,
            process: ArrivalProcess::Poisson,
            elapsed_ns: 30_000_000_000,
            interval_ns: 1_000_000_000,
            warm_up_ns: 0,
            open: None,
            loops: Vec::new(),
        }
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn called(self, name: String, place: Parameter) -> Self {
        Self { name, place: Some(place), ..self }
    }

    fn set(&mut self, parameter: &Parameter) -> Result<Option<&'static str>, InputError> {
        match meaning(RD, parameter)? {
            Word::Fwd => self.loads = parameter.words()?,
            Word::Rate => self.set_rates(parameter)?,
            Word::Format => return self.set_format(parameter),
            Word::Elapsed => self.elapsed_ns = parameter.duration_ns()?,
            Word::Interval => self.interval_ns = parameter.duration_ns()?,
            Word::Warmup => self.warm_up_ns = parameter.duration_ns()?,
            Word::OpenFlags => self.open = Some(OpenFlags::read(parameter)?),
            Word::Operation => {
                let words = parameter.words()?;
                let each = words.iter().map(|word| Ok(Override::Operation(operation(parameter, word)?)));
                self.repeat("operation", each.collect::<Result<_, InputError>>()?);
            }
            Word::Depth => self.each(parameter, "depth", |n| Ok(Override::Depth(whole(parameter, n, 64.0)?)))?,
            Word::Width => self.each(parameter, "width", |n| Ok(Override::Width(whole(parameter, n, 1e6)?)))?,
            Word::Files => self.each(parameter, "files", |n| Ok(Override::Files(whole(parameter, n, 1e9)?)))?,
            Word::Sizes => self.each(parameter, "sizes", |n| Ok(Override::Size(bytes(parameter, n)?)))?,
            Word::TotalSize => self.each(parameter, "total", |n| Ok(Override::Total(bytes(parameter, n)?)))?,
            Word::WorkingSet => self.each(parameter, "wss", |n| Ok(Override::Used(bytes(parameter, n)?)))?,
            Word::Threads => self.each(parameter, "threads", |n| Ok(Override::Threads(threads(parameter, n)?)))?,
            Word::XferSizes => self.each(parameter, "xfersize", |number| {
                Ok(Override::Transfer(crate::vdbench::values::size_bytes(parameter, number)?))
            })?,
            Word::ReadPercent => self
                .each(parameter, "rdpct", |number| Ok(Override::ReadPercent(parameter.within(number, 0.0..=100.0)?)))?,
            Word::Distribution => {
                self.process = match parameter.word()?.to_ascii_lowercase() {
                    word if "deterministic".starts_with(&word) => ArrivalProcess::Fixed,
                    word if "exponential".starts_with(&word) => ArrivalProcess::Poisson,
                    _ => return Err(parameter.error("use exponential or deterministic")),
                };
            }
            Word::Pause => return Ok(Some("runs follow each other without a pause")),
            Word::NotDone(message) => return Ok(Some(message)),
            _ => {}
        }
        Ok(None)
    }
}

impl FolderRun {
    fn each(
        &mut self,
        parameter: &Parameter,
        keyword: &'static str,
        read: impl Fn(Number) -> Result<Override, InputError>,
    ) -> Result<(), InputError> {
        let values = parameter.numbers(Unit::Size)?.into_iter().map(read).collect::<Result<_, InputError>>()?;
        self.repeat(keyword, values);
        Ok(())
    }

    /// Adds a loop inside all others. Replaces a loop with the same keyword.
    fn repeat(&mut self, keyword: &'static str, values: Vec<Override>) {
        self.loops.retain(|(operation_named, _)| *operation_named != keyword);
        self.loops.push((keyword, values));
    }

    fn set_rates(&mut self, parameter: &Parameter) -> Result<(), InputError> {
        if parameter.raw.eq_ignore_ascii_case("max") {
            self.rates = vec![None];
            return Ok(());
        }
        let rate = |number| Ok(Some(parameter.within(number, 1e-3..=1e9)?));
        self.rates = parameter.numbers(Unit::Size)?.into_iter().map(rate).collect::<Result<_, InputError>>()?;
        Ok(())
    }

    fn set_format(&mut self, parameter: &Parameter) -> Result<Option<&'static str>, InputError> {
        let mut not_done = None;
        for word in parameter.words()? {
            match word.to_ascii_lowercase().as_str() {
                "no" => self.format = Format::No,
                "yes" | "once" => self.format = Format::Anew,
                "only" => (self.format, self.formats_alone) = (self.format.or(Format::Anew), true),
                "restart" => self.format = Format::Restart,
                "directories" | "dir" => self.format = Format::Folders,
                "clean" => self.format = Format::Clean,
                "complete" | "limited" => not_done = Some("formatting has no time limit"),
                _ => {
                    let allowed = "yes, no, only, restart, clean, once, directories";
                    return Err(parameter.error(format!("{word:?} is not allowed; allowed: {allowed}")));
                }
            }
        }
        Ok(not_done)
    }
}
