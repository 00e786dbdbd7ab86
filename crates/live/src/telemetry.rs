//! What a session tells of itself while it runs.

use std::fmt::Write;

use headstack_workload::Kind;
use serde_json::Value;

/// Prometheus' text of what [`Order::Status`](crate::Order::Status) answers. Figures of time are in seconds, of the model
/// but for lateness and floor, which are of the wall.
pub fn prometheus(status: &Value) -> String {
    let mut text = String::new();
    let seconds = |value: &Value| value.as_f64().unwrap_or(0.0) / 1e9;
    let fidelity = &status["fidelity"];
    gauge(&mut text, "model_seconds", "Time of the model since the start.", seconds(&status["model_ns"]));
    gauge(&mut text, "outstanding_requests", "Requests under way.", status["outstanding"].as_f64().unwrap_or(0.0));
    gauge(&mut text, "floor_seconds", "What the path costs, taken into account.", seconds(&fidelity["floor_ns"]));
    header(&mut text, "lateness_seconds", "Answers later than the model said.", "summary");
    for (quantile, key) in [("0.5", "lateness_p50_ns"), ("0.99", "lateness_p99_ns"), ("0.999", "lateness_p999_ns")] {
        line(&mut text, "lateness_seconds", &format!("quantile=\"{quantile}\""), seconds(&fidelity[key]));
    }
    line(&mut text, "lateness_seconds_count", "", fidelity["requests"].as_f64().unwrap_or(0.0));
    for (name, help, key, unit) in [
        ("requests_total", "Requests answered.", "requests", 1.0),
        ("bytes_total", "Bytes of requests answered.", "bytes", 1.0),
        ("response_seconds_total", "Response times of the model, added up.", "response_ns", 1e-9),
        ("failed_total", "Requests that were failed.", "failed", 1.0),
    ] {
        header(&mut text, name, help, "counter");
        for kind in Kind::ALL {
            let count = status["kinds"][kind.name()][key].as_f64().unwrap_or(0.0);
            line(&mut text, name, &format!("kind=\"{}\"", kind.name()), count * unit);
        }
    }
    devices(&mut text, &status["gauges"]["devices"]);
    groups(&mut text, &status["gauges"]["groups"]);
    cache(&mut text, &status["gauges"]["cache"]);
    text
}

fn devices(text: &mut String, devices: &Value) {
    let Some(devices) = devices.as_array() else {
        return;
    };
    for (name, help, key) in [
        ("device_queue", "Commands in the device.", "queue"),
        ("device_cylinder", "Where its arm is.", "cylinder"),
        ("device_dirty_bytes", "Written, not yet on its media.", "dirty_bytes"),
    ] {
        header(text, name, help, "gauge");
        for device in devices {
            if let (Some(device_name), Some(value)) = (device["name"].as_str(), device[key].as_f64()) {
                line(text, name, &format!("device=\"{}\"", escaped(device_name)), value);
            }
        }
    }
}

fn groups(text: &mut String, groups: &Value) {
    let Some(groups) = groups.as_array().filter(|groups| !groups.is_empty()) else {
        return;
    };
    header(text, "group_rebuilt_bytes", "What a rebuild has brought back.", "gauge");
    for group in groups {
        if let (Some(name), Some(bytes)) = (group["name"].as_str(), group["rebuilt_bytes"].as_f64()) {
            line(text, "group_rebuilt_bytes", &format!("group=\"{}\"", escaped(name)), bytes);
        }
    }
}

fn cache(text: &mut String, cache: &Value) {
    if let (Some(bytes), Some(dirty)) = (cache["bytes"].as_f64(), cache["dirty_bytes"].as_f64()) {
        gauge(text, "cache_bytes", "The controller's cache.", bytes);
        gauge(text, "cache_dirty_bytes", "Written, not yet on the members.", dirty);
    }
}

fn gauge(text: &mut String, name: &str, help: &str, value: f64) {
    header(text, name, help, "gauge");
    line(text, name, "", value);
}

fn header(text: &mut String, name: &str, help: &str, kind: &str) {
    writeln!(text, "# HELP headstack_{name} {help}\n# TYPE headstack_{name} {kind}").expect("strings take everything");
}

fn line(text: &mut String, name: &str, labels: &str, value: f64) {
    let labels = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
    writeln!(text, "headstack_{name}{labels} {value}").expect("strings take everything");
}

/// A label's value, which may have anything in it.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
