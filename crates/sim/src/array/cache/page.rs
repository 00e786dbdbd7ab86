//! A page of a cache.

/// Parts of a page whose state is tracked, one bit each.
pub const PARTS: u32 = 64;

/// A page. Each mask has a bit for each of its 64 parts.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// Its number in the array's address space.
    pub key: u64,
    /// Parts that it holds.
    pub valid: u64,
    /// Parts that are newer than on the members, and not being written to them.
    pub dirty: u64,
    /// Parts that are being written to the members.
    pub leaving: u64,
    /// Parts that are being read from the members.
    pub filling: u64,
    /// When it became dirty, or was written last: the order of destaging by age.
    pub stamp: u64,
    /// Whether it is in the cache; otherwise only the replacement policy remembers it.
    pub held: bool,
}

impl Page {
    /// A page of the cache that holds nothing yet.
    pub fn new(key: u64) -> Page {
        Page { key, valid: 0, dirty: 0, leaving: 0, filling: 0, stamp: 0, held: true }
    }

    /// Whether the members have all of it.
    pub fn is_clean(&self) -> bool {
        self.dirty | self.leaving == 0
    }

    /// It may begin to leave.
    pub fn is_ready(&self) -> bool {
        self.ready_parts() != 0
    }

    /// Parts that may begin to leave. Parts written again while the page leaves wait: otherwise two writes of one place
    /// would be under way at once.
    pub fn ready_parts(&self) -> u64 {
        if self.leaving == 0 { self.dirty } else { 0 }
    }

    /// It may go.
    pub fn is_evictable(&self) -> bool {
        self.dirty | self.leaving | self.filling == 0
    }
}
