//! What goes wrong, when, and the proof that it did.

use headstack_sim::array::description::IncidentKind;
use serde::{Deserialize, Serialize};

use crate::power::PowerCut;

/// Something that goes wrong, or is put right.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Fault {
    /// Something happens to an array.
    Incident {
        /// What.
        incident: IncidentKind,
    },
    /// Power fails.
    PowerCut(PowerCut),
    /// It is back.
    PowerOn,
}

/// A fault that struck, with its proof.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Injection {
    /// When, in nanoseconds of the model.
    pub at_ns: u64,
    /// What.
    pub fault: Fault,
    /// What came of it so far: requests that met it, by what they were made to do.
    pub met: u64,
}
