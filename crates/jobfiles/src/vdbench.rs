//! vdbench's parameter files: storage, workload and run definitions (`sd`, `wd`, `rd`), and file system definitions
//! (`fsd`, `fwd`: [`trees`]).
//!
//! A run definition becomes a [`Phase`](super::Phase) for each of its runs: for each combination of its `for...` lists,
//! outermost list first, and each rate. `iorate=curve` yields an unlimited run and the points of the curve. A workload
//! has a job for each of its storage definitions, as vdbench has a generator for each.
//!
//! The reference is vdbench 5.04.06. Where its users' guide and its source code differ, the source code applies.

mod defined;
mod definitions;
mod job;
mod runs;
mod scan;
mod trees;
mod values;
mod words;

use headstack_workload::document::InputError;

use self::defined::{Defined, defined_before};
use self::definitions::{Load, RunDefinition, Storage};
use self::scan::Parameter;
use super::{JobFile, Remark, Verify};

/// General parameters, which begin a file. Their keywords may be abbreviated like those of definitions.
const GENERAL: &[(&str, General)] = &[
    ("compression", General::Contents),
    ("compratio", General::Contents),
    ("compressionseed", General::Contents),
    ("dedup", General::Contents),
    ("port", General::Nothing),
    ("pattern", General::Contents),
    ("data_errors", General::Nothing),
    ("dataerrors", General::Nothing),
    ("validate", General::Validate),
    ("journal", General::Journal),
    ("startcmd", General::Commands),
    ("start_cmd", General::Commands),
    ("endcmd", General::Commands),
    ("end_cmd", General::Commands),
    ("heartbeat_error", General::Commands),
    ("debug", General::Nothing),
    ("unix2windows", General::Nothing),
    ("formatxfersize", General::Nothing),
    ("create_anchors", General::Nothing),
    ("formatsds", General::Format),
    ("report", General::Nothing),
    ("report_run_totals", General::Nothing),
    ("histogram", General::Nothing),
    ("psrset", General::Nothing),
    ("auxreport", General::Nothing),
    ("monitor", General::Nothing),
    ("concatenatesds", General::Concatenate),
    ("messagescan", General::Nothing),
    ("abort_failed_skew", General::Nothing),
    ("misc", General::Nothing),
    ("pattern_buffer", General::Contents),
    ("showlba", General::Nothing),
    ("loop", General::Loop),
];

/// How a general parameter is treated.
#[derive(Clone, Copy, PartialEq)]
enum General {
    /// Ignored, because it only affects vdbench's reports or its own processes.
    Nothing,
    Contents,
    Validate,
    Journal,
    Commands,
    Format,
    Concatenate,
    Loop,
}

/// The kind of definition being read, in the order that vdbench requires.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Section {
    General,
    Host,
    Storage,
    Load,
    Run,
}

/// The definitions of a file.
struct Definitions {
    storages: Defined<Storage>,
    loads: Defined<Load>,
    runs: Defined<RunDefinition>,
    general: Generals,
    section: Section,
}

/// Reads a parameter file.
///
/// `substitutes` holds the values of variables, which vdbench takes from its command line: `("size", "10g")` replaces
/// `$size`. `include` returns the text of an included file, given its name as written.
///
/// # Errors
/// If a parameter is not valid in vdbench, or belongs to something other than a load on storage or on files in folders,
/// such as a replay. Returns the first such parameter with the allowed values.
pub fn read(
    file: &str,
    text: &str,
    substitutes: &[(String, String)],
    include: &dyn Fn(&str) -> std::io::Result<String>,
) -> Result<JobFile, InputError> {
    let parameters = scan::parameters(file, text, substitutes, include)?;
    if parameters.iter().any(|parameter| parameter.keyword == "fsd") {
        return trees::read(file, &parameters);
    }
    let mut definitions = Definitions {
        storages: Defined::new(),
        loads: Defined::new(),
        runs: Defined::new(),
        general: Generals::default(),
        section: Section::General,
    };
    for parameter in &parameters {
        definitions.take(parameter)?;
    }
    definitions.repeat_storages()?;
    let nothing = || InputError {
        file: file.to_owned(),
        line: None,
        key: "rd".to_owned(),
        message: "the file defines no run; add rd=NAME,wd=...,iorate=...".to_owned(),
    };
    if definitions.runs.all.is_empty() {
        return Err(nothing());
    }
    let phases = runs::phases(&mut definitions)?;
    Ok(JobFile { phases, remarks: definitions.general.in_order(), ..JobFile::default() })
}

/// General parameters, and remarks on unsupported settings.
#[derive(Default)]
struct Generals {
    is_concatenated: bool,
    /// Whether loads of this kind check data during the run, not only at the end.
    checks_reads: bool,
    verify: Verify,
    remarks: Vec<Remark>,
}

impl Generals {
    fn set(&mut self, parameter: &Parameter) -> Result<(), InputError> {
        let keyword = parameter.keyword.as_str();
        let cut =
            |(name, _): &&(&str, General)| name.starts_with(keyword) || *name == "dedup" && keyword.starts_with(name);
        let exact = GENERAL.iter().find(|(name, _)| *name == keyword);
        let Some((_, meaning)) = exact.or_else(|| GENERAL.iter().find(cut)) else {
            let names: Vec<&str> = GENERAL.iter().map(|(name, _)| *name).collect();
            return Err(
                parameter.error(format!("unknown keyword; allowed: hd, sd, wd, fsd, fwd, rd, {}", names.join(", ")))
            );
        };
        match meaning {
            General::Nothing => {}
            General::Contents => self.remark(parameter, "the job file does not select the written data"),
            General::Commands => self.remark(parameter, "commands are not run"),
            General::Journal => self.remark(parameter, "no journal is kept"),
            General::Loop => self.remark(parameter, "the runs are executed once"),
            General::Format if parameter.is_yes() => {
                self.remark(parameter, "missing files are created without a first write pass")
            }
            General::Format => {}
            General::Concatenate => self.is_concatenated = parameter.is_yes(),
            General::Validate if parameter.raw.to_ascii_lowercase().starts_with('n') => {}
            General::Validate => {
                self.verify = Verify::StampAndRead;
                if !self.checks_reads {
                    self.remark(
                        parameter,
                        "data is verified at the end of a run, not when it is read or written again",
                    );
                }
            }
        }
        Ok(())
    }

    fn remark(&mut self, parameter: &Parameter, message: &str) {
        self.remarks.push(Remark {
            line: u32::try_from(parameter.line).unwrap_or(u32::MAX),
            option: parameter.keyword.clone(),
            message: message.to_owned(),
        });
    }

    /// Returns the remarks in line order.
    fn in_order(mut self) -> Vec<Remark> {
        self.remarks.sort_by_key(|remark| remark.line);
        self.remarks
    }
}

impl Definitions {
    fn take(&mut self, parameter: &Parameter) -> Result<(), InputError> {
        let next = match parameter.keyword.as_str() {
            "fwd" => return Err(parameter.error("needs a tree of files; define fsd=NAME,anchor=... before it")),
            "rg" => {
                return Err(parameter.error("job files cannot replay traces; import the trace and replay it"));
            }
            "rd" => Some(Section::Run),
            "wd" => Some(Section::Load),
            "sd" => Some(Section::Storage),
            "hd" | "host" => Some(Section::Host),
            _ => None,
        };
        // In later definitions, the same keywords refer to earlier definitions.
        if let Some(next) = next.filter(|next| *next >= self.section) {
            self.section = next;
            return self.begin(parameter);
        }
        let not_done = match self.section {
            Section::General => return self.general.set(parameter),
            Section::Host if parameter.keyword == "system" && parameter.raw != "localhost" => {
                Some("only this host issues requests")
            }
            Section::Host => None,
            Section::Storage => self.storages.set(parameter)?,
            Section::Load => self.loads.set(parameter)?,
            Section::Run => self.runs.set(parameter)?,
        };
        not_done.into_iter().for_each(|message| self.general.remark(parameter, message));
        Ok(())
    }

    fn begin(&mut self, parameter: &Parameter) -> Result<(), InputError> {
        match self.section {
            Section::General | Section::Host => Ok(()),
            Section::Storage => self.storages.begin(parameter),
            Section::Load => self.loads.begin(parameter),
            Section::Run => self.runs.begin(parameter),
        }
    }

    /// Expands `count=(start,count)` to that many storage definitions, with numbered names and luns.
    fn repeat_storages(&mut self) -> Result<(), InputError> {
        let mut storages: Vec<Storage> = Vec::new();
        for storage in std::mem::take(&mut self.storages.all) {
            let Some((start, count)) = storage.count else {
                storages.push(storage);
                continue;
            };
            for number in start..start.saturating_add(count) {
                storages.push(Storage {
                    name: numbered(&storage.name, number),
                    lun: storage.lun.as_deref().map(|lun| numbered(lun, number)),
                    count: None,
                    ..storage.clone()
                });
            }
        }
        let mut names = std::collections::HashSet::new();
        for storage in &storages {
            let Some(place) = &storage.place else { continue };
            if !names.insert(storage.name.as_str()) {
                return Err(defined_before(place, &storage.name));
            }
            if storage.lun.is_none() {
                return Err(place.error("has no lun; add lun=FILE or lun=DEVICE"));
            }
        }
        self.storages.all = storages;
        Ok(())
    }
}

/// Replaces the asterisk in a name with a number; appends the number if there is no asterisk.
fn numbered(name: &str, number: u32) -> String {
    match name.contains('*') {
        true => name.replace('*', &number.to_string()),
        false => format!("{name}{number}"),
    }
}
