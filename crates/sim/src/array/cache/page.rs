//! [`Page`]: a page of a cache and the state of its parts.

/// Number of parts of a page; the state of each part is tracked with one bit.
pub const PARTS: u32 = 64;

/// A page of a cache. Each mask has one bit for each of the 64 parts of the page.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// Page number in the array's address space.
    pub key: u64,
    /// Parts with valid data.
    pub valid: u64,
    /// Parts with data that the members do not have yet and that are not being destaged.
    pub dirty: u64,
    /// Parts that are being written to the members.
    pub leaving: u64,
    /// Parts that are being read from the members.
    pub filling: u64,
    /// Time at which the page became dirty or was last written; destaging by age uses this order.
    pub stamp: u64,
    /// Whether the page is in the cache; otherwise only the replacement policy remembers it.
    pub held: bool,
}

impl Page {
    /// Creates a page without data.
    pub fn new(key: u64) -> Page {
        Page { key, valid: 0, dirty: 0, leaving: 0, filling: 0, stamp: 0, held: true }
    }

    /// Whether the members have all data of the page.
    pub fn is_clean(&self) -> bool {
        self.dirty | self.leaving == 0
    }

    /// Whether a destage of the page may begin.
    pub fn is_ready(&self) -> bool {
        self.ready_parts() != 0
    }

    /// Returns the parts that may be destaged now. A page that is written again during its destage must wait: otherwise
    /// two writes to the same address would be in flight at once.
    pub fn ready_parts(&self) -> u64 {
        if self.leaving == 0 { self.dirty } else { 0 }
    }

    /// Whether the page may be evicted.
    pub fn is_evictable(&self) -> bool {
        self.dirty | self.leaving | self.filling == 0
    }
}
