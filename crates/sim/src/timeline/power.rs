//! [`Power`]: the power state of a timeline's system, and the losses so far.

use crate::description::model::Model;
use crate::power_cut::atom_bytes;

/// Power state.
#[derive(Debug)]
pub struct Power {
    /// Time since which power is on; `None` while it is off.
    pub on_since_ns: Option<u64>,
    pub cuts: u32,
    /// Number of losses so far, from power cuts and from flushes that dropped data.
    pub losses: u32,
    /// Number of the last loss in the fault log.
    pub last_loss: Option<u32>,
    /// Number of bytes that are written atomically.
    pub atom_bytes: u64,
}

impl Power {
    /// Returns the initial state: power on.
    pub fn of(model: &Model) -> Power {
        let atom_bytes = match model {
            Model::System(description) => atom_bytes(description),
            Model::Constant(_) => 512,
        };
        Power { on_since_ns: Some(0), cuts: 0, losses: 0, last_loss: None, atom_bytes }
    }

    /// Whether power is on.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.on_since_ns.is_some()
    }

    /// Whether power is on, and has been since `at_ns` or earlier. Requests from before power returned are ignored.
    #[inline]
    pub fn is_on_since(&self, at_ns: u64) -> bool {
        self.on_since_ns.is_some_and(|since_ns| since_ns <= at_ns)
    }
}
