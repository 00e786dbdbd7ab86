//! Loads on files in folders: [`Tree`]s of files and the operations on them.

use headstack_workload::ArrivalProcess;
use serde::{Deserialize, Serialize};

use crate::Sync;

/// A tree of folders that contain files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tree {
    /// Name of the tree.
    pub name: String,
    /// Folder that contains the tree.
    pub anchor: String,
    /// Number of folder levels below the anchor; 0 means that the files are in the anchor itself.
    pub depth: u32,
    /// Number of subfolders per folder.
    pub width: u32,
    /// Number of files in each folder that has files.
    pub files: u32,
    /// Whether every folder has files; otherwise only folders of the last level have files.
    pub has_files_everywhere: bool,
    /// File sizes in bytes, with their shares in percent.
    pub sizes: Vec<(u64, f64)>,
    /// Maximum total size of the files created and used, in bytes.
    pub total_bytes: Option<u64>,
    /// Maximum total size of the files used, in bytes. It does not limit the files created.
    pub used_bytes: Option<u64>,
}

impl Tree {
    /// Returns the number of folders below the anchor; `None` on overflow.
    pub fn folders(&self) -> Option<u64> {
        let (mut sum, mut level) = (0u64, 1u64);
        for _ in 0..self.depth {
            level = level.checked_mul(u64::from(self.width))?;
            sum = sum.checked_add(level)?;
        }
        Some(sum)
    }

    /// Returns the number of folders with files; `None` on overflow.
    pub fn folders_with_files(&self) -> Option<u64> {
        match (self.depth, self.has_files_everywhere) {
            (0, _) => Some(1),
            (_, true) => self.folders(),
            (depth, false) => u64::from(self.width).checked_pow(depth),
        }
    }

    /// Returns the total number of folders and files; `None` on overflow.
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
    /// Opens a file and closes it again; vdbench's `close` is the same operation.
    Open,
    /// Reads a file, request by request.
    Read,
    /// Writes a file, request by request.
    Write,
    /// Queries a file's attributes (`stat`).
    Getattr,
    /// Sets a file's times.
    Setattr,
    /// Checks whether a file may be read.
    Access,
    /// Removes a file.
    Delete,
    /// Copies a file into another tree.
    Copy,
    /// Moves a file into another tree.
    Move,
}

impl Operation {
    /// All operations and their names in vdbench.
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

    /// Returns the name of the operation.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, operation)| *operation == self).map_or("", |(name, _)| name)
    }

    /// Whether the operation modifies the tree.
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

/// Order in which items are selected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// One after another; restarts after the last item.
    #[default]
    Sequential,
    /// One after another; the load ends after the last item.
    Once,
    /// Random, uniformly distributed.
    Random,
}

/// A load that applies one kind of operation to a tree.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TreeLoad {
    /// Name of the load.
    pub name: String,
    /// Index of the tree in the phase.
    pub tree: usize,
    /// Index of the destination tree of copies or moves.
    pub to_tree: Option<usize>,
    /// Operation of the load.
    pub operation: Operation,
    /// Share of reads in a mix of reads and writes, in percent.
    pub read_percent: Option<f64>,
    /// Order in which files or folders are selected.
    pub files: Order,
    /// Order of requests within a file.
    pub requests: Order,
    /// Request lengths in bytes, with their shares in percent.
    pub sizes: Vec<(u32, f64)>,
    /// Number of threads; each works on one file at a time.
    pub threads: u32,
    /// Share of the phase's operations, in percent. Loads without a share divide the rest evenly.
    pub share_percent: Option<f64>,
    /// Number of requests before a thread takes the next file; `None` makes one pass over the file.
    pub requests_per_file: Option<u64>,
    /// Whether requests bypass the page cache.
    pub direct: bool,
    /// Condition for the completion of a write.
    pub sync: Sync,
    /// Whether a written file is flushed before it is closed.
    pub flushes_at_close: bool,
}

impl TreeLoad {
    /// Checks that the settings do not contradict each other.
    ///
    /// # Errors
    /// If a copy or move has no destination tree, or an operation that cannot mix reads and writes has a mix. The error
    /// is a text for messages.
    pub fn check(&self) -> Result<(), String> {
        let (operation, name) = (self.operation, self.operation.name());
        let needs_other = matches!(operation, Operation::Copy | Operation::Move);
        if needs_other && self.to_tree.is_none_or(|to| to == self.tree) {
            return Err(format!("{name} needs a destination tree; add target=FSD"));
        }
        if self.read_percent.is_some() && !matches!(operation, Operation::Read | Operation::Write) {
            return Err(format!("rdpct mixes reads and writes; the operation {name} does not"));
        }
        Ok(())
    }
}

/// How the trees are prepared before a phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// Trees are used as they are.
    #[default]
    No,
    /// Trees are removed and created again.
    Anew,
    /// Missing members are created.
    Restart,
    /// Trees are removed, and only their folders are created.
    Folders,
    /// Trees are removed.
    Clean,
}

impl Format {
    /// Returns this format, or `other` if this is [`Format::No`].
    pub fn or(self, other: Format) -> Format {
        if self == Format::No { other } else { self }
    }
}

/// Concurrent loads on trees.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TreePhase {
    /// Name of the phase.
    pub name: String,
    /// Trees of the phase.
    pub trees: Vec<Tree>,
    /// Loads of the phase; empty if the phase only formats.
    pub loads: Vec<TreeLoad>,
    /// How the trees are prepared.
    pub format: Format,
    /// Rate of all loads together, in operations per second; `None` for no limit.
    pub rate_per_s: Option<f64>,
    /// Distribution of interarrival times at a limited rate.
    pub process: ArrivalProcess,
    /// Duration after the warm-up, in ns.
    pub time_ns: u64,
    /// Duration of the warm-up in ns, which is excluded from results.
    pub warm_up_ns: u64,
    /// Interval of the time series, in ns.
    pub interval_ns: u64,
    /// Whether writes are stamped and reads checked.
    pub verify: bool,
}
