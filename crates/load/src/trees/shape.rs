//! [`Shape`]: names, sizes and places of a tree's members, all computed from their numbers.

use std::fmt::Write;

use headstack_jobfiles::trees::Tree;
use headstack_workload::{Purpose, Random};

/// The numbering of a tree. Directories are numbered from 0 level by level, with siblings next to each other; files are
/// numbered directory by directory.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    depth: u32,
    width: u64,
    files_in_folder: u64,
    folders: u64,
    /// The first directory with files.
    first_with_files: u64,
    files: u64,
    /// Number of files that the loads use, counted from the first.
    used: u64,
    /// Sizes in bytes, each with the cumulative share of files, 0 to 1.
    sizes: Vec<(u64, f64)>,
    seed: u64,
}

/// Sector size, in bytes; file sizes are rounded up to whole sectors if each sector carries a stamp.
pub const SECTOR_BYTES: u64 = 512;

impl Shape {
    /// Returns the shape of a tree; `None` if its size overflows. With `stamped`, sizes are rounded up to whole
    /// sectors.
    pub fn new(tree: &Tree, seed: u64, stamped: bool) -> Option<Shape> {
        tree.members()?;
        let folders = tree.folders()?;
        let with_files = tree.folders_with_files()?;
        let mut share = 0.0;
        let whole: f64 = tree.sizes.iter().map(|(_, percent)| percent).sum();
        let mut sizes: Vec<(u64, f64)> = Vec::new();
        for &(bytes, percent) in &tree.sizes {
            share += percent / whole;
            let bytes = if stamped { bytes.next_multiple_of(SECTOR_BYTES) } else { bytes };
            sizes.push((bytes, share));
        }
        let mut shape = Shape {
            depth: tree.depth,
            width: u64::from(tree.width),
            files_in_folder: u64::from(tree.files),
            folders,
            first_with_files: if tree.depth == 0 { 0 } else { folders - with_files },
            files: with_files * u64::from(tree.files),
            used: 0,
            sizes,
            seed,
        };
        shape.files = shape.up_to(tree.total_bytes);
        shape.used = shape.up_to(tree.used_bytes);
        Some(shape)
    }

    /// Returns the number of files that total `bytes`, but at least one if there are any.
    fn up_to(&self, bytes: Option<u64>) -> u64 {
        let Some(bytes) = bytes else { return self.files };
        let mut sum = 0u64;
        let reached = (0..self.files).find(|&file| {
            sum = sum.saturating_add(self.size_bytes(file));
            sum >= bytes
        });
        reached.map_or(self.files, |file| file + 1)
    }

    /// Returns the number of directories below the anchor.
    pub fn folders(&self) -> u64 {
        self.folders
    }

    /// Returns the number of files.
    pub fn files(&self) -> u64 {
        self.files
    }

    /// Returns the number of files that loads use.
    pub fn used(&self) -> u64 {
        self.used
    }

    /// Returns the total size of all files, in bytes.
    pub fn bytes(&self) -> u64 {
        match self.sizes.as_slice() {
            [] => 0,
            [(bytes, _)] => bytes * self.files,
            _ => (0..self.files).map(|file| self.size_bytes(file)).sum(),
        }
    }

    /// Returns the length of the longest file, in bytes.
    pub fn longest_bytes(&self) -> u64 {
        self.sizes.iter().map(|(bytes, _)| *bytes).max().unwrap_or(0)
    }

    /// Returns the full length of a file, in bytes.
    pub fn size_bytes(&self, file: u64) -> u64 {
        match self.sizes.as_slice() {
            [] => 0,
            [(bytes, _)] => *bytes,
            several => {
                let drawn =
                    Random::new(self.seed ^ file.wrapping_mul(0x9e37_79b9_7f4a_7c15), Purpose::Choices).fraction();
                several.iter().find(|(_, share)| drawn < *share).or(several.last()).map_or(0, |(bytes, _)| *bytes)
            }
        }
    }

    /// Returns the directory of a file; `None` for the anchor.
    pub fn folder_of(&self, file: u64) -> Option<u64> {
        (self.depth > 0).then(|| self.first_with_files + file / self.files_in_folder)
    }

    /// Returns the parent of a directory; `None` for the anchor.
    pub fn parent(&self, folder: u64) -> Option<u64> {
        // On each level, the `width` children of a directory are consecutive; those of the first level begin at 0.
        (folder >= self.width).then(|| folder / self.width - 1)
    }

    /// Returns the directories and files directly in a directory.
    pub fn children(&self, folder: u64) -> (std::ops::Range<u64>, std::ops::Range<u64>) {
        let first = (folder + 1) * self.width;
        let folders = if first < self.folders { first..first + self.width } else { 0..0 };
        let files = match folder.checked_sub(self.first_with_files) {
            Some(place) => {
                let first = (place * self.files_in_folder).min(self.files);
                first..(first + self.files_in_folder).min(self.files)
            }
            None => 0..0,
        };
        (folders, files)
    }

    /// Writes a directory's path below the anchor, with vdbench's names.
    pub fn folder_path(&self, folder: u64, path: &mut String) {
        path.clear();
        self.append_folder(folder, path);
    }

    fn append_folder(&self, folder: u64, path: &mut String) -> u32 {
        let level = match self.parent(folder) {
            Some(parent) => {
                let level = self.append_folder(parent, path) + 1;
                path.push('/');
                level
            }
            None => 1,
        };
        write!(path, "vdb.{level}_{}.dir", folder % self.width + 1).expect("writing to a string cannot fail");
        level
    }

    /// Writes a file's path below the anchor, with vdbench's names.
    pub fn file_path(&self, file: u64, path: &mut String) {
        path.clear();
        if let Some(folder) = self.folder_of(file) {
            self.append_folder(folder, path);
            path.push('/');
        }
        write!(path, "vdb_f{:04}.file", file % self.files_in_folder + 1).expect("writing to a string cannot fail");
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    fn tree(depth: u32, width: u32, files: u32, everywhere: bool) -> Tree {
        Tree {
            name: "t".to_owned(),
            anchor: "/t".to_owned(),
            depth,
            width,
            files,
            has_files_everywhere: everywhere,
            sizes: vec![(1_000, 30.0), (5_000, 70.0)],
            total_bytes: None,
            used_bytes: None,
        }
    }

    /// Lists the members of a tree by walking through it.
    fn walked(prefix: &str, level: u32, tree: &Tree, folders: &mut Vec<String>, files: &mut Vec<String>) {
        if level == tree.depth || tree.has_files_everywhere && level > 0 {
            files.extend((1..=tree.files).map(|file| format!("{prefix}vdb_f{file:04}.file")));
        }
        if level < tree.depth {
            for position in 1..=tree.width {
                let folder = format!("{prefix}vdb.{}_{position}.dir", level + 1);
                folders.push(folder.clone());
                walked(&format!("{folder}/"), level + 1, tree, folders, files);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn member_numbers_are_a_bijection(
            depth in 0u32..4, width in 1u32..4, files in 0u32..4, everywhere: bool
        ) {
            let tree = tree(depth, width, files, everywhere);
            let shape = Shape::new(&tree, 1, false).unwrap();
            let (mut folders, mut names) = (Vec::new(), Vec::new());
            walked("", 0, &tree, &mut folders, &mut names);
            let mut path = String::new();
            let mut paths = HashSet::new();
            for folder in 0..shape.folders() {
                shape.folder_path(folder, &mut path);
                paths.insert(path.clone());
            }
            prop_assert_eq!((paths.len(), paths), (folders.len(), folders.iter().cloned().collect()));
            let mut paths = HashSet::new();
            for file in 0..shape.files() {
                shape.file_path(file, &mut path);
                paths.insert(path.clone());
            }
            prop_assert_eq!((paths.len(), paths), (names.len(), names.iter().cloned().collect()));
            // Parents and children agree.
            for folder in 0..shape.folders() {
                let (inner, own) = shape.children(folder);
                prop_assert!(inner.clone().all(|child| shape.parent(child) == Some(folder)));
                prop_assert!(own.clone().all(|file| shape.folder_of(file) == Some(folder)));
            }
            let inner: u64 = (0..shape.folders()).map(|folder| shape.children(folder).0.count() as u64).sum();
            let top = (0..shape.folders()).filter(|folder| shape.parent(*folder).is_none()).count() as u64;
            prop_assert_eq!(inner + top, shape.folders());
        }
    }

    #[test]
    fn sizes_have_their_shares_and_end_at_a_total() {
        let mut spec = tree(1, 10, 1_000, false);
        let shape = Shape::new(&spec, 7, false).unwrap();
        let small = (0..shape.files()).filter(|file| shape.size_bytes(*file) == 1_000).count() as f64;
        assert!((small / shape.files() as f64 - 0.3).abs() < 0.02, "{small}");
        assert_eq!(shape.bytes(), (0..shape.files()).map(|file| shape.size_bytes(file)).sum::<u64>());
        spec.total_bytes = Some(1_000_000);
        let cut = Shape::new(&spec, 7, false).unwrap();
        assert!((1_000_000..1_005_000).contains(&cut.bytes()), "{}", cut.bytes());
        spec.used_bytes = Some(100_000);
        assert!(Shape::new(&spec, 7, false).unwrap().used() < cut.files());
        assert!((0..50).all(|file| Shape::new(&spec, 7, true).unwrap().size_bytes(file).is_multiple_of(SECTOR_BYTES)));
    }
}
