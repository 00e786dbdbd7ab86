//! Keywords of trees, loads and runs, in the order of vdbench's source code (`FsdEntry.java`, `FwdEntry.java`,
//! `RD_entry.java`). An abbreviation stands for the first keyword that begins with it.

use headstack_workload::document::InputError;

use crate::vdbench::scan::Parameter;

/// Meaning of a keyword in a definition.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Word {
    Anchor,
    Depth,
    Width,
    Files,
    Sizes,
    TotalSize,
    WorkingSet,
    Distribution,
    OpenFlags,
    Count,
    Fsd,
    Fwd,
    Operation,
    FileIo,
    FileSelect,
    XferSizes,
    ReadPercent,
    Threads,
    Skew,
    StopAfter,
    Target,
    Host,
    Rate,
    Format,
    Elapsed,
    Interval,
    Warmup,
    Pause,
    /// The keyword does not change the load and is ignored.
    Nothing,
    /// The keyword is not supported; ignored with this remark.
    NotDone(&'static str),
    Refused(&'static str),
}

use Word::{NotDone, Nothing, Refused};

const CONTENTS: Word = NotDone("the job file does not select the written data");
const COMMANDS: Word = NotDone("commands are not run");

pub(super) const FSD: &[(&str, Word)] = &[
    ("anchor", Word::Anchor),
    ("size", Word::Sizes),
    ("sizes", Word::Sizes),
    ("depth", Word::Depth),
    ("width", Word::Width),
    ("files", Word::Files),
    ("distribution", Word::Distribution),
    ("mask", Refused("headstack chooses the names of files and directories; omit the option")),
    ("openflags", Word::OpenFlags),
    ("totalsize", Word::TotalSize),
    ("workingsetsize", Word::WorkingSet),
    ("wss", Word::WorkingSet),
    ("journal", NotDone("no journal is kept")),
    ("count", Word::Count),
    ("shared", Nothing),
    ("cleanup", Nothing),
    ("dedup", CONTENTS),
];

pub(super) const FWD: &[(&str, Word)] = &[
    ("fsd", Word::Fsd),
    ("host", Word::Host),
    ("hd", Word::Host),
    ("operations", Word::Operation),
    ("operation", Word::Operation),
    ("fileio", Word::FileIo),
    ("fileselect", Word::FileSelect),
    ("xfersizes", Word::XferSizes),
    ("xfersize", Word::XferSizes),
    ("rdpct", Word::ReadPercent),
    ("readpct", Word::ReadPercent),
    ("skew", Word::Skew),
    ("threads", Word::Threads),
    ("stopafter", Word::StopAfter),
    ("target", Word::Target),
    ("openflags", Word::OpenFlags),
];

pub(super) const RD: &[(&str, Word)] = &[
    ("fwd", Word::Fwd),
    ("fwdrate", Word::Rate),
    ("fsd", Refused("trees belong to loads (fwd); name the loads with fwd=NAME")),
    ("format", Word::Format),
    ("operations", Word::Operation),
    ("operation", Word::Operation),
    ("foroperations", Word::Operation),
    ("foroperation", Word::Operation),
    ("fordepth", Word::Depth),
    ("forwidth", Word::Width),
    ("forfiles", Word::Files),
    ("forsizes", Word::Sizes),
    ("fortotal", Word::TotalSize),
    ("forwss", Word::WorkingSet),
    ("forworkingset", Word::WorkingSet),
    ("forthreads", Word::Threads),
    ("forxfersizes", Word::XferSizes),
    ("threads", Word::Threads),
    ("xfersizes", Word::XferSizes),
    ("xfersize", Word::XferSizes),
    ("rdpct", Word::ReadPercent),
    ("elapsed", Word::Elapsed),
    ("interval", Word::Interval),
    ("warmup", Word::Warmup),
    ("pause", Word::Pause),
    ("distribution", Word::Distribution),
    ("openflags", Word::OpenFlags),
    ("maxdata", NotDone("the run ends after its time")),
    ("iorate", Refused("is a rate of requests to storage; for operations on files, use fwdrate=")),
    ("startcmd", COMMANDS),
    ("start_cmd", COMMANDS),
    ("endcmd", COMMANDS),
    ("end_cmd", COMMANDS),
    ("mount", NotDone("nothing is mounted")),
];

/// Looks up a keyword in a table.
pub(super) fn meaning(table: &[(&str, Word)], parameter: &Parameter) -> Result<Word, InputError> {
    let keyword = parameter.keyword.as_str();
    let exact = table.iter().find(|(name, _)| *name == keyword);
    match exact.or_else(|| table.iter().find(|(name, _)| name.starts_with(keyword))) {
        Some((_, Refused(reason))) => Err(parameter.error(*reason)),
        Some((_, word)) => Ok(*word),
        None => {
            let names: Vec<&str> = table.iter().map(|(name, _)| *name).collect();
            Err(parameter.error(format!("unknown keyword; allowed: {}", names.join(", "))))
        }
    }
}
