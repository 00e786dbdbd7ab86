//! Figures of a running session: the answer to a status order, and the same for Prometheus.

use std::fmt::{self, Write};

use headstack_workload::Kind;
use serde_json::{Value, json};

use crate::buckets::{BOUNDS_NS, Buckets};
use crate::fidelity::Fidelity;
use crate::ledger::Ledger;

/// Completes the clock's answer to [`Order::Status`](crate::Order::Status).
pub fn complete_status(status: &mut Value, ledger: &Ledger, fidelity: &Fidelity) {
    let summary = |kind: Kind| {
        let count = ledger.kind(kind);
        let counted = json!({
            "requests": count.responses.count(),
            "bytes": count.bytes,
            "response_ns": count.responses.sum_ns() as u64,
            "failed": count.failed,
            "buckets": count.responses,
        });
        (kind.name().to_owned(), counted)
    };
    status["kinds"] = Kind::ALL.iter().map(|&kind| summary(kind)).collect();
    status["bounds_ns"] = json!(BOUNDS_NS[..]);
    status["fidelity"] = json!(fidelity);
}

/// Figures of a session at one moment, for [`prometheus`].
#[derive(Debug)]
pub struct Figures {
    /// Answer to a status order.
    pub status: Value,
    /// Counters of the clock.
    pub ledger: Ledger,
}

/// Returns the text for Prometheus (exposition format 0.0.4). Times are in seconds of model time, except lateness,
/// floor, error and waits, which are in wall-clock time.
pub fn prometheus(Figures { status, ledger }: &Figures) -> String {
    let mut text = Text(String::new());
    let fidelity = &status["fidelity"];
    text.gauge("model_seconds", "Model time since the start.", status["model_ns"].as_f64().map(seconds));
    text.gauge("outstanding_requests", "Requests in flight.", status["outstanding"].as_f64());
    text.gauge("power_on", "1 if the power is on.", status["power"].as_bool().map(truth));
    requests(&mut text, ledger);
    text.head("lateness_seconds", "histogram", "Lateness of answers compared with the model, in wall-clock time.");
    text.histogram("lateness_seconds", &[], ledger.late());
    for (name, help, key) in [
        ("floor_seconds", "Overhead of the path, which the server subtracts.", "floor_ns"),
        ("error_seconds", "Upper bound of the clients' measurement error, of mean and p99.", "error_ns"),
        ("valid_above_seconds", "Lowest model latency for which the session is valid.", "valid_above_ns"),
    ] {
        text.gauge(name, help, fidelity[key].as_f64().map(seconds));
    }
    text.gauge(
        "valid",
        "1 if the session is valid for some latency.",
        Some(truth(!fidelity["valid_above_ns"].is_null())),
    );
    let waited = fidelity["server"]["waited_share"].as_f64();
    text.gauge("server_waited_ratio", "Share of time that the server waited for a processor.", waited);
    clients(&mut text, &fidelity["clients"]);
    devices(&mut text, &status["gauges"]["devices"]);
    groups(&mut text, &status["gauges"]["groups"], &status["mismatches"]);
    cache(&mut text, &status["gauges"]["cache"]);
    faults(&mut text, &status["faults"]);
    text.0
}

fn requests(text: &mut Text, ledger: &Ledger) {
    text.head("response_seconds", "histogram", "Response times of the model.");
    for kind in Kind::ALL {
        text.histogram("response_seconds", &[("kind", kind.name())], &ledger.kind(kind).responses);
    }
    text.head("bytes_total", "counter", "Bytes of requests answered.");
    for kind in Kind::ALL {
        text.sample("bytes_total", &[("kind", kind.name())], ledger.kind(kind).bytes as f64);
    }
    text.head("failed_requests_total", "counter", "Requests that failed.");
    for kind in Kind::ALL {
        text.sample("failed_requests_total", &[("kind", kind.name())], ledger.kind(kind).failed as f64);
    }
}

/// Clients by process: those of one process are combined, and so are those of unknown ones.
fn clients(text: &mut Text, clients: &Value) {
    let mut summary: Vec<(String, f64)> = Vec::new();
    for client in clients.as_array().into_iter().flatten() {
        let (Some(pid), Some(share)) = (client["pid"].as_u64(), client["waits"]["waited_share"].as_f64()) else {
            continue;
        };
        if !summary.iter().any(|(known, _)| *known == pid.to_string()) {
            summary.push((pid.to_string(), share));
        }
    }
    if !summary.is_empty() {
        text.head("client_waited_ratio", "gauge", "Share of time that a client waited for a processor.");
        summary.iter().for_each(|(pid, share)| text.sample("client_waited_ratio", &[("pid", pid)], *share));
    }
}

fn devices(text: &mut Text, devices: &Value) {
    let devices = devices.as_array().map_or(&[][..], Vec::as_slice);
    for (name, help, key) in [
        ("device_queue_requests", "Commands queued in the device.", "queue"),
        ("device_cylinder", "Cylinder of the arm.", "cylinder"),
        ("device_dirty_bytes", "Dirty bytes, not yet on the media.", "dirty_bytes"),
    ] {
        text.each(name, help, "device", devices, |device| device[key].as_f64());
    }
    text.states("device_state", "1 for the current state of the device.", "device", devices);
}

fn groups(text: &mut Text, groups: &Value, mismatches: &Value) {
    let groups = groups.as_array().map_or(&[][..], Vec::as_slice);
    text.states("group_state", "1 for the current state of the group.", "group", groups);
    for (name, help, key) in [
        ("group_rebuilt_bytes", "Bytes rebuilt so far.", "rebuilt_bytes"),
        ("group_rebuild_size_bytes", "Bytes to rebuild in total; 0 without a rebuild.", "of_bytes"),
        ("group_lost_bytes", "Bytes lost because no redundancy was left.", "lost_bytes"),
    ] {
        text.each(name, help, "group", groups, |group| group[key].as_f64());
    }
    let mismatches = mismatches.as_array().map_or(&[][..], Vec::as_slice);
    let (name, help) = ("group_mismatched_sectors", "Mismatched sectors in the last check, repair or resync.");
    text.each(name, help, "group", mismatches, |group| group["mismatched_sectors"].as_f64());
}

fn cache(text: &mut Text, cache: &Value) {
    text.gauge("cache_bytes", "Size of the controller's cache.", cache["bytes"].as_f64());
    text.gauge("cache_dirty_bytes", "Dirty bytes, not yet on the members.", cache["dirty_bytes"].as_f64());
    text.gauge("cache_battery_ok", "1 if the cache survives a power loss.", cache["battery_ok"].as_bool().map(truth));
    if let Some(hits) = cache["hits"].as_f64() {
        text.head("cache_hits_total", "counter", "Read hits of the cache.");
        text.sample("cache_hits_total", &[], hits);
    }
}

/// Lasting faults by kind: several of a kind are combined.
fn faults(text: &mut Text, faults: &Value) {
    let faults = faults.as_array().map_or(&[][..], Vec::as_slice);
    let mut kinds: Vec<(&str, f64, f64)> = Vec::new();
    for fault in faults {
        let (what, met) = (fault["fault"]["what"].as_str().unwrap_or("unknown"), fault["met"].as_f64().unwrap_or(0.0));
        match kinds.iter_mut().find(|(known, ..)| *known == what) {
            Some((_, count, all_met)) => (*count, *all_met) = (*count + 1.0, *all_met + met),
            None => kinds.push((what, 1.0, met)),
        }
    }
    text.head("active_faults", "gauge", "Active faults.");
    text.sample("active_faults", &[], faults.len() as f64);
    if kinds.is_empty() {
        return;
    }
    text.head("fault_active", "gauge", "Active faults by kind.");
    kinds.iter().for_each(|(what, count, _)| text.sample("fault_active", &[("what", what)], *count));
    text.head("fault_met_requests", "gauge", "Requests that met active faults, by kind.");
    kinds.iter().for_each(|(what, _, met)| text.sample("fault_met_requests", &[("what", what)], *met));
}

fn seconds(ns: f64) -> f64 {
    ns / 1e9
}

fn truth(is_so: bool) -> f64 {
    f64::from(u8::from(is_so))
}

/// Text of the metrics, each name once.
struct Text(String);

/// Bounds of a histogram in the output: 1, 2.5 and 5 of each decade from 10 us on.
fn histogram_bounds() -> impl Iterator<Item = usize> {
    (20..BOUNDS_NS.len()).filter(|bound| [0, 8, 14].contains(&(bound % 20)))
}

impl Text {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        self.write(format_args!("# HELP headstack_{name} {help}\n# TYPE headstack_{name} {kind}\n"));
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let labels: Vec<String> =
            labels.iter().map(|(label, value)| format!("{label}=\"{}\"", escaped(value))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        self.write(format_args!("headstack_{name}{labels} {value}\n"));
    }

    /// A figure that may be absent.
    fn gauge(&mut self, name: &str, help: &str, value: Option<f64>) {
        if let Some(value) = value {
            self.head(name, "gauge", help);
            self.sample(name, &[], value);
        }
    }

    /// A figure for each of several named things.
    fn each(&mut self, name: &str, help: &str, label: &str, things: &[Value], figure: impl Fn(&Value) -> Option<f64>) {
        let figures: Vec<_> =
            things.iter().filter_map(|thing| Some((thing["name"].as_str()?, figure(thing)?))).collect();
        if !figures.is_empty() {
            self.head(name, "gauge", help);
            figures.iter().for_each(|(thing, value)| self.sample(name, &[(label, thing)], *value));
        }
    }

    /// States of several named things.
    fn states(&mut self, name: &str, help: &str, label: &str, things: &[Value]) {
        if !things.is_empty() {
            self.head(name, "gauge", help);
        }
        for thing in things {
            if let (Some(thing_name), Some(state)) = (thing["name"].as_str(), thing["state"].as_str()) {
                self.sample(name, &[(label, thing_name), ("state", state)], 1.0);
            }
        }
    }

    fn histogram(&mut self, name: &str, labels: &[(&str, &str)], buckets: &Buckets) {
        for bound in histogram_bounds() {
            let le = seconds(BOUNDS_NS[bound] as f64).to_string();
            let labels = [labels, &[("le", &le)]].concat();
            self.sample(&format!("{name}_bucket"), &labels, buckets.at_most(bound) as f64);
        }
        self.sample(&format!("{name}_bucket"), &[labels, &[("le", "+Inf")]].concat(), buckets.count() as f64);
        self.sample(&format!("{name}_sum"), labels, buckets.sum_ns() as f64 / 1e9);
        self.sample(&format!("{name}_count"), labels, buckets.count() as f64);
    }

    fn write(&mut self, text: fmt::Arguments<'_>) {
        self.0.write_fmt(text).expect("strings take everything");
    }
}

/// Escapes a label's value.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
