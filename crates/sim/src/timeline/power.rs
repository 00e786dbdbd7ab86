//! [`Power`]: whether the system of a timeline has power, and how often it failed.

use crate::description::model::Model;
use crate::power_cut::atom_bytes;

/// Whether there is power.
#[derive(Debug)]
pub struct Power {
    /// Since when; `None` while there is none.
    pub on_since_ns: Option<u64>,
    pub cuts: u32,
    /// Times that something was taken back: at cuts, and by flushes that drop what they should keep.
    pub losses: u32,
    /// The last of them, by its number in the log.
    pub last_loss: Option<u32>,
    /// Bytes that are written as a whole or not at all.
    pub atom_bytes: u64,
}

impl Power {
    /// There is, from the start.
    pub fn of(model: &Model) -> Power {
        let atom_bytes = match model {
            Model::System(description) => atom_bytes(description),
            Model::Constant(_) => 512,
        };
        Power { on_since_ns: Some(0), cuts: 0, losses: 0, last_loss: None, atom_bytes }
    }

    /// There is.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.on_since_ns.is_some()
    }

    /// There is, and there was at `at_ns`: what came before is not a request.
    #[inline]
    pub fn is_on_since(&self, at_ns: u64) -> bool {
        self.on_since_ns.is_some_and(|since_ns| since_ns <= at_ns)
    }
}
