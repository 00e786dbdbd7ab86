//! Descriptions of the layers that only delay requests: the limits of an instance, and a network.

use serde::{Deserialize, Serialize};

use crate::description::volume::{Accounting, Limit, check_limits};
use crate::error::{InvalidDescription, require};

/// Limits of a cloud instance on all its volumes together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InstanceLimitDescription {
    /// How requests are counted.
    pub accounting: Accounting,
    /// Limits; all of them apply.
    pub limits: Vec<Limit>,
}

/// A network to a target on another host.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkDescription {
    /// Time of a message without payload to the target and back, without the processor time below.
    pub round_trip_ns: u64,
    /// Payload rate of each direction, in bytes per second.
    pub bytes_per_s: u64,
    /// Most requests without an answer.
    pub window: u32,
    /// Processor time of a request at the initiator.
    pub initiator_ns: u64,
    /// Cores of the initiator that send requests.
    pub initiator_cores: u32,
    /// Processor time of a request on a single core of the target.
    pub target_core_ns: u64,
    /// Cores of the target that take requests.
    pub target_cores: u32,
    /// Part of the processor time by which each further core lengthens that of every core, because they share locks
    /// and queues.
    pub target_serial_share: f64,
    /// Longest write that is sent without permission of the target; `None` if every write is.
    pub unsolicited_bytes: Option<u32>,
    /// Bytes that one permission allows.
    pub burst_bytes: u32,
}

impl NetworkDescription {
    /// Returns the time that a payload occupies one direction.
    pub fn wire_ns(&self, bytes: u64) -> u64 {
        let rate = u128::from(self.bytes_per_s);
        ((u128::from(bytes) * 1_000_000_000 + rate / 2) / rate) as u64
    }

    /// Returns the processor time of a request at the target with all its cores in use.
    pub fn target_ns(&self) -> u64 {
        let further = f64::from(self.target_cores.saturating_sub(1));
        (self.target_core_ns as f64 * (1.0 + self.target_serial_share * further) + 0.5) as u64
    }

    /// Returns the number of permissions for which a write of this length waits.
    pub fn permits(&self, bytes: u64) -> u64 {
        match self.unsolicited_bytes {
            Some(unsolicited) if bytes > u64::from(unsolicited) => {
                (bytes - u64::from(unsolicited)).div_ceil(u64::from(self.burst_bytes))
            }
            Some(_) | None => 0,
        }
    }
}

pub(super) fn check_instance(limit: &InstanceLimitDescription) -> Result<(), InvalidDescription> {
    require(!limit.limits.is_empty(), "instance.limits", || "no limit; at least one is needed".to_owned())?;
    check_limits(&limit.limits, "instance.limits")
}

pub(super) fn check_network(network: &NetworkDescription) -> Result<(), InvalidDescription> {
    let at_least_1 = |value: u64, key: &str| {
        require(value >= 1, &format!("network.{key}"), || format!("{value} is out of range; must be 1 or more"))
    };
    at_least_1(network.bytes_per_s, "rate")?;
    at_least_1(u64::from(network.window), "window")?;
    at_least_1(u64::from(network.initiator_cores), "initiator_cores")?;
    at_least_1(u64::from(network.target_cores), "target_cores")?;
    at_least_1(u64::from(network.burst_bytes), "burst")?;
    require((0.0..=1.0).contains(&network.target_serial_share), "network.target_serial_share", || {
        format!("{} is out of range; must be 0 to 1", network.target_serial_share)
    })
}
