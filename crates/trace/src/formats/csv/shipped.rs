//! [`Shipped`]: the table formats included with headstack, one file in `formats/` each.

use std::sync::LazyLock;

use super::CsvColumns;

mod files {
    include!(concat!(env!("OUT_DIR"), "/tables.rs"));
}

/// A table format included with headstack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Shipped(u8);

static TABLES: LazyLock<Vec<CsvColumns>> = LazyLock::new(|| {
    let table = |(name, text): &(&str, &str)| CsvColumns::from_toml(text).unwrap_or_else(|why| panic!("{name}: {why}"));
    files::FILES.iter().map(table).collect()
});

impl Shipped {
    /// Number of included table formats.
    pub(crate) const COUNT: usize = files::FILES.len();

    /// Returns the format whose file has this index.
    pub(crate) const fn at(place: usize) -> Shipped {
        assert!(place < Shipped::COUNT && Shipped::COUNT <= u8::MAX as usize);
        Shipped(place as u8)
    }

    /// Returns the name of the file, without suffix.
    pub(crate) fn name(self) -> &'static str {
        files::FILES[usize::from(self.0)].0
    }

    /// Returns the declaration.
    pub(crate) fn columns(self) -> &'static CsvColumns {
        &TABLES[usize::from(self.0)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_declares_a_table_with_a_title_and_a_line() {
        for table in (0..Shipped::COUNT).map(Shipped::at) {
            let columns = table.columns();
            assert!(!columns.title.is_empty() && !columns.sample.is_empty(), "{}", table.name());
            assert!(columns.count.is_some() || columns.has_header(), "{}: a bad first line would decide", table.name());
        }
    }
}
