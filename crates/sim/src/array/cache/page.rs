//! [`Page`]: a page of a cache and the state of its parts.

/// Parts of a page whose state is tracked, with one bit each.
pub const PARTS: u32 = 64;

/// A page of a cache. Each mask has one bit for each of its 64 parts.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// Its number in the array's address space.
    pub key: u64,
    /// Parts with valid data.
    pub valid: u64,
    /// Parts that the members do not have yet and that are not being written to them.
    pub dirty: u64,
    /// Parts that are being written to the members.
    pub leaving: u64,
    /// Parts that are being read from the members.
    pub filling: u64,
    /// Time at which it became dirty or was last written: the order of destaging by age.
    pub stamp: u64,
    /// Whether it is in the cache; otherwise only the replacement policy remembers it.
    pub held: bool,
}

impl Page {
    /// Creates a page that holds nothing yet.
    pub fn new(key: u64) -> Page {
        Page { key, valid: 0, dirty: 0, leaving: 0, filling: 0, stamp: 0, held: true }
    }

    /// Whether the members have all of it.
    pub fn is_clean(&self) -> bool {
        self.dirty | self.leaving == 0
    }

    /// Whether a destage of it may begin.
    pub fn is_ready(&self) -> bool {
        self.ready_parts() != 0
    }

    /// Returns the parts that may be destaged now. A page that is written again while it is being destaged waits:
    /// otherwise two writes of the same place would be in flight at once.
    pub fn ready_parts(&self) -> u64 {
        if self.leaving == 0 { self.dirty } else { 0 }
    }

    /// Whether it may be evicted.
    pub fn is_evictable(&self) -> bool {
        self.dirty | self.leaving | self.filling == 0
    }
}
