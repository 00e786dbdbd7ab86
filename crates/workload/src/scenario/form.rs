//! The file form of scenarios, which is the JSON form too: a stream's kind is the table that is there.

use serde::{Deserialize, Serialize};

use super::access::Access;
use super::boot::Boot;
use super::prefill::Prefill;
use super::range::Range;
use super::sequential::Sequential;
use super::transactions::Transactions;
use super::video::Video;
use super::web::Web;
use super::{Scenario, ScenarioLength, Stream, StreamKind};
use crate::arrivals::{Arrivals, WarmUp};
use crate::error::WorkloadError;
use crate::quantity::Rate;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScenarioForm {
    name: String,
    #[serde(default)]
    source: String,
    #[serde(default = "one")]
    cpus: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    network: Option<Rate>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pool: Option<Arrivals>,
    #[serde(default = "no_warm_up")]
    warm_up: WarmUp,
    run_length: ScenarioLength,
    streams: Vec<StreamForm>,
}

fn one() -> u32 {
    1
}

fn no_warm_up() -> WarmUp {
    WarmUp { requests: 0, time_ns: 0 }
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StreamForm {
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
}

impl TryFrom<ScenarioForm> for Scenario {
    type Error = WorkloadError;

    fn try_from(form: ScenarioForm) -> Result<Scenario, WorkloadError> {
        let streams = form.streams.into_iter().enumerate().map(|(index, stream)| {
            stream.resolve().ok_or_else(|| WorkloadError {
                key: format!("streams[{index}]"),
                message: "exactly one of access, web, boot, video, transactions, sequential, prefill is allowed, \
                          and needed"
                    .to_owned(),
            })
        });
        Ok(Scenario {
            streams: streams.collect::<Result<_, _>>()?,
            name: form.name,
            source: form.source,
            cpus: form.cpus,
            network: form.network,
            pool: form.pool,
            warm_up: form.warm_up,
            run_length: form.run_length,
        })
    }
}

impl From<Scenario> for ScenarioForm {
    fn from(scenario: Scenario) -> ScenarioForm {
        ScenarioForm {
            name: scenario.name,
            source: scenario.source,
            cpus: scenario.cpus,
            network: scenario.network,
            pool: scenario.pool,
            warm_up: scenario.warm_up,
            run_length: scenario.run_length,
            streams: scenario.streams.into_iter().map(StreamForm::from).collect(),
        }
    }
}

impl StreamForm {
    /// The stream, if it is of one kind.
    fn resolve(self) -> Option<Stream> {
        let mut kinds = [
            self.access.map(StreamKind::Access),
            self.web.map(StreamKind::Web),
            self.boot.map(StreamKind::Boot),
            self.video.map(StreamKind::Video),
            self.transactions.map(StreamKind::Transactions),
            self.sequential.map(StreamKind::Sequential),
            self.prefill.map(StreamKind::Prefill),
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
        }
    }
}
