//! Keys of pages that are gone, in the order of their going.

use std::collections::{HashMap, VecDeque};

use rustc_hash::FxBuildHasher;

/// The keys; each is there once.
#[derive(Clone, Debug, Default)]
pub struct Ghosts {
    /// When each went.
    numbers: HashMap<u64, u64, FxBuildHasher>,
    /// In that order, with entries that hold no more among them.
    order: VecDeque<(u64, u64)>,
    last: u64,
}

impl Ghosts {
    /// Keys in it.
    pub fn length(&self) -> u32 {
        self.numbers.len() as u32
    }

    /// A key is in it.
    pub fn holds(&self, key: u64) -> bool {
        self.numbers.contains_key(&key)
    }

    /// Adds a key that is not in it.
    pub fn push(&mut self, key: u64) {
        self.last += 1;
        self.numbers.insert(key, self.last);
        self.order.push_back((key, self.last));
        if self.order.len() > 2 * self.numbers.len() + 64 {
            let numbers = &self.numbers;
            self.order.retain(|(key, number)| numbers.get(key) == Some(number));
        }
    }

    /// Takes a key out; true if it was there.
    pub fn remove(&mut self, key: u64) -> bool {
        self.numbers.remove(&key).is_some()
    }

    /// Takes out the key that went first.
    pub fn pop(&mut self) {
        while let Some((key, number)) = self.order.pop_front() {
            if self.numbers.get(&key) == Some(&number) {
                self.numbers.remove(&key);
                return;
            }
        }
    }
}
