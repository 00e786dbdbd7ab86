//! Results as JSON: written with the current schema, read from any version.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::upgrades::upgrade;
use crate::{ModelError, ResultError, RunResult, SCHEMA_VERSION};

impl RunResult {
    /// Returns the result as one line of JSON. Equal results yield identical bytes.
    ///
    /// # Errors
    /// Returns [`ResultError::NotFinite`] if a figure is NaN or infinite, which JSON cannot represent.
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
        let model = self.model_error.iter().flat_map(ModelError::figures).map(|value| ("model_error", Some(value)));
        let all = figures.into_iter().chain(facts).chain(energy).chain(fidelity).chain(sampling).chain(model);
        for (field, value) in all {
            if let Some(value) = value.filter(|value| !value.is_finite()) {
                return Err(ResultError::NotFinite { field, value });
            }
        }
        Ok(serde_json::to_string(self)?)
    }

    /// Reads a result that this or an older version wrote with [`to_json`](Self::to_json), without any loss.
    ///
    /// # Errors
    /// Returns [`ResultError::Schema`] if the schema is unknown, and [`ResultError::Json`] with line and column for any
    /// other error.
    pub fn from_json(text: &str) -> Result<Self, ResultError> {
        // The schema is checked first: with an unknown schema, errors about fields would be misleading.
        #[derive(Deserialize)]
        struct Head {
            schema: u64,
        }
        let Head { schema: found } = serde_json::from_str(text)?;
        if found == u64::from(SCHEMA_VERSION) {
            return Ok(serde_json::from_str(text)?);
        }
        let mut result: Map<String, Value> = serde_json::from_str(text)?;
        upgrade(&mut result, found)?;
        Ok(serde_json::from_value(Value::Object(result))?)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::run_result::tests::filled;
    use crate::{DepthResult, Estimate};

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
        assert_eq!(keys(&value["kinds"]["read"]), "bytes count errors latency service");
        assert_eq!(keys(&value["intervals"][0]), "bytes count duration_ns latency start_ns");
        assert_eq!(keys(&value["depth"]), "max mean time_at_depth_ns");
        assert_eq!(
            value["components"][0],
            json!({"name": "link", "servers": 1, "busy_ns": 50_000_000, "waited_ns": 7})
        );
        assert_eq!(value["checks"][0], json!({"name": "conserved", "passed": true, "detail": "400 = 400"}));
        assert_eq!((&value["mode"], &value["schema"]), (&json!("simulated"), &json!(7)));
        assert_eq!(value["offered_per_s"], Value::Null);
    }

    #[test]
    fn texts_that_are_no_result_are_refused() {
        let good = filled().to_json().unwrap();
        for (from, to, complaint) in [
            ("\"schema\":7", "\"schema\":8", "result: schema 8; this version reads schemas 1 to 7"),
            ("\"schema\":7", "\"scheme\":3", "result: missing field `schema`"),
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
        assert_eq!(error, "result: offered_per_s is inf; must be finite");
        result.offered_per_s = None;
        result.depth.mean = f64::NAN;
        assert!(result.to_json().unwrap_err().to_string().contains("depth.mean is NaN"));
        result.depth.mean = 0.0;
        result.sampling.mean = Estimate::Between { low_ns: 1.0, high_ns: f64::NAN };
        assert!(result.to_json().unwrap_err().to_string().contains("sampling is NaN"));
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
            result.intervals[0].latency = result.kinds.trim.service.store();
            result.depth = DepthResult { mean: floats[0], max: u32::MAX, time_at_depth_ns: times };
            result.sampling.mean = Estimate::Between { low_ns: floats[1], high_ns: floats[3] };
            result.offered_per_s = Some(floats[2]);
            result.system.description = json!({ "curve_ms": [floats[3], 0.1], (text.as_str()): numbers[0] }).into();
            (result.seed, result.backlog, result.late_arrivals) = (numbers[1], numbers[2], numbers[3]);
            result.notes = vec![text];
            let written = result.to_json().unwrap();
            let back = RunResult::from_json(&written).unwrap();
            prop_assert_eq!(&back, &result);
            prop_assert_eq!(back.to_json().unwrap(), written);
        }
    }

    #[test]
    fn every_figure_that_is_not_finite_is_refused_by_its_name() {
        use crate::{Energy, Fact, Fidelity, ModelError, Percentile, Range, StreamResult};
        let refused = |change: fn(&mut RunResult)| {
            let mut result = filled();
            change(&mut result);
            result.to_json().unwrap_err().to_string()
        };
        let fidelity = |change: fn(&mut Fidelity)| {
            let mut result = filled();
            result.fidelity = Some(Fidelity::default());
            change(result.fidelity.as_mut().unwrap());
            result.to_json().unwrap_err().to_string()
        };
        let facts = refused(|result| {
            let facts = vec![Fact { name: "transactions/s".to_owned(), value: f64::NAN }];
            result.streams.push(StreamResult { facts, ..StreamResult::default() });
        });
        let energy = refused(|result| result.energy = Some(Energy { joules: f64::INFINITY, ..Energy::default() }));
        let percentile = refused(|result| {
            let value = Estimate::Between { low_ns: f64::NAN, high_ns: 1.0 };
            result.sampling.percentiles.push(Percentile { percent: 50.0, value });
        });
        let model = refused(|result| {
            let learnt_from = String::new();
            let range = Some(Range { low: f64::NEG_INFINITY, high: 1.0 });
            let (mean_latency_ns, p50_latency_ns, p99_latency_ns) = (None, None, None);
            let (level, throughput_per_s) = (0.9, range);
            result.model_error = Some(ModelError {
                level,
                learnt_from,
                throughput_per_s,
                mean_latency_ns,
                p50_latency_ns,
                p99_latency_ns,
            });
        });
        let depth = fidelity(|replay| replay.recorded_depth_mean = Some(f64::NAN));
        for (error, field) in [
            (facts, "streams.facts"),
            (energy, "energy.joules"),
            (percentile, "sampling"),
            (model, "model_error"),
            (depth, "fidelity.recorded_depth_mean"),
            (fidelity(|replay| replay.recorded_per_s = Some(f64::NAN)), "fidelity.recorded_per_s"),
            (fidelity(|replay| replay.achieved_per_s = Some(f64::NAN)), "fidelity.achieved_per_s"),
            (fidelity(|replay| replay.rate_ratio = Some(f64::NAN)), "fidelity.rate_ratio"),
        ] {
            assert!(error.starts_with(&format!("result: {field} is ")), "{error}");
        }
    }
}
