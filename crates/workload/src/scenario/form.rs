//! [`ScenarioForm`]: a scenario as written in TOML and JSON, where the table that is present determines a stream's
//! kind.

use serde::{Deserialize, Serialize};

use super::access::Access;
use super::boot::Boot;
use super::database::Database;
use super::length::ScenarioLength;
use super::prefill::Prefill;
use super::range::Range;
use super::sequential::Sequential;
use super::stream::{Stream, StreamKind};
use super::transactions::Transactions;
use super::video::Video;
use super::web::Web;
use crate::arrivals::{Arrivals, WarmUp};
use crate::quantity::Rate;

/// Keys of a scenario.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScenarioForm {
    pub name: String,
    #[serde(default)]
    pub source: String,
    #[serde(default = "default_one")]
    pub cpus: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Rate>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<Arrivals>,
    #[serde(default = "no_warm_up")]
    pub warm_up: WarmUp,
    pub run_length: ScenarioLength,
    pub streams: Vec<StreamForm>,
}

fn default_one() -> u32 {
    1
}

fn no_warm_up() -> WarmUp {
    WarmUp { requests: 0, time_ns: 0 }
}

/// Keys of a stream.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamForm {
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lun: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    range: Option<Range>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    access: Option<Access>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    web: Option<Web>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    boot: Option<Boot>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    video: Option<Video>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    transactions: Option<Transactions>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sequential: Option<Sequential>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    prefill: Option<Prefill>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    database: Option<Database>,
}

impl StreamForm {
    /// Returns the stream if it has exactly one kind.
    pub fn resolve(self) -> Option<Stream> {
        let mut kinds = [
            self.access.map(StreamKind::Access),
            self.web.map(StreamKind::Web),
            self.boot.map(StreamKind::Boot),
            self.video.map(StreamKind::Video),
            self.transactions.map(StreamKind::Transactions),
            self.sequential.map(StreamKind::Sequential),
            self.prefill.map(StreamKind::Prefill),
            self.database.map(StreamKind::Database),
        ]
        .into_iter()
        .flatten();
        match (kinds.next(), kinds.next()) {
            (Some(kind), None) => Some(Stream { name: self.name, lun: self.lun, range: self.range, kind }),
            _ => None,
        }
    }
}

impl From<Stream> for StreamForm {
    fn from(stream: Stream) -> StreamForm {
        let form = StreamForm { name: stream.name, lun: stream.lun, range: stream.range, ..StreamForm::default() };
        match stream.kind {
            StreamKind::Access(access) => StreamForm { access: Some(access), ..form },
            StreamKind::Web(web) => StreamForm { web: Some(web), ..form },
            StreamKind::Boot(boot) => StreamForm { boot: Some(boot), ..form },
            StreamKind::Video(video) => StreamForm { video: Some(video), ..form },
            StreamKind::Transactions(transactions) => StreamForm { transactions: Some(transactions), ..form },
            StreamKind::Sequential(sequential) => StreamForm { sequential: Some(sequential), ..form },
            StreamKind::Prefill(prefill) => StreamForm { prefill: Some(prefill), ..form },
            StreamKind::Database(database) => StreamForm { database: Some(database), ..form },
        }
    }
}
