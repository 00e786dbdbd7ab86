//! The outcome of one run, as one versioned schema for simulated, measured and live runs alike.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Finished, LatencyHistogram, ResultError, Sampling, StoredHistogram, TooShort};

/// The version of the schema. It changes whenever a field is added, removed or changes its meaning.
pub const SCHEMA_VERSION: u32 = 5;
/// The version before, which is still read: it kept a half-width of the mean that held too seldom.
const SCHEMA_BEFORE: u64 = 4;

/// Where a result comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// A simulated system in virtual time.
    Simulated,
    /// Real hardware.
    Measured,
    /// A simulated system on the wall clock, exported as a block device.
    Live,
}

/// The system that a run was pointed at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SystemRecord {
    /// Its name in the catalogue, or the path of a device.
    pub name: String,
    /// What it is: `drive`, `array`, `file`, `device`.
    pub kind: String,
    /// The resolved description, every default filled in.
    pub description: Value,
    /// The content hash of the description as compact JSON with its keys in order.
    pub hash: String,
}

impl SystemRecord {
    /// A record of a resolved description, with its hash.
    pub fn new(name: impl Into<String>, kind: impl Into<String>, description: Value) -> Self {
        let hash = content_hash(description.to_string().as_bytes());
        Self { name: name.into(), kind: kind.into(), description, hash }
    }
}

/// What became of the requests of one kind within the measured time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct KindResult {
    /// Requests that completed without error.
    pub count: u64,
    /// Bytes they moved.
    pub bytes: u64,
    /// Requests that failed: neither in `count` nor in the histograms.
    pub errors: u64,
    /// Completion minus intended arrival.
    pub response: LatencyHistogram,
    /// Completion minus the moment at which the system took the request.
    pub service: LatencyHistogram,
    /// From the decision to issue a request until the system had taken it, where that was timed apart; `service` is then
    /// what followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handing_over: Option<Box<LatencyHistogram>>,
}

/// The kinds of request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Kinds {
    /// Reads.
    pub read: KindResult,
    /// Writes.
    pub write: KindResult,
    /// Trims (discards).
    pub trim: KindResult,
    /// Flushes.
    pub flush: KindResult,
}

impl Kinds {
    /// Every kind with its name.
    pub fn all(&self) -> [(&'static str, &KindResult); 4] {
        [("read", &self.read), ("write", &self.write), ("trim", &self.trim), ("flush", &self.flush)]
    }

    /// The kind of that index, in the order of [`all`](Self::all).
    #[inline]
    pub fn of(&mut self, kind: usize) -> &mut KindResult {
        match kind {
            0 => &mut self.read,
            1 => &mut self.write,
            2 => &mut self.trim,
            _ => &mut self.flush,
        }
    }

    /// Books a completed request.
    #[inline]
    pub fn record(&mut self, finished: &Finished) {
        let kind = self.of(finished.kind);
        kind.count += 1;
        kind.bytes += u64::from(finished.length_bytes);
        kind.response.record(finished.at_ns - finished.intended_ns);
        kind.service.record(finished.at_ns - finished.started_ns.max(finished.intended_ns));
    }

    /// Adds everything that `other` holds.
    pub fn merge(&mut self, other: &Kinds) {
        for (index, (_, theirs)) in other.all().into_iter().enumerate() {
            let kind = self.of(index);
            kind.count += theirs.count;
            kind.bytes += theirs.bytes;
            kind.errors += theirs.errors;
            kind.response.merge(&theirs.response);
            kind.service.merge(&theirs.service);
            if let Some(theirs) = &theirs.handing_over {
                kind.handing_over.get_or_insert_default().merge(theirs);
            }
        }
    }
}

/// A stretch of the measured time; requests count where they complete.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Interval {
    /// When it begins.
    pub start_ns: u64,
    /// How long it lasts.
    pub duration_ns: u64,
    /// Requests of all kinds that completed in it without error.
    pub count: u64,
    /// Bytes they moved.
    pub bytes: u64,
    /// Their response times.
    pub response: StoredHistogram,
}

/// How many requests were outstanding.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct DepthResult {
    /// Time average.
    pub mean: f64,
    /// The most at any moment.
    pub max: u32,
    /// Time spent at depth 0, 1, 2, ...
    pub time_at_depth_ns: Vec<u64>,
}

impl DepthResult {
    /// Mean and maximum from the time spent at each depth; all zero when no time was spent at all.
    pub fn new(time_at_depth_ns: Vec<u64>) -> Self {
        let (mut total_ns, mut weighted, mut max) = (0u128, 0u128, 0);
        for (depth, &time_ns) in time_at_depth_ns.iter().enumerate() {
            total_ns += u128::from(time_ns);
            weighted += u128::from(time_ns) * depth as u128;
            if time_ns > 0 {
                max = depth as u32;
            }
        }
        let mean = if total_ns == 0 { 0.0 } else { weighted as f64 / total_ns as f64 };
        Self { mean, max, time_at_depth_ns }
    }
}

/// A part of the system: an arm, a link, the processors of a controller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Component {
    /// Its name within the system.
    pub name: String,
    /// Things that it serves at once: 1, or the number of processors or channels.
    pub servers: u32,
    /// How long it was busy within the measured time, all servers together.
    pub busy_ns: u64,
    /// How long work waited for it, all work together; 0 where nobody keeps count.
    pub waited_ns: u64,
}

impl Component {
    /// What it did after `before`, which is itself at an earlier moment.
    #[must_use]
    pub fn since(mut self, before: &Component) -> Component {
        self.busy_ns -= before.busy_ns;
        self.waited_ns -= before.waited_ns;
        self
    }
}

/// What one stream of a scenario got.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct StreamResult {
    /// Its name in the scenario.
    pub name: String,
    /// Its requests, by kind.
    pub kinds: Kinds,
    /// Figures of its own, such as `frames_dropped` or `completion_s`.
    pub facts: Vec<Fact>,
}

impl StreamResult {
    /// A stream with its figures: name with unit, and value.
    pub fn new(name: String, kinds: Kinds, figures: Vec<(String, f64)>) -> Self {
        let facts = figures.into_iter().map(|(name, value)| Fact { name, value }).collect();
        Self { name, kinds, facts }
    }
}

/// A named figure.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Fact {
    /// What it is, with its unit.
    pub name: String,
    /// How much.
    pub value: f64,
}

/// Electricity and heat over the measured time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Energy {
    /// All devices together.
    pub joules: f64,
    /// Of these, keeping spindles turning.
    pub spindle_joules: f64,
    /// Moving arms.
    pub seek_joules: f64,
    /// Electronics: idle, and reading, writing and transferring.
    pub electronics_joules: f64,
    /// Case temperature of the warmest device in a steady state, in degrees Celsius, where its airflow is known.
    pub case_celsius: Option<f64>,
}

/// How faithfully a recording was replayed. Times count from the first request on both sides; rates are requests after
/// the first over the time from the first to the last, and absent where that is no time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Fidelity {
    /// Requests of the recording, as far as it was to be replayed.
    pub recorded_requests: u64,
    /// Requests issued.
    pub replayed_requests: u64,
    /// From the first recorded arrival to the last, on the recording's clock.
    pub recorded_duration_ns: u64,
    /// From the first issue to the last.
    pub replayed_duration_ns: u64,
    /// Recorded arrivals a second.
    pub recorded_per_s: Option<f64>,
    /// Issues a second.
    pub achieved_per_s: Option<f64>,
    /// Achieved rate over the recorded rate at the time scale that was asked for.
    pub rate_ratio: Option<f64>,
    /// Issue after the recorded arrival at the time scale that was asked for; 0 for what came early. Half of the
    /// requests were issued no later than this.
    pub lateness_p50_ns: u64,
    /// 90 % were issued no later than this.
    pub lateness_p90_ns: u64,
    /// 99 % were issued no later than this.
    pub lateness_p99_ns: u64,
    /// The latest.
    pub lateness_max_ns: u64,
    /// Requests issued before their recorded arrival.
    pub early: u64,
    /// Requests issued before the completion of one that, in the recording, was complete before they arrived.
    pub causality_violations: u64,
    /// Requests issued after one that had arrived later.
    pub reordered: u64,
    /// Requests moved onto the system because they lay outside.
    pub folded: u64,
    /// Requests left out because they lay outside.
    pub dropped: u64,
    /// Requests widened to whole blocks.
    pub rounded: u64,
    /// Requests whose completion was not recorded.
    pub without_completion: u64,
    /// Requests in flight as recorded, over the time from the first arrival to the last completion, as far as completions
    /// are recorded; null where none is. What the replay had in flight is the result's depth.
    #[serde(default)]
    pub recorded_depth_mean: Option<f64>,
    /// The most that were in flight as recorded, likewise.
    #[serde(default)]
    pub recorded_depth_max: Option<u64>,
}

/// What became of written data, in blocks of `block_bytes`. Each block that was read counts once among `intact` to
/// `unreadable`; those at fault count again by how bad it is, `damaged` to `undecided`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Integrity {
    /// The unit that is written whole, of sectors that carry a stamp each; of several targets, the smallest.
    pub block_bytes: u32,
    /// Blocks that were read and judged.
    pub checked: u64,
    /// What must be there.
    pub intact: u64,
    /// Sectors of several writes, each of which may be there.
    pub mixed: u64,
    /// Zeros where a trim may have left them.
    pub trimmed: u64,
    /// Never written, or never acknowledged.
    pub unwritten: u64,
    /// Changed while it was read, so that nothing can be said.
    pub unsettled: u64,
    /// Newer than the ledger, which lost its end when its host went down.
    pub ahead: u64,
    /// An older generation, though a newer one was acknowledged.
    pub stale: u64,
    /// Sectors of several writes, of which some must not be there any more.
    pub torn: u64,
    /// What was written to another place.
    pub misplaced: u64,
    /// A stamp or data with other bits than were written.
    pub corrupt: u64,
    /// Written and not trimmed since, and now zeros.
    pub zeros: u64,
    /// Written, and now without any stamp or with one of another run.
    pub foreign: u64,
    /// A read that failed.
    pub unreadable: u64,
    /// Requests, not blocks, of which a part is there and in another part older data.
    pub torn_requests: u64,
    /// Blocks changed, misplaced or unreadable.
    pub damaged: u64,
    /// Blocks lost although the newer write was flushed, or nothing endangered it.
    pub lost: u64,
    /// Blocks lost that no flush had covered: a volatile cache may, after power was lost.
    pub unflushed: u64,
    /// Blocks that are a fault or none: what was known did not suffice to tell.
    pub undecided: u64,
    /// The first of those that are not intact, in words: offset, what was expected and what was found.
    pub findings: Vec<String>,
    /// What could not be told, in words.
    pub cannot_tell: Vec<String>,
}

impl Integrity {
    /// Blocks at fault: damaged or lost.
    pub fn faults(&self) -> u64 {
        self.damaged.saturating_add(self.lost).saturating_add(self.unflushed)
    }
}

/// Something counted: cache hits, destages, parity reads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Counter {
    /// What was counted.
    pub name: String,
    /// How often.
    pub value: u64,
}

/// A check that the run made of itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// What was checked.
    pub name: String,
    /// Whether it held.
    pub passed: bool,
    /// The figures on both sides.
    pub detail: String,
}

/// The outcome of one run: one system under one workload with one seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RunResult {
    /// The version of the schema that the writer knew.
    pub schema: u32,
    /// Version of the software.
    pub version: String,
    /// Simulated, measured or live.
    pub mode: Mode,
    /// What the run was pointed at.
    pub system: SystemRecord,
    /// The resolved workload.
    pub workload: Value,
    /// The seed.
    pub seed: u64,
    /// The name of the random generator.
    pub generator: String,
    /// The end of the warm-up: nothing that completed before it is counted.
    pub start_ns: u64,
    /// The measured time after it.
    pub duration_ns: u64,
    /// The requests, by kind.
    pub kinds: Kinds,
    /// The same over time.
    pub intervals: Vec<Interval>,
    /// What is known of the long run: sampling errors alone.
    pub sampling: Sampling,
    /// Requests outstanding.
    pub depth: DepthResult,
    /// How busy each component was.
    pub components: Vec<Component>,
    /// What else was counted.
    pub counters: Vec<Counter>,
    /// The same requests by stream, where the workload is a scenario.
    pub streams: Vec<StreamResult>,
    /// Electricity and heat, where the devices state what they take.
    pub energy: Option<Energy>,
    /// How faithfully a recording was replayed, where the run is a replay.
    pub fidelity: Option<Fidelity>,
    /// What ended the run early: data that no redundancy could bring back.
    pub data_loss: Option<String>,
    /// What ended a measurement before its time: somebody, a full disk, a device that vanished.
    pub ended_early: Option<String>,
    /// Whether what was read is what had been written, where that was checked.
    pub integrity: Option<Integrity>,
    /// Requests a second that the workload intended; `None` in a closed loop.
    pub offered_per_s: Option<f64>,
    /// Requests that were issued later than intended.
    pub late_arrivals: u64,
    /// Requests that had arrived and not completed at the end.
    pub backlog: u64,
    /// Whether the system could not keep up with what was offered.
    pub saturated: bool,
    /// What the run checked of itself.
    pub checks: Vec<Check>,
    /// Remarks for the reader.
    pub notes: Vec<String>,
}

impl RunResult {
    /// An empty result under the present schema and version.
    pub fn new(mode: Mode, system: SystemRecord, workload: Value, seed: u64, generator: impl Into<String>) -> Self {
        Self {
            schema: SCHEMA_VERSION,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            mode,
            system,
            workload,
            seed,
            generator: generator.into(),
            start_ns: 0,
            duration_ns: 0,
            kinds: Kinds::default(),
            intervals: Vec::new(),
            sampling: Sampling::nothing(TooShort::FewRequests),
            depth: DepthResult::default(),
            components: Vec::new(),
            counters: Vec::new(),
            streams: Vec::new(),
            energy: None,
            fidelity: None,
            data_loss: None,
            ended_early: None,
            integrity: None,
            offered_per_s: None,
            late_arrivals: 0,
            backlog: 0,
            saturated: false,
            checks: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Gives the streams these names, in their order, and joins those that then bear the same.
    pub fn name_streams(&mut self, names: &[String]) {
        let mut joined: Vec<StreamResult> = Vec::new();
        for (stream, name) in std::mem::take(&mut self.streams).into_iter().zip(names) {
            match joined.iter_mut().find(|known| known.name == *name) {
                Some(known) => known.kinds.merge(&stream.kinds),
                None => joined.push(StreamResult { name: name.clone(), ..stream }),
            }
        }
        self.streams = joined;
    }

    /// Requests that completed without error, over all kinds.
    pub fn count(&self) -> u64 {
        self.kinds.all().iter().map(|(_, kind)| kind.count).sum()
    }

    /// Bytes moved, over all kinds.
    pub fn bytes(&self) -> u64 {
        self.kinds.all().iter().map(|(_, kind)| kind.bytes).sum()
    }

    /// Requests that failed, over all kinds.
    pub fn errors(&self) -> u64 {
        self.kinds.all().iter().map(|(_, kind)| kind.errors).sum()
    }

    /// Response times of all kinds together.
    pub fn response(&self) -> LatencyHistogram {
        let mut response = LatencyHistogram::new();
        for (_, kind) in self.kinds.all() {
            response.merge(&kind.response);
        }
        response
    }

    /// Completed requests a second; 0 when nothing was measured.
    pub fn throughput_per_s(&self) -> f64 {
        self.share_of_duration(self.count() as f64) * 1e9
    }

    /// Bytes a second; 0 when nothing was measured.
    pub fn throughput_bytes_per_s(&self) -> f64 {
        self.share_of_duration(self.bytes() as f64) * 1e9
    }

    /// Mean response time over all kinds, from exact sums; 0 when nothing completed.
    pub fn mean_response_ns(&self) -> f64 {
        let (mut sum_ns, mut count) = (0, 0);
        for (_, kind) in self.kinds.all() {
            sum_ns += kind.response.sum_ns();
            count += kind.response.count();
        }
        if count == 0 { 0.0 } else { sum_ns as f64 / count as f64 }
    }

    /// Quantile of the response times over all kinds; see [`LatencyHistogram::quantile_ns`]. It merges the kinds: for
    /// several quantiles take [`response`](Self::response) once.
    pub fn quantile_ns(&self, q: f64) -> Option<u64> {
        self.response().quantile_ns(q)
    }

    /// The share of the measured time for which a component was busy, 0 to 1; 0 when nothing was measured.
    pub fn utilisation(&self, component: &Component) -> f64 {
        self.share_of_duration(component.busy_ns as f64) / f64::from(component.servers.max(1))
    }

    /// The most utilised component and its utilisation, the first of equals; `None` when none was ever busy.
    pub fn bottleneck(&self) -> Option<(&str, f64)> {
        let busy = |component: &&Component| component.busy_ns / u64::from(component.servers.max(1));
        let busiest = self.components.iter().rev().max_by_key(busy)?;
        (busiest.busy_ns > 0).then(|| (busiest.name.as_str(), self.utilisation(busiest)))
    }

    /// Electric power, averaged over the measured time; `None` where it is not known or nothing was measured.
    pub fn mean_watts(&self) -> Option<f64> {
        let joules = self.energy.as_ref()?.joules;
        (self.duration_ns > 0).then(|| self.share_of_duration(joules) * 1e9)
    }

    /// Energy for one completed request; `None` where it is not known or nothing completed.
    pub fn joules_per_request(&self) -> Option<f64> {
        let joules = self.energy.as_ref()?.joules;
        (self.count() > 0).then(|| joules / self.count() as f64)
    }

    /// Completed requests a second for each watt; `None` where it is not known or no energy was taken.
    pub fn io_per_watt(&self) -> Option<f64> {
        let joules = self.energy.as_ref()?.joules;
        (joules > 0.0).then(|| self.count() as f64 / joules)
    }

    /// Whether every check held, and of a measurement, every request did what it was asked to.
    pub fn passed(&self) -> bool {
        let is_done = self.mode != Mode::Measured || self.errors() == 0;
        is_done && self.checks.iter().all(|check| check.passed)
    }

    /// The result as one line of JSON. Equal results give equal bytes.
    ///
    /// # Errors
    /// [`ResultError::NotFinite`] when a figure is NaN or infinite, which JSON cannot carry.
    pub fn to_json(&self) -> Result<String, ResultError> {
        let figures = [("depth.mean", Some(self.depth.mean)), ("offered_per_s", self.offered_per_s)];
        let facts =
            self.streams.iter().flat_map(|stream| &stream.facts).map(|fact| ("streams.facts", Some(fact.value)));
        let energy = self
            .energy
            .iter()
            .flat_map(|energy| [("energy.joules", Some(energy.joules)), ("energy.case_celsius", energy.case_celsius)]);
        let fidelity = self.fidelity.iter().flat_map(|fidelity| {
            [
                ("fidelity.recorded_per_s", fidelity.recorded_per_s),
                ("fidelity.achieved_per_s", fidelity.achieved_per_s),
                ("fidelity.rate_ratio", fidelity.rate_ratio),
                ("fidelity.recorded_depth_mean", fidelity.recorded_depth_mean),
            ]
        });
        let sampling = self.sampling.figures().map(|value| ("sampling", Some(value)));
        for (field, value) in figures.into_iter().chain(facts).chain(energy).chain(fidelity).chain(sampling) {
            if let Some(value) = value.filter(|value| !value.is_finite()) {
                return Err(ResultError::NotFinite { field, value });
            }
        }
        Ok(serde_json::to_string(self)?)
    }

    /// Reads a result that [`to_json`](Self::to_json) wrote, to the last bit.
    ///
    /// # Errors
    /// [`ResultError::Schema`] for another schema; [`ResultError::Json`] with line and column for anything else.
    pub fn from_json(text: &str) -> Result<Self, ResultError> {
        // The schema is read first: under another one, complaints about fields would mislead.
        #[derive(Deserialize)]
        struct Head {
            schema: u64,
        }
        let Head { schema: found } = serde_json::from_str(text)?;
        if found == SCHEMA_BEFORE {
            return Ok(serde_json::from_value(brought_up(serde_json::from_str(text)?))?);
        }
        if found != u64::from(SCHEMA_VERSION) {
            return Err(ResultError::Schema { found });
        }
        Ok(serde_json::from_str(text)?)
    }

    fn share_of_duration(&self, amount: f64) -> f64 {
        if self.duration_ns == 0 { 0.0 } else { amount / self.duration_ns as f64 }
    }
}

/// A result of the schema before as one of the present.
fn brought_up(mut result: Value) -> Value {
    if let Some(fields) = result.as_object_mut() {
        fields.remove("mean_response_half_width_ns");
        let nothing = Sampling::nothing(TooShort::NotKept);
        fields.insert("sampling".to_owned(), serde_json::to_value(nothing).expect("sampling errors are plain data"));
        fields.insert("schema".to_owned(), SCHEMA_VERSION.into());
    }
    result
}

/// A stable identity of some bytes as 32 hexadecimal digits: 128-bit FNV-1a.
///
/// It tells descriptions and chunks apart that people write by hand or generate; nobody forges them, so a cryptographic
/// hash and the crates it brings would buy nothing, and any language reproduces this one in three lines.
pub fn content_hash(bytes: &[u8]) -> String {
    // Offset basis and prime of Fowler, Noll and Vo for 128 bits.
    const OFFSET_BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = (1 << 88) + 0x13b;
    let hash = bytes.iter().fold(OFFSET_BASIS, |hash, &byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME));
    format!("{hash:032x}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::Known;

    fn empty() -> RunResult {
        let system = SystemRecord::new("cheetah9lp", "drive", json!({"rpm": 10025, "heads": 12}));
        RunResult::new(Mode::Simulated, system, json!({"outstanding": 4}), 7, "xoshiro256++")
    }

    /// Two seconds: 300 reads of 4 KiB in 1, 2, ... 300 us, and 100 writes of 8 KiB in 1 ms.
    fn filled() -> RunResult {
        let mut result = empty();
        (result.start_ns, result.duration_ns) = (1_000_000_000, 2_000_000_000);
        for i in 1..=300 {
            result.kinds.read.count += 1;
            result.kinds.read.bytes += 4096;
            result.kinds.read.response.record(i * 1000);
            result.kinds.read.service.record(i * 900);
        }
        for _ in 0..100 {
            result.kinds.write.count += 1;
            result.kinds.write.bytes += 8192;
            result.kinds.write.response.record(1_000_000);
        }
        result.kinds.write.errors = 3;
        result.depth = DepthResult::new(vec![500_000_000, 0, 1_500_000_000, 0]);
        let component = |name: &str, busy_ns| Component { name: name.to_owned(), servers: 1, busy_ns, waited_ns: 7 };
        result.components =
            vec![component("link", 50_000_000), component("arm 0", 1_900_000_000), component("arm 1", 1_900_000_000)];
        result.counters = vec![Counter { name: "cache_hits".to_owned(), value: u64::MAX }];
        result.checks = vec![Check { name: "conserved".to_owned(), passed: true, detail: "400 = 400".to_owned() }];
        result.intervals.push(Interval { start_ns: 1, duration_ns: 2, ..Interval::default() });
        result
    }

    #[test]
    fn energy_is_per_request_and_per_second() {
        let mut result = filled();
        assert_eq!((result.mean_watts(), result.joules_per_request(), result.io_per_watt()), (None, None, None));
        result.energy = Some(Energy { joules: 20.0, ..Energy::default() });
        // Two seconds, 400 requests.
        assert_eq!((result.mean_watts(), result.joules_per_request()), (Some(10.0), Some(0.05)));
        assert_eq!(result.io_per_watt(), Some(20.0));
        assert_eq!(RunResult::from_json(&result.to_json().unwrap()).unwrap(), result);
        result.energy = Some(Energy { case_celsius: Some(f64::NAN), ..Energy::default() });
        assert!(matches!(result.to_json(), Err(ResultError::NotFinite { field: "energy.case_celsius", .. })));
    }

    #[test]
    fn a_replay_tells_of_its_fidelity() {
        let mut result = filled();
        let fidelity = Fidelity { causality_violations: 3, rate_ratio: Some(0.1), ..Fidelity::default() };
        result.fidelity = Some(fidelity);
        assert_eq!(RunResult::from_json(&result.to_json().unwrap()).unwrap(), result);
        result.fidelity = Some(Fidelity { achieved_per_s: Some(f64::INFINITY), ..Fidelity::default() });
        assert!(matches!(result.to_json(), Err(ResultError::NotFinite { field: "fidelity.achieved_per_s", .. })));
    }

    #[test]
    fn figures_follow_from_the_counts() {
        let result = filled();
        assert_eq!((result.count(), result.errors()), (400, 3));
        assert_eq!(result.bytes(), 300 * 4096 + 100 * 8192);
        assert_eq!(result.throughput_per_s(), 200.0);
        assert_eq!(result.throughput_bytes_per_s(), (300.0 * 4096.0 + 100.0 * 8192.0) / 2.0);
        let sum_ns = 300.0 * 301.0 / 2.0 * 1e3 + 100.0 * 1e6;
        assert_eq!(result.mean_response_ns(), sum_ns / 400.0);
        assert_eq!(result.response().count(), 400);
        assert_eq!(result.response().mean_ns(), result.mean_response_ns());
        let median = result.quantile_ns(0.5).unwrap();
        assert!(median.abs_diff(200_000) <= 100, "{median}");
        assert_eq!(result.quantile_ns(1.0), Some(1_000_000));
        assert_eq!((result.depth.mean, result.depth.max), (1.5, 2));
        assert_eq!(result.utilisation(&result.components[0]), 0.025);
        assert_eq!(result.bottleneck(), Some(("arm 0", 0.95)));
    }

    #[test]
    fn an_empty_result_has_figures_and_none_is_nan() {
        let result = empty();
        assert_eq!((result.throughput_per_s(), result.throughput_bytes_per_s()), (0.0, 0.0));
        assert_eq!((result.mean_response_ns(), result.quantile_ns(0.5)), (0.0, None));
        assert_eq!(result.utilisation(&Component { name: String::new(), servers: 0, busy_ns: 5, waited_ns: 0 }), 0.0);
        assert_eq!((result.bottleneck(), result.depth.mean), (None, 0.0));
        assert!(result.passed());
        assert_eq!(RunResult::from_json(&result.to_json().unwrap()).unwrap(), result);
        let mut idle = filled();
        idle.components.iter_mut().for_each(|component| component.busy_ns = 0);
        assert_eq!(idle.bottleneck(), None);
    }

    #[test]
    fn one_failed_check_fails_the_run() {
        let mut result = filled();
        assert!(result.passed());
        result.checks.push(Check { name: "little".to_owned(), passed: false, detail: "4 against 5".to_owned() });
        assert!(!result.passed());
    }

    #[test]
    fn the_schema_has_these_fields() {
        let value: Value = serde_json::from_str(&filled().to_json().unwrap()).unwrap();
        let keys = |value: &Value| {
            let mut keys: Vec<_> = value.as_object().unwrap().keys().cloned().collect();
            keys.sort();
            keys.join(" ")
        };
        assert_eq!(
            keys(&value),
            "backlog checks components counters data_loss depth duration_ns ended_early energy fidelity generator \
             integrity intervals kinds late_arrivals mode notes offered_per_s sampling saturated schema seed start_ns streams \
             system version workload"
        );
        assert_eq!(keys(&value["system"]), "description hash kind name");
        assert_eq!(keys(&value["kinds"]), "flush read trim write");
        assert_eq!(keys(&value["kinds"]["read"]), "bytes count errors response service");
        assert_eq!(keys(&value["intervals"][0]), "bytes count duration_ns response start_ns");
        assert_eq!(keys(&value["depth"]), "max mean time_at_depth_ns");
        assert_eq!(
            value["components"][0],
            json!({"name": "link", "servers": 1, "busy_ns": 50_000_000, "waited_ns": 7})
        );
        assert_eq!(value["checks"][0], json!({"name": "conserved", "passed": true, "detail": "400 = 400"}));
        assert_eq!((&value["mode"], &value["schema"]), (&json!("simulated"), &json!(5)));
        assert_eq!(value["offered_per_s"], Value::Null);
    }

    #[test]
    fn results_of_the_schema_before_are_read() {
        let written = filled().to_json().unwrap();
        let mut old: Value = serde_json::from_str(&written).unwrap();
        let fields = old.as_object_mut().unwrap();
        fields.remove("sampling");
        fields.insert("mean_response_half_width_ns".to_owned(), json!(1.5));
        fields.insert("schema".to_owned(), json!(4));
        let read = RunResult::from_json(&old.to_string()).unwrap();
        assert_eq!(read.sampling, Sampling::nothing(TooShort::NotKept));
        assert_eq!(RunResult { sampling: filled().sampling, ..read }, filled());
    }

    #[test]
    fn texts_that_are_no_result_are_refused() {
        let good = filled().to_json().unwrap();
        for (from, to, complaint) in [
            ("\"schema\":5", "\"schema\":3", "result: schema 3: this build reads schemas 4 and 5"),
            ("\"schema\":5", "\"scheme\":3", "result: missing field `schema`"),
            ("\"seed\"", "\"sead\"", "result: unknown field `sead`"),
            ("\"mode\":\"simulated\"", "\"mode\":\"guessed\"", "result: unknown variant `guessed`"),
            ("\"count\":300", "\"count\":300.5", "result: invalid type: floating point"),
            ("\"digits\":3", "\"digits\":4", "result: histogram digits 4"),
            ("{", "", "result: "),
        ] {
            assert!(good.contains(from), "{from}");
            let error = RunResult::from_json(&good.replacen(from, to, 1)).unwrap_err().to_string();
            assert!(error.starts_with(complaint), "{error}");
        }
    }

    #[test]
    fn figures_that_json_cannot_carry_are_refused() {
        let mut result = filled();
        result.offered_per_s = Some(f64::INFINITY);
        let error = result.to_json().unwrap_err().to_string();
        assert_eq!(error, "result: offered_per_s is inf: a finite number is needed");
        result.offered_per_s = None;
        result.depth.mean = f64::NAN;
        assert!(result.to_json().unwrap_err().to_string().contains("depth.mean is NaN"));
        result.depth.mean = 0.0;
        result.sampling.mean = Known::Between { low_ns: 1.0, high_ns: f64::NAN };
        assert!(result.to_json().unwrap_err().to_string().contains("sampling is NaN"));
    }

    #[test]
    fn the_hash_is_fnv_1a_and_follows_content_alone() {
        // Published test vectors of 128-bit FNV-1a.
        assert_eq!(content_hash(b""), "6c62272e07bb014262b821756295c58d");
        assert_eq!(content_hash(b"a"), "d228cb696f1a8caf78912b704e4a8964");
        assert_eq!(content_hash(b"foobar"), "343e1662793c64bf6f0d3597ba446f18");
        let record = |text: &str| SystemRecord::new("x", "drive", serde_json::from_str(text).unwrap());
        let hash = record("{\"heads\": 12, \"rpm\": 10025}").hash;
        assert_eq!(hash, record("{\"rpm\":10025,\"heads\":12}").hash);
        assert_eq!(hash, content_hash(b"{\"heads\":12,\"rpm\":10025}"));
        assert_ne!(hash, record("{\"rpm\":10025,\"heads\":13}").hash);
    }

    proptest! {
        #[test]
        fn json_round_trips_to_the_last_bit(
            latencies in prop::collection::vec(0u64..5_000_000_000_000, 0..50),
            floats in prop::array::uniform4(prop::num::f64::NORMAL | prop::num::f64::SUBNORMAL | prop::num::f64::ZERO),
            numbers in prop::array::uniform4(any::<u64>()),
            text in any::<String>(),
            times in prop::collection::vec(any::<u64>(), 0..5),
        ) {
            let mut result = filled();
            latencies.iter().for_each(|&ns| result.kinds.trim.service.record(ns));
            result.intervals[0].response = result.kinds.trim.service.store();
            result.depth = DepthResult { mean: floats[0], max: u32::MAX, time_at_depth_ns: times };
            result.sampling.mean = Known::Between { low_ns: floats[1], high_ns: floats[3] };
            result.offered_per_s = Some(floats[2]);
            result.system.description = json!({ "curve_ms": [floats[3], 0.1], (text.as_str()): numbers[0] });
            (result.seed, result.backlog, result.late_arrivals) = (numbers[1], numbers[2], numbers[3]);
            result.notes = vec![text];
            let written = result.to_json().unwrap();
            let back = RunResult::from_json(&written).unwrap();
            prop_assert_eq!(&back, &result);
            prop_assert_eq!(back.to_json().unwrap(), written);
        }
    }
}
