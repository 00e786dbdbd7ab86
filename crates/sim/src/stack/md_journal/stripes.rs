//! [`StripeCache`]: stripes whose data write-back keeps in memory, until they are written out to the members.

use std::collections::{BTreeMap, BTreeSet};

/// A stripe with data in memory.
#[derive(Clone, Debug)]
struct Stripe {
    /// Data units whose page is in memory, one bit each.
    pages: u128,
    /// Position in the log of its first unit.
    log_start: u64,
    /// Writes of its pages to the log in progress.
    logging: u32,
    /// Order of the last use.
    used: u64,
    is_leaving: bool,
}

/// The stripes in memory.
#[derive(Clone, Debug, Default)]
pub(super) struct StripeCache {
    stripes: BTreeMap<u64, Stripe>,
    /// Idle stripes that are full or partial, by order of use (`r5c_full_stripe_list`, `r5c_partial_stripe_list`).
    full: BTreeSet<(u64, u64)>,
    partial: BTreeSet<(u64, u64)>,
    /// All stripes by their place in the log (`stripe_in_journal_list`).
    in_log: BTreeSet<(u64, u64)>,
    uses: u64,
    leaving: usize,
    pages: u64,
}

impl StripeCache {
    pub fn len(&self) -> usize {
        self.stripes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.stripes.is_empty()
    }

    /// Returns the number of pages in memory.
    pub fn pages(&self) -> u64 {
        self.pages
    }

    /// Returns the number of stripes that are not on their way to the members.
    pub fn staying(&self) -> usize {
        self.stripes.len() - self.leaving
    }

    /// Returns the number of full stripes that are not on their way to the members.
    pub fn full(&self) -> usize {
        self.full.len()
    }

    pub fn contains(&self, stripe: u64) -> bool {
        self.stripes.contains_key(&stripe)
    }

    /// Whether a page is in memory.
    pub fn holds(&self, stripe: u64, unit: u64) -> bool {
        self.stripes.get(&stripe).is_some_and(|stripe| stripe.pages >> unit & 1 == 1)
    }

    /// Whether a stripe is on its way to the members.
    pub fn is_leaving(&self, stripe: u64) -> bool {
        self.stripes.get(&stripe).is_some_and(|stripe| stripe.is_leaving)
    }

    /// Whether a stripe can be written out.
    pub fn is_idle(&self, stripe: u64) -> bool {
        self.stripes.get(&stripe).is_some_and(|stripe| !stripe.is_leaving && stripe.logging == 0)
    }

    /// Returns the position in the log of the oldest stripe.
    pub fn first_in_log(&self) -> Option<u64> {
        self.in_log.first().map(|&(position, _)| position)
    }

    /// Begins to log a page of a stripe, in a unit at `position`.
    pub fn begin_logging(&mut self, number: u64, position: u64) {
        let new = Stripe { pages: 0, log_start: position, logging: 0, used: 0, is_leaving: false };
        let stripe = self.stripes.entry(number).or_insert(new);
        stripe.logging += 1;
        let key = (stripe.used, number);
        self.in_log.insert((stripe.log_start, number));
        self.full.remove(&key);
        self.partial.remove(&key);
    }

    /// Ends the write of a page to the log.
    pub fn end_logging(&mut self, number: u64, unit: u64, all_units: u128) {
        self.uses += 1;
        let stripe = self.stripes.get_mut(&number).expect("a stripe that is logged is in memory");
        let before = stripe.pages;
        stripe.pages |= 1 << unit;
        self.pages += u64::from(before != stripe.pages);
        stripe.logging -= 1;
        if stripe.logging == 0 {
            stripe.used = self.uses;
            let list = if stripe.pages == all_units { &mut self.full } else { &mut self.partial };
            list.insert((stripe.used, number));
        }
    }

    /// Returns all full stripes, and partial ones in order of use until there are `least` in total.
    pub fn oldest(&self, least: usize) -> Vec<u64> {
        let rest = least.saturating_sub(self.full.len());
        self.full.iter().chain(self.partial.iter().take(rest)).map(|&(_, number)| number).collect()
    }

    /// Returns up to `most` idle stripes in the order of the log.
    pub fn first_idle_in_log(&self, most: usize) -> Vec<u64> {
        let idle = self.in_log.iter().map(|&(_, number)| number).filter(|&number| self.is_idle(number));
        idle.take(most).collect()
    }

    /// Takes an idle stripe on its way to the members; returns the data units that have pages.
    pub fn leave(&mut self, number: u64) -> u128 {
        let stripe = self.stripes.get_mut(&number).expect("only a stripe in memory is written out");
        debug_assert!(stripe.logging == 0 && !stripe.is_leaving, "only an idle stripe is written out");
        stripe.is_leaving = true;
        self.leaving += 1;
        self.full.remove(&(stripe.used, number));
        self.partial.remove(&(stripe.used, number));
        stripe.pages
    }

    /// Forgets a stripe that is on the members.
    pub fn remove(&mut self, number: u64) {
        let stripe = self.stripes.remove(&number).expect("a stripe that was written out is in memory");
        self.leaving -= 1;
        self.pages -= u64::from(stripe.pages.count_ones());
        self.in_log.remove(&(stripe.log_start, number));
    }

    /// Keeps the pages that are in the log; recovery puts them into memory again.
    pub fn power_cycle(&mut self, all_units: u128) {
        let old = std::mem::take(self);
        for (number, stripe) in old.stripes {
            if stripe.pages == 0 {
                continue;
            }
            self.begin_logging(number, stripe.log_start);
            for unit in (0..u64::from(u128::BITS)).filter(|unit| stripe.pages >> unit & 1 == 1) {
                self.begin_logging(number, stripe.log_start);
                self.end_logging(number, unit, all_units);
            }
            let last = u64::from(stripe.pages.trailing_zeros());
            self.end_logging(number, last, all_units);
        }
    }
}
