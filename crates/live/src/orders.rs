//! What may be asked of a session while it runs: orders, as the control socket and programs give them, and their answers.

use serde::{Deserialize, Serialize};

use crate::faults::Fault;

/// An order to the clock thread, which carries it out between two events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Order {
    /// What is going on: the system's gauges and the session's own figures.
    Status,
    /// Something goes wrong, now.
    Inject {
        /// What.
        fault: Fault,
    },
    /// What `smartctl -j` would say of each device.
    Smart,
    /// What was injected so far, each with its proof.
    Injections,
}
