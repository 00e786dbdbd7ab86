//! Values derived from the description of an array: shape and capacity of a [`Group`], and speed and phase of each of
//! the [`Spindles`].

use headstack_workload::{Purpose, Random};

use super::levels::Shape;
use crate::description::array::{Group, Spindles};
use crate::drive::mechanics::SpindleVariation;

impl Group {
    /// Returns the shape of the group, which determines its layout.
    pub fn shape(&self) -> Shape {
        Shape {
            members: self.members.len() as u64,
            spans: u64::from(self.spans),
            unit_bytes: self.chunk_bytes,
            member_bytes: self.member_bytes,
            record_bytes: self.record_bytes,
            rotation: self.rotation,
            small_writes: self.small_writes,
            is_pooled: self.pool.is_some(),
        }
    }

    /// Returns the number of bytes that the group exports; for a pool, the number with all segments mirrored.
    pub fn capacity_bytes(&self) -> u64 {
        match &self.pool {
            Some(pool) => pool.mirrored_bytes(),
            None => self.level.capacity_bytes(&self.shape()),
        }
    }
}

impl Spindles {
    /// Returns an endless sequence of spindle phases and speeds, for members 0, 1, ... They depend only on the seed of
    /// the run.
    pub fn variations(self, seed: u64) -> impl Iterator<Item = SpindleVariation> {
        let mut random = Random::new(seed, Purpose::Spindle);
        std::iter::repeat_with(move || {
            let (phase, deviation) = (random.bits(), 2.0 * random.fraction() - 1.0);
            if self.synchronized {
                SpindleVariation { phase: 0, speed: 1.0 }
            } else {
                SpindleVariation { phase, speed: 1.0 + self.speed_tolerance * deviation }
            }
        })
    }
}
