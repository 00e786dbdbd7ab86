//! What may be asked of a session while it runs: orders, as the control socket and programs give them, and their answers.

use headstack_sim::faults::{Fault, Trigger};
use headstack_workload::DurationNs;
use serde::{Deserialize, Serialize};

/// An order to the clock thread, which carries it out between two events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Order {
    /// What is going on: the system's gauges and the session's own figures.
    Status,
    /// Something goes wrong, now. The answer has its number in the log and the time at which it struck.
    Inject {
        /// What.
        fault: Fault,
        /// How long it lasts; until it is ended, where nothing is said.
        #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
        lasts: Option<DurationNs>,
        /// Which requests make it strike, from now on, or meet it; all, where nothing is said.
        #[serde(default, skip_serializing_if = "is_default")]
        when: Box<Trigger>,
    },
    /// Hangs end: all of them, and what they hold is answered.
    Release,
    /// A fault ends: the one of this number in the log, or all.
    Clear {
        /// Which.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        number: Option<u32>,
    },
    /// What `smartctl -j -a` would say of each device.
    Smart,
    /// What was injected so far, each with its proof, and as a schedule file.
    Injections,
}

fn is_default(when: &Trigger) -> bool {
    *when == Trigger::default()
}
