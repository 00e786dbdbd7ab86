//! [`Database`]: a database server with shared buffers, a write-ahead log with group commit, and checkpoints, as in
//! PostgreSQL.

mod backend;
mod buffers;
mod checkpointer;
mod log;
mod run;
mod shared;

use serde::{Deserialize, Serialize};

pub(crate) use run::DatabaseRun;

use super::step::{check_count, check_not_zero};
use crate::access::{Complaint, check_share};
use crate::addresses::Addresses;
use crate::arrivals::Think;
use crate::quantity::{Bytes, bytes_u32, bytes_u64, duration_u64};

/// Clients of a database, each with a server process that runs its transactions one after another.
///
/// The log is the LUN or file `wal` and the pages are those of `data`, if the system has both and the stream names no
/// LUN or range. Otherwise the first `log_space` bytes of the stream's range hold the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Database {
    /// Number of clients.
    pub clients: u32,
    /// Think time before each transaction.
    #[serde(default)]
    pub think: Think,
    /// Processor time of each transaction, in ns.
    #[serde(default, rename = "cpu", with = "duration_u64")]
    pub cpu_ns: u64,
    /// Size of a page in bytes (`block_size`).
    #[serde(default = "default_page", rename = "page", with = "bytes_u32")]
    pub page_bytes: u32,
    /// Size of the pages together; the whole data file by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Bytes>,
    /// Number of random pages that a transaction uses.
    #[serde(default = "default_one")]
    pub pages: u32,
    /// Number of these pages that it changes; a transaction that changes none does not commit to the log.
    #[serde(default = "default_one")]
    pub changed_pages: u32,
    /// Distribution of the pages.
    #[serde(default)]
    pub addresses: Addresses,
    /// Memory for pages (`shared_buffers`).
    #[serde(rename = "shared_buffers", with = "bytes_u64")]
    pub buffers_bytes: u64,
    /// Log records of a transaction, without full pages, in bytes.
    #[serde(rename = "log_record", with = "bytes_u32")]
    pub record_bytes: u32,
    /// Whether the first change of a page after the start of a checkpoint adds the whole page to the log
    /// (`full_page_writes`).
    #[serde(default = "default_true")]
    pub full_page_writes: bool,
    /// Call that makes the log durable (`wal_sync_method`).
    #[serde(default)]
    pub sync: LogSync,
    /// Time that the writer of the log waits for others, in ns (`commit_delay`).
    #[serde(default, with = "duration_u64", rename = "commit_delay")]
    pub commit_delay_ns: u64,
    /// Space for the log if it has no LUN of its own; twice `max_wal_size` of PostgreSQL by default.
    #[serde(default = "default_log_space", with = "bytes_u64", rename = "log_space")]
    pub log_space_bytes: u64,
    /// Time from the start of a checkpoint to the start of the next one, in ns (`checkpoint_timeout`).
    #[serde(default = "default_timeout", rename = "checkpoint_timeout", with = "duration_u64")]
    pub checkpoint_timeout_ns: u64,
    /// Share of that time over which a checkpoint spreads its writes (`checkpoint_completion_target`).
    #[serde(default = "default_target")]
    pub checkpoint_completion_target: f64,
    /// Size of the log that also starts a checkpoint, before it reaches this size (`max_wal_size`).
    #[serde(default = "default_max_log", with = "bytes_u64", rename = "max_wal_size")]
    pub max_log_bytes: u64,
}

/// Call that makes the log durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogSync {
    /// A write, then fdatasync(2).
    #[default]
    Fdatasync,
    /// A write, then fsync(2).
    Fsync,
    /// A write with O_DSYNC.
    OpenDatasync,
}

fn default_page() -> u32 {
    8 << 10
}

fn default_one() -> u32 {
    1
}

fn default_true() -> bool {
    true
}

fn default_log_space() -> u64 {
    2 << 30
}

fn default_timeout() -> u64 {
    300_000_000_000
}

fn default_target() -> f64 {
    0.9
}

fn default_max_log() -> u64 {
    1 << 30
}

impl Database {
    pub(crate) fn validate(&self) -> Result<(), Complaint> {
        check_count("clients", self.clients)?;
        check_count("pages", self.pages)?;
        if self.changed_pages > self.pages {
            let message = format!("{} is out of range; must be 0 to pages ({})", self.changed_pages, self.pages);
            return Err(("changed_pages".to_owned(), message));
        }
        check_not_zero("page", u64::from(self.page_bytes), "a page has content")?;
        check_not_zero("log_record", u64::from(self.record_bytes), "a commit writes a record")?;
        check_not_zero("checkpoint_timeout", self.checkpoint_timeout_ns, "set it, for example 5min")?;
        check_share("checkpoint_completion_target", 100.0 * self.checkpoint_completion_target)?;
        if self.buffers_bytes / u64::from(self.page_bytes) < 16 {
            let message = format!("{} bytes are too few; must be 16 pages or more", self.buffers_bytes);
            return Err(("shared_buffers".to_owned(), message));
        }
        for (key, bytes) in [("log_space", self.log_space_bytes), ("max_wal_size", self.max_log_bytes)] {
            if bytes < 2 * log::SEGMENT_BYTES {
                return Err((key.to_owned(), format!("{bytes} bytes are too few; must be 32MiB or more")));
            }
        }
        Ok(())
    }

    /// Returns the size of the log that starts a checkpoint, so that the log of two checkpoints fits into
    /// `max_wal_size` (`CalculateCheckpointSegments`, xlog.c).
    fn checkpoint_log_bytes(&self) -> f64 {
        self.max_log_bytes as f64 / (1.0 + self.checkpoint_completion_target)
    }
}
