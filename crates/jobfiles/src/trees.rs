//! Loads on files in folders: trees of files, and which operations are done on them.

use headstack_workload::ArrivalProcess;
use serde::{Deserialize, Serialize};

use crate::Sync;

/// A tree of folders with files in them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tree {
    /// Its name.
    pub name: String,
    /// The folder that it grows in.
    pub anchor: String,
    /// Levels of folders below the anchor; 0 has the files in the anchor itself.
    pub depth: u32,
    /// Folders in each folder.
    pub width: u32,
    /// Files in each folder that has files.
    pub files: u32,
    /// Whether every folder has files, or only those of the last level.
    pub has_files_everywhere: bool,
    /// Sizes of files in bytes, with their shares in percent.
    pub sizes: Vec<(u64, f64)>,
    /// Files are made and used until they come to so many bytes.
    pub total_bytes: Option<u64>,
    /// Files are used, not made, until they come to so many bytes.
    pub used_bytes: Option<u64>,
}

impl Tree {
    /// Folders below the anchor; `None` where they are more than can be counted.
    pub fn folders(&self) -> Option<u64> {
        let (mut sum, mut level) = (0u64, 1u64);
        for _ in 0..self.depth {
            level = level.checked_mul(u64::from(self.width))?;
            sum = sum.checked_add(level)?;
        }
        Some(sum)
    }

    /// Folders that have files.
    pub fn folders_with_files(&self) -> Option<u64> {
        match (self.depth, self.has_files_everywhere) {
            (0, _) => Some(1),
            (_, true) => self.folders(),
            (depth, false) => u64::from(self.width).checked_pow(depth),
        }
    }

    /// Folders and files; `None` where they are more than can be counted.
    pub fn members(&self) -> Option<u64> {
        let files = self.folders_with_files()?.checked_mul(u64::from(self.files))?;
        self.folders()?.checked_add(files)
    }
}

/// What is done to a file or folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Makes a folder.
    Mkdir,
    /// Removes an empty folder.
    Rmdir,
    /// Makes an empty file.
    Create,
    /// Opens a file and closes it again, as does a close.
    Open,
    /// Reads a file, request by request.
    Read,
    /// Writes a file, request by request.
    Write,
    /// Asks for a file's attributes (`stat`).
    Getattr,
    /// Sets a file's times.
    Setattr,
    /// Asks whether a file may be read.
    Access,
    /// Removes a file.
    Delete,
    /// Copies a file into another tree.
    Copy,
    /// Moves a file into another tree.
    Move,
}

impl Operation {
    /// Every operation with vdbench's word for it.
    pub const NAMES: [(&'static str, Operation); 13] = [
        ("mkdir", Operation::Mkdir),
        ("rmdir", Operation::Rmdir),
        ("create", Operation::Create),
        ("open", Operation::Open),
        ("close", Operation::Open),
        ("read", Operation::Read),
        ("write", Operation::Write),
        ("getattr", Operation::Getattr),
        ("setattr", Operation::Setattr),
        ("access", Operation::Access),
        ("delete", Operation::Delete),
        ("copy", Operation::Copy),
        ("move", Operation::Move),
    ];

    /// What it is called.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, operation)| *operation == self).map_or("", |(name, _)| name)
    }

    /// Whether it changes something.
    pub fn writes(self) -> bool {
        match self {
            Operation::Open | Operation::Read | Operation::Getattr | Operation::Access => false,
            Operation::Mkdir
            | Operation::Rmdir
            | Operation::Create
            | Operation::Write
            | Operation::Setattr
            | Operation::Delete
            | Operation::Copy
            | Operation::Move => true,
        }
    }
}

/// In which order something is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// One after another, and again from the first.
    #[default]
    Sequential,
    /// One after another; the load is done when all had their turn.
    Once,
    /// Any, each as likely.
    Random,
}

/// Operations of one kind on one tree.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TreeLoad {
    /// Its name.
    pub name: String,
    /// Which of the phase's trees.
    pub tree: usize,
    /// Where files are copied or moved to.
    pub to_tree: Option<usize>,
    /// What is done.
    pub operation: Operation,
    /// Share of reads in a mix of reads and writes, in percent.
    pub read_percent: Option<f64>,
    /// Which file or folder is next.
    pub files: Order,
    /// Where in a file the next request goes.
    pub requests: Order,
    /// Lengths of requests in bytes, with their shares in percent.
    pub sizes: Vec<(u32, f64)>,
    /// Threads, each of which works on one file at a time.
    pub threads: u32,
    /// Its part of the phase's operations, in percent; absent, an even part of what the others leave.
    pub share_percent: Option<f64>,
    /// Requests to a file before the next one is taken; absent, as many as it takes to go through it once.
    pub requests_per_file: Option<u64>,
    /// True if the page cache is bypassed.
    pub direct: bool,
    /// When a write is complete.
    pub sync: Sync,
    /// Whether a file that was written is flushed before it is closed.
    pub flushes_at_close: bool,
}

impl TreeLoad {
    /// What it cannot be, in words.
    ///
    /// # Errors
    /// No tree to copy or move to; a mix of reads and writes of something else.
    pub fn check(&self) -> Result<(), String> {
        let (operation, name) = (self.operation, self.operation.name());
        let needs_other = matches!(operation, Operation::Copy | Operation::Move);
        if needs_other && self.to_tree.is_none_or(|to| to == self.tree) {
            return Err(format!("{name} needs another tree to go to; target=FSD names it"));
        }
        if self.read_percent.is_some() && !matches!(operation, Operation::Read | Operation::Write) {
            return Err(format!("rdpct mixes reads and writes; its operation is {name}"));
        }
        Ok(())
    }
}

/// What becomes of the trees before a phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// They are used as they are found.
    #[default]
    No,
    /// They are removed and made anew.
    Anew,
    /// What they lack is made.
    Restart,
    /// They are removed and their folders alone are made.
    Folders,
    /// They are removed.
    Clean,
}

impl Format {
    /// This one, or `other` where it is [`Format::No`].
    pub fn or(self, other: Format) -> Format {
        if self == Format::No { other } else { self }
    }
}

/// Loads on trees at the same time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TreePhase {
    /// Its name.
    pub name: String,
    /// The trees.
    pub trees: Vec<Tree>,
    /// What is done to them; empty where a phase does no more than format.
    pub loads: Vec<TreeLoad>,
    /// What comes before.
    pub format: Format,
    /// Operations a second of all loads together; absent, as many as can be done.
    pub rate_per_s: Option<f64>,
    /// How operations of a rate follow each other.
    pub process: ArrivalProcess,
    /// How long it lasts after the warm-up.
    pub time_ns: u64,
    /// What is not counted at its begin.
    pub warm_up_ns: u64,
    /// Length of the intervals that results are also kept for.
    pub interval_ns: u64,
    /// Whether what is written is stamped, and what is read is checked.
    pub verify: bool,
}
