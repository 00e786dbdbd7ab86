//! Each policy against a model of it that searches lists, and against sequences worked by hand.

use proptest::prelude::*;

use crate::array::cache::directory::Directory;
use crate::array::description::CachePolicy;

/// Uses a page of the cache, which reads it where it is missing; true if it was there.
fn used(directory: &mut Directory, key: u64) -> bool {
    if let Some(slot) = directory.find(key) {
        directory.touch(slot);
        return true;
    }
    let slot = directory.find_or_take(key).expect("all pages can go");
    directory.fill(slot, 1);
    directory.filled(slot, 1);
    false
}

/// The keys of a sequence that were there, and what is there in the end.
fn hits(policy: CachePolicy, pages: u32, keys: &[u64]) -> (Vec<bool>, Vec<u64>) {
    let mut directory = Directory::new(pages, policy);
    let hits = keys.iter().map(|&key| used(&mut directory, key)).collect();
    let mut held: Vec<u64> = directory.pages().map(|page| page.key).collect();
    held.sort_unstable();
    (hits, held)
}

/// The model of a policy: what is used, and whether it was there. Lists are oldest first.
trait Model {
    fn used(&mut self, key: u64) -> bool;
}

fn take(list: &mut Vec<u64>, key: u64) -> bool {
    let found = list.iter().position(|&other| other == key);
    found.map(|at| list.remove(at)).is_some()
}

struct Lru(usize, Vec<u64>);

impl Model for Lru {
    fn used(&mut self, key: u64) -> bool {
        let hit = take(&mut self.1, key);
        if !hit && self.1.len() == self.0 {
            self.1.remove(0);
        }
        self.1.push(key);
        hit
    }
}

/// A ring of (key, used) with a hand that is an index, as the textbook draws it.
struct Clock(usize, Vec<(u64, bool)>, usize);

impl Model for Clock {
    fn used(&mut self, key: u64) -> bool {
        if let Some(page) = self.1.iter_mut().find(|page| page.0 == key) {
            page.1 = true;
            return true;
        }
        if self.1.len() < self.0 {
            self.1.push((key, false));
            return false;
        }
        while self.1[self.2].1 {
            self.1[self.2].1 = false;
            self.2 = (self.2 + 1) % self.0;
        }
        self.1[self.2] = (key, false);
        self.2 = (self.2 + 1) % self.0;
        false
    }
}

struct Sieve(usize, Vec<(u64, bool)>, Option<u64>);

impl Model for Sieve {
    fn used(&mut self, key: u64) -> bool {
        if let Some(page) = self.1.iter_mut().find(|page| page.0 == key) {
            page.1 = true;
            return true;
        }
        if self.1.len() == self.0 {
            let mut at = self.2.map_or(0, |hand| self.1.iter().position(|page| page.0 == hand).unwrap());
            while self.1[at].1 {
                self.1[at].1 = false;
                at = (at + 1) % self.0;
            }
            self.2 = self.1.get(at + 1).map(|page| page.0);
            self.1.remove(at);
        }
        self.1.push((key, false));
        false
    }
}

#[derive(Default)]
struct S3Fifo {
    pages: usize,
    small: Vec<(u64, u8)>,
    main: Vec<(u64, u8)>,
    ghosts: Vec<u64>,
}

impl S3Fifo {
    fn small_pages(&self) -> usize {
        (self.pages / 10).max(1)
    }

    fn evict_main(&mut self) {
        loop {
            let (key, uses) = self.main.remove(0);
            if uses == 0 {
                return;
            }
            self.main.push((key, uses - 1));
        }
    }

    fn evict(&mut self) {
        if self.small.len() < self.small_pages() && !self.main.is_empty() {
            return self.evict_main();
        }
        while !self.small.is_empty() {
            let (key, uses) = self.small.remove(0);
            if uses < 2 {
                self.ghosts.push(key);
                if self.ghosts.len() > self.pages - self.small_pages() {
                    self.ghosts.remove(0);
                }
                return;
            }
            self.main.push((key, 0));
            if self.main.len() > self.pages - self.small_pages() {
                break;
            }
        }
        self.evict_main();
    }
}

impl Model for S3Fifo {
    fn used(&mut self, key: u64) -> bool {
        if let Some(page) = self.small.iter_mut().chain(&mut self.main).find(|page| page.0 == key) {
            page.1 = (page.1 + 1).min(3);
            return true;
        }
        if self.small.len() + self.main.len() == self.pages {
            self.evict();
        }
        if take(&mut self.ghosts, key) {
            self.main.push((key, 0))
        } else {
            self.small.push((key, 0))
        }
        false
    }
}

/// Figure 4 of the paper, line by line.
#[derive(Default)]
struct Arc {
    c: usize,
    p: usize,
    t1: Vec<u64>,
    t2: Vec<u64>,
    b1: Vec<u64>,
    b2: Vec<u64>,
}

impl Arc {
    fn replace(&mut self, in_b2: bool) {
        let t1 = self.t1.len();
        if t1 >= 1 && (t1 > self.p || (in_b2 && t1 == self.p)) {
            self.b1.push(self.t1.remove(0));
        } else {
            self.b2.push(self.t2.remove(0));
        }
    }
}

impl Model for Arc {
    fn used(&mut self, key: u64) -> bool {
        if take(&mut self.t1, key) || take(&mut self.t2, key) {
            self.t2.push(key);
            return true;
        }
        if self.b1.contains(&key) {
            self.p = self.c.min(self.p + (self.b2.len() / self.b1.len()).max(1));
            self.replace(false);
            take(&mut self.b1, key);
            self.t2.push(key);
            return false;
        }
        if self.b2.contains(&key) {
            self.p = self.p.saturating_sub((self.b1.len() / self.b2.len()).max(1));
            self.replace(true);
            take(&mut self.b2, key);
            self.t2.push(key);
            return false;
        }
        if self.t1.len() + self.b1.len() == self.c {
            if self.t1.len() < self.c {
                self.b1.remove(0);
                self.replace(false);
            } else {
                self.t1.remove(0);
            }
        } else {
            let all = self.t1.len() + self.t2.len() + self.b1.len() + self.b2.len();
            if all >= self.c {
                if all == 2 * self.c {
                    self.b2.remove(0);
                }
                self.replace(false);
            }
        }
        self.t1.push(key);
        false
    }
}

fn model(policy: CachePolicy, pages: u32) -> Box<dyn Model> {
    let pages = pages as usize;
    match policy {
        CachePolicy::Lru => Box::new(Lru(pages, vec![])),
        CachePolicy::Clock => Box::new(Clock(pages, vec![], 0)),
        CachePolicy::Arc => Box::new(Arc { c: pages, ..Arc::default() }),
        CachePolicy::S3Fifo => Box::new(S3Fifo { pages, ..S3Fifo::default() }),
        CachePolicy::Sieve => Box::new(Sieve(pages, vec![], None)),
    }
}

/// A cache of three pages sees A B C, A again, D, and A once more: FIFO's heirs spare A and lose B, and differ afterwards.
#[test]
fn what_goes_first_is_the_policys() {
    let (a, b, c, d, e) = (1, 2, 3, 4, 5);
    let held = |policy, keys: &[u64]| hits(policy, 3, keys).1;
    for policy in CachePolicy::ALL {
        assert_eq!(held(policy, &[a, b, c]), [a, b, c], "{policy:?}");
    }
    assert_eq!(held(CachePolicy::Lru, &[a, b, c, a, d, e]), [a, d, e]);
    // The hand spared A, took B, and comes to C next.
    assert_eq!(held(CachePolicy::Clock, &[a, b, c, a, d, e]), [a, d, e]);
    // A is forgotten as soon as the hand has passed it: CLOCK takes A before D and E, SIEVE sifts the new ones first.
    assert_eq!(held(CachePolicy::Clock, &[a, b, c, a, d, e, 6]), [d, e, 6]);
    assert_eq!(held(CachePolicy::Sieve, &[a, b, c, a, d, e, 6]), [a, e, 6]);
    // A was used again and is of the other list, which new pages do not touch.
    assert_eq!(held(CachePolicy::Arc, &[a, b, c, a, d, e, 6, 7, 8]), [a, 7, 8]);
    // A was used twice after it came, and goes on into the main queue; B, C, D and E pass through the small one.
    assert_eq!(held(CachePolicy::S3Fifo, &[a, b, c, a, a, d, e, 6, 7]), [a, 6, 7]);
}

/// A scan of pages that nobody uses again leaves the pages in use alone, but for LRU and CLOCK, which lose them all.
#[test]
fn scans_spare_what_is_in_use() {
    let kept = |policy| {
        let warm = (0..4).flat_map(|_| 0..20u64);
        let keys: Vec<u64> = warm.chain(1000..1200).chain(0..20).collect();
        hits(policy, 50, &keys).0[280..].iter().filter(|&&hit| hit).count()
    };
    assert_eq!(CachePolicy::ALL.map(kept), [0, 0, 20, 20, 20]);
}

proptest! {
    #[test]
    fn hits_are_those_of_the_model(
        pages in 1u32..25,
        keys in prop::collection::vec(prop_oneof![0u64..8, 0u64..30, 0u64..100], 1..600),
    ) {
        for policy in CachePolicy::ALL {
            let mut model = model(policy, pages);
            let expected: Vec<bool> = keys.iter().map(|&key| model.used(key)).collect();
            prop_assert_eq!(hits(policy, pages, &keys).0, expected, "{:?}", policy);
        }
    }

    /// Whatever happens to pages, dirty ones stay, as many are there as fit, and one that can go is found.
    #[test]
    fn what_the_members_lack_stays(
        steps in prop::collection::vec((0u64..30, 0u8..7), 1..600),
    ) {
        for policy in CachePolicy::ALL {
            let mut directory = Directory::new(8, policy);
            for &(key, step) in &steps {
                let mut must_stay: Vec<u64> =
                    directory.pages().filter(|page| !page.is_evictable()).map(|page| page.key).collect();
                let room = directory.room();
                let was_there = directory.find(key).is_some();
                let taken = directory.find_or_take(key);
                prop_assert_eq!(taken.is_some(), was_there || room > 0, "{:?}", policy);
                must_stay.retain(|&key| directory.find(key).is_none());
                prop_assert_eq!(must_stay, Vec::<u64>::new(), "{:?}", policy);
                prop_assert!(directory.pages().count() <= 8);
                let Some(slot) = taken else { continue };
                let page = *directory.page(slot);
                match step {
                    0 => directory.dirty(slot, 3, false),
                    1 => directory.leave(slot, page.ready_parts()),
                    2 => directory.left(slot, page.leaving),
                    3 => directory.fill(slot, 4),
                    4 => directory.filled(slot, page.filling),
                    5 => directory.power_cut(),
                    _ => directory.touch(slot),
                }
            }
        }
    }
}
