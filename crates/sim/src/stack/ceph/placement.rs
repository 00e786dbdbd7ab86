//! [`Placement`]: which OSDs hold an object, and where.
//!
//! Ceph hashes objects to placement groups and these to OSDs (CRUSH), which loads OSDs unevenly. Here each *round* of
//! consecutive objects, one for each OSD, is permuted pseudo-randomly, so that each OSD is primary of exactly one
//! object of a round and holds exactly one copy or shard of each number. The load is even by construction, and no map
//! is needed.

use crate::description::stack::{CephDescription, OsdLayout};

/// Places of objects.
#[derive(Clone, Debug)]
pub(super) struct Placement {
    osds: u64,
    /// Units on which copies differ, and OSDs in each.
    domains: u64,
    per_domain: u64,
    width: u64,
    pub layout: OsdLayout,
    /// Multipliers coprime to the number of OSDs.
    multipliers: Vec<u64>,
}

/// Mixes a number to 64 pseudo-random bits (SplitMix64).
pub(super) fn mix(number: u64) -> u64 {
    let z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

impl Placement {
    /// Creates the placement of a cluster whose devices have these sizes.
    pub fn new(ceph: &CephDescription, below_bytes: &[u64]) -> Placement {
        let osds = u64::from(ceph.osds);
        let domains = u64::from(ceph.domains());
        Placement {
            osds,
            domains,
            per_domain: osds / domains,
            width: u64::from(ceph.redundancy.width()),
            layout: ceph.layout(below_bytes),
            multipliers: (1..=osds.max(2)).filter(|&factor| greatest_common_divisor(factor, osds) == 1).collect(),
        }
    }

    /// Returns the OSD of a copy or shard of an object.
    pub fn osd(&self, object: u64, shard: u32) -> u32 {
        let (round, at) = (object / self.osds, object % self.osds);
        let random = mix(round);
        let multiplier = self.multipliers[(random % self.multipliers.len() as u64) as usize];
        // The primaries of a round: a permutation of the OSDs.
        let primary = (at * multiplier + (random >> 16) % self.osds) % self.osds;
        if shard == 0 {
            return primary as u32;
        }
        // Copies are in other domains, at distances that differ for each round; the map to each copy is a permutation.
        let (domain, index) = (primary / self.per_domain, primary % self.per_domain);
        let first = (random >> 32) % (self.domains - 1).max(1);
        let distance = 1 + (first + u64::from(shard) - 1) % (self.domains - 1).max(1);
        let shift = mix(random ^ u64::from(shard)) % self.per_domain;
        let domain = (domain + distance) % self.domains;
        (domain * self.per_domain + (index + shift) % self.per_domain) as u32
    }

    /// Returns the first byte of a copy or shard on the data device of its OSD.
    pub fn start(&self, object: u64, shard: u32) -> u64 {
        self.layout.slot_start(object / self.osds * self.width + u64::from(shard))
    }

    /// Returns the first slot of an OSD without data of an image with `objects` objects.
    pub fn first_free_slot(&self, objects: u64) -> u64 {
        objects.div_ceil(self.osds) * self.width
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn placement(osds: u64, domains: u64, width: u64) -> Placement {
        Placement {
            osds,
            domains,
            per_domain: osds / domains,
            width,
            layout: OsdLayout {
                slots: 1 << 20,
                slot_bytes: 4 << 20,
                behind_log: u64::MAX,
                log_start_bytes: 0,
                log_stride_bytes: 0,
                log_bytes: 0,
            },
            multipliers: (1..=osds.max(2)).filter(|&factor| greatest_common_divisor(factor, osds) == 1).collect(),
        }
    }

    /// Copies are on different domains, places are unique, and every OSD has the same number of copies of each number.
    #[test]
    fn objects_are_even_and_on_different_domains() {
        for (osds, domains, width) in [(60, 10, 3), (12, 6, 6), (4, 4, 3), (1, 1, 1), (7, 7, 5)] {
            let placement = placement(osds, domains, width);
            let mut places = HashSet::new();
            let mut held = vec![0; (osds * width) as usize];
            for object in 0..20 * osds {
                let mut used = HashSet::new();
                for shard in 0..width as u32 {
                    let osd = placement.osd(object, shard);
                    assert!(used.insert(u64::from(osd) / placement.per_domain), "object {object}");
                    assert!(places.insert((osd, placement.start(object, shard))), "object {object}");
                    held[osd as usize * width as usize + shard as usize] += 1;
                }
            }
            assert!(held.iter().all(|&objects| objects == 20), "{held:?}");
        }
    }
}
