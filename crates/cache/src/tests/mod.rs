//! Compares each policy with a model of it that searches lists, and with sequences worked out by hand.

mod models;

use std::sync::Arc;

use proptest::prelude::*;

use crate::{Belady, CachePolicy, Future, Policy, Replacement};
use models::model;

/// A cache whose ids are the keys themselves.
struct Cache<P> {
    policy: P,
    capacity: u64,
    held: Vec<u32>,
}

impl Cache<Replacement> {
    fn new(policy: CachePolicy, capacity: u64) -> Self {
        Cache { policy: Replacement::new(policy, capacity, false), capacity, held: Vec::new() }
    }
}

impl<P: Policy> Cache<P> {
    /// Uses an item of this weight; returns true for a hit.
    fn used(&mut self, id: u32, weight: u32, weights: impl Fn(u32) -> u32) -> bool {
        assert_eq!(self.policy.holds(id), self.held.contains(&id));
        if self.policy.holds(id) {
            self.policy.hit(id);
            return true;
        }
        self.policy.recall(id);
        while self.held.iter().map(|&id| u64::from(weights(id))).sum::<u64>() + u64::from(weight) > self.capacity {
            let gone = self.policy.replace();
            let place = self.held.iter().position(|&id| id == gone).expect("only what is held goes");
            self.held.swap_remove(place);
        }
        self.policy.admit(id, weight, u64::from(id));
        self.held.push(id);
        false
    }
}

/// Returns the hits of a sequence, and the final contents.
fn hits(policy: CachePolicy, capacity: u64, ids: &[u32]) -> (Vec<bool>, Vec<u32>) {
    let mut cache = Cache::new(policy, capacity);
    let hits = ids.iter().map(|&id| cache.used(id, 1, |_| 1)).collect();
    cache.held.sort_unstable();
    (hits, cache.held)
}

fn belady_hits(capacity: u64, ids: &[u32]) -> Vec<bool> {
    let ids_end = ids.iter().max().map_or(0, |&most| most as usize + 1);
    let future = Arc::new(Future::new(ids.to_vec(), ids_end));
    let mut cache = Cache { policy: Belady::new(future), capacity, held: Vec::new() };
    let used = |(number, &id): (usize, &u32)| {
        cache.policy.is_at(number);
        cache.used(id, 1, |_| 1)
    };
    ids.iter().enumerate().map(used).collect()
}

/// A cache of three sees A B C, A again, D, and A once more: FIFO's descendants spare A and lose B, and differ
/// afterwards.
#[test]
fn each_policy_evicts_its_own_victim() {
    let (a, b, c, d, e) = (1, 2, 3, 4, 5);
    let held = |policy, keys: &[u32]| hits(policy, 3, keys).1;
    for policy in CachePolicy::ALL {
        assert_eq!(held(policy, &[a, b, c]), [a, b, c], "{policy:?}");
    }
    assert_eq!(held(CachePolicy::Lru, &[a, b, c, a, d, e]), [a, d, e]);
    assert_eq!(held(CachePolicy::Fifo, &[a, b, c, a, d, e]), [c, d, e]);
    // The hand spared A, evicted B, and points at C next.
    assert_eq!(held(CachePolicy::Clock, &[a, b, c, a, d, e]), [a, d, e]);
    // A is forgotten as soon as the hand has passed it: CLOCK evicts A before D and E, SIEVE examines the new ones
    // first.
    assert_eq!(held(CachePolicy::Clock, &[a, b, c, a, d, e, 6]), [d, e, 6]);
    assert_eq!(held(CachePolicy::Sieve, &[a, b, c, a, d, e, 6]), [a, e, 6]);
    // A was used again and is on the other list, which new ones do not touch.
    assert_eq!(held(CachePolicy::Arc, &[a, b, c, a, d, e, 6, 7, 8]), [a, 7, 8]);
    // A was used twice after its admission, and moves to the main queue; B, C, D and E pass through the small one.
    assert_eq!(held(CachePolicy::S3Fifo, &[a, b, c, a, a, d, e, 6, 7]), [a, 6, 7]);
    // Two may be LIR, and were the first two: later ones pass through the room of one.
    assert_eq!(held(CachePolicy::Lirs, &[a, b, c, d, e, 6]), [a, b, 6]);
    // A use in the queue changes nothing, and none comes back.
    assert_eq!(held(CachePolicy::TwoQ, &[a, b, c, a, d, e]), [c, d, e]);
    // The least often used is evicted, and of two the first admitted.
    assert_eq!(held(CachePolicy::Lfu, &[a, a, b, b, c, d, e]), [a, b, e]);
}

/// A scan of items that are not used again spares items in use, except under policies that ignore uses or track only
/// one.
#[test]
fn scans_spare_items_in_use() {
    let kept = |policy| {
        let warm = (0..4).flat_map(|_| 0..20u32);
        let keys: Vec<u32> = warm.chain(1000..1200).chain(0..20).collect();
        hits(policy, 50, &keys).0[280..].iter().filter(|&&hit| hit).count()
    };
    // Three segments of SLRU are above the one that new ids pass through, and 25 % of 50 is 12. The filter of so small
    // a cache confuses some of 220 keys, so W-TinyLFU evicts some items in use.
    assert_eq!(CachePolicy::ALL.map(kept), [0, 0, 0, 20, 20, 20, 20, 0, 12, 20, 11]);
}

fn some_ids() -> impl Strategy<Value = Vec<u32>> {
    prop::collection::vec(prop_oneof![0u32..8, 0u32..30, 0u32..100], 1..600)
}

/// Returns the most hits of any eviction choices, by trying all.
fn most_hits(capacity: usize, held: &[u32], ids: &[u32]) -> usize {
    let Some((&id, rest)) = ids.split_first() else { return 0 };
    if held.contains(&id) {
        return 1 + most_hits(capacity, held, rest);
    }
    if held.len() < capacity {
        return most_hits(capacity, &[held, &[id]].concat(), rest);
    }
    let without = |gone: usize| {
        let mut held = held.to_vec();
        held[gone] = id;
        most_hits(capacity, &held, rest)
    };
    (0..held.len()).map(without).max().unwrap_or(0)
}

proptest! {
    #[test]
    fn hits_are_those_of_the_model(capacity in 1u64..25, ids in some_ids()) {
        for policy in CachePolicy::ALL {
            let mut model = model(policy, capacity as usize);
            let expected: Vec<bool> = ids.iter().map(|&id| model.used(id)).collect();
            prop_assert_eq!(hits(policy, capacity, &ids).0, expected, "{:?}", policy);
        }
    }

    #[test]
    fn belady_has_the_highest_hit_rate(
        capacity in 1u64..4,
        ids in prop::collection::vec(0u32..7, 1..14),
    ) {
        let hits = belady_hits(capacity, &ids).into_iter().filter(|&hit| hit).count();
        prop_assert_eq!(hits, most_hits(capacity as usize, &[], &ids));
    }

    /// A larger cache holds everything that a smaller one does: Belady's policy and LRU are stack algorithms.
    #[test]
    fn more_room_never_loses_a_hit(capacity in 1u64..25, ids in some_ids()) {
        for hits in [|n, ids: &[u32]| belady_hits(n, ids), |n, ids: &[u32]| hits(CachePolicy::Lru, n, ids).0] {
            let (small, large) = (hits(capacity, &ids), hits(capacity + 1, &ids));
            prop_assert!(small.iter().zip(&large).all(|(small, large)| large >= small));
        }
    }

    /// For any weights and pins, only evictable ids are evicted, and room is found.
    #[test]
    fn what_must_stay_stays(
        capacity in 20u64..60,
        steps in prop::collection::vec((0u32..60, 0u8..6), 1..500),
    ) {
        let weights = |id: u32| 1 + id % 5;
        for policy in CachePolicy::ALL {
            let mut cache = Cache::new(policy, capacity);
            let mut kept: Vec<u32> = Vec::new();
            for &(id, step) in &steps {
                let stays = kept.iter().map(|&id| u64::from(weights(id))).sum::<u64>();
                match step {
                    0 if cache.policy.holds(id) && !kept.contains(&id) => {
                        cache.policy.keep(id);
                        kept.push(id);
                    }
                    1 if kept.contains(&id) => {
                        cache.policy.release(id);
                        kept.retain(|&other| other != id);
                    }
                    2 if cache.policy.holds(id) && !kept.contains(&id) => {
                        cache.policy.discard(id);
                        cache.held.retain(|&other| other != id);
                    }
                    _ if stays + 5 <= capacity || cache.policy.holds(id) => {
                        cache.used(id, weights(id), weights);
                    }
                    _ => {}
                }
                prop_assert!(kept.iter().all(|&id| cache.policy.holds(id)), "{:?}", policy);
            }
        }
    }

    /// Forgotten ids are reported, each once, and never cached ones.
    #[test]
    fn forgotten_ids_are_reported(capacity in 1u64..25, ids in some_ids()) {
        for policy in CachePolicy::ALL {
            let policy_of = Replacement::new(policy, capacity, true);
            let mut cache = Cache { policy: policy_of, capacity, held: Vec::new() };
            let mut known: Vec<u32> = Vec::new();
            for &id in &ids {
                if !known.contains(&id) {
                    known.push(id);
                }
                cache.used(id, 1, |_| 1);
                while let Some(forgotten) = cache.policy.nodes().next_forgotten() {
                    prop_assert!(!cache.policy.holds(forgotten), "{:?}", policy);
                    let place = known.iter().position(|&id| id == forgotten);
                    known.swap_remove(place.expect("it was known"));
                }
                prop_assert!(known.len() as u64 <= 3 * capacity, "{:?} remembers {}", policy, known.len());
            }
        }
    }
}
