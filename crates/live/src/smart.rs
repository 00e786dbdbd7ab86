//! What smartctl would say.
use crate::timeline::Model;
use headstack_sim::faults::DeviceHealth;
use serde_json::Value;
pub(crate) fn reports(_model: &Model, _devices: &[DeviceHealth], _resent: u64, _now_ns: u64) -> Vec<Value> {
    Vec::new()
}
