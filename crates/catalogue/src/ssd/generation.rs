//! [`GenerationFigures`]: geometry and times of each generation of flash, used where the file of a drive states none.
//!
//! Times of a program are those of one page of each plane: the mean over the pages of a block, which is the time per
//! page of a one-shot program of all bits of a cell. `MB/s a die` below is a row divided by that time.

use headstack_workload::quantity::{Bytes, DurationNs, Rate};

use super::file::{Cells, Generation};

/// Figures of a generation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GenerationFigures {
    /// Bits of a cell.
    pub bits: u32,
    /// Planes of a die.
    pub planes_per_die: u32,
    /// Whether planes read independently, so that a die serves as many small reads at once.
    pub independent_planes: bool,
    /// Pages of a block.
    pub pages_per_block: u32,
    /// Data bytes of a page.
    pub page: Bytes,
    /// tR.
    pub read: DurationNs,
    /// tPROG of a page of each plane.
    pub program: DurationNs,
    /// tBERS.
    pub erase: DurationNs,
    /// Rate of a channel.
    pub channel_rate: Rate,
    /// Time after which a read suspends programs and erases; `None` if it waits.
    pub suspend: Option<DurationNs>,
    /// Capacity of a die.
    pub die: Bytes,
    /// Source of the figures.
    pub source: &'static str,
}

/// tR with one bit a cell, of flash made for more; 25 to 40 us, general knowledge, medium confidence.
pub const SLC_MODE_READ: DurationNs = DurationNs(30_000);
/// tPROG of a row with one bit a cell; 150 to 300 us, general knowledge, medium confidence.
pub const SLC_MODE_PROGRAM: DurationNs = DurationNs(200_000);

const KIB: u64 = 1 << 10;
const GIB: u64 = 1 << 30;

const fn us(us: i64) -> DurationNs {
    DurationNs(us * 1000)
}

/// Returns figures of three-bit cells since 64 layers, with the values common to all. Erase times are not published:
/// that of HP's white paper on earlier flash.
const fn tlc(planes: u32, read_us: i64, program_us: i64, channel: f64, die: u64) -> GenerationFigures {
    GenerationFigures {
        bits: 3,
        planes_per_die: planes,
        independent_planes: false,
        pages_per_block: 1152,
        page: Bytes(16 * KIB),
        read: us(read_us),
        program: us(program_us),
        erase: us(4_500),
        channel_rate: Rate(channel * 1e6),
        suspend: Some(us(20)),
        die: Bytes(die * GIB),
        source: "C usual for its generation (generation.rs)",
    }
}

const fn qlc(read_us: i64, program_us: i64, channel: f64, die: u64) -> GenerationFigures {
    GenerationFigures { bits: 4, pages_per_block: 1536, erase: us(6_000), ..tlc(4, read_us, program_us, channel, die) }
}

const fn independent(figures: GenerationFigures) -> GenerationFigures {
    GenerationFigures { independent_planes: true, ..figures }
}

impl Generation {
    /// Returns its figures. SLC, MLC and 32-layer TLC: the middle of the ranges in HP's white paper "Solid State Drive
    /// technology" of 2013 (A), means over the pages of a block; sizes and channels general knowledge of chips of the
    /// time (C). Later: tR, MB/s a die and interface as AnandTech tabulates them from ISSCC 2018 to 2021 (article
    /// 16491; B); the rest is between those and general knowledge (C). None was fitted to a drive.
    pub fn figures(self) -> GenerationFigures {
        match self {
            Generation::Slc => GenerationFigures {
                bits: 1,
                planes_per_die: 2,
                independent_planes: false,
                pages_per_block: 128,
                page: Bytes(4 * KIB),
                read: us(25),
                program: us(250),
                erase: us(1_750),
                channel_rate: Rate(133e6),
                suspend: None,
                die: Bytes(GIB),
                source: "C usual for SLC (generation.rs)",
            },
            Generation::Mlc => GenerationFigures {
                bits: 2,
                planes_per_die: 2,
                independent_planes: false,
                pages_per_block: 256,
                page: Bytes(8 * KIB),
                read: us(50),
                program: us(750),
                erase: us(3_000),
                channel_rate: Rate(200e6),
                suspend: None,
                die: Bytes(8 * GIB),
                source: "C usual for MLC (generation.rs)",
            },
            // 970 PRO as NVMeVirt was fitted to it (MIT): 36 us.
            Generation::Mlc64 => GenerationFigures { bits: 2, ..tlc(2, 40, 400, 533.0, 32) },
            Generation::Tlc32 => GenerationFigures {
                pages_per_block: 768,
                source: "C usual for TLC (generation.rs)",
                ..tlc(2, 75, 1_125, 400.0, 32)
            },
            // 50 MB/s a die.
            Generation::Tlc64 => GenerationFigures { pages_per_block: 768, ..tlc(2, 60, 655, 533.0, 32) },
            // Kioxia 2018: 58 us, 57 MB/s, 533 MT/s.
            Generation::Tlc96 => independent(tlc(2, 58, 575, 667.0, 64)),
            // Kioxia 2019: 56 us, 132 MB/s, 1,066 MT/s, four planes; Samsung 2019: 45 us, 82 MB/s, 1,200 MT/s, two.
            Generation::Tlc128 => independent(tlc(4, 50, 612, 1_200.0, 64)),
            // SK hynix 2021: 50 us, 168 MB/s, 1,600 MT/s; Kioxia 2021: 50 us, 160 MB/s.
            Generation::Tlc176 => independent(tlc(4, 50, 400, 1_600.0, 64)),
            // Micron B58R: six planes, 2,000 and later 2,400 MT/s. 200 MB/s a die: C.
            Generation::Tlc232 => independent(tlc(6, 45, 490, 2_000.0, 128)),
            // Micron G9: six planes, 3,600 MT/s.
            Generation::Tlc276 => independent(tlc(6, 40, 450, 3_600.0, 128)),
            // 15 MB/s a die: write rate of 64 dies of a P4320 (1 GB/s, as computerbase prints it).
            Generation::Qlc64 => qlc(120, 4_370, 533.0, 128),
            // SK hynix 2020: 30 MB/s a die.
            Generation::Qlc96 => independent(qlc(110, 2_180, 800.0, 128)),
            Generation::Qlc144 => independent(qlc(90, 1_640, 1_200.0, 128)),
            Generation::Qlc192 => independent(qlc(85, 1_300, 1_600.0, 128)),
            // Kioxia BiCS8: 2 Tbit, 3,600 MT/s.
            Generation::Qlc232 => independent(qlc(80, 1_100, 2_400.0, 256)),
        }
    }

    /// Returns the usual generation of drives of a year; without a year, the usual one when the cells were new.
    pub fn of(cells: Cells, year: Option<u32>) -> Generation {
        match (cells, year.unwrap_or(0)) {
            (Cells::Slc, _) => Generation::Slc,
            (Cells::Mlc, ..=2015) => Generation::Mlc,
            (Cells::Mlc, _) => Generation::Mlc64,
            (Cells::Tlc, ..=2016) => Generation::Tlc32,
            (Cells::Tlc, 2017..=2018) => Generation::Tlc64,
            (Cells::Tlc, 2019) => Generation::Tlc96,
            (Cells::Tlc, 2020..=2021) => Generation::Tlc128,
            (Cells::Tlc, 2022) => Generation::Tlc176,
            (Cells::Tlc, 2023..=2024) => Generation::Tlc232,
            (Cells::Tlc, _) => Generation::Tlc276,
            (Cells::Qlc, ..=2019) => Generation::Qlc64,
            (Cells::Qlc, 2020) => Generation::Qlc96,
            (Cells::Qlc, 2021..=2022) => Generation::Qlc144,
            (Cells::Qlc, 2023) => Generation::Qlc192,
            (Cells::Qlc, _) => Generation::Qlc232,
        }
    }

    /// Returns its kind of cells.
    pub fn cells(self) -> Cells {
        match self.figures().bits {
            1 => Cells::Slc,
            2 => Cells::Mlc,
            3 => Cells::Tlc,
            _ => Cells::Qlc,
        }
    }
}
