//! [`Writeback`]: the dirty pages of all files, and whose turn it is to write them.

use std::collections::BTreeSet;

use headstack_workload::Span;

use super::dirty_file::DirtyFile;
use crate::description::stack::PageCacheDescription;
use crate::spans::common_with_all;
use crate::stack::files::Files;

/// Dirty pages of all files.
#[derive(Clone, Debug)]
pub(super) struct Writeback {
    places: Files,
    /// Dirty pages of each file.
    pub files: Vec<DirtyFile>,
    pub writes_under_way: u32,
    /// File whose tagged pages have the next turn. Syncs of several files submit at once, and get the device's tags in
    /// turn.
    turn: usize,
    /// File that background writeback is at; it goes file by file.
    background: usize,
}

impl Writeback {
    /// Creates the state of files without dirty pages.
    pub fn new(places: Files) -> Writeback {
        let files = vec![DirtyFile::default(); places.count()];
        Writeback { places, files, writes_under_way: 0, turn: 0, background: 0 }
    }

    /// Forgets all pages.
    pub fn reset(&mut self) {
        *self = Writeback::new(std::mem::take(&mut self.places));
    }

    /// Returns the places of the files.
    pub fn places(&self) -> &Files {
        &self.places
    }

    /// Returns the number of a page's file.
    pub fn file_of(&self, page: u64) -> usize {
        self.places.file(page * PageCacheDescription::PAGE_BYTES)
    }

    /// Adds a page that became dirty.
    pub fn add_dirty(&mut self, now_ns: u64, page: u64) {
        let file = self.file_of(page);
        self.files[file].add_dirty(now_ns, page);
    }

    /// Forgets a page that was dropped.
    pub fn forget(&mut self, page: u64) {
        let file = self.file_of(page);
        self.files[file].forget(page);
    }

    /// Returns when the oldest dirty page is written back.
    pub fn due_ns(&self, description: &PageCacheDescription) -> u64 {
        let PageCacheDescription { expire_ns, writeback_interval_ns, .. } = *description;
        self.files.iter().map(|file| file.due_ns(expire_ns, writeback_interval_ns)).min().unwrap_or(u64::MAX)
    }

    /// Takes the next run of pages of one file to write, at most `pages_max`: tagged ones first, then with `background`
    /// any dirty ones. Returns the first page and the one after the last.
    pub fn take_run(&mut self, pages_max: u64, background: bool) -> Option<(u64, u64)> {
        let count = self.files.len();
        if self.files.iter().any(DirtyFile::has_tagged) {
            for file in (self.turn..self.turn + count).map(|file| file % count) {
                if let Some(run) = self.files[file].take_tagged(pages_max) {
                    self.turn = (file + 1) % count;
                    return Some(run);
                }
            }
            return None;
        }
        if !background {
            return None;
        }
        let mut files = (self.background..self.background + count).map(|file| file % count);
        self.background = files.find(|&file| self.files[file].has_dirty())?;
        self.files[self.background].take_dirty(pages_max)
    }

    /// Appends the parts of `spans` in pages that are not on the device.
    pub fn not_on_device(&self, spans: &[Span], is_dirty: impl Fn(u64) -> bool, into: &mut Vec<Span>) {
        let (Some(first), Some(last)) = (spans.first(), spans.last()) else { return };
        let from = first.start_bytes / PageCacheDescription::PAGE_BYTES;
        let until = (last.start_bytes + last.length_bytes).div_ceil(PageCacheDescription::PAGE_BYTES);
        let mut pages = BTreeSet::new();
        self.files.iter().for_each(|file| file.pages_at_risk(from, until, &mut pages));
        for page in pages {
            debug_assert!(is_dirty(page), "page {page} is not dirty in memory");
            common_with_all(
                spans,
                page * PageCacheDescription::PAGE_BYTES,
                (page + 1) * PageCacheDescription::PAGE_BYTES,
                into,
            );
        }
    }
}
