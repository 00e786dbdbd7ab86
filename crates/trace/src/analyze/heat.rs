//! [`Heat`]: a map of accesses by address and time. [`Spread`]: a histogram of the addresses of random accesses. Both
//! double their cell size to grow.

use serde::{Deserialize, Serialize};

/// Number of cells along each axis.
const SIDE: usize = 256;
const CELL_NS: u64 = 1_000;
const CELL_BYTES: u64 = 4_096;
/// Number of cells in the histogram of random accesses.
const CELLS: usize = 1_024;

/// Requests that transfer data, by arrival time and first byte. Addresses of all devices share one axis.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HeatReport {
    /// Time per column, in ns; the first column begins at the first arrival.
    pub column_ns: u64,
    /// Bytes per row, starting at address 0.
    pub row_bytes: u64,
    /// Number of reads, including requests with an unknown operation: one list per column with a count per row.
    /// Trailing zeros are omitted.
    pub reads: Vec<Vec<u64>>,
    /// Number of writes, in the same form as `reads`.
    pub writes: Vec<Vec<u64>>,
}

/// A heat map that grows with the trace.
#[derive(Serialize, Deserialize)]
pub(crate) struct Heat {
    column_ns: u64,
    row_bytes: u64,
    /// Number of reads and writes, by column and row.
    cells: Vec<[u64; 2]>,
}

impl Heat {
    pub(crate) fn new() -> Heat {
        Heat { column_ns: CELL_NS, row_bytes: CELL_BYTES, cells: vec![[0; 2]; SIDE * SIDE] }
    }

    #[inline]
    pub(crate) fn add(&mut self, since_start_ns: u64, offset_bytes: u64, is_write: bool) {
        while since_start_ns / self.column_ns >= SIDE as u64 {
            self.lengthen();
        }
        while offset_bytes / self.row_bytes >= SIDE as u64 {
            self.widen();
        }
        let (column, row) = (since_start_ns / self.column_ns, offset_bytes / self.row_bytes);
        self.cells[column as usize * SIDE + row as usize][usize::from(is_write)] += 1;
    }

    #[cold]
    fn lengthen(&mut self) {
        self.fold(|column, row| (column / 2) * SIDE + row);
        self.column_ns *= 2;
    }

    #[cold]
    fn widen(&mut self) {
        self.fold(|column, row| column * SIDE + row / 2);
        self.row_bytes *= 2;
    }

    fn fold(&mut self, to: fn(usize, usize) -> usize) {
        let mut folded = vec![[0; 2]; SIDE * SIDE];
        for (index, [reads, writes]) in self.cells.iter().enumerate() {
            let cell: &mut [u64; 2] = &mut folded[to(index / SIDE, index % SIDE)];
            cell[0] += reads;
            cell[1] += writes;
        }
        self.cells = folded;
    }

    /// Merges a map with the same start time.
    pub(crate) fn merge(&mut self, mut other: Heat) {
        let (column_ns, row_bytes) = (self.column_ns.max(other.column_ns), self.row_bytes.max(other.row_bytes));
        for map in [&mut *self, &mut other] {
            while map.column_ns < column_ns {
                map.lengthen();
            }
            while map.row_bytes < row_bytes {
                map.widen();
            }
        }
        for (cell, other) in self.cells.iter_mut().zip(&other.cells) {
            cell.iter_mut().zip(other).for_each(|(count, other)| *count += other);
        }
    }

    pub(crate) fn finish(self) -> HeatReport {
        let map = |which: usize| {
            let column = |cells: &[[u64; 2]]| {
                let rows = cells.iter().rposition(|cell| cell[which] > 0).map_or(0, |last| last + 1);
                cells[..rows].iter().map(|cell| cell[which]).collect::<Vec<u64>>()
            };
            let mut columns: Vec<Vec<u64>> = self.cells.chunks(SIDE).map(column).collect();
            columns.truncate(columns.iter().rposition(|column| !column.is_empty()).map_or(0, |last| last + 1));
            columns
        };
        HeatReport { column_ns: self.column_ns, row_bytes: self.row_bytes, reads: map(0), writes: map(1) }
    }
}

/// Histogram of the addresses of random accesses.
#[derive(Serialize, Deserialize)]
pub(crate) struct Spread {
    cell_bytes: u64,
    cells: Vec<u64>,
}

impl Spread {
    pub(crate) fn new() -> Spread {
        Spread { cell_bytes: CELL_BYTES, cells: vec![0; CELLS] }
    }

    #[inline]
    pub(crate) fn add(&mut self, offset_bytes: u64) {
        while offset_bytes / self.cell_bytes >= CELLS as u64 {
            self.widen();
        }
        self.cells[(offset_bytes / self.cell_bytes) as usize] += 1;
    }

    #[cold]
    fn widen(&mut self) {
        self.cell_bytes *= 2;
        for index in 0..CELLS {
            let count = std::mem::take(&mut self.cells[index]);
            self.cells[index / 2] += count;
        }
    }

    pub(crate) fn merge(&mut self, mut other: Spread) {
        while self.cell_bytes < other.cell_bytes {
            self.widen();
        }
        while other.cell_bytes < self.cell_bytes {
            other.widen();
        }
        self.cells.iter_mut().zip(other.cells).for_each(|(count, other)| *count += other);
    }

    /// Returns the smallest share of the first `span_bytes` that contains `share` of the accesses, to a resolution of
    /// one cell.
    pub(crate) fn share_holding(&self, share: f64, span_bytes: u64) -> Option<f64> {
        let total: u64 = self.cells.iter().sum();
        let mut cells: Vec<u64> = self.cells.iter().copied().filter(|count| *count > 0).collect();
        cells.sort_unstable_by(|a, b| b.cmp(a));
        let mut held = 0;
        let needed = cells.iter().position(|count| {
            held += count;
            held as f64 >= share * total as f64
        })?;
        Some(((needed + 1) as f64 * self.cell_bytes as f64 / span_bytes as f64).min(1.0))
    }

    /// Returns the number of accesses in each of `bands` equal bands of the first `span_bytes`; `bands` must be a power
    /// of two.
    pub(crate) fn bands(&self, bands: usize, span_bytes: u64) -> Vec<u64> {
        let mut counts = vec![0; bands];
        for (index, count) in self.cells.iter().enumerate() {
            let middle = (index as f64 + 0.5) * self.cell_bytes as f64 / span_bytes as f64;
            counts[((middle * bands as f64) as usize).min(bands - 1)] += count;
        }
        counts
    }
}
