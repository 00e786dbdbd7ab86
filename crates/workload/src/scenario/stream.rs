//! [`Stream`]: clients of one kind, and [`StreamKind`]: the activity of these clients.

use super::access::{Access, Load};
use super::boot::Boot;
use super::database::Database;
use super::prefill::Prefill;
use super::range::Range;
use super::sequential::{Direction, Sequential};
use super::transactions::Transactions;
use super::video::Video;
use super::web::Web;
use crate::access::{AccessLine, Complaint};

/// Clients of one kind, with results of their own.
#[derive(Clone, Debug, PartialEq)]
pub struct Stream {
    /// Unique name of the stream in results.
    pub name: String,
    /// LUN of the stream; `None` for the whole system.
    pub lun: Option<String>,
    /// Range of the LUN; `None` for the whole LUN.
    pub range: Option<Range>,
    /// Activity of the clients.
    pub kind: StreamKind,
}

/// Activity of the clients of a stream.
#[derive(Clone, Debug, PartialEq)]
pub enum StreamKind {
    /// Requests with an access specification.
    Access(Access),
    /// Users of a web server.
    Web(Web),
    /// Booting guests.
    Boot(Boot),
    /// Video at a frame rate.
    Video(Video),
    /// Clients of a transaction server.
    Transactions(Transactions),
    /// Sequential streams.
    Sequential(Sequential),
    /// LUNs that are written once.
    Prefill(Prefill),
    /// Clients of a database.
    Database(Database),
}

impl StreamKind {
    /// Returns the name of the kind, which is also the name of its table in the file.
    pub fn name(&self) -> &'static str {
        match self {
            StreamKind::Access(_) => "access",
            StreamKind::Web(_) => "web",
            StreamKind::Boot(_) => "boot",
            StreamKind::Video(_) => "video",
            StreamKind::Transactions(_) => "transactions",
            StreamKind::Sequential(_) => "sequential",
            StreamKind::Prefill(_) => "prefill",
            StreamKind::Database(_) => "database",
        }
    }

    /// Whether the clients finish on their own.
    pub fn is_finite(&self) -> bool {
        match self {
            StreamKind::Boot(_) | StreamKind::Prefill(_) => true,
            StreamKind::Video(video) => video.frames.is_some(),
            StreamKind::Access(_)
            | StreamKind::Web(_)
            | StreamKind::Transactions(_)
            | StreamKind::Sequential(_)
            | StreamKind::Database(_) => false,
        }
    }

    /// Whether the clients change stored data by writes or trims.
    pub fn writes(&self) -> bool {
        let changes = |lines: &[AccessLine]| lines.iter().any(|line| line.read_percent < 100.0);
        match self {
            StreamKind::Access(access) => changes(&access.lines),
            StreamKind::Boot(boot) => boot.phases.iter().any(|phase| changes(&phase.lines)),
            StreamKind::Video(video) => video.writes > 0,
            StreamKind::Transactions(transactions) => changes(&transactions.lines),
            StreamKind::Sequential(sequential) => sequential.direction == Direction::Write,
            StreamKind::Prefill(_) => true,
            StreamKind::Database(database) => database.changed_pages > 0,
            StreamKind::Web(_) => false,
        }
    }

    pub(super) fn validate(&self) -> Result<(), Complaint> {
        match self {
            StreamKind::Access(access) => access.validate(),
            StreamKind::Web(web) => web.validate(),
            StreamKind::Boot(boot) => boot.validate(),
            StreamKind::Video(video) => video.validate(),
            StreamKind::Transactions(transactions) => transactions.validate(),
            StreamKind::Sequential(sequential) => sequential.validate(),
            StreamKind::Prefill(prefill) => prefill.validate(),
            StreamKind::Database(database) => database.validate(),
        }
    }

    /// Returns the stream's share of the pool in percent, if it has one.
    pub(super) fn share_percent(&self) -> Option<f64> {
        match self {
            StreamKind::Access(access) => match access.load {
                Load::SharePercent(percent) => Some(percent),
                Load::Own(_) => None,
            },
            StreamKind::Web(_)
            | StreamKind::Boot(_)
            | StreamKind::Video(_)
            | StreamKind::Transactions(_)
            | StreamKind::Sequential(_)
            | StreamKind::Prefill(_)
            | StreamKind::Database(_) => None,
        }
    }
}

impl Stream {
    pub(super) fn validate(&self) -> Result<(), Complaint> {
        self.range.map_or(Ok(()), |range| range.validate())?;
        self.kind.validate().map_err(|(key, message)| (format!("{}.{key}", self.kind.name()), message))
    }
}
