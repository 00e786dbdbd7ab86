//! What every policy is asked.

use crate::array::cache::page::Page;

/// What every policy says.
pub trait Policy {
    /// A page is new, and can go.
    fn admit(&mut self, pages: &mut [Page], slot: u32);

    /// A page was used; it may be one that must stay.
    fn hit(&mut self, pages: &mut [Page], slot: u32);

    /// A page can go from now on.
    fn list(&mut self, pages: &mut [Page], slot: u32);

    /// A page must stay from now on.
    fn unlist(&mut self, pages: &mut [Page], slot: u32);

    /// Gives up a page that can go, of which there is one at least, for page `key`.
    fn replace(&mut self, pages: &mut [Page], key: u64) -> u32;
}
