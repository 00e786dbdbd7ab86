//! File system workloads: `fsd`, `fwd` and the runs of these.
//!
//! A file has them or storage definitions, not both, as each of vdbench's runs is of one sort.

mod definitions;
mod runs;
mod words;

use headstack_workload::document::InputError;

use self::definitions::{Folder, FolderRun, Load};
use super::scan::Parameter;
use super::{Generals, JobFile, numbered};

/// Which definitions are being read; vdbench takes them in this order.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Section {
    General,
    Host,
    Folder,
    Load,
    Run,
}

/// What a file defines, and what definitions begin with: `fsd=default` and so on.
struct Definitions {
    folders: Vec<Folder>,
    loads: Vec<Load>,
    runs: Vec<FolderRun>,
    default_folder: Folder,
    default_load: Load,
    default_run: FolderRun,
    general: Generals,
    section: Section,
    /// Whether the parameters that follow are those of a `default`.
    in_default: bool,
}

/// Reads the parameters of a file that has an `fsd`.
pub(super) fn read(file: &str, parameters: &[Parameter]) -> Result<JobFile, InputError> {
    let mut definitions = Definitions {
        folders: Vec::new(),
        loads: Vec::new(),
        runs: Vec::new(),
        default_folder: Folder::new(),
        default_load: Load::new(),
        default_run: FolderRun::new(),
        general: Generals::default(),
        section: Section::General,
        in_default: false,
    };
    for parameter in parameters {
        definitions.take(parameter)?;
    }
    definitions.repeat_folders()?;
    if definitions.runs.is_empty() {
        let message = "the file defines no run; one rd=NAME,fwd=...,fwdrate=... or more is needed".to_owned();
        return Err(InputError { file: file.to_owned(), line: None, key: "rd".to_owned(), message });
    }
    let tree_phases = runs::phases(&definitions)?;
    Ok(JobFile { tree_phases, remarks: definitions.general.in_order(), ..JobFile::default() })
}

impl Definitions {
    fn take(&mut self, parameter: &Parameter) -> Result<(), InputError> {
        let next = match parameter.keyword.as_str() {
            "sd" | "wd" => {
                return Err(parameter.error("storage (sd, wd) and trees of files (fsd, fwd) need files of their own"));
            }
            "rd" => Some(Section::Run),
            "fwd" => Some(Section::Load),
            "fsd" => Some(Section::Folder),
            "hd" | "host" => Some(Section::Host),
            _ => None,
        };
        // In later definitions the same keywords refer to earlier ones.
        if let Some(next) = next.filter(|next| *next >= self.section) {
            self.section = next;
            return self.begin(parameter);
        }
        let default = self.in_default;
        let not_done = match self.section {
            Section::General => return self.general.set(parameter),
            Section::Host if parameter.keyword == "system" && parameter.raw != "localhost" => {
                Some("operations are done by this host alone")
            }
            Section::Host => None,
            Section::Folder => match self.folders.last_mut().filter(|_| !default) {
                Some(folder) => folder.set(parameter)?,
                None => self.default_folder.set(parameter)?,
            },
            Section::Load => match self.loads.last_mut().filter(|_| !default) {
                Some(load) => load.set(parameter)?,
                None => self.default_load.set(parameter)?,
            },
            Section::Run => match self.runs.last_mut().filter(|_| !default) {
                Some(run) => run.set(parameter)?,
                None => self.default_run.set(parameter)?,
            },
        };
        not_done.into_iter().for_each(|message| self.general.remark(parameter, message));
        Ok(())
    }

    /// Begins a definition, as a copy of its `default`.
    fn begin(&mut self, parameter: &Parameter) -> Result<(), InputError> {
        let name = parameter.word()?.to_owned();
        self.in_default = name == "default";
        if self.in_default || self.section == Section::Host {
            return Ok(());
        }
        let place = Some(parameter.clone());
        let is_known = match self.section {
            Section::Folder => self.folders.iter().any(|known| known.tree.name == name),
            Section::Load => self.loads.iter().any(|known| known.name == name),
            _ => self.runs.iter().any(|known| known.name == name),
        };
        if is_known {
            return Err(parameter.error(format!("{name:?} is defined before; each name is allowed once")));
        }
        match self.section {
            Section::Folder => {
                let mut folder = Folder { place, ..self.default_folder.clone() };
                folder.tree.name = name;
                self.folders.push(folder);
            }
            Section::Load => self.loads.push(Load { name, place, ..self.default_load.clone() }),
            _ => self.runs.push(FolderRun { name, place, ..self.default_run.clone() }),
        }
        Ok(())
    }

    /// `count=(start,count)` stands for as many trees, numbered in name and anchor.
    fn repeat_folders(&mut self) -> Result<(), InputError> {
        let mut folders: Vec<Folder> = Vec::new();
        for folder in std::mem::take(&mut self.folders) {
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
        for folder in &folders {
            let Some(place) = &folder.place else { continue };
            folder.check(place)?;
        }
        self.folders = folders;
        Ok(())
    }
}
