//! [`Order`]: orders to a running session from the control socket and from programs, and their answers.

use headstack_sim::faults::{Fault, Trigger};
use headstack_workload::DurationNs;
use serde::{Deserialize, Serialize};

/// An order to the clock thread, which executes it between two events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Order {
    /// Returns the state: the system's gauges and the session's own figures.
    Status,
    /// Injects a fault now. The answer has its number in the log and the time at which it struck.
    Inject {
        /// The fault.
        fault: Fault,
        /// Duration; if absent, until it is cleared.
        #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
        lasts: Option<DurationNs>,
        /// Which requests trigger it, from now on, or are affected; all if absent.
        #[serde(default, skip_serializing_if = "is_default")]
        when: Box<Trigger>,
    },
    /// Reads and compares every stripe of an array's group, like `inject scrub`.
    Scrub {
        /// Name of the group; the only one if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        group: Option<String>,
        /// Whether redundancy that differs is rewritten from the data.
        #[serde(default)]
        repair: bool,
    },
    /// Ends all hangs and answers the requests that they hold.
    Release,
    /// Ends a fault: the one with this number in the log, or all.
    Clear {
        /// Number of the fault.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        number: Option<u32>,
    },
    /// Returns the output of `smartctl -j -a` for each device.
    Smart,
    /// Returns the injected faults, each with its proof, and as a schedule file.
    Injections,
}

fn is_default(when: &Trigger) -> bool {
    *when == Trigger::default()
}
