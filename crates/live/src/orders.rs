//! [`Order`]: orders to a running session, from the control socket and from programs, and their answers.

use headstack_sim::faults::{Fault, Trigger};
use headstack_workload::DurationNs;
use serde::{Deserialize, Serialize};

/// An order to the clock thread, which executes it between two events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Order {
    /// Returns the state: the system's gauges and the session's own figures.
    Status,
    /// Injects a fault now. The answer contains its number in the log and the time at which it took effect.
    Inject {
        /// The fault.
        fault: Fault,
        /// Duration of the fault; if absent, it lasts until it is cleared.
        #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
        lasts: Option<DurationNs>,
        /// Condition that triggers the fault, or selects the affected requests; all requests if absent.
        #[serde(default, skip_serializing_if = "is_default")]
        when: Box<Trigger>,
    },
    /// Reads and compares every stripe of an array's group, like `inject scrub`.
    Scrub {
        /// Name of the group; may be absent if there is only one group.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        group: Option<String>,
        /// Whether differing redundancy is rewritten from the data.
        #[serde(default)]
        repair: bool,
    },
    /// Ends all hangs and answers the requests that hang.
    Release,
    /// Ends the fault with this number in the log, or all faults if absent.
    Clear {
        /// Number of the fault.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        number: Option<u32>,
    },
    /// Returns the output of `smartctl -j -a` for each device.
    Smart,
    /// Returns the injected faults with their evidence, and as a schedule file.
    Injections,
}

fn is_default(when: &Trigger) -> bool {
    *when == Trigger::default()
}
