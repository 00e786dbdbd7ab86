//! [`WriteBack`]: which pages of a host cache are dirty, and which bytes are not on the volume.

use headstack_workload::Span;

use crate::description::stack::HostCacheDescription;
use crate::stack::page_cache::dirty_file::DirtyFile;
use crate::stack::ranges::Ranges;

/// Bytes of a page.
pub(super) const PAGE_BYTES: u64 = HostCacheDescription::PAGE_BYTES;

/// Dirty pages, and the bytes that are not on the volume.
#[derive(Clone, Debug, Default)]
pub(super) struct WriteBack {
    pub pages: DirtyFile,
    pub under_way: u32,
    /// Bytes written since the last write of their page to the volume began.
    pub newer: Ranges,
    /// Bytes on the way to the volume.
    pub leaving: Ranges,
}

impl WriteBack {
    /// Returns when the next flush begins: at a multiple of the interval, if a page is dirty.
    pub fn due_ns(&self, interval_ns: u64) -> u64 {
        self.pages.due_ns(0, interval_ns)
    }

    /// Lets all dirty pages go to the volume; returns the round with the last of them.
    pub fn tag_all(&mut self) -> Option<u64> {
        self.pages.tag_all()
    }

    /// Forgets a dirty page that was dropped.
    pub fn forget(&mut self, page: u64) {
        self.pages.forget(page);
        self.newer.remove(page * PAGE_BYTES, (page + 1) * PAGE_BYTES);
    }

    /// Appends the parts of `spans` that are not on the volume.
    pub fn not_on_volume(&self, spans: &[Span], into: &mut Vec<Span>) {
        let mut parts = Vec::new();
        for &span in spans {
            self.newer.within(span, &mut parts);
            self.leaving.within(span, &mut parts);
        }
        let mut ranges = Ranges::default();
        for Span { start_bytes, length_bytes } in parts {
            ranges.insert(start_bytes, start_bytes + length_bytes);
        }
        into.extend(ranges.iter().map(|(begin, end)| Span { start_bytes: begin, length_bytes: end - begin }));
    }

    /// Notes that pages go to the volume.
    pub fn begin(&mut self, first: u64, end: u64) {
        let span = Span { start_bytes: first * PAGE_BYTES, length_bytes: (end - first) * PAGE_BYTES };
        let mut parts = Vec::new();
        self.newer.within(span, &mut parts);
        for Span { start_bytes, length_bytes } in parts {
            self.leaving.insert(start_bytes, start_bytes + length_bytes);
        }
        self.newer.remove(first * PAGE_BYTES, end * PAGE_BYTES);
        self.under_way += 1;
    }

    /// Notes that pages are on the volume.
    pub fn end(&mut self, first: u64, end: u64) {
        self.leaving.remove(first * PAGE_BYTES, end * PAGE_BYTES);
        self.under_way -= 1;
        (first..end).for_each(|page| self.pages.page_written(page));
    }
}
