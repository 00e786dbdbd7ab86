//! File system workloads: `fsd`, `fwd` and their runs.
//!
//! A file has either file system or storage definitions, because vdbench does not mix both in a run.

mod definitions;
mod runs;
mod words;

use headstack_workload::document::InputError;

use self::definitions::{Folder, FolderRun, Load};
use super::defined::{Defined, defined_before};
use super::scan::Parameter;
use super::{Generals, JobFile, numbered};

/// The kind of definition being read, in the order that vdbench requires.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Section {
    General,
    Host,
    Folder,
    Load,
    Run,
}

/// The definitions of a file.
struct Definitions {
    folders: Defined<Folder>,
    loads: Defined<Load>,
    runs: Defined<FolderRun>,
    general: Generals,
    section: Section,
}

/// Reads the parameters of a file that has an `fsd`.
pub(super) fn read(file: &str, parameters: &[Parameter]) -> Result<JobFile, InputError> {
    let mut definitions = Definitions {
        folders: Defined::new(),
        loads: Defined::new(),
        runs: Defined::new(),
        general: Generals { checks_reads: true, ..Generals::default() },
        section: Section::General,
    };
    for parameter in parameters {
        definitions.take(parameter)?;
    }
    definitions.repeat_folders()?;
    if definitions.runs.all.is_empty() {
        let message = "the file defines no run; add rd=NAME,fwd=...,fwdrate=...".to_owned();
        return Err(InputError { file: file.to_owned(), line: None, key: "rd".to_owned(), message });
    }
    let tree_phases = runs::phases(&definitions)?;
    Ok(JobFile { tree_phases, remarks: definitions.general.in_order(), ..JobFile::default() })
}

impl Definitions {
    fn take(&mut self, parameter: &Parameter) -> Result<(), InputError> {
        let next = match parameter.keyword.as_str() {
            "sd" | "wd" => {
                return Err(
                    parameter.error("storage (sd, wd) and trees of files (fsd, fwd) must be in separate job files")
                );
            }
            "rd" => Some(Section::Run),
            "fwd" => Some(Section::Load),
            "fsd" => Some(Section::Folder),
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
                Some("only this host runs operations")
            }
            Section::Host => None,
            Section::Folder => self.folders.set(parameter)?,
            Section::Load => self.loads.set(parameter)?,
            Section::Run => self.runs.set(parameter)?,
        };
        not_done.into_iter().for_each(|message| self.general.remark(parameter, message));
        Ok(())
    }

    fn begin(&mut self, parameter: &Parameter) -> Result<(), InputError> {
        match self.section {
            Section::General | Section::Host => Ok(()),
            Section::Folder => self.folders.begin(parameter),
            Section::Load => self.loads.begin(parameter),
            Section::Run => self.runs.begin(parameter),
        }
    }

    /// Expands `count=(start,count)` to that many trees, with numbered names and anchors.
    fn repeat_folders(&mut self) -> Result<(), InputError> {
        let mut folders: Vec<Folder> = Vec::new();
        for folder in std::mem::take(&mut self.folders.all) {
            let Some((start, count)) = folder.count else {
                folders.push(folder);
                continue;
            };
            for number in start..start.saturating_add(count) {
                let mut one = folder.clone();
                one.tree.name = numbered(&folder.tree.name, number);
                one.tree.anchor = numbered(&folder.tree.anchor, number);
                folders.push(one);
            }
        }
        let mut names = std::collections::HashSet::new();
        for folder in &folders {
            let Some(place) = &folder.place else { continue };
            if !names.insert(folder.tree.name.as_str()) {
                return Err(defined_before(place, &folder.tree.name));
            }
            folder.check(place)?;
        }
        self.folders.all = folders;
        Ok(())
    }
}
