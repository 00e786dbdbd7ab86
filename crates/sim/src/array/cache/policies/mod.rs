//! Which page gives way to a new one: one file a policy. Each keeps the pages that can go on lists of its own; a page that must
//! stay (it is dirty, leaving or on its way) leaves its list, and comes back as the newest when it may go again.

mod arc;
mod clock;
mod ghosts;
mod list;
mod lru;
mod policy;
mod s3_fifo;
mod sieve;

use super::page::Page;
use crate::array::description::CachePolicy;
use arc::Arc;
use clock::Clock;
use lru::Lru;
use policy::Policy;
use s3_fifo::S3Fifo;
use sieve::Sieve;

/// The policy of a cache, and what it remembers.
#[derive(Clone, Debug)]
pub enum Replacement {
    /// Least recently used.
    Lru(Lru),
    /// CLOCK.
    Clock(Clock),
    /// ARC.
    Arc(Arc),
    /// S3-FIFO.
    S3Fifo(S3Fifo),
    /// SIEVE.
    Sieve(Sieve),
}

macro_rules! of_policy {
    ($replacement:expr, $policy:ident => $answer:expr) => {
        match $replacement {
            Replacement::Lru($policy) => $answer,
            Replacement::Clock($policy) => $answer,
            Replacement::Arc($policy) => $answer,
            Replacement::S3Fifo($policy) => $answer,
            Replacement::Sieve($policy) => $answer,
        }
    };
}

impl Replacement {
    /// A policy that has seen nothing yet, of a cache of so many pages.
    pub fn new(policy: CachePolicy, pages_max: u32) -> Replacement {
        match policy {
            CachePolicy::Lru => Replacement::Lru(Lru::new()),
            CachePolicy::Clock => Replacement::Clock(Clock::new()),
            CachePolicy::Arc => Replacement::Arc(Arc::new(pages_max)),
            CachePolicy::S3Fifo => Replacement::S3Fifo(S3Fifo::new(pages_max)),
            CachePolicy::Sieve => Replacement::Sieve(Sieve::new()),
        }
    }

    /// A page is new, and can go.
    #[inline]
    pub fn admit(&mut self, pages: &mut [Page], slot: u32) {
        of_policy!(self, policy => policy.admit(pages, slot));
    }

    /// A page was used.
    #[inline]
    pub fn hit(&mut self, pages: &mut [Page], slot: u32) {
        of_policy!(self, policy => policy.hit(pages, slot));
    }

    /// A page can go from now on.
    #[inline]
    pub fn list(&mut self, pages: &mut [Page], slot: u32) {
        of_policy!(self, policy => policy.list(pages, slot));
    }

    /// A page must stay from now on.
    #[inline]
    pub fn unlist(&mut self, pages: &mut [Page], slot: u32) {
        of_policy!(self, policy => policy.unlist(pages, slot));
    }

    /// Gives up a page that can go, of which there is one at least, for page `key`.
    #[inline]
    pub fn replace(&mut self, pages: &mut [Page], key: u64) -> u32 {
        of_policy!(self, policy => policy.replace(pages, key))
    }
}

#[cfg(test)]
mod tests;
