//! What comes soonest, of things that are put in almost in the order in which they come out.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// How far from the end a thing is put among those in order; beyond, a heap is quicker.
const STEPS_MAX: usize = 32;

/// A queue by size, least first. Completions come back nearly in order: most are put at the end of a list, a few steps
/// from it otherwise, and only what is far from its place goes to a heap.
#[derive(Debug)]
pub struct Soonest<T> {
    in_order: VecDeque<T>,
    far: BinaryHeap<Reverse<T>>,
}

impl<T> Default for Soonest<T>
where
    T: Ord,
{
    fn default() -> Self {
        Soonest { in_order: VecDeque::new(), far: BinaryHeap::new() }
    }
}

impl<T: Ord + Copy> Soonest<T> {
    #[inline]
    pub fn push(&mut self, new: T) {
        let behind = self.in_order.iter().rev().take(STEPS_MAX).take_while(|&&other| other > new).count();
        if behind < STEPS_MAX {
            self.in_order.insert(self.in_order.len() - behind, new);
        } else {
            self.far.push(Reverse(new));
        }
    }

    #[inline]
    pub fn first(&self) -> Option<T> {
        let far = if self.far.is_empty() { None } else { self.far.peek().map(|&Reverse(first)| first) };
        match (self.in_order.front(), far) {
            (Some(&near), Some(far)) => Some(near.min(far)),
            (near, far) => near.copied().or(far),
        }
    }

    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        let far = if self.far.is_empty() { None } else { self.far.peek().map(|&Reverse(first)| first) };
        match (self.in_order.front(), far) {
            (Some(&near), Some(far)) if far < near => self.far.pop().map(|Reverse(first)| first),
            (None, Some(_)) => self.far.pop().map(|Reverse(first)| first),
            _ => self.in_order.pop_front(),
        }
    }

    pub fn len(&self) -> usize {
        self.in_order.len() + self.far.len()
    }

    /// Leaves out what `keep` says no to.
    pub fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        self.in_order.retain(&mut keep);
        self.far.retain(|Reverse(one)| keep(one));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_least_comes_first(steps in proptest::collection::vec(proptest::option::of(0u32..300), 0..600)) {
            let mut queue = Soonest::default();
            let mut list: Vec<u32> = Vec::new();
            for step in steps {
                match step {
                    Some(new) => {
                        queue.push(new);
                        list.push(new);
                    }
                    None => {
                        list.sort_unstable();
                        prop_assert_eq!(queue.first(), list.first().copied());
                        prop_assert_eq!(queue.pop(), list.first().copied());
                        list = list.split_off(1.min(list.len()));
                    }
                }
                prop_assert_eq!(queue.len(), list.len());
            }
            queue.retain(|one| one % 3 != 0);
            list.retain(|one| one % 3 != 0);
            list.sort_unstable();
            prop_assert_eq!(std::iter::from_fn(|| queue.pop()).collect::<Vec<_>>(), list);
        }
    }
}
