//! Models of the policies, written as in their papers with lists that are searched. Lists have the oldest id first.

use crate::CachePolicy;
use crate::sketch::Sketch;

/// A model of a policy: records a use and returns whether it was a hit.
pub trait Model {
    fn used(&mut self, key: u32) -> bool;
}

pub fn model(policy: CachePolicy, capacity: usize) -> Box<dyn Model> {
    let c = capacity;
    match policy {
        CachePolicy::Lru => Box::new(Lru(c, vec![])),
        CachePolicy::Fifo => Box::new(Fifo(c, vec![])),
        CachePolicy::Clock => Box::new(Clock(c, vec![], 0)),
        CachePolicy::Arc => Box::new(Arc { c, ..Arc::default() }),
        CachePolicy::S3Fifo => Box::new(S3Fifo { c, ..S3Fifo::default() }),
        CachePolicy::Sieve => Box::new(Sieve(c, vec![], None)),
        CachePolicy::Lirs => Box::new(Lirs { c, ..Lirs::default() }),
        CachePolicy::TwoQ => Box::new(TwoQ { c, ..TwoQ::default() }),
        CachePolicy::Slru => Box::new(Slru::new(vec![c - 3 * (c / 4), c / 4, c / 4, c / 4])),
        CachePolicy::Lfu => Box::new(Lfu(c, vec![], 0)),
        CachePolicy::WTinyLfu => Box::new(WTinyLfu::new(c)),
    }
}

fn take(list: &mut Vec<u32>, key: u32) -> bool {
    let found = list.iter().position(|&other| other == key);
    found.map(|at| list.remove(at)).is_some()
}

struct Lru(usize, Vec<u32>);

impl Model for Lru {
    fn used(&mut self, key: u32) -> bool {
        let hit = take(&mut self.1, key);
        if !hit && self.1.len() == self.0 {
            self.1.remove(0);
        }
        self.1.push(key);
        hit
    }
}

struct Fifo(usize, Vec<u32>);

impl Model for Fifo {
    fn used(&mut self, key: u32) -> bool {
        let hit = self.1.contains(&key);
        if !hit {
            if self.1.len() == self.0 {
                self.1.remove(0);
            }
            self.1.push(key);
        }
        hit
    }
}

/// CLOCK as in textbooks: a ring of (key, used), with an index as the hand.
struct Clock(usize, Vec<(u32, bool)>, usize);

impl Model for Clock {
    fn used(&mut self, key: u32) -> bool {
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

struct Sieve(usize, Vec<(u32, bool)>, Option<u32>);

impl Model for Sieve {
    fn used(&mut self, key: u32) -> bool {
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
    c: usize,
    small: Vec<(u32, u8)>,
    main: Vec<(u32, u8)>,
    ghosts: Vec<u32>,
}

impl S3Fifo {
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
        if self.main.len() > self.c - self.c / 10 {
            return self.evict_main();
        }
        while !self.small.is_empty() {
            let (key, uses) = self.small.remove(0);
            if uses < 2 {
                self.ghosts.push(key);
                if self.ghosts.len() > self.c * 9 / 10 {
                    self.ghosts.remove(0);
                }
                return;
            }
            self.main.push((key, 0));
        }
        self.evict_main();
    }
}

impl Model for S3Fifo {
    fn used(&mut self, key: u32) -> bool {
        if let Some(page) = self.small.iter_mut().chain(&mut self.main).find(|page| page.0 == key) {
            page.1 = (page.1 + 1).min(3);
            return true;
        }
        let comes_back = take(&mut self.ghosts, key);
        if self.small.len() + self.main.len() == self.c {
            self.evict();
        }
        if comes_back {
            self.main.push((key, 0))
        } else {
            self.small.push((key, 0))
        }
        false
    }
}

/// ARC, line by line from figure 4 of the paper.
#[derive(Default)]
struct Arc {
    c: usize,
    p: f64,
    t1: Vec<u32>,
    t2: Vec<u32>,
    b1: Vec<u32>,
    b2: Vec<u32>,
}

impl Arc {
    fn replace(&mut self, in_b2: bool) {
        let t1 = self.t1.len() as f64;
        if t1 >= 1.0 && (t1 > self.p || (in_b2 && t1 == self.p)) {
            self.b1.push(self.t1.remove(0));
        } else {
            self.b2.push(self.t2.remove(0));
        }
    }
}

impl Model for Arc {
    fn used(&mut self, key: u32) -> bool {
        if take(&mut self.t1, key) || take(&mut self.t2, key) {
            self.t2.push(key);
            return true;
        }
        if self.b1.contains(&key) {
            self.p = (self.p + (self.b2.len() as f64 / self.b1.len() as f64).max(1.0)).min(self.c as f64);
            self.replace(false);
            take(&mut self.b1, key);
            self.t2.push(key);
            return false;
        }
        if self.b2.contains(&key) {
            self.p = (self.p - (self.b1.len() as f64 / self.b2.len() as f64).max(1.0)).max(0.0);
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

#[derive(Clone, Copy, PartialEq)]
enum State {
    Lir,
    Hir,
    Gone,
}

/// LIRS with the stack and queue of the paper; the stack is limited to twice the cache.
#[derive(Default)]
struct Lirs {
    c: usize,
    stack: Vec<(u32, State)>,
    queue: Vec<u32>,
    /// Evicted keys on the stack, in order of eviction.
    gone: Vec<u32>,
}

impl Lirs {
    fn lir_max(&self) -> usize {
        self.c - (self.c / 100).max(1)
    }

    fn lirs(&self) -> usize {
        self.stack.iter().filter(|entry| entry.1 == State::Lir).count()
    }

    fn prune(&mut self) {
        while self.stack.len() > 1 && self.stack[0].1 != State::Lir {
            let (key, _) = self.stack.remove(0);
            take(&mut self.gone, key);
        }
    }

    fn evict(&mut self) {
        let key = self.queue.remove(0);
        if let Some(entry) = self.stack.iter_mut().find(|entry| entry.0 == key) {
            entry.1 = State::Gone;
            self.gone.push(key);
        }
    }

    /// Makes the key on top of the stack LIR.
    fn lift(&mut self, key: u32) {
        if self.lir_max() == 0 {
            self.stack.push((key, State::Hir));
            return self.queue.push(key);
        }
        self.stack.push((key, State::Hir));
        if self.lirs() == self.lir_max() {
            let (sinks, _) = self.stack.remove(0);
            self.queue.push(sinks);
            self.prune();
        }
        self.stack.last_mut().unwrap().1 = State::Lir;
    }

    fn limit(&mut self) {
        while self.stack.len() > 2 * self.c && !self.gone.is_empty() {
            let key = self.gone.remove(0);
            self.stack.retain(|entry| entry.0 != key);
        }
    }
}

impl Model for Lirs {
    fn used(&mut self, key: u32) -> bool {
        let found = self.stack.iter().position(|entry| entry.0 == key).map(|at| self.stack.remove(at).1);
        let held = self.queue.len() + self.lirs() + usize::from(found == Some(State::Lir));
        let hit = match found {
            Some(State::Lir) => {
                self.stack.push((key, State::Lir));
                self.prune();
                true
            }
            Some(State::Hir) => {
                take(&mut self.queue, key);
                self.lift(key);
                true
            }
            None if take(&mut self.queue, key) => {
                self.queue.push(key);
                self.stack.push((key, State::Hir));
                true
            }
            Some(State::Gone) => {
                take(&mut self.gone, key);
                if held == self.c {
                    self.evict();
                }
                self.lift(key);
                false
            }
            None => {
                if held == self.c {
                    self.evict();
                }
                if self.lirs() < self.lir_max() {
                    self.stack.push((key, State::Lir));
                } else {
                    self.stack.push((key, State::Hir));
                    self.queue.push(key);
                }
                false
            }
        };
        self.limit();
        hit
    }
}

#[derive(Default)]
struct TwoQ {
    c: usize,
    a1_in: Vec<u32>,
    a1_out: Vec<u32>,
    am: Vec<u32>,
}

impl Model for TwoQ {
    fn used(&mut self, key: u32) -> bool {
        if self.a1_in.contains(&key) {
            return true;
        }
        if take(&mut self.am, key) {
            self.am.push(key);
            return true;
        }
        let comes_back = take(&mut self.a1_out, key);
        if self.a1_in.len() + self.am.len() == self.c {
            if self.a1_in.len() > self.c / 4 {
                self.a1_out.push(self.a1_in.remove(0));
                if self.a1_out.len() > self.c / 2 {
                    self.a1_out.remove(0);
                }
            } else {
                self.am.remove(0);
            }
        }
        if comes_back {
            self.am.push(key)
        } else {
            self.a1_in.push(key)
        }
        false
    }
}

struct Slru {
    most: Vec<usize>,
    segments: Vec<Vec<u32>>,
}

impl Slru {
    fn new(most: Vec<usize>) -> Slru {
        Slru { segments: vec![vec![]; most.len()], most }
    }

    fn len(&self) -> usize {
        self.segments.iter().map(Vec::len).sum()
    }

    fn hit(&mut self, key: u32) -> bool {
        let Some(from) = self.segments.iter().position(|segment| segment.contains(&key)) else { return false };
        take(&mut self.segments[from], key);
        let mut to = (from + 1).min(self.most.len() - 1);
        self.segments[to].push(key);
        while self.segments[to].len() > self.most[to] {
            let sinks = self.segments[to].remove(0);
            self.segments[to - 1].push(sinks);
            to -= 1;
            if to == 0 {
                break;
            }
        }
        true
    }

    fn oldest(&self) -> Option<u32> {
        self.segments.iter().find(|segment| !segment.is_empty()).map(|segment| segment[0])
    }

    fn evict(&mut self) {
        self.segments.iter_mut().find(|segment| !segment.is_empty()).unwrap().remove(0);
    }

    fn insert(&mut self, key: u32) {
        let to = (0..self.most.len()).find(|&at| self.segments[at].len() < self.most[at]).unwrap_or(0);
        self.segments[to].push(key);
    }
}

impl Model for Slru {
    fn used(&mut self, key: u32) -> bool {
        let hit = self.hit(key);
        if !hit {
            if self.len() == self.most.iter().sum::<usize>() {
                self.evict();
            }
            self.insert(key);
        }
        hit
    }
}

/// LFU, with entries (key, uses, time at which this count was reached).
struct Lfu(usize, Vec<(u32, u32, u32)>, u32);

impl Model for Lfu {
    fn used(&mut self, key: u32) -> bool {
        self.2 += 1;
        let now = self.2;
        if let Some(page) = self.1.iter_mut().find(|page| page.0 == key) {
            (page.1, page.2) = (page.1 + 1, now);
            return true;
        }
        if self.1.len() == self.0 {
            let least = *self.1.iter().min_by_key(|page| (page.1, page.2)).unwrap();
            self.1.retain(|page| *page != least);
        }
        self.1.push((key, 1, now));
        false
    }
}

/// W-TinyLFU with the filter's own counts, which are tested separately.
struct WTinyLfu {
    c: usize,
    main_max: usize,
    window: Vec<u32>,
    main: Slru,
    sketch: Sketch,
    uses: usize,
}

impl WTinyLfu {
    fn new(c: usize) -> WTinyLfu {
        let main_max = c - (c / 100).max(1);
        let main = Slru::new(vec![main_max / 5, main_max * 4 / 5]);
        WTinyLfu { c, main_max, window: vec![], main, sketch: Sketch::new(main_max as u64), uses: 0 }
    }

    fn evict(&mut self) {
        loop {
            let newcomer = self.window.remove(0);
            let (fits, resident) = (self.main.len() < self.main_max, self.main.oldest());
            let often = |key: u32| self.sketch.estimate(u64::from(key));
            let wins = resident.is_some_and(|resident| often(newcomer) > often(resident));
            self.sketch.add(u64::from(newcomer));
            if fits || wins {
                if !fits {
                    self.main.evict();
                }
                self.main.insert(newcomer);
            }
            if !fits {
                return;
            }
        }
    }
}

impl Model for WTinyLfu {
    fn used(&mut self, key: u32) -> bool {
        if take(&mut self.window, key) {
            self.window.push(key);
            return true;
        }
        if self.main.hit(key) {
            self.sketch.add(u64::from(key));
            self.uses += 1;
            if self.uses == 32 * self.main_max {
                self.uses = 0;
                self.sketch.halve();
            }
            return true;
        }
        if self.window.len() + self.main.len() == self.c {
            self.evict();
        }
        self.window.push(key);
        self.sketch.add(u64::from(key));
        false
    }
}

/// A filter's estimates are never too low, and are exact for few keys.
#[test]
fn estimates_are_never_too_low() {
    let mut sketch = Sketch::new(1_000);
    for key in 0..1_000u64 {
        (0..key % 7).for_each(|_| sketch.add(key));
    }
    let exact = (0..1_000u64).filter(|&key| u64::from(sketch.estimate(key)) == key % 7).count();
    assert!((0..1_000u64).all(|key| u64::from(sketch.estimate(key)) >= key % 7));
    assert!(exact > 990, "{exact}");
    sketch.halve();
    assert!((0..1_000u64).all(|key| u64::from(sketch.estimate(key)) >= key % 7 / 2));
}

/// A filter that grows keeps its estimates, and estimates of later keys are never too low.
#[test]
fn a_filter_that_grows_keeps_its_estimates() {
    let mut sketch = Sketch::new(1 << 50);
    for key in 0..1_000u64 {
        (0..key % 7).for_each(|_| sketch.add(key));
    }
    let before: Vec<u16> = (0..1_000).map(|key| sketch.estimate(key)).collect();
    sketch.reach(200_000);
    assert_eq!((0..1_000).map(|key| sketch.estimate(key)).collect::<Vec<u16>>(), before);
    (0..200_000).for_each(|key| sketch.add(key));
    assert!((0..1_000u64).all(|key| u64::from(sketch.estimate(key)) > key % 7));
    let exact = (1_000..200_000u64).filter(|&key| sketch.estimate(key) == 1).count();
    assert!(exact > 190_000, "{exact}");
}
