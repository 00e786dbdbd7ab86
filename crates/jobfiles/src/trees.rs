//! Loads on files in folders: [`Tree`]s of files, and operations on them.

use headstack_workload::ArrivalProcess;
use serde::{Deserialize, Serialize};

use crate::Sync;

/// A tree of folders with files in them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tree {
    /// Its name.
    pub name: String,
    /// The folder that contains it.
    pub anchor: String,
    /// Levels of folders below the anchor; 0 means that the files are in the anchor itself.
    pub depth: u32,
    /// Number of folders per folder.
    pub width: u32,
    /// Number of files per folder that has files.
    pub files: u32,
    /// Whether every folder has files, or only those of the last level.
    pub has_files_everywhere: bool,
    /// Sizes of files in bytes, with their shares in percent.
    pub sizes: Vec<(u64, f64)>,
    /// Files are created and used up to this total size.
    pub total_bytes: Option<u64>,
    /// Files are used, not created, up to this total size.
    pub used_bytes: Option<u64>,
}

impl Tree {
    /// Number of folders below the anchor; `None` on overflow.
    pub fn folders(&self) -> Option<u64> {
        let (mut sum, mut level) = (0u64, 1u64);
        for _ in 0..self.depth {
            level = level.checked_mul(u64::from(self.width))?;
            sum = sum.checked_add(level)?;
        }
        Some(sum)
    }

    /// Number of folders with files; `None` on overflow.
    pub fn folders_with_files(&self) -> Option<u64> {
        match (self.depth, self.has_files_everywhere) {
            (0, _) => Some(1),
            (_, true) => self.folders(),
            (depth, false) => u64::from(self.width).checked_pow(depth),
        }
    }

    /// Number of folders and files; `None` on overflow.
    pub fn members(&self) -> Option<u64> {
        let files = self.folders_with_files()?.checked_mul(u64::from(self.files))?;
        self.folders()?.checked_add(files)
    }
}

/// An operation on a file or folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Creates a folder.
    Mkdir,
    /// Removes an empty folder.
    Rmdir,
    /// Creates an empty file.
    Create,
    /// Opens a file and closes it again, like a close.
    Open,
    /// Reads a file, request by request.
    Read,
    /// Writes a file, request by request.
    Write,
    /// Queries a file's attributes (`stat`).
    Getattr,
    /// Sets a file's times.
    Setattr,
    /// Queries whether a file may be read.
    Access,
    /// Removes a file.
    Delete,
    /// Copies a file into another tree.
    Copy,
    /// Moves a file into another tree.
    Move,
}

impl Operation {
    /// All operations with vdbench's names.
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

    /// Name of the operation.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, operation)| *operation == self).map_or("", |(name, _)| name)
    }

    /// Whether it modifies the tree.
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

/// Order of selection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// One after another, repeatedly.
    #[default]
    Sequential,
    /// One after another; the load ends when all had their turn.
    Once,
    /// Random, uniformly distributed.
    Random,
}

/// Operations of one kind on one tree.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TreeLoad {
    /// Its name.
    pub name: String,
    /// Index among the phase's trees.
    pub tree: usize,
    /// Destination tree of copies or moves.
    pub to_tree: Option<usize>,
    /// The operation.
    pub operation: Operation,
    /// Share of reads in a mix of reads and writes, in percent.
    pub read_percent: Option<f64>,
    /// Order of files or folders.
    pub files: Order,
    /// Order of requests within a file.
    pub requests: Order,
    /// Lengths of requests in bytes, with their shares in percent.
    pub sizes: Vec<(u32, f64)>,
    /// Threads, each of which works on one file at a time.
    pub threads: u32,
    /// Its share of the phase's operations, in percent; if absent, an even part of the rest.
    pub share_percent: Option<f64>,
    /// Requests to a file before the next one is taken; if absent, as many as one pass takes.
    pub requests_per_file: Option<u64>,
    /// Whether the page cache is bypassed.
    pub direct: bool,
    /// When a write completes.
    pub sync: Sync,
    /// Whether a written file is flushed before it is closed.
    pub flushes_at_close: bool,
}

impl TreeLoad {
    /// Checks for an impossible combination.
    ///
    /// # Errors
    /// When there is no tree to copy or move to, or a mix of reads and writes is defined for another operation; in
    /// words.
    pub fn check(&self) -> Result<(), String> {
        let (operation, name) = (self.operation, self.operation.name());
        let needs_other = matches!(operation, Operation::Copy | Operation::Move);
        if needs_other && self.to_tree.is_none_or(|to| to == self.tree) {
            return Err(format!("{name} needs a second tree as target; add target=FSD"));
        }
        if self.read_percent.is_some() && !matches!(operation, Operation::Read | Operation::Write) {
            return Err(format!("rdpct mixes reads and writes; the operation {name} does not"));
        }
        Ok(())
    }
}

/// Preparation of the trees before a phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// Used as they are.
    #[default]
    No,
    /// Removed and created again.
    Anew,
    /// Missing members are created.
    Restart,
    /// Removed, and only their folders created.
    Folders,
    /// Removed.
    Clean,
}

impl Format {
    /// This one, or `other` if it is [`Format::No`].
    pub fn or(self, other: Format) -> Format {
        if self == Format::No { other } else { self }
    }
}

/// Concurrent loads on trees.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TreePhase {
    /// Its name.
    pub name: String,
    /// The trees.
    pub trees: Vec<Tree>,
    /// The loads; empty if a phase only formats.
    pub loads: Vec<TreeLoad>,
    /// Preparation of the trees.
    pub format: Format,
    /// Operations per second of all loads together; as many as possible if absent.
    pub rate_per_s: Option<f64>,
    /// Distribution of the arrivals of a rate.
    pub process: ArrivalProcess,
    /// Duration after the warm-up.
    pub time_ns: u64,
    /// Duration of the warm-up, which is not counted.
    pub warm_up_ns: u64,
    /// Length of the intervals of the time series.
    pub interval_ns: u64,
    /// Whether writes are stamped, and reads checked.
    pub verify: bool,
}
