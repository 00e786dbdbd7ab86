//! [`EarliestQueue`]: a priority queue for items that are added nearly in order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Most steps from the end at which an item is inserted into the sorted list; further away, a heap is faster.
const STEPS_MAX: usize = 32;

/// A queue by size, smallest first. Completions come back nearly in order: most are appended to a list, or inserted a
/// few steps from its end, and only items far from their place go to a heap.
#[derive(Debug)]
pub struct EarliestQueue<T> {
    /// Sorted from `start` on; earlier items have been taken.
    in_order: Vec<T>,
    start: usize,
    far: BinaryHeap<Reverse<T>>,
}

impl<T> Default for EarliestQueue<T>
where
    T: Ord,
{
    fn default() -> Self {
        EarliestQueue { in_order: Vec::new(), start: 0, far: BinaryHeap::new() }
    }
}

impl<T: Ord + Copy> EarliestQueue<T> {
    // Always inlined, so that the item is passed in registers: a processor stalls on words that were just written
    // separately and are read together.
    #[inline(always)]
    pub fn push(&mut self, new: T) {
        let list = &self.in_order[self.start..];
        if list.len() >= STEPS_MAX && list[list.len() - STEPS_MAX] > new {
            self.far.push(Reverse(new));
            return;
        }
        if self.in_order.len() == self.in_order.capacity() {
            self.make_room();
        }
        self.in_order.push(new);
        let list = &mut self.in_order[self.start..];
        let mut place = list.len() - 1;
        while place > 0 && list[place - 1] > new {
            list[place] = list[place - 1];
            place -= 1;
        }
        list[place] = new;
    }

    /// Moves the remaining items to the beginning.
    #[cold]
    fn make_room(&mut self) {
        self.in_order.drain(..self.start);
        self.start = 0;
        self.in_order.reserve(self.in_order.len() + STEPS_MAX);
    }

    #[inline]
    pub fn first(&self) -> Option<T> {
        let near = self.in_order.get(self.start).copied();
        if self.far.is_empty() {
            return near;
        }
        near.into_iter().chain(self.far.peek().map(|&Reverse(far)| far)).min()
    }

    #[inline(always)]
    pub fn pop(&mut self) -> Option<T> {
        let near = self.in_order.get(self.start).copied();
        if let Some(&Reverse(far)) = self.far.peek()
            && near.is_none_or(|near| far < near)
        {
            self.far.pop();
            return Some(far);
        }
        self.start += usize::from(near.is_some());
        if self.start == self.in_order.len() {
            self.in_order.clear();
            self.start = 0;
        }
        near
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.in_order.is_empty() && self.far.is_empty()
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.in_order.len() - self.start + self.far.len()
    }

    /// Removes items for which `keep` returns false.
    pub fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        self.in_order.drain(..self.start);
        self.start = 0;
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
        fn the_earliest_item_is_first(steps in proptest::collection::vec(proptest::option::of(0u32..300), 0..600)) {
            let mut queue = EarliestQueue::default();
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
