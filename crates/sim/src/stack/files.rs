//! [`Files`]: the file of a file system that an address belongs to, and the files that a sync covers.

use std::ops::RangeInclusive;

use headstack_workload::Request;

use crate::description::stack::FileDescription;

/// Files as spans of the address space, one after another. The space before and after them counts as two more files.
#[derive(Clone, Debug, Default)]
pub(crate) struct Files {
    /// First byte of the first file, then the end of each file; empty without files.
    bounds: Vec<u64>,
}

impl Files {
    /// Places files; without any, all addresses belong to file 0.
    pub fn new(files: &[FileDescription]) -> Files {
        Files { bounds: FileDescription::bounds(files) }
    }

    /// Returns the number of files, including the spaces before and after those with a name.
    pub fn count(&self) -> usize {
        self.bounds.len() + 1
    }

    /// Returns the file of a byte.
    pub fn file(&self, at_bytes: u64) -> usize {
        self.bounds.partition_point(|&bound| bound <= at_bytes)
    }

    /// Returns the first and the last file that a request touches.
    pub fn touched(&self, request: &Request) -> RangeInclusive<usize> {
        if self.bounds.is_empty() {
            return 0..=0;
        }
        let last = request.offset_bytes + u64::from(request.length_bytes).saturating_sub(1);
        self.file(request.offset_bytes)..=self.file(last)
    }

    /// Returns the files that a sync covers: the one at its address, or all if it lies outside the named files. A
    /// forced write is a sync of the files that it touches.
    pub fn synced(&self, request: &Request) -> RangeInclusive<usize> {
        let touched = self.touched(request);
        let is_named = |file: usize| (1..self.bounds.len()).contains(&file);
        if touched.clone().all(is_named) { touched } else { 0..=self.count() - 1 }
    }

    /// Returns the end of a file in bytes.
    pub fn end_bytes(&self, file: usize) -> u64 {
        self.bounds.get(file).copied().unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use headstack_workload::Kind;

    use super::*;

    const MIB: u64 = FileDescription::UNIT_BYTES;

    fn sync(offset_bytes: u64) -> Request {
        Request { kind: Kind::Flush, offset_bytes, length_bytes: 0, force_unit_access: false, ordered: false }
    }

    #[test]
    fn a_sync_covers_the_file_at_its_address_or_all() {
        let named = |name: &str, mib: u64| FileDescription { name: name.to_owned(), length_bytes: mib * MIB };
        let files = Files::new(&[named("wal", 2), named("data", 3)]);
        assert_eq!([0, 1, 2, 3, 6, 9].map(|mib| files.file(mib * MIB)), [0, 1, 1, 2, 3, 3]);
        assert_eq!([0, 1, 3, 6].map(|mib| files.synced(&sync(mib * MIB))), [0..=3, 1..=1, 2..=2, 0..=3]);
        let across = Request { kind: Kind::Write, offset_bytes: 3 * MIB - 4096, length_bytes: 8192, ..sync(0) };
        assert_eq!((files.touched(&across), files.synced(&across)), (1..=2, 1..=2));
        assert_eq!((files.end_bytes(1), files.end_bytes(3)), (3 * MIB, u64::MAX));
        let without = Files::default();
        assert_eq!((without.count(), without.synced(&sync(MIB)), without.file(MIB)), (1, 0..=0, 0));
    }
}
