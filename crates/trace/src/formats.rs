//! [`Format`]: the trace formats, one file each, and how they are detected.

mod alibaba;
mod binary;
mod biosnoop;
pub(crate) mod blkparse;
pub(crate) mod blktrace;
mod cloudphysics;
mod csv;
mod cutter;
pub(crate) mod disksim;
mod etw;
mod first_lines;
mod ftrace;
mod hfplayer;
pub(crate) mod iolog;
mod keys;
mod lcs;
mod lines;
mod mooncake;
mod mqsim;
mod msr;
mod numbers;
mod oracle_general;
mod scsi;
mod serial;
mod spc;
mod srt;
mod systor;
mod tencent;
mod units;
mod validate;
mod vscsi;

use binary::{Binary, BinaryFormat};
use blkparse::Blkparse;
use blktrace::Blktrace;
pub use blktrace::pairing::Stage;
pub use csv::CsvColumns;
pub use csv::shipped::Shipped;
use ftrace::Ftrace;
pub(crate) use lines::{Lines, Part};
use serial::{Serial, SerialFormat};
use units::WHOLE_SECONDS;

use crate::collect::Collector;
use crate::error::TraceError;
use crate::input::{Head, Input};
#[cfg(feature = "files")]
use crate::store::Stored;
use crate::time::TimeUnit;
use crate::transform::Step;
use crate::window::Window;

/// Options for reading a trace.
#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    /// The format; detected by content if absent.
    pub format: Option<Format>,
    /// Whether to skip and count lines that cannot be accepted.
    pub skip_bad: bool,
    /// Transformations of the requests, in this order.
    pub steps: Vec<Step>,
    /// Stage at which requests of a block trace are counted; by default where they were queued, if any was.
    pub at: Option<Stage>,
    /// Unit of addresses in bytes, for formats that leave it open.
    pub sector_bytes: Option<u32>,
    /// Unit of times, for formats that leave it to a configuration (MQSim; ns by default) or do not state it.
    pub time_unit: Option<TimeUnit>,
    /// Requests to read from a stored trace; `None` for all.
    pub window: Option<Window>,
    /// The columns of a CSV; setting it declares the files as CSV.
    pub csv: Option<CsvColumns>,
}

/// Order of the requests in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Order of arrival, by the format's own rule: time going backwards is an error.
    Arrival,
    /// Order of completion, from the way of recording: the reader sorts.
    Completion,
    /// Unspecified: the reader sorts, and counts the moved requests.
    Any,
}

/// An input format of traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// headstack's own stored form.
    Parquet,
    /// Alibaba's block traces of 2020.
    Alibaba,
    /// The output of bcc's biosnoop.
    Biosnoop,
    /// The text of blkparse.
    Blkparse,
    /// Linux' block trace, binary.
    Blktrace,
    /// CloudPhysics as CSV.
    CloudPhysics,
    /// Any CSV with declared columns; never detected by content.
    Csv,
    /// DiskSim's ascii trace.
    DiskSim,
    /// Windows' event trace of disks, as xperf prints it.
    Etw,
    /// Linux' tracepoints of the block layer as text: ftrace, trace-cmd, perf script.
    Ftrace,
    /// hfplayer's CSV of NetApp controller dumps.
    Hfplayer,
    /// fio's iolog, versions 2 and 3.
    Iolog,
    /// libCacheSim's lcs, versions 1 to 8.
    Lcs,
    /// Requests to language models, as published by Mooncake and Qwen-Bailian.
    Mooncake,
    /// MQSim's trace.
    MqSim,
    /// MSR Cambridge (SNIA IOTTA 387, 388).
    Msr,
    /// libCacheSim's oracleGeneral.
    OracleGeneral,
    /// SPC traces (UMass Financial and WebSearch).
    Spc,
    /// HP's SRT (cello).
    Srt,
    /// SYSTOR '17 (SNIA IOTTA 4928, 4964).
    Systor,
    /// Tencent's cloud block storage, 2018.
    Tencent,
    /// DiskSim's `validate`.
    Validate,
    /// CloudPhysics vscsi, versions 1 and 2.
    Vscsi,
    /// A table that a file of `formats/` declares.
    Table(Shipped),
}

/// Formats with their own code.
const CODED: [Format; 23] = [
    Format::Parquet,
    Format::Alibaba,
    Format::Biosnoop,
    Format::Blkparse,
    Format::Blktrace,
    Format::CloudPhysics,
    Format::Csv,
    Format::DiskSim,
    Format::Etw,
    Format::Ftrace,
    Format::Hfplayer,
    Format::Iolog,
    Format::Lcs,
    Format::Mooncake,
    Format::MqSim,
    Format::Msr,
    Format::OracleGeneral,
    Format::Spc,
    Format::Srt,
    Format::Systor,
    Format::Tencent,
    Format::Validate,
    Format::Vscsi,
];

impl Format {
    /// All formats.
    pub const ALL: [Format; CODED.len() + Shipped::COUNT] = {
        let mut all = [Format::Parquet; CODED.len() + Shipped::COUNT];
        let mut place = 0;
        while place < all.len() {
            let is_coded = place < CODED.len();
            all[place] = if is_coded { CODED[place] } else { Format::Table(Shipped::at(place - CODED.len())) };
            place += 1;
        }
        all
    };

    /// Name in options and metadata.
    pub fn name(self) -> &'static str {
        match self {
            Format::Parquet => "parquet",
            Format::Alibaba => "alibaba",
            Format::Biosnoop => "biosnoop",
            Format::Blkparse => "blkparse",
            Format::Blktrace => "blktrace",
            Format::CloudPhysics => "cloudphysics",
            Format::Csv => "csv",
            Format::DiskSim => "disksim",
            Format::Etw => "etw",
            Format::Ftrace => "ftrace",
            Format::Hfplayer => "hfplayer",
            Format::Iolog => "iolog",
            Format::Lcs => "lcs",
            Format::Mooncake => "mooncake",
            Format::MqSim => "mqsim",
            Format::Msr => "msr",
            Format::OracleGeneral => "oracle-general",
            Format::Spc => "spc",
            Format::Srt => "srt",
            Format::Systor => "systor",
            Format::Tencent => "tencent",
            Format::Validate => "validate",
            Format::Vscsi => "vscsi",
            Format::Table(table) => table.name(),
        }
    }

    /// Description for users.
    pub fn title(self) -> &'static str {
        match self {
            Format::Parquet => "headstack's stored form",
            Format::Alibaba => "Alibaba block traces 2020",
            Format::Biosnoop => "bcc's biosnoop",
            Format::Blkparse => "Linux block trace, text of blkparse in its default format",
            Format::Blktrace => "Linux block trace, binary: blktrace or the kernel's blk tracer",
            Format::CloudPhysics => "CloudPhysics CSV",
            Format::Csv => "CSV with declared columns",
            Format::DiskSim => "DiskSim ascii",
            Format::Etw => "Windows ETW disk events (Microsoft Enterprise, Production; SNIA IOTTA)",
            Format::Ftrace => "Linux block tracepoints as text: ftrace, trace-cmd report, perf script",
            Format::Hfplayer => "hfplayer CSV (NetApp)",
            Format::Iolog => "fio iolog, versions 2 and 3",
            Format::Lcs => "libCacheSim lcs, versions 1 to 8",
            Format::Mooncake => "Requests to language models (JSON lines): Mooncake, Dynamo, Qwen-Bailian",
            Format::MqSim => "MQSim",
            Format::Msr => "MSR Cambridge CSV (SNIA IOTTA 387, 388)",
            Format::OracleGeneral => "libCacheSim oracleGeneral and oracleGeneralOpNS",
            Format::Spc => "SPC trace, specification 1.0.1 (UMass)",
            Format::Srt => "HP SRT (cello)",
            Format::Systor => "SYSTOR '17 CSV (SNIA IOTTA 4928, 4964)",
            Format::Tencent => "Tencent CBS 2018",
            Format::Validate => "DiskSim validate: one drive, one request at a time",
            Format::Vscsi => "CloudPhysics vscsi, versions 1 and 2",
            Format::Table(table) => table.columns().title(),
        }
    }

    /// A handmade sample line; for binary formats, a description of a record.
    pub fn sample(self) -> &'static str {
        match self {
            Format::Parquet => "(Parquet: arrival_ns, response_ns, offset_bytes, length_bytes, operation, device …)",
            Format::Alibaba => "419,W,12288,4096,1577808144360767",
            Format::Biosnoop => "0.000004  fio  1234  sda  R  2048  4096  0.12",
            Format::Blkparse => "  8,0    0        1     0.000000000  1234  Q   R 2048 + 8 [fio]",
            Format::Blktrace => "(binary: records of 48 or 64 bytes, each an event)",
            Format::CloudPhysics => "1,5633898,2a,512,42932745",
            Format::Csv => "(declared with --columns)",
            Format::DiskSim => "13.191135 0 576560 8 1",
            Format::Etw => "DiskRead, 1204, store.exe (2312), 4020, 0xfa80, 0x4c9f2000, 0x2000, 311, 4, 0x60043, 298",
            Format::Ftrace => "fio-1234 [001] d..1. 52.678901: block_rq_issue: 8,0 R 4096 () 2048 + 8 [fio]",
            Format::Hfplayer => "12,250.5,1052,RD,1,7,3,0,0,0,2048,8,1714,1,0,408.1",
            Format::Iolog => "250 /dev/sda read 1048576 4096",
            Format::Lcs => "(binary: a header of 8,192 bytes, records of 24 to 100)",
            Format::Mooncake => {
                r#"{"timestamp": 27482, "input_length": 1320, "output_length": 52, "hash_ids": [46, 47, 2353]}"#
            }
            Format::MqSim => "5337 0 81856 16 1",
            Format::Msr => "128166372003061629,hm,0,Read,383496192,32768,566",
            Format::OracleGeneral => "(binary: records of 24 or 27 bytes)",
            Format::Spc => "0,20941264,8192,W,0.551706",
            Format::Srt => "(binary: a header of text, big-endian records of 52 to 60 bytes)",
            Format::Systor => "1456095145.133076000,0.000806000,R,0,899056122368,131072",
            Format::Tencent => "1538323200,12910952,128,0,1063",
            Format::Validate => "R 0 576560 8 9120 15000",
            Format::Vscsi => "(binary: records of 32 or 40 bytes)",
            Format::Table(table) => table.columns().sample(),
        }
    }

    /// Returns the format with that name.
    pub fn from_name(name: &str) -> Option<Format> {
        Format::ALL.into_iter().find(|format| format.name() == name)
    }

    /// Order of its requests.
    pub fn order(self) -> Order {
        match self {
            Format::Parquet
            | Format::DiskSim
            | Format::Iolog
            | Format::Lcs
            | Format::OracleGeneral
            | Format::Spc
            | Format::Validate => Order::Arrival,
            Format::Biosnoop
            | Format::Blkparse
            | Format::Blktrace
            | Format::Etw
            | Format::Ftrace
            | Format::Hfplayer
            | Format::Systor => Order::Completion,
            Format::Alibaba
            | Format::CloudPhysics
            | Format::Csv
            | Format::Mooncake
            | Format::MqSim
            | Format::Msr
            | Format::Srt
            | Format::Tencent
            | Format::Vscsi => Order::Any,
            Format::Table(table) => table.columns().order(),
        }
    }

    /// Whether several files form one recording, such as one per CPU or per day.
    pub fn files_belong_together(self) -> bool {
        matches!(self, Format::Blktrace | Format::Srt)
    }

    /// Whether the head of a file has this format and no other: all of it, or most of its lines, so that reading it
    /// reports the faulty ones.
    pub fn fits(self, head: Head<'_>) -> bool {
        match self {
            Format::Parquet => head.bytes.starts_with(PARQUET_MAGIC),
            Format::Alibaba => alibaba::fits(head),
            Format::Biosnoop => biosnoop::fits(head),
            Format::Blkparse => blkparse::fits(head),
            Format::Blktrace => blktrace::fits(head),
            Format::CloudPhysics => cloudphysics::fits(head),
            Format::Csv => false,
            Format::DiskSim => disksim::fits(head),
            Format::Etw => etw::fits(head),
            Format::Ftrace => ftrace::fits(head),
            Format::Hfplayer => hfplayer::fits(head),
            Format::Iolog => iolog::fits(head),
            Format::Lcs => lcs::fits(head),
            Format::Mooncake => mooncake::fits(head),
            Format::MqSim => mqsim::fits(head),
            Format::Msr => msr::fits(head),
            Format::OracleGeneral => oracle_general::fits(head),
            Format::Spc => spc::fits(head),
            Format::Srt => srt::fits(head),
            Format::Systor => systor::fits(head),
            Format::Tencent => tencent::fits(head),
            Format::Validate => validate::fits(head),
            Format::Vscsi => vscsi::fits(head),
            Format::Table(table) => table.columns().fits(head),
        }
    }
}

impl Format {
    /// Refuses options that do not apply to the format.
    fn check(self, file: &str, options: &ReadOptions) -> Result<(), TraceError> {
        let useless = |option: &str, why: &str| {
            Err(TraceError::of_file(file, format!("the format {} has no option {option}: {why}", self.name())))
        };
        let has_open_sector = match self {
            Format::DiskSim
            | Format::Lcs
            | Format::Mooncake
            | Format::MqSim
            | Format::OracleGeneral
            | Format::Spc
            // Their columns determine which of them leave it open.
            | Format::Table(_) => true,
            Format::Parquet
            | Format::Alibaba
            | Format::Biosnoop
            | Format::Blkparse
            | Format::Blktrace
            | Format::CloudPhysics
            | Format::Csv
            | Format::Etw
            | Format::Ftrace
            | Format::Hfplayer
            | Format::Iolog
            | Format::Msr
            | Format::Srt
            | Format::Systor
            | Format::Tencent
            | Format::Validate
            | Format::Vscsi => false,
        };
        if options.sector_bytes.is_some() && !has_open_sector {
            return useless("sector size", "the format or its columns define it");
        }
        if options.time_unit.is_some() && !matches!(self, Format::MqSim | Format::Mooncake) {
            return useless("time unit", "the format or its columns define it");
        }
        if options.csv.is_some() && self != Format::Csv {
            return useless("columns", "they are fixed");
        }
        Ok(())
    }
}

/// A parser of a file, or of several that belong together.
pub(crate) enum Parser {
    /// headstack's stored form.
    #[cfg(feature = "files")]
    Stored(Stored),
    /// Linux' block trace.
    Blktrace(Blktrace),
    /// Its text.
    Blkparse(Blkparse),
    /// Linux' tracepoints as text.
    Ftrace(Ftrace),
    /// One request a binary record.
    Binary(Binary),
    /// Text whose lines depend on earlier ones.
    Serial(Serial),
    /// One request per line.
    Lines(Box<Lines>),
}

impl Parser {
    /// Opens `inputs`, in order, and stores metadata known from the start in `out`.
    pub(crate) fn open(
        format: Format,
        inputs: Vec<Input>,
        options: &ReadOptions,
        out: &mut Collector,
    ) -> Result<Parser, TraceError> {
        format.check(&inputs[0].name, options)?;
        let binary = |inputs, format| Parser::Binary(Binary::new(inputs, format));
        let serial = |inputs, format| Parser::Serial(Serial::new(inputs, format));
        if options.window.is_some() && format != Format::Parquet {
            let message = "cannot be read in parts; use headstack trace import first";
            return Err(TraceError::of_file(&inputs[0].name, message));
        }
        Ok(match format {
            #[cfg(feature = "files")]
            Format::Parquet => Parser::Stored(Stored::open(&inputs[0], options.window, out)?),
            #[cfg(not(feature = "files"))]
            Format::Parquet => {
                let message = "the stored form is not supported here; use headstack trace export to convert it to text";
                return Err(TraceError::of_file(&inputs[0].name, message));
            }
            Format::Blktrace => Parser::Blktrace(Blktrace::new(inputs, options.at, out)),
            Format::Blkparse => Parser::Blkparse(Blkparse::new(inputs, options.at, out)),
            Format::Ftrace => Parser::Ftrace(Ftrace::new(inputs, options.at, out)),
            Format::Mooncake => {
                let mooncake = mooncake::Mooncake::new(&inputs[0], options.sector_bytes, options.time_unit, out)?;
                serial(inputs, SerialFormat::Mooncake(mooncake))
            }
            Format::Lcs => binary(inputs, BinaryFormat::Lcs(lcs::Lcs::new(options.sector_bytes, out))),
            Format::Hfplayer => serial(inputs, SerialFormat::Hfplayer(None)),
            Format::Iolog => serial(inputs, SerialFormat::Iolog(iolog::Iolog::default())),
            Format::Validate => serial(inputs, SerialFormat::Validate(validate::Validate::new(out))),
            Format::Srt => binary(inputs, BinaryFormat::Srt(srt::Srt::new(out))),
            Format::Vscsi => binary(inputs, BinaryFormat::Vscsi(vscsi::Vscsi::new(out))),
            Format::OracleGeneral => {
                let oracle = oracle_general::OracleGeneral::new(options.sector_bytes, out);
                binary(inputs, BinaryFormat::OracleGeneral(oracle))
            }
            _ => Parser::Lines(Box::new(Lines::open(format, inputs, options, out)?)),
        })
    }

    /// Reads about ten thousand requests; returns false at the end.
    pub(crate) fn read(&mut self, out: &mut Collector) -> Result<bool, TraceError> {
        match self {
            #[cfg(feature = "files")]
            Parser::Stored(stored) => stored.read(out),
            Parser::Blktrace(blktrace) => blktrace.read(out),
            Parser::Blkparse(blkparse) => blkparse.read(out),
            Parser::Ftrace(ftrace) => ftrace.read(out),
            Parser::Binary(binary) => binary.read(out),
            Parser::Serial(serial) => serial.read(out),
            Parser::Lines(lines) => lines.read(out),
        }
    }
}

/// Magic bytes of every Parquet file.
const PARQUET_MAGIC: &[u8] = b"PAR1";

#[cfg(test)]
pub(crate) mod tests;
