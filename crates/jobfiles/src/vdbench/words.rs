//! Keywords of storage, workload and run definitions.
//!
//! A keyword may be abbreviated: an abbreviation stands for the first keyword of its definition that begins with it.
//! The tables therefore keep the order of vdbench's source code (`SD_entry.java`, `WD_entry.java`, `RD_entry.java`,
//! `For_loop.java`).

use headstack_workload::document::InputError;

use super::scan::Parameter;

/// Meaning of a keyword in a definition.
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
    /// The keyword does not change the load and is ignored.
    Nothing,
    /// The keyword is not supported; ignored with this remark.
    NotDone(&'static str),
    Refused(&'static str),
}

use Word::{NotDone, Nothing, Refused};

const REPLAY: Word = Refused("job files cannot replay traces; import the trace and replay it");
const FILE_SYSTEM: Word = Refused("belongs to runs on trees of files; define a tree with fsd=NAME,anchor=...");
const HITS: Word = NotDone("cache hits are not forced; the rest of the definition determines the offsets");
const CONTENTS: Word = NotDone("the job file does not select the written data");
const COMMANDS: Word = NotDone("commands are not run");

pub(super) const SD: &[(&str, Word)] = &[
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
    ("streams", Refused("streams belong in a workload definition (wd)")),
];

pub(super) const WD: &[(&str, Word)] = &[
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
    ("priority", NotDone("workloads have no priority; each has its own rate or share")),
    ("iorate", Word::Rate),
    ("rhpct", HITS),
    ("whpct", HITS),
    ("host", Word::Host),
    ("openflags", Word::OpenFlags),
    ("user", Refused("requests of a user program are not supported")),
    ("threads", Word::Threads),
    ("streams", Word::Streams),
];

pub(super) const RD: &[(&str, Word)] = &[
    ("wd", Word::Wds),
    ("sd", Word::Sds),
    ("fsd", FILE_SYSTEM),
    ("iorate", Word::Rate),
    ("maxdata", Word::MaxData),
    ("maxdataread", NotDone("reads are not counted separately; the run ends after its time")),
    ("maxdatawritten", NotDone("writes are not counted separately; the run ends after its time")),
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

/// Looks up a keyword in a table.
pub(super) fn meaning(table: &[(&str, Word)], parameter: &Parameter) -> Result<Word, InputError> {
    let keyword = parameter.keyword.as_str();
    // `dedup...` stands for a family of keywords; all other entries match by prefix.
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
